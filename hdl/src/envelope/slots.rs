//! The slots that each pair has in host memory: where they are, which hold a message, and at which places what is kept of that is.
//!
//! ```text
//!                          ┌───────┐
//!   setup ────────────────►│       │ base, slots granted    (Ram a pair)
//!                          │       │ units of places        (Ram, MAX_CREDITS ÷ UNIT_PLACES a pair)
//!                          │       ├──► unit: one that the pair gets, or that it has none any more
//!   ask (a pair, a slot) ─►│ Slots ├──► answer: address, place, whether it is used
//!   look (a pair) ────────►│       ├──► seen: a vacant slot
//!                          │       │ a bit a slot           (Table a pair)
//!                          │       │ units that no pair has (a stack)
//!                          └───────┘
//! ```
//!
//! An answer comes three cycles after its question was taken. *Looking* finds the lowest vacant slot, a cycle later, and leaves it vacant: a
//! message looks before it enters, and takes the slot only if it meets no receive. A question that *takes* marks the slot
//! that it names, one that *gives* clears its mark. A message takes a slot even if it has no payload, so that slots and
//! envelopes are the same number.
//!
//! **Places.** What the card keeps of messages in slots is kept at places, of which it has fewer than all pairs could have slots. A pair that comes gets
//! as many units of [`UNIT_PLACES`] as its slots need, and gives them back when it goes. They needn't be neighbours: so nothing is ever too
//! scattered for a pair whose envelopes the card has. That takes two cycles for each unit that is given back and two for each that is taken, and some more, in which questions wait. The firmware admits no more than there are.
//!
//! Marks change in the order of the card, before payloads have moved: a slot may be taken again while its old message is
//! still being read. That is sound since [`Resolve`](super::Resolve) moves payloads in the same order, and doesn't begin one before all words of
//! the copies in front of it are in the card.

use crate::config::Config;
use crate::matching::OneHot;
use crate::prelude::*;
use crate::prim::{Lowest, Ram, Table};
use crate::types::PlaceUnit;
use abi::limits::{EAGER_MAX, MAX_CREDITS, UNIT_PLACES};

const _: () = assert!(EAGER_MAX == 1 << 10, "slots are addressed by a shift");
const _: () = assert!(MAX_CREDITS == 64, "the bitmap of slots");
const _: () = assert!(UNIT_PLACES == 8, "the kernel cuts places here");

/// Units of a pair, at most.
const UNITS: usize = (MAX_CREDITS / UNIT_PLACES) as usize;

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
    pub slot: Bits<6>,
}

/// An answer.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct SlotAnswer {
    /// Card address of the slot.
    pub address: Bits<64>,
    /// Its place.
    pub place: Bits<16>,
    /// The slot held a message.
    pub used: Bit,
}

/// What looking has found.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Vacancy {
    /// There is a vacant slot,
    pub found: Bit,
    /// and this is the lowest one.
    pub slot: Bits<6>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// After a reset every unit goes to the stack.
    Fill,
    /// Waiting for something to do.
    Idle,
    /// The pair's words are read.
    Read,
    /// They are known.
    Choose,
    /// The lowest vacant slot is found, or the word written.
    Write,
    /// What was found is told.
    Tell,
    /// How many units the pair of a setup has is read; then it is known.
    Count,
    Counted,
    /// The last of its units is read; then it goes to the stack.
    Give,
    Given,
    /// The unit on top of the stack is read; then the pair gets it.
    Take,
    Taken,
}

