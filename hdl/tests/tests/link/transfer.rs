//! Framer and Receive, Verilated, one after the other: what a frame is for one, it is for the other.

use abi::control::{CardSetup, Operation, PairSetup};
use abi::wire::{FRAME_READY, FrameType, frame_bytes};
use hdl::config::TINY;
use rand::{Rng, RngCore};
use rand_chacha::ChaCha8Rng;

use hdl_tests::fields::{pack, set_control, unpack};
use hdl_tests::{Bench, Size, for_size, for_sizes, rate};

/// Cycles in which a frame has certainly passed either block.
const PATIENCE: u64 = 20_000;

/// A message, its pair on either side, and the numbers that its frame carries.
struct Message {
    from: usize,
    to: usize,
    context: u16,
    match_bits: u64,
    immediate: u64,
    payload: Vec<u8>,
    ready: bool,
    put: bool,
    acknowledge: u32,
    credit: u32,
    refused: u16,
    /// A control frame says that a request of the peer is missing.
    misses: bool,
}

impl Message {
    fn random(rng: &mut ChaCha8Rng, (from, to): (usize, usize)) -> Self {
        let length = match rng.random_range(0..3) {
            0 => [0, 1, 7, 8, 9, 1023, 1024][rng.random_range(0..7)],
            _ => rng.random_range(0..100),
        };
        let mut payload = vec![0; length];
        rng.fill_bytes(&mut payload);
        let put: bool = rng.random();
        Message {
            from,
            to,
            context: rng.random(),
            match_bits: rng.random(),
            immediate: rng.random(),
            payload,
            ready: !put && rng.random(),
            put,
            acknowledge: rng.random(),
            credit: rng.random(),
            refused: rng.random(),
            misses: rng.random(),
        }
    }

    fn words(&self) -> Vec<u64> {
        let mut padded = self.payload.clone();
        padded.resize(padded.len().next_multiple_of(8), 0);
        let words = padded.chunks(8);
        words
            .map(|word| u64::from_le_bytes(word.try_into().expect("padded")))
            .collect()
    }
}

/// Both blocks, with pairs that are each other's.
struct Blocks {
    framer: Bench,
    receive: Bench,
    links: Vec<(usize, usize)>,
    willing: f64,
}

fn ready(bench: &mut Bench) {
    for cycle in 0.. {
        bench.eval();
        if bench.is("initialized") {
            return;
        }
        assert!(cycle < PATIENCE, "tables are cleared soon");
        bench.step();
    }
}

fn control(bench: &mut Bench, operation: Operation, index: usize, data: &[u64]) {
    set_control(bench, operation, index as u16, data);
    bench.set("control_valid", true);
    for cycle in 0.. {
        bench.eval();
        let done = bench.is("control_ready");
        bench.step();
        if done {
            break;
        }
        assert!(cycle < PATIENCE, "{operation} is done soon");
    }
    bench.set("control_valid", false);
}

impl Blocks {
    /// `size` is that of Framer; Receive has the same.
    fn open(size: &Size, rng: &mut ChaCha8Rng) -> Self {
        let mut framer = Bench::open(&size.model);
        let mut receive = Bench::open(&size.model.replace("framer", "receive"));
        ready(&mut framer);
        ready(&mut receive);
        let card = CardSetup {
            mac: rng.random::<u64>() >> 16,
            ..CardSetup::default()
        };
        control(&mut framer, Operation::CardSet, 0, &card.to_words());
        let others = size.pairs.iter().rev();
        let links: Vec<_> = size.pairs.iter().copied().zip(others.copied()).collect();
        for &(from, to) in &links {
            let here = PairSetup {
                remote_mac: rng.random::<u64>() >> 16,
                remote_endpoint: rng.random_range(0..16),
                remote_pair: to as u16,
                remote_epoch: rng.random(),
                cookie: rng.random(),
                endpoint: rng.random_range(0..16),
                epoch: rng.random(),
                ..PairSetup::default()
            };
            let there = PairSetup {
                remote_endpoint: here.endpoint.into(),
                remote_pair: from as u16,
                remote_epoch: here.epoch,
                cookie: here.cookie,
                endpoint: here.remote_endpoint as u8,
                epoch: here.remote_epoch,
                ..PairSetup::default()
            };
            control(&mut framer, Operation::PairSet, from, &here.to_words());
            control(&mut receive, Operation::PairSet, to, &there.to_words());
        }
        Blocks {
            framer,
            receive,
            links,
            willing: rate(rng).max(0.3),
        }
    }

