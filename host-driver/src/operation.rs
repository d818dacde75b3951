//! The operations: a file for each, with its verbs and with what is particular to its requests.
//!
//! ```text
//!  abi::opcode, a row ───► Posting: ring, kind of completion, what cancels it, … ──► core, which does it for all
//!  operation/NAME.rs ─┬──► Posted: what the library keeps of a request, and what it says of it (Operation) ─┘
//!                     └──► verbs: what the program gives, and the entry of the ring
//!
//!  a verb    admit ► write entry ► doorbell
//!  of a list admit ► write entry ► admit ► write entry ► … ► doorbell     stops at the first that isn't admitted
//! ```
//!
//! An opcode is named in the file of its operation and nowhere else in the library. A new one is such a file, and a line in `operations!` below; without
//! them the library doesn't compile.

mod cancel;
mod claim;
mod discard;
mod get;
mod matching;
mod outgoing;
mod probe;
mod put;
mod receive;
mod receive_claimed;
mod send;

pub use self::get::Get;
pub use self::matching::{Source, TaggedReceive};
pub use self::outgoing::{Outgoing, SendFlags, SendWr};
pub use self::put::Put;
pub use self::receive::RecvWr;
pub use self::send::TaggedSend;

use crate::completion::{WcKind, WorkCompletion};
use crate::core::Own;
use crate::endpoint::Endpoint;
use crate::error::{ListRefused, PostError};
use crate::pair::Pair;
use crate::query::Capabilities;
use crate::table::Request;
use abi::completion::{Completion, CompletionKind, LONG_KINDS};
use abi::opcode::{OPCODES, OpcodeRow, TargetUse, WorkRing};
use abi::request::Opcode;
use abi::status::Status;

/// What is particular to a request that is outstanding. Everything else follows from the row of its opcode.
pub(crate) trait Operation {
    /// The opcode of its entry.
    fn opcode(&self) -> Opcode;

    /// The pair that it names: itself, or by the claimed message that it uses. When the pair is gone, and the request is refused for that, it is
    /// told as `Flushed`.
    fn pair(&self) -> Option<Pair> {
        None
    }

    /// Whether it waits for a message, whoever sends it.
    fn awaits_anyone(&self) -> bool {
        false
    }

    /// Whether it is of messages: one to be sent needs a credit, and rules, revocations and drains concern it.
    fn is_message(&self) -> bool {
        true
    }

    /// What the program is told that it was, if the kind of the card's completion doesn't say it.
    fn kind(&self) -> Option<WcKind> {
        None
    }

    /// The request that it cancels.
    fn target(&self) -> Option<Request> {
        None
    }

    /// Whether it is a sweep's, and not the program's.
    fn is_sweeps(&self) -> bool {
        false
    }

    /// Whether it looks for a message that a sweep discards.
    fn is_sweeps_look(&self) -> bool {
        false
    }

    /// Whether the program isn't told that it has ended so.
    fn is_silent(&self, _status: Status) -> bool {
        false
    }

    /// It has completed: what the program is told, and what the request has used, beyond what follows from its row.
    fn complete(&self, _own: &mut Own<'_>, _entry: &Completion, _told: &mut WorkCompletion) {}
}

macro_rules! operations {
    ($($name:ident: $file:ident,)*) => {
        /// What the library keeps of a request beside its buffers.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Work {
            $($name($file::Posted),)*
        }

        impl Work {
            /// What is particular to it.
            pub(crate) const fn operation(&self) -> &dyn Operation {
                match self {
                    $(Self::$name(posted) => posted,)*
                }
            }
        }

        /// The opcodes of each operation.
        const OPERATIONS: &[&[Opcode]] = &[$($file::OPCODES,)*];
    };
}

operations! {
    Send: send,
    Put: put,
    Get: get,
    Receive: receive,
    Cancel: cancel,
    Probe: probe,
    Claim: claim,
    ReceiveClaimed: receive_claimed,
    Discard: discard,
}

/// How many operations have the opcode.
const fn operations_of(opcode: Opcode) -> usize {
    let (mut found, mut at) = (0, 0);
    while at < OPERATIONS.len() {
        let mut of = 0;
        while of < OPERATIONS[at].len() {
            if OPERATIONS[at][of] as u8 == opcode as u8 {
                found += 1;
            }
            of += 1;
        }
        at += 1;
    }
    found
}

