//! Sends: reads a message's payload, and frames it when all of it is there.
//!
//! Two halves work at the same time. The *fetcher* takes a job, asks whether the buffer may be read,
//! reads it into one half of the payload memory, and answers the job: with an error, and nothing
//! has been sent, or with success, and then the frame will go out whatever happens. The *framer* sends
//! the other half, or a control frame, header first and CRC last. So a frame that has begun never
//! waits for host memory, and a pair's failure never waits for the wire.
//!
//! ```text
//!          ┌─────────┐ query, read  ┌────────────┐ word ┌────────┐  ┌─────┐
//!   job ──►│ fetcher ├─────────────►│ payload    ├─────►│ framer ├─►│ Crc ├──► m_axis
//!          │         │◄── data ─────│ (2 halves) │      │        │  └─────┘
//!   job_   └────┬────┘              └────────────┘      └─▲──▲───┘
//!   result ◄────┘      header of the message ─────────────┘  │
//!                      control_frame, pair table, numbers ───┘
//! ```

use crate::config::Config;
use crate::construct::construct;
use crate::prelude::*;
use crate::prim::Ram;
use crate::prim::axi::StreamSource;
use crate::types::{
    CardSetup, ControlFrame, ControlRequest, DmaRequest, FrameHeader, PairSetup, RegionQuery,
    SendJob, SendRequest,
};
use abi::control::{Operation, RIGHT_LOCAL_READ};
use abi::limits::EAGER_MAX;
use abi::request::FLAG_READY;
use abi::status::Status;
use abi::wire::{self, FrameType};

use super::crc::Crc;

/// Words of the header.
const HEADER_WORDS: usize = wire::HEADER_BYTES / 8;
/// Words of one half of the payload memory.
const HALF_WORDS: usize = (EAGER_MAX / 8).next_power_of_two();

const _: () = assert!(
    wire::FRAME_READY == FLAG_READY,
    "a frame has the flags of its request"
);

/// Breaks the block on purpose, so that a test can show that it would notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, LogicState)]
pub enum TransmitMutation {
    /// As designed.
    None,
    /// An error of the payload's read is not looked at.
    ReadErrorIgnored,
    /// Control frames all have number 0.
    ControlNotNumbered,
    /// The stream pauses after the header.
    PauseInFrame,
}

/// What a frame to a peer says about it.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Peer {
    connected: Bit,
    mac: Bits<48>,
    endpoint: Bits<16>,
    remote_endpoint: Bits<16>,
    remote_pair: Bits<16>,
    epoch: Bits<16>,
    remote_epoch: Bits<16>,
    cookie: Bits<32>,
}

