//! The link: frames out, frames in, and the acknowledgements and credits of each pair.
//!
//! ```text
//!                ┌─────────────┐
//!   processor ──►│ FirmwareOut ├─────────┐
//!                └─────────────┘         ▼
//!          ┌────────┐  ┌────────┐   ┌──────────┐  ┌──────────┐
//!   jobs ─►│ Gather ├─►│ Framer ├──►│ FrameMux ├─►│          ├──► FrameGate ──► wire
//!          └────────┘  └▲───┬───┘   └──────────┘  │ Loopback │
//!   control frames      │   │numbers to carry     │          │
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
pub mod breaks;
mod crc;
mod faults;
mod firmware_in;
mod firmware_out;
mod frame_gate;
mod frame_mux;
mod framer;
mod gather;
mod header;
mod loopback;
mod receive;
mod responder;
mod screen;

pub use acknowledge::Acknowledge;
pub use bench::LinkBench;
pub use crc::Crc;
pub use faults::{Faults, party};
pub use firmware_in::FirmwareIn;
pub use firmware_out::FirmwareOut;
pub use frame_gate::FrameGate;
pub use frame_mux::FrameMux;
pub use framer::Framer;
pub use gather::{Gather, WORDS as PAYLOAD_WORDS};
pub use loopback::Loopback;
pub use receive::Receive;
pub use responder::Responder;
pub use screen::Screen;

use crate::config::{ECP5, TINY};
use crate::tops::{Class, Top};

/// The tops of the tests of this room.
pub fn tops() -> Vec<Top> {
    vec![
        Top::of("receive_tiny", Class::Test, || Receive::new(&TINY)),
        Top::of("receive_ecp5", Class::Test, || Receive::new(&ECP5)),
        Top::of("gather", Class::Test, Gather::default),
        Top::of("responder_tiny", Class::Test, || Responder::new(&TINY)),
        Top::of("responder_ecp5", Class::Test, || Responder::new(&ECP5)),
        Top::of("framer_tiny", Class::Test, || Framer::new(&TINY)),
        Top::of("framer_ecp5", Class::Test, || Framer::new(&ECP5)),
        Top::of("acknowledge_tiny", Class::Test, || Acknowledge::new(&TINY)),
        Top::of("acknowledge_ecp5", Class::Test, || Acknowledge::new(&ECP5)),
        Top::of("faults_tiny", Class::Test, || Faults::new(&TINY)),
        Top::of("faults_ecp5", Class::Test, || Faults::new(&ECP5)),
        Top::of("link_bench_tiny", Class::Test, || LinkBench::new(&TINY)),
        Top::of("link_bench_ecp5", Class::Test, || LinkBench::new(&ECP5)),
        Top::of("loopback", Class::Test, Loopback::default),
        Top::of("firmware_out", Class::Test, FirmwareOut::default),
        Top::of("firmware_in", Class::Test, FirmwareIn::default),
        Top::of("frame_mux", Class::Test, FrameMux::default),
        Top::of("frame_gate", Class::Test, FrameGate::default),
        Top::broken("receive_tiny_broken", breaks::receive, || {
            Receive::new(&TINY)
        }),
        Top::mutants("receive_tiny_mutants", || Receive::new(&TINY)),
        Top::broken("gather_broken", breaks::gather, Gather::default),
        Top::mutants("gather_mutants", Gather::default),
        Top::broken("responder_tiny_broken", breaks::responder, || {
            Responder::new(&TINY)
        }),
        Top::mutants("responder_tiny_mutants", || Responder::new(&TINY)),
        Top::broken("framer_tiny_broken", breaks::framer, || Framer::new(&TINY)),
        Top::mutants("framer_tiny_mutants", || Framer::new(&TINY)),
        Top::broken("acknowledge_tiny_broken", breaks::acknowledge, || {
            Acknowledge::new(&TINY)
        }),
        Top::mutants("acknowledge_tiny_mutants", || Acknowledge::new(&TINY)),
        Top::broken("faults_tiny_broken", breaks::faults, || Faults::new(&TINY)),
        Top::broken("link_bench_tiny_broken", breaks::any_link_bench, || {
            LinkBench::new(&TINY)
        }),
        Top::broken("loopback_broken", breaks::loopback, Loopback::default),
        Top::broken(
            "firmware_out_broken",
            breaks::firmware_out,
            FirmwareOut::default,
        ),
        Top::broken(
            "firmware_in_broken",
            breaks::firmware_in,
            FirmwareIn::default,
        ),
        Top::broken("frame_mux_broken", breaks::frame_mux, FrameMux::default),
        Top::broken("frame_gate_broken", breaks::frame_gate, FrameGate::default),
        Top::mutants("faults_tiny_mutants", || Faults::new(&TINY)),
        Top::mutants("loopback_mutants", Loopback::default),
        Top::mutants("firmware_out_mutants", FirmwareOut::default),
        Top::mutants("firmware_in_mutants", FirmwareIn::default),
        Top::mutants("frame_mux_mutants", FrameMux::default),
        Top::mutants("frame_gate_mutants", FrameGate::default),
    ]
}
