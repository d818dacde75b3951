//! Contracts of the primitives that a test breaks, to show that it notices.

use super::counter::Counter;
use super::crossing::{CrossingEntry, CrossingExit};
use super::fifo::Fifo;
use super::in_order::InOrder;
use super::level::Level;
use super::lowest::Lowest;
use super::power_on_reset::PowerOnReset;
use super::round_robin::RoundRobin;
use super::skid::Skid;
use super::stream_mux::StreamMux;
use super::table::Table;
use crate::verilog::Break;
use rust_hdl::prelude::Bits;

type Word = Bits<64>;

/// Of the queue.
pub fn fifo() -> Vec<Break> {
    vec![
        // A full queue takes a word.
        Break::new("overflows").force::<Fifo<Word>>("input.ready", "true"),
        // A word is offered before the memory has it.
        Break::new("offers_too_soon").force_if::<Fifo<Word>>("head_valid.d", "true", "push"),
        // A word stays at the head after it was taken: one of as many as the memory has places.
        Break::new("repeats_words").force_if::<Fifo<Word>>(
            "pop",
            "false",
            "(read_index.q == index_mask) & input.valid",
        ),
        // The word at the head isn't counted.
        Break::new("head_not_counted").force_if::<Fifo<Word>>(
            "level",
            "held.q - 1",
            "head_valid.q",
        ),
    ]
}

/// Of the questions beside their answers.
pub fn in_order() -> Vec<Break> {
    vec![
        // A question is offered before its answer is there.
        Break::new("does_not_wait").force::<InOrder<Word, Bits<8>>>("answered", "true"),
        // A question that awaits no answer takes the next one's.
        Break::new("takes_the_next_answer").force::<InOrder<Word, Bits<8>>>(
            "answers.output.ready",
            "questions.output.valid & answered & output.ready",
        ),
        // An answer stays for the next question.
        Break::new("keeps_answers")
            .force::<InOrder<Word, Bits<8>>>("answers.output.ready", "false"),
        // A question that waits for its answer is lost if the taker is ready.
        Break::new("loses_what_waits")
            .force::<InOrder<Word, Bits<8>>>("questions.output.ready", "output.ready"),
    ]
}

/// Of the register in a stream.
pub fn skid() -> Vec<Break> {
    vec![
        // A word is taken although the spare register is full.
        Break::new("spare_overwritten")
            .force::<Skid<Word>>("input.ready", "true")
            .force_if::<Skid<Word>>("spare.d", "input.data", "input.valid & spare_valid.q"),
        // The word at the head is replaced before it is taken.
        Break::new("head_replaced").force_if::<Skid<Word>>("head.d", "spare.q", "spare_valid.q"),
        // The spare register still holds a word that has left it.
        Break::new("spare_repeated").force_if::<Skid<Word>>(
            "spare_valid.d",
            "true",
            "spare_valid.q",
        ),
    ]
}

/// Of the lowest of a set.
pub fn lowest() -> Vec<Break> {
    vec![
        // Places above the lowest stay.
        Break::new("keeps_higher_places").force::<Lowest<6>>("lowest", "set"),
        // A place far below isn't seen.
        Break::new("looks_near_only").force::<Lowest<64>>("lowest", "set & !(set << 1)"),
        // There is a lowest place of nothing.
        Break::new("finds_one_in_nothing").force_if::<Lowest<64>>("lowest", "1", "!set.any()"),
    ]
}

/// Of the choice in turn.
pub fn round_robin() -> Vec<Break> {
    vec![
        // The request that has had its turn comes first again.
        Break::new("forgets_turns").force_if::<RoundRobin>("first.d", "chosen", "advance"),
        // A choice that has not had its turn gives way to an earlier request.
        Break::new("changes_its_mind").force_if::<RoundRobin>("first.d", "0", "!advance"),
        // The last request isn't seen.
        Break::new("last_not_seen").force_if::<RoundRobin>("valid", "false", "chosen == last"),
    ]
}

