//! One of the places of every row of unexpected messages: the memory that holds what is there, and
//! the comparator behind it.
//!
//! A search comes through in steps of one cycle, a row behind the other:
//!
//! ```text
//!   cycle   0          1           2                     3
//!   row ──► column ──► entry ───► agrees ──────────────► first? ──► age, number
//!           (Ram)      (register) (live, key compared)   (order among the hits of the row)
//! ```
//!
//! Which of two messages of a row came earlier is a bit of the row's order, kept by the place with
//! the higher number: bit *i* of `order` says that the message at the lower place *i* is older than the
//! one here. So a hit here loses to the lower hits that `order` names, and beats the other lower ones.

use crate::prelude::*;
use crate::prim::BlockRam;

/// Comparators of a row at most.
pub(super) const MAX_PLACES: usize = 8;

/// What a place keeps of a message.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Message {
    match_bits: Bits<64>,
    context_id: Bits<16>,
    age: Bits<54>,
}

/// What a search compares with the messages.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Sought {
    /// The search takes whatever is of its pair: `care_bits` is zero, and the context needn't agree.
    pub by_pair: Bit,
    pub context_id: Bits<16>,
    pub match_bits: Bits<64>,
    /// Those of them that have to agree.
    pub care_bits: Bits<64>,
}

/// One place of every row.
#[block(rows: usize, number: usize)]
pub(super) struct Place {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Keep the key's match bits, context and age, at row `write_row`.
    pub write: Signal<In, Bit>,
    pub write_row: Signal<In, Bits<16>>,
    pub age: Signal<In, Bits<54>>,
    /// See `write`.
    pub context_id: Signal<In, Bits<16>>,
    pub match_bits: Signal<In, Bits<64>>,
    /// Cycle 2: what is looked for.
    pub sought: Signal<In, Sought>,
    /// Cycle 0: the row to look at.
    pub read_row: Signal<In, Bits<16>>,
    /// Cycle 1: a row was read in cycle 0.
    pub load: Signal<In, Bit>,
    /// Cycle 2: this place counts; its message lives and its row may be found.
    pub live: Signal<In, Bit>,
    /// Cycle 3: the key agrees with the message.
    pub hit: Signal<Out, Bit>,
    /// Cycle 3: lower places whose message is older.
    pub order: Signal<In, Bits<8>>,
    /// Cycle 3: hits among all places.
    pub hits: Signal<In, Bits<8>>,
    /// Cycle 3: lower hits that came after the one here.
    pub beats: Signal<Out, Bits<8>>,
    /// Cycle 3: a hit at a higher place came before the one here.
    pub beaten: Signal<In, Bit>,
    /// Cycle 3: age and number of the place if it has the earliest hit, else zero.
    pub first_age: Signal<Out, Bits<54>>,
    pub first_number: Signal<Out, Bits<8>>,
    /// Order of the row as it is once `filled`, one bit set, gets the youngest message.
    pub filled: Signal<In, Bits<8>>,
    pub order_before: Signal<In, Bits<8>>,
    /// In its position among those of all places.
    pub order_after: Signal<Out, Bits<64>>,
    #[is(BlockRam::new(rows))]
    column: BlockRam<Message>,
    entry: Reg<Message>,
    entry_age: Reg<Bits<54>>,
    agrees: Reg<Bit>,
    written: Signal<Local, Message>,
    mine: Signal<Local, Bit>,
    is_first: Signal<Local, Bit>,
    row_order: Signal<Local, Bits<8>>,
    #[is(constant(number as u64))]
    number: Constant<Bits<8>>,
    #[is(constant(1u64 << number))]
    own_bit: Constant<Bits<8>>,
    #[is(constant((1u64 << number) - 1))]
    lower: Constant<Bits<8>>,
    #[is(constant(8 * number as u64))]
    position: Constant<Bits<8>>,
}

impl Place {
    /// Place `number` of each of `rows` rows.
    ///
    /// # Panics
    /// If there is no such place, or the number of rows is no depth of a [`BlockRam`].
    pub fn new(rows: usize, number: usize) -> Self {
        assert!(number < MAX_PLACES, "place {number}");
        Self::build(rows, number)
    }
}

#[block(rows = self.number.val().index())]
impl Logic for Place {
    fn update(&mut self) {
        self.written.next = Message {
            match_bits: self.match_bits.val(),
            context_id: self.context_id.val(),
            age: self.age.val(),
        };
        set!(
            self.column,
            write.enable = self.write.val(),
            write.address = self.write_row.val(),
            write.data = self.written.val(),
            read_address = self.read_row.val()
        );
        if self.load.val() {
            self.entry.d.next = self.column.read_data.val();
        }

        self.agrees.d.next = self.live.val()
            & (self.sought.val().by_pair
                | (self.entry.q.val().context_id == self.sought.val().context_id))
            & !((self.entry.q.val().match_bits ^ self.sought.val().match_bits)
                & self.sought.val().care_bits)
                .any();
        if self.live.val() {
            self.entry_age.d.next = self.entry.q.val().age;
        }

        self.hit.next = self.agrees.q.val();
        self.beats.next = 0.into();
        if self.agrees.q.val() {
            self.beats.next = !self.order.val() & self.lower.val();
        }
        self.is_first.next =
            self.agrees.q.val() & !self.beaten.val() & !(self.order.val() & self.hits.val()).any();
        self.first_age.next = 0.into();
        self.first_number.next = 0.into();
        if self.is_first.val() {
            self.first_age.next = self.entry_age.q.val();
            self.first_number.next = self.number.val();
        }

        self.mine.next = (self.filled.val() & self.own_bit.val()).any();
        self.row_order.next = self.order_before.val() & !self.filled.val() & self.lower.val();
        if self.mine.val() {
            self.row_order.next = self.lower.val();
        }
        self.order_after.next = bit_cast::<64, 8>(self.row_order.val()) << self.position.val();
    }
}
