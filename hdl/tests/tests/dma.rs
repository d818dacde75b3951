//! The DMA engines, Verilated, between random clients and a memory that keeps AXI's rules and looks
//! whether the engine does.

use std::collections::VecDeque;

use hdl_tests::axi::{Memory, WINDOW};
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::{Bench, for_seeds, rate};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CLIENTS: usize = 3;

/// An access: offset in the memory and length, in bytes.
type Access = (usize, usize);

/// Any alignment; short ones, long ones, and ones that end at, before and behind a page's end.
fn random_access(rng: &mut impl Rng) -> Access {
    let length = match rng.random_range(0..4) {
        0 => rng.random_range(1..=16),
        1 => rng.random_range(1..=300),
        2 => [8, 64, 127, 128, 129, 1024][rng.random_range(0..6)],
        _ => rng.random_range(1..=3000),
    };
    let offset = match rng.random_range(0..3) {
        0 => rng.random_range(0..WINDOW - length),
        1 => 8 * rng.random_range(0..(WINDOW - length) / 8),
        _ => {
            let page = 4096 * rng.random_range(1..WINDOW / 4096);
            let start = page + rng.random_range(0..=16);
            start.saturating_sub(length).min(WINDOW - length)
        }
    };
    (offset, length)
}

/// A memory, in half of the cases with a hole: often one that an access to a page's end begins in or before and doesn't end in.
fn random_memory(rng: &mut impl Rng) -> Memory {
    let mut memory = Memory::random(rng);
    if rng.random() {
        let before_a_page = 4096 * rng.random_range(1..WINDOW / 4096) - 760;
        let start = [rng.random_range(0..WINDOW - 600), before_a_page][rng.random_range(0..2)];
        memory.hole = start..start + rng.random_range(1..600);
    }
    memory
}

fn touches(memory: &Memory, (offset, length): Access) -> bool {
    let beats = offset / 8 * 8..(offset + length).div_ceil(8) * 8;
    !memory.hole.is_empty() && beats.start < memory.hole.end && memory.hole.start < beats.end
}

/// Bursts that an access takes: the rules of the bus, told another way.
fn bursts(base: u64, (offset, length): Access) -> u64 {
    let (mut at, end) = (
        (base + offset as u64) / 8 * 8,
        u128::from(base) + (offset + length) as u128,
    );
    let mut count = 0;
    while u128::from(at) < end {
        let page_end = (u128::from(at) / 4096 + 1) * 4096;
        let next = end.min(page_end).min(u128::from(at) + 128);
        count += 1;
        match u64::try_from(next) {
            Ok(next) => at = next,
            Err(_) => break,
        }
    }
    count
}

fn set_request(bench: &mut Bench, client: usize, request: Option<(u64, usize)>, noise: u64) {
    bench.set(&format!("request_valid_{client}"), request.is_some());
    let (address, length) = request.unwrap_or((noise, noise as usize));
    bench.set_wide(
        &format!("request_{client}"),
        &[address, length as u64 & 0xffff],
    );
}

/// When the engine is made quiet, and reset once it is idle, its clients with it.
struct Quiet {
    chance: f64,
    /// Cycles that it has been so.
    lasts: Option<u64>,
    resets: u64,
}

impl Quiet {
    fn new(chance: f64) -> Self {
        Quiet {
            chance,
            lasts: None,
            resets: 0,
        }
    }

    fn drive(&mut self, bench: &mut Bench, memory: &mut Memory, rng: &mut impl Rng) -> bool {
        if self.lasts.is_none() && rng.random_bool(self.chance) {
            self.lasts = Some(0);
        }
        memory.quiet = self.lasts.is_some();
        bench.set("quiet", memory.quiet);
        memory.quiet
    }

    /// Looks whether it is over, before the edge; then that edge resets the engine.
    fn ends(&mut self, bench: &mut Bench, memory: &Memory) -> bool {
        let Some(lasts) = &mut self.lasts else {
            return false;
        };
        *lasts += 1;
        assert!(*lasts < 20_000, "memory answers, and the engine isn't idle");
        if !bench.is("idle") {
            return false;
        }
        assert!(memory.is_idle(), "idle with something on the bus");
        self.lasts = None;
        self.resets += 1;
        bench.set("reset", true);
        true
    }
}

/// What a client of the read engine is doing.
#[derive(Default)]
struct Reader {
    offer: Option<Access>,
    expected: VecDeque<(u64, bool, bool)>,
}

