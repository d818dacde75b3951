//! Contracts of the matching engine that a test breaks, to show that it notices.

use super::associative::{Associative, AssociativeEntry};
use super::exact::Exact;
use super::lists::Lists;
use super::order::Order;
use super::quota::Quota;
use super::rows::UnexpectedRows;
use crate::verilog::Break;

/// Of the shares of endpoints.
pub fn quota() -> Vec<Break> {
    vec![
        // An endpoint may take what is reserved for the others.
        Break::new("overdraw_quota").force::<Quota>("common_room", "total.q < capacity"),
        // What an endpoint gives back is not counted as common again.
        Break::new("lose_quota").force::<Quota>("give_common", "false"),
    ]
}

/// Of the associative side, its shares included.
pub fn associative() -> Vec<Break> {
    let mut breaks = vec![
        // A cancelled receive stays posted.
        Break::new("lose_cancels").force_if::<Associative>("order.remove", "false", "cancel"),
        // A cancelled receive goes a cycle late.
        Break::new("delay_cancels").force::<Associative>(
            "order.remove",
            "(remove & !cancel) | (cancelled.q & order.chosen & order.living).any()",
        ),
        // An entry that was removed stays.
        Break::new("match_twice").force::<Order>("staying", "live.q"),
        // Bit 0 of the match bits has to agree although the receive ignores it.
        Break::new("narrow_wildcards").force_if::<AssociativeEntry>(
            "held_ignore_bits.d",
            "(new_ignore_bits >> 1) << 1",
            "load",
        ),
        // Entries don't know which ones are older.
        Break::new("forget_ages").force::<Order>("elders", "0"),
        // The next entry always goes to place 0.
        Break::new("reuse_places").force::<Order>("empty_places", "places"),
        // Searches find entries that aren't there any more.
        Break::new("find_removed")
            .force::<Order>("present", "places")
            .force::<Order>("remaining", "places"),
        // A choice that is made while an entry is removed may be that entry.
        Break::new("choose_departing").force::<Order>("eligible", "hits"),
        // Removals take entries that are to stay until they are cancelled.
        Break::new("lose_multi").force::<Associative>("staying", "0"),
        // A receive from one source takes messages of any.
        Break::new("widen_sources").force::<AssociativeEntry>("from_its_source", "true"),
        // A search finds what a place held before it was filled anew.
        Break::new("keep_hits").force::<Order>("present", "live.q | filled.q"),
    ];
    breaks.extend(quota());
    breaks
}

/// Of the exact side.
pub fn exact() -> Vec<Break> {
    let unlinks = "end.q.search == Search::Unlink";
    vec![
        // The youngest of the receives that the classes offer is taken.
        Break::new("newest_class").force::<Exact>("older", "best_age >= end_age"),
        // A receive that is matched stays.
        Break::new("keep_matched").force::<Exact>("matched_leaves", "false"),
        // An operation reads what an older one is about to write.
        Break::new("ignore_conflicts")
            .force::<Exact>("clash_compare.d", "false")
            .force::<Exact>("clash_mux.d", "false")
            .force::<Exact>("clash_best.d", "false")
            .force::<Exact>("clash_end.d", "false"),
        // A queue doesn't learn its new last receive.
        Break::new("forget_tail").force_if::<Exact>(
            "queue.tail",
            "end_found.q.tail",
            "(end.q.search == Search::Post) & end_found.q.found",
        ),
        // A receive that is cancelled leaves a wrong predecessor to its successor.
        Break::new("forget_prev").force_if::<Exact>("prevs_now", "false", unlinks),
        // A receive for which there is no place takes another's.
        Break::new("overwrite_slot")
            .force_if::<Exact>("muxed.way", "1", NO_SLOT)
            .force_if::<Exact>("muxed.room", "true", NO_SLOT),
        // A receive that was matched can still be found by its handle.
        Break::new("leave_handle").force_if::<Exact>("handle_ways", "0", "frees"),
        // A cancelled receive stays posted.
        Break::new("lose_exact_cancels")
            .force_if::<Exact>("frees", "false", unlinks)
            .force_if::<Exact>("slot_ways", "0", unlinks)
            .force_if::<Exact>("links_now", "false", unlinks)
            .force_if::<Exact>("prevs_now", "false", unlinks),
        // There is a result before all classes have been looked up.
        Break::new("hasty_result").force_if::<Exact>("fills", "!unlinks.q", "arriving"),
        // The look-up behind a cancel reads before the cancelled receive is out of its queue.
        Break::new("late_cancel").force::<Exact>("mending.d", "false"),
        // The slot of a cancelled receive is looked for in row 0.
        Break::new("forget_row").force::<Exact>("slot_row.d", "0"),
        // A search by pair or endpoint takes a wrong row for the one behind its row.
        Break::new("stand_still").force_if::<Exact>(
            "behind_cursor.d",
            "behind_cursor.q",
            "walks_on",
        ),
        // A search by pair or endpoint that has come to its pause has come to its end.
        Break::new("end_at_pause").force::<Exact>("best_found.d.more", "false"),
        // Asked to go on after its pause, it looks at the row before once more.
        Break::new("never_past_pause").force_if::<Exact>("cursor.d", "cursor.q", "pauses"),
    ]
}

