//! Makes frames of messages and control frames: header first, CRC last, a word a cycle.
//!
//! ```text
//!   message ────────┐   ┌──────────────────────────┐   ┌────────┐
//!   control_frame ──┴──►│ pair, numbers, header,   ├──►│  Crc   ├──► m_axis
//!   payload ───────────►│ payload                  │   │        │
//!                       └────────▲─────────────────┘   └────────┘
//!   lookup ◄── acknowledged, credit, refused ──┘
//! ```
//!
//! Control frames go first, but not twice running while a message waits. Each frame takes the pair as it is when the frame begins, and
//! a number of its pair: messages and control frames are counted apart. So a message that isn't sent leaves no hole in the numbers. One that
//! is sent again brings its number along.
//!
//! A get is a message without payload, whose frame says how many bytes are wanted. The answer of a peer's get has that get's number, and takes none. One of
//! a pair that has failed is dropped.
//!
//! A pair is set or cleared within a few cycles, whatever the wire does. A frame that has begun goes on with what it took; one of a pair that
//! isn't connected is dropped.

use crate::config::Config;
use crate::prelude::*;
use crate::prim::Ram;
use crate::prim::axi::StreamSource;
use crate::types::{CardSetup, ControlFrame, ControlRequest, Message, PairSetup};
use abi::control::Operation;
use abi::wire::{FRAME_GAP, FRAME_REFUSED, FrameType};

use super::crc::Crc;
use super::header::{Carried, HEADER_WORDS, Header, Peer};

/// Numbers of a pair's next frames.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Numbers {
    message: Bits<32>,
    control: Bits<32>,
}

/// The frame with a new number that went out last of its kind, for a check.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Latest {
    /// There is one, and its pair hasn't been set or cleared since.
    known: Bit,
    pair: Bits<16>,
    /// The number behind its own.
    following: Bits<32>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// The table is being cleared.
    Clear,
    /// Waiting for a message, a control frame or a control request.
    Idle,
    /// Pair and numbers have been read.
    Begin,
    /// Words go out.
    Send,
}

/// Sends the frames of all pairs.
#[block(config: &Config)]
pub struct Framer {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous, active high. Cuts a frame.
    pub reset: Signal<In, Bit>,
    /// The table is cleared.
    pub initialized: Signal<Out, Bit>,
    /// A message whose payload is in the card. Taken when its frame begins.
    pub message: Stream<In, Message>,
    /// Word of the payload of the message that was taken last.
    pub payload_index: Signal<Out, Bits<16>>,
    /// The word of the index of the cycle before.
    pub payload: Signal<In, Bits<64>>,
    /// Pulse: that message's payload isn't needed any more.
    pub payload_done: Signal<Out, Bit>,
    /// A frame without a message. Taken when it begins.
    pub control_frame: Stream<In, ControlFrame>,
    /// Pair whose numbers the frame is to carry.
    pub lookup_pair: Signal<Out, Bits<16>>,
    /// Pulse: its frame begins.
    pub lookup_begins: Signal<Out, Bit>,
    /// One cycle later: messages that are safe here.
    pub lookup_acknowledge: Signal<In, Bits<32>>,
    /// One cycle later: envelopes whose credit has been returned.
    pub lookup_credit: Signal<In, Bits<32>>,
    /// One cycle later: which of the latest of them were refused.
    pub lookup_refused: Signal<In, Bits<16>>,
    /// One cycle later: the pair has failed.
    pub lookup_failed: Signal<In, Bit>,
    /// Frames to the wire, byte 0 in lane 0.
    pub m_axis: StreamSource,
    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,
    /// Pulse: a frame has been sent.
    pub count_frames_sent: Signal<Out, Bit>,

    #[is(Reg::new(State::Clear))]
    state: Reg<State>,
    clearing: Reg<Bits<16>>,
    #[is(Ram::new(config.pairs))]
    peers: Ram<Peer>,
    #[is(Ram::distributed(config.pairs))]
    numbers: Ram<Numbers>,
    mac: Reg<Bits<48>>,

    // The frame that goes out: the tables' words come late in their cycle.
    header: Header,
    sender: Reg<Bits<48>>,
    peer: Reg<Peer>,
    frame_type: Reg<Bits<8>>,
    of_message: Reg<Bit>,
    framed: Reg<Message>,
    carried: Reg<Carried>,
    /// The frame before had no message.
    control_last: Reg<Bit>,
    /// Number of the word that goes to the output next, and of the last.
    word: Reg<Bits<16>>,
    trailer: Reg<Bits<16>>,
    crc: Crc,
    #[is(Reg::new(u64::from(u32::MAX).into()))]
    crc_state: Reg<Bits<32>>,
    out_valid: Reg<Bit>,
    out_data: Reg<Bits<64>>,
    out_last: Reg<Bit>,
    begun: Reg<Bit>,

