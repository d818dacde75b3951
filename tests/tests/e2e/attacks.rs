//! Puts and gets of a peer whose card sends what it likes: of all that it may not, no put lands and no get is told a byte, each is counted and told to it, and
//! its puts and gets that may be are as ever.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use abi::wire::{FrameType, HEADER_BYTES, TRAILER_BYTES};
use host_driver::{Buffer, Counter, Get, Put, RemoteKey, RemoteRights, ShutOut, WcStatus, Window};
use posthorn_tests::cards::{Host, both_over, modelled_over};
use posthorn_tests::frames::{edit, header, is};
use posthorn_tests::side::Side;
use posthorn_tests::wires::Wires;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::fabric::{LinkFilter, Passing};

use crate::lent::{BLANK, LENGTH, bytes, contents};

/// What rank 1 may write or read of it, and rank 2.
const PARTS: [Range<usize>; 2] = [1024..3072, 3072..4096];
/// Bytes of a put or a get.
const BYTES: usize = 8;
/// What an attack writes, and nobody else.
const ATTACK: u8 = 0xee;
/// Puts or gets that rank 1 has outstanding, of which one may be.
const BATCH: u64 = 16;

/// What ranks do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Put,
    Get,
}

impl Op {
    /// The right that it needs, and the other one.
    fn rights(self) -> [RemoteRights; 2] {
        let both = [RemoteRights::WRITE, RemoteRights::READ];
        match self {
            Self::Put => both,
            Self::Get => [both[1], both[0]],
        }
    }
}

/// What rank 1 knows.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Its key.
    own: u64,
    /// Its keys before: one was revoked by itself, one with all that it had.
    revoked: u64,
    of_old_generation: u64,
    /// A key for one access, which it has made.
    spent: u64,
    /// A key for the other right.
    other_right: u64,
    /// The key of rank 2, and one that ranks share without rank 1.
    anothers: u64,
    shared: u64,
}

