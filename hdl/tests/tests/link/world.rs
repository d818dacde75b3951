//! Two cards' links back to back, and everything around them: hosts that send, memory that is read,
//! Delivery, firmware that connects pairs, closes those that have failed and connects them anew.
//!
//! ```text
//!  host ─► ┌───────────┐ ── wire ──► ┌───────────┐ ◄─ host
//!  memory ►│ LinkBench │             │ LinkBench │◄ memory
//!  Delivery│  side 0   │ ◄── wire ── │  side 1   │Delivery
//!          └───────────┘             └───────────┘
//! ```

use std::collections::VecDeque;

use abi::completion::{Completion, CompletionKind};
use abi::control::{CardSetup, Operation, PairSetup, RIGHT_LOCAL_READ, equal_sends_log2};
use abi::event::Cause;
use abi::limits::MAX_UNACKNOWLEDGED;
use abi::request::{FLAG_READY, INLINE_BYTES, Opcode, SendRequest};
use abi::status::Status;
use abi::times::{DOUBLINGS, SCAN_CYCLES};
use abi::wire::{FrameHeader, FrameType, TRAILER_BYTES};
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::wire::{Fate, LATE, Taken, Wire};
use hdl_tests::fields::{Steady, pack, set_control, unpack};
use hdl_tests::{Bench, Size, rate};

/// Log2 of the cycles without acknowledgement after which a pair goes back. Over a sound wire none does.
const TIMEOUT_LOG2: u8 = 11;
const SOUND_TIMEOUT_LOG2: u8 = 13;
/// Times that it goes back until it fails.
const RETRY_LIMIT: u8 = 8;
/// Time-outs for which it waits then at most, one after the other: for so many each time, if its peer was slow before.
const WAITS: u64 = (RETRY_LIMIT as u64 + 1) << DOUBLINGS;
/// Cycles that an acknowledgement waits for a message of its pair.
const DELAY: u16 = 200;
/// Cycles after which a side whose peer has failed is failed by the firmware, if it doesn't know yet.
const TOLD_BY_FIRMWARE: u64 = 4000;
/// Cycles in which a send gets its turn and its answer, and a fault is handed round.
const SETTLING: u64 = 6000;
/// Counters of the receiver: each frame counts in one of them.
const RECEIVED: [&str; 7] = [
    "frames_received",
    "crc_errors",
    "length_errors",
    "type_errors",
    "pair_errors",
    "duplicates",
    "gaps",
];

/// A message that a host wants to be sent; its handle is its number, and is in its match bits.
struct Message {
    side: usize,
    link: usize,
    incarnation: u32,
    context: u16,
    immediate: u64,
    length: usize,
    ready: bool,
    put: bool,
    /// It arrived, and was refused.
    refused: bool,
    /// Its request carries the payload.
    inline: bool,
    /// Why its payload can't be read, if it can't.
    unreadable: Option<Status>,
    arrived: bool,
    /// The sender's side may be told that it is safe.
    accepted: bool,
    completed: Option<Status>,
}

impl Message {
    fn payload(&self, handle: usize) -> Vec<u8> {
        let mut bytes = vec![0; self.length];
        ChaCha8Rng::seed_from_u64(handle as u64).fill_bytes(&mut bytes);
        bytes
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    /// `PairSet` is under way on these sides.
    Opening([bool; 2]),
    Open,
    /// `PairClear` is.
    Closing([bool; 2]),
}

/// A pair on each side, and what is true of both directions; index 0 is the direction from side 0.
#[derive(Debug)]
struct Link {
    pairs: [u16; 2],
    state: State,
    incarnation: u32,
    /// Cookie of the incarnation before, and frames of it that came out since.
    before: u32,
    late: [u32; 2],
    setups: [PairSetup; 2],
    /// Delivery has asked for the pair to be failed.
    hurt: bool,
    /// The wires of these directions lose each frame of the pair, and the cycle since when a send of it waits in vain.
    cut: [bool; 2],
    doomed: Option<u64>,
    /// A frame didn't arrive as it was sent: what it said of credits may not be known to its receiver.
    blemished: bool,
    /// Frames of the messages of each direction by number, without what they say of the other direction.
    frames: [Vec<Vec<u8>>; 2],
    /// Control frames of each direction.
    controls: [u32; 2],
    /// Sends that haven't completed, and those of each direction that have done well.
    outstanding: u32,
    succeeded: [u32; 2],
    failed: [bool; 2],
    /// What each side failed with.
    statuses: [Status; 2],
    events: [u32; 2],
    since: u64,
    /// Credits by the monitors: taken, returned; accepted, freed.
    source: [[u32; 2]; 2],
    /// As many numbers of each direction as may be in use: the credits, or what puts have come to.
    limit: [u32; 2],
    sink: [[u32; 2]; 2],
    /// The last message that arrived.
    last: [Option<usize>; 2],
    /// What the last frame of each side carried: messages that are safe there, and credits returned.
    told: [(u32, u32); 2],
}

impl Link {
    fn granted(&self, direction: usize) -> u32 {
        self.setups[direction].remote_credits.into()
    }

    /// Whether there is a reason to fail with this status. One side of a pair that is cut off gives up; the other hears of it, or of the firmware.
    fn may_fail(&self, status: Status) -> bool {
        let is_cut = self.cut != [false; 2];
        match status {
            Status::PeerFailed => is_cut,
            Status::LinkError => self.hurt || (is_cut && self.failed != [false; 2]),
            _ => false,
        }
    }

