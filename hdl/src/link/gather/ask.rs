//! A job's segments, one after the other: whether each may be read, and its read.
//!
//! ```text
//!   job ──► to ask ── segment `at` ─┬─► query          to read ── with its answer ──► read_request, under way
//!                                   └─► to read ─┘
//! ```
//!
//! An empty segment is neither asked for nor read. A job without any byte passes both queues as one empty segment, and begins behind the questions if
//! there are none before it.

use super::{Gather, ToAsk, ToRead, UnderWay};
use crate::config::JOBS;
use crate::prelude::*;
use crate::types::{DmaRequest, RegionQuery, Segment};
use abi::control::RIGHT_LOCAL_READ;

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
        };
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
        self.asked.next = RegionQuery::default();
        self.asked.next.domain = self.to_ask.output.data.val().domain;
        self.asked.next.key = self.piece.val().key;
        self.asked.next.rights = RIGHT_LOCAL_READ;
        self.asked.next.address = self.piece.val().address;
        self.asked.next.length = bit_cast::<64, 11>(self.piece.val().length);
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
            address: self.piece.val().address,
            length: bit_cast::<16, 11>(self.piece.val().length),
            last: !self.more.val(),
            words: self.to_ask.output.data.val().words,
        };
        if self.asks_nothing.val() {
            self.new_to_read.next = ToRead::default();
            self.new_to_read.next.last = true;
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
        self.has_answer.next = self.answers_held.q.val().any();
        self.may_read.next = self.answers.q.val().get_bit(0);
        self.reads.next = self.to_read.output.valid.val()
            & self.under_way.input.ready.val()
            & self.asks.val()
            & self.has_answer.val()
            & self.may_read.val();
        self.wanted.next = DmaRequest {
            address: self.to_read.output.data.val().address,
            length: self.to_read.output.data.val().length,
        };
        send!(self.read_request, self.reads.val(), self.wanted.val());
        self.goes_on.next = self.to_read.output.valid.val()
            & self.under_way.input.ready.val()
            & (!self.asks.val() | (self.has_answer.val() & !self.may_read.val()))
            | (self.reads.val() & self.read_request.ready.val());
        self.to_read.output.ready.next = self.goes_on.val();
        self.read_words.next = (self.to_read.output.data.val().length + 7) >> 3;
        self.under_way.input.valid.next = self.goes_on.val();
        self.under_way.input.data.next = UnderWay {
            words: bit_cast::<8, 16>(self.read_words.val()),
            tail: self.to_read.output.data.val().length.get_bits::<3>(0),
            last: self.to_read.output.data.val().last,
            whole: self.to_read.output.data.val().words,
            reads: self.reads.val(),
            refused: self.asks.val() & !self.reads.val(),
        };
    }

    /// Answers come in the order of the questions, and are used in that order.
    pub(super) fn take_answers(&mut self) {
        self.answers_left.next = self.answers.q.val();
        self.answers_count.next = self.answers_held.q.val();
        if self.goes_on.val() & self.asks.val() {
            self.answers_left.next = self.answers.q.val() >> 1;
            self.answers_count.next = self.answers_held.q.val() - 1;
        }
        self.answers_added.next = self.answers_left.val();
        for i in 0..JOBS {
            if self.answers_count.val() == i.to_bits() {
                self.answers_added.next = self
                    .answers_left
                    .val()
                    .replace_bit(i, self.allowed.data.val());
            }
        }
        self.answers.d.next = self.answers_left.val();
        self.answers_held.d.next = self.answers_count.val();
        if self.allowed.valid.val() {
            self.answers.d.next = self.answers_added.val();
            self.answers_held.d.next = self.answers_count.val() + 1;
        }
    }
}
