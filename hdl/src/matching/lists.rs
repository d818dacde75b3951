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
//! - *Exact*: an arrival for an endpoint with receives on the exact side, or a post for one that no message waits for. They
//!   follow each other as fast as the exact side takes them: a look-up a cycle.
//! - *Associative*: an arrival for an endpoint that has nothing on the exact side: one a cycle.
//! - *Alone*: everything else. It begins when what came before has ended, and nothing begins before it has ended. Searches of
//!   several sides run at the same time, and ages decide between them.
//!
//! An arrival on the exact way whose endpoint has receives on the associative side too is looked up there when it sets
//! out, long before it is decided. Mostly that finds nothing, and the arrival is *clear*; if it finds something, the choice
//! is *kept* for it, and nobody else searches that side until it is decided.
//!
//! Nothing that moves many registers waits for a comparison: the front goes, and the exact side moves on, by registers that say a
//! cycle early whether it may. A receive stands in the front for two cycles, so that its class is known when it goes; what
//! is known there of its endpoint may be a few cycles older than the endpoint is, but only in what has gone, never in what has
//! come. A result that needs no comparison (`quick`) settles in the cycle in which it is there, any other a cycle after it was decided.
//!
//! A receive that the exact side can't take after all, because both of its places are full, is appended to the associative
//! side when its turn comes to be decided; whoever is behind it isn't clear any more, and looks there again before it is decided.

use super::Operation;
use super::associative::{Associative, AssociativeSearch};
use super::classes::{ClassView, Classes};
use super::exact::{Exact, Search};
use super::quota::Quota;
use super::rows::UnexpectedRows;
use crate::config::Config;
use crate::construct::{constant, construct};
use crate::prelude::*;
use crate::prim::{Duty, Ram};
use crate::types::{ExactResult, Lookup, MatchCommand, MatchReply};

/// Operations under way at most, by their tags.
const TAGS: usize = 16;

/// A contract to break, so that a test can show that its breach is seen. The input `mutation` is zero in a
/// card.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ListsMutation {
    /// An arrival doesn't see a receive that went to the associative side before its eyes.
    SkipTaint = 48,
    /// The exact side goes before the associative side whatever the ages.
    PreferExact = 49,
    /// A class with receives is learnt anew.
    LearnLive = 50,
    /// An arrival stays clear although a receive went to the associative side since.
    StayClear = 51,
}

impl ListsMutation {
    /// Every contract that can be broken.
    pub const BREACHES: [ListsMutation; 4] = [
        ListsMutation::SkipTaint,
        ListsMutation::PreferExact,
        ListsMutation::LearnLive,
        ListsMutation::StayClear,
    ];
}

/// How far the associative side has come for an operation of the exact way that turned out to need it.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Step {
    /// Nothing of the kind.
    Run,
    /// Whether it does is looked up.
    Doubt,
    /// All entries compare.
    Search,
    /// The oldest is chosen.
    Select,
    /// The memory is asked for its age.
    Recall,
    /// Its age is read.
    Age,
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
#[derive(LogicBlock)]
pub struct Lists {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset: both lists are empty.
    pub reset: Signal<In, Bit>,
    /// Contract to break, for tests; zero in a card. Numbers of `Mutation`, `ExactMutation`, and 64 more than
    /// those of `UnexpectedMutation`.
    pub mutation: Signal<In, Bits<8>>,
    /// The memories are cleared.
    pub initialized: Signal<Out, Bit>,
    /// Key of the hashes. May change only while no receive is posted and nothing is under way.
    pub seed: Signal<In, Bits<128>>,
    /// There is a command.
    pub command_valid: Signal<In, Bit>,
    /// It is taken.
    pub command_ready: Signal<Out, Bit>,
    /// What to do.
    pub command: Signal<In, MatchCommand>,
    /// A pulse, for each command in their order.
    pub reply_valid: Signal<Out, Bit>,
    /// What came of it.
    pub reply: Signal<Out, MatchReply>,
    /// Live posted receives.
    pub posted_depth: Signal<Out, Bits<16>>,
    /// Live unexpected messages.
    pub unexpected_depth: Signal<Out, Bits<16>>,
    /// Number of the operation in `command`, for the monitor pins.
    pub operation: Signal<Out, Bits<4>>,
    /// A pulse: both places of a receive were full.
    pub count_overflows: Signal<Out, Bit>,

    classes: Classes,
    quota: Quota,
    exact: Exact,
    associative: Associative,
    unexpected: UnexpectedRows,
    /// Commands on the exact way, by tag.
    held: Ram<MatchCommand>,
    held_age: Ram<Bits<54>>,

    front_valid: Reg<Bit>,
    front: Reg<MatchCommand>,
    /// What is known of the endpoint in front is older than the last change.
    stale: Reg<Bit>,
    /// Its classes are those that were read in the last cycle.
    fresh: Reg<Bit>,
    /// Its classes that have receives, or had them a little while ago.
    front_live: Reg<Bits<4>>,
    /// It has receives on the associative side; the same holds.
    front_associative: Reg<Bit>,
    /// Messages wait for it; the same holds.
    front_unexpected: Reg<Bit>,
    /// What follows is of the receive in front, as it was in the last cycle.
    weighed: Reg<Bit>,
    /// Its class, one bit set; none if it has to learn one.
    has_class: Reg<Bits<4>>,
    /// The class it would learn, one bit set; none if all are in use.
    free_class: Reg<Bits<4>>,
    /// Its endpoint has room on the exact side.
    has_room: Reg<Bit>,
    /// A receive of the exact side went in the last cycle.
    giving: Reg<Bit>,
    /// Of this class.
    giving_class: Reg<Bits<6>>,
    /// One went in one of the last cycles, so that what didn't fit may do so now.
    gave: Reg<Bits<2>>,
    tag: Reg<Bits<4>>,
    // All that is under way: of one endpoint, which, and the way it goes if that is the same.
    one_endpoint: Reg<Bit>,
    last_endpoint: Reg<Bits<8>>,
    way: Reg<Bits<2>>,
    age: Reg<Bits<54>>,

    issue_valid: Reg<Bit>,
    issue: Reg<Lookup>,
    issue_command: Reg<MatchCommand>,
    /// Classes of its endpoint.
    issue_view: Reg<ClassView>,
    /// Classes still to be looked up.
    issue_todo: Reg<Bits<4>>,

    // The associative way: chosen in this cycle, and found.
    selecting: Reg<Bit>,
    sole: Reg<Bit>,
    sole_found: Reg<Bit>,

