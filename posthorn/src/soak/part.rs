//! The part of a window that one writer may use: what the writer does with it, and what has to be in it therefore.
//!
//! ```text
//!  key of the connection ─► Plan ─┬─ blank, access 0, 1, 2, … ─► what a get has to read; what the owner has to find in the end
//!                                 └─ signal 0, 1, 2, …
//! ```
//!
//! Writer and owner both know the key, and by it the plan. The next connection has another key, so its bytes are others: those of a connection that has ended are
//! found out.

use std::ops::Range;

use host_driver::RemoteKey;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::mix;

/// Bytes of a part: more than a frame carries, so that some accesses are cut.
pub const PART: usize = 1536;
/// Bytes in front of each part that nobody may write. No multiple of eight, so that parts begin anywhere.
const GAP: usize = 37;
/// Longest access of most.
const SHORT: usize = 96;

/// Where the part of a writer is in each window.
pub const fn part_of(writer: usize) -> Range<usize> {
    let begin = GAP + writer * (PART + GAP);
    begin..begin + PART
}

/// Bytes of a window with parts for so many writers.
pub const fn window_bytes(writers: usize) -> usize {
    writers * (PART + GAP) + GAP
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Write.
    Put,
    /// Read.
    Get,
}

/// An access of a writer to its part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// What it does,
    pub kind: Kind,
    /// and with which bytes of the part.
    pub range: Range<usize>,
}

/// All that a writer does over one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan(u64);

impl Plan {
    /// That of the connection over which this key was granted.
    pub const fn of(key: RemoteKey) -> Self {
        Self(mix(key.to_bits()))
    }

    const fn bits(self, number: u64) -> u64 {
        mix(self.0 ^ mix(number))
    }

    fn stream(self, number: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(self.bits(!number))
    }

    /// The word of a signal.
    pub const fn signal(self, number: u64) -> u64 {
        mix(self.bits(number))
    }

    /// An access. Few are long, and few have no bytes.
    pub fn access(self, number: u64) -> Access {
        let bits = self.bits(number);
        let kind = match bits % 8 < 5 {
            true => Kind::Put,
            false => Kind::Get,
        };
        let most = match (bits >> 3).is_multiple_of(8) {
            true => PART,
            false => SHORT,
        };
        let length = (bits >> 6) as usize % (most + 1);
        let begin = (bits >> 32) as usize % (PART - length + 1);
        Access {
            kind,
            range: begin..begin + length,
        }
    }

    /// What a put writes.
    pub fn fill(self, number: u64, bytes: &mut [u8]) {
        self.stream(number).fill_bytes(bytes);
    }

    /// The part before the first put: its owner's bytes.
    pub fn blank(self) -> Vec<u8> {
        let mut bytes = vec![0; PART];
        self.fill(u64::MAX, &mut bytes);
        bytes
    }

    /// Does to `bytes` of the part what an access does.
    pub fn apply(self, number: u64, bytes: &mut [u8]) {
        let Access { kind, range } = self.access(number);
        if kind == Kind::Put {
            self.fill(number, &mut bytes[range]);
        }
    }

    /// The part behind so many accesses.
    pub fn after(self, accesses: u64) -> Vec<u8> {
        let mut bytes = self.blank();
        for number in 0..accesses {
            self.apply(number, &mut bytes);
        }
        bytes
    }

    /// Whether the part may have these bytes when its writer has failed: behind some of the first `accesses`, and a share of the next one.
    pub fn may_end_as(self, accesses: u64, bytes: &[u8]) -> bool {
        let mut before = self.blank();
        if before == bytes {
            return true;
        }
        (0..accesses).any(|number| {
            let mut behind = before.clone();
            self.apply(number, &mut behind);
            let mut all = bytes.iter().zip(before.iter().zip(&behind));
            let fits = all.all(|(byte, (old, new))| [old, new].contains(&byte));
            before = behind;
            fits
        })
    }
}

/// The first byte that differs: where, which it is and which it has to be.
pub fn first_wrong(is: &[u8], has_to_be: &[u8]) -> Option<(usize, u8, u8)> {
    let mut both = is.iter().zip(has_to_be);
    let at = both.position(|(is, has_to_be)| is != has_to_be)?;
    Some((at, is[at], has_to_be[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Plan = Plan(7);

    #[test]
    fn parts_lie_in_the_window_and_not_in_each_other() {
        let mut end = 0;
        for writer in 0..8 {
            let part = part_of(writer);
            assert_eq!((part.len(), part.start), (PART, end + GAP));
            end = part.end;
        }
        assert_eq!(window_bytes(8), end + GAP);
    }

    #[test]
    fn accesses_are_of_every_kind_and_of_all_lengths() {
        let all: Vec<Access> = (0..1000).map(|number| PLAN.access(number)).collect();
        for kind in [Kind::Put, Kind::Get] {
            let lengths = all.iter().filter(|access| access.kind == kind);
            let lengths: Vec<usize> = lengths.map(|access| access.range.len()).collect();
            assert!(lengths.contains(&0) && lengths.iter().any(|&length| length > 1024));
        }
        assert!(all.iter().all(|access| access.range.end <= PART));
        assert!(all.iter().any(|access| access.range.start % 8 != 0));
    }

    #[test]
    fn a_part_whose_writer_has_failed_is_as_it_was_behind_some_access_or_in_the_midst_of_it() {
        const ALL: u64 = 40;
        for k in 0..ALL {
            let (before, behind) = (PLAN.after(k), PLAN.after(k + 1));
            assert!(PLAN.may_end_as(ALL, &before));
            let (half, odd) = (PART / 2, before.clone());
            let mut mixed = [&behind[..half], &odd[half..]].concat();
            assert!(PLAN.may_end_as(ALL, &mixed));
            mixed[(k as usize * 31) % PART] ^= 0x55;
            assert!(!PLAN.may_end_as(ALL, &mixed), "access {k}");
        }
    }

    #[test]
    fn a_put_that_is_missing_is_found_out_and_so_are_bytes_of_another_connection() {
        const ALL: u64 = 40;
        // No later one writes all that the last long one does.
        let long = (0..ALL - 1).rev().find(|&number| {
            let Access { kind, range } = PLAN.access(number);
            kind == Kind::Put && range.len() > SHORT
        });
        let missing = long.expect("some are long");
        let mut bytes = PLAN.blank();
        for number in (0..ALL).filter(|&number| number != missing) {
            PLAN.apply(number, &mut bytes);
        }
        assert!(first_wrong(&bytes, &PLAN.after(ALL)).is_some());
        assert!(!PLAN.may_end_as(ALL, &bytes));
        assert!(!PLAN.may_end_as(ALL, &Plan(8).blank()));
    }
}
