//! Protection: which memory a request may use.

mod refusals;
mod regions;

pub use refusals::{Refusals, RefusalsMutation};
pub use regions::{LATENCY, Regions, RegionsMutation};

use crate::config::{ECP5, TINY};
use crate::tops::{Class, Top};

/// The blocks alone, which can be broken by an input `mutation`.
pub fn tops() -> Vec<Top> {
    vec![
        Top::of("regions_tiny", Class::Test, || Regions::mutable(&TINY)),
        Top::of("regions_ecp5", Class::Test, || Regions::mutable(&ECP5)),
        Top::of("refusals", Class::Test, Refusals::mutable),
    ]
}
