//! A number of cards, their hosts and the network between them: the simulation as a whole.
//!
//! ```text
//!   host ─ SimTransport ─ Card 0 ─┐
//!   host ─ SimTransport ─ Card 1 ─┼─ Fabric          Clock: windows, permits, errors
//!   host ─ SimTransport ─ Card 2 ─┘
//! ```
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use host_driver::Device;
//! use sim::{Cluster, Firmware};
//!
//! let firmware = Firmware::parse(std::fs::read("firmware.elf")?)?;
//! let outcome = Cluster::verilated("ecp5")
//!     .cards(2)
//!     .seed(7)
//!     .firmware(firmware)
//!     .run(|host| {
//!         let device = Device::open(Arc::new(host.transport()))?;
//!         Ok::<_, host_driver::OpenError>(device.identity().mac)
//!     });
//! if let Some(error) = outcome.error {
//!     eprintln!("{error}");
//! }
//! println!("{} cycles", outcome.report.cycles);
//! # Ok(())
//! # }
//! ```

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use abi::register::{STATUS, STATUS_READY};
use host_driver::transport::{PauseResult, Transport, TransportError};
use model::Rate;

use crate::card::{Card, CardFault, CardReport, Surroundings, Waves};
use crate::clock::{Clock, Finish, Limits, Stop};
use crate::fabric::{Fabric, FabricCount, Link, LinkFilter, Tap};
use crate::fault::{Fate, FaultPlan, Faults};
use crate::firmware::{Firmware, Segment};
use crate::host::{Costs, Host, Shared};
use crate::memory::MemoryConfig;
use crate::monitor::CreditBroken;
use crate::pins::CardModel;
use crate::seed::BackPressure;
use crate::verilated::VerilatedCard;

/// Cycles that the gates have to be ready.
const READY_CYCLES: u64 = 1 << 20;
/// Cycles between two looks at whether they are.
const READY_POLL: u64 = 64;

/// Why a simulation ended before all hosts had returned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A card broke a rule of a bus, or an assertion in it failed.
    #[error("seed {seed}, cycle {cycle}, card {card}: {fault}")]
    Card {
        /// Seed of the run.
        seed: u64,
        /// Cycle.
        cycle: u64,
        /// Card.
        card: usize,
        /// What happened.
        fault: CardFault,
    },
    /// The credits of a pair don't add up.
    #[error("seed {seed}, {broken}")]
    Credit {
        /// Seed of the run.
        seed: u64,
        /// Which, when and how.
        broken: CreditBroken,
    },
    /// The gates weren't ready, or the firmware couldn't be loaded.
    #[error("seed {seed}, cycle {cycle}, card {card} did not start: {reason}")]
    Boot {
        /// Seed of the run.
        seed: u64,
        /// Cycle.
        cycle: u64,
        /// Card.
        card: usize,
        /// Why.
        reason: String,
    },
    /// A host thread panicked.
    #[error("seed {seed}, cycle {cycle}: the host of card {card} panicked: {message}")]
    HostPanic {
        /// Seed of the run.
        seed: u64,
        /// Cycle.
        cycle: u64,
        /// Card.
        card: usize,
        /// What it said.
        message: String,
    },
    /// Every host waits for something that won't come.
    #[error("seed {seed}, cycle {cycle}: every host waits and nothing happens: {waits}")]
    Deadlock {
        /// Seed of the run.
        seed: u64,
        /// Cycle in which that was found.
        cycle: u64,
        /// What each waits for.
        waits: String,
    },
    /// The simulation was cancelled from outside.
    #[error("seed {seed}, cycle {cycle}: cancelled")]
    Cancelled {
        /// Seed of the run.
        seed: u64,
        /// Cycle.
        cycle: u64,
    },
    /// The simulation took more cycles than it may.
    #[error("seed {seed}: not done after {cycle} cycles")]
    CycleLimit {
        /// Seed of the run.
        seed: u64,
        /// Cycle.
        cycle: u64,
    },
    /// The exchange of frames panicked: a tap on a link did.
    #[error("seed {seed}, cycle {cycle}: a tap on a link panicked: {message}")]
    Network {
        /// Seed of the run.
        seed: u64,
        /// Cycle.
        cycle: u64,
        /// What it said.
        message: String,
    },
    /// A tap couldn't write what it had to.
    #[error("a capture can't be written: {0}")]
    Tap(#[from] std::io::Error),
    /// A card can't be made.
    #[error("{0}")]
    Model(String),
}

/// What a simulation has done and taken.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Cycles, the same for all cards.
    pub cycles: u64,
    /// Each card's part.
    pub cards: Vec<CardReport>,
    /// The network's part.
    pub fabric: FabricCount,
    /// How often the credits of an ordered pair were checked.
    pub credit_checks: u64,
    /// Time on the clock on the wall.
    pub wall: Duration,
}

