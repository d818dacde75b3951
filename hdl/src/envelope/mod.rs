//! Envelopes: the right to send one, and what becomes of its place at the destination.

mod delivery;
mod send_queues;

pub use delivery::{Delivery, DeliveryMutation};
pub use send_queues::{SendQueues, SendQueuesMutation};

use crate::config;
use crate::tops::{Class, Top};

/// The blocks alone.
pub fn tops() -> Vec<Top> {
    vec![
        Top::of("delivery_tiny", Class::Test, || {
            Delivery::new(&config::TINY)
        }),
        Top::of("send_queues", Class::Test, || {
            SendQueues::mutable(&config::TINY)
        }),
    ]
}
