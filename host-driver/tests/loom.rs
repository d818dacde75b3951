//! What threads share in the library, in every order of their steps that memory allows: the lock that is waited for in the transport, the count of closings,
//! the lists of what waits for a thread that can talk to the card, the claim of a card, the table of requests under its lock, and the command channel: what is
//! late, what is released, and what a restart ends.
//!
//! These files are compiled here once more, over loom's primitives. What a ring shares with the card is memory of the transport's and not in here: the
//! test-suite runs that under Miri.

/// Nothing is broken here.
macro_rules! is_broken {
    ($promise:ident) => {
        false
    };
}

mod primitives {
    //! loom's, in the place of the standard library's.
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, fence};
    pub use loom::sync::{Mutex, MutexGuard};
}

mod transport {
    pub use host_driver::transport::{
        Answer, Line, PauseResult, SharedMemory, Transport, TransportError, Watch,
    };
}

/// What a request keeps, of which the table only knows that it is kept.
mod kept {
    #[derive(Clone, Copy, Debug)]
    pub struct Pair;
    #[derive(Clone, Copy, Debug)]
    pub struct Parts;
    #[derive(Clone, Copy, Debug)]
    pub struct Work;
    impl Work {
        pub fn any() -> Self {
            Self
        }
    }
    #[derive(Debug)]
    pub struct Buffer;
    pub struct SharedBuffer;
}
mod core {
    pub use crate::kept::Parts;
}
mod operation {
    pub use crate::kept::Work;
}
mod pair {
    pub use crate::kept::Pair;
}
mod region {
    pub use crate::kept::Buffer;
}
mod shared {
    pub use crate::kept::SharedBuffer;
}
/// A device whose gates are quiet as soon as they are reset.
mod device {
    use crate::link::Link;
    use crate::transport::TransportError;

    pub struct DeviceOptions {
        pub ready_timeout: u64,
        pub command_timeout: u64,
    }

    pub fn reset(_: &Link, _: u64) -> Result<bool, TransportError> {
        Ok(true)
    }
}
/// An endpoint of which the command channel only knows that it ends.
mod endpoint {
    use crate::commands::Commands;
    use crate::error::CommandError;
    use crate::kept::Pair;
    use crate::link::Link;
    use loom::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Weak};

    pub struct Handle {
        pub link: Arc<Link>,
        pub closed: AtomicBool,
    }

    #[derive(Clone)]
    pub struct WeakHandle(pub Weak<Handle>);

    impl WeakHandle {
        pub fn upgrade(&self) -> Option<Arc<Handle>> {
            self.0.upgrade()
        }
    }

    pub struct Locked(bool);

    impl Locked {
        pub fn own(&mut self) -> &mut Self {
            self
        }

        pub fn is_closed(&self) -> bool {
            self.0
        }

        pub fn pair_closing_ended(&mut self, _: Pair, _: bool, _: bool) {}
    }

    impl Handle {
        pub fn lock(&self) -> Locked {
            Locked(self.closed.load(Ordering::Acquire))
        }

        pub fn closing_ended(&self, done: bool, _: bool) {
            self.closed.store(done, Ordering::Release);
            self.link.closing_ended();
        }

        pub fn close_at(&self, _: &mut Commands<'_>) -> Result<(), CommandError> {
            Ok(())
        }
    }
}

#[path = "../src/commands.rs"]
#[allow(dead_code, unreachable_pub)]
mod commands;
#[path = "../src/error.rs"]
#[allow(dead_code, unreachable_pub)]
mod error;
#[path = "../src/link.rs"]
#[allow(dead_code, unreachable_pub)]
mod link;
#[path = "../src/memory.rs"]
#[allow(dead_code, unreachable_pub)]
mod memory;

#[path = "../src/transport/mailbox.rs"]
#[allow(dead_code, unreachable_pub)]
mod mailbox;
#[path = "../src/sync.rs"]
#[allow(dead_code, unreachable_pub)]
mod sync;
#[path = "../src/table.rs"]
#[allow(dead_code, unreachable_pub)]
mod table;
#[path = "../src/waiting.rs"]
#[allow(dead_code, unreachable_pub)]
mod waiting;

