//! What this card owes the peers of its pairs: how many messages are safe here and which of the latest of them were refused,
//! how many envelopes are free again, and that a pair has failed.
//!
//! The numbers are running numbers, and every frame of the pair carries them, so nothing is lost with a frame that is. A pair whose
//! numbers have changed stands in the queue of turns. In its turn they are compared with those that its last frame carried: if a frame of
//! its own messages has carried them meanwhile, the turn passes; if such a frame is about to, since a message of the pair has its turn coming or is in Gather,
//! or the wire is wanted by another message, the turn waits; otherwise they go alone, in a control frame. A pair also gets a turn to answer its peer, and to ask it.
//!
//! ```text
//!                  ┌──────────────────┐  pair   ┌───────┐          ┌──────┐
//!   sink_update ──►│ accepted, freed, ├────────►│ turns ├─────────►│ Turn ├──► control_frame
//!   fault, mark ──►│ marks (Table)    │ at most │ (Fifo)│◄─────────┤      │
//!                  └──────┬───────────┘  once   └───────┘  waits   └──▲───┘
//!   lookup_pair ──► copy of the numbers ──► lookup_acknowledge, …     │
//!                         │ lookup_begins                             │
//!                         └──► what the pair's last frame carried ────┘
//! ```
//!
//! Each operation is done to one pair in two cycles: the pair is chosen ([`choose`]), and in the second cycle it is changed ([`change`]) or has
//! its [`turn`]. A pair stands in the queue of turns at most once, so the queue never overflows and an update never waits for the wire.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

mod change;
mod choose;
mod said;
mod turn;

use crate::config::Config;
use crate::prelude::*;
use crate::prim::{Fifo, Table};
use crate::types::{ControlFrame, ControlRequest, Fault, Mark, PairSetup, SinkUpdate};
use abi::control::Operation;
use abi::limits::MAX_CREDITS;

const _: () = assert!(MAX_CREDITS < 1 << 7, "widths below");

/// What is kept of a pair: 134 bits, and four block memories side by side have 144.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Sink {
    accepted: Bits<32>,
    freed: Bits<32>,
    /// Which of the latest accepted were refused, the last one's bit first.
    refused: Bits<16>,
    /// Envelopes that the peer is granted.
    granted: Bits<7>,
    connected: Bit,
    failed: Bit,
    /// The peer is still to hear of the failure.
    announces: Bit,
    /// It has failed by being closed on this side.
    closed: Bit,
    /// The peer is to be asked.
    asks: Bit,
    /// The peer is to get a frame although the numbers haven't changed.
    answers: Bit,
    /// It is to be told that a request of it is missing.
    misses: Bit,
    /// The pair is in the queue of turns.
    queued: Bit,
    /// When the numbers first changed after the last frame that carried them.
    since: Bits<16>,
    /// Cycles for which they wait for a frame of the pair, and credits that wait with them, at most.
    delay: Bits<16>,
    waiting_credits: Bits<7>,
}

/// What a frame carries.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Numbers {
    accepted: Bits<32>,
    freed: Bits<32>,
    refused: Bits<16>,
    /// The pair has failed: answers of its peer's gets don't go out.
    failed: Bit,
}

/// What the last frame of a pair carried: so much of it that a change shows, since no number runs ahead by more than
/// `MAX_CREDITS`, and the window of refusals changes with `accepted` only.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Said {
    accepted: Bits<8>,
    freed: Bits<8>,
}

/// What is done to the chosen pair, in the order of precedence.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Step {
    /// The next operation is being chosen, and its pair read.
    Choose,
    /// The pair is set or cleared, or gets other times.
    Control,
    /// It has failed.
    Fault,
    /// Its numbers change.
    Update,
    /// It is to answer or to ask.
    Mark,
    /// It is its turn.
    Turn,
}