    // The same for an arrival of the exact way, and its tag.
    both: Reg<Bit>,
    both_found: Reg<Bit>,
    both_tag: Reg<Bits<4>>,
    /// In the last cycle it was decided that what the associative side has chosen goes.
    removing: Reg<Bit>,
    /// For a message, which spares a receive that takes several.
    removing_for_message: Reg<Bit>,
    /// By a cancel.
    removing_cancelled: Reg<Bit>,
    /// What the associative side has chosen is that one's.
    kept: Reg<Bit>,
    /// Operations, by tag, for which the associative side has nothing.
    clear: Reg<Bits<16>>,
    /// The one whose result the exact side has now is one of them.
    result_clear: Reg<Bit>,

    /// An operation is alone.
    alone: Reg<Bit>,
    /// The exact side works for it.
    looking: Reg<Bit>,
    /// The unexpected messages are being searched for it.
    searching: Reg<Bit>,
    /// They have been, for a receive.
    has_searched: Reg<Bit>,
    searched: Reg<Bit>,
    searched_index: Reg<Bits<16>>,
    solo: Reg<MatchCommand>,
    solo_age: Reg<Bits<54>>,
    step: Reg<Step>,
    /// A search of a pair or an endpoint may go on where the last one ended.
    resumes: Reg<Bit>,

    answered: Reg<Bit>,
    answer: Reg<MatchReply>,

    result: Signal<Local, ExactResult>,
    result_valid: Signal<Local, Bit>,
    live: Signal<Local, Bits<4>>,
    equal: Signal<Local, Bits<4>>,
    unlearnt: Signal<Local, Bits<4>>,
    idle: Signal<Local, Bits<4>>,
    chosen: Signal<Local, Bits<4>>,
    unused: Signal<Local, Bits<4>>,
    minus_unused: Signal<Local, Bits<4>>,
    /// The exact side takes the receive in front.
    fits: Signal<Local, Bit>,
    /// In this class, one bit set.
    fit_class: Signal<Local, Bits<4>>,
    /// Which it has to learn.
    fit_learns: Signal<Local, Bit>,
    endpoint_bit: Signal<Local, Bits<32>>,
    waits_associative: Signal<Local, Bit>,
    waits_unexpected: Signal<Local, Bit>,
    drained: Signal<Local, Bit>,
    next_bit: Signal<Local, Bits<32>>,
    next_live: Signal<Local, Bit>,
    next_several: Signal<Local, Bit>,
    next_tight: Signal<Local, Bit>,
    next_way: Signal<Local, Bits<2>>,
    empty: Signal<Local, Bit>,
    admitted: Signal<Local, Bit>,
    go: Signal<Local, Bit>,
    goes_alone: Signal<Local, Bit>,
    initialized_now: Signal<Local, Bit>,
    slow_search: Signal<Local, Bit>,
    append: Signal<Local, Bit>,
    remove: Signal<Local, Bit>,
    entering: Signal<Local, Bit>,
    /// What the associative side compares.
    probed: Signal<Local, MatchCommand>,
    takes: Signal<Local, Bit>,
    ready: Signal<Local, Bit>,
    to_issue: Signal<Local, Bit>,
    /// It is a receive that is in front.
    front_posts: Signal<Local, Bit>,
    /// The look-up that leaves, but for its key.
    asked: Signal<Local, Lookup>,
    /// Its command.
    asker: Signal<Local, MatchCommand>,
    /// The classes of its endpoint.
    asks_in: Signal<Local, ClassView>,
    /// The classes in which it is still to be looked up.
    todo: Signal<Local, Bits<4>>,
    first_todo: Signal<Local, Bits<4>>,
    todo_class: Signal<Local, Bits<2>>,
    rest_todo: Signal<Local, Bits<4>>,
    minus_todo: Signal<Local, Bits<4>>,
    issue_any: Signal<Local, Bits<4>>,
    ignore: Signal<Local, Bits<64>>,
    class_any: Signal<Local, Bit>,
    class_id: Signal<Local, Bits<6>>,
    source: Signal<Local, Bits<11>>,
    match_bits: Signal<Local, Bits<64>>,
    lookup: Signal<Local, Lookup>,
    lookup_valid: Signal<Local, Bit>,
    direct: Signal<Local, Bit>,
    first: Signal<Local, Bit>,
    older: Signal<Local, Bit>,
    /// The exact side is told what was decided in the last cycle.
    late_commit: Reg<Bit>,
    late_discard: Reg<Bit>,
    rival_older: Signal<Local, Bit>,
    /// What the associative side has chosen is that of the operation whose result the exact side has.
    result_kept: Reg<Bit>,
    /// The endpoint of the last cycle's result has receives on the associative side.
    tainted: Reg<Bit>,
    /// The associative side works for the operation in `solo`.
    probes: Reg<Bit>,
    /// It had room for it in the last cycle.
    room: Reg<Bit>,
    /// What the associative side has chosen is older than the result of the exact side.
    was_older: Reg<Bit>,
    /// No receive is appended to the associative side, nor a message decided slowly.
    runs: Signal<Local, Bit>,
    /// The operation that is alone is a receive.
    solo_posts: Signal<Local, Bit>,
    /// The exact side has a result that isn't decided yet.
    told: Signal<Local, Bit>,
    /// If it is of a receive: one that has found a message.
    yields: Signal<Local, Bit>,
    /// It is of another operation that is alone.
    takes_alone: Signal<Local, Bit>,
    /// What is alone waits for nothing but, perhaps, room among the messages.
    searched_alone: Signal<Local, Bit>,
    /// The receive in `solo` is appended to the associative side, or refused.
    appends: Signal<Local, Bit>,
    decided: Signal<Local, Bit>,
    /// The exact side removes what it found, or appends the receive.
    accepts: Signal<Local, Bit>,
    /// What the associative side has chosen goes before the result of the exact side.
    rival_wins: Signal<Local, Bit>,
    next_clear: Signal<Local, Bit>,
    commit: Signal<Local, Bit>,
    /// The result is of a receive.
    posts: Signal<Local, Bit>,
    // Registers' next values, from which others follow.
    next_step: Signal<Local, Step>,
    next_alone: Signal<Local, Bit>,
    next_kept: Signal<Local, Bit>,
    next_both: Signal<Local, Bit>,
    next_sole: Signal<Local, Bit>,
    /// Look-ups wait to leave.
    keeps: Signal<Local, Bit>,
    /// The front takes what comes, if there is something.
    front_moves: Signal<Local, Bit>,
    /// In the next cycle no operation is alone or decided slowly, nor is one told late.
    swift: Signal<Local, Bit>,
    /// Nothing is alone, in `issue` or on the associative way.
    way_free: Reg<Bit>,
    /// Nothing is in `issue`.
    issue_free: Reg<Bit>,
    /// Nobody's choice stands on the associative side, or is about to.
    side_free: Reg<Bit>,
    /// The result is decided in the cycle in which it comes.
    quick: Reg<Bit>,
    will_be_quick: Signal<Local, Bit>,
    quick_commit: Signal<Local, Bit>,
    discard: Signal<Local, Bit>,
    gives: Signal<Local, Bit>,
    associative_search: Signal<Local, Bit>,
    same_walk: Signal<Local, Bit>,
    found_associative: Signal<Local, Bits<16>>,
    /// The associative side may be searched for an arrival of the exact way.
    may_search: Signal<Local, Bit>,
    searches_both: Signal<Local, Bit>,
    newly_clear: Signal<Local, Bits<16>>,
    tag_bit: Signal<Local, Bits<16>>,
    next_tag_bit: Signal<Local, Bits<16>>,
    found_tag_bit: Signal<Local, Bits<16>>,
    key_bit: Signal<Local, Bits<32>>,
    overflow: Signal<Local, Bit>,
    replying: Signal<Local, Bit>,
    under_way: Reg<Bits<8>>,
    /// The seed of the last cycle.
    last_seed: Reg<Bits<128>>,

