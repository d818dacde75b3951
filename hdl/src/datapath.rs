//! The datapath: every block of the card but the management processor, wired as the book's page "The
//! card inside" says, and nothing else.
//!
//! ```text
//!   s_axil ──► Registers ──► doorbells        ┌─ Fetch ─► SendQueues ─► Gather, Framer ┐ FrameMux,
//!              │     └─► GateReset ─► reset   │      │              ▲                  │ Loopback
//!   processor ◄┘                              │      │ lists        │ progress         ├──► FrameGate ──► m_axis
//!   processor ──► Fanout ──► control ──► all  │      ▼              │                  │
//!                                             │  Delivery ◄───── Receive ◄─────────────┘◄── FrameGate ◄── s_axis
//!   m_axi ◄── DmaRead, DmaWrite ◄─────────────┤   ▲    ▲  └─► Acknowledge ─► Framer
//!                                             │  Lists Regions        Faults ─► five of them
//!                          gets of peers: Delivery ─► Responder ─► Gather; their answers: Receive ─► SendQueues, Delivery
//!   interrupts ◄──────────────────────────────┴─ Completions, Events
//!   processor ──► FirmwareOut ─► FrameMux; Receive ─► FirmwareIn ──► processor; Events ──► processor
//! ```
//!
//! Every block but `Registers`, `GateReset` and `FrameGate` is reset with the gates; those three live through it, as the processor does.
//!
//! It is a block of its own so that it can be simulated without the processor: its ports towards the
//! processor are those of [`Subsystem`](crate::mgmt::Subsystem), turned round.

use crate::config::{Config, ECP5, TINY};
use crate::envelope::{Delivery, SendQueues};
use crate::host::{Completions, DmaRead, DmaWrite, Events, Fetch, GateReset, Registers};
use crate::link::{
    Acknowledge, Faults, FirmwareIn, FirmwareOut, FrameGate, FrameMux, Framer, Gather, Loopback,
    Receive, Responder,
};
use crate::matching::{Lists, Seed};
use crate::mgmt::{Counters, Fanout, PairCounters};
use crate::prelude::*;
use crate::prim::axi::{AxiLite, AxiManager, CACHE_FINAL, PROT_LEAST, StreamSink, StreamSource};
use crate::protect::{Fence, Mint, PeerRefusals, Refusals, Regions, ShutOut};
use crate::tops::{Class, Top};
use crate::types::{AccessReport, ControlRequest, LoaderWord, MatchCommand, PlaceUnit, RaiseEvent};
use crate::verilog::Break;
use abi::control::Operation;
use abi::register::{FIRST_ENDPOINT_INTERRUPT, MAILBOX_INTERRUPT};

const _: () = assert!(
    MAILBOX_INTERRUPT == 0 && FIRST_ENDPOINT_INTERRUPT == 1,
    "the kernel puts the lines there"
);

/// Readers of host memory, and writers.
const CLIENTS: usize = 3;
/// Accesses of host memory under way, in each direction.
const OUTSTANDING: usize = 32;
/// Blocks that take control requests, by the operations of each: the kernel joins them in this order.
const CONTROLLED: [&[Operation]; 17] = [
    Fetch::REQUESTS,
    Completions::REQUESTS,
    Events::REQUESTS,
    SendQueues::REQUESTS,
    Framer::REQUESTS,
    Receive::REQUESTS,
    Acknowledge::REQUESTS,
    Faults::REQUESTS,
    Loopback::REQUESTS,
    Delivery::REQUESTS,
    Regions::REQUESTS,
    Counters::REQUESTS,
    Seed::REQUESTS,
    PairCounters::REQUESTS,
    ShutOut::REQUESTS,
    PeerRefusals::REQUESTS,
    Responder::REQUESTS,
];

/// The datapaths, and blocks of other rooms as large as a card has them.
pub fn tops() -> Vec<Top> {
    vec![
        Top::of("dma_read_card", Class::Synthesis, || {
            DmaRead::new(CLIENTS, OUTSTANDING)
        }),
        Top::of("dma_write_card", Class::Synthesis, || {
            DmaWrite::new(CLIENTS, OUTSTANDING)
        }),
        Top::of("mgmt_fanout_card", Class::Synthesis, || {
            Fanout::new(&CONTROLLED)
        }),
        Top::of("datapath_tiny", Class::Bench, || Datapath::new(&TINY)),
        Top::of("datapath_ecp5", Class::Bench, || Datapath::new(&ECP5)),
        Top::broken("datapath_tiny_broken", breaks, || Datapath::new(&TINY)),
    ]
}

