//! Puts of a peer whose card sends what it likes: of all that it may not, none lands, each is counted and told to it, and its puts that may be land.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use abi::wire::{FrameType, HEADER_BYTES, TRAILER_BYTES};
use host_driver::{Buffer, Counter, Put, RemoteKey, RemoteRights, ShutOut, WcStatus, Window};
use posthorn_tests::cards::{Host, both_over, modelled_over};
use posthorn_tests::frames::{edit, header, is};
use posthorn_tests::side::Side;
use posthorn_tests::wires::Wires;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::fabric::{LinkFilter, Passing};

/// Bytes of a window.
const LENGTH: usize = 4096;
/// What rank 1 may write of it, and rank 2.
const PARTS: [Range<usize>; 2] = [1024..3072, 3072..4096];
/// Bytes of a put.
const BYTES: usize = 8;
/// What an attack writes, and nobody else.
const ATTACK: u8 = 0xee;
/// Puts that rank 1 has outstanding, of which one may be.
const BATCH: u64 = 16;

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
    /// A key to read by.
    reads: u64,
    /// The key of rank 2, and one that ranks share without rank 1.
    anothers: u64,
    shared: u64,
}

type Attack = (&'static str, fn(&mut ChaCha8Rng, &Known, &mut Passing));

/// What an access may not be. Each of them is made of a put that may be.
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
    ("a key to read by", |_, known, f| {
        edit(f, |h| h.match_bits = known.reads);
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

/// Makes the payload longer by so many words, as its header says then.
fn lengthen(frame: &mut Passing, words: usize) {
    let bytes = &mut frame.frame.bytes;
    let end = bytes.len() - TRAILER_BYTES;
    bytes.splice(end..end, vec![ATTACK; 8 * words]);
    let length = bytes.len() - HEADER_BYTES - TRAILER_BYTES;
    edit(frame, |header| {
        header.payload_length = length as u16;
        header.message_length = length as u64;
    });
}

/// Rank 1's card: makes attacks of the puts that say so, one kind after the other.
fn attacker(known: Arc<Mutex<Known>>, seed: u64) -> impl FnMut(Passing, &mut Vec<Passing>) + Send {
    move |mut passing: Passing, out: &mut Vec<Passing>| {
        if is(&passing, FrameType::Put) && passing.frame.bytes[HEADER_BYTES] == ATTACK {
            let sequence = header(&passing).expect("whole").sequence as usize;
            let mut rng = ChaCha8Rng::seed_from_u64(seed ^ (sequence as u64) << 16);
            let (_, attack) = ATTACKS[sequence % ATTACKS.len()];
            attack(&mut rng, &known.lock().unwrap(), &mut passing);
        }
        out.push(passing);
    }
}

fn contents(window: &Window) -> Vec<u8> {
    let mut all = vec![0; LENGTH];
    window.read(0, &mut all);
    all
}

/// The byte that a rank puts with its put of this number, and where: all over its part.
fn rightful(rank: usize, number: u64) -> (u8, usize) {
    let part = &PARTS[rank - 1];
    let places = (part.len() / BYTES) as u64;
    let at = part.start + BYTES * (number * 7 % places) as usize;
    (1 + (number % 200) as u8, at)
}

fn post(me: &Side, wr_id: u64, key: RemoteKey, offset: usize, byte: u8, mut buffer: Buffer) {
    buffer.fill(byte);
    let put = Put {
        pair: me.pair(0),
        key,
        offset: offset as u64,
    };
    me.endpoint.post_put(wr_id, &put, buffer).expect("posted");
}

/// Rank 0 lends, and shuts out nobody, so that each attack is looked up; its keys for the others: rank 1's own, one for one access, rank 2's.
fn lend(me: &Side, window: &Window, known: &Mutex<Known>) -> [u64; 3] {
    let grant = |rank: usize, rights| {
        let part = PARTS[rank - 1].clone();
        let key = window.grant(&me.endpoint, me.pair(rank), rights, part);
        key.expect("a key")
    };
    let write = RemoteRights::WRITE;
    let never = me.endpoint.set_shut_out(me.pair(1), ShutOut::NEVER);
    never.expect("connected");
    let of_old_generation = grant(1, write);
    // Of both, so that who asks makes the difference and not how often it was revoked.
    for rank in [1, 2] {
        let revoked = me.endpoint.revoke_peer(me.pair(rank));
        revoked.expect("revoked");
    }
    let revoked = grant(1, write);
    let (own, reads) = (grant(1, write), grant(1, RemoteRights::READ));
    let anothers = grant(2, write);
    let part = PARTS[0].clone();
    let once = window.grant_once(&me.endpoint, me.pair(1), write, part);
    let shared = window.grant_shared(&me.endpoint, me.pair(2), write, ..);
    // The last: nobody has its row.
    window.revoke(revoked).expect("revoked");
    let spent = once.expect("a key").to_bits();
    *known.lock().unwrap() = Known {
        own: own.to_bits(),
        revoked: revoked.to_bits(),
        of_old_generation: of_old_generation.to_bits(),
        spent,
        reads: reads.to_bits(),
        anothers: anothers.to_bits(),
        shared: shared.expect("a key").to_bits(),
    };
    [own.to_bits(), spent, anothers.to_bits()]
}

/// Rank 1 attacks, and puts what it may now and then; so does rank 2.
fn raid(host: Host, known: &Mutex<Known>, batches: u64) {
    let mut me = Side::open(&host);
    let rights = RemoteRights::WRITE | RemoteRights::READ;
    let window = || me.pd.reg_window(LENGTH, rights).expect("a window");
    // The second is lent to nobody.
    let windows = (me.rank() == 0).then(|| [window(), window()]);
    let keys = windows.as_ref().map(|[lent, _]| lend(&me, lent, known));
    let bytes = keys.unwrap_or_default().map(u64::to_le_bytes);
    let all = host.all_gather(bytes.concat()).expect("all ranks");
    let key = |number: usize| {
        let bits = all[0][8 * number..][..8].try_into().expect("eight");
        RemoteKey::from_bits(u64::from_le_bytes(bits))
    };
    match me.rank() {
        1 => {
            let (byte, at) = rightful(1, 0);
            let buffer = me.buffer(BYTES);
            post(&me, 0, key(1), at, byte, buffer);
            assert_eq!(me.statuses(1), [(0, WcStatus::Success)]);
            let mut free: Vec<Buffer> = (0..BATCH).map(|_| me.buffer(BYTES)).collect();
            for batch in 0..batches {
                for (number, buffer) in (0..BATCH).zip(free.drain(..)) {
                    let (byte, at) = match number == batch % BATCH {
                        true => rightful(1, batch),
                        false => (ATTACK, PARTS[0].start),
                    };
                    post(&me, number, key(0), at, byte, buffer);
                }
                for number in 0..BATCH {
                    let ended = me.completion();
                    let wanted = match number == batch % BATCH {
                        true => WcStatus::Success,
                        false => WcStatus::RemoteAccess,
                    };
                    assert_eq!((ended.wr_id, ended.status), (number, wanted), "{batch}");
                    free.push(ended.buffer.expect("its buffer"));
                }
            }
        }
        2 => {
            let mut free = Some(me.buffer(BYTES));
            for number in 0..batches {
                let (byte, at) = rightful(2, number);
                let buffer = free.take().expect("it came back");
                post(&me, number, key(2), at, byte, buffer);
                let ended = me.completion();
                assert_eq!((ended.wr_id, ended.status), (number, WcStatus::Success));
                free = ended.buffer;
            }
        }
        _ => {}
    }
    me.meet();
    if let Some([lent, canary]) = &windows {
        let mut wanted = vec![0; LENGTH];
        for (rank, number) in [1, 2]
            .into_iter()
            .flat_map(|r| (0..batches).map(move |n| (r, n)))
        {
            let (byte, at) = rightful(rank, number);
            wanted[at..][..BYTES].fill(byte);
        }
        assert!(contents(lent) == wanted, "nothing else was written");
        assert!(contents(canary) == [0; LENGTH]);
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

fn raid_gates(seed: u64, batches: u64) {
    let known = Arc::default();
    let wires = || wires(&known, seed);
    both_over("tiny", 3, seed, wires, |host| raid(host, &known, batches));
}

fn raid_model(seed: u64, attempts: u64) {
    let known = Arc::default();
    let batches = attempts.div_ceil(BATCH - 1);
    let wires = wires(&known, seed);
    modelled_over("tiny", 3, seed, wires, |host| raid(host, &known, batches));
}

/// Each kind of attack a few times: 16 in each batch of which one is none, so that each kind is left out once.
#[test]
pub(crate) fn no_access_that_was_not_granted_lands_and_each_is_counted() {
    raid_gates(211, 24);
}

#[test]
fn a_hundred_thousand_attacks_land_nowhere() {
    raid_model(212, 100_000);
}

#[test]
#[ignore = "minutes of simulation: `cargo xtask test --long`"]
fn a_hundred_thousand_attacks_on_gates_land_nowhere() {
    for seed in 0..10 {
        raid_gates(2200 + seed, 667);
    }
}
