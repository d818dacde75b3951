//! Protection: which memory a request may use.

pub mod breaks;
mod refusals;
mod regions;

pub use refusals::Refusals;
pub use regions::{LATENCY, Regions};

use crate::config::{ECP5, TINY};
use crate::tops::{Class, Top};

/// The blocks alone.
pub fn tops() -> Vec<Top> {
    vec![
        Top::of("regions_tiny", Class::Test, || Regions::new(&TINY)),
        Top::of("regions_ecp5", Class::Test, || Regions::new(&ECP5)),
        Top::of("refusals", Class::Test, Refusals::default),
        Top::broken("regions_tiny_broken", breaks::regions, || {
            Regions::new(&TINY)
        }),
        Top::broken("refusals_broken", breaks::refusals, Refusals::default),
    ]
}
