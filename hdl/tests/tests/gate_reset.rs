//! The reset of the gates by register, on the whole datapath: in the middle of traffic, with a memory and a wire that take their time, and
//! a host that has forgotten what it had posted.
//!
//! Endpoint 0 and endpoint 1 send to each other. Their frames leave the card and come back by a mirror, or turn round inside.

use std::cell::Cell;
use std::collections::VecDeque;

use abi::completion::{COMPLETION_BYTES, Completion};
use abi::control::{
    CardSetup, Counter, EndpointSetup, KEY_INDEX_BITS, MatchSetup, Operation, PairSetup,
    RIGHT_LOCAL_READ, RIGHT_LOCAL_WRITE, RING_COMPLETION, RING_EVENT, RING_LIST, RING_SEND,
    RegionSetup, RingSetup, ring_index,
};
use abi::limits::EAGER_MAX;
use abi::register::{
    CONTROL, CONTROL_RESET, CONTROL_RUN, EVENT_HEAD, LIST_TAIL, MAILBOX_REQUEST, SEND_TAIL, STATUS,
    STATUS_READY, endpoint_page,
};
use abi::request::{ListRequest, Opcode, REQUEST_BYTES, SendRequest};
use abi::status::Status;
use hdl::host::WIRE_PATIENCE;
use hdl_tests::axi::Memory;
use hdl_tests::broken::breaks;
use hdl_tests::fields::{Steady, set_control};
use hdl_tests::{Bench, for_seeds, rate};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

const MAC: u64 = 0x0605_0403_0201;
const BASE: u64 = 0x10_0000;
const KEY: u32 = 0xabc << KEY_INDEX_BITS | 3;
/// log2 of the entries of the work rings; the completion queue has twice as many.
const LOG2: u8 = 5;
const CREDITS: u8 = 4;
/// Log2 of the run of descriptors that a pair has.
const SENDS_LOG2: u8 = 3;
const POSTS: u16 = 30;
/// Cycles in which a memory and a wire that move at all are done with anything.
const LONG: u64 = 60_000;

/// Where an endpoint's rings, each at a multiple of its size, and its pair's slots are, and everybody's buffers.
const RINGS: usize = 0x4000;
const LIST: usize = 0x800;
const COMPLETIONS: usize = 0x1000;
const EVENTS: usize = 0x2000;
const SLOTS: usize = 0x2200;
const DATA: usize = 0x7200;

/// Words of a frame: data and `tkeep`.
type Frame = Vec<(u64, u64)>;

struct Card {
    bench: Bench,
    rng: ChaCha8Rng,
    memory: Memory,
    wire_takes: f64,
    wire_stopped: bool,
    wire_gives: f64,
    steady: Steady,
    leaving: Frame,
    /// What the mirror has to give back, and all that it was given.
    mirror: VecDeque<Frame>,
    old: Vec<Frame>,
    given: usize,
    offering: bool,
    /// The frame that is coming in began before the blocks were reset.
    is_rest: bool,
    /// Frames that came in since, whole and cut.
    whole: u64,
    cut: u64,
    /// Nothing may leave the card.
    silent: bool,
    /// A word is offered to the wire, which hasn't taken it.
    stands: bool,
    transferred: bool,
    answer: Option<u64>,
    control_done: Option<u64>,
    resets: u64,
    cycle: u64,
}

impl Card {
    fn new(rng: &mut ChaCha8Rng) -> Self {
        let bench = Bench::open("datapath_tiny");
        let mut memory = Memory::random(rng);
        memory.base = BASE;
        Card {
            bench,
            memory,
            wire_takes: rate(rng),
            wire_stopped: false,
            wire_gives: rate(rng),
            rng: rng.clone(),
            steady: Steady::default(),
            leaving: vec![],
            mirror: VecDeque::new(),
            old: vec![],
            given: 0,
            offering: false,
            is_rest: false,
            whole: 0,
            cut: 0,
            silent: false,
            stands: false,
            transferred: false,
            answer: None,
            control_done: None,
            resets: 0,
            cycle: 0,
        }
    }

