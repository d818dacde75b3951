//! How long a failure takes: from its cause until the card declares the pair failed, and from there until the last operation that depends on it has completed.
//!
//! ```text
//!  cause ─────────── detect ───────────► first completion or event ── fanout ──► last completion
//! ```
//!
//! | cause | begins with |
//! |---|---|
//! | `Retries` | the peer's card loses its power; sends are posted in that cycle |
//! | `Silence` | the same; nothing is sent, and the card watches its peers as it does if not told otherwise |
//! | `Declared` | the program's `declare_failed` |
//! | `Told` | `tell_failed` at a third card |
//! | `Restarted` | the peer, whose card was reset, connects as the next incarnation |
//! | `Closed` | the peer's `close_pair` |
//!
//! The operations are receives that name the peer; of `Retries` as many sends as the card takes of a pair, and then receives. The
//! host is interrupted by the first sign, and looks at its queue in every cycle from then on, which takes none, so that the figures are the card's.

use std::sync::Arc;

use abi::mailbox::FailureCause;
use anyhow::{Context, Result, ensure};
use host_driver::transport::PauseResult;
use host_driver::{
    Access, Cause, Device, EndpointAddress, Source, TaggedReceive, TaggedSend, WatchOptions,
    WcStatus,
};
use sim::fault::{CardPlan, FaultPlan};
use sim::{Firmware, Host};

use super::{Rank, pause};
use crate::bench::Point;
use crate::bench::ends::told;
use crate::bench::speed::Length;

/// Cycle of the cause: the cards are connected, and the receives posted.
const CAUSE: u64 = 200_000;
/// The same of a short run, whose processors are faster.
const SHORT_CAUSE: u64 = 40_000;
/// Cycles after which a benchmark gives up.
const PATIENCE: u64 = 4_000_000;
/// Cycles after the last completion in which the firmware must know the cause.
const NOTED: u64 = 50_000;
/// Bytes of an operation.
const BYTES: usize = 8;
/// Entries of the completion queue: as many operations as are ever outstanding.
const ENTRIES: usize = 1024;
/// Credits of each pair.
const CREDITS: u16 = 8;

/// What a rank has seen, in cycles of the simulation.
#[derive(Default)]
struct Seen {
    /// When it began what makes the pair fail.
    cause: Option<u64>,
    /// Operations that depended on the pair, when the failure was declared, and when the last of them had completed.
    failure: Option<(usize, u64, u64)>,
}

impl Seen {
    /// It begins the cause now.
    fn cause(device: &Device) -> Self {
        Self {
            cause: Some(device.now()),
            failure: None,
        }
    }
}

const CAUSES: [FailureCause; 6] = [
    FailureCause::Retries,
    FailureCause::Silence,
    FailureCause::Declared,
    FailureCause::Told,
    FailureCause::Restarted,
    FailureCause::Closed,
];

/// Whether the peer's card loses its power.
fn is_kill(cause: FailureCause) -> bool {
    matches!(cause, FailureCause::Retries | FailureCause::Silence)
}

/// The points of each cause.
pub(super) fn run(
    config: &str,
    length: Length,
    seed: u64,
    firmware: &Firmware,
) -> Result<Vec<Point>> {
    let (causes, operations): (&[FailureCause], &[usize]) = match length {
        Length::Short => (&[FailureCause::Declared], &[64]),
        _ => (&CAUSES, &[1, 64, ENTRIES]),
    };
    let mut points = Vec::new();
    for &cause in causes {
        for &most in operations {
            eprintln!("{cause}, {most} operations outstanding, or as many as there can be");
            let (outstanding, detect, fanout) =
                measure(length, config, seed, firmware, cause, most)
                    .with_context(|| format!("{cause}, {most} outstanding"))?;
            for (name, cycles) in [("detect", detect), ("fanout", fanout)] {
                let params = [
                    ("cause", cause.name().into()),
                    ("outstanding", outstanding.into()),
                ];
                points.push(Point::new(name, params, cycles as f64, "cycles"));
            }
            if outstanding < most {
                // The card holds no more.
                break;
            }
        }
    }
    Ok(points)
}

/// Operations, cycles to the declaration, and from there to the last operation.
fn measure(
    length: Length,
    config: &str,
    seed: u64,
    firmware: &Firmware,
    cause: FailureCause,
    outstanding: usize,
) -> Result<(usize, u64, u64)> {
    let begin = match length {
        Length::Short => SHORT_CAUSE,
        _ => CAUSE,
    };
    let kill = is_kill(cause).then_some(begin);
    let killed = kill.map(|_| CardPlan {
        card: 1,
        kill,
        ..CardPlan::default()
    });
    let plan = FaultPlan {
        cards: killed.into_iter().collect(),
        ..FaultPlan::default()
    };
    let outcome = length
        .cluster(config)
        .cards(if cause == FailureCause::Told { 3 } else { 2 })
        .seed(seed)
        .firmware(firmware.clone())
        .faults(plan)
        .quiet_limit(PATIENCE)
        .run(|host| rank(&host, cause, begin, outstanding));
    let (mut begun, mut found) = (kill, None);
    for Seen { cause, failure } in told(outcome)? {
        (begun, found) = (begun.or(cause), found.or(failure));
    }
    let begun = begun.context("somebody is the cause")?;
    let (outstanding, declared, last) = found.context("card 0 sees it")?;
    let detect = declared.checked_sub(begun);
    let detect = detect.context("it was declared before its cause")?;
    Ok((outstanding, detect, last - declared))
}

