//! Contracts of the blocks around envelopes that a test breaks, to show that it notices.

use super::copies::Copies;
use super::ledger::Ledger;
use super::resolve::Resolve;
use crate::verilog::Break;

/// Of what reads slots ahead.
pub fn copies() -> Vec<Break> {
    vec![
        // A read is asked for whether or not there is room for its words.
        Break::new("reads_without_room").force::<Copies>("fits", "true"),
        // A copy of nothing reads.
        Break::new("reads_nothing").force::<Copies>("reads", "job.data.way == Way::Copy"),
        // A read takes the place of one that the engine hasn't taken yet.
        Break::new("loses_a_read").force::<Copies>("may_ask", "true"),
        // A copy goes on without its read.
        Break::new("goes_on_without_reading")
            .force::<Copies>("passes", "job.valid & jobs.input.ready"),
        // Its end is told with its first word.
        Break::new("ends_with_the_first_word")
            .force::<Copies>("ended.input.valid", "word_comes & (words_come.q == 0)"),
        // A read that failed counts as one that didn't.
        Break::new("forgets_read_errors").force::<Copies>("ended.input.data", "false"),
    ]
}

/// Of what sends payloads where they go.
pub fn resolve() -> Vec<Break> {
    vec![
        // The Gate isn't asked.
        Break::new("asks_nobody").force::<Resolve>("needs_query", "false"),
        // What it refuses is written.
        Break::new("writes_what_is_refused").force::<Resolve>("may_write", "true"),
        // A refusal isn't counted.
        Break::new("refusals_not_counted")
            .force::<Resolve>("counts.write_enable", "forget.valid")
            .force::<Resolve>("shown.write_enable", "forget.valid"),
        // A refusal isn't counted if another pair is forgotten in that cycle.
        Break::new("refusals_forgotten").force::<Resolve>("counts_now", "counting.q"),
        // The count of a pair outlives it.
        Break::new("remembers_refusals").force::<Resolve>("forget.valid", "false"),
        // What the buffer doesn't hold stays on the wire, in front of the next payload.
        Break::new("leaves_the_rest").force::<Resolve>("new_rest", "new_words"),
        // What couldn't be read is written.
        Break::new("writes_what_was_not_read").force::<Resolve>("unreadable", "false"),
        // A job that failed here ends as if it hadn't.
        Break::new("hides_failures").force::<Resolve>("ending", "current.q.ending"),
        // An entry doesn't wait for its write.
        Break::new("entries_without_writes").force::<Resolve>("writes.q", "false"),
        // An entry is there before the last of its words is gone.
        Break::new("entry_before_the_rest_is_gone").force_if::<Resolve>(
            "state.d",
            "State::Entry",
            "state.q == State::Drop",
        ),
    ]
}

/// Of what holds endings until their payload is in memory.
pub fn ledger() -> Vec<Break> {
    vec![
        // A completion doesn't wait for the write.
        Break::new("completes_early").force::<Ledger>("answered", "true"),
        // An error of the write isn't told.
        Break::new("forgets_write_errors").force::<Ledger>("write_failed", "false"),
        // A receive that stays is said to have ended.
        Break::new("ends_what_stays").force::<Ledger>("stays.q", "false"),
        // A receive that may stay isn't settled.
        Break::new("settles_nothing").force_if::<Ledger>(
            "following",
            "after_settle",
            "state.q == State::Wait",
        ),
        // A slot isn't given back.
        Break::new("keeps_slots").force::<Ledger>("after_insert", "after_vacate"),
        // The place of a message is given up when it goes to the unexpected ones.
        Break::new("insert_ends").force::<Ledger>("ended", "ends"),
        // It is empty while an entry is at its head.
        Break::new("empty_too_soon").force::<Ledger>("empty", "entries.level <= 1"),
    ]
}
