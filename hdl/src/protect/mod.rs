//! Protection: which memory a request may use.

mod regions;

pub use regions::{LATENCY, Regions};

use crate::config::{ECP5, TINY};
use crate::tops::{Class, Top};

/// The table alone.
pub fn tops() -> Vec<Top> {
    vec![
        Top::of("regions_tiny", Class::Test, || Regions::new(&TINY)),
        Top::of("regions_ecp5", Class::Test, || Regions::new(&ECP5)),
    ]
}
