//! Puts: of every length, in every way, ended by everything that ends one.

use crate::common::{PATIENCE, able_options};
use crate::lent::{CANCEL, GRANTED, LENGTH, Lent};
use abi::wire::FrameType;
use host_driver::{
    Group, MessageSet, PostError, Put, RemoteKey, RemoteRights, Request, RequestState, SendFlags,
    SendLimits, SendWr, WaitError, WcKind, WcStatus,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soft_card::SoftOptions;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first side puts into the window of the second.
struct Stage(Lent);

impl Deref for Stage {
    type Target = Lent;

    fn deref(&self) -> &Lent {
        &self.0
    }
}

impl DerefMut for Stage {
    fn deref_mut(&mut self) -> &mut Lent {
        &mut self.0
    }
}

impl Stage {
    fn new(credits: u16) -> Self {
        Self::of(able_options(), credits, 256)
    }

    fn of(options: SoftOptions, credits: u16, completions: usize) -> Self {
        let rights = RemoteRights::WRITE;
        Self(Lent::of(options, credits, completions, rights, rights))
    }

    fn at(&self, offset: usize) -> Put {
        Put {
            pair: self.a.pair,
            key: self.key,
            offset: offset as u64,
        }
    }

    fn put(&mut self, wr_id: u64, offset: usize, bytes: &[u8]) -> Request {
        let put = self.at(offset);
        let buffer = self.a.filled(bytes);
        let posted = self.a.endpoint.post_put(wr_id, &put, buffer);
        posted.expect("room")
    }

    fn window(&self) -> Vec<u8> {
        let mut bytes = vec![0; LENGTH];
        self.window.read(0, &mut bytes);
        bytes
    }
}

fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    ChaCha8Rng::seed_from_u64(seed).fill(&mut bytes[..]);
    bytes
}

#[test]
pub fn a_put_of_any_length_is_written_where_it_is_granted_and_nowhere_else() {
    let mut stage = Stage::new(4);
    let mut expected = vec![0; LENGTH];
    let lengths = [
        0, 1, 8, 16, 17, 1023, 1024, 1025, 2048, 4103, 9217, 20_000, 59_002,
    ];
    for (wr_id, length) in (0..).zip(lengths) {
        let bytes = bytes(wr_id, length);
        let offset = (GRANTED.start + 37 * wr_id as usize).min(GRANTED.end - length);
        stage.put(wr_id, offset, &bytes);
        let ended = stage.ends(wr_id, WcStatus::Success);
        assert_eq!((ended.kind, ended.more), (WcKind::Put, false));
        assert_eq!(
            (ended.length, ended.pair),
            (length as u64, Some(stage.a.pair))
        );
        assert_eq!(
            (ended.match_bits, ended.immediate, ended.context),
            (0, 0, 0)
        );
        assert_eq!(ended.buffer.expect("as posted")[..], bytes);
        expected[offset..offset + length].copy_from_slice(&bytes);
        assert!(stage.window() == expected, "{length} bytes");
        assert_eq!(stage.a.cq.outstanding(), 0);
    }
    stage.all_has_ended();
}

#[test]
pub fn a_put_of_several_buffers_is_written_as_one() {
    let mut stage = Stage::new(4);
    let mut expected = vec![0; LENGTH];
    let shapes: [&[usize]; 6] = [
        &[3, 0, 5],
        &[1000, 24],
        &[1, 1023, 1024, 7],
        &[5000, 1, 1, 1],
        &[300, 300, 300, 300],
        &[0, 0, 0, 3000],
    ];
    for (wr_id, shape) in (0..).zip(shapes) {
        let length = shape.iter().sum();
        let bytes = bytes(wr_id, length);
        let mut at = 0;
        let segments: Vec<_> = shape
            .iter()
            .map(|&length| {
                at += length;
                stage.a.filled(&bytes[at - length..at]).share()
            })
            .collect();
        let offset = GRANTED.start + 6000 * wr_id as usize;
        let posted = (stage.a.endpoint).post_gather_put(wr_id, &stage.at(offset), &segments);
        posted.expect("room");
        let ended = stage.ends(wr_id, WcStatus::Success);
        assert_eq!((ended.kind, ended.length), (WcKind::Put, length as u64));
        let back = ended
            .shared
            .into_iter()
            .chain(ended.segments.into_iter().flatten());
        assert_eq!(back.count(), shape.len());
        expected[offset..offset + length].copy_from_slice(&bytes);
        assert!(stage.window() == expected, "{shape:?}");
    }
    stage.all_has_ended();
}

