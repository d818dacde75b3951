//! The primitives, Verilated, against models of what they promise.

mod support;

use std::collections::VecDeque;

use hdl::prelude::*;
use hdl::prim::power_on_reset::CYCLES;
use hdl::prim::{BlockRam, ByteRam, Ram};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use support::broken::{breaks, mutants};
use support::{Bench, for_seeds, is_caught, rate};

/// One rising edge of a rust-hdl block that has been given its inputs.
fn edge<B: Block>(block: &mut B, clock: impl Fn(&mut B, bool)) {
    for level in [false, true] {
        clock(block, level);
        assert!(simulate(block, 10), "the block settles");
    }
}

fn words(low: u64, high: u64) -> Bits<80> {
    (bit_cast::<80, 64>(high.into()) << 64_u64) | bit_cast::<80, 64>(low.into())
}

fn ram(top: &str, rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open(top);
    let mut ram = Ram::<Bits<80>>::new(10);
    ram.connect_all();
    for _ in 0..2000 {
        let (low, high) = (rng.random(), rng.random::<u64>() & 0xffff);
        let (write, to, from) = (rng.random_bool(0.5), rng.random(), rng.random::<u16>());
        // Half of the reads are of the word that is written.
        let from = if rng.random() { to } else { from };
        bench.set("write_enable", write);
        bench.set("write_address", to);
        bench.set_wide("write_data", &[low, high]);
        bench.set("read_address", from);
        bench.step();
        ram.write_enable.next = write;
        ram.write_address.next = u64::from(to).into();
        ram.write_data.next = words(low, high);
        ram.read_address.next = u64::from(from).into();
        edge(&mut ram, |ram, clk| ram.clock.next = Clock { clk });
        let [low, high] = bench.get_wide("read_data");
        assert_eq!(ram.read_data.val(), words(low, high));
    }
}

#[test]
fn a_ram_is_its_rust_model_at_every_edge() {
    for_seeds(4, |rng| ram("prim_ram", rng));
}

fn block_ram(top: &str, rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open(top);
    let mut ram = BlockRam::<Bits<80>>::new(10);
    ram.connect_all();
    let mut words_now = [[0; 2]; 16];
    for _ in 0..2000 {
        let (low, high) = (rng.random(), rng.random::<u64>() & 0xffff);
        let (write, to, from): (bool, u16, u16) = rng.random();
        bench.set("write_enable", write);
        bench.set("write_address", to);
        bench.set_wide("write_data", &[low, high]);
        bench.set("read_address", from);
        bench.step();
        ram.write_enable.next = write;
        ram.write_address.next = u64::from(to).into();
        ram.write_data.next = words(low, high);
        ram.read_address.next = u64::from(from).into();
        edge(&mut ram, |ram, clk| ram.clock.next = Clock { clk });
        let read = bench.get_wide("read_data");
        let (from, to) = (usize::from(from % 16), usize::from(to % 16));
        let [low_now, high_now]: [u64; 2] = words_now[from];
        if write && from == to {
            let inverted = [!low_now, !high_now & 0xffff];
            assert_eq!(read, inverted, "a broken promise is seen");
        } else {
            assert_eq!(read, words_now[from]);
            assert_eq!(ram.read_data.val(), words(read[0], read[1]));
        }
        if write {
            words_now[to] = [low, high];
        }
    }
}

#[test]
fn a_block_ram_is_its_rust_model_unless_a_word_is_read_while_it_is_written() {
    for_seeds(4, |rng| block_ram("prim_block_ram", rng));
}

fn byte_ram(top: &str, rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open(top);
    let mut ram = ByteRam::<32, 4>::new(8);
    ram.connect_all();
    for _ in 0..2000 {
        let (data, enable) = (u64::from(rng.random::<u32>()), rng.random_range(0..16_u64));
        let (to, from) = (rng.random_range(0..12_u64), rng.random_range(0..12_u64));
        bench.set("write_enable", enable);
        bench.set("write_address", to);
        bench.set("write_data", data);
        bench.set("read_address", from);
        bench.step();
        ram.write_enable.next = enable.into();
        ram.write_address.next = to.into();
        ram.write_data.next = data.into();
        ram.read_address.next = from.into();
        edge(&mut ram, |ram, clk| ram.clock.next = Clock { clk });
        assert_eq!(ram.read_data.val(), bench.get("read_data"));
    }
}

#[test]
fn a_byte_ram_is_its_rust_model_at_every_edge() {
    for_seeds(4, |rng| byte_ram("prim_byte_ram", rng));
}

#[test]
fn a_memory_whose_text_is_wrong_is_noticed() {
    for top in ["prim_ram_reads_new_word", "prim_ram_half_the_words"] {
        assert!(is_caught(top, 1, |rng| ram(top, rng)), "{top}");
    }
    let top = "prim_block_ram_half_the_words";
    assert!(is_caught(top, 1, |rng| block_ram(top, rng)), "{top}");
    for top in [
        "prim_byte_ram_reads_new_word",
        "prim_byte_ram_writes_whole_word",
    ] {
        assert!(is_caught(top, 1, |rng| byte_ram(top, rng)), "{top}");
    }
}

