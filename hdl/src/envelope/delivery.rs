//! Brings arriving messages and posted receives together and the payload to its place.
//!
//! ```text
//!   arrival, payload ──►┌──────────┐◄──► Lists     which entry
//!   lists ─────────────►│          │◄──► Regions   may the buffer be written
//!   fault ─────────────►│ Delivery ├───► write     payload to buffer or slot
//!   control ───────────►│          │◄──► read      slot to buffer
//!                       └─┬──┬──┬──┘
//!             complete ◄──┘  │  └──► raise, fault_request
//!                        sink_update
//! ```
//!
//! One thing is done at a time, to its end, so that "exactly one of matched and cancelled" and "completion
//! after the last write response" are properties of a sequence. An arrival goes before a list request;
//! faults and control requests before both, but one at a time if an arrival waits.
//!
//! **A full list.** The receive that finds it full is kept, by its handle: its endpoint is *stalled* and the receive *waits*. What
//! is posted behind it may look for a message, but isn't posted: it would overtake. The waiting one is refused, so that the host posts
//! it again, when that may change something: when a message has come that found no receive, since then nobody behind may look either
//! before those in front have; when a pair has failed; or when a batch of posted receives has gone. The host says with the first
//! one that it posts again that it has heard of all refusals, and the endpoint is no longer stalled.
//!
//! **Multi-receives.** A receive with `FLAG_MULTI` stays posted after a message, and its buffer begins behind it from then on. It was posted with one
//! completion reserved, like any request, and that is its last one's. So a message after which it stays needs a completion of its own, reserved
//! at that moment; if none is free the receive ends with this message instead. It ends too when less of the buffer is left than it was posted to keep, or when something is wrong.
//!
//! **Claims.** A claimed message is out of Lists, and keeps its slot and its credit. Its entry in the memory of messages holds the number
//! of the claim, which is half of the handle; the other half is the place. A handle is good while the place's slot is taken and the number is
//! the same, for the endpoint of the pair. So nothing has to be cleared when a pair goes: its slots are vacant then.
//!
//! **Ready messages.** A ready message that finds no receive is refused: its payload is dropped, its envelope freed, and its sender told. But
//! a receive that the host has posted may not have got here. It may be in the list ring, or, once a receive has found the list full, still
//! with the host, which posts what it keeps one by one and says with the last that it was. A ready message that comes meanwhile is queued as any other.
//!
//! What matching needs of an entry is in Lists; the rest is here, in two memories that the entry's
//! index addresses. An unexpected payload rests in one of the slots that its pair reserved in host
//! memory; which are taken is a bitmap in the pair's table entry.

use crate::config::Config;
use crate::construct::construct;
use crate::matching;
use crate::prelude::*;
use crate::prim::{BlockRam, Fifo, Ram};
use crate::types::{
    Arrival, Completion, ControlRequest, DmaRequest, Fault, FetchedList, ListRequest, MatchCommand,
    MatchReply, PairReport, PairSetup, RaiseEvent, RegionQuery, SinkUpdate, WriteCompletion,
};
use abi::completion::COMPLETION_MORE;
use abi::control::{Operation, RIGHT_LOCAL_WRITE};
use abi::event::Cause;
use abi::limits::{EAGER_MAX, MAX_CREDITS, MAX_ENDPOINTS};
use abi::request::{
    FLAG_ANY_SOURCE, FLAG_MULTI, FLAG_NOTHING_KEPT, FLAG_RESUME, Opcode, claim_handle, place,
};
use abi::status::Status;

const _: () = assert!(EAGER_MAX == 1 << 10, "slots are addressed by a shift");
const _: () = assert!(MAX_CREDITS == 16, "the bitmap of slots");
const _: () = assert!(
    claim_handle(1, 0) == 1 << 16 && place(1, 0) == 1 << 4,
    "the kernel cuts handles of claims here"
);
const _: () = assert!(FLAG_ANY_SOURCE == 1 << 0, "the kernel tests this bit");
const _: () = assert!(FLAG_MULTI == 1 << 2, "the kernel tests this bit");
const _: () = assert!(FLAG_RESUME == 1 << 1, "the kernel tests this bit");
const _: () = assert!(FLAG_NOTHING_KEPT == 1 << 3, "the kernel tests this bit");
const _: () = assert!(
    MAX_ENDPOINTS <= 16,
    "bits of the endpoints that are stalled"
);

/// A contract to break, so that a test can show that its breach is seen. The input `mutation` is
/// zero in a card.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum DeliveryMutation {
    /// Nothing is broken.
    None = 0,
    /// Completes before the payload's write is answered.
    CompleteEarly = 1,
    /// A slot is not given back.
    LoseSlots = 2,
    /// A credit is returned although the message rests in a slot.
    FreeUnexpected = 3,
    /// The buffer is not checked again when a message arrives for it.
    SkipSecondCheck = 4,
    /// A cancel that was in time says that it was too late.
    CancelSaysTooLate = 5,
    /// More is written than the buffer holds.
    IgnoreBufferLength = 6,
    /// Slot 0 is given out whether or not it is taken.
    ReuseSlots = 7,
    /// The slot after the message's is given back.
    FreeWrongSlot = 8,
    /// A refused access is not counted.
    ForgetRefusals = 9,
    /// A receive is posted past one that waits for room.
    Overtake = 10,
    /// A receive behind one that waits looks although a message has come since.
    LookAgain = 11,
    /// A receive that waits isn't told of a message.
    SleepOn = 12,
    /// A multi-receive stays whatever is left of its buffer.
    NeverEnds = 13,
    /// A multi-receive stays although no completion is free.
    Overcommit = 14,
    /// A claim leaves its message in Lists.
    ClaimByProbe = 15,
    /// The credit is returned at the claim.
    FreeClaimed = 16,
    /// The slot is given back at the claim.
    VacateClaimed = 17,
    /// A claim is good for every endpoint.
    ClaimsForAll = 18,
    /// A handle is good if its slot is taken, by whatever message.
    StaleClaims = 19,
    /// A discard doesn't return the credit.
    KeepDiscarded = 20,
    /// Lists are given a command before they have answered the one before.
    Hurry = 21,
    /// A refused message's credit isn't returned.
    KeepRefused = 22,
    /// A ready message is refused although the host keeps receives back.
    IgnoreBacklog = 23,
    /// A ready message is refused although the list ring has more.
    IgnoreRing = 24,
    /// A ready message waits for its receive as any other.
    ReadyWaits = 25,
    /// The host is believed to keep nothing although the endpoint is stalled.
    KeptForgotten = 26,
}

/// What is kept of a pair.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Pair {
    connected: Bit,
    failed: Bit,
    /// What the pair's operations complete with once it has failed.
    status: Bits<8>,
    endpoint: Bits<8>,
    /// Slots that the pair has.
    granted: Bits<8>,
    /// Card address of slot 0.
    slots: Bits<64>,
    /// Slots that hold a message.
    used: Bits<16>,
    /// Accesses of the peer that a region refused.
    refused: Bits<32>,
}

/// What is kept of a posted receive beside its key.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Receive {
    endpoint: Bits<8>,
    domain: Bits<8>,
    request: Bits<32>,
    key: Bits<32>,
    address: Bits<64>,
    /// Bytes of the buffer that are left, 2³² − 1 if more.
    length: Bits<32>,
    multi: Bit,
    min_free: Bits<32>,
}

/// What is kept of an endpoint's receive that waits for room.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Waiting {
    request: Bits<32>,
    any_source: Bit,
    pair: Bits<16>,
}

/// What is kept of an unexpected message beside its key.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Message {
    pair: Bits<16>,
    endpoint: Bits<8>,
    context_id: Bits<16>,
    match_bits: Bits<64>,
    immediate: Bits<64>,
    length: Bits<16>,
    slot: Bits<4>,
    /// Number of the claim, 0 if the message isn't claimed.
    claim: Bits<16>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Clear,
    Idle,
    // An arriving message.
    ArrivalPair,
    ArrivalMatch,
    ArrivalHit,
    ArrivalCheck,
    ArrivalChecked,
    MissSlot,
    MissInsert,
    MissInserted,
    Overflow,
    FaultRequest,
    // A payload on its way to memory.
    Write,
    Stream,
    Drain,
    Wait,
    // A request of a list ring.
    ListPair,
    ListCheck,
    ListChecked,
    ListLook,
    ListMatch,
    Hold,
    CancelMatch,
    ClaimMatch,
    ProbeMatch,
    ProbeFound,
    Handle,
    // From a slot to the buffer.
    CopyFound,
    CopySetup,
    CopyRead,
    CopyFill,
    CopyDiscard,
    Release,
    ReleaseWrite,
    // A multi-receive: does it stay.
    Settle,
    Retire,
    Retired,
    // Ends.
    Complete,
    Update,
    // Faults and control: flushing and forgetting, one entry at a time.
    FaultPair,
    ControlPair,
    Flush,
    FlushMatch,
    FlushFound,
    FlushWaiting,
    Forget,
    ForgetMatch,
    // A receive that waits for room hears that it may try again.
    Wake,
}

/// What a payload's way ends with.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Way {
    /// From the wire to a posted buffer.
    Hit,
    /// From the wire to a slot.
    Slot,
    /// From a slot to a buffer.
    Copy,
    /// From the wire to nowhere.
    Nowhere,
    /// From the wire to nowhere, and the sender is told.
    Refuse,
}

/// What a flush is for.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Flush {
    /// A pair has failed.
    Fault,
    /// An endpoint is being closed.
    Endpoint,
    /// A pair is being closed.
    Pair,
}

