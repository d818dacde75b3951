//! What can't be printed soundly is refused, with the block, the signal and the reason.
//!
//! These kernels go without `#[module]`: its rules would refuse some of them at compile time, and
//! here the printer is to see them.

use hdl::prelude::*;
use hdl::verilog::{Options, Reason, generate};

const LIMIT: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, LogicState)]
enum Side {
    Left,
    Right,
    Middle,
}

/// Another enum of the same name, with other numbers.
mod other {
    use hdl::prelude::*;

    #[derive(Clone, Copy, Debug, PartialEq, LogicState)]
    pub enum Side {
        Right,
        Left,
    }
}

/// The kernels need only some of the variants; rustc wants to see each made.
const _: [Side; 3] = [Side::Left, Side::Right, Side::Middle];
const _: [other::Side; 2] = [other::Side::Right, other::Side::Left];

#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Default, LogicStruct)]
struct Pair {
    low: Bits<8>,
    high: Bits<8>,
}

#[derive(LogicInterface, Default)]
struct Bus {
    pub d: Signal<In, Bits<8>>,
    pub q: Signal<Out, Bits<8>>,
}

/// A child with a register in it.
#[derive(LogicBlock, Default)]
struct Delay {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub d: Signal<In, Bits<8>>,
    pub q: Signal<Out, Bits<8>>,
    hold: Reg<Bits<8>>,
}

#[module]
impl Logic for Delay {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, hold);
        self.hold.d.next = self.d.val();
        self.q.next = self.hold.q.val();
    }
}

/// A child with a bundle.
#[derive(LogicBlock, Default)]
struct Device {
    pub bus: Bus,
}

#[module]
impl Logic for Device {
    #[hdl_gen]
    fn update(&mut self) {
        self.bus.q.next = !self.bus.d.val();
    }
}

/// A child that has forgotten `#[hdl_gen]`.
#[derive(LogicBlock, Default)]
struct Silent {
    pub d: Signal<In, Bits<8>>,
    pub q: Signal<Out, Bits<8>>,
}

impl Logic for Silent {
    fn update(&mut self) {
        self.q.next = self.d.val();
    }
}

/// Declares a test of one kernel with common ports: what is inside, the kernel, and which signal is
/// refused for which reason.
macro_rules! refused {
    (
        $(#[$doc:meta])* $test:ident, { $($inner:ident: $ty:ty),* $(,)? },
        { $($body:tt)* }, $signal:expr, $reason:expr
    ) => {
        $(#[$doc])*
        #[test]
        fn $test() {
            #[derive(LogicBlock, Default)]
            struct Kernel {
                pub clock: Signal<In, Clock>,
                pub reset: Signal<In, Bit>,
                pub a: Signal<In, Bits<8>>,
                pub b: Signal<In, Bits<8>>,
                pub s: Signal<In, Signed<8>>,
                pub x: Signal<In, Bit>,
                pub e: Signal<In, Side>,
                pub r: Signal<In, Pair>,
                pub o: Signal<Out, Bits<8>>,
                $($inner: $ty,)*
            }

            impl Logic for Kernel {
                $($body)*
            }

            let error = generate(&Kernel::default(), &Options::new("top")).unwrap_err();
            let signal: Option<&str> = $signal;
            assert_eq!(&*error.block, "top");
            assert_eq!((error.signal.as_deref(), &error.reason), (signal, &$reason), "{error}");
        }
    };
}

fn mismatch(target: usize, value: usize) -> Reason {
    Reason::AssignmentMismatch { target, value }
}

fn too_wide(value: &str, width: usize) -> Reason {
    let value = value.to_string();
    Reason::ConstantTooWide { value, width }
}

fn out_of_range(index: &str, width: usize) -> Reason {
    let index = index.to_string();
    Reason::BitOutOfRange { index, width }
}

// ---- names that leave no trace

refused!(
    rust_constants,
    {},
    {
        #[hdl_gen]
        fn update(&mut self) {
            self.o.next = self.a.val() + LIMIT;
        }
    },
    Some("o"),
    Reason::UnknownName("LIMIT".into())
);

refused!(signals_of_grandchildren, { delay: Delay }, {
    #[hdl_gen]
    fn update(&mut self) {
        self.delay.clock.next = self.clock.val();
        self.delay.reset.next = self.reset.val();
        self.delay.d.next = self.a.val();
        self.o.next = self.delay.hold.q.val();
    }
}, Some("o"), Reason::UnknownName("delay.hold.q".into()));

refused!(indices_of_arrays_that_vary, { table: [Signal<Local, Bits<8>>; 4] }, {
    #[hdl_gen]
    fn update(&mut self) {
        for k in 0..4 {
            self.table[k].next = self.a.val();
        }
        self.o.next = self.table[self.b.val().index()].val();
    }
}, Some("o"), Reason::ArrayIndex("table[b.val().index()]".into()));

refused!(indices_past_the_end_of_an_array, { table: [Signal<Local, Bits<8>>; 4] }, {
    #[hdl_gen]
    fn update(&mut self) {
        for k in 0..5 {
            self.table[k].next = self.a.val();
        }
        self.o.next = self.table[0].val();
    }
}, Some("table.4"), Reason::ArrayIndex("table.4".into()));

refused!(variants_of_two_enums_of_one_name, { p: Signal<In, other::Side> }, {
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val();
        if self.e.val() == Side::Left {
            self.o.next = self.b.val();
        }
    }
}, Some("e"), Reason::AmbiguousVariant("Side::Left".into()));

refused!(
    loop_variables_with_the_name_of_a_signal,
    {},
    {
        #[hdl_gen]
        fn update(&mut self) {
            self.o.next = 0.into();
            for a in 0..4usize {
                self.o.next = self.o.val() + self.a.val() + a.to_bits();
            }
        }
    },
    Some("a"),
    Reason::LoopShadowsSignal("a".into())
);

refused!(keywords, { logic: Signal<Local, Bits<8>> }, {
    #[hdl_gen]
    fn update(&mut self) {
        self.logic.next = self.a.val();
        self.o.next = self.logic.val();
    }
}, Some("logic"), Reason::Keyword("logic".into()));

// ---- conversions that leave no trace

refused!(index_that_widens, { wide: Signal<Local, Bits<16>> }, {
    #[hdl_gen]
    fn update(&mut self) {
        self.wide.next = self.a.val().index().to_bits();
        self.o.next = bit_cast::<8, 16>(self.wide.val());
    }
}, Some("wide"), mismatch(16, 8));

refused!(operands_of_different_width, { wide: Signal<In, Bits<16>> }, {
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val();
        if self.a.val().index() == self.wide.val().index() {
            self.o.next = self.b.val();
        }
    }
}, Some("a"), Reason::OperandMismatch {
    operator: "==",
    left: "8 bits".into(),
    right: "16 bits".into(),
});

