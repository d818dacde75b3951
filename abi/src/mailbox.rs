//! Mailbox commands: how the privileged part of the host library asks the firmware for objects.
//!
//! The host writes the command's words to the command area, word 0 being the command's code, then a
//! new sequence number to [`MAILBOX_REQUEST`](crate::register::MAILBOX_REQUEST). The firmware writes
//! the answer's words to the result area, word 0 being a [`MailboxStatus`](crate::status::MailboxStatus)
//! and the rest the results, and then the sequence number to `MAILBOX_ANSWER`. One command is
//! outstanding at a time. Words are 32 bits; a 64-bit argument takes two, low word first.
//!
//! **Ids.** Endpoints, pairs and domains are named by an id: the object's place in its table (bits 15:0) and the
//! generation of that place (bits 31:16), which is another one whenever the place is used again. So a command that
//! names an object which has been closed is answered with `NotFound`, whoever has the place now. A region's key
//! has a tag for the same end, which comes again only after 2^20 regions of the same place.
//! Tables of the gates, doorbell pages, completions, events and frames know the place alone ([`id_index`]).

use crate::constant::constants;
use crate::register::MAILBOX_WORDS;
use crate::status::codes;

constants! {
    /// Ids.
    CONSTANTS {
        /// Bits of an id that are the object's place; those above are the generation.
        ID_INDEX_BITS: u32 = 16;
        /// In the places of `Drain`: no member has this rank.
        DRAIN_NOBODY: u8 = 0xff;
        /// In the places of `Drain`: the pair of this rank is closed.
        DRAIN_LOST: u8 = 0xfe;
        /// The id of no endpoint.
        NO_ENDPOINT: u32 = u32::MAX;
        /// The id of no pair.
        NO_PAIR: u32 = u32::MAX;
        /// The id of no rule.
        NO_RULE: u32 = u32::MAX;
        /// No context: in an [`Undrained`].
        NO_CONTEXT: u32 = u32::MAX;
        /// `access` of [`Undrained`]: the card reads.
        UNDRAINED_READ: u32 = 1;
        /// `access` of [`Undrained`]: the card writes.
        UNDRAINED_WRITE: u32 = 2;
        /// Bits of the number of a job.
        JOB_BITS: u32 = 24;
        /// `chosen` of `SetPairTimes`: the time-out.
        TIMES_TIMEOUT: u32 = 1 << 0;
        /// `chosen` of `SetPairTimes`: the retry limit.
        TIMES_RETRY_LIMIT: u32 = 1 << 1;
        /// `chosen` of `SetPairTimes`: the delay of acknowledgements.
        TIMES_DELAY: u32 = 1 << 2;
        /// `chosen` of `SetPairTimes`: the credits that wait with them.
        TIMES_CREDITS: u32 = 1 << 3;
        /// Bit where the detail of a `ConnectReason` begins, in `reason` of `QueryPair` and in `info` of `ConnectFailed`.
        REASON_DETAIL_SHIFT: u32 = 16;
    }
}

/// The id of an object, from its place and the place's generation.
pub const fn object_id(index: u16, generation: u16) -> u32 {
    (generation as u32) << ID_INDEX_BITS | index as u32
}

/// [`ConnectReason`] and its detail, as `reason` of [`PairStatus`] and `info` of `ConnectFailed` have them.
pub const fn reason_word(reason: ConnectReason, detail: u16) -> u32 {
    (detail as u32) << REASON_DETAIL_SHIFT | reason as u32
}

/// Code of the reason, and the detail, of such a word.
pub const fn reason_and_detail(word: u32) -> (u8, u16) {
    (word as u8, (word >> REASON_DETAIL_SHIFT) as u16)
}

/// The place of the object that an id names.
pub const fn id_index(id: u32) -> u16 {
    id as u16
}

