//! `link::Receive`, Verilated, against the link of the model of the card: hostile frames do nothing but count, good ones
//! come through whole and in order, and a request that is missing is reported once for each round of its sender.
//!
//! What the model says of a frame holds from the cycle in which the block counts it; a fault that is offered holds two
//! cycles after it has been taken.

use std::cell::Cell;
use std::collections::VecDeque;

use abi::control::{Counter, Operation, PairCounter, PairReport, PairSetup};
use abi::limits::EAGER_MAX;
use abi::status::Status;
use abi::wire::{
    ETHERTYPE_FIELD, FRAME_GAP, FRAME_READY, FRAME_REFUSED, FrameHeader, FrameType,
    MANAGEMENT_BYTES, VERSION, frame_bytes,
};
use card_model::Break;
use card_model::link::{Receive, Screened, screen_for, seal};
use hdl::config;
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::{Steady, pack, set_control, unpack};
use hdl_tests::{Bench, Size, for_size, for_sizes, is_caught, rate};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Counters with their pins.
const COUNTERS: [(Counter, &str); 7] = [
    (Counter::FramesReceived, "frames_received"),
    (Counter::CrcErrors, "crc_errors"),
    (Counter::LengthErrors, "length_errors"),
    (Counter::TypeErrors, "type_errors"),
    (Counter::PairErrors, "pair_errors"),
    (Counter::Duplicates, "duplicates"),
    (Counter::Gaps, "gaps"),
];

/// Those of the screen, which counts a frame in the cycle of its last word.
const SCREENED: [Counter; 3] = [
    Counter::CrcErrors,
    Counter::LengthErrors,
    Counter::TypeErrors,
];

/// A frame on the wire: words with their `tkeep`, and the MAC's opinion.
struct Frame {
    words: Vec<(u64, u8)>,
    bad: bool,
}

impl Frame {
    fn bytes(&self) -> Vec<u8> {
        self.words
            .iter()
            .flat_map(|(w, _)| w.to_le_bytes())
            .collect()
    }

    fn of(bytes: &[u8]) -> Self {
        let words = bytes
            .chunks(8)
            .map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                (u64::from_le_bytes(word), 0xff >> (8 - chunk.len()))
            })
            .collect();
        Frame { words, bad: false }
    }
}

/// Whether a frame of this type is the firmware's.
fn is_firmwares(frame_type: u8) -> bool {
    [FrameType::Handshake, FrameType::Management]
        .map(FrameType::code)
        .contains(&frame_type)
}

/// What the first half makes of a frame. What the MAC calls bad, and a word that isn't whole, only pins can show: to the model the first is a
/// wrong CRC, and the second a length that is none.
fn screened(frame: &Frame, broken: Break) -> Result<Screened, Counter> {
    if frame.bad {
        return Err(Counter::CrcErrors);
    }
    let mut bytes = frame.bytes();
    if frame.words.iter().any(|(_, keep)| *keep != 0xff) {
        bytes.push(0);
    }
    screen_for(&bytes, broken, config::TINY.capabilities)
}

/// A pair, as its peer sees it.
#[derive(Clone, Copy, Default)]
struct Pair {
    setup: Option<PairSetup>,
    /// It has failed, or is about to.
    failed: bool,
    requests: u32,
    control: u32,
    /// The first request that the wire has lost, to which the peer hasn't gone back.
    lost: Option<u32>,
    /// A frame that ends it was the last one: there may be another, which comes too late.
    ends: bool,
}

impl Pair {
    /// Number of the request that comes next. Some are lost, at times several at once; those behind come until the peer goes back, and what it
    /// sends again may be lost again.
    fn next_request(&mut self, rng: &mut ChaCha8Rng) -> u32 {
        match self.lost {
            None if rng.random_bool(0.05) => {
                self.lost = Some(self.requests);
                self.requests = self.requests.wrapping_add(rng.random_range(1..4));
            }
            Some(lost) if rng.random_bool(0.3) => {
                self.requests = lost;
                match rng.random_bool(0.4) {
                    true => self.requests = lost.wrapping_add(1),
                    false => self.lost = None,
                }
            }
            _ => {}
        }
        let number = self.requests;
        self.requests = number.wrapping_add(1);
        number
    }
}

/// What a claim is told.
#[derive(Clone, Copy)]
struct Claimed {
    taken: bool,
    domain: u64,
    key: u64,
    address: u64,
}