#[test]
pub fn a_put_that_may_not_be_ends_once_as_that_and_the_pair_goes_on() {
    let mut stage = Stage::new(4);
    let good = stage.key;
    let puts = stage.count(FrameType::Put);
    for (wr_id, length) in [8, 1024, 40_000].into_iter().enumerate() {
        let wr_id = wr_id as u64;
        stage.key = RemoteKey::from_bits(good.to_bits() ^ 1 << 40);
        stage.put(wr_id, GRANTED.start, &bytes(1, length));
        let ended = stage.ends(wr_id, WcStatus::RemoteAccess);
        assert_eq!((ended.kind, ended.length), (WcKind::Put, length as u64));
        assert_eq!(ended.buffer.map(|buffer| buffer.len()), Some(length));
        stage.all_has_ended();
        stage.key = good;
        stage.message(wr_id);
        stage.receive(wr_id);
        stage.ends(wr_id, WcStatus::Success);
    }
    // What was behind those under way when the first failed hasn't gone.
    assert_eq!(puts.load(Ordering::Relaxed), 2 + 8);
    let status = stage.b.endpoint.query_pair(stage.b.pair).expect("open");
    assert_eq!(status.refused, 2 + 8, "each is counted");
    assert!(stage.window() == vec![0; LENGTH]);
}

#[test]
pub fn a_key_for_one_access_ends_with_it_and_leaves_its_place_to_the_next() {
    let mut stage = Stage::new(4);
    let (mut spent, mut wr_id) = (Vec::<RemoteKey>::new(), 0);
    for _ in 0..3 {
        let once = || {
            let (end, rights) = (&stage.b.endpoint, RemoteRights::WRITE);
            stage.window.grant_once(end, stage.b.pair, rights, GRANTED)
        };
        let keys: Vec<RemoteKey> = std::iter::from_fn(|| once().ok()).collect();
        assert!(!keys.is_empty() && keys.iter().all(|key| !spent.contains(key)));
        // Nobody has revoked those that were used.
        assert!(spent.is_empty() || spent.len().is_multiple_of(keys.len()));
        for &key in &keys {
            for status in [WcStatus::Success, WcStatus::RemoteAccess] {
                stage.key = key;
                stage.put(wr_id, GRANTED.start, &bytes(wr_id, 8));
                stage.ends(wr_id, status);
                stage.all_has_ended();
                wr_id += 1;
            }
        }
        spent.extend(keys);
        for key in spent.iter().step_by(3) {
            stage.window.revoke(*key).expect("revoked");
        }
    }
    let held = stage.0.window.into_buffer();
    let (_region, buffer) = held.expect("nothing can be written any more");
    assert_eq!(buffer[GRANTED.start..][..8], bytes(wr_id - 2, 8));
}

/// The first part of one is outside of what is granted, and the last of the other.
#[test]
pub fn a_put_of_which_one_part_may_not_be_ends_as_that_part() {
    for (offset, inside) in [
        (GRANTED.start - 1, 1024..3000),
        (GRANTED.end - 2999, 0..2048),
    ] {
        let mut stage = Stage::new(4);
        let bytes = bytes(2, 3000);
        stage.put(1, offset, &bytes);
        stage.ends(1, WcStatus::RemoteAccess);
        let mut expected = vec![0; LENGTH];
        expected[offset..][inside.clone()].copy_from_slice(&bytes[inside]);
        assert!(stage.window() == expected);
        stage.all_has_ended();
    }
}

