//! Host threads of a card, and the card as their transport.
//!
//! Host code takes no simulated time: the card stands still while a host thread runs, and moves on only while every
//! thread that is attached to it is blocked in a call of its transport. The thread that blocks last runs the
//! card itself until a call has ended, so that a register access of a single-threaded host needs no
//! other thread at all.
//!
//! ```text
//!  thread 0 ──code──┐ call            ┌─ answer ──code──┐
//!  thread 1 ─code─┐ └─ runs the card ─┤                 └─ …
//!                 └─ waits ───────────┴─ (its answer comes later)
//!  card     ········├─── cycles ──────┤·················├───
//! ```
//!
//! If several calls end in the same cycle, their threads run one after the other, lowest number first: even
//! what they do to shared memory is decided by the seed. For this a thread must be attached: it is a host that
//! [`Cluster::run`](crate::Cluster::run) started, or one that such a host started with [`Host::spawn`]. And it
//! must not wait for another host but in a call of this file: use [`Host::all_gather`] and [`HostThread::join`]
//! where a program would use a barrier or a channel.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use abi::register::{INTERRUPTS, WINDOW_BYTES};
#[cfg(target_os = "linux")]
use host_driver::transport::signal_event_fd;
use host_driver::transport::{
    Answer as CommandAnswer, Line, Mailbox, PauseResult, Transport, TransportError, Watch,
};

use crate::card::Card;
use crate::clock::{Clock, HostState, Parcel, Stop};
use crate::fault::{Fate, Killed};
use crate::lite::{Access, Finished};
use crate::memory::MapError;

/// Cycles that calls of the transport take, over what happens on the card's own buses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// From the call of a register write or a doorbell to its address on the bus: a posted write crossing PCIe.
    pub write: u64,
    /// From the call of a register read to its address on the bus, and again from the data on the bus to
    /// the return of the call.
    pub read: u64,
    /// Mapping memory for the card.
    pub map: u64,
    /// Ending a mapping.
    pub unmap: u64,
}

impl Costs {
    /// What the host of a card on PCIe sees, at 125 MHz: 96 ns for a write, 480 ns and the bus for a read, 1 µs
    /// for a system call that changes a mapping.
    pub const PCIE: Self = Self {
        write: 12,
        read: 30,
        map: 125,
        unmap: 125,
    };
    /// Nothing but the buses.
    pub const NONE: Self = Self {
        write: 0,
        read: 0,
        map: 0,
        unmap: 0,
    };
}

impl Default for Costs {
    fn default() -> Self {
        Self::PCIE
    }
}

/// A pause that would end later than this many cycles from now is taken to wait for an interrupt only.
const FOREVER: u64 = 1 << 40;
/// Looks at the clock without letting it go on, after which host code is said to be stuck.
const LOOKS: u64 = 100_000_000;

/// What a host thread waits for, for the message of a deadlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// An interrupt of this line and perhaps of others.
    Interrupt(Line),
    /// A deadline that never comes.
    Nothing,
    /// The other cards' hosts.
    Gathering,
    /// The end of another thread.
    Thread(usize),
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupt(Line::Endpoint(endpoint)) => {
                write!(f, "an interrupt of endpoint {endpoint}")
            }
            Self::Interrupt(Line::Mailbox) => f.write_str("an answer of the firmware"),
            Self::Interrupt(Line::Library) => f.write_str("another thread of its host"),
            Self::Nothing => f.write_str("nothing, for ever"),
            Self::Gathering => f.write_str("the other hosts to gather"),
            Self::Thread(thread) => write!(f, "its thread {thread}"),
        }
    }
}

/// How a call ended.
#[derive(Clone, Debug)]
enum Answer {
    Started,
    Done,
    Register(Result<u32, u8>),
    Pause(PauseResult),
    /// The card is without power.
    Gone,
    Gathered(Arc<Vec<Vec<u8>>>),
}

/// Where a host thread is.
enum Seat {
    /// Running host code.
    Running,
    /// Its call has ended and it may run when the others have.
    Ready(Answer),
    /// Waits for its register access.
    Access,
    /// Waits for a cycle.
    Until(u64, Answer),
    /// Waits for an interrupt that it watches, or a cycle.
    Pause(u64),
    Gather,
    Join(usize),
    Ended,
}

