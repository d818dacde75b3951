//! The simulator's promises, kept with Verilated cards and their firmware: the seed decides every transfer on every
//! bus, back-pressure loses nothing, and what was asked for is written.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use abi::ABI_VERSION;
use abi::register::{ABI, ID, MAGIC, STATUS, STATUS_READY};
use host_driver::transport::Transport;
use host_driver::{
    Access, Buffer, Device, DeviceOptions, Endpoint, OpenError, Pair, PairAddress, Source,
    TaggedReceive, TaggedSend, WcStatus,
};
use posthorn_tests::cards::{PROCESSORS, firmware};
use rand::Rng;
use sim::fabric::Link;
use sim::log::{LogDecoder, LogError};
use sim::memory::MemoryConfig;
use sim::seed::{BackPressure, generator};
use sim::{Cluster, Host, Report, Waves};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The example of "Getting started".
#[path = "../../sim/examples/hello.rs"]
#[allow(dead_code, reason = "what it prints is looked at here")]
mod hello;

#[test]
fn the_hello_of_getting_started_says_hello() {
    let said = hello::run().unwrap();
    let sent = format!("card 0: the send completed with {}", WcStatus::Success);
    assert_eq!(said, [sent.as_str(), "card 1: received 64 bytes: hello"]);
}

const CARDS: usize = 3;
const ROUNDS: usize = 4;
/// Cycles after which a wait has failed.
const PATIENCE: u64 = 300_000;

fn payload(source: usize, destination: usize, round: usize) -> Vec<u8> {
    let mut rng = generator(round as u64, source << 8 | destination, "payload");
    let length = rng.random_range(0..=1024);
    (0..length).map(|_| rng.random()).collect()
}

/// Posts the receive of `round` from `pair`, with `place` as its number.
fn receive(
    endpoint: &Endpoint,
    pair: Pair,
    place: usize,
    round: usize,
    buffer: Buffer,
) -> Result<()> {
    let receive = TaggedReceive {
        source: Source::Pair(pair),
        context: 7,
        match_bits: round as u64,
        ignore_bits: 0,
    };
    let posted = endpoint.post_tagged_recv(place as u64, &receive, buffer);
    posted.map_err(|refused| refused.error)?;
    Ok(())
}

/// Every card sends to every other, a round at a time, half of the receives posted late. Returns the cycle of each
/// completion.
fn all_to_all(host: &Host) -> Result<Vec<u64>> {
    let (me, cards) = (host.card(), host.cards());
    let transport = Arc::new(host.transport());
    let device = Device::open(Arc::clone(&transport) as Arc<dyn Transport>)?;
    let domain = device.alloc_pd()?;
    let endpoint = domain.endpoint().open()?;
    let queue = endpoint.completion_queue();
    let others: Vec<usize> = (0..cards).filter(|&card| card != me).collect();
    let mut pairs = Vec::new();
    let mut addresses = Vec::new();
    for _ in &others {
        let (pair, address) = endpoint.open_pair(4)?;
        pairs.push(pair);
        addresses.extend(address.to_bytes());
    }
    let all = host.all_gather(addresses)?;
    for (&pair, &other) in pairs.iter().zip(&others) {
        // The other's pair for this card is that of this card's place among its others.
        let place = if me < other { me } else { me - 1 };
        let bytes = all[other][PairAddress::BYTES * place..][..PairAddress::BYTES].try_into()?;
        endpoint.connect_pair(pair, &PairAddress::from_bytes(bytes).ok_or("no address")?)?;
    }
    host.all_gather(Vec::new())?;

    let (_region, mut memory) =
        domain.reg_mr(2 * 1024 * others.len() * ROUNDS, Access::ReadWrite)?;
    let mut cycles = Vec::new();
    for round in 0..ROUNDS {
        let late = |place: &usize| (place + round + me) % 2 == 1;
        let places = 0..others.len();
        for place in places.clone().filter(|place| !late(place)) {
            receive(&endpoint, pairs[place], place, round, memory.split_to(1024))?;
        }
        for (place, &other) in others.iter().enumerate() {
            let bytes = payload(me, other, round);
            let mut message = memory.split_to(bytes.len());
            message.copy_from_slice(&bytes);
            let send = TaggedSend {
                pair: pairs[place],
                context: 7,
                match_bits: round as u64,
                immediate: 0,
            };
            endpoint
                .post_tagged_send(100, &send, message)
                .map_err(|refused| refused.error)?;
        }
        for place in places.filter(late) {
            receive(&endpoint, pairs[place], place, round, memory.split_to(1024))?;
        }
        for _ in 0..2 * others.len() {
            let completion = queue.wait(PATIENCE)?;
            cycles.push(transport.now());
            assert_eq!(completion.status, WcStatus::Success);
            if completion.wr_id < 100 {
                let source = others[completion.wr_id as usize];
                assert_eq!(completion.received(), payload(source, me, round));
            }
        }
    }
    host.all_gather(Vec::new())?;
    endpoint.close()?;
    Ok(cycles)
}

