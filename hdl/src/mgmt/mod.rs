//! Management: the processor with its memory and registers, the way of its control requests to the
//! blocks, and the counters.

pub mod breaks;
mod counters;
mod event_queue;
mod fanout;
mod gate_registers;
mod ibex;
mod random;
mod subsystem;

pub use counters::Counters;
pub use event_queue::EventQueue;
pub use fanout::Fanout;
pub use subsystem::Subsystem;

use crate::config::TINY;
use crate::tops::{Class, Top};

/// File lists of a top that contains the processor.
pub const SOURCES: &[&str] = &["hdl/src/mgmt/ibex.f"];

/// The tops of the tests of this room.
pub fn tops() -> Vec<Top> {
    vec![
        Top::of("mgmt_subsystem", Class::Test, || Subsystem::new(&TINY)).with_sources(SOURCES),
        Top::of("mgmt_fanout", Class::Test, || Fanout::new(4)),
        Top::broken("mgmt_fanout_broken", breaks::fanout, || Fanout::new(4)),
        Top::of("mgmt_counters", Class::Test, Counters::default),
        Top::of("mgmt_event_queue", Class::Test, EventQueue::default),
        Top::broken(
            "mgmt_event_queue_broken",
            breaks::event_queue,
            EventQueue::default,
        ),
        Top::mutants("mgmt_event_queue_mutants", EventQueue::default),
    ]
}
