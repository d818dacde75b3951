//! Primitives: the blocks that everything else is made of. Hand-written Verilog is in here and
//! nowhere else, each piece beside its Rust model.

pub mod axi;
mod block_ram;
pub mod breaks;
mod byte_ram;
pub(crate) mod check;
mod counter;
mod crossing;
mod duty;
mod fifo;
mod in_order;
mod level;
mod lowest;
mod memory;
pub mod power_on_reset;
mod ram;
pub(crate) mod reg;
mod round_robin;
mod skid;
mod stable;
mod stream_mux;
mod table;

pub use block_ram::BlockRam;
pub use byte_ram::ByteRam;
pub use check::Check;
pub use counter::Counter;
pub use crossing::{Crossing, CrossingEntry, CrossingExit};
pub use duty::Duty;
pub use fifo::Fifo;
pub use in_order::InOrder;
pub use level::Level;
pub use lowest::Lowest;
pub use power_on_reset::PowerOnReset;
pub use ram::Ram;
pub use reg::Reg;
pub use round_robin::RoundRobin;
pub use skid::Skid;
pub use stable::Stable;
pub use stream_mux::StreamMux;
pub use table::Table;

use lowest::LowestOfTwo;
use memory::Mutation;

use crate::prelude::*;
use crate::tops::{Class, Top};

/// The tops of the primitives' tests. Of memories there are variants whose printed text is wrong.
pub fn tops() -> Vec<Top> {
    let ram = |name, mutation| {
        Top::of(name, Class::Test, move || {
            Ram::<Bits<80>>::mutated(10, mutation)
        })
    };
    let block_ram = |name, mutation| {
        Top::of(name, Class::Test, move || {
            BlockRam::<Bits<80>>::mutated(10, mutation)
        })
    };
    let byte_ram = |name, mutation| {
        Top::of(name, Class::Test, move || {
            ByteRam::<32, 4>::mutated(8, mutation)
        })
    };
    vec![
        ram("prim_ram", Mutation::None),
        ram("prim_ram_reads_new_word", Mutation::ReadsNewWord),
        ram("prim_ram_half_the_words", Mutation::HalfTheWords),
        block_ram("prim_block_ram", Mutation::None),
        block_ram("prim_block_ram_half_the_words", Mutation::HalfTheWords),
        byte_ram("prim_byte_ram", Mutation::None),
        byte_ram("prim_byte_ram_reads_new_word", Mutation::ReadsNewWord),
        byte_ram("prim_byte_ram_writes_whole_word", Mutation::WritesWholeWord),
        Top::of("prim_fifo", Class::Test, || Fifo::<Bits<64>>::new(5)),
        Top::of("prim_fifo_2", Class::Test, || Fifo::<Bits<64>>::new(2)),
        Top::of("prim_skid", Class::Test, Skid::<Bits<64>>::default),
        Top::of("prim_round_robin", Class::Test, || RoundRobin::new(5)),
        Top::of("prim_stream_mux", Class::Test, || {
            StreamMux::<Bits<64>>::new(3)
        }),
        Top::of("prim_counter", Class::Test, Counter::<5>::default),
        Top::of("prim_lowest", Class::Synthesis, Lowest::<64>::default),
        Top::broken(
            "prim_lowest_of_two_broken",
            breaks::lowest,
            LowestOfTwo::default,
        ),
        Top::of("prim_crossing", Class::Test, || {
            Crossing::<Bits<64>>::new(8)
        }),
        Top::broken("prim_crossing_broken", breaks::crossing, || {
            Crossing::<Bits<64>>::new(8)
        }),
        Top::of("prim_level", Class::Test, || Level::new(true)),
        Top::broken("prim_level_broken", breaks::level, || Level::new(true)),
        Top::of("prim_in_order", Class::Test, || {
            InOrder::<Bits<64>, Bits<8>>::new(5, 4)
        }),
        Top::broken("prim_in_order_broken", breaks::in_order, || {
            InOrder::<Bits<64>, Bits<8>>::new(5, 4)
        }),
        Top::of("prim_table", Class::Test, || Table::<Bits<64>>::new(10)),
        Top::broken("prim_table_broken", breaks::table, || {
            Table::<Bits<64>>::new(10)
        }),
        Top::of("prim_power_on_reset", Class::Test, PowerOnReset::default),
        Top::broken("prim_fifo_broken", breaks::fifo, || {
            Fifo::<Bits<64>>::new(5)
        }),
        Top::broken("prim_fifo_2_broken", breaks::fifo, || {
            Fifo::<Bits<64>>::new(2)
        }),
        Top::mutants("prim_fifo_mutants", || Fifo::<Bits<64>>::new(5)),
        Top::broken("prim_skid_broken", breaks::skid, Skid::<Bits<64>>::default),
        Top::mutants("prim_skid_mutants", Skid::<Bits<64>>::default),
        Top::broken("prim_round_robin_broken", breaks::round_robin, || {
            RoundRobin::new(5)
        }),
        Top::broken("prim_stream_mux_broken", breaks::stream_mux, || {
            StreamMux::<Bits<64>>::new(3)
        }),
        Top::broken(
            "prim_counter_broken",
            breaks::counter,
            Counter::<5>::default,
        ),
        Top::broken(
            "prim_power_on_reset_broken",
            breaks::power_on_reset,
            PowerOnReset::default,
        ),
        Top::mutants("prim_round_robin_mutants", || RoundRobin::new(5)),
        Top::mutants("prim_stream_mux_mutants", || StreamMux::<Bits<64>>::new(3)),
        Top::mutants("prim_counter_mutants", Counter::<5>::default),
        Top::mutants("prim_lowest_of_two_mutants", LowestOfTwo::default),
        Top::mutants("prim_crossing_mutants", || Crossing::<Bits<64>>::new(8)),
        Top::mutants("prim_level_mutants", || Level::new(true)),
        Top::mutants("prim_in_order_mutants", || {
            InOrder::<Bits<64>, Bits<8>>::new(5, 4)
        }),
        Top::mutants("prim_table_mutants", || Table::<Bits<64>>::new(10)),
        Top::mutants("prim_power_on_reset_mutants", PowerOnReset::default),
        Top::of("prim_stable", Class::Test, || {
            Stable::<Bits<8>>::new("stays_offered")
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a memory is to be made of, as its Verilog says.
    fn style(memory: &impl Logic) -> Option<String> {
        let Verilog::Custom(text) = memory.hdl() else {
            panic!("a memory is written by hand");
        };
        let style = text.split_once("ram_style = \"")?.1;
        Some(style.split_once('"')?.0.to_string())
    }

    #[test]
    fn a_memory_is_made_of_what_it_promises() {
        assert_eq!(style(&BlockRam::<Bits<8>>::new(16)), None);
        assert_eq!(style(&BlockRam::<Bits<8>>::new(17)), Some("block".into()));
        assert_eq!(style(&Ram::<Bits<8>>::new(17)), None);
        let distributed = Some("distributed".into());
        assert_eq!(style(&Ram::<Bits<8>>::distributed(17)), distributed);
        assert_eq!(style(&Ram::<Bits<32>>::new(65)), distributed);
        assert_eq!(style(&Ram::<Bits<33>>::new(65)), None);
        assert_eq!(style(&Ram::<Bits<8>>::new(129)), None);
        assert_eq!(style(&Ram::<Bits<8>>::block(16)), None);
        assert_eq!(style(&Ram::<Bits<8>>::block(17)), Some("block".into()));
    }
}