/// The block.
#[derive(LogicBlock)]
pub struct Delivery {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// Contract to break, for tests; zero in a card. See [`DeliveryMutation`].
    pub mutation: Signal<In, Bits<5>>,
    /// The tables are cleared.
    pub initialized: Signal<Out, Bit>,
    /// A message has come.
    pub arrival_valid: Signal<In, Bit>,
    /// It is taken.
    pub arrival_ready: Signal<Out, Bit>,
    /// Its envelope.
    pub arrival: Signal<In, Arrival>,
    /// A bit an endpoint: its list ring has more.
    pub lists_pending: Signal<In, Bits<16>>,
    /// A word of its payload.
    pub payload_valid: Signal<In, Bit>,
    /// It is taken.
    pub payload_ready: Signal<Out, Bit>,
    /// The word.
    pub payload: Signal<In, Bits<64>>,
    /// There is a request of a list ring.
    pub lists_valid: Signal<In, Bit>,
    /// It is taken.
    pub lists_ready: Signal<Out, Bit>,
    /// The request.
    pub lists: Signal<In, FetchedList>,
    /// A pulse: an operation for Lists.
    pub command_valid: Signal<Out, Bit>,
    /// It is taken: always so when Delivery has one, since the one before has been answered.
    pub command_ready: Signal<In, Bit>,
    /// The operation.
    pub command: Signal<Out, MatchCommand>,
    /// A pulse: its answer.
    pub reply_valid: Signal<In, Bit>,
    /// The answer.
    pub reply: Signal<In, MatchReply>,
    /// A question for Regions.
    pub query_valid: Signal<Out, Bit>,
    /// It is taken.
    pub query_ready: Signal<In, Bit>,
    /// The question.
    pub query: Signal<Out, RegionQuery>,
    /// A pulse: the answer.
    pub allowed_valid: Signal<In, Bit>,
    /// The answer.
    pub allowed: Signal<In, Bit>,
    /// A write of host memory is asked for.
    pub write_request_valid: Signal<Out, Bit>,
    /// It is taken.
    pub write_request_ready: Signal<In, Bit>,
    /// Where to and how much.
    pub write_request: Signal<Out, DmaRequest>,
    /// A word to write.
    pub write_data_valid: Signal<Out, Bit>,
    /// It is taken.
    pub write_data_ready: Signal<In, Bit>,
    /// The word.
    pub write_data: Signal<Out, Bits<64>>,
    /// A pulse: the write has been answered.
    pub write_done: Signal<In, Bit>,
    /// With it: by an error.
    pub write_done_error: Signal<In, Bit>,
    /// A read of host memory is asked for.
    pub read_request_valid: Signal<Out, Bit>,
    /// It is taken.
    pub read_request_ready: Signal<In, Bit>,
    /// Where from and how much.
    pub read_request: Signal<Out, DmaRequest>,
    /// A word read.
    pub read_data_valid: Signal<In, Bit>,
    /// It is taken.
    pub read_data_ready: Signal<Out, Bit>,
    /// The word.
    pub read_data: Signal<In, Bits<64>>,
    /// With the last word: something of the read was answered by an error.
    pub read_data_error: Signal<In, Bit>,
    /// A completion to write.
    pub complete_valid: Signal<Out, Bit>,
    /// It is taken.
    pub complete_ready: Signal<In, Bit>,
    /// The completion.
    pub complete: Signal<Out, WriteCompletion>,
    /// A bit an endpoint: a completion can be reserved.
    pub completion_free: Signal<In, Bits<32>>,
    /// A pulse: one is reserved.
    pub reserve_valid: Signal<Out, Bit>,
    /// Its endpoint.
    pub reserve_endpoint: Signal<Out, Bits<8>>,
    /// A pulse: a reserved completion will not be written.
    pub release_valid: Signal<Out, Bit>,
    /// Its endpoint.
    pub release_endpoint: Signal<Out, Bits<8>>,
    /// Progress of a pair.
    pub sink_update_valid: Signal<Out, Bit>,
    /// It is taken.
    pub sink_update_ready: Signal<In, Bit>,
    /// The progress.
    pub sink_update: Signal<Out, SinkUpdate>,
    /// An event.
    pub raise_valid: Signal<Out, Bit>,
    /// It is taken.
    pub raise_ready: Signal<In, Bit>,
    /// The event.
    pub raise: Signal<Out, RaiseEvent>,
    /// A pair has to fail.
    pub fault_request_valid: Signal<Out, Bit>,
    /// It is taken.
    pub fault_request_ready: Signal<In, Bit>,
    /// The pair and why.
    pub fault_request: Signal<Out, Fault>,
    /// A pair has failed.
    pub fault_valid: Signal<In, Bit>,
    /// The receives that name it are complete.
    pub fault_ready: Signal<Out, Bit>,
    /// The pair and the status.
    pub fault: Signal<In, Fault>,
    /// There is a control request.
    pub control_valid: Signal<In, Bit>,
    /// The control request.
    pub control: Signal<In, ControlRequest>,
    /// It is done.
    pub control_done: Signal<Out, Bit>,
    /// With it, for `PairRead`: a `PairReport` of what is kept here. Zero otherwise.
    pub control_result: Signal<Out, Bits<64>>,
    /// A message met its receive on arrival.
    pub count_expected: Signal<Out, Bit>,
    /// A message went to the unexpected list.
    pub count_unexpected: Signal<Out, Bit>,
    /// A request was refused as malformed.
    pub count_invalid_requests: Signal<Out, Bit>,

    pairs: Ram<Pair>,
    receives: Ram<Receive>,
    /// Read and written in different states: while a word is written another one is read.
    messages: BlockRam<Message>,
    /// Of each endpoint that is stalled, the receive that waits, or was the last to.
    waiting: Ram<Waiting>,
    /// Faults of pairs that Delivery itself gave up; one a pair at most, so that it never waits for Faults, which may be waiting for it.
    faults: Fifo<Fault>,
    /// A payload on its way from slot to buffer: all of it is read before any is written.
    copy: Fifo<Bits<64>>,
    state: Reg<State>,
    clearing: Reg<Bits<16>>,
    message: Reg<Message>,
    receive: Reg<Receive>,
    list: Reg<FetchedList>,
    way: Reg<Way>,
    flush: Reg<Flush>,
    /// Card address that the payload goes to, or comes from.
    target: Reg<Bits<64>>,
    /// Bytes that go to memory.
    length: Reg<Bits<16>>,
    /// Words still to go to memory.
    words: Reg<Bits<16>>,
    /// Words of the payload still to come.
    rest: Reg<Bits<16>>,
    done: Reg<Bit>,
    failed: Reg<Bit>,
    status: Reg<Bits<8>>,
    kind: Reg<Bits<8>>,
    /// The completion is of the message in hand.
    found_one: Reg<Bit>,
    accepted: Reg<Bit>,
    freed: Reg<Bit>,
    /// The message in hand is to find a receive, or to be refused.
    ready: Reg<Bit>,
    refused: Reg<Bit>,
    /// State after the completion.
    after: Reg<State>,
    /// A write has been asked for and not been answered.
    writing: Reg<Bit>,
    /// Place of the receive in hand.
    place: Reg<Bits<16>>,
    /// The multi-receive in hand stays.
    more: Reg<Bit>,
    /// A bit an endpoint: what it posts may not be posted, unless it says that it begins anew.
    stalled: Reg<Bits<16>>,
    /// The host may keep receives of it back, since one found the list full.
    kept: Reg<Bits<16>>,
    /// Its receive waits.
    waits: Reg<Bits<16>>,
    /// Since then something has come that those in front have to look at first.
    news: Reg<Bits<16>>,
    /// Since then a batch of posted receives has gone.
    room: Reg<Bits<16>>,
    /// Posted receives gone, modulo the batch.
    gone: Reg<Bits<4>>,
    /// Handle that a completion names beside its own.
    names: Reg<Bits<32>>,
    /// Number of the next claim, never 0.
    claims: Reg<Bits<16>>,
    /// The next arrival goes before the next fault or control request.
    arrival_first: Reg<Bit>,

