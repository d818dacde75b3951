//! Everything around Delivery: peers, hosts, firmware, memory.

use std::collections::{BTreeMap, HashMap, VecDeque};

use abi::completion::{COMPLETION_MORE, Completion, CompletionKind};
use abi::control::{
    COVER_PAIR, COVER_REGION, FenceSetup, GrantSetup, KEY_INDEX_BITS, Operation, PairReport,
    PairSetup, RIGHT_LOCAL_READ, RIGHT_LOCAL_WRITE, RIGHT_REMOTE_READ, RIGHT_REMOTE_WRITE,
    RegionSetup, RuleSetup,
};
use abi::key::remote_key;
use abi::limits::EAGER_MAX;
use abi::opcode::{BufferUse, OpcodeRow, TargetUse, WorkRing};
use abi::request::{
    FLAG_ANY_SOURCE, FLAG_MULTI, FLAG_NOTHING_KEPT, FLAG_PAST_RULES, FLAG_RESUME, ListRequest,
    Opcode, Segment, claim_handle, slot_number,
};
use abi::status::Status;
use card_model::delivery::Arrival;
use card_model::link::Asked;
use card_model::matching::{Command, Operation as Match, Reply};
use card_model::sends::Awaited;
use card_model::{Answered, Output, Update};
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::memory::{Access, Memory};
use crate::reference::{ENDPOINTS, PAIRS, Reference, Step};
use hdl_tests::fields::{pack, unpack};
use hdl_tests::{Bench, Size, rate};

const BASE: u64 = 0x7_ffff_0000;
const SIZE: usize = 0x23_0000;
const SLOTS: u64 = BASE;
const SLOTS_OF_PAIR: u64 = 0x1_0000;
const BUFFERS: u64 = BASE + 0x8_0000;
const REGION: u64 = 0x3_0000;
/// The third region of endpoint 0 has memory that can't be written in its upper third.
const BAD_BUFFERS: u64 = BUFFERS + 2 * REGION + 0x2_0000;
/// Region that peers put into. Its upper third can't be written.
const PUT_REGION: u16 = 8;
const PUTS: u64 = BUFFERS + PUT_REGION as u64 * REGION;
const BAD_PUTS: u64 = PUTS + 0x2_0000;
/// Bytes at either end of it that nobody is granted.
const UNGRANTED: u64 = 0x100;
/// Place, among the pairs that are used, of the one whose slots can't be read.
const UNREADABLE_SLOTS: usize = 6;
/// Place of the one whose slots can't be written.
const BAD_SLOTS: usize = 7;
/// Cycles after which something that is under way has to have moved.
const PATIENCE: u32 = 5_000;
/// What a multi-receive, or a request that waits for memory, may hold up messages for, at most.
pub const HELD_CYCLES: u32 = 64;

/// Memory that answers with errors.
fn fails(access: Access) -> bool {
    let in_slots_of = |place: usize| {
        let start = SLOTS + SLOTS_OF_PAIR * place as u64;
        (start..start + SLOTS_OF_PAIR).contains(&access.address)
    };
    match access.write {
        true => {
            in_slots_of(BAD_SLOTS)
                || (BAD_BUFFERS..BUFFERS + 3 * REGION).contains(&access.address)
                || (BAD_PUTS..PUTS + REGION).contains(&access.address)
        }
        false => in_slots_of(UNREADABLE_SLOTS),
    }
}

/// What the world mostly does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// All things.
    Mixed,
    /// More messages than receives.
    Flood,
    /// Many more receives than there is room for, few messages.
    Hoard,
    /// Messages only.
    Send,
    /// Receives, their cancels and their messages at once.
    Races,
    /// Nothing of its own accord.
    Quiet,
}

/// A control request.
#[derive(Clone, Copy, Debug)]
pub enum Control {
    PairSet(u16),
    PairClear(u16),
    PairRead(u16),
    EndpointFlush(u8),
    RegionSet(u16, RegionSetup),
    RegionClear(u16),
    RuleSet(u16, RuleSetup),
    RuleClear(u16),
    GrantSet(u16, GrantSetup),
    GrantClear(u16),
    SenderRevoke(u16),
}

/// What has entered the order of the card.
#[derive(Debug)]
enum Entered {
    /// A message, the incarnation of its pair, and the endpoints with requests on their way.
    Message(Arrival, u32, [bool; ENDPOINTS as usize]),
    /// A request of an endpoint.
    Request(u8, ListRequest),
    /// The removal of the message of a pair and a slot.
    Lost(u16, u8),
    /// The request that has found it, once more.
    Again,
    /// A row has this rule from now on, or none.
    Rule(u16, Option<RuleSetup>),
    /// A step of a walk; what came of it, when that is known.
    Step(Option<Step>),
}

pub struct World {
    pub bench: Bench,
    pub reference: Reference,
    pub mood: Mood,
    /// Credits of pairs that are set from now on; 0 for as many as fit.
    pub credits: u16,
    has_many_places: bool,
    /// Peers ignore their credits.
    pub overrun: bool,
    /// Compare nothing: the checks in the gates are on their own.
    pub blind: bool,
    /// Writes that were under way when the regions changed last, with how many had been asked for before each.
    before_change: Vec<(u64, Access)>,
    /// Writes to a region that was waited for, and writes to others that a change of one didn't wait for.
    pub waited: [u32; 2],
    memory: Memory,
    rng: ChaCha8Rng,
    /// A message that is offered, and the incarnation of its pair.
    arrival: Option<(Arrival, u32)>,
    payload: VecDeque<u64>,
    payload_offered: bool,
    list: Option<(u8, ListRequest)>,
    /// Requests that were taken, and haven't entered the order of the card.
    entering: VecDeque<(u8, ListRequest)>,
    /// What has entered it, from a step of a walk on of which Lists haven't said what it found.
    entered: VecDeque<Entered>,
    /// Commands of messages that the reference hasn't got yet.
    arrives: VecDeque<Command>,
    /// Commands of which Lists haven't said what they found.
    asked: VecDeque<Command>,
    /// Receives that are posted, by their places in Lists.
    posted: HashMap<u16, u32>,
    /// Whether the list ring of each endpoint says that it has more.
    ring: [bool; ENDPOINTS as usize],
    fault: Option<(u16, u8)>,
    control: Option<Control>,
    /// Faults that Delivery has asked for.
    faults: VecDeque<(u16, u8)>,
    /// Messages of each pair that hold a credit.
    owing: Vec<u16>,
    /// The pairs that are used, and how many the card has.
    pairs: [u16; PAIRS],
    pair_count: u16,
    /// Rules that the card has.
    rule_count: u16,
    /// Buffers in use: start and length.
    buffers: BTreeMap<u64, u64>,
    /// Which of them each request has.
    lent: HashMap<u32, u64>,
    next_request: u32,
    /// Requests that may be worth a cancel.
    recent: VecDeque<(u8, u32)>,
    /// Handles of claims that are or were good.
    claims: VecDeque<(u8, u32)>,
    tag: u32,
    /// Peers put and get, and answer gets, too. A pair is then cleared only when nothing of it is under way, since the regions close it beside what is.
    putting: bool,
    /// Choices about gets, which leave all others as they are.
    gets: ChaCha8Rng,
    /// Number of the next get that is answered, and buffers of those that are.
    next_get: u32,
    got: HashMap<(u16, u32), u64>,
    /// A get of this pair was refused where it was to be answered, and those that were counted last.
    elsewhere: Option<u16>,
    counted_elsewhere: VecDeque<(u64, u16)>,
    /// Where the next put goes, in its region.
    put_offset: u64,
    /// Outputs that came before their cause was over.
    early: VecDeque<Output>,
    // So did these events and requests to fail a pair.
    raised: Vec<(u8, u8, u16)>,
    requested: Vec<(u16, u8)>,
    send_rate: f64,
    post_rate: f64,
    ready_rate: f64,
    idle: u32,
    counted: [u32; 3],
    revoked: BTreeMap<u16, u32>,
}

impl World {
    pub fn new(size: &Size, rng: &mut ChaCha8Rng) -> Self {
        Self::around(Bench::open(&size.model), size, rng)
    }

    /// Around a bench that was opened.
    pub fn around(mut bench: Bench, size: &Size, rng: &mut ChaCha8Rng) -> Self {
        let mut rng = ChaCha8Rng::from_rng(rng);
        let mut gets = rng.clone();
        gets.set_stream(1);
        for cycle in 0.. {
            bench.eval();
            if bench.is("initialized") {
                break;
            }
            assert!(cycle < 10_000, "tables are cleared soon");
            bench.step();
        }
        World {
            reference: Reference::new(size.config, fails),
            mood: Mood::Mixed,
            credits: 0,
            has_many_places: size.config.unexpected > 256,
            overrun: false,
            blind: false,
            before_change: vec![],
            waited: [0; 2],
            memory: Memory::new(BASE, SIZE, fails, &mut rng),
            arrival: None,
            payload: VecDeque::new(),
            payload_offered: false,
            list: None,
            entering: VecDeque::new(),
            entered: VecDeque::new(),
            arrives: VecDeque::new(),
            asked: VecDeque::new(),
            posted: HashMap::new(),
            ring: [false; ENDPOINTS as usize],
            fault: None,
            control: None,
            faults: VecDeque::new(),
            owing: vec![0; size.config.pairs],
            pairs: std::array::from_fn(|place| size.pairs[place] as u16),
            pair_count: size.config.pairs as u16,
            rule_count: size.config.rules as u16,
            buffers: BTreeMap::new(),
            lent: HashMap::new(),
            next_request: 0x8000_0000,
            recent: VecDeque::new(),
            claims: VecDeque::new(),
            tag: 0x1_2345,
            putting: false,
            gets,
            next_get: 0,
            got: HashMap::new(),
            elsewhere: None,
            counted_elsewhere: VecDeque::new(),
            put_offset: UNGRANTED,
            early: VecDeque::new(),
            raised: Vec::new(),
            requested: Vec::new(),
            send_rate: rate(&mut rng),
            post_rate: rate(&mut rng),
            ready_rate: rate(&mut rng),
            idle: 0,
            counted: [0; 3],
            revoked: BTreeMap::new(),
            bench,
            rng,
        }
    }

    // ---- pairs

    /// Place of a pair among those that are used.
    fn place(&self, pair: u16) -> usize {
        let place = self.pairs.iter().position(|p| *p == pair);
        place.expect("a pair that is used")
    }

    fn endpoint_of(&self, pair: u16) -> u8 {
        (self.place(pair) % 2) as u8
    }

    fn some_pair(&mut self) -> u16 {
        self.pairs[self.rng.random_range(0..PAIRS)]
    }

    /// The pair whose slots can't be written.
    pub fn pair_with_bad_slots(&self) -> u16 {
        self.pairs[BAD_SLOTS]
    }

