//! Where the inputs of a kernel come from: seeded random values with the corner cases thick among
//! them, or a count through all values.

use crate::types::{Gate, Hue, Inner, Phase, Record, Word};
use hdl::prelude::*;
use num_bigint::BigUint;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;

/// A stream of values.
pub struct Source {
    rng: ChaCha8Rng,
    /// The last value of each width: operands are often equal, or next to each other.
    last: HashMap<usize, BigUint>,
    /// What is left of the number to count with.
    count: Option<u64>,
    /// Whether signed values may be the minimum of their type.
    minimum: bool,
}

impl Source {
    /// Random values from `seed`.
    pub fn random(seed: u64, minimum: bool) -> Self {
        Source {
            rng: ChaCha8Rng::seed_from_u64(seed),
            last: HashMap::new(),
            count: None,
            minimum,
        }
    }

    /// The next values are the bits of `count`, from the least significant on.
    pub fn count_from(&mut self, count: u64) {
        self.count = Some(count);
    }

    /// A value of `width` bits.
    pub fn bits(&mut self, width: usize) -> BigUint {
        let one = BigUint::from(1u8);
        let mask = (&one << width) - &one;
        if let Some(count) = &mut self.count {
            let value = BigUint::from(*count) & mask;
            *count = count.checked_shr(width as u32).unwrap_or(0);
            return value;
        }
        let last = self.last.get(&width).cloned().unwrap_or_default();
        let value = match self.rng.random_range(0..12) {
            0 => BigUint::ZERO,
            1 => mask.clone(),
            2 => &one << (width - 1),
            3 => (&one << (width - 1)) - &one,
            4 => one.clone(),
            5 => last,
            6 => last + &one,
            7 => last + &mask,
            _ => {
                let words = (0..width.div_ceil(32)).map(|_| self.rng.random()).collect();
                BigUint::new(words)
            }
        };
        let value = value & mask;
        self.last.insert(width, value.clone());
        value
    }

    /// True once in `n` times on average.
    pub fn once_in(&mut self, n: u32) -> bool {
        self.rng.random_ratio(1, n)
    }
}

/// A type that a kernel's input can have.
pub trait Value: Synth {
    /// The next value of this type.
    fn next(source: &mut Source) -> Self;
}

impl<const N: usize> Value for Bits<N> {
    fn next(source: &mut Source) -> Self {
        source.bits(N).into()
    }
}

impl<const N: usize> Value for Signed<N> {
    fn next(source: &mut Source) -> Self {
        let minimum = BigUint::from(1u8) << (N - 1);
        let mut value = source.bits(N);
        if value == minimum && !source.minimum {
            // The next one up; of one bit, zero.
            value = (value + 1u8) & ((BigUint::from(1u8) << N) - 1u8);
        }
        signed_cast(value.into())
    }
}

impl Value for Bit {
    fn next(source: &mut Source) -> Self {
        source.bits(1) == BigUint::from(1u8)
    }
}

macro_rules! enums {
    ($($name:ident { $($variant:ident),* })*) => {
        $(impl Value for $name {
            fn next(source: &mut Source) -> Self {
                let variants = [$($name::$variant),*];
                variants[source.rng.random_range(0..variants.len())]
            }
        })*
    };
}

enums! {
    Hue { Red, Green, Blue }
    Gate { Open, Shut }
    Phase { Idle, Fetch, Check, Write, Done }
}

macro_rules! structs {
    ($($name:ident { $($field:ident),* })*) => {
        $(impl Value for $name {
            fn next(source: &mut Source) -> Self {
                $name { $($field: Value::next(source)),* }
            }
        })*
    };
}

structs! {
    Inner { u, v, g }
    Record { op, flag, hue, inner, key }
    Word { low, high, valid }
}

/// The bits of a value, as rust-hdl lays them out.
pub fn bits_of(value: impl Synth) -> BigUint {
    let text = format!("{:x}", value.verilog());
    let digits = text.split_once("'h").expect("width'hdigits").1;
    BigUint::parse_bytes(digits.as_bytes(), 16).expect("hexadecimal digits")
}
