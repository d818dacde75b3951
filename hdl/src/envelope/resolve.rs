//! Sends each payload where it goes, if it may go there: one job after the other.
//!
//! ```text
//!   job ─┬─► query ─► Gate ─► allowed ─┐
//!        │                             ▼ decided
//!        └────────────────────────► current job ─► write_request
//!             payload (from the wire) ──►│
//!             data, copied (of Copies) ──┴───────► write_data, or dropped
//!                                        │
//!                                        └───────► entry, when all its words are gone
//! ```
//!
//! The Gate is asked about the next job while the words of the current one are on their way, also about that of a copy, whose buffer was asked about when the receive was
//! posted: it may have been taken away since. A payload that may not be written is dropped as
//! it comes, and the job ends with `AccessDenied`, a put as refused: nothing of it is written. The Gate also says where a put goes. Each job becomes an entry for the Ledger in the cycle
//! after its last word, so writes and entries have one order. Only one write is asked for before its entry is there.
//!
//! What the Gate refuses to a peer is counted for each pair, here or `elsewhere`: where gets are answered.

use super::ledger::LedgerEntry;
use crate::config::Config;
use crate::prelude::*;
use crate::prim::Table;
use crate::types::{Access, DmaRequest, Ending, Job, Permission, Way};
use abi::control::{RIGHT_LOCAL_WRITE, RIGHT_REMOTE_WRITE};
use abi::status::Status;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// There is no current job.
    Idle,
    /// A copy: its words aren't all in the card yet.
    Copied,
    /// The write is asked for.
    Request,
    /// Words go to memory.
    Stream,
    /// The words of a slot that couldn't be read, or that may not go where they should, are dropped.
    Discard,
    /// What is left of the payload on the wire is dropped.
    Drop,
    /// The entry is offered.
    Entry,
}

/// The block.
#[block(config: &Config)]
pub struct Resolve {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets everything, and clears the counts.
    pub reset: Signal<In, Bit>,
    /// The counts are cleared. No job is taken before.
    pub initialized: Signal<Out, Bit>,
    /// Jobs of Copies.
    pub job: Stream<In, Job>,
    /// May the buffer of a hit be written, or the memory of a put? One question at a time.
    pub query: Stream<Out, Access>,
    /// The answer, at least a cycle after its question was taken.
    pub allowed: Pulse<In, Permission>,
    /// Words from the wire, those of each payload in the order of their jobs.
    pub payload: Stream<In, Bits<64>>,
    /// Words from slots.
    pub data: Stream<In, Bits<64>>,
    /// All words of the oldest copy are in the card: the bit says that its read failed.
    pub copied: Stream<In, Bit>,
    /// Write client of `DmaWrite`.
    pub write_request: Stream<Out, DmaRequest>,
    /// Words of the write that was asked for last.
    pub write_data: Stream<Out, Bits<64>>,
    /// What each job ends with.
    pub entry: Stream<Out, LedgerEntry>,
    /// A get of this pair's peer was refused. It is taken within a few cycles.
    pub elsewhere: Stream<In, Bits<16>>,
    /// Pair whose count is read; it follows one cycle later.
    pub refused_pair: Signal<In, Bits<16>>,
    /// Accesses of its peer that the Gate refused; 0 for a number that is no pair.
    pub refused_count: Signal<Out, Bits<32>>,
    /// The count of this pair is zero from now on. No job of the pair may be here; what was refused `elsewhere` and isn't counted yet is forgotten.
    pub forget: Pulse<In, Bits<16>>,

    // The next job: what the Gate says about it.
    asked: Reg<Bit>,
    answered: Reg<Bit>,
    granted: Reg<Bit>,
    /// Card address of the put's first byte.
    located: Reg<Bits<64>>,
    is_put: Signal<Local, Bit>,
    is_copy: Signal<Local, Bit>,
    /// It goes from the wire to memory that the Gate guards.
    goes_to_host: Signal<Local, Bit>,
    needs_query: Signal<Local, Bit>,
    may_write: Signal<Local, Bit>,
    refuses: Signal<Local, Bit>,
    free: Signal<Local, Bit>,
    takes: Signal<Local, Bit>,

