//! Memory windows, as verbs have them: a handle that is bound to a part of a [`Window`] for one peer, again and again.
//!
//! ```text
//!  alloc_mw ──► MemoryWindow ── bind_mw ──► RemoteKey ──► the peer, by a message of the program's
//!                   │  ▲           │
//!        invalidate │  └───────────┘ bound anew: the key before has ended
//!                   ▼
//!              bound to nothing
//! ```

use crate::domain::ProtectionDomain;
use crate::endpoint::Endpoint;
use crate::error::CommandError;
use crate::pair::Pair;
use crate::window::{RemoteKey, RemoteRights, Window};
use std::fmt;
use std::ops::RangeBounds;

/// What one peer may do with a part of a [`Window`], by a key of its own: `ibv_mw` of verbs, of type 1. It has one key at a time
/// or none, and takes a place of the card only while it has one.
///
/// As long as it is used a window that it was bound to can't become a buffer again, and the compiler says so:
///
/// ```compile_fail,E0505
/// # use host_driver::*;
/// # fn example(pd: &ProtectionDomain, endpoint: &Endpoint, pair: Pair, window: Window) -> Result<(), CommandError> {
/// let mut mw = pd.alloc_mw();
/// endpoint.bind_mw(&mut mw, pair, &window, RemoteRights::WRITE, 0..64)?;
/// let buffer = window.into_buffer();
/// mw.invalidate()?;
/// # Ok(())
/// # }
/// ```
///
/// One that is dropped while it is bound leaves its key to the window, which ends it when it becomes a buffer or is dropped.
#[must_use]
pub struct MemoryWindow<'w> {
    domain: ProtectionDomain,
    bound: Option<(&'w Window, RemoteKey)>,
}

impl fmt::Debug for MemoryWindow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.bound {
            Some((window, key)) => write!(f, "MemoryWindow({key:?} of {window:?})"),
            None => write!(f, "MemoryWindow(bound to nothing)"),
        }
    }
}

impl ProtectionDomain {
    /// A memory window that is bound to nothing: `ibv_alloc_mw` of verbs. Asks nobody.
    pub fn alloc_mw<'w>(&self) -> MemoryWindow<'w> {
        MemoryWindow {
            domain: self.clone(),
            bound: None,
        }
    }
}

impl Endpoint {
    /// Binds a memory window to a part of `window`, for the peer of a pair: `ibv_bind_mw` of verbs, and [`Window::grant`] with its key kept in `mw`. If it was bound
    /// before, that key is revoked first: when this returns nothing that it allowed can reach the memory any more.
    ///
    /// # Errors
    /// [`CommandError`]: `Argument` if `window` is of another domain than `mw`, which stays bound as it was; as of [`Window::revoke`], likewise; and as of
    /// [`Window::grant`]: then `mw` is bound to nothing.
    pub fn bind_mw<'w>(
        &self,
        mw: &mut MemoryWindow<'w>,
        pair: Pair,
        window: &'w Window,
        rights: RemoteRights,
        range: impl RangeBounds<usize>,
    ) -> Result<RemoteKey, CommandError> {
        mw.domain.owns(window.region().domain())?;
        mw.invalidate()?;
        let key = window.grant(self, pair, rights, range)?;
        mw.bound = Some((window, key));
        Ok(key)
    }
}

impl MemoryWindow<'_> {
    /// The key by which its peer names it, while it is bound.
    pub fn rkey(&self) -> Option<RemoteKey> {
        self.bound.map(|(_, key)| key)
    }

    /// Binds it to nothing: a local invalidate (`IBV_WR_LOCAL_INV`) of verbs, and [`Window::revoke`] of its key. When this returns nothing that it allowed can reach
    /// the memory any more. One that is bound to nothing stays so.
    ///
    /// # Errors
    /// As of [`Window::revoke`]; it stays bound, and may be invalidated again.
    pub fn invalidate(&mut self) -> Result<(), CommandError> {
        if let Some((window, key)) = self.bound {
            window.revoke(key)?;
            self.bound = None;
        }
        Ok(())
    }
}
