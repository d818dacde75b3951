//! Gets among the random requests: from memory that is granted, and by keys and from places that are not.
//!
//! The upper half of each window is written by nobody, and each pair may read the middle of a part of it. The buffers of gets are nobody else's: each is blank when
//! its get is posted, and poisoned when that has ended. So a byte that is written too much, or too late, is found.

use abi::key::remote_key_tag;
use abi::limits::EAGER_MAX;
use abi::opcode::WorkRing;
use abi::request::Opcode;
use abi::status::Status;
use rand::Rng;
use rand::seq::IndexedRandom;

use super::puts::{GRANTED, PART};
use super::{BUFFER_BYTES, ENDPOINTS, End, Pending, Spoilt, World};
use abi::control::RIGHT_REMOTE_READ;

use crate::host_side::WINDOW_BYTES;

/// Where the part of a window begins that is read.
const UPPER: u64 = WINDOW_BYTES / 2;
/// Rows of the grants begin behind those of puts.
const ROWS: u16 = 16;
const BLANK: u8 = 0x5a;
const POISON: u8 = 0xa5;

/// A get.
#[derive(Clone, Debug)]
pub(super) struct Get {
    pub(super) from: End,
    to: End,
    /// First byte in the window, and how many.
    at: u64,
    length: u64,
    /// It may be: by the key that was good when it was posted.
    rightful: bool,
    /// The key was replaced before the get had ended: either may be.
    stale: bool,
    has_ended: bool,
}

