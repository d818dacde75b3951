//! The audit ring: typed events, of which those that repeat are one entry with a count, so that a storm leaves what was before it.
//!
//! ```text
//!  kind, object, info ──┬─ an entry has them ──► count + n, and it is the newest
//!                       └─ none has ──► a new entry; if all are taken, one of the most frequent kind goes
//! ```
//!
//! An entry has the number of its last occurrence, so whoever reads on from a number finds what is new since and what has repeated since.

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

/// What a test breaks, to show that it would notice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    /// Only what repeats the newest entry is folded.
    AdjacentOnly,
    /// The oldest entry goes, whatever kind it is of.
    OldestGoes,
}

/// At most [`ENTRIES`] entries.
pub(crate) struct Audit {
    entries: Vec<Entry, ENTRIES>,
    /// Number of the occurrence that is recorded next.
    next: u32,
    #[cfg(test)]
    flaw: Option<Flaw>,
}

impl Audit {
    pub(crate) const fn new() -> Self {
        Self {
            entries: Vec::new(),
            next: 0,
            #[cfg(test)]
            flaw: None,
        }
    }

    fn is(&self, _flaw: Flaw) -> bool {
        #[cfg(test)]
        let flawed = self.flaw == Some(_flaw);
        #[cfg(not(test))]
        let flawed = false;
        flawed
    }

    /// Records that something has occurred.
    pub(crate) fn record(&mut self, kind: AuditKind, object: u32, info: u32, time: u32) {
        self.record_many(kind, object, info, 1, time);
    }

    /// Records that something has occurred `count` times.
    pub(crate) fn record_many(
        &mut self,
        kind: AuditKind,
        object: u32,
        info: u32,
        count: u32,
        time: u32,
    ) {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let adjacent_only = self.is(Flaw::AdjacentOnly);
        let same = |entry: &&mut Entry| {
            (entry.kind, entry.object, entry.info) == (kind, object, info)
                && (!adjacent_only || entry.number == number.wrapping_sub(1))
        };
        if let Some(entry) = self.entries.iter_mut().find(same) {
            entry.count = entry.count.saturating_add(count);
            (entry.time, entry.number) = (time, number);
            return;
        }
        if self.entries.is_full() {
            self.make_room();
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

    /// Forgets the oldest entry of the kind that has the most: a kind of which many differ drives out its own.
    fn make_room(&mut self) {
        let mut entries_of = [0_u8; KINDS];
        for entry in &self.entries {
            entries_of[usize::from(entry.kind.code())] += 1;
        }
        let weight = |entry: &Entry| {
            let alike = match self.is(Flaw::OldestGoes) {
                true => 0,
                false => entries_of[usize::from(entry.kind.code())],
            };
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

#[cfg(test)]
mod tests {
    use super::{Audit, ENTRIES, Flaw};
    use abi::mailbox::AuditKind;
    use std::vec::Vec;

    /// All that is kept, oldest first: kind, object, count.
    fn kept(audit: &Audit) -> Vec<(u32, u32, u32)> {
        let mut entries = Vec::new();
        let mut number = 0;
        loop {
            let entry = audit.read(number);
            if entry.entry == entry.next {
                return entries;
            }
            entries.push((entry.kind, entry.object, entry.count));
            number = entry.entry + 1;
        }
    }

    /// One rare event, then two that alternate, then one kind of which each is another.
    fn storm(flaw: Option<Flaw>) -> Vec<(u32, u32, u32)> {
        let mut audit = Audit::new();
        audit.flaw = flaw;
        audit.record(AuditKind::PairFailed, 7, 2, 0);
        for time in 1..=1000 {
            audit.record_many(AuditKind::EventsLost, 0, 0, 3, time);
            audit.record(AuditKind::FrameMalformed, 0, 5, time);
        }
        for object in 0..2 * ENTRIES as u32 {
            audit.record(AuditKind::PeerRefused, object, 4, 1001);
        }
        kept(&audit)
    }

    fn says_all(entries: &[(u32, u32, u32)]) -> bool {
        let code = |kind: AuditKind| u32::from(kind.code());
        let has = |kind: AuditKind, object, count| entries.contains(&(code(kind), object, count));
        has(AuditKind::PairFailed, 7, 1)
            && has(AuditKind::EventsLost, 0, 3000)
            && has(AuditKind::FrameMalformed, 0, 1000)
            // As many of the kind as there is room for, the newest.
            && entries.len() == ENTRIES
            && has(AuditKind::PeerRefused, 2 * ENTRIES as u32 - 1, 1)
    }

    /// As it broke: only what repeated the newest entry was folded, and two kinds that alternated drove out all others. Losses
    /// of another number were another entry each.
    #[test]
    fn no_storm_of_some_kinds_drives_out_another_kind() {
        let whole = storm(None);
        assert!(says_all(&whole), "{whole:?}");
        for flaw in [Flaw::AdjacentOnly, Flaw::OldestGoes] {
            assert!(!says_all(&storm(Some(flaw))), "nobody notices");
        }
    }

    #[test]
    fn a_reader_who_reads_on_finds_what_is_new_and_what_has_repeated() {
        let mut audit = Audit::new();
        audit.record(AuditKind::Started, 0, 1, 10);
        audit.record(AuditKind::PairFailed, 7, 2, 20);
        let next = audit.read(2).next;
        assert_eq!(
            (next, audit.read(next).entry, audit.read(next).count),
            (2, 2, 0)
        );
        audit.record(AuditKind::Started, 0, 1, 30);
        let repeated = audit.read(next);
        assert_eq!((repeated.entry, repeated.count, repeated.time), (2, 2, 30));
        assert_eq!(audit.read(3).count, 0);
        // Who asks for what has not come, of a firmware that has started again, gets the oldest.
        assert_eq!(audit.read(99).entry, 1);
    }
}
