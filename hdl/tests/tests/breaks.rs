//! What the printer makes of breaks and mutants, and which breaks it refuses.

use expect_test::expect;
use hdl::prelude::*;
use hdl::verilog::{Break, Options, PrintError, Reason, generate, picks};

/// Grants what is asked for and free, and counts the grants.
#[derive(LogicBlock, Default)]
struct Gate {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ask: Signal<In, Bit>,
    pub free: Signal<In, Bit>,
    pub grant: Signal<Out, Bit>,
    pub early: Signal<Out, Bit>,
    count: Reg<Bits<4>>,
    may: Signal<Local, Bit>,
    twice: Signal<Local, Bit>,
    unread: Signal<Local, Bit>,
}

#[module]
impl Logic for Gate {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, count);
        self.may.next = self.ask.val() & self.free.val();
        self.twice.next = self.ask.val();
        self.early.next = self.twice.val();
        if self.free.val() {
            self.twice.next = false;
        }
        if self.may.val() & !self.twice.val() {
            self.count.d.next = self.count.q.val() + 1;
        }
        self.unread.next = self.may.val();
        self.grant.next = self.may.val();
    }
}

/// Two gates, of which only what one does is seen.
#[derive(LogicBlock, Default)]
struct Gates {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ask: Signal<In, Bit>,
    pub grant: Signal<Out, Bit>,
    gate: [Gate; 2],
}

#[module]
impl Logic for Gates {
    #[hdl_gen]
    fn update(&mut self) {
        clocked!(self, clock, reset, gate[0..2]);
        self.gate[0].ask.next = self.ask.val();
        self.gate[0].free.next = true;
        self.gate[1].ask.next = self.gate[0].grant.val();
        self.gate[1].free.next = self.gate[0].early.val();
        self.grant.next = self.gate[1].grant.val();
    }
}

fn printed(breaks: Vec<Break>) -> Result<String, PrintError> {
    let options = Options::new("gate_broken").broken(breaks);
    Ok(generate(&Gate::default(), &options)?.text)
}

fn refused(breaks: Vec<Break>) -> Reason {
    printed(breaks).expect_err("it is to be refused").reason
}

