//! Tests of the tests: each promise is broken on purpose, and the one test that is named for it notices.
//!
//! A test notices by an assertion about what was promised, [`promise!`] or [`promise_eq!`], of its own or of the gates that it runs on: a panic of
//! any other kind is no notice.

use crate::{agreement, commands, drains, grants, network, peers, revoked, rules, times};
use firmware_core::Break;
use std::cell::Cell;
use std::collections::HashSet;
use std::panic::catch_unwind;

/// How the message begins with which a promise is found broken.
pub const MARK: &str = "promise broken: ";

/// Asserts what is promised.
macro_rules! promise {
    ($kept:expr $(,)?) => { promise!($kept, "{}", stringify!($kept)) };
    ($kept:expr, $($words:tt)+) => {{
        let kept: bool = $kept;
        if !kept {
            panic!("{}{}", $crate::breaks::MARK, format_args!($($words)+));
        }
    }};
}

/// Asserts that something is as promised.
macro_rules! promise_eq {
    ($is:expr, $promised:expr $(,)?) => { promise_eq!($is, $promised, "{}", stringify!($is)) };
    ($is:expr, $promised:expr, $($words:tt)+) => {
        match (&$is, &$promised) {
            (is, promised) => promise!(
                *is == *promised,
                "{}: {is:?} instead of {promised:?}",
                format_args!($($words)+)
            ),
        }
    };
}

pub(crate) use {promise, promise_eq};

thread_local! {
    static BROKEN: Cell<Option<Break>> = const { Cell::new(None) };
}

/// Whether firmware that this thread runs breaks a promise.
pub fn is_broken(promise: Break) -> bool {
    BROKEN.get() == Some(promise)
}

