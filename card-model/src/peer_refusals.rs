//! What hosts are told of the accesses that are refused to their peers: seldom, one pair after the other, and none of it is forgotten.

use abi::event::PeerRefusal;
use abi::times::REFUSAL_INTERVAL;

/// What is kept for a connected pair.
#[derive(Clone, Copy, Debug)]
struct Kept {
    endpoint: u8,
    /// The last refusal, and how many there were since the last event, if there was one.
    last: Option<PeerRefusal>,
}

/// An event that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Endpoint of the pair.
    pub endpoint: u8,
    /// The pair.
    pub pair: u16,
    /// What was refused to its peer.
    pub refusal: PeerRefusal,
}

/// What is kept for all pairs.
#[derive(Clone, Debug)]
pub struct PeerRefusals {
    pairs: Vec<Option<Kept>>,
    /// Pair whose turn it is.
    turn: usize,
    /// Cycle from which on the next event may be raised.
    from: u64,
}

impl PeerRefusals {
    /// No pair is connected.
    pub fn new(pairs: usize) -> Self {
        Self {
            pairs: vec![None; pairs],
            turn: 0,
            from: 0,
        }
    }

    /// A pair of this endpoint is connected: nothing has been refused to its peer.
    pub fn connect(&mut self, pair: u16, endpoint: u8) {
        if let Some(place) = self.pairs.get_mut(usize::from(pair)) {
            *place = Some(Kept {
                endpoint,
                last: None,
            });
        }
    }

    /// A pair is cleared: nothing is told of it any more.
    pub fn clear(&mut self, pair: u16) {
        if let Some(place) = self.pairs.get_mut(usize::from(pair)) {
            *place = None;
        }
    }

    /// An access of a pair's peer was refused. Its count is what has come together before.
    pub fn refused(&mut self, pair: u16, refusal: PeerRefusal) {
        if let Some(Some(kept)) = self.pairs.get_mut(usize::from(pair)) {
            let before = kept.last.map_or(0, |last| last.count);
            let count = before.saturating_add(1);
            kept.last = Some(PeerRefusal { count, ..refusal });
        }
    }

    /// The event that is due, which isn't from then on.
    pub fn take(&mut self, now: u64) -> Option<Told> {
        if now < self.from {
            return None;
        }
        let all = self.pairs.len();
        for at in (self.turn..all).chain(0..self.turn) {
            let Some(kept) = &mut self.pairs[at] else {
                continue;
            };
            let endpoint = kept.endpoint;
            if let Some(refusal) = kept.last.take() {
                self.turn = (at + 1) % all;
                self.from = now + u64::from(REFUSAL_INTERVAL);
                let pair = at as u16;
                return Some(Told {
                    endpoint,
                    pair,
                    refusal,
                });
            }
        }
        None
    }

    /// When the next event will be due.
    pub fn next_time(&self) -> Option<u64> {
        let mut pairs = self.pairs.iter().flatten();
        pairs.any(|kept| kept.last.is_some()).then_some(self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::control::RefusalReason;

    fn refusal(offset: u64) -> PeerRefusal {
        PeerRefusal {
            region: 0x5003,
            offset,
            reason: RefusalReason::OutOfBounds,
            count: 0,
        }
    }

    #[test]
    fn each_pair_has_its_turn_once_in_an_interval_and_nothing_is_forgotten() {
        let interval = u64::from(REFUSAL_INTERVAL);
        let mut all = PeerRefusals::new(3);
        all.refused(0, refusal(0));
        assert_eq!(all.next_time(), None, "it isn't connected");
        (0..2).for_each(|pair| all.connect(pair, 7));
        let due = |pair, offset, count| {
            let refusal = PeerRefusal {
                count,
                ..refusal(offset)
            };
            let endpoint = 7;
            Some(Told {
                endpoint,
                pair,
                refusal,
            })
        };
        all.refused(0, refusal(1));
        assert_eq!(all.take(5), due(0, 1, 1));
        for offset in 2..9 {
            all.refused(0, refusal(offset));
        }
        all.refused(1, refusal(9));
        assert_eq!(all.next_time(), Some(5 + interval));
        assert_eq!(all.take(4 + interval), None);
        assert_eq!(all.take(5 + interval), due(1, 9, 1), "its turn");
        assert_eq!(all.take(6 + 2 * interval), due(0, 8, 7));
        assert_eq!(all.next_time(), None);
        (0..0x1_0005).for_each(|_| all.refused(1, refusal(1)));
        assert_eq!(all.take(9 * interval), due(1, 1, 0xffff));
        all.refused(0, refusal(1));
        all.clear(0);
        all.connect(0, 7);
        assert_eq!(all.take(99 * interval), None, "another connection");
    }
}