    exact_entries: Constant<Bits<16>>,
    /// Match bits that are compared.
    match_mask: Constant<Bits<64>>,
    no_lookup: Constant<Lookup>,
    no_reply: Constant<MatchReply>,
    unexpected_mutations: Constant<Bits<8>>,
    exact_way: Constant<Bits<2>>,
    associative_way: Constant<Bits<2>>,
    alone_way: Constant<Bits<2>>,
    skip_taint: Constant<Bits<8>>,
    prefer_exact: Constant<Bits<8>>,
    learn_live: Constant<Bits<8>>,
    stay_clear: Constant<Bits<8>>,

    one_at_a_time: Check,
    quick_is_right: Check,
    replies_to_commands: Check,
    seed_changes_while_empty: Duty,
    _endpoints: usize,
}

impl Lists {
    /// The lists of a configuration.
    ///
    /// # Panics
    /// If a size is beyond what its side can have.
    pub fn new(config: &Config) -> Self {
        construct!({
            classes: Classes::new(config.endpoints),
            quota: Quota::new(config.endpoints, config.exact, config.reserved_exact()),
            exact: Exact::new(config.exact, config.rows),
            associative: Associative::new(config.posted, config.endpoints, config.pairs, config.reserved_posted()),
            unexpected: UnexpectedRows::new(config.endpoints, config.pairs, config.comparators),
            held: Ram::new(TAGS),
            held_age: Ram::new(TAGS),
            step: Reg::new(Step::Run),
            issue_free: Reg::new(true),
            exact_entries: Constant::new((config.exact as u64).into()),
            match_mask: Constant::new(config.match_mask().into()),
            no_lookup: Constant::new(Lookup::default()),
            no_reply: Constant::new(MatchReply::default()),
            unexpected_mutations: Constant::new(64u64.into()),
            exact_way: Constant::new(0u64.into()),
            associative_way: Constant::new(1u64.into()),
            alone_way: Constant::new(2u64.into()),
            skip_taint: constant(ListsMutation::SkipTaint as u64),
            prefer_exact: constant(ListsMutation::PreferExact as u64),
            learn_live: constant(ListsMutation::LearnLive as u64),
            stay_clear: constant(ListsMutation::StayClear as u64),
            one_at_a_time: Check::new("one_result_at_a_time"),
            quick_is_right: Check::new("quick_decisions_are_right"),
            replies_to_commands: Check::new("replies_to_commands"),
            seed_changes_while_empty: Duty::new("seed_changes_while_empty"),
            _endpoints: config.endpoints,
        } default {
            clock reset mutation initialized seed command_valid command_ready command reply_valid reply
            posted_depth unexpected_depth operation count_overflows
            front_valid front stale fresh front_live front_associative front_unexpected weighed has_class free_class has_room fits fit_class fit_learns giving giving_class gave removing removing_for_message removing_cancelled tag one_endpoint last_endpoint way age issue_valid issue issue_command issue_view issue_any
            issue_todo selecting sole sole_found both both_found both_tag kept clear result_clear alone looking
            searching has_searched searched searched_index solo solo_age resumes answered answer under_way last_seed
            result result_valid live equal unlearnt idle chosen unused minus_unused
            endpoint_bit waits_associative waits_unexpected drained next_bit next_live next_several next_tight next_way empty admitted go goes_alone initialized_now
            slow_search append remove entering probed takes ready to_issue
            front_posts asked asker asks_in todo first_todo todo_class rest_todo minus_todo ignore class_any class_id source match_bits
            lookup lookup_valid direct first older rival_older was_older late_commit late_discard posts next_step next_alone next_kept next_both next_sole keeps front_moves way_free side_free swift quick will_be_quick quick_commit runs solo_posts told yields takes_alone searched_alone appends rival_wins next_clear decided accepts commit discard gives associative_search
            same_walk found_associative result_kept tainted probes room may_search searches_both newly_clear tag_bit next_tag_bit found_tag_bit
            key_bit overflow replying
        })
    }
}

#[module(endpoints = self._endpoints, exact = self.exact_entries.val().index())]
impl Logic for Lists {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(
            self,
            clock,
            reset,
            front_valid,
            front,
            stale,
            fresh,
            front_live,
            front_associative,
            front_unexpected,
            weighed,
            has_class,
            free_class,
            has_room,
            giving,
            giving_class,
            gave,
            removing,
            removing_for_message,
            removing_cancelled,
            tag,
            one_endpoint,
            last_endpoint,
            way,
            age,
            issue_valid,
            issue,
            issue_command,
            issue_view,
            issue_todo,
            selecting,
            sole,
            sole_found,
            both,
            both_found,
            both_tag,
            kept,
            clear,
            result_clear,
            result_kept,
            tainted,
            probes,
            room,
            was_older,
            late_commit,
            late_discard,
            quick,
            way_free,
            issue_free,
            side_free,
            alone,
            looking,
            searching,
            has_searched,
            searched,
            searched_index,
            solo,
            solo_age,
            step,
            resumes,
            answered,
            answer,
            under_way,
            last_seed
        );
        clocked!(
            self,
            clock,
            reset,
            classes,
            quota,
            exact,
            associative,
            unexpected,
            one_at_a_time,
            quick_is_right,
            replies_to_commands,
            seed_changes_while_empty
        );
        clock!(self, clock, held, held_age);