impl Report {
    /// Cycles of all cards together.
    pub fn nic_cycles(&self) -> u64 {
        self.cycles * self.cards.len() as u64
    }

    /// Processor time that the cards took, all together; the hosts' own is not in it.
    pub fn cpu(&self) -> Duration {
        self.cards.iter().map(|card| card.cpu).sum()
    }

    /// Cycles of all cards for each second of processor time.
    pub fn cycles_per_cpu_second(&self) -> f64 {
        self.nic_cycles() as f64 / self.cpu().as_secs_f64().max(1e-9)
    }

    /// Cycles of all cards for each second on the wall.
    pub fn cycles_per_second(&self) -> f64 {
        self.nic_cycles() as f64 / self.wall.as_secs_f64().max(1e-9)
    }
}

/// The end of a simulation.
#[derive(Debug)]
pub struct Outcome<T> {
    /// What each card's host returned; `None` if it panicked, was killed or never ran.
    pub hosts: Vec<Option<T>>,
    /// Why it ended early, if it did.
    pub error: Option<Error>,
    /// What was done until then.
    pub report: Report,
}

impl<T> Outcome<T> {
    fn unbegun(reason: String) -> Self {
        Self {
            hosts: Vec::new(),
            error: Some(Error::Model(reason)),
            report: Report::default(),
        }
    }

    /// What each card's host returned.
    ///
    /// # Errors
    /// Why the simulation ended early.
    pub fn hosts(self) -> Result<Vec<T>, Error> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.hosts.into_iter().flatten().collect()),
        }
    }
}

type Maker = Box<dyn FnMut(usize, u64, bool) -> Result<Box<dyn CardModel>, String>>;

/// A simulation to be set up and run.
pub struct Cluster {
    make: Maker,
    cards: usize,
    seed: u64,
    processor_clock: Rate,
    threads: usize,
    link: Link,
    links: Vec<(usize, usize, Link)>,
    taps: Vec<(LinkFilter, Box<dyn Tap>)>,
    memory: MemoryConfig,
    pressure: BackPressure,
    stalls: Vec<(usize, Range<u64>)>,
    faults: FaultPlan,
    costs: Costs,
    firmware: Option<Firmware>,
    loaded_by_hosts: bool,
    moments: bool,
    matches: bool,
    waves: Vec<(usize, Waves)>,
    limits: Limits,
    cancel: Arc<AtomicBool>,
    now: Arc<AtomicU64>,
}

impl Cluster {
    /// Cards of a named configuration, as Verilator compiled them.
    pub fn verilated(config: &str) -> Self {
        let config = config.to_owned();
        Self::of(move |_, seed, traced| {
            let card = VerilatedCard::open(&config, seed, traced).map_err(|e| e.to_string())?;
            Ok(Box::new(card))
        })
    }

    /// Cards that `make` makes, from their number, a seed, and whether they will be asked for a waveform.
    pub fn of(
        make: impl FnMut(usize, u64, bool) -> Result<Box<dyn CardModel>, String> + 'static,
    ) -> Self {
        Self {
            make: Box::new(make),
            cards: 1,
            seed: 1,
            processor_clock: Rate::Times(1),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            link: Link::default(),
            links: Vec::new(),
            taps: Vec::new(),
            memory: MemoryConfig::default(),
            pressure: BackPressure::NONE,
            stalls: Vec::new(),
            faults: FaultPlan::default(),
            costs: Costs::default(),
            firmware: None,
            loaded_by_hosts: false,
            moments: false,
            matches: false,
            waves: Vec::new(),
            limits: Limits {
                quiet: 1_000_000,
                cycles: u64::MAX,
            },
            cancel: Arc::default(),
            now: Arc::default(),
        }
    }

    /// Number of cards; 1 if it isn't said.
    #[must_use]
    pub fn cards(mut self, cards: usize) -> Self {
        self.cards = cards.max(1);
        self
    }

    /// The seed that decides everything; 1 if it isn't said.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How fast the management processors' clock is: one in two cycles is what boards have, and each cycle if it isn't said. It decides how many cycles a
    /// command takes, and changes nothing else: a faster processor makes a simulation that is mostly commands shorter.
    ///
    /// # Panics
    /// If the rate is 0.
    #[must_use]
    pub fn processor_clock(mut self, rate: Rate) -> Self {
        self.processor_clock = rate.checked();
        self
    }

    /// Cards that may run at the same time; as many as there are processors if it isn't said. Changes
    /// nothing but the time that the simulation takes.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Every link.
    #[must_use]
    pub fn link(mut self, link: Link) -> Self {
        self.link = link;
        self
    }

    /// The link from card `source` to card `destination`.
    #[must_use]
    pub fn link_between(mut self, source: usize, destination: usize, link: Link) -> Self {
        self.links.push((source, destination, link));
        self
    }

