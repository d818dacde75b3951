//! The arithmetic of a pair's credits: what follows from three running numbers, and what the peer's numbers change. It keeps nothing.
//!
//! ```text
//!   returned ≤ safe ≤ sent ≤ taken,   taken + count ≤ acknowledged + length of the run
//!   acknowledged ≤ safe
//!   └───── unacknowledged ────┘     │
//!   └──────────── window ───────────┘
//! ```
//!
//! A send is given while the window is smaller than `MAX_UNACKNOWLEDGED`, and a message while also less than what the peer grants is in use: `taken` − `returned`.
//! So only puts and gets take more than is granted. What is safe and not acknowledged stands behind an open get; without gets, the two numbers are one.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use crate::config::JOBS;
use crate::prelude::*;
use crate::types::Progress;
use abi::limits::{MAX_CREDITS, MAX_UNACKNOWLEDGED};
use abi::times::{ANSWER_TIMEOUTS, RETRY_LIMIT_MOST, TIMEOUT_LOG2_MOST};

/// What a get may end with but `Success`, as the two bits that are kept of it.
pub(super) const REMOTE_ACCESS: u64 = 1;
pub(super) const ACCESS_DENIED: u64 = 2;
pub(super) const MEMORY_ERROR: u64 = 3;

/// Sends that may be unacknowledged.
const WINDOW: usize = MAX_UNACKNOWLEDGED as usize;

const _: () = assert!(
    WINDOW == 16,
    "the kernel takes the lowest four bits of a number"
);
const _: () = assert!(JOBS < 1 << 5 && MAX_CREDITS < 1 << 7, "widths below");
const _: () = assert!(
    TIMEOUT_LOG2_MOST < 1 << 5 && RETRY_LIMIT_MOST < 1 << 4 && ANSWER_TIMEOUTS <= 1 << 3,
    "widths below"
);

/// What is known of a pair: 377 bits, and eleven block memories side by side have 396.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Source {
    pub connected: Bit,
    pub failed: Bit,
    /// Its failure has been asked for.
    pub failing: Bit,
    /// A send of it can't be read again: its failure is to be asked for.
    pub unreadable: Bit,
    /// It stands in the queue of turns.
    pub queued: Bit,
    /// What its sends complete with once it has failed.
    pub status: Bits<8>,
    pub endpoint: Bits<8>,
    pub domain: Bits<8>,
    /// Envelopes that the peer grants: `MAX_CREDITS` at most.
    pub granted: Bits<7>,
    /// First place of its run of the descriptors, and the length less one.
    pub first: Bits<16>,
    pub last: Bits<6>,
    /// Sends waiting.
    pub count: Bits<8>,
    /// One of them may be a put or a get: since none waited, one has come.
    pub may_put: Bit,
    /// Jobs that aren't answered yet: of sends that have their first turn, and of those that are given again.
    pub given: Bits<8>,
    pub repeats: Bits<5>,
    /// Number of the send that is given next: `taken`, unless the pair goes back over its unacknowledged sends.
    pub turn: Bits<32>,
    /// Log2 of its time-out, and the times that it goes back before it fails.
    pub timeout_log2: Bits<5>,
    pub retry_limit: Bits<4>,
    /// Times that it has gone back, or asked, since it heard of something.
    pub tries: Bits<4>,
    /// At a time-out it has given only the last that has left again, or is about to, and has heard of nothing since.
    pub probed: Bit,
    /// Log2 of how many times its time-out it waits first for what isn't safe: going back at the time-out had been in vain.
    pub learned: Bits<2>,
    /// Credits taken.
    pub taken: Bits<32>,
    /// Sends that have ended.
    pub acknowledged: Bits<32>,
    /// Sends that are safe at the peer.
    pub safe: Bits<32>,
    /// Bit k: send `safe` − 1 − k was refused.
    pub refused: Bits<16>,
    /// By the lowest bits of a number: it is a get that has left and isn't answered; and its answer may be claimed.
    pub open: Bits<16>,
    pub awaited: Bits<16>,
    /// What answered gets end with.
    pub ends_low: Bits<16>,
    pub ends_high: Bits<16>,
    /// Credits that came back.
    pub returned: Bits<32>,
    /// When something last became unacknowledged or acknowledged, an answer came, the pair last got into the queue of turns (unless it waits for credit or has just
    /// had its turn), or the peer was asked.
    pub since: Bits<32>,
    /// Time-outs since an answer last came or was asked for again, in which the peer had all and owed answers.
    pub quiet: Bits<3>,
    /// Times that answers were asked for again since one last came.
    pub asked_again: Bits<4>,
    /// An answer has come of a get behind the first that waits for one.
    pub overtaken: Bit,
    /// It goes back for answers, and not for what the peer misses.
    pub for_answers: Bit,
}