    // ---- firmware

    /// Regions for both endpoints, and all pairs.
    pub fn set_up(&mut self) {
        for index in 0..8 {
            self.control(Control::RegionSet(index, self.region(index)));
        }
        self.control(Control::RegionSet(PUT_REGION, self.region(PUT_REGION)));
        for pair in self.pairs {
            self.control(Control::PairSet(pair));
        }
        for row in 0..2 * PAIRS as u16 {
            self.control(Control::GrantSet(row, self.grant(row)));
        }
    }

    /// What a row of the grants has: most of the region to write for one pair each, and to read only for one each.
    fn grant(&self, row: u16) -> GrantSetup {
        GrantSetup {
            tag: self.grant_tag(row),
            region: PUT_REGION,
            region_tag: self.reference.regions[&PUT_REGION].tag,
            holder: self.pairs[usize::from(row) % PAIRS],
            rights: match usize::from(row) < PAIRS {
                true => RIGHT_REMOTE_WRITE | RIGHT_REMOTE_READ,
                false => RIGHT_REMOTE_READ,
            },
            offset: UNGRANTED,
            length: REGION - 2 * UNGRANTED,
            ..GrantSetup::default()
        }
    }

    fn grant_tag(&self, row: u16) -> u64 {
        0x1234_5678_9a00 + u64::from(row)
    }

    /// Three regions an endpoint; 6 can't be written, 7 is of nobody, 8 is put into.
    fn region(&self, index: u16) -> RegionSetup {
        RegionSetup {
            base: BUFFERS + REGION * u64::from(index),
            length: REGION,
            tag: self.tag & 0xf_ffff,
            domain: match index {
                0..3 | 6 => domain(0),
                3..6 => domain(1),
                _ => 9,
            },
            rights: match index {
                6 => RIGHT_LOCAL_READ,
                PUT_REGION => RIGHT_LOCAL_READ | RIGHT_REMOTE_WRITE,
                _ => RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE,
            },
            ..RegionSetup::default()
        }
    }

    /// Has a control request done.
    pub fn control(&mut self, control: Control) {
        let mood = std::mem::replace(&mut self.mood, Mood::Quiet);
        while self.control.is_some() {
            self.cycle();
        }
        self.control = Some(control);
        while self.control.is_some() {
            self.cycle();
        }
        self.mood = mood;
    }

    /// Runs until the Gate has been asked about all that is here. Of what may be written the write is asked for, and may be under way.
    fn ask_all(&mut self) {
        let mood = std::mem::replace(&mut self.mood, Mood::Quiet);
        let start = self.bench.model.cycle();
        loop {
            let wanted = &self.reference.wanted;
            // One that can't be read is asked about, too.
            let unreadable = |output: &Output| match output {
                Output::Complete { entry, .. } => entry.status == Status::MemoryError.code(),
                _ => false,
            };
            let asked = self.arrival.is_none()
                && self.list.is_none()
                && self.control.is_none()
                && self.entering.is_empty()
                && self.entered.is_empty()
                && wanted.writes.is_empty()
                && !wanted.outputs.iter().any(|(output, _)| unreadable(output));
            if asked {
                break;
            }
            self.cycle();
            let cycles = self.bench.model.cycle() - start;
            assert!(cycles < 100_000, "all is asked: {}", self.left());
        }
        self.mood = mood;
    }

    /// Runs until nothing is under way.
    pub fn settle(&mut self) {
        let mood = std::mem::replace(&mut self.mood, Mood::Quiet);
        let mut quiet = 0;
        let start = self.bench.model.cycle();
        while quiet < 40 {
            self.cycle();
            let cycles = self.bench.model.cycle() - start;
            assert!(cycles < 100_000, "it comes to rest: {}", self.left());
            let idle = self.arrival.is_none()
                && self.payload.is_empty()
                && self.list.is_none()
                && self.entering.is_empty()
                && self.entered.is_empty()
                && self.fault.is_none()
                && self.control.is_none()
                && self.faults.is_empty()
                && self.early.is_empty()
                && self.raised.is_empty()
                && self.requested.is_empty()
                && self.reference.wanted.settled()
                && !self.memory.busy();
            quiet = if idle { quiet + 1 } else { 0 };
        }
        self.mood = mood;
        let depths = (
            self.bench.get("posted_depth"),
            self.bench.get("unexpected_depth"),
        );
        assert_eq!(depths, self.reference.depths());
        let seen = &self.reference.wanted.seen;
        let counts = [seen.expected, seen.unexpected, seen.invalid];
        assert_eq!(
            self.counted, counts,
            "expected, unexpected, invalid requests"
        );
        assert_eq!(self.revoked, seen.revoked);
    }

    /// What is under way, for a message.
    fn left(&self) -> String {
        format!(
            "arrival {}, {} words, list {}, {} enter, fault {:?}, control {:?}, faults {:?}, early {:?}, {:?} and {:?}, \
             wanted {:x?} and {:x?}, then {:x?}, memory {}",
            self.arrival.is_some(),
            self.payload.len(),
            self.list.is_some(),
            self.entering.len(),
            self.fault,
            self.control,
            self.faults,
            self.early,
            self.raised,
            self.requested,
            self.reference.wanted.reads,
            self.reference.wanted.writes,
            self.reference.wanted.outputs,
            self.memory.busy()
        )
    }

    /// Receives every message that waits, each by a receive of its own, which no rule revokes.
    pub fn receive_all(&mut self) {
        self.settle();
        for row in 0..self.rule_count {
            self.control(Control::RuleClear(row));
        }
        for pair in self.pairs {
            self.control(Control::PairRead(pair));
        }
        // Posted receives would take what is to be unexpected later.
        for endpoint in 0..ENDPOINTS {
            self.control(Control::EndpointFlush(endpoint));
        }
        for index in 0..8 {
            if !self.reference.regions.contains_key(&index) {
                self.control(Control::RegionSet(index, self.region(index)));
            }
        }
        self.settle();
        while let Some((endpoint, handle)) = self.reference.claims().first().copied() {
            let mut request = self.request(Opcode::Discard);
            request.target = handle;
            if self.rng.random_bool(0.5) {
                request.opcode = Opcode::ReceiveClaimed.code();
                self.give_buffer(&mut request, 3 * u16::from(endpoint), 100);
            }
            self.list = Some((endpoint, request));
            let before = self.reference.claims().len();
            self.settle();
            assert!(self.reference.claims().len() < before, "{handle:x} stays");
        }
        while let Some(message) = self.reference.waiting().first().cloned() {
            let index = 3 * u16::from(message.endpoint);
            let mut request = self.request(Opcode::TaggedReceive);
            request.pair = message.pair;
            request.context = message.context;
            request.match_bits = message.match_bits;
            request.ignore_bits = 0;
            self.give_buffer(&mut request, index, EAGER_MAX as u64);
            self.list = Some((message.endpoint, request));
            let before = self.reference.waiting().len();
            self.settle();
            assert!(
                self.reference.waiting().len() < before,
                "{message:x?} stays"
            );
        }
        assert_eq!(self.bench.get("unexpected_depth"), 0);
        assert_eq!(self.bench.get("posted_depth"), 0);
        assert_eq!(self.buffers, BTreeMap::new(), "buffers not given back");
    }

    /// Sends each living pair as many messages as it has credits: all slots have to be vacant.
    pub fn fill_all_slots(&mut self) {
        self.settle();
        let overflows = self.reference.wanted.seen.overflows;
        for pair in self.pairs {
            let Some(state) = self.reference.pair(pair).filter(|p| p.failed.is_none()) else {
                continue;
            };
            assert_eq!(self.owing[usize::from(pair)], 0, "credits of pair {pair}");
            if pair == self.pair_with_bad_slots() {
                continue;
            }
            for _ in 0..state.credits {
                self.offer_message_of(pair, vec![1, 2, 3]);
                self.settle();
            }
        }
        let seen = &self.reference.wanted.seen;
        assert_eq!(seen.overflows, overflows, "a slot was lost");
        let fitting = self.reference.depths().1;
        let bad = self.pair_with_bad_slots();
        let lives = |pair: &u16| {
            self.reference
                .pair(*pair)
                .is_some_and(|p| p.failed.is_none())
        };
        let some_live = self.pairs.iter().any(|pair| *pair != bad && lives(pair));
        assert_eq!(fitting > 0, some_live, "messages of each pair that lives");
    }

    pub fn take_down(&mut self) {
        for endpoint in 0..ENDPOINTS {
            self.control(Control::EndpointFlush(endpoint));
        }
        for pair in self.pairs {
            if self.reference.pair(pair).is_some() {
                self.control(Control::PairClear(pair));
            }
        }
        self.settle();
        assert_eq!(self.reference.depths(), (0, 0));
        // And up again: nothing of before is left in the pairs.
        for pair in self.pairs {
            self.control(Control::PairSet(pair));
        }
        self.fill_all_slots();
    }

    // ---- peers

    /// Offers a message by a pair, once the one before is taken.
    pub fn offer_message_of(&mut self, pair: u16, payload: Vec<u8>) {
        while self.arrival.is_some() {
            self.cycle();
        }
        let state = self.reference.pair(pair).expect("a pair that is set");
        let message = Arrival {
            pair,
            endpoint: state.endpoint,
            context: self.rng.random_range(0..2),
            match_bits: 1 << self.rng.random_range(0..3),
            immediate: self.rng.random(),
            ready: false,
            put: false,
            asks: None,
            answers: None,
            payload,
        };
        self.owing[usize::from(pair)] += 1;
        let mut words: Vec<u64> = vec![];
        for chunk in message.payload.chunks(8) {
            let mut le = self.rng.next_u64().to_le_bytes();
            le[..chunk.len()].copy_from_slice(chunk);
            words.push(u64::from_le_bytes(le));
        }
        self.payload.extend(words);
        self.arrival = Some((message, state.incarnation));
    }

    /// Offers nothing but ready messages of endpoint 1 that find no receive, one behind the other, and to endpoint 0 receives and their cancels. Returns the
    /// requests that entered, and the most cycles that one of them waited.
    pub fn refuse_for(&mut self, cycles: u64) -> (u32, u64) {
        self.mood = Mood::Quiet;
        let start = self.bench.model.cycle();
        let (mut entered, mut longest, mut since) = (0, 0, start);
        // A receive from a pair that is quiet, then its cancel, and so on.
        let quiet = self.pairs[0];
        let mut posted = None;
        for turn in 0.. {
            let now = self.bench.model.cycle();
            if now - start >= cycles {
                break;
            }
            let pair = self.pairs[1 + 2 * (turn % (PAIRS / 2 - 1))];
            self.ring = [false; ENDPOINTS as usize];
            let credits = self.reference.pair(pair).map_or(0, |pair| pair.credits);
            if self.arrival.is_none() && self.owing[usize::from(pair)] < credits {
                self.offer_message_of(pair, vec![]);
                if let Some((message, _)) = &mut self.arrival {
                    message.ready = true;
                }
            }
            if self.list.is_none() && self.entering.is_empty() {
                entered += 1;
                longest = longest.max(now - since);
                since = now;
                match posted.take() {
                    Some(target) => {
                        let mut request = self.request(Opcode::Cancel);
                        request.target = target;
                        self.list = Some((0, request));
                    }
                    None => {
                        self.post_receive(0, quiet, 0, 8);
                        posted = self.list.as_ref().map(|(_, request)| request.request);
                    }
                }
            }
            self.cycle();
        }
        longest = longest.max(self.bench.model.cycle() - since);
        (entered, longest)
    }

