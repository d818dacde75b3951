//! Contracts of protection that a test breaks, to show that it notices.

use super::fence::Fence;
use super::grants::Grants;
use super::mint::Mint;
use super::peer_refusals::PeerRefusals;
use super::refusals::Refusals;
use super::regions::Regions;
use super::shut_out::ShutOut;
use super::tag_maker::TagMaker;
use super::tickets::Tickets;
use crate::verilog::Break;

/// Of the table of regions.
pub fn regions() -> Vec<Break> {
    let refuses = "adding.q.valid & !permitted";
    vec![
        // A key of another tag names the region.
        Break::new("tag_not_checked").force::<Regions>("same_tag", "true"),
        // A region is every domain's.
        Break::new("domain_not_checked").force::<Regions>("same_domain", "true"),
        // A region may be used for everything.
        Break::new("rights_not_checked").force::<Regions>("has_rights", "true"),
        // A peer needs no grant.
        Break::new("grant_not_needed").force::<Regions>("is_granted", "true"),
        // The grant of an access is forgotten after the next one has been looked at.
        Break::new("peers_overlap").force::<Regions>("remote_under_way", "false"),
        // An offset is taken for an address.
        Break::new("offset_is_an_address").force::<Regions>("located.d", "address"),
        // What a peer asks to read is looked at as if a process asked,
        Break::new("reads_are_of_this_host").force::<Regions>("gather_query.data.remote", "false"),
        // or said to be where its offset is.
        Break::new("reads_at_the_offset").force::<Regions>(
            "gather_allowed.data.address",
            "answering.q.query.buffer.address",
        ),
        // The peer of a pair that has failed goes on.
        Break::new("failure_not_heard").force::<Grants>("fails", "false"),
        // A remote key of another tag names the grant.
        Break::new("remote_tag_not_checked").force::<Grants>("same_tag", "true"),
        // A grant is everybody's.
        Break::new("holder_not_checked").force::<Grants>("is_holder", "true"),
        // A key that is for any peer of a domain is one for all of the card.
        Break::new("any_domain").force_if::<Regions>("same_domain", "true", "is_remote"),
        // A key that is for any peer is for none.
        Break::new("any_peer_ignored").force::<Grants>("granted.any_peer", "false"),
        // A grant lives through its holder's revocation.
        Break::new("generation_not_checked").force::<Grants>("is_current", "true"),
        // The peer of a pair that isn't connected may use what it was granted.
        Break::new("openness_not_checked").force::<Grants>("is_open", "true"),
        // A grant gives all rights of its region.
        Break::new("grant_rights_not_checked").force::<Grants>("has_rights", "true"),
        // An access may begin before the part that is granted, or end behind it.
        Break::new("part_start_not_checked").force::<Grants>("begins_inside", "true"),
        Break::new("part_end_not_checked").force::<Grants>("ends_inside", "true"),
        // A shared key is good for all.
        Break::new("permission_not_checked").force::<Grants>("is_held", "true"),
        // A permission lives through its peer's revocation.
        Break::new("permission_for_ever").force::<Grants>("is_held", "!row.q.shared | held.valid"),
        // A number of a grant beyond the table is that of one in it.
        Break::new("grants_aliased").force::<Grants>("in_table", "true"),
        // A grant outlives its time,
        Break::new("time_ignored").force::<Grants>("is_over", "false"),
        // by one unit,
        Break::new("ends_a_unit_late")
            .force::<Grants>("is_over", "row.q.ends & (asked_in.q > row.q.until)"),
        // or ends though it has no time.
        Break::new("ends_without_a_time").force::<Grants>("is_over", "asked_in.q >= row.q.until"),
        // Time counts from the reset.
        Break::new("time_from_the_reset")
            .force::<Grants>("granted.until", "bit_cast::<39, 32>(setup.lasts)"),
        // A grant for one access isn't used up,
        Break::new("one_shot_kept").force::<Grants>("ends", "false"),
        // or is by one that the region refuses.
        Break::new("one_shot_lost").force::<Grants>("ends", "cycle.q.get_bit(4) & row.q.one_shot"),
        // Nobody is told that it has ended, or all are told that it has,
        Break::new("spent_untold").force::<Regions>("spent.valid", "false"),
        Break::new("spends_any_grant").force::<Grants>("spent.valid", "cycle.q.get_bit(4) & spend"),
        // or that another has.
        Break::new("spent_another").force::<Grants>("spent.data", "asked.q.pair"),
        // A revocation of a peer ends nothing.
        Break::new("revokes_nobody").force::<Grants>("revokes", "false"),
        // The next connection of a pair has what the last one had.
        Break::new("connection_inherits").force_if::<Grants>(
            "changed.generation",
            "named.generation",
            "connects",
        ),
        // A grant that was cleared may still be used.
        Break::new("grant_kept").force::<Grants>("clears", "false"),
        // A permission that was taken away is still there.
        Break::new("permission_kept").force::<Grants>("permitted_now.valid", "true"),
        // A buffer may begin before the region.
        Break::new("start_not_checked").force::<Regions>("begins_inside", "true"),
        // The end of a buffer wraps at 64 bits.
        Break::new("end_wraps")
            .force::<Regions>("added_end.d", "bit_cast::<65, 64>(address + length)"),
        // A number beyond the table is that of a region in it.
        Break::new("numbers_aliased").force::<Regions>("in_table", "true"),
        // A region that was cleared may still be used.
        Break::new("never_forgets").force_if::<Regions>("entries.write_enable", "false", "!is_set"),
        // Nothing is told of what was allowed,
        Break::new("allows_silently").force::<Regions>("delivers.d", "false"),
        // more than was allowed,
        Break::new("tickets_for_the_refused").force::<Regions>("gathers.d", "gather_allowed.valid"),
        // or it is told of another region, domain, pair, or page.
        Break::new("ticket_of_another_region")
            .force::<Regions>("ticket.d.region", "named.q.region"),
        Break::new("ticket_of_the_asker")
            .force::<Regions>("ticket.d.domain", "answering.q.query.buffer.domain"),
        Break::new("ticket_of_another_pair")
            .force::<Regions>("ticket.d.pair", "taken.q.query.pair"),
        Break::new("ticket_without_a_context").force::<Regions>("ticket.d.tagged", "false"),
        Break::new("ticket_of_one_page").force::<Regions>("last_byte", "located.q"),
        Break::new("ticket_of_a_page_more")
            .force::<Regions>("last_byte", "located.q + answering.q.query.buffer.length"),
        // A region changes between a query and its answer.
        Break::new("changes_under_a_query").force::<Regions>("under_way", "false"),
        // The tables change as a query is answered, before its ticket is told.
        Break::new("changes_with_an_answer").force::<Regions>(
            "under_way",
            "taken.q.valid | named.q.valid | looking.q.valid | adding.q.valid",
        ),
        // A refusal is known a cycle sooner.
        Break::new("refuses_early")
            .force_if::<Regions>("answers", "true", refuses)
            .force_if::<Regions>("answered", "adding.q.client", refuses)
            .force_if::<Regions>("fits", "false", refuses),
        // Who asks first hears all answers.
        Break::new("answers_somebody").force::<Regions>("answered", "0"),
        // A refusal isn't reported.
        Break::new("refuses_silently").force::<Regions>("refused.valid", "false"),
        // Nor one to a peer.
        Break::new("refuses_peers_silently").force::<Regions>("tells.d", "false"),
        // It is reported as another peer's, or of another place.
        Break::new("reports_another").force::<Regions>("told.d.pair", "taken.q.query.pair"),
        Break::new("reports_another_place")
            .force::<Regions>("told.d.offset", "adding.q.query.buffer.address"),
        // Why it is refused is looked at in another order,
        Break::new("region_first").force_if::<Regions>("told.d.reason", "6", "!fits_region.q"),
        Break::new("tag_last").force_if::<Grants>("why.d", "5", "other_tag.q & ends_outside.q"),
        // or half.
        Break::new("revoked_is_another_peer").force::<Grants>("permission_outdated.d", "false"),
        Break::new("domain_is_the_region").force::<Regions>("other_domain.d", "false"),
        // A region is named by a key that names no grant.
        Break::new("names_a_region").force_if::<Grants>(
            "region_key",
            "bit_cast::<32, 16>(row.q.region)",
            "no_grant.q",
        ),
    ]
}

