//! Which entries of a list are older than this one.
//!
//! Entries stay where they are, so their places say nothing about their age. Each has a row of bits
//! instead, one for each other place: set if the entry there is older. The row is written when the
//! entry is (everything that lives then is older), and a place that is filled anew becomes younger
//! than everything, so its bit is cleared in all other rows. Of the entries that a search hits, the
//! oldest is the one that has no older one among them.
//!
//! ```text
//!              places   0 1 2 3 …
//!              row 2    1 0 0 1          filled after 0 and 3, before 1
//!              hits     0 1 1 0    ──►   row 2 & hits = 0: place 2 is the oldest hit
//! ```

use crate::prelude::*;

/// Row of one place.
#[derive(LogicBlock, Default)]
pub struct Age {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// An entry is written, at `place`.
    pub insert: Signal<In, Bit>,
    /// Where, one bit set.
    pub place: Signal<In, Bits<64>>,
    /// It is this row's place.
    pub mine: Signal<In, Bit>,
    /// Places that hold an entry already.
    pub live: Signal<In, Bits<64>>,
    /// A search is being answered; `first` is low otherwise.
    pub select: Signal<In, Bit>,
    /// Entries that the search hit.
    pub hits: Signal<In, Bits<64>>,
    /// This row's entry is one of them.
    pub hit: Signal<In, Bit>,
    /// It is the oldest of them.
    pub first: Signal<Out, Bit>,
    /// The row.
    pub row: Signal<Out, Bits<64>>,
    older: Reg<Bits<64>>,
}

#[module]
impl Logic for Age {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, older);
        if self.insert.val() {
            self.older.d.next = self.older.q.val() & !self.place.val();
            if self.mine.val() {
                self.older.d.next = self.live.val();
            }
        }
        self.row.next = self.older.q.val();
        self.first.next = false;
        if self.select.val() {
            self.first.next = self.hit.val() & !(self.older.q.val() & self.hits.val()).any();
        }
    }
}
