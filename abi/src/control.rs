//! Control requests: how the firmware changes the tables of the gates.
//!
//! The firmware fills the request's data words, then writes operation and index; every block that
//! keeps something for that operation acts and answers, and the results are or-ed together. A
//! request is therefore atomic for each block. The data are one of the layouts below.

use crate::constant::constants;
use crate::limits::MAX_SENDS;
use crate::status::codes;

constants! {
    /// Sizes of a request.
    SIZES {
        /// 64-bit words of data in a control request.
        DATA_WORDS: usize = 5;
        /// 64-bit words of result.
        RESULT_WORDS: usize = 1;
    }
}

codes! {
    /// Operation of a control request. What `index` names is said for each.
    Operation {
        /// Own Ethernet address: [`CardSetup`]; no index.
        CardSet = 1,
        /// A ring: [`RingSetup`]; index is `4 * endpoint + RING_*` ([`ring_index`]). Its indices start at 0.
        RingSet = 2,
        /// An endpoint: [`EndpointSetup`]. Enables it.
        EndpointSet = 3,
        /// Stops fetching an endpoint's rings. Answered when its last fetched request has left the fetcher.
        EndpointStop = 4,
        /// Completes everything posted by an endpoint with `Flushed`. Answered when the last completion is written.
        EndpointFlush = 5,
        /// Forgets an endpoint: its completion and event queues stop too.
        EndpointClear = 6,
        /// A pair: [`PairSetup`]. Its counts start at 0.
        PairSet = 7,
        /// Fails a pair: its sends and the receives that name it complete with the status in the low byte of the data. The peer's gates are told, by
        /// `PairClosed` if the status is `Flushed` and by `PairFailed` otherwise, unless it is `PeerClosed`: then the firmware tells the peer's.
        PairFail = 8,
        /// Forgets a pair, its unexpected messages and its slots.
        PairClear = 9,
        /// Reads a pair: the result is [`PairReport`].
        PairRead = 10,
        /// A region: [`RegionSetup`]. Answered as `RegionClear` is.
        RegionSet = 11,
        /// Forgets a region. Answered when nothing that it allowed can reach memory any more.
        RegionClear = 12,
        /// Reads a counter; index is a [`Counter`].
        CounterRead = 13,
        /// What matching needs to know: [`MatchSetup`]; no index. Only while no receive is posted.
        MatchSet = 14,
        /// Raises an event of the firmware's: [`EventSetup`]; index is the endpoint. It folds and is counted as an event of the gates is.
        EventRaise = 15,
        /// A rule: [`RuleSetup`]; index is its row. Of what enters from then on nothing that falls under it is matched. It dies when its endpoint is flushed,
        /// and a pair that is cleared leaves its group.
        RuleSet = 16,
        /// Forgets a rule.
        RuleClear = 17,
        /// A grant: [`GrantSetup`]; index is its row. It is the named pair's as that is now: what revokes the pair's peer, revokes it.
        GrantSet = 18,
        /// Forgets the grant of a row: [`FenceSetup`], of what it allowed. Answered when nothing of that can reach memory any more.
        GrantClear = 19,
        /// Lets the peer of a pair use a shared key, or doesn't any more: [`PermissionSetup`]; index is the pair. A permission that is taken away is answered as
        /// `GrantClear` is.
        PermissionSet = 20,
        /// Forgets all grants and permissions of a pair's peer, however many there are, in one step. Answered as `GrantClear` is. Its messages go on.
        SenderRevoke = 21,
        /// Changes nothing: [`FenceSetup`]. Answered when every access of host memory that it covers and that was allowed before has ended. Those that are allowed
        /// later aren't waited for. No index.
        Fence = 22,
        /// Changes the times of a connected pair, and nothing else of it: [`PairSetup`], of which only its time-out, its retry limit, and what its acknowledgements wait
        /// for count.
        PairTimes = 23,
        /// Reads a counter of a pair; index is [`pair_counter_index`].
        PairCounterRead = 24,
        /// Gives the gates the key of the tags that they make: [`MintSetup`]; no index. Before, they make none.
        MintSet = 25,
        /// A grant that the gates make: [`GrantSetup`], of which the tag doesn't count; no index. They choose the row, one of [`minted_grants`], and the tag. The
        /// result is the remote key, or 0 if none of these rows is free or there is no key of the tags. The row is free again when the grant has ended with its one access, or is cleared.
        GrantMint = 26,
        /// Chooses when the peer of a connected pair is shut out: [`ShutOutSetup`]; index is the pair. Its count of refusals starts anew, and it isn't shut out.
        ShutOutSet = 30,
        /// Reads that: the result is [`ShutOutReport`]; index is the pair.
        ShutOutRead = 31,
    }
}

