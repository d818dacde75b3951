//! The sizes of an engine that its user can see, from the configuration that it is built of.

use card_model::matching::{CLASSES, SLOTS, Sizes};
use hdl::config::Config;

// The model knows no gates, and both are built of these.
const _: () = assert!(CLASSES == hdl::matching::CLASSES && SLOTS == 16);

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
