//! Puts on whole cards: they land where they were granted and nowhere else, whatever the peer's program does, and what may not be is an error.

use std::sync::atomic::{AtomicBool, Ordering};

use abi::wire::FrameType;
use host_driver::{Counter, Put, RemoteKey, RemoteRights, WcKind, WcStatus, Window};
use posthorn_tests::cards::{both, both_over};
use posthorn_tests::frames::{is, number};
use posthorn_tests::side::Side;
use posthorn_tests::wires::Wires;
use sim::fabric::{LinkFilter, Passing};

use crate::lent::{LENGTH, bytes, contents, lend};

/// Long enough for whatever is on its way to end.
const LONG: u64 = 20_000;

/// Puts bytes into the window of rank 0, in a buffer of its own.
fn put(me: &mut Side, wr_id: u64, key: RemoteKey, offset: u64, bytes: &[u8]) {
    let mut buffer = me.buffer_at(wr_id as usize % 64, bytes.len());
    buffer.copy_from_slice(bytes);
    let put = Put {
        pair: me.pair(0),
        key,
        offset,
    };
    me.endpoint.post_put(wr_id, &put, buffer).expect("posted");
}

#[test]
pub(crate) fn a_put_lands_where_it_was_granted_at_any_length_and_alignment_and_nowhere_else() {
    let report = both("tiny", 2, 201, |host| {
        let mut me = Side::open(&host);
        let (window, key) = lend(&me, RemoteRights::WRITE);
        let mut wanted = vec![0; LENGTH];
        let mut at = 3;
        for (k, length) in [0, 1, 7, 8, 9, 16, 17, 63, 65, 1023]
            .into_iter()
            .enumerate()
        {
            let sent = bytes(k as u8, length);
            wanted[at..][..length].copy_from_slice(&sent);
            if me.rank() == 1 {
                put(&mut me, k as u64, key, at as u64, &sent);
                let done = me.completion();
                assert_eq!(
                    (done.wr_id, done.kind, done.status, done.length),
                    (k as u64, WcKind::Put, WcStatus::Success, length as u64)
                );
            }
            at += length + 5;
        }
        // One in parts, to the last byte.
        let sent = bytes(77, 2500);
        wanted[LENGTH - 2500..].copy_from_slice(&sent);
        if me.rank() == 1 {
            put(&mut me, 99, key, LENGTH as u64 - 2500, &sent);
            let done = me.completion();
            assert_eq!((done.status, done.length), (WcStatus::Success, 2500));
            // What is posted behind a put finds it written.
            put(&mut me, 100, key, 0, &[9]);
            me.send(0, 5, 6, 8);
            assert_eq!(
                me.statuses(2),
                [(100, WcStatus::Success), (6, WcStatus::Success)]
            );
        } else {
            me.receive(1, Some(1), 5, 8);
            assert_eq!(me.statuses(1), [(1, WcStatus::Success)]);
        }
        wanted[0] = 9;
        if let Some(window) = &window {
            assert_eq!(contents(window), wanted);
        }
        me.meet();
        me.finish();
    });
    assert!(report.credit_checks > 0, "the monitor has seen the pair");
}

#[test]
pub(crate) fn a_put_that_may_not_be_is_an_error_of_its_own_and_the_pair_goes_on() {
    both("tiny", 3, 202, |host| {
        let mut me = Side::open(&host);
        let (window, key) = lend(&me, RemoteRights::WRITE | RemoteRights::READ);
        let end = LENGTH as u64;
        // Everybody knows everybody's key.
        let known = host.all_gather(key.to_bits().to_le_bytes().to_vec());
        let known = known.expect("all ranks");
        if me.rank() == 1 {
            let wrong = RemoteKey::from_bits(key.to_bits() ^ 1 << 40);
            let absent = RemoteKey::from_bits(key.to_bits() | 0x3f);
            for (k, (key, offset)) in [(wrong, 0), (absent, 0), (key, end - 7), (key, u64::MAX - 3)]
                .into_iter()
                .enumerate()
            {
                put(&mut me, k as u64, key, offset, &[0xff; 8]);
                assert_eq!(me.statuses(1), [(k as u64, WcStatus::RemoteAccess)]);
            }
            put(&mut me, 9, key, 8, &[7; 8]);
            assert_eq!(me.statuses(1), [(9, WcStatus::Success)]);
        } else if me.rank() == 2 {
            let bits = known[1][..].try_into().expect("eight");
            let stolen = RemoteKey::from_bits(u64::from_le_bytes(bits));
            put(&mut me, 2, stolen, 0, &[0xff; 8]);
            assert_eq!(me.statuses(1), [(2, WcStatus::RemoteAccess)]);
        }
        me.meet();
        // The third's keys are revoked; the other's are not.
        if me.rank() == 0 {
            me.endpoint.revoke_peer(me.pair(2)).expect("revoked");
        }
        me.meet();
        if me.rank() > 0 {
            put(&mut me, 10, key, 16, &[7; 8]);
            let wanted = [WcStatus::Success, WcStatus::RemoteAccess][me.rank() - 1];
            assert_eq!(me.statuses(1), [(10, wanted)]);
        }
        me.meet();
        if let Some(window) = window {
            let mut wanted = vec![0; LENGTH];
            wanted[8..24].fill(7);
            assert_eq!(contents(&window), wanted);
            assert_eq!(me.pair_status(1).refused, 4);
            assert_eq!(me.pair_status(2).refused, 2);
        }
        me.meet();
        me.finish();
    });
}

