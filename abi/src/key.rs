//! Remote keys: what a peer names to reach a region.

use crate::constant::constants;

constants! {
    /// Parts of a remote key.
    REMOTE_KEYS {
        /// Bits of a remote key that index the card's table of what peers may reach; the rest are the tag.
        REMOTE_KEY_INDEX_BITS: u32 = 16;
        /// Bits of its tag: drawn at random for each key, so that a key can't be guessed from another.
        REMOTE_KEY_TAG_BITS: u32 = 48;
    }
}

/// The remote key of an index and a tag, of which the upper 16 bits don't count.
pub const fn remote_key(index: u16, tag: u64) -> u64 {
    tag << REMOTE_KEY_INDEX_BITS | index as u64
}

/// Index of a remote key.
pub const fn remote_key_index(key: u64) -> u16 {
    key as u16
}

/// Tag of a remote key.
pub const fn remote_key_tag(key: u64) -> u64 {
    key >> REMOTE_KEY_INDEX_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_of_what_it_is_taken_apart_into() {
        let key = remote_key(0x1234, 0xdead_beef_cafe);
        assert_eq!(key, 0xdead_beef_cafe_1234);
        assert_eq!(remote_key_index(key), 0x1234);
        assert_eq!(remote_key_tag(key), 0xdead_beef_cafe);
        assert_eq!(remote_key(0, u64::MAX), !0xffff);
        assert_eq!(REMOTE_KEY_INDEX_BITS + REMOTE_KEY_TAG_BITS, u64::BITS);
    }
}
