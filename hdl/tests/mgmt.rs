//! The management subsystem, Verilated, with a small program on the real core; the fan-out of
//! control requests; the counters.

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};

use abi::control::{Counter, Operation};
use abi::mgmt::{
    CONTROL_BUSY, CONTROL_DATA, CONTROL_RESULT, CONTROL_START, FIRMWARE_READY, LOG, MAC,
    MAILBOX_ANSWER, MAILBOX_COMMAND, MAILBOX_REQUEST, MAILBOX_RESULT, MEMORY_BASE, MEMORY_BYTES,
    RANDOM, REGISTER_BASE, SIZES, TIME, TIMER_COMPARE, TIMER_ENABLE,
};
use abi::register::MAILBOX_WORDS;
use hdl::config::TINY;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use support::riscv::Program;
use support::{Bench, for_seeds};

const MEPC: u32 = 0x341;
const MIE: u32 = 0x304;
const MIP: u32 = 0x344;
const TIMER_PENDING: u64 = 1 << 7;
const EXTERNAL_PENDING: u64 = 1 << 11;

/// Commands of the monitor: what the host wants done, at an address, with a value.
#[derive(Clone, Copy)]
enum Do {
    LoadWord,
    StoreWord,
    LoadByte,
    StoreByte,
    Pending,
}

/// A program that does what the mailbox says: loads and stores by the host's wish. It answers with
/// the value loaded and whether the access was refused.
fn monitor(greeting: u8) -> Vec<u32> {
    let mut p = Program::default();
    // Exceptions come to the start of the memory: note it, and skip the instruction.
    p.csrr(16, MEPC);
    p.addi(16, 16, 4);
    p.csrw(MEPC, 16);
    p.addi(9, 0, 1);
    p.mret();
    p.at(0x80);
    p.lui(5, REGISTER_BASE >> 12);
    p.lui(6, 1);
    p.addi(6, 6, (TIMER_PENDING | EXTERNAL_PENDING) as i32 - 0x1000);
    p.csrw(MIE, 6);
    p.addi(7, 0, i32::from(greeting));
    p.sw(7, 5, LOG as i32);
    p.addi(7, 0, 1);
    p.sw(7, 5, FIRMWARE_READY as i32);
    p.addi(8, 0, 0);
    p.label("wait");
    p.wfi();
    p.lw(10, 5, MAILBOX_REQUEST as i32);
    p.beq(10, 8, "wait");
    p.lw(11, 5, MAILBOX_COMMAND as i32);
    p.lw(12, 5, MAILBOX_COMMAND as i32 + 4);
    p.lw(13, 5, MAILBOX_COMMAND as i32 + 8);
    p.addi(9, 0, 0);
    p.addi(14, 0, 0);
    p.addi(15, 0, Do::LoadWord as i32);
    p.bne(11, 15, "store word");
    p.lw(14, 12, 0);
    p.j("answer");
    p.label("store word");
    p.addi(15, 0, Do::StoreWord as i32);
    p.bne(11, 15, "load byte");
    p.sw(13, 12, 0);
    p.j("answer");
    p.label("load byte");
    p.addi(15, 0, Do::LoadByte as i32);
    p.bne(11, 15, "store byte");
    p.lbu(14, 12, 0);
    p.j("answer");
    p.label("store byte");
    p.addi(15, 0, Do::StoreByte as i32);
    p.bne(11, 15, "pending");
    p.sb(13, 12, 0);
    p.j("answer");
    p.label("pending");
    p.csrr(14, MIP);
    p.label("answer");
    p.sw(14, 5, MAILBOX_RESULT as i32);
    p.sw(9, 5, MAILBOX_RESULT as i32 + 4);
    p.addi(8, 10, 0);
    p.sw(10, 5, MAILBOX_ANSWER as i32);
    p.j("wait");
    p.assemble()
}

/// A subsystem that runs the monitor, and the host's end of its mailbox.
struct Host {
    bench: Bench,
    request: u64,
    log: Vec<u8>,
}

impl Host {
    fn boot(seed: u64, mac: u64) -> Self {
        let mut bench = Bench::open_cold("mgmt_subsystem");
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
        self.bench.set("loader_write", true);
        self.bench.set("loader_address", address);
        self.bench.set("loader_data", word);
        self.step();
        self.bench.set("loader_write", false);
    }

