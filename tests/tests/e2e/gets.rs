//! Gets on whole cards: they read what was granted and nothing else, their answers go into their buffers and nowhere else, and a buffer is the program's
//! again when its get has ended, whatever becomes of the wire and of the peer.

use abi::wire::FrameType;
use host_driver::{Buffer, Counter, Get, Put, RemoteKey, RemoteRights, WcKind, WcStatus, Window};
use posthorn_tests::cards::{both, both_over};
use posthorn_tests::frames::{is, number};
use posthorn_tests::side::{PATIENCE, Side};
use posthorn_tests::wires::{Tally, Wires};
use sim::fabric::{LinkFilter, Passing};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::lent::{BLANK, LENGTH, bytes, contents, lend};

/// Long enough for whatever is on its way to end.
const LONG: u64 = 20_000;

/// Fills the window of rank 0, before anybody reads it.
fn fill(me: &Side, window: Option<&Window>) -> Vec<u8> {
    let all = bytes(0x3c, LENGTH);
    if let Some(window) = window {
        window.write(0, &all);
    }
    me.meet();
    all
}

/// Reads from the window of rank 0 into this buffer.
fn get_into(me: &Side, wr_id: u64, key: RemoteKey, offset: usize, buffer: Buffer) {
    let get = Get {
        pair: me.pair(0),
        key,
        offset: offset as u64,
    };
    me.endpoint.post_get(wr_id, &get, buffer).expect("posted");
}

/// The same into a buffer of its own.
fn get(me: &mut Side, wr_id: u64, key: RemoteKey, offset: usize, length: usize) {
    let mut buffer = me.buffer_at(wr_id as usize % 64, length);
    buffer.fill(BLANK);
    get_into(me, wr_id, key, offset, buffer);
}

/// The next completion is that of a get, which has read this.
#[track_caller]
fn has_read(me: &mut Side, wr_id: u64, wanted: &[u8]) {
    let done = me.completion();
    let told = (done.wr_id, done.kind, done.status, done.length);
    let length = wanted.len() as u64;
    assert_eq!(told, (wr_id, WcKind::Get, WcStatus::Success, length));
    assert!(
        done.buffer.expect("as posted")[..] == *wanted,
        "get {wr_id}"
    );
}

/// The next completion is that of a get that has read nothing.
#[track_caller]
fn is_refused(me: &mut Side, wr_id: u64) {
    let done = me.completion();
    assert_eq!((done.wr_id, done.status), (wr_id, WcStatus::RemoteAccess));
    let buffer = done.buffer.expect("as posted");
    assert!(buffer.iter().all(|byte| *byte == BLANK), "get {wr_id}");
}

#[test]
pub(crate) fn a_get_reads_what_was_granted_at_any_length_and_alignment_and_writes_its_buffer_only()
{
    let report = both("tiny", 2, 501, |host| {
        let mut me = Side::open(&host);
        let (window, key) = lend(&me, RemoteRights::READ);
        let all = fill(&me, window.as_ref());
        if me.rank() == 1 {
            let lengths = [0, 1, 7, 8, 9, 16, 17, 63, 65, 1023, 1024, 1025, 2500];
            for (k, length) in lengths.into_iter().enumerate() {
                let offset = 3 + 101 * k;
                // Its neighbours in memory stay as they are.
                let mut behind = me.buffer_at(k, 5 + length + 9);
                behind.fill(BLANK);
                let before = behind.split_to(5);
                let buffer = behind.split_to(length);
                get_into(&me, k as u64, key, offset, buffer);
                has_read(&mut me, k as u64, &all[offset..][..length]);
                let beside = before.iter().chain(&behind[..]);
                assert!(beside.into_iter().all(|byte| *byte == BLANK));
            }
            get(&mut me, 99, key, LENGTH - 2500, 2500);
            has_read(&mut me, 99, &all[LENGTH - 2500..]);
        }
        me.meet();
        if let Some(window) = &window {
            assert_eq!(contents(window), all, "nobody writes there");
        }
        me.meet();
        me.finish();
    });
    assert!(report.credit_checks > 0, "the monitor has seen the pair");
}

