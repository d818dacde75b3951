//! Contracts of the send queues that a test breaks, to show that it notices.

use super::SendQueues;
use super::credit::Credit;
use super::remove::Remove;
use super::walk::Walker;
use crate::verilog::Break;
use abi::status::Status;

/// Of the queues and all in them.
pub fn send_queues() -> Vec<Break> {
    let progress = "deciding.q == Step::Progress";
    let fault = "deciding.q == Step::Fault";
    let control = "deciding.q == Step::Control";
    vec![
        // A pair takes its turn without a credit.
        Break::new("credit_not_needed").force::<SendQueues>("has_credit", "true"),
        // A put waits for a credit.
        Break::new("put_needs_credit").force::<SendQueues>("may_give", "has_credit"),
        // A put goes beyond what a frame tells outcomes of.
        Break::new("put_needs_no_room")
            .force::<Credit>("room_one", "true")
            .force::<Credit>("room_two", "true"),
        // A message goes without a credit as a put does.
        Break::new("message_goes_as_put").force::<SendQueues>("is_put_turn", "true"),
        // A put goes out as a message.
        Break::new("put_forgotten").force::<SendQueues>("job_put", "false"),
        // A put behind a message that is cancelled stays where it is.
        Break::new("put_left_by_cancel").force_if::<SendQueues>("push", "false", "counts_down"),
        // A put behind others isn't given a turn when the peer acknowledges them.
        Break::new("put_left_by_progress").force_if::<SendQueues>(
            "push",
            "weighed.q.gets_credit & source.q.count.any() & !source.q.queued",
            progress,
        ),
        // A peer may keep more envelopes than it has granted.
        Break::new("peer_keeps_puts").force::<Credit>("holds_more", "false"),
        // A put that is refused is called a ready message that was too early.
        Break::new("put_refused_as_message").force_if::<Walker>(
            "ending.status",
            &Status::NotReady.code().to_string(),
            "was_refused",
        ),
        // A returned credit counts twice.
        Break::new("credit_returned_twice").force_if::<Credit>(
            "returned",
            "progress.credit + 1",
            "gets_credit",
        ),
        // A job that was refused keeps its credit.
        Break::new("refused_keeps_credit").force::<SendQueues>("taken_back", "source.q.taken"),
        // Numbers that run ahead are believed.
        Break::new("numbers_not_checked")
            .force::<Credit>("lies", "false")
            .force::<Credit>("moves_on", "true"),
        // A pair that gets a credit isn't given a turn.
        Break::new("turn_forgotten").force_if::<SendQueues>("push", "false", progress),
        // A fault leaves the waiting sends.
        Break::new("waiting_not_flushed").force_if::<SendQueues>("walk_waiting", "0", fault),
        // A fault completes jobs that are given, which are answered once more.
        Break::new("job_flushed_early").force_if::<SendQueues>("walk_given", "0", fault),
        // Acknowledged sends complete from the next one on.
        Break::new("completes_from_next").force_if::<SendQueues>(
            "walk_from",
            "source.q.acknowledged.get_bits::<8>(0) + 1",
            progress,
        ),
        // Silence of the peer is not noticed.
        Break::new("never_times_out").force::<SendQueues>("silent", "false"),
        // Pairs whose wire takes nothing wait for ever.
        Break::new("wire_never_times_out")
            .force::<SendQueues>("silent", "credit.unacknowledged.any()"),
        // A cancelled send goes out nevertheless.
        Break::new("cancelled_send_stays").force::<SendQueues>("counts_down", "false"),
        // The sends behind a cancelled one are not moved up.
        Break::new("gap_left_by_cancel").force_if::<SendQueues>(
            "moves_up",
            "false",
            "!remove.took_first",
        ),
        // Nor those behind a refused one.
        Break::new("gap_left_by_refusal").force_if::<SendQueues>(
            "moves_up",
            "false",
            "remove.took_first",
        ),
        // A send that Gather refuses stays, and the one behind it is lost.
        Break::new("refused_send_stays").force::<Remove>("hits", "false"),
        // A pair holds one send more than its run is long.
        Break::new("run_overfilled").force::<SendQueues>("full", "held > 8"),
        // All pairs have the same run.
        Break::new("runs_overlap").force::<SendQueues>("run_first", "0"),
        // The walk takes what a turn has read.
        Break::new("walk_takes_anothers").force::<SendQueues>("walk_reads", "true"),
        // A cancel that was in time says that it was too late as well.
        Break::new("cancel_says_too_late").force::<SendQueues>("too_late", "cancelled"),
        // An endpoint may cancel another's send.
        Break::new("anyone_cancels").force_if::<SendQueues>(
            "is_own_pair",
            "in_range",
            "weighing.q == Step::Cancel",
        ),
        // A gather goes out as its first segment alone.
        Break::new("segments_lost").force::<SendQueues>("accepted.segments.second.length", "0"),
        // Refusals are not counted.
        Break::new("refusals_not_counted").force::<SendQueues>("count_invalid_requests", "false"),
        // A pair whose sends wait for a credit that was lost on its way never asks for it.
        Break::new("never_asks").force::<SendQueues>("asks", "false"),
        // A peer that asks isn't answered.
        Break::new("never_answers").force::<SendQueues>("answers", "false"),
        // A send that the peer refused completes as if it had been delivered.
        Break::new("refusal_unheard").force::<Walker>("was_refused", "false"),
        // A send that completes only on error completes when it is safe at the peer.
        Break::new("completes_although_unsignaled").force::<Walker>("silent", "false"),
        // A send that completes only on error doesn't complete when the peer refuses it or its pair fails either.
        Break::new("forgets_an_error").force::<Walker>("silent", "held.q.errors_only"),
        // The reservation of a completion that isn't made is kept.
        Break::new("unsignaled_keeps_reservation").force::<Walker>("released.valid", "false"),
        // A ready send goes out as any other.
        Break::new("ready_forgotten").force::<SendQueues>("job_ready", "false"),
        // An inline send's payload is read from host memory.
        Break::new("inline_is_read").force::<SendQueues>("job_inline", "false"),
        // The payload of an inline send is lost while it waits.
        Break::new("inline_lost").force::<SendQueues>("at", "request.address"),
        // A turn that comes while progress waits is lost.
        Break::new("turn_lost_to_progress").force::<SendQueues>("turn_stopped.d", "false"),
        // A pair's gets end while their answers may be on their way to their buffers.
        Break::new("ends_before_delivery").force::<SendQueues>("delivery_done", "true"),
        // A job is given whether or not there is room for it.
        Break::new("gives_without_room").force::<SendQueues>("job_room", "true"),
        // A pair is cleared while jobs of it are given.
        Break::new("given_not_awaited").force_if::<SendQueues>("has_given", "false", control),
        // What has been given of a pair that ends goes out.
        Break::new("drop_forgotten").force::<SendQueues>("dropped.valid", "false"),
        // A fault is taken before the completions that it makes.
        Break::new("fault_taken_early").force::<SendQueues>("drained", "draining.q"),
        // A pair whose peer misses a request goes on.
        Break::new("gap_unheard").force::<SendQueues>("hears_gap", "false"),
        // A peer isn't told that a request of it is missing.
        Break::new("gap_untold").force::<SendQueues>("tells_gap", "false"),
        // A pair goes back to the second of those that the peer misses.
        Break::new("first_passed_over").force::<SendQueues>("back_to", "weighed.q.safe + 1"),
        // What Gather holds of a pair that goes back isn't dropped: it would come before the sends that are given again.
        Break::new("goes_back_without_dropping").force_if::<SendQueues>(
            "dropped.valid",
            "false",
            "goes_back",
        ),
        // New sends overtake those that are given again.
        Break::new("new_sends_overtake").force::<SendQueues>("is_first", "true"),
        // A send completes while its payload is being read again.
        Break::new("completes_while_read").force_if::<SendQueues>("is_repeated", "false", progress),
        // A pair fails while a payload of it is being read again.
        Break::new("fails_while_read").force_if::<SendQueues>("is_repeated", "false", fault),
        // A send that is given again has another's number.
        Break::new("repeated_under_another_number")
            .force::<SendQueues>("job_number.d", "source.q.turn + 1"),
        // What is sent again is what waits.
        Break::new("repeats_what_waits").force::<SendQueues>("turn_number", "source.q.taken"),
        // A pair goes back for ever.
        Break::new("never_gives_up").force::<SendQueues>("gives_up", "false"),
        // It waits as long each time.
        Break::new("never_waits_longer").force::<SendQueues>("patience", "timeouts_over"),
        // At a time-out all is given again that has left: a peer that is slow gets it all once more.
        Break::new("silence_is_a_gap").force::<SendQueues>("probes", "false"),
        // A pair whose peer is slow goes back as early the next time,
        Break::new("never_learns").force::<SendQueues>("learns", "false"),
        // waits for longer ever after,
        Break::new("never_forgets").force::<SendQueues>("forgets", "false"),
        // even if its peer misses something,
        Break::new("gap_teaches_nothing").force_if::<SendQueues>(
            "source_next.learned",
            "source.q.learned",
            "hears_gap",
        ),
        // or it is given other times.
        Break::new("times_teach_nothing").force_if::<SendQueues>(
            "source_next.learned",
            "source.q.learned",
            "is_times & (deciding.q == Step::Control)",
        ),
        // What a peer misses that has answered the last try fails its pair.
        Break::new("answer_fails_the_pair").force_if::<SendQueues>(
            "gives_up",
            "weighed.q.last_try",
            "hears_gap & source.q.probed",
        ),
        // A report of a gap means nothing while the last that has left is given again.
        Break::new("gap_unheard_in_silence").force_if::<SendQueues>(
            "hears_gap",
            "false",
            "weighed.q.goes_back",
        ),
        // A wait begins when the scan has looked, and is over when it has passed again.
        Break::new("waits_a_scan_more").force::<SendQueues>("last_tick", "now.q"),
        // Whatever time-out a pair has, it has that of another.
        Break::new("one_timeout_for_all").force::<SendQueues>("timeouts_over", "quiet_for >> 11"),
        // The times of a pair don't change.
        Break::new("timeout_kept").force_if::<SendQueues>(
            "setup_timeout",
            "source.q.timeout_log2",
            "is_times",
        ),
        Break::new("retry_limit_kept").force_if::<SendQueues>(
            "setup_retries",
            "source.q.retry_limit",
            "is_times",
        ),
        // A pair whose times change is another.
        Break::new("times_end_the_pair").force::<SendQueues>("is_times", "false"),
        // A send that can't be read again is passed over.
        Break::new("unreadable_passed_over").force_if::<SendQueues>(
            "refused_by_gather",
            "false",
            "given.output.data.again",
        ),
        // A peer that is silent is called a liar.
        Break::new("silence_is_a_lie")
            .force::<SendQueues>("fault_status.q", &Status::LinkError.code().to_string()),
        // A get ends when it is safe at the peer.
        Break::new("get_ends_unanswered").force::<Credit>("first_open", "16"),
        // The answer of a get goes to its buffer although one is on its way there.
        Break::new("answer_claimed_twice")
            .force::<SendQueues>("is_awaited", "is_live & (source.q.open & claim_bit).any()"),
        // An answer is taken that isn't as long as its get.
        Break::new("answer_of_any_length").force::<SendQueues>("fits", "true"),
        // An answer is taken for another get, of a number that ends alike.
        Break::new("answer_of_another_number").force::<SendQueues>("claim_ahead", "0"),
        // A get that is refused ends as if it had its bytes.
        Break::new("outcome_forgotten").force::<SendQueues>("outcome", "0"),
        // The sends behind a get stay when it is answered.
        Break::new("answer_ends_nothing").force_if::<SendQueues>(
            "ends_safe",
            "false",
            "deciding.q == Step::Answered",
        ),
        // Sends that wait for a place aren't given a turn when a get is answered.
        Break::new("turn_forgotten_by_answer").force_if::<SendQueues>(
            "push",
            "false",
            "deciding.q == Step::Answered",
        ),
        // A send completes while its payload is being read again, since the get in front of it is answered.
        Break::new("answer_ends_what_is_read").force_if::<SendQueues>(
            "is_repeated",
            "false",
            "deciding.q == Step::Answered",
        ),
        // Which sends were refused is forgotten while they stand behind a get.
        Break::new("window_not_kept").force::<Walker>("later", "walking.q.sent - 1"),
        // A get goes out as a put.
        Break::new("get_goes_as_put")
            .force::<SendQueues>("job_get", "false")
            .force::<SendQueues>("job_put", "job_send.q.put"),
        // A message behind a get goes beyond what a frame tells outcomes of.
        Break::new("message_needs_no_place")
            .force::<Credit>("has_one", "in_use < bit_cast::<8, 7>(source.granted)")
            .force::<Credit>("has_two", "in_use + 1 < bit_cast::<8, 7>(source.granted)"),
        // What the peer has is asked for again at the first time-out.
        Break::new("answers_asked_too_soon").force::<SendQueues>("asks_again", "owes_answers"),
        // An answer that is lost isn't asked for again.
        Break::new("answers_never_asked").force::<SendQueues>("asks_again", "false"),
        // That an answer was overtaken means nothing.
        Break::new("overtaken_means_nothing")
            .force::<SendQueues>("asks_again", "owes_answers & (source.q.quiet == 7)"),
        // A peer that says that it is there may owe an answer for ever.
        Break::new("answers_asked_for_ever")
            .force::<SendQueues>("last_try", "source.q.tries >= source.q.retry_limit"),
        // A peer that owes answers and says that it is there isn't heard.
        Break::new("life_unheard").force_if::<SendQueues>(
            "asks",
            "is_dry",
            "weighing.q == Step::Progress",
        ),
        // An answer isn't taken for a sign of life if it ends nothing.
        Break::new("answer_is_no_life").force::<SendQueues>("hears_answer", "false"),
        // With the gets that wait for answers all is given again that stands between them.
        Break::new("nothing_passed_over").force::<SendQueues>("passed_over", "false"),
        // The gets that wait are passed over, too.
        Break::new("all_passed_over").force::<SendQueues>("passed_over", "behind_turn.get_bit(7)"),
        // What the peer has acknowledged is given again.
        Break::new("acknowledged_repeated").force::<SendQueues>("passes_turn", "false"),
        // Each put behind a message without credit puts off the question for it.
        Break::new("puts_put_off_the_question").force_if::<SendQueues>(
            "source_next.since",
            "now.q",
            "push & all_safe",
        ),
        // Nobody hears that a turn is to come,
        Break::new("schedules_in_silence").force::<SendQueues>("scheduled", "false"),
        // or that it came.
        Break::new("scheduled_for_ever").force::<SendQueues>("scheduled_pairs.write_data", "true"),
    ]
}

/// What the rules of the whole link notice.
pub fn link_bench() -> Vec<Break> {
    Break::named(
        &send_queues(),
        &[
            "refusal_unheard",
            "ready_forgotten",
            "credit_not_needed",
            "credit_returned_twice",
            "refused_keeps_credit",
            "completes_from_next",
            "waiting_not_flushed",
            "never_times_out",
            "first_passed_over",
            "repeated_under_another_number",
        ],
    )
}

/// What they notice where credits are few and are lost.
pub fn thirsty_link_bench() -> Vec<Break> {
    Break::named(&send_queues(), &["never_asks", "never_answers"])
}