        self.quota.mutation.next = self.mutation.val();
        self.exact.mutation.next = self.mutation.val();
        self.associative.mutation.next = self.mutation.val();
        self.unexpected.mutation.next = 0.into();
        if self.mutation.val() >= self.unexpected_mutations.val() {
            self.unexpected.mutation.next = self.mutation.val() - self.unexpected_mutations.val();
        }
        self.exact.seed.next = self.seed.val();
        self.initialized_now.next =
            self.exact.initialized.val() & self.unexpected.initialized.val();
        self.initialized.next = self.initialized_now.val();

        // ---------------------------------------------------------------- what the front sees
        self.endpoint_bit.next = bits::<32>(1) << self.front.q.val().endpoint;
        self.waits_associative.next = self.front_associative.q.val();
        self.waits_unexpected.next = self.front_unexpected.q.val();
        self.classes.endpoint.next = self.front.q.val().endpoint;
        self.live.next = self.front_live.q.val();
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
        // It is found from what has been read; afterwards it stays.
        if self.fresh.q.val() {
            self.has_class.d.next = self.chosen.val();
        }
        self.unlearnt.next = !self.classes.view.val().learnt;
        self.idle.next = !self.classes.live.val();
        if self.mutation.val() == self.learn_live.val() {
            self.idle.next = 15.into();
        }
        self.unused.next = self.unlearnt.val();
        if !self.unlearnt.val().any() {
            self.unused.next = self.idle.val();
        }
        // The lowest set bit of v is v & -v.
        self.minus_unused.next = !self.unused.val() + 1;
        self.free_class.d.next = self.unused.val() & self.minus_unused.val();
        self.has_room.d.next = self.quota.room.val();
        self.fit_learns.next = !self.has_class.q.val().any();
        self.fit_class.next = self.has_class.q.val();
        if self.fit_learns.val() {
            self.fit_class.next = self.free_class.q.val();
        }
        self.fits.next = self.has_room.q.val() & self.fit_class.val().any();
        self.quota.endpoint.next = self.front.q.val().endpoint;
        self.drained.next = self.way_free.q.val() & !self.exact.busy.val();
        // What the last operation left may be gone on with by the same one only.
        self.same_walk.next = self.resumes.q.val()
            & (self.solo.q.val().operation == self.front.q.val().operation)
            & (self.solo.q.val().pair == self.front.q.val().pair)
            & (self.solo.q.val().endpoint == self.front.q.val().endpoint);

        // ---------------------------------------------------------------- the result of the exact side
        self.result.next = self.exact.result.val();
        self.result_valid.next =
            self.exact.result_valid.val() & !self.late_commit.q.val() & !self.late_discard.q.val();
        self.held.read_address.next = bit_cast::<16, 4>(self.exact.next_tag.val());
        self.held_age.read_address.next = bit_cast::<16, 4>(self.exact.next_tag.val());
        self.posts.next = self.exact.posts.val();

        // ---------------------------------------------------------------- issue
        // The first look-up of an operation leaves from the front, or from `issue` if the exact side wasn't ready for it; the
        // others leave from there.
        self.front_posts.next = self.front.q.val().operation == Operation::Post;
        self.asked.next = self.no_lookup.val();
        self.asked.next.search = Search::Arrive;
        self.asked.next.tag = self.tag.q.val();
        self.asked.next.first = true;
        self.asked.next.endpoint = self.front.q.val().endpoint;
        self.asked.next.request = self.front.q.val().request;
        self.asked.next.pair = self.front.q.val().pair;
        self.todo.next = self.live.val();
        if self.front_posts.val() {
            self.asked.next.search = Search::Post;
            self.todo.next = self.fit_class.val();
        }
        self.asker.next = self.front.q.val();
        self.asks_in.next = self.classes.view.val();
        if self.issue_valid.q.val() {
            self.asked.next = self.issue.q.val();
            self.todo.next = self.issue_todo.q.val();
            self.asker.next = self.issue_command.q.val();
            self.asks_in.next = self.issue_view.q.val();
        }
        self.minus_todo.next = !self.todo.val() + 1;
        self.first_todo.next = self.todo.val() & self.minus_todo.val();
        self.rest_todo.next = self.todo.val() & !self.first_todo.val();
        self.issue_any.next = self.asks_in.val().any_source;
        self.todo_class.next = 0.into();
        self.ignore.next = self.asks_in.val().ignore0;
        self.class_any.next = self.issue_any.val().get_bit(0);
        if self.first_todo.val().get_bit(1) {
            self.todo_class.next = 1.into();
            self.ignore.next = self.asks_in.val().ignore1;
            self.class_any.next = self.issue_any.val().get_bit(1);
        }
        if self.first_todo.val().get_bit(2) {
            self.todo_class.next = 2.into();
            self.ignore.next = self.asks_in.val().ignore2;
            self.class_any.next = self.issue_any.val().get_bit(2);
        }
        if self.first_todo.val().get_bit(3) {
            self.todo_class.next = 3.into();
            self.ignore.next = self.asks_in.val().ignore3;
            self.class_any.next = self.issue_any.val().get_bit(3);
        }
        // A post knows what it ignores; its class may be learnt just now.
        if self.asked.val().search == Search::Post {
            self.ignore.next = self.asker.val().ignore_bits;
            self.class_any.next = self.asker.val().any_source;
        }
        self.class_id.next = (bit_cast::<6, 8>(self.asker.val().endpoint) << 2)
            | bit_cast::<6, 2>(self.todo_class.val());
        self.source.next = bit_cast::<11, 16>(self.asker.val().pair);
        if self.class_any.val() {
            self.source.next = 0.into();
        }
        self.match_bits.next = self.asker.val().match_bits & !self.ignore.val();
        self.lookup.next = self.asked.val();
        self.lookup.next.key = bit_cast::<97, 64>(self.match_bits.val())
            | (bit_cast::<97, 16>(self.asker.val().context) << 64)
            | (bit_cast::<97, 11>(self.source.val()) << 80)
            | (bit_cast::<97, 6>(self.class_id.val()) << 91);
        self.lookup.next.last = !self.rest_todo.val().any();
        self.issue.d.next = self.asked.val();
        self.issue_command.d.next = self.asker.val();
        self.issue_view.d.next = self.asks_in.val();
        self.issue_todo.d.next = self.todo.val();
        if self.exact.lookup_ready.val() {
            self.issue_todo.d.next = self.rest_todo.val();
            self.issue.d.next.first = false;
        }

