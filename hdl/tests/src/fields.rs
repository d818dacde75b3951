//! Structs of the card's streams as a test drives and reads them: fields in a row, the first in the
//! least significant bits.

use abi::control::Operation;

use super::Bench;

/// Puts fields of a value and a width, of at most 64 bits, after each other.
pub fn pack(fields: &[(u64, usize)]) -> Vec<u64> {
    let total: usize = fields.iter().map(|(_, width)| width).sum();
    let mut words = vec![0; total.div_ceil(64)];
    let mut at = 0;
    for &(value, width) in fields {
        let kept = u128::from(value) & ((1 << width) - 1);
        let spread = kept << (at % 64);
        // It touches two words at most.
        for (word, half) in words[at / 64..].iter_mut().zip([spread, spread >> 64]) {
            *word |= half as u64;
        }
        at += width;
    }
    words
}

/// The fields of these widths, of at most 64 bits.
pub fn unpack<const N: usize>(words: &[u64], widths: [usize; N]) -> [u64; N] {
    let mut at = 0;
    widths.map(|width| {
        let word = |k: usize| words.get(k).map_or(0, |&word| u128::from(word));
        let spread = word(at / 64) | word(at / 64 + 1) << 64;
        let value = (spread >> (at % 64)) & ((1 << width) - 1);
        at += width;
        value as u64
    })
}

/// Sets the pin `control` to a request.
pub fn set_control(bench: &mut Bench, operation: Operation, index: u16, data: &[u64]) {
    let mut fields = vec![(operation.code().into(), 8), (index.into(), 16)];
    fields.extend((0..5).map(|k| (data.get(k).copied().unwrap_or(0), 64)));
    bench.set_wide("control", &pack(&fields));
}

/// What a stream's source must keep: once it offers something, it offers the same until it is taken.
#[derive(Default)]
pub struct Steady(Option<Vec<u64>>);

impl Steady {
    /// Looks at the stream before an edge; returns what is transferred by it.
    pub fn watch(
        &mut self,
        name: &str,
        valid: bool,
        ready: bool,
        data: &[u64],
    ) -> Option<Vec<u64>> {
        if let Some(held) = self.0.take() {
            assert!(valid, "{name} took its offer back");
            assert_eq!(held, data, "{name} changed its offer");
        }
        match (valid, ready) {
            (true, true) => Some(data.to_vec()),
            (true, false) => {
                self.0 = Some(data.to_vec());
                None
            }
            _ => None,
        }
    }
}
