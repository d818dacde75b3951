//! The sizes of an engine that its user can see, from the configuration that it is built of.

use abi::limits::UNIT_PLACES;
use card_model::matching::{CLASSES, Sizes};
use hdl::config::Config;

// The model knows no gates, and both are built of these.
const _: () = assert!(CLASSES == hdl::matching::CLASSES);

/// Slots of each pair: those of one unit of places.
pub const SLOTS: usize = UNIT_PLACES as usize;

/// The sizes of a configuration.
pub fn sizes_of(config: &Config) -> Sizes {
    let Config {
        endpoints,
        pairs,
        exact,
        posted,
        unexpected,
        ..
    } = *config;
    Sizes {
        rows: config.rows,
        row_ways: config.row_ways,
        match_mask: config.match_mask(),
        comparators: config.comparators,
        reserved_exact: config.reserved_exact(),
        reserved_posted: config.reserved_posted(),
        ..Sizes::new(endpoints, pairs, exact, posted, unexpected)
    }
}
