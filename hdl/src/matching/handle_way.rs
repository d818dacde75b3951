//! One way of the table of posted receives by handle: a [`Way`] of [`Handle`]s, and the two steps of a look-up in it.
//!
//! The same steps as in the table by key. It is where a cancel finds its receive, and where the receives of
//! a pair or of an endpoint are found, row after row.
//!
//! A search in this table runs alone, so it reads nothing that is being written. A post has to know of a word that is being
//! written only whether its place is taken.

use super::way::Way;
use crate::prelude::*;

/// What the rows are searched for.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum By {
    /// Nothing.
    Nothing,
    /// The endpoint's receive of this handle.
    Request,
    /// Receives that name this source, and no other would do.
    Pair,
    /// All of the endpoint.
    Endpoint,
}

/// A receive by its handle.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Handle {
    /// There is one.
    pub valid: Bit,
    /// Its class; the upper four bits are the endpoint that posted it.
    pub class: Bits<6>,
    /// Its handle.
    pub request: Bits<32>,
    /// Source that it names.
    pub pair: Bits<16>,
    /// Any source would do.
    pub any_source: Bit,
    /// Its number.
    pub id: Bits<14>,
}

/// A way of handles.
#[block(rows: usize)]
pub struct HandleWay {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// Step 0: row to read.
    pub read_row: Signal<In, Bits<16>>,
    /// Step 1: take the word of that row.
    pub capture: Signal<In, Bit>,
    /// Step 1: as of [`Way`].
    pub same_old: Signal<In, Bit>,
    /// Step 1: as of [`Way`].
    pub same_last: Signal<In, Bit>,
    /// Step 1: as of [`Way`].
    pub same_now: Signal<In, Bit>,
    /// Step 2: the word of the oldest write that may not have been read was a receive.
    pub occupied_old: Signal<In, Bit>,
    /// Step 2: that of the next one was.
    pub occupied_last: Signal<In, Bit>,
    /// Step 2: that of the youngest was.
    pub occupied_now: Signal<In, Bit>,
    /// Step 2: what is looked for.
    pub by: Signal<In, By>,
    /// Step 2: the endpoint that is looked for.
    pub endpoint: Signal<In, Bits<8>>,
    /// Step 2: the handle that is looked for.
    pub request: Signal<In, Bits<32>>,
    /// Step 2: the source that is looked for.
    pub pair: Signal<In, Bits<16>>,
    /// Step 2: the place holds what is looked for.
    pub hit: Signal<Out, Bit>,
    /// Step 2: the place holds a receive.
    pub occupied: Signal<Out, Bit>,
    /// Step 2: the place was being written when it was read; `hit` is that of its old word.
    pub fresh: Signal<Out, Bit>,
    /// Step 2: keep the word for step 3.
    pub pass: Signal<In, Bit>,
    /// Step 3: show the word in `id` and `class_id`, which are zero otherwise.
    pub select: Signal<In, Bit>,
    /// Step 3: number of the receive.
    pub id: Signal<Out, Bits<14>>,
    /// Step 3: class of the receive.
    pub class_id: Signal<Out, Bits<6>>,
    /// Write in this cycle.
    pub write: Signal<In, Bit>,
    /// Where to.
    pub write_row: Signal<In, Bits<16>>,
    /// What.
    pub write_handle: Signal<In, Handle>,
    /// Write in the next cycle.
    pub next_write: Signal<In, Bit>,
    #[is(Way::new(rows))]
    handles: Way<Handle>,
    held: Reg<Bits<14>>,
    held_class_id: Reg<Bits<6>>,
    of_endpoint: Signal<Local, Bit>,
    of_request: Signal<Local, Bit>,
    of_pair: Signal<Local, Bit>,
}

impl HandleWay {
    /// A way of `rows` rows, a power of two.
    pub fn new(rows: usize) -> Self {
        Self::build(rows)
    }
}

#[block(rows = self.handles.rows())]
impl Logic for HandleWay {
    fn update(&mut self) {
        self.handles.read_row.next = self.read_row.val();
        self.handles.capture.next = self.capture.val();
        self.handles.same_old.next = self.same_old.val();
        self.handles.same_last.next = self.same_last.val();
        self.handles.same_now.next = self.same_now.val();
        self.handles.write.next = self.write.val();
        self.handles.write_row.next = self.write_row.val();
        self.handles.write_word.next = self.write_handle.val();
        self.handles.next_write.next = self.next_write.val();
        self.occupied.next = self.handles.word.val().valid;
        if self.handles.in_old.val() {
            self.occupied.next = self.occupied_old.val();
        }
        if self.handles.in_last.val() {
            self.occupied.next = self.occupied_last.val();
        }
        if self.handles.in_now.val() {
            self.occupied.next = self.occupied_now.val();
        }
        self.fresh.next =
            self.handles.in_old.val() | self.handles.in_last.val() | self.handles.in_now.val();
        self.of_endpoint.next =
            bit_cast::<8, 6>(self.handles.word.val().class >> 2) == self.endpoint.val();
        self.of_request.next = self.handles.word.val().request == self.request.val();
        self.of_pair.next =
            !self.handles.word.val().any_source & (self.handles.word.val().pair == self.pair.val());
        self.hit.next = self.handles.word.val().valid
            & (self.by.val() != By::Nothing)
            & (self.of_endpoint.val() | (self.by.val() == By::Pair))
            & (self.of_request.val() | (self.by.val() != By::Request))
            & (self.of_pair.val() | (self.by.val() != By::Pair));
        if self.pass.val() {
            self.held.d.next = self.handles.word.val().id;
            self.held_class_id.d.next = self.handles.word.val().class;
        }
        self.id.next = 0.into();
        self.class_id.next = 0.into();
        if self.select.val() {
            self.class_id.next = self.held_class_id.q.val();
            self.id.next = self.held.q.val();
        }
    }
}
