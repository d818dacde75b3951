//! What one bad peer costs the others: cycles a message of four clean peers of a card while a fifth peer is bad, against the same in the same run while it
//! is calm.
//!
//! ```text
//!  fan_in    cards 1 to 4 ──► card 0 ◄── card 5, the bad one
//!  fan_out   cards 1 to 4 ◄── card 0 ──► card 5
//!
//!  start ─┬─ idle ─┬─ calm ─┬─ lossy ─┬─ sparse ─┬─ flooding ─┬─ forging ─┬─ unpowered ──► its pair has failed
//!         └ the clean peers' streams go on through all of them ──────────────────────────────────────────────►
//! ```
//!
//! | phase | what the fifth peer does | compared with |
//! |---|---|---|
//! | `idle` | nothing | |
//! | `calm` | it carries a stream as the others do | |
//! | `lossy` | the same, and its wire loses one frame of twenty each way | `calm` |
//! | `forging` | frames of its pair that are whole but for a wrong cookie, or for a past epoch, take an eighth of card 0's port | `idle` |
//! | `sparse` | nothing; the clean peers' streams have one message under way each | |
//! | `flooding` | the same, and forged frames take seven ninths of the port | `sparse` |
//! | `unpowered` | its card has no power: what card 0 sends it is sent again until the pair fails, and then all of the pair ends with `PeerFailed` | `idle` |
//!
//! The streams and the forged frames together leave a little of the port. With more than it takes the switch's queue would grow for as long as they come,
//! whatever the card does: a message has a frame of 14 cycles one way and one of 13 the other, since an acknowledgement only waits for a message that can
//! carry it.
//!
//! Each phase is measured a while after it has begun, but for the last, which is measured from its first cycle to the completion of the last operation of
//! the pair.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use abi::limits::DEFAULT_CREDITS;
use abi::wire::{FrameHeader, FrameType, HEADER_BYTES, TRAILER_BYTES, crc32c, frame_bytes};
use anyhow::{Context, Result, bail, ensure};
use host_driver::{
    Access, Buffer, Counter, Device, Endpoint, Pair, RecvWr, Request, SendFlags, SendWr, Source,
    TaggedReceive, TaggedSend, WcStatus,
};
use sim::fabric::{LinkFilter, Passing, Tap};
use sim::fault::{CardPlan, FaultPlan, Faults, LinkFault};
use sim::pins::BEAT_BYTES;
use sim::stream::GAP_BEATS;
use sim::{Cluster, Firmware, Host};

use super::pause;
use crate::bench::Point;
use crate::bench::ends::{Link, connect, told};
use crate::bench::message::Pattern;
use crate::bench::speed::Length;

/// Clean peers, which are cards 1 to this.
const CLEAN: usize = 4;
/// The card that turns bad.
const BAD: usize = CLEAN + 1;
/// Cycle in which the streams begin: all are connected.
const START: u64 = 180_000;
/// The same of a short run, whose processors are faster.
const SHORT_START: u64 = 40_000;
/// Cycles from the beginning of a phase until it is measured.
const SETTLE: u64 = 5_000;
/// Cycles in which a pair fails by its retry limit, and all that depends on it completes.
const FAILS: u64 = 130_000;
/// Cycles before the card loses its power in which its host rests.
const REST: u64 = 1_000;
/// Cycles between two looks of a host at its completion queue.
const LOOK: u64 = 16;
/// Cycles of which the slowest in a row are told: so long a card needs to end all that depends on a pair.
const STRETCH: u64 = 2_000;
/// Cycles for which forged frames are made ahead: another frame for card 0 comes in that time.
const AHEAD: u64 = 2_000;
/// Share of the frames that the bad wire loses, each way.
const LOSS: f64 = 0.05;
/// Bytes of a message.
const BYTES: usize = 8;
/// Receives that are posted for a pair: more than it has credits, and for all pairs no more than a tiny card holds.
const RECEIVES: usize = 10;
/// Entries of a ring of requests: more than are ever outstanding.
const RING: usize = 256;
/// Cycles that a forged frame takes a port.
const FORGED: u64 = frame_bytes(BYTES).div_ceil(BEAT_BYTES) as u64 + GAP_BEATS;

/// What the fifth peer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Calm,
    Lossy,
    Sparse,
    Flooding,
    Forging,
    Unpowered,
}