    chosen: Signal<Local, Bits<16>>,
    takes_message: Signal<Local, Bit>,
    takes_control: Signal<Local, Bit>,
    found: Signal<Local, Peer>,
    /// The frame is somebody's.
    goes_out: Signal<Local, Bit>,
    next: Signal<Local, Numbers>,
    counted: Signal<Local, Numbers>,
    /// Number of the message, the one behind it, and by how much that is more than the next number of its pair.
    number_now: Signal<Local, Bits<32>>,
    follows: Signal<Local, Bits<32>>,
    lead: Signal<Local, Bits<32>>,
    payload_words: Signal<Local, Bits<16>>,
    word_now: Signal<Local, Bits<64>>,
    word_next: Signal<Local, Bits<16>>,
    advance: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,

    // Control.
    card: Signal<Local, CardSetup>,
    setup: Signal<Local, PairSetup>,
    written: Signal<Local, Peer>,
    is_card: Signal<Local, Bit>,
    is_set: Signal<Local, Bit>,
    serves: Signal<Local, Bit>,
    writes: Signal<Local, Bit>,
    #[is(constant(config.pairs as u64))]
    pairs: Constant<Bits<16>>,
    #[is(constant(config.pairs as u64 - 1))]
    last_pair: Constant<Bits<16>>,

    // What must hold, and what it is compared with.
    /// The frame that was taken last has no message.
    control_went: Reg<Bit>,
    /// It has just begun.
    numbered: Reg<Bit>,
    latest_message: Reg<Latest>,
    latest_control: Reg<Latest>,
    own_number: Signal<Local, Bits<32>>,
    passes: Signal<Local, Bits<32>>,
    is_repeat: Signal<Local, Bit>,
    tvalid_stays_within_a_frame: Check,
    control_frames_let_a_message_between: Check,
    a_new_number_follows_the_last_of_its_pair: Check,
}

impl Framer {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] =
        &[Operation::CardSet, Operation::PairSet, Operation::PairClear];

    /// The framer of a card.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(pairs = self.pairs.val().index())]
