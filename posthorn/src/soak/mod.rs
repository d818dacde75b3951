//! Random traffic under random plans of faults, for as long as one likes: what a soak of one seed is, and how many of them are run.
//!
//! ```text
//!  seed ─┬─ cards, goals, habits of the ranks ────► Worker of each rank ─┐
//!        └─ plan of faults: links, hosts, cards ──► Cluster ─────────────┴─► what happened, or what must not have
//! ```

mod part;
pub mod worker;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use host_driver::WatchOptions;
use host_driver::transport::Transport;
use serde_json::{Map, Value, json};
use sim::fabric::LinkFilter;
use sim::fault::{FaultCount, FaultPlan, Faults, Killed, process};
use sim::{Cluster, Firmware};

use crate::replay::Wireup;
use worker::{Failure, Goal, Habits, Tally, Worker};

/// Cycle by which all ranks on cards of gates are connected and have the keys of each other's windows: before it makes the first one, the firmware tests its
/// random words.
pub const CONNECTED: u64 = 400_000;
/// Cycle before which the faults of a plan begin, but for those that last for all of it, and somebody is killed, if anybody is: while the ranks work.
const FAULTY: u64 = CONNECTED + 60_000;
/// Longest message of a soak in bytes.
const LONGEST: usize = 512;
/// What is done for a process that has taken the place of one that was killed, and what it does for each other.
const AGAIN: Goal = Goal {
    messages: 5,
    accesses: 8,
    signals: 2,
};

/// Mixes the bits of a number.
const fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// One run: all of it follows from the seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// Number of cards.
    pub cards: usize,
    /// What each rank does for each other.
    pub goal: Goal,
    /// Cycle in which the ranks, which are connected then, begin.
    pub connected: u64,
    /// How the cards watch the peers of their ranks: patient enough for all that the plan has happen to a peer that lives.
    pub watch: WatchOptions,
    /// What goes wrong. Nobody is killed before the ranks begin.
    pub plan: FaultPlan,
}

/// For links that cut nobody off: a peer that is silent has failed after some 200,000 cycles.
pub const WATCH: WatchOptions = WatchOptions {
    interval: 1 << 15,
    timeout: 1 << 17,
    believe_peers: false,
};
/// For links that do, for as long as a card's own patience lasts: `timeouts_until_failure` of them.
const PATIENT: WatchOptions = WatchOptions {
    timeout: 1 << 18,
    ..WATCH
};

impl Run {
    /// The run of a seed: 2 to 4 cards; in one of three a process or a card is killed.
    pub fn of(seed: u64) -> Self {
        let cards = 2 + (seed % 3) as usize;
        let deadly = seed / 3 % 3 == 2;
        let plan = match deadly {
            true => FaultPlan::deadly(seed, cards, CONNECTED..FAULTY),
            false => FaultPlan::random(seed, cards, CONNECTED..FAULTY),
        };
        Self {
            seed,
            cards,
            goal: Goal {
                messages: 100,
                accesses: 40,
                signals: 3,
            },
            connected: CONNECTED,
            watch: PATIENT,
            plan,
        }
    }

    /// Credits that each rank grants each other.
    pub const fn credits(&self) -> u16 {
        2 + (self.seed % 7) as u16
    }

    /// Whether each rank may be found to have failed.
    fn may_fail(&self) -> Vec<bool> {
        let kills = self.plan.kills();
        let dies = |card| kills.iter().any(|(killed, _)| *killed == card);
        (0..self.cards).map(dies).collect()
    }
}

/// What runs have covered.
#[derive(Clone, Debug, Default)]
pub struct Covered {
    /// Runs.
    pub runs: u64,
    /// Cycles of all cards.
    pub cycles: u64,
    /// What the ranks did.
    pub tally: Tally,
    /// What happened to frames.
    pub faults: FaultCount,
    /// Processes and cards that were killed.
    pub kills: u64,
}

