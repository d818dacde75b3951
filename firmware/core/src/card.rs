//! What the firmware's decisions run on. No call waits.

use crate::connection::{Cause, State};
use crate::watch::PeerCause;
use abi::control::{AccessReport, Operation};
use abi::event;
use abi::mailbox::PeerState;
use abi::mgmt::FRAME_WORDS;

/// Sizes of the card, as its gates were built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Endpoints.
    pub endpoints: u32,
    /// Pairs.
    pub pairs: u32,
    /// Entries of the list of posted receives.
    pub posted: u32,
    /// Entries of the list of unexpected messages.
    pub unexpected: u32,
    /// Regions.
    pub regions: u32,
    /// Receives that each endpoint has for itself.
    pub posted_reserved: u32,
    /// What the gates have beyond what every card has: [`abi::capability`].
    pub capabilities: u32,
    /// Descriptors of sends.
    pub descriptors: u32,
    /// Rules.
    pub rules: u32,
    /// Grants of regions to peers.
    pub grants: u32,
}

/// An event that the gates raised, as far as the firmware tells one from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateEvent {
    /// They have failed a pair.
    PairFailed {
        /// Endpoint that the pair is of.
        endpoint: u8,
        /// Its place.
        pair: u16,
        /// Why: `LinkError`, `PeerFailed`, `UnexpectedOverflow` or `SlotError`.
        cause: event::Cause,
        /// The peer has closed its side.
        closed: bool,
    },
    /// Regions have refused accesses.
    AccessRefused(event::Refusal),
    /// Anything else, which is noted.
    Other {
        /// Code of the [cause](event::Cause).
        cause: u8,
        /// Pair concerned, or [`NO_PAIR`](event::NO_PAIR).
        pair: u16,
    },
}

impl GateEvent {
    /// The event of a cause's code, the endpoint that it was raised at, the pair concerned or [`NO_PAIR`](event::NO_PAIR), and what depends on the cause.
    pub fn new(cause: u8, endpoint: u8, pair: u16, info: u64) -> Self {
        use event::Cause::{AccessRefused, LinkError, PeerFailed, SlotError, UnexpectedOverflow};
        match event::Cause::from_code(cause) {
            Some(AccessRefused) => Self::AccessRefused(event::Refusal::from_info(info)),
            Some(cause @ (LinkError | PeerFailed | UnexpectedOverflow | SlotError)) => {
                Self::PairFailed {
                    endpoint,
                    pair,
                    cause,
                    closed: cause == PeerFailed && info >> event::INFO_CLOSED_BIT & 1 == 1,
                }
            }
            _ => Self::Other { cause, pair },
        }
    }
}

/// A frame of the firmware: header, then payload, low word first.
pub type FrameWords = [u32; FRAME_WORDS];

