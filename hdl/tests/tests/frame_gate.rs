//! `link::FrameGate`, Verilated: frames stay whole on both sides of it while what is between is reset.

use std::collections::VecDeque;

use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::Steady;
use hdl_tests::{Bench, for_seeds, rate};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Number of the frame, of the word in it, and whether it is the last.
type Word = (u64, u64, bool);

const END_KEEP: u64 = 0x01;

/// A transmitter of numbered frames that pauses between them only, or not even there.
struct Source {
    frame: u64,
    words: VecDeque<Word>,
    offered: bool,
    begun: bool,
    continuous: bool,
    busy: f64,
}

impl Source {
    fn new(continuous: bool, rng: &mut ChaCha8Rng) -> Self {
        Source {
            frame: 0,
            words: VecDeque::new(),
            offered: false,
            begun: false,
            continuous,
            busy: rate(rng),
        }
    }

    fn drive(&mut self, bench: &mut Bench, port: &str, rng: &mut ChaCha8Rng) {
        if self.words.is_empty() {
            self.frame += 1;
            let length = rng.random_range(1..12);
            let frame = self.frame;
            self.words
                .extend((0..length).map(|k| (frame, k, k + 1 == length)));
        }
        self.offered |= (self.begun && self.continuous) || rng.random_bool(self.busy);
        let (frame, word, last) = match self.words.front() {
            Some(word) if self.offered => *word,
            _ => (rng.random(), rng.random_range(0..256), rng.random()),
        };
        bench.set(&format!("{port}_tvalid"), self.offered);
        bench.set(&format!("{port}_tdata"), frame << 8 | word);
        let keep = if self.offered { 0xff_u64 } else { rng.random() };
        bench.set(&format!("{port}_tkeep"), keep);
        bench.set(&format!("{port}_tlast"), last);
        bench.set(&format!("{port}_tuser"), rng.random_bool(0.5));
    }

    fn sample(&mut self, bench: &Bench, port: &str) {
        if self.offered && bench.is(&format!("{port}_tready")) {
            let (_, _, last) = self.words.pop_front().expect("it is offered");
            (self.offered, self.begun) = (false, !last);
        }
    }

    /// What a reset of the transmitter does: the frame is gone.
    fn restart(&mut self) {
        self.words.clear();
        (self.offered, self.begun) = (false, false);
    }
}

fn run(rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open("frame_gate");
    let mut transmit = Source::new(true, rng);
    let mut wire = Source::new(false, rng);
    let (sink, receiver) = (rate(rng), rate(rng));
    let mut steady = Steady::default();
    // Words of the frame that is going out, and whether its last one was offered.
    let mut out: Option<(u64, u64)> = None;
    let mut coming_in: Option<(u64, u64)> = None;
    let mut quiet_for = 0;
    let (mut cuts, mut rests, mut whole) = (0, 0, 0);
    // The frame that was cut, and that of which the rest is to be dropped.
    let mut cut: Option<u64> = None;
    let mut wire_inside: Option<u64> = None;
    let mut dropped: Option<u64> = None;
    for cycle in 0..6000 {
        transmit.drive(&mut bench, "transmit", rng);
        wire.drive(&mut bench, "s_axis", rng);
        bench.set("m_axis_tready", rng.random_bool(sink));
        bench.set("receive_tready", rng.random_bool(receiver));
        if quiet_for == 0 && rng.random_bool(0.01) {
            quiet_for = rng.random_range(2..30);
        }
        let (quiet, restart) = (quiet_for > 0, quiet_for == 1);
        bench.set("quiet", quiet);
        bench.set("restart", restart);
        bench.eval();

        // To the wire.
        assert_eq!(bench.is("idle"), out.is_none(), "cycle {cycle}");
        let valid = bench.is("m_axis_tvalid");
        assert!(
            valid || out.is_none(),
            "tvalid stays within a frame, cycle {cycle}"
        );
        let word = [
            bench.get("m_axis_tdata"),
            bench.get("m_axis_tkeep"),
            bench.get("m_axis_tlast"),
        ];
        let moved = steady.watch("m_axis", valid, bench.is("m_axis_tready"), &word);
        if valid {
            let ends_cut = out.is_some_and(|(frame, _)| cut == Some(frame)) && word[1] == END_KEEP;
            if ends_cut {
                assert_eq!(word[2], 1, "the word of one byte is the last");
            } else {
                let (frame, position) = (word[0] >> 8, word[0] & 0xff);
                assert_eq!(word[1], 0xff, "cycle {cycle}");
                let (begun, next) = out.unwrap_or((frame, 0));
                assert_eq!(
                    (frame, position),
                    (begun, next),
                    "words in order, cycle {cycle}"
                );
                assert!(out.is_some() || !quiet, "a frame begins in cycle {cycle}");
                out = Some((frame, next));
            }
            if moved.is_some() {
                let (frame, next) = out.expect("it has begun");
                out = (word[2] == 0).then_some((frame, next + 1));
                if word[2] == 1 {
                    cuts += u64::from(ends_cut);
                    whole += u64::from(!ends_cut);
                    cut = None;
                }
            }
        }

        // From the wire.
        let given = bench.is("receive_tvalid") && bench.is("receive_tready");
        let taken = wire.offered && bench.is("s_axis_tready");
        if let Some(&(frame, position, last)) = wire.words.front()
            && taken
        {
            if dropped == Some(frame) {
                assert!(!given, "the rest of a frame arrives in cycle {cycle}");
            } else {
                assert!(given, "a word is lost in cycle {cycle}");
                assert_eq!(bench.get("receive_tdata"), frame << 8 | position);
                assert_eq!(bench.is("receive_tlast"), last);
                assert_eq!(bench.is("receive_tuser"), bench.is("s_axis_tuser"));
                let (begun, next) = coming_in.unwrap_or((frame, 0));
                assert_eq!((frame, position), (begun, next), "cycle {cycle}");
                coming_in = (!last).then_some((frame, position + 1));
            }
            wire_inside = (!last).then_some(frame);
        } else {
            assert!(!given, "a word from nowhere in cycle {cycle}");
        }

        transmit.sample(&bench, "transmit");
        wire.sample(&bench, "s_axis");
        if restart {
            // A frame that is being ended already goes on so.
            cut = out.map(|(frame, _)| frame);
            transmit.restart();
            coming_in = None;
            rests += u64::from(wire_inside.is_some());
            dropped = wire_inside;
        }
        quiet_for -= u64::from(quiet);
        bench.step();
    }
    assert!(cuts + whole > 30, "{cuts} and {whole} frames");
    if sink < 0.5 && wire.busy < 0.5 {
        assert!(cuts > 3 && rests > 3, "{cuts} frames cut, {rests} dropped");
    }
}

#[test]
fn frames_are_whole_on_both_sides_of_a_reset() {
    for_seeds(24, run);
}

#[test]
fn each_broken_contract_is_noticed() {
    breaks("frame_gate", 24, run);
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_are_noticed() {
    mutants("frame_gate", 12, run);
}

#[test]
fn nothing_is_offered_or_taken_in_reset() {
    let mut bench = Bench::open("frame_gate");
    for pin in [
        "transmit_tvalid",
        "s_axis_tvalid",
        "m_axis_tready",
        "receive_tready",
    ] {
        bench.set(pin, true);
    }
    bench.set("reset", true);
    bench.eval();
    assert!(!bench.is("m_axis_tvalid") && !bench.is("s_axis_tready"));
    bench.set("reset", false);
    bench.eval();
    assert!(bench.is("m_axis_tvalid") && bench.is("s_axis_tready"));
}