#[test]
pub fn an_offset_never_wraps() {
    let mut stage = Stage::new(4);
    let rights = RemoteRights::WRITE;
    let all = stage
        .window
        .grant(&stage.b.endpoint, stage.b.pair, rights, ..);
    stage.key = all.expect("a key");
    for (wr_id, before) in [1023, 1024, 2048].into_iter().enumerate() {
        let offset = usize::MAX - before + 1;
        stage.put(wr_id as u64, offset, &bytes(3, 5000));
        stage.ends(wr_id as u64, WcStatus::RemoteAccess);
    }
    assert!(stage.window() == vec![0; LENGTH]);
}

#[test]
pub fn a_message_behind_a_long_put_finds_it_written() {
    let mut stage = Stage::new(2);
    let receives: Vec<_> = (0..6).collect();
    for &number in &receives {
        let receive = stage.b.receive(number);
        stage.b.post(number, &receive);
    }
    let mut expected = vec![0; LENGTH];
    let mut written = Vec::new();
    for number in receives {
        let offset = GRANTED.start + 9000 * number as usize;
        let bytes = bytes(number, 8500);
        stage.put(10 + number, offset, &bytes);
        stage.message(number);
        expected[offset..offset + 8500].copy_from_slice(&bytes);
        written.push(expected.clone());
    }
    // The program at A only looks: what is kept goes.
    for (number, expected) in (0..).zip(written) {
        let received = loop {
            stage.a.cq.is_ready();
            match stage.b.cq.wait(1_000) {
                Ok(received) => break received,
                Err(error) => assert_eq!(error, WaitError::Timeout),
            }
        };
        assert_eq!(received.wr_id, number);
        let end = GRANTED.start + 9000 * number as usize + 8500;
        assert!(stage.window()[..end] == expected[..end], "{number}");
    }
    for number in 0..6 {
        stage.ends(10 + number, WcStatus::Success);
        stage.ends(number, WcStatus::Success);
    }
    stage.all_has_ended();
}

#[test]
fn a_put_takes_as_many_completion_entries_as_parts_may_be_under_way_or_as_there_are() {
    for (completions, taken, again) in [
        (256, [3, 17], true),
        (16, [3, 16], false),
        (4, [3, 4], false),
    ] {
        for (length, taken) in [2000, 20_000].into_iter().zip(taken) {
            let mut stage = Stage::of(able_options(), 4, completions);
            stage.put(1, GRANTED.start, &bytes(1, length));
            assert_eq!(stage.a.cq.outstanding(), taken);
            assert_eq!(stage.a.endpoint.query().outstanding, 1);
            let free = completions - taken;
            let buffer = stage.a.filled(&bytes(2, 9000));
            let put = stage.at(GRANTED.start + 30_000);
            match stage.a.endpoint.post_put(2, &put, buffer) {
                Ok(_) => assert!(free >= 2),
                Err(refused) => {
                    assert_eq!(refused.error, PostError::CompletionQueueFull);
                    assert!(!again && free < 2);
                    stage.ends(1, WcStatus::Success);
                    let posted = stage.a.endpoint.post_put(2, &put, refused.buffer);
                    posted.expect("it is polled");
                }
            }
            while stage.a.next().wr_id != 2 {}
            let mut expected = vec![0; LENGTH];
            expected[GRANTED.start..][..length].copy_from_slice(&bytes(1, length));
            expected[GRANTED.start + 30_000..][..9000].copy_from_slice(&bytes(2, 9000));
            assert!(stage.window() == expected);
            stage.all_has_ended();
        }
    }
}

#[test]
pub fn puts_need_no_credit_and_those_in_front_of_a_message_go() {
    let mut stage = Stage::new(1);
    stage.message(1);
    stage.put(2, GRANTED.start, &bytes(2, 8));
    stage.put(3, GRANTED.start + 8, &bytes(3, 9000));
    stage.message(4);
    for wr_id in 1..4 {
        stage.ends(wr_id, WcStatus::Success);
    }
    assert!(stage.window()[GRANTED.start..][..8] == bytes(2, 8));
    assert!(stage.window()[GRANTED.start + 8..][..9000] == bytes(3, 9000));
    stage.receive(1);
    stage.ends(4, WcStatus::Success);
    stage.receive(4);
    stage.all_has_ended();
}

