//! What the answers of Lists mean: which payload goes where, and what ends with what.
//!
//! ```text
//!              ┌────────┐◄──► receives   what is kept of a posted receive beside its key   (Ram a place)
//!   asked ────►│        │◄──► messages   what is kept of a message beside its key          (BlockRam a place)
//!   reply ────►│ Answer │◄──► Slots      where a slot is, and which is vacant
//!              │        ├──► job         to Copies and Resolve
//!   filling ──►│        ├──► hold, news, gone, fills, overflow, walked, retry, follow    to Admit
//!              └────────┘
//! ```
//!
//! What was asked comes beside its answer, in order, and each is dealt with to its end before the next, but for a request that waits aside. To deal with
//! a message that meets a receive takes three cycles. Jobs leave in the order in which they are dealt with.
//!
//! **A message that isn't in its slot yet** is in Lists all the same. The request that has found it waits *aside* until the slot's write is answered. Questions of messages
//! pass it, and between two of them it is looked at again; all others wait behind it. So no request enters before it is dealt with, and if the slot couldn't be written it
//! enters anew.
//!
//! **Multi-receives.** A receive with `FLAG_MULTI` stays posted after a message, and its buffer begins behind it from
//! then on. It was posted with one completion reserved, like any request, and that is its last one's. So a message after
//! which it stays needs a completion of its own, reserved at that moment; if none is free the receive ends with this
//! message instead. It ends too when less of the buffer is left than it was posted to keep. Neither depends on what becomes of the payload: one that memory
//! answers with an error, or the Gate refuses, has used its part of the buffer as any other. So it is known before the payload moves, and Admit lets nothing
//! else in for these few cycles only.
//! What it has had, bytes and completions, goes with it: from Admit to here, while it is posted beside its buffer, while it waits for room in
//! Backlog, and with what follows back to Admit.
//!
//! **Claims.** A claimed message is out of Lists, and keeps its slot and its credit. Its entry in the memory of messages
//! holds the number of the claim, which is half of the handle; the other half is the slot. A handle is good while the
//! slot is taken and the number is the same, for the endpoint of the pair. So nothing has to be cleared when a
//! pair goes: its slots are vacant then.
//!
//! **Ready messages.** A ready message that finds no receive is refused: its payload is dropped, its envelope freed, and
//! its sender told. Admit has said beforehand whether that may be: a receive may be on its way.
//!
//! | file | idea |
//! |---|---|
//! | `question` | a question, and its answer beside it |
//! | `idle` | what holds while nothing happens |
//! | `kept` | what is kept of receives and messages |
//! | `ends` | what something ends with, and how much of it goes to memory |
//! | `multi` | whether a multi-receive stays |
//! | `deal` | what the answers mean, opcode by opcode |
//! | `done` | what was asked is dealt with; questions about slots |

mod deal;
mod done;
mod ends;
mod idle;
mod kept;
mod multi;
mod question;

use super::asked::{Ask, Asked, Follow};
use super::backlog::Held;
use super::filling::Filled;
use super::slots::{SlotAnswer, SlotQuestion};
use crate::config::Config;
use crate::prelude::*;
use crate::prim::{BlockRam, Fifo, Ram};
use crate::types::{Ending, Had, Job, MatchReply, Slotted};
use abi::limits::MAX_PAIRS;
use abi::request::slot_number;

const _: () = assert!(MAX_PAIRS <= 1 << 8, "the pair of a message");
const _: () = assert!(slot_number(1, 0) == 1 << 6, "the kernel numbers slots so");

/// Messages under way between Admit and here, at most.
pub(super) const MESSAGES: usize = 4;
/// Questions that have a place here: those messages, a request, the removal of a message that is lost, and of a walk a step and the end of a
/// receive that waited, or a mark. So Admit never waits for Answer, which may be waiting for it.
const QUESTIONS: usize = 8;

const _: () = assert!(QUESTIONS >= MESSAGES + 4, "Admit waits for nobody");

/// What is kept of a posted receive beside its key.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Receive {
    endpoint: Bits<8>,
    domain: Bits<8>,
    request: Bits<32>,
    key: Bits<32>,
    address: Bits<64>,
    /// Bytes of the buffer that are left, 2³² − 1 if more.
    length: Bits<32>,
    multi: Bit,
    min_free: Bits<32>,
    had: Had,
}

/// What is kept of a message in a slot, at the place that the slot has.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Message {
    context: Bits<16>,
    match_bits: Bits<64>,
    immediate: Bits<64>,
    /// At most `EAGER_MAX`.
    length: Bits<11>,
    /// Number of the claim, 0 if the message isn't claimed.
    claim: Bits<16>,
    /// The pair that it came by, and its slot there.
    pair: Bits<8>,
    slot: Bits<6>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// Waiting for a question and its answer.
    Wait,
    /// The receive that a message has met is read.
    Met,
    /// The slot of a message is taken.
    Slot,
    /// There is none: the pair has to fail.
    Overflow,
    /// The receive that a cancel or a flush has found is read.
    Ended,
    /// The message that a probe or a claim has found is read.
    Found,
    /// The claimed message that a request names is read, and its slot looked at.
    Handle,
    /// It is good, or not.
    Named,
    /// The message that a receive takes is read.
    Taken,
    /// Where its slot is is looked up.
    Where,
    /// A job leaves.
    Job,
    /// Its message's slot is vacant.
    Vacate,
    /// Whether a multi-receive stays is decided.
    Stays,
}