/// Keys for one access of rank 0's window, for rank 1, as many as the card has places for; all ranks know them.
fn keys_for_one_access(me: &Side, window: Option<&Window>) -> Vec<RemoteKey> {
    let keys = window.map_or(vec![], |window| {
        let once = || window.grant_once(&me.endpoint, me.pair(1), RemoteRights::WRITE, ..);
        let keys: Vec<RemoteKey> = (0..8).map(|_| once().expect("a key")).collect();
        let full = once().expect_err("all places are taken");
        assert_eq!(full.to_string(), "the card refused Grant: NoResource (0)");
        keys
    });
    let bits = keys.iter().flat_map(|key| key.to_bits().to_le_bytes());
    let told = me.host.all_gather(bits.collect()).expect("all ranks");
    let (words, _) = told[0].as_chunks();
    let bits = words.iter().map(|&word| u64::from_le_bytes(word));
    bits.map(RemoteKey::from_bits).collect()
}

#[test]
pub(crate) fn a_key_for_one_access_ends_with_it_and_leaves_its_place_to_the_next() {
    both("tiny", 2, 207, |host| {
        let mut me = Side::open(&host);
        let rights = RemoteRights::WRITE;
        let window = (me.rank() == 0).then(|| me.pd.reg_window(LENGTH, rights).expect("a window"));
        let mut spent: Vec<RemoteKey> = vec![];
        for round in 0..3 {
            // Nobody has revoked the keys of the round before.
            let keys = keys_for_one_access(&me, window.as_ref());
            assert!(keys.iter().all(|key| !spent.contains(key)));
            if me.rank() == 1 {
                for (k, &key) in keys.iter().enumerate() {
                    let byte = 1 + (8 * round + k) as u8;
                    put(&mut me, k as u64, key, 8 * k as u64, &[byte; 8]);
                }
                let done = me.statuses(8);
                assert!(
                    done.iter().all(|(_, status)| *status == WcStatus::Success),
                    "{done:?}"
                );
                // What was good once isn't twice, nor behind the next one of its place.
                for key in spent.iter().chain(&keys).step_by(5) {
                    put(&mut me, 9, *key, 0, &[0; 8]);
                    assert_eq!(me.statuses(1), [(9, WcStatus::RemoteAccess)]);
                }
            }
            me.meet();
            if let Some(window) = &window {
                for k in 0..8 {
                    let byte = 1 + (8 * round + k) as u8;
                    assert_eq!(window.load(8 * k), u64::from_le_bytes([byte; 8]));
                }
                // Used, and its place another's: it is revoked.
                for key in spent.iter().chain(&keys).step_by(3) {
                    window.revoke(*key).expect("revoked");
                }
            }
            spent.extend(keys);
            me.meet();
        }
        me.finish();
    });
}

