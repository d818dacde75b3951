//! The management processor: Ibex and its memory, on a clock of their own.
//!
//! ```text
//!              ┌───────┐ fetch  ┌──────────────────┐
//!   run ──────►│ Ibex  ├───────►│ memory, 64 KiB   │◄── loader (while held)
//!              │       │ data   └──────────────────┘
//!   timer_…, ─►│       ├───┬───►  the same memory
//!   external_… └───────┘   │
//!                          └───►  access ─► answer: the registers, by the ClockBridge
//! ```
//!
//! The memory has one read port: a load goes first and a fetch waits. An access of the memory is answered in
//! the cycle after its grant, and so is a store of a register: from its grant on it is on its way, ahead of all that follows. A load of a
//! register is answered when the register has been read. An access outside the memory and the registers, or of less than a word of
//! the registers, is answered with an error, which Ibex takes as an access fault.

use super::ibex::Ibex;
use crate::prelude::*;
use crate::prim::ByteRam;
use crate::types::{LoaderWord, RegisterAccess};
use abi::mgmt;

const _: () = assert!(
    mgmt::MEMORY_BYTES == 1 << 16 && mgmt::MEMORY_BASE.is_multiple_of(mgmt::MEMORY_BYTES),
    "the kernel knows memory by the upper half of an address"
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
    #[is(ByteRam::new(mgmt::MEMORY_BYTES as usize / 4))]
    memory: ByteRam<32, 4>,
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
    #[is(constant(mgmt::MEMORY_BASE >> 16))]
    memory_page: Constant<Bits<16>>,
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

        // What a load or store is for.
        self.address.next = self.core.data_address.val();
        self.data.next = self.core.data_out.val();
        self.in_memory.next = self.address.val().get_bits::<16>(16) == self.memory_page.val();
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
        self.core.data_in.next = self.memory.read_data.val();
        if self.answer.valid.val() {
            self.core.data_in.next = self.answer.data.val();
        }
        self.one_answer.ok.next = !self.answered.q.val() | !self.answer.valid.val();

        // Fetches.
        self.fetch_in_memory.next =
            self.core.fetch_address.val().get_bits::<16>(16) == self.memory_page.val();
        self.core.fetch_grant.next = self.core.fetch_request.val() & !self.loads_memory.val();
        self.fetched.d.next =
            self.core.fetch_request.val() & self.run.val() & !self.loads_memory.val();
        self.fetch_failed.d.next = !self.fetch_in_memory.val();
        self.core.fetch_valid.next = self.fetched.q.val();
        self.core.fetch_error.next = self.fetch_failed.q.val();
        self.core.fetch_data.next = self.memory.read_data.val();
        self.memory.read_address.next = self.core.fetch_address.val().get_bits::<16>(2);
        if self.loads_memory.val() {
            self.memory.read_address.next = self.address.val().get_bits::<16>(2);
        }

        // Stores to the memory; the loader's while the processor is held.
        store!(
            self.memory.write,
            0.into(),
            self.address.val().get_bits::<16>(2),
            self.data.val()
        );
        if self.run.val() {
            if self.core.data_request.val() & self.core.data_write.val() & self.in_memory.val() {
                self.memory.write.enable.next = self.core.data_enable.val();
            }
        } else {
            self.memory.write.address.next = self.loader.data.val().address.get_bits::<16>(2);
            self.memory.write.data.next = self.loader.data.val().data;
            if self.loader.valid.val()
                & (self.loader.data.val().address.get_bits::<16>(16) == self.memory_page.val())
            {
                self.memory.write.enable.next = 15.into();
            }
        }
    }
}
