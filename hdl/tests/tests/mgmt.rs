//! The management subsystem, Verilated, with a small program on the real core; the fan-out of
//! control requests; the counters.

use abi::control::{
    Counter, Operation, PAIR_COUNTER_BITS, PairCounter, RefusalReason, pair_counter_of_index,
};
use abi::mgmt::{
    CONTROL_BUSY, CONTROL_DATA, CONTROL_RESULT, CONTROL_START, EVENT, EVENT_TAKE, EVENTS_IN,
    EVENTS_LOST, FRAME_IN, FRAME_OUT, FRAME_SEND, FRAME_TAKE, FRAME_WORDS, FRAMES_LOST,
    GATES_RESET, INTERRUPT_CONTROL, INTERRUPT_ENABLE, INTERRUPT_EVENT, INTERRUPT_FRAME_IN,
    INTERRUPT_FRAME_OUT, INTERRUPT_GATES_READY, INTERRUPT_MAILBOX, INTERRUPT_PENDING, LOG, MAC,
    MAILBOX_COMMAND, MAILBOX_RESULT, MEMORY_BASE, MEMORY_BYTES, PERSISTENT_BASE, PERSISTENT_BYTES,
    RANDOM, REGISTER_BASE, SIZE_WORDS, SIZES, TIME, TIMER_COMPARE, TIMER_ENABLE, control_start,
    event_word,
};
use abi::register::MAILBOX_WORDS;
use hdl::config::TINY;
use hdl::mgmt::FOUR;
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::{pack, unpack};
use hdl_tests::monitor::{Do, EXTERNAL_PENDING, TIMER_PENDING, monitor};
use hdl_tests::{Bench, for_seeds, rate};
use model::Rate;
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// A subsystem that runs the monitor, and the host's end of its mailbox.
struct Host {
    bench: Bench,
    request: u64,
    log: Vec<u8>,
}

impl Host {
    fn boot(seed: u64, mac: u64) -> Self {
        Self::boot_at(seed, mac, Rate::Times(1))
    }

    /// The same with a processor that is as fast as it is said.
    fn boot_at(seed: u64, mac: u64, rate: Rate) -> Self {
        let mut bench = Bench::open_cold("mgmt_subsystem");
        bench.set_processor_clock(rate);
        bench.set("strap_seed", seed);
        bench.set("strap_mac", mac);
        bench.set("reset", true);
        bench.step();
        bench.step();
        bench.set("reset", false);
        let mut host = Host {
            bench,
            request: 0,
            log: vec![],
        };
        host.load(&monitor(b'm'));
        host.run();
        host
    }

    fn step(&mut self) {
        self.bench.step();
        if self.bench.is("log_valid") {
            self.log.push(self.bench.get("log_data") as u8);
        }
    }

    fn load(&mut self, words: &[u32]) {
        for (word, address) in words.iter().zip((MEMORY_BASE..).step_by(4)) {
            self.load_word(address, *word);
        }
    }

    fn load_word(&mut self, address: u32, word: u32) {
        self.bench.set("loader_valid", true);
        let loaded = u64::from(address) | u64::from(word) << 32;
        self.bench.set("loader", loaded);
        for _ in 0..100 {
            self.bench.eval();
            let taken = self.bench.is("loader_ready");
            self.step();
            if taken {
                self.bench.set("loader_valid", false);
                return;
            }
        }
        panic!("the memory takes no word");
    }

    fn run(&mut self) {
        self.bench.set("run", true);
        for _ in 0..1000 {
            self.step();
            if self.bench.get("firmware_start") != 0 {
                return;
            }
        }
        panic!("the program doesn't say that it is up");
    }

    fn write_mailbox(&mut self, address: usize, value: u64) {
        self.bench.set("mailbox_address", address as u64);
        self.bench.set("mailbox_write_data", value);
        self.bench.set("mailbox_write", true);
        self.step();
        self.bench.set("mailbox_write", false);
    }

    fn read_mailbox(&mut self, address: usize) -> u64 {
        self.bench.set("mailbox_address", address as u64);
        self.step();
        self.bench.get("mailbox_read_data")
    }

    fn begin(&mut self, what: Do, address: u32, value: u64) {
        self.write_mailbox(0, what as u64);
        self.write_mailbox(1, address.into());
        self.write_mailbox(2, value);
        self.request += 1;
        self.bench.set("mailbox_request", self.request);
    }

    /// The answer: what was loaded, or `None` if the access was refused.
    fn end(&mut self) -> Option<u64> {
        for _ in 0..1000 {
            self.step();
            if self.bench.get("mailbox_answer") == self.request {
                let value = self.read_mailbox(32);
                return (self.read_mailbox(33) == 0).then_some(value);
            }
        }
        panic!("command {} isn't answered", self.request);
    }

    fn ask(&mut self, what: Do, address: u32, value: u64) -> Option<u64> {
        self.begin(what, address, value);
        self.end()
    }

    fn peek(&mut self, offset: u32) -> u64 {
        let value = self.ask(Do::LoadWord, REGISTER_BASE + offset, 0);
        value.expect("registers can be read")
    }

    fn poke(&mut self, offset: u32, value: u64) {
        let done = self.ask(Do::StoreWord, REGISTER_BASE + offset, value);
        done.expect("registers can be written");
    }
}

#[test]
fn the_processor_starts_says_that_it_is_up_and_logs() {
    let mut host = Host::boot(1, 0);
    host.step();
    assert_eq!(host.log, b"m");
    host.poke(LOG, u64::from(b'!'));
    assert_eq!(host.log, b"m!");
}