        // ---------------------------------------------------------------- front
        self.next_step.next = self.step.q.val();
        self.next_alone.next = self.alone.q.val();
        self.next_kept.next = self.kept.q.val();
        self.go.next = false;
        self.goes_alone.next = false;
        self.to_issue.next = false;
        self.takes.next = false;
        self.direct.next = false;
        self.next_sole.next = false;
        self.sole_found.d.next = self.sole.q.val();
        self.next_both.next = false;
        self.both_found.d.next = self.both.q.val();
        self.searches_both.next = false;
        self.may_search.next = self.side_free.q.val();
        self.associative_search.next = false;
        // What is looked for follows from the operation; whether it is looked for at all is known later.
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
        if self.probes.q.val() {
            self.associative.by.next = AssociativeSearch::Envelope;
        }
        self.unexpected.insert.next = false;
        self.unexpected.search.next = false;
        self.unexpected.by_pair.next = false;
        self.unexpected.remove.next = true;
        self.unexpected.endpoint.next = self.front.q.val().endpoint;
        self.unexpected.pair.next = self.front.q.val().pair;
        self.unexpected.any_source.next = self.front.q.val().any_source;
        self.unexpected.context_id.next = self.front.q.val().context;
        self.unexpected.match_bits.next = self.front.q.val().match_bits;
        self.unexpected.ignore_bits.next = self.front.q.val().ignore_bits;
        self.unexpected.slot.next = self.front.q.val().slot;
        self.unexpected.age.next = self.age.q.val();
        if self.front_valid.q.val() & !self.stale.q.val() {
            match self.front.q.val().operation {
                Operation::Arrive => {
                    if !self.live.val().any() {
                        if self.issue_free.q.val() & !self.exact.busy.val() & !self.alone.q.val() {
                            self.go.next = true;
                            self.associative_search.next = true;
                            self.next_sole.next = true;
                        }
                    } else if self.way_free.q.val()
                        & (!self.waits_associative.val() | self.may_search.val())
                    {
                        self.go.next = true;
                        self.to_issue.next = true;
                        self.searches_both.next = self.waits_associative.val();
                    }
                }
                Operation::Post => {
                    if !self.weighed.q.val() {
                        // Its class is known in the next cycle.
                    } else if !self.waits_unexpected.val() & self.fits.val() {
                        if self.way_free.q.val() {
                            self.go.next = true;
                            self.to_issue.next = true;
                            self.takes.next = true;
                        }
                    } else if self.drained.val()
                        & (self.fits.val() | !self.gave.q.val().any())
                        & (self.unexpected.ready.val() | !self.waits_unexpected.val())
                    {
                        self.go.next = true;
                        self.goes_alone.next = true;
                        self.unexpected.search.next = self.waits_unexpected.val();
                        self.searching.d.next = self.waits_unexpected.val();
                        self.has_searched.d.next = self.waits_unexpected.val();
                        self.to_issue.next = self.fits.val();
                        self.looking.d.next = self.fits.val();
                        self.takes.next = self.fits.val();
                    }
                }
                Operation::Insert => {
                    if self.drained.val() & self.unexpected.ready.val() {
                        self.go.next = true;
                        self.goes_alone.next = true;
                        self.unexpected.insert.next = true;
                    }
                }
                Operation::Probe => {
                    if self.drained.val() & self.unexpected.ready.val() {
                        self.go.next = true;
                        self.goes_alone.next = true;
                        self.unexpected.search.next = true;
                        self.unexpected.remove.next = false;
                        self.searching.d.next = true;
                    }
                }
                Operation::Claim => {
                    if self.drained.val() & self.unexpected.ready.val() {
                        self.go.next = true;
                        self.goes_alone.next = true;
                        self.unexpected.search.next = true;
                        self.searching.d.next = true;
                    }
                }
                Operation::TakeUnexpectedOfPair => {
                    if self.drained.val() & self.unexpected.ready.val() {
                        self.go.next = true;
                        self.goes_alone.next = true;
                        self.unexpected.search.next = true;
                        self.unexpected.by_pair.next = true;
                        self.searching.d.next = true;
                    }
                }
                _ => {
                    if self.drained.val() {
                        self.go.next = true;
                        self.goes_alone.next = true;
                        self.looking.d.next = true;
                        self.direct.next = true;
                        self.associative_search.next = true;
                    }
                }
            }
        }
        self.tag_bit.next = bits::<16>(1) << self.tag.q.val();
        self.found_tag_bit.next = bits::<16>(1) << self.both_tag.q.val();
        if self.searches_both.val() {
            self.associative_search.next = true;
            self.next_both.next = true;
            self.both_tag.d.next = self.tag.q.val();
        }
        self.newly_clear.next = 0.into();
        if self.both_found.q.val() {
            if !self.associative.found.val() {
                self.newly_clear.next = self.found_tag_bit.val();
            } else if self.step.q.val() == Step::Run {
                self.next_kept.next = true;
            }
        }
        self.clear.d.next = self.clear.q.val() | self.newly_clear.val();
        if self.go.val() {
            self.clear.d.next = (self.clear.q.val() | self.newly_clear.val()) & !self.tag_bit.val();
            if self.front_posts.val() | !self.waits_associative.val() {
                self.clear.d.next =
                    self.clear.q.val() | self.newly_clear.val() | self.tag_bit.val();
            }
        }
        self.lookup_valid.next = self.issue_valid.q.val() | self.to_issue.val();
        self.keeps.next =
            self.lookup_valid.val() & (self.rest_todo.val().any() | !self.exact.lookup_ready.val());
        self.issue_valid.d.next = self.keeps.val();
        self.first.next = !self.same_walk.val();
        if self.direct.val() {
            self.lookup_valid.next = true;
            self.lookup.next = self.no_lookup.val();
            self.lookup.next.tag = self.tag.q.val();
            self.lookup.next.first = self.first.val();
            self.lookup.next.last = true;
            self.lookup.next.endpoint = self.front.q.val().endpoint;
            self.lookup.next.request = self.front.q.val().request;
            self.lookup.next.pair = self.front.q.val().pair;
            self.lookup.next.search = Search::Cancel;
            if self.front.q.val().operation == Operation::TakePostedOfPair {
                self.lookup.next.search = Search::OfPair;
            }
            if self.front.q.val().operation == Operation::TakePostedOfEndpoint {
                self.lookup.next.search = Search::OfEndpoint;
            }
        }
        self.exact.lookup_valid.next = self.lookup_valid.val();
        self.exact.lookup.next = self.lookup.val();
        self.held.write_enable.next = self.go.val();
        self.held.write_address.next = bit_cast::<16, 4>(self.tag.q.val());
        self.held.write_data.next = self.front.q.val();
        self.held_age.write_enable.next = self.go.val();
        self.held_age.write_address.next = bit_cast::<16, 4>(self.tag.q.val());
        self.held_age.write_data.next = self.age.q.val();