    handle: Signal<Local, Bits<32>>,
    handle_place: Signal<Local, Bits<16>>,
    handle_pair: Signal<Local, Bits<16>>,
    handle_slot: Signal<Local, Bits<4>>,
    handle_claim: Signal<Local, Bits<16>>,
    handle_live: Signal<Local, Bit>,
    handle_good: Signal<Local, Bit>,
    by_handle: Signal<Local, Bit>,
    claimed: Signal<Local, Message>,
    slotted: Signal<Local, Message>,
    slot_place: Signal<Local, Bits<16>>,
    rest_of: Signal<Local, Receive>,
    left: Signal<Local, Bits<32>>,
    enough: Signal<Local, Bit>,
    can_reserve: Signal<Local, Bit>,
    finish: Signal<Local, State>,
    wakes: Signal<Local, Bits<16>>,
    waker: Signal<Local, Bits<8>>,
    wake_any: Signal<Local, Bit>,
    waiting_address: Signal<Local, Bits<8>>,
    endpoint_bit: Signal<Local, Bits<16>>,
    flush_bit: Signal<Local, Bits<16>>,
    stalled_now: Signal<Local, Bit>,
    resumes: Signal<Local, Bit>,
    nothing_kept: Signal<Local, Bit>,
    held_back: Signal<Local, Bit>,
    kept_of: Signal<Local, Bits<16>>,
    pending_of: Signal<Local, Bits<16>>,
    resume: Signal<Local, Bit>,
    one_goes: Signal<Local, Bit>,
    waiting_named: Signal<Local, Bit>,
    held: Signal<Local, Waiting>,
    pair: Signal<Local, Pair>,
    changed_pair: Signal<Local, Pair>,
    pair_address: Signal<Local, Bits<16>>,
    pair_write: Signal<Local, Bit>,
    setup: Signal<Local, PairSetup>,
    is_set: Signal<Local, Bit>,
    is_clear: Signal<Local, Bit>,
    is_flush: Signal<Local, Bit>,
    is_read: Signal<Local, Bit>,
    report: Signal<Local, PairReport>,
    own: Signal<Local, Bit>,
    arriving: Signal<Local, Arrival>,
    arrival_now: Signal<Local, Bit>,
    fetched: Signal<Local, ListRequest>,
    found: Signal<Local, Message>,
    found_receive: Signal<Local, Receive>,
    posted: Signal<Local, Receive>,
    words_of: Signal<Local, Bits<16>>,
    bytes: Signal<Local, Bits<16>>,
    slot_any: Signal<Local, Bit>,
    slot: Signal<Local, Bits<4>>,
    slot_offset: Signal<Local, Bits<64>>,
    slot_bit: Signal<Local, Bits<16>>,
    source_ok: Signal<Local, Bit>,
    any_source: Signal<Local, Bit>,
    flags: Signal<Local, Bits<8>>,
    long: Signal<Local, Bit>,
    list_length: Signal<Local, Bits<64>>,
    wanted: Signal<Local, MatchCommand>,
    command_out: Signal<Local, MatchCommand>,
    query_out: Signal<Local, RegionQuery>,
    entry: Signal<Local, Completion>,
    outgoing: Signal<Local, WriteCompletion>,
    used: Signal<Local, Bits<16>>,
    taken: Signal<Local, Bits<16>>,
    own_fault: Signal<Local, Fault>,
    moved: Signal<Local, Bit>,

    pair_count: Constant<Bits<16>>,
    last_pair: Constant<Bits<16>>,
    pair_set: Constant<Bits<8>>,
    pair_clear: Constant<Bits<8>>,
    endpoint_flush: Constant<Bits<8>>,
    pair_read: Constant<Bits<8>>,
    no_report: Constant<PairReport>,
    no_pair: Constant<Pair>,
    no_match: Constant<MatchCommand>,
    no_entry: Constant<Completion>,
    no_event: Constant<RaiseEvent>,
    no_receive: Constant<Receive>,
    no_waiting: Constant<Waiting>,
    no_query: Constant<RegionQuery>,
    no_outgoing: Constant<WriteCompletion>,
    no_update: Constant<SinkUpdate>,
    no_fault: Constant<Fault>,
    no_request: Constant<DmaRequest>,
    right: Constant<Bits<8>>,
    op_cancel: Constant<Bits<8>>,
    kind_receive: Constant<Bits<8>>,
    kind_cancel: Constant<Bits<8>>,
    kind_probe: Constant<Bits<8>>,
    kind_claim: Constant<Bits<8>>,
    success: Constant<Bits<8>>,
    truncated: Constant<Bits<8>>,
    cancelled: Constant<Bits<8>>,
    too_late: Constant<Bits<8>>,
    no_message: Constant<Bits<8>>,
    invalid_pair: Constant<Bits<8>>,
    local_protection: Constant<Bits<8>>,
    access_denied: Constant<Bits<8>>,
    memory_error: Constant<Bits<8>>,
    link_error: Constant<Bits<8>>,
    flushed: Constant<Bits<8>>,
    list_full: Constant<Bits<8>>,
    behind: Constant<Bits<8>>,
    invalid_claim: Constant<Bits<8>>,
    unexpected_overflow: Constant<Bits<8>>,
    slot_error: Constant<Bits<8>>,
    complete_early: Constant<Bits<5>>,
    lose_slots: Constant<Bits<5>>,
    free_unexpected: Constant<Bits<5>>,
    skip_second_check: Constant<Bits<5>>,
    cancel_says_too_late: Constant<Bits<5>>,
    ignore_buffer_length: Constant<Bits<5>>,
    reuse_slots: Constant<Bits<5>>,
    free_wrong_slot: Constant<Bits<5>>,
    forget_refusals: Constant<Bits<5>>,
    overtake: Constant<Bits<5>>,
    look_again: Constant<Bits<5>>,
    sleep_on: Constant<Bits<5>>,
    never_ends: Constant<Bits<5>>,
    overcommit: Constant<Bits<5>>,
    claim_by_probe: Constant<Bits<5>>,
    free_claimed: Constant<Bits<5>>,
    vacate_claimed: Constant<Bits<5>>,
    claims_for_all: Constant<Bits<5>>,
    stale_claims: Constant<Bits<5>>,
    keep_discarded: Constant<Bits<5>>,
    hurry: Constant<Bits<5>>,
    keep_refused: Constant<Bits<5>>,
    ignore_backlog: Constant<Bits<5>>,
    ignore_ring: Constant<Bits<5>>,
    ready_waits: Constant<Bits<5>>,
    kept_forgotten: Constant<Bits<5>>,
    flag_more: Constant<Bits<8>>,
    longest: Constant<Bits<32>>,

    lists_are_ready: Check,
    slot_is_free: Check,
    reserves_what_is_free: Check,
    slot_was_used: Check,
    completion_after_write: Check,
    within_buffer: Check,
    stalled_is_kept: Check,
    refusal_is_asked_for: Check,
}

impl Delivery {
    /// The block of a card.
    pub fn new(config: &Config) -> Self {
        let status = |status: Status| Constant::new(u64::from(status.code()).into());
        let operation = |code: Operation| Constant::new(u64::from(code.code()).into());
        let opcode = |code: Opcode| Constant::new(u64::from(code.code()).into());
        let kind = |code: Opcode| Constant::new(u64::from(code.row().kind.code()).into());
        construct!({
            pairs: Ram::new(config.pairs),
            receives: Ram::new(config.exact + config.posted),
            messages: BlockRam::new(config.pairs * MAX_CREDITS as usize),
            waiting: Ram::new(MAX_ENDPOINTS),
            faults: Fifo::new(config.pairs),
            copy: Fifo::new(EAGER_MAX / 8),
            state: Reg::new(State::Clear),
            pair_count: Constant::new((config.pairs as u64).into()),
            last_pair: Constant::new((config.pairs as u64 - 1).into()),
            pair_set: operation(Operation::PairSet),
            pair_clear: operation(Operation::PairClear),
            endpoint_flush: operation(Operation::EndpointFlush),
            pair_read: operation(Operation::PairRead),
            no_report: Constant::new(PairReport::default()),
            no_pair: Constant::new(Pair::default()),
            no_match: Constant::new(MatchCommand::default()),
            no_entry: Constant::new(Completion::default()),
            no_event: Constant::new(RaiseEvent::default()),
            no_receive: Constant::new(Receive::default()),
            no_waiting: Constant::new(Waiting::default()),
            no_query: Constant::new(RegionQuery::default()),
            no_outgoing: Constant::new(WriteCompletion::default()),
            no_update: Constant::new(SinkUpdate::default()),
            no_fault: Constant::new(Fault::default()),
            no_request: Constant::new(DmaRequest::default()),
            right: Constant::new(u64::from(RIGHT_LOCAL_WRITE).into()),
            op_cancel: opcode(Opcode::Cancel),
            kind_receive: kind(Opcode::TaggedReceive),
            kind_cancel: kind(Opcode::Cancel),
            kind_probe: kind(Opcode::Probe),
            kind_claim: kind(Opcode::Claim),
            success: status(Status::Success),
            truncated: status(Status::Truncated),
            cancelled: status(Status::Cancelled),
            too_late: status(Status::TooLate),
            no_message: status(Status::NoMessage),
            invalid_pair: status(Status::InvalidPair),
            local_protection: status(Status::LocalProtection),
            access_denied: status(Status::AccessDenied),
            memory_error: status(Status::MemoryError),
            link_error: status(Status::LinkError),
            flushed: status(Status::Flushed),
            list_full: status(Status::ListFull),
            behind: status(Status::Behind),
            invalid_claim: status(Status::InvalidClaim),
            unexpected_overflow:
                Constant::new(u64::from(Cause::UnexpectedOverflow.code()).into()),
            slot_error: Constant::new(u64::from(Cause::SlotError.code()).into()),
            complete_early: constant(DeliveryMutation::CompleteEarly as u64),
            lose_slots: constant(DeliveryMutation::LoseSlots as u64),
            free_unexpected: constant(DeliveryMutation::FreeUnexpected as u64),
            skip_second_check: constant(DeliveryMutation::SkipSecondCheck as u64),
            cancel_says_too_late: constant(DeliveryMutation::CancelSaysTooLate as u64),
            reuse_slots: constant(DeliveryMutation::ReuseSlots as u64),
            free_wrong_slot: constant(DeliveryMutation::FreeWrongSlot as u64),
            forget_refusals: constant(DeliveryMutation::ForgetRefusals as u64),
            overtake: constant(DeliveryMutation::Overtake as u64),
            look_again: constant(DeliveryMutation::LookAgain as u64),
            sleep_on: constant(DeliveryMutation::SleepOn as u64),
            never_ends: constant(DeliveryMutation::NeverEnds as u64),
            overcommit: constant(DeliveryMutation::Overcommit as u64),
            claim_by_probe: constant(DeliveryMutation::ClaimByProbe as u64),
            free_claimed: constant(DeliveryMutation::FreeClaimed as u64),
            vacate_claimed: constant(DeliveryMutation::VacateClaimed as u64),
            claims_for_all: constant(DeliveryMutation::ClaimsForAll as u64),
            stale_claims: constant(DeliveryMutation::StaleClaims as u64),
            keep_discarded: constant(DeliveryMutation::KeepDiscarded as u64),
            hurry: constant(DeliveryMutation::Hurry as u64),
            keep_refused: constant(DeliveryMutation::KeepRefused as u64),
            ignore_backlog: constant(DeliveryMutation::IgnoreBacklog as u64),
            ignore_ring: constant(DeliveryMutation::IgnoreRing as u64),
            ready_waits: constant(DeliveryMutation::ReadyWaits as u64),
            kept_forgotten: constant(DeliveryMutation::KeptForgotten as u64),
            claims: Reg::new(bits(1)),
            lists_are_ready: Check::new("lists_are_ready_for_a_command"),
            longest: Constant::new(u64::from(u32::MAX).into()),
            flag_more: Constant::new(u64::from(COMPLETION_MORE).into()),
            reserves_what_is_free: Check::new("delivery_reserves_only_what_is_free"),
            ignore_buffer_length: constant(DeliveryMutation::IgnoreBufferLength as u64),
            slot_is_free: Check::new("slot_given_out_is_free"),
            slot_was_used: Check::new("slot_given_back_was_used"),
            completion_after_write: Check::new("completion_after_the_write_response"),
            within_buffer: Check::new("no_more_is_written_than_the_buffer_holds"),
            stalled_is_kept: Check::new("a_stalled_endpoint_may_keep_receives"),
            refusal_is_asked_for: Check::new("only_ready_messages_are_refused"),
        } default {
            clock reset mutation initialized arrival_valid arrival_ready arrival lists_pending payload_valid payload_ready
            payload lists_valid lists_ready lists command_valid command_ready command reply_valid reply query_valid
            query_ready query allowed_valid allowed write_request_valid write_request_ready
            write_request write_data_valid write_data_ready write_data write_done write_done_error
            read_request_valid read_request_ready read_request read_data_valid read_data_ready
            read_data read_data_error complete_valid complete_ready complete completion_free reserve_valid reserve_endpoint release_valid
            release_endpoint sink_update_valid sink_update_ready sink_update raise_valid
            raise_ready raise fault_request_valid fault_request_ready fault_request fault_valid
            fault_ready fault control_valid control control_done control_result count_expected count_unexpected
            count_invalid_requests
            clearing message receive list way flush target length words rest done failed status
            kind found_one accepted freed ready refused after writing arrival_first
            place more handle handle_place handle_pair handle_slot handle_claim handle_live handle_good by_handle claimed slotted slot_place rest_of left enough can_reserve finish stalled kept waits news room gone names wakes waker wake_any waiting_address endpoint_bit flush_bit
            stalled_now resumes nothing_kept held_back kept_of pending_of resume one_goes waiting_named held
            pair changed_pair pair_address pair_write setup is_set is_clear is_flush is_read report own arriving arrival_now
            fetched found found_receive posted words_of bytes slot_any slot slot_offset slot_bit
            source_ok any_source flags long list_length wanted command_out query_out entry outgoing used taken own_fault moved
        })
    }
}

