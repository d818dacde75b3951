//! Replays a recorded application on simulated cards, one card a rank.
//!
//! ```text
//!  trace ─┬─ rank 0 ─ player ─ host library ─ card ─┐
//!         ├─ rank 1 ─ player ─ host library ─ card ─┼─ fabric ─► checker ─► summary
//!         └─ …                                      ┘
//! ```

mod player;

pub use player::{PlayError, Played, Shared, play};

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use abi::monitor::MatchOperation;
use anyhow::{Context, Result};
use host_driver::transport::TransportError;
use match_reference::{Command, Operation};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sim::capture::Capture;
use sim::fabric::LinkFilter;
use sim::fault::{FaultPlan, Faults, process};
use sim::log::{LogDecoder, LogLine};
use sim::matching::Matched;
use sim::seed::BackPressure;
use sim::{Cluster, Firmware, Host, Rate, Waves};

use crate::bench::matching::Sequence;
use crate::checker::{self, Destination};
use crate::stats::Stats;
use crate::summary::{Clipped, Depth, Kill, MatchCycles, Matching, Summary};
use crate::trace::{Call, Trace};

/// How the processes of a job find each other before there are pairs: what a launcher gives an MPI library.
pub trait Wireup {
    /// Sends each peer its bytes and returns what the peers sent to this rank, one from each of them.
    ///
    /// # Errors
    /// [`PlayError::Stopped`] if the simulation is, [`PlayError::Wireup`] if a peer sent nothing of use.
    fn exchange(&self, to: &[(usize, [u8; 32])]) -> Result<Vec<(usize, [u8; 32])>, PlayError>;

    /// Returns when every rank has called it.
    ///
    /// # Errors
    /// As for [`exchange`](Self::exchange).
    fn barrier(&self) -> Result<(), PlayError>;
}

/// A [`Wireup::exchange`] over a `gather` in which each of `ranks` gives some bytes to all: for every rank an address, or none.
///
/// # Errors
/// As there.
pub fn exchange_over(
    gather: impl FnOnce(Vec<u8>) -> Result<Arc<Vec<Vec<u8>>>, TransportError>,
    me: usize,
    ranks: usize,
    to: &[(usize, [u8; 32])],
) -> Result<Vec<(usize, [u8; 32])>, PlayError> {
    let mut mine = vec![0; 33 * ranks];
    for &(peer, address) in to {
        mine[33 * peer] = 1;
        mine[33 * peer + 1..][..32].copy_from_slice(&address);
    }
    let all = gather(mine).map_err(|_| PlayError::Stopped)?;
    let mut from = Vec::new();
    for (peer, theirs) in all.iter().enumerate() {
        let entry = theirs.get(33 * me..33 * (me + 1));
        match entry.and_then(|entry| entry.split_first()) {
            Some((1, address)) if peer != me => {
                let address = address.try_into().expect("33 bytes less one");
                from.push((peer, address));
            }
            Some(_) => {}
            None => {
                return Err(PlayError::Wireup(format!(
                    "rank {peer} knows too few ranks"
                )));
            }
        }
    }
    Ok(from)
}

impl Wireup for Host {
    fn exchange(&self, to: &[(usize, [u8; 32])]) -> Result<Vec<(usize, [u8; 32])>, PlayError> {
        let gather = |mine| self.all_gather(mine);
        exchange_over(gather, self.card(), self.cards(), to)
    }

    fn barrier(&self) -> Result<(), PlayError> {
        self.all_gather(Vec::new())
            .map(drop)
            .map_err(|_| PlayError::Stopped)
    }
}

/// The wireup of a rank that may be killed.
struct Counted<'a> {
    host: &'a Host,
    /// Calls of it so far.
    calls: Cell<usize>,
}

/// Calls of its wireup that each rank makes: the exchange, and the barriers at begin and end.
const WIREUP_CALLS: usize = 3;

impl Counted<'_> {
    /// Makes those that are left. If the simulation is over, nobody waits.
    fn go_through(&self) {
        if self.calls.get() == 0 {
            let _ = self.exchange(&[]);
        }
        while self.calls.get() < WIREUP_CALLS {
            let _ = self.barrier();
        }
    }
}

impl Wireup for Counted<'_> {
    fn exchange(&self, to: &[(usize, [u8; 32])]) -> Result<Vec<(usize, [u8; 32])>, PlayError> {
        self.calls.set(self.calls.get() + 1);
        self.host.exchange(to)
    }

    fn barrier(&self) -> Result<(), PlayError> {
        self.calls.set(self.calls.get() + 1);
        self.host.barrier()
    }
}

