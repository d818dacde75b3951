//! Levels of protection: how well a card keeps a peer that has failed from memory that it could write, and what the library marks where it can't.
//!
//! ```text
//!  grant_any ──► a key that every peer of the domain may use
//!                   │
//!  PeerFailed ──────┤ while there is such a key: the window is marked, with the pair ──► BufferUnusable
//!  ReadFailed ──────┘                                                                      │
//!                       acknowledge_failures: the keys are revoked, then the mark goes ◄───┘
//! ```
//!
//! A key for one peer, or one that is shared by permissions, ends with its peer. One for any peer doesn't: who has failed may have it, and comes back as
//! another pair of the domain, or is the message of another process that it gave the key to. So the failure of a peer of the domain marks each window that has
//! such a key.
//!
//! What the library hears of a failure marks at once (`core/failed.rs`). What the card knows and the library hasn't heard is asked for before anything is
//! answered or ends that depends on it: before a check, before a key for any is made or revoked, before a pair or an endpoint is closed, whose failed peers the
//! card then names no more.

use crate::commands::{Card, Commands};
use crate::device::Device;
use crate::domain::Domain;
use crate::endpoint::Handle;
use crate::error::CommandError;
use crate::pair::Pair;
use crate::query::Capabilities;
use crate::window::RemoteKey;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How well memory that is granted to peers is kept from one of them that has failed. Asked for by
/// [`DeviceOptions::protection`](crate::DeviceOptions::protection); what is provided [`Device::protection`] says. In the order from less to more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protection {
    /// Nothing is: the card has no keys, and so grants nothing.
    None,
    /// One key may be for all peers of a domain. When one of them fails the others' key has to go with it: until then the memory is
    /// [unusable](CommandError::BufferUnusable).
    SharedKey,
    /// Each peer is told apart, and what it was granted ends with it. No window is ever marked.
    #[default]
    PerSender,
}

impl Device {
    /// The level of protection that the card provides: the one that was asked for, or less if it can't, or `SharedKey` in place of `None` if it has keys.
    pub fn protection(&self) -> Protection {
        let has = |capability| self.capabilities().contains(capability);
        let most = match (has(Capabilities::GRANTS), has(Capabilities::SENDERS)) {
            (false, _) => return Protection::None,
            (true, false) => Protection::SharedKey,
            (true, true) => Protection::PerSender,
        };
        let asked = self.card.options.protection.max(Protection::SharedKey);
        match is_broken!(PretendsSenders) {
            true => asked,
            false => asked.min(most),
        }
    }
}

/// What is known of one window.
#[derive(Default)]
struct State {
    /// Keys for any peer by which it may be written.
    keys: Vec<RemoteKey>,
    /// Such keys that are being made.
    making: usize,
    /// Whose failure has marked it.
    failed: Vec<Pair>,
}

/// Whether peers that fail may still write a window.
#[derive(Default)]
pub(crate) struct Exposure(Mutex<State>);

impl Exposure {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A key for any peer is being made: who fails from now on may have it.
    pub(crate) fn begin(&self) {
        self.state().making += 1;
    }

    /// It was made, or wasn't.
    pub(crate) fn made(&self, key: Option<RemoteKey>) {
        let mut state = self.state();
        state.making -= 1;
        state.keys.extend(key);
    }

    /// It has ended.
    pub(crate) fn end(&self, key: RemoteKey) {
        self.state().keys.retain(|held| *held != key);
    }

    /// The keys for any peer.
    pub(crate) fn keys(&self) -> Vec<RemoteKey> {
        self.state().keys.clone()
    }

    pub(crate) fn has(&self, key: RemoteKey) -> bool {
        self.state().keys.contains(&key)
    }

    fn is_open(&self) -> bool {
        let state = self.state();
        state.making > 0 || !state.keys.is_empty()
    }

    fn mark(&self, pair: Pair) {
        if self.is_open() || is_broken!(MarksPerSender) {
            let mut state = self.state();
            if !state.failed.contains(&pair) {
                state.failed.push(pair);
            }
        }
    }

    /// Whose failure has marked it.
    pub(crate) fn failed(&self) -> Vec<Pair> {
        self.state().failed.clone()
    }

    /// Fails if it is marked.
    ///
    /// # Errors
    /// [`CommandError::BufferUnusable`].
    pub(crate) fn check(&self) -> Result<(), CommandError> {
        match self.state().failed.is_empty() {
            true => Ok(()),
            false => Err(CommandError::BufferUnusable),
        }
    }

    /// The mark goes, of those that were known when the keys began to end.
    pub(crate) fn unmark(&self, known: &[Pair]) {
        self.state().failed.retain(|pair| !known.contains(pair));
    }
}

/// The windows of a domain.
#[derive(Default)]
pub(crate) struct Exposures(Mutex<Vec<Weak<Exposure>>>);

impl Exposures {
    fn all(&self) -> Vec<Arc<Exposure>> {
        let windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        windows.iter().filter_map(Weak::upgrade).collect()
    }

    /// A window is made.
    pub(crate) fn enter(&self) -> Arc<Exposure> {
        let entered = Arc::default();
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        windows.retain(|window| window.strong_count() > 0);
        windows.push(Arc::downgrade(&entered));
        entered
    }

    /// Whether the failure of a peer would mark one.
    pub(crate) fn are_open(&self) -> bool {
        self.all().iter().any(|window| window.is_open())
    }

    /// The peer of a pair of the domain has failed.
    pub(crate) fn mark(&self, pair: Pair) {
        self.all().iter().for_each(|window| window.mark(pair));
    }
}

impl Card {
    /// The endpoints of a domain.
    fn endpoints_of(&self, domain: &Arc<Domain>) -> Vec<Handle> {
        let held = self.endpoints().clone();
        let open = held.iter().flatten().filter_map(|held| held.upgrade());
        open.filter(|endpoint| Arc::ptr_eq(endpoint.domain(), domain))
            .collect()
    }
}

impl Domain {
    /// Asks the card who has failed of all that may write by a key for any.
    ///
    /// # Errors
    /// [`CommandError`].
    pub(crate) fn look_for_failures(self: &Arc<Self>) -> Result<(), CommandError> {
        for endpoint in self.device.card.endpoints_of(self) {
            let mut commands = self.device.commands()?;
            endpoint.look_for_failures(&mut commands)?;
        }
        Ok(())
    }
}

impl Handle {
    /// Asks the card who has failed, before it forgets: if a window is to be marked for them.
    ///
    /// # Errors
    /// [`CommandError`].
    pub(crate) fn look_before_end(&self, commands: &mut Commands<'_>) -> Result<(), CommandError> {
        match self.domain().exposed.are_open() && !is_broken!(ForgetsAtClose) {
            true => self.look_for_failures(commands),
            false => Ok(()),
        }
    }

    fn look_for_failures(&self, commands: &mut Commands<'_>) -> Result<(), CommandError> {
        if self.lock().own().is_closed() || is_broken!(TrustsEvents) {
            return Ok(());
        }
        match self.read_failed(commands) {
            Ok((_, interrupts)) => {
                if interrupts {
                    self.link().own_event();
                }
                Ok(())
            }
            // It has been closed meanwhile.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }
}