// The mailbox finds the rest of the transport's types beside itself, and the errors the buffer.
use abi::limits::FLAT_SPACE;
use abi::mailbox::{Command, RegionKey, RegisterRegion};
use abi::status::MailboxStatus;
use commands::Release;
use error::CommandError;
use host_driver::transport::{Answer, Line, PauseResult, Transport, TransportError};
use kept::Buffer;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use mailbox::Mailbox;
use operation::Work;
use std::collections::VecDeque;
use sync::{CardMutex, Changes, Waits};
use table::{Outstanding, RequestTable};
use transport::Watch;
use waiting::Waiting;

/// Notifications, as a transport has them; a wait is a wait for one.
struct Notifications {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Notifications {
    fn new() -> Self {
        Self {
            count: Mutex::new(0),
            changed: Condvar::new(),
        }
    }
}

impl Waits for Notifications {
    fn notifications(&self) -> Watch {
        let line = Line::Library;
        let seen = *self.count.lock().unwrap();
        Watch { line, seen }
    }

    fn wait(&self, watch: Watch) {
        let mut count = self.count.lock().unwrap();
        while *count == watch.seen {
            count = self.changed.wait(count).unwrap();
        }
    }

    fn wake(&self) {
        *self.count.lock().unwrap() += 1;
        self.changed.notify_all();
    }
}

/// Adds one under the lock, and lets others run meanwhile.
fn add(sum: &CardMutex<u32>, waits: &impl Waits) {
    let mut held = sum.lock(waits);
    let before = *held;
    thread::yield_now();
    *held = before + 1;
}

/// A thread that nobody wakes is a deadlock, which loom reports.
#[test]
fn no_waiter_for_a_lock_is_forgotten() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.check(|| {
        let shared = Arc::new((CardMutex::new(0), Notifications::new()));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || add(&shared.0, &shared.1))
        };
        add(&shared.0, &shared.1);
        other.join().unwrap();
        assert_eq!(*shared.0.lock(&shared.1), 2);
    });
}

#[test]
fn nor_is_one_of_two() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let shared = Arc::new((CardMutex::new(0), Notifications::new()));
        let others = [(); 2].map(|()| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || add(&shared.0, &shared.1))
        });
        add(&shared.0, &shared.1);
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(*shared.0.lock(&shared.1), 3);
    });
}

/// A card whose notifications wake nobody.
struct Silent(Notifications);

impl Waits for Silent {
    fn notifications(&self) -> Watch {
        self.0.notifications()
    }

    fn wait(&self, watch: Watch) {
        self.0.wait(watch);
    }

    fn wake(&self) {}
}

/// A test of the tests: `model` sleeps for ever, and loom notices. It takes the process along, so it is another one's, which runs the test `name` alone.
fn assert_deadlocks(name: &str, model: impl Fn() + Send + Sync + 'static) {
    const INNER: &str = "POSTHORN_LOOM_DEADLOCK";
    if std::env::var_os(INNER).is_some() {
        return loom::model(model);
    }
    let inner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(INNER, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&inner.stderr);
    assert!(
        !inner.status.success() && said.contains("deadlock"),
        "{said}"
    );
}

#[test]
fn a_holder_that_wakes_nobody_is_noticed() {
    assert_deadlocks("a_holder_that_wakes_nobody_is_noticed", || {
        let shared = Arc::new((CardMutex::new(0), Silent(Notifications::new())));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || add(&shared.0, &shared.1))
        };
        add(&shared.0, &shared.1);
        other.join().unwrap();
    });
}

/// A queue that is closed, and the count of closings.
struct Queue<W> {
    closed: CardMutex<bool>,
    closings: Changes,
    link: W,
}

impl<W: Waits> Queue<W> {
    fn new(link: W) -> Arc<Self> {
        Arc::new(Self {
            closed: CardMutex::new(false),
            closings: Changes::new(),
            link,
        })
    }

    fn close(&self) {
        *self.closed.lock(&self.link) = true;
        self.closings.raise(&self.link);
    }

    /// As a completion queue waits.
    fn wait(&self) {
        loop {
            let closings = self.closings.seen();
            if *self.closed.lock(&self.link) {
                return;
            }
            if let Some(watch) = self.closings.watch(closings, &self.link) {
                self.link.wait(watch);
            }
        }
    }

    /// In the wrong order: a closing between its two last steps is slept through.
    fn wait_wrongly(&self) {
        loop {
            let closings = self.closings.seen();
            if *self.closed.lock(&self.link) {
                return;
            }
            if self.closings.seen() == closings {
                self.link.wait(self.link.notifications());
            }
        }
    }
}

