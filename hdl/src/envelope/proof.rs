//! A Ledger, and one of its entries followed from its coming to its end.
//!
//! ```text
//!   any entries, ─┬─► Ledger ──► written, complete, … ended ┐
//!   any answers   │                                         ├─► Check: of the entry whose turn it is, once, in order
//!                 └─► one entry, its turn, its write ───────┘
//! ```
//!
//! The solver chooses which entry is followed. It has its turn when as many entries have ended as were here when it came. Its write is the n-th if n − 1
//! entries with writes came before it, and the n-th answer is its answer. What it says is compared with what came.

use super::breaks;
use super::ledger::{Ledger, LedgerEntry};
use crate::prelude::*;
use crate::proofs::{Method, Proof};
use crate::types::{Completion, Ending};
use crate::verilog::Break;
use abi::completion::COMPLETION_MORE;
use abi::status::Status;

/// Entries of the Ledger that is proved.
const ENTRIES: usize = 2;
/// Pairs of the Ledger that is proved.
const PAIRS: usize = 2;
/// Cycles in which an entry whose turn it is may be silent: its word comes out of the queue, and its answer's, and its pair is looked up.
const PATIENCE: u64 = 3;

/// What an entry says, in this order, each a bit of a mask.
mod say {
    pub const ACCESS_ENDS: usize = 0;
    pub const WRITTEN: usize = 1;
    pub const COMPLETE: usize = 2;
    pub const LOST: usize = 3;
    pub const UPDATE: usize = 4;
    pub const ASKED: usize = 5;
    pub const ANSWERED: usize = 6;
}

/// The Ledger and the entry.
#[block]
pub struct LedgerProof {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// An entry comes.
    pub entry: Pulse<In, LedgerEntry>,
    /// It is followed, unless another is.
    pub follow: Signal<In, Bit>,
    /// A write is answered, if one is under way: those of the entries, and one whose entry comes next.
    pub answer: Pulse<In, Bit>,
    /// What is offered is taken.
    pub takes: Signal<In, Bits<5>>,
    /// The losses of a pair are forgotten, if no entry is here.
    pub forget: Pulse<In, Bits<1>>,
    #[is(Ledger::small(ENTRIES, PAIRS))]
    block: Ledger,
    /// Pairs that have lost a message.
    losing: Reg<Bits<2>>,
    /// The losses of a pair are forgotten in this cycle, or were in the last.
    forgets_now: Signal<Local, Bit>,
    forgot: Reg<Bit>,
    /// A bit for the pair of what is lost, of what is forgotten, and of the entry that is followed.
    lost_bit: Signal<Local, Bits<2>>,
    forgotten_bit: Signal<Local, Bits<2>>,
    my_bit: Signal<Local, Bits<2>>,
    /// A message in front of the entry that is followed is lost: as it was when its turn began.
    is_behind: Signal<Local, Bit>,
    was_behind: Reg<Bit>,
    had_turn: Reg<Bit>,
    /// Running numbers, modulo 16: of entries that have come and ended, of writes that have come with entries and been answered.
    come: Reg<Bits<4>>,
    ended: Reg<Bits<4>>,
    writes: Reg<Bits<4>>,
    answers: Reg<Bits<4>>,
    /// The last answer.
    last_error: Reg<Bit>,
    there: Reg<Bit>,
    mine: Reg<LedgerEntry>,
    my_number: Reg<Bits<4>>,
    my_write: Reg<Bits<4>>,
    /// Its write has been answered: by an error.
    answered: Reg<Bit>,
    my_error: Reg<Bit>,
    /// What it has said before this cycle.
    said: Reg<Bits<7>>,
    silent: Reg<Bits<4>>,
    level: Signal<Local, Bits<4>>,
    offers_entry: Signal<Local, Bit>,
    comes: Signal<Local, Bit>,
    answers_now: Signal<Local, Bit>,
    my_answer_now: Signal<Local, Bit>,
    turn: Signal<Local, Bit>,
    may_speak: Signal<Local, Bit>,
    error: Signal<Local, Bit>,
    /// It is told as an error.
    fails: Signal<Local, Bit>,
    ending: Signal<Local, Ending>,
    /// What it has to say,
    due: Signal<Local, Bits<7>>,
    /// what is said in this cycle,
    offers: Signal<Local, Bits<7>>,
    /// what has been heard of that, or is in this cycle,
    heard: Signal<Local, Bits<7>>,
    /// and what is due and hasn't.
    missing: Signal<Local, Bits<7>>,
    update_due: Signal<Local, Bit>,
    is_lost: Signal<Local, Bit>,
    speaks: Signal<Local, Bit>,
    status: Signal<Local, Bits<8>>,
    completion: Signal<Local, Completion>,
    only_entries_speak: Check,
    nothing_is_said_before_the_answer: Check,
    says_what_is_due: Check,
    says_it_in_order: Check,
    says_all_of_it: Check,
    says_it_of_this_entry: Check,
    completes_as_it_came: Check,
    goes_on: Check,
    empty_without_entries: Check,
}

