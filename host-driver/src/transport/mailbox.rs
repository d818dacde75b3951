//! The mailbox of a card whose registers the transport reaches itself: who owns it, the numbers of commands, late answers.
//!
//! ```text
//!  host      words ─► MAILBOX_COMMAND, number ─► MAILBOX_REQUEST
//!  firmware                                          words ─► MAILBOX_RESULT, number ─► MAILBOX_ANSWER, interrupt
//!  host      pause until the interrupt ► MAILBOX_ANSWER reads the number ► words
//! ```
//!
//! A card has one `Mailbox`, whatever the number of its transports: it holds the claim. Numbers go on from what the register
//! reads when the card is claimed, and are never 0, so that a card that has had no command since power-up reads as 0.

use super::{Answer, Line, PauseResult, Transport, TransportError, Watch};
use crate::primitives::{Mutex, MutexGuard};
use abi::register::{MAILBOX_ANSWER, MAILBOX_COMMAND, MAILBOX_REQUEST, MAILBOX_RESULT};
use std::sync::PoisonError;

/// Position in the conversation with the firmware.
#[derive(Clone, Copy, Default)]
struct Position {
    claimed: bool,
    /// Number of the last command, once it is known.
    sequence: Option<u32>,
    /// The last command is this owner's and has not been answered.
    outstanding: bool,
}

/// The mailbox of one card, for a [`Transport`] to hold: its `claim`, `release`, `command` and `late_answer`.
#[derive(Default)]
pub struct Mailbox {
    position: Mutex<Position>,
}

impl Mailbox {
    /// A mailbox that nobody has claimed.
    pub fn new() -> Self {
        Self::default()
    }

    fn position(&self) -> MutexGuard<'_, Position> {
        // It is whole between any two statements.
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// [`Transport::claim`].
    pub fn claim(&self) -> bool {
        let mut position = self.position();
        let free = !position.claimed;
        if free {
            *position = Position {
                claimed: true,
                ..Position::default()
            };
        }
        free
    }

    /// [`Transport::release`].
    pub fn release(&self) {
        self.position().claimed = false;
    }

    /// [`Transport::command`], by the registers of `card`.
    ///
    /// # Errors
    /// Those of the registers.
    ///
    /// # Safety
    /// As for [`Transport::command`].
    pub unsafe fn command(
        &self,
        card: &dyn Transport,
        words: &[u32],
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<Answer, TransportError> {
        let sequence = self.position().sequence;
        let last = match sequence {
            Some(sequence) => sequence,
            None => {
                // SAFETY: the caller owns the card.
                let last = unsafe { card.read_register(MAILBOX_REQUEST) }?;
                // SAFETY: as above. Another owner's command: the firmware ends it before it takes this one.
                if !unsafe { await_answer(card, last, deadline) }? {
                    return Ok(Answer::NotSent);
                }
                last
            }
        };
        let sequence = match last.wrapping_add(1) {
            0 => 1,
            next => next,
        };
        for (offset, &word) in (MAILBOX_COMMAND..).step_by(4).zip(words) {
            // SAFETY: the caller owns the card, and answers for the command; nothing is carried out yet.
            unsafe { card.write_register(offset, word) }?;
        }
        *self.position() = Position {
            claimed: true,
            sequence: Some(sequence),
            outstanding: true,
        };
        // SAFETY: the caller answers for what the command names.
        unsafe { card.write_register(MAILBOX_REQUEST, sequence) }?;
        // SAFETY: as for this function.
        unsafe { self.finish(card, sequence, answer, deadline) }
    }

    /// [`Transport::late_answer`], by the registers of `card`.
    ///
    /// # Errors
    /// Those of the registers.
    ///
    /// # Safety
    /// As for [`Transport::late_answer`].
    pub unsafe fn late_answer(
        &self,
        card: &dyn Transport,
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<Answer, TransportError> {
        let Position {
            sequence,
            outstanding,
            ..
        } = *self.position();
        let Some(sequence) = sequence.filter(|_| outstanding) else {
            return Ok(Answer::NotSent);
        };
        // SAFETY: the caller owns the card.
        if unsafe { card.read_register(MAILBOX_REQUEST) }? != sequence {
            // The write that would have handed it over was lost: it came before this read, so that it isn't on its way.
            *self.position() = Position {
                claimed: true,
                ..Position::default()
            };
            return Ok(Answer::NotSent);
        }
        // SAFETY: as for this function.
        unsafe { self.finish(card, sequence, answer, deadline) }
    }

    /// # Safety
    /// The caller owns the card.
    unsafe fn finish(
        &self,
        card: &dyn Transport,
        sequence: u32,
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<Answer, TransportError> {
        // SAFETY: the caller owns the card.
        if !unsafe { await_answer(card, sequence, deadline) }? {
            return Ok(Answer::Outstanding);
        }
        for (offset, word) in (MAILBOX_RESULT..).step_by(4).zip(answer.iter_mut()) {
            // SAFETY: as above.
            *word = unsafe { card.read_register(offset) }?;
        }
        self.position().outstanding = false;
        Ok(Answer::Complete)
    }
}

/// Waits until the firmware has answered command `sequence`; false if it hasn't by `deadline`.
///
/// # Safety
/// The caller owns the card.
unsafe fn await_answer(
    card: &dyn Transport,
    sequence: u32,
    deadline: u64,
) -> Result<bool, TransportError> {
    loop {
        let seen = card.interrupts(Line::Mailbox);
        // SAFETY: the caller owns the card.
        if unsafe { card.read_register(MAILBOX_ANSWER) }? == sequence {
            return Ok(true);
        }
        if card.now() >= deadline {
            return Ok(false);
        }
        let watch = Watch {
            line: Line::Mailbox,
            seen,
        };
        let next = match is_broken!(PollsMailbox) {
            true => deadline.min(card.now() + 200),
            false => deadline,
        };
        match card.pause(&[watch], next) {
            PauseResult::Closed => return Err(TransportError::Closed),
            PauseResult::Unreachable => return Err(TransportError::Unreachable),
            PauseResult::Interrupt(_) | PauseResult::Deadline => {}
        }
    }
}
