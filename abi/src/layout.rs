//! How a packed structure is declared: a list of named fields, least significant bit first.
//!
//! A structure is a whole number of 64-bit little-endian words. Each field is given its Rust type and
//! its width in bits; fields follow each other without gaps, so padding is a named field whose name
//! starts with `reserved`, and no field crosses a word boundary. The list is a macro of its own
//! (`*_layout!`) that applies another macro to itself: [`define_layout!`](crate::define_layout) makes
//! the host's view of it, `hdl` makes a `LogicStruct` with the same bits from the same list.

use core::fmt;

/// Position of a field inside its structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name, as in the declaration.
    pub name: &'static str,
    /// Least significant bit, counted from bit 0 of word 0.
    pub lsb: usize,
    /// Width in bits.
    pub width: usize,
    /// What it means, as documented.
    pub doc: &'static str,
}

impl Field {
    /// Index of the 64-bit word that holds the field.
    pub const fn word(&self) -> usize {
        self.lsb / 64
    }

    /// The field's value, taken from the structure's words.
    pub const fn get(&self, words: &[u64]) -> u64 {
        (words[self.word()] >> (self.lsb % 64)) & self.mask()
    }

    /// Sets the field in the structure's words. Bits of `value` above the width are dropped.
    pub const fn set(&self, words: &mut [u64], value: u64) {
        let shift = self.lsb % 64;
        let word = self.word();
        words[word] = (words[word] & !(self.mask() << shift)) | ((value & self.mask()) << shift);
    }

    const fn mask(&self) -> u64 {
        if self.width == 64 {
            u64::MAX
        } else {
            (1 << self.width) - 1
        }
    }
}

/// A byte slice that is too short for the structure it is to be read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooShort {
    /// Bytes that the structure takes.
    pub needed: usize,
    /// Bytes that there were.
    pub found: usize,
}

impl fmt::Display for TooShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes where {} are needed", self.found, self.needed)
    }
}

impl core::error::Error for TooShort {}

