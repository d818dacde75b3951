//! Ranks on cards of the model: a thread for each, which time waits for, and what a plan of faults does to them.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::ptr::NonNull;

use host_driver::transport::{
    Answer, Line, PauseResult, SharedMemory, Transport, TransportError, Watch,
};
use sim::fault::{CardPlan, Fate, FaultPlan};
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
    fabric: SoftFabric,
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
            // Past the network, and past the card as well: it may have no power.
            let deadline = self.transport.now() + GATHER_CYCLES;
            if self.fabric.sleep(self.card, deadline) != PauseResult::Deadline {
                return Err(TransportError::Closed);
            }
        }
    }
}

/// Does to a card what a plan says.
fn strike(fabric: &SoftFabric, of: &CardPlan) {
    let CardPlan {
        card,
        kill,
        pause_firmware,
        stall_memory,
    } = *of;
    assert_eq!(stall_memory, None, "memory of the model answers at once");
    if let Some(cycle) = kill {
        fabric.power_off_at(card, cycle);
    }
    if let Some(pause) = pause_firmware {
        fabric.pause_firmware(card, pause.begin..pause.end);
    }
}

/// A transport of a host that a plan of faults may freeze and kill.
struct Fated {
    transport: Arc<dyn Transport>,
    fate: Fate,
}

// SAFETY: every call is the transport's own. A doorbell that isn't rung tells the card of nothing; a pause that ends later, or unwinds, touches no memory.
unsafe impl Transport for Fated {
    fn claim(&self) -> Result<bool, TransportError> {
        self.transport.claim()
    }

    unsafe fn release(&self) {
        // SAFETY: the caller's promise is the same; here and below.
        unsafe { self.transport.release() }
    }

    unsafe fn read_register(&self, offset: u32) -> Result<u32, TransportError> {
        // SAFETY: as above.
        unsafe { self.transport.read_register(offset) }
    }

    unsafe fn write_register(&self, offset: u32, value: u32) -> Result<(), TransportError> {
        // SAFETY: as above.
        unsafe { self.transport.write_register(offset, value) }
    }

    unsafe fn doorbell(&self, offset: u32, value: u32) -> Result<(), TransportError> {
        match self.fate.rings(self.now()) {
            // SAFETY: as above.
            true => unsafe { self.transport.doorbell(offset, value) },
            false => Ok(()),
        }
    }

    unsafe fn alloc(&self, length: usize) -> Result<SharedMemory, TransportError> {
        // SAFETY: as above.
        unsafe { self.transport.alloc(length) }
    }

    unsafe fn free(&self, memory: SharedMemory) -> Result<(), TransportError> {
        // SAFETY: as above.
        unsafe { self.transport.free(memory) }
    }

    unsafe fn map(&self, start: NonNull<u8>, length: usize) -> Result<u64, TransportError> {
        // SAFETY: as above.
        unsafe { self.transport.map(start, length) }
    }

    unsafe fn unmap(&self, address: u64) -> Result<(), TransportError> {
        // SAFETY: as above.
        unsafe { self.transport.unmap(address) }
    }

    unsafe fn command(
        &self,
        words: &[u32],
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<Answer, TransportError> {
        // SAFETY: as above.
        let call = || unsafe { self.transport.command(words, answer, deadline) };
        self.fate.system_call(call)
    }

    unsafe fn late_answer(
        &self,
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<Answer, TransportError> {
        // SAFETY: as above.
        let call = || unsafe { self.transport.late_answer(answer, deadline) };
        self.fate.system_call(call)
    }

    fn now(&self) -> u64 {
        self.transport.now()
    }

    fn interrupts(&self, line: Line) -> u64 {
        self.transport.interrupts(line)
    }

    fn notify(&self) {
        self.transport.notify();
    }

    #[cfg(target_os = "linux")]
    fn set_event_fd(&self, line: Line, event: Option<OwnedFd>) -> Result<(), TransportError> {
        self.transport.set_event_fd(line, event)
    }

    fn pause(&self, watch: &[Watch], deadline: u64) -> PauseResult {
        let pause = |watch: &[Watch], deadline| self.transport.pause(watch, deadline);
        self.fate.pause(|| self.now(), pause, watch, deadline)
    }

    fn is_closed(&self) -> bool {
        self.transport.is_closed()
    }

    fn may_call(&self) -> bool {
        self.transport.may_call()
    }
}

/// Runs `host` for each card of a fabric with these wires, under a plan of faults.
///
/// # Panics
/// With the panic of the first rank that has one.
pub fn run(options: SoftOptions, wires: Wires, plan: &FaultPlan, host: impl Fn(Rank) + Sync) {
    let cards = options.cards;
    let fabric = SoftFabric::new(options);
    if let Err(wrong) = plan.check(cards) {
        panic!("{wrong}");
    }
    for of in &plan.cards {
        strike(&fabric, of);
    }
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
                fabric: fabric.clone(),
                transport: Arc::new(Fated {
                    transport: fabric.transport(card),
                    fate: Fate::of(plan, card),
                }),
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