/// Two messages for one credit, and a put behind them.
fn behind_a_message(length: usize) -> (Stage, Request) {
    let mut stage = Stage::new(1);
    stage.message(1);
    stage.message(2);
    let put = stage.put(3, GRANTED.start, &bytes(3, length));
    stage.ends(1, WcStatus::Success);
    stage.a.pause(300_000);
    assert!(!stage.a.cq.is_ready());
    assert!(stage.window() == vec![0; LENGTH]);
    (stage, put)
}

#[test]
pub fn a_put_waits_behind_a_message_and_is_cancelled_or_times_out_while_that_waits_on() {
    for length in [8, 1500, 30_000] {
        for status in [WcStatus::Success, WcStatus::Cancelled, WcStatus::TimedOut] {
            let (mut stage, put) = behind_a_message(length);
            let before = stage.a.device.now();
            match status {
                WcStatus::Cancelled => {
                    stage.a.endpoint.cancel(9, put).expect("it waits");
                    let twice = stage.a.endpoint.cancel(9, put);
                    assert_eq!(twice, Err(PostError::NothingToCancel));
                }
                WcStatus::TimedOut => stage.a.endpoint.set_timeout(put, 0).expect("it waits"),
                _ => {
                    stage.receive(1);
                    stage.ends(2, WcStatus::Success);
                }
            }
            let ended = stage.ends(3, status);
            assert_eq!(ended.buffer.map(|buffer| buffer.len()), Some(length));
            if status == WcStatus::Success {
                stage.receive(2);
                assert!(stage.window()[GRANTED.start..][..length] == bytes(3, length));
            } else {
                assert!(stage.a.device.now() - before < CANCEL);
                stage.receive(1);
                stage.ends(2, WcStatus::Success);
                stage.receive(2);
                assert!(stage.window() == vec![0; LENGTH]);
            }
            stage.all_has_ended();
        }
    }
}

/// Parts of a put are on their way, and their acknowledgements don't come.
fn half_way() -> (Stage, Request, Arc<AtomicBool>) {
    let mut stage = Stage::new(4);
    let lost = stage.switch(1);
    let put = stage.put(3, GRANTED.start, &bytes(3, 50_000));
    stage.a.pause(3_000);
    stage.a.cq.is_ready();
    lost.store(true, Ordering::Relaxed);
    stage.a.pause(3_000);
    stage.a.cq.is_ready();
    assert_eq!(stage.a.endpoint.query_request(put), RequestState::Kept);
    (stage, put, lost)
}

/// The window has the front of the put, and nothing else.
fn front(stage: &Stage) -> usize {
    let (window, bytes) = (stage.window(), bytes(3, 50_000));
    let written = window[GRANTED.start..].chunks(1024);
    let same = written.zip(bytes.chunks(1024));
    let front = 1024 * same.take_while(|(a, b)| a[..b.len()] == **b).count();
    let mut expected = vec![0; LENGTH];
    expected[GRANTED.start..][..front].copy_from_slice(&bytes[..front]);
    assert!(window == expected);
    assert!((1024..=20 * 1024).contains(&front), "{front}");
    front
}

#[test]
pub fn a_put_that_is_cancelled_half_way_gives_its_buffer_back_when_nothing_is_under_way() {
    for timed in [false, true] {
        let (stage, put, lost) = half_way();
        match timed {
            false => drop(stage.a.endpoint.cancel(9, put).expect("it goes on")),
            true => stage.a.endpoint.set_timeout(put, 0).expect("it goes on"),
        }
        for _ in 0..20 {
            stage.a.pause(500);
            assert!(stage.a.cq.poll().is_none(), "the card may read the buffer");
        }
        lost.store(false, Ordering::Relaxed);
        let status = match timed {
            false => WcStatus::Cancelled,
            true => WcStatus::TimedOut,
        };
        let ended = stage.ends(3, status);
        assert_eq!(ended.buffer.map(|buffer| buffer.len()), Some(50_000));
        let written = front(&stage);
        stage.all_has_ended();
        assert_eq!(front(&stage), written);
    }
}

