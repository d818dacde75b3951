//! The one clock of all cards: who may run, and when they meet.
//!
//! Cards run in windows of the fabric's smallest latency, in which they can't hear of each other. Each card is run by
//! a thread of its own; at most `threads` of them at a time have the permit to, and a card that has
//! reached the end of the window gives its permit to one that hasn't. The last one to arrive exchanges what the window
//! has brought, decides whether the simulation goes on, and opens the next window.
//!
//! ```text
//!  card 0 ──run──┐            ┌──run──┐
//!  card 1 ───────run──┐       │ ──run─┤
//!  card 2 ────run─────┴─exchange──run─┴─exchange ─►
//!            window k             window k+1
//! ```
//!
//! What a card does in a window depends on the exchanges before it only, and an exchange looks at
//! all cards in the order of their numbers: neither permits nor threads can be seen.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use crate::card::CardFault;
use crate::cluster::Error;
use crate::fabric::{Arrival, Fabric, FabricCount};
use crate::host::{WaitsFor, message};
use crate::monitor::{Change, CreditMonitor};
use crate::stream::Frame;

/// What a card's hosts are at when a window ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostState {
    /// Some host thread will go on by itself, at its deadline or when its register access ends.
    Going,
    /// All wait for something that may never come.
    Waiting,
    /// All have returned.
    Ended,
}

/// Why a card stops before the end of its window.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The card can't go on.
    Fault(CardFault),
    /// The firmware couldn't be loaded.
    Boot(String),
    /// A host thread panicked; its message.
    Panic(String),
}

/// What a card brings to the end of a window, and what it takes from there.
#[derive(Default)]
pub(crate) struct Parcel {
    /// Frames sent in the window.
    pub sent: Vec<Frame>,
    /// Changes for the monitor.
    pub changes: Vec<(u64, Change)>,
    /// What the card's hosts are at.
    pub hosts: Option<HostState>,
    /// What they wait for, if all do.
    pub waits_for: Vec<WaitsFor>,
    /// Last cycle in which the card did something.
    pub active: u64,
    /// Nothing is under way around the card.
    pub quiet: bool,
    /// Contribution to a gathering.
    pub give: Option<Vec<u8>>,
    /// Cycle and reason, if the card stops.
    pub stop: Option<(u64, Stop)>,
    /// Frames that arrive.
    pub arrivals: Vec<Arrival>,
    /// A gathering that all cards have contributed to.
    pub gathered: Option<Arc<Vec<Vec<u8>>>>,
}

/// When a simulation ends by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Cycles without anything happening, while all hosts wait, after which they are said to wait for ever.
    pub quiet: u64,
    /// Cycle at which the simulation ends.
    pub cycles: u64,
}

struct State {
    fabric: Fabric,
    monitor: CreditMonitor,
    window: u64,
    end: u64,
    arrived: usize,
    permits: usize,
    queue: VecDeque<usize>,
    may_run: Vec<bool>,
    parcels: Vec<Parcel>,
    gathering: Vec<Option<Vec<u8>>>,
    /// Set when it is over.
    outcome: Option<Result<(), Error>>,
}

/// The clock authority.
pub(crate) struct Clock {
    state: Mutex<State>,
    wake: Vec<Condvar>,
    limits: Limits,
    seed: u64,
    cancel: Arc<AtomicBool>,
    /// Start of the window, for people who look on.
    now: Arc<AtomicU64>,
}

impl Clock {
    pub fn new(
        cards: usize,
        threads: usize,
        fabric: Fabric,
        limits: Limits,
        seed: u64,
        cancel: Arc<AtomicBool>,
        now: Arc<AtomicU64>,
    ) -> Self {
        let window = fabric.window();
        let mut state = State {
            fabric,
            monitor: CreditMonitor::new(cards),
            window,
            end: window,
            arrived: 0,
            permits: threads.max(1),
            queue: (0..cards).collect(),
            may_run: vec![false; cards],
            parcels: (0..cards).map(|_| Parcel::default()).collect(),
            gathering: vec![None; cards],
            outcome: None,
        };
        let wake: Vec<_> = (0..cards).map(|_| Condvar::new()).collect();
        state.dispatch(&wake);
        Self {
            state: Mutex::new(state),
            wake,
            limits,
            seed,
            cancel,
            now,
        }
    }

    /// Waits for `card`'s first permit. Returns the end of the first window.
    pub fn begin(&self, card: usize) -> u64 {
        let state = self.state.lock().expect("no exchange panics");
        let state = self.wake[card]
            .wait_while(state, |state| !state.may_run[card])
            .expect("no exchange panics");
        state.end
    }

    /// `card` has reached the end of the window, or stops. Returns the end of the next window with what arrived
    /// in `parcel`; `None` when the simulation is over.
    pub fn arrive(&self, card: usize, parcel: &mut Parcel) -> Option<u64> {
        let mut state = self.state.lock().expect("no exchange panics");
        std::mem::swap(&mut state.parcels[card], parcel);
        state.may_run[card] = false;
        state.permits += 1;
        state.arrived += 1;
        if state.arrived == self.wake.len() {
            state.arrived = 0;
            // Taps are strangers' code, and if an exchange fails nobody else tells the cards.
            let exchange = catch_unwind(AssertUnwindSafe(|| self.exchange(&mut state)));
            if let Err(panic) = exchange {
                state.outcome = Some(Err(Error::Network {
                    seed: self.seed,
                    cycle: state.end,
                    message: message(&*panic),
                }));
            }
            // The one that is awake goes on; the others in the order of their numbers.
            state.queue.push_back(card);
            let others = (0..self.wake.len()).filter(|&other| other != card);
            state.queue.extend(others);
        }
        state.dispatch(&self.wake);
        let mut state = self.wake[card]
            .wait_while(state, |state| !state.may_run[card])
            .expect("no exchange panics");
        std::mem::swap(&mut state.parcels[card], parcel);
        state.outcome.is_none().then_some(state.end)
    }

