//! The second half of the receiver: it looks up a frame's pair, checks its number, and hands on what it carries.
//!
//! [`Screen`] hands over whole frames that are well formed. Here the frame's pair is looked up, and both endpoints, both
//! epochs and the cookie must agree; then its number must be the next of its pair and class. An older number is a
//! duplicate's, and the frame is dropped; a request's duplicate also has the pair answer its peer, which may not have heard that
//! the request is safe. A newer request means that a message is missing: it is dropped, and the peer is told; a newer control frame
//! passes, since its numbers are absolute. A good frame's running numbers go to the sender's side as `progress`, its message, if it has one, to
//! the receiver's as `arrival` and `payload`. A get that comes again arrives again, to be answered again. The answer of a get has the get's
//! number, and is in no sequence: it is claimed from [`SendQueues`](crate::envelope::SendQueues), which knows whether the get waits for it and where
//! its bytes go; one that isn't awaited is a duplicate. Frames for the firmware belong to no pair that is looked up here: [`Screen`] leaves
//! them to [`FirmwareIn`](super::FirmwareIn).
//!
//! ```text
//!             ┌────────┐ frame ┌──────────────────────┐
//!   s_axis ──►│ Screen ├──────►│ look up ► sequence ► ├──► progress, arrival
//!             │        ├──────►│  (Ram a pair)        ├──► words (Fifo) ──► payload
//!             └────────┘ word  │                      ├──► fault_request
//!                              │                      ├──► claim, ◄── claimed
//!                              │ failed (a bit a pair)│◄── fault
//!                              └──────────────────────┘
//! ```
//!
//! Payload waits in a queue of its own, so the next message is offered while those before it are still being matched.
//!
//! A `fault` is taken at any time, whatever this block waits for itself. Without that [`Faults`](super::Faults) and this
//! block could wait for each other for ever.

use super::screen::Screen;
use crate::config::Config;
use crate::prelude::*;
use crate::prim::axi::StreamSink;
use crate::prim::{Fifo, Ram};
use crate::types::{
    Arrival, Claim, Claimed, ControlRequest, Fault, FrameHeader, PairReport, PairSetup, Progress,
};
use abi::control::Operation;
use abi::limits::EAGER_MAX;
use abi::status::Status;
use abi::wire::{FRAME_GAP, FRAME_READY, FRAME_REFUSED, FrameType};

const _: () = assert!(
    FRAME_READY == 1 << 0 && FRAME_GAP == 1 << 1 && FRAME_REFUSED == 1 << 2,
    "the kernel tests these bits"
);

/// Words of payload that wait for their messages' places: two of the longest messages, or thirty of eight bytes and more.
const PAYLOAD_WORDS: usize = 256;

/// A pair's entry: what its frames have to agree with.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Peer {
    connected: Bit,
    endpoint: Bits<16>,
    remote_endpoint: Bits<16>,
    remote_pair: Bits<16>,
    epoch: Bits<16>,
    remote_epoch: Bits<16>,
    cookie: Bits<32>,
}

/// Numbers of the next frames of a pair.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Expected {
    requests: Bits<32>,
    control: Bits<32>,
    /// By how much the last request that was dropped for a gap ran ahead; 0 if the next has come since.
    gap: Bits<8>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// The tables are being cleared.
    Clear,
    /// Waiting for a frame or a control request.
    Idle,
    /// The frame's pair is being read, and compared with it.
    Look,
    /// It is known whether they agree.
    Judge,
    /// The answer of a get is claimed.
    Claim,
    /// The message is offered.
    Arrive,
    /// Its payload goes to the queue.
    Payload,
    /// The pair of a control request has been read.
    Read,
}

