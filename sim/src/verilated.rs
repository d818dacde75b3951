//! The Verilated card: the pins of [`crate::pins`] on a [`model::Model`].
//!
//! ```text
//!  Inputs ──set──► ┌───────┐   fall: the gates settle with them
//!                  │ Model │
//!  Outputs ◄─get── └───────┘   rise: the clock edge that ends the cycle
//! ```

use std::io;
use std::path::Path;

use abi::control::DATA_WORDS;
use abi::mgmt::{MEMORY_BASE, memory_word};
use abi::monitor::place_unit_fields;
use hdl::config::Config;
use match_reference::{Sizes, sizes_of};
use model::{Model, ModelError, Port, Rate};

use crate::pins::{CardModel, Inputs, Outputs};

/// Where each pin is. Names are those of the book's page "The card inside".
macro_rules! ports {
    ($($port:ident)*) => {
        struct Ports { $($port: Port,)* }

        impl Ports {
            fn of(model: &Model) -> Result<Self, ModelError> {
                Ok(Self { $($port: model.port(stringify!($port))?,)* })
            }
        }
    };
}

ports! {
    reset
    s_axil_awaddr s_axil_awvalid s_axil_awready
    s_axil_wdata s_axil_wstrb s_axil_wvalid s_axil_wready
    s_axil_bresp s_axil_bvalid s_axil_bready
    s_axil_araddr s_axil_arvalid s_axil_arready
    s_axil_rdata s_axil_rresp s_axil_rvalid s_axil_rready
    m_axi_awid m_axi_awaddr m_axi_awlen m_axi_awsize m_axi_awburst m_axi_awlock m_axi_awcache m_axi_awprot m_axi_awqos
    m_axi_awvalid m_axi_awready
    m_axi_wdata m_axi_wstrb m_axi_wlast m_axi_wvalid m_axi_wready
    m_axi_bid m_axi_bresp m_axi_bvalid m_axi_bready
    m_axi_arid m_axi_araddr m_axi_arlen m_axi_arsize m_axi_arburst m_axi_arlock m_axi_arcache m_axi_arprot m_axi_arqos
    m_axi_arvalid m_axi_arready
    m_axi_rid m_axi_rdata m_axi_rresp m_axi_rlast m_axi_rvalid m_axi_rready
    m_axis_tdata m_axis_tkeep m_axis_tlast m_axis_tvalid m_axis_tready
    s_axis_tdata s_axis_tkeep s_axis_tlast s_axis_tuser s_axis_tvalid s_axis_tready
    interrupts
    log_data log_valid
    strap_mac strap_seed
    monitor_gates_reset
    monitor_control_valid monitor_control_operation monitor_control_index monitor_control_data
    monitor_source_valid monitor_source_pair monitor_source_taken monitor_source_returned monitor_source_put
    monitor_sink_valid monitor_sink_pair monitor_sink_accepted monitor_sink_freed
    monitor_match_valid monitor_match_operation monitor_match_posted monitor_match_unexpected
    monitor_match_command monitor_reply_valid monitor_reply_found monitor_reply_full monitor_reply_index monitor_reply_more
    monitor_unit_valid monitor_unit
}

/// The management processor in the hierarchy of a card's modules, and its memories in the order of their addresses; see `hdl/src/mgmt/processor.rs`.
const PROCESSOR: &str = "subsystem.processor";
const MEMORIES: [&str; 2] = ["lower", "upper"];

/// A card whose gates Verilator has compiled.
pub struct VerilatedCard {
    model: Model,
    ports: Ports,
    processor_clock: Port,
    sizes: Option<Sizes>,
    /// What the pins were last set to.
    inputs: Inputs,
}

impl VerilatedCard {
    /// Opens the card of a named configuration. What the gates give no initial value is noise by `seed`. With `traced`, the
    /// slower build that can write a waveform.
    ///
    /// # Errors
    /// If the model isn't linked in or lacks a pin; the message says what to run.
    pub fn open(config: &str, seed: u64, traced: bool) -> Result<Self, ModelError> {
        let name = &format!("nic_{config}");
        let mut model = if traced {
            Model::open_traced(name, seed)?
        } else {
            Model::open_seeded(name, seed)?
        };
        let processor_clock = model.port("processor_clock")?;
        model.second_clock(processor_clock, Rate::Times(1));
        let ports = Ports::of(&model)?;
        let mut card = Self {
            model,
            ports,
            processor_clock,
            sizes: Config::named(config).as_ref().map(sizes_of),
            inputs: Inputs::default(),
        };
        card.set(&Inputs::default(), true);
        Ok(card)
    }

