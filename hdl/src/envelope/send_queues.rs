//! Sends wait here for credit and for their turn, go out one after the other, and stay known until
//! the peer has acknowledged them.
//!
//! ```text
//!             refused ──────────────────────────────────► complete
//!                │                                          ▲ ▲
//!             ┌──┴────────────┐ turn ┌─────┐ sent ┌─────────┴─┴─┐
//!   sends ───►│ waiting (a    ├─────►│ job ├─────►│ unacknow-   │
//!             │ queue a pair) │ with │ (1) │      │ ledged (a   │
//!             └───────────────┘credit└──▲──┘      │ queue a pair│
//!                                 job_  │         └─────▲───────┘
//!                                 result┘         progress, fault
//! ```
//!
//! What is known of a pair is one word of memory: the counts of its two queues and three running
//! numbers. `taken` counts the credits used, and so is the number of the pair's next frame;
//! `acknowledged` counts the sends that are safe at the peer; `returned` counts the credits that came
//! back. Always `returned ≤ acknowledged ≤ taken ≤ returned + granted`, so a difference of two of
//! them is a count and nothing else has to be kept consistent.
//!
//! One thing is done at a time: its pair's word is read, and in the next cycle changed. Pairs
//! that have both a waiting send and a credit stand in a queue of turns, each once, and go to its end
//! after each job, so that turns are fair and a pair without credit costs nobody anything.
//!
//! A cancel walks the pair's queue. It takes its send out and moves those behind it up, so that their
//! order stays; the send completes, and the cancel's own completion is released. A send that has had its
//! turn isn't in the queue any more, and the cancel is too late.
//!
//! With the number of sends that are safe at the peer comes a window on the latest of them: which it has refused, since they were ready sends
//! and found no receive. At most `MAX_CREDITS` sends are unacknowledged, and so many the window shows, so that it tells of each send that the
//! number acknowledges, however many frames before this one were lost.
//!
//! A fault completes all that the pair has, except a job that is with the transmitter: its buffer may
//! still be read, so it completes when the transmitter answers. A fault therefore never waits for
//! the transmitter, and `PairClear` does.

use crate::config::Config;
use crate::construct::construct;
use crate::prelude::*;
use crate::prim::{Fifo, Ram};
use crate::types::{
    CardSetup, Completion, ControlRequest, Fault, FetchedSend, Mark, PairReport, PairSetup,
    Progress, SendJob, SendRequest, WriteCompletion,
};
use abi::control::Operation;
use abi::limits::{EAGER_MAX, MAX_CREDITS, SEND_QUEUE_DEPTH};
use abi::mailbox::PairState;
use abi::request::{FLAG_READY, Opcode};
use abi::status::Status;

/// Cycles between two pairs of the scan for time-outs. A power of two.
pub const SCAN_CYCLES: u32 = 64;

/// Breaks the block on purpose, so that a test can show that it would notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, LogicState)]
pub enum SendQueuesMutation {
    /// As designed.
    None,
    /// A pair takes its turn without a credit.
    CreditNotNeeded,
    /// A returned credit counts twice.
    CreditReturnedTwice,
    /// A job that was refused keeps its credit.
    RefusedKeepsCredit,
    /// Numbers that run ahead are believed.
    NumbersNotChecked,
    /// A pair that gets a credit isn't given a turn.
    TurnForgotten,
    /// A fault leaves the waiting sends.
    WaitingNotFlushed,
    /// A fault completes the job that is with the transmitter, which answers it once more.
    JobFlushedEarly,
    /// Acknowledged sends complete from the next one on.
    CompletesFromNext,
    /// Silence of the peer is not noticed.
    NeverTimesOut,
    /// A cancelled send goes out nevertheless.
    CancelledSendStays,
    /// The sends behind a cancelled one are not moved up.
    GapLeftByCancel,
    /// A cancel that was in time says that it was too late as well.
    CancelSaysTooLate,
    /// An endpoint may cancel another's send.
    AnyoneCancels,
    /// Refusals are not counted.
    RefusalsNotCounted,
    /// A pair whose sends wait for a credit that was lost on its way never asks for it.
    NeverAsks,
    /// A peer that asks isn't answered.
    NeverAnswers,
    /// A send that the peer refused completes as if it had been delivered.
    RefusalUnheard,
    /// A ready send goes out as any other.
    ReadyForgotten,
}

/// What is known of a pair.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Source {
    connected: Bit,
    failed: Bit,
    /// Its failure has been asked for.
    failing: Bit,
    /// It stands in the queue of turns.
    queued: Bit,
    /// What its sends complete with once it has failed.
    status: Bits<8>,
    endpoint: Bits<8>,
    domain: Bits<8>,
    /// Envelopes that the peer grants.
    granted: Bits<8>,
    /// Place of the oldest waiting send.
    head: Bits<8>,
    /// Sends waiting.
    count: Bits<8>,
    taken: Bits<32>,
    acknowledged: Bits<32>,
    returned: Bits<32>,
    /// When something last became unacknowledged or acknowledged, or the peer was asked.
    since: Bits<32>,
}

/// A waiting send.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Waiting {
    context: Bits<16>,
    /// At most `EAGER_MAX`; and its bit makes room for the next field, so that a word is as wide as block memories are.
    length: Bits<15>,
    /// It is to find a receive posted.
    ready: Bit,
    request: Bits<32>,
    key: Bits<32>,
    match_bits: Bits<64>,
    immediate: Bits<64>,
    address: Bits<64>,
}

/// What is left of a send that is on its way: enough to complete it.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Sent {
    request: Bits<32>,
    context: Bits<16>,
    length: Bits<16>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// The table is being cleared.
    Clear,
    /// Choosing what to do.
    Idle,
    /// The job's answer: its pair has been read.
    Result,
    /// A fault's pair has been read.
    Fault,
    /// A control request's pair has been read.
    Control,
    /// The pair of a progress has been read.
    Progress,
    /// The scan's pair has been read.
    Scan,
    /// The pair whose turn it is has been read.
    Turn,
    /// The send has been read.
    Load,
    /// A request's pair has been read.
    Accept,
    /// A cancel: the next waiting send is being read.
    CancelRead,
    /// It is compared, or moved up.
    CancelLook,
    /// The queue has been walked.
    CancelDone,
    /// The next unacknowledged send is being read.
    SentRead,
    /// It is completed.
    SentComplete,
    /// The next waiting send is being read.
    WaitingRead,
    /// It is completed.
    WaitingComplete,
    /// All of the pair is completed.
    Done,
}

