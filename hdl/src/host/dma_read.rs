//! Reads host memory for several clients.
//!
//! ```text
//!   request[i] ─► Accesses ─┬─► bursts ────────────────────────► AR
//!                           └─► accesses under way ─┐
//!   data[i] ◄─ word ◄─ shift by the offset ◄────────┴─────────◄── R
//! ```
//!
//! Requests are taken in turn, and their bursts follow each other on the bus without waiting for data.
//! All bursts have one id, so data come back in the order of the requests and nothing has to be sorted.
//! A client may ask for any number of bytes at any address. It gets them from lane 0 on: each word is
//! put together from two beats if the address isn't aligned, and is zero beyond the length. If any beat
//! of an access was answered with an error, the access's last word has `error`.
//!
//! While `quiet`, no request is taken, and data that come in are dropped, until the bus is `idle`: then the engine and its
//! clients may be reset.

use super::accesses::Accesses;
use super::dma::Access;
use crate::prelude::*;
use crate::prim::axi::{AxiRead, BURST_INCR, SIZE_8_BYTES};
use crate::types::DmaRequest;

/// The read engine.
#[block(clients: usize, outstanding: usize)]
pub struct DmaRead {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets everything. The bus has to be idle.
    pub reset: Signal<In, Bit>,
    /// What client `i` asks for.
    #[each(clients)]
    pub request: Vec<Stream<In, DmaRequest>>,
    /// A word for client `i`; the first byte in the lowest lane.
    #[each(clients)]
    pub data: Vec<Stream<Out, Bits<64>>>,
    /// The last word of the access.
    #[each(clients)]
    pub data_last: Vec<Signal<Out, Bit>>,
    /// With `data_last`: some of the access couldn't be read.
    #[each(clients)]
    pub data_error: Vec<Signal<Out, Bit>>,
    /// No request is taken, and clients get nothing.
    pub quiet: Signal<In, Bit>,
    /// No access is under way.
    pub idle: Signal<Out, Bit>,
    /// Host memory.
    pub m_axi: AxiRead,

    #[is(Accesses::new(clients, outstanding))]
    accesses: Accesses,

    /// Beats taken and words given of the access at the head.
    beat: Reg<Bits<14>>,
    word: Reg<Bits<14>>,
    previous: Reg<Bits<64>>,
    failed: Reg<Bit>,
    access: Signal<Local, Access>,
    room: Signal<Local, Bit>,
    wants_beat: Signal<Local, Bit>,
    advance: Signal<Local, Bit>,
    incoming: Signal<Local, Bits<64>>,
    bad: Signal<Local, Bit>,
    down: Signal<Local, Bits<7>>,
    up: Signal<Local, Bits<7>>,
    joined: Signal<Local, Bits<64>>,
    /// Bits of the last word beyond the length.
    spare: Signal<Local, Bits<7>>,
    mask: Signal<Local, Bits<64>>,
    kept: Signal<Local, Bits<64>>,
    next_word: Signal<Local, Bits<14>>,
    last: Signal<Local, Bit>,

    out_valid: Reg<Bit>,
    out_client: Reg<Bits<8>>,
    out_data: Reg<Bits<64>>,
    out_last: Reg<Bit>,
    out_error: Reg<Bit>,
    taken: Signal<Local, Bit>,
    #[is(clients)]
    _clients: usize,
}

impl DmaRead {
    /// An engine for `clients` clients, with at most `outstanding` accesses under way.
    ///
    /// # Panics
    /// If there are no clients or more than 32, or `outstanding` is below 2.
    pub fn new(clients: usize, outstanding: usize) -> Self {
        Self::build(clients, outstanding)
    }
}

#[block(clients = self._clients)]
impl Logic for DmaRead {
    fn update(&mut self) {
        for i in 0..self._clients {
            join!(self.request[i] => self.accesses.request[i]);
        }
        self.accesses.quiet.next = self.quiet.val();
        self.m_axi.arid.next = 0.into();
        self.m_axi.arsize.next = SIZE_8_BYTES;
        self.m_axi.arburst.next = BURST_INCR;
        self.m_axi.arvalid.next = self.accesses.burst.valid.val();
        self.m_axi.araddr.next = self.accesses.burst.data.val().address;
        self.m_axi.arlen.next = self.accesses.burst.data.val().length;
        self.accesses.burst.ready.next = self.m_axi.arready.val();

        // Beats, to words of the access at the head. A step takes a beat if one is left.
        self.access.next = self.accesses.access.data.val();
        self.taken.next = self.quiet.val();
        for i in 0..self._clients {
            if (self.out_client.q.val() == i.to_bits()) & self.data[i].ready.val() {
                self.taken.next = true;
            }
        }
        self.room.next = !self.out_valid.q.val() | self.taken.val();
        self.wants_beat.next = self.beat.q.val() != self.access.val().beats;
        self.advance.next = self.accesses.access.valid.val()
            & self.room.val()
            & (self.m_axi.rvalid.val() | !self.wants_beat.val());
        self.m_axi.rready.next =
            self.accesses.access.valid.val() & self.room.val() & self.wants_beat.val();

        self.incoming.next = 0.into();
        self.bad.next = self.failed.q.val();
        if self.wants_beat.val() {
            self.incoming.next = self.m_axi.rdata.val();
            self.bad.next = self.bad.val() | self.m_axi.rresp.val().get_bit(1);
        }
        self.down.next = bit_cast::<7, 3>(self.access.val().offset) << 3;
        self.up.next = bits::<7>(64) - self.down.val();
        self.joined.next = self.incoming.val();
        if self.access.val().offset.any() {
            self.joined.next =
                (self.previous.q.val() >> self.down.val()) | (self.incoming.val() << self.up.val());
        }
        self.next_word.next = self.word.q.val() + 1;
        self.last.next = self.next_word.val() == self.access.val().words;
        self.mask.next = u64::MAX;
        self.spare.next = bits::<7>(64) - (bit_cast::<7, 3>(self.access.val().tail) << 3);
        if self.last.val() & self.access.val().tail.any() {
            self.mask.next = u64::MAX >> self.spare.val();
        }
        self.kept.next = self.joined.val() & self.mask.val();

        self.accesses.access.ready.next = false;
        if self.taken.val() {
            self.out_valid.d.next = false;
        }
        if self.advance.val() {
            self.previous.d.next = self.incoming.val();
            self.failed.d.next = self.bad.val();
            if self.wants_beat.val() {
                self.beat.d.next = self.beat.q.val() + 1;
            }
            // The first of several beats of an access that isn't aligned makes no word yet.
            if !self.access.val().offset.any() | (self.beat.q.val() != 0) {
                self.out_valid.d.next = true;
                self.out_client.d.next = self.access.val().client;
                self.out_data.d.next = self.kept.val();
                self.out_last.d.next = self.last.val();
                self.out_error.d.next = self.last.val() & self.bad.val();
                self.word.d.next = self.next_word.val();
                if self.last.val() {
                    self.accesses.access.ready.next = true;
                    self.beat.d.next = 0.into();
                    self.word.d.next = 0.into();
                    self.failed.d.next = false;
                }
            }
        }
        for i in 0..self._clients {
            self.data[i].valid.next = self.out_valid.q.val()
                & (self.out_client.q.val() == i.to_bits())
                & !self.quiet.val();
            self.data[i].data.next = self.out_data.q.val();
            self.data_last[i].next = self.out_last.q.val();
            self.data_error[i].next = self.out_error.q.val();
        }
        // The last word of an access leaves with its last beat, so no beat is owed when none is under way.
        self.idle.next = !self.accesses.burst.valid.val() & self.accesses.empty.val();
    }
}
