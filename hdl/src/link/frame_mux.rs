//! Frames of the firmware and frames of the datapath onto one stream, whole and in turn.
//!
//! ```text
//!   firmware ──►┐
//!               ├── one frame of either ──► m_axis, to Loopback
//!   framer ────►┘
//! ```
//!
//! Between frames the firmware goes first, unless the frame before was the firmware's and the datapath offers one: so neither
//! source waits for more than one frame of the other. Nothing is stored, and a frame that is offered alone goes out in the
//! cycle in which it is offered.

use crate::prelude::*;
use crate::prim::axi::{StreamSink, StreamSource};

/// The source that has the stream.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Owner {
    /// None: between frames.
    Nobody,
    /// The firmware.
    Firmware,
    /// The datapath.
    Framer,
}

/// The multiplexer.
#[block]
pub struct FrameMux {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// From `link::FirmwareOut`.
    pub firmware: StreamSink,
    /// From `link::Framer`.
    pub framer: StreamSink,
    /// To `link::Loopback`.
    pub m_axis: StreamSource,

    owner: Reg<Owner>,
    /// The firmware had the stream last.
    firmware_last: Reg<Bit>,
    owner_now: Signal<Local, Owner>,
}

#[block]
impl Logic for FrameMux {
    fn update(&mut self) {
        self.owner_now.next = self.owner.q.val();
        if self.owner.q.val() == Owner::Nobody {
            if self.firmware.tvalid.val()
                & (!self.framer.tvalid.val() | !self.firmware_last.q.val())
            {
                self.owner_now.next = Owner::Firmware;
            } else if self.framer.tvalid.val() {
                self.owner_now.next = Owner::Framer;
            }
        }
        // A source whose word was offered keeps the stream, whether or not the word was taken.
        self.owner.d.next = self.owner_now.val();

        self.m_axis.tvalid.next =
            self.framer.tvalid.val() & (self.owner_now.val() == Owner::Framer);
        self.m_axis.tdata.next = self.framer.tdata.val();
        self.m_axis.tkeep.next = self.framer.tkeep.val();
        self.m_axis.tlast.next = self.framer.tlast.val();
        self.framer.tready.next =
            self.m_axis.tready.val() & (self.owner_now.val() == Owner::Framer);
        self.firmware.tready.next =
            self.m_axis.tready.val() & (self.owner_now.val() == Owner::Firmware);
        if self.owner_now.val() == Owner::Firmware {
            self.m_axis.tvalid.next = self.firmware.tvalid.val();
            self.m_axis.tdata.next = self.firmware.tdata.val();
            self.m_axis.tkeep.next = self.firmware.tkeep.val();
            self.m_axis.tlast.next = self.firmware.tlast.val();
        }
        if self.m_axis.tvalid.val() & self.m_axis.tready.val() & self.m_axis.tlast.val() {
            self.owner.d.next = Owner::Nobody;
            self.firmware_last.d.next = self.owner_now.val() == Owner::Firmware;
        }
    }
}
