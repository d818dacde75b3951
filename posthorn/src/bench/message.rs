//! How many cycles a message takes in a steady stream: the rate of a card, where [`latency`](super::latency) is about one message alone.
//!
//! ```text
//!  stream    card 0 ──► card 1            fan_in    cards 1 to n ──► card 0
//!  both      card 0 ◄─n─► card 1          fan_out   card 0 ──► cards 1 to n
//! ```
//!
//! The limit is the port's: the frame's beats and what Ethernet puts around them. Hosts post lists and take all completions that there are, once
//! in [`LOOK`] cycles. What they do in between takes no simulated time, so that the figures are the cards'.
//!
//! A message that is to find no receive gets one only when its card has acknowledged it: [`Acknowledged`]. Holding receives back for a fixed time didn't do: of
//! messages of 1,024 bytes, four pairs each way, only 7 % found no receive with 1,200 cycles, 39 % with 4,800 and 34 % with 9,600.

mod acknowledged;
mod selection;

use std::collections::HashMap;
use std::sync::Arc;

use abi::limits::{DEFAULT_CREDITS, MAX_UNACKNOWLEDGED};
use abi::wire::frame_bytes;
use acknowledged::Acknowledged;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use hdl::types::Operation;
use host_driver::transport::Transport;
use host_driver::{
    Access, Buffer, CompletionQueue, Device, Endpoint, Pair, PairAddress, RecvWr, Request,
    SendFlags, SendWr, Source, TaggedReceive, TaggedSend, WcKind, WcStatus, WorkCompletion,
};
use serde_json::Value;
use sim::fabric::LinkFilter;
use sim::fault::{FaultPlan, Faults, LinkFault};
use sim::memory::MemoryConfig;
use sim::pins::BEAT_BYTES;
use sim::stream::GAP_BEATS;
use sim::{Cluster, Firmware, Host};

use super::ends::told;
use super::speed::Length;
use super::{Point, Report, Unmeasured};

pub use selection::{Receive, Selection};

/// Entries of a ring of requests: more than are ever outstanding.
const RING: usize = 256;
/// Cycles between two looks of a host at its completion queue.
const LOOK: u64 = 16;
/// Cycles without a completion after which a benchmark gives up.
const PATIENCE: u64 = 1_000_000;
/// Sends that a host keeps outstanding for each credit. One of two waits on the card for its credit, so that credits and not the host bound what is under way.
const SENDS_A_CREDIT: u16 = 2;
/// Share of the messages that must find no receive where that is measured.
const UNEXPECTED: f64 = 0.9;
/// Messages of the run that shows how long a round trip is.
const ROUND_TRIPS: usize = 32;
/// Memory latency that the aims name for memory near the card, and for memory across PCIe; cycles.
pub(super) const LATENCIES: [u32; 2] = [32, 125];

