//! One way of the table of posted receives by key: memories of keys and of their queues, and the two steps of a look-up in them.
//!
//! ```text
//!   read_row │  key, queue ──► captured │  ══ key? ─► hit, occupied  │ held, if it has the key ─► shown
//!    cycle 0 │  1                       │  2                         │ 3
//! ```
//!
//! A slot is one distinct key with the queue of its receives. A key is written with the first receive of its queue and
//! stays, so that an operation that changes only the queue needn't have the key. A slot that was written while it was read
//! is one of [`FreshSlots`], which go through the same steps once for all ways.

use super::hash::KEY_BITS;
use super::way::{Way, Written};
use crate::prelude::*;
use crate::prim::BlockRam;

/// Bits of the number of a receive on the exact side.
pub const ID_BITS: usize = 14;
/// Bits of an age; see [`Queue`].
pub const AGE_BITS: usize = 53;

const _: () = assert!(
    KEY_BITS <= 3 * 36 && 2 + 2 * ID_BITS + AGE_BITS <= 3 * 36,
    "three block RAMs of 36 bits for the keys, three for the queues"
);

/// The receives that have a key.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Queue {
    /// There are some.
    pub valid: Bit,
    /// The oldest of them.
    pub head: Bits<14>,
    /// The youngest.
    pub tail: Bits<14>,
    /// Age of the oldest.
    pub age: Bits<53>,
    /// The oldest stays when it is matched.
    pub multi: Bit,
}

/// The slots that were being written while a look-up read the memory: whether each has the look-up's key.
#[block]
pub struct FreshSlots {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// Key of the slot that is written in this cycle, if any is.
    pub write_key: Signal<In, Bits<97>>,
    /// Queue of the slot that is written in this cycle.
    pub write_queue: Signal<In, Queue>,
    /// Key of the slot that is written in the next cycle, if any is.
    pub next_key: Signal<In, Bits<97>>,
    /// Queue of the slot that is written in the next cycle.
    pub next_queue: Signal<In, Queue>,
    /// Step 1: keep both, and that of the last cycle.
    pub capture: Signal<In, Bit>,
    /// Step 2: the key looked for.
    pub key: Signal<In, Bits<97>>,
    /// Step 2: the oldest one has any.
    pub occupied_old: Signal<Out, Bit>,
    /// Step 2: the next one has any.
    pub occupied_last: Signal<Out, Bit>,
    /// Step 2: the youngest one has any.
    pub occupied_now: Signal<Out, Bit>,
    /// Step 2: keep the slots for step 3.
    pub pass: Signal<In, Bit>,
    /// Step 2: the oldest one was read.
    pub in_old: Signal<In, Bit>,
    /// Step 2: the next one was.
    pub in_last: Signal<In, Bit>,
    /// Step 2: the youngest one was.
    pub in_now: Signal<In, Bit>,
    /// Step 3: the oldest one was read and has the key.
    pub shows_old: Signal<Out, Bit>,
    /// Step 3: the next one was and has.
    pub shows_last: Signal<Out, Bit>,
    /// Step 3: the youngest one was and has.
    pub shows_now: Signal<Out, Bit>,
    /// Step 3: the queue of the one that was read and has the key, or zero.
    pub shown: Signal<Out, Queue>,
    keys: Written<Bits<97>>,
    queues: Written<Queue>,
    old: Reg<Queue>,
    last: Reg<Queue>,
    now: Reg<Queue>,
    show_old: Reg<Bit>,
    show_last: Reg<Bit>,
    show_now: Reg<Bit>,
    has_old: Signal<Local, Bit>,
    has_last: Signal<Local, Bit>,
    has_now: Signal<Local, Bit>,
}

#[block]
impl Logic for FreshSlots {
    fn update(&mut self) {
        self.keys.write_word.next = self.write_key.val();
        self.keys.next_word.next = self.next_key.val();
        self.keys.capture.next = self.capture.val();
        self.queues.write_word.next = self.write_queue.val();
        self.queues.next_word.next = self.next_queue.val();
        self.queues.capture.next = self.capture.val();
        self.occupied_old.next = self.queues.old.val().valid;
        self.has_old.next = self.queues.old.val().valid & (self.keys.old.val() == self.key.val());
        self.occupied_last.next = self.queues.last.val().valid;
        self.has_last.next =
            self.queues.last.val().valid & (self.keys.last.val() == self.key.val());
        self.occupied_now.next = self.queues.now.val().valid;
        self.has_now.next = self.queues.now.val().valid & (self.keys.now.val() == self.key.val());
        if self.pass.val() {
            self.old.d.next = self.queues.old.val();
            self.last.d.next = self.queues.last.val();
            self.now.d.next = self.queues.now.val();
            self.show_old.d.next = self.in_old.val() & self.has_old.val();
            self.show_last.d.next = self.in_last.val() & self.has_last.val();
            self.show_now.d.next = self.in_now.val() & self.has_now.val();
        }
        self.shows_old.next = self.show_old.q.val();
        self.shows_last.next = self.show_last.q.val();
        self.shows_now.next = self.show_now.q.val();
        self.shown.next = Queue::default();
        if self.show_old.q.val() {
            self.shown.next = self.old.q.val();
        }
        if self.show_last.q.val() {
            self.shown.next = self.last.q.val();
        }
        if self.show_now.q.val() {
            self.shown.next = self.now.q.val();
        }
    }
}

