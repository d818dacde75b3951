//! The card's registers: an AXI4-Lite subordinate.
//!
//! ```text
//!              ┌───────────┐──► doorbell                    (pages 1…: writes)
//!   s_axil ───►│           │──► read_endpoint ─► heads, tails, sticky, one cycle later
//!              │ Registers │──► run, loader, mailbox_request, gates_reset   (page 0)
//!              │           │◄──► mailbox_*: the port of the mailbox's memories
//!              └───────────┘──► mailbox_interrupt
//! ```
//!
//! Page 0 is the privileged one, page 1 + e belongs to endpoint e. A write is taken when address and data
//! are both there, and acts on the next edge. A read is answered three cycles after it was taken, so that
//! memories elsewhere can be read. An address without a register reads as zero and ignores writes, with
//! OKAY. A write without any strobe, which AXI4-Lite allows (IHI 0022, B1.1.3), has no effect and is
//! answered OKAY; a write of some bytes of a word has no effect and is answered SLVERR.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use crate::config::Config;
use crate::prelude::*;
use crate::prim::Stable;
use crate::prim::axi::{AxiLite, RESP_OKAY, RESP_SLVERR};
use crate::types::{Doorbell, LoaderWord};
use abi::register;

const _: () = assert!(
    register::PAGE_BYTES == 1 << 12,
    "the kernel cuts addresses into pages here"
);

/// Bytes of a command, and of its result.
const MAILBOX_BYTES: u32 = 4 * register::MAILBOX_WORDS as u32;

/// The register block.
#[block(config: &Config)]
pub struct Registers {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Clears the registers, and holds the management processor.
    pub reset: Signal<In, Bit>,
    /// The host.
    pub s_axil: AxiLite,
    /// A doorbell is rung: which, and with what value.
    pub doorbell: Pulse<Out, Doorbell>,
    /// Endpoint whose registers are read. The six inputs that follow are that endpoint's, one cycle later.
    pub read_endpoint: Signal<Out, Bits<8>>,
    /// Index up to which the send ring has been fetched.
    pub send_head: Signal<In, Bits<16>>,
    /// Index up to which the list ring has been fetched.
    pub list_head: Signal<In, Bits<16>>,
    /// Producer index of the completion queue.
    pub completion_tail: Signal<In, Bits<16>>,
    /// Producer index of the event queue.
    pub event_tail: Signal<In, Bits<16>>,
    /// Causes of events that have occurred.
    pub sticky: Signal<In, Bits<32>>,
    /// Events that found the queue full.
    pub events_lost: Signal<In, Bits<32>>,
    /// Lets the management processor run.
    pub run: Signal<Out, Bit>,
    /// Words of its memory, while it is held.
    pub loader: Stream<Out, LoaderWord>,
    /// Word of the mailbox; bit 5 selects the result area.
    pub mailbox_address: Signal<Out, Bits<6>>,
    /// Writes it.
    pub mailbox_write: Signal<Out, Bit>,
    /// What.
    pub mailbox_write_data: Signal<Out, Bits<32>>,
    /// The word at the address of the cycle before.
    pub mailbox_read_data: Signal<In, Bits<32>>,
    /// Number of the last command.
    pub mailbox_request: Pulse<Out, Bits<32>>,
    /// Number of the last command answered.
    pub mailbox_answer: Signal<In, Bits<32>>,
    /// The last command has been answered.
    pub mailbox_interrupt: Signal<Out, Bit>,
    /// Number of the firmware's start; 0 while it isn't up.
    pub firmware_start: Signal<In, Bits<32>>,
    /// Pulse: the host has asked for a reset of the gates.
    pub gates_reset: Signal<Out, Bit>,
    /// A reset of the gates is under way: doorbells are ignored.
    pub gates_resetting: Signal<In, Bit>,
    /// The gates are ready: their memories are cleared, and no reset is under way.
    pub gates_ready: Signal<In, Bit>,

    take_write: Signal<Local, Bit>,
    whole: Signal<Local, Bit>,
    act: Signal<Local, Bit>,
    write_page: Signal<Local, Bits<8>>,
    write_offset: Signal<Local, Bits<12>>,
    write_endpoint: Signal<Local, Bits<8>>,
    rings: Signal<Local, Bit>,
    value: Signal<Local, Bits<32>>,
    answering_write: Reg<Bit>,
    refused: Reg<Bit>,

    take_read: Signal<Local, Bit>,
    looking: Reg<Bit>,
    found: Reg<Bit>,
    answering_read: Reg<Bit>,
    address: Reg<Bits<20>>,
    read_page: Signal<Local, Bits<8>>,
    read_offset: Signal<Local, Bits<12>>,
    endpoint: Signal<Local, Bits<8>>,
    in_mailbox: Signal<Local, Bit>,
    state: Signal<Local, Bits<32>>,
    controls: Signal<Local, Bits<32>>,
    word: Reg<Bits<32>>,