impl Phase {
    const ALL: [Self; 7] = [
        Self::Idle,
        Self::Calm,
        Self::Lossy,
        Self::Sparse,
        Self::Flooding,
        Self::Forging,
        Self::Unpowered,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Calm => "calm",
            Self::Lossy => "lossy",
            Self::Sparse => "sparse",
            Self::Flooding => "flooding",
            Self::Forging => "forging",
            Self::Unpowered => "unpowered",
        }
    }

    /// The one that it is compared with, if the peer is bad.
    const fn base(self) -> Option<Self> {
        match self {
            Self::Idle | Self::Calm | Self::Sparse => None,
            Self::Lossy => Some(Self::Calm),
            Self::Flooding => Some(Self::Sparse),
            Self::Forging | Self::Unpowered => Some(Self::Idle),
        }
    }

    /// Messages that each clean peer's stream has under way, at most.
    fn under_way(self) -> usize {
        match self {
            Self::Sparse | Self::Flooding => 1,
            _ => DEFAULT_CREDITS.into(),
        }
    }

    /// Cycles from one forged frame to the next, if there are any.
    const fn forged_every(self) -> Option<u64> {
        match self {
            Self::Flooding => Some(9 * FORGED / 7),
            Self::Forging => Some(8 * FORGED),
            _ => None,
        }
    }
}

/// When the phases are.
#[derive(Clone, Copy, Debug)]
struct Plan {
    pattern: Pattern,
    /// Cycle in which the streams begin.
    start: u64,
    /// Cycles of each phase but the last that are measured.
    measured: u64,
}

impl Plan {
    /// All of a phase.
    const fn whole(&self, phase: Phase) -> Range<u64> {
        let each = SETTLE + self.measured;
        let begin = self.start + phase as u64 * each;
        match phase {
            Phase::Unpowered => begin..begin + FAILS,
            _ => begin..begin + each,
        }
    }

    fn phase(&self, cycle: u64) -> Option<Phase> {
        let mut all = Phase::ALL.into_iter();
        all.find(|phase| self.whole(*phase).contains(&cycle))
    }

    /// Cycle in which the streams end.
    const fn end(&self) -> u64 {
        self.whole(Phase::Unpowered).end
    }

    /// What befalls the links.
    fn link_faults(&self) -> FaultPlan {
        let lossy = self.whole(Phase::Lossy);
        let fault = LinkFault {
            begin: lossy.start,
            end: Some(lossy.end),
            lose: LOSS,
            ..LinkFault::default()
        };
        let source = LinkFault {
            source: Some(BAD),
            ..fault
        };
        let destination = LinkFault {
            destination: Some(BAD),
            ..fault
        };
        FaultPlan {
            faults: vec![source, destination],
            ..FaultPlan::default()
        }
    }

    /// What befalls the cards.
    fn card_faults(&self) -> FaultPlan {
        let killed = CardPlan {
            card: BAD,
            kill: Some(self.whole(Phase::Unpowered).start),
            ..CardPlan::default()
        };
        FaultPlan {
            cards: vec![killed],
            ..FaultPlan::default()
        }
    }
}

/// The points of each pattern.
pub(super) fn run(
    config: &str,
    length: Length,
    seed: u64,
    firmware: &Firmware,
) -> Result<Vec<Point>> {
    let (start, measured) = match length {
        Length::Short => (SHORT_START, 15_000),
        Length::Normal => (START, 50_000),
        Length::Long => (START, 500_000),
    };
    let patterns: &[Pattern] = match length {
        Length::Short => &[Pattern::FanIn],
        _ => &[Pattern::FanIn, Pattern::FanOut],
    };
    let mut points = Vec::new();
    for &pattern in patterns {
        eprintln!("a bad peer beside {CLEAN} others, {}", pattern.name());
        let plan = Plan {
            pattern,
            start,
            measured,
        };
        let seen = measure(length.cluster(config), seed, firmware, plan);
        let seen = seen.with_context(|| format!("a bad peer, {}", pattern.name()))?;
        for phase in Phase::ALL {
            let Some(base) = phase.base() else { continue };
            let (bad, calm) = (seen.of(phase)?, seen.of(base)?);
            let params = [
                ("bad", phase.name().into()),
                ("base", base.name().into()),
                ("pattern", pattern.name().into()),
            ];
            let ratio = bad.per_message() / calm.per_message();
            let mut point = Point::new("bystander", params, ratio, "ratio");
            let peers = (0..CLEAN).map(|peer| bad.of_peer(peer) / calm.of_peer(peer));
            let worst = peers.fold(0.0, f64::max);
            for (name, value) in [
                ("worst", worst),
                ("cycles_per_message", bad.per_message()),
                ("base_cycles_per_message", calm.per_message()),
                ("cycles", bad.cycles as f64),
                ("slowest_stretch", bad.slowest / calm.per_message()),
                ("base_slowest_stretch", calm.slowest / calm.per_message()),
            ] {
                point.beside.insert(name, value);
            }
            if let Some(every) = phase.forged_every() {
                let share = FORGED as f64 / every as f64;
                point.beside.insert("share_of_port", share);
            }
            points.push(point);
        }
    }
    Ok(points)
}

