//! Cards with their firmware, set up and run for one test: of Verilated gates, of the model, or of both.
//!
//! ```text
//!                      ┌─► gates: sim::Cluster, the firmware of the card ──► what completed ─┐
//!  a test's ranks ─────┤                                                                    ├─ the same?
//!  (`Host`)            └─► model: SoftFabric, the firmware's decisions ───► what completed ─┘
//! ```

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use abi::completion::Completion;
use abi::event::Event;
use abi::status::Status;
use hdl::config;
use host_driver::transport::{Transport, TransportError};
use host_driver::{AsyncEvent, WcStatus, WorkCompletion};
use posthorn::replay::{PlayError, Wireup, exchange_over};
use posthorn::soak::worker::{Failure, Tally};
use posthorn::soak::{self, Run};
use sim::fabric::LinkFilter;
use sim::fault::{FaultPlan, Faults};
use sim::{Cluster, Firmware, Outcome, Rate};
use soft_card::{Flaw, Sizes, SoftOptions};

use crate::model::{self, Rank};
use crate::wires::Wires;

/// The firmware that `cargo xtask firmware` has built.
///
/// # Panics
/// If it hasn't.
pub fn firmware() -> Firmware {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/firmware/firmware.elf");
    let elf = std::fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}: run `cargo xtask firmware`", path.display()));
    Firmware::parse(elf).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Processors of tests are faster than those of boards, which have half the card's clock: most of what is simulated of a short test is firmware that answers
/// commands. A test of slower ones asks for them.
pub const PROCESSORS: Rate = Rate::Times(8);

/// Cycle by which the ranks of a soak on a few cards with such processors are connected.
pub const CONNECTED: u64 = 100_000;

/// So many cards of a configuration, with firmware.
///
/// A cluster runs on one thread: the tests run beside each other.
pub fn cards(config: &str, cards: usize, seed: u64) -> Cluster {
    Cluster::verilated(config)
        .cards(cards)
        .seed(seed)
        .threads(1)
        .processor_clock(PROCESSORS)
        .firmware(firmware())
}

/// What a rank was told, without what differs from run to run: phases, addresses, handles.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// By the library: status, and all that a completion says, in words.
    Completion(WcStatus, String),
    /// By the library too, in words.
    Event(String),
    /// An entry of the completion queue of an endpoint.
    Entry(u8, Completion),
    /// An entry of its event queue.
    EventEntry(u8, Event),
}

impl Told {
    /// A completion of the library, from or to this rank.
    pub fn completion(completion: &WorkCompletion, peer: Option<usize>) -> Self {
        let WorkCompletion {
            wr_id,
            kind,
            status,
            length,
            context,
            match_bits,
            immediate,
            more,
            offset,
            completions,
            endpoint,
            ..
        } = completion;
        let bytes = completion.buffer.is_some().then(|| completion.received());
        let words = format!(
            "{kind:?} {wr_id} of {peer:?}: context {context}, match bits {match_bits:x}, immediate {immediate:x}, length {length}, {bytes:?} at {offset}, more {more}, of {completions}, endpoint {endpoint}"
        );
        Self::Completion(*status, words)
    }

    /// An event of the library, of the pair with this rank.
    pub fn event(event: &AsyncEvent, peer: Option<usize>) -> Self {
        let AsyncEvent { cause, info, .. } = event;
        Self::Event(format!("{cause:?} of {peer:?}: {info:x}"))
    }

    fn is_nothing(&self) -> bool {
        match self {
            Self::Completion(status, _) => *status == WcStatus::NoMessage,
            Self::Entry(_, entry) => entry.status == Status::NoMessage.code(),
            Self::Event(_) | Self::EventEntry(..) => false,
        }
    }
}

/// All that a rank was told, in order.
pub type Record = Arc<Mutex<Vec<Told>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone)]
enum Place {
    Gates(sim::Host),
    Model(Rank),
}

/// The host of a card: a rank of a test.
#[derive(Clone)]
pub struct Host {
    place: Place,
    record: Record,
}

impl Host {
    /// Number of the card.
    pub fn card(&self) -> usize {
        match &self.place {
            Place::Gates(host) => host.card(),
            Place::Model(rank) => rank.card(),
        }
    }

    /// Number of cards.
    pub fn cards(&self) -> usize {
        match &self.place {
            Place::Gates(host) => host.cards(),
            Place::Model(rank) => rank.cards(),
        }
    }

    /// How the card is reached.
    pub fn transport(&self) -> Arc<dyn Transport> {
        match &self.place {
            Place::Gates(host) => Arc::new(host.transport()),
            Place::Model(rank) => rank.transport(),
        }
    }

