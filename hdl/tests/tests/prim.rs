//! The primitives, Verilated, against models of what they promise.

use std::collections::VecDeque;

use hdl::prelude::*;
use hdl::prim::power_on_reset::CYCLES;
use hdl::prim::{BlockRam, ByteRam, Ram};
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::clocks::Clocks;
use hdl_tests::fields::Steady;
use hdl_tests::{Bench, current, for_seeds, is_caught, rate};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

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
        ram.write.enable.next = write;
        ram.write.address.next = u64::from(to).into();
        ram.write.data.next = words(low, high);
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
        ram.write.enable.next = write;
        ram.write.address.next = u64::from(to).into();
        ram.write.data.next = words(low, high);
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
        ram.write.enable.next = enable.into();
        ram.write.address.next = to.into();
        ram.write.data.next = data.into();
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

/// As it broke: a test passed on the gates from before a change.
#[test]
fn a_model_of_other_gates_is_noticed() {
    let Bench { model, .. } = Bench::open("prim_skid");
    assert!(current::is_of(&model, "prim_skid_broken"));
    assert!(!current::is_of(&model, "prim_skid"));
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
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
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_of_a_skid_buffer_are_noticed() {
    mutants("prim_skid", 4, skid);
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_of_the_other_primitives_are_noticed() {
    mutants("prim_round_robin", 4, round_robin);
    mutants("prim_stream_mux", 4, multiplexer);
    mutants("prim_counter", 2, counter);
    mutants("prim_lowest_of_two", 2, lowest);
    mutants("prim_crossing", 12, crosses);
    mutants("prim_level", 4, level);
    mutants("prim_in_order", 4, in_order);
    mutants("prim_table", 2, table);
    mutants("prim_power_on_reset", 1, |_| power_on());
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

fn lowest(rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open("prim_lowest_of_two");
    let lowest = |set: u64| set & set.wrapping_neg();
    for round in 0..300 {
        // Few members and many; a single one and none.
        let wide: u64 = match round % 4 {
            0 => rng.random(),
            1 => rng.random::<u64>() & rng.random::<u64>() << rng.random_range(0..64),
            2 => 1 << rng.random_range(0..64) | 1 << rng.random_range(0..64),
            _ => u64::from(rng.random::<bool>()) << rng.random_range(0..64),
        };
        let narrow = round % 64;
        bench.set("narrow", narrow);
        bench.set("wide", wide);
        bench.eval();
        assert_eq!(bench.get("lowest_narrow"), lowest(narrow), "of {narrow:b}");
        assert_eq!(bench.get("lowest_wide"), lowest(wide), "of {wide:b}");
    }
}

#[test]
fn the_lowest_of_a_set_is_found_and_none_of_nothing_and_what_is_broken_is_noticed() {
    breaks("prim_lowest_of_two", 4, lowest);
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

/// Writes and reads of a table of ten words, with resets.
fn table(rng: &mut ChaCha8Rng) {
    const DEPTH: usize = 10;
    let mut bench = Bench::open("prim_table");
    let mut words = [0; DEPTH];
    // Cycles until it is cleared; the number that was read last.
    let mut clearing = DEPTH;
    let mut asked = None;
    for cycle in 0..2000 {
        let reset = rng.random_bool(0.01);
        let (write, word) = (rng.random_bool(0.5), rng.random());
        // Beyond the table too, where low bits alone would name a word of it.
        let (to, from) = (rng.random_range(0..40_usize), rng.random_range(0..DEPTH));
        bench.set("reset", reset);
        bench.set("write_enable", write);
        bench.set("write_address", to as u64);
        bench.set("write_data", word);
        bench.set("read_address", from as u64);
        bench.eval();
        assert_eq!(bench.is("initialized"), clearing == 0, "cycle {cycle}");
        if let Some(wanted) = asked {
            assert_eq!(bench.get("read_data"), wanted, "cycle {cycle}");
        }
        asked = (clearing == 0).then_some(words[from]);
        if clearing > 0 {
            clearing -= 1;
            words = [0; DEPTH];
        } else if write && let Some(place) = words.get_mut(to) {
            *place = word;
        }
        if reset {
            clearing = DEPTH;
        }
        bench.step();
    }
}

#[test]
fn a_table_is_cleared_after_each_reset_and_takes_no_number_beyond_it() {
    for_seeds(4, table);
    breaks("prim_table", 2, table);
}

/// Asks questions, and answers those that await it, each side at a rate of its own, and an answer at most one ahead of its question.
fn in_order(rng: &mut ChaCha8Rng) {
    const ANSWERS: usize = 4;
    let mut bench = Bench::open("prim_in_order");
    let (busy, prompt, willing) = (rate(rng), rate(rng), rate(rng));
    let questions: Vec<u64> = (0..200).map(|_| rng.random()).collect();
    // The lowest bit of a question says that it awaits an answer.
    let awaits = |question: u64| question & 1 == 1;
    let awaiting = |questions: &[u64]| questions.iter().filter(|q| awaits(**q)).count();
    let answers: Vec<u64> = (0..awaiting(&questions))
        .map(|_| rng.random_range(0..256))
        .collect();
    let (mut asked, mut answered, mut left) = (0, 0, 0);
    let mut offering = false;
    for cycle in 0.. {
        assert!(cycle < 20_000, "questions are stuck");
        let used = awaiting(&questions[..left]);
        offering |= asked < questions.len() && rng.random_bool(busy);
        bench.set("asked_valid", offering);
        let question = questions.get(asked).filter(|_| offering);
        bench.set("asked", question.map_or(rng.random(), |word| *word));
        let due = answers.len().min(awaiting(&questions[..asked]) + 1);
        let answers_now = answered < due && answered - used < ANSWERS && rng.random_bool(prompt);
        let answer = answers.get(answered).filter(|_| answers_now);
        bench.set("answer_valid", answers_now);
        bench.set(
            "answer",
            answer.map_or(rng.random_range(0..256), |word| *word),
        );
        bench.set("out_ready", rng.random_bool(willing));
        bench.eval();
        let awaited = awaits(bench.get("out_data"));
        bench.set("awaits", awaited);
        bench.eval();
        assert_eq!(bench.get("level"), (asked - left) as u64, "cycle {cycle}");
        if bench.is("out_valid") {
            assert!(left < asked, "nothing is in there, cycle {cycle}");
            assert_eq!(bench.get("out_data"), questions[left], "cycle {cycle}");
            if awaited {
                assert!(used < answered, "it isn't answered, cycle {cycle}");
                assert_eq!(bench.get("output_answer"), answers[used], "cycle {cycle}");
            }
        }
        left += usize::from(bench.is("out_valid") && bench.is("out_ready"));
        answered += usize::from(answers_now);
        if offering && bench.is("asked_ready") {
            (asked, offering) = (asked + 1, false);
        }
        if left == questions.len() {
            break;
        }
        bench.step();
    }
    assert_eq!(answered, answers.len());
}

#[test]
fn each_question_leaves_in_its_turn_with_its_answer() {
    for_seeds(8, in_order);
}

#[test]
fn each_broken_contract_of_questions_and_answers_is_noticed() {
    breaks("prim_in_order", 4, in_order);
}

const CLOCKS: [&str; 2] = ["input_clock", "output_clock"];

/// A crossing after its reset, which both sides have at once.
fn open_crossing(clocks: &mut Clocks, rng: &mut ChaCha8Rng) -> Bench {
    let mut bench = Bench::open("prim_crossing");
    for reset in [true, false] {
        bench.set("input_reset", reset);
        bench.set("output_reset", reset);
        let mut edges = [0; 2];
        while edges.iter().any(|count| *count < 4) {
            bench.eval();
            let rising = clocks.rising(rng);
            clocks.rise(&mut bench, rising);
            clocks.fall(&mut bench);
            edges = [0, 1].map(|side| edges[side] + u32::from(rising[side]));
        }
    }
    bench
}

/// Words from one clock to the other, at any ratio.
fn crosses(rng: &mut ChaCha8Rng) {
    let periods = [0, 1].map(|_| [4, 8, 9, 40, 100][rng.random_range(0..5)]);
    let mut clocks = Clocks::wavering(CLOCKS, periods, rng);
    let mut bench = open_crossing(&mut clocks, rng);
    let (busy, willing) = (rate(rng), rate(rng));
    // Words, each with the edges of the output's clock before it.
    let mut sent: VecDeque<(u64, u64)> = VecDeque::new();
    let mut edges = 0;
    let mut steady = Steady::default();
    let (mut offered, mut came) = (None, 0);
    let mut most = 0;
    // Edges of the input's clock since the last word was taken.
    let mut since = 0;
    for event in 0.. {
        assert!(event < 150_000, "words are stuck");
        bench.eval();
        let rising = clocks.rising(rng);
        if rising[1] {
            edges += 1;
            let [valid, takes] = ["out_valid", "out_ready"].map(|pin| bench.is(pin));
            let late = sent.front().is_some_and(|(_, before)| edges >= before + 3);
            assert!(valid || !late, "a word is late, event {event}");
            let word = bench.get("out_data");
            if let Some(word) = steady.watch("output", valid, takes, &[word]) {
                let sent = sent.pop_front().map(|(word, _)| word);
                assert_eq!(Some(word[0]), sent, "event {event}");
                came += 1;
                since = 0;
            }
        }
        let empty = bench.is("input_empty");
        assert!(!empty || sent.is_empty(), "not empty, event {event}");
        assert!(
            empty || !sent.is_empty() || since < 3,
            "empty, event {event}"
        );
        since += u64::from(rising[0]);
        let pushes = rising[0] && bench.is("in_ready");
        if pushes && let Some(word) = offered.take() {
            sent.push_back((word, edges));
            most = most.max(sent.len());
        }
        if came == 100 {
            break;
        }
        clocks.rise(&mut bench, rising);
        // Each side changes what it drives after an edge of its own clock.
        if rising[0] {
            offered = offered.or_else(|| rng.random_bool(busy).then(|| rng.random()));
            bench.set("in_valid", offered.is_some());
            bench.set("in_data", offered.unwrap_or_else(|| rng.random()));
        }
        if rising[1] {
            bench.set("out_ready", rng.random_bool(willing));
        }
        clocks.fall(&mut bench);
    }
    assert!(most <= 8, "{most} words in a crossing of 8");
}

#[test]
fn words_cross_from_clock_to_clock_in_order_whatever_their_ratio() {
    for_seeds(24, crosses);
}

#[test]
fn each_broken_contract_of_the_crossing_is_noticed() {
    breaks("prim_crossing", 12, crosses);
}

/// A level that changes at random.
fn level(rng: &mut ChaCha8Rng) {
    let periods = [0, 1].map(|_| [4, 8, 9, 40, 100][rng.random_range(0..5)]);
    let mut clocks = Clocks::wavering(CLOCKS, periods, rng);
    let mut bench = Bench::open("prim_level");
    let changes = rate(rng) / 4.0;
    // The registers that the level goes through; it starts high.
    let [mut sent, mut unsettled, mut settled] = [true; 3];
    let mut level = false;
    for event in 0..2000 {
        bench.set("level", level);
        bench.eval();
        assert_eq!(bench.is("seen"), settled, "event {event}");
        let rising = clocks.rising(rng);
        if rising[1] {
            [settled, unsettled] = [unsettled, sent];
        }
        if rising[0] {
            sent = level;
        }
        clocks.rise(&mut bench, rising);
        level ^= rising[0] && rng.random_bool(changes);
        clocks.fall(&mut bench);
    }
}

#[test]
fn a_level_is_seen_after_a_register_of_its_clock_and_two_of_the_other() {
    for_seeds(12, level);
    breaks("prim_level", 8, level);
}

#[test]
fn a_word_crosses_in_each_cycle_of_the_slower_clock() {
    for_seeds(4, |rng| {
        for periods in [[8, 8], [8, 16], [16, 8], [8, 9], [40, 8]] {
            let mut clocks = Clocks::wavering(CLOCKS, periods, rng);
            let mut bench = open_crossing(&mut clocks, rng);
            bench.set("in_valid", true);
            bench.set("out_ready", true);
            let (mut edges, mut words) = ([0; 2], 0);
            while edges[0].min(edges[1]) < 200 {
                bench.eval();
                let rising = clocks.rising(rng);
                // Not before both sides know of each other.
                let counts = edges[0].min(edges[1]) >= 20;
                words += u64::from(counts && rising[1] && bench.is("out_valid"));
                clocks.rise(&mut bench, rising);
                clocks.fall(&mut bench);
                edges = [0, 1].map(|side| edges[side] + u64::from(rising[side]));
            }
            assert!(words >= 178, "{words} words in 180 cycles, {periods:?}");
        }
    });
}
