//! The firmware as an ELF file: what to load, and which build it is.

use abi::mgmt::{MEMORY_BASE, MEMORY_BYTES};
use object::{Object, ObjectSection, ObjectSegment};

/// Section that holds the build id: eight bytes, little-endian.
pub const BUILD_ID_SECTION: &str = ".posthorn_build_id";

/// Why a file is no firmware for the card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FirmwareError {
    /// Not an ELF file.
    #[error("the firmware is not an ELF file: {0}")]
    NotElf(String),
    /// An ELF file for another processor.
    #[error("the firmware is for {0}, not for 32-bit RISC-V")]
    WrongProcessor(String),
    /// A segment that doesn't fit the memory.
    #[error(
        "the firmware's segment at {address:#x} of {bytes} bytes is not in the management memory \
         ({MEMORY_BYTES} bytes at {MEMORY_BASE:#x}), or doesn't start on a word"
    )]
    OutsideMemory {
        /// Where it wants to be loaded.
        address: u64,
        /// Its size.
        bytes: u64,
    },
    /// No segment has anything to load.
    #[error("the firmware has nothing to load")]
    Empty,
    /// The build id is missing or isn't eight bytes.
    #[error("the firmware has no build id (section {BUILD_ID_SECTION})")]
    NoBuildId,
}

/// Part of the management memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address of its first byte, as the processor sees it; a multiple of 4.
    pub address: u32,
    /// Contents.
    pub bytes: Vec<u8>,
}

/// Firmware that can be loaded into a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firmware {
    elf: Vec<u8>,
    segments: Vec<Segment>,
    build_id: u64,
}

impl Firmware {
    /// Reads an ELF file.
    ///
    /// # Errors
    /// [`FirmwareError`].
    pub fn parse(elf: Vec<u8>) -> Result<Self, FirmwareError> {
        let file = object::File::parse(elf.as_slice())
            .map_err(|error| FirmwareError::NotElf(error.to_string()))?;
        if file.architecture() != object::Architecture::Riscv32 {
            let processor = format!("{:?}", file.architecture());
            return Err(FirmwareError::WrongProcessor(processor));
        }
        let mut segments = Vec::new();
        for segment in file.segments() {
            let bytes = segment
                .data()
                .map_err(|error| FirmwareError::NotElf(error.to_string()))?;
            if bytes.is_empty() {
                continue;
            }
            segments.push(place(segment.address(), bytes)?);
        }
        if segments.is_empty() {
            return Err(FirmwareError::Empty);
        }
        let section = file.section_by_name(BUILD_ID_SECTION);
        let build_id = section
            .and_then(|section| section.data().ok())
            .and_then(|bytes| bytes.try_into().ok())
            .map(u64::from_le_bytes)
            .ok_or(FirmwareError::NoBuildId)?;
        Ok(Self {
            elf,
            segments,
            build_id,
        })
    }

    /// The whole file.
    pub fn elf(&self) -> &[u8] {
        &self.elf
    }

    /// What is to be loaded.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The build id, as the firmware itself reports it (`Identity::build_id`).
    pub const fn build_id(&self) -> u64 {
        self.build_id
    }
}

fn place(address: u64, bytes: &[u8]) -> Result<Segment, FirmwareError> {
    let fits = || {
        let offset = address.checked_sub(u64::from(MEMORY_BASE))?;
        let end = offset.checked_add(bytes.len() as u64)?;
        (end <= u64::from(MEMORY_BYTES) && offset.is_multiple_of(4)).then_some(address as u32)
    };
    let address = fits().ok_or(FirmwareError::OutsideMemory {
        address,
        bytes: bytes.len() as u64,
    })?;
    Ok(Segment {
        address,
        bytes: bytes.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Elf, LogMessage};

    #[test]
    fn segments_and_build_id_are_found() {
        let firmware = Firmware::parse(Elf::default().build()).unwrap();
        assert_eq!(firmware.build_id(), 0x0123_4567_89ab_cdef);
        let expected = Segment {
            address: MEMORY_BASE + 0x80,
            bytes: vec![1, 2, 3, 4, 5],
        };
        assert_eq!(firmware.segments(), [expected]);
    }

    #[test]
    fn what_is_no_firmware_is_refused_with_the_reason() {
        let refuse = |elf: Elf| Firmware::parse(elf.build()).unwrap_err();
        assert!(matches!(
            Firmware::parse(b"MZ".to_vec()),
            Err(FirmwareError::NotElf(_))
        ));
        let other = Elf {
            machine: object::elf::EM_ARM,
            ..Elf::default()
        };
        assert!(matches!(refuse(other), FirmwareError::WrongProcessor(_)));
        for (address, len) in [
            (MEMORY_BASE - 4, 4),
            (MEMORY_BASE + 2, 4),
            (MEMORY_BASE + MEMORY_BYTES - 4, 5),
            (0, 4),
        ] {
            let outside = Elf {
                address,
                image: vec![0; len],
                ..Elf::default()
            };
            let error = FirmwareError::OutsideMemory {
                address: address.into(),
                bytes: len as u64,
            };
            assert_eq!(refuse(outside), error);
        }
        let empty = Elf {
            image: vec![],
            ..Elf::default()
        };
        assert_eq!(refuse(empty), FirmwareError::Empty);
        let anonymous = Elf {
            build_id: None,
            messages: vec![LogMessage::info("unused")],
            ..Elf::default()
        };
        assert_eq!(refuse(anonymous), FirmwareError::NoBuildId);
    }
}
