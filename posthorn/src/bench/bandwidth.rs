//! Which share of a link's beats carries payload while long puts, or the answers of long gets, go over it.
//!
//! ```text
//!  puts:  stream    card 1 ──► card 0, over one pair or four      fan_in    cards 1 to 4 ──► card 0
//!  gets:  stream    card 1 ◄── card 0                             fan_out   cards 1 to 4 ◄── card 0
//! ```
//!
//! A put goes in frames of 1024 bytes, and the limit is what these leave: the payload's beats ÷ the frame's and what Ethernet puts around it. Each pair has
//! two puts outstanding, so that the next begins when the last part of the one before has gone; the share is that of the middle half of the bytes, as
//! they leave their cards, and what is sent again doesn't count. A get is answered by such frames. Beside it the cycles of one put alone, from its post to its completion. When all is over the
//! window has to hold what was put last at each place; of a get each buffer has to hold what the window has.

use abi::limits::{EAGER_MAX, MAX_UNACKNOWLEDGED};
use abi::wire::frame_bytes;
use anyhow::{Context, Result, bail, ensure};
use host_driver::{Access, Buffer, Get, Put, RemoteKey, RemoteRights};
use sim::fabric::LinkFilter;
use sim::fault::{FaultPlan, Faults, LinkFault};
use sim::memory::MemoryConfig;
use sim::pins::BEAT_BYTES;
use sim::stream::GAP_BEATS;
use sim::{Cluster, Firmware, Host};

use super::ends::{Carried, Ends, Link, Wire, succeeded, told};
use super::message::LATENCIES;
use super::speed::Length;
use super::{Point, Report};
use crate::payload::MessageId;

/// Puts or gets of a pair that are outstanding.
const WINDOW: usize = 2;
/// Cycles between two looks of a host at its completion queue.
const LOOK: u64 = 16;
/// Cycles without a completion after which a benchmark gives up.
const PATIENCE: u64 = 10_000_000;

/// What is done with the memory of card 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    /// It is written.
    Put,
    /// It is read.
    Get,
}

impl Op {
    const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
        }
    }
}

/// Who puts to card 0, or gets from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    /// One card.
    Stream,
    /// A card for each pair.
    Fan,
}

impl Pattern {
    const fn name(self, op: Op) -> &'static str {
        match (self, op) {
            (Self::Stream, _) => "stream",
            (Self::Fan, Op::Put) => "fan_in",
            (Self::Fan, Op::Get) => "fan_out",
        }
    }

    fn links(self, pairs: usize) -> Vec<Link> {
        let source = |pair| match self {
            Self::Stream => 1,
            Self::Fan => 1 + pair,
        };
        (0..pairs).map(|pair| (source(pair), 0)).collect()
    }
}

/// What is measured in one run.
#[derive(Clone, Copy, Debug)]
struct Case {
    op: Op,
    pattern: Pattern,
    pairs: usize,
    bytes: usize,
    /// Cycles.
    latency: u32,
    /// Puts or gets of each pair.
    ops: usize,
    /// Sends of each pair that the card holds; 0: as many as it can of all pairs.
    sends: u16,
    /// Share of the frames that the links lose.
    lose: f64,
}