/// Receives the frames of all pairs.
#[block(config: &Config)]
pub struct Receive {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// The tables are cleared.
    pub initialized: Signal<Out, Bit>,
    /// Frames from the wire, byte 0 in lane 0.
    pub s_axis: StreamSink,
    /// A word of a frame is taken from `s_axis`.
    pub passes: Signal<Out, Bit>,
    /// Number of that word in its frame.
    pub passes_index: Signal<Out, Bits<16>>,
    /// With a frame's last word: it is a good one for the firmware, and goes no further here.
    pub firmware: Signal<Out, Bit>,
    /// The running numbers of a good frame, and of a request's duplicate, whose sender asks by it for an answer.
    pub progress: Stream<Out, Progress>,
    /// The answer of a get has come.
    pub claim: Stream<Out, Claim>,
    /// In the cycle in which `claim` is taken: whether the get waits for it, and where its bytes go.
    pub claimed: Pulse<In, Claimed>,
    /// The message.
    pub arrival: Stream<Out, Arrival>,
    /// Eight bytes of payload; those beyond the length are the sender's padding.
    pub payload: Stream<Out, Bits<64>>,
    /// The pair, with `LinkError`.
    pub fault_request: Stream<Out, Fault>,
    /// The pair.
    pub fault: Stream<In, Fault>,
    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,
    /// With it, for `PairRead`: a `PairReport` of what is kept here. Zero otherwise.
    pub control_result: Signal<Out, Bits<64>>,
    /// With the pulses of `FramesReceived`, `PairErrors`, `Duplicates` and `Gaps`: pair that the frame names.
    pub count_pair: Signal<Out, Bits<16>>,
    /// Pulse: a frame passed every check.
    pub count_frames_received: Signal<Out, Bit>,
    /// Pulse: a frame was dropped for its CRC, or by the MAC.
    pub count_crc_errors: Signal<Out, Bit>,
    /// Pulse: a frame was dropped for its length.
    pub count_length_errors: Signal<Out, Bit>,
    /// Pulse: a frame was dropped for its EtherType, version, type or flags.
    pub count_type_errors: Signal<Out, Bit>,
    /// Pulse: a frame was dropped because its pair isn't connected, has failed, or doesn't agree.
    pub count_pair_errors: Signal<Out, Bit>,
    /// Pulse: a frame was dropped because it had been received, or answers a get that doesn't wait for it.
    pub count_duplicates: Signal<Out, Bit>,
    /// Pulse: a frame was dropped because one before it is missing.
    pub count_gaps: Signal<Out, Bit>,

    #[is(Screen::new(config))]
    screen: Screen,
    #[is(Ram::new(config.pairs))]
    peers: Ram<Peer>,
    #[is(Ram::distributed(config.pairs))]
    expected: Ram<Expected>,
    #[is(Ram::new(config.pairs))]
    failed: Ram<Bit>,
    /// The peer has closed its side.
    #[is(Ram::new(config.pairs))]
    closed: Ram<Bit>,
    /// A frame has come since the pair was read last.
    #[is(Ram::new(config.pairs))]
    heard: Ram<Bit>,
    #[is(Fifo::new(PAYLOAD_WORDS))]
    payloads: Fifo<Bits<64>>,
    state: Reg<State>,
    clearing: Reg<Bits<16>>,
    remaining: Reg<Bits<16>>,
    progress_pending: Reg<Bit>,
    progress_held: Reg<Progress>,
    fault_pending: Reg<Bit>,
    fault_pair: Reg<Bits<16>>,
    /// The peer has closed that pair, and hasn't failed it.
    fault_closed: Reg<Bit>,

