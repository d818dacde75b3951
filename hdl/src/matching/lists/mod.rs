//! Both lists: posted receives and unexpected messages, and the operations on them.
//!
//! ```text
//!                       ┌► (issue) ► Exact ─────────► result ─┐
//! command ─► front ─────┤  (masks of the classes)             ├─► decide ─► reply
//!            (classes,  ├► Associative ──────────────────────┤
//!             quotas)   └► Unexpected ────────────────────────┘
//! ```
//!
//! A command goes one of three ways, and replies come in the order of the commands:
//!
//! - *Exact*: an arrival for an endpoint with receives on the exact side, or a post for an endpoint that no message waits
//!   for. Commands follow each other as fast as the exact side takes them: a look-up a cycle.
//! - *Associative*: an arrival for an endpoint that has nothing on the exact side: one a cycle.
//! - *Alone*: everything else. The command begins when all before it have ended, and none behind it begins before it has
//!   ended. Searches of several sides run at the same time, and ages decide between them.
//!
//! **Both sides.** An arrival on the exact way whose endpoint also has receives on the associative side searches that side
//! when it sets out, long before it is decided. If that finds nothing, as is usual, the arrival is *clear*; if it finds a
//! receive, the choice is *kept* for the arrival. The next arrival may set out three cycles later, a cycle before this is
//! known: if a choice is kept then, the search of an arrival that set out in either of these two cycles is dropped, and
//! that arrival searches again before it is decided. No other search of the associative side begins until the kept choice
//! is decided.
//!
//! **Timing.** Nothing that moves many registers waits for a comparison: the front goes, and the exact side moves on, by
//! registers that say a cycle early whether they may. A receive stands in the front for two cycles, so that its class is
//! known when it goes. What the front knows of its endpoint may still count a receive or a message that left a few cycles
//! ago; it never lacks one that came. What a command takes of quota and class, and what it asks of the unexpected
//! messages, follows a cycle after it went, from copies of the front. A result that needs no comparison (`quick`) settles
//! in the cycle in which it comes, any other a cycle after it was decided.
//!
//! **Overflow.** A receive both of whose places on the exact side are full is appended to the associative side when it is
//! decided. No arrival under way is clear from then on: each searches the associative side again before it is decided.
//!
//! **Append.** An arrival that is to wait if it finds no receive is answered when it is decided, and its message goes to the
//! unexpected side from a queue. Arrivals don't wait for that. What posts a receive or looks at the messages goes when no
//! arrival is left that appends, or may yet do so.
//!
//! The kernel's sections:
//!
//! | file | idea |
//! |---|---|
//! | `admit` | whether the offered command is taken |
//! | `front` | the command in `front`, and what is known of its endpoint |
//! | `weigh` | class and quota of a receive |
//! | `way` | whether the command in `front` goes, and which way |
//! | `issue` | look-ups leave for the exact side |
//! | `search` | searches of the associative side |
//! | `alone` | the operation that is alone, and the unexpected side |
//! | `append` | messages that found no receive, on their way to the unexpected side |
//! | `tags` | what is remembered of each command under way |
//! | `decide` | the result is decided |
//! | `steps` | what takes several cycles after its result |
//! | `settle` | what the exact side is told, and what may go next |
//! | `reply` | the reply |
//! | `monitor`, `checks` | pins for a monitor; claims |

mod admit;
mod alone;
mod append;
mod checks;
mod decide;
mod front;
mod issue;
mod monitor;
mod reply;
mod search;
mod settle;
mod steps;
mod tags;
mod way;
mod weigh;

use super::associative::Associative;
use super::classes::{ClassKey, ClassView, Classes};
use super::exact::Exact;
use super::quota::Quota;
use super::rows::UnexpectedRows;
use crate::config::Config;
use crate::prelude::*;
use crate::prim::{Duty, Fifo, Lowest, Ram};
use crate::types::{ExactResult, Lookup, MatchCommand, MatchReply, PlaceUnit};