type Attack = (&'static str, fn(&mut ChaCha8Rng, &Known, &mut Passing));

/// What an access may not be. Each of them is made of a put or a get that may be.
const ATTACKS: &[Attack] = &[
    ("a tag but for a bit", |rng, known, f| {
        let bit = rng.random_range(16..64);
        edit(f, |h| h.match_bits = known.own ^ 1 << bit);
    }),
    ("a guessed tag", |rng, known, f| {
        let tag = rng.random_range(1..1u64 << 48);
        edit(f, |h| h.match_bits = known.own ^ tag << 16);
    }),
    ("another row", |rng, known, f| {
        let row: u16 = rng.random_range(1..=u16::MAX);
        edit(f, |h| h.match_bits = known.own ^ u64::from(row));
    }),
    ("a guessed key", |rng, known, f| {
        let key = rng.random_range(1..=u64::MAX);
        edit(f, |h| h.match_bits = known.own ^ key);
    }),
    ("a revoked key", |_, known, f| {
        edit(f, |h| h.match_bits = known.revoked);
    }),
    ("a key of an old generation", |_, known, f| {
        edit(f, |h| h.match_bits = known.of_old_generation);
    }),
    ("a key for one access, again", |_, known, f| {
        edit(f, |h| h.match_bits = known.spent);
    }),
    ("a key for the other right", |_, known, f| {
        edit(f, |h| h.match_bits = known.other_right);
    }),
    ("another sender's key", |rng, known, f| {
        // Where that sender may write, or this one.
        let part = PARTS[rng.random_range(0..2)].start as u64;
        edit(f, |h| (h.match_bits, h.immediate) = (known.anothers, part));
    }),
    ("a shared key, without permission", |_, known, f| {
        edit(f, |h| h.match_bits = known.shared);
    }),
    ("in front of the part", |rng, _, f| {
        let before = rng.random_range(1..=PARTS[0].start) as u64;
        edit(f, |h| h.immediate = PARTS[0].start as u64 - before);
    }),
    ("behind the part", |rng, _, f| {
        let last = PARTS[0].end - BYTES + 1;
        let at = rng.random_range(last..LENGTH) as u64;
        edit(f, |h| h.immediate = at);
    }),
    ("anywhere far away", |rng, _, f| {
        let at = rng.random_range(LENGTH as u64..=u64::MAX);
        edit(f, |h| h.immediate = at);
    }),
    (
        "an end that wraps to the beginning of the window",
        |rng, _, f| {
            let before = rng.random_range(1..BYTES) as u64;
            edit(f, |h| h.immediate = before.wrapping_neg());
        },
    ),
    ("a length beyond the part", |rng, _, f| {
        let words = rng.random_range(1..16);
        lengthen(f, words);
        let last = PARTS[0].end - BYTES;
        edit(f, |h| h.immediate = last as u64);
    }),
    (
        "a length that wraps to the beginning of the window",
        |rng, _, f| {
            let words = rng.random_range(1..128 - BYTES / 8);
            lengthen(f, words);
            let at = (rng.random_range(1..=8 * words) as u64).wrapping_neg();
            edit(f, |h| h.immediate = at);
        },
    ),
];

/// Makes the payload, or what a get wants, longer by so many words, as its header says then.
fn lengthen(frame: &mut Passing, words: usize) {
    if is(frame, FrameType::Get) {
        return edit(frame, |header| header.context += 8 * words as u16);
    }
    let bytes = &mut frame.frame.bytes;
    let end = bytes.len() - TRAILER_BYTES;
    bytes.splice(end..end, vec![ATTACK; 8 * words]);
    let length = bytes.len() - HEADER_BYTES - TRAILER_BYTES;
    edit(frame, |header| {
        header.payload_length = length as u16;
        header.message_length = length as u64;
    });
}

/// Whether a frame is to become an attack: a put that says so, or a get of the first bytes of the part.
fn attacks(passing: &Passing) -> bool {
    let first = |passing: &Passing| {
        let header = header(passing).expect("whole");
        header.immediate == PARTS[0].start as u64
    };
    is(passing, FrameType::Put) && passing.frame.bytes[HEADER_BYTES] == ATTACK
        || is(passing, FrameType::Get) && first(passing)
}

/// Rank 1's card: makes attacks of what is to be one, one kind after the other.
fn attacker(known: Arc<Mutex<Known>>, seed: u64) -> impl FnMut(Passing, &mut Vec<Passing>) + Send {
    move |mut passing: Passing, out: &mut Vec<Passing>| {
        if attacks(&passing) {
            let sequence = header(&passing).expect("whole").sequence as usize;
            let mut rng = ChaCha8Rng::seed_from_u64(seed ^ (sequence as u64) << 16);
            let (_, attack) = ATTACKS[sequence % ATTACKS.len()];
            attack(&mut rng, &known.lock().unwrap(), &mut passing);
        }
        out.push(passing);
    }
}

/// The byte that a rank puts with its put of this number, and where, or where its get reads: all over its part but for its first bytes.
fn rightful(rank: usize, number: u64) -> (u8, usize) {
    let part = &PARTS[rank - 1];
    let places = (part.len() / BYTES - 1) as u64;
    let at = part.start + BYTES * (1 + number * 7 % places) as usize;
    (1 + (number % 200) as u8, at)
}

/// A put of this byte, or a get, at this offset.
fn post(
    me: &Side,
    op: Op,
    wr_id: u64,
    key: RemoteKey,
    (byte, offset): (u8, usize),
    mut buffer: Buffer,
) {
    let (pair, offset) = (me.pair(0), offset as u64);
    let posted = match op {
        Op::Put => {
            buffer.fill(byte);
            let put = Put { pair, key, offset };
            me.endpoint.post_put(wr_id, &put, buffer)
        }
        Op::Get => {
            buffer.fill(BLANK);
            let get = Get { pair, key, offset };
            me.endpoint.post_get(wr_id, &get, buffer)
        }
    };
    posted.expect("posted");
}

/// What a window has before anybody writes to it.
fn before(op: Op) -> Vec<u8> {
    match op {
        Op::Put => vec![0; LENGTH],
        Op::Get => bytes(0x3c, LENGTH),
    }
}

/// Rank 0 lends, and shuts out nobody, so that each attack is looked up; its keys for the others: rank 1's own, one for one access, rank 2's.
fn lend(me: &Side, op: Op, window: &Window, known: &Mutex<Known>) -> [u64; 3] {
    let grant = |rank: usize, rights| {
        let part = PARTS[rank - 1].clone();
        let key = window.grant(&me.endpoint, me.pair(rank), rights, part);
        key.expect("a key")
    };
    let [right, other] = op.rights();
    let never = me.endpoint.set_shut_out(me.pair(1), ShutOut::NEVER);
    never.expect("connected");
    let of_old_generation = grant(1, right);
    // Of both, so that who asks makes the difference and not how often it was revoked.
    for rank in [1, 2] {
        let revoked = me.endpoint.revoke_peer(me.pair(rank));
        revoked.expect("revoked");
    }
    let revoked = grant(1, right);
    let (own, other_right) = (grant(1, right), grant(1, other));
    let anothers = grant(2, right);
    let part = PARTS[0].clone();
    // There is none for reading.
    let once = window.grant_once(&me.endpoint, me.pair(1), RemoteRights::WRITE, part);
    let shared = window.grant_shared(&me.endpoint, me.pair(2), right, ..);
    // The last: nobody has its row.
    window.revoke(revoked).expect("revoked");
    let spent = once.expect("a key").to_bits();
    *known.lock().unwrap() = Known {
        own: own.to_bits(),
        revoked: revoked.to_bits(),
        of_old_generation: of_old_generation.to_bits(),
        spent,
        other_right: other_right.to_bits(),
        anothers: anothers.to_bits(),
        shared: shared.expect("a key").to_bits(),
    };
    [own.to_bits(), spent, anothers.to_bits()]
}

/// Rank 1 attacks, and puts or gets what it may now and then; so does rank 2.
fn raid(host: Host, op: Op, known: &Mutex<Known>, batches: u64) {
    let mut me = Side::open(&host);
    let rights = RemoteRights::WRITE | RemoteRights::READ;
    let window = || me.pd.reg_window(LENGTH, rights).expect("a window");
    // The second is lent to nobody.
    let windows = (me.rank() == 0).then(|| [window(), window()]);
    for window in windows.iter().flatten() {
        window.write(0, &before(op));
    }
    let keys = windows.as_ref().map(|[lent, _]| lend(&me, op, lent, known));
    let bytes = keys.unwrap_or_default().map(u64::to_le_bytes);
    let all = host.all_gather(bytes.concat()).expect("all ranks");
    let key = |number: usize| {
        let bits = all[0][8 * number..][..8].try_into().expect("eight");
        RemoteKey::from_bits(u64::from_le_bytes(bits))
    };
    // The key for one access has written this before anybody reads.
    let mut there = before(op);
    let (byte, at) = rightful(1, 0);
    there[at..][..BYTES].fill(byte);
    match me.rank() {
        1 => {
            let buffer = me.buffer(BYTES);
            post(&me, Op::Put, 0, key(1), rightful(1, 0), buffer);
            assert_eq!(me.statuses(1), [(0, WcStatus::Success)]);
            let mut free: Vec<Buffer> = (0..BATCH).map(|_| me.buffer(BYTES)).collect();
            for batch in 0..batches {
                for (number, buffer) in (0..BATCH).zip(free.drain(..)) {
                    let what = match number == batch % BATCH {
                        true => rightful(1, batch),
                        false => (ATTACK, PARTS[0].start),
                    };
                    post(&me, op, number, key(0), what, buffer);
                }
                for number in 0..BATCH {
                    let ended = me.completion();
                    let wanted = match number == batch % BATCH {
                        true => WcStatus::Success,
                        false => WcStatus::RemoteAccess,
                    };
                    assert_eq!((ended.wr_id, ended.status), (number, wanted), "{batch}");
                    let buffer = ended.buffer.expect("its buffer");
                    if op == Op::Get && wanted == WcStatus::RemoteAccess {
                        assert_eq!(buffer[..], [BLANK; BYTES], "{batch}");
                    } else if op == Op::Get {
                        assert_eq!(buffer[..], there[rightful(1, batch).1..][..BYTES]);
                    }
                    free.push(buffer);
                }
            }
        }
        2 => {
            let mut free = Some(me.buffer(BYTES));
            for number in 0..batches {
                let what = rightful(2, number);
                let buffer = free.take().expect("it came back");
                post(&me, op, number, key(2), what, buffer);
                let ended = me.completion();
                assert_eq!((ended.wr_id, ended.status), (number, WcStatus::Success));
                let buffer = ended.buffer.expect("its buffer");
                if op == Op::Get {
                    assert_eq!(buffer[..], there[what.1..][..BYTES]);
                }
                free = Some(buffer);
            }
        }
        _ => {}
    }
    me.meet();
    if let Some([lent, canary]) = &windows {
        for (rank, number) in [1, 2]
            .into_iter()
            .flat_map(|r| (0..batches).map(move |n| (r, n)))
            .filter(|_| op == Op::Put)
        {
            let (byte, at) = rightful(rank, number);
            there[at..][..BYTES].fill(byte);
        }
        assert!(contents(lent) == there, "nothing else was written");
        assert!(contents(canary) == before(op));
        let refused = u64::from(me.pair_status(1).refused);
        assert_eq!(refused, batches * (BATCH - 1), "each is counted");
        assert_eq!(me.pair_status(2).refused, 0);
        let dropped = [
            Counter::CrcErrors,
            Counter::LengthErrors,
            Counter::TypeErrors,
            Counter::PairErrors,
        ];
        assert_eq!(dropped.map(|counter| me.count(counter)), [0; 4]);
    }
    me.meet();
    me.finish();
}

fn wires(known: &Arc<Mutex<Known>>, seed: u64) -> Wires {
    let tap = attacker(Arc::clone(known), seed);
    Wires::tapped(LinkFilter::between(1, 0), tap)
}

fn raid_gates(op: Op, seed: u64, batches: u64) {
    let known = Arc::default();
    let wires = || wires(&known, seed);
    let rank = |host| raid(host, op, &known, batches);
    both_over("tiny", 3, seed, wires, rank);
}

fn raid_model(op: Op, seed: u64, attempts: u64) {
    let known = Arc::default();
    let batches = attempts.div_ceil(BATCH - 1);
    let wires = wires(&known, seed);
    let rank = |host| raid(host, op, &known, batches);
    modelled_over("tiny", 3, seed, wires, rank);
}

/// Each kind of attack a few times: 16 in each batch of which one is none, so that each kind is left out once.
#[test]
pub(crate) fn no_access_that_was_not_granted_lands_and_each_is_counted() {
    raid_gates(Op::Put, 211, 24);
}

#[test]
pub(crate) fn no_read_that_was_not_granted_is_answered_and_each_is_counted() {
    raid_gates(Op::Get, 213, 24);
}

#[test]
fn a_hundred_thousand_attacks_land_nowhere() {
    raid_model(Op::Put, 212, 100_000);
    raid_model(Op::Get, 214, 100_000);
}

#[test]
#[ignore = "minutes of simulation: `cargo xtask test --long`"]
fn a_hundred_thousand_attacks_on_gates_land_nowhere() {
    for seed in 0..10 {
        raid_gates(Op::Put, 2200 + seed, 667);
        raid_gates(Op::Get, 2300 + seed, 667);
    }
}
