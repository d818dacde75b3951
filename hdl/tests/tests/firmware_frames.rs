//! `link::FirmwareOut`, `FrameMux` and `FirmwareIn`, Verilated, each against a model with random idle, back-pressure and a
//! processor that does what it mustn't.

use std::collections::VecDeque;

use abi::mgmt::{FRAME_WORDS, FRAMES_IN};
use abi::wire::crc32c;
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::Steady;
use hdl_tests::{Bench, for_seeds, rate};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Words of 64 bits of a frame of the firmware, without its trailer.
const WORDS: usize = FRAME_WORDS / 2;

/// The words of a frame with its trailer.
fn sealed(words: &[u32; FRAME_WORDS]) -> Vec<u64> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut sealed: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|chunk| u64::from_le_bytes(chunk.try_into().expect("chunks of eight")))
        .collect();
    sealed.push(crc32c(&bytes).into());
    sealed
}

/// A processor that writes at any time and sends at any time, and a wire.
fn sends(rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open("firmware_out");
    let (busy, willing, send) = (
        rate(rng),
        rate(rng),
        [0.01, 0.1, 0.5][rng.random_range(0..3)],
    );
    let mut frame = [0; FRAME_WORDS];
    let mut under_way: VecDeque<u64> = VecDeque::new();
    let mut steady = Steady::default();
    let (mut started, mut sent) = (0, 0);
    // Nothing is said of words that weren't written.
    for (at, word) in frame.iter_mut().enumerate() {
        *word = rng.random();
        bench.set("write", true);
        bench.set("write_address", at as u64);
        bench.set("write_data", *word);
        bench.step();
    }
    for cycle in 0..4000 {
        let (at, word) = (rng.random_range(0..FRAME_WORDS), rng.random::<u32>());
        let sends = rng.random_bool(send);
        let writes = !sends && rng.random_bool(busy);
        bench.set("write", writes);
        bench.set("write_address", at as u64);
        bench.set("write_data", word);
        bench.set("send", sends);
        bench.set("m_axis_tready", rng.random_bool(willing));
        bench.eval();
        let idle = under_way.is_empty();
        assert_eq!(bench.is("ready"), idle, "cycle {cycle}");
        assert_eq!(
            bench.is("m_axis_tvalid"),
            !idle,
            "a frame is offered at once and without a pause, cycle {cycle}"
        );
        let pins = ["tdata", "tkeep", "tlast"].map(|pin| bench.get(&format!("m_axis_{pin}")));
        let taken = steady.watch("m_axis", !idle, bench.is("m_axis_tready"), &pins);
        let mut ends = false;
        if let Some(word) = taken {
            let wanted = under_way.pop_front().expect("it is offered");
            ends = under_way.is_empty();
            assert_eq!(word, [wanted, 0xff, ends.into()], "cycle {cycle}");
            sent += u32::from(ends);
        }
        assert_eq!(bench.is("count_frames_sent"), ends, "cycle {cycle}");
        if idle && writes {
            frame[at] = word;
        }
        if idle && sends {
            under_way.extend(sealed(&frame));
            started += 1;
        }
        bench.step();
    }
    assert!(sent > 5 && sent + 1 >= started);
}

#[test]
fn a_frame_goes_out_as_it_was_written_with_its_crc() {
    for_seeds(12, sends);
}

#[test]
fn each_broken_contract_of_the_way_out_is_noticed() {
    breaks("firmware_out", 6, sends);
}

/// A word of a stream: data, `tkeep`, `tlast`.
type Word = [u64; 3];

const SOURCES: [&str; 2] = ["firmware", "framer"];

