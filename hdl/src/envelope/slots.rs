//! The slots that each pair has in host memory: where they are, and which hold a message.
//!
//! ```text
//!                          ┌───────┐
//!   setup ────────────────►│       │ base, slots granted    (Ram a pair)
//!   ask (a pair, a slot) ─►│ Slots ├──► answer: address, slot taken, whether it is used
//!                          │       │ a bit a slot           (Table a pair)
//!                          └───────┘
//! ```
//!
//! An answer comes three cycles after its question was taken. A question that *takes* marks the lowest vacant slot, one that
//! *gives* clears the mark of the slot that it names. A message takes a slot even if it has no payload, so that slots and
//! envelopes are the same number.
//!
//! Marks change in the order of the card, before payloads have moved: a slot may be taken again while its old message is
//! still being read. That is sound since [`Resolve`](super::Resolve) moves payloads in the same order, and doesn't begin one before all words of
//! the copies in front of it are in the card.

use crate::config::Config;
use crate::prelude::*;
use crate::prim::{Ram, Table};
use abi::limits::{EAGER_MAX, MAX_CREDITS};

const _: () = assert!(EAGER_MAX == 1 << 10, "slots are addressed by a shift");
const _: () = assert!(MAX_CREDITS == 16, "the bitmap of slots");

/// What doesn't change while a pair is connected.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Granted {
    base: Bits<64>,
    slots: Bits<8>,
}

/// A pair and what it gets.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct SlotSetup {
    /// Pair.
    pub pair: Bits<16>,
    /// Card address of its slot 0.
    pub base: Bits<64>,
    /// Slots that it has, all vacant from now on.
    pub slots: Bits<8>,
}

/// A question.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct SlotQuestion {
    /// Pair.
    pub pair: Bits<16>,
    /// A vacant slot is to be taken; otherwise `slot` is the one that is asked about.
    pub take: Bit,
    /// The slot is vacant from now on.
    pub give: Bit,
    /// The slot asked about.
    pub slot: Bits<4>,
}

/// An answer.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct SlotAnswer {
    /// The slot that was taken, or asked about.
    pub slot: Bits<4>,
    /// Its card address.
    pub address: Bits<64>,
    /// Taking: there was a vacant one. Otherwise: the slot holds a message.
    pub found: Bit,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// Waiting for something to do.
    Idle,
    /// The pair's word is read.
    Read,
    /// It is known, and the slot chosen.
    Choose,
    /// The word is written.
    Write,
}

/// The slots of all pairs.
#[block(config: &Config)]
pub(super) struct Slots {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Every slot is vacant.
    pub reset: Signal<In, Bit>,
    /// The table is cleared.
    pub initialized: Signal<Out, Bit>,
    /// A pair is connected, or closed; it goes before everything that is asked later.
    pub setup: Pulse<In, SlotSetup>,
    /// A question.
    pub ask: Stream<In, SlotQuestion>,
    /// Its answer.
    pub answer: Pulse<Out, SlotAnswer>,
    #[is(Table::new(config.pairs))]
    used: Table<Bits<16>>,
    #[is(Ram::new(config.pairs))]
    granted: Ram<Granted>,
    state: Reg<State>,
    /// A pair's new slots, until they are written.
    setup_held: Reg<SlotSetup>,
    setup_waits: Reg<Bit>,
    question: Reg<SlotQuestion>,
    // What was read: slots in use, slots granted, address of the first.
    word: Reg<Bits<16>>,
    limit: Reg<Bits<8>>,
    base: Reg<Bits<64>>,
    taken: Signal<Local, Bits<16>>,
    vacant: Signal<Local, Bits<4>>,
    there_is_one: Signal<Local, Bit>,
    /// The slot that the question is about.
    slot: Signal<Local, Bits<4>>,
    slot_bit: Signal<Local, Bits<16>>,
    given_bit: Signal<Local, Bits<16>>,
    holds: Signal<Local, Bit>,
    writes: Signal<Local, Bit>,
    offset: Signal<Local, Bits<64>>,
    #[is(Check::new("slot_given_out_is_free"))]
    slot_is_free: Check,
    #[is(Check::new("slot_given_back_was_used"))]
    slot_was_used: Check,
    #[is(constant(config.pairs as u64))]
    pairs: Constant<Bits<16>>,
}