    /// Frames are numbered one after the other, messages and control frames apart; a message that goes out again is the same frame but for what it
    /// says of the other direction.
    fn number(&mut self, s: usize, taken: &Taken) {
        let header = FrameHeader {
            acknowledge: 0,
            credit: 0,
            refused: 0,
            ..taken.header
        };
        if ![FrameType::Eager, FrameType::Put]
            .map(FrameType::code)
            .contains(&header.frame_type)
        {
            assert_eq!(header.sequence, self.controls[s], "of a control frame");
            self.controls[s] += 1;
            return;
        }
        let mut bytes = taken.bytes.clone();
        header.emit(&mut bytes);
        bytes.truncate(bytes.len() - TRAILER_BYTES);
        let frames = &mut self.frames[s];
        let number = header.sequence as usize;
        assert!(number <= frames.len(), "message {number} leaves a hole");
        match frames.get(number) {
            None => frames.push(bytes),
            Some(before) => assert!(*before == bytes, "message {number} is another one now"),
        }
    }
}

/// A message that is being taken from the receiver.
struct Arriving {
    handle: usize,
    words: usize,
    bytes: Vec<u8>,
}

/// A read of payload under way.
struct Read {
    handle: usize,
    words: VecDeque<u64>,
    error: bool,
    due: u64,
}

/// What surrounds one of the two.
struct Side {
    bench: Bench,
    willing: f64,
    busy: f64,
    send: Option<usize>,
    answers: VecDeque<(u64, bool, u64)>,
    reads: VecDeque<Read>,
    word_offered: bool,
    arriving: Option<Arriving>,
    /// Messages that wait for a receive, and so keep their envelope: pair and handle.
    resting: Vec<u16>,
    updates: VecDeque<(u16, Option<usize>, bool)>,
    request: Option<u16>,
    control: Option<(Operation, usize, Vec<u64>)>,
    steady: [Steady; 7],
    counted: [u64; RECEIVED.len()],
    sent: u64,
    timeouts: u64,
    asks: u64,
    /// Sends that were given again.
    repeats: u64,
    /// Acknowledgements that said what the frame before had said.
    echoes: u64,
}

pub struct World {
    sides: [Side; 2],
    wires: [Wire; 2],
    links: Vec<Link>,
    messages: Vec<Message>,
    rng: ChaCha8Rng,
    cycle: u64,
    /// Hosts send.
    pub talking: bool,
    /// Failures of pairs so far, of both sides.
    pub failures: u64,
    /// How often Delivery has a pair failed, with this likelihood in each cycle.
    refuses: f64,
    /// How often a wire cuts a pair off: with this likelihood in each cycle.
    cuts: f64,
    /// Pairs that were cut off, and those that failed for it.
    pub cut_off: u64,
    pub given_up: u64,
    moved: u64,
    /// Most credits that a pair is granted.
    most_credits: u8,
    /// Log2 of the run of descriptors that a pair has.
    sends_log2: u8,
    /// Share of messages that find a receive at once.
    expected: f64,
    /// Cycles within which everything has come to its end once nobody sends any more.
    rest: u64,
    /// Log2 of the time-out of each pair.
    timeout_log2: u8,
    /// Cycles in which a time-out has certainly been noticed.
    patience: u64,
    /// Pairs that a scan goes over.
    pairs: u64,
}

impl World {
    /// `trouble`: of how many frames one is lost, damaged, repeated or delayed; none if 0. `breaks`: a contract that one
    /// side breaks.
    pub fn new(size: &Size, rng: &mut ChaCha8Rng, trouble: u32, breaks: Option<&str>) -> Self {
        let mut rng = ChaCha8Rng::from_rng(rng);
        let timeout_log2 = match trouble {
            0 => SOUND_TIMEOUT_LOG2,
            _ => TIMEOUT_LOG2,
        };
        let side = |number: usize, rng: &mut ChaCha8Rng| {
            let mut bench = match breaks.filter(|_| number == 0) {
                Some(name) => Bench::broken(&size.model, name),
                None => Bench::open(&size.model),
            };
            for cycle in 0.. {
                bench.eval();
                if bench.is("initialized") {
                    break;
                }
                assert!(cycle < 10_000, "tables are cleared soon");
                bench.step();
            }
            Side {
                bench,
                willing: rate(rng).max(0.5),
                busy: rate(rng),
                send: None,
                answers: VecDeque::new(),
                reads: VecDeque::new(),
                word_offered: false,
                arriving: None,
                resting: vec![],
                updates: VecDeque::new(),
                request: None,
                control: Some((Operation::CardSet, 0, card(number).to_words().to_vec())),
                steady: Default::default(),
                counted: [0; RECEIVED.len()],
                sent: 0,
                timeouts: 0,
                asks: 0,
                repeats: 0,
                echoes: 0,
            }
        };
        let sides = [side(0, &mut rng), side(1, &mut rng)];
        // Which pair of one side is which of the other is not to be told from their numbers.
        let mut others = size.pairs.clone();
        let by = rng.random_range(0..others.len());
        others.rotate_left(by);
        let link = |(&here, &there): (&usize, &usize)| Link {
            pairs: [here as u16, there as u16],
            state: State::Closed,
            incarnation: 0,
            before: 0,
            late: [0; 2],
            setups: [PairSetup::default(); 2],
            hurt: false,
            cut: [false; 2],
            doomed: None,
            blemished: false,
            frames: Default::default(),
            controls: [0; 2],
            outstanding: 0,
            succeeded: [0; 2],
            failed: [false; 2],
            statuses: [Status::Success; 2],
            events: [0; 2],
            since: 0,
            limit: [0; 2],
            source: [[0; 2]; 2],
            sink: [[0; 2]; 2],
            last: [None; 2],
            told: [(0, 0); 2],
        };
        let latency = [1, 20, 300][rng.random_range(0..3)];
        let wire = |rng: &mut ChaCha8Rng| Wire::new(trouble, latency, rate(rng).max(0.5));
        World {
            sides,
            wires: [wire(&mut rng), wire(&mut rng)],
            links: size.pairs.iter().zip(&others).map(link).collect(),
            messages: vec![],
            rng,
            cycle: 0,
            talking: true,
            failures: 0,
            refuses: if trouble == 0 { 0.0 } else { 0.0001 },
            cuts: 0.0,
            cut_off: 0,
            given_up: 0,
            moved: 0,
            most_credits: 8,
            sends_log2: equal_sends_log2(size.config.descriptors as u32, size.config.pairs as u32),
            expected: 0.6,
            rest: 400_000,
            timeout_log2,
            patience: (1 << (timeout_log2 + DOUBLINGS))
                + TOLD_BY_FIRMWARE
                + 2 * u64::from(SCAN_CYCLES) * size.config.pairs as u64,
            pairs: size.config.pairs as u64,
        }
    }

