//! What the files that threads share are made of: [`crate::sync`], [`crate::waiting`], [`crate::link`], the mailbox. The test that tries every order of threads puts
//! loom's in its place.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, fence};
pub(crate) use std::sync::{Mutex, MutexGuard};