fn run(cluster: Cluster) -> (Vec<Vec<u64>>, Report) {
    let outcome = cluster
        .cards(CARDS)
        .processor_clock(PROCESSORS)
        .firmware(firmware())
        .cycle_limit(3_000_000)
        .run(|host| all_to_all(&host));
    let report = outcome.report.clone();
    let hosts = outcome.hosts().unwrap_or_else(|error| panic!("{error}"));
    let hosts = hosts.into_iter().map(|host| host.expect("all was well"));
    (hosts.collect(), report)
}

fn cluster() -> Cluster {
    Cluster::verilated("tiny")
}

#[test]
fn messages_arrive_whole_whatever_the_pressure() {
    for seed in 1..6 {
        let pressure = BackPressure {
            idle: 150 * seed as u16,
            longest: 1 << seed,
        };
        let memory = MemoryConfig {
            latency: 10 * seed as u32,
            outstanding: seed as usize,
            pressure,
        };
        let link = Link {
            latency: 20 * seed as u32,
            bandwidth: 1 + seed as u32,
        };
        let cluster = cluster().seed(seed).memory(memory).pressure(pressure);
        let (hosts, report) = run(cluster.link(link));
        let each = 2 * (CARDS - 1) * ROUNDS;
        assert!(
            hosts.iter().all(|cycles| cycles.len() == each),
            "seed {seed}"
        );
        assert!(report.credit_checks as usize >= 2 * CARDS * (CARDS - 1) * ROUNDS);
        assert!(report.cards.iter().all(|card| card.memory.unmapped == 0));
    }
}

#[test]
fn the_seed_decides_every_transfer_and_nothing_else_does() {
    let run = |seed, threads| {
        let cluster = cluster().pressure(BackPressure::SOME).moments();
        let (hosts, report) = run(cluster.seed(seed).threads(threads));
        let cards = report.cards.into_iter();
        let cards: Vec<_> = cards.map(|card| (card.moments, card.log)).collect();
        (report.cycles, hosts, cards)
    };
    let one = run(3, 1);
    let moments: Vec<usize> = one.2.iter().map(|(moments, _)| moments.len()).collect();
    assert!(moments.iter().all(|count| *count > 300), "{moments:?}");
    for threads in [2, 3] {
        assert!(run(3, threads) == one, "{threads} threads");
    }
    assert!(run(4, 2).1 != one.1);
}

#[test]
fn the_log_is_read_by_the_build_that_runs_and_no_other() {
    let (_, report) = run(cluster());
    let firmware = firmware();
    for card in &report.cards {
        let running = card.build_id.expect("the library has asked");
        assert_eq!(running, firmware.build_id());
        let lines = LogDecoder::new(&firmware, running)
            .unwrap()
            .decode(&card.log);
        assert!(
            lines[0].text.contains(&format!("{running:016x}")),
            "{}",
            lines[0]
        );
        assert!(lines.is_sorted_by_key(|line| line.cycle));
        let other = LogDecoder::new(&firmware, running ^ 1).err();
        assert!(matches!(other, Some(LogError::WrongBuild { .. })));
    }
}

#[test]
fn a_card_without_firmware_is_a_clear_error() {
    let outcome = cluster().run(|host| {
        let transport = host.transport();
        // SAFETY: nobody has opened the card.
        let registers = [ID, ABI, STATUS].map(|offset| unsafe { transport.read_register(offset) });
        assert_eq!(registers, [Ok(MAGIC), Ok(ABI_VERSION), Ok(STATUS_READY)]);
        let options = DeviceOptions {
            ready_timeout: 20_000,
            ..DeviceOptions::default()
        };
        Device::open_with(Arc::new(transport), options).err()
    });
    let errors = outcome.hosts().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(errors, [Some(OpenError::FirmwareTimeout(20_000))]);
}

#[test]
fn time_on_the_processor_is_counted() {
    let (_, report) = run(cluster().threads(1));
    assert_eq!(report.nic_cycles(), report.cycles * CARDS as u64);
    assert!(report.cpu() > Duration::ZERO && report.cpu() <= report.wall);
    assert!(report.cycles_per_cpu_second() >= report.cycles_per_second());
}

/// Needs the traced build, `cargo xtask models --trace nic_tiny`.
#[test]
fn a_waveform_shows_the_cycles_that_were_asked_for() {
    let path = std::env::temp_dir().join(format!("posthorn-{}.vcd", std::process::id()));
    let waves = Waves {
        path: path.clone(),
        cycles: 1000..1100,
    };
    let (traced, _) = run(cluster().waves(1, waves));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let times: Vec<u64> = text
        .lines()
        .filter_map(|line| line.strip_prefix('#')?.parse().ok())
        .collect();
    let (first, last) = (times[0], *times.last().unwrap());
    assert_eq!((first, last / 8), (8000, 1099));
    assert!(text.contains("m_axis_tvalid"));
    assert_eq!(run(cluster()).0, traced, "to look changes nothing");
}