/// Messages of the clean peers that completed in some cycles.
struct Rate {
    cycles: u64,
    /// Cycles a message in the slowest stretch.
    slowest: f64,
    /// Of each peer.
    messages: [u64; CLEAN],
}

impl Rate {
    fn per_message(&self) -> f64 {
        self.cycles as f64 / self.messages.iter().sum::<u64>() as f64
    }

    fn of_peer(&self, peer: usize) -> f64 {
        self.cycles as f64 / self.messages[peer] as f64
    }
}

/// A message of a clean peer that has completed: which peer's, from 0, and in which cycle.
type Done = (usize, u64);

/// What card 0 has seen of all phases.
struct Seen {
    plan: Plan,
    /// In the order of their cycles.
    done: Vec<Done>,
    /// When the last operation of the pair that failed had completed.
    failed: u64,
}

impl Seen {
    fn of(&self, phase: Phase) -> Result<Rate> {
        let whole = self.plan.whole(phase);
        let measured = match phase {
            Phase::Unpowered => whole.start..self.failed,
            _ => whole.start + SETTLE..whole.end,
        };
        let mut messages = [0; CLEAN];
        for (peer, cycle) in &self.done {
            messages[*peer] += u64::from(measured.contains(cycle));
        }
        ensure!(
            !messages.contains(&0),
            "{phase:?}: a clean peer stands still, {messages:?} messages completed"
        );
        let until = |cycle| self.done.partition_point(|one| one.1 < cycle);
        let stretches = (measured.start..=measured.end.saturating_sub(STRETCH)).step_by(64);
        let fewest = stretches.map(|begin| until(begin + STRETCH) - until(begin));
        let fewest = fewest.min().context("a stretch")?;
        ensure!(
            fewest > 0,
            "{phase:?}: nothing completed for {STRETCH} cycles"
        );
        Ok(Rate {
            cycles: measured.end - measured.start,
            slowest: STRETCH as f64 / fewest as f64,
            messages,
        })
    }
}

fn measure(cluster: Cluster, seed: u64, firmware: &Firmware, plan: Plan) -> Result<Seen> {
    let forged = Arc::new(AtomicU64::new(0));
    let forger = forger(plan, Arc::clone(&forged));
    let to_0 = LinkFilter {
        source: None,
        destination: Some(0),
    };
    let lost = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&lost);
    let faults = Faults::new(&plan.link_faults(), seed, "bench")
        .on_finish(move |count| counted.store(count.lost, Ordering::Relaxed));
    let outcome = cluster
        .cards(BAD + 1)
        .seed(seed)
        .firmware(firmware.clone())
        .tap(to_0, forger)
        .tap(LinkFilter::ALL, faults)
        .faults(plan.card_faults())
        .run(|host| rank(&host, plan));
    let told = told(outcome)?;
    let told = told.into_iter().flatten().next();
    let (done, failed, dropped) = told.context("card 0 measures")?;
    let forged = forged.load(Ordering::Relaxed);
    ensure!(
        dropped >= forged && forged > 0,
        "{forged} frames were forged, and {dropped} dropped by reason of their pair"
    );
    ensure!(lost.load(Ordering::Relaxed) > 0, "no frame was lost");
    Ok(Seen { plan, done, failed })
}

/// Puts forged frames of the bad peer between those to card 0.
fn forger(plan: Plan, count: Arc<AtomicU64>) -> impl Tap + 'static {
    let mut like = None;
    let mut next = 0;
    move |passing: Passing, out: &mut Vec<Passing>| {
        if passing.source == BAD
            && let Ok(header) = FrameHeader::parse(&passing.frame.bytes)
            && [FrameType::Eager.code(), FrameType::Acknowledge.code()].contains(&header.frame_type)
        {
            like = Some((passing.clone(), header));
        }
        let now = passing.frame.last;
        out.push(passing);
        let phase = plan.phase(now);
        let every = phase.and_then(|phase| Some((phase, phase.forged_every()?)));
        let Some(((passing, header), (phase, every))) = like.as_ref().zip(every) else {
            return;
        };
        let whole = plan.whole(phase);
        next = next.max(whole.start);
        while next <= (now + AHEAD).min(whole.end) {
            let is_old = count.fetch_add(1, Ordering::Relaxed) % 2 == 1;
            let mut forged = passing.clone();
            forged.frame.bytes = forge(*header, is_old);
            forged.frame.first = next;
            forged.frame.last = next + FORGED - GAP_BEATS - 1;
            out.push(forged);
            next += every;
        }
    }
}