#[test]
fn memory_keeps_words_and_bytes_up_to_its_end() {
    // Its last bytes, and those where one memory ends and the other begins.
    for_seeds(4, |rng| {
        let mut host = Host::boot(1, 0);
        let start = match rng.random() {
            true => MEMORY_BYTES as usize - 64,
            false => (1 << 16) - 32,
        };
        let mut bytes = [0_u8; 64];
        for _ in 0..300 {
            let at = rng.random_range(0..64);
            let value = rng.random::<u32>();
            let (byte, word) = (
                MEMORY_BASE + (start + at) as u32,
                MEMORY_BASE + (start + at / 4 * 4) as u32,
            );
            let whole = at / 4 * 4..at / 4 * 4 + 4;
            match rng.random_range(0..4) {
                0 => {
                    host.ask(Do::StoreWord, word, value.into()).expect("memory");
                    bytes[whole].copy_from_slice(&value.to_le_bytes());
                }
                1 => {
                    host.ask(Do::StoreByte, byte, value.into()).expect("memory");
                    bytes[at] = value as u8;
                }
                2 => {
                    let found = host.ask(Do::LoadByte, byte, 0);
                    assert_eq!(found, Some(bytes[at].into()));
                }
                _ => {
                    let found = host.ask(Do::LoadWord, word, 0).map(|word| word as u32);
                    let expected: [u8; 4] = bytes[whole].try_into().expect("four bytes");
                    assert_eq!(found, Some(u32::from_le_bytes(expected)));
                }
            }
        }
    });
}

#[test]
fn what_was_loaded_is_in_memory_and_nothing_else() {
    let mut host = Host::boot(1, 0);
    for (word, address) in monitor(b'm').into_iter().zip((MEMORY_BASE..).step_by(4)) {
        let found = host.ask(Do::LoadWord, address, 0);
        assert_eq!(found, Some(word.into()), "at {address:#x}");
    }
}

#[test]
fn accesses_that_nothing_answers_are_refused() {
    let mut host = Host::boot(1, 0);
    for address in [
        0,
        MEMORY_BASE - 4,
        MEMORY_BASE + MEMORY_BYTES,
        MEMORY_BASE + (1 << 17),
        REGISTER_BASE - 4,
    ] {
        assert_eq!(host.ask(Do::LoadWord, address, 0), None, "{address:#x}");
        assert_eq!(host.ask(Do::StoreWord, address, 0), None, "{address:#x}");
    }
    // Registers are words.
    assert_eq!(host.ask(Do::LoadByte, REGISTER_BASE + TIME, 0), None);
    assert_eq!(host.ask(Do::StoreByte, REGISTER_BASE + LOG, 0), None);
    assert_eq!(host.log, b"m");
    let last = MEMORY_BASE + MEMORY_BYTES - 4;
    assert_eq!(host.ask(Do::LoadWord, last, 0), Some(0));
}

#[test]
fn registers_tell_sizes_address_and_time() {
    let mac = 0x0605_0403_0201;
    let mut host = Host::boot(1, mac);
    let sizes = [
        TINY.endpoints,
        TINY.pairs,
        TINY.posted + TINY.exact,
        TINY.unexpected,
        TINY.regions,
        TINY.reserved_posted(),
        TINY.capabilities as usize,
        TINY.descriptors,
        TINY.rules,
        TINY.grants,
    ];
    assert_eq!(sizes.len(), SIZE_WORDS);
    for (size, offset) in sizes.into_iter().zip((SIZES..).step_by(4)) {
        assert_eq!(host.peek(offset), size as u64);
    }
    assert_eq!(host.peek(MAC), mac & 0xffff_ffff);
    assert_eq!(host.peek(MAC + 4), mac >> 32);
    let before = host.bench.model.cycle();
    let now = host.peek(TIME);
    let after = host.bench.model.cycle();
    // Two cycles of reset don't count.
    assert!(
        (before - 2..after - 2).contains(&now),
        "{before} {now} {after}"
    );
    // A register that isn't there reads as zero.
    assert_eq!(host.peek(0xff0), 0);
}

#[test]
fn random_words_are_marsaglias_from_the_seed() {
    let sequence = |seed: u32| {
        let mut state = seed ^ 0x9e37_79b9;
        std::iter::repeat_with(move || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            u64::from(state)
        })
    };
    let mut first = vec![];
    for seed in [0, 1, 0xffff_ffff, 0x9e37_79b9_u32] {
        let mut host = Host::boot(seed.into(), 0);
        let words = [host.peek(RANDOM), host.peek(RANDOM)];
        // The seed that would start at zero starts where seed 0 does.
        let mut expected = sequence(if seed == 0x9e37_79b9 { 0 } else { seed }).take(5000);
        assert!(words.iter().all(|word| expected.any(|e| e == *word)));
        assert_ne!(words[0], words[1]);
        first.push(words[0]);
    }
    assert_ne!(first[0], first[1]);
    assert_eq!(first[0], first[3]);
}

