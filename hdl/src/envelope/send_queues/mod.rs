//! Sends wait here for credit and for their turn, go out many at a time, and stay known until the peer has acknowledged them.
//!
//! ```text
//!             refused ────────────────────────────────────────► complete
//!                │                                                 ▲
//!             ┌──┴─────── a run of the descriptors for each pair ──┴────────┐
//!   sends ───►│ waiting ─── turn, with ──► given ─── answered ──► unacknow- │
//!             │    ▲        a credit       │   ▲                   ledged   │
//!             └────┼───────────────────────┼───┼──────────────────────▲─────┘
//!                cancel                job ▼   │ job_result     progress, fault
//!                                         Gather
//! ```
//!
//! What is known of a pair is one word of memory: its state, where its run is, how many sends wait, and five running numbers. `taken` counts the credits
//! used; `safe` the sends that are safe at the peer; `acknowledged` those that have ended; `returned` the credits that came back ([`credit`]); `turn` is that
//! of the send of the next turn. Nothing else is counted, so nothing else can disagree. A put and a get take a number as a message does, and need no credit
//! for it. A send stands in one place of its pair's run from when it comes to when it ends ([`descriptors`]); a get, and what stands behind it, not before
//! its answer has come (`gets.rs`).
//!
//! Each step is done to one pair in four cycles: its pair is chosen, the pair's word is read, what follows from the word is weighed, and in the fourth
//! cycle the word is changed. A step begins every two cycles; one that names the same pair, or is of the same kind, waits until the one before is
//! decided: until then what that stands for is still on offer.
//!
//! ```text
//!   choose ──► reading ──► weighing ──► deciding ──► the pair's word, queue of turns, walk, completion
//!   choose.rs              weigh.rs     turns.rs, accept.rs, cancel.rs,                decide.rs, endings.rs
//!                                       progress.rs, pairs.rs, gets.rs, go_back.rs
//! ```
//!
//! A job is given only while Gather has room, so it is never on offer: a pair can end at any time, whatever the wire does. Answers come in
//! the order of the jobs. A frame gets its number when it begins, so a job that is refused leaves no hole; its send is taken out of the run, and those behind
//! it move up.
//!
//! A pair goes back to its first send that isn't safe when its peer misses one (`go_back.rs`): those that have left are given again before any
//! other, with their numbers. When its peer is silent it gives the last of them again, and no other. For answers that don't come it goes back to the
//! first get that waits for one, and gives again only gets that do.
//!
//! A fault completes all that the pair has, except jobs that are given for the first time: their buffers may still be read, so they complete when they are
//! answered. It waits for the answers of those that are given again, and `PairClear` for all; neither waits for the wire.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

mod accept;
pub mod breaks;
mod cancel;
mod checks;
mod choose;
mod credit;
mod decide;
mod descriptor;
mod descriptors;
mod endings;
mod gets;
mod go_back;
mod pairs;
mod progress;
mod remove;
mod turns;
mod walk;
mod weigh;

use credit::{Credit, Source, Weighed};
use descriptor::Descriptor;
use remove::Remove;
use walk::{Ended, Walk, Walker};

use crate::config::{Config, JOBS};
use crate::prelude::*;
use crate::prim::{BlockRam, Fifo, InOrder, Ram};
use crate::types::{
    Answered, Claim, Claimed, Completion, ControlRequest, Fault, FetchedSend, Mark, PairReport,
    PairSetup, Progress, Segments, SendJob, SendRequest, WriteCompletion,
};
use abi::control::Operation;
use abi::limits::EAGER_MAX;
use abi::request::{FLAG_ERRORS_ONLY, FLAG_INLINE, FLAG_READY};

/// Completions that wait to be taken.
const ENDED: usize = 8;

const _: () = assert!(EAGER_MAX < 1 << 11);
const _: () = assert!(
    FLAG_READY == 1 << 0 && FLAG_ERRORS_ONLY == 1 << 1 && FLAG_INLINE == 1 << 3,
    "the kernel takes these bits"
);

/// What is done to a pair, in the order of precedence.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Step {
    Nothing,
    /// A job's answer.
    Result,
    /// The pair has failed.
    Fault,
    /// It is set, cleared or read, or gets other times.
    Control,
    /// The answer of a get is in its buffer, or won't be.
    Answered,
    /// The answer of a get has come.
    Claim,
    /// A frame of the peer.
    Progress,
    /// The scan for time-outs comes by.
    Scan,
    /// It is the pair's turn to send.
    Turn,
    /// A send comes.
    Accept,
    /// A cancel comes.
    Cancel,
}

