//! The card's firmware under a host that knows only registers: connections between cards, and restarts.

use crate::fabric::{SoftFabric, SoftOptions};
use abi::event::{Cause, EVENT_BYTES, Event};
use abi::limits::{EAGER_MAX, FLAT_SPACE};
use abi::mailbox::{
    Accept, Command, Connect, Disconnect, DomainId, EndpointId, Nothing, OpenEndpoint, Pair,
    PairId, PairState, PairStatus, Words, id_index,
};
use abi::register::{
    CONTROL, CONTROL_RESET, CONTROL_RUN, FIRMWARE_START, MAILBOX_ANSWER, MAILBOX_COMMAND,
    MAILBOX_REQUEST, MAILBOX_RESULT, STATUS, STATUS_FIRMWARE,
};
use abi::status::MailboxStatus;
use std::ptr::NonNull;

#[repr(align(64))]
struct Line([u64; 8]);

/// As large as a ring of 16 entries, and aligned to that.
#[repr(align(1024))]
#[derive(Clone)]
#[expect(dead_code, reason = "it is looked at as lines")]
struct Block([u64; 128]);

/// A card and its host.
struct Side<'a> {
    fabric: &'a SoftFabric,
    card: usize,
    /// Four rings of 16 entries, and slots. The host looks at it only while the card doesn't run.
    memory: NonNull<Line>,
    endpoint: EndpointId,
}

const LINES: usize = 4 * 16 + 4 * EAGER_MAX / 64;
const EVENTS: usize = 3 * 16;

impl<'a> Side<'a> {
    fn open(fabric: &'a SoftFabric, card: usize) -> Self {
        let blocks = (LINES * size_of::<Line>()).div_ceil(size_of::<Block>());
        let memory = Box::leak(vec![Block([0; 128]); blocks].into_boxed_slice());
        let memory = NonNull::from(memory).cast();
        let mut side = Self {
            fabric,
            card,
            memory,
            endpoint: EndpointId::default(),
        };
        side.until_up();
        side.reopen();
        side
    }

    fn until_up(&self) {
        while self.read(STATUS) & STATUS_FIRMWARE == 0 {
            self.pass(100);
        }
    }

    /// Opens the endpoint.
    fn reopen(&mut self) {
        let base = {
            let mut world = self.fabric.world();
            // SAFETY: leaked, and so mapped for ever.
            unsafe { world.memory(self.card).map(self.memory.cast(), LINES * 64) }
        };
        let ring = |k: u64| base + k * 16 * 64;
        let DomainId { domain } = self.command(Command::OpenDomain, Nothing {}).unwrap();
        let open = OpenEndpoint {
            domain,
            send_log2: 4,
            send_base: ring(0),
            list_log2: 4,
            list_base: ring(1),
            completion_log2: 4,
            completion_base: ring(2),
            event_log2: 4,
            event_base: ring(3),
            completion_owner: abi::mailbox::NO_ENDPOINT,
            job: 0,
            pair_sends: 0,
            space: FLAT_SPACE.into(),
        };
        self.endpoint = self.command(Command::OpenEndpoint, open).unwrap();
    }

    fn pass(&self, cycles: u64) {
        let deadline = self.fabric.now() + cycles;
        let _ = self.fabric.wait(self.card, &[], deadline, false);
    }

    fn read(&self, offset: u32) -> u32 {
        self.fabric.world().read(self.card, offset)
    }

    fn write(&self, offset: u32, value: u32) {
        self.fabric.world().write(self.card, offset, value);
    }

    fn give<A: Words>(&self, command: Command, argument: A) {
        let mut words = vec![0; 1 + A::COUNT];
        words[0] = command.code().into();
        argument.to_words(&mut words[1..]);
        for (offset, word) in (MAILBOX_COMMAND..).step_by(4).zip(words) {
            self.write(offset, word);
        }
        let number = self.read(MAILBOX_REQUEST).wrapping_add(1);
        self.write(MAILBOX_REQUEST, number);
    }

    fn answer<R: Words>(&self) -> Result<R, MailboxStatus> {
        for _ in 0..1000 {
            if self.read(MAILBOX_ANSWER) == self.read(MAILBOX_REQUEST) {
                let word = |k: usize| self.read(MAILBOX_RESULT + 4 * k as u32);
                let words: Vec<_> = (1..=R::COUNT).map(word).collect();
                let status = MailboxStatus::from_code(word(0) as u8).expect("a status");
                return match status {
                    MailboxStatus::Ok => Ok(R::from_words(&words)),
                    status => Err(status),
                };
            }
            self.pass(1000);
        }
        panic!("never answered");
    }

    fn command<A: Words, R: Words>(
        &self,
        command: Command,
        argument: A,
    ) -> Result<R, MailboxStatus> {
        self.give(command, argument);
        self.answer()
    }

    fn accept(&self) -> u32 {
        let accept = Accept {
            endpoint: self.endpoint.endpoint,
            credits: 2,
            slots: 0x1000,
        };
        let offered: PairId = self.command(Command::Accept, accept).unwrap();
        offered.pair
    }