#[test]
fn what_is_read_while_it_is_written_is_the_old_word() {
    let mut bench = Bench::open("prim_byte_ram");
    bench.set("write_enable", 0b1111_u64);
    bench.set("write_data", 0x1111_1111_u64);
    bench.step();
    bench.set("write_enable", 0b0101_u64);
    bench.set("write_data", 0x2222_2222_u64);
    bench.step();
    assert_eq!(bench.get("read_data"), 0x1111_1111);
    bench.set("write_enable", 0_u64);
    bench.step();
    assert_eq!(bench.get("read_data"), 0x1122_1122);
}

/// Sends numbers through a stream block with random idle and back-pressure. `observe` sees the
/// bench and the words inside once a cycle, before the edge.
fn stream(name: &str, rng: &mut impl Rng, mut observe: impl FnMut(&mut Bench, &VecDeque<u64>)) {
    let mut bench = Bench::open(name);
    let (busy, willing) = (rate(rng), rate(rng));
    let (mut inside, mut next, mut taken) = (VecDeque::new(), 0_u64, 0);
    let mut offering = false;
    let mut held: Option<u64> = None;
    for cycle in 0.. {
        offering |= rng.random_bool(busy);
        bench.set("in_valid", offering);
        bench.set("in_data", if offering { next } else { rng.random() });
        bench.set("out_ready", rng.random_bool(willing));
        bench.eval();
        observe(&mut bench, &inside);
        let offered = bench.is("out_valid").then(|| bench.get("out_data"));
        if held.is_some() {
            assert_eq!(offered, held, "an offer is kept, cycle {cycle}");
        }
        held = offered.filter(|_| bench.get("out_ready") == 0);
        if let Some(word) = offered.filter(|_| bench.is("out_ready")) {
            assert_eq!(Some(word), inside.pop_front(), "cycle {cycle}");
            taken += 1;
        }
        if offering && bench.is("in_ready") {
            inside.push_back(next);
            next += 1;
            offering = false;
        }
        bench.step();
        if taken == 500 {
            return;
        }
        assert!(cycle < 50_000, "it goes on");
    }
}

const QUEUES: [(&str, usize); 2] = [("prim_fifo", 5), ("prim_fifo_2", 2)];

fn queue((name, depth): (&str, usize), rng: &mut ChaCha8Rng) {
    stream(name, rng, |bench, inside| {
        assert_eq!(bench.get("level"), inside.len() as u64);
        assert_eq!(bench.is("in_ready"), inside.len() < depth);
    });
}

#[test]
fn a_queue_keeps_words_and_order_and_knows_its_level() {
    for size in QUEUES {
        for_seeds(8, |rng| queue(size, rng));
    }
}

#[test]
fn a_broken_queue_is_noticed() {
    for size in QUEUES {
        breaks(size.0, 4, |rng| queue(size, rng));
    }
}

#[test]
fn most_mutants_of_a_queue_are_noticed() {
    mutants("prim_fifo", 4, |rng| queue(QUEUES[0], rng));
}

#[test]
fn a_word_comes_out_of_an_empty_queue_two_cycles_later() {
    let mut bench = Bench::open("prim_fifo");
    bench.set("in_valid", true);
    bench.step();
    bench.set("in_valid", false);
    assert!(!bench.is("out_valid"));
    bench.step();
    assert!(bench.is("out_valid"));
}

#[test]
fn a_queue_of_five_moves_a_word_in_every_cycle() {
    let mut bench = Bench::open("prim_fifo");
    bench.set("in_valid", true);
    bench.set("out_ready", true);
    let mut moved = 0;
    for _ in 0..102 {
        bench.eval();
        assert!(bench.is("in_ready"));
        moved += bench.get("out_valid");
        bench.step();
    }
    assert_eq!(moved, 100);
}

fn skid(rng: &mut ChaCha8Rng) {
    stream("prim_skid", rng, |bench, inside| {
        assert!(inside.len() <= 2);
        assert_eq!(bench.is("in_ready"), inside.len() < 2);
        assert_eq!(bench.is("out_valid"), !inside.is_empty());
    });
}

#[test]
fn a_skid_buffer_keeps_words_and_order_and_holds_two() {
    for_seeds(8, skid);
}

#[test]
fn a_broken_skid_buffer_is_noticed() {
    breaks("prim_skid", 4, skid);
}

#[test]
fn most_mutants_of_a_skid_buffer_are_noticed() {
    mutants("prim_skid", 4, skid);
}

