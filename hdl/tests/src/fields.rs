//! Structs of the card's streams as a test drives and reads them: fields in a row, the first in the
//! least significant bits.

use abi::control::Operation;

use super::Bench;

/// Puts fields of a value and a width after each other.
pub fn pack(fields: &[(u64, usize)]) -> Vec<u64> {
    let total: usize = fields.iter().map(|(_, width)| width).sum();
    let mut words = vec![0; total.div_ceil(64).max(1)];
    let mut at = 0;
    for &(value, width) in fields {
        let value = if width == 64 {
            value
        } else {
            value & ((1 << width) - 1)
        };
        words[at / 64] |= value << (at % 64);
        if at % 64 + width > 64 {
            words[at / 64 + 1] |= value >> (64 - at % 64);
        }
        at += width;
    }
    words
}

/// Takes fields of these widths apart.
pub fn unpack<const N: usize>(words: &[u64], widths: [usize; N]) -> [u64; N] {
    let mut at = 0;
    widths.map(|width| {
        let mut value = words[at / 64] >> (at % 64);
        if at % 64 + width > 64 {
            value |= words[at / 64 + 1] << (64 - at % 64);
        }
        at += width;
        if width == 64 {
            value
        } else {
            value & ((1 << width) - 1)
        }
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
