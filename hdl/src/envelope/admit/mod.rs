//! The order of the card: everything that happens to messages and receives begins here, one after the other.
//!
//! ```text
//!                       ┌───────┐
//!   lost, overflow ────►│       │
//!   wake ──► Backlog ──►│       ├──► command      to Lists ┐ in the same
//!   fault ─────────────►│ Admit ├──► asked        to Answer┘ cycle
//!   control ───────────►│       │◄─► pairs        (Table)
//!   arrival ───────────►│       │◄── done, ended  from Answer and Ledger
//!   lists ── Posts ────►│       ├──► raise, fault_request
//!                       │       │◄─► look, seen   a vacant slot
//!                       └───────┘
//! ```
//!
//! The cycle in which a command enters Lists is the order of the card. What Lists will answer isn't waited for, except
//! where what comes next depends on it:
//!
//! - *A message* waits while one of its pair is being looked up: so a pair that fails by a message without a slot is failed for the next
//!   one. Of one whose slot can't be written nobody knows in time; [`Ledger`](super::ledger) accepts none behind it.
//!   It enters with a vacant slot, in which it rests if it meets no receive. A ready message waits for the request of its endpoint that is being
//!   looked up, which says whether the host keeps receives back.
//! - *A request* waits for the request before it, and for receives that have to be woken; if its endpoint is stalled, for all messages,
//!   and the step of a walk, that are being looked up. Messages it needn't wait for: each is either in Lists or has met its receive. One that is in Lists may not be
//!   in its slot yet: then the request waits aside in Answer, and messages pass it: four or five, if another request waits for its turn.
//! - *A message without a slot* is waited for until Answer has dealt with it: if it meets no receive its pair fails before another message or request enters.
//! - *While an endpoint has a multi-receive posted*, its messages enter one at a time: each when Lists and Answer have dealt with all before it, and nothing
//!   else until they have dealt with it. So does a multi-receive itself, with all messages that it finds.
//! - *A fault, and the end of a pair or an endpoint,* wait for the messages of that endpoint that are under way, and for
//!   the request, of any endpoint, that is being looked up: a receive that finds its list full waits before its pair ends. From then
//!   on the pair is failed, or isn't connected, and its receives end one by one: the pair is *walked*, in the background.
//!
//! Messages and requests take turns, so that neither can hold up the other for good. While receives come later than their
//! messages a request has two turns for one of a message, so that they catch up; and messages that pass a request which
//! waits aside give their turns back later. A step of a walk goes between two of them, while no request
//! is being looked up: behind one that comes to wait aside it would hold up all messages. Before all these go, in this order,
//! a message whose slot couldn't be written, one that has found no slot, a request that enters anew, and a receive that has
//! to be woken. An arrival that waits goes between two control requests or faults, so that a late message of a pair that is closed can't meet the next connection
//! of its number.
//!
//! What enters has a place for all that can become of it: at most 16 things are between here and the end of the
//! [`Ledger`](super::ledger::Ledger), and the queues on the way hold as many. So Answer and Ledger never wait for room that only Admit could make. The removal
//! of a message whose slot couldn't be written enters besides: that message has given back its place in the Ledger, and its removal ends in Answer.
//!
//! **A full list.** The receive that finds it full *waits*; see [`Backlog`](super::backlog::Backlog). What is posted behind it may look for
//! a message, but isn't posted: it would overtake.
//!
//! | file | idea |
//! |---|---|
//! | `offers` | whether the message that is offered, or the request, may enter |
//! | `choose` | what comes next |
//! | `message`, `request` | what Lists are asked for it, and what Answer hears |
//! | `walk` | receives and messages of a pair, or an endpoint, end one by one |
//! | `govern` | control requests |
//! | `revoke` | whether a rule revokes what enters, and which rules there are |
//! | `enter` | what was chosen enters, and a multi-receive's message or request is dealt with; what has entered is counted |
//! | `fail` | a pair fails by what became of a message |
//! | `slot` | a vacant slot for the message that is offered |

mod choose;
mod enter;
mod fail;
mod govern;
mod message;
mod offers;
mod request;
mod revoke;
mod slot;
mod walk;