#[module(pairs = self.pair_count.val().index())]
impl Logic for Delivery {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(
            self,
            clock,
            reset,
            state,
            clearing,
            message,
            receive,
            list,
            way,
            flush,
            target,
            length,
            words,
            rest,
            done,
            failed,
            status,
            kind,
            found_one,
            accepted,
            freed,
            ready,
            refused,
            after,
            writing,
            place,
            more,
            stalled,
            kept,
            waits,
            news,
            room,
            gone,
            names,
            claims,
            arrival_first
        );
        clocked!(
            self,
            clock,
            reset,
            lists_are_ready,
            slot_is_free,
            reserves_what_is_free,
            slot_was_used,
            completion_after_write,
            within_buffer,
            stalled_is_kept,
            refusal_is_asked_for,
            faults,
            copy
        );
        clock!(self, clock, pairs, receives, messages, waiting);

        self.initialized.next = self.state.q.val() != State::Clear;
        self.arrival_ready.next = false;
        self.payload_ready.next = false;
        self.lists_ready.next = false;
        self.command_valid.next = false;
        self.query_valid.next = false;
        self.write_request_valid.next = false;
        self.write_data_valid.next = false;
        self.read_request_valid.next = false;
        self.read_data_ready.next = false;
        self.complete_valid.next = false;
        self.release_valid.next = false;
        self.release_endpoint.next = self.list.q.val().endpoint;
        self.reserve_valid.next = false;
        self.reserve_endpoint.next = self.receive.q.val().endpoint;
        self.sink_update_valid.next = false;
        self.raise_valid.next = false;
        self.fault_request_valid.next = self.faults.output.valid.val();
        self.fault_request.next = self.faults.output.data.val();
        self.faults.output.ready.next = self.fault_request_ready.val();
        self.faults.input.valid.next = false;
        self.copy.input.valid.next = false;
        self.copy.input.data.next = self.read_data.val();
        self.copy.output.ready.next = false;
        self.fault_ready.next = false;
        self.count_expected.next = false;
        self.count_unexpected.next = false;
        self.count_invalid_requests.next = false;

        // Control requests.
        self.setup.next = self.control.val().data.into();
        self.is_set.next = self.control.val().operation == self.pair_set.val();
        self.is_clear.next = self.control.val().operation == self.pair_clear.val();
        self.is_flush.next = self.control.val().operation == self.endpoint_flush.val();
        self.is_read.next = self.control.val().operation == self.pair_read.val();
        self.own.next = self.control_valid.val()
            & (self.is_set.val() | self.is_clear.val() | self.is_flush.val() | self.is_read.val());
        self.control_done.next = self.control_valid.val() & !self.own.val();
        self.report.next = self.no_report.val();
        self.control_result.next = 0.into();

        // The pair that is looked at: read in one cycle, used or changed in the next.
        self.pair.next = self.pairs.read_data.val();
        self.changed_pair.next = self.pair.val();
        self.pair_address.next = self.message.q.val().pair;
        self.pair_write.next = false;

        // The lowest free slot of the pair.
        self.used.next = self.pair.val().used;
        self.taken.next = self.used.val();
        if self.mutation.val() == self.reuse_slots.val() {
            self.taken.next = 0.into();
        }
        self.slot_any.next = false;
        self.slot.next = 0.into();
        for i in 0..16 {
            if !self.slot_any.val()
                & !self.taken.val().get_bit(i)
                & (self.pair.val().granted > i.to_bits())
            {
                self.slot_any.next = true;
                self.slot.next = i.to_bits();
            }
        }

        // An arrival that waits goes between two control requests or faults, so that a late message of a
        // pair that is closed can't meet the next connection of the same number.
        self.arrival_now.next = self.arrival_first.q.val() & self.arrival_valid.val();
        self.arriving.next = self.arrival.val();
        self.fetched.next = self.list.q.val().request;
        self.flags.next = self.fetched.val().flags;
        self.any_source.next = self.flags.val().get_bit(0);
        self.source_ok.next = self.any_source.val()
            | (self.pair.val().connected
                & (self.pair.val().endpoint == self.list.q.val().endpoint)
                & (self.fetched.val().pair < self.pair_count.val()));
        self.list_length.next = self.fetched.val().length;
        self.long.next = self.list_length.val().get_bits::<32>(32).any();

        // What a receive of the list ring becomes if it is posted.
        self.posted.next = self.no_receive.val();
        self.posted.next.endpoint = self.list.q.val().endpoint;
        self.posted.next.domain = self.list.q.val().domain;
        self.posted.next.request = self.fetched.val().request;
        self.posted.next.key = self.fetched.val().key;
        self.posted.next.address = self.fetched.val().address;
        self.posted.next.length = bit_cast::<32, 64>(self.list_length.val());
        if self.long.val() {
            self.posted.next.length = self.longest.val();
        }
        self.posted.next.multi = self.flags.val().get_bit(2);
        self.posted.next.min_free = self.fetched.val().min_free;

        // Receives that wait for room: which endpoint's is looked at, and whether it is told.
        self.resume.next = self.flags.val().get_bit(1);
        self.endpoint_bit.next = bits::<16>(1) << self.list.q.val().endpoint.get_bits::<4>(0);
        self.stalled_now.next = (self.stalled.q.val() & self.endpoint_bit.val()).any();
        // The request in hand ends the stall; and the host keeps nothing behind it.
        self.resumes.next =
            self.resume.val() & !(self.waits.q.val() & self.endpoint_bit.val()).any();
        self.nothing_kept.next = self.flags.val().get_bit(3)
            & (!self.stalled_now.val()
                | self.resumes.val()
                | (self.mutation.val() == self.kept_forgotten.val()));
        self.flush_bit.next = bits::<16>(1) << self.message.q.val().endpoint.get_bits::<4>(0);
        // A receive for the message in hand may still come: from the list ring, or from what the host keeps back.
        self.kept_of.next = self.kept.q.val() & self.flush_bit.val();
        if self.mutation.val() == self.ignore_backlog.val() {
            self.kept_of.next = 0.into();
        }
        self.pending_of.next = self.lists_pending.val() & self.flush_bit.val();
        if self.mutation.val() == self.ignore_ring.val() {
            self.pending_of.next = 0.into();
        }
        self.held_back.next = (self.kept_of.val() | self.pending_of.val()).any()
            | (self.mutation.val() == self.ready_waits.val());
        self.wakes.next = self.waits.q.val() & (self.news.q.val() | self.room.q.val());
        self.wake_any.next = false;
        self.waker.next = 0.into();
        for i in 0..16 {
            if !self.wake_any.val() & self.wakes.val().get_bit(i) {
                self.wake_any.next = true;
                self.waker.next = i.to_bits();
            }
        }
        self.waiting_address.next = self.list.q.val().endpoint;
        self.held.next = self.no_waiting.val();
        self.held.next.request = self.fetched.val().request;
        self.held.next.any_source = self.any_source.val();
        self.held.next.pair = self.fetched.val().pair;
        self.waiting.write_enable.next = false;
        self.waiting.write_data.next = self.held.val();
        self.waiting_named.next = (self.waits.q.val() & self.flush_bit.val()).any()
            & ((self.flush.q.val() == Flush::Endpoint)
                | (!self.waiting.read_data.val().any_source
                    & (self.waiting.read_data.val().pair == self.message.q.val().pair)));
        self.one_goes.next = false;

