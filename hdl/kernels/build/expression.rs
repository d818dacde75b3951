//! Random expressions of a wanted type, as Rust text.
//!
//! An expression is written with as few parentheses as Rust's precedence allows, and sometimes
//! more: the printer must find the tree again under both.

use crate::scope::{ENUMS, Scope, Type, width};
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// Text and how tightly it binds: Rust's order of operators, 10 for what needs no parentheses.
pub struct Text {
    text: String,
    binds: u8,
}

impl Text {
    /// The bare text, for a place that takes any expression.
    pub fn into_text(self) -> String {
        self.text
    }
}

const PRIMARY: u8 = 10;
const UNARY: u8 = 9;
const PRODUCT: u8 = 8;
const SUM: u8 = 7;
const SHIFT: u8 = 6;
const AND: u8 = 5;
const XOR: u8 = 4;
const OR: u8 = 3;
const COMPARE: u8 = 2;
const BOTH: u8 = 1;
const EITHER: u8 = 0;

pub struct Expressions<'a> {
    pub scope: &'a Scope,
    pub rng: &'a mut ChaCha8Rng,
}

/// An expression of type `ty`, nested at most `depth` deep.
pub fn expression(scope: &Scope, rng: &mut ChaCha8Rng, ty: Type, depth: usize) -> String {
    Expressions { scope, rng }.of(ty, depth).text
}

fn primary(text: impl Into<String>) -> Text {
    Text {
        text: text.into(),
        binds: PRIMARY,
    }
}

