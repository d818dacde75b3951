//! The model's memory, of which some accesses fail: those that failed for the gates.
//!
//! Each access that the model makes to memory that may fail is held to the gates' bursts: they have made it, in the order of all that begin with the same
//! beat. It fails if one of its bursts failed; of a write the others are in memory.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use card_model::memory::{BusError, HostMemory, Pieces};
use sim::pins::BEAT_BYTES;

/// A burst of the gates.
#[derive(Clone, Copy, Debug)]
struct Burst {
    cycle: u64,
    end: u64,
    failed: bool,
}

/// The beat that an address is in.
fn beat(address: u64) -> u64 {
    address - address % BEAT_BYTES as u64
}

/// Bursts by their first beat, in order.
type Bursts = BTreeMap<u64, VecDeque<Burst>>;

/// How the model's reads are held to the gates'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// Each is one of the gates', which they made in this cycle or later.
    Since(u64),
    /// They have succeeded: what was read has been seen.
    Seen,
}

/// Memory that fails as it failed for the gates.
#[derive(Debug)]
pub(super) struct Weak {
    pieces: Pieces,
    /// Addresses that may fail.
    fragile: Vec<Range<u64>>,
    read: Bursts,
    written: Bursts,
    pub(super) reads: Reads,
}

impl Weak {
    /// This memory, in which these addresses may fail.
    pub(super) fn new(pieces: Pieces, fragile: Vec<Range<u64>>) -> Self {
        Self {
            pieces,
            fragile,
            read: Bursts::new(),
            written: Bursts::new(),
            reads: Reads::Since(0),
        }
    }

    /// A burst of the gates, from its address to the end of its last beat.
    pub(super) fn burst(&mut self, cycle: u64, write: bool, address: u64, end: u64, failed: bool) {
        let bursts = if write {
            &mut self.written
        } else {
            &mut self.read
        };
        let burst = Burst { cycle, end, failed };
        bursts.entry(beat(address)).or_default().push_back(burst);
    }

    /// The host writes.
    pub(super) fn host_writes(&mut self, address: u64, bytes: &[u8]) {
        let written = self.pieces.write(address, bytes);
        written.expect("its own memory is mapped");
    }

    /// Address of a write of the gates that the model hasn't made.
    pub(super) fn left(&self) -> Option<u64> {
        let mut all = self.written.iter();
        all.find_map(|(&address, left)| (!left.is_empty()).then_some(address))
    }

    pub(super) fn pieces(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.pieces.pieces()
    }

    fn is_fragile(&self, address: u64) -> bool {
        self.fragile.iter().any(|range| range.contains(&address))
    }
}

/// The bursts of an access that begins at `at`, none of which was made before a cycle: the addresses of each, and whether it failed.
fn take(bursts: &mut Bursts, at: Range<u64>, since: u64, what: &str) -> Vec<(Range<u64>, bool)> {
    let mut from = beat(at.start);
    let mut all = Vec::new();
    while from < at.end {
        let queue = bursts.entry(from).or_default();
        while queue.front().is_some_and(|burst| burst.cycle < since) {
            queue.pop_front();
        }
        let burst = queue.pop_front();
        let burst = burst.unwrap_or_else(|| {
            panic!("the model {what} {at:x?}, and the gates don't from {from:#x} on")
        });
        all.push((from.max(at.start)..burst.end.min(at.end), burst.failed));
        from = burst.end;
    }
    assert_eq!(
        from,
        at.end.next_multiple_of(BEAT_BYTES as u64),
        "the model {what} {at:x?}, and the gates more"
    );
    all
}

impl HostMemory for Weak {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), BusError> {
        if !bytes.is_empty()
            && self.is_fragile(address)
            && let Reads::Since(cycle) = self.reads
        {
            let at = address..address + bytes.len() as u64;
            let all = take(&mut self.read, at, cycle, "reads");
            if all.iter().any(|(_, failed)| *failed) {
                return Err(BusError);
            }
        }
        self.pieces.read(address, bytes)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), BusError> {
        if bytes.is_empty() || !self.is_fragile(address) {
            return self.pieces.write(address, bytes);
        }
        let at = address..address + bytes.len() as u64;
        let all = take(&mut self.written, at, 0, "writes");
        for (place, _) in all.iter().filter(|(_, failed)| !failed) {
            let from = (place.start - address) as usize;
            let to = (place.end - address) as usize;
            self.pieces.write(place.start, &bytes[from..to])?;
        }
        match all.iter().any(|(_, failed)| *failed) {
            true => Err(BusError),
            false => Ok(()),
        }
    }
}
