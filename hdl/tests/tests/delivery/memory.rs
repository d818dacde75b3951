//! Host memory behind Delivery's DMA clients, with random latency and back-pressure.
//!
//! A write changes the memory when it is answered and not before, so that whoever looks earlier sees
//! that it was too early. Some addresses answer with errors; a write that does changes nothing, a read
//! that does gives noise.

use std::collections::VecDeque;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use hdl_tests::Bench;
use hdl_tests::fields::unpack;

/// An access as it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub write: bool,
    pub address: u64,
    pub length: usize,
}

struct Write {
    access: Access,
    data: Vec<u8>,
    /// Cycles to the answer once all data are there.
    latency: u32,
}

struct Read {
    words: VecDeque<u64>,
    error: bool,
    latency: u32,
}

pub struct Memory {
    base: u64,
    bytes: Vec<u8>,
    /// Whether an access answers with an error.
    fails: fn(Access) -> bool,
    writes: VecDeque<Write>,
    reads: VecDeque<Read>,
    /// Writes that have been answered.
    pub answered: u64,
    /// No more are answered.
    pub held: bool,
    /// A word that has been offered stays.
    offering: bool,
    rate: f64,
    latency: u32,
}

impl Memory {
    pub fn new(base: u64, size: usize, fails: fn(Access) -> bool, rng: &mut ChaCha8Rng) -> Self {
        let mut bytes = vec![0; size];
        rng.fill(&mut bytes[..]);
        Memory {
            base,
            bytes,
            fails,
            writes: VecDeque::new(),
            reads: VecDeque::new(),
            answered: 0,
            held: false,
            offering: false,
            rate: hdl_tests::rate(rng),
            latency: [0, 3, 40][rng.random_range(0..3)],
        }
    }

    pub fn bytes(&self, address: u64, length: usize) -> &[u8] {
        let at = usize::try_from(address - self.base).expect("an address of this memory");
        &self.bytes[at..at + length]
    }

    /// Whether something has been asked for and not been answered.
    pub fn busy(&self) -> bool {
        !self.writes.is_empty() || !self.reads.is_empty()
    }

    /// Writes under way, with how many were asked for before each.
    pub fn writes(&self) -> impl Iterator<Item = (u64, Access)> {
        (self.answered..).zip(self.writes.iter().map(|write| write.access))
    }

    /// Sets the inputs of the cycle.
    pub fn drive(&mut self, bench: &mut Bench, rng: &mut ChaCha8Rng) {
        let wants_data = |w: &Write| w.data.len() < w.access.length;
        let ready = rng.random_bool(self.rate);
        bench.set("write_request_ready", ready);
        let data_ready = self.writes.back().is_some_and(wants_data) && rng.random_bool(self.rate);
        bench.set("write_data_ready", data_ready);
        let done = self.writes.front_mut().filter(|w| !wants_data(w));
        let answered = !self.held
            && done.is_some_and(|w| {
                w.latency = w.latency.saturating_sub(1);
                w.latency == 0
            });
        bench.set("write_done_valid", answered);
        let error = answered && (self.fails)(self.writes[0].access);
        bench.set("write_done", if answered { error } else { rng.random() });

        bench.set("read_request_ready", rng.random_bool(self.rate));
        let ready = self.reads.front_mut().is_some_and(|r| {
            r.latency = r.latency.saturating_sub(1);
            r.latency == 0
        });
        self.offering |= ready && rng.random_bool(self.rate);
        bench.set("read_data_valid", self.offering);
        let (word, last_error) = match self.reads.front() {
            Some(read) if self.offering => (read.words[0], read.words.len() == 1 && read.error),
            _ => (rng.random(), rng.random()),
        };
        bench.set("read_data", word);
        bench.set("read_data_error", last_error);
    }

    /// Takes what was handed over in the cycle; returns the accesses that were asked for.
    pub fn observe(&mut self, bench: &Bench, rng: &mut ChaCha8Rng) -> Vec<Access> {
        let mut asked = vec![];
        if bench.is("write_done_valid") {
            let write = self.writes.pop_front().expect("it was answered");
            self.answered += 1;
            if !(self.fails)(write.access) {
                let at = usize::try_from(write.access.address - self.base).expect("checked");
                let data = &write.data[..write.access.length];
                self.bytes[at..at + data.len()].copy_from_slice(data);
            }
        }
        if bench.is("write_data_valid") && bench.is("write_data_ready") {
            let write = self.writes.back_mut().expect("ready only then");
            let word = bench.get("write_data").to_le_bytes();
            let rest = write.access.length - write.data.len();
            write.data.extend(&word[..rest.min(8)]);
        }
        if bench.is("read_data_valid") && bench.is("read_data_ready") {
            self.offering = false;
            let read = self.reads.front_mut().expect("valid only then");
            read.words.pop_front();
            if read.words.is_empty() {
                self.reads.pop_front();
            }
        }
        let request = |pin: &str, write| {
            let [address, length] = unpack(&bench.get_wide::<2>(pin), [64, 16]);
            let length = length as usize;
            Access {
                write,
                address,
                length,
            }
        };
        if bench.is("write_request_valid") && bench.is("write_request_ready") {
            let access = request("write_request", true);
            asked.push(access);
            let fits = self.bytes(access.address, access.length).len();
            assert!(fits > 0, "an access has at least one byte");
            self.writes.push_back(Write {
                access,
                data: vec![],
                latency: 1 + rng.random_range(0..=self.latency),
            });
        }
        if bench.is("read_request_valid") && bench.is("read_request_ready") {
            let access = request("read_request", false);
            asked.push(access);
            let error = (self.fails)(access);
            let bytes = self.bytes(access.address, access.length);
            let word = |chunk: &[u8]| {
                let mut le = [0; 8];
                le[..chunk.len()].copy_from_slice(chunk);
                u64::from_le_bytes(le)
            };
            let words: VecDeque<u64> = bytes.chunks(8).map(word).collect();
            self.reads.push_back(Read {
                words: match error {
                    true => words.iter().map(|_| rng.random()).collect(),
                    false => words,
                },
                error,
                latency: 1 + rng.random_range(0..=self.latency),
            });
        }
        asked
    }
}
