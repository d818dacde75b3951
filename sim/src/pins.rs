//! The card's pins for one clock cycle, and what a model of the card has to offer.
//!
//! Everything in this crate that meets a card meets it here: host memory, registers, fabric, log and
//! monitors fill [`Inputs`] at the start of a cycle and look at [`Outputs`] at its end. A transfer has
//! happened when `valid` and `ready` were both high in the same cycle, so nothing on this side may
//! make an input depend on an output of the same cycle.
//!
//! ```text
//!             ┌───────────────┐ lite_in            ┌────────────┐
//!  registers ─┤               ├───────────────────►│            │
//!     memory ─┤    Inputs     ├ r, b, *ready ─────►│  CardModel │
//!     fabric ─┤               ├ rx, tx_ready ─────►│   ::step   │
//!             └───────────────┘                    │            │
//!             ┌───────────────┐◄── ar aw w tx … ───┤            │
//!  everybody ◄┤    Outputs    │◄── lite_out, log ──┤            │
//!             └───────────────┘◄── monitor ────────┴────────────┘
//! ```
//!
//! Names, widths and rules of the pins are those of the book's page "The card inside".

use std::path::Path;

use abi::control::DATA_WORDS;
use match_reference::{Reply, Sizes, Units};
use model::Rate;

/// Bytes of one beat of the memory bus and of the network streams.
pub const BEAT_BYTES: usize = 8;
/// `size` of a full beat, as AXI encodes it.
pub const BEAT_SIZE: u8 = BEAT_BYTES.trailing_zeros() as u8;

/// An address beat of AXI4, read or write (`ar*` or `aw*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressBeat {
    /// Valid.
    pub valid: bool,
    /// Transaction id.
    pub id: u8,
    /// Byte address of the first beat.
    pub addr: u64,
    /// Beats of the burst, less one.
    pub len: u8,
    /// log2 of the bytes of a beat.
    pub size: u8,
    /// Burst type; 1 is INCR.
    pub burst: u8,
    /// Exclusive access.
    pub lock: bool,
    /// Type of the memory.
    pub cache: u8,
    /// Rights.
    pub prot: u8,
    /// Quality of service.
    pub qos: u8,
}

/// A write data beat of AXI4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteBeat {
    /// Valid.
    pub valid: bool,
    /// Data; byte 0 is in the least significant lane.
    pub data: u64,
    /// A bit for each byte to be written.
    pub strb: u8,
    /// Last beat of the burst.
    pub last: bool,
}

/// A read data beat of AXI4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadBeat {
    /// Valid.
    pub valid: bool,
    /// Transaction id.
    pub id: u8,
    /// Data.
    pub data: u64,
    /// Response: `RESP_*`.
    pub resp: u8,
    /// Last beat of the burst.
    pub last: bool,
}

/// A write response of AXI4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseBeat {
    /// Valid.
    pub valid: bool,
    /// Transaction id.
    pub id: u8,
    /// Response: `RESP_*`.
    pub resp: u8,
}

/// AXI response: done.
pub const RESP_OKAY: u8 = 0;
/// AXI response: the addressed thing refused.
pub const RESP_SLVERR: u8 = 2;
/// AXI response: nothing is at this address.
pub const RESP_DECERR: u8 = 3;

/// A beat of AXI4-Stream: part of an Ethernet frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamBeat {
    /// Valid.
    pub valid: bool,
    /// Data; the first byte of the frame is in the least significant lane.
    pub data: u64,
    /// A bit for each byte that counts.
    pub keep: u8,
    /// Last beat of the frame.
    pub last: bool,
    /// With `last`, towards the card: the frame was found bad on the way.
    pub bad: bool,
}

/// What the register master drives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiteIn {
    /// Write address valid.
    pub awvalid: bool,
    /// Write address.
    pub awaddr: u32,
    /// Write data valid.
    pub wvalid: bool,
    /// Write data.
    pub wdata: u32,
    /// Write strobes.
    pub wstrb: u8,
    /// Ready for the write response.
    pub bready: bool,
    /// Read address valid.
    pub arvalid: bool,
    /// Read address.
    pub araddr: u32,
    /// Ready for the read data.
    pub rready: bool,
}

/// What the card's registers answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiteOut {
    /// Write address ready.
    pub awready: bool,
    /// Write data ready.
    pub wready: bool,
    /// Write response valid.
    pub bvalid: bool,
    /// Write response.
    pub bresp: u8,
    /// Read address ready.
    pub arready: bool,
    /// Read data valid.
    pub rvalid: bool,
    /// Read data.
    pub rdata: u32,
    /// Read response.
    pub rresp: u8,
}

/// Inputs of the card in one cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// Synchronous reset.
    pub reset: bool,
    /// Registers.
    pub lite: LiteIn,
    /// Read address ready.
    pub ar_ready: bool,
    /// Write address ready.
    pub aw_ready: bool,
    /// Write data ready.
    pub w_ready: bool,
    /// Read data.
    pub r: ReadBeat,
    /// Write response.
    pub b: ResponseBeat,
    /// The fabric takes a beat.
    pub tx_ready: bool,
    /// A beat from the fabric.
    pub rx: StreamBeat,
    /// Ethernet address; the least significant byte is first on the wire.
    pub strap_mac: u64,
    /// Seed of the card's random generator.
    pub strap_seed: u32,
}