    // The current job.
    state: Reg<State>,
    current: Reg<Job>,
    /// Words that still go to memory, or of a slot.
    words: Reg<Bits<16>>,
    /// Words of the payload that are still on the wire.
    rest: Reg<Bits<16>>,
    writes: Reg<Bit>,
    /// The Gate has allowed its access.
    guarded: Reg<Bit>,
    refused: Reg<Bit>,
    read_failed: Reg<Bit>,
    starts_write: Signal<Local, Bit>,
    new_words: Signal<Local, Bits<16>>,
    arriving_words: Signal<Local, Bits<16>>,
    new_rest: Signal<Local, Bits<16>>,
    from_slot: Signal<Local, Bit>,
    unreadable: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
    ending: Signal<Local, Ending>,

    // Refused accesses of each pair: the same counts twice, since two places are read in a cycle.
    #[is(Table::new(config.pairs))]
    counts: Table<Bits<32>>,
    #[is(Table::new(config.pairs))]
    shown: Table<Bits<32>>,
    /// The current job was refused, or something elsewhere: the count so far comes out of the memory.
    looking_up: Reg<Bit>,
    /// It is here, and the new one isn't written yet.
    counting: Reg<Bit>,
    refusals_before: Reg<Bits<32>>,
    /// What is counted was refused elsewhere, and to this pair.
    from_elsewhere: Reg<Bit>,
    counting_pair: Reg<Bits<16>>,
    /// Nothing is being counted.
    rests: Signal<Local, Bit>,
    /// The current job isn't to be counted any more.
    counted: Signal<Local, Bit>,
    takes_elsewhere: Signal<Local, Bit>,
    /// The pair of what is counted is forgotten in this cycle.
    forgets_counted: Signal<Local, Bit>,
    counts_now: Signal<Local, Bit>,
    written_count: Signal<Local, Bits<32>>,
    written_pair: Signal<Local, Bits<16>>,
    shown_exists: Reg<Bit>,
    #[is(constant(config.pairs as u64))]
    pair_count: Constant<Bits<16>>,

    /// The current job needs no yes of the Gate, or has it.
    permitted: Reg<Bit>,
    is_guarded: Signal<Local, Bit>,
    #[is(Check::new("what_is_guarded_is_written_with_a_yes"))]
    writes_the_permitted: Check,
    #[is(Check::new("the_gate_answers_what_it_was_asked"))]
    answer_has_question: Check,
    #[is(Check::new("no_more_is_written_than_arrives"))]
    writes_what_arrives: Check,
}

