//! Drains over frames that are lost, repeated and late, with members that fail: survivors agree, and nobody waits for ever.

use crate::breaks::{promise, promise_eq};
use crate::gates::Refusal;
use crate::network::{CALM, ROUGH, Weather, World, for_seeds, several};
use crate::peers::{ask, events, join};
use abi::event::{Cause as EventCause, NO_PAIR};
use abi::mailbox::{
    Command, DRAIN_LOST, DRAIN_NOBODY, Drain, DrainName, DrainState, DrainStatus, Nothing, Pair,
    drain_info, id_index,
};
use abi::status::MailboxStatus;
use firmware_core::MOST_DRAINS_UNDER_WAY;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const TAG: u32 = 77;
const CONTEXT: u32 = 5;
/// A silent member is found by then: some 12 repetitions, ever more seldom.
const SURELY: u32 = 12 << 19;

/// Cards that are all connected with each other: `pairs[a][b]` is the pair of card a with card b.
struct Group {
    world: World,
    pairs: Vec<Vec<Option<u32>>>,
}

impl Group {
    fn new(cards: usize, seed: u64) -> Self {
        let mut world = several(cards, seed, CALM);
        let mut pairs = vec![vec![None; cards]; cards];
        let apart = (0..cards).flat_map(|a| (a + 1..cards).map(move |b| (a, b)));
        for (a, b) in apart {
            let (near, far) = join(&mut world, a, b);
            (pairs[a][b], pairs[b][a]) = (Some(near), Some(far));
        }
        Self { world, pairs }
    }

    fn argument(&self, card: usize, tag: u32, round: u32) -> Drain {
        let place = |rank: usize| match self.pairs[card].get(rank) {
            Some(Some(pair)) => id_index(*pair) as u8,
            _ => DRAIN_NOBODY,
        };
        let word = |first: usize| u64::from_le_bytes(core::array::from_fn(|k| place(first + k)));
        Drain {
            endpoint: self.world.endpoints[card][0],
            tag,
            context: CONTEXT,
            round,
            rank: card as u32,
            places0: word(0),
            places1: word(8),
            places2: word(16),
            places3: word(24),
            places4: word(32),
            places5: word(40),
            places6: word(48),
            places7: word(56),
        }
    }

    fn begin(&mut self, card: usize, round: u32) {
        let argument = self.argument(card, TAG, round);
        let begun = ask(&mut self.world, card, Command::Drain, argument);
        promise_eq!(begun, Ok(Nothing {}));
    }

    fn name(&self, card: usize) -> DrainName {
        DrainName {
            endpoint: self.world.endpoints[card][0],
            tag: TAG,
            context: CONTEXT,
        }
    }

    fn read(&mut self, card: usize) -> DrainStatus {
        let name = self.name(card);
        let read = ask(&mut self.world, card, Command::ReadDrain, name);
        read.expect("a drain that has begun")
    }

    fn state(&mut self, card: usize) -> DrainState {
        DrainState::from_code(self.read(card).state as u8).expect("a state")
    }

    /// A host sweeps if it is to.
    fn sweep(&mut self, card: usize) {
        if self.state(card) == DrainState::Sweep {
            let name = self.name(card);
            let swept = ask(&mut self.world, card, Command::DrainSwept, name);
            promise_eq!(swept, Ok(Nothing {}));
        }
    }

    /// Until these have ended; false if the time is over before.
    fn finish(&mut self, cards: &[usize], cycles: u32) -> bool {
        let end = self.world.now + cycles;
        loop {
            for &card in cards {
                self.sweep(card);
            }
            let ended = [DrainState::Done, DrainState::CutOff];
            if cards.iter().all(|&card| ended.contains(&self.state(card))) {
                return true;
            }
            if self.world.now >= end {
                return false;
            }
            self.world.pass(4_000);
        }
    }

    /// Nothing of a card leaves it any more, and nothing comes to it.
    fn kill(&mut self, card: usize) {
        self.world.dead.push(card);
    }

    fn declare(&mut self, card: usize, failed: usize) {
        let pair = self.pairs[card][failed].expect("another card");
        let declared = ask(&mut self.world, card, Command::DeclareFailed, Pair { pair });
        promise_eq!(declared, Ok(Nothing {}));
    }

    /// That these have ended the round, and with which set.
    fn agreed(&mut self, cards: &[usize], round: u32) -> u64 {
        let first = self.read(cards[0]);
        for &card in cards {
            let status = self.read(card);
            promise_eq!(
                status.state,
                u32::from(DrainState::Done.code()),
                "of card {card}"
            );
            promise_eq!((status.round, status.failed), (round, first.failed));
        }
        first.failed
    }
}