    /// An ordinary message of this context.
    fn offer_message_in_context(&mut self, pair: u16, context: u16, payload: Vec<u8>) {
        self.offer_message_of(pair, payload);
        if let Some((message, _)) = &mut self.arrival {
            message.context = context;
        }
    }

    /// Closes a pair and connects it with so many credits; 0 for as many as fit.
    fn set_anew(&mut self, pair: u16, credits: u16) {
        self.control(Control::PairClear(pair));
        let others = std::mem::replace(&mut self.credits, credits);
        self.control(Control::PairSet(pair));
        self.credits = others;
    }

    /// Posts a receive of context 0 and any match bits.
    fn post_receive(&mut self, endpoint: u8, pair: u16, flags: u8, length: u64) {
        let mut request = self.request(Opcode::TaggedReceive);
        (request.pair, request.flags) = (pair, flags);
        request.ignore_bits = u64::MAX;
        self.give_buffer(&mut request, u16::from(endpoint) * 3, length);
        self.list = Some((endpoint, request));
        while self.list.is_some() || !self.entering.is_empty() {
            self.cycle();
        }
    }

    /// Has a request of any source find a message that is on its way to a slot which can't be written. Then the next message of another pair goes
    /// to the receive, if it is one.
    pub fn find_a_lost_message(&mut self, opcode: Opcode) {
        self.mood = Mood::Quiet;
        let bad = self.pair_with_bad_slots();
        let endpoint = self.endpoint_of(bad);
        self.offer_message_in_context(bad, 0, vec![7; 600]);
        let mut request = self.request(opcode);
        request.flags = FLAG_ANY_SOURCE;
        request.ignore_bits = u64::MAX;
        while self.arrival.is_some() {
            self.cycle();
        }
        if opcode == Opcode::TaggedReceive {
            self.give_buffer(&mut request, 3 * u16::from(endpoint), 64);
        }
        self.list = Some((endpoint, request));
        self.settle();
        let other = self.pairs[BAD_SLOTS - 2];
        self.offer_message_in_context(other, 0, vec![1; 8]);
        self.settle();
        self.set_anew(bad, 0);
    }

    /// A slot can't be written, of which memory tells when everything behind that message that has a place has entered.
    pub fn lose_a_message_with_all_places_taken(&mut self) {
        self.mood = Mood::Quiet;
        let bad = self.pair_with_bad_slots();
        self.memory.held = true;
        self.offer_message_of(bad, vec![7; 9]);
        let mut waits = 0;
        while waits < 100 {
            if self.arrival.is_none() && self.list.is_none() && self.entering.is_empty() {
                let mut request = self.request(Opcode::Cancel);
                request.target = 5;
                self.list = Some((0, request));
                waits = 0;
            }
            waits += 1;
            self.cycle();
        }
        assert!(!self.entering.is_empty(), "a request waits for a place");
        self.memory.held = false;
        self.settle();
        self.set_anew(bad, 0);
    }

    /// Two messages go to slots that can't be written, and behind them one of the same pair, or of another, to its slot. A request finds that one before
    /// memory has told of any: Answer waits for the third while the removals of the others are to come to it.
    pub fn find_a_message_behind_two_lost_ones(&mut self, opcode: Opcode, of_another_pair: bool) {
        self.mood = Mood::Quiet;
        let bad = self.pair_with_bad_slots();
        self.set_anew(bad, 4);
        let third = if of_another_pair {
            self.pairs[BAD_SLOTS - 2]
        } else {
            bad
        };
        assert_eq!(self.endpoint_of(third), self.endpoint_of(bad));
        self.memory.held = true;
        for (pair, context) in [(bad, 1), (bad, 1), (third, 0)] {
            self.offer_message_in_context(pair, context, vec![7; 9]);
        }
        while self.arrival.is_some() {
            self.cycle();
        }
        let mut request = self.request(opcode);
        (request.flags, request.context) = (FLAG_ANY_SOURCE, 0);
        request.ignore_bits = u64::MAX;
        let endpoint = self.endpoint_of(bad);
        if opcode == Opcode::TaggedReceive {
            self.give_buffer(&mut request, 3 * u16::from(endpoint), 64);
        }
        self.list = Some((endpoint, request));
        for _ in 0..1_000 {
            self.cycle();
        }
        assert!(self.entering.is_empty(), "the request has entered");
        self.memory.held = false;
        self.settle();
        self.control(Control::EndpointFlush(endpoint));
        self.receive_all();
    }

    /// A slot can't be written, of which memory tells when a message behind it has gone to another slot, one to the receive of anybody's, a put to its place,
    /// and a ready one was dropped to be refused.
    pub fn lose_a_message_in_front_of_others(&mut self) {
        self.mood = Mood::Quiet;
        let bad = self.pair_with_bad_slots();
        self.set_anew(bad, 4);
        self.ring = [false; ENDPOINTS as usize];
        self.post_receive(self.endpoint_of(bad), bad, FLAG_ANY_SOURCE, 64);
        self.settle();
        self.memory.held = true;
        for (context, ready, put) in [
            (1, false, false),
            (1, false, false),
            (0, false, false),
            (1, true, false),
            (1, false, true),
        ] {
            self.offer_message_of(bad, vec![7; 9]);
            if let Some((message, _)) = &mut self.arrival {
                (message.context, message.ready) = (context, ready);
            }
            self.ring = [false; ENDPOINTS as usize];
            if put {
                self.make_it_a_put(bad, 9);
            }
        }
        for _ in 0..1_000 {
            self.cycle();
        }
        assert!(self.arrival.is_none(), "all have entered");
        self.memory.held = false;
        self.settle();
        self.set_anew(bad, 0);
    }

    /// A message of one endpoint is lost `cycles` after something of a multi-receive of the other endpoint is offered: the receive, with messages there that it takes,
    /// or, if it is posted, a message that ends it. What is offered doesn't wait for the write of what is lost.
    pub fn lose_a_message_beside_a_multi_receive(&mut self, is_posted: bool, cycles: u32) {
        self.mood = Mood::Quiet;
        let bad = self.pair_with_bad_slots();
        let other = self.pairs[BAD_SLOTS - 3];
        let endpoint = self.endpoint_of(other);
        assert_ne!(self.endpoint_of(bad), endpoint);
        self.set_anew(bad, 4);
        self.set_anew(other, 4);
        self.ring = [false; ENDPOINTS as usize];
        let mut multi = self.request(Opcode::TaggedReceive);
        (multi.pair, multi.flags, multi.min_free) = (other, FLAG_MULTI, 60);
        multi.ignore_bits = u64::MAX;
        self.give_buffer(&mut multi, u16::from(endpoint) * 3, 64);
        let mut waits = Some((endpoint, multi));
        if is_posted {
            self.list = waits.take();
            self.settle();
        } else {
            self.offer_message_in_context(other, 0, vec![]);
            self.offer_message_in_context(other, 0, vec![5; 9]);
            self.settle();
        }
        self.memory.held = true;
        self.offer_message_in_context(bad, 1, vec![7; 9]);
        while self.arrival.is_some() {
            self.cycle();
        }
        if is_posted {
            self.offer_message_in_context(other, 0, vec![5; 9]);
        }
        self.list = waits;
        for _ in 0..cycles {
            self.cycle();
        }
        if cycles > HELD_CYCLES {
            assert!(self.arrival.is_none(), "a message waits for memory");
            assert!(self.list.is_none(), "a request waits for memory");
        }
        self.memory.held = false;
        self.settle();
        // What has ended takes no more.
        self.offer_message_in_context(other, 0, vec![6; 9]);
        self.settle();
        // Set anew, a pair has lost nothing.
        self.set_anew(bad, 0);
        self.post_receive(self.endpoint_of(bad), bad, 0, 64);
        self.offer_message_in_context(bad, 0, vec![7; 9]);
        self.settle();
        self.set_anew(other, 0);
    }

    /// A receive finds a message that isn't in its slot yet. Eight messages of another pair come while memory answers no write. Returns after how many cycles each of those entered that
    /// did before.
    pub fn pass_a_receive_that_waits(&mut self, another_waits: bool) -> Vec<u32> {
        self.mood = Mood::Quiet;
        let (slow, other) = (self.pairs[BAD_SLOTS - 3], self.pairs[BAD_SLOTS - 2]);
        self.set_anew(slow, 4);
        self.set_anew(other, 8);
        self.memory.held = true;
        self.offer_message_in_context(slow, 0, vec![5; 9]);
        while self.arrival.is_some() {
            self.cycle();
        }
        self.post_receive(self.endpoint_of(slow), slow, 0, 64);
        let mut probe = self.request(Opcode::Probe);
        (probe.pair, probe.context) = (slow, 1);
        self.list = another_waits.then(|| (self.endpoint_of(slow), probe));
        let entered = self.offer_messages(other, 8);
        let probes = self.reference.wanted.seen.statuses.clone();
        for _ in 0..100 {
            self.cycle();
        }
        let seen = &self.reference.wanted.seen.statuses;
        assert_eq!(*seen, probes, "a request passes the one that waits");
        self.memory.held = false;
        self.settle();
        self.set_anew(slow, 0);
        self.set_anew(other, 0);
        entered
    }

    /// Offers so many messages of a pair, one after the other, while memory answers no write. Returns after how many cycles each of those entered that did before.
    fn offer_messages(&mut self, pair: u16, messages: u8) -> Vec<u32> {
        let mut entered = vec![];
        for n in 0..messages {
            self.offer_message_in_context(pair, 0, vec![n; 9]);
            let mut cycles = 0;
            while self.arrival.is_some() && cycles < 1_000 {
                self.cycle();
                cycles += 1;
            }
            if self.arrival.is_some() {
                break;
            }
            entered.push(cycles);
        }
        entered
    }