/// Reads `total` random accesses through `top` and compares every word. With chance `quiets` in each cycle all is made quiet and reset.
fn reads(top: &str, rng: &mut ChaCha8Rng, total: usize, quiets: f64) {
    let mut quiet = Quiet::new(quiets);
    let mut bench = Bench::open(top);
    let mut memory = random_memory(rng);
    let mut clients: [Reader; CLIENTS] = Default::default();
    let (busy, willing) = (rate(rng), [rate(rng), rate(rng), rate(rng)]);
    let (mut begun, mut idle) = (0, 0);
    for cycle in 0.. {
        let is_quiet = quiet.drive(&mut bench, &mut memory, rng);
        for (i, client) in clients.iter_mut().enumerate() {
            if client.offer.is_none() && begun < total && rng.random_bool(busy) {
                client.offer = Some(random_access(rng));
                begun += 1;
            }
            let base = memory.base;
            let request = client.offer.map(|(at, length)| (base + at as u64, length));
            set_request(&mut bench, i, request, rng.random());
            // A client may wait for anything, now that nobody serves it.
            let takes = !is_quiet && rng.random_bool(willing[i]);
            bench.set(&format!("data_ready_{i}"), takes);
        }
        memory.drive_read(&mut bench, rng);
        bench.eval();
        for (i, client) in clients.iter_mut().enumerate() {
            let of = |bench: &Bench, name: &str| bench.get(&format!("{name}_{i}"));
            assert!(
                !is_quiet || of(&bench, "request_ready") | of(&bench, "data_valid") == 0,
                "client {i} hears of the engine in cycle {cycle}"
            );
            if of(&bench, "data_valid") != 0 && of(&bench, "data_ready") != 0 {
                let last = of(&bench, "data_last") != 0;
                let word = (
                    of(&bench, "data"),
                    last,
                    last && of(&bench, "data_error") != 0,
                );
                let (data, last, error) = client.expected.pop_front().expect("a word is due");
                assert_eq!((word.1, word.2), (last, error), "client {i}, cycle {cycle}");
                assert_eq!(word.0, data, "client {i}, cycle {cycle}");
            }
            if let Some(access) = client.offer
                && of(&bench, "request_ready") != 0
            {
                client.offer = None;
                let (offset, length) = access;
                let words = memory.bytes[offset..offset + length].chunks(8);
                let count = words.len();
                let bad = touches(&memory, access);
                client.expected.extend(words.enumerate().map(|(k, bytes)| {
                    let mut word = [0; 8];
                    word[..bytes.len()].copy_from_slice(bytes);
                    let last = k + 1 == count;
                    (u64::from_le_bytes(word), last, last && bad)
                }));
            }
        }
        memory.observe_read(&bench, rng);
        let reset = quiet.ends(&mut bench, &memory);
        bench.step();
        memory.step();
        if reset {
            bench.set("reset", false);
            clients.iter_mut().for_each(|c| c.expected.clear());
        }
        let waits = |c: &Reader| c.offer.is_some() || !c.expected.is_empty();
        idle = if begun == total && !clients.iter().any(waits) {
            idle + 1
        } else {
            0
        };
        if idle == 100 {
            assert!(
                memory.is_idle() && bench.is("idle"),
                "nothing is left on the bus"
            );
            assert!(quiets == 0.0 || quiet.resets > 0);
            return;
        }
        assert!(cycle < 1_000_000, "it ends");
    }
}

/// What a client of the write engine is doing.
#[derive(Default)]
struct Writer {
    offer: Option<(Access, Vec<u8>)>,
    words: VecDeque<u64>,
    offering: bool,
    /// Responses that have to have come, and whether one was an error, of each access.
    owed: VecDeque<(u64, bool)>,
}