    /// The frame that Framer makes of a message, or the control frame of its pair.
    fn frame(
        &mut self,
        message: &Message,
        control: Option<FrameType>,
        rng: &mut ChaCha8Rng,
    ) -> Vec<u64> {
        let bench = &mut self.framer;
        let fields = [
            (message.from as u64, 16),
            (message.context.into(), 16),
            (message.payload.len() as u64, 16),
            (message.match_bits, 64),
            (message.immediate, 64),
            ((u8::from(message.ready) * FRAME_READY).into(), 8),
            (message.put.into(), 1),
            // It goes out for the first time.
            (0, 1 + 32),
        ];
        bench.set_wide("message", &pack(&fields));
        bench.set("message_valid", control.is_none());
        let code = control.map_or(0, |frame_type| frame_type.code());
        let fields = [
            (message.from as u64, 16),
            (code.into(), 8),
            (message.misses.into(), 1),
        ];
        let control_frame = pack(&fields);
        bench.set("control_frame", control_frame[0]);
        bench.set("control_frame_valid", control.is_some());
        bench.set("lookup_acknowledge", message.acknowledge);
        bench.set("lookup_credit", message.credit);
        bench.set("lookup_refused", message.refused);
        let payload = message.words();
        let mut index = 0;
        let mut words = vec![];
        for cycle in 0.. {
            bench.set("payload", payload.get(index).copied().unwrap_or(0));
            bench.set("m_axis_tready", rng.random_bool(self.willing));
            bench.eval();
            let moves = |stream: &str| {
                bench.is(&format!("{stream}_valid")) && bench.is(&format!("{stream}_ready"))
            };
            let (taken, control) = (moves("message"), moves("control_frame"));
            index = bench.get("payload_index") as usize;
            let out = bench.is("m_axis_tvalid") && bench.is("m_axis_tready");
            let (data, last) = (bench.get("m_axis_tdata"), bench.is("m_axis_tlast"));
            bench.step();
            if taken {
                bench.set("message_valid", false);
            }
            if control {
                bench.set("control_frame_valid", false);
            }
            if out {
                words.push(data);
                if last {
                    return words;
                }
            }
            assert!(cycle < PATIENCE, "a frame comes out");
        }
        unreachable!()
    }

    /// What Receive makes of a frame: progress, envelope, payload, and how it counts.
    fn receive(&mut self, frame: &[u64], rng: &mut ChaCha8Rng) -> Received {
        const COUNTERS: [&str; 7] = [
            "frames_received",
            "crc_errors",
            "length_errors",
            "type_errors",
            "pair_errors",
            "duplicates",
            "gaps",
        ];
        let bench = &mut self.receive;
        let mut received = Received::default();
        let (mut at, mut offered, mut quiet) = (0, false, 0);
        while quiet < 20 {
            offered |= at < frame.len() && rng.random_bool(self.willing);
            bench.set("s_axis_tvalid", offered);
            bench.set("s_axis_tdata", frame.get(at).copied().unwrap_or(0));
            bench.set("s_axis_tkeep", 0xff_u64);
            bench.set("s_axis_tlast", at + 1 == frame.len());
            for stream in ["progress", "arrival", "payload"] {
                let takes = rng.random_bool(self.willing);
                bench.set(&format!("{stream}_ready"), takes);
            }
            bench.eval();
            let moves = |stream: &str| {
                bench.is(&format!("{stream}_valid")) && bench.is(&format!("{stream}_ready"))
            };
            if moves("progress") {
                let words = bench.get_wide::<3>("progress");
                received
                    .progress
                    .push(unpack(&words, [16, 32, 32, 1, 1, 1, 16]));
            }
            if moves("arrival") {
                let words = bench.get_wide::<3>("arrival");
                let fields = unpack(&words, [16, 8, 16, 64, 64, 16, 1, 1]);
                received.arrivals.push(fields);
            }
            if moves("payload") {
                received.payload.push(bench.get("payload"));
            }
            assert!(!bench.is("fault_request_valid"), "nothing is wrong");
            for name in COUNTERS {
                if bench.is(&format!("count_{name}")) {
                    received.counted.push(name);
                }
            }
            let waits = ["progress", "arrival", "payload"]
                .iter()
                .any(|stream| bench.is(&format!("{stream}_valid")));
            let taken = offered && bench.is("s_axis_tready");
            bench.step();
            if taken {
                at += 1;
                offered = false;
            }
            quiet = if at < frame.len() || waits {
                0
            } else {
                quiet + 1
            };
        }
        received
    }
}

