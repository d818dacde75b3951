//! The management processor: Ibex and its memory, on a clock of their own.
//!
//! ```text
//!              ┌───────┐ fetch  ┌──────────────────┐
//!   run ──────►│ Ibex  ├───────►│ memory, 96 KiB   │◄── loader (while held)
//!              │       │ data   └──────────────────┘
//!   timer_…, ─►│       ├───┬───►  the same memory
//!   external_… └───────┘   │
//!                          └───►  access ─► answer: the registers, by the ClockBridge
//! ```
//!
//! The memory is two, of 64 and of 32 KiB, since memories have a power of two of words; both are read at once, and it has one read port: a load goes
//! first and a fetch waits. An access of the memory is answered in
//! the cycle after its grant, and so is a store of a register: from its grant on it is on its way, ahead of all that follows. A load of a
//! register is answered when the register has been read. An access outside the memory and the registers, or of less than a word of
//! the registers, is answered with an error, which Ibex takes as an access fault.

use super::ibex::Ibex;
use crate::prelude::*;
use crate::prim::ByteRam;
use crate::types::{LoaderWord, RegisterAccess};
use abi::mgmt;

const _: () = assert!(
    mgmt::MEMORY_BYTES == 3 << 15 && mgmt::MEMORY_BASE.is_multiple_of(1 << 17),
    "the kernel knows memory by the upper 15 bits of an address, its upper part by bit 16, and that nothing is there by bits 16 and 15"
);
const _: () = assert!(
    mgmt::REGISTER_BASE.is_multiple_of(1 << 12),
    "the kernel knows registers by the upper 20 bits of an address"
);
/// The processor.
#[block]
pub struct Processor {
    /// Rising edge counts: the processor's clock.
    pub clock: Signal<In, Clock>,
    /// Holds the processor; the memory keeps its contents.
    pub reset: Signal<In, Bit>,
    /// Lets the processor run.
    pub run: Signal<In, Bit>,
    /// A word of the memory, from the host; only while `run` is low.
    pub loader: Pulse<In, LoaderWord>,
    /// A load or a store of a register.
    pub access: Stream<Out, RegisterAccess>,
    /// What the load that was taken last was for.
    pub answer: Pulse<In, Bits<32>>,
    /// Timer interrupt, level.
    pub timer_interrupt: Signal<In, Bit>,
    /// External interrupt, level.
    pub external_interrupt: Signal<In, Bit>,

    core: Ibex,
    #[is(ByteRam::new(1 << 14))]
    lower: ByteRam<32, 4>,
    #[is(ByteRam::new(1 << 13))]
    upper: ByteRam<32, 4>,
    /// The word read comes out of the upper memory.
    from_upper: Reg<Bit>,
    /// `run`, for the core alone: it resets asynchronously.
    released: Reg<Bit>,
    fetched: Reg<Bit>,
    fetch_failed: Reg<Bit>,
    answered: Reg<Bit>,
    failed: Reg<Bit>,
    address: Signal<Local, Bits<32>>,
    data: Signal<Local, Bits<32>>,
    fetch_in_memory: Signal<Local, Bit>,
    in_memory: Signal<Local, Bit>,
    in_registers: Signal<Local, Bit>,
    loads_memory: Signal<Local, Bit>,
    granted: Signal<Local, Bit>,
    read_address: Signal<Local, Bits<32>>,
    read_data: Signal<Local, Bits<32>>,
    write_address: Signal<Local, Bits<32>>,
    write_data: Signal<Local, Bits<32>>,
    write_enable: Signal<Local, Bits<4>>,
    write_in_memory: Signal<Local, Bit>,
    lower_enable: Signal<Local, Bits<4>>,
    upper_enable: Signal<Local, Bits<4>>,
    #[is(constant(mgmt::MEMORY_BASE >> 17))]
    memory_page: Constant<Bits<15>>,
    #[is(constant(mgmt::REGISTER_BASE >> 12))]
    register_page: Constant<Bits<20>>,
    #[is(Check::new("one_access_is_answered_at_a_time"))]
    one_answer: Check,
}

