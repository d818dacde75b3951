//! The program of the card's management processor: it boots, says that it is up, and drives the firmware's state machines.
//!
//! ```text
//!  reset ► log the build id ► steps until the gates are reset and told ► mailbox taken over ► number ┐
//!     ┌──────────────────────────────────────────────────────────────────────────────────────────◄───┘
//!     ▼
//!  command ► step ► answer ── something was done ──► again
//!     ▲                    └─ nothing to do ► arm the timer, enable what is waited for ► wfi ─┐
//!     └───────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Interrupts wake the processor and are never taken: it sleeps with them disabled, and one that comes before the
//! sleep ends it at once, so that nothing is missed and nothing is shared with a handler. They are levels; what isn't waited for, or would be
//! pending all the time, isn't enabled.
#![no_std]
#![no_main]

mod gates;
mod log;
mod port;

use abi::mailbox::Command;
use abi::mgmt::{
    FIRMWARE_START, INTERRUPT_CONTROL, INTERRUPT_ENABLE, INTERRUPT_EVENT, INTERRUPT_FRAME_IN,
    INTERRUPT_FRAME_OUT, INTERRUPT_GATES_READY, INTERRUPT_MAILBOX,
};
use abi::status::MailboxStatus;
use core::panic::PanicInfo;
use firmware::mailbox::Mailbox;
use firmware::registers::{read, write};
use firmware::{BUILD, STACK_BYTES, timer};
use firmware_core::{Answer, Firmware};
use gates::Gates;

/// Looks at a control request before the processor sleeps: most are answered in some tens of cycles, and a sleep costs more.
const LOOKS: u32 = 8;
/// Stack for calls, beside the tables, which are on it too.
const CALLS_BYTES: usize = 4096;

const _: () = assert!(
    core::mem::size_of::<Firmware<Gates>>() + CALLS_BYTES <= STACK_BYTES,
    "the tables have outgrown the stack: see STACK_BYTES in build.rs"
);

/// The build id, little-endian, where tools find it in the ELF.
#[used]
#[unsafe(link_section = ".posthorn_build_id")]
static BUILD_ID: [u8; 8] = BUILD.to_le_bytes();

#[riscv_rt::entry]
fn main() -> ! {
    defmt::info!("firmware {=u64:016x} starts", BUILD);
    // SAFETY: enables sources of wake-ups; interrupts as such stay disabled.
    unsafe {
        riscv::register::mie::set_mext();
        riscv::register::mie::set_mtimer();
    }
    let mut firmware = Firmware::new(Gates, BUILD);
    let (mut looks, mut number) = (0, 0);
    while !firmware.is_up() {
        let moved = firmware.step();
        rest(&firmware, moved, &mut looks);
    }
    let mut mailbox = Mailbox::take_over(&firmware.answer_to_lost());
    write(FIRMWARE_START, firmware.start_number());
    defmt::info!("ready");
    loop {
        if firmware.is_free()
            && let Some(request) = mailbox.pending()
        {
            number = request;
            firmware.command(&mailbox.command());
        }
        let moved = firmware.step();
        if let Some(answer) = firmware.take_answer() {
            mailbox.answer(number, &answer.words[..answer.count]);
            report(&answer);
            continue;
        }
        rest(&firmware, moved, &mut looks);
    }
}

/// Sleeps if there is nothing to do, and hasn't been for some looks if the gates are about to answer.
fn rest(firmware: &Firmware<Gates>, moved: bool, looks: &mut u32) {
    *looks = if moved { 0 } else { *looks + 1 };
    if !moved && (*looks >= LOOKS || !firmware.waits_for_gates()) {
        sleep(firmware);
    }
}

/// Sleeps until something happens that the firmware can do something about.
fn sleep(firmware: &Firmware<Gates>) {
    let waits = firmware.waits();
    let mut enabled = 0;
    for (waits, interrupt) in [
        (firmware.is_free(), INTERRUPT_MAILBOX),
        // Before it is up, frames and events are left where they are.
        (firmware.is_up(), INTERRUPT_FRAME_IN | INTERRUPT_EVENT),
        (waits.control, INTERRUPT_CONTROL),
        (waits.frame_out, INTERRUPT_FRAME_OUT),
        (waits.reset, INTERRUPT_GATES_READY),
    ] {
        if waits {
            enabled |= interrupt;
        }
    }
    write(INTERRUPT_ENABLE, enabled);
    timer::wake_at(firmware.next_deadline());
    // Stores are on their way to the card for some cycles. A load comes behind them: what isn't waited for any more doesn't end the sleep.
    read(INTERRUPT_ENABLE);
    riscv::asm::wfi();
}

/// Logs a command. After its answer, so that the host doesn't wait for it.
fn report(answer: &Answer) {
    let (code, word) = (answer.command, answer.words[1]);
    let command = u8::try_from(code).ok().and_then(Command::from_code);
    match (command, answer.status) {
        (Some(command), MailboxStatus::Ok) => defmt::info!("{}: {=u32:#x}", command, word),
        (Some(command), status) => defmt::warn!("{}: {} ({=u32})", command, status, word),
        (None, status) => defmt::warn!("command {=u32}: {} ({=u32})", code, status, word),
    }
}

/// Gives up: the host reads that no firmware is up, and its commands time out.
fn stop() -> ! {
    write(FIRMWARE_START, 0);
    riscv::interrupt::disable();
    loop {
        riscv::asm::wfi();
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    match info.location() {
        Some(at) => defmt::error!("panic at {=str}:{=u32}", at.file(), at.line()),
        None => defmt::error!("panic"),
    }
    stop()
}

/// An exception: an access that the bus refuses, or an instruction that is none.
#[unsafe(export_name = "ExceptionHandler")]
fn exception(_: &riscv_rt::TrapFrame) -> ! {
    let cause = riscv::register::mcause::read().bits();
    defmt::error!(
        "exception {=usize:#x} at {=usize:#x}",
        cause,
        riscv::register::mepc::read()
    );
    stop()
}