    /// One cycle.
    fn tick(&mut self) {
        let (bench, rng) = (&mut self.bench, &mut self.rng);
        self.memory.drive_read(bench, rng);
        self.memory.drive_write(bench, rng);
        let takes = !self.wire_stopped && rng.random_bool(self.wire_takes);
        bench.set("m_axis_tready", takes);
        self.offering |= !self.mirror.is_empty() && rng.random_bool(self.wire_gives);
        bench.set("s_axis_tvalid", self.offering);
        if let Some(frame) = self.mirror.front() {
            let (data, keep) = frame[self.given];
            bench.set("s_axis_tdata", data);
            bench.set("s_axis_tkeep", keep);
            bench.set("s_axis_tlast", self.given + 1 == frame.len());
        }
        bench.eval();

        // In a reset, beats without a strobe are what remains of writes.
        self.memory.quiet = !bench.is("gates_ready");
        self.memory.observe_read(bench, rng);
        self.memory.observe_write(bench, rng);
        let valid = bench.is("m_axis_tvalid");
        assert!(
            valid || self.leaving.is_empty(),
            "tvalid went low in a frame, cycle {}",
            self.cycle
        );
        let begins = valid && self.leaving.is_empty() && !self.stands;
        assert!(
            !begins || !self.silent,
            "a frame begins in cycle {}",
            self.cycle
        );
        self.stands = valid && !takes;
        let word = ["m_axis_tdata", "m_axis_tkeep", "m_axis_tlast"].map(|pin| bench.get(pin));
        if self.steady.watch("m_axis", valid, takes, &word).is_some() {
            self.leaving.push((word[0], word[1]));
            if word[2] == 1 {
                let frame = std::mem::take(&mut self.leaving);
                self.mirror.push_back(frame.clone());
                self.old.push(frame);
            }
        }
        if self.offering && bench.is("s_axis_tready") {
            self.offering = false;
            let frame = &self.mirror[0];
            self.given += 1;
            if self.given == frame.len() {
                if !self.is_rest {
                    self.whole += u64::from(frame.iter().all(|word| word.1 == 0xff));
                    self.cut += u64::from(frame.iter().any(|word| word.1 != 0xff));
                }
                (self.given, self.is_rest) = (0, false);
                self.mirror.pop_front();
            }
        }
        if bench.is("gates_reset") {
            assert!(self.memory.is_idle(), "reset with something on the bus");
            self.resets += 1;
            (self.whole, self.cut) = (0, 0);
            self.is_rest = self.given > 0;
        }
        let moves = |bench: &Bench, channel: &str| {
            bench.is(&format!("s_axil_{channel}valid"))
                && bench.is(&format!("s_axil_{channel}ready"))
        };
        self.transferred = moves(bench, "aw") || moves(bench, "ar");
        self.answer = None;
        if moves(bench, "b") {
            assert_eq!(bench.get("s_axil_bresp"), 0);
            self.answer = Some(0);
        }
        if moves(bench, "r") {
            self.answer = Some(bench.get("s_axil_rdata"));
        }
        let done = bench.is("control_valid") && bench.is("control_ready");
        self.control_done = done.then(|| bench.get("control_result"));
        bench.step();
        if done {
            bench.set("control_valid", false);
        }
        self.memory.step();
        self.cycle += 1;
    }

    fn ticks(&mut self, count: u64) {
        (0..count).for_each(|_| self.tick());
    }

    fn until(&mut self, what: &str, mut is: impl FnMut(&mut Self) -> bool) {
        for _ in 0..LONG {
            if is(self) {
                return;
            }
            self.tick();
        }
        panic!("waited in vain until {what}: {:?}", self.completions());
    }

    fn access(&mut self, offset: u32, write: Option<u32>) -> u32 {
        let channels: &[&str] = if write.is_some() {
            &["aw", "w"]
        } else {
            &["ar"]
        };
        let address = if write.is_some() { "aw" } else { "ar" };
        self.bench.set(&format!("s_axil_{address}addr"), offset);
        self.bench.set("s_axil_wdata", write.unwrap_or(0));
        self.bench.set("s_axil_wstrb", 15_u64);
        self.bench.set("s_axil_bready", true);
        self.bench.set("s_axil_rready", true);
        for (valid, end) in [(true, "taken"), (false, "answered")] {
            for channel in channels {
                self.bench.set(&format!("s_axil_{channel}valid"), valid);
            }
            self.tick();
            while !(if valid {
                self.transferred
            } else {
                self.answer.is_some()
            }) {
                self.tick();
                assert!(self.cycle < 1 << 24, "an access isn't {end}");
            }
        }
        self.answer.expect("it was awaited") as u32
    }

    fn read(&mut self, offset: u32) -> u32 {
        self.access(offset, None)
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.access(offset, Some(value));
    }

