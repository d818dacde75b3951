//! One card with what is around it, cycle by cycle.
//!
//! ```text
//!   registers ◄─ LiteMaster ─┐             ┌─ Memory ─► mapped buffers
//!                            ├─ CardModel ─┤
//!   frames    ◄── Sink ◄─────┤             ├─► interrupts, log, monitors
//!             ──► Source ────┘             └─► moments, waveform
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use abi::register::INTERRUPTS;
use rustix::time::{ClockId, clock_gettime};

use crate::fabric::{Arrival, mac};
use crate::fault::Span;
use crate::lite::{Access, Finished, LiteMaster};
use crate::log::LogByte;
use crate::matching::{MatchReport, MatchWatch};
use crate::memory::{Memory, MemoryConfig, MemoryCount};
use crate::monitor::{Change, MailboxWatch};
use crate::pins::{CardModel, Inputs, Outputs};
use crate::protocol::Violation;
use crate::seed::{BackPressure, generator};
use crate::stream::{Frame, Sink, Source};
use crate::timing::{Record, Recorder};
use rand::Rng;

/// Cycles for which the reset pin is high at the start.
pub const RESET_CYCLES: u64 = 4;

/// Why a card can't go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CardFault {
    /// It broke a rule of a bus.
    Protocol(Violation),
    /// An assertion in its gates failed; what it says.
    Assertion(String),
    /// Its matching lists gave a reply that the reference doesn't, or a command to them names what there isn't; both.
    Matching(String),
    /// Its waveform can't be written.
    Waves(String),
}

impl fmt::Display for CardFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protocol(violation) => violation.fmt(f),
            Self::Assertion(text) => write!(f, "an assertion failed: {text}"),
            Self::Matching(text) => write!(f, "matching: {text}"),
            Self::Waves(text) => write!(f, "the waveform can't be written: {text}"),
        }
    }
}

impl From<Violation> for CardFault {
    fn from(violation: Violation) -> Self {
        Self::Protocol(violation)
    }
}

/// A waveform to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waves {
    /// File.
    pub path: PathBuf,
    /// Cycles that it shows.
    pub cycles: Range<u64>,
}

/// How a card is surrounded.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    pub seed: u64,
    pub memory: MemoryConfig,
    pub pressure: BackPressure,
    /// Cycles in which the network port takes nothing.
    pub stalls: Vec<Range<u64>>,
    /// Cycles in which its memory takes and gives nothing.
    pub memory_stalls: Vec<Span>,
    /// Cycles in which the clock of its processor stands.
    pub firmware_pauses: Vec<Span>,
    /// Cycle in which its power is cut.
    pub power_off: u64,
    pub moments: bool,
    pub matches: bool,
    pub waves: Option<Waves>,
}

/// What a card has done.
#[derive(Clone, Debug, Default)]
pub struct CardReport {
    /// Memory accesses.
    pub memory: MemoryCount,
    /// Frames that the card sent.
    pub frames_sent: u64,
    /// Frames that the card took.
    pub frames_taken: u64,
    /// Most frames that waited at its port at once.
    pub port_queue: usize,
    /// What the matching lists did.
    pub matching: MatchReport,
    /// Build id of the firmware that runs, if the host has asked it with `Identify`.
    pub build_id: Option<u64>,
    /// The firmware's log.
    pub log: Vec<LogByte>,
    /// Moments, if they were asked for.
    pub moments: Vec<Record>,
    /// Time of a processor that the card and what is around it took.
    pub cpu: Duration,
}

/// Ranges in ascending order; those that overlap, or touch, are one.
fn apart(mut ranges: Vec<Range<u64>>) -> VecDeque<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut apart: VecDeque<Range<u64>> = VecDeque::new();
    for range in ranges {
        match apart.back_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => apart.push_back(range),
        }
    }
    apart
}

/// A card and its surroundings.
pub(crate) struct Card {
    model: Box<dyn CardModel>,
    cycle: u64,
    inputs: Inputs,
    outputs: Outputs,
    pub memory: Memory,
    lite: LiteMaster,
    sink: Sink,
    /// By their first cycle; none overlaps another.
    stalls: VecDeque<Range<u64>>,
    memory_stalls: Vec<Span>,
    firmware_pauses: Vec<Span>,
    power_off: u64,
    source: Source,
    mailbox: MailboxWatch,
    recorder: Option<Box<Recorder>>,
    matching: MatchWatch,
    waves: Option<Waves>,
    writing_waves: bool,
    interrupt: u32,
    /// Rising edges of each interrupt line.
    pub interrupts: [u64; INTERRUPTS],
    /// Lines whose rising edge ends [`Card::run`].
    pub watched: u32,
    /// Frames sent since they were last taken away.
    pub sent: Vec<Frame>,
    /// Changes for the monitor since they were last taken away.
    pub changes: Vec<(u64, Change)>,
    /// Last cycle in which something was seen on the pins that isn't the host's doing.
    pub active: u64,
    report: CardReport,
}

