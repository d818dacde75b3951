//! How many messages each card has acknowledged, as the links see it: what is acknowledged and has no receive is kept by its card, whatever the pattern and the
//! memory's latency are.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use abi::wire::{FrameHeader, FrameType};
use sim::fabric::{Link, Passing, Tap};

/// A card, and the number of a pair there.
type End = (usize, u16);

/// What the ends of pairs have acknowledged.
#[derive(Clone, Default)]
pub(super) struct Acknowledged(Arc<Mutex<HashMap<End, VecDeque<Said>>>>);

/// A frame has said how many messages its sender has.
#[derive(Clone, Copy, Debug)]
struct Said {
    /// Cycle of the frame's last beat at its sender.
    cycle: u64,
    messages: u32,
}

impl Acknowledged {
    /// What notes them.
    pub(super) fn tap(&self) -> impl Tap + 'static {
        let Self(ends) = self.clone();
        move |passing: Passing, out: &mut Vec<Passing>| {
            if let Ok(header) = FrameHeader::parse(&passing.frame.bytes)
                && let Some(FrameType::Eager | FrameType::Acknowledge) =
                    FrameType::from_code(header.frame_type)
            {
                let mut ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
                let said = ends.entry((passing.source, header.source_pair));
                said.or_default().push_back(Said {
                    cycle: passing.frame.last,
                    messages: header.acknowledge,
                });
            }
            out.push(passing);
        }
    }

    /// Messages that a card has acknowledged of a pair. A host hears of them when a frame that left with the acknowledgement would be at the other card: what links
    /// carry is known one latency after the event at the earliest, so that figures don't depend on which thread of the simulation is first.
    pub(super) fn of(&self, card: usize, pair: u16, now: u64) -> usize {
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(said) = ends.get_mut(&(card, pair)) else {
            return 0;
        };
        let known = |said: &Said| said.cycle + u64::from(Link::default().latency) <= now;
        // The last that is known stays.
        while said.get(1).is_some_and(known) {
            said.pop_front();
        }
        let last = said.front().filter(|said| known(said));
        last.map_or(0, |said| said.messages as usize)
    }
}
