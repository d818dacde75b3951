//! `link::Faults`, Verilated, against a model: a pair fails once, everybody hears of it, and after
//! `PairClear` no failure of the pair is on its way; an event is raised unless it has been told otherwise.

use abi::control::{Operation, PairSetup};
use abi::event::{Cause, INFO_CLOSED_BIT};
use abi::status::Status;
use hdl::config;
use hdl::link::party;
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::{Steady, pack, set_control, unpack};
use hdl_tests::{Bench, Size, for_sizes, rate};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

const STATUSES: [Status; 4] = [
    Status::LinkError,
    Status::Flushed,
    Status::MemoryError,
    Status::PeerFailed,
];

fn faults(size: &Size, rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open(&size.model);
    // Endpoint of each pair that is connected and sound.
    let mut sound: Vec<Option<u8>> = vec![None; size.config.pairs];
    let (busy, willing) = (rate(rng), rate(rng));
    let mut requests: [Option<(usize, Status)>; party::SOURCES] = [None; party::SOURCES];
    let mut control: Option<(Operation, usize, PairSetup, Status)> = None;
    let mut steady: [Steady; party::SINKS] = Default::default();
    let mut event = Steady::default();
    let mut told: [Vec<(u64, u64)>; party::SINKS] = Default::default();
    let mut expected: Vec<(u64, u64)> = vec![];
    let (mut raised, mut to_raise) = (vec![], vec![]);
    let (active, mut idle) = (8000, 0);

    for cycle in 0.. {
        let talking = cycle < active;
        for (source, request) in requests.iter_mut().enumerate() {
            if request.is_none() && talking && rng.random_bool(busy / 10.0) {
                let pair = size.pair_or_none(rng);
                *request = Some((pair, STATUSES[rng.random_range(0..STATUSES.len())]));
            }
            bench.set(&format!("fault_request_valid_{source}"), request.is_some());
            let (pair, status) = request.unwrap_or((0, Status::Success));
            let fields = [(pair as u64, 16), (status.code().into(), 8)];
            bench.set(&format!("fault_request_{source}"), pack(&fields)[0]);
        }
        if control.is_none() && talking && rng.random_bool(0.1) {
            let operation = match rng.random_range(0..8) {
                0 => Operation::PairFail,
                1 => Operation::PairClear,
                _ => Operation::PairSet,
            };
            let setup = PairSetup {
                endpoint: rng.random(),
                ..Default::default()
            };
            let status = STATUSES[rng.random_range(0..STATUSES.len())];
            control = Some((operation, size.pair(rng), setup, status));
        }
        bench.set("control_valid", control.is_some());
        if let Some((operation, index, setup, status)) = &control {
            let data = match operation {
                Operation::PairFail => vec![status.code().into()],
                _ => setup.to_words().to_vec(),
            };
            set_control(&mut bench, *operation, *index as u16, &data);
        }
        for sink in 0..party::SINKS {
            bench.set(&format!("fault_ready_{sink}"), rng.random_bool(willing));
        }
        bench.set("raise_ready", rng.random_bool(willing));
        bench.eval();

        let fault = bench.get_wide::<1>("fault");
        for sink in 0..party::SINKS {
            let valid = bench.is(&format!("fault_valid_{sink}"));
            let ready = bench.is(&format!("fault_ready_{sink}"));
            let done = told[party::DELIVERY].len() > told[party::SENDS].len();
            assert!(
                sink != party::SENDS || !valid || bench.is("delivery_done") == done,
                "SendQueues hear when Delivery has finished, cycle {cycle}"
            );
            if let Some(words) = steady[sink].watch("fault", valid, ready, &fault) {
                let [pair, status] = unpack(&words, [16, 8]);
                told[sink].push((pair, status));
            }
        }
        let raise = bench.get_wide::<2>("raise");
        let [valid, takes] = ["raise_valid", "raise_ready"].map(|name| bench.is(name));
        if let Some(words) = event.watch("raise", valid, takes, &raise) {
            raised.push(unpack(&words, [8, 8, 16, 64]));
        }

        let mut fail = |pair: usize, status: Status, by_peer: bool, sound: &mut [Option<u8>]| {
            let Some(endpoint) = sound.get_mut(pair).and_then(Option::take) else {
                return;
            };
            expected.push((pair as u64, status.code().into()));
            if matches!(status, Status::LinkError | Status::PeerFailed) {
                let code = u64::from(status.code());
                let (cause, info) = match (status, by_peer) {
                    (Status::PeerFailed, true) => (Cause::PeerFailed, code | 1 << INFO_CLOSED_BIT),
                    (Status::PeerFailed, false) => (Cause::PeerFailed, code),
                    _ => (Cause::LinkError, code),
                };
                to_raise.push([endpoint.into(), cause.code().into(), pair as u64, info]);
            }
        };
        for (source, request) in requests.iter_mut().enumerate() {
            if bench.is(&format!("fault_request_ready_{source}"))
                && let Some((pair, status)) = request.take()
            {
                fail(pair, status, source == party::RECEIVE, &mut sound);
            }
        }
        if let Some((operation, index, setup, status)) = control
            && bench.is("control_ready")
        {
            match operation {
                Operation::PairSet => sound[index] = Some(setup.endpoint),
                Operation::PairFail => fail(index, status, false, &mut sound),
                _ => sound[index] = None,
            }
            for (sink, told) in told.iter().enumerate() {
                assert_eq!(
                    told, &expected,
                    "sink {sink} when control is done, cycle {cycle}"
                );
            }
            control = None;
        }
        bench.step();
        idle = if talking { 0 } else { idle + 1 };
        if idle > 3000 {
            break;
        }
    }
    assert!(
        requests.iter().all(Option::is_none),
        "a request is never taken"
    );
    for (sink, told) in told.iter().enumerate() {
        assert_eq!(told, &expected, "what sink {sink} was told");
    }
    assert_eq!(raised, to_raise);
    assert!(!expected.is_empty());
}

#[test]
fn a_pair_fails_once_and_everybody_hears_of_it() {
    for_sizes("faults", 12, faults);
}

#[test]
fn each_broken_contract_is_noticed() {
    breaks("faults_tiny", 2, |rng| {
        faults(&Size::new(&config::TINY, "faults", rng), rng);
    });
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_are_noticed() {
    mutants("faults_tiny", 2, |rng| {
        faults(&Size::new(&config::TINY, "faults", rng), rng);
    });
}
