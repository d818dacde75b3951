//! The credit invariant, checked at every cycle from the monitor pins of all cards.
//!
//! For an ordered pair A→B whose receiver granted G envelopes (DESIGN, "Envelope resources"):
//!
//! ```text
//!   card A                                            card B
//!   taken ──────────── in flight ───────────► accepted
//!     ▲                                           │ queued
//!     └ owned: G − (taken − returned)             ▼
//!   returned ◄──────── on the way back ──────── freed
//!
//!   returned ≤ freed ≤ accepted ≤ taken ≤ returned + G
//! ```
//!
//! A put takes a number without a credit: by puts, and by nothing else, `taken` may come to be up to [`MAX_UNACKNOWLEDGED`] more than `returned + G`.
//!
//! The cards run a window apart, so changes are noted with their cycle while they run, and put in order of cycle
//! when the window ends: all changes of a cycle are applied, then every pair that they touched is
//! checked. Which pair of one card belongs to which of another is learnt from the control requests by which the
//! firmware sets them, whoever it was that connected them; a pair is checked once both of its ends have named each other,
//! with the same cookie: an end that still belongs to a connection that the other has left isn't.

use std::collections::BTreeMap;
use std::ops::Range;

use abi::control::{Operation, PairSetup};
use abi::limits::MAX_UNACKNOWLEDGED;
use abi::mailbox::{Command, Identity, Words};
use abi::register::{
    CONTROL, CONTROL_RUN, MAILBOX_COMMAND, MAILBOX_REQUEST, MAILBOX_RESULT, MAILBOX_WORDS,
};
use abi::status::MailboxStatus;

use crate::fabric::card_of;
use crate::lite::Access;
use crate::pins::ControlMonitor;

/// A change at one card that the invariant depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The running numbers of a pair's sending side.
    Source {
        /// Pair.
        pair: u16,
        /// Credits taken.
        taken: u32,
        /// Credits that have come back.
        returned: u32,
        /// A put has taken a number.
        put: bool,
    },
    /// The running numbers of a pair's receiving side.
    Sink {
        /// Pair.
        pair: u16,
        /// Envelopes accepted.
        accepted: u32,
        /// Envelopes freed.
        freed: u32,
    },
    /// A pair is set: its numbers start at 0.
    Connect {
        /// Pair.
        pair: u16,
        /// Card of the peer.
        card: usize,
        /// Pair of the peer.
        remote: u16,
        /// Envelopes that the peer grants.
        credits: u32,
        /// Cookie of the connection.
        cookie: u32,
    },
    /// A pair is cleared.
    Forget {
        /// Pair.
        pair: u16,
    },
    /// The gates are reset: there is no pair.
    ForgetAll,
}

impl Change {
    /// What a control request means for the monitor. A peer that is no card of the simulation has nothing to be checked against.
    pub fn of_control(control: &ControlMonitor) -> Option<Self> {
        let operation = Operation::from_code(control.operation).filter(|_| control.valid)?;
        let pair = control.index;
        match operation {
            Operation::PairSet => {
                let setup = PairSetup::from_words(&control.data);
                let card = card_of(setup.remote_mac);
                Some(card.map_or(Self::Forget { pair }, |card| Self::Connect {
                    pair,
                    card,
                    remote: setup.remote_pair,
                    credits: setup.remote_credits.into(),
                    cookie: setup.cookie,
                }))
            }
            Operation::PairClear => Some(Self::Forget { pair }),
            _ => None,
        }
    }
}

/// The invariant does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cycle {cycle}: the credits of pair {pair} of card {card} to pair {remote_pair} of card {remote_card} don't add up: \
     returned {returned} ≤ freed {freed} ≤ accepted {accepted} ≤ taken {taken} ≤ returned + {credits} doesn't hold"
)]
pub struct CreditBroken {
    /// Cycle.
    pub cycle: u64,
    /// Card that sends.
    pub card: usize,
    /// Its pair.
    pub pair: u16,
    /// Card that receives.
    pub remote_card: usize,
    /// Its pair.
    pub remote_pair: u16,
    /// Credits taken.
    pub taken: u32,
    /// Envelopes accepted.
    pub accepted: u32,
    /// Envelopes freed.
    pub freed: u32,
    /// Credits that have come back.
    pub returned: u32,
    /// Envelopes granted.
    pub credits: u32,
}

/// One end of a pair: what it sends and what it receives.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    peer: (usize, u16),
    credits: u32,
    cookie: u32,
    taken: u32,
    returned: u32,
    accepted: u32,
    freed: u32,
    /// As many numbers as may be in use: the credits, or what puts have come to.
    limit: u32,
}

