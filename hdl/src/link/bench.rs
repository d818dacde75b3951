//! All of the link of a card with the queues of sends: what the test of the link verilates, twice, back to back.
//!
//! ```text
//!            ┌────────────┐ jobs  ┌────────┐  ┌────────┐
//!  sends ───►│ SendQueues ├──────►│ Gather ├─►│ Framer ├──► m_axis
//!            └──▲──────▲──┘       └────────┘  └──▲─────┘
//!      progress │      │ faults                 │ control frames, numbers
//!            ┌──┴──────┴──┐       ┌─────────────┴┐
//!            │ Receive    │       │ Acknowledge  │◄── updates
//!  arrivals ◄┤            ├──┐    └─────▲────────┘
//!            └──▲─────────┘  └►┌───────┴┐
//!               │ s_axis       │ Faults ├──► events
//!                              └────────┘
//! ```
//!
//! Delivery, Regions, DMA and the host are the test's.

use super::acknowledge::Acknowledge;
use super::faults::{Faults, party};
use super::framer::Framer;
use super::gather::Gather;
use super::receive::Receive;
use crate::config::Config;
use crate::envelope::SendQueues;
use crate::mgmt::Fanout;
use crate::prelude::*;
use crate::prim::axi::{StreamSink, StreamSource};
use crate::types::{
    Answered, Arrival, ControlRequest, DmaRequest, Fault, FetchedSend, Permission, RaiseEvent,
    RegionQuery, SinkUpdate, WriteCompletion,
};

const _: () = assert!(
    party::SENDS == 0
        && party::RECEIVE == 1
        && party::DELIVERY == 2
        && party::ACKNOWLEDGE == 3
        && party::REGIONS == 4,
    "the kernel wires them in this order"
);

/// The six blocks.
#[block(config: &Config)]
pub struct LinkBench {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// To the wire.
    pub m_axis: StreamSource,
    /// From the wire.
    pub s_axis: StreamSink,
    /// There is a send.
    pub sends_valid: Signal<In, Bit>,
    /// The send.
    pub sends: Signal<In, FetchedSend>,
    /// The question is taken.
    pub query_ready: Signal<In, Bit>,
    /// A pulse: the answer to the question.
    pub allowed_valid: Signal<In, Bit>,
    /// With it: whether the buffer may be read, and where it is.
    pub allowed: Signal<In, Permission>,
    /// The read is taken.
    pub read_request_ready: Signal<In, Bit>,
    /// A word read.
    pub read_data_valid: Signal<In, Bit>,
    /// The word.
    pub read_data: Signal<In, Bits<64>>,
    /// With the last word.
    pub read_data_last: Signal<In, Bit>,
    /// With the last word: the read failed.
    pub read_data_error: Signal<In, Bit>,
    /// The message is taken.
    pub arrival_ready: Signal<In, Bit>,
    /// The word is taken.
    pub payload_ready: Signal<In, Bit>,
    /// An envelope has been accepted or freed.
    pub sink_update_valid: Signal<In, Bit>,
    /// The pair, and what it is that was accepted or freed.
    pub sink_update: Signal<In, SinkUpdate>,
    /// The completion is taken.
    pub complete_ready: Signal<In, Bit>,
    /// The event is taken.
    pub raise_ready: Signal<In, Bit>,
    /// Delivery asks for a pair to be failed.
    pub delivery_request_valid: Signal<In, Bit>,
    /// The pair and the status.
    pub delivery_request: Signal<In, Fault>,
    /// Delivery has done with the failed pair.
    pub delivery_fault_ready: Signal<In, Bit>,
    /// A control request; taken when all blocks have done what concerns them.
    pub control: Stream<In, ControlRequest>,
    /// The send is taken.
    pub sends_ready: Signal<Out, Bit>,
    /// May a buffer be read?
    pub query_valid: Signal<Out, Bit>,
    /// The buffer.
    pub query: Signal<Out, RegionQuery>,
    /// A read of host memory is asked for.
    pub read_request_valid: Signal<Out, Bit>,
    /// Address and length of the read.
    pub read_request: Signal<Out, DmaRequest>,
    /// The word read is taken.
    pub read_data_ready: Signal<Out, Bit>,
    /// A message has come.
    pub arrival_valid: Signal<Out, Bit>,
    /// Envelope of the message.
    pub arrival: Signal<Out, Arrival>,
    /// A word of its payload.
    pub payload_valid: Signal<Out, Bit>,
    /// The word.
    pub payload: Signal<Out, Bits<64>>,
    /// The update is taken.
    pub sink_update_ready: Signal<Out, Bit>,
    /// A completion to write.
    pub complete_valid: Signal<Out, Bit>,
    /// The completion.
    pub complete: Signal<Out, WriteCompletion>,
    /// A pulse: a reserved completion will not be written.
    pub release_valid: Signal<Out, Bit>,
    /// An event.
    pub raise_valid: Signal<Out, Bit>,
    /// The event.
    pub raise: Signal<Out, RaiseEvent>,
    /// What Delivery asks for is taken.
    pub delivery_request_ready: Signal<Out, Bit>,
    /// Delivery is told of a failed pair.
    pub delivery_fault_valid: Signal<Out, Bit>,
    /// The pair and the status.
    pub fault: Signal<Out, Fault>,
    /// With it: their answer.
    pub control_result: Signal<Out, Bits<64>>,
    /// All tables are cleared.
    pub initialized: Signal<Out, Bit>,
    /// See the counter of this name.
    pub count_frames_sent: Signal<Out, Bit>,
    /// See the counter of this name.
    pub count_frames_received: Signal<Out, Bit>,
    /// See the counter of this name.
    pub count_crc_errors: Signal<Out, Bit>,
    /// See the counter of this name.
    pub count_length_errors: Signal<Out, Bit>,
    /// See the counter of this name.
    pub count_type_errors: Signal<Out, Bit>,
    /// See the counter of this name.
    pub count_pair_errors: Signal<Out, Bit>,
    /// See the counter of this name.
    pub count_duplicates: Signal<Out, Bit>,
    /// See the counter of this name.
    pub count_gaps: Signal<Out, Bit>,
    /// See the counter of this name.
    pub count_timeouts: Signal<Out, Bit>,
    /// See the counter `CreditAsks`.
    pub count_asks: Signal<Out, Bit>,
    /// See the counter of this name.
    pub count_repeats: Signal<Out, Bit>,
    /// As at the card's pins.
    pub monitor_source_valid: Signal<Out, Bit>,
    /// As at the card's pins.
    pub monitor_source_pair: Signal<Out, Bits<16>>,
    /// As at the card's pins.
    pub monitor_source_taken: Signal<Out, Bits<32>>,
    /// As at the card's pins.
    pub monitor_source_returned: Signal<Out, Bits<32>>,
    /// A put has taken a number, which needs no credit.
    pub monitor_source_put: Signal<Out, Bit>,
    /// As at the card's pins.
    pub monitor_sink_valid: Signal<Out, Bit>,
    /// As at the card's pins.
    pub monitor_sink_pair: Signal<Out, Bits<16>>,
    /// As at the card's pins.
    pub monitor_sink_accepted: Signal<Out, Bits<32>>,
    /// As at the card's pins.
    pub monitor_sink_freed: Signal<Out, Bits<32>>,

