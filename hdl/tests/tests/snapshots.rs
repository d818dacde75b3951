//! Printed text of small blocks, for a reviewer to read.

use expect_test::{Expect, expect};
use hdl::prelude::*;
use hdl::verilog::{Options, Target, generate};

fn check(block: &dyn Block, target: Target, text: Expect) {
    let design = generate(block, &Options::new("top").target(target)).expect("it can be printed");
    text.assert_eq(&design.text);
}

/// A counter with an enable, a bound, and a claim about it.
#[derive(LogicBlock)]
struct Counter<const W: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub enable: Signal<In, Bit>,
    pub value: Signal<Out, Bits<W>>,
    bound: Constant<Bits<W>>,
    count: Reg<Bits<W>>,
    in_bounds: Check,
}

impl<const W: usize> Counter<W> {
    fn new(bound: u64) -> Self {
        Counter {
            clock: Signal::default(),
            reset: Signal::default(),
            enable: Signal::default(),
            value: Signal::default(),
            bound: Constant::new(bound.into()),
            count: Reg::default(),
            in_bounds: Check::new("count_is_in_bounds"),
        }
    }
}

#[module]
impl<const W: usize> Logic for Counter<W> {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, count);
        clocked!(self, clock, reset, in_bounds);
        self.in_bounds.ok.next = self.count.q.val() <= self.bound.val();
        if self.enable.val() {
            self.count.d.next = self.count.q.val() + 1;
            if self.count.q.val() == self.bound.val() {
                self.count.d.next = 0.into();
            }
        }
        self.value.next = self.count.q.val();
    }
}