    /// The same with one credit a pair that is returned by a frame of its own, and trouble for control frames only: what is
    /// lost is often the credit that the next send waits for.
    pub fn thirsty(mut self) -> Self {
        self.most_credits = 1;
        self.expected = 0.1;
        self.rest = 150_000;
        for wire in &mut self.wires {
            wire.spares_messages = true;
        }
        self
    }

    /// The same with a Delivery that takes each message.
    pub fn spared(mut self) -> Self {
        self.refuses = 0.0;
        self
    }

    /// The same with wires that cut pairs off for good now and then, until they are connected anew.
    pub fn cutting(mut self) -> Self {
        self.cuts = 1.0 / 4000.0;
        self
    }

    /// The link that a pair of a side belongs to.
    fn link_of(&self, side: usize, pair: u16) -> usize {
        let found = self.links.iter().position(|link| link.pairs[side] == pair);
        found.unwrap_or_else(|| panic!("nobody knows pair {pair} of side {side}"))
    }

    /// Lets hosts send for `cycles`, then waits until everything has come to its end.
    pub fn run(&mut self, cycles: u64) {
        while self.cycle < cycles {
            self.step();
        }
        self.talking = false;
        while self.cycle < self.moved + self.patience {
            self.step();
            assert!(self.cycle < cycles + self.rest, "it never comes to rest");
        }
        self.settled();
    }

    /// What has to be true when nothing moves.
    fn settled(&self) {
        for (handle, message) in self.messages.iter().enumerate() {
            assert!(
                message.completed.is_some(),
                "send {handle} of link {} never completes: {:?}",
                message.link,
                self.links[message.link]
            );
            if message.completed == Some(Status::Success) {
                assert!(message.accepted && !message.refused);
            }
        }
        for (s, side) in self.sides.iter().enumerate() {
            let (sent, come) = (self.wires[s].count, self.wires[1 - s].count);
            assert_eq!(side.sent, sent.taken, "frames that side {s} says it sent");
            let counted: u64 = side.counted.iter().sum();
            assert_eq!(counted, come.given, "each frame counts once: {RECEIVED:?}");
            let broken: u64 = side.counted[1..4].iter().sum();
            assert_eq!(broken, come.damaged, "{RECEIVED:?} {:?}", side.counted);
            let [.., duplicates, gaps] = side.counted;
            let other = &self.sides[1 - s];
            let again = come.repeated + come.delayed + other.repeats;
            assert!(duplicates <= again, "{duplicates} duplicates");
            let missing = come.lost + come.damaged + come.delayed;
            assert!(missing > 0 || gaps == 0, "{gaps} gaps");
            // An acknowledgement went out although a message had just carried the same numbers.
            let asked = other.asks + duplicates + gaps;
            assert!(
                side.echoes <= asked,
                "side {s} says {} times the same, and was asked {asked} times",
                side.echoes
            );
        }
        for link in &self.links {
            assert_eq!(link.state, State::Open, "{:?}", link.pairs);
            assert_eq!(link.failed, [false; 2], "it was opened anew");
            for direction in 0..2 {
                // Every credit is back where it came from. What a lost frame said of it is asked for when a send needs it:
                // none does any more.
                let [taken, returned] = link.source[direction];
                let [accepted, freed] = link.sink[1 - direction];
                let known = if link.blemished { freed } else { returned };
                let all = [known, freed, accepted];
                assert_eq!(all, [taken; 3], "direction {direction} of {:?}", link.pairs);
            }
        }
    }

    /// Messages that arrived, and how many sends ended in each of these ways.
    pub fn ended(&self, status: Status) -> usize {
        let ended = |message: &&Message| message.completed == Some(status);
        self.messages.iter().filter(ended).count()
    }

    fn step(&mut self) {
        self.govern();
        for s in 0..2 {
            self.host(s);
            self.drive_memory(s);
            self.drive_delivery(s);
            self.drive_control(s);
            let side = &mut self.sides[s];
            for pin in ["complete_ready", "raise_ready", "m_axis_tready"] {
                let ready = self.rng.random_bool(side.willing);
                side.bench.set(pin, ready);
            }
            self.wires[1 - s].give(&mut side.bench, self.cycle, &mut self.rng);
            side.bench.eval();
        }
        for s in 0..2 {
            self.observe_wire(s);
            self.observe_monitors(s);
        }
        for s in 0..2 {
            self.observe_failures(s);
            self.observe_memory(s);
            self.observe_delivery(s);
            self.observe_completions(s);
            self.observe_control(s);
        }
        self.check_credits();
        self.check_time();
        for side in &mut self.sides {
            side.bench.step();
        }
        self.cycle += 1;
    }

    // ---- firmware