/// The sending side's queues of all pairs.
#[derive(LogicBlock)]
pub struct SendQueues {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// Which contract to break; there in [`Self::mutable`] only.
    pub mutation: Vec<Signal<In, SendQueuesMutation>>,
    /// The table is cleared.
    pub initialized: Signal<Out, Bit>,
    /// There is a send.
    pub sends_valid: Signal<In, Bit>,
    /// It is queued or refused.
    pub sends_ready: Signal<Out, Bit>,
    /// The send.
    pub sends: Signal<In, FetchedSend>,
    /// A send is complete.
    pub complete_valid: Signal<Out, Bit>,
    /// Its completion is taken.
    pub complete_ready: Signal<In, Bit>,
    /// The completion.
    pub complete: Signal<Out, WriteCompletion>,
    /// Pulse: a cancel was in time, so its own completion isn't needed.
    pub release_valid: Signal<Out, Bit>,
    /// Endpoint of the cancel.
    pub release_endpoint: Signal<Out, Bits<8>>,
    /// A send is to go out.
    pub job_valid: Signal<Out, Bit>,
    /// It is taken.
    pub job_ready: Signal<In, Bit>,
    /// The send, with its number.
    pub job: Signal<Out, SendJob>,
    /// Pulse: the job that was taken is answered.
    pub job_result_valid: Signal<In, Bit>,
    /// With it: `Success` if its frame will be sent.
    pub job_status: Signal<In, Bits<8>>,
    /// There is progress of a pair's sends.
    pub progress_valid: Signal<In, Bit>,
    /// It is taken.
    pub progress_ready: Signal<Out, Bit>,
    /// Running numbers from a frame of the peer.
    pub progress: Signal<In, Progress>,
    /// A pair is to ask its peer, or to answer it.
    pub mark_valid: Signal<Out, Bit>,
    /// It will.
    pub mark_ready: Signal<In, Bit>,
    /// The pair, and which of both.
    pub mark: Signal<Out, Mark>,
    /// A pair is to be failed.
    pub fault_request_valid: Signal<Out, Bit>,
    /// The request is taken.
    pub fault_request_ready: Signal<In, Bit>,
    /// The pair, with `LinkError`.
    pub fault_request: Signal<Out, Fault>,
    /// A pair has failed.
    pub fault_valid: Signal<In, Bit>,
    /// Its sends have completed, except one that is with the transmitter.
    pub fault_ready: Signal<Out, Bit>,
    /// The pair, and the status that its sends complete with.
    pub fault: Signal<In, Fault>,
    /// There is a control request.
    pub control_valid: Signal<In, Bit>,
    /// The control request.
    pub control: Signal<In, ControlRequest>,
    /// It is done.
    pub control_done: Signal<Out, Bit>,
    /// With it, for `PairRead`: the `PairReport`. Zero otherwise.
    pub control_result: Signal<Out, Bits<64>>,
    /// Pulse: a pair is failed for want of an acknowledgement.
    pub count_timeouts: Signal<Out, Bit>,
    /// Pulse: a pair asks its peer what credit there is.
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

    sources: Ram<Source>,
    waiting: Ram<Waiting>,
    sent: Ram<Sent>,
    turns: Fifo<Bits<16>>,
    state: Reg<State>,
    clearing: Reg<Bits<16>>,
    now: Reg<Bits<32>>,
    timeout: Reg<Bits<32>>,
    scan: Reg<Bits<16>>,
    scan_due: Reg<Bit>,
    /// Progress was the last thing done: others go first.
    progress_last: Reg<Bit>,
    /// A job is offered, or with the transmitter.
    job_open: Reg<Bit>,
    job_offered: Reg<Bit>,
    job_pair: Reg<Bits<16>>,
    job_number: Reg<Bits<32>>,
    job_domain: Reg<Bits<8>>,
    job_send: Reg<Waiting>,
    answered: Reg<Bit>,
    answer: Reg<Bits<8>>,
    requeue: Reg<Bit>,
    completing: Reg<Bit>,
    completion: Reg<WriteCompletion>,
    mark_pending: Reg<Bit>,
    mark_held: Reg<Mark>,
    fault_pending: Reg<Bit>,
    fault_pair: Reg<Bits<16>>,
    /// The pair whose sends are being completed, and which of them.
    pair: Reg<Bits<16>>,
    endpoint: Reg<Bits<8>>,
    status: Reg<Bits<8>>,
    cursor: Reg<Bits<32>>,
    limit: Reg<Bits<32>>,
    /// Bit k: send `limit` − 1 − k was refused.
    window: Reg<Bits<16>>,
    place: Reg<Bits<8>>,
    left: Reg<Bits<8>>,
    /// The send to cancel was found.
    found: Reg<Bit>,
    for_fault: Reg<Bit>,
    for_control: Reg<Bit>,

    request: Signal<Local, SendRequest>,
    card: Signal<Local, CardSetup>,
    setup: Signal<Local, PairSetup>,
    report: Signal<Local, PairReport>,
    source: Signal<Local, Source>,
    source_next: Signal<Local, Source>,
    address: Signal<Local, Bits<16>>,
    in_range: Signal<Local, Bit>,
    write: Signal<Local, Bit>,
    changed: Signal<Local, Bit>,
    push: Signal<Local, Bit>,
    turn_again: Signal<Local, Bit>,
    is_card: Signal<Local, Bit>,
    is_set: Signal<Local, Bit>,
    is_clear: Signal<Local, Bit>,
    is_read: Signal<Local, Bit>,
    own: Signal<Local, Bit>,
    held_up: Signal<Local, Bit>,
    held_back: Signal<Local, Bit>,
    asking: Signal<Local, Bit>,
    free: Signal<Local, Bit>,
    others: Signal<Local, Bit>,
    injected: Signal<Local, Bits<32>>,
    unacknowledged: Signal<Local, Bits<32>>,
    in_use: Signal<Local, Bits<32>>,
    granted: Signal<Local, Bits<32>>,
    has_credit: Signal<Local, Bit>,
    sound: Signal<Local, Bit>,
    ahead: Signal<Local, Bits<32>>,
    credit_ahead: Signal<Local, Bits<32>>,
    credit_room: Signal<Local, Bits<32>>,
    liar: Signal<Local, Bit>,
    acknowledged: Signal<Local, Bits<32>>,
    returned: Signal<Local, Bits<32>>,
    quiet_for: Signal<Local, Bits<32>>,
    is_own_pair: Signal<Local, Bit>,
    refusal: Signal<Local, Bits<8>>,
    flags: Signal<Local, Bits<8>>,
    sends_later: Signal<Local, Bits<32>>,
    sends_after: Signal<Local, Bits<4>>,
    was_refused: Signal<Local, Bit>,
    fail: Signal<Local, Bit>,
    sent_place: Signal<Local, Bits<16>>,
    sent_base: Signal<Local, Bits<16>>,
    waiting_place: Signal<Local, Bits<16>>,
    waiting_base: Signal<Local, Bits<16>>,
    waiting_next: Signal<Local, Bits<8>>,
    place_above: Signal<Local, Bits<8>>,
    move_up: Signal<Local, Bit>,
    accepted: Signal<Local, Waiting>,
    kept: Signal<Local, Sent>,
    gone: Signal<Local, Sent>,
    dropped: Signal<Local, Waiting>,
    offered_request: Signal<Local, SendRequest>,
    entry: Signal<Local, Completion>,
    load: Signal<Local, Bit>,
    load_endpoint: Signal<Local, Bits<8>>,
    in_use_next: Signal<Local, Bits<32>>,
    unacknowledged_next: Signal<Local, Bits<32>>,
    ready_next: Signal<Local, Bits<32>>,

