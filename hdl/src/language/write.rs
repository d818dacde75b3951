//! The write port of a memory as one field.
//!
//! ```text
//!   enable  ──►┌────────┐
//!   address ──►│ memory │
//!   data    ──►└────────┘
//! ```
//!
//! A memory's field `write` is printed as the ports `write_enable`, `write_address` and `write_data`. The user of
//! the memory drives them by `store!(self.memory.write, enable, address, data)`. What is read isn't in it: the
//! address goes in one cycle before the word comes out, and they have different users in a kernel.

use crate::verilog;
use rust_hdl::prelude::*;

/// What is written to a memory of words of type `T` at an edge, seen from the memory.
pub struct Write<T: Synth, E: Synth = Bit> {
    /// Something is written; of a memory whose bytes are written one by one, a bit for each byte, least
    /// significant first.
    pub enable: Signal<In, E>,
    /// Where to.
    pub address: Signal<In, Bits<16>>,
    /// The word to write.
    pub data: Signal<In, T>,
}

impl<T: Synth, E: Synth> Default for Write<T, E> {
    fn default() -> Self {
        Write {
            enable: Signal::default(),
            address: Signal::default(),
            data: Signal::default(),
        }
    }
}

impl<T: Synth, E: Synth> Logic for Write<T, E> {
    fn update(&mut self) {}

    fn timing(&self) -> Vec<TimingInfo> {
        verilog::write()
    }
}

impl<T: Synth, E: Synth> Block for Write<T, E> {
    fn connect_all(&mut self) {}

    fn update_all(&mut self) {
        self.enable.update_all();
        self.address.update_all();
        self.data.update_all();
    }

    fn has_changed(&self) -> bool {
        self.enable.has_changed() || self.address.has_changed() || self.data.has_changed()
    }

    fn accept(&self, name: &str, probe: &mut dyn Probe) {
        probe.visit_start_namespace(name, self);
        self.enable.accept("enable", probe);
        self.address.accept("address", probe);
        self.data.accept("data", probe);
        probe.visit_end_namespace(name, self);
    }
}
