//! One row for each opcode: what the request is, what it may carry, and what may become of it.
//!
//! ```text
//!                    ┌─► decoder of the gates (constants of its comparators)
//!  OPCODES, a row ───┼─► decoder of the model, `decode_send` and `decode_list`
//!  for each opcode   ├─► checks of tests: no completion has a status that its row doesn't name
//!                    └─► the book's table of opcodes
//! ```
//!
//! A new opcode is a row here, a room of gates, one of the model, and a file of the library.

use crate::completion::CompletionKind;
use crate::request::{
    FLAG_ANY_SOURCE, FLAG_MULTI, FLAG_NOTHING_KEPT, FLAG_READY, FLAG_RESUME, ListRequest, Opcode,
    SendRequest,
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
    /// Flags that it may have.
    pub flags: u8,
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
        min_free_flag: 0,
        buffer: BufferUse::None,
        pair: true,
        target: TargetUse::Request,
        cancelled_by: None,
        refusals: &[Status::InvalidRequest, Status::TooLate],
        ends: &[],
    },
    OpcodeRow {
        opcode: Opcode::TaggedReceive,
        ring: WorkRing::List,
        kind: CompletionKind::Receive,
        completes: Completes::OnceOrMore,
        flags: FLAG_ANY_SOURCE | FLAG_RESUME | FLAG_MULTI | FLAG_NOTHING_KEPT,
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
        ],
        ends: &[
            Status::Success,
            Status::Truncated,
            Status::Cancelled,
            Status::AccessDenied,
            Status::MemoryError,
            Status::LinkError,
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
        min_free_flag: 0,
        buffer: BufferUse::None,
        pair: true,
        target: TargetUse::None,
        cancelled_by: None,
        refusals: &[Status::InvalidRequest, Status::InvalidPair, Status::Behind],
        ends: LOOK_ENDS,
    },
    OpcodeRow {
        opcode: Opcode::Claim,
        ring: WorkRing::List,
        kind: CompletionKind::Claim,
        completes: Completes::Once,
        flags: FLAG_ANY_SOURCE | FLAG_RESUME | FLAG_NOTHING_KEPT,
        min_free_flag: 0,
        buffer: BufferUse::None,
        pair: true,
        target: TargetUse::None,
        cancelled_by: None,
        refusals: &[Status::InvalidRequest, Status::InvalidPair, Status::Behind],
        ends: LOOK_ENDS,
    },
    OpcodeRow {
        opcode: Opcode::ReceiveClaimed,
        ring: WorkRing::List,
        kind: CompletionKind::Receive,
        completes: Completes::Once,
        flags: 0,
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
        min_free_flag: 0,
        buffer: BufferUse::None,
        pair: false,
        target: TargetUse::Claim,
        cancelled_by: None,
        refusals: &[Status::InvalidRequest, Status::InvalidClaim],
        ends: &[Status::Success],
    },
];

/// What a probe and a claim end with: a message, none, or as a pair from which none will come any more.
const LOOK_ENDS: &[Status] = &[
    Status::Success,
    Status::NoMessage,
    Status::MemoryError,
    Status::LinkError,
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

    /// Whether a completion of such a request may have this status.
    pub fn may_end(&self, status: Status) -> bool {
        self.refusals.contains(&status) || self.ends.contains(&status)
    }
}

/// Decodes an entry of a send ring.
///
/// # Errors
/// The kind of the completion with `InvalidRequest`, if it is malformed: an opcode of the other ring or of none, a flag that the opcode
/// doesn't have, or a reserved bit.
pub fn decode_send(request: &SendRequest) -> Result<&'static OpcodeRow, CompletionKind> {
    let reserved = u64::from(request.reserved0) | u64::from(request.reserved1) | request.reserved2;
    decode(WorkRing::Send, request.opcode, request.flags, reserved, 0)
}

/// Decodes an entry of a list ring.
///
/// # Errors
/// As [`decode_send`].
pub fn decode_list(request: &ListRequest) -> Result<&'static OpcodeRow, CompletionKind> {
    let reserved = u64::from(request.reserved0) | request.reserved2;
    let ListRequest {
        opcode,
        flags,
        min_free,
        ..
    } = *request;
    decode(WorkRing::List, opcode, flags, reserved, min_free)
}

fn decode(
    ring: WorkRing,
    opcode: u8,
    flags: u8,
    reserved: u64,
    min_free: u32,
) -> Result<&'static OpcodeRow, CompletionKind> {
    let row = OpcodeRow::find(ring, opcode).ok_or(CompletionKind::Unknown)?;
    let min_free_counts = flags & row.min_free_flag != 0;
    if flags & !row.flags != 0 || reserved != 0 || (min_free != 0 && !min_free_counts) {
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
            assert!(OPCODES.iter().any(|row| row.may_end(status)), "{status}");
        }
    }

    #[test]
    fn only_what_the_row_names_is_well_formed() {
        for row in OPCODES {
            for flags in 0..=u8::MAX {
                for (reserved, min_free) in [(0, 0), (0, 5), (1, 0)] {
                    let send = SendRequest {
                        opcode: row.opcode.code(),
                        flags,
                        reserved2: reserved,
                        ..SendRequest::default()
                    };
                    let list = ListRequest {
                        opcode: row.opcode.code(),
                        flags,
                        reserved2: reserved,
                        min_free,
                        ..ListRequest::default()
                    };
                    let fits = flags & !row.flags == 0 && reserved == 0;
                    let multi = row.opcode == Opcode::TaggedReceive && flags & FLAG_MULTI != 0;
                    let (as_send, as_list) = match row.ring {
                        WorkRing::Send => {
                            let wanted = fits.then_some(row).ok_or(row.kind);
                            (wanted, Err(CompletionKind::Unknown))
                        }
                        WorkRing::List => {
                            let fits = fits && (min_free == 0 || multi);
                            let wanted = fits.then_some(row).ok_or(row.kind);
                            (Err(CompletionKind::Unknown), wanted)
                        }
                    };
                    assert_eq!(decode_send(&send), as_send);
                    assert_eq!(decode_list(&list), as_list);
                }
            }
        }
    }
}
