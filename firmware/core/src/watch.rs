//! What is thought of the peer of each pair, what changes it, and the looks that find a peer silent: [`TRANSITIONS`], the table of
//! `docs/src/peers.md`.
//!
//! ```text
//!  interval over ──► the gates are asked: has a frame of the peer come since? ─┬─ yes ─► alive
//!                                                                              └─ no ──► one more look was silent: `Alive` is sent
//!                                                                                        half of them: suspect; all of them: failed
//! ```
//!
//! Looks are counted, and no time is compared with a time: a firmware that was paused has looked at nobody meanwhile, and takes nobody to have
//! failed for it. A peer whose frames keep coming is asked for nothing.

use crate::argument::{Refusal, narrow};
use crate::card::{Break, Card};
use crate::connection::{self, State};
use crate::firmware::Firmware;
use crate::pair::{Held, Marks};
use crate::repeat::is_reached;
use abi::mailbox::{AuditKind, FailureCause, PeerState, WatchPeers};
use abi::times::WATCH_INTERVAL_LEAST;

names! {
    /// What changes what is thought of a peer.
    PeerCause {
        /// It is connected, and was not last taken to have failed.
        Connects,
        /// It is connected, and was last taken to have failed.
        Returns,
        /// A frame of it has come.
        Heard,
        /// Half of the looks that it may be silent for have been silent.
        Silent,
        /// A peer on the same card has failed, and this one is watched.
        NeighbourFailed,
        /// It is taken to have failed, for any [`FailureCause`].
        Fails,
    }
}

/// State, cause, and the state after it. What isn't here changes nothing.
pub const TRANSITIONS: &[(PeerState, PeerCause, PeerState)] = {
    use PeerCause::*;
    use PeerState::*;
    &[
        (Unknown, Connects, Alive),
        (Unknown, Returns, Rejoined),
        (Alive, Silent, Suspect),
        (Alive, NeighbourFailed, Suspect),
        (Alive, Fails, Failed),
        (Suspect, Heard, Alive),
        (Suspect, Fails, Failed),
        (Rejoined, Silent, Suspect),
        (Rejoined, NeighbourFailed, Suspect),
        (Rejoined, Fails, Failed),
    ]
};

/// How the peers of an endpoint are watched.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watch {
    /// Cycles between two looks; 0: there are none.
    pub(crate) interval: u32,
    /// Silent looks after which a peer is taken to have failed.
    pub(crate) looks: u16,
    /// Peers that say that another has failed are believed.
    pub(crate) believes: bool,
}

impl Watch {
    /// What a command asks for.
    ///
    /// # Errors
    /// A refusal that names the argument that is out of range.
    pub(crate) fn asked(asked: &WatchPeers) -> Result<Self, Refusal> {
        let WatchPeers {
            interval, timeout, ..
        } = *asked;
        let believes = match asked.believe {
            0 => false,
            1 => true,
            _ => return Err(Refusal::argument(3)),
        };
        if interval == 0 {
            return match timeout {
                0 => Ok(Self {
                    believes,
                    ..Self::default()
                }),
                _ => Err(Refusal::argument(2)),
            };
        }
        if !(WATCH_INTERVAL_LEAST..1 << 30).contains(&interval) {
            return Err(Refusal::argument(1));
        }
        if timeout >> 31 != 0 || timeout / interval < 2 {
            return Err(Refusal::argument(2));
        }
        Ok(Self {
            interval,
            looks: narrow(timeout / interval, 2)?,
            believes,
        })
    }
}

impl<C: Card> Firmware<C> {
    /// Changes what is thought of a peer. True if it changed.
    pub(crate) fn peer_goes(&mut self, index: usize, cause: PeerCause) -> bool {
        let from = self.pairs[index].peer_state;
        let row = TRANSITIONS
            .iter()
            .find(|row| (row.0, row.1) == (from, cause));
        let Some(&(_, _, to)) = row else {
            return false;
        };
        self.pairs[index].peer_state = to;
        self.card.peer_transition(from, cause, to);
        true
    }

    /// A pair is connected: its peer lives.
    pub(crate) fn peer_connects(&mut self, index: usize) {
        let pair = &mut self.pairs[index];
        let failed = self
            .peers
            .find(pair.peer)
            .is_some_and(|seen| seen.has_failed);
        let returns = failed && !self.card.is_broken(Break::ReturnNotNoted);
        pair.silent = 0;
        self.peer_goes(
            index,
            match returns {
                true => PeerCause::Returns,
                false => PeerCause::Connects,
            },
        );
        self.look_soon(index);
    }