/// The generation that an id names.
pub const fn id_generation(id: u32) -> u16 {
    (id >> ID_INDEX_BITS) as u16
}

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
        /// Closes an endpoint: its requests complete with `Flushed`; answered after its last DMA. Can be repeated: `NotFound` says that it is closed.
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
        /// Opens a pair and begins to connect it to an endpoint elsewhere. Answered at once; the pair is `Connecting` until the peer has answered.
        Connect = 13,
        /// Opens a pair for whoever connects next to this endpoint. Answered at once; the pair is `Accepting` until then.
        Accept = 14,
        /// Ends a connection in an orderly way: what has been posted on the pair is sent and acknowledged, then the peer is told. Answered at
        /// once; the pair is `Disconnecting` until the peer has answered.
        Disconnect = 15,
        /// Sets pairs and envelopes aside for an endpoint, all or none.
        Reserve = 16,
        /// Reads an entry of the firmware's audit ring.
        ReadAudit = 17,
        /// Declares that the peer of a connected pair has failed: the pair fails with `PeerFailed`. Of a pair that has failed: nothing is done.
        DeclareFailed = 18,
        /// Has the firmware watch the peers of an endpoint, whether or not anything is sent to them.
        WatchPeers = 19,
        /// Reads which peers of an endpoint have failed. It asks nobody else.
        ReadFailed = 20,
        /// Tells chosen peers that another one has failed. Answered at once; the firmware tells each, again until it answers.
        TellFailed = 21,
        /// Sends a word to the process at the other end of a connected pair, which gets it as the event `Signal`, once. Answered at once; the firmware sends it again
        /// until the peer's answers. `Busy` while one of the pair is under way, or while the pair ends and its peer is not cut off yet.
        Signal = 22,
        /// Sets a rule: messages of a group, of a context and with some match bits are matched no more, and what would receive them is refused.
        SetRule = 23,
        /// Forgets a rule.
        ClearRule = 24,
        /// Begins a drain's agreement: the host has flushed what it had sent, and all of it has been acknowledged. Answered at once; the event `Drain` tells when the host is to
        /// sweep, and when it is done. `Busy` while two are under way, or the round before of this name is. Given again: nothing is done.
        Drain = 25,
        /// The host has swept what was left under a drain.
        DrainSwept = 26,
        /// Reads how far a drain has come.
        ReadDrain = 27,
        /// Chooses the times of a pair. Answered when its gates go by them, or at once if they don't know the pair yet.
        SetPairTimes = 28,
        /// Reads one of the counters of a pair.
        ReadPairCounter = 29,
        /// Grants the peer of a pair the use of a part of a region, and answers with the key that it names it by.
        Grant = 30,
        /// Lets the peer of a pair use a shared key, or doesn't any more.
        Share = 31,
        /// Revokes a remote key, for whomever it is. Answered when nothing that it allowed can reach memory any more. `NotFound`: it has ended before.
        Revoke = 32,
        /// Revokes all remote keys of a pair's peer, in one step. Answered as `Revoke` is. Its messages go on.
        RevokePeer = 33,
        /// Answered when every access of host memory that it covers and that was allowed before it has ended.
        Fence = 34,
        /// Tells chosen peers that messages of a group are revoked. Answered at once; the firmware tells each, again until it answers. `Busy` while four failures and
        /// revocations are being told of.
        TellRevoked = 40,
        /// Reads which messages peers of an endpoint have said to be revoked. It asks nobody else.
        ReadRevoked = 41,
        /// Forgets one of them, and the rule that the firmware has set by it, if the host hasn't taken that over by `SetRule`.
        ForgetRevoked = 42,
        /// Names a group: what a member of it says to be revoked the firmware has the gates refuse, by a rule. It replaces the group of this name.
        NameGroup = 43,
        /// Chooses when the peer of a connected pair is shut out: after how many refused accesses, and for how long. It isn't from then on, and its count starts anew.
        /// The next connection has the card's own again.
        SetShutOut = 50,
        /// Reads that, and where it is.
        ReadShutOut = 51,
    }
}

/// A field of the arguments or the results of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordField {
    /// Name.
    pub name: &'static str,
    /// Its first word of the area; word 0 is the command's code or the status.
    pub word: usize,
    /// Words that it takes: 2 if it has 64 bits, low word first.
    pub words: usize,
    /// What it means, as documented.
    pub doc: &'static str,
}

/// Arguments or results of a command, as the words after word 0.
pub trait Words: Sized {
    /// Name of the structure.
    const NAME: &'static str;
    /// What the structure is, as documented.
    const ABOUT: &'static str;
    /// Every field with its position, in order. `InvalidArgument` names a field by its place in this list, from 0.
    const FIELDS: &'static [WordField];
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
    (@one $field:ident) => { 1 };
    ($($(#[doc = $about:literal])+ $name:ident { $($(#[doc = $doc:literal])+ $field:ident : $ty:ident,)* })*) => {$(
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[doc = $doc])+ pub $field: $ty,)* }

        const _: () = assert!($name::COUNT < MAILBOX_WORDS, "too long for the mailbox");