#[test]
fn a_forced_decision_is_another_while_its_break_is_picked() {
    let text = printed(vec![
        Break::new("grants_what_is_taken").force::<Gate>("may", "ask"),
        Break::new("counts_by_two").force_if::<Gate>("count.d", "count.q + 2", "may & !twice"),
    ]);
    let text = text.unwrap();
    assert_eq!(picks(&text), ["grants_what_is_taken", "counts_by_two"]);
    let from = text.find("always_comb begin\n    count_d").unwrap();
    let to = text.find("  always_ff").unwrap();
    let shown = text[from..to].replace("\n  ", "\n");
    expect![[r#"
          always_comb begin
            count_d_v1 = count_q;
            if ((may & (~twice))) begin
              count_d_v1 = (count_q + 4'd1);
            end
          end
          assign may_v1 = (ask & free);
          always_comb begin
            twice = ask;
            early = twice;
            if (free) begin
              twice = 1'd0;
            end
          end
          assign grant = may;
          always_comb begin
            may = may_v1;
            if ((broken == 16'd1)) begin
              may = ask;
            end
          end
          always_comb begin
            count_d = count_d_v1;
            if (((broken == 16'd2) && (may_v1 & (~twice)))) begin
              count_d = (count_q + 4'd2);
            end
          end
    "#]]
    .assert_eq(&shown);
}

#[test]
fn the_pin_reaches_blocks_that_can_be_broken_and_no_others() {
    let breaks = vec![Break::new("grants_what_is_taken").force::<Gate>("may", "ask")];
    let options = Options::new("gates_broken").broken(breaks);
    let text = generate(&Gates::default(), &options).unwrap().text;
    assert_eq!(text.matches(".broken(broken)").count(), 2);
    assert_eq!(text.matches("input  wire [15:0] broken").count(), 2);
    let sound = generate(&Gates::default(), &Options::new("gates")).unwrap();
    assert!(!sound.text.contains("broken"));
}

#[test]
fn a_break_that_could_break_nothing_is_refused() {
    let force = |signal: &str, value: &str| vec![Break::new("b").force::<Gate>(signal, value)];
    let other = vec![Break::new("b").force::<Gates>("grant", "true")];
    assert_eq!(refused(other), Reason::NoSuchBlock("Gates".into()));
    assert_eq!(refused(force("unread", "true")), Reason::ForcedAlone);
    assert_eq!(refused(force("twice", "true")), Reason::ForcedEarly);
    assert!(matches!(
        refused(force("may", "ask +")),
        Reason::ForcedValue(_)
    ));
    assert!(matches!(
        refused(force("may", "nobody")),
        Reason::UnknownName(_)
    ));
    assert!(matches!(
        refused(force("may", "count.q")),
        Reason::AssignmentMismatch { .. }
    ));
}

#[test]
fn a_refused_break_is_named_with_its_line() {
    for (signal, value, reason) in [
        ("may", "nobody", "`nobody` is not a signal"),
        ("may", "ask & count.q == free", "`&` binds closer than `==`"),
        ("unread", "true", "nobody reads it"),
        ("twice", "true", "read before its last assignment"),
    ] {
        let line = line!() + 1;
        let breaks = vec![Break::new("b").force::<Gate>(signal, value)];
        let said = printed(breaks)
            .expect_err("it is to be refused")
            .to_string();
        let place = format!("{}:{line}:", file!());
        assert!(
            said.starts_with(&place) && said.contains(": break `b`: "),
            "{said}"
        );
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn a_comparison_beside_an_operator_of_bits_wants_parentheses() {
    let beside = |value: &str| vec![Break::new("b").force::<Gate>("may", value)];
    for value in [
        "ask & count.q <= 3",
        "free | count.q == 1",
        "3 > count.q ^ ask",
    ] {
        let reason = refused(beside(value));
        assert!(
            matches!(reason, Reason::ComparisonBeside { .. }),
            "{value}: {reason}"
        );
    }
    for value in [
        "ask & (count.q <= 3)",
        "count.q & 2 == 2",
        "ask && count.q == 1",
    ] {
        assert!(printed(beside(value)).is_ok(), "{value}");
    }
}

#[test]
fn a_value_that_depends_on_what_it_forces_is_refused() {
    let breaks = vec![Break::new("b").force::<Gate>("may", "!grant")];
    assert_eq!(refused(breaks), Reason::ForcedAlone);
}

#[test]
fn every_place_of_the_source_is_a_mutant_once() {
    let options = Options::new("gates_mutants").mutants();
    let text = generate(&Gates::default(), &options).unwrap().text;
    expect![[r#"
        Gate.may: & is | (0)
        Gate.free: never (1)
        Gate.free: always (2)
        Gate.twice: 0 is 1 (3)
        Gate.twice: isn't assigned (4)
        Gate.may: ~ is missing (5)
        Gate.may: & is | (6)
        Gate.may: never (7)
        Gate.may: always (8)
        Gate.count.d: 1 is 0 (9)
        Gate.count.d: + is - (10)
        Gate.count.d: isn't assigned (11)
        Gate.count: reset is another
        Gates.gate.0.free: 1 is 0 (0)
    "#]]
    .assert_eq(&(picks(&text).join("\n") + "\n"));
}

#[test]
fn only_blocks_of_the_types_that_are_named_have_mutants() {
    let options = Options::new("gates_mutants").mutants_of::<Gates>();
    let text = generate(&Gates::default(), &options).unwrap().text;
    assert_eq!(picks(&text), ["Gates.gate.0.free: 1 is 0 (0)"]);
}

#[test]
#[should_panic(expected = "no block is a Skid")]
fn mutants_of_a_type_that_no_block_has_are_refused() {
    let options = Options::new("gates_mutants");
    let options = options
        .mutants_of::<Gates>()
        .mutants_of::<hdl::prim::Skid<Bit>>();
    let _ = generate(&Gates::default(), &options);
}

/// As it broke: each literal of a struct had two mutants that nobody could notice.
#[test]
fn the_zero_before_the_fields_of_a_struct_is_no_mutant() {
    let picks = hdl::catalogue::picks_of("batches_mutants");
    let count = |what: &str| {
        let start = format!("Batches.sum.d{what} (");
        picks.iter().filter(|pick| pick.starts_with(&start)).count()
    };
    assert_eq!(count(".bytes: + is -"), 1, "{picks:?}");
    // That of `Summary::default()`.
    assert_eq!(count(": 0 is 1"), 1, "{picks:?}");
    assert_eq!(count(": isn't assigned"), 1, "{picks:?}");
}