refused!(
    arithmetic_in_a_bit_index,
    {},
    {
        #[hdl_gen]
        fn update(&mut self) {
            self.o.next = self.a.val();
            if self.a.val().get_bit(self.b.val().index() + 1) {
                self.o.next = self.b.val();
            }
        }
    },
    Some("a"),
    Reason::IndexArithmetic
);

refused!(
    signed_bit_cast_without_a_target,
    {},
    {
        #[hdl_gen]
        fn update(&mut self) {
            self.o.next = bit_cast::<8, 16>(unsigned_cast(signed_bit_cast::<16, 8>(self.s.val())));
        }
    },
    Some("o"),
    Reason::UnknownWidth("a signed_bit_cast inside bit_cast")
);

refused!(complements_of_integers, { wide: Signal<Out, Bits<100>> }, {
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val();
        self.wide.next = bit_cast::<100, 8>(self.a.val()) & !1;
    }
}, Some("wide"), Reason::ComplementOfInteger);

refused!(
    structs_in_order,
    {},
    {
        #[hdl_gen]
        fn update(&mut self) {
            self.o.next = self.a.val();
            if self.r.val() < self.r.val() {
                self.o.next = self.b.val();
            }
        }
    },
    Some("r"),
    Reason::StructOrdering
);

// ---- constants and bits out of range

refused!(
    constants_too_wide_for_an_operand,
    {},
    {
        #[hdl_gen]
        fn update(&mut self) {
            self.o.next = self.a.val() + 256;
        }
    },
    Some("o"),
    too_wide("256", 8)
);

refused!(
    constants_too_wide_for_a_target,
    {},
    {
        #[hdl_gen]
        fn update(&mut self) {
            self.o.next = 300.into();
        }
    },
    Some("o"),
    too_wide("300", 8)
);

refused!(
    patterns_too_wide_for_their_value,
    {},
    {
        #[hdl_gen]
        fn update(&mut self) {
            match self.a.val().index() {
                256 => {
                    self.o.next = self.a.val();
                }
                _ => {
                    self.o.next = self.b.val();
                }
            }
        }
    },
    Some("a"),
    too_wide("256", 8)
);

refused!(
    bits_past_the_top,
    {},
    {
        #[hdl_gen]
        fn update(&mut self) {
            self.o.next = self.a.val();
            if self.a.val().get_bit(9) {
                self.o.next = self.b.val();
            }
        }
    },
    Some("a"),
    out_of_range("9", 8)
);

refused!(
    replaced_bits_past_the_top,
    {},
    {
        #[hdl_gen]
        fn update(&mut self) {
            self.o.next = self.a.val().replace_bit(8, true);
        }
    },
    Some("o"),
    out_of_range("8", 8)
);