        impl Words for $name {
            const NAME: &'static str = stringify!($name);
            const ABOUT: &'static str = concat!($($about),+);
            const FIELDS: &'static [WordField] = &{
                #[allow(unused_mut, reason = "structures without fields")]
                let mut fields: [WordField; 0 $(+ words!(@one $field))*] = [$(WordField {
                    name: stringify!($field),
                    word: 0,
                    words: words!(@count $ty),
                    doc: concat!($($doc),+),
                }),*];
                let mut at = 1;
                let mut k = 0;
                while k < fields.len() {
                    fields[k].word = at;
                    at += fields[k].words;
                    k += 1;
                }
                fields
            };
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
        /// Receives that each endpoint may have posted, whatever their masks and whatever other endpoints do, before one is refused as `ListFull`.
        posted_reserved: u32,
        /// What the card has beyond what every card has: `CAPABILITY_*`.
        capabilities: u32,
        /// Descriptors of sends, which pairs have runs of.
        descriptors: u32,
        /// Rules of the card.
        rules: u32,
        /// Remote keys that may be in use at a time.
        grants: u32,
    }
    /// Answer of `OpenDomain`, argument of `CloseDomain`.
    DomainId {
        /// Id of the protection domain.
        domain: u32,
    }
    /// Argument of `OpenEndpoint`. Addresses are card addresses, each a multiple of its ring's size in bytes.
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
        /// Id of the endpoint, open in the same domain and with a queue of its own, on whose completion queue this one's requests complete; `completion_log2` and
        /// `completion_base` are 0 then. `NO_ENDPOINT`: it has a queue of its own. Needs `CAPABILITY_SHARED_COMPLETIONS`. Each completion tells the
        /// endpoint of its request; reservations are the queue's; its head, its tail and its arming are in the page of the endpoint that owns it, and
        /// its interrupt is that endpoint's. The owner can't be closed before those that complete there: `Busy`.
        completion_owner: u32,
        /// The job (the tenant) that the endpoint is of: less than 2^24. Endpoints of different jobs can't be connected. Whoever owns the mailbox says which it is.
        job: u32,
        /// Sends that the card is to hold of each of its pairs: a power of two up to `MAX_SENDS`, or 0 for as many as all pairs can have. A pair gets the
        /// longest run up to it that can be had when it is opened, and never less than with 0; `sends` of its answer says how many.
        pair_sends: u32,
        /// Address space of its rings, and of the slots of its pairs: `FLAT_SPACE`.
        space: u32,
    }
    /// Answer of `OpenEndpoint`.
    EndpointId {
        /// Id of the endpoint; its doorbell page follows from the place in it.
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
        /// Card address of `credits` slots of `EAGER_MAX` bytes, aligned to `SLOTS_ALIGN`.
        slots: u64,
    }
    /// Answer of `OpenPair`, `Connect` and `Accept`; what the peer needs to connect by `ConnectPair`, together with the card's MAC.
    PairId {
        /// Id of the pair.
        pair: u32,
        /// Id of the local endpoint.
        endpoint: u32,
        /// Its epoch.
        epoch: u32,
        /// This side's half of the cookie.
        nonce: u32,
        /// Envelopes granted to the peer.
        credits: u32,
        /// Sends of the pair that the card holds, from the first that isn't acknowledged to the last that waits: a power of two, 2 to `MAX_SENDS`. One more is
        /// refused with `QueueFull`.
        sends: u32,
        /// The job that the local endpoint is of.
        job: u32,
    }
    /// Argument of `ConnectPair`: the local pair and what the peer's `OpenPair` answered.
    ConnectPair {
        /// Local pair.
        pair: u32,
        /// Place of the peer's pair.
        remote_pair: u32,
        /// Place of the peer's endpoint.
        remote_endpoint: u32,
        /// Peer's epoch.
        remote_epoch: u32,
        /// Peer's half of the cookie.
        remote_nonce: u32,
        /// Envelopes that the peer granted.
        remote_credits: u32,
        /// Peer's Ethernet address.
        remote_mac: u64,
        /// Job of the peer's endpoint: the same as the local one's, or the pair isn't connected.
        remote_job: u32,
    }
    /// Argument of `ClosePair`, `QueryPair`, `DeclareFailed` and `RevokePeer`.
    Pair {
        /// Local pair.
        pair: u32,
    }
    /// Argument of `Connect`.
    Connect {
        /// Local endpoint.
        endpoint: u32,
        /// Envelopes that the peer may own here: 1 to `MAX_CREDITS`.
        credits: u32,
        /// Card address of `credits` slots of `EAGER_MAX` bytes, aligned to `SLOTS_ALIGN`.
        slots: u64,
        /// Peer's Ethernet address.
        remote_mac: u64,
        /// Place of the peer's endpoint.
        remote_endpoint: u32,
        /// Cycles after which the pair is `Refused` with `TimedOut`, less than 2^31; 0 for the firmware's default.
        timeout: u32,
    }
    /// Argument of `Accept`.
    Accept {
        /// Local endpoint.
        endpoint: u32,
        /// Envelopes that the peer may own here: 1 to `MAX_CREDITS`.
        credits: u32,
        /// Card address of `credits` slots of `EAGER_MAX` bytes, aligned to `SLOTS_ALIGN`.
        slots: u64,
    }
    /// Argument of `Disconnect`.
    Disconnect {
        /// Local pair.
        pair: u32,
        /// Cycles after which the connection is ended whether or not everything was acknowledged, less than 2^31; 0 for the firmware's default.
        timeout: u32,
    }
    /// Argument of `Reserve`. It replaces what was reserved for the endpoint before; `OpenPair`, `Connect` and `Accept` of
    /// the endpoint draw from it first. Refused with `NoResource`, the detail being the pairs that could be had, or with `NoEnvelopes`, the detail
    /// being the most credits that fit for so many pairs.
    Reserve {
        /// Local endpoint.
        endpoint: u32,
        /// Pairs.
        pairs: u32,
        /// Envelopes for each: 1 to `MAX_CREDITS`.
        credits: u32,
    }
    /// Argument of `ReadAudit`.
    AuditIndex {
        /// Number from which on the next entry is asked for; numbers begin at 0 with the firmware's start.
        entry: u32,
    }
    /// Answer of `ReadAudit`.
    AuditEntry {
        /// Number of the entry that is given: of the first one from the number asked for on, or the oldest if that hasn't come yet. An entry that
        /// repeats gets the number after all others.
        entry: u32,
        /// Number that the next occurrence will have. If `entry` is that, there is none and the rest is zero.
        next: u32,
        /// [`AuditKind`].
        kind: u32,
        /// Times that it occurred since it came into the ring, at least 1.
        count: u32,
        /// Cycle of the last occurrence, modulo 2^32.
        time: u32,
        /// Id of the object concerned, or zero.
        object: u32,
        /// Depends on the kind.
        info: u32,
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
        /// [`ConnectReason`] of a pair that is `Refused`, in bits 7:0; its detail in bits 31:16.
        reason: u32,
        /// Peer's Ethernet address, once it is known.
        remote_mac: u64,
        /// Place of the peer's endpoint, once it is known.
        remote_endpoint: u32,
        /// Envelopes that the peer granted, once it is connected.
        remote_credits: u32,
        /// Epoch of the peer's endpoint, once it is connected.
        remote_epoch: u32,
        /// [`PeerState`] of a pair that is or was connected; else 0.
        peer: u32,
        /// [`FailureCause`] of a peer that has failed; else 0.
        failure: u32,
        /// Log2 of the cycles of the pair's time-out, as chosen or as the firmware has it from the round trip.
        timeout_log2: u32,
        /// Time-outs that may pass, one after the other, before the pair fails.
        retry_limit: u32,
        /// Cycles that its acknowledgements wait at most for a frame that can carry them.
        acknowledge_delay: u32,
        /// Credits that wait with them at most.
        acknowledge_credits: u32,
    }
    /// Argument of `SetPairTimes`. What isn't chosen, or no more, is the firmware's: the time-out and the delay follow from the round trip that it measured.
    SetPairTimes {
        /// Local pair.
        pair: u32,
        /// `TIMES_*`: which of the others are chosen. What isn't doesn't count.
        chosen: u32,
        /// Log2 of the cycles without acknowledgement after which the pair sends again, and asks: `TIMEOUT_LOG2_LEAST` to `TIMEOUT_LOG2_MOST`.
        timeout_log2: u32,
        /// Times that it does so before it fails with `PeerFailed`: 0 to `RETRY_LIMIT_MOST`.
        retry_limit: u32,
        /// Cycles that its acknowledgements wait at most for a frame that can carry them, less than 2^16; 0: for none.
        acknowledge_delay: u32,
        /// Credits that wait with them at most: 0 to those that the pair grants. 0: they don't wait.
        acknowledge_credits: u32,
    }
    /// Argument of `SetRule`. A message falls under the rule if it comes by a pair of the group, has the context, and its match bits agree in those of `mask`: it is
    /// dropped, and its credit returns. A receive, a probe or a claim falls under it if it has the context, its match bits agree in those of `mask` and it ignores none
    /// of these, and its source is of the group or any: it completes with `Revoked`. The rule goes when it is cleared, or its endpoint is closed; a pair that is closed
    /// leaves the group. What was posted or had come before stays.
    SetRule {
        /// Local endpoint.
        endpoint: u32,
        /// Context.
        context: u32,
        /// Match bits.
        match_bits: u64,
        /// Of these, those that have to agree.
        mask: u64,
        /// The group, all of them open pairs of the endpoint and one at least: a bit for each of the places 0 to 63,
        low: u64,
        /// and 64 to 127.
        high: u64,
    }
    /// Answer of `SetRule`, argument of `ClearRule`.
    RuleId {
        /// Id of the rule.
        rule: u32,
    }
    /// Argument of `WatchPeers`. It replaces what was said for the endpoint before, and holds for pairs that are connected later too.
    WatchPeers {
        /// Local endpoint.
        endpoint: u32,
        /// Cycles between two looks at each peer, and up to a quarter more, at random: [`WATCH_INTERVAL_LEAST`](crate::times::WATCH_INTERVAL_LEAST) or more, and less
        /// than 2^30. 0: the firmware doesn't look.
        interval: u32,
        /// Cycles without a sign of life before a peer is taken to have failed: twice the interval or more, and less than 2^31; 0 with an interval of 0. What counts is
        /// the looks that fit into it: all of them, and one more, must find the peer silent.
        timeout: u32,
        /// 1: a connected peer of the endpoint that says that another has failed (`TellFailed`), or that messages are revoked (`TellRevoked`), is believed. 0: it
        /// isn't.
        believe: u32,
    }
    /// Argument of `ReadFailed`.
    Endpoint {
        /// Local endpoint.
        endpoint: u32,
    }
    /// Answer of `ReadFailed`.
    FailedPeers {
        /// Bit k: the peer of the endpoint's pair at place k has failed, for k below 64. A bit stays until its pair is closed.
        low: u64,
        /// The same for places from 64 on: bit k for place 64 + k.
        high: u64,
    }
    /// Argument of `TellFailed`.
    TellFailed {
        /// Local pair whose peer has failed.
        failed: u32,
        /// Bit k: the peer of the pair at place k is told, for k below 64. Pairs that aren't connected, and those of other endpoints, are passed over.
        low: u64,
        /// The same for places from 64 on.
        high: u64,
    }
    /// Argument of `TellRevoked`.
    TellRevoked {
        /// Local endpoint.
        endpoint: u32,
        /// The program's name for the group, the same at all members.
        tag: u32,
        /// Context.
        context: u32,
        /// Match bits.
        match_bits: u64,
        /// Of these, those that have to agree.
        mask: u64,
        /// Bit k: the peer of the pair at place k is told, for k below 64. Pairs that aren't connected, and those of other endpoints, are passed over.
        low: u64,
        /// The same for places from 64 on.
        high: u64,
    }
    /// Argument of `ReadRevoked` and `ForgetRevoked`.
    RevokedNumber {
        /// Local endpoint.
        endpoint: u32,
        /// `ReadRevoked`: the first of the endpoint from this number on is asked for; 0: the first of all. `ForgetRevoked`: its number.
        number: u32,
    }
    /// Answer of `ReadRevoked`.
    ToldRevocation {
        /// Its number, by which the event `Revoked` names it: 1 or more, and later ones have higher ones. 0: there is none from the number asked for on, and the rest is
        /// zero.
        number: u32,
        /// Id of the pair whose peer has told it.
        pair: u32,
        /// The peer's name for the group.
        tag: u32,
        /// Context.
        context: u32,
        /// Match bits, those of `mask` alone.
        match_bits: u64,
        /// Of these, those that have to agree.
        mask: u64,
        /// Id of the rule by which the gates refuse these messages, of the group that `NameGroup` has given this name. `NO_RULE`: they don't. No group with that
        /// peer has this name, the card has no rule free for it, or none at all.
        rule: u32,
    }
    /// Argument of `NameGroup`.
    NameGroup {
        /// Local endpoint.
        endpoint: u32,
        /// The program's name for the group, the same at all members.
        tag: u32,
        /// The group, all of them open pairs of the endpoint: a bit for each of the places 0 to 63,
        low: u64,
        /// and 64 to 127. None at all: the name is forgotten.
        high: u64,
    }
    /// Argument of `Signal`.
    Signal {
        /// Local pair.
        pair: u32,
        /// What the peer gets: `info` of its event.
        word: u64,
    }
    /// Argument of `Drain`. Byte k of `places0` is the place of the pair of rank k, byte k of `places1` that of rank 8 + k, and so on: [`DRAIN_NOBODY`] if no member has this rank,
    /// [`DRAIN_LOST`] if its pair is closed. Of the own rank it doesn't count.
    Drain {
        /// Local endpoint.
        endpoint: u32,
        /// The program's name for the group, the same at all members.
        tag: u32,
        /// Context.
        context: u32,
        /// Number of the drain of this tag and context: 1, and more each time, the same at all members.
        round: u32,
        /// Own rank, below 64.
        rank: u32,
        /// Ranks 0 to 7.
        places0: u64,
        /// Ranks 8 to 15.
        places1: u64,
        /// Ranks 16 to 23.
        places2: u64,
        /// Ranks 24 to 31.
        places3: u64,
        /// Ranks 32 to 39.
        places4: u64,
        /// Ranks 40 to 47.
        places5: u64,
        /// Ranks 48 to 55.
        places6: u64,
        /// Ranks 56 to 63.
        places7: u64,
    }
    /// Argument of `DrainSwept` and `ReadDrain`.
    DrainName {
        /// Local endpoint.
        endpoint: u32,
        /// Tag.
        tag: u32,
        /// Context.
        context: u32,
    }
    /// Answer of `ReadDrain`.
    DrainStatus {
        /// [`DrainState`].
        state: u32,
        /// Number of the round.
        round: u32,
        /// A bit for each rank: `Done`: the members that are agreed to have failed. Else those that this one takes to have failed.
        failed: u64,
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
        /// Address space of the region: `FLAT_SPACE`.
        space: u32,
    }
    /// Answer of `RegisterRegion`, argument of `DeregisterRegion`.
    RegionKey {
        /// Key.
        key: u32,
    }
    /// Argument of `Grant`.
    Grant {
        /// Key of the region, which has each of the rights.
        region: u32,
        /// Local pair whose peer may use the key: connected, of an endpoint of the region's domain. Of a shared key it is the first that may.
        /// `NO_PAIR` with `GRANT_ANY_PEER`.
        pair: u32,
        /// Rights: `control::RIGHT_REMOTE_*`.
        rights: u32,
        /// `control::GRANT_*`.
        flags: u32,
        /// First byte of the part of the region that may be used, counted from the region's.
        offset: u64,
        /// Its length, not 0.
        length: u64,
        /// The key ends by itself when so many units of [`GRANT_TICK`](crate::times::GRANT_TICK) cycles have begun since the card has it; 0: it doesn't. Its place
        /// on the card is taken until it is revoked.
        lasts: u32,
    }
    /// Answer of `Grant`, argument of `Revoke`.
    RemoteKey {
        /// Remote key.
        key: u64,
    }
    /// Argument of `Share`.
    Share {
        /// Remote key, granted as shared.
        key: u64,
        /// Local pair: connected, of an endpoint of the region's domain.
        pair: u32,
        /// 1: its peer may use the key. 0: it may not.
        allowed: u32,
    }
    /// Argument of `Fence`. An access is waited for if all that is named agrees.
    Fence {
        /// Protection domain. Nothing of another is waited for.
        domain: u32,
        /// OR of [`COVER_REGION`](crate::control::COVER_REGION), `COVER_PAIR`, `COVER_CONTEXT` and `COVER_PAGES`; 0: every access of the domain's regions.
        covers: u32,
        /// Key of a region of the domain; with `COVER_REGION`.
        region: u32,
        /// Local pair of an endpoint of the domain; with `COVER_PAIR`.
        pair: u32,
        /// Context, less than 2^16; with `COVER_CONTEXT`.
        context: u32,
        /// Card address of the first byte; with `COVER_PAGES`.
        address: u64,
        /// Length in bytes, at least 1; with `COVER_PAGES`. Whole pages of `1 << PAGE_BITS` bytes are waited for.
        length: u64,
    }
    /// Argument of `ReadCounter`.
    CounterId {
        /// [`Counter`](crate::control::Counter).
        counter: u32,
    }
    /// Argument of `ReadPairCounter`.
    PairCounterId {
        /// Local pair. Its counters are those of the connection that it has, or had last.
        pair: u32,
        /// [`PairCounter`](crate::control::PairCounter).
        counter: u32,
    }
    /// Argument of `SetShutOut`.
    SetShutOut {
        /// Local pair, connected or failed.
        pair: u32,
        /// After so many refused accesses its peer is shut out, less than 2^16; 0: it never is.
        limit: u32,
        /// For so many ticks of `SHUT_OUT_TICK` cycles, less than 2^16; the first may be short. 0: for none.
        ticks: u32,
    }
    /// Answer of `ReadShutOut`.
    ShutOut {
        /// As in `SetShutOut`.
        limit: u32,
        /// As in `SetShutOut`.
        ticks: u32,
        /// Refusals that count towards the limit: since the pair was connected, its peer was last shut out, or this was chosen.
        count: u32,
        /// The peer is shut out for so many ticks more; 0: it isn't.
        left: u32,
    }
    /// Answer of a command that is refused with `HardwareTimeout`: an access of host memory that was allowed and hasn't ended, so that the gates don't answer.
    Undrained {
        /// 0: they wait for none, or none is known, and the rest is zero. [`UNDRAINED_READ`]: the card reads. [`UNDRAINED_WRITE`]: it writes.
        access: u32,
        /// Key of its region.
        region: u32,
        /// Place of the pair on whose behalf it is.
        pair: u32,
        /// Context of the message whose payload it is; `NO_CONTEXT`: of a put or a get.
        context: u32,
    }
    /// Answer of `ReadCounter` and `ReadPairCounter`.
    CounterValue {
        /// Value; wraps at 2^32.
        value: u64,
    }
}

