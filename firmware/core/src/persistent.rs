//! What survives a restart of the firmware: the epoch of each endpoint, how far peers may still raise it, and the number of the start.
//!
//! There are two copies. The older one is overwritten, its check word last, so that a restart at any moment leaves one whole.
//!
//! ```text
//!  word 0      1       2 … 9              10 … 17               18       19 …
//!  sequence    starts  epochs, two each   raisable, two each    check    the other copy
//! ```
//!
//! **How far peers may raise an epoch.** After power-on the memory is lost, and a peer may remember a later epoch than the card has: by half the
//! numbers at most, since an epoch that is further ahead counts as an earlier one. So all frames together raise an epoch by no more than
//! that until the memory is lost again, and can't make it go round, whatever they say.

use crate::card::{Break, Card};
use abi::limits::MAX_ENDPOINTS;
use abi::mgmt::PERSISTENT_BYTES;

const EPOCH_WORDS: usize = MAX_ENDPOINTS / 2;
/// Words of a copy.
const COPY_WORDS: usize = 3 + 2 * EPOCH_WORDS;
/// Word where an array begins.
const EPOCHS_AT: usize = 2;
const RAISABLE_AT: usize = EPOCHS_AT + EPOCH_WORDS;
/// By how much peers may raise an epoch after the memory was lost.
const RAISABLE: u16 = 1 << 15;
const _: () = assert!(2 * COPY_WORDS * 4 <= PERSISTENT_BYTES as usize);

/// What is kept.
pub(crate) struct Persistent {
    sequence: u32,
    /// Number of this start of the firmware: never 0, and after power-on any.
    pub(crate) starts: u32,
    epochs: [u16; MAX_ENDPOINTS],
    /// By how much peers may still raise each.
    raisable: [u16; MAX_ENDPOINTS],
}

type Copy = [u32; COPY_WORDS];

/// FNV-1a by words over those in front of the check word, and the magic of this layout. One word that is another makes another hash, since each step is a
/// permutation. It is against a copy that a restart has torn, and not against whoever picks two words.
fn check(copy: &Copy) -> u32 {
    copy[..COPY_WORDS - 1]
        .iter()
        .fold(0x5053_5433, |hash: u32, word| {
            (hash ^ word).wrapping_mul(0x0100_0193)
        })
}

fn halves(copy: &Copy, at: usize) -> [u16; MAX_ENDPOINTS] {
    core::array::from_fn(|k| (copy[at + k / 2] >> (16 * (k % 2))) as u16)
}

impl Persistent {
    /// Reads the newer whole copy; what power-on left there is none, and epochs start anew.
    pub(crate) fn load(card: &mut impl Card) -> Self {
        let mut found = None;
        for k in 0..2 {
            let copy: Copy = core::array::from_fn(|word| card.persistent(k * COPY_WORDS + word));
            let whole = copy[COPY_WORDS - 1] == check(&copy);
            if !whole && !card.is_broken(Break::TornCopyRead) {
                continue;
            }
            let newer = |other: &Copy| (copy[0].wrapping_sub(other[0]) as i32) > 0;
            if found.as_ref().is_none_or(newer) {
                found = Some(copy);
            }
        }
        match found {
            Some(copy) => Self {
                sequence: copy[0],
                starts: copy[1],
                epochs: halves(&copy, EPOCHS_AT),
                raisable: halves(&copy, RAISABLE_AT),
            },
            // Others may remember this card: its ids and numbers aren't those of the time before.
            None => Self::fresh(card.random()),
        }
    }

    /// No endpoint has had an epoch.
    pub(crate) const fn fresh(starts: u32) -> Self {
        Self {
            sequence: 0,
            starts,
            epochs: [0; MAX_ENDPOINTS],
            raisable: [RAISABLE; MAX_ENDPOINTS],
        }
    }

    /// Writes it over the older copy.
    pub(crate) fn store(&mut self, card: &mut impl Card) {
        self.sequence = self.sequence.wrapping_add(1);
        let mut copy: Copy = [0; COPY_WORDS];
        copy[0] = self.sequence;
        copy[1] = self.starts;
        for (at, values) in [(EPOCHS_AT, &self.epochs), (RAISABLE_AT, &self.raisable)] {
            for (k, &value) in values.iter().enumerate() {
                copy[at + k / 2] |= u32::from(value) << (16 * (k % 2));
            }
        }
        copy[COPY_WORDS - 1] = check(&copy);
        let at = (self.sequence % 2) as usize * COPY_WORDS;
        for (word, &value) in copy.iter().enumerate() {
            card.set_persistent(at + word, value);
        }
    }

    /// Counts one more start.
    pub(crate) fn start(&mut self, card: &mut impl Card) {
        self.starts = self.starts.checked_add(1).unwrap_or(1);
        self.store(card);
    }

    /// The last epoch of an endpoint.
    pub(crate) fn epoch(&self, endpoint: usize) -> u16 {
        self.epochs[endpoint]
    }

    /// Takes the epoch after `last` for an endpoint.
    pub(crate) fn take_after(&mut self, endpoint: usize, last: u16, card: &mut impl Card) -> u16 {
        let epoch = after(last);
        self.epochs[endpoint] = epoch;
        self.store(card);
        epoch
    }

    /// Whether a peer that says that it remembers `last` may raise an epoch beyond that.
    pub(crate) fn may_raise(&self, endpoint: usize, last: u16) -> bool {
        self.step_beyond(endpoint, last) <= self.raisable[endpoint]
    }

    /// Takes the epoch after `last`, which a peer remembers and [may raise](Self::may_raise) it to.
    pub(crate) fn raise_after(&mut self, endpoint: usize, last: u16, card: &mut impl Card) -> u16 {
        let step = self.step_beyond(endpoint, last);
        self.raisable[endpoint] = self.raisable[endpoint].saturating_sub(step);
        self.take_after(endpoint, last, card)
    }

    fn step_beyond(&self, endpoint: usize, last: u16) -> u16 {
        after(last).wrapping_sub(self.epochs[endpoint])
    }
}

/// The epoch after another: 0 is none.
pub(crate) const fn after(epoch: u16) -> u16 {
    match epoch.wrapping_add(1) {
        0 => 1,
        next => next,
    }
}

/// Whether one epoch is later than another; they wrap.
pub(crate) const fn is_later(epoch: u16, than: u16) -> bool {
    (epoch.wrapping_sub(than) as i16) > 0
}