#[derive(Default)]
struct Received {
    progress: Vec<[u64; 7]>,
    arrivals: Vec<[u64; 8]>,
    payload: Vec<u64>,
    counted: Vec<&'static str>,
}

#[test]
fn what_is_sent_is_what_is_received() {
    for_sizes("framer", 3, |size, rng| {
        let mut blocks = Blocks::open(size, rng);
        for _ in 0..150 {
            let at = rng.random_range(0..blocks.links.len());
            let message = Message::random(rng, blocks.links[at]);
            let control = rng.random_bool(0.3).then_some(FrameType::Acknowledge);
            let frame = blocks.frame(&message, control, rng);
            let received = blocks.receive(&frame, rng);
            let numbers = [
                message.to as u64,
                message.acknowledge.into(),
                message.credit.into(),
                0,
                (control.is_some() && message.misses).into(),
                0,
                message.refused.into(),
            ];
            assert_eq!(received.progress, [numbers]);
            assert_eq!(received.counted, ["frames_received"]);
            if control.is_some() {
                assert_eq!(frame.len() * 8, frame_bytes(0));
                assert!(received.arrivals.is_empty() && received.payload.is_empty());
                continue;
            }
            let length = message.payload.len();
            assert_eq!(frame.len() * 8, frame_bytes(length));
            let [arrival] = received.arrivals[..] else {
                panic!("{} arrivals", received.arrivals.len());
            };
            let [pair, _, context, match_bits, immediate, bytes, ready, put] = arrival;
            assert_eq!(pair, message.to as u64);
            assert_eq!(context, u64::from(message.context));
            assert_eq!(match_bits, message.match_bits);
            assert_eq!(immediate, message.immediate);
            assert_eq!(bytes, length as u64);
            assert_eq!(ready, u64::from(message.ready));
            assert_eq!(put, u64::from(message.put));
            assert_eq!(received.payload, message.words());
        }
    });
}

#[test]
fn a_frame_with_any_one_bit_changed_is_dropped_and_counted() {
    for_size(&TINY, "framer", 1, |size, rng| {
        let mut blocks = Blocks::open(size, rng);
        blocks.willing = 1.0;
        let mut message = Message::random(rng, blocks.links[0]);
        message.payload.resize(20, 0x5a);
        let frame = blocks.frame(&message, None, rng);
        for bit in 0..64 * frame.len() {
            let mut broken = frame.clone();
            broken[bit / 64] ^= 1 << (bit % 64);
            let received = blocks.receive(&broken, rng);
            assert!(received.progress.is_empty(), "bit {bit}");
            assert!(received.arrivals.is_empty(), "bit {bit}");
            assert!(received.payload.is_empty(), "bit {bit}");
            let [counted] = received.counted[..] else {
                panic!("bit {bit} counts as {:?}", received.counted);
            };
            assert!(["crc_errors", "length_errors", "type_errors"].contains(&counted));
        }
        // Nothing of them is left: the true one passes.
        let received = blocks.receive(&frame, rng);
        assert_eq!(received.payload, message.words());
        assert_eq!(received.counted, ["frames_received"]);
    });
}