    /// `cycles` after a pair has ended, while its receives end one by one, a receive of another endpoint finds a message that isn't in its slot yet. Six messages come while memory
    /// answers no write. Returns after how many cycles each of those entered that did before.
    pub fn walk_beside_a_receive_that_waits(&mut self, cycles: u32) -> Vec<u32> {
        self.mood = Mood::Quiet;
        let (ended, slow, other) = (
            self.pairs[BAD_SLOTS - 4],
            self.pairs[BAD_SLOTS - 3],
            self.pairs[BAD_SLOTS - 2],
        );
        self.set_anew(ended, 4);
        self.set_anew(slow, 4);
        self.set_anew(other, 8);
        for _ in 0..4 {
            self.post_receive(self.endpoint_of(ended), ended, 0, 64);
        }
        self.settle();
        self.memory.held = true;
        self.offer_message_in_context(slow, 0, vec![5; 9]);
        while self.arrival.is_some() {
            self.cycle();
        }
        self.control = Some(Control::PairClear(ended));
        for _ in 0..cycles {
            self.cycle();
        }
        self.post_receive(self.endpoint_of(slow), slow, 0, 64);
        let entered = self.offer_messages(other, 6);
        self.memory.held = false;
        self.settle();
        self.control(Control::PairSet(ended));
        self.set_anew(slow, 0);
        self.set_anew(other, 0);
        entered
    }

    /// Messages and their receives are always on offer, messages first by six. Returns how many messages enter while so many receives do.
    pub fn catch_up(&mut self, receives: u32) -> u32 {
        self.mood = Mood::Quiet;
        let pair = self.pairs[BAD_SLOTS - 3];
        self.set_anew(pair, 8);
        for _ in 0..6 {
            self.offer_message_in_context(pair, 0, vec![]);
            self.settle();
        }
        let (mut posted, mut messages) = (0, 0);
        while posted < receives {
            if self.arrival.is_none() {
                self.offer_message_in_context(pair, 0, vec![]);
                messages += 1;
            }
            if self.list.is_none() {
                let mut request = self.request(Opcode::TaggedReceive);
                request.pair = pair;
                request.ignore_bits = u64::MAX;
                self.give_buffer(&mut request, u16::from(self.endpoint_of(pair)) * 3, 0);
                self.list = Some((self.endpoint_of(pair), request));
                posted += 1;
            }
            self.cycle();
        }
        self.settle();
        self.set_anew(pair, 0);
        messages
    }

    /// Messages for a multi-receive come while memory answers no write. Returns after how many cycles each entered.
    pub fn fill_a_multi_receive_while_memory_is_held(&mut self) -> Vec<u32> {
        self.mood = Mood::Quiet;
        let pair = self.pairs[BAD_SLOTS - 3];
        self.set_anew(pair, 4);
        self.post_receive(self.endpoint_of(pair), pair, FLAG_MULTI, REGION / 4);
        self.settle();
        self.reference.wanted.free = [true; ENDPOINTS as usize];
        self.memory.held = true;
        let mut entered = vec![];
        for n in 0..4 {
            self.offer_message_in_context(pair, 0, vec![n; 9]);
            let mut cycles = 0;
            while self.arrival.is_some() && cycles < 1_000 {
                self.cycle();
                cycles += 1;
            }
            entered.push(cycles);
        }
        self.memory.held = false;
        self.settle();
        self.set_anew(pair, 0);
        entered
    }

    /// A peer that has one credit spends two, and `cycles` later its pair is asked for a message that it hasn't sent: the pair has failed, whenever that is.
    pub fn claim_behind_a_message_without_a_slot(&mut self, cycles: u32) {
        self.mood = Mood::Quiet;
        let pair = self.pairs[BAD_SLOTS - 3];
        self.set_anew(pair, 1);
        self.offer_message_in_context(pair, 0, vec![5; 9]);
        self.settle();
        self.offer_message_in_context(pair, 0, vec![5; 9]);
        while self.arrival.is_some() {
            self.cycle();
        }
        for _ in 0..cycles {
            self.cycle();
        }
        let mut request = self.request(Opcode::Claim);
        (request.pair, request.context) = (pair, 1);
        request.ignore_bits = u64::MAX;
        self.list = Some((self.endpoint_of(pair), request));
        self.settle();
        self.set_anew(pair, 0);
    }

    /// Claims a message of a pair that is connected, if there is one, and closes the pair.
    pub fn close_a_pair_with_a_claim(&mut self) {
        self.mood = Mood::Quiet;
        let lives = |pair: &u16| {
            let state = self.reference.pair(*pair);
            state.is_some_and(|state| state.failed.is_none())
        };
        let bad = self.pair_with_bad_slots();
        let Some(pair) = self
            .pairs
            .into_iter()
            .find(|pair| lives(pair) && *pair != bad)
        else {
            return;
        };
        self.offer_message_of(pair, vec![5; 9]);
        self.settle();
        let mut request = self.request(Opcode::Claim);
        (request.pair, request.ignore_bits) = (pair, u64::MAX);
        for context in 0..2 {
            self.list = Some((self.endpoint_of(pair), ListRequest { context, ..request }));
            self.settle();
            request.request = request.request.wrapping_add(1);
        }
        self.control(Control::PairClear(pair));
        self.control(Control::PairSet(pair));
    }

    /// Posts receives of a pair of endpoint 0 until one waits for room. Returns its handle.
    fn fill_the_list(&mut self, pair: u16) -> u32 {
        loop {
            if let Some(waits) = self.reference.waits(0) {
                return waits;
            }
            self.post_receive(0, pair, FLAG_RESUME, 0);
        }
    }

    /// Fills the list, so that the next receive of endpoint 0 waits for room, and none does yet.
    fn leave_no_room(&mut self, pair: u16) {
        let mut cancel = self.request(Opcode::Cancel);
        cancel.target = self.fill_the_list(pair);
        self.list = Some((0, cancel));
        self.settle();
    }

    /// A ready message without a receive comes right behind a receive that finds the list full, by which the host comes to keep receives back: the
    /// message is queued.
    pub fn queue_behind_a_full_list(&mut self) {
        self.mood = Mood::Quiet;
        let pair = self.pairs[2];
        self.leave_no_room(pair);
        self.post_receive(0, pair, FLAG_RESUME | FLAG_NOTHING_KEPT, 0);
        self.ring = [false; ENDPOINTS as usize];
        self.offer_message_of(pair, vec![]);
        if let Some((message, _)) = &mut self.arrival {
            (message.ready, message.context) = (true, 1);
        }
        self.settle();
        self.control(Control::EndpointFlush(0));
    }

    /// Clears a region that nothing is written to, and then the one to which a message is being written, while memory doesn't answer: the first goes, the
    /// second waits for the write.
    pub fn clear_regions_beside_a_write(&mut self) {
        self.mood = Mood::Quiet;
        let pair = self.pairs[2];
        self.memory.held = true;
        self.post_receive(0, pair, 0, 64);
        self.offer_message_in_context(pair, 0, vec![7; 64]);
        while self.memory.writes().next().is_none() {
            self.cycle();
        }
        self.control(Control::RegionClear(3));
        self.control = Some(Control::RegionClear(0));
        for _ in 0..200 {
            self.cycle();
        }
        assert!(self.control.is_some(), "a region goes under a write");
        self.memory.held = false;
        self.settle();
        for index in [0, 3] {
            self.control(Control::RegionSet(index, self.region(index)));
        }
    }

    /// Closes a pair when a receive that names it has entered and finds the list full: the receive ends with its pair, however soon it is closed.
    pub fn end_behind_a_full_list(&mut self) {
        self.mood = Mood::Quiet;
        let pair = self.pairs[2];
        for cycles in 0..12 {
            self.leave_no_room(pair);
            self.post_receive(0, pair, FLAG_RESUME, 0);
            for _ in 0..cycles {
                self.cycle();
            }
            self.control(Control::PairClear(pair));
            self.settle();
            self.control(Control::PairSet(pair));
        }
    }

    /// Closes an endpoint with 16 receives while a receive of the other one waits for room. It is woken by the end of one of them, and a receive that
    /// enters behind that is posted if the host has said since that it posts again what it keeps.
    pub fn resume_beside_a_walk(&mut self) {
        self.mood = Mood::Quiet;
        let (going, pair) = (self.pairs[5], self.pairs[2]);
        for _ in 0..16 {
            self.post_receive(1, going, 0, 0);
        }
        let waits = self.fill_the_list(pair);
        self.control = Some(Control::EndpointFlush(1));
        let mut posted = 0;
        while self.control.is_some() {
            for flags in [FLAG_RESUME, 0] {
                self.post_receive(0, pair, flags, 0);
                posted += 1;
            }
        }
        // The endpoint is stalled, and its requests wait for each step, but not for the end of the walk.
        assert!(posted > 8, "{posted} requests enter beside a walk");
        assert_ne!(self.reference.waits(0), Some(waits), "16 have gone");
        self.settle();
        self.control(Control::EndpointFlush(0));
    }

    /// Probes right behind a message, of an endpoint of which a receive waits for room: that one is to look at the message first, so the probe is
    /// behind it.
    pub fn probe_behind_a_message(&mut self) {
        self.mood = Mood::Quiet;
        let pair = self.pairs[2];
        self.fill_the_list(pair);
        self.settle();
        let mut probe = self.request(Opcode::Probe);
        (probe.pair, probe.context, probe.ignore_bits) = (pair, 1, u64::MAX);
        self.offer_message_in_context(pair, 1, vec![]);
        for _ in 0..self.rng.random_range(0..8) {
            self.cycle();
        }
        self.list = Some((0, probe));
        self.settle();
        self.control(Control::EndpointFlush(0));
    }

    /// Closes an endpoint of which a receive waits for room, while a message of it, of another context, is on its way to its slot: the receive
    /// hears of that first.
    pub fn flush_behind_a_message(&mut self) {
        self.mood = Mood::Quiet;
        let pair = self.pairs[2];
        self.fill_the_list(pair);
        self.offer_message_in_context(pair, 1, vec![0; 512]);
        while self.arrival.is_some() {
            self.cycle();
        }
        self.control(Control::EndpointFlush(0));
    }

    /// Fails a pair whose receives fill half of the lists, while messages for a multi-receive of the other endpoint come, each of which has to be
    /// alone. Returns how many of these enter until the pair's receives have ended.
    pub fn fail_beside_a_multi_receive(&mut self) -> u32 {
        self.mood = Mood::Quiet;
        let (failing, other) = (self.pairs[0], self.pairs[1]);
        self.post_receive(1, other, FLAG_MULTI, REGION / 4);
        for _ in 0..16 {
            self.post_receive(0, failing, 0, 0);
        }
        self.fault = Some((failing, Status::LinkError.code()));
        let mut entered = 0;
        while self.fault.is_some() {
            if self.arrival.is_none() {
                entered += 1;
                self.offer_message_in_context(other, 0, vec![]);
            }
            self.cycle();
        }
        entered
    }

