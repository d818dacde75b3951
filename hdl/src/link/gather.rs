//! Reads the payloads of the messages that are to be sent, many at a time and in order.
//!
//! ```text
//!   job ─┬─► to ask ─► a segment at a time ─┬─► query ──► Regions ──► allowed ──┐
//!        │                                  └─► to read ◄──────── one answer a segment
//!        │      ┌─► read_request ──► DmaRead ──► read_data ──► joined ──► payload memory (a ring) ──► payload
//!        │   to read                                             ▲           ▲
//!        │      └─► under way ─── one at a time ─────────────────┘           │ room reserved with the job
//!        │              └─► result                                           │
//!        └─► envelopes ──► message, once its payload is here ────────────────┘
//!              └─► inline payload ──► payload
//! ```
//!
//! A job comes only while there is `room` for the longest payload, and reserves the words that it needs: so a read never waits for the
//! wire, and every job is answered as soon as host memory has answered. Jobs are asked for, read, answered and sent in the order in which they came.
//! A job whose buffer may not or can't be read is answered with the reason, and no message comes of it.
//!
//! A get is a job whose buffer is looked at, since it is to be written, and not read. The answer of a peer's get is read from the memory that its remote key
//! opens. It becomes a message whatever comes of that: one that may not or can't be read says so, and has no payload.
//!
//! A job has up to four segments. Each is asked for, and read, by itself (`ask.rs`), and the bytes of one follow those of the one before without
//! a gap (`join.rs`). The job is answered with its last segment.
//!
//! An inline job brings its payload along. No buffer is asked for or read, and no word of the payload memory is reserved: it is answered when those
//! before it have been.
//!
//! A pair that is `dropped` sends nothing more of what has been given: a message of it that hasn't been taken is passed over, even if it was on
//! offer. Its answers are dropped by themselves (`answers_dropped`), since a pair that goes back gives its sends again and not its answers. So the end of a
//! pair waits neither for the wire nor for another pair's frames.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

mod ask;
mod join;

use crate::config::JOBS;
use crate::prelude::*;
use crate::prim::{BlockRam, Fifo};
use crate::types::{Access, DmaRequest, Message, Permission, Segment, Segments, SendJob};
use abi::limits::EAGER_MAX;
use abi::request::{FLAG_READY, INLINE_BYTES};

/// Words of the payload memory: four longest payloads.
pub const WORDS: usize = 512;
/// Words of the longest payload.
const LONGEST: usize = EAGER_MAX.div_ceil(8);

const _: () = assert!(WORDS.is_power_of_two() && JOBS == 16, "widths below");
const _: () = assert!(INLINE_BYTES == 16, "a job carries two words of payload");

/// What a job leaves for its frame.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Envelope {
    words: Bits<8>,
    message: Message,
    /// The payload is this.
    inline: Bit,
    payload: Bits<128>,
}

/// A job whose segments are to be asked for.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct ToAsk {
    domain: Bits<8>,
    key: Bits<32>,
    address: Bits<64>,
    /// Length of the first segment.
    length: Bits<11>,
    /// The others.
    segments: Segments,
    /// Words of the payload.
    words: Bits<8>,
    /// It is a get.
    get: Bit,
    /// It is an answer: `address` is the offset.
    answer: Bit,
    /// It is refused already.
    refused: Bit,
    /// On whose behalf, and of an answer by which key.
    pair: Bits<16>,
    remote_key: Bits<64>,
    /// It is the payload of a message of this context.
    tagged: Bit,
    context: Bits<16>,
}

/// A segment to read.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct ToRead {
    length: Bits<16>,
    /// The last of its job.
    last: Bit,
    /// Words of the payload.
    words: Bits<8>,
    /// It is only looked at.
    get: Bit,
    /// It is an answer's.
    answer: Bit,
    /// It is refused already.
    refused: Bit,
}

/// A segment's read under way, or one that none is made for.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct UnderWay {
    /// Words of the segment.
    words: Bits<8>,
    /// Bytes of its last word, 0 for all eight.
    tail: Bits<3>,
    /// It is the last of its job.
    last: Bit,
    /// Words of the job's payload.
    whole: Bits<8>,
    /// They are being read.
    reads: Bit,
    /// The segment was asked for and allowed.
    allowed: Bit,
    /// The segment may not be read.
    refused: Bit,
    /// It is an answer's.
    answer: Bit,
}

