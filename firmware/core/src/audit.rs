//! The audit ring: typed events, of which those that repeat are one entry with a count, so that a storm leaves what was before it.

use abi::mailbox::{AuditEntry, AuditKind};

/// Entries that are kept.
pub(crate) const ENTRIES: usize = 32;

#[derive(Clone, Copy)]
struct Entry {
    kind: AuditKind,
    object: u32,
    info: u32,
    count: u32,
    time: u32,
}

/// The last [`ENTRIES`] entries.
pub(crate) struct Audit {
    entries: [Entry; ENTRIES],
    /// Number of the entry that is written next.
    next: u32,
}

impl Audit {
    pub(crate) const fn new() -> Self {
        let none = Entry {
            kind: AuditKind::Started,
            object: 0,
            info: 0,
            count: 0,
            time: 0,
        };
        Self {
            entries: [none; ENTRIES],
            next: 0,
        }
    }

    pub(crate) fn record(&mut self, kind: AuditKind, object: u32, info: u32, time: u32) {
        let last = self.next.wrapping_sub(1) as usize % ENTRIES;
        let last = &mut self.entries[last];
        if last.count > 0 && (last.kind, last.object, last.info) == (kind, object, info) {
            last.count = last.count.saturating_add(1);
            last.time = time;
            return;
        }
        self.entries[self.next as usize % ENTRIES] = Entry {
            kind,
            object,
            info,
            count: 1,
            time,
        };
        self.next = self.next.wrapping_add(1);
    }

    /// Entry number `entry`, or the oldest that is kept.
    pub(crate) fn read(&self, entry: u32) -> AuditEntry {
        let kept = self.next.min(ENTRIES as u32);
        let oldest = self.next - kept;
        let entry = entry.clamp(oldest, self.next);
        if entry == self.next {
            return AuditEntry {
                entry,
                next: self.next,
                ..AuditEntry::default()
            };
        }
        let found = &self.entries[entry as usize % ENTRIES];
        AuditEntry {
            entry,
            next: self.next,
            kind: u32::from(found.kind.code()),
            count: found.count,
            time: found.time,
            object: found.object,
            info: found.info,
        }
    }
}