#[test]
pub fn members_agree_that_nobody_has_failed_when_all_have_flushed_and_swept() {
    let mut group = Group::new(3, 1);
    for card in [2, 0] {
        group.begin(card, 1);
    }
    group.world.pass(400_000);
    for card in [0, 2] {
        promise_eq!(group.state(card), DrainState::Flushed, "one hasn't begun");
    }
    // It is told once by each that asks it, however often.
    let asked = drain_info(TAG, CONTEXT as u16, DrainState::Asked);
    let told = events(&mut group.world, 1, EventCause::Drain);
    let pair = id_index(group.pairs[1][0].expect("a pair"));
    promise_eq!(told, [(pair, asked)]);
    group.begin(1, 1);
    group.world.pass(100_000);
    for card in 0..3 {
        promise_eq!(group.state(card), DrainState::Sweep);
    }
    for card in [0, 1] {
        group.sweep(card);
    }
    group.world.pass(400_000);
    promise_eq!(group.state(2), DrainState::Sweep);
    group.sweep(2);
    group.world.pass(100_000);
    promise_eq!(group.agreed(&[0, 1, 2], 1), 0);
    // Each host is told of what it waits for, and of nothing that it has done.
    let [sweep, done] = [DrainState::Sweep, DrainState::Done]
        .map(|state| (NO_PAIR, drain_info(TAG, CONTEXT as u16, state)));
    for card in 0..3 {
        let mut told = events(&mut group.world, card, EventCause::Drain);
        told.retain(|&(pair, _)| pair == NO_PAIR);
        promise_eq!(told, [sweep, done]);
    }
    // All is told and nothing is asked any more.
    group.world.pass(2_000_000);
    for card in 0..3 {
        promise_eq!(group.world.cards[card].next_deadline(), None);
    }
    // The next round, of which others know nothing.
    for card in 0..3 {
        group.begin(card, 2);
    }
    promise!(group.finish(&[0, 1, 2], 1_000_000));
    promise_eq!(group.agreed(&[0, 1, 2], 2), 0);
}

#[test]
pub fn what_one_knows_to_have_failed_all_agree_on_and_cut_off() {
    let mut group = Group::new(4, 1);
    group.declare(2, 3);
    for card in 0..3 {
        group.begin(card, 1);
    }
    promise!(group.finish(&[0, 1, 2], 1_000_000));
    promise_eq!(group.agreed(&[0, 1, 2], 1), 1 << 3);
    group.world.pass(100_000);
    // Each has cut it off, and its own drain finds that it is alone.
    for card in 0..3 {
        let events = events(&mut group.world, card, EventCause::PeerFailed);
        promise_eq!(events.len(), 1, "of card {card}");
    }
    group.begin(3, 1);
    promise!(group.finish(&[3], 1_000_000));
    promise_eq!(group.agreed(&[3], 1), 0b111);
}

#[test]
pub fn a_silent_member_is_found_by_the_drain_itself() {
    for dead in 0..3 {
        let mut group = Group::new(3, 1);
        group.kill(dead);
        let live: Vec<_> = (0..3).filter(|&card| card != dead).collect();
        for &card in &live {
            group.begin(card, 1);
        }
        promise!(group.finish(&live, SURELY));
        promise_eq!(group.agreed(&live, 1), 1 << dead);
    }
}

/// Cards fail one after the other while the others drain, twice. The most that did so in one drain before any of those that live had ended it.
fn survivors_agree(seed: u64) -> usize {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let cards = rng.random_range(2..=5);
    let mut group = Group::new(cards, seed);
    let mut most = 0;
    let mut live: Vec<_> = (0..cards).collect();
    for round in 1..=2 {
        // Half of the lost frames suffice: nobody that lives is to be taken to have failed.
        group.world.weather = Weather { lost: 15, ..ROUGH };
        let mut order = live.clone();
        while !order.is_empty() {
            let card = order.remove(rng.random_range(0..order.len()));
            group.begin(card, round);
            group.world.pass(rng.random_range(0..100_000));
        }
        // One fails in the middle, and others while that is being handled: within a few frames of it, or when it has been found.
        let mut killed = 0;
        while live.len() > 1 && rng.random() {
            let longest = if killed > 0 && rng.random() {
                SURELY / 12
            } else {
                20_000
            };
            // Some time of it nobody sweeps.
            for _ in 0..rng.random_range(0..12) {
                group.world.pass(rng.random_range(0..longest));
                let card = live[rng.random_range(0..live.len())];
                group.sweep(card);
            }
            let dead = live.remove(rng.random_range(0..live.len()));
            let goes_on = |group: &mut Group, card: usize| group.state(card) != DrainState::Done;
            killed += usize::from(live.iter().all(|&card| goes_on(&mut group, card)));
            group.kill(dead);
        }
        most = most.max(killed);
        promise!(group.finish(&live, 8 * SURELY), "somebody waits for ever");
        let failed = group.agreed(&live, round);
        let named = |&&card: &&usize| failed >> card & 1 == 1;
        promise_eq!(live.iter().filter(named).count(), 0, "of those that live");
    }
    most
}

