//! A pin of a Verilated class: a member whose C++ type follows from its width.
//!
//! | width | type | |
//! |---|---|---|
//! | 1–8 | `CData` | `u8` |
//! | 9–16 | `SData` | `u16` |
//! | 17–32 | `IData` | `u32` |
//! | 33–64 | `QData` | `u64` |
//! | more | `VlWide` | `u32` words, lowest first |
//!
//! Verilator takes for granted that the bits of a member beyond its width are 0.

use std::ptr::NonNull;

use crate::Direction;

/// Address and type of one pin.
pub(crate) struct Pin {
    place: Place,
    width: u32,
    /// The bits of `set` that the pin has.
    mask: u64,
    input: bool,
}

#[derive(Clone, Copy)]
enum Place {
    U8(NonNull<u8>),
    U16(NonNull<u16>),
    U32(NonNull<u32>),
    U64(NonNull<u64>),
    Words(NonNull<u32>),
}

impl Pin {
    /// # Safety
    /// At `address` there must be a member of the type that belongs to `width`, valid and used by
    /// no one else for as long as methods of this are called.
    pub(crate) unsafe fn new(address: *mut u8, width: u32, direction: Direction) -> Self {
        let address = NonNull::new(address).expect("a member has an address");
        let place = match width {
            0..=8 => Place::U8(address),
            9..=16 => Place::U16(address.cast()),
            17..=32 => Place::U32(address.cast()),
            33..=64 => Place::U64(address.cast()),
            _ => Place::Words(address.cast()),
        };
        Self {
            place,
            width,
            mask: u64::MAX >> 64u32.saturating_sub(width),
            input: direction == Direction::Input,
        }
    }

    pub(crate) fn clear_input(&self) {
        if self.input {
            self.set(0);
        }
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        // SAFETY: by the contract of `new` the address is valid for its type, and no one else
        // writes meanwhile; a wide pin has three words or more.
        unsafe {
            match self.place {
                Place::U8(p) => p.read().into(),
                Place::U16(p) => p.read().into(),
                Place::U32(p) => p.read().into(),
                Place::U64(p) => p.read(),
                Place::Words(p) => u64::from(p.read()) | u64::from(p.add(1).read()) << 32,
            }
        }
    }

    #[inline]
    pub(crate) fn set(&self, value: u64) {
        assert!(self.input, "an output can't be set");
        let value = value & self.mask;
        // SAFETY: by the contract of `new`, as in `get`. The casts lose nothing: the value is cut
        // to the width.
        unsafe {
            match self.place {
                Place::U8(p) => p.write(value as u8),
                Place::U16(p) => p.write(value as u16),
                Place::U32(p) => p.write(value as u32),
                Place::U64(p) => p.write(value),
                Place::Words(_) => self.set_wide(&[value as u32, (value >> 32) as u32]),
            }
        }
    }

    pub(crate) fn set_wide(&self, words: &[u32]) {
        let word = |index: usize| words.get(index).copied().unwrap_or(0);
        let Place::Words(place) = self.place else {
            return self.set(u64::from(word(0)) | u64::from(word(1)) << 32);
        };
        assert!(self.input, "an output can't be set");
        let count = self.words();
        for index in 0..count {
            let unused = if index + 1 == count {
                (32 - self.width % 32) % 32
            } else {
                0
            };
            // SAFETY: by the contract of `new` there are so many words.
            unsafe { place.add(index).write(word(index) & (u32::MAX >> unused)) };
        }
    }

    pub(crate) fn get_wide(&self, words: &mut [u32]) {
        match self.place {
            Place::Words(place) => {
                for (index, word) in words.iter_mut().enumerate() {
                    // SAFETY: by the contract of `new` there are so many words.
                    *word = if index < self.words() {
                        unsafe { place.add(index).read() }
                    } else {
                        0
                    };
                }
            }
            _ => {
                let value = self.get();
                for (index, word) in words.iter_mut().enumerate() {
                    *word = if index < 2 {
                        (value >> (32 * index)) as u32
                    } else {
                        0
                    };
                }
            }
        }
    }

    fn words(&self) -> usize {
        self.width.div_ceil(32) as usize
    }
}