/// What follows from a pair's word, and from what is offered to it: a cycle old.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Weighed {
    /// The card has such a pair.
    pub in_range: Bit,
    /// It is connected, and of the endpoint whose send or cancel is on offer.
    pub own: Bit,
    /// It is connected, and neither has failed nor is about to.
    pub sound: Bit,
    /// It is sound, and nothing has moved for the time-out; and then, whether its peer or its wire owes something, or the peer is to be asked.
    pub late: Bit,
    pub silent: Bit,
    pub asks: Bit,
    /// Number of the last send that has left.
    pub latest: Bits<32>,
    /// The peer has all that has left, and owes answers; and these are to be asked for again.
    pub owes_answers: Bit,
    pub asks_again: Bit,
    /// It hasn't failed, and a send of it can't be read again.
    pub unreadable: Bit,
    /// It has tried so often that the next time-out fails it.
    pub last_try: Bit,
    /// It goes back,
    pub goes_back: Bit,
    /// and there is a send that hasn't been given again.
    pub repeats_left: Bit,
    /// That needn't be: the peer has the send, and no answer of it is asked for.
    pub passed_over: Bit,
    /// The peer's numbers pass the send that is given next.
    pub passes_turn: Bit,
    /// Its run is full.
    pub full: Bit,
    /// The send on offer is longer than `EAGER_MAX`.
    pub too_long: Bit,
    /// See [`Credit`].
    pub sent: Bits<32>,
    pub unacknowledged: Bits<8>,
    pub in_use: Bits<8>,
    pub has_one: Bit,
    pub has_two: Bit,
    /// A put or a get may be given, and one more behind it.
    pub room_one: Bit,
    pub room_two: Bit,
    pub safe: Bits<32>,
    /// `safe` moves.
    pub hears_more: Bit,
    /// `acknowledged` moves, by so many, and so many stay that are safe.
    pub ends_some: Bit,
    pub newly: Bits<8>,
    pub behind: Bits<8>,
    /// The claim on offer is of a get of the pair that waits for its answer.
    pub awaits: Bit,
    /// The answer on offer is of an open get of the pair, and was claimed.
    pub is_open: Bit,
    pub returned: Bits<32>,
    /// `returned` moves.
    pub gets_credit: Bit,
    pub lies: Bit,
}

