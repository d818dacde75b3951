//! What the codes that a host meets come from, and what helps: for the book and for `posthorn explain`.

use core::fmt;

use crate::event::Cause;
use crate::mailbox::{ConnectReason, FailureCause, PairState, PeerState};
use crate::status::{Code, MailboxStatus, Status};
use crate::wire::FrameType;

/// Where a code comes from and what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What causes it.
    pub cause: &'static str,
    /// What helps.
    pub help: &'static str,
}

/// Documentation without its links: what they point to stays, as code.
#[derive(Clone, Copy, Debug)]
pub struct Plain(
    /// The documentation.
    pub &'static str,
);

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.trim();
        while let Some((before, link)) = rest.split_once("[`") {
            let Some((name, after)) = link.split_once("`]") else {
                break;
            };
            write!(f, "{before}`{name}`")?;
            let target = after
                .strip_prefix('(')
                .and_then(|target| target.split_once(')'));
            rest = target.map_or(after, |(_, after)| after);
        }
        f.write_str(rest)
    }
}

/// Codes that are explained.
#[derive(Clone, Copy, Debug)]
pub struct CodeSet {
    /// Name of the set.
    pub name: &'static str,
    /// What the codes are, as documented.
    pub about: &'static str,
    /// Each code, in order.
    pub codes: &'static [Code],
    /// Explanation of a number of the set.
    pub explanation: fn(u8) -> Option<Explanation>,
}

macro_rules! explanations {
    ($($set:ident { $($code:ident: $cause:literal, $help:literal;)* })*) => {
        $(impl $set {
            /// What causes it and what helps.
            pub const fn explanation(self) -> Explanation {
                match self {$(
                    Self::$code => Explanation { cause: $cause, help: $help },
                )*}
            }
        })*

        /// Every set that is explained.
        pub const SETS: &[CodeSet] = &[$(CodeSet {
            name: stringify!($set),
            about: $set::ABOUT,
            codes: $set::CODES,
            explanation: |number| $set::from_code(number).map($set::explanation),
        }),*];
    };
}

