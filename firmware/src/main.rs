//! The program of the card's management processor: it boots, says that it is up, and serves the mailbox.
//!
//! ```text
//!  reset ► log the build id ► CardSet ► ready ┐
//!            ┌───────────────────────────────◄┘
//!            ▼
//!           wfi ── external interrupt: the host rang ──► command ► firmware-core ► answer ─┐
//!            ▲                                                                            │
//!            └────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Interrupts wake the processor and are never taken: it sleeps with them disabled, and one that comes before the
//! sleep ends it at once, so that no command is missed and nothing is shared with a handler.
#![no_std]
#![no_main]

mod gates;
mod log;
mod port;

use abi::mailbox::Command;
use abi::register::MAILBOX_WORDS;
use abi::status::MailboxStatus;
use core::panic::PanicInfo;
use embedded_hal::digital::OutputPin;
use firmware::BUILD;
use firmware::mailbox::Mailbox;
use firmware::timer::Timer;
use firmware_core::Firmware;
use gates::Gates;
use port::ReadyLine;

/// Pairs that there are tables for; a card with more says that it has as many as this.
const PAIRS: usize = 256;
/// Regions that there are tables for, in the same way.
const REGIONS: usize = 512;

/// The build id, little-endian, where tools find it in the ELF.
#[used]
#[unsafe(link_section = ".posthorn_build_id")]
static BUILD_ID: [u8; 8] = BUILD.to_le_bytes();

#[riscv_rt::entry]
fn main() -> ! {
    defmt::info!("firmware {=u64:016x} starts", BUILD);
    let mut firmware = Firmware::<_, PAIRS, REGIONS>::new(Gates::new(Timer), BUILD);
    if firmware.start().is_err() {
        defmt::error!("the gates did not answer");
        stop()
    }
    let mut mailbox = Mailbox::take_over();
    // SAFETY: enables the source of the wake-up; interrupts as such stay disabled.
    unsafe { riscv::register::mie::set_mext() };
    let Ok(()) = ReadyLine.set_high();
    defmt::info!("ready");
    loop {
        let Some(request) = mailbox.pending() else {
            riscv::asm::wfi();
            continue;
        };
        let command = mailbox.command();
        let mut answer = [0; MAILBOX_WORDS];
        let (status, words) = firmware.serve(&command, &mut answer);
        mailbox.answer(request, &answer[..words]);
        report(command[0], status, answer[1]);
    }
}

/// Logs a command. After its answer, so that the host doesn't wait for it.
fn report(code: u32, status: MailboxStatus, word: u32) {
    let name = match Command::from_code(code as u8) {
        Some(command) => command.name(),
        None => "?",
    };
    match status {
        MailboxStatus::Ok => defmt::info!("{=u32} {=str}: {=u32:#x}", code, name, word),
        _ => defmt::warn!(
            "{=u32} {=str}: {=str} ({=u32})",
            code,
            name,
            status.name(),
            word
        ),
    }
}

/// Gives up: the host sees the ready line fall, and its commands time out.
fn stop() -> ! {
    let Ok(()) = ReadyLine.set_low();
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
