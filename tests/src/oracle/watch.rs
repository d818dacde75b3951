//! What happens on the pins of a card, cycle by cycle.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use abi::control::Operation;
use abi::register::{ENDPOINT_PAGE, FIRST_ENDPOINT_PAGE, PAGE_BYTES};
use abi::wire::FrameType;
use card_model::matching::{Command, Reply, Units};
use rand::Rng;
use sim::fabric::{Passing, Tap};
use sim::pins::{CardModel, Inputs, Outputs, StreamBeat};
use sim::seed::generator;
use sim::verilated::VerilatedCard;
use sim::{Cluster, Rate};

use super::trouble::{Fragile, Stops, Troubled};
use crate::cards::firmware;
use crate::frames::is;

/// Cycles from the look-up of a frame's numbers until the frame shows on the pins, at most, but for those in which the wire takes nothing.
const LOOK_UP_CYCLES: usize = 6;
/// Bytes of the Ethernet addresses, which stay as they are: the frame arrives.
const ADDRESSES: usize = 12;

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The host has written a register of an endpoint's page.
    Doorbell {
        /// Endpoint.
        endpoint: u8,
        /// Register.
        offset: u32,
        /// Value.
        value: u32,
    },
    /// A command has entered the lists, and this was the reply, in this cycle.
    Matched(Command, Reply, u64),
    /// A control request of the firmware that changes something: operation and index.
    Control(u8, u16),
    /// A burst of memory that may fail has been asked for.
    Access {
        /// It writes.
        write: bool,
        /// Address of its first byte.
        address: u64,
        /// Address behind its last beat.
        end: u64,
        /// It was answered by an error, and wrote nothing.
        failed: bool,
    },
    /// The envelopes of a pair have moved on, at the card that receives on it.
    Sink {
        /// Pair.
        pair: u16,
        /// Envelopes accepted.
        accepted: u32,
        /// Envelopes freed.
        freed: u32,
    },
    /// The credits of a pair have moved on, at the card that sends on it.
    Source {
        /// Pair.
        pair: u16,
        /// Credits returned.
        returned: u32,
    },
    /// A frame has come, of which this was the last cycle.
    FrameIn(Vec<u8>),
    /// A frame has gone out, of which this was the first cycle; and how many cycles before it the numbers that it carries may have been looked up.
    FrameOut(Vec<u8>, u64),
}

/// What was seen of a card: cycle and event, in the order in which they ended.
pub type Seen = Arc<Mutex<Vec<(u64, Event)>>>;

/// Changes what a card shows in a cycle, so that it is one with broken gates. Told how many beats of the write burst under way have passed.
pub type Tamper = fn(beat: usize, outputs: &mut Outputs);

/// A wire that loses frames, repeats them, changes a byte of some, and has a few so late that others overtake them. What it never loses is the word that a
/// pair has failed, which is said once.
pub fn rough(seed: u64) -> impl Tap {
    let mut rng = generator(seed, usize::MAX, "rough");
    move |mut passing: Passing, out: &mut Vec<Passing>| {
        let (luck, place) = (rng.random_range(0..1000), rng.random::<u32>() as usize);
        let (late, flip) = (rng.random_range(1..6000), rng.random_range(1..=u8::MAX));
        let mut again = passing.clone();
        let kept = is(&passing, FrameType::PairFailed);
        if luck < 10 {
            passing.delay += late;
        }
        // Of those that are changed every second one comes as it was, too.
        let lost = (30..40).contains(&luck) || (50..80).contains(&luck);
        if kept || !lost {
            out.push(passing);
        }
        if (10..30).contains(&luck) {
            out.push(again);
        } else if (30..50).contains(&luck) {
            let behind = again.frame.bytes.len() - ADDRESSES;
            again.frame.bytes[ADDRESSES + place % behind] ^= flip;
            out.push(again);
        }
    }
}

/// A cluster of Verilated cards with firmware, what is seen of each, and which of its memory may fail: what a program adds to that. With
/// `stops` wires stop, with `tamper` card 0 is broken.
pub fn watched(
    config: &'static str,
    cards: usize,
    seed: u64,
    stops: Option<Stops>,
    tamper: Option<Tamper>,
) -> (Cluster, Vec<Seen>, Vec<Fragile>) {
    let seen: Vec<Seen> = (0..cards).map(|_| Seen::default()).collect();
    let fragile: Vec<Fragile> = (0..cards).map(|_| Fragile::default()).collect();
    let (logs, weak) = (seen.clone(), fragile.clone());
    let cluster = Cluster::of(move |card, seed, traced| {
        let inner = VerilatedCard::open(config, seed, traced).map_err(|e| e.to_string())?;
        let log = Arc::clone(&logs[card]);
        let brings = stops.map(|stops| stops.draw(seed, card, "s_axis"));
        let inner = Troubled::new(
            inner,
            Arc::clone(&log),
            brings.unwrap_or_default(),
            Arc::clone(&weak[card]),
            generator(seed, card, "fragile"),
        );
        Ok(Box::new(Watched {
            inner,
            cycle: 0,
            log,
            commands: VecDeque::new(),
            units: Units::default(),
            frame_in: Vec::new(),
            frame_out: (0, Vec::new()),
            moving: VecDeque::new(),
            looked_up: 0,
            address: None,
            data: None,
            tamper: tamper.filter(|_| card == 0),
            beats: 0,
        }))
    });
    let mut cluster = cluster
        .cards(cards)
        .seed(seed)
        .threads(1)
        // A program is set up sooner, and its many cycles without commands cost less than with a faster one.
        .processor_clock(Rate::Times(4))
        .firmware(firmware());
    for card in 0..cards {
        let takes = stops.map(|stops| stops.draw(seed, card, "m_axis"));
        for stop in takes.unwrap_or_default() {
            cluster = cluster.stall(card, stop);
        }
    }
    (cluster, seen, fragile)
}

