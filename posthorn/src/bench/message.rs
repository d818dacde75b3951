//! How many cycles a message takes in a steady stream: the rate of a card, where [`latency`](super::latency) is about one message alone.
//!
//! ```text
//!  stream    card 0 ──► card 1            fan_in    cards 1 to n ──► card 0
//!  both      card 0 ◄─n─► card 1          fan_out   card 0 ──► cards 1 to n
//! ```
//!
//! The limit is the port's: the frame's beats and what Ethernet puts around them. Hosts post lists and take all completions that there are, once
//! in [`LOOK`] cycles. What they do in between takes no simulated time, so that the figures are the cards'.

use std::collections::VecDeque;
use std::sync::Arc;

use abi::limits::{DEFAULT_CREDITS, MAX_UNACKNOWLEDGED};
use abi::wire::frame_bytes;
use anyhow::{Context, Result, bail, ensure};
use hdl::types::Operation;
use host_driver::transport::Transport;
use host_driver::{
    Access, Buffer, CompletionQueue, Device, Endpoint, Pair, PairAddress, RecvWr, Request,
    SendFlags, SendWr, Source, TaggedReceive, TaggedSend, WcKind, WcStatus, WorkCompletion,
};
use sim::fabric::LinkFilter;
use sim::fault::{FaultPlan, Faults, LinkFault};
use sim::memory::MemoryConfig;
use sim::pins::BEAT_BYTES;
use sim::stream::GAP_BEATS;
use sim::{Cluster, Firmware, Host};

use super::ends::told;
use super::speed::Length;
use super::{Point, Report};

/// Entries of a ring of requests: more than are ever outstanding.
const RING: usize = 256;
/// Cycles between two looks of a host at its completion queue.
const LOOK: u64 = 16;
/// Cycles without a completion after which a benchmark gives up.
const PATIENCE: u64 = 1_000_000;
/// Cycles after which the first messages have come that find no receive.
const SETTLE: u64 = 20_000;

/// Cycles from the completion of a receive until the message to which it gives a credit has come, whatever the pattern: it goes back, and the
/// message comes. The first with which nine messages in ten find no receive counts.
const UNEXPECTED: [u64; 4] = [1_200, 2_400, 4_800, 9_600];
/// Memory latency that the aims name for memory near the card, and for memory across PCIe; cycles.
pub(super) const LATENCIES: [u32; 2] = [32, 125];

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// One card to another.
    Stream,
    /// Several cards to one.
    FanIn,
    /// One card to several.
    FanOut,
    /// Two cards to each other.
    Both,
}

impl Pattern {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::FanIn => "fan_in",
            Self::FanOut => "fan_out",
            Self::Both => "both",
        }
    }

    const fn cards(self, pairs: usize) -> usize {
        match self {
            Self::Stream | Self::Both => 2,
            Self::FanIn | Self::FanOut => 1 + pairs,
        }
    }

    /// Card whose rate is meant: the one with all the pairs.
    const fn measured(self) -> usize {
        match self {
            Self::Stream => 1,
            _ => 0,
        }
    }

    /// Peers of a card: for each of its pairs, the other card and the pair's place there.
    fn peers(self, card: usize, pairs: usize) -> Vec<(usize, usize)> {
        match self {
            Self::Stream | Self::Both => (0..pairs).map(|pair| (1 - card, pair)).collect(),
            _ if card == 0 => (1..=pairs).map(|other| (other, 0)).collect(),
            _ => vec![(0, card - 1)],
        }
    }

    /// Whether a card sends, and whether it receives.
    const fn roles(self, card: usize) -> (bool, bool) {
        match self {
            Self::Stream | Self::FanOut => (card == 0, card != 0),
            Self::FanIn => (card != 0, card == 0),
            Self::Both => (true, true),
        }
    }
}

/// What is measured in one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) pattern: Pattern,
    /// Pairs of the card that is measured, in each direction that it uses.
    pub(super) pairs: usize,
    pub(super) bytes: usize,
    /// Whether a message finds its receive posted.
    pub(super) posted: bool,
    pub(super) credits: u16,
    /// Cycles.
    pub(super) latency: u32,
    /// Messages that each pair carries in each direction.
    pub(super) messages: usize,
    /// Share of the frames that the links lose.
    pub(super) lose: f64,
}

impl Case {
    /// Requests of one direction of a pair that its host keeps outstanding.
    fn window(&self, is_send: bool) -> usize {
        match is_send {
            // The card is asked to hold them all.
            true => usize::from(self.credits),
            // As many as the sender has, and as many again on the way.
            false if self.posted => 2 * usize::from(self.credits),
            false => usize::from(self.credits),
        }
    }

