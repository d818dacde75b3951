//! A host that obeys no rules: rings and mailbox by hand, so that a test can write what the library
//! never would and see that the card takes no harm from it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use abi::completion::{COMPLETION_BYTES, Completion, words_written};
use abi::control::{RIGHT_LOCAL_READ, RIGHT_LOCAL_WRITE};
use abi::event::{EVENT_BYTES, Event};
use abi::limits::{EAGER_MAX, FLAT_SPACE, SLOTS_ALIGN};
use abi::mailbox::{
    CloseEndpoint, Command, ConnectPair, CounterId, CounterValue, DomainId, EndpointId, Identity,
    NO_ENDPOINT, Nothing, OpenEndpoint, OpenPair, Pair, PairId, PairStatus, RegionKey,
    RegisterRegion, Words, id_index,
};
use abi::register::{self, MAILBOX_WORDS};
use abi::request::{ListRequest, Opcode, REQUEST_BYTES, SendRequest};
use abi::ring::QueueEntry;
use abi::status::{MailboxStatus, Status};
use host_driver::Counter;
use host_driver::transport::{PauseResult, Transport};

use crate::cards::{Host, Told};

/// Cycles between two looks at something that the card is to change.
const POLL_CYCLES: u64 = 50;
/// Cycles after which a test gives the card up.
pub const PATIENCE: u64 = 200_000;

/// Words of a [`Page`].
const PAGE_WORDS: usize = 512;

/// Begins where a page of the host's memory does, as a mapping does: the card sees where in a page an address is, and where a burst ends by it. With memory from
/// anywhere the same seed would be another run each time.
#[repr(align(4096))]
struct Page([AtomicU64; PAGE_WORDS]);

const _: () = assert!((align_of::<Page>() as u64).is_multiple_of(SLOTS_ALIGN));
const _: () = assert!(align_of::<Page>() == size_of::<Page>());

/// Memory that the card may access for as long as this lives. The host accesses it atomically only,
/// so that whatever the card does is no data race.
pub struct Mapped {
    pages: Box<[Page]>,
    words: usize,
    address: u64,
    transport: Arc<dyn Transport>,
}

impl Mapped {
    /// Maps at least `bytes` zeroed bytes.
    pub fn new(transport: &Arc<dyn Transport>, bytes: usize) -> Self {
        // The card has no more of it than was asked for, in whole lines of 64 bytes.
        let words = 8 * bytes.div_ceil(64).max(1);
        let pages: Box<[Page]> = (0..words.div_ceil(PAGE_WORDS))
            .map(|_| Page([const { AtomicU64::new(0) }; PAGE_WORDS]))
            .collect();
        let start = std::ptr::NonNull::from(&pages[..]).cast();
        // SAFETY: the pages are one allocation, which `Drop` unmaps before it is freed; they are
        // shared cells, of which only atomic accesses are made while they are mapped.
        let address = unsafe { transport.map(start, 8 * words) };
        Self {
            pages,
            words,
            address: address.expect("room for a mapping"),
            transport: transport.clone(),
        }
    }

    /// The card's address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Takes the memory away from under the card, which gets an error for each access from then on.
    pub fn unmap(&self) {
        // SAFETY: mapped by `new`; the memory stays.
        unsafe { self.transport.unmap(self.address) }.expect("mapped");
    }

    fn cell(&self, word: usize) -> &AtomicU64 {
        assert!(word < self.words, "beyond the mapping");
        &self.pages[word / PAGE_WORDS].0[word % PAGE_WORDS]
    }

    /// Writes 64-bit words from word `at` on.
    pub fn write(&self, at: usize, words: &[u64]) {
        for (k, &word) in words.iter().enumerate() {
            self.cell(at + k).store(word, Ordering::Relaxed);
        }
    }

    /// Reads 64-bit words from word `at` on, the last one first, as a consumer of a phase bit must.
    pub fn read<const N: usize>(&self, at: usize) -> [u64; N] {
        let mut words = [0; N];
        for k in (0..N).rev() {
            words[k] = self.cell(at + k).load(Ordering::Acquire);
        }
        words
    }