    head: Signal<Local, FrameHeader>,
    setup: Signal<Local, PairSetup>,
    peer: Signal<Local, Peer>,
    next: Signal<Local, Expected>,
    sequence_now: Signal<Local, Bits<32>>,
    ahead: Signal<Local, Bits<32>>,
    words: Signal<Local, Bits<16>>,
    is_request: Signal<Local, Bit>,
    is_message: Signal<Local, Bit>,
    is_put: Signal<Local, Bit>,
    is_get: Signal<Local, Bit>,
    is_answer: Signal<Local, Bit>,
    /// The get that arrives has come before.
    again: Reg<Bit>,
    /// Where the bytes of the answer that arrives go.
    place: Reg<Claimed>,
    same_cookie: Signal<Local, Bit>,
    agrees: Reg<Bit>,
    in_turn: Reg<Bit>,
    behind: Reg<Bit>,
    /// By how much the frame runs ahead, and whether no other of this round of the sender's told of the gap.
    gap: Reg<Bits<8>>,
    tells: Reg<Bit>,
    answers: Signal<Local, Bit>,
    /// A get that comes again arrives.
    repeats: Signal<Local, Bit>,
    refused: Signal<Local, Bit>,
    written: Signal<Local, Peer>,
    take: Signal<Local, Bit>,
    is_set: Signal<Local, Bit>,
    is_read: Signal<Local, Bit>,
    report: Signal<Local, PairReport>,
    quiet: Signal<Local, Bit>,
    finish: Signal<Local, Bit>,
    drop: Signal<Local, Bit>,
    closes: Signal<Local, Bit>,
    fail: Signal<Local, Bit>,

    #[is(constant(config.pairs as u64))]
    pairs: Constant<Bits<16>>,
    #[is(constant(config.pairs as u64 - 1))]
    last_pair: Constant<Bits<16>>,

    /// The number that was expected of the request that is judged, and how far its own is from it.
    awaited: Reg<Bits<32>>,
    off: Signal<Local, Bits<32>>,
    #[is(Check::new("requests_arrive_with_the_expected_number"))]
    in_order: Check,
    #[is(Check::new("arrivals_fit_a_slot"))]
    fits: Check,
    #[is(Check::new("arrivals_come_by_a_connected_pair"))]
    open: Check,
}

impl Receive {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = &[
        Operation::PairSet,
        Operation::PairClear,
        Operation::PairRead,
    ];

