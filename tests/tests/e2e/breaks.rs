//! Tests of the tests: a model that is broken on purpose is noticed by those that run over it and over the gates.

use hdl::config::TINY;
use posthorn_tests::cards::{both, passes_with};
use posthorn_tests::side::Side;
use soft_card::{Break, Flaw};

use crate::{
    attacks, cancels, capabilities, claims, closing, completion_queues, failures, gets, grants,
    hostile, matching, memory, messages, protection, puts, ready, revoke,
};

/// Breaks that none of these tests can meet: their keys are right, and news for a receive that waits for room come when time decides. The oracle
/// notices them. And what the peer of a failed pair keeps it can't use, since its frames are dropped before;
/// what a revoked one keeps is gone when its revocation returns, since the firmware has cleared it. The unit tests of the model notice both.
const ELSEWHERE: [Break; 4] = [
    Break::LooksAgain,
    Break::TagIgnored,
    Break::FailedWrites,
    Break::RevokesNobody,
];

/// The test that is to notice a break, if there is one.
fn noticed_by(broken: Break) -> Option<fn()> {
    Some(match broken {
        Break::TruncationUntold => {
            messages::a_message_longer_than_its_buffer_is_truncated_and_nothing_is_written_beyond
        }
        Break::DiscardKeepsEnvelope | Break::SlotStaysTaken => {
            claims::a_claimed_message_keeps_its_credit_to_its_end
        }
        Break::ReadyWaits | Break::RefusalUnheard => {
            ready::a_ready_send_without_a_receive_fails_alone_and_costs_no_credit
        }
        Break::MultiEndsByError => {
            memory::a_multi_receive_goes_on_behind_a_message_that_memory_or_the_gate_refuses
        }
        Break::MultiStartsAgain | Break::MultiOffsetStays | Break::MultiCountShort => {
            matching::a_multi_receive_takes_messages_until_too_little_of_its_buffer_is_left
        }
        Break::CompletesTwice => {
            matching::messages_of_a_pair_match_in_the_order_sent_expected_or_not
        }
        Break::CancelTold => matching::a_cancel_in_time_ends_the_receive_and_one_too_late_says_so,
        Break::MemoryErrorUntold => {
            memory::a_buffer_that_is_gone_is_a_memory_error_of_its_request_only
        }
        Break::FailureKeepsSends | Break::EventUnwritten => {
            memory::slots_that_are_gone_fail_their_pair_and_no_other
        }
        Break::FailureKeepsReceives | Break::FailureUntold => {
            memory::slots_that_are_gone_are_a_memory_error_here_and_a_link_error_at_the_peer
        }
        Break::RepeatPassedOver | Break::GapUntold => {
            failures::a_lost_message_is_sent_again_and_nobody_above_the_link_can_tell
        }
        Break::CloseToldAsFailure => closing::closing_an_endpoint_ends_each_request_once_and_the_next_one_gets_no_stale_frame,
        Break::EntryWhole => cancels::a_cancel_in_time_gives_its_completion_entry_back,
        Break::DuplicateTaken => hostile::a_repeated_message_is_delivered_once,
        Break::CrcIgnored => hostile::each_malformed_frame_is_counted_as_what_it_is_and_dropped,
        Break::SuccessTold => {
            capabilities::unsignaled_sends_complete_only_on_error_and_free_their_buffers
        }
        Break::RuledMatches
        | Break::RuledKeepsCredit
        | Break::RuledPosts
        | Break::RuleMaskIgnored
        | Break::RuleContextIgnored
        | Break::RuleNotCleared => {
            revoke::what_falls_under_a_rule_is_dropped_and_refused_until_it_is_cleared
        }
        Break::RuleGroupIgnored | Break::RuleEndpointIgnored => {
            revoke::a_rule_is_of_its_group_and_of_its_endpoint
        }
        Break::RuleKeepsPair => {
            revoke::a_pair_that_is_closed_leaves_the_groups_and_an_endpoint_takes_its_rules_with_it
        }
        Break::PutRefusalUntold => {
            puts::a_put_that_may_not_be_is_an_error_of_its_own_and_the_pair_goes_on
        }
        Break::PutWaitsForCredit => puts::a_put_needs_neither_a_receive_nor_a_credit_of_the_peer,
        Break::PutOffsetIgnored => {
            puts::a_put_lands_where_it_was_granted_at_any_length_and_alignment_and_nowhere_else
        }
        Break::GetRefusalUntold | Break::GetNeedsNoRight => {
            gets::a_get_that_may_not_be_is_an_error_of_its_own_and_the_pair_goes_on
        }
        Break::GetOffsetIgnored => {
            gets::a_get_reads_what_was_granted_at_any_length_and_alignment_and_writes_its_buffer_only
        }
        Break::AnswersAskedTooSoon => gets::a_get_whose_answer_comes_late_is_not_asked_for_again,
        Break::AnswersAskedForEver => gets::a_peer_that_has_a_get_and_never_answers_fails,
        Break::GetAnsweredOnce => gets::a_get_whose_answer_is_lost_is_answered_again,
        Break::GetEndsUnanswered => gets::an_answer_that_comes_late_or_twice_writes_nothing,
        Break::RemoteTagIgnored | Break::HolderIgnored | Break::PartIgnored => {
            attacks::no_access_that_was_not_granted_lands_and_each_is_counted
        }
        Break::AnyPeerIgnored => {
            protection::a_key_for_any_peer_is_of_use_to_who_has_failed_and_the_window_is_unusable
        }
        Break::DomainIgnored => {
            protection::a_key_for_any_peer_is_of_no_use_to_another_domain
        }
        Break::GrantOutlivesTime => protection::a_key_with_a_time_ends_by_itself,
        Break::MintedKept => {
            puts::a_key_for_one_access_ends_with_it_and_leaves_its_place_to_the_next
        }
        Break::GrantKept => {
            grants::whoever_loses_a_key_between_two_puts_writes_the_first_and_not_the_second
        }
        Break::SegmentsSwapped => capabilities::a_gather_is_one_message_of_its_segments,
        Break::OwnerTold | Break::InlineReversed => {
            completion_queues::endpoints_on_one_queue_are_told_apart_hold_their_places_and_the_first_closes_last
        }
        _ => return None,
    })
}

#[test]
fn each_break_of_the_model_that_a_program_can_meet_is_noticed() {
    // Of what only some cards have, what these gates have.
    let has = |(_, capability): &(Break, u32)| TINY.capabilities & capability != 0;
    let optional = Break::OPTIONAL.into_iter().filter(has);
    let optional = optional.map(|(broken, _)| broken);
    let all = Break::ALL.into_iter().chain(Break::UNREAD);
    let all = all.chain(Break::CLOSING).chain(Break::OF_GRANTS);
    for broken in all.chain(optional) {
        let Some(test) = noticed_by(broken) else {
            assert!(ELSEWHERE.contains(&broken), "{broken:?} has no test");
            continue;
        };
        assert!(!passes_with(Flaw::Gates(broken), test), "{broken:?}");
    }
}

/// A message that is cut off, and nobody looks.
fn truncated() {
    both("tiny", 2, 401, |host| {
        let mut me = Side::open(&host);
        if me.rank() == 0 {
            me.send(1, 1, 1, 8);
        } else {
            me.receive(1, Some(0), 1, 4);
        }
        me.completion();
        me.meet();
        me.finish();
    });
}

#[test]
fn what_the_model_tells_and_the_gates_do_not_is_noticed_though_the_test_does_not_look() {
    truncated();
    let broken = Flaw::Gates(Break::TruncationUntold);
    assert!(!passes_with(broken, truncated));
}
