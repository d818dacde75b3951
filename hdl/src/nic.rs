//! The card: datapath, management processor, reset.
//!
//! ```text
//!            ┌─────────────────────────────────────────────┐
//!   reset ──►│ PowerOnReset ──► reset of everything below  │
//!            │ ┌──────────┐ mailbox, loader ┌───────────┐  │
//!  s_axil ──►│ │          ├────────────────►│           │  │──► log
//!   m_axi ◄──│ │ Datapath │     control     │ Subsystem │  │◄── straps
//!  m_axis ◄──│ │          │◄────────────────┤  (Ibex)   │  │◄── processor_clock
//!  s_axis ──►│ │          │◄─ frames        │           │  │
//!            │ │          ├─ frames, events►│           │  │
//!            │ └──────────┘                 └───────────┘  │
//!            └─────────────────────────────────────────────┘
//! ```
//!
//! The pins are those of the book's page "The card inside".

use crate::config::{Config, ECP5, ECP5_85F, TINY};
use crate::datapath::Datapath;
use crate::mgmt::{self, Subsystem};
use crate::prelude::*;
use crate::prim::PowerOnReset;
use crate::prim::axi::{AxiLite, AxiManager, StreamSink, StreamSource};
use crate::tops::{Class, Top};
use crate::types::{MatchCommand, PlaceUnit};

/// A card.
#[block(config: &Config)]
pub struct Nic {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Rising edge counts for the management processor. Any ratio to `clock`, and any phase.
    pub processor_clock: Signal<In, Clock>,
    /// Synchronous, active high. May stay low for ever: the card resets itself after power-on.
    pub reset: Signal<In, Bit>,
    /// Registers and doorbells.
    pub s_axil: AxiLite,
    /// Host memory.
    pub m_axi: AxiManager,
    /// Frames out.
    pub m_axis: StreamSource,
    /// Frames in.
    pub s_axis: StreamSink,
    /// Levels: bit 0 the mailbox answered, bit 1 + e endpoint e.
    pub interrupts: Signal<Out, Bits<32>>,
    /// A byte of the firmware's log.
    pub log_data: Signal<Out, Bits<8>>,
    /// A byte of the log leaves in this cycle.
    pub log_valid: Signal<Out, Bit>,
    /// Ethernet address; the least significant byte is first on the wire.
    pub strap_mac: Signal<In, Bits<48>>,
    /// Seed of the random generator.
    pub strap_seed: Signal<In, Bits<32>>,
    /// Pulse: the gates are reset by register; what the other monitor pins have told is over.
    pub monitor_gates_reset: Signal<Out, Bit>,
    /// A control request of the firmware begins.
    pub monitor_control_valid: Signal<Out, Bit>,
    /// Operation of the request, an `abi::control::Operation`.
    pub monitor_control_operation: Signal<Out, Bits<8>>,
    /// What the request names.
    pub monitor_control_index: Signal<Out, Bits<16>>,
    /// Data of the request, word 0 least significant.
    pub monitor_control_data: Signal<Out, Bits<320>>,
    /// The credits of a pair have changed, at the sending side.
    pub monitor_source_valid: Signal<Out, Bit>,
    /// The pair.
    pub monitor_source_pair: Signal<Out, Bits<16>>,
    /// Credits taken, a running number.
    pub monitor_source_taken: Signal<Out, Bits<32>>,
    /// Credits returned, a running number.
    pub monitor_source_returned: Signal<Out, Bits<32>>,
    /// A put has taken a number, which needs no credit.
    pub monitor_source_put: Signal<Out, Bit>,
    /// The envelopes of a pair have changed, at the receiving side.
    pub monitor_sink_valid: Signal<Out, Bit>,
    /// The pair.
    pub monitor_sink_pair: Signal<Out, Bits<16>>,
    /// Messages accepted, a running number.
    pub monitor_sink_accepted: Signal<Out, Bits<32>>,
    /// Envelopes freed, a running number.
    pub monitor_sink_freed: Signal<Out, Bits<32>>,
    /// An operation enters the matching lists.
    pub monitor_match_valid: Signal<Out, Bit>,
    /// The operation that enters, a `matching::Operation`.
    pub monitor_match_operation: Signal<Out, Bits<4>>,
    /// Posted receives before it.
    pub monitor_match_posted: Signal<Out, Bits<16>>,
    /// Unexpected messages before it.
    pub monitor_match_unexpected: Signal<Out, Bits<16>>,
    /// The operation itself.
    pub monitor_match_command: Signal<Out, MatchCommand>,
    /// An operation leaves the matching lists: the one that entered last.
    pub monitor_reply_valid: Signal<Out, Bit>,
    /// The operation has found something.
    pub monitor_reply_found: Signal<Out, Bit>,
    /// The operation had no room.
    pub monitor_reply_full: Signal<Out, Bit>,
    /// Place of what it has found or appended.
    pub monitor_reply_index: Signal<Out, Bits<16>>,
    /// A step of a walk has found nothing, and there is more to look at.
    pub monitor_reply_more: Signal<Out, Bit>,
    /// A pair gets a unit of places for unexpected messages, or has none any more.
    pub monitor_unit_valid: Signal<Out, Bit>,
    /// Which pair, and which unit.
    pub monitor_unit: Signal<Out, PlaceUnit>,

    power_on: PowerOnReset,
    #[is(Datapath::new(config))]
    datapath: Datapath,
    #[is(Subsystem::new(config))]
    subsystem: Subsystem,
}