const _: () = {
    let mut at = 0;
    while at < OPCODES.len() {
        assert!(
            operations_of(OPCODES[at].opcode) == 1,
            "each opcode of abi::opcode is of one operation: give it its file in host-driver/src/operation/, and a line in operations!"
        );
        at += 1;
    }
};

impl Work {
    /// How such a request is posted.
    pub(crate) fn posting(&self) -> Posting {
        Posting::of(self.operation().opcode().row())
    }

    /// Whether it is a sweep's.
    pub(crate) fn is_sweeps(&self) -> bool {
        self.operation().is_sweeps()
    }

    /// What the program is told that it was.
    pub(crate) fn kind(&self) -> WcKind {
        let kind = self.operation().kind();
        kind.or(WcKind::of(self.posting().kind))
            .expect("requests of a known opcode have a kind")
    }

    /// The pair in whose queue it waits with the card, and in whose window it counts.
    pub(crate) fn queued_on(&self) -> Option<Pair> {
        let pair = self.operation().pair();
        pair.filter(|_| self.posting().is_queued)
    }

    /// Some request, for tests that only keep it.
    #[cfg(test)]
    pub(crate) const fn any() -> Self {
        Self::Probe(probe::Posted { source: None })
    }
}

/// What the library does by the row of a request's opcode in [`abi::opcode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posting {
    /// Ring that its entry goes to.
    pub(crate) ring: WorkRing,
    /// Kind of its completion.
    pub(crate) kind: CompletionKind,
    /// Opcode that cancels it.
    pub(crate) cancelled_by: Option<Opcode>,
    /// It waits with the card in the queue of its pair, which the library doesn't overfill.
    pub(crate) is_queued: bool,
    /// The card may refuse it for a receive in front of it that found no room: then the library keeps it, and posts it again.
    pub(crate) is_kept: bool,
    /// It uses a claimed message.
    pub(crate) uses_claim: bool,
    /// Its success speaks of a message that has come, and so of the pair that it came by.
    pub(crate) is_of_message: bool,
    /// Flag with which it takes a second entry.
    pub(crate) second_flag: u8,
}

impl Posting {
    fn of(row: &OpcodeRow) -> Self {
        Self {
            ring: row.ring,
            kind: row.kind,
            cancelled_by: row.cancelled_by,
            // What can be cancelled waits, and on this ring in front of the wire.
            is_queued: row.ring == WorkRing::Send && row.cancelled_by.is_some(),
            is_kept: row.refusals.contains(&Status::Behind),
            uses_claim: row.target == TargetUse::Claim,
            is_of_message: LONG_KINDS.contains(&row.kind),
            second_flag: row.second_flag,
        }
    }
}

impl Endpoint {
    /// Whether the card knows a request of this opcode with these flags.
    fn supports(&self, opcode: Opcode, flags: u8) -> Result<(), PostError> {
        let row = opcode.row();
        let needed = Capabilities::from_bits_retain(row.needs(flags));
        let has = self.device().capabilities().contains(needed)
            || needed == Capabilities::GET && is_broken!(PretendsGets);
        let known = flags & !row.flags_with(u32::MAX) == 0;
        (has && known).then_some(()).ok_or(PostError::Unsupported)
    }
}

/// The end of a list of which so many were posted: all, or those in front of the one that was refused.
fn refused_list<W, I>(
    refused: Option<(PostError, W)>,
    posted: usize,
    rest: I,
) -> Result<(), ListRefused<W, I>> {
    refused.map_or(Ok(()), |(error, request)| {
        Err(ListRefused {
            posted,
            error,
            request,
            rest,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of a row.
    type Change = fn(&mut OpcodeRow);

    #[test]
    fn a_changed_row_changes_how_the_library_posts() {
        let work = Work::Receive(receive::Posted { source: None });
        let row = *work.operation().opcode().row();
        let posting = Posting::of(&row);
        assert_eq!(work.posting(), posting);
        let changes: [Change; 6] = [
            |row| row.ring = WorkRing::Send,
            |row| row.kind = CompletionKind::Probe,
            |row| row.cancelled_by = None,
            |row| row.refusals = &[Status::ListFull],
            |row| row.target = TargetUse::Claim,
            |row| row.second_flag = 1,
        ];
        for change in changes {
            let mut changed = row;
            change(&mut changed);
            assert_ne!(Posting::of(&changed), posting);
        }
    }
}