/// Declares the representation (`struct`) and the checked view (`…View`) of a layout.
///
/// The representation has `WORDS`, `BYTES`, `ABOUT`, `FIELDS`, `from_words`, `to_words`, `parse` and `emit`.
/// The view wraps bytes and reads a field at a time: `new_checked` refuses a short slice;
/// `new_unchecked` doesn't look, and an accessor then panics if the slice is short.
#[macro_export]
macro_rules! define_layout {
    ($(#[doc = $about:literal])+ $name:ident, $view:ident, $words:literal words {
        $($(#[doc = $doc:literal])+ $field:ident : $ty:ty = $width:literal,)*
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $ty,)*
        }

        impl $name {
            /// Size in 64-bit words.
            pub const WORDS: usize = $words;
            /// Size in bytes.
            pub const BYTES: usize = 8 * $words;
            /// What the structure is, as documented.
            pub const ABOUT: &'static str = concat!($($about),+);
            /// Every field with its position, in order.
            pub const FIELDS: &'static [$crate::layout::Field] = &{
                let mut fields = [$($crate::layout::Field {
                    name: stringify!($field),
                    lsb: 0,
                    width: $width,
                    doc: concat!($($doc),+),
                }),*];
                let mut at = 0;
                let mut k = 0;
                while k < fields.len() {
                    assert!(at / 64 == (at + fields[k].width - 1) / 64, "a field crosses a word boundary");
                    fields[k].lsb = at;
                    at += fields[k].width;
                    k += 1;
                }
                assert!(at == 64 * $words, "fields do not fill the structure");
                fields
            };

            /// Reads the structure from its words.
            pub fn from_words(words: &[u64; $words]) -> Self {
                let mut fields = Self::FIELDS.iter();
                $(let $field = fields.next().map_or(0, |f| f.get(words)) as $ty;)*
                Self { $($field),* }
            }

            /// The structure as words.
            pub fn to_words(self) -> [u64; $words] {
                let mut words = [0; $words];
                let mut fields = Self::FIELDS.iter();
                $(if let Some(f) = fields.next() { f.set(&mut words, u64::from(self.$field)); })*
                words
            }

            /// Reads the structure from the start of `bytes`.
            ///
            /// # Errors
            /// [`TooShort`](crate::layout::TooShort) if there are fewer than `BYTES` bytes.
            pub fn parse(bytes: &[u8]) -> Result<Self, $crate::layout::TooShort> {
                Ok($view::new_checked(bytes)?.to_repr())
            }

            /// Writes the structure to the start of `bytes`.
            ///
            /// # Panics
            /// If there are fewer than `BYTES` bytes.
            pub fn emit(self, bytes: &mut [u8]) {
                for (chunk, word) in bytes[..Self::BYTES].chunks_exact_mut(8).zip(self.to_words()) {
                    chunk.copy_from_slice(&word.to_le_bytes());
                }
            }
        }

        #[doc = concat!("Checked view of a [`", stringify!($name), "`] over bytes.")]
        #[derive(Clone, Copy, Debug)]
        pub struct $view<T: AsRef<[u8]>> {
            bytes: T,
        }

        impl<T: AsRef<[u8]>> $view<T> {
            /// A view that doesn't check the length. Accessors panic if the slice is too short.
            pub const fn new_unchecked(bytes: T) -> Self {
                Self { bytes }
            }

            /// A view of bytes that are long enough, so that no accessor panics.
            ///
            /// # Errors
            /// [`TooShort`](crate::layout::TooShort) if there are fewer bytes than the structure takes.
            pub fn new_checked(bytes: T) -> Result<Self, $crate::layout::TooShort> {
                let found = bytes.as_ref().len();
                if found < $name::BYTES {
                    return Err($crate::layout::TooShort { needed: $name::BYTES, found });
                }
                Ok(Self { bytes })
            }

            fn words(&self) -> [u64; $words] {
                let mut words = [0; $words];
                for (word, chunk) in words.iter_mut().zip(self.bytes.as_ref().chunks_exact(8)) {
                    let mut le = [0; 8];
                    le.copy_from_slice(chunk);
                    *word = u64::from_le_bytes(le);
                }
                words
            }

            /// The whole structure.
            pub fn to_repr(&self) -> $name {
                $name::from_words(&self.words())
            }

            $($(#[doc = $doc])+
            pub fn $field(&self) -> $ty {
                self.to_repr().$field
            })*
        }
    };
}

#[cfg(test)]
mod tests {
    crate::define_layout! {
        /// Two words.
        Sample, SampleView, 2 words {
            /// Low.
            low: u8 = 4,
            /// Middle.
            middle: u64 = 60,
            /// High.
            high: u64 = 64,
        }
    }

    #[test]
    fn fields_follow_each_other_from_bit_zero() {
        let at: [usize; 3] = core::array::from_fn(|k| Sample::FIELDS[k].lsb);
        assert_eq!(at, [0, 4, 64]);
    }

    #[test]
    fn what_is_emitted_is_parsed_again() {
        let sample = Sample {
            low: 0xa,
            middle: 0x012_3456_789a_bcde,
            high: u64::MAX,
        };
        let mut bytes = [0; Sample::BYTES];
        sample.emit(&mut bytes);
        assert_eq!(bytes[0], 0xea);
        assert_eq!(Sample::parse(&bytes), Ok(sample));
        let view = SampleView::new_unchecked(&bytes[..]);
        assert_eq!(
            (view.low(), view.middle(), view.high()),
            (0xa, 0x012_3456_789a_bcde, u64::MAX)
        );
        assert_eq!((Sample::WORDS, Sample::ABOUT), (2, " Two words."));
    }

    #[test]
    fn a_short_slice_is_refused() {
        let short = super::TooShort {
            needed: 16,
            found: 15,
        };
        assert_eq!(Sample::parse(&[0; 15]), Err(short));
    }

    #[test]
    fn a_value_too_wide_for_its_field_touches_no_other_field() {
        let sample = Sample {
            low: 0xff,
            middle: 0,
            high: 0,
        };
        assert_eq!(sample.to_words(), [0xf, 0]);
    }
}