#[test]
fn a_control_request_reaches_the_gates_whole_and_brings_back_its_result() {
    for_seeds(4, |rng| {
        let mut host = Host::boot(1, 0);
        for _ in 0..3 {
            let data: [u64; 5] = rng.random();
            for (k, word) in data.iter().enumerate() {
                let offset = CONTROL_DATA + 8 * k as u32;
                host.poke(offset, word & 0xffff_ffff);
                host.poke(offset + 4, word >> 32);
            }
            let operation = *Operation::ALL.choose(rng).expect("there are some");
            let index = rng.random();
            assert!(!host.bench.is("control_valid"));
            host.poke(CONTROL_START, control_start(operation, index).into());
            assert!(host.bench.is("control_valid"));
            // Data that are written meanwhile don't get into it.
            host.poke(CONTROL_DATA, 0);
            let request: [u64; 6] = host.bench.get_wide("control");
            let [shown, at, words @ ..] = unpack(&request, [8, 16, 64, 64, 64, 64, 64]);
            assert_eq!(shown, u64::from(operation.code()));
            assert_eq!((at, words), (u64::from(index), data));
            assert_eq!(host.peek(CONTROL_BUSY), 1);
            // Until it is done, what it waits for stands there.
            for _ in 0..2 {
                let report: u64 = rng.random();
                host.bench.set("control_report", report);
                assert_eq!(host.peek(CONTROL_RESULT), report & 0xffff_ffff);
                assert_eq!(host.peek(CONTROL_RESULT + 4), report >> 32);
            }
            let result: u64 = rng.random();
            host.bench.set("control_ready", true);
            host.bench.set("control_result", result);
            host.step();
            assert!(!host.bench.is("control_valid"), "it drops at once");
            host.bench.set("control_ready", false);
            host.bench.set("control_result", rng.random::<u64>());
            assert_eq!(host.peek(CONTROL_BUSY), 0);
            assert_eq!(host.peek(CONTROL_RESULT), result & 0xffff_ffff);
            assert_eq!(host.peek(CONTROL_RESULT + 4), result >> 32);
        }
    });
}

#[test]
fn a_request_that_is_started_while_one_is_under_way_is_caught() {
    let mut host = Host::boot(1, 0);
    host.poke(CONTROL_START, 1);
    host.begin(Do::StoreWord, REGISTER_BASE + CONTROL_START, 2);
    host.bench.model.steps(200);
    assert!(host.bench.model.got_error().is_err());
}

#[test]
fn both_areas_of_the_mailbox_are_seen_from_both_sides() {
    let mut host = Host::boot(1, 0);
    for word in 3..MAILBOX_WORDS {
        host.write_mailbox(word, 0x1000 + word as u64);
        // The result area is the firmware's.
        host.write_mailbox(32 + word, 0xbad);
    }
    for word in 3..MAILBOX_WORDS {
        let offset = 4 * word as u32;
        assert_eq!(host.read_mailbox(word), 0x1000 + word as u64);
        assert_eq!(host.peek(MAILBOX_COMMAND + offset), 0x1000 + word as u64);
        host.poke(MAILBOX_RESULT + offset, 0x2000 + word as u64);
    }
    for word in 3..MAILBOX_WORDS {
        assert_eq!(host.read_mailbox(32 + word), 0x2000 + word as u64);
    }
}

#[test]
fn interrupts_are_pending_while_their_cause_is() {
    let mut host = Host::boot(1, 0);
    // The command that asks is the cause of the external one.
    assert_eq!(host.ask(Do::Pending, 0, 0), Some(EXTERNAL_PENDING));
    let now = host.peek(TIME);
    host.poke(TIMER_COMPARE, now + 2000);
    assert_eq!(host.peek(TIMER_COMPARE), now + 2000);
    host.poke(TIMER_ENABLE, 1);
    assert_eq!(host.ask(Do::Pending, 0, 0), Some(EXTERNAL_PENDING));
    host.bench.model.steps(2000);
    let both = EXTERNAL_PENDING | TIMER_PENDING;
    assert_eq!(host.ask(Do::Pending, 0, 0), Some(both));
    host.poke(TIMER_ENABLE, 0);
    assert_eq!(host.ask(Do::Pending, 0, 0), Some(EXTERNAL_PENDING));
    // Behind the wrap of the counter is later, too.
    host.poke(TIMER_COMPARE, 0xffff_f000);
    host.poke(TIMER_ENABLE, 1);
    assert_eq!(host.ask(Do::Pending, 0, 0), Some(both));
}

/// What is pending of an idle card while a command asks for it.
const IDLE: u64 = (INTERRUPT_MAILBOX | INTERRUPT_CONTROL) as u64;

/// Interrupts of the gates, and the pins that they come from.
const CAUSES: [(u32, &str); 4] = [
    (INTERRUPT_FRAME_IN, "frame_in_valid"),
    (INTERRUPT_FRAME_OUT, "frame_out_ready"),
    (INTERRUPT_EVENT, "told_valid"),
    (INTERRUPT_GATES_READY, "gates_ready"),
];

/// Brings a cause about. An event is told for one cycle and stays until it is taken.
fn cause(host: &mut Host, pin: &str) {
    host.bench.set(pin, true);
    host.step();
    if pin == "told_valid" {
        host.bench.set(pin, false);
    }
}

/// Ends it; the mailbox must interrupt for that.
fn end_cause(host: &mut Host, pin: &str) {
    host.bench.set(pin, false);
    if pin == "told_valid" {
        host.poke(EVENT_TAKE, 0);
    }
}

#[test]
fn each_cause_is_a_pending_bit_and_interrupts_only_if_it_is_enabled() {
    let mut host = Host::boot(1, 0);
    let mailbox = u64::from(INTERRUPT_MAILBOX);
    assert_eq!(host.peek(INTERRUPT_ENABLE), mailbox);
    assert_eq!(host.peek(INTERRUPT_PENDING), IDLE);
    for (at, (bit, pin)) in CAUSES.into_iter().enumerate() {
        let (_, other) = CAUSES[(at + 1) % CAUSES.len()];
        let rest = CAUSES.iter().fold(0, |all, (bit, _)| all | bit) & !bit;
        // The monitor waits for an interrupt, and a command isn't one here.
        for (enabled, silent, woken_by) in [(bit, other, pin), (rest, pin, other)] {
            host.poke(INTERRUPT_ENABLE, enabled.into());
            cause(&mut host, silent);
            host.begin(Do::Pending, 0, 0);
            for _ in 0..300 {
                host.step();
            }
            let answered = host.bench.get("mailbox_answer") == host.request;
            assert!(!answered, "{silent} isn't enabled");
            cause(&mut host, woken_by);
            assert_eq!(host.end(), Some(EXTERNAL_PENDING), "{woken_by} is enabled");
            host.poke(INTERRUPT_ENABLE, mailbox);
            end_cause(&mut host, other);
            assert_eq!(host.peek(INTERRUPT_PENDING), IDLE | u64::from(bit), "{pin}");
            end_cause(&mut host, pin);
            assert_eq!(host.peek(INTERRUPT_PENDING), IDLE);
        }
    }
}

