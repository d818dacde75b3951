//! A keyed hash: the rows where a key may be.
//!
//! ```text
//!   key  ──────────► AND ─► parity 0 ──┐
//!   seed ─┬──────────┘                 ├─► bit i = parity i ^ (parity j & parity k)
//!         └ >> 1 ──► AND ─► parity 1 ──┘   …
//! ```
//!
//! A parity is one row of a Toeplitz matrix over GF(2) whose diagonals are the seed (Krawczyk, "LFSR-based hashing
//! and authentication", CRYPTO 1994). The parities alone are linear: keys that count upwards would, by one
//! seed in thirty, fall on half of the rows or fewer. So each bit of a hash is one parity, inverted where two others are
//! both set: a quadratic form, of which no choice of keys without the seed is known to miss rows. One level of
//! AND, a tree of XOR and one level more: it takes one cycle.

use crate::prelude::*;

/// Bits of the seed.
pub const SEED_BITS: usize = 128;
/// Bits of one hash; two come out.
pub const HASH_BITS: usize = 12;
/// Bits of a key of the posted receives, as [`KeyWay`](super::key_way::KeyWay) holds it.
pub const KEY_BITS: usize = 97;
/// Bits of a handle with its endpoint.
pub const HANDLE_BITS: usize = 40;

/// Parities that the hashes are made of.
const PARITIES: usize = 32;

const _: () = assert!(KEY_BITS + PARITIES - 1 <= SEED_BITS);
const _: () = assert!(HANDLE_BITS + PARITIES - 1 <= SEED_BITS - 56);
const _: () = assert!(
    HASH_BITS == 12,
    "the kernels choose parities of their own for each bit"
);

/// Two hashes made of the parities.
#[block]
pub struct Mix {
    /// The parities of a key.
    pub parity: Signal<In, Bits<32>>,
    /// Place in the first table, before it is cut to the table's size.
    pub first: Signal<Out, Bits<16>>,
    /// Place in the second.
    pub second: Signal<Out, Bits<16>>,
}

#[block]
impl Logic for Mix {
    fn update(&mut self) {
        self.first.next = 0.into();
        self.second.next = 0.into();
        for i in 0..12 {
            self.first.next = self.first.val().replace_bit(
                i,
                self.parity.val().get_bit(i)
                    ^ (self.parity.val().get_bit(i + 8) & self.parity.val().get_bit(i + 20)),
            );
            self.second.next = self.second.val().replace_bit(
                i,
                self.parity.val().get_bit(i + 12)
                    ^ (self.parity.val().get_bit(i + 3) & self.parity.val().get_bit(31 - i)),
            );
        }
    }
}

/// Hashes of a key of the posted receives.
#[block]
pub struct KeyHash {
    /// The seed.
    pub seed: Signal<In, Bits<128>>,
    /// The key.
    pub key: Signal<In, Bits<97>>,
    /// A copy of the key in other registers: each copy drives half of the parities, and can be placed among them.
    pub twin: Signal<In, Bits<97>>,
    /// Place in the first table, before it is cut to the table's size.
    pub first: Signal<Out, Bits<16>>,
    /// Place in the second.
    pub second: Signal<Out, Bits<16>>,
    parity: Signal<Local, Bits<32>>,
    mix: Mix,
}

#[block]
impl Logic for KeyHash {
    fn update(&mut self) {
        self.parity.next = 0.into();
        for i in 0..16 {
            self.parity.next = self.parity.val().replace_bit(
                i,
                (self.key.val() & self.seed.val().get_bits::<97>(i)).xor(),
            );
        }
        for i in 16..32 {
            self.parity.next = self.parity.val().replace_bit(
                i,
                (self.twin.val() & self.seed.val().get_bits::<97>(i)).xor(),
            );
        }
        self.mix.parity.next = self.parity.val();
        self.first.next = self.mix.first.val();
        self.second.next = self.mix.second.val();
    }
}

/// Hashes of a receive's handle.
#[block]
pub struct HandleHash {
    /// The seed.
    pub seed: Signal<In, Bits<128>>,
    /// Endpoint and handle.
    pub handle: Signal<In, Bits<40>>,
    /// Place in the first table, before it is cut to the table's size.
    pub first: Signal<Out, Bits<16>>,
    /// Place in the second.
    pub second: Signal<Out, Bits<16>>,
    parity: Signal<Local, Bits<32>>,
    mix: Mix,
}

#[block]
impl Logic for HandleHash {
    fn update(&mut self) {
        self.parity.next = 0.into();
        for i in 0..32 {
            self.parity.next = self.parity.val().replace_bit(
                i,
                (self.handle.val() & self.seed.val().get_bits::<40>(i + 56)).xor(),
            );
        }
        self.mix.parity.next = self.parity.val();
        self.first.next = self.mix.first.val();
        self.second.next = self.mix.second.val();
    }
}
