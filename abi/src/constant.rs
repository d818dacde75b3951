//! Named numbers with their documentation, so that the book and the tools show what the code uses.

/// A constant of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Name.
    pub name: &'static str,
    /// Value.
    pub value: u64,
    /// What it means, as documented.
    pub doc: &'static str,
}

/// Declares constants, and a table of them.
macro_rules! constants {
    ($(#[$meta:meta])* $table:ident { $($(#[doc = $doc:literal])+ $name:ident: $ty:ty = $value:expr;)* }) => {
        $($(#[doc = $doc])+ pub const $name: $ty = $value;)*
        $(#[$meta])*
        pub const $table: &[$crate::constant::Constant] = &[$($crate::constant::Constant {
            name: stringify!($name),
            value: $name as u64,
            doc: concat!($($doc),+),
        }),*];
    };
}

pub(crate) use constants;

#[cfg(test)]
mod tests {
    constants! {
        /// Two of them.
        SAMPLE {
            /// One line.
            FIRST: u8 = 1 << 3;
            /// Two
            /// lines.
            SECOND: u64 = u64::MAX;
        }
    }

    #[test]
    fn the_table_has_the_values_and_the_documentation() {
        assert_eq!((FIRST, SECOND), (8, u64::MAX));
        let found: [_; 2] = core::array::from_fn(|k| (SAMPLE[k].name, SAMPLE[k].value));
        assert_eq!(found, [("FIRST", 8), ("SECOND", u64::MAX)]);
        assert_eq!(SAMPLE[1].doc, " Two lines.");
    }
}
