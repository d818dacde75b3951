//! What the Gate takes for an access, by how much there is to look up: regions, keys and senders.
//!
//! Card 1 puts to card 0 in turn by all keys, of which each pair has some and each region one at least: one put at a time, for the cycles that it takes, and then
//! as many at a time whatever the number of senders, for the accesses in a cycle. What lies between the cards is the same for all numbers.

use abi::limits::MAX_UNACKNOWLEDGED;
use anyhow::{Context, Result, ensure};
use host_driver::{Access, Buffer, Put, RemoteKey, RemoteRights, Window};
use sim::Cluster;

use super::super::ends::{Ends, Link, succeeded, told};
use super::PATIENCE;

/// Bytes of a put: one burst.
const BYTES: usize = 8;
/// Bytes of a window.
const WINDOW: usize = 64;
/// Puts of which each is waited for.
const ALONE: usize = 32;
/// Puts of which [`MAX_UNACKNOWLEDGED`] are outstanding.
const TOGETHER: usize = 1024;
/// Keys from one put to the next: a prime.
const STRIDE: usize = 37;

/// What there is to look up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tables {
    /// Windows that are granted.
    pub(super) regions: usize,
    /// Pairs that they are granted to.
    pub(super) senders: usize,
}

impl Tables {
    /// Keys: each region and each sender has one.
    pub(super) fn keys(self) -> usize {
        self.regions.max(self.senders)
    }

    /// The sender that a key is for.
    fn sender(self, key: usize) -> usize {
        key % self.senders
    }

    /// Requests that a pair may have on its card.
    fn sends(self) -> u16 {
        (MAX_UNACKNOWLEDGED / self.senders as u16).max(2)
    }
}

/// What was seen of it.
pub(super) struct Lookup {
    /// Cycles of a put by itself, from its post to its completion.
    pub(super) alone: f64,
    /// Puts that end in a cycle when many are outstanding.
    pub(super) rate: f64,
}

/// Measures accesses with so full tables.
///
/// # Errors
/// If the simulation fails, or a put.
pub(super) fn measure(cluster: Cluster, tables: Tables) -> Result<Lookup> {
    let links: Vec<Link> = vec![(1, 0); tables.senders];
    let outcome = cluster.run(|host| -> Result<Option<Lookup>> {
        let ends = Ends::open(host, &links, tables.sends())?;
        if ends.card() == 1 {
            let keys = ends.share_keys(&[])?;
            let seen = put(&ends, &keys, tables);
            ends.meet()?;
            return seen.map(Some);
        }
        let rights = RemoteRights::WRITE;
        let windows = (0..tables.regions).map(|_| ends.pd.reg_window(WINDOW, rights));
        let windows: Vec<Window> = windows.collect::<Result<_, _>>()?;
        let mut keys = Vec::new();
        for key in 0..tables.keys() {
            let window = &windows[key % tables.regions];
            let pair = ends.pair(tables.sender(key))?;
            keys.push(window.grant(&ends.endpoint, pair, rights, ..)?);
        }
        ends.share_keys(&keys)?;
        ends.meet()?;
        Ok(None)
    });
    let told = told(outcome)?;
    told.into_iter().flatten().next().context("card 1 measures")
}

fn put(ends: &Ends, keys: &[RemoteKey], tables: Tables) -> Result<Lookup> {
    let most = usize::from(MAX_UNACKNOWLEDGED);
    let (_, mut memory) = ends.pd.reg_mr(most * BYTES, Access::ReadWrite)?;
    let mut free: Vec<Buffer> = (0..most).map(|_| memory.split_to(BYTES)).collect();
    // Neighbours in time aren't neighbours in the tables, and each key has its turn.
    ensure!(!keys.len().is_multiple_of(STRIDE), "{} keys", keys.len());
    let key = |number: usize| number * STRIDE % keys.len();
    let begin = ends.now();
    for number in 0..ALONE {
        put_all(ends, keys, tables, number..number + 1, &mut free, key)?;
    }
    let middle = ends.now();
    put_all(ends, keys, tables, 0..TOGETHER, &mut free, key)?;
    Ok(Lookup {
        alone: (middle - begin) as f64 / ALONE as f64,
        rate: TOGETHER as f64 / (ends.now() - middle) as f64,
    })
}

/// Puts of these numbers, as many at a time as there are buffers.
fn put_all(
    ends: &Ends,
    keys: &[RemoteKey],
    tables: Tables,
    mut numbers: std::ops::Range<usize>,
    free: &mut Vec<Buffer>,
    key: impl Fn(usize) -> usize,
) -> Result<()> {
    let all = free.len();
    let mut last = ends.now();
    while !numbers.is_empty() || free.len() < all {
        while let Some(number) = (!free.is_empty()).then(|| numbers.next()).flatten() {
            let place = key(number);
            let put = Put {
                pair: ends.pair(tables.sender(place))?,
                key: keys[place],
                offset: 0,
            };
            let buffer = free.pop().context("one is free")?;
            let posted = ends.endpoint.post_put(number as u64, &put, buffer);
            posted.map_err(|refused| refused.error)?;
        }
        while let Some(completion) = ends.queue.poll() {
            succeeded(completion.status)?;
            free.push(completion.buffer.context("the buffer")?);
            last = ends.now();
        }
        ensure!(ends.now() - last < PATIENCE, "a put never completed");
        ends.pause_until(ends.now() + 1);
    }
    Ok(())
}
