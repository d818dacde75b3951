//! How long a drain takes: from the cycle in which all call it until the last of them has come back; and how that grows with the cards.
//!
//! | load | when they call |
//! |---|---|
//! | `idle` | nothing is under way |
//! | `busy` | each has posted receives for two messages of each other, and posts four sends to each other in that cycle |
//!
//! Each run is checked: nobody has failed, what was posted has completed when the drain is over, once and as `Success` or `Cancelled`, and each message that was sent was
//! either received or discarded.

use anyhow::{Context, Result, bail, ensure};
use host_driver::{
    Access, Counter, DrainOptions, DrainPolicy, Group, MessageSet, Source, TaggedReceive,
    TaggedSend, WcKind, WcStatus,
};
use sim::{Cluster, Firmware, Host};

use super::Rank;
use crate::bench::Point;
use crate::bench::ends::told;
use crate::bench::speed::Length;

/// Numbers of cards. The last takes minutes.
const CARDS: [usize; 4] = [2, 4, 8, 16];
/// Cycles after which a drain is given up.
const PATIENCE: u64 = 20_000_000;
/// Credits of each pair.
const CREDITS: u16 = 4;
/// Messages that each sends each other, and receives that it has posted for them.
const BUSY: (usize, usize) = (4, 2);
/// Bytes of each.
const BYTES: usize = 64;

/// What one rank has seen.
struct Seen {
    /// When it called, and when its drain had ended.
    called: u64,
    ended: u64,
    /// Frames that its card sent, those of the messages included.
    frames: u64,
    /// Messages that its peers' cards accepted, that it received, and that its drain discarded.
    sent: usize,
    received: usize,
    discarded: usize,
}

/// The points of each number of cards that has a pair for each two.
pub(super) fn run(
    config: &str,
    length: Length,
    seed: u64,
    firmware: &Firmware,
) -> Result<Vec<Point>> {
    let sizes = hdl::config::ALL.iter().find(|known| known.name == config);
    let pairs = sizes.context("a configuration")?.pairs;
    let (loads, numbers): (&[&str], &[usize]) = match length {
        Length::Short => (&["busy"], &CARDS[..1]),
        Length::Normal => (&["idle", "busy"], &CARDS[..3]),
        Length::Long => (&["idle", "busy"], &CARDS),
    };
    let mut points = Vec::new();
    for &load in loads {
        let mut first = None;
        for &cards in numbers.iter().filter(|&&cards| cards - 1 <= pairs) {
            let is_busy = load == "busy";
            eprintln!("drain of {cards} cards, {load}");
            let (cycles, frames) = measure(length.cluster(config), seed, firmware, cards, is_busy)
                .with_context(|| format!("a drain of {cards} cards, {load}"))?;
            let params = || [("cards", cards.into()), ("load", load.into())];
            let mut drain = Point::new("drain", params(), cycles as f64, "cycles");
            drain.beside.insert("frames", frames as f64);
            points.push(drain);
            let Some(first) = first else {
                first = Some(cycles);
                continue;
            };
            let growth = cycles as f64 / first as f64;
            let mut growth = Point::new("drain_growth", params(), growth, "ratio");
            // What it would be if it grew so.
            growth.beside.insert("logarithm", (cards as f64).log2());
            growth.beside.insert("linear", (cards - 1) as f64);
            points.push(growth);
        }
    }
    Ok(points)
}

/// Cycles of the drain, and frames of all cards.
fn measure(
    cluster: Cluster,
    seed: u64,
    firmware: &Firmware,
    cards: usize,
    is_busy: bool,
) -> Result<(u64, u64)> {
    let outcome = cluster
        .cards(cards)
        .seed(seed)
        .firmware(firmware.clone())
        .quiet_limit(PATIENCE)
        .run(|host| rank(&host, is_busy));
    let seen = told(outcome)?;
    let called = seen.iter().map(|rank| rank.called).min();
    let ended = seen.iter().map(|rank| rank.ended).max();
    let cycles = ended.zip(called).map(|(ended, called)| ended - called);
    let frames = seen.iter().map(|rank| rank.frames).sum();
    let total = |of: fn(&Seen) -> usize| seen.iter().map(of).sum::<usize>();
    let (sent, received) = (total(|rank| rank.sent), total(|rank| rank.received));
    let discarded = total(|rank| rank.discarded);
    ensure!(
        sent == received + discarded,
        "of {sent} messages {received} were received and {discarded} discarded"
    );
    Ok((cycles.context("there are cards")?, frames))
}

fn rank(host: &Host, is_busy: bool) -> Result<Seen> {
    let rank = Rank::open(host, 256, CREDITS)?;
    let Rank {
        device,
        pd,
        endpoint,
        pairs,
    } = &rank;
    let members: Vec<_> = (0..)
        .zip(pairs)
        .filter_map(|(rank, pair)| Some((rank, (*pair)?)))
        .collect();
    let group = Group::new(endpoint, &members, host.card() as u32)?;
    let room = members.len() * (BUSY.0 + BUSY.1);
    let (_, mut memory) = pd.reg_mr(room * BYTES, Access::ReadWrite)?;
    let posted = if is_busy { room } else { 0 };
    let before = device.read_counter(Counter::FramesSent)?;
    host.all_gather(Vec::new())?;
    for &(_, pair) in members.iter().filter(|_| is_busy) {
        for tag in 0..BUSY.1 as u64 {
            let receive = TaggedReceive {
                source: Source::Pair(pair),
                context: 0,
                match_bits: tag,
                ignore_bits: 0,
            };
            endpoint.post_tagged_recv(tag, &receive, memory.split_to(BYTES))?;
        }
    }
    host.all_gather(Vec::new())?;
    for &(_, pair) in members.iter().filter(|_| is_busy) {
        for tag in 0..BUSY.0 as u64 {
            let send = TaggedSend {
                pair,
                context: 0,
                match_bits: tag,
                immediate: 0,
            };
            endpoint.post_tagged_send(tag, &send, memory.split_to(BYTES))?;
        }
    }
    let called = device.now();
    let options = DrainOptions {
        tag: 1,
        messages: MessageSet::of_context(0),
        policy: DrainPolicy::Reset,
        peer: None,
        timeout: PATIENCE,
    };
    let drained = endpoint.drain(&group, &options)?;
    let ended = device.now();
    ensure!(drained.failed.is_empty(), "{drained:?}");
    let (mut done, mut sent, mut received) = (0, 0, 0);
    while let Some(completion) = endpoint.completion_queue().poll() {
        done += 1;
        match (completion.kind, completion.status) {
            (WcKind::Send, WcStatus::Success) => sent += 1,
            (WcKind::Receive, WcStatus::Success) => received += 1,
            (_, WcStatus::Cancelled) => {}
            (kind, status) => bail!("a {kind:?} ended with {status}"),
        }
    }
    ensure!(done == posted, "{done} of {posted} have completed");
    host.all_gather(Vec::new())?;
    let frames = device.read_counter(Counter::FramesSent)? - before;
    host.all_gather(Vec::new())?;
    Ok(Seen {
        called,
        ended,
        frames,
        sent,
        received,
        discarded: drained.swept.messages,
    })
}
