//! What makes a block a kernel of the proof: its inputs can be driven from a [`Source`], its output
//! read as bits, and it can be printed by both printers.
//!
//! ```text
//!   Source ──► inputs ──►┌────────┐
//!   clock ──────────────►│ kernel ├──► o
//!                        └────────┘
//! ```

use crate::source::Source;
use hdl::prelude::{Block, generate_verilog_unchecked, simulate};
use hdl::verilog::{Design, Options, PrintError, generate};
use num_bigint::BigUint;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Rounds in which a kernel has to settle.
const ROUNDS: usize = 100;

/// A block with inputs, an output `o`, and possibly a clock.
pub trait Kernel: Block + Default {
    /// Name of the Rust type.
    const NAME: &'static str;
    /// Whether it has ports `clock` and `reset`.
    const CLOCKED: bool;
    /// Whether its signed inputs may be the minimum of their type.
    const MINIMUM: bool;

    /// Names and widths of the inputs, the clock excepted.
    fn inputs() -> Vec<(&'static str, usize)>;
    /// Width of `o`.
    fn output_width() -> usize;
    /// Gives the inputs their next values and returns these, the first input lowest.
    fn drive(&mut self, source: &mut Source) -> BigUint;
    /// Sets the clock, if there is one.
    fn set_clock(&mut self, level: bool);
    /// The value of `o`.
    fn output(&self) -> BigUint;
}

/// Which inputs a kernel is tried with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inputs {
    /// This many random ones.
    Random(u64),
    /// All of so many bits.
    All(u32),
}

/// What goes in and what rust-hdl's simulation says comes out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vector {
    /// Inputs, the first lowest.
    pub input: BigUint,
    /// The output, after the rising edge if there is a clock.
    pub output: BigUint,
}

/// A kernel of the proof, apart from its type.
pub struct Case {
    /// Name of the Rust type, and of the printed module.
    pub name: &'static str,
    /// Names and widths of the inputs, the clock excepted.
    pub inputs: Vec<(&'static str, usize)>,
    /// Width of the output.
    pub output_width: usize,
    /// Whether it has ports `clock` and `reset`.
    pub clocked: bool,
    /// Which inputs it is tried with.
    pub tried: Inputs,
    /// Prints it with the printer under proof.
    pub print: fn(&Options) -> Result<Design, PrintError>,
    /// Prints it with rust-hdl's own printer, as module `top`; `None` if that panics.
    pub stock: fn() -> Option<String>,
    simulate: fn(Inputs) -> Vec<Vector>,
}

impl Case {
    /// The case of a kernel, with a thousand random inputs.
    pub fn of<K: Kernel>() -> Self {
        Case {
            name: K::NAME,
            inputs: K::inputs(),
            output_width: K::output_width(),
            clocked: K::CLOCKED,
            tried: Inputs::Random(1000),
            print: |options| generate(&K::default(), options),
            stock: || {
                let print = || generate_verilog_unchecked(&K::default());
                catch_unwind(AssertUnwindSafe(print)).ok()
            },
            simulate: run::<K>,
        }
    }

    /// The same with other inputs.
    pub fn tried(self, tried: Inputs) -> Self {
        Case { tried, ..self }
    }

