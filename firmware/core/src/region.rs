//! Regions: keys, and who holds which.
//!
//! A key is the region's place in the table of the gates and a random tag, so that a key of a region that
//! is gone, or one that is guessed, names nothing.

use abi::control::KEY_INDEX_BITS;

/// Bits of a tag.
const TAG_BITS: u32 = u32::BITS - KEY_INDEX_BITS;

/// A region, or a free place.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Region {
    pub(crate) tag: u32,
    pub(crate) domain: u8,
    pub(crate) used: bool,
}

/// A tag from a random word.
pub(crate) const fn tag(random: u32) -> u32 {
    random & ((1 << TAG_BITS) - 1)
}

/// The key of a region.
pub(crate) const fn key(index: usize, tag: u32) -> u32 {
    tag << KEY_INDEX_BITS | index as u32
}

/// Where the region that a key names is.
pub(crate) fn find(regions: &[Region], key: u32) -> Option<usize> {
    let index = (key & ((1 << KEY_INDEX_BITS) - 1)) as usize;
    let region = regions.get(index)?;
    (region.used && region.tag == key >> KEY_INDEX_BITS).then_some(index)
}