names! {
    /// A promise of the firmware that a test breaks, to show that it would notice: by what the firmware does that has broken it.
    Break {
        /// A peer that has closed its side is taken for one that was silent.
        CloseTakenForSilence,
        /// A `ConnectAccept` is sent once.
        AcceptNotRepeated,
        /// The acceptor takes its own `PairSet` for the peer's `ConnectConfirm`.
        ConfirmNotNeeded,
        /// Epochs start again with the firmware.
        EpochsStartAgain,
        /// An id is taken for whoever has its place.
        GenerationIgnored,
        /// Envelopes are granted that there is no room for.
        Oversubscribed,
        /// All pairs have the first run of descriptors.
        RunsOverlap,
        /// A long run takes what is reserved for others.
        RunsTakeReserved,
        /// What a closed pair drew from a reservation stays drawn.
        ReservationLeaked,
        /// The cookie is one side's nonce.
        CookieOfOneSide,
        /// A version of the wire format is taken for any other.
        VersionIgnored,
        /// A refusal doesn't say which version this side speaks.
        VersionUnnamed,
        /// The identity doesn't say which version of the commands this is.
        AbiVersionUnnamed,
        /// A refusal says no reason.
        ReasonUnnamed,
        /// The peer is taken to grant as many envelopes as this side.
        CreditsAssumed,
        /// An end of a connection whose other end is gone is left as it is.
        LoneEndKept,
        /// A connection with an earlier incarnation of the peer is left beside the one with the later.
        OldConnectionKept,
        /// The offer that was made last is served first.
        LastOfferFirst,
        /// A handshake begins however many are under way.
        HandshakesUnbounded,
        /// A disconnect begins however many are under way.
        DisconnectsUnbounded,
        /// An exchange goes on after its time.
        NeverGivesUp,
        /// Of two that connect at once, both answer.
        BothAnswer,
        /// The epoch that a peer remembers is taken once more, and not the one after it.
        EpochAsRemembered,
        /// A request of an older epoch is served.
        StaleEpochServed,
        /// A control request that was given up is taken for one that was never made.
        LateAnswerForgotten,
        /// A command waits for the gates as long as they are silent.
        GatesAwaited,
        /// While the gates have a request nothing else is done.
        WaitsForGates,
        /// Nothing else is done while there are events.
        FloodHoldsUp,
        /// What was opened too late stays.
        LateSetKept,
        /// An answer is late only if its time was seen to be over before it came.
        LateIfUnanswered,
        /// What a late answer says has been done to a pair is taken to be so.
        LatePairBelieved,
        /// What a late answer says has been done to an endpoint is taken to be so.
        LateEndpointBelieved,
        /// What a late answer says has been done to a region is taken to be so.
        LateRegionBelieved,
        /// An event is taken to have been raised because a late answer says so.
        LateEventBelieved,
        /// The gates are taken to know the card's address because a late answer says so.
        LateStartBelieved,
        /// A close flushes before it has failed the pairs.
        FlushesFirst,
        /// A close that wasn't answered in time can't be repeated.
        CloseNotRepeated,
        /// Who disconnects ends what its peer hasn't acknowledged.
        EndsUndrained,
        /// A pair ends as if its link had failed.
        EndsAsFailure,
        /// Who has disconnected isn't told when that is done.
        EndNotTold,
        /// Whose peer has disconnected isn't told.
        PeerEndNotTold,
        /// What the gates tell of a pair's failure isn't noted.
        FailureNotNoted,
        /// Why the gates have failed a pair isn't noted if it was read before they told.
        ReadHidesFailure,
        /// Events that were lost are only counted.
        LostEventsForgotten,
        /// Whatever failed a pair whose event was lost, the peer isn't taken to have.
        LostCauseForgotten,
        /// A repeated request is one more request.
        RepetitionServed,
        /// Each repetition is answered, however many come at once.
        EveryRepetitionAnswered,
        /// Frames of peers raise epochs as far as they say.
        EpochsRaisedFreely,
        /// Generations start again with the firmware.
        GenerationsStartAgain,
        /// A copy of the persistent memory that isn't whole is read.
        TornCopyRead,
        /// A command that was given to the program before is carried out.
        RestartNotTold,
        /// The tables are as long as those of the largest card.
        SizesAssumed,
        /// A start has the number of the start before.
        StartNotCounted,
        /// The firmware starts over gates that are as somebody left them.
        GatesKept,
        /// The tag of a region is any.
        TagRepeats,
        /// All cards have the same tags one after the other.
        TagForeseen,
        /// The audit folds only what repeats its newest entry.
        AuditFoldsNewest,
        /// The audit forgets its oldest entry, whatever kind it is of.
        AuditForgetsOldest,
        /// A peer is silent for ever, and lives.
        SilenceForgiven,
        /// A silent peer isn't asked for a sign of life.
        LifeNotAskedFor,
        /// A peer that had failed comes back as if it hadn't.
        ReturnNotNoted,
        /// A pair whose peer has failed ends as if its link had.
        FailureEndsAsLink,
        /// A notice is sent once.
        NoticeNotRepeated,
        /// A repeated notice is carried out again.
        SignalRepeated,
        /// A signal is refused because its pair has ended before the gates have cut the peer off.
        EndSaidEarly,
        /// A question for a sign of life has the number of the notice before it, so that its answer is taken for that notice's.
        AliveNumbered,
        /// Whoever says that a peer has failed is believed.
        AnyoneBelieved,
        /// Endpoints are connected whatever jobs they are of.
        JobIgnored,
        /// A drain's coordinator that takes over proposes anew what may have been decided.
        DrainAcceptedForgotten,
        /// A member of a drain accepts a proposal of an earlier coordinator than it has reported to.
        DrainOldBallotHeard,
        /// A drain's coordinator proposes only the failures that it knows of itself.
        DrainUnionForgotten,
        /// A drain's coordinator proposes before all that live have flushed.
        DrainReportsNotAwaited,
        /// A drain's coordinator decides before all that live have accepted.
        DrainAcceptancesNotAwaited,
        /// A member of a drain accepts before its host has swept.
        DrainSweepNotAwaited,
        /// A peer's firmware isn't told that it hears of a drain for the first time.
        DrainNotAnnounced,
        /// A member of a drain is waited for however long it is silent.
        DrainSilenceForgiven,
        /// Who is agreed to have failed isn't cut off.
        DrainNamedKept,
        /// A later round says nothing of the one before.
        DrainOverForgotten,
        /// A host that has swept is told that its member waits again, so that another sweep that is asked for before may be told of as nothing new.
        DrainSweptIsNews,
        /// What a late answer says has been done to a rule is taken to be so.
        LateRuleBelieved,
        /// The group of a rule may have pairs of other endpoints.
        StrangersRuled,
        /// The rules of a closed endpoint keep their rows.
        RulesLeaked,
        /// A region is granted to the peer of a pair of another domain.
        StrangerGranted,
        /// A card to which all keys are any peer's makes one for a certain peer.
        SendersPretended,
        /// A grant may have rights that its region hasn't.
        GrantExceedsRights,
        /// A grant may reach beyond its region.
        GrantExceedsRegion,
        /// The tag of a remote key is known to whoever knows its row.
        KeysForeseen,
        /// The random source isn't tested.
        EntropyUntested,
        /// A revocation is answered before the gates have done it.
        RevokeAnsweredEarly,
        /// The gates aren't told for how long a grant lasts.
        GrantForEver,
        /// A fence is answered before the gates have done it.
        FenceEndsEarly,
        /// An answer that is late doesn't say what it waited for.
        UndrainedUnnamed,
        /// It names the region by its place.
        UndrainedByPlace,
        /// A peer's grants are revoked one after the other.
        RevokeWalks,
        /// A place of a pair gets its next generation while the gates have grants of an earlier one.
        GenerationsOverrun,
        /// What was granted to the peer of a pair stays when the pair has ended.
        GrantsOutlivePair,
        /// The grants of a region stay when it has gone.
        GrantsOutliveRegion,
        /// A grant that the gates have made for nobody any more stays.
        MintedUnasked,
        /// A key for one access that may have been used is revoked without a fence.
        SpentUnfenced,
        /// What a late answer says has been done to a grant is taken to be so.
        LateGrantBelieved,
        /// The time-out of a pair is the same however long the round trip is.
        RoundTripIgnored,
        /// What a peer took to answer is taken for its distance.
        AnswerTimeCounted,
        /// The gates of the side that accepts aren't told of the round trip, which it hears of last.
        AcceptorNotTimed,
        /// A host may choose any times.
        TimesUnbounded,
        /// The gates aren't told of times that the host chooses once they know the pair.
        TimesNotTold,
        /// Each peer that says that messages are revoked is kept and told to the host, whoever has said so before.
        RevocationToldAgain,
        /// One endpoint may have all places for revocations, and all rules.
        RevocationsUnshared,
        /// The gates aren't told what a peer says to be revoked.
        ToldRuleNotSet,
        /// A peer that isn't of a group may revoke its messages.
        StrangersBelieved,
        /// The host gets another rule, though a peer's word has set the same.
        ToldRuleNotTakenOver,
        /// The rule of a revocation that is forgotten stays.
        ForgottenRuleKept,
        /// What was told an endpoint stays when that is closed, and is told the next in its place.
        RevocationsOutlive,
        /// A pair is of the groups that the one before in its place was of.
        PlaceStaysMember,
        /// Of a limit of refusals, or a time of being shut out, that is too large, the low bits count.
        ShutOutUnbounded,
    }
}