/// The slots of all pairs.
#[block(config: &Config)]
pub(super) struct Slots {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Every slot is vacant, and no pair has any.
    pub reset: Signal<In, Bit>,
    /// The tables are cleared.
    pub initialized: Signal<Out, Bit>,
    /// A pair is connected, or closed; it goes before everything that is asked later.
    pub setup: Stream<In, SlotSetup>,
    /// A unit that a pair gets, or that it has none any more.
    pub unit: Pulse<Out, PlaceUnit>,
    /// A question.
    pub ask: Stream<In, SlotQuestion>,
    /// Its answer.
    pub answer: Pulse<Out, SlotAnswer>,
    /// A pair of which a vacant slot is looked for; questions go first.
    pub look: Stream<In, Bits<16>>,
    /// What was found.
    pub seen: Pulse<Out, Vacancy>,
    #[is(Table::new(config.pairs))]
    used: Table<Bits<64>>,
    #[is(Ram::distributed(config.pairs))]
    granted: Ram<Granted>,
    /// How many units each pair has, and which.
    #[is(Table::new(config.pairs))]
    counts: Table<Bits<4>>,
    #[is(Ram::new(config.pairs * UNITS))]
    units: Ram<Bits<8>>,
    /// Units that no pair has, and how many they are.
    #[is(Ram::new(config.unexpected / UNIT_PLACES as usize))]
    stack: Ram<Bits<8>>,
    level: Reg<Bits<16>>,
    state: Reg<State>,
    /// A pair's new slots, until they are written.
    setup_held: Reg<SlotSetup>,
    setup_waits: Reg<Bit>,
    /// Units that the pair of the setup has.
    count: Reg<Bits<4>>,
    question: Reg<SlotQuestion>,
    /// It is none: a vacant slot of its pair is looked for.
    looking: Reg<Bit>,
    // What was read: slots in use, slots granted, address of the first, unit of the slot.
    word: Reg<Bits<64>>,
    limit: Reg<Bits<8>>,
    base: Reg<Bits<64>>,
    unit_held: Reg<Bits<8>>,
    /// The lowest slot that is vacant, if any is: a bit.
    found: Reg<Bits<64>>,
    taken: Signal<Local, Bits<64>>,
    beyond: Signal<Local, Bits<64>>,
    vacant: Lowest<64>,
    number: OneHot,
    slot_bit: Signal<Local, Bits<64>>,
    given_bit: Signal<Local, Bits<64>>,
    holds: Signal<Local, Bit>,
    writes: Signal<Local, Bit>,
    offset: Signal<Local, Bits<64>>,
    unit_address: Signal<Local, Bits<16>>,
    wanted: Signal<Local, Bits<4>>,
    slots_got: Signal<Local, Bits<8>>,
    #[is(Check::new("slot_given_out_is_free"))]
    slot_is_free: Check,
    #[is(Check::new("slot_given_back_was_used"))]
    slot_was_used: Check,
    #[is(Check::new("units_are_enough_for_what_is_admitted"))]
    units_suffice: Check,
    #[is(constant(config.unexpected as u64 / u64::from(UNIT_PLACES)))]
    all_units: Constant<Bits<16>>,
    #[is(constant(config.pairs as u64))]
    pairs: Constant<Bits<16>>,
}

impl Slots {
    /// The slots of a card.
    ///
    /// # Panics
    /// If its places aren't a number of units, 2 to 256 of them.
    pub(super) fn new(config: &Config) -> Self {
        let units = config.unexpected / usize::from(UNIT_PLACES);
        assert!(
            config.unexpected.is_multiple_of(UNIT_PLACES.into()) && (2..=1 << 8).contains(&units),
            "{} places",
            config.unexpected
        );
        Self::build(config)
    }
}

