//! Events: what happened that no completion can tell. One 32-byte entry of an endpoint's event queue.
//!
//! Events fold: each cause has a sticky bit in the endpoint's page ([`crate::register::STICKY`]), set
//! whether or not the queue had room, and events that found no room are counted
//! ([`crate::register::EVENTS_LOST`]).

use crate::constant::constants;
use crate::control::RefusalReason;
use crate::ring::{QueueEntry, words_from};
use crate::status::codes;

constants! {
    /// Size and special values.
    CONSTANTS {
        /// Size of an event in bytes.
        EVENT_BYTES: usize = 32;
        /// The pair of an event that concerns none.
        NO_PAIR: u16 = 0xffff;
        /// Bit of `info` that tells a list ring's events from a send ring's.
        INFO_LIST_RING_BIT: u32 = 32;
        /// Bit of `info` of `PeerFailed`: the peer has closed its side.
        INFO_CLOSED_BIT: u32 = 8;
        /// First bit of the domain in `info` of `AccessRefused`.
        REFUSAL_DOMAIN_BIT: u32 = 32;
        /// First bit of the rights in `info` of `AccessRefused`.
        REFUSAL_RIGHTS_BIT: u32 = 40;
        /// First bit of the count in `info` of `AccessRefused` and `PeerRefused`.
        REFUSAL_COUNT_BIT: u32 = 48;
        /// First bit of the reason in `info` of `PeerRefused`.
        REFUSAL_REASON_BIT: u32 = 32;
    }
}

/// `info` of an event of a ring: a tail or an index, and whether the ring is a list ring.
pub const fn ring_info(list: bool, value: u32) -> u64 {
    (list as u64) << INFO_LIST_RING_BIT | value as u64
}

/// `info` of `AccessRefused`: what was asked for last, and how often something was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// Key that was named.
    pub key: u32,
    /// Domain that asked.
    pub domain: u8,
    /// Rights that it asked for.
    pub rights: u8,
    /// Refusals since the last event, at most 0xffff.
    pub count: u16,
}

impl Refusal {
    /// The refusal as `info`.
    pub const fn to_info(self) -> u64 {
        self.key as u64
            | (self.domain as u64) << REFUSAL_DOMAIN_BIT
            | (self.rights as u64) << REFUSAL_RIGHTS_BIT
            | (self.count as u64) << REFUSAL_COUNT_BIT
    }

    /// The refusal that `info` says.
    pub const fn from_info(info: u64) -> Self {
        Self {
            key: info as u32,
            domain: (info >> REFUSAL_DOMAIN_BIT) as u8,
            rights: (info >> REFUSAL_RIGHTS_BIT) as u8,
            count: (info >> REFUSAL_COUNT_BIT) as u16,
        }
    }
}

/// `info` and `detail` of `PeerRefused`: what was refused last, and how often something was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerRefusal {
    /// [Key](crate::control::region_key) of the region that was to be accessed: its index and the tag that tells it from those that had the index before. 0 if
    /// the reason is `UnknownKey` or `ShutOut`: there is none.
    pub region: u32,
    /// First byte that was to be accessed, counted from the region's.
    pub offset: u64,
    /// Why.
    pub reason: RefusalReason,
    /// Accesses of this peer that were refused since the last such event about it, at most 0xffff. This one is among them.
    pub count: u16,
}

impl PeerRefusal {
    /// `info` and `detail`.
    pub const fn to_words(self) -> [u64; 2] {
        let info = self.region as u64
            | (self.reason as u64) << REFUSAL_REASON_BIT
            | (self.count as u64) << REFUSAL_COUNT_BIT;
        [info, self.offset]
    }

    /// What `info` and `detail` say. None if the reason is none.
    pub const fn from_words(info: u64, detail: u64) -> Option<Self> {
        let Some(reason) = RefusalReason::from_code((info >> REFUSAL_REASON_BIT) as u8) else {
            return None;
        };
        Some(Self {
            region: info as u32,
            offset: detail,
            reason,
            count: (info >> REFUSAL_COUNT_BIT) as u16,
        })
    }
}

impl Cause {
    /// Whether the gates tell the firmware of an event of this cause whenever they raise one. It acts on the failure of a pair, and notes a ring that
    /// has stopped; both are bounded by its own commands. What a process can cause as often as it likes isn't told, or at a bounded rate
    /// ([`AccessRefused`](Self::AccessRefused), [`PeerRefused`](Self::PeerRefused)).
    pub const fn is_told(self) -> bool {
        matches!(
            self,
            Self::LinkError
                | Self::PeerFailed
                | Self::UnexpectedOverflow
                | Self::SlotError
                | Self::RingError
                | Self::PeerRefused
        )
    }
}

