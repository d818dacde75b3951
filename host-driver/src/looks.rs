//! Looks at something that others change: often at first, then more and more seldom.

use crate::link::Link;
use crate::transport::{PauseResult, TransportError};

/// The pauses between looks.
pub(crate) struct Looks {
    /// Cycles of the next pause, of the first one, and of the longest.
    next: u64,
    first: u64,
    most: u64,
}

impl Looks {
    /// Pauses of `first` cycles, doubling up to `most`.
    pub(crate) const fn new(first: u64, most: u64) -> Self {
        Self {
            next: first,
            first,
            most,
        }
    }

    /// Something has moved: the next pause is a first one.
    pub(crate) const fn moved(&mut self) {
        self.next = self.first;
    }

    /// Waits for the next look, and not beyond `deadline`.
    ///
    /// # Errors
    /// If the card is out of reach.
    pub(crate) fn pause(&mut self, link: &Link, deadline: u64) -> Result<(), TransportError> {
        let next = deadline.min(link.now().saturating_add(self.next));
        self.next = self.most.min(2 * self.next);
        match link.pause(&[], next) {
            PauseResult::Deadline | PauseResult::Interrupt(_) => Ok(()),
            PauseResult::Unreachable => Err(TransportError::Unreachable),
            PauseResult::Closed => Err(TransportError::Closed),
        }
    }
}