constants! {
    /// Counters of each pair.
    PAIR_COUNTERS {
        /// Bits of the index of a `PairCounterRead` that name the [`PairCounter`]; the pair's number is above them.
        PAIR_COUNTER_BITS: u32 = 4;
    }
}

/// Index of a `PairCounterRead`.
pub const fn pair_counter_index(pair: u16, counter: PairCounter) -> u16 {
    pair << PAIR_COUNTER_BITS | counter as u16
}

/// Pair, and code of the [`PairCounter`], of the index of a `PairCounterRead`.
pub const fn pair_counter_of_index(index: u16) -> (u16, u8) {
    (
        index >> PAIR_COUNTER_BITS,
        (index & ((1 << PAIR_COUNTER_BITS) - 1)) as u8,
    )
}

constants! {
    /// Rings of an endpoint, as `RingSet` names them.
    RINGS {
        /// `RingSet` index: send ring.
        RING_SEND: u16 = 0;
        /// `RingSet` index: list ring.
        RING_LIST: u16 = 1;
        /// `RingSet` index: completion queue.
        RING_COMPLETION: u16 = 2;
        /// `RingSet` index: event queue.
        RING_EVENT: u16 = 3;
        /// Bits of a `RingSet` index that name the ring; the endpoint's number is above them.
        RING_BITS: u32 = 2;
    }
}

/// Index of a `RingSet`, from the endpoint and `RING_*`.
pub const fn ring_index(endpoint: u8, ring: u16) -> u16 {
    (endpoint as u16) << RING_BITS | ring
}

constants! {
    /// Rights of a region, and its key.
    RIGHTS {
        /// The card may read the region: it may be sent from.
        RIGHT_LOCAL_READ: u8 = 1 << 0;
        /// The card may write the region: it may be received into.
        RIGHT_LOCAL_WRITE: u8 = 1 << 1;
        /// A peer may write the region, by a remote key.
        RIGHT_REMOTE_WRITE: u8 = 1 << 2;
        /// A peer may read it.
        RIGHT_REMOTE_READ: u8 = 1 << 3;
        /// A peer may change it by atomic operations.
        RIGHT_REMOTE_ATOMIC: u8 = 1 << 4;
        /// Bits of a key that index the region table; the rest are the region's tag.
        KEY_INDEX_BITS: u32 = 12;
    }
}

constants! {
    /// Kinds of grants: `flags` of [`GrantSetup`], and of the mailbox command `Grant`.
    GRANTS {
        /// The key is for all peers that have a permission, and not for one.
        GRANT_SHARED: u8 = 1 << 0;
        /// The grant ends with the first access that it allows, and its row is free. The gates make it. Not together with `GRANT_SHARED`, nor of one with `RIGHT_REMOTE_READ`: a get is asked for again until its answer has come.
        GRANT_ONE_SHOT: u8 = 1 << 1;
        /// The key is for the peer of every connected pair of the region's domain: nothing tells them apart. Not together with `GRANT_SHARED`.
        GRANT_ANY_PEER: u8 = 1 << 2;
        /// Grants for which there is one that may be shared.
        GRANTS_PER_SHARED: u32 = 16;
        /// Grants for which there is a row more, for those that the gates make.
        GRANTS_PER_MINTED: u32 = 8;
        /// Rows for those that the gates make, at most.
        MAX_MINTED: u32 = 32;
    }
}