/// Of the wait for the accesses that a change concerns.
pub fn fence() -> Vec<Break> {
    vec![
        // A change is done when the table has changed.
        Break::new("waits_for_nothing").force::<Fence>("is_under_way", "false"),
        // The reads of payloads are forgotten,
        Break::new("forgets_reads").force::<Fence>("tickets[0].start", "false"),
        // or the writes.
        Break::new("forgets_writes").force::<Fence>("tickets[1].start", "false"),
        // It doesn't wait for the youngest access before it.
        Break::new("forgets_the_youngest").force_if::<Tickets>("at.d", "next.q - 2", "start"),
        // It stops at the youngest that isn't covered.
        Break::new("looks_at_the_youngest").force_if::<Tickets>(
            "looks.d",
            "false",
            "looks.q & !is_covered",
        ),
        // It waits for what it doesn't cover,
        Break::new("waits_for_other_regions").force::<Tickets>("other_region", "false"),
        Break::new("waits_for_other_pairs").force::<Tickets>("other_pair", "false"),
        Break::new("waits_for_other_contexts").force::<Tickets>("other_context", "false"),
        Break::new("waits_for_other_pages").force::<Tickets>("other_pages", "false"),
        Break::new("waits_for_other_domains").force::<Tickets>("other_domain", "false"),
        // for accesses without a context as if they had one,
        Break::new("untagged_is_tagged").force::<Tickets>(
            "other_context",
            "covers.get_bit(2) & (ticket.context != fence.context)",
        ),
        // or for none that begins before the range of pages.
        Break::new("first_page_alone").force_if::<Tickets>(
            "other_pages",
            "true",
            "covers.get_bit(3) & (ticket.first_page < fence.first_page)",
        ),
        // It ends a ticket early.
        Break::new("ends_one_early").force::<Tickets>("ahead", "at.q - oldest.q - 1"),
        // The next change takes over what a withdrawn one waited for, and never gets to the table.
        Break::new("remembers_the_withdrawn").force_if::<Fence>(
            "waits.d",
            "waits.q",
            "!control.valid",
        ),
        // The next wait goes on where a withdrawn one was.
        Break::new("goes_on_for_the_withdrawn").force_if::<Tickets>(
            "at.d",
            "at.q",
            "start & (looks.q | waits.q)",
        ),
        // It tells of an access that has ended,
        Break::new("tells_of_the_ended").force::<Tickets>("found.valid", "shows.q"),
        // of the one before that which it waits for,
        Break::new("tells_of_another").force_if::<Tickets>(
            "ring.read_address",
            "bit_cast::<16, 6>(at.q - 1)",
            "waits.q & !start",
        ),
        // of a write as if it read,
        Break::new("tells_of_a_read").force::<Fence>("report.writes", "false"),
        // or of what a withdrawn change waited for.
        Break::new("tells_of_the_withdrawn").force_if::<Fence>(
            "report.waits",
            "true",
            "tickets[0].found.valid",
        ),
        // What a permission gives is waited for as if it took.
        Break::new("waits_for_what_is_given").force_if::<Fence>(
            "of_pair",
            "true",
            "operation == 20",
        ),
        // A revoked sender's accesses are forgotten.
        Break::new("revocation_waits_for_nobody").force_if::<Fence>(
            "of_pair",
            "false",
            "operation == 21",
        ),
        // A deregistration waits for another region.
        Break::new("another_region").force_if::<Fence>(
            "covered.region",
            "named.region",
            "of_region",
        ),
    ]
}

