//! One row for each opcode: what the request is, what it may carry, and what may become of it.
//!
//! ```text
//!                    ┌─► decoder of the gates (constants of its comparators)
//!  OPCODES, a row ───┼─► decoder of the model, `decode_send` and `decode_list`
//!  for each opcode   ├─► the library: ring, kind of completion, what cancels it, what is kept back
//!                    ├─► checks of tests: no completion has a status that its row doesn't name
//!                    └─► the book's table of opcodes
//! ```
//!
//! A new opcode is a row here, a room of gates, one of the model, and a file of the library (`DEVELOPERS.md` has the list). A row and a flag may need a
//! [capability](crate::capability): to a card without it they are unknown.

use crate::capability::{
    CAPABILITY_ERRORS_ONLY, CAPABILITY_GATHER, CAPABILITY_GET, CAPABILITY_INLINE, CAPABILITY_PUT,
    CAPABILITY_RULES,
};
use crate::completion::CompletionKind;
use crate::request::{
    FLAG_ANY_SOURCE, FLAG_ERRORS_ONLY, FLAG_GATHER, FLAG_INLINE, FLAG_MULTI, FLAG_NOTHING_KEPT,
    FLAG_PAST_RULES, FLAG_READY, FLAG_RESUME, INLINE_BYTES, ListRequest, Opcode, SendRequest,
    SendSegments,
};
use crate::status::Status;

/// The ring that a request is posted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkRing {
    /// The send ring: entries are [`SendRequest`]s.
    Send,
    /// The list ring: entries are [`ListRequest`]s.
    List,
}

/// What the card does with the buffer that a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferUse {
    /// There is none: `key`, `address` and `length` are not looked at.
    None,
    /// The card reads it: the region needs `RIGHT_LOCAL_READ`.
    Read,
    /// The card writes it: the region needs `RIGHT_LOCAL_WRITE`.
    Write,
}

/// What `target` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetUse {
    /// Nothing: it is not looked at.
    None,
    /// The `request` of a send or of a receive.
    Request,
    /// The handle of a claim.
    Claim,
}

/// When a request completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completes {
    /// Once.
    Once,
    /// Once without `COMPLETION_MORE`, and with `FLAG_MULTI` any number of times with it before that.
    OnceOrMore,
    /// Only if it is refused.
    IfRefused,
}

/// A flag that a card knows only if it has a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionalFlag {
    /// The flag.
    pub flag: u8,
    /// The capability: `CAPABILITY_*`.
    pub capability: u32,
}

/// What holds for all requests of an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpcodeRow {
    /// The opcode.
    pub opcode: Opcode,
    /// Where it is posted.
    pub ring: WorkRing,
    /// Kind of its completion.
    pub kind: CompletionKind,
    /// When it completes.
    pub completes: Completes,
    /// Flags that it may have on any card.
    pub flags: u8,
    /// Flags that it may have on some.
    pub optional: &'static [OptionalFlag],
    /// Capability without which a card doesn't know the opcode; 0 if every card knows it.
    pub capability: u32,
    /// Flag with which the request takes a second entry; 0 if it never does.
    pub second_flag: u8,
    /// Flag with which the request carries its payload, of at most [`INLINE_BYTES`], and has no second entry; 0 if it never does.
    pub inline_flag: u8,
    /// It is no request, but the second entry of one. Found anywhere else it is malformed.
    pub is_second: bool,
    /// Flag with which `min_free` may be other than zero; 0 if it never may.
    pub min_free_flag: u8,
    /// What is done with the buffer.
    pub buffer: BufferUse,
    /// Whether `pair` has to be one of the endpoint's, unless `FLAG_ANY_SOURCE` is given.
    pub pair: bool,
    /// What `target` names.
    pub target: TargetUse,
    /// The opcode that cancels it, if it can be cancelled.
    pub cancelled_by: Option<Opcode>,
    /// Statuses with which it is refused: nothing else has happened.
    pub refusals: &'static [Status],
    /// Statuses with which it ends otherwise.
    pub ends: &'static [Status],
}

