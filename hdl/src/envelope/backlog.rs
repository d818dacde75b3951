//! The receives that found their list full, and what the host keeps back behind them.
//!
//! ```text
//!   hold ────────────────►┌─────────┐  stalled, kept, waits, news, room    a bit an endpoint each
//!   resumes, nothing_kept►│ Backlog ├──► stalled, waits, has_news, waiting    of the endpoint that is asked about
//!   news, gone ──────────►│         ├──► kept                                 of another
//!   ends, forget ────────►└─────────┘──► wake    whose receive has to hear that it may try again
//! ```
//!
//! The receive that finds its list full *waits*, by its handle, and its endpoint is *stalled*. It is *woken*, and then
//! posted again by its host, when that may change something: when a message of the endpoint has come that found no
//! receive or a pair of it has failed (*news*), or when 16 posted receives have gone (*room*). A stalled endpoint's
//! receives aren't posted, for they would overtake; and once there is news they don't look for a message either, until
//! the next receive waits. The host says that it posts again what it keeps (`resumes`) and that it keeps nothing
//! (`nothing_kept`).

use crate::prelude::*;
use crate::prim::Ram;
use crate::types::Had;
use abi::limits::MAX_ENDPOINTS;

const _: () = assert!(MAX_ENDPOINTS <= 16, "a bit an endpoint");

/// A receive that waits for room.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Held {
    /// Its endpoint.
    pub endpoint: Bits<8>,
    /// Its handle.
    pub request: Bits<32>,
    /// It takes messages of any source.
    pub any_source: Bit,
    /// Otherwise: of this pair.
    pub pair: Bits<16>,
    /// What it has had.
    pub had: Had,
}

/// What the card knows of the receives that the hosts keep back.
#[block]
pub(super) struct Backlog {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Nothing waits.
    pub reset: Signal<In, Bit>,
    /// A receive has found its list full.
    pub hold: Pulse<In, Held>,
    /// Something has come to this endpoint that the receives in front have to look at first.
    pub news: Pulse<In, Bits<8>>,
    /// Pulse: a posted receive has gone.
    pub gone: Signal<In, Bit>,
    /// The endpoint that is asked about, and that the four pulses that follow are of.
    pub endpoint: Signal<In, Bits<8>>,
    /// Pulse: the host posts again what it keeps.
    pub resumes: Signal<In, Bit>,
    /// Pulse: the host keeps nothing.
    pub nothing_kept: Signal<In, Bit>,
    /// Pulse: the receive that waited has ended, or has been told to try again.
    pub ends: Signal<In, Bit>,
    /// Pulse: the endpoint is closed.
    pub forget: Signal<In, Bit>,
    /// It is stalled.
    pub stalled: Signal<Out, Bit>,
    /// A receive of it waits.
    pub waits: Signal<Out, Bit>,
    /// There is news for it.
    pub has_news: Signal<Out, Bit>,
    /// The endpoint that is asked about in the next cycle.
    pub endpoint_next: Signal<In, Bits<8>>,
    /// The receive that waits, or was the last to: of the endpoint that was `endpoint_next` in the cycle before.
    pub waiting: Signal<Out, Held>,
    /// Another endpoint that is asked about.
    pub other: Signal<In, Bits<8>>,
    /// Its host may keep receives back.
    pub kept: Signal<Out, Bit>,
    /// A receive has to be woken: `wake` says which, a cycle later.
    pub wakes_soon: Signal<Out, Bit>,
    /// The receive of this endpoint has to be woken, if it still waits.
    pub wake: Pulse<Out, Bits<8>>,
    #[is(Ram::new(MAX_ENDPOINTS))]
    receives: Ram<Held>,
    stalled_bits: Reg<Bits<16>>,
    kept_bits: Reg<Bits<16>>,
    waits_bits: Reg<Bits<16>>,
    news_bits: Reg<Bits<16>>,
    room_bits: Reg<Bits<16>>,
    /// Posted receives gone, modulo 16.
    gone_before: Reg<Bits<4>>,
    waking: Reg<Bit>,
    woken: Reg<Bits<8>>,
    wakes: Signal<Local, Bits<16>>,
    lowest: Signal<Local, Bits<8>>,
    hold_bit: Signal<Local, Bits<16>>,
    news_bit: Signal<Local, Bits<16>>,
    asked_bit: Signal<Local, Bits<16>>,
    other_bit: Signal<Local, Bits<16>>,
    holding: Signal<Local, Bits<16>>,
    telling: Signal<Local, Bits<16>>,
    ending: Signal<Local, Bits<16>>,
    resuming: Signal<Local, Bits<16>>,
    keeping_none: Signal<Local, Bits<16>>,
    makes_room: Signal<Local, Bit>,
    #[is(Check::new("a_stalled_endpoint_may_keep_receives"))]
    stalled_is_kept: Check,
}

