//! Promises of the library that a test breaks, to show that it would notice. Only tests build this, by the feature `breaks`.

use std::cell::Cell;

macro_rules! breaks {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A promise, by what the library does that has broken it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Break {
            $($(#[$doc])* $name,)*
        }

        impl Break {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

breaks! {
    /// A card that has an owner is opened once more.
    OpensTwice,
    /// A card that has been used is opened as it is.
    OpensUsed,
    /// An endpoint whose close wasn't answered in time is taken for closed.
    FreesAtTimeout,
    /// While a close is under way the registers of the endpoint are used.
    RingsWhileClosing,
    /// The answer to a command that wasn't answered in time is not looked at.
    ForgetsLateAnswer,
    /// The memory of what a command concerns is given back when its answer is late.
    FreesWhatIsLate,
    /// What is dropped is given back before the card has closed it.
    FreesBeforeClose,
    /// What a thread drops that can't talk to the card is never closed.
    ForgetsStrangers,
    /// A card that can't be reached is taken for gone.
    FlushesUnreachable,
    /// What was outstanding on a card that is gone is never flushed.
    KeepsOutstanding,
    /// The close of an endpoint fails because its card is gone.
    ClosesByCardOnly,
    /// A pair's handle names whatever pair has its place.
    StalePair,
    /// An event about a pair that is closed is told of the next one in its place.
    EventOfPredecessor,
    /// A request's handle names whatever request has its slot.
    StaleRequest,
    /// A request is posted whether or not the card knows of a free entry for its completion.
    StarvesCard,
    /// The start of the firmware is not compared.
    ForgetsStart,
    /// The start is not compared after an object was opened.
    TrustsAnswer,
    /// An endpoint is entered whatever the library has at its place.
    TrustsPlace,
    /// The memory of a card that has started anew is given back before its gates are quiet.
    TrustsRestart,
    /// A failure is pending though nobody is awaited.
    PendingAlways,
    /// A failure is pending though the program knows of it.
    AcknowledgedNever,
    /// A failure that is pending is told by an event again and again.
    PendingAgain,
    /// A failure whose event was lost is never pending.
    HidesLostFailure,
    /// What has a time-out waits on when it is over.
    NeverExpires,
    /// Quiet sends are taken for ended by the completion of one that was posted before them.
    RetiresTooMany,
    /// A closing wakes nobody who waits for a completion.
    ClosesInSilence,
    /// Each request of a list has a doorbell of its own.
    RingsForEach,
    /// A poll for many takes one more than it may.
    PollsPastLimit,
    /// A send doesn't keep the shared buffer that the card reads.
    UnsharesInFlight,
    /// The owner of memory of the program's is dropped while the card can't be reached.
    DropsOwnerUnreached,
    /// The descriptor of a closed endpoint stays with its line.
    KeepsEventFd,
    /// A closing signals no descriptor.
    SignalsNoClose,
    /// A request that the library keeps is said to be posted.
    HidesKept,
    /// A call that was to end a pair, and was refused, opens a pair that is ending already.
    ReopensPair,
    /// A request's handle is taken by another endpoint of the queue.
    TakesStrangers,
    /// The endpoint that owns a queue is closing while it is refused to.
    ClosesNeeded,
    /// What a closed endpoint has left is flushed when its queue is empty.
    FlushesLast,
    /// A queue whose endpoints are closed goes on where they left it.
    ContinuesQueue,
    /// The descriptor of a queue doesn't tell of endpoints that are opened later.
    ForgetsLine,
    /// Whoever waits for a connection looks at intervals, though its event has room.
    LooksAtIntervals,
    /// What a command is to name is looked up before the command channel is taken.
    LooksBeforeItsTurn,
    /// A reset gives everything back and leaves the gates as they are.
    ResetsInName,
    /// The mailbox is looked at until the firmware has answered.
    PollsMailbox,
    /// A post waits until the card has taken its doorbell.
    WaitsForDoorbell,
    /// Whoever waits for the end of a connection waits for gates that hang.
    WaitsForGates,
    /// An event is lost if the card can't be told that it was taken.
    LosesEvent,
    /// The length of a send is asked of its completion, which doesn't say it.
    AsksCompletionForLength,
    /// A send beyond what the card holds of its pair is refused.
    RefusesNinth,
    /// The card gets more sends of a pair than their window.
    OverfillsPair,
    /// A pair's window is as long as the program asks, though the card holds fewer sends.
    WindowBeyondCard,
    /// A send goes to the card past others of its pair that are kept.
    OvertakesKept,
    /// A kept send is posted when the completion of an earlier one has been taken, not when it has been written.
    SeesOnlyWhatIsTaken,
    /// The window of a pair fills with sends of which the card doesn't tell.
    FillsWindowQuietly,
    /// A kept gather goes to the card without its second entry.
    SplitsGather,
    /// A kept send that is cancelled is posted all the same.
    PostsCancelled,
    /// What was kept of a pair that is closed never completes.
    ForgetsKept,
    /// What was kept of a pair that is closed is sent on the next pair in its place.
    SendsToSuccessor,
    /// What a closed endpoint has left is flushed from the last on.
    FlushesBackwards,
    /// A pair may have more sends outstanding than the program has set.
    IgnoresSendLimit,
    /// A disconnect begins while sends of the pair are kept.
    DisconnectsKept,
    /// Whoever waits on an endpoint isn't told when a reset or a restart ends it.
    EndsInSilence,
    /// A send that falls under a rule is posted.
    SendsRevoked,
    /// What a sweep has ended is told as the program's own cancel.
    TellsCancelled,
    /// A sweep leaves the messages that have come.
    LeavesMessages,
    /// A sweep ends what is of other pairs too.
    SweepsStrangers,
    /// Completions that a sweep has put aside come behind those in the queue.
    ForgetsAside,
    /// A rule is set again for what is revoked already.
    SetsAnotherRule,
    /// What is being drained is posted.
    PostsWhileDraining,
    /// A drain says that it has flushed while sends are under way.
    DrainsUnflushed,
    /// A drain leaves what is pending and what has come.
    DrainsUnswept,
    /// What is posted behind a request in parts goes in between its parts.
    LetsOvertake,
    /// More than one part waits behind a message of the pair.
    PartsWaitTogether,
    /// A cancel of a request in parts names the whole to the card, which doesn't know it.
    CancelsWholeOnly,
    /// A request in parts that is cancelled ends while parts are under way.
    EndsUnderWay,
    /// Parts go though one has failed.
    GoesOnAfterError,
    /// A request in parts ends as its last part did.
    ForgetsError,
    /// All parts of a put or a get go to one place of the peer's.
    PartsInOnePlace,
    /// The offset of a part of a put or a get is that of the whole and more, modulo 2^64.
    OffsetWraps,
    /// The slots of the parts are never free again.
    KeepsPartSlots,
    /// Revocations of messages cancel puts and gets.
    SweepsPuts,
    /// Every event interrupts a wait, whether or not the program has asked for its cause.
    InterruptsUnasked,
    /// Who waits for anyone isn't told of a failure whose event interrupts no wait.
    SleepsThroughFailure,
    /// What ends with the failure of a peer isn't counted.
    CountsNoLoss,
    /// A get is posted without a completion, and what it reads is dropped.
    DropsWhatWasRead,
    /// A card that has no gets is given them.
    PretendsGets,
    /// A put or a get falls under the rules and drains of messages.
    RevokesPuts,
    /// A card is said to tell senders apart that can't.
    PretendsSenders,
    /// The failure of a peer marks windows that have no key for any peer.
    MarksPerSender,
    /// Only a failure whose event was taken marks a window.
    TrustsEvents,
    /// A pair is closed, or its endpoint, before the card was asked whether its peer had failed.
    ForgetsAtClose,
    /// A window is usable again while its keys for any peer are still good.
    AcknowledgesUnrevoked,
}

thread_local! {
    static BROKEN: Cell<Option<Break>> = const { Cell::new(None) };
}

/// Runs `code` with a library that, on this thread, doesn't keep a promise.
pub fn with<T>(promise: Break, code: impl FnOnce() -> T) -> T {
    struct Mended;
    impl Drop for Mended {
        fn drop(&mut self) {
            BROKEN.set(None);
        }
    }
    BROKEN.set(Some(promise));
    let _mended = Mended;
    code()
}

/// The same code for another thread: what the calling one breaks is broken there too.
pub fn inherited<T>(code: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let broken = BROKEN.get();
    move || match broken {
        Some(promise) => with(promise, code),
        None => code(),
    }
}

pub(crate) fn is_broken(promise: Break) -> bool {
    BROKEN.get() == Some(promise)
}
