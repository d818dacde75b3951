//! The signals of AXI, grouped as one side sees them.
//!
//! Names are those of the AMBA specifications (IHI 0022, IHI 0051), without the `m_` or `s_` of the
//! port: a block has a field `m_axi: AxiRead`, whose signals print as `m_axi_araddr` and so on.
//! Each group is a rust-hdl interface: `AxiRead::link(&mut self.m_axi, &mut self.reader.m_axi)`
//! hands a child's port on to the parent's. Direction is that of the block that has the port.
//!
//! | group | side | channels |
//! |---|---|---|
//! | [`AxiRead`] | manager | AR, R |
//! | [`AxiWrite`] | manager | AW, W, B |
//! | [`AxiManager`] | manager | AR, R, AW, W, B |
//! | [`AxiLite`] | subordinate | all five |
//! | [`StreamSource`] | transmitter | AXI4-Stream |
//! | [`StreamSink`] | receiver | AXI4-Stream |
//!
//! Widths are those of the card: 64-bit data and addresses towards host memory and network, 32-bit
//! registers.

use crate::prelude::*;

/// `AxSIZE` of a beat of 8 bytes.
pub const SIZE_8_BYTES: u64 = 3;
/// `AxBURST`: each beat at the next address.
pub const BURST_INCR: u64 = 1;
/// `AxPROT` (IHI 0022, A4.7): unprivileged, non-secure, data. The card works for programs, so it asks for the least rights that there are.
pub const PROT_LEAST: u64 = 0b010;
/// `AxCACHE` (IHI 0022, A4.4): normal memory, neither cached nor buffered on the way. A write is answered from its final destination, which is
/// what a completion and an acknowledgement promise; interconnects may still change the width of bursts.
pub const CACHE_FINAL: u64 = 0b0010;
/// `xRESP`: done.
pub const RESP_OKAY: u64 = 0;
/// `xRESP`: the subordinate reports an error.
pub const RESP_SLVERR: u64 = 2;
/// No burst crosses a multiple of this many bytes (IHI 0022, A3.4.1).
pub const BOUNDARY: u64 = 4096;

/// Read channels of an AXI4 manager.
#[derive(Default, LogicInterface)]
pub struct AxiRead {
    /// Transaction id.
    pub arid: Signal<Out, Bits<4>>,
    /// Address of the first byte.
    pub araddr: Signal<Out, Bits<64>>,
    /// Beats less one.
    pub arlen: Signal<Out, Bits<8>>,
    /// log2 of the bytes of a beat.
    pub arsize: Signal<Out, Bits<3>>,
    /// How the address goes on.
    pub arburst: Signal<Out, Bits<2>>,
    /// The address is offered.
    pub arvalid: Signal<Out, Bit>,
    /// The address is taken.
    pub arready: Signal<In, Bit>,
    /// Transaction that the beat belongs to.
    pub rid: Signal<In, Bits<4>>,
    /// Data.
    pub rdata: Signal<In, Bits<64>>,
    /// `RESP_*`.
    pub rresp: Signal<In, Bits<2>>,
    /// Last beat of the burst.
    pub rlast: Signal<In, Bit>,
    /// A beat is offered.
    pub rvalid: Signal<In, Bit>,
    /// The beat is taken.
    pub rready: Signal<Out, Bit>,
}

/// Write channels of an AXI4 manager.
#[derive(Default, LogicInterface)]
pub struct AxiWrite {
    /// Transaction id.
    pub awid: Signal<Out, Bits<4>>,
    /// Address of the first byte.
    pub awaddr: Signal<Out, Bits<64>>,
    /// Beats less one.
    pub awlen: Signal<Out, Bits<8>>,
    /// log2 of the bytes of a beat.
    pub awsize: Signal<Out, Bits<3>>,
    /// How the address goes on.
    pub awburst: Signal<Out, Bits<2>>,
    /// The address is offered.
    pub awvalid: Signal<Out, Bit>,
    /// The address is taken.
    pub awready: Signal<In, Bit>,
    /// Data.
    pub wdata: Signal<Out, Bits<64>>,
    /// Bytes of the beat that are written.
    pub wstrb: Signal<Out, Bits<8>>,
    /// Last beat of the burst.
    pub wlast: Signal<Out, Bit>,
    /// A beat is offered.
    pub wvalid: Signal<Out, Bit>,
    /// The beat is taken.
    pub wready: Signal<In, Bit>,
    /// Transaction that the response belongs to.
    pub bid: Signal<In, Bits<4>>,
    /// `RESP_*`.
    pub bresp: Signal<In, Bits<2>>,
    /// A response is offered.
    pub bvalid: Signal<In, Bit>,
    /// The response is taken.
    pub bready: Signal<Out, Bit>,
}