/// Writes `total` random accesses through `top` and compares the memory. With chance `quiets` in each cycle all is made quiet and reset.
fn writes(top: &str, rng: &mut ChaCha8Rng, total: usize, quiets: f64) {
    let mut quiet = Quiet::new(quiets);
    let mut bench = Bench::open(top);
    let mut memory = random_memory(rng);
    let mut expected = memory.bytes.clone();
    let mut clients: [Writer; CLIENTS] = Default::default();
    let (busy, giving) = (rate(rng), [rate(rng), rate(rng), rate(rng)]);
    let (mut begun, mut idle, mut announced) = (0, 0, 0);
    // What is in memory for certain, and the accesses that may have changed it, in order.
    let mut settled = expected.clone();
    let mut pending: VecDeque<(usize, Vec<u8>)> = VecDeque::new();
    for cycle in 0.. {
        let is_quiet = quiet.drive(&mut bench, &mut memory, rng);
        for (i, client) in clients.iter_mut().enumerate() {
            if client.offer.is_none() && begun < total && rng.random_bool(busy) {
                let access = random_access(rng);
                let bytes = (0..access.1).map(|_| rng.random()).collect();
                client.offer = Some((access, bytes));
                begun += 1;
            }
            let base = memory.base;
            let request = client.offer.as_ref();
            let request = request.map(|((at, length), _)| (base + *at as u64, *length));
            set_request(&mut bench, i, request, rng.random());
            client.offering |= !client.words.is_empty() && rng.random_bool(giving[i]);
            // A client may wait for anything, now that nobody serves it.
            let offering = client.offering && !is_quiet;
            bench.set(&format!("data_valid_{i}"), offering);
            let word = client.words.front().filter(|_| offering);
            bench.set(&format!("data_{i}"), word.map_or(rng.random(), |w| *w));
        }
        memory.drive_write(&mut bench, rng);
        bench.eval();
        for (i, client) in clients.iter_mut().enumerate() {
            let of = |bench: &Bench, name: &str| bench.get(&format!("{name}_{i}"));
            if is_quiet {
                let heard =
                    ["request_ready", "data_ready", "done_valid"].map(|name| of(&bench, name));
                assert_eq!(
                    heard, [0; 3],
                    "client {i} hears of the engine in cycle {cycle}"
                );
            }
            if client.offering && of(&bench, "data_ready") != 0 {
                client.words.pop_front();
                client.offering = false;
            }
            if of(&bench, "done_valid") != 0 {
                let (answers, error) = client.owed.pop_front().expect("something is under way");
                assert!(
                    memory.answered >= answers,
                    "done before its response, cycle {cycle}"
                );
                assert_eq!(of(&bench, "done") != 0, error, "cycle {cycle}");
                let (offset, bytes) = pending.pop_front().expect("it was taken");
                lay(&memory, &mut settled, offset, &bytes);
            }
            if client.offer.is_some() && of(&bench, "request_ready") != 0 {
                let (access, bytes) = client.offer.take().expect("it was looked at above");
                let (offset, _) = access;
                announced += bursts(memory.base, access);
                client.owed.push_back((announced, touches(&memory, access)));
                lay(&memory, &mut expected, offset, &bytes);
                pending.push_back((offset, bytes.clone()));
                // The client may leave anything behind the end of its last word.
                client.words.extend(bytes.chunks(8).map(|chunk| {
                    let mut word = rng.random::<[u8; 8]>();
                    word[..chunk.len()].copy_from_slice(chunk);
                    u64::from_le_bytes(word)
                }));
            }
        }
        memory.observe_write(&bench, rng);
        let reset = quiet.ends(&mut bench, &memory);
        bench.step();
        memory.step();
        if reset {
            bench.set("reset", false);
            for (at, byte) in memory.bytes.iter().enumerate() {
                let meant = |(offset, bytes): &(usize, Vec<u8>)| {
                    at.checked_sub(*offset).and_then(|k| bytes.get(k)) == Some(byte)
                };
                assert!(
                    *byte == settled[at] || pending.iter().any(meant),
                    "nobody wrote what is at {at:#x}"
                );
            }
            pending.clear();
            settled.clone_from(&memory.bytes);
            expected.clone_from(&memory.bytes);
            for client in &mut clients {
                client.words.clear();
                client.owed.clear();
                client.offering = false;
            }
            announced = memory.bursts;
        }
        let waits = |c: &Writer| c.offer.is_some() || !c.owed.is_empty();
        idle = if begun == total && !clients.iter().any(waits) {
            idle + 1
        } else {
            0
        };
        if idle == 100 {
            assert!(
                memory.is_idle() && bench.is("idle"),
                "nothing is left on the bus"
            );
            assert!(quiets == 0.0 || quiet.resets > 0);
            let wrong = (0..WINDOW).find(|at| memory.bytes[*at] != expected[*at]);
            assert_eq!(wrong, None, "first byte that is wrong");
            assert_eq!(memory.bursts, announced);
            return;
        }
        assert!(cycle < 1_000_000, "it ends");
    }
}

/// What a write leaves in memory.
fn lay(memory: &Memory, image: &mut [u8], offset: usize, bytes: &[u8]) {
    for (k, byte) in bytes.iter().enumerate() {
        let beat = (offset + k) / 8 * 8;
        let bad = beat < memory.hole.end && beat + 8 > memory.hole.start;
        if memory.hole.is_empty() || !bad {
            image[offset + k] = *byte;
        }
    }
}

#[test]
fn reads_give_each_client_the_bytes_it_asked_for_in_order() {
    for_seeds(24, |rng| reads("dma_read", rng, 120, 0.0));
}

#[test]
fn writes_change_the_bytes_of_the_access_and_no_other() {
    for_seeds(24, |rng| writes("dma_write", rng, 120, 0.0));
}

/// Chance of a cycle in which all is made quiet.
const QUIETS: f64 = 0.005;

#[test]
fn a_quiet_engine_leaves_nothing_on_the_bus_and_changes_no_memory() {
    for_seeds(12, |rng| reads("dma_read", rng, 120, QUIETS));
    for_seeds(12, |rng| writes("dma_write", rng, 120, QUIETS));
}

