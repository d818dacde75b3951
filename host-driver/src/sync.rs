//! A lock whose holder may be waiting for the card, and a count of changes that a thread must not sleep through.
//!
//! A thread that waited for it outside the transport would stop a simulated card, and so the holder: it waits in one call of the
//! transport, which the holder's [`notify`](crate::transport::Transport::notify) ends.
//!
//! ```text
//!  waiter   waiters + 1 ► count notifications ► try ─┬─ taken
//!                                                    └─ pause until the count moves ► try …
//!  holder   unlock ► any waiters? ► notify
//! ```
//!
//! Either the waiter's try comes after the unlocking and takes the lock, or the holder's look comes after the waiter's entry and
//! notifies it: between the two steps of each is a fence.
//!
//! ```text
//!  waiter   count changes ► look ► count notifications ► changes moved? ─┬─ look again
//!                                                                       └─ pause until the notifications move
//!  changer  change ► changes + 1 ► notify
//! ```
//!
//! A change that the waiter's look missed has either moved the count by its second look, or notifies after it. The waiter can't just count the
//! notifications first: giving up the locks that it looked under may notify as well, and would wake the waiter itself, for ever.
//!
//! `tests/loom.rs` tries every order, with this file over loom's `crate::primitives`.

use crate::primitives::{AtomicU64, AtomicUsize, Mutex, MutexGuard, fence};
use crate::transport::Watch;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;
use std::sync::{PoisonError, TryLockError};

/// What a waiter does until the holder has done.
pub(crate) trait Waits {
    /// Watches for notifications from now on.
    fn notifications(&self) -> Watch;
    /// Waits for another one. The card being gone ends that too.
    fn wait(&self, watch: Watch);
    /// Wakes those who wait.
    fn wake(&self);
}

/// A mutex that is waited for in the transport.
pub(crate) struct CardMutex<T> {
    value: Mutex<T>,
    waiters: AtomicUsize,
}

impl<T> CardMutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            value: Mutex::new(value),
            waiters: AtomicUsize::new(0),
        }
    }

    /// What the lock guards, of which the caller is the only user.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock, if nobody has it.
    pub(crate) fn try_lock<'a, W: Waits>(&'a self, link: &'a W) -> Option<CardGuard<'a, T, W>> {
        let guard = match self.value.try_lock() {
            Ok(guard) => guard,
            // What the locks guard is whole between any two statements that can panic.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(CardGuard {
            guard: Some(guard),
            mutex: self,
            link,
        })
    }

    /// Takes the lock.
    pub(crate) fn lock<'a, W: Waits>(&'a self, link: &'a W) -> CardGuard<'a, T, W> {
        if let Some(guard) = self.try_lock(link) {
            return guard;
        }
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let guard = loop {
            let watch = link.notifications();
            fence(Ordering::SeqCst);
            match self.try_lock(link) {
                Some(guard) => break guard,
                None => link.wait(watch),
            }
        };
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        guard
    }
}

/// The lock, held.
pub(crate) struct CardGuard<'a, T, W: Waits> {
    guard: Option<MutexGuard<'a, T>>,
    mutex: &'a CardMutex<T>,
    link: &'a W,
}

impl<T, W: Waits> Deref for CardGuard<'_, T, W> {
    type Target = T;

    fn deref(&self) -> &T {
        self.guard.as_deref().expect("held until it is dropped")
    }
}

impl<T, W: Waits> DerefMut for CardGuard<'_, T, W> {
    fn deref_mut(&mut self) -> &mut T {
        self.guard.as_deref_mut().expect("held until it is dropped")
    }
}

impl<T, W: Waits> Drop for CardGuard<'_, T, W> {
    fn drop(&mut self) {
        self.guard = None;
        fence(Ordering::SeqCst);
        if self.mutex.waiters.load(Ordering::SeqCst) > 0 {
            self.link.wake();
        }
    }
}

/// Changes that no interrupt of the card tells of, counted.
pub(crate) struct Changes(AtomicU64);

impl Changes {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Changes so far.
    pub(crate) fn seen(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Something has changed: wakes who waits for it.
    pub(crate) fn raise<W: Waits>(&self, link: &W) {
        self.0.fetch_add(1, Ordering::SeqCst);
        link.wake();
    }

    /// What to wait for after a look that began when `seen` changes were counted. None if there has been another since: look again.
    /// The caller has given back the locks that it looked under.
    pub(crate) fn watch<W: Waits>(&self, seen: u64, link: &W) -> Option<Watch> {
        let watch = link.notifications();
        (self.seen() == seen).then_some(watch)
    }
}