struct Thread {
    seat: Seat,
    watch: Vec<Watch>,
    wake: Arc<Condvar>,
}

impl Thread {
    fn new(seat: Seat) -> Self {
        Self {
            seat,
            watch: Vec::new(),
            wake: Arc::default(),
        }
    }
}

/// A card and the threads of its host.
struct Seats {
    card: Card,
    threads: Vec<Thread>,
    /// Who runs.
    turn: usize,
    window_end: u64,
    parcel: Parcel,
    give: Option<Vec<u8>>,
    /// Nothing costs anything yet.
    booting: bool,
    closed: bool,
}

pub(crate) struct Shared {
    /// Tells clusters and cards apart in `SEAT`.
    id: u64,
    number: usize,
    cards: usize,
    clock: Arc<Clock>,
    costs: Costs,
    seats: Mutex<Seats>,
    now: AtomicU64,
    interrupts: [AtomicU64; INTERRUPTS],
    /// Notifications among the host's threads.
    notified: AtomicU64,
    /// Descriptors that lines signal.
    #[cfg(target_os = "linux")]
    event_fds: Mutex<Vec<(Line, OwnedFd)>>,
    mailbox: Mailbox,
    closed: AtomicBool,
    /// The card is without power.
    gone: AtomicBool,
    /// Its firmware is being loaded: no fault of a host strikes yet.
    booting: AtomicBool,
    /// What a plan of faults has for the programs.
    fate: Fate,
    children: Mutex<Vec<JoinHandle<()>>>,
}

thread_local! {
    /// The card that this thread is attached to, and its number there.
    static SEAT: Cell<Option<(u64, usize)>> = const { Cell::new(None) };
    /// Looks at the clock since the last call that let it go on.
    static LOOKED: Cell<u64> = const { Cell::new(0) };
}

