//! Holds what each message and request ends with until its payload is in memory, then says it to everybody, in order.
//!
//! ```text
//!   entry ──────► InOrder ─► head ─► complete ─► lost ─► sink_update ─► asked ─► answered ─► ended
//!   write_done ─►             │
//!                             └─► written    ▲ losing: pairs of which a message is lost ◄── forget
//! ```
//!
//! Writes are answered in the order in which they were asked for, and entries come in that order, so the oldest answer is the
//! oldest entry's that writes. An answer may come before its entry, and stays with the entry until that ends. What an entry has to
//! say is said in the order of the drawing; each word waits until it is taken, and an entry that has nothing to say ends in the
//! cycle in which it is answered and has been at the head for one.
//!
//! Once a message of a pair is lost, since its slot couldn't be written, none of the pair behind it is accepted until `forget`: one that went to a slot is
//! lost too, the receive of one that met it completes with `MemoryError`, and nothing is told of a put, a get, or one that is refused or revoked. So messages may go to
//! their slots, or to receives, before it is known what became of those in front of them.
//!
//! A get of a peer is passed on as `asked` when all before it is written, so its answer is read behind that. Of the answer of a get of this card
//! `answered` tells that it is in the buffer, or what went wrong.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use crate::prelude::*;
use crate::prim::{InOrder, Table};
use crate::types::{
    Answered, Completion, Ending, RemoteGet, SinkUpdate, SlotWritten, Slotted, WriteCompletion,
};
use abi::completion::COMPLETION_MORE;
use abi::status::Status;

/// Entries that wait for their writes: a message for every eight cycles at a memory latency of 125.
pub const ENTRIES: usize = 16;

/// Answers that wait for their entries: those of all entries and of one that is on its way.
const ANSWERS: usize = 2 * ENTRIES;

/// What 16 bits say of a number of answers that is smaller than that of the entries by more than these are many.
const TOO_FAR_BEHIND: u64 = (1 << 16) - ENTRIES as u64 - 1;

/// What a message or a request ends with, and when.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct LedgerEntry {
    /// It ends when its write has been answered.
    pub writes: Bit,
    /// The Gate has allowed its access.
    pub guarded: Bit,
    /// What it ends with.
    pub ending: Ending,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// The head waits for its write.
    Wait,
    /// Its completion is offered.
    Complete,
    /// A message whose slot couldn't be written is offered to whoever fails its pair.
    Lost,
    /// Progress of the pair is told.
    Update,
    /// A get is offered to whoever answers it.
    Ask,
    /// A get whose answer this is hears of it.
    Answer,
}

/// The block.
#[block(pairs: usize)]
pub struct Ledger {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets everything. No write may be under way.
    pub reset: Signal<In, Bit>,
    /// Its table is cleared; no entry may come before.
    pub initialized: Signal<Out, Bit>,
    /// Entries in the order of their writes.
    pub entry: Stream<In, LedgerEntry>,
    /// The oldest write has been answered: whether by an error.
    pub write_done: Pulse<In, Bit>,
    /// A completion.
    pub complete: Stream<Out, WriteCompletion>,
    /// The write of a message's slot was answered.
    pub written: Pulse<Out, SlotWritten>,
    /// By an error: the message isn't anywhere.
    pub lost: Stream<Out, Slotted>,
    /// Progress of a pair.
    pub sink_update: Stream<Out, SinkUpdate>,
    /// A get of a peer, to be answered: all before it is written.
    pub asked: Stream<Out, RemoteGet>,
    /// The answer of a get is in its buffer, or won't be.
    pub answered: Stream<Out, Answered>,
    /// Pulse: what the Gate's oldest answer that was yes allowed has ended.
    pub access_ends: Signal<Out, Bit>,
    /// Pulse: an entry has ended.
    pub ended: Signal<Out, Bit>,
    /// Pulse: a mark has ended, and so has all that came before it.
    pub marked: Signal<Out, Bit>,
    /// No entry is here.
    pub empty: Signal<Out, Bit>,
    /// No message of this pair is lost from now on. No entry of it may be here.
    pub forget: Pulse<In, Bits<16>>,

    /// With the answers to their writes: whether they were errors.
    #[is(InOrder::new(ENTRIES, ANSWERS))]
    entries: InOrder<LedgerEntry, Bit>,
    /// Pairs of which a message is lost.
    #[is(Table::new(pairs))]
    losing: Table<Bit>,
    /// The head has been here for a cycle: it is known whether its pair is one of them.
    looked: Reg<Bit>,
    /// A pair is to be forgotten.
    forgets: Reg<Bit>,
    forgotten: Reg<Bits<16>>,
    state: Reg<State>,

