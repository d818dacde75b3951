//! The management processor's core: lowRISC's Ibex, RV32IMC in its small configuration.
//!
//! ```text
//!             ┌──────┐
//!   running ─►│      ├─► fetch_*   instructions: request, grant, answer a cycle or more later
//!   timer ───►│ Ibex │
//!   external ►│      ├─► load_*    data: the same, with write and byte enables
//!             └──────┘
//! ```
//!
//! The RTL stays in its package; `ibex.f` lists what of it a top needs. It starts at 0x80 bytes from
//! the boot address. There is no model of it in Rust: in rust-hdl's own simulation it never asks
//! for anything, as if it were held.

use crate::prelude::*;
use abi::mgmt::MEMORY_BASE;

/// An Ibex with its unused ports tied off.
#[block]
pub struct Ibex {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Low holds the core in reset. From a register: its reset is asynchronous.
    pub running: Signal<In, Bit>,
    /// Timer interrupt, level.
    pub timer_interrupt: Signal<In, Bit>,
    /// External interrupt, level.
    pub external_interrupt: Signal<In, Bit>,
    /// An instruction word is asked for.
    pub fetch_request: Signal<Out, Bit>,
    /// The memory has heard it.
    pub fetch_grant: Signal<In, Bit>,
    /// Address, a multiple of 4.
    pub fetch_address: Signal<Out, Bits<32>>,
    /// The oldest request is answered.
    pub fetch_valid: Signal<In, Bit>,
    /// The word.
    pub fetch_data: Signal<In, Bits<32>>,
    /// With the answer: there is no memory at that address.
    pub fetch_error: Signal<In, Bit>,
    /// A load or a store.
    pub data_request: Signal<Out, Bit>,
    /// The memory has taken the access.
    pub data_grant: Signal<In, Bit>,
    /// Address, a multiple of 4.
    pub data_address: Signal<Out, Bits<32>>,
    /// The access is a store.
    pub data_write: Signal<Out, Bit>,
    /// Bytes concerned.
    pub data_enable: Signal<Out, Bits<4>>,
    /// Word to store.
    pub data_out: Signal<Out, Bits<32>>,
    /// The oldest request is answered.
    pub data_valid: Signal<In, Bit>,
    /// Word loaded.
    pub data_in: Signal<In, Bits<32>>,
    /// With the answer: neither memory nor register is at that address.
    pub data_error: Signal<In, Bit>,
}

#[block]
impl Logic for Ibex {
    fn update(&mut self) {}

    fn connect(&mut self) {
        self.fetch_request.connect();
        self.fetch_address.connect();
        self.data_request.connect();
        self.data_address.connect();
        self.data_write.connect();
        self.data_enable.connect();
        self.data_out.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Wrapper(Wrapper {
            code: INSTANCE.replace("BOOT_ADDRESS", &format!("32'h{MEMORY_BASE:08x}")),
            cores: String::new(),
        })
    }
}

const INSTANCE: &str = "\
wire [6:0] unused_data_integrity;
wire unused_scramble, unused_fault, unused_minor, unused_internal, unused_bus, unused_sleep;
ibex_pkg::crash_dump_t unused_crash_dump;
ibex_top #(
  .RV32M(ibex_pkg::RV32MFast),
  .RegFile(ibex_pkg::RegFileFF)
) core (
  .clk_i(clock),
  .rst_ni(running),
  .test_en_i(1'b0),
  .ram_cfg_i('0),
  .hart_id_i('0),
  .boot_addr_i(BOOT_ADDRESS),
  .instr_req_o(fetch_request),
  .instr_gnt_i(fetch_grant),
  .instr_rvalid_i(fetch_valid),
  .instr_addr_o(fetch_address),
  .instr_rdata_i(fetch_data),
  .instr_rdata_intg_i('0),
  .instr_err_i(fetch_error),
  .data_req_o(data_request),
  .data_gnt_i(data_grant),
  .data_rvalid_i(data_valid),
  .data_we_o(data_write),
  .data_be_o(data_enable),
  .data_addr_o(data_address),
  .data_wdata_o(data_out),
  .data_wdata_intg_o(unused_data_integrity),
  .data_rdata_i(data_in),
  .data_rdata_intg_i('0),
  .data_err_i(data_error),
  .irq_software_i(1'b0),
  .irq_timer_i(timer_interrupt),
  .irq_external_i(external_interrupt),
  .irq_fast_i('0),
  .irq_nm_i(1'b0),
  .scramble_key_valid_i(1'b0),
  .scramble_key_i('0),
  .scramble_nonce_i('0),
  .scramble_req_o(unused_scramble),
  .debug_req_i(1'b0),
  .crash_dump_o(unused_crash_dump),
  .double_fault_seen_o(unused_fault),
  .fetch_enable_i(ibex_pkg::IbexMuBiOn),
  .alert_minor_o(unused_minor),
  .alert_major_internal_o(unused_internal),
  .alert_major_bus_o(unused_bus),
  .core_sleep_o(unused_sleep),
  .scan_rst_ni(1'b1)
);
";
