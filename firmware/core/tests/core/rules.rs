//! Rules: whose pairs a group may have, how many there may be, and when their rows are free again.

use crate::breaks::{promise, promise_eq};
use crate::commands::{able, connect, domain, open_pair, rings};
use crate::gates::{Refusal, Unit, call, pass, settle};
use abi::capability::CAPABILITY_RULES;
use abi::control::RuleSetup;
use abi::mailbox::{
    CloseEndpoint, Command, EndpointId, Nothing, OpenEndpoint, Pair, RuleId, SetRule, id_index,
};
use abi::status::MailboxStatus;
use firmware_core::CONTROL_TIMEOUT;

fn open(fw: &mut Unit) -> u32 {
    let domain = domain(fw);
    let open: OpenEndpoint = rings(domain);
    let opened: EndpointId = call(fw, Command::OpenEndpoint, open).unwrap();
    opened.endpoint
}

/// The bit of a new pair of the endpoint, and its id.
fn pair(fw: &mut Unit, endpoint: u32) -> (u64, u32) {
    let opened = open_pair(fw, endpoint, 1).unwrap();
    (1 << id_index(opened.pair), opened.pair)
}

fn all_of(endpoint: u32, low: u64) -> SetRule {
    SetRule {
        endpoint,
        context: 7,
        match_bits: 0x0123_4567_89ab_cdef,
        mask: 0xff00_0000_0000_0000,
        low,
        high: 0,
    }
}

fn set(fw: &mut Unit, rule: SetRule) -> Result<u32, Refusal> {
    call::<_, RuleId>(fw, Command::SetRule, rule).map(|set| set.rule)
}

fn clear(fw: &mut Unit, rule: u32) -> Result<Nothing, Refusal> {
    call(fw, Command::ClearRule, RuleId { rule })
}

#[test]
fn a_rule_goes_to_the_gates_as_it_was_given_until_it_is_cleared() {
    let mut fw = able();
    let endpoint = open(&mut fw);
    let (bit, _) = pair(&mut fw, endpoint);
    let given = all_of(endpoint, bit);
    let rule = set(&mut fw, given).unwrap();
    let wanted = RuleSetup {
        endpoint: id_index(endpoint) as u8,
        context: 7,
        match_bits: given.match_bits,
        mask: given.mask,
        pairs_low: bit,
        ..RuleSetup::default()
    };
    let held: Vec<_> = fw.card().rules.values().copied().collect();
    promise_eq!(held, [wanted]);
    promise_eq!(clear(&mut fw, rule), Ok(Nothing {}));
    promise!(fw.card().rules.is_empty());
    let not_found = Err((MailboxStatus::NotFound, 0));
    promise_eq!(clear(&mut fw, rule), not_found, "it is gone");
    // Another rule in its row has another id.
    let next = set(&mut fw, given).unwrap();
    promise!(next != rule && id_index(next) == id_index(rule));
    promise_eq!(clear(&mut fw, rule), not_found, "its row is another's");
}

#[test]
fn a_card_has_so_many_rules_and_says_how_many() {
    let mut fw = able();
    let endpoint = open(&mut fw);
    let (bit, _) = pair(&mut fw, endpoint);
    let identity: abi::mailbox::Identity = call(&mut fw, Command::Identify, Nothing {}).unwrap();
    let rules: Vec<_> = (0..identity.rules)
        .map(|_| set(&mut fw, all_of(endpoint, bit)).unwrap())
        .collect();
    promise_eq!(rules.len(), 4);
    let full = Err((MailboxStatus::NoResource, 0));
    promise_eq!(set(&mut fw, all_of(endpoint, bit)), full);
    promise_eq!(clear(&mut fw, rules[2]), Ok(Nothing {}));
    promise!(set(&mut fw, all_of(endpoint, bit)).is_ok());
    promise_eq!(set(&mut fw, all_of(endpoint, bit)), full);
}