#[test]
pub(crate) fn a_get_that_may_not_be_is_an_error_of_its_own_and_the_pair_goes_on() {
    both("tiny", 3, 502, |host| {
        let mut me = Side::open(&host);
        let (window, key) = lend(&me, RemoteRights::READ | RemoteRights::WRITE);
        let all = fill(&me, window.as_ref());
        // Rank 1 has a key that writes only, too.
        let writes = window.as_ref().map(|window| {
            let key = window.grant(&me.endpoint, me.pair(1), RemoteRights::WRITE, ..);
            key.expect("a key").to_bits()
        });
        let known = host.all_gather(writes.unwrap_or(key.to_bits()).to_le_bytes().to_vec());
        let known = known.expect("all ranks");
        let of = |rank: usize| {
            let bits = known[rank][..].try_into().expect("eight");
            RemoteKey::from_bits(u64::from_le_bytes(bits))
        };
        if me.rank() == 1 {
            let wrong = RemoteKey::from_bits(key.to_bits() ^ 1 << 40);
            let absent = RemoteKey::from_bits(key.to_bits() | 0x3f);
            let bad = [
                (wrong, 0),
                (absent, 0),
                (key, LENGTH - 7),
                (key, usize::MAX - 3),
                (of(0), 0),
                (of(2), 0),
            ];
            for (k, (key, offset)) in bad.into_iter().enumerate() {
                get(&mut me, k as u64, key, offset, 8);
                is_refused(&mut me, k as u64);
            }
            // Nothing is read, so nobody is asked.
            get(&mut me, 8, wrong, 0, 0);
            has_read(&mut me, 8, &[]);
            get(&mut me, 9, key, 8, 100);
            has_read(&mut me, 9, &all[8..108]);
        }
        me.meet();
        // The third's keys are revoked; the other's are not.
        if me.rank() == 0 {
            me.endpoint.revoke_peer(me.pair(2)).expect("revoked");
        }
        me.meet();
        if me.rank() == 1 {
            get(&mut me, 10, key, 16, 8);
            has_read(&mut me, 10, &all[16..24]);
        } else if me.rank() == 2 {
            get(&mut me, 10, key, 16, 8);
            is_refused(&mut me, 10);
        }
        me.meet();
        if me.rank() == 0 {
            assert_eq!(me.pair_status(1).refused, 6);
            assert_eq!(me.pair_status(2).refused, 1);
        }
        me.meet();
        me.finish();
    });
}

#[test]
fn gets_need_neither_a_receive_nor_a_credit_and_what_is_behind_completes_behind() {
    both("tiny", 2, 503, |host| {
        let mut me = Side::open(&host);
        let (window, key) = lend(&me, RemoteRights::READ | RemoteRights::WRITE);
        let mut all = fill(&me, window.as_ref());
        if me.rank() == 1 {
            // Every envelope holds a message that nobody receives.
            for number in 0..8 {
                me.send(0, 1, number, 8);
                assert_eq!(me.statuses(1), [(number, WcStatus::Success)]);
            }
            for k in 0..20 {
                get(&mut me, 100 + k, key, 64 * k as usize, 64);
            }
            for k in 0..20 {
                has_read(&mut me, 100 + k, &all[64 * k as usize..][..64]);
            }
            // It reads what the put in front of it has written.
            let mut buffer = me.buffer_at(3, 700);
            buffer.copy_from_slice(&bytes(9, 700));
            let put = Put {
                pair: me.pair(0),
                key,
                offset: 50,
            };
            all[50..750].copy_from_slice(&bytes(9, 700));
            me.endpoint.post_put(200, &put, buffer).expect("posted");
            get(&mut me, 201, key, 0, 1024);
            assert_eq!(me.statuses(1), [(200, WcStatus::Success)]);
            has_read(&mut me, 201, &all[..1024]);
            // A message waits, and so does the get behind it.
            me.send(0, 1, 8, 8);
            get(&mut me, 120, key, 4000, 8);
            me.assert_silent(LONG);
        }
        me.meet();
        if me.rank() == 0 {
            for number in 0..9 {
                me.receive(number, Some(1), 1, 8);
                assert_eq!(me.statuses(1), [(number, WcStatus::Success)]);
            }
        } else {
            assert_eq!(me.statuses(1), [(8, WcStatus::Success)]);
            has_read(&mut me, 120, &all[4000..4008]);
        }
        me.meet();
        me.finish();
    });
}

/// Loses the first frame of this kind.
fn lose_first(kind: FrameType) -> impl FnMut(Passing, &mut Vec<Passing>) + Send {
    let mut lost = false;
    move |passing, out: &mut Vec<Passing>| {
        if !lost && is(&passing, kind) {
            lost = true;
            return;
        }
        out.push(passing);
    }
}

