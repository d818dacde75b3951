//! What this card owes the peers of its pairs: how many messages are safe here and which of the latest of them were refused,
//! how many envelopes are free again, and that a pair has failed.
//!
//! Both are running numbers, and every frame of the pair carries them, so nothing is lost with a
//! frame that is. When they have moved and no frame is on its way anyway, a pair is marked, and
//! each marked pair gets one control frame in its turn; marks made before the frame reads the
//! numbers cost nothing more. A pair is also marked to answer a peer that asks, and to ask its own.
//!
//! ```text
//!                  ┌──────────────────┐  pair   ┌───────┐
//!   sink_update ──►│ accepted, freed, ├────────►│ turns ├──► control_frame
//!   fault, mark ──►│ marks (Ram)      │ at most │ (Fifo)│
//!                  └──────┬───────────┘  once   └───────┘
//!   lookup_pair ──► copy of the numbers ──► lookup_acknowledge, lookup_credit
//! ```
//!
//! A pair waits in the queue of turns at most once and a pair whose frame is being offered isn't
//! queued again, so the queue, one entry a pair, never overflows and an update never waits for the
//! wire.

use crate::config::Config;
use crate::construct::construct;
use crate::prelude::*;
use crate::prim::{Fifo, Ram};
use crate::types::{ControlFrame, ControlRequest, Fault, Mark, PairSetup, SinkUpdate};
use abi::control::Operation;
use abi::status::Status;
use abi::wire::FrameType;

/// Breaks the block on purpose, so that a test can show that it would notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, LogicState)]
pub enum AcknowledgeMutation {
    /// As designed.
    None,
    /// A freed envelope counts twice.
    CreditReturnedTwice,
    /// A pair is queued again although it waits already.
    QueuedTwice,
    /// A pair is not queued again once it has been.
    MarkLost,
    /// A frame of a pair that is set or cleared stays on offer.
    FrameOutlivesPair,
    /// A pair that is to ask acknowledges only.
    AskForgotten,
    /// The window of what was refused stays where it is when a message is accepted.
    WindowNotShifted,
    /// An orderly end is announced as a failure.
    ClosingAnnounced,
}

/// What is kept of a pair.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Sink {
    accepted: Bits<32>,
    freed: Bits<32>,
    /// Which of the latest accepted were refused, the last one's bit first.
    refused: Bits<16>,
    granted: Bits<8>,
    connected: Bit,
    failed: Bit,
    /// The peer is still to be told of the failure.
    announce: Bit,
    /// The peer is to be asked.
    asks: Bit,
    /// The numbers have moved, or the peer asks for them.
    marked: Bit,
    /// The pair is in the queue of turns.
    queued: Bit,
}

/// What a frame carries.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Numbers {
    accepted: Bits<32>,
    freed: Bits<32>,
    refused: Bits<16>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// The table is being cleared.
    Clear,
    /// Choosing what to do.
    Idle,
    /// A control request's pair has been read.
    Control,
    /// A fault's pair has been read.
    Fault,
    /// An update's pair has been read.
    Update,
    /// The pair to mark has been read.
    Mark,
    /// The next pair in turn has been read.
    Turn,
}

/// Keeps the receiving side's numbers and asks for the frames that carry them.
#[derive(LogicBlock)]
pub struct Acknowledge {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// Which contract to break; there in [`Self::mutable`] only.
    pub mutation: Vec<Signal<In, AcknowledgeMutation>>,
    /// The table is cleared.
    pub initialized: Signal<Out, Bit>,
    /// There is an update.
    pub sink_update_valid: Signal<In, Bit>,
    /// It is taken.
    pub sink_update_ready: Signal<Out, Bit>,
    /// A message became safe, or an envelope free.
    pub sink_update: Signal<In, SinkUpdate>,
    /// A pair is to send a frame although its numbers haven't moved.
    pub mark_valid: Signal<In, Bit>,
    /// It will.
    pub mark_ready: Signal<Out, Bit>,
    /// The pair, and whether it asks or answers.
    pub mark: Signal<In, Mark>,
    /// A control frame is to be sent.
    pub control_frame_valid: Signal<Out, Bit>,
    /// Its sending begins; its numbers are looked up in this cycle or later.
    pub control_frame_ready: Signal<In, Bit>,
    /// Pair and type.
    pub control_frame: Signal<Out, ControlFrame>,
    /// Pair whose numbers a frame is to carry.
    pub lookup_pair: Signal<In, Bits<16>>,
    /// One cycle later: messages that are safe here.
    pub lookup_acknowledge: Signal<Out, Bits<32>>,
    /// One cycle later: envelopes whose credit has been returned.
    pub lookup_credit: Signal<Out, Bits<32>>,
    /// One cycle later: bit k is set if the message that is k before the last safe one was refused.
    pub lookup_refused: Signal<Out, Bits<16>>,
    /// A pair has failed.
    pub fault_valid: Signal<In, Bit>,
    /// Its peer will be told.
    pub fault_ready: Signal<Out, Bit>,
    /// The pair.
    pub fault: Signal<In, Fault>,
    /// There is a control request.
    pub control_valid: Signal<In, Bit>,
    /// The control request.
    pub control: Signal<In, ControlRequest>,
    /// It is done.
    pub control_done: Signal<Out, Bit>,
    /// The numbers of a pair have changed.
    pub monitor_sink_valid: Signal<Out, Bit>,
    /// The pair.
    pub monitor_sink_pair: Signal<Out, Bits<16>>,
    /// Messages accepted.
    pub monitor_sink_accepted: Signal<Out, Bits<32>>,
    /// Envelopes freed.
    pub monitor_sink_freed: Signal<Out, Bits<32>>,