/// The test that notices a break.
fn noticed_by(broken: Break) -> fn() {
    match broken {
        Break::AbiVersionUnnamed | Break::SizesAssumed => {
            commands::the_identity_tells_the_card_and_the_build
        }
        Break::RestartNotTold => {
            commands::a_command_that_was_given_before_the_start_is_not_carried_out
        }
        Break::GatesKept => {
            commands::the_gates_are_reset_before_anything_is_taken_for_granted
        }
        Break::LateStartBelieved => {
            commands::the_gates_are_told_their_address_until_they_answer_in_time
        }
        Break::StartNotCounted => {
            commands::each_start_has_the_number_after_that_of_the_start_before
        }
        Break::EpochsStartAgain | Break::GenerationsStartAgain | Break::TornCopyRead => {
            commands::epochs_and_generations_go_on_over_a_restart_at_any_moment_and_start_anew_without_memory
        }
        Break::GenerationIgnored => {
            commands::endpoints_run_out_and_a_reopened_one_has_a_new_epoch
        }
        Break::TagRepeats => {
            commands::the_keys_of_a_place_do_not_repeat
        }
        Break::TagForeseen => {
            commands::the_keys_of_a_place_tell_nothing_of_those_of_another_card_or_of_the_next
        }
        Break::Oversubscribed => {
            commands::envelopes_that_cannot_be_guaranteed_are_refused_with_how_many_can
        }
        Break::RunsOverlap => {
            commands::each_pair_has_descriptors_of_its_own
        }
        Break::RunsTakeReserved => {
            commands::a_pair_gets_as_many_descriptors_as_its_endpoint_asked_for_if_they_can_be_had
        }
        Break::ReservationLeaked => {
            network::a_reservation_is_there_again_when_its_pairs_are_closed
        }
        Break::FlushesFirst => {
            commands::closing_stops_fails_flushes_and_forgets_in_that_order
        }
        Break::GatesAwaited | Break::LateAnswerForgotten | Break::CloseNotRepeated => {
            commands::gates_that_fall_silent_in_a_close_are_reported_and_the_close_can_be_finished
        }
        Break::LateSetKept => {
            commands::an_endpoint_or_a_region_that_was_set_late_is_forgotten
        }
        Break::LateIfUnanswered => {
            commands::an_answer_that_came_late_is_late_though_nobody_looked_before
        }
        Break::LatePairBelieved => {
            commands::after_a_late_answer_the_pair_is_read_back
        }
        Break::LateEndpointBelieved => {
            commands::a_close_repeats_the_step_that_was_answered_late
        }
        Break::LateRegionBelieved => {
            commands::a_region_is_cleared_until_the_gates_answer_in_time_and_its_place_stays_taken
        }
        Break::LateEventBelieved => {
            commands::an_event_that_was_answered_late_is_raised_again_unless_its_pair_is_closed
        }
        Break::WaitsForGates => {
            network::a_frame_is_answered_while_the_gates_have_a_request
        }
        Break::FloodHoldsUp => {
            commands::a_flood_of_events_holds_up_no_command
        }
        Break::LostEventsForgotten => {
            commands::events_that_were_lost_are_made_up_by_reading
        }
        Break::LostCauseForgotten => {
            peers::a_failure_whose_event_was_lost_is_the_peers_all_the_same
        }
        Break::FailureNotNoted => {
            commands::a_pair_that_the_gates_have_failed_is_not_failed_again
        }
        Break::ReadHidesFailure => {
            peers::a_failure_that_is_read_before_the_gates_tell_of_it_is_the_peers_all_the_same
        }
        Break::AuditFoldsNewest | Break::AuditForgetsOldest => {
            commands::no_storm_of_some_kinds_drives_another_out_of_the_audit
        }
        Break::CookieOfOneSide => {
            commands::both_sides_of_a_connection_make_the_same_cookie
        }
        Break::VersionIgnored | Break::VersionUnnamed => {
            network::versions_that_do_not_agree_are_named_on_both_sides
        }
        Break::ReasonUnnamed => {
            network::a_refusal_says_why
        }
        Break::LastOfferFirst => {
            network::offers_are_served_oldest_first
        }
        Break::HandshakesUnbounded => {
            network::more_handshakes_than_there_is_room_for_are_refused
        }
        Break::DisconnectsUnbounded => {
            commands::more_disconnects_than_there_is_room_for_are_refused
        }
        Break::NeverGivesUp => {
            commands::a_connect_that_nobody_answers_times_out_when_it_was_told_to
        }
        Break::AcceptNotRepeated | Break::RepetitionServed | Break::CreditsAssumed => {
            network::a_connect_and_an_accept_become_one_pair_whatever_happens_to_the_frames
        }
        Break::ConfirmNotNeeded => {
            network::an_offer_is_connected_only_when_the_initiator_has_confirmed
        }
        Break::BothAnswer => {
            network::two_that_connect_at_once_get_one_pair
        }
        Break::EveryRepetitionAnswered => {
            network::one_frame_of_a_pair_is_under_way_however_often_its_peer_repeats
        }
        Break::StaleEpochServed => {
            network::a_request_of_an_earlier_incarnation_is_refused_however_late
        }
        Break::LoneEndKept => network::an_end_that_was_left_alone_does_not_lock_its_peer_out,
        Break::OldConnectionKept | Break::EpochAsRemembered => {
            network::cards_that_have_forgotten_their_epochs_go_on_after_what_their_peers_remember
        }
        Break::EpochsRaisedFreely => {
            network::no_frames_together_make_an_epoch_go_round
        }
        Break::EndsUndrained => {
            commands::a_connection_made_by_hand_can_be_ended_in_an_orderly_way
        }
        Break::EndsAsFailure | Break::EndNotTold | Break::PeerEndNotTold => {
            network::a_disconnect_is_a_clean_end_for_both
        }
        Break::LifeNotAskedFor => peers::a_peer_that_answers_lives_however_little_is_said,
        Break::SilenceForgiven | Break::FailureEndsAsLink => {
            peers::a_silent_peer_is_suspected_and_then_taken_to_have_failed
        }
        Break::CloseTakenForSilence => {
            peers::a_peer_that_has_closed_its_side_has_failed_by_that
        }
        Break::ReturnNotNoted => peers::a_peer_that_had_failed_is_known_when_it_comes_back,
        Break::EndSaidEarly => {
            peers::a_signal_to_a_pair_that_is_not_connected_is_refused_and_one_under_way_ends_with_its_pair
        }
        Break::AliveNumbered => {
            peers::a_signal_that_is_lost_is_repeated_though_a_question_for_a_sign_of_life_is_answered
        }
        Break::NoticeNotRepeated | Break::SignalRepeated => {
            peers::each_signal_arrives_once_and_in_order_whatever_happens_to_the_frames
        }
        Break::AnyoneBelieved => peers::a_failure_is_told_to_those_that_are_chosen,
        Break::JobIgnored => network::endpoints_of_different_jobs_are_never_connected,
        Break::DrainAcceptedForgotten
        | Break::DrainOldBallotHeard
        | Break::DrainUnionForgotten
        | Break::DrainReportsNotAwaited
        | Break::DrainAcceptancesNotAwaited
        | Break::DrainSweepNotAwaited => agreement::survivors_agree_whoever_fails_at_whatever_moment,
        Break::DrainSilenceForgiven => drains::a_silent_member_is_found_by_the_drain_itself,
        Break::DrainNamedKept => drains::what_one_knows_to_have_failed_all_agree_on_and_cut_off,
        Break::DrainOverForgotten => {
            drains::a_member_that_missed_the_end_learns_it_from_the_next_round
        }
        Break::DrainNotAnnounced | Break::DrainSweptIsNews => {
            drains::members_agree_that_nobody_has_failed_when_all_have_flushed_and_swept
        }
        Break::LateRuleBelieved => {
            rules::a_rule_is_cleared_until_the_gates_answer_in_time_and_its_row_stays_taken
        }
        Break::StrangersRuled => rules::a_group_is_of_open_pairs_of_its_endpoint,
        Break::RulesLeaked => rules::the_rules_of_a_closed_endpoint_are_free_again,
        Break::StrangerGranted | Break::GrantExceedsRights | Break::GrantExceedsRegion => {
            grants::what_may_not_be_granted_is_refused
        }
        Break::SendersPretended => {
            grants::a_card_that_can_not_tell_senders_apart_makes_keys_for_any_only
        }
        Break::KeysForeseen => grants::keys_are_foreseen_by_nobody,
        Break::EntropyUntested => grants::a_source_that_is_stuck_makes_no_key,
        Break::RevokeAnsweredEarly => grants::a_revoke_is_answered_when_the_gates_have_done_it,
        Break::FenceEndsEarly => grants::a_fence_covers_what_is_named_and_no_other_domain,
        Break::GrantForEver => grants::the_gates_are_told_for_how_long_a_grant_lasts,
        Break::UndrainedUnnamed | Break::UndrainedByPlace => {
            grants::a_fence_that_is_late_names_what_it_waits_for
        }
        Break::RevokeWalks => grants::a_peer_is_revoked_in_one_step,
        Break::GenerationsOverrun | Break::GrantsOutlivePair => {
            grants::grants_end_with_their_pair_and_its_place_waits_for_that
        }
        Break::GrantsOutliveRegion => grants::grants_end_with_their_region,
        Break::SpentUnfenced => {
            grants::a_key_for_one_access_leaves_its_place_with_it_and_is_revoked_behind_it
        }
        Break::MintedUnasked => {
            grants::a_key_that_the_gates_made_for_nobody_any_more_ends
        }
        Break::LateGrantBelieved => {
            grants::a_grant_is_cleared_until_the_gates_answer_in_time
        }
        Break::RoundTripIgnored | Break::AnswerTimeCounted | Break::AcceptorNotTimed => {
            times::both_sides_have_their_time_out_from_the_round_trip
        }
        Break::TimesUnbounded => {
            times::times_out_of_their_bounds_are_refused_and_change_nothing
        }
        Break::TimesNotTold => {
            times::the_gates_go_by_what_a_host_chooses_whenever_it_does
        }
        Break::RevocationToldAgain | Break::ToldRuleNotSet => {
            revoked::a_revocation_is_told_once_to_those_that_are_chosen_whatever_happens_to_the_frames
        }
        Break::RevocationsUnshared => revoked::no_endpoint_takes_the_places_of_another,
        Break::StrangersBelieved => {
            revoked::a_revocation_waits_for_a_group_of_its_name_that_its_peer_is_of
        }
        Break::ToldRuleNotTakenOver => {
            revoked::a_host_takes_over_the_rule_that_a_peers_word_has_set
        }
        Break::ForgottenRuleKept => {
            revoked::what_is_forgotten_is_revoked_no_more_and_can_be_told_again
        }
        Break::RevocationsOutlive => revoked::nothing_outlives_its_endpoint,
        Break::PlaceStaysMember => {
            revoked::a_pair_is_of_no_group_that_the_one_before_in_its_place_was_of
        }
        Break::ShutOutUnbounded => {
            commands::a_host_chooses_when_the_peer_of_a_connected_pair_is_shut_out
        }
    }
}

