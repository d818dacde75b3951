//! Which share of a link's beats carries payload while long puts go over it.
//!
//! ```text
//!  stream    card 1 ──► card 0, over one pair or four          fan_in    cards 1 to 4 ──► card 0
//! ```
//!
//! A put goes in frames of 1024 bytes, and the limit is what these leave: the payload's beats ÷ the frame's and what Ethernet puts around it. Each pair has
//! two puts outstanding, so that the next begins when the last part of the one before has gone; the share is that of the middle half of the bytes, as
//! they leave their cards, and what is sent again doesn't count. Beside it the cycles of one put alone, from its post to its completion. When all is over the
//! window has to hold what was put last at each place.

use abi::limits::{EAGER_MAX, MAX_CREDITS};
use abi::wire::frame_bytes;
use anyhow::{Context, Result, bail, ensure};
use host_driver::{Access, Buffer, Put, RemoteKey, RemoteRights};
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

/// Puts of a pair that are outstanding.
const WINDOW: usize = 2;
/// Cycles between two looks of a host at its completion queue.
const LOOK: u64 = 16;
/// Cycles without a completion after which a benchmark gives up.
const PATIENCE: u64 = 10_000_000;

/// Who puts to card 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    /// One card.
    Stream,
    /// A card for each pair.
    FanIn,
}

impl Pattern {
    const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::FanIn => "fan_in",
        }
    }

    fn links(self, pairs: usize) -> Vec<Link> {
        let source = |pair| match self {
            Self::Stream => 1,
            Self::FanIn => 1 + pair,
        };
        (0..pairs).map(|pair| (source(pair), 0)).collect()
    }
}

/// What is measured in one run.
#[derive(Clone, Copy, Debug)]
struct Case {
    pattern: Pattern,
    pairs: usize,
    bytes: usize,
    /// Cycles.
    latency: u32,
    /// Puts of each pair.
    puts: usize,
    /// Sends of each pair that the card holds; 0: as many as it can of all pairs.
    sends: u16,
    /// Share of the frames that the links lose.
    lose: f64,
}