/// Number of a receive for all messages of its host.
const MULTI: u64 = u64::MAX;

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Pattern {
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
    const ALL: [Self; 4] = [Self::Stream, Self::FanIn, Self::FanOut, Self::Both];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::FanIn => "fan_in",
            Self::FanOut => "fan_out",
            Self::Both => "both",
        }
    }

    /// Pairs of the card that is measured, of who asks for no number.
    const fn pairs(self) -> usize {
        match self {
            Self::Stream => 1,
            _ => 4,
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
    /// What a message finds.
    pub(super) receive: Receive,
    pub(super) credits: u16,
    /// Sends of a pair that its host keeps outstanding.
    pub(super) sends: u16,
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
            true => usize::from(self.sends),
            // As many as the sender has, and as many again on the way.
            false => match self.receive {
                Receive::Posted => 2 * usize::from(self.credits),
                Receive::Unexpected => usize::from(self.credits),
                Receive::Multi => 0,
            },
        }
    }

    /// Pairs that carry messages, counted once for each direction.
    const fn lanes(&self) -> usize {
        match self.pattern {
            Pattern::Both => 2 * self.pairs,
            _ => self.pairs,
        }
    }

    /// Cycles that a frame takes the port.
    const fn limit(&self) -> usize {
        frame_bytes(self.bytes).div_ceil(BEAT_BYTES) + GAP_BEATS as usize
    }

    /// The ratio to that limit that is aimed at, if any is. It counts only where the credits can have so much under way.
    const fn aim(&self) -> Option<f64> {
        let several = matches!(self.pattern, Pattern::FanIn | Pattern::FanOut);
        let [near, far] = LATENCIES;
        Some(match (self.receive, self.bytes, self.pattern) {
            (Receive::Posted, 8, _) if several && self.pairs == 4 && self.latency == near => 1.1,
            (Receive::Posted, 8, _) if several && self.pairs == 8 && self.latency == far => 1.2,
            (Receive::Posted, 8, Pattern::Both) => 1.5,
            (Receive::Unexpected, 8, _) => 3.0,
            (Receive::Posted, 1024, Pattern::Both) => 1.1,
            (Receive::Posted, 1024, _) => 1.05,
            (Receive::Unexpected, 1024, _) => 2.0,
            _ => return None,
        })
    }

    /// The same message, alone on its way: what it takes is a round trip.
    const fn alone(&self) -> Self {
        Self {
            pattern: Pattern::Stream,
            pairs: 1,
            credits: 1,
            sends: SENDS_A_CREDIT,
            messages: ROUND_TRIPS,
            ..*self
        }
    }

    fn params(&self) -> [(&'static str, Value); 6] {
        [
            ("pattern", self.pattern.name().into()),
            ("pairs", self.pairs.into()),
            ("bytes", self.bytes.into()),
            ("receive", self.receive.name().into()),
            ("credits", self.credits.into()),
            ("memory_latency", self.latency.into()),
        ]
    }
}

/// The cases of the suite, or those of them that are asked for.
fn cases(length: Length, selection: &Selection) -> Vec<Case> {
    let messages = match length {
        Length::Short => 128,
        Length::Normal => 256,
        Length::Long => 2048,
    };
    let short = length == Length::Short;
    let sizes: &[usize] = if short { &[8] } else { &[0, 8, 64, 256, 1024] };
    let credits = selection.credits.unwrap_or(DEFAULT_CREDITS);
    let base = Case {
        pattern: Pattern::Stream,
        pairs: 1,
        bytes: 8,
        receive: Receive::Posted,
        credits,
        sends: SENDS_A_CREDIT * credits,
        latency: selection.memory_latency.unwrap_or(LATENCIES[0]),
        messages,
        lose: 0.0,
    };
    let mut cases = Vec::new();
    for pattern in selection.patterns() {
        for bytes in selection.bytes(sizes) {
            for receive in selection.receives() {
                cases.push(Case {
                    pattern,
                    pairs: selection.pairs.map_or(pattern.pairs(), usize::from),
                    bytes,
                    receive,
                    ..base
                });
            }
        }
    }
    if *selection != Selection::default() {
        return cases;
    }
    if !short {
        for pattern in [Pattern::FanIn, Pattern::FanOut] {
            cases.push(Case {
                pattern,
                pairs: 8,
                latency: LATENCIES[1],
                ..base
            });
        }
        for latency in LATENCIES {
            cases.push(Case {
                pattern: Pattern::FanIn,
                pairs: Pattern::FanIn.pairs(),
                receive: Receive::Multi,
                latency,
                ..base
            });
        }
        cases.push(Case {
            credits: MAX_UNACKNOWLEDGED,
            sends: SENDS_A_CREDIT * MAX_UNACKNOWLEDGED,
            ..base
        });
    }
    cases
}

