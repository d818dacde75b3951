//! Mailbox commands: how the privileged part of the host library asks the firmware for objects.
//!
//! The host writes the command's words to the command area, word 0 being the command's code, then a
//! new sequence number to [`MAILBOX_REQUEST`](crate::register::MAILBOX_REQUEST). The firmware writes
//! the answer's words to the result area, word 0 being a [`MailboxStatus`](crate::status::MailboxStatus)
//! and the rest the results, and then the sequence number to `MAILBOX_ANSWER`. One command is
//! outstanding at a time. Words are 32 bits; a 64-bit argument takes two, low word first.

use crate::register::MAILBOX_WORDS;
use crate::status::codes;

codes! {
    /// Code of a command.
    Command {
        /// What the card is: see [`Identity`].
        Identify = 1,
        /// Allocates a protection domain.
        OpenDomain = 2,
        /// Frees a protection domain that nothing uses.
        CloseDomain = 3,
        /// Opens an endpoint on rings in host memory.
        OpenEndpoint = 4,
        /// Closes an endpoint: its requests complete with `Flushed`; answered after its last DMA.
        CloseEndpoint = 5,
        /// Reserves a pair and its envelopes.
        OpenPair = 6,
        /// Connects a pair to the peer's pair.
        ConnectPair = 7,
        /// Closes a pair: what is outstanding on it completes with `Flushed`.
        ClosePair = 8,
        /// Registers memory.
        RegisterRegion = 9,
        /// Forgets a region.
        DeregisterRegion = 10,
        /// Reads one of the card's counters.
        ReadCounter = 11,
        /// Reads the state of a pair.
        QueryPair = 12,
    }
}

/// Arguments or results of a command, as the words after word 0.
pub trait Words: Sized {
    /// Number of words, without word 0.
    const COUNT: usize;
    /// The structure as words.
    fn to_words(&self, words: &mut [u32]);
    /// Reads the structure; words that are missing read as zero.
    fn from_words(words: &[u32]) -> Self;
}