refused!(
    slices_past_the_top,
    {},
    {
        #[hdl_gen]
        fn update(&mut self) {
            self.o.next = bit_cast::<8, 4>(self.a.val().get_bits::<4>(8));
        }
    },
    Some("o"),
    out_of_range("8", 8)
);

// ---- latches and the order of statements

refused!(
    latches,
    {},
    {
        #[hdl_gen]
        fn update(&mut self) {
            if self.x.val() {
                self.o.next = self.a.val();
            }
        }
    },
    Some("o"),
    Reason::Latch
);

refused!(
    latches_in_a_match,
    {},
    {
        #[hdl_gen]
        fn update(&mut self) {
            match self.e.val() {
                Side::Left => {
                    self.o.next = self.a.val();
                }
                Side::Right => {
                    self.o.next = self.b.val();
                }
                Side::Middle => {}
            }
        }
    },
    Some("o"),
    Reason::Latch
);

refused!(outputs_that_nothing_drives, { more: Signal<Out, Bit> }, {
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val();
    }
}, Some("more"), Reason::NeverAssigned);

refused!(children_that_nothing_drives, { delay: Delay }, {
    #[hdl_gen]
    fn update(&mut self) {
        self.delay.clock.next = self.clock.val();
        self.delay.d.next = self.a.val();
        self.o.next = self.delay.q.val();
    }
}, Some("delay.reset"), Reason::NeverAssigned);

refused!(reads_before_assignment, { late: Signal<Local, Bits<8>> }, {
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.late.val();
        self.late.next = self.a.val();
    }
}, Some("o"), Reason::ReadBeforeAssigned("late".into()));

refused!(reads_after_assignment_on_one_path, { some: Signal<Local, Bits<8>> }, {
    #[hdl_gen]
    fn update(&mut self) {
        if self.x.val() {
            self.some.next = self.a.val();
        }
        self.o.next = self.some.val();
    }
}, Some("o"), Reason::ReadBeforeAssigned("some".into()));

refused!(fields_before_the_whole, { pair: Signal<Local, Pair> }, {
    #[hdl_gen]
    fn update(&mut self) {
        self.pair.next.low = self.a.val();
        self.o.next = self.a.val();
    }
}, Some("pair"), Reason::PartBeforeWhole);

refused!(reading_a_childs_input, { delay: Delay }, {
    #[hdl_gen]
    fn update(&mut self) {
        self.delay.clock.next = self.clock.val();
        self.delay.reset.next = self.reset.val();
        self.delay.d.next = self.a.val();
        self.o.next = self.delay.d.val();
    }
}, Some("o"), Reason::ReadsChildInput("delay.d".into()));

refused!(
    driving_an_input,
    {},
    {
        #[hdl_gen]
        fn update(&mut self) {
            self.a.next = self.b.val();
            self.o.next = self.b.val();
        }
    },
    Some("a"),
    Reason::NotAssignable("a".into())
);

refused!(driving_a_childs_output, { delay: Delay }, {
    #[hdl_gen]
    fn update(&mut self) {
        self.delay.q.next = self.b.val();
        self.o.next = self.b.val();
    }
}, Some("delay.q"), Reason::NotAssignable("delay.q".into()));

// ---- clocks

refused!(inverted_clocks, { delay: Delay }, {
    #[hdl_gen]
    fn update(&mut self) {
        self.delay.clock.next = !self.clock.val();
        self.delay.reset.next = self.reset.val();
        self.delay.d.next = self.a.val();
        self.o.next = self.delay.q.val();
    }
}, Some("delay.clock"), Reason::DerivedClock);

refused!(gated_clocks, { delay: Delay }, {
    #[hdl_gen]
    fn update(&mut self) {
        self.delay.clock.next = false.into();
        if self.x.val() {
            self.delay.clock.next = self.clock.val();
        }
        self.delay.reset.next = self.reset.val();
        self.delay.d.next = self.a.val();
        self.o.next = self.delay.q.val();
    }
}, Some("delay.clock"), Reason::DerivedClock);

refused!(clocks_from_bits, { delay: Delay }, {
    #[hdl_gen]
    fn update(&mut self) {
        self.delay.clock.next = self.x.val().into();
        self.delay.reset.next = self.reset.val();
        self.delay.d.next = self.a.val();
        self.o.next = self.delay.q.val();
    }
}, Some("delay.clock"), Reason::DerivedClock);

// ---- blocks as a whole

refused!(
    assertions,
    {},
    {
        #[hdl_gen]
        fn update(&mut self) {
            assert!(!self.x.val());
            self.o.next = self.a.val();
        }
    },
    None,
    Reason::AssertInKernel
);