    fn start_control(&mut self, operation: Operation, index: u16, data: &[u64]) {
        set_control(&mut self.bench, operation, index, data);
        self.bench.set("control_valid", true);
        self.control_done = None;
    }

    fn control(&mut self, operation: Operation, index: u16, data: &[u64]) -> u64 {
        self.start_control(operation, index, data);
        let mut result = None;
        self.until("a control request is done", |card| {
            result = result.or(card.control_done);
            result.is_some()
        });
        result.expect("it was awaited")
    }

    fn count(&mut self, counter: Counter) -> u64 {
        self.control(Operation::CounterRead, counter.code().into(), &[])
    }

    fn put(&mut self, offset: usize, words: &[u64]) {
        for (k, word) in words.iter().enumerate() {
            self.memory.bytes[offset + 8 * k..][..8].copy_from_slice(&word.to_le_bytes());
        }
    }

    /// What the firmware does: everything that two endpoints need to send to each other.
    fn open(&mut self, epoch: u16) {
        let turns_round = self.rng.random_bool(0.3);
        let card = CardSetup {
            mac: MAC,
            ..CardSetup::default()
        };
        let seed = MatchSetup {
            seed_low: self.rng.random(),
            seed_high: self.rng.random(),
        };
        self.control(Operation::CardSet, 0, &card.to_words());
        self.control(Operation::MatchSet, 0, &seed.to_words());
        let region = RegionSetup {
            base: BASE,
            length: self.memory.bytes.len() as u64,
            tag: KEY >> KEY_INDEX_BITS,
            rights: RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE,
            ..RegionSetup::default()
        };
        self.control(Operation::RegionSet, 3, &region.to_words());
        let cookie = self.rng.random();
        for endpoint in 0..2_u8 {
            let rings = RINGS * usize::from(endpoint);
            for (ring, at, log2) in [
                (RING_SEND, 0, LOG2),
                (RING_LIST, LIST, LOG2),
                (RING_COMPLETION, COMPLETIONS, LOG2 + 1),
                (RING_EVENT, EVENTS, 4),
            ] {
                let setup = RingSetup {
                    base: BASE + (rings + at) as u64,
                    log2,
                    ..RingSetup::default()
                };
                let index = ring_index(endpoint, ring);
                self.control(Operation::RingSet, index, &setup.to_words());
            }
            let setup = EndpointSetup {
                completion_owner: endpoint,
                epoch,
                ..EndpointSetup::default()
            };
            self.control(Operation::EndpointSet, endpoint.into(), &setup.to_words());
            let other = u16::from(1 - endpoint);
            let pair = PairSetup {
                remote_mac: if turns_round { MAC } else { MAC ^ 1 },
                remote_endpoint: other,
                remote_pair: other,
                remote_epoch: epoch,
                cookie,
                endpoint,
                epoch,
                remote_credits: CREDITS,
                local_credits: CREDITS,
                slots: BASE + (RINGS * usize::from(endpoint) + SLOTS) as u64,
                sends_first: u16::from(endpoint) << SENDS_LOG2,
                sends_log2: SENDS_LOG2,
                timeout_log2: 24,
                ..PairSetup::default()
            };
            self.control(Operation::PairSet, endpoint.into(), &pair.to_words());
        }
    }

    /// Posts messages and receives for them from entry 0 on, and rings.
    fn post(&mut self, count: u16) {
        for endpoint in 0..2_usize {
            for k in 0..count {
                let send = SendRequest {
                    opcode: Opcode::TaggedSend.code(),
                    pair: endpoint as u16,
                    request: u32::from(k),
                    key: KEY,
                    address: BASE + (DATA + self.rng.random_range(0..16)) as u64,
                    length: self.rng.random_range(0..EAGER_MAX as u64),
                    ..SendRequest::default()
                };
                let receive = ListRequest {
                    opcode: Opcode::TaggedReceive.code(),
                    pair: endpoint as u16,
                    request: 0x100 + u32::from(k),
                    key: KEY,
                    address: BASE + (DATA + 0x800 + self.rng.random_range(0..16)) as u64,
                    length: EAGER_MAX as u64,
                    ..ListRequest::default()
                };
                let at = RINGS * endpoint + REQUEST_BYTES * usize::from(k);
                self.put(at, &send.to_words());
                self.put(LIST + at, &receive.to_words());
            }
        }
        self.ring(count);
    }