        // A command is taken at once if it will not wait for another endpoint's: when nothing is under way, when all that is
        // under way is its own endpoint's, or when it goes the same way as all that is under way.
        self.next_bit.next = bits::<32>(1) << self.command.val().endpoint;
        self.next_live.next = (self.classes.any_live.val() & self.next_bit.val()).any();
        self.next_several.next = (self.classes.several_live.val() & self.next_bit.val()).any();
        self.next_tight.next = (self.unexpected.waiting.val() & self.next_bit.val()).any()
            | (self.classes.all_live.val() & self.next_bit.val()).any()
            | !(self.quota.roomy.val() & self.next_bit.val()).any();
        self.next_way.next = self.alone_way.val();
        if self.command.val().operation == Operation::Arrive {
            if !self.next_live.val() {
                self.next_way.next = self.associative_way.val();
            } else if !self.next_several.val() {
                self.next_way.next = self.exact_way.val();
            }
        }
        if (self.command.val().operation == Operation::Post) & !self.next_tight.val() {
            self.next_way.next = self.exact_way.val();
        }
        self.empty.next = self.drained.val() & !self.front_valid.q.val();
        self.admitted.next = self.empty.val()
            | (self.one_endpoint.q.val()
                & (self.command.val().endpoint == self.last_endpoint.q.val()))
            | ((self.next_way.val() == self.way.q.val())
                & (self.next_way.val() != self.alone_way.val()));
        self.front_moves.next = !self.front_valid.q.val() | self.go.val();
        self.ready.next = self.initialized_now.val() & self.admitted.val() & self.front_moves.val();
        self.command_ready.next = self.ready.val();
        if self.go.val() {
            self.front_valid.d.next = false;
            self.tag.d.next = self.tag.q.val() + 1;
            self.age.d.next = self.age.q.val() + 1;
            self.resumes.d.next = false;
        }
        if self.goes_alone.val() {
            self.next_alone.next = true;
            self.solo.d.next = self.front.q.val();
            self.solo_age.d.next = self.age.q.val();
            self.searched.d.next = false;
        }
        self.classes.take.next = self.takes.val();
        self.classes.take_class.next = self.fit_class.val();
        self.classes.learn.next = self.takes.val() & self.fit_learns.val();
        self.classes.learn_ignore.next = self.front.q.val().ignore_bits;
        self.classes.learn_any.next = self.front.q.val().any_source;
        self.stale.d.next = self.takes.val() & self.fit_learns.val();
        self.weighed.d.next = self.front_valid.q.val() & !self.stale.q.val() & !self.go.val();
        self.quota.take.next = self.takes.val();
        self.quota.take_endpoint.next = self.front.q.val().endpoint;
        // Which endpoint's classes are read mustn't wait for whether its command is taken.
        self.classes.next_endpoint.next = self.command.val().endpoint;
        if self.front_valid.q.val() & self.stale.q.val() {
            self.classes.next_endpoint.next = self.front.q.val().endpoint;
        }
        self.fresh.d.next = self.stale.q.val() | self.front_moves.val();
        self.classes.fresh.next = self.fresh.q.val();
        // So is the rest of what the front has to know. What goes while it stands there may show late, what comes comes from
        // the front itself, but for what is appended.
        self.front_live.d.next = self.classes.live.val();
        self.front_associative.d.next =
            (self.associative.waiting.val() & self.endpoint_bit.val()).any();
        self.front_unexpected.d.next =
            (self.unexpected.waiting.val() & self.endpoint_bit.val()).any();
        if self.front_moves.val() {
            self.front_live.d.next = self.classes.next_live.val();
            if self.takes.val() & (self.command.val().endpoint == self.front.q.val().endpoint) {
                self.front_live.d.next = self.classes.next_live.val() | self.fit_class.val();
            }
            self.front_associative.d.next =
                (self.associative.waiting.val() & self.next_bit.val()).any();
            self.front_unexpected.d.next =
                (self.unexpected.waiting.val() & self.next_bit.val()).any();
        }
        if self.front_moves.val() {
            self.front.d.next = self.command.val();
            // What isn't compared is not kept: it is zero from here on, and costs no logic.
            self.front.d.next.match_bits = self.command.val().match_bits & self.match_mask.val();
            self.front.d.next.ignore_bits = self.command.val().ignore_bits & self.match_mask.val();
        }
        if self.ready.val() & self.command_valid.val() {
            self.front_valid.d.next = true;
            self.last_endpoint.d.next = self.command.val().endpoint;
            self.one_endpoint.d.next = self.one_endpoint.q.val()
                & (self.command.val().endpoint == self.last_endpoint.q.val());
            self.way.d.next = self.next_way.val();
            if self.next_way.val() != self.way.q.val() {
                self.way.d.next = self.alone_way.val();
            }
            if self.empty.val() {
                self.one_endpoint.d.next = true;
                self.way.d.next = self.next_way.val();
            }
        }