/// What a frame says about its message.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Message {
    pair: Bits<16>,
    number: Bits<32>,
    context: Bits<16>,
    length: Bits<16>,
    match_bits: Bits<64>,
    immediate: Bits<64>,
    flags: Bits<8>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Fetch {
    /// Waiting for a job.
    Idle,
    /// The buffer's check is asked for.
    Ask,
    /// The answer is awaited.
    Await,
    /// The read is asked for.
    Request,
    /// The payload comes in.
    Read,
    /// All is there; the framer is still busy.
    Ready,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Frame {
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
#[derive(LogicBlock)]
pub struct Transmit {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// Which contract to break; there in [`Self::mutable`] only.
    pub mutation: Vec<Signal<In, TransmitMutation>>,
    /// The table is cleared.
    pub initialized: Signal<Out, Bit>,
    /// There is a send.
    pub job_valid: Signal<In, Bit>,
    /// It is taken; `job_result` will answer it.
    pub job_ready: Signal<Out, Bit>,
    /// The send.
    pub job: Signal<In, SendJob>,
    /// Pulse: the job that was taken is answered.
    pub job_result_valid: Signal<Out, Bit>,
    /// With it: `Success` if its frame will be sent.
    pub job_status: Signal<Out, Bits<8>>,
    /// A control frame is to be sent.
    pub control_frame_valid: Signal<In, Bit>,
    /// Its sending begins.
    pub control_frame_ready: Signal<Out, Bit>,
    /// Pair and type.
    pub control_frame: Signal<In, ControlFrame>,
    /// Pair whose numbers the frame is to carry.
    pub lookup_pair: Signal<Out, Bits<16>>,
    /// One cycle later: messages that are safe here.
    pub lookup_acknowledge: Signal<In, Bits<32>>,
    /// One cycle later: envelopes whose credit has been returned.
    pub lookup_credit: Signal<In, Bits<32>>,
    /// One cycle later: which of the latest of them were refused.
    pub lookup_refused: Signal<In, Bits<16>>,
    /// A buffer is to be checked.
    pub query_valid: Signal<Out, Bit>,
    /// The query is taken.
    pub query_ready: Signal<In, Bit>,
    /// The buffer.
    pub query: Signal<Out, RegionQuery>,
    /// Pulse: the answer.
    pub allowed_valid: Signal<In, Bit>,
    /// With it: the buffer may be read.
    pub allowed: Signal<In, Bit>,
    /// A buffer is to be read.
    pub read_request_valid: Signal<Out, Bit>,
    /// The request is taken.
    pub read_request_ready: Signal<In, Bit>,
    /// The buffer.
    pub read_request: Signal<Out, DmaRequest>,
    /// There is a word of it.
    pub read_data_valid: Signal<In, Bit>,
    /// It is taken.
    pub read_data_ready: Signal<Out, Bit>,
    /// The word; bytes beyond the length are zero.
    pub read_data: Signal<In, Bits<64>>,
    /// The last word.
    pub read_data_last: Signal<In, Bit>,
    /// With the last word: some of them couldn't be read.
    pub read_data_error: Signal<In, Bit>,
    /// Frames to the wire, byte 0 in lane 0.
    pub m_axis: StreamSource,
    /// There is a control request.
    pub control_valid: Signal<In, Bit>,
    /// The control request.
    pub control: Signal<In, ControlRequest>,
    /// It is done.
    pub control_done: Signal<Out, Bit>,
    /// Pulse: a frame has been sent.
    pub count_frames_sent: Signal<Out, Bit>,

    // The fetcher.
    fetch: Reg<Fetch>,
    taken: Reg<SendJob>,
    fetched: Reg<Bits<16>>,
    fetch_half: Reg<Bit>,

    // The framer.
    frame: Reg<Frame>,
    clearing: Reg<Bits<16>>,
    peers: Ram<Peer>,
    numbers: Ram<Bits<32>>,
    payload: Ram<Bits<64>>,
    crc: Crc,
    register: Reg<Bits<32>>,
    message: Reg<Message>,
    frame_type: Reg<Bits<8>>,
    acknowledge: Reg<Bits<32>>,
    credit: Reg<Bits<32>>,
    refused: Reg<Bits<16>>,
    frame_half: Reg<Bit>,
    /// Number of the word that goes to the output next.
    word: Reg<Bits<16>>,
    trailer: Reg<Bits<16>>,
    control_last: Reg<Bit>,
    mac: Reg<Bits<48>>,
    out_valid: Reg<Bit>,
    out_data: Reg<Bits<64>>,
    out_last: Reg<Bit>,

    request: Signal<Local, SendRequest>,
    card: Signal<Local, CardSetup>,
    setup: Signal<Local, PairSetup>,
    peer: Signal<Local, Peer>,
    /// The pair of the frame that goes out: the table's word comes late in its cycle.
    addressee: Reg<Peer>,
    written: Signal<Local, Peer>,
    header: Signal<Local, FrameHeader>,
    header_bits: Signal<Local, Bits<576>>,
    word_now: Signal<Local, Bits<64>>,
    word_next: Signal<Local, Bits<16>>,
    payload_index: Signal<Local, Bits<16>>,
    read_base: Signal<Local, Bits<16>>,
    write_base: Signal<Local, Bits<16>>,
    words: Signal<Local, Bits<16>>,
    wanted: Signal<Local, Bits<17>>,
    number_next: Signal<Local, Bits<32>>,
    chosen: Signal<Local, Bits<16>>,
    advance: Signal<Local, Bit>,
    hand_over: Signal<Local, Bit>,
    answered: Signal<Local, Bit>,
    result: Signal<Local, Bits<8>>,
    is_card: Signal<Local, Bit>,
    is_set: Signal<Local, Bit>,
    own: Signal<Local, Bit>,
    drained: Signal<Local, Bit>,
    go: Signal<Local, Bit>,

    pairs: Constant<Bits<16>>,
    last_pair: Constant<Bits<16>>,
    card_set: Constant<Bits<8>>,
    pair_set: Constant<Bits<8>>,
    pair_clear: Constant<Bits<8>>,
    eager: Constant<Bits<8>>,
    success: Constant<Bits<8>>,
    memory_error: Constant<Bits<8>>,
    local_protection: Constant<Bits<8>>,
    rights: Constant<Bits<8>>,
    crc_start: Constant<Bits<32>>,
    header_words: Constant<Bits<16>>,
    half_words: Constant<Bits<16>>,
    nobody: Constant<Peer>,
    no_message: Constant<Message>,
    no_query: Constant<RegionQuery>,
    no_request: Constant<DmaRequest>,
    /// Fields that are the same in every frame.
    template: Constant<FrameHeader>,

    continuous: Check,
    whole: Check,
    begun: Reg<Bit>,
    paused: Reg<Bit>,
    _mutable: usize,
}

impl Transmit {
    /// The transmitter of a card, as designed.
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
            frame: Reg::new(Frame::Clear),
            peers: Ram::new(config.pairs),
            numbers: Ram::new(config.pairs),
            payload: Ram::new(2 * HALF_WORDS),
            register: Reg::new(u64::from(u32::MAX).into()),
            pairs: Constant::new((config.pairs as u64).into()),
            last_pair: Constant::new((config.pairs as u64 - 1).into()),
            card_set: code(Operation::CardSet.code()),
            pair_set: code(Operation::PairSet.code()),
            pair_clear: code(Operation::PairClear.code()),
            eager: code(FrameType::Eager.code()),
            success: code(Status::Success.code()),
            memory_error: code(Status::MemoryError.code()),
            local_protection: code(Status::LocalProtection.code()),
            rights: code(RIGHT_LOCAL_READ),
            crc_start: Constant::new(u64::from(u32::MAX).into()),
            header_words: Constant::new((HEADER_WORDS as u64).into()),
            half_words: Constant::new((HALF_WORDS as u64).into()),
            nobody: Constant::new(Peer::default()),
            no_message: Constant::new(Message::default()),
            no_query: Constant::new(RegionQuery::default()),
            no_request: Constant::new(DmaRequest::default()),
            template: Constant::new(FrameHeader {
                ethertype: u64::from(wire::ETHERTYPE_FIELD).into(),
                version: u64::from(wire::VERSION).into(),
                ..Default::default()
            }),
            continuous: Check::new("tvalid_stays_within_a_frame"),
            whole: Check::new("a_payload_ends_where_its_length_says"),
            mutation: (0..mutable).map(|_| Signal::default()).collect(),
            _mutable: mutable,
        } default {
            clock reset initialized job_valid job_ready job job_result_valid job_status
            control_frame_valid control_frame_ready control_frame lookup_pair lookup_acknowledge
            lookup_credit lookup_refused query_valid query_ready query allowed_valid allowed read_request_valid
            read_request_ready read_request read_data_valid read_data_ready read_data
            read_data_last read_data_error m_axis control_valid control control_done
            count_frames_sent fetch taken fetched fetch_half clearing crc message frame_type
            acknowledge credit refused frame_half word trailer control_last mac out_valid out_data
            out_last request card setup peer addressee written header header_bits word_now word_next
            payload_index read_base write_base words wanted number_next chosen advance hand_over
            answered result is_card is_set own drained go begun paused
        })
    }
}

