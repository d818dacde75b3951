//! The mailbox: how the library asks the card's firmware for objects.
//!
//! ```text
//!  host      words ─► MAILBOX_COMMAND, number ─► MAILBOX_REQUEST
//!  firmware                                          words ─► MAILBOX_RESULT, number ─► MAILBOX_ANSWER
//!  host      pause … until MAILBOX_ANSWER reads the number
//! ```
//!
//! One command is outstanding at a time. A command that isn't answered in time is the error
//! `FirmwareTimeout`; until its answer has come, later commands fail at once in the same way.

use crate::error::CommandError;
use crate::transport::{PauseResult, Transport, TransportError};
use abi::mailbox::{Command, Words};
use abi::register::{
    MAILBOX_ANSWER, MAILBOX_COMMAND, MAILBOX_REQUEST, MAILBOX_RESULT, MAILBOX_WORDS,
};
use abi::status::MailboxStatus;

/// Cycles between two looks at the answer register.
pub(crate) const POLL_CYCLES: u64 = 200;

/// Position in the conversation with the firmware.
pub(crate) struct Mailbox {
    /// Number of the last command.
    sequence: u32,
    /// The last command, while it is unanswered after its time-out.
    stuck: Option<(Command, u64)>,
}

impl Mailbox {
    /// Takes up the conversation where the card's registers say it is. A command that a driver before
    /// this one left behind is given `timeout` cycles.
    pub(crate) fn new(transport: &dyn Transport, timeout: u64) -> Result<Self, CommandError> {
        let mut mailbox = Self {
            sequence: transport.read_register(MAILBOX_REQUEST)?,
            stuck: None,
        };
        mailbox.await_answer(transport, Command::Identify, timeout)?;
        Ok(mailbox)
    }

    /// Runs a command.
    pub(crate) fn call<A: Words, R: Words>(
        &mut self,
        transport: &dyn Transport,
        command: Command,
        argument: &A,
        timeout: u64,
    ) -> Result<R, CommandError> {
        if let Some((command, cycles)) = self.stuck {
            if transport.read_register(MAILBOX_ANSWER)? != self.sequence {
                return Err(CommandError::FirmwareTimeout { command, cycles });
            }
            self.stuck = None;
        }
        let mut words = [0; MAILBOX_WORDS];
        words[0] = u32::from(command.code());
        argument.to_words(&mut words[1..]);
        for (offset, word) in (MAILBOX_COMMAND..).step_by(4).zip(&words[..=A::COUNT]) {
            transport.write_register(offset, *word)?;
        }
        self.sequence = self.sequence.wrapping_add(1);
        transport.write_register(MAILBOX_REQUEST, self.sequence)?;
        self.await_answer(transport, command, timeout)?;

        let status = transport.read_register(MAILBOX_RESULT)?;
        let word = |k: usize| transport.read_register(MAILBOX_RESULT + 4 * (k as u32 + 1));
        match u8::try_from(status).ok().and_then(MailboxStatus::from_code) {
            Some(MailboxStatus::Ok) => {
                let mut words = [0; MAILBOX_WORDS];
                for (k, slot) in words.iter_mut().enumerate().take(R::COUNT) {
                    *slot = word(k)?;
                }
                Ok(R::from_words(&words[..R::COUNT]))
            }
            Some(status) => Err(CommandError::Refused {
                command,
                status,
                detail: word(0)?,
            }),
            None => Err(CommandError::Malformed {
                command,
                answer: status,
            }),
        }
    }

    fn await_answer(
        &mut self,
        transport: &dyn Transport,
        command: Command,
        timeout: u64,
    ) -> Result<(), CommandError> {
        let deadline = transport.now().saturating_add(timeout);
        while transport.read_register(MAILBOX_ANSWER)? != self.sequence {
            let now = transport.now();
            if now >= deadline {
                self.stuck = Some((command, timeout));
                return Err(CommandError::FirmwareTimeout {
                    command,
                    cycles: timeout,
                });
            }
            if transport.pause(&[], deadline.min(now + POLL_CYCLES)) == PauseResult::Closed {
                return Err(TransportError::Closed.into());
            }
        }
        Ok(())
    }
}