macro_rules! words {
    (@count u64) => { 2 };
    (@count $ty:ident) => { 1 };
    ($($(#[$meta:meta])* $name:ident { $($(#[$fmeta:meta])* $field:ident : $ty:ident,)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$fmeta])* pub $field: $ty,)* }

        const _: () = assert!($name::COUNT < MAILBOX_WORDS, "too long for the mailbox");

        impl Words for $name {
            const COUNT: usize = 0 $(+ words!(@count $ty))*;

            fn to_words(&self, words: &mut [u32]) {
                #[allow(unused_mut, reason = "structures without fields")]
                let mut at = words.iter_mut();
                $({
                    let value = u64::from(self.$field);
                    if let Some(word) = at.next() { *word = value as u32; }
                    if words!(@count $ty) == 2 && let Some(word) = at.next() { *word = (value >> 32) as u32; }
                })*
                let _ = at;
            }

            fn from_words(words: &[u32]) -> Self {
                #[allow(unused_mut, reason = "structures without fields")]
                let mut at = words.iter().copied();
                $(
                    let mut value = u64::from(at.next().unwrap_or(0));
                    if words!(@count $ty) == 2 { value |= u64::from(at.next().unwrap_or(0)) << 32; }
                    let $field = value as $ty;
                )*
                let _ = at;
                Self { $($field),* }
            }
        }
    )*};
}

words! {
    /// Command or answer without words.
    Nothing {}
    /// Answer of `Identify`.
    Identity {
        /// [`ABI_VERSION`](crate::ABI_VERSION) that the firmware was built with.
        abi_version: u32,
        /// Build id of the firmware: first eight bytes of the hash of its source.
        build_id: u64,
        /// Endpoints of the card.
        endpoints: u32,
        /// Pairs of the card.
        pairs: u32,
        /// Entries of the list of posted receives, for any mask and for exact ones together; how many an endpoint gets depends on the others.
        posted: u32,
        /// Entries of the list of unexpected messages: envelopes that all pairs together may own.
        unexpected: u32,
        /// Regions of the card.
        regions: u32,
        /// Longest message in bytes.
        message_max: u64,
        /// Ethernet address; the least significant byte is first on the wire.
        mac: u64,
    }
    /// Answer of `OpenDomain`, argument of `CloseDomain`.
    DomainId {
        /// Protection domain.
        domain: u32,
    }
    /// Argument of `OpenEndpoint`. Addresses are card addresses aligned to `RING_ALIGN`.
    OpenEndpoint {
        /// Protection domain whose regions the endpoint may use.
        domain: u32,
        /// Send ring: log2 of its entries.
        send_log2: u32,
        /// Send ring: address.
        send_base: u64,
        /// List ring: log2 of its entries.
        list_log2: u32,
        /// List ring: address.
        list_base: u64,
        /// Completion queue: log2 of its entries.
        completion_log2: u32,
        /// Completion queue: address. The host has zeroed it.
        completion_base: u64,
        /// Event queue: log2 of its entries.
        event_log2: u32,
        /// Event queue: address. The host has zeroed it.
        event_base: u64,
    }
    /// Answer of `OpenEndpoint`.
    EndpointId {
        /// Endpoint; its doorbell page follows from it.
        endpoint: u32,
        /// Its epoch: incarnations so far.
        epoch: u32,
    }
    /// Argument of `CloseEndpoint`.
    CloseEndpoint {
        /// Endpoint.
        endpoint: u32,
    }
    /// Argument of `OpenPair`.
    OpenPair {
        /// Local endpoint.
        endpoint: u32,
        /// Envelopes that the peer may own here: 1 to `MAX_CREDITS`.
        credits: u32,
        /// Card address of `credits` slots of `EAGER_MAX` bytes, aligned to `RING_ALIGN`.
        slots: u64,
    }
    /// Answer of `OpenPair`; what the peer needs to connect, together with the card's MAC.
    PairId {
        /// Pair.
        pair: u32,
        /// Local endpoint.
        endpoint: u32,
        /// Its epoch.
        epoch: u32,
        /// This side's half of the cookie.
        nonce: u32,
        /// Envelopes granted to the peer.
        credits: u32,
    }
    /// Argument of `ConnectPair`: the local pair and what the peer's `OpenPair` answered.
    ConnectPair {
        /// Local pair.
        pair: u32,
        /// Peer's pair.
        remote_pair: u32,
        /// Peer's endpoint.
        remote_endpoint: u32,
        /// Peer's epoch.
        remote_epoch: u32,
        /// Peer's half of the cookie.
        remote_nonce: u32,
        /// Envelopes that the peer granted.
        remote_credits: u32,
        /// Peer's Ethernet address.
        remote_mac: u64,
    }
    /// Argument of `ClosePair` and `QueryPair`.
    Pair {
        /// Local pair.
        pair: u32,
    }
    /// Answer of `QueryPair`.
    PairStatus {
        /// [`PairState`].
        state: u32,
        /// Credits in hand.
        available: u32,
        /// Sends injected and not acknowledged.
        unacknowledged: u32,
        /// Sends waiting for credit or for their turn.
        waiting: u32,
        /// Accesses of the peer that a region of ours refused (`AccessDenied`) since the pair was connected. Wraps.
        refused: u32,
    }
    /// Argument of `RegisterRegion`.
    RegisterRegion {
        /// Protection domain.
        domain: u32,
        /// Rights: `control::RIGHT_*`.
        rights: u32,
        /// Card address of the first byte.
        address: u64,
        /// Length in bytes, not 0.
        length: u64,
    }
    /// Answer of `RegisterRegion`, argument of `DeregisterRegion`.
    RegionKey {
        /// Key.
        key: u32,
    }
    /// Argument of `ReadCounter`.
    CounterId {
        /// [`Counter`](crate::control::Counter).
        counter: u32,
    }
    /// Answer of `ReadCounter`.
    CounterValue {
        /// Value; wraps at 2^32.
        value: u64,
    }
}

codes! {
    /// State of a pair.
    PairState {
        /// Not open.
        Closed = 0,
        /// Open and not connected: its envelopes are reserved, nothing may be sent.
        Open = 1,
        /// Connected.
        Connected = 2,
        /// Failed: its operations have completed with `LinkError`.
        Failed = 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_survive_the_words() {
        let open = OpenPair {
            endpoint: 3,
            credits: 8,
            slots: 0x1234_5678_9abc_def0,
        };
        let mut words = [0; 4];
        assert_eq!(OpenPair::COUNT, words.len());
        open.to_words(&mut words);
        assert_eq!(words, [3, 8, 0x9abc_def0, 0x1234_5678]);
        assert_eq!(OpenPair::from_words(&words), open);
    }

    #[test]
    fn missing_words_read_as_zero() {
        assert_eq!(
            OpenPair::from_words(&[7]),
            OpenPair {
                endpoint: 7,
                ..Default::default()
            }
        );
    }
}
