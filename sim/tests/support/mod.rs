//! A card in plain Rust, to test what is around a card before, and apart from, its gates.
//!
//! It sends and receives whole frames. What a real card keeps in rings it keeps in four areas of host
//! memory, whose addresses are written to the first words of the mailbox:
//!
//! ```text
//!  words 0–1  descriptors: 16 × 64 bytes {address, length, destination}; SEND_TAIL says how many are there
//!  words 2–3  received frames: 16 × 2048 bytes
//!  words 4–5  completions: 16 × 8 bytes, length and 1 << 63
//! ```
//!
//! Interrupt line 1 rises when a completion has been written and falls when COMPLETION_ARM is written. Every
//! output comes from a register, so that nothing depends on the inputs of the same cycle.

#[path = "../../src/testing.rs"]
pub mod elf;
pub mod port;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use abi::control::{Operation, PairSetup};
use abi::register::{
    COMPLETION_ARM, CONTROL, ID, LOADER_ADDRESS, LOADER_DATA, MAGIC, MAILBOX_COMMAND,
    MAILBOX_REQUEST, SEND_TAIL, STATUS, STATUS_READY, endpoint_page,
};
use host_driver::transport::{Transport, TransportError};
use sim::pins::{
    AddressBeat, BEAT_SIZE, CardModel, Inputs, Outputs, RESP_OKAY, RESP_SLVERR, StreamBeat,
    WriteBeat,
};
use sim::{Host, fabric};

/// Bytes between receive buffers.
pub const BUFFER: u64 = 2048;
/// Entries of each area.
pub const ENTRIES: u64 = 16;

/// Something that a card can do wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bug {
    /// Nothing.
    #[default]
    None,
    /// An assertion fails in this cycle.
    Assertion(u64),
    /// The first write burst has its last beat marked too early.
    WrongLast,
    /// It never gets ready.
    NeverReady,
    /// It panics in this cycle.
    Panic(u64),
    /// It says that it has accepted one envelope more than have come.
    Credit,
}

/// What a test may look at afterwards.
#[derive(Debug, Default)]
pub struct Seen {
    /// Words that the loader wrote, by byte address.
    pub loaded: HashMap<u32, u32>,
    /// Values of CONTROL, in order.
    pub control: Vec<u32>,
    /// Errors of memory.
    pub errors: u64,
}

#[derive(Debug)]
enum Work {
    Fetch(u64),
    Deliver(Vec<u8>),
}

#[derive(Debug, Default)]
pub struct StandIn {
    bug: Bug,
    seen: Arc<Mutex<Seen>>,
    cycle: u64,
    out: Outputs,
    mac: u64,
    // Registers.
    words: HashMap<u32, u32>,
    write_address: Option<u32>,
    write_data: Option<u32>,
    read_address: Option<u32>,
    loader: u32,
    // Work, one piece at a time.
    work: VecDeque<Work>,
    fetched: u64,
    delivered: u64,
    reads: VecDeque<AddressBeat>,
    /// Beats that are still to come, those that have, and what to do then.
    expected: usize,
    data: Vec<u64>,
    then: Option<Then>,
    writes: VecDeque<(AddressBeat, Vec<WriteBeat>)>,
    beats: VecDeque<WriteBeat>,
    unanswered: usize,
    // Network.
    sending: VecDeque<StreamBeat>,
    receiving: Vec<u8>,
    taken: u32,
    accepted: u32,
}

#[derive(Debug)]
enum Then {
    Descriptor,
    Payload { length: usize, destination: u64 },
    Completion(u64),
    Done,
}

impl StandIn {
    pub fn new(bug: Bug, seen: Arc<Mutex<Seen>>) -> Self {
        Self {
            bug,
            seen,
            ..Self::default()
        }
    }

    fn area(&self, area: u32) -> u64 {
        let word = |k| u64::from(*self.words.get(&(MAILBOX_COMMAND + 4 * k)).unwrap_or(&0));
        word(2 * area) | word(2 * area + 1) << 32
    }

    /// Bursts of at most 16 beats for the beats that hold these bytes; none crosses a multiple of 128.
    fn bursts(address: u64, length: u64) -> Vec<AddressBeat> {
        let end = (address + length).next_multiple_of(8);
        let mut at = address & !7;
        let mut bursts = Vec::new();
        while at < end {
            let stop = (at + 1).next_multiple_of(128).min(end);
            bursts.push(AddressBeat {
                valid: true,
                id: 1,
                addr: at,
                len: ((stop - at) / 8 - 1) as u8,
                size: BEAT_SIZE,
                burst: 1,
                ..AddressBeat::default()
            });
            at = stop;
        }
        bursts
    }