/// A message of this connection that is whole but for a past epoch, or a wrong cookie.
fn forge(header: FrameHeader, is_old: bool) -> Vec<u8> {
    let mut forged = FrameHeader {
        frame_type: FrameType::Eager.code(),
        flags: 0,
        payload_length: BYTES as u16,
        message_length: BYTES as u64,
        ..header
    };
    if is_old {
        forged.source_epoch = forged.source_epoch.wrapping_sub(1);
    } else {
        forged.cookie ^= 1;
    }
    let mut bytes = vec![0; frame_bytes(BYTES)];
    forged.emit(&mut bytes[..HEADER_BYTES]);
    let trailer = bytes.len() - TRAILER_BYTES;
    let crc = crc32c(&bytes[..trailer]);
    bytes[trailer..][..4].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// What a lane is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// A clean peer's stream.
    Clean,
    /// The stream of the one that turns bad.
    Bad,
    /// What is sent to it once its card has no power.
    Dead,
}

/// One direction of a pair.
struct Lane {
    pair: Pair,
    peer: usize,
    is_send: bool,
    of: Use,
    /// Number of the next message.
    next: u64,
    outstanding: usize,
    free: Vec<Buffer>,
}

impl Lane {
    /// How many may be posted.
    fn room(&self, plan: Plan, now: u64, failed: bool) -> usize {
        let off = plan.whole(Phase::Unpowered).start;
        let goes_on = match self.of {
            Use::Clean if self.is_send => {
                let most = plan.phase(now).map_or(0, Phase::under_way);
                return most.saturating_sub(self.outstanding);
            }
            Use::Clean => true,
            Use::Bad if self.is_send => {
                (plan.whole(Phase::Calm).start..plan.whole(Phase::Lossy).end).contains(&now)
            }
            Use::Bad => now < off,
            Use::Dead => now >= off && !failed,
        };
        if goes_on { self.free.len() } else { 0 }
    }
}

/// What card 0 tells: messages of the clean peers, when all of the pair that failed had ended, and frames that it dropped by reason of their pair.
type Told = (Vec<Done>, u64, u64);

fn rank(host: &Host, plan: Plan) -> Result<Option<Told>> {
    let device = Device::open(Arc::new(host.transport()))?;
    let pd = device.alloc_pd()?;
    let builder = pd.endpoint().pair_sends(DEFAULT_CREDITS);
    let builder = builder.send_ring(RING).list_ring(RING);
    let endpoint = builder.completion_queue(2 * RING).open()?;
    let links: Vec<Link> = (1..=BAD).map(|peer| (peer, 0)).collect();
    let pairs = connect(host, &endpoint, &links, DEFAULT_CREDITS)?;
    let card = host.card();
    let mut lanes = Vec::new();
    let (_, mut memory) = pd.reg_mr(2 * RING * BYTES, Access::ReadWrite)?;
    for (link, &(peer, _)) in links.iter().enumerate() {
        let Some(&pair) = pairs.get(&link) else {
            continue;
        };
        let of = if peer == BAD { Use::Bad } else { Use::Clean };
        let mut add = |is_send, of| {
            let window = if is_send {
                usize::from(DEFAULT_CREDITS)
            } else {
                RECEIVES
            };
            lanes.push(Lane {
                pair,
                peer,
                is_send,
                of,
                next: 0,
                outstanding: 0,
                free: (0..window).map(|_| memory.split_to(BYTES)).collect(),
            });
        };
        let is_send = (plan.pattern == Pattern::FanOut) == (card == 0);
        add(is_send, of);
        if card == 0 && of == Use::Bad {
            // Of these two sends only one ever goes on at a time.
            add(true, Use::Dead);
        }
    }
    let now = device.now();
    ensure!(
        now < plan.start,
        "the cards were connected in cycle {now} only"
    );
    let before = if card == 0 {
        device.read_counter(Counter::PairErrors)?
    } else {
        0
    };
    pause(&device, plan.start)?;
    let end = match card {
        BAD => plan.whole(Phase::Unpowered).start - REST,
        _ => plan.end(),
    };
    let (done, failed) = carry(&device, &endpoint, &mut lanes, plan, end)?;
    host.all_gather(Vec::new())?;
    if card != 0 {
        return Ok(None);
    }
    let failed = failed.context("the pair didn't fail, though its peer's card has no power")?;
    let dropped = device.read_counter(Counter::PairErrors)? - before;
    Ok(Some((done, failed, dropped)))
}