    /// Rings the doorbells of the work rings.
    fn ring(&mut self, tail: u16) {
        for endpoint in 0..2 {
            for offset in [LIST_TAIL, SEND_TAIL] {
                self.write(endpoint_page(endpoint) + offset, tail.into());
            }
        }
    }

    fn completions(&self) -> Vec<Completion> {
        let entry = |at: usize| {
            let word = |k: usize| {
                let bytes = &self.memory.bytes[at + 8 * k..][..8];
                u64::from_le_bytes(bytes.try_into().expect("eight"))
            };
            Completion::from_words(&std::array::from_fn(word))
        };
        let places = (0..2).flat_map(|e| {
            (0..2 << LOG2).map(move |k| RINGS * e + COMPLETIONS + COMPLETION_BYTES * k)
        });
        places.map(entry).filter(|entry| entry.phase == 1).collect()
    }

    /// What is asked of the bus beside each access: constants, as the page of the card says.
    fn assert_attributes(&self) {
        let says = |pin: &str| ["ar", "aw"].map(|c| self.bench.get(&format!("m_axi_{c}{pin}")));
        assert_eq!(
            ["prot", "cache", "lock", "qos"].map(says),
            [[0b010; 2], [0b0010; 2], [0; 2], [0; 2]]
        );
    }

    /// A message each way, and every completion.
    fn assert_works(&mut self, epoch: u16) {
        for endpoint in 0..2 {
            let at = RINGS * endpoint + COMPLETIONS;
            self.memory.bytes[at..EVENTS - COMPLETIONS + at].fill(0);
        }
        self.open(epoch);
        self.post(1);
        self.until("what is posted anew is done", |card| {
            card.completions().len() == 4
        });
        for completion in self.completions() {
            assert_eq!(completion.status, Status::Success.code());
        }
    }
}

/// Resets in the middle of traffic, and what may not follow.
fn resets(rng: &mut ChaCha8Rng) {
    let mut card = Card::new(rng);
    card.until("the gates are ready", |card| card.bench.is("gates_ready"));
    for episode in 1..4_u16 {
        card.open(2 * episode);
        card.post(POSTS);
        let traffic = card.rng.random_range(0..3000);
        card.ticks(traffic);

        // A control request may be under way, and memory or wire may have stopped.
        let controls = card.rng.random_bool(0.5);
        if controls {
            let operations = [
                Operation::PairSet,
                Operation::PairClear,
                Operation::EndpointFlush,
                Operation::EndpointStop,
                Operation::PairFail,
            ];
            let operation = operations[card.rng.random_range(0..operations.len())];
            card.start_control(operation, 0, &[0; 5]);
        }
        card.wire_stopped = card.rng.random_bool(0.3);
        card.memory.stopped = card.rng.random_bool(0.2);
        let (resets, asked) = (card.resets, card.cycle);
        let run = card.rng.random_range(0..2) * CONTROL_RUN;
        if card.rng.random() {
            card.write(CONTROL, run | CONTROL_RESET);
        } else {
            card.write(CONTROL, run);
            card.bench.set("gates_reset_request", true);
            card.tick();
            card.bench.set("gates_reset_request", false);
            card.bench.eval();
        }
        assert!(!card.bench.is("gates_ready"), "from the next cycle on");
        card.write(MAILBOX_REQUEST, u32::from(episode));
        if card.memory.stopped && !card.memory.is_idle() {
            // Without an answer of memory there is no end.
            card.ticks(2 * WIRE_PATIENCE);
            card.ring(POSTS + 1);
            let status = card.read(STATUS) & STATUS_READY;
            let control = card.read(CONTROL) & (CONTROL_RESET | CONTROL_RUN);
            assert_eq!((status, control), (0, CONTROL_RESET | run));
            assert_eq!(card.resets, resets);
        }
        card.memory.stopped = false;
        card.until("the gates are ready again", |card| {
            if card.rng.random_bool(0.01) {
                card.ring(POSTS + 1);
            }
            let ready = card.read(STATUS) & STATUS_READY != 0;
            let resetting = card.read(CONTROL) & CONTROL_RESET != 0;
            assert!(!(ready && resetting));
            ready
        });
        assert_eq!(card.resets, resets + 1);
        card.assert_attributes();
        assert_eq!(
            card.read(CONTROL),
            run,
            "the host's registers live through it"
        );
        assert_eq!(card.read(MAILBOX_REQUEST), u32::from(episode));
        assert!(!card.bench.is("control_valid"), "every request is answered");
        if card.wire_stopped {
            assert!(card.cycle - asked < 4 * WIRE_PATIENCE, "a wire holds it up");
        }

        // Old doorbells, and old frames: nothing comes of either.
        let (before, bursts) = (card.memory.bytes.clone(), card.memory.bursts);
        card.silent = true;
        card.wire_stopped = false;
        card.ring(POSTS + 1);
        card.write(endpoint_page(0) + EVENT_HEAD, 0);
        let replayed: Vec<Frame> = card.old.iter().rev().take(20).cloned().collect();
        card.mirror.extend(replayed);
        card.until("the old frames are back", |card| {
            card.mirror.is_empty() && card.leaving.is_empty()
        });
        card.ticks(200);
        assert_eq!(card.memory.bursts, bursts, "memory was accessed");
        assert!(card.memory.bytes == before, "memory has changed");
        assert_eq!(card.count(Counter::PairErrors), card.whole);
        assert_eq!(card.count(Counter::LengthErrors), card.cut);
        let arrived = [
            Counter::FramesReceived,
            Counter::CrcErrors,
            Counter::TypeErrors,
        ];
        assert_eq!(arrived.map(|counter| card.count(counter)), [0; 3]);
        card.silent = false;
        card.old.clear();

        card.assert_works(2 * episode + 1);
        card.write(CONTROL, CONTROL_RESET);
        card.until("it is done once more", |card| {
            card.resets == resets + 2 && card.bench.is("gates_ready") && card.mirror.is_empty()
        });
        card.old.clear();
    }
}

