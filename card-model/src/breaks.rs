//! Breaks of the model on purpose, so that a test can show that it would notice.

/// The breaks, each once: what is written here is in one of the lists.
macro_rules! breaks {
    (
        every card { $($(#[$doc:meta])* $name:ident,)* }
        some cards { $($(#[$some_doc:meta])* $some:ident: $capability:ident,)* }
        unread { $($(#[$unread_doc:meta])* $unread:ident,)* }
        closing { $($(#[$closing_doc:meta])* $closing:ident,)* }
        of grants { $($(#[$grant_doc:meta])* $grant:ident,)* }
    ) => {
        /// What is broken.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum Break {
            /// Nothing.
            #[default]
            None,
            $($(#[$doc])* $name,)*
            $($(#[$some_doc])* $some,)*
            $($(#[$unread_doc])* $unread,)*
            $($(#[$closing_doc])* $closing,)*
            $($(#[$grant_doc])* $grant,)*
        }

        impl Break {
            /// All that break what every card has.
            pub const ALL: [Self; [$(stringify!($name)),*].len()] = [$(Self::$name),*];

            /// All that break what only cards with a capability have, each with its capability.
            pub const OPTIONAL: [(Self, u32); [$(stringify!($some)),*].len()] =
                [$((Self::$some, abi::capability::$capability)),*];

            /// All that only a host sees that looks at memory which it has no reason to read.
            pub const UNREAD: [Self; [$(stringify!($unread)),*].len()] = [$(Self::$unread),*];

            /// All that only the peer of a pair sees that is closed while it is connected.
            pub const CLOSING: [Self; [$(stringify!($closing)),*].len()] = [$(Self::$closing),*];

            /// All that let a peer do what it was not granted.
            pub const OF_GRANTS: [Self; [$(stringify!($grant)),*].len()] = [$(Self::$grant),*];
        }
    };
}

breaks! {
    every card {
        /// A message that is longer than its buffer is told as if it weren't.
        TruncationUntold,
        /// A receive behind one that waits for room isn't refused as `Behind` when there is news: it looks.
        LooksAgain,
        /// A message that was discarded keeps its envelope.
        DiscardKeepsEnvelope,
        /// The slot of a received message isn't vacant again.
        SlotStaysTaken,
        /// A ready message that finds no receive is queued as any other.
        ReadyWaits,
        /// A send that the peer refused completes as if it had been delivered.
        RefusalUnheard,
        /// A multi-receive goes on at the start of its buffer.
        MultiStartsAgain,
        /// A message that memory answers with an error ends its multi-receive.
        MultiEndsByError,
        /// Each message of a multi-receive is told as the first of its buffer.
        MultiOffsetStays,
        /// The last completion of a multi-receive doesn't count itself.
        MultiCountShort,
        /// A receive that got a message completes once more.
        CompletesTwice,
        /// A receive whose bytes the host's memory refused completes as if it had them.
        MemoryErrorUntold,
        /// A cancel of a receive that was in time completes, too.
        CancelTold,
        /// The posted receives that name a failed pair stay posted.
        FailureKeepsReceives,
        /// The sends of a failed pair never end.
        FailureKeepsSends,
        /// A pair that fails doesn't say so to its peer.
        FailureUntold,
        /// Events of the gates reach the firmware and no endpoint.
        EventUnwritten,
        /// A key opens the region of its index, whatever its tag is.
        TagIgnored,
        /// A frame that has come before is taken for the next.
        DuplicateTaken,
        /// The CRC of a frame isn't looked at.
        CrcIgnored,
        /// A pair that goes back sends the last of its sends in the place of each.
        RepeatPassedOver,
        /// A sender isn't told that a request of it is missing.
        GapUntold,
    }
    some cards {
        /// A send that completes only on error tells its success.
        SuccessTold: CAPABILITY_ERRORS_ONLY,
        /// A completion on another endpoint's queue tells the owner of the queue as its endpoint.
        OwnerTold: CAPABILITY_SHARED_COMPLETIONS,
        /// The bytes of a gather come the wrong way round.
        SegmentsSwapped: CAPABILITY_GATHER,
        /// The bytes of an inline payload come the wrong way round.
        InlineReversed: CAPABILITY_INLINE,
        /// A message that falls under a rule is matched.
        RuledMatches: CAPABILITY_RULES,
        /// A message that a rule drops keeps its credit.
        RuledKeepsCredit: CAPABILITY_RULES,
        /// A receive that falls under a rule is posted.
        RuledPosts: CAPABILITY_RULES,
        /// The mask of a rule isn't looked at: all match bits have to agree.
        RuleMaskIgnored: CAPABILITY_RULES,
        /// Nor is its context.
        RuleContextIgnored: CAPABILITY_RULES,
        /// Nor is its group.
        RuleGroupIgnored: CAPABILITY_RULES,
        /// A rule holds for other endpoints too.
        RuleEndpointIgnored: CAPABILITY_RULES,
        /// A rule that was cleared still holds.
        RuleNotCleared: CAPABILITY_RULES,
        /// A pair that was closed leaves its number in the groups.
        RuleKeepsPair: CAPABILITY_RULES,
        /// A put that may not be is told as if it had been written.
        PutRefusalUntold: CAPABILITY_PUT,
        /// A put needs a credit, as a message does.
        PutWaitsForCredit: CAPABILITY_PUT,
        /// A put goes to the first byte of the region, whatever its offset is.
        PutOffsetIgnored: CAPABILITY_PUT,
        /// A get ends when it is safe at the peer, whatever has become of its answer.
        GetEndsUnanswered: CAPABILITY_GET,
        /// A get that may not be is answered as if it were of nothing.
        GetRefusalUntold: CAPABILITY_GET,
        /// A get reads from the first byte of the region, whatever its offset is.
        GetOffsetIgnored: CAPABILITY_GET,
        /// A get that has come before isn't answered again.
        GetAnsweredOnce: CAPABILITY_GET,
        /// A get that the peer has is asked for again at its first time-out.
        AnswersAskedTooSoon: CAPABILITY_GET,
        /// Nothing ends a get that its peer has and never answers.
        AnswersAskedForEver: CAPABILITY_GET,
        /// A get is answered though the peer may only write there.
        GetNeedsNoRight: CAPABILITY_GET,
    }
    unread {
        /// A completion is written whole, over the words that its kind doesn't have.
        EntryWhole,
    }
    closing {
        /// A pair that is closed says that it has failed.
        CloseToldAsFailure,
    }
    of grants {
        /// A remote key names the grant of its row, whatever its tag is.
        RemoteTagIgnored,
        /// A grant is every peer's.
        HolderIgnored,
        /// A key that is for any peer of a domain is for any of the card.
        DomainIgnored,
        /// A key that is for any peer is for the one that is named, if one is.
        AnyPeerIgnored,
        /// What is granted of a region is all of it.
        PartIgnored,
        /// A grant that was cleared stays.
        GrantKept,
        /// The row of a grant that the gates have made isn't free when that has ended.
        MintedKept,
        /// A grant outlives its time.
        GrantOutlivesTime,
        /// A peer that is revoked keeps what it was granted.
        RevokesNobody,
        /// The peer of a pair that has failed keeps what it was granted.
        FailedWrites,
    }
}
