//! Words of the mailbox by which `posthorn bench match` and the firmware's program `bench_list` talk. No card ever runs
//! that program: it is there to be measured.

/// Entries that the program has room for.
pub const MAX_DEPTH: usize = 1024;

/// Command: 0 to look for a receive among posted ones, 1 for a message among waiting ones.
pub const UNEXPECTED: usize = 0;
/// Command: ignore bits of every receive, of the lower 32 match bits.
pub const IGNORE: usize = 1;
/// Command: 1 if receives take any source.
pub const ANY_SOURCE: usize = 2;
/// Command: 1 if each receive has ignore bits of its own, and not [`IGNORE`].
pub const OWN_MASKS: usize = 3;
/// Command: entries in the list, 1 to [`MAX_DEPTH`].
pub const DEPTH: usize = 4;
/// Command: searches to time.
pub const SAMPLES: usize = 5;
/// Command: seed of the places that are looked for.
pub const SEED: usize = 6;

/// Answer: searches that found what they should have.
pub const FOUND: usize = 0;
/// Answer: cycles of all searches.
pub const CYCLES: usize = 1;
/// Answer: cycles of the longest search.
pub const LONGEST: usize = 2;
/// Words of the answer.
pub const ANSWER_WORDS: usize = 3;
