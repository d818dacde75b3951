//! `link::Framer`, Verilated, against `Transmit` of the model of the card: every message becomes one frame with the right bytes and the next number of its pair, and so does
//! every control frame; neither waits for more than one of the other; and the end of a pair never waits for the wire.

use std::collections::{HashMap, VecDeque};

use abi::control::{CardSetup, Operation, PairSetup};
use abi::limits::EAGER_MAX;
use abi::request::{FLAG_READY, Opcode, SendRequest};
use abi::wire::{FrameHeader, FrameType, HEADER_BYTES};
use card_model::link::{Asked, Owed, SinkNumbers, Transmit, seal};
use hdl::config;
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::{Steady, pack, set_control};
use hdl_tests::{Bench, Size, for_sizes, rate};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Message,
    Put,
    Get,
    Answer,
    /// The answer of a get that is refused.
    Refusal,
}

#[derive(Clone, Debug)]
struct Message {
    pair: usize,
    context: u16,
    match_bits: u64,
    immediate: u64,
    ready: bool,
    kind: Kind,
    /// Bytes of payload, or that are wanted.
    length: usize,
    /// It has been sent before, as this number.
    again: bool,
    number: u32,
    payload: Vec<u8>,
}

impl Message {
    fn random(size: &Size, rng: &mut ChaCha8Rng) -> Self {
        let mut length: usize = match rng.random_range(0..4) {
            0 => [0, 1, 7, 8, 9, EAGER_MAX - 1, EAGER_MAX][rng.random_range(0..7)],
            1 => rng.random_range(0..=EAGER_MAX),
            _ => rng.random_range(0..40),
        };
        let kind = match rng.random_range(0..8) {
            0..3 => Kind::Message,
            3 | 4 => Kind::Put,
            5 => Kind::Get,
            6 => Kind::Answer,
            _ => Kind::Refusal,
        };
        if kind == Kind::Refusal {
            length = 0;
        }
        let payload = if kind == Kind::Get { 0 } else { length };
        Message {
            pair: size.pair(rng),
            context: rng.random(),
            match_bits: rng.random(),
            immediate: rng.random(),
            ready: kind == Kind::Message && rng.random(),
            kind,
            length,
            again: false,
            number: rng.random(),
            payload: (0..payload).map(|_| rng.random()).collect(),
        }
    }

    fn words(&self) -> Vec<u64> {
        pack(&[
            (self.pair as u64, 16),
            (self.context.into(), 16),
            (self.length as u64, 16),
            (self.match_bits, 64),
            (self.immediate, 64),
            (self.ready.into(), 8),
            ((self.kind == Kind::Put).into(), 1),
            ((self.kind == Kind::Get).into(), 1),
            (self.is_answer().into(), 1),
            ((self.kind == Kind::Refusal).into(), 1),
            (self.again.into(), 1),
            (self.number.into(), 32),
        ])
    }

    /// Words of the payload memory: zero beyond the payload.
    fn payload_words(&self) -> Vec<u64> {
        let words = self.payload.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        words.collect()
    }

    fn is_answer(&self) -> bool {
        matches!(self.kind, Kind::Answer | Kind::Refusal)
    }

    /// The get that it answers.
    fn asked(&self) -> Asked {
        Asked {
            pair: self.pair as u16,
            number: self.number,
            key: self.match_bits,
            offset: self.immediate,
            length: self.length as u16,
            again: false,
        }
    }

    fn request(&self) -> SendRequest {
        let opcode = match self.kind {
            Kind::Put => Opcode::Put,
            Kind::Get => Opcode::Get,
            _ => Opcode::TaggedSend,
        };
        SendRequest {
            opcode: opcode.code(),
            flags: if self.ready { FLAG_READY } else { 0 },
            context: self.context,
            length: self.length as u64,
            match_bits: self.match_bits,
            immediate: self.immediate,
            ..SendRequest::default()
        }
    }
}

/// Looked up when a frame begins, so unknown when it is taken.
const UNKNOWN: SinkNumbers = SinkNumbers {
    accepted: 0,
    freed: 0,
    refused: 0,
};

/// Cycles in which a control request is done, whatever the wire does.
const CONTROL_CYCLES: u64 = 4;