/// How many of a card's grants may be shared at a time.
pub const fn shared_grants(grants: u32) -> u32 {
    grants / GRANTS_PER_SHARED
}

/// Rows behind a card's grants for those that its gates make.
pub const fn minted_grants(grants: u32) -> u32 {
    let rows = grants / GRANTS_PER_MINTED;
    match rows < MAX_MINTED {
        true => rows,
        false => MAX_MINTED,
    }
}

/// Key of a region, from its index in the table and its tag.
pub const fn region_key(index: u16, tag: u32) -> u32 {
    tag << KEY_INDEX_BITS | index as u32
}

/// Index in the table of the region that a key names.
pub const fn key_index(key: u32) -> u16 {
    (key & ((1 << KEY_INDEX_BITS) - 1)) as u16
}

/// Tag of a key.
pub const fn key_tag(key: u32) -> u32 {
    key >> KEY_INDEX_BITS
}

/// Endpoint and `RING_*` of the index of a `RingSet`.
pub const fn ring_of_index(index: u16) -> (u8, u16) {
    ((index >> RING_BITS) as u8, index & ((1 << RING_BITS) - 1))
}

/// Field list of [`CardSetup`].
#[macro_export]
macro_rules! card_setup_layout {
    ($apply:ident) => {
        $apply! {
            /// Data of `CardSet`.
            CardSetup, CardSetupView, 1 words {
                /// Own Ethernet address; the least significant byte is first on the wire.
                mac: u64 = 48,
                /// Zero.
                reserved0: u16 = 16,
            }
        }
    };
}

/// Field list of [`MatchSetup`].
#[macro_export]
macro_rules! match_setup_layout {
    ($apply:ident) => {
        $apply! {
            /// Data of `MatchSet`.
            MatchSetup, MatchSetupView, 2 words {
                /// Seed of the hashes, low half: random, and told to nobody outside the card.
                seed_low: u64 = 64,
                /// High half.
                seed_high: u64 = 64,
            }
        }
    };
}

/// Field list of [`EventSetup`].
#[macro_export]
macro_rules! event_setup_layout {
    ($apply:ident) => {
        $apply! {
            /// Data of `EventRaise`.
            EventSetup, EventSetupView, 2 words {
                /// [`Cause`](crate::event::Cause).
                cause: u8 = 8,
                /// Zero.
                reserved0: u8 = 8,
                /// Pair concerned, or [`NO_PAIR`](crate::event::NO_PAIR).
                pair: u16 = 16,
                /// Zero.
                reserved1: u32 = 32,
                /// Depends on the cause.
                info: u64 = 64,
            }
        }
    };
}

/// Field list of [`RingSetup`].
#[macro_export]
macro_rules! ring_setup_layout {
    ($apply:ident) => {
        $apply! {
            /// Data of `RingSet`.
            RingSetup, RingSetupView, 2 words {
                /// Card address of entry 0: a multiple of the ring's size in bytes.
                base: u64 = 64,
                /// log2 of the number of entries.
                log2: u8 = 8,
                /// Address space of `base`: [`FLAT_SPACE`](crate::limits::FLAT_SPACE).
                space: u8 = 8,
                /// Zero.
                reserved0: u64 = 48,
            }
        }
    };
}

/// Field list of [`EndpointSetup`].
#[macro_export]
macro_rules! endpoint_setup_layout {
    ($apply:ident) => {
        $apply! {
            /// Data of `EndpointSet`.
            EndpointSetup, EndpointSetupView, 1 words {
                /// Protection domain.
                domain: u8 = 8,
                /// Endpoint whose completion queue takes its completions: itself, or another one on a card with `CAPABILITY_SHARED_COMPLETIONS`.
                completion_owner: u8 = 8,
                /// Epoch.
                epoch: u16 = 16,
                /// Zero.
                reserved0: u32 = 32,
            }
        }
    };
}