    fn read(&mut self, address: u64, length: u64, then: Then) {
        self.reads.extend(Self::bursts(address, length));
        self.expected = self.reads.iter().map(|b| usize::from(b.len) + 1).sum();
        self.data.clear();
        self.then = Some(then);
    }

    fn write(&mut self, address: u64, bytes: &[u8], then: Then) {
        let mut chunks = bytes.chunks(8);
        for burst in Self::bursts(address, bytes.len() as u64) {
            let mut beats = Vec::new();
            for k in 0..=burst.len {
                let mut word = [0; 8];
                let chunk = chunks.next().unwrap();
                word[..chunk.len()].copy_from_slice(chunk);
                beats.push(WriteBeat {
                    valid: true,
                    data: u64::from_le_bytes(word),
                    strb: u8::MAX >> (8 - chunk.len()),
                    last: k == burst.len || self.bug == Bug::WrongLast && k == 0,
                });
            }
            self.writes.push_back((burst, beats));
            self.unanswered += 1;
        }
        self.then = Some(then);
    }

    fn next_work(&mut self) {
        match self.work.pop_front() {
            Some(Work::Fetch(index)) => {
                let at = self.area(0) + 64 * (index % ENTRIES);
                self.read(at, 64, Then::Descriptor);
            }
            Some(Work::Deliver(frame)) => {
                let at = self.area(1) + BUFFER * (self.delivered % ENTRIES);
                let done = frame.len() as u64 | 1 << 63;
                self.write(at, &frame, Then::Completion(done));
            }
            None => {}
        }
    }

    fn go_on(&mut self) {
        match self.then.take() {
            Some(Then::Descriptor) => {
                let [address, length, destination] = [0, 1, 2].map(|k| self.data[k]);
                let then = Then::Payload {
                    length: length as usize,
                    destination,
                };
                self.read(address, length, then);
            }
            Some(Then::Payload {
                length,
                destination,
            }) => {
                let mut frame = destination.to_le_bytes()[..6].to_vec();
                frame.extend_from_slice(&self.mac.to_le_bytes()[..6]);
                frame.extend_from_slice(&abi::wire::ETHERTYPE.to_be_bytes());
                let payload = self.data.iter().flat_map(|word| word.to_le_bytes());
                frame.extend(payload.take(length));
                let count = frame.len().div_ceil(8);
                for (k, chunk) in frame.chunks(8).enumerate() {
                    let mut word = [0; 8];
                    word[..chunk.len()].copy_from_slice(chunk);
                    self.sending.push_back(StreamBeat {
                        valid: true,
                        data: u64::from_le_bytes(word),
                        keep: u8::MAX >> (8 - chunk.len()),
                        last: k + 1 == count,
                        bad: false,
                    });
                }
                self.taken += 1;
                self.out.source.valid = true;
                self.out.source.taken = self.taken;
            }
            Some(Then::Completion(word)) => {
                let at = self.area(2) + 8 * (self.delivered % ENTRIES);
                self.delivered += 1;
                self.write(at, &word.to_le_bytes(), Then::Done);
            }
            Some(Then::Done) => self.out.interrupts = 2,
            None => {}
        }
    }

    fn written(&mut self, offset: u32, value: u32) -> u8 {
        let page = endpoint_page(0);
        let mut seen = self.seen.lock().unwrap();
        match offset {
            LOADER_ADDRESS => self.loader = value,
            LOADER_DATA => {
                seen.loaded.insert(self.loader, value);
                self.loader += 4;
            }
            CONTROL => seen.control.push(value),
            _ if offset == page + SEND_TAIL => {
                for index in self.fetched..u64::from(value) {
                    self.work.push_back(Work::Fetch(index));
                }
                self.fetched = value.into();
            }
            MAILBOX_REQUEST => {
                let setup = PairSetup {
                    remote_credits: 100,
                    remote_mac: fabric::mac(value as usize),
                    ..PairSetup::default()
                };
                self.out.control.valid = true;
                self.out.control.operation = Operation::PairSet.code();
                self.out.control.data = setup.to_words();
            }
            _ if offset == page + COMPLETION_ARM => self.out.interrupts = 0,
            ID => return RESP_SLVERR,
            _ => {
                self.words.insert(offset, value);
            }
        }
        RESP_OKAY
    }

