//! The cards, the frames between them, and the time in which it all happens.
//!
//! ```text
//!  agenda  (cycle, order) ─► firmware up, command taken, timer of the firmware, rings worked, frame arrives, silence looked for
//!  gates, firmware           go on after each of these until they have nothing to do, but for the next entries of the rings
//!  hosts   blocked in the transport until a cycle or an interrupt
//!  time    moves to the earlier of the two when every attached host is blocked
//! ```

use crate::cable::{Cable, HostEnd};
use crate::memory::{BusAccess, Memory};
use abi::ABI_VERSION;
use abi::control::AccessReport;
use abi::mailbox::{id_generation, object_id};
use abi::register::{
    ABI, CONTROL, CONTROL_RESET, CONTROL_RUN, FIRMWARE_START, FIRST_ENDPOINT_INTERRUPT,
    FIRST_ENDPOINT_PAGE, ID, LOADER_ADDRESS, LOADER_DATA, MAGIC, MAILBOX_ANSWER, MAILBOX_COMMAND,
    MAILBOX_REQUEST, MAILBOX_RESULT, MAILBOX_WORDS, PAGE_BYTES, STATUS, STATUS_FIRMWARE,
    STATUS_READY, WINDOW_BYTES,
};
use abi::status::MailboxStatus;
use abi::wire::FrameHeader;
use card_model::matching::Sizes as ListSizes;
use card_model::{
    Action as GateAction, Break, Card as Gates, CardSizes, InTurn, Managed, Refused, RemoteAccess,
};
use firmware_core::{Firmware, Sizes};
#[cfg(target_os = "linux")]
use host_driver::transport::signal_event_fd;
use host_driver::transport::{
    Answer, Line, Mailbox, PauseResult, Transport, TransportError, Watch,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How the firmware of the cards behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirmwareBehaviour {
    /// As it should.
    Normal,
    /// It is up once the host has let the processor run.
    AwaitsLoad,
    /// It never comes up.
    Absent,
    /// It comes up, answers this many commands, and then no more.
    HangsAfter(u32),
    /// It comes up, answers this many commands, and carries out and answers those after them this many cycles too late.
    AnswersLate {
        /// Commands that are answered in time.
        after: u32,
        /// Cycles that an answer takes then.
        cycles: u64,
    },
    /// It comes up, answers this many commands, and starts anew instead of carrying out the next one.
    RestartsAfter(u32),
    /// It comes up, answers this many commands, and starts anew just before the next one is given, which it carries out.
    RestartsBefore(u32),
    /// It comes up and answers each command with a status that there is not.
    AnswersMalformed,
}

/// How a host is attached to its card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attachment {
    /// In one address space.
    #[default]
    Shared,
    /// By messages of bytes.
    Cable,
}

/// What a card does that no card should, so that a test can show that it is noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flaw {
    /// Nothing.
    #[default]
    None,
    /// The model of the gates is broken.
    Gates(Break),
    /// The firmware is.
    Firmware(firmware_core::Break),
    /// What is written to buffers and slots is written once more, later.
    WritesLate,
    /// The firmware answers `Ok` to a close of an endpoint and closes nothing.
    ClosesInName,
    /// A register reset leaves the gates as they are.
    KeepsGates,
    /// The firmware gives each endpoint the first place.
    GivesPlaceTwice,
    /// What its host sends later overtakes a command that was on its way when the host heard that the card can't be reached.
    Overtakes,
}

/// What a soft fabric is made of. Times are in cycles.
#[derive(Clone, Debug)]
pub struct SoftOptions {
    /// Number of cards.
    pub cards: usize,
    /// Sizes of each. Of the posted receives one in five is on the associative side, as in the named configurations, or one at least. Half of each side is
    /// shared evenly among the endpoints; on the associative side each has `posted_reserved` places for itself instead, if that isn't 0.
    pub sizes: Sizes,
    /// From a frame's leaving to its arrival.
    pub latency: u64,
    /// That a register access takes.
    pub register_cycles: u64,
    /// Between two fetches of a card.
    pub fetch_cycles: u64,
    /// From reset to the firmware's being up.
    pub boot_cycles: u64,
    /// From a command to its answer.
    pub command_cycles: u64,
    /// How the firmware behaves.
    pub firmware: FirmwareBehaviour,
    /// How hosts are attached.
    pub attachment: Attachment,
    /// What is wrong with the cards.
    pub flaw: Flaw,
    /// What the identification register reads.
    pub id: u32,
    /// What the ABI register reads.
    pub abi_version: u32,
    /// Seed of the cards' random words.
    pub seed: u64,
}

impl Default for SoftOptions {
    /// Two cards of the sizes of `tiny`.
    fn default() -> Self {
        Self {
            cards: 2,
            sizes: Sizes {
                endpoints: 2,
                pairs: 8,
                posted: 80,
                unexpected: 64,
                regions: 32,
                posted_reserved: 0,
                capabilities: 0,
                descriptors: 64,
                rules: 4,
                grants: 64,
            },
            latency: 125,
            register_cycles: 20,
            fetch_cycles: 40,
            boot_cycles: 5000,
            command_cycles: 2000,
            firmware: FirmwareBehaviour::Normal,
            attachment: Attachment::Shared,
            flaw: Flaw::None,
            id: MAGIC,
            abi_version: ABI_VERSION,
            seed: 1,
        }
    }
}

/// A frame between two cards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passing {
    /// Header, payload, padding and trailer.
    pub bytes: Vec<u8>,
    /// Cycle in which it left.
    pub sent: u64,
    /// Card that sent it.
    pub source: usize,
    /// Card that it goes to.
    pub destination: usize,
    /// Cycles that it is late, over the latency of the fabric.
    pub delay: u64,
}

/// Sees every frame: what it puts behind the others goes on, and what it doesn't is lost.
type Tap = Box<dyn FnMut(Passing, &mut Vec<Passing>) + Send>;