/// What must come out.
struct Expected {
    model: Receive,
    /// Faults that were taken: pair, and the cycle from which its frames are refused.
    faulted: Vec<(u16, u64)>,
    screened: VecDeque<Screened>,
    progress: VecDeque<[u64; 7]>,
    arrivals: VecDeque<[u64; 13]>,
    payload: VecDeque<u64>,
    faults: VecDeque<[u64; 2]>,
    counts: [u64; COUNTERS.len()],
    /// Frames for the firmware.
    firmware: u64,
    /// Reads of a pair whose peer had not been heard of, and had.
    heard: [u64; 2],
    /// Answers that weren't awaited, and were; gets that came again.
    answers: [u64; 2],
    repeated: u64,
}

impl Expected {
    fn new(pairs: usize, broken: Break) -> Self {
        let mut model = Receive::new(pairs);
        model.break_on_purpose(broken);
        Self {
            model,
            faulted: Vec::new(),
            screened: VecDeque::new(),
            progress: VecDeque::new(),
            arrivals: VecDeque::new(),
            payload: VecDeque::new(),
            faults: VecDeque::new(),
            counts: [0; COUNTERS.len()],
            firmware: 0,
            heard: [0; 2],
            answers: [0; 2],
            repeated: 0,
        }
    }

    fn count(&mut self, counter: Counter) {
        let at = COUNTERS.iter().position(|(known, _)| *known == counter);
        self.counts[at.expect("a counter of the block")] += 1;
    }

    /// A pair is connected or forgotten; faults of the one before are nobody's.
    fn set(&mut self, pair: u16, setup: Option<PairSetup>) {
        self.faulted.retain(|(of, _)| *of != pair);
        self.model.set(pair, setup);
    }

    /// The second half's opinion of the oldest good frame, in the cycle in which it is judged, the pair that it names, and the one that it fails.
    /// The answer of a get is judged when its claim is answered.
    fn judge(
        &mut self,
        cycle: u64,
        claim: Option<(Vec<u64>, Claimed)>,
    ) -> (Counter, u16, Option<u16>) {
        let due = self.faulted.extract_if(.., |(_, from)| *from <= cycle);
        due.for_each(|(pair, _)| self.model.fail(pair));
        let frame = self.screened.pop_front().expect("a frame to be judged");
        let mut judged = self.model.judge(&frame);
        let header = &frame.header;
        let claims = frame.is_response() && judged.progress.is_some();
        let asked = claim.as_ref().map(|(asked, _)| asked.clone());
        let wanted = [
            header.destination_pair.into(),
            header.sequence.into(),
            header.payload_length.into(),
            u64::from(header.flags & FRAME_REFUSED != 0),
        ];
        assert_eq!(asked, claims.then(|| wanted.to_vec()), "cycle {cycle}");
        if let Some((_, claimed)) = claim {
            self.answers[usize::from(claimed.taken)] += 1;
            match claimed.taken {
                true => self.arrive_answer(&frame, &claimed),
                false => judged.counter = PairCounter::Duplicates,
            }
        }
        let counter = judged
            .counter
            .of_card()
            .expect("the card counts what becomes of frames");
        self.count(counter);
        let pair = frame.header.destination_pair;
        // A duplicate of a request said nothing to its sender, which had lost the acknowledgement, and sent it again and again.
        if let Some(progress) = judged.progress {
            self.progress.push_back([
                progress.pair.into(),
                progress.acknowledge.into(),
                progress.credit.into(),
                progress.ask.into(),
                progress.gap.into(),
                progress.misses.into(),
                progress.refused.into(),
            ]);
        }
        if let Some(arrival) = judged.arrival {
            let asks = arrival.asks.as_ref();
            let again = asks.is_some_and(|asks| asks.again);
            self.repeated += u64::from(again);
            self.arrivals.push_back([
                arrival.pair.into(),
                arrival.endpoint.into(),
                arrival.context.into(),
                arrival.match_bits,
                arrival.immediate,
                asks.map_or(arrival.payload.len() as u64, |asks| asks.length.into()),
                arrival.ready.into(),
                (arrival.put || asks.is_some()).into(),
                asks.is_some().into(),
                again.into(),
                0,
                0,
                frame.header.sequence.into(),
            ]);
            self.carry(&arrival.payload);
        }
        let fails = judged.fails.map(|status| [pair.into(), status.into()]);
        self.faults.extend(fails);
        (counter, pair, fails.map(|_| pair))
    }

    /// The answer of a get that waits for it goes on, with the place of its bytes.
    fn arrive_answer(&mut self, frame: &Screened, claimed: &Claimed) {
        let header = &frame.header;
        let setup = self.model.setup(header.destination_pair);
        self.arrivals.push_back([
            header.destination_pair.into(),
            setup.expect("it is connected").endpoint.into(),
            header.context.into(),
            claimed.address,
            claimed.key | claimed.domain << 32,
            header.payload_length.into(),
            0,
            1,
            0,
            0,
            1,
            (header.flags & FRAME_REFUSED != 0).into(),
            header.sequence.into(),
        ]);
        self.carry(&frame.payload);
    }