/// A panic in one host thread must not hide what the others have to say.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Seats {
    fn now(&self) -> u64 {
        self.card.cycle()
    }

    fn next_ready(&self) -> Option<usize> {
        let ready = |thread: &Thread| matches!(thread.seat, Seat::Ready(_));
        self.threads.iter().position(ready)
    }

    /// Finds the calls that have ended by now.
    fn evaluate(&mut self, shared: &Shared) {
        let now = self.card.cycle();
        for number in 0..self.threads.len() {
            let answer = match &self.threads[number].seat {
                Seat::Until(cycle, answer) if *cycle <= now => answer.clone(),
                Seat::Pause(deadline) => {
                    match shared.paused(&self.threads[number].watch, *deadline) {
                        Some(result) => Answer::Pause(result),
                        None => continue,
                    }
                }
                Seat::Join(other) if matches!(self.threads[*other].seat, Seat::Ended) => {
                    Answer::Done
                }
                Seat::Gather => match self.parcel.gathered.take() {
                    Some(all) => Answer::Gathered(all),
                    None => continue,
                },
                _ => continue,
            };
            self.threads[number].seat = Seat::Ready(answer);
        }
    }

    /// Takes the end of a register access. Nobody waits for that of a posted write, whose error stays untold.
    fn finished(&mut self, finished: Finished, costs: Costs) {
        let Some(thread) = finished.access.tag else {
            return;
        };
        let back = match finished.access.write {
            None if !self.booting => costs.read,
            _ => 0,
        };
        let answer = Answer::Register(finished.result);
        self.threads[thread].seat = Seat::Until(self.now() + back, answer);
    }

    /// Puts a register access behind those that are under way.
    fn queue(&mut self, costs: Costs, tag: Option<usize>, offset: u32, write: Option<u32>) {
        let cost = match write {
            _ if self.booting => 0,
            Some(_) => costs.write,
            None => costs.read,
        };
        self.card.access(Access {
            tag,
            start: self.now() + cost,
            offset,
            write,
        });
    }

    /// Lets time go on until a call may have ended; everybody waits.
    fn advance(&mut self, shared: &Shared) {
        let mut until = self.window_end;
        let mut watched = 0;
        for thread in &self.threads {
            match thread.seat {
                Seat::Until(cycle, _) => until = until.min(cycle),
                Seat::Pause(deadline) => {
                    until = until.min(deadline);
                    for watch in &thread.watch {
                        watched |= line(watch.line);
                    }
                }
                _ => {}
            }
        }
        if self.now() < until {
            self.card.watched = watched;
            let run = self.card.run(until);
            shared.publish(&self.card);
            if self.card.is_off() && !shared.gone.load(Ordering::Relaxed) {
                self.power_off(shared);
            }
            match run {
                Ok(Some(finished)) => self.finished(finished, shared.costs),
                Ok(None) => {}
                Err(fault) => {
                    let cycle = self.now().saturating_sub(1);
                    self.parcel.stop = Some((cycle, Stop::Fault(fault)));
                    self.meet(shared);
                    return;
                }
            }
        }
        self.evaluate(shared);
        if self.next_ready().is_none() && self.now() == self.window_end {
            self.meet(shared);
            self.evaluate(shared);
        }
    }

    /// Meets the other cards at the end of the window, or before it if this one stops.
    fn meet(&mut self, shared: &Shared) {
        let parcel = &mut self.parcel;
        std::mem::swap(&mut parcel.sent, &mut self.card.sent);
        std::mem::swap(&mut parcel.changes, &mut self.card.changes);
        parcel.active = self.card.active;
        parcel.quiet = self.card.is_quiet();
        parcel.give = self.give.take();
        parcel.waits_for.clear();
        let mut hosts = HostState::Ended;
        for thread in &self.threads {
            let waits_for = match thread.seat {
                Seat::Ended => continue,
                Seat::Pause(deadline) if deadline.saturating_sub(self.card.cycle()) > FOREVER => {
                    match thread.watch.first() {
                        Some(watch) => WaitsFor::Interrupt(watch.line),
                        None => WaitsFor::Nothing,
                    }
                }
                Seat::Gather => WaitsFor::Gathering,
                Seat::Join(other) => WaitsFor::Thread(other),
                _ => {
                    hosts = HostState::Going;
                    break;
                }
            };
            hosts = HostState::Waiting;
            parcel.waits_for.push(waits_for);
        }
        parcel.hosts = Some(hosts);
        match shared.clock.arrive(shared.number, parcel) {
            Some(end) => self.window_end = end,
            None => self.close(shared),
        }
        for arrival in self.parcel.arrivals.drain(..) {
            self.card.arrive(arrival);
        }
    }

    /// The card is without power, and reaches no memory any more: every call of its transport ends. Its host goes on.
    fn power_off(&mut self, shared: &Shared) {
        shared.gone.store(true, Ordering::Release);
        for thread in &mut self.threads {
            if let Seat::Access | Seat::Until(..) | Seat::Pause(_) = thread.seat {
                thread.seat = Seat::Ready(Answer::Gone);
            }
        }
        shared.signal(|_| true);
    }

    /// It is over: the card reaches no memory any more, and every call returns.
    fn close(&mut self, shared: &Shared) {
        self.closed = true;
        self.card.memory.unmap_all();
        shared.closed.store(true, Ordering::Release);
        shared.signal(|_| true);
        for thread in &self.threads {
            thread.wake.notify_all();
        }
    }
}

/// The card's line, as a bit; none for what is no line of it.
fn line(line: Line) -> u32 {
    line.number().map_or(0, |number| 1 << number)
}