    fn send_something(&mut self) {
        let pair = self.some_pair();
        let Some(state) = self.reference.pair(pair) else {
            return;
        };
        let owing = self.owing[usize::from(pair)];
        let late = state.failed.is_some();
        if late && self.rng.random_bool(0.9) || owing >= state.credits && !self.overrun {
            return;
        }
        let length = match self.rng.random_range(0..8) {
            0 => 0,
            1 => 1024,
            2 => self.rng.random_range(1..=1024),
            _ => self.rng.random_range(1..=33),
        };
        let mut payload = vec![0; length];
        self.rng.fill(&mut payload[..]);
        if self.putting && self.gets.random_bool(0.3) {
            match self.gets.random() {
                true => self.offer_get_of(pair),
                false => self.offer_answer_of(pair, payload),
            }
            return;
        }
        self.offer_message_of(pair, payload);
        let put = self.putting && self.rng.random_bool(0.4);
        if let Some((message, _)) = &mut self.arrival {
            message.ready = !put && self.rng.random_bool(0.3);
        }
        if put {
            self.make_it_a_put(pair, length as u64);
        }
    }

    /// Offers a get of a peer. What it may read isn't looked at here.
    pub fn offer_get_of(&mut self, pair: u16) {
        self.offer_message_of(pair, vec![]);
        let again = self.gets.random_bool(0.3);
        let asked = Asked {
            pair,
            number: self.gets.random(),
            key: self.gets.random(),
            offset: self.gets.random(),
            length: self.gets.random_range(0..=EAGER_MAX as u16),
            again,
        };
        if let Some((message, _)) = &mut self.arrival {
            (message.match_bits, message.immediate) = (asked.key, asked.offset);
            message.asks = Some(asked);
        }
        if again {
            // It holds nothing that it didn't hold before.
            self.owing[usize::from(pair)] -= 1;
        }
    }

    /// Offers the answer of a get of the pair, whose buffer is as long, or that the peer refuses.
    pub fn offer_answer_of(&mut self, pair: u16, payload: Vec<u8>) {
        let refused = self.gets.random_bool(0.1);
        let payload = if refused { vec![] } else { payload };
        let length = payload.len() as u64;
        let endpoint = self.endpoint_of(pair);
        let mut buffer = ListRequest::default();
        let index = 3 * u16::from(endpoint) + self.gets.random_range(0..3);
        self.give_buffer(&mut buffer, index, length);
        let lent = self.lent.remove(&buffer.request);
        if let Some(address) = lent {
            self.got.insert((pair, self.next_get), address);
        }
        match self.gets.random_range(0..20) {
            0 => buffer.key ^= 1 << self.gets.random_range(0..32),
            1 => buffer.address = BUFFERS - 1,
            _ => {}
        }
        let awaited = Awaited {
            number: self.next_get,
            domain: domain(endpoint),
            buffer: Segment {
                key: buffer.key,
                address: buffer.address,
                length,
            },
            refused,
        };
        self.next_get += 1;
        self.offer_message_of(pair, payload);
        // It holds no envelope.
        self.owing[usize::from(pair)] -= 1;
        if let Some((message, _)) = &mut self.arrival {
            message.match_bits = awaited.buffer.address;
            message.immediate = u64::from(awaited.buffer.key) | u64::from(awaited.domain) << 32;
            message.answers = Some(awaited);
        }
    }

    /// Offers a get and an answer of a pair that has failed, and then a message of another one.
    pub fn get_when_a_pair_has_failed(&mut self) {
        self.mood = Mood::Quiet;
        let (pair, other) = (self.pairs[0], self.pairs[1]);
        self.fault = Some((pair, Status::LinkError.code()));
        self.settle();
        self.offer_get_of(pair);
        self.offer_message_of(other, vec![2; 40]);
        self.offer_answer_of(pair, vec![1; 100]);
        self.offer_message_of(other, vec![3; 40]);
        self.settle();
        self.control(Control::PairClear(pair));
        self.control(Control::PairSet(pair));
    }

    /// Ends a pair in each way right behind gets and long answers, of which little is taken.
    pub fn end_behind_gets(&mut self) {
        self.mood = Mood::Quiet;
        let pair = self.pairs[2];
        for clears in [false, true, false, true] {
            self.settle();
            self.ready_rate = 0.02;
            for _ in 0..2 {
                self.offer_get_of(pair);
                self.offer_answer_of(pair, vec![4; EAGER_MAX]);
            }
            while self.arrival.is_some() {
                self.ready_rate = 1.0;
                self.cycle();
            }
            self.ready_rate = 0.02;
            if clears {
                self.control(Control::PairClear(pair));
            } else {
                self.fault = Some((pair, Status::Flushed.code()));
                while self.fault.is_some() {
                    self.cycle();
                }
                self.control(Control::PairClear(pair));
            }
            self.ready_rate = 1.0;
            self.control(Control::PairSet(pair));
        }
    }

    /// A get has ended: its buffer is the host's again.
    fn get_ends(&mut self, pair: u16, number: u32) {
        if let Some(address) = self.got.remove(&(pair, number)) {
            self.buffers.remove(&address);
        }
    }

    /// The message that is offered is a put, as a rule by the pair's own key.
    fn make_it_a_put(&mut self, pair: u16, length: u64) {
        let own = self.place(pair) as u16;
        let other = (own + 1) % PAIRS as u16;
        let mut key = remote_key(own, self.grant_tag(own));
        let end = REGION - UNGRANTED;
        if self.put_offset + length > end {
            self.put_offset = UNGRANTED;
        }
        let mut offset = self.put_offset;
        self.put_offset += length;
        match self.rng.random_range(0..24) {
            0 => key ^= 1 << self.rng.random_range(0..64),
            1 => key = remote_key(other, self.grant_tag(other)),
            2 => key = remote_key(own + PAIRS as u16, self.grant_tag(own + PAIRS as u16)),
            3 => offset = UNGRANTED - 1,
            4 => offset = end - length + 1,
            5 => offset = 0_u64.wrapping_sub(length),
            6 => offset = end - length,
            _ => {}
        }
        if let Some((message, _)) = &mut self.arrival {
            (message.put, message.match_bits, message.immediate) = (true, key, offset);
        }
    }

    // ---- hosts

    fn request(&mut self, opcode: Opcode) -> ListRequest {
        self.next_request = self.next_request.wrapping_add(0x10_0001);
        ListRequest {
            opcode: opcode.code(),
            request: self.next_request,
            ..ListRequest::default()
        }
    }

    /// Gives the request a buffer of region `index` that no other request has.
    fn give_buffer(&mut self, request: &mut ListRequest, index: u16, length: u64) {
        let region = self.reference.regions.get(&index).copied();
        let region = region.unwrap_or_else(|| self.region(index));
        request.key = region.tag << KEY_INDEX_BITS | u32::from(index);
        // No buffer: an address that nothing may touch.
        request.address = self.rng.next_u64() | 1 << 63;
        request.length = 0;
        for _ in 0..20 {
            let offset = self
                .rng
                .random_range(0..=region.length - length.min(region.length));
            let address = region.base + offset;
            let below = self.buffers.range(..address + length).next_back();
            if length > 0 && below.is_none_or(|(start, size)| start + size <= address) {
                request.address = address;
                request.length = length;
                self.buffers.insert(address, length);
                self.lent.insert(request.request, address);
                return;
            }
        }
    }

    fn post_something(&mut self) {
        let endpoint = self.rng.random_range(0..ENDPOINTS);
        let weights: [u32; 5] = match self.mood {
            Mood::Races => [10, 10, 0, 0, 0],
            Mood::Hoard => [10, 1, 1, 1, 1],
            _ => [10, 2, 2, 4, 4],
        };
        let pick = WeightedIndex::new(weights).expect("some weight is positive");
        let opcodes = [
            Opcode::TaggedReceive,
            Opcode::Cancel,
            Opcode::Probe,
            Opcode::Claim,
            Opcode::ReceiveClaimed,
        ];
        let opcode = opcodes[pick.sample(&mut self.rng)];
        let mut request = self.request(opcode);
        if opcode == Opcode::Cancel {
            // A race is about what was posted just now.
            let of = match self.mood {
                Mood::Races => 2,
                _ => self.recent.len() + 1,
            };
            let at = self.rng.random_range(0..of);
            let target = self.recent.get(at).copied().unwrap_or((endpoint, 5));
            request.target = target.1;
            // Now and then somebody else's.
            let own = self.rng.random_bool(0.9);
            self.list = Some((if own { target.0 } else { endpoint }, request));
            return;
        }
        if opcode == Opcode::ReceiveClaimed {
            self.use_a_claim(endpoint, request);
            return;
        }
        if self.rng.random_bool(0.3) {
            request.flags = FLAG_ANY_SOURCE;
        }
        if self.rng.random_bool(0.2) {
            request.flags |= FLAG_RESUME;
        }
        if self.rng.random_bool(0.3) {
            request.flags |= FLAG_NOTHING_KEPT;
        }
        request.pair = match self.rng.random_range(0..40) {
            0 => 0x8000,
            1 => self.pair_count + self.some_pair(),
            2..6 => self.some_pair(),
            _ => {
                let place = 2 * self.rng.random_range(0..PAIRS / 2);
                self.pairs[usize::from(endpoint) + place]
            }
        };
        if opcode == Opcode::Claim && self.rng.random_bool(0.3) {
            request.flags |= FLAG_PAST_RULES;
        }
        request.context = self.rng.random_range(0..2);
        request.match_bits = 1 << self.rng.random_range(0..3);
        request.ignore_bits = [0, 0, 1, 7, u64::MAX][self.rng.random_range(0..5)];
        if opcode == Opcode::TaggedReceive {
            self.give_some_buffer(&mut request, endpoint);
            if self.rng.random_bool(0.2) {
                request.flags |= FLAG_MULTI;
                request.min_free = [0, 1, 16, 500, u32::MAX][self.rng.random_range(0..5)];
            }
            self.spoil(&mut request);
            self.recent.push_front((endpoint, request.request));
            self.recent.truncate(12);
        }
        self.list = Some((endpoint, request));
    }

    fn give_some_buffer(&mut self, request: &mut ListRequest, endpoint: u8) {
        let length = match self.rng.random_range(0..32) {
            0..3 => 0,
            3 => 70_000,
            4..12 => 1024,
            12..16 => self.rng.random_range(1..=1100),
            _ => self.rng.random_range(1..=40),
        };
        let index = 3 * u16::from(endpoint) + self.rng.random_range(0..3);
        self.give_buffer(request, index, length);
    }