    /// Opens what is closed, and closes what has failed once nothing of it is left.
    fn govern(&mut self) {
        self.cut();
        for index in 0..self.links.len() {
            let free = self.sides.iter().all(|side| side.control.is_none());
            let link = &self.links[index];
            match link.state {
                State::Closed if free => self.open(index),
                State::Open if link.failed == [true; 2] && free && self.is_over(index) => {
                    let link = &mut self.links[index];
                    assert_eq!(link.events, [1; 2], "one event a failure and side");
                    link.state = State::Closing([true; 2]);
                    for s in 0..2 {
                        let pair = self.links[index].pairs[s].into();
                        self.sides[s].control = Some((Operation::PairClear, pair, vec![]));
                    }
                }
                State::Open if link.failed[0] != link.failed[1] => {
                    let s = usize::from(link.failed[0]);
                    let late = self.cycle > link.since + TOLD_BY_FIRMWARE;
                    if late && self.sides[s].control.is_none() {
                        let status = Status::LinkError.code().into();
                        let pair = link.pairs[s].into();
                        self.sides[s].control = Some((Operation::PairFail, pair, vec![status]));
                        self.links[index].since = self.cycle;
                    }
                }
                _ => {}
            }
        }
    }

    /// Cuts a pair off, in one direction or in both.
    fn cut(&mut self) {
        if !self.talking || self.cuts == 0.0 || !self.rng.random_bool(self.cuts) {
            return;
        }
        let index = self.rng.random_range(0..self.links.len());
        let cut = [[true; 2], [true, false], [false, true]][self.rng.random_range(0..3)];
        let link = &mut self.links[index];
        if link.state != State::Open || link.failed != [false; 2] || link.cut != [false; 2] {
            return;
        }
        link.cut = cut;
        self.cut_off += 1;
        for s in (0..2).filter(|s| cut[*s]) {
            self.wires[s].cut.push(link.pairs[s]);
        }
    }

    fn open(&mut self, index: usize) {
        let cookie = self.rng.random();
        let granted: [u8; 2] =
            std::array::from_fn(|_| self.rng.random_range(1..=self.most_credits));
        let link = &mut self.links[index];
        let endpoint = |s: usize| (link.pairs[s] % 2) as u8;
        link.before = link.setups[0].cookie;
        link.late = [0; 2];
        link.told = [(0, 0); 2];
        link.setups = std::array::from_fn(|s| PairSetup {
            remote_mac: mac(1 - s),
            remote_endpoint: endpoint(1 - s).into(),
            remote_pair: link.pairs[1 - s],
            remote_epoch: epoch(1 - s, endpoint(1 - s)),
            cookie,
            endpoint: endpoint(s),
            domain: domain(s, endpoint(s)),
            epoch: epoch(s, endpoint(s)),
            remote_credits: granted[1 - s],
            local_credits: granted[s],
            sends_first: link.pairs[s] << self.sends_log2,
            sends_log2: self.sends_log2,
            acknowledge_credits: granted[s] / 2,
            acknowledge_delay: DELAY,
            timeout_log2: self.timeout_log2,
            retry_limit: RETRY_LIMIT,
            ..PairSetup::default()
        });
        link.incarnation += 1;
        link.hurt = false;
        link.cut = [false; 2];
        link.doomed = None;
        link.blemished = false;
        link.frames = Default::default();
        link.controls = [0; 2];
        for (wire, pair) in self.wires.iter_mut().zip(link.pairs) {
            wire.cut.retain(|other| *other != pair);
        }
        link.succeeded = [0; 2];
        link.failed = [false; 2];
        link.events = [0; 2];
        link.source = [[0; 2]; 2];
        link.sink = [[0; 2]; 2];
        link.last = [None; 2];
        link.state = State::Opening([true; 2]);
        for s in 0..2 {
            let setup = self.links[index].setups[s].to_words().to_vec();
            let pair = self.links[index].pairs[s].into();
            self.sides[s].control = Some((Operation::PairSet, pair, setup));
        }
    }

    /// Nothing of a link that has failed is under way any more, but for what is on the wire.
    fn is_over(&self, index: usize) -> bool {
        let link = &self.links[index];
        let of = |handle: usize| self.messages[handle].link == index;
        let here = |s: usize| {
            let side = &self.sides[s];
            let pair = link.pairs[s];
            link.events[s] == 1
                && side.send.is_none_or(|handle| !of(handle))
                && side.arriving.as_ref().is_none_or(|a| !of(a.handle))
                && side.updates.iter().all(|update| update.0 != pair)
                && side.request != Some(pair)
        };
        link.outstanding == 0 && here(0) && here(1)
    }

    fn drive_control(&mut self, s: usize) {
        let side = &mut self.sides[s];
        side.bench.set("control_valid", side.control.is_some());
        if let Some((operation, index, data)) = &side.control {
            set_control(&mut side.bench, *operation, *index as u16, data);
        }
    }

    fn observe_control(&mut self, s: usize) {
        if !self.sides[s].bench.is("control_ready") {
            return;
        }
        let control = self.sides[s].control.take();
        let (operation, pair, _) = control.expect("only what was asked for is done");
        self.moved = self.cycle;
        if operation == Operation::CardSet {
            return;
        }
        let index = self.link_of(s, pair as u16);
        let link = &mut self.links[index];
        match (&mut link.state, operation) {
            (State::Opening(under_way), Operation::PairSet) => {
                under_way[s] = false;
                if *under_way == [false; 2] {
                    link.state = State::Open;
                }
            }
            (State::Closing(under_way), Operation::PairClear) => {
                under_way[s] = false;
                if *under_way == [false; 2] {
                    link.state = State::Closed;
                }
            }
            (State::Open, Operation::PairFail) => {}
            (state, operation) => panic!("{operation} is done in {state:?}"),
        }
    }

    // ---- host

