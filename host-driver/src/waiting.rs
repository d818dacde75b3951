//! Things that wait for somebody who can talk to the card: a list that any thread puts to, and whoever can takes from.
//!
//! The list is never held across a call of the card, so that a thread that only puts never waits for it.

use crate::primitives::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::PoisonError;

/// Things that wait, the oldest in front.
pub(crate) struct Waiting<T>(Mutex<VecDeque<T>>);

impl<T> Waiting<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    fn list(&self) -> MutexGuard<'_, VecDeque<T>> {
        // It is whole between any two statements.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push_back(&self, thing: T) {
        self.list().push_back(thing);
    }

    pub(crate) fn push_front(&self, thing: T) {
        self.list().push_front(thing);
    }

    pub(crate) fn pop_front(&self) -> Option<T> {
        self.list().pop_front()
    }

    /// Takes all of them.
    pub(crate) fn take(&self) -> VecDeque<T> {
        std::mem::take(&mut *self.list())
    }

    pub(crate) fn len(&self) -> usize {
        self.list().len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list().is_empty()
    }
}