refused!(links_under_a_condition, { bus: Bus, device: Device }, {
    #[hdl_gen]
    fn update(&mut self) {
        if self.x.val() {
            Bus::link(&mut self.bus, &mut self.device.bus);
        }
        self.o.next = self.a.val();
    }
}, Some("bus.d"), Reason::ConditionalLink);

refused!(hand_written_verilog_over_children, { delay: Delay }, {
    fn update(&mut self) {}
    fn hdl(&self) -> Verilog {
        Verilog::Custom("assign o = a;".into())
    }
}, None, Reason::CustomWithChildren);

#[test]
fn the_block_is_named_by_its_path() {
    #[derive(LogicBlock, Default)]
    struct Top {
        pub a: Signal<In, Bits<8>>,
        pub o: Signal<Out, Bits<8>>,
        row: [Middle; 2],
    }

    impl Logic for Top {
        #[hdl_gen]
        fn update(&mut self) {
            self.row[0].d.next = self.a.val();
            self.row[1].d.next = self.row[0].q.val();
            self.o.next = self.row[1].q.val();
        }
    }

    #[derive(LogicBlock, Default)]
    struct Middle {
        pub d: Signal<In, Bits<8>>,
        pub q: Signal<Out, Bits<8>>,
        silent: Silent,
    }

    impl Logic for Middle {
        #[hdl_gen]
        fn update(&mut self) {
            self.silent.d.next = self.d.val();
            self.q.next = self.silent.q.val();
        }
    }

    let error = generate(&Top::default(), &Options::new("card")).unwrap_err();
    assert_eq!(&*error.block, "card.row.0.silent");
    assert_eq!(error.signal.as_deref(), Some("q"));
    assert_eq!(error.reason, Reason::NoKernel);
    assert_eq!(
        error.to_string(),
        "card.row.0.silent: signal `q`: the block has outputs or children and no kernel; is \
         #[hdl_gen] missing?"
    );
}

/// Where the statement stands that begins so many lines below this macro.
macro_rules! below {
    ($lines:literal, $column:literal) => {
        Some(format!("{}:{}:{}", file!(), line!() + $lines, $column))
    };
}

#[test]
fn a_refusal_says_where_the_statement_stands() {
    #[block]
    struct Kernel {
        pub a: Signal<In, Bits<8>>,
        pub o: Signal<Out, Bits<8>>,
    }

    let place = below!(7, 17);
    #[block]
    impl Logic for Kernel {
        fn update(&mut self) {
            self.o.next = self.a.val() + LIMIT;
            if self.a.val() == LIMIT {
                // A constant of the source that is too wide.
                self.o.next = (LIMIT + 400).into();
            }
        }
    }

    let error = generate(&Kernel::default(), &Options::new("top")).unwrap_err();
    assert_eq!(error.place.as_deref(), place.as_deref());
    assert_eq!(error.reason, too_wide("403", 8));
    let text = format!(
        "{}: top: signal `o`: constant 403",
        place.expect("it was built")
    );
    assert!(error.to_string().starts_with(&text), "{error}");
}

#[test]
fn a_latch_is_shown_where_it_is_assigned_first() {
    #[block]
    struct Kernel {
        pub a: Signal<In, Bits<8>>,
        pub x: Signal<In, Bit>,
        pub o: Signal<Out, Bits<8>>,
    }

    let place = below!(5, 17);
    #[block]
    impl Logic for Kernel {
        fn update(&mut self) {
            if self.x.val() {
                self.o.next = self.a.val();
            }
        }
    }

    let error = generate(&Kernel::default(), &Options::new("top")).unwrap_err();
    assert_eq!(
        (error.place.as_deref(), error.reason),
        (place.as_deref(), Reason::Latch)
    );
}

#[test]
fn a_block_that_is_not_driven_is_shown_by_its_kernel() {
    #[block]
    struct Kernel {
        pub a: Signal<In, Bits<8>>,
        pub o: Signal<Out, Bits<8>>,
        device: Device,
    }

    let place = below!(3, 30);
    #[block]
    impl Logic for Kernel {
        fn update(&mut self) {
            self.o.next = self.a.val();
        }
    }

    let error = generate(&Kernel::default(), &Options::new("top")).unwrap_err();
    assert_eq!(error.signal.as_deref(), Some("device.bus.d"));
    assert_eq!(
        (error.place.as_deref(), error.reason),
        (place.as_deref(), Reason::NeverAssigned)
    );
}

#[test]
fn a_signal_of_no_bits_is_refused() {
    #[derive(LogicBlock, Default)]
    struct Empty {
        pub a: Signal<In, Bits<0>>,
    }

    impl Logic for Empty {
        #[hdl_gen]
        fn update(&mut self) {}
    }

    let error = generate(&Empty::default(), &Options::new("top")).unwrap_err();
    assert_eq!(error.signal.as_deref(), Some("a"));
    assert_eq!(error.reason, Reason::ZeroWidth);
}
