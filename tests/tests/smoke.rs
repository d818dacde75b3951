//! The card comes up: registers, firmware, an endpoint, a message to itself and one to another card.

use std::error::Error;
use std::sync::Arc;

use abi::ABI_VERSION;
use abi::register::{ABI, ID, MAGIC};
use host_driver::transport::Transport;
use host_driver::{Access, Device, Source, TaggedReceive, TaggedSend, WcStatus};
use posthorn_tests::firmware;
use sim::{Cluster, Host};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Cycles after which a wait has failed.
const PATIENCE: u64 = 200_000;

fn run<T: Send>(cluster: Cluster, host: impl Fn(&Host) -> Result<T> + Sync) -> Vec<T> {
    let outcome = cluster.cycle_limit(3_000_000).run(|h| host(&h));
    let mut failed = false;
    if let Some(error) = &outcome.error {
        eprintln!("{error}");
        failed = true;
    }
    let hosts: Vec<T> = outcome
        .hosts
        .into_iter()
        .enumerate()
        .filter_map(|(card, result)| match result? {
            Ok(value) => Some(value),
            Err(error) => {
                eprintln!("host of card {card}: {error}");
                failed = true;
                None
            }
        })
        .collect();
    assert!(!failed);
    hosts
}

#[test]
fn registers_tell_what_the_card_is() {
    run(Cluster::verilated("tiny"), |host| {
        let transport = host.transport();
        assert_eq!(transport.read_register(ID)?, MAGIC);
        assert_eq!(transport.read_register(ABI)?, ABI_VERSION);
        Ok(())
    });
}

#[test]
fn firmware_answers_and_opens_an_endpoint() {
    run(Cluster::verilated("tiny").firmware(firmware()), |host| {
        let device = Device::open(Arc::new(host.transport()))?;
        assert_eq!(device.identity().endpoints, 2);
        assert_eq!(device.identity().pairs, 8);
        let domain = device.alloc_pd()?;
        let endpoint = domain.endpoint().open()?;
        endpoint.close()?;
        Ok(())
    });
}

/// Opens an endpoint on each card, connects each to the next and the previous (itself if there is one
/// card), and sends `lengths` round the ring, received before or after they arrive.
fn round(host: &Host, lengths: &[usize]) -> Result<()> {
    let (me, cards) = (host.card(), host.cards());
    let (next, previous) = ((me + 1) % cards, (me + cards - 1) % cards);
    let device = Device::open(Arc::new(host.transport()))?;
    let domain = device.alloc_pd()?;
    let endpoint = domain.endpoint().open()?;
    let queue = endpoint.completion_queue();
    // One pair to the next card, one to the previous.
    let (to, to_address) = endpoint.open_pair(4)?;
    let (from, from_address) = endpoint.open_pair(4)?;
    let mut bytes = to_address.to_bytes().to_vec();
    bytes.extend(from_address.to_bytes());
    let all = host.all_gather(bytes)?;
    let address = |card: usize, half: usize| {
        let bytes = all[card][32 * half..][..32].try_into().expect("32 bytes");
        host_driver::PairAddress::from_bytes(bytes).ok_or("no address")
    };
    endpoint.connect(to, &address(next, 1)?)?;
    endpoint.connect(from, &address(previous, 0)?)?;
    host.all_gather(Vec::new())?;

    let payload = |card: usize, k: usize| -> Vec<u8> {
        (0..lengths[k])
            .map(|b| (b + 7 * k + 31 * card) as u8)
            .collect()
    };
    let (_region, mut memory) = domain.reg_mr(2048 * lengths.len(), Access::ReadWrite)?;
    for (k, &length) in lengths.iter().enumerate() {
        // Odd ones are received when they have arrived.
        let mut buffer = memory.split_to(1024);
        let receive = TaggedReceive {
            source: if k % 3 == 0 {
                Source::Any
            } else {
                Source::Pair(from)
            },
            context: k as u16,
            match_bits: 0x1234_5678 + k as u64,
            ignore_bits: 0xff00_0000_0000_0000,
        };
        let late = k % 2 == 1;
        if !late {
            endpoint
                .post_tagged_recv(k as u64, &receive, buffer)
                .map_err(|e| e.error)?;
            host.all_gather(Vec::new())?;
            buffer = memory.split_to(0);
        }
        let mut message = memory.split_to(1024);
        let send = TaggedSend {
            pair: to,
            context: k as u16,
            match_bits: 0xab00_0000_1234_5678 + k as u64,
            immediate: 99 + k as u64,
        };
        message[..length].copy_from_slice(&payload(me, k));
        let message = message.split_to(length);
        endpoint
            .post_tagged_send(1000 + k as u64, &send, message)
            .map_err(|e| e.error)?;
        if late {
            let sent = queue.wait(PATIENCE)?;
            assert_eq!(
                (sent.wr_id, sent.status),
                (1000 + k as u64, WcStatus::Success)
            );
            host.all_gather(Vec::new())?;
            endpoint
                .post_tagged_recv(k as u64, &receive, buffer)
                .map_err(|e| e.error)?;
        }
        for _ in 0..if late { 1 } else { 2 } {
            let completion = queue.wait(PATIENCE)?;
            assert_eq!(completion.status, WcStatus::Success, "message {k}");
            if completion.wr_id < 1000 {
                assert_eq!(completion.wr_id, k as u64);
                assert_eq!(completion.received(), payload(previous, k), "message {k}");
                assert_eq!(completion.immediate, 99 + k as u64);
            }
        }
    }
    assert_eq!(endpoint.sticky_causes()?, 0);
    endpoint.close()?;
    Ok(())
}

const LENGTHS: [usize; 10] = [8, 8, 0, 0, 1, 13, 1024, 1024, 63, 100];

#[test]
fn a_card_sends_to_itself() {
    run(Cluster::verilated("tiny").firmware(firmware()), |host| {
        round(host, &LENGTHS)
    });
}

#[test]
fn cards_send_to_each_other() {
    let cluster = Cluster::verilated("tiny").cards(2).firmware(firmware());
    run(cluster, |host| round(host, &LENGTHS));
}
