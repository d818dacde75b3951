//! `link::Transmit`, Verilated, against a model: every message whose payload could be read becomes
//! one frame with the right bytes, no other does, and every job is answered once.

mod support;

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use abi::control::{CardSetup, Operation, PairSetup, RIGHT_LOCAL_READ};
use abi::limits::EAGER_MAX;
use abi::status::Status;
use abi::wire::{ETHERTYPE_FIELD, FRAME_READY, FrameHeader, FrameType, VERSION, crc32c, split_mac};
use hdl::config;
use hdl::link::TransmitMutation;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use support::fields::{Steady, pack, set_control, unpack};
use support::{Bench, Size, for_size, for_sizes, rate};

const JOB_WIDTHS: [usize; 14] = [16, 8, 32, 8, 8, 16, 16, 16, 32, 32, 64, 64, 64, 64];

/// A job, as the fields of `SendJob` without the reserved ones at its end.
#[derive(Clone, Debug)]
struct Job {
    pair: usize,
    domain: u8,
    sequence: u32,
    context: u16,
    key: u32,
    match_bits: u64,
    immediate: u64,
    address: u64,
    ready: bool,
    payload: Vec<u8>,
    allowed: bool,
    error: bool,
}

impl Job {
    fn random(size: &Size, rng: &mut ChaCha8Rng) -> Self {
        let length = match rng.random_range(0..4) {
            0 => [0, 1, 7, 8, 9, EAGER_MAX - 1, EAGER_MAX][rng.random_range(0..7)],
            1 => rng.random_range(0..=EAGER_MAX),
            _ => rng.random_range(0..40),
        };
        Job {
            pair: size.pair(rng),
            domain: rng.random(),
            sequence: rng.random(),
            context: rng.random(),
            key: rng.random(),
            match_bits: rng.random(),
            immediate: rng.random(),
            address: rng.random(),
            ready: rng.random(),
            payload: (0..length).map(|_| rng.random()).collect(),
            allowed: rng.random_bool(0.9),
            error: rng.random_bool(0.1),
        }
    }

    fn words(&self) -> Vec<u64> {
        let values = [
            self.pair as u64,
            self.domain.into(),
            self.sequence.into(),
            1,
            self.ready.into(),
            self.pair as u64,
            self.context.into(),
            0,
            0x1234_5678,
            self.key.into(),
            self.match_bits,
            self.immediate,
            self.address,
            self.payload.len() as u64,
        ];
        let fields: Vec<_> = values.into_iter().zip(JOB_WIDTHS).collect();
        let mut words = pack(&fields);
        words.resize(9, 0);
        words
    }

    fn status(&self) -> Status {
        match (self.payload.len(), self.allowed, self.error) {
            (0, _, _) => Status::Success,
            (_, false, _) => Status::LocalProtection,
            (_, _, true) => Status::MemoryError,
            _ => Status::Success,
        }
    }
}

/// A frame without the numbers of the reverse direction, which are looked up when it begins.
fn frame(card: &CardSetup, index: usize, setup: &PairSetup, frame_type: FrameType) -> FrameHeader {
    let (source_mac_low, source_mac_high) = split_mac(card.mac);
    FrameHeader {
        destination_mac: setup.remote_mac,
        source_mac_low,
        source_mac_high,
        ethertype: ETHERTYPE_FIELD,
        version: VERSION,
        frame_type: frame_type.code(),
        destination_endpoint: setup.remote_endpoint,
        source_endpoint: setup.endpoint.into(),
        destination_pair: setup.remote_pair,
        source_pair: index as u16,
        destination_epoch: setup.remote_epoch,
        source_epoch: setup.epoch,
        cookie: setup.cookie,
        ..Default::default()
    }
}

/// The read under way: words to come, of which the last may come with an error.
struct Read {
    words: VecDeque<u64>,
    error: bool,
    due: u64,
}