impl Shared {
    pub fn new(
        number: usize,
        cards: usize,
        card: Card,
        clock: Arc<Clock>,
        costs: Costs,
        fate: Fate,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            number,
            cards,
            clock,
            costs,
            seats: Mutex::new(Seats {
                card,
                threads: vec![Thread::new(Seat::Running)],
                turn: 0,
                window_end: 0,
                parcel: Parcel::default(),
                give: None,
                booting: true,
                closed: false,
            }),
            now: AtomicU64::new(0),
            interrupts: [const { AtomicU64::new(0) }; INTERRUPTS],
            notified: AtomicU64::new(0),
            #[cfg(target_os = "linux")]
            event_fds: Mutex::default(),
            mailbox: Mailbox::new(),
            closed: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            booting: AtomicBool::new(true),
            fate,
            children: Mutex::default(),
        }
    }

    /// Interrupts of a line so far.
    fn count(&self, line: Line) -> u64 {
        let count = match line.number() {
            Some(number) => self.interrupts.get(number),
            None => (line == Line::Library).then_some(&self.notified),
        };
        count.map_or(0, |count| count.load(Ordering::Acquire))
    }

    /// Whether the calling thread is attached to this card.
    fn is_attached(&self) -> bool {
        SEAT.get().is_some_and(|(id, _)| id == self.id)
    }

    /// How a pause ends now, if it does.
    fn paused(&self, watch: &[Watch], deadline: u64) -> Option<PauseResult> {
        let risen = |watch: &&Watch| self.count(watch.line) > watch.seen;
        if let Some(watch) = watch.iter().find(risen) {
            return Some(PauseResult::Interrupt(watch.line));
        }
        (self.now.load(Ordering::Acquire) >= deadline).then_some(PauseResult::Deadline)
    }

    /// Shows time and interrupts to those who may look without asking.
    fn publish(&self, card: &Card) {
        self.now.store(card.cycle(), Ordering::Release);
        for (number, (shown, &count)) in self.interrupts.iter().zip(&card.interrupts).enumerate() {
            if shown.load(Ordering::Relaxed) != count {
                shown.store(count, Ordering::Release);
                self.signal(|line| line.number() == Some(number));
            }
        }
    }

    /// Signals the descriptors of these lines.
    #[cfg(target_os = "linux")]
    fn signal(&self, which: impl Fn(Line) -> bool) {
        for (line, event) in &*lock(&self.event_fds) {
            if which(*line) {
                signal_event_fd(event.as_fd());
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn signal(&self, _: impl Fn(Line) -> bool) {}

    /// Number of the calling thread on this card.
    fn thread(&self) -> usize {
        match SEAT.get() {
            Some((id, thread)) if id == self.id => thread,
            _ => panic!(
                "this thread is not attached to card {}: start it with Host::spawn",
                self.number
            ),
        }
    }

    /// Makes a call: `begin` says what the thread waits for. `None` when the simulation is over.
    fn call(&self, begin: impl FnOnce(&mut Seats, usize) -> Seat) -> Option<Answer> {
        if self.closed.load(Ordering::Acquire) {
            return None;
        }
        let thread = self.thread();
        LOOKED.set(0);
        let mut seats = lock(&self.seats);
        if seats.closed {
            return None;
        }
        let seat = begin(&mut seats, thread);
        seats.threads[thread].seat = seat;
        seats.evaluate(self);
        self.wait(seats, thread)
    }

    /// Waits until the call of `thread` has ended and it is its turn; runs the card meanwhile if all wait.
    fn wait(&self, mut seats: MutexGuard<'_, Seats>, thread: usize) -> Option<Answer> {
        loop {
            if seats.closed {
                return None;
            }
            match seats.next_ready() {
                Some(next) if next == thread => {
                    seats.turn = thread;
                    let seat = &mut seats.threads[thread].seat;
                    let Seat::Ready(answer) = std::mem::replace(seat, Seat::Running) else {
                        unreachable!("the seat is ready");
                    };
                    return Some(answer);
                }
                Some(next) => {
                    self.hand_over(&mut seats, next);
                    seats = self.await_turn(seats, thread);
                }
                None => seats.advance(self),
            }
        }
    }

    fn hand_over(&self, seats: &mut Seats, next: usize) {
        seats.turn = next;
        seats.threads[next].wake.notify_one();
    }

    fn await_turn<'a>(&self, seats: MutexGuard<'a, Seats>, thread: usize) -> MutexGuard<'a, Seats> {
        let wake = Arc::clone(&seats.threads[thread].wake);
        wake.wait_while(seats, |seats| !seats.closed && seats.turn != thread)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `host` as thread `thread` of this card, to the end. `None` if it panicked.
    pub fn run<T>(&self, thread: usize, host: impl FnOnce() -> T) -> Option<T> {
        SEAT.set(Some((self.id, thread)));
        let result = catch_unwind(AssertUnwindSafe(|| {
            if thread == 0 {
                // The first call needs a window.
                lock(&self.seats).window_end = self.clock.begin(self.number);
            } else {
                let seats = lock(&self.seats);
                let seats = self.await_turn(seats, thread);
                self.wait(seats, thread);
            }
            host()
        }));
        let result = result.map_err(|panic| self.panicked(&*panic)).ok();
        // The card goes on without this thread; if that fails, it fails as a host does.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.leave(thread))) {
            self.panicked(&*panic);
        }
        SEAT.set(None);
        result
    }

    fn leave(&self, thread: usize) {
        let mut seats = lock(&self.seats);
        seats.threads[thread].seat = Seat::Ended;
        seats.evaluate(self);
        while !seats.closed {
            if let Some(next) = seats.next_ready() {
                self.hand_over(&mut seats, next);
                return;
            }
            seats.advance(self);
        }
    }

    fn panicked(&self, panic: &(dyn Any + Send)) {
        if panic.is::<Killed>() {
            return;
        }
        let message = message(panic);
        self.stop(Stop::Panic(message));
    }

    /// Ends the simulation for a reason of this card.
    pub fn stop(&self, stop: Stop) {
        let mut seats = lock(&self.seats);
        if seats.closed {
            return;
        }
        let cycle = seats.now();
        seats.parcel.stop = Some((cycle, stop));
        seats.meet(self);
    }

    /// From now on calls cost what they should.
    pub fn booted(&self) {
        lock(&self.seats).booting = false;
        self.booting.store(false, Ordering::Relaxed);
    }

    /// Waits for the threads that the host started.
    pub fn join_children(&self) {
        loop {
            let Some(child) = lock(&self.children).pop() else {
                return;
            };
            // What it panicked with has been told.
            let _ = child.join();
        }
    }

    /// What the card has done.
    pub fn report(&self) -> crate::card::CardReport {
        lock(&self.seats).card.report()
    }

    /// Notes a look at the clock that lets no time pass.
    fn look(&self) {
        let looks = LOOKED.get() + 1;
        LOOKED.set(looks);
        assert!(
            looks < LOOKS || self.closed.load(Ordering::Relaxed),
            "host code has looked {LOOKS} times at the clock of card {} and never let it go on: \
             poll with Transport::pause",
            self.number
        );
    }

    fn access(&self, offset: u32, write: Option<u32>) -> Result<u32, TransportError> {
        check(offset)?;
        if self.is_gone() {
            return Err(TransportError::Closed);
        }
        let answer = self.call(|seats, thread| {
            seats.queue(self.costs, Some(thread), offset, write);
            Seat::Access
        });
        match answer {
            Some(Answer::Register(result)) => result.map_err(|_| TransportError::Bus(offset)),
            Some(Answer::Gone) | None => Err(TransportError::Closed),
            Some(other) => unreachable!("a register access answered {other:?}"),
        }
    }

    /// Whether the card is without power.
    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Posts a register write: the calling thread goes on, and the card takes it in its turn.
    fn post(&self, offset: u32, value: u32) -> Result<(), TransportError> {
        check(offset)?;
        // Only an attached thread has the turn that makes this the same in every run.
        self.thread();
        self.look();
        let mut seats = lock(&self.seats);
        if seats.closed || self.is_gone() {
            return Err(TransportError::Closed);
        }
        seats.queue(self.costs, None, offset, Some(value));
        Ok(())
    }
}

