//! `link::Loopback`, Verilated: whole frames to where they belong, in order, and the receiver's two
//! sources in turn.

use std::collections::VecDeque;

use abi::control::{CardSetup, Operation};
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::{Steady, set_control};
use hdl_tests::{Bench, for_seeds, rate};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

const MAC: u64 = 0x0605_0403_0201;

/// A word of a stream: data, `tkeep`, `tlast`, `tuser`.
type Word = [u64; 4];

/// A stream that the bench drives.
struct Source {
    name: &'static str,
    busy: f64,
    /// Never pauses within a frame.
    continuous: bool,
    words: VecDeque<Word>,
    offered: bool,
    within: bool,
}

impl Source {
    fn new(name: &'static str, continuous: bool, rng: &mut ChaCha8Rng) -> Self {
        Source {
            name,
            busy: rate(rng),
            continuous,
            words: VecDeque::new(),
            offered: false,
            within: false,
        }
    }

    fn drive(&mut self, bench: &mut Bench, rng: &mut ChaCha8Rng) {
        let goes_on = self.continuous && self.within;
        self.offered |= !self.words.is_empty() && (goes_on || rng.random_bool(self.busy));
        let noise = [rng.random(), rng.random(), rng.random(), rng.random()];
        let word = if self.offered { self.words[0] } else { noise };
        bench.set(&format!("{}_tvalid", self.name), self.offered);
        for (pin, value) in ["tdata", "tkeep", "tlast", "tuser"].iter().zip(word) {
            bench.set(&format!("{}_{pin}", self.name), value);
        }
    }

    fn taken(&mut self, bench: &Bench) -> Option<Word> {
        if !self.offered || !bench.is(&format!("{}_tready", self.name)) {
            return None;
        }
        self.offered = false;
        self.within = self.words[0][2] == 0;
        self.words.pop_front()
    }
}

/// A frame; the last word may say that it is bad.
fn frame(rng: &mut ChaCha8Rng, destination: u64, may_be_bad: bool) -> Vec<Word> {
    let length = rng.random_range(1..20);
    let bad = u64::from(may_be_bad && rng.random_bool(0.2));
    (0..length)
        .map(|k| {
            let data: u64 = rng.random();
            let first = destination | (data >> 48) << 48;
            let last = u64::from(k + 1 == length);
            [if k == 0 { first } else { data }, 0xff, last, last & bad]
        })
        .collect()
}

fn routes(rng: &mut ChaCha8Rng, total: usize) {
    let mut bench = Bench::open("loopback");
    let known = rng.random_bool(0.8);
    if known {
        let card = CardSetup {
            mac: MAC,
            ..Default::default()
        };
        set_control(&mut bench, Operation::CardSet, 0, &card.to_words());
        bench.set("control_valid", true);
        bench.eval();
        assert!(bench.is("control_ready"));
        bench.step();
        bench.set("control_valid", false);
    }
    let mut card = Source::new("card", true, rng);
    let mut wire = Source::new("s_axis", false, rng);
    let (receiver, sink) = (rate(rng), rate(rng));
    let mut steady: [Steady; 2] = Default::default();
    let mut out: VecDeque<Word> = VecDeque::new();
    let mut round: VecDeque<Word> = VecDeque::new();
    let mut arrived: VecDeque<Word> = VecDeque::new();
    // Whose frame the receiver is getting, and whose turn it is then.
    let mut from_wire: Option<bool> = None;
    let mut turn_of_wire: Option<bool> = None;
    let mut made = 0;
    for cycle in 0.. {
        while made < total && (card.words.len() < 40 || wire.words.len() < 40) {
            let to_itself = rng.random_bool(0.6);
            let destination = if to_itself {
                MAC
            } else {
                MAC + rng.random_range(1..9)
            };
            let words = frame(rng, destination, false);
            if to_itself && known {
                round.extend(&words);
            } else {
                out.extend(&words);
            }
            card.words.extend(words);
            let words = frame(rng, rng.clone().random(), true);
            arrived.extend(&words);
            wire.words.extend(words);
            made += 1;
        }
        card.drive(&mut bench, rng);
        bench.set("card_tuser", false);
        wire.drive(&mut bench, rng);
        bench.set("receive_tready", rng.random_bool(receiver));
        bench.set("m_axis_tready", rng.random_bool(sink));
        bench.eval();

        let read = |bench: &Bench, name: &str| {
            ["tdata", "tkeep", "tlast"].map(|pin| bench.get(&format!("{name}_{pin}")))
        };
        let [data, keep, last] = read(&bench, "receive");
        let word = [data, keep, last, last & bench.get("receive_tuser")];
        let [valid, takes] = ["receive_tvalid", "receive_tready"].map(|name| bench.is(name));
        let card_waits =
            card.offered && !card.within && known && card.words[0][0] << 16 == MAC << 16;
        let wire_waits = wire.offered && !wire.within;
        let own_frame = card.words.front().is_some_and(|w| w[0] == data) && !round.is_empty();
        if let Some(word) = steady[0].watch("receive", valid, takes, &word) {
            let wire_has_it = *from_wire.get_or_insert_with(|| !(own_frame && round[0][0] == data));
            let queue = if wire_has_it {
                &mut arrived
            } else {
                &mut round
            };
            let wanted = queue.pop_front().map(|w| w.to_vec());
            assert_eq!(Some(&word), wanted.as_ref(), "cycle {cycle}");
            if word[2] != 0 {
                assert!(
                    turn_of_wire.is_none_or(|turn| turn == wire_has_it),
                    "a source had two turns while the other waited, cycle {cycle}"
                );
                let other_waits = if wire_has_it { card_waits } else { wire_waits };
                turn_of_wire = other_waits.then_some(!wire_has_it);
                from_wire = None;
            }
        }
        let [data, keep, last] = read(&bench, "m_axis");
        let [valid, takes] = ["m_axis_tvalid", "m_axis_tready"].map(|name| bench.is(name));
        if let Some(word) = steady[1].watch("m_axis", valid, takes, &[data, keep, last]) {
            let wanted = out.pop_front().map(|w| w[..3].to_vec());
            assert_eq!(Some(word), wanted, "cycle {cycle}");
        }
        card.taken(&bench);
        wire.taken(&bench);
        if card.words.is_empty() && wire.words.is_empty() && made == total {
            break;
        }
        assert!(cycle < 1_000_000, "a frame is stuck");
        bench.step();
    }
    assert!(out.is_empty() && round.is_empty() && arrived.is_empty());
}

#[test]
fn frames_go_where_they_belong_whole_and_in_order() {
    for_seeds(12, |rng| routes(rng, 200));
}

#[test]
fn each_broken_contract_is_noticed() {
    breaks("loopback", 6, |rng| routes(rng, 200));
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_are_noticed() {
    mutants("loopback", 4, |rng| routes(rng, 200));
}