#[module]
impl Logic for Transmit {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(
            self,
            clock,
            reset,
            fetch,
            taken,
            fetched,
            fetch_half,
            frame,
            clearing,
            register,
            message,
            frame_type,
            addressee,
            acknowledge,
            credit,
            refused,
            frame_half,
            word,
            trailer,
            control_last,
            mac,
            out_valid,
            out_data,
            out_last,
            begun,
            paused
        );
        clocked!(self, clock, reset, continuous, whole);
        clock!(self, clock, peers, numbers, payload);

        // Control requests wait until no frame of a pair that they may name is left in here, and
        // no new job is taken meanwhile.
        self.card.next = bit_cast::<128, 320>(self.control.val().data).into();
        self.setup.next = self.control.val().data.into();
        self.is_card.next = self.control.val().operation == self.card_set.val();
        self.is_set.next = self.control.val().operation == self.pair_set.val();
        self.own.next = self.control_valid.val()
            & (self.is_card.val()
                | self.is_set.val()
                | (self.control.val().operation == self.pair_clear.val()));
        self.control_done.next = self.control_valid.val() & !self.own.val();
        self.drained.next = (self.fetch.q.val() == Fetch::Idle)
            & (self.frame.q.val() == Frame::Idle)
            & !self.out_valid.q.val();
        self.initialized.next = self.frame.q.val() != Frame::Clear;