/// The cases of the suite.
fn cases(length: Length) -> Vec<Case> {
    let base = Case {
        op: Op::Put,
        pattern: Pattern::Stream,
        pairs: 1,
        bytes: 64 << 10,
        latency: LATENCIES[0],
        ops: match length {
            Length::Short => 2,
            Length::Normal => 4,
            Length::Long => 32,
        },
        // As many as parts of a put or a get may be under way.
        sends: MAX_UNACKNOWLEDGED,
        lose: 0.0,
    };
    let four = Case { pairs: 4, ..base };
    let gets = |case| Case {
        op: Op::Get,
        ..case
    };
    if length == Length::Short {
        let short = |case| Case {
            bytes: 16 << 10,
            ..case
        };
        return [base, four, gets(base), gets(four)].map(short).into();
    }
    let fan_in = Case {
        pattern: Pattern::Fan,
        ..four
    };
    let mut cases = vec![base, four, fan_in];
    for case in [base, four, fan_in] {
        cases.push(Case {
            bytes: 1 << 20,
            ops: base.ops / 2,
            ..case
        });
    }
    for case in [base, four] {
        cases.push(Case {
            latency: LATENCIES[1],
            ..case
        });
    }
    for sends in [0, 8] {
        cases.push(Case { sends, ..base });
    }
    let far = Case {
        latency: LATENCIES[1],
        ..base
    };
    cases.extend([base, four, fan_in, far].map(gets));
    // A lap over all pairs takes longer than the shortest time-out. Of the 512 descriptors of `ecp5` each pair has as many as there are.
    for (pairs, bytes) in [(32, 64 << 10), (64, 32 << 10)] {
        let sends = MAX_UNACKNOWLEDGED.min(512 / pairs as u16);
        let ops = base.ops.min(WINDOW);
        let many = Case {
            pairs,
            bytes,
            sends,
            ops,
            ..base
        };
        cases.push(gets(many));
    }
    cases
}

/// Share of a link's beats that is payload, at most.
fn limit() -> f64 {
    let beats = |bytes: usize| bytes.div_ceil(BEAT_BYTES) as f64;
    beats(EAGER_MAX) / (beats(frame_bytes(EAGER_MAX)) + GAP_BEATS as f64)
}

/// Runs the suite.
///
/// # Errors
/// If the simulation fails, a put or a get doesn't end well, or the window, or a buffer, doesn't hold what it should.
pub fn run(config: &str, length: Length, seed: u64, firmware: &Firmware) -> Result<Report> {
    let mut points = Vec::new();
    for case in cases(length) {
        let seen = measure(length.cluster(config), seed, firmware, case);
        let seen = seen.with_context(|| format!("{case:?}"))?;
        let params = || {
            [
                ("op", case.op.name().into()),
                ("pattern", case.pattern.name(case.op).into()),
                ("pairs", case.pairs.into()),
                ("bytes", case.bytes.into()),
                ("pair_sends", seen.sends.into()),
                ("memory_latency", case.latency.into()),
            ]
        };
        let mut share = Point::new("share_of_link", params(), seen.share, "share");
        share.beside.insert("limit", limit());
        points.push(share);
        let ratio = seen.share / limit();
        points.push(Point::new("ratio_to_limit", params(), ratio, "ratio"));
        points.push(Point::new("alone", params(), seen.alone as f64, "cycles"));
        if case.op == Op::Get {
            let [gets, answers] = seen.again.map(|frames| frames as f64);
            let mut again = Point::new("asked_again", params(), gets, "frames");
            again.beside.insert("answered_again", answers);
            points.push(again);
        }
    }
    Ok(Report::new("bandwidth", config, seed, points))
}

/// Beats with payload in each cycle of a link that loses a share of its frames, while puts of so many bytes go over one pair.
///
/// # Errors
/// If the simulation fails, a put doesn't end well, or the window doesn't hold what was put.
pub(super) fn lossy_stream(
    cluster: Cluster,
    seed: u64,
    firmware: &Firmware,
    (puts, bytes): (usize, usize),
    lose: f64,
) -> Result<f64> {
    let case = Case {
        op: Op::Put,
        pattern: Pattern::Stream,
        pairs: 1,
        bytes,
        latency: LATENCIES[0],
        ops: puts,
        sends: MAX_UNACKNOWLEDGED,
        lose,
    };
    let seen = measure(cluster, seed, firmware, case);
    Ok(seen.with_context(|| format!("{case:?}"))?.share)
}

/// What was seen of a case.
struct Seen {
    /// Beats with payload in each cycle of the link.
    share: f64,
    /// Cycles of a put or a get from its post to its completion, with nothing beside it.
    alone: u64,
    /// Sends of a pair that the card held.
    sends: usize,
    /// Frames that asked for what had been asked for before, and answers of what had been answered before.
    again: [u64; 2],
}

