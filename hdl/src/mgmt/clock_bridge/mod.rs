//! The named crossing between the card's clock and the management processor's.
//!
//! ```text
//!                clock (the card's)      ┊          processor_clock
//!                 ┌─────────┐            ┊            ┌──────────────┐
//!   run ─────────►│         ├──── start ─┊─ Level ───►│              ├──► processor_run
//!   running ◄─────┤         │◄─── Level ─┊── held ────┤              │
//!   loader ──────►│ CardEnd ├─ Crossing ─┊───────────►│ ProcessorEnd ├──► processor_loader
//!   access ◄──────┤         │◄───────────┊─ Crossing ─┤              │◄── processor_access
//!   answer ──────►│         ├─ Crossing ─┊───────────►│              ├──► processor_answer
//!                 └─────────┘            ┊            └──────────────┘
//!   timer_interrupt, external_interrupt ─┊─ Level ───────────────────────► processor_…_interrupt
//!                 ┌──────────┐           ┊
//!   reset ───────►│ ResetEnd ├── asks ───┊─ Level ─┬─────────────────────► processor_reset
//!                 │          │◄── Level ─┊─────────┘
//!                 └──────────┘           ┊
//! ```
//!
//! The clocks may have any ratio and any phase. All that crosses goes by one of these six levels and three queues. Stores and
//! loads reach the registers in the order of the program; a load alone is answered. What a load's answer tells is never
//! older than the interrupts that come with it, so that a load behind a store which changes what may interrupt waits until that is so.

mod card_end;
mod processor_end;
mod reset_end;

pub use card_end::CardEnd;
pub use processor_end::ProcessorEnd;
pub use reset_end::ResetEnd;

use crate::prelude::*;
use crate::prim::{Crossing, Level};
use crate::types::{LoaderWord, RegisterAccess};

/// Loader words, and accesses, that may be under way: as fast as a host writes, and as a core that needs two cycles for a store,
/// at half the card's clock.
const DEPTH: usize = 4;
/// One load is under way at a time.
const ANSWERS: usize = 2;

/// The crossing between the clocks.
#[block]
pub struct ClockBridge {
    /// Rising edge counts, on the card's side.
    pub clock: Signal<In, Clock>,
    /// Resets both sides. They are released when both have been reset, this one first.
    pub reset: Signal<In, Bit>,
    /// Lets the processor run.
    pub run: Signal<In, Bit>,
    /// The processor may run, and what it does to the registers counts. Low from the cycle on in which `run` is.
    pub running: Signal<Out, Bit>,
    /// Words for the memory; only while `run` is low.
    pub loader: Stream<In, LoaderWord>,
    /// An access of the processor that runs.
    pub access: Pulse<Out, RegisterAccess>,
    /// What a load was for: in any later cycle, and before the next load is answered.
    pub answer: Pulse<In, Bits<32>>,
    /// Timer interrupt, level.
    pub timer_interrupt: Signal<In, Bit>,
    /// External interrupt, level.
    pub external_interrupt: Signal<In, Bit>,
    /// Rising edge counts, on the processor's side.
    pub processor_clock: Signal<In, Clock>,
    /// By `processor_clock`, as all of these: resets the processor's side.
    pub processor_reset: Signal<Out, Bit>,
    /// Lets the processor run. From a register.
    pub processor_run: Signal<Out, Bit>,
    /// A word for the memory; the processor is held.
    pub processor_loader: Pulse<Out, LoaderWord>,
    /// A load or a store of a register; not taken while a load waits for its answer.
    pub processor_access: Stream<In, RegisterAccess>,
    /// What the last load was for.
    pub processor_answer: Pulse<Out, Bits<32>>,
    /// Timer interrupt, level.
    pub processor_timer_interrupt: Signal<Out, Bit>,
    /// External interrupt, level.
    pub processor_external_interrupt: Signal<Out, Bit>,

