//! Contracts of the blocks towards the host that a test breaks, to show that it notices.

use super::events::Events;
use super::queue::Queue;
use crate::verilog::Break;

/// Of the event queues.
pub fn events() -> Vec<Break> {
    vec![
        // An event needs no room.
        Break::new("overfills").force_if::<Events>("room", "true", "exists"),
        // What finds no room isn't counted.
        Break::new("loss_not_counted").force::<Events>("loses", "false"),
        // A control request is done before its event is taken.
        Break::new("done_before_taken").force::<Events>(
            "control_done",
            "control.valid & (!clear_endpoint | !under_way)",
        ),
        // An event of the firmware's waits for the host.
        Break::new("firmware_waits").force_if::<Events>(
            "settles",
            "false",
            "by_firmware.q & !room",
        ),
        // The firmware is told of its own events.
        Break::new("firmware_hears_itself").force::<Events>("told.valid", "settles & to_firmware"),
        // The firmware is told of what a process causes as often as it likes.
        Break::new("everything_told").force::<Events>("to_firmware", "true"),
        // The firmware isn't told of what the host has no room for.
        Break::new("losses_not_told").force_if::<Events>("told.valid", "false", "!room"),
        // An event whose write has failed leaves a hole.
        Break::new("leaves_holes")
            .force::<Queue>("failed", "false")
            .force::<Queue>("written", "written | failed"),
    ]
}
