//! One way of the table of posted receives by key: a [`Way`] of [`Slot`]s, and the two steps of a look-up in it.
//!
//! ```text
//!   read_row │  word ──► captured │  ══ key? ─► hit, occupied  │ held, & select ─► shown
//!    cycle 0 │  1                 │  2                         │ 3
//! ```
//!
//! A slot is one distinct key with the queue of its receives. A slot that was written while it was read is one of
//! [`FreshSlots`], which go through the same steps once for all ways.

use super::hash::KEY_BITS;
use super::way::{Way, Written};
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

/// The slots that a look-up has to know beside those of the memory, because they were being written: what they say to it.
#[derive(LogicBlock)]
pub struct FreshSlots {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// The slot that is written in this cycle, if any is.
    pub write_slot: Signal<In, Slot>,
    /// The slot that is written in the next cycle, if any is.
    pub next_slot: Signal<In, Slot>,
    /// Step 1: keep both, and that of the last cycle.
    pub capture: Signal<In, Bit>,
    /// Step 2: the key looked for.
    pub key: Signal<In, Bits<97>>,
    /// Step 2: the oldest one has it.
    pub hit_old: Signal<Out, Bit>,
    /// Step 2: the oldest one has any.
    pub occupied_old: Signal<Out, Bit>,
    /// Step 2: the next one has it.
    pub hit_last: Signal<Out, Bit>,
    /// Step 2: the next one has any.
    pub occupied_last: Signal<Out, Bit>,
    /// Step 2: the youngest one has it.
    pub hit_now: Signal<Out, Bit>,
    /// Step 2: the youngest one has any.
    pub occupied_now: Signal<Out, Bit>,
    /// Step 2: keep the slots for step 3.
    pub pass: Signal<In, Bit>,
    /// Step 3: show the oldest one.
    pub select_old: Signal<In, Bit>,
    /// Step 3: show the next one.
    pub select_last: Signal<In, Bit>,
    /// Step 3: show the youngest one.
    pub select_now: Signal<In, Bit>,
    /// Step 3: what is shown, or zero.
    pub shown: Signal<Out, Slot>,
    written: Written<Slot>,
    old: Reg<Slot>,
    last: Reg<Slot>,
    now: Reg<Slot>,
    nothing: Constant<Slot>,
}

impl Default for FreshSlots {
    fn default() -> Self {
        construct!({ nothing: Constant::new(Slot::default()) } default {
            clock reset write_slot next_slot capture key hit_old occupied_old hit_last occupied_last hit_now occupied_now pass
            select_old select_last select_now shown written old last now
        })
    }
}