#[test]
fn a_reset_of_the_gates_leaves_nothing_of_before_behind() {
    for_seeds(16, resets);
}

#[test]
fn each_broken_contract_is_noticed() {
    breaks("datapath_tiny", 4, resets);
}

/// As it broke: what was offered stayed so for an edge in reset.
#[test]
fn nothing_is_offered_or_taken_in_reset_of_the_card() {
    const OUTPUTS: [&str; 12] = [
        "m_axi_arvalid",
        "m_axi_rready",
        "m_axi_awvalid",
        "m_axi_wvalid",
        "m_axi_bready",
        "m_axis_tvalid",
        "s_axis_tready",
        "s_axil_awready",
        "s_axil_wready",
        "s_axil_arready",
        "s_axil_rvalid",
        "s_axil_bvalid",
    ];
    // Cycles in which each is high outside reset.
    let seen = Cell::new([0; OUTPUTS.len()]);
    for_seeds(6, |rng| {
        let mut card = Card::new(rng);
        card.until("the gates are ready", |card| card.bench.is("gates_ready"));
        card.open(1);
        card.post(POSTS);
        // An access of the registers that lasts, and others after it.
        card.bench.set("s_axil_araddr", STATUS);
        card.bench.set("s_axil_awaddr", STATUS);
        let mut high = seen.get();
        for cycle in 0..4000_u64 {
            let (reads, writes) = (cycle / 16 % 2 == 0, cycle % 64 < 8);
            card.bench.set("s_axil_arvalid", reads);
            card.bench.set("s_axil_rready", cycle % 8 == 7);
            card.bench.set("s_axil_awvalid", writes);
            card.bench.set("s_axil_wvalid", writes);
            card.tick();
            card.bench.eval();
            for (count, pin) in high.iter_mut().zip(OUTPUTS) {
                *count += card.bench.get(pin);
            }
            card.bench.set("reset", true);
            card.bench.eval();
            for pin in OUTPUTS {
                assert!(!card.bench.is(pin), "{pin} in reset");
            }
            card.bench.set("reset", false);
            card.assert_attributes();
        }
        seen.set(high);
    });
    let seen = seen.get();
    assert!(
        seen.iter().all(|count| *count > 0),
        "{seen:?} of {OUTPUTS:?}"
    );
}

#[test]
fn a_second_request_while_tables_are_cleared_clears_them_again() {
    for_seeds(1, |rng| {
        let mut card = Card::new(rng);
        card.until("the gates are ready", |card| card.bench.is("gates_ready"));
        card.write(CONTROL, CONTROL_RESET);
        card.until("the blocks are reset", |card| card.resets == 1);
        card.bench.set("gates_reset_request", true);
        card.tick();
        card.bench.set("gates_reset_request", false);
        card.until("they are reset again", |card| card.resets == 2);
        card.until("the gates are ready", |card| card.bench.is("gates_ready"));
        card.assert_works(1);
    });
}