fn check(offset: u32) -> Result<(), TransportError> {
    if !offset.is_multiple_of(4) || offset >= WINDOW_BYTES {
        return Err(TransportError::NoRegister(offset));
    }
    Ok(())
}

/// What a panic said.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "(no message)".into())
}

/// A simulated card as the host library's transport. Cheap to clone.
///
/// Calls must come from threads that are attached to the card, see [`Host`]; others panic, except for those that
/// [`Transport`] lets come from any thread.
#[derive(Clone)]
pub struct SimTransport {
    shared: Arc<Shared>,
}

// SAFETY: memory is the allocator's, by the default `alloc` and `free`. The card reaches memory by its mappings only, on the thread that runs it and
// under the lock of the seats, which `unmap` takes as well; when the simulation is over all mappings end before `closed` is set. The host accesses what the
// card may write with atomics, as the card does. Calls of one thread reach the card's bus in order. The mailbox, one a card, holds the claim.
unsafe impl Transport for SimTransport {
    fn claim(&self) -> Result<bool, TransportError> {
        Ok(self.shared.mailbox.claim())
    }

    unsafe fn release(&self) {
        self.shared.mailbox.release();
    }

    /// Takes [`Costs::read`] twice, and the time on the bus.
    unsafe fn read_register(&self, offset: u32) -> Result<u32, TransportError> {
        self.shared.access(offset, None)
    }