impl Covered {
    fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.cycles += other.cycles;
        self.tally.add(&other.tally);
        self.faults.add(&other.faults);
        self.kills += other.kills;
    }

    /// The same as one JSON object; `completions` by kind and status.
    pub fn to_json(&self) -> Value {
        let Self {
            runs,
            cycles,
            tally,
            faults,
            kills,
        } = self;
        let mut completions = Map::new();
        for (&(kind, status), &count) in &tally.completions {
            let of_kind = completions.entry(kind).or_insert_with(|| json!({}));
            of_kind[status] = count.into();
        }
        json!({
            "seeds": runs,
            "cycles": cycles,
            "messages": {"count": tally.messages, "bytes": tally.bytes},
            "puts": {"count": tally.puts, "bytes": tally.put_bytes},
            "gets": {"count": tally.gets, "bytes": tally.get_bytes},
            "signals": {"count": tally.signals},
            "completions": completions,
            "faults": {
                "frames": faults.frames,
                "lost": faults.lost,
                "corrupted": faults.corrupted,
                "bad": faults.bad,
                "repeated": faults.repeated,
                "late": faults.late,
                "slowed": faults.slowed,
                "parted": faults.parted,
                "held": faults.held,
            },
            "kills": kills,
        })
    }
}

impl fmt::Display for Covered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            runs,
            cycles,
            tally,
            faults,
            kills,
        } = self;
        let Tally {
            messages,
            bytes,
            puts,
            put_bytes,
            gets,
            get_bytes,
            signals,
            ..
        } = tally;
        write!(
            f,
            "{runs} seeds, {cycles} cycles, {messages} messages of {bytes} bytes, {puts} puts of {put_bytes} bytes, {gets} gets of {get_bytes} bytes, \
             {signals} signals checked; {faults}; {kills} kills"
        )
    }
}

/// Runs one rank of a run, as a process that its plan may kill: its work; and if a process was killed, a new one on its card, which all connect to and exchange a few
/// messages with. All ranks must call it. Returns what each process of the rank has done; of one that was killed, nothing is known.
///
/// # Errors
/// What must not happen and did.
pub fn rank(
    transport: &Arc<dyn Transport>,
    wireup: &dyn Wireup,
    me: usize,
    run: &Run,
    messages: &Arc<AtomicU64>,
) -> Result<Tally, Failure> {
    let may_fail = run.may_fail();
    let dies = may_fail[me];
    let habits = Habits {
        seed: run.seed,
        longest: LONGEST,
        credits: run.credits(),
        any_source: (run.seed >> me) % 2 == 1,
        dawdle: 2000 * (run.seed % 2),
        watch: run.watch,
        may_fail,
    };
    let goals = |of: &dyn Fn(usize) -> Goal| -> Vec<Goal> {
        let all = 0..run.cards;
        all.map(|peer| {
            if peer == me {
                Goal::default()
            } else {
                of(peer)
            }
        })
        .collect()
    };
    let lived = process(0, || {
        let mut worker = Worker::open(
            Arc::clone(transport),
            wireup,
            me,
            run.cards,
            habits.clone(),
            Arc::clone(messages),
        )?;
        if transport.now() > run.connected {
            return Err(Failure::Wrong(format!(
                "connected in cycle {} and not by {}",
                transport.now(),
                run.connected
            )));
        }
        worker.pause_until(run.connected)?;
        worker.run(&goals(&|_| run.goal))?;
        if dies {
            // Its end comes, if not in its work, then behind it.
            worker.pause_until(u64::MAX)?;
        }
        worker.await_failures()?;
        if !run.plan.strikes_links() {
            worker.await_credits(u32::from(habits.credits))?;
        }
        Ok(worker)
    });
    let mut worker = match lived {
        Ok(Ok(worker)) => Some(worker),
        // The card without power, or the process that is no more.
        Ok(Err(Failure::Stopped)) | Err(Killed) if dies => None,
        Ok(Err(failure)) => return Err(failure),
        Err(Killed) => return Err(Failure::Wrong("killed, and not by the plan".to_owned())),
    };
    // Nobody closes while others still talk to him.
    wireup.barrier()?;
    if let Some(worker) = &worker {
        worker.check_window()?;
    }
    let ended: Vec<usize> = run
        .plan
        .hosts
        .iter()
        .filter(|host| host.kill.is_some())
        .map(|host| host.card)
        .collect();
    if ended.is_empty() {
        return Ok(worker
            .map(|worker| worker.tally().clone())
            .unwrap_or_default());
    }
    let anew = process(transport.now() + 1, || {
        let mut worker = match worker.take() {
            Some(worker) => worker,
            None => Worker::alone(
                Arc::clone(transport),
                me,
                run.cards,
                habits,
                Arc::clone(messages),
            )?,
        };
        let peers: Vec<usize> = match ended.contains(&me) {
            true => (0..run.cards).collect(),
            false => ended.clone(),
        };
        worker.nobody_fails();
        worker.connect(wireup, &peers)?;
        worker.run(&goals(&|peer| {
            if peers.contains(&peer) {
                AGAIN
            } else {
                Goal::default()
            }
        }))?;
        wireup.barrier()?;
        worker.check_window()?;
        Ok(worker.tally().clone())
    });
    anew.unwrap_or_else(|Killed| Err(Failure::Wrong("killed once more".to_owned())))
}

