//! The order of the card: everything that happens to messages and receives begins here, one after the other.
//!
//! ```text
//!                       ┌───────┐
//!   insert, overflow ──►│       │
//!   wake ──► Backlog ──►│       ├──► command      to Lists ┐ in the same
//!   fault ─────────────►│ Admit ├──► asked        to Answer┘ cycle
//!   control ───────────►│       │◄─► pairs        (Table)
//!   arrival ───────────►│       │◄── done, ended  from Answer and Ledger
//!   lists ── Posts ────►│       ├──► raise, fault_request
//!                       └───────┘
//! ```
//!
//! The cycle in which a command enters Lists is the order of the card. What Lists will answer isn't waited for, except
//! where what comes next depends on it:
//!
//! - *A message* waits while one of its pair is being looked up, or is on its way to its slot: so a pair that fails
//!   by a message is failed for the next one.
//! - *A request* of an endpoint waits while a message of that endpoint is being looked up, or is on its way to its slot: it
//!   could be the one that the request looks for. It waits for the request before it.
//! - *While an endpoint has a multi-receive posted*, its messages and requests enter one at a time, each when all before
//!   it has ended.
//! - *Faults and control requests* wait until all that has entered has ended; nothing enters meanwhile. The pair or the
//!   endpoint is then *walked*: its receives end one by one.
//!
//! Messages and requests take turns, so that neither can hold up the other for good. A message that is safe in its slot
//! goes before both, and so does a receive that has to be woken. An arrival that waits goes between two control
//! requests or faults, so that a late message of a pair that is closed can't meet the next connection of its number.
//!
//! What enters has a place for all that can become of it: at most 16 things are between here and the end of the
//! [`Ledger`](super::ledger::Ledger), and the queues on the way hold as many. So Answer and Ledger never wait for room that only Admit could make.
//!
//! **A full list.** The receive that finds it full *waits*; see [`Backlog`](super::backlog::Backlog). What is posted behind it may look for
//! a message, but isn't posted: it would overtake.

use super::answer::MESSAGES;
use super::asked::{Ask, Asked, Follow};
use super::backlog::{Backlog, Held};
use super::multis::Multis;
use super::posts::CheckedList;
use super::slots::SlotSetup;
use super::under_way::{Member, UnderWay};
use crate::config::Config;
use crate::prelude::*;
use crate::prim::{Fifo, Table};
use crate::types;
use crate::types::{
    Arrival, ControlRequest, Fault, ListRequest, MatchCommand, PairReport, PairSetup, RaiseEvent,
    Slotted,
};
use abi::completion::CompletionKind;
use abi::control::Operation;
use abi::event::Cause;
use abi::request::{FLAG_ANY_SOURCE, FLAG_MULTI, FLAG_NOTHING_KEPT, FLAG_RESUME, place};
use abi::status::Status;

const _: () = assert!(FLAG_ANY_SOURCE == 1 << 0, "the kernel tests this bit");
const _: () = assert!(FLAG_RESUME == 1 << 1, "the kernel tests this bit");
const _: () = assert!(FLAG_MULTI == 1 << 2, "the kernel tests this bit");
const _: () = assert!(FLAG_NOTHING_KEPT == 1 << 3, "the kernel tests this bit");
const _: () = assert!(place(1, 0) == 1 << 4, "the kernel cuts handles here");

/// Things between here and the end of the Ledger, at most.
pub(super) const ENTERED: u64 = 16;

/// What is kept of a pair.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Pair {
    connected: Bit,
    failed: Bit,
    /// What the pair's operations complete with once it has failed.
    status: Bits<8>,
    endpoint: Bits<8>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// Choosing what comes next.
    Idle,
    /// The pair of a message is read.
    Message,
    /// The pair of a request is read, and the receive of its endpoint that waits.
    Request,
    /// The receive that has to be woken is read.
    Wake,
    /// What was chosen enters.
    Enter,
    /// It has to end before anything else enters.
    Alone,
    /// A message has found no slot, or its slot couldn't be written: its endpoint hears of it.
    Raise,
    /// The pair is failed from here on.
    Fail,
    /// The pair of a fault, or of a control request, is read.
    Fault,
    Control,
    /// Receives, or messages, of a pair or an endpoint go one by one.
    Walk,
    /// One has, or none is left.
    Walked,
    /// The receive that waits ends too, if it is one of them.
    Last,
    /// All of them have ended.
    Over,
}

/// What a walk is for.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Walk {
    /// A pair has failed.
    Fault,
    /// An endpoint is being closed.
    Endpoint,
    /// A pair is being closed: its messages go.
    Messages,
    /// And then the receives that name it.
    Pair,
}

/// Where everything enters.
#[block(config: &Config)]
pub(super) struct Admit {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Nothing has entered, and no pair is connected.
    pub reset: Signal<In, Bit>,
    /// The table of pairs is cleared.
    pub initialized: Signal<Out, Bit>,

    /// A message.
    pub arrival: Stream<In, Arrival>,
    /// A request of a list ring.
    pub lists: Stream<In, CheckedList>,
    /// A bit an endpoint: its list ring has more.
    pub lists_pending: Signal<In, Bits<16>>,
    /// The message's endpoint.
    pub endpoint: Signal<Out, Bits<8>>,
    /// A request of it is in Posts.
    pub in_posts: Signal<In, Bit>,
    /// None is in Posts.
    pub posts_empty: Signal<In, Bit>,
    /// None may enter Posts.
    pub posts_stop: Signal<Out, Bit>,