fn rank(host: &Host, cause: FailureCause, begin: u64, outstanding: usize) -> Result<Seen> {
    let rank = Rank::open(host, ENTRIES, CREDITS)?;
    let addresses = host.all_gather(rank.endpoint.address().to_bytes().to_vec())?;
    let first = addresses.first().context("card 0 has an address")?;
    let first = EndpointAddress::from_bytes(&first.as_slice().try_into()?);
    let seen = match (host.card(), cause) {
        (0, _) => fails(host, &rank, cause, begin, outstanding)?,
        (1, FailureCause::Closed) => {
            pause(&rank.device, begin)?;
            let seen = Seen::cause(&rank.device);
            rank.endpoint.close_pair(rank.pair(0)?)?;
            seen
        }
        (1, FailureCause::Restarted) => {
            pause(&rank.device, begin)?;
            let transport = Arc::new(host.transport());
            rank.device.reset()?;
            drop(rank);
            let device = Device::open(transport)?;
            let endpoint = device.alloc_pd()?.endpoint().open()?;
            let seen = Seen::cause(&device);
            // Nobody accepts it: what it says of the process before it is enough.
            endpoint.begin_connect(&first, CREDITS, 0)?;
            host.all_gather(Vec::new())?;
            return Ok(seen);
        }
        (2, _) => {
            pause(&rank.device, begin)?;
            rank.endpoint.declare_failed(rank.pair(1)?)?;
            let seen = Seen::cause(&rank.device);
            let to = [rank.pair(0)?];
            rank.endpoint.tell_failed(rank.pair(1)?, &to)?;
            seen
        }
        _ => Seen::default(),
    };
    host.all_gather(Vec::new())?;
    Ok(seen)
}

/// Posts, and looks when what completes: on card 0.
fn fails(
    host: &Host,
    rank: &Rank,
    cause: FailureCause,
    begin: u64,
    outstanding: usize,
) -> Result<Seen> {
    let Rank {
        device,
        pd,
        endpoint,
        ..
    } = rank;
    let pair = rank.pair(1)?;
    endpoint.watch_peers(match cause {
        FailureCause::Silence => WatchOptions::default(),
        _ => WatchOptions {
            believe_peers: cause == FailureCause::Told,
            ..WatchOptions::OFF
        },
    })?;
    let identity = device.identity();
    let held = match cause {
        FailureCause::Retries => device.limits().pair_sends,
        _ => 0,
    };
    // Half of the card's receives are shares, one for each endpoint: nobody has those of the others.
    let room = identity.posted - identity.posted / (2 * identity.endpoints);
    let count = outstanding.min(held + (room as usize).min(ENTRIES - held));
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
    ensure!(device.now() < begin, "the receives were posted too late");
    pause(device, begin)?;
    for tag in 0..sends as u64 {
        let send = TaggedSend {
            pair,
            context: 0,
            match_bits: tag,
            immediate: tag,
        };
        endpoint.post_tagged_send(tag, &send, memory.split_to(BYTES))?;
    }
    let mut seen = Seen::default();
    let declares = (cause == FailureCause::Declared).then(|| {
        seen = Seen::cause(device);
        let endpoint = Arc::clone(endpoint);
        host.spawn(move |_| endpoint.declare_failed(pair))
    });
    let queue = endpoint.completion_queue();
    let (mut declared, mut last, mut done, mut is_told) = (None, 0, 0, false);
    while done < count || !is_told {
        let now = device.now();
        ensure!(now < begin + PATIENCE, "{done} of {count} completed");
        while let Some(completion) = queue.poll() {
            let status = completion.status;
            ensure!(
                status == WcStatus::PeerFailed,
                "an operation ended with {status}"
            );
            (done, last) = (done + 1, now);
        }
        while let Some(event) = endpoint.poll_event()? {
            let cause = event.cause;
            ensure!(cause == Cause::PeerFailed, "the card raised {cause}");
            is_told = true;
        }
        if done == 0 && !is_told {
            // The first sign interrupts.
            let sign = endpoint.req_notify_event()?;
            let woken = device.pause(&[sign], begin + PATIENCE);
            ensure!(
                matches!(woken, PauseResult::Interrupt(_)),
                "nothing was declared in {PATIENCE} cycles"
            );
            continue;
        }
        declared.get_or_insert(now);
        pause(device, now + 1)?;
    }
    let declared = declared.context("it was declared")?;
    let last = last.max(declared);
    if let Some(declares) = declares {
        declares.join()??;
    }
    // The gates end a pair before their firmware hears of it.
    let found = loop {
        if let Some(found) = endpoint.query_pair(pair)?.failure {
            break found;
        }
        let late = device.now() - last;
        ensure!(
            late < NOTED,
            "the firmware knows no cause after {late} cycles"
        );
    };
    ensure!(found == cause, "the cause is {found}");
    seen.failure = Some((count, declared, last));
    Ok(seen)
}