        // ---------------------------------------------------------------- decide
        // First what happens, from what is there; then what is told of it, and what is done next.
        self.slow_search.next = false;
        self.append.next = false;
        self.found_associative.next = self.exact_entries.val() + self.associative.index.val();
        self.key_bit.next = bits::<32>(1) << self.held.read_data.val().endpoint;
        self.tainted.d.next = (self.associative.waiting.val() & self.key_bit.val()).any()
            & (self.mutation.val() != self.skip_taint.val());
        self.older.next =
            self.associative.age_out.val() < bit_cast::<54, 53>(self.result.val().age);
        if self.mutation.val() == self.prefer_exact.val() {
            self.older.next = false;
        }
        self.was_older.d.next = self.older.val();
        self.runs.next = self.step.q.val() == Step::Run;
        // What was kept for the arrival was compared on the exact side, while the result came about.
        self.rival_older.next = self.was_older.q.val();
        if self.runs.val() {
            self.rival_older.next =
                self.result.val().rival_older & (self.mutation.val() != self.prefer_exact.val());
        }
        if self.unexpected.done.val() {
            self.searching.d.next = false;
            self.searched.d.next = self.unexpected.found.val();
            self.searched_index.d.next = self.unexpected.index.val();
        }
        self.solo_posts.next = self.solo.q.val().operation == Operation::Post;
        self.told.next = self.result_valid.val() & self.runs.val();
        // It is decided: a receive, unless messages are still searched for it; any other operation that is alone; an arrival, when
        // it is known what the associative side has for it.
        self.decided.next = (self.step.q.val() == Step::Decide)
            | ((self.step.q.val() == Step::Doubt) & !self.tainted.q.val());
        if self.told.val() {
            self.decided.next =
                self.alone.q.val() | self.result_clear.q.val() | self.result_kept.q.val();
            if self.posts.val() {
                self.decided.next = !(self.alone.q.val() & self.searching.q.val());
            }
        }
        // A receive that has found a message has no use for its place.
        self.yields.next = self.alone.q.val() & self.searched.q.val();
        self.rival_wins.next = (self.result_kept.q.val() | (self.step.q.val() == Step::Decide))
            & self.associative.found.val()
            & (!self.result.val().found | self.rival_older.val());
        self.accepts.next = self.result.val().found & !self.rival_wins.val();
        if self.posts.val() {
            self.accepts.next = self.result.val().room & !self.yields.val();
        }
        self.commit.next = self.decided.val() & self.accepts.val();
        self.discard.next = self.decided.val() & !self.accepts.val();
        self.overflow.next =
            self.decided.val() & self.posts.val() & !self.result.val().room & !self.yields.val();
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
        self.replying.next = self.sole_found.q.val()
            | self.appends.val()
            | (self.decided.val()
                & (!self.posts.val() | self.result.val().room | self.yields.val()));
        match self.solo.q.val().operation {
            Operation::Insert => {
                if self.searched_alone.val() & self.unexpected.ready.val() {
                    self.replying.next = true;
                }
            }
            Operation::Post => {
                if self.searched_alone.val() & self.searched.q.val() {
                    self.replying.next = true;
                }
            }
            _ => {
                if self.searched_alone.val() {
                    self.replying.next = true;
                }
            }
        }

        // The answer is put together whether or not it is told in this cycle, from what is under way.
        self.answer.d.next = self.no_reply.val();
        self.answer.d.next.index = bit_cast::<16, 14>(self.result.val().id);
        self.answer.d.next.found = !self.posts.val()
            & (self.result.val().found
                | ((self.result_kept.q.val() | (self.step.q.val() == Step::Decide))
                    & self.associative.found.val()));
        if self.rival_wins.val() {
            self.answer.d.next.index = self.found_associative.val();
        }
        if self.alone.q.val() & self.looking.q.val() & !self.solo_posts.val() {
            self.answer.d.next.found = self.result.val().found | self.associative.found.val();
            if !self.result.val().found {
                self.answer.d.next.index = self.found_associative.val();
            }
        }
        if self.alone.q.val() & (!self.looking.q.val() | self.solo_posts.val()) {
            self.answer.d.next.found = self.searched.q.val();
            if !self.looking.q.val() | self.searched.q.val() {
                self.answer.d.next.index = self.searched_index.q.val();
            }
        }
        if self.alone.q.val() & (self.solo.q.val().operation == Operation::Insert) {
            self.answer.d.next.found = false;
            self.answer.d.next.index =
                (self.solo.q.val().pair << 4) | bit_cast::<16, 4>(self.solo.q.val().slot);
        }
        if self.sole_found.q.val() {
            self.answer.d.next.found = self.associative.found.val();
            self.answer.d.next.index = self.found_associative.val();
        }
        if self.appends.val() {
            self.answer.d.next.found = false;
            self.answer.d.next.full = !self.room.q.val();
            self.answer.d.next.index =
                self.exact_entries.val() + self.associative.place_index.val();
        }