        // ---- The fetcher.

        self.request.next = self.taken.q.val().request;
        self.job_ready.next = (self.fetch.q.val() == Fetch::Idle)
            & (self.frame.q.val() != Frame::Clear)
            & !self.own.val();
        self.hand_over.next = false;
        self.answered.next = false;
        self.result.next = self.success.val();
        self.query_valid.next = self.fetch.q.val() == Fetch::Ask;
        self.query.next = self.no_query.val();
        self.query.next.domain = self.taken.q.val().domain;
        self.query.next.key = self.request.val().key;
        self.query.next.rights = self.rights.val();
        self.query.next.address = self.request.val().address;
        self.query.next.length = self.request.val().length;
        self.read_request_valid.next = self.fetch.q.val() == Fetch::Request;
        self.read_request.next = self.no_request.val();
        self.read_request.next.address = self.request.val().address;
        self.read_request.next.length = bit_cast::<16, 64>(self.request.val().length);
        self.read_data_ready.next = self.fetch.q.val() == Fetch::Read;
        self.write_base.next = 0.into();
        if self.fetch_half.q.val() {
            self.write_base.next = self.half_words.val();
        }
        self.payload.write_enable.next =
            (self.fetch.q.val() == Fetch::Read) & self.read_data_valid.val();
        self.payload.write_address.next = self.write_base.val() | self.fetched.q.val();
        self.payload.write_data.next = self.read_data.val();
        match self.fetch.q.val() {
            Fetch::Idle => {
                self.fetched.d.next = 0.into();
                if self.job_valid.val() & self.job_ready.val() {
                    self.taken.d.next = self.job.val();
                    self.fetch.d.next = Fetch::Ask;
                }
            }
            Fetch::Ask => {
                if self.request.val().length == 0 {
                    // Touches no memory, so there is nothing to ask.
                    self.query_valid.next = false;
                    self.answered.next = true;
                } else if self.query_ready.val() {
                    self.fetch.d.next = Fetch::Await;
                }
            }
            Fetch::Await => {
                if self.allowed_valid.val() {
                    self.fetch.d.next = Fetch::Request;
                    if !self.allowed.val() {
                        self.answered.next = true;
                        self.result.next = self.local_protection.val();
                    }
                }
            }
            Fetch::Request => {
                if self.read_request_ready.val() {
                    self.fetch.d.next = Fetch::Read;
                }
            }
            Fetch::Read => {
                if self.read_data_valid.val() {
                    self.fetched.d.next = self.fetched.q.val() + 1;
                    if self.read_data_last.val() {
                        self.answered.next = true;
                        if self.read_data_error.val() {
                            self.result.next = self.memory_error.val();
                            for m in 0..self._mutable {
                                if self.mutation[m].val() == TransmitMutation::ReadErrorIgnored {
                                    self.result.next = self.success.val();
                                }
                            }
                        }
                    }
                }
            }
            Fetch::Ready => {
                self.hand_over.next = true;
            }
            _ => {}
        }
        if self.answered.val() {
            self.fetch.d.next = Fetch::Idle;
            if self.result.val() == self.success.val() {
                self.fetch.d.next = Fetch::Ready;
            }
        }
        self.job_result_valid.next = self.answered.val();
        self.job_status.next = self.result.val();

        // ---- The framer.

        // The pair of the frame that is about to begin, or has begun.
        self.go.next = self.hand_over.val()
            & (!self.control_frame_valid.val() | self.control_last.q.val() | self.own.val());
        self.chosen.next = self.message.q.val().pair;
        if self.frame.q.val() == Frame::Idle {
            self.chosen.next = self.control_frame.val().pair;
            if self.go.val() {
                self.chosen.next = self.taken.q.val().pair;
            }
        }
        self.peers.read_address.next = self.chosen.val();
        self.numbers.read_address.next = self.chosen.val();
        self.lookup_pair.next = self.chosen.val();
        self.peer.next = self.peers.read_data.val();

