//! Envelopes: what becomes of a message's place at its destination.

mod delivery;

pub use delivery::{Delivery, DeliveryMutation};

use crate::config;
use crate::tops::{Class, Top};

/// The blocks alone.
pub fn tops() -> Vec<Top> {
    vec![Top::of("delivery_tiny", Class::Test, || {
        Delivery::new(&config::TINY)
    })]
}
