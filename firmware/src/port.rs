//! The outward port of the firmware: the byte port of its log.

use abi::mgmt::LOG;
use core::convert::Infallible;
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
