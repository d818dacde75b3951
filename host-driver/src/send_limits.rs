//! How many sends a pair may have: at the card, and at all.

use crate::endpoint::Endpoint;
use crate::error::CommandError;
use crate::pair::Pair;
use abi::limits::MAX_SENDS;

/// Limits of a pair's sends. A send counts from its post until its completion has been polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendLimits {
    /// Sends that the card gets before it has completed one, from 1 to 64. It never gets more than it [holds](crate::DeviceLimits::pair_sends) of the pair, and by
    /// default as many.
    pub window: u16,
    /// Sends that may be outstanding, those that the library keeps behind the window included. By default only the completion queue limits them.
    pub outstanding: usize,
}

impl Default for SendLimits {
    fn default() -> Self {
        Self {
            window: MAX_SENDS,
            outstanding: usize::MAX,
        }
    }
}

impl Endpoint {
    /// Sets the limits of an open pair's sends, for those that are posted from now on and those that the library keeps. What the card has already is not
    /// called back.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open, `Argument` if a limit is 0, or the window is more than a card takes.
    pub fn set_send_limits(&self, pair: Pair, limits: SendLimits) -> Result<(), CommandError> {
        if !(1..=MAX_SENDS).contains(&limits.window) {
            return Err(CommandError::Argument(
                "the window of a pair's sends is from 1 to 64",
            ));
        }
        if limits.outstanding == 0 {
            return Err(CommandError::Argument(
                "a pair may have at least one send outstanding",
            ));
        }
        let mut locked = self.handle.lock();
        let mut own = locked.own();
        own.set_send_limits(pair, limits)
            .ok_or(CommandError::NotFound)?;
        own.feed(self.handle.link());
        Ok(())
    }
}