    /// Takes [`Costs::write`], and the time on the bus.
    unsafe fn write_register(&self, offset: u32, value: u32) -> Result<(), TransportError> {
        self.shared.access(offset, Some(value)).map(drop)
    }

    /// Takes no cycles. The write is on the bus [`Costs::write`] after the call, behind the accesses of this card that were made before.
    unsafe fn doorbell(&self, offset: u32, value: u32) -> Result<(), TransportError> {
        match self.shared.fate.rings(self.now()) {
            true => self.shared.post(offset, value),
            false => Ok(()),
        }
    }

    /// Takes [`Costs::map`]. The address depends on the order of calls and on `start` modulo 4096.
    unsafe fn map(&self, start: NonNull<u8>, length: usize) -> Result<u64, TransportError> {
        let mut mapped = Err(TransportError::Closed);
        if self.shared.is_gone() {
            return mapped;
        }
        self.shared.call(|seats, _| {
            // SAFETY: the caller keeps the memory valid until `unmap`; what the card is told to access is its
            // affair, and atomic, by the contract of this function.
            let address = unsafe { seats.card.memory.map(start, length) };
            mapped = address.map_err(|error| match error {
                MapError::NotMapped(address) => TransportError::NotMapped(address),
                MapError::Empty | MapError::Exhausted(_) => TransportError::NoSpace(length),
            });
            let cost = if seats.booting {
                0
            } else {
                self.shared.costs.map
            };
            Seat::Until(seats.now() + cost, Answer::Done)
        });
        mapped
    }

    /// Takes [`Costs::unmap`], if the thread is attached.
    unsafe fn unmap(&self, address: u64) -> Result<(), TransportError> {
        let shared = &self.shared;
        let mut result = Err(TransportError::Closed);
        if shared.is_gone() {
            return result;
        }
        let mut unmap = |seats: &mut Seats| {
            let unmapped = seats.card.memory.unmap(address);
            result = unmapped.map_err(|_| TransportError::NotMapped(address));
        };
        if shared.is_attached() {
            shared.call(|seats, _| {
                unmap(seats);
                Seat::Until(seats.now() + shared.costs.unmap, Answer::Done)
            });
        } else {
            let mut seats = lock(&shared.seats);
            if !seats.closed {
                unmap(&mut seats);
            }
        }
        result
    }

    fn now(&self) -> u64 {
        self.shared.look();
        self.shared.now.load(Ordering::Acquire)
    }

    fn interrupts(&self, line: Line) -> u64 {
        self.shared.look();
        self.shared.count(line)
    }

    /// Takes no cycles. Who is woken goes on when the calling thread blocks.
    fn notify(&self) {
        self.shared.notified.fetch_add(1, Ordering::AcqRel);
        self.shared.signal(|line| line == Line::Library);
    }

    /// Takes no cycles. A host thread that sleeps outside of the transport stops its card, and would wait for ever: it looks at the descriptor
    /// without waiting, between pauses.
    #[cfg(target_os = "linux")]
    fn set_event_fd(&self, line: Line, event: Option<OwnedFd>) -> Result<(), TransportError> {
        let mut events = lock(&self.shared.event_fds);
        events.retain(|(of, _)| *of != line);
        events.extend(event.map(|event| (line, event)));
        Ok(())
    }

    fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire) || self.shared.is_gone()
    }

    fn may_call(&self) -> bool {
        self.shared.is_attached()
    }

    unsafe fn command(
        &self,
        words: &[u32],
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<CommandAnswer, TransportError> {
        let mailbox = &self.shared.mailbox;
        // SAFETY: the caller's promise is the same.
        let command = || unsafe { mailbox.command(self, words, answer, deadline) };
        self.shared.fate.system_call(command)
    }

    unsafe fn late_answer(
        &self,
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<CommandAnswer, TransportError> {
        let mailbox = &self.shared.mailbox;
        // SAFETY: the caller's promise is the same.
        let late_answer = || unsafe { mailbox.late_answer(self, answer, deadline) };
        self.shared.fate.system_call(late_answer)
    }

    fn pause(&self, watch: &[Watch], deadline: u64) -> PauseResult {
        let shared = &self.shared;
        let now = || shared.now.load(Ordering::Acquire);
        let pause = |watch: &[Watch], deadline| shared.pause(watch, deadline);
        match shared.booting.load(Ordering::Relaxed) {
            true => pause(watch, deadline),
            false => shared.fate.pause(now, pause, watch, deadline),
        }
    }
}

impl Shared {
    /// [`Transport::pause`], of a program that is neither frozen nor killed.
    fn pause(&self, watch: &[Watch], deadline: u64) -> PauseResult {
        let shared = self;
        if shared.closed.load(Ordering::Acquire) || shared.is_gone() {
            return PauseResult::Closed;
        }
        if let Some(result) = shared.paused(watch, deadline) {
            shared.look();
            return result;
        }
        let answer = shared.call(|seats, thread| {
            let mine = &mut seats.threads[thread].watch;
            mine.clear();
            mine.extend_from_slice(watch);
            Seat::Pause(deadline)
        });
        match answer {
            Some(Answer::Pause(result)) => result,
            Some(Answer::Gone) | None => PauseResult::Closed,
            Some(other) => unreachable!("a pause answered {other:?}"),
        }
    }
}

/// A thread of a card's host, as host code sees it.
#[derive(Clone)]
pub struct Host {
    shared: Arc<Shared>,
}

impl Host {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Number of the card.
    pub fn card(&self) -> usize {
        self.shared.number
    }

    /// Number of cards.
    pub fn cards(&self) -> usize {
        self.shared.cards
    }

    /// The card.
    pub fn transport(&self) -> SimTransport {
        SimTransport {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Gives `bytes` to the hosts of all cards and returns what each gave, by card: how ranks tell each other
    /// their addresses, and a barrier. It goes past the network, and ends at the end of the window in which the
    /// last card's host came.
    ///
    /// # Errors
    /// [`TransportError::Closed`] when the simulation is over.
    ///
    /// # Panics
    /// If another thread of this card is in one.
    pub fn all_gather(&self, bytes: Vec<u8>) -> Result<Arc<Vec<Vec<u8>>>, TransportError> {
        let answer = self.shared.call(|seats, _| {
            let busy = |thread: &Thread| matches!(thread.seat, Seat::Gather);
            assert!(
                !seats.threads.iter().any(busy),
                "one thread of a card gathers at a time"
            );
            seats.give = Some(bytes);
            Seat::Gather
        });
        match answer {
            Some(Answer::Gathered(all)) => Ok(all),
            Some(other) => unreachable!("a gathering answered {other:?}"),
            None => Err(TransportError::Closed),
        }
    }

    /// Starts another thread of this card's host. It begins in this cycle, when the calling thread blocks.
    pub fn spawn<T: Send + 'static>(
        &self,
        host: impl FnOnce(Self) -> T + Send + 'static,
    ) -> HostThread<T> {
        // Only an attached thread has the turn that makes this the same in every run.
        self.shared.thread();
        let result = Arc::new(Mutex::new(None));
        let thread = {
            let mut seats = lock(&self.shared.seats);
            seats
                .threads
                .push(Thread::new(Seat::Ready(Answer::Started)));
            seats.threads.len() - 1
        };
        let child = std::thread::spawn({
            let (me, result) = (self.clone(), Arc::clone(&result));
            move || {
                let shared = Arc::clone(&me.shared);
                shared.run(thread, || {
                    let value = host(me);
                    *lock(&result) = Some(value);
                });
            }
        });
        lock(&self.shared.children).push(child);
        HostThread {
            shared: Arc::clone(&self.shared),
            thread,
            result,
        }
    }
}

/// A thread that [`Host::spawn`] has started.
pub struct HostThread<T> {
    shared: Arc<Shared>,
    thread: usize,
    result: Arc<Mutex<Option<T>>>,
}

impl<T> HostThread<T> {
    /// Waits, in simulated time, until the thread has returned.
    ///
    /// # Errors
    /// [`TransportError::Closed`] when the simulation is over; also if the thread panicked, which ends it.
    pub fn join(self) -> Result<T, TransportError> {
        let ended = self.shared.call(|_, _| Seat::Join(self.thread));
        let result = lock(&self.result).take();
        match (ended, result) {
            (Some(_), Some(value)) => Ok(value),
            _ => Err(TransportError::Closed),
        }
    }
}