#[block]
impl Logic for LedgerProof {
    fn update(&mut self) {
        self.run();
        self.follow();
        self.compare();
    }
}

#[block]
impl LedgerProof {
    /// The Ledger, as it may be used.
    fn run(&mut self) {
        self.level.next = self.come.q.val() - self.ended.q.val();
        self.forgets_now.next =
            self.forget.valid.val() & (self.level.val() == 0) & self.block.initialized.val();
        self.forgot.d.next = self.forgets_now.val();
        send!(
            self.block.forget,
            self.forgets_now.val(),
            bit_cast::<16, 1>(self.forget.data.val())
        );
        self.offers_entry.next = self.entry.valid.val()
            & self.block.initialized.val()
            & !self.forgets_now.val()
            & !self.forgot.q.val();
        send!(
            self.block.entry,
            self.offers_entry.val(),
            self.entry.data.val()
        );
        self.comes.next = self.offers_entry.val() & self.block.entry.ready.val();
        self.answers_now.next =
            self.answer.valid.val() & (self.answers.q.val() != self.writes.q.val() + 1);
        send!(
            self.block.write_done,
            self.answers_now.val(),
            self.answer.data.val()
        );
        self.block.complete.ready.next = self.takes.val().get_bit(0);
        self.block.lost.ready.next = self.takes.val().get_bit(1);
        self.block.sink_update.ready.next = self.takes.val().get_bit(2);
        self.block.asked.ready.next = self.takes.val().get_bit(3);
        self.block.answered.ready.next = self.takes.val().get_bit(4);

        if self.comes.val() {
            self.come.d.next = self.come.q.val() + 1;
        }
        if self.comes.val() & self.entry.data.val().writes {
            self.writes.d.next = self.writes.q.val() + 1;
        }
        if self.answers_now.val() {
            self.answers.d.next = self.answers.q.val() + 1;
            self.last_error.d.next = self.answer.data.val();
        }
        if self.block.ended.val() {
            self.ended.d.next = self.ended.q.val() + 1;
        }
        self.lost_bit.next = bits::<2>(1) << self.block.lost.data.val().pair.get_bits::<1>(0);
        self.forgotten_bit.next = bits::<2>(1) << self.forget.data.val();
        if self.block.lost.valid.val() & self.takes.val().get_bit(1) {
            self.losing.d.next = self.losing.q.val() | self.lost_bit.val();
        }
        if self.forgets_now.val() {
            self.losing.d.next = self.losing.q.val() & !self.forgotten_bit.val();
        }
    }