    pairs: Constant<Bits<16>>,
    last_pair: Constant<Bits<16>>,
    scan_mask: Constant<Bits<32>>,
    depth: Constant<Bits<8>>,
    depth_mask: Constant<Bits<8>>,
    depth_bits: Constant<Bits<8>>,
    credits_mask: Constant<Bits<16>>,
    credits_bits: Constant<Bits<8>>,
    max_credits: Constant<Bits<8>>,
    eager_max: Constant<Bits<64>>,
    card_set: Constant<Bits<8>>,
    pair_set: Constant<Bits<8>>,
    pair_clear: Constant<Bits<8>>,
    pair_read: Constant<Bits<8>>,
    is_connected: Constant<Bits<8>>,
    is_failed: Constant<Bits<8>>,
    success: Constant<Bits<8>>,
    too_long: Constant<Bits<8>>,
    too_late: Constant<Bits<8>>,
    cancelled: Constant<Bits<8>>,
    local_protection: Constant<Bits<8>>,
    cancel: Constant<Bits<8>>,
    kind_cancel: Constant<Bits<8>>,
    invalid_pair: Constant<Bits<8>>,
    queue_full: Constant<Bits<8>>,
    not_ready: Constant<Bits<8>>,
    flag_ready: Constant<Bits<8>>,
    flushed: Constant<Bits<8>>,
    link_error: Constant<Fault>,
    nothing: Constant<Source>,
    no_waiting: Constant<Waiting>,
    no_sent: Constant<Sent>,
    no_job: Constant<SendJob>,
    no_report: Constant<PairReport>,
    send_template: Constant<SendRequest>,
    completion_template: Constant<Completion>,

    credits: Check,
    order: Check,
    one_turn: Check,
    asked: Check,
    fits: Check,
    _mutable: usize,
}

impl SendQueues {
    /// The queues of a card, as designed.
    pub fn new(config: &Config) -> Self {
        Self::build(config, 0)
    }

    /// The same with the input `mutation`, for tests.
    pub fn mutable(config: &Config) -> Self {
        Self::build(config, 1)
    }

    fn build(config: &Config, mutable: usize) -> Self {
        const { assert!(SEND_QUEUE_DEPTH.is_power_of_two() && MAX_CREDITS.is_power_of_two()) };
        const { assert!(SCAN_CYCLES.is_power_of_two() && EAGER_MAX < 1 << 15) };
        const { assert!(FLAG_READY == 1 << 0 && MAX_CREDITS == 16) };
        let byte = |value: u8| Constant::new(u64::from(value).into());
        let log2 = |value: u16| Constant::new(u64::from(value.ilog2()).into());
        construct!({
            sources: Ram::new(config.pairs),
            waiting: Ram::new(config.pairs * usize::from(SEND_QUEUE_DEPTH)),
            sent: Ram::new(config.pairs * usize::from(MAX_CREDITS)),
            turns: Fifo::new(config.pairs),
            state: Reg::new(State::Clear),
            pairs: Constant::new((config.pairs as u64).into()),
            last_pair: Constant::new((config.pairs as u64 - 1).into()),
            scan_mask: Constant::new(u64::from(SCAN_CYCLES - 1).into()),
            depth: Constant::new(u64::from(SEND_QUEUE_DEPTH).into()),
            depth_mask: Constant::new(u64::from(SEND_QUEUE_DEPTH - 1).into()),
            depth_bits: log2(SEND_QUEUE_DEPTH),
            credits_mask: Constant::new(u64::from(MAX_CREDITS - 1).into()),
            credits_bits: log2(MAX_CREDITS),
            max_credits: Constant::new(u64::from(MAX_CREDITS).into()),
            eager_max: Constant::new((EAGER_MAX as u64).into()),
            card_set: byte(Operation::CardSet.code()),
            pair_set: byte(Operation::PairSet.code()),
            pair_clear: byte(Operation::PairClear.code()),
            pair_read: byte(Operation::PairRead.code()),
            is_connected: byte(PairState::Connected.code()),
            is_failed: byte(PairState::Failed.code()),
            success: byte(Status::Success.code()),
            too_long: byte(Status::TooLong.code()),
            too_late: byte(Status::TooLate.code()),
            cancelled: byte(Status::Cancelled.code()),
            local_protection: byte(Status::LocalProtection.code()),
            cancel: byte(Opcode::CancelSend.code()),
            kind_cancel: byte(Opcode::CancelSend.row().kind.code()),
            invalid_pair: byte(Status::InvalidPair.code()),
            queue_full: byte(Status::QueueFull.code()),
            not_ready: byte(Status::NotReady.code()),
            flag_ready: byte(FLAG_READY),
            flushed: byte(Status::Flushed.code()),
            link_error: Constant::new(Fault {
                pair: 0.into(),
                status: u64::from(Status::LinkError.code()).into(),
            }),
            nothing: Constant::new(Source::default()),
            no_waiting: Constant::new(Waiting::default()),
            no_sent: Constant::new(Sent::default()),
            no_job: Constant::new(SendJob::default()),
            no_report: Constant::new(PairReport::default()),
            send_template: Constant::new(SendRequest {
                opcode: u64::from(Opcode::TaggedSend.code()).into(),
                ..Default::default()
            }),
            completion_template: Constant::new(Completion {
                kind: u64::from(Opcode::TaggedSend.row().kind.code()).into(),
                ..Default::default()
            }),
            credits: Check::new("credits_used_are_within_the_grant"),
            order: Check::new("returned_acknowledged_taken_are_in_order"),
            one_turn: Check::new("a_pair_has_one_turn_at_a_time"),
            asked: Check::new("only_a_job_is_answered"),
            fits: Check::new("waiting_sends_fit_the_queue_of_their_pair"),
            mutation: (0..mutable).map(|_| Signal::default()).collect(),
            _mutable: mutable,
        } default {
            clock reset initialized sends_valid sends_ready sends complete_valid complete_ready
            complete release_valid release_endpoint job_valid job_ready job job_result_valid job_status progress_valid
            progress_ready progress fault_request_valid fault_request_ready fault_request
            fault_valid fault_ready fault control_valid control control_done control_result
            count_timeouts count_asks count_invalid_requests mark_valid mark_ready mark mark_pending mark_held asking monitor_source_valid monitor_source_pair monitor_source_taken
            monitor_source_returned clearing now timeout scan scan_due progress_last job_open
            job_offered job_pair job_number job_domain job_send answered answer requeue
            completing completion fault_pending fault_pair pair endpoint status cursor limit window
            place left found for_fault for_control request card setup report source source_next
            address in_range write changed push turn_again is_card is_set is_clear is_read own held_up held_back free
            others injected unacknowledged in_use granted has_credit sound ahead credit_ahead
            credit_room liar acknowledged returned quiet_for is_own_pair refusal flags sends_later sends_after was_refused fail sent_place sent_base
            waiting_place waiting_base waiting_next place_above move_up accepted kept gone dropped offered_request
            entry load load_endpoint in_use_next unacknowledged_next ready_next
        })
    }
}

