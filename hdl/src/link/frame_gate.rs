//! The last block before the wire, and the first behind it: it keeps frames whole while the blocks on its card side are reset.
//!
//! ```text
//!                        quiet: no frame begins
//!   transmit ──────────────────┬──────────────────► m_axis
//!                 restart ─► held ─► end of frame
//!
//!   receive ◄──────────────────┬─────────────────── s_axis
//!                 restart ─► rest of the frame is dropped
//! ```
//!
//! A frame of the card that hasn't ended at `restart` is cut. The word on offer stays there until it is taken, as AXI4-Stream
//! demands (IHI 0051, 2.2.1), and after it comes a last word of one byte. Frames of the card are whole words, so the length alone
//! makes the receiver drop it. The words of a frame from the wire that come after `restart` are taken and dropped, so that they
//! aren't mistaken for a frame of their own.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use crate::prelude::*;
use crate::prim::axi::{StreamSink, StreamSource};

/// A word of a stream.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Word {
    data: Bits<64>,
    keep: Bits<8>,
    last: Bit,
}

/// The gate between [`Loopback`](super::Loopback) and the pins.
#[block]
pub struct FrameGate {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Reset of the card: nothing is offered and nothing taken.
    pub reset: Signal<In, Bit>,
    /// No frame may begin.
    pub quiet: Signal<In, Bit>,
    /// Pulse, with `quiet`: the blocks on the card's side of this gate are reset at the end of this cycle.
    pub restart: Signal<In, Bit>,
    /// No frame of the card has begun without having ended.
    pub idle: Signal<Out, Bit>,
    /// Frames of the card. `tuser` means nothing.
    pub transmit: StreamSink,
    /// Frames for the card.
    pub receive: StreamSource,
    /// With the last word of `receive`: the MAC found the frame bad.
    pub receive_tuser: Signal<Out, Bit>,
    /// To the wire.
    pub m_axis: StreamSource,
    /// From the wire.
    pub s_axis: StreamSink,

    /// A word of a frame of the card has been offered, and not all of the frame has been taken.
    open: Reg<Bit>,
    /// A frame was cut and hasn't ended yet; the word to be offered.
    ending: Reg<Bit>,
    held: Reg<Word>,
    /// A frame from the wire has begun and not ended.
    inside: Reg<Bit>,
    /// The words of that frame are dropped.
    drops: Reg<Bit>,

    passes: Signal<Local, Bit>,
    offered: Signal<Local, Bit>,
    ended: Signal<Local, Bit>,
    out: Signal<Local, Word>,
    last_word: Signal<Local, Word>,
    takes: Signal<Local, Bit>,
    still_inside: Signal<Local, Bit>,
}

#[block]
impl Logic for FrameGate {
    fn update(&mut self) {
        // To the wire: a frame that has begun, or one that may begin, or the end of one that was cut.
        self.passes.next = !self.ending.q.val() & (self.open.q.val() | !self.quiet.val());
        self.offered.next = self.transmit.tvalid.val() & self.passes.val();
        self.out.next = self.held.q.val();
        if !self.ending.q.val() {
            self.out.next.data = self.transmit.tdata.val();
            self.out.next.keep = self.transmit.tkeep.val();
            self.out.next.last = self.transmit.tlast.val();
        }
        self.m_axis.tdata.next = self.out.val().data;
        self.m_axis.tkeep.next = self.out.val().keep;
        self.m_axis.tlast.next = self.out.val().last;
        self.m_axis.tvalid.next = (self.offered.val() | self.ending.q.val()) & !self.reset.val();
        self.transmit.tready.next = self.m_axis.tready.val() & self.passes.val();
        self.idle.next = !self.open.q.val() & !self.ending.q.val();

        // The last word of a frame that is cut: one byte.
        self.last_word.next = Word::default();
        self.last_word.next.keep = 0x01.into();
        self.last_word.next.last = true;
        self.ended.next = self.offered.val() & self.m_axis.tready.val() & self.transmit.tlast.val();
        if self.offered.val() {
            self.open.d.next = !self.ended.val();
        }
        if self.ending.q.val() & self.m_axis.tready.val() {
            self.held.d.next = self.last_word.val();
            self.ending.d.next = !self.held.q.val().last;
        }
        if self.restart.val() & self.open.q.val() {
            self.open.d.next = false;
            self.ending.d.next = !self.ended.val();
            self.held.d.next = self.out.val();
            if self.m_axis.tready.val() | !self.offered.val() {
                self.held.d.next = self.last_word.val();
            }
        }

        // From the wire. A word that is taken in the cycle of the blocks' reset is lost, so its frame is dropped.
        self.receive.tdata.next = self.s_axis.tdata.val();
        self.receive.tkeep.next = self.s_axis.tkeep.val();
        self.receive.tlast.next = self.s_axis.tlast.val();
        self.receive_tuser.next = self.s_axis.tuser.val();
        self.receive.tvalid.next =
            self.s_axis.tvalid.val() & !self.drops.q.val() & !self.restart.val();
        self.takes.next = (self.drops.q.val() | (self.receive.tready.val() & !self.restart.val()))
            & !self.reset.val();
        self.s_axis.tready.next = self.takes.val();
        self.still_inside.next = self.inside.q.val();
        if self.s_axis.tvalid.val() & self.takes.val() {
            self.still_inside.next = !self.s_axis.tlast.val();
        }
        self.inside.d.next = self.still_inside.val();
        self.drops.d.next = (self.drops.q.val() | self.restart.val()) & self.still_inside.val();
    }
}