/// The arithmetic.
#[block]
pub(super) struct Credit {
    pub source: Signal<In, Source>,
    /// What a frame of the peer says, if it is heard.
    pub progress: Signal<In, Progress>,
    pub hears: Signal<In, Bit>,
    /// Gets that are open now.
    pub open: Signal<In, Bits<16>>,
    /// Sends that have left, or will whatever happens.
    pub sent: Signal<Out, Bits<32>>,
    pub unacknowledged: Signal<Out, Bits<8>>,
    /// Those of them that aren't safe.
    pub on_their_way: Signal<Out, Bits<8>>,
    pub in_use: Signal<Out, Bits<8>>,
    /// A message may be given, and one more behind it.
    pub has_one: Signal<Out, Bit>,
    pub has_two: Signal<Out, Bit>,
    /// One more may be unacknowledged, and another behind it: as many as a frame tells outcomes of, and bits of gets are kept of.
    pub room_one: Signal<Out, Bit>,
    pub room_two: Signal<Out, Bit>,
    /// `safe` and `returned` as the peer's frame leaves them.
    pub safe: Signal<Out, Bits<32>>,
    pub returned: Signal<Out, Bits<32>>,
    /// `safe` moves.
    pub hears_more: Signal<Out, Bit>,
    /// `acknowledged` moves, as that and the open gets leave it, by so many, and so many stay that are safe.
    pub ends_some: Signal<Out, Bit>,
    pub newly: Signal<Out, Bits<8>>,
    pub behind: Signal<Out, Bits<8>>,
    /// `returned` moves.
    pub gets_credit: Signal<Out, Bit>,
    /// What ends passes the send that is given next.
    pub passes_turn: Signal<Out, Bit>,
    /// The peer's numbers can't be true.
    pub lies: Signal<Out, Bit>,
    window: Signal<Local, Bits<8>>,
    // Messages that hold an envelope if the acknowledged number moves on: with the credit of the peer's frame, and with that of before.
    held_returned: Signal<Local, Bits<8>>,
    held_kept: Signal<Local, Bits<8>>,
    holds_more: Signal<Local, Bit>,
    // What the peer acknowledges has left; the credit that it returns is of what it acknowledges.
    moves_on: Signal<Local, Bit>,
    credits_fit: Signal<Local, Bit>,
    ahead: Signal<Local, Bits<32>>,
    credit_ahead: Signal<Local, Bits<32>>,
    // What is safe and not returned: before the peer's frame, and if all that it says is so.
    room_before: Signal<Local, Bits<8>>,
    room_after: Signal<Local, Bits<8>>,
    // Sends that end if no get is open, and those in front of the first open get.
    safe_before: Signal<Local, Bits<8>>,
    safe_after: Signal<Local, Bits<8>>,
    safe_now: Signal<Local, Bits<8>>,
    open_twice: Signal<Local, Bits<32>>,
    open_from_first: Signal<Local, Bits<16>>,
    first_open: Signal<Local, Bits<8>>,
    // Those in front of the send that is given next.
    before_turn: Signal<Local, Bits<8>>,
}