/// Who was killed of those that a plan names.
fn killed(plan: &FaultPlan, played: &[Played]) -> Vec<Kill> {
    let of_cards = plan.cards.iter().map(|of| ("card", of.card, of.kill));
    let of_hosts = plan.hosts.iter().map(|of| ("process", of.card, of.kill));
    of_cards
        .chain(of_hosts)
        .filter_map(|(what, rank, cycle)| {
            let cycle = cycle?;
            played[rank].killed.then_some(Kill { rank, what, cycle })
        })
        .collect()
}

/// What a replay is run with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Configuration of the cards.
    pub config: String,
    /// Seed of everything that is random.
    pub seed: u64,
    /// How much host memory, registers and network hold back.
    pub pressure: BackPressure,
    /// What happens to frames on their way.
    pub faults: FaultPlan,
    /// How fast the cards' processors are, by the cards' clock.
    pub processors: Rate,
    /// Threads that the cards run on; all cores if none is given.
    pub threads: Option<usize>,
    /// File for every frame.
    pub pcap: Option<PathBuf>,
    /// File for a waveform of a card, the card, and the cycles that it shows.
    pub waves: Option<(PathBuf, usize, Range<u64>)>,
    /// Ends the replay when it becomes true.
    pub cancel: Arc<AtomicBool>,
}

/// The end of a replay.
#[derive(Debug)]
pub struct Replayed {
    /// Figures.
    pub summary: Summary,
    /// Every counter.
    pub stats: Stats,
    /// Why it isn't complete, or isn't right: one line each.
    pub failures: Vec<String>,
    /// The log of each card's firmware.
    pub logs: Vec<Vec<LogLine>>,
}

/// Replays `trace` on one card a rank.
///
/// What goes wrong in the replay itself is in [`Replayed::failures`].
///
/// # Errors
/// If it can't begin: a file can't be written, or there is no model of the configuration.
pub fn run(
    trace: &Trace,
    firmware: Firmware,
    options: &Options,
    shared: &Shared,
) -> Result<Replayed> {
    let ranks = trace.ranks.len();
    let mut cluster = Cluster::verilated(&options.config)
        .cards(ranks)
        .seed(options.seed)
        .pressure(options.pressure)
        .processor_clock(options.processors)
        .matches()
        .cancel(options.cancel.clone())
        .firmware(firmware.clone());
    if let Some(threads) = options.threads {
        cluster = cluster.threads(threads);
    }
    if let Some(path) = &options.pcap {
        let capture =
            Capture::create(path).with_context(|| format!("creating {}", path.display()))?;
        cluster = cluster.tap(LinkFilter::ALL, capture);
    }
    let struck = Arc::new(Mutex::new(None));
    if options.faults.strikes_links() {
        let told = struck.clone();
        let faults = Faults::new(&options.faults, options.seed, "replay");
        let faults = faults.on_finish(move |count| {
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(count);
        });
        cluster = cluster.tap(LinkFilter::ALL, faults);
    }
    cluster = cluster.faults(options.faults.without_links());
    if let Some((path, card, cycles)) = options.waves.clone() {
        cluster = cluster.waves(card, Waves { path, cycles });
    }
    let kills = options.faults.kills();
    let mut outcome = cluster.run(|host| {
        let transport = Arc::new(host.transport());
        let rank = host.card();
        let wireup = Counted {
            host: &host,
            calls: Cell::new(0),
        };
        let events = &trace.ranks[rank];
        let played = process(0, || play(transport, &wireup, rank, ranks, events, shared));
        let dies = kills.iter().any(|(card, _)| *card == rank);
        match played {
            Ok(played) if !(dies && matches!(played.error, Some(PlayError::Stopped))) => played,
            _ => {
                // The others don't wait for the dead.
                wireup.go_through();
                Played {
                    killed: true,
                    ..Played::default()
                }
            }
        }
    });
    if let Some(sim::Error::Model(reason)) = &outcome.error {
        anyhow::bail!("{reason}");
    }
    let cancelled = matches!(outcome.error, Some(sim::Error::Cancelled { .. }));
    let mut failures = Vec::new();
    match outcome.error.take() {
        Some(sim::Error::Cancelled { .. }) | None => {}
        Some(error) => failures.push(error.to_string()),
    }
    let played: Vec<Played> = outcome
        .hosts
        .drain(..)
        .map(Option::unwrap_or_default)
        .collect();
    for (rank, played) in played.iter().enumerate() {
        match &played.error {
            None | Some(PlayError::Stopped) => {}
            Some(error) => failures.push(format!("rank {rank}: {error}")),
        }
    }
    let complete = !cancelled && failures.is_empty() && played.iter().all(|p| p.error.is_none());
    let kills = killed(&options.faults, &played);
    let matching = if complete && kills.is_empty() {
        match judge(trace, &played) {
            Ok(()) => "legal".to_owned(),
            Err(violation) => {
                failures.push(format!("illegal matching: {violation}"));
                violation.to_string()
            }
        }
    } else {
        "not judged".to_owned()
    };
    let mut logs = Vec::new();
    for card in &outcome.report.cards {
        // A card that nobody has asked for its build tells nothing that could be trusted.
        let decoder = card
            .build_id
            .map(|running| LogDecoder::new(&firmware, running));
        logs.push(match decoder.transpose() {
            Ok(decoder) => decoder.map_or_else(Vec::new, |decoder| decoder.decode(&card.log)),
            Err(error) => {
                failures.push(error.to_string());
                Vec::new()
            }
        });
    }
    let mut summary = summarise(trace, options, &played, &outcome.report);
    summary.complete = complete;
    summary.killed = kills;
    summary.ended = played.iter().flat_map(|p| p.ended.clone()).collect();
    summary.faults = struck.lock().unwrap_or_else(PoisonError::into_inner).take();
    if complete && summary.killed.is_empty() {
        match on_host(&outcome.report, options.seed) {
            Ok(nanoseconds) => summary.match_cycles.host_ns = Some(nanoseconds),
            Err(error) => failures.push(format!("{error:#}")),
        }
    }
    summary.matching = matching;
    Ok(Replayed {
        stats: Stats::new(&summary, &played, &outcome.report),
        summary,
        failures,
        logs,
    })
}