fn round_robin(rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open("prim_round_robin");
    let (mut first, mut pending) = (0, 0_u64);
    let (busy, willing) = (rate(rng), rate(rng));
    for cycle in 0..3000 {
        for i in 0..5 {
            pending |= u64::from(rng.random_bool(busy * 0.4)) << i;
        }
        let advance = rng.random_bool(willing);
        // Bits of requests that the arbiter doesn't have must not count.
        bench.set("request", pending | rng.random::<u64>() << 5);
        bench.set("advance", advance);
        bench.eval();
        let chosen = (0..5)
            .map(|i| (first + i) % 5)
            .find(|i| pending >> i & 1 == 1);
        assert_eq!(bench.is("valid"), chosen.is_some(), "cycle {cycle}");
        assert_eq!(bench.get("index"), chosen.unwrap_or(0), "cycle {cycle}");
        if let Some(index) = chosen {
            first = if advance { (index + 1) % 5 } else { index };
            if advance {
                pending &= !(1 << index);
            }
        }
        bench.step();
    }
}

#[test]
fn a_round_robin_choice_is_fair_and_stays_until_it_has_had_its_turn() {
    for_seeds(8, round_robin);
}

#[test]
fn a_broken_round_robin_is_noticed() {
    breaks("prim_round_robin", 4, round_robin);
}

fn multiplexer(rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open("prim_stream_mux");
    let rates = [rate(rng), rate(rng), rate(rng)];
    let willing = rate(rng);
    let (mut offering, mut next, mut due) = ([false; 3], [0_u64; 3], [0_u64; 3]);
    let mut turns = [0_u32; 3];
    let mut held = None;
    for cycle in 0..3000 {
        for i in 0..3 {
            offering[i] |= rng.random_bool(rates[i]);
            bench.set(&format!("in_valid_{i}"), offering[i]);
            bench.set(&format!("in_data_{i}"), (i as u64) << 32 | next[i]);
        }
        bench.set("out_ready", rng.random_bool(willing));
        bench.eval();
        assert_eq!(bench.is("out_valid"), offering.contains(&true));
        let offer = bench.is("out_valid").then(|| bench.get("out_data"));
        assert!(held.is_none() || held == offer, "cycle {cycle}");
        held = offer.filter(|_| bench.get("out_ready") == 0);
        let source = bench.get("out_index") as usize;
        for i in 0..3 {
            let taken = offer.is_some() && bench.is("out_ready") && source == i;
            assert_eq!(bench.is(&format!("in_ready_{i}")), taken, "cycle {cycle}");
            if taken {
                assert_eq!(offer, Some((i as u64) << 32 | due[i]), "cycle {cycle}");
                due[i] += 1;
                next[i] += 1;
                offering[i] = false;
                turns[i] = 0;
            } else if offering[i] && bench.is("out_ready") {
                turns[i] += 1;
                assert!(turns[i] <= 2, "source {i} waits for one turn of each other");
            }
        }
        bench.step();
    }
}

#[test]
fn a_stream_multiplexer_keeps_the_order_of_each_source_and_starves_none() {
    for_seeds(8, multiplexer);
}

#[test]
fn a_broken_stream_multiplexer_is_noticed() {
    breaks("prim_stream_mux", 4, multiplexer);
}

fn counter(rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open("prim_counter");
    let mut count = 0;
    for _ in 0..300 {
        let increment = rng.random_bool(0.7);
        bench.set("increment", increment);
        assert_eq!(bench.get("count"), count % 32);
        bench.step();
        count += u64::from(increment);
    }
    assert!(count > 64);
}

#[test]
fn a_counter_counts_and_wraps() {
    for_seeds(2, counter);
}

#[test]
fn a_broken_counter_is_noticed() {
    breaks("prim_counter", 4, counter);
}

fn power_on() {
    let mut bench = Bench::open_cold("prim_power_on_reset");
    let released = |bench: &mut Bench| {
        (0..100).find(|_| {
            bench.eval();
            let released = !bench.is("card_reset");
            bench.step();
            released
        })
    };
    assert_eq!(released(&mut bench), Some(CYCLES), "after power-on");
    // However short: one edge is enough.
    for edges in [2, 1] {
        bench.set("reset", true);
        bench.eval();
        assert!(bench.is("card_reset"), "in the cycle of the reset");
        bench.model.steps(edges);
        bench.set("reset", false);
        assert_eq!(released(&mut bench), Some(CYCLES), "after a reset");
    }
}

#[test]
fn a_card_comes_out_of_reset_by_itself_and_after_one_from_outside() {
    power_on();
}

#[test]
fn a_broken_power_on_reset_is_noticed() {
    breaks("prim_power_on_reset", 1, |_| power_on());
}

#[test]
fn a_stream_that_takes_an_offer_back_or_changes_it_is_caught() {
    for (valid, data) in [(false, 1_u64), (true, 2)] {
        let mut bench = Bench::open("prim_stable");
        bench.set("valid", true);
        bench.set("data", 1_u64);
        bench.step();
        bench.step();
        bench.set("valid", valid);
        bench.set("data", data);
        bench.model.step();
        assert!(bench.model.got_error().is_err());
    }
    let mut bench = Bench::open("prim_stable");
    bench.set("valid", true);
    bench.set("ready", true);
    bench.step();
    bench.set("valid", false);
    bench.step();
}
