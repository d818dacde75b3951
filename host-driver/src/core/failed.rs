//! Peers that have failed while somebody waits for anyone: the library's own event, `PeerFailedPending`.
//!
//! ```text
//!  PeerFailed, taken ─┐                                 ┌─► a wait is interrupted, once
//!                     ├─► known ─► a receive from any ──┤
//!  ReadFailed ────────┘            source is posted     └─► poll_event tells it, once
//!      ▲                                │
//!      └── EVENTS_LOST has grown        └ acknowledged: neither, for good
//! ```
//!
//! A set is a bit for each place of a pair. The card tells of a failure by one event, which is lost if its queue is full. A queue can be full only while it has entries that nobody
//! has taken: so whoever takes the last one reads `EVENTS_LOST` behind it, and no lost event goes unnoticed.

use super::{Own, Phase};
use crate::event::{AsyncEvent, Cause, Causes};
use crate::link::Link;
use crate::pair::Pair;
use crate::table::Outstanding;
use abi::register::{EVENTS_LOST, endpoint_page};

/// What the library knows of failed peers, and whom it has told.
#[derive(Default)]
pub(super) struct Failed {
    /// Pairs whose peers have failed, as far as the library has heard.
    known: u128,
    /// Of these, what the program knows by its own word,
    acknowledged: u128,
    /// what it was told by an event,
    told: u128,
    /// and what a wait was interrupted for, or needn't be.
    noticed: u128,
    /// Events have been taken since `EVENTS_LOST` was read.
    unread: bool,
    /// Its value then.
    lost: u32,
    /// Events have been lost since `ReadFailed` was asked.
    unasked: bool,
}

impl Failed {
    /// A pair is closed: its place may be another's.
    pub(super) const fn forget(&mut self, place: u16) {
        let others = !(1 << place);
        self.known &= others;
        self.acknowledged &= others;
        self.told &= others;
        self.noticed &= others;
    }

    /// Those that the program doesn't know of.
    const fn untold(&self) -> u128 {
        self.known & !self.acknowledged & !self.told
    }
}

impl Own<'_> {
    /// Whether a receive from any source is posted.
    pub(crate) fn awaits_anyone(&self) -> bool {
        let awaits = |request: &Outstanding| request.work.operation().awaits_anyone();
        self.queue.table.any_of(self.rings.at, awaits)
    }

    /// The peers of the pairs in these places have failed. Whether a wait is to be interrupted for it.
    pub(crate) fn note_failed(&mut self, places: u128) -> bool {
        let pairs = (0..).zip(&self.rings.pairs);
        let open = pairs.filter(|(_, pair)| pair.is_some());
        let open = open.fold(0, |open, (place, _)| open | 1 << place);
        let news = places & open & !self.rings.failed.known;
        self.rings.failed.known |= news;
        for pair in self.pairs_of_card(news) {
            self.rings.exposed.mark(pair);
        }
        self.pending() & !self.rings.failed.noticed != 0
    }

    /// The endpoint is closed, and nobody has asked the card whose peers have failed: any may have.
    pub(crate) fn suspect_all(&self) {
        for pair in self.pairs_of_card(u128::MAX) {
            self.rings.exposed.mark(pair);
        }
    }

    /// Whether the program knows that the peer of a pair has failed.
    pub(crate) const fn is_failure_acknowledged(&self, pair: Pair) -> bool {
        self.rings.failed.acknowledged >> pair.index & 1 == 1
    }

    /// The program knows that the peer of a pair has failed.
    pub(crate) fn acknowledge_failure(&mut self, pair: Pair) {
        if self.pair_mut(pair).is_some() && !is_broken!(AcknowledgedNever) {
            self.rings.failed.acknowledged |= 1 << pair.index;
        }
    }

    /// Those of which an event is due.
    fn pending(&self) -> u128 {
        match self.rings.failed.untold() {
            0 => 0,
            untold if self.awaits_anyone() || is_broken!(PendingAlways) => untold,
            _ => 0,
        }
    }

    /// Whether a wait is to be interrupted because of such an event, which it hasn't been.
    pub(crate) fn interrupts_for_failure(&self) -> bool {
        self.pending() & !self.rings.failed.noticed != 0
    }

    /// A wait is interrupted for one such event, if it is to be.
    pub(super) fn notice_failure(&mut self) -> bool {
        if !self.rings.interrupts.contains(Causes::PEER_FAILED_PENDING) {
            return false;
        }
        let due = self.pending() & !self.rings.failed.noticed;
        self.rings.failed.noticed |= due & due.wrapping_neg();
        due != 0
    }

    /// The next such event. It has been told then.
    pub(super) fn take_pending(&mut self) -> Option<AsyncEvent> {
        let pending = self.pending();
        let place = u16::try_from(pending.trailing_zeros()).ok();
        let pair = place.filter(|_| pending != 0);
        let pair = self.pair_of_card(pair?)?;
        let bit = 1 << pair.index;
        self.rings.failed.noticed |= bit;
        if !is_broken!(PendingAgain) {
            self.rings.failed.told |= bit;
        }
        Some(AsyncEvent {
            cause: Cause::PeerFailedPending,
            pair: Some(pair),
            info: 0,
            detail: 0,
        })
    }

    /// The card's last event has been taken: others may have been lost behind it.
    pub(super) const fn suspect_lost_events(&mut self) {
        self.rings.failed.unread = true;
    }

    /// Looks whether events have been lost, if any can have been since the last look. The card knows of those that were taken: what it loses from here on has others in front of it
    /// that are yet to be taken. If it can't be reached, the next call looks.
    pub(super) fn look_for_lost_events(&mut self, link: &Link) {
        let failed = &mut self.rings.failed;
        if !failed.unread || self.rings.phase != Phase::Open {
            return;
        }
        let Ok(lost) = link.read(endpoint_page(self.rings.place) + EVENTS_LOST) else {
            return;
        };
        failed.unread = false;
        failed.unasked |= lost != failed.lost && !is_broken!(HidesLostFailure);
        failed.lost = lost;
    }

    /// Whether the card is to be asked who has failed.
    pub(crate) const fn asks_for_failed(&self) -> bool {
        self.rings.failed.unasked
    }

    /// It is asked now, or is to be.
    pub(crate) const fn set_asks_for_failed(&mut self, asks: bool) {
        self.rings.failed.unasked = asks;
    }
}