/// Arguments and results of a command.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Structure of the arguments.
    pub argument: &'static str,
    /// Its fields.
    pub arguments: &'static [WordField],
    /// Structure of the results.
    pub result: &'static str,
    /// What the arguments' structure is, as documented.
    pub about: &'static str,
    /// Its fields.
    pub results: &'static [WordField],
}

macro_rules! layouts {
    ($($command:ident: $argument:ty => $result:ty,)*) => {
        impl Command {
            /// What the command is given and what it answers.
            pub const fn layout(self) -> Layout {
                match self {$(
                    Self::$command => Layout {
                        argument: <$argument>::NAME,
                        arguments: <$argument>::FIELDS,
                        result: <$result>::NAME,
                        about: <$argument>::ABOUT,
                        results: <$result>::FIELDS,
                    },
                )*}
            }
        }
    };
}

layouts! {
    Identify: Nothing => Identity,
    OpenDomain: Nothing => DomainId,
    CloseDomain: DomainId => Nothing,
    OpenEndpoint: OpenEndpoint => EndpointId,
    CloseEndpoint: CloseEndpoint => Nothing,
    OpenPair: OpenPair => PairId,
    ConnectPair: ConnectPair => Nothing,
    ClosePair: Pair => Nothing,
    RegisterRegion: RegisterRegion => RegionKey,
    DeregisterRegion: RegionKey => Nothing,
    ReadCounter: CounterId => CounterValue,
    QueryPair: Pair => PairStatus,
    Connect: Connect => PairId,
    Accept: Accept => PairId,
    Disconnect: Disconnect => Nothing,
    Reserve: Reserve => Nothing,
    ReadAudit: AuditIndex => AuditEntry,
    DeclareFailed: Pair => Nothing,
    WatchPeers: WatchPeers => Nothing,
    ReadFailed: Endpoint => FailedPeers,
    TellFailed: TellFailed => Nothing,
    Signal: Signal => Nothing,
    SetRule: SetRule => RuleId,
    ClearRule: RuleId => Nothing,
    Drain: Drain => Nothing,
    DrainSwept: DrainName => Nothing,
    ReadDrain: DrainName => DrainStatus,
    SetPairTimes: SetPairTimes => Nothing,
    ReadPairCounter: PairCounterId => CounterValue,
    Grant: Grant => RemoteKey,
    Share: Share => Nothing,
    Revoke: RemoteKey => Nothing,
    RevokePeer: Pair => Nothing,
    Fence: Fence => Nothing,
    TellRevoked: TellRevoked => Nothing,
    ReadRevoked: RevokedNumber => ToldRevocation,
    ForgetRevoked: RevokedNumber => Nothing,
    NameGroup: NameGroup => Nothing,
    SetShutOut: SetShutOut => Nothing,
    ReadShutOut: Pair => ShutOut,
}

