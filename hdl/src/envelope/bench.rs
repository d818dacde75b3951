//! Delivery with the two blocks that it asks, as they are wired in a card: what its tests verilate.
//!
//! ```text
//!              ┌──────────┐ command, reply ┌───────┐
//!   pins ◄────►│ Delivery │◄──────────────►│ Lists │
//!              │          │ query, allowed ┌─┴─────┴─┐
//!              │          │◄──────────────►│ Regions │
//!              └──────────┘                └─────────┘
//! ```
//!
//! Pins have the names that Delivery's ports have.

use super::delivery::Delivery;
use crate::config::Config;
use crate::construct::construct;
use crate::matching::Lists;
use crate::prelude::*;
use crate::protect::Regions;
use crate::types::{
    Arrival, ControlRequest, DmaRequest, Fault, FetchedList, MatchSetup, RaiseEvent, RegionQuery,
    SinkUpdate, Unpack, WriteCompletion,
};

/// The three blocks.
#[derive(LogicBlock)]
pub struct DeliveryBench {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// Contract of Delivery to break; see [`DeliveryMutation`](super::DeliveryMutation).
    pub mutation: Signal<In, Bits<5>>,
    /// A message has come.
    pub arrival_valid: Signal<In, Bit>,
    /// Its envelope.
    pub arrival: Signal<In, Arrival>,
    /// As Delivery's.
    pub lists_pending: Signal<In, Bits<16>>,
    /// A word of its payload.
    pub payload_valid: Signal<In, Bit>,
    /// The word.
    pub payload: Signal<In, Bits<64>>,
    /// There is a request of a list ring.
    pub lists_valid: Signal<In, Bit>,
    /// The request.
    pub lists: Signal<In, FetchedList>,
    /// The write is taken.
    pub write_request_ready: Signal<In, Bit>,
    /// The word to write is taken.
    pub write_data_ready: Signal<In, Bit>,
    /// A pulse: the write has been answered.
    pub write_done: Signal<In, Bit>,
    /// With it: by an error.
    pub write_done_error: Signal<In, Bit>,
    /// The read is taken.
    pub read_request_ready: Signal<In, Bit>,
    /// A word read.
    pub read_data_valid: Signal<In, Bit>,
    /// The word.
    pub read_data: Signal<In, Bits<64>>,
    /// With the last word: the read failed.
    pub read_data_error: Signal<In, Bit>,
    /// The completion is taken.
    pub complete_ready: Signal<In, Bit>,
    /// The progress is taken.
    pub sink_update_ready: Signal<In, Bit>,
    /// The event is taken.
    pub raise_ready: Signal<In, Bit>,
    /// The request to fail a pair is taken.
    pub fault_request_ready: Signal<In, Bit>,
    /// A pair has failed.
    pub fault_valid: Signal<In, Bit>,
    /// The pair and the status.
    pub fault: Signal<In, Fault>,
    /// The control request.
    pub control: Signal<In, ControlRequest>,
    /// It is offered to Delivery.
    pub delivery_control_valid: Signal<In, Bit>,
    /// It is offered to Regions.
    pub regions_control_valid: Signal<In, Bit>,
    /// The message is taken.
    pub arrival_ready: Signal<Out, Bit>,
    /// The word is taken.
    pub payload_ready: Signal<Out, Bit>,
    /// The request is taken.
    pub lists_ready: Signal<Out, Bit>,
    /// A write of host memory is asked for.
    pub write_request_valid: Signal<Out, Bit>,
    /// Where to and how much.
    pub write_request: Signal<Out, DmaRequest>,
    /// A word to write.
    pub write_data_valid: Signal<Out, Bit>,
    /// The word.
    pub write_data: Signal<Out, Bits<64>>,
    /// A read of host memory is asked for.
    pub read_request_valid: Signal<Out, Bit>,
    /// Where from and how much.
    pub read_request: Signal<Out, DmaRequest>,
    /// The word read is taken.
    pub read_data_ready: Signal<Out, Bit>,
    /// A completion to write.
    pub complete_valid: Signal<Out, Bit>,
    /// The completion.
    pub complete: Signal<Out, WriteCompletion>,
    /// A pulse: a reserved completion will not be written.
    pub reserve_valid: Signal<Out, Bit>,
    /// As Delivery's.
    pub reserve_endpoint: Signal<Out, Bits<8>>,
    /// As Delivery's.
    pub completion_free: Signal<In, Bits<32>>,
    /// As Delivery's.
    pub release_valid: Signal<Out, Bit>,
    /// Its endpoint.
    pub release_endpoint: Signal<Out, Bits<8>>,
    /// Progress of a pair.
    pub sink_update_valid: Signal<Out, Bit>,
    /// The progress.
    pub sink_update: Signal<Out, SinkUpdate>,
    /// An event.
    pub raise_valid: Signal<Out, Bit>,
    /// The event.
    pub raise: Signal<Out, RaiseEvent>,
    /// A pair has to fail.
    pub fault_request_valid: Signal<Out, Bit>,
    /// The pair and why.
    pub fault_request: Signal<Out, Fault>,
    /// The receives that name the pair are complete.
    pub fault_ready: Signal<Out, Bit>,
    /// A message met its receive on arrival.
    pub count_expected: Signal<Out, Bit>,
    /// A message went to the unexpected list.
    pub count_unexpected: Signal<Out, Bit>,
    /// A request was refused as malformed.
    pub count_invalid_requests: Signal<Out, Bit>,
    /// All tables are cleared.
    pub initialized: Signal<Out, Bit>,
    /// Delivery has finished it.
    pub delivery_control_done: Signal<Out, Bit>,
    /// With it: Delivery's answer.
    pub delivery_control_result: Signal<Out, Bits<64>>,
    /// Regions has finished it.
    pub regions_control_done: Signal<Out, Bit>,
    /// Live posted receives.
    pub posted_depth: Signal<Out, Bits<16>>,
    /// Live unexpected messages.
    pub unexpected_depth: Signal<Out, Bits<16>>,
    delivery: Delivery,
    lists_block: Lists,
    seed: Constant<Bits<128>>,
    regions: Regions,
    no_query: Constant<RegionQuery>,
}

