//! A card that has been opened: its identity, its counters, what it is doing, and the time on it.

use crate::commands::{Card, Commands};
use crate::domain::ProtectionDomain;
use crate::error::{CommandError, OpenError};
use crate::link::Link;
use crate::protection::Protection;
use crate::transport::{PauseResult, Transport, TransportError, Watch};
use abi::ABI_VERSION;
use abi::control::Counter;
use abi::mailbox::{AuditEntry, AuditIndex, Command, CounterId, CounterValue, Identity, Nothing};
use abi::register::{
    ABI, CONTROL, CONTROL_RESET, CONTROL_RUN, ID, MAGIC, MAILBOX_REQUEST, STATUS, STATUS_FIRMWARE,
    STATUS_READY,
};
use abi::times::{COMMAND_TIMEOUT, READY_TIMEOUT};
use std::sync::Arc;

/// Cycles between two looks at whether the gates are clear or the firmware is up. No interrupt tells of that: the mailbox's line is raised by an answer of the
/// firmware, which is held or boots meanwhile, and the lines of a card in reset are low.
const LOOK_CYCLES: u64 = 200;

/// How patient the library is with the card, in cycles of its clock, and what it asks of it.
#[derive(Clone, Copy, Debug)]
pub struct DeviceOptions {
    /// For the gates to be ready, and after that for the firmware to be up.
    pub ready_timeout: u64,
    /// For the firmware to answer a command.
    pub command_timeout: u64,
    /// The level of protection that is asked for: the most, unless said otherwise. What is provided [`Device::protection`] tells.
    pub protection: Protection,
}

impl DeviceOptions {
    /// 80 ms and 16 ms at 125 MHz: some hundred times what a well-behaved card needs.
    pub const DEFAULT: Self = Self {
        ready_timeout: READY_TIMEOUT as u64,
        command_timeout: COMMAND_TIMEOUT as u64,
        protection: Protection::PerSender,
    };
}

impl Default for DeviceOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// An open card. Clones are the same card, and so is what was opened on it: the card can be opened again when all of these are gone.
#[derive(Clone)]
pub struct Device {
    pub(crate) card: Arc<Card>,
}

impl Device {
    /// Opens the card with the default options.
    ///
    /// # Errors
    /// [`OpenError`]; see [`open_with`](Self::open_with).
    pub fn open(transport: Arc<dyn Transport>) -> Result<Self, OpenError> {
        Self::open_with(transport, DeviceOptions::default())
    }

    /// Opens the card: takes it for this process, checks what it is, brings it to a known state, and waits for its gates and its firmware.
    ///
    /// A card that has been used since its power-up may still do what an owner before asked of it, one that crashed, say. Its gates are reset, which
    /// ends that, and its firmware starts anew.
    ///
    /// # Errors
    /// [`OpenError::AlreadyOpen`] if the card has an owner, [`OpenError::NotACard`] and [`OpenError::WrongAbi`] if this library can't drive what it found,
    /// [`OpenError::CardTimeout`] and [`OpenError::FirmwareTimeout`] if it never came up.
    pub fn open_with(
        transport: Arc<dyn Transport>,
        options: DeviceOptions,
    ) -> Result<Self, OpenError> {
        let link = Arc::new(Link::claim(transport)?.ok_or(OpenError::AlreadyOpen)?);
        let id = link.read(ID)?;
        if id != MAGIC {
            return Err(OpenError::NotACard(id));
        }
        check_abi("card", link.read(ABI)?)?;
        let timeout = options.ready_timeout;
        if !await_status(&link, STATUS_READY, timeout)? {
            return Err(OpenError::CardTimeout(timeout));
        }
        if is_used(&link)? && !is_broken!(OpensUsed) {
            if !reset(&link, timeout)? {
                return Err(OpenError::CardTimeout(timeout));
            }
            link.write(CONTROL, CONTROL_RUN)?;
        }
        if !await_status(&link, STATUS_FIRMWARE, timeout)? {
            return Err(OpenError::FirmwareTimeout(timeout));
        }
        link.note_start()?;
        let mut card = Card::new(link, options);
        let identity: Identity = card.commands()?.call(Command::Identify, &Nothing {})?;
        card.identity = identity;
        check_abi("firmware", card.identity.abi_version)?;
        Ok(Self {
            card: Arc::new(card),
        })
    }

    /// What the card is.
    pub fn identity(&self) -> &Identity {
        &self.card.identity
    }

