//! Every counter of a replay, by card and pair: as text for people and as JSON for programs.

use std::collections::BTreeMap;
use std::fmt;

use host_driver::{CommandError, Counter, Device, PairStatus};
use serde::Serialize;
use sim::Report;

use crate::replay::Played;
use crate::summary::Summary;

/// Messages of a pair, as its host counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Messages posted to be sent.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Messages received and checked.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
}

/// A pair at the end of the replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PairStats {
    /// Rank at the other end, and so its card.
    pub peer: usize,
    /// [`PairState`](host_driver::PairState).
    pub state: &'static str,
    /// Credits in hand.
    pub available: u32,
    /// Sends that went out and aren't acknowledged.
    pub unacknowledged: u32,
    /// Sends that wait for credit or for their turn.
    pub waiting: u32,
    /// Accesses of the peer that a region refused.
    pub refused: u32,
    /// Its messages.
    #[serde(flatten)]
    pub traffic: Traffic,
}

impl PairStats {
    /// The pair with `peer`, of which the card tells `status`.
    pub fn new(peer: usize, status: &PairStatus, traffic: Traffic) -> Self {
        Self {
            peer,
            state: status.state.name(),
            available: status.available,
            unacknowledged: status.unacknowledged,
            waiting: status.waiting,
            refused: status.refused,
            traffic,
        }
    }
}

/// What a card's firmware was asked when all ranks had finished.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// Every [`Counter`], by name.
    pub counters: BTreeMap<&'static str, u64>,
    /// Every pair, by the rank at its other end.
    pub pairs: Vec<PairStats>,
}

impl Asked {
    /// Reads the card's counters; the pairs are for the caller to add.
    ///
    /// # Errors
    /// [`CommandError`] if the firmware doesn't answer.
    pub fn counters(device: &Device) -> Result<Self, CommandError> {
        let mut asked = Self::default();
        for &counter in Counter::ALL {
            let value = device.read_counter(counter)?;
            asked.counters.insert(counter.name(), value);
        }
        Ok(asked)
    }
}

/// What the simulator counted around a card, to its end: more than the card says, since endpoints are closed after it was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Around {
    /// Frames that the card sent to the network.
    pub frames_sent: u64,
    /// Frames that it took from the network.
    pub frames_taken: u64,
    /// Most frames that waited at its port at once.
    pub port_queue: usize,
    /// Read bursts of its DMA.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Write bursts of its DMA.
    pub writes: u64,
    /// Their bytes.
    pub write_bytes: u64,
    /// Bursts that touched an address that isn't mapped.
    pub unmapped: u64,
}

/// A card and what is around it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CardStats {
    /// What the card says, if the replay came to its end.
    #[serde(flatten)]
    pub asked: Option<Asked>,
    /// What the simulator counted.
    pub simulated: Around,
}

/// What the network did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Network {
    /// Frames that came from cards.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames given to cards.
    pub delivered: u64,
    /// Frames dropped because no card has their address.
    pub unknown: u64,
    /// Frames dropped because they have no Ethernet header.
    pub runts: u64,
}

/// Every counter of a replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stats {
    /// The recorded application.
    pub app: String,
    /// Configuration of the cards.
    pub config: String,
    /// Seed.
    pub seed: u64,
    /// Whether the replay came to its end, and all was right.
    pub complete: bool,
    /// Cycles, the same for all cards, from reset to the end: more than those of the summary, which begin with the first post.
    pub cycles: u64,
    /// Each card, which is its rank's.
    pub cards: Vec<CardStats>,
    /// What is between them.
    pub network: Network,
    /// How often the credits of an ordered pair were checked.
    pub credit_checks: u64,
}

impl Stats {
    /// The counters of a replay that is summed up in `summary`.
    pub fn new(summary: &Summary, played: &[Played], report: &Report) -> Self {
        let cards = report.cards.iter().enumerate().map(|(card, report)| {
            let memory = report.memory;
            let simulated = Around {
                frames_sent: report.frames_sent,
                frames_taken: report.frames_taken,
                port_queue: report.port_queue,
                reads: memory.reads,
                read_bytes: memory.read_bytes,
                writes: memory.writes,
                write_bytes: memory.write_bytes,
                unmapped: memory.unmapped,
            };
            let asked = played.get(card).and_then(|played| played.asked.clone());
            CardStats { asked, simulated }
        });
        let fabric = &report.fabric;
        Self {
            app: summary.app.clone(),
            config: summary.config.clone(),
            seed: summary.seed,
            complete: summary.complete,
            cycles: report.cycles,
            cards: cards.collect(),
            network: Network {
                frames: fabric.frames,
                bytes: fabric.bytes,
                delivered: fabric.delivered,
                unknown: fabric.unknown,
                runts: fabric.runts,
            },
            credit_checks: report.credit_checks,
        }
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cards, end) = (
            self.cards.len(),
            if self.complete { "" } else { "  PARTIAL" },
        );
        let Self {
            app,
            config,
            seed,
            network,
            ..
        } = self;
        writeln!(f, "{app} on {cards} {config} cards, seed {seed}{end}")?;
        let mut line = |name: &str, value: String| writeln!(f, "  {name:<22} {value}");
        line("cycles from reset", self.cycles.to_string())?;
        line("credits checked", format!("{} times", self.credit_checks))?;
        let Network {
            frames,
            bytes,
            delivered,
            unknown,
            runts,
        } = network;
        line(
            "network",
            format!(
                "{frames} frames, {bytes} bytes, {delivered} delivered, {unknown} to no card, {runts} too short"
            ),
        )?;
        for (number, card) in self.cards.iter().enumerate() {
            writeln!(f, "card {number}")?;
            let mut line = |name: &str, value: String| writeln!(f, "  {name:<22} {value}");
            let around = &card.simulated;
            let Around {
                frames_sent,
                frames_taken,
                port_queue,
                ..
            } = around;
            line(
                "at its port",
                format!(
                    "{frames_sent} frames sent, {frames_taken} taken, at most {port_queue} waiting"
                ),
            )?;
            let Around {
                reads,
                read_bytes,
                writes,
                write_bytes,
                unmapped,
                ..
            } = around;
            line(
                "memory",
                format!(
                    "{reads} reads of {read_bytes} bytes, {writes} writes of {write_bytes} bytes, {unmapped} not mapped"
                ),
            )?;
            let Some(asked) = &card.asked else {
                line(
                    "counters",
                    "not read: the replay didn't come to its end".into(),
                )?;
                continue;
            };
            for counter in Counter::ALL {
                let value = asked.counters.get(counter.name()).copied().unwrap_or(0);
                line(counter.name(), value.to_string())?;
            }
            for pair in &asked.pairs {
                let Traffic {
                    sent,
                    sent_bytes,
                    received,
                    received_bytes,
                } = pair.traffic;
                line(
                    &format!("pair with card {}", pair.peer),
                    format!(
                        "{}; sent {sent} of {sent_bytes} bytes, received {received} of {received_bytes} bytes; {} credits, {} unacknowledged, {} waiting, \
                         {} refused",
                        pair.state, pair.available, pair.unacknowledged, pair.waiting, pair.refused
                    ),
                )?;
            }
        }
        Ok(())
    }
}
