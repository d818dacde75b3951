//! Runs of descriptors, of which each pair has one for its sends.
//!
//! ```text
//!  descriptors  │ unit │ unit │ unit │ unit │ unit │ unit │ unit │ unit │
//!                 pair   └── pair ────┘        pair
//! ```
//!
//! The unit is what each pair would have if all had as many. A pair gets one at least, and as many as its endpoint was opened for if they can be had: a power of
//! two, from a multiple of that on. A unit is left for each pair that is reserved, so that pieces which are too short for a long run break no reservation.

use crate::bits::PairBits;
use crate::card::Sizes;
use crate::connection::State;
use crate::pair::Pair;
use abi::control::equal_sends_log2;
use abi::limits::MAX_PAIRS;

/// A run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Its first unit.
    pub(crate) first: u8,
    /// Log2 of its units.
    pub(crate) log2: u8,
}

/// The descriptors of a card.
#[derive(Clone, Copy)]
pub(crate) struct Runs {
    /// Log2 of the descriptors of a unit.
    pub(crate) unit_log2: u8,
    /// Units of the card.
    pub(crate) units: u32,
}

impl Runs {
    /// Those of a card of these sizes.
    pub(crate) fn of(sizes: &Sizes) -> Self {
        let unit_log2 = equal_sends_log2(sizes.descriptors, sizes.pairs);
        Self {
            unit_log2,
            units: (sizes.descriptors >> unit_log2).min(MAX_PAIRS as u32),
        }
    }

    /// A run for descriptors of this log2, or the longest there is below it that takes at most `most` units.
    pub(crate) fn find(&self, pairs: &[Pair], sends_log2: u8, most: u32) -> Option<Run> {
        let mut used = PairBits::default();
        for pair in pairs.iter().filter(|pair| pair.state != State::Closed) {
            for unit in pair.run.units() {
                used.insert(unit);
            }
        }
        let longest = sends_log2.saturating_sub(self.unit_log2);
        (0..=longest).rev().find_map(|log2| {
            let length = 1_u32 << log2;
            let free = |&first: &u32| {
                let end = first + length;
                let next = used.next(first as usize);
                end <= self.units && next.is_none_or(|next| next >= end as usize)
            };
            let mut starts = (0..self.units).step_by(length as usize);
            let first = starts.find(free).filter(|_| length <= most)?;
            Some(Run {
                first: first as u8,
                log2,
            })
        })
    }
}

impl Run {
    /// Its units.
    pub(crate) fn units(self) -> core::ops::Range<usize> {
        let first = usize::from(self.first);
        first..first + (1 << self.log2)
    }
}