/// Every opcode's row, in the order of the codes.
pub const OPCODES: &[OpcodeRow] = &[
    OpcodeRow {
        opcode: Opcode::TaggedSend,
        ring: WorkRing::Send,
        kind: CompletionKind::Send,
        completes: Completes::Once,
        flags: FLAG_READY,
        optional: SEND_FLAGS,
        capability: 0,
        second_flag: FLAG_GATHER,
        inline_flag: FLAG_INLINE,
        is_second: false,
        min_free_flag: 0,
        buffer: BufferUse::Read,
        pair: true,
        target: TargetUse::None,
        cancelled_by: Some(Opcode::CancelSend),
        refusals: &[
            Status::InvalidRequest,
            Status::InvalidPair,
            Status::TooLong,
            Status::QueueFull,
            Status::LocalProtection,
        ],
        ends: &[
            Status::Success,
            Status::NotReady,
            Status::Cancelled,
            Status::MemoryError,
            Status::LinkError,
            Status::PeerFailed,
            Status::PeerClosed,
            Status::Flushed,
        ],
    },
    OpcodeRow {
        opcode: Opcode::CancelSend,
        ring: WorkRing::Send,
        kind: CompletionKind::Cancel,
        completes: Completes::IfRefused,
        flags: 0,
        optional: &[],
        capability: 0,
        second_flag: 0,
        inline_flag: 0,
        is_second: false,
        min_free_flag: 0,
        buffer: BufferUse::None,
        pair: true,
        target: TargetUse::Request,
        cancelled_by: None,
        refusals: &[Status::InvalidRequest, Status::TooLate],
        ends: &[],
    },
    OpcodeRow {
        opcode: Opcode::Segments,
        ring: WorkRing::Send,
        kind: CompletionKind::Send,
        completes: Completes::IfRefused,
        flags: 0,
        optional: &[],
        capability: CAPABILITY_GATHER,
        second_flag: 0,
        inline_flag: 0,
        is_second: true,
        min_free_flag: 0,
        buffer: BufferUse::Read,
        pair: false,
        target: TargetUse::None,
        cancelled_by: None,
        refusals: &[Status::InvalidRequest],
        ends: &[],
    },
    OpcodeRow {
        opcode: Opcode::Put,
        ring: WorkRing::Send,
        kind: CompletionKind::Send,
        completes: Completes::Once,
        flags: 0,
        optional: SEND_FLAGS,
        capability: CAPABILITY_PUT,
        second_flag: FLAG_GATHER,
        inline_flag: FLAG_INLINE,
        is_second: false,
        min_free_flag: 0,
        buffer: BufferUse::Read,
        pair: true,
        target: TargetUse::None,
        cancelled_by: Some(Opcode::CancelSend),
        refusals: &[
            Status::InvalidRequest,
            Status::InvalidPair,
            Status::TooLong,
            Status::QueueFull,
            Status::LocalProtection,
        ],
        ends: &[
            Status::Success,
            Status::RemoteAccess,
            Status::Cancelled,
            Status::MemoryError,
            Status::LinkError,
            Status::PeerFailed,
            Status::PeerClosed,
            Status::Flushed,
        ],
    },
    OpcodeRow {
        opcode: Opcode::Get,
        ring: WorkRing::Send,
        kind: CompletionKind::Send,
        completes: Completes::Once,
        flags: 0,
        optional: &[OptionalFlag {
            flag: FLAG_ERRORS_ONLY,
            capability: CAPABILITY_ERRORS_ONLY,
        }],
        capability: CAPABILITY_GET,
        second_flag: 0,
        inline_flag: 0,
        is_second: false,
        min_free_flag: 0,
        buffer: BufferUse::Write,
        pair: true,
        target: TargetUse::None,
        cancelled_by: Some(Opcode::CancelSend),
        refusals: &[
            Status::InvalidRequest,
            Status::InvalidPair,
            Status::TooLong,
            Status::QueueFull,
            Status::LocalProtection,
        ],
        ends: &[
            Status::Success,
            Status::RemoteAccess,
            Status::AccessDenied,
            Status::Cancelled,
            Status::MemoryError,
            Status::LinkError,
            Status::PeerFailed,
            Status::PeerClosed,
            Status::Flushed,
        ],
    },
    OpcodeRow {
        opcode: Opcode::TaggedReceive,
        ring: WorkRing::List,
        kind: CompletionKind::Receive,
        completes: Completes::OnceOrMore,
        flags: FLAG_ANY_SOURCE | FLAG_RESUME | FLAG_MULTI | FLAG_NOTHING_KEPT,
        optional: &[],
        capability: 0,
        second_flag: 0,
        inline_flag: 0,
        is_second: false,
        min_free_flag: FLAG_MULTI,
        buffer: BufferUse::Write,
        pair: true,
        target: TargetUse::None,
        cancelled_by: Some(Opcode::Cancel),
        refusals: &[
            Status::InvalidRequest,
            Status::InvalidPair,
            Status::LocalProtection,
            Status::ListFull,
            Status::Behind,
            Status::Revoked,
        ],
        ends: &[
            Status::Success,
            Status::Truncated,
            Status::Cancelled,
            Status::AccessDenied,
            Status::MemoryError,
            Status::LinkError,
            Status::PeerFailed,
            Status::PeerClosed,
            Status::Flushed,
        ],
    },
    OpcodeRow {
        opcode: Opcode::Cancel,
        ring: WorkRing::List,
        kind: CompletionKind::Cancel,
        completes: Completes::IfRefused,
        flags: 0,
        optional: &[],
        capability: 0,
        second_flag: 0,
        inline_flag: 0,
        is_second: false,
        min_free_flag: 0,
        buffer: BufferUse::None,
        pair: false,
        target: TargetUse::Request,
        cancelled_by: None,
        refusals: &[Status::InvalidRequest, Status::TooLate],
        ends: &[],
    },
    OpcodeRow {
        opcode: Opcode::Probe,
        ring: WorkRing::List,
        kind: CompletionKind::Probe,
        completes: Completes::Once,
        flags: FLAG_ANY_SOURCE | FLAG_RESUME | FLAG_NOTHING_KEPT,
        optional: &[],
        capability: 0,
        second_flag: 0,
        inline_flag: 0,
        is_second: false,
        min_free_flag: 0,
        buffer: BufferUse::None,
        pair: true,
        target: TargetUse::None,
        cancelled_by: None,
        refusals: LOOK_REFUSALS,
        ends: LOOK_ENDS,
    },
    OpcodeRow {
        opcode: Opcode::Claim,
        ring: WorkRing::List,
        kind: CompletionKind::Claim,
        completes: Completes::Once,
        flags: FLAG_ANY_SOURCE | FLAG_RESUME | FLAG_NOTHING_KEPT,
        optional: &[OptionalFlag {
            flag: FLAG_PAST_RULES,
            capability: CAPABILITY_RULES,
        }],
        capability: 0,
        second_flag: 0,
        inline_flag: 0,
        is_second: false,
        min_free_flag: 0,
        buffer: BufferUse::None,
        pair: true,
        target: TargetUse::None,
        cancelled_by: None,
        refusals: LOOK_REFUSALS,
        ends: LOOK_ENDS,
    },
    OpcodeRow {
        opcode: Opcode::ReceiveClaimed,
        ring: WorkRing::List,
        kind: CompletionKind::Receive,
        completes: Completes::Once,
        flags: 0,
        optional: &[],
        capability: 0,
        second_flag: 0,
        inline_flag: 0,
        is_second: false,
        min_free_flag: 0,
        buffer: BufferUse::Write,
        pair: false,
        target: TargetUse::Claim,
        cancelled_by: None,
        refusals: &[
            Status::InvalidRequest,
            Status::InvalidClaim,
            Status::LocalProtection,
        ],
        ends: &[Status::Success, Status::Truncated, Status::MemoryError],
    },
    OpcodeRow {
        opcode: Opcode::Discard,
        ring: WorkRing::List,
        kind: CompletionKind::Discard,
        completes: Completes::Once,
        flags: 0,
        optional: &[],
        capability: 0,
        second_flag: 0,
        inline_flag: 0,
        is_second: false,
        min_free_flag: 0,
        buffer: BufferUse::None,
        pair: false,
        target: TargetUse::Claim,
        cancelled_by: None,
        refusals: &[Status::InvalidRequest, Status::InvalidClaim],
        ends: &[Status::Success],
    },
];