impl DeliveryBench {
    /// The blocks of a configuration.
    pub fn new(config: &Config) -> Self {
        construct!({
            delivery: Delivery::new(config),
            lists_block: Lists::new(config),
            // Any seed will do.
            seed: Constant::new(
                MatchSetup {
                    seed_low: 0xf39c_c060_5ced_c834u64.into(),
                    seed_high: 0x9e37_79b9_7f4a_7c15u64.into(),
                }
                .pack(),
            ),
            regions: Regions::new(config),
            no_query: Constant::new(RegionQuery::default()),
        } default {
            clock reset mutation arrival_valid arrival lists_pending payload_valid payload lists_valid lists write_request_ready write_data_ready write_done write_done_error read_request_ready read_data_valid read_data read_data_error complete_ready sink_update_ready raise_ready fault_request_ready fault_valid fault control delivery_control_valid regions_control_valid arrival_ready payload_ready lists_ready write_request_valid write_request write_data_valid write_data read_request_valid read_request read_data_ready complete_valid complete completion_free reserve_valid reserve_endpoint release_valid release_endpoint sink_update_valid sink_update raise_valid raise fault_request_valid fault_request fault_ready count_expected count_unexpected count_invalid_requests initialized delivery_control_done delivery_control_result regions_control_done posted_depth unexpected_depth
        })
    }
}

