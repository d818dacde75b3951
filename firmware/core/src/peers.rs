//! Which incarnation of each peer was seen last, so that one of before is known when it comes late.

use crate::persistent::is_later;
use abi::address::EndpointAddress;
use heapless::Vec;

/// Peers that are remembered: those seen last.
pub(crate) const PEERS: usize = 128;

/// A peer: an endpoint of a card. Both in one word, as a notice names it: [`EndpointAddress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Peer(u64);

impl Peer {
    /// Not known yet.
    pub(crate) const UNKNOWN: Self = Self(0);

    /// Of the address, its low 48 bits count.
    pub(crate) fn new(mac: u64, endpoint: u16) -> Self {
        let [word] = EndpointAddress { mac, endpoint }.to_words();
        Self(word)
    }

    pub(crate) const fn from_word(word: u64) -> Self {
        Self(word)
    }

    pub(crate) const fn to_word(self) -> u64 {
        self.0
    }

    pub(crate) fn mac(self) -> u64 {
        EndpointAddress::from_words(&[self.0]).mac
    }

    pub(crate) fn endpoint(self) -> u16 {
        EndpointAddress::from_words(&[self.0]).endpoint
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Remembered {
    peer: Peer,
    pub(crate) epoch: u16,
    pub(crate) incarnation: u32,
    /// It was taken to have failed, and has not connected since.
    pub(crate) has_failed: bool,
}

/// The peers, the one seen last at the end.
pub(crate) struct Peers {
    seen: Vec<Remembered, PEERS>,
}

impl Peers {
    pub(crate) const fn new() -> Self {
        Self { seen: Vec::new() }
    }

    pub(crate) fn find(&self, peer: Peer) -> Option<&Remembered> {
        self.seen.iter().find(|seen| seen.peer == peer)
    }

    /// Whether this is the incarnation that was seen last, or a later one. If it is neither, the epoch that was seen.
    pub(crate) fn judge(&self, peer: Peer, epoch: u16, incarnation: u32) -> Result<(), u16> {
        match self.find(peer) {
            Some(seen) if is_later(epoch, seen.epoch) => Ok(()),
            Some(seen) if (epoch, incarnation) == (seen.epoch, seen.incarnation) => Ok(()),
            Some(seen) => Err(seen.epoch),
            None => Ok(()),
        }
    }

    /// Remembers an incarnation; whoever was seen longest ago is forgotten for it.
    pub(crate) fn remember(&mut self, peer: Peer, epoch: u16, incarnation: u32) {
        let seen = Remembered {
            peer,
            epoch,
            incarnation,
            has_failed: false,
        };
        let at = self.seen.iter().position(|seen| seen.peer == peer);
        if let Some(at) = at.or(self.seen.is_full().then_some(0)) {
            self.seen.remove(at);
        }
        // There is room now.
        let _ = self.seen.push(seen);
    }

    /// Notes that the peer of this epoch is taken to have failed, unless a later one has been seen.
    pub(crate) fn note_failed(&mut self, peer: Peer, epoch: u16) {
        let seen = self.seen.iter_mut().find(|seen| seen.peer == peer);
        if let Some(seen) = seen.filter(|seen| seen.epoch == epoch) {
            seen.has_failed = true;
        }
    }
}
