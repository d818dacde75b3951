//! A job's segments, one after the other: whether each may be read, and its read.
//!
//! ```text
//!   job ──► to ask ── segment `at` ─┬─► query          to read ── with its answer ──► read_request, under way
//!                                   └─► to read ─┘
//! ```
//!
//! An answer is one segment, of the memory that a remote key opens; a get's are asked for and not read. Each is read where its answer says that it is.
//!
//! An empty segment is neither asked for nor read. A job without any byte passes both queues as one empty segment, and begins behind the questions if
//! there are none before it.

use super::{Gather, ToAsk, ToRead, UnderWay};
use crate::prelude::*;
use crate::types::{Access, DmaRequest, Segment};
use abi::control::{RIGHT_LOCAL_READ, RIGHT_LOCAL_WRITE, RIGHT_REMOTE_READ};

#[block]
impl Gather {
    /// What is to be asked for of the job that comes.
    pub(super) fn look_at_job(&mut self) {
        self.segments.next = self.job.data.val().segments;
        self.behind_first.next = self.segments.val().second.length
            + self.segments.val().third.length
            + self.segments.val().fourth.length;
        self.first.next = self.length.val() - bit_cast::<16, 11>(self.behind_first.val());
        self.asks_nothing.next =
            self.job.valid.val() & !self.length.val().any() & !self.to_ask.level.val().any();
        self.to_ask.input.valid.next =
            self.job.valid.val() & !(self.asks_nothing.val() & self.to_read.input.ready.val());
        self.to_ask.input.data.next = ToAsk {
            domain: self.job.data.val().domain,
            key: self.job.data.val().key,
            address: self.job.data.val().address,
            length: bit_cast::<11, 16>(self.first.val()),
            segments: self.segments.val(),
            words: bit_cast::<8, 16>(self.words.val()),
            get: self.job.data.val().get,
            answer: self.job.data.val().answer,
            refused: self.job.data.val().refused,
            pair: self.job.data.val().pair,
            remote_key: self.job.data.val().match_bits,
            tagged: !self.job.data.val().put
                & !self.job.data.val().get
                & !self.job.data.val().answer,
            context: self.job.data.val().context,
        };
        if self.job.data.val().answer {
            self.to_ask.input.data.next.address = self.job.data.val().immediate;
        }
    }

