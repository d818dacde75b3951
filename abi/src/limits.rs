//! Sizes that both sides of an interface must agree on, whatever the configuration.

use crate::constant::constants;

constants! {
    /// All of them.
    LIMITS {
        /// Most endpoints of a card.
        MAX_ENDPOINTS: usize = 16;
        /// Most pairs that the firmware has room for: as many as the largest card has that is built. A card with more has as many as this, and says so.
        MAX_PAIRS: usize = 128;
        /// Most regions that the firmware has room for, in the same way.
        MAX_REGIONS: usize = 256;
        /// Most rules that the firmware has room for, in the same way.
        MAX_RULES: usize = 16;
        /// Most grants that the firmware has room for, in the same way.
        MAX_GRANTS: usize = 256;
        /// Longest eager message, in bytes, and the size of one unexpected-message slot.
        EAGER_MAX: usize = 1024;
        /// Envelopes per ordered pair when the host doesn't say.
        DEFAULT_CREDITS: u16 = 8;
        /// Most envelopes that one ordered pair may own: the width of its slot bitmap.
        MAX_CREDITS: u16 = 64;
        /// Places of unexpected messages that a pair gets at a time: it has as many such units as its envelopes need.
        UNIT_PLACES: u16 = 8;
        /// Most sends of a pair that have left and aren't acknowledged, whatever its peer grants: as many as a frame tells outcomes of.
        MAX_UNACKNOWLEDGED: u16 = 16;
        /// Most descriptors of one pair's sends, which wait or aren't acknowledged: the longest run. Runs are powers of two, of 2 or more.
        MAX_SENDS: u16 = 64;
        /// Smallest ring, as a power of two.
        MIN_RING_LOG2: u8 = 2;
        /// Largest ring, as a power of two. Indices are 16 bits and free running.
        MAX_RING_LOG2: u8 = 14;
        /// Alignment of a pair's slots, in bytes. A ring is aligned to its size.
        SLOTS_ALIGN: u64 = 64;
        /// The only address space that there is: the card's flat addresses of host memory. Who gives the card an address says in which space it is, and the firmware
        /// refuses any other.
        FLAT_SPACE: u8 = 0;
        /// Bits of a card address that are implemented.
        ADDRESS_BITS: u32 = 64;
    }
}
