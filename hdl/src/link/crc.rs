//! CRC-32C over a 64-bit word in one step.
//!
//! A CRC is linear: each bit of the next register is the parity of some bits of the word and of the
//! register. Which bits is computed from the polynomial of `abi::wire` when the block is built, by
//! running the bit-serial division once for each bit of the word, so the block holds no table that
//! could disagree with it.
//!
//! ```text
//!   state (32) ──► xor into the low half ──► 32 parities, each of the bits in its mask ──► result
//!   data (64)  ──►
//! ```
//!
//! The register starts at all ones and is inverted at the end by the block's user.

use crate::prelude::*;
use abi::wire::CRC_POLYNOMIAL;

/// One step of CRC-32C: 64 bits, byte 0 in the least significant lane.
#[block]
pub struct Crc {
    /// The register before the word.
    pub state: Signal<In, Bits<32>>,
    /// The word.
    pub data: Signal<In, Bits<64>>,
    /// The register after the word.
    pub result: Signal<Out, Bits<32>>,
    mixed: Signal<Local, Bits<64>>,
    #[is(masks()
                .into_iter()
                .map(|mask| Constant::new(mask.into()))
                .collect())]
    masks: Vec<Constant<Bits<64>>>,
}

/// The register after a word, from a register of zero: the division, a bit at a time.
fn divide(word: u64) -> u32 {
    (0..64).fold(0, |register: u32, bit| {
        let feedback = (register ^ (word >> bit) as u32) & 1;
        (register >> 1) ^ (CRC_POLYNOMIAL * feedback)
    })
}

/// For each bit of the register, the bits of the word whose parity it is.
fn masks() -> [u64; 32] {
    let columns: [u32; 64] = core::array::from_fn(|bit| divide(1 << bit));
    core::array::from_fn(|row| {
        (0..64).fold(0, |mask, bit| {
            mask | u64::from((columns[bit] >> row) & 1) << bit
        })
    })
}

#[block]
impl Logic for Crc {
    fn update(&mut self) {
        self.mixed.next = self.data.val() ^ bit_cast::<64, 32>(self.state.val());
        self.result.next = 0.into();
        for row in 0..32 {
            self.result.next = self
                .result
                .val()
                .replace_bit(row, (self.mixed.val() & self.masks[row].val()).xor());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_give_the_crc_that_abi_says() {
        let mut crc = Crc::default();
        crc.state.connect();
        crc.data.connect();
        crc.connect_all();
        let bytes: Vec<u8> = (0..64u8).map(|k| k.wrapping_mul(37) ^ 0x5a).collect();
        let mut register = u32::MAX;
        for (k, chunk) in bytes.chunks_exact(8).enumerate() {
            let word = u64::from_le_bytes(chunk.try_into().expect("chunks of eight"));
            crc.state.next = u64::from(register).into();
            crc.data.next = word.into();
            simulate(&mut crc, 10);
            register = crc.result.val().to_u32();
            assert_eq!(!register, abi::wire::crc32c(&bytes[..8 * (k + 1)]));
        }
    }
}