    /// Receives or discards a claimed message: of this endpoint, or now and then of the other, or by a handle that names nothing.
    fn use_a_claim(&mut self, endpoint: u8, mut request: ListRequest) {
        let live = self.reference.claims();
        let (of, handle) = match self.rng.random_range(0..8) {
            0 => {
                // Whatever the handle says: a slot that there is, with any number, or nothing that there is.
                let pair = self.some_pair();
                let slot = slot_number(pair, self.rng.random_range(0..4));
                let number = [0, 1, self.rng.random_range(0..200)][self.rng.random_range(0..3)];
                (
                    endpoint,
                    [claim_handle(number, slot), self.rng.random()][self.rng.random_range(0..2)],
                )
            }
            1..3 if !self.claims.is_empty() => {
                self.claims[self.rng.random_range(0..self.claims.len())]
            }
            _ if !live.is_empty() => live[self.rng.random_range(0..live.len())],
            _ => return,
        };
        let endpoint = match self.rng.random_bool(0.9) {
            true => of,
            false => endpoint,
        };
        request.target = handle;
        if self.rng.random_bool(0.4) {
            request.opcode = Opcode::Discard.code();
        } else {
            self.give_some_buffer(&mut request, endpoint);
            self.spoil(&mut request);
        }
        // What finds a message by its match bits isn't looked at.
        request.pair = self.rng.random();
        request.context = self.rng.random();
        request.match_bits = self.rng.random();
        self.list = Some((endpoint, request));
    }

    /// Now and then a buffer that isn't the endpoint's to use.
    fn spoil(&mut self, request: &mut ListRequest) {
        let what = self.rng.random_range(0..80);
        if request.length == 0 || what > 6 {
            return;
        }
        self.lent.remove(&request.request);
        self.buffers.remove(&request.address);
        match what {
            0 => request.key ^= 1 << self.rng.random_range(0..32),
            1 => request.address = BUFFERS - 1,
            2 => request.length = REGION + 1,
            3 => request.length = u64::MAX - request.address + 1,
            4 => request.address = u64::MAX,
            5 => request.key = (self.tag & 0xf_ffff) << KEY_INDEX_BITS | 6,
            _ => request.key = (self.tag & 0xf_ffff) << KEY_INDEX_BITS | 7,
        }
        let given = self.buffers.get(&request.address);
        assert_eq!(given, None, "a spoilt buffer isn't one in use");
    }

    fn govern(&mut self) {
        let pair = self.some_pair();
        let asked = |faults: &VecDeque<(u16, u8)>| faults.iter().any(|f| f.0 == pair);
        let busy = asked(&self.faults) || self.fault.is_some_and(|f| f.0 == pair);
        match self.reference.pair(pair) {
            None if !busy => self.control = Some(Control::PairSet(pair)),
            None => {}
            Some(state) => match self.rng.random_range(0..16) {
                0..3 if self.fault.is_none() => {
                    let statuses = [Status::LinkError, Status::LinkError, Status::Flushed];
                    let status = statuses[self.rng.random_range(0..3)];
                    self.fault = Some((pair, status.code()));
                }
                0..8 if !busy && (state.failed.is_some() || self.rng.random_bool(0.1)) => {
                    if self.putting {
                        self.settle();
                    }
                    self.control = Some(Control::PairClear(pair));
                }
                8 if self.rng.random_bool(0.3) => {
                    let endpoint = self.rng.random_range(0..ENDPOINTS);
                    self.control = Some(Control::EndpointFlush(endpoint));
                }
                9..12 => self.change_a_region(),
                12..14 => self.change_a_rule(),
                14 if self.putting => self.change_a_grant(),
                _ => {
                    let beyond = self.rng.random_bool(0.1);
                    let pair = if beyond { pair + self.pair_count } else { pair };
                    self.control = Some(Control::PairRead(pair));
                }
            },
        }
    }

    /// A region comes or goes, or is changed. What the Gate is asked later goes by the new ones, also for what was posted before: a region goes while writes to it
    /// are under way, and comes when nothing is.
    fn change_a_region(&mut self) {
        if self.blind {
            return;
        }
        let cleared = (0..6).find(|i| !self.reference.regions.contains_key(i));
        let index = match cleared {
            Some(index) if self.rng.random_bool(0.8) => index,
            _ => self.rng.random_range(0..6),
        };
        if self.reference.regions.contains_key(&index) {
            self.ask_all();
            self.control(Control::RegionClear(index));
        } else {
            self.settle();
            self.tag = self.tag.wrapping_mul(5).wrapping_add(1);
            self.control(Control::RegionSet(index, self.region(index)));
        }
    }

    /// The grants of a pair are revoked, all or one, and made anew. A grant that comes while a put is under way may be too late for it, or not.
    fn change_a_grant(&mut self) {
        if self.blind {
            return;
        }
        let row = self.rng.random_range(0..2 * PAIRS as u16);
        self.ask_all();
        match self.rng.random_range(0..4) {
            0 => self.control(Control::SenderRevoke(self.pairs[usize::from(row) % PAIRS])),
            1 => self.control(Control::GrantClear(row)),
            _ => {
                self.settle();
                for row in 0..2 * PAIRS as u16 {
                    self.control(Control::GrantSet(row, self.grant(row)));
                }
            }
        }
    }

    /// A rule comes or goes. It covers a few of the messages that there are.
    fn change_a_rule(&mut self) {
        if self.blind {
            return;
        }
        let row = self.rng.random_range(0..self.rule_count);
        if self.rng.random_bool(0.4) {
            self.control = Some(Control::RuleClear(row));
            return;
        }
        let members = self
            .pairs
            .map(|pair| u128::from(self.rng.random::<bool>()) << pair);
        let endpoint = self.rng.random_range(0..ENDPOINTS);
        let rule = self.rule_of(endpoint, members.into_iter().sum());
        self.control = Some(Control::RuleSet(row, rule));
    }

    /// A rule of these pairs of an endpoint.
    fn rule_of(&mut self, endpoint: u8, members: u128) -> RuleSetup {
        RuleSetup {
            endpoint,
            context: self.rng.random_range(0..2),
            match_bits: 1 << self.rng.random_range(0..3),
            mask: [0, 1, 7, 7, u64::MAX][self.rng.random_range(0..5)],
            pairs_low: members as u64,
            pairs_high: (members >> 64) as u64,
            ..RuleSetup::default()
        }
    }

    /// Has a message and requests of a context come before and after a rule for it, after its end, after that of the pair and of the endpoint.
    pub fn revoke_a_context(&mut self) {
        self.mood = Mood::Quiet;
        let (pair, other) = (self.pairs[2], self.pairs[4]);
        let rule = RuleSetup {
            context: 1,
            mask: 0,
            ..self.rule_of(0, 1 << pair)
        };
        let row = self.rng.random_range(0..self.rule_count);
        for end in [
            Control::RuleClear(row),
            Control::PairClear(pair),
            Control::EndpointFlush(0),
        ] {
            self.try_context(pair);
            self.control(Control::RuleSet(row, rule));
            self.try_context(pair);
            self.try_context(other);
            self.control(end);
            if matches!(end, Control::PairClear(_)) {
                self.control(Control::PairSet(pair));
            }
            self.try_context(pair);
            self.settle();
            self.control(Control::RuleClear(row));
        }
    }

    /// A message of context 1, and whatever looks for one: from anybody, from the pair, by nobody's pair, with a buffer of nobody, and past the rules.
    fn try_context(&mut self, pair: u16) {
        self.offer_message_in_context(pair, 1, vec![3; 9]);
        self.settle();
        for (opcode, flags) in [
            (Opcode::Probe, FLAG_ANY_SOURCE),
            (Opcode::Claim, 0),
            (Opcode::Claim, FLAG_PAST_RULES),
            (Opcode::TaggedReceive, 0),
        ] {
            let mut request = self.request(opcode);
            (request.pair, request.flags, request.context) = (pair, flags, 1);
            request.match_bits = 1 << self.rng.random_range(0..3);
            self.list = Some((0, request));
            self.settle();
        }
        let mut unsound = self.request(Opcode::TaggedReceive);
        (unsound.pair, unsound.context) = (0x8000, 1);
        self.list = Some((0, unsound));
        self.settle();
        let mut unsound = self.request(Opcode::TaggedReceive);
        (unsound.pair, unsound.context) = (pair, 1);
        (unsound.address, unsound.length) = (BUFFERS - 1, 8);
        unsound.key = (self.tag & 0xf_ffff) << KEY_INDEX_BITS;
        self.list = Some((0, unsound));
        self.settle();
    }

    /// Whether peers put from now on.
    pub fn put_or_not(&mut self, puts: bool) {
        self.putting = puts;
    }

    // ---- the cycle

    pub fn cycle(&mut self) {
        if self.mood != Mood::Quiet {
            let (sends, posts, governs) = match self.mood {
                Mood::Flood => (0.3, 0.002, 0.0003),
                Mood::Hoard => (0.003, 0.3, 0.001),
                Mood::Send => (0.05, 0.0, 0.0),
                _ => (self.send_rate, self.post_rate, 0.002),
            };
            if self.arrival.is_none() && self.rng.random_bool(sends) {
                self.send_something();
            }
            if self.list.is_none() && self.rng.random_bool(posts) {
                self.post_something();
            }
            if self.control.is_none() && self.rng.random_bool(governs) {
                self.govern();
            }
            if self.rng.random_bool(0.001) {
                // Hundreds of cycles go into each: rates are such that either side can be ahead.
                self.send_rate = rate(&mut self.rng) / 30.0;
                self.post_rate = rate(&mut self.rng) / 30.0;
                self.ready_rate = rate(&mut self.rng);
            }
        }
        if self.fault.is_none() && self.rng.random_bool(0.05) {
            self.fault = self.faults.pop_front();
        }
        self.drive();
        self.bench.eval();
        let moved = match self.blind {
            true => self.follow_blindly(),
            false => self.observe(),
        };
        if self.blind {
            self.bench.model.step();
        } else {
            self.bench.step();
        }
        let waiting = self.arrival.is_some()
            || self.list.is_some()
            || !self.entering.is_empty()
            || self.fault.is_some()
            || self.control.is_some()
            || !self.reference.wanted.settled();
        self.idle = if moved || !waiting { 0 } else { self.idle + 1 };
        assert!(
            self.idle < PATIENCE,
            "nothing moves any more: {}",
            self.left()
        );
    }