    sinks: Ram<Sink>,
    numbers: Ram<Numbers>,
    turns: Fifo<Bits<16>>,
    state: Reg<State>,
    clearing: Reg<Bits<16>>,
    offered: Reg<Bit>,
    offered_frame: Reg<ControlFrame>,

    setup: Signal<Local, PairSetup>,
    carried: Signal<Local, Numbers>,
    carried_now: Signal<Local, Numbers>,
    held: Signal<Local, Sink>,
    sink: Signal<Local, Sink>,
    address: Signal<Local, Bits<16>>,
    write: Signal<Local, Bit>,
    changed: Signal<Local, Bit>,
    is_set: Signal<Local, Bit>,
    own: Signal<Local, Bit>,
    push: Signal<Local, Bit>,
    carries: Signal<Local, Bit>,
    window: Signal<Local, Bits<16>>,
    used: Signal<Local, Bits<32>>,

    pairs: Constant<Bits<16>>,
    last_pair: Constant<Bits<16>>,
    pair_set: Constant<Bits<8>>,
    pair_clear: Constant<Bits<8>>,
    nothing: Constant<Sink>,
    peer_closed: Constant<Bits<8>>,
    acknowledge_type: Constant<Bits<8>>,
    ask_type: Constant<Bits<8>>,
    pair_failed_type: Constant<Bits<8>>,

    one_turn: Check,
    within_grant: Check,
    _mutable: usize,
}

impl Acknowledge {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = &[Operation::PairSet, Operation::PairClear];

    /// The block of a card, as designed.
    pub fn new(config: &Config) -> Self {
        Self::build(config, 0)
    }

    /// The same with the input `mutation`, for tests.
    pub fn mutable(config: &Config) -> Self {
        Self::build(config, 1)
    }

    fn build(config: &Config, mutable: usize) -> Self {
        let code = |code: u8| Constant::new(u64::from(code).into());
        construct!({
            sinks: Ram::new(config.pairs),
            numbers: Ram::new(config.pairs),
            turns: Fifo::new(config.pairs),
            state: Reg::new(State::Clear),
            pairs: Constant::new((config.pairs as u64).into()),
            last_pair: Constant::new((config.pairs as u64 - 1).into()),
            pair_set: code(Operation::PairSet.code()),
            pair_clear: code(Operation::PairClear.code()),
            nothing: Constant::new(Sink::default()),
            peer_closed: Constant::new(u64::from(Status::PeerClosed.code()).into()),
            acknowledge_type: code(FrameType::Acknowledge.code()),
            ask_type: code(FrameType::Ask.code()),
            pair_failed_type: code(FrameType::PairFailed.code()),
            one_turn: Check::new("one_control_frame_a_pair_waits"),
            within_grant: Check::new("queued_envelopes_are_within_the_grant"),
            mutation: (0..mutable).map(|_| Signal::default()).collect(),
            _mutable: mutable,
        } default {
            clock reset initialized sink_update_valid sink_update_ready sink_update mark_valid mark_ready mark
            control_frame_valid control_frame_ready control_frame lookup_pair lookup_acknowledge
            lookup_credit lookup_refused fault_valid fault_ready fault control_valid control control_done
            monitor_sink_valid monitor_sink_pair monitor_sink_accepted monitor_sink_freed
            clearing offered offered_frame setup carried carried_now held sink address write changed is_set own
            push carries window used
        })
    }
}

