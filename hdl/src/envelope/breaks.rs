//! Contracts of the blocks around envelopes that a test breaks, to show that it notices.

use super::admit::Admit;
use super::answer::Answer;
use super::copies::Copies;
use super::delivery::Delivery;
use super::ledger::Ledger;
use super::posts::Posts;
use super::resolve::Resolve;
use super::rules::Rules;
use super::slots::Slots;
use crate::config::TINY;
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
        // It isn't asked about a copy from a slot.
        Break::new("skips_check_of_copies").force::<Resolve>("is_copy", "false"),
        // A copy that may not go there goes there.
        Break::new("copies_the_refused").force_if::<Resolve>(
            "state.d",
            "State::Request",
            "copied.ready & copied.valid & refused.q",
        ),
        // What it refuses is written.
        Break::new("writes_what_is_refused").force::<Resolve>("may_write", "true"),
        // A put goes where its offset says, from the first byte of all memory.
        Break::new("puts_at_the_offset").force::<Resolve>("located.q", "job.data.target"),
        // A put is asked for as a process of this host.
        Break::new("puts_as_the_host").force::<Resolve>("query.data.remote", "false"),
        // What a peer may not write is told to it as written.
        Break::new("put_refusal_untold")
            .force::<Resolve>("ending.refused", "current.q.ending.refused"),
        // A refusal isn't counted.
        Break::new("refusals_not_counted")
            .force::<Resolve>("counts.write_enable", "forget.valid")
            .force::<Resolve>("shown.write_enable", "forget.valid"),
        // A refusal isn't counted if another pair is forgotten in that cycle.
        Break::new("refusals_forgotten").force::<Resolve>("counts_now", "counting.q"),
        // What is refused elsewhere isn't counted,
        Break::new("elsewhere_not_counted").force_if::<Resolve>(
            "looking_up.d",
            "false",
            "takes_elsewhere",
        ),
        // or is for the pair of the job in hand,
        Break::new("elsewhere_is_here").force_if::<Resolve>(
            "counting_pair.d",
            "current.q.ending.pair",
            "takes_elsewhere",
        ),
        // or when its pair has been forgotten meanwhile.
        Break::new("elsewhere_remembered").force::<Resolve>("forgets_counted", "false"),
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
        Break::new("completes_early").force_if::<Ledger>(
            "entries.awaits",
            "false",
            "answers_come.q == writes_ended.q",
        ),
        // An error of the write isn't told.
        Break::new("forgets_write_errors").force::<Ledger>("write_failed", "false"),
        // What a fence waits for has ended before memory has answered,
        Break::new("access_ends_early").force::<Ledger>(
            "access_ends",
            "entry.valid & entry.ready & entry.data.guarded",
        ),
        // when all has been told of it,
        Break::new("access_ends_late")
            .force::<Ledger>("access_ends", "ends & entries.output.data.guarded"),
        // or is what nobody has asked the Gate about.
        Break::new("every_write_is_guarded").force::<Ledger>(
            "access_ends",
            "advances & (state.q == State::Wait) & head_writes",
        ),
        // A put that memory answers with an error is told as written.
        Break::new("put_error_untold").force::<Ledger>("refuses", "head.refused"),
        // A receive that stays is said to have ended.
        Break::new("ends_what_stays").force::<Ledger>("head.stays", "false"),
        // The last completion of a receive doesn't say how many there were,
        Break::new("counts_nothing").force_if::<Ledger>("completion.count", "0", "head.multi"),
        // nor each where its message is.
        Break::new("names_no_place").force_if::<Ledger>("completion.offset", "0", "head.multi"),
        // A message whose slot couldn't be written is told as one that is there.
        Break::new("loses_nothing").force::<Ledger>("is_lost", "false"),
        // What is behind a lost message is told as anything else;
        Break::new("accepts_behind_the_lost").force::<Ledger>("is_behind", "false"),
        // so it is if it isn't kept of which pairs one was lost;
        Break::new("keeps_no_loss").force::<Ledger>("loses", "false"),
        // and after its pair was set anew nothing of it is accepted.
        Break::new("forgets_no_loss").force::<Ledger>("forgets.q", "false"),
        // A slot is told as written when its message comes.
        Break::new("written_early").force_if::<Ledger>(
            "written.valid",
            "(entries.level > 1) & head.fills",
            "state.q == State::Wait",
        ),
        // A get isn't passed on.
        Break::new("asks_nobody").force_if::<Ledger>("after_update", "after_ask", "head.asks"),
        // The answer of a get isn't told,
        Break::new("answers_nobody").force::<Ledger>("after_ask", "State::Wait"),
        // or as one that is there when memory has answered with an error.
        Break::new("answers_well").force::<Ledger>("answered.data.status", "head.status"),
        // It is told of another get.
        Break::new("answers_another").force::<Ledger>("answered.data.number", "head.request"),
        // It is empty while an entry is at its head.
        Break::new("empty_too_soon").force::<Ledger>("empty", "entries.level <= 1"),
    ]
}

