//! What the answers of Lists mean: which payload goes where, and what ends with what.
//!
//! ```text
//!              ┌────────┐◄──► receives   what is kept of a posted receive beside its key   (Ram a place)
//!   asked ────►│        │◄──► messages   what is kept of a message beside its key          (BlockRam a slot)
//!   reply ────►│ Answer │◄──► Slots      where a slot is, and which is vacant
//!              │        ├──► job         to Copies and Resolve
//!   settle ───►│        ├──► settled, follow             of multi-receives
//!   filling ──►│        ├──► hold, news, gone, fills, overflow, walked, retry    to Admit
//!              └────────┘
//! ```
//!
//! What was asked comes beside its answer, in order, and each is dealt with to its end before the next: that takes three
//! cycles for a message that meets a receive. Jobs leave in this order too.
//!
//! **Multi-receives.** A receive with `FLAG_MULTI` stays posted after a message, and its buffer begins behind it from
//! then on. It was posted with one completion reserved, like any request, and that is its last one's. So a message after
//! which it stays needs a completion of its own, reserved at that moment; if none is free the receive ends with this
//! message instead. It ends too when less of the buffer is left than it was posted to keep, or when something is wrong.
//! All that is known when the payload has been written: Answer waits for it, and Admit lets nothing else in meanwhile.
//!
//! **Claims.** A claimed message is out of Lists, and keeps its slot and its credit. Its entry in the memory of messages
//! holds the number of the claim, which is half of the handle; the other half is the place. A handle is good while the
//! place's slot is taken and the number is the same, for the endpoint of the pair. So nothing has to be cleared when a
//! pair goes: its slots are vacant then.
//!
//! **Ready messages.** A ready message that finds no receive is refused: its payload is dropped, its envelope freed, and
//! its sender told. Admit has said beforehand whether that may be: a receive may be on its way.
//!
//! **Filling.** A message that finds no receive is in Lists before it is in its slot. A request that finds such a message waits until the slot's
//! write has been answered. If that was an error, the message isn't anywhere, and the request enters anew.

use super::asked::{Ask, Asked, Follow};
use super::backlog::Held;
use super::filling::Filled;
use super::slots::{SlotAnswer, SlotQuestion};
use crate::config::Config;
use crate::prelude::*;
use crate::prim::{BlockRam, Fifo, Ram};
use crate::types::{Ending, Job, MatchReply, Slotted, Way};
use abi::completion::CompletionKind;
use abi::limits::MAX_CREDITS;
use abi::request::{CLAIM_PLACE_BITS, place};
use abi::status::Status;

const _: () = assert!(place(1, 0) == 1 << 4, "the kernel makes places so");

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
}

