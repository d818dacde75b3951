//! The card's end of the clock bridge: when the processor starts, and which of its accesses count.
//!
//! ```text
//!   run  ──► wanted? ──► start ─┊─► the processor runs
//!                ▲─────── held ◄┊── it doesn't, and nothing of it is under way
//!
//!   coming ──► running? ──► access        not running ──► a load is answered with 0
//! ```
//!
//! Four phases: `start` rises while `held` is high, and falls while it is low. A `run` that is low for a single cycle stops the
//! processor all the same, and what the old program had under way is over before the new one starts. `running` is low from
//! the cycle in which `run` is, until the next start: an access that comes meanwhile has no effect.

use crate::prelude::*;
use crate::types::{LoaderWord, RegisterAccess};

/// The card's end.
#[block]
pub struct CardEnd {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Stops the processor and forgets what comes.
    pub reset: Signal<In, Bit>,
    /// Lets the processor run.
    pub run: Signal<In, Bit>,
    /// The processor may run, and its accesses count.
    pub running: Signal<Out, Bit>,
    /// The processor is to run.
    pub start: Signal<Out, Bit>,
    /// It doesn't, and nothing of it is under way.
    pub held: Signal<In, Bit>,
    /// Words for the memory.
    pub loader: Stream<In, LoaderWord>,
    /// The same, on their way.
    pub words: Stream<Out, LoaderWord>,
    /// All words for the memory are in it.
    pub loaded: Signal<In, Bit>,
    /// Accesses of the processor.
    pub coming: Stream<In, RegisterAccess>,
    /// Those that count.
    pub access: Pulse<Out, RegisterAccess>,
    /// What a load was for.
    pub answer: Pulse<In, Bits<32>>,
    /// The answers of all loads.
    pub returning: Stream<Out, Bits<32>>,
    started: Reg<Bit>,
    /// `run` was low since the last start.
    stops: Reg<Bit>,
    counts: Signal<Local, Bit>,
    turned_away: Signal<Local, Bit>,
    returns: Signal<Local, Bit>,
    #[is(Check::new("memory_is_loaded_while_the_processor_is_held"))]
    loads_while_held: Check,
    #[is(Check::new("an_answer_finds_room"))]
    room: Check,
}

#[block]
impl Logic for CardEnd {
    fn update(&mut self) {
        self.counts.next =
            self.started.q.val() & self.run.val() & !self.stops.q.val() & !self.reset.val();
        self.running.next = self.counts.val();
        if self.started.q.val() {
            self.stops.d.next = self.stops.q.val() | !self.run.val();
            if !self.counts.val() & !self.held.val() {
                self.started.d.next = false;
                self.stops.d.next = false;
            }
        } else if self.run.val() & self.held.val() & self.loaded.val() {
            self.started.d.next = true;
        }
        self.start.next = self.started.q.val();

        // What is taken in reset would be lost.
        send!(
            self.words,
            self.loader.valid.val() & !self.reset.val(),
            self.loader.data.val()
        );
        self.loader.ready.next = self.words.ready.val() & !self.reset.val();
        self.loads_while_held.ok.next = !self.loader.valid.val() | !self.run.val();

        self.coming.ready.next = true;
        send!(
            self.access,
            self.coming.valid.val() & self.counts.val(),
            self.coming.data.val()
        );
        self.turned_away.next = self.coming.valid.val()
            & !self.counts.val()
            & !self.coming.data.val().store
            & !self.reset.val();
        self.returns.next = self.answer.valid.val() | self.turned_away.val();
        send!(self.returning, self.returns.val(), 0.into());
        if self.answer.valid.val() {
            self.returning.data.next = self.answer.data.val();
        }
        self.room.ok.next = !self.returns.val() | self.returning.ready.val();
    }
}
