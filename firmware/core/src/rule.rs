//! Rules: which rows of the gates' table hold one, whose it is, and what it says. The host sets one, or a peer's word does (`revoked.rs`).
//!
//! ```text
//!  SetRule ──► Waiting ──► Setting ──► Used ──► Clearing ──► Free
//!                 └── given up ─┴──────────────────▲  until the gates answer in time
//! ```
//!
//! The gates forget the rules of an endpoint when it is flushed, and take a pair out of every group when it is cleared: a place that is used again is in no
//! group of before.

use abi::control::RuleSetup;
use abi::mailbox::{id_generation, id_index, object_id};

/// What a row is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleState {
    /// Nothing.
    Free,
    /// The gates are to be told of its rule.
    Waiting,
    /// They are being told.
    Setting,
    /// They hold it.
    Used,
    /// They are to forget it.
    Clearing,
}

/// What a free row says.
const NOTHING: RuleSetup = RuleSetup {
    endpoint: 0,
    reserved0: 0,
    context: 0,
    reserved1: 0,
    match_bits: 0,
    mask: 0,
    pairs_low: 0,
    pairs_high: 0,
};

/// A row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) generation: u16,
    pub(crate) state: RuleState,
    /// What the gates are told, as it was when the rule was made: pairs of its group may have been closed since.
    pub(crate) setup: RuleSetup,
}

impl Rule {
    /// A free row whose generations begin after `generation`.
    pub(crate) const fn free(generation: u16) -> Self {
        Self {
            generation,
            state: RuleState::Free,
            setup: NOTHING,
        }
    }

    /// Takes a free row for one more rule.
    pub(crate) fn take(&mut self, setup: RuleSetup) {
        *self = Self {
            generation: self.generation.wrapping_add(1),
            state: RuleState::Waiting,
            setup,
        };
    }

    /// Begins to forget it.
    pub(crate) fn forget(&mut self) {
        self.state = match self.state {
            // The gates have not heard of it.
            RuleState::Free | RuleState::Waiting => RuleState::Free,
            _ => RuleState::Clearing,
        };
    }

    /// Its id.
    pub(crate) const fn id(&self, index: usize) -> u32 {
        object_id(index as u16, self.generation)
    }
}

/// Where the rule of an id is, set or being forgotten.
pub(crate) fn find(rules: &[Rule], id: u32) -> Option<usize> {
    let index = usize::from(id_index(id));
    let rule = rules.get(index)?;
    let named = matches!(rule.state, RuleState::Used | RuleState::Clearing);
    (named && rule.generation == id_generation(id)).then_some(index)
}
