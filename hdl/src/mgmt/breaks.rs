//! Contracts of the management's blocks that a test breaks, to show that it notices.

use super::event_queue::EventQueue;
use super::fanout::Fanout;
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
