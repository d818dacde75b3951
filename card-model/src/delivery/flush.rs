//! Pairs and endpoints come and go: what names them ends, one after the other.
//!
//! The failure of a pair, the end of a pair and that of an endpoint are *walks*: each begins at once, and takes a step with each further
//! call, so that other things may be done in between, as in the gates. One is under way at a time.

use abi::control::PairSetup;
use abi::request::pair_and_slot;
use abi::status::Status;

use super::{Delivery, Neighbours, Sink, of_pair};
use crate::breaks::Break;
use crate::matching::{Command, Operation};

/// A walk that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    /// Its next step.
    next: Command,
    /// What the receives complete with.
    status: u8,
    /// The pair that is closed.
    clears: Option<u16>,
}

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

    /// A pair has failed: from now on it has. The receives that name it end with the status.
    pub fn pair_fails(&mut self, pair: u16, status: u8, around: &mut impl Neighbours) {
        let endpoint = self.sink(pair).endpoint;
        if let Some(sink) = self.sink_mut(pair) {
            sink.failed = Some(status);
        }
        let walk = Walk {
            next: of_pair(Operation::TakePostedOfPair, endpoint, pair),
            status,
            clears: None,
        };
        if self.broken != Break::FailureKeepsReceives {
            self.walk = Some(walk);
            self.walk_on(around);
            self.waiting_of_pair_ends(&walk, around);
        }
        self.wake(around);
    }

    /// A pair is closed: from now on it isn't connected. Its messages are forgotten, then claimed ones too, and its slots. Receives that name it
    /// are flushed.
    pub fn pair_clear(&mut self, pair: u16, around: &mut impl Neighbours) {
        let endpoint = self.sink(pair).endpoint;
        if let Some(sink) = self.sink_mut(pair) {
            sink.connected = false;
        }
        self.rules.forget_pair(pair, self.broken);
        let walk = Walk {
            next: of_pair(Operation::TakeUnexpectedOfPair, endpoint, pair),
            status: Status::Flushed.code(),
            clears: Some(pair),
        };
        self.walk = Some(walk);
        self.walk_on(around);
        self.waiting_of_pair_ends(&walk, around);
        self.wake(around);
    }

    /// The posted receives of an endpoint are flushed, in any order.
    pub fn endpoint_flush(&mut self, endpoint: u8, around: &mut impl Neighbours) {
        self.rules.forget_endpoint(endpoint);
        let status = Status::Flushed.code();
        let next = Command {
            endpoint,
            ..Command::new(Operation::TakePostedOfEndpoint)
        };
        self.walk = Some(Walk {
            next,
            status,
            clears: None,
        });
        self.walk_on(around);
        let stall = self.stall_mut(endpoint);
        let waiting = stall.flush();
        stall.stalled = false;
        stall.kept = false;
        if let Some(waiting) = waiting {
            self.ends(&waiting, status, around);
        }
        self.wake(around);
    }

    /// Whether a walk is under way.
    pub fn walks(&self) -> bool {
        self.walk.is_some()
    }

    /// A walk takes its next step: something that it looks for goes, or it doesn't find any yet, or it comes to its end.
    pub fn walk_step(&mut self, around: &mut impl Neighbours) {
        self.walk_on(around);
        self.wake(around);
    }

    fn waiting_of_pair_ends(&mut self, walk: &Walk, around: &mut impl Neighbours) {
        let Command { endpoint, pair, .. } = walk.next;
        if let Some(waiting) = self.stall_mut(endpoint).flush_pair(pair) {
            self.ends(&waiting, walk.status, around);
        }
        // What names the pair, and has been refused, may end as the pair did.
        self.stall_mut(endpoint).news = true;
    }

    fn walk_on(&mut self, around: &mut impl Neighbours) {
        let Some(Walk {
            next,
            status,
            clears,
        }) = self.walk
        else {
            return;
        };
        let reply = self.command(&next, around);
        let forgets = next.operation == Operation::TakeUnexpectedOfPair;
        match (reply.found, forgets) {
            (true, true) => {
                self.messages.remove(&reply.index);
            }
            (true, false) => {
                let receive = self.receives.remove(&reply.index).expect("it is posted");
                self.goes();
                self.ends(&receive, status, around);
            }
            (false, _) => {}
        }
        let goes_on = reply.found || reply.more;
        let next = match forgets {
            true if goes_on => Some(next),
            true => Some(of_pair(
                Operation::TakePostedOfPair,
                next.endpoint,
                next.pair,
            )),
            false => goes_on.then_some(Command {
                again: true,
                ..next
            }),
        };
        self.walk = next.map(|next| Walk {
            next,
            status,
            clears,
        });
        if let (None, Some(pair)) = (self.walk, clears) {
            self.messages
                .retain(|place, _| pair_and_slot(*place).0 != pair);
            if let Some(sink) = self.sink_mut(pair) {
                *sink = Sink::default();
            }
        }
    }
}