/// All channels of an AXI4 manager, as the card has them at its pins.
#[derive(Default, LogicInterface)]
pub struct AxiManager {
    /// Transaction id.
    pub awid: Signal<Out, Bits<4>>,
    /// Address of the first byte.
    pub awaddr: Signal<Out, Bits<64>>,
    /// Beats less one.
    pub awlen: Signal<Out, Bits<8>>,
    /// log2 of the bytes of a beat.
    pub awsize: Signal<Out, Bits<3>>,
    /// How the address goes on.
    pub awburst: Signal<Out, Bits<2>>,
    /// Exclusive access; never.
    pub awlock: Signal<Out, Bit>,
    /// Type of the memory: [`CACHE_FINAL`].
    pub awcache: Signal<Out, Bits<4>>,
    /// Rights: [`PROT_LEAST`].
    pub awprot: Signal<Out, Bits<3>>,
    /// Quality of service; 0, no scheme.
    pub awqos: Signal<Out, Bits<4>>,
    /// The address is offered.
    pub awvalid: Signal<Out, Bit>,
    /// The address is taken.
    pub awready: Signal<In, Bit>,
    /// Data.
    pub wdata: Signal<Out, Bits<64>>,
    /// Bytes of the beat that are written.
    pub wstrb: Signal<Out, Bits<8>>,
    /// Last beat of the burst.
    pub wlast: Signal<Out, Bit>,
    /// A beat is offered.
    pub wvalid: Signal<Out, Bit>,
    /// The beat is taken.
    pub wready: Signal<In, Bit>,
    /// Transaction that the response belongs to.
    pub bid: Signal<In, Bits<4>>,
    /// `RESP_*`.
    pub bresp: Signal<In, Bits<2>>,
    /// A response is offered.
    pub bvalid: Signal<In, Bit>,
    /// The response is taken.
    pub bready: Signal<Out, Bit>,
    /// Transaction id.
    pub arid: Signal<Out, Bits<4>>,
    /// Address of the first byte.
    pub araddr: Signal<Out, Bits<64>>,
    /// Beats less one.
    pub arlen: Signal<Out, Bits<8>>,
    /// log2 of the bytes of a beat.
    pub arsize: Signal<Out, Bits<3>>,
    /// How the address goes on.
    pub arburst: Signal<Out, Bits<2>>,
    /// Exclusive access; never.
    pub arlock: Signal<Out, Bit>,
    /// Type of the memory: [`CACHE_FINAL`].
    pub arcache: Signal<Out, Bits<4>>,
    /// Rights: [`PROT_LEAST`].
    pub arprot: Signal<Out, Bits<3>>,
    /// Quality of service; 0, no scheme.
    pub arqos: Signal<Out, Bits<4>>,
    /// The address is offered.
    pub arvalid: Signal<Out, Bit>,
    /// The address is taken.
    pub arready: Signal<In, Bit>,
    /// Transaction that the beat belongs to.
    pub rid: Signal<In, Bits<4>>,
    /// Data.
    pub rdata: Signal<In, Bits<64>>,
    /// `RESP_*`.
    pub rresp: Signal<In, Bits<2>>,
    /// Last beat of the burst.
    pub rlast: Signal<In, Bit>,
    /// A beat is offered.
    pub rvalid: Signal<In, Bit>,
    /// The beat is taken.
    pub rready: Signal<Out, Bit>,
}

/// An AXI4-Lite subordinate.
#[derive(Default, LogicInterface)]
pub struct AxiLite {
    /// Write address.
    pub awaddr: Signal<In, Bits<{ abi::register::WINDOW_ADDRESS_BITS as usize }>>,
    /// A write address is offered.
    pub awvalid: Signal<In, Bit>,
    /// The write address is taken.
    pub awready: Signal<Out, Bit>,
    /// Write data.
    pub wdata: Signal<In, Bits<32>>,
    /// Bytes that are written.
    pub wstrb: Signal<In, Bits<4>>,
    /// Write data are offered.
    pub wvalid: Signal<In, Bit>,
    /// The write data are taken.
    pub wready: Signal<Out, Bit>,
    /// `RESP_*` of the write.
    pub bresp: Signal<Out, Bits<2>>,
    /// A write response is offered.
    pub bvalid: Signal<Out, Bit>,
    /// The write response is taken.
    pub bready: Signal<In, Bit>,
    /// Read address.
    pub araddr: Signal<In, Bits<{ abi::register::WINDOW_ADDRESS_BITS as usize }>>,
    /// A read address is offered.
    pub arvalid: Signal<In, Bit>,
    /// The read address is taken.
    pub arready: Signal<Out, Bit>,
    /// Data read.
    pub rdata: Signal<Out, Bits<32>>,
    /// `RESP_*` of the read.
    pub rresp: Signal<Out, Bits<2>>,
    /// Read data are offered.
    pub rvalid: Signal<Out, Bit>,
    /// The read data are taken.
    pub rready: Signal<In, Bit>,
}

/// The transmitting side of a stream of Ethernet frames.
#[derive(Default, LogicInterface)]
pub struct StreamSource {
    /// Data, the first byte in the least significant lane.
    pub tdata: Signal<Out, Bits<64>>,
    /// Lanes that hold a byte.
    pub tkeep: Signal<Out, Bits<8>>,
    /// Last word of the frame.
    pub tlast: Signal<Out, Bit>,
    /// A word is offered.
    pub tvalid: Signal<Out, Bit>,
    /// The word is taken.
    pub tready: Signal<In, Bit>,
}

/// The receiving side of a stream of Ethernet frames.
#[derive(Default, LogicInterface)]
pub struct StreamSink {
    /// Data, the first byte in the least significant lane.
    pub tdata: Signal<In, Bits<64>>,
    /// Lanes that hold a byte.
    pub tkeep: Signal<In, Bits<8>>,
    /// Last word of the frame.
    pub tlast: Signal<In, Bit>,
    /// With `tlast`: the frame is bad.
    pub tuser: Signal<In, Bit>,
    /// A word is offered.
    pub tvalid: Signal<In, Bit>,
    /// The word is taken.
    pub tready: Signal<Out, Bit>,
}