/// Runs the suite, or what is selected of it. A point that can't be measured is reported as such, and the others with it.
pub fn run(
    config: &str,
    length: Length,
    selection: &Selection,
    seed: u64,
    firmware: &Firmware,
) -> Report {
    let mut points = Vec::new();
    let mut unmeasured = Vec::new();
    let mut round_trips = HashMap::new();
    for case in cases(length, selection) {
        let mut measure = || -> Result<[Point; 2]> {
            let carry = |case| carry(length.cluster(config), seed, firmware, case);
            let carried = carry(case)?;
            let of = (case.bytes, case.receive, case.latency);
            let round_trip = match round_trips.get(&of) {
                Some(&known) => known,
                None => {
                    let alone = carry(case.alone());
                    let alone = alone.context("measuring a round trip")?.seen.per_message;
                    round_trips.insert(of, alone);
                    alone
                }
            };
            Ok(told_of(case, &carried, round_trip))
        };
        match measure() {
            Ok(told) => points.extend(told),
            Err(error) => {
                unmeasured.push(Unmeasured::new("cycles_per_message", case.params(), &error))
            }
        }
    }
    let mut report = Report::new("message", config, seed, points);
    report.unmeasured = unmeasured;
    report
}

/// The points of a case that was measured.
fn told_of(case: Case, carried: &Carried, round_trip: f64) -> [Point; 2] {
    let limit = case.limit() as f64;
    let cycles = carried.seen.per_message;
    // All credits of all pairs may have their messages under way, and no more.
    let bound = round_trip / (case.pairs * usize::from(case.credits)) as f64;
    let mut point = Point::new("cycles_per_message", case.params(), cycles, "cycles");
    point.beside.insert("host", carried.seen.host);
    point.beside.insert("unexpected", carried.unexpected);
    point.beside.insert("repeated", carried.repeated);
    point.beside.insert("round_trip", round_trip);
    point.beside.insert("round_trip_bound", bound);
    let ratio = cycles / limit;
    let mut ratio = Point::new("ratio_to_framing_limit", case.params(), ratio, "ratio");
    ratio.beside.insert("round_trip_bound", bound / limit);
    if let Some(aim) = case.aim() {
        ratio.beside.insert("aim", aim);
        ratio.beside.insert("aim_or_bound", aim.max(bound / limit));
    }
    [point, ratio]
}

/// Carries the messages of a case, and says which share of them found no receive.
///
/// # Errors
/// If the simulation fails, or messages that are to find no receive find one.
pub(super) fn carry(
    cluster: Cluster,
    seed: u64,
    firmware: &Firmware,
    case: Case,
) -> Result<Carried> {
    let lossy = LinkFault {
        lose: case.lose,
        ..LinkFault::default()
    };
    let faults = Faults::new(&FaultPlan::always(lossy), seed, "bench");
    let acknowledged = Acknowledged::default();
    let outcome = cluster
        .cards(case.pattern.cards(case.pairs))
        .seed(seed)
        .memory(MemoryConfig {
            latency: case.latency,
            ..MemoryConfig::default()
        })
        .firmware(firmware.clone())
        .tap(LinkFilter::ALL, faults)
        .tap(LinkFilter::ALL, acknowledged.tap())
        .run(|host| Node::open(host, case, acknowledged.clone())?.run());
    let measured = case.pattern.measured();
    let report = outcome.report.clone();
    let mut nodes = told(outcome)?;
    let receivers = report.cards.iter().enumerate();
    let receivers = receivers.filter(|(card, _)| case.pattern.roles(*card).1);
    let shares = receivers.map(|(_, report)| {
        let matching = &report.matching;
        let arrived = matching.cycles[Operation::Arrive as usize].count;
        matching.appended as f64 / arrived as f64
    });
    // Of several receivers the one that is furthest from what is to be measured.
    let finds_none = case.receive == Receive::Unexpected;
    let unexpected = match finds_none {
        false => shares.fold(0.0, f64::max),
        true => shares.fold(1.0, f64::min),
    };
    ensure!(
        !finds_none || unexpected >= UNEXPECTED,
        "of the messages only {:.0} % found no receive",
        100.0 * unexpected
    );
    let (seen, latencies) = nodes.swap_remove(measured);
    let messages = case.lanes() * case.messages;
    Ok(Carried {
        seen,
        latencies,
        unexpected,
        repeated: acknowledged.frames() as f64 / messages as f64 - 1.0,
    })
}