    /// The receiver of a card.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block]
impl Logic for Receive {
    fn update(&mut self) {
        StreamSink::link(&mut self.s_axis, &mut self.screen.s_axis);
        self.passes.next = self.screen.passes.val();
        self.passes_index.next = self.screen.passes_index.val();
        self.firmware.next = self.screen.firmware.val();
        self.count_crc_errors.next = self.screen.count_crc_errors.val();
        self.count_length_errors.next = self.screen.count_length_errors.val();
        self.count_type_errors.next = self.screen.count_type_errors.val();

        self.initialized.next = self.state.q.val() != State::Clear;
        self.head.next = self.screen.frame.data.val();
        self.words.next =
            bit_cast::<16, 17>((bit_cast::<17, 16>(self.head.val().payload_length) + 7) >> 3);

        // The tables are always read at the frame's pair.
        self.peers.read_address.next = self.head.val().destination_pair;
        self.expected.read_address.next = self.head.val().destination_pair;
        self.failed.read_address.next = self.head.val().destination_pair;

        // What the frame is, given its pair. The tables come late in their cycle, so the answers are registers.
        self.peer.next = self.peers.read_data.val();
        self.next.next = self.expected.read_data.val();
        self.same_cookie.next = self.head.val().cookie == self.peer.val().cookie;
        self.refused.next = self.failed.read_data.val();
        self.agrees.d.next = self.peer.val().connected
            & (self.head.val().destination_pair < self.pairs.val())
            & (self.head.val().destination_endpoint == self.peer.val().endpoint)
            & (self.head.val().source_endpoint == self.peer.val().remote_endpoint)
            & (self.head.val().source_pair == self.peer.val().remote_pair)
            & (self.head.val().destination_epoch == self.peer.val().epoch)
            & (self.head.val().source_epoch == self.peer.val().remote_epoch)
            & self.same_cookie.val();
        self.is_put.next = self.head.val().frame_type == FrameType::Put;
        self.is_get.next = self.head.val().frame_type == FrameType::Get;
        self.is_answer.next = self.head.val().frame_type == FrameType::GetAnswer;
        self.is_message.next = self.head.val().frame_type == FrameType::Eager;
        self.is_request.next = self.is_message.val() | self.is_put.val() | self.is_get.val();
        self.sequence_now.next = self.next.val().control;
        if self.is_request.val() {
            self.sequence_now.next = self.next.val().requests;
        }
        self.ahead.next = self.head.val().sequence - self.sequence_now.val();
        self.behind.d.next = self.ahead.val().get_bit(31);
        self.gap.d.next = bit_cast::<8, 32>(self.ahead.val());
        self.tells.d.next = !self.next.val().gap.any()
            | (bit_cast::<8, 32>(self.ahead.val()) <= self.next.val().gap);
        // Not `ahead == 0`: a difference comes later than a comparison.
        self.in_turn.d.next = self.head.val().sequence == self.sequence_now.val();

        // Control requests, and the marks of faults, which never wait for anything but a write.
        self.setup.next = self.control.data.val().data.into();
        self.is_set.next = self.control.data.val().operation == Operation::PairSet;
        self.is_read.next = self.control.data.val().operation == Operation::PairRead;
        self.control.ready.next = false;
        self.control_result.next = 0.into();
        self.report.next = PairReport::default();
        if self.heard.read_data.val() {
            self.report.next.heard = 1.into();
        }
        if self.closed.read_data.val() {
            self.report.next.closed = 1.into();
        }
        self.heard.read_address.next = self.control.data.val().index;
        self.closed.read_address.next = self.control.data.val().index;
        store!(
            self.closed.write,
            false,
            self.head.val().destination_pair,
            true
        );
        store!(
            self.heard.write,
            false,
            self.head.val().destination_pair,
            true
        );
        self.quiet.next = !self.fault_pending.q.val() & !self.progress_pending.q.val();

        self.written.next = Peer::default();
        self.written.next.connected = self.is_set.val();
        self.written.next.endpoint = bit_cast::<16, 8>(self.setup.val().endpoint);
        self.written.next.remote_endpoint = self.setup.val().remote_endpoint;
        self.written.next.remote_pair = self.setup.val().remote_pair;
        self.written.next.epoch = self.setup.val().epoch;
        self.written.next.remote_epoch = self.setup.val().remote_epoch;
        self.written.next.cookie = self.setup.val().cookie;
        self.peers.write.enable.next = false;
        self.peers.write.address.next = self.control.data.val().index;
        self.expected.write.enable.next = false;
        self.expected.write.address.next = self.head.val().destination_pair;
        store!(
            self.failed.write,
            self.fault.valid.val(),
            self.fault.data.val().pair,
            true
        );
        self.fault.ready.next = self.fault.valid.val();

        self.progress.valid.next = self.progress_pending.q.val();
        self.progress.data.next = self.progress_held.q.val();
        if self.progress.ready.val() {
            self.progress_pending.d.next = false;
        }
        // A frame's numbers count even if it fails its pair, so they go first.
        self.fault_request.valid.next = self.fault_pending.q.val() & !self.progress_pending.q.val();
        self.fault_request.data.next = Fault {
            pair: self.fault_pair.q.val(),
            status: Status::LinkError.into(),
        };
        if self.fault_closed.q.val() {
            self.fault_request.data.next.status = Status::PeerFailed.into();
        }
        if self.fault_request.valid.val() & self.fault_request.ready.val() {
            self.fault_pending.d.next = false;
        }

        // What its sender says of the pair's own sends; absolute numbers, so those of a duplicate are late at worst.
        self.answers.next = self.is_request.val() & self.behind.q.val();
        if (self.state.q.val() == State::Judge) & self.quiet.val() {
            self.progress_held.d.next = Progress {
                pair: self.head.val().destination_pair,
                acknowledge: self.head.val().acknowledge,
                credit: self.head.val().credit,
                ask: (self.head.val().frame_type == FrameType::Ask) | self.answers.val(),
                gap: !self.is_request.val() & self.head.val().flags.get_bit(1),
                misses: self.is_request.val() & !self.behind.q.val() & !self.in_turn.q.val(),
                refused: self.head.val().refused,
            };
        }

        self.claim.valid.next = self.state.q.val() == State::Claim;
        self.claim.data.next = Claim {
            pair: self.head.val().destination_pair,
            number: self.head.val().sequence,
            length: self.head.val().payload_length,
            refused: self.head.val().flags.get_bit(2),
        };

        self.arrival.valid.next = self.state.q.val() == State::Arrive;
        self.arrival.data.next = Arrival::default();
        self.arrival.data.next.pair = self.head.val().destination_pair;
        self.arrival.data.next.endpoint = bit_cast::<8, 16>(self.peer.val().endpoint);
        self.arrival.data.next.context = self.head.val().context;
        self.arrival.data.next.match_bits = self.head.val().match_bits;
        self.arrival.data.next.immediate = self.head.val().immediate;
        self.arrival.data.next.length = self.head.val().payload_length;
        self.arrival.data.next.ready = self.head.val().flags.get_bit(0);
        self.arrival.data.next.put = !self.is_message.val();
        self.arrival.data.next.get = self.is_get.val();
        self.arrival.data.next.again = self.again.q.val();
        self.arrival.data.next.answer = self.is_answer.val();
        self.arrival.data.next.number = self.head.val().sequence;
        if self.is_get.val() {
            self.arrival.data.next.length = self.head.val().context;
        }
        if self.is_answer.val() {
            self.arrival.data.next.refused = self.head.val().flags.get_bit(2);
            self.arrival.data.next.match_bits = self.place.q.val().address;
            self.arrival.data.next.immediate = bit_cast::<64, 32>(self.place.q.val().key)
                | (bit_cast::<64, 8>(self.place.q.val().domain) << 32);
        }
        send!(
            self.payloads.input,
            self.state.q.val() == State::Payload,
            self.screen.word.val()
        );
        join!(self.payloads.output => self.payload);

        self.closes.next = self.head.val().frame_type == FrameType::PairClosed;
        self.count_pair.next = self.head.val().destination_pair;
        self.count_frames_received.next = false;
        self.count_pair_errors.next = false;
        self.count_duplicates.next = false;
        self.count_gaps.next = false;
        self.finish.next = false;
        self.drop.next = false;
        self.fail.next = false;
        self.take.next = false;
        self.repeats.next = false;
        if self.state.q.val() == State::Judge {
            self.again.d.next = self.behind.q.val() & self.is_get.val();
        }

        match self.state.q.val() {
            State::Clear => {
                self.peers.write.enable.next = true;
                self.peers.write.address.next = self.clearing.q.val();
                self.written.next = Peer::default();
                self.fault.ready.next = false;
                self.failed.write.enable.next = false;
                self.clearing.d.next = self.clearing.q.val() + 1;
                if self.clearing.q.val() == self.last_pair.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Idle => {
                if self.control.valid.val() {
                    if self.is_read.val() {
                        self.state.d.next = State::Read;
                    } else if self.quiet.val() {
                        self.control.ready.next = true;
                        if self.control.data.val().index < self.pairs.val() {
                            self.peers.write.enable.next = true;
                            self.expected.write.enable.next = true;
                            self.expected.write.address.next = self.control.data.val().index;
                            self.next.next = Expected::default();
                            store!(self.heard.write, true, self.control.data.val().index, false);
                            store!(
                                self.closed.write,
                                true,
                                self.control.data.val().index,
                                false
                            );
                            self.fault.ready.next = false;
                            store!(
                                self.failed.write,
                                true,
                                self.control.data.val().index,
                                false
                            );
                        }
                    }
                } else if self.screen.frame.valid.val() {
                    self.state.d.next = State::Look;
                }
            }
            State::Read => {
                self.control.ready.next = true;
                self.state.d.next = State::Idle;
                if self.control.data.val().index < self.pairs.val() {
                    self.control_result.next = self.report.val().into();
                    store!(self.heard.write, true, self.control.data.val().index, false);
                }
            }
            State::Look => {
                self.state.d.next = State::Judge;
            }
            State::Judge => {
                if self.quiet.val() {
                    self.heard.write.enable.next = self.agrees.q.val() & !self.refused.val();
                    if !self.agrees.q.val() | self.refused.val() {
                        self.count_pair_errors.next = true;
                        self.drop.next = true;
                    } else if self.is_answer.val() {
                        // Its number is the get's.
                        self.state.d.next = State::Claim;
                    } else if self.in_turn.q.val() | (!self.is_request.val() & !self.behind.q.val())
                    {
                        self.count_frames_received.next = true;
                        self.expected.write.enable.next = true;
                        self.progress_pending.d.next = true;
                        if self.is_request.val() {
                            self.next.next.requests = self.head.val().sequence + 1;
                            self.next.next.gap = 0.into();
                            self.state.d.next = State::Arrive;
                        } else {
                            self.next.next.control = self.head.val().sequence + 1;
                            self.finish.next = true;
                            self.fail.next = (self.head.val().frame_type == FrameType::PairFailed)
                                | self.closes.val();
                        }
                    } else if self.behind.q.val() {
                        self.count_duplicates.next = true;
                        self.progress_pending.d.next = self.answers.val();
                        self.repeats.next = self.is_get.val();
                        self.drop.next = !self.repeats.val();
                        if self.repeats.val() {
                            self.state.d.next = State::Arrive;
                        }
                    } else {
                        // The sender goes back when it is told, once for each of its rounds.
                        self.count_gaps.next = true;
                        self.drop.next = true;
                        self.progress_pending.d.next = self.tells.q.val();
                        self.expected.write.enable.next = true;
                        self.next.next.gap = self.gap.q.val();
                    }
                }
            }
            State::Claim => {
                self.place.d.next = self.claimed.data.val();
                if self.claim.ready.val() {
                    // What it says of this side's sends holds, whether or not it is awaited.
                    self.progress_pending.d.next = true;
                    self.count_frames_received.next = self.claimed.data.val().taken;
                    self.count_duplicates.next = !self.claimed.data.val().taken;
                    self.drop.next = !self.claimed.data.val().taken;
                    if self.claimed.data.val().taken {
                        self.state.d.next = State::Arrive;
                    }
                }
            }
            State::Arrive => {
                self.remaining.d.next = self.words.val();
                if self.arrival.ready.val() {
                    if self.words.val() == 0 {
                        self.finish.next = true;
                    } else {
                        self.state.d.next = State::Payload;
                    }
                }
            }
            State::Payload => {
                if self.payloads.input.ready.val() {
                    self.take.next = true;
                    self.remaining.d.next = self.remaining.q.val() - 1;
                    if self.remaining.q.val() == 1 {
                        self.finish.next = true;
                    }
                }
            }
            _ => {}
        }

        // A pair that fails here drops its frames from this cycle on; `Faults` offers the fault later.
        if self.fail.val() {
            self.fault_pending.d.next = true;
            self.fault_pair.d.next = self.head.val().destination_pair;
            self.fault_closed.d.next = self.closes.val();
            self.fault.ready.next = false;
            self.failed.write.enable.next = true;
            self.failed.write.address.next = self.head.val().destination_pair;
            self.closed.write.enable.next = self.closes.val();
        }
        if self.finish.val() | self.drop.val() {
            self.state.d.next = State::Idle;
        }
        self.screen.frame.ready.next = self.finish.val() | self.drop.val();
        self.screen.take.next = self.take.val();
        self.screen.discard.next = self.drop.val();
        self.screen.discard_words.next = self.words.val();
        self.peers.write.data.next = self.written.val();
        self.expected.write.data.next = self.next.val();

        self.fits.ok.next =
            !self.arrival.valid.val() | (self.arrival.data.val().length <= EAGER_MAX);
        self.open.ok.next = !self.arrival.valid.val() | self.peer.val().connected;
        if self.state.q.val() == State::Judge {
            self.awaited.d.next = self.expected.read_data.val().requests;
        }
        self.off.next = self.head.val().sequence - self.awaited.q.val();
        self.in_order.ok.next = !self.arrival.valid.val()
            | self.is_answer.val()
            | !self.off.val().any()
            | (self.again.q.val() & self.off.val().get_bit(31));
    }
}
