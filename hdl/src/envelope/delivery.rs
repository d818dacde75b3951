//! Brings arriving messages and posted receives together, and the payload to its place.
//!
//! ```text
//!   lists ──► Posts ──┐                 ┌───────┐
//!    Gate ◄─────┘     ▼                 │ Lists │
//!   arrival ──────► Admit ── command ──►└───┬───┘
//!   fault, control ──►│                     │ reply
//!                     └── asked ──────► Answer ◄──► Slots
//!                                           │ job
//!                     read ◄── Copies ◄─────┘
//!                                │ job
//!   payload ──────────────► Resolve ──► write
//!                       Gate ◄─┘ │ entry
//!                                ▼
//!   complete, sink_update ◄── Ledger ──► written, lost    to Admit
//!   asked, answered ◄────────────┘
//! ```
//!
//! The order of the card is made in [`Admit`](super::admit::Admit), and everything behind it keeps it: what Lists answer, the ways of the
//! payloads, the writes, and what is told at the end. Only a request that waits for a message to be in its slot is passed, by messages. So each room works on a thing of its own at the same time, and
//! "exactly one of matched and cancelled" and "completion after the last write response" are still properties of a
//! sequence.

use super::admit::Admit;
use super::answer::Answer;
use super::copies::Copies;
use super::ledger::{ENTRIES, Ledger};
use super::posts::Posts;
use super::resolve::Resolve;
use super::slots::Slots;
use crate::config::Config;
use crate::prelude::*;
use crate::prim::Fifo;
use crate::types::{
    Access, Answered, Arrival, ControlRequest, DmaRequest, Fault, FetchedList, MatchCommand,
    MatchReply, Permission, PlaceUnit, RaiseEvent, RegionQuery, RemoteGet, SinkUpdate, Slotted,
    WriteCompletion,
};
use abi::control::Operation;

/// The rooms from an arrival, or a request of a list ring, to a completion.
#[block(config: &Config)]
pub struct Delivery {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// The tables are cleared.
    pub initialized: Signal<Out, Bit>,
    /// A message has come.
    pub arrival: Stream<In, Arrival>,
    /// A bit an endpoint: its list ring has more.
    pub lists_pending: Signal<In, Bits<16>>,
    /// A word of the oldest message's payload.
    pub payload: Stream<In, Bits<64>>,
    /// A request of a list ring.
    pub lists: Stream<In, FetchedList>,
    /// Pulse: the oldest request that was taken enters the order of the card, with or without a command.
    pub request_enters: Signal<Out, Bit>,
    /// Pulse: it does so anew, since it has found a message whose slot couldn't be written.
    pub request_again: Signal<Out, Bit>,
    /// An operation for Lists.
    pub command: Stream<Out, MatchCommand>,
    /// Its answer, in order.
    pub reply: Pulse<In, MatchReply>,
    /// Posts' question for the Gate.
    pub posts_query: Stream<Out, RegionQuery>,
    /// Its answer.
    pub posts_allowed: Pulse<In, Bit>,
    /// Resolve's question for the Gate.
    pub query: Stream<Out, Access>,
    /// Its answer.
    pub allowed: Pulse<In, Permission>,
    /// Pulse: what the oldest answer to `query` that was yes allowed has ended.
    pub access_ends: Signal<Out, Bit>,
    /// Where to write, and how much.
    pub write_request: Stream<Out, DmaRequest>,
    /// A word to write.
    pub write_data: Stream<Out, Bits<64>>,
    /// The oldest write has been answered: whether by an error.
    pub write_done: Pulse<In, Bit>,
    /// Where to read, and how much.
    pub read_request: Stream<Out, DmaRequest>,
    /// A word read.
    pub read_data: Stream<In, Bits<64>>,
    /// With the last word: something of the read was answered by an error.
    pub read_data_error: Signal<In, Bit>,
    /// A completion to write.
    pub complete: Stream<Out, WriteCompletion>,
    /// A bit an endpoint: a completion can be reserved.
    pub completion_free: Signal<In, Bits<32>>,
    /// One of this endpoint is reserved.
    pub reserve: Pulse<Out, Bits<8>>,
    /// A reserved completion of this endpoint will not be written.
    pub unreserve: Pulse<Out, Bits<8>>,
    /// Progress of a pair.
    pub sink_update: Stream<Out, SinkUpdate>,
    /// A get of a peer, to be answered: all that came before it is written. It has to be taken whatever Delivery is asked for.
    pub asked: Stream<Out, RemoteGet>,
    /// The answer of a get is in its buffer, or won't be. It has to be taken also while a fault of its pair is offered.
    pub answered: Stream<Out, Answered>,
    /// A get of this pair's peer was refused where it was to be answered: it is counted with the other refusals.
    pub refused_elsewhere: Stream<In, Bits<16>>,
    /// An event.
    pub raise: Stream<Out, RaiseEvent>,
    /// A pair has to fail, and why.
    pub fault_request: Stream<Out, Fault>,
    /// A pair has failed; it is taken when the receives that name it are complete, and the answers of its gets that came before are told.
    pub fault: Stream<In, Fault>,
    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,
    /// With it, for `PairRead`: a `PairReport` of what is kept here. Zero otherwise.
    pub control_result: Signal<Out, Bits<64>>,
    /// A unit of places that a pair gets, or that it has none any more; to Lists.
    pub unit: Pulse<Out, PlaceUnit>,
    /// Pulse: a message met its receive on arrival.
    pub count_expected: Signal<Out, Bit>,
    /// Pulse: a message went to the unexpected list.
    pub count_unexpected: Signal<Out, Bit>,
    /// Pulse: a message was dropped since a rule revokes it.
    pub count_rule_drops: Signal<Out, Bit>,
    /// With it: its pair.
    pub ruled_pair: Signal<Out, Bits<16>>,
    /// Pulse: a request was refused as malformed.
    pub count_invalid_requests: Signal<Out, Bit>,

