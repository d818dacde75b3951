//! The named configurations: every size of the card that isn't a property of an interface.

use abi::capability;
use abi::limits::{MAX_ENDPOINTS, MAX_GRANTS, MAX_PAIRS, MAX_REGIONS, MAX_RULES};

/// Rows of each table for `entries` receives: in both together as many as receives, so that two rows of three suffice for nearly all.
pub const fn table_rows(entries: usize) -> usize {
    entries.div_ceil(2).next_power_of_two()
}

/// Sends on their way from their queues to the wire: payloads being read, and messages that wait to be framed. At a memory latency of 125
/// cycles this keeps one for every ten cycles under way.
pub const JOBS: usize = 16;

/// Sizes of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Name; the top is `nic_<name>`.
    pub name: &'static str,
    /// Endpoints, at most [`MAX_ENDPOINTS`].
    pub endpoints: usize,
    /// Pairs, over all endpoints.
    pub pairs: usize,
    /// Posted receives on the associative side of matching, at most 64.
    pub posted: usize,
    /// Posted receives on the exact side of matching.
    pub exact: usize,
    /// Rows of each of its tables: the bins that a key's hash chooses from. A power of two; [`table_rows`] is what suffices
    /// for nearly all receives.
    pub rows: usize,
    /// Ways of a row, 2 or 3. Two suffice for nearly all receives where there are as many rows as receives.
    pub row_ways: usize,
    /// Match bits that are compared, from the lowest on: 1 to 64. What is beyond may be anything.
    pub match_bits: usize,
    /// Places of unexpected messages: the sum of the credits that admission may give, each pair's rounded up to units of
    /// `UNIT_PLACES`. A number of units, at most 256.
    pub unexpected: usize,
    /// Descriptors of sends, of which each pair has a run: a power of two.
    pub descriptors: usize,
    /// Places of unexpected messages that a search looks at in a cycle.
    pub comparators: usize,
    /// Regions.
    pub regions: usize,
    /// Rules.
    pub rules: usize,
    /// Grants of regions to peers, a sixteenth of which may be shared.
    pub grants: usize,
    /// What its gates have beyond what every card has: `abi::capability`.
    pub capabilities: u32,
}

/// For fast tests and formal proofs.
pub const TINY: Config = Config {
    name: "tiny",
    endpoints: 2,
    pairs: 8,
    posted: 16,
    exact: 64,
    rows: table_rows(64),
    row_ways: 3,
    match_bits: 64,
    unexpected: 64,
    descriptors: 64,
    comparators: 8,
    regions: 32,
    rules: 4,
    grants: 64,
    capabilities: capability::ALL,
};

/// For boards, and the default of the simulator.
pub const ECP5: Config = Config {
    name: "ecp5",
    endpoints: 4,
    pairs: 128,
    posted: 32,
    exact: 992,
    rows: table_rows(992),
    row_ways: 3,
    match_bits: 64,
    unexpected: 1024,
    descriptors: 512,
    comparators: 4,
    regions: 256,
    rules: 16,
    grants: 256,
    capabilities: capability::ALL,
};

/// What fits an LFE5U-85F, 84 thousand look-up tables and 208 block RAMs: a half of most of what [`ECP5`] has.
pub const ECP5_85F: Config = Config {
    name: "ecp5_85f",
    pairs: 64,
    posted: 16,
    exact: 496,
    rows: 512,
    row_ways: 2,
    unexpected: 512,
    comparators: 2,
    descriptors: 256,
    regions: 128,
    grants: 128,
    ..ECP5
};

/// Small, with room for few receives: for tests of what happens when there is none. No card is built with it.
pub const SCARCE: Config = Config {
    name: "scarce",
    posted: 4,
    exact: 12,
    rows: table_rows(12),
    ..TINY
};