use super::answer::MESSAGES;
use super::asked::{Asked, Follow};
use super::backlog::{Backlog, Held};
use super::filling::{Filled, Filling};
use super::multis::Multis;
use super::posts::CheckedList;
use super::rules::{Rules, Tag};
use super::slots::{SlotSetup, Vacancy};
use super::under_way::UnderWay;
use crate::config::Config;
use crate::prelude::*;
use crate::prim::{Fifo, Table};
use crate::types;
use crate::types::{
    Arrival, ControlRequest, Fault, Had, ListRequest, MatchCommand, PairReport, PairSetup,
    RaiseEvent, RuleSetup, SlotWritten, Slotted,
};
use abi::control::Operation;
use abi::request::{
    FLAG_ANY_SOURCE, FLAG_MULTI, FLAG_NOTHING_KEPT, FLAG_PAST_RULES, FLAG_RESUME, slot_number,
};

const _: () = assert!(FLAG_ANY_SOURCE == 1 << 0, "the kernel tests this bit");
const _: () = assert!(FLAG_RESUME == 1 << 1, "the kernel tests this bit");
const _: () = assert!(FLAG_MULTI == 1 << 2, "the kernel tests this bit");
const _: () = assert!(FLAG_NOTHING_KEPT == 1 << 3, "the kernel tests this bit");
const _: () = assert!(FLAG_PAST_RULES == 1 << 4, "the kernel tests this bit");
const _: () = assert!(slot_number(1, 0) == 1 << 6, "the kernel cuts slots here");

/// Things between here and the end of the Ledger, at most.
pub(super) const ENTERED: u64 = 16;

/// Turns of requests for one of a message while receives come later than their messages: so they catch up. Otherwise one.
const TURNS: u64 = 2;
/// A request that waits aside isn't passed once requests are owed so many turns. Each message that passes it, behind the first, owes them two.
const MOST_TURNS: u64 = 8;

/// What is kept of a pair.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Pair {
    connected: Bit,
    failed: Bit,
    /// Its failure was asked for here, by a message that has no place.
    given_up: Bit,
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
    /// That of a request that enters anew, or of what is left of a multi-receive, is.
    Look,
    /// The pair of a request is known, and the receive of its endpoint that waits is read.
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
    /// The pair of a fault is read.
    Fault,
    /// That of a control request is read, and what needs no walk is done.
    Control,
    /// The pair of a walk that begins is read.
    Begin,
    /// A walk takes a step.
    Step,
    /// Behind the first step: the receive that waits ends too, if it is one of them.
    Last,
    /// All that entered before the end of a walk has to end.
    Mark,
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

