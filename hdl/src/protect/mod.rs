//! Protection: which memory a request may use.

mod barrier;
pub mod breaks;
mod grants;
mod refusals;
mod regions;

pub use barrier::Barrier;
pub use refusals::Refusals;
pub use regions::{LATENCY, Regions};

use crate::config::{ECP5, TINY};
use crate::tops::{Class, Top};

/// The blocks alone.
pub fn tops() -> Vec<Top> {
    vec![
        Top::of("regions_tiny", Class::Test, || Regions::new(&TINY)),
        Top::of("regions_ecp5", Class::Test, || Regions::new(&ECP5)),
        Top::of("barrier", Class::Test, Barrier::default),
        Top::of("refusals", Class::Test, Refusals::default),
        Top::broken("regions_tiny_broken", breaks::regions, || {
            Regions::new(&TINY)
        }),
        Top::broken("barrier_broken", breaks::barrier, Barrier::default),
        Top::broken("refusals_broken", breaks::refusals, Refusals::default),
    ]
}