    fn carry(&mut self, payload: &[u8]) {
        let words = payload.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        self.payload.extend(words);
    }
}

fn random_setup(rng: &mut ChaCha8Rng, index: usize) -> PairSetup {
    PairSetup {
        remote_endpoint: rng.random_range(0..16),
        remote_pair: rng.random(),
        remote_epoch: rng.random(),
        cookie: rng.random(),
        endpoint: index as u8 % 2,
        epoch: rng.random(),
        remote_credits: 8,
        local_credits: 8,
        slots: rng.random(),
        ..Default::default()
    }
}

/// A frame as the peer of a pair would send it.
fn honest(size: &Size, rng: &mut ChaCha8Rng, pairs: &mut [Pair]) -> (FrameHeader, Vec<u8>) {
    let mut index = size.pair(rng);
    if pairs[index].failed || pairs[index].setup.is_none() {
        index = size.pair(rng); // Rarely on such a pair.
    }
    if let Some(ended) = pairs.iter().position(|pair| pair.ends) {
        pairs[ended].ends = false;
        index = if rng.random_bool(0.7) { ended } else { index };
    }
    let pair = &mut pairs[index];
    let s = pair.setup.unwrap_or_default();
    let frame_type = match rng.random_range(0..100) {
        0 => [FrameType::PairFailed, FrameType::PairClosed][rng.random_range(0..2)],
        90..95 => FrameType::Handshake,
        95..100 => FrameType::Management,
        1..20 => FrameType::Acknowledge,
        20..25 => FrameType::Ask,
        25..35 => FrameType::Put,
        35..45 => FrameType::Get,
        45..60 => FrameType::GetAnswer,
        _ => FrameType::Eager,
    };
    pair.ends = [FrameType::PairFailed, FrameType::PairClosed].contains(&frame_type);
    let refuses = frame_type == FrameType::GetAnswer && rng.random_bool(0.2);
    let carries = [FrameType::Eager, FrameType::Put, FrameType::GetAnswer].contains(&frame_type);
    let length = match (frame_type, rng.random_range(0..4)) {
        _ if refuses => 0,
        (_, 0) if carries => rng.random_range(0..=EAGER_MAX),
        (_, 1) if carries => [0, 1, 7, 8, 9, EAGER_MAX - 1, EAGER_MAX][rng.random_range(0..7)],
        _ if carries => rng.random_range(0..64),
        (FrameType::Handshake | FrameType::Management, _) => MANAGEMENT_BYTES,
        _ => 0,
    };
    let context = match frame_type {
        FrameType::Get => rng.random_range(0..=EAGER_MAX as u16),
        _ => rng.random(),
    };
    let payload: Vec<u8> = (0..length).map(|_| rng.random()).collect();
    let sequence = match frame_type {
        // Its answer was lost.
        FrameType::Get if rng.random_bool(0.2) => {
            pair.requests.wrapping_sub(rng.random_range(1..4))
        }
        FrameType::Eager | FrameType::Put | FrameType::Get => pair.next_request(rng),
        // Belongs to no pair of the gates, or is in no sequence, whatever it says.
        FrameType::Handshake | FrameType::Management | FrameType::GetAnswer => rng.random(),
        _ => {
            pair.control = pair.control.wrapping_add(1);
            pair.control.wrapping_sub(1)
        }
    };
    let header = FrameHeader {
        destination_mac: rng.random::<u64>() >> 16,
        source_mac_low: rng.random(),
        source_mac_high: rng.random(),
        ethertype: ETHERTYPE_FIELD,
        version: match frame_type {
            FrameType::Handshake => rng.random(),
            _ => VERSION,
        },
        frame_type: frame_type.code(),
        destination_endpoint: s.endpoint.into(),
        source_endpoint: s.remote_endpoint,
        destination_pair: index as u16,
        source_pair: s.remote_pair,
        destination_epoch: s.epoch,
        source_epoch: s.remote_epoch,
        cookie: s.cookie,
        sequence,
        acknowledge: rng.random(),
        credit: rng.random(),
        context,
        payload_length: length as u16,
        match_bits: rng.random(),
        immediate: rng.random(),
        message_length: length as u64,
        flags: match frame_type {
            FrameType::Eager => rng.random_range(0..=FRAME_READY),
            FrameType::Acknowledge | FrameType::Ask => rng.random_range(0..2) * FRAME_GAP,
            _ if refuses => FRAME_REFUSED,
            _ => 0,
        },
        refused: rng.random(),
    };
    (header, payload)
}