/// Field list of [`PairSetup`].
#[macro_export]
macro_rules! pair_setup_layout {
    ($apply:ident) => {
        $apply! {
            /// Data of `PairSet`.
            PairSetup, PairSetupView, 5 words {
                /// Peer's Ethernet address.
                remote_mac: u64 = 48,
                /// Peer's endpoint.
                remote_endpoint: u16 = 16,
                /// Peer's pair.
                remote_pair: u16 = 16,
                /// Peer's epoch.
                remote_epoch: u16 = 16,
                /// Cookie of the connection.
                cookie: u32 = 32,
                /// Local endpoint.
                endpoint: u8 = 8,
                /// Its protection domain.
                domain: u8 = 8,
                /// Its epoch.
                epoch: u16 = 16,
                /// Envelopes that the peer grants us.
                remote_credits: u8 = 8,
                /// Envelopes that we grant the peer.
                local_credits: u8 = 8,
                /// First of the descriptors of its sends: the run is aligned to its length.
                sends_first: u16 = 16,
                /// Card address of the pair's slots.
                slots: u64 = 64,
                /// Log2 of the length of that run: 1 to that of `MAX_SENDS`.
                sends_log2: u8 = 3,
                /// Log2 of the cycles without acknowledgement after which the pair sends its last unacknowledged send again, up to 31; 0 never. They double with each
                /// time that it has passed without one, up to four times as many.
                timeout_log2: u8 = 5,
                /// Address space of `slots`: [`FLAT_SPACE`](crate::limits::FLAT_SPACE).
                space: u8 = 8,
                /// An acknowledgement waits for a frame of its pair that can carry it until so many credits wait with it; 0: it doesn't wait.
                acknowledge_credits: u8 = 8,
                /// And so many cycles at most; 0: it doesn't wait.
                acknowledge_delay: u16 = 16,
                /// Time-outs that may pass, one after the other, before the pair fails with `PeerFailed`, up to 15.
                retry_limit: u8 = 8,
                /// Zero.
                reserved0: u16 = 16,
            }
        }
    };
}

/// Field list of [`PairReport`].
#[macro_export]
macro_rules! pair_report_layout {
    ($apply:ident) => {
        $apply! {
            /// Result of `PairRead`.
            PairReport, PairReportView, 1 words {
                /// [`PairState`](crate::mailbox::PairState): `Connected` or `Failed`.
                state: u8 = 8,
                /// Credits in hand.
                available: u8 = 8,
                /// Sends injected and not acknowledged.
                unacknowledged: u8 = 8,
                /// Sends waiting.
                waiting: u8 = 8,
                /// The peer's accesses that a region refused, since the pair was connected. Wraps.
                refused: u32 = 22,
                /// Failed: what its operations complete with, the code of a [`Status`](crate::status::Status). Else zero.
                status: u8 = 8,
                /// Failed: the peer has closed its side.
                closed: u8 = 1,
                /// A frame of the peer has come since the last `PairRead`.
                heard: u8 = 1,
            }
        }
    };
}

/// Field list of [`ShutOutSetup`].
#[macro_export]
macro_rules! shut_out_setup_layout {
    ($apply:ident) => {
        $apply! {
            /// Data of `ShutOutSet`.
            ShutOutSetup, ShutOutSetupView, 1 words {
                /// After so many refused accesses the pair's peer is shut out; 0: it never is.
                limit: u16 = 16,
                /// For so many ticks of [`SHUT_OUT_TICK`](crate::times::SHUT_OUT_TICK) cycles, the first of which has begun before; 0: for none.
                ticks: u16 = 16,
                /// Zero.
                reserved0: u32 = 32,
            }
        }
    };
}