/// The card as the firmware sees it.
pub trait Card {
    /// Starts a control request; `data` is one of the layouts of [`abi::control`], as words, and words that are missing are zero.
    /// Called only when [`control_result`](Self::control_result) has been `Some` since the last start.
    fn control_start(&mut self, operation: Operation, index: u16, data: &[u64]);

    /// The result of the last control request, once the gates have answered it; `Some` if there never was one.
    fn control_result(&mut self) -> Option<u64>;

    /// What the control request that is under way waits for; the default if it waits for nothing, or none is under way.
    fn control_report(&mut self) -> AccessReport;

    /// Starts a reset of the gates.
    fn reset_start(&mut self);

    /// Whether no reset of the gates is under way and their tables are clear.
    fn reset_done(&mut self) -> bool;

    /// Whether a frame may be sent.
    fn frame_out_is_free(&mut self) -> bool;

    /// Sends a frame. Called only when [`frame_out_is_free`](Self::frame_out_is_free).
    fn frame_send(&mut self, frame: &FrameWords);

    /// Takes the oldest frame for the firmware.
    fn frame_take(&mut self) -> Option<FrameWords>;

    /// Frames for the firmware that found no room. Wraps.
    fn frames_lost(&mut self) -> u32;

    /// Takes the oldest event of the gates.
    fn event_take(&mut self) -> Option<GateEvent>;

