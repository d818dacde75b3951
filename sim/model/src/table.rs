//! The table of linked models, which the build script writes from the manifest.

use std::ffi::{c_char, c_int};

use verilated::vcd::VcdC;

use crate::PortInfo;

/// The C++ object behind a model. Only ever behind a pointer.
#[repr(C)]
pub(crate) struct Raw {
    _private: [u8; 0],
}

/// One linked model: its pins and the C functions of its shim.
///
/// The functions share one rule: the object comes from `new` of the same entry, hasn't been given
/// to `delete`, and is used by one thread at a time, not necessarily always the same.
pub(crate) struct Entry {
    pub name: &'static str,
    pub traced: bool,
    /// File with the SystemVerilog that it was built from.
    pub text: &'static str,
    pub ports: &'static [PortInfo],
    /// Makes an object. What has no initial value becomes zero with seed 0, else noise.
    pub new: unsafe extern "C" fn(seed: u32) -> *mut Raw,
    pub delete: unsafe extern "C" fn(*mut Raw),
    /// Makes the object's context the one that the `verilated` crate's calls reach.
    pub enter: unsafe extern "C" fn(*mut Raw),
    /// Writes the addresses of all pins, in the order of `ports`. They hold until `delete`.
    pub pins: unsafe extern "C" fn(*mut Raw, *mut *mut u8),
    pub eval: unsafe extern "C" fn(*mut Raw),
    /// Evaluates what edges of clocks start. Since the last whole evaluation no other input has changed.
    pub edges: unsafe extern "C" fn(*mut Raw),
    /// Sets the clock to a level and evaluates: all of it, or what edges start; see `edges`.
    pub clock: unsafe extern "C" fn(*mut Raw, u8, bool),
    /// So many cycles: clock low, clock high.
    pub step: unsafe extern "C" fn(*mut Raw, u64),
    /// Evaluates, and returns the first word of a memory of words of up to 32 bits that Verilator was asked to keep accessible, by the scope and the
    /// name that its Verilog gives it, and writes how many words there are. Null if there is none. It holds until `delete`.
    pub memory: unsafe extern "C" fn(*mut Raw, *const c_char, *const c_char, *mut u64) -> *mut u32,
    pub error: unsafe extern "C" fn(*mut Raw) -> c_int,
    pub clear_error: unsafe extern "C" fn(*mut Raw),
    /// Declares the signals to a waveform that isn't open yet. Only in traced builds.
    pub trace: Option<unsafe extern "C" fn(*mut Raw, *mut VcdC)>,
}

include!(concat!(env!("OUT_DIR"), "/table.rs"));