/// Operations under way at most, by their tags.
const TAGS: usize = 16;

/// How far the associative side has come for an operation of the exact way that turned out to need it.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Step {
    /// Nothing of the kind.
    Run,
    /// Whether it does is looked up; if so, the associative side takes the key.
    Doubt,
    /// All entries compare.
    Search,
    /// What agreed is joined.
    Join,
    /// The oldest is chosen.
    Select,
    /// Its number is found.
    Number,
    /// The memory is asked for its age.
    Recall,
    /// It is compared with that of the result of the exact side.
    Compare,
    /// The older one wins.
    Decide,
    /// Quotas settle.
    Settle,
    /// The receive is appended, or refused.
    Append,
}

/// A message that goes to the unexpected side.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct NewMessage {
    endpoint: Bits<8>,
    pair: Bits<16>,
    slot: Bits<6>,
    context_id: Bits<16>,
    match_bits: Bits<64>,
}

/// So many appending arrivals may be pending when a command is taken.
const PENDING: u64 = 8;

/// Most that can be: one more is taken in the cycle in which the limit is reached, one stands in `front`, and two have gone without
/// being counted.
const QUEUE: usize = PENDING as usize + 3;

/// The engine.
#[block(config: &Config)]
pub struct Lists {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset: both lists are empty.
    pub reset: Signal<In, Bit>,
    /// The memories are cleared.
    pub initialized: Signal<Out, Bit>,
    /// Key of the hashes. May change only while no receive is posted and nothing is under way.
    pub seed: Signal<In, Bits<128>>,
    /// What to do.
    pub command: Stream<In, MatchCommand>,
    /// What came of it.
    pub reply: Pulse<Out, MatchReply>,
    /// A unit of places that a pair gets, or that it has none any more. No message of the pair waits, nor does anything that names it look at messages.
    pub unit: Pulse<In, PlaceUnit>,
    /// Live posted receives.
    pub posted_depth: Signal<Out, Bits<16>>,
    /// Live unexpected messages.
    pub unexpected_depth: Signal<Out, Bits<16>>,
    /// Number of the operation in `command`, for the monitor pins.
    pub operation: Signal<Out, Bits<4>>,
    /// A pulse: both places of a receive were full.
    pub count_overflows: Signal<Out, Bit>,

    #[is(Classes::new(config.endpoints))]
    classes: Classes,
    #[is(Quota::new(config.endpoints, config.exact, config.reserved_exact()))]
    quota: Quota,
    #[is(Exact::new(config.exact, config.rows, config.row_ways))]
    exact: Exact,
    #[is(Associative::new(config.posted, config.endpoints, config.pairs, config.reserved_posted()))]
    associative: Associative,
    #[is(UnexpectedRows::new(config.endpoints, config.pairs, config.unexpected, config.comparators))]
    unexpected: UnexpectedRows,
    /// Commands on the exact way, by tag.
    #[is(Ram::new(TAGS))]
    held: Ram<MatchCommand>,
    #[is(Ram::new(TAGS))]
    held_age: Ram<Bits<54>>,