/// A frame that is wrong in one way, some of them so that only the last check finds it.
fn hostile(size: &Size, rng: &mut ChaCha8Rng, header: FrameHeader, payload: &[u8]) -> Frame {
    let mut h = header;
    let mut body = payload.to_vec();
    let flip16 = |rng: &mut ChaCha8Rng| 1u16 << rng.random_range(0..16);
    match rng.random_range(0..27) {
        // A get of more than a frame carries.
        25 => {
            h.frame_type = FrameType::Get.code();
            h.flags = 0;
            h.context = rng.random_range(EAGER_MAX as u16 - 1..EAGER_MAX as u16 + 3);
            body.clear();
            h.payload_length = 0;
            h.message_length = 0;
        }
        // A refusal that has bytes, and another frame that says that it is one.
        26 => {
            h.frame_type = match rng.random_range(0..6) {
                0 => FrameType::Get.code(),
                1 => FrameType::Put.code(),
                _ => FrameType::GetAnswer.code(),
            };
            h.flags = FRAME_REFUSED;
            body.resize(rng.random_range(0..17), 0x22);
            h.payload_length = body.len() as u16;
            h.message_length = body.len() as u64;
        }
        20 => {
            let length = rng.random_range(MANAGEMENT_BYTES - 8..MANAGEMENT_BYTES + 9);
            body.resize(length, 0x33);
            h.payload_length = length as u16;
            h.message_length = length as u64;
        }
        21 => h.frame_type ^= 1 << rng.random_range(4..8),
        // A card that speaks another version.
        22 => {
            let kinds = [FrameType::Handshake, FrameType::Management];
            h.frame_type = kinds[rng.random_range(0..2)].code();
            h.version = VERSION + rng.random_range(1..3);
            h.flags = 0;
            body.resize(MANAGEMENT_BYTES, 0x77);
            h.payload_length = MANAGEMENT_BYTES as u16;
            h.message_length = MANAGEMENT_BYTES as u64;
        }
        0 => h.ethertype ^= flip16(rng),
        1 => h.version ^= 1 << rng.random_range(0..8),
        2 => h.frame_type = rng.random(),
        3 if rng.random() => h.destination_pair = rng.random(),
        // Beyond the table, where low bits alone would name a pair.
        3 => h.destination_pair += size.config.pairs as u16,
        4 => h.destination_pair = size.pair(rng) as u16,
        5 => h.destination_endpoint ^= flip16(rng),
        6 => h.source_endpoint ^= flip16(rng),
        7 => h.source_pair ^= flip16(rng),
        8 => h.destination_epoch ^= flip16(rng),
        9 => h.source_epoch = h.source_epoch.wrapping_sub(1),
        10 => h.cookie ^= 1 << rng.random_range(0..32),
        11 => h.payload_length = h.payload_length.wrapping_add(rng.random_range(1..9)),
        12 => h.payload_length = rng.random(),
        13 => h.message_length = h.message_length.wrapping_add(1 << rng.random_range(0..40)),
        14 => body.resize(EAGER_MAX + rng.random_range(1..600), 0x5a),
        19 => h.flags ^= 1 << rng.random_range(0..8),
        15 => h.sequence = h.sequence.wrapping_sub(rng.random_range(1..1 << 20)),
        17 => h.sequence = h.sequence.wrapping_sub(rng.random_range(1..3)),
        16 | 18 => {
            h.sequence = h
                .sequence
                .wrapping_add([1, 1, 1 << rng.random_range(0..31)][rng.random_range(0..3)])
        }
        _ => {}
    }
    let mut bytes = seal(&h, &body);
    match rng.random_range(0..12) {
        0 => {
            let at = rng.random_range(0..bytes.len());
            bytes[at] ^= 1 << rng.random_range(0..8);
        }
        1 => bytes.truncate(rng.random_range(1..bytes.len())),
        2 => bytes.extend((0..rng.random_range(1..40)).map(|k| k as u8)),
        3 => {
            let at = bytes.len() - rng.random_range(1..=4);
            bytes[at] ^= 0x80;
        }
        _ => {}
    }
    let mut frame = Frame::of(&bytes);
    match rng.random_range(0..12) {
        0 => frame.bad = true,
        1 => {
            let at = rng.random_range(0..frame.words.len());
            frame.words[at].1 = rng.random();
        }
        _ => {}
    }
    frame
}

