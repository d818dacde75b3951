//! Fields to the bits of a struct port and back: first field least significant.

/// Values with their widths, of at most 64 bits, packed into words.
pub fn pack(fields: &[(u64, u32)]) -> Vec<u64> {
    let total: u32 = fields.iter().map(|(_, width)| width).sum();
    let mut words = vec![0; total.div_ceil(64) as usize];
    let mut at = 0;
    for &(value, width) in fields {
        let kept = u128::from(value) & ((1 << width) - 1);
        let spread = kept << (at % 64);
        // It touches two words at most.
        for (word, half) in words[at / 64..].iter_mut().zip([spread, spread >> 64]) {
            *word |= half as u64;
        }
        at += width as usize;
    }
    words
}

/// The fields of these widths, of at most 64 bits.
pub fn unpack<const N: usize>(words: &[u64], widths: [u32; N]) -> [u64; N] {
    let mut at = 0;
    widths.map(|width| {
        let word = |k: usize| words.get(k).map_or(0, |&word| u128::from(word));
        let spread = word(at / 64) | word(at / 64 + 1) << 64;
        let value = (spread >> (at % 64)) & ((1 << width) - 1);
        at += width as usize;
        value as u64
    })
}