        self.peers.write_enable.next = false;
        self.peers.write_address.next = self.control.val().index;
        self.written.next = self.nobody.val();
        self.written.next.connected = self.is_set.val();
        self.written.next.mac = self.setup.val().remote_mac;
        self.written.next.endpoint = bit_cast::<16, 8>(self.setup.val().endpoint);
        self.written.next.remote_endpoint = self.setup.val().remote_endpoint;
        self.written.next.remote_pair = self.setup.val().remote_pair;
        self.written.next.epoch = self.setup.val().epoch;
        self.written.next.remote_epoch = self.setup.val().remote_epoch;
        self.written.next.cookie = self.setup.val().cookie;
        self.numbers.write_enable.next = false;
        self.numbers.write_address.next = self.message.q.val().pair;
        self.number_next.next = self.numbers.read_data.val() + 1;
        for m in 0..self._mutable {
            if self.mutation[m].val() == TransmitMutation::ControlNotNumbered {
                self.number_next.next = 0.into();
            }
        }

        // The header, put together from the pair and the message.
        self.header.next = self.template.val();
        self.header.next.destination_mac = self.addressee.q.val().mac;
        self.header.next.source_mac_low = bit_cast::<16, 48>(self.mac.q.val());
        self.header.next.source_mac_high = self.mac.q.val().get_bits::<32>(16);
        self.header.next.frame_type = self.frame_type.q.val();
        self.header.next.destination_endpoint = self.addressee.q.val().remote_endpoint;
        self.header.next.source_endpoint = self.addressee.q.val().endpoint;
        self.header.next.destination_pair = self.addressee.q.val().remote_pair;
        self.header.next.source_pair = self.message.q.val().pair;
        self.header.next.destination_epoch = self.addressee.q.val().remote_epoch;
        self.header.next.source_epoch = self.addressee.q.val().epoch;
        self.header.next.cookie = self.addressee.q.val().cookie;
        self.header.next.sequence = self.message.q.val().number;
        self.header.next.acknowledge = self.acknowledge.q.val();
        self.header.next.credit = self.credit.q.val();
        self.header.next.context = self.message.q.val().context;
        self.header.next.payload_length = self.message.q.val().length;
        self.header.next.match_bits = self.message.q.val().match_bits;
        self.header.next.immediate = self.message.q.val().immediate;
        self.header.next.message_length = bit_cast::<40, 16>(self.message.q.val().length);
        self.header.next.flags = self.message.q.val().flags;
        self.header.next.refused = self.refused.q.val();
        self.header_bits.next = self.header.val().into();

        // The word that goes out next.
        self.word_now.next = self.payload.read_data.val();
        for k in 0..HEADER_WORDS {
            if self.word.q.val() == k.to_bits() {
                self.word_now.next = self.header_bits.val().get_bits::<64>(64 * k);
            }
        }
        // The CRC follows one word behind, from a register: a word of the payload comes late in its cycle.
        self.crc.state.next = self.register.q.val();
        self.crc.data.next = self.out_data.q.val();
        self.words.next =
            bit_cast::<16, 17>((bit_cast::<17, 16>(self.message.q.val().length) + 7) >> 3);

        self.advance.next = (self.frame.q.val() == Frame::Send)
            & (!self.out_valid.q.val() | self.m_axis.tready.val());
        for m in 0..self._mutable {
            if self.mutation[m].val() == TransmitMutation::PauseInFrame {
                self.paused.d.next = (self.word.q.val() == self.header_words.val())
                    & (self.frame.q.val() == Frame::Send);
                if (self.word.q.val() == self.header_words.val()) & !self.paused.q.val() {
                    self.advance.next = false;
                }
            }
        }
        if self.m_axis.tready.val() {
            self.out_valid.d.next = false;
        }
        self.word_next.next = self.word.q.val();
        if self.advance.val() {
            self.word_next.next = self.word.q.val() + 1;
        }
        self.count_frames_sent.next = false;
        self.control_frame_ready.next = false;