/// Runs a case.
fn measure(cluster: Cluster, seed: u64, firmware: &Firmware, case: Case) -> Result<Seen> {
    let wire = Wire::default();
    let lossy = LinkFault {
        lose: case.lose,
        ..LinkFault::default()
    };
    // What is lost has left its card: it counts, once.
    let faults = Faults::new(&FaultPlan::always(lossy), seed, "bench");
    let links = case.pattern.links(case.pairs);
    let cards = links.iter().map(|link| link.0 + 1).max();
    let outcome = cluster
        .cards(cards.context("a pair at least")?)
        .seed(seed)
        .memory(MemoryConfig {
            latency: case.latency,
            ..MemoryConfig::default()
        })
        .firmware(firmware.clone())
        .tap(LinkFilter::ALL, wire.tap())
        .tap(LinkFilter::ALL, faults)
        .run(|host| rank(host, case, &links));
    let told = told(outcome)?;
    let first = told.into_iter().flatten().next();
    let (alone, sends, since) = first.context("a card that puts or gets")?;
    let carried: Vec<Carried> = wire
        .all()
        .into_iter()
        .filter(|one| one.cycle >= since)
        .collect();
    let total: u64 = carried.iter().map(|one| one.bytes).sum();
    ensure!(
        total == (case.ops * case.pairs * case.bytes) as u64,
        "{total} bytes were on the wire"
    );
    // Not where the stream begins, and not where pairs have ended.
    let mut done = 0;
    let (mut begin, mut end) = (None, None);
    for one in &carried {
        done += one.bytes;
        if begin.is_none() && done >= total / 4 {
            begin = Some((one.cycle, done));
        }
        if end.is_none() && done >= total / 4 * 3 {
            end = Some((one.cycle, done));
        }
    }
    let (begin, end) = begin.zip(end).context("frames with payload")?;
    let beats = (end.1 - begin.1) as f64 / BEAT_BYTES as f64;
    Ok(Seen {
        share: beats / (end.0 - begin.0) as f64,
        alone,
        sends,
        again: wire.again(),
    })
}

/// What is put by a link as its put of this number, or is at the place of this number for its gets.
fn payload(link: usize, number: usize) -> MessageId {
    MessageId {
        source: link,
        destination: 0,
        number: number as u64,
    }
}

/// Puts or gets, or has the window. Who does returns the cycles of its first put or get, which goes alone, the sends that a pair has, and the cycle since which
/// it has done the others.
fn rank(host: Host, case: Case, links: &[Link]) -> Result<Option<(u64, usize, u64)>> {
    let ends = Ends::open(host, links, case.sends)?;
    let part = WINDOW * case.bytes;
    if ends.card() == 0 {
        let rights = match case.op {
            Op::Put => RemoteRights::WRITE,
            Op::Get => RemoteRights::READ,
        };
        let window = ends.pd.reg_window(links.len() * part, rights)?;
        let mut bytes = vec![0; case.bytes];
        for (link, slot) in places(links.len()).filter(|_| case.op == Op::Get) {
            payload(link, slot).fill(&mut bytes);
            window.write(link * part + slot * case.bytes, &bytes);
        }
        let keys = (0..links.len()).map(|link| {
            let range = link * part..(link + 1) * part;
            let pair = ends.pair(link)?;
            Ok(window.grant(&ends.endpoint, pair, rights, range)?)
        });
        ends.share_keys(&keys.collect::<Result<Vec<_>>>()?)?;
        ends.meet()?;
        ends.meet()?;
        for (link, slot) in places(links.len()) {
            let last = case.ops - WINDOW..case.ops;
            let number = match case.op {
                Op::Put => last.into_iter().find(|number| number % WINDOW == slot),
                Op::Get => Some(slot),
            };
            let number = number.context("the last of each place")?;
            window.read(link * part + slot * case.bytes, &mut bytes);
            is_right(&bytes, link, number)?;
        }
        return Ok(None);
    }
    let keys = ends.share_keys(&[])?;
    let mut lanes = Vec::new();
    for (link, &(from, _)) in links.iter().enumerate() {
        if from == ends.card() {
            let free = (0..WINDOW).map(|_| Ok(ends.pd.reg_mr(case.bytes, Access::ReadWrite)?.1));
            lanes.push(Lane {
                link,
                key: keys[link],
                posted: 0,
                done: 0,
                free: free.collect::<Result<_>>()?,
            });
        }
    }
    let alone = match ends.card() {
        1 => alone(&ends, case, &mut lanes[0])?,
        _ => 0,
    };
    let since = ends.meet()?;
    let total = lanes.len() * case.ops;
    let (mut done, mut last) = (0, ends.now());
    while done < total {
        for lane in &mut lanes {
            while lane.posted < case.ops
                && let Some(buffer) = lane.free.pop()
            {
                lane.post(&ends, case, buffer)?;
            }
        }
        let Some(completion) = ends.queue.poll() else {
            ensure!(ends.now() - last < PATIENCE, "{done} of {total} completed");
            ends.pause_until(ends.now() + LOOK);
            continue;
        };
        succeeded(completion.status)?;
        (done, last) = (done + 1, ends.now());
        let lane = lanes.iter_mut();
        let mut lane = lane.filter(|lane| lane.link as u64 == completion.wr_id);
        let lane = lane.next().context("a number that was posted")?;
        let buffer = completion.buffer.context("the buffer")?;
        if case.op == Op::Get {
            is_right(&buffer, lane.link, lane.done % WINDOW)?;
        }
        lane.done += 1;
        lane.free.push(buffer);
    }
    ends.meet()?;
    let sends = match case.sends {
        0 => ends.device.limits().pair_sends,
        sends => sends.into(),
    };
    Ok((ends.card() == 1).then_some((alone, sends, since)))
}

