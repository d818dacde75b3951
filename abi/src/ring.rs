//! How rings and queues in host memory are indexed: free-running 16-bit indices, and the phase of an entry.
//!
//! ```text
//!  index   0 … size−1 │ size … 2·size−1 │ 2·size …
//!  entry   0 … size−1 │ 0    … size−1   │ 0 …
//!  phase       1      │       0         │   1
//! ```

/// Entry of a ring of `1 << log2` entries that index `index` names.
pub const fn entry(index: u16, log2: u8) -> u16 {
    index & ((1 << log2) - 1)
}

/// Phase of the entry that index `index` of a queue names: 1 in the first lap, and flipped at each wrap.
pub const fn phase(index: u16, log2: u8) -> u8 {
    ((index >> log2) & 1) as u8 ^ 1
}

/// Bytes of a ring of `1 << log2` entries of `entry_bytes` bytes, a power of two. Its card address is a multiple of them, so that base and entry are joined and not added.
pub const fn ring_bytes(log2: u8, entry_bytes: usize) -> u32 {
    (entry_bytes as u32) << log2
}

/// Bit of the last word of an entry of a queue that is its phase.
pub const PHASE_BIT: u32 = 63;

/// Whether the last word of the entry that index `index` of a queue names says that the card has written it.
pub const fn is_written(last_word: u64, index: u16, log2: u8) -> bool {
    (last_word >> PHASE_BIT) & 1 == phase(index, log2) as u64
}

/// Card address of the entry that index `index` names, of a ring at `base`, a multiple of its [`ring_bytes`], with entries of `bytes` bytes.
pub const fn entry_address(base: u64, index: u16, log2: u8, bytes: usize) -> u64 {
    base | (entry(index, log2) as u64 * bytes as u64)
}

/// An entry of a queue that the card writes: its last words, the one with the phase last.
pub trait QueueEntry: Sized {
    /// Words of an entry.
    const ENTRY_WORDS: usize;

    /// Words that the card has written, the last ones of the entry, if the very last is `last_word`. What is in front of them is of an earlier lap.
    fn words_written(last_word: u64) -> usize;

    /// The entry, whose words `word` reads by their index: the last one first, and of the others those that were written. What wasn't is zero.
    fn read(word: impl FnMut(usize) -> u64) -> Self;
}

/// The words of an entry of `N` words that the card has written, and zeros.
pub(crate) fn words_from<E: QueueEntry, const N: usize>(
    mut word: impl FnMut(usize) -> u64,
) -> [u64; N] {
    let last = N - 1;
    let mut words = [0; N];
    words[last] = word(last);
    for at in N - E::words_written(words[last])..last {
        words[at] = word(at);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completion::{COMPLETION_BYTES, Completion};
    use crate::event::{EVENT_BYTES, Event};
    use crate::limits::{MAX_RING_LOG2, MIN_RING_LOG2};
    use crate::request::REQUEST_BYTES;

    #[test]
    fn the_phase_is_the_last_bit_of_either_entry() {
        for fields in [Completion::FIELDS, Event::FIELDS] {
            let last = fields.last().unwrap();
            let bit = last.lsb % 64;
            assert_eq!(
                (last.name, bit, last.width),
                ("phase", PHASE_BIT as usize, 1)
            );
        }
        assert!(is_written(1 << 63, 3, 2) && !is_written(1 << 63, 4, 2));
    }

    #[test]
    fn the_phase_flips_at_each_wrap_and_indices_wrap_without_a_seam() {
        assert_eq!([0, 3, 4, 7, 8].map(|i| phase(i, 2)), [1, 1, 0, 0, 1]);
        assert_eq!((phase(u16::MAX, 2), phase(0, 2)), (0, 1));
        assert_eq!((entry(u16::MAX, 2), entry(0, 2)), (3, 0));
        assert_eq!(entry_address(0x1000, 5, 2, 64), 0x1040);
    }

    #[test]
    fn the_entries_of_a_ring_that_is_aligned_to_its_size_are_joined_to_its_base() {
        for bytes in [REQUEST_BYTES, COMPLETION_BYTES, EVENT_BYTES] {
            assert!(bytes.is_power_of_two());
            for log2 in MIN_RING_LOG2..=MAX_RING_LOG2 {
                let size = u64::from(ring_bytes(log2, bytes));
                let last = entry_address(5 * size, (1 << log2) - 1, log2, bytes);
                assert_eq!(last + bytes as u64, 6 * size);
            }
        }
    }
}
