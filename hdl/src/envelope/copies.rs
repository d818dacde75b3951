//! Reads slots ahead of the turn of their copies, so that many copies are under way at once.
//!
//! ```text
//!   job ─► has it a slot to read, and is there room ─► queue of jobs ────────────► output
//!                  │                                                               all jobs, in order
//!                  └► read_request    reads under way ─► last word of a read ─► copied
//!                                            ▲                │
//!                     read_data ─────────────┴──► buffer ─────┴─────────────────► data
//! ```
//!
//! A copy with a length reserves room in the buffer for all its words before its read is asked for, so the words of a read never wait
//! for anybody's progress. It goes on to `output` in the cycle in which its read is asked for; a copy that finds no room holds up the
//! jobs behind it. `copied` says of each read that all its words are in the buffer, and whether it failed; its words are in the buffer
//! in either case.

use crate::prelude::*;
use crate::prim::Fifo;
use crate::types::{DmaRequest, Job, Way};
use abi::limits::EAGER_MAX;

/// Words of the buffer: of four of the longest copies, as many as two block RAMs hold side by side.
pub const BUFFER_WORDS: usize = 4 * EAGER_MAX / 8;

/// Jobs of the queue, and copies whose end the taker hasn't heard of: a read for every eight cycles at a memory latency of 125.
pub const JOBS: usize = 16;

const _: () = assert!(
    EAGER_MAX / 8 < 1 << 8,
    "words of a copy are counted in 8 bits"
);

/// What reads ahead.
#[block]
pub struct Copies {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets everything. No read may be under way.
    pub reset: Signal<In, Bit>,
    /// Jobs in the order in which their commands entered Lists.
    pub job: Stream<In, Job>,
    /// The same jobs in the same order. The read of a copy has been asked for.
    pub output: Stream<Out, Job>,
    /// Read client of `DmaRead`: a slot.
    pub read_request: Stream<Out, DmaRequest>,
    /// Eight bytes, the first in the lowest lane. Always taken while a read is under way.
    pub read_data: Stream<In, Bits<64>>,
    /// With the last word of a read: some of the read was answered by an error.
    pub read_data_error: Signal<In, Bit>,
    /// The words of all reads, in order.
    pub data: Stream<Out, Bits<64>>,
    /// A word a read, in order, once all its words are in the buffer: the read failed.
    pub copied: Stream<Out, Bit>,

    #[is(Fifo::new(JOBS))]
    jobs: Fifo<Job>,
    #[is(Fifo::new(BUFFER_WORDS))]
    buffer: Fifo<Bits<64>>,
    /// Words of each read under way.
    #[is(Fifo::new(JOBS))]
    under_way: Fifo<Bits<8>>,
    /// Reads that have ended: whether they failed.
    #[is(Fifo::new(JOBS))]
    ended: Fifo<Bit>,
    /// Words of the buffer that no read has reserved.
    #[is(Reg::new((BUFFER_WORDS as u64).into()))]
    room: Reg<Bits<16>>,
    /// Copies that may be begun before one more `copied` is taken.
    #[is(Reg::new((JOBS as u64).into()))]
    places: Reg<Bits<8>>,
    wanted_valid: Reg<Bit>,
    wanted: Reg<DmaRequest>,
    /// Words of the oldest read that have come.
    words_come: Reg<Bits<8>>,

    reads: Signal<Local, Bit>,
    words: Signal<Local, Bits<16>>,
    fits: Signal<Local, Bit>,
    may_ask: Signal<Local, Bit>,
    begins: Signal<Local, Bit>,
    passes: Signal<Local, Bit>,
    word_comes: Signal<Local, Bit>,
    next_word: Signal<Local, Bits<8>>,
    whole: Signal<Local, Bit>,
    room_left: Signal<Local, Bits<16>>,
    places_left: Signal<Local, Bits<8>>,

    #[is(Check::new("copies_have_room_for_what_they_read"))]
    room_for_words: Check,
    #[is(Check::new("copies_have_room_for_what_has_ended"))]
    room_for_ends: Check,
}

#[block]
impl Logic for Copies {
    fn update(&mut self) {
        // A job goes on, and the read of a copy is asked for, in the same cycle.
        self.reads.next = (self.job.data.val().way == Way::Copy) & self.job.data.val().length.any();
        self.words.next = (self.job.data.val().length + 7) >> 3;
        self.fits.next = (self.words.val() <= self.room.q.val()) & self.places.q.val().any();
        self.may_ask.next = !self.wanted_valid.q.val() | self.read_request.ready.val();
        self.begins.next = self.job.valid.val()
            & self.jobs.input.ready.val()
            & self.reads.val()
            & self.fits.val()
            & self.may_ask.val();
        self.passes.next = self.job.valid.val() & self.jobs.input.ready.val() & !self.reads.val();
        self.job.ready.next = self.begins.val() | self.passes.val();
        send!(
            self.jobs.input,
            self.begins.val() | self.passes.val(),
            self.job.data.val()
        );
        join!(self.jobs.output => self.output);

        send!(
            self.read_request,
            self.wanted_valid.q.val(),
            self.wanted.q.val()
        );
        if self.read_request.ready.val() {
            self.wanted_valid.d.next = false;
        }
        if self.begins.val() {
            self.wanted_valid.d.next = true;
            self.wanted.d.next.address = self.job.data.val().source;
            self.wanted.d.next.length = self.job.data.val().length;
        }
        send!(
            self.under_way.input,
            self.begins.val(),
            self.words.val().get_bits::<8>(0)
        );

        // Words come in the order of the reads.
        self.read_data.ready.next = self.under_way.output.valid.val();
        self.word_comes.next = self.read_data.valid.val() & self.under_way.output.valid.val();
        self.next_word.next = self.words_come.q.val() + 1;
        self.whole.next =
            self.word_comes.val() & (self.next_word.val() == self.under_way.output.data.val());
        if self.word_comes.val() {
            self.words_come.d.next = self.next_word.val();
        }
        if self.whole.val() {
            self.words_come.d.next = 0.into();
        }
        self.under_way.output.ready.next = self.whole.val();
        send!(
            self.buffer.input,
            self.word_comes.val(),
            self.read_data.data.val()
        );
        send!(
            self.ended.input,
            self.whole.val(),
            self.read_data_error.val()
        );
        join!(self.buffer.output => self.data);
        join!(self.ended.output => self.copied);
        self.room_for_words.ok.next = !self.word_comes.val() | self.buffer.input.ready.val();
        self.room_for_ends.ok.next = !self.whole.val() | self.ended.input.ready.val();

        // Room comes back word by word as the taker takes them.
        self.room_left.next = self.room.q.val();
        self.places_left.next = self.places.q.val();
        if self.begins.val() {
            self.room_left.next = self.room_left.val() - self.words.val();
            self.places_left.next = self.places_left.val() - 1;
        }
        if self.data.valid.val() & self.data.ready.val() {
            self.room_left.next = self.room_left.val() + 1;
        }
        if self.copied.valid.val() & self.copied.ready.val() {
            self.places_left.next = self.places_left.val() + 1;
        }
        self.room.d.next = self.room_left.val();
        self.places.d.next = self.places_left.val();
    }
}