#[test]
pub fn a_put_that_has_gone_is_not_cancelled() {
    for length in [1000, 5000] {
        let mut stage = Stage::new(4);
        let lost = stage.switch(1);
        lost.store(true, Ordering::Relaxed);
        let put = stage.put(1, GRANTED.start, &bytes(1, length));
        stage.a.pause(5_000);
        stage.a.endpoint.cancel(2, put).expect("it hasn't ended");
        lost.store(false, Ordering::Relaxed);
        let late = stage.a.next();
        assert_eq!(
            (late.kind, late.status),
            (WcKind::Cancel, WcStatus::TooLate)
        );
        stage.ends(1, WcStatus::Success);
        assert!(stage.window()[GRANTED.start..][..length] == bytes(1, length));
        stage.all_has_ended();
    }
}

/// What ends a put that is half-way, and all that is behind it.
#[test]
pub fn a_put_ends_once_with_whatever_ends_its_pair() {
    type Happens = fn(&Stage);
    let ways: [(Happens, &[WcStatus]); 6] = [
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
        (
            |stage| {
                stage.fabric.lose_frames(0, u32::MAX);
                stage.fabric.lose_frames(1, u32::MAX);
            },
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
        let (stage, _, _lost) = half_way();
        stage.message(4);
        happens(&stage);
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
            let length = if wr_id == 3 { 50_000 } else { 0 };
            assert_eq!(ended.buffer.map(|buffer| buffer.len()), Some(length));
        }
        assert!(stage.a.cq.poll().is_none(), "way {way}");
        assert_eq!((stage.a.cq.outstanding(), stage.a.cq.strays()), (0, 0));
        front(&stage);
    }
}

/// A put is kept behind a message and no part of it has gone.
#[test]
fn a_put_of_which_nothing_has_gone_is_flushed_in_its_order() {
    for closes_pair in [true, false] {
        let mut stage = Stage::new(1);
        let limits = SendLimits {
            window: 1,
            ..SendLimits::default()
        };
        stage
            .a
            .endpoint
            .set_send_limits(stage.a.pair, limits)
            .expect("open");
        stage.message(1);
        stage.message(2);
        for wr_id in 3..6 {
            stage.put(wr_id, GRANTED.start, &bytes(wr_id, 4000));
        }
        stage.ends(1, WcStatus::Success);
        stage.a.pause(20_000);
        match closes_pair {
            true => stage.a.endpoint.close_pair(stage.a.pair).expect("closed"),
            false => stage.a.endpoint.close().expect("closed"),
        }
        for wr_id in 2..6 {
            let ended = stage.a.cq.wait(PATIENCE).expect("it ends");
            assert_eq!((ended.wr_id, ended.status), (wr_id, WcStatus::Flushed));
        }
        assert_eq!((stage.a.cq.outstanding(), stage.a.cq.strays()), (0, 0));
    }
}

#[test]
fn a_disconnect_lets_a_put_go_first() {
    let mut stage = Stage::new(1);
    let bytes = bytes(1, 30_000);
    stage.put(1, GRANTED.start, &bytes);
    let refused = stage.a.endpoint.begin_disconnect(stage.a.pair, 0);
    refused.expect_err("parts are kept");
    stage.a.endpoint.disconnect(stage.a.pair, 0).expect("ended");
    stage.ends(1, WcStatus::Success);
    assert!(stage.window()[GRANTED.start..][..30_000] == bytes);
}