/// Field list of [`ShutOutReport`].
#[macro_export]
macro_rules! shut_out_report_layout {
    ($apply:ident) => {
        $apply! {
            /// Result of `ShutOutRead`.
            ShutOutReport, ShutOutReportView, 1 words {
                /// As in `ShutOutSetup`.
                limit: u16 = 16,
                /// As in `ShutOutSetup`.
                ticks: u16 = 16,
                /// Refusals that count towards the limit.
                count: u16 = 16,
                /// The peer is shut out for so many ticks more; 0: it isn't.
                left: u16 = 16,
            }
        }
    };
}

/// Field list of [`RegionSetup`].
#[macro_export]
macro_rules! region_setup_layout {
    ($apply:ident) => {
        $apply! {
            /// Data of `RegionSet`.
            RegionSetup, RegionSetupView, 3 words {
                /// Card address of the first byte.
                base: u64 = 64,
                /// Length in bytes.
                length: u64 = 64,
                /// Upper bits of the key: another tag for each region that the index gets, enciphered. A key with another tag doesn't name this region.
                tag: u32 = 20,
                /// Zero.
                reserved0: u16 = 12,
                /// Protection domain.
                domain: u8 = 8,
                /// `RIGHT_*`.
                rights: u8 = 8,
                /// Address space of `base`: [`FLAT_SPACE`](crate::limits::FLAT_SPACE).
                space: u8 = 8,
                /// Zero.
                reserved1: u8 = 8,
            }
        }
    };
}

/// Field list of [`RuleSetup`].
#[macro_export]
macro_rules! rule_setup_layout {
    ($apply:ident) => {
        $apply! {
            /// Data of `RuleSet`.
            RuleSetup, RuleSetupView, 5 words {
                /// Endpoint.
                endpoint: u8 = 8,
                /// Zero.
                reserved0: u8 = 8,
                /// Context.
                context: u16 = 16,
                /// Zero.
                reserved1: u32 = 32,
                /// Match bits.
                match_bits: u64 = 64,
                /// Of these, those that have to agree.
                mask: u64 = 64,
                /// A bit for each pair of the group: pairs 0 to 63,
                pairs_low: u64 = 64,
                /// and pairs 64 to 127.
                pairs_high: u64 = 64,
            }
        }
    };
}

/// Field list of [`GrantSetup`].
#[macro_export]
macro_rules! grant_setup_layout {
    ($apply:ident) => {
        $apply! {
            /// Data of `GrantSet`.
            GrantSetup, GrantSetupView, 5 words {
                /// First byte of the part that is granted, counted from the region's.
                offset: u64 = 64,
                /// Length of the part.
                length: u64 = 64,
                /// Upper bits of the remote key.
                tag: u64 = 48,
                /// Index of the region.
                region: u16 = 16,
                /// The region's tag: the grant ends with the region.
                region_tag: u32 = 20,
                /// Zero.
                reserved0: u16 = 12,
                /// Pair whose peer may use it; of a shared grant the number that `PermissionSet` names it by; of one for any peer nothing.
                holder: u16 = 16,
                /// `RIGHT_REMOTE_*`.
                rights: u8 = 8,
                /// `GRANT_*`.
                flags: u8 = 8,
                /// It ends by itself when so many units of [`GRANT_TICK`](crate::times::GRANT_TICK) cycles have begun from now on; 0: it doesn't.
                lasts: u32 = 32,
                /// Zero.
                reserved1: u32 = 32,
            }
        }
    };
}

/// Field list of [`MintSetup`].
#[macro_export]
macro_rules! mint_setup_layout {
    ($apply:ident) => {
        $apply! {
            /// Data of `MintSet`.
            MintSetup, MintSetupView, 2 words {
                /// Key of the cipher that makes tags, of which the lowest 24 bits are its first word.
                key_low: u64 = 64,
                /// Its highest bits.
                key_high: u32 = 32,
                /// Zero.
                reserved0: u32 = 32,
            }
        }
    };
}