        match self.frame.q.val() {
            Frame::Clear => {
                self.peers.write_enable.next = true;
                self.peers.write_address.next = self.clearing.q.val();
                self.written.next = self.nobody.val();
                self.clearing.d.next = self.clearing.q.val() + 1;
                if self.clearing.q.val() == self.last_pair.val() {
                    self.frame.d.next = Frame::Idle;
                }
            }
            Frame::Idle => {
                self.message.d.next = self.no_message.val();
                if self.own.val() & self.drained.val() {
                    self.control_done.next = true;
                    if self.is_card.val() {
                        self.mac.d.next = self.card.val().mac;
                    } else if self.control.val().index < self.pairs.val() {
                        self.peers.write_enable.next = true;
                        self.numbers.write_enable.next = true;
                        self.numbers.write_address.next = self.control.val().index;
                        self.number_next.next = 0.into();
                    }
                } else if self.go.val() {
                    self.control_last.d.next = false;
                    self.message.d.next.pair = self.taken.q.val().pair;
                    self.message.d.next.number = self.taken.q.val().sequence;
                    self.message.d.next.context = self.request.val().context;
                    self.message.d.next.length = bit_cast::<16, 64>(self.request.val().length);
                    self.message.d.next.match_bits = self.request.val().match_bits;
                    self.message.d.next.immediate = self.request.val().immediate;
                    self.message.d.next.flags = self.request.val().flags;
                    self.frame_type.d.next = self.eager.val();
                    self.frame_half.d.next = self.fetch_half.q.val();
                    self.fetch_half.d.next = !self.fetch_half.q.val();
                    self.fetch.d.next = Fetch::Idle;
                    self.frame.d.next = Frame::Begin;
                } else if self.control_frame_valid.val() & !self.own.val() {
                    self.control_last.d.next = true;
                    self.control_frame_ready.next = true;
                    self.message.d.next.pair = self.control_frame.val().pair;
                    self.frame_type.d.next = self.control_frame.val().frame_type;
                    self.frame.d.next = Frame::Begin;
                }
            }
            Frame::Begin => {
                self.addressee.d.next = self.peer.val();
                self.acknowledge.d.next = self.lookup_acknowledge.val();
                self.credit.d.next = self.lookup_credit.val();
                self.refused.d.next = self.lookup_refused.val();
                self.register.d.next = self.crc_start.val();
                self.word_next.next = 0.into();
                self.trailer.d.next = self.words.val() + self.header_words.val();
                // A frame of a pair that has been closed meanwhile is nobody's.
                self.frame.d.next = Frame::Idle;
                if self.peer.val().connected {
                    self.frame.d.next = Frame::Send;
                    if self.frame_type.q.val() != self.eager.val() {
                        self.message.d.next.number = self.numbers.read_data.val();
                        self.numbers.write_enable.next = true;
                    }
                }
            }
            Frame::Send => {
                if self.advance.val() {
                    if self.word.q.val() != 0 {
                        self.register.d.next = self.crc.result.val();
                    }
                    self.out_valid.d.next = true;
                    self.out_data.d.next = self.word_now.val();
                    self.out_last.d.next = false;
                    if self.word.q.val() == self.trailer.q.val() {
                        self.out_data.d.next = bit_cast::<64, 32>(!self.crc.result.val());
                        self.out_last.d.next = true;
                        self.count_frames_sent.next = true;
                        self.frame.d.next = Frame::Idle;
                    }
                }
            }
            _ => {}
        }
        self.word.d.next = self.word_next.val();
        self.peers.write_data.next = self.written.val();
        self.numbers.write_data.next = self.number_next.val();

        self.read_base.next = 0.into();
        if self.frame_half.q.val() {
            self.read_base.next = self.half_words.val();
        }
        self.payload_index.next = self.word_next.val() - self.header_words.val();
        self.payload.read_address.next = self.read_base.val() + self.payload_index.val();

        self.m_axis.tvalid.next = self.out_valid.q.val();
        self.m_axis.tdata.next = self.out_data.q.val();
        self.m_axis.tkeep.next = 0xff.into();
        self.m_axis.tlast.next = self.out_last.q.val();

        if self.out_valid.q.val() & self.m_axis.tready.val() {
            self.begun.d.next = !self.out_last.q.val();
        }
        self.continuous.ok.next = !self.begun.q.val() | self.out_valid.q.val();
        self.wanted.next = (bit_cast::<17, 64>(self.request.val().length) + 7) >> 3;
        self.whole.ok.next = (self.fetch.q.val() != Fetch::Read)
            | !self.read_data_valid.val()
            | ((bit_cast::<17, 16>(self.fetched.q.val()) + 1 == self.wanted.val())
                == self.read_data_last.val());
    }
}
