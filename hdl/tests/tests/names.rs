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

#[derive(Clone, Copy, Debug, PartialEq, LogicState)]
enum Colour {
    Red,
    Green,
    Blue,
}

/// A field that is a keyword of Verilog, one that is a word of C++, and one that is an enum.
#[derive(Clone, Copy, Debug, PartialEq, Default, LogicStruct)]
struct Header {
    priority: Bits<4>,
    long: Bit,
    change: Bits<6>,
    colour: Colour,
}

#[derive(Clone, Copy, Debug, PartialEq, Default, LogicStruct)]
struct Query {
    address: Bits<16>,
    header: Header,
    valid: Bit,
}

/// An enum from Verilog that its author wrote.
#[block]
struct Foreign {
    pub colour: Signal<Out, Colour>,
    pub query: Signal<Out, Query>,
}

#[block]
impl Logic for Foreign {
    fn update(&mut self) {
        self.colour.next = Colour::Red;
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom("assign colour = '0;\nassign query = '0;".into())
    }
}

/// Reads and writes fields, bits of them, several at once, and of an array.
#[block]
struct Walk {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub query: Signal<In, Query>,
    pub wanted: Signal<In, Colour>,
    pub found: Signal<Out, Query>,
    pub low: Signal<Out, Bits<3>>,
    pub across: Signal<Out, Bits<20>>,
    pub colour: Signal<Out, Colour>,
    rows: [Reg<Query>; 2],
    last: Reg<Colour>,
    foreign: Foreign,
    same: Signal<Local, Bit>,
}

#[block]
impl Logic for Walk {
    fn update(&mut self) {
        self.low.next = self.query.val().address.get_bits::<3>(5);
        self.across.next = bit_cast::<20, 30>(self.query.val().into());
        self.same.next = self.rows[0].q.val() == self.query.val();
        self.found.next = self.foreign.query.val();
        for i in 0..2 {
            if self.rows[i].q.val().valid
                & (self.rows[i].q.val().header.colour == self.wanted.val())
            {
                self.found.next = self.rows[i].q.val();
                self.found.next.header.colour = self.wanted.val();
                self.found.next.address = self.query.val().address;
            }
        }
        self.rows[1].d.next = Query::default();
        match self.last.q.val() {
            Colour::Red => {
                self.last.d.next = Colour::Green;
                self.rows[0].d.next = self.query.val();
                self.rows[0].d.next.header.long = self.same.val();
            }
            Colour::Green => self.last.d.next = self.query.val().header.colour,
            Colour::Blue => self.last.d.next = self.foreign.colour.val(),
        }
        self.colour.next = self.last.q.val();
    }
}

