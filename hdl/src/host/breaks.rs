//! Contracts of the blocks towards the host that a test breaks, to show that it notices.

use super::bursts::Bursts;
use super::completions::{Completions, LONG_BITS};
use super::dma_read::DmaRead;
use super::dma_write::DmaWrite;
use super::entry_queue::EntryQueue;
use super::entry_writer::EntryWriter;
use super::events::Events;
use super::fetch::Fetch;
use super::gate_reset::GateReset;
use super::places::Places;
use super::queue::Queue;
use super::registers::Registers;
use super::reservations::Reservations;
use super::ring::Ring;
use crate::verilog::Break;

/// Of what fetches work requests.
pub fn fetch() -> Vec<Break> {
    vec![
        // A completion is reserved whether or not one is free.
        Break::new("reserves_what_is_not_free")
            .force::<Fetch>("may_reserve", "completion_free | 65535"),
        // Reserved bits of a send may be set.
        Break::new("reserved_bits_ignored").force::<Fetch>("send_reserved", "false"),
        // An entry that can't be read keeps its reservation.
        Break::new("reservation_kept").force::<Fetch>("given_up.valid", "false"),
        // A request is read without a place for it.
        Break::new("reads_without_a_place").force::<Places>("some", "true"),
        // What was read behind an entry that can't be read is handed over.
        Break::new("goes_on_behind_an_error").force::<Fetch>("from_stopped", "false"),
        // A tail may move back past what is being read.
        Break::new("takes_back_what_is_read").force::<Ring>("takes_back", "false"),
        // A word is read that hasn't come.
        Break::new("reads_ahead_of_the_words").force::<EntryQueue>("in_memory", "true"),
        // The first word of the entry behind the oldest is taken whether or not it has come.
        Break::new("takes_the_next_too_early").force::<EntryQueue>("has_second", "true"),
        // Words of an entry that can't be read stay in front of the next one's.
        Break::new("keeps_words_of_nothing").force::<EntryQueue>("starts_again", "leaves"),
        // Nobody waits for what is inside.
        Break::new("stops_at_once").force::<Fetch>("busy", "false"),
        // A list ring whose entries are all being read counts as empty.
        Break::new("forgets_what_it_reads").force_if::<Ring>("empty", "true", "inside.q == 0"),
        // The second entry of a gather keeps its reservation.
        Break::new("second_keeps_its_reservation").force_if::<Fetch>(
            "given_up.valid",
            "false",
            "joins",
        ),
        // It gives one up that it hasn't.
        Break::new("gives_up_what_it_has_not").force::<Fetch>("has_no_reservation", "false"),
        // It waits for a reservation, which its first may have taken.
        Break::new("second_needs_a_reservation").force::<Fetch>("wants_second", "0"),
        // A request that was read as a second counts as read.
        Break::new("keeps_another_request").force::<Fetch>("put_back", "false"),
        // A place that was taken for it stays taken.
        Break::new("place_of_a_second_lost").force_if::<Fetch>(
            "send_places.left",
            "false",
            "put_back",
        ),
        // A gather waits for a second that won't come.
        Break::new("orphan_forgotten").force::<Fetch>("orphaned", "false"),
        // A gather whose second can't be read is malformed.
        Break::new("unread_is_malformed").force::<Fetch>("orphan_unread", "false"),
        // A second entry is any send's.
        Break::new("second_of_anybody").force::<Fetch>("as_second.request", "first.request"),
        // Its reserved bits may be set.
        Break::new("reserved_bits_of_second_ignored").force::<Fetch>("reserved_of_second", "false"),
        // A first that is malformed itself is handed over.
        Break::new("malformed_first_passes").force::<Fetch>("first.malformed", "false"),
        // The length is the first segment's.
        Break::new("length_of_the_first")
            .force::<Fetch>("gather_length.d", "bit_cast::<13, 11>(first.length)"),
        // A segment of more than 2^11 bytes is as long as its lowest bits say.
        Break::new("long_segment_wraps")
            .force::<Fetch>("cut_third.length", "bit_cast::<11, 32>(as_second.length2)"),
    ]
}

/// A burst that runs across 4 KiB: the boundary is always far away.
fn ignores_boundary() -> Break {
    Break::new("ignores_boundary")
        .force::<Bursts>("room.d", "8192")
        .force::<Bursts>("start.data.in_page", "true")
}

/// Of the engine that reads.
pub fn dma_read() -> Vec<Break> {
    vec![
        ignores_boundary(),
        // An error response is lost unless it is the last.
        Break::new("forgets_errors").force::<DmaRead>("failed.q", "false"),
        // The last word isn't cleared beyond the length.
        Break::new("leaves_tail").force::<DmaRead>("mask", "18446744073709551615"),
        // While quiet, an access still waits for its client.
        Break::new("awaits_clients").force_if::<DmaRead>("taken", "false", "quiet"),
        // Idle is said while answers are owed.
        Break::new("idle_early").force::<DmaRead>("idle", "!accesses.burst.valid"),
    ]
}