/// Gets 4,096 bytes and a message behind them, over wires of which one frame is lost.
fn over_a_wire_that_loses(kind: FrameType, seed: u64) {
    let wires = || Wires::tapped(LinkFilter::ALL, lose_first(kind));
    both_over("tiny", 2, seed, wires, |host| {
        let mut me = Side::open(&host);
        let (window, key) = lend(&me, RemoteRights::READ);
        let all = fill(&me, window.as_ref());
        if me.rank() == 1 {
            get(&mut me, 1, key, 0, LENGTH);
            me.send(0, 1, 2, 8);
            has_read(&mut me, 1, &all);
            assert_eq!(me.statuses(1), [(2, WcStatus::Success)]);
        } else {
            me.receive(2, Some(1), 1, 8);
            assert_eq!(me.statuses(1), [(2, WcStatus::Success)]);
        }
        me.meet();
        me.finish();
    });
}

#[test]
pub(crate) fn a_get_whose_answer_is_lost_is_answered_again() {
    over_a_wire_that_loses(FrameType::GetAnswer, 504);
}

#[test]
fn a_get_that_is_lost_goes_again() {
    over_a_wire_that_loses(FrameType::Get, 505);
}

/// Keeps the answers back until the pair has asked so often whether its peer is there. How many gets go since it asked first is counted.
fn answers_behind_asks(
    most: usize,
    gets: Arc<AtomicU64>,
) -> impl FnMut(Passing, &mut Vec<Passing>) + Send {
    let (mut held, mut asks) = (Vec::new(), 0);
    move |passing, out: &mut Vec<Passing>| {
        asks += usize::from(is(&passing, FrameType::Ask));
        if asks > 0 && is(&passing, FrameType::Get) {
            gets.fetch_add(1, Ordering::Relaxed);
        }
        match is(&passing, FrameType::GetAnswer) && asks < most {
            true => held.push(passing),
            false => out.push(passing),
        }
        if asks >= most {
            out.append(&mut held);
        }
    }
}

/// A peer that has the gets of many others in front answers late: it is asked whether it is there, and for nothing that it has.
#[test]
pub(crate) fn a_get_whose_answer_comes_late_is_not_asked_for_again() {
    let again = Tally::default();
    let wires = || Wires::tapped(LinkFilter::ALL, answers_behind_asks(3, again.next()));
    both_over("tiny", 2, 509, wires, |host| {
        let mut me = Side::open(&host);
        let (window, key) = lend(&me, RemoteRights::READ);
        let all = fill(&me, window.as_ref());
        if me.rank() == 1 {
            for k in 0..4 {
                get(&mut me, k, key, 100 * k as usize, 700);
            }
            for k in 0..4 {
                has_read(&mut me, k, &all[100 * k as usize..][..700]);
            }
            assert!(me.count(Counter::CreditAsks) >= 3);
        }
        me.meet();
        me.finish();
    });
    let again = again.counts();
    assert!(again.iter().all(|again| *again == 0), "{again:?}");
}

/// Loses each answer.
fn no_answer() -> impl FnMut(Passing, &mut Vec<Passing>) + Send {
    move |passing, out: &mut Vec<Passing>| {
        if !is(&passing, FrameType::GetAnswer) {
            out.push(passing);
        }
    }
}

#[test]
pub(crate) fn a_peer_that_has_a_get_and_never_answers_fails() {
    let wires = || Wires::tapped(LinkFilter::ALL, no_answer());
    both_over("tiny", 2, 510, wires, |host| {
        let mut me = Side::open(&host);
        let (window, key) = lend(&me, RemoteRights::READ);
        fill(&me, window.as_ref());
        if me.rank() == 1 {
            get(&mut me, 1, key, 0, 100);
            // 262,144 cycles: `ANSWER_TIMEOUTS` time-outs before each of `RETRY_LIMIT` more questions, and after the last.
            me.assert_silent(PATIENCE);
            let done = me.completion();
            assert_eq!((done.wr_id, done.status), (1, WcStatus::PeerFailed));
            let buffer = done.buffer.expect("as posted");
            assert!(buffer.iter().all(|byte| *byte == BLANK));
        }
        me.meet();
    });
}

/// Keeps the first answer back until a second one has gone, and then brings it twice.
fn late_answer() -> impl FnMut(Passing, &mut Vec<Passing>) + Send {
    let mut held: Option<Passing> = None;
    let mut done = false;
    move |passing, out: &mut Vec<Passing>| {
        let answers = is(&passing, FrameType::GetAnswer);
        if answers && !done && held.is_none() {
            held = Some(passing);
            return;
        }
        out.push(passing);
        if answers && let Some(late) = held.take() {
            done = true;
            out.push(late.clone());
            out.push(late);
        }
    }
}