/// What a window has at first.
pub(super) fn window(card: usize, endpoint: u8) -> Vec<u8> {
    let byte = |at: u64| match at < UPPER {
        true => 0,
        false => {
            let seed = card as u64 * 2 + u64::from(endpoint);
            ((at ^ seed << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
        }
    };
    (0..WINDOW_BYTES).map(byte).collect()
}

impl World {
    /// Gives all windows what they have at first.
    pub(super) fn fill_sources(&mut self) {
        for (card, gates) in self.net.cards.iter_mut().enumerate() {
            for endpoint in 0..ENDPOINTS {
                let host_side = &self.net.host_sides[card][usize::from(endpoint)];
                host_side.fill_window(gates, 0, &window(card, endpoint));
                for &offset in &self.hosts[card][usize::from(endpoint)].free[3] {
                    host_side.fill(gates, offset, &[POISON; EAGER_MAX]);
                }
            }
        }
    }

    /// A new key to read for the peer of this end.
    pub(super) fn grant_reads(&mut self, end: End) {
        let tag = remote_key_tag(self.rng.random());
        let first = UPPER + u64::from(end.pair) * PART;
        let part = first + GRANTED.start..first + GRANTED.end;
        let host_side = &self.net.host_sides[end.card][usize::from(end.endpoint)];
        let gates = &mut self.net.cards[end.card];
        let row = ROWS + end.pair;
        let key = host_side.grant(gates, row, tag, end.pair, part, |grant| {
            grant.rights = RIGHT_REMOTE_READ;
        });
        self.read_keys.insert((end.card, end.pair), key);
    }

    /// The key of an end has been replaced while gets by it are on their way.
    pub(super) fn gets_are_stale(&mut self, end: End) {
        let under_way = self.gets.values_mut().filter(|get| get.to == end);
        under_way.for_each(|get| get.stale |= !get.has_ended);
    }

    /// Takes a buffer, in which nothing has changed since it was given back.
    fn take_read_buffer(&mut self, card: usize, endpoint: u8) -> Option<u64> {
        let offset = self.host(card, endpoint).free[3].pop()?;
        let host_side = self.net.host_sides[card][usize::from(endpoint)].clone();
        let gates = &mut self.net.cards[card];
        let found = host_side.bytes(gates, offset, EAGER_MAX);
        assert!(
            found == [POISON; EAGER_MAX],
            "{offset:x} of card {card} was written when its get had ended"
        );
        host_side.fill(gates, offset, &[BLANK; EAGER_MAX]);
        Some(offset)
    }

    /// Nothing was written to the buffers of gets that have ended, and all have.
    pub(super) fn look_at_read_buffers(&mut self) {
        for card in 0..self.net.cards.len() {
            for endpoint in 0..ENDPOINTS {
                let taken = std::iter::from_fn(|| self.take_read_buffer(card, endpoint));
                assert_eq!(taken.count(), 32);
            }
        }
    }

    pub(super) fn get(&mut self, card: usize, endpoint: u8) {
        let (tail, _) = self.tails(card, endpoint);
        let pairs = self.pairs(card, endpoint);
        let (Some(&(pair, to)), true) = (
            pairs.choose(&mut self.rng),
            self.room(card, endpoint, WorkRing::Send, tail),
        ) else {
            return;
        };
        let Some(offset) = self.take_read_buffer(card, endpoint) else {
            return;
        };
        let length = match self.rng.random_range(0..3) {
            0 => self.rng.random_range(0..40),
            _ => self.rng.random_range(1..=EAGER_MAX as u64),
        };
        let id = self.next_message;
        self.next_message += 1;
        let spoilt = self.spoil(&[
            Spoilt::Malformed,
            Spoilt::Key,
            Spoilt::Pair,
            Spoilt::Length,
            Spoilt::Memory,
        ]);
        let part = UPPER + u64::from(to.pair) * PART;
        let within = GRANTED.start..=GRANTED.end - length;
        let mut at = part + self.rng.random_range(within);
        let mut key = self.read_keys[&(to.card, to.pair)];
        let rightful = length == 0 || !self.rng.random_ratio(1, 5);
        if !rightful {
            match self.rng.random_range(0..6) {
                0 => key ^= 1 << self.rng.random_range(16..64),
                // A row that nobody has.
                1 => key |= 0x30,
                2 => at = part + GRANTED.start - self.rng.random_range(1..=length),
                3 => at = part + GRANTED.end - self.rng.random_range(0..length),
                // What may be written there may not be read.
                4 => (key, at) = (self.keys[&(to.card, to.pair)], at - UPPER),
                _ => at = u64::MAX - self.rng.random_range(0..length),
            }
        }
        let get = Get {
            from: End {
                card,
                endpoint,
                pair,
            },
            to,
            at,
            length,
            rightful,
            stale: false,
            has_ended: false,
        };
        let request = self.pend(
            card,
            endpoint,
            Pending {
                row: Opcode::Get.row(),
                spoilt,
                target: 0,
                offset,
                length,
                buffer: Some((3, offset)),
                before: 0,
                message: Some(id),
            },
        );
        let host_side = &self.net.host_sides[card][usize::from(endpoint)];
        let mut entry = host_side.a_get(pair, request, (offset, length), (key, at));
        let beyond = host_side.buffers + BUFFER_BYTES;
        self.spoil_entry(&mut entry, spoilt, beyond);
        self.gets.insert(id, get);
        self.post_send(card, endpoint, &entry);
    }

    /// A get has ended: its buffer has what it read, and nothing else; then it is the host's.
    pub(super) fn get_ended(&mut self, id: u64, offset: u64, status: Status) {
        let weather = self.weather;
        let get = self.gets.get_mut(&id).expect("it was posted");
        get.has_ended = true;
        let get = get.clone();
        let host_side = self.net.host_sides[get.from.card][usize::from(get.from.endpoint)].clone();
        let gates = &mut self.net.cards[get.from.card];
        let found = host_side.bytes(gates, offset, EAGER_MAX);
        let blank = found == [BLANK; EAGER_MAX];
        let read = || {
            let window = window(get.to.card, get.to.endpoint);
            let (at, length) = (get.at as usize, get.length as usize);
            let right = found[..length] == window[at..at + length];
            right && found[length..].iter().all(|&byte| byte == BLANK)
        };
        match status {
            Status::Success => assert!(get.rightful && read(), "{get:?}"),
            Status::RemoteAccess => {
                let may_be = !get.rightful || get.stale || weather.failures;
                assert!(may_be && blank, "{get:?}");
            }
            // With its pair it may end when its answer has come; one that may not be asked for again fails its pair.
            Status::LinkError
            | Status::PeerFailed
            | Status::PeerClosed
            | Status::Flushed
            | Status::MemoryError
            | Status::LocalProtection => {
                assert!(blank || get.rightful && read(), "{get:?}");
            }
            _ => assert!(blank, "{status:?}, {get:?}"),
        }
        host_side.fill(gates, offset, &[POISON; EAGER_MAX]);
    }
}

#[test]
fn no_two_windows_look_alike() {
    let all = (0..4).flat_map(|card| (0..ENDPOINTS).map(move |endpoint| window(card, endpoint)));
    let all: Vec<_> = all.collect();
    for (at, one) in all.iter().enumerate() {
        assert!(!all[..at].contains(one));
    }
}
