//! Who of the rooms of a card goes next.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What a card can do next: one thing, to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The next frame from the wire is looked at.
    Receive,
    /// The next frame of the card to itself is looked at. It and those from the wire have no order among each other.
    ReceiveOwn,
    /// The next message that has been looked at is delivered.
    Arrive,
    /// The oldest request to fail this pair with this status is carried out: it sends and receives nothing more. Those who ask have no order
    /// among each other; one failure is carried out at a time.
    Fault {
        /// Pair.
        pair: u16,
        /// What its operations complete with: the code of a `Status`.
        status: u8,
    },
    /// The failure that is carried out reaches those who wait for messages: the pair's receives end, one each time, and then its endpoint gets the
    /// event.
    Flush,
    /// The next thing that has happened to the envelopes of a pair is counted: frames tell of it from now on. Pairs have no order among each other. Messages that are
    /// accepted may pass an envelope that is freed when its message has been copied.
    Update {
        /// Pair.
        pair: u16,
        /// It is a message that is accepted.
        accepted: bool,
    },
    /// The next entry of an endpoint's list ring is fetched and carried out.
    List(u8),
    /// The next entry of an endpoint's send ring is fetched, and queued or refused.
    Send(u8),
    /// The next send of a pair that goes back goes out again, or else its oldest waiting one.
    Transmit(u16),
    /// The control frame that a pair owes goes out.
    Control(u16),
    /// The next get of a peer is answered.
    Respond,
    /// The next answer that is in its buffer is taken by the get that it is for.
    Answered,
}

impl Action {
    /// Whether an entry of a ring is read for it.
    pub fn fetches(&self) -> bool {
        matches!(self, Self::List(_) | Self::Send(_))
    }
}

/// Chooses among what can be done.
pub trait Schedule {
    /// Index of one of `actions`, of which there is at least one.
    fn pick(&mut self, actions: &[Action]) -> usize;
}

/// Each in turn: what has been done goes to the end.
#[derive(Clone, Debug, Default)]
pub struct InTurn {
    turns: usize,
}

impl Schedule for InTurn {
    fn pick(&mut self, actions: &[Action]) -> usize {
        self.turns = self.turns.wrapping_add(1);
        self.turns % actions.len()
    }
}

/// As a seed decides.
#[derive(Clone, Debug)]
pub struct Seeded {
    rng: ChaCha8Rng,
}

impl Seeded {
    /// The schedule of a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }
}

impl Schedule for Seeded {
    fn pick(&mut self, actions: &[Action]) -> usize {
        self.rng.random_range(0..actions.len())
    }
}
