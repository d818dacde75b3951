//! "Problem with reusing rendezvous memory buffers" (MPI Forum, mpi3-ft, 30 July 2013), end to end: a process that may write into our buffer sends a slow message and
//! dies. We detect and handle the failure before the message arrives. Then it arrives, and must not corrupt the memory; but the memory can't be unmapped, because
//! another process is writing into it.
//!
//! ```text
//!  card 1: dies   ── put, held on the wire ──────────────────────────────► arrives: dropped, or refused
//!  card 2: lives  ── put ── put ── put ── put ── put ── put ── put ── put ── put ── put ──► all written
//!  card 0: we     ── … ── knows that 1 has failed ── uses its part for something else ── …
//! ```

use crate::common::{PATIENCE, able_options};
use abi::times::WATCH_INTERVAL_LEAST;
use abi::wire::{FrameHeader, FrameType};
use host_driver::transport::PauseResult;
use host_driver::{
    Access, Buffer, Cause, CompletionQueue, Counter, Device, Endpoint, Pair, ProtectionDomain, Put,
    RemoteKey, RemoteRights, WaitError, WatchOptions, WcStatus, Window,
};
use soft_card::{SoftFabric, SoftOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const US: usize = 0;
const DIES: usize = 1;
const LIVES: usize = 2;
/// Bytes of the buffer that each of the others may write.
const PART: usize = 8192;
/// Bytes of the slow message.
const SLOW: usize = 4000;
/// Cycles that it is late: our firmware has known for long by then that its sender is dead.
const LATE: u64 = 40 * WATCH_INTERVAL_LEAST as u64;
/// What we do with the dead process's part.
const OURS: u8 = 0x77;

/// A process, and its end of a pair with us.
struct Process {
    pd: ProtectionDomain,
    endpoint: Endpoint,
    cq: CompletionQueue,
    memory: Buffer,
    /// Its end, and ours.
    pair: Pair,
    ours: Pair,
    key: RemoteKey,
}

struct Story {
    fabric: SoftFabric,
    device: Device,
    endpoint: Endpoint,
    window: Window,
    dies: Process,
    lives: Process,
    /// What the live process has written last, at which place of its part.
    written: Vec<u8>,
    number: u64,
    /// Puts of the dying process are late from now on.
    slow: Arc<AtomicBool>,
    /// Those that have left late.
    held: Arc<AtomicU64>,
}

/// Where a process's part of the buffer begins.
fn part(card: usize) -> usize {
    (card - 1) * PART
}

impl Story {
    fn new() -> Self {
        let fabric = SoftFabric::new(SoftOptions {
            cards: 3,
            ..able_options()
        });
        let slow = Arc::new(AtomicBool::new(false));
        let held = Arc::new(AtomicU64::new(0));
        let (slows, holds) = (Arc::clone(&slow), Arc::clone(&held));
        fabric.tap(move |mut frame, out| {
            let header = FrameHeader::parse(&frame.bytes).expect("a header");
            let put = header.frame_type == FrameType::Put.code();
            if frame.source == DIES && slows.load(Ordering::Relaxed) {
                if !put {
                    // It says nothing else any more.
                    return;
                }
                frame.delay += LATE;
                holds.fetch_add(1, Ordering::Relaxed);
            }
            out.push(frame);
        });
        let device = Device::open(fabric.transport(US)).expect("a card");
        let pd = device.alloc_pd().expect("a domain");
        let endpoint = pd.endpoint().open().expect("an endpoint");
        let rights = RemoteRights::WRITE;
        let window = pd.reg_window(2 * PART, rights).expect("a window");
        let process = |card| {
            let device = Device::open(fabric.transport(card)).expect("a card");
            let pd = device.alloc_pd().expect("a domain");
            let theirs = pd.endpoint().open().expect("an endpoint");
            let (_, memory) = pd.reg_mr(1 << 20, Access::ReadWrite).expect("a region");
            let (pair, address) = theirs.open_pair(4).expect("a pair");
            let (ours, our_address) = endpoint.open_pair(4).expect("a pair");
            theirs.connect_pair(pair, &our_address).expect("connected");
            endpoint.connect_pair(ours, &address).expect("connected");
            let range = part(card)..part(card) + PART;
            let key = window.grant(&endpoint, ours, rights, range);
            Process {
                key: key.expect("a key"),
                cq: theirs.completion_queue(),
                pd,
                endpoint: theirs,
                memory,
                pair,
                ours,
            }
        };
        let (dies, lives) = (process(DIES), process(LIVES));
        let watch = WatchOptions {
            interval: WATCH_INTERVAL_LEAST,
            timeout: 8 * WATCH_INTERVAL_LEAST,
            believe_peers: false,
        };
        endpoint.watch_peers(watch).expect("watched");
        Self {
            fabric,
            device,
            endpoint,
            window,
            dies,
            lives,
            written: vec![0; PART],
            number: 0,
            slow,
            held,
        }
    }

    fn pause(&self, cycles: u64) {
        let end = self.device.pause(&[], self.device.now() + cycles);
        assert_eq!(end, PauseResult::Deadline);
    }

    fn read(&self, card: usize) -> Vec<u8> {
        let mut bytes = vec![0; PART];
        self.window.read(part(card), &mut bytes);
        bytes
    }

    /// The live process writes once more, and its data is there.
    fn goes_on(&mut self) {
        self.number += 1;
        let length = 1 + self.number as usize * 517 % 3000;
        let at = self.number as usize * 911 % (PART - length);
        let mut buffer = self.lives.memory.split_to(length);
        buffer.fill(self.number as u8);
        self.written[at..at + length].fill(self.number as u8);
        let put = Put {
            pair: self.lives.pair,
            key: self.lives.key,
            offset: (part(LIVES) + at) as u64,
        };
        let posted = self.lives.endpoint.post_put(self.number, &put, buffer);
        posted.expect("room");
        let ended = self.lives.cq.wait(PATIENCE).expect("it ends");
        assert_eq!(
            (ended.wr_id, ended.status),
            (self.number, WcStatus::Success)
        );
        assert!(self.read(LIVES) == self.written, "put {}", self.number);
    }

    /// It goes on until a cycle.
    fn goes_on_until(&mut self, cycle: u64) {
        while self.device.now() < cycle {
            self.goes_on();
            // As many as its memory has room for.
            let left = cycle.saturating_sub(self.device.now());
            self.pause((left / 8).max(5000));
        }
    }

    /// The dying process sends its slow message, and is heard of no more. The cycle in which the last of it has arrived.
    fn sends_slowly_and_dies(&mut self) -> u64 {
        self.slow.store(true, Ordering::Relaxed);
        let mut buffer = self.dies.memory.split_to(SLOW);
        buffer.fill(0xdd);
        let put = Put {
            pair: self.dies.pair,
            key: self.dies.key,
            offset: part(DIES) as u64,
        };
        let posted = self.dies.endpoint.post_put(1, &put, buffer);
        posted.expect("room");
        self.pause(4_000);
        assert_eq!(
            self.held.load(Ordering::Relaxed),
            4,
            "all of it is on the wire"
        );
        let now = self.device.now();
        self.fabric.power_off_at(DIES, now);
        now + LATE + 10_000
    }

    /// We learn of the failure, while the live process goes on.
    fn we_learn_of_it(&mut self) {
        let failed = loop {
            self.goes_on();
            self.pause(50_000);
            if let Some(event) = self.endpoint.poll_event().expect("a card") {
                break event;
            }
        };
        assert_eq!(failed.cause, Cause::PeerFailed);
        assert_eq!(failed.pair, Some(self.dies.ours));
    }

    /// Its part is ours again: we write something else there.
    fn we_reuse_its_part(&self) {
        self.window.write(part(DIES), &[OURS; PART]);
    }

    fn dropped(&self) -> u64 {
        let count = self.device.read_counter(Counter::PairErrors);
        count.expect("a card")
    }
}

/// The slow message of the document. Below it comes in time, and lands: so this can fail.
#[test]
pub fn a_slow_message_of_a_process_that_has_failed_never_lands() {
    let mut story = Story::new();
    for _ in 0..10 {
        story.goes_on();
    }
    let arrives = story.sends_slowly_and_dies();
    story.we_learn_of_it();
    story.we_reuse_its_part();
    let before = story.dropped();
    assert!(
        story.device.now() + 100_000 < arrives,
        "or it proves nothing"
    );
    story.goes_on_until(arrives);
    assert!(story.read(DIES) == [OURS; PART]);
    assert_eq!(story.dropped() - before, 4, "each frame of it is counted");
    story.goes_on();
}

#[test]
pub fn a_slow_message_that_comes_before_its_sender_is_taken_to_have_failed_lands() {
    let mut story = Story::new();
    let off = WatchOptions {
        interval: 0,
        timeout: 0,
        believe_peers: false,
    };
    story.endpoint.watch_peers(off).expect("nobody is watched");
    let arrives = story.sends_slowly_and_dies();
    story.we_reuse_its_part();
    story.goes_on_until(arrives);
    let mut expected = [OURS; PART];
    expected[..SLOW].fill(0xdd);
    assert!(story.read(DIES) == expected);
}

/// The place of the pair has its next peer by then, and that may write the same memory.
#[test]
pub fn a_slow_message_never_lands_by_the_grant_of_who_comes_after_its_sender() {
    let mut story = Story::new();
    let arrives = story.sends_slowly_and_dies();
    story.we_learn_of_it();
    story.endpoint.close_pair(story.dies.ours).expect("closed");
    let lives = &story.lives;
    let next = lives.pd.endpoint().open().expect("an endpoint");
    let (theirs, address) = next.open_pair(4).expect("a pair");
    let (ours, our_address) = story.endpoint.open_pair(4).expect("a pair");
    assert_eq!(ours.index(), story.dies.ours.index(), "or it proves less");
    next.connect_pair(theirs, &our_address).expect("connected");
    story
        .endpoint
        .connect_pair(ours, &address)
        .expect("connected");
    let range = part(DIES)..part(DIES) + PART;
    let rights = RemoteRights::WRITE;
    let key = story.window.grant(&story.endpoint, ours, rights, range);
    story.we_reuse_its_part();
    let before = story.dropped();
    assert!(
        story.device.now() + 100_000 < arrives,
        "or it proves nothing"
    );
    story.goes_on_until(arrives);
    assert!(story.read(DIES) == [OURS; PART]);
    assert_eq!(story.dropped() - before, 4);
    // What the next one writes lands.
    let put = Put {
        pair: theirs,
        key: key.expect("a key"),
        offset: part(DIES) as u64,
    };
    next.post_inject_put(1, &put, b"next").expect("room");
    story.pause(20_000);
    assert_eq!(story.read(DIES)[..4], *b"next");
    story.goes_on();
}

/// Its sender lives, and we have revoked what it was granted: the refusal is counted, and told to it.
#[test]
pub fn a_slow_message_of_a_process_that_was_revoked_never_lands_and_is_told() {
    for everywhere in [true, false] {
        let mut story = Story::new();
        story.slow.store(true, Ordering::Relaxed);
        let off = WatchOptions {
            interval: 0,
            timeout: 0,
            believe_peers: false,
        };
        story.endpoint.watch_peers(off).expect("nobody is watched");
        let mut buffer = story.dies.memory.split_to(SLOW);
        buffer.fill(0xdd);
        let put = Put {
            pair: story.dies.pair,
            key: story.dies.key,
            offset: part(DIES) as u64,
        };
        let posted = story.dies.endpoint.post_put(1, &put, buffer);
        posted.expect("room");
        story.pause(2_000);
        let revoked = match everywhere {
            true => story.endpoint.revoke_peer(story.dies.ours),
            false => story.window.revoke(story.dies.key),
        };
        revoked.expect("revoked");
        story.we_reuse_its_part();
        story.slow.store(false, Ordering::Relaxed);
        let ended = loop {
            story.goes_on();
            match story.dies.cq.wait(20_000) {
                Err(WaitError::Timeout | WaitError::Interrupted) => {}
                ended => break ended.expect("it ends"),
            }
        };
        assert_eq!(ended.status, WcStatus::RemoteAccess);
        let status = story.endpoint.query_pair(story.dies.ours).expect("open");
        assert_eq!(status.refused, 4, "each frame of it is counted");
        story.goes_on_until(story.device.now() + LATE);
        assert!(story.read(DIES) == [OURS; PART]);
    }
}