/// Flags that a send may have on some cards, tagged or a put. A get has no payload to carry or to gather.
const SEND_FLAGS: &[OptionalFlag] = &[
    OptionalFlag {
        flag: FLAG_ERRORS_ONLY,
        capability: CAPABILITY_ERRORS_ONLY,
    },
    OptionalFlag {
        flag: FLAG_GATHER,
        capability: CAPABILITY_GATHER,
    },
    OptionalFlag {
        flag: FLAG_INLINE,
        capability: CAPABILITY_INLINE,
    },
];

/// What refuses a probe and a claim.
const LOOK_REFUSALS: &[Status] = &[
    Status::InvalidRequest,
    Status::InvalidPair,
    Status::Behind,
    Status::Revoked,
];

/// What a probe and a claim end with: a message, none, or as a pair from which none will come any more.
const LOOK_ENDS: &[Status] = &[
    Status::Success,
    Status::NoMessage,
    Status::LocalProtection,
    Status::MemoryError,
    Status::LinkError,
    Status::PeerFailed,
    Status::PeerClosed,
    Status::Flushed,
];

impl Opcode {
    /// What holds for all requests of this opcode.
    pub const fn row(self) -> &'static OpcodeRow {
        let mut at = 0;
        while OPCODES[at].opcode as u8 != self as u8 {
            at += 1;
        }
        &OPCODES[at]
    }
}

