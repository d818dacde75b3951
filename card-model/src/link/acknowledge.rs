//! The numbers that every frame of a pair carries for the reverse direction, and the control frames that carry them alone.

use abi::status::Status;
use abi::wire::FrameType;

use crate::breaks::Break;
use crate::output::{Reason, Update};

/// Numbers of a pair's receiving side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinkNumbers {
    /// Messages that are safe here.
    pub accepted: u32,
    /// Envelopes that need no storage any more.
    pub freed: u32,
    /// Which of the latest accepted were refused, the last one's bit first.
    pub refused: u16,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sink {
    connected: bool,
    failed: bool,
    numbers: SinkNumbers,
    /// The numbers have changed since a frame carried them.
    changed: bool,
    /// A control frame is due whatever the numbers are: to answer the peer, to ask it, to say that a request of it is missing, or that the pair has
    /// failed.
    answers: bool,
    asks: bool,
    misses: bool,
    announces: bool,
    /// It was closed on this side.
    closed: bool,
}

impl Sink {
    fn is_sound(&self) -> bool {
        self.connected && !self.failed
    }
}

/// A control frame that a pair owes its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owed {
    /// Type.
    pub frame_type: FrameType,
    /// It says that a request of the peer is missing.
    pub misses: bool,
    /// It says nothing but the numbers: a message's frame that carries them says as much.
    pub only_numbers: bool,
}

/// The receiving numbers of all pairs.
#[derive(Clone, Debug)]
pub struct Acknowledge {
    pairs: Vec<Sink>,
    broken: Break,
}

impl Acknowledge {
    /// So many pairs, none of which is connected.
    pub fn new(pairs: usize) -> Self {
        Self {
            pairs: vec![Sink::default(); pairs],
            broken: Break::None,
        }
    }

    /// Breaks the room on purpose.
    pub fn break_on_purpose(&mut self, broken: Break) {
        self.broken = broken;
    }

    fn sound(&mut self, pair: u16) -> Option<&mut Sink> {
        let sink = self.pairs.get_mut(usize::from(pair))?;
        sink.is_sound().then_some(sink)
    }

    /// Whether a pair is connected and hasn't failed: its numbers move on, and its peer hears of them.
    pub fn is_sound(&self, pair: u16) -> bool {
        let sink = self.pairs.get(usize::from(pair));
        sink.is_some_and(Sink::is_sound)
    }

    /// Whether the numbers of a pair have changed since a frame carried them.
    pub fn has_news(&self, pair: u16) -> bool {
        let sink = self.pairs.get(usize::from(pair));
        sink.is_some_and(|sink| sink.changed)
    }

    /// Numbers of a pair.
    pub fn numbers(&self, pair: u16) -> SinkNumbers {
        let sink = self.pairs.get(usize::from(pair));
        sink.map_or_else(SinkNumbers::default, |sink| sink.numbers)
    }

    /// Connects a pair or forgets it.
    pub fn set(&mut self, pair: u16, connected: bool) {
        if let Some(sink) = self.pairs.get_mut(usize::from(pair)) {
            *sink = Sink {
                connected,
                ..Sink::default()
            };
        }
    }

    /// Envelopes have moved on: a control frame is due, unless a message's frame is sent before it.
    pub fn update(&mut self, update: &Update) {
        let Some(sink) = self.sound(update.pair) else {
            return;
        };
        let numbers = &mut sink.numbers;
        if update.accepted {
            numbers.accepted = numbers.accepted.wrapping_add(1);
            numbers.refused = numbers.refused << 1 | u16::from(update.refused);
        }
        numbers.freed = numbers.freed.wrapping_add(update.freed.into());
        sink.changed = true;
    }

    /// A control frame is wanted.
    pub fn mark(&mut self, pair: u16, reason: Reason) {
        let untold = self.broken == Break::GapUntold;
        if let Some(sink) = self.sound(pair) {
            sink.answers = true;
            sink.asks |= reason == Reason::Ask;
            sink.misses |= reason == Reason::Gap && !untold;
        }
    }

    /// A pair has failed: its next frame says so, and is its last. Of an orderly end the firmware has told the peer itself.
    pub fn fail(&mut self, pair: u16, status: u8) {
        let told = self.broken != Break::FailureUntold;
        let closed = status == Status::Flushed.code() && self.broken != Break::CloseToldAsFailure;
        if let Some(sink) = self.sound(pair) {
            sink.failed = true;
            sink.announces = told && status != Status::PeerClosed.code();
            sink.closed = closed;
        }
    }

    /// The control frame that is due, if there is one.
    pub fn due(&self, pair: u16) -> Option<Owed> {
        let sink = self.pairs.get(usize::from(pair))?;
        let frame_type = match (sink.announces, sink.asks) {
            (true, _) if sink.closed => FrameType::PairClosed,
            (true, _) => FrameType::PairFailed,
            (false, true) => FrameType::Ask,
            (false, false) => FrameType::Acknowledge,
        };
        let due = sink.announces || ((sink.changed || sink.answers) && !sink.failed);
        due.then_some(Owed {
            frame_type,
            misses: sink.misses && !sink.announces,
            only_numbers: !sink.announces && !sink.answers,
        })
    }

    /// A frame of the pair begins: it carries the numbers as they are.
    pub fn carried(&mut self, pair: u16) {
        if let Some(sink) = self.pairs.get_mut(usize::from(pair)) {
            sink.changed = false;
        }
    }

    /// The control frame that is due is decided upon: answers and questions that come before it begins need another one. The numbers that it carries are
    /// those of when it [begins](Self::carried), and are news until then.
    pub fn offer(&mut self, pair: u16) -> Option<Owed> {
        let owed = self.due(pair)?;
        let sink = self.pairs.get_mut(usize::from(pair))?;
        sink.answers = false;
        sink.asks = false;
        sink.misses = false;
        sink.announces = false;
        Some(owed)
    }
}