codes! {
    /// How far a drain has come.
    DrainState {
        /// A member has begun, and this endpoint hasn't.
        Asked = 0,
        /// The host has flushed. Others have not, or have not been heard of.
        Flushed = 1,
        /// All that live have flushed: nothing older can arrive. The host is to sweep, and to say so.
        Sweep = 2,
        /// All that live have swept, and agree on who has failed.
        Done = 3,
        /// The others have gone on without this member: one of them took it to have failed.
        CutOff = 4,
    }
}

/// `info` of the event [`Drain`](crate::event::Cause::Drain).
pub const fn drain_info(tag: u32, context: u16, state: DrainState) -> u64 {
    tag as u64 | (context as u64) << 32 | (state as u64) << 48
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
        /// Failed: its operations have completed with `LinkError`, `PeerFailed` or the status of what failed it.
        Failed = 3,
        /// `Connect`: the peer has not answered yet.
        Connecting = 4,
        /// `Accept`: nobody has connected yet.
        Accepting = 5,
        /// `Connect` came to nothing, and the reason says why. To be closed.
        Refused = 6,
        /// `Disconnect`: what was posted is being acknowledged, or the peer has not answered yet.
        Disconnecting = 7,
        /// `Disconnect` has ended, or the peer has closed the pair. To be closed.
        Disconnected = 8,
        /// The gates didn't answer in time when the pair was to be connected or closed: it is settled, and closed, when they do.
        Unsettled = 9,
    }
}