    posts: Posts,
    #[is(Admit::new(config))]
    admit: Admit,
    #[is(Answer::new(config))]
    answering: Answer,
    #[is(Slots::new(config))]
    slots: Slots,
    copies: Copies,
    #[is(Resolve::new(config))]
    resolve: Resolve,
    #[is(Ledger::new(config.pairs))]
    ledger: Ledger,
    /// Lost messages, as many as may be under way: Ledger has to go on while Answer, which deals with their removals, waits for what is behind them.
    #[is(Fifo::new(ENTRIES))]
    lost: Fifo<Slotted>,
    #[is(config.pairs)]
    _pairs: usize,
}

impl Delivery {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = Admit::REQUESTS;

    /// The rooms of a card.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(pairs = self._pairs)]
impl Logic for Delivery {
    fn update(&mut self) {
        self.initialized.next = self.admit.initialized.val()
            & self.slots.initialized.val()
            & self.resolve.initialized.val()
            & self.ledger.initialized.val();

        // What comes.
        join!(self.arrival => self.admit.arrival);
        join!(self.lists => self.posts.input);
        join!(self.posts.query => self.posts_query);
        join!(self.posts_allowed => self.posts.allowed);
        join!(self.posts.output => self.admit.lists);
        self.request_enters.next = self.posts.output.valid.val() & self.admit.lists.ready.val();
        self.request_again.next = self.admit.request_again.val();
        self.posts.endpoint.next = self.admit.endpoint.val();
        self.admit.in_posts.next = self.posts.of_endpoint.val();
        self.admit.lists_pending.next = self.lists_pending.val();
        join!(self.fault => self.admit.fault);
        join!(self.control => self.admit.control);
        self.control_result.next = self.admit.control_result.val();
        join!(self.admit.raise => self.raise);
        join!(self.admit.fault_request => self.fault_request);

        // What is asked of Lists, and what they answer.
        join!(self.admit.command => self.command);
        join!(self.admit.asked => self.answering.asked);
        join!(self.reply => self.answering.reply);
        self.admit.answer_ended.next = self.answering.ended.val();
        self.admit.message_done.next = self.answering.message_done.val();
        self.admit.request_done.next = self.answering.request_done.val();
        join!(self.answering.walked => self.admit.walked);
        join!(self.answering.follow => self.admit.follow);
        self.admit.aside.next = self.answering.waits_aside.val();
        self.admit.receives_come_late.next = self.answering.receives_come_late.val();
        join!(self.answering.fills => self.admit.fills);
        self.admit.retry.next = self.answering.retry.val();
        join!(self.answering.removed => self.admit.removed);
        self.admit.in_hand.next = self.answering.in_hand.val();
        self.answering.in_hand_fills.next = self.admit.in_hand_fills.val();
        self.answering.in_hand_is_lost.next = self.admit.in_hand_is_lost.val();
        join!(self.answering.overflow => self.admit.overflow);
        join!(self.answering.hold => self.admit.hold);
        join!(self.answering.news => self.admit.news_in);
        self.admit.gone.next = self.answering.gone.val();
        join!(self.answering.multi_posted => self.admit.multi_posted);
        join!(self.answering.multi_gone => self.admit.multi_gone);
        self.answering.completion_free.next = self.completion_free.val();
        join!(self.answering.reserve => self.reserve);
        join!(self.answering.unreserve => self.unreserve);
        self.count_expected.next = self.answering.count_expected.val();
        self.count_unexpected.next = self.answering.count_unexpected.val();
        self.count_rule_drops.next = self.answering.count_rule_drops.val();
        self.ruled_pair.next = self.answering.ruled_pair.val();
        self.count_invalid_requests.next = self.answering.count_invalid_requests.val();

        // Slots.
        join!(self.admit.slot_setup => self.slots.setup);
        join!(self.answering.slot => self.slots.ask);
        join!(self.slots.answer => self.answering.slot_answer);
        join!(self.admit.look => self.slots.look);
        join!(self.slots.seen => self.admit.seen);
        join!(self.slots.unit => self.unit);

        // Payload.
        join!(self.answering.job => self.copies.job);
        join!(self.copies.read_request => self.read_request);
        join!(self.read_data => self.copies.read_data);
        self.copies.read_data_error.next = self.read_data_error.val();
        join!(self.copies.output => self.resolve.job);
        join!(self.copies.data => self.resolve.data);
        join!(self.copies.copied => self.resolve.copied);
        join!(self.payload => self.resolve.payload);
        join!(self.resolve.query => self.query);
        join!(self.allowed => self.resolve.allowed);
        join!(self.resolve.write_request => self.write_request);
        join!(self.resolve.write_data => self.write_data);
        self.resolve.refused_pair.next = self.admit.refused_pair.val();
        self.admit.refused_count.next = self.resolve.refused_count.val();
        join!(self.admit.forget => self.resolve.forget);
        join!(self.admit.forget => self.ledger.forget);
        join!(self.refused_elsewhere => self.resolve.elsewhere);

        // Ends.
        join!(self.resolve.entry => self.ledger.entry);
        join!(self.write_done => self.ledger.write_done);
        self.access_ends.next = self.ledger.access_ends.val();
        join!(self.ledger.complete => self.complete);
        join!(self.ledger.sink_update => self.sink_update);
        join!(self.ledger.asked => self.asked);
        join!(self.ledger.answered => self.answered);
        join!(self.ledger.written => self.admit.written);
        join!(self.ledger.lost => self.lost.input);
        join!(self.lost.output => self.admit.lost);
        self.admit.has_lost.next = self.lost.level.val() != 0;
        self.admit.ledger_ended.next = self.ledger.ended.val();
        self.admit.marked.next = self.ledger.marked.val();
    }
}
