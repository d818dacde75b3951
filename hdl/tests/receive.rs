//! `link::Receive`, Verilated, against a model: hostile frames do nothing but count, good ones come
//! through whole and in order.

mod support;

use std::cell::Cell;
use std::collections::VecDeque;

use abi::control::{Operation, PairSetup};
use abi::limits::EAGER_MAX;
use abi::status::Status;
use abi::wire::{
    ETHERTYPE_FIELD, FRAME_READY, FrameHeader, FrameType, MANAGEMENT_BYTES, VERSION, crc32c,
    frame_bytes,
};
use hdl::config;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use support::broken::breaks;
use support::fields::{Steady, pack, set_control, unpack};
use support::{Bench, Size, for_size, for_sizes, rate};

const COUNTERS: [&str; 7] = [
    "frames_received",
    "crc_errors",
    "length_errors",
    "type_errors",
    "pair_errors",
    "duplicates",
    "gaps",
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

/// A frame with a right CRC, whatever is in it.
fn sealed(header: FrameHeader, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; FrameHeader::BYTES];
    header.emit(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes.extend_from_slice(&u64::from(crc32c(&bytes)).to_le_bytes());
    bytes
}

/// Whether a frame of this type is the firmware's.
fn is_firmwares(frame_type: u8) -> bool {
    [FrameType::Handshake, FrameType::Management]
        .map(FrameType::code)
        .contains(&frame_type)
}

/// What the first half makes of a frame: the counter that it costs, or the header.
fn screen(frame: &Frame) -> Result<FrameHeader, &'static str> {
    let bytes = frame.bytes();
    if frame.bad {
        return Err("crc_errors");
    }
    if bytes.len() < frame_bytes(0) {
        return Err("length_errors");
    }
    let header = FrameHeader::parse(&bytes).expect("it is long enough");
    if header.ethertype != ETHERTYPE_FIELD {
        return Err("type_errors");
    }
    if bytes.len() > frame_bytes(EAGER_MAX) || frame.words.iter().any(|(_, keep)| *keep != 0xff) {
        return Err("length_errors");
    }
    let (body, trailer) = bytes.split_at(bytes.len() - 8);
    if trailer != u64::from(crc32c(body)).to_le_bytes() {
        return Err("crc_errors");
    }
    let spoken = |kind: &FrameType| header.version == VERSION || *kind == FrameType::Handshake;
    let Some(kind) = FrameType::from_code(header.frame_type).filter(spoken) else {
        return Err("type_errors");
    };
    let flags = match kind {
        FrameType::Eager => FRAME_READY,
        _ => 0,
    };
    if header.flags & !flags != 0 {
        return Err("type_errors");
    }
    let length = usize::from(header.payload_length);
    let carries = match kind {
        FrameType::Eager => true,
        FrameType::Handshake | FrameType::Management => length == MANAGEMENT_BYTES,
        _ => length == 0,
    };
    if bytes.len() != frame_bytes(length) || header.message_length != length as u64 || !carries {
        return Err("length_errors");
    }
    Ok(header)
}

#[derive(Clone, Copy, Default)]
struct Pair {
    setup: Option<PairSetup>,
    /// Cycle from which frames are refused.
    failed: Option<u64>,
    requests: u32,
    control: u32,
    /// What the peer thinks its next numbers are.
    peer_requests: u32,
    peer_control: u32,
}

/// What must come out.
#[derive(Default)]
struct Expected {
    screened: VecDeque<(FrameHeader, Vec<u8>)>,
    progress: VecDeque<[u64; 5]>,
    arrivals: VecDeque<[u64; 7]>,
    payload: VecDeque<u64>,
    faults: VecDeque<u64>,
    counts: [u64; COUNTERS.len()],
    /// Frames for the firmware.
    firmware: u64,
}

impl Expected {
    fn count(&mut self, name: &str) {
        self.counts[COUNTERS.iter().position(|c| *c == name).expect("a counter")] += 1;
    }

