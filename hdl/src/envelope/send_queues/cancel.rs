//! A cancel: walks the queue of a pair's waiting sends, takes one out, and moves those behind it up, so that their order stays.
//!
//! ```text
//!   start, target ──► read a place ⇄ look at it ──► hits: it is this one
//!                                               ├─► moves: the send that was read goes one place up
//!                                               └─► done, found
//! ```

use super::waiting::WaitingSend;
use crate::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// The next send is being read.
    Read,
    /// It has been read.
    Look,
    /// All have been looked at.
    Done,
}

/// The walk.
#[block]
pub(super) struct Cancel {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: a queue of `count` sends is to be walked, of which the oldest is at `head`.
    pub start: Signal<In, Bit>,
    pub head: Signal<In, Bits<8>>,
    pub count: Signal<In, Bits<8>>,
    /// Handle of the send. Stays until `done`.
    pub target: Signal<In, Bits<32>>,
    /// From the cycle after `start` to `done`.
    pub busy: Signal<Out, Bit>,
    /// Place to read.
    pub place: Signal<Out, Bits<8>>,
    /// What was at the place of the cycle before.
    pub read: Signal<In, WaitingSend>,
    /// Pulse: that is the send.
    pub hits: Signal<Out, Bit>,
    /// Pulse: that goes to `upper_place`.
    pub moves: Signal<Out, Bit>,
    pub upper_place: Signal<Out, Bits<8>>,
    /// Pulse: the walk has ended.
    pub done: Signal<Out, Bit>,
    /// With it: the send was there.
    pub found: Signal<Out, Bit>,
    state: Reg<State>,
    at: Reg<Bits<8>>,
    left: Reg<Bits<8>>,
    was_found: Reg<Bit>,
}

#[block]
impl Logic for Cancel {
    fn update(&mut self) {
        self.busy.next = self.state.q.val() != State::Idle;
        self.place.next = self.at.q.val();
        self.upper_place.next = self.at.q.val() - 1;
        self.hits.next = (self.state.q.val() == State::Look)
            & !self.was_found.q.val()
            & (self.read.val().request == self.target.val());
        self.moves.next = (self.state.q.val() == State::Look) & self.was_found.q.val();
        self.done.next = self.state.q.val() == State::Done;
        self.found.next = self.was_found.q.val();
        match self.state.q.val() {
            State::Idle => {
                if self.start.val() {
                    self.at.d.next = self.head.val();
                    self.left.d.next = self.count.val();
                    self.was_found.d.next = false;
                    self.state.d.next = State::Done;
                    if self.count.val().any() {
                        self.state.d.next = State::Read;
                    }
                }
            }
            State::Read => {
                self.state.d.next = State::Look;
            }
            State::Look => {
                if self.hits.val() {
                    self.was_found.d.next = true;
                }
                self.at.d.next = self.at.q.val() + 1;
                self.left.d.next = self.left.q.val() - 1;
                self.state.d.next = State::Read;
                if self.left.q.val() == 1 {
                    self.state.d.next = State::Done;
                }
            }
            State::Done => {
                self.state.d.next = State::Idle;
            }
        }
    }
}