/// Of the report of refusals to the processor.
pub fn refusals() -> Vec<Break> {
    vec![
        // Each refusal has an event of its own.
        Break::new("tells_each").force::<Refusals>("tells", "count.q.any() & !others_tell"),
        // An event is sent in the cycle in which another block sends one.
        Break::new("interrupts").force::<Refusals>("tells", "count.q.any() & !pause.q.any()"),
        // Refusals before the last one aren't counted.
        Break::new("counts_one").force_if::<Refusals>("count.d", "1", "refused.valid"),
        // A refusal that comes in the cycle of an event is forgotten.
        Break::new("forgets_one").force_if::<Refusals>("count.d", "0", "tells"),
    ]
}

/// Of what is told of the accesses that are refused to peers.
pub fn peer_refusals() -> Vec<Break> {
    vec![
        // Each refusal has an event of its own.
        Break::new("tells_each").force_if::<PeerRefusals>("pause.d", "0", "tells"),
        // Refusals before the last one aren't counted.
        Break::new("counts_one").force::<PeerRefusals>("counted", "1"),
        // The first refusal is told, not the last.
        Break::new("keeps_the_first").force_if::<PeerRefusals>(
            "changed.offset",
            "kept.q.offset",
            "kept.q.count.any()",
        ),
        // What has been told is told again.
        Break::new("tells_again").force_if::<PeerRefusals>(
            "rows.write.enable",
            "false",
            "state.q == 4",
        ),
        // Whoever is first in the table has every turn.
        Break::new("one_has_all_turns").force_if::<PeerRefusals>("turn.d", "0", "tells"),
        // A pair that isn't connected is told of.
        Break::new("tells_of_the_unconnected").force::<PeerRefusals>("tells", "kept.q.count.any()"),
        // The next connection of a pair is told of the last one's peer.
        Break::new("connection_inherits").force_if::<PeerRefusals>(
            "changed.count",
            "kept.q.count",
            "control.ready & !clears",
        ),
        // A pair that is cleared is told of.
        Break::new("clears_at_any_time").force::<PeerRefusals>("waits", "false"),
        // An event is another one when it is taken.
        Break::new("event_not_held").force::<PeerRefusals>("event_offset.d", "kept.q.offset"),
    ]
}