    front_valid: Reg<Bit>,
    /// The opposite of `front_valid`: what drives hundreds of registers has a flip-flop of its own.
    #[is(Reg::new(true))]
    vacant: Reg<Bit>,
    front: Reg<MatchCommand>,
    /// The endpoint of `front`, one bit set.
    front_bit: Reg<Bits<32>>,
    // The operation in `front`, zero while there is none: an arrival, a post, one that asks the unexpected side, a cancel, or a walk over all receives of a pair or an endpoint.
    front_arrives: Reg<Bit>,
    front_posts: Reg<Bit>,
    front_asks: Reg<Bit>,
    front_direct: Reg<Bit>,
    /// What is known of the endpoint in `front` is older than its last change.
    stale: Reg<Bit>,
    /// The classes of the endpoint in `front` were read in the previous cycle.
    fresh: Reg<Bit>,
    /// Classes of the endpoint in `front` that have receives, or had them a few cycles ago.
    front_live: Reg<Bits<4>>,
    /// The endpoint in `front` has receives on the associative side, or had them a few cycles ago.
    front_associative: Reg<Bit>,
    /// Messages wait for the endpoint in `front`, or did so a few cycles ago.
    front_unexpected: Reg<Bit>,
    /// `front` is a receive in its second cycle or later there: the four registers that follow are of it, as of the previous cycle.
    weighed: Reg<Bit>,
    /// The class of the receive in `front`, one bit set; none if it has to learn one.
    has_class: Reg<Bits<4>>,
    /// The class that the receive in `front` would learn, one bit set; none if all are in use.
    free_class: Reg<Bits<4>>,
    /// The endpoint of the receive in `front` has room on the exact side.
    has_room: Reg<Bit>,
    /// It has room there, and a class that the receive could learn.
    free_room: Reg<Bit>,
    /// A receive went to the exact side in the previous cycle; `issue_command` is that receive.
    taking: Reg<Bit>,
    /// With `taking`: the receive's endpoint, one bit set.
    taking_bit: Reg<Bits<32>>,
    /// With `taking`: the receive's class, one bit set.
    taking_class: Reg<Bits<4>>,
    /// With `taking`: the receive learns that class.
    learning: Reg<Bit>,
    /// A receive left the exact side in the previous cycle.
    giving: Reg<Bit>,
    /// With `giving`: the receive's class.
    giving_class: Reg<Bits<6>>,
    /// With `giving`: the receive's endpoint, one bit set.
    giving_bit: Reg<Bits<32>>,
    /// A receive left the exact side in one of the last two cycles, so that the receive in `front` may fit although it didn't.
    gave: Reg<Bit>,
    tag: Reg<Bits<4>>,
    /// All commands under way are of one endpoint.
    one_endpoint: Reg<Bit>,
    /// The endpoint of the last command that was taken; valid when it has left `front`.
    last_endpoint: Reg<Bits<4>>,
    // All commands under way go this way, or would by what was known when they were taken.
    on_associative_way: Reg<Bit>,
    on_exact_way: Reg<Bit>,
    /// Age of the command in `front`. It rises a cycle after a command went, so an arrival just behind a receive may have
    /// the receive's age; no two entries that are appended have the same.
    age: Reg<Bits<54>>,
    /// A command left `front` in the previous cycle.
    went: Reg<Bit>,
    // A bit an endpoint, as of the previous cycle: it has no live classes; a receive of it may go the exact way if it has a class.
    no_class: Reg<Bits<32>>,
    unhindered: Reg<Bits<32>>,
    /// The memories are cleared.
    open: Reg<Bit>,
    /// They are, and there is room for the message of what may be taken.
    admits: Reg<Bit>,

    /// Messages that go to the unexpected side.
    #[is(Fifo::new(QUEUE))]
    messages: Fifo<NewMessage>,
    /// An arrival that appends went in the previous cycle.
    appending: Reg<Bit>,
    /// Arrivals that append, and aren't decided yet; and their messages in the queue.
    pending: Reg<Bits<4>>,
    /// There was none of either in the previous cycle, and the unexpected side got no message: `front` knows of all that wait.
    calm: Reg<Bit>,

    issue_valid: Reg<Bit>,
    /// The opposite of `issue_valid`.
    #[is(Reg::new(true))]
    issue_empty: Reg<Bit>,
    // The command in `issue`: its tag, whether its first look-up is still to leave, and whether it is a receive.
    issue_tag: Reg<Bits<4>>,
    issue_first: Reg<Bit>,
    issue_posts: Reg<Bit>,
    issue_command: Reg<MatchCommand>,
    /// Classes of the endpoint of the command in `issue`.
    issue_view: Reg<ClassView>,
    /// Classes in which the command in `issue` is still to be looked up.
    issue_todo: Reg<Bits<4>>,