    /// Puts a tap on links, behind those that are there.
    #[must_use]
    pub fn tap(mut self, filter: LinkFilter, tap: impl Tap + 'static) -> Self {
        self.taps.push((filter, Box::new(tap)));
        self
    }

    /// The hosts' memory.
    #[must_use]
    pub fn memory(mut self, memory: MemoryConfig) -> Self {
        self.memory = memory;
        self
    }

    /// Back-pressure on every channel: memory, registers and network.
    #[must_use]
    pub fn pressure(mut self, pressure: BackPressure) -> Self {
        self.pressure = pressure;
        self.memory.pressure = pressure;
        self
    }

    /// Stalls the wire of `card` in these cycles: its network port takes no beat of what the card sends.
    #[must_use]
    pub fn stall(mut self, card: usize, cycles: Range<u64>) -> Self {
        self.stalls.push((card, cycles));
        self
    }

    /// What goes wrong, and where. The links are struck behind the taps that are there; whoever wants to know what happened to frames puts
    /// [`Faults`] on them himself, and here what is left of the plan.
    #[must_use]
    pub fn faults(mut self, plan: FaultPlan) -> Self {
        self.faults = plan;
        self
    }

    /// What calls of the transport cost.
    #[must_use]
    pub fn costs(mut self, costs: Costs) -> Self {
        self.costs = costs;
        self
    }

    /// Firmware, which is started before the hosts start. It is in the processors' memories at power-up, where a bitstream can have it; see
    /// [`loaded_by_hosts`](Self::loaded_by_hosts). Without firmware the management processors stay in reset.
    #[must_use]
    pub fn firmware(mut self, firmware: Firmware) -> Self {
        self.firmware = Some(firmware);
        self
    }

    /// The hosts write the firmware into the cards, word by word, which takes two cycles a word. So they do anyway where a card has no memory that could be
    /// filled before.
    #[must_use]
    pub fn loaded_by_hosts(mut self) -> Self {
        self.loaded_by_hosts = true;
        self
    }

    /// Records what is seen on the pins of every card.
    #[must_use]
    pub fn moments(mut self) -> Self {
        self.moments = true;
        self
    }

    /// Keeps each operation of every card's matching lists.
    #[must_use]
    pub fn matches(mut self) -> Self {
        self.matches = true;
        self
    }

    /// Writes a waveform of `card`.
    #[must_use]
    pub fn waves(mut self, card: usize, waves: Waves) -> Self {
        self.waves.push((card, waves));
        self
    }

    /// Ends the simulation with [`Error::Deadlock`] when all hosts have waited for interrupts and nothing has
    /// happened for so many cycles; a million if it isn't said.
    #[must_use]
    pub fn quiet_limit(mut self, cycles: u64) -> Self {
        self.limits.quiet = cycles;
        self
    }

    /// Ends the simulation with [`Error::CycleLimit`] at the window that reaches this cycle.
    #[must_use]
    pub fn cycle_limit(mut self, cycles: u64) -> Self {
        self.limits.cycles = cycles;
        self
    }

    /// Ends the simulation with [`Error::Cancelled`] at the next window when `cancel` becomes true.
    #[must_use]
    pub fn cancel(mut self, cancel: Arc<AtomicBool>) -> Self {
        self.cancel = cancel;
        self
    }

    /// Shows the cycle that has been reached, window by window.
    #[must_use]
    pub fn progress(mut self, now: Arc<AtomicU64>) -> Self {
        self.now = now;
        self
    }