        // Entries found by Lists.
        self.receives.read_address.next = self.reply.val().index;
        self.messages.read_address.next = self.reply.val().index;
        self.receives.write_enable.next = false;
        self.receives.write_address.next = self.reply.val().index;
        self.receives.write_data.next = self.receive.q.val();
        self.messages.write_enable.next = false;
        self.messages.write_address.next = self.reply.val().index;
        self.messages.write_data.next = self.message.q.val();
        self.found.next = self.messages.read_data.val();

        // The claimed message that a request names, once its place and its pair are read.
        self.by_handle.next = self.list.q.val().names_claim;
        self.handle.next = self.fetched.val().target;
        self.handle_place.next = self.handle.val().get_bits::<16>(0);
        self.handle_claim.next = self.handle.val().get_bits::<16>(16);
        self.handle_pair.next = self.handle_place.val() >> 4;
        self.handle_slot.next = self.handle_place.val().get_bits::<4>(0);
        self.handle_live.next = (((self.used.val() >> self.handle_slot.val()) & 1) != 0)
            & self.handle_claim.val().any()
            & ((self.found.val().claim == self.handle_claim.val())
                | (self.mutation.val() == self.stale_claims.val()));
        self.handle_good.next = self.handle_live.val()
            & self.pair.val().connected
            & (self.handle_pair.val() < self.pair_count.val())
            & ((self.pair.val().endpoint == self.list.q.val().endpoint)
                | (self.mutation.val() == self.claims_for_all.val()));
        self.claimed.next = self.found.val();
        self.claimed.next.claim = self.claims.q.val();

        // What is in a slot from now on isn't claimed.
        self.slotted.next = self.message.q.val();
        self.slotted.next.slot = self.slot.val();
        self.slotted.next.claim = 0.into();
        self.slot_place.next =
            (self.message.q.val().pair << 4) | bit_cast::<16, 4>(self.slot.val());
        self.found_receive.next = self.receives.read_data.val();

        // Commands for Lists are about the message in hand, unless said otherwise.
        self.command_out.next = self.no_match.val();
        self.command_out.next.operation = matching::Operation::Arrive;
        self.command_out.next.endpoint = self.message.q.val().endpoint;
        self.command_out.next.pair = self.message.q.val().pair;
        self.command_out.next.context = self.message.q.val().context_id;
        self.command_out.next.match_bits = self.message.q.val().match_bits;

        // What the list request in hand wants of the lists.
        self.wanted.next = self.no_match.val();
        self.wanted.next.endpoint = self.list.q.val().endpoint;
        self.wanted.next.pair = self.fetched.val().pair;
        self.wanted.next.any_source = self.any_source.val();
        self.wanted.next.context = self.fetched.val().context;
        self.wanted.next.match_bits = self.fetched.val().match_bits;
        self.wanted.next.ignore_bits = self.fetched.val().ignore_bits;
        self.wanted.next.request = self.fetched.val().request;
        self.wanted.next.multi = self.receive.q.val().multi;

        // Questions for Regions are about the part of the buffer that will be written, unless said otherwise.
        self.query_out.next = self.no_query.val();
        self.query_out.next.domain = self.receive.q.val().domain;
        self.query_out.next.key = self.receive.q.val().key;
        self.query_out.next.rights = self.right.val();
        self.query_out.next.address = self.receive.q.val().address;
        self.query_out.next.length = bit_cast::<64, 16>(self.length.q.val());

        self.write_request.next = self.no_request.val();
        self.write_request.next.address = self.target.q.val();
        self.write_request.next.length = self.length.q.val();
        self.write_data.next = self.payload.val();
        self.read_request.next = self.no_request.val();
        self.read_request.next.address = self.target.q.val();
        self.read_request.next.length = self.length.q.val();

        // Completions are of the receive in hand, and of the message in hand if one was found for it.
        self.entry.next = self.no_entry.val();
        self.entry.next.request = self.receive.q.val().request;
        self.entry.next.status = self.status.q.val();
        self.entry.next.kind = self.kind.q.val();
        self.entry.next.handle = self.names.q.val();
        if self.more.q.val() {
            self.entry.next.flags = self.flag_more.val();
        }
        if self.found_one.q.val() {
            self.entry.next.match_bits = self.message.q.val().match_bits;
            self.entry.next.immediate = self.message.q.val().immediate;
            self.entry.next.length = bit_cast::<64, 16>(self.message.q.val().length);
            self.entry.next.pair = self.message.q.val().pair;
            self.entry.next.context = self.message.q.val().context_id;
        }
        self.outgoing.next = self.no_outgoing.val();
        self.outgoing.next.endpoint = self.receive.q.val().endpoint;
        self.outgoing.next.entry = self.entry.val();
        self.complete.next = self.outgoing.val();
        self.sink_update.next = self.no_update.val();
        self.sink_update.next.pair = self.message.q.val().pair;
        self.sink_update.next.accepted = self.accepted.q.val();
        self.sink_update.next.freed = self.freed.q.val();
        self.sink_update.next.refused = self.refused.q.val();
        self.raise.next = self.no_event.val();
        self.raise.next.endpoint = self.message.q.val().endpoint;
        self.raise.next.cause = self.unexpected_overflow.val();
        self.raise.next.pair = self.message.q.val().pair;
        self.own_fault.next = self.no_fault.val();
        self.own_fault.next.pair = self.message.q.val().pair;
        self.own_fault.next.status = self.link_error.val();
        if self.failed.q.val() {
            self.raise.next.cause = self.slot_error.val();
            self.own_fault.next.status = self.memory_error.val();
        }
        self.faults.input.data.next = self.own_fault.val();

        // Bytes to move: those of the message that the buffer holds.
        self.bytes.next = self.message.q.val().length;
        if (bit_cast::<32, 16>(self.message.q.val().length) > self.found_receive.val().length)
            & (self.mutation.val() != self.ignore_buffer_length.val())
        {
            self.bytes.next = bit_cast::<16, 32>(self.found_receive.val().length);
        }

        // What is left of a multi-receive behind the message, and whether it stays.
        self.left.next = self.receive.q.val().length - bit_cast::<32, 16>(self.length.q.val());
        self.rest_of.next = self.receive.q.val();
        self.rest_of.next.address =
            self.receive.q.val().address + bit_cast::<64, 16>(self.length.q.val());
        self.rest_of.next.length = self.left.val();
        self.enough.next = (self.status.q.val() == self.success.val())
            & (((self.left.val() >= self.receive.q.val().min_free) & self.left.val().any())
                | (self.mutation.val() == self.never_ends.val()));
        self.can_reserve.next =
            ((self.completion_free.val() >> self.receive.q.val().endpoint.get_bits::<5>(0)) & 1)
                .any();
        self.finish.next = State::Complete;
        if self.receive.q.val().multi {
            self.finish.next = State::Settle;
        }
        self.words_of.next = 0.into();
        self.slot_offset.next = 0.into();
        self.slot_bit.next = 0.into();
        self.moved.next = false;

        if self.write_done.val() {
            self.done.d.next = true;
            if self.write_done_error.val() {
                self.failed.d.next = true;
            }
        }