    /// Cycles that a frame takes the port.
    const fn limit(&self) -> usize {
        frame_bytes(self.bytes).div_ceil(BEAT_BYTES) + GAP_BEATS as usize
    }
}

/// The cases of the suite.
fn cases(length: Length) -> Vec<Case> {
    let messages = match length {
        Length::Short => 32,
        Length::Normal => 256,
        Length::Long => 2048,
    };
    let base = Case {
        pattern: Pattern::Stream,
        pairs: 1,
        bytes: 8,
        posted: true,
        credits: DEFAULT_CREDITS,
        latency: LATENCIES[0],
        messages,
        lose: 0.0,
    };
    let patterns = [
        (Pattern::Stream, 1),
        (Pattern::FanIn, 4),
        (Pattern::FanOut, 4),
        (Pattern::Both, 4),
    ];
    let mut cases = Vec::new();
    for (pattern, pairs) in patterns {
        for bytes in [0, 8, 64, 256, 1024] {
            for posted in [true, false] {
                // A card that sends to several keeps none of them so busy that messages wait there.
                if !posted && pattern == Pattern::FanOut {
                    continue;
                }
                cases.push(Case {
                    pattern,
                    pairs,
                    bytes,
                    posted,
                    ..base
                });
            }
        }
    }
    for pattern in [Pattern::FanIn, Pattern::FanOut] {
        cases.push(Case {
            pattern,
            pairs: 8,
            latency: LATENCIES[1],
            ..base
        });
    }
    cases.push(Case {
        credits: MAX_UNACKNOWLEDGED,
        ..base
    });
    if length == Length::Short {
        cases.retain(|case| case.bytes == 8 && case.pairs < 8);
    }
    cases
}

/// Runs the suite.
///
/// # Errors
/// If the simulation fails, or messages that are to find no receive find one.
pub fn run(config: &str, length: Length, seed: u64, firmware: &Firmware) -> Result<Report> {
    let mut points = Vec::new();
    for case in cases(length) {
        let seen = measure(config, seed, firmware, case).with_context(|| format!("{case:?}"))?;
        let params = || {
            [
                ("pattern", case.pattern.name().into()),
                ("pairs", case.pairs.into()),
                ("bytes", case.bytes.into()),
                (
                    "receive",
                    if case.posted { "posted" } else { "unexpected" }.into(),
                ),
                ("credits", case.credits.into()),
                ("memory_latency", case.latency.into()),
            ]
        };
        let mut point = Point::new("cycles_per_message", params(), seen.per_message, "cycles");
        point.beside.insert("host", seen.host);
        points.push(point);
        let ratio = seen.per_message / case.limit() as f64;
        points.push(Point::new(
            "ratio_to_framing_limit",
            params(),
            ratio,
            "ratio",
        ));
    }
    Ok(Report::new("message", config, seed, points))
}

/// Cycles a message at the card that is measured.
fn measure(config: &str, seed: u64, firmware: &Firmware, case: Case) -> Result<Seen> {
    let mut kept = 0;
    for hold in UNEXPECTED {
        let carried = carry(config, seed, firmware, case, hold)?;
        if carried.unexpected.is_none_or(|rate| rate >= 0.9) {
            return Ok(carried.seen);
        }
        kept = carried.unexpected.map_or(0, |rate| (100.0 * rate) as u64);
    }
    bail!("{case:?}: of the messages only {kept} % found no receive")
}

/// Carries the messages of a case, and says which share of them found no receive, if none was to. Receives are posted `hold` cycles after the one
/// that they follow.
pub(super) fn carry(
    config: &str,
    seed: u64,
    firmware: &Firmware,
    case: Case,
    hold: u64,
) -> Result<Carried> {
    let lossy = LinkFault {
        lose: case.lose,
        ..LinkFault::default()
    };
    let faults = Faults::new(&FaultPlan::always(lossy), seed, "bench");
    let outcome = Cluster::verilated(config)
        .cards(case.pattern.cards(case.pairs))
        .seed(seed)
        .memory(MemoryConfig {
            latency: case.latency,
            ..MemoryConfig::default()
        })
        .firmware(firmware.clone())
        .tap(LinkFilter::ALL, faults)
        .run(|host| Node::open(host, case, hold)?.run());
    let measured = case.pattern.measured();
    let report = outcome.report.clone();
    let mut nodes = told(outcome)?;
    let mut unexpected: Option<f64> = None;
    for (card, report) in report.cards.iter().enumerate() {
        let (_, receives) = case.pattern.roles(card);
        if receives && !case.posted {
            let matching = &report.matching;
            let arrived = matching.cycles[Operation::Arrive as usize].count;
            let kept = matching.appended;
            let rate = kept as f64 / arrived as f64;
            unexpected = Some(unexpected.map_or(rate, |least| least.min(rate)));
        }
    }
    let (seen, latencies) = nodes.swap_remove(measured);
    Ok(Carried {
        seen,
        latencies,
        unexpected,
    })
}