        self.probes.d.next = false;
        // A removal shows in the room within three cycles; none is so late that a receive comes to be appended before that.
        self.room.d.next = self.associative.room.val();
        match self.step.q.val() {
            Step::Run => {
                if self.alone.q.val() & !self.looking.q.val() & self.solo_posts.val() {
                    // A search takes longer than quotas need to settle.
                    self.probes.d.next = self.searching.q.val() | !self.searched.q.val();
                    if self.searched_alone.val() & !self.searched.q.val() {
                        self.next_step.next = Step::Settle;
                        if self.has_searched.q.val() {
                            self.next_step.next = Step::Append;
                        }
                    }
                }
                if self.overflow.val() {
                    // Its places are full: the associative side.
                    self.next_step.next = Step::Settle;
                    self.probes.d.next = true;
                }
                if self.told.val() & !self.alone.q.val() {
                    self.solo.d.next = self.held.read_data.val();
                    self.solo_age.d.next = self.held_age.read_data.val();
                    if !self.decided.val() {
                        self.next_step.next = Step::Doubt;
                    }
                }
            }
            Step::Doubt => {
                if self.tainted.q.val() {
                    self.next_step.next = Step::Search;
                    self.probes.d.next = true;
                    self.next_kept.next = false;
                } else {
                    self.next_step.next = Step::Run;
                }
            }
            Step::Search => {
                self.slow_search.next = true;
                self.next_step.next = Step::Select;
            }
            Step::Select => {
                self.next_step.next = Step::Recall;
            }
            Step::Recall => {
                self.next_step.next = Step::Age;
            }
            Step::Age => {
                self.next_step.next = Step::Compare;
            }
            Step::Compare => {
                self.next_step.next = Step::Decide;
            }
            Step::Decide => {
                self.next_step.next = Step::Run;
            }
            Step::Settle => {
                self.next_step.next = Step::Append;
                self.probes.d.next = true;
            }
            Step::Append => {
                self.next_step.next = Step::Run;
            }
        }
        if self.decided.val() & self.result_kept.q.val() {
            self.next_kept.next = false;
        }
        if self.overflow.val() {
            self.next_alone.next = true;
            self.looking.d.next = false;
        }
        if self.replying.val() {
            self.next_alone.next = false;
            self.looking.d.next = false;
        }
        self.next_tag_bit.next = bits::<16>(1) << self.exact.next_tag.val();
        self.next_clear.next = (self.clear.q.val() & self.next_tag_bit.val()).any();
        if self.append.val() {
            self.stale.d.next = true;
        }
        if self.append.val() & (self.mutation.val() != self.stay_clear.val()) {
            self.next_clear.next = false;
            self.next_both.next = false;
            self.both_found.d.next = false;
            self.next_kept.next = false;
            self.clear.d.next = 0.into();
        }
        self.result_clear.d.next = self.next_clear.val();
        self.associative.search.next = self.associative_search.val() | self.slow_search.val();
        self.selecting.d.next = self.associative_search.val() | self.slow_search.val();
        self.associative.select.next = self.selecting.q.val();
        // An arrival of the associative way takes its receive at once, so that the next one doesn't find it; what is
        // decided by ages goes one cycle later: nobody has searched meanwhile.
        self.removing.d.next = self.remove.val();
        self.removing_for_message.d.next = !self.alone.q.val();
        self.removing_cancelled.d.next =
            self.alone.q.val() & (self.solo.q.val().operation == Operation::Cancel);
        self.associative.remove.next = self.removing.q.val() | self.sole_found.q.val();
        self.associative.spare_multi.next =
            !self.removing.q.val() | self.removing_for_message.q.val();
        self.associative.cancel.next = self.removing.q.val() & self.removing_cancelled.q.val();
        self.associative.insert.next = self.append.val();
        self.probed.next = self.front.q.val();
        if self.probes.q.val() {
            self.probed.next = self.solo.q.val();
        }
        self.associative.endpoint.next = self.probed.val().endpoint;
        self.associative.pair.next = self.probed.val().pair;
        self.associative.any_source.next = self.probed.val().any_source;
        self.associative.context_id.next = self.probed.val().context;
        self.associative.match_bits.next = self.probed.val().match_bits;
        self.associative.ignore_bits.next = self.probed.val().ignore_bits;
        self.associative.request.next = self.probed.val().request;
        self.associative.multi.next = self.probed.val().multi;
        self.associative.age.next = self.solo_age.q.val();
        self.exact.receive.next = self.held.read_data.val();
        self.exact.age.next = self.held_age.read_data.val();
        self.exact.rival_age.next = self.associative.age_out.val();
        self.swift.next = !self.alone.q.val()
            & (self.step.q.val() == Step::Run)
            & (!self.result_valid.val()
                | (self.quick.q.val() & (self.result.val().room | !self.posts.val())));
        // What needn't wait for anything is decided from registers, early enough to move the exact side in the same cycle: a
        // receive that no message waits for, and a message for which the associative side has nothing. Anything else is told a
        // cycle after it was decided.
        self.will_be_quick.next =
            self.exact.will_end.val() & self.swift.val() & self.next_clear.val();
        self.quick.d.next = self.will_be_quick.val();
        self.quick_commit.next = self.result.val().found;
        if self.posts.val() {
            self.quick_commit.next = self.result.val().room;
        }
        self.late_commit.d.next = self.commit.val() & !self.quick.q.val();
        self.late_discard.d.next = self.discard.val() & !self.quick.q.val();
        self.exact.will_settle.next = self.will_be_quick.val();
        self.exact.commit.next =
            (self.quick.q.val() & self.quick_commit.val()) | self.late_commit.q.val();
        self.exact.discard.next =
            (self.quick.q.val() & !self.quick_commit.val()) | self.late_discard.q.val();
        self.way_free.d.next =
            !self.next_alone.val() & !self.next_sole.val() & !self.sole.q.val() & !self.keeps.val();
        self.issue_free.d.next = !self.keeps.val();
        self.side_free.d.next = !self.next_both.val()
            & !self.both.q.val()
            & !self.next_kept.val()
            & (self.next_step.val() == Step::Run);
        self.step.d.next = self.next_step.val();
        self.alone.d.next = self.next_alone.val();
        self.kept.d.next = self.next_kept.val();
        self.result_kept.d.next =
            self.next_kept.val() & (self.both_tag.q.val() == self.exact.next_tag.val());
        self.both.d.next = self.next_both.val();
        self.sole.d.next = self.next_sole.val();
        self.quick_is_right.ok.next = !self.quick.q.val()
            | ((self.commit.val() == self.quick_commit.val())
                & (self.discard.val() != self.quick_commit.val()));
        // What goes is counted a cycle later; until then there seems to be less room than there is.
        self.giving.d.next = self.gives.val();
        self.giving_class.d.next = self.result.val().class;
        self.gave.d.next = self.gave.q.val() << 1;
        if self.gives.val() {
            self.gave.d.next = (self.gave.q.val() << 1) | 1;
        }
        self.classes.give.next = self.giving.q.val();
        self.classes.give_class.next = self.giving_class.q.val();
        self.quota.give.next = self.giving.q.val();
        self.quota.give_endpoint.next = bit_cast::<8, 6>(self.giving_class.q.val() >> 2);
        self.count_overflows.next = self.overflow.val();
        self.answered.d.next = self.replying.val();
        self.reply_valid.next = self.answered.q.val();
        self.reply.next = self.answer.q.val();
        self.posted_depth.next = self.exact.depth.val() + self.associative.depth.val();
        self.unexpected_depth.next = self.unexpected.depth.val();

        self.operation.next = 0.into();
        match self.command.val().operation {
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
        self.entering.next = self.ready.val() & self.command_valid.val();
        if self.entering.val() & !self.replying.val() {
            self.under_way.d.next = self.under_way.q.val() + 1;
        }
        if self.replying.val() & !self.entering.val() {
            self.under_way.d.next = self.under_way.q.val() - 1;
        }
        self.replies_to_commands.ok.next = !self.replying.val() | (self.under_way.q.val() != 0);
        self.one_at_a_time.ok.next =
            !self.sole_found.q.val() | !(self.result_valid.val() | self.alone.q.val());
        // A receive that was put where one seed says would be looked for where another one does.
        self.last_seed.d.next = self.seed.val();
        self.seed_changes_while_empty.ok.next = (self.seed.val() == self.last_seed.q.val())
            | ((self.posted_depth.val() == 0) & (self.under_way.q.val() == 0));
    }
}
