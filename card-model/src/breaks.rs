//! Breaks of the model on purpose, so that a test can show that it would notice.

/// What is broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Break {
    /// Nothing.
    #[default]
    None,
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
    /// A receive that got a message completes once more.
    CompletesTwice,
    /// A send that completes only on error tells its success.
    SuccessTold,
    /// A completion on another endpoint's queue tells the owner of the queue as its endpoint.
    OwnerTold,
    /// The bytes of a gather come the wrong way round.
    SegmentsSwapped,
}

impl Break {
    /// All that break what every card has.
    pub const ALL: [Self; 8] = [
        Self::TruncationUntold,
        Self::LooksAgain,
        Self::DiscardKeepsEnvelope,
        Self::SlotStaysTaken,
        Self::ReadyWaits,
        Self::RefusalUnheard,
        Self::MultiStartsAgain,
        Self::CompletesTwice,
    ];

    /// All that break what only cards with a capability have.
    pub const OPTIONAL: [Self; 3] = [Self::SuccessTold, Self::OwnerTold, Self::SegmentsSwapped];
}