fn sends(size: &Size, mutation: TransmitMutation, rng: &mut ChaCha8Rng, total: usize) {
    let mut bench = Bench::open(&size.model);
    bench.set("mutation_0", mutation as u64);
    let mut card = CardSetup::default();
    let mut pairs: Vec<Option<PairSetup>> = vec![None; size.config.pairs];
    let mut numbers = vec![0u32; size.config.pairs];
    let (busy, willing, ready) = (rate(rng), rate(rng), rate(rng));
    let latency = [0, 5, 40][rng.random_range(0..3)];
    let mut steady: [Steady; 3] = Default::default();
    let mut job: Option<Job> = None;
    let mut taken: Option<Job> = None;
    let mut answer_due: Option<u64> = None;
    let mut read: Option<Read> = None;
    let mut offers_word = false;
    let mut control: Option<(Operation, usize, PairSetup, CardSetup)> = None;
    let mut control_frame: Option<(usize, FrameType)> = None;
    // Frames that must come out, messages and control frames apart: their order is the card's.
    let mut messages: VecDeque<(FrameHeader, Vec<u8>)> = VecDeque::new();
    let mut controls: VecDeque<FrameHeader> = VecDeque::new();
    let mut bytes: Vec<u8> = vec![];
    // Numbers given by the lookup of each cycle: by the acknowledge the pair, credit, and what was refused.
    let mut given: HashMap<u32, (usize, u32, u16)> = HashMap::new();
    let mut lookup = 0;
    let (mut made, mut idle, mut frames) = (0, 0, 0);

    for cycle in 0u64.. {
        if job.is_none() && made < total && rng.random_bool(busy) {
            job = Some(Job::random(size, rng));
            made += 1;
        }
        bench.set("job_valid", job.is_some());
        if let Some(job) = &job {
            bench.set_wide("job", &job.words());
        }
        if control_frame.is_none() && made < total && rng.random_bool(busy / 8.0) {
            let types = [
                FrameType::Acknowledge,
                FrameType::PairFailed,
                FrameType::Ask,
            ];
            control_frame = Some((size.pair(rng), types[rng.random_range(0..2)]));
        }
        bench.set("control_frame_valid", control_frame.is_some());
        if let Some((pair, frame_type)) = control_frame {
            let fields = [(pair as u64, 16), (frame_type.code().into(), 8)];
            bench.set("control_frame", pack(&fields)[0]);
        }
        if control.is_none() && made < total && rng.random_bool(0.01) {
            let operations = [
                Operation::PairSet,
                Operation::PairSet,
                Operation::PairSet,
                Operation::PairClear,
                Operation::CardSet,
                Operation::RegionSet,
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
            control = Some((operation, size.pair(rng), setup, setup_card));
        }
        bench.set("control_valid", control.is_some());
        if let Some((operation, index, setup, setup_card)) = &control {
            let data = match operation {
                Operation::CardSet => setup_card.to_words().to_vec(),
                _ => setup.to_words().to_vec(),
            };
            set_control(&mut bench, *operation, *index as u16, &data);
        }
        let (acknowledge, credit, refused) = (rng.random(), rng.random(), rng.random());
        given.insert(acknowledge, (lookup, credit, refused));
        bench.set("lookup_acknowledge", acknowledge);
        bench.set("lookup_credit", credit);
        bench.set("lookup_refused", refused);

        bench.set("query_ready", rng.random_bool(willing));
        let answers = answer_due.is_some_and(|due| due <= cycle);
        bench.set("allowed_valid", answers);
        let allowed = taken.as_ref().map_or(rng.random(), |job| job.allowed);
        bench.set("allowed", if answers { allowed } else { rng.random() });
        if answers {
            answer_due = None;
        }
        bench.set("read_request_ready", rng.random_bool(willing));
        let due = read.as_ref().is_some_and(|read| read.due <= cycle);
        offers_word |= due && rng.random_bool(willing);
        bench.set("read_data_valid", offers_word);
        let noise = (rng.random(), rng.random(), rng.random());
        let word = match &read {
            Some(read) if offers_word => {
                let last = read.words.len() == 1;
                let error = if last { read.error } else { rng.random() };
                (read.words[0], last, error)
            }
            _ => noise,
        };
        bench.set("read_data", word.0);
        bench.set("read_data_last", word.1);
        bench.set("read_data_error", word.2);
        bench.set("m_axis_tready", rng.random_bool(ready));
        bench.eval();

        lookup = bench.get("lookup_pair") as usize;
        if bench.is("job_result_valid") {
            let job = taken.take().expect("only a job that was taken is answered");
            assert_eq!(
                bench.get("job_status"),
                u64::from(job.status().code()),
                "cycle {cycle}: {job:?}"
            );
            if job.status() == Status::Success
                && let Some(setup) = pairs[job.pair]
            {
                let header = FrameHeader {
                    sequence: job.sequence,
                    context: job.context,
                    payload_length: job.payload.len() as u16,
                    match_bits: job.match_bits,
                    immediate: job.immediate,
                    message_length: job.payload.len() as u64,
                    flags: u8::from(job.ready) * FRAME_READY,
                    ..frame(&card, job.pair, &setup, FrameType::Eager)
                };
                messages.push_back((header, job.payload));
            }
        }
        let query = bench.get_wide::<3>("query");
        let [valid, takes] = ["query_valid", "query_ready"].map(|name| bench.is(name));
        if let Some(words) = steady[0].watch("query", valid, takes, &query) {
            let job = taken.as_ref().expect("a job asks");
            let [domain, key, rights, address, length] = unpack(&words, [8, 32, 8, 64, 64]);
            assert_eq!(domain, u64::from(job.domain));
            assert_eq!(key, u64::from(job.key));
            assert_eq!(rights, u64::from(RIGHT_LOCAL_READ));
            assert_eq!((address, length), (job.address, job.payload.len() as u64));
            answer_due = Some(cycle + 3);
        }
        let [valid, takes] = ["read_data_valid", "read_data_ready"].map(|name| bench.is(name));
        if valid && takes {
            offers_word = false;
            let words = &mut read.as_mut().expect("a read is under way").words;
            words.pop_front();
            if words.is_empty() {
                read = None;
            }
        }
        let request = bench.get_wide::<2>("read_request");
        let [valid, takes] =
            ["read_request_valid", "read_request_ready"].map(|name| bench.is(name));
        if let Some(words) = steady[1].watch("read_request", valid, takes, &request) {
            let job = taken.as_ref().expect("a job reads");
            assert!(job.allowed, "a buffer was read that may not be");
            let [address, length] = unpack(&words, [64, 16]);
            assert_eq!((address, length), (job.address, job.payload.len() as u64));
            let mut padded = job.payload.clone();
            padded.resize(padded.len().next_multiple_of(8), 0);
            read = Some(Read {
                words: padded
                    .chunks(8)
                    .map(|c| u64::from_le_bytes(c.try_into().expect("padded")))
                    .collect(),
                error: job.error,
                due: cycle + 1 + latency,
            });
        }
        if bench.is("job_ready") && job.is_some() {
            assert!(taken.is_none(), "one job at a time is answered");
            taken = job.take();
        }
        if let Some((index, frame_type)) = control_frame
            && bench.is("control_frame_ready")
        {
            if let Some(setup) = &pairs[index] {
                let sequence = numbers[index];
                numbers[index] += 1;
                controls.push_back(FrameHeader {
                    sequence,
                    ..frame(&card, index, setup, frame_type)
                });
            }
            control_frame = None;
        }
        if let Some((operation, index, setup, setup_card)) = control
            && bench.is("control_done")
        {
            match operation {
                Operation::CardSet => card = setup_card,
                Operation::PairSet => pairs[index] = Some(setup),
                Operation::PairClear => pairs[index] = None,
                _ => {}
            }
            if operation == Operation::PairSet {
                numbers[index] = 0;
            }
            control = None;
        }
        let stream = ["m_axis_tdata", "m_axis_tkeep", "m_axis_tlast"].map(|name| bench.get(name));
        let [valid, takes] = ["m_axis_tvalid", "m_axis_tready"].map(|name| bench.is(name));
        assert!(
            valid || bytes.is_empty(),
            "the frame pauses in cycle {cycle}"
        );
        if let Some(words) = steady[2].watch("m_axis", valid, takes, &stream) {
            assert_eq!(words[1], 0xff);
            bytes.extend(words[0].to_le_bytes());
            if words[2] != 0 {
                frames += 1;
                let found = FrameHeader::parse(&bytes).expect("it has a header");
                let (pair, credit, refused) = given[&found.acknowledge];
                assert_eq!(
                    pair,
                    usize::from(found.source_pair),
                    "numbers of another pair"
                );
                let numbers = (found.credit, found.refused);
                assert_eq!((credit, refused), numbers, "numbers of two moments");
                let is_message = found.frame_type == FrameType::Eager.code();
                let (mut header, payload) = if is_message {
                    messages.pop_front().expect("a message was to be sent")
                } else {
                    let header = controls
                        .pop_front()
                        .expect("a control frame was to be sent");
                    (header, vec![])
                };
                header.acknowledge = found.acknowledge;
                header.credit = found.credit;
                header.refused = found.refused;
                let mut wanted = vec![0; FrameHeader::BYTES];
                header.emit(&mut wanted);
                assert_eq!(found, header, "cycle {cycle}");
                wanted.extend(payload);
                wanted.resize(wanted.len().next_multiple_of(8), 0);
                wanted.extend(u64::from(crc32c(&wanted)).to_le_bytes());
                assert_eq!(bytes, wanted, "cycle {cycle}");
                bytes.clear();
            }
        }
        let quiet = job.is_none() && taken.is_none() && control.is_none();
        let sent = messages.is_empty() && controls.is_empty() && control_frame.is_none();
        idle = if quiet && sent && made == total {
            idle + 1
        } else {
            0
        };
        if idle > 300 {
            break;
        }
        assert!(cycle < 400_000, "the transmitter hangs");
        bench.step();
    }
    assert!(bytes.is_empty() && frames > total / 4, "{frames} frames");
}

#[test]
fn messages_become_frames_and_jobs_are_answered_once() {
    for_sizes("transmit", 12, |size, rng| {
        sends(size, TransmitMutation::None, rng, 300);
    });
}

fn is_caught(mutation: TransmitMutation) -> bool {
    let caught = Cell::new(false);
    for_size(&config::TINY, "transmit", 4, |size, rng| {
        let run = AssertUnwindSafe(|| sends(size, mutation, rng, 200));
        caught.set(caught.get() || catch_unwind(run).is_err());
    });
    caught.get()
}

#[test]
fn a_read_error_that_is_ignored_is_noticed() {
    assert!(is_caught(TransmitMutation::ReadErrorIgnored));
}

#[test]
fn control_frames_without_numbers_are_noticed() {
    assert!(is_caught(TransmitMutation::ControlNotNumbered));
}

#[test]
fn a_pause_within_a_frame_is_noticed() {
    assert!(is_caught(TransmitMutation::PauseInFrame));
}