    /// All bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let words = self.pages.iter().flat_map(|page| &page.0).take(self.words);
        words
            .flat_map(|cell| cell.load(Ordering::Acquire).to_le_bytes())
            .collect()
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // What was unmapped before, or is on a card that is gone, nobody accesses.
        // SAFETY: mapped by `new`.
        let _ = unsafe { self.transport.unmap(self.address) };
    }
}

/// A command that was sent, which the mailbox answers with this number. There is one at a time.
#[must_use]
pub struct Asked(u32);

/// A host at the mailbox page.
pub struct RawHost {
    host: Host,
    transport: Arc<dyn Transport>,
    /// The firmware's id of each pair that was opened last in its place.
    pairs: RefCell<HashMap<u16, u32>>,
}

impl RawHost {
    /// Waits until the firmware is up.
    pub fn new(host: &Host) -> Self {
        let host = Self {
            host: host.clone(),
            transport: host.transport(),
            pairs: RefCell::default(),
        };
        let up = register::STATUS_READY | register::STATUS_FIRMWARE;
        host.until("the firmware is up", || {
            (host.read(register::STATUS) & up == up).then_some(())
        });
        host
    }

    /// How the card is reached.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    /// Reads a register.
    pub fn read(&self, offset: u32) -> u32 {
        // SAFETY: this host owns its card alone.
        unsafe { self.transport.read_register(offset) }.expect("a readable register")
    }

    /// Writes a register.
    pub fn write(&self, offset: u32, value: u32) {
        // SAFETY: this host owns its card alone. What it makes the card do may be nonsense, and touches mapped memory only, which is made of
        // atomic cells.
        unsafe { self.transport.write_register(offset, value) }.expect("a writable register");
    }

    /// Waits until `look` sees what it looks for.
    ///
    /// # Panics
    /// If it doesn't within [`PATIENCE`] cycles: the card hangs. Or if another rank has failed: the run is over, and time stands still.
    pub fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let deadline = self.transport.now() + PATIENCE;
        loop {
            if let Some(seen) = look() {
                return seen;
            }
            let now = self.transport.now();
            assert!(now < deadline, "waited in vain until {what}");
            let paused = self.transport.pause(&[], now + POLL_CYCLES);
            assert_ne!(paused, PauseResult::Closed, "the run is over before {what}");
        }
    }

    /// Sends a command of these words, word 0 included, and returns the words of the answer.
    pub fn command_words(&self, words: &[u32]) -> [u32; MAILBOX_WORDS] {
        let asked = self.ask_words(words);
        self.wait_for(&asked);
        std::array::from_fn(|k| self.answer(k))
    }

    /// Sends a command of these words.
    fn ask_words(&self, words: &[u32]) -> Asked {
        for (k, &word) in words.iter().enumerate() {
            self.write(register::MAILBOX_COMMAND + 4 * k as u32, word);
        }
        let sequence = self.read(register::MAILBOX_REQUEST).wrapping_add(1);
        self.write(register::MAILBOX_REQUEST, sequence);
        Asked(sequence)
    }

    fn wait_for(&self, Asked(sequence): &Asked) {
        self.until("the mailbox answers", || {
            (self.read(register::MAILBOX_ANSWER) == *sequence).then_some(())
        });
    }

    /// A word of the answer. Each takes the time of a register read.
    fn answer(&self, word: usize) -> u32 {
        self.read(register::MAILBOX_RESULT + 4 * word as u32)
    }

    /// Sends a command and waits until it is answered.
    ///
    /// # Errors
    /// The status, if it isn't `Ok`.
    pub fn command<A: Words, R: Words>(
        &self,
        command: Command,
        argument: &A,
    ) -> Result<R, MailboxStatus> {
        self.answered(self.ask(command, argument))
    }

    /// Sends a command, and doesn't wait for its answer.
    pub fn ask<A: Words>(&self, command: Command, argument: &A) -> Asked {
        let mut words = vec![0; 1 + A::COUNT];
        words[0] = u32::from(command.code());
        argument.to_words(&mut words[1..]);
        self.ask_words(&words)
    }

    /// Waits until a command is answered.
    ///
    /// # Errors
    /// The status, if it isn't `Ok`.
    pub fn answered<R: Words>(&self, asked: Asked) -> Result<R, MailboxStatus> {
        self.wait_for(&asked);
        let status = self.answer(0);
        match MailboxStatus::from_code(status as u8) {
            Some(MailboxStatus::Ok) => {
                let result: Vec<u32> = (1..=R::COUNT).map(|word| self.answer(word)).collect();
                Ok(R::from_words(&result))
            }
            Some(status) => Err(status),
            None => panic!("the firmware answered with status {status:#x}"),
        }
    }
}