/// Checks the invariant between all cards.
pub struct CreditMonitor {
    ends: Vec<BTreeMap<u16, End>>,
    pending: Vec<(u64, usize, Change)>,
    touched: Vec<(usize, u16)>,
    checks: u64,
}

impl CreditMonitor {
    /// A monitor of `cards` cards.
    pub fn new(cards: usize) -> Self {
        Self {
            ends: vec![BTreeMap::new(); cards],
            pending: Vec::new(),
            touched: Vec::new(),
            checks: 0,
        }
    }

    /// Takes the changes of `card` in the window that ends, in order of their cycles.
    pub fn note(&mut self, card: usize, changes: impl IntoIterator<Item = (u64, Change)>) {
        let changes = changes.into_iter();
        self.pending
            .extend(changes.map(|(cycle, change)| (cycle, card, change)));
    }

    /// How often an ordered pair has been checked.
    pub const fn checks(&self) -> u64 {
        self.checks
    }

    /// Ends a window.
    ///
    /// # Errors
    /// The first break of the invariant in it; of several in one cycle that of the lowest card.
    pub fn check(&mut self) -> Result<(), CreditBroken> {
        let mut pending = std::mem::take(&mut self.pending);
        // Stable: changes of one card in one cycle stay in order.
        pending.sort_by_key(|&(cycle, card, _)| (cycle, card));
        for same in pending.chunk_by(|a, b| a.0 == b.0) {
            self.touched.clear();
            for &(_, card, change) in same {
                self.apply(card, change);
            }
            let mut touched = std::mem::take(&mut self.touched);
            touched.sort_unstable();
            touched.dedup();
            for &(card, pair) in &touched {
                self.check_pair(same[0].0, card, pair)?;
            }
            self.touched = touched;
        }
        pending.clear();
        self.pending = pending;
        Ok(())
    }

    /// Applies a change; notes the sending ends that it touches.
    fn apply(&mut self, card: usize, change: Change) {
        let ends = &mut self.ends[card];
        match change {
            Change::Source {
                pair,
                taken,
                returned,
                put,
            } => {
                if let Some(end) = ends.get_mut(&pair) {
                    let before = end.taken.wrapping_sub(end.returned);
                    let most = end.credits + u32::from(MAX_UNACKNOWLEDGED);
                    let may_be = match put {
                        true => taken.wrapping_sub(returned).min(most),
                        // What was never allowed is not allowed the next time.
                        false => before.min(end.limit),
                    };
                    end.limit = may_be.max(end.credits);
                    (end.taken, end.returned) = (taken, returned);
                    self.touched.push((card, pair));
                }
            }
            Change::Sink {
                pair,
                accepted,
                freed,
            } => {
                if let Some(end) = ends.get_mut(&pair) {
                    (end.accepted, end.freed) = (accepted, freed);
                    self.touched.push(end.peer);
                }
            }
            Change::Connect {
                pair,
                card: peer,
                remote,
                credits,
                cookie,
            } => {
                let end = End {
                    peer: (peer, remote),
                    credits,
                    cookie,
                    limit: credits,
                    ..End::default()
                };
                ends.insert(pair, end);
            }
            Change::Forget { pair } => {
                ends.remove(&pair);
            }
            Change::ForgetAll => ends.clear(),
        }
    }

    fn check_pair(&mut self, cycle: u64, card: usize, pair: u16) -> Result<(), CreditBroken> {
        let Some(&source) = self.ends.get(card).and_then(|ends| ends.get(&pair)) else {
            return Ok(());
        };
        let (remote_card, remote_pair) = source.peer;
        let remote = self
            .ends
            .get(remote_card)
            .and_then(|ends| ends.get(&remote_pair));
        let is_peer = |sink: &&End| sink.peer == (card, pair) && sink.cookie == source.cookie;
        let Some(sink) = remote.filter(is_peer) else {
            return Ok(());
        };
        self.checks += 1;
        // The numbers run on past 2^32; the differences are what counts.
        let in_flight = source.taken.wrapping_sub(sink.accepted);
        let queued = sink.accepted.wrapping_sub(sink.freed);
        let coming_back = sink.freed.wrapping_sub(source.returned);
        let away = [in_flight, queued, coming_back].map(u64::from);
        if away.iter().sum::<u64>() <= u64::from(source.limit) {
            return Ok(());
        }
        Err(CreditBroken {
            cycle,
            card,
            pair,
            remote_card,
            remote_pair,
            taken: source.taken,
            accepted: sink.accepted,
            freed: sink.freed,
            returned: source.returned,
            credits: source.credits,
        })
    }
}

