//! Sends wait here for credit and for their turn, go out many at a time, and stay known until the peer has acknowledged them.
//!
//! ```text
//!             refused ─────────────────────────────────────────────► complete
//!                │                                                      ▲
//!             ┌──┴──────┐ turn, with ┌──────────┐ answered ┌────────────┴───┐
//!   sends ───►│ Waiting ├───────────►│ given    ├─────────►│ Unacknowledged │
//!             └──▲──────┘ a credit   └──┬────▲──┘          └────────▲───────┘
//!              Cancel               job ▼    │ job_result       progress, fault
//!                                       Gather
//! ```
//!
//! What is known of a pair is one word of memory: its state, the counts of its queues and three running numbers. `taken` counts the credits
//! used; `acknowledged` the sends that are safe at the peer; `returned` the credits that came back ([`credit`]). Nothing else is counted, so
//! nothing else can disagree.
//!
//! Each operation is done to one pair in three cycles: its pair is chosen, the pair's word is read, and in the third cycle it is changed,
//! while the next operation is chosen. One that names the same pair waits for a cycle, and one of the same kind too: then what it
//! stands for is still on offer.
//!
//! A job is given only while Gather has room, so it is never on offer: a pair can end at any time, whatever the wire does. Answers come in
//! the order of the jobs. A frame gets its number when it begins, so a job that is refused leaves no hole; a send is recorded as
//! unacknowledged when its job is answered.
//!
//! A fault completes all that the pair has, except jobs that are given: their buffers may still be read, so they complete when they are
//! answered. A fault therefore never waits for memory, and `PairClear` does; neither waits for the wire.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

pub mod breaks;
mod cancel;
mod credit;
mod unacknowledged;
mod waiting;

use cancel::Cancel;
use credit::{Credit, Source};
use unacknowledged::{Ended, Sent, Unacknowledged, Walk};
use waiting::{Waiting, WaitingSend};

use crate::config::{Config, JOBS};
use crate::prelude::*;
use crate::prim::{BlockRam, Fifo};
use crate::types::{
    CardSetup, Completion, ControlRequest, Fault, FetchedSend, Mark, PairReport, PairSetup,
    Progress, SendJob, SendRequest, WriteCompletion,
};
use abi::completion::CompletionKind;
use abi::control::Operation;
use abi::limits::{EAGER_MAX, MAX_CREDITS, SEND_QUEUE_DEPTH};
use abi::mailbox::PairState;
use abi::request::{FLAG_ERRORS_ONLY, FLAG_INLINE, FLAG_READY, Opcode};
use abi::status::Status;

/// Cycles between two pairs of the scan for time-outs. A power of two.
pub const SCAN_CYCLES: u32 = 64;

/// Completions that wait to be taken.
const ENDED: usize = 8;
/// So many of them may wait when an operation is chosen that adds some.
const ENDED_AT_CHOICE: usize = 3;