    /// Sets the pins that differ from what they are, or all of them.
    #[inline]
    fn set(&mut self, inputs: &Inputs, all: bool) {
        let Self {
            model: m,
            ports: p,
            inputs: old,
            ..
        } = self;
        if all || inputs.reset != old.reset {
            m.set(p.reset, inputs.reset.into());
        }
        let lite = &inputs.lite;
        if all || *lite != old.lite {
            m.set(p.s_axil_awvalid, lite.awvalid.into());
            m.set(p.s_axil_awaddr, lite.awaddr.into());
            m.set(p.s_axil_wvalid, lite.wvalid.into());
            m.set(p.s_axil_wdata, lite.wdata.into());
            m.set(p.s_axil_wstrb, lite.wstrb.into());
            m.set(p.s_axil_bready, lite.bready.into());
            m.set(p.s_axil_arvalid, lite.arvalid.into());
            m.set(p.s_axil_araddr, lite.araddr.into());
            m.set(p.s_axil_rready, lite.rready.into());
        }
        // What isn't set hasn't changed, and a cycle in which nothing has takes less of the gates.
        if all || inputs.ar_ready != old.ar_ready {
            m.set(p.m_axi_arready, inputs.ar_ready.into());
        }
        if all || inputs.aw_ready != old.aw_ready {
            m.set(p.m_axi_awready, inputs.aw_ready.into());
        }
        if all || inputs.w_ready != old.w_ready {
            m.set(p.m_axi_wready, inputs.w_ready.into());
        }
        if all || inputs.r != old.r {
            m.set(p.m_axi_rvalid, inputs.r.valid.into());
            m.set(p.m_axi_rid, inputs.r.id.into());
            m.set(p.m_axi_rdata, inputs.r.data);
            m.set(p.m_axi_rresp, inputs.r.resp.into());
            m.set(p.m_axi_rlast, inputs.r.last.into());
        }
        if all || inputs.b != old.b {
            m.set(p.m_axi_bvalid, inputs.b.valid.into());
            m.set(p.m_axi_bid, inputs.b.id.into());
            m.set(p.m_axi_bresp, inputs.b.resp.into());
        }
        if all || inputs.tx_ready != old.tx_ready {
            m.set(p.m_axis_tready, inputs.tx_ready.into());
        }
        if all || inputs.rx != old.rx {
            m.set(p.s_axis_tvalid, inputs.rx.valid.into());
            m.set(p.s_axis_tdata, inputs.rx.data);
            m.set(p.s_axis_tkeep, inputs.rx.keep.into());
            m.set(p.s_axis_tlast, inputs.rx.last.into());
            m.set(p.s_axis_tuser, inputs.rx.bad.into());
        }
        if all || inputs.strap_mac != old.strap_mac || inputs.strap_seed != old.strap_seed {
            m.set(p.strap_mac, inputs.strap_mac);
            m.set(p.strap_seed, inputs.strap_seed.into());
        }
        self.inputs = *inputs;
    }

