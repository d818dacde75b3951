//! Control requests of the firmware: how the tables of the card are changed.

use abi::control::{
    CardSetup, EndpointSetup, EventSetup, GrantSetup, MintSetup, Operation, PairReport, PairSetup,
    PermissionSetup, RegionSetup, RingSetup, RuleSetup, ShutOutSetup,
};
use abi::key::{remote_key_index, remote_key_tag};

use crate::card::{Card, Timing};
use crate::memory::HostMemory;
use crate::output::Update;
use crate::schedule::Action;

/// Words of data as a layout takes them; what isn't given is zero.
fn words<const N: usize>(data: &[u64]) -> [u64; N] {
    std::array::from_fn(|at| data.get(at).copied().unwrap_or(0))
}

impl<M: HostMemory, T: Timing> Card<M, T> {
    /// Carries out a control request, to its end, and returns its result.
    pub fn control(&mut self, operation: Operation, index: u16, data: &[u64]) -> u64 {
        // An endpoint's number is eight bits.
        let endpoint = index as u8;
        match operation {
            Operation::CardSet => {
                let setup = CardSetup::from_words(&words(data));
                self.transmit.mac = setup.mac;
            }
            // Nothing is hashed here.
            Operation::MatchSet => {}
            Operation::RingSet => {
                let setup = RingSetup::from_words(&words(data));
                self.endpoints.set_ring(index, setup);
            }
            Operation::EndpointSet => {
                let setup = EndpointSetup::from_words(&words(data));
                self.endpoints.set(endpoint, setup);
            }
            Operation::EndpointStop => self.endpoints.stop(endpoint),
            Operation::EndpointFlush => {
                self.settle();
                if endpoint < self.endpoints.count() {
                    self.deliver(|delivery, around| delivery.endpoint_flush(endpoint, around));
                    self.walk();
                }
            }
            Operation::EndpointClear => self.endpoints.clear(endpoint),
            Operation::PairSet => self.set_pair(index, &PairSetup::from_words(&words(data))),
            Operation::PairFail => {
                let status = data.first().map_or(0, |&word| word as u8);
                self.fail_wholly();
                self.fail_pair(index, status);
                self.fail_wholly();
            }
            Operation::PairClear => self.clear_pair(index),
            // An acknowledgement of the model goes by its schedule, whatever it may wait for.
            Operation::PairTimes => {
                let setup = PairSetup::from_words(&words(data));
                self.sends.set_times(index, &setup);
            }
            Operation::PairRead => {
                let report = PairReport {
                    refused: self.delivery.refused(index),
                    heard: self.receive.take_heard(index).into(),
                    closed: self.receive.is_closed(index).into(),
                    ..self.sends.report(index)
                };
                return report.to_words()[0];
            }
            Operation::RegionSet => {
                let region = RegionSetup::from_words(&words(data));
                self.regions.set(index, Some(region));
            }
            Operation::RegionClear => self.regions.set(index, None),
            Operation::RuleSet => {
                let rule = RuleSetup::from_words(&words(data));
                self.delivery.rule_set(index, Some(rule));
            }
            Operation::RuleClear => self.delivery.rule_set(index, None),
            Operation::GrantSet => {
                let grant = GrantSetup::from_words(&words(data));
                self.regions.grants.set(index, grant);
            }
            Operation::GrantClear => {
                self.regions.grants.clear(index);
                self.regions.mint.free(index);
            }
            Operation::MintSet => {
                let setup = MintSetup::from_words(&words(data));
                self.regions.mint.set_key(&setup);
            }
            Operation::GrantMint => {
                let Some(key) = self.regions.mint.mint() else {
                    return 0;
                };
                let grant = GrantSetup {
                    tag: remote_key_tag(key),
                    ..GrantSetup::from_words(&words(data))
                };
                self.regions.grants.set(remote_key_index(key), grant);
                return key;
            }
            Operation::PermissionSet => {
                let permission = PermissionSetup::from_words(&words(data));
                self.regions.grants.permit(index, permission);
            }
            Operation::SenderRevoke => self.regions.grants.revoke(index),
            // What was allowed has been done: an action ends before the next begins.
            Operation::Fence => {}
            Operation::CounterRead => return self.counters.read_index(index).into(),
            Operation::PairCounterRead => return self.counters.read_pair_index(index).into(),
            Operation::ShutOutSet => {
                let setup = ShutOutSetup::from_words(&words(data));
                self.shut_outs.set(index, setup);
            }
            Operation::ShutOutRead => {
                return self.shut_outs.report(index, self.now).to_words()[0];
            }
            Operation::EventRaise => {
                let EventSetup {
                    cause, pair, info, ..
                } = EventSetup::from_words(&words(data));
                let memory = &mut self.memory;
                self.endpoints
                    .raise_to_host(memory, endpoint, cause, pair, info, 0);
            }
        }
        0
    }

    /// What has been looked at is delivered, and who is to fail does: none of it is left for the next connection of a pair.
    fn settle(&mut self) {
        let left = |card: &Self| {
            card.next_fault().is_some()
                || !card.arrivals.is_empty()
                || !card.updates.is_empty()
                || !card.answered.is_empty()
                || !card.asked.is_empty()
        };
        while left(self) {
            let next = self.updates.front().copied();
            if let Some(Update { pair, accepted, .. }) = next {
                self.step(Action::Update { pair, accepted });
            }
            if let Some(fault) = self.next_fault() {
                self.step(fault);
            }
            self.step(Action::Arrive);
            self.step(Action::Answered);
            self.step(Action::Respond);
        }
    }

    /// The failure that is under way is carried out to its end.
    fn fail_wholly(&mut self) {
        while self.failing.is_some() {
            self.flush();
        }
    }

    /// A walk comes to its end.
    fn walk(&mut self) {
        while self.delivery.walks() {
            self.deliver(|delivery, around| delivery.walk_step(around));
        }
    }

    fn set_pair(&mut self, pair: u16, setup: &PairSetup) {
        self.settle();
        let outputs = self.sends.set(pair, Some(setup));
        self.put_all(outputs);
        self.receive.set(pair, Some(*setup));
        self.counters.start_pair(pair);
        self.transmit.set(pair, Some(*setup));
        self.acknowledge.set(pair, true);
        self.delivery.pair_set(pair, setup);
        self.regions.grants.connect(pair, setup.domain);
        self.shut_outs.connect(pair);
        self.peer_refusals.connect(pair, setup.endpoint);
        if let Some(sound) = self.sound.get_mut(usize::from(pair)) {
            *sound = Some(setup.endpoint);
        }
    }

    fn clear_pair(&mut self, pair: u16) {
        self.settle();
        // A frame that says that the pair has failed goes out before the pair is nobody's.
        self.step(Action::Control(pair));
        let outputs = self.sends.set(pair, None);
        self.put_all(outputs);
        self.receive.set(pair, None);
        self.transmit.set(pair, None);
        self.acknowledge.set(pair, false);
        self.regions.grants.close(pair);
        self.peer_refusals.clear(pair);
        if usize::from(pair) < self.sound.len() {
            self.sound[usize::from(pair)] = None;
            self.deliver(|delivery, around| delivery.pair_clear(pair, around));
            self.walk();
        }
    }
}