/// Keeps the receiving side's numbers and asks for the frames that carry them.
#[block(config: &Config)]
pub struct Acknowledge {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous, active high.
    pub reset: Signal<In, Bit>,
    /// The tables are cleared.
    pub initialized: Signal<Out, Bit>,
    /// A message became safe, or an envelope free.
    pub sink_update: Stream<In, SinkUpdate>,
    /// A pair is to answer or to ask.
    pub mark: Stream<In, Mark>,
    /// A control frame is to be sent. The offer ends if a frame of the pair carries the same, or the pair is set or cleared.
    pub control_frame: Stream<Out, ControlFrame>,
    /// Pair whose numbers a frame is to carry.
    pub lookup_pair: Signal<In, Bits<16>>,
    /// Pulse: such a frame begins. Not in two consecutive cycles.
    pub lookup_begins: Signal<In, Bit>,
    /// One cycle later: messages that are safe here.
    pub lookup_acknowledge: Signal<Out, Bits<32>>,
    /// One cycle later: envelopes that are free again here.
    pub lookup_credit: Signal<Out, Bits<32>>,
    /// One cycle later: bit k is set if the message that is k before the last safe one was refused.
    pub lookup_refused: Signal<Out, Bits<16>>,
    /// One cycle later: the pair has failed.
    pub lookup_failed: Signal<Out, Bit>,
    /// A pair whose turn comes.
    pub gathered_pair: Signal<Out, Bits<16>>,
    /// One cycle later: a message of it waits for its turn, or for its frame.
    pub gathered: Signal<In, Bit>,
    /// A message of some pair waits for the wire.
    pub wire_busy: Signal<In, Bit>,
    /// A pair has failed. Taken when its `PairFailed` or `PairClosed` is queued, or when none is due.
    pub fault: Stream<In, Fault>,
    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,
    /// The numbers of a pair have changed.
    pub monitor_sink_valid: Signal<Out, Bit>,
    /// The pair.
    pub monitor_sink_pair: Signal<Out, Bits<16>>,
    /// Messages accepted.
    pub monitor_sink_accepted: Signal<Out, Bits<32>>,
    /// Envelopes freed.
    pub monitor_sink_freed: Signal<Out, Bits<32>>,

    // The pairs, and what is done to one of them.
    #[is(Table::new(config.pairs))]
    sinks: Table<Sink>,
    step: Reg<Step>,
    pair: Reg<Bits<16>>,
    address: Signal<Local, Bits<16>>,
    said_is_known: Signal<Local, Bit>,
    turn_comes: Signal<Local, Bit>,
    known: Signal<Local, Bit>,
    held: Signal<Local, Sink>,
    sound: Signal<Local, Bit>,
    sink: Signal<Local, Sink>,
    write: Signal<Local, Bit>,
    changed: Signal<Local, Bit>,
    window: Signal<Local, Bits<16>>,
    one_freed: Signal<Local, Bits<32>>,
    announces: Signal<Local, Bit>,
    closes: Signal<Local, Bit>,
    now: Reg<Bits<16>>,

    // What frames carry, and what the last of each pair has carried.
    #[is(Table::new(config.pairs))]
    numbers: Table<Numbers>,
    numbers_now: Signal<Local, Numbers>,
    carried: Signal<Local, Numbers>,
    #[is(Table::new(config.pairs))]
    said: Table<Said>,
    said_before: Signal<Local, Said>,
    carrying: Reg<Bit>,
    carrying_pair: Reg<Bits<16>>,
    forgets_said: Signal<Local, Bit>,
    nothing_new: Signal<Local, Bit>,

    // Turns.
    #[is(Fifo::new(config.pairs + 1))]
    turns: Fifo<Bits<16>>,
    push: Signal<Local, Bit>,
    waited: Signal<Local, Bits<16>>,
    waited_enough: Signal<Local, Bit>,
    unsaid_credits: Signal<Local, Bits<8>>,
    many_credits: Signal<Local, Bit>,
    waits: Signal<Local, Bit>,

    // The frame that is offered.
    offered: Reg<Bit>,
    offered_frame: Reg<ControlFrame>,
    /// It says nothing but the numbers: any frame of the pair can replace it.
    only_numbers: Reg<Bit>,
    replaced: Signal<Local, Bit>,
    outlived: Signal<Local, Bit>,

    // Control.
    setup: Signal<Local, PairSetup>,
    is_set: Signal<Local, Bit>,
    is_times: Signal<Local, Bit>,

    // What must hold, and what it is compared with.
    used: Signal<Local, Bits<32>>,
    /// The frame that has just begun says nothing but the numbers.
    alone: Reg<Bit>,
    /// The frame before it, unless its pair has been set or cleared since.
    has_last: Reg<Bit>,
    last_pair: Reg<Bits<16>>,
    last_carried: Reg<Numbers>,
    an_acknowledgement_alone_says_something_new: Check,
    one_control_frame_a_pair_waits: Check,
    queued_envelopes_are_within_the_grant: Check,

    #[is(constant(config.pairs as u64))]
    pairs: Constant<Bits<16>>,
}

impl Acknowledge {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = &[
        Operation::PairSet,
        Operation::PairClear,
        Operation::PairTimes,
    ];

    /// The block of a card.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(pairs = self.pairs.val().index())]
impl Logic for Acknowledge {
    fn update(&mut self) {
        self.choose();
        self.change();
        self.turn();
        self.carry();
    }
}
