//! Towards the host: doorbells, work queues, completion and event queues, DMA.

pub mod breaks;
mod bursts;
mod completions;
mod decode;
mod dma;
mod dma_read;
mod dma_write;
mod entry_writer;
mod events;
mod gate_reset;
mod queue;
mod registers;
mod reservations;
mod ring;
mod work_queues;

pub use completions::Completions;
pub use dma_read::DmaRead;
pub use dma_write::DmaWrite;
pub use events::Events;
pub use gate_reset::{GateReset, GateResetMutation, WIRE_PATIENCE};
pub use registers::Registers;
pub use work_queues::WorkQueues;

use crate::config::{ECP5, TINY};
use crate::tops::{Class, Top};
use dma::Mutation;

/// The tops of the tests of this room.
pub fn tops() -> Vec<Top> {
    let read =
        |name, mutation| Top::of(name, Class::Test, move || DmaRead::mutated(3, 4, mutation));
    let write =
        |name, mutation| Top::of(name, Class::Test, move || DmaWrite::mutated(3, 4, mutation));
    vec![
        read("dma_read", Mutation::None),
        read("dma_read_ignores_boundary", Mutation::IgnoresBoundary),
        read("dma_read_forgets_errors", Mutation::ForgetsErrors),
        read("dma_read_leaves_tail", Mutation::LeavesTail),
        write("dma_write", Mutation::None),
        write("dma_write_ignores_boundary", Mutation::IgnoresBoundary),
        write("dma_write_forgets_errors", Mutation::ForgetsErrors),
        write("dma_write_done_early", Mutation::DoneEarly),
        write("dma_write_writes_tail", Mutation::WritesTail),
        write("dma_write_last_only_at_end", Mutation::LastOnlyAtEnd),
        read("dma_read_awaits_clients", Mutation::AwaitsClients),
        read("dma_read_idle_early", Mutation::IdleEarly),
        write("dma_write_awaits_clients", Mutation::AwaitsClients),
        write("dma_write_idle_early", Mutation::IdleEarly),
        write("dma_write_invents_data", Mutation::InventsData),
        Top::of("work_queues_tiny", Class::Test, || WorkQueues::new(&TINY)),
        Top::of("work_queues_ecp5", Class::Test, || WorkQueues::new(&ECP5)),
        Top::of("completions_tiny", Class::Test, || Completions::new(&TINY)),
        Top::of("completions_ecp5", Class::Test, || Completions::new(&ECP5)),
        Top::of("events_tiny", Class::Test, || Events::new(&TINY)),
        Top::of("events_ecp5", Class::Test, || Events::new(&ECP5)),
        Top::broken("events_ecp5_broken", breaks::events, || Events::new(&ECP5)),
        Top::of("registers_tiny", Class::Test, || Registers::new(&TINY)),
        Top::of("registers_ecp5", Class::Test, || Registers::new(&ECP5)),
        Top::of("registers_takes_parts", Class::Test, || {
            Registers::mutated(&ECP5, true)
        }),
    ]
}