#[module]
impl Logic for Acknowledge {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, state, clearing, offered, offered_frame);
        clocked!(self, clock, reset, turns, one_turn, within_grant);
        clock!(self, clock, sinks, numbers);

        self.initialized.next = self.state.q.val() != State::Clear;
        self.setup.next = self.control.val().data.into();
        self.is_set.next = self.control.val().operation == self.pair_set.val();
        self.own.next = self.control_valid.val()
            & (self.is_set.val() | (self.control.val().operation == self.pair_clear.val()));
        self.control_done.next = self.control_valid.val() & !self.own.val();
        self.fault_ready.next = false;
        self.sink_update_ready.next = false;
        self.mark_ready.next = false;

        // The numbers that a frame is to carry.
        self.numbers.read_address.next = self.lookup_pair.val();
        self.carried.next = self.numbers.read_data.val();
        self.lookup_acknowledge.next = self.carried.val().accepted;
        self.lookup_credit.next = self.carried.val().freed;
        self.lookup_refused.next = self.carried.val().refused;

        // The frame that is offered.
        self.control_frame_valid.next = self.offered.q.val();
        self.control_frame.next = self.offered_frame.q.val();
        if self.control_frame_ready.val() {
            self.offered.d.next = false;
        }
        self.turns.output.ready.next = false;

        // Whatever is done is done to one pair: read it in Idle, change it in the next cycle.
        self.address.next = self.turns.output.data.val();
        if self.own.val() {
            self.address.next = self.control.val().index;
        } else if self.fault_valid.val() {
            self.address.next = self.fault.val().pair;
        } else if self.sink_update_valid.val() {
            self.address.next = self.sink_update.val().pair;
        } else if self.mark_valid.val() {
            self.address.next = self.mark.val().pair;
        }
        self.sinks.read_address.next = self.address.val();
        self.held.next = self.sinks.read_data.val();
        self.sink.next = self.held.val();
        self.write.next = false;
        self.changed.next = false;
        self.push.next = false;
        self.window.next = self.held.val().refused;
        // A frame that is offered and not taken in this cycle will carry what is written now.
        self.carries.next = self.offered.q.val()
            & !self.control_frame_ready.val()
            & (self.offered_frame.q.val().pair == self.sink_update.val().pair);

        match self.state.q.val() {
            State::Clear => {
                self.address.next = self.clearing.q.val();
                self.write.next = true;
                self.sink.next = self.nothing.val();
                self.clearing.d.next = self.clearing.q.val() + 1;
                if self.clearing.q.val() == self.last_pair.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Idle => {
                if self.own.val() {
                    self.state.d.next = State::Control;
                } else if self.fault_valid.val() {
                    self.state.d.next = State::Fault;
                } else if self.sink_update_valid.val() {
                    self.state.d.next = State::Update;
                } else if self.mark_valid.val() {
                    self.state.d.next = State::Mark;
                } else if self.turns.output.valid.val() & !self.offered.q.val() {
                    self.state.d.next = State::Turn;
                }
            }
            State::Control => {
                self.address.next = self.control.val().index;
                self.control_done.next = true;
                // A frame that is on offer would go out as the pair's next incarnation's, and a `PairFailed` would end
                // that: the offer ends, since the wire may never take it.
                if self.offered_frame.q.val().pair == self.control.val().index {
                    self.offered.d.next = false;
                }
                for m in 0..self._mutable {
                    if self.mutation[m].val() == AcknowledgeMutation::FrameOutlivesPair {
                        self.offered.d.next =
                            self.offered.q.val() & !self.control_frame_ready.val();
                    }
                }
                self.write.next = self.control.val().index < self.pairs.val();
                self.changed.next = self.write.val() & self.is_set.val();
                // A stale turn stays in the queue and finds nothing to do.
                self.sink.next = self.nothing.val();
                self.sink.next.queued = self.held.val().queued;
                self.sink.next.granted = self.setup.val().local_credits;
                self.sink.next.connected = self.is_set.val();
                self.state.d.next = State::Idle;
            }
            State::Fault => {
                self.address.next = self.fault.val().pair;
                self.fault_ready.next = true;
                if self.sink.val().connected
                    & !self.sink.val().failed
                    & (self.fault.val().pair < self.pairs.val())
                {
                    self.write.next = true;
                    self.sink.next.failed = true;
                    // The firmware has told the peer of an orderly end itself.
                    self.sink.next.announce = self.fault.val().status != self.peer_closed.val();
                    for m in 0..self._mutable {
                        if self.mutation[m].val() == AcknowledgeMutation::ClosingAnnounced {
                            self.sink.next.announce = true;
                        }
                    }
                    self.push.next = !self.held.val().queued;
                }
                self.state.d.next = State::Idle;
            }
            State::Update => {
                self.address.next = self.sink_update.val().pair;
                self.sink_update_ready.next = true;
                if self.sink.val().connected
                    & !self.sink.val().failed
                    & (self.sink_update.val().pair < self.pairs.val())
                {
                    self.write.next = true;
                    self.changed.next = true;
                    if self.sink_update.val().accepted {
                        self.sink.next.accepted = self.sink.val().accepted + 1;
                        self.window.next = self.held.val().refused << 1;
                        for m in 0..self._mutable {
                            if self.mutation[m].val() == AcknowledgeMutation::WindowNotShifted {
                                self.window.next = self.held.val().refused;
                            }
                        }
                        if self.sink_update.val().refused {
                            self.window.next = self.window.val() | 1;
                        }
                        self.sink.next.refused = self.window.val();
                    }
                    if self.sink_update.val().freed {
                        self.sink.next.freed = self.sink.val().freed + 1;
                        for m in 0..self._mutable {
                            if self.mutation[m].val() == AcknowledgeMutation::CreditReturnedTwice {
                                self.sink.next.freed = self.sink.val().freed + 1;
                            }
                        }
                    }
                    if !self.carries.val() {
                        self.sink.next.marked = true;
                        self.push.next = !self.held.val().queued;
                        for m in 0..self._mutable {
                            if self.mutation[m].val() == AcknowledgeMutation::QueuedTwice {
                                self.push.next = true;
                            }
                        }
                    }
                }
                self.state.d.next = State::Idle;
            }
            State::Mark => {
                self.address.next = self.mark.val().pair;
                self.mark_ready.next = true;
                if self.sink.val().connected
                    & !self.sink.val().failed
                    & (self.mark.val().pair < self.pairs.val())
                {
                    self.write.next = true;
                    self.sink.next.marked = true;
                    if self.mark.val().ask {
                        self.sink.next.asks = true;
                    }
                    self.push.next = !self.held.val().queued;
                }
                self.state.d.next = State::Idle;
            }
            State::Turn => {
                self.address.next = self.turns.output.data.val();
                self.turns.output.ready.next = true;
                self.write.next = true;
                self.sink.next.queued = false;
                for m in 0..self._mutable {
                    if self.mutation[m].val() == AcknowledgeMutation::MarkLost {
                        self.sink.next.queued = true;
                    }
                }
                self.sink.next.marked = false;
                self.sink.next.asks = false;
                self.sink.next.announce = false;
                self.offered_frame.d.next.pair = self.turns.output.data.val();
                if self.held.val().announce {
                    self.offered.d.next = true;
                    self.offered_frame.d.next.frame_type = self.pair_failed_type.val();
                } else if self.held.val().marked & !self.held.val().failed {
                    self.offered.d.next = true;
                    self.offered_frame.d.next.frame_type = self.acknowledge_type.val();
                    if self.held.val().asks {
                        self.offered_frame.d.next.frame_type = self.ask_type.val();
                    }
                    for m in 0..self._mutable {
                        if self.mutation[m].val() == AcknowledgeMutation::AskForgotten {
                            self.offered_frame.d.next.frame_type = self.acknowledge_type.val();
                        }
                    }
                }
                self.state.d.next = State::Idle;
            }
            _ => {}
        }

        if self.push.val() {
            self.sink.next.queued = true;
        }
        self.turns.input.valid.next = self.push.val();
        self.turns.input.data.next = self.address.val();
        self.carried_now.next = self.carried.val();
        self.carried_now.next.accepted = self.sink.val().accepted;
        self.carried_now.next.freed = self.sink.val().freed;
        self.carried_now.next.refused = self.sink.val().refused;
        self.sinks.write_enable.next = self.write.val();
        self.sinks.write_address.next = self.address.val();
        self.sinks.write_data.next = self.sink.val();
        self.numbers.write_enable.next = self.write.val();
        self.numbers.write_address.next = self.address.val();
        self.numbers.write_data.next = self.carried_now.val();

        self.monitor_sink_valid.next = self.changed.val();
        self.monitor_sink_pair.next = self.address.val();
        self.monitor_sink_accepted.next = self.sink.val().accepted;
        self.monitor_sink_freed.next = self.sink.val().freed;

        self.used.next = self.sink.val().accepted - self.sink.val().freed;
        self.one_turn.ok.next =
            !self.push.val() | (self.turns.input.ready.val() & !self.held.val().queued);
        self.within_grant.ok.next =
            !self.changed.val() | (self.used.val() <= bit_cast::<32, 8>(self.sink.val().granted));
    }
}
