//! How long a failure takes: from its cause until the card declares the pair failed, and from there until the last operation that depends on it has completed.
//!
//! ```text
//!  cause ─────────── detect ───────────► first completion or event ── fanout ──► last completion
//!  the peer's card loses its power,
//!  or the wire to and from it is cut
//! ```
//!
//! The operations are sends to the peer, as many as the card takes of a pair, and beyond that receives that name it. They are posted in the cycle of the cause. The
//! host looks at its queues in every cycle, which takes none, so that the figures are the card's.

use std::sync::Arc;

use abi::limits::MAX_CREDITS;
use anyhow::{Context, Result, bail, ensure};
use host_driver::transport::PauseResult;
use host_driver::{
    Access, Cause, Device, PairAddress, Source, TaggedReceive, TaggedSend, WcStatus,
};
use sim::fault::{CardPlan, FaultPlan, LinkFault};
use sim::{Cluster, Firmware, Host};

use super::{Point, Report};

/// Cycle of the cause: the cards are connected, and the receives posted.
const CAUSE: u64 = 300_000;
/// Cycles after which a benchmark gives up.
const PATIENCE: u64 = 2_000_000;
/// Bytes of an operation.
const BYTES: usize = 8;
/// Entries of the completion queue: as many operations as are ever outstanding.
const ENTRIES: usize = 512;

/// What makes the pair fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Card,
    Wire,
}

impl Why {
    const ALL: [Self; 2] = [Self::Card, Self::Wire];

    const fn name(self) -> &'static str {
        match self {
            Self::Card => "card_killed",
            Self::Wire => "wire_cut",
        }
    }

    fn plan(self) -> FaultPlan {
        match self {
            Self::Card => FaultPlan {
                cards: vec![CardPlan {
                    card: 1,
                    kill: Some(CAUSE),
                    ..CardPlan::default()
                }],
                ..FaultPlan::default()
            },
            Self::Wire => FaultPlan::always(LinkFault {
                begin: CAUSE,
                lose: 1.0,
                ..LinkFault::default()
            }),
        }
    }
}

/// Operations that are outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outstanding {
    Some(usize),
    /// As many as the card holds of one pair.
    Most,
}

/// What was measured, in cycles from the cause.
struct Seen {
    outstanding: usize,
    declared: u64,
    last: u64,
}

/// Runs the suite.
///
/// # Errors
/// If the simulation fails, or an operation doesn't complete as it should.
pub fn run(config: &str, seed: u64, firmware: &Firmware) -> Result<Report> {
    let mut points = Vec::new();
    for why in Why::ALL {
        for outstanding in [
            Outstanding::Some(1),
            Outstanding::Some(8),
            Outstanding::Most,
        ] {
            let seen = measure(config, seed, firmware, why, outstanding)
                .with_context(|| format!("{why:?}, {outstanding:?}"))?;
            let params = || {
                [
                    ("cause", why.name().into()),
                    ("outstanding", seen.outstanding.into()),
                ]
            };
            let fanout = seen.last - seen.declared;
            points.push(Point::new(
                "detect",
                params(),
                seen.declared as f64,
                "cycles",
            ));
            points.push(Point::new("fanout", params(), fanout as f64, "cycles"));
        }
    }
    Ok(Report::new("failure", config, seed, points))
}

fn measure(
    config: &str,
    seed: u64,
    firmware: &Firmware,
    why: Why,
    outstanding: Outstanding,
) -> Result<Seen> {
    let outcome = Cluster::verilated(config)
        .cards(2)
        .seed(seed)
        .firmware(firmware.clone())
        .faults(why.plan())
        .run(|host| rank(&host, outstanding));
    let mut hosts = outcome.hosts()?.into_iter();
    let first = hosts.next().context("card 0 has a host")?;
    first?.context("card 0 is the one that measures")
}

/// Posts, and looks when what completes: on card 0. The other one is there and takes nothing.
fn rank(host: &Host, outstanding: Outstanding) -> Result<Option<Seen>> {
    let device = Device::open(Arc::new(host.transport()))?;
    let identity = *device.identity();
    let pd = device.alloc_pd()?;
    let endpoint = pd
        .endpoint()
        .list_ring(ENTRIES)
        .completion_queue(ENTRIES)
        .open()?;
    let queue = endpoint.completion_queue();
    let credits = MAX_CREDITS.min(identity.unexpected as u16);
    let (pair, address) = endpoint.open_pair(credits)?;
    let all = host.all_gather(address.to_bytes().to_vec())?;
    let peer = all.get(1 - host.card()).context("two cards")?;
    let peer = PairAddress::from_bytes(&peer.as_slice().try_into()?).context("an address")?;
    endpoint.connect_pair(pair, &peer)?;
    host.all_gather(Vec::new())?;
    if host.card() == 1 {
        host.all_gather(Vec::new())?;
        return Ok(None);
    }
    let held = device.limits().pair_sends;
    let most = {
        // Half of the card's receives are shared among its endpoints evenly.
        let room = identity.posted - identity.posted / (2 * identity.endpoints);
        held + (room as usize).min(ENTRIES - held)
    };
    let count = match outstanding {
        Outstanding::Some(count) => count,
        Outstanding::Most => most,
    };
    let sends = count.min(held);
    let (_, mut memory) = pd.reg_mr(count * BYTES, Access::ReadWrite)?;
    for tag in sends as u64..count as u64 {
        let receive = TaggedReceive {
            source: Source::Pair(pair),
            context: 0,
            match_bits: tag,
            ignore_bits: 0,
        };
        endpoint.post_tagged_recv(tag, &receive, memory.split_to(BYTES))?;
    }
    ensure!(device.now() < CAUSE, "the receives were posted too late");
    let pause = |cycle: u64| match device.pause(&[], cycle) {
        PauseResult::Closed | PauseResult::Unreachable => bail!("the simulation is over"),
        _ => Ok(()),
    };
    pause(CAUSE)?;
    for tag in 0..sends as u64 {
        let send = TaggedSend {
            pair,
            context: 0,
            match_bits: tag,
            immediate: tag,
        };
        endpoint.post_tagged_send(tag, &send, memory.split_to(BYTES))?;
    }
    let (mut declared, mut last, mut done) = (None, 0, 0);
    while done < count || declared.is_none() {
        let now = device.now() - CAUSE;
        ensure!(now < PATIENCE, "{done} of {count} completed");
        while let Some(completion) = queue.poll() {
            ensure!(
                completion.status == WcStatus::PeerFailed,
                "an operation ended with {}",
                completion.status
            );
            declared.get_or_insert(now);
            (done, last) = (done + 1, now);
        }
        while let Some(event) = endpoint.poll_event()? {
            ensure!(
                event.cause == Cause::PeerFailed,
                "the card raised {}",
                event.cause
            );
            declared.get_or_insert(now);
        }
        pause(device.now() + 1)?;
    }
    host.all_gather(Vec::new())?;
    Ok(declared.map(|declared| Seen {
        outstanding: count,
        declared,
        last: last.max(declared),
    }))
}
