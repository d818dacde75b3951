//! Host memory behind AXI4 as a subordinate that keeps the rules and looks whether the manager does.
//!
//! ```text
//!   AR ─► bursts read, each with a latency ─► R        a window of memory, with a hole
//!   AW ─► bursts written ─┐                            in it that answers with errors
//!   W ──► beats ──────────┴─► memory ─► B
//! ```

use std::collections::VecDeque;

use rand::Rng;

use super::{Bench, rate};

/// Bytes of the window.
pub const WINDOW: usize = 0x8000;

/// What a beat of an address channel said.
type Address = (u64, u64);

struct Burst {
    address: u64,
    beats: u64,
    due: u64,
}

struct Answer {
    error: bool,
    due: u64,
}

/// The memory and the bus to it.
pub struct Memory {
    /// Address of the first byte.
    pub base: u64,
    /// Contents.
    pub bytes: Vec<u8>,
    /// Offsets that answer with an error.
    pub hole: std::ops::Range<usize>,
    /// Write responses given so far.
    pub answered: u64,
    /// Bursts taken so far, of either kind.
    pub bursts: u64,
    /// The manager is quiet: what it owes may be beats without a strobe.
    pub quiet: bool,
    /// It takes nothing and answers nothing.
    pub stopped: bool,
    latency: u64,
    willing: f64,
    busy: f64,
    cycle: u64,
    reads: VecDeque<Burst>,
    read_offer: Option<(u64, u64, bool)>,
    writes: VecDeque<Burst>,
    beats: VecDeque<(u64, u64, bool)>,
    answers: VecDeque<Answer>,
    answer_offer: bool,
    failed: bool,
    done_beats: u64,
    held_ar: Option<Address>,
    held_aw: Option<Address>,
    held_w: Option<(u64, u64, u64)>,
}

impl Memory {
    /// A memory of random contents at a random place, with random speed.
    pub fn random(rng: &mut impl Rng) -> Self {
        let places = [0, 0x1000, 0x7_ffff_8000, u64::MAX - (WINDOW as u64 - 1)];
        Memory {
            base: places[rng.random_range(0..places.len())],
            bytes: (0..WINDOW).map(|_| rng.random()).collect(),
            hole: 0..0,
            latency: [0, 3, 31][rng.random_range(0..3)],
            willing: rate(rng),
            busy: rate(rng),
            answered: 0,
            bursts: 0,
            quiet: false,
            stopped: false,
            cycle: 0,
            reads: VecDeque::new(),
            read_offer: None,
            writes: VecDeque::new(),
            beats: VecDeque::new(),
            answers: VecDeque::new(),
            answer_offer: false,
            failed: false,
            done_beats: 0,
            held_ar: None,
            held_aw: None,
            held_w: None,
        }
    }

    /// The same, as fast as a bus can be.
    pub fn fast(self) -> Self {
        Memory {
            latency: 0,
            willing: 1.0,
            busy: 1.0,
            ..self
        }
    }

    /// Whether every burst has been answered.
    pub fn is_idle(&self) -> bool {
        self.reads.is_empty()
            && self.read_offer.is_none()
            && self.writes.is_empty()
            && self.beats.is_empty()
            && self.answers.is_empty()
    }

    fn place(&self, address: u64) -> usize {
        let offset = address.wrapping_sub(self.base);
        assert!(offset < WINDOW as u64, "{address:#x} is outside the memory");
        offset as usize
    }

    fn is_bad(&self, address: u64) -> bool {
        let place = self.place(address);
        place < self.hole.end && place + 8 > self.hole.start
    }

    /// Drives the inputs of the block's read channels for this cycle.
    pub fn drive_read(&mut self, bench: &mut Bench, rng: &mut impl Rng) {
        let takes = !self.stopped && rng.random_bool(self.willing);
        bench.set("m_axi_arready", takes);
        if !self.stopped
            && self.read_offer.is_none()
            && let Some(burst) = self.reads.front_mut()
            && burst.due <= self.cycle
            && rng.random_bool(self.busy)
        {
            let (address, last) = (burst.address, burst.beats == 1);
            burst.address = address.wrapping_add(8);
            burst.beats -= 1;
            if last {
                self.reads.pop_front();
            }
            let place = self.place(address);
            let mut word = [0; 8];
            word.copy_from_slice(&self.bytes[place..place + 8]);
            let response = if self.is_bad(address) {
                rng.random_range(2..4)
            } else {
                0
            };
            self.read_offer = Some((u64::from_le_bytes(word), response, last));
        }
        bench.set("m_axi_rvalid", self.read_offer.is_some());
        let idle = (rng.random(), rng.random_range(0..4), rng.random());
        let (data, response, last) = self.read_offer.unwrap_or(idle);
        bench.set("m_axi_rdata", data);
        bench.set("m_axi_rresp", response);
        bench.set("m_axi_rlast", last);
    }

