//! Tells hosts what was refused to their peers: each of them in its turn, seldom, and none of it is forgotten.
//!
//! ```text
//!   refused ─► Fifo ─► kept for its pair: the last one, how many ─► turn ─► raise, to the endpoint of the pair
//!   control (PairSet, PairClear) ──► the pair's endpoint             ▲
//!                                     pause since the last event ────┘
//! ```
//!
//! A peer can make as many accesses that it may not as it likes. So what is refused is kept in a place of its pair: the last one, and how many there were since the
//! event before. The pairs are looked at in turn; one that has something to tell does so when the last event, of whatever pair, is long enough ago. However
//! many peers do so, and however often: the host gets events at a bounded rate, each of these peers has its turn, and no other waits.
//!
//! Nothing is told of a pair that isn't connected, and what is kept of it is forgotten when it is. So nothing is told of a pair once its `PairClear` is done.

use crate::config::Config;
use crate::prelude::*;
use crate::prim::{Fifo, Table};
use crate::types::{ControlRequest, PairSetup, RaiseEvent, RemoteRefusal};
use abi::control::Operation;
use abi::event::{Cause, REFUSAL_COUNT_BIT, REFUSAL_REASON_BIT};
use abi::times::REFUSAL_INTERVAL;

const _: () = assert!(REFUSAL_INTERVAL <= 1 << 16, "the pause has 16 bits");

/// Refusals that come at most before the first of them is kept: they are cycles apart.
const FEW: usize = 4;

/// Of a pair: what was refused last and isn't told.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Kept {
    /// The pair is connected.
    connected: Bit,
    endpoint: Bits<8>,
    count: Bits<16>,
    reason: Bits<8>,
    region: Bits<32>,
    offset: Bits<64>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// Something is looked for that has been refused, or is to be told; or the firmware asks.
    Idle,
    /// What is kept for the pair of a refusal comes out of the table,
    Find,
    /// and the refusal is kept.
    Keep,
    /// What is kept for the pair whose turn it is comes out of the table,
    Look,
    /// and is told, if there is something.
    Tell,
}

/// What is kept for all pairs, and the event on its way.
#[block(config: &Config)]
pub struct PeerRefusals {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets all.
    pub reset: Signal<In, Bit>,
    /// The table is cleared.
    pub initialized: Signal<Out, Bit>,
    /// An access was refused.
    pub refused: Pulse<In, RemoteRefusal>,
    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,
    /// An event of the cause `PeerRefused`.
    pub raise: Stream<Out, RaiseEvent>,
    /// Its offset.
    pub offset: Signal<Out, Bits<64>>,

    #[is(Table::block(config.pairs))]
    rows: Table<Kept>,
    #[is(Fifo::new(FEW))]
    waiting: Fifo<RemoteRefusal>,
    state: Reg<State>,
    kept: Reg<Kept>,
    /// Pair whose turn it is.
    turn: Reg<Bits<16>>,
    pause: Reg<Bits<16>>,
    telling: Reg<Bit>,
    event: Reg<RaiseEvent>,
    event_offset: Reg<Bits<64>>,

    changed: Signal<Local, Kept>,
    setup: Signal<Local, PairSetup>,
    clears: Signal<Local, Bit>,
    waits: Signal<Local, Bit>,
    counted: Signal<Local, Bits<16>>,
    tells: Signal<Local, Bit>,
    #[is(constant(config.pairs as u64 - 1))]
    last: Constant<Bits<16>>,
    #[is(Check::new("no_refusal_of_a_peer_is_lost"))]
    nothing_is_lost: Check,
}

impl PeerRefusals {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = &[Operation::PairSet, Operation::PairClear];

