//! The printed text keeps the names of the source.

use expect_test::{Expect, expect};
use hdl::prelude::*;
use hdl::verilog::{Design, Options, generate};

fn printed(block: &dyn Block) -> Design {
    generate(block, &Options::new("top")).expect("it can be printed")
}

fn check(block: &dyn Block, text: Expect) {
    text.assert_eq(&printed(block).text);
}

const LIMIT: u8 = 200;
const LAST: usize = 7;

mod other {
    pub const LAST: usize = 9;
}

/// Constants as wide as what they meet, and not; in a pattern; and one that `Second` means otherwise.
#[block]
struct First {
    pub level: Signal<In, Bits<8>>,
    pub count: Signal<In, Bits<16>>,
    pub high: Signal<Out, Bit>,
    pub at_end: Signal<Out, Bit>,
    pub sum: Signal<Out, Bits<16>>,
}

#[block]
impl Logic for First {
    fn update(&mut self) {
        self.high.next = self.level.val() > LIMIT;
        self.at_end.next = self.count.val() == LAST;
        self.sum.next = self.count.val() + u16::MAX;
        match self.count.val().index() {
            abi::limits::EAGER_MAX => self.sum.next = abi::limits::EAGER_MAX - LAST,
            LAST => self.sum.next = LIMIT,
            _ => {}
        }
    }
}

#[block]
struct Second {
    pub count: Signal<In, Bits<16>>,
    pub at_end: Signal<Out, Bit>,
}

#[block]
impl Logic for Second {
    fn update(&mut self) {
        self.at_end.next = self.count.val() == other::LAST;
    }
}

#[block]
struct Both {
    pub level: Signal<In, Bits<8>>,
    pub count: Signal<In, Bits<16>>,
    pub high: Signal<Out, Bits<16>>,
    first: First,
    second: Second,
}

#[block]
impl Logic for Both {
    fn update(&mut self) {
        self.first.level.next = self.level.val();
        self.first.count.next = self.count.val();
        self.second.count.next = self.first.sum.val();
        self.high.next = self.first.sum.val();
        if self.first.high.val() & self.first.at_end.val() | self.second.at_end.val() {
            self.high.next = abi::limits::EAGER_MAX;
        }
    }
}

#[test]
fn a_constant_is_in_the_package_or_in_its_module_if_two_differ() {
    check(
        &Both::default(),
        expect![[r#"
        /* verilator lint_off DECLFILENAME */ // one file holds the whole design
        /* verilator lint_off CMPCONST */ // at the end of its range a size makes a comparison constant
        /* verilator lint_off UNSIGNED */ // likewise, at zero

        package pkg;
          localparam logic [31:0] EAGER_MAX = 32'd1024;
          localparam logic [7:0] LIMIT = 8'd200;
        endpackage

        module First (
          input  wire [7:0] level,
          input  wire [15:0] count,
          output logic high,
          output logic at_end,
          output logic [15:0] sum
        );
          localparam logic [31:0] LAST = 32'd7;
          assign high = (level > pkg::LIMIT);
          assign at_end = (count == (16'(LAST)));
          always_comb begin
            sum = (count + 16'd65535);
            case (count)
              (16'(pkg::EAGER_MAX)): begin
                sum = 16'd1017;
              end
              (16'(LAST)): begin
                sum = (16'(pkg::LIMIT));
              end
              default: ;
            endcase
          end
        endmodule

        module Second (
          input  wire [15:0] count,
          output logic at_end
        );
          localparam logic [31:0] LAST = 32'd9;
          assign at_end = (count == (16'(LAST)));
        endmodule

        module top (
          input  wire [7:0] level,
          input  wire [15:0] count,
          output logic [15:0] high
        );
          logic first_high;
          logic first_at_end;
          logic [15:0] first_sum;
          logic second_at_end;
          always_comb begin
            high = first_sum;
            if (((first_high & first_at_end) | second_at_end)) begin
              high = (16'(pkg::EAGER_MAX));
            end
          end
          First first (
            .level(level),
            .count(count),
            .high(first_high),
            .at_end(first_at_end),
            .sum(first_sum)
          );
          Second second (
            .count(first_sum),
            .at_end(second_at_end)
          );
        endmodule
    "#]],
    );
}