explanations! {
    Status {
        Success:
            "A send: the payload is safe in the peer's buffer or slot, and that was acknowledged. A receive: its bytes are in the buffer. A probe or \
             a claim: there is a message.",
            "Nothing to do.";
        Truncated:
            "The peer sent more bytes than the receive's `length`.",
            "`length` of the completion is what was sent. Post larger buffers, or look with a probe or a claim first.";
        Cancelled:
            "A cancel named this request while it waited.",
            "Nothing to do: the buffer is the host's again. The cancel itself gets no completion.";
        TooLate:
            "The target of the cancel had matched or had had its turn, has completed, was never posted, or is another pair's.",
            "Wait for the target's own completion. It comes, or has come, as if nobody had cancelled.";
        NoMessage:
            "No unexpected message matched at the moment of the probe or the claim.",
            "Post a receive, or look again later.";
        TooLong:
            "`length` of the send is more than `message_max` of `Identify`.",
            "Send it in parts.";
        InvalidRequest:
            "The opcode isn't one of this ring, a flag isn't one of this opcode, a reserved field isn't zero, or `min_free` isn't zero without \
             `FLAG_MULTI`.",
            "Compare the ring entry with its layout. `kind` is `Unknown` if the ring has no such opcode. A driver that leaves old bytes in its ring \
             entries meets this.";
        InvalidPair:
            "The pair that the request names isn't connected, or is another endpoint's.",
            "Connect the pair first, and name it by its place (the low 16 bits of its id). A receive from whoever sends takes `FLAG_ANY_SOURCE`.";
        LocalProtection:
            "The key names no region of the endpoint's domain, or one that doesn't cover the whole buffer, or lacks `RIGHT_LOCAL_READ` for a send or \
             `RIGHT_LOCAL_WRITE` for a receive. Or a send of the pair had to be sent again and couldn't be read any more, which fails the pair.",
            "Register the memory in the domain that the endpoint was opened with. A region that has been deregistered has lost its key for good.";
        MemoryError:
            "The bus answered a read or a write of the payload with an error: the address isn't mapped for the card. Or a slot of the pair couldn't \
             be written, which fails the pair; a receive that met a message behind that one ends so too.",
            "Keep registered memory, and the slots of a pair, mapped until they are deregistered or the pair is closed. With the event `SlotError`: \
             close the pair and connect it anew.";
        LinkError:
            "The peer failed the pair, or sent numbers that can't be true.",
            "The pair stays failed. Close it and connect it anew; what was sent and not acknowledged may have arrived or not.";
        Flushed:
            "`ClosePair` or `CloseEndpoint` found the request outstanding.",
            "Nothing to do: the buffer is the host's again.";
        ListFull:
            "The card had no room for one more posted receive when it was posted, and now there may be.",
            "Post it again with `FLAG_RESUME`, and then, in order, those that completed as `Behind`.";
        QueueFull:
            "The card holds as many sends of the pair as it has descriptors for: they wait, or aren't acknowledged.",
            "Post it again when another send of the pair has completed. Count a pair's sends before posting, and it doesn't happen.";
        AccessDenied:
            "The region of the receive, or of the get, was deregistered, or lost the right to be written, between the posting and the write of its message or answer.",
            "Deregister a region only when no request uses it. The message is lost; the completion names its source.";
        Behind:
            "An earlier receive of the endpoint waits for room, or has just been refused for want of it; `handle` names it.",
            "Keep the request. When the one that `handle` names completes as `ListFull`, post that with `FLAG_RESUME`, and then this.";
        InvalidClaim:
            "The handle is of no claim of this endpoint, of one that has been received or discarded, or of a pair that was closed since.",
            "Use the `handle` of a claim's completion once, and before its pair is closed.";
        NotReady:
            "A send with `FLAG_READY` arrived and found no receive.",
            "Send it again without the flag, or let the receiver say first that it has posted.";
        PeerClosed:
            "The pair was ended with `Disconnect`, by the peer or by this side, and this request wasn't done by then.",
            "Close the pair. Nothing is wrong: what the peer wanted to say has been said.";
        PeerFailed:
            "The gates sent to the peer as often as the pair's retry limit says, or asked it for credit, and heard nothing; or it showed no sign of life for the time \
             that `WatchPeers` gave it; or the host, or another peer, said that it has failed; or it closed its side. `QueryPair` says which.",
            "The pair stays failed. Close it; what was sent and not acknowledged may have arrived or not. Connect it anew when the peer is back: it \
             is another incarnation then.";
        Revoked:
            "A rule of the endpoint (`SetRule`) has the request's context, match bits and source: the program, or its peer, has given up what the request \
             is for. A send never completes so by the card: the library refuses it, or has cancelled it.",
            "Nothing to do: the buffer is the host's again. Clear the rule before the context is used anew.";
        TimedOut:
            "The program has given the request a time-out, and it had neither matched nor left when that was over: the library has cancelled it.",
            "Nothing to do: the buffer is the host's again. Post it anew, if it is still wanted.";
        RemoteAccess:
            "The remote key names no grant of the peer's card, one of another peer, one that was revoked or has ended, one without the right that is needed, or one \
             that doesn't cover all of the bytes: then nothing was written or read. Or the peer's memory answered with an error: of a put a part may be written then.",
            "Ask the peer for a key, and name bytes inside of what it has granted. The peer's card counts what it refuses. The pair goes on.";
    }
    MailboxStatus {
        Ok:
            "The command was carried out.",
            "Nothing to do.";
        UnknownCommand:
            "Word 0 of the command area is no command of this firmware.",
            "Compare `abi_version` of `Identify` with the version that the driver was written for.";
        InvalidArgument:
            "An argument is out of its range, misaligned, or its range of addresses wraps.",
            "Result word 1 is the argument's number, counted from 0 in the order of the command's table; a 64-bit argument is one.";
        NoResource:
            "Every endpoint, domain, pair or region of the card is open, or every rule set.",
            "Close one. `Identify` says how many there are.";
        NoEnvelopes:
            "The envelopes of all open pairs and this one are more than the card's list of unexpected messages holds.",
            "Ask for as many as result word 1 says, or close a pair.";
        NotFound:
            "The id or key names nothing that is open: it was closed, or never opened, or its place has another owner now.",
            "Use the id that the opening command answered, all 32 bits of it.";
        Busy:
            "A domain has endpoints or regions, a pair is connected already, an endpoint is being closed, or as many connections and disconnects are \
             under way as the firmware can have.",
            "Close what uses it first, `CloseEndpoint` again, or try again when one of those under way has ended.";
        HardwareTimeout:
            "The gates didn't carry out a control request within `CONTROL_TIMEOUT`: most often because the bus answers an access of the card too \
             late or never.",
            "See to it that the bus answers every access. Close the object again; if it still doesn't end, reset the card.";
        Restarted:
            "The firmware was started anew while the command was in the mailbox.",
            "Open everything anew: endpoints, pairs and regions of before are gone.";
        Unsupported:
            "The command asks for what only some cards have, and this one hasn't: an endpoint was to complete on another's completion queue.",
            "Look at `capabilities` of `Identify` first, and do without: here, give each endpoint a completion queue of its own.";
        NotConnected:
            "The pair was opened and never connected, or it has failed or ended.",
            "Read its state by `QueryPair`.";
        NoEntropy:
            "The random words of the card repeat more often than chance allows: its source of entropy is broken, or was never there.",
            "`ReadAudit` tells the test that it failed. Keys can't be trusted: don't grant, and have the card looked at. Everything else goes on.";
    }
    Cause {
        RingOverrun:
            "A tail doorbell was more than the ring's size ahead of what the card has fetched, or more than 16 bits wide.",
            "Write the tail modulo 65536, and let no more than the ring's size be unfetched. The next good doorbell goes on.";
        RingError:
            "The bus answered the fetch of a ring entry with an error.",
            "The ring has stopped for good: close the endpoint. Keep the rings mapped while it is open.";
        LinkError:
            "See the completion status that is its `info`; the pair's operations have it.",
            "Close the pair and connect it anew.";
        PeerFailed:
            "See the completion status `PeerFailed`.",
            "Take the process for failed: `ReadFailed` names all of them. A receive from any source that waits for it alone is to be cancelled.";
        PeerFailedPending:
            "See the event `PeerFailed`, which came before it or was lost. The library tells it once for each such peer, as soon as a receive from any source is posted.",
            "Wait on, if another peer may send what the receive waits for, or cancel it. `acknowledge_failures` says that the program knows.";
        Revoked:
            "The peer's host gave `TellRevoked`. It is told once, however many peers say the same, until it is forgotten.",
            "`ReadRevoked` says which messages of which group, and whether the gates refuse them already. The program ends what is pending of them, as `revoke` does, and \
             takes the rule over by it.";
        Signal:
            "The peer's host gave `Signal`.",
            "Whatever the two processes have agreed that the word means.";
        Drain:
            "A member of a group drains a context, or this endpoint's own drain has come on: the state in `info` says which.",
            "`Asked`: the program drains that context of the group, too. Else `ReadDrain`.";
        UnexpectedOverflow:
            "The peer sent a message that it had no credit for.",
            "The peer's card breaks the protocol, or the pair's credits were given to the two ends differently: `remote_credits` must be what the \
             other end's `OpenPair` answered.";
        CompletionError:
            "The bus answered the write of a completion with an error. That entry will never be valid.",
            "Close the endpoint: its queue can't go on. Keep the queue mapped while it is open.";
        IndexError:
            "A head doorbell of a completion or an event queue named an entry that the card hasn't written, or was more than 16 bits wide.",
            "Write the number of entries consumed, modulo 65536.";
        SlotError:
            "The bus answered the write of an unexpected message into its slot with an error.",
            "The pair has failed: close it. Keep the slots mapped until the pair is closed.";
        PairConnected:
            "The handshake of a `Connect` or an `Accept` has ended well.",
            "The pair may be sent on.";
        ConnectFailed:
            "The handshake of a `Connect` or an `Accept` came to nothing; `info` has the reason.",
            "Look up the reason, and close the pair.";
        PeerClosed:
            "The peer has ended the connection with `Disconnect`.",
            "Close the pair.";
        Disconnected:
            "A `Disconnect` of this endpoint has come to its end.",
            "Close the pair.";
        AccessRefused:
            "A request named memory that no region of its domain covers, or a right that the region hasn't.",
            "No endpoint gets this event: see the status `LocalProtection` of the request, and the firmware's audit ring.";
        PeerRefused:
            "The pair's peer has put where it may not: the key was revoked or never its own, or the place is outside of what was granted.",
            "The peer is told by the status `RemoteAccess`. `pair_counters` says how often for which reason; `revoke_peer` or a closed pair ends it.";
    }
    PeerState {
        Unknown:
            "The pair is being connected, or was opened and never connected.",
            "Nothing to do.";
        Alive:
            "The pair is connected.",
            "Nothing to do.";
        Suspect:
            "Half of the `timeout` of `WatchPeers` has passed without a frame of the peer, or a pair with the same card has failed with \
             `PeerFailed`.",
            "Nothing to do: the firmware is asking it, and takes it for alive or for failed soon.";
        Failed:
            "See the `FailureCause` beside it.",
            "Close the pair. What the peer had sent and the card had delivered is still there to be received.";
        Rejoined:
            "The pair is connected with a peer that was last taken to have failed.",
            "Take it for a new process: it knows nothing of what was sent before.";
    }
    FailureCause {
        None:
            "The peer isn't taken to have failed.",
            "Nothing to do.";
        Retries:
            "A send, or a request for credit, was repeated as often as the pair's retry limit says, and nothing came back.",
            "The counters `Timeouts`, `Repeats` and `CrcErrors` say how good the wire is. A process that is only slow doesn't fail so: its card \
             answers for it.";
        Silence:
            "The peer's firmware answered no `Alive`, and its gates sent nothing.",
            "Give `WatchPeers` a longer `timeout` if the peer's firmware may be paused for so long.";
        Declared:
            "The host gave `DeclareFailed`.",
            "Nothing to do.";
        Told:
            "A peer sent `TellFailed` and the endpoint believes its peers.",
            "Watch with `believe` 0 to hear of failures by this card alone.";
        Restarted:
            "The process at the other end was started again, and asks for a connection or accepts one.",
            "Nothing to do: the new connection is another pair.";
        Closed:
            "Its process ended, or closed the pair or the endpoint, without `Disconnect`.",
            "Close the pair. A process that means to leave disconnects first.";
    }
    ConnectReason {
        None:
            "The connection was made.",
            "Nothing to do.";
        TimedOut:
            "No answer came within the time-out: no card has this address, its wire is down, or its firmware doesn't run.",
            "Check the peer's Ethernet address (least significant byte first on the wire) and its `STATUS`.";
        NoEndpoint:
            "The peer has no open endpoint at the place that was named.",
            "Name the place, the low 16 bits of the id, of an endpoint that the peer has opened.";
        NotAccepting:
            "No `Accept` of the peer's endpoint waits for a connection.",
            "Let the peer `Accept` once for each connection, before the `Connect`.";
        Busy:
            "The peer has as many connections under way as it can have.",
            "Try again.";
        WrongVersion:
            "The peer's card speaks another version of the wire format; the detail is its version.",
            "Load cards that talk to each other with gates of the same version.";
        StaleEpoch:
            "The peer remembers a later incarnation of this endpoint, and so took the request for an old one.",
            "Try again: the firmware goes on from the epoch that the peer remembers.";
        AlreadyConnected:
            "The two endpoints have a connection already.",
            "Close it, on both sides, before making another.";
        Closed:
            "The pair was closed while the handshake was under way.",
            "Nothing to do.";
        HardwareTimeout:
            "The gates of one of the cards didn't set the pair up in time.",
            "See the mailbox status `HardwareTimeout`.";
        Malformed:
            "The peer's answer made no sense.",
            "Capture the frames of the handshake; one of the two firmwares has a defect.";
        WrongJob:
            "The two endpoints were opened for different jobs.",
            "Open both with the same `job`, or look for the process that you meant: this one is another tenant's.";
    }
    PairState {
        Closed:
            "The pair was never opened, or has been closed.",
            "Nothing to do.";
        Open:
            "`OpenPair` has reserved it.",
            "`ConnectPair`.";
        Connected:
            "`ConnectPair`, or the handshake, has ended well.",
            "It may be sent on.";
        Failed:
            "See the completion status that its operations ended with.",
            "Close it.";
        Connecting:
            "`Connect` waits for the peer.",
            "Wait for the event `PairConnected` or `ConnectFailed`.";
        Accepting:
            "`Accept` waits for somebody to connect.",
            "Wait for the event `PairConnected` or `ConnectFailed`.";
        Refused:
            "The handshake came to nothing; `reason` says why.",
            "Close it.";
        Disconnecting:
            "`Disconnect` waits for acknowledgements, or for the peer's answer.",
            "Wait, and go on polling completions.";
        Disconnected:
            "`Disconnect` has ended, here or at the peer.",
            "Close it.";
        Unsettled:
            "The gates are late with setting it up or with closing it.",
            "Wait; if it stays so, see the mailbox status `HardwareTimeout`.";
    }
    FrameType {
        Eager:
            "A send had its turn and a credit.",
            "The receiver takes it if its number is the next of its pair and class: a lower one is a duplicate, which is dropped and acknowledged \
             again; a higher one is dropped, and the first such is told to the sender.";
        Put:
            "A put had its turn, and fewer than 16 requests of its pair were unacknowledged.",
            "The receiver takes it as it takes an `Eager` frame, and asks its table of grants instead of its lists: what the key doesn't allow is dropped, and \
             `refused` says so.";
        Get:
            "A get had its turn, and fewer than 16 requests of its pair were unacknowledged or unanswered; or its answer hasn't come for the pair's time-out.",
            "The receiver takes it as it takes a `Put`, and answers with a `GetAnswer`, also if the frame has come before.";
        GetAnswer:
            "A `Get` has come, for the first time or again: these are the bytes, or, with `FRAME_REFUSED`, they aren't the peer's to read.",
            "The receiver writes them to the get's buffer and completes it, if the get of this number still waits. Else the frame is dropped as a duplicate.";
        Acknowledge:
            "The running numbers of the reverse direction have moved, the peer asked for them, or a request of the peer is missing (`FRAME_GAP`).",
            "The receiver completes its sends up to `acknowledge`, and has credit again up to `credit`. With `FRAME_GAP` it sends the others again, \
             from the first on.";
        PairFailed:
            "The sender of the frame has failed the pair: a violation of the protocol, a peer that it takes to have failed, memory that it can't reach.",
            "The receiver fails its pair with `LinkError`.";
        Ask:
            "Sends wait for credit, nothing of theirs is unacknowledged, and nothing was heard for the pair's time-out.",
            "The receiver answers with an `Acknowledge`.";
        PairClosed:
            "`ClosePair` or `CloseEndpoint` of a connected pair, without `Disconnect`.",
            "The receiver fails its pair with `PeerFailed`.";
        Handshake:
            "The firmware of a card makes a connection, or refuses one.",
            "The receiver's gates hand it to the firmware.";
        Management:
            "The firmware of a card speaks of a pair that is connected: it ends it.",
            "The receiver's gates hand it to the firmware.";
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString as _;

    use super::*;

    #[test]
    fn links_of_the_documentation_become_code() {
        let plain = Plain(" Bits [`A`](crate::A), [`B`]: a|b [`").to_string();
        assert_eq!(plain, "Bits `A`, `B`: a|b [`");
    }

    #[test]
    fn every_code_has_a_cause_and_a_help_that_are_sentences() {
        for set in SETS {
            for code in set.codes {
                let Explanation { cause, help } =
                    (set.explanation)(code.number).expect("a code of the set");
                for text in [cause, help] {
                    let whole = text.ends_with('.')
                        && text.starts_with(|c: char| c.is_uppercase() || c == '`');
                    assert!(whole, "{} {}: {text}", set.name, code.name);
                }
            }
            assert_eq!((set.explanation)(0xff), None);
        }
    }
}
