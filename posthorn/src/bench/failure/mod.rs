//! What failures cost: how long one takes to be found and to be told to all that depends on it, how long a drain takes, and what a bad peer costs the others.

mod bystander;
mod causes;
mod drain;

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use host_driver::transport::PauseResult;
use host_driver::{Device, Endpoint, Pair, ProtectionDomain};
use sim::{Firmware, Host};

use super::Report;
use super::ends::{Link, connect};
use super::speed::Length;

/// Runs the suite.
///
/// # Errors
/// If the simulation fails, or an operation doesn't complete as it should.
pub fn run(config: &str, length: Length, seed: u64, firmware: &Firmware) -> Result<Report> {
    let mut points = causes::run(config, length, seed, firmware)?;
    points.extend(drain::run(config, length, seed, firmware)?);
    points.extend(bystander::run(config, length, seed, firmware)?);
    Ok(Report::new("failure", config, seed, points))
}

/// Lets the card run until a cycle.
fn pause(device: &Device, cycle: u64) -> Result<()> {
    match device.pause(&[], cycle) {
        PauseResult::Closed | PauseResult::Unreachable => bail!("the simulation is over"),
        _ => Ok(()),
    }
}

/// A rank whose endpoint has a pair with each other's.
struct Rank {
    device: Device,
    pd: ProtectionDomain,
    endpoint: Arc<Endpoint>,
    /// None with itself.
    pairs: Vec<Option<Pair>>,
}

impl Rank {
    /// All ranks must call it. `entries` are those of the list ring and of the completion queue, and the peers have so many credits each.
    fn open(host: &Host, entries: usize, credits: u16) -> Result<Self> {
        let device = Device::open(Arc::new(host.transport()))?;
        let pd = device.alloc_pd()?;
        let builder = pd.endpoint().list_ring(entries).completion_queue(entries);
        let endpoint = builder.open()?;
        let cards = host.cards();
        let links: Vec<Link> = (0..cards)
            .flat_map(|low| (low + 1..cards).map(move |high| (low, high)))
            .collect();
        let mut pairs = vec![None; cards];
        for (number, pair) in connect(host, &endpoint, &links, credits)? {
            let (low, high) = links[number];
            pairs[if low == host.card() { high } else { low }] = Some(pair);
        }
        Ok(Self {
            device,
            pd,
            endpoint: Arc::new(endpoint),
            pairs,
        })
    }

    fn pair(&self, rank: usize) -> Result<Pair> {
        let pair = self.pairs.get(rank).copied().flatten();
        pair.context("a pair with the rank")
    }
}