/// Of the denial of accesses without a look-up.
pub fn shut_out() -> Vec<Break> {
    vec![
        // Nobody is shut out.
        Break::new("denies_nobody").force::<ShutOut>("denies", "false"),
        // A peer is shut out a refusal sooner.
        Break::new("limit_off_by_one").force::<ShutOut>("more", "held.q.count + 2"),
        // It is shut out for ever.
        Break::new("for_ever").force_if::<ShutOut>("rows.write.enable", "false", "state.q == 6"),
        // The clock goes twice as fast.
        Break::new("ticks_too_often").force_if::<ShutOut>("clock_left.d", "511", "tick"),
        // When one is shut out, all are.
        Break::new("one_for_all").force::<ShutOut>("rows.read_address", "0"),
        // The processes of this host wait as well.
        Break::new("processes_wait").force_if::<ShutOut>("passed.valid", "false", "state.q != 0"),
        // What is denied is looked up.
        Break::new("looks_up").force_if::<ShutOut>("passed.valid", "query.valid", "denies"),
        // What is denied isn't counted for its reason.
        Break::new("denies_silently")
            .force::<ShutOut>("peer_refused.valid", "refused.valid | denies_get"),
        // Nor is a get that is denied.
        Break::new("denies_gets_silently")
            .force::<ShutOut>("peer_refused.valid", "refused.valid | denies"),
        // A peer that is shut out gets on.
        Break::new("gets_go_on").force::<ShutOut>("get_is_out", "false"),
        // A denial is told in place of a refusal of the same cycle.
        Break::new("denies_over_a_refusal")
            .force::<ShutOut>("denies", "is_out")
            .force::<ShutOut>("denies_get", "get_is_out"),
        // Gets go before the ticks of the clock.
        Break::new("gets_stop_the_clock").force::<ShutOut>("looks_at_get", "get.valid"),
        // What is refused isn't counted.
        Break::new("counts_nothing").force::<ShutOut>("to_count.d", "false"),
        // Nor is a refusal behind one that waits.
        Break::new("counts_one_of_two").force::<ShutOut>("next_to_count.d", "false"),
        // The count goes on after the peer was shut out.
        Break::new("count_kept").force_if::<ShutOut>("changed.count", "more", "state.q == 4"),
        // Without a limit the first refusal that the count has no room for shuts out.
        Break::new("no_limit_is_a_limit").force_if::<ShutOut>(
            "rows.write.enable",
            "true",
            "state.q == 4",
        ),
        // The next connection of a pair is shut out with the last one.
        Break::new("connection_inherits").force_if::<ShutOut>(
            "rows.write.enable",
            "false",
            "(state.q == 0) & !sets",
        ),
        // A pair that isn't there has a limit.
        Break::new("answers_for_any_pair").force::<ShutOut>("pairs", "65535"),
    ]
}

/// Of the grants that the gates make.
pub fn mint() -> Vec<Break> {
    vec![
        // A tag comes again.
        Break::new("tags_repeat").force::<TagMaker>("count.d", "count.q"),
        // It is made in a round less,
        Break::new("round_left_out").force::<TagMaker>("last_round", "21"),
        // of the old key,
        Break::new("key_kept").force::<TagMaker>("key.valid", "key.valid & !keyed.q"),
        // or goes on with the numbers of the old key.
        Break::new("numbers_go_on").force_if::<TagMaker>("count.d", "count.q", "key.valid"),
        // A row is given twice.
        Break::new("row_given_twice").force::<Mint>("has_row.d", "has_row.q | keeps"),
        // A row is one of the firmware's.
        Break::new("rows_of_others").force::<Mint>("row", "kept.q"),
        // Nobody is told the key.
        Break::new("key_untold").force::<Mint>("control_result", "0"),
        // What has ended by its access, or is cleared, holds its row.
        Break::new("spent_rows_lost").force::<Mint>("spent.valid", "false"),
        Break::new("cleared_rows_lost").force::<Mint>("clears", "false"),
        // The row that is put by is free, if it is cleared once more.
        Break::new("kept_row_cleared").force::<Mint>("is_kept", "false"),
        // Rows that aren't of these are free.
        Break::new("aliased_rows").force::<Mint>(
            "cleared",
            "bit_cast::<16, 3>(control.data.index.get_bits::<3>(0))",
        ),
        // A grant is made of a tag that isn't there yet.
        Break::new("tag_too_soon").force::<Mint>("tags.tag.valid", "true"),
        // It is made by no key.
        Break::new("key_not_needed").force::<TagMaker>("keyed.q", "true"),
        // The key reaches the tables.
        Break::new("key_passed_on").force::<Mint>("sets_key", "false"),
    ]
}
