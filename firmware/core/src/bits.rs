//! A bit for each pair.

use abi::limits::MAX_PAIRS;

/// Words of the set.
const WORDS: usize = MAX_PAIRS / 32;

const _: () = assert!(
    MAX_PAIRS == 128,
    "commands name the pairs by two words of 64 bits"
);

/// A set of pairs, by their places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PairBits([u32; WORDS]);

impl PairBits {
    /// The set of these words, the lowest place in the lowest bit.
    pub(crate) const fn from_words(low: u64, high: u64) -> Self {
        Self([
            low as u32,
            (low >> 32) as u32,
            high as u32,
            (high >> 32) as u32,
        ])
    }

    /// It as such words.
    pub(crate) fn to_words(self) -> (u64, u64) {
        let word = |k: usize| u64::from(self.0[k]) | u64::from(self.0[k + 1]) << 32;
        (word(0), word(2))
    }

    pub(crate) fn insert(&mut self, index: usize) {
        self.0[index / 32] |= 1 << (index % 32);
    }

    pub(crate) fn remove(&mut self, index: usize) {
        self.0[index / 32] &= !(1 << (index % 32));
    }

    pub(crate) fn contains(&self, index: usize) -> bool {
        self.0[index / 32] & 1 << (index % 32) != 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The first place of the set from this one on.
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        let mut mask = u32::MAX << (from % 32);
        for word in from / 32..WORDS {
            let rest = self.0[word] & mask;
            if rest != 0 {
                return Some(word * 32 + rest.trailing_zeros() as usize);
            }
            mask = u32::MAX;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_PAIRS, PairBits};

    #[test]
    fn places_come_in_order_and_as_often_as_they_are_there() {
        let mut set = PairBits::default();
        assert!(set.is_empty());
        for index in [0, 31, 32, 64, 127] {
            set.insert(index);
        }
        assert_eq!(set.to_words(), (1 | 3 << 31, 1 | 1 << 63));
        assert_eq!(PairBits::from_words(1 | 3 << 31, 1 | 1 << 63), set);
        let mut from = 0;
        for index in [0, 31, 32, 64, 127] {
            assert_eq!(set.next(from), Some(index));
            from = index + 1;
        }
        assert_eq!((from, set.next(from)), (MAX_PAIRS, None));
        for index in [127, 64, 32, 31, 0] {
            set.remove(index);
        }
        assert!(set.is_empty());
    }
}
