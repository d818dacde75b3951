//! Delivery with the blocks that it asks, as they are wired in a card: what its tests verilate.
//!
//! ```text
//!              ┌──────────┐ command, reply ┌───────┐
//!   pins ◄────►│ Delivery │◄──────────────►│ Lists │
//!              │          │ query, allowed ┌─┴─────┴─┐       ┌───────┐
//!              │          │◄──────────────►│ Regions │◄──────┤ Fence │◄── control
//!              └────┬─────┘                └─────────┘       └───▲───┘
//!                   └──────────────── access_ends ───────────────┘
//! ```
//!
//! Pins have the names that Delivery's ports have.

use super::delivery::Delivery;
use crate::config::Config;
use crate::matching::Lists;
use crate::mgmt::Fanout;
use crate::prelude::*;
use crate::protect::{Fence, Regions};
use crate::types::{
    Access, Answered, Arrival, ControlRequest, DmaRequest, Fault, FetchedList, MatchCommand,
    MatchReply, MatchSetup, RaiseEvent, RemoteGet, SinkUpdate, Unpack, WriteCompletion,
};

/// The blocks.
#[block(config: &Config)]
pub struct DeliveryBench {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// All tables are cleared.
    pub initialized: Signal<Out, Bit>,
    /// As Delivery's, and so are all that follow.
    pub arrival: Stream<In, Arrival>,
    /// List rings that have more.
    pub lists_pending: Signal<In, Bits<16>>,
    /// Words from the wire.
    pub payload: Stream<In, Bits<64>>,
    /// Requests of the list rings.
    pub lists: Stream<In, FetchedList>,
    /// One of them enters the order of the card.
    pub request_enters: Signal<Out, Bit>,
    /// It does so anew.
    pub request_again: Signal<Out, Bit>,
    /// A command enters Lists.
    pub command: Pulse<Out, MatchCommand>,
    /// Its reply.
    pub reply: Pulse<Out, MatchReply>,
    /// Writes.
    pub write_request: Stream<Out, DmaRequest>,
    /// Words to write.
    pub write_data: Stream<Out, Bits<64>>,
    /// A write was answered: whether by an error.
    pub write_done: Pulse<In, Bit>,
    /// Reads.
    pub read_request: Stream<Out, DmaRequest>,
    /// Words read.
    pub read_data: Stream<In, Bits<64>>,
    /// One of the read was answered by an error.
    pub read_data_error: Signal<In, Bit>,
    /// Completions.
    pub complete: Stream<Out, WriteCompletion>,
    /// Endpoints for which one can be reserved.
    pub completion_free: Signal<In, Bits<32>>,
    /// One is.
    pub reserve: Pulse<Out, Bits<8>>,
    /// One isn't needed.
    pub unreserve: Pulse<Out, Bits<8>>,
    /// Progress of a pair.
    pub sink_update: Stream<Out, SinkUpdate>,
    /// A get of a peer, to be answered.
    pub asked: Stream<Out, RemoteGet>,
    /// The answer of a get has come to its end.
    pub answered: Stream<Out, Answered>,
    /// A get of this pair's peer was refused.
    pub refused_elsewhere: Stream<In, Bits<16>>,
    /// An event.
    pub raise: Stream<Out, RaiseEvent>,
    /// A pair has to fail.
    pub fault_request: Stream<Out, Fault>,
    /// A pair has failed.
    pub fault: Stream<In, Fault>,
    /// A control request; taken when Delivery and Regions have done what concerns them.
    pub control: Stream<In, ControlRequest>,
    /// Pulse: Delivery has done what concerns it.
    pub delivery_has_done: Signal<Out, Bit>,
    /// With `control.ready`: Delivery's answer.
    pub control_result: Signal<Out, Bits<64>>,
    /// A message met its receive on arrival.
    pub count_expected: Signal<Out, Bit>,
    /// A message went to the unexpected list.
    pub count_unexpected: Signal<Out, Bit>,
    /// A message was dropped since a rule revokes it.
    pub count_rule_drops: Signal<Out, Bit>,
    /// With it: its pair.
    pub ruled_pair: Signal<Out, Bits<16>>,
    /// A request was refused as malformed.
    pub count_invalid_requests: Signal<Out, Bit>,
    /// Live posted receives.
    pub posted_depth: Signal<Out, Bits<16>>,
    /// Live unexpected messages.
    pub unexpected_depth: Signal<Out, Bits<16>>,
    /// Pulse: the tables of the regions change by the control request. It is done when what it concerns has ended.
    pub tables_change: Signal<Out, Bit>,
    #[is(Delivery::new(config))]
    delivery: Delivery,
    #[is(Lists::new(config))]
    lists_block: Lists,
    // Any seed will do.
    #[is(Constant::new(MatchSetup { seed_low: 0xf39c_c060_5ced_c834u64.into(), seed_high: 0x9e37_79b9_7f4a_7c15u64.into() }.pack()))]
    seed: Constant<Bits<128>>,
    #[is(Regions::new(config))]
    regions: Regions,
    fence: Fence,
    #[is(Fanout::new(&[Delivery::REQUESTS, Regions::REQUESTS]))]
    fanout: Fanout,
    #[is(config.pairs)]
    _pairs: usize,
}