/// Sends `total` frames and compares everything that comes out with the model, which is broken on purpose.
fn frames(
    size: &Size,
    rng: &mut ChaCha8Rng,
    total: usize,
    broken: Break,
) -> ([u64; COUNTERS.len()], u64, [[u64; 2]; 2], u64) {
    let mut bench = Bench::open(&size.model);
    let mut pairs = vec![Pair::default(); size.config.pairs];
    let mut expected = Expected::new(size.config.pairs, broken);
    let hostility = [0.0, 0.1, 0.5][rng.random_range(0..3)];
    let busy = rate(rng);
    let willing: [f64; 5] = std::array::from_fn(|_| rate(rng));
    let mut steady: [Steady; 4] = Default::default();
    let mut sending: VecDeque<(u64, u8, bool, bool)> = VecDeque::new();
    let mut offered = false;
    let mut current: Option<Frame> = None;
    let mut counts = [0; COUNTERS.len()];
    let mut control: Option<(Operation, usize, PairSetup)> = None;
    let mut fault: Option<usize> = None;
    let mut asked: VecDeque<usize> = VecDeque::new();
    let (mut sent, mut idle) = (0, 0);

    for cycle in 0u64.. {
        // Pairs open, close and fail; a pair that has failed is set anew.
        let unfit = size.pairs.iter().copied().find(|p| {
            let under_way = asked.contains(p) || fault == Some(*p);
            !under_way && (pairs[*p].setup.is_none() || pairs[*p].failed)
        });
        let likely = if unfit.is_some() { 0.7 } else { 0.03 };
        if control.is_none() && sending.is_empty() && rng.random_bool(likely) {
            let mut index = unfit.unwrap_or_else(|| size.pair(rng));
            let operation = match rng.random_range(0..8) {
                0 if unfit.is_none() => Operation::PairClear,
                1..6 if unfit.is_none() => Operation::PairRead,
                6 => Operation::PairRead,
                _ => Operation::PairSet,
            };
            let setup = random_setup(rng, index);
            if unfit.is_none() && rng.random_bool(0.1) {
                // Beyond the table, where low bits alone would name a pair: nothing changes.
                index += size.config.pairs;
            }
            control = Some((operation, index, setup));
        }
        // Frames.
        let begins = sending.is_empty() && sent < total && control.is_none();
        if begins {
            let before = pairs.clone();
            let (header, payload) = honest(size, rng, &mut pairs);
            let good = seal(&header, &payload);
            let mut frame = Frame::of(&good);
            if rng.random_bool(hostility) {
                frame = hostile(size, rng, header, &payload);
                if frame.bytes() != good || screened(&frame, Break::None).is_err() {
                    pairs = before; // The peer hasn't sent it.
                }
            }
            let last = frame.words.len() - 1;
            sending = frame
                .words
                .iter()
                .enumerate()
                .map(|(k, (word, keep))| (*word, *keep, k == last, k == last && frame.bad))
                .collect();
            current = Some(frame);
            sent += 1;
        }
        if !offered {
            offered = !sending.is_empty() && rng.random_bool(busy);
        }
        let noise = (rng.random(), rng.random(), rng.random(), rng.random());
        let word = if offered { sending[0] } else { noise };
        bench.set("s_axis_tvalid", offered);
        bench.set("s_axis_tdata", word.0);
        bench.set("s_axis_tkeep", word.1);
        bench.set("s_axis_tlast", word.2);
        bench.set("s_axis_tuser", if word.2 { word.3 } else { rng.random() });

        bench.set("control_valid", control.is_some());
        if let Some((operation, index, setup)) = control {
            set_control(&mut bench, operation, index as u16, &setup.to_words());
        }
        if fault.is_none() {
            if let Some(pair) = asked.pop_front() {
                fault = Some(pair);
            } else if control.is_none() && begins && rng.random_bool(0.02) {
                fault = Some(size.pair(rng));
            }
        }
        bench.set("fault_valid", fault.is_some());
        let status = Status::LinkError.code().into();
        bench.set(
            "fault",
            pack(&[(fault.unwrap_or(0) as u64, 16), (status, 8)])[0],
        );
        let claimed = Claimed {
            taken: rng.random_bool(0.7),
            domain: rng.random_range(0..256),
            key: u64::from(rng.random::<u32>()),
            address: rng.random(),
        };
        for (name, willing) in ["progress", "arrival", "payload", "fault_request", "claim"]
            .iter()
            .zip(willing)
        {
            bench.set(&format!("{name}_ready"), rng.random_bool(willing));
        }
        bench.eval();
        // The claim is answered in the cycle in which it is taken.
        let claims = bench.is("claim_valid") && bench.is("claim_ready");
        bench.set("claimed_valid", claims);
        let fields = [
            (claimed.taken.into(), 1),
            (claimed.domain, 8),
            (claimed.key, 32),
            (claimed.address, 64),
        ];
        bench.set_wide("claimed", &pack(&fields));
        bench.eval();
        let claim = claims.then(|| {
            let words = bench.get_wide::<2>("claim");
            (unpack(&words, [16, 32, 16, 1]).to_vec(), claimed)
        });

        // What is judged in this cycle, before anything that it leads to.
        for (k, (counter, name)) in COUNTERS.iter().enumerate() {
            if bench.is(&format!("count_{name}")) {
                counts[k] += 1;
                if !SCREENED.contains(counter) {
                    let (verdict, named, fails) = expected.judge(cycle, claim.clone());
                    let counted = (*counter, bench.get("count_pair"));
                    assert_eq!(counted, (verdict, named.into()), "cycle {cycle}");
                    fails.inspect(|pair| pairs[usize::from(*pair)].failed = true);
                }
            }
        }
        let (mut passed, mut firmwares) = (false, false);
        if offered && bench.is("s_axis_tready") {
            offered = false;
            passed = true;
            sending.pop_front();
            let words = current.as_ref().expect("it is being sent").words.len();
            let index = words - 1 - sending.len();
            assert_eq!(
                bench.get("passes_index"),
                index.min(frame_bytes(EAGER_MAX) / 8) as u64,
                "cycle {cycle}"
            );
            if sending.is_empty() {
                let frame = current.take().expect("its words were sent");
                match screened(&frame, broken) {
                    Ok(good) if is_firmwares(good.header.frame_type) => {
                        firmwares = true;
                        expected.firmware += 1;
                    }
                    Err(counter) => {
                        expected.count(counter);
                        let mut pins = COUNTERS.iter().filter(|(of, _)| SCREENED.contains(of));
                        let counted = pins.find(|(_, name)| bench.is(&format!("count_{name}")));
                        let counted = counted.map(|(counter, _)| *counter);
                        assert_eq!(counted, Some(counter), "cycle {cycle}");
                    }
                    Ok(good) => expected.screened.push_back(good),
                }
            }
        }
        assert_eq!(bench.is("passes"), passed, "cycle {cycle}");
        assert_eq!(bench.is("firmware"), firmwares, "cycle {cycle}");
        let mut streams = ["progress", "arrival", "payload", "fault_request"]
            .iter()
            .zip(&mut steady)
            .map(|(name, steady)| {
                let valid = bench.is(&format!("{name}_valid"));
                let ready = bench.is(&format!("{name}_ready"));
                steady.watch(name, valid, ready, &bench.get_wide::<4>(name))
            });
        let mut taken = || streams.next().expect("four streams");
        let (progress, arrival, payload, request) = (taken(), taken(), taken(), taken());
        if let Some(words) = progress {
            let progress = unpack(&words, [16, 32, 32, 1, 1, 1, 16]);
            assert_eq!(
                Some(progress),
                expected.progress.pop_front(),
                "cycle {cycle}"
            );
        }
        if let Some(words) = arrival {
            let arrival = unpack(&words, [16, 8, 16, 64, 64, 16, 1, 1, 1, 1, 1, 1, 32]);
            assert_eq!(
                Some(arrival),
                expected.arrivals.pop_front(),
                "cycle {cycle}"
            );
        }
        if let Some(words) = payload {
            assert_eq!(
                Some(words[0]),
                expected.payload.pop_front(),
                "cycle {cycle}"
            );
        }
        if let Some(words) = request {
            let request = unpack(&words, [16, 8]);
            assert_eq!(Some(request), expected.faults.pop_front(), "cycle {cycle}");
            asked.push_back(request[0] as usize);
        }
        if let Some(pair) = fault
            && bench.is("fault_ready")
        {
            expected.faulted.push((pair as u16, cycle + 2));
            pairs[pair].failed = true;
            fault = None;
        }
        if let Some((operation, index, setup)) = control
            && bench.is("control_ready")
        {
            match operation {
                Operation::PairRead if index >= pairs.len() => {
                    assert_eq!(bench.get_wide::<2>("control_result"), [0; 2]);
                }
                _ if index >= pairs.len() => {}
                Operation::PairSet => {
                    // What its frames said is told before, lest it concern the next connection.
                    let told = expected.progress.iter().map(|told| told[0]);
                    let mut told = told.chain(expected.faults.iter().map(|fault| fault[0]));
                    assert!(told.all(|pair| pair != index as u64), "cycle {cycle}");
                    expected.set(index as u16, Some(setup));
                    pairs[index] = Pair {
                        setup: Some(setup),
                        ..Default::default()
                    };
                }
                Operation::PairRead => {
                    let result = [bench.get_wide::<2>("control_result")[0]];
                    let heard = expected.model.take_heard(index as u16);
                    let report = PairReport {
                        heard: heard.into(),
                        closed: expected.model.is_closed(index as u16).into(),
                        ..PairReport::default()
                    };
                    assert_eq!(PairReport::from_words(&result), report, "cycle {cycle}");
                    expected.heard[usize::from(heard)] += 1;
                }
                _ => {
                    expected.set(index as u16, None);
                    pairs[index] = Pair::default();
                }
            }
            control = None;
        }
        let quiet = sending.is_empty()
            && control.is_none()
            && expected.screened.is_empty()
            && expected.payload.is_empty()
            && expected.arrivals.is_empty()
            && expected.progress.is_empty()
            && expected.faults.is_empty();
        idle = if quiet && sent == total { idle + 1 } else { 0 };
        if idle > 50 {
            break;
        }
        assert!(cycle < 200 * 1024 * 8, "the receiver hangs");
        bench.step();
    }
    assert_eq!(counts, expected.counts, "{COUNTERS:?}");
    let pairs = [expected.heard, expected.answers];
    (counts, expected.firmware, pairs, expected.repeated)
}