/// A job that Gather hasn't answered yet.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Given {
    pair: Bits<16>,
    /// It has been sent before.
    again: Bit,
    /// It is a get.
    get: Bit,
}

/// The sending side's queues of all pairs.
#[block(config: &Config)]
pub struct SendQueues {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous, active high.
    pub reset: Signal<In, Bit>,
    /// The table is cleared.
    pub initialized: Signal<Out, Bit>,
    /// Sends and cancels of the rings. Taken when it is queued or refused.
    pub sends: Stream<In, FetchedSend>,
    /// Completions of sends, and of cancels that were too late.
    pub complete: Stream<Out, WriteCompletion>,
    /// A reservation of this endpoint ends without a completion: a cancel was in time, or a send that completes only on error is safe.
    pub given_up: Pulse<Out, Bits<8>>,
    /// Gather has room for one more job. Knows of a job two cycles after it.
    pub job_room: Signal<In, Bit>,
    /// A send is to go out.
    pub job: Pulse<Out, SendJob>,
    /// The oldest job without an answer is answered: `Success` if its frame will be sent, unless its pair is dropped.
    pub job_result: Pulse<In, Bits<8>>,
    /// This pair sends nothing more of what has been given.
    pub dropped: Pulse<Out, Bits<16>>,
    /// Running numbers from a frame of the peer.
    pub progress: Stream<In, Progress>,
    /// The answer of a get has come. Answered in the cycle in which it is taken.
    pub claim: Stream<In, Claim>,
    /// Whether it may go to the get's buffer, and where that is.
    pub claimed: Pulse<Out, Claimed>,
    /// An answer that was claimed is in its buffer, or won't be.
    pub answered: Stream<In, Answered>,
    /// A pair is to ask its peer, or to answer it.
    pub mark: Stream<Out, Mark>,
    /// A pair is to be failed: with `LinkError` if its peer lies, with `PeerFailed` if it is silent, and with `LocalProtection` if a send
    /// can't be read again.
    pub fault_request: Stream<Out, Fault>,
    /// A pair has failed. Taken when its sends have completed, except those that are given.
    pub fault: Stream<In, Fault>,
    /// With `fault`: Delivery has finished with the pair, and no answer is on its way to a buffer of it. Until then the pair sends nothing, and nothing of it ends
    /// by the fault.
    pub delivery_done: Signal<In, Bit>,
    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,
    /// With it, for `PairRead`: the `PairReport`. Zero otherwise.
    pub control_result: Signal<Out, Bits<64>>,
    /// With the three pulses that follow: the pair.
    pub count_pair: Signal<Out, Bits<16>>,
    /// Pulse: a pair had no acknowledgement for its time-out, or no answer for [`ANSWER_TIMEOUTS`](abi::times::ANSWER_TIMEOUTS).
    pub count_timeouts: Signal<Out, Bit>,
    /// Pulse: a send is given again.
    pub count_repeats: Signal<Out, Bit>,
    /// Pulse: a pair asks its peer what credit there is, whether it is there, or, with `count_timeouts`, for answers again.
    pub count_asks: Signal<Out, Bit>,
    /// Pulse: a send is refused as malformed.
    pub count_invalid_requests: Signal<Out, Bit>,
    /// The numbers of a pair have changed.
    pub monitor_source_valid: Signal<Out, Bit>,
    /// The pair.
    pub monitor_source_pair: Signal<Out, Bits<16>>,
    /// Credits taken.
    pub monitor_source_taken: Signal<Out, Bits<32>>,
    /// Credits returned.
    pub monitor_source_returned: Signal<Out, Bits<32>>,
    /// A put or a get has taken a number, which needs no credit.
    pub monitor_source_put: Signal<Out, Bit>,
    /// A pair that is asked about.
    pub scheduled_pair: Signal<In, Bits<16>>,
    /// One cycle later: its turn comes. A frame of it will follow, unless it has ended, or its first is a message without credit.
    pub scheduled: Signal<Out, Bit>,