    head: Signal<Local, Ending>,
    head_writes: Signal<Local, Bit>,
    updates: Signal<Local, Bit>,
    /// What is accepted is told as refused.
    refuses: Signal<Local, Bit>,
    write_failed: Signal<Local, Bit>,
    status: Signal<Local, Bits<8>>,
    completion: Signal<Local, Completion>,
    /// The state in which the head says the first thing, the next after its completion, and so on. `Wait` if there is none.
    first: Signal<Local, State>,
    after_complete: Signal<Local, State>,
    after_lost: Signal<Local, State>,
    after_update: Signal<Local, State>,
    after_ask: Signal<Local, State>,
    /// The head isn't accepted, since a message of its pair in front of it is lost.
    is_behind: Signal<Local, Bit>,
    /// The head is a message that went to its slot, and isn't there, or isn't accepted.
    is_lost: Signal<Local, Bit>,
    loses: Signal<Local, Bit>,
    written_pair: Signal<Local, Bits<16>>,
    /// The state is left for `following`.
    advances: Signal<Local, Bit>,
    following: Signal<Local, State>,
    ends: Signal<Local, Bit>,

    /// Running numbers of answers, of entries with writes that have come, and of those that have ended.
    answers_come: Reg<Bits<16>>,
    writes_come: Reg<Bits<16>>,
    writes_ended: Reg<Bits<16>>,
    says_something: Signal<Local, Bit>,
    answers_ahead: Signal<Local, Bits<16>>,
    #[is(Check::new("completion_after_the_write_response"))]
    completion_after_write: Check,
    #[is(Check::new("nothing_lost_is_told_as_accepted"))]
    tells_what_is_there: Check,
    #[is(Check::new("nothing_behind_a_lost_message_is_accepted"))]
    accepts_up_to_the_lost: Check,
    #[is(Check::new("write_answers_belong_to_entries"))]
    answer_has_entry: Check,
}

impl Ledger {
    /// For the pairs of a card.
    pub fn new(pairs: usize) -> Self {
        Self::build(pairs)
    }

    /// For a proof: one of so few entries and pairs that a solver follows them.
    pub fn small(entries: usize, pairs: usize) -> Self {
        Self {
            entries: InOrder::new(entries, 2 * entries),
            ..Self::new(pairs)
        }
    }
}