/// Field list of [`PermissionSetup`].
#[macro_export]
macro_rules! permission_setup_layout {
    ($apply:ident) => {
        $apply! {
            /// Data of `PermissionSet`.
            PermissionSetup, PermissionSetupView, 1 words {
                /// Number of the shared grant: its `holder`.
                shared: u16 = 16,
                /// The peer may use it.
                allowed: u8 = 1,
                /// Zero.
                reserved0: u64 = 47,
            }
        }
    };
}

constants! {
    /// What a fence covers: an access about which all that is named agrees. A fence that names nothing covers every access.
    COVERS {
        /// Those of one region.
        COVER_REGION: u8 = 1;
        /// Those on behalf of one peer: what it reads and writes, what is put to it and got from it, and what is read and written for the messages to it and from it.
        COVER_PAIR: u8 = 2;
        /// The payloads of the messages of one context.
        COVER_CONTEXT: u8 = 4;
        /// Those of a range of pages.
        COVER_PAGES: u8 = 8;
        /// Those of the regions of one protection domain.
        COVER_DOMAIN: u8 = 16;
        /// Log2 of the bytes of a page.
        PAGE_BITS: u32 = 12;
    }
}

/// Field list of [`FenceSetup`].
#[macro_export]
macro_rules! fence_setup_layout {
    ($apply:ident) => {
        $apply! {
            /// Data of `Fence` and of `GrantClear`: the accesses that are waited for.
            FenceSetup, FenceSetupView, 3 words {
                /// Card address of a byte of the first page, without its low [`PAGE_BITS`]; with `COVER_PAGES`.
                first_page: u64 = 52,
                /// OR of `COVER_*`.
                covers: u8 = 8,
                /// Zero.
                reserved0: u8 = 4,
                /// The same of the last page.
                last_page: u64 = 52,
                /// Zero.
                reserved1: u16 = 12,
                /// The region; with `COVER_REGION`.
                region: u16 = 16,
                /// The pair; with `COVER_PAIR`.
                pair: u16 = 16,
                /// The context; with `COVER_CONTEXT`.
                context: u16 = 16,
                /// The protection domain; with `COVER_DOMAIN`.
                domain: u8 = 8,
                /// Zero.
                reserved2: u8 = 8,
            }
        }
    };
}

/// Field list of [`AccessReport`].
#[macro_export]
macro_rules! access_report_layout {
    ($apply:ident) => {
        $apply! {
            /// What `CONTROL_RESULT` reads while a request is under way: an access of host memory that the request waits for. All zero if it waits for none.
            AccessReport, AccessReportView, 1 words {
                /// There is one.
                waits: u8 = 1,
                /// It writes; else it reads.
                writes: u8 = 1,
                /// It is for the payload of a message of `context`.
                tagged: u8 = 1,
                /// Zero.
                reserved0: u8 = 5,
                /// Protection domain of its region.
                domain: u8 = 8,
                /// Its region.
                region: u16 = 16,
                /// Pair on whose behalf it is.
                pair: u16 = 16,
                /// The message's context.
                context: u16 = 16,
            }
        }
    };
}

/// Log2 of the run that each of `pairs` pairs has of so many descriptors if all have as many: 2 at least, `MAX_SENDS` at most.
pub const fn equal_sends_log2(descriptors: u32, pairs: u32) -> u8 {
    let share = match pairs {
        0 => 0,
        _ => descriptors / pairs,
    };
    match share {
        0..4 => 1,
        share if share > MAX_SENDS as u32 => MAX_SENDS.ilog2() as u8,
        share => share.ilog2() as u8,
    }
}

use crate::define_layout;
card_setup_layout!(define_layout);
match_setup_layout!(define_layout);
event_setup_layout!(define_layout);
ring_setup_layout!(define_layout);
endpoint_setup_layout!(define_layout);
pair_setup_layout!(define_layout);
pair_report_layout!(define_layout);
shut_out_setup_layout!(define_layout);
shut_out_report_layout!(define_layout);
region_setup_layout!(define_layout);
rule_setup_layout!(define_layout);

