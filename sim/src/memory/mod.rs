//! Host memory behind the card's AXI4 manager.
//!
//! ```text
//!            ar ──► bursts ──(latency)──► r      one beat a cycle, in order
//!  card      aw ──► bursts ─┐
//!            w  ──► beats ──┴─(latency)──► memory, then b
//! ```
//!
//! A read burst answers `latency` cycles after its address, a write burst is in memory and answered `latency` cycles after
//! its last beat. Bursts are answered in order and may be outstanding. Each of the five channels holds back
//! by itself, as its seeded [`Idle`] says; data may be taken ahead of its address. Reads and writes aren't ordered with
//! each other: a read sees what has been answered.
//!
//! An access to an address that isn't mapped is answered DECERR and touches nothing.

mod map;
mod read;
mod write;

use std::ptr::NonNull;

pub use map::{GAP, MapError, MapTable, PAGE};
use read::ReadPort;
use write::WritePort;

use crate::pins::{AddressBeat, BEAT_BYTES, BEAT_SIZE, Inputs, Outputs};
use crate::protocol::{Channel, Violation};
use crate::seed::BackPressure;

/// Cycles of 8 ns that the default 250 ns of memory latency take, rounded up.
pub const DEFAULT_LATENCY: u32 = 250_u32.div_ceil(8);

/// How the memory behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Cycles from the address (read) or the last beat (write) to the answer; at least 1.
    pub latency: u32,
    /// Bursts of each direction that may be outstanding; at least 1.
    pub outstanding: usize,
    /// Back-pressure on each of the five channels.
    pub pressure: BackPressure,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            latency: DEFAULT_LATENCY,
            outstanding: 16,
            pressure: BackPressure::NONE,
        }
    }
}

/// What the memory has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryCount {
    /// Read bursts answered.
    pub reads: u64,
    /// Write bursts answered.
    pub writes: u64,
    /// Bytes of read beats.
    pub read_bytes: u64,
    /// Bytes of write beats.
    pub write_bytes: u64,
    /// Bursts that touched an address that isn't mapped.
    pub unmapped: u64,
}

/// Memory of one card's host.
pub struct Memory {
    map: MapTable,
    read: ReadPort,
    write: WritePort,
    count: MemoryCount,
}

impl Memory {
    /// Memory of the host of `card`, with nothing mapped.
    pub fn new(config: MemoryConfig, seed: u64, card: usize) -> Self {
        Self {
            map: MapTable::new(card),
            read: ReadPort::new(config, seed, card),
            write: WritePort::new(config, seed, card),
            count: MemoryCount::default(),
        }
    }

    /// See [`MapTable::map`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn map(&mut self, host: NonNull<u8>, len: usize) -> Result<u64, MapError> {
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { self.map.map(host, len) }
    }

    /// See [`MapTable::unmap`].
    ///
    /// # Errors
    /// As there.
    pub fn unmap(&mut self, card: u64) -> Result<(), MapError> {
        self.map.unmap(card)
    }

    /// Undoes all mappings.
    pub fn unmap_all(&mut self) {
        self.map.clear();
    }

    /// What has been done so far.
    pub const fn count(&self) -> MemoryCount {
        self.count
    }

    /// Whether no burst is under way.
    pub fn is_idle(&self) -> bool {
        self.read.is_idle() && self.write.is_idle()
    }

    /// Fills this cycle's inputs. Unless it is `open`, it takes nothing and offers nothing new.
    #[inline]
    pub fn drive(&mut self, cycle: u64, open: bool, inputs: &mut Inputs) {
        let (map, count) = (&mut self.map, &mut self.count);
        self.read.drive(cycle, open, map, count, inputs);
        self.write.drive(cycle, open, map, count, inputs);
    }

    /// Looks at what happened in this cycle.
    ///
    /// # Errors
    /// The rule that the card broke.
    #[inline]
    pub fn sample(
        &mut self,
        cycle: u64,
        inputs: &Inputs,
        outputs: &Outputs,
    ) -> Result<(), Violation> {
        self.read.sample(cycle, inputs, outputs)?;
        self.write.sample(cycle, inputs, outputs)
    }
}

/// A burst that has been accepted.
#[derive(Clone, Copy, Debug)]
struct Burst {
    id: u8,
    addr: u64,
    beats: u16,
    /// Beats done.
    done: u16,
    /// First cycle of the answer.
    due: u64,
    /// Whether any access so far hit nothing.
    unmapped: bool,
}

impl Burst {
    fn accept(channel: Channel, beat: &AddressBeat, due: u64) -> Result<Self, Violation> {
        if beat.burst != 1 || beat.size != BEAT_SIZE {
            return Err(Violation::Shape {
                channel,
                burst: beat.burst,
                size: beat.size,
            });
        }
        if beat.lock {
            return Err(Violation::Exclusive(channel));
        }
        let beats = u16::from(beat.len) + 1;
        let first = beat.addr & !(BEAT_BYTES as u64 - 1);
        if first % PAGE + u64::from(beats) * BEAT_BYTES as u64 > PAGE {
            return Err(Violation::Crosses {
                channel,
                addr: beat.addr,
                beats,
            });
        }
        Ok(Self {
            id: beat.id,
            addr: beat.addr,
            beats,
            done: 0,
            due,
            unmapped: false,
        })
    }

    /// Address of the next beat, a multiple of its size.
    const fn beat_addr(&self) -> u64 {
        (self.addr & !(BEAT_BYTES as u64 - 1)) + self.done as u64 * BEAT_BYTES as u64
    }
}

#[cfg(test)]
mod tests;