impl Card {
    pub fn new(model: Box<dyn CardModel>, card: usize, around: Surroundings) -> Self {
        let Surroundings {
            seed,
            memory,
            pressure,
            stalls,
            memory_stalls,
            firmware_pauses,
            power_off,
            moments,
            matches,
            waves,
        } = around;
        let sizes = model.sizes();
        Self {
            model,
            cycle: 0,
            inputs: Inputs {
                strap_mac: mac(card),
                strap_seed: generator(seed, card, "strap").random(),
                ..Inputs::default()
            },
            outputs: Outputs::default(),
            memory: Memory::new(memory, seed, card),
            lite: LiteMaster::new(pressure, seed, card),
            sink: Sink::new(pressure, seed, card),
            stalls: apart(stalls),
            memory_stalls,
            firmware_pauses,
            power_off,
            source: Source::new(pressure, seed, card),
            mailbox: MailboxWatch::default(),
            recorder: moments.then(Box::default),
            matching: MatchWatch::new(matches, sizes),
            waves,
            writing_waves: false,
            interrupt: 0,
            interrupts: [0; INTERRUPTS],
            watched: 0,
            sent: Vec::new(),
            changes: Vec::new(),
            active: 0,
            report: CardReport::default(),
        }
    }

    /// The next cycle to be run.
    pub const fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Whether its power has been cut.
    pub const fn is_off(&self) -> bool {
        self.power_off <= self.cycle
    }

    /// Queues a register access.
    pub fn access(&mut self, access: Access) {
        self.lite.start(access);
    }

    /// Queues a frame.
    pub fn arrive(&mut self, arrival: Arrival) {
        let Arrival {
            ready,
            source,
            frame,
        } = arrival;
        if !self.is_off() {
            self.source.arrive(ready, source, frame);
        }
    }

    /// Whether nothing is under way between the card and what is around it.
    pub fn is_quiet(&self) -> bool {
        self.is_off() || self.memory.is_idle() && self.lite.is_idle() && self.source.is_idle()
    }

    /// Runs to the start of cycle `until`, or until a register access has ended or a watched interrupt
    /// has risen.
    pub fn run(&mut self, until: u64) -> Result<Option<Finished>, CardFault> {
        if self.is_off() {
            self.cycle = until;
            return Ok(None);
        }
        let start = clock_gettime(ClockId::ThreadCPUTime);
        let result = self.run_segments(until.min(self.power_off));
        if self.is_off() {
            self.memory.unmap_all();
        }
        let end = clock_gettime(ClockId::ThreadCPUTime);
        self.report.cpu += Duration::try_from(end - start).unwrap_or_default();
        result
    }

    /// Starts and ends the waveform between cycles, so that no cycle has to ask.
    fn run_segments(&mut self, until: u64) -> Result<Option<Finished>, CardFault> {
        loop {
            let end = match &self.waves {
                Some(waves) if self.cycle < waves.cycles.start => until.min(waves.cycles.start),
                Some(waves) if self.cycle < waves.cycles.end => {
                    let (path, end) = (waves.path.clone(), waves.cycles.end);
                    if !self.writing_waves {
                        let started = self.model.start_waves(&path);
                        started.map_err(|error| CardFault::Waves(error.to_string()))?;
                        self.writing_waves = true;
                    }
                    until.min(end)
                }
                _ => {
                    self.stop_waves();
                    until
                }
            };
            let cycles = self.run_cycles(end)?;
            if cycles.is_some() || self.cycle >= until || self.cycle < end {
                return Ok(cycles);
            }
        }
    }

    fn stop_waves(&mut self) {
        if self.writing_waves {
            self.model.stop_waves();
            self.writing_waves = false;
        }
    }