    fn host(&mut self, s: usize) {
        let rng = &mut self.rng;
        let side = &mut self.sides[s];
        if self.talking && side.send.is_none() && rng.random_bool(side.busy / 40.0) {
            let link = rng.random_range(0..self.links.len());
            // On a link that has failed it is refused; one that is being closed isn't the host's any more.
            if self.links[link].state == State::Open {
                let length = match rng.random_range(0..12) {
                    0 => [0, 1, 7, 8, 9, 1023, 1024][rng.random_range(0..7)],
                    1 => rng.random_range(0..=1024),
                    _ => rng.random_range(0..40),
                };
                let inline = length <= INLINE_BYTES && rng.random();
                let unreadable = match rng.random_range(0..40) {
                    _ if inline => None,
                    0 if length > 0 => Some(Status::LocalProtection),
                    1 if length > 0 => Some(Status::MemoryError),
                    _ => None,
                };
                self.links[link].outstanding += 1;
                let put = rng.random_bool(0.25);
                side.send = Some(self.messages.len());
                self.messages.push(Message {
                    side: s,
                    link,
                    incarnation: self.links[link].incarnation,
                    context: rng.random(),
                    immediate: rng.random(),
                    length,
                    ready: !put && rng.random_bool(0.3),
                    put,
                    refused: false,
                    inline,
                    unreadable,
                    arrived: false,
                    accepted: false,
                    completed: None,
                });
            }
        }
        side.bench.set("sends_valid", side.send.is_some());
        if let Some(handle) = side.send {
            let message = &self.messages[handle];
            let setup = &self.links[message.link].setups[s];
            let opcode = match message.put {
                true => Opcode::Put,
                false => Opcode::TaggedSend,
            };
            let request = SendRequest {
                opcode: opcode.code(),
                flags: u8::from(message.ready) * FLAG_READY,
                pair: self.links[message.link].pairs[s],
                context: message.context,
                request: handle as u32,
                key: !(handle as u32),
                match_bits: handle as u64,
                immediate: message.immediate,
                address: (handle as u64) << 16,
                length: message.length as u64,
                ..SendRequest::default()
            };
            let request = match message.inline {
                true => request.with_inline(&message.payload(handle)),
                false => request,
            };
            let mut fields = vec![(setup.endpoint.into(), 8), (setup.domain.into(), 8)];
            fields.extend(request.to_words().map(|word| (word, 64)));
            side.bench.set_wide("sends", &pack(&fields));
        }
    }

    fn observe_completions(&mut self, s: usize) {
        let side = &mut self.sides[s];
        if side.send.is_some() && side.bench.is("sends_ready") {
            side.send = None;
            self.moved = self.cycle;
        }
        assert!(!side.bench.is("release_valid"), "nothing was cancelled");
        let words = side.bench.get_wide::<9>("complete");
        let [valid, takes] = ["complete_valid", "complete_ready"].map(|pin| side.bench.is(pin));
        let Some(words) = side.steady[0].watch("complete", valid, takes, &words) else {
            return;
        };
        self.moved = self.cycle;
        let fields = unpack(&words, [8, 64, 64, 64, 64, 64, 64, 64, 64]);
        let entry = Completion::from_words(&std::array::from_fn(|k| fields[k + 1]));
        let handle = entry.request as usize;
        let message = &mut self.messages[handle];
        let link = &mut self.links[message.link];
        link.outstanding -= 1;
        assert_eq!(entry.kind, CompletionKind::Send.code());
        assert_eq!(fields[0], u64::from(link.setups[s].endpoint));
        assert_eq!(entry.pair, link.pairs[s]);
        assert_eq!(entry.context, message.context);
        assert_eq!(message.side, s, "send {handle} completes at the other side");
        assert_eq!(
            message.incarnation, link.incarnation,
            "it is of another time"
        );
        assert_eq!(message.completed, None, "send {handle} completes twice");
        let status = Status::from_code(entry.status).expect("a status");
        message.completed = Some(status);
        match status {
            Status::NotReady | Status::RemoteAccess => {
                assert!(message.refused, "send {handle} was taken");
                assert_eq!(status == Status::RemoteAccess, message.put);
            }
            Status::Success => {
                assert!(message.accepted, "send {handle} isn't safe yet");
                assert!(!message.refused, "send {handle} was refused");
                assert_eq!(message.unreadable, None, "send {handle}");
                link.succeeded[s] += 1;
            }
            Status::QueueFull => assert!(!message.arrived),
            // A job that Gather has completes after its pair has failed, and may do so before this world has been told of the failure.
            Status::LinkError | Status::PeerFailed => {
                assert!(link.may_fail(status), "{status} on {:?}", link.pairs);
            }
            other => {
                assert_eq!(Some(other), message.unreadable, "send {handle}");
                assert!(!message.arrived);
            }
        }
    }

    // ---- memory of the sender

    fn drive_memory(&mut self, s: usize) {
        let (side, rng) = (&mut self.sides[s], &mut self.rng);
        let willing = side.willing;
        side.bench.set("query_ready", rng.random_bool(willing));
        let due = side.answers.front().is_some_and(|a| a.0 <= self.cycle);
        let answer = due.then(|| side.answers.pop_front()).flatten();
        side.bench.set("allowed_valid", answer.is_some());
        let noise: bool = rng.random();
        let (allowed, address) = answer.map_or((noise, 0), |(_, allowed, at)| (allowed, at));
        let permission = pack(&[(allowed.into(), 1), (address, 64)]);
        side.bench.set_wide("allowed", &permission);
        side.bench
            .set("read_request_ready", rng.random_bool(willing));
        let due = side.reads.front().is_some_and(|r| r.due <= self.cycle);
        side.word_offered |= due && rng.random_bool(willing);
        side.bench.set("read_data_valid", side.word_offered);
        let read = side.reads.front().filter(|_| side.word_offered);
        let (word, last, error) = match read {
            Some(read) => {
                let last = read.words.len() == 1;
                (read.words[0], last, if last { read.error } else { noise })
            }
            None => (rng.random(), noise, noise),
        };
        side.bench.set("read_data", word);
        side.bench.set("read_data_last", last);
        side.bench.set("read_data_error", error);
    }