fn sends(size: &Size, rng: &mut ChaCha8Rng, total: usize) {
    let mut bench = Bench::open(&size.model);
    let mut model = Transmit::new(size.config.pairs);
    // The number of each open pair's next message.
    let mut sequences: Vec<Option<u32>> = vec![None; size.config.pairs];
    let (busy, chatty, ready) = (rate(rng), rate(rng), rate(rng));
    let mut steady = Steady::default();
    let mut message: Option<Message> = None;
    // Payload of the message that was taken, and the index of the cycle before.
    let mut payload: Vec<u64> = vec![];
    let mut index = 0;
    let mut control: Option<(Operation, usize, PairSetup, CardSetup, u64)> = None;
    let mut control_frame: Option<(usize, Owed)> = None;
    let mut frames: VecDeque<Vec<u8>> = VecDeque::new();
    let mut bytes: Vec<u8> = vec![];
    // Numbers given by the lookup of each cycle: by the acknowledge the pair, credit, and what was refused.
    let mut given: HashMap<u32, (usize, u32, u16)> = HashMap::new();
    let mut lookup = 0;
    // What the pair that is looked up in this cycle is told to be in the next.
    let mut failed = false;
    let (mut made, mut idle, mut done, mut counted) = (0, 0, 0, 0);
    // What went out last while both a message and a control frame waited.
    let mut last_of_both: Option<bool> = None;

    for cycle in 0u64.. {
        if message.is_none() && made < total && rng.random_bool(busy) {
            let mut next = Message::random(size, rng);
            // One that goes out again is mostly one of the latest; one that was passed over is one of the next.
            if !next.is_answer() && rng.random_bool(0.4) {
                let latest = sequences[next.pair].unwrap_or_default();
                next.again = true;
                next.number = latest.wrapping_add(3).wrapping_sub(rng.random_range(0..20));
            }
            message = Some(next);
            made += 1;
        }
        bench.set("message_valid", message.is_some());
        if let Some(message) = &message {
            bench.set_wide("message", &message.words());
        }
        let noise = rng.random();
        bench.set("payload", payload.get(index).copied().unwrap_or(noise));
        if control_frame.is_none() && made < total && rng.random_bool(chatty) {
            let types = [
                FrameType::Acknowledge,
                FrameType::PairFailed,
                FrameType::PairClosed,
                FrameType::Ask,
            ];
            let owed = Owed {
                frame_type: types[rng.random_range(0..4)],
                misses: rng.random(),
                only_numbers: false,
            };
            control_frame = Some((size.pair(rng), owed));
        }
        bench.set("control_frame_valid", control_frame.is_some());
        if let Some((pair, owed)) = control_frame {
            let fields = [
                (pair as u64, 16),
                (owed.frame_type.code().into(), 8),
                (owed.misses.into(), 1),
            ];
            bench.set("control_frame", pack(&fields)[0]);
        }
        let closed = size.pairs.iter().any(|pair| sequences[*pair].is_none());
        let often = if closed { 0.2 } else { 0.01 };
        if control.is_none() && cycle > size.config.pairs as u64 + 2 && rng.random_bool(often) {
            let operations = [
                Operation::PairSet,
                Operation::PairSet,
                Operation::PairSet,
                Operation::PairClear,
                Operation::CardSet,
            ];
            let setup = PairSetup {
                remote_mac: rng.random::<u64>() >> 16,
                remote_endpoint: rng.random(),
                remote_pair: rng.random(),
                remote_epoch: rng.random(),
                cookie: rng.random(),
                endpoint: rng.random(),
                epoch: rng.random(),
                ..Default::default()
            };
            let setup_card = CardSetup {
                mac: rng.random::<u64>() >> 16,
                ..Default::default()
            };
            let operation = operations[rng.random_range(0..operations.len())];
            control = Some((operation, size.pair(rng), setup, setup_card, cycle));
        }
        bench.set("control_valid", control.is_some());
        if let Some((operation, pair, setup, setup_card, _)) = &control {
            let data = match operation {
                Operation::CardSet => setup_card.to_words().to_vec(),
                _ => setup.to_words().to_vec(),
            };
            set_control(&mut bench, *operation, *pair as u16, &data);
        }
        let (acknowledge, credit, refused) = (rng.random(), rng.random(), rng.random());
        given.insert(acknowledge, (lookup, credit, refused));
        bench.set("lookup_acknowledge", acknowledge);
        bench.set("lookup_credit", credit);
        bench.set("lookup_refused", refused);
        bench.set("lookup_failed", failed);
        failed = rng.random_bool(0.2);
        bench.set("m_axis_tready", rng.random_bool(ready));
        bench.eval();

        lookup = bench.get("lookup_pair") as usize;
        index = bench.get("payload_index") as usize;
        done += bench.get("payload_done");
        counted += bench.get("count_frames_sent");
        let both = message.is_some() && control_frame.is_some();
        let taken = [
            message.is_some() && bench.is("message_ready"),
            control_frame.is_some() && bench.is("control_frame_ready"),
        ];
        assert_ne!(taken, [true; 2], "one frame begins at a time");
        assert_eq!(bench.is("lookup_begins"), taken != [false; 2]);
        if taken != [false; 2] {
            assert!(
                !both || taken[1] || last_of_both == Some(true),
                "a control frame goes first"
            );
            assert!(
                !both || taken[0] || last_of_both != Some(true),
                "but not twice running"
            );
            last_of_both = Some(taken[1]);
        }
        if taken[0] {
            let message = message.take().expect("it is taken");
            payload = message.payload_words();
            if message.is_answer() {
                let payload = (message.kind == Kind::Answer).then_some(&message.payload[..]);
                let frame = model.answer(&message.asked(), payload, UNKNOWN);
                frames.extend(frame.filter(|_| !failed));
            } else if let Some(sequence) = &mut sequences[message.pair] {
                let Message { pair, payload, .. } = &message;
                let request = message.request();
                let number = match message.again {
                    true => message.number,
                    false => *sequence,
                };
                frames.extend(model.request(*pair as u16, number, &request, payload, UNKNOWN));
                // One that goes out again doesn't count, unless it was passed over the first time.
                let follows = number.wrapping_add(1);
                if follows.wrapping_sub(*sequence) >> 31 == 0 {
                    *sequence = follows;
                }
            }
        }
        if taken[1] {
            let (pair, owed) = control_frame.take().expect("it is taken");
            frames.extend(model.control(pair as u16, &owed, UNKNOWN));
        }
        if let Some((operation, pair, setup, setup_card, since)) = control {
            assert!(
                cycle <= since + CONTROL_CYCLES,
                "{operation} waits for the wire"
            );
            if bench.is("control_ready") {
                if operation == Operation::CardSet {
                    model.mac = setup_card.mac;
                } else {
                    let is_set = operation == Operation::PairSet;
                    model.set(pair as u16, is_set.then_some(setup));
                    sequences[pair] = is_set.then_some(0);
                }
                control = None;
            }
        }
        let stream = ["m_axis_tdata", "m_axis_tkeep", "m_axis_tlast"].map(|name| bench.get(name));
        let [valid, takes] = ["m_axis_tvalid", "m_axis_tready"].map(|name| bench.is(name));
        assert!(
            valid || bytes.is_empty(),
            "the frame pauses in cycle {cycle}"
        );
        if let Some(words) = steady.watch("m_axis", valid, takes, &stream) {
            assert_eq!(words[1], 0xff);
            bytes.extend(words[0].to_le_bytes());
            if words[2] != 0 {
                let found = FrameHeader::parse(&bytes).expect("it has a header");
                let (pair, credit, refused) = given[&found.acknowledge];
                assert_eq!(
                    pair,
                    usize::from(found.source_pair),
                    "numbers of another pair"
                );
                let numbers = (found.credit, found.refused);
                assert_eq!((credit, refused), numbers, "numbers of two moments");
                let frame = frames.pop_front().expect("a frame was to be sent");
                let header = FrameHeader::parse(&frame).expect("it has a header");
                let payload = &frame[HEADER_BYTES..][..header.payload_length.into()];
                let header = FrameHeader {
                    acknowledge: found.acknowledge,
                    credit: found.credit,
                    refused: found.refused,
                    ..header
                };
                assert_eq!(found, header, "cycle {cycle}");
                assert_eq!(bytes, seal(&header, payload), "cycle {cycle}");
                bytes.clear();
            }
        }
        let quiet = message.is_none() && control.is_none() && control_frame.is_none();
        idle = if quiet && frames.is_empty() && made == total {
            idle + 1
        } else {
            0
        };
        if idle > 20 {
            break;
        }
        assert!(cycle < 400_000, "the framer hangs");
        bench.step();
    }
    assert!(bytes.is_empty());
    assert_eq!(done, total as u64, "each payload is done with once");
    assert!(counted > total as u64 / 8, "{counted} frames");
}