    fn drive(&mut self) {
        let bench = &mut self.bench;
        let rng = &mut self.rng;
        self.memory.drive(bench, rng);
        bench.set("arrival_valid", self.arrival.is_some());
        if let Some((message, _)) = &self.arrival {
            let (asks, answers) = (message.asks.as_ref(), message.answers.as_ref());
            let asked = asks.map(|asks| asks.number);
            let number = asked.or(answers.map(|answers| answers.number)).unwrap_or(0);
            let fields = [
                (message.pair.into(), 16),
                (message.endpoint.into(), 8),
                (message.context.into(), 16),
                (message.match_bits, 64),
                (message.immediate, 64),
                (
                    asks.map_or(message.payload.len() as u64, |asks| asks.length.into()),
                    16,
                ),
                (message.ready.into(), 1),
                ((!message.is_message()).into(), 1),
                (asks.is_some().into(), 1),
                (asks.is_some_and(|asks| asks.again).into(), 1),
                (answers.is_some().into(), 1),
                (answers.is_some_and(|answers| answers.refused).into(), 1),
                (number.into(), 32),
            ];
            bench.set_wide("arrival", &pack(&fields));
        }
        self.payload_offered |= !self.payload.is_empty() && rng.random_bool(self.ready_rate);
        bench.set("payload_valid", self.payload_offered);
        if let Some(word) = self.payload.front().filter(|_| self.payload_offered) {
            bench.set("payload", *word);
        }
        bench.set(
            "lists_pending",
            u64::from(self.ring[0]) | u64::from(self.ring[1]) << 1,
        );
        bench.set("lists_valid", self.list.is_some());
        if let Some((endpoint, request)) = &self.list {
            let row = OpcodeRow::find(WorkRing::List, request.opcode).expect("it has a row");
            let mut fields = vec![
                ((*endpoint).into(), 8),
                (domain(*endpoint).into(), 8),
                (row.kind.code().into(), 8),
                ((row.buffer != BufferUse::None).into(), 1),
                (row.pair.into(), 1),
                ((row.target == TargetUse::Claim).into(), 1),
            ];
            fields.extend(request.to_words().map(|word| (word, 64)));
            bench.set_wide("lists", &pack(&fields));
        }
        let free = &self.reference.wanted.free;
        bench.set(
            "completion_free",
            u64::from(free[0]) | u64::from(free[1]) << 1,
        );
        bench.set("fault_valid", self.fault.is_some());
        if let Some((pair, status)) = self.fault {
            bench.set_wide("fault", &pack(&[(pair.into(), 16), (status.into(), 8)]));
        }
        bench.set("control_valid", self.control.is_some());
        if let Some(control) = self.control {
            let words = self.words(control);
            self.bench.set_wide("control", &words);
        }
        for pin in [
            "complete_ready",
            "sink_update_ready",
            "raise_ready",
            "fault_request_ready",
        ] {
            let ready = self.rng.random_bool(self.ready_rate);
            self.bench.set(pin, ready);
        }
        for pin in ["asked_ready", "answered_ready"] {
            let ready = self.gets.random_bool(self.ready_rate);
            self.bench.set(pin, ready);
        }
        if self.elsewhere.is_none() && self.putting && self.gets.random_bool(0.01) {
            let pair = self.pairs[self.gets.random_range(0..PAIRS)];
            let ends = match self.control {
                Some(Control::PairSet(ends) | Control::PairClear(ends)) => ends == pair,
                _ => false,
            };
            self.elsewhere = Some(pair).filter(|_| !ends);
        }
        self.bench
            .set("refused_elsewhere_valid", self.elsewhere.is_some());
        let elsewhere = self.elsewhere.unwrap_or(self.gets.random());
        self.bench.set("refused_elsewhere", elsewhere);
    }

    /// What a pair gets.
    fn setup(&self, pair: u16) -> PairSetup {
        let credits = match self.credits {
            // Where there are places for it, several units a pair.
            0 if self.has_many_places => 1 + pair % 8 * 7,
            0 => 1 + pair % 8,
            credits => credits,
        };
        PairSetup {
            remote_mac: 0x1234_5678_9abc,
            remote_pair: 0xffff,
            cookie: 0xffff_ffff,
            endpoint: self.endpoint_of(pair),
            remote_credits: 0xff,
            local_credits: credits as u8,
            slots: SLOTS + SLOTS_OF_PAIR * self.place(pair) as u64,
            ..PairSetup::default()
        }
    }

    fn words(&self, control: Control) -> Vec<u64> {
        let (operation, index, data) = match control {
            Control::PairSet(pair) => {
                let words = self.setup(pair).to_words();
                (Operation::PairSet, pair, words.to_vec())
            }
            Control::PairClear(pair) => (Operation::PairClear, pair, vec![]),
            Control::PairRead(pair) => (Operation::PairRead, pair, vec![]),
            Control::EndpointFlush(endpoint) => (Operation::EndpointFlush, endpoint.into(), vec![]),
            Control::RegionSet(index, setup) => {
                (Operation::RegionSet, index, setup.to_words().to_vec())
            }
            Control::RegionClear(index) => (Operation::RegionClear, index, vec![]),
            Control::RuleSet(row, rule) => (Operation::RuleSet, row, rule.to_words().to_vec()),
            Control::RuleClear(row) => (Operation::RuleClear, row, vec![]),
            Control::GrantSet(row, grant) => (Operation::GrantSet, row, grant.to_words().to_vec()),
            Control::GrantClear(row) => {
                let fence = FenceSetup {
                    covers: COVER_REGION | COVER_PAIR,
                    region: PUT_REGION,
                    pair: self.grant(row).holder,
                    ..FenceSetup::default()
                };
                (Operation::GrantClear, row, fence.to_words().to_vec())
            }
            Control::SenderRevoke(pair) => (Operation::SenderRevoke, pair, vec![]),
        };
        let mut fields = vec![(operation.code().into(), 8), (index.into(), 16)];
        fields.extend(data.into_iter().map(|word| (word, 64)));
        pack(&fields)
    }

    fn taken(&self, stream: &str) -> bool {
        self.bench.is(&format!("{stream}_valid")) && self.bench.is(&format!("{stream}_ready"))
    }

    /// Compares what came out, then tells the reference what went in. Returns whether anything did.
    fn observe(&mut self) -> bool {
        let mut moved = false;
        for access in self.memory.observe(&self.bench, &mut self.rng) {
            self.reference.wanted.asked(access);
            moved = true;
        }
        moved |= self.bench.is("write_done_valid")
            || self.taken("read_data")
            || self.taken("write_data");
        for (count, pin) in self.counted.iter_mut().zip([
            "count_expected",
            "count_unexpected",
            "count_invalid_requests",
        ]) {
            *count += u32::from(self.bench.is(pin));
        }
        if self.bench.is("count_rule_drops") {
            let pair = self.bench.get("ruled_pair") as u16;
            *self.revoked.entry(pair).or_default() += 1;
        }
        if self.taken("payload") {
            self.payload.pop_front();
            self.payload_offered = false;
            moved = true;
        }
        self.free_or_not();
        self.hear_lists();
        if self.taken("arrival") {
            let (message, incarnation) = self.arrival.take().expect("it was offered");
            // A request that was taken may be on its way to Lists.
            let mut pending = self.ring;
            for (endpoint, _) in &self.entering {
                pending[usize::from(*endpoint)] = true;
            }
            let message = Entered::Message(message, incarnation, pending);
            self.entered.push_back(message);
            self.ring_or_not();
            moved = true;
        }
        if self.bench.is("request_enters") {
            let (endpoint, request) = self.entering.pop_front().expect("one was taken");
            self.entered.push_back(Entered::Request(endpoint, request));
            moved = true;
        }
        if self.bench.is("request_again") {
            self.entered.push_back(Entered::Again);
        }
        if self.taken("lists") {
            self.entering.extend(self.list.take());
            moved = true;
        }
        self.follow();
        self.ends();
        moved |= self.outputs();
        moved
    }

    /// What is asked of Lists, and what they reply.
    fn hear_lists(&mut self) {
        if self.bench.is("command_valid") {
            let command = Command::from_words(&self.bench.get_words("command"));
            let command = command.expect("a command");
            if command.is_step() {
                self.entered.push_back(Entered::Step(None));
            } else if command.operation == Match::Arrive {
                self.arrives.push_back(command);
            } else if command.operation == Match::Remove {
                let lost = Entered::Lost(command.pair, command.slot);
                self.entered.push_back(lost);
            }
            self.asked.push_back(command);
        }
        if !self.bench.is("reply_valid") {
            return;
        }
        let reply = Reply::from_bits(self.bench.get("reply"));
        let command = self.asked.pop_front().expect("a reply answers a command");
        if command.is_step() {
            let of_posted = command.operation != Match::TakeUnexpectedOfPair;
            let request = self.posted.get(&reply.index).copied();
            let step = Step {
                command,
                found: reply.found,
                request: request.filter(|_| reply.found && of_posted),
                more: reply.more,
            };
            let unknown = |entered: &&mut Entered| matches!(entered, Entered::Step(None));
            let entered = self.entered.iter_mut().find(unknown);
            *entered.expect("it has entered") = Entered::Step(Some(step));
        } else if command.operation == Match::Post && !reply.found && !reply.full {
            self.posted.insert(reply.index, command.request);
        }
    }

    /// The reference does what has entered, in order, as far as it is known.
    fn follow(&mut self) {
        loop {
            match self.entered.front() {
                None | Some(Entered::Step(None)) => return,
                Some(Entered::Message(message, ..))
                    if self.arrives.is_empty() && !self.reference.asks_nothing(message) =>
                {
                    return;
                }
                Some(_) => assert_eq!(self.early, [], "an output without a cause"),
            }
            match self.entered.pop_front().expect("there is one") {
                Entered::Message(message, incarnation, pending) => {
                    if let Some(pair) = self.reference.pair(message.pair) {
                        assert_eq!(
                            pair.incarnation, incarnation,
                            "{message:x?} is of another time"
                        );
                    }
                    self.reference.wanted.pending = pending;
                    if !self.reference.asks_nothing(&message) {
                        let command = self.arrives.pop_front().expect("looked at above");
                        assert_eq!(command.pair, message.pair, "{command:x?}");
                        let slot = command.append.then_some(command.slot);
                        self.reference.wanted.slot = slot;
                    }
                    let dropped = self.reference.drops(message.pair);
                    self.reference.arrive(&message);
                    if let Some(answers) = message.answers.filter(|_| dropped) {
                        self.get_ends(message.pair, answers.number);
                    }
                }
                Entered::Request(endpoint, request) => {
                    self.reference.list(endpoint, domain(endpoint), &request);
                }
                Entered::Lost(pair, slot) => self.reference.slot_fails(pair, slot),
                Entered::Again => self.reference.look_again(),
                Entered::Rule(row, rule) => self.reference.rule_set(row, rule),
                Entered::Step(step) => {
                    let step = step.expect("looked at above");
                    self.reference.walk(step, self.fault, self.control.as_ref());
                }
            }
        }
    }

    /// Whether completions will be free for what enters now.
    fn free_or_not(&mut self) {
        if self.taken("arrival") || self.bench.is("request_enters") {
            self.reference.wanted.free = std::array::from_fn(|_| self.rng.random_bool(0.9));
        }
    }

    /// Whether the list rings say that they have more, from now on.
    fn ring_or_not(&mut self) {
        self.ring = std::array::from_fn(|_| self.rng.random_bool(0.3));
    }