/// The cases of the suite.
fn cases(length: Length) -> Vec<Case> {
    let base = Case {
        pattern: Pattern::Stream,
        pairs: 1,
        bytes: 64 << 10,
        latency: LATENCIES[0],
        puts: match length {
            Length::Short => 2,
            Length::Normal => 4,
            Length::Long => 32,
        },
        // As many as parts of a put may be under way.
        sends: MAX_CREDITS,
        lose: 0.0,
    };
    let four = Case { pairs: 4, ..base };
    if length == Length::Short {
        let short = |case| Case {
            bytes: 16 << 10,
            ..case
        };
        return [base, four].map(short).into();
    }
    let fan_in = Case {
        pattern: Pattern::FanIn,
        ..four
    };
    let mut cases = vec![base, four, fan_in];
    for case in [base, four, fan_in] {
        cases.push(Case {
            bytes: 1 << 20,
            puts: base.puts / 2,
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
/// If the simulation fails, a put doesn't end well, or the window doesn't hold what was put.
pub fn run(config: &str, length: Length, seed: u64, firmware: &Firmware) -> Result<Report> {
    let mut points = Vec::new();
    for case in cases(length) {
        let threads = (length == Length::Short).then_some(1);
        let seen = measure(config, seed, firmware, case, threads);
        let seen = seen.with_context(|| format!("{case:?}"))?;
        let params = || {
            [
                ("op", "put".into()),
                ("pattern", case.pattern.name().into()),
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
    }
    Ok(Report::new("bandwidth", config, seed, points))
}

/// Beats with payload in each cycle of a link that loses a share of its frames, while puts of so many bytes go over one pair.
///
/// # Errors
/// If the simulation fails, a put doesn't end well, or the window doesn't hold what was put.
pub(super) fn lossy_stream(
    config: &str,
    seed: u64,
    firmware: &Firmware,
    (puts, bytes): (usize, usize),
    lose: f64,
) -> Result<f64> {
    let case = Case {
        pattern: Pattern::Stream,
        pairs: 1,
        bytes,
        latency: LATENCIES[0],
        puts,
        sends: MAX_CREDITS,
        lose,
    };
    let seen = measure(config, seed, firmware, case, None);
    Ok(seen.with_context(|| format!("{case:?}"))?.share)
}

/// What was seen of a case.
struct Seen {
    /// Beats with payload in each cycle of the link.
    share: f64,
    /// Cycles of a put from its post to its completion, with nothing beside it.
    alone: u64,
    /// Sends of a pair that the card held.
    sends: usize,
}

/// Runs a case, on so many threads if it matters.
fn measure(
    config: &str,
    seed: u64,
    firmware: &Firmware,
    case: Case,
    threads: Option<usize>,
) -> Result<Seen> {
    let wire = Wire::default();
    let lossy = LinkFault {
        lose: case.lose,
        ..LinkFault::default()
    };
    // What is lost has left its card: it counts, once.
    let faults = Faults::new(&FaultPlan::always(lossy), seed, "bench");
    let links = case.pattern.links(case.pairs);
    let cards = links.iter().map(|link| link.0 + 1).max();
    let cluster = Cluster::verilated(config);
    let cluster = match threads {
        Some(threads) => cluster.threads(threads),
        None => cluster,
    };
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
    let (alone, sends, since) = first.context("a card that puts")?;
    let carried: Vec<Carried> = wire
        .all()
        .into_iter()
        .filter(|one| one.cycle >= since)
        .collect();
    let total: u64 = carried.iter().map(|one| one.bytes).sum();
    ensure!(
        total == (case.puts * case.pairs * case.bytes) as u64,
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
    let (begin, end) = begin.zip(end).context("frames of puts")?;
    let beats = (end.1 - begin.1) as f64 / BEAT_BYTES as f64;
    Ok(Seen {
        share: beats / (end.0 - begin.0) as f64,
        alone,
        sends,
    })
}

/// What is put by a link as its put of this number.
fn payload(link: usize, number: usize) -> MessageId {
    MessageId {
        source: link,
        destination: 0,
        number: number as u64,
    }
}

/// Puts, or has the window. Who puts returns the cycles of its first put, which goes alone, the sends that a pair has, and the cycle since which it has put
/// the others.
fn rank(host: Host, case: Case, links: &[Link]) -> Result<Option<(u64, usize, u64)>> {
    let ends = Ends::open(host, links, case.sends)?;
    let part = WINDOW * case.bytes;
    if ends.card() == 0 {
        let rights = RemoteRights::WRITE;
        let window = ends.pd.reg_window(links.len() * part, rights)?;
        let keys = (0..links.len()).map(|link| {
            let range = link * part..(link + 1) * part;
            let pair = ends.pair(link)?;
            Ok(window.grant(&ends.endpoint, pair, rights, range)?)
        });
        ends.share_keys(&keys.collect::<Result<Vec<_>>>()?)?;
        ends.meet()?;
        ends.meet()?;
        let mut bytes = vec![0; case.bytes];
        for link in 0..links.len() {
            for number in case.puts - WINDOW..case.puts {
                window.read(link * part + number % WINDOW * case.bytes, &mut bytes);
                if let Some((at, byte)) = payload(link, number).first_wrong(&bytes) {
                    bail!("byte {at} of put {number} of pair {link} is {byte:#04x}");
                }
            }
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
                free: free.collect::<Result<_>>()?,
            });
        }
    }
    let alone = match ends.card() {
        1 => alone(&ends, case, &mut lanes[0])?,
        _ => 0,
    };
    let since = ends.meet()?;
    let total = lanes.len() * case.puts;
    let (mut done, mut last) = (0, ends.now());
    while done < total {
        for lane in &mut lanes {
            while lane.posted < case.puts
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
        lane.free.push(completion.buffer.context("the buffer")?);
    }
    ends.meet()?;
    let sends = match case.sends {
        0 => ends.device.limits().pair_sends,
        sends => sends.into(),
    };
    Ok((ends.card() == 1).then_some((alone, sends, since)))
}

/// Cycles of a put with nothing beside it.
fn alone(ends: &Ends, case: Case, lane: &mut Lane) -> Result<u64> {
    let begin = ends.now();
    let buffer = lane.free.pop().context("a buffer")?;
    lane.post(ends, case, buffer)?;
    let completion = loop {
        if let Some(completion) = ends.queue.poll() {
            break completion;
        }
        ensure!(ends.now() - begin < PATIENCE, "a put never completed");
        ends.pause_until(ends.now() + LOOK);
    };
    let end = ends.now();
    succeeded(completion.status)?;
    lane.free.push(completion.buffer.context("the buffer")?);
    lane.posted = 0;
    Ok(end - begin)
}

/// The puts of a pair.
struct Lane {
    link: usize,
    key: RemoteKey,
    posted: usize,
    free: Vec<Buffer>,
}

impl Lane {
    /// Posts the next one.
    fn post(&mut self, ends: &Ends, case: Case, mut buffer: Buffer) -> Result<()> {
        payload(self.link, self.posted).fill(&mut buffer);
        let place = self.link * WINDOW + self.posted % WINDOW;
        let put = Put {
            pair: ends.pair(self.link)?,
            key: self.key,
            offset: (place * case.bytes) as u64,
        };
        let posted = ends.endpoint.post_put(self.link as u64, &put, buffer);
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
        assert_eq!(Pattern::FanIn.links(2), [(1, 0), (2, 0)]);
    }
}