    fn observe_memory(&mut self, s: usize) {
        let side = &mut self.sides[s];
        let query = side.bench.get_wide::<3>("query");
        let [valid, takes] = ["query_valid", "query_ready"].map(|pin| side.bench.is(pin));
        if let Some(words) = side.steady[1].watch("query", valid, takes, &query) {
            let [domain, key, rights, address, length] = unpack(&words, [8, 32, 8, 64, 64]);
            let handle = (address >> 16) as usize;
            let message = &self.messages[handle];
            let setup = &self.links[message.link].setups[s];
            assert_eq!(message.completed, None, "whose buffer is the host's again");
            assert_eq!(domain, u64::from(setup.domain));
            assert_eq!(key, u64::from(!(handle as u32)));
            assert_eq!(rights, u64::from(RIGHT_LOCAL_READ));
            assert_eq!(length, message.length as u64);
            let allowed = message.unreadable != Some(Status::LocalProtection);
            let before = side.answers.back().map_or(0, |(due, ..)| due + 1);
            let due = before.max(self.cycle + hdl::protect::LATENCY);
            side.answers.push_back((due, allowed, address));
        }
        if side.word_offered && side.bench.is("read_data_ready") {
            side.word_offered = false;
            let read = side.reads.front_mut().expect("it offers a word");
            let completed = self.messages[read.handle].completed;
            assert_eq!(completed, None, "whose buffer is the host's again");
            let words = &mut read.words;
            words.pop_front();
            if words.is_empty() {
                side.reads.pop_front();
            }
        }
        let request = side.bench.get_wide::<2>("read_request");
        let [valid, takes] =
            ["read_request_valid", "read_request_ready"].map(|pin| side.bench.is(pin));
        if let Some(words) = side.steady[2].watch("read_request", valid, takes, &request) {
            let [address, length] = unpack(&words, [64, 16]);
            let handle = (address >> 16) as usize;
            let message = &self.messages[handle];
            assert_eq!(length, message.length as u64);
            let allowed = message.unreadable != Some(Status::LocalProtection);
            assert!(allowed, "it reads what it may not");
            let mut bytes = message.payload(handle);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            let words = bytes.chunks(8);
            side.reads.push_back(Read {
                handle,
                words: words
                    .map(|word| u64::from_le_bytes(word.try_into().expect("padded")))
                    .collect(),
                error: message.unreadable == Some(Status::MemoryError),
                due: self.cycle + 1 + self.rng.random_range(0..30),
            });
        }
    }

    // ---- Delivery of the receiver

    fn drive_delivery(&mut self, s: usize) {
        let (side, rng) = (&mut self.sides[s], &mut self.rng);
        let willing = side.willing;
        let takes = side.arriving.is_none() && rng.random_bool(willing);
        side.bench.set("arrival_ready", takes);
        let takes = side.arriving.is_some() && rng.random_bool(willing);
        side.bench.set("payload_ready", takes);
        // Receives come for messages that rest.
        let late = if self.talking { 0.01 } else { 0.2 };
        if !side.resting.is_empty() && rng.random_bool(late) {
            let pair = side.resting.remove(rng.random_range(0..side.resting.len()));
            side.updates.push_back((pair, None, true));
        }
        let update = side.updates.front();
        side.bench.set("sink_update_valid", update.is_some());
        if let Some((pair, accepted, freed)) = update {
            let fields = [
                ((*pair).into(), 16),
                (accepted.is_some().into(), 1),
                ((*freed).into(), 1),
                (accepted.is_some_and(|h| self.messages[h].refused).into(), 1),
            ];
            side.bench.set("sink_update", pack(&fields)[0]);
        }
        // Now and then Delivery can't take a message and has its pair failed.
        if side.request.is_none() && self.talking && rng.random_bool(self.refuses) {
            let index = rng.random_range(0..self.links.len());
            let link = &mut self.links[index];
            if link.state == State::Open && link.failed == [false; 2] {
                link.hurt = true;
                side.request = Some(link.pairs[s]);
            }
        }
        let fault = |pair: u16| pack(&[(pair.into(), 16), (Status::LinkError.code().into(), 8)]);
        side.bench
            .set("delivery_request_valid", side.request.is_some());
        side.bench
            .set("delivery_request", fault(side.request.unwrap_or(0))[0]);
        side.bench
            .set("delivery_fault_ready", rng.random_bool(willing / 4.0));
    }