#[block(pairs = self.pairs.val().index())]
impl Logic for Slots {
    fn update(&mut self) {
        self.initialized.next = self.used.initialized.val()
            & self.counts.initialized.val()
            & (self.state.q.val() != State::Fill);
        self.setup.ready.next = !self.setup_waits.q.val();
        if self.setup.valid.val() & self.setup.ready.val() {
            self.setup_held.d.next = self.setup.data.val();
            self.setup_waits.d.next = true;
        }
        self.used.write.enable.next = false;
        self.granted.read_address.next = self.question.q.val().pair;
        self.used.read_address.next = self.question.q.val().pair;
        self.used.write.address.next = self.question.q.val().pair;
        self.used.write.data.next = 0.into();
        self.ask.ready.next = false;
        self.look.ready.next = false;
        // The units: of the slot in question, or the last of a pair that is set up.
        self.unit_address.next =
            (self.question.q.val().pair << 3) | bit_cast::<16, 6>(self.question.q.val().slot >> 3);
        self.counts.read_address.next = self.setup_held.q.val().pair;
        store!(
            self.counts.write,
            false,
            self.setup_held.q.val().pair,
            bits::<4>(0)
        );
        store!(
            self.units.write,
            false,
            (self.setup_held.q.val().pair << 3) | bit_cast::<16, 4>(self.count.q.val()),
            self.stack.read_data.val()
        );
        self.stack.read_address.next = self.level.q.val() - 1;
        store!(
            self.stack.write,
            false,
            self.level.q.val(),
            self.units.read_data.val()
        );
        self.unit.valid.next = false;
        self.unit.data.next = PlaceUnit {
            pair: self.setup_held.q.val().pair,
            count: 0.into(),
            unit: self.stack.read_data.val(),
        };
        self.wanted.next = bit_cast::<4, 8>((self.setup_held.q.val().slots + 7) >> 3);
        // A pair that was admitted without units for it has the slots that it has places for.
        self.slots_got.next = self.setup_held.q.val().slots;
        if self.count.q.val() != self.wanted.val() {
            self.slots_got.next = bit_cast::<8, 4>(self.count.q.val()) << 3;
        }
        store!(
            self.granted.write,
            false,
            self.setup_held.q.val().pair,
            Granted {
                base: self.setup_held.q.val().base,
                slots: self.slots_got.val(),
            }
        );

        // The lowest slot of the pair that is vacant.
        self.taken.next = self.word.q.val();
        self.beyond.next = 0.into();
        for i in 0..64 {
            if self.limit.q.val() <= i.to_bits() {
                self.beyond.next = self.beyond.val().replace_bit(i, true);
            }
        }
        self.vacant.set.next = !(self.taken.val() | self.beyond.val());
        self.found.d.next = self.vacant.lowest.val();
        self.number.vector.next = self.found.q.val();
        self.slot_bit.next = bits::<64>(1) << self.question.q.val().slot;
        self.holds.next = (self.word.q.val() & self.slot_bit.val()).any();
        self.given_bit.next = self.slot_bit.val();
        self.offset.next = bit_cast::<64, 6>(self.question.q.val().slot) << 10;
        self.answer.valid.next = false;
        self.answer.data.next = SlotAnswer {
            address: self.base.q.val() + self.offset.val(),
            place: (bit_cast::<16, 8>(self.unit_held.q.val()) << 3)
                | bit_cast::<16, 6>(self.question.q.val().slot & 7),
            used: self.holds.val(),
        };
        self.seen.valid.next = false;
        self.seen.data.next = Vacancy {
            found: self.found.q.val().any(),
            slot: bit_cast::<6, 16>(self.number.index.val()),
        };
        self.writes.next = false;
        self.units_suffice.ok.next = true;

        match self.state.q.val() {
            State::Fill => {
                self.stack.write.enable.next = true;
                self.stack.write.data.next = bit_cast::<8, 16>(self.level.q.val());
                self.level.d.next = self.level.q.val() + 1;
                if self.level.q.val() + 1 == self.all_units.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Idle => {
                if self.setup_waits.q.val() {
                    self.state.d.next = State::Count;
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
                self.unit_held.d.next = self.units.read_data.val();
                self.state.d.next = State::Write;
            }
            State::Write => {
                self.state.d.next = State::Idle;
                if self.looking.q.val() {
                    self.state.d.next = State::Tell;
                }
                self.answer.valid.next = !self.looking.q.val();
                self.writes.next = self.question.q.val().give | self.question.q.val().take;
                self.used.write.data.next = self.word.q.val() | self.slot_bit.val();
                if self.question.q.val().give {
                    self.used.write.data.next = self.word.q.val() & !self.given_bit.val();
                }
            }
            State::Tell => {
                self.seen.valid.next = true;
                self.state.d.next = State::Idle;
            }
            State::Count => {
                self.state.d.next = State::Counted;
            }
            State::Counted => {
                self.count.d.next = self.counts.read_data.val();
                self.state.d.next = State::Give;
            }
            State::Give => {
                self.unit_address.next =
                    (self.setup_held.q.val().pair << 3) | bit_cast::<16, 4>(self.count.q.val() - 1);
                self.state.d.next = State::Given;
                if self.count.q.val() == 0 {
                    self.unit.valid.next = true;
                    self.counts.write.enable.next = true;
                    self.state.d.next = State::Take;
                }
            }
            State::Given => {
                self.stack.write.enable.next = true;
                self.level.d.next = self.level.q.val() + 1;
                self.count.d.next = self.count.q.val() - 1;
                self.state.d.next = State::Give;
            }
            State::Take => {
                self.state.d.next = State::Taken;
                self.units_suffice.ok.next =
                    (self.count.q.val() == self.wanted.val()) | self.level.q.val().any();
                if (self.count.q.val() == self.wanted.val()) | (self.level.q.val() == 0) {
                    self.granted.write.enable.next = true;
                    self.used.write.enable.next = true;
                    self.used.write.address.next = self.setup_held.q.val().pair;
                    self.setup_waits.d.next = false;
                    self.state.d.next = State::Idle;
                }
            }
            State::Taken => {
                self.units.write.enable.next = true;
                self.counts.write.enable.next = true;
                self.counts.write.data.next = self.count.q.val() + 1;
                self.unit.valid.next = true;
                self.unit.data.next.count = self.count.q.val() + 1;
                self.count.d.next = self.count.q.val() + 1;
                self.level.d.next = self.level.q.val() - 1;
                self.state.d.next = State::Take;
            }
            _ => {}
        }
        self.units.read_address.next = self.unit_address.val();
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