/// What everybody needs, by the mailbox.
impl RawHost {
    /// A new domain.
    pub fn domain(&self) -> u32 {
        let domain: Result<DomainId, _> = self.command(Command::OpenDomain, &Nothing {});
        domain.expect("a domain").domain
    }

    /// What the card is.
    pub fn identity(&self) -> Identity {
        let identity = self.command(Command::Identify, &Nothing {});
        identity.expect("an identity")
    }

    /// Registers memory and returns its key.
    pub fn region(&self, domain: u32, rights: u8, address: u64, length: u64) -> u32 {
        let region = RegisterRegion {
            domain,
            rights: u32::from(rights),
            address,
            length,
            space: FLAT_SPACE.into(),
        };
        let key: Result<RegionKey, _> = self.command(Command::RegisterRegion, &region);
        key.expect("a region").key
    }

    /// Forgets a region.
    pub fn forget_region(&self, key: u32) {
        let key = RegionKey { key };
        let gone: Result<Nothing, _> = self.command(Command::DeregisterRegion, &key);
        gone.expect("deregistered");
    }

    /// Reads a counter.
    pub fn count(&self, counter: Counter) -> u64 {
        let counter = CounterId {
            counter: u32::from(counter.code()),
        };
        let value: Result<CounterValue, _> = self.command(Command::ReadCounter, &counter);
        value.expect("a counter").value
    }

    /// Opens a pair of an endpoint.
    pub fn open_pair(&self, endpoint: u32, credits: u16, slots: &Mapped) -> PairId {
        let open = OpenPair {
            endpoint,
            credits: u32::from(credits),
            slots: slots.address(),
        };
        let opened: PairId = self.command(Command::OpenPair, &open).expect("a pair");
        let place = id_index(opened.pair);
        self.pairs.borrow_mut().insert(place, opened.pair);
        opened
    }

    /// Connects a pair to one of this same card, itself perhaps: frames turn round inside.
    pub fn connect(&self, local: &PairId, remote: &PairId) {
        self.connect_to(local, remote, self.identity().mac);
    }

    /// Connects a pair to one of the card with address `mac`.
    pub fn connect_to(&self, local: &PairId, remote: &PairId, mac: u64) {
        let connect = ConnectPair {
            pair: local.pair,
            remote_pair: id_index(remote.pair).into(),
            remote_endpoint: id_index(remote.endpoint).into(),
            remote_epoch: remote.epoch,
            remote_nonce: remote.nonce,
            remote_credits: remote.credits,
            remote_mac: mac,
            remote_job: remote.job,
        };
        let connected: Result<Nothing, _> = self.command(Command::ConnectPair, &connect);
        connected.expect("connected");
    }

    /// State of a pair.
    pub fn pair_status(&self, pair: u16) -> PairStatus {
        let pair = self.pairs.borrow()[&pair];
        let pair = Pair { pair };
        let status = self.command(Command::QueryPair, &pair);
        status.expect("an open pair")
    }
}

/// What a completion queue holds where no card has written: its phase is that of no entry of the first lap.
const NOT_WRITTEN: u64 = 0x3a3a_3a3a_3a3a_3a3a;

/// An endpoint whose rings are written by hand.
pub struct RawEndpoint<'a> {
    host: &'a RawHost,
    /// The firmware's id of it.
    pub id: u32,
    /// Its place, which is its doorbell page.
    place: u8,
    /// Its epoch.
    pub epoch: u16,
    /// log2 of the entries of each of its rings: sends, lists, completions, events.
    pub log2: [u8; 4],
    rings: Rings,
    send_tail: u16,
    list_tail: u16,
    completion_head: u16,
    /// Words of the completion queue, as the entries that were taken have left them.
    held: Vec<u64>,
    event_head: u16,
}

/// One of an endpoint's rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// Sends.
    Send,
    /// Receives, cancels and probes.
    List,
    /// Completions.
    Completion,
    /// Events.
    Event,
}

struct Rings {
    send: Mapped,
    list: Mapped,
    /// None if the requests complete on the queue of another endpoint.
    completion: Option<Mapped>,
    event: Mapped,
}

