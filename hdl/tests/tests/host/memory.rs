//! Host memory as a DMA client sees it: accesses answered in order, after a while, or refused.

use super::bench::{Bench, Outcome, chance, claim};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::collections::{HashMap, HashSet, VecDeque};

/// Words by address, and the addresses that can't be accessed.
#[derive(Default)]
pub struct Memory {
    pub words: HashMap<u64, u64>,
    pub broken: HashSet<u64>,
}

impl Memory {
    pub fn write(&mut self, address: u64, words: &[u64]) {
        for (k, &word) in words.iter().enumerate() {
            self.words.insert(address + 8 * k as u64, word);
        }
    }

    pub fn read(&self, address: u64) -> u64 {
        self.words.get(&address).copied().unwrap_or(0)
    }
}

struct Access {
    address: u64,
    words: u64,
    at: u64,
    from: u64,
}

/// The other side of a read client `read_*`.
pub struct ReadPort {
    pub latency: u64,
    pub pace: u32,
    pending: VecDeque<Access>,
    offered: bool,
    /// Addresses asked for since the last look.
    pub asked: Vec<u64>,
}

impl ReadPort {
    pub fn new(latency: u64, pace: u32) -> Self {
        ReadPort {
            latency,
            pace,
            pending: VecDeque::new(),
            offered: false,
            asked: vec![],
        }
    }

    /// Drives the pins of this cycle.
    pub fn drive(&mut self, bench: &mut Bench, rng: &mut ChaCha8Rng, memory: &Memory) {
        bench.set("read_request_ready", u64::from(chance(rng, self.pace)));
        if !self.offered {
            let due = self
                .pending
                .front()
                .is_some_and(|a| a.from <= bench.cycle());
            self.offered = due && chance(rng, self.pace);
        }
        bench.set("read_data_valid", u64::from(self.offered));
        if let Some(access) = self.pending.front() {
            let last = access.at + 1 == access.words;
            bench.set("read_data", memory.read(access.address + 8 * access.at));
            bench.set("read_data_last", u64::from(last));
            let broken = last && memory.broken.contains(&access.address);
            bench.set("read_data_error", u64::from(broken));
        }
    }

    /// Looks at the pins once they have settled.
    pub fn sample(&mut self, bench: &Bench, rng: &mut ChaCha8Rng) -> Outcome {
        if bench.moves("read_data")
            && let Some(access) = self.pending.front_mut()
        {
            self.offered = false;
            access.at += 1;
            if access.at == access.words {
                self.pending.pop_front();
            }
        }
        if bench.moves("read_request") {
            let mut request = bench.packed("read_request");
            let (address, length) = (request.take(64), request.take(16));
            claim!(length >= 1, "read of no bytes at {address:#x}");
            let from = bench.cycle() + rng.random_range(0..=self.latency);
            self.pending.push_back(Access {
                address,
                words: length.div_ceil(8),
                at: 0,
                from,
            });
            self.asked.push(address);
        }
        Ok(())
    }
}

/// The other side of a write client `write_*`.
pub struct WritePort {
    pub latency: u64,
    /// Each answer takes just as long, not at most.
    pub fixed: bool,
    pub pace: u32,
    /// No write is answered.
    pub holds: bool,
    pending: VecDeque<Access>,
    answers: VecDeque<(u64, u64, bool)>,
    answering: bool,
    /// Addresses and words of the accesses answered since the last look, and whether they failed.
    pub answered: Vec<(u64, bool)>,
    /// Accesses of which every word is in memory, since the last look.
    pub stored: Vec<u64>,
}

impl WritePort {
    pub fn new(latency: u64, pace: u32) -> Self {
        WritePort {
            latency,
            fixed: false,
            pace,
            holds: false,
            pending: VecDeque::new(),
            answers: VecDeque::new(),
            answering: false,
            answered: vec![],
            stored: vec![],
        }
    }

    pub fn drive(&mut self, bench: &mut Bench, rng: &mut ChaCha8Rng) {
        bench.set("write_request_ready", u64::from(chance(rng, self.pace)));
        // Data only after its request, as DmaWrite takes it.
        let takes = !self.pending.is_empty() && chance(rng, self.pace);
        bench.set("write_data_ready", u64::from(takes));
        let due = self.answers.front().is_some_and(|a| a.1 <= bench.cycle());
        self.answering = due && chance(rng, self.pace) && !self.holds;
        let failed = self.answers.front().is_some_and(|a| a.2);
        bench.set("write_done_valid", u64::from(self.answering));
        bench.set("write_done", u64::from(self.answering && failed));
    }

    pub fn sample(&mut self, bench: &Bench, rng: &mut ChaCha8Rng, memory: &mut Memory) -> Outcome {
        if self.answering
            && let Some((address, _, failed)) = self.answers.pop_front()
        {
            self.answered.push((address, failed));
        }
        if bench.moves("write_data")
            && let Some(access) = self.pending.front_mut()
        {
            memory
                .words
                .insert(access.address + 8 * access.at, bench.get("write_data"));
            access.at += 1;
            if access.at == access.words {
                let failed = memory.broken.contains(&access.address);
                let least = if self.fixed { self.latency } else { 0 };
                let from = bench.cycle() + 1 + rng.random_range(least..=self.latency);
                self.stored.push(access.address);
                self.answers.push_back((access.address, from, failed));
                self.pending.pop_front();
            }
        }
        if bench.moves("write_request") {
            let mut request = bench.packed("write_request");
            let (address, length) = (request.take(64), request.take(16));
            claim!(length >= 1, "write of no bytes at {address:#x}");
            self.pending.push_back(Access {
                address,
                words: length.div_ceil(8),
                at: 0,
                from: 0,
            });
        }
        Ok(())
    }

    /// Nothing is under way.
    pub fn idle(&self) -> bool {
        self.pending.is_empty() && self.answers.is_empty()
    }
}
