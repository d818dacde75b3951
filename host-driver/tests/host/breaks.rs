//! Tests of the tests: cards whose model is broken on purpose are noticed by this suite, and so is a library that breaks a promise.

use crate::common::passes_with;
#[cfg(target_os = "linux")]
use crate::event_fd;
use crate::{
    backlog, claims, completion_queues, connections, documented_statuses, drain, failure, gets,
    lists, messages, multi, optional, ownership, peers, protection, puts, queries, ready, reset,
    revoke, sends, shared, timeouts, user_memory, waiting, windows,
};
use host_driver::breaks::{self, Break as Promise};
use soft_card::{Attachment, Break, Flaw};
use std::panic::catch_unwind;

/// The test that is to notice a break.
fn noticed_by(broken: Break) -> fn() {
    match broken {
        Break::None => panic!("nothing is broken"),
        Break::TruncationUntold => {
            messages::a_message_longer_than_the_buffer_is_truncated_and_says_so
        }
        Break::LooksAgain => backlog::a_receive_never_overtakes_one_that_is_kept,
        Break::DiscardKeepsEnvelope | Break::SlotStaysTaken => {
            claims::a_claimed_message_keeps_its_credit_until_it_is_received_discarded_or_dropped
        }
        Break::ReadyWaits | Break::RefusalUnheard => {
            ready::a_ready_send_without_a_receive_fails_and_the_pair_goes_on
        }
        Break::MultiEndsByError => {
            multi::a_message_that_memory_refuses_fails_alone_and_the_next_ones_come_behind_its_part
        }
        Break::MultiStartsAgain | Break::MultiOffsetStays | Break::MultiCountShort => {
            multi::messages_fill_the_buffer_one_behind_the_other_until_too_little_is_left
        }
        Break::CompletesTwice => {
            backlog::receives_of_one_kind_are_matched_in_the_order_that_they_were_posted_in
        }
        Break::CancelTold => messages::a_cancelled_receive_completes_once_and_the_cancel_not_at_all,
        Break::FailureKeepsReceives | Break::EventUnwritten => {
            failure::a_wire_that_is_cut_fails_the_pair_on_both_sides_and_raises_events
        }
        Break::FailureKeepsSends => {
            failure::a_peer_that_falls_silent_fails_the_sends_in_bounded_time
        }
        Break::RepeatPassedOver => failure::a_lost_message_is_sent_again_and_nobody_is_told,
        Break::GapUntold => {
            failure::a_lost_message_is_sent_again_before_the_time_out_if_others_come_behind_it
        }
        Break::MemoryErrorUntold => {
            documented_statuses::a_receive_of_each_kind_completes_with_each_status_of_its_table
        }
        Break::CloseToldAsFailure => {
            peers::a_peer_that_closes_without_a_disconnect_has_failed_and_broken_no_rule
        }
        // These wires add nothing, and a peer that isn't told of a failure finds out by its time-out.
        Break::FailureUntold
        | Break::TagIgnored
        | Break::DuplicateTaken
        | Break::CrcIgnored
        // The firmware clears the rows before it asks.
        | Break::RevokesNobody
        // And it doesn't read what a card hasn't written.
        | Break::EntryWhole => panic!("the library has no such thing happen"),
        Break::SuccessTold => optional::unsignaled_sends_tell_nothing_and_free_their_buffers,
        Break::InlineReversed => optional::a_short_send_is_carried_by_its_request,
        Break::SegmentsSwapped => optional::a_gather_is_one_message_of_its_segments,
        Break::RuledMatches | Break::RuledKeepsCredit | Break::RuledPosts | Break::RuleNotCleared => {
            revoke::what_comes_is_dropped_with_its_credit_and_what_would_take_it_is_refused
        }
        Break::RuleMaskIgnored => revoke::only_the_bits_of_the_mask_have_to_agree,
        Break::RuleContextIgnored => {
            revoke::what_is_pending_ends_as_revoked_and_what_had_come_is_discarded
        }
        Break::RuleGroupIgnored => revoke::a_pair_outside_the_group_goes_on,
        Break::RuleEndpointIgnored => revoke::another_endpoint_of_the_card_goes_on,
        Break::RuleKeepsPair => revoke::a_pair_that_is_closed_leaves_the_group,
        Break::OwnerTold => {
            completion_queues::one_poll_serves_all_and_each_completion_names_its_endpoint
        }
        Break::RemoteTagIgnored
        | Break::HolderIgnored
        | Break::PartIgnored
        | Break::GrantKept => {
            windows::a_key_is_its_peers_for_what_is_granted_until_it_is_revoked
        }
        Break::MintedKept => {
            puts::a_key_for_one_access_ends_with_it_and_leaves_its_place_to_the_next
        }
        Break::GrantOutlivesTime => {
            windows::a_key_with_a_time_ends_by_itself_and_holds_its_place_until_it_is_revoked
        }
        Break::DomainIgnored | Break::AnyPeerIgnored => {
            protection::a_key_for_any_is_good_for_the_peers_of_its_domain_alone
        }
        Break::FailedWrites => windows::a_peer_that_has_failed_has_nothing,
        Break::PutRefusalUntold => {
            puts::a_put_that_may_not_be_ends_once_as_that_and_the_pair_goes_on
        }
        Break::PutWaitsForCredit => {
            puts::puts_need_no_credit_and_those_in_front_of_a_message_go
        }
        Break::PutOffsetIgnored => {
            puts::a_put_of_any_length_is_written_where_it_is_granted_and_nowhere_else
        }
        Break::GetEndsUnanswered => gets::what_is_posted_behind_a_get_goes_and_completes_behind_it,
        Break::GetRefusalUntold | Break::GetNeedsNoRight => {
            gets::a_get_that_may_not_be_ends_once_as_that_and_the_pair_goes_on
        }
        Break::GetOffsetIgnored => gets::a_get_of_any_length_reads_what_is_granted,
        Break::AnswersAskedTooSoon => gets::a_peer_that_answers_late_is_asked_for_nothing_again,
        Break::AnswersAskedForEver => gets::a_peer_that_has_a_get_and_never_answers_has_failed,
        Break::GetAnsweredOnce => gets::what_is_posted_behind_a_get_goes_and_completes_behind_it,
    }
}

