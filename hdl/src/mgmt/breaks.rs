//! Contracts of the management's blocks that a test breaks, to show that it notices.

use super::clock_bridge::{CardEnd, ClockBridge, ProcessorEnd, ResetEnd};
use super::counters::Counters;
use super::event_queue::EventQueue;
use super::fanout::Fanout;
use super::pair_counters::PairCounters;
use crate::verilog::Break;

/// Of the fan-out of control requests.
pub fn fanout() -> Vec<Break> {
    vec![
        // A request is done before all blocks are.
        Break::new("answers_first").force::<Fanout>("all", "true"),
        // A block sees every request.
        Break::new("shown_to_all").force::<Fanout>("concerned[3]", "true"),
        // An operation that there isn't is taken for `PairSet`.
        Break::new("codes_aliased").force_if::<Fanout>(
            "asked",
            "128",
            "control.data.operation > 63",
        ),
        // A block that has taken a request sees it again.
        Break::new("shown_again").force::<Fanout>("finished[0].q", "false"),
    ]
}

/// Of the queue of events.
pub fn event_queue() -> Vec<Break> {
    vec![
        // An event that finds no room drives the oldest out.
        Break::new("overwrites").force_if::<EventQueue>("events.output.ready", "true", "loses"),
        // An event that is dropped isn't counted.
        Break::new("loss_not_counted").force::<EventQueue>("loses", "false"),
        // An event is gone although it wasn't taken.
        Break::new("not_kept").force_if::<EventQueue>(
            "events.output.ready",
            "true",
            "told.valid & (told.data.cause == 0)",
        ),
    ]
}

/// Of the card's counters.
pub fn counters() -> Vec<Break> {
    vec![
        // Totals of before a reset are looked at.
        Break::new("keeps_totals").force::<Counters>("cleared.d", "true"),
        // What is counted in a counter's turn is lost.
        Break::new("loses_its_turn").force_if::<Counters>(
            "handed.d",
            "pending[7].q",
            "hands_over[7]",
        ),
        // What was handed over is counted once more in the next turn.
        Break::new("counts_twice").force_if::<Counters>(
            "pending[7].d",
            "gathered[7]",
            "hands_over[7]",
        ),
        // An index is cut to the bits that number the counters.
        Break::new("cuts_the_index").force::<Counters>(
            "is_asked_for",
            "bit_cast::<5, 16>(control.data.index) == current.q",
        ),
    ]
}

/// Of the counters of pairs.
pub fn pair_counters() -> Vec<Break> {
    vec![
        // One pair's are another's.
        Break::new("ignores_the_pair").force::<PairCounters>("frame.pair", "0"),
        // What is refused and what is told twice is one.
        Break::new("takes_duplicates_for_gaps").force::<PairCounters>("duplicates", "false"),
        // A repeat is counted as a time-out.
        Break::new("takes_repeats_for_timeouts").force::<PairCounters>("repeats", "false"),
        // What a rule drops isn't counted while frames come.
        Break::new("loses_rule_drops").force_if::<PairCounters>(
            "rules.input.valid",
            "false",
            "frame_comes",
        ),
        // All that is refused is refused for one reason.
        Break::new("ignores_the_reason").force::<PairCounters>("refused.data.reason", "0"),
        // The next connection has those of the one before.
        Break::new("keeps_counters").force::<PairCounters>("memory.write.enable", "state.q == 1"),
        // The last counter of a pair is kept.
        Break::new("keeps_the_last_counter").force_if::<PairCounters>(
            "memory.write.enable",
            "false",
            "(state.q == 3) & (cleared.q == 15)",
        ),
        // A pair that isn't there has counters.
        Break::new("answers_for_any_pair").force::<PairCounters>("pairs", "65535"),
    ]
}

/// Of the crossing between the card's clock and the processor's.
pub fn clock_bridge() -> Vec<Break> {
    vec![
        // The processor starts before its program is in memory.
        Break::new("start_overtakes_words").force::<CardEnd>("loaded", "true"),
        // The processor starts before the old program is over.
        Break::new("start_does_not_wait").force::<CardEnd>("held", "true"),
        // A `run` that is low for a moment is forgotten.
        Break::new("forgets_stops").force::<CardEnd>("stops.d", "false"),
        // An access has its effect after the processor was stopped.
        Break::new("acts_when_stopped").force::<CardEnd>("access.valid", "coming.valid"),
        // A load that comes after the processor was stopped is never answered.
        Break::new("no_answer_when_stopped").force::<CardEnd>("turned_away", "false"),
        // A store that comes after the processor was stopped is answered.
        Break::new("answers_stores").force::<CardEnd>("turned_away", "coming.valid & !counts"),
        // A word that comes while the bridge is reset is lost.
        Break::new("loses_words_in_reset").force::<CardEnd>("loader.ready", "words.ready"),
        // A word reaches the memory while the processor runs.
        Break::new("loads_a_running_processor")
            .force::<ProcessorEnd>("words.ready", "true")
            .force::<ProcessorEnd>("loader.valid", "words.valid"),
        // The answer of a load of the old program is still to come.
        Break::new("held_before_the_answer").force::<ProcessorEnd>("held", "!start & all_taken"),
        // Accesses of the old program are still on their way.
        Break::new("held_before_all_is_taken").force::<ProcessorEnd>("held", "!start & !waits.q"),
        // A load leaves while another waits for its answer.
        Break::new("loads_do_not_wait").force::<ProcessorEnd>("may_leave", "start"),
        // An answer that comes when the processor is held is given all the same.
        Break::new("answers_when_held").force::<ProcessorEnd>("answer.valid", "returned.valid"),
        // This side is released before the other was in reset.
        Break::new("released_too_soon").force::<ResetEnd>("in_reset", "true"),
        // A reset while the one before ends is forgotten.
        Break::new("forgets_resets").force_if::<ResetEnd>(
            "wanted.d",
            "false",
            "in_reset & !asking.q",
        ),
        // The processor's side isn't reset.
        Break::new("other_side_not_reset").force::<ResetEnd>("asks", "false"),
        // One interrupt is taken for the other.
        Break::new("interrupts_exchanged")
            .force::<ClockBridge>("timer.level", "external_interrupt")
            .force::<ClockBridge>("external.level", "timer_interrupt"),
    ]
}
