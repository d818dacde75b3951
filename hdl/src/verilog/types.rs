//! Types of values: a width and a sign, as rust-hdl's own types have them.
//!
//! Rust has checked every expression of a kernel before the printer sees it, so the printer needs
//! only the two facts that decide what the bits become: how many there are, and whether the top
//! one is a sign.

use num_bigint::BigInt;
use rust_hdl::prelude::{TypeDescriptor, TypeKind, VerilogLiteral};
use std::fmt;

/// Width in bits, and whether the value is two's complement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Type {
    pub(crate) width: usize,
    pub(crate) signed: bool,
}

impl Type {
    /// One bit, as `Bit` and every condition has.
    pub(crate) const BIT: Type = Type::unsigned(1);

    pub(crate) const fn unsigned(width: usize) -> Type {
        Type {
            width,
            signed: false,
        }
    }

    pub(crate) const fn signed(width: usize) -> Type {
        Type {
            width,
            signed: true,
        }
    }

    pub(crate) fn of(descriptor: &TypeDescriptor) -> Type {
        Type {
            width: width_of(descriptor),
            signed: matches!(descriptor.kind, TypeKind::Signed(_)),
        }
    }

    /// Whether `value` is one that the type can hold.
    pub(crate) fn holds(self, value: &BigInt) -> bool {
        let one = BigInt::from(1);
        let (low, high) = if self.signed {
            (-(&one << (self.width - 1)), &one << (self.width - 1))
        } else {
            (BigInt::from(0), &one << self.width)
        };
        *value >= low && *value < high
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bits{}",
            self.width,
            if self.signed { " signed" } else { "" }
        )
    }
}

/// Bits that number `count` things: rust-hdl's own rule for enums.
pub(crate) fn clog2(count: usize) -> usize {
    (usize::BITS - count.saturating_sub(1).leading_zeros()) as usize
}

pub(crate) fn width_of(descriptor: &TypeDescriptor) -> usize {
    match &descriptor.kind {
        TypeKind::Bits(n) | TypeKind::Signed(n) => *n,
        TypeKind::Enum(variants) => clog2(variants.len()),
        TypeKind::Composite(fields) => fields.iter().map(|f| width_of(&f.kind)).sum(),
    }
}

/// A field of a struct type: its offset from the least significant bit, and its type. The first
/// field of the struct is the least significant, as rust-hdl's `LogicStruct` lays it out.
pub(crate) fn field<'a>(
    descriptor: &'a TypeDescriptor,
    name: &str,
) -> Option<(usize, &'a TypeDescriptor)> {
    let TypeKind::Composite(fields) = &descriptor.kind else {
        return None;
    };
    let mut offset = 0;
    for f in fields {
        if f.fieldname == name {
            return Some((offset, &f.kind));
        }
        offset += width_of(&f.kind);
    }
    None
}

/// Type of the field that occupies exactly `width` bits from `offset`.
pub(crate) fn field_at(descriptor: &TypeDescriptor, offset: &BigInt, width: usize) -> Option<Type> {
    let TypeKind::Composite(fields) = &descriptor.kind else {
        return None;
    };
    let mut at = 0;
    for f in fields {
        if BigInt::from(at) == *offset && width_of(&f.kind) == width {
            return Some(Type::of(&f.kind));
        }
        at += width_of(&f.kind);
    }
    None
}

/// Value and width of a literal. The fields of rust-hdl's type are private and its `LowerHex` is
/// not, so it is read back from its text, `8'h2a`.
pub(crate) fn literal(literal: &VerilogLiteral) -> (BigInt, usize) {
    parse_literal(&format!("{literal:x}")).expect("rust-hdl prints literals as width'hdigits")
}

pub(crate) fn parse_literal(text: &str) -> Option<(BigInt, usize)> {
    let (width, digits) = text.trim().split_once("'h")?;
    Some((
        BigInt::parse_bytes(digits.as_bytes(), 16)?,
        width.parse().ok()?,
    ))
}
