//! The firmware's log: bytes from the card's pins, decoded with the ELF file they were built with.
//!
//! The bytes are `defmt` frames: indices into tables that only the ELF file has. Another ELF decodes them to
//! plausible nonsense, so the decoder can't be had without the build id that the running firmware reports.

use std::fmt;

use defmt_decoder::{DecodeError, Locations, Table};

use crate::NS_PER_CYCLE;
use crate::firmware::Firmware;

/// A byte of a card's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogByte {
    /// Cycle in which it was on the pins.
    pub cycle: u64,
    /// The byte.
    pub byte: u8,
}

/// Why a log can't be decoded.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The firmware in the card isn't the one of the file.
    #[error(
        "the card runs firmware build {running:016x}, the file is build {file:016x}: \
         its log can't be read with this file"
    )]
    WrongBuild {
        /// What the card reports.
        running: u64,
        /// What the file says.
        file: u64,
    },
    /// The file has no tables.
    #[error("the firmware file has no defmt tables: was it stripped?")]
    NoTables,
    /// The tables can't be read.
    #[error("the firmware file's defmt tables can't be read: {0}")]
    BadTables(String),
}

/// A line of a card's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Cycle of its last byte.
    pub cycle: u64,
    /// `trace` to `error`, or empty for one without a level.
    pub level: &'static str,
    /// The message.
    pub text: String,
    /// File and line that logged it, if the file has debug information.
    pub location: Option<String>,
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = (self.cycle * NS_PER_CYCLE) as f64 / 1000.0;
        write!(f, "{micros:>12.3} µs {:<5} {}", self.level, self.text)?;
        match &self.location {
            Some(location) => write!(f, "  ({location})"),
            None => Ok(()),
        }
    }
}

/// Decodes the logs of cards that run one firmware.
pub struct LogDecoder {
    table: Table,
    locations: Locations,
}

impl LogDecoder {
    /// A decoder for cards that report `running` as the build id of their firmware.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn new(firmware: &Firmware, running: u64) -> Result<Self, LogError> {
        let file = firmware.build_id();
        if running != file {
            return Err(LogError::WrongBuild { running, file });
        }
        let table = Table::parse(firmware.elf())
            .map_err(|error| LogError::BadTables(error.to_string()))?
            .ok_or(LogError::NoTables)?;
        let locations = table
            .get_locations(firmware.elf())
            .map_err(|error| LogError::BadTables(error.to_string()))?;
        Ok(Self { table, locations })
    }

    /// Decodes a log. What can't be decoded becomes a line that says so.
    pub fn decode(&self, bytes: &[LogByte]) -> Vec<LogLine> {
        let mut decoder = self.table.new_stream_decoder();
        let mut lines = Vec::new();
        for byte in bytes {
            decoder.received(&[byte.byte]);
            loop {
                let decoded = decoder.decode();
                let malformed = decoded.is_err();
                let line = match decoded {
                    Ok(frame) => LogLine {
                        cycle: byte.cycle,
                        level: frame.level().map_or("", |level| level.as_str()),
                        text: frame.display_message().to_string(),
                        location: self.locations.get(&frame.index()).map(|location| {
                            let file = location
                                .file
                                .file_name()
                                .unwrap_or(location.file.as_os_str());
                            format!("{}:{}", file.to_string_lossy(), location.line)
                        }),
                    },
                    Err(DecodeError::UnexpectedEof) => break,
                    Err(DecodeError::Malformed) => LogLine {
                        cycle: byte.cycle,
                        level: "error",
                        text: "(a part of the log that can't be decoded)".into(),
                        location: None,
                    },
                };
                lines.push(line);
                if malformed && !self.table.encoding().can_recover() {
                    return lines;
                }
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Elf, LogMessage};

    fn firmware() -> Firmware {
        let elf = Elf {
            messages: vec![
                LogMessage::info("up"),
                LogMessage::warn("pair {=u8} failed"),
            ],
            ..Elf::default()
        };
        Firmware::parse(elf.build()).unwrap()
    }

    /// Bytes of frames in rzCOBS, ten cycles apart.
    fn bytes(frames: &[&[u8]]) -> Vec<LogByte> {
        let bytes = frames.iter().copied().flatten();
        (100..)
            .step_by(10)
            .zip(bytes)
            .map(|(cycle, &byte)| LogByte { cycle, byte })
            .collect()
    }

    #[test]
    fn lines_are_decoded_with_their_cycle() {
        let firmware = firmware();
        let decoder = LogDecoder::new(&firmware, firmware.build_id()).unwrap();
        // Bit k of the last byte says that byte k is zero: the index in two bytes, then the argument.
        let log = bytes(&[&[1, 0x7e, 0], &[2, 7, 0x7a, 0]]);
        let lines: Vec<_> = decoder
            .decode(&log)
            .into_iter()
            .map(|line| (line.cycle, line.level, line.text))
            .collect();
        let expected = [
            (120, "info", "up".to_string()),
            (160, "warn", "pair 7 failed".to_string()),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn rubbish_is_told_and_what_follows_is_decoded() {
        let firmware = firmware();
        let decoder = LogDecoder::new(&firmware, firmware.build_id()).unwrap();
        let lines = decoder.decode(&bytes(&[&[0x55, 0x66, 0x77, 0x7f, 0], &[1, 0x7e, 0]]));
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].text.contains("can't be decoded"));
        assert_eq!(lines[1].text, "up");
    }

    #[test]
    fn another_build_is_refused() {
        let error = LogDecoder::new(&firmware(), 1).err().unwrap();
        assert!(matches!(error, LogError::WrongBuild { running: 1, .. }));
        assert!(error.to_string().contains("0123456789abcdef"));
    }

    #[test]
    fn a_file_without_tables_is_refused() {
        let firmware = Firmware::parse(Elf::default().build()).unwrap();
        let error = LogDecoder::new(&firmware, firmware.build_id())
            .err()
            .unwrap();
        assert!(matches!(error, LogError::NoTables));
    }
}