/// A way of slots.
#[block(rows: usize)]
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
    /// Step 2: one is looked for.
    pub by_key: Signal<In, Bit>,
    /// Step 2: this slot is wanted, whatever its key; not with `by_key`.
    pub chosen: Signal<In, Bit>,
    /// Step 2: the oldest fresh slot has any.
    pub occupied_old: Signal<In, Bit>,
    /// Step 2: the next one has any.
    pub occupied_last: Signal<In, Bit>,
    /// Step 2: the youngest one has any.
    pub occupied_now: Signal<In, Bit>,
    /// Step 2: the slot of this way has any.
    pub occupied: Signal<Out, Bit>,
    /// Step 2: it is the oldest fresh one.
    pub in_old: Signal<Out, Bit>,
    /// Step 2: it is the next fresh one.
    pub in_last: Signal<Out, Bit>,
    /// Step 2: it is the youngest fresh one.
    pub in_now: Signal<Out, Bit>,
    /// Step 2: keep the slot for step 3.
    pub pass: Signal<In, Bit>,
    /// Step 3: the oldest fresh slot was read and has the key.
    pub shows_old: Signal<In, Bit>,
    /// Step 3: the next one was and has.
    pub shows_last: Signal<In, Bit>,
    /// Step 3: the youngest one was and has.
    pub shows_now: Signal<In, Bit>,
    /// Step 3: the slot of this way has the key, or is `chosen`.
    pub hit: Signal<Out, Bit>,
    /// Step 3: the queue of the slot that hit, unless it is a fresh one; otherwise zero: head.
    pub head: Signal<Out, Bits<14>>,
    /// Tail.
    pub tail: Signal<Out, Bits<14>>,
    /// Age of the head.
    pub age: Signal<Out, Bits<53>>,
    /// The head stays when it is matched.
    pub multi: Signal<Out, Bit>,
    /// Write the queue in this cycle.
    pub write: Signal<In, Bit>,
    /// The key, too.
    pub write_new: Signal<In, Bit>,
    /// Where to.
    pub write_row: Signal<In, Bits<16>>,
    /// What: the key.
    pub write_key: Signal<In, Bits<97>>,
    /// The queue.
    pub write_queue: Signal<In, Queue>,
    /// Write in the next cycle.
    pub next_write: Signal<In, Bit>,
    #[is(Way::new(rows))]
    queues: Way<Queue>,
    #[is(BlockRam::new(rows))]
    keys: BlockRam<Bits<97>>,
    captured: Reg<Bits<97>>,
    held: Reg<Queue>,
    show: Reg<Bit>,
    was_old: Reg<Bit>,
    was_last: Reg<Bit>,
    was_now: Reg<Bit>,
    fresh: Signal<Local, Bit>,
    plain: Signal<Local, Bit>,
}

impl KeyWay {
    /// A way of `rows` rows, a power of two.
    pub fn new(rows: usize) -> Self {
        Self::build(rows)
    }
}

#[block(rows = self.queues.rows())]
impl Logic for KeyWay {
    fn update(&mut self) {
        self.queues.read_row.next = self.read_row.val();
        self.queues.capture.next = self.capture.val();
        self.queues.same_old.next = self.same_old.val();
        self.queues.same_last.next = self.same_last.val();
        self.queues.same_now.next = self.same_now.val();
        self.queues.write.next = self.write.val();
        self.queues.write_row.next = self.write_row.val();
        self.queues.write_word.next = self.write_queue.val();
        self.queues.next_write.next = self.next_write.val();
        self.keys.read_address.next = self.read_row.val();
        store!(
            self.keys.write,
            self.write.val() & self.write_new.val(),
            self.write_row.val(),
            self.write_key.val()
        );
        if self.capture.val() {
            self.captured.d.next = self.keys.read_data.val();
        }
        self.in_old.next = self.queues.in_old.val();
        self.in_last.next = self.queues.in_last.val();
        self.in_now.next = self.queues.in_now.val();
        self.fresh.next =
            self.queues.in_old.val() | self.queues.in_last.val() | self.queues.in_now.val();
        self.plain.next = (self.queues.word.val().valid
            & self.by_key.val()
            & !self.fresh.val()
            & (self.captured.q.val() == self.key.val()))
            | self.chosen.val();
        self.occupied.next = (self.queues.word.val().valid & !self.fresh.val())
            | (self.queues.in_old.val() & self.occupied_old.val())
            | (self.queues.in_last.val() & self.occupied_last.val())
            | (self.queues.in_now.val() & self.occupied_now.val());
        if self.pass.val() {
            self.held.d.next = self.queues.word.val();
            self.show.d.next = self.plain.val();
            self.was_old.d.next = self.queues.in_old.val();
            self.was_last.d.next = self.queues.in_last.val();
            self.was_now.d.next = self.queues.in_now.val();
        }
        self.hit.next = self.show.q.val()
            | (self.was_old.q.val() & self.shows_old.val())
            | (self.was_last.q.val() & self.shows_last.val())
            | (self.was_now.q.val() & self.shows_now.val());
        self.head.next = 0.into();
        self.tail.next = 0.into();
        self.age.next = 0.into();
        self.multi.next = false;
        if self.show.q.val() {
            self.head.next = self.held.q.val().head;
            self.tail.next = self.held.q.val().tail;
            self.age.next = self.held.q.val().age;
            self.multi.next = self.held.q.val().multi;
        }
    }
}
