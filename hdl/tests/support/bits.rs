//! Fields to the bits of a struct port and back: first field least significant.

#![allow(dead_code, reason = "each test program uses some of it")]

/// Values with their widths, packed into words.
pub fn pack(fields: &[(u64, u32)]) -> Vec<u64> {
    let mut words = vec![];
    let mut at = 0;
    for &(value, width) in fields {
        for bit in 0..width {
            if at % 64 == 0 {
                words.push(0);
            }
            *words.last_mut().expect("pushed above") |= (value >> bit & 1) << (at % 64);
            at += 1;
        }
    }
    words
}

/// The fields of these widths.
pub fn unpack<const N: usize>(words: &[u64], widths: [u32; N]) -> [u64; N] {
    let mut at = 0;
    widths.map(|width| {
        let bit = |b: usize| (words[(at + b) / 64] >> ((at + b) % 64) & 1) << b;
        let value = (0..width as usize).map(bit).sum();
        at += width as usize;
        value
    })
}