    /// Faults and control requests that are over.
    fn ends(&mut self) {
        if self.taken("fault") {
            let (pair, status) = self.fault.take().expect("it was offered");
            if self.blind {
                self.reference.wanted.fail(pair, status);
            }
            assert!(!self.reference.walks(), "all its receives have ended");
            let [_, answers] = self.reference.owes_of_gets(pair);
            assert!(
                !answers || self.blind,
                "an answer is on its way to a buffer of {pair}"
            );
        }
        if self.bench.is("tables_change") {
            self.changes();
        }
        if self.bench.is("delivery_has_done")
            && let Some(Control::PairSet(pair)) = self.control
        {
            let setup = self.setup(pair);
            self.reference.pair_set_in_delivery(pair, &setup);
        }
        let done = self.taken("control");
        if !done {
            return;
        }
        let control = self.control.take().expect("it was offered");
        if let Control::PairSet(pair) | Control::PairClear(pair) = control {
            let left = self.reference.wanted.faults.iter().any(|f| f.0 == pair);
            assert!(!left, "a fault of pair {pair} outlives its connection");
            let owes = self.reference.owes_of_gets(pair);
            assert!(
                owes == [false; 2] || self.blind,
                "a get of {pair} outlives its connection"
            );
        }
        match control {
            Control::PairSet(pair) => {
                self.owing[usize::from(pair)] = 0;
                let setup = self.setup(pair);
                self.reference.pair_set(pair, &setup);
            }
            Control::PairClear(pair) if self.blind => {
                self.reference.wanted.pairs[usize::from(pair)] = None;
            }
            Control::PairClear(pair) => {
                assert!(!self.reference.walks(), "all that names the pair has ended");
                self.reference.pair_cleared(pair);
            }
            Control::PairRead(_) if self.blind => {}
            Control::PairRead(pair) => {
                let result = self.bench.get("control_result");
                let PairReport { refused, .. } = PairReport::from_words(&[result]);
                let report = PairReport {
                    refused,
                    ..PairReport::default()
                };
                assert_eq!([result], report.to_words(), "only this is told here");
                let now = self.bench.model.cycle();
                let elsewhere = self.counted_elsewhere.iter();
                let late = elsewhere.filter(|(at, of)| *of == pair && at + 16 > now);
                let at_least = self.reference.refused_at_least(pair);
                let at_least = at_least.saturating_sub(late.count() as u32);
                let all = at_least..=self.reference.refused(pair);
                assert!(
                    all.contains(&refused),
                    "accesses refused to {pair}: {refused}, not {all:?}"
                );
                self.reference.wanted.seen.refusals_read += u32::from(refused > 0);
            }
            Control::EndpointFlush(_) => {
                assert!(!self.reference.walks(), "all its receives have ended");
            }
            // The tables have changed before; what a region that has gone allowed has ended.
            Control::RegionSet(index, _) | Control::RegionClear(index) => {
                let base = BUFFERS + REGION * u64::from(index);
                let answered = self.memory.answered;
                for (number, access) in &self.before_change {
                    let inside = (base..base + REGION).contains(&access.address);
                    assert!(
                        !inside || *number < answered,
                        "{access:x?} of a region that goes"
                    );
                    let beside = *number >= answered;
                    self.waited[usize::from(beside)] += u32::from(inside || beside);
                }
            }
            Control::GrantSet(..) | Control::GrantClear(_) | Control::SenderRevoke(_) => {}
            // It enters the order behind what has entered.
            Control::RuleSet(row, rule) => self.entered.push_back(Entered::Rule(row, Some(rule))),
            Control::RuleClear(row) => self.entered.push_back(Entered::Rule(row, None)),
        }
    }

    /// The tables of the regions change.
    fn changes(&mut self) {
        self.before_change = self.memory.writes().collect();
        match self.control {
            Some(Control::RegionSet(index, setup)) => {
                self.reference.region_set(index, Some(setup));
            }
            Some(Control::RegionClear(index)) => self.reference.region_set(index, None),
            Some(Control::GrantSet(row, grant)) => self.reference.grant_set(row, Some(grant)),
            Some(Control::GrantClear(row)) => self.reference.grant_set(row, None),
            Some(Control::SenderRevoke(pair)) => self.reference.revoke(pair),
            _ => {}
        }
    }

    fn outputs(&mut self) -> bool {
        let mut moved = false;
        if self.taken("complete") {
            let words = self.bench.get_wide::<9>("complete");
            let fields = unpack(&words, [8, 64, 64, 64, 64, 64, 64, 64, 64]);
            let entry = Completion::from_words(&std::array::from_fn(|k| fields[k + 1]));
            let endpoint = fields[0] as u8;
            moved = true;
            self.early.push_back(Output::Complete { endpoint, entry });
        }
        if self.taken("sink_update") {
            let update = [self.bench.get("sink_update")];
            let [pair, accepted, freed, refused] = unpack(&update, [16, 1, 1, 1]);
            let pair = pair as u16;
            let (accepted, freed, refused) = (accepted == 1, freed == 1, refused == 1);
            moved = true;
            self.early.push_back(Output::Update(Update {
                pair,
                accepted,
                freed,
                refused,
            }));
        }
        if self.taken("asked") {
            let words = self.bench.get_wide::<3>("asked");
            let [pair, key, offset, length, number] = unpack(&words, [16, 64, 64, 16, 32]);
            moved = true;
            self.early.push_back(Output::Asked(Asked {
                pair: pair as u16,
                number: number as u32,
                key,
                offset,
                length: length as u16,
                again: false,
            }));
        }
        if self.taken("answered") {
            let [pair, number, status] = unpack(&[self.bench.get("answered")], [16, 32, 8]);
            moved = true;
            self.early.push_back(Output::Answered(Answered {
                pair: pair as u16,
                number: number as u32,
                status: Status::from_code(status as u8).expect("a status"),
            }));
        }
        if self.taken("refused_elsewhere")
            && let Some(pair) = self.elsewhere.take()
        {
            self.reference.refuse(pair);
            let now = self.bench.model.cycle();
            self.counted_elsewhere.push_front((now, pair));
            self.counted_elsewhere.truncate(16);
        }
        while let Some(output) = self.early.front() {
            let wanted = &mut self.reference.wanted;
            let Some((owed, duty)) = wanted.owed(output) else {
                break;
            };
            // That a get has come before is of no use to whoever answers it.
            let told = match owed.clone() {
                Output::Asked(asked) => Output::Asked(Asked {
                    again: false,
                    ..asked
                }),
                owed => owed,
            };
            assert_eq!(self.early.pop_front(), Some(told));
            assert!(wanted.read >= duty.reads, "{owed:x?} before its reads");
            wanted.answer(self.memory.answered);
            assert!(!wanted.is_early(&duty), "{owed:x?} before its writes");
            if let Some((address, bytes)) = duty.bytes {
                assert_eq!(self.memory.bytes(address, bytes.len()), bytes, "{owed:x?}");
            }
            match owed {
                Output::Complete { endpoint, entry } => self.completed(endpoint, &entry),
                Output::Update(Update {
                    pair, freed: true, ..
                }) => {
                    let owing = &mut self.owing[usize::from(pair)];
                    assert!(*owing > 0, "pair {pair} gets back more than it has spent");
                    *owing -= 1;
                }
                Output::Answered(answered) => self.get_ends(answered.pair, answered.number),
                _ => {}
            }
            moved = true;
        }
        assert!(self.early.is_empty(), "nothing causes {:x?}", self.early);

        if self.bench.is("reserve_valid") {
            let endpoint = self.bench.get("reserve") as u8;
            assert_eq!(self.reference.wanted.reserves.pop_front(), Some(endpoint));
        }
        if self.bench.is("unreserve_valid") {
            let endpoint = self.bench.get("unreserve") as u8;
            assert_eq!(self.reference.wanted.releases.pop_front(), Some(endpoint));
        }
        if self.taken("raise") {
            let words = self.bench.get_wide::<2>("raise");
            let [endpoint, cause, pair, _info] = unpack(&words, [8, 8, 16, 64]);
            self.raised.push((endpoint as u8, cause as u8, pair as u16));
            moved = true;
        }
        if self.taken("fault_request") {
            let [pair, status] = unpack(&[self.bench.get("fault_request")], [16, 8]);
            self.requested.push((pair as u16, status as u8));
            moved = true;
        }
        // What Lists reply to a step in front of their cause may come later.
        let known = self.entered.is_empty();
        let wanted = &mut self.reference.wanted;
        self.raised
            .retain(|event| !take(&mut wanted.events, event, known));
        let faults = &mut self.faults;
        self.requested.retain(|fault| {
            let owed = take(&mut wanted.faults, fault, known);
            faults.extend(owed.then_some(*fault));
            !owed
        });
        moved
    }

    /// The host has seen a completion.
    fn completed(&mut self, endpoint: u8, entry: &Completion) {
        if entry.kind == CompletionKind::Receive.code() && entry.flags & COMPLETION_MORE == 0 {
            let buffer = self.lent.remove(&entry.request);
            buffer.inspect(|address| {
                self.buffers.remove(address);
            });
        }
        if entry.kind == CompletionKind::Claim.code() && entry.status == Status::Success.code() {
            self.claims.push_front((endpoint, entry.handle));
            self.claims.truncate(20);
        }
    }

    /// Keeps the traffic going without comparing anything.
    fn follow_blindly(&mut self) -> bool {
        self.memory.observe(&self.bench, &mut self.rng);
        self.free_or_not();
        if self.taken("payload") {
            self.payload.pop_front();
            self.payload_offered = false;
        }
        if self.taken("arrival") {
            self.arrival = None;
        }
        if self.taken("arrival") {
            self.ring_or_not();
        }
        if self.taken("lists") {
            self.list = None;
        }
        self.ends();
        if self.taken("complete") {
            self.buffers.clear();
            self.lent.clear();
        }
        if self.taken("sink_update") {
            let [pair, _, freed] = unpack(&[self.bench.get("sink_update")], [16, 1, 1]);
            let owing = &mut self.owing[pair as usize];
            *owing = owing.saturating_sub(freed as u16);
        }
        self.bench.model.got_error().is_ok()
    }
}

/// Takes one of what is owed, if it is owed, as it has to be when all is `known` that has entered. A message that has found no slot is told of before an
/// older one whose slot is still being written.
fn take<T: PartialEq + std::fmt::Debug>(owed: &mut VecDeque<T>, one: &T, known: bool) -> bool {
    let at = owed.iter().position(|other| other == one);
    assert!(at.is_some() || !known, "nothing causes {one:?}: {owed:?}");
    at.is_some_and(|at| owed.remove(at).is_some())
}

/// Protection domain of an endpoint.
fn domain(endpoint: u8) -> u8 {
    endpoint + 1
}
