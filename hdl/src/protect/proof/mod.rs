//! What is proved of protection: whoever may not reach memory doesn't, and a fence waits for whoever still may.

mod covers;
mod fence;
mod followed;
mod gate;
mod kept;
mod tickets;

use super::breaks;
use crate::proofs::{Method, Proof};
use crate::verilog::Break;
use fence::FenceProof;
use gate::{GateProof, narrow_ports};
use tickets::TicketsProof;

/// What is proved here.
pub fn proofs() -> Vec<Proof> {
    let regions = breaks::regions();
    let fence = breaks::fence();
    let broken = |names: &[&str]| Break::named(&fence, names);
    let gate = [
        "grant_not_needed",
        "holder_not_checked",
        "generation_not_checked",
        "permission_for_ever",
        "revokes_nobody",
        "end_wraps",
        "allows_silently",
        "refuses_early",
    ];
    let tickets = [
        "forgets_the_youngest",
        "looks_at_the_youngest",
        "waits_for_other_regions",
        "waits_for_other_pairs",
        "waits_for_other_contexts",
        "waits_for_other_pages",
        "waits_for_other_domains",
        "untagged_is_tagged",
        "first_page_alone",
        "ends_one_early",
        "goes_on_for_the_withdrawn",
        "tells_of_the_ended",
    ];
    vec![
        Proof::of("tickets", Method::Induction(2), TicketsProof::default)
            .assuming(&["memory_agrees"])
            .with_free_memories()
            .broken_by(broken(&tickets)),
        Proof::of("fence_done", Method::Induction(2), FenceProof::default)
            .assuming(&["memory_agrees"])
            .with_free_memories()
            .broken_by(broken(&[
                "waits_for_nothing",
                "forgets_reads",
                "forgets_writes",
                "forgets_the_youngest",
                "remembers_the_withdrawn",
                "goes_on_for_the_withdrawn",
                "tells_of_a_read",
                "tells_of_the_withdrawn",
                "waits_for_what_is_given",
                "revocation_waits_for_nobody",
                "another_region",
            ])),
        Proof::of("gate", Method::Unrolled(40), GateProof::default)
            .in_cases(vec![narrow_ports()])
            .broken_by(Break::named(&regions, &gate)),
    ]
}