    /// Runs `host` for every card, each in a thread of its own, until all have returned.
    ///
    /// When the simulation ends early, every call of a transport returns `Closed`, and this function waits until
    /// the hosts have returned.
    pub fn run<T: Send>(mut self, host: impl Fn(Host) -> T + Sync) -> Outcome<T> {
        let start = Instant::now();
        if let Err(wrong) = self.faults.check(self.cards) {
            return Outcome::unbegun(format!("the plan of faults: {wrong}"));
        }
        let models: Result<Vec<_>, _> = (0..self.cards)
            .map(|card| {
                let traced = self.waves.iter().any(|(traced, _)| *traced == card);
                let mut model = (self.make)(card, self.seed, traced)?;
                model.set_processor_clock(self.processor_clock);
                let segments = match &self.firmware {
                    Some(firmware) if !self.loaded_by_hosts => firmware.segments(),
                    _ => &[],
                };
                let fill = |segment: &Segment| model.preload(segment.address, &segment.bytes);
                let is_filled = !segments.is_empty() && segments.iter().all(fill);
                Ok((model, is_filled))
            })
            .collect();
        let models = match models {
            Ok(models) => models,
            Err(error) => return Outcome::unbegun(error),
        };
        if self.faults.strikes_links() {
            let faults = Faults::new(&self.faults, self.seed, "cluster");
            self.taps.push((LinkFilter::ALL, Box::new(faults)));
        }
        let clock = Arc::new(self.clock());
        let all: Vec<_> = models
            .into_iter()
            .enumerate()
            .map(|(number, (model, is_filled))| {
                let card = Card::new(model, number, self.surroundings(number));
                let clock = Arc::clone(&clock);
                let fate = Fate::of(&self.faults, number);
                let shared = Shared::new(number, self.cards, card, clock, self.costs, fate);
                (Arc::new(shared), is_filled)
            })
            .collect();
        let firmware = self.firmware.as_ref();
        let hosts = std::thread::scope(|scope| {
            let threads: Vec<_> = all
                .iter()
                .map(|(shared, is_filled)| {
                    let host = &host;
                    let me = Host::new(Arc::clone(shared));
                    scope.spawn(move || {
                        let result = me.shared().run(0, || {
                            boot(&me, firmware, *is_filled).then(|| host(me.clone()))
                        });
                        me.shared().join_children();
                        result.flatten()
                    })
                })
                .collect();
            let joined = threads
                .into_iter()
                .map(|thread| thread.join().ok().flatten());
            joined.collect()
        });
        let (finish, taps) = clock.finish();
        let Finish {
            fabric,
            credit_checks,
            cycles,
            outcome,
        } = finish;
        Outcome {
            hosts,
            error: outcome.and_then(Result::err).or(taps.err().map(Error::Tap)),
            report: Report {
                cycles,
                cards: all.iter().map(|(shared, _)| shared.report()).collect(),
                fabric,
                credit_checks,
                wall: start.elapsed(),
            },
        }
    }

    fn clock(&mut self) -> Clock {
        let mut fabric = Fabric::new(self.cards, self.link);
        for &(source, destination, link) in &self.links {
            fabric.set_link(source, destination, link);
        }
        for (filter, tap) in self.taps.drain(..) {
            fabric.add_tap(filter, tap);
        }
        Clock::new(
            self.cards,
            self.threads,
            fabric,
            self.limits,
            self.seed,
            Arc::clone(&self.cancel),
            Arc::clone(&self.now),
        )
    }

    fn surroundings(&self, card: usize) -> Surroundings {
        let waves = self.waves.iter().find(|(traced, _)| *traced == card);
        let mine = || self.faults.cards.iter().filter(move |of| of.card == card);
        Surroundings {
            seed: self.seed,
            memory: self.memory,
            pressure: self.pressure,
            stalls: self
                .stalls
                .iter()
                .filter(|(stalled, _)| *stalled == card)
                .map(|(_, cycles)| cycles.clone())
                .collect(),
            memory_stalls: mine().filter_map(|card| card.stall_memory).collect(),
            firmware_pauses: mine().filter_map(|card| card.pause_firmware).collect(),
            power_off: mine()
                .filter_map(|card| card.kill)
                .min()
                .unwrap_or(u64::MAX),
            moments: self.moments,
            matches: self.matches,
            waves: waves.map(|(_, waves)| waves.clone()),
        }
    }
}

/// Waits for the gates, starts the firmware, which is loaded before unless it `is_there`, and for the others to be as far. Returns whether the host may start.
fn boot(host: &Host, firmware: Option<&Firmware>, is_there: bool) -> bool {
    let booted = start(host, firmware, is_there);
    host.shared().booted();
    match booted.and_then(|()| host.all_gather(Vec::new()).map_err(|e| e.to_string())) {
        Ok(_) => true,
        Err(reason) => {
            host.shared().stop(Stop::Boot(reason));
            false
        }
    }
}

fn start(host: &Host, firmware: Option<&Firmware>, is_there: bool) -> Result<(), String> {
    let transport = host.transport();
    let told = |error: TransportError| error.to_string();
    // SAFETY: nobody has opened the card yet.
    while unsafe { transport.read_register(STATUS) }.map_err(told)? & STATUS_READY == 0 {
        let now = transport.now();
        if now > READY_CYCLES {
            return Err(format!("its gates were not ready after {now} cycles"));
        }
        if transport.pause(&[], now + READY_POLL) == PauseResult::Closed {
            return Err(told(TransportError::Closed));
        }
    }
    let Some(firmware) = firmware else {
        return Ok(());
    };
    let segments = match is_there {
        true => &[],
        false => firmware.segments(),
    };
    let segments = segments.iter();
    let segments = segments.map(|segment| (segment.address, segment.bytes.as_slice()));
    // SAFETY: the segments are those of an ELF that carries the build id of Posthorn's firmware.
    unsafe { host_driver::load_firmware(Arc::new(transport), segments) }
        .map_err(|error| error.to_string())
}