/// Each pair and each place that its puts or gets have.
fn places(links: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..links).flat_map(|link| (0..WINDOW).map(move |slot| (link, slot)))
}

/// The bytes are those of a number of a pair.
fn is_right(bytes: &[u8], link: usize, number: usize) -> Result<()> {
    if let Some((at, byte)) = payload(link, number).first_wrong(bytes) {
        bail!("byte {at} of number {number} of pair {link} is {byte:#04x}");
    }
    Ok(())
}

/// Cycles of a put or a get with nothing beside it.
fn alone(ends: &Ends, case: Case, lane: &mut Lane) -> Result<u64> {
    let begin = ends.now();
    let buffer = lane.free.pop().context("a buffer")?;
    lane.post(ends, case, buffer)?;
    let completion = loop {
        if let Some(completion) = ends.queue.poll() {
            break completion;
        }
        ensure!(ends.now() - begin < PATIENCE, "it never completed");
        ends.pause_until(ends.now() + LOOK);
    };
    let end = ends.now();
    succeeded(completion.status)?;
    lane.free.push(completion.buffer.context("the buffer")?);
    lane.posted = 0;
    Ok(end - begin)
}

/// The puts or gets of a pair.
struct Lane {
    link: usize,
    key: RemoteKey,
    posted: usize,
    done: usize,
    free: Vec<Buffer>,
}

impl Lane {
    /// Posts the next one.
    fn post(&mut self, ends: &Ends, case: Case, mut buffer: Buffer) -> Result<()> {
        let place = self.link * WINDOW + self.posted % WINDOW;
        let (pair, key) = (ends.pair(self.link)?, self.key);
        let offset = (place * case.bytes) as u64;
        let number = self.link as u64;
        let posted = match case.op {
            Op::Put => {
                payload(self.link, self.posted).fill(&mut buffer);
                let put = Put { pair, key, offset };
                ends.endpoint.post_put(number, &put, buffer)
            }
            Op::Get => {
                buffer.fill(0);
                let get = Get { pair, key, offset };
                ends.endpoint.post_get(number, &get, buffer)
            }
        };
        posted.map_err(|refused| refused.error)?;
        self.posted += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_a_long_put_leaves_nine_beats_in_ten_to_its_payload() {
        assert_eq!(limit(), 128.0 / 141.0);
    }

    #[test]
    fn pairs_of_one_card_are_told_from_those_of_several() {
        assert_eq!(Pattern::Stream.links(2), [(1, 0), (1, 0)]);
        assert_eq!(Pattern::Fan.links(2), [(1, 0), (2, 0)]);
    }
}