    // An arrival of the associative way is compared in this cycle, joined, chosen, found, answered (its entry's number is known).
    sole: Reg<Bit>,
    sole_joined: Reg<Bit>,
    sole_chosen: Reg<Bit>,
    sole_found: Reg<Bit>,
    sole_ends: Reg<Bit>,
    /// With `sole_ends`: a receive was found.
    sole_hit: Reg<Bit>,
    // Their tags, but that of the one that is answered.
    sole_tag: Reg<Bits<4>>,
    sole_joined_tag: Reg<Bits<4>>,
    sole_chosen_tag: Reg<Bits<4>>,
    sole_found_tag: Reg<Bits<4>>,

    // The same for an arrival of the exact way whose endpoint has receives on both sides. `both_tag` is the tag of the last
    // such arrival that set out, `found_tag` of the last whose search has ended.
    both: Reg<Bit>,
    both_joined: Reg<Bit>,
    both_chosen: Reg<Bit>,
    both_found: Reg<Bit>,
    both_tag: Reg<Bits<4>>,
    found_tag: Reg<Bits<4>>,
    /// In the previous cycle it was decided that the associative side's choice is removed.
    removing: Reg<Bit>,
    /// With `removing`: a message matched, so a multi-receive stays.
    removing_for_message: Reg<Bit>,
    /// With `removing`: by a cancel.
    removing_cancelled: Reg<Bit>,
    /// The associative side's choice is kept for the arrival of `found_tag`.
    kept: Reg<Bit>,
    /// A bit a tag: the associative side has nothing for that operation.
    clear: Reg<Bits<16>>,
    /// The operation of the exact side's result is clear.
    result_clear: Reg<Bit>,

    /// An operation is alone: the one in `solo`.
    alone: Reg<Bit>,
    /// The exact side works for the operation in `solo`.
    looking: Reg<Bit>,
    /// The unexpected messages are being searched for the operation in `solo`.
    searching: Reg<Bit>,
    /// The operation in `solo` searches the unexpected messages, or has searched them.
    has_searched: Reg<Bit>,
    /// The operation in `solo` begins its search of the unexpected messages.
    begins: Reg<Bit>,
    // The operation in `solo` takes whatever is of its pair; at its place only; it takes nothing.
    solo_by_pair: Reg<Bit>,
    solo_by_place: Reg<Bit>,
    solo_probes: Reg<Bit>,
    solo: Reg<MatchCommand>,
    solo_age: Reg<Bits<54>>,
    /// The operation in `solo` is a receive.
    solo_posts: Reg<Bit>,
    step: Reg<Step>,

    // What may go in this cycle.
    /// Nothing is under way on the exact side.
    #[is(Reg::new(true))]
    exact_free: Reg<Bit>,
    /// No operation is alone, in `issue` or on the associative way, apart from one that is answered in this cycle.
    way_free: Reg<Bit>,
    /// No choice is kept on the associative side, and no search under way may still be kept, apart from one whose result comes
    /// in this cycle or the next: if that finds something, the search that has set out meanwhile is dropped.
    side_free: Reg<Bit>,

    // What is being decided in this cycle.
    /// The exact side's result is decided in the cycle in which it comes.
    quick: Reg<Bit>,
    /// The exact side gets in this cycle the commit or discard that was decided in the previous one.
    late: Reg<Bit>,
    late_commit: Reg<Bit>,
    late_discard: Reg<Bit>,
    /// The associative side's choice is kept for the operation of the exact side's result.
    result_kept: Reg<Bit>,
    /// The endpoint of the previous cycle's result has receives on the associative side.
    tainted: Reg<Bit>,
    /// In the previous cycle the associative side's choice was older than the exact side's result.
    was_older: Reg<Bit>,
    /// The associative side had room for the receive in `solo` in the previous cycle.
    room: Reg<Bit>,
    /// A message is being decided slowly.
    slowly: Reg<Bit>,

    answered: Reg<Bit>,
    answer: Reg<MatchReply>,