/// Everything but the management processor.
#[block(config: &Config)]
pub struct Datapath {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous, active high.
    pub reset: Signal<In, Bit>,
    /// Registers and doorbells.
    pub s_axil: AxiLite,
    /// Host memory.
    pub m_axi: AxiManager,
    /// Frames out.
    pub m_axis: StreamSource,
    /// Frames in.
    pub s_axis: StreamSink,
    /// The processor may run.
    pub run: Signal<Out, Bit>,
    /// Words for its memory.
    pub loader: Stream<Out, LoaderWord>,
    /// Word of the mailbox that the host looks at; bit 5 selects the answer.
    pub mailbox_address: Signal<Out, Bits<6>>,
    /// The host writes it.
    pub mailbox_write: Signal<Out, Bit>,
    /// What.
    pub mailbox_write_data: Signal<Out, Bits<32>>,
    /// The word looked at in the cycle before.
    pub mailbox_read_data: Signal<In, Bits<32>>,
    /// Number of the host's last command.
    pub mailbox_request: Signal<Out, Bits<32>>,
    /// Number of the last command answered.
    pub mailbox_answer: Signal<In, Bits<32>>,
    /// Number of the firmware's start; 0 while it isn't up.
    pub firmware_start: Signal<In, Bits<32>>,
    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,
    /// With `control.ready`: its result.
    pub control_result: Signal<Out, Bits<64>>,
    /// Before: what it waits for.
    pub control_report: Signal<Out, AccessReport>,
    /// Pulse: the firmware asks for a reset of the gates.
    pub gates_reset_request: Signal<In, Bit>,
    /// No reset of the gates is under way, and every table is cleared. Low from the cycle after a request on.
    pub gates_ready: Signal<Out, Bit>,
    /// Pulse: the blocks are reset by a request, at the end of this cycle. What belongs to them outside forgets with them.
    pub gates_reset: Signal<Out, Bit>,
    /// The processor writes a word of its frame.
    pub frame_write: Signal<In, Bit>,
    /// Which.
    pub frame_write_address: Signal<In, Bits<5>>,
    /// The word.
    pub frame_write_data: Signal<In, Bits<32>>,
    /// Pulse: sends the frame.
    pub frame_send: Signal<In, Bit>,
    /// No frame of the firmware is being sent.
    pub frame_out_ready: Signal<Out, Bit>,
    /// A frame for the firmware waits.
    pub frame_in_valid: Signal<Out, Bit>,
    /// Pulse: it is done with.
    pub frame_take: Signal<In, Bit>,
    /// Word of it that the processor looks at.
    pub frame_read_address: Signal<In, Bits<5>>,
    /// The word looked at in the cycle before.
    pub frame_read_data: Signal<Out, Bits<32>>,
    /// Pulse: a frame for the firmware found no room.
    pub frame_dropped: Signal<Out, Bit>,
    /// Pulse: an event, for the processor.
    pub told_valid: Signal<Out, Bit>,
    /// The event.
    pub told: Signal<Out, RaiseEvent>,
    /// Levels: bit 0 the mailbox answered, bit 1 + e endpoint e.
    pub interrupts: Signal<Out, Bits<32>>,
    /// A control request begins.
    pub monitor_control_valid: Signal<Out, Bit>,
    /// Which: `abi::control::Operation`.
    pub monitor_control_operation: Signal<Out, Bits<8>>,
    /// What it names.
    pub monitor_control_index: Signal<Out, Bits<16>>,
    /// Its data, word 0 least significant.
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
    /// Which: `matching::Operation`.
    pub monitor_match_operation: Signal<Out, Bits<4>>,
    /// Posted receives before it.
    pub monitor_match_posted: Signal<Out, Bits<16>>,
    /// Unexpected messages before it.
    pub monitor_match_unexpected: Signal<Out, Bits<16>>,
    /// The operation itself.
    pub monitor_match_command: Signal<Out, MatchCommand>,
    /// An operation leaves the matching lists: the one that entered last.
    pub monitor_reply_valid: Signal<Out, Bit>,
    /// It has found something.
    pub monitor_reply_found: Signal<Out, Bit>,
    /// It had no room.
    pub monitor_reply_full: Signal<Out, Bit>,
    /// Place of what it has found or appended.
    pub monitor_reply_index: Signal<Out, Bits<16>>,
    /// A step of a walk has found nothing, and there is more to look at.
    pub monitor_reply_more: Signal<Out, Bit>,
    /// A pair gets a unit of places for unexpected messages, or has none any more.
    pub monitor_unit_valid: Signal<Out, Bit>,
    /// Which pair, and which unit.
    pub monitor_unit: Signal<Out, PlaceUnit>,

