//! Regions: keys, and who holds which.
//!
//! A key is the region's place in the table of the gates and a tag. The tag is the generation of the place, enciphered, so that the tags of a place
//! repeat only after 2^20 regions, in an order that nobody foresees who doesn't know the card's cipher key:
//!
//! ```text
//!  generation ── high ─┬──────► low ─┬──► …       place, half ─► hash with the round's key ─► 10 bits
//!                      ▼             ▼
//!             low ───► ^ ───► high ► ^ ──► …  ─► tag
//! ```
//!
//! The cipher is a Feistel network (Luby and Rackoff, "How to construct pseudorandom permutations from pseudorandom functions", 1988) and so a permutation
//! whatever its round function is. That is the 32-bit hash of C. Wellons ("Prospecting for hash functions", 2018), no cryptographic one,
//! as the random generator of the card isn't: who sees many tags of a place may work out the key. Tags are against keys that are old or wrong; between
//! programs stand domains.

use crate::card::{Break, Card};
use abi::control::{KEY_INDEX_BITS, key_index, key_tag};

/// Bits of a tag, and of a generation.
const TAG_BITS: u32 = u32::BITS - KEY_INDEX_BITS;
/// Bits of half of it.
const HALF_BITS: u32 = TAG_BITS / 2;
const HALF: u32 = (1 << HALF_BITS) - 1;
const _: () = assert!(TAG_BITS.is_multiple_of(2) && HALF_BITS + KEY_INDEX_BITS <= u32::BITS);

/// Rounds of the cipher.
const ROUNDS: usize = 6;

/// What makes tags of generations.
pub(crate) struct Tags {
    key: [u32; ROUNDS],
}

impl Tags {
    /// Draws a key.
    pub(crate) fn new(card: &mut impl Card) -> Self {
        let word = |_| match card.is_broken(Break::TagForeseen) {
            true => 0,
            false => card.random(),
        };
        Self {
            key: core::array::from_fn(word),
        }
    }

    /// The tag of a place in its generation.
    pub(crate) fn tag(&self, place: u16, generation: u32) -> u32 {
        let halves = (generation >> HALF_BITS & HALF, generation & HALF);
        let round = |(high, low): (u32, u32), &key: &u32| {
            let mut hash = (low | u32::from(place) << HALF_BITS) ^ key;
            hash = (hash ^ hash >> 16).wrapping_mul(0x7feb_352d);
            hash = (hash ^ hash >> 15).wrapping_mul(0x846c_a68b);
            (low, high ^ hash >> (u32::BITS - HALF_BITS))
        };
        let (high, low) = self.key.iter().fold(halves, round);
        high << HALF_BITS | low
    }

    /// Where the region that a key names is, in use or being forgotten.
    pub(crate) fn find(&self, regions: &[Region], key: u32) -> Option<usize> {
        let place = key_index(key);
        let region = regions.get(usize::from(place))?;
        let named = matches!(region.state, RegionState::Used | RegionState::Clearing);
        let agrees = named && self.tag(place, region.generation) == key_tag(key);
        agrees.then_some(place.into())
    }
}

/// What a place of the table is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RegionState {
    /// Nothing.
    #[default]
    Free,
    /// The gates are to be told of it.
    Waiting,
    /// The gates are being told of it.
    Setting,
    /// In use.
    Used,
    /// The gates are to forget it.
    Clearing,
}

/// A region, or a free place.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Region {
    /// Regions that the place has had, modulo 2^20.
    pub(crate) generation: u32,
    pub(crate) length: u64,
    pub(crate) domain: u8,
    /// `RIGHT_*`.
    pub(crate) rights: u8,
    pub(crate) state: RegionState,
}

impl Region {
    /// Takes a free place for one more region.
    pub(crate) fn take(&mut self, domain: u8, rights: u8, length: u64, card: &mut impl Card) {
        let next = match card.is_broken(Break::TagRepeats) {
            true => card.random(),
            false => self.generation + 1,
        };
        *self = Self {
            generation: next & ((1 << TAG_BITS) - 1),
            length,
            domain,
            rights,
            state: RegionState::Waiting,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::{TAG_BITS, Tags};

    #[test]
    fn the_generations_of_a_place_have_all_tags_once() {
        let tags = Tags {
            key: [1, 0x8000_0000, u32::MAX, 4, 5, 6],
        };
        for place in [0, 7, 4095] {
            let mut seen = [0_u64; 1 << (TAG_BITS - 6)];
            for generation in 0..1 << TAG_BITS {
                let tag = tags.tag(place, generation);
                let (word, bit) = (tag as usize / 64, 1 << (tag % 64));
                assert!(seen[word] & bit == 0, "{tag:#x} comes twice");
                seen[word] |= bit;
            }
        }
    }
}
