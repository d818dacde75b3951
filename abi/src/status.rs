//! What happened to a request: the status of a completion, and the answer of the mailbox.

/// A code of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Number.
    pub number: u8,
    /// Name.
    pub name: &'static str,
    /// What it means, as documented.
    pub doc: &'static str,
}

macro_rules! codes {
    ($(#[doc = $about:literal])+ $name:ident { $($(#[doc = $doc:literal])+ $variant:ident = $code:literal,)* }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[repr(u8)]
        pub enum $name { $($(#[doc = $doc])+ $variant = $code,)* }

        impl $name {
            /// Every code, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// What the codes are, as documented.
            pub const ABOUT: &'static str = concat!($($about),+);

            /// Number, name and documentation of every code, in order.
            pub const CODES: &'static [$crate::status::Code] = &[$($crate::status::Code {
                number: $code,
                name: stringify!($variant),
                doc: concat!($($doc),+),
            }),*];

            /// The code's number.
            pub const fn code(self) -> u8 {
                self as u8
            }

            /// The code with this number, if there is one.
            pub const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }

            /// The variant's name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)* }
            }

            /// What it means, as documented.
            pub const fn doc(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+),)* }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
pub(crate) use codes;

codes! {
    /// Status of a completion.
    Status {
        /// Done as asked.
        Success = 0,
        /// Received, but the message was longer than the buffer: the buffer is full, the rest is lost.
        Truncated = 1,
        /// The receive was cancelled before it matched, or the send before its turn.
        Cancelled = 2,
        /// The cancel found nothing to cancel: the receive has matched, the send has had its turn, or there never was one.
        TooLate = 3,
        /// The probe or the claim found no message.
        NoMessage = 4,
        /// The message is longer than the card's maximum. Nothing was sent.
        TooLong = 5,
        /// Unknown opcode, unknown flag, or a reserved bit that is not zero.
        InvalidRequest = 6,
        /// The pair is not open, or belongs to another endpoint.
        InvalidPair = 7,
        /// The local key does not name a region of this endpoint's domain that covers the buffer with the right needed.
        LocalProtection = 8,
        /// The host's memory answered an access of the card with an error.
        MemoryError = 9,
        /// The peer violated the protocol, or has failed the pair.
        LinkError = 10,
        /// The endpoint or the pair was closed first.
        Flushed = 11,
        /// The list of posted receives was full, and the receive was not posted. This is told when it may be worth trying again.
        ListFull = 12,
        /// The card has no descriptor left for one more send of the pair; the send was not taken.
        QueueFull = 13,
        /// A region of the receiver refused the message after it had matched; or that of a get's buffer did when the answer came.
        AccessDenied = 14,
        /// An earlier receive of the endpoint found the list full: this one was not posted, so that it can't overtake it, and found no message.
        Behind = 15,
        /// The handle names no message that this endpoint has claimed: it never did, it has received or discarded it, or the pair was closed.
        InvalidClaim = 16,
        /// The ready send found no receive posted for it. It was not delivered.
        NotReady = 17,
        /// The pair was closed in an orderly way before the operation was done, by the peer or by this side's `Disconnect`.
        PeerClosed = 18,
        /// The peer is taken to have failed: it acknowledged nothing, was silent, or was declared so.
        PeerFailed = 19,
        /// A rule of the endpoint revokes what the request is for: it was not posted, or found no message.
        Revoked = 20,
        /// The time-out that the program gave the request is over: the library has cancelled it, and says so. The card completes nothing with it.
        TimedOut = 21,
        /// The peer's card didn't carry out the put or get: the key opens nothing there for this endpoint, or not the memory that was named; or its memory answered with an error.
        RemoteAccess = 22,
    }
}

codes! {
    /// Answer of the firmware to a mailbox command.
    MailboxStatus {
        /// Done.
        Ok = 0,
        /// No such command.
        UnknownCommand = 1,
        /// An argument is out of range or misaligned; result word 1 is its index.
        InvalidArgument = 2,
        /// No endpoint, domain, pair, region, rule or remote key is free.
        NoResource = 3,
        /// The pair's envelopes can't be guaranteed; result word 1 is the largest number that fits.
        NoEnvelopes = 4,
        /// The object named is not open.
        NotFound = 5,
        /// The object is in use by another.
        Busy = 6,
        /// The gates did not answer the firmware in time. Result words 1 to 4 are an [`Undrained`](crate::mailbox::Undrained): the access that they wait for.
        HardwareTimeout = 7,
        /// The firmware was restarted before it had carried the command out. Nothing is open any more.
        Restarted = 8,
        /// The card lacks a capability that the command asks for; result word 1 is its bit of `capabilities`.
        Unsupported = 9,
        /// The pair isn't connected: it never was, it has failed, or it has ended.
        NotConnected = 10,
        /// The card's random source failed a health test: no key is made until the firmware is started anew.
        NoEntropy = 11,
    }
}

#[cfg(test)]
mod tests {
    use super::Status;

    #[test]
    fn every_code_is_its_own_inverse() {
        for &status in Status::ALL {
            assert_eq!(Status::from_code(status.code()), Some(status));
        }
        assert_eq!(Status::from_code(0xff), None);
    }
}