    /// To Lists.
    pub command: Stream<Out, MatchCommand>,
    /// What was asked, to Answer.
    pub asked: Stream<Out, Asked>,
    /// Pulse: something that entered ended in Answer.
    pub answer_ended: Signal<In, Bit>,
    /// Pulse: something that entered ended in the Ledger.
    pub ledger_ended: Signal<In, Bit>,
    /// Pulse: the oldest message that entered is dealt with by Answer.
    pub message_done: Signal<In, Bit>,
    /// Pulse: so is the request that entered.
    pub request_done: Signal<In, Bit>,
    /// Something of a walk was found, or nothing is left.
    pub walked: Pulse<In, Bit>,
    /// What follows of a multi-receive.
    pub follow: Pulse<In, Follow>,
    /// A message goes to its slot.
    pub fills: Pulse<In, Member>,
    /// Pulse: the oldest such message is in Lists.
    pub filled: Signal<In, Bit>,
    /// A message is in its slot, or its slot can't be written.
    pub insert: Stream<In, Slotted>,
    /// A message has found no slot.
    pub overflow: Stream<In, Slotted>,

    /// A receive has found its list full.
    pub hold: Pulse<In, Held>,
    /// A message was appended for this endpoint.
    pub news_in: Pulse<In, Bits<8>>,
    /// Pulse: a posted receive has gone.
    pub gone: Signal<In, Bit>,
    /// Endpoint that Answer asks about.
    pub answer_endpoint: Signal<In, Bits<8>>,
    /// Its host may keep receives back.
    pub kept: Signal<Out, Bit>,
    /// A multi-receive of this endpoint was posted.
    pub multi_posted: Pulse<In, Bits<8>>,
    /// One has gone.
    pub multi_gone: Pulse<In, Bits<8>>,

    /// A pair's slots.
    pub slot_setup: Pulse<Out, SlotSetup>,
    /// The pair that is read, and whose count of refused accesses is looked up.
    pub refused_pair: Signal<Out, Bits<16>>,
    /// That count, a cycle later.
    pub refused_count: Signal<In, Bits<32>>,
    /// The count of this pair is zero again.
    pub forget: Pulse<Out, Bits<16>>,
    /// Nothing that was allowed is on its way: regions may change.
    pub quiet: Signal<Out, Bit>,
    /// With `quiet`: the region has changed.
    pub region_changed: Signal<In, Bit>,

    /// An event.
    pub raise: Stream<Out, RaiseEvent>,
    /// A pair has to fail.
    pub fault_request: Stream<Out, Fault>,
    /// A pair has failed; it is taken when the receives that name it have ended.
    pub fault: Stream<In, Fault>,
    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,
    /// With it, for `PairRead`: a `PairReport` of what is kept here. Zero otherwise.
    pub control_result: Signal<Out, Bits<64>>,

    #[is(Table::new(config.pairs))]
    pairs: Table<Pair>,
    backlog: Backlog,
    #[is(Multis::new(config.endpoints))]
    multis: Multis,
    /// Messages of which Lists, or Answer, haven't said what becomes of them.
    #[is(UnderWay::new(MESSAGES))]
    messages: UnderWay,
    /// Messages between their slots and Lists.
    #[is(UnderWay::new(ENTERED as usize))]
    filling: UnderWay,
    /// Faults of pairs that the card itself gave up here; one a pair at most, so that Admit never waits for Faults, which may
    /// be waiting for it.
    #[is(Fifo::new(config.pairs))]
    faults: Fifo<Fault>,
    state: Reg<State>,
    /// What has entered and hasn't ended.
    entered: Reg<Bits<8>>,
    /// A request has entered, and Answer hasn't dealt with it.
    request_in: Reg<Bit>,
    /// So has a message from its slot.
    insert_in: Reg<Bit>,
    /// The next request goes before the next message.
    requests_first: Reg<Bit>,
    /// The next arrival goes before the next fault or control request.
    arrival_first: Reg<Bit>,
    // What is about to enter: its command, if it has one, what Answer hears, and what then.
    command_held: Reg<MatchCommand>,
    commands: Reg<Bit>,
    asked_held: Reg<Asked>,
    after: Reg<State>,
    // It is a message; it is a request; it is a message from its slot, which has entered before.
    enters_message: Reg<Bit>,
    enters_request: Reg<Bit>,
    enters_insert: Reg<Bit>,
    /// The message in hand.
    message: Reg<Arrival>,
    /// A receive for it may be on its way here.
    pending: Reg<Bit>,
    /// The request in hand.
    request: Reg<CheckedList>,
    /// What is in hand enters alone.
    alone: Reg<Bit>,
    // Pair and endpoint that are failed or walked, and what their receives complete with.
    pair_held: Reg<Bits<16>>,
    endpoint_held: Reg<Bits<8>>,
    status: Reg<Bits<8>>,
    /// A message has found no slot; otherwise its slot couldn't be written.
    overflown: Reg<Bit>,
    walk: Reg<Walk>,