impl Expressions<'_> {
    fn chance(&mut self, p: f64) -> bool {
        self.rng.random_bool(p)
    }

    fn of(&mut self, ty: Type, depth: usize) -> Text {
        match ty {
            Type::Bits(w) => self.bits(w, depth),
            Type::Signed(w) => self.signed(w, depth),
            Type::Bit => self.bit(depth),
            Type::Enum(i) => match self.leaf(ty) {
                Some(leaf) if self.chance(0.6) => leaf,
                _ => {
                    let variant = ENUMS[i].1.choose(self.rng).expect("enums have variants");
                    primary(format!("{}::{variant}", ENUMS[i].0))
                }
            },
            Type::Struct(i) => match self.leaf(ty) {
                Some(leaf) => leaf,
                None => panic!("no leaf of struct {i}: each scope has one of each type it assigns"),
            },
        }
    }

    fn leaf(&mut self, ty: Type) -> Option<Text> {
        let leaf = self.scope.pick(self.rng, |l| l.ty == ty)?;
        Some(primary(leaf.text.clone()))
    }

    /// `x` in a place that takes what binds at least as `binds`.
    fn at(&mut self, x: Text, binds: u8) -> String {
        if x.binds < binds || self.chance(0.15) {
            format!("({})", x.text)
        } else {
            x.text
        }
    }

    fn infix(&mut self, left: Text, operator: &str, right: Text, binds: u8) -> Text {
        // Comparisons don't chain in Rust; the others associate to the left.
        let left_binds = if binds == COMPARE { binds + 1 } else { binds };
        let left = self.at(left, left_binds);
        let right = self.at(right, binds + 1);
        Text {
            text: format!("{left} {operator} {right}"),
            binds,
        }
    }

    /// An integer that fits `w` bits, often at an end of the range.
    fn integer(&mut self, w: usize) -> Text {
        let top = if w >= 31 {
            (1u64 << 31) - 1
        } else {
            (1u64 << w) - 1
        };
        let value = match self.rng.random_range(0..4) {
            0 => top,
            1 => 1.min(top),
            2 => top / 2,
            _ => self.rng.random_range(0..=top),
        };
        primary(match self.rng.random_range(0..3) {
            0 => format!("0x{value:x}"),
            _ => value.to_string(),
        })
    }

    /// A constant or varying index below `2^k <= limit`, as the argument of `get_bit`.
    fn index(&mut self, limit: usize) -> String {
        let k = limit.ilog2() as usize;
        if k == 0 || self.chance(0.4) {
            return self.rng.random_range(0..limit).to_string();
        }
        let k = self.rng.random_range(1..=k.min(8));
        let left = self.bits(k, 0);
        let index = if self.chance(0.3) {
            let right = self.bits(k, 0);
            let operator = *[("&", AND), ("|", OR), ("^", XOR)]
                .choose(self.rng)
                .expect("the list has entries");
            self.infix(left, operator.0, right, operator.1)
        } else {
            left
        };
        format!("{}.index()", self.at(index, PRIMARY))
    }

    fn bits(&mut self, w: usize, depth: usize) -> Text {
        if depth == 0 || self.chance(0.1) {
            return self.bits_leaf(w);
        }
        let d = depth - 1;
        match self.rng.random_range(0..100) {
            0..38 => {
                let (operator, binds) = *[
                    ("+", SUM),
                    ("-", SUM),
                    ("+", SUM),
                    ("-", SUM),
                    ("&", AND),
                    ("|", OR),
                    ("^", XOR),
                ]
                .choose(self.rng)
                .expect("the list has entries");
                match self.rng.random_range(0..10) {
                    0 | 1 => {
                        let (left, right) = (self.bits(w, d), self.integer(w));
                        self.infix(left, operator, right, binds)
                    }
                    2 => {
                        let (left, right) = (self.integer(w), self.bits(w, d));
                        self.infix(left, operator, right, binds)
                    }
                    3 => {
                        let (left, right) = (self.bits(w, d), self.bit(d));
                        self.infix(left, "+", right, SUM)
                    }
                    _ => {
                        let (left, right) = (self.bits(w, d), self.bits(w, d));
                        self.infix(left, operator, right, binds)
                    }
                }
            }
            38..50 => {
                let operator = if self.chance(0.5) { "<<" } else { ">>" };
                if w == 64 && self.chance(0.3) {
                    let by = self.bits(5, 0);
                    return self.infix(primary("1"), operator, by, SHIFT);
                }
                let by = if self.chance(0.5) {
                    primary(self.rng.random_range(0..w + 3).to_string())
                } else {
                    let k = self.rng.random_range(1..=8);
                    self.bits(k, d.min(1))
                };
                let left = self.bits(w, d);
                self.infix(left, operator, by, SHIFT)
            }
            50..58 => {
                let x = self.bits(w, d);
                Text {
                    text: format!("!{}", self.at(x, UNARY)),
                    binds: UNARY,
                }
            }
            58..74 => {
                let n = self.width();
                let x = self.bits(n, d);
                primary(format!("bit_cast::<{w}, {n}>({})", x.text))
            }
            74..82 => {
                let n = self.width().max(w);
                let x = self.bits(n, d);
                let x = self.at(x, PRIMARY);
                let offset = if self.chance(0.6) {
                    // Sometimes past the top, where rust-hdl reads zeros.
                    let top = if self.chance(0.2) { n } else { n - w + 1 };
                    self.rng.random_range(0..top).to_string()
                } else {
                    self.index(n)
                };
                primary(format!("{x}.get_bits::<{w}>({offset})"))
            }
            82..91 => {
                let x = self.bits(w, d);
                let x = self.at(x, PRIMARY);
                let index = self.index(w);
                let bit = self.bit(d);
                primary(format!("{x}.replace_bit({index}, {})", bit.text))
            }
            91..96 => {
                let x = self.signed(w, d);
                primary(format!("unsigned_cast({})", x.text))
            }
            _ if w == 32 => {
                let (left, right) = (self.bits(16, d), self.bits(16, d));
                self.infix(left, "*", right, PRODUCT)
            }
            _ => self.packed(w),
        }
    }

    /// An enum, struct or bit taken as a number.
    fn packed(&mut self, w: usize) -> Text {
        let is_packed = |ty| matches!(ty, Type::Enum(_) | Type::Struct(_) | Type::Bit);
        match self.scope.pick(self.rng, |l| is_packed(l.ty)) {
            Some(leaf) => {
                let (text, n) = (leaf.text.clone(), leaf.ty.width());
                primary(format!("bit_cast::<{w}, {n}>({text}.into())"))
            }
            None => self.bits_leaf(w),
        }
    }

    fn bits_leaf(&mut self, w: usize) -> Text {
        if self.chance(0.12) {
            return primary(format!("bits::<{w}>({})", self.integer(w).text));
        }
        if let Some(leaf) = self.leaf(Type::Bits(w)) {
            return leaf;
        }
        match self.scope.pick(self.rng, |l| matches!(l.ty, Type::Bits(_))) {
            Some(leaf) => {
                let (text, n) = (leaf.text.clone(), leaf.ty.width());
                primary(format!("bit_cast::<{w}, {n}>({text})"))
            }
            None => primary(format!("bits::<{w}>({})", self.integer(w).text)),
        }
    }

    fn signed(&mut self, w: usize, depth: usize) -> Text {
        if depth == 0 || self.chance(0.15) {
            return match self.leaf(Type::Signed(w)) {
                Some(leaf) => leaf,
                None => {
                    let x = self.bits_leaf(w);
                    primary(format!("signed_cast({})", x.text))
                }
            };
        }
        let d = depth - 1;
        match self.rng.random_range(0..10) {
            0..4 => {
                let left = self.signed(w, d);
                let right = match self.widened(w) {
                    Some(x) if self.chance(0.4) => x,
                    _ => self.signed(w, d),
                };
                let operator = if self.chance(0.5) { "+" } else { "-" };
                self.infix(left, operator, right, SUM)
            }
            4 | 5 => {
                let x = self.signed(w, d);
                Text {
                    text: format!("-{}", self.at(x, UNARY)),
                    binds: UNARY,
                }
            }
            6 => {
                let n = self.width().max(w);
                let x = self.signed(n, d);
                let x = self.at(x, PRIMARY);
                let offset = self.rng.random_range(0..n - w + 1);
                primary(format!("{x}.get_bits::<{w}>({offset})"))
            }
            7 if w == 32 => {
                let (left, right) = (self.signed(16, d), self.signed(16, d));
                self.infix(left, "*", right, PRODUCT)
            }
            _ => {
                let x = self.bits(w, d);
                primary(format!("signed_cast({})", x.text))
            }
        }
    }

    /// `signed_bit_cast` to `w` bits of an input that never has the minimum. Its width isn't in
    /// the tree, so it stands only where another operand or the target says it.
    pub fn widened(&mut self, w: usize) -> Option<Text> {
        let leaf = self.scope.pick(self.rng, |l| {
            l.no_minimum && matches!(l.ty, Type::Signed(_))
        })?;
        let n = leaf.ty.width();
        Some(primary(format!(
            "signed_bit_cast::<{w}, {n}>({})",
            leaf.text
        )))
    }

    fn bit(&mut self, depth: usize) -> Text {
        if depth == 0 || self.chance(0.08) {
            return match self.leaf(Type::Bit) {
                Some(leaf) if self.chance(0.9) => leaf,
                _ => primary(if self.chance(0.5) { "true" } else { "false" }),
            };
        }
        let d = depth - 1;
        const ORDER: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];
        let comparison = *ORDER.choose(self.rng).expect("the list has entries");
        let equality = ORDER[self.rng.random_range(0..2)];
        match self.rng.random_range(0..100) {
            0..30 => {
                let w = self.width();
                let (left, right) = match self.rng.random_range(0..6) {
                    0 => (self.bits(w, d), self.integer(w)),
                    1 => (self.integer(w), self.bits(w, d)),
                    _ => (self.bits(w, d), self.bits(w, d)),
                };
                self.infix(left, comparison, right, COMPARE)
            }
            30..40 => {
                let w = self.width();
                let (left, right) = (self.signed(w, d), self.signed(w, d));
                self.infix(left, comparison, right, COMPARE)
            }
            40..48 => {
                let is_named = |ty| matches!(ty, Type::Enum(_) | Type::Struct(_));
                let Some(leaf) = self.scope.pick(self.rng, |l| is_named(l.ty)) else {
                    return self.bit(d);
                };
                let (left, ty) = (primary(leaf.text.clone()), leaf.ty);
                let right = self.of(ty, d);
                self.infix(left, equality, right, COMPARE)
            }
            48..60 => {
                let w = self.width();
                let x = self.bits(w, d);
                let x = self.at(x, PRIMARY);
                let method = *["all", "any", "xor"].choose(self.rng).expect("not empty");
                primary(format!("{x}.{method}()"))
            }
            60..72 => {
                let w = self.width();
                let x = if self.chance(0.2) {
                    self.signed(w, d)
                } else {
                    self.bits(w, d)
                };
                let x = self.at(x, PRIMARY);
                let index = self.index(w);
                primary(format!("{x}.get_bit({index})"))
            }
            72..78 => {
                let x = self.bit(d);
                Text {
                    text: format!("!{}", self.at(x, UNARY)),
                    binds: UNARY,
                }
            }
            78..84 => {
                let (left, right) = (self.bit(d), self.bit(d));
                self.infix(left, comparison, right, COMPARE)
            }
            _ => {
                let (operator, binds) = *[
                    ("&", AND),
                    ("|", OR),
                    ("^", XOR),
                    ("&&", BOTH),
                    ("||", EITHER),
                ]
                .choose(self.rng)
                .expect("the list has entries");
                let (left, right) = (self.bit(d), self.bit(d));
                self.infix(left, operator, right, binds)
            }
        }
    }

    /// A width: as a rule one that a signal has.
    fn width(&mut self) -> usize {
        let is_bits = |ty| matches!(ty, Type::Bits(_));
        match self.scope.pick(self.rng, |l| is_bits(l.ty)) {
            Some(leaf) if self.rng.random_bool(0.8) => leaf.ty.width(),
            _ => width(self.rng),
        }
    }
}
