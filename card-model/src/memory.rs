//! The host's memory as a card reaches it: by addresses of the card, a byte at a time or many, and an error where nothing is mapped.

use std::collections::BTreeMap;

/// The host's memory answered an access with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusError;

/// What a card reads and writes.
pub trait HostMemory {
    /// Reads `bytes.len()` bytes from card address `address` on.
    ///
    /// # Errors
    /// If not all of them are mapped.
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), BusError>;

    /// Writes `bytes` from card address `address` on.
    ///
    /// # Errors
    /// If not all of them are mapped; nothing is written then.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), BusError>;

    /// Writes an entry of a queue, its last word last: the host that sees the phase there sees the whole entry.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn write_entry(&mut self, address: u64, words: &[u64]) -> Result<(), BusError> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write(address, &bytes)
    }
}

/// Memory of its own, mapped piece by piece, for tests.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    /// Bytes of each piece, by the address of its first.
    pieces: BTreeMap<u64, Vec<u8>>,
}

impl Pieces {
    /// Maps `length` zeroed bytes at `address`.
    ///
    /// # Panics
    /// If some of them are mapped.
    pub fn map(&mut self, address: u64, length: usize) {
        let before = self.pieces.range(..address + length as u64).next_back();
        let ends = before.is_none_or(|(start, bytes)| start + bytes.len() as u64 <= address);
        assert!(ends, "{address:#x} is mapped");
        self.pieces.insert(address, vec![0; length]);
    }

    /// Takes the piece at `address` away.
    pub fn unmap(&mut self, address: u64) {
        self.pieces.remove(&address);
    }

    /// All pieces, by address.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.pieces.iter().map(|(&at, bytes)| (at, &bytes[..]))
    }

    fn find(&mut self, address: u64, length: usize) -> Result<&mut [u8], BusError> {
        let piece = self.pieces.range_mut(..=address).next_back();
        let (start, bytes) = piece.ok_or(BusError)?;
        let offset = usize::try_from(address - start).map_err(|_| BusError)?;
        let end = offset.checked_add(length).ok_or(BusError)?;
        bytes.get_mut(offset..end).ok_or(BusError)
    }
}

impl HostMemory for Pieces {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), BusError> {
        if !bytes.is_empty() {
            bytes.copy_from_slice(self.find(address, bytes.len())?);
        }
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), BusError> {
        if !bytes.is_empty() {
            self.find(address, bytes.len())?.copy_from_slice(bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_partly_mapped_is_an_error_and_writes_nothing() {
        let mut memory = Pieces::default();
        memory.map(0x1000, 16);
        memory.map(0x1010, 16);
        assert_eq!(memory.write(0x100c, &[7; 8]), Err(BusError));
        assert_eq!(memory.write(0x1020, &[7]), Err(BusError));
        assert_eq!(memory.write(0xfff, &[7]), Err(BusError));
        assert_eq!(memory.write(0, &[]), Ok(()), "nothing touches no memory");
        assert!(memory.pieces().all(|(_, bytes)| bytes == [0; 16]));
        assert_eq!(memory.write(0x1018, &[7; 8]), Ok(()));
        let mut seen = [0; 2];
        assert_eq!(memory.read(0x1017, &mut seen), Ok(()));
        assert_eq!(seen, [0, 7]);
    }
}
