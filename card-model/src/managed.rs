//! A card as its firmware sees it: the gates, and what the management processor has beside them.
//!
//! ```text
//!  control requests ──► Card::control ──► result
//!  frames           ◄─► Card's inbox and outbox of the firmware, as words
//!  events           ◄── Card::take_raised, and seldom take_refusal: a queue of EVENTS_IN, and a count of those that found it full
//!  time, random words, address, sizes, persistent memory
//! ```
//!
//! A test that lets requests take time puts its own [`firmware_core::Card`] around this one.

use std::collections::VecDeque;

use abi::control::{AccessReport, Counter, DATA_WORDS, Operation};
use abi::event::{Cause, NO_PAIR};
use abi::mgmt::{EVENTS_IN, PERSISTENT_BYTES};
use abi::times::REFUSAL_INTERVAL;
use abi::wire::{FrameHeader, HEADER_BYTES};
use firmware_core::{FrameWords, GateEvent};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::card::{Card, CardSizes};
use crate::endpoints::Raised;
use crate::memory::HostMemory;

/// Words of the persistent memory.
pub type Persistent = [u32; PERSISTENT_BYTES as usize / 4];

/// A card, as its firmware sees it.
#[derive(Clone, Debug)]
pub struct Managed<M> {
    /// Its gates.
    pub gates: Card<M>,
    /// Control requests are neither carried out nor answered: for tests.
    pub silent: bool,
    /// What a request waits for that isn't answered for that.
    pub report: AccessReport,
    /// The random source says the same for ever: for tests.
    pub stuck: bool,
    /// A reset leaves the gates as they are: for tests.
    pub deaf_to_reset: bool,
    /// What the firmware of the card doesn't keep of what it promises.
    pub broken_firmware: Option<firmware_core::Break>,
    /// What the firmware finds again when it starts anew. Zero at first.
    pub persistent: Persistent,
    /// The control request that isn't answered, and the result of the last one that was.
    request: Option<(Operation, u16, [u64; DATA_WORDS])>,
    result: u64,
    events: VecDeque<GateEvent>,
    events_lost: u32,
    /// Cycle from which on a refusal may be told.
    refusals_from: u64,
    /// Frames for the firmware that had found no room when the gates were last reset.
    frames_lost_before: u32,
    mac: u64,
    rng: ChaCha8Rng,
}

impl<M: HostMemory> Managed<M> {
    /// A card out of reset, with its Ethernet address and the seed of its random words.
    pub fn new(sizes: CardSizes, memory: M, mac: u64, seed: u64) -> Self {
        Self {
            gates: Card::new(sizes, memory),
            silent: false,
            report: AccessReport::default(),
            stuck: false,
            deaf_to_reset: false,
            broken_firmware: None,
            persistent: [0; _],
            request: None,
            result: 0,
            events: VecDeque::new(),
            events_lost: 0,
            refusals_from: 0,
            frames_lost_before: 0,
            mac,
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// Resets the gates, and forgets what they have told and were asked.
    pub fn reset(&mut self) {
        if self.deaf_to_reset {
            return;
        }
        self.frames_lost_before = self.frames_dropped();
        self.gates.reset();
        self.request = None;
        self.events.clear();
    }

    fn frames_dropped(&self) -> u32 {
        let since = self.gates.counter(Counter::FirmwareFramesDropped);
        self.frames_lost_before.wrapping_add(since)
    }

    /// Queues what the gates have raised.
    fn collect_events(&mut self) {
        let mut told = self.gates.take_raised();
        let now = self.gates.now();
        if now >= self.refusals_from
            && let Some(refusal) = self.gates.take_refusal()
        {
            self.refusals_from = now + u64::from(REFUSAL_INTERVAL);
            told.push(Raised {
                endpoint: 0,
                cause: Cause::AccessRefused,
                pair: NO_PAIR,
                info: refusal.to_info(),
            });
        }
        for raised in told {
            if self.events.len() == EVENTS_IN {
                self.events_lost = self.events_lost.wrapping_add(1);
                continue;
            }
            self.events.push_back(GateEvent::new(
                raised.cause.code(),
                raised.endpoint,
                raised.pair,
                raised.info,
            ));
        }
    }
}

impl<M: HostMemory> firmware_core::Card for Managed<M> {
    fn control_start(&mut self, operation: Operation, index: u16, data: &[u64]) {
        debug_assert!(self.request.is_none(), "one request at a time");
        let mut words = [0; DATA_WORDS];
        words[..data.len()].copy_from_slice(data);
        self.request = Some((operation, index, words));
    }

    fn control_result(&mut self) -> Option<u64> {
        if self.silent && self.request.is_some() {
            return None;
        }
        if let Some((operation, index, data)) = self.request.take() {
            self.result = self.gates.control(operation, index, &data);
        }
        Some(self.result)
    }

    /// An access is one step of the model. So what is waited for is what the test says.
    fn control_report(&mut self) -> AccessReport {
        match self.request {
            Some(_) => self.report,
            None => AccessReport::default(),
        }
    }

    fn reset_start(&mut self) {
        self.reset();
    }

    fn reset_done(&mut self) -> bool {
        true
    }

    fn frame_out_is_free(&mut self) -> bool {
        true
    }

    fn frame_send(&mut self, frame: &FrameWords) {
        let bytes: Vec<u8> = frame.iter().flat_map(|word| word.to_le_bytes()).collect();
        let header = FrameHeader::parse(&bytes).expect("it is longer than a header");
        self.gates
            .firmware_frame_out(&header, &bytes[HEADER_BYTES..]);
    }

    fn frame_take(&mut self) -> Option<FrameWords> {
        let bytes = self.gates.firmware_frame_in()?;
        let (words, _) = bytes.as_chunks();
        let word = |k: usize| u32::from_le_bytes(words[k]);
        Some(std::array::from_fn(word))
    }

    fn frames_lost(&mut self) -> u32 {
        self.frames_dropped()
    }

    fn event_take(&mut self) -> Option<GateEvent> {
        self.collect_events();
        self.events.pop_front()
    }

    fn events_lost(&mut self) -> u32 {
        self.collect_events();
        self.events_lost
    }

    fn now(&self) -> u32 {
        self.gates.now() as u32
    }

    fn random(&mut self) -> u32 {
        match self.stuck {
            true => 7,
            false => self.rng.random(),
        }
    }

    fn mac(&self) -> u64 {
        self.mac
    }

    fn sizes(&self) -> firmware_core::Sizes {
        let CardSizes {
            lists,
            regions,
            capabilities,
            descriptors,
            rules,
            grants,
        } = self.gates.sizes();
        firmware_core::Sizes {
            endpoints: lists.endpoints as u32,
            pairs: lists.pairs as u32,
            posted: (lists.exact + lists.posted) as u32,
            unexpected: lists.unexpected as u32,
            regions: regions as u32,
            posted_reserved: lists.reserved_posted as u32,
            capabilities,
            descriptors: descriptors as u32,
            rules: rules as u32,
            grants: grants as u32,
        }
    }

    fn persistent(&self, word: usize) -> u32 {
        self.persistent[word]
    }

    fn set_persistent(&mut self, word: usize, value: u32) {
        self.persistent[word] = value;
    }

    fn is_broken(&self, promise: firmware_core::Break) -> bool {
        self.broken_firmware == Some(promise)
    }
}