/// What has become of the messages of a case.
#[derive(Debug)]
pub(super) struct Carried {
    /// At the card that is measured.
    pub(super) seen: Seen,
    /// Cycles from the posting of each message that it received until its completion was taken.
    pub(super) latencies: Vec<u64>,
    /// Share of the messages that found no receive, if none was to.
    unexpected: Option<f64>,
}

/// What a host has seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Cycles a message in the middle of the run.
    pub(super) per_message: f64,
    /// Of these, cycles in which the host was at work: posting and polling.
    host: f64,
}

/// One direction of a pair.
#[derive(Debug)]
struct Lane {
    pair: Pair,
    is_send: bool,
    posted: usize,
    done: usize,
    free: Vec<Buffer>,
    /// Cycles from which on the free buffers may be posted.
    due: VecDeque<u64>,
}

/// A host of one card.
struct Node {
    host: Host,
    case: Case,
    /// Cycles after which a receive that is to find its message waiting follows another.
    hold: u64,
    endpoint: Endpoint,
    queue: CompletionQueue,
    lanes: Vec<Lane>,
    requests: Vec<Request>,
}

impl Node {
    /// Opens an endpoint and its pairs, and connects them.
    fn open(host: Host, case: Case, hold: u64) -> Result<Self> {
        let (sends, receives) = case.pattern.roles(host.card());
        let peers = case.pattern.peers(host.card(), case.pairs);
        let device = Device::open(Arc::new(host.transport()))?;
        let pd = device.alloc_pd()?;
        let held = case.credits.next_power_of_two();
        let builder = pd.endpoint().pair_sends(held);
        let builder = builder.send_ring(RING).list_ring(RING);
        let endpoint = builder.completion_queue(2 * RING).open()?;
        let mut pairs = Vec::new();
        let mut addresses = Vec::new();
        for _ in &peers {
            let (pair, address) = endpoint.open_pair(case.credits)?;
            pairs.push(pair);
            addresses.extend(address.to_bytes());
        }
        let all = host.all_gather(addresses)?;
        let buffers = peers.len()
            * (usize::from(sends) * case.window(true) + usize::from(receives) * case.window(false));
        // One region for all, since a small card has fewer regions than these are buffers.
        let mut memory = match case.bytes {
            0 => Buffer::empty(),
            bytes => pd.reg_mr(buffers * bytes, Access::ReadWrite)?.1,
        };
        let mut lanes = Vec::new();
        for (&pair, &(other, place)) in pairs.iter().zip(&peers) {
            let address = all[other].chunks(PairAddress::BYTES).nth(place);
            let address = address.context("an address")?.try_into()?;
            let address = PairAddress::from_bytes(&address).context("an address")?;
            endpoint.connect_pair(pair, &address)?;
            for (is_send, wanted) in [(true, sends), (false, receives)] {
                if wanted {
                    let piece = |_| match case.bytes {
                        0 => Buffer::empty(),
                        bytes => memory.split_to(bytes),
                    };
                    let free: Vec<Buffer> = (0..case.window(is_send)).map(piece).collect();
                    lanes.push(Lane {
                        pair,
                        is_send,
                        posted: 0,
                        done: 0,
                        due: vec![0; case.window(is_send)].into(),
                        free,
                    });
                }
            }
        }
        let queue = endpoint.completion_queue();
        Ok(Self {
            host,
            case,
            hold,
            endpoint,
            queue,
            lanes,
            requests: Vec::new(),
        })
    }

    fn now(&self) -> u64 {
        self.host.transport().now()
    }

    fn pause(&self, cycles: u64) {
        let transport = self.host.transport();
        // If the simulation is over, the next call says so.
        let _ = transport.pause(&[], transport.now() + cycles);
    }

