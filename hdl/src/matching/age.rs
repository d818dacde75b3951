//! Which entries of a list are older than this one.
//!
//! Entries stay where they are, so their places say nothing about their age. For each two places there is a bit, kept in the
//! row of the higher place: set if the entry at the lower place is older. A place that is filled anew becomes younger than all
//! others, so its row is set and its bit is cleared in the rows above. Of the entries that a search hits, the oldest is the one
//! that no other hit, above or below, is older than.
//!
//! ```text
//!              places   0 1 2 3 …
//!              row 2    1 0 . .          filled after 0, before 1
//!              row 3    1 0 0 .          filled after 0, before 1 and 2
//!              hits     0 0 1 1    ──►   row 2 & hits = 0: nothing below beats place 2;
//!                                        !row 3 beats 1 and 2, of which 2 is a hit: so place 3 is the oldest hit
//! ```

use crate::prelude::*;

/// Row of one place.
#[block]
pub struct Age {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// The places below this one.
    pub below: Signal<In, Bits<64>>,
    /// The place where an entry is written, one bit set, or none.
    pub filled: Signal<In, Bits<64>>,
    /// The place that is written is this row's.
    pub mine: Signal<In, Bit>,
    /// Places whose entries are older than what is written: all.
    pub elders: Signal<In, Bits<64>>,
    /// Entries that the search hit.
    pub hits: Signal<In, Bits<64>>,
    /// This row's entry is one of the hits.
    pub hit: Signal<In, Bit>,
    /// A hit below is older: a bit for each remainder of its place by 8.
    pub behind: Signal<Out, Bits<8>>,
    /// Places below that aren't the oldest hit, because this row's entry is a hit and older.
    pub beats: Signal<Out, Bits<64>>,
    /// The row.
    pub row: Signal<Out, Bits<64>>,
    older: Reg<Bits<64>>,
    ahead: Signal<Local, Bits<64>>,
    eighth: Signal<Local, Bits<64>>,
}

#[block]
impl Logic for Age {
    fn update(&mut self) {
        self.older.d.next = self.older.q.val() & !self.filled.val() & self.below.val();
        if self.mine.val() {
            self.older.d.next = self.elders.val() & self.below.val();
        }
        self.row.next = self.older.q.val();
        self.ahead.next = self.older.q.val() & self.hits.val();
        self.behind.next = 0.into();
        for g in 0..8 {
            self.eighth.next = self.ahead.val() & 0x0101_0101_0101_0101u64;
            self.behind.next = self.behind.val().replace_bit(g, self.eighth.val().any());
            self.ahead.next = self.ahead.val() >> 1;
        }
        self.beats.next = 0.into();
        if self.hit.val() {
            self.beats.next = !self.older.q.val() & self.below.val();
        }
    }
}
