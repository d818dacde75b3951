//! Pieces of SystemVerilog that every part of the printer writes.

use num_bigint::{BigInt, Sign};
use std::fmt::Write;

/// ` [7:0]`, or nothing for one bit.
pub(crate) fn range(width: usize) -> String {
    if width == 1 {
        String::new()
    } else {
        format!(" [{}:0]", width - 1)
    }
}

/// A sized constant; a negative one as its two's complement.
pub(crate) fn number(value: &BigInt, width: usize) -> String {
    let value = if value.sign() == Sign::Minus {
        value + (BigInt::from(1) << width)
    } else {
        value.clone()
    };
    if width <= 16 {
        format!("{width}'d{value}")
    } else {
        format!("{width}'h{value:x}")
    }
}

/// Appends a line. Writing to a `String` can't fail.
pub(crate) fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes every write");
    out.push('\n');
}
