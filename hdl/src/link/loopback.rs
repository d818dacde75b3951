//! Frames of the card to itself turn round before the pins.
//!
//! Only whole frames are switched. The receiver takes a frame from the wire and one of the card in
//! turn, so neither waits for more than one frame of the other. Nothing is stored: a frame to the card itself
//! waits in its source until the receiver has finished a frame from the wire.
//!
//! ```text
//!                  destination MAC
//!                  is the card's?
//!   card ──────────┬───── no ─────────► m_axis, the wire
//!                  └─ yes ─┐
//!                          ▼
//!   receive ◄──── one frame of either in turn
//!                          ▲
//!                          └─────────── s_axis, the wire
//! ```

use crate::prelude::*;
use crate::prim::axi::{StreamSink, StreamSource};
use crate::types::{CardSetup, ControlRequest};
use abi::control::Operation;

/// The source that has the receiver.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Owner {
    /// None: between frames.
    Nobody,
    /// The wire.
    Wire,
    /// The card itself.
    Card,
}

/// Where the frame goes that the card is sending.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Route {
    /// To be decided with the first word.
    Open,
    /// Out.
    Wire,
    /// Round.
    Card,
}

/// The switch between the card's frames, its receiver and the pins.
#[block]
pub struct Loopback {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// From `link::FrameMux`: frames of the card, its firmware's included.
    pub card: StreamSink,
    /// To `link::Receive`.
    pub receive: StreamSource,
    /// With the last word to `link::Receive`: the MAC found the frame bad.
    pub receive_tuser: Signal<Out, Bit>,
    /// To the wire.
    pub m_axis: StreamSource,
    /// From the wire.
    pub s_axis: StreamSink,
    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,

    mac: Reg<Bits<48>>,
    known: Reg<Bit>,
    owner: Reg<Owner>,
    route: Reg<Route>,
    /// The card had the receiver last.
    card_last: Reg<Bit>,

    setup: Signal<Local, CardSetup>,
    round: Signal<Local, Bit>,
    owner_now: Signal<Local, Owner>,
    from_card: Signal<Local, Bit>,
    from_wire: Signal<Local, Bit>,
    #[is(Check::new("tvalid_stays_within_a_frame"))]
    whole: Check,
    begun: Reg<Bit>,
}

impl Loopback {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = &[Operation::CardSet];
}

#[block]
impl Logic for Loopback {
    fn update(&mut self) {
        self.setup.next = bit_cast::<64, 320>(self.control.data.val().data).into();
        self.control.ready.next = true;
        if self.control.valid.val() {
            self.mac.d.next = self.setup.val().mac;
            self.known.d.next = true;
        }

        // Where the card's frame goes is decided by its first word.
        self.round.next = (self.route.q.val() == Route::Card)
            | ((self.route.q.val() == Route::Open)
                & self.known.q.val()
                & (bit_cast::<48, 64>(self.card.tdata.val()) == self.mac.q.val()));

        // The source that has the receiver.
        self.owner_now.next = self.owner.q.val();
        if self.owner.q.val() == Owner::Nobody {
            if self.card.tvalid.val()
                & self.round.val()
                & (!self.s_axis.tvalid.val() | !self.card_last.q.val())
            {
                self.owner_now.next = Owner::Card;
            } else if self.s_axis.tvalid.val() {
                self.owner_now.next = Owner::Wire;
            }
        }
        self.from_card.next = self.owner_now.val() == Owner::Card;
        self.from_wire.next = self.owner_now.val() == Owner::Wire;
        self.owner.d.next = self.owner_now.val();

        self.receive.tdata.next = self.s_axis.tdata.val();
        self.receive.tkeep.next = self.s_axis.tkeep.val();
        self.receive.tlast.next = self.s_axis.tlast.val();
        self.receive_tuser.next = self.s_axis.tuser.val();
        self.receive.tvalid.next = self.s_axis.tvalid.val() & self.from_wire.val();
        if self.from_card.val() {
            self.receive.tdata.next = self.card.tdata.val();
            self.receive.tkeep.next = self.card.tkeep.val();
            self.receive.tlast.next = self.card.tlast.val();
            self.receive_tuser.next = self.card.tuser.val();
            self.receive.tvalid.next = self.card.tvalid.val();
        }
        self.s_axis.tready.next = self.from_wire.val() & self.receive.tready.val();
        if self.receive.tvalid.val() & self.receive.tready.val() & self.receive.tlast.val() {
            self.owner.d.next = Owner::Nobody;
            self.card_last.d.next = self.from_card.val();
        }

        self.m_axis.tdata.next = self.card.tdata.val();
        self.m_axis.tkeep.next = self.card.tkeep.val();
        self.m_axis.tlast.next = self.card.tlast.val();
        self.m_axis.tvalid.next = self.card.tvalid.val() & !self.round.val();
        self.card.tready.next = self.m_axis.tready.val();
        if self.round.val() {
            self.card.tready.next = self.from_card.val() & self.receive.tready.val();
        }
        if self.card.tvalid.val() & self.card.tready.val() {
            self.route.d.next = Route::Wire;
            if self.round.val() {
                self.route.d.next = Route::Card;
            }
            if self.card.tlast.val() {
                self.route.d.next = Route::Open;
            }
        }

        if self.m_axis.tvalid.val() & self.m_axis.tready.val() {
            self.begun.d.next = !self.card.tlast.val();
        }
        self.whole.ok.next = !self.begun.q.val() | self.m_axis.tvalid.val();
    }
}