    /// Whether the next segment may be read.
    pub(super) fn ask(&mut self) {
        self.following.next = self.to_ask.output.data.val().segments;
        self.second.next = self.following.val().second;
        self.third.next = self.following.val().third;
        self.fourth.next = self.following.val().fourth;
        self.piece.next = Segment {
            address: self.to_ask.output.data.val().address,
            key: self.to_ask.output.data.val().key,
            length: self.to_ask.output.data.val().length,
        };
        self.more.next = self.second.val().length.any()
            | self.third.val().length.any()
            | self.fourth.val().length.any();
        if self.at.q.val() == 1 {
            self.piece.next = self.second.val();
            self.more.next = self.third.val().length.any() | self.fourth.val().length.any();
        }
        if self.at.q.val() == 2 {
            self.piece.next = self.third.val();
            self.more.next = self.fourth.val().length.any();
        }
        if self.at.q.val() == 3 {
            self.piece.next = self.fourth.val();
            self.more.next = false;
        }
        self.is_empty.next = !self.piece.val().length.any();
        self.asked.next = Access::default();
        self.asked.next.buffer.domain = self.to_ask.output.data.val().domain;
        self.asked.next.buffer.key = self.piece.val().key;
        self.asked.next.buffer.rights = RIGHT_LOCAL_READ;
        if self.to_ask.output.data.val().get {
            self.asked.next.buffer.rights = RIGHT_LOCAL_WRITE;
        }
        self.asked.next.buffer.address = self.piece.val().address;
        self.asked.next.buffer.length = bit_cast::<64, 11>(self.piece.val().length);
        self.asked.next.pair = self.to_ask.output.data.val().pair;
        self.asked.next.tagged = self.to_ask.output.data.val().tagged;
        self.asked.next.context = self.to_ask.output.data.val().context;
        if self.to_ask.output.data.val().answer {
            self.asked.next.buffer.rights = RIGHT_REMOTE_READ;
            self.asked.next.remote = true;
            self.asked.next.remote_key = self.to_ask.output.data.val().remote_key;
        }
        send!(
            self.query,
            self.to_ask.output.valid.val() & !self.is_empty.val() & self.to_read.input.ready.val(),
            self.asked.val()
        );
        self.skips.next = self.to_ask.output.valid.val() & self.is_empty.val() & self.more.val();
        self.moves.next = self.to_ask.output.valid.val()
            & self.to_read.input.ready.val()
            & ((self.is_empty.val() & !self.more.val())
                | (!self.is_empty.val() & self.query.ready.val()));
        self.to_ask.output.ready.next = self.moves.val() & !self.more.val();
        if self.skips.val() | self.moves.val() {
            self.at.d.next = self.at.q.val() + 1;
        }
        if self.moves.val() & !self.more.val() {
            self.at.d.next = 0.into();
        }
        self.new_to_read.next = ToRead {
            length: bit_cast::<16, 11>(self.piece.val().length),
            last: !self.more.val(),
            words: self.to_ask.output.data.val().words,
            get: self.to_ask.output.data.val().get,
            answer: self.to_ask.output.data.val().answer,
            refused: self.to_ask.output.data.val().refused,
        };
        if self.asks_nothing.val() {
            self.new_to_read.next = ToRead::default();
            self.new_to_read.next.last = true;
            self.new_to_read.next.answer = self.job.data.val().answer;
            self.new_to_read.next.refused = self.job.data.val().refused;
        }
        send!(
            self.to_read.input,
            self.moves.val() | self.asks_nothing.val(),
            self.new_to_read.val()
        );
    }

    /// The next segment's read, once its answer is there. One of length zero has neither.
    pub(super) fn read(&mut self) {
        self.asks.next = self.to_read.output.data.val().length.any();
        self.has_answer.next = self.answers.output.valid.val();
        self.may_read.next = self.answers.output.data.val().allowed;
        self.reads.next = self.to_read.output.valid.val()
            & self.under_way.input.ready.val()
            & self.asks.val()
            & self.has_answer.val()
            & self.may_read.val()
            & !self.to_read.output.data.val().get;
        self.wanted.next = DmaRequest {
            address: self.answers.output.data.val().address,
            length: self.to_read.output.data.val().length,
        };
        send!(self.read_request, self.reads.val(), self.wanted.val());
        self.goes_on.next = self.to_read.output.valid.val()
            & self.under_way.input.ready.val()
            & (!self.asks.val()
                | (self.has_answer.val()
                    & (!self.may_read.val() | self.to_read.output.data.val().get)))
            | (self.reads.val() & self.read_request.ready.val());
        self.to_read.output.ready.next = self.goes_on.val();
        // Answers come in the order of the questions, and are used in that order.
        self.answers.output.ready.next = self.goes_on.val() & self.asks.val();
        send!(
            self.answers.input,
            self.allowed.valid.val(),
            self.allowed.data.val()
        );
        self.each_answer_has_a_place.ok.next =
            !self.allowed.valid.val() | self.answers.input.ready.val();
        self.read_words.next = (self.to_read.output.data.val().length + 7) >> 3;
        self.under_way.input.valid.next = self.goes_on.val();
        self.under_way.input.data.next = UnderWay {
            words: bit_cast::<8, 16>(self.read_words.val()),
            tail: self.to_read.output.data.val().length.get_bits::<3>(0),
            last: self.to_read.output.data.val().last,
            whole: self.to_read.output.data.val().words,
            reads: self.reads.val(),
            allowed: self.asks.val() & self.may_read.val(),
            refused: self.to_read.output.data.val().refused
                | (self.asks.val() & !self.may_read.val()),
            answer: self.to_read.output.data.val().answer,
        };
    }
}
