//! Tests of the tests: cards whose model is broken on purpose are noticed by this suite.

use crate::common::passes_with;
use crate::{backlog, claims, messages, multi, ready};
use soft_card::{Break, Flaw};

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
        Break::MultiStartsAgain => {
            multi::messages_fill_the_buffer_one_behind_the_other_until_too_little_is_left
        }
        Break::CompletesTwice => {
            backlog::receives_of_one_kind_are_matched_in_the_order_that_they_were_posted_in
        }
    }
}

#[test]
fn each_break_of_the_model_is_noticed() {
    for broken in Break::ALL {
        let test = noticed_by(broken);
        assert!(passes_with(Flaw::None, test), "{broken:?}: fails anyway");
        let unnoticed = passes_with(Flaw::Gates(broken), test);
        assert!(!unnoticed, "{broken:?} goes unnoticed");
    }
}