    /// Gives `bytes` to all ranks and returns what each gave: also a barrier. All ranks must call it.
    ///
    /// # Errors
    /// [`TransportError::Closed`] when the run is over.
    pub fn all_gather(&self, bytes: Vec<u8>) -> Result<Arc<Vec<Vec<u8>>>, TransportError> {
        match &self.place {
            Place::Gates(host) => host.all_gather(bytes),
            Place::Model(rank) => rank.all_gather(bytes),
        }
    }

    /// What a soak of this rank needs, and did: as [`posthorn::soak::rank`].
    ///
    /// # Errors
    /// As there.
    pub fn soak(&self, run: &Run) -> Result<Tally, Failure> {
        soak::rank(&self.transport(), self, self.card(), run, &Arc::default())
    }

    /// The host in the simulation of gates, which can have several threads.
    ///
    /// # Panics
    /// If the card is one of the model.
    pub fn simulated(&self) -> &sim::Host {
        match &self.place {
            Place::Gates(host) => host,
            Place::Model(_) => panic!("a card of the model"),
        }
    }

    /// Notes what the rank was told. That a look found nothing isn't noted: how often a test looks is a matter of time.
    pub fn note(&self, told: Told) {
        if !told.is_nothing() {
            lock(&self.record).push(told);
        }
    }
}

impl Wireup for Host {
    fn exchange(&self, to: &[(usize, [u8; 32])]) -> Result<Vec<(usize, [u8; 32])>, PlayError> {
        let gather = |mine| self.all_gather(mine);
        exchange_over(gather, self.card(), self.cards(), to)
    }

    fn barrier(&self) -> Result<(), PlayError> {
        let all = self.all_gather(Vec::new());
        all.map(drop).map_err(|_| PlayError::Stopped)
    }
}

fn records(cards: usize) -> Vec<Record> {
    (0..cards).map(|_| Record::default()).collect()
}

/// Why a run is of gates only, and of no cards of the model beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatesOnly {
    /// Cycles decide what ranks are told: who comes first of two, or what random traffic meets. What holds whoever comes first is asserted, and there
    /// are no two runs to compare; the oracle compares such programs.
    Race,
    /// Several threads of one host: the ranks of the model have one each.
    Threads,
    /// It is about the simulation itself: its captures, its seed and threads, a wire that stalls.
    Simulation,
    /// It is about the firmware that was built, and not its decisions: its log, or that it isn't there.
    Firmware,
    /// The oracle's: what was on the pins is done again by the model.
    Oracle,
}

impl GatesOnly {
    /// Runs `host` for each card and returns what each returned, with what the simulation did.
    ///
    /// # Panics
    /// If the simulation ended early: a check in the gates failed, a card broke a rule of a bus, credits don't add
    /// up, or an assertion in `host` failed. The message has the seed.
    pub fn run<T: Send>(
        self,
        cluster: Cluster,
        host: impl Fn(Host) -> T + Sync,
    ) -> (Vec<T>, sim::Report) {
        let results = Mutex::new(BTreeMap::new());
        let report = recorded(cluster, &[], &|simulated| {
            let card = simulated.card();
            let result = host(simulated);
            lock(&results).insert(card, result);
        });
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        (results.into_values().collect(), report)
    }
}

/// What a rank does. Behind a pointer, so that what runs cards is compiled once, and not for each test.
type Program<'a> = &'a (dyn Fn(Host) + Sync);

fn recorded(cluster: Cluster, records: &[Record], host: Program<'_>) -> sim::Report {
    let Outcome { error, report, .. } = cluster.run(|simulated| {
        let record = records.get(simulated.card()).cloned().unwrap_or_default();
        let place = Place::Gates(simulated);
        host(Host { place, record });
    });
    if let Some(error) = error {
        panic!("{error}");
    }
    report
}

/// Runs `host` for each of so many cards of the model, with these capabilities.
///
/// # Panics
/// If an assertion in `host` fails.
pub fn modelled(
    config: &str,
    count: usize,
    seed: u64,
    capabilities: u32,
    host: impl Fn(Host) + Sync,
) {
    let mut options = options(config, count, seed);
    options.sizes.capabilities = capabilities;
    run_modelled(options, Wires::default(), &records(count), &host);
}

/// Runs `host` for each of so many cards of the model, over these wires.
///
/// # Panics
/// If an assertion in `host` fails.
pub fn modelled_over(
    config: &str,
    count: usize,
    seed: u64,
    wires: Wires,
    host: impl Fn(Host) + Sync,
) {
    run_modelled(options(config, count, seed), wires, &records(count), &host);
}