#[test]
fn the_longest_access_of_the_interface_works_at_any_offset() {
    for_seeds(2, |rng| {
        for address in [0x10_0000_u64, 0x10_0007] {
            let mut bench = Bench::open("dma_read");
            set_request(&mut bench, 1, Some((address, 0xffff)), 0);
            bench.step();
            set_request(&mut bench, 1, None, 0);
            bench.set("m_axi_arready", true);
            bench.set("m_axi_rvalid", true);
            bench.set("data_ready_1", true);
            let (mut beats, mut words) = (0, 0);
            for _ in 0..20_000 {
                bench.set("m_axi_rdata", rng.random::<u64>());
                bench.eval();
                if bench.is("m_axi_arvalid") {
                    beats += bench.get("m_axi_arlen") + 1;
                }
                if bench.is("data_valid_1") {
                    words += 1;
                    assert_eq!(bench.is("data_last_1"), words == 8192);
                }
                bench.step();
            }
            assert_eq!(words, 8192);
            assert_eq!(beats, 8192 + u64::from(address % 8 > 1));
        }
    });
}

/// Cycles from the request to the first and the last word of a read, and to the end of a write, on
/// the fastest bus.
fn pace(length: usize) -> (u64, u64, u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut memory = Memory::random(&mut rng).fast();
    let mut bench = Bench::open("dma_read");
    set_request(&mut bench, 0, Some((memory.base, length)), 0);
    bench.set("data_ready_0", true);
    let (mut first, mut last) = (None, None);
    for cycle in 0..1000 {
        memory.drive_read(&mut bench, &mut rng);
        bench.eval();
        if bench.is("data_valid_0") {
            first.get_or_insert(cycle);
            if bench.is("data_last_0") {
                last = Some(cycle);
                break;
            }
        }
        memory.observe_read(&bench, &mut rng);
        bench.step();
        memory.step();
        set_request(&mut bench, 0, None, 0);
    }
    let mut memory = Memory::random(&mut rng).fast();
    let mut bench = Bench::open("dma_write");
    set_request(&mut bench, 0, Some((memory.base, length)), 0);
    bench.set("data_valid_0", true);
    let done = (0..1000).find(|_| {
        memory.drive_write(&mut bench, &mut rng);
        bench.eval();
        memory.observe_write(&bench, &mut rng);
        let done = bench.is("done_valid_0");
        bench.step();
        memory.step();
        set_request(&mut bench, 0, None, 0);
        done
    });
    let all = (first, last, done);
    (
        all.0.expect("a word comes"),
        all.1.expect("the last word comes"),
        all.2.expect("the write is done"),
    )
}

#[test]
fn an_access_costs_its_beats_and_a_few_cycles() {
    let (first, last, done) = pace(8);
    assert_eq!((first, last, done), (3, 3, 5), "8 bytes");
    let (first, last, done) = pace(1024);
    assert_eq!((first, last, done), (3, 3 + 127, 5 + 127), "1024 bytes");
}

#[test]
fn an_engine_with_a_defect_is_caught() {
    breaks("dma_read", 20, |rng| {
        let quiets = [0.0, QUIETS][rng.random_range(0..2)];
        reads("dma_read", rng, 60, quiets);
    });
    breaks("dma_write", 20, |rng| {
        let quiets = [0.0, QUIETS][rng.random_range(0..2)];
        writes("dma_write", rng, 60, quiets);
    });
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_of_the_engines_are_noticed() {
    mutants("dma_read", 4, |rng| {
        let quiets = [0.0, QUIETS][rng.random_range(0..2)];
        reads("dma_read", rng, 60, quiets);
    });
    mutants("dma_write", 4, |rng| {
        let quiets = [0.0, QUIETS][rng.random_range(0..2)];
        writes("dma_write", rng, 60, quiets);
    });
}

/// The checks in the gates see it too, without the memory's eyes.
#[test]
fn the_checks_in_the_gates_see_bursts_across_4_kib_and_a_wrong_last() {
    let mut bench = Bench::broken("dma_read", "ignores_boundary");
    set_request(&mut bench, 0, Some((4096 - 8, 16)), 0);
    bench.set("m_axi_arready", true);
    bench.model.steps(4);
    assert!(bench.model.got_error().is_err(), "a burst crosses 4 KiB");

    for caught in [false, true] {
        let mut bench = match caught {
            false => Bench::open("dma_write"),
            true => Bench::broken("dma_write", "last_only_at_end"),
        };
        set_request(&mut bench, 0, Some((0, 17 * 8)), 0);
        bench.set("m_axi_awready", true);
        bench.set("m_axi_wready", true);
        bench.set("data_valid_0", true);
        bench.step();
        set_request(&mut bench, 0, None, 0);
        bench.model.steps(40);
        assert_eq!(bench.model.got_error().is_err(), caught);
    }
}