/// An answer that comes when its get has ended writes nothing: the buffer is the program's.
#[test]
pub(crate) fn an_answer_that_comes_late_or_twice_writes_nothing() {
    let wires = || Wires::tapped(LinkFilter::ALL, late_answer());
    both_over("tiny", 2, 506, wires, |host| {
        let mut me = Side::open(&host);
        let (window, key) = lend(&me, RemoteRights::READ);
        let all = fill(&me, window.as_ref());
        if me.rank() == 1 {
            get(&mut me, 1, key, 8, 256);
            let done = me.completion();
            assert_eq!((done.wr_id, done.status), (1, WcStatus::Success));
            let mut buffer = done.buffer.expect("as posted");
            assert!(buffer[..] == all[8..264]);
            buffer.fill(BLANK);
            me.pause(LONG);
            assert!(buffer.iter().all(|byte| *byte == BLANK));
            assert!(me.count(Counter::Duplicates) > 0, "it was dropped");
            get(&mut me, 2, key, 8, 256);
            has_read(&mut me, 2, &all[8..264]);
        }
        me.meet();
        me.finish();
    });
}

/// Number of the message behind which the answer comes that was kept back.
const RECOVERED: u64 = 4711;

/// Keeps the last answer back until message [`RECOVERED`] has passed.
fn slow() -> impl FnMut(Passing, &mut Vec<Passing>) + Send {
    let mut held: Option<Passing> = None;
    move |passing, out: &mut Vec<Passing>| {
        if is(&passing, FrameType::GetAnswer) {
            held = Some(passing);
            return;
        }
        let releases = number(&passing) == Some(RECOVERED);
        out.push(passing);
        out.extend(held.take_if(|_| releases));
    }
}

/// A get that fails with its pair gives its buffer back at once, and the answer that comes then is dropped.
#[test]
fn the_buffer_of_a_get_that_fails_with_its_pair_is_never_written_again() {
    let wires = || Wires::tapped(LinkFilter::ALL, slow());
    both_over("tiny", 3, 507, wires, |host| {
        let mut me = Side::open(&host);
        let (window, key) = lend(&me, RemoteRights::READ);
        fill(&me, window.as_ref());
        let mut ended = None;
        if me.rank() == 1 {
            get(&mut me, 1, key, 0, 512);
            me.assert_silent(2000);
            me.endpoint.declare_failed(me.pair(0)).expect("declared");
            let done = me.completion();
            assert_eq!((done.wr_id, done.status), (1, WcStatus::PeerFailed));
            ended = done.buffer;
        }
        me.meet();
        if me.rank() == 2 {
            me.send(0, 1, RECOVERED, 8);
            assert_eq!(me.statuses(1), [(RECOVERED, WcStatus::Success)]);
        } else if me.rank() == 0 {
            me.receive(1, Some(2), 1, 8);
            assert_eq!(me.statuses(1), [(1, WcStatus::Success)]);
        }
        me.meet();
        if let Some(buffer) = ended {
            me.pause(LONG);
            assert!(buffer.iter().all(|byte| *byte == BLANK));
            assert!(me.count(Counter::PairErrors) > 0, "the answer was dropped");
        }
        me.meet();
    });
}

/// Whoever loses a key between two gets has the first and not the second, though others read the same bytes all the while.
#[test]
fn a_key_that_is_revoked_reads_no_more_and_others_read_on() {
    both("tiny", 3, 508, |host| {
        let mut me = Side::open(&host);
        let (window, key) = lend(&me, RemoteRights::READ);
        let all = fill(&me, window.as_ref());
        for round in 0..4 {
            if me.rank() > 0 {
                get(&mut me, round, key, 100, 1500);
                match me.rank() == 1 && round >= 2 {
                    true => {
                        let done = me.completion();
                        assert_eq!(done.status, WcStatus::RemoteAccess);
                        let buffer = done.buffer.expect("as posted");
                        assert!(buffer.iter().all(|byte| *byte == BLANK));
                    }
                    false => has_read(&mut me, round, &all[100..1600]),
                }
            } else if round == 1 {
                me.meet();
                me.endpoint.revoke_peer(me.pair(1)).expect("revoked");
            }
            if me.rank() > 0 && round == 1 {
                me.meet();
            }
            me.meet();
        }
        let _ = window;
        me.meet();
        me.finish();
    });
}
