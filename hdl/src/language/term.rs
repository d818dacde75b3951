//! Constants of the source in a kernel: `Status::Truncated`, `limits::EAGER_MAX`, `Row::default()`.
//!
//! The attribute puts `(&Term(x)).term()` in place of a constant `x`. It can't know the type of `x`, so
//! Rust's search for the method decides: [`Coded`] takes a number or a code, which becomes a `u64`,
//! [`State`] everything that signals are made of, which stays what it is. The printer refuses a number
//! that has more bits than what it meets.

use super::tree::Value;
use abi::{completion, control, event, mailbox, monitor, request, status, wire};
use rust_hdl::prelude::{Bits, Constant, Synth, TypeKind};

/// A constant that is a number in a kernel.
pub trait Code: Copy {
    /// The number.
    fn number(self) -> u64;
    /// Bits with which it is printed where the source gives it a name: those of its Rust type. What it
    /// meets may have others.
    fn width(self) -> usize;
}

macro_rules! integers {
    ($($type:ty = $width:literal)*) => {$(
        impl Code for $type {
            fn number(self) -> u64 {
                u64::try_from(self).expect("no constant of a kernel is negative")
            }

            fn width(self) -> usize {
                let bits = u64::BITS - self.number().leading_zeros();
                $width.max(bits as usize)
            }
        }
    )*};
}
// A `usize` has as many bits as this machine's, and sizes of a circuit fit 32.
integers!(u8 = 8 u16 = 16 u32 = 32 u64 = 64 usize = 32 i32 = 32);

macro_rules! codes {
    ($($type:ty),*) => {$(
        impl Code for $type {
            fn number(self) -> u64 {
                self.code().into()
            }

            fn width(self) -> usize {
                8 * size_of_val(&self.code())
            }
        }
    )*};
}
codes!(
    completion::CompletionKind,
    control::Counter,
    control::Operation,
    control::PairCounter,
    control::RefusalReason,
    event::Cause,
    mailbox::Command,
    mailbox::PairState,
    monitor::MatchOperation,
    request::Opcode,
    status::MailboxStatus,
    status::Status,
    wire::FrameType,
    wire::ManagementKind
);

/// A constant, on its way into a kernel.
pub struct Term<T>(pub T);

/// Terms that are numbers. The first that Rust finds.
pub trait Coded {
    /// What Rust computes with.
    fn term(&self) -> u64;
    /// What is printed.
    fn value(&self) -> Value;
}

impl<T: Code> Coded for Term<T> {
    fn term(&self) -> u64 {
        self.0.number()
    }

    fn value(&self) -> Value {
        Value::Constant {
            value: self.0.number(),
            width: self.0.width(),
        }
    }
}

/// Terms that signals are made of. Rust looks here if there is no number, because it has to borrow once more.
pub trait State<T> {
    /// What Rust computes with.
    fn term(&self) -> T;
    /// What is printed.
    fn value(&self) -> Value;
}

impl<T: Synth> State<T> for &Term<T> {
    fn term(&self) -> T {
        self.0
    }

    fn value(&self) -> Value {
        match T::descriptor().kind {
            TypeKind::Enum(_) => Value::State(self.0.verilog()),
            _ => Value::Bits(self.0.verilog()),
        }
    }
}

/// A number that is known when the block is built, as it enters the kernel.
pub fn constant<const N: usize>(value: impl Into<u64>) -> Constant<Bits<N>> {
    Constant::new(value.into().into())
}