impl OpcodeRow {
    /// The row of an opcode's code, if it is one of this ring.
    pub fn find(ring: WorkRing, code: u8) -> Option<&'static Self> {
        let row = Opcode::from_code(code)?.row();
        (row.ring == ring).then_some(row)
    }

    /// Whether a card with these capabilities knows the opcode.
    pub const fn is_known(&self, capabilities: u32) -> bool {
        self.capability & !capabilities == 0
    }

    /// Flags that the request may have on a card with these capabilities.
    pub const fn flags_with(&self, capabilities: u32) -> u8 {
        let mut flags = self.flags;
        let mut at = 0;
        while at < self.optional.len() {
            if self.optional[at].capability & !capabilities == 0 {
                flags |= self.optional[at].flag;
            }
            at += 1;
        }
        flags
    }

    /// Capabilities that a card needs for a request with these flags.
    pub const fn needs(&self, flags: u8) -> u32 {
        let mut capabilities = self.capability;
        let mut at = 0;
        while at < self.optional.len() {
            if self.optional[at].flag & flags != 0 {
                capabilities |= self.optional[at].capability;
            }
            at += 1;
        }
        capabilities
    }

    /// Whether a completion of such a request may have this status.
    pub fn may_end(&self, status: Status) -> bool {
        self.refusals.contains(&status) || self.ends.contains(&status)
    }
}

/// Decodes an entry of a send ring, as a card with these capabilities does.
///
/// # Errors
/// The kind of the completion with `InvalidRequest`, if it is malformed: an opcode of the other ring or of none, a flag that the opcode
/// doesn't have, a reserved bit, or an inline payload that is too long or one of segments.
pub fn decode_send(
    request: &SendRequest,
    capabilities: u32,
) -> Result<&'static OpcodeRow, CompletionKind> {
    let SendRequest { opcode, flags, .. } = *request;
    let beyond = Beyond {
        reserved: request.reserved0 != 0,
        payload: request.inline1 != 0 || request.inline2 != 0,
        long: request.length > INLINE_BYTES as u64,
        min_free: false,
    };
    decode(WorkRing::Send, (opcode, flags), &beyond, capabilities)
}

