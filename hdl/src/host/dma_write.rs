//! Writes host memory for several clients.
//!
//! ```text
//!   request[i] ─► Accesses ─┬─► bursts ──────────────┬──────────► AW
//!                           └─► accesses under way ─┐└─► answers owed ─┐
//!   data[i] ───────────────────► shift by the offset┴───────────► W    │
//!   done[i] ◄──────────────────────────────────────────────────────────┴─◄ B
//! ```
//!
//! Requests are taken in turn; then the client's words are taken, from lane 0 on, and are spread over the
//! beats as the address needs it. Strobes name the bytes of the access and no other, so nothing is read and
//! no neighbouring byte is written. An access is `done` when the response to its last burst has come, as a
//! failure if any of its responses was an error. The next access goes on the bus before that. A client whose
//! request was taken gives its words without waiting for another client: until then no other client's words
//! are taken.
//!
//! While `quiet`, no request is taken. The beats that accesses under way still owe go out without strobes and without the
//! clients' words, so that the bus gets what was announced to it and memory stays as it is; no client gets `done`. When all is
//! answered the engine is `idle`, and may be reset with its clients.

use super::accesses::Accesses;
use super::bursts::MAX_BEATS;
use super::dma::Access;
use crate::prelude::*;
use crate::prim::axi::{AxiWrite, BURST_INCR, SIZE_8_BYTES};
use crate::prim::{Fifo, Stable};
use crate::types::DmaRequest;

/// A response that is owed.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Owed {
    /// Client of the burst.
    pub client: Bits<8>,
    /// Last burst of its access.
    pub last: Bit,
}

/// A beat of write data.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct WriteBeat {
    /// Data.
    pub data: Bits<64>,
    /// Bytes to write.
    pub strobe: Bits<8>,
    /// Last of its burst.
    pub last: Bit,
}

/// The write engine.
#[block(clients: usize, outstanding: usize)]
pub struct DmaWrite {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets everything. The bus has to be idle.
    pub reset: Signal<In, Bit>,
    /// What client `i` asks for.
    #[each(clients)]
    pub request: Vec<Stream<In, DmaRequest>>,
    /// A word of client `i`; the first byte in the lowest lane. Bytes beyond the length are ignored.
    #[each(clients)]
    pub data: Vec<Stream<In, Bits<64>>>,
    /// The oldest access of client `i` is in memory, or, if the data are 1, some of it couldn't be written.
    #[each(clients)]
    pub done: Vec<Pulse<Out, Bit>>,
    /// No request and no word is taken, and no client gets `done`.
    pub quiet: Signal<In, Bit>,
    /// No access is under way.
    pub idle: Signal<Out, Bit>,
    /// Host memory.
    pub m_axi: AxiWrite,

    #[is(Accesses::new(clients, outstanding))]
    accesses: Accesses,
    #[is(Fifo::new(outstanding))]
    owed: Fifo<Owed>,
    issue: Signal<Local, Bit>,

    /// Beats given of the access at the head.
    beat: Reg<Bits<14>>,
    /// Beats given of the burst.
    position: Reg<Bits<4>>,
    previous: Reg<Bits<64>>,
    access: Signal<Local, Access>,
    room: Signal<Local, Bit>,
    wants_word: Signal<Local, Bit>,
    offered: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
    advance: Signal<Local, Bit>,
    incoming: Signal<Local, Bits<64>>,
    up: Signal<Local, Bits<7>>,
    down: Signal<Local, Bits<7>>,
    next_beat: Signal<Local, Bits<14>>,
    place: Signal<Local, Bits<9>>,
    first: Signal<Local, Bit>,
    last: Signal<Local, Bit>,
    last_of_burst: Signal<Local, Bit>,
    /// Lanes of the beat that belong to the access, and those of them that are written.
    lanes: Signal<Local, Bits<8>>,
    strobe: Signal<Local, Bits<8>>,
    out: Signal<Local, WriteBeat>,
    out_valid: Reg<Bit>,
    out_beat: Reg<WriteBeat>,