    fn run_cycles(&mut self, until: u64) -> Result<Option<Finished>, CardFault> {
        while self.cycle < until {
            let cycle = self.cycle;
            let inputs = &mut self.inputs;
            inputs.reset = cycle < RESET_CYCLES;
            if inputs.reset {
                self.model.step(inputs, &mut self.outputs);
                self.cycle += 1;
                continue;
            }
            self.lite.drive(cycle, &mut inputs.lite);
            let memory = !self.memory_stalls.iter().any(|stall| stall.contains(cycle));
            self.memory.drive(cycle, memory, inputs);
            if !self.firmware_pauses.is_empty() {
                let pauses = |pause: &Span| pause.contains(cycle);
                let paused = self.firmware_pauses.iter().any(pauses);
                self.model.hold_processor_clock(paused);
            }
            while self.stalls.front().is_some_and(|stall| stall.end <= cycle) {
                self.stalls.pop_front();
            }
            let stalled = self
                .stalls
                .front()
                .is_some_and(|stall| stall.start <= cycle);
            inputs.tx_ready = self.sink.drive() && !stalled;
            inputs.rx = self.source.drive(cycle);

            let outputs = &mut self.outputs;
            self.model.step(inputs, outputs);
            self.cycle += 1;
            if let Some(text) = self.model.assertion() {
                return Err(CardFault::Assertion(text));
            }

            self.memory.sample(cycle, inputs, outputs)?;
            if let Some(frame) = self.sink.sample(cycle, inputs.tx_ready, &outputs.tx)? {
                self.report.frames_sent += 1;
                self.sent.push(frame);
            }
            if self.source.sample(outputs.rx_ready).is_some() {
                self.report.frames_taken += 1;
            }
            let busy = outputs.ar.valid
                | outputs.w.valid
                | outputs.tx.valid
                | inputs.rx.valid
                | inputs.r.valid
                | inputs.b.valid
                | (outputs.interrupts != self.interrupt);
            if busy {
                self.active = cycle;
            }
            if outputs.control.valid
                | outputs.source.valid
                | outputs.sink.valid
                | outputs.matching.valid
                | outputs.reply.valid
                | outputs.unit.valid
            {
                self.monitor(cycle)?;
            }
            if self.outputs.gates_reset {
                self.matching.restart();
                self.changes.push((cycle, Change::ForgetAll));
            }
            if let Some(byte) = self.outputs.log {
                self.report.log.push(LogByte { cycle, byte });
            }
            if let Some(recorder) = &mut self.recorder {
                recorder.observe(cycle, &self.inputs, &self.outputs);
            }
            let finished = self
                .lite
                .sample(cycle, &self.inputs.lite, &self.outputs.lite)?;
            let risen = self.outputs.interrupts & !self.interrupt;
            self.interrupt = self.outputs.interrupts;
            if risen != 0 {
                for line in (0..32).filter(|line| risen & 1 << line != 0) {
                    self.interrupts[line] += 1;
                }
            }
            if let Some(finished) = finished {
                if let Ok(data) = finished.result {
                    self.mailbox.observe(&finished.access, data);
                }
                return Ok(Some(finished));
            }
            if risen & self.watched != 0 {
                return Ok(None);
            }
        }
        Ok(None)
    }

    #[cold]
    fn monitor(&mut self, cycle: u64) -> Result<(), CardFault> {
        let Outputs {
            control,
            source,
            sink,
            matching,
            reply,
            unit,
            ..
        } = &self.outputs;
        if let Some(change) = Change::of_control(control) {
            self.changes.push((cycle, change));
        }
        if source.valid {
            let change = Change::Source {
                pair: source.pair,
                taken: source.taken,
                returned: source.returned,
                put: source.put,
            };
            self.changes.push((cycle, change));
        }
        if sink.valid {
            let change = Change::Sink {
                pair: sink.pair,
                accepted: sink.accepted,
                freed: sink.freed,
            };
            self.changes.push((cycle, change));
        }
        let told = self.matching.observe(cycle, matching, reply);
        let told = told.and_then(|()| self.matching.give(unit));
        told.map_err(CardFault::Matching)
    }

    /// What has been done. Ends the waveform.
    pub fn report(&mut self) -> CardReport {
        self.stop_waves();
        let mut report = std::mem::take(&mut self.report);
        report.memory = self.memory.count();
        report.matching = self.matching.take();
        report.build_id = self.mailbox.build_id();
        report.port_queue = self.source.deepest();
        report.moments = self
            .recorder
            .take()
            .map(|recorder| recorder.into_records())
            .unwrap_or_default();
        report
    }
}