/// Asks the checker about every destination.
fn judge(trace: &Trace, played: &[Played]) -> Result<(), checker::Violation> {
    for (rank, played) in played.iter().enumerate() {
        let mut sent = std::collections::HashMap::new();
        for (source, events) in trace.ranks.iter().enumerate() {
            let tags: Vec<u64> = events
                .iter()
                .filter_map(|event| match event.call {
                    Call::Send { peer, tag, .. } if peer == rank => Some(tag),
                    _ => None,
                })
                .collect();
            sent.insert(source, tags);
        }
        checker::check(&Destination {
            rank,
            sent,
            receives: played.receives.clone(),
        })?;
    }
    Ok(())
}

fn depth(depth: sim::matching::Depth) -> Depth {
    Depth::new(depth.mean(), depth.max.into(), &depth.powers)
}

/// Depth of the posted list as the messages of a card met it, less the multi-receives that were in it: they are posted for good,
/// and no message of a trace is for them.
fn posted_depth(each: &[Matched]) -> sim::matching::Depth {
    let mut depth = sim::matching::Depth::default();
    let mut multi = HashSet::new();
    for matched in each {
        let Some(command) = Command::from_words(&matched.command) else {
            continue;
        };
        let receive = (command.endpoint, command.request);
        match command.operation {
            Operation::Arrive => depth.add(matched.posted.saturating_sub(multi.len() as u16)),
            Operation::Post if command.multi && !matched.found && !matched.full => {
                multi.insert(receive);
            }
            Operation::Cancel if matched.found => {
                multi.remove(&receive);
            }
            Operation::TakePostedOfEndpoint => {
                multi.retain(|(endpoint, _)| *endpoint != command.endpoint);
            }
            _ => {}
        }
    }
    depth
}

fn match_cycles(cycles: sim::matching::MatchCycles) -> MatchCycles {
    MatchCycles {
        count: cycles.count,
        mean: cycles.mean(),
        max: cycles.max,
    }
}

/// Times that the host does what the cards did, of which the best counts.
const ROUNDS: usize = 5;