/// Runs `host` for each of so many cards of the model, under a plan of faults.
///
/// # Panics
/// If an assertion in `host` fails, or the cards of the model can't do what the plan says.
pub fn modelled_under(
    plan: &FaultPlan,
    config: &str,
    count: usize,
    seed: u64,
    host: impl Fn(Host) + Sync,
) {
    let options = options(config, count, seed);
    let wires = match plan.strikes_links() {
        true => Wires::tapped(LinkFilter::ALL, Faults::new(plan, seed, "model")),
        false => Wires::default(),
    };
    run_modelled_under(plan, options, wires, &records(count), &host);
}

fn run_modelled(options: SoftOptions, wires: Wires, records: &[Record], host: Program<'_>) {
    run_modelled_under(&FaultPlan::default(), options, wires, records, host);
}

fn run_modelled_under(
    plan: &FaultPlan,
    options: SoftOptions,
    wires: Wires,
    records: &[Record],
    host: Program<'_>,
) {
    model::run(options, wires, plan, |rank| {
        let record = records[rank.card()].clone();
        let place = Place::Model(rank);
        host(Host { place, record });
    });
}

thread_local! {
    /// What is wrong with the cards of the model in this thread's tests.
    static FLAW: Cell<Flaw> = const { Cell::new(Flaw::None) };
}

/// Runs a test whose model has a flaw, and returns whether it passes.
pub fn passes_with(flaw: Flaw, test: fn()) -> bool {
    FLAW.set(flaw);
    let passed = catch_unwind(test).is_ok();
    FLAW.set(Flaw::None);
    passed
}

/// Runs `host` for each of so many cards, of the model and then of gates. Every rank has to be told the same by both: the same completions and
/// events, in whatever order. Returns what the simulation of the gates did.
///
/// # Panics
/// As [`GatesOnly::run`] does; if an assertion fails on the model; if model and gates differ.
pub fn both(config: &str, count: usize, seed: u64, host: impl Fn(Host) + Sync) -> sim::Report {
    both_over(config, count, seed, Wires::default, host)
}

/// The same over wires that are made for each of the two runs.
///
/// # Panics
/// As [`both`].
pub fn both_over(
    config: &str,
    count: usize,
    seed: u64,
    wires: impl Fn() -> Wires,
    host: impl Fn(Host) + Sync,
) -> sim::Report {
    compared(config, count, seed, &wires, &host)
}

fn compared(
    config: &str,
    count: usize,
    seed: u64,
    wires: &dyn Fn() -> Wires,
    host: Program<'_>,
) -> sim::Report {
    let (of_model, of_gates) = (records(count), records(count));
    run_modelled(options(config, count, seed), wires(), &of_model, host);
    let cluster = wires().onto_gates(cards(config, count, seed));
    let report = recorded(cluster, &of_gates, host);
    for (card, (model, gates)) in of_model.iter().zip(&of_gates).enumerate() {
        let sorted = |record: &Record| {
            let mut told: Vec<String> = lock(record).iter().map(|t| format!("{t:x?}")).collect();
            told.sort_unstable();
            told
        };
        let (model, mut gates) = (sorted(model), sorted(gates));
        let only_model: Vec<String> = model
            .into_iter()
            .filter(|told| match gates.binary_search(told) {
                Ok(at) => {
                    gates.remove(at);
                    false
                }
                Err(_) => true,
            })
            .collect();
        assert!(
            only_model.is_empty() && gates.is_empty(),
            "card {card}, by the model alone: {only_model:#?}, by gates alone: {gates:#?}"
        );
    }
    report
}

/// Cards of the model as those of a configuration.
fn options(config: &str, cards: usize, seed: u64) -> SoftOptions {
    let mut all = config::ALL.iter();
    let config = all.find(|known| known.name == config);
    let config = config.expect("a configuration");
    let posted = config.posted + config.exact;
    assert_eq!(
        posted.div_ceil(5),
        config.posted,
        "as the model divides them"
    );
    SoftOptions {
        cards,
        sizes: Sizes {
            endpoints: config.endpoints as u32,
            pairs: config.pairs as u32,
            posted: posted as u32,
            unexpected: config.unexpected as u32,
            regions: config.regions as u32,
            posted_reserved: config.reserved_posted() as u32,
            capabilities: config.capabilities,
            descriptors: config.descriptors as u32,
            rules: config.rules as u32,
            grants: config.grants as u32,
        },
        seed,
        flaw: FLAW.get(),
        ..SoftOptions::default()
    }
}
