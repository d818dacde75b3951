//! The cards, the frames between them, and the time in which it all happens.
//!
//! ```text
//!  agenda  (cycle, order) ─► firmware up, command taken, timer of the firmware, rings worked, frame arrives, silence checked
//!  firmware                  steps after each of these until it has nothing to do
//!  hosts   blocked in the transport until a cycle or an interrupt
//!  time    moves to the earlier of the two when every attached host is blocked
//! ```

use crate::gates::Gates;
use crate::pairs::{Body, Frame};
use abi::ABI_VERSION;
use abi::register::{
    ABI, CONTROL, CONTROL_RESET, CONTROL_RUN, FIRST_ENDPOINT_PAGE, ID, LOADER_ADDRESS, LOADER_DATA,
    MAGIC, MAILBOX_ANSWER, MAILBOX_COMMAND, MAILBOX_REQUEST, MAILBOX_RESULT, MAILBOX_WORDS,
    PAGE_BYTES, STATUS, STATUS_FIRMWARE, STATUS_READY, WINDOW_BYTES,
};
use abi::status::MailboxStatus;
use firmware_core::{Card as _, Firmware, Sizes};
use host_driver::transport::{PauseResult, Transport, TransportError, Watch};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How the firmware of the cards behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirmwareBehaviour {
    /// As it should.
    Sound,
    /// It is up once the host has let the processor run.
    AwaitsLoad,
    /// It never comes up.
    Absent,
    /// It comes up, answers this many commands, and then no more.
    HangsAfter(u32),
}

/// What a soft fabric is made of. Times are in cycles.
#[derive(Clone, Debug)]
pub struct SoftOptions {
    /// Number of cards.
    pub cards: usize,
    /// Sizes of each.
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
                posted: 64,
                unexpected: 64,
                regions: 32,
            },
            latency: 125,
            register_cycles: 20,
            fetch_cycles: 40,
            boot_cycles: 5000,
            command_cycles: 2000,
            firmware: FirmwareBehaviour::Sound,
            id: MAGIC,
            abi_version: ABI_VERSION,
            seed: 1,
        }
    }
}

/// What is going to happen to a card.
enum Action {
    /// If the processor has not been held since: the number of the start.
    FirmwareUp(u32),
    Command,
    /// The firmware's timer.
    Wake,
    Work,
    Arrive(Box<Frame>),
    CheckSilence,
}

struct Card {
    firmware: Firmware<Gates>,
    up: bool,
    /// Starts of the firmware.
    starts: u32,
    /// The command that the firmware has not taken.
    command_waits: bool,
    /// When the firmware's timer is on the agenda for.
    wakes_at: Option<u64>,
    /// Commands that are still answered.
    patience: u32,
    control: u32,
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
    released: Option<PauseResult>,
}

struct World {
    options: SoftOptions,
    now: u64,
    cards: Vec<Card>,
    agenda: BTreeMap<(u64, u64), (usize, Action)>,
    order: u64,
    waiters: Vec<Waiter>,
    attached: usize,
    closed: bool,
}