/// A card that is watched.
struct Watched {
    inner: Troubled<VerilatedCard>,
    cycle: u64,
    log: Seen,
    /// The commands that await their replies, which come in their order.
    commands: VecDeque<(u64, Command)>,
    /// Where the gates keep the messages of each pair.
    units: Units,
    frame_in: Vec<u8>,
    /// First cycle, and the bytes so far.
    frame_out: (u64, Vec<u8>),
    /// The last cycles in which no word stood on a wire that didn't take it: in these a frame comes nearer to the pins.
    moving: VecDeque<u64>,
    /// First cycle in which the numbers of the frame that goes out may have been looked up.
    looked_up: u64,
    /// Address and data of a register write under way.
    address: Option<u32>,
    data: Option<u32>,
    tamper: Option<Tamper>,
    /// Beats of the write burst under way.
    beats: usize,
}

impl Watched {
    fn note(&self, cycle: u64, event: Event) {
        self.log.lock().expect("no panic").push((cycle, event));
    }

    fn look(&mut self, inputs: &Inputs, outputs: &Outputs) {
        let cycle = self.cycle;
        if let Some(reply) = outputs.reply.reply()
            && let Some((since, command)) = self.commands.pop_front()
        {
            let reply = self.units.named(command.operation, reply);
            let reply = reply.unwrap_or_else(|what| panic!("cycle {cycle}: {what}"));
            self.note(since, Event::Matched(command, reply, cycle));
        }
        if outputs.matching.valid {
            let command = Command::from_words(&outputs.matching.command);
            let command = command.expect("a command of the ABI");
            self.commands.push_back((cycle, command));
        }
        let told = outputs.unit.note(&mut self.units);
        told.unwrap_or_else(|what| panic!("cycle {cycle}: {what}"));
        if outputs.gates_reset {
            self.units = Units::default();
        }
        let reads = [Operation::CounterRead, Operation::PairRead].map(|o| o.code());
        if outputs.control.valid && !reads.contains(&outputs.control.operation) {
            let (operation, index) = (outputs.control.operation, outputs.control.index);
            self.note(cycle, Event::Control(operation, index));
        }
        if outputs.sink.valid {
            let sink = &outputs.sink;
            let (pair, accepted, freed) = (sink.pair, sink.accepted, sink.freed);
            self.note(
                cycle,
                Event::Sink {
                    pair,
                    accepted,
                    freed,
                },
            );
        }
        if outputs.source.valid {
            let (pair, returned) = (outputs.source.pair, outputs.source.returned);
            self.note(cycle, Event::Source { pair, returned });
        }
        if inputs.rx.valid && outputs.rx_ready {
            collect(&mut self.frame_in, &inputs.rx);
            if inputs.rx.last {
                let frame = std::mem::take(&mut self.frame_in);
                self.note(cycle, Event::FrameIn(frame));
            }
        }
        if outputs.tx.valid {
            if self.frame_out.1.is_empty() && self.frame_out.0 == 0 {
                self.frame_out.0 = cycle;
                let first = self.moving.front().copied();
                self.looked_up = first.unwrap_or(cycle);
            }
            if inputs.tx_ready {
                collect(&mut self.frame_out.1, &outputs.tx);
                if outputs.tx.last {
                    let (begin, frame) = std::mem::take(&mut self.frame_out);
                    let before = begin - self.looked_up;
                    self.note(begin, Event::FrameOut(frame, before));
                }
            }
        }
        if !outputs.tx.valid || inputs.tx_ready {
            self.moving.push_back(cycle);
            if self.moving.len() > LOOK_UP_CYCLES {
                self.moving.pop_front();
            }
        }
        self.look_at_registers(inputs, outputs);
    }

    fn look_at_registers(&mut self, inputs: &Inputs, outputs: &Outputs) {
        let (lite, answers) = (&inputs.lite, &outputs.lite);
        if lite.awvalid && answers.awready {
            self.address = Some(lite.awaddr);
        }
        if lite.wvalid && answers.wready {
            self.data = Some(lite.wdata);
        }
        let (Some(address), Some(value)) = (self.address, self.data) else {
            return;
        };
        (self.address, self.data) = (None, None);
        let page = address / PAGE_BYTES;
        let offset = address % PAGE_BYTES;
        if page >= FIRST_ENDPOINT_PAGE && ENDPOINT_PAGE.iter().any(|r| r.offset == offset) {
            let endpoint = (page - FIRST_ENDPOINT_PAGE) as u8;
            let doorbell = Event::Doorbell {
                endpoint,
                offset,
                value,
            };
            self.note(self.cycle, doorbell);
        }
    }
}

/// Adds the bytes of a beat to a frame.
fn collect(frame: &mut Vec<u8>, beat: &StreamBeat) {
    let bytes = beat.data.to_le_bytes().into_iter().enumerate();
    frame.extend(bytes.filter_map(|(k, byte)| (beat.keep >> k & 1 == 1).then_some(byte)));
}

impl CardModel for Watched {
    fn step(&mut self, inputs: &Inputs, outputs: &mut Outputs) {
        self.inner.step(inputs, outputs);
        if let Some(tamper) = self.tamper {
            tamper(self.beats, outputs);
        }
        if outputs.w.valid && inputs.w_ready {
            self.beats = if outputs.w.last { 0 } else { self.beats + 1 };
        }
        if !inputs.reset {
            self.look(inputs, outputs);
        }
        self.cycle += 1;
    }

    forwards_all_but_steps!();
}
