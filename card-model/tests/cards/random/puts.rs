//! Puts among the random requests: to memory that is granted, and by keys and to places that are not.
//!
//! Each end of a pair has a part of the lower half of its endpoint's window for the peer, of which the middle is granted. So no two pairs write the same byte, and what a window has
//! to be follows from the puts of each pair that ended well, one after the other.

use abi::capability::{CAPABILITY_GET, CAPABILITY_PUT};
use abi::control::Operation;
use abi::key::remote_key_tag;
use abi::limits::EAGER_MAX;
use abi::opcode::WorkRing;
use abi::request::{FLAG_READY, Opcode, SendRequest};
use abi::status::Status;
use card_model::CardSizes;
use rand::Rng;
use rand::seq::IndexedRandom;

use super::{BUFFER_BYTES, End, HostSide, Message, Pending, Spoilt, World};
use crate::host_side::WINDOW_BYTES;

/// Bytes of a window for each pair.
pub(super) const PART: u64 = 0x1000;
/// What of them is granted.
pub(super) const GRANTED: std::ops::Range<u64> = 0x481..0xf07;

/// A put.
#[derive(Clone, Debug)]
pub(super) struct Put {
    to: End,
    /// First byte in the window, and how many.
    at: u64,
    length: u64,
    /// It may be: by the key that was good when it was posted.
    rightful: bool,
    /// The key was replaced before the put had ended: either may be.
    stale: bool,
    /// How it ended.
    status: Option<Status>,
}

/// Sizes with puts and gets.
pub(super) fn with_puts(sizes: CardSizes) -> CardSizes {
    CardSizes {
        capabilities: CAPABILITY_PUT | CAPABILITY_GET,
        ..sizes
    }
}

impl World {
    /// Grants the peer of each pair its part.
    pub(super) fn grant_all(&mut self) {
        let ends = self.net.pairs.clone().into_iter();
        for end in ends.flat_map(|(a, b, _)| [a, b]) {
            self.grant(end);
        }
    }

    /// A new key for the peer of this end, in the place of the one that it had.
    fn grant(&mut self, end: End) {
        self.grant_reads(end);
        let tag = remote_key_tag(self.rng.random());
        let first = u64::from(end.pair) * PART;
        let part = first + GRANTED.start..first + GRANTED.end;
        let host_side = &self.net.host_sides[end.card][usize::from(end.endpoint)];
        let gates = &mut self.net.cards[end.card];
        let key = host_side.grant(gates, end.pair, tag, end.pair, part, |_| {});
        self.keys.insert((end.card, end.pair), key);
    }

    /// The key of some end is replaced, while puts by it are on their way.
    pub(super) fn regrant(&mut self) {
        let (a, b, _) = *self
            .net
            .pairs
            .choose(&mut self.rng)
            .expect("there are some");
        let end = if self.rng.random() { a } else { b };
        if self.rng.random() {
            self.net.cards[end.card].control(Operation::SenderRevoke, end.pair, &[]);
        }
        self.grant(end);
        let under_way = self.puts.values_mut().filter(|put| put.to == end);
        under_way.for_each(|put| put.stale |= put.status.is_none());
        self.gets_are_stale(end);
    }

