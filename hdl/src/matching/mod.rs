//! Tag matching: posted receives and unexpected messages, and the operations on them.
//!
//! ```text
//!              ┌───────────────────────────── Lists ──────────────────────────────┐
//!              │            ┌► Exact         posted, of a class: hashed, in memory  │
//!   command ──►│ front ─────┼► Associative   posted, the odd ones: compared at once │
//!     reply ◄──│ decide ◄───┴► Unexpected    by pair, rows of places in memory      │
//!              └──────────────────────────────────────────────────────────────────┘
//! ```
//!
//! An operation's time doesn't depend on the number of receives posted or messages waiting, with one exception: a receive
//! from any source looks at each row that holds a message of its endpoint. An entry's number stays while it lives, so the
//! user can keep its payload elsewhere under that number.

mod age;
mod associative;
pub mod breaks;
mod classes;
mod exact;
mod handle_way;
mod hash;
mod invariants;
mod key_way;
mod lists;
mod one_hot;
mod order;
mod place;
mod places;
pub mod proof;
pub mod proof_lists;
mod quota;
mod rows;
mod seed;
mod told;
mod way;

pub use age::Age;
pub use associative::{Associative, AssociativeEntry, AssociativeSearch};
pub use classes::CLASSES;
pub use exact::{Exact, MAX_EXACT};
pub use hash::{HandleHash, KeyHash};
pub use invariants::Invariants;
pub use lists::Lists;
pub use one_hot::OneHot;
pub use order::{MAX_ENTRIES, Order};
pub use quota::{Quota, Share};
pub use rows::UnexpectedRows;
pub use seed::Seed;

pub use crate::config::table_rows;
pub use crate::types::{Operation, Search};

use crate::config::{self, Config};
use crate::tops::{Class, Top};

/// The lists of each configuration, alone, and their parts.
pub fn tops() -> Vec<Top> {
    let associative = |config: &Config| {
        let reserved = config.reserved_posted();
        Associative::new(config.posted, config.endpoints, config.pairs, reserved)
    };
    let quota = |config: &Config| {
        let reserved = config.reserved_posted();
        Quota::new(config.endpoints, config.posted, reserved)
    };
    vec![
        Top::of("lists_tiny", Class::Test, || Lists::new(&config::TINY)),
        Top::of("lists_ecp5", Class::Test, || Lists::new(&config::ECP5)),
        Top::of("lists_odd", Class::Test, || Lists::new(&config::ODD)),
        Top::of("lists_many", Class::Bench, || Lists::new(&config::MANY)),
        Top::of("lists_wide", Class::Bench, || Lists::new(&config::WIDE)),
        Top::of("associative_tiny", Class::Test, move || {
            associative(&config::TINY)
        }),
        Top::of("associative_ecp5", Class::Test, move || {
            associative(&config::ECP5)
        }),
        Top::broken("lists_tiny_broken", breaks::lists, || {
            Lists::new(&config::TINY)
        }),
        Top::broken("associative_tiny_broken", breaks::associative, move || {
            associative(&config::TINY)
        }),
        Top::broken("quota_tiny_broken", breaks::quota, move || {
            quota(&config::TINY)
        }),
        Top::mutants("quota_tiny_mutants", move || quota(&config::TINY)),
        Top::mutants("associative_tiny_mutants", move || {
            associative(&config::TINY)
        }),
        Top::of("exact_tiny", Class::Synthesis, || {
            Exact::new(config::TINY.exact, config::TINY.rows, config::TINY.row_ways)
        }),
        Top::of("exact_ecp5", Class::Synthesis, || {
            Exact::new(config::ECP5.exact, config::ECP5.rows, config::ECP5.row_ways)
        }),
        Top::of("quota_tiny", Class::Test, move || quota(&config::TINY)),
        Top::of("quota_ecp5", Class::Test, move || quota(&config::ECP5)),
        Top::of("unexpected_tiny", Class::Test, || {
            UnexpectedRows::new(
                config::TINY.endpoints,
                config::TINY.pairs,
                config::TINY.unexpected,
                config::TINY.comparators,
            )
        }),
        Top::of("unexpected_ecp5", Class::Test, || {
            UnexpectedRows::new(
                config::ECP5.endpoints,
                config::ECP5.pairs,
                config::ECP5.unexpected,
                config::ECP5.comparators,
            )
        }),
        Top::broken("unexpected_tiny_broken", breaks::unexpected, || {
            UnexpectedRows::new(
                config::TINY.endpoints,
                config::TINY.pairs,
                config::TINY.unexpected,
                config::TINY.comparators,
            )
        }),
        Top::mutants("unexpected_tiny_mutants", || {
            UnexpectedRows::new(
                config::TINY.endpoints,
                config::TINY.pairs,
                config::TINY.unexpected,
                config::TINY.comparators,
            )
        }),
        Top::mutants("lists_tiny_mutants", || Lists::new(&config::TINY)),
        Top::of("unexpected_odd", Class::Test, || {
            UnexpectedRows::new(3, 5, 72, 4)
        }),
    ]
}