/// Frames from both sides, as often as `busy` says.
fn joins(rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open("frame_mux");
    let (busy, willing) = ([rate(rng), rate(rng)], rate(rng));
    let mut words: [VecDeque<Word>; 2] = Default::default();
    let mut offered = [false; 2];
    let mut steady = Steady::default();
    // Whose frame is under way, and who had the stream last.
    let mut owner: Option<usize> = None;
    let mut last_owner = None;
    // Frames of the other one that have begun since a source offered its own.
    let mut overtaken = [0; 2];
    let mut frames = [0; 2];
    for cycle in 0..6000 {
        for (source, name) in SOURCES.iter().enumerate() {
            if words[source].is_empty() {
                let length = rng.random_range(1..20);
                words[source].extend((0..length).map(|k| {
                    let tag = (source as u64) << 63;
                    let last = u64::from(k + 1 == length);
                    [tag | rng.random::<u64>() >> 1, 0xff, last]
                }));
            }
            // A frame that has begun has no pause.
            let within = owner == Some(source);
            offered[source] |= within || rng.random_bool(busy[source] / 4.0);
            let noise = [rng.random(), rng.random(), rng.random()];
            let word = if offered[source] {
                words[source][0]
            } else {
                noise
            };
            bench.set(&format!("{name}_tvalid"), offered[source]);
            bench.set(&format!("{name}_tuser"), false);
            for (pin, value) in ["tdata", "tkeep", "tlast"].iter().zip(word) {
                bench.set(&format!("{name}_{pin}"), value);
            }
        }
        bench.set("m_axis_tready", rng.random_bool(willing));
        bench.eval();
        let pins = ["tdata", "tkeep", "tlast"].map(|pin| bench.get(&format!("m_axis_{pin}")));
        let valid = bench.is("m_axis_tvalid");
        assert_eq!(
            valid,
            offered[0] || offered[1],
            "what is offered goes out in the same cycle, cycle {cycle}"
        );
        let ready = bench.is("m_axis_tready");
        if valid {
            let source = usize::from(pins[0] >> 63 == 1);
            assert_eq!(pins, words[source][0], "cycle {cycle}");
            if owner.is_none() {
                // It keeps the stream from here on, whether it is taken or not.
                owner = Some(source);
                frames[source] += 1;
                let other = 1 - source;
                if offered[other] {
                    overtaken[other] += 1;
                    assert!(
                        overtaken[other] <= 1,
                        "{} starves, cycle {cycle}",
                        SOURCES[other]
                    );
                    assert!(
                        source == 0 || last_owner == Some(0),
                        "the firmware goes first, cycle {cycle}"
                    );
                }
                overtaken[source] = 0;
            }
            assert_eq!(owner, Some(source), "frames mix, cycle {cycle}");
        }
        let taken = steady.watch("m_axis", valid, ready, &pins);
        for (source, name) in SOURCES.iter().enumerate() {
            let takes = offered[source] && bench.is(&format!("{name}_tready"));
            let mine = taken.is_some() && owner == Some(source);
            assert_eq!(takes, mine, "{name}, cycle {cycle}");
            if takes {
                let [_, _, last] = words[source].pop_front().expect("it is offered");
                offered[source] = false;
                if last == 1 {
                    last_owner = owner.take();
                }
            }
        }
        bench.step();
    }
    assert!(frames.iter().all(|n| *n > 3), "{frames:?}");
}

#[test]
fn frames_of_both_sides_go_out_whole_and_in_turn() {
    for_seeds(16, joins);
}

#[test]
fn each_broken_contract_of_the_mux_is_noticed() {
    breaks("frame_mux", 8, joins);
}

/// Frames of any length go by, some of them for the firmware, and a processor reads and takes.
fn keeps(rng: &mut ChaCha8Rng) -> [u64; 2] {
    let mut bench = Bench::open("firmware_in");
    let (busy, takes) = (rate(rng), [0.002, 0.02, 0.2][rng.random_range(0..3)]);
    let mut kept: VecDeque<Vec<u64>> = VecDeque::new();
    let mut coming: Vec<u64> = vec![];
    let (mut at, mut accepted) = (0, false);
    let mut asked: Option<u32> = None;
    let mut counts = [0; 2];
    for cycle in 0..8000 {
        if at == coming.len() {
            accepted = rng.random_bool(0.6);
            let other = [1, 5, WORDS, WORDS + 1, 40, 138][rng.random_range(0..6)];
            let length = if accepted { WORDS + 1 } else { other };
            coming = (0..length).map(|_| rng.random()).collect();
            at = 0;
        }
        let valid = rng.random_bool(busy);
        let last = valid && at + 1 == coming.len();
        let take = rng.random_bool(takes);
        let word = rng.random_range(0..FRAME_WORDS);
        bench.set("word_valid", valid);
        // Nobody looks at these in between.
        bench.set(
            "word_index",
            if valid {
                at as u64
            } else {
                rng.random_range(0..140)
            },
        );
        bench.set("word", if valid { coming[at] } else { rng.random() });
        bench.set("accept", last && accepted);
        bench.set("take", take);
        bench.set("read_address", word as u64);
        bench.eval();
        assert_eq!(bench.is("valid"), !kept.is_empty(), "cycle {cycle}");
        if let Some(wanted) = asked {
            assert_eq!(bench.get("read_data"), u64::from(wanted), "cycle {cycle}");
        }
        asked = kept
            .front()
            .map(|frame| (frame[word / 2] >> (32 * (word % 2))) as u32);
        let room = kept.len() < FRAMES_IN;
        let arrives = last && accepted;
        assert_eq!(
            bench.is("count_frames_received"),
            arrives && room,
            "cycle {cycle}"
        );
        assert_eq!(
            bench.is("count_frames_dropped"),
            arrives && !room,
            "cycle {cycle}"
        );
        if take {
            kept.pop_front();
        }
        if arrives && room {
            kept.push_back(coming[..WORDS].to_vec());
        }
        counts[0] += u64::from(arrives && room);
        counts[1] += u64::from(arrives && !room);
        at += usize::from(valid);
        bench.step();
    }
    counts
}

#[test]
fn frames_for_the_firmware_are_kept_in_order_or_counted() {
    let total = std::cell::Cell::new([0; 2]);
    for_seeds(12, |rng| {
        let [kept, dropped] = keeps(rng);
        total.set([total.get()[0] + kept, total.get()[1] + dropped]);
    });
    let [kept, dropped] = total.get();
    assert!(
        kept > 400 && dropped > 100,
        "{kept} kept, {dropped} dropped"
    );
}

#[test]
fn each_broken_contract_of_the_way_in_is_noticed() {
    breaks("firmware_in", 6, |rng| {
        keeps(rng);
    });
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_are_noticed() {
    mutants("firmware_out", 4, sends);
    mutants("frame_mux", 4, joins);
    mutants("firmware_in", 4, |rng| {
        keeps(rng);
    });
}