    /// With `taking`: the receive's endpoint, one of 16.
    taking_endpoint: Signal<Local, Bits<8>>,
    /// The receive in `front` goes.
    post_goes: Signal<Local, Bit>,
    result: Signal<Local, ExactResult>,
    result_valid: Signal<Local, Bit>,
    /// The unexpected side has found a message for the operation in `solo`.
    searched: Signal<Local, Bit>,
    searched_index: Signal<Local, Bits<16>>,
    equal: Signal<Local, Bits<4>>,
    unlearnt: Signal<Local, Bits<4>>,
    idle: Signal<Local, Bits<4>>,
    chosen: Signal<Local, Bits<4>>,
    first_unlearnt: Lowest<4>,
    first_idle: Lowest<4>,
    room_for_it: Signal<Local, Bit>,
    /// The exact side has a number and a class for the receive in `front`.
    fits: Signal<Local, Bit>,
    /// With `fits`: that class, one bit set.
    fit_class: Signal<Local, Bits<4>>,
    /// With `fits`: the receive has to learn it.
    fit_learns: Signal<Local, Bit>,
    /// Nothing is under way except the command in `front`, and no message goes to the unexpected side.
    rests: Signal<Local, Bit>,
    // The command in `front` goes, and which way.
    goes_sole: Signal<Local, Bit>,
    goes_exact: Signal<Local, Bit>,
    /// The receive in `front` goes if it `fits`.
    goes_if_fits: Signal<Local, Bit>,
    /// Nothing else is under way, and the receive in `front` could begin its search of the unexpected messages.
    may_ask: Signal<Local, Bit>,
    /// The receive in `front` goes alone.
    posts_alone: Signal<Local, Bit>,
    /// The command in `front` goes alone to the unexpected side.
    asks: Signal<Local, Bit>,
    /// The command in `front` goes alone, in its first cycle there if nothing is under way.
    goes_first: Signal<Local, Bit>,
    /// The cancel or walk in `front` goes alone, to both posted sides.
    goes_direct: Signal<Local, Bit>,
    /// The endpoint of the last command that was taken.
    latest_endpoint: Signal<Local, Bits<4>>,
    /// The endpoint of the command that is offered; and one bit set for it.
    next_endpoint: Signal<Local, Bits<4>>,
    next_bit: Signal<Local, Bits<32>>,
    /// The command that is offered is of the endpoint of the last one.
    same_endpoint: Signal<Local, Bit>,
    /// The command that is offered is an arrival; or a receive.
    comes_arrival: Signal<Local, Bit>,
    comes_receive: Signal<Local, Bit>,
    /// The offered command's endpoint has no class with receives; it may post without asking the unexpected side.
    comes_classless: Signal<Local, Bit>,
    comes_unhindered: Signal<Local, Bit>,
    // Which way the offered command would go, by what was known in the previous cycle.
    comes_associative: Signal<Local, Bit>,
    comes_exact: Signal<Local, Bit>,
    /// The offered command is taken.
    enters: Signal<Local, Bit>,
    /// The offered command would go the way of all that are under way.
    follows: Signal<Local, Bit>,
    /// The offered command is taken as soon as the front moves.
    comes: Signal<Local, Bit>,
    empty: Signal<Local, Bit>,
    admitted: Signal<Local, Bit>,
    go: Signal<Local, Bit>,
    /// What comes doesn't wait for another endpoint's.
    may_come: Signal<Local, Bit>,
    goes_alone: Signal<Local, Bit>,
    initialized_now: Signal<Local, Bit>,
    slow_search: Signal<Local, Bit>,
    append: Signal<Local, Bit>,
    /// A receive is appended to the associative side: arrivals under way may match it and have to search there.
    none_is_clear: Signal<Local, Bit>,
    remove: Signal<Local, Bit>,
    /// An arrival is still decided slowly in the next cycle: with a search of the associative side.
    slow: Signal<Local, Bit>,
    /// The command that the associative side compares.
    probed: Signal<Local, MatchCommand>,
    takes: Signal<Local, Bit>,
    /// The message at the head of the queue; and whether the unexpected side takes it.
    message: Signal<Local, NewMessage>,
    hands_over: Signal<Local, Bit>,
    // An arrival is decided that appends if it has found nothing; whether it has.
    resolves: Signal<Local, Bit>,
    finds: Signal<Local, Bit>,
    matched: Signal<Local, Bit>,
    unmatched: Signal<Local, Bit>,
    // `pending` with what went, and without what was decided.
    counted: Signal<Local, Bits<4>>,
    unresolved: Signal<Local, Bits<4>>,
    to_issue: Signal<Local, Bit>,
    /// The look-up that leaves is a receive's; and it is the first of its operation.
    asks_post: Signal<Local, Bit>,
    asks_first: Signal<Local, Bit>,
    /// The command of the look-up that leaves.
    asker: Signal<Local, MatchCommand>,
    /// The classes of that command's endpoint.
    asks_in: Signal<Local, ClassView>,
    /// The classes in which that command is still to be looked up.
    todo: Signal<Local, Bits<4>>,
    first_todo: Signal<Local, Bits<4>>,
    todo_class: Signal<Local, Bits<2>>,
    /// There are more after the first.
    more_todo: Signal<Local, Bit>,
    // The same of the arrival in `front`, and of the command in `issue`.
    first_live: Lowest<4>,
    first_kept: Lowest<4>,
    several_live: Signal<Local, Bit>,
    several_kept: Signal<Local, Bit>,
    class_id: Signal<Local, Bits<6>>,
    source: Signal<Local, Bits<11>>,
    match_bits: Signal<Local, Bits<64>>,
    // The keys of the command in `front`, and of that in `issue`.
    front_key: ClassKey,
    issue_key: ClassKey,
    lookup: Signal<Local, Lookup>,
    lookup_valid: Signal<Local, Bit>,
    // The associative side's choice is older than the exact side's result: as compared, as a test may force it, and as it is used.
    precedes: Signal<Local, Bit>,
    older: Signal<Local, Bit>,
    rival_older: Signal<Local, Bit>,
    /// The associative side works for the operation in `solo`.
    probes: Signal<Local, Bit>,
    /// No receive is being appended to the associative side, and no arrival is decided slowly.
    runs: Signal<Local, Bit>,
    /// The reply is the associative side's choice.
    of_rival: Signal<Local, Bit>,
    /// The reply is the unexpected side's.
    of_search: Signal<Local, Bit>,
    /// The exact side has a result that isn't decided yet.
    told: Signal<Local, Bit>,
    /// With `told`: the result is an arrival's for which the associative side's answer isn't known yet.
    doubts: Signal<Local, Bit>,
    /// The receive in `solo` has found a message, and isn't posted.
    yields: Signal<Local, Bit>,
    /// With `told`: the result is of a cancel or a walk, which are alone.
    takes_alone: Signal<Local, Bit>,
    /// The operation in `solo` has the unexpected side's answer, and the exact side doesn't work for it.
    searched_alone: Signal<Local, Bit>,
    /// That answer is its reply.
    search_answers: Signal<Local, Bit>,
    /// The receive in `solo` is appended to the associative side, or refused.
    appends: Signal<Local, Bit>,
    decided: Signal<Local, Bit>,
    /// The exact side removes what it found, or appends the receive.
    accepts: Signal<Local, Bit>,
    /// The associative side's choice wins over the exact side's result.
    rival_wins: Signal<Local, Bit>,
    next_clear: Signal<Local, Bit>,
    commit: Signal<Local, Bit>,
    /// The exact side's result is a receive's.
    posts: Signal<Local, Bit>,
    // Next values of registers, from which others follow.
    next_step: Signal<Local, Step>,
    next_alone: Signal<Local, Bit>,
    alone_ends: Signal<Local, Bit>,
    next_kept: Signal<Local, Bit>,
    /// What the associative side has found is kept from the next cycle on.
    keeps_found: Signal<Local, Bit>,
    /// The search that set out in the previous cycle is dropped.
    drops: Signal<Local, Bit>,
    next_both: Signal<Local, Bit>,
    next_sole: Signal<Local, Bit>,
    /// `issue` holds look-ups that wait to leave, in the next cycle.
    keeps: Signal<Local, Bit>,
    /// `front` takes the offered command, if it comes.
    front_moves: Signal<Local, Bit>,
    /// The same for the wide registers, as a net of its own.
    front_loads: Signal<Local, Bit>,
    /// There is a command in `front` in the next cycle.
    front_fills: Signal<Local, Bit>,
    /// Classes of the offered command's endpoint that have receives.
    comes_live: Signal<Local, Bits<4>>,
    /// A class is learnt.
    learns: Signal<Local, Bit>,
    /// In the next cycle no operation is alone or decided slowly, and no decision of this cycle is late.
    swift: Signal<Local, Bit>,
    will_be_quick: Signal<Local, Bit>,
    quick_commit: Signal<Local, Bit>,
    discard: Signal<Local, Bit>,
    gives: Signal<Local, Bit>,
    associative_search: Signal<Local, Bit>,
    found_associative: Signal<Local, Bits<16>>,
    searches_both: Signal<Local, Bit>,
    newly_clear: Signal<Local, Bits<16>>,
    tag_bit: Signal<Local, Bits<16>>,
    best_tag_bit: Signal<Local, Bits<16>>,
    next_tag: Signal<Local, Bits<4>>,
    found_tag_bit: Signal<Local, Bits<16>>,
    key_bit: Signal<Local, Bits<32>>,
    overflow: Signal<Local, Bit>,
    replying: Signal<Local, Bit>,
    under_way: Reg<Bits<8>>,
    /// The seed of the previous cycle.
    last_seed: Reg<Bits<128>>,

