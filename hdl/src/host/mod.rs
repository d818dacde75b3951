//! Towards the host: doorbells, fetching of work requests, completion and event queues, DMA.

mod accesses;
pub mod breaks;
mod bursts;
mod completions;
mod decode;
mod dma;
mod dma_read;
mod dma_write;
mod entry_queue;
mod entry_writer;
mod events;
mod fetch;
mod gate_reset;
mod places;
mod queue;
mod registers;
mod reservations;
mod ring;

pub use completions::Completions;
pub use dma_read::DmaRead;
pub use dma_write::DmaWrite;
pub use events::Events;
pub use fetch::Fetch;
pub use gate_reset::{GateReset, WIRE_PATIENCE};
pub use registers::Registers;

use crate::config::{ECP5, TINY};
use crate::tops::{Class, Top};

/// The tops of the tests of this room.
pub fn tops() -> Vec<Top> {
    vec![
        Top::of("dma_read", Class::Test, || DmaRead::new(3, 4)),
        Top::of("dma_write", Class::Test, || DmaWrite::new(3, 4)),
        Top::broken("dma_read_broken", breaks::dma_read, || DmaRead::new(3, 4)),
        Top::broken("dma_write_broken", breaks::dma_write, || {
            DmaWrite::new(3, 4)
        }),
        Top::mutants("dma_read_mutants", || DmaRead::new(3, 4)),
        Top::mutants("dma_write_mutants", || DmaWrite::new(3, 4)),
        Top::of("fetch_tiny", Class::Test, || Fetch::new(&TINY)),
        Top::of("fetch_ecp5", Class::Test, || Fetch::new(&ECP5)),
        Top::broken("fetch_ecp5_broken", breaks::fetch, || Fetch::new(&ECP5)),
        Top::mutants("fetch_ecp5_mutants", || Fetch::new(&ECP5)),
        Top::of("completions_tiny", Class::Test, || Completions::new(&TINY)),
        Top::of("completions_ecp5", Class::Test, || Completions::new(&ECP5)),
        Top::broken("completions_ecp5_broken", breaks::completions, || {
            Completions::new(&ECP5)
        }),
        Top::mutants("completions_ecp5_mutants", || Completions::new(&ECP5)),
        Top::of("events_tiny", Class::Test, || Events::new(&TINY)),
        Top::of("events_ecp5", Class::Test, || Events::new(&ECP5)),
        Top::broken("events_ecp5_broken", breaks::events, || Events::new(&ECP5)),
        Top::mutants("events_ecp5_mutants", || Events::new(&ECP5)),
        Top::of("registers_tiny", Class::Test, || Registers::new(&TINY)),
        Top::of("registers_ecp5", Class::Test, || Registers::new(&ECP5)),
        Top::broken("registers_tiny_broken", breaks::registers, || {
            Registers::new(&TINY)
        }),
    ]
}
