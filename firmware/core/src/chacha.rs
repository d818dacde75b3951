//! The stream cipher ChaCha20 of D. J. Bernstein ("ChaCha, a variant of Salsa20", 2008; the numbers are those of RFC 8439), with a counter of 64 bits and no nonce: a
//! generator of words that nobody foresees who doesn't have its key.
//!
//! It is written here and not the crate's, because what the crate brings along (padded output of errors that can't occur) is 2 KiB of the processor's 96. The tests
//! hold it to the crate's.

/// Words of a block.
const WORDS: usize = 16;
/// "expand 32-byte k".
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// A stream, from its beginning.
pub(crate) struct ChaCha {
    key: [u32; 8],
    /// Blocks so far.
    counter: u64,
    block: [u32; WORDS],
    /// Words of the block that have been taken.
    taken: u8,
}

impl ChaCha {
    pub(crate) const fn new(key: [u32; 8]) -> Self {
        Self {
            key,
            counter: 0,
            block: [0; WORDS],
            taken: WORDS as u8,
        }
    }

    /// The next word.
    pub(crate) fn word(&mut self) -> u32 {
        if usize::from(self.taken) >= WORDS {
            self.block = self.next_block();
            self.counter = self.counter.wrapping_add(1);
            self.taken = 0;
        }
        let word = self.block[usize::from(self.taken) % WORDS];
        self.taken += 1;
        word
    }

    fn next_block(&self) -> [u32; WORDS] {
        let mut start = [0; WORDS];
        start[..4].copy_from_slice(&CONSTANTS);
        start[4..12].copy_from_slice(&self.key);
        (start[12], start[13]) = (self.counter as u32, (self.counter >> 32) as u32);
        let mut block = start;
        for _ in 0..10 {
            for column in 0..4 {
                quarter(&mut block, column, 0);
            }
            for diagonal in 0..4 {
                quarter(&mut block, diagonal, 1);
            }
        }
        for (word, start) in block.iter_mut().zip(start) {
            *word = word.wrapping_add(start);
        }
        block
    }
}

/// A quarter round, of a column of the block if each row is turned by 0 words more than the one above, or of a diagonal if by 1.
fn quarter(block: &mut [u32; WORDS], column: usize, turn: usize) {
    let [a, b, c, d] = [0, 1, 2, 3].map(|row| 4 * row + (column + row * turn) % 4);
    for (left, right) in [(16, 12), (8, 7)] {
        block[a] = block[a].wrapping_add(block[b]);
        block[d] = (block[d] ^ block[a]).rotate_left(left);
        block[c] = block[c].wrapping_add(block[d]);
        block[b] = (block[b] ^ block[c]).rotate_left(right);
    }
}

#[cfg(test)]
mod tests {
    use super::ChaCha;
    use chacha20::ChaCha20;
    use chacha20::cipher::{KeyIvInit, StreamCipher};

    #[test]
    fn the_stream_is_that_of_the_crate() {
        for seed in 0..20_u32 {
            let key: [u32; 8] = core::array::from_fn(|k| {
                (seed + k as u32 * 977)
                    .wrapping_mul(0x9e37_79b9)
                    .rotate_left(seed)
            });
            let mut bytes = [0; 32];
            for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(key) {
                *bytes = word.to_le_bytes();
            }
            let mut other = ChaCha20::new(&bytes.into(), &[0; 12].into());
            let mut own = ChaCha::new(key);
            for _ in 0..100 {
                let mut word = [0; 4];
                other.apply_keystream(&mut word);
                assert_eq!(own.word(), u32::from_le_bytes(word));
            }
        }
    }

    /// RFC 8439, appendix A.1, test vector 1: the first words under a key of zeros.
    #[test]
    fn the_stream_begins_as_the_standard_says() {
        let mut zeros = ChaCha::new([0; 8]);
        let first = [0xade0_b876, 0x903d_f1a0, 0xe56a_5d40, 0x28bd_8653];
        assert_eq!([(); 4].map(|()| zeros.word()), first);
    }
}