/// What reads payloads.
#[block]
pub struct Gather {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets everything. No read may be under way.
    pub reset: Signal<In, Bit>,

    /// One more job may come. Knows of a job two cycles after it.
    pub room: Signal<Out, Bit>,
    /// A send, or the answer of a get.
    pub job: Pulse<In, SendJob>,
    /// The oldest job that hasn't been answered is, and is a send: `Success` if its payload is here.
    pub result: Pulse<Out, Bits<8>>,
    /// It is, and is the answer of a get of this pair's peer: its bytes are here, or never will be.
    pub answer_decided: Pulse<Out, Bits<16>>,
    /// With it: the peer may not read them.
    pub answer_denied: Signal<Out, Bit>,
    /// This pair sends nothing more of the sends that have been given, what is given in this cycle included.
    pub dropped: Pulse<In, Bits<16>>,
    /// The same of its answers.
    pub answers_dropped: Pulse<In, Bits<16>>,

    /// A buffer is to be checked, or what a peer asks for.
    pub query: Stream<Out, Access>,
    /// The oldest query without an answer is answered: whether it may be used, and where it is.
    pub allowed: Pulse<In, Permission>,
    /// Pulse: what the oldest answer that was yes allowed has ended.
    pub access_ends: Signal<Out, Bit>,
    /// Read client of `DmaRead`.
    pub read_request: Stream<Out, DmaRequest>,
    /// Eight bytes, the first in the lowest lane; bytes beyond the length are zero.
    pub read_data: Stream<In, Bits<64>>,
    /// The last of this access.
    pub read_data_last: Signal<In, Bit>,
    /// With the last word: the host's memory refused the access.
    pub read_data_error: Signal<In, Bit>,

    /// A message whose payload is here. The offer ends if its pair is dropped.
    pub message: Stream<Out, Message>,
    /// Word of the payload of the message that was taken last.
    pub payload_index: Signal<In, Bits<16>>,
    /// The word of the index of the cycle before.
    pub payload: Signal<Out, Bits<64>>,
    /// Pulse: that message's payload isn't needed any more.
    pub payload_done: Signal<In, Bit>,
    /// A pair that has something to tell its peer.
    pub gathered_pair: Signal<In, Bits<16>>,
    /// One cycle later: a message of it is here, so that a frame will tell.
    pub gathered: Signal<Out, Bit>,

    // The job that comes.
    /// Bytes that are asked for, and words that are reserved for them.
    length: Signal<Local, Bits<16>>,
    words: Signal<Local, Bits<16>>,
    as_message: Signal<Local, Message>,
    flags: Signal<Local, Bits<8>>,
    inline_bytes: Signal<Local, Bits<128>>,
    inline_length: Signal<Local, Bits<8>>,
    /// Ones above the last byte of an inline payload.
    beyond: Signal<Local, Bits<128>>,
    inline_payload: Signal<Local, Bits<128>>,
    /// Where the next job's words begin. Places count on beyond the memory, by one bit.
    next_place: Reg<Bits<16>>,
    /// Where the oldest words that are in use begin.
    first_place: Reg<Bits<16>>,
    used: Signal<Local, Bits<16>>,
    /// Jobs that are here.
    jobs: Reg<Bits<8>>,
    jobs_next: Signal<Local, Bits<8>>,
    has_room: Reg<Bit>,