codes! {
    /// Cause of an event; also the number of its sticky bit.
    Cause {
        /// A doorbell moved a ring's tail by more than the ring has room for. It was ignored. `info` is the tail, and bit 32 ([`INFO_LIST_RING_BIT`]) is set for a list ring.
        RingOverrun = 0,
        /// A work request couldn't be read from host memory: the ring has stopped. `info` is the index, and bit 32 ([`INFO_LIST_RING_BIT`]) is set for a list ring.
        RingError = 1,
        /// The pair has failed: its peer failed it without closing it, or violated the protocol, or a send couldn't be read again. Its operations complete with the status in
        /// `info`.
        LinkError = 2,
        /// A message of `pair` found no free slot: its sender has sent more than it had credits for. It was refused and the pair failed.
        UnexpectedOverflow = 3,
        /// A completion couldn't be written to host memory.
        CompletionError = 4,
        /// A consumer index was rung that the card never reached. It was ignored. `info` is the index.
        IndexError = 5,
        /// A slot of `pair` couldn't be written to host memory: the arriving message was refused and the pair failed. Its operations complete with `MemoryError`.
        SlotError = 6,
        /// `pair` is connected: a `Connect` or an `Accept` of this endpoint has come to its end.
        PairConnected = 7,
        /// A `Connect` or an `Accept` of this endpoint has failed. `info` is the [`ConnectReason`](crate::mailbox::ConnectReason) in bits 7:0 and its
        /// detail in bits 31:16.
        ConnectFailed = 8,
        /// The peer of `pair` has closed it in an orderly way. Its operations complete with `PeerClosed`. This is no failure.
        PeerClosed = 9,
        /// A `Disconnect` of `pair` has come to its end: the peer knows, or has not answered in time. The pair can be closed.
        Disconnected = 10,
        /// A region refused an access of a request. The gates tell it to the firmware alone, at most once in
        /// [`REFUSAL_INTERVAL`](crate::times::REFUSAL_INTERVAL) cycles: the request itself completes with `LocalProtection`. `pair` is
        /// [`NO_PAIR`]. `info` is the key in bits 31:0, the domain that asked in bits 39:32, the rights that it asked for in bits 47:40, all of the last one, and in
        /// bits 63:48 how many were refused since the last such event, at most 0xffff.
        AccessRefused = 11,
        /// The peer of `pair` is taken to have failed, and the pair with it: its operations complete with `PeerFailed`, which is `info` in bits 7:0. Bit 8
        /// ([`INFO_CLOSED_BIT`]) is set if the peer's side has closed the pair or its endpoint; what else takes it to have failed, `QueryPair` tells. A receive from any source stays posted, and may wait for nothing.
        PeerFailed = 12,
        /// The process at the other end of `pair` has sent a `Signal`. `info` is its word.
        Signal = 13,
        /// A drain has come on. `info` is its tag in bits 31:0, its context in bits 47:32 and its [`DrainState`](crate::mailbox::DrainState) in bits 55:48. `Asked`: `pair` is
        /// that of a member that has begun, and this endpoint hasn't. Else `pair` is [`NO_PAIR`], and `ReadDrain` tells the rest.
        Drain = 14,
        /// The peer of `pair` has failed, the program hasn't acknowledged that, and a receive from any source is posted, which may wait for nothing. The host library raises it,
        /// no card: its sticky bit is never set.
        PeerFailedPending = 15,
        /// The peer of `pair` has said that messages are revoked, and the endpoint believes its peers. `info` is the number by which `ReadRevoked` tells which.
        Revoked = 16,
        /// An access of the peer of `pair` was refused. `info` is the key of the region in bits 31:0, the [`RefusalReason`](crate::control::RefusalReason) in
        /// bits 39:32, and in bits 63:48 how many were refused to this peer since the last such event about it, at most 0xffff; `detail` is the offset: all of the
        /// last one. Of the card's pairs with something to tell one has its turn after the other, at most once in
        /// [`REFUSAL_INTERVAL`](crate::times::REFUSAL_INTERVAL) cycles.
        PeerRefused = 17,
    }
}

/// Field list of [`Event`].
#[macro_export]
macro_rules! event_layout {
    ($apply:ident) => {
        $apply! {
            /// Entry of an event queue.
            Event, EventView, 4 words {
                /// Depends on the cause.
                info: u64 = 64,
                /// Of `PeerRefused` the offset, else zero.
                detail: u64 = 64,
                /// Zero.
                reserved0: u64 = 64,
                /// [`Cause`](crate::event::Cause).
                cause: u8 = 8,
                /// Zero.
                reserved1: u8 = 8,
                /// Pair concerned; [`NO_PAIR`](crate::event::NO_PAIR), 0xffff, if none is.
                pair: u16 = 16,
                /// Zero.
                reserved2: u32 = 31,
                /// Valid in this pass of the ring.
                phase: u8 = 1,
            }
        }
    };
}

use crate::define_layout;
event_layout!(define_layout);

impl QueueEntry for Event {
    const ENTRY_WORDS: usize = Self::WORDS;

    fn words_written(_: u64) -> usize {
        Self::WORDS
    }

    fn read(word: impl FnMut(usize) -> u64) -> Self {
        Self::from_words(&words_from::<Self, { Self::WORDS }>(word))
    }
}