struct Inner {
    world: Mutex<World>,
    moved: Condvar,
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
        let card = |index: usize| {
            let gates = Gates::new(options.sizes, mac(index), options.seed ^ index as u64);
            let runs = matches!(
                options.firmware,
                FirmwareBehaviour::Sound | FirmwareBehaviour::HangsAfter(_)
            );
            Card {
                firmware: Firmware::new(gates, options.seed),
                up: false,
                starts: 0,
                command_waits: false,
                wakes_at: None,
                patience: match options.firmware {
                    FirmwareBehaviour::HangsAfter(commands) => commands,
                    _ => u32::MAX,
                },
                control: if runs { CONTROL_RUN } else { 0 },
                command: [0; MAILBOX_WORDS],
                result: [0; MAILBOX_WORDS],
                request: 0,
                answer: 0,
                loader_address: 0,
                loaded: Vec::new(),
                working: false,
                to_lose: 0,
            }
        };
        let mut world = World {
            now: 0,
            cards: (0..options.cards).map(card).collect(),
            agenda: BTreeMap::new(),
            order: 0,
            waiters: Vec::new(),
            attached: 0,
            closed: false,
            options,
        };
        for card in 0..world.cards.len() {
            if world.cards[card].control & CONTROL_RUN != 0 {
                world.start(card);
            }
        }
        Self {
            inner: Arc::new(Inner {
                world: Mutex::new(world),
                moved: Condvar::new(),
            }),
        }
    }

    /// How a host reaches a card.
    ///
    /// # Panics
    /// If there is no such card.
    pub fn transport(&self, card: usize) -> Arc<dyn Transport> {
        assert!(card < self.world().cards.len(), "no card {card}");
        Arc::new(SoftTransport {
            fabric: self.clone(),
            card,
        })
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

    /// From now on the gates of `card` answer no control request.
    pub fn silence_gates(&self, card: usize) {
        self.world().cards[card].firmware.card().silent = true;
    }

    /// Words that the host has loaded into the management memory of `card`: address, word.
    pub fn loaded(&self, card: usize) -> Vec<(u32, u32)> {
        self.world().cards[card].loaded.clone()
    }

    /// Ends it all: every call of every transport fails from now on.
    pub fn close(&self) {
        let mut world = self.world();
        world.closed = true;
        for waiter in &mut world.waiters {
            waiter.released = Some(PauseResult::Closed);
        }
        drop(world);
        self.inner.moved.notify_all();
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.inner
            .world
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks the calling thread until one of `watches` or cycle `deadline`.
    fn wait(&self, card: usize, watches: &[Watch], deadline: u64) -> PauseResult {
        let mut world = self.world();
        if world.closed {
            return PauseResult::Closed;
        }
        world.order += 1;
        let order = (card, world.order);
        world.waiters.push(Waiter {
            order,
            deadline,
            watches: watches.to_vec(),
            released: None,
        });
        loop {
            world.advance();
            self.inner.moved.notify_all();
            let mine = world
                .waiters
                .iter()
                .position(|waiter| waiter.order == order);
            if let Some(at) = mine
                && let Some(result) = world.waiters[at].released
            {
                world.waiters.remove(at);
                return result;
            }
            world = self
                .inner
                .moved
                .wait(world)
                .unwrap_or_else(PoisonError::into_inner);
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
        drop(world);
        self.fabric.inner.moved.notify_all();
    }
}

/// Ethernet address of a card: locally administered.
fn mac(card: usize) -> u64 {
    0x02 | (card as u64) << 8
}

impl World {
    /// The processor of a card runs, from its reset on.
    fn start(&mut self, card: usize) {
        if self.options.firmware != FirmwareBehaviour::Absent {
            self.cards[card].starts += 1;
            let starts = self.cards[card].starts;
            self.after(self.options.boot_cycles, card, Action::FirmwareUp(starts));
        }
    }

    fn after(&mut self, cycles: u64, card: usize, action: Action) {
        self.order += 1;
        let key = (self.now + cycles, self.order);
        self.agenda.insert(key, (card, action));
    }

    /// If every host thread is blocked and none may go on, lets time pass until one may.
    fn advance(&mut self) {
        let running = |world: &Self| {
            let released = world.waiters.iter().any(|waiter| waiter.released.is_some());
            released || world.waiters.len() < world.attached.max(1)
        };
        while !running(self) {
            if self.release() {
                return;
            }
            let deadline = self.waiters.iter().map(|waiter| waiter.deadline).min();
            let deadline = deadline.unwrap_or(u64::MAX);
            match self.agenda.first_key_value() {
                Some((&(cycle, _), _)) if cycle <= deadline => {
                    if let Some(((cycle, _), (card, action))) = self.agenda.pop_first() {
                        self.now = cycle;
                        self.act(card, action);
                    }
                }
                _ => self.now = deadline,
            }
        }
    }

    /// Lets one host thread go on, if one may.
    fn release(&mut self) -> bool {
        let cards = &mut self.cards;
        let mut first: Option<(&mut Waiter, PauseResult)> = None;
        for waiter in &mut self.waiters {
            let card = waiter.order.0;
            let interrupt = waiter.watches.iter().find(|watch| {
                let gates = cards[card].firmware.card();
                let endpoint = gates.endpoints.get(usize::from(watch.endpoint));
                endpoint.is_some_and(|endpoint| endpoint.interrupts != watch.seen)
            });
            let result = match interrupt {
                Some(&Watch { endpoint, .. }) => PauseResult::Interrupt { endpoint },
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
        card.firmware.card().now = self.now;
        match action {
            Action::FirmwareUp(starts) if starts == card.starts && card.is_running() => {
                card.boot(self.options.seed);
            }
            Action::FirmwareUp(_) | Action::Wake => {}
            Action::Command => card.command_waits = true,
            Action::Work => {
                card.working = card.firmware.card().work();
                if card.working {
                    self.after(self.options.fetch_cycles, index, Action::Work);
                }
            }
            Action::Arrive(frame) => card.firmware.card().receive(&frame),
            Action::CheckSilence => card.firmware.card().check_silence(),
        }
        self.run_firmware(index);
        self.dispatch(index);
        self.kick(index);
    }

    /// Lets the firmware do what it can, and puts its timer on the agenda.
    fn run_firmware(&mut self, index: usize) {
        let now = self.now;
        let card = &mut self.cards[index];
        if !card.up {
            return;
        }
        loop {
            if card.command_waits && card.firmware.is_free() {
                card.command_waits = false;
                card.firmware.command(&card.command);
            }
            let moved = card.firmware.step();
            if let Some(answer) = card.firmware.take_answer() {
                card.result[..answer.count].copy_from_slice(&answer.words[..answer.count]);
                card.answer = card.request;
            } else if !moved {
                break;
            }
        }
        let Some(deadline) = card.firmware.next_deadline() else {
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
        let gates = self.cards[index].firmware.card();
        let timeout = u64::from(gates.setup.acknowledge_timeout);
        for frame in std::mem::take(&mut gates.outbox) {
            if timeout > 0 && !matches!(frame.body, Body::Firmware(_)) {
                self.after(timeout, index, Action::CheckSilence);
            }
            let to_lose = &mut self.cards[index].to_lose;
            if *to_lose > 0 {
                *to_lose -= 1;
                continue;
            }
            let to = (0..self.cards.len()).find(|&card| mac(card) == frame.destination_mac);
            if let Some(to) = to {
                self.after(self.options.latency, to, Action::Arrive(Box::new(frame)));
            }
        }
    }

    /// Puts a fetch on the agenda, if there may be something to fetch.
    fn kick(&mut self, index: usize) {
        if !self.cards[index].working {
            let waiting = self.cards[index]
                .firmware
                .card()
                .endpoints
                .iter()
                .any(|endpoint| {
                    let waiting = endpoint.send.waiting() > 0 || endpoint.list.waiting() > 0;
                    waiting && !endpoint.stopped && endpoint.completions.has_room()
                });
            if waiting {
                self.cards[index].working = true;
                self.after(self.options.fetch_cycles, index, Action::Work);
            }
        }
    }

    fn read(&mut self, index: usize, offset: u32) -> u32 {
        let card = &mut self.cards[index];
        match page(offset) {
            Page::Endpoint(endpoint, offset) => {
                card.firmware.card().read_doorbell_page(endpoint, offset)
            }
            Page::Mailbox(offset) => match offset {
                ID => self.options.id,
                ABI => self.options.abi_version,
                STATUS => STATUS_READY | if card.up { STATUS_FIRMWARE } else { 0 },
                CONTROL => card.control,
                MAILBOX_REQUEST => card.request,
                MAILBOX_ANSWER => card.answer,
                LOADER_ADDRESS => card.loader_address,
                _ => match area(offset) {
                    Some((MAILBOX_COMMAND, word)) => card.command[word],
                    Some((_, word)) => card.result[word],
                    None => 0,
                },
            },
        }
    }

    fn write(&mut self, index: usize, offset: u32, value: u32) {
        let card = &mut self.cards[index];
        let held = card.control & CONTROL_RUN == 0;
        match page(offset) {
            Page::Endpoint(endpoint, offset) => {
                let gates = card.firmware.card();
                gates.now = self.now;
                gates.write_doorbell_page(endpoint, offset, value);
                self.dispatch(index);
                self.kick(index);
            }
            Page::Mailbox(MAILBOX_REQUEST) => {
                card.request = value;
                if card.up && card.patience > 0 {
                    card.patience -= 1;
                    self.after(self.options.command_cycles, index, Action::Command);
                }
            }
            Page::Mailbox(CONTROL) => {
                card.control = value & !CONTROL_RESET;
                card.up &= card.is_running();
                let starts = held && card.is_running();
                if value & CONTROL_RESET != 0 {
                    card.firmware.card().reset();
                }
                if starts {
                    self.start(index);
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

impl Card {
    fn is_running(&self) -> bool {
        self.control & CONTROL_RUN != 0
    }

    /// The firmware starts over gates and persistent memory as they are.
    fn boot(&mut self, build_id: u64) {
        let blank = Gates::new(self.firmware.card().sizes(), 0, 0);
        let gates = std::mem::replace(self.firmware.card(), blank);
        self.firmware = Firmware::new(gates, build_id);
        while !self.firmware.is_up() && self.firmware.step() {}
        self.up = self.firmware.is_up();
        self.wakes_at = None;
        self.command_waits = false;
        if self.request != self.answer {
            self.result[0] = MailboxStatus::Restarted.code().into();
            self.answer = self.request;
        }
    }
}

enum Page {
    Mailbox(u32),
    Endpoint(usize, u32),
}

fn page(offset: u32) -> Page {
    match (offset / PAGE_BYTES).checked_sub(FIRST_ENDPOINT_PAGE) {
        None => Page::Mailbox(offset),
        Some(endpoint) => Page::Endpoint(endpoint as usize, offset % PAGE_BYTES),
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

/// One card of the fabric, as its host reaches it. A register access takes `register_cycles`.
struct SoftTransport {
    fabric: SoftFabric,
    card: usize,
}

impl SoftTransport {
    /// Lets the cycles of a register access pass; its effect is at their end.
    fn access(&self, offset: u32) -> Result<MutexGuard<'_, World>, TransportError> {
        if !offset.is_multiple_of(4) || offset >= WINDOW_BYTES {
            return Err(TransportError::NoRegister(offset));
        }
        let deadline = {
            let world = self.fabric.world();
            world.now + world.options.register_cycles
        };
        match self.fabric.wait(self.card, &[], deadline) {
            PauseResult::Closed => Err(TransportError::Closed),
            _ => Ok(self.fabric.world()),
        }
    }
}

impl Transport for SoftTransport {
    fn read_register(&self, offset: u32) -> Result<u32, TransportError> {
        Ok(self.access(offset)?.read(self.card, offset))
    }

    fn write_register(&self, offset: u32, value: u32) -> Result<(), TransportError> {
        self.access(offset)?.write(self.card, offset, value);
        Ok(())
    }

    unsafe fn map(&self, start: NonNull<u8>, length: usize) -> Result<u64, TransportError> {
        let mut world = self.fabric.world();
        if world.closed {
            return Err(TransportError::Closed);
        }
        if length == 0 {
            return Err(TransportError::NoSpace(length));
        }
        // SAFETY: the caller's promise is the same.
        Ok(unsafe {
            world.cards[self.card]
                .firmware
                .card()
                .memory
                .map(start, length)
        })
    }

    fn unmap(&self, address: u64) -> Result<(), TransportError> {
        let mut world = self.fabric.world();
        let unmapped = world.cards[self.card].firmware.card().memory.unmap(address);
        unmapped
            .then_some(())
            .ok_or(TransportError::NotMapped(address))
    }

    fn now(&self) -> u64 {
        self.fabric.now()
    }

    fn interrupts(&self, endpoint: u8) -> u64 {
        let mut world = self.fabric.world();
        let gates = world.cards[self.card].firmware.card();
        let endpoint = gates.endpoints.get(usize::from(endpoint));
        endpoint.map_or(0, |endpoint| endpoint.interrupts)
    }

    fn pause(&self, watch: &[Watch], deadline: u64) -> PauseResult {
        self.fabric.wait(self.card, watch, deadline)
    }
}