    /// For the pairs of a card.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block]
impl Logic for PeerRefusals {
    fn update(&mut self) {
        self.initialized.next = self.rows.initialized.val();
        send!(
            self.waiting.input,
            self.refused.valid.val(),
            self.refused.data.val()
        );
        self.nothing_is_lost.ok.next = self.waiting.input.ready.val() | !self.refused.valid.val();
        self.waiting.output.ready.next = false;

        // The event on its way.
        send!(self.raise, self.telling.q.val(), self.event.q.val());
        self.offset.next = self.event_offset.q.val();
        if self.raise.ready.val() {
            self.telling.d.next = false;
        }
        if self.pause.q.val().any() {
            self.pause.d.next = self.pause.q.val() - 1;
        }

        // A pair that is cleared is told of before, or not at all.
        self.clears.next = self.control.data.val().operation == Operation::PairClear;
        self.waits.next = self.clears.val()
            & self.telling.q.val()
            & (self.event.q.val().pair == self.control.data.val().index);
        self.setup.next = self.control.data.val().data.into();
        self.control.ready.next = false;

        self.rows.read_address.next = self.waiting.output.data.val().pair;
        self.changed.next = self.kept.q.val();
        self.rows.write.enable.next = false;
        self.rows.write.address.next = self.waiting.output.data.val().pair;
        self.counted.next = self.kept.q.val().count;
        if !self.kept.q.val().count.all() {
            self.counted.next = self.kept.q.val().count + 1;
        }
        self.tells.next = self.kept.q.val().connected & self.kept.q.val().count.any();

        match self.state.q.val() {
            State::Idle => {
                if self.rows.initialized.val() {
                    if self.waiting.output.valid.val() {
                        self.state.d.next = State::Find;
                    } else if self.control.valid.val() & !self.waits.val() {
                        self.control.ready.next = true;
                        self.changed.next = Kept::default();
                        if !self.clears.val() {
                            self.changed.next.connected = true;
                            self.changed.next.endpoint = self.setup.val().endpoint;
                        }
                        self.rows.write.enable.next = true;
                        self.rows.write.address.next = self.control.data.val().index;
                    } else if !self.telling.q.val() & !self.pause.q.val().any() {
                        self.rows.read_address.next = self.turn.q.val();
                        self.state.d.next = State::Look;
                    }
                }
            }
            State::Find => {
                self.kept.d.next = self.rows.read_data.val();
                self.state.d.next = State::Keep;
            }
            State::Keep => {
                self.waiting.output.ready.next = true;
                self.changed.next.count = self.counted.val();
                self.changed.next.reason = self.waiting.output.data.val().reason;
                self.changed.next.region = self.waiting.output.data.val().region;
                self.changed.next.offset = self.waiting.output.data.val().offset;
                self.rows.write.enable.next = true;
                self.state.d.next = State::Idle;
            }
            State::Look => {
                self.kept.d.next = self.rows.read_data.val();
                self.state.d.next = State::Tell;
            }
            State::Tell => {
                self.turn.d.next = self.turn.q.val() + 1;
                if self.turn.q.val() == self.last.val() {
                    self.turn.d.next = 0.into();
                }
                if self.tells.val() {
                    self.telling.d.next = true;
                    self.event.d.next = RaiseEvent {
                        endpoint: self.kept.q.val().endpoint,
                        cause: Cause::PeerRefused,
                        pair: self.turn.q.val(),
                        info: bit_cast::<64, 32>(self.kept.q.val().region)
                            | (bit_cast::<64, 8>(self.kept.q.val().reason) << REFUSAL_REASON_BIT)
                            | (bit_cast::<64, 16>(self.kept.q.val().count) << REFUSAL_COUNT_BIT),
                    };
                    self.event_offset.d.next = self.kept.q.val().offset;
                    self.pause.d.next = REFUSAL_INTERVAL - 1;
                    self.changed.next.count = 0.into();
                    self.rows.write.enable.next = true;
                    self.rows.write.address.next = self.turn.q.val();
                }
                self.state.d.next = State::Idle;
            }
            _ => {}
        }
        self.rows.write.data.next = self.changed.val();
    }
}