#[test]
fn a_control_request_that_ends_interrupts_and_a_new_program_starts_with_the_mailbox_alone() {
    let mut host = Host::boot(1, 0);
    // None is under way, so this interrupt is pending all the time.
    host.poke(INTERRUPT_ENABLE, INTERRUPT_CONTROL.into());
    assert_eq!(host.peek(INTERRUPT_PENDING), IDLE);
    host.poke(CONTROL_START, 1);
    host.begin(Do::LoadWord, REGISTER_BASE + INTERRUPT_PENDING, 0);
    for _ in 0..300 {
        host.step();
    }
    assert_ne!(host.bench.get("mailbox_answer"), host.request);
    host.bench.set("control_ready", true);
    host.step();
    host.bench.set("control_ready", false);
    assert_eq!(host.end(), Some(IDLE));
    host.poke(INTERRUPT_ENABLE, u64::MAX >> 32);
    assert_eq!(host.peek(INTERRUPT_ENABLE), 0x3f);
    host.bench.set("run", false);
    host.step();
    host.step();
    host.bench.set("mailbox_request", 0_u64);
    host.request = 0;
    host.run();
    assert_eq!(host.peek(INTERRUPT_ENABLE), u64::from(INTERRUPT_MAILBOX));
}

#[test]
fn a_reset_of_the_gates_is_asked_for_once_and_is_under_way_until_they_are_ready() {
    let mut host = Host::boot(1, 0);
    host.bench.set("gates_ready", true);
    assert_eq!(host.peek(GATES_RESET), 0);
    for value in [0, 1, 3, 2] {
        host.begin(Do::StoreWord, REGISTER_BASE + GATES_RESET, value);
        let mut requests = 0;
        for _ in 0..200 {
            // The datapath isn't ready from the cycle after the request on, for a while.
            host.step();
            let asked = host.bench.is("gates_reset_request");
            requests += u64::from(asked);
            if requests > 0 && !asked {
                host.bench.set("gates_ready", false);
            }
        }
        assert_eq!(requests, value & 1);
        host.end();
        assert_eq!(host.peek(GATES_RESET), value & 1);
        let ready = if value & 1 == 0 {
            INTERRUPT_GATES_READY
        } else {
            0
        };
        assert_eq!(host.peek(INTERRUPT_PENDING), IDLE | u64::from(ready));
        host.bench.set("gates_ready", true);
        assert_eq!(host.peek(GATES_RESET), 0);
    }
}

#[test]
fn a_frame_is_written_word_by_word_and_sent() {
    let mut host = Host::boot(1, 0);
    let mut written = vec![];
    for word in 0..FRAME_WORDS as u64 + 4 {
        let offset = FRAME_OUT + 4 * word as u32;
        host.begin(Do::StoreWord, REGISTER_BASE + offset, 0x5000 + word);
        for _ in 0..200 {
            host.step();
            if host.bench.is("frame_write") {
                let pins = ["frame_write_address", "frame_write_data"];
                written.push(pins.map(|pin| host.bench.get(pin)));
            }
            assert!(!host.bench.is("frame_send"));
        }
        host.end();
    }
    let wanted: Vec<_> = (0..FRAME_WORDS as u64).map(|k| [k, 0x5000 + k]).collect();
    assert_eq!(written, wanted, "and nothing behind the frame");
    for (offset, pin) in [(FRAME_SEND, "frame_send"), (FRAME_TAKE, "frame_take")] {
        host.begin(Do::StoreWord, REGISTER_BASE + offset, 0);
        let pulses = (0..200).filter(|_| {
            host.step();
            host.bench.is(pin)
        });
        assert_eq!(pulses.count(), 1, "{pin}");
        host.end();
    }
}

#[test]
fn a_frame_that_waits_is_read_word_by_word_and_lost_ones_are_counted() {
    let mut host = Host::boot(1, 0);
    let value = |address: u64| 0x7000_0000 + 3 * address;
    for word in 0..FRAME_WORDS as u32 {
        host.begin(Do::LoadWord, REGISTER_BASE + FRAME_IN + 4 * word, 0);
        // The datapath answers with the word of the cycle before.
        for _ in 0..300 {
            let address = host.bench.get("frame_read_address");
            host.step();
            host.bench.set("frame_read_data", value(address));
            host.bench.eval();
        }
        assert_eq!(host.end(), Some(value(word.into())), "word {word}");
    }
    assert_eq!(host.peek(FRAMES_LOST), 0);
    host.bench.set("frame_dropped", true);
    for _ in 0..5 {
        host.step();
    }
    host.bench.set("frame_dropped", false);
    assert_eq!(host.peek(FRAMES_LOST), 5);
}

