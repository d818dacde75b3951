//! The link: frames out, frames in, and what a pair owes its peer for them.
//!
//! ```text
//!              ┌──────────┐                  ┌──────────┐
//!   jobs ─────►│ Transmit ├─────────────────►│          ├──► wire
//!              └──▲───┬───┘                  │ Loopback │
//!   control frames│   │numbers to carry      │          │
//!              ┌──┴───▼──────┐               │          │
//!   updates ──►│ Acknowledge │     ┌─────────┤          │◄── wire
//!              └─────────────┘     │         └──────────┘
//!              ┌─────────┐    ┌────▼────┐
//!   progress ◄─┤ Receive │◄───┤ Screen  │      Faults offers a failed pair
//!   arrivals ◄─┤         │    │ (+ Crc) │      to everyone who keeps it
//!              └─────────┘    └─────────┘
//! ```

mod acknowledge;
mod crc;
mod faults;
mod loopback;

mod receive;
mod screen;
mod transmit;

pub use acknowledge::{Acknowledge, AcknowledgeMutation};
pub use crc::Crc;
pub use faults::{Faults, FaultsMutation, party};
pub use loopback::Loopback;
pub use receive::{Receive, ReceiveMutation};
pub use screen::Screen;
pub use transmit::{Transmit, TransmitMutation};

use crate::config::TINY;
use crate::tops::{Class, Top};

/// The tops of the tests of this room. All but the plain one can be broken by an input `mutation`.
pub fn tops() -> Vec<Top> {
    vec![
        Top::of("receive", Class::Test, || Receive::mutable(&TINY)),
        Top::of("transmit", Class::Test, || Transmit::mutable(&TINY)),
        Top::of("acknowledge", Class::Test, || Acknowledge::mutable(&TINY)),
        Top::of("faults", Class::Test, || Faults::mutable(&TINY)),
        Top::of("loopback", Class::Test, Loopback::default),
    ]
}