#[test]
fn hostile_frames_count_and_good_frames_pass() {
    let (totals, firmware) = (Cell::new([0; COUNTERS.len()]), Cell::new(0));
    let (reads, answers, repeated) = (Cell::new([0; 2]), Cell::new([0; 2]), Cell::new(0));
    for_sizes("receive", 9, |size, rng| {
        let (counts, firmwares, [heard, answered], again) = frames(size, rng, 400, Break::None);
        reads.set(std::array::from_fn(|k| reads.get()[k] + heard[k]));
        answers.set(std::array::from_fn(|k| answers.get()[k] + answered[k]));
        repeated.set(repeated.get() + again);
        let before = totals.get();
        totals.set(std::array::from_fn(|k| before[k] + counts[k]));
        firmware.set(firmware.get() + firmwares);
    });
    let (totals, firmware) = (totals.get(), firmware.get());
    println!("{COUNTERS:?} {totals:?}, for the firmware {firmware}");
    assert!(firmware > 300, "some frames are for the firmware");
    assert!(totals[0] > 1500, "most good frames come by an open pair");
    assert!(totals.iter().all(|n| *n > 0), "each verdict is given");
    assert!(reads.get().iter().all(|n| *n > 20), "pairs are read");
    assert!(answers.get().iter().all(|n| *n > 50), "{answers:?}");
    assert!(repeated.get() > 20, "gets that come again: {repeated:?}");
}