#[test]
pub fn a_group_is_of_open_pairs_of_its_endpoint() {
    let mut fw = able();
    let (own, other) = (open(&mut fw), open(&mut fw));
    let (bit, id) = pair(&mut fw, own);
    let (second, _) = pair(&mut fw, own);
    let (strange, stranger) = pair(&mut fw, other);
    let _: Nothing = call(&mut fw, Command::ConnectPair, connect(stranger)).unwrap();
    let wrong = |position| Err((MailboxStatus::InvalidArgument, position));
    for (low, position) in [(0, 4), (bit | strange, 4), (bit | 1 << 7, 4), (1 << 63, 4)] {
        promise_eq!(set(&mut fw, all_of(own, low)), wrong(position), "{low:#x}");
    }
    let high = SetRule {
        high: 1,
        ..all_of(own, bit)
    };
    promise_eq!(set(&mut fw, high), wrong(5));
    let context = SetRule {
        context: 0x1_0000,
        ..all_of(own, bit)
    };
    promise_eq!(set(&mut fw, context), wrong(1));
    promise!(fw.card().rules.is_empty(), "a refusal reached the gates");
    let _: Nothing = call(&mut fw, Command::ClosePair, Pair { pair: id }).unwrap();
    promise_eq!(set(&mut fw, all_of(own, bit | second)), wrong(4), "closed");
    promise!(set(&mut fw, all_of(own, second)).is_ok());
    let gone = all_of(own ^ 1 << 16, second);
    let not_found = Err((MailboxStatus::NotFound, 0));
    promise_eq!(set(&mut fw, gone), not_found, "no such endpoint");
}

#[test]
fn a_card_without_rules_says_so() {
    let mut fw = crate::commands::firmware();
    let endpoint = open(&mut fw);
    let (bit, _) = pair(&mut fw, endpoint);
    let unsupported = Err((MailboxStatus::Unsupported, CAPABILITY_RULES));
    promise_eq!(set(&mut fw, all_of(endpoint, bit)), unsupported);
}

#[test]
pub fn the_rules_of_a_closed_endpoint_are_free_again() {
    let mut fw = able();
    for _ in 0..3 {
        let endpoint = open(&mut fw);
        let (bit, _) = pair(&mut fw, endpoint);
        let mut last = Ok(0);
        for _ in 0..4 {
            last = set(&mut fw, all_of(endpoint, bit));
            promise!(last.is_ok(), "a row is lost");
        }
        let close = CloseEndpoint { endpoint };
        let _: Nothing = call(&mut fw, Command::CloseEndpoint, close).unwrap();
        promise!(fw.card().rules.is_empty());
        let not_found = Err((MailboxStatus::NotFound, 0));
        promise_eq!(clear(&mut fw, last.unwrap()), not_found);
    }
}

#[test]
pub fn a_rule_is_cleared_until_the_gates_answer_in_time_and_its_row_stays_taken() {
    for (answered_late, sets) in [(1, false), (3, false), (2, true)] {
        let mut fw = able();
        let endpoint = open(&mut fw);
        let (bit, _) = pair(&mut fw, endpoint);
        for _ in 0..3 {
            set(&mut fw, all_of(endpoint, bit)).unwrap();
        }
        let late = (MailboxStatus::HardwareTimeout, 0);
        if sets {
            // It was set all the same, and the host knows no id of it.
            fw.card().patience = 0;
            promise_eq!(set(&mut fw, all_of(endpoint, bit)), Err(late));
        } else {
            let rule = set(&mut fw, all_of(endpoint, bit)).unwrap();
            fw.card().patience = 0;
            promise_eq!(clear(&mut fw, rule), Err(late));
        }
        let full = Err((MailboxStatus::NoResource, 0));
        for k in 0..answered_late {
            promise_eq!(set(&mut fw, all_of(endpoint, bit)), full, "it is taken");
            // What was to be cleared isn't.
            let forgets = usize::from(!sets || k > 0);
            (fw.card().patience, fw.card().forgets) = (1, forgets);
            settle(&mut fw);
            promise_eq!(fw.card().rules.len(), 4);
            pass(&mut fw, CONTROL_TIMEOUT + 1);
        }
        fw.card().patience = usize::MAX;
        settle(&mut fw);
        promise_eq!(fw.card().rules.len(), 3);
        promise!(set(&mut fw, all_of(endpoint, bit)).is_ok());
    }
}