/// The reader of answers.
#[block(config: &Config)]
pub(super) struct Answer {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets what was asked.
    pub reset: Signal<In, Bit>,
    /// What was asked.
    pub asked: Stream<In, Asked>,
    /// What Lists answer.
    pub reply: Pulse<In, MatchReply>,
    /// A payload's way, and an end.
    pub job: Stream<Out, Job>,
    /// Pulse: what was asked came to nothing that ends later.
    pub ended: Signal<Out, Bit>,

    /// To Slots.
    pub slot: Stream<Out, SlotQuestion>,
    /// From Slots.
    pub slot_answer: Pulse<In, SlotAnswer>,
    /// A message goes to its slot.
    pub fills: Pulse<Out, Filled>,
    /// The slot of the message in hand: `abi::request::slot_number`.
    pub in_hand: Signal<Out, Bits<16>>,
    /// It isn't in its slot yet, or never will be.
    pub in_hand_fills: Signal<In, Bit>,
    /// It never will be.
    pub in_hand_is_lost: Signal<In, Bit>,
    /// The message of this slot was removed.
    pub removed: Pulse<Out, Bits<16>>,
    /// Pulse: the request found a message that isn't anywhere, and has to enter anew.
    pub retry: Signal<Out, Bit>,
    /// A message has found no slot.
    pub overflow: Stream<Out, Slotted>,
    /// Pulse: the oldest message that was asked about is dealt with.
    pub message_done: Signal<Out, Bit>,
    /// Pulse: so is the request that was asked about.
    pub request_done: Signal<Out, Bit>,
    /// A request waits aside, for a message to be in its slot.
    pub waits_aside: Signal<Out, Bit>,
    /// The last receive that was asked about has found a message.
    pub receives_come_late: Signal<Out, Bit>,
    /// What a step of a walk found is known. There may be more.
    pub walked: Pulse<Out, Bit>,

    /// A receive has found the list full.
    pub hold: Pulse<Out, Held>,
    /// A message was appended for this endpoint.
    pub news: Pulse<Out, Bits<8>>,
    /// Pulse: a posted receive has gone.
    pub gone: Signal<Out, Bit>,

    /// A multi-receive of this endpoint was posted.
    pub multi_posted: Pulse<Out, Bits<8>>,
    /// One has gone.
    pub multi_gone: Pulse<Out, Bits<8>>,
    /// What follows.
    pub follow: Pulse<Out, Follow>,
    /// A bit an endpoint: a completion can be reserved.
    pub completion_free: Signal<In, Bits<32>>,
    /// One of this endpoint is reserved.
    pub reserve: Pulse<Out, Bits<8>>,
    /// One of this endpoint isn't needed.
    pub unreserve: Pulse<Out, Bits<8>>,

    /// Pulse: a message has met its receive on arrival.
    pub count_expected: Signal<Out, Bit>,
    /// Pulse: a message was appended to the unexpected ones.
    pub count_unexpected: Signal<Out, Bit>,
    /// Pulse: a message was dropped since a rule revokes it.
    pub count_rule_drops: Signal<Out, Bit>,
    /// With it: its pair.
    pub ruled_pair: Signal<Out, Bits<16>>,
    /// Pulse: a request was refused as malformed.
    pub count_invalid_requests: Signal<Out, Bit>,

    #[is(Fifo::new(QUESTIONS))]
    questions: Fifo<Asked>,
    #[is(Fifo::new(QUESTIONS))]
    replies: Fifo<MatchReply>,
    #[is(Ram::new(config.exact + config.posted))]
    receives: Ram<Receive>,
    #[is(BlockRam::new(config.unexpected))]
    messages: BlockRam<Message>,
    state: Reg<State>,
    /// The job that is put together.
    work: Reg<Job>,
    /// The receive in hand.
    receive: Reg<Receive>,
    /// Its place, or that of the message in hand.
    at: Reg<Bits<16>>,
    /// Number of the next claim, never 0.
    #[is(Reg::new(1u64.into()))]
    claims: Reg<Bits<16>>,
    /// The slot of the message in hand becomes vacant when its job has left.
    gives: Reg<Bit>,
    /// The slot's question was taken.
    slot_asked: Reg<Bit>,
    /// Number of the slot of the message that was read in the last cycle.
    slot_in_hand: Reg<Bits<16>>,
    /// It is that of the message which a request has found.
    known: Reg<Bit>,
    /// The slot's answer.
    slot_held: Reg<SlotAnswer>,
    /// The request that waits aside, if one does, and the place of the message that it has found.
    aside: Reg<Asked>,
    aside_at: Reg<Bits<16>>,
    is_aside: Reg<Bit>,
    /// It is in hand, and not the question in front.
    resumed: Reg<Bit>,
    /// It is looked at before another message passes.
    looks_next: Reg<Bit>,
    /// The last receive that was asked about has found a message.
    found_before: Reg<Bit>,