#[test]
pub fn survivors_agree_in_every_run() {
    let mut runs = [0; 5];
    for_seeds(|seed| runs[survivors_agree(seed)] += 1);
    println!("{runs:?} runs with so many failures in the middle of one drain");
    promise!(runs[2..].iter().sum::<usize>() >= 5);
}

#[test]
fn drains_that_cannot_be_begun_are_refused() {
    let mut group = Group::new(3, 1);
    let begin = |group: &mut Group, argument: Drain| -> Result<Nothing, Refusal> {
        ask(&mut group.world, 0, Command::Drain, argument)
    };
    let good = group.argument(0, TAG, 1);
    let refused = |position| Err((MailboxStatus::InvalidArgument, position));
    for (argument, position) in [
        (
            Drain {
                context: 1 << 16,
                ..good
            },
            2,
        ),
        (Drain { round: 0, ..good }, 3),
        (Drain { rank: 64, ..good }, 4),
        // A place that no pair of the endpoint has.
        (
            Drain {
                places0: good.places0 & !0xff << 8 | 100 << 8,
                ..good
            },
            5,
        ),
        (
            Drain {
                places7: 99,
                ..good
            },
            12,
        ),
    ] {
        promise_eq!(begin(&mut group, argument), refused(position));
    }
    let name = group.name(0);
    let unknown = ask::<_, DrainStatus>(&mut group.world, 0, Command::ReadDrain, name);
    promise_eq!(unknown, Err((MailboxStatus::NotFound, 0)));
    let swept = ask::<_, Nothing>(&mut group.world, 0, Command::DrainSwept, name);
    promise_eq!(swept, Err((MailboxStatus::NotFound, 0)));
    for tag in 0..MOST_DRAINS_UNDER_WAY as u32 {
        promise_eq!(begin(&mut group, Drain { tag, ..good }), Ok(Nothing {}));
        // Again: it was given before.
        promise_eq!(begin(&mut group, Drain { tag, ..good }), Ok(Nothing {}));
    }
    let busy = Err((MailboxStatus::Busy, 0));
    promise_eq!(begin(&mut group, good), busy);
    promise_eq!(
        begin(
            &mut group,
            Drain {
                tag: 0,
                round: 2,
                ..good
            }
        ),
        busy
    );
}

#[test]
fn who_is_alone_agrees_with_itself_and_an_older_round_is_refused() {
    let mut group = Group::new(2, 1);
    let mut alone = group.argument(0, TAG, 7);
    alone.places0 = alone.places0 & !(0xff << 8) | u64::from(DRAIN_LOST) << 8;
    promise_eq!(
        ask(&mut group.world, 0, Command::Drain, alone),
        Ok(Nothing {})
    );
    promise_eq!(group.state(0), DrainState::Sweep);
    group.sweep(0);
    promise_eq!(group.agreed(&[0], 7), 0b10);
    let older = Drain { round: 6, ..alone };
    let refused = ask::<_, Nothing>(&mut group.world, 0, Command::Drain, older);
    promise_eq!(refused, Err((MailboxStatus::InvalidArgument, 3)));
}

#[test]
pub fn a_member_that_missed_the_end_learns_it_from_the_next_round() {
    let mut group = Group::new(2, 1);
    for card in 0..2 {
        group.begin(card, 1);
    }
    group.world.pass(100_000);
    group.sweep(1);
    group.world.pass(100_000);
    // What 0 decides doesn't reach 1, until it begins again.
    group.world.weather = Weather { lost: 100, ..CALM };
    group.sweep(0);
    promise_eq!(group.state(0), DrainState::Done);
    promise_eq!(group.state(1), DrainState::Flushed);
    group.world.pass(1_000);
    group.begin(0, 2);
    group.world.weather = CALM;
    group.world.pass(4_000_000);
    promise_eq!(group.agreed(&[1], 1), 0);
    group.begin(1, 2);
    promise!(group.finish(&[0, 1], 4_000_000));
    promise_eq!(group.agreed(&[0, 1], 2), 0);
}

/// A star: so many frames for each member beside the coordinator, however many there are.
#[test]
fn the_frames_of_a_drain_grow_with_its_members_and_no_faster() {
    for cards in [2, 4, 8] {
        let mut group = Group::new(cards, 1);
        let all: Vec<_> = (0..cards).collect();
        group.world.seen.clear();
        for &card in &all {
            group.begin(card, 1);
        }
        promise!(group.finish(&all, 1_000_000));
        group.world.pass(2_000_000);
        promise_eq!(group.agreed(&all, 1), 0);
        let frames = group.world.seen.len();
        promise!(
            frames <= 10 * (cards - 1),
            "{frames} frames of {cards} cards"
        );
    }
}