/// Of the rules that revoke messages. What is said of rows is wrong in each of the small card's.
pub fn rules() -> Vec<Break> {
    let in_each_row = |broken: Break, signal: &str, value: &str| {
        let place = |text: &str, row: usize| text.replace("[i]", &format!("[{row}]"));
        (0..TINY.rules).fold(broken, |broken, row| {
            broken.force::<Rules>(&place(signal, row), &place(value, row))
        })
    };
    vec![
        // Another endpoint's messages fall under a rule.
        in_each_row(
            Break::new("holds_for_all_endpoints"),
            "of_endpoint[i]",
            "true",
        ),
        // Another context's do.
        in_each_row(Break::new("ignores_context"), "of_context[i]", "true"),
        // Those of a pair that isn't of the group do.
        Break::new("ignores_group").force::<Rules>("of_group", "true"),
        // Those of a pair beyond the table do, if the pair whose word it has is of the group.
        Break::new("takes_any_number_for_a_pair").force::<Rules>(
            "of_group",
            "look.data.any_source | (groups.read_data & member).any()",
        ),
        // A request of any source is taken for one of the pair whose number it has.
        Break::new("asks_for_a_source").force::<Rules>(
            "of_group",
            "(look.data.pair < pair_count) & (groups.read_data & member).any()",
        ),
        // All match bits have to agree.
        Break::new("ignores_mask").force::<Rules>(
            "agrees",
            "!((bounds.read_data.match_bits ^ look.data.match_bits) | look.data.ignore_bits).any()",
        ),
        // None has to.
        Break::new("ignores_match_bits").force::<Rules>("agrees", "true"),
        // A receive that may be for other messages falls under a rule.
        Break::new("refuses_the_doubtful").force::<Rules>(
            "agrees",
            "((bounds.read_data.match_bits ^ look.data.match_bits) & bounds.read_data.mask) == 0",
        ),
        // A row is read while its group is being written.
        Break::new("reads_half_a_group").force::<Rules>("goes", "some"),
        // An answer is given before the last row is compared.
        Break::new("answers_too_soon").force::<Rules>("known", "!some"),
        // A group is added to that of the rule before it in its row.
        Break::new("adds_to_the_group").force_if::<Rules>(
            "groups.write.data",
            "groups.read_data",
            "fills.q & ((members_low.q & 1) == 0)",
        ),
        // A row that is cleared keeps its rule.
        in_each_row(
            Break::new("clears_nothing"),
            "chosen[i]",
            "chosen[i] & change.data.holds",
        ),
        // Every row is cleared at once.
        in_each_row(
            Break::new("clears_all_rows"),
            "chosen[i]",
            "chosen[i] | (change.valid & !change.data.holds)",
        ),
        // Of the first two rows the one that isn't named is cleared.
        Break::new("clears_another_row")
            .force_if::<Rules>("chosen[0]", "chosen[1]", "!change.data.holds")
            .force_if::<Rules>("chosen[1]", "chosen[0]", "!change.data.holds"),
        // The last row is never used.
        Break::new("loses_the_last_row")
            .force::<Rules>(&format!("chosen[{}]", TINY.rules - 1), "false"),
        // A pair that was closed stays in the groups.
        Break::new("keeps_pairs").force_if::<Rules>("groups.write.enable", "false", "!fills.q"),
        // The rules of an endpoint outlive it.
        in_each_row(Break::new("keeps_endpoints"), "closes[i]", "false"),
        // Every rule goes with any endpoint.
        in_each_row(
            Break::new("closes_all_endpoints"),
            "closes[i]",
            "forget_endpoint.valid",
        ),
        // What was covered once is for ever.
        Break::new("sticks").force_if::<Rules>("hit.d", "true", "hit.q"),
    ]
}