    fn exchange(&self, state: &mut State) {
        let State {
            fabric,
            monitor,
            parcels,
            ..
        } = state;
        for (card, parcel) in parcels.iter_mut().enumerate() {
            for frame in parcel.sent.drain(..) {
                fabric.send(card, frame);
            }
            monitor.note(card, parcel.changes.drain(..));
        }
        let mut flying = false;
        fabric.exchange(|card, arrival| {
            flying = true;
            parcels[card].arrivals.push(arrival);
        });
        let gathered = state.gather();
        state.outcome = match self.fault(state) {
            Some(error) => Some(Err(error)),
            None => self.end(state, flying || gathered),
        };
        self.now.store(state.end, Ordering::Relaxed);
        state.end += state.window;
    }

    /// The first thing that went wrong in the window, by cycle, then card.
    fn fault(&self, state: &mut State) -> Option<Error> {
        let seed = self.seed;
        let credit = state.monitor.check().err();
        let stop = state.parcels.iter_mut().enumerate();
        let stop = stop.filter_map(|(card, parcel)| {
            let (cycle, stop) = parcel.stop.take()?;
            Some((cycle, card, stop))
        });
        let stop = stop.min_by_key(|&(cycle, card, _)| (cycle, card));
        match (stop, credit) {
            (stop, Some(broken)) if stop.as_ref().is_none_or(|stop| broken.cycle < stop.0) => {
                Some(Error::Credit { seed, broken })
            }
            (Some((cycle, card, stop)), _) => Some(match stop {
                Stop::Fault(fault) => Error::Card {
                    seed,
                    cycle,
                    card,
                    fault,
                },
                Stop::Boot(reason) => Error::Boot {
                    seed,
                    cycle,
                    card,
                    reason,
                },
                Stop::Panic(message) => Error::HostPanic {
                    seed,
                    cycle,
                    card,
                    message,
                },
            }),
            (None, _) => None,
        }
    }

    /// Whether it is over, and how. `coming`: something is on its way to a card or its host.
    fn end(&self, state: &State, coming: bool) -> Option<Result<(), Error>> {
        let (seed, cycle) = (self.seed, state.end);
        let all = |at: HostState| state.parcels.iter().all(|parcel| parcel.hosts == Some(at));
        if all(HostState::Ended) {
            return Some(Ok(()));
        }
        if self.cancel.load(Ordering::Relaxed) {
            return Some(Err(Error::Cancelled { seed, cycle }));
        }
        if cycle >= self.limits.cycles {
            return Some(Err(Error::CycleLimit { seed, cycle }));
        }
        // A card whose hosts have ended won't contribute any more.
        let missing = |(gave, parcel): (&Option<_>, &Parcel)| {
            gave.is_none() && parcel.hosts == Some(HostState::Ended)
        };
        let gathering = state.gathering.iter().any(Option::is_some)
            && state.gathering.iter().zip(&state.parcels).any(missing);
        let going = |parcel: &Parcel| parcel.hosts == Some(HostState::Going) || !parcel.quiet;
        let last = state.parcels.iter().map(|parcel| parcel.active).max();
        let long_ago = last.unwrap_or(0).saturating_add(self.limits.quiet) < cycle;
        let still = !coming && long_ago && !state.parcels.iter().any(going);
        if !still && !gathering {
            return None;
        }
        let waits = state.parcels.iter().enumerate();
        let waits = waits.flat_map(|(card, parcel)| {
            let waits = parcel.waits_for.iter();
            waits.map(move |wait| format!("the host of card {card} waits for {wait}"))
        });
        Some(Err(Error::Deadlock {
            seed,
            cycle,
            waits: waits.collect::<Vec<_>>().join("; "),
        }))
    }

    /// Ends the fabric; what it has done, and how often the monitor has checked.
    ///
    /// # Errors
    /// What a tap had.
    pub fn finish(&self) -> (Finish, std::io::Result<()>) {
        let mut state = self.state.lock().expect("no exchange panics");
        let taps = state.fabric.finish();
        let finish = Finish {
            fabric: state.fabric.count(),
            credit_checks: state.monitor.checks(),
            cycles: self.now.load(Ordering::Relaxed),
            outcome: state.outcome.take(),
        };
        (finish, taps)
    }
}

/// What is left when it is over.
pub(crate) struct Finish {
    pub fabric: FabricCount,
    pub credit_checks: u64,
    pub cycles: u64,
    pub outcome: Option<Result<(), Error>>,
}

impl State {
    /// Gives free permits to cards that wait for one. When it is over all may go on.
    fn dispatch(&mut self, wake: &[Condvar]) {
        while self.permits > 0 || self.outcome.is_some() {
            let Some(card) = self.queue.pop_front() else {
                return;
            };
            self.permits = self.permits.saturating_sub(1);
            self.may_run[card] = true;
            wake[card].notify_one();
        }
    }

    /// Hands a gathering out once every card has contributed; whether it has.
    fn gather(&mut self) -> bool {
        for (slot, parcel) in self.gathering.iter_mut().zip(&mut self.parcels) {
            if let Some(give) = parcel.give.take() {
                *slot = Some(give);
            }
        }
        if self.gathering.iter().any(Option::is_none) {
            return false;
        }
        let all = self.gathering.iter_mut().map(Option::take);
        let all = Arc::new(all.map(Option::unwrap_or_default).collect::<Vec<_>>());
        for parcel in &mut self.parcels {
            parcel.gathered = Some(Arc::clone(&all));
        }
        true
    }
}