/// A post whose key has no queue, and none of its bins a free slot.
const NO_SLOT: &str = "(mux.q.search == Search::Post) & !mux_hit.any() & !mux_free.q.any()";

/// Of the engine: of its own, and of all its parts.
pub fn lists() -> Vec<Break> {
    let mut breaks = vec![
        // An arrival doesn't see a receive that went to the associative side while the arrival was under way.
        Break::new("skip_taint").force::<Lists>("tainted.d", "false"),
        // The exact side's receive wins over the associative side's whatever their ages.
        Break::new("prefer_exact")
            .force::<Lists>("older", "false")
            .force::<Lists>("rival_older", "false"),
        // A class with receives is learnt anew.
        Break::new("learn_live").force::<Lists>("idle", "15"),
        // An arrival stays clear although a receive went to the associative side since.
        Break::new("stay_clear").force::<Lists>("none_is_clear", "false"),
        // A search that set out in the cycle in which the one before it has found something goes on.
        Break::new("keep_dropped").force::<Lists>("drops", "both.q & keeps_found"),
        // The front seems free while it holds a command.
        Break::new("hide_front").force::<Lists>("vacant.d", "true"),
        // A message that found no receive, and was to wait, is lost.
        Break::new("forget_append")
            .force::<Lists>("matched", "resolves")
            .force::<Lists>("unmatched", "false"),
        // A message that found a receive waits as well.
        Break::new("append_hits")
            .force::<Lists>("matched", "false")
            .force::<Lists>("unmatched", "resolves"),
        // In place of the message that found no receive, that of the arrival behind it waits.
        Break::new("append_another").force::<Lists>("sole_found_tag.d", "sole_joined_tag.q"),
        // A receive doesn't wait for the messages that arrived before it.
        Break::new("overtake_append").force::<Lists>("calm.d", "true"),
        // Arrivals come whether there is room for their messages or not.
        Break::new("append_without_room").force::<Lists>("admits.d", "initialized_now"),
        // The exact side gets age zero for the receive that the associative side has found.
        Break::new("hide_age").force::<Lists>("exact.rival_age", "0"),
    ];
    breaks.extend(associative());
    breaks.extend(exact());
    // No receive names a pair of another endpoint, and each pair has one unit for ever: those are in the block's own test only.
    let alone = ["forget_endpoint", "first_unit_only", "keeps_units"];
    breaks.extend(
        unexpected()
            .into_iter()
            .filter(|b| !alone.contains(&b.name)),
    );
    // No search is in the cycle of an insertion, so that a place's old hit is never asked for.
    breaks.retain(|broken| broken.name != "keep_hits");
    breaks
}

/// Of the unexpected messages.
pub fn unexpected() -> Vec<Break> {
    vec![
        // Of the hits of two rows the younger wins.
        Break::new("prefer_younger").force::<UnexpectedRows>("better", "first.q.age > best.q.age"),
        // Bits that are to be ignored are those that are compared, and the other way round.
        Break::new("swap_ignored").force_if::<UnexpectedRows>(
            "key.d.care_bits",
            "ignore_bits",
            "insert | search",
        ),
        // A row without messages stays in its list.
        Break::new("stay_linked").force::<UnexpectedRows>("empties", "false"),
        // A row leaves its list with the first message that is removed from it.
        Break::new("unlink_early").force_if::<UnexpectedRows>(
            "empties",
            "true",
            "walk.q == Walk::Unlink",
        ),
        // A removed message stays live.
        Break::new("match_unexpected_twice").force_if::<UnexpectedRows>(
            "rows.write_enable",
            "false",
            "walk.q == Walk::Unlink",
        ),
        // A receive that names its source is given any.
        Break::new("forget_pair").force::<UnexpectedRows>("names_source", "by_pair"),
        // A receive is given messages of other endpoints.
        Break::new("forget_endpoint").force::<UnexpectedRows>("of_endpoint", "true"),
        // The order of a row isn't written.
        Break::new("forget_order").force_if::<UnexpectedRows>(
            "new_row.order",
            "entry_row.q.order",
            "walk.q == Walk::Store",
        ),
        // A search that names its source looks at the pair's first unit only.
        Break::new("first_unit_only")
            .force_if::<UnexpectedRows>("ends_units", "true", "!has_none")
            .force::<UnexpectedRows>("was_last", "true"),
        // A pair that goes keeps its units.
        Break::new("keeps_units").force_if::<UnexpectedRows>(
            "counts.write_enable",
            "false",
            "unit.data.count == 0",
        ),
        // The row after one that leaves the list still names it as the one before.
        Break::new("keep_back_link").force_if::<UnexpectedRows>(
            "befores.write_enable",
            "false",
            "walk.q == Walk::Unlink",
        ),
        // Of two messages one behind the other the second has the first one's age.
        Break::new("age_of_neighbours").force_if::<UnexpectedRows>(
            "number.d",
            "number.q",
            "insert & ((count.q & 1) == 0)",
        ),
        // Searches find messages that aren't there any more.
        Break::new("find_removed_messages").force::<UnexpectedRows>("live", "255"),
    ]
}
