//! The states of a pair, what makes it leave them, and which transitions there are: [`TRANSITIONS`], the table of `docs/src/connection.md`.
//!
//! Every change of a pair's state goes by this table: in builds with debug assertions one that isn't in it panics.

use abi::mailbox::PairState;

names! {
    /// State of a pair.
    State {
        /// Nothing: the place is free.
        Closed,
        /// Its envelopes are reserved; the host is to give the peer's side.
        Open,
        /// `ConnectPair`: the gates are being told of it.
        Joining,
        /// Connected.
        Connected,
        /// Was connected; its operations have completed with an error.
        Failed,
        /// `ConnectRequest` is repeated until the peer answers.
        Requesting,
        /// The peer has accepted, and the gates are being told of it.
        Setting,
        /// Offered to whoever connects.
        Accepting,
        /// Somebody connects, and the gates are being told of it.
        Preparing,
        /// `ConnectAccept` is repeated until the peer confirms.
        Offering,
        /// The connection came to nothing, and the gates are forgetting it.
        Withdrawing,
        /// The connection came to nothing.
        Refused,
        /// `Disconnect`: what was posted is being acknowledged.
        Draining,
        /// The gates are ending what is outstanding.
        Ending,
        /// `Disconnect` is repeated until the peer answers.
        Telling,
        /// The peer has ended the connection, and the gates are ending what is outstanding.
        PeerEnding,
        /// Ended in an orderly way.
        Disconnected,
        /// The gates didn't answer `ConnectPair` in time.
        Unsettled,
        /// The gates are forgetting it for good.
        Closing,
    }
}

names! {
    /// What makes a pair change its state.
    Cause {
        /// Command `OpenPair`.
        CommandOpen,
        /// Command `ConnectPair`.
        CommandJoin,
        /// Command `Connect`.
        CommandConnect,
        /// Command `Accept`.
        CommandAccept,
        /// Command `Disconnect`.
        CommandDisconnect,
        /// Command `ClosePair` or `CloseEndpoint`.
        CommandClose,
        /// Command `DeclareFailed`.
        CommandDeclare,
        /// The gates have answered `PairSet`.
        GatesSet,
        /// The gates have answered `PairFail`, or know nothing of the pair.
        GatesFailed,
        /// The gates know nothing of the pair, and no request about it is under way.
        GatesClear,
        /// The gates have found the pair failed.
        GatesEvent,
        /// The gates say that nothing waits and nothing is unacknowledged.
        GatesDrained,
        /// The gates have not answered in time.
        GatesLate,
        /// Frame `ConnectRequest`.
        FrameRequest,
        /// Frame `ConnectAccept`.
        FrameAccept,
        /// Frame `ConnectConfirm`.
        FrameConfirm,
        /// Frame `ConnectRefuse`.
        FrameRefuse,
        /// Frame `Disconnect`.
        FrameDisconnect,
        /// Frame `DisconnectDone`.
        FrameDone,
        /// A notice that the peer has failed, from one that is believed.
        FrameTold,
        /// The time is over.
        TimerGiveUp,
        /// The peer has been silent for too many looks.
        TimerSilence,
    }
}

/// State, cause, and the state after it. What isn't here doesn't happen: the cause is ignored, refused or answered, and the state stays.
pub const TRANSITIONS: &[(State, Cause, State)] = {
    use Cause::*;
    use State::*;
    &[
        (Closed, CommandOpen, Open),
        (Closed, CommandConnect, Requesting),
        (Closed, CommandAccept, Accepting),
        (Open, CommandJoin, Joining),
        (Open, CommandClose, Closing),
        (Joining, GatesSet, Connected),
        (Joining, GatesLate, Unsettled),
        (Connected, CommandDisconnect, Draining),
        (Connected, CommandClose, Closing),
        (Connected, CommandDeclare, Failed),
        (Connected, TimerSilence, Failed),
        (Connected, FrameTold, Failed),
        (Connected, GatesEvent, Failed),
        (Connected, FrameRequest, Failed),
        (Connected, FrameAccept, Failed),
        (Connected, FrameRefuse, Failed),
        (Connected, FrameDisconnect, PeerEnding),
        (Failed, CommandDisconnect, Ending),
        (Failed, CommandClose, Closing),
        (Requesting, CommandClose, Closing),
        (Requesting, FrameRequest, Preparing),
        (Requesting, FrameAccept, Setting),
        (Requesting, FrameRefuse, Refused),
        (Requesting, TimerGiveUp, Refused),
        (Setting, CommandClose, Closing),
        (Setting, GatesSet, Connected),
        (Setting, GatesLate, Withdrawing),
        (Setting, TimerGiveUp, Withdrawing),
        (Accepting, CommandClose, Closing),
        (Accepting, FrameRequest, Preparing),
        (Preparing, CommandClose, Closing),
        (Preparing, GatesSet, Offering),
        (Preparing, GatesLate, Withdrawing),
        (Preparing, TimerGiveUp, Withdrawing),
        (Offering, CommandClose, Closing),
        (Offering, GatesEvent, Withdrawing),
        (Offering, FrameConfirm, Connected),
        (Offering, FrameRefuse, Withdrawing),
        (Offering, TimerGiveUp, Withdrawing),
        (Withdrawing, CommandClose, Closing),
        (Withdrawing, GatesClear, Accepting),
        (Withdrawing, GatesClear, Refused),
        (Refused, CommandClose, Closing),
        (Draining, CommandClose, Closing),
        (Draining, GatesEvent, Ending),
        (Draining, GatesDrained, Ending),
        (Draining, FrameDisconnect, PeerEnding),
        (Draining, TimerGiveUp, Ending),
        (Ending, CommandClose, Closing),
        (Ending, GatesFailed, Telling),
        (Telling, CommandClose, Closing),
        (Telling, FrameDisconnect, Disconnected),
        (Telling, FrameDone, Disconnected),
        (Telling, TimerGiveUp, Disconnected),
        (PeerEnding, CommandClose, Closing),
        (PeerEnding, GatesFailed, Disconnected),
        (Disconnected, CommandClose, Closing),
        (Unsettled, CommandClose, Closing),
        (Unsettled, GatesClear, Closed),
        (Closing, GatesClear, Closed),
    ]
};

impl State {
    /// The state as the host is told it; the gates know more of one that is connected.
    pub const fn told(self) -> PairState {
        match self {
            Self::Closed => PairState::Closed,
            Self::Open | Self::Joining => PairState::Open,
            Self::Connected => PairState::Connected,
            Self::Failed => PairState::Failed,
            Self::Requesting | Self::Setting => PairState::Connecting,
            Self::Accepting | Self::Preparing | Self::Offering => PairState::Accepting,
            Self::Withdrawing | Self::Unsettled | Self::Closing => PairState::Unsettled,
            Self::Refused => PairState::Refused,
            Self::Draining | Self::Ending | Self::Telling => PairState::Disconnecting,
            Self::PeerEnding | Self::Disconnected => PairState::Disconnected,
        }
    }
}
