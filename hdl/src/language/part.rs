//! Clock, reset and hold of what is in a block.
//!
//! ```text
//!   parent  ──►  Within::begin  ──►  Part::clocked of each field: clock, reset, and d = q of a register
//! ```
//!
//! `#[block]` on a struct implements both: what the block gets from its parent, and what it gives to what is
//! in it. Each has three forms: for simulation, for the printer, and for rust-hdl's list of what is driven.

use super::tree::Tree;
use crate::prelude::*;
use crate::prim::axi::{AxiLite, AxiManager, AxiRead, AxiWrite, StreamSink, StreamSource};

/// Something in a block.
pub trait Part {
    /// Connects its clock and reset, and lets it hold what it has.
    fn clocked(&mut self, clock: Clock, reset: Bit) {
        let _ = (clock, reset);
    }

    /// The same for the printer. `path` is its name in the block.
    fn clocked_tree(&self, path: &str, out: &mut Tree) {
        let _ = (path, out);
    }

    /// Says that what this connects is driven.
    fn clocked_connect(&mut self) {}
}

/// A block with something in it.
pub trait Within {
    /// [`Part::clocked`] of all that is in it.
    fn begin(&mut self) {}

    /// [`Part::clocked_tree`] of all that is in it.
    fn begin_tree(&self, out: &mut Tree) {
        let _ = out;
    }

    /// [`Part::clocked_connect`] of all that is in it.
    fn begin_connect(&mut self) {}
}

impl<T: Synth> Part for Reg<T> {
    fn clocked(&mut self, clock: Clock, reset: Bit) {
        self.clock.next = clock;
        self.reset.next = reset;
        self.d.next = self.q.val();
    }

    fn clocked_tree(&self, path: &str, out: &mut Tree) {
        out.connect(path, "clock");
        out.connect(path, "reset");
        out.assign(&format!("{path}$d$next"), &format!("{path}$q"));
    }

    fn clocked_connect(&mut self) {
        self.clock.connect();
        self.reset.connect();
        self.d.connect();
    }
}

macro_rules! claims {
    ($($claim:ty),*) => {$(
        impl Part for $claim {
            fn clocked(&mut self, clock: Clock, reset: Bit) {
                self.clock.next = clock;
                self.reset.next = reset;
            }

            fn clocked_tree(&self, path: &str, out: &mut Tree) {
                out.connect(path, "clock");
                out.connect(path, "reset");
            }

            fn clocked_connect(&mut self) {
                self.clock.connect();
                self.reset.connect();
            }
        }
    )*};
}
claims!(Check, crate::prim::Duty);

macro_rules! bundles {
    ($($bundle:ty),*) => {$(impl Part for $bundle {})*};
}
bundles!(
    AxiLite,
    AxiManager,
    AxiRead,
    AxiWrite,
    StreamSink,
    StreamSource
);

macro_rules! lists {
    ($([$($generics:tt)*] $list:ty),*) => {$(
        impl<P: Part, $($generics)*> Part for $list {
            fn clocked(&mut self, clock: Clock, reset: Bit) {
                self.iter_mut().for_each(|part| part.clocked(clock, reset));
            }

            fn clocked_tree(&self, path: &str, out: &mut Tree) {
                for (i, part) in self.iter().enumerate() {
                    part.clocked_tree(&format!("{path}${i}"), out);
                }
            }

            fn clocked_connect(&mut self) {
                self.iter_mut().for_each(Part::clocked_connect);
            }
        }
    )*};
}
lists!([] Vec<P>, [const N: usize] [P; N]);