#[test]
pub(crate) fn a_put_needs_neither_a_receive_nor_a_credit_of_the_peer() {
    both("tiny", 2, 203, |host| {
        let mut me = Side::open(&host);
        let (window, key) = lend(&me, RemoteRights::WRITE);
        if me.rank() == 1 {
            // Every envelope holds a message that nobody receives.
            for number in 0..8 {
                me.send(0, 1, number, 8);
                assert_eq!(me.statuses(1), [(number, WcStatus::Success)]);
            }
            for k in 0..20 {
                put(&mut me, 100 + k, key, 64 * k, &bytes(k as u8, 64));
            }
            let all: Vec<_> = (100..120).map(|k| (k, WcStatus::Success)).collect();
            assert_eq!(me.statuses(20), all);
            // A message waits, and so does the put behind it.
            me.send(0, 1, 8, 8);
            put(&mut me, 120, key, 4000, &[1; 8]);
            me.assert_silent(LONG);
        }
        me.meet();
        if let Some(window) = &window {
            assert_eq!(contents(window)[4000..4008], [0; 8]);
            for number in 0..9 {
                me.receive(number, Some(1), 1, 8);
                assert_eq!(me.statuses(1), [(number, WcStatus::Success)]);
            }
        } else {
            assert_eq!(
                me.statuses(2),
                [(8, WcStatus::Success), (120, WcStatus::Success)]
            );
        }
        me.meet();
        if let Some(window) = &window {
            let all = contents(window);
            for k in 0..20 {
                assert_eq!(all[64 * k..][..64], bytes(k as u8, 64));
            }
            assert_eq!(all[4000..4008], [1; 8]);
        }
        me.meet();
        me.finish();
    });
}

/// Number of the message behind which the slow put comes.
const RECOVERED: u64 = 4711;

/// Keeps the first put of card 1 back, and loses all that comes from there later; it comes behind message [`RECOVERED`] of card 2.
fn slow() -> impl FnMut(Passing, &mut Vec<Passing>) + Send {
    let mut held: Option<Passing> = None;
    let died = AtomicBool::new(false);
    move |passing, out: &mut Vec<Passing>| {
        let of_dead = passing.source == 1 && passing.destination == 0;
        if of_dead && is(&passing, FrameType::Put) && !died.swap(true, Ordering::Relaxed) {
            held = Some(passing);
            return;
        }
        if of_dead && died.load(Ordering::Relaxed) {
            return;
        }
        let releases = passing.source == 2 && number(&passing) == Some(RECOVERED);
        let last = passing.frame.last;
        out.push(passing);
        if let Some(mut slow) = held.take_if(|_| releases) {
            slow.frame.last = last;
            out.push(slow);
        }
    }
}

/// The story of `rendezvous-buffer-reuse`: a process that may write into our buffer sends a slow put and dies; we recover, and use the memory again; then
/// the put arrives. A third process writes into the same buffer all the while.
#[test]
fn a_slow_put_of_a_dead_process_never_lands_and_others_write_on() {
    both_over(
        "tiny",
        3,
        204,
        || Wires::tapped(LinkFilter::ALL, slow()),
        |host| {
            let mut me = Side::open(&host);
            let (window, key) = lend(&me, RemoteRights::WRITE);
            if me.rank() == 1 {
                put(&mut me, 1, key, 0, &[0xdd; 512]);
                me.pause(2000);
            }
            me.meet();
            let mut wanted = vec![0; LENGTH];
            for round in 0..3 {
                // Before the failure is known, while it is handled, and with the slow put on its way.
                let at = 1024 + 512 * round;
                let live = bytes(round as u8, 512);
                wanted[at..][..512].copy_from_slice(&live);
                match me.rank() {
                    2 => {
                        if round == 2 {
                            me.send(0, 1, RECOVERED, 8);
                            assert_eq!(me.statuses(1), [(RECOVERED, WcStatus::Success)]);
                        }
                        put(&mut me, 5, key, at as u64, &live);
                        assert_eq!(me.statuses(1), [(5, WcStatus::Success)]);
                    }
                    0 if round == 0 => {
                        me.receive(1, Some(2), 1, 8);
                        me.endpoint.declare_failed(me.pair(1)).expect("declared");
                        let window = window.as_ref().expect("rank 0 lends");
                        window.write(0, &bytes(0xaa, 512));
                    }
                    0 if round == 2 => {
                        assert_eq!(me.statuses(1), [(1, WcStatus::Success)]);
                    }
                    _ => {}
                }
                me.meet();
            }
            me.pause(LONG);
            if let Some(window) = &window {
                wanted[..512].copy_from_slice(&bytes(0xaa, 512));
                assert_eq!(contents(window), wanted);
                assert!(
                    me.count(Counter::PairErrors) > 0,
                    "the slow put was dropped"
                );
            }
            me.meet();
        },
    );
}