    fn registers(&mut self, inputs: &Inputs) {
        let lite = &inputs.lite;
        if self.out.lite.bvalid && lite.bready {
            self.out.lite.bvalid = false;
        }
        if self.out.lite.rvalid && lite.rready {
            self.out.lite.rvalid = false;
        }
        if lite.awvalid && self.out.lite.awready {
            self.write_address = Some(lite.awaddr);
        }
        if lite.wvalid && self.out.lite.wready {
            self.write_data = Some(lite.wdata);
        }
        if lite.arvalid && self.out.lite.arready {
            self.read_address = Some(lite.araddr);
        }
        if let (Some(offset), Some(value)) = (self.write_address, self.write_data) {
            (self.write_address, self.write_data) = (None, None);
            self.out.lite.bresp = self.written(offset, value);
            self.out.lite.bvalid = true;
        }
        if let Some(offset) = self.read_address.take() {
            let ready = self.cycle > 100 && self.bug != Bug::NeverReady;
            self.out.lite.rdata = match offset {
                ID => MAGIC,
                STATUS => u32::from(ready) * STATUS_READY,
                _ => *self.words.get(&offset).unwrap_or(&0),
            };
            self.out.lite.rvalid = true;
        }
        self.out.lite.awready = self.write_address.is_none() && !self.out.lite.bvalid;
        self.out.lite.wready = self.write_data.is_none() && !self.out.lite.bvalid;
        self.out.lite.arready = !self.out.lite.rvalid;
    }

    fn memory(&mut self, inputs: &Inputs) {
        if inputs.ar_ready {
            self.out.ar.valid = false;
        }
        if inputs.aw_ready {
            self.out.aw.valid = false;
        }
        if inputs.w_ready {
            self.out.w.valid = false;
        }
        if inputs.r.valid {
            self.data.push(inputs.r.data);
            self.expected -= 1;
            self.seen.lock().unwrap().errors += u64::from(inputs.r.resp != RESP_OKAY);
        }
        if inputs.b.valid {
            self.unanswered -= 1;
            self.seen.lock().unwrap().errors += u64::from(inputs.b.resp != RESP_OKAY);
        }
        if self.expected == 0 && self.unanswered == 0 {
            self.go_on();
        }
        if self.then.is_none() {
            self.next_work();
        }
        if !self.out.ar.valid
            && let Some(burst) = self.reads.pop_front()
        {
            self.out.ar = burst;
        }
        if !self.out.aw.valid
            && let Some((burst, beats)) = self.writes.pop_front()
        {
            self.out.aw = burst;
            self.beats.extend(beats);
        }
        if !self.out.w.valid
            && let Some(beat) = self.beats.pop_front()
        {
            self.out.w = beat;
        }
        (self.out.r_ready, self.out.b_ready) = (true, true);
    }

    fn network(&mut self, inputs: &Inputs) {
        if inputs.tx_ready {
            self.out.tx.valid = false;
        }
        if !self.out.tx.valid
            && let Some(beat) = self.sending.pop_front()
        {
            self.out.tx = beat;
        }
        if inputs.rx.valid && self.out.rx_ready {
            let bytes = inputs.rx.data.to_le_bytes();
            let count = inputs.rx.keep.trailing_ones() as usize;
            self.receiving.extend_from_slice(&bytes[..count]);
            if inputs.rx.last {
                let frame = std::mem::take(&mut self.receiving);
                self.accepted += 1 + u32::from(self.bug == Bug::Credit);
                self.out.sink.valid = true;
                (self.out.sink.accepted, self.out.sink.freed) = (self.accepted, self.accepted);
                self.out.matching.valid = true;
                self.out.matching.posted = self.work.len() as u16;
                self.work.push_back(Work::Deliver(frame));
            }
        }
        // Takes a beat every other cycle and no more than it has room for.
        self.out.rx_ready = self.work.len() < 4 && self.cycle.is_multiple_of(2);
    }
}

/// Connects pair 0 of two cards with each other: the number of a command is that of the other card.
pub fn connect(host: &Host) -> Result<(), TransportError> {
    let other = 1 - host.card() as u32;
    // SAFETY: nobody has opened the card, which is a stand-in.
    unsafe { host.transport().write_register(MAILBOX_REQUEST, other) }
}

impl CardModel for StandIn {
    fn step(&mut self, inputs: &Inputs, outputs: &mut Outputs) {
        *outputs = self.out;
        self.cycle += 1;
        if inputs.reset {
            return;
        }
        assert!(self.bug != Bug::Panic(self.cycle), "the card's own bug");
        self.mac = inputs.strap_mac;
        (self.out.source.valid, self.out.sink.valid) = (false, false);
        self.out.control.valid = false;
        self.out.matching.valid = false;
        // Two lines of log, the second with its number.
        let hello = [1, 0x7e, 0, 2, (inputs.strap_mac >> 40) as u8 + 1, 0x7a, 0];
        let byte = self
            .cycle
            .is_multiple_of(10)
            .then_some(self.cycle as usize / 10);
        self.out.log = byte.and_then(|byte| hello.get(byte.wrapping_sub(5)).copied());
        self.registers(inputs);
        self.memory(inputs);
        self.network(inputs);
    }

    fn assertion(&mut self) -> Option<String> {
        match self.bug {
            Bug::Assertion(cycle) if self.cycle > cycle => Some("never say never".into()),
            _ => None,
        }
    }
}