#[block]
impl Logic for Processor {
    fn update(&mut self) {
        self.released.d.next = self.run.val();
        self.core.running.next = self.released.q.val();
        self.core.timer_interrupt.next = self.timer_interrupt.val();
        self.core.external_interrupt.next = self.external_interrupt.val();

        // The word that was read.
        self.read_data.next = self.lower.read_data.val();
        if self.from_upper.q.val() {
            self.read_data.next = self.upper.read_data.val();
        }

        // What a load or store is for.
        self.address.next = self.core.data_address.val();
        self.data.next = self.core.data_out.val();
        self.in_memory.next = (self.address.val().get_bits::<15>(17) == self.memory_page.val())
            & !self.address.val().get_bits::<2>(15).all();
        self.in_registers.next = (self.address.val().get_bits::<20>(12)
            == self.register_page.val())
            & self.core.data_enable.val().all();
        self.loads_memory.next =
            self.core.data_request.val() & !self.core.data_write.val() & self.in_memory.val();

        // Accesses of registers leave; all others are granted at once. A processor that is held gets no answer.
        self.access.valid.next =
            self.core.data_request.val() & self.in_registers.val() & self.run.val();
        self.access.data.next = RegisterAccess {
            offset: self.address.val().get_bits::<12>(0),
            store: self.core.data_write.val(),
            data: self.data.val(),
        };
        self.granted.next = self.core.data_request.val()
            & self.run.val()
            & (!self.in_registers.val() | self.access.ready.val());
        self.core.data_grant.next = self.granted.val();
        self.answered.d.next =
            self.granted.val() & !(self.in_registers.val() & !self.core.data_write.val());
        self.failed.d.next = !self.in_memory.val() & !self.in_registers.val();
        self.core.data_valid.next = self.answered.q.val() | self.answer.valid.val();
        self.core.data_error.next = self.answered.q.val() & self.failed.q.val();
        self.core.data_in.next = self.read_data.val();
        if self.answer.valid.val() {
            self.core.data_in.next = self.answer.data.val();
        }
        self.one_answer.ok.next = !self.answered.q.val() | !self.answer.valid.val();

        // Fetches.
        self.fetch_in_memory.next = (self.core.fetch_address.val().get_bits::<15>(17)
            == self.memory_page.val())
            & !self.core.fetch_address.val().get_bits::<2>(15).all();
        self.core.fetch_grant.next = self.core.fetch_request.val() & !self.loads_memory.val();
        self.fetched.d.next =
            self.core.fetch_request.val() & self.run.val() & !self.loads_memory.val();
        self.fetch_failed.d.next = !self.fetch_in_memory.val();
        self.core.fetch_valid.next = self.fetched.q.val();
        self.core.fetch_error.next = self.fetch_failed.q.val();
        self.core.fetch_data.next = self.read_data.val();

        // The word that is read next.
        self.read_address.next = self.core.fetch_address.val();
        if self.loads_memory.val() {
            self.read_address.next = self.address.val();
        }
        self.lower.read_address.next =
            bit_cast::<16, 14>(self.read_address.val().get_bits::<14>(2));
        self.upper.read_address.next =
            bit_cast::<16, 13>(self.read_address.val().get_bits::<13>(2));
        self.from_upper.d.next = self.read_address.val().get_bit(16);

        // The word that is written: a store's, or the loader's while the processor is held.
        self.write_address.next = self.loader.data.val().address;
        self.write_data.next = self.loader.data.val().data;
        self.write_enable.next = 0.into();
        if self.loader.valid.val() {
            self.write_enable.next = 15.into();
        }
        if self.run.val() {
            self.write_address.next = self.address.val();
            self.write_data.next = self.data.val();
            self.write_enable.next = 0.into();
            if self.core.data_request.val() & self.core.data_write.val() {
                self.write_enable.next = self.core.data_enable.val();
            }
        }
        self.write_in_memory.next = (self.write_address.val().get_bits::<15>(17)
            == self.memory_page.val())
            & !self.write_address.val().get_bits::<2>(15).all();
        self.lower_enable.next = 0.into();
        self.upper_enable.next = 0.into();
        if self.write_in_memory.val() {
            if self.write_address.val().get_bit(16) {
                self.upper_enable.next = self.write_enable.val();
            } else {
                self.lower_enable.next = self.write_enable.val();
            }
        }
        store!(
            self.lower.write,
            self.lower_enable.val(),
            bit_cast::<16, 14>(self.write_address.val().get_bits::<14>(2)),
            self.write_data.val()
        );
        store!(
            self.upper.write,
            self.upper_enable.val(),
            bit_cast::<16, 13>(self.write_address.val().get_bits::<13>(2)),
            self.write_data.val()
        );
    }
}
