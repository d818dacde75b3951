//! Asynchronous events: what happened that no completion can tell.

use crate::pair::Pair;
pub use abi::event::{Cause, PeerRefusal};

bitflags::bitflags! {
    /// Causes of events, a flag each: see [`Cause`].
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Causes: u32 {
        /// [`Cause::RingOverrun`].
        const RING_OVERRUN = 1 << Cause::RingOverrun.code();
        /// [`Cause::RingError`].
        const RING_ERROR = 1 << Cause::RingError.code();
        /// [`Cause::LinkError`].
        const LINK_ERROR = 1 << Cause::LinkError.code();
        /// [`Cause::UnexpectedOverflow`].
        const UNEXPECTED_OVERFLOW = 1 << Cause::UnexpectedOverflow.code();
        /// [`Cause::CompletionError`].
        const COMPLETION_ERROR = 1 << Cause::CompletionError.code();
        /// [`Cause::IndexError`].
        const INDEX_ERROR = 1 << Cause::IndexError.code();
        /// [`Cause::SlotError`].
        const SLOT_ERROR = 1 << Cause::SlotError.code();
        /// [`Cause::PairConnected`].
        const PAIR_CONNECTED = 1 << Cause::PairConnected.code();
        /// [`Cause::ConnectFailed`].
        const CONNECT_FAILED = 1 << Cause::ConnectFailed.code();
        /// [`Cause::PeerClosed`].
        const PEER_CLOSED = 1 << Cause::PeerClosed.code();
        /// [`Cause::Disconnected`].
        const DISCONNECTED = 1 << Cause::Disconnected.code();
        /// [`Cause::AccessRefused`].
        const ACCESS_REFUSED = 1 << Cause::AccessRefused.code();
        /// [`Cause::PeerFailed`].
        const PEER_FAILED = 1 << Cause::PeerFailed.code();
        /// [`Cause::Signal`].
        const SIGNAL = 1 << Cause::Signal.code();
        /// [`Cause::Drain`].
        const DRAIN = 1 << Cause::Drain.code();
        /// [`Cause::PeerFailedPending`], which no card raises.
        const PEER_FAILED_PENDING = 1 << Cause::PeerFailedPending.code();
        /// [`Cause::Revoked`].
        const REVOKED = 1 << Cause::Revoked.code();
        /// [`Cause::PeerRefused`].
        const PEER_REFUSED = 1 << Cause::PeerRefused.code();
    }
}

impl Causes {
    /// What interrupts the [waits](crate::CompletionQueue::wait) of an endpoint that the program hasn't said anything else of: every cause but three. A failed
    /// peer ends the operations that name it, and [`Cause::PeerFailedPending`] tells who waits for anyone; an access that was refused ends nothing.
    pub const INTERRUPT_BY_DEFAULT: Self = Self::all()
        .difference(Self::PEER_FAILED)
        .difference(Self::ACCESS_REFUSED)
        .difference(Self::PEER_REFUSED);
}

impl From<Cause> for Causes {
    fn from(cause: Cause) -> Self {
        Self::from_bits_retain(1 << cause.code())
    }
}

/// An event of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncEvent {
    /// What happened.
    pub cause: Cause,
    /// The pair concerned, if one is and it is still open.
    pub pair: Option<Pair>,
    /// Depends on the cause; see [`Cause`].
    pub info: u64,
    /// So does this; zero of most.
    pub detail: u64,
}

impl AsyncEvent {
    /// What was refused to the peer of the event's pair, if it is a [`Cause::PeerRefused`]: the region, the offset in it and the reason of the last access, and how many
    /// were refused since the event before about this pair.
    pub fn refusal(&self) -> Option<PeerRefusal> {
        let refusal = PeerRefusal::from_words(self.info, self.detail);
        refusal.filter(|_| self.cause == Cause::PeerRefused)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cause, Causes};

    #[test]
    fn every_cause_has_its_flag() {
        let all = Cause::ALL.iter().map(|&cause| Causes::from(cause));
        assert_eq!(all.collect::<Causes>(), Causes::all());
        for (name, flag) in Causes::all().iter_names() {
            let cause = Cause::ALL.iter().find(|&&cause| flag == cause.into());
            let cause = cause.unwrap().name().to_lowercase();
            assert_eq!(name.to_lowercase().replace('_', ""), cause);
        }
    }
}
