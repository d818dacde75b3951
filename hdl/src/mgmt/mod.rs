//! Management: the processor with its memory and registers, the way of its control requests to the
//! blocks, and the counters.

pub mod breaks;
mod card_registers;
pub mod clock_bridge;
mod counters;
mod event_queue;
mod fanout;
mod gate_registers;
mod ibex;
mod pair_counters;
mod processor;
mod random;
mod subsystem;

pub use card_registers::CardRegisters;
pub use clock_bridge::ClockBridge;
pub use counters::Counters;
pub use event_queue::EventQueue;
pub use fanout::Fanout;
pub use pair_counters::PairCounters;
pub use processor::Processor;
pub use subsystem::Subsystem;

use crate::config::{ECP5, TINY};
use crate::tops::{Class, Top};
use abi::control::Operation;

/// File lists of a top that contains the processor.
pub const SOURCES: &[&str] = &["hdl/src/mgmt/ibex.f"];

/// The operations of each of the four blocks that the fan-out is tested with.
pub const FOUR: [&[Operation]; 4] = [
    &[Operation::PairSet, Operation::CardSet],
    &[Operation::PairSet, Operation::PairClear],
    &[
        Operation::PairSet,
        Operation::PairClear,
        Operation::RegionSet,
    ],
    &[Operation::PairSet, Operation::EventRaise],
];

/// The tops of the tests of this room.
pub fn tops() -> Vec<Top> {
    vec![
        Top::of("mgmt_subsystem", Class::Test, || Subsystem::new(&TINY)).with_sources(SOURCES),
        Top::of("mgmt_clock_bridge", Class::Test, ClockBridge::default),
        Top::broken(
            "mgmt_clock_bridge_broken",
            breaks::clock_bridge,
            ClockBridge::default,
        ),
        Top::mutants("mgmt_clock_bridge_mutants", ClockBridge::default),
        Top::of("mgmt_fanout", Class::Test, || Fanout::new(&FOUR)),
        Top::broken("mgmt_fanout_broken", breaks::fanout, || Fanout::new(&FOUR)),
        Top::of("mgmt_counters", Class::Test, Counters::default),
        Top::broken("mgmt_counters_broken", breaks::counters, Counters::default),
        Top::of("mgmt_pair_counters", Class::Test, || {
            PairCounters::new(&TINY)
        }),
        Top::broken("mgmt_pair_counters_broken", breaks::pair_counters, || {
            PairCounters::new(&TINY)
        }),
        Top::of("mgmt_pair_counters_ecp5", Class::Synthesis, || {
            PairCounters::new(&ECP5)
        }),
        Top::of("mgmt_event_queue", Class::Test, EventQueue::default),
        Top::broken(
            "mgmt_event_queue_broken",
            breaks::event_queue,
            EventQueue::default,
        ),
        Top::mutants("mgmt_event_queue_mutants", EventQueue::default),
    ]
}