    // The pairs, and what is done to one of them.
    #[is(BlockRam::new(config.pairs))]
    sources: BlockRam<Source>,
    /// Of each pair, that it is in the queue of turns: what its word says, for others to read.
    #[is(Ram::new(config.pairs))]
    scheduled_pairs: Ram<Bit>,
    cleared: Reg<Bit>,
    clearing: Reg<Bits<16>>,
    reading: Reg<Step>,
    read_pair: Reg<Bits<16>>,
    weighing: Reg<Step>,
    deciding: Reg<Step>,
    /// Pair of the step that is weighed or decided, and its word.
    pair: Reg<Bits<16>>,
    source: Reg<Source>,
    weighed: Reg<Weighed>,
    chosen: Signal<Local, Step>,
    address: Signal<Local, Bits<16>>,
    may_choose: Signal<Local, Bit>,
    chooses: Signal<Local, Bit>,
    same_pair: Signal<Local, Bit>,
    ending_sends: Signal<Local, Bit>,
    hears: Signal<Local, Bit>,
    scans: Signal<Local, Bit>,
    weighed_alone: Signal<Local, Bit>,
    decided_alone: Signal<Local, Bit>,
    credit: Credit,
    /// Gets that have left and aren't answered, if what is offered as `answered` is.
    still_open: Signal<Local, Bits<16>>,
    answered_bit: Signal<Local, Bits<16>>,
    claim_bit: Signal<Local, Bits<16>>,
    claim_ahead: Signal<Local, Bits<32>>,
    is_live: Signal<Local, Bit>,
    is_awaited: Signal<Local, Bit>,
    is_claimed: Signal<Local, Bit>,
    in_range: Signal<Local, Bit>,
    is_sound: Signal<Local, Bit>,
    too_long: Signal<Local, Bit>,
    sound: Signal<Local, Bit>,
    has_credit: Signal<Local, Bit>,
    /// A put or a get that waits may go, if it is first.
    may_put: Signal<Local, Bit>,
    all_safe: Signal<Local, Bit>,
    source_next: Signal<Local, Source>,
    /// The word that is written, if one is, and whose it is.
    stored: Signal<Local, Source>,
    stored_pair: Signal<Local, Bits<16>>,
    stores: Signal<Local, Bit>,
    write: Signal<Local, Bit>,
    changed: Signal<Local, Bit>,
    fail: Signal<Local, Bit>,

    // Turns and jobs.
    #[is(Fifo::new(config.pairs))]
    turns: Fifo<Bits<16>>,
    /// The pair gets into the queue of turns.
    push: Signal<Local, Bit>,
    pushing: Reg<Bit>,
    pushed: Reg<Bits<16>>,
    turn_ready: Signal<Local, Bit>,
    given_has_room: Signal<Local, Bit>,
    /// The send of the turn is given, and is a put or a get.
    gives: Signal<Local, Bit>,
    gives_put: Signal<Local, Bit>,
    /// The send of the turn is a put or a get; it may be given if it hasn't left.
    is_put_turn: Signal<Local, Bit>,
    may_give: Signal<Local, Bit>,
    giving: Reg<Bit>,
    settling: Reg<Bit>,
    job_pair: Reg<Bits<16>>,
    job_domain: Reg<Bits<8>>,
    job_send: Reg<Descriptor>,
    job_ready: Signal<Local, Bit>,
    job_put: Signal<Local, Bit>,
    job_get: Signal<Local, Bit>,
    job_inline: Signal<Local, Bit>,
    job_tail: Signal<Local, Bits<32>>,
    job_segments: Signal<Local, Segments>,
    job_again: Reg<Bit>,
    job_number: Reg<Bits<32>>,
    /// The turn is of a send that hasn't left.
    is_first: Signal<Local, Bit>,
    goes_on: Signal<Local, Bit>,
    #[is(InOrder::new(JOBS, JOBS))]
    given: InOrder<Given, Bits<8>>,
    /// Jobs that Gather hasn't answered.
    owed: Reg<Bits<16>>,
    owed_next: Signal<Local, Bits<16>>,
    result_ready: Signal<Local, Bit>,
    no_result: Signal<Local, Bit>,
    refused_by_gather: Signal<Local, Bit>,
    taken_back: Signal<Local, Bits<32>>,
    answer_ends: Signal<Local, Bit>,

    // The descriptors, and what is taken out of them.
    #[is(BlockRam::new(config.descriptors))]
    descriptors: BlockRam<Descriptor>,
    tail: Signal<Local, Bits<8>>,
    write_number: Signal<Local, Bits<8>>,
    written: Signal<Local, Descriptor>,
    turn_number: Signal<Local, Bits<32>>,
    read_number: Signal<Local, Bits<8>>,
    read_by_step: Signal<Local, Bit>,
    walk_reads: Signal<Local, Bit>,
    remove: Remove,
    takes_out: Signal<Local, Bit>,
    removed_status: Reg<Bits<8>>,

