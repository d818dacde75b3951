//! Random rounds of grants, revocations and deregistrations while peers put: no byte is written without right, and no rightful byte is lost.
//!
//! ```text
//!  rank 0   fills, grants ─► all know their keys ─► waits, revokes ─► looks, fills ──────────► all have ended: compares
//!  others                                        ─► put ─ put ─ put ─ put ─ put ─ put ─ put ─►
//! ```
//!
//! A put ends as `Success` or `RemoteAccess`, whoever comes first. What the window holds when a revocation returns has to be what the successful ones have
//! written, each whole, in their order; and what rank 0 writes there then has to stay.

use host_driver::{Buffer, Put, RemoteKey, RemoteRights, WcStatus, Window};
use posthorn_tests::cards::{GatesOnly, Host, cards, modelled_over};
use posthorn_tests::side::Side;
use posthorn_tests::wires::Wires;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Bytes of a window.
const LENGTH: usize = 2048;
/// Bytes of the puts that a rank makes in a round, or of some of them.
const PUTS: [usize; 12] = [1, 2, 7, 8, 9, 33, 64, 65, 300, 511, 1000, 1024];
/// Cycles between two puts, at most.
const PAUSE: u64 = 1000;
/// Cycles after which a revocation begins, at most: by then most puts of a round have ended.
const LATEST: u64 = 2000;

/// How a key of rank 0's ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Not in this round.
    Lives,
    Key,
    Peer,
    Region,
}

/// A put, as who makes it tells of it.
#[derive(Clone, Copy)]
struct Made {
    offset: usize,
    length: usize,
    byte: u8,
    success: bool,
}

impl Made {
    const BYTES: usize = 6;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let [a, b] = (self.offset as u16).to_le_bytes();
        let [c, d] = (self.length as u16).to_le_bytes();
        [a, b, c, d, self.byte, self.success.into()]
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]).into();
        Self {
            offset: half(0),
            length: half(2),
            byte: bytes[4],
            success: bytes[5] == 1,
        }
    }
}

/// What rank 0 has lent to a peer.
struct Lent {
    /// None only while it is made anew.
    window: Option<Window>,
    key: Option<RemoteKey>,
    /// What has to be in it.
    holds: Vec<u8>,
}

impl Lent {
    fn new(me: &Side) -> Self {
        let mut lent = Self {
            window: None,
            key: None,
            holds: vec![0; LENGTH],
        };
        lent.make_anew(me);
        lent
    }

    /// Deregisters the region, if there is one, and registers another.
    fn make_anew(&mut self, me: &Side) {
        drop(self.window.take());
        let window = me.pd.reg_window(LENGTH, RemoteRights::WRITE);
        self.window = Some(window.expect("a window"));
    }

    fn window(&self) -> &Window {
        self.window.as_ref().expect("it is made")
    }

    fn fill(&mut self, byte: u8) {
        self.holds.fill(byte);
        self.window().write(0, &self.holds);
    }

    fn contents(&self) -> Vec<u8> {
        let mut bytes = vec![0; LENGTH];
        self.window().read(0, &mut bytes);
        bytes
    }
}

/// How many puts of peers landed and were refused, and how many keys ended while a peer was putting.
#[derive(Default)]
struct Seen {
    landed: u64,
    refused: u64,
    between: u64,
}

/// What rank 0 does in a round while its peers put: ends the key of one of them. Returns how, whose, and what the window held then.
fn revoke(me: &Side, lent: &mut [Lent], rng: &mut ChaCha8Rng) -> (End, usize, Vec<u8>) {
    let ends = [End::Lives, End::Key, End::Peer, End::Region];
    let (end, at) = (
        ends[rng.random_range(0..4)],
        rng.random_range(0..lent.len()),
    );
    // Early as often as late: cards of the model are done sooner.
    me.pause(1 + (rng.random_range(0..LATEST) >> rng.random_range(0..9)));
    let (one, rank) = (&mut lent[at], at + 1);
    let key = one.key.expect("all have one");
    match end {
        End::Lives => return (end, at, Vec::new()),
        End::Key => one.window().revoke(key).expect("revoked"),
        End::Peer => me.endpoint.revoke_peer(me.pair(rank)).expect("revoked"),
        // Its memory is the allocator's again: the next window may have it.
        End::Region => one.make_anew(me),
    }
    let held = one.contents();
    one.key = None;
    one.fill(rng.random());
    (end, at, held)
}

/// The windows hold what the puts of the round have to have left there.
fn compare(
    lent: &[Lent],
    made: &[Vec<u8>],
    ended: &(End, usize, Vec<u8>),
    before: &[Vec<u8>],
    seen: &mut Seen,
) {
    let (end, whose, held) = ended;
    for (at, one) in lent.iter().enumerate() {
        let mut wanted = before[at].clone();
        let (mut landed, mut refused) = (0, 0);
        for put in made[at + 1].chunks(Made::BYTES).map(Made::from_bytes) {
            match put.success {
                true => {
                    assert_eq!(refused, 0, "none lands behind one that was refused");
                    wanted[put.offset..][..put.length].fill(put.byte);
                    landed += 1;
                }
                false => refused += 1,
            }
        }
        seen.landed += landed;
        seen.refused += refused;
        if *end == End::Lives || at != *whose {
            assert_eq!(refused, 0, "rank {} has its key", at + 1);
            assert!(one.contents() == wanted, "of rank {}", at + 1);
            continue;
        }
        if landed > 0 && refused > 0 {
            seen.between += 1;
        }
        if *end == End::Region {
            assert!(*held == vec![0; LENGTH], "memory of a new window");
        } else {
            assert!(*held == wanted, "{end:?} of rank {}", at + 1);
        }
        assert!(one.contents() == one.holds, "written behind {end:?}");
    }
}

