//! The wire from one card to the other: takes its time, and does to some frames what wires do. It loses every frame of a pair that it has cut off.

use std::collections::VecDeque;

use abi::wire::{FrameHeader, FrameType};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use hdl_tests::Bench;

/// Cycles that a frame is late at most.
pub const LATE: u64 = 4000;

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Arrives,
    Lost,
    /// Arrives with a bit changed, or cut off.
    Damaged,
    /// Arrives, and once more later.
    Repeated,
    /// Arrives later than others that left behind it.
    Delayed,
}

/// A frame that the wire has taken.
pub struct Taken {
    pub header: FrameHeader,
    pub bytes: Vec<u8>,
    pub fate: Fate,
}

/// What a wire has done, in frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    pub taken: u64,
    pub lost: u64,
    pub damaged: u64,
    pub repeated: u64,
    pub delayed: u64,
    pub given: u64,
}

struct Frame {
    words: Vec<u64>,
    due: u64,
}

/// One direction.
pub struct Wire {
    /// Of how many frames one has bad luck; none if 0.
    pub trouble: u32,
    /// Nothing happens to messages, only to control frames.
    pub spares_messages: bool,
    /// Pairs of the sender whose frames are all lost.
    pub cut: Vec<u16>,
    pub count: Count,
    latency: u64,
    leaving: Vec<u64>,
    under_way: VecDeque<Frame>,
    arriving: VecDeque<u64>,
    offered: bool,
    busy: f64,
    held: Option<(u64, bool)>,
}

impl Wire {
    pub fn new(trouble: u32, latency: u64, busy: f64) -> Self {
        Wire {
            trouble,
            spares_messages: false,
            cut: vec![],
            count: Count::default(),
            latency,
            leaving: vec![],
            under_way: VecDeque::new(),
            arriving: VecDeque::new(),
            offered: false,
            busy,
            held: None,
        }
    }

    /// Looks at the sender before an edge. With the last word of a frame: what it is and what becomes of it.
    pub fn take(&mut self, bench: &Bench, cycle: u64, rng: &mut ChaCha8Rng) -> Option<Taken> {
        let valid = bench.is("m_axis_tvalid");
        let (word, last) = (bench.get("m_axis_tdata"), bench.is("m_axis_tlast"));
        assert!(
            valid || self.leaving.is_empty(),
            "a frame pauses in cycle {cycle}"
        );
        if let Some(held) = self.held.take() {
            assert!(valid && held == (word, last), "the wire's word changes");
        }
        if !valid || !bench.is("m_axis_tready") {
            self.held = valid.then_some((word, last));
            return None;
        }
        assert_eq!(bench.get("m_axis_tkeep"), 0xff);
        self.leaving.push(word);
        last.then(|| self.pass_on(cycle, rng))
    }

    fn pass_on(&mut self, cycle: u64, rng: &mut ChaCha8Rng) -> Taken {
        let mut words = std::mem::take(&mut self.leaving);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let header = FrameHeader::parse(&bytes).expect("a whole header");
        let spared = self.spares_messages
            && [FrameType::Eager, FrameType::Put]
                .map(FrameType::code)
                .contains(&header.frame_type);
        let fates = [Fate::Lost, Fate::Damaged, Fate::Repeated, Fate::Delayed];
        let fate = match self.trouble > 0 && !spared && rng.random_ratio(1, self.trouble) {
            _ if self.cut.contains(&header.source_pair) => Fate::Lost,
            true => fates[rng.random_range(0..fates.len())],
            false => Fate::Arrives,
        };
        self.count.taken += 1;
        let mut due = cycle + self.latency;
        match fate {
            Fate::Arrives => {}
            Fate::Lost => self.count.lost += 1,
            Fate::Damaged => {
                self.count.damaged += 1;
                let at = rng.random_range(0..words.len());
                match rng.random_range(0..4) {
                    0 if at > 0 => words.truncate(at),
                    _ => words[at] ^= 1 << rng.random_range(0..64),
                }
            }
            Fate::Repeated => {
                self.count.repeated += 1;
                let late = due + rng.random_range(1..=LATE);
                self.insert(words.clone(), late);
            }
            Fate::Delayed => {
                self.count.delayed += 1;
                let most = if rng.random() { LATE / 10 } else { LATE };
                due += rng.random_range(1..=most);
            }
        }
        if fate != Fate::Lost {
            self.insert(words, due);
        }
        Taken {
            header,
            bytes,
            fate,
        }
    }

    /// Behind those that are due no later.
    fn insert(&mut self, words: Vec<u64>, due: u64) {
        let at = self.under_way.partition_point(|frame| frame.due <= due);
        self.under_way.insert(at, Frame { words, due });
    }

    /// Drives the receiver's end for this cycle.
    pub fn give(&mut self, bench: &mut Bench, cycle: u64, rng: &mut ChaCha8Rng) {
        if self.arriving.is_empty()
            && let Some(frame) = self.under_way.pop_front_if(|frame| frame.due <= cycle)
        {
            self.arriving = frame.words.into();
        }
        self.offered |= !self.arriving.is_empty() && rng.random_bool(self.busy);
        bench.set("s_axis_tvalid", self.offered);
        let noise = rng.random();
        let word = self.arriving.front().filter(|_| self.offered);
        bench.set("s_axis_tdata", word.copied().unwrap_or(noise));
        bench.set("s_axis_tkeep", 0xff_u64);
        bench.set("s_axis_tlast", self.arriving.len() == 1);
        bench.set("s_axis_tuser", false);
    }

    /// Looks at the receiver before an edge.
    pub fn given(&mut self, bench: &Bench) {
        if self.offered && bench.is("s_axis_tready") {
            self.offered = false;
            self.arriving.pop_front();
            self.count.given += u64::from(self.arriving.is_empty());
        }
    }
}
