//! A card that has been opened: its identity, its mailbox, its counters.

use crate::domain::ProtectionDomain;
use crate::error::{CommandError, OpenError};
use crate::mailbox::{Mailbox, POLL_CYCLES};
use crate::transport::{PauseResult, Transport, TransportError};
use abi::ABI_VERSION;
use abi::control::Counter;
use abi::mailbox::{Command, CounterId, CounterValue, Identity, Nothing, Words};
use abi::register::{ABI, ID, MAGIC, STATUS, STATUS_FIRMWARE, STATUS_READY};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// How patient the library is with the card. All in cycles of the card's clock.
#[derive(Clone, Copy, Debug)]
pub struct DeviceOptions {
    /// For the gates to be ready, and after that for the firmware to be up.
    pub ready_timeout: u64,
    /// For the firmware to answer a command.
    pub command_timeout: u64,
}

impl Default for DeviceOptions {
    /// 80 ms and 16 ms at 125 MHz: some hundred times what a sound card needs.
    fn default() -> Self {
        Self {
            ready_timeout: 10_000_000,
            command_timeout: 2_000_000,
        }
    }
}

pub(crate) struct DeviceInner {
    pub(crate) transport: Arc<dyn Transport>,
    options: DeviceOptions,
    identity: Identity,
    mailbox: Mutex<Mailbox>,
}

/// An open card. Clones are the same card.
#[derive(Clone)]
pub struct Device {
    pub(crate) inner: Arc<DeviceInner>,
}

impl Device {
    /// Opens the card with the default options.
    ///
    /// # Errors
    /// [`OpenError`]; see [`open_with`](Self::open_with).
    pub fn open(transport: Arc<dyn Transport>) -> Result<Self, OpenError> {
        Self::open_with(transport, DeviceOptions::default())
    }

    /// Opens the card: checks what it is, and waits for its gates and its firmware.
    ///
    /// # Errors
    /// [`OpenError::NotACard`] and [`OpenError::WrongAbi`] if this library can't drive what it found,
    /// [`OpenError::CardTimeout`] and [`OpenError::FirmwareTimeout`] if it never came up.
    pub fn open_with(
        transport: Arc<dyn Transport>,
        options: DeviceOptions,
    ) -> Result<Self, OpenError> {
        let id = transport.read_register(ID)?;
        if id != MAGIC {
            return Err(OpenError::NotACard(id));
        }
        check_abi("card", transport.read_register(ABI)?)?;
        let timeout = options.ready_timeout;
        if !await_status(&*transport, STATUS_READY, timeout)? {
            return Err(OpenError::CardTimeout(timeout));
        }
        if !await_status(&*transport, STATUS_FIRMWARE, timeout)? {
            return Err(OpenError::FirmwareTimeout(timeout));
        }
        let mut mailbox = Mailbox::new(&*transport, options.command_timeout)?;
        let identity: Identity = mailbox.call(
            &*transport,
            Command::Identify,
            &Nothing {},
            options.command_timeout,
        )?;
        check_abi("firmware", identity.abi_version)?;
        Ok(Self {
            inner: Arc::new(DeviceInner {
                transport,
                options,
                identity,
                mailbox: Mutex::new(mailbox),
            }),
        })
    }

    /// What the card is.
    pub fn identity(&self) -> &Identity {
        &self.inner.identity
    }

    /// How the card is reached.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.inner.transport
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
        let answer: CounterValue = self.command(
            Command::ReadCounter,
            &CounterId {
                counter: u32::from(counter.code()),
            },
        )?;
        Ok(answer.value)
    }

    pub(crate) fn command<A: Words, R: Words>(
        &self,
        command: Command,
        argument: &A,
    ) -> Result<R, CommandError> {
        let inner = &*self.inner;
        lock(&*inner.transport, &inner.mailbox).call(
            &*inner.transport,
            command,
            argument,
            inner.options.command_timeout,
        )
    }
}

/// Takes a lock whose holder may be waiting for the card. A thread that waited for the lock outside the
/// transport would stop a simulated card, and so the holder: it waits in the transport instead.
pub(crate) fn lock<'a, T>(transport: &dyn Transport, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            // What the locks guard is whole between any two statements that can panic.
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                if transport.pause(&[], transport.now() + 1) == PauseResult::Closed {
                    std::thread::yield_now();
                }
            }
        }
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

/// Waits for a bit of the status register; false if it didn't come in time.
fn await_status(transport: &dyn Transport, bit: u32, timeout: u64) -> Result<bool, TransportError> {
    let deadline = transport.now().saturating_add(timeout);
    loop {
        if transport.read_register(STATUS)? & bit != 0 {
            return Ok(true);
        }
        let now = transport.now();
        if now >= deadline {
            return Ok(false);
        }
        if transport.pause(&[], deadline.min(now + POLL_CYCLES)) == PauseResult::Closed {
            return Err(TransportError::Closed);
        }
    }
}
