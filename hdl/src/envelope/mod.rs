//! Envelopes: the right to send one, and what becomes of its place at the destination.

mod bench;
mod delivery;
mod send_queues;

pub use bench::DeliveryBench;
pub use delivery::{Delivery, DeliveryMutation};
pub use send_queues::{SCAN_CYCLES, SendQueues, SendQueuesMutation};

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
        Top::of("delivery_tiny", Class::Synthesis, || Delivery::new(&TINY)),
        Top::of("delivery_ecp5", Class::Synthesis, || Delivery::new(&ECP5)),
        Top::of("send_queues_tiny", Class::Test, || {
            SendQueues::mutable(&TINY)
        }),
        Top::of("send_queues_ecp5", Class::Test, || {
            SendQueues::mutable(&ECP5)
        }),
    ]
}