    setup: Signal<Local, PairSetup>,
    report: Signal<Local, PairReport>,
    is_set: Signal<Local, Bit>,
    is_clear: Signal<Local, Bit>,
    is_flush: Signal<Local, Bit>,
    is_read: Signal<Local, Bit>,
    is_region: Signal<Local, Bit>,
    /// A fault or a control request waits.
    pressed: Signal<Local, Bit>,
    /// The message that waits goes before it.
    arrival_now: Signal<Local, Bit>,
    /// Everything that has entered has ended.
    rests: Signal<Local, Bit>,
    /// One more thing may enter.
    has_place: Signal<Local, Bit>,
    // Whether the message, or the request, that is offered may enter, and whether it does.
    pair_waits: Signal<Local, Bit>,
    arrival_alone: Signal<Local, Bit>,
    arrival_free: Signal<Local, Bit>,
    arrival_goes: Signal<Local, Bit>,
    endpoint_waits: Signal<Local, Bit>,
    list: Signal<Local, ListRequest>,
    list_endpoint: Signal<Local, Bits<8>>,
    list_alone: Signal<Local, Bit>,
    list_free: Signal<Local, Bit>,
    list_may: Signal<Local, Bit>,
    list_goes: Signal<Local, Bit>,
    takes_failed: Signal<Local, Bit>,
    pair: Signal<Local, Pair>,
    changed: Signal<Local, Pair>,
    pair_read: Signal<Local, Bits<16>>,
    pair_number: Signal<Local, Bits<16>>,
    pair_write: Signal<Local, Bit>,
    in_table: Signal<Local, Bit>,
    clears: Signal<Local, Bit>,
    asking: Signal<Local, Bits<8>>,
    /// A receive of the message's endpoint may be on its way here.
    in_ring: Signal<Local, Bit>,
    on_its_way: Signal<Local, Bit>,
    fetched: Signal<Local, ListRequest>,
    flags: Signal<Local, Bits<8>>,
    buffer_bytes: Signal<Local, Bits<64>>,
    bytes: Signal<Local, Bits<32>>,
    source_ok: Signal<Local, Bit>,
    wanted: Signal<Local, MatchCommand>,
    of_message: Signal<Local, MatchCommand>,
    of_request: Signal<Local, Asked>,
    is_cancel: Signal<Local, Bit>,
    resumes: Signal<Local, Bit>,
    believed: Signal<Local, Bit>,
    nothing_kept: Signal<Local, Bit>,
    stalled: Signal<Local, Bit>,
    /// The receive is behind one that waits, and may not be posted.
    is_behind: Signal<Local, Bit>,
    /// Nor may it look: those in front look first.
    looks_later: Signal<Local, Bit>,
    claim_takes: Signal<Local, types::Operation>,
    handle_pair: Signal<Local, Bits<16>>,
    owns_claim: Signal<Local, Bit>,
    fires: Signal<Local, Bit>,
    counts: Signal<Local, Bits<8>>,
    own_fault: Signal<Local, Fault>,
    waiting_named: Signal<Local, Bit>,
    ends_with: Signal<Local, Asked>,
    news: Signal<Local, Bit>,
    #[is(Check::new("no_more_has_entered_than_there_are_places_for"))]
    has_room: Check,
    #[is(constant(config.pairs as u64))]
    pair_count: Constant<Bits<16>>,
}

impl Admit {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = &[
        Operation::PairSet,
        Operation::PairClear,
        Operation::PairRead,
        Operation::EndpointFlush,
        Operation::RegionSet,
        Operation::RegionClear,
    ];

    /// For the pairs and endpoints of a card.
    pub(super) fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(pairs = self.pair_count.val().index())]
