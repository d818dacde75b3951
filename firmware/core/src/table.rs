//! Tables that grow to what the card has, and are filled no further than they are used.

use crate::argument::Refusal;
use abi::status::MailboxStatus;
use core::ops::{Deref, DerefMut, Index, IndexMut};
use heapless::Vec;

/// A table. Its entries are found by one function for all who name one by its place: the checks and the places of their panics, in each of them, were a twelfth of the
/// program.
pub(crate) struct Table<T, const N: usize>(Vec<T, N>);

impl<T, const N: usize> Table<T, N> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    // An `index` is given the place of its caller, to panic with: it isn't passed on.

    #[inline(never)]
    fn entry(&self, index: usize) -> &T {
        &self.0[index]
    }

    #[inline(never)]
    fn entry_mut(&mut self, index: usize) -> &mut T {
        &mut self.0[index]
    }
}

impl<T, const N: usize> Deref for Table<T, N> {
    type Target = Vec<T, N>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T, const N: usize> DerefMut for Table<T, N> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<T, const N: usize> Index<usize> for Table<T, N> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        self.entry(index)
    }
}

impl<T, const N: usize> IndexMut<usize> for Table<T, N> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        self.entry_mut(index)
    }
}

/// The first free entry of a table of at most `limit`; a new one is `fresh`.
///
/// # Errors
/// `NoResource` if there is none.
pub(crate) fn free<T, const N: usize>(
    table: &mut Vec<T, N>,
    limit: u32,
    fresh: T,
    is_free: impl FnMut(&T) -> bool,
) -> Result<usize, Refusal> {
    if let Some(index) = table.iter().take(limit as usize).position(is_free) {
        return Ok(index);
    }
    let index = table.len();
    if index >= limit as usize || table.push(fresh).is_err() {
        return Err(Refusal::new(MailboxStatus::NoResource));
    }
    Ok(index)
}