/// Of the multiplexer of three streams.
pub fn stream_mux() -> Vec<Break> {
    vec![
        // A source that offers loses its turn although its word wasn't taken.
        Break::new("turns_without_transfer").force::<StreamMux<Word>>("turn.advance", "true"),
        // Every source that offers sees its word taken.
        Break::new("all_taken")
            .force::<StreamMux<Word>>("input[0].ready", "output.ready & input[0].valid")
            .force::<StreamMux<Word>>("input[1].ready", "output.ready & input[1].valid")
            .force::<StreamMux<Word>>("input[2].ready", "output.ready & input[2].valid"),
        // The word is another source's.
        Break::new("wrong_word").force::<StreamMux<Word>>("output.data", "input[0].data"),
    ]
}

/// Of the stream from one clock to another.
pub fn crossing() -> Vec<Break> {
    vec![
        // A full crossing takes a word.
        Break::new("overflows").force::<CrossingEntry<Word>>("full", "false"),
        // A word is offered before it was written.
        Break::new("offers_too_soon").force::<CrossingExit<Word>>("waits", "true"),
        // Several bits of the count of written words change at a time.
        Break::new("many_bits_cross").force::<CrossingEntry<Word>>("next_gray", "next_count"),
        // Several bits of the count of taken words change at a time.
        Break::new("many_bits_cross_back").force::<CrossingExit<Word>>("next_gray", "next_count"),
        // A word of eight stays at the head after it was taken, if no other has come since.
        Break::new("repeats_words").force_if::<CrossingExit<Word>>(
            "next_count",
            "count.q",
            "(count.q == 3) & (settled.q == unsettled.q)",
        ),
        // A crossing with a word in it is empty.
        Break::new("empty_too_soon").force::<CrossingEntry<Word>>("empty", "true"),
    ]
}

/// Of the level from one clock to another.
pub fn level() -> Vec<Break> {
    vec![
        // The level is seen by one register of the other clock.
        Break::new("not_settled").force::<Level>("seen", "unsettled.q"),
        // What leaves is no register.
        Break::new("sent_too_soon").force::<Level>("unsettled.d", "level"),
        // A low level doesn't cross.
        Break::new("stays_high").force_if::<Level>("settled.d", "true", "settled.q"),
    ]
}

/// Of the memory that clears itself.
pub fn table() -> Vec<Break> {
    vec![
        // What was written before a reset stays.
        Break::new("stays_dirty").force_if::<Table<Word>>(
            "memory.write_enable",
            "false",
            "!cleared.q",
        ),
        // The last word isn't cleared.
        Break::new("leaves_the_last").force_if::<Table<Word>>(
            "cleared.d",
            "(clearing.q + 1) == last",
            "!cleared.q",
        ),
        // It says that it is cleared while it isn't.
        Break::new("ready_too_soon").force::<Table<Word>>("initialized", "true"),
        // A number beyond the table is that of a word in it.
        Break::new("numbers_aliased").force::<Table<Word>>("in_table", "true"),
    ]
}

/// Of the counter.
pub fn counter() -> Vec<Break> {
    vec![
        // It stays at its last value in place of wrapping.
        Break::new("saturates").force_if::<Counter<5>>("value.d", "value.q", "value.q.all()"),
        // A cycle is counted in itself.
        Break::new("counts_ahead").force_if::<Counter<5>>("count", "value.q + 1", "increment"),
    ]
}

/// Of the card's reset.
pub fn power_on_reset() -> Vec<Break> {
    vec![
        // The card is released an edge early.
        Break::new("releases_early").force_if::<PowerOnReset>("held.d", "false", "elapsed.q == 13"),
        // The card is never released.
        Break::new("never_releases").force::<PowerOnReset>("held.d", "true"),
        // The card is reset an edge late.
        Break::new("resets_late").force::<PowerOnReset>("card_reset", "held.q"),
    ]
}
