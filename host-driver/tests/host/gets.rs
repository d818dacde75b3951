//! Gets: of every length, ended by everything that ends one, with a buffer that is the program's from then on.

use crate::common::{PATIENCE, able_options};
use crate::lent::{CANCEL, GRANTED, LENGTH, Lent, is};
use abi::times::{ACKNOWLEDGE_TIMEOUT, ANSWER_TIMEOUTS, RETRY_LIMIT};
use abi::wire::FrameType;
use host_driver::{
    Access, Buffer, Get, Group, MessageSet, PostError, Put, RemoteKey, RemoteRights, Request,
    RequestState, SendFlags, SendWr, TaggedSend, WaitError, WcKind, WcStatus,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soft_card::SoftOptions;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a buffer has in it to which nothing was written.
const BLANK: u8 = 0x5a;

/// The first side gets from the window of the second.
struct Stage {
    lent: Lent,
    /// What the window has.
    bytes: Vec<u8>,
}

impl Deref for Stage {
    type Target = Lent;

    fn deref(&self) -> &Lent {
        &self.lent
    }
}

impl DerefMut for Stage {
    fn deref_mut(&mut self) -> &mut Lent {
        &mut self.lent
    }
}

impl Stage {
    fn new(credits: u16) -> Self {
        Self::of(able_options(), credits, 256)
    }

    fn of(options: SoftOptions, credits: u16, completions: usize) -> Self {
        let rights = RemoteRights::READ;
        let all = rights | RemoteRights::WRITE;
        let lent = Lent::of(options, credits, completions, all, rights);
        let mut bytes = vec![0; LENGTH];
        ChaCha8Rng::seed_from_u64(1).fill(&mut bytes[..]);
        lent.window.write(0, &bytes);
        Self { lent, bytes }
    }

    fn at(&self, offset: usize) -> Get {
        Get {
            pair: self.a.pair,
            key: self.key,
            offset: offset as u64,
        }
    }

    fn blank(&mut self, length: usize) -> Buffer {
        self.a.filled(&vec![BLANK; length])
    }

    fn get(&mut self, wr_id: u64, offset: usize, length: usize) -> Request {
        let get = self.at(offset);
        let buffer = self.blank(length);
        let posted = self.a.endpoint.post_get(wr_id, &get, buffer);
        posted.expect("room")
    }

    /// The next completion is of a get that went well: its buffer has what is at this offset.
    #[track_caller]
    fn has_read(&self, wr_id: u64, offset: usize, length: usize) {
        let ended = self.ends(wr_id, WcStatus::Success);
        assert_eq!((ended.kind, ended.length), (WcKind::Get, length as u64));
        let buffer = ended.buffer.expect("as posted");
        assert!(buffer[..] == self.bytes[offset..][..length], "{wr_id}");
    }
}

#[test]
pub fn a_get_of_any_length_reads_what_is_granted() {
    let mut stage = Stage::new(4);
    let lengths = [
        0, 1, 8, 16, 17, 1023, 1024, 1025, 2048, 4103, 9217, 20_000, 59_002,
    ];
    for (wr_id, length) in (0..).zip(lengths) {
        let offset = (GRANTED.start + 37 * wr_id as usize).min(GRANTED.end - length);
        stage.get(wr_id, offset, length);
        let ended = stage.ends(wr_id, WcStatus::Success);
        assert_eq!((ended.kind, ended.more), (WcKind::Get, false));
        assert_eq!(
            (ended.length, ended.pair),
            (length as u64, Some(stage.a.pair))
        );
        assert_eq!(
            (ended.match_bits, ended.immediate, ended.context),
            (0, 0, 0)
        );
        let read = ended.buffer.expect("as posted");
        assert!(
            read[..] == stage.bytes[offset..][..length],
            "{length} bytes"
        );
        assert_eq!(stage.a.cq.outstanding(), 0);
    }
    stage.all_has_ended();
    let mut window = vec![0; LENGTH];
    stage.window.read(0, &mut window);
    assert!(window == stage.bytes, "nothing is written there");
}

#[test]
pub fn a_get_writes_its_buffer_and_nothing_beside_it() {
    let mut stage = Stage::new(4);
    for (wr_id, (before, length)) in [(1, 1), (7, 1024), (64, 5000), (13, 0)]
        .into_iter()
        .enumerate()
    {
        let wr_id = wr_id as u64;
        let mut behind = stage.blank(before + length + 9);
        let front = behind.split_to(before);
        let middle = behind.split_to(length);
        let get = stage.at(GRANTED.start + 3);
        let posted = stage.a.endpoint.post_get(wr_id, &get, middle);
        posted.expect("room");
        let ended = stage.ends(wr_id, WcStatus::Success);
        let read = ended.buffer.expect("as posted");
        assert!(read[..] == stage.bytes[GRANTED.start + 3..][..length]);
        assert!(front.iter().chain(&behind[..]).all(|&byte| byte == BLANK));
        assert_eq!((front.len(), behind.len()), (before, 9));
    }
    stage.all_has_ended();
}

#[test]
pub fn a_get_that_may_not_be_ends_once_as_that_and_the_pair_goes_on() {
    let mut stage = Stage::new(4);
    let good = stage.key;
    let gets = stage.count(FrameType::Get);
    let write = RemoteRights::WRITE;
    let writes = (stage.window).grant(&stage.b.endpoint, stage.b.pair, write, GRANTED);
    let bad = [
        RemoteKey::from_bits(good.to_bits() ^ 1 << 40),
        writes.expect("a key"),
    ];
    for key in bad {
        let (before, refused) = (gets.load(Ordering::Relaxed), refusals(&stage));
        for (wr_id, length) in [8, 1024, 40_000].into_iter().enumerate() {
            let wr_id = wr_id as u64;
            stage.key = key;
            stage.get(wr_id, GRANTED.start, length);
            let ended = stage.ends(wr_id, WcStatus::RemoteAccess);
            assert_eq!((ended.kind, ended.length), (WcKind::Get, length as u64));
            let buffer = ended.buffer.expect("as posted");
            assert_eq!(buffer.len(), length);
            assert!(buffer.iter().all(|&byte| byte == BLANK));
            stage.all_has_ended();
            stage.key = good;
            stage.message(wr_id);
            stage.receive(wr_id);
            stage.ends(wr_id, WcStatus::Success);
        }
        // What was behind those under way when the first failed hasn't gone, and each is counted.
        let went = gets.load(Ordering::Relaxed) - before;
        assert_eq!(went, 2 + 8);
        assert_eq!(u64::from(refusals(&stage) - refused), went);
    }
    stage.get(9, GRANTED.start, 100);
    stage.has_read(9, GRANTED.start, 100);
}

/// How often the second card has refused the first.
fn refusals(stage: &Stage) -> u32 {
    let status = stage.b.endpoint.query_pair(stage.b.pair);
    status.expect("open").refused
}

/// The first part of one is outside of what is granted, and the last of the other.
#[test]
pub fn a_get_of_which_one_part_may_not_be_ends_as_that_part() {
    for (offset, inside) in [
        (GRANTED.start - 1, 1024..3000),
        (GRANTED.end - 2999, 0..2048),
    ] {
        let mut stage = Stage::new(4);
        stage.get(1, offset, 3000);
        let ended = stage.ends(1, WcStatus::RemoteAccess);
        let mut expected = vec![BLANK; 3000];
        expected[inside.clone()].copy_from_slice(&stage.bytes[offset..][inside]);
        assert!(ended.buffer.expect("as posted")[..] == expected);
        stage.all_has_ended();
    }
}

#[test]
pub fn an_offset_of_a_get_never_wraps() {
    let mut stage = Stage::new(4);
    let rights = RemoteRights::READ;
    let all = stage
        .window
        .grant(&stage.b.endpoint, stage.b.pair, rights, ..);
    stage.key = all.expect("a key");
    for (wr_id, before) in [1023, 1024, 2048].into_iter().enumerate() {
        let offset = usize::MAX - before + 1;
        stage.get(wr_id as u64, offset, 5000);
        let ended = stage.ends(wr_id as u64, WcStatus::RemoteAccess);
        let buffer = ended.buffer.expect("as posted");
        assert!(buffer.iter().all(|&byte| byte == BLANK));
    }
}

#[test]
pub fn what_is_posted_behind_a_get_goes_and_completes_behind_it() {
    let mut stage = Stage::new(4);
    let write = RemoteRights::WRITE;
    let writes = (stage.window).grant(&stage.b.endpoint, stage.b.pair, write, 60_003..);
    let writes = writes.expect("a key");
    // The first answer is lost, so that the message behind it comes first.
    let mut lost = false;
    stage.fabric.tap(move |frame, out| {
        let loses = !lost && is(&frame.bytes, FrameType::GetAnswer);
        lost |= loses;
        if !loses {
            out.push(frame);
        }
    });
    stage.get(1, GRANTED.start, 100);
    stage.message(2);
    let put = Put {
        pair: stage.a.pair,
        key: writes,
        offset: 61_000,
    };
    let buffer = stage.a.filled(b"put");
    stage.a.endpoint.post_put(3, &put, buffer).expect("room");
    stage.get(4, GRANTED.start + 100, 6000);
    stage.message(5);
    stage.receive(2);
    assert!(!stage.a.cq.is_ready(), "the get in front has no answer");
    stage.has_read(1, GRANTED.start, 100);
    stage.ends(2, WcStatus::Success);
    stage.ends(3, WcStatus::Success);
    stage.has_read(4, GRANTED.start + 100, 6000);
    stage.ends(5, WcStatus::Success);
    stage.receive(5);
    stage.all_has_ended();
}

/// Who waits for the completion of the one before the other is posted has them in order.
#[test]
pub fn a_get_behind_the_completion_of_a_put_reads_what_was_written() {
    let mut stage = Stage::new(4);
    let write = RemoteRights::WRITE;
    let writes = (stage.window).grant(&stage.b.endpoint, stage.b.pair, write, GRANTED);
    let put = Put {
        pair: stage.a.pair,
        key: writes.expect("a key"),
        offset: GRANTED.start as u64,
    };
    for round in 1..5_u8 {
        let written = vec![round; 5000];
        let buffer = stage.a.filled(&written);
        stage.a.endpoint.post_put(1, &put, buffer).expect("room");
        stage.ends(1, WcStatus::Success);
        stage.bytes[GRANTED.start..][..5000].copy_from_slice(&written);
        stage.get(2, GRANTED.start, 5000);
        stage.has_read(2, GRANTED.start, 5000);
    }
}

#[test]
pub fn gets_need_no_credit_and_those_in_front_of_a_message_go() {
    let mut stage = Stage::new(1);
    stage.message(1);
    stage.get(2, GRANTED.start, 8);
    stage.get(3, GRANTED.start + 8, 9000);
    stage.message(4);
    stage.ends(1, WcStatus::Success);
    stage.has_read(2, GRANTED.start, 8);
    stage.has_read(3, GRANTED.start + 8, 9000);
    stage.receive(1);
    stage.ends(4, WcStatus::Success);
    stage.receive(4);
    stage.all_has_ended();
}

/// Two messages for one credit, and a get behind them.
fn behind_a_message(length: usize) -> (Stage, Request) {
    let mut stage = Stage::new(1);
    stage.message(1);
    stage.message(2);
    let get = stage.get(3, GRANTED.start, length);
    stage.ends(1, WcStatus::Success);
    stage.a.pause(300_000);
    assert!(!stage.a.cq.is_ready());
    (stage, get)
}

#[test]
pub fn a_get_waits_behind_a_message_and_is_cancelled_or_times_out_while_that_waits_on() {
    for length in [8, 1500, 30_000] {
        for status in [WcStatus::Success, WcStatus::Cancelled, WcStatus::TimedOut] {
            let (mut stage, get) = behind_a_message(length);
            let before = stage.a.device.now();
            match status {
                WcStatus::Cancelled => {
                    stage.a.endpoint.cancel(9, get).expect("it waits");
                    let twice = stage.a.endpoint.cancel(9, get);
                    assert_eq!(twice, Err(PostError::NothingToCancel));
                }
                WcStatus::TimedOut => stage.a.endpoint.set_timeout(get, 0).expect("it waits"),
                _ => {
                    stage.receive(1);
                    stage.ends(2, WcStatus::Success);
                }
            }
            if status == WcStatus::Success {
                stage.has_read(3, GRANTED.start, length);
                stage.receive(2);
            } else {
                let buffer = stage.ends(3, status).buffer.expect("as posted");
                assert!(buffer.len() == length && buffer.iter().all(|&byte| byte == BLANK));
                assert!(stage.a.device.now() - before < CANCEL);
                stage.receive(1);
                stage.ends(2, WcStatus::Success);
                stage.receive(2);
            }
            stage.all_has_ended();
        }
    }
}

/// Parts of a get are on their way, and their answers don't come.
fn half_way() -> (Stage, Request, Arc<AtomicBool>) {
    let mut stage = Stage::new(4);
    let lost = stage.switch(1);
    let get = stage.get(3, GRANTED.start, 50_000);
    stage.a.pause(3_000);
    stage.a.cq.is_ready();
    lost.store(true, Ordering::Relaxed);
    stage.a.pause(3_000);
    stage.a.cq.is_ready();
    assert_eq!(stage.a.endpoint.query_request(get), RequestState::Kept);
    (stage, get, lost)
}

/// The buffer has some of the parts, and stays as it is however long frames go on coming.
fn stays(stage: &Stage, buffer: &Buffer) {
    let found = buffer.to_vec();
    let bytes = &stage.bytes[GRANTED.start..][..50_000];
    for (part, wanted) in found.chunks(1024).zip(bytes.chunks(1024)) {
        assert!(part == wanted || part.iter().all(|&byte| byte == BLANK));
    }
    assert!(found[..1024] == bytes[..1024] && found[20 * 1024..] == [BLANK; 50_000 - 20 * 1024]);
    stage.fabric.set_owned(0, buffer, true);
    stage.fabric.run(100_000);
    assert!(buffer[..] == found);
    assert_eq!(stage.fabric.trespasses(0), 0);
    stage.fabric.set_owned(0, buffer, false);
}

#[test]
pub fn a_get_that_is_cancelled_half_way_gives_its_buffer_back_when_nothing_is_under_way() {
    for timed in [false, true] {
        let (stage, get, lost) = half_way();
        match timed {
            false => drop(stage.a.endpoint.cancel(9, get).expect("it goes on")),
            true => stage.a.endpoint.set_timeout(get, 0).expect("it goes on"),
        }
        for _ in 0..20 {
            stage.a.pause(500);
            assert!(stage.a.cq.poll().is_none(), "the card may write the buffer");
        }
        lost.store(false, Ordering::Relaxed);
        let status = match timed {
            false => WcStatus::Cancelled,
            true => WcStatus::TimedOut,
        };
        let buffer = stage.ends(3, status).buffer.expect("as posted");
        stays(&stage, &buffer);
        stage.all_has_ended();
    }
}

#[test]
fn a_get_that_has_gone_is_not_cancelled() {
    for length in [1000, 5000] {
        let mut stage = Stage::new(4);
        let lost = stage.switch(1);
        lost.store(true, Ordering::Relaxed);
        let get = stage.get(1, GRANTED.start, length);
        stage.a.pause(5_000);
        stage.a.endpoint.cancel(2, get).expect("it hasn't ended");
        lost.store(false, Ordering::Relaxed);
        let late = stage.a.next();
        assert_eq!(
            (late.kind, late.status),
            (WcKind::Cancel, WcStatus::TooLate)
        );
        stage.has_read(1, GRANTED.start, length);
        stage.all_has_ended();
    }
}

/// What ends a get that is half-way, and all that is behind it.
#[test]
pub fn a_get_ends_once_with_whatever_ends_its_pair_and_its_buffer_is_the_programs() {
    type Happens = fn(&Stage);
    let ways: [(Happens, &[WcStatus]); 7] = [
        (
            |stage| stage.a.endpoint.close_pair(stage.a.pair).expect("closed"),
            &[WcStatus::Flushed],
        ),
        (
            |stage| stage.a.endpoint.close().expect("closed"),
            &[WcStatus::Flushed],
        ),
        (
            |stage| {
                let failed = stage.a.endpoint.declare_failed(stage.a.pair);
                failed.expect("it is connected");
            },
            &[WcStatus::PeerFailed],
        ),
        // The peer is killed.
        (
            |stage| {
                stage.fabric.lose_frames(0, u32::MAX);
                stage.fabric.lose_frames(1, u32::MAX);
            },
            &[WcStatus::PeerFailed],
        ),
        // It hears everything, and says nothing.
        (
            |stage| stage.fabric.lose_frames(1, u32::MAX),
            &[WcStatus::PeerFailed],
        ),
        (|stage| stage.fabric.close(), &[WcStatus::Flushed]),
        (
            |stage| {
                let ended = stage.a.endpoint.disconnect(stage.a.pair, 1000);
                ended.expect("ended");
            },
            &[WcStatus::PeerClosed, WcStatus::Flushed],
        ),
    ];
    for (way, (happens, statuses)) in ways.into_iter().enumerate() {
        let (stage, _, lost) = half_way();
        stage.message(4);
        happens(&stage);
        let mut buffers = Vec::new();
        for wr_id in [3, 4] {
            let ended = loop {
                match stage.a.cq.wait(PATIENCE) {
                    Err(WaitError::Interrupted) => {}
                    ended => break ended.expect("it ends"),
                }
            };
            assert_eq!(ended.wr_id, wr_id, "way {way}");
            assert!(
                statuses.contains(&ended.status),
                "{way}: {:?}",
                ended.status
            );
            buffers.extend(ended.buffer);
        }
        assert!(stage.a.cq.poll().is_none(), "way {way}");
        assert_eq!((stage.a.cq.outstanding(), stage.a.cq.strays()), (0, 0));
        // What the peer says now is late.
        lost.store(false, Ordering::Relaxed);
        assert_eq!(buffers[0].len(), 50_000);
        stays(&stage, &buffers[0]);
    }
}

#[test]
pub fn a_key_that_is_revoked_half_way_ends_the_get() {
    let (stage, _, lost) = half_way();
    stage.window.revoke(stage.key).expect("revoked");
    lost.store(false, Ordering::Relaxed);
    let ended = stage.ends(3, WcStatus::RemoteAccess);
    stays(&stage, &ended.buffer.expect("as posted"));
    stage.all_has_ended();
    stage.message(4);
    stage.ends(4, WcStatus::Success);
}

#[test]
fn a_get_goes_on_though_the_program_takes_no_completion() {
    let mut stage = Stage::new(2);
    // Completions that nobody polls are in front of those of the parts.
    for wr_id in 0..20 {
        stage.get(wr_id, GRANTED.start, 8);
    }
    stage.a.pause(20_000);
    stage.get(20, GRANTED.start, 50_000);
    for _ in 0..1000 {
        stage.a.pause(1_000);
        assert!(stage.a.endpoint.poll_event().expect("a card").is_none());
    }
    for wr_id in 0..20 {
        stage.has_read(wr_id, GRANTED.start, 8);
    }
    stage.has_read(20, GRANTED.start, 50_000);
    stage.all_has_ended();
}

#[test]
fn a_get_takes_as_many_completion_entries_as_parts_may_be_under_way_or_as_there_are() {
    for (completions, taken) in [(256, 17), (16, 16), (4, 4)] {
        let mut stage = Stage::of(able_options(), 4, completions);
        stage.get(1, GRANTED.start, 20_000);
        assert_eq!(stage.a.cq.outstanding(), taken);
        assert_eq!(stage.a.endpoint.query().outstanding, 1);
        stage.has_read(1, GRANTED.start, 20_000);
        stage.all_has_ended();
    }
}

#[test]
fn lists_of_gets_are_read_each_into_its_own_buffer() {
    let mut stage = Stage::new(4);
    let list = [1, 2, 3].map(|wr_id| SendWr {
        wr_id,
        send: stage.at(GRANTED.start + 5000 * wr_id as usize),
        flags: SendFlags::empty(),
        buffer: stage.a.filled(&vec![BLANK; 1500 * wr_id as usize]),
    });
    let mut posted = Vec::new();
    let all = stage.a.endpoint.post_send_list(list, &mut posted);
    all.expect("room");
    assert_eq!(posted.len(), 3);
    for wr_id in 1..4 {
        let at = GRANTED.start + 5000 * wr_id as usize;
        stage.has_read(wr_id, at, 1500 * wr_id as usize);
    }
    stage.all_has_ended();
}

#[test]
pub fn what_revokes_or_drains_messages_does_not_concern_gets() {
    let (mut stage, _) = behind_a_message(5000);
    let group = Group::new(&stage.a.endpoint, &[(1, stage.a.pair)], 0).expect("a group");
    let context = MessageSet::of_context(0);
    let revoked = stage.a.endpoint.revoke(&group, &context, PATIENCE);
    assert_eq!(revoked.expect("revoked").swept.sends, 1);
    stage.ends(2, WcStatus::Revoked);
    stage.has_read(3, GRANTED.start, 5000);
    stage.get(4, GRANTED.start + 5000, 100);
    stage.has_read(4, GRANTED.start + 5000, 100);
    stage.all_has_ended();
}

#[test]
pub fn a_get_that_can_not_be_posted_is_refused_with_its_buffer() {
    let mut stage = Stage::new(1);
    for flags in [SendFlags::READY, SendFlags::UNSIGNALED] {
        let list = [SendWr {
            wr_id: 1,
            send: stage.at(GRANTED.start),
            flags,
            buffer: stage.a.filled(b"mine"),
        }];
        let refused = stage.a.endpoint.post_send_list(list, &mut Vec::new());
        let refused = refused.expect_err("it means nothing");
        assert_eq!(refused.error, PostError::Unsupported);
        assert_eq!(refused.request.buffer[..], *b"mine");
    }
    // A buffer of another domain.
    let other = stage.a.device.alloc_pd().expect("a domain");
    let (_region, foreign) = other.reg_mr(8, Access::ReadWrite).expect("a region");
    let refused = (stage.a.endpoint).post_get(1, &stage.at(GRANTED.start), foreign);
    let refused = refused.expect_err("it is not the endpoint's");
    assert_eq!(refused.error, PostError::WrongDomain);
    let mut options = able_options();
    options.sizes.capabilities &= !abi::capability::CAPABILITY_GET;
    let mut bare = Stage::of(options, 1, 16);
    let get = bare.at(GRANTED.start);
    let buffer = bare.a.filled(b"mine");
    let refused = bare.a.endpoint.post_get(1, &get, buffer);
    let refused = refused.expect_err("the card has no gets");
    assert_eq!(refused.error, PostError::Unsupported);
    assert_eq!(refused.buffer[..], *b"mine");
}

/// Keeps the answers back, as a peer does that has those of many others to give first, until the pair has asked three times whether it is there: it has all then,
/// and nothing goes again.
#[test]
pub fn a_peer_that_answers_late_is_asked_for_nothing_again() {
    let mut stage = Stage::new(4);
    let gets = Arc::new(AtomicU64::new(0));
    let counts = Arc::clone(&gets);
    let (mut held, mut asks) = (Vec::new(), 0);
    stage.fabric.tap(move |frame, out| {
        asks += usize::from(is(&frame.bytes, FrameType::Ask));
        if asks > 0 && is(&frame.bytes, FrameType::Get) {
            counts.fetch_add(1, Ordering::Relaxed);
        }
        match is(&frame.bytes, FrameType::GetAnswer) && asks < 3 {
            true => held.push(frame),
            false => out.push(frame),
        }
        if asks >= 3 {
            out.append(&mut held);
        }
    });
    stage.get(1, GRANTED.start, 3000);
    stage.message(2);
    stage.has_read(1, GRANTED.start, 3000);
    stage.ends(2, WcStatus::Success);
    stage.receive(2);
    assert_eq!(gets.load(Ordering::Relaxed), 0);
    stage.all_has_ended();
}

#[test]
pub fn a_peer_that_has_a_get_and_never_answers_has_failed() {
    let mut stage = Stage::new(4);
    let gets = Arc::new(AtomicU64::new(0));
    let counts = Arc::clone(&gets);
    stage.fabric.tap(move |frame, out| {
        counts.fetch_add(is(&frame.bytes, FrameType::Get).into(), Ordering::Relaxed);
        if !is(&frame.bytes, FrameType::GetAnswer) {
            out.push(frame);
        }
    });
    stage.get(1, GRANTED.start, 100);
    let before = stage.a.device.now();
    let ended = loop {
        match stage.a.cq.wait(2_000_000) {
            Err(WaitError::Interrupted) => {}
            ended => break ended.expect("it ends"),
        }
    };
    assert_eq!((ended.wr_id, ended.status), (1, WcStatus::PeerFailed));
    let asked = u64::from(RETRY_LIMIT) + 1;
    // Once more if its acknowledgement went with an answer.
    let went = gets.load(Ordering::Relaxed);
    assert!((asked..=asked + 1).contains(&went), "{went} times");
    let timeouts = u64::from(ANSWER_TIMEOUTS) * asked;
    let waited = stage.a.device.now() - before;
    let least = timeouts * u64::from(ACKNOWLEDGE_TIMEOUT);
    assert!((least..3 * least).contains(&waited), "{waited} cycles");
    assert_eq!((stage.a.cq.outstanding(), stage.a.cq.strays()), (0, 0));
}

/// Gets and puts of any length and messages in turn, over wires that lose frames, with time-outs among them.
#[test]
fn random_gets_puts_and_messages_go_in_order_over_bad_wires() {
    for seed in 0..30 {
        println!("seed {seed}");
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let completions = [16, 32, 256][rng.random_range(0..3)];
        let mut stage = Stage::of(able_options(), rng.random_range(1..=16), completions);
        let mut lose = ChaCha8Rng::seed_from_u64(!seed);
        stage.fabric.tap(move |frame, out| {
            if !lose.random_ratio(1, 40) {
                out.push(frame);
            }
        });
        let write = RemoteRights::WRITE;
        let writes = (stage.window).grant(&stage.b.endpoint, stage.b.pair, write, GRANTED.end..);
        let writes = writes.expect("a key");
        let mut read = std::collections::BTreeMap::new();
        let (mut number, mut pending, mut sent, mut received) = (0_u64, 0, 0, 0);
        let (mut latest, mut done) = (None, [0; 2]);
        while number < 60 || pending > 0 {
            if number < 60 && rng.random_ratio(1, 3) {
                let posted = match rng.random_range(0..4) {
                    0 => {
                        let send = TaggedSend {
                            immediate: number,
                            ..stage.a.send(7)
                        };
                        let posted =
                            (stage.a.endpoint).post_tagged_send(number, &send, Buffer::empty());
                        sent += u64::from(posted.is_ok());
                        posted.map_err(|refused| refused.error)
                    }
                    1 => {
                        let length = rng.random_range(0..2000);
                        let put = Put {
                            pair: stage.a.pair,
                            key: writes,
                            offset: rng.random_range(GRANTED.end..LENGTH - length) as u64,
                        };
                        let buffer = stage.blank(length);
                        let posted = stage.a.endpoint.post_put(number, &put, buffer);
                        posted.map_err(|refused| refused.error)
                    }
                    _ => {
                        let most = [40, 1100, 12_000][rng.random_range(0..3)];
                        let length = rng.random_range(0..most);
                        let offset = rng.random_range(GRANTED.start..GRANTED.end - length);
                        let get = stage.at(offset);
                        let buffer = stage.blank(length);
                        let posted = stage.a.endpoint.post_get(number, &get, buffer);
                        if posted.is_ok() {
                            read.insert(number, offset);
                        }
                        posted.map_err(|refused| refused.error)
                    }
                };
                match posted {
                    Ok(request) => {
                        number += 1;
                        pending += 1;
                        if rng.random_ratio(1, 10) {
                            let cycles = rng.random_range(0..100_000);
                            let set = stage.a.endpoint.set_timeout(request, cycles);
                            set.expect("posted");
                        }
                    }
                    Err(PostError::CompletionQueueFull | PostError::SendRingFull) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            if received < sent && rng.random_ratio(1, 4) {
                let receive = stage.b.receive(7);
                stage.b.post(received, &receive);
                received += 1;
            }
            while stage.b.cq.poll().is_some() {}
            match stage.a.cq.wait(rng.random_range(0..3_000)) {
                Ok(ended) => {
                    pending -= 1;
                    let good = ended.status == WcStatus::Success;
                    assert!(good || ended.status == WcStatus::TimedOut);
                    if good {
                        assert!(latest < Some(ended.wr_id), "{} is late", ended.wr_id);
                        latest = Some(ended.wr_id);
                    }
                    if let Some(offset) = read.remove(&ended.wr_id) {
                        assert_eq!(ended.kind, WcKind::Get);
                        done[usize::from(good)] += 1;
                        let buffer = ended.buffer.expect("as posted");
                        let bytes = &stage.bytes[offset..][..buffer.len()];
                        let parts = buffer.chunks(1024).zip(bytes.chunks(1024));
                        for (part, wanted) in parts {
                            let blank = !good && part.iter().all(|&byte| byte == BLANK);
                            assert!(blank || part == wanted, "{}", ended.wr_id);
                        }
                    }
                }
                Err(error) => assert_eq!(error, WaitError::Timeout),
            }
        }
        assert!(read.is_empty() && done[1] > 0, "each get has ended once");
        stage.all_has_ended();
    }
}