impl<'a> RawEndpoint<'a> {
    /// Opens an endpoint with rings of `1 << log2` entries each.
    pub fn open(host: &'a RawHost, domain: u32, log2: u8) -> Self {
        Self::with_rings(host, domain, [log2; 4], None)
    }

    /// Opens an endpoint with rings of `1 << log2[k]` entries: sends, lists, completions, events. With an owner its requests complete on that
    /// endpoint's queue, and it has none of its own.
    pub fn with_rings(
        host: &'a RawHost,
        domain: u32,
        mut log2: [u8; 4],
        completion_owner: Option<&Self>,
    ) -> Self {
        if completion_owner.is_some() {
            log2[Ring::Completion as usize] = 0;
        }
        let map = |ring: Ring, bytes| Mapped::new(&host.transport, bytes << log2[ring as usize]);
        let rings = Rings {
            send: map(Ring::Send, REQUEST_BYTES),
            list: map(Ring::List, REQUEST_BYTES),
            completion: match completion_owner {
                None => Some(map(Ring::Completion, COMPLETION_BYTES)),
                Some(_) => None,
            },
            event: map(Ring::Event, EVENT_BYTES),
        };
        let held = vec![NOT_WRITTEN; 8 << log2[Ring::Completion as usize]];
        if let Some(queue) = &rings.completion {
            queue.write(0, &held);
        }
        let [send_log2, list_log2, completion_log2, event_log2] = log2.map(u32::from);
        let opened: EndpointId = host
            .command(
                Command::OpenEndpoint,
                &OpenEndpoint {
                    domain,
                    send_log2,
                    send_base: rings.send.address(),
                    list_log2,
                    list_base: rings.list.address(),
                    completion_log2,
                    completion_base: rings.completion.as_ref().map_or(0, Mapped::address),
                    event_log2,
                    event_base: rings.event.address(),
                    completion_owner: completion_owner.map_or(NO_ENDPOINT, |owner| owner.id),
                    job: 0,
                    pair_sends: 0,
                    space: FLAT_SPACE.into(),
                },
            )
            .expect("an endpoint");
        Self {
            host,
            id: opened.endpoint,
            place: id_index(opened.endpoint) as u8,
            epoch: opened.epoch as u16,
            log2,
            rings,
            send_tail: 0,
            list_tail: 0,
            completion_head: 0,
            held,
            event_head: 0,
        }
    }

    /// Its place, which is its doorbell page.
    pub fn place(&self) -> u8 {
        self.place
    }

    /// Memory of a ring.
    ///
    /// # Panics
    /// If it is the completion queue, and that is another endpoint's.
    pub fn ring(&self, ring: Ring) -> &Mapped {
        match ring {
            Ring::Send => &self.rings.send,
            Ring::List => &self.rings.list,
            Ring::Completion => self.queue().expect("a queue of its own"),
            Ring::Event => &self.rings.event,
        }
    }

    /// Memory of its completion queue, if it has one of its own.
    pub fn queue(&self) -> Option<&Mapped> {
        self.rings.completion.as_ref()
    }

    /// Byte offset of a register of the endpoint's page.
    pub fn register(&self, offset: u32) -> u32 {
        register::endpoint_page(self.place) + offset
    }

    fn slot(&self, ring: Ring, index: u16) -> usize {
        usize::from(index) & ((1 << self.log2[ring as usize]) - 1)
    }

    /// Writes an entry of the send ring and rings its doorbell.
    pub fn post_send(&mut self, words: [u64; 8]) {
        self.post_sends(&[words]);
    }

    /// Writes entries of the send ring and rings its doorbell once.
    pub fn post_sends(&mut self, entries: &[[u64; 8]]) {
        for words in entries {
            let slot = self.slot(Ring::Send, self.send_tail);
            self.rings.send.write(8 * slot, words);
            self.send_tail = self.send_tail.wrapping_add(1);
        }
        self.ring_send(self.send_tail);
    }

    /// Writes an entry of the list ring and rings its doorbell.
    pub fn post_list(&mut self, words: [u64; 8]) {
        let slot = self.slot(Ring::List, self.list_tail);
        self.rings.list.write(8 * slot, &words);
        self.list_tail = self.list_tail.wrapping_add(1);
        self.host.write(
            self.register(register::LIST_TAIL),
            u32::from(self.list_tail),
        );
    }