#[module]
impl Logic for DeliveryBench {
    #[hdl_gen]
    fn update(&mut self) {
        clocked!(self, clock, reset, delivery, lists_block, regions);
        self.delivery.mutation.next = self.mutation.val();
        self.delivery.arrival_valid.next = self.arrival_valid.val();
        self.delivery.arrival.next = self.arrival.val();
        self.delivery.lists_pending.next = self.lists_pending.val();
        self.delivery.payload_valid.next = self.payload_valid.val();
        self.delivery.payload.next = self.payload.val();
        self.delivery.lists_valid.next = self.lists_valid.val();
        self.delivery.lists.next = self.lists.val();
        self.delivery.write_request_ready.next = self.write_request_ready.val();
        self.delivery.write_data_ready.next = self.write_data_ready.val();
        self.delivery.write_done.next = self.write_done.val();
        self.delivery.write_done_error.next = self.write_done_error.val();
        self.delivery.read_request_ready.next = self.read_request_ready.val();
        self.delivery.read_data_valid.next = self.read_data_valid.val();
        self.delivery.read_data.next = self.read_data.val();
        self.delivery.read_data_error.next = self.read_data_error.val();
        self.delivery.complete_ready.next = self.complete_ready.val();
        self.delivery.sink_update_ready.next = self.sink_update_ready.val();
        self.delivery.raise_ready.next = self.raise_ready.val();
        self.delivery.fault_request_ready.next = self.fault_request_ready.val();
        self.delivery.fault_valid.next = self.fault_valid.val();
        self.delivery.fault.next = self.fault.val();
        self.arrival_ready.next = self.delivery.arrival_ready.val();
        self.payload_ready.next = self.delivery.payload_ready.val();
        self.lists_ready.next = self.delivery.lists_ready.val();
        self.write_request_valid.next = self.delivery.write_request_valid.val();
        self.write_request.next = self.delivery.write_request.val();
        self.write_data_valid.next = self.delivery.write_data_valid.val();
        self.write_data.next = self.delivery.write_data.val();
        self.read_request_valid.next = self.delivery.read_request_valid.val();
        self.read_request.next = self.delivery.read_request.val();
        self.read_data_ready.next = self.delivery.read_data_ready.val();
        self.complete_valid.next = self.delivery.complete_valid.val();
        self.complete.next = self.delivery.complete.val();
        self.delivery.completion_free.next = self.completion_free.val();
        self.reserve_valid.next = self.delivery.reserve_valid.val();
        self.reserve_endpoint.next = self.delivery.reserve_endpoint.val();
        self.release_valid.next = self.delivery.release_valid.val();
        self.release_endpoint.next = self.delivery.release_endpoint.val();
        self.sink_update_valid.next = self.delivery.sink_update_valid.val();
        self.sink_update.next = self.delivery.sink_update.val();
        self.raise_valid.next = self.delivery.raise_valid.val();
        self.raise.next = self.delivery.raise.val();
        self.fault_request_valid.next = self.delivery.fault_request_valid.val();
        self.fault_request.next = self.delivery.fault_request.val();
        self.fault_ready.next = self.delivery.fault_ready.val();
        self.count_expected.next = self.delivery.count_expected.val();
        self.count_unexpected.next = self.delivery.count_unexpected.val();
        self.count_invalid_requests.next = self.delivery.count_invalid_requests.val();

        self.lists_block.seed.next = self.seed.val();
        self.lists_block.command.valid.next = self.delivery.command_valid.val();
        self.delivery.command_ready.next = self.lists_block.command.ready.val();
        self.lists_block.command.data.next = self.delivery.command.val();
        self.delivery.reply_valid.next = self.lists_block.reply.valid.val();
        self.delivery.reply.next = self.lists_block.reply.data.val();
        self.posted_depth.next = self.lists_block.posted_depth.val();
        self.unexpected_depth.next = self.lists_block.unexpected_depth.val();

        self.regions.delivery_query.valid.next = self.delivery.query_valid.val();
        self.regions.delivery_query.data.next = self.delivery.query.val();
        self.delivery.query_ready.next = self.regions.delivery_query.ready.val();
        self.delivery.allowed_valid.next = self.regions.delivery_allowed.valid.val();
        self.delivery.allowed.next = self.regions.delivery_allowed.data.val();
        self.regions.transmit_query.valid.next = false;
        self.regions.transmit_query.data.next = self.no_query.val();
        self.regions.posts_query.valid.next = false;
        self.regions.posts_query.data.next = self.no_query.val();
        self.regions.quiet.next = true;

        self.delivery.control.next = self.control.val();
        self.delivery.control_valid.next = self.delivery_control_valid.val();
        self.delivery_control_done.next = self.delivery.control_done.val();
        self.delivery_control_result.next = self.delivery.control_result.val();
        self.regions.control.data.next = self.control.val();
        self.regions.control.valid.next = self.regions_control_valid.val();
        self.regions_control_done.next = self.regions.control_done.val();
        self.initialized.next = self.delivery.initialized.val()
            & self.lists_block.initialized.val()
            & self.regions.initialized.val();
    }
}