impl Slots {
    /// The slots of a card.
    pub(super) fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(pairs = self.pairs.val().index())]
impl Logic for Slots {
    fn update(&mut self) {
        self.initialized.next = self.used.initialized.val();
        if self.setup.valid.val() {
            self.setup_held.d.next = self.setup.data.val();
            self.setup_waits.d.next = true;
        }
        store!(
            self.granted.write,
            false,
            self.setup_held.q.val().pair,
            Granted {
                base: self.setup_held.q.val().base,
                slots: self.setup_held.q.val().slots,
            }
        );
        self.used.write.enable.next = false;
        self.granted.read_address.next = self.question.q.val().pair;
        self.used.read_address.next = self.question.q.val().pair;
        self.used.write.address.next = self.question.q.val().pair;
        self.used.write.data.next = 0.into();
        self.ask.ready.next = false;

        // The lowest slot of the pair that is vacant.
        self.taken.next = self.word.q.val();
        self.there_is_one.next = false;
        self.vacant.next = 0.into();
        for i in 0..16 {
            if !self.there_is_one.val()
                & !self.taken.val().get_bit(i)
                & (self.limit.q.val() > i.to_bits())
            {
                self.there_is_one.next = true;
                self.vacant.next = i.to_bits();
            }
        }
        self.slot.next = self.question.q.val().slot;
        if self.question.q.val().take {
            self.slot.next = self.vacant.val();
        }
        self.slot_bit.next = bits::<16>(1) << self.slot.val();
        self.holds.next = (self.word.q.val() & self.slot_bit.val()).any();
        if self.question.q.val().take {
            self.holds.next = self.there_is_one.val();
        }
        self.given_bit.next = self.slot_bit.val();
        self.offset.next = bit_cast::<64, 4>(self.slot.val()) << 10;
        self.answer.valid.next = false;
        self.answer.data.next = SlotAnswer {
            slot: self.slot.val(),
            address: self.base.q.val() + self.offset.val(),
            found: self.holds.val(),
        };
        self.writes.next = false;

        match self.state.q.val() {
            State::Idle => {
                if self.setup_waits.q.val() {
                    self.setup_waits.d.next = self.setup.valid.val();
                    self.granted.write.enable.next = true;
                    self.used.write.enable.next = true;
                    self.used.write.address.next = self.setup_held.q.val().pair;
                } else if self.ask.valid.val() {
                    self.ask.ready.next = true;
                    self.question.d.next = self.ask.data.val();
                    self.state.d.next = State::Read;
                }
            }
            State::Read => {
                self.state.d.next = State::Choose;
            }
            State::Choose => {
                // The words that were read are registered before anything is chosen by them.
                self.word.d.next = self.used.read_data.val();
                self.limit.d.next = self.granted.read_data.val().slots;
                self.base.d.next = self.granted.read_data.val().base;
                self.state.d.next = State::Write;
            }
            State::Write => {
                self.state.d.next = State::Idle;
                self.answer.valid.next = true;
                self.writes.next = self.question.q.val().give
                    | (self.question.q.val().take & self.there_is_one.val());
                self.used.write.data.next = self.word.q.val() | self.slot_bit.val();
                if self.question.q.val().give {
                    self.used.write.data.next = self.word.q.val() & !self.given_bit.val();
                }
            }
            _ => {}
        }
        if self.writes.val() {
            self.used.write.enable.next = true;
        }
        self.slot_is_free.ok.next = !self.writes.val()
            | self.question.q.val().give
            | !(self.word.q.val() & self.slot_bit.val()).any();
        self.slot_was_used.ok.next = !self.writes.val()
            | !self.question.q.val().give
            | (self.word.q.val() & self.given_bit.val()).any();
    }
}
