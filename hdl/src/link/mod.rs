//! The link: frames out, frames in, and what a pair owes its peer for them.
//!
//! ```text
//!                ┌─────────────┐
//!   processor ──►│ FirmwareOut ├─────────┐
//!                └─────────────┘         ▼
//!                ┌──────────┐       ┌──────────┐  ┌──────────┐
//!   jobs ───────►│ Transmit ├──────►│ FrameMux ├─►│          ├──► FrameGate ──► wire
//!                └──▲───┬───┘       └──────────┘  │ Loopback │
//!   control frames  │   │numbers to carry         │          │
//!                ┌──┴───▼──────┐                  │          │
//!   updates ────►│ Acknowledge │      ┌───────────┤          │◄── FrameGate ◄── wire
//!                └─────────────┘      │           └──────────┘
//!                ┌─────────┐     ┌────▼────┐
//!   progress ◄───┤ Receive │◄────┤ Screen  │      Faults offers a failed pair
//!   arrivals ◄───┤         │     │ (+ Crc) │      to everyone who keeps it
//!                └─────────┘     └────┬────┘
//!                ┌────────────┐       │
//!   processor ◄──┤ FirmwareIn │◄──────┘
//!                └────────────┘
//! ```

mod acknowledge;
mod bench;
mod crc;
mod faults;
mod firmware_in;
mod firmware_out;
mod frame_gate;
mod frame_mux;
mod loopback;
mod receive;
mod screen;
mod transmit;

pub use acknowledge::{Acknowledge, AcknowledgeMutation};
pub use bench::LinkBench;
pub use crc::Crc;
pub use faults::{Faults, FaultsMutation, party};
pub use firmware_in::{FirmwareIn, FirmwareInMutation};
pub use firmware_out::{FirmwareOut, FirmwareOutMutation};
pub use frame_gate::{FrameGate, FrameGateMutation};
pub use frame_mux::{FrameMux, FrameMuxMutation};
pub use loopback::{Loopback, LoopbackMutation};
pub use receive::Receive;
pub use screen::{ReceiveMutation, Screen};
pub use transmit::{Transmit, TransmitMutation};

use crate::config::{ECP5, TINY};
use crate::tops::{Class, Top};

/// The tops of the tests of this room. They can be broken by an input `mutation`.
pub fn tops() -> Vec<Top> {
    vec![
        Top::of("receive_tiny", Class::Test, || Receive::mutable(&TINY)),
        Top::of("receive_ecp5", Class::Test, || Receive::mutable(&ECP5)),
        Top::of("transmit_tiny", Class::Test, || Transmit::mutable(&TINY)),
        Top::of("transmit_ecp5", Class::Test, || Transmit::mutable(&ECP5)),
        Top::of("acknowledge_tiny", Class::Test, || {
            Acknowledge::mutable(&TINY)
        }),
        Top::of("acknowledge_ecp5", Class::Test, || {
            Acknowledge::mutable(&ECP5)
        }),
        Top::of("faults_tiny", Class::Test, || Faults::mutable(&TINY)),
        Top::of("faults_ecp5", Class::Test, || Faults::mutable(&ECP5)),
        Top::of("link_bench_tiny", Class::Test, || LinkBench::new(&TINY)),
        Top::of("link_bench_ecp5", Class::Test, || LinkBench::new(&ECP5)),
        Top::of("loopback", Class::Test, Loopback::mutable),
        Top::of("firmware_out", Class::Test, FirmwareOut::mutable),
        Top::of("firmware_in", Class::Test, FirmwareIn::mutable),
        Top::of("frame_mux", Class::Test, FrameMux::mutable),
        Top::of("frame_gate", Class::Test, FrameGate::mutable),
    ]
}