codes! {
    /// What is thought of the peer of a pair.
    PeerState {
        /// The pair was never connected.
        Unknown = 0,
        /// Nothing speaks against it.
        Alive = 1,
        /// There was no sign of life for half of the time after which it is taken to have failed, or it is watched and another pair's peer on the same card has failed.
        Suspect = 2,
        /// It is taken to have failed. It stays so until the pair is closed.
        Failed = 3,
        /// It had failed, and has connected again, with the epoch after: nothing of before is left.
        Rejoined = 4,
    }
}

codes! {
    /// What takes a peer to have failed.
    FailureCause {
        /// It isn't.
        None = 0,
        /// The gates sent to it as often as the pair's retry limit says, and heard nothing.
        Retries = 1,
        /// It showed no sign of life for the time that `WatchPeers` gave it.
        Silence = 2,
        /// The host said so: `DeclareFailed`.
        Declared = 3,
        /// Another peer of the endpoint said so, and is believed.
        Told = 4,
        /// Its endpoint connects anew, as a later incarnation.
        Restarted = 5,
        /// It closed its side of the pair, or its endpoint, and hadn't disconnected.
        Closed = 6,
    }
}

codes! {
    /// Why a connection was not made.
    ConnectReason {
        /// None: it was.
        None = 0,
        /// The peer did not answer in time: no card has this address, its wire is down, or its firmware doesn't run.
        TimedOut = 1,
        /// The peer has no such endpoint.
        NoEndpoint = 2,
        /// No `Accept` of the peer's endpoint waits for a connection.
        NotAccepting = 3,
        /// The peer has too many connections under way. Try again.
        Busy = 4,
        /// The peer speaks another version of the wire format; the detail is its version.
        WrongVersion = 5,
        /// The peer remembers a later epoch of this endpoint than the one that it was told; the detail is that epoch. The firmware takes the
        /// next one and tries again, so that a host sees this only if that was refused as well.
        StaleEpoch = 6,
        /// The two endpoints are connected already.
        AlreadyConnected = 7,
        /// The pair was closed while it was being connected.
        Closed = 8,
        /// The gates of one of the cards did not answer in time.
        HardwareTimeout = 9,
        /// The peer's answer made no sense.
        Malformed = 10,
        /// The two endpoints are of different jobs.
        WrongJob = 11,
    }
}