/// Keeps the streams going until a cycle. Returns the messages of the clean peers, and when all of the pair that failed had ended, if one did.
fn carry(
    device: &Device,
    endpoint: &Endpoint,
    lanes: &mut [Lane],
    plan: Plan,
    end: u64,
) -> Result<(Vec<Done>, Option<u64>)> {
    let queue = endpoint.completion_queue();
    let (mut requests, mut completions) = (Vec::new(), Vec::new());
    let (mut done, mut fails, mut failed) = (Vec::new(), false, None);
    while device.now() < end {
        post(device, endpoint, lanes, plan, fails, &mut requests)?;
        queue.poll_many(&mut completions, usize::MAX);
        let now = device.now();
        for completion in completions.drain(..) {
            let lane = lanes.get_mut(completion.wr_id as usize);
            let lane = lane.context("a number that was posted")?;
            match (completion.status, lane.of) {
                (WcStatus::Success, Use::Clean) => done.push((lane.peer - 1, now)),
                (WcStatus::Success, Use::Bad) => {}
                (WcStatus::PeerFailed, Use::Bad | Use::Dead) => fails = true,
                (status, of) => bail!("an operation of a {of:?} lane ended with {status}"),
            }
            lane.outstanding -= 1;
            lane.free.push(completion.buffer.context("the buffer")?);
        }
        let mut of_pair = lanes.iter().filter(|lane| lane.of != Use::Clean);
        if fails && failed.is_none() && of_pair.all(|lane| lane.outstanding == 0) {
            failed = Some(now);
        }
        pause(device, now + LOOK)?;
    }
    Ok((done, failed))
}

/// Posts what may be posted.
fn post(
    device: &Device,
    endpoint: &Endpoint,
    lanes: &mut [Lane],
    plan: Plan,
    failed: bool,
    requests: &mut Vec<Request>,
) -> Result<()> {
    requests.clear();
    let now = device.now();
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for (number, lane) in lanes.iter_mut().enumerate() {
        let from = lane.free.len() - lane.room(plan, now, failed);
        let (wr_id, pair) = (number as u64, lane.pair);
        for buffer in lane.free.drain(from..) {
            let match_bits = lane.next;
            lane.next += 1;
            lane.outstanding += 1;
            if lane.is_send {
                let send = TaggedSend {
                    pair,
                    context: 0,
                    match_bits,
                    immediate: 0,
                };
                sends.push(SendWr {
                    wr_id,
                    send,
                    flags: SendFlags::empty(),
                    buffer,
                });
            } else {
                let receive = TaggedReceive {
                    source: Source::Pair(pair),
                    context: 0,
                    match_bits,
                    ignore_bits: 0,
                };
                receives.push(RecvWr {
                    wr_id,
                    receive,
                    multi: None,
                    buffer,
                });
            }
        }
    }
    if !receives.is_empty() {
        let refused = endpoint.post_recv_list(receives, requests);
        refused.map_err(|refused| refused.error)?;
    }
    if !sends.is_empty() {
        let refused = endpoint.post_send_list(sends, requests);
        refused.map_err(|refused| refused.error)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_each_other_without_a_gap() {
        let plan = Plan {
            pattern: Pattern::FanIn,
            start: START,
            measured: 15_000,
        };
        for two in Phase::ALL.windows(2) {
            assert_eq!(plan.whole(two[0]).end, plan.whole(two[1]).start);
        }
        assert_eq!(plan.link_faults().check(BAD + 1), Ok(()));
        assert_eq!(plan.card_faults().check(BAD + 1), Ok(()));
    }

    #[test]
    fn a_forged_frame_is_whole_but_for_the_epoch_or_the_cookie() {
        let header = FrameHeader {
            source_epoch: 4,
            cookie: 8,
            ..FrameHeader::default()
        };
        for is_old in [false, true] {
            let bytes = forge(header, is_old);
            let forged = FrameHeader::parse(&bytes).expect("a header");
            assert_eq!(
                (forged.source_epoch == 3, forged.cookie == 9),
                (is_old, !is_old)
            );
            let trailer = bytes.len() - TRAILER_BYTES;
            assert_eq!(
                bytes[trailer..][..4],
                crc32c(&bytes[..trailer]).to_le_bytes()
            );
        }
    }
}