    /// Carries all messages.
    fn run(mut self) -> Result<(Seen, Vec<u64>)> {
        if self.case.posted {
            self.post(false)?;
        }
        self.host.all_gather(Vec::new())?;
        self.post(true)?;
        if !self.case.posted {
            self.pause(SETTLE);
        }
        let receives = self.lanes.iter().any(|lane| !lane.is_send);
        let total = |lanes: &[Lane], all: bool| -> usize {
            let lanes = lanes.iter().filter(|lane| all || lane.is_send != receives);
            lanes.map(|lane| lane.done).sum()
        };
        let lanes = self.lanes.iter();
        let carries = lanes.filter(|lane| lane.is_send != receives).count() * self.case.messages;
        let mut completions = Vec::new();
        let mut last = self.now();
        let mut at_work = 0;
        let mut samples = Vec::new();
        let mut latencies = Vec::new();
        while total(&self.lanes, true) < self.lanes.len() * self.case.messages {
            let begin = self.now();
            self.post(false)?;
            self.post(true)?;
            let some = self.queue.poll_many(&mut completions, usize::MAX) > 0;
            for completion in completions.drain(..) {
                let waits = if self.case.posted { 0 } else { self.hold };
                if completion.kind == WcKind::Receive {
                    latencies.push(begin - completion.immediate);
                }
                take(&mut self.lanes, completion, begin + waits)?;
            }
            let now = self.now();
            at_work += now - begin;
            if some {
                samples.push((now, total(&self.lanes, false), at_work));
                last = now;
            } else {
                ensure!(
                    now - last < PATIENCE,
                    "no completion for {PATIENCE} cycles: {:?}",
                    self.lanes
                );
                self.pause(LOOK);
            }
        }
        // Not where the stream begins, and not where pairs have ended.
        let at = |done: usize| samples.iter().find(|sample| sample.1 >= done);
        let first = at(carries / 4).context("a first quarter")?;
        let end = at(carries * 3 / 4).context("a last quarter")?;
        ensure!(end.1 > first.1, "too few messages to tell a rate");
        let messages = (end.1 - first.1) as f64;
        self.host.all_gather(Vec::new())?;
        let seen = Seen {
            per_message: (end.0 - first.0) as f64 / messages,
            host: (end.2 - first.2) as f64 / messages,
        };
        Ok((seen, latencies))
    }

    /// Posts what may be posted, as one list of sends or of receives.
    fn post(&mut self, is_send: bool) -> Result<()> {
        let Self {
            case,
            endpoint,
            lanes,
            requests,
            ..
        } = self;
        requests.clear();
        let now = self.host.transport().now();
        let mut sends = Vec::new();
        let mut receives = Vec::new();
        for (number, lane) in lanes.iter_mut().enumerate() {
            if lane.is_send != is_send {
                continue;
            }
            let due = lane.due.iter().take_while(|due| **due <= now).count();
            let room = due.min(case.messages - lane.posted);
            lane.due.drain(..room);
            let from = lane.free.len() - room;
            for buffer in lane.free.drain(from..) {
                let (wr_id, bits) = (number as u64, lane.posted as u64);
                lane.posted += 1;
                if is_send {
                    let send = TaggedSend {
                        pair: lane.pair,
                        context: 0,
                        match_bits: bits,
                        immediate: now,
                    };
                    sends.push(SendWr {
                        wr_id,
                        send,
                        flags: SendFlags::empty(),
                        buffer,
                    });
                } else {
                    let receive = TaggedReceive {
                        source: Source::Pair(lane.pair),
                        context: 0,
                        match_bits: bits,
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
        if !sends.is_empty() {
            let refused = endpoint.post_send_list(sends, requests);
            refused.map_err(|refused| refused.error)?;
        }
        if !receives.is_empty() {
            let refused = endpoint.post_recv_list(receives, requests);
            refused.map_err(|refused| refused.error)?;
        }
        Ok(())
    }
}

/// Gives a completion's buffer back to its lane, which a receive may use from the cycle `due` on.
fn take(lanes: &mut [Lane], completion: WorkCompletion, due: u64) -> Result<()> {
    let WorkCompletion {
        wr_id,
        kind,
        status,
        buffer,
        ..
    } = completion;
    ensure!(
        status == WcStatus::Success,
        "a {kind:?} completed with {status}"
    );
    let lane = lanes
        .get_mut(wr_id as usize)
        .context("a number that was posted")?;
    lane.done += 1;
    lane.due.push_back(if lane.is_send { 0 } else { due });
    lane.free.push(buffer.context("the buffer")?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_is_one_of_its_peer_too() {
        for pattern in [
            Pattern::Stream,
            Pattern::FanIn,
            Pattern::FanOut,
            Pattern::Both,
        ] {
            for card in 0..pattern.cards(4) {
                for (place, (other, there)) in pattern.peers(card, 4).into_iter().enumerate() {
                    assert_eq!(pattern.peers(other, 4)[there], (card, place));
                    let (sends, receives) = pattern.roles(card);
                    assert!(pattern.roles(other).1 >= sends && pattern.roles(other).0 >= receives);
                }
            }
        }
    }

    #[test]
    fn a_frame_of_eight_bytes_takes_the_port_for_fourteen_cycles() {
        let eight = cases(Length::Normal)
            .into_iter()
            .find(|case| case.bytes == 8);
        assert_eq!(eight.map(|case| case.limit()), Some(14));
    }
}