codes! {
    /// What an entry of the firmware's audit ring tells of. What repeats with the same `object` and `info` is one entry with a count.
    AuditKind {
        /// The firmware has started; `info` is the low word of its build id.
        Started = 1,
        /// A command was refused; `object` is the command's code, `info` the `MailboxStatus`.
        CommandRefused = 2,
        /// The gates did not answer a control request in time; `info` is the operation.
        ControlTimeout = 3,
        /// The gates answered a control request that had been given up; `info` is the operation.
        ControlLate = 4,
        /// An endpoint was opened; `info` is its epoch.
        EndpointOpened = 5,
        /// An endpoint was closed.
        EndpointClosed = 6,
        /// A pair was connected; `info` is the peer's epoch.
        PairConnected = 7,
        /// A connection came to nothing; `info` is the `ConnectReason`.
        ConnectFailed = 8,
        /// A connection was refused to a peer; `info` is the `ConnectReason`.
        PeerRefused = 9,
        /// A pair ended in an orderly way; `info` is 1 if the peer began.
        PairDisconnected = 10,
        /// The gates found a pair failed; `info` is the cause.
        PairFailed = 11,
        /// A frame for the firmware made no sense; `info` is its kind in bits 7:0 and its type in bits 15:8.
        FrameMalformed = 12,
        /// Frames for the firmware were lost for want of room; `count` is how many.
        FramesLost = 13,
        /// Events of the gates were lost for want of room; `count` is how many.
        EventsLost = 14,
        /// The epoch of an endpoint was raised because a peer remembered a later one; `info` is the new one.
        EpochRaised = 15,
        /// An event of the gates; `object` is the pair or `NO_PAIR`, `info` the cause.
        GateEvent = 16,
        /// A region refused accesses of requests; `object` is the key, `info` the domain in bits 7:0 and the rights that it asked for in bits 15:8, all of the
        /// last one, and `count` is how many.
        AccessRefused = 17,
        /// A peer was taken to have failed; `object` is the pair, `info` the [`FailureCause`].
        PeerFailed = 18,
        /// A peer said that another one has failed, or that messages are revoked, and wasn't believed; `object` is the pair of the one that said so.
        NotBelieved = 19,
        /// The random source failed a health test, so that no more keys are made; `info` is 1 for the repetition count and 2 for the adaptive proportion.
        EntropyFailed = 20,
        /// All remote keys of a pair's peer were revoked; `object` is the pair.
        PeerRevoked = 21,
        /// An access of host memory hadn't ended when the time was over of a control request that waits for it; `object` is the key of its region, `info` the place of the pair
        /// in bits 15:0, and bit 16 is set if it writes.
        AccessUndrained = 22,
        /// A peer said that messages are revoked, and there was no room to keep it: it is asked to say so again. `object` is the pair, `info` the context.
        RevocationNotKept = 30,
    }
}