#[test]
fn no_closing_is_slept_through() {
    for (waiters, bound) in [(1, 4), (2, 2)] {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(bound);
        builder.check(move || {
            let queue = Queue::new(Notifications::new());
            let waiters: Vec<_> = (0..waiters)
                .map(|_| {
                    let queue = Arc::clone(&queue);
                    thread::spawn(move || queue.wait())
                })
                .collect();
            queue.close();
            for waiter in waiters {
                waiter.join().unwrap();
            }
        });
    }
}

#[test]
fn a_waiter_that_looks_in_the_wrong_order_is_noticed() {
    assert_deadlocks("a_waiter_that_looks_in_the_wrong_order_is_noticed", || {
        let queue = Queue::new(Notifications::new());
        let waiter = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.wait_wrongly())
        };
        queue.close();
        waiter.join().unwrap();
    });
}

/// A card whose objects are released: how often each of four was closed.
struct Card {
    closed: CardMutex<[u32; 4]>,
    releases: Waiting<usize>,
    link: Notifications,
}

impl Card {
    fn settle(&self, closed: &mut [u32; 4]) {
        for _ in 0..self.releases.len() {
            if let Some(object) = self.releases.pop_front() {
                closed[object] += 1;
            }
        }
    }

    /// By a thread that can talk to the card, unless somebody else does just now.
    fn release(&self, object: usize) {
        self.releases.push_back(object);
        if let Some(mut closed) = self.closed.try_lock(&self.link) {
            self.settle(&mut closed);
        }
    }
}

#[test]
fn what_is_released_is_closed_once_whoever_releases_it() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let card = Arc::new(Card {
            closed: CardMutex::new([0; 4]),
            releases: Waiting::new(),
            link: Notifications::new(),
        });
        let other = {
            let card = Arc::clone(&card);
            thread::spawn(move || card.release(1))
        };
        let stranger = {
            let card = Arc::clone(&card);
            thread::spawn(move || card.releases.push_back(2))
        };
        card.release(0);
        other.join().unwrap();
        stranger.join().unwrap();
        // The next command.
        let mut closed = card.closed.lock(&card.link);
        card.settle(&mut closed);
        assert_eq!(*closed, [1, 1, 1, 0]);
    });
}

#[test]
fn a_card_has_one_owner_and_the_next_sees_what_the_last_has_done() {
    loom::model(|| {
        let card = Arc::new((Mailbox::new(), AtomicUsize::new(0), AtomicUsize::new(0)));
        let own = |card: &(Mailbox, AtomicUsize, AtomicUsize)| {
            while !card.0.claim() {
                thread::yield_now();
            }
            assert_eq!(card.1.fetch_add(1, Ordering::Relaxed), 0, "two owners");
            // Not one step: what the other wrote has to be there.
            let done = card.2.load(Ordering::Relaxed);
            card.2.store(done + 1, Ordering::Relaxed);
            card.1.fetch_sub(1, Ordering::Relaxed);
            card.0.release();
        };
        let other = {
            let card = Arc::clone(&card);
            thread::spawn(move || own(&card))
        };
        own(&card);
        other.join().unwrap();
        assert_eq!(card.2.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn a_request_is_taken_once_and_by_its_own_name_while_another_thread_posts() {
    const REQUESTS: u64 = 3;
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        // Fewer slots than requests, so that one is used again; the card completes what it has fetched.
        let shared = Arc::new((
            CardMutex::new(RequestTable::new(2)),
            Notifications::new(),
            Mutex::new(VecDeque::new()),
        ));
        let poster = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (table, link, ring) = &*shared;
                let mut old = Vec::new();
                for wr_id in 0..REQUESTS {
                    let posted = loop {
                        let request = Outstanding::new(0, wr_id, Work::any());
                        let mut table = table.lock(link);
                        if !table.is_full() {
                            break table.insert(request);
                        }
                        drop(table);
                        thread::yield_now();
                    };
                    ring.lock().unwrap().push_back(posted.wire());
                    old.push(posted);
                }
                // A handle names its own request or none, whoever has its slot by now.
                for (wr_id, request) in (0..).zip(old) {
                    let mut table = table.lock(link);
                    let found = table.get_mut(request).map(|found| found.wr_id);
                    assert!(found.is_none_or(|found| found == wr_id));
                }
            })
        };
        let (table, link, ring) = &*shared;
        for wr_id in 0..REQUESTS {
            let wire = loop {
                if let Some(wire) = ring.lock().unwrap().pop_front() {
                    break wire;
                }
                thread::yield_now();
            };
            let mut table = table.lock(link);
            let request = table.of_wire(wire);
            assert_eq!(table.remove(request).map(|taken| taken.wr_id), Some(wr_id));
            assert!(table.remove(request).is_none());
        }
        poster.join().unwrap();
        assert_eq!(shared.0.lock(&shared.1).outstanding(), 0);
    });
}

