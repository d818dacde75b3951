//! Protection: which memory a request may use.

mod regions;

pub use regions::{LATENCY, Regions};

use crate::config;
use crate::tops::{Class, Top};

/// The table alone.
pub fn tops() -> Vec<Top> {
    vec![Top::of("regions_tiny", Class::Test, || {
        Regions::new(&config::TINY)
    })]
}