    // Questions and reads.
    /// Length of the job's first segment, and its others.
    first: Signal<Local, Bits<16>>,
    segments: Signal<Local, Segments>,
    behind_first: Signal<Local, Bits<11>>,
    /// A job without a buffer, which waits for no question.
    asks_nothing: Signal<Local, Bit>,
    new_to_read: Signal<Local, ToRead>,
    #[is(Fifo::new(JOBS))]
    to_ask: Fifo<ToAsk>,
    /// Segment that is looked at of the oldest job in it.
    at: Reg<Bits<2>>,
    following: Signal<Local, Segments>,
    second: Signal<Local, Segment>,
    third: Signal<Local, Segment>,
    fourth: Signal<Local, Segment>,
    piece: Signal<Local, Segment>,
    /// There is one behind it.
    more: Signal<Local, Bit>,
    is_empty: Signal<Local, Bit>,
    skips: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
    #[is(Fifo::new(JOBS))]
    to_read: Fifo<ToRead>,
    #[is(Fifo::new(JOBS))]
    under_way: Fifo<UnderWay>,
    asked: Signal<Local, Access>,
    wanted: Signal<Local, DmaRequest>,
    asks: Signal<Local, Bit>,
    /// Answers that haven't been used.
    #[is(Fifo::new(JOBS))]
    answers: Fifo<Permission>,
    has_answer: Signal<Local, Bit>,
    may_read: Signal<Local, Bit>,
    reads: Signal<Local, Bit>,
    goes_on: Signal<Local, Bit>,
    read_words: Signal<Local, Bits<16>>,

    // What comes.
    #[is(BlockRam::new(WORDS))]
    memory: BlockRam<Bits<64>>,
    fill_place: Reg<Bits<16>>,
    filled: Reg<Bits<16>>,
    /// Words that have come of the segment.
    come: Reg<Bits<8>>,
    /// Bytes that wait for those of the next word, the first in the lowest lane, and how many there are.
    carried: Reg<Bits<64>>,
    carried_bytes: Reg<Bits<3>>,
    /// The last word was one too much for one write: what is carried is written now.
    spills: Reg<Bit>,
    comes: Signal<Local, Bit>,
    last_comes: Signal<Local, Bit>,
    closes: Signal<Local, Bit>,
    shifted: Signal<Local, Bits<128>>,
    joined: Signal<Local, Bits<64>>,
    beyond_word: Signal<Local, Bits<64>>,
    bytes: Signal<Local, Bits<4>>,
    bytes_now: Signal<Local, Bits<4>>,
    is_full: Signal<Local, Bit>,
    is_over: Signal<Local, Bit>,
    fills: Signal<Local, Bit>,
    filled_now: Signal<Local, Bits<16>>,
    /// The oldest segment under way, or a job without one, has come or won't.
    passes: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    /// A segment before this one of the same job may not be read, or couldn't be.
    refused_before: Reg<Bit>,
    failed_before: Reg<Bit>,
    refused: Signal<Local, Bit>,
    failed: Signal<Local, Bit>,
    status: Signal<Local, Bits<8>>,
    sound: Signal<Local, Bit>,

    // What goes out.
    #[is(Fifo::new(JOBS))]
    envelopes: Fifo<Envelope>,
    /// Pairs of the jobs, and whether nothing is to be sent of them any more; by the job's number.
    #[each(JOBS)]
    pair: Vec<Reg<Bits<16>>>,
    #[each(JOBS, Reg::new(true))]
    dead: Vec<Reg<Bit>>,
    /// Whether they are answers; by the job's number.
    #[each(JOBS)]
    is_answer: Vec<Reg<Bit>>,
    /// Whether they are answers whose bytes aren't here; by the job's number.
    #[each(JOBS)]
    missing: Vec<Reg<Bit>>,
    job_number: Reg<Bits<4>>,
    answer_number: Reg<Bits<4>>,
    frame_number: Reg<Bits<4>>,
    drops: Signal<Local, Bit>,
    drops_sends: Signal<Local, Bit>,
    of_answer: Signal<Local, Bit>,
    never_leaves: Signal<Local, Bit>,
    answered_pair: Signal<Local, Bits<16>>,
    leaving: Signal<Local, Message>,
    /// Jobs that were answered and haven't left.
    answered: Reg<Bits<8>>,
    answered_next: Signal<Local, Bits<8>>,
    ready_to_leave: Signal<Local, Bit>,
    passed_over: Signal<Local, Bit>,
    leaves: Signal<Local, Bit>,
    has_one: Signal<Local, Bit>,
    was_gathered: Reg<Bit>,
    frame_place: Reg<Bits<16>>,
    /// The payload at `first_place` is being sent.
    open: Reg<Bit>,
    /// It is this instead, and the second word of it is wanted.
    inline_open: Reg<Bit>,
    inline_sent: Reg<Bits<128>>,
    second_word: Reg<Bit>,