    /// Cycles of the card's clock since its reset. Takes none.
    pub fn now(&self) -> u64 {
        self.card.link.now()
    }

    /// Lets the card run until a line in `watch` has interrupted more often than was seen, or until cycle `deadline`; see [`Transport::pause`].
    pub fn pause(&self, watch: &[Watch], deadline: u64) -> PauseResult {
        self.card.link.pause(watch, deadline)
    }

    /// Allocates a protection domain.
    ///
    /// # Errors
    /// [`CommandError`]; `NoResource` if the card has no more.
    pub fn alloc_pd(&self) -> Result<ProtectionDomain, CommandError> {
        ProtectionDomain::open(self)
    }

    /// Reads one of the card's counters, which wrap at 2^32.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn read_counter(&self, counter: Counter) -> Result<u64, CommandError> {
        let counter = u32::from(counter.code());
        let answer: CounterValue = self
            .commands()?
            .call(Command::ReadCounter, &CounterId { counter })?;
        Ok(answer.value)
    }

    /// Reads the first entry of the firmware's audit ring from number `entry` on, which the answer's `entry` is. If that is the answer's `next`, there is
    /// none. Who reads on from one more than the last number finds what is new, and again what has repeated since.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn read_audit(&self, entry: u32) -> Result<AuditEntry, CommandError> {
        self.commands()?
            .call(Command::ReadAudit, &AuditIndex { entry })
    }

    /// Resets the card by its registers, whatever its firmware does: the gates are quiet then and hold nothing, and the processor is held. This is how a
    /// program gets its buffers back from a card whose firmware hangs.
    ///
    /// It ends every endpoint of the card, of all clones of this device: what was outstanding on them completes as [`Flushed`](crate::WcStatus::Flushed), after
    /// what the card had completed before, and who waits for a completion is woken. Peers aren't told, as by a card that has lost its power: what they send
    /// isn't acknowledged, and fails the pair. Commands fail with [`CommandError::Restarted`] from now on: drop all that was opened on the device, and open the
    /// card again, which starts its firmware. Resetting a card that was reset, or that is gone, does nothing.
    ///
    /// # Errors
    /// [`CommandError::ResetTimeout`] if the gates aren't quiet within [`DeviceOptions::ready_timeout`]; [`CommandError::Transport`] if the card can't be
    /// reached. Nothing is given back then. Call again, until it succeeds.
    pub fn reset(&self) -> Result<(), CommandError> {
        self.card.reset()
    }

    /// Cycles that the firmware is given for a command.
    pub(crate) fn command_timeout(&self) -> u64 {
        self.card.options.command_timeout
    }

    pub(crate) fn commands(&self) -> Result<Commands<'_>, CommandError> {
        self.card.commands()
    }
}

fn check_abi(part: &'static str, found: u32) -> Result<(), OpenError> {
    if found == ABI_VERSION {
        return Ok(());
    }
    Err(OpenError::WrongAbi {
        part,
        found,
        expected: ABI_VERSION,
    })
}

/// Whether the card has had a command since its power-up. If it hasn't, its gates are as a reset would leave them.
pub(crate) fn is_used(link: &Link) -> Result<bool, TransportError> {
    Ok(link.read(MAILBOX_REQUEST)? != 0)
}

/// Holds the processor, quiets the gates and clears their tables. When it returns true, no DMA of the card is under way; false if that took too long.
pub(crate) fn reset(link: &Link, timeout: u64) -> Result<bool, TransportError> {
    link.write(CONTROL, CONTROL_RESET)?;
    let is_clear = || {
        let clear = link.read(CONTROL)? & CONTROL_RESET == 0;
        Ok(clear && link.read(STATUS)? & STATUS_READY != 0)
    };
    until(link, timeout, is_clear)
}

/// Waits for a bit of the status register; false if it didn't come in time.
fn await_status(link: &Link, bit: u32, timeout: u64) -> Result<bool, TransportError> {
    until(link, timeout, || Ok(link.read(STATUS)? & bit != 0))
}

fn until(
    link: &Link,
    timeout: u64,
    look: impl Fn() -> Result<bool, TransportError>,
) -> Result<bool, TransportError> {
    let deadline = link.now().saturating_add(timeout);
    loop {
        if look()? {
            return Ok(true);
        }
        let now = link.now();
        if now >= deadline {
            return Ok(false);
        }
        link.pause_or_fail(&[], deadline.min(now + LOOK_CYCLES))?;
    }
}
