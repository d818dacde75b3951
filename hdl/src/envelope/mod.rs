//! Envelopes: the right to send one, and what becomes of its place at the destination.

mod admit;
mod answer;
mod asked;
mod backlog;
mod bench;
pub mod breaks;
mod copies;
mod delivery;
mod filling;
pub(crate) mod ledger;
mod multis;
mod posts;
pub mod proof;
mod resolve;
mod rules;
pub mod send_queues;
mod slots;
mod under_way;

pub use bench::DeliveryBench;
pub use copies::Copies;
pub use delivery::Delivery;
pub use ledger::{Ledger, LedgerEntry};
pub use resolve::Resolve;
pub use send_queues::SendQueues;

use crate::config::{ECP5, SCARCE, TINY};
use crate::tops::{Class, Top};

/// The tops of the tests of this room. Delivery is tested with the blocks that it asks.
pub fn tops() -> Vec<Top> {
    vec![
        Top::of("delivery_bench_tiny", Class::Test, || {
            DeliveryBench::new(&TINY)
        }),
        Top::of("delivery_bench_scarce", Class::Test, || {
            DeliveryBench::new(&SCARCE)
        }),
        Top::of("delivery_bench_ecp5", Class::Test, || {
            DeliveryBench::new(&ECP5)
        }),
        Top::broken("delivery_bench_scarce_broken", breaks::delivery, || {
            DeliveryBench::new(&SCARCE)
        }),
        // Of the rooms that decide, which have no test of their own.
        Top::mutants_of(
            "delivery_bench_scarce_mutants",
            |options| {
                options
                    .mutants_of::<admit::Admit>()
                    .mutants_of::<answer::Answer>()
                    .mutants_of::<multis::Multis>()
            },
            || DeliveryBench::new(&SCARCE),
        ),
        // Of those that keep what waits, nor have these one: the same bench under another name, so that each half has its score.
        Top::mutants_of(
            "delivery_stores_scarce_mutants",
            |options| {
                options
                    .mutants_of::<backlog::Backlog>()
                    .mutants_of::<filling::Filling>()
                    .mutants_of::<posts::Posts>()
                    .mutants_of::<slots::Slots>()
                    .mutants_of::<under_way::UnderWay>()
            },
            || DeliveryBench::new(&SCARCE),
        ),
        Top::of("copies", Class::Test, Copies::default),
        Top::broken("copies_broken", breaks::copies, Copies::default),
        Top::mutants("copies_mutants", Copies::default),
        Top::of("resolve_tiny", Class::Test, || Resolve::new(&TINY)),
        Top::of("resolve_ecp5", Class::Synthesis, || Resolve::new(&ECP5)),
        Top::broken("resolve_tiny_broken", breaks::resolve, || {
            Resolve::new(&TINY)
        }),
        Top::mutants("resolve_tiny_mutants", || Resolve::new(&TINY)),
        Top::of("ledger", Class::Test, || Ledger::new(ECP5.pairs)),
        Top::broken("ledger_broken", breaks::ledger, || Ledger::new(ECP5.pairs)),
        Top::mutants("ledger_mutants", || Ledger::new(ECP5.pairs)),
        Top::of("rules_tiny", Class::Test, || rules::Rules::new(&TINY)),
        Top::of("rules_ecp5", Class::Test, || rules::Rules::new(&ECP5)),
        Top::broken("rules_tiny_broken", breaks::rules, || {
            rules::Rules::new(&TINY)
        }),
        Top::mutants("rules_tiny_mutants", || rules::Rules::new(&TINY)),
        Top::of("posts", Class::Synthesis, posts::Posts::default),
        Top::of("slots_ecp5", Class::Synthesis, || slots::Slots::new(&ECP5)),
        Top::of("admit_ecp5", Class::Synthesis, || admit::Admit::new(&ECP5)),
        Top::of("answer_ecp5", Class::Synthesis, || {
            answer::Answer::new(&ECP5)
        }),
        Top::of("delivery_tiny", Class::Synthesis, || Delivery::new(&TINY)),
        Top::of("delivery_ecp5", Class::Synthesis, || Delivery::new(&ECP5)),
        Top::of("send_queues_tiny", Class::Test, || SendQueues::new(&TINY)),
        Top::of("send_queues_ecp5", Class::Test, || SendQueues::new(&ECP5)),
        Top::broken(
            "send_queues_tiny_broken",
            send_queues::breaks::send_queues,
            || SendQueues::new(&TINY),
        ),
        Top::mutants("send_queues_tiny_mutants", || SendQueues::new(&TINY)),
    ]
}
