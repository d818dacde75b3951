//! Cards with pairs between any of them, and windows that are granted over these: what the benchmarks of puts run over.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use abi::limits::DEFAULT_CREDITS;
use abi::wire::{FrameHeader, FrameType};
use anyhow::{Context, Result, ensure};
use host_driver::transport::{Transport, TransportError};
use host_driver::{
    CompletionQueue, Device, Endpoint, Pair, PairAddress, ProtectionDomain, RemoteKey, WcStatus,
};
use sim::fabric::{Passing, Tap};
use sim::{Host, Outcome};

/// Entries of a ring of requests, and of a completion queue: more than are ever outstanding.
const ENTRIES: usize = 4096;

/// A pair: its two cards.
pub(super) type Link = (usize, usize);

/// A host, with an endpoint that has the pairs of its card.
pub(super) struct Ends {
    pub(super) host: Host,
    pub(super) device: Device,
    pub(super) pd: ProtectionDomain,
    pub(super) endpoint: Endpoint,
    pub(super) queue: CompletionQueue,
    pairs: HashMap<usize, Pair>,
}

impl Ends {
    /// Opens an endpoint on the host's card whose pairs may have `sends` on the card, and connects those of the links that the card has an end of.
    pub(super) fn open(host: Host, links: &[Link], sends: u16) -> Result<Self> {
        let device = Device::open(Arc::new(host.transport()))?;
        let pd = device.alloc_pd()?;
        let builder = pd.endpoint().pair_sends(sends);
        let builder = builder.send_ring(ENTRIES).completion_queue(ENTRIES);
        let endpoint = builder.open()?;
        let pairs = connect(&host, &endpoint, links, DEFAULT_CREDITS)?;
        let queue = endpoint.completion_queue();
        Ok(Self {
            host,
            device,
            pd,
            endpoint,
            queue,
            pairs,
        })
    }

    pub(super) fn card(&self) -> usize {
        self.host.card()
    }

    /// The card's end of a link.
    pub(super) fn pair(&self, link: usize) -> Result<Pair> {
        let pair = self.pairs.get(&link).copied();
        pair.with_context(|| format!("card {} has no end of link {link}", self.card()))
    }

    pub(super) fn now(&self) -> u64 {
        self.host.transport().now()
    }

    /// Lets the card run until a cycle.
    pub(super) fn pause_until(&self, cycle: u64) {
        // If the simulation is over, the next call says so.
        let _ = self.host.transport().pause(&[], cycle);
    }

    /// Returns when all hosts have called it: with the cycle in which the last did.
    pub(super) fn meet(&self) -> Result<u64> {
        let all = self.host.all_gather(self.now().to_le_bytes().to_vec())?;
        let cycles = all.iter().map(|bytes| bytes.as_slice().try_into());
        let cycles: Vec<u64> = cycles
            .map(|bytes| bytes.map(u64::from_le_bytes))
            .collect::<Result<_, _>>()?;
        cycles.into_iter().max().context("at least one host")
    }