/// Puts of a round, from these buffers. Returns what became of them.
fn put(me: &mut Side, key: RemoteKey, rng: &mut ChaCha8Rng, free: &mut Vec<Buffer>) -> Vec<u8> {
    let mut made = Vec::new();
    for number in 0..rng.random_range(1..=free.len()) {
        let mut buffer = free.swap_remove(rng.random_range(0..free.len()));
        let one = Made {
            offset: rng.random_range(0..=LENGTH - buffer.len()),
            length: buffer.len(),
            byte: rng.random(),
            success: false,
        };
        buffer.fill(one.byte);
        if rng.random() {
            me.pause(rng.random_range(1..=PAUSE));
        }
        let put = Put {
            pair: me.pair(0),
            key,
            offset: one.offset as u64,
        };
        let posted = me.endpoint.post_put(number as u64, &put, buffer);
        posted.expect("posted");
        made.push(one);
    }
    for (number, one) in (0..).zip(&mut made) {
        let ended = me.completion();
        assert_eq!(ended.wr_id, number);
        match ended.status {
            WcStatus::Success => one.success = true,
            status => assert_eq!(status, WcStatus::RemoteAccess),
        }
        free.push(ended.buffer.expect("its buffer"));
    }
    made.into_iter().flat_map(Made::to_bytes).collect()
}

fn rounds(host: Host, seed: u64, rounds: u64) {
    let mut me = Side::open(&host);
    let mut rng = ChaCha8Rng::seed_from_u64(seed << 8 | me.rank() as u64);
    let peers = if me.rank() == 0 { host.cards() - 1 } else { 0 };
    let mut lent: Vec<Lent> = (0..peers).map(|_| Lent::new(&me)).collect();
    let mut free: Vec<Buffer> = PUTS.into_iter().map(|length| me.buffer(length)).collect();
    let mut seen = Seen::default();
    for _ in 0..rounds {
        let mut keys = Vec::new();
        for (rank, one) in (1..).zip(&mut lent) {
            assert!(one.contents() == one.holds, "nobody may write");
            one.fill(rng.random());
            let key = one.key.unwrap_or_else(|| {
                let key = one
                    .window()
                    .grant(&me.endpoint, me.pair(rank), RemoteRights::WRITE, ..);
                key.expect("a key")
            });
            one.key = Some(key);
            keys.extend(key.to_bits().to_le_bytes());
        }
        let before: Vec<Vec<u8>> = lent.iter().map(|one| one.holds.clone()).collect();
        let all = host.all_gather(keys).expect("all ranks");
        if me.rank() > 0 {
            let bits = all[0][8 * (me.rank() - 1)..][..8].try_into();
            let bits = u64::from_le_bytes(bits.expect("eight"));
            let made = put(&mut me, RemoteKey::from_bits(bits), &mut rng, &mut free);
            host.all_gather(made).expect("all ranks");
            continue;
        }
        let ended = revoke(&me, &mut lent, &mut rng);
        let made = host.all_gather(Vec::new()).expect("all ranks");
        compare(&lent, &made, &ended, &before, &mut seen);
        for one in &mut lent {
            one.holds = one.contents();
        }
    }
    if me.rank() == 0 && rounds >= 100 {
        assert!(
            seen.landed > 2 * rounds && seen.refused > rounds / 4 && seen.between > rounds / 20,
            "{} landed, {} were refused, {} keys ended between two",
            seen.landed,
            seen.refused,
            seen.between
        );
    }
    me.meet();
    me.finish();
}

fn rounds_of_model(count: u64) {
    for cards in 2..=4 {
        let seed = 220 + cards as u64;
        modelled_over("tiny", cards, seed, Wires::default(), |host| {
            rounds(host, seed, count);
        });
    }
}

fn rounds_of_gates(cluster: usize, seed: u64, count: u64) {
    GatesOnly::Race.run(cards("tiny", cluster, seed), |host| {
        rounds(host, seed, count);
    });
}

#[test]
pub(crate) fn whoever_loses_a_key_between_two_puts_writes_the_first_and_not_the_second() {
    rounds_of_model(100);
}

#[test]
fn on_gates_no_byte_is_written_without_right_and_no_rightful_byte_is_lost() {
    rounds_of_gates(3, 231, 10);
}

#[test]
#[ignore = "minutes of simulation: `cargo xtask test --long`"]
fn in_many_rounds_no_byte_is_written_without_right_and_no_rightful_byte_is_lost() {
    for cards in 2..=4 {
        rounds_of_gates(cards, 240 + cards as u64, 1000);
    }
    rounds_of_model(3_000);
}