impl Resolve {
    /// For the pairs of `config`.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(pairs = self.pair_count.val().index())]
impl Logic for Resolve {
    fn update(&mut self) {
        self.initialized.next = self.counts.initialized.val();

        // The next job: the Gate is asked while the current one is still here.
        self.is_put.next = self.job.data.val().way == Way::Put;
        self.is_copy.next = self.job.data.val().way == Way::Copy;
        self.goes_to_host.next = (self.job.data.val().way == Way::Hit) | self.is_put.val();
        self.needs_query.next =
            (self.goes_to_host.val() | self.is_copy.val()) & self.job.data.val().length.any();
        self.query.valid.next = self.job.valid.val()
            & self.needs_query.val()
            & !self.asked.q.val()
            & self.counts.initialized.val();
        self.query.data.next = Access::default();
        self.query.data.next.buffer.domain = self.job.data.val().domain;
        self.query.data.next.buffer.key = self.job.data.val().key;
        self.query.data.next.buffer.rights = RIGHT_LOCAL_WRITE;
        self.query.data.next.buffer.address = self.job.data.val().target;
        self.query.data.next.buffer.length = bit_cast::<64, 16>(self.job.data.val().length);
        self.query.data.next.pair = self.job.data.val().ending.pair;
        self.query.data.next.tagged = self.job.data.val().ending.of_message;
        self.query.data.next.context = self.job.data.val().ending.context;
        if self.is_put.val() {
            self.query.data.next.buffer.rights = RIGHT_REMOTE_WRITE;
            self.query.data.next.remote = true;
            self.query.data.next.remote_key = self.job.data.val().source;
        }
        if self.query.valid.val() & self.query.ready.val() {
            self.asked.d.next = true;
        }
        if self.allowed.valid.val() {
            self.answered.d.next = true;
            self.granted.d.next = self.allowed.data.val().allowed;
            self.located.d.next = self.allowed.data.val().address;
        }
        self.answer_has_question.ok.next =
            !self.allowed.valid.val() | (self.asked.q.val() & !self.answered.q.val());
        self.may_write.next = !self.needs_query.val() | self.granted.q.val();
        self.refuses.next = self.needs_query.val() & !self.may_write.val();

        // It becomes the current one.
        self.rests.next = !self.looking_up.q.val() & !self.counting.q.val();
        self.counted.next = self.rests.val() | self.from_elsewhere.q.val();
        self.free.next = (self.state.q.val() == State::Idle)
            | ((self.state.q.val() == State::Entry) & self.counted.val() & self.entry.ready.val());
        self.takes.next = self.job.valid.val()
            & (!self.needs_query.val() | self.answered.q.val())
            & self.free.val()
            & (!self.refuses.val() | self.rests.val())
            & self.counts.initialized.val();
        self.job.ready.next = self.takes.val();
        self.new_words.next = (self.job.data.val().length + 7) >> 3;
        self.arriving_words.next = (self.job.data.val().arrived + 7) >> 3;
        self.new_rest.next = 0.into();
        if self.goes_to_host.val()
            | (self.job.data.val().way == Way::Slot)
            | (self.job.data.val().way == Way::Drop)
        {
            self.new_rest.next = self.arriving_words.val();
        }
        self.writes_what_arrives.ok.next = !self.takes.val()
            | (!self.goes_to_host.val() & (self.job.data.val().way != Way::Slot))
            | (self.new_words.val() <= self.arriving_words.val());
        self.is_guarded.next = (self.job.data.val().way == Way::Hit)
            | (self.job.data.val().way == Way::Put)
            | (self.job.data.val().way == Way::Copy);
        if self.takes.val() {
            self.permitted.d.next =
                !self.is_guarded.val() | (self.answered.q.val() & self.granted.q.val());
        }
        self.starts_write.next = (self.goes_to_host.val() | (self.job.data.val().way == Way::Slot))
            & self.job.data.val().length.any()
            & self.may_write.val();

        // Its words.
        self.from_slot.next = self.current.q.val().way == Way::Copy;
        self.unreadable.next = self.copied.data.val();
        self.copied.ready.next = false;
        self.payload.ready.next = false;
        self.data.ready.next = false;
        self.write_request.valid.next = false;
        self.write_request.data.next = DmaRequest {
            address: self.current.q.val().target,
            length: self.current.q.val().length,
        };
        self.write_data.valid.next = false;
        self.write_data.data.next = self.payload.data.val();
        if self.from_slot.val() {
            self.write_data.data.next = self.data.data.val();
        }
        self.moves.next = false;
        match self.state.q.val() {
            State::Copied => {
                self.copied.ready.next = true;
                if self.copied.valid.val() {
                    self.read_failed.d.next = self.copied.data.val();
                    self.state.d.next = State::Request;
                    if self.unreadable.val() | self.refused.q.val() {
                        self.state.d.next = State::Discard;
                    }
                }
            }
            State::Request => {
                self.write_request.valid.next = true;
                if self.write_request.ready.val() {
                    self.writes.d.next = true;
                    self.state.d.next = State::Stream;
                }
            }
            State::Stream => {
                if self.from_slot.val() {
                    self.write_data.valid.next = self.data.valid.val();
                    self.data.ready.next = self.write_data.ready.val();
                    self.moves.next = self.data.valid.val() & self.write_data.ready.val();
                } else {
                    self.write_data.valid.next = self.payload.valid.val();
                    self.payload.ready.next = self.write_data.ready.val();
                    self.moves.next = self.payload.valid.val() & self.write_data.ready.val();
                }
                if self.moves.val() {
                    self.words.d.next = self.words.q.val() - 1;
                    if !self.from_slot.val() {
                        self.rest.d.next = self.rest.q.val() - 1;
                    }
                    if self.words.q.val() == 1 {
                        self.state.d.next = State::Entry;
                        if !self.from_slot.val() & (self.rest.q.val() != 1) {
                            self.state.d.next = State::Drop;
                        }
                    }
                }
            }
            State::Discard => {
                self.data.ready.next = true;
                if self.data.valid.val() {
                    self.words.d.next = self.words.q.val() - 1;
                    if self.words.q.val() == 1 {
                        self.state.d.next = State::Entry;
                    }
                }
            }
            State::Drop => {
                self.payload.ready.next = self.rest.q.val().any();
                if self.payload.valid.val() & self.rest.q.val().any() {
                    self.rest.d.next = self.rest.q.val() - 1;
                }
                if !self.rest.q.val().any() | (self.payload.valid.val() & (self.rest.q.val() == 1))
                {
                    self.state.d.next = State::Entry;
                }
            }
            State::Entry => {
                if self.free.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {}
        }

        self.writes_the_permitted.ok.next =
            !self.write_request.valid.val() | self.permitted.q.val();

        // What it ends with.
        self.ending.next = self.current.q.val().ending;
        if self.refused.q.val() {
            self.ending.next.status = Status::AccessDenied;
            self.ending.next.refused = self.current.q.val().ending.put;
        }
        if self.read_failed.q.val() {
            self.ending.next.status = Status::MemoryError;
        }
        self.entry.valid.next = (self.state.q.val() == State::Entry) & self.counted.val();
        self.entry.data.next = LedgerEntry {
            writes: self.writes.q.val(),
            guarded: self.guarded.q.val(),
            ending: self.ending.val(),
        };

        if self.takes.val() {
            self.asked.d.next = false;
            self.answered.d.next = false;
            self.current.d.next = self.job.data.val();
            if self.is_put.val() {
                self.current.d.next.target = self.located.q.val();
            }
            self.words.d.next = self.new_words.val();
            self.rest.d.next = self.new_rest.val();
            self.writes.d.next = false;
            self.guarded.d.next = self.needs_query.val() & self.granted.q.val();
            self.refused.d.next = self.refuses.val();
            self.read_failed.d.next = false;
            self.state.d.next = State::Drop;
            if self.job.data.val().way == Way::Ends {
                self.state.d.next = State::Entry;
            }
            if self.job.data.val().way == Way::Copy {
                self.state.d.next = State::Entry;
                if self.job.data.val().length.any() {
                    self.state.d.next = State::Copied;
                }
            }
            if self.starts_write.val() {
                self.state.d.next = State::Request;
            }
        }

        // Refusals: looked up in the cycle in which the job is taken, or what was refused elsewhere, known in the next, written in that after it.
        self.takes_elsewhere.next = self.elsewhere.valid.val()
            & self.rests.val()
            & !self.takes.val()
            & self.counts.initialized.val();
        self.elsewhere.ready.next = self.takes_elsewhere.val();
        self.counts.read_address.next = self.job.data.val().ending.pair;
        if self.takes_elsewhere.val() {
            self.counts.read_address.next = self.elsewhere.data.val();
        }
        self.forgets_counted.next = self.forget.valid.val()
            & self.from_elsewhere.q.val()
            & (self.forget.data.val() == self.counting_pair.q.val());
        self.counts_now.next = self.counting.q.val() & !self.forget.valid.val();
        if self.looking_up.q.val() {
            self.looking_up.d.next = false;
            self.counting.d.next = !self.forgets_counted.val();
            self.refusals_before.d.next = self.counts.read_data.val();
        }
        if self.counts_now.val() | self.forgets_counted.val() {
            self.counting.d.next = false;
        }
        if self.takes.val() & self.refuses.val() {
            self.looking_up.d.next = true;
            self.from_elsewhere.d.next = false;
            self.counting_pair.d.next = self.job.data.val().ending.pair;
        }
        if self.takes_elsewhere.val() {
            self.looking_up.d.next =
                !self.forget.valid.val() | (self.forget.data.val() != self.elsewhere.data.val());
            self.from_elsewhere.d.next = true;
            self.counting_pair.d.next = self.elsewhere.data.val();
        }
        self.written_pair.next = self.counting_pair.q.val();
        self.written_count.next = self.refusals_before.q.val() + 1;
        if self.forget.valid.val() {
            self.written_pair.next = self.forget.data.val();
            self.written_count.next = 0.into();
        }
        store!(
            self.counts.write,
            self.forget.valid.val() | self.counts_now.val(),
            self.written_pair.val(),
            self.written_count.val()
        );
        store!(
            self.shown.write,
            self.forget.valid.val() | self.counts_now.val(),
            self.written_pair.val(),
            self.written_count.val()
        );
        self.shown.read_address.next = self.refused_pair.val();
        self.shown_exists.d.next = self.refused_pair.val() < self.pair_count.val();
        self.refused_count.next = 0.into();
        if self.shown_exists.q.val() {
            self.refused_count.next = self.shown.read_data.val();
        }
    }
}
