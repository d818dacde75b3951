//! Protection: which memory a request may use.

pub mod breaks;
mod fence;
mod grants;
mod mint;
mod peer_refusals;
pub mod proof;
mod refusals;
mod regions;
mod shut_out;
mod tag_maker;
mod tickets;

pub use fence::Fence;
pub use mint::Mint;
pub use peer_refusals::PeerRefusals;
pub use refusals::Refusals;
pub use regions::{LATENCY, Regions};
pub use shut_out::ShutOut;
pub use tickets::TICKETS;

use crate::config::{ECP5, TINY};
use crate::tops::{Class, Top};

/// The blocks alone.
pub fn tops() -> Vec<Top> {
    vec![
        Top::of("regions_tiny", Class::Test, || Regions::new(&TINY)),
        Top::of("regions_ecp5", Class::Test, || Regions::new(&ECP5)),
        Top::of("fence", Class::Test, Fence::default),
        Top::of("mint_tiny", Class::Test, || Mint::new(&TINY)),
        Top::of("mint_ecp5", Class::Synthesis, || Mint::new(&ECP5)),
        Top::of("refusals", Class::Test, Refusals::default),
        Top::of("peer_refusals", Class::Test, || PeerRefusals::new(&TINY)),
        Top::of("peer_refusals_ecp5", Class::Synthesis, || {
            PeerRefusals::new(&ECP5)
        }),
        Top::of("shut_out", Class::Test, || ShutOut::new(&TINY)),
        Top::of("shut_out_ecp5", Class::Synthesis, || ShutOut::new(&ECP5)),
        Top::broken("regions_tiny_broken", breaks::regions, || {
            Regions::new(&TINY)
        }),
        Top::mutants("regions_tiny_mutants", || Regions::new(&TINY)),
        Top::broken("fence_broken", breaks::fence, Fence::default),
        Top::mutants("fence_mutants", Fence::default),
        Top::broken("mint_tiny_broken", breaks::mint, || Mint::new(&TINY)),
        Top::mutants("mint_tiny_mutants", || Mint::new(&TINY)),
        Top::broken("refusals_broken", breaks::refusals, Refusals::default),
        Top::mutants("refusals_mutants", Refusals::default),
        Top::broken("peer_refusals_broken", breaks::peer_refusals, || {
            PeerRefusals::new(&TINY)
        }),
        Top::mutants("peer_refusals_mutants", || PeerRefusals::new(&TINY)),
        Top::broken("shut_out_broken", breaks::shut_out, || ShutOut::new(&TINY)),
        Top::mutants("shut_out_mutants", || ShutOut::new(&TINY)),
    ]
}