    #[is(Registers::new(config))]
    registers: Registers,
    gate_reset: GateReset,
    #[is(Fanout::new(&CONTROLLED))]
    fanout: Fanout,
    counters: Counters,
    #[is(PairCounters::new(config))]
    pair_counters: PairCounters,
    #[is(DmaRead::new(CLIENTS, OUTSTANDING))]
    dma_read: DmaRead,
    #[is(DmaWrite::new(CLIENTS, OUTSTANDING))]
    dma_write: DmaWrite,
    #[is(Fetch::new(config))]
    fetch: Fetch,
    #[is(Completions::new(config))]
    completions: Completions,
    #[is(Events::new(config))]
    events: Events,
    #[is(SendQueues::new(config))]
    send_queues: SendQueues,
    gather: Gather,
    #[is(Framer::new(config))]
    framer: Framer,
    #[is(Receive::new(config))]
    receive: Receive,
    #[is(Responder::new(config))]
    responder: Responder,
    #[is(Acknowledge::new(config))]
    acknowledge: Acknowledge,
    #[is(Faults::new(config))]
    faults: Faults,
    firmware_out: FirmwareOut,
    frame_mux: FrameMux,
    loopback: Loopback,
    firmware_in: FirmwareIn,
    frame_gate: FrameGate,
    #[is(Delivery::new(config))]
    delivery: Delivery,
    #[is(Regions::new(config))]
    regions: Regions,
    fence: Fence,
    #[is(Mint::new(config))]
    mint: Mint,
    refusals: Refusals,
    #[is(ShutOut::new(config))]
    shut_out: ShutOut,
    #[is(PeerRefusals::new(config))]
    peer_refusals: PeerRefusals,
    #[is(Lists::new(config))]
    lists: Lists,
    hash_seed: Seed,
    endpoint_interrupts: Signal<Local, Bits<32>>,
    shifted_interrupts: Signal<Local, Bits<32>>,
}