    fn run(&mut self) {
        self.bench.set("run", true);
        for _ in 0..1000 {
            self.step();
            if self.bench.is("firmware_ready") {
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
    for_seeds(2, |rng| {
        let mut host = Host::boot(1, 0);
        let start = MEMORY_BYTES as usize - 64;
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
    ];
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
            let (operation, index) = (rng.random::<u8>(), rng.random::<u16>());
            assert!(!host.bench.is("control_valid"));
            host.poke(CONTROL_START, u64::from(operation) | u64::from(index) << 16);
            assert!(host.bench.is("control_valid"));
            // Data that are written meanwhile don't get into it.
            host.poke(CONTROL_DATA, 0);
            let request: [u64; 6] = host.bench.get_wide("control");
            let bits = |from: usize, width: usize| {
                let words = u128::from(request[from / 64])
                    | u128::from(*request.get(from / 64 + 1).unwrap_or(&0)) << 64;
                (words >> (from % 64)) as u64 & (u64::MAX >> (64 - width))
            };
            assert_eq!(bits(0, 8), u64::from(operation));
            assert_eq!(bits(8, 16), u64::from(index));
            for (k, word) in data.iter().enumerate() {
                assert_eq!(bits(24 + 64 * k, 64), *word, "word {k}");
            }
            assert_eq!(host.peek(CONTROL_BUSY), 1);
            let result: u64 = rng.random();
            host.bench.set("control_done", true);
            host.bench.set("control_result", result);
            host.step();
            assert!(!host.bench.is("control_valid"), "it drops at once");
            host.bench.set("control_done", false);
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

#[test]
fn a_processor_that_is_held_can_be_given_another_program() {
    let mut host = Host::boot(1, 0);
    host.bench.set("run", false);
    host.step();
    host.step();
    assert!(!host.bench.is("firmware_ready"));
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
    host.bench.set("loader_write", true);
    host.bench.model.step();
    assert!(host.bench.model.got_error().is_err());
}

/// Sends requests through a fan-out to blocks that take their time.
fn fan_out(top: &str, rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open(top);
    for _ in 0..100 {
        let delay: [u64; 4] = std::array::from_fn(|_| rng.random_range(0..6));
        let results: [u64; 4] = rng.random();
        let slowest = *delay.iter().max().expect("four blocks");
        bench.set("control_valid", true);
        for cycle in 0..=slowest {
            for i in 0..4 {
                bench.set(&format!("block_done_{i}"), false);
                bench.set(&format!("block_result_{i}"), 0_u64);
            }
            bench.eval();
            for i in 0..4 {
                let asked = bench.is(&format!("block_valid_{i}"));
                assert_eq!(asked, cycle <= delay[i], "one request a block");
                assert_eq!(bench.is("begins"), cycle == 0, "once a request");
                if cycle == delay[i] {
                    bench.set(&format!("block_done_{i}"), true);
                    bench.set(&format!("block_result_{i}"), results[i]);
                }
            }
            bench.eval();
            assert_eq!(bench.is("control_done"), cycle == slowest);
            if cycle == slowest {
                let all = results.iter().fold(0, |all, result| all | result);
                assert_eq!(bench.get("control_result"), all);
            }
            bench.step();
        }
        bench.set("control_valid", false);
        for i in 0..4 {
            bench.set(&format!("block_done_{i}"), false);
        }
        for _ in 0..rng.random_range(1..3) {
            bench.eval();
            assert!(!bench.is("control_done"));
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
            for _ in 0..rng.random_range(0..4) {
                let i = rng.random_range(1..4);
                bench.set(&format!("block_done_{i}"), true);
                bench.set(&format!("block_result_{i}"), rng.random::<u64>());
                bench.step();
            }
            bench.set("abandon", true);
            bench.eval();
            assert!(bench.is("control_done"), "it is answered");
            assert_eq!(bench.get("control_result"), 0);
            for i in 0..4 {
                assert!(!bench.is(&format!("block_valid_{i}")), "shown to block {i}");
                bench.set(&format!("block_done_{i}"), false);
                bench.set(&format!("block_result_{i}"), 0_u64);
            }
            bench.step();
            bench.set("control_valid", false);
            bench.step();
            bench.set("abandon", false);
            bench.eval();
            assert!(!bench.is("control_done"));
            bench.step();
        }
    });
}

#[test]
fn a_fan_out_that_answers_too_early_is_caught() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let run = AssertUnwindSafe(|| fan_out("mgmt_fanout_answers_first", &mut rng));
    assert!(catch_unwind(run).is_err());
}

#[test]
fn counters_count_what_their_inputs_say_and_are_read_by_their_number() {
    const INPUTS: [&str; 17] = [
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
    ];
    let words = |name: &str| name.to_lowercase().replace('_', "");
    for counter in Counter::ALL {
        let input = INPUTS[usize::from(counter.code())];
        assert_eq!(
            words(input),
            words(counter.name()),
            "the same order as in abi"
        );
    }
    for_seeds(2, |rng| {
        let mut bench = Bench::open("mgmt_counters");
        let mut counts = [0_u64; INPUTS.len()];
        for _ in 0..1000 {
            for (count, input) in counts.iter_mut().zip(INPUTS) {
                let amount = rng.random_range(0..8_u64);
                bench.set(input, amount);
                *count += amount;
            }
            let index = rng.random_range(0..20);
            let operation = if rng.random() {
                Operation::CounterRead
            } else {
                Operation::PairRead
            };
            let code = u64::from(operation.code());
            bench.step();
            bench.set("control_valid", true);
            bench.set_wide("control", &[code | (index as u64) << 8]);
            bench.eval();
            let right = operation == Operation::CounterRead;
            let expected = counts.get(index).filter(|_| right).copied();
            assert!(bench.is("control_done"));
            assert_eq!(bench.get("control_result"), expected.unwrap_or(0));
        }
    });
}