    /// The second half's opinion of the oldest good frame, in the cycle in which it is judged.
    fn judge(&mut self, pairs: &mut [Pair], cycle: u64) -> &'static str {
        let (header, payload) = self.screened.pop_front().expect("a frame to be judged");
        let name = self.judged(header, &payload, pairs, cycle);
        self.count(name);
        name
    }

    fn judged(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        pairs: &mut [Pair],
        cycle: u64,
    ) -> &'static str {
        let index = header.destination_pair;
        let Some(pair) = pairs.get_mut(usize::from(index)) else {
            return "pair_errors";
        };
        let agrees = pair.setup.is_some_and(|s| {
            header.destination_endpoint == u16::from(s.endpoint)
                && header.source_endpoint == s.remote_endpoint
                && header.source_pair == s.remote_pair
                && header.destination_epoch == s.epoch
                && header.source_epoch == s.remote_epoch
                && header.cookie == s.cookie
        });
        if !agrees || pair.failed.is_some_and(|from| from <= cycle) {
            return "pair_errors";
        }
        let is_request = header.frame_type == FrameType::Eager.code();
        let next = if is_request {
            &mut pair.requests
        } else {
            &mut pair.control
        };
        let ahead = header.sequence.wrapping_sub(*next);
        if ahead >= 1 << 31 {
            return "duplicates";
        }
        if is_request && ahead != 0 {
            pair.failed = Some(cycle + 1);
            self.faults.push_back(index.into());
            return "gaps";
        }
        *next = header.sequence.wrapping_add(1);
        self.progress.push_back([
            index.into(),
            header.acknowledge.into(),
            header.credit.into(),
            (header.frame_type == FrameType::Ask.code()).into(),
            header.refused.into(),
        ]);
        if is_request {
            self.arrivals.push_back([
                index.into(),
                header.destination_endpoint.into(),
                header.context.into(),
                header.match_bits,
                header.immediate,
                header.payload_length.into(),
                (header.flags & FRAME_READY != 0).into(),
            ]);
            self.payload.extend(
                payload
                    .chunks(8)
                    .map(|c| u64::from_le_bytes(c.try_into().expect("padded to words"))),
            );
        }
        if header.frame_type == FrameType::PairFailed.code() {
            pair.failed = Some(cycle + 1);
            self.faults.push_back(index.into());
        }
        "frames_received"
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
    if pairs[index].failed.is_some() || pairs[index].setup.is_none() {
        index = size.pair(rng); // Rarely on such a pair.
    }
    let pair = &mut pairs[index];
    let s = pair.setup.unwrap_or_default();
    let frame_type = match rng.random_range(0..100) {
        0 => FrameType::PairFailed,
        90..95 => FrameType::Handshake,
        95..100 => FrameType::Management,
        1..20 => FrameType::Acknowledge,
        20..25 => FrameType::Ask,
        _ => FrameType::Eager,
    };
    let length = match (frame_type, rng.random_range(0..4)) {
        (FrameType::Eager, 0) => rng.random_range(0..=EAGER_MAX),
        (FrameType::Eager, 1) => [0, 1, 7, 8, 9, EAGER_MAX - 1, EAGER_MAX][rng.random_range(0..7)],
        (FrameType::Eager, _) => rng.random_range(0..64),
        (FrameType::Handshake | FrameType::Management, _) => MANAGEMENT_BYTES,
        _ => 0,
    };
    let payload: Vec<u8> = (0..length).map(|_| rng.random()).collect();
    let mut nobodys = rng.random();
    let next = match frame_type {
        FrameType::Eager => &mut pair.peer_requests,
        // Belongs to no pair of the gates, whatever it says.
        FrameType::Handshake | FrameType::Management => &mut nobodys,
        _ => &mut pair.peer_control,
    };
    let sequence = *next;
    *next = next.wrapping_add(1);
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
        context: rng.random(),
        payload_length: length as u16,
        match_bits: rng.random(),
        immediate: rng.random(),
        message_length: length as u64,
        flags: match frame_type {
            FrameType::Eager => rng.random_range(0..=FRAME_READY),
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
    match rng.random_range(0..25) {
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
        3 => h.destination_pair = rng.random(),
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
        15 | 17 => h.sequence = h.sequence.wrapping_sub(rng.random_range(1..1 << 20)),
        16 | 18 => {
            h.sequence = h
                .sequence
                .wrapping_add([1, 1, 1 << rng.random_range(0..31)][rng.random_range(0..3)])
        }
        _ => {}
    }
    let mut bytes = sealed(h, &body);
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

/// Sends `total` frames and compares everything that comes out.
fn frames(size: &Size, rng: &mut ChaCha8Rng, total: usize) -> ([u64; COUNTERS.len()], u64) {
    let mut bench = Bench::open(&size.model);
    let mut pairs = vec![Pair::default(); size.config.pairs];
    let mut expected = Expected::default();
    let hostility = [0.0, 0.1, 0.5][rng.random_range(0..3)];
    let busy = rate(rng);
    let willing: [f64; 4] = std::array::from_fn(|_| rate(rng));
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
        let broken = size.pairs.iter().copied().find(|p| {
            let under_way = asked.contains(p) || fault == Some(*p);
            !under_way && (pairs[*p].setup.is_none() || pairs[*p].failed.is_some())
        });
        let likely = if broken.is_some() { 0.7 } else { 0.01 };
        if control.is_none() && sending.is_empty() && rng.random_bool(likely) {
            let index = broken.unwrap_or_else(|| size.pair(rng));
            let operation = match rng.random_range(0..8) {
                0 if broken.is_none() => Operation::PairClear,
                1 => Operation::CounterRead,
                2..6 if broken.is_none() => Operation::RegionSet,
                _ => Operation::PairSet,
            };
            control = Some((operation, index, random_setup(rng, index)));
        }
        // Frames.
        let begins = sending.is_empty() && sent < total && control.is_none();
        if begins {
            let before = pairs.clone();
            let (header, payload) = honest(size, rng, &mut pairs);
            let good = sealed(header, &payload);
            let mut frame = Frame::of(&good);
            if rng.random_bool(hostility) {
                frame = hostile(size, rng, header, &payload);
                if frame.bytes() != good || screen(&frame).is_err() {
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
        for (name, willing) in ["progress", "arrival", "payload", "fault_request"]
            .iter()
            .zip(willing)
        {
            bench.set(&format!("{name}_ready"), rng.random_bool(willing));
        }
        bench.eval();

        // What is judged in this cycle, before anything that it leads to.
        for (k, name) in COUNTERS.iter().enumerate() {
            if bench.is(&format!("count_{name}")) {
                counts[k] += 1;
                if !["crc_errors", "length_errors", "type_errors"].contains(name) {
                    let verdict = expected.judge(&mut pairs, cycle);
                    assert_eq!(*name, verdict, "cycle {cycle}");
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
                match screen(&frame) {
                    Ok(header) if is_firmwares(header.frame_type) => {
                        firmwares = true;
                        expected.firmware += 1;
                    }
                    Err(counter) => {
                        expected.count(counter);
                        assert!(
                            bench.is(&format!("count_{counter}")),
                            "{counter}, cycle {cycle}"
                        );
                    }
                    Ok(header) => {
                        let bytes = frame.bytes();
                        let payload = bytes[FrameHeader::BYTES..bytes.len() - 8].to_vec();
                        expected.screened.push_back((header, payload));
                    }
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
                steady.watch(name, valid, ready, &bench.get_wide::<3>(name))
            });
        let mut taken = || streams.next().expect("four streams");
        let (progress, arrival, payload, request) = (taken(), taken(), taken(), taken());
        if let Some(words) = progress {
            let progress = unpack(&words, [16, 32, 32, 1, 16]);
            assert_eq!(
                Some(progress),
                expected.progress.pop_front(),
                "cycle {cycle}"
            );
        }
        if let Some(words) = arrival {
            let arrival = unpack(&words, [16, 8, 16, 64, 64, 16, 1]);
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
            let [pair, status] = unpack(&words, [16, 8]);
            assert_eq!(Some(pair), expected.faults.pop_front(), "cycle {cycle}");
            assert_eq!(status, u64::from(Status::LinkError.code()));
            asked.push_back(pair as usize);
        }
        if let Some(pair) = fault
            && bench.is("fault_ready")
        {
            let from = pairs[pair].failed.unwrap_or(u64::MAX).min(cycle + 2);
            pairs[pair].failed = Some(from);
            fault = None;
        }
        if let Some((operation, index, setup)) = control
            && bench.is("control_done")
        {
            match operation {
                Operation::PairSet => {
                    pairs[index] = Pair {
                        setup: Some(setup),
                        ..Default::default()
                    };
                }
                Operation::PairClear => pairs[index] = Pair::default(),
                _ => {}
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
    (counts, expected.firmware)
}

#[test]
fn hostile_frames_count_and_good_frames_pass() {
    let (totals, firmware) = (Cell::new([0; COUNTERS.len()]), Cell::new(0));
    for_sizes("receive", 9, |size, rng| {
        let (counts, firmwares) = frames(size, rng, 400);
        let before = totals.get();
        totals.set(std::array::from_fn(|k| before[k] + counts[k]));
        firmware.set(firmware.get() + firmwares);
    });
    let (totals, firmware) = (totals.get(), firmware.get());
    println!("{COUNTERS:?} {totals:?}, for the firmware {firmware}");
    assert!(firmware > 300, "some frames are for the firmware");
    assert!(totals[0] > 1500, "most good frames come by an open pair");
    assert!(totals.iter().all(|n| *n > 0), "each verdict is given");
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
            let frame = Frame::of(&sealed(header, &payload));
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

#[test]
fn each_broken_contract_is_noticed() {
    breaks("receive_tiny", 6, |rng| {
        frames(&Size::new(&config::TINY, "receive", rng), rng, 400);
    });
}