#[test]
fn states_and_fields_keep_their_names() {
    check(
        &Walk::default(),
        expect![[r#"
            /* verilator lint_off DECLFILENAME */ // one file holds the whole design
            /* verilator lint_off CMPCONST */ // at the end of its range a size makes a comparison constant
            /* verilator lint_off UNSIGNED */ // likewise, at zero

            package pkg;
              typedef enum logic [1:0] {
                Colour_Red = 2'd0,
                Colour_Green = 2'd1,
                Colour_Blue = 2'd2
              } Colour_t;
              typedef struct packed {
                Colour_t colour;
                logic [5:0] change;
                logic long_;
                logic [3:0] priority_;
              } Header_t;
              typedef struct packed {
                logic valid;
                Header_t header;
                logic [15:0] address;
              } Query_t;
            endpackage

            module Foreign (
              output logic [1:0] colour,
              output logic [29:0] query
            );
              assign colour = '0;
              assign query = '0;
            endmodule

            module top (
              input  wire clock,
              input  wire reset,
              input  wire pkg::Query_t query,
              input  wire [1:0] wanted,
              output pkg::Query_t found,
              output logic [2:0] low,
              output logic [19:0] across,
              output logic [1:0] colour
            );
              pkg::Query_t rows_0_d;
              pkg::Colour_t last_d;
              logic [1:0] foreign_colour;
              pkg::Query_t foreign_query;
              logic same;
              /* verilator lint_off PROCASSINIT */ // a register starts from its reset value
              pkg::Query_t rows_0_q = '0;
              pkg::Query_t rows_1_q = '0;
              pkg::Colour_t last_q = pkg::Colour_Red;
              /* verilator lint_on PROCASSINIT */
              always_comb begin
                rows_0_d = rows_0_q;
                case (last_q)
                  pkg::Colour_Red: begin
                    rows_0_d = query;
                    rows_0_d.header.long_ = same;
                  end
                  pkg::Colour_Green: ;
                  default: ; // pkg::Colour_Blue
                endcase
              end
              always_comb begin
                last_d = last_q;
                case (last_q)
                  pkg::Colour_Red: begin
                    last_d = pkg::Colour_Green;
                  end
                  pkg::Colour_Green: begin
                    last_d = query.header.colour;
                  end
                  default: begin // pkg::Colour_Blue
                    last_d = pkg::Colour_t'(foreign_colour);
                  end
                endcase
              end
              assign low = query.address[7:5];
              assign across = query[19:0];
              assign same = (rows_0_q == query);
              always_comb begin
                found = foreign_query;
                if ((rows_0_q.valid & (rows_0_q.header.colour == wanted))) begin
                  found = rows_0_q;
                  found.header.colour = pkg::Colour_t'(wanted);
                  found.address = query.address;
                end
                if ((rows_1_q.valid & (rows_1_q.header.colour == wanted))) begin
                  found = rows_1_q;
                  found.header.colour = pkg::Colour_t'(wanted);
                  found.address = query.address;
                end
              end
              assign colour = last_q;
              Foreign foreign (
                .colour(foreign_colour),
                .query(foreign_query)
              );
              always_ff @(posedge clock) begin
                if (reset) begin
                  rows_0_q <= '0;
                  rows_1_q <= '0;
                  last_q <= pkg::Colour_Red;
                end else begin
                  rows_0_q <= rows_0_d;
                  rows_1_q <= '0;
                  last_q <= last_d;
                end
              end
            endmodule
        "#]],
    );
}

mod sending {
    use hdl::prelude::*;

    #[derive(Clone, Copy, Debug, PartialEq, LogicState)]
    enum State {
        Idle,
        Sending,
    }

    #[block]
    pub struct Sender {
        pub clock: Signal<In, Clock>,
        pub reset: Signal<In, Bit>,
        pub start: Signal<In, Bit>,
        pub busy: Signal<Out, Bit>,
        state: Reg<State>,
    }

    #[block]
    impl Logic for Sender {
        fn update(&mut self) {
            self.busy.next = self.state.q.val() == State::Sending;
            if self.start.val() {
                self.state.d.next = State::Sending;
            }
        }
    }
}

mod fetching {
    use hdl::prelude::*;

    #[derive(Clone, Copy, Debug, PartialEq, LogicState)]
    enum State {
        Idle,
        Asked,
        Here,
    }

    #[block]
    pub struct Fetcher {
        pub clock: Signal<In, Clock>,
        pub reset: Signal<In, Bit>,
        pub start: Signal<In, Bit>,
        pub busy: Signal<Out, Bit>,
        state: Reg<State>,
    }

    #[block]
    impl Logic for Fetcher {
        fn update(&mut self) {
            self.busy.next = self.state.q.val() != State::Idle;
            match self.state.q.val() {
                State::Idle => {
                    if self.start.val() {
                        self.state.d.next = State::Asked;
                    }
                }
                State::Asked => self.state.d.next = State::Here,
                State::Here => self.state.d.next = State::Idle,
            }
        }
    }
}

#[block]
struct Apart {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub start: Signal<In, Bit>,
    pub busy: Signal<Out, Bit>,
    fetcher: fetching::Fetcher,
    sender: sending::Sender,
}

#[block]
impl Logic for Apart {
    fn update(&mut self) {
        self.fetcher.start.next = self.start.val();
        self.sender.start.next = self.fetcher.busy.val();
        self.busy.next = self.sender.busy.val();
    }
}

/// The same blocks in the other order.
#[block]
struct Turned {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub start: Signal<In, Bit>,
    pub busy: Signal<Out, Bit>,
    sender: sending::Sender,
    fetcher: fetching::Fetcher,
}

#[block]
impl Logic for Turned {
    fn update(&mut self) {
        self.fetcher.start.next = self.start.val();
        self.sender.start.next = self.fetcher.busy.val();
        self.busy.next = self.sender.busy.val();
    }
}

/// The package of a text.
fn package(text: &str) -> &str {
    let start = text.find("package").expect("there is one");
    let end = text.find("endpackage").expect("it ends");
    &text[start..end]
}

/// A module of a text.
fn module<'a>(text: &'a str, name: &str) -> &'a str {
    let start = text
        .find(&format!("module {name} ("))
        .expect("there is one");
    let end = start + text[start..].find("endmodule").expect("it ends");
    &text[start..end]
}

#[test]
fn enums_of_one_name_are_called_after_their_blocks() {
    let text = printed(&Apart::default()).text;
    expect![[r#"
        package pkg;
          typedef enum logic [1:0] {
            Fetcher_State_Idle = 2'd0,
            Fetcher_State_Asked = 2'd1,
            Fetcher_State_Here = 2'd2
          } Fetcher_State_t;
          typedef enum logic {
            Sender_State_Idle = 1'd0,
            Sender_State_Sending = 1'd1
          } Sender_State_t;
    "#]]
    .assert_eq(package(&text));
    for (block, other) in [("Sender", "Fetcher"), ("Fetcher", "Sender")] {
        let module = module(&text, block);
        assert!(module.contains(&format!(
            "pkg::{block}_State_t state_q = pkg::{block}_State_Idle;"
        )));
        assert!(!module.contains(&format!("{other}_State")));
    }
}

#[test]
fn the_text_depends_on_neither_the_run_nor_the_order_of_blocks() {
    let text = printed(&Apart::default()).text;
    assert_eq!(printed(&Apart::default()).text, text);
    let turned = printed(&Turned::default()).text;
    assert_eq!(package(&turned), package(&text));
    for block in ["Sender", "Fetcher"] {
        assert_eq!(module(&turned, block), module(&text, block));
    }
}

#[test]
fn what_nobody_mentions_is_not_in_the_text() {
    let text = printed(&sending::Sender::default()).text;
    assert!(
        package(&text).contains("} State_t;"),
        "one of its name needs no block's: {text}"
    );
    assert!(!printed(&Second::default()).text.contains("EAGER_MAX"));
    assert!(
        !printed(&hdl::prim::RoundRobin::new(3))
            .text
            .contains("package")
    );
}