impl Logic for Admit {
    fn update(&mut self) {
        self.initialized.next = self.pairs.initialized.val();

        // Nothing happens unless it is said below.
        self.arrival.ready.next = false;
        self.lists.ready.next = false;
        self.insert.ready.next = false;
        self.overflow.ready.next = false;
        self.fault.ready.next = false;
        self.raise.valid.next = false;
        self.faults.input.valid.next = false;
        self.quiet.next = false;
        self.pair_write.next = false;
        self.clears.next = false;
        self.fires.next = false;
        self.news.next = false;
        self.takes_failed.next = false;
        self.backlog.resumes.next = false;
        self.backlog.nothing_kept.next = false;
        self.backlog.ends.next = false;
        self.backlog.forget.next = false;
        self.command.valid.next = false;
        self.asked.valid.next = false;

        // Control requests, and faults.
        self.setup.next = self.control.data.val().data.into();
        self.is_set.next = self.control.data.val().operation == Operation::PairSet;
        self.is_clear.next = self.control.data.val().operation == Operation::PairClear;
        self.is_flush.next = self.control.data.val().operation == Operation::EndpointFlush;
        self.is_read.next = self.control.data.val().operation == Operation::PairRead;
        self.is_region.next = (self.control.data.val().operation == Operation::RegionSet)
            | (self.control.data.val().operation == Operation::RegionClear);
        self.control.ready.next = false;
        self.control_result.next = 0.into();
        self.report.next = PairReport::default();
        self.in_table.next = self.pair_held.q.val() < self.pair_count.val();
        if self.in_table.val() {
            self.report.next.refused = self.refused_count.val();
        }
        self.posts_stop.next = self.control.valid.val() & self.is_region.val();
        self.pressed.next = self.fault.valid.val() | self.control.valid.val();
        self.arrival_now.next = self.arrival_first.q.val() & self.arrival.valid.val();
        send!(
            self.fault_request,
            self.faults.output.valid.val(),
            self.faults.output.data.val()
        );
        self.faults.output.ready.next = self.fault_request.ready.val();

        // What has entered, and what hasn't been dealt with.
        self.rests.next = self.entered.q.val() == 0;
        self.has_place.next = self.entered.q.val() < ENTERED;
        if self.request_done.val() {
            self.request_in.d.next = false;
        }
        if self.filled.val() {
            self.insert_in.d.next = false;
        }
        self.list.next = self.lists.data.val().fetched.request;
        self.list_endpoint.next = self.lists.data.val().fetched.endpoint;
        self.multis.posted.valid.next = self.multi_posted.valid.val();
        self.multis.posted.data.next = self.multi_posted.data.val();
        self.multis.gone.valid.next = self.multi_gone.valid.val();
        self.multis.gone.data.next = self.multi_gone.data.val();
        self.multis.endpoint[0].next = self.arrival.data.val().endpoint;
        self.multis.endpoint[1].next = self.list_endpoint.val();
        self.filling.enters.valid.next = self.fills.valid.val();
        self.filling.enters.data.next = self.fills.data.val();
        self.messages.leaves.next = self.message_done.val();
        set!(
            self.messages,
            pair = self.arrival.data.val().pair,
            endpoint = self.list_endpoint.val()
        );
        set!(
            self.filling,
            pair = self.arrival.data.val().pair,
            endpoint = self.list_endpoint.val()
        );

        // May the message that is offered enter?
        self.endpoint.next = self.arrival.data.val().endpoint;
        self.in_ring.next =
            ((self.lists_pending.val() >> self.arrival.data.val().endpoint.get_bits::<4>(0)) & 1)
                .any();
        self.on_its_way.next = self.in_ring.val() | self.in_posts.val();
        self.pair_waits.next = self.messages.of_pair.val() | self.filling.of_pair.val();
        self.arrival_alone.next = self.multis.any[0].val();
        self.arrival_free.next = self.arrival.valid.val()
            & !self.pair_waits.val()
            & self.messages.room.val()
            & self.has_place.val()
            & (!self.arrival_alone.val() | self.rests.val());

        // May the request?
        self.endpoint_waits.next = self.messages.of_endpoint.val()
            | self.filling.of_endpoint.val()
            | (self.backlog.stalled.val() & !self.messages.empty.val());
        self.list_alone.next = self.multis.any[1].val() | self.list.val().flags.get_bit(2);
        self.list_free.next = self.lists.valid.val()
            & !self.request_in.q.val()
            & !self.endpoint_waits.val()
            & self.has_place.val()
            & (!self.list_alone.val() | self.rests.val());
        self.list_may.next = !self.pressed.val()
            | (self.control.valid.val() & self.is_region.val() & !self.fault.valid.val());
        self.arrival_goes.next = self.arrival_free.val()
            & (self.arrival_now.val()
                | (!self.pressed.val() & !(self.requests_first.q.val() & self.lists.valid.val())));
        self.list_goes.next = self.list_free.val()
            & self.list_may.val()
            & !(self.pressed.val() & self.arrival_now.val())
            & !self.arrival_goes.val();

        // The pair that is looked at: read in one cycle, used or changed in the next.
        self.pair.next = self.pairs.read_data.val();
        self.changed.next = self.pair.val();
        self.pair_number.next = self.pair_held.q.val();
        self.pair_read.next = self.pair_held.q.val();

        // The endpoint that Backlog is asked about.
        self.asking.next = self.endpoint_held.q.val();
        self.waiting_named.next = self.backlog.waits.val()
            & ((self.walk.q.val() == Walk::Endpoint)
                | (!self.backlog.waiting.val().any_source
                    & (self.backlog.waiting.val().pair == self.pair_held.q.val())));

        // The request in hand.
        self.fetched.next = self.request.q.val().fetched.request;
        self.flags.next = self.fetched.val().flags;
        self.buffer_bytes.next = self.fetched.val().length;
        self.bytes.next = bit_cast::<32, 64>(self.buffer_bytes.val());
        if self.buffer_bytes.val().get_bits::<32>(32).any() {
            self.bytes.next = u32::MAX.into();
        }
        self.is_cancel.next = self.request.q.val().fetched.kind == CompletionKind::Cancel;
        self.source_ok.next = self.flags.val().get_bit(0)
            | (self.pair.val().connected
                & (self.pair.val().endpoint == self.request.q.val().fetched.endpoint)
                & (self.fetched.val().pair < self.pair_count.val()));
        self.handle_pair.next = self.fetched.val().target.get_bits::<16>(0) >> 4;
        self.owns_claim.next = self.pair.val().endpoint == self.request.q.val().fetched.endpoint;
        self.resumes.next = self.flags.val().get_bit(1) & !self.backlog.waits.val();
        self.believed.next = !self.backlog.stalled.val() | self.resumes.val();
        self.nothing_kept.next = self.flags.val().get_bit(3) & self.believed.val();
        self.stalled.next = self.backlog.stalled.val() & !self.resumes.val();
        self.is_behind.next = self.stalled.val();
        self.looks_later.next = self.is_behind.val() & self.backlog.has_news.val();
        self.wanted.next = MatchCommand {
            operation: types::Operation::Post,
            endpoint: self.request.q.val().fetched.endpoint,
            pair: self.fetched.val().pair,
            any_source: self.flags.val().get_bit(0),
            context: self.fetched.val().context,
            match_bits: self.fetched.val().match_bits,
            ignore_bits: self.fetched.val().ignore_bits,
            request: self.fetched.val().request,
            slot: 0.into(),
            multi: self.flags.val().get_bit(2),
        };
        self.claim_takes.next = types::Operation::Claim;
        self.of_request.next = Asked::default();
        self.of_request.next.endpoint = self.request.q.val().fetched.endpoint;
        self.of_request.next.pair = self.fetched.val().pair;
        self.of_request.next.request = self.fetched.val().request;
        self.of_request.next.kind = self.request.q.val().fetched.kind;
        self.of_request.next.target = self.fetched.val().target;
        self.of_request.next.domain = self.request.q.val().fetched.domain;
        self.of_request.next.key = self.fetched.val().key;
        self.of_request.next.address = self.fetched.val().address;
        self.of_request.next.length = self.bytes.val();
        self.of_request.next.any_source = self.flags.val().get_bit(0);
        self.of_request.next.multi = self.flags.val().get_bit(2);
        self.of_request.next.min_free = self.fetched.val().min_free;
        self.of_request.next.buffer = self.request.q.val().fetched.buffer;
        self.of_request.next.allowed = self.request.q.val().allowed;
        self.of_request.next.own = self.pair.val().connected
            & (self.handle_pair.val() < self.pair_count.val())
            & self.owns_claim.val();

        // Commands are about a message, unless said otherwise.
        self.of_message.next = MatchCommand::default();
        self.of_message.next.operation = types::Operation::Arrive;
        self.of_message.next.endpoint = self.message.q.val().endpoint;
        self.of_message.next.pair = self.message.q.val().pair;
        self.of_message.next.context = self.message.q.val().context;
        self.of_message.next.match_bits = self.message.q.val().match_bits;

        // A receive that waited ends.
        self.ends_with.next = Asked::default();
        self.ends_with.next.endpoint = self.endpoint_held.q.val();
        self.ends_with.next.request = self.backlog.waiting.val().request;
        self.ends_with.next.kind = CompletionKind::Receive.into();
        self.ends_with.next.status = self.status.q.val();

        self.raise.data.next = RaiseEvent::default();
        self.raise.data.next.endpoint = self.endpoint_held.q.val();
        self.raise.data.next.pair = self.pair_held.q.val();
        self.raise.data.next.cause = Cause::SlotError.into();
        self.own_fault.next = Fault::default();
        self.own_fault.next.pair = self.pair_held.q.val();
        self.own_fault.next.status = Status::MemoryError.into();
        if self.overflown.q.val() {
            self.raise.data.next.cause = Cause::UnexpectedOverflow.into();
            self.own_fault.next.status = Status::LinkError.into();
        }
        self.faults.input.data.next = self.own_fault.val();
        self.command.data.next = self.command_held.q.val();
        self.asked.data.next = self.asked_held.q.val();

        match self.state.q.val() {
            State::Idle => {
                self.alone.d.next = false;
                self.commands.d.next = true;
                self.enters_message.d.next = false;
                self.enters_request.d.next = false;
                self.enters_insert.d.next = false;
                self.after.d.next = State::Idle;
                self.asking.next = self.list_endpoint.val();
                if !self.pairs.initialized.val() {
                    self.state.d.next = State::Idle;
                } else if self.insert.valid.val() & !self.insert_in.q.val() {
                    self.insert.ready.next = true;
                    self.pair_held.d.next = self.insert.data.val().pair;
                    self.endpoint_held.d.next = self.insert.data.val().endpoint;
                    self.overflown.d.next = false;
                    self.command_held.d.next = MatchCommand::default();
                    self.command_held.d.next.operation = types::Operation::Insert;
                    self.command_held.d.next.endpoint = self.insert.data.val().endpoint;
                    self.command_held.d.next.pair = self.insert.data.val().pair;
                    self.command_held.d.next.context = self.insert.data.val().context;
                    self.command_held.d.next.match_bits = self.insert.data.val().match_bits;
                    self.command_held.d.next.slot = self.insert.data.val().slot;
                    self.asked_held.d.next = Asked::default();
                    self.asked_held.d.next.ask = Ask::Insert;
                    self.asked_held.d.next.endpoint = self.insert.data.val().endpoint;
                    self.asked_held.d.next.pair = self.insert.data.val().pair;
                    self.enters_insert.d.next = true;
                    self.state.d.next = State::Enter;
                    if self.insert.data.val().failed {
                        self.takes_failed.next = true;
                        self.state.d.next = State::Raise;
                    }
                } else if self.overflow.valid.val() {
                    self.overflow.ready.next = true;
                    self.pair_held.d.next = self.overflow.data.val().pair;
                    self.endpoint_held.d.next = self.overflow.data.val().endpoint;
                    self.overflown.d.next = true;
                    self.state.d.next = State::Raise;
                } else if self.backlog.wake.valid.val()
                    & !self.request_in.q.val()
                    & self.has_place.val()
                {
                    self.asking.next = self.backlog.wake.data.val();
                    self.endpoint_held.d.next = self.backlog.wake.data.val();
                    self.status.d.next = Status::ListFull.into();
                    self.state.d.next = State::Wake;
                } else if self.fault.valid.val() & !self.arrival_now.val() & self.rests.val() {
                    self.pair_read.next = self.fault.data.val().pair;
                    self.pair_held.d.next = self.fault.data.val().pair;
                    self.status.d.next = self.fault.data.val().status;
                    self.state.d.next = State::Fault;
                } else if self.control.valid.val()
                    & !self.fault.valid.val()
                    & !self.arrival_now.val()
                    & self.rests.val()
                    & (self.faults.level.val() == 0)
                    & (!self.is_region.val() | self.posts_empty.val())
                {
                    // Own faults are out and offered ones taken first: none is left over for the pair's next connection.
                    self.pair_read.next = self.control.data.val().index;
                    self.pair_held.d.next = self.control.data.val().index;
                    self.status.d.next = Status::Flushed.into();
                    self.state.d.next = State::Control;
                } else if self.arrival_goes.val() {
                    self.arrival.ready.next = true;
                    self.arrival_first.d.next = false;
                    self.requests_first.d.next = true;
                    self.pair_read.next = self.arrival.data.val().pair;
                    self.message.d.next = self.arrival.data.val();
                    self.pending.d.next = self.on_its_way.val();
                    self.alone.d.next = self.arrival_alone.val();
                    self.state.d.next = State::Message;
                } else if self.list_goes.val() {
                    self.lists.ready.next = true;
                    self.requests_first.d.next = false;
                    self.pair_read.next = self.list.val().pair;
                    if self.lists.data.val().fetched.names_claim {
                        self.pair_read.next = self.list.val().target.get_bits::<16>(0) >> 4;
                    }
                    self.request.d.next = self.lists.data.val();
                    self.alone.d.next = self.list_alone.val();
                    self.endpoint_held.d.next = self.list_endpoint.val();
                    self.state.d.next = State::Request;
                }
            }

            // ---------------------------------------------------------------- what enters
            State::Message => {
                self.command_held.d.next = self.of_message.val();
                self.asked_held.d.next = Asked::default();
                self.asked_held.d.next.ask = Ask::Message;
                self.asked_held.d.next.endpoint = self.message.q.val().endpoint;
                self.asked_held.d.next.pair = self.message.q.val().pair;
                self.asked_held.d.next.context = self.message.q.val().context;
                self.asked_held.d.next.match_bits = self.message.q.val().match_bits;
                self.asked_held.d.next.immediate = self.message.q.val().immediate;
                self.asked_held.d.next.arrived = self.message.q.val().length;
                self.asked_held.d.next.ready = self.message.q.val().ready;
                self.asked_held.d.next.pending = self.pending.q.val();
                if !self.pair.val().connected | self.pair.val().failed {
                    // A late message of a pair that has failed meanwhile.
                    self.asked_held.d.next.ask = Ask::Drop;
                    self.commands.d.next = false;
                }
                self.enters_message.d.next = true;
                if self.alone.q.val() {
                    self.after.d.next = State::Alone;
                }
                self.state.d.next = State::Enter;
            }
            State::Request => {
                self.enters_request.d.next = true;
                if self.alone.q.val() {
                    self.after.d.next = State::Alone;
                }
                self.command_held.d.next = self.wanted.val();
                self.asked_held.d.next = self.of_request.val();
                self.state.d.next = State::Enter;
                if !self.is_cancel.val() {
                    self.backlog.resumes.next = self.resumes.val();
                    self.backlog.nothing_kept.next = self.nothing_kept.val();
                }
                if self.is_cancel.val()
                    & self.backlog.waits.val()
                    & (self.backlog.waiting.val().request == self.fetched.val().target)
                {
                    self.backlog.ends.next = true;
                    self.asked_held.d.next.request = self.fetched.val().target;
                    self.asked_held.d.next.kind = CompletionKind::Receive.into();
                    self.asked_held.d.next.status = Status::Cancelled.into();
                    self.asked_held.d.next.releases = true;
                    self.commands.d.next = false;
                } else if self.is_cancel.val() {
                    self.command_held.d.next.operation = types::Operation::Cancel;
                    self.command_held.d.next.request = self.fetched.val().target;
                    self.asked_held.d.next.ask = Ask::Cancel;
                    self.asked_held.d.next.status = Status::TooLate.into();
                } else if self.request.q.val().fetched.names_claim {
                    self.asked_held.d.next.ask = Ask::Handle;
                    self.commands.d.next = false;
                } else if self.request.q.val().fetched.needs_pair & !self.source_ok.val() {
                    self.asked_held.d.next.status = Status::InvalidPair.into();
                    self.asked_held.d.next.invalid = true;
                    self.commands.d.next = false;
                } else if !self.request.q.val().allowed {
                    self.asked_held.d.next.status = Status::LocalProtection.into();
                    self.asked_held.d.next.invalid = true;
                    self.commands.d.next = false;
                } else if self.looks_later.val() {
                    self.asked_held.d.next.status = Status::Behind.into();
                    self.asked_held.d.next.names = self.backlog.waiting.val().request;
                    self.commands.d.next = false;
                } else if self.request.q.val().fetched.kind == CompletionKind::Probe {
                    self.command_held.d.next.operation = types::Operation::Probe;
                    self.asked_held.d.next.ask = Ask::Probe;
                    self.asked_held.d.next.status = Status::NoMessage.into();
                    if self.pair.val().failed & !self.flags.val().get_bit(0) {
                        // From a failed pair nothing will come: the request ends as the pair did.
                        self.asked_held.d.next.status = self.pair.val().status;
                    }
                } else if self.request.q.val().fetched.kind == CompletionKind::Claim {
                    self.command_held.d.next.operation = self.claim_takes.val();
                    self.asked_held.d.next.ask = Ask::Claim;
                    self.asked_held.d.next.status = Status::NoMessage.into();
                    if self.pair.val().failed & !self.flags.val().get_bit(0) {
                        self.asked_held.d.next.status = self.pair.val().status;
                    }
                } else if self.pair.val().failed & !self.flags.val().get_bit(0) {
                    // A failed pair sends nothing more; what it sent before may still be received.
                    self.command_held.d.next.operation = types::Operation::Claim;
                    self.asked_held.d.next.ask = Ask::Take;
                    self.asked_held.d.next.status = self.pair.val().status;
                } else if self.is_behind.val() {
                    self.command_held.d.next.operation = types::Operation::Claim;
                    self.asked_held.d.next.ask = Ask::Take;
                    self.asked_held.d.next.status = Status::Behind.into();
                    self.asked_held.d.next.names = self.backlog.waiting.val().request;
                } else {
                    self.asked_held.d.next.ask = Ask::Receive;
                }
            }
            State::Wake => {
                self.backlog.ends.next = true;
                self.asked_held.d.next = self.ends_with.val();
                self.commands.d.next = false;
                self.enters_request.d.next = true;
                self.state.d.next = State::Enter;
            }
            State::Enter => {
                self.fires.next =
                    self.asked.ready.val() & (!self.commands.q.val() | self.command.ready.val());
                self.command.valid.next = self.commands.q.val() & self.asked.ready.val();
                self.asked.valid.next = !self.commands.q.val() | self.command.ready.val();
                if self.fires.val() {
                    self.state.d.next = self.after.q.val();
                    if self.enters_request.q.val() {
                        self.request_in.d.next = true;
                    }
                    if self.enters_insert.q.val() {
                        self.insert_in.d.next = true;
                    }
                }
            }
            State::Alone => {
                self.enters_message.d.next = false;
                self.enters_request.d.next = true;
                self.commands.d.next = true;
                self.after.d.next = State::Alone;
                self.pair_read.next = self.fetched.val().pair;
                if self.follow.valid.val() {
                    // Its fields replace those of the request in hand, for one more message.
                    self.request.d.next.fetched.request.address = self.follow.data.val().address;
                    self.request.d.next.fetched.request.length =
                        bit_cast::<64, 32>(self.follow.data.val().length);
                    self.state.d.next = State::Request;
                    if self.follow.data.val().retire {
                        self.command_held.d.next = MatchCommand::default();
                        self.command_held.d.next.operation = types::Operation::Cancel;
                        self.command_held.d.next.endpoint = self.follow.data.val().endpoint;
                        self.command_held.d.next.request = self.follow.data.val().request;
                        self.asked_held.d.next = Asked::default();
                        self.asked_held.d.next.ask = Ask::Retire;
                        self.asked_held.d.next.endpoint = self.follow.data.val().endpoint;
                        self.state.d.next = State::Enter;
                    }
                } else if self.rests.val() | self.insert.valid.val() | self.overflow.valid.val() {
                    // A message that meets no receive is followed by nothing.
                    self.state.d.next = State::Idle;
                }
            }

            // ---------------------------------------------------------------- a pair that has to fail
            State::Raise => {
                self.raise.valid.next = true;
                if self.raise.ready.val() {
                    self.state.d.next = State::Fail;
                }
            }
            State::Fail => {
                self.faults.input.valid.next = true;
                self.pair_write.next = self.faults.input.ready.val();
                self.changed.next.failed = true;
                self.changed.next.status = self.own_fault.val().status;
                if self.faults.input.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }

            // ---------------------------------------------------------------- faults and control
            State::Fault => {
                self.pair_write.next = true;
                self.changed.next.failed = true;
                self.changed.next.status = self.status.q.val();
                self.endpoint_held.d.next = self.pair.val().endpoint;
                self.walk.d.next = Walk::Fault;
                self.state.d.next = State::Walk;
            }
            State::Control => {
                self.state.d.next = State::Walk;
                self.walk.d.next = Walk::Endpoint;
                self.endpoint_held.d.next = bit_cast::<8, 16>(self.pair_held.q.val());
                if self.is_clear.val() {
                    self.walk.d.next = Walk::Messages;
                    self.endpoint_held.d.next = self.pair.val().endpoint;
                }
                if self.is_read.val() {
                    self.control_result.next = self.report.val().into();
                }
                if self.is_set.val() {
                    self.pair_write.next = true;
                    self.clears.next = true;
                    self.changed.next = Pair::default();
                    self.changed.next.connected = true;
                    self.changed.next.endpoint = self.setup.val().endpoint;
                }
                self.quiet.next = self.is_region.val();
                if self.is_region.val() & !self.region_changed.val() {
                    self.state.d.next = State::Control;
                }
                if self.is_read.val()
                    | self.is_set.val()
                    | (self.is_region.val() & self.region_changed.val())
                {
                    self.control.ready.next = true;
                    self.arrival_first.d.next = true;
                    self.state.d.next = State::Idle;
                }
            }
            State::Walk => {
                self.commands.d.next = true;
                self.enters_message.d.next = false;
                self.enters_request.d.next = false;
                self.enters_insert.d.next = false;
                self.after.d.next = State::Walked;
                self.command_held.d.next = MatchCommand::default();
                self.command_held.d.next.operation = types::Operation::TakePostedOfPair;
                self.command_held.d.next.endpoint = self.endpoint_held.q.val();
                self.command_held.d.next.pair = self.pair_held.q.val();
                self.asked_held.d.next = Asked::default();
                self.asked_held.d.next.ask = Ask::Flush;
                self.asked_held.d.next.endpoint = self.endpoint_held.q.val();
                self.asked_held.d.next.status = self.status.q.val();
                if self.walk.q.val() == Walk::Endpoint {
                    self.command_held.d.next.operation = types::Operation::TakePostedOfEndpoint;
                }
                if self.walk.q.val() == Walk::Messages {
                    self.command_held.d.next.operation = types::Operation::TakeUnexpectedOfPair;
                    self.asked_held.d.next.ask = Ask::Forget;
                }
                if self.has_place.val() {
                    self.state.d.next = State::Enter;
                }
            }
            State::Walked => {
                if self.walked.valid.val() {
                    self.state.d.next = State::Last;
                    if self.walked.data.val() {
                        self.state.d.next = State::Walk;
                    } else if self.walk.q.val() == Walk::Messages {
                        self.pair_write.next = true;
                        self.clears.next = true;
                        self.changed.next = Pair::default();
                        self.walk.d.next = Walk::Pair;
                        self.state.d.next = State::Walk;
                    }
                }
            }
            State::Last => {
                self.commands.d.next = false;
                self.after.d.next = State::Over;
                self.asked_held.d.next = self.ends_with.val();
                if self.waiting_named.val() {
                    if self.has_place.val() {
                        self.backlog.ends.next = true;
                        self.state.d.next = State::Enter;
                    }
                } else {
                    self.state.d.next = State::Over;
                }
            }
            State::Over => {
                if self.rests.val() {
                    self.backlog.forget.next = self.walk.q.val() == Walk::Endpoint;
                    // What names the pair, and has been refused, may end as the pair did.
                    self.news.next = self.walk.q.val() != Walk::Endpoint;
                    self.fault.ready.next = self.walk.q.val() == Walk::Fault;
                    self.control.ready.next = self.walk.q.val() != Walk::Fault;
                    self.arrival_first.d.next = true;
                    self.state.d.next = State::Idle;
                }
            }
            _ => {}
        }

        // What enters is counted until it ends.
        self.counts.next = self.entered.q.val();
        if self.fires.val() & !self.enters_insert.q.val() {
            self.counts.next = self.counts.val() + 1;
        }
        if self.answer_ended.val() {
            self.counts.next = self.counts.val() - 1;
        }
        if self.ledger_ended.val() {
            self.counts.next = self.counts.val() - 1;
        }
        if self.takes_failed.val() {
            self.counts.next = self.counts.val() - 1;
        }
        self.entered.d.next = self.counts.val();
        self.has_room.ok.next = self.entered.q.val() <= ENTERED;
        self.messages.enters.valid.next = self.fires.val() & self.enters_message.q.val();
        self.messages.enters.data.next = Member {
            pair: self.message.q.val().pair,
            endpoint: self.message.q.val().endpoint,
        };
        self.filling.leaves.next = self.filled.val() | self.takes_failed.val();

        self.backlog.endpoint.next = self.asking.val();
        self.backlog.hold.valid.next = self.hold.valid.val();
        self.backlog.hold.data.next = self.hold.data.val();
        self.backlog.news.valid.next = self.news_in.valid.val() | self.news.val();
        self.backlog.news.data.next = self.endpoint_held.q.val();
        if self.news_in.valid.val() {
            self.backlog.news.data.next = self.news_in.data.val();
        }
        self.backlog.gone.next = self.gone.val();
        self.backlog.other.next = self.answer_endpoint.val();
        self.kept.next = self.backlog.kept.val();
        self.refused_pair.next = self.pair_read.val();
        self.pairs.read_address.next = self.pair_read.val();
        self.pairs.write_enable.next = self.pair_write.val();
        self.pairs.write_address.next = self.pair_number.val();
        self.pairs.write_data.next = self.changed.val();
        self.slot_setup.valid.next = self.clears.val() & self.in_table.val();
        self.slot_setup.data.next = SlotSetup {
            pair: self.pair_held.q.val(),
            base: self.setup.val().slots,
            slots: self.setup.val().local_credits,
        };
        self.forget.valid.next = self.clears.val() & self.in_table.val();
        self.forget.data.next = self.pair_held.q.val();
    }
}