    /// Hands out the keys that card 0 has made, and returns them. The others give none.
    pub(super) fn share_keys(&self, made: &[RemoteKey]) -> Result<Vec<RemoteKey>> {
        let bytes = made.iter().flat_map(|key| key.to_bits().to_le_bytes());
        let all = self.host.all_gather(bytes.collect())?;
        let keys = all[0].chunks_exact(8).map(|bytes| {
            let bits = bytes.iter().rev();
            RemoteKey::from_bits(bits.fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
        });
        Ok(keys.collect())
    }
}

/// Opens and connects the pairs of those links that the host's card has an end of, by their places among them, with so many credits each. All hosts must call
/// it, and go on when all have connected.
pub(super) fn connect(
    host: &Host,
    endpoint: &Endpoint,
    links: &[Link],
    credits: u16,
) -> Result<HashMap<usize, Pair>> {
    let mut pairs = HashMap::new();
    let mut addresses = vec![0; links.len() * PairAddress::BYTES];
    let places = addresses.chunks_mut(PairAddress::BYTES);
    for (number, (&(from, to), place)) in links.iter().zip(places).enumerate() {
        if [from, to].contains(&host.card()) {
            let (pair, address) = endpoint.open_pair(credits)?;
            pairs.insert(number, pair);
            place.copy_from_slice(&address.to_bytes());
        }
    }
    let all = host.all_gather(addresses)?;
    for (number, &(from, to)) in links.iter().enumerate() {
        if let Some(&pair) = pairs.get(&number) {
            let other = &all[if from == host.card() { to } else { from }];
            let address = other.chunks(PairAddress::BYTES).nth(number);
            let address = address.context("an address of each link")?.try_into()?;
            let address = PairAddress::from_bytes(&address).context("an address")?;
            endpoint.connect_pair(pair, &address)?;
        }
    }
    host.all_gather(Vec::new())?;
    Ok(pairs)
}

/// What the hosts tell. If one has given up, why: of several the first whose simulation hadn't ended.
pub(super) fn told<T>(outcome: Outcome<Result<T>>) -> Result<Vec<T>> {
    let Outcome { hosts, error, .. } = outcome;
    let (mut told, mut reasons) = (Vec::new(), Vec::new());
    for host in hosts.into_iter().flatten() {
        match host {
            Ok(one) => told.push(one),
            Err(reason) => reasons.push(reason),
        }
    }
    // The others' is that the simulation is over, since all wait for one that has ended.
    let is_consequence = |reason: &anyhow::Error| {
        reason.downcast_ref::<TransportError>() == Some(&TransportError::Closed)
    };
    reasons.sort_by_key(is_consequence);
    if let Some(reason) = reasons.into_iter().next() {
        return Err(match error {
            Some(error) => reason.context(error),
            None => reason,
        });
    }
    match error {
        Some(error) => Err(error.into()),
        None => Ok(told),
    }
}

/// Holds that something ended well.
pub(super) fn succeeded(status: WcStatus) -> Result<()> {
    ensure!(status == WcStatus::Success, "a put completed with {status}");
    Ok(())
}

/// A frame of a put, or of the answer to a get, counted when it has left its card for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Carried {
    pub(super) cycle: u64,
    pub(super) source: usize,
    pub(super) bytes: u64,
}

/// The frames of puts to card 0, and of answers to gets from it, that have passed; and how many of gets, and of answers, came again.
#[derive(Clone, Default)]
pub(super) struct Wire {
    carried: Arc<Mutex<Vec<Carried>>>,
    again: Arc<[AtomicU64; 2]>,
}

impl Wire {
    /// What notes them.
    pub(super) fn tap(&self) -> impl Tap + 'static {
        let Self { carried, again } = self.clone();
        // What has passed: what it is, of which cards and pair, and its number. Others of the pair may be between two of a kind.
        let mut known: HashSet<(u8, usize, usize, u16, u32)> = HashSet::new();
        move |passing: Passing, out: &mut Vec<Passing>| {
            let (from, to) = (passing.source, passing.destination);
            // Whether it is carried to where the benchmark counts, and where it is counted if it comes again.
            let of = |header: &FrameHeader| match FrameType::from_code(header.frame_type) {
                Some(FrameType::Put) => Some((to == 0, None)),
                Some(FrameType::Get) => Some((false, Some(&again[0]))),
                Some(FrameType::GetAnswer) => Some((from == 0, Some(&again[1]))),
                _ => None,
            };
            if let Ok(header) = FrameHeader::parse(&passing.frame.bytes)
                && let Some((lands, repeats)) = of(&header)
            {
                let (pair, sequence) = (header.destination_pair, header.sequence);
                let is_new = known.insert((header.frame_type, from, to, pair, sequence));
                if is_new && lands {
                    let mut carried = carried.lock().unwrap_or_else(PoisonError::into_inner);
                    carried.push(Carried {
                        cycle: passing.frame.last,
                        source: from,
                        bytes: header.payload_length.into(),
                    });
                }
                if let Some(repeats) = repeats.filter(|_| !is_new) {
                    repeats.fetch_add(1, Ordering::Relaxed);
                }
            }
            out.push(passing);
        }
    }

    /// Frames that asked for what had been asked for before, and answers of what had been answered before.
    pub(super) fn again(&self) -> [u64; 2] {
        [0, 1].map(|kind| self.again[kind].load(Ordering::Relaxed))
    }

    /// All of them, the first first.
    pub(super) fn all(&self) -> Vec<Carried> {
        let mut all = self
            .carried
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        all.sort_by_key(|carried| carried.cycle);
        all
    }

    /// Bytes that a card sent in each of these cycles.
    pub(super) fn rate(&self, source: usize, cycles: &Range<u64>) -> f64 {
        let all = self.carried.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = all
            .iter()
            .filter(|one| one.source == source && cycles.contains(&one.cycle));
        let bytes: u64 = counted.map(|one| one.bytes).sum();
        bytes as f64 / (cycles.end - cycles.start) as f64
    }
}