#[test]
fn each_break_of_the_model_is_noticed() {
    let elsewhere = [
        Break::FailureUntold,
        Break::TagIgnored,
        Break::DuplicateTaken,
        Break::CrcIgnored,
        Break::RevokesNobody,
    ];
    let optional = Break::OPTIONAL.into_iter().map(|(broken, _)| broken);
    let all = Break::ALL.into_iter().chain(Break::CLOSING).chain(optional);
    let all = all.chain(Break::OF_GRANTS);
    for broken in all.filter(|broken| !elsewhere.contains(broken)) {
        let test = noticed_by(broken);
        assert!(passes_with(Flaw::None, test), "{broken:?}: fails anyway");
        let unnoticed = passes_with(Flaw::Gates(broken), test);
        assert!(!unnoticed, "{broken:?} goes unnoticed");
    }
}

/// The test that is to notice a broken promise; none if this system lacks what the promise is about.
fn noticed_by_name(promise: Promise) -> Option<fn()> {
    Some(match promise {
        Promise::PretendsSenders => protection::the_level_is_what_the_card_has_or_what_was_asked_for,
        Promise::MarksPerSender => {
            protection::a_window_of_keys_for_each_sender_is_never_unusable
        }
        Promise::TrustsEvents => protection::a_failure_whose_event_nobody_takes_marks_the_window,
        Promise::ForgetsAtClose => {
            protection::what_ends_what_could_tell_of_a_failure_looks_for_it_first
        }
        Promise::AcknowledgesUnrevoked => {
            protection::a_slow_message_lands_where_a_key_is_for_any_and_the_window_is_unusable
        }
        Promise::OpensTwice => ownership::a_second_open_is_refused_where_it_once_swallowed_the_answer_to_a_close,
        Promise::OpensUsed => ownership::a_card_that_a_crashed_owner_left_behind_is_quieted_at_open,
        Promise::FreesAtTimeout => ownership::a_close_that_timed_out_and_took_effect_gives_everything_back,
        Promise::RingsWhileClosing => ownership::a_close_that_timed_out_and_took_effect_gives_everything_back,
        Promise::ForgetsLateAnswer => ownership::what_is_opened_too_late_is_closed_again,
        Promise::FreesWhatIsLate => ownership::what_is_opened_too_late_is_closed_again,
        Promise::FreesBeforeClose => ownership::what_is_dropped_while_the_firmware_hangs_keeps_its_memory_until_the_card_is_done,
        Promise::ForgetsStrangers => ownership::what_a_thread_that_is_none_of_the_hosts_drops_is_released_by_the_next_call,
        Promise::FlushesUnreachable => ownership::a_card_that_cannot_be_reached_gives_nothing_back,
        Promise::KeepsOutstanding | Promise::ClosesByCardOnly => {
            ownership::a_card_that_is_gone_flushes_all_that_was_outstanding
        }
        Promise::EventOfPredecessor => {
            failure::an_event_about_a_closed_pair_is_not_told_of_the_next_in_its_place
        }
        Promise::StalePair => failure::a_pair_of_another_endpoint_is_refused,
        Promise::StaleRequest => ownership::a_cancel_of_an_old_request_cancels_no_stranger_after_65536_uses_of_its_slot,
        Promise::StarvesCard => waiting::a_queue_that_is_polled_rarely_and_posted_often_never_starves_the_card,
        Promise::ForgetsStart => ownership::a_firmware_that_starts_anew_while_no_command_is_given_is_noticed_by_the_next,
        Promise::TrustsAnswer => ownership::what_another_start_of_the_firmware_opens_is_refused,
        Promise::TrustsPlace => ownership::an_endpoint_in_the_place_of_another_is_refused,
        Promise::TrustsRestart => ownership::an_endpoint_in_the_place_of_another_is_refused,
        Promise::PendingAlways => peers::a_failure_is_pending_only_for_a_receive_from_any_source,
        Promise::AcknowledgedNever => {
            peers::a_process_that_only_receives_learns_that_its_peer_has_failed
        }
        Promise::PendingAgain => {
            peers::whoever_waits_for_anyone_is_told_once_of_a_failed_peer
        }
        Promise::HidesLostFailure => {
            peers::a_failure_whose_event_was_lost_is_told_to_whoever_waits_for_anyone
        }
        Promise::NeverExpires => timeouts::what_has_waited_for_its_time_out_completes_as_timed_out,
        Promise::RetiresTooMany => optional::an_unsignaled_send_has_not_ended_with_one_before_it,
        Promise::ClosesInSilence => waiting::a_wait_ends_when_another_thread_closes_the_endpoint,
        Promise::RingsForEach => lists::a_list_is_posted_in_order_by_one_doorbell,
        Promise::PollsPastLimit => lists::a_poll_takes_no_more_than_its_limit_and_nothing_when_there_is_nothing,
        Promise::UnsharesInFlight => shared::several_sends_read_one_buffer_at_once_and_the_last_gives_it_back,
        Promise::DropsOwnerUnreached => user_memory::the_owner_is_kept_from_a_card_out_of_reach_and_for_ever_if_it_stays_there,
        #[cfg(target_os = "linux")]
        Promise::KeepsEventFd => event_fd::an_old_queue_and_the_next_endpoint_in_its_place_have_events_of_their_own,
        #[cfg(target_os = "linux")]
        Promise::SignalsNoClose => event_fd::the_end_of_a_close_and_of_the_card_make_it_readable,
        Promise::HidesKept => queries::a_request_says_where_it_is,
        Promise::ReopensPair => connections::a_refused_disconnect_leaves_a_pair_that_is_being_closed_as_it_was,
        Promise::TakesStrangers => completion_queues::a_request_is_of_the_endpoint_that_it_was_posted_on,
        Promise::ClosesNeeded => {
            completion_queues::the_first_endpoint_is_closed_last_and_a_refusal_leaves_it_as_it_was
        }
        Promise::FlushesLast => {
            completion_queues::what_was_never_fetched_is_flushed_behind_what_the_queue_held_at_the_close
        }
        Promise::ContinuesQueue => {
            completion_queues::a_queue_whose_endpoints_are_closed_takes_others_once_it_is_polled
        }
        #[cfg(target_os = "linux")]
        Promise::ForgetsLine => {
            completion_queues::the_file_descriptor_tells_of_endpoints_that_were_opened_after_it_was_made
        }
        Promise::LooksAtIntervals => connections::a_disconnect_waits_for_its_event,
        Promise::LooksBeforeItsTurn => {
            ownership::one_of_two_threads_that_close_a_pair_closes_it_and_the_other_finds_nothing
        }
        Promise::ResetsInName => {
            reset::a_reset_gives_everything_back_though_the_firmware_hangs_and_ends_all_endpoints
        }
        // At the end of a cable the mailbox is another thread's.
        Promise::PollsMailbox if crate::ATTACHMENT != Attachment::Shared => return None,
        Promise::PollsMailbox => waiting::a_command_is_waited_for_by_interrupt,
        Promise::WaitsForDoorbell => waiting::a_post_takes_no_time,
        Promise::WaitsForGates => connections::a_disconnect_does_not_wait_for_gates_that_hang,
        Promise::LosesEvent => {
            failure::events_are_taken_though_the_card_is_out_of_reach_and_it_hears_of_them_later
        }
        Promise::AsksCompletionForLength => {
            messages::a_send_says_its_own_length_though_a_receive_had_its_entry_before
        }
        Promise::EndsInSilence => {
            reset::a_reset_or_a_restart_that_another_thread_notices_ends_a_wait
        }
        Promise::RefusesNinth | Promise::OverfillsPair => {
            sends::a_ninth_send_of_a_pair_is_kept_where_it_once_was_refused
        }
        Promise::WindowBeyondCard => {
            sends::a_card_gets_as_many_sends_of_a_pair_as_it_has_descriptors_for
        }
        Promise::OvertakesKept => sends::a_send_never_overtakes_one_that_is_kept,
        Promise::SeesOnlyWhatIsTaken => {
            sends::kept_sends_go_when_earlier_ones_complete_though_nobody_polls
        }
        Promise::FillsWindowQuietly => sends::a_window_holds_for_unsignaled_sends_too,
        Promise::SplitsGather => sends::kept_sends_of_every_kind_arrive_whole_and_in_order,
        Promise::PostsCancelled => sends::a_kept_send_that_is_cancelled_is_never_sent,
        Promise::ForgetsKept => sends::what_is_kept_of_a_pair_that_is_closed_is_flushed_in_order,
        Promise::SendsToSuccessor => {
            sends::what_is_kept_of_a_closed_pair_is_not_sent_on_the_next_in_its_place
        }
        Promise::FlushesBackwards => {
            sends::what_is_kept_of_an_endpoint_that_is_closed_is_flushed_in_order
        }
        Promise::IgnoresSendLimit => {
            sends::a_limit_on_the_sends_of_a_pair_refuses_what_is_beyond_and_gives_it_back
        }
        Promise::SendsRevoked => {
            revoke::what_comes_is_dropped_with_its_credit_and_what_would_take_it_is_refused
        }
        Promise::TellsCancelled | Promise::LeavesMessages => {
            revoke::what_is_pending_ends_as_revoked_and_what_had_come_is_discarded
        }
        Promise::PostsWhileDraining => drain::posts_are_refused_until_the_drain_has_ended,
        Promise::DrainsUnflushed | Promise::DrainsUnswept => {
            drain::continued_traffic_meets_and_the_rest_is_cancelled_or_discarded
        }
        Promise::SweepsStrangers => revoke::a_pair_outside_the_group_goes_on,
        Promise::ForgetsAside => {
            revoke::completions_that_the_program_had_not_polled_are_there_in_their_order
        }
        Promise::SetsAnotherRule => {
            revoke::a_revocation_of_what_is_revoked_sets_no_other_rule
        }
        Promise::DisconnectsKept => {
            sends::a_disconnect_that_does_not_wait_is_refused_while_sends_are_kept
        }
        Promise::LetsOvertake => puts::a_message_behind_a_long_put_finds_it_written,
        Promise::PartsWaitTogether | Promise::CancelsWholeOnly | Promise::KeepsPartSlots => {
            puts::a_put_waits_behind_a_message_and_is_cancelled_or_times_out_while_that_waits_on
        }
        Promise::EndsUnderWay => {
            puts::a_put_that_is_cancelled_half_way_gives_its_buffer_back_when_nothing_is_under_way
        }
        Promise::GoesOnAfterError => {
            puts::a_put_that_may_not_be_ends_once_as_that_and_the_pair_goes_on
        }
        Promise::ForgetsError => puts::a_put_of_which_one_part_may_not_be_ends_as_that_part,
        Promise::PartsInOnePlace => {
            puts::a_put_of_any_length_is_written_where_it_is_granted_and_nowhere_else
        }
        Promise::InterruptsUnasked => waiting::a_wait_is_interrupted_by_the_causes_that_were_chosen,
        Promise::SleepsThroughFailure => {
            waiting::whoever_waits_for_anyone_hears_of_a_failure_that_was_not_chosen
        }
        Promise::CountsNoLoss => peers::a_failure_says_who_failed_how_and_what_was_lost,
        Promise::OffsetWraps => puts::an_offset_never_wraps,
        Promise::DropsWhatWasRead | Promise::PretendsGets => {
            gets::a_get_that_can_not_be_posted_is_refused_with_its_buffer
        }
        Promise::SweepsPuts | Promise::RevokesPuts => {
            puts::what_revokes_or_drains_messages_does_not_concern_puts
        }
        #[cfg(not(target_os = "linux"))]
        Promise::KeepsEventFd | Promise::SignalsNoClose | Promise::ForgetsLine => return None,
    })
}

/// Not under Miri, which sees what a broken library does before the tests do.
#[test]
#[cfg_attr(miri, ignore)]
fn each_promise_that_is_broken_is_noticed_by_the_test_that_names_it() {
    for &promise in Promise::ALL {
        let Some(test) = noticed_by_name(promise) else {
            continue;
        };
        assert!(catch_unwind(test).is_ok(), "{promise:?}: fails anyway");
        let broken = catch_unwind(|| breaks::with(promise, test));
        assert!(broken.is_err(), "{promise:?} is not noticed");
    }
}