    // Sends and cancels that come.
    request: Signal<Local, SendRequest>,
    flags: Signal<Local, Bits<8>>,
    is_cancel: Signal<Local, Bit>,
    is_put: Signal<Local, Bit>,
    is_get: Signal<Local, Bit>,
    is_own_pair: Signal<Local, Bit>,
    accept_ready: Signal<Local, Bit>,
    accepted: Signal<Local, Descriptor>,
    /// Address and key of the buffer, or the bytes of the payload in their place.
    at: Signal<Local, Bits<64>>,
    key: Signal<Local, Bits<32>>,
    behind: Signal<Local, Segments>,
    queues: Signal<Local, Bit>,
    refusal: Signal<Local, Bits<8>>,
    cancelled: Signal<Local, Bit>,
    in_time: Signal<Local, Bit>,
    counts_down: Signal<Local, Bit>,
    too_late: Signal<Local, Bit>,
    moves_up: Signal<Local, Bit>,

    // Sends that are given again.
    patience: Signal<Local, Bits<32>>,
    timeouts_over: Signal<Local, Bits<32>>,
    doublings: Signal<Local, Bits<2>>,
    doublings_learned: Signal<Local, Bits<2>>,
    is_learned: Signal<Local, Bit>,
    behind_latest: Signal<Local, Bits<8>>,
    latest: Signal<Local, Bits<32>>,
    last_try: Signal<Local, Bit>,
    is_unreadable: Signal<Local, Bit>,
    /// The pair goes back over what has left.
    is_back: Signal<Local, Bit>,
    repeats_left: Signal<Local, Bit>,
    passes_turn: Signal<Local, Bit>,
    turn_low: Signal<Local, Bits<8>>,
    behind_turn: Signal<Local, Bits<8>>,
    turn_bit: Signal<Local, Bits<16>>,
    passed_over: Signal<Local, Bit>,
    held: Signal<Local, Bits<8>>,
    full: Signal<Local, Bit>,
    /// Some of the pair are being given again.
    is_repeated: Signal<Local, Bit>,
    heard: Signal<Local, Bit>,
    tells_gap: Signal<Local, Bit>,
    hears_gap: Signal<Local, Bit>,
    /// Behind what the peer says is safe others have left. So it has taken what is in front of the one that was given again: that was in vain.
    some_stay: Signal<Local, Bit>,
    answers_probe: Signal<Local, Bit>,
    learns: Signal<Local, Bit>,
    forgets: Signal<Local, Bit>,
    probes: Signal<Local, Bit>,
    tries: Signal<Local, Bits<4>>,
    gives_up: Signal<Local, Bit>,
    tries_again: Signal<Local, Bit>,
    goes_back: Signal<Local, Bit>,
    back_to: Signal<Local, Bits<32>>,
    /// What the peer says, an answer of a get, or the pair's fault, is looked at again after the next answer of a job.
    progress_waits: Reg<Bit>,
    answered_waits: Reg<Bit>,
    fault_waits: Reg<Bit>,

    // Gets that have left.
    left_bit: Signal<Local, Bits<16>>,
    opens: Signal<Local, Bit>,
    fits: Signal<Local, Bit>,
    takes_claim: Signal<Local, Bit>,
    outcome: Signal<Local, Bits<2>>,
    is_answered: Signal<Local, Bit>,
    hears_answer: Signal<Local, Bit>,
    /// What has ended at the peer's or the answer's word ends here.
    ends_safe: Signal<Local, Bit>,
    /// What is acknowledged then.
    acknowledged: Signal<Local, Bits<32>>,

    // What ends.
    walker: Walker,
    walk: Signal<Local, Walk>,
    walk_from: Signal<Local, Bits<8>>,
    walk_sent: Signal<Local, Bits<8>>,
    walk_given: Signal<Local, Bits<8>>,
    walk_waiting: Signal<Local, Bits<8>>,
    walks: Signal<Local, Bit>,
    /// The walk is of a fault or of a control request, which end when the completions of these have been taken.
    for_fault: Reg<Bit>,
    for_control: Reg<Bit>,
    flushes: Signal<Local, Bit>,
    draining: Reg<Bit>,
    drain: Reg<Bits<16>>,
    drained: Signal<Local, Bit>,
    walk_busy: Signal<Local, Bit>,
    #[is(Fifo::new(ENDED))]
    ended: Fifo<Ended>,
    ends: Signal<Local, Bit>,
    ending: Signal<Local, Ended>,
    ended_has_room: Signal<Local, Bit>,
    ended_leaves: Signal<Local, Bit>,
    completion: Signal<Local, Completion>,