    failed: Reg<Bit>,
    bad: Signal<Local, Bit>,
    done_valid: Reg<Bit>,
    done_client: Reg<Bits<8>>,
    done_failed: Reg<Bit>,

    /// Running numbers of beats and of bursts, by the address channel and by the data channel.
    beats_announced: Reg<Bits<16>>,
    beats_sent: Reg<Bits<16>>,
    bursts_announced: Reg<Bits<16>>,
    bursts_sent: Reg<Bits<16>>,
    sent: Signal<Local, Bit>,
    #[is(Check::new("write_beats_and_lasts_match_the_addresses"))]
    data_match_addresses: Check,
    #[is(Stable::new("write_data_stay_offered"))]
    stays_offered: Stable<WriteBeat>,
    #[is(clients)]
    _clients: usize,
}

impl DmaWrite {
    /// An engine for `clients` clients, with at most `outstanding` accesses under way, and as many
    /// bursts.
    ///
    /// # Panics
    /// If there are no clients or more than 32, or `outstanding` is below 2.
    pub fn new(clients: usize, outstanding: usize) -> Self {
        Self::build(clients, outstanding)
    }
}

#[block(clients = self._clients)]
impl Logic for DmaWrite {
    fn update(&mut self) {
        for i in 0..self._clients {
            join!(self.request[i] => self.accesses.request[i]);
        }
        self.accesses.quiet.next = self.quiet.val();
        // Addresses, each with an answer that is owed.
        self.m_axi.awid.next = 0.into();
        self.m_axi.awsize.next = SIZE_8_BYTES;
        self.m_axi.awburst.next = BURST_INCR;
        self.m_axi.awvalid.next = self.accesses.burst.valid.val() & self.owed.input.ready.val();
        self.m_axi.awaddr.next = self.accesses.burst.data.val().address;
        self.m_axi.awlen.next = self.accesses.burst.data.val().length;
        self.accesses.burst.ready.next = self.m_axi.awready.val() & self.owed.input.ready.val();
        self.issue.next = self.accesses.burst.valid.val()
            & self.m_axi.awready.val()
            & self.owed.input.ready.val();
        self.owed.input.valid.next = self.issue.val();
        self.owed.input.data.next = Owed {
            client: self.accesses.burst.data.val().client,
            last: self.accesses.burst.data.val().last,
        };

        // Words of the access at the head, to beats. The last beat may need no word of its own.
        self.access.next = self.accesses.access.data.val();
        self.room.next = !self.out_valid.q.val() | self.m_axi.wready.val();
        self.wants_word.next = self.beat.q.val() != self.access.val().words;
        self.offered.next = false;
        self.incoming.next = 0.into();
        for i in 0..self._clients {
            if self.wants_word.val() & (self.access.val().client == i.to_bits()) {
                self.offered.next = self.data[i].valid.val();
                self.incoming.next = self.data[i].data.val();
            }
        }
        if self.quiet.val() {
            self.offered.next = true;
        }
        self.take.next = self.accesses.access.valid.val() & self.room.val() & self.wants_word.val();
        for i in 0..self._clients {
            self.data[i].ready.next =
                self.take.val() & (self.access.val().client == i.to_bits()) & !self.quiet.val();
        }
        self.advance.next = self.accesses.access.valid.val()
            & self.room.val()
            & (self.offered.val() | !self.wants_word.val());

        self.up.next = bit_cast::<7, 3>(self.access.val().offset) << 3;
        self.down.next = bits::<7>(64) - self.up.val();
        self.next_beat.next = self.beat.q.val() + 1;
        self.first.next = self.beat.q.val() == 0;
        self.last.next = self.next_beat.val() == self.access.val().beats;
        self.place.next = self.access.val().first + self.beat.q.val().get_bits::<9>(0);
        self.last_of_burst.next = self.last.val();
        if (self.position.q.val() == (MAX_BEATS - 1)) | self.place.val().all() {
            self.last_of_burst.next = true;
        }
        self.lanes.next = 0xff.into();
        if self.last.val() {
            match self.access.val().end.index() {
                1 => self.lanes.next = 0x01.into(),
                2 => self.lanes.next = 0x03.into(),
                3 => self.lanes.next = 0x07.into(),
                4 => self.lanes.next = 0x0f.into(),
                5 => self.lanes.next = 0x1f.into(),
                6 => self.lanes.next = 0x3f.into(),
                7 => self.lanes.next = 0x7f.into(),
                _ => self.lanes.next = 0xff.into(),
            }
        }
        if self.first.val() {
            self.lanes.next = self.lanes.val() & (bits::<8>(0xff) << self.access.val().offset);
        }
        self.strobe.next = self.lanes.val();
        if self.quiet.val() {
            self.strobe.next = 0.into();
        }
        self.out.next = self.out_beat.q.val();
        self.out.next.data = self.incoming.val();
        self.out.next.strobe = self.strobe.val();
        self.out.next.last = self.last_of_burst.val();
        if self.access.val().offset.any() {
            self.out.next.data =
                (self.incoming.val() << self.up.val()) | (self.previous.q.val() >> self.down.val());
        }

        self.accesses.access.ready.next = false;
        if self.m_axi.wready.val() {
            self.out_valid.d.next = false;
        }
        if self.advance.val() {
            self.previous.d.next = self.incoming.val();
            self.out_valid.d.next = true;
            self.out_beat.d.next = self.out.val();
            self.beat.d.next = self.next_beat.val();
            self.position.d.next = self.position.q.val() + 1;
            if self.last_of_burst.val() {
                self.position.d.next = 0.into();
            }
            if self.last.val() {
                self.accesses.access.ready.next = true;
                self.beat.d.next = 0.into();
            }
        }
        self.m_axi.wvalid.next = self.out_valid.q.val();
        self.m_axi.wdata.next = self.out_beat.q.val().data;
        self.m_axi.wstrb.next = self.out_beat.q.val().strobe;
        self.m_axi.wlast.next = self.out_beat.q.val().last;

        // Answers.
        self.m_axi.bready.next = self.owed.output.valid.val();
        self.owed.output.ready.next = self.m_axi.bvalid.val();
        self.bad.next = self.failed.q.val() | self.m_axi.bresp.val().get_bit(1);
        self.done_valid.d.next = false;
        self.done_client.d.next = self.owed.output.data.val().client;
        self.done_failed.d.next = self.bad.val();
        if self.owed.output.valid.val() & self.m_axi.bvalid.val() {
            self.failed.d.next = self.bad.val();
            if self.owed.output.data.val().last {
                self.failed.d.next = false;
            }
            self.done_valid.d.next = self.owed.output.data.val().last;
        }
        for i in 0..self._clients {
            send!(
                self.done[i],
                self.done_valid.q.val()
                    & (self.done_client.q.val() == i.to_bits())
                    & !self.quiet.val(),
                self.done_failed.q.val()
            );
        }

        // When nothing is left to send, as many beats and as many bursts have gone as were announced.
        if self.issue.val() {
            self.beats_announced.d.next = self.beats_announced.q.val()
                + bit_cast::<16, 8>(self.accesses.burst.data.val().length)
                + 1;
            self.bursts_announced.d.next = self.bursts_announced.q.val() + 1;
        }
        if self.out_valid.q.val() & self.m_axi.wready.val() {
            self.beats_sent.d.next = self.beats_sent.q.val() + 1;
            if self.out_beat.q.val().last {
                self.bursts_sent.d.next = self.bursts_sent.q.val() + 1;
            }
        }
        self.sent.next =
            !self.accesses.burst.valid.val() & !self.out_valid.q.val() & self.accesses.empty.val();
        self.idle.next = self.sent.val() & (self.owed.level.val() == 0);
        self.data_match_addresses.ok.next = !self.sent.val()
            | ((self.beats_announced.q.val() == self.beats_sent.q.val())
                & (self.bursts_announced.q.val() == self.bursts_sent.q.val()));
        self.stays_offered.valid.next = self.out_valid.q.val();
        self.stays_offered.ready.next = self.m_axi.wready.val();
        self.stays_offered.data.next = self.out_beat.q.val();
    }
}