    /// The entry that is followed.
    fn follow(&mut self) {
        self.my_answer_now.next = self.answers_now.val()
            & !self.answered.q.val()
            & (self.answers.q.val() == self.my_write.q.val());
        if self.there.q.val() & self.my_answer_now.val() {
            self.answered.d.next = true;
            self.my_error.d.next = self.answer.data.val();
        }
        if self.comes.val() & self.follow.val() & !self.there.q.val() {
            self.there.d.next = true;
            self.mine.d.next = self.entry.data.val();
            self.my_number.d.next = self.come.q.val();
            self.my_write.d.next = self.writes.q.val();
            // Its answer may be here before it, or come with it.
            self.answered.d.next = self.answers.q.val() == self.writes.q.val() + 1;
            self.my_error.d.next = self.last_error.q.val();
            if self.answers_now.val() & (self.answers.q.val() == self.writes.q.val()) {
                self.answered.d.next = true;
                self.my_error.d.next = self.answer.data.val();
            }
            self.said.d.next = 0.into();
            self.silent.d.next = 0.into();
        }
        self.turn.next = self.there.q.val() & (self.my_number.q.val() == self.ended.q.val());
        self.may_speak.next = self.turn.val() & (!self.mine.q.val().writes | self.answered.q.val());
        self.error.next = self.mine.q.val().writes & self.my_error.q.val();

        // What is due.
        self.ending.next = self.mine.q.val().ending;
        self.my_bit.next = bits::<2>(1) << self.ending.val().pair.get_bits::<1>(0);
        self.had_turn.d.next = self.turn.val() & !self.block.ended.val();
        self.is_behind.next = (self.ending.val().accepted | self.ending.val().asks)
            & (self.losing.q.val() & self.my_bit.val()).any();
        if self.had_turn.q.val() {
            self.is_behind.next = self.was_behind.q.val();
        }
        self.was_behind.d.next = self.is_behind.val();
        self.fails.next = self.error.val() | self.is_behind.val();
        self.is_lost.next = self.ending.val().fills & self.fails.val();
        self.update_due.next = !self.is_lost.val()
            & !self.is_behind.val()
            & (self.ending.val().accepted | self.ending.val().freed | self.ending.val().refused);
        self.due.next = 0.into();
        if self.mine.q.val().guarded {
            self.due.next = self.due.val().replace_bit(say::ACCESS_ENDS, true);
        }
        if self.ending.val().fills {
            self.due.next = self.due.val().replace_bit(say::WRITTEN, true);
        }
        if self.ending.val().completes {
            self.due.next = self.due.val().replace_bit(say::COMPLETE, true);
        }
        if self.is_lost.val() {
            self.due.next = self.due.val().replace_bit(say::LOST, true);
        }
        if self.update_due.val() {
            self.due.next = self.due.val().replace_bit(say::UPDATE, true);
        }
        if self.ending.val().asks & !self.is_behind.val() {
            self.due.next = self.due.val().replace_bit(say::ASKED, true);
        }
        if self.ending.val().answers {
            self.due.next = self.due.val().replace_bit(say::ANSWERED, true);
        }
        self.status.next = self.ending.val().status;
        if self.fails.val() {
            self.status.next = Status::MemoryError;
        }
        self.completion.next = Completion::default();
        self.completion.next.request = self.ending.val().request;
        self.completion.next.status = self.status.val();
        self.completion.next.kind = self.ending.val().kind;
        self.completion.next.handle = self.ending.val().handle;
        if self.ending.val().of_message {
            self.completion.next.pair = self.ending.val().pair;
            self.completion.next.context = self.ending.val().context;
            self.completion.next.match_bits = self.ending.val().match_bits;
            self.completion.next.immediate = self.ending.val().immediate;
            self.completion.next.length = bit_cast::<64, 16>(self.ending.val().length);
            if self.ending.val().multi {
                self.completion.next.handle = 0.into();
                self.completion.next.offset = self.ending.val().handle;
                self.completion.next.count = self.ending.val().number.get_bits::<31>(0);
            }
            if self.ending.val().multi & self.ending.val().stays {
                self.completion.next.flags = COMPLETION_MORE;
            }
        } else {
            self.completion.next.offset = self.ending.val().immediate.get_bits::<32>(0);
            self.completion.next.count = self.ending.val().immediate.get_bits::<31>(32);
        }
    }