    rung: Reg<Bit>,
    ring: Reg<Doorbell>,
    running: Reg<Bit>,
    reset_asked: Reg<Bit>,
    load: Reg<Bit>,
    load_word: Reg<LoaderWord>,
    load_waits: Signal<Local, Bit>,
    next_load: Reg<Bits<32>>,
    request: Reg<Bits<32>>,
    requested: Reg<Bit>,
    asked: Reg<Bit>,
    #[is(constant(config.endpoints as u64))]
    endpoint_count: Constant<Bits<8>>,
    #[is(Stable::new("register_answer_stays_offered"))]
    stays_answered: Stable<Bits<32>>,
}

impl Registers {
    /// The registers of a card of these sizes.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(endpoints = self.endpoint_count.val().index())]
impl Logic for Registers {
    fn update(&mut self) {
        // A write, when the last one's response has gone. Not while a read looks at the mailbox, nor while a loader word
        // waits for room: what the host writes behind it comes behind it. Nothing is taken in reset: it would be forgotten,
        // and never answered.
        self.load_waits.next = self.load.q.val() & !self.loader.ready.val();
        self.take_write.next = self.s_axil.awvalid.val()
            & !self.reset.val()
            & self.s_axil.wvalid.val()
            & !self.answering_write.q.val()
            & !self.looking.q.val()
            & !self.load_waits.val();
        self.s_axil.awready.next = self.take_write.val();
        self.s_axil.wready.next = self.take_write.val();
        self.whole.next = self.s_axil.wstrb.val().all();
        self.act.next = self.take_write.val() & self.whole.val();
        self.write_page.next = self.s_axil.awaddr.val().get_bits::<8>(12);
        self.write_offset.next = self.s_axil.awaddr.val().get_bits::<12>(0);
        self.write_endpoint.next = self.write_page.val() - 1;
        self.value.next = self.s_axil.wdata.val();
        if self.take_write.val() {
            self.answering_write.d.next = true;
            self.refused.d.next = !self.whole.val() & self.s_axil.wstrb.val().any();
        }
        if self.answering_write.q.val() & self.s_axil.bready.val() {
            self.answering_write.d.next = false;
        }
        self.s_axil.bvalid.next = self.answering_write.q.val() & !self.reset.val();
        self.s_axil.bresp.next = RESP_OKAY;
        if self.refused.q.val() {
            self.s_axil.bresp.next = RESP_SLVERR;
        }

        // Doorbells. Page 0 gives endpoint 255, which no card has. A reset of the gates ignores those that are written
        // while it lasts, and forgets those before.
        self.rings.next = (self.write_offset.val() == register::SEND_TAIL)
            | (self.write_offset.val() == register::LIST_TAIL)
            | (self.write_offset.val() == register::COMPLETION_HEAD)
            | (self.write_offset.val() == register::EVENT_HEAD)
            | (self.write_offset.val() == register::COMPLETION_ARM)
            | (self.write_offset.val() == register::EVENT_ARM)
            | (self.write_offset.val() == register::STICKY);
        self.rung.d.next = false;
        if self.act.val()
            & self.rings.val()
            & (self.write_endpoint.val() < self.endpoint_count.val())
            & !self.gates_resetting.val()
        {
            self.rung.d.next = true;
            self.ring.d.next.endpoint = self.write_endpoint.val();
            self.ring.d.next.offset = bit_cast::<8, 12>(self.write_offset.val());
            self.ring.d.next.value = self.value.val();
        }
        self.doorbell.valid.next = self.rung.q.val();
        self.doorbell.data.next = self.ring.q.val();

        // The mailbox page.
        self.load.d.next = self.load_waits.val();
        self.reset_asked.d.next = false;
        self.requested.d.next = false;
        self.mailbox_write.next = false;
        self.mailbox_write_data.next = self.value.val();
        self.mailbox_address.next = bit_cast::<6, 5>(self.s_axil.awaddr.val().get_bits::<5>(2));
        if self.looking.q.val() {
            self.mailbox_address.next = bit_cast::<6, 5>(self.address.q.val().get_bits::<5>(2));
            if self.address.q.val().get_bits::<12>(0) >= register::MAILBOX_RESULT {
                self.mailbox_address.next =
                    bit_cast::<6, 5>(self.address.q.val().get_bits::<5>(2)) + 32;
            }
        }
        if self.act.val() & (self.write_page.val() == 0) {
            if self.write_offset.val() == register::CONTROL {
                self.running.d.next = (self.value.val() & register::CONTROL_RUN).any();
                self.reset_asked.d.next = (self.value.val() & register::CONTROL_RESET).any();
            }
            if self.write_offset.val() == register::MAILBOX_REQUEST {
                self.request.d.next = self.value.val();
                self.requested.d.next = true;
                self.asked.d.next = true;
            }
            if !self.running.q.val() {
                if self.write_offset.val() == register::LOADER_ADDRESS {
                    self.next_load.d.next = self.value.val();
                }
                if self.write_offset.val() == register::LOADER_DATA {
                    self.load.d.next = true;
                    self.load_word.d.next.address = self.next_load.q.val();
                    self.load_word.d.next.data = self.value.val();
                    self.next_load.d.next = self.next_load.q.val() + 4;
                }
            }
            if (self.write_offset.val() >= register::MAILBOX_COMMAND)
                & (self.write_offset.val() < register::MAILBOX_COMMAND + MAILBOX_BYTES)
                & (self.write_offset.val().get_bits::<2>(0) == 0)
            {
                self.mailbox_write.next = true;
            }
        }
        self.run.next = self.running.q.val();
        self.gates_reset.next = self.reset_asked.q.val();
        send!(self.loader, self.load.q.val(), self.load_word.q.val());
        self.mailbox_request.data.next = self.request.q.val();
        self.mailbox_request.valid.next = self.requested.q.val();
        self.mailbox_interrupt.next =
            self.asked.q.val() & (self.request.q.val() == self.mailbox_answer.val());

        // A read: the address is taken, then looked up, then what was found is kept and offered.
        self.take_read.next = self.s_axil.arvalid.val()
            & !self.reset.val()
            & !self.looking.q.val()
            & !self.found.q.val()
            & !self.answering_read.q.val();
        self.s_axil.arready.next = self.take_read.val();
        self.looking.d.next = self.take_read.val();
        self.found.d.next = self.looking.q.val();
        if self.take_read.val() {
            self.address.d.next = self.s_axil.araddr.val();
        }
        if self.answering_read.q.val() & self.s_axil.rready.val() {
            self.answering_read.d.next = false;
        }
        self.read_page.next = self.address.q.val().get_bits::<8>(12);
        self.read_offset.next = self.address.q.val().get_bits::<12>(0);
        self.endpoint.next = self.read_page.val() - 1;
        self.read_endpoint.next = self.endpoint.val();
        self.in_mailbox.next = ((self.read_offset.val() >= register::MAILBOX_COMMAND)
            & (self.read_offset.val() < register::MAILBOX_COMMAND + MAILBOX_BYTES))
            | ((self.read_offset.val() >= register::MAILBOX_RESULT)
                & (self.read_offset.val() < register::MAILBOX_RESULT + MAILBOX_BYTES));
        self.controls.next = 0.into();
        if self.running.q.val() {
            self.controls.next = register::CONTROL_RUN;
        }
        if self.gates_resetting.val() {
            self.controls.next = self.controls.val() | register::CONTROL_RESET;
        }
        self.state.next = 0.into();
        if self.gates_ready.val() {
            self.state.next = register::STATUS_READY;
        }
        if self.firmware_start.val().any() {
            self.state.next = self.state.val() | register::STATUS_FIRMWARE;
        }
        if self.found.q.val() {
            self.answering_read.d.next = true;
            self.word.d.next = 0.into();
            if self.read_page.val() == 0 {
                if self.read_offset.val() == register::ID {
                    self.word.d.next = register::MAGIC;
                }
                if self.read_offset.val() == register::ABI {
                    self.word.d.next = abi::ABI_VERSION;
                }
                if self.read_offset.val() == register::STATUS {
                    self.word.d.next = self.state.val();
                }
                if self.read_offset.val() == register::CONTROL {
                    self.word.d.next = self.controls.val();
                }
                if self.read_offset.val() == register::MAILBOX_REQUEST {
                    self.word.d.next = self.request.q.val();
                }
                if self.read_offset.val() == register::MAILBOX_ANSWER {
                    self.word.d.next = self.mailbox_answer.val();
                }
                if self.read_offset.val() == register::FIRMWARE_START {
                    self.word.d.next = self.firmware_start.val();
                }
                if self.read_offset.val() == register::LOADER_ADDRESS {
                    self.word.d.next = self.next_load.q.val();
                }
                if self.in_mailbox.val() & (self.read_offset.val().get_bits::<2>(0) == 0) {
                    self.word.d.next = self.mailbox_read_data.val();
                }
            }
            if self.endpoint.val() < self.endpoint_count.val() {
                if self.read_offset.val() == register::SEND_HEAD {
                    self.word.d.next = bit_cast::<32, 16>(self.send_head.val());
                }
                if self.read_offset.val() == register::LIST_HEAD {
                    self.word.d.next = bit_cast::<32, 16>(self.list_head.val());
                }
                if self.read_offset.val() == register::COMPLETION_TAIL {
                    self.word.d.next = bit_cast::<32, 16>(self.completion_tail.val());
                }
                if self.read_offset.val() == register::EVENT_TAIL {
                    self.word.d.next = bit_cast::<32, 16>(self.event_tail.val());
                }
                if self.read_offset.val() == register::STICKY {
                    self.word.d.next = self.sticky.val();
                }
                if self.read_offset.val() == register::EVENTS_LOST {
                    self.word.d.next = self.events_lost.val();
                }
            }
        }
        self.s_axil.rvalid.next = self.answering_read.q.val() & !self.reset.val();
        self.s_axil.rdata.next = self.word.q.val();
        self.s_axil.rresp.next = RESP_OKAY;
        self.stays_answered.valid.next = self.answering_read.q.val();
        self.stays_answered.ready.next = self.s_axil.rready.val();
        self.stays_answered.data.next = self.word.q.val();
    }
}