#[module]
impl Logic for FreshSlots {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, old, last, now);
        clocked!(self, clock, reset, written);
        self.written.write_word.next = self.write_slot.val();
        self.written.next_word.next = self.next_slot.val();
        self.written.capture.next = self.capture.val();
        self.occupied_old.next = self.written.old.val().valid;
        self.hit_old.next =
            self.written.old.val().valid & (self.written.old.val().key == self.key.val());
        self.occupied_last.next = self.written.last.val().valid;
        self.hit_last.next =
            self.written.last.val().valid & (self.written.last.val().key == self.key.val());
        self.occupied_now.next = self.written.now.val().valid;
        self.hit_now.next =
            self.written.now.val().valid & (self.written.now.val().key == self.key.val());
        if self.pass.val() {
            self.old.d.next = self.written.old.val();
            self.last.d.next = self.written.last.val();
            self.now.d.next = self.written.now.val();
        }
        self.shown.next = self.nothing.val();
        if self.select_old.val() {
            self.shown.next = self.old.q.val();
        }
        if self.select_last.val() {
            self.shown.next = self.last.q.val();
        }
        if self.select_now.val() {
            self.shown.next = self.now.q.val();
        }
    }
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
    /// Step 1: as of [`Way`].
    pub same_old: Signal<In, Bit>,
    /// Step 1: as of [`Way`].
    pub same_last: Signal<In, Bit>,
    /// Step 1: as of [`Way`].
    pub same_now: Signal<In, Bit>,
    /// Step 2: the key looked for.
    pub key: Signal<In, Bits<97>>,
    /// Step 2: the oldest fresh slot has the key.
    pub hit_old: Signal<In, Bit>,
    /// Step 2: it has any.
    pub occupied_old: Signal<In, Bit>,
    /// Step 2: the next fresh slot has the key.
    pub hit_last: Signal<In, Bit>,
    /// Step 2: it has any.
    pub occupied_last: Signal<In, Bit>,
    /// Step 2: the youngest fresh slot has the key.
    pub hit_now: Signal<In, Bit>,
    /// Step 2: it has any.
    pub occupied_now: Signal<In, Bit>,
    /// Step 2: the slot of this way has the key.
    pub hit: Signal<Out, Bit>,
    /// Step 2: it has any.
    pub occupied: Signal<Out, Bit>,
    /// Step 2: it is the oldest fresh one.
    pub in_old: Signal<Out, Bit>,
    /// Step 2: it is the next fresh one.
    pub in_last: Signal<Out, Bit>,
    /// Step 2: it is the youngest fresh one.
    pub in_now: Signal<Out, Bit>,
    /// Step 2: keep the slot for step 3.
    pub pass: Signal<In, Bit>,
    /// Step 3: show the slot, unless it is a fresh one; otherwise zero.
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
    /// Write in the next cycle.
    pub next_write: Signal<In, Bit>,
    slots: Way<Slot>,
    held: Reg<Slot>,
    fresh: Reg<Bit>,
}

impl KeyWay {
    /// A way of `rows` rows, a power of two.
    pub fn new(rows: usize) -> Self {
        construct!({ slots: Way::new(rows) } default {
            clock reset read_row capture same_old same_last same_now key hit_old occupied_old hit_last occupied_last hit_now occupied_now hit occupied
            in_old in_last in_now pass select head tail age multi found_key write write_row write_slot next_write held fresh
        })
    }
}

#[module(rows = self.slots.rows())]
impl Logic for KeyWay {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, held, fresh);
        clocked!(self, clock, reset, slots);
        self.slots.read_row.next = self.read_row.val();
        self.slots.capture.next = self.capture.val();
        self.slots.same_old.next = self.same_old.val();
        self.slots.same_last.next = self.same_last.val();
        self.slots.same_now.next = self.same_now.val();
        self.slots.write.next = self.write.val();
        self.slots.write_row.next = self.write_row.val();
        self.slots.write_word.next = self.write_slot.val();
        self.slots.next_write.next = self.next_write.val();
        self.occupied.next = self.slots.word.val().valid;
        self.hit.next = self.slots.word.val().valid & (self.slots.word.val().key == self.key.val());
        if self.slots.in_old.val() {
            self.occupied.next = self.occupied_old.val();
            self.hit.next = self.hit_old.val();
        }
        if self.slots.in_last.val() {
            self.occupied.next = self.occupied_last.val();
            self.hit.next = self.hit_last.val();
        }
        if self.slots.in_now.val() {
            self.occupied.next = self.occupied_now.val();
            self.hit.next = self.hit_now.val();
        }
        self.in_old.next = self.slots.in_old.val();
        self.in_last.next = self.slots.in_last.val();
        self.in_now.next = self.slots.in_now.val();
        if self.pass.val() {
            self.held.d.next = self.slots.word.val();
            self.fresh.d.next =
                self.slots.in_old.val() | self.slots.in_last.val() | self.slots.in_now.val();
        }
        self.head.next = 0.into();
        self.tail.next = 0.into();
        self.age.next = 0.into();
        self.multi.next = false;
        self.found_key.next = 0.into();
        if self.select.val() & !self.fresh.q.val() {
            self.head.next = self.held.q.val().head;
            self.tail.next = self.held.q.val().tail;
            self.age.next = self.held.q.val().age;
            self.multi.next = self.held.q.val().multi;
            self.found_key.next = self.held.q.val().key;
        }
    }
}
