//! The named configurations: every size of the card that isn't a property of an interface.

use abi::limits::MAX_ENDPOINTS;

/// Sizes of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Name; the top is `nic_<name>`.
    pub name: &'static str,
    /// Endpoints, at most [`MAX_ENDPOINTS`].
    pub endpoints: usize,
    /// Pairs, over all endpoints.
    pub pairs: usize,
    /// Entries of the list of posted receives.
    pub posted: usize,
    /// Entries of the list of unexpected messages.
    pub unexpected: usize,
    /// Regions.
    pub regions: usize,
}

/// For fast tests and formal proofs.
pub const TINY: Config = Config {
    name: "tiny",
    endpoints: 2,
    pairs: 8,
    posted: 16,
    unexpected: 64,
    regions: 32,
};

/// For boards, and the default of the simulator. Both lists are associative memories for now, which
/// stop paying at 64 entries.
pub const ECP5: Config = Config {
    name: "ecp5",
    endpoints: 4,
    pairs: 128,
    posted: 64,
    unexpected: 64,
    regions: 256,
};

/// All configurations that are built.
pub const ALL: &[Config] = &[TINY, ECP5];

const _: () = assert!(TINY.endpoints <= MAX_ENDPOINTS && ECP5.endpoints <= MAX_ENDPOINTS);

impl Config {
    /// The configuration of this name.
    pub fn named(name: &str) -> Option<Self> {
        ALL.iter().copied().find(|config| config.name == name)
    }
}
