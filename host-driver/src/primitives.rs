//! What [`crate::sync`] is made of; the test that tries every order of threads puts loom's in its place.

pub(crate) use std::sync::atomic::{AtomicUsize, fence};
pub(crate) use std::sync::{Mutex, MutexGuard};