    /// Runs the kernel in rust-hdl's simulation.
    pub fn simulate(&self) -> Vec<Vector> {
        (self.simulate)(self.tried)
    }
}

fn run<K: Kernel>(inputs: Inputs) -> Vec<Vector> {
    // Seeded by the name, so that a kernel's inputs stay when others come.
    let seed = K::NAME
        .bytes()
        .fold(0, |h: u64, b| h.wrapping_mul(31).wrapping_add(b.into()));
    let mut source = Source::random(seed, K::MINIMUM);
    let mut kernel = K::default();
    let mut vectors = vec![];
    let count = match inputs {
        Inputs::Random(count) => count,
        Inputs::All(bits) => 1 << bits,
    };
    for i in 0..count {
        if matches!(inputs, Inputs::All(_)) {
            source.count_from(i);
        }
        let input = kernel.drive(&mut source);
        for level in [false, true] {
            kernel.set_clock(level);
            let settled = simulate(&mut kernel, ROUNDS);
            assert!(settled, "{} does not settle on input {i}", K::NAME);
        }
        vectors.push(Vector {
            input,
            output: kernel.output(),
        });
    }
    vectors
}

/// Declares a kernel: documentation, name, `full_range` or `no_minimum` of its signed inputs,
/// `{ inputs }`, type of `o`, `{ what is inside }`, and the kernel itself.
#[macro_export]
macro_rules! kernel {
    (
        $(#[$doc:meta])*
        $name:ident, $range:ident, { $($input:ident: $ty:ty),* $(,)? }, $out:ty,
        { $($inner:ident: $inner_ty:ty),* $(,)? }, $($update:tt)*
    ) => {
        $(#[$doc])*
        #[derive(LogicBlock, Default)]
        pub struct $name {
            $(
                /// An input.
                pub $input: Signal<In, $ty>,
            )*
            /// The output.
            pub o: Signal<Out, $out>,
            $($inner: $inner_ty,)*
        }

        #[module]
        impl Logic for $name {
            $($update)*
        }

        impl $crate::kernel::Kernel for $name {
            const NAME: &'static str = stringify!($name);
            const CLOCKED: bool = false;
            const MINIMUM: bool = $crate::kernel!(@minimum $range);

            fn inputs() -> Vec<(&'static str, usize)> {
                vec![$((stringify!($input), <$ty as Synth>::BITS)),*]
            }

            fn output_width() -> usize {
                <$out as Synth>::BITS
            }

            fn drive(&mut self, source: &mut $crate::source::Source) -> num_bigint::BigUint {
                let mut all = num_bigint::BigUint::ZERO;
                let mut at = 0;
                $(
                    let value = <$ty as $crate::source::Value>::next(source);
                    all |= $crate::source::bits_of(value) << at;
                    at += <$ty as Synth>::BITS;
                    self.$input.next = value;
                )*
                debug_assert!(all.bits() <= at as u64);
                all
            }

            fn set_clock(&mut self, _: bool) {}

            fn output(&self) -> num_bigint::BigUint {
                $crate::source::bits_of(self.o.val())
            }
        }
    };
    (@minimum full_range) => { true };
    (@minimum no_minimum) => { false };
}

/// The same with ports `clock` and `reset`, which kernels use without declaring them.
#[macro_export]
macro_rules! clocked_kernel {
    (
        $(#[$doc:meta])*
        $name:ident, $range:ident, { $($input:ident: $ty:ty),* $(,)? }, $out:ty,
        { $($inner:ident: $inner_ty:ty),* $(,)? }, $($update:tt)*
    ) => {
        $(#[$doc])*
        #[derive(LogicBlock, Default)]
        pub struct $name {
            /// Rising edge counts.
            pub clock: Signal<In, Clock>,
            /// Synchronous.
            pub reset: Signal<In, Bit>,
            $(
                /// An input.
                pub $input: Signal<In, $ty>,
            )*
            /// The output.
            pub o: Signal<Out, $out>,
            $($inner: $inner_ty,)*
        }

        #[module]
        impl Logic for $name {
            $($update)*
        }

        impl $crate::kernel::Kernel for $name {
            const NAME: &'static str = stringify!($name);
            const CLOCKED: bool = true;
            const MINIMUM: bool = $crate::kernel!(@minimum $range);

            fn inputs() -> Vec<(&'static str, usize)> {
                vec![("reset", 1), $((stringify!($input), <$ty as Synth>::BITS)),*]
            }

            fn output_width() -> usize {
                <$out as Synth>::BITS
            }

            fn drive(&mut self, source: &mut $crate::source::Source) -> num_bigint::BigUint {
                self.reset.next = source.once_in(8);
                let mut all = $crate::source::bits_of(self.reset.next);
                let mut at = 1;
                $(
                    let value = <$ty as $crate::source::Value>::next(source);
                    all |= $crate::source::bits_of(value) << at;
                    at += <$ty as Synth>::BITS;
                    self.$input.next = value;
                )*
                debug_assert!(all.bits() <= at as u64);
                all
            }

            fn set_clock(&mut self, level: bool) {
                self.clock.next = level.into();
            }

            fn output(&self) -> num_bigint::BigUint {
                $crate::source::bits_of(self.o.val())
            }
        }
    };
}
