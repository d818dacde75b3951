//! Two cards, a message: `cargo run -p sim --example hello`, after `cargo xtask models nic_ecp5` and
//! `cargo xtask firmware`. The book's page "Getting started" goes through it.

use std::error::Error;
use std::sync::Arc;

use host_driver::{Access, Device, PairAddress, Source, TaggedReceive, TaggedSend};
use sim::{Cluster, Firmware, Host};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Cycles to wait for a completion.
const PATIENCE: u64 = 1_000_000;
/// What the message is matched by.
const TAG: u64 = 7;

/// Where `cargo xtask firmware` puts it.
const FIRMWARE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../target/firmware/firmware.elf"
);

pub(crate) fn main() -> Result<()> {
    for said in run()? {
        println!("{said}");
    }
    Ok(())
}

/// Runs both processes, and returns what each says.
pub(crate) fn run() -> Result<Vec<String>> {
    let firmware = Firmware::parse(std::fs::read(FIRMWARE)?)?;
    let outcome = Cluster::verilated("ecp5")
        .cards(2)
        .firmware(firmware)
        .run(|host| talk(&host));
    outcome.hosts()?.into_iter().collect()
}

/// What each of the two processes does.
fn talk(host: &Host) -> Result<String> {
    let device = Device::open(Arc::new(host.transport()))?;
    let pd = device.alloc_pd()?;
    let endpoint = pd.endpoint().open()?;

    // A pair is opened on both sides, the addresses are exchanged, and each side connects.
    let (pair, address) = endpoint.open_pair(8)?;
    let all = host.all_gather(address.to_bytes().to_vec())?;
    let peer = all[1 - host.card()].as_slice().try_into()?;
    endpoint.connect_pair(pair, &PairAddress::from_bytes(&peer).ok_or("no address")?)?;
    host.all_gather(Vec::new())?;

    // A buffer is given to the request and comes back with its completion.
    let (_region, mut buffer) = pd.reg_mr(64, Access::ReadWrite)?;
    if host.card() == 0 {
        buffer[..5].copy_from_slice(b"hello");
        let send = TaggedSend {
            pair,
            context: 0,
            match_bits: TAG,
            immediate: 0,
        };
        endpoint.post_tagged_send(1, &send, buffer)?;
        let completion = endpoint.completion_queue().wait(PATIENCE)?;
        Ok(format!(
            "card 0: the send completed with {}",
            completion.status
        ))
    } else {
        let receive = TaggedReceive {
            source: Source::Any,
            context: 0,
            match_bits: TAG,
            ignore_bits: 0,
        };
        endpoint.post_tagged_recv(1, &receive, buffer)?;
        let completion = endpoint.completion_queue().wait(PATIENCE)?;
        let text = String::from_utf8_lossy(&completion.received()[..5]).into_owned();
        Ok(format!(
            "card 1: received {} bytes: {text}",
            completion.length
        ))
    }
}
