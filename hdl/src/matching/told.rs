//! A command of a proof, what has become of it, and what a later command finds of it.
//!
//! ```text
//!   given ─► line ─┬─► hit: the command that is answered finds this one's entry
//!   key ───────────┘
//!   posts, waits, take ─► posted, waiting: it has an entry
//! ```
//!
//! Written for a reader, not for a card: the rules of matching, each in one line.

use crate::prelude::*;
use crate::types::Operation;

/// A command of a proof: as [`MatchCommand`](crate::types::MatchCommand), but what a solver has to try is narrow.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Line {
    /// What to do.
    pub operation: Operation,
    /// Endpoint.
    pub endpoint: Bits<1>,
    /// Source, among those of the endpoint.
    pub source: Bits<1>,
    /// Any source matches.
    pub any_source: Bit,
    /// Match bits.
    pub match_bits: Bits<2>,
    /// Those that needn't agree.
    pub ignore_bits: Bits<2>,
    /// Handle.
    pub request: Bits<2>,
    /// Slot of a message: two in each of two rows.
    pub slot: Bits<2>,
    /// It stays when it is matched.
    pub multi: Bit,
    /// The message of an arrival waits if no receive matches it.
    pub append: Bit,
}

/// The command.
#[block]
pub struct Told {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset: there is no command.
    pub reset: Signal<In, Bit>,
    /// The engine takes `given`, and it is this one.
    pub load: Signal<In, Bit>,
    /// A command that is offered.
    pub given: Signal<In, Line>,
    /// The command that is answered.
    pub key: Signal<In, Line>,
    /// This is the one.
    pub answered: Signal<In, Bit>,
    /// With `answered`: its receive is posted from now on.
    pub posts: Signal<In, Bit>,
    /// With `answered`: its message waits from now on.
    pub waits: Signal<In, Bit>,
    /// With `answered`: number of its entry.
    pub number: Signal<In, Bits<16>>,
    /// With `answered`: the entry found is removed.
    pub take: Signal<In, Bit>,
    /// The command.
    pub line: Signal<Out, Line>,
    /// What is answered finds its entry.
    pub hit: Signal<Out, Bit>,
    /// A receive of this command is posted.
    pub posted: Signal<Out, Bit>,
    /// A message of this command waits.
    pub waiting: Signal<Out, Bit>,
    /// Number of its entry.
    pub index: Signal<Out, Bits<16>>,
    /// `given` may not be taken: its handle or its place is in use, or may be.
    pub excludes: Signal<Out, Bit>,
    there: Reg<Bit>,
    waits_there: Reg<Bit>,
    under_way: Reg<Bit>,
    mine: Reg<Line>,
    my_index: Reg<Bits<16>>,
    same_endpoint: Signal<Local, Bit>,
    from_source: Signal<Local, Bit>,
    given_endpoint: Signal<Local, Bit>,
    receive_matches: Signal<Local, Bit>,
    message_matches: Signal<Local, Bit>,
    given_has_place: Signal<Local, Bit>,
    has_place: Signal<Local, Bit>,
}

#[block]
impl Logic for Told {
    fn update(&mut self) {
        self.same_endpoint.next = self.mine.q.val().endpoint == self.key.val().endpoint;
        self.from_source.next =
            self.same_endpoint.val() & (self.mine.q.val().source == self.key.val().source);
        // This is the receive, what is answered is the message.
        self.receive_matches.next = self.there.q.val()
            & self.same_endpoint.val()
            & (self.mine.q.val().any_source | self.from_source.val())
            & (((self.mine.q.val().match_bits ^ self.key.val().match_bits)
                & !self.mine.q.val().ignore_bits)
                == 0);
        // The other way round.
        self.message_matches.next = self.waits_there.q.val()
            & self.same_endpoint.val()
            & (self.key.val().any_source | self.from_source.val())
            & (((self.mine.q.val().match_bits ^ self.key.val().match_bits)
                & !self.key.val().ignore_bits)
                == 0);
        self.hit.next = false;
        match self.key.val().operation {
            Operation::Arrive => {
                self.hit.next = self.receive_matches.val();
            }
            Operation::Remove => {
                self.hit.next = self.waits_there.q.val()
                    & self.from_source.val()
                    & (self.mine.q.val().slot == self.key.val().slot);
            }
            Operation::Post => {
                self.hit.next = self.message_matches.val();
            }
            Operation::Cancel => {
                self.hit.next = self.there.q.val()
                    & self.same_endpoint.val()
                    & (self.mine.q.val().request == self.key.val().request);
            }
            Operation::Probe => {
                self.hit.next = self.message_matches.val();
            }
            Operation::TakePostedOfPair => {
                self.hit.next =
                    self.there.q.val() & self.from_source.val() & !self.mine.q.val().any_source;
            }
            Operation::TakePostedOfEndpoint => {
                self.hit.next = self.there.q.val() & self.same_endpoint.val();
            }
            Operation::TakeUnexpectedOfPair => {
                self.hit.next = self.waits_there.q.val() & self.from_source.val();
            }
            Operation::Claim => {
                self.hit.next = self.message_matches.val();
            }
        }

        // What a user may not do.
        self.given_endpoint.next = self.mine.q.val().endpoint == self.given.val().endpoint;
        self.excludes.next = false;
        if (self.given.val().operation == Operation::Post)
            & (self.mine.q.val().operation == Operation::Post)
        {
            self.excludes.next = (self.under_way.q.val() | self.there.q.val())
                & self.given_endpoint.val()
                & (self.mine.q.val().request == self.given.val().request);
        }
        self.given_has_place.next =
            (self.given.val().operation == Operation::Arrive) & self.given.val().append;
        self.has_place.next =
            (self.mine.q.val().operation == Operation::Arrive) & self.mine.q.val().append;
        if self.given_has_place.val() & self.has_place.val() {
            self.excludes.next = (self.under_way.q.val() | self.waits_there.q.val())
                & self.given_endpoint.val()
                & (self.mine.q.val().source == self.given.val().source)
                & (self.mine.q.val().slot == self.given.val().slot);
        }

        if self.load.val() {
            self.mine.d.next = self.given.val();
            self.under_way.d.next = true;
        }
        if self.answered.val() {
            self.under_way.d.next = false;
            self.there.d.next = self.posts.val();
            self.waits_there.d.next = self.waits.val();
            self.my_index.d.next = self.number.val();
        }
        if self.take.val() {
            self.there.d.next = false;
            self.waits_there.d.next = false;
        }
        self.line.next = self.mine.q.val();
        self.posted.next = self.there.q.val();
        self.waiting.next = self.waits_there.q.val();
        self.index.next = self.my_index.q.val();
    }
}
