//! Envelopes: the right to send one, and what becomes of its place at the destination.

mod bench;
mod delivery;
mod send_queues;

pub use bench::DeliveryBench;
pub use delivery::{Delivery, DeliveryMutation};
pub use send_queues::{SendQueues, SendQueuesMutation};

use crate::config;
use crate::tops::{Class, Top};

/// The tops of the tests of this room. Delivery is tested with the blocks that it asks.
pub fn tops() -> Vec<Top> {
    vec![
        Top::of("delivery_bench", Class::Test, || {
            DeliveryBench::new(&config::TINY)
        }),
        Top::of("send_queues", Class::Test, || {
            SendQueues::mutable(&config::TINY)
        }),
    ]
}
