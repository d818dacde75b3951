//! Completions: one 64-byte entry of an endpoint's completion queue.
//!
//! ```text
//!   word   0   1 │ 2            3           4        5              │ 6                         7
//!          never │ match bits   immediate   length   handle, offset │ request, pair, context    status, kind, …, count, phase
//!                └────── a receive, a probe, a claim: 48 bytes ─────┴── any other kind: 16 bytes ──┘
//! ```
//!
//! The card writes the last words of an entry only, as many as the completion's kind has, and the very last one last. What is in front of
//! them is of an earlier lap and means nothing: [`QueueEntry::read`] looks at the words that were written alone. The phase bit is in the last
//! word: a host that sees the phase it expects sees all that was written, after all payload write responses have come. The phase that a
//! fresh queue waits for is 1 and flips at each wrap.

use crate::constant::constants;
use crate::ring::{QueueEntry, words_from};
use crate::status::codes;

constants! {
    /// Size and flags.
    CONSTANTS {
        /// Size of a completion in bytes.
        COMPLETION_BYTES: usize = 64;
        /// Words that the card writes, the last ones, of a completion of a receive, a probe or a claim.
        COMPLETION_LONG_WORDS: usize = 6;
        /// Words that it writes of a completion of any other kind.
        COMPLETION_SHORT_WORDS: usize = 2;
        /// `flags`: the receive, one with `FLAG_MULTI`, stays posted, and completes again.
        COMPLETION_MORE: u8 = 1 << 0;
    }
}

codes! {
    /// What kind of request a completion is of.
    CompletionKind {
        /// A send.
        Send = 1,
        /// A receive.
        Receive = 2,
        /// A cancel of a receive or of a send; only ever with `TooLate` or `InvalidRequest`.
        Cancel = 3,
        /// A probe.
        Probe = 4,
        /// A ring entry whose opcode is unknown.
        Unknown = 5,
        /// A claim.
        Claim = 6,
        /// A discard of a claimed message.
        Discard = 7,
    }
}

/// Kinds whose completions speak of a message, and so have [`COMPLETION_LONG_WORDS`].
pub const LONG_KINDS: [CompletionKind; 3] = [
    CompletionKind::Receive,
    CompletionKind::Probe,
    CompletionKind::Claim,
];

/// Words that the card writes of a completion with the code `kind`, which may be none of [`CompletionKind`].
pub const fn words_written(kind: u8) -> usize {
    let mut at = 0;
    while at < LONG_KINDS.len() {
        if LONG_KINDS[at] as u8 == kind {
            return COMPLETION_LONG_WORDS;
        }
        at += 1;
    }
    COMPLETION_SHORT_WORDS
}

/// Field list of [`Completion`].
#[macro_export]
macro_rules! completion_layout {
    ($apply:ident) => {
        $apply! {
            /// Entry of a completion queue.
            Completion, CompletionView, 8 words {
                /// Never written.
                reserved0: u64 = 64,
                /// Never written.
                reserved1: u64 = 64,
                /// Match bits of the message.
                match_bits: u64 = 64,
                /// Immediate data of the message.
                immediate: u64 = 64,
                /// Length of the message as sent, in bytes; more than the buffer holds if truncated.
                length: u64 = 64,
                /// With `Behind`: handle of the receive that waits, or last waited, for room. Of a claim that found a message: the claim's handle.
                handle: u32 = 32,
                /// Of a receive with `FLAG_MULTI`: where in its buffer the message begins, in bytes; without a message, how much of it has been used.
                /// 0 otherwise.
                offset: u32 = 32,
                /// Handle of the request.
                request: u32 = 32,
                /// Source: the pair that the message came by, or that the send went by.
                pair: u16 = 16,
                /// Context of the message.
                context: u16 = 16,
                /// [`Status`](crate::status::Status).
                status: u8 = 8,
                /// [`CompletionKind`](crate::completion::CompletionKind).
                kind: u8 = 8,
                /// [`COMPLETION_MORE`](crate::completion::COMPLETION_MORE) or 0.
                flags: u8 = 8,
                /// Place of the endpoint whose request it is. 0 on a card without `CAPABILITY_SHARED_COMPLETIONS`.
                endpoint: u8 = 8,
                /// Of a receive with `FLAG_MULTI`, without `COMPLETION_MORE`: how many completions it has had, this one included, modulo 2³¹. 0
                /// otherwise, and with `InvalidRequest`.
                count: u32 = 31,
                /// Valid in this pass of the ring.
                phase: u8 = 1,
            }
        }
    };
}

use crate::define_layout;
completion_layout!(define_layout);

impl QueueEntry for Completion {
    const ENTRY_WORDS: usize = Self::WORDS;

    fn words_written(last_word: u64) -> usize {
        let mut words = [0; Self::WORDS];
        words[Self::WORDS - 1] = last_word;
        words_written(Self::from_words(&words).kind)
    }

    fn read(word: impl FnMut(usize) -> u64) -> Self {
        Self::from_words(&words_from::<Self, { Self::WORDS }>(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kind_does_not_write_is_not_looked_at() {
        let stale = Completion {
            match_bits: 1,
            immediate: 2,
            length: 3,
            handle: 4,
            offset: 8,
            request: 5,
            pair: 6,
            count: 7,
            phase: 1,
            ..Completion::default()
        };
        for kind in 0..=u8::MAX {
            let entry = Completion { kind, ..stale };
            let words = entry.to_words();
            let mut looked = [false; Completion::WORDS];
            let read = Completion::read(|at| {
                assert!(
                    !core::mem::replace(&mut looked[at], true),
                    "word {at}, twice"
                );
                words[at]
            });
            let speaks = matches!(
                CompletionKind::from_code(kind),
                Some(CompletionKind::Receive | CompletionKind::Probe | CompletionKind::Claim)
            );
            let expected = match speaks {
                true => entry,
                false => Completion {
                    request: 5,
                    pair: 6,
                    count: 7,
                    phase: 1,
                    kind,
                    ..Completion::default()
                },
            };
            assert_eq!(read, expected, "kind {kind}");
            let first = if speaks { 2 } else { 6 };
            let own = core::array::from_fn(|at| at >= first);
            assert_eq!(looked, own, "words looked at of kind {kind}");
        }
    }

    #[test]
    fn every_field_that_says_something_is_in_words_that_are_written() {
        for field in Completion::FIELDS {
            let from_the_end = Completion::WORDS - field.word();
            let limit = match field.name {
                "match_bits" | "immediate" | "length" | "handle" | "offset" => {
                    COMPLETION_LONG_WORDS
                }
                "request" | "pair" | "context" | "status" | "kind" | "flags" | "endpoint"
                | "count" | "phase" => COMPLETION_SHORT_WORDS,
                reserved => {
                    assert!(reserved.starts_with("reserved"), "{reserved}");
                    Completion::WORDS
                }
            };
            assert!(from_the_end <= limit, "{}", field.name);
        }
    }
}
