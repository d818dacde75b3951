//! Rules: which rows of the gates' table hold one, and whose it is. What a rule says the gates alone keep.
//!
//! ```text
//!  SetRule ──► Waiting ──► Setting ──► Used ──► Clearing ──► Free
//!                 └── given up ─┴──────────────────▲  until the gates answer in time
//! ```
//!
//! The gates forget the rules of an endpoint when it is flushed, and take a pair out of every group when it is cleared: a place that is used again is in no
//! group of before.

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

/// A row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) generation: u16,
    pub(crate) endpoint: u8,
    pub(crate) state: RuleState,
}

impl Rule {
    /// A free row whose generations begin after `generation`.
    pub(crate) const fn free(generation: u16) -> Self {
        Self {
            generation,
            endpoint: 0,
            state: RuleState::Free,
        }
    }

    /// Takes a free row for one more rule.
    pub(crate) fn take(&mut self, endpoint: u8) {
        *self = Self {
            generation: self.generation.wrapping_add(1),
            endpoint,
            state: RuleState::Waiting,
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