#[test]
fn a_flood_for_the_firmware_never_holds_up_the_wire() {
    for_size(&config::TINY, "receive", 2, |size, rng| {
        let mut bench = Bench::open(&size.model);
        let mut pairs = vec![Pair::default(); size.config.pairs];
        while !bench.is("initialized") {
            bench.step();
        }
        // Nobody takes anything from the receiver, and it has nothing to give.
        let mut frames = 0;
        bench.set("s_axis_tvalid", true);
        bench.set("s_axis_tkeep", 0xff_u64);
        while frames < 100 {
            let (header, payload) = honest(size, rng, &mut pairs);
            if !is_firmwares(header.frame_type) {
                continue;
            }
            frames += 1;
            let frame = Frame::of(&seal(&header, &payload));
            let last = frame.words.len() - 1;
            for (k, (word, _)) in frame.words.into_iter().enumerate() {
                bench.set("s_axis_tdata", word);
                bench.set("s_axis_tlast", k == last);
                bench.eval();
                assert!(bench.is("s_axis_tready"), "word {k} of frame {frames}");
                assert_eq!(bench.is("firmware"), k == last);
                for quiet in ["progress_valid", "arrival_valid", "count_pair_errors"] {
                    assert!(!bench.is(quiet), "{quiet}");
                }
                bench.step();
            }
        }
    });
}

/// What came of a frame.
#[derive(Default)]
struct Came {
    progress: Vec<[u64; 7]>,
    arrivals: Vec<[u64; 13]>,
    duplicates: u64,
}

