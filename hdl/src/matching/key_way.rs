//! One way of the table of posted receives by key: a [`Way`] of [`Slot`]s, and the two steps of a look-up in it.
//!
//! ```text
//!   read_row │  word ──► captured │  ══ key? ─► hit, occupied  │ held, & select ─► head, tail, …
//!    cycle 0 │  1                 │  2                         │ 3
//! ```
//!
//! A slot is one distinct key with the queue of its receives.

use super::hash::KEY_BITS;
use super::way::Way;
use crate::construct::construct;
use crate::prelude::*;

/// Bits of the number of a receive on the exact side.
pub const ID_BITS: usize = 14;
/// Bits of an age; see [`Link`].
pub const AGE_BITS: usize = 53;

const _: () = assert!(
    1 + KEY_BITS + 2 * ID_BITS + AGE_BITS + 1 == 180,
    "five block RAMs of 36 bits"
);

/// A key and the receives that have it.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Slot {
    /// There are receives.
    pub valid: Bit,
    /// Their key: match bits that count, context, source, class.
    pub key: Bits<97>,
    /// The oldest of them.
    pub head: Bits<14>,
    /// The youngest.
    pub tail: Bits<14>,
    /// Age of the oldest.
    pub age: Bits<53>,
    /// The oldest stays when it is matched.
    pub multi: Bit,
}

/// A way of slots.
#[derive(LogicBlock)]
pub struct KeyWay {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// Step 0: row to read.
    pub read_row: Signal<In, Bits<16>>,
    /// Step 1: take the slot of that row.
    pub capture: Signal<In, Bit>,
    /// Step 2: the key looked for.
    pub key: Signal<In, Bits<97>>,
    /// Step 2: the slot has it.
    pub hit: Signal<Out, Bit>,
    /// Step 2: the slot has any.
    pub occupied: Signal<Out, Bit>,
    /// Step 2: keep the slot for step 3.
    pub pass: Signal<In, Bit>,
    /// Step 3: show the slot; otherwise zero.
    pub select: Signal<In, Bit>,
    /// Step 3: the slot's queue: head.
    pub head: Signal<Out, Bits<14>>,
    /// Tail.
    pub tail: Signal<Out, Bits<14>>,
    /// Age of the head.
    pub age: Signal<Out, Bits<53>>,
    /// The head stays when it is matched.
    pub multi: Signal<Out, Bit>,
    /// Its key.
    pub found_key: Signal<Out, Bits<97>>,
    /// Write in this cycle.
    pub write: Signal<In, Bit>,
    /// Where to.
    pub write_row: Signal<In, Bits<16>>,
    /// What.
    pub write_slot: Signal<In, Slot>,
    slots: Way<Slot>,
    captured: Reg<Slot>,
    held: Reg<Slot>,
}

impl KeyWay {
    /// A way of `rows` rows, a power of two.
    pub fn new(rows: usize) -> Self {
        construct!({ slots: Way::new(rows) } default {
            clock reset read_row capture key hit occupied pass select head tail age multi found_key
            write write_row write_slot captured held
        })
    }
}

#[module(rows = self.slots.rows())]
impl Logic for KeyWay {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, captured, held);
        clocked!(self, clock, reset, slots);
        self.slots.read_row.next = self.read_row.val();
        self.slots.write.next = self.write.val();
        self.slots.write_row.next = self.write_row.val();
        self.slots.write_word.next = self.write_slot.val();
        if self.capture.val() {
            self.captured.d.next = self.slots.word.val();
        }
        self.occupied.next = self.captured.q.val().valid;
        self.hit.next = self.captured.q.val().valid & (self.captured.q.val().key == self.key.val());
        if self.pass.val() {
            self.held.d.next = self.captured.q.val();
        }
        self.head.next = 0.into();
        self.tail.next = 0.into();
        self.age.next = 0.into();
        self.multi.next = false;
        self.found_key.next = 0.into();
        if self.select.val() {
            self.head.next = self.held.q.val().head;
            self.tail.next = self.held.q.val().tail;
            self.age.next = self.held.q.val().age;
            self.multi.next = self.held.q.val().multi;
            self.found_key.next = self.held.q.val().key;
        }
    }
}