    fn connect(&self, to: &Self) -> u32 {
        let connect = Connect {
            endpoint: self.endpoint.endpoint,
            credits: 4,
            slots: 0x1000,
            remote_mac: crate::fabric::mac(to.card),
            remote_endpoint: id_index(to.endpoint.endpoint).into(),
            timeout: 0,
        };
        let asked: PairId = self.command(Command::Connect, connect).unwrap();
        asked.pair
    }

    fn query(&self, pair: u32) -> PairStatus {
        self.command(Command::QueryPair, Pair { pair }).unwrap()
    }

    fn state(&self, pair: u32) -> Option<PairState> {
        PairState::from_code(self.query(pair).state as u8)
    }

    /// Causes of the events so far.
    fn events(&self) -> Vec<Option<Cause>> {
        // The world is locked, so that the card writes nothing meanwhile.
        let _world = self.fabric.world();
        // SAFETY: the events' lines of the leaked memory, which nobody else refers to.
        let lines = unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(EVENTS), 8) };
        let words = lines.iter().flat_map(|line| line.0);
        let words: Vec<_> = words.collect();
        let events = words.chunks_exact(EVENT_BYTES / 8);
        events
            .map(|words| Event::from_words(words.try_into().expect("an event")))
            .take_while(|event| event.phase == 1)
            .map(|event| Cause::from_code(event.cause))
            .collect()
    }
}

#[test]
fn cards_connect_and_a_disconnect_is_a_clean_end_for_both() {
    let fabric = SoftFabric::new(SoftOptions::default());
    let (a, b) = (Side::open(&fabric, 0), Side::open(&fabric, 1));
    let offer = b.accept();
    let pair = a.connect(&b);
    a.pass(10_000);
    let (here, there) = (a.query(pair), b.query(offer));
    let connected = u32::from(PairState::Connected.code());
    assert_eq!((here.state, there.state), (connected, connected));
    assert_eq!((here.remote_credits, there.remote_credits), (2, 4));
    assert_eq!((here.available, there.available), (2, 4));
    assert_eq!(here.remote_epoch, b.endpoint.epoch);
    assert_eq!(there.remote_epoch, a.endpoint.epoch);
    let end = Disconnect { pair, timeout: 0 };
    let _: Nothing = a.command(Command::Disconnect, end).unwrap();
    a.pass(100_000);
    assert_eq!(a.state(pair), Some(PairState::Disconnected));
    assert_eq!(b.state(offer), Some(PairState::Disconnected));
    let ended = [Cause::PairConnected, Cause::Disconnected].map(Some);
    assert_eq!(a.events(), ended);
    let ended = [Cause::PairConnected, Cause::PeerClosed].map(Some);
    assert_eq!(b.events(), ended, "and no LinkError");
}

#[test]
fn a_frame_that_is_lost_is_sent_again() {
    for lost in [(1, 0), (0, 1), (2, 1)] {
        let fabric = SoftFabric::new(SoftOptions::default());
        let (a, b) = (Side::open(&fabric, 0), Side::open(&fabric, 1));
        let offer = b.accept();
        fabric.lose_frames(0, lost.0);
        fabric.lose_frames(1, lost.1);
        let pair = a.connect(&b);
        a.pass(500_000);
        assert_eq!(a.state(pair), Some(PairState::Connected));
        assert_eq!(b.state(offer), Some(PairState::Connected));
    }
}

#[test]
fn firmware_that_is_started_again_quiets_the_gates_and_goes_on_with_epochs_and_ids() {
    let fabric = SoftFabric::new(SoftOptions::default());
    let (mut a, b) = (Side::open(&fabric, 0), Side::open(&fabric, 1));
    b.accept();
    let pair = a.connect(&b);
    a.pass(10_000);
    let (before, start) = (a.endpoint, a.read(FIRMWARE_START));
    a.give(Command::QueryPair, Pair { pair });
    a.write(CONTROL, 0);
    assert_eq!(a.read(STATUS) & STATUS_FIRMWARE, 0);
    assert_eq!(a.read(FIRMWARE_START), 0);
    a.write(CONTROL, CONTROL_RUN);
    let lost = a.answer::<PairStatus>();
    assert_eq!(lost, Err(MailboxStatus::Restarted));
    assert_eq!(a.read(FIRMWARE_START), start + 1);
    let stale = a.command::<_, PairStatus>(Command::QueryPair, Pair { pair });
    assert_eq!(stale, Err(MailboxStatus::NotFound));
    a.reopen();
    assert_eq!(a.endpoint.epoch, before.epoch + 1);
    assert_ne!(a.endpoint.endpoint, before.endpoint);
    // The peer takes the later incarnation for what it is.
    let offer = b.accept();
    let pair = a.connect(&b);
    a.pass(10_000);
    assert_eq!(a.state(pair), Some(PairState::Connected));
    assert_eq!(b.state(offer), Some(PairState::Connected));
    let causes = [
        Cause::PairConnected,
        Cause::PeerFailed,
        Cause::PairConnected,
    ];
    assert_eq!(b.events(), causes.map(Some));
    // By register, with the processor held.
    a.write(CONTROL, CONTROL_RESET);
    while a.read(CONTROL) & CONTROL_RESET != 0 {
        a.pass(100);
    }
    a.write(CONTROL, CONTROL_RUN);
    a.until_up();
    assert_eq!(a.read(FIRMWARE_START), start + 2);
    a.reopen();
    assert_eq!(a.endpoint.epoch, before.epoch + 2);
}
