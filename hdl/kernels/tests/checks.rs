//! A check that doesn't hold stops the simulation in both worlds, and says which and where.

use hdl::prelude::*;
use hdl::verilog::{Options, Target};
use kernels::kernel::{Case, Vector};
use kernels::verilator::Verilator;
use num_bigint::BigUint;

#[derive(LogicBlock)]
struct Inner {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub value: Signal<In, Bits<8>>,
    bounded: Check,
}

impl Default for Inner {
    fn default() -> Self {
        Inner {
            clock: Signal::default(),
            reset: Signal::default(),
            value: Signal::default(),
            bounded: Check::new("value_is_small"),
        }
    }
}

#[module]
impl Logic for Inner {
    #[hdl_gen]
    fn update(&mut self) {
        clocked!(self, clock, reset, bounded);
        self.bounded.ok.next = self.value.val() < 100;
    }
}

kernels::clocked_kernel! {
    /// Claims something of its input.
    Claims, full_range, { a: Bits<8> }, Bits<8>, { inner: [Inner; 2] },
    #[hdl_gen]
    fn update(&mut self) {
        clocked!(self, clock, reset, inner[0..2]);
        self.inner[0].value.next = 0.into();
        self.inner[1].value.next = self.a.val();
        self.o.next = self.a.val();
    }
}

/// Inputs of one cycle: `a` above `reset`.
fn vector(reset: bool, a: u8) -> Vector {
    Vector {
        input: BigUint::from((u32::from(a) << 1) | u32::from(reset)),
        output: BigUint::from(a),
    }
}

#[test]
fn verilator_reports_the_check_with_its_path() {
    let case = Case::of::<Claims>();
    let text = (case.print)(&Options::new("Claims")).unwrap().text;
    let verilator = Verilator::find();
    let holds = [vector(false, 99), vector(true, 200), vector(false, 0)];
    let outcome = verilator.run("checks", &text, &[(&case, &holds)]);
    assert_eq!(outcome[0].mismatches, 0);
    let fails = [vector(false, 99), vector(false, 100)];
    let said = verilator.complaint("checks", &text, &[(&case, &fails)]);
    assert!(said.contains("batch.k0.inner_1"), "{said}");
    assert!(said.contains("value_is_small"), "{said}");
}

#[test]
fn in_synthesis_nothing_is_left_of_a_check() {
    let options = Options::new("Claims").target(Target::Synthesis);
    let text = (Case::of::<Claims>().print)(&options).unwrap().text;
    assert!(
        !text.contains("assert") && !text.contains("bounded"),
        "{text}"
    );
}