/// Does one run on Verilated cards.
///
/// # Errors
/// What must not happen and did.
pub fn run(
    config: &str,
    firmware: &Firmware,
    run: &Run,
    messages: &Arc<AtomicU64>,
    cancel: &Arc<AtomicBool>,
) -> Result<Covered, String> {
    let struck = Arc::new(Mutex::new(FaultCount::default()));
    let told = Arc::clone(&struck);
    let links = Faults::new(&run.plan, run.seed, "soak").on_finish(move |count| {
        *told.lock().unwrap_or_else(PoisonError::into_inner) = count;
    });
    let outcome = Cluster::verilated(config)
        .cards(run.cards)
        .seed(run.seed)
        .firmware(firmware.clone())
        .cancel(Arc::clone(cancel))
        .tap(LinkFilter::ALL, links)
        .faults(run.plan.without_links())
        .run(|host| {
            let transport: Arc<dyn Transport> = Arc::new(host.transport());
            rank(&transport, &host, host.card(), run, messages)
        });
    let mut covered = Covered {
        runs: 1,
        cycles: outcome.report.nic_cycles(),
        kills: run.plan.kills().len() as u64,
        faults: *struck.lock().unwrap_or_else(PoisonError::into_inner),
        ..Covered::default()
    };
    let mut wrong: Vec<String> = Vec::new();
    for (card, host) in outcome.hosts.iter().enumerate() {
        match host {
            Some(Ok(tally)) => covered.tally.add(tally),
            Some(Err(Failure::Wrong(what))) => wrong.push(format!("rank {card}: {what}")),
            Some(Err(Failure::Stopped)) | None => {}
        }
    }
    if let Some(error) = outcome.error {
        wrong.push(error.to_string());
    }
    match wrong.is_empty() {
        true => Ok(covered),
        false => Err(wrong.join("\n")),
    }
}

/// The end of a soak.
#[derive(Debug)]
pub struct Soaked {
    /// What was covered, without the run that failed.
    pub covered: Covered,
    /// The run that failed, and how.
    pub failed: Option<(Run, String)>,
}

/// Runs seeds from `seed` on until the time is over, `cancel` becomes true, or one fails. Tells `progress` after each.
pub fn soak(
    config: &str,
    firmware: &Firmware,
    seed: u64,
    time: Option<Duration>,
    cancel: &Arc<AtomicBool>,
    mut progress: impl FnMut(&Covered),
) -> Soaked {
    let start = Instant::now();
    let messages = Arc::default();
    let mut covered = Covered::default();
    for seed in seed.. {
        let is_over = time.is_some_and(|time| covered.runs > 0 && start.elapsed() >= time);
        if is_over || cancel.load(Ordering::Relaxed) {
            break;
        }
        let one = Run::of(seed);
        match run(config, firmware, &one, &messages, cancel) {
            Ok(of_one) => covered.add(&of_one),
            Err(_) if cancel.load(Ordering::Relaxed) => break,
            Err(why) => {
                return Soaked {
                    covered,
                    failed: Some((one, why)),
                };
            }
        }
        progress(&covered);
    }
    Soaked {
        covered,
        failed: None,
    }
}
