//! A waveform that is being written, by the `verilated` crate's VCD writer.

use std::ffi::{CStr, c_char};
use std::fs::File;
use std::io;
use std::path::Path;

use verilated::vcd::{Vcd, VcdC};

/// Nanoseconds that a cycle takes in a waveform: 125 MHz.
pub const NS_PER_CYCLE: u64 = abi::mgmt::CLOCK_NS as u64;

/// The unit that times are written in.
const UNIT: &CStr = c"1ns";

// Of the `verilated` crate's C functions. Its own call of them comes when the file is open and its head written
// with the unit that the writer began with.
unsafe extern "C" {
    fn verilatedvcdc_set_time_unit(vcd: *mut VcdC, unit: *const c_char);
    fn verilatedvcdc_set_time_resolution(vcd: *mut VcdC, unit: *const c_char);
}

/// An open waveform. The context of its model must be the thread's at each call, and at its end.
pub(crate) struct Trace {
    vcd: Vcd,
}

impl Trace {
    /// Opens `file`; `declare` tells the writer of the signals, which it wants to know before.
    pub(crate) fn start(file: &Path, declare: impl FnOnce(*mut VcdC)) -> io::Result<Self> {
        // The writer can't say why it can't open a file.
        drop(File::create(file)?);
        let mut vcd = Vcd::default();
        declare(vcd.0);
        // SAFETY: the writer is alive, and no other thread knows it; both read the text before they return.
        unsafe {
            verilatedvcdc_set_time_unit(vcd.0, UNIT.as_ptr());
            verilatedvcdc_set_time_resolution(vcd.0, UNIT.as_ptr());
        }
        vcd.open(file)?;
        Ok(Self { vcd })
    }

    /// Writes what has changed in the half of `cycle` in which the clock is at `level`.
    pub(crate) fn dump(&mut self, cycle: u64, level: u8) {
        self.vcd
            .dump(cycle * NS_PER_CYCLE + u64::from(level) * (NS_PER_CYCLE / 2));
    }
}