#[block]
impl Logic for Ledger {
    fn update(&mut self) {
        join!(self.entry => self.entries.asked);
        join!(self.write_done => self.entries.answer);
        self.empty.next = self.entries.level.val() == 0;
        self.head.next = self.entries.output.data.val().ending;
        self.head_writes.next = self.entries.output.data.val().writes;
        self.entries.awaits.next = self.head_writes.val();
        self.write_failed.next = self.head_writes.val() & self.entries.output_answer.val();

        // Pairs that have lost a message: the head's is looked up while its write is awaited.
        self.initialized.next = self.losing.initialized.val();
        self.losing.read_address.next = self.head.val().pair;
        self.is_behind.next =
            self.losing.read_data.val() & (self.head.val().accepted | self.head.val().asks);
        self.is_lost.next =
            self.head.val().fills & (self.write_failed.val() | self.is_behind.val());
        self.refuses.next =
            self.head.val().refused | (self.head.val().put & self.write_failed.val());
        self.updates.next = !self.is_lost.val()
            & !self.is_behind.val()
            & (self.head.val().accepted | self.head.val().freed | self.head.val().refused);

        // What the head says.
        self.status.next = self.head.val().status;
        if self.write_failed.val() | self.is_behind.val() {
            self.status.next = Status::MemoryError;
        }
        self.completion.next = Completion::default();
        self.completion.next.request = self.head.val().request;
        self.completion.next.status = self.status.val();
        self.completion.next.kind = self.head.val().kind;
        self.completion.next.handle = self.head.val().handle;
        if self.head.val().of_message {
            self.completion.next.match_bits = self.head.val().match_bits;
            self.completion.next.immediate = self.head.val().immediate;
            self.completion.next.length = bit_cast::<64, 16>(self.head.val().length);
            self.completion.next.pair = self.head.val().pair;
            self.completion.next.context = self.head.val().context;
            if self.head.val().multi {
                self.completion.next.handle = 0.into();
                self.completion.next.offset = self.head.val().handle;
                self.completion.next.count = self.head.val().number.get_bits::<31>(0);
                if self.head.val().stays {
                    self.completion.next.flags = COMPLETION_MORE;
                }
            }
        } else {
            self.completion.next.offset = self.head.val().immediate.get_bits::<32>(0);
            self.completion.next.count = self.head.val().immediate.get_bits::<31>(32);
        }
        self.complete.valid.next = self.state.q.val() == State::Complete;
        self.complete.data.next = WriteCompletion {
            endpoint: self.head.val().endpoint,
            entry: self.completion.val(),
        };
        self.lost.valid.next = self.state.q.val() == State::Lost;
        self.lost.data.next = Slotted {
            pair: self.head.val().pair,
            endpoint: self.head.val().endpoint,
            slot: self.head.val().slot,
        };
        self.written.valid.next = false;
        self.written.data.next = SlotWritten {
            slot: (self.head.val().pair << 6) | bit_cast::<16, 6>(self.head.val().slot),
            failed: self.write_failed.val() | self.is_behind.val(),
        };
        self.sink_update.valid.next = self.state.q.val() == State::Update;
        self.sink_update.data.next = SinkUpdate {
            pair: self.head.val().pair,
            accepted: self.head.val().accepted,
            freed: self.head.val().freed,
            refused: self.refuses.val(),
        };
        self.asked.valid.next = self.state.q.val() == State::Ask;
        self.asked.data.next = RemoteGet {
            pair: self.head.val().pair,
            key: self.head.val().match_bits,
            offset: self.head.val().immediate,
            length: self.head.val().length,
            number: self.head.val().number,
        };
        self.answered.valid.next = self.state.q.val() == State::Answer;
        self.answered.data.next = Answered {
            pair: self.head.val().pair,
            number: self.head.val().number,
            status: self.status.val(),
        };

        // In which order.
        self.after_ask.next = State::Wait;
        if self.head.val().answers {
            self.after_ask.next = State::Answer;
        }
        self.after_update.next = self.after_ask.val();
        if self.head.val().asks & !self.is_behind.val() {
            self.after_update.next = State::Ask;
        }
        self.after_lost.next = self.after_update.val();
        if self.updates.val() {
            self.after_lost.next = State::Update;
        }
        self.after_complete.next = self.after_lost.val();
        if self.is_lost.val() {
            self.after_complete.next = State::Lost;
        }
        self.first.next = self.after_complete.val();
        if self.head.val().completes {
            self.first.next = State::Complete;
        }
        self.advances.next = false;
        self.following.next = State::Wait;
        match self.state.q.val() {
            State::Wait => {
                self.advances.next = self.entries.output.valid.val() & self.looked.q.val();
                self.following.next = self.first.val();
                if self.advances.val() {
                    self.written.valid.next = self.head.val().fills;
                }
            }
            State::Complete => {
                self.advances.next = self.complete.ready.val();
                self.following.next = self.after_complete.val();
            }
            State::Lost => {
                self.advances.next = self.lost.ready.val();
                self.following.next = self.after_lost.val();
            }
            State::Update => {
                self.advances.next = self.sink_update.ready.val();
                self.following.next = self.after_update.val();
            }
            State::Ask => {
                self.advances.next = self.asked.ready.val();
                self.following.next = self.after_ask.val();
            }
            State::Answer => {
                self.advances.next = self.answered.ready.val();
            }
        }
        if self.advances.val() {
            self.state.d.next = self.following.val();
        }
        self.access_ends.next = self.advances.val()
            & (self.state.q.val() == State::Wait)
            & self.entries.output.data.val().guarded;
        self.ends.next = self.advances.val() & (self.following.val() == State::Wait);
        self.entries.output.ready.next = self.ends.val();
        self.ended.next = self.ends.val();
        self.marked.next = self.ends.val() & self.head.val().marks;

        self.looked.d.next = self.entries.here.val() & !self.ends.val();
        self.loses.next = self.lost.valid.val() & self.lost.ready.val();
        self.written_pair.next = self.forgotten.q.val();
        if self.loses.val() {
            self.written_pair.next = self.head.val().pair;
        }
        store!(
            self.losing.write,
            self.loses.val() | self.forgets.q.val(),
            self.written_pair.val(),
            self.loses.val()
        );
        if !self.loses.val() {
            self.forgets.d.next = false;
        }
        if self.forget.valid.val() {
            self.forgets.d.next = true;
            self.forgotten.d.next = self.forget.data.val();
        }

        // By numbers, not by what the states say: nothing is said of a write that isn't answered.
        if self.write_done.valid.val() {
            self.answers_come.d.next = self.answers_come.q.val() + 1;
        }
        if self.entry.valid.val() & self.entry.ready.val() & self.entry.data.val().writes {
            self.writes_come.d.next = self.writes_come.q.val() + 1;
        }
        if self.ends.val() & self.head_writes.val() {
            self.writes_ended.d.next = self.writes_ended.q.val() + 1;
        }
        self.says_something.next = (self.state.q.val() != State::Wait) & self.head_writes.val();
        self.completion_after_write.ok.next =
            !self.says_something.val() | (self.answers_come.q.val() != self.writes_ended.q.val());
        self.tells_what_is_there.ok.next = !self.sink_update.valid.val()
            | !self.head.val().fills
            | !self.head_writes.val()
            | !self.entries.output_answer.val();
        self.accepts_up_to_the_lost.ok.next = !self.sink_update.valid.val()
            | !self.head.val().accepted
            | !self.losing.read_data.val();
        // One write is asked for before its entry comes: one answer may be ahead of the entries, and none further behind than they are many.
        self.answers_ahead.next = self.answers_come.q.val() - self.writes_come.q.val();
        self.answer_has_entry.ok.next =
            (self.answers_ahead.val() <= 1) | (self.answers_ahead.val() > TOO_FAR_BEHIND);
    }
}
