//! Primitives: the blocks that everything else is made of. Hand-written Verilog is in here and
//! nowhere else, each piece beside its Rust model.

pub mod axi;
mod byte_ram;
mod cast;
mod check;
mod counter;
mod fifo;
mod memory;
pub mod power_on_reset;
mod ram;
mod reg;
mod round_robin;
mod skid;
mod stream_mux;

pub use byte_ram::ByteRam;
pub use cast::Cast;
pub use check::Check;
pub use counter::Counter;
pub use fifo::Fifo;
pub use power_on_reset::PowerOnReset;
pub use ram::Ram;
pub use reg::Reg;
pub use round_robin::RoundRobin;
pub use skid::Skid;
pub use stream_mux::StreamMux;
