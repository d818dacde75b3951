//! Contracts of protection that a test breaks, to show that it notices.

use super::barrier::Barrier;
use super::refusals::Refusals;
use super::regions::Regions;
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
        // A peer may use what a process of this host may.
        Break::new("peers_are_local").force::<Regions>("is_local", "true"),
        // A buffer may begin before the region.
        Break::new("start_not_checked").force::<Regions>("begins_inside", "true"),
        // The end of a buffer wraps at 64 bits.
        Break::new("end_wraps")
            .force::<Regions>("added_end.d", "bit_cast::<65, 64>(address + length)"),
        // A number beyond the table is that of a region in it.
        Break::new("numbers_aliased").force::<Regions>("in_table", "true"),
        // A region that was cleared may still be used.
        Break::new("never_forgets").force_if::<Regions>("entries.write_enable", "false", "!is_set"),
        // A region changes while what it allowed is on its way.
        Break::new("changes_at_any_time").force::<Regions>("undisturbed", "control.valid"),
        // A region changes between a query and its answer.
        Break::new("changes_under_a_query").force::<Regions>("under_way", "false"),
        // A refusal is known a cycle sooner.
        Break::new("refuses_early")
            .force_if::<Regions>("answers", "true", refuses)
            .force_if::<Regions>("answered", "adding.q.client", refuses)
            .force_if::<Regions>("fits", "false", refuses),
        // Who asks first hears all answers.
        Break::new("answers_somebody").force::<Regions>("answered", "0"),
        // A refusal isn't reported.
        Break::new("refuses_silently").force::<Regions>("refused.valid", "false"),
    ]
}

/// Of the wait for the reads that began before a change.
pub fn barrier() -> Vec<Break> {
    vec![
        // A change is done when the table has changed.
        Break::new("waits_for_nothing").force::<Barrier>("done", "control.valid & waits.q"),
        // It waits for reads that began after it too.
        Break::new("waits_for_all")
            .force::<Barrier>("done", "control.valid & waits.q & !under_way.q.any()"),
        // It doesn't wait for the youngest of those before it.
        Break::new("forgets_the_youngest").force_if::<Barrier>(
            "before.d",
            "left - 1",
            "inner.valid & inner.ready & left.any()",
        ),
        // The next change takes over what a withdrawn one waited for, and never gets to the table.
        Break::new("remembers_the_withdrawn").force_if::<Barrier>(
            "waits.d",
            "waits.q",
            "!control.valid",
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