/// What has become of the messages of a case.
#[derive(Debug)]
pub(super) struct Carried {
    /// At the card that is measured.
    pub(super) seen: Seen,
    /// Cycles from the posting of each message that it received until its completion was taken.
    pub(super) latencies: Vec<u64>,
    /// Share of the messages that found no receive.
    unexpected: f64,
    /// Frames that went again, for each message.
    repeated: f64,
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
}

/// A host of one card.
struct Node {
    host: Host,
    case: Case,
    /// What has come to the cards.
    acknowledged: Acknowledged,
    endpoint: Endpoint,
    queue: CompletionQueue,
    lanes: Vec<Lane>,
    requests: Vec<Request>,
}

impl Node {
    /// Opens an endpoint and its pairs, and connects them.
    fn open(host: Host, case: Case, acknowledged: Acknowledged) -> Result<Self> {
        let (sends, receives) = case.pattern.roles(host.card());
        let peers = case.pattern.peers(host.card(), case.pairs);
        let device = Device::open(Arc::new(host.transport()))?;
        let pd = device.alloc_pd()?;
        let held = case.sends.next_power_of_two();
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
        let mut memory = match buffers * case.bytes {
            0 => Buffer::empty(),
            bytes => pd.reg_mr(bytes, Access::ReadWrite)?.1,
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
                        free,
                    });
                }
            }
        }
        let queue = endpoint.completion_queue();
        if receives && case.receive == Receive::Multi {
            let bytes = peers.len() * case.messages * case.bytes;
            // It stays behind the last message too.
            let (_, buffer) = pd.reg_mr(bytes + 8, Access::ReadWrite)?;
            let receive = TaggedReceive {
                source: Source::Any,
                context: 0,
                match_bits: 0,
                ignore_bits: u64::MAX,
            };
            let refused = endpoint.post_multi_recv(MULTI, &receive, buffer, 0);
            refused.map_err(|refused| refused.error)?;
        }
        Ok(Self {
            host,
            case,
            acknowledged,
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
        if self.case.receive == Receive::Posted {
            self.post(false)?;
        }
        self.host.all_gather(Vec::new())?;
        self.post(true)?;
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
                if completion.kind == WcKind::Receive {
                    latencies.push(begin - completion.immediate);
                }
                take(&mut self.lanes, completion)?;
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
            host,
            case,
            acknowledged,
            endpoint,
            lanes,
            requests,
            ..
        } = self;
        requests.clear();
        let now = host.transport().now();
        let mut sends = Vec::new();
        let mut receives = Vec::new();
        for (number, lane) in lanes.iter_mut().enumerate() {
            if lane.is_send != is_send {
                continue;
            }
            let most = match is_send || case.receive != Receive::Unexpected {
                true => case.messages,
                false => acknowledged.of(host.card(), lane.pair.index(), now),
            };
            let room = (most - lane.posted).min(lane.free.len());
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

/// Gives a completion's buffer back to its lane.
fn take(lanes: &mut [Lane], completion: WorkCompletion) -> Result<()> {
    let WorkCompletion {
        wr_id,
        kind,
        status,
        buffer,
        pair,
        ..
    } = completion;
    ensure!(
        status == WcStatus::Success,
        "a {kind:?} completed with {status}"
    );
    if wr_id == MULTI {
        let mut lanes = lanes.iter_mut().filter(|lane| !lane.is_send);
        let lane = lanes.find(|lane| Some(lane.pair) == pair);
        lane.context("the pair of a message")?.done += 1;
        return Ok(());
    }
    let lane = lanes
        .get_mut(wr_id as usize)
        .context("a number that was posted")?;
    lane.done += 1;
    lane.free.push(buffer.context("the buffer")?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_is_one_of_its_peer_too() {
        for pattern in Pattern::ALL {
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
        let eight = cases(Length::Normal, &Selection::default())
            .into_iter()
            .find(|case| case.bytes == 8);
        assert_eq!(eight.map(|case| case.limit()), Some(14));
    }
}