/// Puts a frame on the wire; everybody takes what there is.
fn pass(bench: &mut Bench, frame: &Frame) -> Came {
    let mut came = Came::default();
    let mut words = frame.words.iter().enumerate().peekable();
    let mut idle = 0;
    while idle < 50 {
        let word = words.peek().copied();
        bench.set("s_axis_tvalid", word.is_some());
        if let Some((k, (data, keep))) = word {
            bench.set("s_axis_tdata", *data);
            bench.set("s_axis_tkeep", *keep);
            bench.set("s_axis_tlast", k + 1 == frame.words.len());
        }
        bench.eval();
        if word.is_some() && bench.is("s_axis_tready") {
            words.next();
        }
        if bench.is("progress_valid") {
            let progress = bench.get_wide::<4>("progress");
            came.progress
                .push(unpack(&progress, [16, 32, 32, 1, 1, 1, 16]));
        }
        if bench.is("arrival_valid") {
            let arrival = bench.get_wide::<4>("arrival");
            let fields = [16, 8, 16, 64, 64, 16, 1, 1, 1, 1, 1, 1, 32];
            came.arrivals.push(unpack(&arrival, fields));
        }
        came.duplicates += u64::from(bench.is("count_duplicates"));
        idle = if word.is_some() { 0 } else { idle + 1 };
        bench.step();
    }
    came
}

/// What comes of a frame of this type, and of the same once more.
fn comes_twice(mut bench: Bench, kind: FrameType) -> [Came; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let size = Size::new(&config::TINY, "receive", &mut rng);
    let index = size.pairs[0];
    let mut pairs = vec![Pair::default(); size.config.pairs];
    let setup = random_setup(&mut rng, index);
    pairs[index].setup = Some(setup);
    for stream in ["progress", "arrival", "payload", "fault_request", "claim"] {
        bench.set(&format!("{stream}_ready"), true);
    }
    let words = setup.to_words();
    set_control(&mut bench, Operation::PairSet, index as u16, &words);
    bench.set("control_valid", true);
    bench.eval();
    while !bench.is("control_ready") {
        bench.step();
    }
    bench.step();
    bench.set("control_valid", false);
    let frame = loop {
        let (header, payload) = honest(&size, &mut rng, &mut pairs);
        if header.frame_type == kind.code() && usize::from(header.destination_pair) == index {
            let first = FrameHeader {
                sequence: 0,
                ..header
            };
            break Frame::of(&seal(&first, &payload));
        }
    };
    [(); 2].map(|()| pass(&mut bench, &frame))
}

/// As it broke: a request whose acknowledgement was lost came again and was dropped in silence, so that its sender repeated it until the pair failed.
#[test]
fn a_duplicate_of_a_request_is_acknowledged_again_and_one_of_a_control_frame_is_not() {
    const ASK: usize = 3;
    for kind in [FrameType::Eager, FrameType::Put, FrameType::Get] {
        let [first, again] = comes_twice(Bench::open("receive_tiny"), kind);
        assert_eq!((first.arrivals.len(), first.duplicates), (1, 0), "{kind:?}");
        assert_eq!((first.progress.len(), first.progress[0][ASK]), (1, 0));
        // Its sender may not have heard that the first has arrived, and is told once more.
        let mut asks = first.progress[0];
        asks[ASK] = 1;
        assert_eq!(again.progress, [asks], "{kind:?}");
        assert_eq!(again.duplicates, 1, "{kind:?}");
        // Nor has it heard what a get has read: that one arrives again, and says so.
        let answered = usize::from(kind == FrameType::Get);
        assert_eq!(again.arrivals.len(), answered, "{kind:?}");
    }
    // If acknowledgements were acknowledged, two cards would never be quiet.
    let [first, again] = comes_twice(Bench::open("receive_tiny"), FrameType::Acknowledge);
    assert_eq!((first.progress.len(), first.duplicates), (1, 0));
    assert_eq!((again.progress.len(), again.duplicates), (0, 1));
}

#[test]
fn a_duplicate_that_is_not_acknowledged_again_is_noticed() {
    let bench = Bench::broken("receive_tiny", "duplicate_unanswered");
    let [_, again] = comes_twice(bench, FrameType::Eager);
    assert_eq!((again.progress.len(), again.duplicates), (0, 1));
}

#[test]
fn each_broken_contract_is_noticed() {
    breaks("receive_tiny", 6, |rng| {
        frames(
            &Size::new(&config::TINY, "receive", rng),
            rng,
            400,
            Break::None,
        );
    });
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_are_noticed() {
    mutants("receive_tiny", 6, |rng| {
        let size = Size::new(&config::TINY, "receive", rng);
        frames(&size, rng, 400, Break::None);
    });
}

#[test]
fn a_broken_model_is_noticed() {
    for broken in [
        Break::DuplicateTaken,
        Break::CrcIgnored,
        Break::GetAnsweredOnce,
    ] {
        let noticed = is_caught("receive_tiny", 6, |rng| {
            let size = Size::new(&config::TINY, "receive", rng);
            frames(&size, rng, 400, broken);
        });
        assert!(noticed, "{broken:?}");
    }
}