/// Of everything between an arrival, or a request, and its end.
pub fn delivery() -> Vec<Break> {
    vec![
        // A completion doesn't wait for the payload's write.
        Break::new("completes_early").force_if::<Ledger>(
            "entries.awaits",
            "false",
            "answers_come.q == writes_ended.q",
        ),
        // A slot is not given back.
        Break::new("loses_slots").force::<Slots>("given_bit", "0"),
        // A credit is returned although the message rests in a slot.
        Break::new("frees_unexpected").force::<Answer>("inserted_frees", "true"),
        // The buffer is not checked again when a message arrives for it.
        Break::new("skips_second_check").force::<Resolve>("needs_query", "false"),
        // A fence isn't told that an access has ended.
        Break::new("access_never_ends").force_if::<Resolve>("guarded.d", "false", "takes"),
        // The buffer is not checked when its receive is posted.
        Break::new("skips_first_check").force::<Posts>("verdict", "true"),
        // A cancel that was in time says that it was too late.
        Break::new("cancel_says_too_late").force::<Answer>("cancels", "false"),
        // More is written than the buffer holds.
        Break::new("ignores_buffer_length").force::<Answer>("too_long", "false"),
        // Slot 0 is given out whether or not it is taken.
        Break::new("reuses_slots").force::<Slots>("taken", "0"),
        // A pair that goes doesn't give its units of places back.
        Break::new("keeps_units").force_if::<Slots>(
            "level.d",
            "level.q",
            "state.q == State::Given",
        ),
        // Two pairs have the same unit.
        Break::new("gives_a_unit_twice").force_if::<Slots>(
            "level.d",
            "level.q",
            "state.q == State::Taken",
        ),
        // The slot after the message's is given back.
        Break::new("frees_wrong_slot").force::<Slots>("given_bit", "slot_bit << 1"),
        // A receive is posted past one that waits for room.
        Break::new("overtakes").force::<Admit>("is_behind", "false"),
        // A receive behind one that waits looks although a message has come since.
        Break::new("looks_again").force::<Admit>("looks_later", "false"),
        // A receive that waits isn't told of a message.
        Break::new("sleeps_on").force::<Answer>("tells", "false"),
        // A multi-receive stays whatever is left of its buffer.
        Break::new("never_ends").force::<Answer>("enough", "true"),
        // It ends with its first message.
        Break::new("ends_with_its_first").force::<Answer>("enough", "false"),
        // It stays although no completion is free.
        Break::new("overcommits").force::<Answer>("can_reserve", "true"),
        // Every message of a multi-receive is told as the first of its buffer.
        Break::new("offset_stands_still").force::<Answer>("used", "receive.q.had.offset"),
        // The last completion of a multi-receive doesn't count itself.
        Break::new("counts_one_short").force::<Answer>("number", "receive.q.had.count - 1"),
        // A claim leaves its message in Lists.
        Break::new("claims_by_probe").force::<Admit>("claim_takes", "Operation::Probe"),
        // The credit is returned at the claim.
        Break::new("frees_claimed").force::<Answer>("claimed_frees", "true"),
        // The slot is given back at the claim.
        Break::new("vacates_claimed").force::<Answer>("claimed_vacates", "true"),
        // A claim is good for every endpoint.
        Break::new("claims_for_all").force::<Admit>("owns_claim", "true"),
        // A handle is good if its slot is taken, by whatever message.
        Break::new("stale_claims").force::<Answer>("same_claim", "true"),
        // A discard doesn't return the credit.
        Break::new("keeps_discarded").force::<Answer>("discarded_frees", "false"),
        // A refused message's credit isn't returned.
        Break::new("keeps_refused").force::<Answer>("refused_frees", "false"),
        // Nor is a put's number.
        Break::new("keeps_put").force::<Answer>("put_frees", "false"),
        // A get isn't passed on to whoever answers it.
        Break::new("get_not_answered").force_if::<Ledger>("after_update", "after_ask", "head.asks"),
        // A get is passed on before what came before it is written.
        Break::new("gets_early").force_if::<Ledger>(
            "entries.awaits",
            "false",
            "answers_come.q == writes_ended.q",
        ),
        // One that comes again is accepted again.
        Break::new("accepts_a_get_twice").force::<Answer>("get_is_new", "true"),
        // None is accepted.
        Break::new("accepts_no_get").force::<Answer>("get_is_new", "false"),
        // The answer of a get isn't told.
        Break::new("answer_untold").force::<Ledger>("after_ask", "State::Wait"),
        // It is told before it is written.
        Break::new("answer_told_early").force_if::<Ledger>(
            "entries.awaits",
            "false",
            "entries.output.data.ending.answers",
        ),
        // It is written although its pair has failed, or is closed.
        Break::new("answers_the_failed").force_if::<Admit>("is_late", "false", "is_answer"),
        // One that the peer has refused is told as one that is there.
        Break::new("answer_never_refused").force_if::<Answer>(
            "work.d.ending.status",
            "0",
            "ask == Ask::Answer",
        ),
        // A get that is dropped takes the next payload with it.
        Break::new("drops_what_is_wanted").force::<Admit>("on_wire", "message.q.length"),
        // A get that was refused where it was to be answered isn't counted.
        Break::new("elsewhere_not_counted").force_if::<Resolve>(
            "looking_up.d",
            "false",
            "takes_elsewhere",
        ),
        // A message that falls under a rule is matched.
        Break::new("matches_the_revoked").force::<Admit>("drops_revoked", "false"),
        // Its credit isn't returned.
        Break::new("keeps_revoked").force::<Answer>("revoked_frees", "false"),
        // A request that falls under a rule looks for a message.
        Break::new("posts_the_revoked").force::<Admit>("ends_revoked", "false"),
        // A claim that is to take what came before the rule is refused.
        Break::new("refuses_past_rules").force::<Admit>("past_rules", "false"),
        // What is wrong with a request is told only if no rule revokes it.
        Break::new("revokes_the_unsound")
            .force::<Admit>("searches", "!is_cancel & !request.q.fetched.names_claim"),
        // A pair that is closed stays in the groups of rules.
        Break::new("rules_keep_pairs").force::<Admit>("rules.forget_pair.valid", "false"),
        // The rules of an endpoint outlive it.
        Break::new("rules_keep_endpoints").force::<Admit>("rules.forget_endpoint.valid", "false"),
        // A ready message is refused although the host keeps receives back.
        Break::new("ignores_backlog").force::<Admit>("host_keeps", "false"),
        // A ready message is refused although the list ring has more, or a request of it is in Posts.
        Break::new("ignores_ring").force::<Admit>("on_its_way", "false"),
        // A ready message waits for its receive as any other.
        Break::new("ready_waits").force::<Admit>("may_be_posted", "true"),
        // The host is believed to keep nothing although the endpoint is stalled.
        Break::new("forgets_kept").force::<Admit>("believed", "true"),
        // A message passes one of its pair that Lists, or Answer, haven't dealt with.
        Break::new("passes_its_pair").force::<Admit>("pair_waits", "false"),
        // A request of a stalled endpoint passes messages that are being looked up.
        Break::new("passes_a_message").force::<Admit>("endpoint_waits", "false"),
        // Or the step of a walk.
        Break::new("passes_a_step")
            .force::<Admit>("endpoint_waits", "backlog.stalled & !messages.empty"),
        // A ready message passes a request of its endpoint that is being looked up.
        Break::new("passes_a_request").force::<Admit>("ready_waits", "false"),
        // A message is told of, or copied, before it is in its slot.
        Break::new("reads_what_fills").force::<Answer>("unsafe_yet", "false"),
        // Messages wait behind a request whose message isn't in its slot yet,
        Break::new("nothing_passes_who_waits").force::<Answer>("passes", "false"),
        // or for the requests behind it.
        Break::new("waits_for_turns").force::<Admit>("aside", "false"),
        // Any number of messages pass, whoever else waits.
        Break::new("passes_without_end").force::<Admit>("may_pass", "aside"),
        // The step of a walk enters behind a request that comes to wait aside.
        Break::new("walks_behind_who_waits").force::<Admit>("walk_held", "aside"),
        // Receives that come later than their messages don't catch up.
        Break::new("never_catches_up").force::<Admit>("receives_come_late", "false"),
        // What isn't a message passes who waits.
        Break::new("all_pass_who_waits").force_if::<Answer>(
            "front_is_message",
            "true",
            "is_aside.q",
        ),
        // A request waits for ever for a message whose slot couldn't be written.
        Break::new("waits_for_the_lost").force::<Answer>("lost", "false"),
        // Ledger waits with a lost message until the one before it is removed.
        Break::new("lost_messages_have_no_queue")
            .force::<Delivery>("admit.lost.valid", "ledger.lost.valid")
            .force::<Delivery>("admit.lost.data", "ledger.lost.data")
            .force::<Delivery>("ledger.lost.ready", "admit.lost.ready")
            .force::<Delivery>("lost.input.valid", "false"),
        // What enters alone isn't waited for when a message is lost, of whatever pair.
        Break::new("loses_what_follows")
            .force::<Admit>("has_lost", "false")
            .force::<Admit>(
                "alone_ends",
                "all_is_found | again.q | overflow.valid | lost.valid",
            ),
        // What is behind a lost message is accepted all the same.
        Break::new("accepts_behind_the_lost").force::<Ledger>("is_behind", "false"),
        // A pair that two messages are lost of fails twice.
        Break::new("gives_up_twice").force::<Admit>("has_given_up", "false"),
        // Of a pair that was closed and set anew nothing is accepted, since one was lost before.
        Break::new("remembers_the_lost").force::<Ledger>("forgets.q", "false"),
        // A message enters although it isn't known whether there is a slot for it.
        Break::new("enters_without_a_look").force::<Admit>("slot_known", "true"),
        // A request is taken to name the pair that was read for the one before it.
        Break::new("reads_no_pair").force::<Admit>("list_looked.q", "true"),
        // A request doesn't wait for what becomes of a message without a slot, and finds its pair as it was before.
        Break::new("passes_who_has_no_slot").force::<Admit>("has_no_slot", "false"),
        // A request waits until no message wants to enter.
        Break::new("messages_always_first").force_if::<Admit>(
            "list_goes",
            "false",
            "arrival.valid",
        ),
        // A message meets a multi-receive before that is done with the one in front.
        Break::new("meets_undecided").force::<Admit>("arrival_alone", "false"),
        // A fault, or the end of a pair or an endpoint, doesn't wait for the endpoint's messages.
        Break::new("walks_at_once").force::<Admit>("walk_is_early", "false"),
        // It doesn't wait for a receive that finds its list full.
        Break::new("walks_beside_a_request").force::<Admit>(
            "walk_is_early",
            "messages.of_endpoint | filling.of_endpoint",
        ),
        // Messages of a multi-receive wait for memory, each until the one in front is written,
        Break::new("waits_for_memory").force::<Admit>("all_is_found", "entered.q == 0"),
        // or a multi-receive isn't alone.
        Break::new("meets_at_once").force::<Admit>("all_is_found", "true"),
        // A walk ends when it has found the last, whatever of it is still on its way.
        Break::new("ends_before_its_mark")
            .force::<Admit>("ends_walk", "walked.valid & !walked.data"),
        // A walk looks at its first rows again and again.
        Break::new("begins_again").force::<Admit>("walk_again.d", "false"),
        // A walk goes before messages and requests,
        Break::new("walks_first").force::<Admit>("walk_waits", "false"),
        // or these wait for the end of a walk.
        Break::new("walks_alone")
            .force_if::<Admit>("arrival_free", "false", "stage.q != Stage::None")
            .force_if::<Admit>("list_free", "false", "stage.q != Stage::None"),
        // The receive that waits for room outlives its pair, or its endpoint.
        Break::new("forgets_the_waiting").force::<Admit>("waiting_named", "false"),
    ]
}
