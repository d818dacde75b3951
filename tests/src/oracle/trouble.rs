//! What goes wrong around a card: wires that stop for a while, in either direction, and memory that answers with errors.
//!
//! ```text
//!  sim's card ── m_axis not ready: Cluster::stall ──────────────┐
//!      │                                                        ▼
//!      └── pins ─► Watched ─► Troubled ─► Verilated card     the same plan
//!                               ├ s_axis: a beat that hasn't been offered isn't
//!                               └ r, b: a burst is answered SLVERR; what it writes is without strobes
//! ```
//!
//! Which bursts fail is noted with all those of the memory that may fail, so that the same accesses of the model fail in the same bytes.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use sim::pins::{AddressBeat, BEAT_BYTES, CardModel, Inputs, Outputs, StreamBeat};
use sim::seed::generator;

use super::{Event, Seen};

/// The memory's answer to an access that fails though its address is mapped.
const RESP_SLVERR: u8 = 2;
/// Cycles for which stops are drawn beforehand: longer than any program runs.
const HORIZON: u64 = 6_000_000;

/// How long a wire goes on, how long it mostly stops, and how long it stops now and then: cycles, each at most.
#[derive(Clone, Copy, Debug)]
pub struct Stops {
    /// It goes on.
    pub open: u64,
    /// It mostly stops.
    pub short: u64,
    /// One stop of sixteen.
    pub long: u64,
}

impl Stops {
    /// When the wire of a card stops in one direction.
    pub fn draw(&self, seed: u64, card: usize, direction: &str) -> Vec<Range<u64>> {
        let mut rng = generator(seed, card, direction);
        let mut now = 0;
        let mut all = Vec::new();
        while now < HORIZON {
            now += rng.random_range(1..=self.open);
            let longest = match rng.random_ratio(1, 16) {
                true => self.long,
                false => self.short,
            };
            let end = now + rng.random_range(1..=longest);
            all.push(now..end);
            now = end;
        }
        all
    }
}

/// Memory that now and then answers with an error: card addresses, and that one burst in how many fails.
pub type Fragile = Arc<Mutex<Vec<(Range<u64>, u32)>>>;

/// A burst under way.
#[derive(Clone, Copy, Debug)]
struct Burst {
    /// Beats that haven't passed.
    beats: u16,
    /// It fails with this beat, or with its answer.
    fails: Option<u16>,
}

/// A card with trouble around it.
pub struct Troubled<C> {
    inner: C,
    cycle: u64,
    log: Seen,
    rng: ChaCha8Rng,
    /// Cycles in which nothing new is offered to `s_axis`.
    stops: VecDeque<Range<u64>>,
    /// A beat is on offer, and stays so.
    offered: bool,
    fragile: Fragile,
    reads: VecDeque<Burst>,
    /// Write bursts whose data haven't all passed, and those that aren't answered.
    data: VecDeque<Burst>,
    answers: VecDeque<Burst>,
    /// Write data that came before their address: whole bursts, and whether one has begun. They are in memory, and don't fail.
    ahead: usize,
    begun: bool,
}

impl<C: CardModel> Troubled<C> {
    /// A card whose wire doesn't bring anything in some cycles, and whose memory fails by chance.
    pub fn new(
        inner: C,
        log: Seen,
        stops: Vec<Range<u64>>,
        fragile: Fragile,
        rng: ChaCha8Rng,
    ) -> Self {
        Self {
            inner,
            cycle: 0,
            log,
            rng,
            stops: stops.into(),
            offered: false,
            fragile,
            reads: VecDeque::new(),
            data: VecDeque::new(),
            answers: VecDeque::new(),
            ahead: 0,
            begun: false,
        }
    }

    fn is_stopped(&mut self) -> bool {
        while self
            .stops
            .front()
            .is_some_and(|stop| stop.end <= self.cycle)
        {
            self.stops.pop_front();
        }
        let stops = self.stops.front();
        !self.offered && stops.is_some_and(|stop| stop.start <= self.cycle)
    }

    /// A burst of so many beats begins, and fails if it `may` and chance will have it.
    fn begins(&mut self, beat: &AddressBeat, write: bool, may: bool) -> Burst {
        let beats = u16::from(beat.len) + 1;
        let mut burst = Burst { beats, fails: None };
        let fragile = self.fragile.lock().expect("no panic");
        let mut ranges = fragile.iter();
        let Some(&(_, one_in)) = ranges.find(|(range, _)| range.contains(&beat.addr)) else {
            return burst;
        };
        drop(fragile);
        let place = self.rng.random_range(1..=beats);
        let failed = self.rng.random_ratio(1, one_in) && may;
        burst.fails = failed.then_some(place);
        let first = beat.addr - beat.addr % BEAT_BYTES as u64;
        let access = Event::Access {
            write,
            address: beat.addr,
            end: first + u64::from(beats) * BEAT_BYTES as u64,
            failed,
        };
        let mut log = self.log.lock().expect("no panic");
        log.push((self.cycle, access));
        burst
    }

    /// What the card is given in place of what there is.
    fn answers(&self, given: &mut Inputs) {
        let read = self.reads.front();
        if given.r.valid && read.is_some_and(|burst| burst.fails == Some(burst.beats)) {
            given.r.resp = RESP_SLVERR;
        }
        let written = self.answers.front();
        if given.b.valid && written.is_some_and(|burst| burst.fails.is_some()) {
            given.b.resp = RESP_SLVERR;
        }
    }

    fn follow_bursts(&mut self, inputs: &Inputs, outputs: &mut Outputs) {
        if inputs.r.valid
            && outputs.r_ready
            && let Some(burst) = self.reads.front_mut()
        {
            burst.beats -= 1;
            if burst.beats == 0 {
                self.reads.pop_front();
            }
        }
        if outputs.ar.valid && inputs.ar_ready {
            let burst = self.begins(&outputs.ar, false, true);
            self.reads.push_back(burst);
        }
        if inputs.b.valid && outputs.b_ready {
            self.answers.pop_front();
        }
        if outputs.w.valid {
            let last = outputs.w.last && inputs.w_ready;
            match self.data.front() {
                Some(burst) => {
                    if burst.fails.is_some() {
                        outputs.w.strb = 0;
                    }
                    if last {
                        self.data.pop_front();
                    }
                }
                None => {
                    self.begun = !last;
                    self.ahead += usize::from(last);
                }
            }
        }
        if outputs.aw.valid && inputs.aw_ready {
            let is_new = self.ahead == 0 && !self.begun;
            let burst = self.begins(&outputs.aw, true, is_new);
            self.answers.push_back(burst);
            match self.ahead.checked_sub(1) {
                Some(less) => self.ahead = less,
                None => {
                    self.begun = false;
                    self.data.push_back(burst);
                }
            }
        }
    }
}

impl<C: CardModel> CardModel for Troubled<C> {
    fn step(&mut self, inputs: &Inputs, outputs: &mut Outputs) {
        let mut given = *inputs;
        let stopped = self.is_stopped();
        if stopped {
            given.rx = StreamBeat::default();
        }
        self.answers(&mut given);
        self.inner.step(&given, outputs);
        self.offered = given.rx.valid && !outputs.rx_ready;
        if stopped {
            outputs.rx_ready = false;
        }
        if !inputs.reset {
            self.follow_bursts(inputs, outputs);
        }
        self.cycle += 1;
    }

    forwards_all_but_steps!();
}