#[module]
impl Logic for SendQueues {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(
            self,
            clock,
            reset,
            state,
            clearing,
            now,
            timeout,
            scan,
            scan_due,
            progress_last,
            job_open,
            job_offered,
            job_pair,
            job_number,
            job_domain,
            job_send,
            answered,
            answer,
            requeue,
            completing,
            completion,
            mark_pending,
            mark_held,
            fault_pending,
            fault_pair,
            pair,
            endpoint,
            status,
            cursor,
            limit,
            window,
            place,
            left,
            found,
            for_fault,
            for_control
        );
        clocked!(
            self, clock, reset, turns, credits, order, one_turn, asked, fits
        );
        clock!(self, clock, sources, waiting, sent);

        self.initialized.next = self.state.q.val() != State::Clear;
        self.request.next = self.sends.val().request;
        self.card.next = bit_cast::<128, 320>(self.control.val().data).into();
        self.setup.next = self.control.val().data.into();
        self.is_card.next = self.control.val().operation == self.card_set.val();
        self.is_set.next = self.control.val().operation == self.pair_set.val();
        self.is_clear.next = self.control.val().operation == self.pair_clear.val();
        self.is_read.next = self.control.val().operation == self.pair_read.val();
        self.own.next = self.control_valid.val()
            & (self.is_card.val() | self.is_set.val() | self.is_clear.val() | self.is_read.val());
        self.control_done.next = self.control_valid.val() & !self.own.val();
        self.sends_ready.next = false;
        self.progress_ready.next = false;
        self.fault_ready.next = false;
        self.count_timeouts.next = false;
        self.count_asks.next = false;
        self.count_invalid_requests.next = false;
        self.release_valid.next = false;
        self.release_endpoint.next = self.sends.val().endpoint;

        self.now.d.next = self.now.q.val() + 1;
        if (self.now.q.val() & self.scan_mask.val()) == 0 {
            self.scan_due.d.next = true;
        }

        // ---- The registers towards the neighbours.

        self.complete_valid.next = self.completing.q.val();
        self.complete.next = self.completion.q.val();
        if self.complete_ready.val() {
            self.completing.d.next = false;
        }
        self.free.next = !self.completing.q.val() | self.complete_ready.val();
        self.load.next = false;
        self.load_endpoint.next = self.endpoint.q.val();
        self.entry.next = self.completion_template.val();
        self.entry.next.pair = self.pair.q.val();
        self.entry.next.status = self.status.q.val();

        self.job_valid.next = self.job_offered.q.val();
        self.offered_request.next = self.send_template.val();
        self.offered_request.next.pair = self.job_pair.q.val();
        self.offered_request.next.context = self.job_send.q.val().context;
        self.offered_request.next.request = self.job_send.q.val().request;
        self.offered_request.next.key = self.job_send.q.val().key;
        self.offered_request.next.match_bits = self.job_send.q.val().match_bits;
        self.offered_request.next.immediate = self.job_send.q.val().immediate;
        self.offered_request.next.address = self.job_send.q.val().address;
        self.offered_request.next.length = bit_cast::<64, 15>(self.job_send.q.val().length);
        if self.job_send.q.val().ready {
            self.offered_request.next.flags = self.flag_ready.val();
        }
        for m in 0..self._mutable {
            if self.mutation[m].val() == SendQueuesMutation::ReadyForgotten {
                self.offered_request.next.flags = 0.into();
            }
        }
        self.job.next = self.no_job.val();
        self.job.next.pair = self.job_pair.q.val();
        self.job.next.domain = self.job_domain.q.val();
        self.job.next.sequence = self.job_number.q.val();
        self.job.next.request = self.offered_request.val();
        if self.job_ready.val() {
            self.job_offered.d.next = false;
        }
        if self.job_result_valid.val() {
            self.answered.d.next = true;
            self.answer.d.next = self.job_status.val();
        }

        self.mark_valid.next = self.mark_pending.q.val();
        self.mark.next = self.mark_held.q.val();
        if self.mark_ready.val() {
            self.mark_pending.d.next = false;
        }

        self.fault_request_valid.next = self.fault_pending.q.val();
        self.fault_request.next = self.link_error.val();
        self.fault_request.next.pair = self.fault_pair.q.val();
        if self.fault_request_ready.val() {
            self.fault_pending.d.next = false;
        }

        // ---- The pair that is looked at, and what follows from its word.

