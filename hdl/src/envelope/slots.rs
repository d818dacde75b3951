//! The slots that each pair has in host memory: where they are, and which hold a message.
//!
//! ```text
//!                          ┌───────┐
//!   setup ────────────────►│       │ base, slots granted    (Ram a pair)
//!   ask (a pair, a slot) ─►│ Slots ├──► answer: address, whether it is used
//!   look (a pair) ────────►│       ├──► seen: a vacant slot
//!                          │       │ a bit a slot           (Table a pair)
//!                          └───────┘
//! ```
//!
//! An answer comes three cycles after its question was taken. *Looking* finds the lowest vacant slot and leaves it vacant: a
//! message looks before it enters, and takes the slot only if it meets no receive. A question that *takes* marks the slot
//! that it names, one that *gives* clears its mark. A message takes a slot even if it has no payload, so that slots and
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
    /// The slot is in use from now on.
    pub take: Bit,
    /// The slot is vacant from now on.
    pub give: Bit,
    /// The slot asked about.
    pub slot: Bits<4>,
}

/// An answer.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct SlotAnswer {
    /// Card address of the slot.
    pub address: Bits<64>,
    /// The slot held a message.
    pub used: Bit,
}

/// What looking has found.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Vacancy {
    /// There is a vacant slot,
    pub found: Bit,
    /// and this is the lowest one.
    pub slot: Bits<4>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// Waiting for something to do.
    Idle,
    /// The pair's word is read.
    Read,
    /// It is known.
    Choose,
    /// The slot is chosen, or the word written.
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
    /// A pair of which a vacant slot is looked for; questions go first.
    pub look: Stream<In, Bits<16>>,
    /// What was found.
    pub seen: Pulse<Out, Vacancy>,
    #[is(Table::new(config.pairs))]
    used: Table<Bits<16>>,
    #[is(Ram::distributed(config.pairs))]
    granted: Ram<Granted>,
    state: Reg<State>,
    /// A pair's new slots, until they are written.
    setup_held: Reg<SlotSetup>,
    setup_waits: Reg<Bit>,
    question: Reg<SlotQuestion>,
    /// It is none: a vacant slot of its pair is looked for.
    looking: Reg<Bit>,
    // What was read: slots in use, slots granted, address of the first.
    word: Reg<Bits<16>>,
    limit: Reg<Bits<8>>,
    base: Reg<Bits<64>>,
    taken: Signal<Local, Bits<16>>,
    vacant: Signal<Local, Bits<4>>,
    there_is_one: Signal<Local, Bit>,
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
        self.look.ready.next = false;

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
        self.slot_bit.next = bits::<16>(1) << self.question.q.val().slot;
        self.holds.next = (self.word.q.val() & self.slot_bit.val()).any();
        self.given_bit.next = self.slot_bit.val();
        self.offset.next = bit_cast::<64, 4>(self.question.q.val().slot) << 10;
        self.answer.valid.next = false;
        self.answer.data.next = SlotAnswer {
            address: self.base.q.val() + self.offset.val(),
            used: self.holds.val(),
        };
        self.seen.valid.next = false;
        self.seen.data.next = Vacancy {
            found: self.there_is_one.val(),
            slot: self.vacant.val(),
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
                    self.looking.d.next = false;
                    self.state.d.next = State::Read;
                } else if self.look.valid.val() {
                    self.look.ready.next = true;
                    self.question.d.next = SlotQuestion::default();
                    self.question.d.next.pair = self.look.data.val();
                    self.looking.d.next = true;
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
                self.answer.valid.next = !self.looking.q.val();
                self.seen.valid.next = self.looking.q.val();
                self.writes.next = self.question.q.val().give | self.question.q.val().take;
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