/// Nanoseconds of an arrival or a post by the host's best structure: it is told what each card was told, in the same
/// order, and must find something where the card did.
fn on_host(report: &sim::Report, seed: u64) -> Result<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut nanoseconds, mut matches) = (0.0, 0);
    for (number, card) in report.cards.iter().enumerate() {
        let seen = &card.matching;
        let depths = seen.posted.iter().chain(&seen.unexpected);
        let deepest = depths.map(|depth| depth.max).max().unwrap_or(0);
        let mut sequences = BTreeMap::<u8, Sequence>::new();
        for matched in seen.each.iter().filter(|matched| !matched.full) {
            let command = Command::from_words(&matched.command)
                .with_context(|| format!("card {number} did {matched:x?}"))?;
            let sequence = sequences.entry(command.endpoint).or_default();
            sequence
                .push(&command, matched.found)
                .map_err(|operation| {
                    anyhow::anyhow!("card {number}: the host doesn't know {operation}")
                })?;
        }
        for sequence in sequences.values() {
            let room = usize::from(deepest) + 1;
            nanoseconds += sequence
                .measure(room, ROUNDS, &mut rng)
                .with_context(|| format!("card {number} and the host match differently"))?;
            matches += sequence.matches();
        }
    }
    Ok(nanoseconds / matches.max(1) as f64)
}

fn summarise(trace: &Trace, options: &Options, played: &[Played], report: &sim::Report) -> Summary {
    let ranks = trace.ranks.len();
    let messages: u64 = played.iter().map(|p| p.messages).sum();
    let mut completions = BTreeMap::new();
    for (&status, &count) in played.iter().flat_map(|p| &p.completions) {
        *completions.entry(status.to_owned()).or_default() += count;
    }
    let begin = played
        .iter()
        .filter(|p| p.end > 0)
        .map(|p| p.begin)
        .min()
        .unwrap_or(0);
    let end = played.iter().map(|p| p.end).max().unwrap_or(0);
    let cycles = end.saturating_sub(begin);
    let of = |operation: MatchOperation| usize::from(operation.code());
    let (mut posted, mut unexpected) = (
        sim::matching::Depth::default(),
        sim::matching::Depth::default(),
    );
    let (mut arrive, mut post) =
        <(sim::matching::MatchCycles, sim::matching::MatchCycles)>::default();
    let mut inserted = 0;
    for card in &report.cards {
        let seen = &card.matching;
        posted = posted.and(posted_depth(&seen.each));
        unexpected = unexpected.and(seen.unexpected[of(MatchOperation::Post)]);
        inserted += seen.appended;
        arrive = arrive.and(seen.cycles[of(MatchOperation::Arrive)]);
        post = post.and(seen.cycles[of(MatchOperation::Post)]);
    }
    Summary {
        app: trace.app.clone(),
        config: options.config.clone(),
        ranks,
        seed: options.seed,
        back_pressure: f64::from(options.pressure.idle) / 1000.0,
        faults: None,
        killed: Vec::new(),
        ended: Vec::new(),
        complete: false,
        messages,
        bytes: played.iter().map(|p| p.bytes).sum(),
        clipped: Clipped {
            messages: played.iter().map(|p| p.clipped.messages).sum(),
            bytes: played.iter().map(|p| p.clipped.bytes).sum(),
        },
        multi_receives: played.iter().map(|p| p.multi_receives).sum(),
        cycles,
        cycles_per_message: cycles as f64 * ranks as f64 / messages.max(1) as f64,
        posted_depth: depth(posted),
        unexpected_depth: depth(unexpected),
        unexpected: inserted,
        match_cycles: Matching {
            arrive: match_cycles(arrive),
            post: match_cycles(post),
            both: match_cycles(arrive.and(post)),
            host_ns: None,
        },
        completions,
        matching: String::new(),
        nic_cycles_per_second: report.cycles_per_second(),
        seconds: report.wall.as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multi_receives_do_not_count_as_depth() {
        let mut each = Vec::new();
        let mut act = |operation, request, multi, found, posted| {
            let command = Command {
                request,
                multi,
                ..Command::new(operation)
            };
            each.push(Matched {
                command: command.words(),
                found,
                full: false,
                posted,
            });
        };
        act(Operation::Arrive, 0, false, false, 0);
        act(Operation::Post, 1, true, false, 0);
        act(Operation::Post, 2, true, false, 1);
        act(Operation::Post, 3, false, false, 2);
        // One that takes a message at once isn't posted, and what isn't found isn't cancelled.
        act(Operation::Post, 4, true, true, 3);
        act(Operation::Cancel, 5, false, false, 3);
        act(Operation::Arrive, 0, false, true, 3);
        act(Operation::Cancel, 1, false, true, 2);
        act(Operation::Arrive, 0, false, false, 1);
        act(Operation::TakePostedOfEndpoint, 0, false, true, 1);
        act(Operation::Post, 6, false, false, 0);
        act(Operation::Arrive, 0, false, true, 1);
        let depth = posted_depth(&each);
        assert_eq!((depth.count, depth.sum, depth.max), (4, 2, 1));
        assert_eq!(depth.powers[..2], [2, 2]);
    }
}