#[test]
fn events_wait_in_order_until_they_are_taken_and_those_without_room_are_counted() {
    for_seeds(2, |rng| {
        let mut host = Host::boot(1, 0);
        let mut waiting = std::collections::VecDeque::new();
        let mut lost = 0;
        for _ in 0..60 {
            for _ in 0..rng.random_range(0..4) {
                let event: [u64; 4] = [
                    rng.random_range(0..256),
                    rng.random_range(0..256),
                    rng.random_range(0..1 << 16),
                    rng.random(),
                ];
                let [endpoint, cause, pair, info] = event;
                let fields = [(endpoint, 8), (cause, 8), (pair, 16), (info, 64)];
                host.bench.set_wide("told", &pack(&fields));
                host.bench.set("told_valid", true);
                host.step();
                host.bench.set("told_valid", false);
                if waiting.len() < EVENTS_IN {
                    waiting.push_back(event);
                } else {
                    lost += 1;
                }
            }
            let pending = host.peek(INTERRUPT_PENDING) as u32 & INTERRUPT_EVENT != 0;
            assert_eq!(pending, !waiting.is_empty());
            assert_eq!(host.peek(EVENTS_LOST), lost);
            if let Some([endpoint, cause, pair, info]) = waiting.front() {
                let word = event_word(*cause as u8, *endpoint as u8, *pair as u16);
                assert_eq!(host.peek(EVENT), u64::from(word));
                assert_eq!(host.peek(EVENT + 4), info & 0xffff_ffff);
                assert_eq!(host.peek(EVENT + 8), info >> 32);
            }
            if rng.random_bool(0.8) {
                host.poke(EVENT_TAKE, rng.random::<u32>().into());
                waiting.pop_front();
            }
        }
        assert!(lost > 0);
    });
}

/// Events at any pace against the queue's model.
fn queues_events(rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open("mgmt_event_queue");
    let (busy, takes) = (rate(rng), rate(rng));
    let mut waiting: std::collections::VecDeque<[u64; 2]> = Default::default();
    let (mut lost, mut longest) = (0, 0);
    // The oldest stands at the exit two cycles after it came into an empty queue.
    let mut since = 0;
    for cycle in 0..3000 {
        let told: [u64; 2] = [rng.random(), rng.random::<u64>() >> 32];
        let (comes, take) = (rng.random_bool(busy), rng.random_bool(takes));
        bench.set_wide("told", &told);
        bench.set("told_valid", comes);
        bench.set("take", take);
        bench.eval();
        assert_eq!(bench.get("lost"), lost, "cycle {cycle}");
        since = if waiting.is_empty() { 0 } else { since + 1 };
        let valid = bench.is("event_valid");
        assert!(!valid || !waiting.is_empty(), "cycle {cycle}");
        assert!(valid || since <= 2, "cycle {cycle}");
        if valid {
            let wanted = waiting.front().copied();
            assert_eq!(Some(bench.get_wide("oldest")), wanted, "cycle {cycle}");
        }
        let room = waiting.len() < EVENTS_IN;
        if valid && take {
            waiting.pop_front();
            since = 0;
        }
        if comes && room {
            waiting.push_back(told);
        }
        lost += u64::from(comes && !room);
        longest = longest.max(waiting.len());
        bench.step();
    }
    assert!(busy < takes || longest > 2);
}

#[test]
fn the_queue_of_events_keeps_sixteen_and_counts_what_it_drops() {
    for_seeds(12, queues_events);
}