    #[is(Constant::new(!Bits::<128>::default()))]
    ones: Constant<Bits<128>>,
    // What must hold, and what it is compared with.
    /// The pair that was dropped last, and how many jobs had come by then that are still here.
    dropped_pair: Reg<Bits<16>>,
    before_drop: Reg<Bits<8>>,
    what_is_dropped_is_not_offered: Check,
    comes_into_room: Check,
    each_answer_has_a_place: Check,
    a_payload_ends_where_its_length_says: Check,
    a_message_fills_what_it_reserved: Check,
}

#[block]
impl Logic for Gather {
    fn update(&mut self) {
        // What a job reserves.
        self.length.next = self.job.data.val().length;
        if self.job.data.val().inline | self.job.data.val().refused {
            self.length.next = 0.into();
        }
        self.words.next = (self.length.val() + 7) >> 3;
        if self.job.data.val().get {
            self.words.next = 0.into();
        }
        self.used.next = self.next_place.q.val() - self.first_place.q.val();
        self.has_room.d.next = (self.used.val() <= WORDS - LONGEST) & (self.jobs.q.val() < JOBS);
        self.room.next = self.has_room.q.val();
        self.comes_into_room.ok.next = !self.job.valid.val()
            | ((self.jobs.q.val() < JOBS) & (self.used.val() + self.words.val() <= WORDS));
        self.flags.next = 0.into();
        if self.job.data.val().ready {
            self.flags.next = FLAG_READY;
        }
        self.as_message.next = Message {
            pair: self.job.data.val().pair,
            context: self.job.data.val().context,
            length: self.job.data.val().length,
            match_bits: self.job.data.val().match_bits,
            immediate: self.job.data.val().immediate,
            flags: self.flags.val(),
            put: self.job.data.val().put,
            get: self.job.data.val().get,
            answer: self.job.data.val().answer,
            refused: false,
            again: self.job.data.val().again,
            number: self.job.data.val().number,
        };
        self.inline_bytes.next = bit_cast::<128, 64>(self.job.data.val().address)
            | (bit_cast::<128, 32>(self.job.data.val().key) << 64)
            | (bit_cast::<128, 32>(self.job.data.val().tail) << 96);
        self.inline_length.next = bit_cast::<8, 16>(self.job.data.val().length);
        self.beyond.next = self.ones.val() << (self.inline_length.val() << 3);
        self.inline_payload.next = self.inline_bytes.val() & !self.beyond.val();
        self.envelopes.input.valid.next = self.job.valid.val();
        self.envelopes.input.data.next = Envelope {
            words: bit_cast::<8, 16>(self.words.val()),
            message: self.as_message.val(),
            inline: self.job.data.val().inline,
            payload: self.inline_payload.val(),
        };
        if self.job.valid.val() {
            self.next_place.d.next = self.next_place.q.val() + self.words.val();
            self.job_number.d.next = self.job_number.q.val() + 1;
        }

        self.look_at_job();
        self.ask();
        self.read();
        self.join_words();
        self.answer();

        // What isn't to be sent.
        self.drops_sends.next = self.dropped.valid.val();
        for i in 0..JOBS {
            self.drops.next = (self.drops_sends.val()
                & !self.is_answer[i].q.val()
                & (self.dropped.data.val() == self.pair[i].q.val()))
                | (self.answers_dropped.valid.val()
                    & self.is_answer[i].q.val()
                    & (self.answers_dropped.data.val() == self.pair[i].q.val()));
            self.never_leaves.next = false;
            if self.ends.val() & (self.answer_number.q.val() == i.to_bits()) {
                self.never_leaves.next = !self.sound.val() & !self.of_answer.val();
                self.missing[i].d.next = !self.sound.val();
            }
            if self.drops.val() | self.never_leaves.val() {
                self.dead[i].d.next = true;
            }
            if self.job.valid.val() & (self.job_number.q.val() == i.to_bits()) {
                self.pair[i].d.next = self.job.data.val().pair;
                self.is_answer[i].d.next = self.job.data.val().answer;
                self.dead[i].d.next = (self.drops_sends.val()
                    & !self.job.data.val().answer
                    & (self.dropped.data.val() == self.job.data.val().pair))
                    | (self.answers_dropped.valid.val()
                        & self.job.data.val().answer
                        & (self.answers_dropped.data.val() == self.job.data.val().pair));
            }
        }

        // What is, in order.
        self.ready_to_leave.next = self.envelopes.output.valid.val() & self.answered.q.val().any();
        self.passed_over.next = false;
        self.leaving.next = self.envelopes.output.data.val().message;
        for i in 0..JOBS {
            if self.frame_number.q.val() == i.to_bits() {
                self.passed_over.next = self.dead[i].q.val();
                if self.missing[i].q.val() {
                    self.leaving.next.refused = true;
                    self.leaving.next.length = 0.into();
                }
            }
        }
        send!(
            self.message,
            self.ready_to_leave.val() & !self.passed_over.val(),
            self.leaving.val()
        );
        self.leaves.next =
            self.ready_to_leave.val() & (self.passed_over.val() | self.message.ready.val());
        self.envelopes.output.ready.next = self.leaves.val();
        for i in 0..JOBS {
            if self.leaves.val() & (self.frame_number.q.val() == i.to_bits()) {
                self.dead[i].d.next = true;
            }
        }
        self.jobs_next.next = self.jobs.q.val();
        self.answered_next.next = self.answered.q.val();
        if self.leaves.val() {
            self.jobs_next.next = self.jobs.q.val() - 1;
            self.answered_next.next = self.answered.q.val() - 1;
            self.frame_number.d.next = self.frame_number.q.val() + 1;
            self.frame_place.d.next = self.frame_place.q.val()
                + bit_cast::<16, 8>(self.envelopes.output.data.val().words);
        }
        self.jobs.d.next = self.jobs_next.val();
        if self.job.valid.val() {
            self.jobs.d.next = self.jobs_next.val() + 1;
        }
        self.answered.d.next = self.answered_next.val();
        if self.ends.val() {
            self.answered.d.next = self.answered_next.val() + 1;
        }

        if self.leaves.val() & self.before_drop.q.val().any() {
            self.before_drop.d.next = self.before_drop.q.val() - 1;
        }
        if self.dropped.valid.val() {
            self.dropped_pair.d.next = self.dropped.data.val();
            self.before_drop.d.next = self.jobs_next.val();
            if self.job.valid.val() {
                self.before_drop.d.next = self.jobs_next.val() + 1;
            }
        }
        self.what_is_dropped_is_not_offered.ok.next = !self.message.valid.val()
            | self.leaving.val().answer
            | !self.before_drop.q.val().any()
            | (self.leaving.val().pair != self.dropped_pair.q.val());

        // Whether a pair has a message here.
        self.has_one.next = false;
        for i in 0..JOBS {
            if !self.dead[i].q.val() & (self.pair[i].q.val() == self.gathered_pair.val()) {
                self.has_one.next = true;
            }
        }
        self.was_gathered.d.next = self.has_one.val();
        self.gathered.next = self.was_gathered.q.val();

        // The payload that is being sent keeps its place, and with it those behind.
        if self.payload_done.val() {
            self.open.d.next = false;
        }
        if self.message.valid.val() & self.message.ready.val() {
            self.open.d.next = true;
            self.inline_open.d.next = self.envelopes.output.data.val().inline;
            self.inline_sent.d.next = self.envelopes.output.data.val().payload;
        }
        if !self.open.q.val() {
            self.first_place.d.next = self.frame_place.q.val();
        }
        self.memory.read_address.next = self.first_place.q.val() + self.payload_index.val();
        self.second_word.d.next = self.payload_index.val().get_bit(0);
        self.payload.next = self.memory.read_data.val();
        if self.inline_open.q.val() {
            self.payload.next = self.inline_sent.q.val().get_bits::<64>(0);
            if self.second_word.q.val() {
                self.payload.next = self.inline_sent.q.val().get_bits::<64>(64);
            }
        }
    }
}
