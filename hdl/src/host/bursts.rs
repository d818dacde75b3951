//! Splits an access of host memory into AXI bursts.
//!
//! ```text
//!                             ┌────────┐
//!   start: address, beats ───►│ Bursts ├──► burst: address, length
//!                             └────────┘
//! ```
//!
//! A burst has at most 16 beats of 8 bytes and none crosses a multiple of 4 KiB (AMBA AXI, IHI
//! 0022, A3.4.1): the first one goes up to that boundary if it is nearer than 16 beats. The next
//! access is taken in the cycle in which the last burst goes.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use crate::prelude::*;
use crate::prim::Stable;
use crate::prim::axi::BOUNDARY;

/// Beats of the longest burst.
pub const MAX_BEATS: u64 = 16;

/// An access to split.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Start {
    /// Client that the access is for.
    pub client: Bits<8>,
    /// Address of the first byte; its low 3 bits are ignored.
    pub address: Bits<64>,
    /// Beats of 8 bytes, at least 1.
    pub beats: Bits<14>,
    /// No beat is beyond the boundary.
    pub in_page: Bit,
}

/// A burst of an access.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Burst {
    /// Client of the access.
    pub client: Bits<8>,
    /// Address of the first beat, a multiple of 8.
    pub address: Bits<64>,
    /// Beats less one, as `AxLEN`.
    pub length: Bits<8>,
    /// The last one of its access.
    pub last: Bit,
}

/// The splitter of one AXI address channel.
#[block]
pub struct Bursts {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets the access.
    pub reset: Signal<In, Bit>,
    /// Accesses.
    pub start: Stream<In, Start>,
    /// The bursts of each, in order.
    pub burst: Stream<Out, Burst>,
    active: Reg<Bit>,
    client: Reg<Bits<8>>,
    address: Reg<Bits<64>>,
    remaining: Reg<Bits<14>>,
    /// Beats up to the boundary.
    room: Reg<Bits<14>>,
    /// The burst offered is the last one.
    last: Reg<Bit>,
    beats: Signal<Local, Bits<14>>,
    less_one: Signal<Local, Bits<14>>,
    first_beat: Signal<Local, Bits<9>>,
    last_beat: Signal<Local, Bits<9>>,
    /// Page, beat in it, beats left and beats up to the next boundary after this burst.
    page: Signal<Local, Bits<52>>,
    next_beat: Signal<Local, Bits<9>>,
    left: Signal<Local, Bits<14>>,
    room_left: Signal<Local, Bits<14>>,
    room_and_most: Signal<Local, Bits<14>>,
    next_is_last: Signal<Local, Bit>,
    free: Signal<Local, Bit>,
    #[is(Check::new("burst_stays_within_4_kib"))]
    stays_in_page: Check,
    #[is(Stable::new("burst_address_stays_offered"))]
    stays_offered: Stable<Bits<64>>,
}

#[block]
impl Logic for Bursts {
    fn update(&mut self) {
        self.first_beat.next = self.address.q.val().get_bits::<9>(3);
        self.beats.next = MAX_BEATS;
        if self.remaining.q.val() < self.beats.val() {
            self.beats.next = self.remaining.q.val();
        }
        if self.room.q.val() < self.beats.val() {
            self.beats.next = self.room.q.val();
        }
        self.less_one.next = self.beats.val() - 1;
        // What follows a burst doesn't ask for `beats`, which comes late: unless it was the last, a burst is as long
        // as one may be or as there is room. The next is the last one if what is left is no more than that again.
        self.page.next = self.address.q.val().get_bits::<52>(12);
        self.room_left.next = self.room.q.val() - MAX_BEATS;
        if self.room.q.val() <= MAX_BEATS {
            self.page.next = self.address.q.val().get_bits::<52>(12) + 1;
            self.room_left.next = BOUNDARY / 8;
        }
        self.next_beat.next = self.first_beat.val() + MAX_BEATS;
        self.left.next = self.remaining.q.val() - MAX_BEATS;
        self.next_is_last.next = (self.remaining.q.val() <= 2 * MAX_BEATS)
            & (self.remaining.q.val() <= self.room.q.val());
        self.room_and_most.next = self.room.q.val() + MAX_BEATS;
        if self.room.q.val() == MAX_BEATS {
            self.next_is_last.next = self.remaining.q.val() <= 2 * MAX_BEATS;
        }
        if self.room.q.val() < MAX_BEATS {
            self.next_beat.next = 0.into();
            self.left.next = self.remaining.q.val() - self.room.q.val();
            self.next_is_last.next = self.remaining.q.val() <= self.room_and_most.val();
        }

        send!(
            self.burst,
            self.active.q.val(),
            Burst {
                client: self.client.q.val(),
                address: self.address.q.val(),
                length: bit_cast::<8, 14>(self.less_one.val()),
                last: self.last.q.val(),
            }
        );
        if self.active.q.val() & self.burst.ready.val() {
            self.address.d.next = (bit_cast::<64, 52>(self.page.val()) << 12)
                | (bit_cast::<64, 9>(self.next_beat.val()) << 3);
            self.remaining.d.next = self.left.val();
            self.active.d.next = !self.last.q.val();
            self.room.d.next = self.room_left.val();
            self.last.d.next = self.next_is_last.val();
        }

        self.free.next = !self.active.q.val() | (self.burst.ready.val() & self.last.q.val());
        self.start.ready.next = self.free.val();
        if self.free.val() & self.start.valid.val() {
            self.active.d.next = true;
            self.client.d.next = self.start.data.val().client;
            self.address.d.next = (self.start.data.val().address >> 3) << 3;
            self.remaining.d.next = self.start.data.val().beats;
            self.room.d.next =
                BOUNDARY / 8 - bit_cast::<14, 9>(self.start.data.val().address.get_bits::<9>(3));
            self.last.d.next =
                (self.start.data.val().beats <= MAX_BEATS) & self.start.data.val().in_page;
        }

        self.last_beat.next = self.first_beat.val() + bit_cast::<9, 14>(self.less_one.val());
        self.stays_in_page.ok.next =
            !self.active.q.val() | (self.last_beat.val() >= self.first_beat.val());
        self.stays_offered.valid.next = self.active.q.val();
        self.stays_offered.ready.next = self.burst.ready.val();
        self.stays_offered.data.next = self.address.q.val();
    }
}