/// A card whose firmware is late with the first command that opens a region, and what has become of its objects and of their memory.
struct LateCard {
    state: Mutex<LateState>,
    notifications: Notifications,
    /// It says that the late command never came.
    denies: bool,
}

#[derive(Default)]
struct LateState {
    /// A command has been given and not been answered; whether its answer is there by now.
    late: Option<bool>,
    /// Whether the first is over.
    was_late: bool,
    /// The late one was said never to have come.
    denied: bool,
    /// It was carried out over memory that had been freed.
    trespassed: bool,
    start: u32,
    /// Mappings, and the regions that are open over them.
    mapped: Vec<u64>,
    open: Vec<u64>,
    closed: Vec<u32>,
}

/// The region that is opened too late, in the answers and in the mappings.
const LATE_REGION: u32 = 0x1000;

impl LateCard {
    fn new(denies: bool) -> Self {
        Self {
            state: Mutex::new(LateState {
                start: 1,
                ..LateState::default()
            }),
            notifications: Notifications::new(),
            denies,
        }
    }

    fn state(&self) -> loom::sync::MutexGuard<'_, LateState> {
        self.state.lock().unwrap()
    }
}

impl LateState {
    /// The firmware carries out the late command, if it has it.
    fn carry_out(&mut self) {
        if self.late == Some(false) || std::mem::take(&mut self.denied) {
            let region = u64::from(LATE_REGION);
            self.trespassed |= !self.mapped.contains(&region);
            self.open.push(region);
            self.late = self.late.map(|_| true);
        }
    }
}

// SAFETY: it reaches no memory.
unsafe impl Transport for LateCard {
    fn claim(&self) -> Result<bool, TransportError> {
        Ok(true)
    }

    unsafe fn release(&self) {}

    unsafe fn read_register(&self, _: u32) -> Result<u32, TransportError> {
        // The number of the firmware's start is all that is read.
        Ok(self.state().start)
    }

    unsafe fn write_register(&self, _: u32, _: u32) -> Result<(), TransportError> {
        Ok(())
    }

    unsafe fn alloc(&self, length: usize) -> Result<transport::SharedMemory, TransportError> {
        let address = u64::from(LATE_REGION);
        self.state().mapped.push(address);
        Ok(transport::SharedMemory {
            start: std::ptr::NonNull::dangling(),
            length,
            address,
        })
    }

    unsafe fn free(&self, memory: transport::SharedMemory) -> Result<(), TransportError> {
        let mut state = self.state();
        state.trespassed |= state.open.contains(&memory.address);
        state.mapped.retain(|&mapped| mapped != memory.address);
        Ok(())
    }

    unsafe fn map(&self, _: std::ptr::NonNull<u8>, length: usize) -> Result<u64, TransportError> {
        Err(TransportError::NoSpace(length))
    }

    unsafe fn unmap(&self, address: u64) -> Result<(), TransportError> {
        Err(TransportError::NotMapped(address))
    }

    unsafe fn command(
        &self,
        words: &[u32],
        answer: &mut [u32],
        _: u64,
    ) -> Result<Answer, TransportError> {
        thread::yield_now();
        let mut state = self.state();
        assert_eq!(state.late, None, "a command while another is outstanding");
        let code = |command: Command| u32::from(command.code());
        answer.fill(0);
        answer[0] = MailboxStatus::Ok.code().into();
        if words[0] == code(Command::RegisterRegion) && !state.was_late {
            (state.late, state.was_late) = (Some(false), true);
            return Ok(Answer::Outstanding);
        }
        if words[0] == code(Command::DeregisterRegion) {
            let id = words[1];
            assert!(!state.closed.contains(&id), "{id} is closed twice");
            state.closed.push(id);
            state.open.retain(|&open| open != u64::from(id));
        }
        Ok(Answer::Complete)
    }