#[block]
impl Logic for Credit {
    fn update(&mut self) {
        self.sent.next = self.source.val().taken - bit_cast::<32, 8>(self.source.val().given);
        // No two of the numbers are further apart than `MAX_SENDS`: of their differences the low bits say all.
        self.unacknowledged.next = self.source.val().taken.get_bits::<8>(0)
            - self.source.val().acknowledged.get_bits::<8>(0)
            - self.source.val().given;
        self.on_their_way.next = self.source.val().taken.get_bits::<8>(0)
            - self.source.val().safe.get_bits::<8>(0)
            - self.source.val().given;
        self.in_use.next =
            self.source.val().taken.get_bits::<8>(0) - self.source.val().returned.get_bits::<8>(0);
        self.window.next = self.source.val().taken.get_bits::<8>(0)
            - self.source.val().acknowledged.get_bits::<8>(0);
        self.room_one.next = self.window.val() < MAX_UNACKNOWLEDGED;
        self.room_two.next = self.window.val() + 1 < MAX_UNACKNOWLEDGED;
        self.has_one.next =
            self.room_one.val() & (self.in_use.val() < bit_cast::<8, 7>(self.source.val().granted));
        self.has_two.next = self.room_two.val()
            & (self.in_use.val() + 1 < bit_cast::<8, 7>(self.source.val().granted));

        // From what is known up to what can be true the peer's numbers move on, from before that they are late, and anything else is a lie. Whatever
        // depends on whether they move on is worked out for both.
        self.ahead.next = self.progress.val().acknowledge - self.source.val().safe;
        self.credit_ahead.next = self.progress.val().credit - self.source.val().returned;
        self.room_before.next =
            self.source.val().safe.get_bits::<8>(0) - self.source.val().returned.get_bits::<8>(0);
        self.room_after.next = self.progress.val().acknowledge.get_bits::<8>(0)
            - self.source.val().returned.get_bits::<8>(0);
        self.safe_before.next = self.source.val().safe.get_bits::<8>(0)
            - self.source.val().acknowledged.get_bits::<8>(0);
        self.safe_after.next = self.progress.val().acknowledge.get_bits::<8>(0)
            - self.source.val().acknowledged.get_bits::<8>(0);
        self.moves_on.next = self.ahead.val() <= bit_cast::<32, 8>(self.on_their_way.val());
        self.safe.next = self.source.val().safe;
        self.safe_now.next = self.safe_before.val();
        self.credits_fit.next =
            self.credit_ahead.val() <= bit_cast::<32, 8>(self.room_before.val());
        if self.moves_on.val() {
            self.credits_fit.next =
                self.credit_ahead.val() <= bit_cast::<32, 8>(self.room_after.val());
        }
        if self.moves_on.val() & self.hears.val() {
            self.safe.next = self.progress.val().acknowledge;
            self.safe_now.next = self.safe_after.val();
        }
        self.hears_more.next = self.moves_on.val() & self.ahead.val().any();
        // What is safe ends, up to the first open get.
        self.open_twice.next = bit_cast::<32, 16>(self.open.val())
            | (bit_cast::<32, 16>(self.open.val()) << MAX_UNACKNOWLEDGED);
        self.open_from_first.next = (self.open_twice.val()
            >> self.source.val().acknowledged.get_bits::<4>(0))
        .get_bits::<16>(0);
        self.first_open.next = MAX_UNACKNOWLEDGED.into();
        for k in 0..WINDOW {
            if self.open_from_first.val().get_bit(WINDOW - 1 - k) {
                self.first_open.next = (WINDOW - 1 - k).to_bits();
            }
        }
        self.before_turn.next = self.source.val().turn.get_bits::<8>(0)
            - self.source.val().acknowledged.get_bits::<8>(0);
        self.newly.next = self.safe_now.val();
        self.behind.next = 0.into();
        self.passes_turn.next = self.safe_now.val() >= self.before_turn.val();
        if self.first_open.val() < self.safe_now.val() {
            // What follows of `newly`, but beside the comparison and not behind it.
            self.newly.next = self.first_open.val();
            self.behind.next = self.safe_now.val() - self.first_open.val();
            self.passes_turn.next = self.first_open.val() >= self.before_turn.val();
        }
        self.ends_some.next = self.newly.val().any();
        self.returned.next = self.source.val().returned;
        if self.credits_fit.val() {
            self.returned.next = self.progress.val().credit;
        }
        self.gets_credit.next = self.credits_fit.val() & self.credit_ahead.val().any();
        // No more messages hold an envelope than were granted: a put's number comes back with its acknowledgement.
        self.held_returned.next = self.progress.val().acknowledge.get_bits::<8>(0)
            - self.progress.val().credit.get_bits::<8>(0);
        self.held_kept.next = self.room_after.val();
        self.holds_more.next = self.moves_on.val()
            & ((self.credits_fit.val()
                & (self.held_returned.val() > bit_cast::<8, 7>(self.source.val().granted)))
                | (!self.credits_fit.val()
                    & (self.held_kept.val() > bit_cast::<8, 7>(self.source.val().granted))));
        self.lies.next = self.holds_more.val()
            | (!self.moves_on.val() & !self.ahead.val().get_bit(31))
            | (!self.credits_fit.val() & !self.credit_ahead.val().get_bit(31));
    }
}