/// Cycles that a reset of the gates takes.
const RESET_CYCLES: u64 = 1000;
/// Cycles that a write may be on its way after its host has had the error that the card can't be reached.
const DELAY_CYCLES: u64 = 5000;

/// What is going to happen to a card.
enum Action {
    /// Of this start of the processor: a later one does away with it.
    FirmwareUp(u32),
    /// Of this start too.
    Command(u32),
    /// The firmware's timer.
    Wake,
    Ready,
    Doorbell(u8, u32, u32),
    Work,
    Arrive(Vec<u8>),
    /// A pair may have been silent for too long.
    Silence,
    /// A write that was on its way arrives.
    DelayedRequest,
    /// The processor stops where it is, or goes on.
    Pause(bool),
    PowerOff,
}

struct Card {
    firmware: Firmware<Managed<Memory>>,
    schedule: InTurn,
    /// The processor runs the firmware,
    booted: bool,
    /// which has come up.
    up: bool,
    /// The command that the firmware has not taken.
    command_waits: bool,
    /// When the firmware's timer is on the agenda for.
    wakes_at: Option<u64>,
    /// When silence is looked for.
    silent_at: Option<u64>,
    behaviour: FirmwareBehaviour,
    /// Commands that have been given since the behaviour was set.
    commands: u32,
    control: u32,
    /// The gates are being cleared.
    resetting: bool,
    /// Times that the processor was held or has started anew.
    starts: u32,
    /// Rising edges of the mailbox's line.
    answers: u64,
    /// Rising edges of each endpoint's line, and the lines.
    interrupts: Vec<u64>,
    lines: u32,
    /// Notifications among the host's threads.
    notified: u64,
    /// Writes to the pages of endpoints.
    doorbells: u64,
    /// Register accesses of its host that took time.
    accesses: u64,
    /// The host can't reach the card.
    cut: bool,
    /// The card has no power.
    off: bool,
    /// The processor stands still.
    paused: bool,
    /// The next command is on its way when its host hears that the card can't be reached.
    delays: bool,
    /// The number of such a command, which has not arrived.
    delayed: Option<u32>,
    command: [u32; MAILBOX_WORDS],
    result: [u32; MAILBOX_WORDS],
    request: u32,
    answer: u32,
    loader_address: u32,
    loaded: Vec<(u32, u32)>,
    /// A fetch is on the agenda.
    working: bool,
    /// Frames from this card that the fabric is still to lose.
    to_lose: u32,
}

/// A host thread blocked in the transport.
struct Waiter {
    /// Card, then order of arrival: who goes first when several may.
    order: (usize, u64),
    deadline: u64,
    watches: Vec<Watch>,
    /// It doesn't wait for its card.
    anyway: bool,
    released: Option<PauseResult>,
    /// Wakes its thread, and no other.
    wake: Arc<Condvar>,
    /// It has been woken since it was released.
    woken: bool,
}

pub(crate) struct World {
    options: SoftOptions,
    now: u64,
    cards: Vec<Card>,
    agenda: BTreeMap<(u64, u64), (usize, Action)>,
    order: u64,
    waiters: Vec<Waiter>,
    attached: usize,
    tap: Option<Tap>,
    closed: bool,
    /// When it ends by itself.
    closes_at: u64,
    #[cfg(target_os = "linux")]
    event_fds: Vec<EventFd>,
}

/// A file descriptor that is signalled when a line interrupts.
#[cfg(target_os = "linux")]
struct EventFd {
    card: usize,
    line: Line,
    /// Interrupts that it has been signalled for.
    seen: u64,
    place: EventPlace,
}

/// Where the descriptor is.
#[cfg(target_os = "linux")]
pub(crate) enum EventPlace {
    /// In this process.
    Here(OwnedFd),
    /// With a host that is reached by messages only.
    There(Arc<HostEnd>),
}

#[cfg(target_os = "linux")]
impl EventFd {
    fn signal(&self) {
        match &self.place {
            EventPlace::Here(event) => signal_event_fd(event.as_fd()),
            EventPlace::There(host) => host.signal(self.line),
        }
    }
}

struct Inner {
    world: Mutex<World>,
    /// One a card.
    mailboxes: Vec<Mailbox>,
    /// Blocks of memory lent out by cables, by card.
    lent: Vec<AtomicUsize>,
}

thread_local! {
    /// This thread is none of the host's.
    static STRANGER: Cell<bool> = const { Cell::new(false) };
}

/// Runs `code` as a thread would that is none of the host's: it may make only those calls of a transport that any thread may.
pub fn as_stranger<T>(code: impl FnOnce() -> T) -> T {
    STRANGER.set(true);
    let value = code();
    STRANGER.set(false);
    value
}

pub(crate) fn is_stranger() -> bool {
    STRANGER.get()
}

/// Some cards and the fabric between them. Clones are the same fabric.
#[derive(Clone)]
pub struct SoftFabric {
    inner: Arc<Inner>,
}

/// A host thread that time waits for; see [`SoftFabric::attach`].
pub struct HostThread {
    fabric: SoftFabric,
}

impl SoftFabric {
    /// Makes the fabric. Its cards begin to boot at cycle 0.
    pub fn new(options: SoftOptions) -> Self {
        let card = |index: usize| Card {
            firmware: Firmware::new(managed(&options, index), options.seed),
            schedule: InTurn::default(),
            booted: false,
            up: false,
            command_waits: false,
            wakes_at: None,
            silent_at: None,
            behaviour: options.firmware,
            commands: 0,
            control: match options.firmware {
                FirmwareBehaviour::AwaitsLoad => 0,
                _ => CONTROL_RUN,
            },
            resetting: false,
            starts: 0,
            answers: 0,
            interrupts: vec![0; options.sizes.endpoints as usize],
            lines: 0,
            notified: 0,
            doorbells: 0,
            accesses: 0,
            cut: false,
            off: false,
            paused: false,
            delays: false,
            delayed: None,
            command: [0; MAILBOX_WORDS],
            result: [0; MAILBOX_WORDS],
            request: 0,
            answer: 0,
            loader_address: 0,
            loaded: Vec::new(),
            working: false,
            to_lose: 0,
        };
        let cards: Vec<_> = (0..options.cards).map(card).collect();
        let mut world = World {
            now: 0,
            cards,
            agenda: BTreeMap::new(),
            order: 0,
            waiters: Vec::new(),
            attached: 0,
            tap: None,
            closed: false,
            closes_at: u64::MAX,
            #[cfg(target_os = "linux")]
            event_fds: Vec::new(),
            options,
        };
        for card in 0..world.cards.len() {
            world.run_processor(card);
        }
        Self {
            inner: Arc::new(Inner {
                mailboxes: world.cards.iter().map(|_| Mailbox::new()).collect(),
                lent: world.cards.iter().map(|_| AtomicUsize::new(0)).collect(),
                world: Mutex::new(world),
            }),
        }
    }