/// Decodes an entry of a list ring, as a card with these capabilities does.
///
/// # Errors
/// As [`decode_send`].
pub fn decode_list(
    request: &ListRequest,
    capabilities: u32,
) -> Result<&'static OpcodeRow, CompletionKind> {
    let ListRequest { opcode, flags, .. } = *request;
    let beyond = Beyond {
        reserved: request.reserved0 != 0 || request.reserved2 != 0,
        min_free: request.min_free != 0,
        ..Beyond::default()
    };
    decode(WorkRing::List, (opcode, flags), &beyond, capabilities)
}

/// Whether the second entry of the request `first` is well formed: it has the opcode, the same handle, and no reserved bit.
pub fn is_second_of(first: &SendRequest, second: &SendSegments) -> bool {
    let reserved = u64::from(second.reserved0)
        | u64::from(second.reserved1)
        | u64::from(second.reserved2)
        | u64::from(second.reserved3);
    second.opcode == Opcode::Segments.code() && second.request == first.request && reserved == 0
}

/// What an entry has beside its opcode and its flags.
#[derive(Clone, Copy, Default)]
struct Beyond {
    /// A bit that is reserved whatever the flags are.
    reserved: bool,
    /// A bit that is reserved unless the payload is in the request.
    payload: bool,
    /// More bytes than an inline payload may have.
    long: bool,
    /// `min_free` is other than zero.
    min_free: bool,
}