/// Sizes that no card has, for tests of blocks whose sizes are parameters: nothing is a power of two that needn't be. Its tables have
/// fewer than half the places that they should, so that many receives overflow.
pub const ODD: Config = Config {
    name: "odd",
    endpoints: 3,
    pairs: 5,
    posted: 7,
    exact: 40,
    rows: 8,
    row_ways: 2,
    match_bits: 20,
    unexpected: 40,
    descriptors: 32,
    comparators: 8,
    regions: 5,
    rules: 3,
    grants: 20,
    capabilities: 0,
};

/// Many small shares, and more rows than receives.
pub const MANY: Config = Config {
    name: "many",
    endpoints: 16,
    pairs: 33,
    posted: 33,
    exact: 300,
    rows: 512,
    row_ways: 3,
    match_bits: 55,
    unexpected: 264,
    descriptors: 256,
    comparators: 4,
    regions: 33,
    rules: 5,
    grants: 48,
    capabilities: 0,
};

/// What a large FPGA would have. Only its matching engine is built, to measure lists of that size: there is no datapath of 512
/// bits, which such a card needs. Either side has as many receives as its gates can have.
pub const WIDE: Config = Config {
    name: "wide",
    endpoints: 16,
    pairs: 2048,
    posted: 64,
    exact: 8192,
    rows: table_rows(8192),
    row_ways: 3,
    match_bits: 64,
    unexpected: 16384,
    descriptors: 8192,
    comparators: 8,
    regions: 4096,
    rules: 64,
    grants: 16384,
    capabilities: 0,
};

/// All configurations that are simulated every day.
pub const ALL: &[Config] = &[TINY, ECP5];

/// Those for boards: synthesised, and simulated if somebody asks for them by name.
pub const BOARDS: &[Config] = &[ECP5_85F];

/// All that a matching engine is built of, to be measured.
pub const ENGINES: &[Config] = &[TINY, ECP5, WIDE];

const _: () = assert!(TINY.endpoints <= MAX_ENDPOINTS && ECP5.endpoints <= MAX_ENDPOINTS);
const _: () = assert!(
    TINY.pairs <= MAX_PAIRS && ECP5.pairs <= MAX_PAIRS,
    "the firmware has no room for so many pairs"
);
const _: () = assert!(
    TINY.descriptors >= 2 * TINY.pairs && ECP5.descriptors >= 2 * ECP5.pairs,
    "the shortest run of descriptors is 2"
);
const _: () = assert!(
    TINY.regions <= MAX_REGIONS && ECP5.regions <= MAX_REGIONS,
    "the firmware has no room for so many regions"
);

const _: () = assert!(
    TINY.grants <= MAX_GRANTS && ECP5.grants <= MAX_GRANTS,
    "the firmware has no room for so many grants, and would take the rows behind them for others"
);

const _: () = assert!(
    TINY.rules <= MAX_RULES && ECP5.rules <= MAX_RULES,
    "the firmware has no room for so many rules"
);

impl Config {
    /// Which match bits are compared.
    ///
    /// # Panics
    /// If there are none, or more than 64.
    pub fn match_mask(&self) -> u64 {
        assert!(
            (1..=64).contains(&self.match_bits),
            "{} match bits; there may be 1 to 64",
            self.match_bits
        );
        u64::MAX >> (64 - self.match_bits)
    }

    /// Of `exact`, what each endpoint has for itself; the rest is common.
    pub fn reserved_exact(&self) -> usize {
        self.exact / (2 * self.endpoints)
    }

    /// Of `posted`, what each endpoint has for itself; the rest is common.
    pub fn reserved_posted(&self) -> usize {
        self.posted / (2 * self.endpoints)
    }

    /// The configuration of this name.
    pub fn named(name: &str) -> Option<Self> {
        let mut known = ALL.iter().chain(BOARDS).copied();
        known.find(|config| config.name == name)
    }

    /// The configuration of this name that a matching engine is built of.
    pub fn of_engine(name: &str) -> Option<Self> {
        ENGINES.iter().copied().find(|config| config.name == name)
    }
}
