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
mod stable;
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
pub use stable::Stable;
pub use stream_mux::StreamMux;

use crate::prelude::*;
use crate::tops::{Class, Top};

/// The tops of the primitives' tests.
pub fn tops() -> Vec<Top> {
    vec![
        Top::of("prim_ram", Class::Test, || Ram::<Bits<80>>::new(10)),
        Top::of("prim_byte_ram", Class::Test, || ByteRam::<32, 4>::new(8)),
        Top::of("prim_fifo", Class::Test, || Fifo::<Bits<64>>::new(5)),
        Top::of("prim_fifo_2", Class::Test, || Fifo::<Bits<64>>::new(2)),
        Top::of("prim_skid", Class::Test, Skid::<Bits<64>>::default),
        Top::of("prim_round_robin", Class::Test, || RoundRobin::new(5)),
        Top::of("prim_stream_mux", Class::Test, || {
            StreamMux::<Bits<64>>::new(3)
        }),
        Top::of("prim_counter", Class::Test, Counter::<5>::default),
        Top::of("prim_power_on_reset", Class::Test, PowerOnReset::default),
        Top::of("prim_stable", Class::Test, || {
            Stable::<Bits<8>>::new("stays_offered")
        }),
    ]
}