    /// How a host reaches a card.
    ///
    /// # Panics
    /// If there is no such card.
    pub fn transport(&self, card: usize) -> Arc<dyn Transport> {
        let attachment = {
            let world = self.world();
            assert!(card < world.cards.len(), "no card {card}");
            world.options.attachment
        };
        let fabric = self.clone();
        let transport = SoftTransport { fabric, card };
        match attachment {
            Attachment::Shared => Arc::new(transport),
            Attachment::Cable => Arc::new(Cable::new(transport)),
        }
    }

    /// Says that one more host thread takes part, so that time waits for it, until what is returned is
    /// dropped. A fabric that is used by one thread only needs none.
    #[must_use]
    pub fn attach(&self) -> HostThread {
        self.world().attached += 1;
        HostThread {
            fabric: self.clone(),
        }
    }

    /// Cycles so far.
    pub fn now(&self) -> u64 {
        self.world().now
    }

    /// Loses the next `frames` frames that leave `card`.
    pub fn lose_frames(&self, card: usize, frames: u32) {
        self.world().cards[card].to_lose = frames;
    }

    /// From now on every frame passes this: what it puts into its second argument goes on, what it doesn't is lost.
    pub fn tap(&self, tap: impl FnMut(Passing, &mut Vec<Passing>) + Send + 'static) {
        self.world().tap = Some(Box::new(tap));
    }