    #[is(constant(config.exact as u64))]
    exact_entries: Constant<Bits<16>>,
    /// Match bits that are compared.
    #[is(constant(config.match_mask()))]
    match_mask: Constant<Bits<64>>,

    #[is(Check::new("one_result_at_a_time"))]
    one_at_a_time: Check,
    commands_name_what_there_is: Duty,
    copies_agree: Check,
    #[is(Check::new("quick_decisions_are_right"))]
    quick_is_right: Check,
    #[is(Check::new("age_of_a_kept_choice_was_compared"))]
    kept_age_was_compared: Check,
    replies_to_commands: Check,
    seed_changes_while_empty: Duty,
    one_command_is_read: Check,
    messages_have_room: Check,
    messages_come_alone: Check,
    pending_are_counted: Check,
    #[is(constant(config.endpoints as u64))]
    endpoints: Constant<Bits<8>>,
}

impl Lists {
    /// The lists of a configuration.
    ///
    /// # Panics
    /// If a size is beyond what its side can have.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(endpoints = self.endpoints.val().index(), exact = self.exact_entries.val().index())]
impl Logic for Lists {
    fn update(&mut self) {
        self.exact.seed.next = self.seed.val();
        self.initialized_now.next =
            self.exact.initialized.val() & self.unexpected.initialized.val();
        self.open.d.next = self.initialized_now.val();
        self.initialized.next = self.open.q.val();
        // The command in `front`, and the look-ups that it makes.
        self.weigh();
        self.hear();
        self.look_up();
        self.compare();
        self.choose_way();
        self.search();
        self.hand_over();
        self.stand_alone();
        self.remember();
        self.leave();
        // The command that is offered.
        self.admit();
        self.number();
        self.take();
        self.load();
        self.count_in();
        // The result of the exact side, and the search of another.
        self.decide();
        self.make_reply();
        self.append_message();
        self.go_on();
        self.end_alone();
        self.judge();
        self.ask();
        self.settle();
        self.open_ways();
        self.check_decisions();
        self.give();
        // Outside.
        self.send_reply();
        self.monitor();
        self.check_replies();
    }
}