impl Datapath {
    /// The datapath of a card of these sizes.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block]
impl Logic for Datapath {
    fn update(&mut self) {
        clocked!(
            self,
            clock,
            gate_reset.block_reset,
            fanout,
            counters,
            pair_counters,
            dma_read,
            dma_write,
            fetch,
            completions,
            events,
            send_queues,
            gather,
            framer,
            receive,
            responder,
            acknowledge,
            faults,
            firmware_out,
            frame_mux,
            loopback,
            firmware_in,
            delivery,
            regions,
            fence,
            mint,
            refusals,
            shut_out,
            peer_refusals,
            lists,
            hash_seed
        );

        // The host's registers, and the processor behind them.
        AxiLite::link(&mut self.s_axil, &mut self.registers.s_axil);
        self.run.next = self.registers.run.val();
        join!(self.registers.loader => self.loader);
        self.mailbox_address.next = self.registers.mailbox_address.val();
        self.mailbox_write.next = self.registers.mailbox_write.val();
        self.mailbox_write_data.next = self.registers.mailbox_write_data.val();
        self.mailbox_request.next = self.registers.mailbox_request.data.val();
        self.registers.mailbox_read_data.next = self.mailbox_read_data.val();
        self.registers.mailbox_answer.next = self.mailbox_answer.val();
        self.registers.firmware_start.next = self.firmware_start.val();
        self.fetch.doorbell.valid.next = self.registers.doorbell.valid.val();
        self.fetch.doorbell.data.next = self.registers.doorbell.data.val();
        self.fetch.read_endpoint.next = self.registers.read_endpoint.val();
        self.completions.doorbell.valid.next = self.registers.doorbell.valid.val();
        self.completions.doorbell.data.next = self.registers.doorbell.data.val();
        self.completions.read_endpoint.next = self.registers.read_endpoint.val();
        self.events.doorbell.valid.next = self.registers.doorbell.valid.val();
        self.events.doorbell.data.next = self.registers.doorbell.data.val();
        self.events.read_endpoint.next = self.registers.read_endpoint.val();
        self.registers.send_head.next = self.fetch.send_head.val();
        self.registers.list_head.next = self.fetch.list_head.val();
        self.registers.completion_tail.next = self.completions.completion_tail.val();
        self.registers.event_tail.next = self.events.event_tail.val();
        self.registers.sticky.next = self.events.sticky.val();
        self.registers.events_lost.next = self.events.events_lost.val();
        self.endpoint_interrupts.next =
            self.completions.interrupts.val() | self.events.interrupts.val();
        self.shifted_interrupts.next = self.endpoint_interrupts.val() << 1;
        self.interrupts.next = self
            .shifted_interrupts
            .val()
            .replace_bit(0, self.registers.mailbox_interrupt.val());
        self.gate_reset.initialized.next = self.send_queues.initialized.val()
            & self.framer.initialized.val()
            & self.receive.initialized.val()
            & self.responder.initialized.val()
            & self.acknowledge.initialized.val()
            & self.faults.initialized.val()
            & self.delivery.initialized.val()
            & self.lists.initialized.val()
            & self.regions.initialized.val()
            & self.pair_counters.initialized.val()
            & self.shut_out.initialized.val()
            & self.peer_refusals.initialized.val();

        // Their reset by register.
        self.gate_reset.request.next = self.registers.gates_reset.val();
        self.gate_reset.firmware_request.next = self.gates_reset_request.val();
        self.gate_reset.memory_idle.next = self.dma_read.idle.val() & self.dma_write.idle.val();
        self.gate_reset.wire_idle.next = self.frame_gate.idle.val();
        self.dma_read.quiet.next = self.gate_reset.quiet.val();
        self.dma_write.quiet.next = self.gate_reset.quiet.val();
        self.frame_gate.quiet.next = self.gate_reset.quiet.val();
        self.frame_gate.restart.next = self.gate_reset.restart.val();
        self.fanout.abandon.next = self.gate_reset.quiet.val();
        self.registers.gates_resetting.next = self.gate_reset.resetting.val();
        self.registers.gates_ready.next = self.gate_reset.ready.val();
        self.gates_ready.next = self.gate_reset.ready.val();
        self.gates_reset.next = self.gate_reset.restart.val();

        // Control: to every block by a line of its own, and the results together.
        join!(self.control => self.fanout.control);
        self.control_result.next = self.fanout.control_result.val();
        join!(self.fanout.block[0] => self.fetch.control);
        join!(self.fanout.block[1] => self.completions.control);
        join!(self.fanout.block[2] => self.events.control);
        join!(self.fanout.block[3] => self.send_queues.control);
        join!(self.fanout.block[4] => self.framer.control);
        join!(self.fanout.block[5] => self.receive.control);
        join!(self.fanout.block[6] => self.acknowledge.control);
        join!(self.fanout.block[7] => self.faults.control);
        join!(self.fanout.block[8] => self.loopback.control);
        join!(self.fanout.block[9] => self.delivery.control);
        join!(self.fanout.block[10] => self.fence.control);
        join!(self.fence.inner => self.mint.control);
        join!(self.mint.inner => self.regions.control);
        join!(self.regions.spent => self.mint.spent);
        self.control_report.next = self.fence.report.val();
        join!(self.fanout.block[11] => self.counters.control);
        join!(self.fanout.block[12] => self.hash_seed.control);
        join!(self.fanout.block[13] => self.pair_counters.control);
        join!(self.fanout.block[14] => self.shut_out.control);
        join!(self.fanout.block[15] => self.peer_refusals.control);
        join!(self.fanout.block[16] => self.responder.control);
        for i in 0..CONTROLLED.len() {
            self.fanout.block_result[i].next = 0.into();
        }
        self.fanout.block_result[3].next = self.send_queues.control_result.val();
        self.fanout.block_result[5].next = self.receive.control_result.val();
        self.fanout.block_result[9].next = self.delivery.control_result.val();
        self.fanout.block_result[10].next = self.mint.control_result.val();
        self.fanout.block_result[11].next = self.counters.control_result.val();
        self.fanout.block_result[13].next = self.pair_counters.control_result.val();
        self.fanout.block_result[14].next = self.shut_out.control_result.val();

        // Host memory: three readers, three writers. In reset nothing is offered or taken (IHI 0022, A3.1.2).
        join!(self.fetch.read_request => self.dma_read.request[0]);
        join!(self.dma_read.data[0] => self.fetch.read_data);
        self.fetch.read_data_last.next = self.dma_read.data_last[0].val();
        self.fetch.read_data_error.next = self.dma_read.data_error[0].val();
        join!(self.gather.read_request => self.dma_read.request[1]);
        join!(self.dma_read.data[1] => self.gather.read_data);
        self.gather.read_data_last.next = self.dma_read.data_last[1].val();
        self.gather.read_data_error.next = self.dma_read.data_error[1].val();
        join!(self.delivery.read_request => self.dma_read.request[2]);
        join!(self.dma_read.data[2] => self.delivery.read_data);
        self.delivery.read_data_error.next = self.dma_read.data_error[2].val();
        join!(self.delivery.write_request => self.dma_write.request[0]);
        join!(self.delivery.write_data => self.dma_write.data[0]);
        join!(self.dma_write.done[0] => self.delivery.write_done);
        join!(self.completions.write_request => self.dma_write.request[1]);
        join!(self.completions.write_data => self.dma_write.data[1]);
        join!(self.dma_write.done[1] => self.completions.write_done);
        join!(self.events.write_request => self.dma_write.request[2]);
        join!(self.events.write_data => self.dma_write.data[2]);
        join!(self.dma_write.done[2] => self.events.write_done);
        self.m_axi.arprot.next = PROT_LEAST;
        self.m_axi.arlock.next = false;
        self.m_axi.arcache.next = CACHE_FINAL;
        self.m_axi.arqos.next = 0.into();
        self.m_axi.awprot.next = PROT_LEAST;
        self.m_axi.awlock.next = false;
        self.m_axi.awcache.next = CACHE_FINAL;
        self.m_axi.awqos.next = 0.into();
        self.m_axi.arid.next = self.dma_read.m_axi.arid.val();
        self.m_axi.araddr.next = self.dma_read.m_axi.araddr.val();
        self.m_axi.arlen.next = self.dma_read.m_axi.arlen.val();
        self.m_axi.arsize.next = self.dma_read.m_axi.arsize.val();
        self.m_axi.arburst.next = self.dma_read.m_axi.arburst.val();
        self.m_axi.arvalid.next = self.dma_read.m_axi.arvalid.val() & !self.reset.val();
        self.dma_read.m_axi.arready.next = self.m_axi.arready.val();
        self.dma_read.m_axi.rid.next = self.m_axi.rid.val();
        self.dma_read.m_axi.rdata.next = self.m_axi.rdata.val();
        self.dma_read.m_axi.rresp.next = self.m_axi.rresp.val();
        self.dma_read.m_axi.rlast.next = self.m_axi.rlast.val();
        self.dma_read.m_axi.rvalid.next = self.m_axi.rvalid.val();
        self.m_axi.rready.next = self.dma_read.m_axi.rready.val() & !self.reset.val();
        self.m_axi.awid.next = self.dma_write.m_axi.awid.val();
        self.m_axi.awaddr.next = self.dma_write.m_axi.awaddr.val();
        self.m_axi.awlen.next = self.dma_write.m_axi.awlen.val();
        self.m_axi.awsize.next = self.dma_write.m_axi.awsize.val();
        self.m_axi.awburst.next = self.dma_write.m_axi.awburst.val();
        self.m_axi.awvalid.next = self.dma_write.m_axi.awvalid.val() & !self.reset.val();
        self.dma_write.m_axi.awready.next = self.m_axi.awready.val();
        self.m_axi.wdata.next = self.dma_write.m_axi.wdata.val();
        self.m_axi.wstrb.next = self.dma_write.m_axi.wstrb.val();
        self.m_axi.wlast.next = self.dma_write.m_axi.wlast.val();
        self.m_axi.wvalid.next = self.dma_write.m_axi.wvalid.val() & !self.reset.val();
        self.dma_write.m_axi.wready.next = self.m_axi.wready.val();
        self.dma_write.m_axi.bid.next = self.m_axi.bid.val();
        self.dma_write.m_axi.bresp.next = self.m_axi.bresp.val();
        self.dma_write.m_axi.bvalid.next = self.m_axi.bvalid.val();
        self.m_axi.bready.next = self.dma_write.m_axi.bready.val() & !self.reset.val();

        // From the rings to the wire.
        join!(self.fetch.sends => self.send_queues.sends);
        self.responder.gather_room.next = self.gather.room.val();
        self.send_queues.job_room.next = self.responder.job_room.val();
        join!(self.send_queues.job => self.responder.sends_job);
        join!(self.responder.job => self.gather.job);
        join!(self.send_queues.dropped => self.gather.dropped);
        join!(self.responder.dropped => self.gather.answers_dropped);
        join!(self.gather.result => self.send_queues.job_result);
        join!(self.gather.answer_decided => self.responder.answer_decided);
        self.responder.answer_denied.next = self.gather.answer_denied.val();
        join!(self.gather.message => self.framer.message);
        self.gather.payload_index.next = self.framer.payload_index.val();
        self.framer.payload.next = self.gather.payload.val();
        self.gather.payload_done.next = self.framer.payload_done.val();
        join!(self.acknowledge.control_frame => self.framer.control_frame);
        self.gather.gathered_pair.next = self.acknowledge.gathered_pair.val();
        self.send_queues.scheduled_pair.next = self.acknowledge.gathered_pair.val();
        self.acknowledge.gathered.next =
            self.gather.gathered.val() | self.send_queues.scheduled.val();
        self.acknowledge.wire_busy.next = self.gather.message.valid.val();
        self.acknowledge.lookup_pair.next = self.framer.lookup_pair.val();
        self.acknowledge.lookup_begins.next = self.framer.lookup_begins.val();
        self.framer.lookup_acknowledge.next = self.acknowledge.lookup_acknowledge.val();
        self.framer.lookup_credit.next = self.acknowledge.lookup_credit.val();
        self.framer.lookup_refused.next = self.acknowledge.lookup_refused.val();
        self.framer.lookup_failed.next = self.acknowledge.lookup_failed.val();
        self.frame_mux.framer.tdata.next = self.framer.m_axis.tdata.val();
        self.frame_mux.framer.tkeep.next = self.framer.m_axis.tkeep.val();
        self.frame_mux.framer.tlast.next = self.framer.m_axis.tlast.val();
        self.frame_mux.framer.tvalid.next = self.framer.m_axis.tvalid.val();
        self.frame_mux.framer.tuser.next = false;
        self.framer.m_axis.tready.next = self.frame_mux.framer.tready.val();
        self.firmware_out.write.next = self.frame_write.val();
        self.firmware_out.write_address.next = self.frame_write_address.val();
        self.firmware_out.write_data.next = self.frame_write_data.val();
        self.firmware_out.send.next = self.frame_send.val();
        self.frame_out_ready.next = self.firmware_out.ready.val();
        self.frame_mux.firmware.tdata.next = self.firmware_out.m_axis.tdata.val();
        self.frame_mux.firmware.tkeep.next = self.firmware_out.m_axis.tkeep.val();
        self.frame_mux.firmware.tlast.next = self.firmware_out.m_axis.tlast.val();
        self.frame_mux.firmware.tvalid.next = self.firmware_out.m_axis.tvalid.val();
        self.frame_mux.firmware.tuser.next = false;
        self.firmware_out.m_axis.tready.next = self.frame_mux.firmware.tready.val();
        self.loopback.card.tdata.next = self.frame_mux.m_axis.tdata.val();
        self.loopback.card.tkeep.next = self.frame_mux.m_axis.tkeep.val();
        self.loopback.card.tlast.next = self.frame_mux.m_axis.tlast.val();
        self.loopback.card.tvalid.next = self.frame_mux.m_axis.tvalid.val();
        self.loopback.card.tuser.next = false;
        self.frame_mux.m_axis.tready.next = self.loopback.card.tready.val();
        self.frame_gate.transmit.tdata.next = self.loopback.m_axis.tdata.val();
        self.frame_gate.transmit.tkeep.next = self.loopback.m_axis.tkeep.val();
        self.frame_gate.transmit.tlast.next = self.loopback.m_axis.tlast.val();
        self.frame_gate.transmit.tuser.next = false;
        self.frame_gate.transmit.tvalid.next = self.loopback.m_axis.tvalid.val();
        self.loopback.m_axis.tready.next = self.frame_gate.transmit.tready.val();
        StreamSource::link(&mut self.m_axis, &mut self.frame_gate.m_axis);

        // From the wire to the lists.
        StreamSink::link(&mut self.s_axis, &mut self.frame_gate.s_axis);
        self.loopback.s_axis.tdata.next = self.frame_gate.receive.tdata.val();
        self.loopback.s_axis.tkeep.next = self.frame_gate.receive.tkeep.val();
        self.loopback.s_axis.tlast.next = self.frame_gate.receive.tlast.val();
        self.loopback.s_axis.tuser.next = self.frame_gate.receive_tuser.val();
        self.loopback.s_axis.tvalid.next = self.frame_gate.receive.tvalid.val();
        self.frame_gate.receive.tready.next = self.loopback.s_axis.tready.val();
        self.receive.s_axis.tdata.next = self.loopback.receive.tdata.val();
        self.receive.s_axis.tkeep.next = self.loopback.receive.tkeep.val();
        self.receive.s_axis.tlast.next = self.loopback.receive.tlast.val();
        self.receive.s_axis.tvalid.next = self.loopback.receive.tvalid.val();
        self.receive.s_axis.tuser.next = self.loopback.receive_tuser.val();
        self.loopback.receive.tready.next = self.receive.s_axis.tready.val();
        self.firmware_in.word.valid.next = self.receive.passes.val();
        self.firmware_in.word_index.next = self.receive.passes_index.val();
        self.firmware_in.word.data.next = self.loopback.receive.tdata.val();
        self.firmware_in.accept.next = self.receive.firmware.val();
        self.frame_in_valid.next = self.firmware_in.valid.val();
        self.firmware_in.take.next = self.frame_take.val();
        self.firmware_in.read_address.next = self.frame_read_address.val();
        self.frame_read_data.next = self.firmware_in.read_data.val();
        self.frame_dropped.next = self.firmware_in.count_frames_dropped.val();
        join!(self.receive.progress => self.send_queues.progress);
        join!(self.send_queues.mark => self.acknowledge.mark);
        join!(self.receive.arrival => self.delivery.arrival);
        join!(self.receive.payload => self.delivery.payload);
        join!(self.fetch.lists => self.delivery.lists);
        self.lists.seed.next = self.hash_seed.seed.val();
        join!(self.delivery.command => self.lists.command);
        join!(self.lists.reply => self.delivery.reply);
        join!(self.delivery.unit => self.lists.unit);
        join!(self.delivery.sink_update => self.acknowledge.sink_update);

        // Gets: of peers to their answers, and answers to where they go.
        join!(self.receive.claim => self.send_queues.claim);
        join!(self.send_queues.claimed => self.receive.claimed);
        join!(self.delivery.asked => self.responder.asked);
        join!(self.delivery.answered => self.send_queues.answered);
        join!(self.responder.shut_query => self.shut_out.get);
        self.responder.shut_out.next = self.shut_out.get_denied.val();
        join!(self.responder.refused => self.delivery.refused_elsewhere);

        // Which memory may be used.
        join!(self.gather.query => self.regions.gather_query);
        join!(self.regions.gather_allowed => self.gather.allowed);
        join!(self.delivery.query => self.shut_out.query);
        join!(self.shut_out.passed => self.regions.delivery_query);
        join!(self.regions.delivery_allowed => self.shut_out.answer);
        join!(self.shut_out.allowed => self.delivery.allowed);
        join!(self.regions.peer_refused => self.shut_out.refused);
        join!(self.delivery.posts_query => self.regions.posts_query);
        join!(self.regions.posts_allowed => self.delivery.posts_allowed);
        join!(self.regions.gather_ticket => self.fence.begins[0]);
        self.fence.ends[0].next = self.gather.access_ends.val();
        join!(self.regions.delivery_ticket => self.fence.begins[1]);
        self.fence.ends[1].next = self.delivery.access_ends.val();

        // Failures of pairs: asked for by three, told to five; `link::party` numbers them.
        join!(self.send_queues.fault_request => self.faults.fault_request[0]);
        join!(self.receive.fault_request => self.faults.fault_request[1]);
        join!(self.delivery.fault_request => self.faults.fault_request[2]);
        self.send_queues.fault.valid.next = self.faults.fault_valid[0].val();
        self.faults.fault_ready[0].next = self.send_queues.fault.ready.val();
        self.send_queues.fault.data.next = self.faults.fault.val();
        self.send_queues.delivery_done.next = self.faults.delivery_done.val();
        self.receive.fault.valid.next = self.faults.fault_valid[1].val();
        self.faults.fault_ready[1].next = self.receive.fault.ready.val();
        self.receive.fault.data.next = self.faults.fault.val();
        self.delivery.fault.valid.next = self.faults.fault_valid[2].val();
        self.faults.fault_ready[2].next = self.delivery.fault.ready.val();
        self.delivery.fault.data.next = self.faults.fault.val();
        self.acknowledge.fault.valid.next = self.faults.fault_valid[3].val();
        self.faults.fault_ready[3].next = self.acknowledge.fault.ready.val();
        self.acknowledge.fault.data.next = self.faults.fault.val();
        self.regions.fault.valid.next = self.faults.fault_valid[4].val();
        self.faults.fault_ready[4].next = self.regions.fault.ready.val();
        self.regions.fault.data.next = self.faults.fault.val();
        self.regions.tick.next = self.shut_out.tick.val();

        // Back to the host.
        self.fetch.completion_free.next = self.completions.completion_free.val();
        join!(self.fetch.reserve => self.completions.reserve);
        join!(self.fetch.given_up => self.completions.queues_release);
        join!(self.send_queues.given_up => self.completions.sends_release);
        self.delivery.completion_free.next = self.completions.delivery_free.val();
        self.delivery.lists_pending.next = self.fetch.lists_pending.val();
        join!(self.delivery.reserve => self.completions.delivery_reserve);
        join!(self.delivery.unreserve => self.completions.delivery_release);
        join!(self.fetch.complete => self.completions.queues);
        join!(self.send_queues.complete => self.completions.sends);
        join!(self.delivery.complete => self.completions.delivery);
        self.events.queues.valid.next = self.fetch.raise.valid.val();
        self.fetch.raise.ready.next = self.events.queues.ready.val();
        self.events.queues.data.next = self.fetch.raise.data.val();
        join!(self.completions.raise => self.events.completions);
        join!(self.delivery.raise => self.events.delivery);
        join!(self.faults.raise => self.events.faults);
        self.peer_refusals.refused.valid.next = self.shut_out.peer_refused.valid.val();
        self.peer_refusals.refused.data.next = self.shut_out.peer_refused.data.val();
        join!(self.peer_refusals.raise => self.events.refusals);
        self.events.refusals_detail.next = self.peer_refusals.offset.val();
        // What is refused to processes waits for what is raised.
        self.refusals.refused.valid.next = self.regions.refused.valid.val();
        self.refusals.refused.data.next = self.regions.refused.data.val();
        self.refusals.others_tell.next = self.events.told.valid.val();
        self.told_valid.next = self.events.told.valid.val() | self.refusals.told.valid.val();
        self.told.next = self.refusals.told.data.val();
        if self.events.told.valid.val() {
            self.told.next = self.events.told.data.val();
        }

        // What is counted.
        self.counters.frames_sent.next = bits::<3>(0)
            + self.framer.count_frames_sent.val()
            + self.firmware_out.count_frames_sent.val();
        self.counters.frames_received.next = bits::<3>(0)
            + self.receive.count_frames_received.val()
            + self.firmware_in.count_frames_received.val();
        self.counters.firmware_frames_dropped.next =
            bits::<3>(0) + self.firmware_in.count_frames_dropped.val();
        self.counters.crc_errors.next = bits::<3>(0) + self.receive.count_crc_errors.val();
        self.counters.length_errors.next = bits::<3>(0) + self.receive.count_length_errors.val();
        self.counters.type_errors.next = bits::<3>(0) + self.receive.count_type_errors.val();
        self.counters.pair_errors.next = bits::<3>(0) + self.receive.count_pair_errors.val();
        self.counters.duplicates.next = bits::<3>(0) + self.receive.count_duplicates.val();
        self.counters.gaps.next = bits::<3>(0) + self.receive.count_gaps.val();
        self.counters.timeouts.next = bits::<3>(0) + self.send_queues.count_timeouts.val();
        self.counters.invalid_requests.next = bits::<3>(0)
            + self.fetch.count_invalid_requests.val()
            + self.send_queues.count_invalid_requests.val()
            + self.delivery.count_invalid_requests.val();
        self.counters.doorbell_errors.next = bits::<3>(0)
            + self.fetch.count_doorbell_errors.val()
            + self.completions.count_doorbell_errors.val()
            + self.events.count_doorbell_errors.val();
        self.counters.expected.next = bits::<3>(0) + self.delivery.count_expected.val();
        self.counters.unexpected.next = bits::<3>(0) + self.delivery.count_unexpected.val();
        self.counters.completions.next = bits::<3>(0) + self.completions.count_completions.val();
        self.counters.credit_asks.next = bits::<3>(0) + self.send_queues.count_asks.val();
        self.counters.repeats.next = bits::<3>(0) + self.send_queues.count_repeats.val();
        self.counters.match_overflows.next = bits::<3>(0) + self.lists.count_overflows.val();
        self.counters.rule_drops.next = bits::<3>(0) + self.delivery.count_rule_drops.val();
        self.pair_counters.frame_pair.next = self.receive.count_pair.val();
        self.pair_counters.frames_received.next = self.receive.count_frames_received.val();
        self.pair_counters.pair_errors.next = self.receive.count_pair_errors.val();
        self.pair_counters.duplicates.next = self.receive.count_duplicates.val();
        self.pair_counters.gaps.next = self.receive.count_gaps.val();
        self.pair_counters.send_pair.next = self.send_queues.count_pair.val();
        self.pair_counters.timeouts.next = self.send_queues.count_timeouts.val();
        self.pair_counters.repeats.next = self.send_queues.count_repeats.val();
        self.pair_counters.credit_asks.next = self.send_queues.count_asks.val();
        self.pair_counters.ruled_pair.next = self.delivery.ruled_pair.val();
        self.pair_counters.rule_drops.next = self.delivery.count_rule_drops.val();
        self.pair_counters.refused.valid.next = self.shut_out.peer_refused.valid.val();
        self.pair_counters.refused.data.next = self.shut_out.peer_refused.data.val();

        // What an observer sees.
        self.monitor_control_valid.next = self.fanout.begins.val();
        self.monitor_control_operation.next = self.control.data.val().operation;
        self.monitor_control_index.next = self.control.data.val().index;
        self.monitor_control_data.next = self.control.data.val().data;
        self.monitor_source_valid.next = self.send_queues.monitor_source_valid.val();
        self.monitor_source_pair.next = self.send_queues.monitor_source_pair.val();
        self.monitor_source_taken.next = self.send_queues.monitor_source_taken.val();
        self.monitor_source_returned.next = self.send_queues.monitor_source_returned.val();
        self.monitor_source_put.next = self.send_queues.monitor_source_put.val();
        self.monitor_sink_valid.next = self.acknowledge.monitor_sink_valid.val();
        self.monitor_sink_pair.next = self.acknowledge.monitor_sink_pair.val();
        self.monitor_sink_accepted.next = self.acknowledge.monitor_sink_accepted.val();
        self.monitor_sink_freed.next = self.acknowledge.monitor_sink_freed.val();
        self.monitor_match_valid.next =
            self.delivery.command.valid.val() & self.lists.command.ready.val();
        self.monitor_match_operation.next = self.lists.operation.val();
        self.monitor_match_posted.next = self.lists.posted_depth.val();
        self.monitor_match_unexpected.next = self.lists.unexpected_depth.val();
        self.monitor_match_command.next = self.delivery.command.data.val();
        self.monitor_reply_valid.next = self.lists.reply.valid.val();
        self.monitor_reply_found.next = self.lists.reply.data.val().found;
        self.monitor_reply_full.next = self.lists.reply.data.val().full;
        self.monitor_reply_index.next = self.lists.reply.data.val().index;
        self.monitor_reply_more.next = self.lists.reply.data.val().more;
        self.monitor_unit_valid.next = self.delivery.unit.valid.val();
        self.monitor_unit.next = self.delivery.unit.data.val();
    }
}

/// Contracts of the reset of the gates that a test breaks: of its sequence, and of what it does to the blocks.
fn resets() -> Vec<Break> {
    let mut all = crate::host::breaks::gate_reset();
    all.extend([
        // A frame that is being sent is neither waited for nor ended.
        Break::new("cuts_frames")
            .force::<GateReset>("wire_done", "true")
            .force::<Datapath>("frame_gate.restart", "false"),
        // Doorbells that were rung before the reset are heard after it.
        Break::new("keeps_doorbells").force::<Datapath>("fetch.reset", "reset"),
    ]);
    all
}

/// Those of the whole datapath.
fn breaks() -> Vec<Break> {
    let mut all = resets();
    // What it asks of the bus beside the access itself is wrong.
    all.push(
        Break::new("wrong_attributes")
            .force::<Datapath>("m_axi.arprot", "0")
            .force::<Datapath>("m_axi.arlock", "true")
            .force::<Datapath>("m_axi.arcache", "0")
            .force::<Datapath>("m_axi.arqos", "1")
            .force::<Datapath>("m_axi.awprot", "0")
            .force::<Datapath>("m_axi.awlock", "true")
            .force::<Datapath>("m_axi.awcache", "0")
            .force::<Datapath>("m_axi.awqos", "1"),
    );
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use abi::capability::CAPABILITY_GRANTS;

    #[test]
    fn each_operation_of_the_firmware_concerns_a_block() {
        let taken = CONTROLLED.concat();
        // A card that doesn't claim these never hears of them from the firmware.
        let claimed = config::ALL.iter().map(|config| config.capabilities);
        let claimed = claimed.fold(0, |all, one| all | one);
        let of_grants = Operation::GrantSet.code()..=Operation::Fence.code();
        let made_here = [Operation::MintSet, Operation::GrantMint].map(Operation::code);
        for operation in Operation::ALL {
            let needs = match operation.code() {
                code if of_grants.contains(&code) || made_here.contains(&code) => CAPABILITY_GRANTS,
                _ => 0,
            };
            let spoken = claimed & needs == needs;
            assert_eq!(taken.contains(operation), spoken, "{operation}");
        }
    }
}