impl RuleSetup {
    /// The group: a bit for each pair.
    pub const fn pairs(&self) -> u128 {
        (self.pairs_high as u128) << 64 | self.pairs_low as u128
    }

    /// Whether a message of this endpoint falls under the rule. Ask for a receive with its ignore bits: none falls under it that may be for messages which
    /// don't. No pair: any source.
    pub const fn covers(
        &self,
        endpoint: u8,
        pair: Option<u16>,
        context: u16,
        match_bits: u64,
        ignore_bits: u64,
    ) -> bool {
        let of_group = match pair {
            Some(pair) => pair < 128 && self.pairs() >> pair & 1 == 1,
            None => true,
        };
        let differs = (match_bits ^ self.match_bits | ignore_bits) & self.mask;
        self.endpoint == endpoint && self.context == context && of_group && differs == 0
    }
}
grant_setup_layout!(define_layout);
mint_setup_layout!(define_layout);
permission_setup_layout!(define_layout);
fence_setup_layout!(define_layout);
access_report_layout!(define_layout);

codes! {
    /// The card's counters. They wrap at 2^32.
    Counter {
        /// Frames sent.
        FramesSent = 0,
        /// Frames received that passed every check.
        FramesReceived = 1,
        /// Frames dropped: bad CRC.
        CrcErrors = 2,
        /// Frames dropped: too short, too long, or a length that disagrees with the frame.
        LengthErrors = 3,
        /// Frames dropped: EtherType, version or type unknown.
        TypeErrors = 4,
        /// Frames dropped: pair not connected, or endpoint, epoch or cookie wrong.
        PairErrors = 5,
        /// Frames dropped: already received.
        Duplicates = 6,
        /// Frames dropped: a request before them is missing.
        Gaps = 7,
        /// Times that a pair had no acknowledgement for its time-out, or no answer of a get for several, and sent its last send, or its gets, again or failed.
        Timeouts = 8,
        /// Requests refused as malformed, each once: with `InvalidRequest`, `InvalidPair`, `InvalidClaim`, `TooLong` or `LocalProtection`.
        InvalidRequests = 9,
        /// Doorbells ignored because of their value.
        DoorbellErrors = 10,
        /// Messages that matched a posted receive on arrival.
        Expected = 11,
        /// Messages that found no receive and went to the unexpected list.
        Unexpected = 12,
        /// Completions written.
        Completions = 13,
        /// Receives whose places on the exact side of matching were full, though there was room for them: they went to the associative side, which is slower, or were refused if that was full.
        MatchOverflows = 14,
        /// Times that a pair had heard nothing for long and asked its peer, with sends waiting for credit and none on their way, or with gets unanswered that the
        /// peer has.
        CreditAsks = 15,
        /// Frames for the firmware that were dropped because it had not taken those before.
        FirmwareFramesDropped = 16,
        /// Messages sent again.
        Repeats = 17,
        /// Messages dropped because they fell under a rule.
        RuleDrops = 18,
    }
}