#[test]
fn a_put_goes_on_though_the_program_takes_no_completion() {
    let mut stage = Stage::new(2);
    // Completions that nobody polls are in front of those of the parts.
    for wr_id in 0..20 {
        stage.put(wr_id, GRANTED.start, &bytes(wr_id, 8));
    }
    stage.a.pause(20_000);
    let bytes = bytes(20, 50_000);
    stage.put(20, GRANTED.start, &bytes);
    for _ in 0..1000 {
        stage.a.pause(1_000);
        assert!(stage.a.endpoint.poll_event().expect("a card").is_none());
    }
    assert!(stage.window()[GRANTED.start..][..50_000] == bytes);
    for wr_id in 0..=20 {
        stage.ends(wr_id, WcStatus::Success);
    }
    stage.all_has_ended();
}

#[test]
fn puts_without_completion_and_copies_and_lists_of_them() {
    let mut stage = Stage::new(4);
    let mut expected = vec![0; LENGTH];
    let mut shared = Vec::new();
    for (wr_id, length) in [5, 900, 7000, 16].into_iter().enumerate() {
        let offset = GRANTED.start + 8000 * wr_id;
        let bytes = bytes(wr_id as u64, length);
        let buffer = stage.a.filled(&bytes).share();
        let put = stage.at(offset);
        let posted = (stage.a.endpoint).post_unsignaled_put(wr_id as u64, &put, buffer.clone());
        posted.expect("room");
        shared.push(buffer);
        expected[offset..offset + length].copy_from_slice(&bytes);
    }
    let copied = stage.at(GRANTED.start + 40_000);
    stage
        .a
        .endpoint
        .post_inject_put(5, &copied, b"copied")
        .expect("room");
    expected[GRANTED.start + 40_000..][..6].copy_from_slice(b"copied");
    let list = [6, 7].map(|wr_id| SendWr {
        wr_id,
        send: stage.at(GRANTED.start + 42_000 + 3000 * (wr_id as usize - 6)),
        flags: SendFlags::empty(),
        buffer: stage.a.filled(&bytes(wr_id, 2000 * (wr_id as usize - 5))),
    });
    for wr in &list {
        expected[wr.send.offset as usize..][..wr.buffer.len()].copy_from_slice(&wr.buffer);
    }
    let mut posted = Vec::new();
    stage
        .a
        .endpoint
        .post_send_list(list, &mut posted)
        .expect("room");
    assert_eq!(posted.len(), 2);
    stage.ends(6, WcStatus::Success);
    stage.ends(7, WcStatus::Success);
    assert!(stage.window() == expected);
    assert!(
        shared
            .into_iter()
            .all(|shared| shared.try_into_buffer().is_ok())
    );
    stage.all_has_ended();
    // Their errors are told.
    stage.key = RemoteKey::from_bits(1);
    let shared = stage.a.filled(&bytes(1, 3000)).share();
    let put = stage.at(GRANTED.start);
    let posted = stage.a.endpoint.post_unsignaled_put(8, &put, shared);
    posted.expect("room");
    let ended = stage.ends(8, WcStatus::RemoteAccess);
    assert_eq!(ended.shared.map(|shared| shared.len()), Some(3000));
    stage
        .a
        .endpoint
        .post_inject_put(9, &put, b"copied")
        .expect("room");
    stage.ends(9, WcStatus::RemoteAccess);
    stage.all_has_ended();
}

#[test]
pub fn what_revokes_or_drains_messages_does_not_concern_puts() {
    let (mut stage, _) = behind_a_message(5000);
    let group = Group::new(&stage.a.endpoint, &[(1, stage.a.pair)], 0).expect("a group");
    let context = MessageSet::of_context(0);
    let revoked = stage.a.endpoint.revoke(&group, &context, PATIENCE);
    assert_eq!(revoked.expect("revoked").swept.sends, 1);
    stage.ends(2, WcStatus::Revoked);
    stage.ends(3, WcStatus::Success);
    stage.put(4, GRANTED.start + 5000, &bytes(4, 100));
    stage.ends(4, WcStatus::Success);
    assert!(stage.window()[GRANTED.start..][..5000] == bytes(3, 5000));
    stage.all_has_ended();
}