/// What is kept of a message in a slot beside its key.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Message {
    pair: Bits<16>,
    context: Bits<16>,
    match_bits: Bits<64>,
    immediate: Bits<64>,
    length: Bits<16>,
    slot: Bits<4>,
    /// Number of the claim, 0 if the message isn't claimed.
    claim: Bits<16>,
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
    /// A multi-receive's payload is on its way.
    Settle,
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
    /// The place of the message in hand.
    pub place: Signal<Out, Bits<16>>,
    /// It isn't in its slot yet, or never will be.
    pub place_fills: Signal<In, Bit>,
    /// It never will be.
    pub place_is_lost: Signal<In, Bit>,
    /// The message of this place was removed.
    pub removed: Pulse<Out, Bits<16>>,
    /// Pulse: the request found a message that isn't anywhere, and has to enter anew.
    pub retry: Signal<Out, Bit>,
    /// A message has found no slot.
    pub overflow: Stream<Out, Slotted>,
    /// Pulse: the oldest message that was asked about is dealt with.
    pub message_done: Signal<Out, Bit>,
    /// Pulse: so is the request that was asked about.
    pub request_done: Signal<Out, Bit>,
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
    /// A multi-receive's payload has come to its end, with this status.
    pub settle: Stream<In, Bits<8>>,
    /// Whether the receive stays.
    pub settled: Pulse<Out, Bit>,
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
    /// Pulse: a request was refused as malformed.
    pub count_invalid_requests: Signal<Out, Bit>,

    #[is(Fifo::new(QUESTIONS))]
    questions: Fifo<Asked>,
    #[is(Fifo::new(QUESTIONS))]
    replies: Fifo<MatchReply>,
    #[is(Ram::new(config.exact + config.posted))]
    receives: Ram<Receive>,
    #[is(BlockRam::new(config.pairs * MAX_CREDITS as usize))]
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
    /// The slot's answer.
    slot_held: Reg<SlotAnswer>,

    now: Signal<Local, Asked>,
    ask: Signal<Local, Ask>,
    // The answer of Lists, which may come in this cycle.
    answer: Signal<Local, MatchReply>,
    none_kept: Signal<Local, Bit>,
    has_answer: Signal<Local, Bit>,
    needs_answer: Signal<Local, Bit>,
    begins: Signal<Local, Bit>,
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
    handle_place: Signal<Local, Bits<16>>,
    handle_claim: Signal<Local, Bits<16>>,
    same_claim: Signal<Local, Bit>,
    own_claim: Signal<Local, Bit>,
    handle_good: Signal<Local, Bit>,
    slotted: Signal<Local, Message>,
    slot_place: Signal<Local, Bits<16>>,
    claimed: Signal<Local, Message>,
    /// The message that a request has found isn't in its slot yet; it never will be.
    unsafe_yet: Signal<Local, Bit>,
    lost: Signal<Local, Bit>,
    asks_slot: Signal<Local, Bit>,
    question: Signal<Local, SlotQuestion>,
    left: Signal<Local, Bits<32>>,
    rest: Signal<Local, Receive>,
    status_good: Signal<Local, Bit>,
    enough: Signal<Local, Bit>,
    one_is_free: Signal<Local, Bit>,
    can_reserve: Signal<Local, Bit>,
    stays: Signal<Local, Bit>,
    // What is freed, and when.
    refused_frees: Signal<Local, Bit>,
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
        join!(self.asked => self.questions.input);
        self.now.next = self.questions.output.data.val();
        self.ask.next = self.now.val().ask;

        // The answer beside the question. It is used at once if none before it waits.
        self.needs_answer.next = (self.ask.val() != Ask::Ends)
            & (self.ask.val() != Ask::Last)
            & (self.ask.val() != Ask::Mark)
            & (self.ask.val() != Ask::Drop)
            & (self.ask.val() != Ask::Handle);
        self.none_kept.next = self.replies.level.val() == 0;
        self.has_answer.next = self.replies.output.valid.val();
        self.answer.next = self.replies.output.data.val();
        if self.none_kept.val() {
            self.has_answer.next = self.reply.valid.val();
            self.answer.next = self.reply.data.val();
        }
        self.begins.next = (self.state.q.val() == State::Wait)
            & self.questions.output.valid.val()
            & (self.has_answer.val() | !self.needs_answer.val());
        self.takes_answer.next = self.begins.val() & self.needs_answer.val();
        self.replies.output.ready.next = self.takes_answer.val() & !self.none_kept.val();
        self.keeps_answer.next =
            self.reply.valid.val() & !(self.takes_answer.val() & self.none_kept.val());
        self.replies.input.valid.next = self.keeps_answer.val();
        self.replies.input.data.next = self.reply.data.val();
        self.answer_has_place.ok.next = !self.keeps_answer.val() | self.replies.input.ready.val();

        // Nothing happens unless it is said below.
        self.job.valid.next = false;
        self.job.data.next = self.work.q.val();
        self.done.next = false;
        self.ended.next = false;
        self.slot_place.next = (self.now.val().pair << 4) | bit_cast::<16, 4>(self.now.val().slot);
        self.fills.valid.next = false;
        self.fills.data.next = Filled {
            place: self.slot_place.val(),
            endpoint: self.now.val().endpoint,
        };
        self.place.next = self.at.q.val();
        self.unsafe_yet.next = self.place_fills.val();
        self.lost.next = self.place_fills.val() & self.place_is_lost.val();
        self.removed.valid.next = false;
        self.removed.data.next = self.slot_place.val();
        self.retry.next = false;
        self.overflow.valid.next = false;
        self.overflow.data.next = Slotted::default();
        self.overflow.data.next.pair = self.now.val().pair;
        self.overflow.data.next.endpoint = self.now.val().endpoint;
        self.walked.valid.next = false;
        self.walked.data.next = false;
        self.hold.valid.next = false;
        self.hold.data.next = Held {
            endpoint: self.now.val().endpoint,
            request: self.now.val().request,
            any_source: self.now.val().any_source,
            pair: self.now.val().pair,
        };
        self.tells.next = false;
        self.news.data.next = self.now.val().endpoint;
        self.gone.next = false;
        self.multi_posted.valid.next = false;
        self.multi_posted.data.next = self.now.val().endpoint;
        self.multi_gone.valid.next = false;
        self.multi_gone.data.next = self.now.val().endpoint;
        self.settle.ready.next = false;
        self.settled.valid.next = false;
        self.follow.valid.next = false;
        self.reserve.valid.next = false;
        self.reserve.data.next = self.now.val().endpoint;
        self.unreserve.valid.next = false;
        self.unreserve.data.next = self.now.val().endpoint;
        self.count_expected.next = false;
        self.count_unexpected.next = false;
        self.count_invalid_requests.next = false;
        self.asks_slot.next = false;

        // The two memories. While a message is written another one is read.
        self.receives.read_address.next = self.answer.val().index;
        self.receives.write.enable.next = false;
        self.receives.write.address.next = self.answer.val().index;
        self.receive_found.next = self.receives.read_data.val();
        self.messages.read_address.next = self.answer.val().index;
        self.messages.write.enable.next = false;
        self.message_found.next = self.messages.read_data.val();

        // What a receive that is posted becomes.
        self.posted.next = Receive {
            endpoint: self.now.val().endpoint,
            domain: self.now.val().domain,
            request: self.now.val().request,
            key: self.now.val().key,
            address: self.now.val().address,
            length: self.now.val().length,
            multi: self.now.val().multi,
            min_free: self.now.val().min_free,
        };
        self.receives.write.data.next = self.posted.val();

        // A message in its slot isn't claimed.
        self.slotted.next = Message {
            pair: self.now.val().pair,
            context: self.now.val().context,
            match_bits: self.now.val().match_bits,
            immediate: self.now.val().immediate,
            length: self.now.val().arrived,
            slot: self.now.val().slot,
            claim: 0.into(),
        };
        self.claimed.next = self.message_found.val();
        self.claimed.next.claim = self.claims.q.val();
        self.messages.write.address.next = self.slot_place.val();
        self.messages.write.data.next = self.slotted.val();

        // The claimed message that a request names.
        self.handle_place.next = self
            .now
            .val()
            .target
            .get_bits::<{ CLAIM_PLACE_BITS as usize }>(0);
        self.handle_claim.next = self
            .now
            .val()
            .target
            .get_bits::<16>(CLAIM_PLACE_BITS as usize);
        self.same_claim.next = self.message_found.val().claim == self.handle_claim.val();
        self.own_claim.next = self.now.val().own;
        self.handle_good.next = self.slot_held.q.val().used
            & self.handle_claim.val().any()
            & self.same_claim.val()
            & self.own_claim.val();

        // Bytes to move: those of the message that the buffer holds.
        self.capacity.next = self.now.val().length;
        self.size.next = self.message_found.val().length;
        if self.state.q.val() == State::Met {
            self.capacity.next = self.receive_found.val().length;
            self.size.next = self.now.val().arrived;
        }
        self.too_long.next = bit_cast::<32, 16>(self.size.val()) > self.capacity.val();
        self.bytes.next = self.size.val();
        if self.too_long.val() {
            self.bytes.next = bit_cast::<16, 32>(self.capacity.val());
        }
        self.fit.next = Status::Success.into();
        if bit_cast::<32, 16>(self.size.val()) > self.capacity.val() {
            self.fit.next = Status::Truncated.into();
        }

        // Ends.
        self.own_end.next = Ending::default();
        self.own_end.next.completes = true;
        self.own_end.next.endpoint = self.now.val().endpoint;
        self.own_end.next.request = self.now.val().request;
        self.own_end.next.status = self.now.val().status;
        self.own_end.next.kind = self.now.val().kind;
        self.own_end.next.handle = self.now.val().names;
        self.met.next = Ending {
            completes: true,
            endpoint: self.now.val().endpoint,
            request: self.receive_found.val().request,
            status: self.fit.val(),
            kind: CompletionKind::Receive.into(),
            handle: 0.into(),
            of_message: true,
            pair: self.now.val().pair,
            context: self.now.val().context,
            match_bits: self.now.val().match_bits,
            immediate: self.now.val().immediate,
            length: self.now.val().arrived,
            slot: 0.into(),
            settles: self.receive_found.val().multi,
            fills: false,
            accepted: true,
            freed: true,
            refused: false,
            marks: false,
        };
        self.took.next = Ending {
            completes: true,
            endpoint: self.now.val().endpoint,
            request: self.now.val().request,
            status: self.fit.val(),
            kind: self.now.val().kind,
            handle: 0.into(),
            of_message: true,
            pair: self.message_found.val().pair,
            context: self.message_found.val().context,
            match_bits: self.message_found.val().match_bits,
            immediate: self.message_found.val().immediate,
            length: self.message_found.val().length,
            slot: self.message_found.val().slot,
            settles: self.now.val().multi,
            fills: false,
            accepted: false,
            freed: true,
            refused: false,
            marks: false,
        };
        self.refused_frees.next = true;
        self.inserted_frees.next = false;
        self.claimed_frees.next = false;
        self.claimed_vacates.next = false;
        self.discarded_frees.next = true;
        self.cancels.next = true;

        // A multi-receive: what is left of its buffer behind the message, and whether it stays.
        self.left.next = self.receive.q.val().length - bit_cast::<32, 16>(self.work.q.val().length);
        self.rest.next = self.receive.q.val();
        self.rest.next.address =
            self.receive.q.val().address + bit_cast::<64, 16>(self.work.q.val().length);
        self.rest.next.length = self.left.val();
        self.enough.next =
            (self.left.val() >= self.receive.q.val().min_free) & self.left.val().any();
        self.status_good.next = self.settle.data.val() == Status::Success;
        self.one_is_free.next =
            ((self.completion_free.val() >> self.receive.q.val().endpoint.get_bits::<5>(0)) & 1)
                .any();
        self.can_reserve.next = self.one_is_free.val();
        self.stays.next = self.status_good.val() & self.enough.val() & self.can_reserve.val();
        self.settled.data.next = self.stays.val();
        self.follow.data.next = Follow {
            retire: self.work.q.val().way == Way::Hit,
            endpoint: self.receive.q.val().endpoint,
            request: self.receive.q.val().request,
            address: self.rest.val().address,
            length: self.rest.val().length,
        };

        match self.state.q.val() {
            State::Wait => {
                self.at.d.next = self.answer.val().index;
                self.slot_asked.d.next = false;
                self.gives.d.next = false;
                if self.begins.val() {
                    self.work.d.next = Job::default();
                    match self.ask.val() {
                        Ask::Ends => {
                            self.work.d.next.ending = self.own_end.val();
                            self.count_invalid_requests.next = self.now.val().invalid;
                            self.unreserve.valid.next = self.now.val().releases;
                            self.state.d.next = State::Job;
                        }
                        Ask::Last => {
                            self.work.d.next.ending = self.own_end.val();
                            self.state.d.next = State::Job;
                        }
                        Ask::Mark => {
                            self.work.d.next.ending.marks = true;
                            self.state.d.next = State::Job;
                        }
                        Ask::Drop => {
                            self.work.d.next.way = Way::Drop;
                            self.work.d.next.arrived = self.now.val().arrived;
                            self.state.d.next = State::Job;
                        }
                        Ask::Handle => {
                            self.state.d.next = State::Handle;
                        }
                        Ask::Message => {
                            self.state.d.next = State::Overflow;
                            if self.answer.val().found {
                                self.state.d.next = State::Met;
                            } else if self.now.val().append {
                                self.count_unexpected.next = true;
                                self.tells.next = true;
                                self.state.d.next = State::Slot;
                            } else if self.now.val().refusable {
                                // It is done with: its envelope is free again.
                                self.work.d.next.way = Way::Drop;
                                self.work.d.next.arrived = self.now.val().arrived;
                                self.work.d.next.ending.pair = self.now.val().pair;
                                self.work.d.next.ending.accepted = true;
                                self.work.d.next.ending.freed = self.refused_frees.val();
                                self.work.d.next.ending.refused = true;
                                self.state.d.next = State::Job;
                            }
                        }
                        Ask::Lost => {
                            self.removed.valid.next = true;
                            self.ended.next = true;
                            self.done.next = true;
                        }
                        Ask::Receive => {
                            if self.answer.val().found {
                                self.state.d.next = State::Taken;
                            } else {
                                self.hold.valid.next = self.answer.val().full;
                                self.receives.write.enable.next = !self.answer.val().full;
                                self.multi_posted.valid.next =
                                    self.now.val().multi & !self.answer.val().full;
                                self.ended.next = true;
                                self.done.next = true;
                            }
                        }
                        Ask::Take => {
                            self.work.d.next.ending = self.own_end.val();
                            self.state.d.next = State::Job;
                            if self.answer.val().found {
                                self.state.d.next = State::Taken;
                            }
                        }
                        Ask::Probe => {
                            self.work.d.next.ending = self.own_end.val();
                            self.state.d.next = State::Job;
                            if self.answer.val().found {
                                self.state.d.next = State::Found;
                            }
                        }
                        Ask::Claim => {
                            self.work.d.next.ending = self.own_end.val();
                            self.state.d.next = State::Job;
                            if self.answer.val().found {
                                self.state.d.next = State::Found;
                            }
                        }
                        Ask::Cancel => {
                            self.work.d.next.ending = self.own_end.val();
                            self.state.d.next = State::Job;
                            if self.answer.val().found {
                                self.state.d.next = State::Ended;
                            }
                        }
                        Ask::Flush => {
                            if self.answer.val().found {
                                self.state.d.next = State::Ended;
                            } else {
                                self.walked.valid.next = true;
                                self.walked.data.next = self.answer.val().more;
                                self.ended.next = true;
                                self.done.next = true;
                            }
                        }
                        Ask::Forget => {
                            self.walked.valid.next = true;
                            self.walked.data.next = self.answer.val().found;
                            self.ended.next = true;
                            self.done.next = true;
                        }
                        Ask::Retire => {
                            self.gone.next = true;
                            self.multi_gone.valid.next = true;
                            self.ended.next = true;
                            self.done.next = true;
                        }
                        _ => {}
                    }
                }
                if self.begins.val() & (self.ask.val() == Ask::Handle) {
                    self.messages.read_address.next = self.handle_place.val();
                }
            }

            // ---------------------------------------------------------------- messages
            State::Met => {
                self.count_expected.next = true;
                self.gone.next = !self.receive_found.val().multi;
                self.receive.d.next = self.receive_found.val();
                self.work.d.next = Job {
                    way: Way::Hit,
                    length: self.bytes.val(),
                    arrived: self.now.val().arrived,
                    domain: self.receive_found.val().domain,
                    key: self.receive_found.val().key,
                    target: self.receive_found.val().address,
                    source: 0.into(),
                    ending: self.met.val(),
                };
                self.state.d.next = State::Job;
            }
            State::Slot => {
                self.asks_slot.next = true;
                self.messages.read_address.next = !self.slot_place.val();
                if self.slot_answer.valid.val() {
                    self.messages.write.enable.next = true;
                    self.fills.valid.next = true;
                    self.work.d.next.way = Way::Slot;
                    self.work.d.next.length = self.now.val().arrived;
                    self.work.d.next.arrived = self.now.val().arrived;
                    self.work.d.next.target = self.slot_answer.data.val().address;
                    self.work.d.next.ending.endpoint = self.now.val().endpoint;
                    self.work.d.next.ending.pair = self.now.val().pair;
                    self.work.d.next.ending.slot = self.now.val().slot;
                    self.work.d.next.ending.fills = true;
                    self.work.d.next.ending.accepted = true;
                    self.work.d.next.ending.freed = self.inserted_frees.val();
                    self.state.d.next = State::Job;
                }
            }
            State::Overflow => {
                self.overflow.valid.next = true;
                self.work.d.next.way = Way::Drop;
                self.work.d.next.arrived = self.now.val().arrived;
                if self.overflow.ready.val() {
                    self.state.d.next = State::Job;
                }
            }

            // ---------------------------------------------------------------- requests
            State::Ended => {
                self.gone.next = true;
                self.multi_gone.valid.next = self.receive_found.val().multi;
                self.work.d.next.ending.kind = CompletionKind::Receive.into();
                if self.ask.val() == Ask::Flush {
                    self.walked.valid.next = true;
                    self.walked.data.next = true;
                    self.multi_gone.data.next = self.receive_found.val().endpoint;
                    self.work.d.next.ending = self.own_end.val();
                    self.work.d.next.ending.kind = CompletionKind::Receive.into();
                    self.work.d.next.ending.endpoint = self.receive_found.val().endpoint;
                    self.work.d.next.ending.request = self.receive_found.val().request;
                } else if self.cancels.val() {
                    self.unreserve.valid.next = true;
                    self.work.d.next.ending.status = Status::Cancelled.into();
                    self.work.d.next.ending.request = self.now.val().target;
                } else {
                    self.work.d.next.ending.kind = self.now.val().kind;
                }
                self.state.d.next = State::Job;
            }
            State::Found => {
                self.messages.read_address.next = self.at.q.val();
                if !self.unsafe_yet.val() {
                    self.work.d.next.ending = self.took.val();
                    self.work.d.next.ending.status = Status::Success.into();
                    self.work.d.next.ending.settles = false;
                    self.work.d.next.ending.freed = false;
                    self.state.d.next = State::Job;
                }
                if !self.unsafe_yet.val() & (self.ask.val() == Ask::Claim) {
                    self.messages.write.enable.next = true;
                    self.messages.write.address.next = self.at.q.val();
                    self.messages.read_address.next = !self.at.q.val();
                    self.messages.write.data.next = self.claimed.val();
                    self.work.d.next.ending.handle = (bit_cast::<32, 16>(self.claims.q.val())
                        << (CLAIM_PLACE_BITS as usize))
                        | bit_cast::<32, 16>(self.at.q.val());
                    self.gives.d.next = self.claimed_vacates.val();
                    self.work.d.next.ending.freed = self.claimed_frees.val();
                    self.claims.d.next = self.claims.q.val() + 1;
                    if self.claims.q.val() == 65535 {
                        self.claims.d.next = 1.into();
                    }
                }
            }
            State::Handle => {
                self.asks_slot.next = true;
                self.messages.read_address.next = self.handle_place.val();
                self.slot_held.d.next = self.slot_answer.data.val();
                if self.slot_answer.valid.val() {
                    self.state.d.next = State::Named;
                }
            }
            State::Named => {
                self.work.d.next.ending = self.own_end.val();
                self.state.d.next = State::Job;
                if !self.handle_good.val() {
                    self.count_invalid_requests.next = true;
                    self.work.d.next.ending.status = Status::InvalidClaim.into();
                } else if self.now.val().buffer & !self.now.val().allowed {
                    self.count_invalid_requests.next = true;
                    self.work.d.next.ending.status = Status::LocalProtection.into();
                } else {
                    self.work.d.next.ending = self.took.val();
                    self.gives.d.next = true;
                    if self.now.val().buffer {
                        self.receive.d.next = self.posted.val();
                        self.work.d.next.way = Way::Copy;
                        self.work.d.next.length = self.bytes.val();
                        self.work.d.next.target = self.now.val().address;
                        self.work.d.next.source = self.slot_held.q.val().address;
                    } else {
                        self.work.d.next.ending.status = Status::Success.into();
                        self.work.d.next.ending.of_message = false;
                        self.work.d.next.ending.freed = self.discarded_frees.val();
                    }
                }
            }
            State::Taken => {
                self.messages.read_address.next = self.at.q.val();
                if !self.unsafe_yet.val() {
                    self.receive.d.next = self.posted.val();
                    self.work.d.next.way = Way::Copy;
                    self.work.d.next.length = self.bytes.val();
                    self.work.d.next.target = self.now.val().address;
                    self.work.d.next.ending = self.took.val();
                    self.gives.d.next = true;
                    self.state.d.next = State::Where;
                }
            }
            State::Where => {
                self.asks_slot.next = true;
                self.work.d.next.source = self.slot_answer.data.val().address;
                if self.slot_answer.valid.val() {
                    self.state.d.next = State::Job;
                }
            }

            // ---------------------------------------------------------------- ends
            State::Job => {
                self.job.valid.next = true;
                self.slot_asked.d.next = false;
                if self.job.ready.val() {
                    self.state.d.next = State::Wait;
                    if self.gives.q.val() {
                        self.state.d.next = State::Vacate;
                    } else if self.work.q.val().ending.settles {
                        self.state.d.next = State::Settle;
                    } else {
                        self.done.next = true;
                    }
                }
            }
            State::Vacate => {
                self.asks_slot.next = true;
                if self.slot_answer.valid.val() {
                    self.state.d.next = State::Wait;
                    if self.work.q.val().ending.settles {
                        self.state.d.next = State::Settle;
                    } else {
                        self.done.next = true;
                    }
                }
            }
            State::Settle => {
                self.settle.ready.next = true;
                if self.settle.valid.val() {
                    self.settled.valid.next = true;
                    self.reserve.valid.next = self.stays.val();
                    if self.work.q.val().way == Way::Hit {
                        store!(
                            self.receives.write,
                            self.stays.val(),
                            self.at.q.val(),
                            self.rest.val()
                        );
                        self.follow.valid.next = !self.stays.val();
                    } else {
                        self.follow.valid.next = self.stays.val();
                    }
                    self.done.next = true;
                    self.state.d.next = State::Wait;
                }
            }
            _ => {}
        }
        self.news.valid.next = self.tells.val();
        if self.lost.val()
            & ((self.state.q.val() == State::Taken) | (self.state.q.val() == State::Found))
        {
            self.retry.next = true;
            self.ended.next = true;
            self.done.next = true;
            self.state.d.next = State::Wait;
        }

        // What was asked is done with.
        self.questions.output.ready.next = self.done.val();
        self.of_arrival.next = (self.ask.val() == Ask::Message) | (self.ask.val() == Ask::Drop);
        self.of_request.next = !self.of_arrival.val()
            & (self.ask.val() != Ask::Lost)
            & (self.ask.val() != Ask::Last)
            & (self.ask.val() != Ask::Mark)
            & (self.ask.val() != Ask::Flush)
            & (self.ask.val() != Ask::Forget);
        self.message_done.next = self.done.val() & self.of_arrival.val();
        self.request_done.next = self.done.val() & self.of_request.val() & !self.retry.val();

        // A question about a slot: once.
        self.question.next = SlotQuestion {
            pair: self.now.val().pair,
            take: true,
            give: false,
            slot: self.now.val().slot,
        };
        if self.state.q.val() == State::Handle {
            self.question.next = SlotQuestion {
                pair: self.handle_place.val() >> 4,
                take: false,
                give: false,
                slot: self.handle_place.val().get_bits::<4>(0),
            };
        }
        if (self.state.q.val() == State::Where) | (self.state.q.val() == State::Vacate) {
            self.question.next = SlotQuestion {
                pair: self.work.q.val().ending.pair,
                take: false,
                give: self.state.q.val() == State::Vacate,
                slot: self.work.q.val().ending.slot,
            };
        }
        send!(
            self.slot,
            self.asks_slot.val() & !self.slot_asked.q.val(),
            self.question.val()
        );
        if self.slot.valid.val() & self.slot.ready.val() {
            self.slot_asked.d.next = true;
        }

        self.within_buffer.ok.next = !self.job.valid.val()
            | ((self.work.q.val().way != Way::Hit) & (self.work.q.val().way != Way::Copy))
            | (bit_cast::<32, 16>(self.work.q.val().length) <= self.receive.q.val().length);
        self.refusal_is_asked_for.ok.next =
            !self.job.valid.val() | !self.work.q.val().ending.refused | self.now.val().ready;
        self.reserves_what_is_free.ok.next = !self.reserve.valid.val() | self.one_is_free.val();
    }
}
