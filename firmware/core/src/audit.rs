//! The audit ring: typed events, of which those that repeat are one entry with a count, so that a storm leaves what was before it.
//!
//! ```text
//!  kind, object, info ──┬─ an entry has them ──► count + n, and it is the newest
//!                       └─ none has ──► a new entry; if all are taken, one of the most frequent kind goes
//! ```
//!
//! An entry has the number of its last occurrence, so whoever reads on from a number finds what is new since and what has repeated since.

use crate::card::{Break, Card};
use abi::mailbox::{AuditEntry, AuditKind};
use heapless::Vec;

/// Entries that are kept.
pub(crate) const ENTRIES: usize = 32;

/// Codes of kinds are less than this.
const KINDS: usize = AuditKind::ALL[AuditKind::ALL.len() - 1].code() as usize + 1;

#[derive(Clone, Copy)]
struct Entry {
    kind: AuditKind,
    object: u32,
    info: u32,
    count: u32,
    time: u32,
    number: u32,
}

/// At most [`ENTRIES`] entries.
pub(crate) struct Audit {
    entries: Vec<Entry, ENTRIES>,
    /// Number of the occurrence that is recorded next.
    next: u32,
}

impl Audit {
    pub(crate) const fn new() -> Self {
        Self {
            entries: Vec::new(),
            next: 0,
        }
    }

    /// Records that something has occurred, now.
    pub(crate) fn record(&mut self, kind: AuditKind, object: u32, info: u32, card: &impl Card) {
        self.record_many(kind, object, info, 1, card);
    }

    /// Records that something has occurred `count` times.
    pub(crate) fn record_many(
        &mut self,
        kind: AuditKind,
        object: u32,
        info: u32,
        count: u32,
        card: &impl Card,
    ) {
        let (number, time) = (self.next, card.now());
        self.next = self.next.wrapping_add(1);
        let folds = |entry: &Entry| {
            let newest = entry.number == number.wrapping_sub(1);
            newest || !card.is_broken(Break::AuditFoldsNewest)
        };
        let same = |entry: &&mut Entry| {
            (entry.kind, entry.object, entry.info) == (kind, object, info) && folds(entry)
        };
        if let Some(entry) = self.entries.iter_mut().find(same) {
            entry.count = entry.count.saturating_add(count);
            (entry.time, entry.number) = (time, number);
            return;
        }
        if self.entries.is_full() {
            self.make_room(card.is_broken(Break::AuditForgetsOldest));
        }
        // There is room now.
        let _ = self.entries.push(Entry {
            kind,
            object,
            info,
            count,
            time,
            number,
        });
    }

    /// Forgets the oldest entry of the kind that has the most, so that a kind of which many differ drives out its own; or of `any` kind.
    fn make_room(&mut self, any: bool) {
        let mut entries_of = [0_u8; KINDS];
        for entry in &self.entries {
            entries_of[usize::from(entry.kind.code())] += 1;
        }
        let weight = |entry: &Entry| {
            let alike = entries_of[usize::from(entry.kind.code())];
            let alike = if any { 0 } else { alike };
            (alike, self.next.wrapping_sub(entry.number))
        };
        let goes = (0..self.entries.len()).max_by_key(|&at| weight(&self.entries[at]));
        if let Some(goes) = goes {
            self.entries.swap_remove(goes);
        }
    }

    /// The entry of the first number from `entry` on, or the oldest one.
    pub(crate) fn read(&self, entry: u32) -> AuditEntry {
        let back = |number: u32| self.next.wrapping_sub(number);
        let behind = |found: &&Entry| back(found.number) <= back(entry);
        let found = self.entries.iter().filter(behind);
        match found.max_by_key(|found| back(found.number)) {
            None => AuditEntry {
                entry: self.next,
                next: self.next,
                ..AuditEntry::default()
            },
            Some(found) => AuditEntry {
                entry: found.number,
                next: self.next,
                kind: u32::from(found.kind.code()),
                count: found.count,
                time: found.time,
                object: found.object,
                info: found.info,
            },
        }
    }
}