    front: Signal<Local, Asked>,
    front_is_message: Signal<Local, Bit>,
    now: Signal<Local, Asked>,
    ask: Signal<Local, Ask>,
    // The answer of Lists, which may come in this cycle.
    answer: Signal<Local, MatchReply>,
    none_kept: Signal<Local, Bit>,
    has_answer: Signal<Local, Bit>,
    needs_answer: Signal<Local, Bit>,
    may_begin: Signal<Local, Bit>,
    /// The question in front is of a message, and may pass the request that waits aside.
    passes: Signal<Local, Bit>,
    begins: Signal<Local, Bit>,
    /// The request that waits aside is looked at again.
    resumes: Signal<Local, Bit>,
    /// The question in front steps aside.
    steps_aside: Signal<Local, Bit>,
    /// A request has found a message.
    names_message: Signal<Local, Bit>,
    takes_answer: Signal<Local, Bit>,
    keeps_answer: Signal<Local, Bit>,
    /// What was asked is dealt with.
    done: Signal<Local, Bit>,
    /// It was a message.
    of_arrival: Signal<Local, Bit>,
    /// It was a request of a list ring.
    of_request: Signal<Local, Bit>,
    receive_found: Signal<Local, Receive>,
    message_found: Signal<Local, Message>,
    posted: Signal<Local, Receive>,
    /// What the request in hand has had.
    had: Signal<Local, Had>,
    /// What the receive that ends has had, as `Ending` has it.
    ended_had: Signal<Local, Bits<64>>,
    // Ends: of the request, with its own status; of a receive, with the message that has come; of a receive, with the
    // message that was found.
    own_end: Signal<Local, Ending>,
    met: Signal<Local, Ending>,
    took: Signal<Local, Ending>,
    /// Bytes that the buffer holds, and those of the message, of which the lesser go to memory.
    capacity: Signal<Local, Bits<32>>,
    size: Signal<Local, Bits<16>>,
    too_long: Signal<Local, Bit>,
    bytes: Signal<Local, Bits<16>>,
    fit: Signal<Local, Bits<8>>,
    handle_slot: Signal<Local, Bits<16>>,
    handle_claim: Signal<Local, Bits<16>>,
    same_claim: Signal<Local, Bit>,
    own_claim: Signal<Local, Bit>,
    handle_good: Signal<Local, Bit>,
    slotted: Signal<Local, Message>,
    // Numbers of the slots of the message that was asked about, and of the one that was found.
    own_slot: Signal<Local, Bits<16>>,
    found_slot: Signal<Local, Bits<16>>,
    claimed: Signal<Local, Message>,
    /// The message that a request has found isn't in its slot, as far as is known; it never will be.
    unsafe_yet: Signal<Local, Bit>,
    lost: Signal<Local, Bit>,
    /// It isn't there yet.
    still_fills: Signal<Local, Bit>,
    asks_slot: Signal<Local, Bit>,
    question: Signal<Local, SlotQuestion>,
    left: Signal<Local, Bits<32>>,
    rest: Signal<Local, Receive>,
    // Of a multi-receive: what of its buffer is used with the message in hand, which of its completions this is, and whether it stays.
    used: Signal<Local, Bits<32>>,
    number: Signal<Local, Bits<31>>,
    enough: Signal<Local, Bit>,
    one_is_free: Signal<Local, Bit>,
    can_reserve: Signal<Local, Bit>,
    stays: Signal<Local, Bit>,
    /// Something follows when its job has left.
    follows: Signal<Local, Bit>,
    // What is freed, and when.
    refused_frees: Signal<Local, Bit>,
    revoked_frees: Signal<Local, Bit>,
    put_frees: Signal<Local, Bit>,
    /// The get hasn't come before: it is one more request of its pair.
    get_is_new: Signal<Local, Bit>,
    inserted_frees: Signal<Local, Bit>,
    claimed_frees: Signal<Local, Bit>,
    claimed_vacates: Signal<Local, Bit>,
    discarded_frees: Signal<Local, Bit>,
    cancels: Signal<Local, Bit>,
    tells: Signal<Local, Bit>,

    #[is(Check::new("no_more_is_written_than_the_buffer_holds"))]
    within_buffer: Check,
    #[is(Check::new("delivery_reserves_only_what_is_free"))]
    reserves_what_is_free: Check,
    #[is(Check::new("only_ready_messages_are_refused"))]
    refusal_is_asked_for: Check,
    #[is(Check::new("an_answer_of_lists_has_a_place"))]
    answer_has_place: Check,
    #[is(config.pairs)]
    _pairs: usize,
}

impl Answer {
    /// For the receives and messages of a card.
    pub(super) fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(pairs = self._pairs)]
impl Logic for Answer {
    fn update(&mut self) {
        self.meet();
        self.rest_idle();
        self.look_up();
        self.measure();
        self.prepare_ends();
        self.go_on();
        self.deal();
        self.finish();
        self.ask_slots();
        self.check();
    }
}