/// Of the engine that writes.
pub fn dma_write() -> Vec<Break> {
    vec![
        ignores_boundary(),
        // An error response is lost unless it is the last.
        Break::new("forgets_errors").force::<DmaWrite>("failed.q", "false"),
        // A write is done with its first response.
        Break::new("done_early")
            .force::<DmaWrite>("done_valid.d", "owed.output.valid & m_axi.bvalid"),
        // Bytes behind a write are written too.
        Break::new("writes_tail").force::<DmaWrite>("access.end", "0"),
        // `WLAST` is set at the end of the access only.
        Break::new("last_only_at_end").force::<DmaWrite>("last_of_burst", "last"),
        // While quiet, an access still waits for its client.
        Break::new("awaits_clients").force_if::<DmaWrite>("offered", "false", "quiet"),
        // Idle is said while answers are owed.
        Break::new("idle_early").force::<DmaWrite>("idle", "sent"),
        // What is written in a client's place while quiet changes memory.
        Break::new("invents_data").force::<DmaWrite>("strobe", "lanes"),
    ]
}

/// Of the registers.
pub fn registers() -> Vec<Break> {
    vec![
        // A write of less than a word is obeyed.
        Break::new("takes_parts").force::<Registers>("whole", "true"),
        // A write passes a loader word that waits for room.
        Break::new("passes_a_loader_word").force::<Registers>("load_waits", "false"),
    ]
}

/// Of the sequence of a reset of the gates.
pub fn gate_reset() -> Vec<Break> {
    vec![
        // Accesses of memory that are under way aren't waited for.
        Break::new("forgets_memory").force::<GateReset>("memory_idle", "true"),
    ]
}

/// Of the completion queues.
pub fn completions() -> Vec<Break> {
    vec![
        // A reservation needs no room.
        Break::new("reserves_without_room").force::<Reservations>("free", "true"),
        // Fetch doesn't see what delivery reserves in the same cycle.
        Break::new("reserves_what_delivery_takes")
            .force::<Completions>("completion_free", "free_bits"),
        // The phase never flips.
        Break::new("phase_stays").force::<Queue>("phase", "true"),
        // An entry has the phase of the queue when its words go, not when its place was taken.
        Break::new("phase_of_the_next").force::<EntryWriter<LONG_BITS>>("phase_now", "phase"),
        // The word that says that an entry is there is the first of its words, not the last.
        Break::new("valid_word_first").force::<EntryWriter<LONG_BITS>>(
            "image",
            "((entry | (highest_bit << 383)) << 64) | (entry >> 320)",
        ),
        // Of a completion that speaks of a message, the words that don't are written alone.
        Break::new("leaves_out_the_message").force::<Completions>("is_short", "true"),
        // Of one that doesn't, words are written that its kind doesn't have.
        Break::new("writes_more_than_its_words").force::<Completions>("is_short", "false"),
        // An entry is written from its beginning.
        Break::new("writes_from_the_beginning").force::<Completions>("writer.address", "address"),
        // The last word of a short entry is left out.
        Break::new("a_word_too_few").force_if::<EntryWriter<LONG_BITS>>(
            "words_left.d",
            "1",
            "takes & short",
        ),
        // An entry counts before its write has been answered.
        Break::new("counts_early")
            .force::<Completions>("finished", "issues")
            .force::<Completions>("finished_endpoint", "current.q.endpoint"),
        // Arming doesn't look at what is there already.
        Break::new("arms_for_the_next").force_if::<Queue>(
            "arm",
            "false",
            "finished.q != value.get_bits::<16>(0)",
        ),
        // A reservation is of the endpoint's own queue.
        Break::new("reserves_at_home")
            .force::<Completions>("reserve_queue", "bit_cast::<5, 8>(reserve.data)"),
        // It ends there, too.
        Break::new("releases_at_home").force::<Completions>(
            "sends_release_queue",
            "bit_cast::<5, 8>(sends_release.data)",
        ),
        // A completion goes to the endpoint's own queue.
        Break::new("completes_at_home")
            .force::<Completions>("incoming_queue", "bit_cast::<5, 8>(incoming)"),
        // A completion names the endpoint that owns the queue.
        Break::new("names_the_owner")
            .force::<Completions>("told", "bit_cast::<8, 5>(current_queue.q)"),
        // A cleared endpoint goes on completing on the other's queue.
        Break::new("keeps_the_owner").force::<Completions>("forgets", "false"),
        // An endpoint is cleared while entries of it are on their way.
        Break::new("clears_early").force::<Completions>("under_way", "false"),
        // What can't be written isn't told.
        Break::new("keeps_errors_quiet")
            .force::<EntryWriter<LONG_BITS>>("finished.data.failed", "false"),
        // The next entry waits for the answer to the one before.
        Break::new("one_at_a_time").force_if::<EntryWriter<LONG_BITS>>(
            "begins",
            "false",
            "endpoints.output.valid",
        ),
    ]
}

/// Of the event queues.
pub fn events() -> Vec<Break> {
    vec![
        // A pair is cleared while an event about it is offered, waits for its queue, or is on its way to memory.
        Break::new("cleared_before_taken").force::<Events>("faults.valid", "false"),
        Break::new("cleared_before_queued").force_if::<Events>(
            "about_pair",
            "false",
            "current_valid.q",
        ),
        Break::new("cleared_before_written").force_if::<Events>(
            "about_pair",
            "false",
            "!current_valid.q",
        ),
        // An event needs no room.
        Break::new("overfills").force_if::<Events>("room", "true", "exists"),
        // What finds no room isn't counted.
        Break::new("loss_not_counted").force::<Events>("loses", "false"),
        // A control request is done before its event is taken.
        Break::new("done_before_taken").force::<Events>(
            "control.ready",
            "control.valid & (!clear_endpoint | !under_way) & (!clear_pair | !about_pair)",
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
