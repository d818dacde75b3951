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

use super::associative::{Associative, AssociativeSearch};
use super::classes::{ClassKey, ClassView, Classes};
use super::exact::Exact;
use super::quota::Quota;
use super::rows::UnexpectedRows;
use crate::config::Config;
use crate::prelude::*;
use crate::prim::{Duty, Ram};
use crate::types::{ExactResult, Lookup, MatchCommand, MatchReply, Operation, Search};

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
    #[is(Exact::new(config.exact, config.rows))]
    exact: Exact,
    #[is(Associative::new(config.posted, config.endpoints, config.pairs, config.reserved_posted()))]
    associative: Associative,
    #[is(UnexpectedRows::new(config.endpoints, config.pairs, config.comparators))]
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
    // The operation in `front`, zero while there is none: an arrival, a post, one that asks the unexpected side (an insertion
    // is one of these), a cancel, or a walk over all receives of a pair or an endpoint.
    front_arrives: Reg<Bit>,
    front_posts: Reg<Bit>,
    front_asks: Reg<Bit>,
    front_inserts: Reg<Bit>,
    front_cancels: Reg<Bit>,
    front_walks: Reg<Bit>,
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
    // The operation in `solo` begins its search, or its insertion, on the unexpected side.
    begins: Reg<Bit>,
    inserts: Reg<Bit>,
    // The operation in `solo` takes whatever is of its pair; it takes nothing.
    solo_by_pair: Reg<Bit>,
    solo_probes: Reg<Bit>,
    solo: Reg<MatchCommand>,
    solo_age: Reg<Bits<54>>,
    /// The operation in `solo` is a receive.
    solo_posts: Reg<Bit>,
    /// The operation in `solo` is the insertion of a message.
    solo_inserts: Reg<Bit>,
    step: Reg<Step>,
    /// A walk over the receives of a pair or an endpoint may go on where the last one ended.
    resumes: Reg<Bit>,
    /// The command that was in `front` in the previous cycle is the same walk as the last one.
    same_walk: Reg<Bit>,
    /// `front` holds a walk, and held it in the previous cycle.
    lingers: Reg<Bit>,
    // The last walk: its operation, pair and endpoint.
    walked: Reg<Operation>,
    walked_pair: Reg<Bits<16>>,
    walked_endpoint: Reg<Bits<8>>,

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
    first_unlearnt: Signal<Local, Bits<4>>,
    first_idle: Signal<Local, Bits<4>>,
    room_for_it: Signal<Local, Bit>,
    /// The exact side has a number and a class for the receive in `front`.
    fits: Signal<Local, Bit>,
    /// With `fits`: that class, one bit set.
    fit_class: Signal<Local, Bits<4>>,
    /// With `fits`: the receive has to learn it.
    fit_learns: Signal<Local, Bit>,
    /// Nothing is under way except the command in `front`.
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
    first_live: Signal<Local, Bits<4>>,
    first_kept: Signal<Local, Bits<4>>,
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
    /// `front` is a cancel or a walk.
    front_direct: Signal<Local, Bit>,
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

        // ---------------------------------------------------------------- what the front sees
        self.classes.endpoint_bit.next = self.front_bit.q.val();
        // The class of a receive: the one that it has, or the first that isn't in use.
        self.equal.next = 0.into();
        self.equal.next = self.equal.val().replace_bit(
            0,
            self.classes.read.val().ignore0 == self.front.q.val().ignore_bits,
        );
        self.equal.next = self.equal.val().replace_bit(
            1,
            self.classes.read.val().ignore1 == self.front.q.val().ignore_bits,
        );
        self.equal.next = self.equal.val().replace_bit(
            2,
            self.classes.read.val().ignore2 == self.front.q.val().ignore_bits,
        );
        self.equal.next = self.equal.val().replace_bit(
            3,
            self.classes.read.val().ignore3 == self.front.q.val().ignore_bits,
        );
        self.chosen.next =
            self.equal.val() & self.classes.read.val().learnt & !self.classes.read.val().any_source;
        if self.front.q.val().any_source {
            self.chosen.next = self.equal.val()
                & self.classes.read.val().learnt
                & self.classes.read.val().any_source;
        }
        // The class is found in the cycle after the masks were read, and stays.
        if self.fresh.q.val() {
            self.has_class.d.next = self.chosen.val();
        }
        self.unlearnt.next = !self.classes.view.val().learnt;
        self.idle.next = !self.classes.live.val();
        // The lowest bit of each: one below which none is set.
        self.first_unlearnt.next = self.unlearnt.val()
            & !((self.unlearnt.val() << 1)
                | (self.unlearnt.val() << 2)
                | (self.unlearnt.val() << 3));
        self.first_idle.next = self.idle.val()
            & !((self.idle.val() << 1) | (self.idle.val() << 2) | (self.idle.val() << 3));
        self.free_class.d.next = self.first_idle.val();
        if self.unlearnt.val().any() {
            self.free_class.d.next = self.first_unlearnt.val();
        }
        // The receive that went in the previous cycle isn't counted yet.
        self.quota.endpoint.next = self.front.q.val().endpoint;
        self.room_for_it.next =
            self.quota.room.val() & (self.quota.ample.val() | !self.taking.q.val());
        self.has_room.d.next = self.room_for_it.val();
        self.free_room.d.next =
            self.room_for_it.val() & (self.unlearnt.val().any() | self.idle.val().any());
        self.fit_learns.next = !self.has_class.q.val().any();
        self.fit_class.next = self.has_class.q.val();
        if self.fit_learns.val() {
            self.fit_class.next = self.free_class.q.val();
        }
        self.fits.next =
            self.free_room.q.val() | (self.has_room.q.val() & self.has_class.q.val().any());
        self.rests.next = self.way_free.q.val() & self.exact_free.q.val();
        self.front_direct.next = self.front_cancels.q.val() | self.front_walks.q.val();
        // Only the same walk may go on where the last one ended.
        self.same_walk.d.next = (self.walked.q.val() == self.front.q.val().operation)
            & (self.walked_pair.q.val() == self.front.q.val().pair)
            & (self.walked_endpoint.q.val() == self.front.q.val().endpoint);

        // ---------------------------------------------------------------- the result of the exact side
        self.result.next = self.exact.result.data.val();
        self.result_valid.next = self.exact.result.valid.val() & !self.late.q.val();
        // The command is read of the result that may come in the next cycle.
        self.next_tag.next = self.exact.best_tag.val();
        if self.exact.stays.val() {
            self.next_tag.next = self.exact.end_tag.val();
        }
        self.held.read_address.next = bit_cast::<16, 4>(self.next_tag.val());
        self.held_age.read_address.next = bit_cast::<16, 4>(self.next_tag.val());
        self.posts.next = self.exact.posts.val();

        // ---------------------------------------------------------------- issue
        // The first look-up of an operation leaves from `front`, or from `issue` if the exact side wasn't ready for it; the others
        // leave from `issue`. What a look-up says follows from registers; only its `valid` waits for whether `front` goes.
        self.first_live.next = self.front_live.q.val()
            & !((self.front_live.q.val() << 1)
                | (self.front_live.q.val() << 2)
                | (self.front_live.q.val() << 3));
        self.several_live.next = (self.front_live.q.val() & !self.first_live.val()).any();
        self.first_kept.next = self.issue_todo.q.val()
            & !((self.issue_todo.q.val() << 1)
                | (self.issue_todo.q.val() << 2)
                | (self.issue_todo.q.val() << 3));
        self.several_kept.next = (self.issue_todo.q.val() & !self.first_kept.val()).any();
        self.asks_post.next = self.front_posts.q.val();
        self.asks_first.next = true;
        self.asker.next = self.front.q.val();
        self.asks_in.next = self.classes.view.val();
        self.todo.next = self.front_live.q.val();
        self.first_todo.next = self.first_live.val();
        self.more_todo.next = self.several_live.val();
        if self.front_posts.q.val() {
            self.todo.next = self.fit_class.val();
            self.first_todo.next = self.fit_class.val();
            self.more_todo.next = false;
        }
        if self.issue_valid.q.val() {
            self.asker.next = self.issue_command.q.val();
            self.asks_in.next = self.issue_view.q.val();
        }
        if !self.issue_empty.q.val() {
            self.asks_post.next = self.issue_posts.q.val();
            self.asks_first.next = self.issue_first.q.val();
            self.todo.next = self.issue_todo.q.val();
            self.first_todo.next = self.first_kept.val();
            self.more_todo.next = self.several_kept.val();
        }
        self.todo_class.next = 0.into();
        if self.first_todo.val().get_bit(1) | self.first_todo.val().get_bit(3) {
            self.todo_class.next = 1.into();
        }
        if self.first_todo.val().get_bit(2) | self.first_todo.val().get_bit(3) {
            self.todo_class.next = self.todo_class.val() | 2;
        }
        // Both keys are made, so that the choice between `front` and `issue` comes last.
        self.front_key.view.next = self.classes.view.val();
        self.front_key.live.next = self.front_live.q.val();
        self.front_key.posts.next = self.front_posts.q.val();
        self.front_key.pair.next = self.front.q.val().pair;
        self.front_key.match_bits.next = self.front.q.val().match_bits;
        self.front_key.ignore_bits.next = self.front.q.val().ignore_bits;
        self.front_key.any_source.next = self.front.q.val().any_source;
        self.issue_key.view.next = self.issue_view.q.val();
        self.issue_key.live.next = self.issue_todo.q.val();
        self.issue_key.posts.next = self.issue_posts.q.val();
        self.issue_key.pair.next = self.issue_command.q.val().pair;
        self.issue_key.match_bits.next = self.issue_command.q.val().match_bits;
        self.issue_key.ignore_bits.next = self.issue_command.q.val().ignore_bits;
        self.issue_key.any_source.next = self.issue_command.q.val().any_source;
        self.source.next = self.front_key.source.val();
        self.match_bits.next = self.front_key.bits.val();
        if self.issue_valid.q.val() {
            self.source.next = self.issue_key.source.val();
            self.match_bits.next = self.issue_key.bits.val();
        }
        self.class_id.next = (bit_cast::<6, 8>(self.asker.val().endpoint) << 2)
            | bit_cast::<6, 2>(self.todo_class.val());
        self.lookup.next = Lookup::default();
        self.lookup.next.search = Search::Arrive;
        self.lookup.next.tag = self.tag.q.val();
        self.lookup.next.first = self.asks_first.val();
        self.lookup.next.last = !self.more_todo.val();
        self.lookup.next.endpoint = self.asker.val().endpoint;
        self.lookup.next.request = self.asker.val().request;
        self.lookup.next.pair = self.asker.val().pair;
        self.lookup.next.key = bit_cast::<97, 64>(self.match_bits.val())
            | (bit_cast::<97, 16>(self.asker.val().context) << 64)
            | (bit_cast::<97, 11>(self.source.val()) << 80)
            | (bit_cast::<97, 6>(self.class_id.val()) << 91);
        if self.asks_post.val() {
            self.lookup.next.search = Search::Post;
        }
        if !self.issue_empty.q.val() {
            self.lookup.next.tag = self.issue_tag.q.val();
        } else if self.front_direct.val() {
            self.lookup.next.first =
                self.front_cancels.q.val() | !(self.resumes.q.val() & self.same_walk.q.val());
            self.lookup.next.last = true;
            self.lookup.next.search = Search::Cancel;
            if self.front.q.val().operation == Operation::TakePostedOfPair {
                self.lookup.next.search = Search::OfPair;
            }
            if self.front.q.val().operation == Operation::TakePostedOfEndpoint {
                self.lookup.next.search = Search::OfEndpoint;
            }
        }
        self.exact.lookup.data.next = self.lookup.val();
        self.issue_command.d.next = self.asker.val();
        self.issue_view.d.next = self.asks_in.val();
        self.issue_posts.d.next = self.asks_post.val();
        self.issue_first.d.next = self.asks_first.val() & !self.exact.lookup.ready.val();
        if self.issue_empty.q.val() {
            self.issue_tag.d.next = self.tag.q.val();
        }
        self.issue_todo.d.next = self.todo.val();
        if self.exact.lookup.ready.val() {
            self.issue_todo.d.next = self.todo.val() & !self.first_todo.val();
        }

        // ---------------------------------------------------------------- front
        // What the associative side compares follows from the operation; whether it searches at all is known later.
        self.associative.by.next = AssociativeSearch::Envelope;
        match self.front.q.val().operation {
            Operation::Cancel => {
                self.associative.by.next = AssociativeSearch::Request;
            }
            Operation::TakePostedOfPair => {
                self.associative.by.next = AssociativeSearch::Pair;
            }
            Operation::TakePostedOfEndpoint => {
                self.associative.by.next = AssociativeSearch::Endpoint;
            }
            _ => {}
        }
        // An operation that is alone, or decided slowly, has the associative side to itself.
        self.probes.next = self.alone.q.val() | self.slowly.q.val();
        if self.probes.val() {
            self.associative.by.next = AssociativeSearch::Envelope;
        }
        // Whether the command goes, and which way, is a few levels of logic from registers, since all that follows waits for it.
        // `front_arrives` to `front_walks` are valid without `front_valid`: zero while there is no command.
        self.goes_sole.next = self.front_arrives.q.val()
            & !self.stale.q.val()
            & !self.front_live.q.val().any()
            & self.exact_free.q.val()
            & !self.alone.q.val();
        self.goes_exact.next = self.front_arrives.q.val()
            & !self.stale.q.val()
            & self.front_live.q.val().any()
            & self.way_free.q.val()
            & (!self.front_associative.q.val() | self.side_free.q.val());
        // A receive that no message waits for may follow what is under way. One for which the exact side has no room goes when
        // no receive can be about to leave that side.
        self.may_ask.next = self.weighed.q.val()
            & self.rests.val()
            & (self.unexpected.ready.val() | !self.front_unexpected.q.val());
        self.goes_if_fits.next = self.weighed.q.val()
            & self.way_free.q.val()
            & (!self.front_unexpected.q.val()
                | (self.exact_free.q.val() & self.unexpected.ready.val()));
        self.takes.next = self.fits.val() & self.goes_if_fits.val();
        self.posts_alone.next = self.may_ask.val()
            & ((self.fits.val() & self.front_unexpected.q.val())
                | (!self.fits.val() & !self.gave.q.val()));
        self.asks.next = self.front_asks.q.val()
            & !self.stale.q.val()
            & self.rests.val()
            & self.unexpected.ready.val();
        self.goes_direct.next = self.rests.val()
            & ((self.front_cancels.q.val() & !self.stale.q.val()) | self.lingers.q.val());
        // Whether it goes, for all ways together.
        self.goes_first.next = !self.stale.q.val()
            & (self.front_cancels.q.val()
                | (self.front_asks.q.val() & self.unexpected.ready.val()));
        // Whether the receive fits is known last.
        self.post_goes.next = (self.may_ask.val() & !self.gave.q.val()) | self.takes.val();
        self.go.next = self.goes_sole.val()
            | self.goes_exact.val()
            | self.post_goes.val()
            | ((self.goes_first.val() | self.lingers.q.val()) & self.rests.val());
        self.goes_alone.next = self.posts_alone.val() | self.asks.val() | self.goes_direct.val();
        self.to_issue.next = self.goes_exact.val() | self.takes.val();
        self.searches_both.next = self.goes_exact.val() & self.front_associative.q.val();
        self.associative_search.next =
            self.goes_sole.val() | self.searches_both.val() | self.goes_direct.val();
        self.next_step.next = self.step.q.val();
        self.next_kept.next = self.kept.q.val();
        self.next_sole.next = self.goes_sole.val();
        self.sole_joined.d.next = self.sole.q.val();
        self.sole_chosen.d.next = self.sole_joined.q.val();
        self.sole_found.d.next = self.sole_chosen.q.val();
        self.sole_ends.d.next = self.sole_found.q.val();
        self.sole_hit.d.next = self.sole_found.q.val() & self.associative.found.val();
        self.keeps_found.next = self.both_found.q.val()
            & self.associative.found.val()
            & (self.step.q.val() == Step::Run);
        self.next_both.next = self.searches_both.val();
        // The search of the previous cycle, if another one finds something in this cycle or did so before.
        self.drops.next = self.both.q.val() & (self.keeps_found.val() | self.kept.q.val());
        self.both_joined.d.next = self.both.q.val() & !self.drops.val();
        self.both_chosen.d.next = self.both_joined.q.val();
        self.both_found.d.next = self.both_chosen.q.val();
        if self.searches_both.val() {
            self.both_tag.d.next = self.tag.q.val();
        }
        // Copied, since the next arrival may set out before this one is decided.
        if self.both_chosen.q.val() {
            self.found_tag.d.next = self.both_tag.q.val();
        }
        // An operation that is alone stands in `solo`. As long as none is, `solo` copies `front`, or while the exact side has a
        // result, when nothing goes alone, the command of that. The unexpected side is asked from here, a cycle after `front` went.
        if !self.alone.q.val() & (self.step.q.val() == Step::Run) {
            self.solo.d.next = self.front.q.val();
            self.solo_age.d.next = self.age.q.val();
            self.solo_posts.d.next = self.front_posts.q.val();
            self.solo_inserts.d.next = self.front_inserts.q.val();
            if self.exact.result.valid.val() {
                self.solo.d.next = self.held.read_data.val();
                self.solo_age.d.next = self.held_age.read_data.val();
                self.solo_posts.d.next = self.posts.val();
                self.solo_inserts.d.next = false;
            }
            self.solo_by_pair.d.next =
                self.front.q.val().operation == Operation::TakeUnexpectedOfPair;
            self.solo_probes.d.next = self.front.q.val().operation == Operation::Probe;
            self.looking.d.next =
                self.front_direct.val() | (self.front_posts.q.val() & self.fits.val());
            self.searching.d.next = (self.front_asks.q.val() & !self.front_inserts.q.val())
                | (self.front_posts.q.val() & self.front_unexpected.q.val());
            self.has_searched.d.next = self.front_asks.q.val() | self.front_unexpected.q.val();
        }
        if self.alone.q.val() & self.looking.q.val() {
            self.walked.d.next = self.solo.q.val().operation;
            self.walked_pair.d.next = self.solo.q.val().pair;
            self.walked_endpoint.d.next = self.solo.q.val().endpoint;
        }
        self.begins.d.next = (self.asks.val() & !self.front_inserts.q.val())
            | (self.posts_alone.val() & self.front_unexpected.q.val());
        self.inserts.d.next = self.asks.val() & self.front_inserts.q.val();
        self.unexpected.insert.next = self.inserts.q.val();
        self.unexpected.search.next = self.begins.q.val();
        self.unexpected.by_pair.next = self.solo_by_pair.q.val();
        self.unexpected.remove.next = !self.solo_probes.q.val();
        self.unexpected.endpoint.next = self.solo.q.val().endpoint;
        self.unexpected.pair.next = self.solo.q.val().pair;
        self.unexpected.any_source.next = self.solo.q.val().any_source;
        self.unexpected.context_id.next = self.solo.q.val().context;
        self.unexpected.match_bits.next = self.solo.q.val().match_bits;
        self.unexpected.ignore_bits.next = self.solo.q.val().ignore_bits;
        self.unexpected.slot.next = self.solo.q.val().slot;
        self.unexpected.age.next = self.solo_age.q.val();
        self.tag_bit.next = bits::<16>(1) << self.tag.q.val();
        self.found_tag_bit.next = bits::<16>(1) << self.found_tag.q.val();
        self.newly_clear.next = 0.into();
        if self.both_found.q.val() & !self.associative.found.val() {
            self.newly_clear.next = self.found_tag_bit.val();
        }
        if self.keeps_found.val() {
            self.next_kept.next = true;
        }
        // No operation has the tag of `front` until that goes, so its bit may be written in every cycle.
        self.clear.d.next = (self.clear.q.val() | self.newly_clear.val()) & !self.tag_bit.val();
        if self.front_posts.q.val() | !self.front_associative.q.val() {
            self.clear.d.next = self.clear.q.val() | self.newly_clear.val() | self.tag_bit.val();
        }
        self.held.write_enable.next = true;
        self.held.write_address.next = bit_cast::<16, 4>(self.tag.q.val());
        self.held.write_data.next = self.front.q.val();
        self.held_age.write_enable.next = true;
        self.held_age.write_address.next = bit_cast::<16, 4>(self.tag.q.val());
        self.held_age.write_data.next = self.age.q.val();
        self.lookup_valid.next = !self.issue_empty.q.val() | self.to_issue.val();
        self.keeps.next =
            self.lookup_valid.val() & (self.more_todo.val() | !self.exact.lookup.ready.val());
        self.issue_valid.d.next = self.keeps.val();
        self.issue_empty.d.next = !self.keeps.val();
        self.exact.lookup.valid.next = self.lookup_valid.val() | self.goes_direct.val();
        self.exact_free.d.next =
            !self.exact.remains.val() & !self.lookup_valid.val() & !self.goes_direct.val();

        // A command is taken at once if it will not wait for another endpoint's: when nothing is under way, when all commands under
        // way are of its endpoint, or when it goes the same way as they. Its way is judged by what was known in the previous cycle,
        // and a receive's as if it had a class. A wrong guess costs time only: the receive waits in `front` until all under way
        // has ended.
        self.no_class.d.next = !self.classes.any_live.val();
        self.unhindered.d.next = self.quota.roomy.val() & !self.unexpected.waiting.val();
        // Four bits name an endpoint: `commands_name_what_there_is`.
        self.next_endpoint.next = self.command.data.val().endpoint.get_bits::<4>(0);
        self.next_bit.next = bits::<32>(1) << self.next_endpoint.val();
        self.comes_arrival.next = self.command.data.val().operation == Operation::Arrive;
        self.comes_receive.next = self.command.data.val().operation == Operation::Post;
        self.comes_classless.next = (self.no_class.q.val() >> self.next_endpoint.val()).get_bit(0);
        self.comes_unhindered.next =
            (self.unhindered.q.val() >> self.next_endpoint.val()).get_bit(0);
        self.latest_endpoint.next = self.last_endpoint.q.val();
        if self.front_valid.q.val() {
            self.latest_endpoint.next = self.front.q.val().endpoint.get_bits::<4>(0);
        }
        self.last_endpoint.d.next = self.latest_endpoint.val();
        self.same_endpoint.next = self.next_endpoint.val() == self.latest_endpoint.val();
        self.comes_associative.next = self.comes_arrival.val() & self.comes_classless.val();
        self.comes_exact.next = (self.comes_arrival.val() & !self.comes_classless.val())
            | (self.comes_receive.val() & self.comes_unhindered.val());
        self.follows.next = (self.on_associative_way.q.val() & self.comes_associative.val())
            | (self.on_exact_way.q.val() & self.comes_exact.val());
        self.empty.next = self.rests.val() & !self.front_valid.q.val();
        self.admitted.next = self.empty.val()
            | (self.one_endpoint.q.val() & self.same_endpoint.val())
            | self.follows.val();
        self.front_moves.next = !self.front_valid.q.val() | self.go.val();
        self.front_loads.next = self.vacant.q.val() | self.go.val();
        self.may_come.next = self.open.q.val() & self.admitted.val();
        self.comes.next = self.may_come.val() & self.command.valid.val();
        self.command.ready.next = self.may_come.val() & self.front_moves.val();
        if self.go.val() {
            self.tag.d.next = self.tag.q.val() + 1;
        }
        self.went.d.next = self.go.val();
        if self.went.q.val() {
            self.age.d.next = self.age.q.val() + 1;
            self.resumes.d.next = false;
        }
        // Quota and class are taken a cycle after the receive went. A class that it learns shows two cycles after that.
        self.learns.next = self.takes.val() & self.fit_learns.val();
        self.taking.d.next = self.takes.val();
        self.taking_bit.d.next = self.front_bit.q.val();
        self.taking_class.d.next = self.fit_class.val();
        self.learning.d.next = self.learns.val();
        self.taking_endpoint.next = self.issue_command.q.val().endpoint & 15;
        self.classes.take_endpoint.next = self.taking_endpoint.val();
        self.classes.take_bit.next = self.taking_bit.q.val();
        self.classes.take.next = self.taking.q.val();
        self.classes.take_class.next = self.taking_class.q.val();
        self.classes.learn.next = self.learning.q.val();
        self.classes.learn_ignore.next = self.issue_command.q.val().ignore_bits;
        self.classes.learn_any.next = self.issue_command.q.val().any_source;
        self.quota.take.next = self.taking.q.val();
        self.quota.take_bit.next = self.taking_bit.q.val();
        self.front_fills.next = self.front_valid.q.val();
        if self.front_moves.val() {
            self.front_fills.next = self.comes.val();
        }
        self.front_valid.d.next = self.front_fills.val();
        self.vacant.d.next = !self.front_fills.val();
        self.stale.d.next = self.learns.val() | self.learning.q.val();
        self.weighed.d.next =
            self.front_posts.q.val() & !self.stale.q.val() & !self.post_goes.val();
        self.lingers.d.next = self.front_walks.q.val()
            & !self.stale.q.val()
            & !(self.lingers.q.val() & self.rests.val());
        // Which endpoint's classes are read doesn't wait for whether the offered command is taken.
        self.classes.next_endpoint.next = self.command.data.val().endpoint;
        if self.front_valid.q.val() & self.stale.q.val() {
            self.classes.next_endpoint.next = self.front.q.val().endpoint;
        }
        self.fresh.d.next = self.stale.q.val() | self.front_moves.val();
        self.classes.reads.next = self.stale.q.val() | self.front_loads.val();
        self.classes.fresh.next = self.fresh.q.val();
        // So is all else that `front` has to know. A receive or message that leaves meanwhile may show late; one that comes, comes
        // through `front` itself, except a receive that is appended to the associative side.
        self.classes.next_bit.next = self.next_bit.val();
        self.comes_live.next = self.classes.next_live.val();
        if self.weighed.q.val()
            & self.fits.val()
            & (self.next_endpoint.val() == self.front.q.val().endpoint.get_bits::<4>(0))
        {
            self.comes_live.next = self.classes.next_live.val() | self.fit_class.val();
        }
        self.front_live.d.next = self.classes.live.val();
        self.front_associative.d.next =
            (self.associative.waiting.val() & self.front_bit.q.val()).any();
        self.front_unexpected.d.next =
            (self.unexpected.waiting.val() & self.front_bit.q.val()).any();
        if self.front_moves.val() {
            self.front_live.d.next = self.comes_live.val();
            self.front_associative.d.next =
                (self.associative.waiting.val() & self.next_bit.val()).any();
            self.front_unexpected.d.next =
                (self.unexpected.waiting.val() & self.next_bit.val()).any();
        }
        if self.front_loads.val() {
            self.front_bit.d.next = self.next_bit.val();
            self.front.d.next = self.command.data.val();
            // Match bits that aren't compared are zero from here on, and cost no logic.
            self.front.d.next.match_bits =
                self.command.data.val().match_bits & self.match_mask.val();
            self.front.d.next.ignore_bits =
                self.command.data.val().ignore_bits & self.match_mask.val();
            self.front_arrives.d.next = false;
            self.front_posts.d.next = false;
            self.front_asks.d.next = false;
            self.front_inserts.d.next = false;
            self.front_cancels.d.next = false;
            self.front_walks.d.next = false;
            if self.comes.val() {
                match self.command.data.val().operation {
                    Operation::Arrive => {
                        self.front_arrives.d.next = true;
                    }
                    Operation::Post => {
                        self.front_posts.d.next = true;
                    }
                    Operation::Insert => {
                        self.front_asks.d.next = true;
                        self.front_inserts.d.next = true;
                    }
                    Operation::Probe => {
                        self.front_asks.d.next = true;
                    }
                    Operation::Claim => {
                        self.front_asks.d.next = true;
                    }
                    Operation::TakeUnexpectedOfPair => {
                        self.front_asks.d.next = true;
                    }
                    Operation::Cancel => {
                        self.front_cancels.d.next = true;
                    }
                    _ => {
                        self.front_walks.d.next = true;
                    }
                }
            }
        }
        // What holds of all under way, the command that enters included: as products, so that no enable waits for `enters`.
        self.enters.next = self.comes.val() & self.front_moves.val();
        self.one_endpoint.d.next = (self.enters.val() & self.empty.val())
            | (self.enters.val() & self.one_endpoint.q.val() & self.same_endpoint.val())
            | (!self.enters.val() & self.one_endpoint.q.val());
        self.on_associative_way.d.next = (self.enters.val()
            & self.comes_associative.val()
            & (self.empty.val() | self.on_associative_way.q.val()))
            | (!self.enters.val() & self.on_associative_way.q.val());
        self.on_exact_way.d.next = (self.enters.val()
            & self.comes_exact.val()
            & (self.empty.val() | self.on_exact_way.q.val()))
            | (!self.enters.val() & self.on_exact_way.q.val());

        // ---------------------------------------------------------------- decide
        // First what is decided; then the reply, and what is done next.
        self.slow_search.next = false;
        self.append.next = false;
        self.found_associative.next = self.exact_entries.val() + self.associative.index.val();
        self.key_bit.next = bits::<32>(1) << self.held.read_data.val().endpoint;
        self.tainted.d.next = (self.associative.waiting.val() & self.key_bit.val()).any();
        self.precedes.next =
            self.associative.age_out.val() < bit_cast::<54, 53>(self.result.val().age);
        self.older.next = self.precedes.val();
        self.was_older.d.next = self.older.val();
        self.runs.next = self.step.q.val() == Step::Run;
        // The exact side has compared the age of the kept choice on the way.
        self.rival_older.next = self.was_older.q.val();
        if self.runs.val() {
            self.rival_older.next = self.result.val().rival_older;
        }
        if self.unexpected.ends.val() {
            self.searching.d.next = false;
        }
        self.searched.next = self.has_searched.q.val() & self.unexpected.found.val();
        self.searched_index.next = self.unexpected.index.val();
        self.told.next = self.result_valid.val() & self.runs.val();
        // A result is decided: a receive's, unless messages are still searched for it; a cancel's or a walk's; an arrival's, when
        // the associative side's answer for it is known.
        self.decided.next = (self.step.q.val() == Step::Decide)
            | ((self.step.q.val() == Step::Doubt) & !self.tainted.q.val());
        if self.told.val() {
            self.decided.next =
                self.alone.q.val() | self.result_clear.q.val() | self.result_kept.q.val();
            if self.posts.val() {
                self.decided.next = !(self.alone.q.val() & self.searching.q.val());
            }
        }
        // A receive that has found a message is not posted.
        self.yields.next = self.alone.q.val() & self.searched.val();
        self.rival_wins.next = (self.result_kept.q.val() | (self.step.q.val() == Step::Decide))
            & self.associative.found.val()
            & (!self.result.val().found | self.rival_older.val());
        self.accepts.next = self.result.val().found & !self.rival_wins.val();
        if self.posts.val() {
            self.accepts.next = self.result.val().room & !self.yields.val();
        }
        self.commit.next = self.decided.val() & self.accepts.val();
        self.discard.next = self.decided.val() & !self.accepts.val();
        self.overflow.next = self.told.val()
            & self.posts.val()
            & !(self.alone.q.val() & self.searching.q.val())
            & !self.result.val().room
            & !self.yields.val();
        self.doubts.next = self.told.val()
            & !self.alone.q.val()
            & !self.posts.val()
            & !self.result_clear.q.val()
            & !self.result_kept.q.val();
        self.gives.next = self.discard.val();
        if !self.posts.val() {
            self.gives.next = self.commit.val() & (self.alone.q.val() | !self.result.val().multi);
        }
        self.takes_alone.next = self.told.val() & !self.posts.val() & self.alone.q.val();
        self.remove.next =
            (self.takes_alone.val() & !self.result.val().found & self.associative.found.val())
                | (self.decided.val() & self.rival_wins.val());
        if self.takes_alone.val() {
            self.resumes.d.next = self.result.val().found | self.associative.found.val();
        }
        self.searched_alone.next =
            self.runs.val() & self.alone.q.val() & !self.looking.q.val() & !self.searching.q.val();
        self.appends.next = self.step.q.val() == Step::Append;
        self.append.next = self.appends.val() & self.room.q.val();
        self.replying.next = self.sole_ends.q.val()
            | self.appends.val()
            | (self.decided.val()
                & (!self.posts.val() | self.result.val().room | self.yields.val()));
        // An insertion is answered a cycle later, so that `front` knows of the message before the next command goes.
        self.search_answers.next = self.searched_alone.val()
            & (self.searched.val() | !self.solo_posts.q.val())
            & !self.inserts.q.val();
        if self.search_answers.val() {
            self.replying.next = true;
        }

        // The reply's fields are made in every cycle, and count in a cycle with `replying`.
        self.of_rival.next = self.sole_ends.q.val()
            | self.rival_wins.val()
            | (self.alone.q.val()
                & self.looking.q.val()
                & !self.posts.val()
                & !self.result.val().found);
        self.of_search.next =
            self.alone.q.val() & (!self.looking.q.val() | (self.posts.val() & self.searched.val()));
        self.answer.d.next = MatchReply::default();
        // While an arrival of the associative way is answered, `associative.found` is that of the arrival behind it.
        self.answer.d.next.found = self.sole_hit.q.val()
            | (self.of_rival.val() & !self.sole_ends.q.val() & self.associative.found.val());
        self.answer.d.next.index = bit_cast::<16, 14>(self.result.val().id);
        if self.of_rival.val() {
            self.answer.d.next.index = self.found_associative.val();
        } else if self.of_search.val() {
            self.answer.d.next.found = self.searched.val() & !self.solo_inserts.q.val();
            self.answer.d.next.index = self.searched_index.val();
            if self.solo_inserts.q.val() {
                self.answer.d.next.index =
                    (self.solo.q.val().pair << 4) | bit_cast::<16, 4>(self.solo.q.val().slot);
            }
        } else {
            self.answer.d.next.found = !self.posts.val() & self.result.val().found;
        }
        if self.appends.val() {
            self.answer.d.next.found = false;
            self.answer.d.next.full = !self.room.q.val();
            self.answer.d.next.index =
                self.exact_entries.val() + self.associative.place_index.val();
        }

        // A removal shows in `room` within three cycles, before any receive behind it is appended.
        self.room.d.next = self.associative.room.val();
        self.slow.next = false;
        match self.step.q.val() {
            Step::Run => {
                if self.alone.q.val() & !self.looking.q.val() & self.solo_posts.q.val() {
                    // After a search of the messages the quotas have settled.
                    if self.searched_alone.val() & !self.searched.val() {
                        self.next_step.next = Step::Settle;
                        if self.has_searched.q.val() {
                            self.next_step.next = Step::Append;
                        }
                    }
                }
                if self.overflow.val() {
                    // Both rows of the receive are full: it goes to the associative side.
                    self.next_step.next = Step::Settle;
                }
                if self.doubts.val() {
                    self.next_step.next = Step::Doubt;
                    self.slow.next = true;
                }
            }
            Step::Doubt => {
                if self.tainted.q.val() {
                    self.slow_search.next = true;
                    self.next_step.next = Step::Search;
                    self.slow.next = true;
                    self.next_kept.next = false;
                } else {
                    self.next_step.next = Step::Run;
                }
            }
            Step::Search => {
                self.next_step.next = Step::Join;
                self.slow.next = true;
            }
            Step::Join => {
                self.next_step.next = Step::Select;
                self.slow.next = true;
            }
            Step::Select => {
                self.next_step.next = Step::Number;
                self.slow.next = true;
            }
            Step::Number => {
                self.next_step.next = Step::Recall;
                self.slow.next = true;
            }
            Step::Recall => {
                self.next_step.next = Step::Compare;
                self.slow.next = true;
            }
            Step::Compare => {
                self.next_step.next = Step::Decide;
                self.slow.next = true;
            }
            Step::Decide => {
                self.next_step.next = Step::Run;
            }
            Step::Settle => {
                self.next_step.next = Step::Append;
            }
            Step::Append => {
                self.next_step.next = Step::Run;
            }
        }
        if self.decided.val() & self.result_kept.q.val() {
            self.next_kept.next = false;
        }
        // An operation is alone until it is answered: when it is appended, decided on the exact side, or searched for.
        self.alone_ends.next = self.appends.val()
            | (self.told.val()
                & !(self.posts.val()
                    & (self.searching.q.val() | !(self.result.val().room | self.searched.val()))))
            | self.search_answers.val();
        self.next_alone.next = self.goes_alone.val()
            | self.overflow.val()
            | (self.alone.q.val() & !self.alone_ends.val());
        if self.overflow.val() {
            self.looking.d.next = false;
        }
        self.best_tag_bit.next = bits::<16>(1) << self.exact.best_tag.val();
        self.next_clear.next = (self.clear.q.val() & self.best_tag_bit.val()).any();
        if self.exact.stays.val() {
            self.next_clear.next = self.result_clear.q.val();
        }
        if self.append.val() {
            self.stale.d.next = true;
            self.weighed.d.next = false;
            self.lingers.d.next = false;
        }
        self.none_is_clear.next = self.append.val();
        if self.none_is_clear.val() {
            self.next_clear.next = false;
            self.next_both.next = false;
            self.both_joined.d.next = false;
            self.both_chosen.d.next = false;
            self.both_found.d.next = false;
            self.next_kept.next = false;
            self.clear.d.next = 0.into();
        }
        self.result_clear.d.next = self.next_clear.val();
        self.associative.search.next = self.associative_search.val() | self.slow_search.val();
        self.associative.take.next = self.next_sole.val();
        self.associative.drop.next = self.drops.val();
        // An arrival of the associative way takes its receive at once, so that the next arrival doesn't find it. A receive that
        // wins by age is removed a cycle after the decision: no search sets out in between.
        self.removing.d.next = self.remove.val();
        self.removing_for_message.d.next = !self.alone.q.val();
        self.removing_cancelled.d.next =
            self.alone.q.val() & (self.solo.q.val().operation == Operation::Cancel);
        self.associative.remove.next = self.removing.q.val();
        self.associative.spare_multi.next = self.removing_for_message.q.val();
        self.associative.cancel.next = self.removing_cancelled.q.val();
        self.associative.insert.next = self.append.val();
        self.probed.next = self.front.q.val();
        if self.probes.val() {
            self.probed.next = self.solo.q.val();
        }
        self.associative.endpoint.next = self.probed.val().endpoint;
        // Only the receive in `solo` is appended, so `room` doesn't wait for the choice of `probed`.
        self.associative.insert_endpoint.next = self.solo.q.val().endpoint;
        self.associative.pair.next = self.probed.val().pair;
        self.associative.any_source.next = self.solo.q.val().any_source;
        self.associative.context_id.next = self.probed.val().context;
        self.associative.match_bits.next = self.probed.val().match_bits;
        self.associative.ignore_bits.next = self.solo.q.val().ignore_bits;
        self.associative.request.next = self.probed.val().request;
        self.associative.multi.next = self.solo.q.val().multi;
        self.associative.age.next = self.solo_age.q.val();
        self.exact.receive.next = self.held.read_data.val();
        self.exact.age.next = self.held_age.read_data.val();
        self.exact.rival_age.next = self.associative.age_out.val();
        self.swift.next = !self.alone.q.val()
            & (self.step.q.val() == Step::Run)
            & (!self.result_valid.val()
                | (self.quick.q.val() & (self.result.val().room | !self.posts.val())));
        // A receive that no message waits for, and a clear arrival, are decided from registers, early enough to move the exact side
        // in the same cycle. Any other decision reaches the exact side a cycle later.
        self.will_be_quick.next =
            self.exact.will_end.val() & self.swift.val() & self.next_clear.val();
        self.quick.d.next = self.will_be_quick.val();
        self.quick_commit.next = self.result.val().found;
        if self.posts.val() {
            self.quick_commit.next = self.result.val().room;
        }
        self.late.d.next = self.decided.val() & !self.quick.q.val();
        self.late_commit.d.next = self.commit.val() & !self.quick.q.val();
        self.late_discard.d.next = self.discard.val() & !self.quick.q.val();
        self.exact.will_settle.next = self.will_be_quick.val();
        self.exact.commit.next =
            (self.quick.q.val() & self.quick_commit.val()) | self.late_commit.q.val();
        self.exact.discard.next =
            (self.quick.q.val() & !self.quick_commit.val()) | self.late_discard.q.val();
        self.way_free.d.next = !self.next_alone.val()
            & !self.next_sole.val()
            & !self.sole.q.val()
            & !self.sole_joined.q.val()
            & !self.sole_chosen.q.val()
            & !self.keeps.val();
        self.slowly.d.next = self.slow.val();
        self.side_free.d.next =
            !self.next_both.val() & !self.both.q.val() & !self.next_kept.val() & !self.slow.val();
        self.step.d.next = self.next_step.val();
        self.alone.d.next = self.next_alone.val();
        self.kept.d.next = self.next_kept.val();
        self.result_kept.d.next =
            self.next_kept.val() & (self.found_tag.q.val() == self.next_tag.val());
        self.both.d.next = self.next_both.val();
        self.sole.d.next = self.next_sole.val();
        self.commands_name_what_there_is.ok.next =
            !self.enters.val() | (self.command.data.val().endpoint < self.endpoints.val());
        self.copies_agree.ok.next = (self.vacant.q.val() != self.front_valid.q.val())
            & (self.issue_empty.q.val() != self.issue_valid.q.val());
        // The exact side had the age of the kept choice in time to compare it.
        self.kept_age_was_compared.ok.next = !(self.told.val()
            & self.result_kept.q.val()
            & self.associative.found.val()
            & self.result.val().found)
            | (self.result.val().rival_older == self.precedes.val());
        self.quick_is_right.ok.next = !self.quick.q.val()
            | ((self.commit.val() == self.quick_commit.val())
                & (self.discard.val() != self.quick_commit.val()));
        // A receive that leaves is counted a cycle later; until then there seems to be less room than there is.
        self.giving.d.next = self.gives.val();
        self.giving_class.d.next = self.result.val().class;
        self.giving_bit.d.next = bits::<32>(1) << (self.result.val().class >> 2);
        self.gave.d.next = self.gives.val() | self.giving.q.val();
        self.classes.give.next = self.giving.q.val();
        self.classes.give_class.next = self.giving_class.q.val();
        self.quota.give.next = self.giving.q.val();
        self.quota.give_bit.next = self.giving_bit.q.val();
        self.count_overflows.next = self.overflow.val();
        self.answered.d.next = self.replying.val();
        self.reply.valid.next = self.answered.q.val();
        self.reply.data.next = self.answer.q.val();
        self.posted_depth.next = self.exact.depth.val() + self.associative.depth.val();
        self.unexpected_depth.next = self.unexpected.depth.val();

        self.operation.next = 0.into();
        match self.command.data.val().operation {
            Operation::Arrive => {}
            Operation::Insert => {
                self.operation.next = 1.into();
            }
            Operation::Post => {
                self.operation.next = 2.into();
            }
            Operation::Cancel => {
                self.operation.next = 3.into();
            }
            Operation::Probe => {
                self.operation.next = 4.into();
            }
            Operation::TakePostedOfPair => {
                self.operation.next = 5.into();
            }
            Operation::TakePostedOfEndpoint => {
                self.operation.next = 6.into();
            }
            Operation::TakeUnexpectedOfPair => {
                self.operation.next = 7.into();
            }
            Operation::Claim => {
                self.operation.next = 8.into();
            }
        }

        // ---------------------------------------------------------------- checks
        if self.enters.val() & !self.replying.val() {
            self.under_way.d.next = self.under_way.q.val() + 1;
        }
        if self.replying.val() & !self.enters.val() {
            self.under_way.d.next = self.under_way.q.val() - 1;
        }
        self.replies_to_commands.ok.next = !self.replying.val() | (self.under_way.q.val() != 0);
        self.one_at_a_time.ok.next =
            !self.sole_ends.q.val() | !(self.result_valid.val() | self.alone.q.val());
        // A receive stands where the old seed put it, and would be looked for where the new one says.
        self.last_seed.d.next = self.seed.val();
        self.seed_changes_while_empty.ok.next = (self.seed.val() == self.last_seed.q.val())
            | ((self.posted_depth.val() == 0) & (self.under_way.q.val() == 0));
    }
}