    fn observe_delivery(&mut self, s: usize) {
        let side = &mut self.sides[s];
        if side.bench.is("delivery_request_ready") {
            side.request = None;
        }
        if !side.updates.is_empty() && side.bench.is("sink_update_ready") {
            let (_, accepted, _) = side.updates.pop_front().expect("it isn't empty");
            if let Some(handle) = accepted {
                self.messages[handle].accepted = true;
            }
            self.moved = self.cycle;
        }
        let [valid, takes] = ["payload_valid", "payload_ready"].map(|pin| side.bench.is(pin));
        let word = [side.bench.get("payload")];
        if let Some(word) = side.steady[4].watch("payload", valid, takes, &word) {
            let arriving = side.arriving.as_mut().expect("a message that isn't whole");
            arriving.bytes.extend(word[0].to_le_bytes());
        }
        let words = side.bench.get_wide::<3>("arrival");
        let [valid, takes] = ["arrival_valid", "arrival_ready"].map(|pin| side.bench.is(pin));
        if let Some(words) = side.steady[3].watch("arrival", valid, takes, &words) {
            let fields = unpack(&words, [16, 8, 16, 64, 64, 16, 1, 1]);
            let [
                pair,
                endpoint,
                context,
                handle,
                immediate,
                length,
                ready,
                put,
            ] = fields;
            let handle = handle as usize;
            let index = self.link_of(s, pair as u16);
            let message = &mut self.messages[handle];
            let link = &mut self.links[index];
            assert_eq!((message.link, message.side), (index, 1 - s), "by this pair");
            assert_eq!(
                link.state,
                State::Open,
                "a message by a pair that is closed"
            );
            assert_eq!(
                message.incarnation, link.incarnation,
                "it is of another time"
            );
            assert_eq!(endpoint, u64::from(link.setups[s].endpoint));
            assert_eq!(context, u64::from(message.context));
            assert_eq!(immediate, message.immediate);
            assert_eq!(length, message.length as u64);
            assert_eq!(ready, u64::from(message.ready));
            assert_eq!(put, u64::from(message.put));
            assert!(!message.arrived, "message {handle} arrives twice");
            assert_eq!(message.unreadable, None, "message {handle} has no payload");
            assert!(
                link.last[1 - s] < Some(handle),
                "message {handle} overtakes"
            );
            message.arrived = true;
            link.last[1 - s] = Some(handle);
            self.sides[s].arriving = Some(Arriving {
                handle,
                words: message.length.div_ceil(8),
                bytes: vec![],
            });
        }
        let whole = |a: &mut Arriving| a.bytes.len() == 8 * a.words;
        let Some(arriving) = self.sides[s].arriving.take_if(whole) else {
            return;
        };
        self.moved = self.cycle;
        let message = &self.messages[arriving.handle];
        let payload = message.payload(arriving.handle);
        assert_eq!(arriving.bytes[..payload.len()], payload, "the payload");
        let link = &self.links[message.link];
        // A message of a pair that has failed is dropped and uses nothing.
        if !link.failed[s] {
            // A ready message that finds no receive is refused, unless one may be under way.
            let mut expected = self.rng.random_bool(self.expected);
            // A put may be refused, and needs no storage either way.
            let refused = match message.put {
                true => self.rng.random_bool(0.2),
                false => message.ready && !expected && self.rng.random_bool(0.9),
            };
            expected |= refused | message.put;
            let pair = link.pairs[s];
            self.messages[arriving.handle].refused = refused;
            let side = &mut self.sides[s];
            side.updates
                .push_back((pair, Some(arriving.handle), expected));
            if !expected {
                side.resting.push(pair);
            }
        }
    }

    // ---- failures

    fn observe_failures(&mut self, s: usize) {
        let side = &mut self.sides[s];
        let fault = [side.bench.get("fault")];
        let [valid, takes] =
            ["delivery_fault_valid", "delivery_fault_ready"].map(|pin| side.bench.is(pin));
        if let Some(fault) = side.steady[5].watch("fault", valid, takes, &fault) {
            let [pair, status] = unpack(&fault, [16, 8]);
            let status = Status::from_code(status as u8).expect("a status");
            // What is on offer stays; nothing else of the pair is told any more.
            let pair = pair as u16;
            side.resting.retain(|other| *other != pair);
            let mut at = 0;
            side.updates.retain(|update| {
                at += 1;
                at == 1 || update.0 != pair
            });
            let index = self.link_of(s, pair);
            let link = &mut self.links[index];
            assert_eq!(link.state, State::Open, "a pair that is closed fails");
            assert!(!link.failed[s], "pair {pair} fails twice");
            assert!(link.may_fail(status), "{status} of {:?}", link.pairs);
            if link.failed == [false; 2] {
                link.since = self.cycle;
                let gives_up = status == Status::PeerFailed;
                assert!(link.hurt || gives_up, "its peer hasn't said why");
                self.given_up += u64::from(gives_up);
            }
            link.failed[s] = true;
            link.statuses[s] = status;
            self.failures += 1;
            self.moved = self.cycle;
        }
        let side = &mut self.sides[s];
        let raise = side.bench.get_wide::<2>("raise");
        let [valid, takes] = ["raise_valid", "raise_ready"].map(|pin| side.bench.is(pin));
        if let Some(words) = side.steady[6].watch("raise", valid, takes, &raise) {
            let [endpoint, cause, pair, info] = unpack(&words, [8, 8, 16, 64]);
            let index = self.link_of(s, pair as u16);
            let link = &mut self.links[index];
            assert_eq!(info, u64::from(link.statuses[s].code()));
            let told = match link.statuses[s] {
                Status::PeerFailed => Cause::PeerFailed,
                _ => Cause::LinkError,
            };
            assert_eq!(cause, u64::from(told.code()));
            assert!(link.failed[s], "an event without a failure");
            assert_eq!(endpoint, u64::from(link.setups[s].endpoint));
            link.events[s] += 1;
            self.moved = self.cycle;
        }
    }

    // ---- wire and monitors

    fn observe_wire(&mut self, s: usize) {
        let side = &mut self.sides[s];
        for (count, name) in side.counted.iter_mut().zip(RECEIVED) {
            *count += side.bench.get(&format!("count_{name}"));
        }
        side.sent += side.bench.get("count_frames_sent");
        side.timeouts += side.bench.get("count_timeouts");
        side.asks += side.bench.get("count_asks");
        side.repeats += side.bench.get("count_repeats");
        self.wires[1 - s].given(&side.bench);
        let taken = self.wires[s].take(&side.bench, self.cycle, &mut self.rng);
        let Some(taken) = taken else {
            return;
        };
        let header = taken.header;
        self.moved = self.cycle;
        let index = self.link_of(s, header.source_pair);
        let link = &mut self.links[index];
        let setup = &link.setups[s];
        assert_eq!(header.destination_mac, setup.remote_mac);
        assert_eq!(header.destination_pair, setup.remote_pair);
        if header.cookie != setup.cookie {
            // It had begun when its pair was set anew: nobody waits for the wire to take it.
            assert_eq!(header.cookie, link.before, "a frame of another time");
            link.late[s] += 1;
            assert_eq!(link.late[s], 1, "one frame had begun");
            return;
        }
        link.blemished |= [Fate::Lost, Fate::Damaged].contains(&taken.fate);
        let says_failed = header.frame_type == FrameType::PairFailed.code();
        let numbers = (header.acknowledge, header.credit);
        let echoes = header.frame_type == FrameType::Acknowledge.code() && link.told[s] == numbers;
        link.told[s] = numbers;
        self.sides[s].echoes += u64::from(echoes);
        let reason = link.hurt || link.cut != [false; 2];
        assert!(!says_failed || reason, "it is told to fail for nothing");
        link.number(s, &taken);
    }