    pub(super) fn put(&mut self, card: usize, endpoint: u8) {
        let (tail, _) = self.tails(card, endpoint);
        let pairs = self.pairs(card, endpoint);
        let (Some(&(pair, to)), true) = (
            pairs.choose(&mut self.rng),
            self.room(card, endpoint, WorkRing::Send, tail),
        ) else {
            return;
        };
        let Some(offset) = self.host(card, endpoint).free[0].pop() else {
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
        let part = u64::from(to.pair) * PART;
        let within = GRANTED.start..=GRANTED.end - length;
        let mut at = part + self.rng.random_range(within);
        let mut key = self.keys[&(to.card, to.pair)];
        let rightful = length == 0 || !self.rng.random_ratio(1, 5);
        if !rightful {
            match self.rng.random_range(0..5) {
                0 => key ^= 1 << self.rng.random_range(16..64),
                // A row that nobody has.
                1 => key |= 0x30,
                2 => at = part + GRANTED.start - self.rng.random_range(1..=length),
                3 => at = part + GRANTED.end - self.rng.random_range(0..length),
                _ => at = u64::MAX - self.rng.random_range(0..length),
            }
        }
        let put = Put {
            to,
            at,
            length,
            rightful,
            stale: false,
            status: None,
        };
        let request = self.pend(
            card,
            endpoint,
            Pending {
                row: Opcode::Put.row(),
                spoilt,
                target: 0,
                offset,
                length,
                buffer: Some((0, offset)),
                before: 0,
                message: Some(id),
            },
        );
        let host_side = &self.net.host_sides[card][usize::from(endpoint)];
        let mut entry = host_side.a_put(pair, request, (offset, length), (key, at));
        let bytes = Message::bytes(id, length);
        host_side.fill(&mut self.net.cards[card], offset, &bytes);
        let beyond = host_side.buffers + BUFFER_BYTES;
        self.spoil_entry(&mut entry, spoilt, beyond);
        self.puts.insert(id, put);
        self.put_order.entry((card, pair)).or_default().push(id);
        self.post_send(card, endpoint, &entry);
    }

    /// Gives the entry of a put or a get any context, and makes it wrong in this way. Behind its host's buffers nothing is mapped.
    pub(super) fn spoil_entry(&mut self, entry: &mut SendRequest, spoilt: Spoilt, beyond: u64) {
        entry.context = self.rng.random();
        match spoilt {
            Spoilt::Not | Spoilt::Revoked => {}
            Spoilt::Malformed => entry.flags = FLAG_READY,
            Spoilt::Key => entry.key ^= 1 << 20,
            Spoilt::Pair => entry.pair = self.rng.random_range(7..10),
            Spoilt::Length => entry.length = EAGER_MAX as u64 + 1,
            Spoilt::Memory => entry.address = beyond,
        }
    }

    /// A put has ended.
    pub(super) fn put_ended(&mut self, id: u64, status: Status) {
        let weather = self.weather;
        let put = self.puts.get_mut(&id).expect("it was posted");
        put.status = Some(status);
        match status {
            Status::Success => assert!(put.rightful, "{put:?}"),
            Status::RemoteAccess => {
                let may_be = !put.rightful || put.stale || weather.failures;
                assert!(may_be, "{put:?}");
            }
            _ => {}
        }
    }

    /// The pair of a put.
    pub(super) fn pair_of_put(&self, card: usize, id: u64) -> Option<u16> {
        let mut all = self.put_order.iter();
        let found = all.find(|((of, _), ids)| *of == card && ids.contains(&id));
        found.map(|((_, pair), _)| *pair)
    }

    /// Forgets the regions of the windows of an endpoint, or has them there again.
    pub(super) fn revoke_window(&mut self, card: usize, endpoint: u8, forget: bool) {
        let gates = &mut self.net.cards[card];
        match forget {
            true => HostSide::clear_window(gates, endpoint),
            false => HostSide::set_window(gates, endpoint),
        }
    }

    /// Each byte of each window is of the last put to it that ended well. After failures it may be of any rightful one, since nobody knows how far those came that
    /// ended with their pair.
    pub(super) fn look_at_windows(&mut self) {
        for card in 0..self.net.cards.len() {
            for endpoint in 0..super::ENDPOINTS {
                let host_side = self.net.host_sides[card][usize::from(endpoint)].clone();
                let found = host_side.window_bytes(&mut self.net.cards[card]);
                let mine = |put: &&Put| (put.to.card, put.to.endpoint) == (card, endpoint);
                let mut last = super::gets::window(card, endpoint);
                let initial = last.clone();
                let mut may_be = vec![Vec::new(); WINDOW_BYTES as usize];
                let all = self.put_order.values().flatten();
                for (id, put) in all.map(|id| (*id, &self.puts[id])) {
                    let good = put.status == Some(Status::Success);
                    if !put.rightful || !mine(&put) {
                        continue;
                    }
                    for (k, byte) in Message::bytes(id, put.length).into_iter().enumerate() {
                        let at = put.at as usize + k;
                        may_be[at].push(byte);
                        if good {
                            last[at] = byte;
                        }
                    }
                }
                for (at, &byte) in found.iter().enumerate() {
                    let sound = match self.weather.failures {
                        false => byte == last[at],
                        true => byte == initial[at] || may_be[at].contains(&byte),
                    };
                    assert!(sound, "byte {at:x} of card {card}, endpoint {endpoint}");
                }
            }
        }
    }
}