    /// What is said, and what was due.
    fn compare(&mut self) {
        self.offers.next = 0.into();
        self.heard.next = self.said.q.val();
        if self.block.access_ends.val() {
            self.offers.next = self.offers.val().replace_bit(say::ACCESS_ENDS, true);
            self.heard.next = self.heard.val().replace_bit(say::ACCESS_ENDS, true);
        }
        if self.block.written.valid.val() {
            self.offers.next = self.offers.val().replace_bit(say::WRITTEN, true);
            self.heard.next = self.heard.val().replace_bit(say::WRITTEN, true);
        }
        if self.block.complete.valid.val() {
            self.offers.next = self.offers.val().replace_bit(say::COMPLETE, true);
        }
        if self.block.complete.valid.val() & self.takes.val().get_bit(0) {
            self.heard.next = self.heard.val().replace_bit(say::COMPLETE, true);
        }
        if self.block.lost.valid.val() {
            self.offers.next = self.offers.val().replace_bit(say::LOST, true);
        }
        if self.block.lost.valid.val() & self.takes.val().get_bit(1) {
            self.heard.next = self.heard.val().replace_bit(say::LOST, true);
        }
        if self.block.sink_update.valid.val() {
            self.offers.next = self.offers.val().replace_bit(say::UPDATE, true);
        }
        if self.block.sink_update.valid.val() & self.takes.val().get_bit(2) {
            self.heard.next = self.heard.val().replace_bit(say::UPDATE, true);
        }
        if self.block.asked.valid.val() {
            self.offers.next = self.offers.val().replace_bit(say::ASKED, true);
        }
        if self.block.asked.valid.val() & self.takes.val().get_bit(3) {
            self.heard.next = self.heard.val().replace_bit(say::ASKED, true);
        }
        if self.block.answered.valid.val() {
            self.offers.next = self.offers.val().replace_bit(say::ANSWERED, true);
        }
        if self.block.answered.valid.val() & self.takes.val().get_bit(4) {
            self.heard.next = self.heard.val().replace_bit(say::ANSWERED, true);
        }
        self.missing.next = self.due.val() & !self.heard.val();
        self.speaks.next = self.offers.val().any() | self.block.ended.val();
        if self.turn.val() {
            self.said.d.next = self.heard.val();
            self.silent.d.next = 0.into();
            if self.may_speak.val() & !self.speaks.val() {
                self.silent.d.next = self.silent.q.val() + 1;
            }
            if self.block.ended.val() {
                self.there.d.next = false;
            }
        }

        self.only_entries_speak.ok.next = !self.speaks.val() | (self.level.val() != 0);
        self.nothing_is_said_before_the_answer.ok.next =
            !self.turn.val() | !self.speaks.val() | self.may_speak.val();
        // Each thing once.
        self.says_what_is_due.ok.next =
            !self.turn.val() | !(self.offers.val() & (!self.due.val() | self.said.q.val())).any();
        // Nothing above the lowest bit that is missing.
        self.says_it_in_order.ok.next = !self.turn.val()
            | !self.missing.val().any()
            | !(self.offers.val() & !(self.missing.val() ^ (self.missing.val() - 1))).any();
        self.says_all_of_it.ok.next = !self.turn.val()
            | !self.block.ended.val()
            | ((self.heard.val() == self.due.val())
                & (self.block.marked.val() == self.ending.val().marks));
        self.says_it_of_this_entry.ok.next = !self.turn.val()
            | ((!self.block.written.valid.val()
                | ((self.block.written.data.val().failed == self.fails.val())
                    & (self.block.written.data.val().slot
                        == ((self.ending.val().pair << 6)
                            | bit_cast::<16, 6>(self.ending.val().slot)))))
                & (!self.block.lost.valid.val()
                    | ((self.block.lost.data.val().pair == self.ending.val().pair)
                        & (self.block.lost.data.val().endpoint == self.ending.val().endpoint)
                        & (self.block.lost.data.val().slot == self.ending.val().slot)))
                & (!self.block.sink_update.valid.val()
                    | ((self.block.sink_update.data.val().pair == self.ending.val().pair)
                        & (self.block.sink_update.data.val().accepted
                            == self.ending.val().accepted)
                        & (self.block.sink_update.data.val().freed == self.ending.val().freed)
                        & (self.block.sink_update.data.val().refused
                            == (self.ending.val().refused
                                | (self.ending.val().put & self.error.val())))))
                & (!self.block.asked.valid.val()
                    | ((self.block.asked.data.val().pair == self.ending.val().pair)
                        & (self.block.asked.data.val().key == self.ending.val().match_bits)
                        & (self.block.asked.data.val().offset == self.ending.val().immediate)
                        & (self.block.asked.data.val().length == self.ending.val().length)
                        & (self.block.asked.data.val().number == self.ending.val().number)))
                & (!self.block.answered.valid.val()
                    | ((self.block.answered.data.val().pair == self.ending.val().pair)
                        & (self.block.answered.data.val().number == self.ending.val().number)
                        & (self.block.answered.data.val().status == self.status.val()))));
        self.completes_as_it_came.ok.next = !self.turn.val()
            | !self.block.complete.valid.val()
            | ((self.block.complete.data.val().endpoint == self.ending.val().endpoint)
                & (self.block.complete.data.val().entry == self.completion.val()));
        self.goes_on.ok.next = !self.turn.val() | (self.silent.q.val() <= PATIENCE);
        self.empty_without_entries.ok.next = self.block.empty.val() == (self.level.val() == 0);
    }
}

/// Bits that are free: of each number in an entry the lowest, since numbers are only passed on. All others are zero.
fn narrow_entries() -> Vec<String> {
    assert_eq!(
        LedgerEntry::BITS,
        316,
        "the places below are those of its fields"
    );
    let numbers = [3, 11, 43, 51, 59, 92, 108, 124, 188, 220, 252, 268, 283];
    let flags = [
        0, 1, 2, 91, 274, 275, 276, 277, 278, 279, 280, 281, 282, 315,
    ];
    let held = (0..LedgerEntry::BITS).filter(|bit| !numbers.contains(bit) && !flags.contains(bit));
    held.map(|bit| format!("entry[{bit}]=0")).collect()
}

/// What is proved here.
pub fn proofs() -> Vec<Proof> {
    let breaks = breaks::ledger();
    let all: Vec<&str> = breaks.iter().map(|broken| broken.name).collect();
    vec![
        Proof::of("ledger", Method::Unrolled(16), LedgerProof::default)
            .in_cases(vec![narrow_entries()])
            .broken_by(Break::named(&breaks, &all)),
    ]
}