#[test]
fn counter_in_simulation() {
    check(
        &Counter::<4>::new(9),
        Target::Simulation,
        expect![[r#"
            /* verilator lint_off DECLFILENAME */ // one file holds the whole design
            /* verilator lint_off CMPCONST */ // at the end of its range a size makes a comparison constant
            /* verilator lint_off UNSIGNED */ // likewise, at zero

            module top (
              input  wire clock,
              input  wire reset,
              input  wire enable,
              output logic [3:0] value
            );
              localparam logic [3:0] bound = 4'd9;
              logic [3:0] count_d;
              logic in_bounds_ok;
              /* verilator lint_off PROCASSINIT */ // a register starts from its reset value
              logic [3:0] count_q = 4'd0;
              /* verilator lint_on PROCASSINIT */
              always_comb begin
                count_d = count_q;
                if (enable) begin
                  count_d = (count_q + 4'd1);
                  if ((count_q == bound)) begin
                    count_d = 4'd0;
                  end
                end
              end
              assign in_bounds_ok = (count_q <= bound);
              assign value = count_q;
              always_ff @(posedge clock) begin
                if (reset) begin
                  count_q <= 4'd0;
                end else begin
                  count_q <= count_d;
                end
              end
              always_ff @(posedge clock) begin
                if (~reset) in_bounds: assert (in_bounds_ok) else $error("%m: count_is_in_bounds");
              end
            endmodule
        "#]],
    );
}

#[test]
fn counter_for_a_solver() {
    check(
        &Counter::<4>::new(9),
        Target::Formal,
        expect![[r#"
            /* verilator lint_off DECLFILENAME */ // one file holds the whole design
            /* verilator lint_off CMPCONST */ // at the end of its range a size makes a comparison constant
            /* verilator lint_off UNSIGNED */ // likewise, at zero

            module top (
              input  wire clock,
              input  wire reset,
              input  wire enable,
              output logic [3:0] value
            );
              localparam logic [3:0] bound = 4'd9;
              logic [3:0] count_d;
              logic in_bounds_ok;
              /* verilator lint_off PROCASSINIT */ // a register starts from its reset value
              logic [3:0] count_q = 4'd0;
              /* verilator lint_on PROCASSINIT */
              always_comb begin
                count_d = count_q;
                if (enable) begin
                  count_d = (count_q + 4'd1);
                  if ((count_q == bound)) begin
                    count_d = 4'd0;
                  end
                end
              end
              assign in_bounds_ok = (count_q <= bound);
              assign value = count_q;
              always_ff @(posedge clock) begin
                if (reset) begin
                  count_q <= 4'd0;
                end else begin
                  count_q <= count_d;
                end
              end
              always_ff @(posedge clock) begin
                if (~reset) in_bounds: assert (in_bounds_ok);
              end
            endmodule
        "#]],
    );
}

#[test]
fn counter_in_synthesis() {
    check(
        &Counter::<4>::new(9),
        Target::Synthesis,
        expect![[r#"
            /* verilator lint_off DECLFILENAME */ // one file holds the whole design
            /* verilator lint_off CMPCONST */ // at the end of its range a size makes a comparison constant
            /* verilator lint_off UNSIGNED */ // likewise, at zero

            module top (
              input  wire clock,
              input  wire reset,
              input  wire enable,
              output logic [3:0] value
            );
              localparam logic [3:0] bound = 4'd9;
              logic [3:0] count_d;
              /* verilator lint_off PROCASSINIT */ // a register starts from its reset value
              logic [3:0] count_q = 4'd0;
              /* verilator lint_on PROCASSINIT */
              always_comb begin
                count_d = count_q;
                if (enable) begin
                  count_d = (count_q + 4'd1);
                  if ((count_q == bound)) begin
                    count_d = 4'd0;
                  end
                end
              end
              assign value = count_q;
              always_ff @(posedge clock) begin
                if (reset) begin
                  count_q <= 4'd0;
                end else begin
                  count_q <= count_d;
                end
              end
            endmodule
        "#]],
    );
}

/// A chain of counters whose number is chosen at run time.
#[derive(LogicBlock)]
struct Chain {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub total: Signal<Out, Bits<8>>,
    counter: Vec<Counter<8>>,
    delay: Vec<Reg<Bits<8>>>,
    sum: Vec<Signal<Local, Bits<8>>>,
    _n: usize,
}

impl Chain {
    fn new(n: usize) -> Self {
        Chain {
            clock: Signal::default(),
            reset: Signal::default(),
            total: Signal::default(),
            counter: (0..n).map(|i| Counter::new(4 + i as u64 / 2)).collect(),
            delay: (0..n).map(|_| Reg::new(7.into())).collect(),
            sum: (0..n + 1).map(|_| Signal::default()).collect(),
            _n: n,
        }
    }
}

#[module(n = self._n)]
impl Logic for Chain {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, delay[0..self._n]);
        clocked!(self, clock, reset, counter[0..self._n]);
        self.sum[0].next = 0.into();
        for i in 0..self._n {
            self.counter[i].enable.next = self.delay[i].q.val().get_bit(i);
            self.delay[i].d.next = self.counter[i].value.val();
            self.sum[i + 1].next = self.sum[i].val() + self.delay[i].q.val();
        }
        for last in self._n..(self._n + 1) {
            self.total.next = self.sum[last].val();
        }
    }
}

#[test]
fn chain_of_three() {
    check(
        &Chain::new(3),
        Target::Simulation,
        expect![[r#"
            /* verilator lint_off DECLFILENAME */ // one file holds the whole design
            /* verilator lint_off CMPCONST */ // at the end of its range a size makes a comparison constant
            /* verilator lint_off UNSIGNED */ // likewise, at zero

            module Counter_8 (
              input  wire clock,
              input  wire reset,
              input  wire enable,
              output logic [7:0] value
            );
              localparam logic [7:0] bound = 8'd4;
              logic [7:0] count_d;
              logic in_bounds_ok;
              /* verilator lint_off PROCASSINIT */ // a register starts from its reset value
              logic [7:0] count_q = 8'd0;
              /* verilator lint_on PROCASSINIT */
              always_comb begin
                count_d = count_q;
                if (enable) begin
                  count_d = (count_q + 8'd1);
                  if ((count_q == bound)) begin
                    count_d = 8'd0;
                  end
                end
              end
              assign in_bounds_ok = (count_q <= bound);
              assign value = count_q;
              always_ff @(posedge clock) begin
                if (reset) begin
                  count_q <= 8'd0;
                end else begin
                  count_q <= count_d;
                end
              end
              always_ff @(posedge clock) begin
                if (~reset) in_bounds: assert (in_bounds_ok) else $error("%m: count_is_in_bounds");
              end
            endmodule

            module Counter_8_v2 (
              input  wire clock,
              input  wire reset,
              input  wire enable,
              output logic [7:0] value
            );
              localparam logic [7:0] bound = 8'd5;
              logic [7:0] count_d;
              logic in_bounds_ok;
              /* verilator lint_off PROCASSINIT */ // a register starts from its reset value
              logic [7:0] count_q = 8'd0;
              /* verilator lint_on PROCASSINIT */
              always_comb begin
                count_d = count_q;
                if (enable) begin
                  count_d = (count_q + 8'd1);
                  if ((count_q == bound)) begin
                    count_d = 8'd0;
                  end
                end
              end
              assign in_bounds_ok = (count_q <= bound);
              assign value = count_q;
              always_ff @(posedge clock) begin
                if (reset) begin
                  count_q <= 8'd0;
                end else begin
                  count_q <= count_d;
                end
              end
              always_ff @(posedge clock) begin
                if (~reset) in_bounds: assert (in_bounds_ok) else $error("%m: count_is_in_bounds");
              end
            endmodule

            module top (
              input  wire clock,
              input  wire reset,
              output logic [7:0] total
            );
              logic counter_0_enable;
              logic [7:0] counter_0_value;
              logic counter_1_enable;
              logic [7:0] counter_1_value;
              logic counter_2_enable;
              logic [7:0] counter_2_value;
              logic [7:0] sum_0;
              logic [7:0] sum_1;
              logic [7:0] sum_2;
              logic [7:0] sum_3;
              /* verilator lint_off PROCASSINIT */ // a register starts from its reset value
              logic [7:0] delay_0_q = 8'd7;
              logic [7:0] delay_1_q = 8'd7;
              logic [7:0] delay_2_q = 8'd7;
              /* verilator lint_on PROCASSINIT */
              assign sum_0 = 8'd0;
              assign counter_0_enable = delay_0_q[0];
              assign sum_1 = (sum_0 + delay_0_q);
              assign counter_1_enable = delay_1_q[1];
              assign sum_2 = (sum_1 + delay_1_q);
              assign counter_2_enable = delay_2_q[2];
              assign sum_3 = (sum_2 + delay_2_q);
              assign total = sum_3;
              Counter_8 counter_0 (
                .clock(clock),
                .reset(reset),
                .enable(counter_0_enable),
                .value(counter_0_value)
              );
              Counter_8 counter_1 (
                .clock(clock),
                .reset(reset),
                .enable(counter_1_enable),
                .value(counter_1_value)
              );
              Counter_8_v2 counter_2 (
                .clock(clock),
                .reset(reset),
                .enable(counter_2_enable),
                .value(counter_2_value)
              );
              always_ff @(posedge clock) begin
                if (reset) begin
                  delay_0_q <= 8'd7;
                  delay_1_q <= 8'd7;
                  delay_2_q <= 8'd7;
                end else begin
                  delay_0_q <= counter_0_value;
                  delay_1_q <= counter_1_value;
                  delay_2_q <= counter_2_value;
                end
              end
            endmodule
        "#]],
    );
}

/// Two chains in a parent that only wires.
#[derive(LogicBlock)]
struct Pair {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub a: Signal<Out, Bits<8>>,
    pub b: Signal<Out, Bits<8>>,
    left: Chain,
    right: Chain,
}

#[module]
impl Logic for Pair {
    #[hdl_gen]
    fn update(&mut self) {
        clocked!(self, clock, reset, left, right);
        self.a.next = self.left.total.val();
        self.b.next = self.right.total.val();
    }
}

#[test]
fn bodies_are_printed_once_and_named_after_their_parameters() {
    let pair = Pair {
        clock: Signal::default(),
        reset: Signal::default(),
        a: Signal::default(),
        b: Signal::default(),
        left: Chain::new(1),
        right: Chain::new(1),
    };
    let design = generate(&pair, &Options::new("pair")).unwrap();
    assert_eq!(design.modules, ["Counter_8", "Chain_n1", "pair"]);
    let pair = Pair {
        right: Chain::new(2),
        ..pair
    };
    let design = generate(&pair, &Options::new("pair")).unwrap();
    assert_eq!(
        design.modules,
        ["Counter_8", "Chain_n1", "Chain_n2", "pair"]
    );
}
