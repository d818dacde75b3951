//! Takes one send out of a pair's run, and moves those behind it up, so that their order stays and no number is left out: one that waits and is cancelled, or
//! one that Gather has refused.
//!
//! ```text
//!   start, from, count ──► read a descriptor ► compare ► judge ──► hits: it is this one
//!                              ▲                           │   ├─► moves: what was read goes one place up
//!                              └───────────────────────────┘   └─► done, found
//! ```

use super::descriptor::Descriptor;
use crate::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// The next descriptor is being read.
    Read,
    /// It has been read, and is compared.
    Look,
    /// It is known whether it is the one.
    Judge,
    /// All have been looked at.
    Done,
}

/// The walk. Of numbers it has the low bits.
#[block]
pub(super) struct Remove {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: `count` sends are to be looked at, from this number on.
    pub start: Signal<In, Bit>,
    pub from: Signal<In, Bits<8>>,
    pub count: Signal<In, Bits<8>>,
    /// With `start`: it is the first of them. Otherwise that with the handle `target`, which stays until `done`.
    pub takes_first: Signal<In, Bit>,
    pub target: Signal<In, Bits<32>>,
    /// From the cycle after `start` to `done`.
    pub busy: Signal<Out, Bit>,
    /// Number of the descriptor to read.
    pub number: Signal<Out, Bits<8>>,
    /// That of the cycle before. It stays while it is looked at.
    pub read: Signal<In, Descriptor>,
    /// Pulse: that is the send.
    pub hits: Signal<Out, Bit>,
    /// Pulse: that goes to `upper`.
    pub moves: Signal<Out, Bit>,
    pub upper: Signal<Out, Bits<8>>,
    /// Pulse: the walk has ended.
    pub done: Signal<Out, Bit>,
    /// With it: the send was there.
    pub found: Signal<Out, Bit>,
    /// The walk is of one that takes the first.
    pub took_first: Signal<Out, Bit>,
    state: Reg<State>,
    at: Reg<Bits<8>>,
    left: Reg<Bits<8>>,
    first: Reg<Bit>,
    was_found: Reg<Bit>,
    /// It is the one that is looked for: what is read comes late in the cycle.
    matches: Reg<Bit>,
}

#[block]
impl Logic for Remove {
    fn update(&mut self) {
        self.busy.next = self.state.q.val() != State::Idle;
        self.number.next = self.at.q.val();
        self.upper.next = self.at.q.val() - 1;
        self.matches.d.next = self.first.q.val() | (self.read.val().request == self.target.val());
        self.hits.next =
            (self.state.q.val() == State::Judge) & !self.was_found.q.val() & self.matches.q.val();
        self.moves.next = (self.state.q.val() == State::Judge) & self.was_found.q.val();
        self.done.next = self.state.q.val() == State::Done;
        self.found.next = self.was_found.q.val();
        self.took_first.next = self.first.q.val();
        match self.state.q.val() {
            State::Idle => {
                if self.start.val() {
                    self.at.d.next = self.from.val();
                    self.left.d.next = self.count.val();
                    self.first.d.next = self.takes_first.val();
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
                self.state.d.next = State::Judge;
            }
            State::Judge => {
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