    /// Looks at the read channels before the edge.
    pub fn observe_read(&mut self, bench: &Bench, rng: &mut impl Rng) {
        if let Some((address, length)) = address_channel(bench, "ar", &mut self.held_ar) {
            let due = self.due(rng);
            self.bursts += 1;
            self.reads.push_back(Burst {
                address,
                beats: length + 1,
                due,
            });
        }
        if self.read_offer.is_some() && bench.is("m_axi_rready") {
            self.read_offer = None;
        }
    }

    fn due(&self, rng: &mut impl Rng) -> u64 {
        self.cycle + 1 + rng.random_range(0..=self.latency)
    }

    /// Drives the inputs of the block's write channels for this cycle.
    pub fn drive_write(&mut self, bench: &mut Bench, rng: &mut impl Rng) {
        for ready in ["m_axi_awready", "m_axi_wready"] {
            let takes = !self.stopped && rng.random_bool(self.willing);
            bench.set(ready, takes);
        }
        if let Some(answer) = self.answers.front() {
            self.answer_offer |=
                !self.stopped && answer.due <= self.cycle && rng.random_bool(self.busy);
            bench.set(
                "m_axi_bresp",
                if answer.error {
                    rng.random_range(2..4)
                } else {
                    0_u64
                },
            );
        } else {
            bench.set("m_axi_bresp", rng.random_range(0..4_u64));
        }
        bench.set("m_axi_bvalid", self.answer_offer);
    }

    /// Looks at the write channels before the edge.
    pub fn observe_write(&mut self, bench: &Bench, rng: &mut impl Rng) {
        if let Some((address, length)) = address_channel(bench, "aw", &mut self.held_aw) {
            self.bursts += 1;
            self.writes.push_back(Burst {
                address,
                beats: length + 1,
                due: 0,
            });
        }
        let beat = bench.is("m_axi_wvalid").then(|| {
            let of = |name| bench.get(name);
            (of("m_axi_wdata"), of("m_axi_wstrb"), of("m_axi_wlast"))
        });
        assert!(self.held_w.is_none() || beat == self.held_w, "W is held");
        self.held_w = beat.filter(|_| !bench.is("m_axi_wready"));
        if let Some((data, strobe, last)) = beat.filter(|_| bench.is("m_axi_wready")) {
            assert!(strobe != 0 || self.quiet, "a beat that writes nothing");
            self.beats.push_back((data, strobe, last != 0));
        }
        if self.answer_offer && bench.is("m_axi_bready") {
            self.answer_offer = false;
            self.answers.pop_front();
            self.answered += 1;
        }
        while let Some(burst) = self.writes.front()
            && let Some((data, strobe, last)) = self.beats.pop_front()
        {
            let address = burst.address.wrapping_add(8 * self.done_beats);
            self.done_beats += 1;
            assert_eq!(
                last,
                self.done_beats == burst.beats,
                "WLAST at {address:#x}"
            );
            let bad = self.is_bad(address);
            self.failed |= bad;
            let place = self.place(address);
            for lane in (0..8).filter(|lane| !bad && strobe >> lane & 1 == 1) {
                self.bytes[place + lane] = data.to_le_bytes()[lane];
            }
            if last {
                let due = self.due(rng);
                self.answers.push_back(Answer {
                    error: self.failed,
                    due,
                });
                self.failed = false;
                self.done_beats = 0;
                self.writes.pop_front();
            }
        }
    }

    /// The edge.
    pub fn step(&mut self) {
        self.cycle += 1;
    }
}

/// A transfer on an address channel, if there is one, after looking whether it is a legal one.
fn address_channel(bench: &Bench, channel: &str, held: &mut Option<Address>) -> Option<Address> {
    let of = |signal: &str| bench.get(&format!("m_axi_{channel}{signal}"));
    let offer = (of("valid") != 0).then(|| (of("addr"), of("len")));
    assert!(held.is_none() || *held == offer, "{channel} is held");
    *held = offer.filter(|_| of("ready") == 0);
    let (address, length) = offer?;
    assert_eq!(of("size"), 3, "8-byte beats");
    assert_eq!(of("burst"), 1, "INCR");
    assert_eq!(of("id"), 0, "one id");
    assert_eq!(address % 8, 0, "whole beats");
    assert!(length < 16, "16 beats at most");
    let last = address + 8 * length;
    assert_eq!(address / 4096, last / 4096, "a burst crosses 4 KiB");
    offer.filter(|_| of("ready") != 0)
}