impl Logic for Framer {
    fn update(&mut self) {
        self.initialized.next = self.state.q.val() != State::Clear;

        // Control requests go before frames, and are done while one goes out.
        self.card.next = bit_cast::<64, 320>(self.control.data.val().data).into();
        self.setup.next = self.control.data.val().data.into();
        self.is_card.next = self.control.data.val().operation == Operation::CardSet;
        self.is_set.next = self.control.data.val().operation == Operation::PairSet;
        self.serves.next = self.control.valid.val()
            & ((self.state.q.val() == State::Idle) | (self.state.q.val() == State::Send));
        self.control.ready.next = self.serves.val();
        if self.serves.val() & self.is_card.val() {
            self.mac.d.next = self.card.val().mac;
        }

        // What begins, and what its pair is.
        self.takes_message.next = (self.state.q.val() == State::Idle)
            & !self.control.valid.val()
            & self.message.valid.val()
            & (!self.control_frame.valid.val() | self.control_last.q.val());
        self.takes_control.next = (self.state.q.val() == State::Idle)
            & !self.control.valid.val()
            & self.control_frame.valid.val()
            & !self.takes_message.val();
        self.message.ready.next = self.takes_message.val();
        self.control_frame.ready.next = self.takes_control.val();
        self.chosen.next = self.framed.q.val().pair;
        if self.state.q.val() == State::Idle {
            self.chosen.next = self.control_frame.data.val().pair;
            if self.takes_message.val() {
                self.chosen.next = self.message.data.val().pair;
            }
        }
        self.lookup_pair.next = self.chosen.val();
        self.lookup_begins.next = self.takes_message.val() | self.takes_control.val();
        self.peers.read_address.next = self.chosen.val();
        self.numbers.read_address.next = self.chosen.val();
        self.found.next = self.peers.read_data.val();
        // A frame of a pair that has been closed meanwhile is nobody's, nor is an answer of one that has failed.
        self.goes_out.next =
            self.found.val().connected & !(self.framed.q.val().answer & self.lookup_failed.val());
        self.next.next = self.numbers.read_data.val();
        self.counted.next = self.next.val();
        self.number_now.next = self.next.val().message;
        if self.framed.q.val().again | self.framed.q.val().answer {
            self.number_now.next = self.framed.q.val().number;
        }
        self.follows.next = self.number_now.val() + 1;
        self.lead.next = self.follows.val() - self.next.val().message;
        if self.of_message.q.val() {
            // One that goes out again doesn't count, unless it was passed over the first time.
            if !self.lead.val().get_bit(31) & !self.framed.q.val().answer {
                self.counted.next.message = self.follows.val();
            }
        } else {
            self.counted.next.control = self.next.val().control + 1;
        }

        // The tables are written by a control request, by the frame that begins, or to be cleared.
        self.written.next = Peer::default();
        if self.is_set.val() & (self.state.q.val() != State::Clear) {
            self.written.next.connected = true;
            self.written.next.mac = self.setup.val().remote_mac;
            self.written.next.endpoint = bit_cast::<16, 8>(self.setup.val().endpoint);
            self.written.next.remote_endpoint = self.setup.val().remote_endpoint;
            self.written.next.remote_pair = self.setup.val().remote_pair;
            self.written.next.epoch = self.setup.val().epoch;
            self.written.next.remote_epoch = self.setup.val().remote_epoch;
            self.written.next.cookie = self.setup.val().cookie;
        }
        self.writes.next = self.serves.val()
            & !self.is_card.val()
            & (self.control.data.val().index < self.pairs.val());
        store!(
            self.peers.write,
            self.writes.val(),
            self.control.data.val().index,
            self.written.val()
        );
        store!(
            self.numbers.write,
            self.writes.val(),
            self.control.data.val().index,
            Numbers::default()
        );

        // The word that goes out next. The CRC follows one word behind, from a register: a word of the payload comes late in its cycle.
        self.payload_words.next = (self.framed.q.val().length + 7) >> 3;
        set!(
            self.header,
            sender = self.sender.q.val(),
            peer = self.peer.q.val(),
            frame_type = self.frame_type.q.val(),
            message = self.framed.q.val(),
            carried = self.carried.q.val(),
            index = self.word.q.val()
        );
        self.word_now.next = self.header.word.val();
        if self.word.q.val() >= HEADER_WORDS {
            self.word_now.next = self.payload.val();
        }
        self.crc.state.next = self.crc_state.q.val();
        self.crc.data.next = self.out_data.q.val();
        self.advance.next = (self.state.q.val() == State::Send)
            & (!self.out_valid.q.val() | self.m_axis.tready.val());
        self.ends.next = self.advance.val() & (self.word.q.val() == self.trailer.q.val());
        self.word_next.next = self.word.q.val();
        if self.advance.val() {
            self.word_next.next = self.word.q.val() + 1;
        }
        if self.m_axis.tready.val() {
            self.out_valid.d.next = false;
        }

        match self.state.q.val() {
            State::Clear => {
                self.peers.write.enable.next = true;
                self.peers.write.address.next = self.clearing.q.val();
                self.clearing.d.next = self.clearing.q.val() + 1;
                if self.clearing.q.val() == self.last_pair.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Idle => {
                self.of_message.d.next = self.takes_message.val();
                if self.takes_message.val() {
                    self.control_last.d.next = false;
                    self.framed.d.next = self.message.data.val();
                    self.frame_type.d.next = FrameType::Eager;
                    if self.message.data.val().put {
                        self.frame_type.d.next = FrameType::Put;
                    }
                    if self.message.data.val().get {
                        self.frame_type.d.next = FrameType::Get;
                        self.framed.d.next.context = self.message.data.val().length;
                        self.framed.d.next.length = 0.into();
                    }
                    if self.message.data.val().answer {
                        self.frame_type.d.next = FrameType::GetAnswer;
                        self.framed.d.next.context = 0.into();
                        self.framed.d.next.match_bits = 0.into();
                        self.framed.d.next.immediate = 0.into();
                        self.framed.d.next.flags = 0.into();
                        if self.message.data.val().refused {
                            self.framed.d.next.flags = FRAME_REFUSED;
                        }
                    }
                    self.state.d.next = State::Begin;
                }
                if self.takes_control.val() {
                    self.control_last.d.next = true;
                    self.framed.d.next = Message::default();
                    self.framed.d.next.pair = self.control_frame.data.val().pair;
                    if self.control_frame.data.val().misses {
                        self.framed.d.next.flags = FRAME_GAP;
                    }
                    self.frame_type.d.next = self.control_frame.data.val().frame_type;
                    self.state.d.next = State::Begin;
                }
            }
            State::Begin => {
                self.sender.d.next = self.mac.q.val();
                self.peer.d.next = self.found.val();
                self.carried.d.next.acknowledge = self.lookup_acknowledge.val();
                self.carried.d.next.credit = self.lookup_credit.val();
                self.carried.d.next.refused = self.lookup_refused.val();
                self.carried.d.next.sequence = self.next.val().control;
                if self.of_message.q.val() {
                    self.carried.d.next.sequence = self.number_now.val();
                }
                self.crc_state.d.next = u32::MAX;
                self.word_next.next = 0.into();
                self.trailer.d.next = self.payload_words.val() + HEADER_WORDS;
                self.state.d.next = State::Idle;
                if self.goes_out.val() {
                    self.state.d.next = State::Send;
                    store!(
                        self.numbers.write,
                        true,
                        self.framed.q.val().pair,
                        self.counted.val()
                    );
                }
            }
            State::Send => {
                if self.advance.val() {
                    if self.word.q.val().any() {
                        self.crc_state.d.next = self.crc.result.val();
                    }
                    self.out_valid.d.next = true;
                    self.out_data.d.next = self.word_now.val();
                    self.out_last.d.next = self.ends.val();
                }
                if self.ends.val() {
                    self.out_data.d.next = bit_cast::<64, 32>(!self.crc.result.val());
                    self.state.d.next = State::Idle;
                }
            }
        }
        self.word.d.next = self.word_next.val();
        self.payload_index.next = self.word_next.val() - HEADER_WORDS;
        self.payload_done.next = self.of_message.q.val()
            & (self.ends.val() | ((self.state.q.val() == State::Begin) & !self.goes_out.val()));
        self.count_frames_sent.next = self.ends.val();

        self.m_axis.tvalid.next = self.out_valid.q.val();
        self.m_axis.tdata.next = self.out_data.q.val();
        self.m_axis.tkeep.next = 0xff.into();
        self.m_axis.tlast.next = self.out_last.q.val();
        if self.out_valid.q.val() & self.m_axis.tready.val() {
            self.begun.d.next = !self.out_last.q.val();
        }
        self.tvalid_stays_within_a_frame.ok.next = !self.begun.q.val() | self.out_valid.q.val();
        self.check();
    }
}

#[block]
impl Framer {
    /// The order of the frames, and the numbers of those that go out.
    fn check(&mut self) {
        self.control_frames_let_a_message_between.ok.next =
            !self.takes_control.val() | !self.message.valid.val() | !self.control_went.q.val();
        if self.takes_message.val() | self.takes_control.val() {
            self.control_went.d.next = self.takes_control.val();
        }

        self.numbered.d.next = (self.state.q.val() == State::Begin)
            & self.goes_out.val()
            & !self.framed.q.val().answer;
        self.own_number.next = self.carried.q.val().sequence;
        self.is_repeat.next = !self.control_went.q.val() & self.framed.q.val().again;
        // A repeat counts if it was passed over the first time.
        self.passes.next = self.own_number.val() - self.latest_message.q.val().following;
        self.a_new_number_follows_the_last_of_its_pair.ok.next = true;
        if self.numbered.q.val() & self.control_went.q.val() {
            self.a_new_number_follows_the_last_of_its_pair.ok.next =
                !self.latest_control.q.val().known
                    | (self.latest_control.q.val().pair != self.framed.q.val().pair)
                    | (self.own_number.val() == self.latest_control.q.val().following);
            self.latest_control.d.next = Latest {
                known: true,
                pair: self.framed.q.val().pair,
                following: self.own_number.val() + 1,
            };
        }
        if self.numbered.q.val() & !self.control_went.q.val() {
            self.a_new_number_follows_the_last_of_its_pair.ok.next = self.is_repeat.val()
                | !self.latest_message.q.val().known
                | (self.latest_message.q.val().pair != self.framed.q.val().pair)
                | (self.own_number.val() == self.latest_message.q.val().following);
            if !self.is_repeat.val() {
                self.latest_message.d.next.known = true;
                self.latest_message.d.next.pair = self.framed.q.val().pair;
                self.latest_message.d.next.following = self.own_number.val() + 1;
            }
            if self.is_repeat.val()
                & (self.latest_message.q.val().pair == self.framed.q.val().pair)
                & !self.passes.val().get_bit(31)
            {
                self.latest_message.d.next.following = self.own_number.val() + 1;
            }
        }
        if self.writes.val() {
            if self.control.data.val().index == self.latest_message.q.val().pair {
                self.latest_message.d.next.known = false;
            }
            if self.control.data.val().index == self.latest_control.q.val().pair {
                self.latest_control.d.next.known = false;
            }
            if self.control.data.val().index == self.framed.q.val().pair {
                self.latest_message.d.next.known = false;
                self.latest_control.d.next.known = false;
            }
        }
    }
}