    unsafe fn late_answer(&self, answer: &mut [u32], _: u64) -> Result<Answer, TransportError> {
        let mut state = self.state();
        match state.late {
            Some(true) => {
                state.late = None;
                answer[0] = MailboxStatus::Ok.code().into();
                answer[1] = LATE_REGION;
                Ok(Answer::Complete)
            }
            Some(false) if self.denies => {
                (state.late, state.denied) = (None, true);
                Ok(Answer::NotSent)
            }
            Some(false) => Ok(Answer::Outstanding),
            None => Ok(Answer::NotSent),
        }
    }

    fn now(&self) -> u64 {
        0
    }

    fn interrupts(&self, _: Line) -> u64 {
        self.notifications.notifications().seen
    }

    fn notify(&self) {
        self.notifications.wake();
    }

    fn pause(&self, watch: &[Watch], _: u64) -> PauseResult {
        self.notifications.wait(watch[0]);
        PauseResult::Interrupt(watch[0].line)
    }

    fn is_closed(&self) -> bool {
        false
    }
}

fn late_card(denies: bool) -> (std::sync::Arc<LateCard>, Arc<commands::Card>) {
    let transport = std::sync::Arc::new(LateCard::new(denies));
    let link = link::Link::claim(transport.clone()).unwrap().unwrap();
    link.note_start().unwrap();
    let options = device::DeviceOptions {
        ready_timeout: 1,
        command_timeout: 1,
    };
    let card = commands::Card::new(std::sync::Arc::new(link), options);
    (transport, Arc::new(card))
}

/// A region is opened too late by one thread while another drops one, and the firmware answers whenever it likes.
fn open_late_and_release(denies: bool) {
    const RELEASED: u32 = 7;
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let (transport, card) = late_card(denies);
        let opener = {
            let card = Arc::clone(&card);
            thread::spawn(move || {
                let memory = memory::HostMemory::new(&card.link, 1).unwrap();
                let memory = std::sync::Arc::new(memory);
                let mut commands = card.commands().expect("nothing is late");
                let opened: Result<RegionKey, _> = commands.open(
                    Command::RegisterRegion,
                    &RegisterRegion {
                        domain: 0,
                        rights: 0,
                        address: memory.address(),
                        length: 1,
                        space: FLAT_SPACE.into(),
                    },
                    Command::DeregisterRegion,
                    &[&memory],
                );
                assert!(matches!(opened, Err(CommandError::FirmwareTimeout { .. })));
            })
        };
        let firmware = {
            let transport = transport.clone();
            thread::spawn(move || transport.state().carry_out())
        };
        card.release(Release::Object {
            close: Command::DeregisterRegion,
            id: RELEASED,
            memory: Vec::new(),
        });
        firmware.join().unwrap();
        opener.join().unwrap();
        transport.state().carry_out();
        drop(card.commands().expect("all is settled"));
        let trespassed = transport.state().trespassed;
        assert!(!trespassed, "open over freed memory");
        let mut state = transport.state();
        state.closed.sort_unstable();
        assert!(state.open.is_empty(), "a region of nobody is open");
        assert_eq!(state.closed, [RELEASED, LATE_REGION]);
        assert!(state.mapped.is_empty(), "its memory is kept for ever");
    });
}

#[test]
fn what_is_opened_too_late_is_closed_once_whoever_settles_it() {
    open_late_and_release(false);
}

#[test]
#[should_panic(expected = "open over freed memory")]
fn a_late_command_that_is_given_up_too_early_is_noticed() {
    open_late_and_release(true);
}

/// As a completion queue waits, of an endpoint that ends with a restart which another thread notices.
#[test]
fn no_restart_that_another_thread_notices_is_slept_through() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let (transport, card) = late_card(false);
        let endpoint = std::sync::Arc::new(endpoint::Handle {
            link: card.link.clone(),
            closed: loom::sync::atomic::AtomicBool::new(false),
        });
        card.enter_endpoint(
            0,
            endpoint::WeakHandle(std::sync::Arc::downgrade(&endpoint)),
        );
        let waiter = thread::spawn(move || {
            let link = &*endpoint.link;
            loop {
                let closings = link.closings();
                if endpoint.lock().is_closed() {
                    return;
                }
                if let Some(watch) = link.watch_closings(closings) {
                    link.wait(watch);
                }
            }
        });
        transport.state().start = 2;
        assert_eq!(card.commands().err(), Some(CommandError::Restarted));
        waiter.join().unwrap();
    });
}
