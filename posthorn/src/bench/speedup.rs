//! How much faster the Verilated gates are than the same gates in rust-hdl's own simulator.
//!
//! Both get the same pins in each cycle: frames at full rate on the network port, each with a header that
//! the card looks at and a CRC that it must reject, and a register read as often as the bus allows. The
//! datapath is compared, which is the card without its processor: the processor is a foreign core, of
//! which rust-hdl has no model. What the two answer is compared in every cycle that both simulate.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hdl::config::Config;
use hdl::datapath::Datapath;
use hdl::prelude::*;
use model::{Model, Port};

/// Cycles that both simulate, and whose answers are compared.
const COMPARED: u64 = 400;
/// Cycles that the Verilated gates are timed over.
const TIMED: u64 = 40_000;
/// Beats of a frame.
const BEATS: u64 = 10;
/// Cycles of reset.
const RESET: u64 = 4;
/// rust-hdl's simulator recurses through the hierarchy.
const STACK_BYTES: usize = 1 << 29;

/// What goes in, in one cycle.
struct Stimulus {
    reset: bool,
    tdata: u64,
    tlast: bool,
    araddr: u64,
}

impl Stimulus {
    fn at(cycle: u64) -> Self {
        Self {
            reset: cycle < RESET,
            tdata: cycle.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            tlast: cycle % BEATS == BEATS - 1,
            araddr: 4 * (cycle / 8 % 4),
        }
    }
}

/// What comes out, in one cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Answer {
    tready: bool,
    arready: bool,
    rvalid: bool,
    rdata: u64,
}

/// The two rates, in cycles a second.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Verilated.
    pub verilated: f64,
    /// In rust-hdl's simulator.
    pub rust_hdl: f64,
}

/// Simulates the datapath of `config` in both.
///
/// # Errors
/// If there is no such configuration or no model of it, or if the two differ.
pub fn measure(config: &str) -> Result<Rates> {
    let sizes = Config::named(config).with_context(|| format!("no configuration {config}"))?;
    let (verilated, fast) = verilated(config)?;
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let interpreted = thread.spawn(move || interpreted(&sizes))?;
    let (answers, slow) = interpreted
        .join()
        .ok()
        .context("rust-hdl's simulator panicked")??;
    for (cycle, (a, b)) in verilated.iter().zip(&answers).enumerate() {
        ensure!(
            a == b,
            "cycle {cycle}: the gates answer {a:?}, rust-hdl {b:?}"
        );
    }
    Ok(Rates {
        verilated: TIMED as f64 / fast.as_secs_f64(),
        rust_hdl: COMPARED as f64 / slow.as_secs_f64(),
    })
}

fn verilated(config: &str) -> Result<(Vec<Answer>, Duration)> {
    let mut model = Model::open(&format!("datapath_{config}"))?;
    let port = |name: &str| -> Result<Port> { Ok(model.port(name)?) };
    let reset = port("reset")?;
    let (tdata, tkeep) = (port("s_axis_tdata")?, port("s_axis_tkeep")?);
    let (tlast, tvalid, tready) = (
        port("s_axis_tlast")?,
        port("s_axis_tvalid")?,
        port("s_axis_tready")?,
    );
    let (araddr, arvalid, arready) = (
        port("s_axil_araddr")?,
        port("s_axil_arvalid")?,
        port("s_axil_arready")?,
    );
    let (rvalid, rready, rdata) = (
        port("s_axil_rvalid")?,
        port("s_axil_rready")?,
        port("s_axil_rdata")?,
    );
    for (port, value) in [(tkeep, 0xff), (tvalid, 1), (arvalid, 1), (rready, 1)] {
        model.set(port, value);
    }
    let mut answers = Vec::with_capacity(COMPARED as usize);
    let run = |model: &mut Model, cycle: u64| {
        let stimulus = Stimulus::at(cycle);
        model.set(reset, u64::from(stimulus.reset));
        model.set(tdata, stimulus.tdata);
        model.set(tlast, u64::from(stimulus.tlast));
        model.set(araddr, stimulus.araddr);
        model.fall();
        let answer = Answer {
            tready: model.get(tready) != 0,
            arready: model.get(arready) != 0,
            rvalid: model.get(rvalid) != 0,
            rdata: model.get(rdata),
        };
        model.rise();
        answer
    };
    for cycle in 0..COMPARED {
        answers.push(run(&mut model, cycle));
    }
    let start = Instant::now();
    for cycle in COMPARED..COMPARED + TIMED {
        std::hint::black_box(run(&mut model, cycle));
    }
    Ok((answers, start.elapsed()))
}

fn interpreted(config: &Config) -> Result<(Vec<Answer>, Duration)> {
    let mut gates = Datapath::new(config);
    connect(&mut gates);
    let mut answers = Vec::with_capacity(COMPARED as usize);
    let start = Instant::now();
    for cycle in 0..COMPARED {
        let stimulus = Stimulus::at(cycle);
        gates.clock.next = Clock { clk: false };
        gates.reset.next = stimulus.reset;
        gates.s_axis.tdata.next = stimulus.tdata.into();
        gates.s_axis.tkeep.next = 0xff.into();
        gates.s_axis.tlast.next = stimulus.tlast;
        gates.s_axis.tvalid.next = true;
        gates.s_axil.araddr.next = stimulus.araddr.into();
        gates.s_axil.arvalid.next = true;
        gates.s_axil.rready.next = true;
        settle(&mut gates, cycle)?;
        answers.push(Answer {
            tready: gates.s_axis.tready.val(),
            arready: gates.s_axil.arready.val(),
            rvalid: gates.s_axil.rvalid.val(),
            rdata: gates.s_axil.rdata.val().to_u64(),
        });
        gates.clock.next = Clock { clk: true };
        settle(&mut gates, cycle)?;
    }
    Ok((answers, start.elapsed()))
}

fn settle(gates: &mut Datapath, cycle: u64) -> Result<()> {
    /// Rounds after which gates that change still do so for ever.
    const ROUNDS: usize = 1000;
    ensure!(
        simulate(gates, ROUNDS),
        "cycle {cycle}: rust-hdl's simulation doesn't settle"
    );
    Ok(())
}

/// Tells rust-hdl that the pins are driven from outside.
fn connect(gates: &mut Datapath) {
    gates.clock.connect();
    gates.reset.connect();
    gates.connect_all();
}
