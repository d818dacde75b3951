//! Ranks on cards of the model: a thread for each, which time waits for.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use host_driver::transport::{PauseResult, Transport, TransportError};
use soft_card::{SoftFabric, SoftOptions};

use crate::wires::Wires;

/// Cycles between two looks whether all ranks have come.
const GATHER_CYCLES: u64 = 50;
/// Cycle in which a run ends that has not ended by itself.
const LIMIT: u64 = 100_000_000;

/// What ranks tell each other past the network.
#[derive(Default)]
struct Gathering {
    /// What each has given in the round that isn't complete.
    given: Vec<Option<Vec<u8>>>,
    /// The complete rounds.
    rounds: Vec<Arc<Vec<Vec<u8>>>>,
}

/// A rank and its card.
#[derive(Clone)]
pub struct Rank {
    card: usize,
    transport: Arc<dyn Transport>,
    gathering: Arc<Mutex<Gathering>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Rank {
    /// Number of the card.
    pub fn card(&self) -> usize {
        self.card
    }

    /// Number of cards.
    pub fn cards(&self) -> usize {
        lock(&self.gathering).given.len()
    }

    /// How the card is reached.
    pub fn transport(&self) -> Arc<dyn Transport> {
        Arc::clone(&self.transport)
    }

    /// Gives `bytes` to all ranks and returns what each gave.
    ///
    /// # Errors
    /// [`TransportError::Closed`] when another rank has failed, or the run takes too long.
    pub fn all_gather(&self, bytes: Vec<u8>) -> Result<Arc<Vec<Vec<u8>>>, TransportError> {
        let round = {
            let mut gathering = lock(&self.gathering);
            let round = gathering.rounds.len();
            let before = gathering.given[self.card].replace(bytes);
            assert_eq!(before, None, "one thread of a card gathers at a time");
            if gathering.given.iter().all(Option::is_some) {
                let all = gathering
                    .given
                    .iter_mut()
                    .filter_map(Option::take)
                    .collect();
                gathering.rounds.push(Arc::new(all));
            }
            round
        };
        loop {
            if let Some(all) = lock(&self.gathering).rounds.get(round) {
                return Ok(Arc::clone(all));
            }
            let deadline = self.transport.now() + GATHER_CYCLES;
            if self.transport.pause(&[], deadline) != PauseResult::Deadline {
                return Err(TransportError::Closed);
            }
        }
    }
}

/// Runs `host` for each card of a fabric with these wires.
///
/// # Panics
/// With the panic of the first rank that has one.
pub fn run(options: SoftOptions, wires: Wires, host: impl Fn(Rank) + Sync) {
    let cards = options.cards;
    let fabric = SoftFabric::new(options);
    wires.onto_model(&fabric);
    fabric.close_at(LIMIT);
    let gathering = Arc::new(Mutex::new(Gathering {
        given: vec![None; cards],
        rounds: Vec::new(),
    }));
    let failed = Mutex::new(None);
    let attached: Vec<_> = (0..cards).map(|_| fabric.attach()).collect();
    std::thread::scope(|scope| {
        for (card, attached) in attached.into_iter().enumerate() {
            let rank = Rank {
                card,
                transport: fabric.transport(card),
                gathering: Arc::clone(&gathering),
            };
            let (fabric, host, failed) = (&fabric, &host, &failed);
            scope.spawn(move || {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| host(rank))) {
                    lock(failed).get_or_insert(panic);
                    fabric.close();
                }
                drop(attached);
            });
        }
    });
    if let Some(panic) = lock(&failed).take() {
        resume_unwind(panic);
    }
}
