//! Constants of the source that a kernel names.

use super::text::range;
use num_bigint::BigInt;

/// How a comment in a kernel's tree begins that says what a name of the kernel stands for: `constant limits$EAGER_MAX
/// 32'h400`. In the tree it is the signal `?limits$EAGER_MAX`.
pub const CONSTANT: &str = "constant ";

/// A constant of the source: its value, and the bits of its Rust type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Constant {
    pub(crate) value: BigInt,
    pub(crate) width: usize,
}

impl Constant {
    /// The declaration, without `;`.
    pub(crate) fn declaration(&self, name: &str) -> String {
        let Constant { value, width } = self;
        let value = match u32::try_from(value) {
            Ok(value) if value < 1 << 16 => format!("{width}'d{value}"),
            _ => format!("{width}'h{value:x}"),
        };
        format!("localparam logic{} {name} = {value}", range(*width))
    }
}

/// The name under which a kernel's constant is printed: `limits$EAGER_MAX` is `EAGER_MAX`, `Status$Truncated` is
/// `Status_Truncated`.
pub(crate) fn constant_name(path: &str) -> String {
    let mut parts = path.rsplit('$');
    let name = parts.next().unwrap_or(path);
    match parts.next() {
        Some(of) if of != "Self" && of.starts_with(|c: char| c.is_uppercase()) => {
            format!("{of}_{name}")
        }
        _ => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_keeps_the_type_that_it_belongs_to_and_drops_modules() {
        assert_eq!(constant_name("EAGER_MAX"), "EAGER_MAX");
        assert_eq!(constant_name("abi$limits$EAGER_MAX"), "EAGER_MAX");
        assert_eq!(constant_name("status$Status$Truncated"), "Status_Truncated");
        assert_eq!(constant_name("Self$DEPTH"), "DEPTH");
    }
}