fn decode(
    ring: WorkRing,
    (opcode, flags): (u8, u8),
    beyond: &Beyond,
    capabilities: u32,
) -> Result<&'static OpcodeRow, CompletionKind> {
    let row = OpcodeRow::find(ring, opcode).filter(|row| row.is_known(capabilities));
    let row = row.ok_or(CompletionKind::Unknown)?;
    let has = |flag: u8| flags & flag != 0;
    let unknown = has(!row.flags_with(capabilities));
    let wrong_payload = match has(row.inline_flag) {
        true => beyond.long || has(row.second_flag),
        false => beyond.payload,
    };
    let wrong_min_free = beyond.min_free && !has(row.min_free_flag);
    if row.is_second || unknown || beyond.reserved || wrong_payload || wrong_min_free {
        return Err(row.kind);
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opcode_has_its_row_and_every_row_its_opcode() {
        assert_eq!(OPCODES.len(), Opcode::ALL.len());
        for (row, &opcode) in OPCODES.iter().zip(Opcode::ALL) {
            assert_eq!(row.opcode, opcode);
            assert_eq!(opcode.row(), row);
            assert_eq!(OpcodeRow::find(row.ring, opcode.code()), Some(row));
        }
        assert_eq!(OpcodeRow::find(WorkRing::List, 0x01), None);
    }

    #[test]
    fn a_status_is_a_refusal_or_an_end_and_every_status_is_somebodys() {
        for row in OPCODES {
            for status in row.ends {
                assert!(!row.refusals.contains(status), "{row:?} {status}");
            }
            assert!(row.may_end(Status::InvalidRequest), "{row:?}");
            let cancels = row.cancelled_by.map(Opcode::row);
            assert_eq!(cancels.is_some(), row.may_end(Status::Cancelled));
            assert!(cancels.is_none_or(|by| by.ring == row.ring));
        }
        for &status in Status::ALL {
            // The card completes nothing with it: the library tells it in place of `Cancelled`.
            let of_library = status == Status::TimedOut;
            let of_card = OPCODES.iter().any(|row| row.may_end(status));
            assert!(of_card != of_library, "{status}");
        }
    }

    /// Sets of the capabilities that opcodes and flags need: none, each alone, and two.
    const ALL_SETS: [u32; 9] = [
        0,
        CAPABILITY_RULES,
        CAPABILITY_ERRORS_ONLY,
        CAPABILITY_GATHER,
        CAPABILITY_INLINE,
        CAPABILITY_GATHER | CAPABILITY_INLINE,
        CAPABILITY_PUT,
        CAPABILITY_PUT | CAPABILITY_GATHER | CAPABILITY_INLINE,
        CAPABILITY_GET | CAPABILITY_ERRORS_ONLY,
    ];

    #[test]
    fn a_flag_is_of_every_card_or_of_one_capability() {
        for row in OPCODES {
            for (at, optional) in row.optional.iter().enumerate() {
                let before = &row.optional[..at];
                assert!(optional.flag.is_power_of_two() && optional.flag & row.flags == 0);
                assert!(before.iter().all(|other| other.flag != optional.flag));
                assert_eq!(
                    row.needs(optional.flag),
                    row.capability | optional.capability
                );
                assert_eq!(
                    row.flags_with(optional.capability) & optional.flag,
                    optional.flag
                );
            }
            assert_eq!(row.flags_with(0), row.flags);
        }
    }

    #[test]
    fn a_second_entry_is_of_its_request() {
        let first = SendRequest {
            request: 7,
            ..SendRequest::default()
        };
        let second = SendSegments {
            opcode: Opcode::Segments.code(),
            request: 7,
            ..SendSegments::default()
        };
        assert!(is_second_of(&first, &second));
        let opcode = Opcode::TaggedSend.code();
        for broken in [
            SendSegments { opcode, ..second },
            SendSegments {
                request: 8,
                ..second
            },
            SendSegments {
                reserved0: 1,
                ..second
            },
            SendSegments {
                reserved3: 1,
                ..second
            },
        ] {
            assert!(!is_second_of(&first, &broken), "{broken:?}");
        }
    }

    #[test]
    fn only_what_the_row_names_is_well_formed() {
        for (row, has) in OPCODES
            .iter()
            .flat_map(|row| ALL_SETS.map(|has| (row, has)))
        {
            for flags in 0..=u8::MAX {
                for (reserved, min_free) in [(0, 0), (0, 5), (1, 0)] {
                    let send = SendRequest {
                        opcode: row.opcode.code(),
                        flags,
                        reserved0: reserved as u16,
                        ..SendRequest::default()
                    };
                    let list = ListRequest {
                        opcode: row.opcode.code(),
                        flags,
                        reserved2: reserved,
                        min_free,
                        ..ListRequest::default()
                    };
                    let fits = !row.is_second && flags & !row.flags_with(has) == 0 && reserved == 0;
                    let known = row.is_known(has);
                    let kind = if known {
                        row.kind
                    } else {
                        CompletionKind::Unknown
                    };
                    let multi = row.opcode == Opcode::TaggedReceive && flags & FLAG_MULTI != 0;
                    let (as_send, as_list) = match row.ring {
                        WorkRing::Send => {
                            let both = flags & FLAG_INLINE != 0 && flags & FLAG_GATHER != 0;
                            let wanted = (fits && known && !both).then_some(row).ok_or(kind);
                            (wanted, Err(CompletionKind::Unknown))
                        }
                        WorkRing::List => {
                            let fits = fits && (min_free == 0 || multi);
                            let wanted = (fits && known).then_some(row).ok_or(kind);
                            (Err(CompletionKind::Unknown), wanted)
                        }
                    };
                    assert_eq!(decode_send(&send, has), as_send);
                    assert_eq!(decode_list(&list, has), as_list);
                }
            }
        }
    }

    #[test]
    fn an_inline_payload_is_short_and_only_then_in_the_request() {
        let known = CAPABILITY_INLINE;
        let send = SendRequest {
            opcode: Opcode::TaggedSend.code(),
            ..SendRequest::default()
        };
        let is_sound = |request: &SendRequest| decode_send(request, known).is_ok();
        let inline = send.with_inline(&[0xff; INLINE_BYTES]);
        assert!(is_sound(&inline));
        assert_eq!(decode_send(&inline, 0), Err(CompletionKind::Send));
        let long = SendRequest {
            length: INLINE_BYTES as u64 + 1,
            ..inline
        };
        assert!(!is_sound(&long));
        for flags in [0, FLAG_READY] {
            assert!(!is_sound(&SendRequest { flags, ..inline }), "{flags}");
        }
        let longer_than_inline = SendRequest {
            length: 1000,
            ..send
        };
        assert!(is_sound(&longer_than_inline));
        let opcode = Opcode::CancelSend.code();
        assert!(!is_sound(&SendRequest { opcode, ..inline }));
    }
}