    /// From now on what `card` reads and writes of its host's memory passes this, which says of each access whether the bus answers it well. It must
    /// not call the fabric.
    pub fn bus(&self, card: usize, bus: impl FnMut(BusAccess<'_>) -> bool + Send + 'static) {
        self.world().memory(card).bus = Some(Box::new(bus));
    }

    /// Commands that the firmware of `card` has been given since its behaviour was set.
    pub fn commands(&self, card: usize) -> u32 {
        self.world().cards[card].commands
    }

    /// From now on the gates of `card` answer no control request.
    pub fn silence_gates(&self, card: usize) {
        self.world().cards[card].firmware.card().silent = true;
    }

    /// The same, and they say that they wait for this access.
    pub fn silence_gates_for(&self, card: usize, access: AccessReport) {
        self.silence_gates(card);
        self.world().cards[card].firmware.card().report = access;
    }

    /// From now on the random source of `card` says the same for ever.
    pub fn jam_entropy(&self, card: usize) {
        self.world().cards[card].firmware.card().stuck = true;
    }

    /// Card address of an access of a pair's peer to memory of `card`'s host, if its gates allow it. Nothing is changed.
    ///
    /// # Errors
    /// Why they don't.
    pub fn find_remote(&self, card: usize, access: &RemoteAccess) -> Result<u64, Refused> {
        let mut world = self.world();
        let now = world.now;
        world.cards[card].gates().find_remote(access, now)
    }

    /// From now on the gates of `card` answer again, first what they were asked last.
    pub fn wake_gates(&self, card: usize) {
        let mut world = self.world();
        world.cards[card].firmware.card().silent = false;
        world.after(1, card, Action::Wake);
    }

    /// From now on the firmware of `card` behaves like this; commands are counted anew.
    pub fn set_firmware(&self, card: usize, behaviour: FirmwareBehaviour) {
        let mut world = self.world();
        world.cards[card].behaviour = behaviour;
        world.cards[card].commands = 0;
    }

    /// The host of `card` can't reach it, or can again. The card goes on, and its DMA too.
    pub fn cut(&self, card: usize, cut: bool) {
        let mut world = self.world();
        world.cards[card].cut = cut;
        if cut {
            for waiter in &mut world.waiters {
                if waiter.order.0 == card {
                    waiter.released = Some(PauseResult::Unreachable);
                }
            }
        }
        wake_all(world);
    }

    /// In this cycle the power of `card` is cut: nothing comes out of it any more and nothing goes in, and every call of its transport is answered `Closed`.
    pub fn power_off_at(&self, card: usize, cycle: u64) {
        let mut world = self.world();
        let cycles = cycle.saturating_sub(world.now);
        world.after(cycles, card, Action::PowerOff);
    }

    /// The processor of `card` stands still in these cycles, and goes on where it was. Its gates go on meanwhile.
    pub fn pause_firmware(&self, card: usize, cycles: Range<u64>) {
        let mut world = self.world();
        let from_now = |cycle: u64| cycle.saturating_sub(world.now);
        let (begin, end) = (from_now(cycles.start), from_now(cycles.end));
        world.after(begin, card, Action::Pause(true));
        world.after(end, card, Action::Pause(false));
    }

    /// Blocks the calling thread, of the host of `card`, until a cycle, whether or not it can reach the card.
    pub fn sleep(&self, card: usize, deadline: u64) -> PauseResult {
        self.wait(card, &[], deadline, true)
    }

    /// The firmware of `card` starts anew.
    pub fn restart_firmware(&self, card: usize) {
        self.world().restart_firmware(card);
    }

    /// The next command to the firmware of `card` is still on its way when its host hears that the card can't be reached. It arrives in a while, or before the
    /// next that the host asks of the card.
    pub fn delay_command(&self, card: usize) {
        self.world().cards[card].delays = true;
    }

    /// Blocks of memory that the host end of the cable to `card` has lent out.
    pub fn lent(&self, card: usize) -> usize {
        self.inner.lent[card].load(Ordering::Acquire)
    }

    /// Lets cycles pass, whoever can reach his card. No other thread may be attached.
    pub fn run(&self, cycles: u64) {
        let deadline = self.now() + cycles;
        let _ = self.wait(0, &[], deadline, true);
    }

    /// The program says that it has these bytes, or hasn't any more; see [`trespasses`](Self::trespasses).
    pub fn set_owned(&self, card: usize, bytes: &[u8], owned: bool) {
        let range = bytes.as_ptr().addr()..bytes.as_ptr().addr() + bytes.len();
        self.world().memory(card).set_owned(range, owned);
    }

    /// Times that `card` would have written to bytes that the program has.
    pub fn trespasses(&self, card: usize) -> u64 {
        self.world().memory(card).trespasses
    }

    /// Mappings that `card` has of its host's memory.
    pub fn mappings(&self, card: usize) -> usize {
        self.world().memory(card).mappings()
    }

    /// Writes to the pages of endpoints that `card` has had.
    pub fn doorbells(&self, card: usize) -> u64 {
        self.world().cards[card].doorbells
    }

    /// Register accesses that the host of `card` has waited for.
    pub fn accesses(&self, card: usize) -> u64 {
        self.world().cards[card].accesses
    }

    /// Endpoints that the gates of `card` know.
    pub fn open_endpoints(&self, card: usize) -> usize {
        self.world().cards[card].gates().open_endpoints()
    }

    /// Whether the gates of `card` know an endpoint at this place.
    pub fn has_endpoint(&self, card: usize, place: u8) -> bool {
        self.world().cards[card].gates().is_endpoint_open(place)
    }

    /// Whether `card` reaches some of these bytes through a mapping of this process's memory.
    pub fn reaches(&self, card: usize, bytes: &[u8]) -> bool {
        let range = bytes.as_ptr().addr()..bytes.as_ptr().addr() + bytes.len();
        self.world().memory(card).reaches(&range)
    }

    /// Words that the host has loaded into the management memory of `card`: address, word.
    pub fn loaded(&self, card: usize) -> Vec<(u32, u32)> {
        self.world().cards[card].loaded.clone()
    }

    /// Ends it all: every call of every transport fails from now on.
    pub fn close(&self) {
        let mut world = self.world();
        world.close();
        wake_all(world);
    }

    /// Ends it all at a cycle, so that a call that would go on for ever fails.
    pub fn close_at(&self, cycle: u64) {
        self.world().closes_at = cycle;
    }

    /// Whether it has ended.
    pub fn is_closed(&self) -> bool {
        self.world().closed
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.inner
            .world
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks the calling thread until one of `watches` or cycle `deadline`.
    pub(crate) fn wait(
        &self,
        card: usize,
        watches: &[Watch],
        deadline: u64,
        anyway: bool,
    ) -> PauseResult {
        assert!(!is_stranger(), "this thread is none of the host's");
        let mut world = self.world();
        if world.closed {
            return PauseResult::Closed;
        }
        if world.cards[card].off && !anyway {
            return PauseResult::Closed;
        }
        if world.cards[card].cut && !anyway {
            return PauseResult::Unreachable;
        }
        world.order += 1;
        let order = (card, world.order);
        let wake = Arc::new(Condvar::new());
        world.waiters.push(Waiter {
            order,
            deadline,
            watches: watches.to_vec(),
            anyway,
            released: None,
            wake: Arc::clone(&wake),
            woken: false,
        });
        loop {
            world.advance();
            let mine = world
                .waiters
                .iter()
                .position(|waiter| waiter.order == order);
            if let Some(at) = mine
                && let Some(result) = world.waiters[at].released
            {
                world.waiters.remove(at);
                // A thread that is left takes time on itself if more of them wait than are attached.
                if world.is_running() {
                    wake_released(world);
                } else {
                    wake_all(world);
                }
                return result;
            }
            if world.waiters.iter().any(Waiter::is_to_be_woken) {
                // They need the world at once.
                wake_released(world);
                world = self.world();
                continue;
            }
            world = wake.wait(world).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for HostThread {
    fn drop(&mut self) {
        let mut world = self.fabric.world();
        world.attached -= 1;
        if world.attached > 0 {
            world.advance();
        }
        wake_all(world);
    }
}

impl Waiter {
    fn is_to_be_woken(&self) -> bool {
        self.released.is_some() && !self.woken
    }
}

/// Wakes those that may go on and haven't been told.
fn wake_released(mut world: MutexGuard<'_, World>) {
    let mut wakes = Vec::new();
    for waiter in world.waiters.iter_mut().filter(|w| w.is_to_be_woken()) {
        waiter.woken = true;
        wakes.push(Arc::clone(&waiter.wake));
    }
    drop(world);
    wakes.iter().for_each(|wake| wake.notify_one());
}

/// Wakes all, to look at the world as it is now.
fn wake_all(world: MutexGuard<'_, World>) {
    let wakes = world.waiters.iter().map(|waiter| Arc::clone(&waiter.wake));
    let wakes: Vec<_> = wakes.collect();
    drop(world);
    wakes.iter().for_each(|wake| wake.notify_one());
}

/// A card out of reset, as its firmware sees it.
fn managed(options: &SoftOptions, card: usize) -> Managed<Memory> {
    let memory = Memory::new(options.flaw == Flaw::WritesLate);
    let seed = options.seed ^ card as u64;
    let mut managed = Managed::new(card_sizes(&options.sizes), memory, mac(card), seed);
    managed.deaf_to_reset = options.flaw == Flaw::KeepsGates;
    if let Flaw::Firmware(broken) = options.flaw {
        managed.broken_firmware = Some(broken);
    }
    if let Flaw::Gates(broken) = options.flaw {
        managed.gates.break_on_purpose(broken);
    }
    managed
}

fn card_sizes(sizes: &Sizes) -> CardSizes {
    let posted = sizes.posted as usize;
    let associative = posted.div_ceil(5);
    let mut lists = ListSizes::new(
        sizes.endpoints as usize,
        sizes.pairs as usize,
        posted - associative,
        associative,
        sizes.unexpected as usize,
    );
    if sizes.posted_reserved != 0 {
        lists.reserved_posted = sizes.posted_reserved as usize;
    }
    CardSizes {
        lists,
        regions: sizes.regions as usize,
        capabilities: sizes.capabilities,
        descriptors: sizes.descriptors as usize,
        rules: sizes.rules as usize,
        grants: sizes.grants as usize,
    }
}

/// Ethernet address of a card: locally administered.
pub(crate) fn mac(card: usize) -> u64 {
    0x02 | (card as u64) << 8
}

impl World {
    fn after(&mut self, cycles: u64, card: usize, action: Action) {
        self.order += 1;
        let key = (self.now + cycles, self.order);
        self.agenda.insert(key, (card, action));
    }

    /// Ends it all.
    fn close(&mut self) {
        self.closed = true;
        for card in &mut self.cards {
            card.gates().memory.unmap_all();
        }
        for waiter in &mut self.waiters {
            waiter.released = Some(PauseResult::Closed);
        }
        #[cfg(target_os = "linux")]
        self.event_fds.iter().for_each(EventFd::signal);
    }

    /// Whether some host thread is not blocked, or may go on.
    fn is_running(&self) -> bool {
        let released = self.waiters.iter().any(|waiter| waiter.released.is_some());
        released || self.waiters.len() < self.attached.max(1)
    }

    /// If every host thread is blocked and none may go on, lets time pass until one may.
    fn advance(&mut self) {
        while !self.is_running() {
            if self.release() {
                return;
            }
            let deadline = self.waiters.iter().map(|waiter| waiter.deadline).min();
            let deadline = deadline.unwrap_or(u64::MAX);
            let next = self.agenda.first_key_value().map(|(&(cycle, _), _)| cycle);
            self.now = next.map_or(deadline, |cycle| cycle.min(deadline));
            if self.now >= self.closes_at {
                return self.close();
            }
            // All of a cycle, so that a doorbell is seen before the access behind it.
            while let Some(entry) = self.agenda.first_entry()
                && entry.key().0 <= self.now
            {
                let (card, action) = entry.remove();
                self.act(card, action);
            }
        }
    }

    /// Lets one host thread go on, if one may.
    fn release(&mut self) -> bool {
        let cards = &mut self.cards;
        let mut first: Option<(&mut Waiter, PauseResult)> = None;
        for waiter in &mut self.waiters {
            let card = waiter.order.0;
            if waiter.released.is_some() {
                continue;
            }
            let risen = |watch: &&Watch| cards[card].interrupts(watch.line) > watch.seen;
            let interrupt = waiter.watches.iter().find(risen).copied();
            let result = match interrupt {
                Some(Watch { line, .. }) => PauseResult::Interrupt(line),
                None if waiter.deadline <= self.now => PauseResult::Deadline,
                None => continue,
            };
            if first
                .as_ref()
                .is_none_or(|(best, _)| waiter.order < best.order)
            {
                first = Some((waiter, result));
            }
        }
        match first {
            Some((waiter, result)) => {
                waiter.released = Some(result);
                true
            }
            None => false,
        }
    }

    /// Something happens to a card; what it sends leaves.
    fn act(&mut self, index: usize, action: Action) {
        let card = &mut self.cards[index];
        if card.off {
            return;
        }
        card.gates().advance_to(self.now);
        match action {
            Action::FirmwareUp(start) if start == card.starts => card.boot(self.options.seed),
            Action::Command(start) if start == card.starts => {
                let close = u32::from(abi::mailbox::Command::CloseEndpoint.code());
                if self.options.flaw == Flaw::ClosesInName && card.command[0] == close {
                    card.result[0] = u32::from(MailboxStatus::Ok.code());
                    card.give_answer();
                } else {
                    card.command_waits = true;
                }
            }
            Action::FirmwareUp(_) | Action::Command(_) | Action::Wake | Action::Silence => {}
            Action::Ready => card.resetting = false,
            Action::Doorbell(endpoint, offset, value) => {
                card.doorbells += 1;
                if !card.resetting {
                    card.gates().write_register(endpoint, offset, value);
                }
            }
            Action::Work => card.fetch(),
            Action::Arrive(frame) => card.gates().frame_in(frame),
            Action::DelayedRequest => self.arrive_delayed(index),
            Action::Pause(paused) => card.paused = paused,
            Action::PowerOff => return self.power_off(index),
        }
        self.run(index);
        self.dispatch(index);
        self.look_ahead(index);
        self.cards[index].note_interrupts();
        #[cfg(target_os = "linux")]
        self.signal(index);
    }

    /// A card ends. Its host hears that, and nothing of the card reaches its memory any more.
    fn power_off(&mut self, index: usize) {
        let card = &mut self.cards[index];
        card.off = true;
        card.gates().memory.unmap_all();
        let waiters = self.waiters.iter_mut();
        for waiter in waiters.filter(|waiter| waiter.order.0 == index && !waiter.anyway) {
            waiter.released = Some(PauseResult::Closed);
        }
        #[cfg(target_os = "linux")]
        for event in self.event_fds.iter().filter(|event| event.card == index) {
            event.signal();
        }
    }

    /// Signals the file descriptors of the lines that have interrupted.
    #[cfg(target_os = "linux")]
    fn signal(&mut self, index: usize) {
        for event in &mut self.event_fds {
            if event.card == index {
                let count = self.cards[index].interrupts(event.line);
                if count > event.seen {
                    event.seen = count;
                    event.signal();
                }
            }
        }
    }

    /// Lets gates and firmware do what they can, and puts the firmware's timer on the agenda.
    fn run(&mut self, index: usize) {
        let now = self.now;
        let card = &mut self.cards[index];
        while card.settle() | card.run_firmware() {}
        let runs = card.booted && !card.paused;
        let deadline = card.firmware.next_deadline().filter(|_| runs);
        let Some(deadline) = deadline else {
            return;
        };
        let left = deadline.wrapping_sub(now as u32) as i32;
        let at = now + left.max(1) as u64;
        if card.wakes_at.is_none_or(|wakes| wakes <= now || at < wakes) {
            card.wakes_at = Some(at);
            self.after(at - now, index, Action::Wake);
        }
    }

    /// Sends the frames that have left a card on their way.
    fn dispatch(&mut self, index: usize) {
        while let Some(frame) = self.cards[index].gates().frame_out() {
            let to_lose = &mut self.cards[index].to_lose;
            if *to_lose > 0 {
                *to_lose -= 1;
                continue;
            }
            let header = FrameHeader::parse(&frame).expect("gates send whole frames");
            let to = (0..self.cards.len()).find(|&card| mac(card) == header.destination_mac);
            let Some(destination) = to else {
                continue;
            };
            let passing = Passing {
                bytes: frame,
                sent: self.now,
                source: index,
                destination,
                delay: 0,
            };
            let mut passed = Vec::new();
            match &mut self.tap {
                Some(tap) => tap(passing, &mut passed),
                None => passed.push(passing),
            }
            for passing in passed {
                let cycles = self.options.latency + passing.delay;
                self.after(cycles, passing.destination, Action::Arrive(passing.bytes));
            }
        }
    }

    /// Puts a fetch on the agenda, if there may be something to fetch, and a look for silence.
    fn look_ahead(&mut self, index: usize) {
        let now = self.now;
        let card = &mut self.cards[index];
        let fetches = !card.working && card.gates().actions().iter().any(GateAction::fetches);
        card.working |= fetches;
        let silence = card.gates().next_time().map(|at| at.max(now + 1));
        let later = |planned: u64| planned <= now || silence.is_some_and(|at| at < planned);
        let silence = silence.filter(|_| card.silent_at.is_none_or(later));
        card.silent_at = silence.or(card.silent_at);
        if fetches {
            self.after(self.options.fetch_cycles, index, Action::Work);
        }
        if let Some(at) = silence {
            self.after(at - now, index, Action::Silence);
        }
    }

    pub(crate) fn memory(&mut self, index: usize) -> &mut Memory {
        &mut self.cards[index].gates().memory
    }

    /// The firmware comes up in a while, if there is one.
    fn run_processor(&mut self, index: usize) {
        let card = &self.cards[index];
        let start = card.starts;
        if card.control & CONTROL_RUN != 0 && card.behaviour != FirmwareBehaviour::Absent {
            self.after(self.options.boot_cycles, index, Action::FirmwareUp(start));
        }
    }

    /// The firmware starts anew.
    fn restart_firmware(&mut self, index: usize) {
        let card = &mut self.cards[index];
        card.hold();
        self.run_processor(index);
    }

    /// The firmware takes the command in the mailbox.
    fn take_command(&mut self, index: usize) {
        let card = &mut self.cards[index];
        let number = card.commands;
        card.commands += 1;
        let cycles = match card.behaviour {
            FirmwareBehaviour::HangsAfter(commands) if number >= commands => return,
            FirmwareBehaviour::AnswersLate { after, cycles } if number >= after => cycles,
            FirmwareBehaviour::RestartsAfter(commands) if number >= commands => {
                card.behaviour = FirmwareBehaviour::Normal;
                return self.restart_firmware(index);
            }
            _ => self.options.command_cycles,
        };
        let start = card.starts;
        self.after(cycles, index, Action::Command(start));
    }

    /// A command that was on its way arrives.
    fn arrive_delayed(&mut self, index: usize) {
        if let Some(request) = self.cards[index].delayed.take() {
            self.write(index, MAILBOX_REQUEST, request);
        }
    }

    pub(crate) fn read(&mut self, index: usize, offset: u32) -> u32 {
        let card = &mut self.cards[index];
        match page(offset) {
            Page::Endpoint(endpoint, offset) => card.gates().read_register(endpoint, offset),
            Page::Mailbox(offset) => match offset {
                ID => self.options.id,
                ABI => self.options.abi_version,
                STATUS => {
                    let ready = if card.resetting { 0 } else { STATUS_READY };
                    ready | if card.up { STATUS_FIRMWARE } else { 0 }
                }
                CONTROL => card.control | if card.resetting { CONTROL_RESET } else { 0 },
                MAILBOX_REQUEST => card.request,
                MAILBOX_ANSWER => card.answer,
                FIRMWARE_START if card.up => card.firmware.start_number(),
                LOADER_ADDRESS => card.loader_address,
                _ => match area(offset) {
                    Some((MAILBOX_COMMAND, word)) => card.command[word],
                    Some((_, 0)) if card.behaviour == FirmwareBehaviour::AnswersMalformed => {
                        u32::MAX
                    }
                    Some((_, 1)) if self.options.flaw == Flaw::GivesPlaceTwice => {
                        let opened = abi::mailbox::Command::OpenEndpoint.code();
                        match card.command[0] == u32::from(opened) {
                            true => object_id(0, id_generation(card.result[1])),
                            false => card.result[1],
                        }
                    }
                    Some((_, word)) => card.result[word],
                    None => 0,
                },
            },
        }
    }

    pub(crate) fn write(&mut self, index: usize, offset: u32, value: u32) {
        let card = &mut self.cards[index];
        let held = card.control & CONTROL_RUN == 0;
        match page(offset) {
            Page::Endpoint(endpoint, offset) => {
                self.act(index, Action::Doorbell(endpoint, offset, value));
            }
            Page::Mailbox(MAILBOX_REQUEST) => {
                if matches!(card.behaviour, FirmwareBehaviour::RestartsBefore(commands) if card.commands >= commands)
                {
                    card.behaviour = FirmwareBehaviour::Normal;
                    card.hold();
                    card.boot(self.options.seed);
                }
                card.request = value;
                if card.up {
                    self.take_command(index);
                }
            }
            Page::Mailbox(CONTROL) => {
                card.control = value & CONTROL_RUN;
                if value & CONTROL_RUN == 0 {
                    card.hold();
                }
                if value & CONTROL_RESET != 0 {
                    card.resetting = true;
                    card.firmware.card().reset();
                    card.note_interrupts();
                    self.after(RESET_CYCLES, index, Action::Ready);
                }
                if held && value & CONTROL_RUN != 0 {
                    self.run_processor(index);
                }
            }
            Page::Mailbox(LOADER_ADDRESS) if held => card.loader_address = value,
            Page::Mailbox(LOADER_DATA) if held => {
                card.loaded.push((card.loader_address, value));
                card.loader_address += 4;
            }
            Page::Mailbox(offset) => {
                if let Some((MAILBOX_COMMAND, word)) = area(offset) {
                    card.command[word] = value;
                }
            }
        }
    }
}

enum Page {
    Mailbox(u32),
    Endpoint(u8, u32),
}

fn page(offset: u32) -> Page {
    match (offset / PAGE_BYTES).checked_sub(FIRST_ENDPOINT_PAGE) {
        None => Page::Mailbox(offset),
        // The window has as many pages as an endpoint's number has values.
        Some(endpoint) => Page::Endpoint(endpoint as u8, offset % PAGE_BYTES),
    }
}

/// Which mailbox area an offset is in, and which word of it.
fn area(offset: u32) -> Option<(u32, usize)> {
    [MAILBOX_COMMAND, MAILBOX_RESULT]
        .into_iter()
        .find_map(|start| {
            let word = offset.checked_sub(start)? as usize / 4;
            (word < MAILBOX_WORDS).then_some((start, word))
        })
}

impl Card {
    fn gates(&mut self) -> &mut Gates<Memory> {
        &mut self.firmware.card().gates
    }

    /// Carries out the next entry of each ring that has one.
    fn fetch(&mut self) {
        self.working = false;
        self.gates().memory.write_late();
        for endpoint in 0..self.interrupts.len() as u8 {
            for action in [GateAction::Send(endpoint), GateAction::List(endpoint)] {
                self.gates().step(action);
                self.settle();
            }
        }
    }

    /// Lets the gates do all but fetch. True if there was something to do.
    fn settle(&mut self) -> bool {
        let gates = &mut self.firmware.card().gates;
        gates.run_those(|action| !action.fetches(), &mut self.schedule) > 0
    }

    /// Lets the firmware do what it can. True if it did something.
    fn run_firmware(&mut self) -> bool {
        let mut moved = false;
        while self.booted && !self.paused {
            if self.command_waits && self.firmware.is_free() {
                self.command_waits = false;
                self.firmware.command(&self.command);
            }
            let stepped = self.firmware.step();
            if !self.up && self.firmware.is_up() {
                self.up = true;
                if self.request != self.answer {
                    let lost = self.firmware.answer_to_lost();
                    self.result[..lost.len()].copy_from_slice(&lost);
                    self.give_answer();
                }
            }
            if let Some(answer) = self.firmware.take_answer() {
                self.result[..answer.count].copy_from_slice(&answer.words[..answer.count]);
                self.give_answer();
            } else if !stepped {
                break;
            }
            moved = true;
        }
        moved
    }

    /// The firmware starts over gates and persistent memory as they are, and clears the gates first.
    fn boot(&mut self, build_id: u64) {
        let blank = Managed::new(self.gates().sizes(), Memory::new(false), 0, 0);
        let managed = std::mem::replace(self.firmware.card(), blank);
        self.firmware = Firmware::new(managed, build_id);
        self.booted = true;
        self.wakes_at = None;
        self.command_waits = false;
        self.run_firmware();
    }

    /// The processor stops, and what it had begun is void.
    fn hold(&mut self) {
        (self.booted, self.up) = (false, false);
        self.starts += 1;
    }

    /// Counts the edges of the endpoints' lines.
    fn note_interrupts(&mut self) {
        let lines = self.gates().interrupts() >> FIRST_ENDPOINT_INTERRUPT;
        let risen = lines & !self.lines;
        self.lines = lines;
        for (endpoint, edges) in self.interrupts.iter_mut().enumerate() {
            *edges += u64::from(risen >> endpoint & 1);
        }
    }

    fn give_answer(&mut self) {
        self.answer = self.request;
        self.answers += 1;
    }

    /// Interrupts of a line so far.
    fn interrupts(&self, line: Line) -> u64 {
        match line {
            Line::Mailbox => self.answers,
            Line::Library => self.notified,
            Line::Endpoint(endpoint) => {
                let edges = self.interrupts.get(usize::from(endpoint));
                edges.copied().unwrap_or(0)
            }
        }
    }
}

/// One card of the fabric, as its host reaches it. A register access takes `register_cycles`; a doorbell as many, after it has returned.
pub(crate) struct SoftTransport {
    fabric: SoftFabric,
    card: usize,
}

impl SoftTransport {
    /// The world, while the card can be reached.
    fn reach(&self) -> Result<MutexGuard<'_, World>, TransportError> {
        let world = self.fabric.world();
        match () {
            () if world.closed || world.cards[self.card].off => Err(TransportError::Closed),
            () if world.cards[self.card].cut => Err(TransportError::Unreachable),
            () => Ok(world),
        }
    }

    /// Lets the cycles of a register access pass; its effect is at their end.
    fn access(&self, offset: u32) -> Result<MutexGuard<'_, World>, TransportError> {
        check(offset)?;
        let deadline = {
            let mut world = self.reach()?;
            world.cards[self.card].accesses += 1;
            world.now + world.options.register_cycles
        };
        match self.fabric.wait(self.card, &[], deadline, false) {
            PauseResult::Closed => Err(TransportError::Closed),
            PauseResult::Unreachable => Err(TransportError::Unreachable),
            _ => {
                let mut world = self.reach()?;
                if world.options.flaw != Flaw::Overtakes {
                    world.arrive_delayed(self.card);
                }
                Ok(world)
            }
        }
    }

    /// Whether the command that is being given is to be delayed.
    pub(crate) fn takes_delay(&self) -> bool {
        std::mem::take(&mut self.fabric.world().cards[self.card].delays)
    }

    pub(crate) fn flaw(&self) -> Flaw {
        self.fabric.world().options.flaw
    }

    /// The cable has lent out so many blocks more, or one fewer.
    pub(crate) fn count_lent(&self, blocks: isize) {
        self.fabric.inner.lent[self.card].fetch_add(blocks as usize, Ordering::AcqRel);
    }

    fn mailbox(&self) -> &Mailbox {
        &self.fabric.inner.mailboxes[self.card]
    }

    /// Signals a descriptor, in place of the one that the line had.
    #[cfg(target_os = "linux")]
    pub(crate) fn set_event_place(
        &self,
        line: Line,
        place: Option<EventPlace>,
    ) -> Result<(), TransportError> {
        let mut world = self.reach()?;
        let card = self.card;
        let seen = world.cards[card].interrupts(line);
        world
            .event_fds
            .retain(|event| (event.card, event.line) != (card, line));
        world.event_fds.extend(place.map(|place| EventFd {
            card,
            line,
            seen,
            place,
        }));
        Ok(())
    }

    /// Maps memory of a distant host.
    pub(crate) fn map_there(
        &self,
        misaligned: u64,
        length: u64,
        host: Arc<HostEnd>,
    ) -> Result<u64, TransportError> {
        let mut world = self.reach()?;
        if length == 0 {
            return Err(TransportError::NoSpace(0));
        }
        let memory = world.memory(self.card);
        Ok(memory.map_there(misaligned, length, host))
    }
}

fn check(offset: u32) -> Result<(), TransportError> {
    if !offset.is_multiple_of(4) || offset >= WINDOW_BYTES {
        return Err(TransportError::NoRegister(offset));
    }
    Ok(())
}

// SAFETY: memory is the allocator's, by the default `alloc` and `free`; the card's memory looks for each access whether it is mapped, under the lock of
// the world, so that after an unmapping or a closing no access is under way; the mailbox is one a card, and holds the claim.
unsafe impl Transport for SoftTransport {
    fn claim(&self) -> Result<bool, TransportError> {
        drop(self.reach()?);
        Ok(self.mailbox().claim())
    }

    unsafe fn release(&self) {
        self.mailbox().release();
    }

    unsafe fn read_register(&self, offset: u32) -> Result<u32, TransportError> {
        let mut world = self.access(offset)?;
        let value = world.read(self.card, offset);
        if world.options.flaw == Flaw::Overtakes && offset == MAILBOX_REQUEST {
            world.arrive_delayed(self.card);
        }
        Ok(value)
    }

    unsafe fn write_register(&self, offset: u32, value: u32) -> Result<(), TransportError> {
        let mut world = self.access(offset)?;
        let card = &mut world.cards[self.card];
        if offset == MAILBOX_REQUEST && std::mem::take(&mut card.delays) {
            card.delayed = Some(value);
            world.after(DELAY_CYCLES, self.card, Action::DelayedRequest);
            return Err(TransportError::Unreachable);
        }
        world.write(self.card, offset, value);
        Ok(())
    }

    unsafe fn doorbell(&self, offset: u32, value: u32) -> Result<(), TransportError> {
        check(offset)?;
        let mut world = self.reach()?;
        if let Page::Endpoint(endpoint, offset) = page(offset) {
            let cycles = world.options.register_cycles;
            let doorbell = Action::Doorbell(endpoint, offset, value);
            world.after(cycles, self.card, doorbell);
        }
        Ok(())
    }

    unsafe fn map(&self, start: NonNull<u8>, length: usize) -> Result<u64, TransportError> {
        let mut world = self.reach()?;
        if length == 0 {
            return Err(TransportError::NoSpace(length));
        }
        let memory = world.memory(self.card);
        // SAFETY: the caller's promise is the same.
        Ok(unsafe { memory.map(start, length) })
    }

    unsafe fn unmap(&self, address: u64) -> Result<(), TransportError> {
        let mut world = self.reach()?;
        let unmapped = world.memory(self.card).unmap(address);
        unmapped
            .then_some(())
            .ok_or(TransportError::NotMapped(address))
    }

    unsafe fn command(
        &self,
        words: &[u32],
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<Answer, TransportError> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.mailbox().command(self, words, answer, deadline) }
    }

    unsafe fn late_answer(
        &self,
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<Answer, TransportError> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.mailbox().late_answer(self, answer, deadline) }
    }

    fn now(&self) -> u64 {
        self.fabric.now()
    }

    fn interrupts(&self, line: Line) -> u64 {
        self.fabric.world().cards[self.card].interrupts(line)
    }

    #[cfg(target_os = "linux")]
    fn set_event_fd(&self, line: Line, event: Option<OwnedFd>) -> Result<(), TransportError> {
        self.set_event_place(line, event.map(EventPlace::Here))
    }

    fn notify(&self) {
        let mut world = self.fabric.world();
        world.cards[self.card].notified += 1;
        #[cfg(target_os = "linux")]
        world.signal(self.card);
    }

    fn pause(&self, watch: &[Watch], deadline: u64) -> PauseResult {
        self.fabric.wait(self.card, watch, deadline, false)
    }

    fn is_closed(&self) -> bool {
        let world = self.fabric.world();
        world.closed || world.cards[self.card].off
    }

    fn may_call(&self) -> bool {
        !is_stranger()
    }
}