impl Nic {
    /// A card of these sizes.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block]
impl Logic for Nic {
    fn update(&mut self) {
        self.subsystem.processor_clock.next = self.processor_clock.val();
        // The card resets itself after power-on.
        self.datapath.reset.next = self.power_on.card_reset.val();
        self.subsystem.reset.next = self.power_on.card_reset.val();

        AxiLite::link(&mut self.s_axil, &mut self.datapath.s_axil);
        AxiManager::link(&mut self.m_axi, &mut self.datapath.m_axi);
        StreamSource::link(&mut self.m_axis, &mut self.datapath.m_axis);
        StreamSink::link(&mut self.s_axis, &mut self.datapath.s_axis);

        self.subsystem.run.next = self.datapath.run.val();
        join!(self.datapath.loader => self.subsystem.loader);
        self.subsystem.mailbox_address.next = self.datapath.mailbox_address.val();
        self.subsystem.mailbox_write.next = self.datapath.mailbox_write.val();
        self.subsystem.mailbox_write_data.next = self.datapath.mailbox_write_data.val();
        self.datapath.mailbox_read_data.next = self.subsystem.mailbox_read_data.val();
        self.subsystem.mailbox_request.next = self.datapath.mailbox_request.val();
        self.datapath.mailbox_answer.next = self.subsystem.mailbox_answer.val();
        self.datapath.firmware_start.next = self.subsystem.firmware_start.val();
        join!(self.subsystem.control => self.datapath.control);
        self.subsystem.control_result.next = self.datapath.control_result.val();
        self.subsystem.control_report.next = self.datapath.control_report.val();
        self.datapath.gates_reset_request.next = self.subsystem.gates_reset_request.val();
        self.subsystem.gates_ready.next = self.datapath.gates_ready.val();
        self.datapath.frame_write.next = self.subsystem.frame_write.val();
        self.datapath.frame_write_address.next = self.subsystem.frame_write_address.val();
        self.datapath.frame_write_data.next = self.subsystem.frame_write_data.val();
        self.datapath.frame_send.next = self.subsystem.frame_send.val();
        self.subsystem.frame_out_ready.next = self.datapath.frame_out_ready.val();
        self.subsystem.frame_in_valid.next = self.datapath.frame_in_valid.val();
        self.datapath.frame_take.next = self.subsystem.frame_take.val();
        self.datapath.frame_read_address.next = self.subsystem.frame_read_address.val();
        self.subsystem.frame_read_data.next = self.datapath.frame_read_data.val();
        self.subsystem.frame_dropped.next = self.datapath.frame_dropped.val();
        self.subsystem.told_valid.next = self.datapath.told_valid.val();
        self.subsystem.told.next = self.datapath.told.val();

        self.interrupts.next = self.datapath.interrupts.val();
        self.monitor_gates_reset.next = self.datapath.gates_reset.val();
        self.monitor_control_valid.next = self.datapath.monitor_control_valid.val();
        self.monitor_control_operation.next = self.datapath.monitor_control_operation.val();
        self.monitor_control_index.next = self.datapath.monitor_control_index.val();
        self.monitor_control_data.next = self.datapath.monitor_control_data.val();
        self.monitor_source_valid.next = self.datapath.monitor_source_valid.val();
        self.monitor_source_pair.next = self.datapath.monitor_source_pair.val();
        self.monitor_source_taken.next = self.datapath.monitor_source_taken.val();
        self.monitor_source_returned.next = self.datapath.monitor_source_returned.val();
        self.monitor_source_put.next = self.datapath.monitor_source_put.val();
        self.monitor_sink_valid.next = self.datapath.monitor_sink_valid.val();
        self.monitor_sink_pair.next = self.datapath.monitor_sink_pair.val();
        self.monitor_sink_accepted.next = self.datapath.monitor_sink_accepted.val();
        self.monitor_sink_freed.next = self.datapath.monitor_sink_freed.val();
        self.monitor_match_valid.next = self.datapath.monitor_match_valid.val();
        self.monitor_match_operation.next = self.datapath.monitor_match_operation.val();
        self.monitor_match_posted.next = self.datapath.monitor_match_posted.val();
        self.monitor_match_unexpected.next = self.datapath.monitor_match_unexpected.val();
        self.monitor_match_command.next = self.datapath.monitor_match_command.val();
        self.monitor_reply_valid.next = self.datapath.monitor_reply_valid.val();
        self.monitor_reply_found.next = self.datapath.monitor_reply_found.val();
        self.monitor_reply_full.next = self.datapath.monitor_reply_full.val();
        self.monitor_reply_index.next = self.datapath.monitor_reply_index.val();
        self.monitor_reply_more.next = self.datapath.monitor_reply_more.val();
        self.monitor_unit_valid.next = self.datapath.monitor_unit_valid.val();
        self.monitor_unit.next = self.datapath.monitor_unit.val();
        self.log_data.next = self.subsystem.log_data.val();
        self.log_valid.next = self.subsystem.log_valid.val();
        self.subsystem.strap_mac.next = self.strap_mac.val();
        self.subsystem.strap_seed.next = self.strap_seed.val();
    }
}

/// The cards.
pub fn tops() -> Vec<Top> {
    vec![
        Top::of("nic_tiny", Class::Card, || Nic::new(&TINY)).with_sources(mgmt::SOURCES),
        Top::of("nic_ecp5", Class::Card, || Nic::new(&ECP5)).with_sources(mgmt::SOURCES),
        Top::of("nic_ecp5_85f", Class::Synthesis, || Nic::new(&ECP5_85F))
            .with_sources(mgmt::SOURCES),
    ]
}