    fn observe_monitors(&mut self, s: usize) {
        let bench = &self.sides[s].bench;
        let seen = |which: &str, numbers: [&str; 2]| {
            let pin = |name: &str| bench.get(&format!("monitor_{which}_{name}"));
            (pin("valid") != 0).then(|| (pin("pair") as u16, numbers.map(|name| pin(name) as u32)))
        };
        let source = seen("source", ["taken", "returned"]);
        let sink = seen("sink", ["accepted", "freed"]);
        if let Some((pair, numbers)) = source {
            let index = self.link_of(s, pair);
            // A put takes a number without a credit, and nothing else does.
            let put = bench.get("monitor_source_put") != 0;
            let link = &mut self.links[index];
            let granted = link.granted(s);
            let in_use = |[taken, returned]: [u32; 2]| taken.wrapping_sub(returned);
            let may_be = match put {
                true => in_use(numbers).min(granted + u32::from(MAX_UNACKNOWLEDGED)),
                false => in_use(link.source[s]),
            };
            link.limit[s] = may_be.max(granted);
            link.source[s] = numbers;
        }
        if let Some((pair, numbers)) = sink {
            let index = self.link_of(s, pair);
            self.links[index].sink[s] = numbers;
        }
    }

    /// The invariant of the credits, at every cycle: the sum of what is owned, in flight, queued and on
    /// the way back is what was granted, but for what puts have taken.
    fn check_credits(&self) {
        let up = |link: &&Link| link.state == State::Open && link.failed == [false; 2];
        for link in self.links.iter().filter(up) {
            for direction in 0..2 {
                let [taken, returned] = link.source[direction];
                let [accepted, freed] = link.sink[1 - direction];
                let granted = link.granted(direction);
                assert!(
                    returned <= freed
                        && freed <= accepted
                        && accepted <= taken
                        && taken <= returned + link.limit[direction].max(granted),
                    "credits of {:?}, direction {direction}: {returned} {freed} {accepted} {taken}, {granted} granted",
                    link.pairs
                );
            }
        }
    }

    /// A pair that is cut off is failed in time, whatever its sends wait for.
    fn check_time(&mut self) {
        let scan = u64::from(SCAN_CYCLES) * self.pairs;
        let try_all = (WAITS << TIMEOUT_LOG2) + u64::from(RETRY_LIMIT + 1) * scan;
        for link in &mut self.links {
            let both = link.cut == [true; 2];
            let waits = link.state == State::Open && link.cut != [false; 2] && link.outstanding > 0;
            if !waits || link.failed != [false; 2] {
                link.doomed = None;
                continue;
            }
            let since = *link.doomed.get_or_insert(self.cycle);
            // A side that only asks for credit hears of its peer as long as that sends, and that is until it gives up itself.
            let most = if both { try_all } else { 2 * try_all };
            assert!(
                self.cycle <= since + most + LATE + SETTLING,
                "{:?} is cut off and doesn't fail",
                link.pairs
            );
        }
    }

    /// A line on what happened.
    pub fn report(&self) -> String {
        format!(
            "{} sends, {} failures, {} of {} pairs cut off; wires {:?}; {RECEIVED:?} {:?}; {:?} time-outs, {:?} asks, {:?} again; cycle {}",
            self.messages.len(),
            self.failures,
            self.given_up,
            self.cut_off,
            self.wires.each_ref().map(|wire| wire.count),
            self.sides.each_ref().map(|side| side.counted),
            self.sides.each_ref().map(|side| side.timeouts),
            self.sides.each_ref().map(|side| side.asks),
            self.sides.each_ref().map(|side| side.repeats),
            self.cycle,
        )
    }

    /// What the receivers counted, both together.
    pub fn counted(&self, name: &str) -> u64 {
        let at = RECEIVED.iter().position(|other| *other == name);
        let at = at.expect("a counter of the receiver");
        self.sides.iter().map(|side| side.counted[at]).sum()
    }

    /// Times that credit was asked for, of both sides.
    pub fn asks(&self) -> u64 {
        self.sides.iter().map(|side| side.asks).sum()
    }

    /// Sends that were given again, of both sides.
    pub fn repeats(&self) -> u64 {
        self.sides.iter().map(|side| side.repeats).sum()
    }

    /// Time-outs, of both sides.
    pub fn timeouts(&self) -> u64 {
        self.sides.iter().map(|side| side.timeouts).sum()
    }
}

fn mac(side: usize) -> u64 {
    0x0605_0403_0200 + side as u64
}

fn card(side: usize) -> CardSetup {
    CardSetup {
        mac: mac(side),
        ..CardSetup::default()
    }
}

fn epoch(side: usize, endpoint: u8) -> u16 {
    0x1000 * (side as u16 + 1) + u16::from(endpoint)
}

fn domain(side: usize, endpoint: u8) -> u8 {
    16 * (side as u8 + 1) + endpoint
}