const _: () = assert!(SCAN_CYCLES.is_power_of_two() && EAGER_MAX < 1 << 11);
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
    /// It is set, cleared or read.
    Control,
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
    sent: Sent,
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
    /// A pair is to ask its peer, or to answer it.
    pub mark: Stream<Out, Mark>,
    /// A pair is to be failed, with `LinkError`.
    pub fault_request: Stream<Out, Fault>,
    /// A pair has failed. Taken when its sends have completed, except those that are given.
    pub fault: Stream<In, Fault>,
    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,
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

    // The pairs, and what is done to one of them.
    #[is(BlockRam::new(config.pairs))]
    sources: BlockRam<Source>,
    cleared: Reg<Bit>,
    clearing: Reg<Bits<16>>,
    reading: Reg<Step>,
    deciding: Reg<Step>,
    pair: Reg<Bits<16>>,
    source: Reg<Source>,
    chosen: Signal<Local, Step>,
    address: Signal<Local, Bits<16>>,
    may_choose: Signal<Local, Bit>,
    chooses: Signal<Local, Bit>,
    same_pair: Signal<Local, Bit>,
    credit: Credit,
    in_range: Signal<Local, Bit>,
    sound: Signal<Local, Bit>,
    has_credit: Signal<Local, Bit>,
    source_next: Signal<Local, Source>,
    write: Signal<Local, Bit>,
    changed: Signal<Local, Bit>,
    fail: Signal<Local, Bit>,

    // Turns and jobs.
    #[is(Fifo::new(config.pairs))]
    turns: Fifo<Bits<16>>,
    /// The pair gets into the queue of turns.
    push: Signal<Local, Bit>,
    pushed: Signal<Local, Bits<16>>,
    requeue: Reg<Bit>,
    turn_ready: Signal<Local, Bit>,
    loading: Reg<Bit>,
    giving: Reg<Bit>,
    settling: Reg<Bit>,
    job_pair: Reg<Bits<16>>,
    job_domain: Reg<Bits<8>>,
    job_send: Reg<WaitingSend>,
    job_ready: Signal<Local, Bit>,
    job_inline: Signal<Local, Bit>,
    sent_of_job: Signal<Local, Sent>,
    #[is(Fifo::new(JOBS))]
    given: Fifo<Given>,
    #[is(Fifo::new(JOBS))]
    results: Fifo<Bits<8>>,
    result_ready: Signal<Local, Bit>,
    no_result: Signal<Local, Bit>,
    refused_by_gather: Signal<Local, Bit>,
    taken_back: Signal<Local, Bits<32>>,

    // Waiting sends and cancels.
    #[is(Waiting::new(config))]
    waiting: Waiting,
    cancel: Cancel,
    request: Signal<Local, SendRequest>,
    flags: Signal<Local, Bits<8>>,
    is_cancel: Signal<Local, Bit>,
    is_own_pair: Signal<Local, Bit>,
    accept_ready: Signal<Local, Bit>,
    accepted: Signal<Local, WaitingSend>,
    /// Address and key of the buffer, or the bytes of the payload in their place.
    at: Signal<Local, Bits<64>>,
    key: Signal<Local, Bits<32>>,
    queues: Signal<Local, Bit>,
    refusal: Signal<Local, Bits<8>>,
    in_time: Signal<Local, Bit>,
    takes_out: Signal<Local, Bit>,
    too_late: Signal<Local, Bit>,
    moves_up: Signal<Local, Bit>,

    // What ends.
    #[is(Unacknowledged::new(config))]
    unacknowledged: Unacknowledged,
    walk: Signal<Local, Walk>,
    walk_from: Signal<Local, Bits<32>>,
    walk_until: Signal<Local, Bits<32>>,
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
    timeout: Reg<Bits<32>>,
    scan: Reg<Bits<16>>,
    scan_due: Reg<Bit>,
    quiet_for: Signal<Local, Bits<32>>,
    late: Signal<Local, Bit>,
    silent: Signal<Local, Bit>,
    asks: Signal<Local, Bit>,
    answers: Signal<Local, Bit>,
    /// A frame of a peer was the last thing chosen: others go first.
    progress_last: Reg<Bit>,
    others: Signal<Local, Bit>,
    progress_ready: Signal<Local, Bit>,
    scan_ready: Signal<Local, Bit>,
    held_back: Signal<Local, Bit>,
    mark_pending: Reg<Bit>,
    mark_held: Reg<Mark>,
    fault_pending: Reg<Bit>,
    fault_pair: Reg<Bits<16>>,
    asked_fault: Signal<Local, Fault>,
    fault_ready: Signal<Local, Bit>,

    // Control.
    card: Signal<Local, CardSetup>,
    setup: Signal<Local, PairSetup>,
    report: Signal<Local, PairReport>,
    is_card: Signal<Local, Bit>,
    is_set: Signal<Local, Bit>,
    is_read: Signal<Local, Bit>,
    ends_pair: Signal<Local, Bit>,
    own: Signal<Local, Bit>,
    control_ready: Signal<Local, Bit>,
    /// The pair of the control request has jobs given: it is looked at again after the next answer.
    awaits_result: Reg<Bit>,
    stops: Signal<Local, Bit>,
    has_given: Signal<Local, Bit>,

    // What must hold.
    in_use_next: Signal<Local, Bits<32>>,
    unacknowledged_next: Signal<Local, Bits<32>>,
    returnable_next: Signal<Local, Bits<32>>,
    credits_used_are_within_the_grant: Check,
    returned_acknowledged_taken_are_in_order: Check,
    a_pair_has_one_turn_at_a_time: Check,
    waiting_sends_fit_the_queue_of_their_pair: Check,
    only_a_job_is_answered: Check,
    what_ends_has_room: Check,
    one_reservation_is_given_up_at_a_time: Check,

    #[is(constant(config.pairs as u64))]
    pairs: Constant<Bits<16>>,
    #[is(constant(config.pairs as u64 - 1))]
    last_pair: Constant<Bits<16>>,
}

impl SendQueues {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = &[
        Operation::CardSet,
        Operation::PairSet,
        Operation::PairClear,
        Operation::PairRead,
    ];