#[test]
fn each_broken_contract_of_the_queue_of_events_is_noticed() {
    breaks("mgmt_event_queue", 6, queues_events);
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_of_the_queue_of_events_are_noticed() {
    mutants("mgmt_event_queue", 6, queues_events);
}

#[test]
fn the_end_of_the_memory_survives_a_reset_and_another_program() {
    let mut host = Host::boot(1, 0);
    let words = (0..PERSISTENT_BYTES).step_by(4);
    for at in words.clone() {
        let stored = host.ask(Do::StoreWord, PERSISTENT_BASE + at, u64::from(!at));
        stored.expect("it is memory");
    }
    host.bench.set("run", false);
    host.bench.set("reset", true);
    host.step();
    host.step();
    host.bench.set("reset", false);
    host.bench.set("mailbox_request", 0_u64);
    host.request = 0;
    host.load(&monitor(b'n'));
    host.run();
    for at in words {
        let found = host.ask(Do::LoadWord, PERSISTENT_BASE + at, 0);
        assert_eq!(found, Some(u64::from(!at)));
    }
}

#[test]
fn a_processor_that_is_held_can_be_given_another_program() {
    let mut host = Host::boot(1, 0);
    host.bench.set("run", false);
    host.step();
    host.step();
    assert_eq!(host.bench.get("firmware_start"), 0, "held, it isn't up");
    host.bench.set("mailbox_request", 0_u64);
    host.request = 0;
    host.load(&monitor(b'n'));
    // Beside the memory there is nothing to load.
    host.load_word(MEMORY_BASE + MEMORY_BYTES + 0x80, 0);
    host.run();
    host.step();
    assert_eq!(host.log, b"mn");
    assert_eq!(host.ask(Do::LoadWord, REGISTER_BASE + SIZES, 0), Some(2));
}

#[test]
fn loading_a_processor_that_runs_is_caught() {
    let mut host = Host::boot(1, 0);
    host.bench.set("loader_valid", true);
    host.bench.model.step();
    assert!(host.bench.model.got_error().is_err());
}

/// The clocks that a processor may have, the fastest first: that of the tests of whole cards, the card's own, what boards have, and a third of it.
const RATES: [Rate; 4] = [
    Rate::Times(8),
    Rate::Times(1),
    Rate::OneIn(2),
    Rate::OneIn(3),
];

#[test]
fn a_faster_processor_answers_in_fewer_cycles_of_the_card() {
    let taken = RATES.map(|rate| {
        let mut host = Host::boot_at(1, 0, rate);
        let before = host.bench.model.cycle();
        host.peek(TIME);
        host.bench.model.cycle() - before
    });
    assert!(
        taken.is_sorted_by(|faster, slower| faster < slower),
        "{taken:?}"
    );
}

#[test]
fn time_is_in_cycles_of_the_card_whatever_the_processors_are() {
    for rate in RATES {
        let cycles = match rate {
            Rate::Times(_) => 1,
            Rate::OneIn(cycles) => u64::from(cycles),
        };
        let mut host = Host::boot_at(1, 0, rate);
        let before = host.bench.model.cycle();
        let now = host.peek(TIME);
        let after = host.bench.model.cycle();
        // Two cycles of reset don't count.
        assert!((before - 2..after - 2).contains(&now), "{rate:?}");
        host.poke(TIMER_COMPARE, now + 5000);
        host.poke(TIMER_ENABLE, 1);
        assert_eq!(host.ask(Do::Pending, 0, 0), Some(EXTERNAL_PENDING));
        host.poke(INTERRUPT_ENABLE, 0);
        // The monitor sleeps until the timer interrupts, and answers then.
        host.begin(Do::LoadWord, REGISTER_BASE + TIME, 0);
        while host.bench.get("mailbox_answer") != host.request {
            host.step();
            let waited = host.bench.model.cycle() - after;
            assert!(waited < 6000, "{rate:?}: it isn't woken");
        }
        let woken = host.end().expect("it is a register");
        let late = woken - (now + 5000);
        assert!(late < 100 * cycles, "{rate:?}: {late} cycles late");
    }
}

/// Stops the processor at any moment, for any time, and gives it another program.
fn stops(rate: Rate, rng: &mut ChaCha8Rng) {
    let mut host = Host::boot_at(1, 0, rate);
    for (round, greeting) in (1..).zip(*b"nopq") {
        let what = [Do::LoadWord, Do::StoreWord][rng.random_range(0..2)];
        let register = [TIME, LOG, MAILBOX_RESULT, SIZES][rng.random_range(0..4)];
        host.begin(what, REGISTER_BASE + register, b'.'.into());
        for _ in 0..rng.random_range(0..150) {
            host.step();
        }
        host.bench.set("run", false);
        host.step();
        let told = host.log.len();
        assert_eq!(host.bench.get("firmware_start"), 0, "held, it isn't up");
        if rng.random() {
            host.load(&monitor(greeting));
        }
        for _ in 0..rng.random_range(0..20) {
            host.step();
        }
        assert_eq!(host.log.len(), told, "nothing has an effect any more");
        assert_eq!(host.bench.get("firmware_start"), 0, "held, it isn't up");
        host.bench.set("mailbox_request", 0_u64);
        host.run();
        // No number of an old program's answer.
        host.request = 100 * round;
        for _ in 0..3 {
            let (address, value) = (MEMORY_BASE + 0x4000, rng.random::<u32>().into());
            host.ask(Do::StoreWord, address, value).expect("memory");
            assert_eq!(host.ask(Do::LoadWord, address, 0), Some(value));
            assert_eq!(host.peek(SIZES), TINY.endpoints as u64);
        }
    }
}

#[test]
fn a_processor_that_is_stopped_at_any_moment_starts_anew() {
    for rate in RATES {
        for_seeds(6, |rng| stops(rate, rng));
    }
}

/// Sends requests through a fan-out to blocks that take their time, and that are concerned by some of them.
fn fan_out(top: &str, rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open(top);
    for _ in 0..100 {
        // Any code, but as often one that some of the blocks take.
        let code = match rng.random() {
            true => FOUR.concat()[rng.random_range(0..9)].code(),
            false => rng.random(),
        };
        let concerned = FOUR.map(|operations| operations.iter().any(|o| o.code() == code));
        let request = [u64::from(code) | rng.random::<u64>() << 8, rng.random()];
        let delay: [u64; 4] = std::array::from_fn(|_| rng.random_range(0..6));
        let results: [u64; 4] = rng.random();
        let delays = (0..4).filter(|i| concerned[*i]).map(|i| delay[i]);
        let slowest = delays.max().unwrap_or(0);
        bench.set("control_valid", true);
        bench.set_wide("control", &request);
        for cycle in 0..=slowest {
            for (i, concerned) in concerned.into_iter().enumerate() {
                // What doesn't concern a block leaves its ready as it likes.
                bench.set(&format!("block_ready_{i}"), !concerned && rng.random());
                bench.set(&format!("block_result_{i}"), 0_u64);
            }
            bench.eval();
            for i in 0..4 {
                let asked = bench.is(&format!("block_valid_{i}"));
                assert_eq!(asked, concerned[i] && cycle <= delay[i], "block {i}");
                assert_eq!(bench.is("begins"), cycle == 0, "once a request");
                if asked {
                    let shown: [u64; 6] = bench.get_wide(&format!("block_{i}"));
                    assert_eq!(shown[..2], request, "what block {i} is shown");
                }
                if asked && cycle == delay[i] {
                    bench.set(&format!("block_ready_{i}"), true);
                    bench.set(&format!("block_result_{i}"), results[i]);
                }
            }
            bench.eval();
            assert_eq!(bench.is("control_ready"), cycle == slowest);
            if cycle == slowest {
                let given = (0..4).filter(|i| concerned[*i]).map(|i| results[i]);
                let all = given.fold(0, |all, result| all | result);
                assert_eq!(bench.get("control_result"), all);
            }
            bench.step();
        }
        bench.set("control_valid", false);
        for i in 0..4 {
            bench.set(&format!("block_ready_{i}"), false);
        }
        for _ in 0..rng.random_range(1..3) {
            bench.eval();
            assert!(!bench.is("control_ready"));
            assert!((0..4).all(|i| !bench.is(&format!("block_valid_{i}"))));
            bench.step();
        }
    }
}

#[test]
fn a_control_request_is_done_when_the_last_block_is() {
    for_seeds(8, |rng| fan_out("mgmt_fanout", rng));
}

#[test]
fn a_control_request_that_a_reset_of_the_gates_meets_is_done_without_effect() {
    for_seeds(8, |rng| {
        let mut bench = Bench::open("mgmt_fanout");
        for _ in 0..20 {
            // Some blocks are done, with results.
            bench.set("control_valid", true);
            bench.set_wide("control", &[Operation::PairSet.code().into()]);
            for _ in 0..rng.random_range(0..4) {
                let i = rng.random_range(1..4);
                bench.set(&format!("block_ready_{i}"), true);
                bench.set(&format!("block_result_{i}"), rng.random::<u64>());
                bench.step();
            }
            bench.set("abandon", true);
            bench.eval();
            assert!(bench.is("control_ready"), "it is answered");
            assert_eq!(bench.get("control_result"), 0);
            for i in 0..4 {
                assert!(!bench.is(&format!("block_valid_{i}")), "shown to block {i}");
                bench.set(&format!("block_ready_{i}"), false);
                bench.set(&format!("block_result_{i}"), 0_u64);
            }
            bench.step();
            bench.set("control_valid", false);
            bench.step();
            bench.set("abandon", false);
            bench.eval();
            assert!(!bench.is("control_ready"));
            bench.step();
        }
    });
}

#[test]
fn a_fan_out_that_answers_too_early_is_caught() {
    breaks("mgmt_fanout", 1, |rng| fan_out("mgmt_fanout", rng));
}

/// Inputs of the counters, in the order of their numbers.
const COUNTER_INPUTS: [&str; 19] = [
    "frames_sent",
    "frames_received",
    "crc_errors",
    "length_errors",
    "type_errors",
    "pair_errors",
    "duplicates",
    "gaps",
    "timeouts",
    "invalid_requests",
    "doorbell_errors",
    "expected",
    "unexpected",
    "completions",
    "match_overflows",
    "credit_asks",
    "firmware_frames_dropped",
    "repeats",
    "rule_drops",
];

#[test]
fn counters_are_named_and_numbered_as_in_abi() {
    let words = |name: &str| name.to_lowercase().replace('_', "");
    for counter in Counter::ALL {
        let input = COUNTER_INPUTS[usize::from(counter.code())];
        assert_eq!(
            words(input),
            words(counter.name()),
            "the same order as in abi"
        );
    }
}

/// An index that a request for a counter may have: often that of one.
fn counter_index(rng: &mut ChaCha8Rng) -> usize {
    let counter = rng.random_range(0..COUNTER_INPUTS.len());
    match rng.random_range(0..8) {
        0 => rng.random_range(0..1 << 16),
        1 => rng.random_range(COUNTER_INPUTS.len()..64),
        // That of a counter, but for one bit.
        2 => counter | 1 << rng.random_range(5..16),
        _ => counter,
    }
}

/// Counts at random in each cycle, against sums kept here, with reads, withdrawn requests and resets at random times.
fn counts_by_number(rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open("mgmt_counters");
    let code = u64::from(Operation::CounterRead.code());
    let (mut reads, mut withdrawn) = (0, 0);
    for _ in 0..8 {
        let (asks, withdraws) = (rate(rng), rate(rng) / 10.0);
        // Some count as much as they can.
        let least =
            [0; COUNTER_INPUTS.len()].map(|_: u64| *[0, 6, 7].choose(rng).expect("there are some"));
        // What was counted in earlier cycles, and the index that is asked for, with the cycles that it has waited.
        let mut counts = [0; COUNTER_INPUTS.len()];
        let mut asked = None;
        for _ in 0..rng.random_range(1..4000) {
            if asked.is_none() && rng.random_bool(asks) {
                asked = Some((counter_index(rng), 0));
            } else if asked.is_some() && rng.random_bool(withdraws) {
                asked = None;
                withdrawn += 1;
            }
            bench.set("control_valid", asked.is_some());
            let index = asked.map_or_else(|| counter_index(rng), |(index, _)| index);
            bench.set_wide("control", &[code | (index as u64) << 8]);
            let amounts = least.map(|least| rng.random_range(least..8));
            for (input, amount) in COUNTER_INPUTS.into_iter().zip(amounts) {
                bench.set(input, amount);
            }
            bench.eval();
            if let Some((index, waited)) = asked {
                let expected = counts.get(index);
                if bench.is("control_ready") {
                    let expected = expected.copied().unwrap_or(0);
                    assert_eq!(bench.get("control_result"), expected, "counter {index}");
                    reads += u64::from(expected != 0);
                    asked = None;
                } else {
                    assert!(expected.is_some(), "no counter is no reason to wait");
                    assert!(waited < 18, "each counter has its turn");
                    asked = Some((index, waited + 1));
                }
            }
            bench.step();
            for (count, amount) in counts.iter_mut().zip(amounts) {
                *count += amount;
            }
        }
        // What is counted during a reset is lost, too.
        bench.set("control_valid", false);
        bench.set("reset", true);
        bench.model.steps(rng.random_range(1..3));
        bench.set("reset", false);
    }
    assert!(reads > 100 && withdrawn > 5, "{reads} {withdrawn}");
}

#[test]
fn counters_count_what_their_inputs_say_and_are_read_by_their_number() {
    for_seeds(8, counts_by_number);
}

#[test]
fn each_broken_contract_of_the_counters_is_noticed() {
    breaks("mgmt_counters", 2, counts_by_number);
}

/// What happens to pairs at random, among them some that aren't there, against counts kept here; pairs are connected anew, and counters read, meanwhile.
fn counts_by_pair(rng: &mut ChaCha8Rng) {
    let pairs = TINY.pairs as u64;
    let mut bench = Bench::open("mgmt_pair_counters");
    for _ in 0..(pairs << PAIR_COUNTER_BITS) + 4 {
        bench.step();
    }
    assert!(bench.is("initialized"));
    let mut counts = vec![[0_u64; PairCounter::ALL.len()]; TINY.pairs];
    // Each of the three sources: its pair, what it may say, and how many cycles apart.
    type Source = (&'static str, &'static [(&'static str, PairCounter)], usize);
    const SOURCES: [Source; 3] = [
        (
            "frame_pair",
            &[
                ("frames_received", PairCounter::FramesReceived),
                ("pair_errors", PairCounter::PairErrors),
                ("duplicates", PairCounter::Duplicates),
                ("gaps", PairCounter::Gaps),
            ],
            9,
        ),
        (
            "send_pair",
            &[
                ("timeouts", PairCounter::Timeouts),
                ("repeats", PairCounter::Repeats),
                ("credit_asks", PairCounter::CreditAsks),
            ],
            5,
        ),
        ("ruled_pair", &[("rule_drops", PairCounter::RuleDrops)], 6),
    ];
    let mut next = [0_usize; 3];
    let mut next_refused = 0;
    let (mut read, mut cleared) = (0, 0);
    for _ in 0..120 {
        // Things happen for a while, as close to each other as they may.
        for now in 0..60 {
            for (k, (pair_pin, pins, apart)) in SOURCES.iter().enumerate() {
                for (pin, _) in *pins {
                    bench.set(pin, false);
                }
                let pair = rng.random_range(0..pairs + 2);
                bench.set(pair_pin, pair);
                // Sends and rules are of pairs that are there.
                let is_there = pair < pairs;
                if now >= next[k] && rng.random_bool(0.7) && (k == 0 || is_there) {
                    let (pin, counter) = pins.choose(rng).expect("there is one");
                    bench.set(pin, true);
                    if is_there {
                        counts[pair as usize][usize::from(counter.code())] += 1;
                    }
                    next[k] = now + apart;
                }
            }
            let refused = now >= next_refused && rng.random_bool(0.6);
            bench.set("refused_valid", refused);
            let reason = *RefusalReason::ALL.choose(rng).expect("there is one");
            let pair = rng.random_range(0..pairs);
            let (region, offset): (u32, u64) = rng.random();
            let fields = [
                (pair, 16),
                (reason.code().into(), 8),
                (region.into(), 32),
                (offset, 64),
            ];
            bench.set_wide("refused", &pack(&fields));
            if refused {
                let counter = PairCounter::of_refusals(reason).code();
                counts[pair as usize][usize::from(counter)] += 1;
                next_refused = now + 4;
            }
            bench.step();
        }
        bench.set("refused_valid", false);
        next_refused = 0;
        for (_, pins, _) in SOURCES {
            for (pin, _) in pins {
                bench.set(pin, false);
            }
        }
        next = [0; 3];
        // What has happened is added by then.
        for _ in 0..60 {
            bench.step();
        }
        let sets = rng.random_bool(0.3);
        let index = match sets {
            true => rng.random_range(0..pairs + 3),
            false => rng.random_range(0..(pairs + 3) << PAIR_COUNTER_BITS),
        };
        let operation = match sets {
            true => Operation::PairSet,
            false => Operation::PairCounterRead,
        };
        bench.set_wide("control", &[u64::from(operation.code()) | index << 8]);
        bench.set("control_valid", true);
        let mut waited = 0;
        loop {
            bench.eval();
            if bench.is("control_ready") {
                break;
            }
            waited += 1;
            assert!(waited < 24, "it is done in bounded time");
            bench.step();
        }
        let result = bench.get("control_result");
        bench.step();
        bench.set("control_valid", false);
        if sets {
            assert_eq!(result, 0);
            if let Some(of_pair) = counts.get_mut(index as usize) {
                *of_pair = Default::default();
                cleared += 1;
            }
        } else {
            let (pair, counter) = pair_counter_of_index(index as u16);
            let of_pair = counts.get(usize::from(pair));
            let expected = of_pair.map_or(0, |of_pair| of_pair[usize::from(counter)]);
            assert_eq!(result, expected, "counter {counter} of pair {pair}");
            read += u64::from(expected != 0);
        }
    }
    assert!(read > 10 && cleared > 5, "{read} read, {cleared} cleared");
    // And all of them in the end.
    for (pair, of_pair) in (0_u64..).zip(&counts) {
        for (counter, expected) in (0_u64..).zip(of_pair) {
            let index = pair << PAIR_COUNTER_BITS | counter;
            let code = u64::from(Operation::PairCounterRead.code());
            bench.set_wide("control", &[code | index << 8]);
            bench.set("control_valid", true);
            bench.eval();
            while !bench.is("control_ready") {
                bench.step();
                bench.eval();
            }
            assert_eq!(bench.get("control_result"), *expected, "pair {pair}");
            bench.step();
            bench.set("control_valid", false);
            bench.step();
        }
    }
}

#[test]
fn counters_of_pairs_count_what_happens_to_each_since_it_was_connected() {
    for_seeds(4, counts_by_pair);
}

#[test]
fn each_broken_contract_of_the_counters_of_pairs_is_noticed() {
    breaks("mgmt_pair_counters", 3, counts_by_pair);
}