        // What may ask for a fault or for a frame waits until the last request for one has been taken.
        self.held_back.next = self.fault_pending.q.val() | self.mark_pending.q.val();
        self.others.next = self.scan_due.q.val()
            | (self.turns.output.valid.val() & !self.job_open.q.val())
            | self.sends_valid.val();
        // A job's pair keeps its word until the job is answered, and a fault that was asked for
        // must have been taken before its pair can be another one.
        self.held_up.next = (self.is_set.val() | self.is_clear.val())
            & (self.fault_pending.q.val()
                | (self.job_open.q.val() & (self.job_pair.q.val() == self.control.val().index)));
        self.address.next = self.pair.q.val();
        match self.state.q.val() {
            State::Clear => {
                self.address.next = self.clearing.q.val();
            }
            State::Idle => {
                if self.answered.q.val() {
                    self.address.next = self.job_pair.q.val();
                } else if self.fault_valid.val() {
                    self.address.next = self.fault.val().pair;
                } else if self.own.val() & !self.held_up.val() {
                    self.address.next = self.control.val().index;
                } else if self.progress_valid.val()
                    & !self.held_back.val()
                    & !(self.progress_last.q.val() & self.others.val())
                {
                    self.address.next = self.progress.val().pair;
                } else if self.scan_due.q.val() & !self.held_back.val() {
                    self.address.next = self.scan.q.val();
                } else if self.turns.output.valid.val() & !self.job_open.q.val() {
                    self.address.next = self.turns.output.data.val();
                } else {
                    self.address.next = self.request.val().pair;
                }
            }
            _ => {}
        }
        self.sources.read_address.next = self.address.val();
        self.source.next = self.sources.read_data.val();
        self.source_next.next = self.source.val();
        self.in_range.next = self.pair.q.val() < self.pairs.val();
        self.write.next = false;
        self.changed.next = false;
        self.push.next = false;
        self.fail.next = false;

        self.injected.next = self.source.val().taken;
        if self.job_open.q.val() & (self.job_pair.q.val() == self.pair.q.val()) {
            self.injected.next = self.source.val().taken - 1;
        }
        self.unacknowledged.next = self.injected.val() - self.source.val().acknowledged;
        self.in_use.next = self.source.val().taken - self.source.val().returned;
        self.granted.next = bit_cast::<32, 8>(self.source.val().granted);
        self.has_credit.next = self.in_use.val() < self.granted.val();
        for m in 0..self._mutable {
            if self.mutation[m].val() == SendQueuesMutation::CreditNotNeeded {
                self.has_credit.next = true;
            }
        }
        self.sound.next = self.source.val().connected
            & !self.source.val().failed
            & !self.source.val().failing
            & self.in_range.val();
        self.quiet_for.next = self.now.q.val() - self.source.val().since;
        // Sends wait for credit and none is on its way: should the frame that returned it have been lost, nothing else would
        // tell.
        self.asking.next = (self.source.val().count != 0)
            & (self.source.val().taken == self.source.val().acknowledged)
            & !self.has_credit.val();
        for m in 0..self._mutable {
            if self.mutation[m].val() == SendQueuesMutation::NeverAsks {
                self.asking.next = false;
            }
        }

        // Running numbers of the peer: from what is known up to what can be true they move on, from
        // before that they are late, and anything else is a lie.
        self.ahead.next = self.progress.val().acknowledge - self.source.val().acknowledged;
        self.acknowledged.next = self.source.val().acknowledged;
        self.liar.next = false;
        if self.ahead.val() <= self.unacknowledged.val() {
            self.acknowledged.next = self.progress.val().acknowledge;
        } else if !self.ahead.val().get_bit(31) {
            self.liar.next = true;
        }
        self.credit_ahead.next = self.progress.val().credit - self.source.val().returned;
        self.credit_room.next = self.acknowledged.val() - self.source.val().returned;
        self.returned.next = self.source.val().returned;
        if self.credit_ahead.val() <= self.credit_room.val() {
            self.returned.next = self.progress.val().credit;
            for m in 0..self._mutable {
                if (self.mutation[m].val() == SendQueuesMutation::CreditReturnedTwice)
                    & (self.credit_ahead.val() != 0)
                {
                    self.returned.next = self.progress.val().credit + 1;
                }
            }
        } else if !self.credit_ahead.val().get_bit(31) {
            self.liar.next = true;
        }
        for m in 0..self._mutable {
            if self.mutation[m].val() == SendQueuesMutation::NumbersNotChecked {
                self.liar.next = false;
                self.acknowledged.next = self.progress.val().acknowledge;
            }
        }

        // ---- The queues' memories.

        self.waiting_next.next = self.source.val().head + self.source.val().count;
        self.place_above.next = self.place.q.val() - 1;
        self.waiting_base.next = self.address.val() << self.depth_bits.val();
        self.waiting_place.next = self.waiting_base.val()
            | bit_cast::<16, 8>(self.waiting_next.val() & self.depth_mask.val());
        self.accepted.next = self.no_waiting.val();
        self.accepted.next.context = self.request.val().context;
        self.accepted.next.length = bit_cast::<15, 64>(self.request.val().length);
        self.flags.next = self.request.val().flags;
        self.accepted.next.ready = self.flags.val().get_bit(0);
        self.accepted.next.request = self.request.val().request;
        self.accepted.next.key = self.request.val().key;
        self.accepted.next.match_bits = self.request.val().match_bits;
        self.accepted.next.immediate = self.request.val().immediate;
        self.accepted.next.address = self.request.val().address;
        self.waiting.write_enable.next = false;
        self.waiting.write_address.next = self.waiting_place.val();
        self.waiting.write_data.next = self.accepted.val();
        self.waiting.read_address.next =
            self.waiting_base.val() | bit_cast::<16, 8>(self.place.q.val() & self.depth_mask.val());
        if self.state.q.val() == State::Turn {
            self.waiting.read_address.next = self.waiting_base.val()
                | bit_cast::<16, 8>(self.source.val().head & self.depth_mask.val());
        }
        self.dropped.next = self.waiting.read_data.val();
        self.move_up.next = (self.state.q.val() == State::CancelLook) & self.found.q.val();
        for m in 0..self._mutable {
            if self.mutation[m].val() == SendQueuesMutation::GapLeftByCancel {
                self.move_up.next = false;
            }
        }
        if self.move_up.val() {
            self.waiting.write_enable.next = true;
            self.waiting.write_address.next = self.waiting_base.val()
                | bit_cast::<16, 8>(self.place_above.val() & self.depth_mask.val());
            self.waiting.write_data.next = self.dropped.val();
        }