#[test]
fn messages_and_control_frames_become_frames() {
    for_sizes("framer", 8, |size, rng| sends(size, rng, 200));
}

#[test]
fn a_block_that_is_broken_is_noticed() {
    breaks("framer_tiny", 4, |rng| {
        let size = Size::new(&config::TINY, "framer", rng);
        sends(&size, rng, 100);
    });
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_are_noticed() {
    mutants("framer_tiny", 1, |rng| {
        let size = Size::new(&config::TINY, "framer", rng);
        sends(&size, rng, 100);
    });
}

/// Cycles from one frame's first word to the next one's, on a wire that takes a word in each cycle.
#[test]
fn short_messages_follow_each_other_without_a_loss() {
    let mut bench = Bench::open("framer_tiny");
    for _ in 0..20 {
        bench.step();
    }
    let setup = PairSetup::default();
    set_control(&mut bench, Operation::PairSet, 1, &setup.to_words());
    bench.set("control_valid", true);
    bench.step();
    bench.set("control_valid", false);
    bench.set("message_valid", true);
    bench.set_wide(
        "message",
        &pack(&[(1, 16), (0, 16), (8, 16), (0, 64), (0, 64), (0, 44)]),
    );
    bench.set("m_axis_tready", true);
    let mut ends = vec![];
    for cycle in 0..200 {
        bench.eval();
        if bench.is("m_axis_tvalid") && bench.is("m_axis_tlast") {
            ends.push(cycle);
        }
        bench.step();
    }
    // Eleven beats; the two cycles between frames are fewer than a wire's preamble, check sequence and gap take.
    assert!(ends.windows(2).all(|two| two[1] - two[0] == 13), "{ends:?}");
}