    #[is(SendQueues::new(config))]
    send_queues: SendQueues,
    gather: Gather,
    #[is(Framer::new(config))]
    framer: Framer,
    #[is(Receive::new(config))]
    receive: Receive,
    #[is(Acknowledge::new(config))]
    acknowledge: Acknowledge,
    #[is(Faults::new(config))]
    faults: Faults,
    #[is(Fanout::new(&[
                SendQueues::REQUESTS,
                Framer::REQUESTS,
                Receive::REQUESTS,
                Acknowledge::REQUESTS,
                Faults::REQUESTS,
            ]))]
    fanout: Fanout,
}

impl LinkBench {
    /// The blocks of a configuration.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block]
impl Logic for LinkBench {
    fn update(&mut self) {
        // Control.
        self.fanout.abandon.next = false;
        join!(self.control => self.fanout.control);
        self.control_result.next = self.fanout.control_result.val();
        join!(self.fanout.block[0] => self.send_queues.control);
        join!(self.fanout.block[1] => self.framer.control);
        join!(self.fanout.block[2] => self.receive.control);
        join!(self.fanout.block[3] => self.acknowledge.control);
        join!(self.fanout.block[4] => self.faults.control);
        for i in 0..5 {
            self.fanout.block_result[i].next = 0.into();
        }
        self.fanout.block_result[0].next = self.send_queues.control_result.val();
        self.fanout.block_result[2].next = self.receive.control_result.val();
        self.initialized.next = self.send_queues.initialized.val()
            & self.framer.initialized.val()
            & self.receive.initialized.val()
            & self.acknowledge.initialized.val()
            & self.faults.initialized.val();

        // Out.
        self.send_queues.sends.valid.next = self.sends_valid.val();
        self.send_queues.sends.data.next = self.sends.val();
        self.send_queues.complete.ready.next = self.complete_ready.val();
        self.sends_ready.next = self.send_queues.sends.ready.val();
        self.complete_valid.next = self.send_queues.complete.valid.val();
        self.complete.next = self.send_queues.complete.data.val();
        self.release_valid.next = self.send_queues.given_up.valid.val();
        // Nobody gets here.
        join!(self.receive.claim => self.send_queues.claim);
        join!(self.send_queues.claimed => self.receive.claimed);
        self.send_queues.answered.valid.next = false;
        self.send_queues.answered.data.next = Answered::default();
        self.gather.answers_dropped.valid.next = false;
        self.gather.answers_dropped.data.next = 0.into();
        self.send_queues.job_room.next = self.gather.room.val();
        join!(self.send_queues.job => self.gather.job);
        join!(self.send_queues.dropped => self.gather.dropped);
        join!(self.gather.result => self.send_queues.job_result);
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
        self.gather.query.ready.next = self.query_ready.val();
        self.gather.allowed.valid.next = self.allowed_valid.val();
        self.gather.allowed.data.next = self.allowed.val();
        self.gather.read_request.ready.next = self.read_request_ready.val();
        self.gather.read_data.valid.next = self.read_data_valid.val();
        self.gather.read_data.data.next = self.read_data.val();
        self.gather.read_data_last.next = self.read_data_last.val();
        self.gather.read_data_error.next = self.read_data_error.val();
        self.query_valid.next = self.gather.query.valid.val();
        self.query.next = self.gather.query.data.val().buffer;
        self.read_request_valid.next = self.gather.read_request.valid.val();
        self.read_request.next = self.gather.read_request.data.val();
        self.read_data_ready.next = self.gather.read_data.ready.val();
        StreamSource::link(&mut self.m_axis, &mut self.framer.m_axis);

        // In.
        StreamSink::link(&mut self.s_axis, &mut self.receive.s_axis);
        join!(self.receive.progress => self.send_queues.progress);
        join!(self.send_queues.mark => self.acknowledge.mark);
        self.receive.arrival.ready.next = self.arrival_ready.val();
        self.receive.payload.ready.next = self.payload_ready.val();
        self.arrival_valid.next = self.receive.arrival.valid.val();
        self.arrival.next = self.receive.arrival.data.val();
        self.payload_valid.next = self.receive.payload.valid.val();
        self.payload.next = self.receive.payload.data.val();
        self.acknowledge.sink_update.valid.next = self.sink_update_valid.val();
        self.acknowledge.sink_update.data.next = self.sink_update.val();
        self.sink_update_ready.next = self.acknowledge.sink_update.ready.val();

        // Failures.
        join!(self.send_queues.fault_request => self.faults.fault_request[0]);
        join!(self.receive.fault_request => self.faults.fault_request[1]);
        self.faults.fault_request[2].valid.next = self.delivery_request_valid.val();
        self.delivery_request_ready.next = self.faults.fault_request[2].ready.val();
        self.faults.fault_request[2].data.next = self.delivery_request.val();
        self.send_queues.fault.valid.next = self.faults.fault_valid[0].val();
        self.faults.fault_ready[0].next = self.send_queues.fault.ready.val();
        self.send_queues.fault.data.next = self.faults.fault.val();
        self.send_queues.delivery_done.next = self.faults.delivery_done.val();
        self.receive.fault.valid.next = self.faults.fault_valid[1].val();
        self.faults.fault_ready[1].next = self.receive.fault.ready.val();
        self.receive.fault.data.next = self.faults.fault.val();
        self.acknowledge.fault.valid.next = self.faults.fault_valid[3].val();
        self.faults.fault_ready[3].next = self.acknowledge.fault.ready.val();
        self.acknowledge.fault.data.next = self.faults.fault.val();
        self.delivery_fault_valid.next = self.faults.fault_valid[2].val();
        self.faults.fault_ready[2].next = self.delivery_fault_ready.val();
        // The bench answers for the regions, which finish at once.
        self.faults.fault_ready[4].next = true;
        self.fault.next = self.faults.fault.val();
        self.raise_valid.next = self.faults.raise.valid.val();
        self.raise.next = self.faults.raise.data.val();
        self.faults.raise.ready.next = self.raise_ready.val();

        // What an observer sees.
        self.count_frames_sent.next = self.framer.count_frames_sent.val();
        self.count_frames_received.next = self.receive.count_frames_received.val();
        self.count_crc_errors.next = self.receive.count_crc_errors.val();
        self.count_length_errors.next = self.receive.count_length_errors.val();
        self.count_type_errors.next = self.receive.count_type_errors.val();
        self.count_pair_errors.next = self.receive.count_pair_errors.val();
        self.count_duplicates.next = self.receive.count_duplicates.val();
        self.count_gaps.next = self.receive.count_gaps.val();
        self.count_timeouts.next = self.send_queues.count_timeouts.val();
        self.count_asks.next = self.send_queues.count_asks.val();
        self.count_repeats.next = self.send_queues.count_repeats.val();
        self.monitor_source_valid.next = self.send_queues.monitor_source_valid.val();
        self.monitor_source_pair.next = self.send_queues.monitor_source_pair.val();
        self.monitor_source_taken.next = self.send_queues.monitor_source_taken.val();
        self.monitor_source_returned.next = self.send_queues.monitor_source_returned.val();
        self.monitor_source_put.next = self.send_queues.monitor_source_put.val();
        self.monitor_sink_valid.next = self.acknowledge.monitor_sink_valid.val();
        self.monitor_sink_pair.next = self.acknowledge.monitor_sink_pair.val();
        self.monitor_sink_accepted.next = self.acknowledge.monitor_sink_accepted.val();
        self.monitor_sink_freed.next = self.acknowledge.monitor_sink_freed.val();
    }
}