        self.sent_base.next = self.address.val() << self.credits_bits.val();
        self.sent_place.next = self.sent_base.val()
            | (bit_cast::<16, 32>(self.cursor.q.val()) & self.credits_mask.val());
        self.kept.next = self.no_sent.val();
        self.kept.next.request = self.dropped.val().request;
        self.kept.next.context = self.dropped.val().context;
        self.kept.next.length = bit_cast::<16, 15>(self.dropped.val().length);
        self.sent.write_enable.next = false;
        self.sent.write_address.next = self.sent_place.val();
        self.sent.write_data.next = self.kept.val();
        self.sent.read_address.next = self.sent_place.val();
        self.gone.next = self.sent.read_data.val();
        // The window belongs to the progress that is being worked in; a failure is no answer to anything.
        self.sends_later.next = self.limit.q.val() - self.cursor.q.val() - 1;
        self.sends_after.next = self.sends_later.val().get_bits::<4>(0);
        self.was_refused.next = (self.status.q.val() == self.success.val())
            & (((self.window.q.val() >> self.sends_after.val()) & 1) != 0);
        for m in 0..self._mutable {
            if self.mutation[m].val() == SendQueuesMutation::RefusalUnheard {
                self.was_refused.next = false;
            }
        }

        self.report.next = self.no_report.val();
        self.control_result.next = 0.into();
        self.refusal.next = self.success.val();
        self.is_own_pair.next = self.source.val().connected
            & self.in_range.val()
            & (self.source.val().endpoint == self.sends.val().endpoint);
        self.turns.output.ready.next = false;

