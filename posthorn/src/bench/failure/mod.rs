//! What failures cost: how long one takes to be found and to be told to all that depends on it, and how long a drain takes.

mod causes;
mod drain;

use std::sync::Arc;

use anyhow::{Context, Result};
use host_driver::{Device, Endpoint, Pair, PairAddress, ProtectionDomain};
use sim::{Firmware, Host, Outcome};

use super::Report;
use super::speed::Length;

/// Runs the suite.
///
/// # Errors
/// If the simulation fails, or an operation doesn't complete as it should.
pub fn run(config: &str, length: Length, seed: u64, firmware: &Firmware) -> Result<Report> {
    let mut points = causes::run(config, length, seed, firmware)?;
    points.extend(drain::run(config, length, seed, firmware)?);
    Ok(Report::new("failure", config, seed, points))
}

/// What the ranks have seen. Why one has ended early is why the others wait for it, so it comes first.
fn seen<T>(mut outcome: Outcome<Result<T>>) -> Result<Vec<T>> {
    let mut hosts = outcome.hosts.iter_mut();
    if let Some(ended) = hosts.find(|host| matches!(host, Some(Err(_))))
        && let Some(Err(error)) = ended.take()
    {
        return Err(error);
    }
    outcome.hosts()?.into_iter().collect()
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
        let (mut pairs, mut addresses) = (vec![None; host.cards()], Vec::new());
        for (rank, pair) in pairs.iter_mut().enumerate() {
            let mut bytes = [0; PairAddress::BYTES];
            if rank != host.card() {
                let (opened, address) = endpoint.open_pair(credits)?;
                (*pair, bytes) = (Some(opened), address.to_bytes());
            }
            addresses.extend(bytes);
        }
        let all = host.all_gather(addresses)?;
        for (pair, theirs) in pairs.iter().zip(all.iter()) {
            let Some(pair) = *pair else { continue };
            let mine = theirs.chunks_exact(PairAddress::BYTES).nth(host.card());
            let mine = mine.context("an address for each rank")?.try_into()?;
            let address = PairAddress::from_bytes(&mine).context("an address")?;
            endpoint.connect_pair(pair, &address)?;
        }
        host.all_gather(Vec::new())?;
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