#[block]
impl Logic for Backlog {
    fn update(&mut self) {
        self.hold_bit.next = bits::<16>(1) << self.hold.data.val().endpoint.get_bits::<4>(0);
        self.news_bit.next = bits::<16>(1) << self.news.data.val().get_bits::<4>(0);
        self.asked_bit.next = bits::<16>(1) << self.endpoint.val().get_bits::<4>(0);
        self.other_bit.next = bits::<16>(1) << self.other.val().get_bits::<4>(0);
        self.holding.next = 0.into();
        if self.hold.valid.val() {
            self.holding.next = self.hold_bit.val();
        }
        self.telling.next = 0.into();
        if self.news.valid.val() {
            self.telling.next = self.news_bit.val();
        }
        self.ending.next = 0.into();
        if self.ends.val() {
            self.ending.next = self.asked_bit.val();
        }
        self.resuming.next = 0.into();
        if self.resumes.val() | self.forget.val() {
            self.resuming.next = self.asked_bit.val();
        }
        self.keeping_none.next = 0.into();
        if self.nothing_kept.val() | self.forget.val() {
            self.keeping_none.next = self.asked_bit.val();
        }

        self.stalled.next = (self.stalled_bits.q.val() & self.asked_bit.val()).any();
        self.waits.next = (self.waits_bits.q.val() & self.asked_bit.val()).any();
        self.has_news.next = (self.news_bits.q.val() & self.asked_bit.val()).any();
        self.kept.next = (self.kept_bits.q.val() & self.other_bit.val()).any();
        self.receives.read_address.next = bit_cast::<16, 8>(self.endpoint_next.val());
        self.waiting.next = self.receives.read_data.val();
        store!(
            self.receives.write,
            self.hold.valid.val(),
            bit_cast::<16, 8>(self.hold.data.val().endpoint),
            self.hold.data.val()
        );

        self.stalled_bits.d.next =
            (self.stalled_bits.q.val() & !self.resuming.val()) | self.holding.val();
        self.kept_bits.d.next =
            (self.kept_bits.q.val() & !self.keeping_none.val()) | self.holding.val();
        self.waits_bits.d.next =
            (self.waits_bits.q.val() & !self.ending.val()) | self.holding.val();
        self.news_bits.d.next = (self.news_bits.q.val() & !self.holding.val()) | self.telling.val();
        self.room_bits.d.next = self.room_bits.q.val() & !self.holding.val();
        self.makes_room.next = self.gone.val() & self.gone_before.q.val().all();
        if self.makes_room.val() {
            self.room_bits.d.next = self.waits_bits.q.val();
        }
        if self.gone.val() {
            self.gone_before.d.next = self.gone_before.q.val() + 1;
        }

        // The lowest endpoint whose receive waits although something has changed.
        self.wakes.next =
            self.waits_bits.q.val() & (self.news_bits.q.val() | self.room_bits.q.val());
        self.lowest.next = 0.into();
        for i in 0..16 {
            if self.wakes.val().get_bit(15 - i) {
                self.lowest.next = (15 - i).to_bits();
            }
        }
        self.wakes_soon.next = self.wakes.val().any();
        self.waking.d.next = self.wakes_soon.val();
        self.woken.d.next = self.lowest.val();
        send!(self.wake, self.waking.q.val(), self.woken.q.val());
        self.stalled_is_kept.ok.next = !(self.stalled_bits.q.val() & !self.kept_bits.q.val()).any();
    }
}