/// `info` of [`AuditKind::AccessRefused`]: the domain that asked, and the rights that it asked for.
pub const fn refused_info(domain: u8, rights: u8) -> u32 {
    u16::from_le_bytes([domain, rights]) as u32
}

/// `info` of [`AuditKind::AccessUndrained`]: the place of the pair, and whether it writes.
pub const fn undrained_info(pair: u16, writes: bool) -> u32 {
    pair as u32 | (writes as u32) << 16
}

/// `info` of [`AuditKind::FrameMalformed`]: kind and type of the frame.
pub const fn malformed_info(kind: u8, frame_type: u8) -> u32 {
    u16::from_le_bytes([kind, frame_type]) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audit_rings_info_has_its_bytes_where_its_kind_says() {
        assert_eq!(refused_info(0x12, 0x34), 0x3412);
        assert_eq!(malformed_info(0x12, 0x34), 0x3412);
    }

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
    fn fields_say_where_their_words_are() {
        let layout = Command::OpenPair.layout();
        let at: [_; 3] = core::array::from_fn(|k| {
            let field = &layout.arguments[k];
            (field.name, field.word, field.words)
        });
        assert_eq!(at, [("endpoint", 1, 1), ("credits", 2, 1), ("slots", 3, 2)]);
        assert_eq!((layout.argument, layout.result), ("OpenPair", "PairId"));
        assert!(Command::Identify.layout().arguments.is_empty());
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
