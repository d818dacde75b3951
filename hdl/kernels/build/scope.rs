//! What a kernel's expressions may read: signals by name and type.

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// Types of rust-hdl values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    Bits(usize),
    Signed(usize),
    Bit,
    Enum(usize),
    Struct(usize),
}

/// The enums of `src/types.rs`: name and variants.
pub const ENUMS: [(&str, &[&str]); 3] = [
    ("Hue", &["Red", "Green", "Blue"]),
    ("Gate", &["Open", "Shut"]),
    ("Phase", &["Idle", "Fetch", "Check", "Write", "Done"]),
];

type Fields = &'static [(&'static str, Type)];

/// The structs of `src/types.rs`: name, fields, width.
pub const STRUCTS: [(&str, Fields, usize); 3] = [
    (
        "Inner",
        &[
            ("u", Type::Bits(5)),
            ("v", Type::Bits(9)),
            ("g", Type::Enum(1)),
        ],
        15,
    ),
    (
        "Record",
        &[
            ("op", Type::Bits(4)),
            ("flag", Type::Bit),
            ("hue", Type::Enum(0)),
            ("inner", Type::Struct(0)),
            ("key", Type::Bits(70)),
        ],
        92,
    ),
    (
        "Word",
        &[
            ("low", Type::Bits(32)),
            ("high", Type::Bits(33)),
            ("valid", Type::Bit),
        ],
        66,
    ),
];

impl Type {
    pub fn rust(self) -> String {
        match self {
            Type::Bits(w) => format!("Bits<{w}>"),
            Type::Signed(w) => format!("Signed<{w}>"),
            Type::Bit => "Bit".to_string(),
            Type::Enum(i) => ENUMS[i].0.to_string(),
            Type::Struct(i) => STRUCTS[i].0.to_string(),
        }
    }

    pub fn width(self) -> usize {
        match self {
            Type::Bits(w) | Type::Signed(w) => w,
            Type::Bit => 1,
            Type::Enum(i) => {
                let n = ENUMS[i].1.len();
                (usize::BITS - (n - 1).leading_zeros()) as usize
            }
            Type::Struct(i) => STRUCTS[i].2,
        }
    }
}

/// A value that can be read: its text, as `self.a.val()`, and its type.
#[derive(Clone, Debug)]
pub struct Leaf {
    pub text: String,
    pub ty: Type,
    /// Never the minimum of its signed type, on which rust-hdl's `signed_bit_cast` overflows the
    /// stack.
    pub no_minimum: bool,
}

/// The leaves of a kernel at some place in it.
#[derive(Clone, Default)]
pub struct Scope {
    pub leaves: Vec<Leaf>,
}

impl Scope {
    /// Adds a value, and the fields inside if it is a struct.
    pub fn add(&mut self, text: &str, ty: Type, no_minimum: bool) {
        self.leaves.push(Leaf {
            text: text.to_string(),
            ty,
            no_minimum,
        });
        if let Type::Struct(i) = ty {
            for (name, field) in STRUCTS[i].1 {
                self.add(&format!("{text}.{name}"), *field, false);
            }
        }
    }

    pub fn pick(&self, rng: &mut ChaCha8Rng, wanted: impl Fn(&Leaf) -> bool) -> Option<&Leaf> {
        let all: Vec<_> = self.leaves.iter().filter(|l| wanted(l)).collect();
        all.choose(rng).copied()
    }
}

/// Widths at which things go wrong, from 1 to 512.
const WIDTHS: [usize; 20] = [
    1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33, 48, 64, 65, 100, 128, 257, 512,
];
pub fn width(rng: &mut ChaCha8Rng) -> usize {
    // Half of them narrow: there the corner cases are dense.
    if rng.random_bool(0.5) {
        WIDTHS[rng.random_range(0..10)]
    } else {
        *WIDTHS.choose(rng).expect("the list has entries")
    }
}