    reset_end: ResetEnd,
    card_end: CardEnd,
    processor_end: ProcessorEnd,
    #[is(Level::new(true))]
    asks_reset: Level,
    #[is(Level::new(false))]
    in_reset: Level,
    #[is(Level::new(false))]
    start: Level,
    #[is(Level::new(false))]
    held: Level,
    #[is(Level::new(false))]
    timer: Level,
    #[is(Level::new(false))]
    external: Level,
    #[is(Crossing::new(DEPTH))]
    words: Crossing<LoaderWord>,
    #[is(Crossing::new(DEPTH))]
    accesses: Crossing<RegisterAccess>,
    #[is(Crossing::new(ANSWERS))]
    answers: Crossing<Bits<32>>,
    queue_reset: Signal<Local, Bit>,
    far_reset: Signal<Local, Bit>,
}

#[block]
impl Logic for ClockBridge {
    fn update(&mut self) {
        // Reset.
        self.asks_reset.input_clock.next = self.clock.val();
        self.asks_reset.level.next = self.reset_end.asks.val();
        self.asks_reset.output_clock.next = self.processor_clock.val();
        self.far_reset.next = self.asks_reset.seen.val();
        self.processor_reset.next = self.far_reset.val();
        self.in_reset.input_clock.next = self.processor_clock.val();
        self.in_reset.level.next = self.far_reset.val();
        self.in_reset.output_clock.next = self.clock.val();
        self.reset_end.in_reset.next = self.in_reset.seen.val();
        self.queue_reset.next = self.reset_end.queue_reset.val();
        self.card_end.reset.next = self.reset_end.card_reset.val();
        self.processor_end.clock.next = self.processor_clock.val();
        self.processor_end.reset.next = self.far_reset.val();

        // Start and stop.
        self.card_end.run.next = self.run.val();
        self.running.next = self.card_end.running.val();
        self.start.input_clock.next = self.clock.val();
        self.start.level.next = self.card_end.start.val();
        self.start.output_clock.next = self.processor_clock.val();
        self.processor_end.start.next = self.start.seen.val();
        self.processor_run.next = self.start.seen.val();
        self.held.input_clock.next = self.processor_clock.val();
        self.held.level.next = self.processor_end.held.val();
        self.held.output_clock.next = self.clock.val();
        self.card_end.held.next = self.held.seen.val();

        // Words for the memory.
        self.words.input_clock.next = self.clock.val();
        self.words.input_reset.next = self.queue_reset.val();
        self.words.output_clock.next = self.processor_clock.val();
        self.words.output_reset.next = self.far_reset.val();
        join!(self.loader => self.card_end.loader);
        join!(self.card_end.words => self.words.input);
        self.card_end.loaded.next = self.words.input_empty.val();
        join!(self.words.output => self.processor_end.words);
        join!(self.processor_end.loader => self.processor_loader);

        // Accesses, and the answers of loads.
        self.accesses.input_clock.next = self.processor_clock.val();
        self.accesses.input_reset.next = self.far_reset.val();
        self.accesses.output_clock.next = self.clock.val();
        self.accesses.output_reset.next = self.queue_reset.val();
        join!(self.processor_access => self.processor_end.access);
        join!(self.processor_end.leaving => self.accesses.input);
        self.processor_end.all_taken.next = self.accesses.input_empty.val();
        join!(self.accesses.output => self.card_end.coming);
        join!(self.card_end.access => self.access);
        self.answers.input_clock.next = self.clock.val();
        self.answers.input_reset.next = self.queue_reset.val();
        self.answers.output_clock.next = self.processor_clock.val();
        self.answers.output_reset.next = self.far_reset.val();
        join!(self.answer => self.card_end.answer);
        join!(self.card_end.returning => self.answers.input);
        join!(self.answers.output => self.processor_end.returned);
        join!(self.processor_end.answer => self.processor_answer);

        // Interrupts.
        self.timer.input_clock.next = self.clock.val();
        self.timer.level.next = self.timer_interrupt.val();
        self.timer.output_clock.next = self.processor_clock.val();
        self.processor_timer_interrupt.next = self.timer.seen.val();
        self.external.input_clock.next = self.clock.val();
        self.external.level.next = self.external_interrupt.val();
        self.external.output_clock.next = self.processor_clock.val();
        self.processor_external_interrupt.next = self.external.seen.val();
    }
}