impl DeliveryBench {
    /// The blocks of a configuration.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(pairs = self._pairs)]
impl Logic for DeliveryBench {
    fn update(&mut self) {
        join!(self.arrival => self.delivery.arrival);
        self.delivery.lists_pending.next = self.lists_pending.val();
        join!(self.payload => self.delivery.payload);
        join!(self.lists => self.delivery.lists);
        self.request_enters.next = self.delivery.request_enters.val();
        self.request_again.next = self.delivery.request_again.val();
        join!(self.delivery.write_request => self.write_request);
        join!(self.delivery.write_data => self.write_data);
        join!(self.write_done => self.delivery.write_done);
        join!(self.delivery.read_request => self.read_request);
        join!(self.read_data => self.delivery.read_data);
        self.delivery.read_data_error.next = self.read_data_error.val();
        join!(self.delivery.complete => self.complete);
        self.delivery.completion_free.next = self.completion_free.val();
        join!(self.delivery.reserve => self.reserve);
        join!(self.delivery.unreserve => self.unreserve);
        join!(self.delivery.sink_update => self.sink_update);
        join!(self.delivery.asked => self.asked);
        join!(self.delivery.answered => self.answered);
        join!(self.refused_elsewhere => self.delivery.refused_elsewhere);
        join!(self.delivery.raise => self.raise);
        join!(self.delivery.fault_request => self.fault_request);
        join!(self.fault => self.delivery.fault);
        self.count_expected.next = self.delivery.count_expected.val();
        self.count_unexpected.next = self.delivery.count_unexpected.val();
        self.count_rule_drops.next = self.delivery.count_rule_drops.val();
        self.ruled_pair.next = self.delivery.ruled_pair.val();
        self.count_invalid_requests.next = self.delivery.count_invalid_requests.val();

        self.lists_block.seed.next = self.seed.val();
        join!(self.delivery.command => self.lists_block.command);
        join!(self.lists_block.reply => self.delivery.reply);
        join!(self.delivery.unit => self.lists_block.unit);
        send!(
            self.command,
            self.delivery.command.valid.val() & self.lists_block.command.ready.val(),
            self.delivery.command.data.val()
        );
        send!(
            self.reply,
            self.lists_block.reply.valid.val(),
            self.lists_block.reply.data.val()
        );
        self.posted_depth.next = self.lists_block.posted_depth.val();
        self.unexpected_depth.next = self.lists_block.unexpected_depth.val();

        join!(self.delivery.query => self.regions.delivery_query);
        join!(self.regions.delivery_allowed => self.delivery.allowed);
        join!(self.delivery.posts_query => self.regions.posts_query);
        join!(self.regions.posts_allowed => self.delivery.posts_allowed);
        self.regions.gather_query.valid.next = false;
        self.regions.gather_query.data.next = Access::default();
        // Delivery asks for nobody whose pair has failed.
        self.regions.fault.valid.next = false;
        self.regions.fault.data.next = Fault::default();
        // None of its grants ends by itself.
        self.regions.tick.next = false;

        self.fanout.abandon.next = false;
        join!(self.control => self.fanout.control);
        self.control_result.next = self.fanout.control_result.val();
        join!(self.fanout.block[0] => self.delivery.control);
        self.delivery_has_done.next =
            self.fanout.block[0].valid.val() & self.delivery.control.ready.val();
        self.fanout.block_result[0].next = self.delivery.control_result.val();
        join!(self.fanout.block[1] => self.fence.control);
        join!(self.fence.inner => self.regions.control);
        self.tables_change.next = self.fence.inner.valid.val() & self.regions.control.ready.val();
        join!(self.regions.gather_ticket => self.fence.begins[0]);
        self.fence.ends[0].next = false;
        join!(self.regions.delivery_ticket => self.fence.begins[1]);
        self.fence.ends[1].next = self.delivery.access_ends.val();
        self.fanout.block_result[1].next = 0.into();
        self.initialized.next = self.delivery.initialized.val()
            & self.lists_block.initialized.val()
            & self.regions.initialized.val();
    }
}