    /// Rings the doorbell of the send ring.
    fn ring_send(&self, tail: u16) {
        self.doorbell(register::SEND_TAIL, u32::from(tail));
    }

    /// Writes any value to a register of the endpoint's page.
    pub fn doorbell(&self, offset: u32, value: u32) {
        self.host.write(self.register(offset), value);
    }

    /// Reads a register of the endpoint's page.
    pub fn read(&self, offset: u32) -> u32 {
        self.host.read(self.register(offset))
    }

    /// Takes a ring's memory away from under the card. The host's end of it stays usable.
    pub fn unmap(&self, ring: Ring) {
        self.ring(ring).unmap();
    }

    /// Closes the endpoint, which keeps its memory.
    pub fn close(&self) {
        let close = CloseEndpoint { endpoint: self.id };
        let closed: Result<Nothing, _> = self.host.command(Command::CloseEndpoint, &close);
        closed.expect("closed");
    }

    /// The next completion of its queue, if it is there and the queue is its own; it is consumed.
    ///
    /// # Panics
    /// If the card has written words of the entry that its kind doesn't have.
    pub fn poll(&mut self) -> Option<Completion> {
        let slot = self.slot(Ring::Completion, self.completion_head);
        let words = self.queue()?.read::<8>(8 * slot);
        let entry = Completion::read(|at| words[at]);
        if entry.phase != self.phase(Ring::Completion, self.completion_head) {
            return None;
        }
        let held = &mut self.held[8 * slot..][..8];
        let first = held.len() - words_written(entry.kind);
        assert_eq!(
            words[..first],
            held[..first],
            "words that aren't of {entry:x?}"
        );
        held.copy_from_slice(&words);
        self.completion_head = self.completion_head.wrapping_add(1);
        let head = u32::from(self.completion_head);
        self.host
            .write(self.register(register::COMPLETION_HEAD), head);
        let seen = Completion { phase: 0, ..entry };
        self.host.host.note(Told::Entry(self.place(), seen));
        Some(entry)
    }

    /// The next event, if it is there; it is consumed.
    pub fn poll_event(&mut self) -> Option<Event> {
        let slot = self.slot(Ring::Event, self.event_head);
        let words = self.rings.event.read::<4>(4 * slot);
        let entry = Event::from_words(&words);
        if entry.phase != self.phase(Ring::Event, self.event_head) {
            return None;
        }
        self.event_head = self.event_head.wrapping_add(1);
        self.host.write(
            self.register(register::EVENT_HEAD),
            u32::from(self.event_head),
        );
        let seen = Event { phase: 0, ..entry };
        self.host.host.note(Told::EventEntry(self.place(), seen));
        Some(entry)
    }

    /// Waits for the next completion.
    pub fn completion(&mut self) -> Completion {
        let host = self.host;
        host.until("a completion is written", || self.poll())
    }

    /// Waits for the next event.
    pub fn event(&mut self) -> Event {
        let host = self.host;
        host.until("an event is written", || self.poll_event())
    }

    fn phase(&self, ring: Ring, index: u16) -> u8 {
        abi::ring::phase(index, self.log2[ring as usize])
    }
}

/// An endpoint that sends messages to itself, with all that it needs: a domain of its own, memory, and a
/// pair that is connected to itself.
pub struct LoopbackEndpoint<'a> {
    host: &'a RawHost,
    /// The endpoint.
    pub endpoint: RawEndpoint<'a>,
    /// Its domain.
    pub domain: u32,
    /// Memory; it sends from the first half and receives into the second.
    pub memory: Mapped,
    /// Key of the memory.
    pub key: u32,
    /// Slots of the pair.
    pub slots: Mapped,
    /// The pair.
    pub pair: u16,
    next: u32,
}

/// Bytes of a [`LoopbackEndpoint`]'s memory.
pub const LOOPBACK_BYTES: usize = 4096;
/// Envelopes of its pair.
pub const LOOPBACK_CREDITS: u16 = 4;

impl<'a> LoopbackEndpoint<'a> {
    /// Opens one.
    pub fn open(host: &'a RawHost) -> Self {
        Self::with_rings(host, 4)
    }