/// A control request of the firmware to the gates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlMonitor {
    /// One begins.
    pub valid: bool,
    /// [`Operation`](abi::control::Operation).
    pub operation: u8,
    /// What it names.
    pub index: u16,
    /// Its data.
    pub data: [u64; DATA_WORDS],
}

/// The credits of one pair, seen from the card that sends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceMonitor {
    /// The numbers have changed.
    pub valid: bool,
    /// Pair on this card.
    pub pair: u16,
    /// Credits taken, a running number.
    pub taken: u32,
    /// Credits that have come back, a running number.
    pub returned: u32,
    /// A put has taken a number, which needs no credit.
    pub put: bool,
}

/// The credits of one pair, seen from the card that receives on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinkMonitor {
    /// The numbers have changed.
    pub valid: bool,
    /// Pair on this card.
    pub pair: u16,
    /// Envelopes accepted, a running number.
    pub accepted: u32,
    /// Envelopes that need no storage any more, a running number.
    pub freed: u32,
}

/// An operation that enters the matching lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchMonitor {
    /// One has entered.
    pub valid: bool,
    /// Which.
    pub operation: u8,
    /// Live posted receives before it acts.
    pub posted: u16,
    /// Live unexpected messages before it acts.
    pub unexpected: u16,
    /// The bits of the command.
    pub command: [u32; MATCH_WORDS],
}

/// A unit of places that a pair gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitMonitor {
    /// A pair gets one, or has none any more.
    pub valid: bool,
    /// Pair.
    pub pair: u16,
    /// Units that it has with this one; 0: it has none any more.
    pub count: u16,
    /// The unit.
    pub unit: u16,
}

impl UnitMonitor {
    /// Notes it, if there is one.
    ///
    /// # Errors
    /// If another pair has the unit, or the count is none that the pair may come to have.
    pub fn note(&self, units: &mut Units) -> Result<(), String> {
        match self.valid {
            true => units.tell(self.pair, self.count, self.unit),
            false => Ok(()),
        }
    }
}

/// Words of 32 bits that the command of a matching operation fills.
pub const MATCH_WORDS: usize = 7;

/// The reply to the operation that has entered the matching lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyMonitor {
    /// There is one.
    pub valid: bool,
    /// Something was found.
    pub found: bool,
    /// There was no room.
    pub full: bool,
    /// Place of what was found or appended.
    pub index: u16,
    /// Nothing was found yet, and there is more to look at.
    pub more: bool,
}

impl ReplyMonitor {
    /// The reply, if there is one.
    pub fn reply(&self) -> Option<Reply> {
        let &Self {
            valid,
            found,
            full,
            index,
            more,
        } = self;
        valid.then_some(Reply {
            found,
            full,
            index,
            more,
        })
    }
}

/// Outputs of the card in one cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    /// Registers.
    pub lite: LiteOut,
    /// Read address.
    pub ar: AddressBeat,
    /// Write address.
    pub aw: AddressBeat,
    /// Write data.
    pub w: WriteBeat,
    /// Read data ready.
    pub r_ready: bool,
    /// Write response ready.
    pub b_ready: bool,
    /// A beat to the fabric.
    pub tx: StreamBeat,
    /// The card takes a beat from the fabric.
    pub rx_ready: bool,
    /// Interrupt lines, level.
    pub interrupts: u32,
    /// A byte of the firmware's log.
    pub log: Option<u8>,
    /// The gates are reset by register.
    pub gates_reset: bool,
    /// Control requests.
    pub control: ControlMonitor,
    /// Credits, sending side.
    pub source: SourceMonitor,
    /// Credits, receiving side.
    pub sink: SinkMonitor,
    /// Matching.
    pub matching: MatchMonitor,
    /// Its replies.
    pub reply: ReplyMonitor,
    /// Units of places.
    pub unit: UnitMonitor,
}

/// A card that can be clocked.
pub trait CardModel: Send {
    /// Runs one clock cycle: `outputs` are the values in the cycle in which `inputs` are applied, that
    /// is, just before the clock edge that ends it.
    fn step(&mut self, inputs: &Inputs, outputs: &mut Outputs);

    /// What an assertion in the gates has said since the last call. Called after each step, so it must
    /// be cheap when there is nothing.
    fn assertion(&mut self) -> Option<String> {
        None
    }

    /// How fast the processor's clock is. A model without a processor has no such clock.
    fn set_processor_clock(&mut self, rate: Rate) {
        let _ = rate;
    }

    /// Lets the processor's clock stand, or go on. A model without a processor has no such clock.
    fn hold_processor_clock(&mut self, held: bool) {
        let _ = held;
    }

    /// Writes `bytes` into the memory of its processor, from this address of the processor's on, before the first cycle: a multiple of 4. Returns whether
    /// there is such a memory.
    fn preload(&mut self, address: u32, bytes: &[u8]) -> bool {
        let _ = (address, bytes);
        false
    }

    /// Sizes of its matching engine, if what it does there is to be held to the reference.
    fn sizes(&self) -> Option<Sizes> {
        None
    }

    /// Starts to write a waveform. The model's time is the cycle number times the period.
    ///
    /// # Errors
    /// If this model can't, or the file can't be written.
    fn start_waves(&mut self, path: &Path) -> std::io::Result<()> {
        let _ = path;
        Err(std::io::Error::new(
            std::io::ErrorKind::Unsupported,
            "this model of the card writes no waveform",
        ))
    }

    /// Ends the waveform.
    fn stop_waves(&mut self) {}
}
