//! Pairs and endpoints come and go: what names them ends.

use abi::control::PairSetup;
use abi::request::pair_and_slot;
use abi::status::Status;

use super::{Delivery, Neighbours, Sink, of_pair};
use crate::breaks::Break;
use crate::matching::{Command, Operation};

impl Delivery {
    /// A pair is connected.
    pub fn pair_set(&mut self, pair: u16, setup: &PairSetup) {
        if let Some(sink) = self.sink_mut(pair) {
            *sink = Sink {
                connected: true,
                endpoint: setup.endpoint,
                granted: setup.local_credits,
                slots: setup.slots,
                ..Sink::default()
            };
        }
    }

    /// A pair has failed: the receives that name it end with the status.
    pub fn pair_fails(&mut self, pair: u16, status: u8, around: &mut impl Neighbours) {
        let endpoint = self.sink(pair).endpoint;
        if let Some(sink) = self.sink_mut(pair) {
            sink.failed = Some(status);
        }
        if self.broken != Break::FailureKeepsReceives {
            self.flush_pair(endpoint, pair, status, around);
        }
        self.wake(around);
    }

    /// A pair is forgotten, with its messages, claimed ones too, and its slots. Receives that name it are flushed.
    pub fn pair_clear(&mut self, pair: u16, around: &mut impl Neighbours) {
        let endpoint = self.sink(pair).endpoint;
        let forget = of_pair(Operation::TakeUnexpectedOfPair, endpoint, pair);
        while self.command(&forget, around).found {}
        self.messages
            .retain(|place, _| pair_and_slot(*place).0 != pair);
        if let Some(sink) = self.sink_mut(pair) {
            *sink = Sink::default();
        }
        self.flush_pair(endpoint, pair, Status::Flushed.code(), around);
        self.wake(around);
    }

    /// The posted receives of an endpoint are flushed, in any order.
    pub fn endpoint_flush(&mut self, endpoint: u8, around: &mut impl Neighbours) {
        let status = Status::Flushed.code();
        let take = Command {
            endpoint,
            ..Command::new(Operation::TakePostedOfEndpoint)
        };
        self.flush(&take, status, around);
        if let Some(waiting) = self.stall_mut(endpoint).flush() {
            self.ends(endpoint, waiting, status, around);
        }
        let stall = self.stall_mut(endpoint);
        stall.stalled = false;
        stall.kept = false;
        self.wake(around);
    }

    fn flush_pair(&mut self, endpoint: u8, pair: u16, status: u8, around: &mut impl Neighbours) {
        let take = of_pair(Operation::TakePostedOfPair, endpoint, pair);
        self.flush(&take, status, around);
        if let Some(waiting) = self.stall_mut(endpoint).flush_pair(pair) {
            self.ends(endpoint, waiting, status, around);
        }
        // What names the pair, and has been refused, may end as the pair did.
        self.stall_mut(endpoint).news = true;
    }

    /// Ends the receives that a command takes, one by one.
    fn flush(&mut self, take: &Command, status: u8, around: &mut impl Neighbours) {
        loop {
            let reply = self.command(take, around);
            if !reply.found {
                return;
            }
            let receive = self.receives.remove(&reply.index).expect("it is posted");
            self.goes();
            self.ends(receive.endpoint, receive.request, status, around);
        }
    }
}