    // Time, questions and failures.
    now: Reg<Bits<32>>,
    scan: Reg<Bits<16>>,
    scan_due: Reg<Bit>,
    quiet_for: Signal<Local, Bits<32>>,
    last_tick: Signal<Local, Bits<32>>,
    late: Signal<Local, Bit>,
    silent: Signal<Local, Bit>,
    asks: Signal<Local, Bit>,
    is_dry: Signal<Local, Bit>,
    owes_answers: Signal<Local, Bit>,
    asks_again: Signal<Local, Bit>,
    answers: Signal<Local, Bit>,
    /// A frame of a peer was the last thing chosen: others go first.
    progress_last: Reg<Bit>,
    others: Signal<Local, Bit>,
    progress_ready: Signal<Local, Bit>,
    answered_ready: Signal<Local, Bit>,
    claim_ready: Signal<Local, Bit>,
    scan_ready: Signal<Local, Bit>,
    held_back: Signal<Local, Bit>,
    mark_pending: Reg<Bit>,
    mark_held: Reg<Mark>,
    fault_pending: Reg<Bit>,
    fault_pair: Reg<Bits<16>>,
    fault_status: Reg<Bits<8>>,
    fail_status: Signal<Local, Bits<8>>,
    asked_fault: Signal<Local, Fault>,
    fault_ready: Signal<Local, Bit>,

    // Control.
    setup: Signal<Local, PairSetup>,
    setup_timeout: Signal<Local, Bits<5>>,
    setup_retries: Signal<Local, Bits<4>>,
    run_first: Signal<Local, Bits<16>>,
    run_length: Signal<Local, Bits<8>>,
    run_before: Signal<Local, Bits<8>>,
    run_last: Signal<Local, Bits<6>>,
    report: Signal<Local, PairReport>,
    is_set: Signal<Local, Bit>,
    is_read: Signal<Local, Bit>,
    is_times: Signal<Local, Bit>,
    ends_pair: Signal<Local, Bit>,
    control_ready: Signal<Local, Bit>,
    /// The pair of the control request has jobs given: it is looked at again after the next answer.
    awaits_result: Reg<Bit>,
    stops: Signal<Local, Bit>,
    stops_for_progress: Signal<Local, Bit>,
    /// A turn of the pair whose progress waits came to nothing.
    turn_stopped: Reg<Bit>,
    has_given: Signal<Local, Bit>,

    // What must hold, and what it is compared with.
    /// Jobs whose answers haven't been worked in.
    unsettled: Reg<Bits<8>>,
    unsettled_next: Signal<Local, Bits<8>>,
    /// Place of the send that was given last, and of how many answers its own is the last.
    latest_place: Reg<Bits<16>>,
    latest_unsettled: Reg<Bits<8>>,
    in_use_before: Signal<Local, Bits<32>>,
    in_use_next: Signal<Local, Bits<32>>,
    unacknowledged_next: Signal<Local, Bits<32>>,
    returnable_next: Signal<Local, Bits<32>>,
    sent_next: Signal<Local, Bits<32>>,
    turn_next: Signal<Local, Bits<32>>,
    held_next: Signal<Local, Bits<8>>,
    run_end: Signal<Local, Bits<8>>,
    what_is_sent_again_is_unacknowledged: Check,
    credits_used_are_within_the_grant: Check,
    returned_acknowledged_taken_are_in_order: Check,
    a_pair_has_one_turn_at_a_time: Check,
    sends_fit_the_run_of_their_pair: Check,
    only_a_job_is_answered: Check,
    what_ends_has_room: Check,
    one_reservation_is_given_up_at_a_time: Check,
    no_pair_tries_more_often_than_it_may: Check,
    no_send_ends_while_it_is_read: Check,

    #[is(constant(config.pairs as u64))]
    pairs: Constant<Bits<16>>,
    #[is(constant(config.pairs as u64 - 1))]
    last_pair: Constant<Bits<16>>,
    #[is(config.descriptors)]
    _descriptors: usize,
}

impl SendQueues {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = &[
        Operation::PairSet,
        Operation::PairClear,
        Operation::PairRead,
        Operation::PairTimes,
    ];

    /// The queues of a card.
    ///
    /// # Panics
    /// If the number of descriptors is no power of two.
    pub fn new(config: &Config) -> Self {
        assert!(config.descriptors.is_power_of_two());
        Self::build(config)
    }
}

#[block(pairs = self.pairs.val().index(), descriptors = self._descriptors)]
impl Logic for SendQueues {
    fn update(&mut self) {
        self.initialized.next = self.cleared.q.val();
        self.look();
        self.choose();
        self.weigh();
        self.begin();
        self.take_result();
        self.fail_pair();
        self.serve();
        self.open_get();
        self.take_claim();
        self.hear();
        self.take_answer();
        self.end_safe();
        self.look_at_time();
        self.go_back();
        self.take_turn();
        self.accept();
        self.take_out();
        self.write_pair();
        self.keep();
        self.give();
        self.end();
        self.ask();
        self.check();
        self.check_latest();
    }
}