        match self.state.q.val() {
            State::Clear => {
                self.write.next = true;
                self.source_next.next = self.nothing.val();
                self.clearing.d.next = self.clearing.q.val() + 1;
                if self.clearing.q.val() == self.last_pair.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Idle => {
                self.pair.d.next = self.address.val();
                self.for_fault.d.next = false;
                self.for_control.d.next = false;
                if self.free.val() {
                    if self.answered.q.val() {
                        self.state.d.next = State::Result;
                    } else if self.fault_valid.val() {
                        self.state.d.next = State::Fault;
                    } else if self.own.val() & !self.held_up.val() {
                        if self.is_card.val() {
                            self.timeout.d.next = self.card.val().acknowledge_timeout;
                            self.control_done.next = true;
                        } else {
                            self.state.d.next = State::Control;
                        }
                    } else if self.progress_valid.val()
                        & !self.held_back.val()
                        & !(self.progress_last.q.val() & self.others.val())
                    {
                        self.progress_last.d.next = true;
                        self.state.d.next = State::Progress;
                    } else if self.scan_due.q.val() & !self.held_back.val() {
                        self.progress_last.d.next = false;
                        self.state.d.next = State::Scan;
                    } else if self.turns.output.valid.val() & !self.job_open.q.val() {
                        self.progress_last.d.next = false;
                        self.state.d.next = State::Turn;
                    } else if self.sends_valid.val() {
                        self.progress_last.d.next = false;
                        self.state.d.next = State::Accept;
                    }
                }
            }
            State::Result => {
                self.answered.d.next = false;
                self.job_open.d.next = false;
                self.write.next = true;
                self.load_endpoint.next = self.source.val().endpoint;
                self.entry.next.request = self.job_send.q.val().request;
                self.entry.next.context = self.job_send.q.val().context;
                self.entry.next.length = bit_cast::<64, 15>(self.job_send.q.val().length);
                self.entry.next.status = self.answer.q.val();
                self.count_invalid_requests.next =
                    self.answer.q.val() == self.local_protection.val();
                if self.source.val().failed {
                    // The pair failed while the transmitter had the job.
                    self.load.next = true;
                    self.source_next.next.acknowledged = self.source.val().taken;
                    if self.answer.q.val() == self.success.val() {
                        self.entry.next.status = self.source.val().status;
                    }
                } else if self.answer.q.val() != self.success.val() {
                    self.load.next = true;
                    self.source_next.next.taken = self.source.val().taken - 1;
                    for m in 0..self._mutable {
                        if self.mutation[m].val() == SendQueuesMutation::RefusedKeepsCredit {
                            self.source_next.next.taken = self.source.val().taken;
                            self.source_next.next.acknowledged = self.source.val().acknowledged + 1;
                        }
                    }
                    self.changed.next = true;
                    self.push.next = (self.source.val().count != 0) & !self.source.val().queued;
                } else if self.source.val().taken == self.source.val().acknowledged + 1 {
                    self.source_next.next.since = self.now.q.val();
                }
                self.state.d.next = State::Idle;
            }
            State::Fault => {
                self.status.d.next = self.fault.val().status;
                self.endpoint.d.next = self.source.val().endpoint;
                self.cursor.d.next = self.source.val().acknowledged;
                self.limit.d.next = self.injected.val();
                for m in 0..self._mutable {
                    if self.mutation[m].val() == SendQueuesMutation::JobFlushedEarly {
                        self.limit.d.next = self.source.val().taken;
                    }
                }
                self.place.d.next = self.source.val().head;
                self.left.d.next = self.source.val().count;
                for m in 0..self._mutable {
                    if self.mutation[m].val() == SendQueuesMutation::WaitingNotFlushed {
                        self.left.d.next = 0.into();
                    }
                }
                self.for_fault.d.next = true;
                self.state.d.next = State::Done;
                if self.source.val().connected & !self.source.val().failed & self.in_range.val() {
                    self.write.next = true;
                    self.source_next.next.failed = true;
                    self.source_next.next.status = self.fault.val().status;
                    self.source_next.next.count = 0.into();
                    self.source_next.next.acknowledged = self.injected.val();
                    self.state.d.next = State::SentRead;
                }
            }
            State::Control => {
                if self.is_read.val() {
                    if self.source.val().connected & self.in_range.val() {
                        self.report.next.state = self.is_connected.val();
                        self.report.next.available =
                            bit_cast::<8, 32>(self.granted.val() - self.in_use.val());
                        self.report.next.unacknowledged =
                            bit_cast::<8, 32>(self.unacknowledged.val());
                        self.report.next.waiting = self.source.val().count;
                        if self.source.val().failed {
                            self.report.next.state = self.is_failed.val();
                            self.report.next.available = 0.into();
                        }
                    }
                    self.control_result.next = self.report.val().into();
                    self.control_done.next = true;
                    self.state.d.next = State::Idle;
                } else {
                    // What is still there of the pair as it was is flushed.
                    self.status.d.next = self.flushed.val();
                    self.endpoint.d.next = self.source.val().endpoint;
                    self.cursor.d.next = self.source.val().acknowledged;
                    self.limit.d.next = self.source.val().taken;
                    self.place.d.next = self.source.val().head;
                    self.left.d.next = self.source.val().count;
                    self.for_control.d.next = true;
                    self.state.d.next = State::Done;
                    if self.in_range.val() {
                        self.write.next = true;
                        self.changed.next = self.is_set.val();
                        // A turn stays in its queue and finds nothing to do.
                        self.source_next.next = self.nothing.val();
                        self.source_next.next.queued = self.source.val().queued;
                        self.source_next.next.connected = self.is_set.val();
                        self.source_next.next.endpoint = self.setup.val().endpoint;
                        self.source_next.next.domain = self.setup.val().domain;
                        self.source_next.next.granted = self.setup.val().remote_credits;
                        if self.setup.val().remote_credits > self.max_credits.val() {
                            self.source_next.next.granted = self.max_credits.val();
                        }
                        self.state.d.next = State::SentRead;
                    }
                }
            }
            State::Progress => {
                self.progress_ready.next = true;
                self.status.d.next = self.success.val();
                self.window.d.next = self.progress.val().refused;
                self.endpoint.d.next = self.source.val().endpoint;
                self.cursor.d.next = self.source.val().acknowledged;
                self.limit.d.next = self.acknowledged.val();
                for m in 0..self._mutable {
                    if self.mutation[m].val() == SendQueuesMutation::CompletesFromNext {
                        self.cursor.d.next = self.source.val().acknowledged + 1;
                        self.limit.d.next = self.acknowledged.val() + 1;
                    }
                }
                self.left.d.next = 0.into();
                self.state.d.next = State::Idle;
                if self.sound.val() {
                    if self.liar.val() {
                        self.fail.next = true;
                    } else {
                        self.write.next = true;
                        self.mark_pending.d.next = self.progress.val().ask;
                        self.mark_held.d.next.pair = self.pair.q.val();
                        self.mark_held.d.next.ask = false;
                        for m in 0..self._mutable {
                            if self.mutation[m].val() == SendQueuesMutation::NeverAnswers {
                                self.mark_pending.d.next = false;
                            }
                        }
                        self.source_next.next.acknowledged = self.acknowledged.val();
                        self.source_next.next.returned = self.returned.val();
                        self.changed.next = self.returned.val() != self.source.val().returned;
                        self.push.next = self.changed.val()
                            & (self.source.val().count != 0)
                            & !self.source.val().queued;
                        for m in 0..self._mutable {
                            if self.mutation[m].val() == SendQueuesMutation::TurnForgotten {
                                self.push.next = false;
                            }
                        }
                        if self.acknowledged.val() != self.source.val().acknowledged {
                            self.source_next.next.since = self.now.q.val();
                            self.state.d.next = State::SentRead;
                        }
                    }
                }
            }
            State::Scan => {
                self.scan_due.d.next = false;
                self.scan.d.next = self.scan.q.val() + 1;
                if self.scan.q.val() == self.last_pair.val() {
                    self.scan.d.next = 0.into();
                }
                if self.sound.val()
                    & (self.timeout.q.val() != 0)
                    & (self.quiet_for.val() >= self.timeout.q.val())
                {
                    if self.unacknowledged.val() != 0 {
                        self.fail.next = true;
                        for m in 0..self._mutable {
                            if self.mutation[m].val() == SendQueuesMutation::NeverTimesOut {
                                self.fail.next = false;
                            }
                        }
                        self.count_timeouts.next = self.fail.val();
                    } else if self.asking.val() {
                        self.write.next = true;
                        self.source_next.next.since = self.now.q.val();
                        self.mark_pending.d.next = true;
                        self.mark_held.d.next.pair = self.pair.q.val();
                        self.mark_held.d.next.ask = true;
                        self.count_asks.next = true;
                    }
                }
                self.state.d.next = State::Idle;
            }
            State::Turn => {
                self.turns.output.ready.next = true;
                self.write.next = true;
                self.source_next.next.queued = false;
                self.cursor.d.next = self.source.val().taken;
                self.requeue.d.next = false;
                self.state.d.next = State::Idle;
                if self.sound.val() & (self.source.val().count != 0) & self.has_credit.val() {
                    self.source_next.next.head =
                        (self.source.val().head + 1) & self.depth_mask.val();
                    self.source_next.next.count = self.source.val().count - 1;
                    self.source_next.next.taken = self.source.val().taken + 1;
                    self.changed.next = true;
                    self.job_open.d.next = true;
                    self.job_pair.d.next = self.pair.q.val();
                    self.job_number.d.next = self.source.val().taken;
                    self.job_domain.d.next = self.source.val().domain;
                    if (self.source.val().count != 1) & (self.in_use.val() + 1 < self.granted.val())
                    {
                        self.source_next.next.queued = true;
                        self.requeue.d.next = true;
                    }
                    self.state.d.next = State::Load;
                }
            }
            State::Load => {
                self.job_send.d.next = self.dropped.val();
                self.job_offered.d.next = true;
                self.sent.write_enable.next = true;
                self.state.d.next = State::Idle;
            }
            State::Accept => {
                self.place.d.next = self.source.val().head;
                self.left.d.next = self.source.val().count;
                self.found.d.next = false;
                self.state.d.next = State::Idle;
                self.sends_ready.next = true;
                if self.request.val().opcode == self.cancel.val() {
                    // The request stays until its queue has been walked.
                    self.sends_ready.next = false;
                    self.state.d.next = State::CancelDone;
                    if self.is_own_pair.val() & (self.source.val().count != 0) {
                        self.state.d.next = State::CancelRead;
                    }
                    for m in 0..self._mutable {
                        if (self.mutation[m].val() == SendQueuesMutation::AnyoneCancels)
                            & self.in_range.val()
                            & (self.source.val().count != 0)
                        {
                            self.state.d.next = State::CancelRead;
                        }
                    }
                } else if !self.is_own_pair.val() {
                    self.refusal.next = self.invalid_pair.val();
                    self.count_invalid_requests.next = true;
                } else if self.request.val().length > self.eager_max.val() {
                    self.refusal.next = self.too_long.val();
                    self.count_invalid_requests.next = true;
                } else if self.source.val().failed {
                    self.refusal.next = self.source.val().status;
                } else if self.source.val().count == self.depth.val() {
                    self.refusal.next = self.queue_full.val();
                } else {
                    self.write.next = true;
                    self.waiting.write_enable.next = true;
                    self.source_next.next.count = self.source.val().count + 1;
                    self.push.next = self.has_credit.val() & !self.source.val().queued;
                }
                self.load.next = self.sends_ready.val() & !self.write.val();
                self.load_endpoint.next = self.sends.val().endpoint;
                self.entry.next.request = self.request.val().request;
                self.entry.next.context = self.request.val().context;
                self.entry.next.length = self.request.val().length;
                self.entry.next.status = self.refusal.val();
            }
            State::CancelRead => {
                self.state.d.next = State::CancelLook;
            }
            State::CancelLook => {
                if !self.found.q.val() & (self.dropped.val().request == self.request.val().target) {
                    self.found.d.next = true;
                    self.load.next = true;
                }
                self.load_endpoint.next = self.source.val().endpoint;
                self.entry.next.request = self.dropped.val().request;
                self.entry.next.context = self.dropped.val().context;
                self.entry.next.length = bit_cast::<64, 15>(self.dropped.val().length);
                self.entry.next.status = self.cancelled.val();
                self.place.d.next = self.place.q.val() + 1;
                self.left.d.next = self.left.q.val() - 1;
                self.state.d.next = State::CancelRead;
                if self.left.q.val() == 1 {
                    self.state.d.next = State::CancelDone;
                }
            }
            State::CancelDone => {
                // At most one completion has been loaded since the block was idle.
                if self.free.val() {
                    self.sends_ready.next = true;
                    self.state.d.next = State::Idle;
                }
                self.load_endpoint.next = self.sends.val().endpoint;
                self.entry.next.kind = self.kind_cancel.val();
                self.entry.next.request = self.request.val().request;
                self.entry.next.status = self.too_late.val();
                self.load.next = self.sends_ready.val() & !self.found.q.val();
                self.release_valid.next = self.sends_ready.val() & self.found.q.val();
                self.write.next = self.release_valid.val();
                self.source_next.next.count = self.source.val().count - 1;
                for m in 0..self._mutable {
                    if self.mutation[m].val() == SendQueuesMutation::CancelledSendStays {
                        self.write.next = false;
                    }
                    if self.mutation[m].val() == SendQueuesMutation::CancelSaysTooLate {
                        self.load.next = self.sends_ready.val();
                    }
                }
            }
            State::SentRead => {
                self.state.d.next = State::SentComplete;
                if self.cursor.q.val() == self.limit.q.val() {
                    self.state.d.next = State::WaitingRead;
                }
            }
            State::SentComplete => {
                self.entry.next.request = self.gone.val().request;
                self.entry.next.context = self.gone.val().context;
                self.entry.next.length = bit_cast::<64, 16>(self.gone.val().length);
                if self.was_refused.val() {
                    self.entry.next.status = self.not_ready.val();
                }
                if self.free.val() {
                    self.load.next = true;
                    self.cursor.d.next = self.cursor.q.val() + 1;
                    self.state.d.next = State::SentRead;
                }
            }
            State::WaitingRead => {
                self.state.d.next = State::WaitingComplete;
                if self.left.q.val() == 0 {
                    self.state.d.next = State::Done;
                }
            }
            State::WaitingComplete => {
                self.entry.next.request = self.dropped.val().request;
                self.entry.next.context = self.dropped.val().context;
                self.entry.next.length = bit_cast::<64, 15>(self.dropped.val().length);
                if self.free.val() {
                    self.load.next = true;
                    self.place.d.next = self.place.q.val() + 1;
                    self.left.d.next = self.left.q.val() - 1;
                    self.state.d.next = State::WaitingRead;
                }
            }
            State::Done => {
                if self.free.val() {
                    self.fault_ready.next = self.for_fault.q.val();
                    if self.for_control.q.val() {
                        self.control_done.next = true;
                    }
                    self.state.d.next = State::Idle;
                }
            }
            _ => {}
        }

        // ---- What has been decided is written.

        for m in 0..self._mutable {
            if self.mutation[m].val() == SendQueuesMutation::RefusalsNotCounted {
                self.count_invalid_requests.next = false;
            }
        }
        if self.load.val() {
            self.completing.d.next = true;
            self.completion.d.next.endpoint = self.load_endpoint.val();
            self.completion.d.next.entry = self.entry.val();
        }
        if self.fail.val() {
            self.write.next = true;
            self.source_next.next.failing = true;
            self.fault_pending.d.next = true;
            self.fault_pair.d.next = self.pair.q.val();
        }
        if self.push.val() {
            self.source_next.next.queued = true;
        }
        self.turn_again.next =
            self.push.val() | ((self.state.q.val() == State::Load) & self.requeue.q.val());
        self.turns.input.valid.next = self.turn_again.val();
        self.turns.input.data.next = self.pair.q.val();
        self.sources.write_enable.next = self.write.val();
        self.sources.write_address.next = self.address.val();
        self.sources.write_data.next = self.source_next.val();

        self.monitor_source_valid.next = self.changed.val();
        self.monitor_source_pair.next = self.pair.q.val();
        self.monitor_source_taken.next = self.source_next.val().taken;
        self.monitor_source_returned.next = self.source_next.val().returned;

        // ---- What must hold.

        self.in_use_next.next = self.source_next.val().taken - self.source_next.val().returned;
        self.unacknowledged_next.next =
            self.source_next.val().taken - self.source_next.val().acknowledged;
        self.ready_next.next =
            self.source_next.val().acknowledged - self.source_next.val().returned;
        self.credits.ok.next = !self.write.val()
            | (self.in_use_next.val() <= bit_cast::<32, 8>(self.source_next.val().granted));
        self.order.ok.next = !self.write.val()
            | self.source_next.val().failed
            | ((self.unacknowledged_next.val() <= bit_cast::<32, 8>(self.max_credits.val()))
                & (self.ready_next.val() <= bit_cast::<32, 8>(self.max_credits.val())));
        self.one_turn.ok.next =
            !self.push.val() | (self.turns.input.ready.val() & !self.source.val().queued);
        self.fits.ok.next = !self.write.val() | (self.source_next.val().count <= self.depth.val());
        self.asked.ok.next = !self.job_result_valid.val()
            | (self.job_open.q.val() & !self.job_offered.q.val() & !self.answered.q.val());
    }
}