    /// Opens one with rings of `1 << log2` entries each.
    pub fn with_rings(host: &'a RawHost, log2: u8) -> Self {
        let domain = host.domain();
        let endpoint = RawEndpoint::open(host, domain, log2);
        let memory = Mapped::new(&host.transport, LOOPBACK_BYTES);
        let rights = RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE;
        let key = host.region(domain, rights, memory.address(), LOOPBACK_BYTES as u64);
        let slots = Mapped::new(&host.transport, usize::from(LOOPBACK_CREDITS) * EAGER_MAX);
        let pair = host.open_pair(endpoint.id, LOOPBACK_CREDITS, &slots);
        host.connect(&pair, &pair);
        Self {
            host,
            endpoint,
            domain,
            memory,
            key,
            slots,
            pair: id_index(pair.pair),
            next: 1 << 16,
        }
    }

    /// A good send.
    pub fn send(&self, tag: u64, request: u32, length: u64) -> SendRequest {
        SendRequest {
            opcode: Opcode::TaggedSend.code(),
            pair: self.pair,
            request,
            key: self.key,
            match_bits: tag,
            address: self.memory.address(),
            length,
            ..SendRequest::default()
        }
    }

    /// A good receive.
    pub fn receive(&self, tag: u64, request: u32, length: u64) -> ListRequest {
        ListRequest {
            opcode: Opcode::TaggedReceive.code(),
            pair: self.pair,
            request,
            key: self.key,
            match_bits: tag,
            address: self.memory.address() + LOOPBACK_BYTES as u64 / 2,
            length,
            ..ListRequest::default()
        }
    }

    /// A good probe.
    pub fn probe(&self, tag: u64, request: u32) -> ListRequest {
        ListRequest {
            opcode: Opcode::Probe.code(),
            pair: self.pair,
            request,
            match_bits: tag,
            ..ListRequest::default()
        }
    }

    /// A cancel of the receive `target`.
    pub fn cancel(&self, request: u32, target: u32) -> ListRequest {
        ListRequest {
            opcode: Opcode::Cancel.code(),
            request,
            target,
            ..ListRequest::default()
        }
    }

    /// A cancel of the send `target`.
    pub fn cancel_send(&self, request: u32, target: u32) -> SendRequest {
        SendRequest {
            opcode: Opcode::CancelSend.code(),
            pair: self.pair,
            request,
            target,
            ..SendRequest::default()
        }
    }

    /// Fills what is sent.
    pub fn fill(&self, byte: u8, length: usize) {
        let words = vec![u64::from_ne_bytes([byte; 8]); length.div_ceil(8)];
        self.memory.write(0, &words);
    }

    /// What was received.
    pub fn received(&self, length: usize) -> Vec<u8> {
        let bytes = self.memory.bytes();
        bytes[LOOPBACK_BYTES / 2..][..length].to_vec()
    }

    /// Waits for the next completion: handle and status.
    pub fn status(&mut self) -> (u32, Status) {
        let completion = self.endpoint.completion();
        let status = Status::from_code(completion.status);
        (completion.request, status.expect("a status of the ABI"))
    }

    /// Sends itself a message, expected, and one unexpected, and looks at every byte.
    ///
    /// # Panics
    /// If that isn't what happens: the card has taken harm.
    pub fn assert_works(&mut self) {
        for expected in [true, false] {
            self.next += 2;
            let (sending, receiving) = (self.next, self.next + 1);
            let byte = self.next as u8;
            let length = 100 + self.next as usize % 900;
            self.fill(byte, length);
            let receive = self.receive(u64::MAX, receiving, length as u64).to_words();
            let send = self.send(u64::MAX, sending, length as u64).to_words();
            let mut seen = Vec::new();
            if expected {
                self.endpoint.post_list(receive);
                self.endpoint.post_send(send);
            } else {
                self.endpoint.post_send(send);
                seen.push(self.status());
                self.endpoint.post_list(receive);
            }
            while seen.len() < 2 {
                seen.push(self.status());
            }
            seen.sort_unstable();
            let success = [sending, receiving].map(|request| (request, Status::Success));
            assert_eq!(seen, success);
            assert_eq!(self.received(length), vec![byte; length]);
        }
        let status = self.host.pair_status(self.pair);
        assert_eq!(status.available, u32::from(LOOPBACK_CREDITS));
    }
}
