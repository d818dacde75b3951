//! How many messages each card has acknowledged, as the links see it: what is acknowledged and has no receive is kept by its card, whatever the pattern and the
//! memory's latency are.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use abi::wire::{FrameHeader, FrameType};
use sim::fabric::{Link, Passing, Tap};

/// A card, and the number of a pair there.
type End = (usize, u16);

/// What the ends of pairs have acknowledged, and how many frames with messages have gone.
#[derive(Clone, Default)]
pub(super) struct Acknowledged {
    ends: Arc<Mutex<HashMap<End, VecDeque<Said>>>>,
    frames: Arc<AtomicU64>,
}

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
        let Self { ends, frames } = self.clone();
        move |passing: Passing, out: &mut Vec<Passing>| {
            if let Ok(header) = FrameHeader::parse(&passing.frame.bytes)
                && let Some(FrameType::Eager | FrameType::Acknowledge) =
                    FrameType::from_code(header.frame_type)
            {
                if header.frame_type == FrameType::Eager.code() {
                    frames.fetch_add(1, Ordering::Relaxed);
                }
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

    /// Frames with messages that have gone, those that went again too.
    pub(super) fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    /// Messages that a card has acknowledged of a pair. A host hears of them when a frame that left with the acknowledgement would be at the other card: what links
    /// carry is known one latency after the event at the earliest, so that figures don't depend on which thread of the simulation is first.
    pub(super) fn of(&self, card: usize, pair: u16, now: u64) -> usize {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
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