/// Watches a card's mailbox for what the firmware says of itself.
#[derive(Default)]
pub struct MailboxWatch {
    /// Word 0 of the command area.
    code: u32,
    result: [u32; Identity::COUNT],
    /// The last command handed over was `Identify`, and whether the host has read that it was done.
    asked: bool,
    done: bool,
    build_id: Option<u64>,
}

impl MailboxWatch {
    /// Build id of the firmware, once the host has asked for it.
    pub const fn build_id(&self) -> Option<u64> {
        self.build_id
    }

    /// Looks at a register access that has been done, with the data of a read.
    pub fn observe(&mut self, access: &Access, data: u32) {
        match (access.offset, access.write) {
            // Other firmware may come.
            (CONTROL, Some(value)) if value & CONTROL_RUN == 0 => *self = Self::default(),
            (MAILBOX_COMMAND, Some(value)) => self.code = value,
            (MAILBOX_REQUEST, Some(_)) => {
                self.asked = self.code == u32::from(Command::Identify.code());
                self.done = false;
            }
            (MAILBOX_RESULT, None) => {
                self.done = self.asked && data == u32::from(MailboxStatus::Ok.code());
            }
            (offset, None) if self.done && RESULTS.contains(&offset) => {
                let word = (offset - RESULTS.start) as usize / 4;
                self.result[word] = data;
                if word + 1 == Identity::COUNT {
                    self.build_id = Some(Identity::from_words(&self.result).build_id);
                }
            }
            _ => {}
        }
    }
}

/// Where the words of an `Identity` are.
const RESULTS: Range<u32> = MAILBOX_RESULT + 4..MAILBOX_RESULT + 4 + 4 * Identity::COUNT as u32;