/// Runs a test with firmware that breaks a promise or none. If it fails, with which message.
fn run(test: fn(), broken: Option<Break>) -> Result<(), String> {
    BROKEN.set(broken);
    let ended = catch_unwind(test);
    BROKEN.set(None);
    ended.map_err(|panic| match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => panic.downcast_ref().copied().unwrap_or("?").to_string(),
    })
}

#[test]
fn each_broken_promise_is_noticed_by_the_test_that_is_named_for_it() {
    let mut sound = HashSet::new();
    let mut amiss = Vec::new();
    for &broken in Break::ALL {
        let test = noticed_by(broken);
        if sound.insert(test as usize) {
            let fails = run(test, None).err();
            amiss.extend(fails.map(|how| format!("{broken:?}: fails anyway: {how}")));
        }
        match run(test, Some(broken)) {
            Err(message) if message.starts_with(MARK) => {}
            Err(other) => amiss.push(format!("{broken:?}: ends in another way: {other}")),
            Ok(()) => amiss.push(format!("{broken:?}: goes unnoticed")),
        }
    }
    assert!(amiss.is_empty(), "{amiss:#?}");
}

#[test]
fn a_panic_that_is_no_broken_promise_is_no_notice() {
    let message = |test| run(test, None).expect_err("it panics");
    assert!(message(|| promise!(1 > 2)).starts_with(MARK));
    assert!(message(|| promise_eq!(1, 2, "{}", "one")).starts_with(MARK));
    assert!(!message(|| assert_eq!(1, 2)).starts_with(MARK));
    assert!(!message(|| assert!(std::env::args().count() > 1_000, "words")).starts_with(MARK));
    assert!(!message(|| panic!("words")).starts_with(MARK));
}
