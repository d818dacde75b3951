//! Regions: keys, and who holds which.
//!
//! A key is the region's place in the table of the gates and a random tag, never the one that was used there last, so that a key of a region
//! that is gone names nothing, and a guessed one seldom anything.

use abi::control::KEY_INDEX_BITS;

/// Bits of a tag.
const TAG_BITS: u32 = u32::BITS - KEY_INDEX_BITS;

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
    /// Tag, the last one if the place is free.
    pub(crate) tag: u32,
    pub(crate) domain: u8,
    pub(crate) state: RegionState,
}

/// A tag from a random word, other than the one before.
pub(crate) const fn tag(random: u32, last: u32) -> u32 {
    let mask = (1 << TAG_BITS) - 1;
    let tag = random & mask;
    if tag == last { (tag + 1) & mask } else { tag }
}

/// The key of a region.
pub(crate) const fn key(index: usize, tag: u32) -> u32 {
    tag << KEY_INDEX_BITS | index as u32
}

/// Where the region that a key names is, in use or being forgotten.
pub(crate) fn find(regions: &[Region], key: u32) -> Option<usize> {
    let index = (key & ((1 << KEY_INDEX_BITS) - 1)) as usize;
    let region = regions.get(index)?;
    let named = matches!(region.state, RegionState::Used | RegionState::Clearing);
    (named && region.tag == key >> KEY_INDEX_BITS).then_some(index)
}
