//! The two outward ports of the firmware: the byte port of its log, and the line that says it is up.

use abi::mgmt::{FIRMWARE_READY, LOG};
use core::convert::Infallible;
use embedded_hal::digital::{self, OutputPin};
use embedded_io::{ErrorType, Write};
use firmware::registers;

/// The byte port of the log. It takes every byte at once.
pub struct LogPort;

impl ErrorType for LogPort {
    type Error = Infallible;
}

impl Write for LogPort {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        for &byte in bytes {
            registers::write(LOG, u32::from(byte));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// The line that the host sees as `STATUS_FIRMWARE`.
pub struct ReadyLine;

impl digital::ErrorType for ReadyLine {
    type Error = Infallible;
}

impl OutputPin for ReadyLine {
    fn set_low(&mut self) -> Result<(), Infallible> {
        registers::write(FIRMWARE_READY, 0);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        registers::write(FIRMWARE_READY, 1);
        Ok(())
    }
}