    /// A frame of a peer has come.
    pub(crate) fn peer_heard(&mut self, index: usize) {
        self.pairs[index].silent = 0;
        self.peer_goes(index, PeerCause::Heard);
    }

    /// A connected pair's peer is taken to have failed: the pair fails, and what depends on it ends.
    pub(crate) fn peer_fails(
        &mut self,
        index: usize,
        failure: FailureCause,
        cause: connection::Cause,
    ) {
        self.note_failure(index, failure);
        self.go(index, cause, State::Failed);
        self.want(index, Held::Failed);
    }

    /// Notes why a peer is taken to have failed, and suspects those on the same card that are watched.
    pub(crate) fn note_failure(&mut self, index: usize, failure: FailureCause) {
        if !self.peer_goes(index, PeerCause::Fails) {
            return;
        }
        let pair = &mut self.pairs[index];
        pair.failure = failure;
        let (id, peer, epoch) = (pair.id(index), pair.peer, pair.remote_epoch);
        self.peers.note_failed(peer, epoch);
        self.audit
            .record(AuditKind::PeerFailed, id, failure.code().into(), &self.card);
        for other in 0..self.pairs.len() {
            let pair = &self.pairs[other];
            let near = pair.peer.mac() == peer.mac() && pair.state == State::Connected;
            // Of a later incarnation of the same endpoint it says nothing.
            let suspects = near && pair.peer != peer && self.watch_of(other).is_some();
            if suspects && self.peer_goes(other, PeerCause::NeighbourFailed) {
                self.look_soon(other);
            }
        }
    }

    /// How the peer of a pair is watched, if it is.
    fn watch_of(&self, index: usize) -> Option<Watch> {
        let pair = &self.pairs[index];
        let watch = self.endpoints[usize::from(pair.endpoint)].watch;
        (pair.state == State::Connected && watch.interval != 0).then_some(watch)
    }

    /// Looks at the peer of a pair, if it is watched, as soon as the gates are free.
    fn look_soon(&mut self, index: usize) {
        if self.watch_of(index).is_some() {
            self.pairs[index].next_look = self.card.now();
            self.next_round = Some(self.card.now());
        }
    }

    /// The peers of an endpoint are watched in another way from now on.
    pub(crate) fn watch(&mut self, endpoint: usize, watch: Watch) {
        self.endpoints[endpoint].watch = watch;
        for index in 0..self.pairs.len() {
            if usize::from(self.pairs[index].endpoint) == endpoint {
                self.pairs[index].silent = 0;
                self.look_soon(index);
            }
        }
    }

    /// Begins the looks that are due.
    pub(crate) fn run_looks(&mut self) -> bool {
        let now = self.card.now();
        if !self.next_round.is_some_and(|round| is_reached(now, round)) {
            return false;
        }
        let mut nearest: Option<u32> = None;
        for index in 0..self.pairs.len() {
            let Some(watch) = self.watch_of(index) else {
                continue;
            };
            if is_reached(now, self.pairs[index].next_look) {
                // Those of many pairs, and of many cards, are spread.
                let late = self.card.random() % (watch.interval / 4);
                let pair = &mut self.pairs[index];
                pair.next_look = now.wrapping_add(watch.interval + late);
                pair.marks.put(Marks::TO_READ);
                pair.marks.put(Marks::LOOKS);
                self.mark(index);
            }
            let next = self.pairs[index].next_look;
            if nearest.is_none_or(|nearest| (nearest.wrapping_sub(next) as i32) > 0) {
                nearest = Some(next);
            }
        }
        self.next_round = nearest;
        true
    }

    /// The gates have said whether a frame of the peer has come since they were asked last.
    pub(crate) fn looked(&mut self, index: usize, heard: bool) {
        let looks = self.pairs[index].marks.take(Marks::LOOKS);
        if heard {
            return self.peer_heard(index);
        }
        let Some(watch) = self.watch_of(index).filter(|_| looks) else {
            return;
        };
        let pair = &mut self.pairs[index];
        pair.silent = pair.silent.saturating_add(1);
        let silent = pair.silent;
        if silent > watch.looks && !self.card.is_broken(Break::SilenceForgiven) {
            let cause = connection::Cause::TimerSilence;
            return self.peer_fails(index, FailureCause::Silence, cause);
        }
        if silent > watch.looks / 2 {
            self.peer_goes(index, PeerCause::Silent);
        }
        if !self.card.is_broken(Break::LifeNotAskedFor) {
            self.ask_for_life(index);
        }
    }
}
