//! The registers by which the gates call the processor: what is pending, the reset of the gates, frames and events.
//!
//! ```text
//!                 ┌──────────────────────────────┐
//!   offset ──────►│ INTERRUPT_PENDING, _ENABLE   ├──► external_interrupt
//!   poke, data ──►│ GATES_RESET                  ├──► gates_reset_request
//!   value ◄───────┤ FRAME_SEND, _TAKE, S_LOST    ├──► frame_send, frame_take
//!                 │ EVENT, _TAKE, S_LOST         │◄── told, by the EventQueue
//!                 └──────────────────────────────┘◄── levels of all that can be pending
//! ```
//!
//! A bit of `INTERRUPT_PENDING` is the level of its cause: there is no bit to clear.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use super::event_queue::EventQueue;
use crate::prelude::*;
use crate::types::RaiseEvent;
use abi::mgmt;

/// Interrupts, one bit each.
const INTERRUPTS: usize = 6;

const _: () = assert!(
    mgmt::event_word(1, 1, 1) == 1 | 1 << 8 | 1 << 16,
    "the kernel packs events so"
);
const _: () = assert!(
    mgmt::INTERRUPT_MAILBOX == 1 << 0
        && mgmt::INTERRUPT_CONTROL == 1 << 1
        && mgmt::INTERRUPT_FRAME_IN == 1 << 2
        && mgmt::INTERRUPT_FRAME_OUT == 1 << 3
        && mgmt::INTERRUPT_EVENT == 1 << 4
        && mgmt::INTERRUPT_GATES_READY == 1 << 5
        && INTERRUPTS == 6,
    "the kernel puts the bits there"
);

/// The registers.
#[block]
pub struct GateRegisters {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Clears the counts and the events; the mailbox alone may interrupt.
    pub reset: Signal<In, Bit>,
    /// The processor runs. While it doesn't, the enabled interrupts are those after reset.
    pub running: Signal<In, Bit>,
    /// Offset of the register concerned.
    pub offset: Signal<In, Bits<12>>,
    /// The processor writes it.
    pub poke: Signal<In, Bit>,
    /// What the processor writes.
    pub data: Signal<In, Bits<32>>,
    /// What the processor reads; zero for a register that isn't here.
    pub value: Signal<Out, Bits<32>>,
    /// An enabled interrupt is pending.
    pub external_interrupt: Signal<Out, Bit>,
    /// The host's last command isn't answered yet.
    pub mailbox_pending: Signal<In, Bit>,
    /// A control request is under way.
    pub control_busy: Signal<In, Bit>,
    /// Pulse: the gates are to be reset. `gates_ready` is low from the next cycle on.
    pub gates_reset_request: Signal<Out, Bit>,
    /// No reset of the gates is under way, and every table is cleared.
    pub gates_ready: Signal<In, Bit>,
    /// Pulse: sends the frame.
    pub frame_send: Signal<Out, Bit>,
    /// No frame of the firmware is being sent.
    pub frame_out_ready: Signal<In, Bit>,
    /// A frame for the firmware waits.
    pub frame_in_valid: Signal<In, Bit>,
    /// Pulse: it is done with.
    pub frame_take: Signal<Out, Bit>,
    /// Pulse: a frame for the firmware found no room.
    pub frame_dropped: Signal<In, Bit>,
    /// What.
    pub told: Pulse<In, RaiseEvent>,

    events: EventQueue,
    #[is(Reg::new(u64::from(mgmt::INTERRUPT_MAILBOX).into()))]
    enabled: Reg<Bits<INTERRUPTS>>,
    reset_request: Reg<Bit>,
    frames_lost: Reg<Bits<32>>,
    pending: Signal<Local, Bits<INTERRUPTS>>,
    ready: Signal<Local, Bit>,
    oldest: Signal<Local, RaiseEvent>,
}

#[block]
impl Logic for GateRegisters {
    fn update(&mut self) {
        // The request reaches the datapath in the cycle after the write, and `gates_ready` falls in the one after that.
        self.gates_reset_request.next = self.reset_request.q.val();
        self.ready.next = self.gates_ready.val() & !self.reset_request.q.val();
        self.pending.next = bits::<INTERRUPTS>(0)
            .replace_bit(0, self.mailbox_pending.val())
            .replace_bit(1, !self.control_busy.val())
            .replace_bit(2, self.frame_in_valid.val())
            .replace_bit(3, self.frame_out_ready.val())
            .replace_bit(4, self.events.event_valid.val())
            .replace_bit(5, self.ready.val());
        self.external_interrupt.next = (self.pending.val() & self.enabled.q.val()).any();

        self.events.told.valid.next = self.told.valid.val();
        self.events.told.data.next = self.told.data.val();
        self.oldest.next = self.events.oldest.val();
        if self.frame_dropped.val() {
            self.frames_lost.d.next = self.frames_lost.q.val() + 1;
        }

        self.value.next = 0.into();
        if self.offset.val() == mgmt::GATES_RESET {
            self.value.next = bits::<32>(0) + !self.ready.val();
        }
        if self.offset.val() == mgmt::INTERRUPT_PENDING {
            self.value.next = bit_cast::<32, INTERRUPTS>(self.pending.val());
        }
        if self.offset.val() == mgmt::INTERRUPT_ENABLE {
            self.value.next = bit_cast::<32, INTERRUPTS>(self.enabled.q.val());
        }
        if self.offset.val() == mgmt::FRAMES_LOST {
            self.value.next = self.frames_lost.q.val();
        }
        if self.offset.val() == mgmt::EVENT {
            self.value.next = bit_cast::<32, 8>(self.oldest.val().cause)
                | (bit_cast::<32, 8>(self.oldest.val().endpoint) << 8)
                | (bit_cast::<32, 16>(self.oldest.val().pair) << 16);
        }
        if self.offset.val() == mgmt::EVENT + 4 {
            self.value.next = self.oldest.val().info.get_bits::<32>(0);
        }
        if self.offset.val() == mgmt::EVENT + 8 {
            self.value.next = self.oldest.val().info.get_bits::<32>(32);
        }
        if self.offset.val() == mgmt::EVENTS_LOST {
            self.value.next = self.events.lost.val();
        }

        self.reset_request.d.next = false;
        self.frame_send.next = false;
        self.frame_take.next = false;
        self.events.take.next = false;
        if self.poke.val() {
            if self.offset.val() == mgmt::GATES_RESET {
                self.reset_request.d.next = self.data.val().get_bit(0);
            }
            if self.offset.val() == mgmt::INTERRUPT_ENABLE {
                self.enabled.d.next = self.data.val().get_bits::<INTERRUPTS>(0);
            }
            if self.offset.val() == mgmt::FRAME_SEND {
                self.frame_send.next = true;
            }
            if self.offset.val() == mgmt::FRAME_TAKE {
                self.frame_take.next = true;
            }
            if self.offset.val() == mgmt::EVENT_TAKE {
                self.events.take.next = true;
            }
        }
        if !self.running.val() {
            self.enabled.d.next = mgmt::INTERRUPT_MAILBOX;
        }
    }
}
