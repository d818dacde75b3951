//! A host that obeys no rules: rings and mailbox by hand, so that a test can write what the library
//! never would and see that the card takes no harm from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use abi::completion::{COMPLETION_BYTES, Completion};
use abi::event::{EVENT_BYTES, Event};
use abi::limits::RING_ALIGN;
use abi::mailbox::{Command, EndpointId, OpenEndpoint, Words};
use abi::register::{self, MAILBOX_WORDS};
use abi::request::REQUEST_BYTES;
use abi::status::MailboxStatus;
use host_driver::transport::Transport;

/// Cycles between two looks at something that the card is to change.
const POLL_CYCLES: u64 = 50;
/// Cycles after which a test gives the card up.
pub const PATIENCE: u64 = 2_000_000;

/// A 64-byte cell, so that a slice of them is aligned as rings must be.
#[repr(align(64))]
struct Line([AtomicU64; 8]);

const _: () = assert!(align_of::<Line>() as u64 == RING_ALIGN);

/// Memory that the card may access for as long as this lives. The host accesses it atomically only,
/// so that whatever the card does is no data race.
pub struct Mapped {
    lines: Box<[Line]>,
    address: u64,
    transport: Arc<dyn Transport>,
}

impl Mapped {
    /// Maps at least `bytes` zeroed bytes.
    pub fn new(transport: &Arc<dyn Transport>, bytes: usize) -> Self {
        let lines: Box<[Line]> = (0..bytes.div_ceil(64).max(1))
            .map(|_| Line(Default::default()))
            .collect();
        let start = std::ptr::NonNull::from(&lines[..]).cast();
        // SAFETY: the lines are one allocation, which `Drop` unmaps before it is freed; they are
        // shared cells, of which only atomic accesses are made while they are mapped.
        let address = unsafe { transport.map(start, size_of_val(&lines[..])) };
        Self {
            lines,
            address: address.expect("room for a mapping"),
            transport: transport.clone(),
        }
    }

    /// The card's address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    fn cell(&self, word: usize) -> &AtomicU64 {
        &self.lines[word / 8].0[word % 8]
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
        let words = self.lines.iter().flat_map(|line| &line.0);
        words
            .flat_map(|cell| cell.load(Ordering::Acquire).to_le_bytes())
            .collect()
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // Only a card that is gone refuses, and such a card accesses nothing.
        let _ = self.transport.unmap(self.address);
    }
}

/// A host at the mailbox page.
pub struct RawHost {
    transport: Arc<dyn Transport>,
}

impl RawHost {
    /// Waits until the firmware is up.
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        let host = Self { transport };
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
        self.transport
            .read_register(offset)
            .expect("a readable register")
    }

    /// Writes a register.
    pub fn write(&self, offset: u32, value: u32) {
        self.transport
            .write_register(offset, value)
            .expect("a writable register");
    }

    /// Waits until `look` sees what it looks for.
    ///
    /// # Panics
    /// If it doesn't within [`PATIENCE`] cycles: the card hangs.
    pub fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let deadline = self.transport.now() + PATIENCE;
        loop {
            if let Some(seen) = look() {
                return seen;
            }
            let now = self.transport.now();
            assert!(now < deadline, "waited in vain until {what}");
            let _ = self.transport.pause(&[], now + POLL_CYCLES);
        }
    }

    /// Sends a command of these words, word 0 included, and returns the words of the answer.
    pub fn command_words(&self, words: &[u32]) -> [u32; MAILBOX_WORDS] {
        for (k, &word) in words.iter().enumerate() {
            self.write(register::MAILBOX_COMMAND + 4 * k as u32, word);
        }
        let sequence = self.read(register::MAILBOX_REQUEST).wrapping_add(1);
        self.write(register::MAILBOX_REQUEST, sequence);
        self.until("the mailbox answers", || {
            (self.read(register::MAILBOX_ANSWER) == sequence).then_some(())
        });
        std::array::from_fn(|k| self.read(register::MAILBOX_RESULT + 4 * k as u32))
    }

    /// Sends a command.
    ///
    /// # Errors
    /// The status, if it isn't `Ok`.
    pub fn command<A: Words, R: Words>(
        &self,
        command: Command,
        argument: &A,
    ) -> Result<R, MailboxStatus> {
        let mut words = vec![0; 1 + A::COUNT];
        words[0] = u32::from(command.code());
        argument.to_words(&mut words[1..]);
        let answer = self.command_words(&words);
        match MailboxStatus::from_code(answer[0] as u8) {
            Some(MailboxStatus::Ok) => Ok(R::from_words(&answer[1..])),
            Some(status) => Err(status),
            None => panic!("the firmware answered with status {:#x}", answer[0]),
        }
    }
}