    /// Events of the gates that found no room. Wraps.
    fn events_lost(&mut self) -> u32;

    /// Cycles, modulo 2^32.
    fn now(&self) -> u32;

    /// A random word that nobody outside can foresee.
    fn random(&mut self) -> u32;

    /// Own Ethernet address; the least significant byte is first on the wire.
    fn mac(&self) -> u64;

    /// Sizes of the card.
    fn sizes(&self) -> Sizes;

    /// Reads a word of the persistent memory.
    fn persistent(&self, word: usize) -> u32;

    /// Writes a word of the persistent memory.
    fn set_persistent(&mut self, word: usize, value: u32);

    /// Told of each transition of a pair: for tests.
    fn transition(&mut self, _from: State, _cause: Cause, _to: State) {}

    /// Told of each change of what is thought of a peer: for tests.
    fn peer_transition(&mut self, _from: PeerState, _cause: PeerCause, _to: PeerState) {}

    /// Whether a promise is broken: for tests.
    fn is_broken(&self, _promise: Break) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::GateEvent;
    use abi::event::{Cause, NO_PAIR, Refusal};

    #[test]
    fn each_cause_becomes_what_the_firmware_tells_apart() {
        for &cause in Cause::ALL {
            let refusal = Refusal {
                key: 0x1234_5778,
                domain: 3,
                rights: 1,
                count: 9,
            };
            let event = GateEvent::new(cause.code(), 2, 7, refusal.to_info());
            let expected = match cause {
                Cause::LinkError
                | Cause::PeerFailed
                | Cause::UnexpectedOverflow
                | Cause::SlotError => {
                    let (endpoint, pair) = (2, 7);
                    GateEvent::PairFailed {
                        endpoint,
                        pair,
                        cause,
                        closed: cause == Cause::PeerFailed,
                    }
                }
                Cause::AccessRefused => GateEvent::AccessRefused(refusal),
                _ => GateEvent::Other {
                    cause: cause.code(),
                    pair: 7,
                },
            };
            assert_eq!(event, expected);
        }
        let unknown = GateEvent::new(0xff, 0, NO_PAIR, 0);
        let (cause, pair) = (0xff, NO_PAIR);
        assert_eq!(unknown, GateEvent::Other { cause, pair });
    }
}
