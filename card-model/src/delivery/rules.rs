//! Which messages, and which requests, are revoked: a table of rules, looked at before anything is matched.

use abi::control::RuleSetup;

use crate::breaks::Break;

/// A message, or what a request looks for.
#[derive(Clone, Copy, Debug)]
pub struct Tag {
    /// Its endpoint.
    pub endpoint: u8,
    /// None: any source.
    pub pair: Option<u16>,
    /// Its context.
    pub context: u16,
    /// Its match bits.
    pub match_bits: u64,
    /// Of these, those that may be anything.
    pub ignore_bits: u64,
}

/// The rules of a card.
#[derive(Clone, Debug)]
pub struct Rules {
    rows: Vec<Option<RuleSetup>>,
}

impl Rules {
    /// So many rows, none of which has a rule.
    pub fn new(count: usize) -> Self {
        Self {
            rows: vec![None; count],
        }
    }

    /// Enters a rule or forgets it. A row beyond the table is none.
    pub fn set(&mut self, row: u16, rule: Option<RuleSetup>, broken: Break) {
        let kept = rule.is_none() && broken == Break::RuleNotCleared;
        if let Some(found) = self.rows.get_mut(usize::from(row)).filter(|_| !kept) {
            *found = rule;
        }
    }

    /// A pair is closed: it leaves the groups.
    pub fn forget_pair(&mut self, pair: u16, broken: Break) {
        if broken == Break::RuleKeepsPair {
            return;
        }
        for rule in self.rows.iter_mut().flatten() {
            match pair {
                0..64 => rule.pairs_low &= !(1 << pair),
                64..128 => rule.pairs_high &= !(1 << (pair - 64)),
                _ => {}
            }
        }
    }

    /// An endpoint is closed: its rules go.
    pub fn forget_endpoint(&mut self, endpoint: u8) {
        let of_endpoint = |rule: &RuleSetup| rule.endpoint == endpoint;
        for row in &mut self.rows {
            row.take_if(|rule| of_endpoint(rule));
        }
    }

    /// Whether one falls under a rule.
    pub fn cover(&self, tag: &Tag, broken: Break) -> bool {
        self.rows.iter().flatten().any(|rule| {
            let mut rule = *rule;
            match broken {
                Break::RuleMaskIgnored => rule.mask = u64::MAX,
                Break::RuleContextIgnored => rule.context = tag.context,
                Break::RuleGroupIgnored => (rule.pairs_low, rule.pairs_high) = (u64::MAX, u64::MAX),
                Break::RuleEndpointIgnored => rule.endpoint = tag.endpoint,
                _ => {}
            }
            let Tag {
                endpoint,
                pair,
                context,
                match_bits,
                ignore_bits,
            } = *tag;
            rule.covers(endpoint, pair, context, match_bits, ignore_bits)
        })
    }
}