codes! {
    /// The counters of a pair, by what has happened and to which peer. They start at 0 when the pair is connected, live on when it fails, and wrap at 2^32. What
    /// can't be ascribed to a pair is counted for the card alone, by a `Counter`: a frame whose CRC is wrong may name any.
    PairCounter {
        /// Frames of the peer that passed every check.
        FramesReceived = 0,
        /// Frames dropped that named the pair: it has failed, or endpoint, epoch or cookie were wrong. Frames of an earlier connection are among them.
        PairErrors = 1,
        /// Frames dropped: already received.
        Duplicates = 2,
        /// Frames dropped: a request before them is missing.
        Gaps = 3,
        /// Times that the pair had no acknowledgement for its time-out, or no answer of a get for several, and sent its last send, or its gets, again or failed.
        Timeouts = 4,
        /// Messages, puts and gets sent again.
        Repeats = 5,
        /// Times that it had heard nothing for long and asked the peer, with sends waiting for credit and none on their way, or with gets unanswered that the peer
        /// has.
        CreditAsks = 6,
        /// Messages of the peer dropped because they fell under a rule.
        RuleDrops = 7,
        /// Accesses of the peer refused for [`RefusalReason::UnknownKey`]. This counter and the next seven are of the card's pairs alone.
        RefusedUnknownKey = 8,
        /// For [`RefusalReason::WrongTag`].
        RefusedWrongTag = 9,
        /// For [`RefusalReason::WrongPeer`].
        RefusedWrongPeer = 10,
        /// For [`RefusalReason::Revoked`].
        RefusedRevoked = 11,
        /// For [`RefusalReason::MissingRight`].
        RefusedMissingRight = 12,
        /// For [`RefusalReason::OutOfBounds`].
        RefusedOutOfBounds = 13,
        /// For [`RefusalReason::RegionGone`].
        RefusedRegionGone = 14,
        /// For [`RefusalReason::ShutOut`].
        RefusedShutOut = 15,
    }
}

codes! {
    /// Why an access of a peer was refused: the first of these that holds.
    RefusalReason {
        /// The key names no grant: there never was one, it was revoked by itself, its one access has been made, or its time is over.
        UnknownKey = 0,
        /// The key names a grant by another tag: it was guessed, or is an old one of a row that has another grant now.
        WrongTag = 1,
        /// The key is another peer's, or shared by others, or for any peer of another domain.
        WrongPeer = 2,
        /// The peer was revoked, or had another connection then, or its pair has failed since.
        Revoked = 3,
        /// The grant lacks a right.
        MissingRight = 4,
        /// Not all of the bytes are in the part that is granted.
        OutOfBounds = 5,
        /// The region that was granted has gone, lacks the right, or is shorter.
        RegionGone = 6,
        /// The peer was shut out: nothing was looked up.
        ShutOut = 7,
    }
}

const _: () = assert!(PairCounter::ALL.len() == 1 << PAIR_COUNTER_BITS);

impl PairCounter {
    /// The card's counter that counts the same of all pairs. None of refused accesses.
    pub const fn of_card(self) -> Option<Counter> {
        Some(match self {
            Self::FramesReceived => Counter::FramesReceived,
            Self::PairErrors => Counter::PairErrors,
            Self::Duplicates => Counter::Duplicates,
            Self::Gaps => Counter::Gaps,
            Self::Timeouts => Counter::Timeouts,
            Self::Repeats => Counter::Repeats,
            Self::CreditAsks => Counter::CreditAsks,
            Self::RuleDrops => Counter::RuleDrops,
            Self::RefusedUnknownKey
            | Self::RefusedWrongTag
            | Self::RefusedWrongPeer
            | Self::RefusedRevoked
            | Self::RefusedMissingRight
            | Self::RefusedOutOfBounds
            | Self::RefusedRegionGone
            | Self::RefusedShutOut => return None,
        })
    }

    /// The counter of the accesses that were refused for this reason.
    pub const fn of_refusals(reason: RefusalReason) -> Self {
        match reason {
            RefusalReason::UnknownKey => Self::RefusedUnknownKey,
            RefusalReason::WrongTag => Self::RefusedWrongTag,
            RefusalReason::WrongPeer => Self::RefusedWrongPeer,
            RefusalReason::Revoked => Self::RefusedRevoked,
            RefusalReason::MissingRight => Self::RefusedMissingRight,
            RefusalReason::OutOfBounds => Self::RefusedOutOfBounds,
            RefusalReason::RegionGone => Self::RefusedRegionGone,
            RefusalReason::ShutOut => Self::RefusedShutOut,
        }
    }
}