const _: () = assert!(Identity::COUNT < MAILBOX_WORDS);

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use rand::Rng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::fabric::mac;
    use crate::seed::generator;

    const CREDITS: u32 = 4;

    fn connect(monitor: &mut CreditMonitor) {
        let to = |card, pair, remote| Change::Connect {
            pair,
            card,
            remote,
            credits: CREDITS,
            cookie: 77,
        };
        monitor.note(0, [(0, to(1, 3, 5))]);
        monitor.note(1, [(0, to(0, 5, 3))]);
    }

    fn source(taken: u32, returned: u32) -> Change {
        Change::Source {
            pair: 3,
            taken,
            returned,
            put: false,
        }
    }

    fn sink(accepted: u32, freed: u32) -> Change {
        Change::Sink {
            pair: 5,
            accepted,
            freed,
        }
    }

    /// Pair 3 of card 0 to pair 5 of card 1, kept right by chance moves; every number starts at `start`.
    struct Model {
        rng: ChaCha8Rng,
        taken: u32,
        accepted: u32,
        freed: u32,
        returned: u32,
    }

    impl Model {
        /// One legal move; legal moves always exist, for a credit is in one of the four places.
        fn step(&mut self) {
            loop {
                let number = match self.rng.random_range(0..4) {
                    0 if self.taken.wrapping_sub(self.returned) < CREDITS => &mut self.taken,
                    1 if self.accepted != self.taken => &mut self.accepted,
                    2 if self.freed != self.accepted => &mut self.freed,
                    3 if self.returned != self.freed => &mut self.returned,
                    _ => continue,
                };
                *number = number.wrapping_add(1);
                return;
            }
        }
    }

    #[test]
    fn right_numbers_pass_over_the_wrap_and_one_wrong_number_does_not() {
        for seed in 0..50 {
            let mut monitor = CreditMonitor::new(2);
            connect(&mut monitor);
            let start = 0_u32.wrapping_sub(500);
            monitor.note(0, [(1, source(start, start))]);
            monitor.note(1, [(1, sink(start, start))]);
            let mut model = Model {
                rng: generator(seed, 0, "test"),
                taken: start,
                accepted: start,
                freed: start,
                returned: start,
            };
            let mut notes: [VecDeque<_>; 2] = Default::default();
            for cycle in 2..4000 {
                model.step();
                notes[0].push_back((cycle, source(model.taken, model.returned)));
                notes[1].push_back((cycle, sink(model.accepted, model.freed)));
            }
            let wrong = match seed % 4 {
                0 => (
                    0,
                    source(model.returned.wrapping_add(CREDITS + 1), model.returned),
                ),
                1 => (1, sink(model.taken.wrapping_add(1), model.freed)),
                2 => (1, sink(model.accepted, model.accepted.wrapping_add(1))),
                _ => (0, source(model.taken, model.freed.wrapping_add(1))),
            };
            // Cards hand their notes in a window at a time, in either order.
            for end in (0..4000).step_by(125) {
                let order = if seed % 2 == 0 { [0, 1] } else { [1, 0] };
                for card in order {
                    let notes = &mut notes[card];
                    let due = notes.partition_point(|note| note.0 < end + 125);
                    monitor.note(card, notes.drain(..due).collect::<Vec<_>>());
                }
                assert_eq!(monitor.check(), Ok(()), "seed {seed}");
            }
            assert_eq!(monitor.checks(), 3999, "one a cycle");
            monitor.note(wrong.0, [(4321, wrong.1)]);
            let broken = monitor.check().expect_err("a wrong number passed");
            let place = (broken.cycle, broken.card, broken.pair);
            assert_eq!(place, (4321, 0, 3), "seed {seed}");
            assert_eq!((broken.remote_card, broken.remote_pair), (1, 5));
        }
    }

    #[test]
    fn puts_take_numbers_without_credit_and_messages_do_not() {
        let put = |taken| Change::Source {
            pair: 3,
            taken,
            returned: 0,
            put: true,
        };
        let most = CREDITS + u32::from(MAX_UNACKNOWLEDGED);
        let mut monitor = CreditMonitor::new(2);
        connect(&mut monitor);
        monitor.note(0, [(1, source(CREDITS, 0))]);
        monitor.note(0, (CREDITS..most).map(|k| (2 + u64::from(k), put(k + 1))));
        // One comes back.
        monitor.note(1, [(50, sink(1, 1))]);
        monitor.note(0, [(60, source(most, 1))]);
        assert_eq!(monitor.check(), Ok(()));
        for wrong in [source(most + 1, 1), source(most + 2, 1)] {
            let mut monitor = CreditMonitor::new(2);
            connect(&mut monitor);
            monitor.note(0, (0..most).map(|k| (u64::from(k), put(k + 1))));
            monitor.note(1, [(50, sink(1, 1))]);
            monitor.note(0, [(60, source(most, 1)), (70, wrong)]);
            assert_eq!(monitor.check().map_err(|broken| broken.cycle), Err(70));
        }
        let mut monitor = CreditMonitor::new(2);
        connect(&mut monitor);
        monitor.note(0, (0..=most).map(|k| (u64::from(k), put(k + 1))));
        let beyond = monitor.check().map_err(|broken| broken.cycle);
        assert_eq!(beyond, Err(u64::from(most)), "more than puts may take");
    }

    #[test]
    fn what_adds_up_only_at_the_end_of_the_window_is_found() {
        let mut monitor = CreditMonitor::new(2);
        connect(&mut monitor);
        // Accepted in cycle 10 what is only taken in cycle 11.
        monitor.note(0, [(11, source(1, 0))]);
        monitor.note(1, [(10, sink(1, 0))]);
        assert_eq!(monitor.check().map_err(|broken| broken.cycle), Err(10));
    }

    #[test]
    fn changes_of_one_cycle_count_together() {
        let mut monitor = CreditMonitor::new(2);
        connect(&mut monitor);
        monitor.note(1, [(10, sink(1, 0))]);
        monitor.note(0, [(10, source(1, 0))]);
        assert_eq!(monitor.check(), Ok(()));
    }

    #[test]
    fn a_pair_is_checked_only_while_both_ends_name_each_other() {
        let mut monitor = CreditMonitor::new(2);
        let wrong = [(5, source(CREDITS + 1, 0))];
        let to = |card, pair, remote| Change::Connect {
            pair,
            card,
            remote,
            credits: CREDITS,
            cookie: 77,
        };
        monitor.note(0, [(0, to(1, 3, 5))]);
        monitor.note(0, wrong);
        assert_eq!(monitor.check(), Ok(()));
        monitor.note(1, [(6, to(0, 5, 2))]);
        monitor.note(0, wrong);
        assert_eq!(monitor.check(), Ok(()));
        monitor.note(1, [(7, Change::Forget { pair: 5 }), (7, to(0, 5, 3))]);
        monitor.note(0, [(8, source(CREDITS + 1, 0))]);
        assert_eq!(monitor.check().map_err(|broken| broken.cycle), Err(8));
    }

    #[test]
    fn a_pair_that_is_opened_anew_starts_at_zero() {
        let mut monitor = CreditMonitor::new(2);
        connect(&mut monitor);
        monitor.note(0, [(1, source(100, 98))]);
        monitor.note(1, [(1, sink(99, 98))]);
        assert_eq!(monitor.check(), Ok(()));
        monitor.note(0, [(2, Change::Forget { pair: 3 })]);
        monitor.note(1, [(2, Change::ForgetAll)]);
        connect(&mut monitor);
        monitor.note(0, [(3, source(1, 0))]);
        assert_eq!(monitor.check(), Ok(()));
        // Set once more, it starts anew.
        monitor.note(0, [(4, source(2, 0))]);
        assert_eq!(monitor.check(), Ok(()));
        connect(&mut monitor);
        assert_eq!(monitor.check(), Ok(()));
        monitor.note(1, [(5, sink(1, 0))]);
        assert!(monitor.check().is_err());
    }

    #[test]
    fn ends_of_two_connections_are_not_held_to_each_other() {
        let mut monitor = CreditMonitor::new(2);
        connect(&mut monitor);
        monitor.note(0, [(1, source(3, 1))]);
        monitor.note(1, [(1, sink(2, 1))]);
        // Card 1 has been reset and is connected anew; card 0 hasn't heard of it.
        let anew = Change::Connect {
            pair: 5,
            card: 0,
            remote: 3,
            credits: CREDITS,
            cookie: 78,
        };
        monitor.note(1, [(2, Change::ForgetAll), (3, anew)]);
        monitor.note(0, [(4, source(4, 1))]);
        assert_eq!(monitor.check(), Ok(()));
    }

    #[test]
    fn connections_are_learnt_from_control_requests() {
        let request = |operation: Operation, setup: PairSetup| ControlMonitor {
            valid: true,
            operation: operation.code(),
            index: 3,
            data: setup.to_words(),
        };
        let setup = PairSetup {
            remote_mac: mac(2),
            remote_pair: 5,
            remote_credits: 6,
            cookie: 0x1234_5678,
            ..PairSetup::default()
        };
        let connected = Change::Connect {
            pair: 3,
            card: 2,
            remote: 5,
            credits: 6,
            cookie: 0x1234_5678,
        };
        let set = request(Operation::PairSet, setup);
        assert_eq!(Change::of_control(&set), Some(connected));
        let idle = ControlMonitor {
            valid: false,
            ..set
        };
        assert_eq!(Change::of_control(&idle), None);
        let nobody = PairSetup {
            remote_mac: 1,
            ..setup
        };
        let forgotten = Some(Change::Forget { pair: 3 });
        for (operation, setup) in [
            (Operation::PairSet, nobody),
            (Operation::PairClear, PairSetup::default()),
        ] {
            let request = request(operation, setup);
            assert_eq!(Change::of_control(&request), forgotten);
        }
        let other = request(Operation::PairRead, setup);
        assert_eq!(Change::of_control(&other), None);
    }

    #[test]
    fn the_build_id_is_learnt_from_the_mailbox() {
        let mut watch = MailboxWatch::default();
        let access = |offset, write| Access {
            tag: None,
            start: 0,
            offset,
            write,
        };
        let mut words = [0; Identity::COUNT];
        Identity {
            build_id: 0x0123_4567_89ab_cdef,
            ..Identity::default()
        }
        .to_words(&mut words);
        let mut ask = |command: Command, status: MailboxStatus| {
            watch.observe(&access(MAILBOX_COMMAND, Some(command.code().into())), 0);
            watch.observe(&access(MAILBOX_REQUEST, Some(1)), 0);
            watch.observe(&access(MAILBOX_RESULT, None), status.code().into());
            for (word, data) in (1..).zip(words) {
                watch.observe(&access(MAILBOX_RESULT + 4 * word, None), data);
            }
            watch.build_id()
        };
        // Another command's answer says nothing, nor does a refusal.
        assert_eq!(ask(Command::QueryPair, MailboxStatus::Ok), None);
        assert_eq!(ask(Command::Identify, MailboxStatus::Busy), None);
        let known = Some(0x0123_4567_89ab_cdef);
        assert_eq!(ask(Command::Identify, MailboxStatus::Ok), known);
        watch.observe(&access(CONTROL, Some(CONTROL_RUN)), 0);
        assert_eq!(watch.build_id(), known);
        watch.observe(&access(CONTROL, Some(0)), 0);
        assert_eq!(watch.build_id(), None, "other firmware may come");
    }
}