        match self.state.q.val() {
            State::Clear => {
                self.pair_address.next = self.clearing.q.val();
                self.pair_write.next = true;
                self.changed_pair.next = self.no_pair.val();
                self.clearing.d.next = self.clearing.q.val() + 1;
                if self.clearing.q.val() == self.last_pair.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Idle => {
                self.done.d.next = false;
                self.failed.d.next = false;
                self.found_one.d.next = false;
                self.accepted.d.next = false;
                self.freed.d.next = false;
                self.refused.d.next = false;
                self.names.d.next = 0.into();
                self.more.d.next = false;
                if self.wake_any.val() {
                    self.waiting_address.next = self.waker.val();
                    self.message.d.next.endpoint = self.waker.val();
                    self.state.d.next = State::Wake;
                } else if self.fault_valid.val() & !self.arrival_now.val() {
                    self.pair_address.next = self.fault.val().pair;
                    self.message.d.next.pair = self.fault.val().pair;
                    self.status.d.next = self.fault.val().status;
                    self.flush.d.next = Flush::Fault;
                    self.state.d.next = State::FaultPair;
                } else if self.own.val() & !self.arrival_now.val() & (self.faults.level.val() == 0)
                {
                    // Own faults are out and offered ones taken first: none is left over for the
                    // pair's next connection.
                    self.pair_address.next = self.control.val().index;
                    self.message.d.next.pair = self.control.val().index;
                    self.status.d.next = self.flushed.val();
                    self.flush.d.next = Flush::Endpoint;
                    self.state.d.next = State::ControlPair;
                } else if self.arrival_valid.val() {
                    self.arrival_ready.next = true;
                    self.arrival_first.d.next = false;
                    self.pair_address.next = self.arriving.val().pair;
                    self.message.d.next.pair = self.arriving.val().pair;
                    self.message.d.next.endpoint = self.arriving.val().endpoint;
                    self.message.d.next.context_id = self.arriving.val().context;
                    self.message.d.next.match_bits = self.arriving.val().match_bits;
                    self.message.d.next.immediate = self.arriving.val().immediate;
                    self.message.d.next.length = self.arriving.val().length;
                    self.ready.d.next = self.arriving.val().ready;
                    self.words_of.next = (self.arriving.val().length + 7) >> 3;
                    self.rest.d.next = self.words_of.val();
                    self.state.d.next = State::ArrivalPair;
                } else if self.lists_valid.val() {
                    self.lists_ready.next = true;
                    self.list.d.next = self.lists.val();
                    self.pair_address.next = self.lists.val().request.pair;
                    self.waiting_address.next = self.lists.val().endpoint;
                    self.state.d.next = State::ListPair;
                }
            }

            // ---------------------------------------------------------------- arrivals
            State::ArrivalPair => {
                if self.pair.val().connected & !self.pair.val().failed {
                    self.command_valid.next = true;
                    self.state.d.next = State::ArrivalMatch;
                } else {
                    // A late message of a pair that has failed meanwhile.
                    self.way.d.next = Way::Nowhere;
                    self.state.d.next = State::Drain;
                }
            }
            State::ArrivalMatch => {
                self.place.d.next = self.reply.val().index;
                if self.reply_valid.val() {
                    self.state.d.next = State::MissSlot;
                    if self.reply.val().found {
                        self.state.d.next = State::ArrivalHit;
                    } else if self.ready.q.val() & !self.held_back.val() {
                        // It is done with: its envelope is free again.
                        self.accepted.d.next = true;
                        self.freed.d.next = self.mutation.val() != self.keep_refused.val();
                        self.refused.d.next = true;
                        self.way.d.next = Way::Refuse;
                        self.state.d.next = State::Drain;
                    }
                }
            }
            State::ArrivalHit => {
                self.count_expected.next = true;
                self.one_goes.next = !self.found_receive.val().multi;
                self.found_one.d.next = true;
                self.receive.d.next = self.found_receive.val();
                self.target.d.next = self.found_receive.val().address;
                self.length.d.next = self.bytes.val();
                self.words_of.next = (self.bytes.val() + 7) >> 3;
                self.words.d.next = self.words_of.val();
                self.way.d.next = Way::Hit;
                self.kind.d.next = self.kind_receive.val();
                self.status.d.next = self.success.val();
                if bit_cast::<32, 16>(self.message.q.val().length) > self.found_receive.val().length
                {
                    self.status.d.next = self.truncated.val();
                }
                self.accepted.d.next = true;
                self.freed.d.next = true;
                self.after.d.next = State::Update;
                self.state.d.next = State::ArrivalCheck;
                if self.mutation.val() == self.skip_second_check.val() {
                    self.state.d.next = State::Write;
                }
                if self.bytes.val() == 0 {
                    self.done.d.next = true;
                    self.state.d.next = State::Drain;
                }
            }
            State::ArrivalCheck => {
                self.query_valid.next = true;
                if self.query_ready.val() {
                    self.state.d.next = State::ArrivalChecked;
                }
            }
            State::ArrivalChecked => {
                if self.allowed_valid.val() {
                    if self.allowed.val() {
                        self.state.d.next = State::Write;
                    } else {
                        self.status.d.next = self.access_denied.val();
                        self.pair_write.next = self.mutation.val() != self.forget_refusals.val();
                        self.changed_pair.next.refused = self.pair.val().refused + 1;
                        self.done.d.next = true;
                        self.state.d.next = State::Drain;
                    }
                }
            }
            State::MissSlot => {
                self.way.d.next = Way::Slot;
                self.message.d.next.slot = self.slot.val();
                self.length.d.next = self.message.q.val().length;
                self.words.d.next = self.rest.q.val();
                self.slot_offset.next = bit_cast::<64, 4>(self.slot.val()) << 10;
                self.target.d.next = self.pair.val().slots + self.slot_offset.val();
                self.slot_bit.next = bits::<16>(1) << self.slot.val();
                self.messages.write_address.next = self.slot_place.val();
                self.messages.read_address.next = !self.slot_place.val();
                self.messages.write_data.next = self.slotted.val();
                if self.slot_any.val() {
                    self.messages.write_enable.next = true;
                    self.pair_write.next = true;
                    self.changed_pair.next.used = self.used.val() | self.slot_bit.val();
                    self.state.d.next = State::Write;
                    if self.message.q.val().length == 0 {
                        self.state.d.next = State::MissInsert;
                    }
                } else {
                    self.state.d.next = State::Overflow;
                }
            }
            State::MissInsert => {
                self.command_out.next.operation = matching::Operation::Insert;
                self.command_out.next.slot = self.message.q.val().slot;
                self.command_valid.next = true;
                self.state.d.next = State::MissInserted;
            }
            State::MissInserted => {
                if self.reply_valid.val() {
                    self.count_unexpected.next = true;
                    if self.mutation.val() != self.sleep_on.val() {
                        self.news.d.next = self.news.q.val() | self.flush_bit.val();
                    }
                    self.accepted.d.next = true;
                    self.freed.d.next = self.mutation.val() == self.free_unexpected.val();
                    self.state.d.next = State::Update;
                }
            }
            State::Overflow => {
                self.raise_valid.next = true;
                if self.raise_ready.val() {
                    self.state.d.next = State::FaultRequest;
                }
            }
            State::FaultRequest => {
                self.faults.input.valid.next = true;
                if self.faults.input.ready.val() {
                    // What else it sends is dropped from now on.
                    self.pair_write.next = true;
                    self.changed_pair.next.failed = true;
                    self.changed_pair.next.status = self.own_fault.val().status;
                    self.way.d.next = Way::Nowhere;
                    self.state.d.next = State::Drain;
                }
            }

            // ---------------------------------------------------------------- payload
            State::Write => {
                self.write_request_valid.next = true;
                if self.write_request_ready.val() {
                    self.state.d.next = State::Stream;
                }
            }
            State::Stream => {
                if self.way.q.val() == Way::Copy {
                    self.write_data.next = self.copy.output.data.val();
                    self.write_data_valid.next = self.copy.output.valid.val();
                    self.copy.output.ready.next = self.write_data_ready.val();
                    self.moved.next = self.copy.output.valid.val() & self.write_data_ready.val();
                } else {
                    self.write_data_valid.next = self.payload_valid.val();
                    self.payload_ready.next = self.write_data_ready.val();
                    self.moved.next = self.payload_valid.val() & self.write_data_ready.val();
                    if self.moved.val() {
                        self.rest.d.next = self.rest.q.val() - 1;
                    }
                }
                if self.moved.val() {
                    self.words.d.next = self.words.q.val() - 1;
                    if self.words.q.val() == 1 {
                        self.state.d.next = State::Drain;
                    }
                }
            }
            State::Drain => {
                if (self.rest.q.val() == 0) | (self.way.q.val() == Way::Copy) {
                    self.state.d.next = State::Wait;
                } else {
                    self.payload_ready.next = true;
                    if self.payload_valid.val() {
                        self.rest.d.next = self.rest.q.val() - 1;
                    }
                }
            }
            State::Wait => {
                if self.way.q.val() == Way::Nowhere {
                    self.state.d.next = State::Idle;
                } else if self.way.q.val() == Way::Refuse {
                    self.state.d.next = State::Update;
                } else if self.done.q.val() | (self.mutation.val() == self.complete_early.val()) {
                    self.state.d.next = self.finish.val();
                    if self.failed.q.val() {
                        self.status.d.next = self.memory_error.val();
                    }
                    if self.way.q.val() == Way::Slot {
                        self.state.d.next = State::MissInsert;
                        if self.failed.q.val() {
                            // The envelopes that the pair was promised are gone: it can't go on.
                            self.state.d.next = State::Overflow;
                        }
                    }
                }
            }

            // ---------------------------------------------------------------- list requests
            State::ListPair => {
                // A multi-receive that has taken a message goes on behind it.
                if !self.more.q.val() {
                    self.receive.d.next = self.posted.val();
                }
                self.more.d.next = false;
                self.message.d.next.pair = self.fetched.val().pair;
                self.after.d.next = State::Idle;
                self.kind.d.next = self.list.q.val().kind;
                // A failed pair sends nothing more; what it sent before may still be received.
                self.status.d.next = self.pair.val().status;
                self.failed.d.next = self.pair.val().failed & !self.any_source.val();
                if (self.fetched.val().opcode != self.op_cancel.val()) & self.resumes.val() {
                    self.stalled.d.next = self.stalled.q.val() & !self.endpoint_bit.val();
                }
                if (self.fetched.val().opcode != self.op_cancel.val()) & self.nothing_kept.val() {
                    self.kept.d.next = self.kept.q.val() & !self.endpoint_bit.val();
                }
                if (self.fetched.val().opcode == self.op_cancel.val())
                    & (self.waits.q.val() & self.endpoint_bit.val()).any()
                    & (self.waiting.read_data.val().request == self.fetched.val().target)
                {
                    self.waits.d.next = self.waits.q.val() & !self.endpoint_bit.val();
                    self.receive.d.next.request = self.fetched.val().target;
                    self.kind.d.next = self.kind_receive.val();
                    self.status.d.next = self.cancelled.val();
                    self.release_valid.next = true;
                    self.state.d.next = State::Complete;
                } else if self.fetched.val().opcode == self.op_cancel.val() {
                    self.command_out.next = self.wanted.val();
                    self.command_out.next.operation = matching::Operation::Cancel;
                    self.command_out.next.request = self.fetched.val().target;
                    self.command_valid.next = true;
                    self.state.d.next = State::CancelMatch;
                } else if self.by_handle.val() {
                    self.failed.d.next = false;
                    self.pair_address.next = self.handle_pair.val();
                    self.messages.read_address.next = self.handle_place.val();
                    self.state.d.next = State::Handle;
                } else if self.list.q.val().needs_pair & !self.source_ok.val() {
                    self.count_invalid_requests.next = true;
                    self.status.d.next = self.invalid_pair.val();
                    self.state.d.next = State::Complete;
                } else if self.list.q.val().buffer
                    & (self.list_length.val() != 0)
                    & !self.more.q.val()
                {
                    self.state.d.next = State::ListCheck;
                } else {
                    self.state.d.next = State::ListLook;
                }
            }
            State::ListCheck => {
                self.query_out.next.length = self.list_length.val();
                self.query_valid.next = true;
                if self.query_ready.val() {
                    self.state.d.next = State::ListChecked;
                }
            }
            State::ListChecked => {
                self.messages.read_address.next = self.handle_place.val();
                if self.allowed_valid.val() {
                    self.state.d.next = State::ListLook;
                    if self.by_handle.val() {
                        self.state.d.next = State::CopyFound;
                    }
                    if !self.allowed.val() {
                        self.count_invalid_requests.next = true;
                        self.status.d.next = self.local_protection.val();
                        self.state.d.next = State::Complete;
                    }
                }
            }
            State::ListLook => {
                // A probe looks only, a claim takes what is there; a receive from a failed pair, or behind one that waits, takes what is there.
                self.command_out.next = self.wanted.val();
                self.command_out.next.operation = matching::Operation::Post;
                self.state.d.next = State::ListMatch;
                if self.kind.q.val() == self.kind_probe.val() {
                    self.command_out.next.operation = matching::Operation::Probe;
                    self.state.d.next = State::ProbeMatch;
                } else if self.kind.q.val() == self.kind_claim.val() {
                    self.command_out.next.operation = matching::Operation::Claim;
                    if self.mutation.val() == self.claim_by_probe.val() {
                        self.command_out.next.operation = matching::Operation::Probe;
                    }
                    self.state.d.next = State::ProbeMatch;
                } else if self.failed.q.val()
                    | (self.stalled_now.val() & (self.mutation.val() != self.overtake.val()))
                {
                    self.command_out.next.operation = matching::Operation::Claim;
                    self.state.d.next = State::ClaimMatch;
                }
                self.command_valid.next = true;
                if self.stalled_now.val()
                    & (self.news.q.val() & self.endpoint_bit.val()).any()
                    & (self.mutation.val() != self.look_again.val())
                    & (self.mutation.val() != self.overtake.val())
                {
                    // Those in front have to look first.
                    self.command_valid.next = false;
                    self.status.d.next = self.behind.val();
                    self.names.d.next = self.waiting.read_data.val().request;
                    self.state.d.next = State::Complete;
                }
            }
            State::ListMatch => {
                if self.reply_valid.val() {
                    if self.reply.val().found {
                        self.state.d.next = State::CopyFound;
                    } else if self.reply.val().full {
                        self.state.d.next = State::Hold;
                    } else {
                        self.receives.write_enable.next = true;
                        self.state.d.next = State::Idle;
                    }
                }
            }
            State::Hold => {
                self.waiting.write_enable.next = true;
                self.stalled.d.next = self.stalled.q.val() | self.endpoint_bit.val();
                self.kept.d.next = self.kept.q.val() | self.endpoint_bit.val();
                self.waits.d.next = self.waits.q.val() | self.endpoint_bit.val();
                self.news.d.next = self.news.q.val() & !self.endpoint_bit.val();
                self.room.d.next = self.room.q.val() & !self.endpoint_bit.val();
                self.state.d.next = State::Idle;
            }
            State::ClaimMatch => {
                if self.reply_valid.val() {
                    self.state.d.next = State::Complete;
                    if self.reply.val().found {
                        self.state.d.next = State::CopyFound;
                    } else if !self.failed.q.val() {
                        self.status.d.next = self.behind.val();
                        self.names.d.next = self.waiting.read_data.val().request;
                    }
                    self.failed.d.next = false;
                }
            }
            State::CopyFound => {
                self.message.d.next = self.found.val();
                self.found_one.d.next = true;
                self.pair_address.next = self.found.val().pair;
                self.way.d.next = Way::Copy;
                self.freed.d.next = true;
                self.after.d.next = State::Release;
                self.status.d.next = self.success.val();
                if bit_cast::<32, 16>(self.found.val().length) > self.receive.q.val().length {
                    self.status.d.next = self.truncated.val();
                }
                self.state.d.next = State::CopySetup;
            }
            State::CopySetup => {
                self.slot_offset.next = bit_cast::<64, 4>(self.message.q.val().slot) << 10;
                self.target.d.next = self.pair.val().slots + self.slot_offset.val();
                self.bytes.next = self.message.q.val().length;
                if (bit_cast::<32, 16>(self.message.q.val().length) > self.receive.q.val().length)
                    & (self.mutation.val() != self.ignore_buffer_length.val())
                {
                    self.bytes.next = bit_cast::<16, 32>(self.receive.q.val().length);
                }
                self.length.d.next = self.bytes.val();
                self.words_of.next = (self.bytes.val() + 7) >> 3;
                self.words.d.next = self.words_of.val();
                self.state.d.next = State::CopyRead;
                if self.bytes.val() == 0 {
                    self.state.d.next = self.finish.val();
                }
            }
            State::CopyRead => {
                self.read_request_valid.next = true;
                if self.read_request_ready.val() {
                    self.target.d.next = self.receive.q.val().address;
                    self.state.d.next = State::CopyFill;
                }
            }
            State::CopyFill => {
                self.read_data_ready.next = self.copy.input.ready.val();
                self.copy.input.valid.next = self.read_data_valid.val();
                if self.read_data_valid.val() & self.copy.input.ready.val() {
                    self.words.d.next = self.words.q.val() - 1;
                    if self.words.q.val() == 1 {
                        self.words_of.next = (self.length.q.val() + 7) >> 3;
                        self.words.d.next = self.words_of.val();
                        self.state.d.next = State::Write;
                        if self.read_data_error.val() {
                            self.status.d.next = self.memory_error.val();
                            self.state.d.next = State::CopyDiscard;
                        }
                    }
                }
            }
            State::CopyDiscard => {
                self.copy.output.ready.next = true;
                if self.copy.output.valid.val() {
                    self.words.d.next = self.words.q.val() - 1;
                    if self.words.q.val() == 1 {
                        self.state.d.next = self.finish.val();
                    }
                }
            }
            State::Release => {
                self.state.d.next = State::ReleaseWrite;
            }
            State::ReleaseWrite => {
                self.slot_bit.next = bits::<16>(1) << self.message.q.val().slot;
                if self.mutation.val() == self.free_wrong_slot.val() {
                    self.slot_bit.next = bits::<16>(2) << self.message.q.val().slot;
                }
                self.pair_write.next = self.mutation.val() != self.lose_slots.val();
                self.changed_pair.next.used = self.used.val() & !self.slot_bit.val();
                self.state.d.next = State::Update;
            }
            State::CancelMatch => {
                if self.reply_valid.val() {
                    self.state.d.next = State::Complete;
                    self.status.d.next = self.too_late.val();
                    self.kind.d.next = self.kind_cancel.val();
                    if self.reply.val().found
                        & (self.mutation.val() != self.cancel_says_too_late.val())
                    {
                        self.status.d.next = self.cancelled.val();
                        self.kind.d.next = self.kind_receive.val();
                        self.receive.d.next.request = self.fetched.val().target;
                        self.release_valid.next = true;
                        self.one_goes.next = true;
                    }
                }
            }
            State::ProbeMatch => {
                self.place.d.next = self.reply.val().index;
                if self.reply_valid.val() {
                    self.failed.d.next = false;
                    if self.reply.val().found {
                        self.state.d.next = State::ProbeFound;
                    } else {
                        // From a failed pair nothing will come: the request ends as the pair did.
                        self.state.d.next = State::Complete;
                        if !self.failed.q.val() {
                            self.status.d.next = self.no_message.val();
                        }
                    }
                }
            }
            State::ProbeFound => {
                self.message.d.next = self.found.val();
                self.found_one.d.next = true;
                self.status.d.next = self.success.val();
                self.state.d.next = State::Complete;
                if self.kind.q.val() == self.kind_claim.val() {
                    self.messages.write_enable.next = true;
                    self.messages.write_address.next = self.place.q.val();
                    self.messages.read_address.next = !self.place.q.val();
                    self.messages.write_data.next = self.claimed.val();
                    self.names.d.next = (bit_cast::<32, 16>(self.claims.q.val()) << 16)
                        | bit_cast::<32, 16>(self.place.q.val());
                    self.claims.d.next = self.claims.q.val() + 1;
                    if self.claims.q.val() == 65535 {
                        self.claims.d.next = 1.into();
                    }
                    if self.mutation.val() == self.free_claimed.val() {
                        self.freed.d.next = true;
                        self.after.d.next = State::Update;
                    }
                    if self.mutation.val() == self.vacate_claimed.val() {
                        self.after.d.next = State::Release;
                    }
                }
            }
            State::Handle => {
                self.messages.read_address.next = self.handle_place.val();
                if !self.handle_good.val() {
                    self.count_invalid_requests.next = true;
                    self.status.d.next = self.invalid_claim.val();
                    self.state.d.next = State::Complete;
                } else if self.list.q.val().buffer {
                    self.state.d.next = State::CopyFound;
                    if self.list_length.val() != 0 {
                        self.state.d.next = State::ListCheck;
                    }
                } else {
                    self.message.d.next = self.found.val();
                    self.freed.d.next = self.mutation.val() != self.keep_discarded.val();
                    self.status.d.next = self.success.val();
                    self.after.d.next = State::Release;
                    self.state.d.next = State::Complete;
                }
            }

            // ---------------------------------------------------------------- multi-receives
            State::Settle => {
                self.state.d.next = State::Complete;
                if self.enough.val()
                    & (self.can_reserve.val() | (self.mutation.val() == self.overcommit.val()))
                {
                    self.reserve_valid.next = true;
                    self.more.d.next = true;
                    self.receives.write_enable.next = self.way.q.val() == Way::Hit;
                    self.receives.write_address.next = self.place.q.val();
                    self.receives.write_data.next = self.rest_of.val();
                } else if self.way.q.val() == Way::Hit {
                    self.state.d.next = State::Retire;
                }
            }
            State::Retire => {
                self.command_out.next.operation = matching::Operation::Cancel;
                self.command_out.next.endpoint = self.receive.q.val().endpoint;
                self.command_out.next.request = self.receive.q.val().request;
                self.command_valid.next = true;
                self.one_goes.next = true;
                self.state.d.next = State::Retired;
            }
            State::Retired => {
                if self.reply_valid.val() {
                    self.state.d.next = State::Complete;
                }
            }

            // ---------------------------------------------------------------- ends
            State::Complete => {
                self.complete_valid.next = true;
                if self.complete_ready.val() {
                    self.state.d.next = self.after.q.val();
                }
            }
            State::Update => {
                self.sink_update_valid.next = true;
                if self.more.q.val() & (self.way.q.val() == Way::Copy) {
                    self.pair_address.next = self.fetched.val().pair;
                }
                if self.sink_update_ready.val() {
                    self.state.d.next = State::Idle;
                    if self.more.q.val() & (self.way.q.val() == Way::Copy) {
                        // The next message that waits, before anything else comes.
                        self.receive.d.next = self.rest_of.val();
                        self.done.d.next = false;
                        self.failed.d.next = false;
                        self.found_one.d.next = false;
                        self.freed.d.next = false;
                        self.state.d.next = State::ListPair;
                    }
                }
            }

            // ---------------------------------------------------------------- faults and control
            State::FaultPair => {
                self.pair_write.next = self.message.q.val().pair < self.pair_count.val();
                self.changed_pair.next.failed = true;
                self.changed_pair.next.status = self.status.q.val();
                self.message.d.next.endpoint = self.pair.val().endpoint;
                self.state.d.next = State::Flush;
            }
            State::ControlPair => {
                self.message.d.next.endpoint = bit_cast::<8, 16>(self.message.q.val().pair);
                self.state.d.next = State::Flush;
                if self.is_clear.val() {
                    self.message.d.next.endpoint = self.pair.val().endpoint;
                    self.state.d.next = State::Forget;
                }
                if self.is_read.val() {
                    if self.message.q.val().pair < self.pair_count.val() {
                        self.report.next.refused = self.pair.val().refused;
                    }
                    self.control_result.next = self.report.val().into();
                    self.control_done.next = true;
                    self.arrival_first.d.next = true;
                    self.state.d.next = State::Idle;
                }
                if self.is_set.val() {
                    self.pair_write.next = self.message.q.val().pair < self.pair_count.val();
                    self.changed_pair.next = self.no_pair.val();
                    self.changed_pair.next.connected = true;
                    self.changed_pair.next.endpoint = self.setup.val().endpoint;
                    self.changed_pair.next.granted = self.setup.val().local_credits;
                    self.changed_pair.next.slots = self.setup.val().slots;
                    self.control_done.next = true;
                    self.arrival_first.d.next = true;
                    self.state.d.next = State::Idle;
                }
            }
            State::Flush => {
                self.command_out.next.operation = matching::Operation::TakePostedOfPair;
                if self.flush.q.val() == Flush::Endpoint {
                    self.command_out.next.operation = matching::Operation::TakePostedOfEndpoint;
                    self.command_out.next.endpoint = bit_cast::<8, 16>(self.message.q.val().pair);
                }
                self.command_valid.next = true;
                self.waiting_address.next = self.message.q.val().endpoint;
                self.state.d.next = State::FlushMatch;
            }
            State::FlushMatch => {
                self.command_valid.next =
                    (self.mutation.val() == self.hurry.val()) & !self.reply_valid.val();
                self.waiting_address.next = self.message.q.val().endpoint;
                if self.reply_valid.val() {
                    if self.reply.val().found {
                        self.state.d.next = State::FlushFound;
                    } else if self.waiting_named.val() {
                        self.state.d.next = State::FlushWaiting;
                    } else {
                        if self.flush.q.val() == Flush::Endpoint {
                            self.stalled.d.next = self.stalled.q.val() & !self.flush_bit.val();
                            self.kept.d.next = self.kept.q.val() & !self.flush_bit.val();
                        } else {
                            // What names the pair, and has been refused, may end as the pair did.
                            self.news.d.next = self.news.q.val() | self.flush_bit.val();
                        }
                        self.fault_ready.next = self.flush.q.val() == Flush::Fault;
                        self.control_done.next = self.flush.q.val() != Flush::Fault;
                        self.arrival_first.d.next = true;
                        self.state.d.next = State::Idle;
                    }
                }
            }
            State::FlushWaiting => {
                self.waits.d.next = self.waits.q.val() & !self.flush_bit.val();
                self.receive.d.next.endpoint = self.message.q.val().endpoint;
                self.receive.d.next.request = self.waiting.read_data.val().request;
                self.kind.d.next = self.kind_receive.val();
                self.after.d.next = State::Flush;
                self.state.d.next = State::Complete;
            }
            State::Wake => {
                self.waits.d.next = self.waits.q.val() & !self.flush_bit.val();
                self.receive.d.next.endpoint = self.message.q.val().endpoint;
                self.receive.d.next.request = self.waiting.read_data.val().request;
                self.kind.d.next = self.kind_receive.val();
                self.status.d.next = self.list_full.val();
                self.after.d.next = State::Idle;
                self.state.d.next = State::Complete;
            }
            State::FlushFound => {
                self.one_goes.next = true;
                self.receive.d.next = self.found_receive.val();
                self.kind.d.next = self.kind_receive.val();
                self.after.d.next = State::Flush;
                self.state.d.next = State::Complete;
            }
            State::Forget => {
                self.command_out.next.operation = matching::Operation::TakeUnexpectedOfPair;
                self.command_valid.next = true;
                self.state.d.next = State::ForgetMatch;
            }
            State::ForgetMatch => {
                if self.reply_valid.val() {
                    self.state.d.next = State::Forget;
                    if !self.reply.val().found {
                        self.pair_write.next = self.message.q.val().pair < self.pair_count.val();
                        self.changed_pair.next = self.no_pair.val();
                        self.flush.d.next = Flush::Pair;
                        self.state.d.next = State::Flush;
                    }
                }
            }
            _ => {}
        }

        // Every so many posted receives that have gone, those that wait may try again.
        if self.one_goes.val() {
            self.gone.d.next = self.gone.q.val() + 1;
            if self.gone.q.val() == 15 {
                self.room.d.next = self.waits.q.val();
            }
        }
        self.waiting.read_address.next = bit_cast::<16, 8>(self.waiting_address.val());
        self.waiting.write_address.next = bit_cast::<16, 8>(self.list.q.val().endpoint);

        self.command.next = self.command_out.val();
        self.query.next = self.query_out.val();
        self.pairs.read_address.next = self.pair_address.val();
        self.pairs.write_enable.next = self.pair_write.val();
        self.pairs.write_address.next = self.pair_address.val();
        self.pairs.write_data.next = self.changed_pair.val();

        if self.write_done.val() {
            self.writing.d.next = false;
        }
        if self.write_request_valid.val() & self.write_request_ready.val() {
            self.writing.d.next = true;
        }
        self.lists_are_ready.ok.next = !self.command_valid.val() | self.command_ready.val();
        self.slot_is_free.ok.next = !self.pair_write.val()
            | (self.state.q.val() != State::MissSlot)
            | !(self.used.val() & self.slot_bit.val()).any();
        self.slot_was_used.ok.next = !self.pair_write.val()
            | (self.state.q.val() != State::ReleaseWrite)
            | (self.used.val() & self.slot_bit.val()).any();
        self.completion_after_write.ok.next = !self.complete_valid.val() | !self.writing.q.val();
        self.within_buffer.ok.next = !self.write_request_valid.val()
            | (self.way.q.val() == Way::Slot)
            | (bit_cast::<32, 16>(self.length.q.val()) <= self.receive.q.val().length);
        self.stalled_is_kept.ok.next = !(self.stalled.q.val() & !self.kept.q.val()).any();
        self.refusal_is_asked_for.ok.next = !self.refused.q.val() | self.ready.q.val();
        self.reserves_what_is_free.ok.next = !self.reserve_valid.val() | self.can_reserve.val();
    }
}