    /// Reads the pins. What isn't valid is left as it was.
    #[inline]
    fn get(&self, out: &mut Outputs) {
        let (m, p) = (&self.model, &self.ports);
        let bit = |port| m.get(port) != 0;
        let lite = &mut out.lite;
        lite.awready = bit(p.s_axil_awready);
        lite.wready = bit(p.s_axil_wready);
        lite.arready = bit(p.s_axil_arready);
        lite.bvalid = bit(p.s_axil_bvalid);
        if lite.bvalid {
            lite.bresp = m.get(p.s_axil_bresp) as u8;
        }
        lite.rvalid = bit(p.s_axil_rvalid);
        if lite.rvalid {
            lite.rdata = m.get(p.s_axil_rdata) as u32;
            lite.rresp = m.get(p.s_axil_rresp) as u8;
        }
        out.ar.valid = bit(p.m_axi_arvalid);
        if out.ar.valid {
            out.ar.id = m.get(p.m_axi_arid) as u8;
            out.ar.addr = m.get(p.m_axi_araddr);
            out.ar.len = m.get(p.m_axi_arlen) as u8;
            out.ar.size = m.get(p.m_axi_arsize) as u8;
            out.ar.burst = m.get(p.m_axi_arburst) as u8;
            out.ar.lock = bit(p.m_axi_arlock);
            out.ar.cache = m.get(p.m_axi_arcache) as u8;
            out.ar.prot = m.get(p.m_axi_arprot) as u8;
            out.ar.qos = m.get(p.m_axi_arqos) as u8;
        }
        out.aw.valid = bit(p.m_axi_awvalid);
        if out.aw.valid {
            out.aw.id = m.get(p.m_axi_awid) as u8;
            out.aw.addr = m.get(p.m_axi_awaddr);
            out.aw.len = m.get(p.m_axi_awlen) as u8;
            out.aw.size = m.get(p.m_axi_awsize) as u8;
            out.aw.burst = m.get(p.m_axi_awburst) as u8;
            out.aw.lock = bit(p.m_axi_awlock);
            out.aw.cache = m.get(p.m_axi_awcache) as u8;
            out.aw.prot = m.get(p.m_axi_awprot) as u8;
            out.aw.qos = m.get(p.m_axi_awqos) as u8;
        }
        out.w.valid = bit(p.m_axi_wvalid);
        if out.w.valid {
            out.w.data = m.get(p.m_axi_wdata);
            out.w.strb = m.get(p.m_axi_wstrb) as u8;
            out.w.last = bit(p.m_axi_wlast);
        }
        out.r_ready = bit(p.m_axi_rready);
        out.b_ready = bit(p.m_axi_bready);
        out.tx.valid = bit(p.m_axis_tvalid);
        if out.tx.valid {
            out.tx.data = m.get(p.m_axis_tdata);
            out.tx.keep = m.get(p.m_axis_tkeep) as u8;
            out.tx.last = bit(p.m_axis_tlast);
        }
        out.rx_ready = bit(p.s_axis_tready);
        out.interrupts = m.get(p.interrupts) as u32;
        out.log = bit(p.log_valid).then(|| m.get(p.log_data) as u8);
        out.gates_reset = bit(p.monitor_gates_reset);
        out.control.valid = bit(p.monitor_control_valid);
        if out.control.valid {
            out.control.operation = m.get(p.monitor_control_operation) as u8;
            out.control.index = m.get(p.monitor_control_index) as u16;
            let mut halves = [0; 2 * DATA_WORDS];
            m.get_wide(p.monitor_control_data, &mut halves);
            for (word, half) in out.control.data.iter_mut().zip(halves.chunks(2)) {
                *word = u64::from(half[0]) | u64::from(half[1]) << 32;
            }
        }
        out.source.valid = bit(p.monitor_source_valid);
        if out.source.valid {
            out.source.pair = m.get(p.monitor_source_pair) as u16;
            out.source.taken = m.get(p.monitor_source_taken) as u32;
            out.source.returned = m.get(p.monitor_source_returned) as u32;
            out.source.put = bit(p.monitor_source_put);
        }
        out.sink.valid = bit(p.monitor_sink_valid);
        if out.sink.valid {
            out.sink.pair = m.get(p.monitor_sink_pair) as u16;
            out.sink.accepted = m.get(p.monitor_sink_accepted) as u32;
            out.sink.freed = m.get(p.monitor_sink_freed) as u32;
        }
        out.matching.valid = bit(p.monitor_match_valid);
        if out.matching.valid {
            out.matching.operation = m.get(p.monitor_match_operation) as u8;
            out.matching.posted = m.get(p.monitor_match_posted) as u16;
            out.matching.unexpected = m.get(p.monitor_match_unexpected) as u16;
            m.get_wide(p.monitor_match_command, &mut out.matching.command);
        }
        out.reply.valid = bit(p.monitor_reply_valid);
        if out.reply.valid {
            out.reply.found = bit(p.monitor_reply_found);
            out.reply.full = bit(p.monitor_reply_full);
            out.reply.index = m.get(p.monitor_reply_index) as u16;
            out.reply.more = bit(p.monitor_reply_more);
        }
        out.unit.valid = bit(p.monitor_unit_valid);
        if out.unit.valid {
            (out.unit.pair, out.unit.count, out.unit.unit) =
                place_unit_fields(m.get(p.monitor_unit));
        }
    }
}

impl CardModel for VerilatedCard {
    #[inline]
    fn step(&mut self, inputs: &Inputs, outputs: &mut Outputs) {
        self.set(inputs, false);
        self.model.fall();
        self.get(outputs);
        self.model.rise();
    }

    #[inline]
    fn assertion(&mut self) -> Option<String> {
        let failed = self.model.got_error().err()?;
        self.model.clear_error();
        Some(failed.to_string())
    }

    fn set_processor_clock(&mut self, rate: Rate) {
        self.model.second_clock(self.processor_clock, rate);
    }

    fn hold_processor_clock(&mut self, held: bool) {
        self.model.hold_second_clock(held);
    }

    fn preload(&mut self, address: u32, bytes: &[u8]) -> bool {
        let words: Vec<u32> = bytes.chunks(4).map(memory_word).collect();
        let mut left = words.as_slice();
        // Words of the memories before this one, and of that which is written next.
        let (mut start, mut next) = (0, address.wrapping_sub(MEMORY_BASE) as usize / 4);
        for name in MEMORIES {
            let path = format!("{}.{PROCESSOR}.{name}.words", self.model.name());
            let Ok(memory) = self.model.memory(&path) else {
                return false;
            };
            let end = start + memory.len();
            if next < end && !left.is_empty() {
                let here = left.len().min(end - next);
                memory[next - start..][..here].copy_from_slice(&left[..here]);
                (left, next) = (&left[here..], next + here);
            }
            start = end;
        }
        left.is_empty()
    }

    fn sizes(&self) -> Option<Sizes> {
        self.sizes
    }

    fn start_waves(&mut self, path: &Path) -> io::Result<()> {
        self.model.trace_start(path).map_err(io::Error::other)
    }

    fn stop_waves(&mut self) {
        self.model.trace_stop();
    }
}
