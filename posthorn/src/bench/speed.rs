//! How fast the simulation is: cycles of cards for each second, with two cards under traffic, and how much
//! faster that is than rust-hdl's own simulator.

use anyhow::Result;
use host_driver::WcKind;
use sim::{Cluster, Firmware, Rate};

use super::peer::Peer;
use super::{Point, Report, speedup};

/// For how long to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// To see whether it runs: the figures say little.
    Short,
    /// For the figures.
    Normal,
    /// For figures that repeat better.
    Long,
}

impl Length {
    /// Messages that each card sends.
    const fn messages(self) -> u64 {
        match self {
            Self::Short => 100,
            Self::Normal => 2_000,
            Self::Long => 20_000,
        }
    }

    /// Cards whose gates are measured. Most of a short run is commands that set it up: its processors are fast, and it takes one thread.
    pub(super) fn cluster(self, config: &str) -> Cluster {
        let cluster = Cluster::verilated(config);
        match self {
            Self::Short => cluster.processor_clock(Rate::Times(8)).threads(1),
            Self::Normal | Self::Long => cluster,
        }
    }
}

/// Bytes of a message.
const BYTES: usize = 256;
/// Sends and receives that each card keeps outstanding.
const WINDOW: u64 = 4;

/// Runs the suite for each of `configs`.
///
/// # Errors
/// If the simulation fails.
pub fn run(configs: &[&str], length: Length, seed: u64, firmware: &Firmware) -> Result<Report> {
    let messages = length.messages();
    let mut points = Vec::new();
    for &config in configs {
        let outcome = Cluster::verilated(config)
            .cards(2)
            .seed(seed)
            .firmware(firmware.clone())
            .run(|host| stream(&Peer::open(host)?, messages));
        let report = outcome.report.clone();
        for result in outcome.hosts()? {
            result?;
        }
        let params = [("config", config.into()), ("cards", 2.into())];
        let mut point = Point::new("speed", params, report.cycles_per_second(), "cycles/s");
        point
            .beside
            .insert("per_cpu_second", report.cycles_per_cpu_second());
        point
            .beside
            .insert("cycles_per_message", report.cycles as f64 / messages as f64);
        points.push(point);
        if cfg!(debug_assertions) {
            // rust-hdl's half would be code that the compiler wasn't asked to make fast.
            eprintln!(
                "speedup: measured by a release build only (cargo run --release -p posthorn)"
            );
            continue;
        }
        let rates = speedup::measure(config)?;
        let ratio = rates.verilated / rates.rust_hdl;
        let mut point = Point::new("speedup", [("config", config.into())], ratio, "ratio");
        point.beside.insert("verilated", rates.verilated);
        point.beside.insert("rust_hdl", rates.rust_hdl);
        points.push(point);
    }
    Ok(Report::new(
        "sim",
        configs.first().unwrap_or(&""),
        seed,
        points,
    ))
}

/// Sends and receives at once, a few of each outstanding.
fn stream(peer: &Peer, messages: u64) -> Result<()> {
    let (mut sent, mut posted, mut done) = (0, 0, 0);
    for _ in 0..WINDOW.min(messages) {
        peer.receive(posted, peer.buffer(BYTES)?)?;
        posted += 1;
    }
    peer.barrier()?;
    for _ in 0..WINDOW.min(messages) {
        peer.send(sent, peer.buffer(BYTES)?)?;
        sent += 1;
    }
    while done < 2 * messages {
        let (kind, buffer) = peer.complete()?;
        done += 1;
        match kind {
            WcKind::Send if sent < messages => {
                peer.send(sent, buffer)?;
                sent += 1;
            }
            WcKind::Receive if posted < messages => {
                peer.receive(posted, buffer)?;
                posted += 1;
            }
            _ => {}
        }
    }
    Ok(())
}