    /// The queues of a card.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(pairs = self.pairs.val().index())]
impl Logic for SendQueues {
    fn update(&mut self) {
        self.initialized.next = self.cleared.q.val();
        self.now.d.next = self.now.q.val() + 1;
        if (self.now.q.val() & (SCAN_CYCLES - 1)) == 0 {
            self.scan_due.d.next = true;
        }
        self.request.next = self.sends.data.val().request;
        self.is_cancel.next = self.request.val().opcode == Opcode::CancelSend;
        self.card.next = bit_cast::<128, 320>(self.control.data.val().data).into();
        self.setup.next = self.control.data.val().data.into();
        self.is_card.next = self.control.data.val().operation == Operation::CardSet;
        self.is_set.next = self.control.data.val().operation == Operation::PairSet;
        self.is_read.next = self.control.data.val().operation == Operation::PairRead;
        self.own.next = self.control.valid.val() & !self.is_card.val();
        self.ends_pair.next = self.own.val() & !self.is_read.val();

        // ---- What is done next.

        // What may ask for a fault or for a frame waits until the last request for one has been taken.
        self.walk_busy.next = self.unacknowledged.busy.val()
            | self.draining.q.val()
            | (self.deciding.q.val() == Step::Progress);
        self.flushes.next = (self.unacknowledged.busy.val() | self.draining.q.val())
            & (self.for_fault.q.val() | self.for_control.q.val());
        self.ended_has_room.next = self.ended.level.val() <= ENDED_AT_CHOICE;
        self.held_back.next = self.fault_pending.q.val()
            | self.mark_pending.q.val()
            | (self.deciding.q.val() == Step::Progress)
            | (self.deciding.q.val() == Step::Scan);
        // What would change a pair's sends waits while some of that pair are being completed.
        self.result_ready.next = self.results.output.valid.val()
            & self.given.output.valid.val()
            & self.ended_has_room.val()
            & (self.deciding.q.val() != Step::Result)
            & !(self.unacknowledged.busy.val()
                & (self.unacknowledged.pair.val() == self.given.output.data.val().pair));
        // An answer that has come goes first: a send is known to be on its way before anything is heard of it.
        self.no_result.next = !self.results.level.val().any();
        self.fault_ready.next =
            self.fault.valid.val() & self.no_result.val() & !self.walk_busy.val();
        self.control_ready.next = self.own.val()
            & self.no_result.val()
            & !self.walk_busy.val()
            & !self.awaits_result.q.val()
            & !(self.ends_pair.val() & self.fault_pending.q.val());
        self.turn_ready.next = self.turns.output.valid.val()
            & self.job_room.val()
            & !self.flushes.val()
            & (self.deciding.q.val() != Step::Turn)
            & !self.loading.q.val()
            & !self.giving.q.val()
            & !self.settling.q.val();
        self.accept_ready.next = self.sends.valid.val()
            & self.ended_has_room.val()
            & (self.deciding.q.val() != Step::Accept)
            & !(self.walk_busy.val() & self.is_cancel.val())
            & !((self.unacknowledged.busy.val() | self.draining.q.val())
                & (self.unacknowledged.pair.val() == self.request.val().pair));
        self.scan_ready.next = self.scan_due.q.val() & !self.held_back.val();
        self.others.next = self.scan_due.q.val() | self.turn_ready.val() | self.accept_ready.val();
        self.progress_ready.next = self.progress.valid.val()
            & self.no_result.val()
            & !self.held_back.val()
            & !self.walk_busy.val()
            & !(self.progress_last.q.val() & self.others.val());

        self.chosen.next = Step::Nothing;
        self.address.next = self.pair.q.val();
        if self.result_ready.val() {
            self.chosen.next = Step::Result;
            self.address.next = self.given.output.data.val().pair;
        } else if self.fault_ready.val() {
            self.chosen.next = Step::Fault;
            self.address.next = self.fault.data.val().pair;
        } else if self.control_ready.val() {
            self.chosen.next = Step::Control;
            self.address.next = self.control.data.val().index;
        } else if self.progress_ready.val() {
            self.chosen.next = Step::Progress;
            self.address.next = self.progress.data.val().pair;
        } else if self.scan_ready.val() {
            self.chosen.next = Step::Scan;
            self.address.next = self.scan.q.val();
        } else if self.turn_ready.val() {
            self.chosen.next = Step::Turn;
            self.address.next = self.turns.output.data.val();
        } else if self.accept_ready.val() {
            self.chosen.next = Step::Accept;
            if self.is_cancel.val() {
                self.chosen.next = Step::Cancel;
            }
            self.address.next = self.request.val().pair;
        }
        // A fault, a control request and a cancel are alone while they are decided.
        self.may_choose.next = self.cleared.q.val()
            & (self.reading.q.val() == Step::Nothing)
            & (self.deciding.q.val() != Step::Fault)
            & (self.deciding.q.val() != Step::Control)
            & (self.deciding.q.val() != Step::Cancel)
            & !self.cancel.busy.val();
        self.same_pair.next =
            (self.deciding.q.val() != Step::Nothing) & (self.address.val() == self.pair.q.val());
        self.chooses.next =
            self.may_choose.val() & (self.chosen.val() != Step::Nothing) & !self.same_pair.val();
        self.reading.d.next = Step::Nothing;
        if self.chooses.val() {
            self.reading.d.next = self.chosen.val();
            self.pair.d.next = self.address.val();
            self.progress_last.d.next = self.chosen.val() == Step::Progress;
        }
        self.deciding.d.next = self.reading.q.val();
        self.sources.read_address.next = self.address.val();
        if self.reading.q.val() != Step::Nothing {
            self.source.d.next = self.sources.read_data.val();
        }

        // ---- What follows from the pair's word.

        self.credit.source.next = self.source.q.val();
        self.credit.progress.next = self.progress.data.val();
        self.in_range.next = self.pair.q.val() < self.pairs.val();
        self.sound.next = self.source.q.val().connected
            & !self.source.q.val().failed
            & !self.source.q.val().failing
            & self.in_range.val();
        self.has_credit.next = self.credit.has_one.val();
        self.is_own_pair.next = self.source.q.val().connected
            & self.in_range.val()
            & (self.source.q.val().endpoint == self.sends.data.val().endpoint);
        self.has_given.next = self.source.q.val().given.any();
        // The pair is about to end: it sends nothing more.
        self.stops.next = (self.fault.valid.val()
            & (self.fault.data.val().pair == self.pair.q.val()))
            | (self.ends_pair.val() & (self.control.data.val().index == self.pair.q.val()));
        // Silence: of a peer that has something to acknowledge, or of a wire that takes nothing, so that the pair has no turn.
        self.quiet_for.next = self.now.q.val() - self.source.q.val().since;
        self.late.next = self.sound.val()
            & self.timeout.q.val().any()
            & (self.quiet_for.val() >= self.timeout.q.val());
        self.silent.next = self.credit.unacknowledged.val().any()
            | (self.source.q.val().queued
                & self.source.q.val().count.any()
                & !self.has_given.val());
        // Sends wait for credit and none is on its way: should the frame that returned it have been lost, nothing else would tell.
        self.asks.next = self.source.q.val().count.any()
            & (self.source.q.val().taken == self.source.q.val().acknowledged)
            & !self.has_credit.val();
        self.answers.next = self.progress.data.val().ask;

        // ---- What is decided.

        self.source_next.next = self.source.q.val();
        self.write.next = false;
        self.changed.next = false;
        self.push.next = false;
        self.fail.next = false;
        self.walks.next = false;
        self.walk_from.next = self.source.q.val().acknowledged;
        self.walk_until.next = self.source.q.val().acknowledged;
        self.walk.next = Walk::default();
        self.walk.next.endpoint = self.source.q.val().endpoint;
        self.walk.next.status = Status::Success;
        self.walk.next.window = self.progress.data.val().refused;
        self.walk.next.place = self.source.q.val().head;
        self.ends.next = false;
        self.ending.next = Ended::default();
        self.ending.next.endpoint = self.sends.data.val().endpoint;
        self.ending.next.pair = self.pair.q.val();
        self.ending.next.kind = CompletionKind::Send;
        self.ending.next.request = self.request.val().request;
        self.refusal.next = Status::Success;
        self.report.next = PairReport::default();
        self.control_result.next = 0.into();
        self.control.ready.next = self.control.valid.val() & !self.own.val();
        if self.control.valid.val() & self.is_card.val() {
            self.timeout.d.next = self.card.val().acknowledge_timeout;
        }
        self.count_timeouts.next = false;
        self.count_asks.next = false;
        self.count_invalid_requests.next = false;
        self.sends.ready.next = false;
        self.progress.ready.next = self.deciding.q.val() == Step::Progress;
        self.turns.output.ready.next = self.deciding.q.val() == Step::Turn;
        self.given.output.ready.next = self.deciding.q.val() == Step::Result;
        self.results.output.ready.next = self.deciding.q.val() == Step::Result;
        self.refused_by_gather.next = self.results.output.data.val() != Status::Success;
        self.unacknowledged.record.valid.next = false;
        self.queues.next = false;
        self.walk_waiting.next = 0.into();
        self.taken_back.next = self.source.q.val().taken - 1;
        self.cancel.start.next = self.deciding.q.val() == Step::Cancel;
        self.cancel.count.next = 0.into();
        self.loading.d.next = false;
        self.dropped.valid.next = self.fault.valid.val();
        self.dropped.data.next = self.fault.data.val().pair;
        if self.mark.ready.val() {
            self.mark_pending.d.next = false;
        }
        if self.fault_request.ready.val() {
            self.fault_pending.d.next = false;
        }

        match self.deciding.q.val() {
            Step::Result => {
                self.awaits_result.d.next = false;
                self.write.next = true;
                self.source_next.next.given = self.source.q.val().given - 1;
                self.ending.next.endpoint = self.source.q.val().endpoint;
                self.ending.next.request = self.given.output.data.val().sent.request;
                self.ending.next.context = self.given.output.data.val().sent.context;
                self.ending.next.length =
                    bit_cast::<64, 11>(self.given.output.data.val().sent.length);
                self.ending.next.status = self.results.output.data.val();
                self.count_invalid_requests.next =
                    self.results.output.data.val() == Status::LocalProtection;
                if self.source.q.val().failed {
                    // The pair failed while Gather had the job.
                    self.ends.next = true;
                    self.source_next.next.acknowledged = self.credit.sent.val() + 1;
                    if !self.refused_by_gather.val() {
                        self.ending.next.status = self.source.q.val().status;
                    }
                } else if self.refused_by_gather.val() {
                    self.ends.next = true;
                    self.source_next.next.taken = self.taken_back.val();
                    self.changed.next = true;
                    self.push.next = self.source.q.val().count.any() & !self.source.q.val().queued;
                } else {
                    self.unacknowledged.record.valid.next = true;
                    if !self.credit.unacknowledged.val().any() {
                        self.source_next.next.since = self.now.q.val();
                    }
                }
            }
            Step::Fault => {
                self.walks.next = true;
                self.for_fault.d.next = true;
                self.for_control.d.next = false;
                if self.source.q.val().connected & !self.source.q.val().failed & self.in_range.val()
                {
                    self.write.next = true;
                    self.source_next.next.failed = true;
                    self.source_next.next.status = self.fault.data.val().status;
                    self.source_next.next.count = 0.into();
                    self.source_next.next.acknowledged = self.credit.sent.val();
                    self.walk.next.status = self.fault.data.val().status;
                    self.walk_until.next = self.credit.sent.val();
                    self.walk_waiting.next = self.source.q.val().count;
                }
            }
            Step::Control => {
                if self.is_read.val() {
                    if self.source.q.val().connected & self.in_range.val() {
                        self.report.next.state = PairState::Connected;
                        self.report.next.available = self.source.q.val().granted
                            - bit_cast::<8, 32>(self.credit.in_use.val());
                        self.report.next.unacknowledged =
                            bit_cast::<8, 32>(self.credit.unacknowledged.val());
                        self.report.next.waiting = self.source.q.val().count;
                        if self.source.q.val().failed {
                            self.report.next.state = PairState::Failed;
                            self.report.next.available = 0.into();
                        }
                    }
                    self.control_result.next = self.report.val().into();
                    self.control.ready.next = true;
                } else if self.in_range.val() & self.has_given.val() {
                    self.dropped.valid.next = true;
                    self.dropped.data.next = self.pair.q.val();
                    self.awaits_result.d.next = true;
                } else {
                    // What is still there of the pair as it was is flushed.
                    self.walks.next = true;
                    self.for_fault.d.next = false;
                    self.for_control.d.next = true;
                    if self.in_range.val() {
                        self.dropped.valid.next = true;
                        self.dropped.data.next = self.pair.q.val();
                        self.walk.next.status = Status::Flushed;
                        self.walk_until.next = self.source.q.val().taken;
                        self.walk_waiting.next = self.source.q.val().count;
                        self.write.next = true;
                        self.changed.next = self.is_set.val();
                        // A turn stays in its queue and finds nothing to do.
                        self.source_next.next = Source::default();
                        self.source_next.next.queued = self.source.q.val().queued;
                        if self.is_set.val() {
                            self.source_next.next.connected = true;
                            self.source_next.next.endpoint = self.setup.val().endpoint;
                            self.source_next.next.domain = self.setup.val().domain;
                            self.source_next.next.granted = self.setup.val().remote_credits;
                            if self.setup.val().remote_credits > MAX_CREDITS {
                                self.source_next.next.granted = MAX_CREDITS;
                            }
                        }
                    }
                }
            }
            Step::Progress => {
                if self.sound.val() {
                    if self.credit.lies.val() {
                        self.fail.next = true;
                    } else {
                        self.write.next = true;
                        self.mark_pending.d.next = self.answers.val();
                        self.mark_held.d.next.pair = self.pair.q.val();
                        self.mark_held.d.next.ask = false;
                        self.source_next.next.acknowledged = self.credit.acknowledged.val();
                        self.source_next.next.returned = self.credit.returned.val();
                        self.changed.next =
                            self.credit.returned.val() != self.source.q.val().returned;
                        self.push.next = self.changed.val()
                            & self.source.q.val().count.any()
                            & !self.source.q.val().queued;
                        if self.credit.acknowledged.val() != self.source.q.val().acknowledged {
                            self.source_next.next.since = self.now.q.val();
                            self.walks.next = true;
                            self.walk_until.next = self.credit.acknowledged.val();
                            self.for_fault.d.next = false;
                            self.for_control.d.next = false;
                        }
                    }
                }
            }
            Step::Scan => {
                self.scan_due.d.next = false;
                self.scan.d.next = self.scan.q.val() + 1;
                if self.scan.q.val() == self.last_pair.val() {
                    self.scan.d.next = 0.into();
                }
                if self.late.val() {
                    if self.silent.val() {
                        self.fail.next = true;
                        self.count_timeouts.next = true;
                    } else if self.asks.val() {
                        self.write.next = true;
                        self.source_next.next.since = self.now.q.val();
                        self.mark_pending.d.next = true;
                        self.mark_held.d.next.pair = self.pair.q.val();
                        self.mark_held.d.next.ask = true;
                        self.count_asks.next = true;
                    }
                }
            }
            Step::Turn => {
                self.write.next = true;
                self.source_next.next.queued = false;
                self.requeue.d.next = false;
                self.job_pair.d.next = self.pair.q.val();
                self.job_domain.d.next = self.source.q.val().domain;
                if self.sound.val()
                    & !self.stops.val()
                    & self.source.q.val().count.any()
                    & self.has_credit.val()
                {
                    self.source_next.next.head = self.source.q.val().head + 1;
                    self.source_next.next.count = self.source.q.val().count - 1;
                    self.source_next.next.taken = self.source.q.val().taken + 1;
                    self.source_next.next.given = self.source.q.val().given + 1;
                    self.changed.next = true;
                    self.loading.d.next = true;
                    if (self.source.q.val().count != 1) & self.credit.has_two.val() {
                        self.source_next.next.queued = true;
                        self.requeue.d.next = true;
                        if !self.credit.unacknowledged.val().any() {
                            self.source_next.next.since = self.now.q.val();
                        }
                    }
                }
            }
            Step::Accept => {
                self.sends.ready.next = true;
                if !self.is_own_pair.val() {
                    self.refusal.next = Status::InvalidPair;
                    self.count_invalid_requests.next = true;
                } else if self.request.val().length > EAGER_MAX {
                    self.refusal.next = Status::TooLong;
                    self.count_invalid_requests.next = true;
                } else if self.source.q.val().failed {
                    self.refusal.next = self.source.q.val().status;
                } else if self.source.q.val().count == SEND_QUEUE_DEPTH {
                    self.refusal.next = Status::QueueFull;
                } else {
                    self.write.next = true;
                    self.queues.next = true;
                    self.source_next.next.count = self.source.q.val().count + 1;
                    self.push.next = self.has_credit.val() & !self.source.q.val().queued;
                    // It may stand in the queue of turns from a time when it had other sends.
                    if !self.source.q.val().count.any() & !self.credit.unacknowledged.val().any() {
                        self.source_next.next.since = self.now.q.val();
                    }
                }
                self.ends.next = !self.write.val();
                self.ending.next.context = self.request.val().context;
                self.ending.next.length = self.request.val().length;
                self.ending.next.status = self.refusal.val();
            }
            Step::Cancel => {
                if self.is_own_pair.val() {
                    self.cancel.count.next = self.source.q.val().count;
                }
            }
            _ => {}
        }

        // A cancel walks the queue, and nothing else is done meanwhile.
        self.cancel.head.next = self.source.q.val().head;
        self.cancel.target.next = self.request.val().target;
        self.cancel.read.next = self.waiting.read.val();
        self.in_time.next = self.cancel.done.val() & self.cancel.found.val();
        self.takes_out.next = self.in_time.val();
        self.too_late.next = self.cancel.done.val() & !self.cancel.found.val();
        self.moves_up.next = self.cancel.moves.val();
        if self.cancel.hits.val() {
            self.ends.next = true;
            self.ending.next.endpoint = self.source.q.val().endpoint;
            self.ending.next.request = self.waiting.read.val().request;
            self.ending.next.context = self.waiting.read.val().context;
            self.ending.next.length = bit_cast::<64, 11>(self.waiting.read.val().length);
            self.ending.next.status = Status::Cancelled;
        }
        if self.too_late.val() {
            self.ends.next = true;
            self.ending.next.kind = CompletionKind::Cancel;
            self.ending.next.status = Status::TooLate;
        }
        if self.takes_out.val() {
            self.write.next = true;
            self.source_next.next.count = self.source.q.val().count - 1;
        }
        if self.cancel.done.val() {
            self.sends.ready.next = true;
        }
        // A cancel isn't begun while a walk is under way, nor a walk during a cancel.
        self.given_up.valid.next = self.in_time.val() | self.unacknowledged.released.valid.val();
        self.given_up.data.next = self.unacknowledged.released.data.val();
        if self.in_time.val() {
            self.given_up.data.next = self.sends.data.val().endpoint;
        }

        // ---- What has been decided is written.

        if self.fail.val() {
            self.write.next = true;
            self.source_next.next.failing = true;
            self.fault_pending.d.next = true;
            self.fault_pair.d.next = self.pair.q.val();
        }
        if self.push.val() {
            self.source_next.next.queued = true;
            if !self.credit.unacknowledged.val().any() {
                self.source_next.next.since = self.now.q.val();
            }
        }
        // A pair that has given a job gets into the queue again a cycle later, when its old place is free.
        self.pushed.next = self.pair.q.val();
        if self.loading.q.val() {
            self.pushed.next = self.job_pair.q.val();
        }
        self.turns.input.valid.next =
            self.push.val() | (self.loading.q.val() & self.requeue.q.val());
        self.turns.input.data.next = self.pushed.val();
        self.sources.write_enable.next = self.write.val() | !self.cleared.q.val();
        self.sources.write_address.next = self.pair.q.val();
        self.sources.write_data.next = self.source_next.val();
        if !self.cleared.q.val() {
            self.sources.write_address.next = self.clearing.q.val();
            self.sources.write_data.next = Source::default();
            self.clearing.d.next = self.clearing.q.val() + 1;
            self.cleared.d.next = self.clearing.q.val() == self.last_pair.val();
        }

        // The waiting sends' memory.
        self.flags.next = self.request.val().flags;
        self.at.next = self.request.val().address;
        self.key.next = self.request.val().key;
        if self.flags.val().get_bit(3) {
            self.at.next = bit_cast::<64, 32>(self.request.val().target)
                | (bit_cast::<64, 32>(self.request.val().inline1) << 32);
            self.key.next = self.request.val().inline2.get_bits::<32>(0);
        }
        self.accepted.next = WaitingSend {
            context: self.request.val().context,
            length: bit_cast::<11, 64>(self.request.val().length),
            errors_only: self.flags.val().get_bit(1),
            ready: self.flags.val().get_bit(0),
            inline: self.flags.val().get_bit(3),
            request: self.request.val().request,
            match_bits: self.request.val().match_bits,
            immediate: self.request.val().immediate,
            address: self.at.val(),
            key: self.key.val(),
            tail: self.request.val().inline2.get_bits::<32>(32),
        };
        self.waiting.write.valid.next = self.queues.val();
        self.waiting.write.data.next = self.accepted.val();
        self.waiting.write_pair.next = self.pair.q.val();
        self.waiting.write_place.next = self.source.q.val().head + self.source.q.val().count;
        if self.moves_up.val() {
            self.waiting.write.valid.next = true;
            self.waiting.write.data.next = self.waiting.read.val();
            self.waiting.write_place.next = self.cancel.upper_place.val();
        }
        self.waiting.read_pair.next = self.unacknowledged.pair.val();
        self.waiting.read_place.next = self.unacknowledged.place.val();
        if self.deciding.q.val() == Step::Turn {
            self.waiting.read_pair.next = self.pair.q.val();
            self.waiting.read_place.next = self.source.q.val().head;
        }
        if self.cancel.busy.val() {
            self.waiting.read_pair.next = self.pair.q.val();
            self.waiting.read_place.next = self.cancel.place.val();
        }

        // ---- Jobs.

        if self.loading.q.val() {
            self.job_send.d.next = self.waiting.read.val();
        }
        self.giving.d.next = self.loading.q.val();
        self.settling.d.next = self.giving.q.val();
        self.job_ready.next = self.job_send.q.val().ready;
        self.job_inline.next = self.job_send.q.val().inline;
        self.job.valid.next = self.giving.q.val();
        self.job.data.next = SendJob {
            pair: self.job_pair.q.val(),
            domain: self.job_domain.q.val(),
            context: self.job_send.q.val().context,
            length: bit_cast::<16, 11>(self.job_send.q.val().length),
            match_bits: self.job_send.q.val().match_bits,
            immediate: self.job_send.q.val().immediate,
            ready: self.job_ready.val(),
            inline: self.job_inline.val(),
            address: self.job_send.q.val().address,
            key: self.job_send.q.val().key,
            tail: self.job_send.q.val().tail,
        };
        self.sent_of_job.next = Sent {
            request: self.job_send.q.val().request,
            context: self.job_send.q.val().context,
            length: self.job_send.q.val().length,
            errors_only: self.job_send.q.val().errors_only,
        };
        self.given.input.valid.next = self.giving.q.val();
        self.given.input.data.next = Given {
            pair: self.job_pair.q.val(),
            sent: self.sent_of_job.val(),
        };
        self.results.input.valid.next = self.job_result.valid.val();
        self.results.input.data.next = self.job_result.data.val();

        // ---- What ends.

        self.unacknowledged.record.data.next = self.given.output.data.val().sent;
        self.unacknowledged.record_pair.next = self.pair.q.val();
        self.unacknowledged.record_number.next = self.credit.sent.val();
        self.walk.next.from = self.walk_from.val();
        self.walk.next.until = self.walk_until.val();
        self.walk.next.waiting = self.walk_waiting.val();
        self.unacknowledged.walk.valid.next = self.walks.val();
        self.unacknowledged.walk.data.next = self.walk.val();
        self.unacknowledged.walk_pair.next = self.pair.q.val();
        self.unacknowledged.waiting.next = self.waiting.read.val();
        self.ended.input.valid.next = self.ends.val() | self.unacknowledged.ended.valid.val();
        self.ended.input.data.next = self.unacknowledged.ended.data.val();
        if self.ends.val() {
            self.ended.input.data.next = self.ending.val();
        }
        self.unacknowledged.ended.ready.next = self.ended.input.ready.val() & !self.ends.val();
        self.completion.next = Completion::default();
        self.completion.next.request = self.ended.output.data.val().request;
        self.completion.next.pair = self.ended.output.data.val().pair;
        self.completion.next.context = self.ended.output.data.val().context;
        self.completion.next.length = self.ended.output.data.val().length;
        self.completion.next.status = self.ended.output.data.val().status;
        self.completion.next.kind = self.ended.output.data.val().kind;
        self.complete.valid.next = self.ended.output.valid.val();
        self.complete.data.next = WriteCompletion {
            endpoint: self.ended.output.data.val().endpoint,
            entry: self.completion.val(),
        };
        self.ended.output.ready.next = self.complete.ready.val();
        self.ended_leaves.next = self.ended.output.valid.val() & self.complete.ready.val();

        // A fault and a control request end when the completions in front have been taken.
        self.drained.next = self.draining.q.val() & !self.drain.q.val().any();
        if self.ended_leaves.val() & self.drain.q.val().any() {
            self.drain.d.next = self.drain.q.val() - 1;
        }
        if self.drained.val() {
            self.draining.d.next = false;
        }
        if self.unacknowledged.done.val() & (self.for_fault.q.val() | self.for_control.q.val()) {
            self.draining.d.next = true;
            self.drain.d.next = self.ended.level.val();
            if self.ended_leaves.val() {
                self.drain.d.next = self.ended.level.val() - 1;
            }
        }
        self.fault.ready.next = self.drained.val() & self.for_fault.q.val();
        if self.drained.val() & self.for_control.q.val() {
            self.control.ready.next = true;
        }

        // ---- Requests to the neighbours.

        send!(self.mark, self.mark_pending.q.val(), self.mark_held.q.val());
        self.asked_fault.next = Fault::default();
        self.asked_fault.next.pair = self.fault_pair.q.val();
        self.asked_fault.next.status = Status::LinkError;
        send!(
            self.fault_request,
            self.fault_pending.q.val(),
            self.asked_fault.val()
        );
        self.monitor_source_valid.next = self.changed.val();
        self.monitor_source_pair.next = self.pair.q.val();
        self.monitor_source_taken.next = self.source_next.val().taken;
        self.monitor_source_returned.next = self.source_next.val().returned;

        // ---- What must hold.

        self.in_use_next.next = self.source_next.val().taken - self.source_next.val().returned;
        self.unacknowledged_next.next =
            self.source_next.val().taken - self.source_next.val().acknowledged;
        self.returnable_next.next =
            self.source_next.val().acknowledged - self.source_next.val().returned;
        self.credits_used_are_within_the_grant.ok.next = !self.write.val()
            | (self.in_use_next.val() <= bit_cast::<32, 8>(self.source_next.val().granted));
        self.returned_acknowledged_taken_are_in_order.ok.next = !self.write.val()
            | self.source_next.val().failed
            | ((self.unacknowledged_next.val() <= MAX_CREDITS)
                & (self.returnable_next.val() <= MAX_CREDITS));
        self.a_pair_has_one_turn_at_a_time.ok.next = (!self.push.val()
            | !self.source.q.val().queued)
            & (self.turns.input.ready.val() | !(self.push.val() | self.loading.q.val()))
            & !(self.push.val() & self.loading.q.val());
        self.waiting_sends_fit_the_queue_of_their_pair.ok.next =
            !self.write.val() | (self.source_next.val().count <= SEND_QUEUE_DEPTH);
        self.only_a_job_is_answered.ok.next =
            !self.job_result.valid.val() | (self.results.level.val() < self.given.level.val());
        self.one_reservation_is_given_up_at_a_time.ok.next =
            !(self.in_time.val() & self.unacknowledged.released.valid.val());
        self.what_ends_has_room.ok.next = !self.ends.val() | self.ended.input.ready.val();
    }
}