/// An endpoint whose rings are written by hand.
pub struct RawEndpoint<'a> {
    host: &'a RawHost,
    /// Its number.
    pub id: u8,
    /// Its epoch.
    pub epoch: u16,
    /// log2 of the entries of each of its rings.
    pub log2: u8,
    rings: Rings,
    send_tail: u16,
    list_tail: u16,
    completion_head: u16,
    event_head: u16,
}

struct Rings {
    send: Mapped,
    list: Mapped,
    completion: Mapped,
    event: Mapped,
}

impl<'a> RawEndpoint<'a> {
    /// Opens an endpoint with rings of `1 << log2` entries each.
    pub fn open(host: &'a RawHost, domain: u32, log2: u8) -> Self {
        let entries = 1 << log2;
        let map = |bytes| Mapped::new(&host.transport, entries * bytes);
        let rings = Rings {
            send: map(REQUEST_BYTES),
            list: map(REQUEST_BYTES),
            completion: map(COMPLETION_BYTES),
            event: map(EVENT_BYTES),
        };
        let log = u32::from(log2);
        let opened: EndpointId = host
            .command(
                Command::OpenEndpoint,
                &OpenEndpoint {
                    domain,
                    send_log2: log,
                    send_base: rings.send.address(),
                    list_log2: log,
                    list_base: rings.list.address(),
                    completion_log2: log,
                    completion_base: rings.completion.address(),
                    event_log2: log,
                    event_base: rings.event.address(),
                },
            )
            .expect("an endpoint");
        Self {
            host,
            id: opened.endpoint as u8,
            epoch: opened.epoch as u16,
            log2,
            rings,
            send_tail: 0,
            list_tail: 0,
            completion_head: 0,
            event_head: 0,
        }
    }

    /// Byte offset of a register of the endpoint's page.
    pub fn register(&self, offset: u32) -> u32 {
        register::endpoint_page(self.id) + offset
    }

    fn slot(&self, index: u16) -> usize {
        usize::from(index) & ((1 << self.log2) - 1)
    }

    /// Writes an entry of the send ring and rings its doorbell.
    pub fn post_send(&mut self, words: [u64; 8]) {
        self.rings.send.write(8 * self.slot(self.send_tail), &words);
        self.send_tail = self.send_tail.wrapping_add(1);
        self.ring_send(self.send_tail);
    }

    /// Writes an entry of the list ring and rings its doorbell.
    pub fn post_list(&mut self, words: [u64; 8]) {
        self.rings.list.write(8 * self.slot(self.list_tail), &words);
        self.list_tail = self.list_tail.wrapping_add(1);
        self.host.write(
            self.register(register::LIST_TAIL),
            u32::from(self.list_tail),
        );
    }

    /// Rings the doorbell of the send ring with any value.
    pub fn ring_send(&self, tail: u16) {
        self.host
            .write(self.register(register::SEND_TAIL), u32::from(tail));
    }

    /// The next completion, if it is there; it is consumed.
    pub fn poll(&mut self) -> Option<Completion> {
        let words = self
            .rings
            .completion
            .read::<8>(8 * self.slot(self.completion_head));
        let entry = Completion::from_words(&words);
        if entry.phase != self.phase(self.completion_head) {
            return None;
        }
        self.completion_head = self.completion_head.wrapping_add(1);
        let head = u32::from(self.completion_head);
        self.host
            .write(self.register(register::COMPLETION_HEAD), head);
        Some(entry)
    }

    /// The next event, if it is there; it is consumed.
    pub fn poll_event(&mut self) -> Option<Event> {
        let words = self.rings.event.read::<4>(4 * self.slot(self.event_head));
        let entry = Event::from_words(&words);
        if entry.phase != self.phase(self.event_head) {
            return None;
        }
        self.event_head = self.event_head.wrapping_add(1);
        self.host.write(
            self.register(register::EVENT_HEAD),
            u32::from(self.event_head),
        );
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

    fn phase(&self, index: u16) -> u8 {
        ((index >> self.log2) & 1) as u8 ^ 1
    }
}