#[test]
fn what_can_not_be_posted_is_refused_with_its_buffer() {
    let mut stage = Stage::new(1);
    let put = stage.at(GRANTED.start);
    let list = [SendWr {
        wr_id: 1,
        send: put,
        flags: SendFlags::READY,
        buffer: stage.a.filled(b"ready"),
    }];
    let refused = stage.a.endpoint.post_send_list(list, &mut Vec::new());
    let refused = refused.expect_err("no receive is waited for");
    assert_eq!(refused.error, PostError::Unsupported);
    assert_eq!(refused.request.buffer[..], *b"ready");
    let copy = stage.a.endpoint.post_inject_put(1, &put, &[0; 1025]);
    assert_eq!(copy, Err(PostError::TooLong));
    let mut options = able_options();
    options.sizes.capabilities &= !abi::capability::CAPABILITY_PUT;
    let mut bare = Stage::of(options, 1, 16);
    let put = bare.at(GRANTED.start);
    let buffer = bare.a.filled(b"mine");
    let refused = bare.a.endpoint.post_put(1, &put, buffer);
    let refused = refused.expect_err("the card has no puts");
    assert_eq!(refused.error, PostError::Unsupported);
    assert_eq!(refused.buffer[..], *b"mine");
    let copy = bare.a.endpoint.post_inject_put(1, &put, b"");
    assert_eq!(copy, Err(PostError::Unsupported));
}

/// Puts of any length and messages in turn, over wires that lose frames, with cancels and time-outs among them.
#[test]
fn random_puts_and_messages_go_in_order_over_bad_wires() {
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
        // What each number has come to, and what a put with it writes.
        let (mut written, mut pending) = (Vec::new(), 0);
        let mut statuses = std::collections::BTreeMap::new();
        let (mut number, mut sent, mut received) = (0_u64, 0, 0);
        while number < 60 || pending > 0 {
            if number < 60 && rng.random_ratio(1, 3) {
                let done = match rng.random_range(0..3) {
                    0 => {
                        let send = stage.a.send(7);
                        let buffer = stage.a.filled(&number.to_le_bytes());
                        let posted = stage.a.endpoint.post_tagged_send(number, &send, buffer);
                        sent += u64::from(posted.is_ok());
                        posted.map_err(|refused| refused.error)
                    }
                    _ => {
                        let most = [40, 1100, 12_000][rng.random_range(0..3)];
                        let length = rng.random_range(0..most);
                        let offset = rng.random_range(GRANTED.start..GRANTED.end - length);
                        let bytes = bytes(number, length);
                        let put = stage.at(offset);
                        let buffer = stage.a.filled(&bytes);
                        let posted = stage.a.endpoint.post_put(number, &put, buffer);
                        if posted.is_ok() {
                            written.push((number, offset, bytes));
                        }
                        posted.map_err(|refused| refused.error)
                    }
                };
                match done {
                    Ok(request) => {
                        number += 1;
                        pending += 1;
                        if rng.random_ratio(1, 10) {
                            let cycles = rng.random_range(0..100_000);
                            stage
                                .a
                                .endpoint
                                .set_timeout(request, cycles)
                                .expect("posted");
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
                    let again = statuses.insert(ended.wr_id, ended.status);
                    assert_eq!(again, None, "{} has ended before", ended.wr_id);
                    pending -= 1;
                }
                Err(error) => assert_eq!(error, WaitError::Timeout),
            }
        }
        let mut last = vec![0; LENGTH];
        // What was cancelled may be written as far as it had got, and no further.
        let mut may_be = vec![Vec::new(); LENGTH];
        for (number, offset, bytes) in written {
            let whole = statuses[&number] == WcStatus::Success;
            assert!(whole || statuses[&number] == WcStatus::TimedOut);
            for (at, byte) in (offset..).zip(bytes) {
                if whole {
                    last[at] = byte;
                    may_be[at].clear();
                }
                may_be[at].push(byte);
            }
        }
        for (at, byte) in stage.window().into_iter().enumerate() {
            let sound = byte == last[at] || may_be[at].contains(&byte);
            assert!(sound, "byte {at}");
        }
        stage.all_has_ended();
    }
}