/// How far a walk is.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Stage {
    /// There is none.
    None,
    /// One is to begin when no message of its endpoint, and no request, is under way.
    Due,
    /// A step is to be taken.
    Step,
    /// One has been taken; what it found isn't known.
    Asked,
    /// All have been taken, and a mark is to enter.
    Mark,
    /// It has entered, and hasn't ended.
    Marked,
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
    /// The step of the walk is known; there may be more to find.
    pub walked: Pulse<In, Bit>,
    /// Pulse: all that entered before the mark has ended.
    pub marked: Signal<In, Bit>,
    /// The request that entered last waits aside in Answer for host memory: messages may take turns of requests, which they give back.
    pub aside: Signal<In, Bit>,
    /// The last receive has found a message: receives come later than their messages.
    pub receives_come_late: Signal<In, Bit>,
    /// What follows of a multi-receive.
    pub follow: Pulse<In, Follow>,
    /// Pulse: the request found a message that isn't anywhere, and has to enter anew.
    pub retry: Signal<In, Bit>,
    /// Pulse: it enters anew.
    pub request_again: Signal<Out, Bit>,
    /// A message goes to its slot.
    pub fills: Pulse<In, Filled>,
    /// The write of a slot was answered.
    pub written: Pulse<In, SlotWritten>,
    /// By an error: this message's.
    pub lost: Stream<In, Slotted>,
    /// There is such a message, though it may not be offered yet.
    pub has_lost: Signal<In, Bit>,
    /// Pulse: it was removed from Lists.
    pub removed: Pulse<In, Bits<16>>,
    /// The slot that Answer asks about.
    pub in_hand: Signal<In, Bits<16>>,
    /// Its message isn't in its slot yet, or never will be.
    pub in_hand_fills: Signal<Out, Bit>,
    /// It never will be.
    pub in_hand_is_lost: Signal<Out, Bit>,
    /// A pair of which a vacant slot is looked for.
    pub look: Stream<Out, Bits<16>>,
    /// What was found.
    pub seen: Pulse<In, Vacancy>,
    /// A message has found no slot.
    pub overflow: Stream<In, Slotted>,

    /// A receive has found its list full.
    pub hold: Pulse<In, Held>,
    /// A message was appended for this endpoint.
    pub news_in: Pulse<In, Bits<8>>,
    /// Pulse: a posted receive has gone.
    pub gone: Signal<In, Bit>,
    /// A multi-receive of this endpoint was posted.
    pub multi_posted: Pulse<In, Bits<8>>,
    /// One has gone.
    pub multi_gone: Pulse<In, Bits<8>>,

    /// A pair's slots.
    pub slot_setup: Stream<Out, SlotSetup>,
    /// The pair that is read, and whose count of refused accesses is looked up.
    pub refused_pair: Signal<Out, Bits<16>>,
    /// That count, a cycle later.
    pub refused_count: Signal<In, Bits<32>>,
    /// The count of this pair is zero again.
    pub forget: Pulse<Out, Bits<16>>,

    /// An event.
    pub raise: Stream<Out, RaiseEvent>,
    /// A pair has to fail.
    pub fault_request: Stream<Out, Fault>,
    /// A pair has failed; it is taken when the receives that name it are complete.
    pub fault: Stream<In, Fault>,
    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,
    /// With it, for `PairRead`: a `PairReport` of what is kept here. Zero otherwise.
    pub control_result: Signal<Out, Bits<64>>,

    /// Which pair is read is known late, so it is of block RAM: look-up tables would make that path longer by 4 ns.
    #[is(Table::block(config.pairs))]
    pairs: Table<Pair>,
    /// The same, for the pair of the request that is offered, which is read while that waits.
    #[is(Table::block(config.pairs))]
    named: Table<Pair>,
    backlog: Backlog,
    #[is(Multis::new(config.endpoints))]
    multis: Multis,
    /// Messages of which Lists, or Answer, haven't said what becomes of them.
    #[is(UnderWay::new(MESSAGES))]
    messages: UnderWay,
    /// Messages in Lists that aren't in their slots yet.
    #[is(Filling::new(ENTERED as usize))]
    filling: Filling,
    #[is(Rules::new(config))]
    rules: Rules,
    /// Faults of pairs that the card itself gave up here; one a pair at most, so that Admit never waits for Faults, which may
    /// be waiting for it.
    #[is(Fifo::new(config.pairs))]
    faults: Fifo<Fault>,
    state: Reg<State>,
    /// What has entered and hasn't ended.
    entered: Reg<Bits<8>>,
    /// A request has entered, and Answer hasn't dealt with it.
    request_in: Reg<Bit>,
    /// It has to enter anew.
    again: Reg<Bit>,
    /// The removal of a message has entered, and Answer hasn't dealt with it.
    lost_in: Reg<Bit>,
    // A vacant slot for the message that is offered: it is being looked for; it was looked for, and this was found.
    looks: Reg<Bit>,
    looked: Reg<Bit>,
    vacancy: Reg<Vacancy>,
    /// In the last cycle a slot of the offered message's pair was filling or lost.
    arrival_fills: Reg<Bit>,
    /// It had no vacant slot while a request was under way.
    awaits_slot: Reg<Bit>,
    /// So many requests go before the next message, if that many are offered.
    owed: Reg<Bits<4>>,
    /// The next arrival goes before the next fault or control request.
    arrival_first: Reg<Bit>,
    // What is about to enter: its command, if it has one, what Answer hears, and what then.
    command_held: Reg<MatchCommand>,
    commands: Reg<Bit>,
    asked_held: Reg<Asked>,
    after: Reg<State>,
    // It is a message; it is a request; it is the removal of a message.
    enters_message: Reg<Bit>,
    enters_request: Reg<Bit>,
    enters_lost: Reg<Bit>,
    /// The message in hand.
    message: Reg<Arrival>,
    /// Its slot.
    slot: Reg<Vacancy>,
    /// A receive for it may be on its way here.
    pending: Reg<Bit>,
    /// The pair of the message in hand, or of the request, or of its claim, as it was read. It comes out of the memory late in a cycle.
    known: Reg<Pair>,
    /// The request in hand.
    request: Reg<CheckedList>,
    /// What it has had.
    had: Reg<Had>,
    /// The message in hand enters alone.
    alone: Reg<Bit>,
    /// Something follows of the multi-receive that is alone: it leaves Lists, or looks for the next message.
    follows: Reg<Bit>,
    retires: Reg<Bit>,
    /// A rule that covers it revokes it.
    revocable: Reg<Bit>,
    // Pair and endpoint of what is in hand.
    pair_held: Reg<Bits<16>>,
    endpoint_held: Reg<Bits<8>>,
    /// The message from a slot that is in hand has found no slot; otherwise its slot couldn't be written.
    overflown: Reg<Bit>,
    // The walk: how far it is, what for, whose receives, and what they complete with. The pair is that of any control request.
    #[is(Reg::new(Stage::None))]
    stage: Reg<Stage>,
    #[is(Reg::new(Walk::Fault))]
    cause: Reg<Walk>,
    walk_pair: Reg<Bits<16>>,
    walk_endpoint: Reg<Bits<8>>,
    walk_status: Reg<Bits<8>>,
    /// The control request hasn't been given up by the firmware since it was looked at.
    walk_is_asked: Reg<Bit>,
    /// It has taken a step.
    walk_begun: Reg<Bit>,
    /// A message or a request goes before its next step, if one may.
    walk_yields: Reg<Bit>,
    /// Its next step goes on where the last one stopped.
    walk_again: Reg<Bit>,

    setup: Signal<Local, PairSetup>,
    report: Signal<Local, PairReport>,
    is_set: Signal<Local, Bit>,
    is_clear: Signal<Local, Bit>,
    is_flush: Signal<Local, Bit>,
    is_read: Signal<Local, Bit>,
    is_rule_set: Signal<Local, Bit>,
    is_rule_clear: Signal<Local, Bit>,
    rule: Signal<Local, RuleSetup>,
    /// The message that waits goes before a fault or a control request.
    arrival_now: Signal<Local, Bit>,
    // A fault, or a control request, may be looked at.
    fault_goes: Signal<Local, Bit>,
    control_goes: Signal<Local, Bit>,
    /// A walk begins: two things may enter, its first step and the end of the receive that waits.
    walk_begins: Signal<Local, Bit>,
    /// A message of its endpoint, or a request, is under way.
    walk_is_early: Signal<Local, Bit>,
    /// The message that is offered is of that endpoint, and comes later.
    arrival_walked: Signal<Local, Bit>,
    /// The pair of the fault, or else of the control request.
    named_pair: Signal<Local, Bits<16>>,
    /// A step of the walk enters.
    walk_goes: Signal<Local, Bit>,
    /// A message or a request goes before it.
    walk_waits: Signal<Local, Bit>,
    walk_held: Signal<Local, Bit>,
    /// Lists and Answer have dealt with all messages and requests that have entered.
    all_is_found: Signal<Local, Bit>,
    /// What entered alone is dealt with: nothing follows.
    alone_ends: Signal<Local, Bit>,
    /// One more thing may enter.
    has_place: Signal<Local, Bit>,
    // Whether the message, or the request, that is offered may enter, and whether it does.
    pair_waits: Signal<Local, Bit>,
    /// The message in hand is of its pair.
    pair_in_hand: Signal<Local, Bit>,
    /// It is a ready message, and a request of its endpoint is being looked up.
    ready_waits: Signal<Local, Bit>,
    /// Whether there is a slot for it is known.
    slot_known: Signal<Local, Bit>,
    arrival_alone: Signal<Local, Bit>,
    arrival_free: Signal<Local, Bit>,
    arrival_goes: Signal<Local, Bit>,
    may_pass: Signal<Local, Bit>,
    endpoint_waits: Signal<Local, Bit>,
    /// The request in hand enters anew.
    again_goes: Signal<Local, Bit>,
    list: Signal<Local, ListRequest>,
    list_endpoint: Signal<Local, Bits<8>>,
    /// Its pair, or that of the claim that it names.
    list_pair: Signal<Local, Bits<16>>,
    /// It was offered in the last cycle too, so that its pair is read.
    list_looked: Reg<Bit>,
    list_free: Signal<Local, Bit>,
    list_goes: Signal<Local, Bit>,
    pair: Signal<Local, Pair>,
    changed: Signal<Local, Pair>,
    pair_read: Signal<Local, Bits<16>>,
    pair_write: Signal<Local, Bit>,
    in_table: Signal<Local, Bit>,
    /// The pair's slots, and its count of refusals, start anew.
    clears: Signal<Local, Bit>,
    /// The walk is over.
    ends_walk: Signal<Local, Bit>,
    // The endpoint that Backlog is asked about, and that of the next cycle, which is known late.
    asking: Signal<Local, Bits<8>>,
    asking_next: Signal<Local, Bits<8>>,
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
    /// The host of the message's endpoint may keep receives back.
    host_keeps: Signal<Local, Bit>,
    /// A receive for it may be on its way here.
    may_be_posted: Signal<Local, Bit>,
    refusable: Signal<Local, Bit>,
    /// The message in hand has to meet a receive, or its pair fails.
    has_no_slot: Signal<Local, Bit>,
    // The message in hand is a get, or the answer of one; its bytes on the wire.
    is_get: Signal<Local, Bit>,
    is_answer: Signal<Local, Bit>,
    on_wire: Signal<Local, Bits<16>>,
    /// What enters is a message that comes too late, since its pair has failed or isn't connected.
    is_late: Signal<Local, Bit>,
    appends: Signal<Local, Bit>,
    of_request: Signal<Local, Asked>,
    // What the request in hand has had, and the receive that waits, as `Asked` has it.
    had_bits: Signal<Local, Bits<64>>,
    waiting_had: Signal<Local, Bits<64>>,
    is_cancel: Signal<Local, Bit>,
    resumes: Signal<Local, Bit>,
    believed: Signal<Local, Bit>,
    nothing_kept: Signal<Local, Bit>,
    /// The receive is behind one that waits, and may not be posted.
    is_behind: Signal<Local, Bit>,
    /// Nor may it look: those in front look first.
    looks_later: Signal<Local, Bit>,
    claim_takes: Signal<Local, types::Operation>,
    handle_pair: Signal<Local, Bits<16>>,
    owns_claim: Signal<Local, Bit>,
    /// What a rule covers if it covers what is in hand.
    tag: Signal<Local, Tag>,
    /// Whether a rule covers it is known, or doesn't matter.
    rule_known: Signal<Local, Bit>,
    /// It is a claim that no rule refuses.
    past_rules: Signal<Local, Bit>,
    /// The request in hand looks for a message, and is sound.
    searches: Signal<Local, Bit>,
    /// What enters falls under the rules.
    under_rules: Signal<Local, Bit>,
    // What enters is revoked: a message is dropped, a request ends.
    revoked: Signal<Local, Bit>,
    drops_revoked: Signal<Local, Bit>,
    ends_revoked: Signal<Local, Bit>,
    /// What enters has a command for Lists.
    has_command: Signal<Local, Bit>,
    fires: Signal<Local, Bit>,
    counts: Signal<Local, Bits<8>>,
    own_fault: Signal<Local, Fault>,
    has_given_up: Signal<Local, Bit>,
    waiting_named: Signal<Local, Bit>,
    woken: Signal<Local, Asked>,
    last: Signal<Local, Asked>,
    news: Signal<Local, Bit>,
    /// A message was taken after the last request.
    message_went: Reg<Bit>,
    #[is(Check::new("messages_and_requests_take_turns"))]
    turns_are_taken: Check,
    #[is(Check::new("slots_take_each_setup"))]
    setup_is_taken: Check,
    #[is(Check::new("no_more_has_entered_than_there_are_places_for"))]
    has_room: Check,
    #[is(Check::new("what_follows_of_a_multi_receive_is_heard"))]
    follow_is_heard: Check,
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
        Operation::RuleSet,
        Operation::RuleClear,
    ];

    /// For the pairs and endpoints of a card.
    pub(super) fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(pairs = self.pair_count.val().index())]
impl Logic for Admit {
    fn update(&mut self) {
        self.initialized.next = self.pairs.initialized.val() & self.named.initialized.val();
        self.stand_still();
        self.hear_control();
        self.remember();
        self.offer_control();
        self.look_for_slot();
        self.offer_message();
        self.offer_request();
        self.look_up();
        self.prepare_message();
        self.prepare_request();
        self.prepare_walk();
        self.choose();
        self.look_for_rule();
        self.ask_for_message();
        self.ask_for_request();
        self.enter();
        self.fail();
        self.govern();
        self.walk_on();
        self.count();
        self.tell_tables();
    }
}
