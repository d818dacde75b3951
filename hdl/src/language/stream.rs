//! A stream or a pulse as one field.
//!
//! ```text
//!   Stream<Out, T>  valid ──►          Pulse<Out, T>  valid ──►
//!                   data  ──►                         data  ──►
//!                   ready ◄──
//! ```
//!
//! A word of a stream passes in a cycle with both `valid` and `ready`, and stays as it is until then; a pulse
//! passes in every cycle with `valid`. The direction is that of the data, seen from the block that has the
//! port. A field `frame` is printed as the ports `frame_valid`, `frame_ready` and `frame`; fields `input` and
//! `output`, whose names Verilog keeps for itself, as `in_valid`, `in_ready`, `in_data` and so on.

use crate::verilog;
use rust_hdl::prelude::*;

/// A direction of data, with that of `ready`.
pub trait Way: Direction {
    /// The other one.
    type Back: Direction;
}

impl Way for In {
    type Back = Out;
}

impl Way for Out {
    type Back = In;
}

/// Words of type `T`, each taken when both sides agree.
pub struct Stream<D: Way, T: Synth> {
    /// A word is offered.
    pub valid: Signal<D, Bit>,
    /// The word is taken.
    pub ready: Signal<D::Back, Bit>,
    /// The word.
    pub data: Signal<D, T>,
}

/// Words of type `T`, each for one cycle.
pub struct Pulse<D: Way, T: Synth> {
    /// A word passes in this cycle.
    pub valid: Signal<D, Bit>,
    /// The word.
    pub data: Signal<D, T>,
}

/// `valid`, data and `ready` of a join.
pub type Passing<T> = (Bit, T, Bit);

impl<D: Way, T: Synth> Stream<D, T> {
    /// Gets what comes through a join.
    pub fn take(&mut self, (valid, data, _): Passing<T>) {
        self.valid.next = valid;
        self.data.next = data;
    }

    /// Hears whether it was taken.
    pub fn answer(&mut self, (_, _, ready): Passing<T>) {
        self.ready.next = ready;
    }

    /// Says that what [`Self::take`] sets is driven.
    pub fn connect_sink(&mut self) {
        self.valid.connect();
        self.data.connect();
    }

    /// Says that what [`Self::answer`] sets is driven.
    pub fn connect_source(&mut self) {
        self.ready.connect();
    }
}

impl<D: Way, T: Synth> Pulse<D, T> {
    /// Gets what comes through a join.
    pub fn take(&mut self, (valid, data, _): Passing<T>) {
        self.valid.next = valid;
        self.data.next = data;
    }

    /// Nobody answers.
    pub fn answer(&mut self, _: Passing<T>) {}

    /// Says that what [`Self::take`] sets is driven.
    pub fn connect_sink(&mut self) {
        self.valid.connect();
        self.data.connect();
    }

    /// Nobody answers.
    pub fn connect_source(&mut self) {}
}

macro_rules! bundle {
    ($bundle:ident { $($field:ident)* }) => {
        impl<D: Way, T: Synth> Default for $bundle<D, T> {
            fn default() -> Self {
                $bundle { $($field: Signal::default(),)* }
            }
        }

        impl<D: Way, T: Synth> Logic for $bundle<D, T> {
            fn update(&mut self) {}

            fn timing(&self) -> Vec<TimingInfo> {
                verilog::stream()
            }
        }

        impl<D: Way, T: Synth> Block for $bundle<D, T> {
            fn connect_all(&mut self) {}

            fn update_all(&mut self) {
                $(self.$field.update_all();)*
            }

            fn has_changed(&self) -> bool {
                false $(|| self.$field.has_changed())*
            }

            fn accept(&self, name: &str, probe: &mut dyn Probe) {
                probe.visit_start_namespace(name, self);
                $(self.$field.accept(stringify!($field), probe);)*
                probe.visit_end_namespace(name, self);
            }
        }
    };
}
bundle!(Stream { valid ready data });
bundle!(Pulse { valid data });

/// What can be joined to a `To`, which gets the data.
pub trait Joins<To> {
    /// The words.
    type Word: Synth;
    /// What goes through in this cycle.
    fn passing(&self, to: &To) -> Passing<Self::Word>;
    /// The same in the printed text.
    fn links(from: &str, to: &str) -> Vec<ast::VerilogLink>;
}

fn details(signal: &str, from: &str, to: &str) -> ast::VerilogLinkDetails {
    ast::VerilogLinkDetails {
        my_name: signal.to_string(),
        owner_name: from.to_string(),
        other_name: to.to_string(),
    }
}

fn forward(from: &str, to: &str) -> Vec<ast::VerilogLink> {
    let signals = ["valid", "data"];
    signals
        .map(|signal| ast::VerilogLink::Forward(details(signal, from, to)))
        .into()
}

// From a child to a child, from a port to a child, from a child to a port.
macro_rules! joins {
    ($($from:ty => $to:ty),*) => {$(
        impl<T: Synth> Joins<Stream<$to, T>> for Stream<$from, T> {
            type Word = T;

            fn passing(&self, to: &Stream<$to, T>) -> Passing<T> {
                (self.valid.val(), self.data.val(), to.ready.val())
            }

            fn links(from: &str, to: &str) -> Vec<ast::VerilogLink> {
                let mut links = forward(from, to);
                links.push(ast::VerilogLink::Backward(details("ready", from, to)));
                links
            }
        }

        impl<T: Synth> Joins<Pulse<$to, T>> for Pulse<$from, T> {
            type Word = T;

            fn passing(&self, _: &Pulse<$to, T>) -> Passing<T> {
                (self.valid.val(), self.data.val(), true)
            }

            fn links(from: &str, to: &str) -> Vec<ast::VerilogLink> {
                forward(from, to)
            }
        }
    )*};
}
joins!(Out => In, In => In, Out => Out);

/// [`Joins::links`] of two fields of the block `B`, whose types `fields` says; it isn't called. `N` is how
/// many loops are around.
pub fn joined<B, From: Joins<To>, To, const N: usize>(
    fields: impl for<'a> Fn(&'a B, [usize; N]) -> (&'a From, &'a To),
    from: &str,
    to: &str,
) -> Vec<ast::VerilogLink> {
    let _ = fields;
    From::links(from, to)
}
