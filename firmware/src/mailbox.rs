//! The firmware's end of the mailbox.

use crate::registers::{read, write};
use abi::mgmt::{MAILBOX_ANSWER, MAILBOX_COMMAND, MAILBOX_REQUEST, MAILBOX_RESULT};
use abi::register::MAILBOX_WORDS;

/// The mailbox, and which command was answered last.
pub struct Mailbox {
    answered: u32,
}

impl Mailbox {
    /// Takes over the mailbox. A command that is in it was given to a program that ran before this one and
    /// is lost: these words answer it.
    pub fn take_over(lost: &[u32]) -> Self {
        let mut mailbox = Self { answered: 0 };
        if let Some(request) = mailbox.pending() {
            mailbox.answer(request, lost);
        }
        mailbox
    }

    /// The number of a command that is not answered.
    pub fn pending(&self) -> Option<u32> {
        let request = read(MAILBOX_REQUEST);
        (request != self.answered).then_some(request)
    }

    /// The words of the command area.
    pub fn command(&self) -> [u32; MAILBOX_WORDS] {
        core::array::from_fn(|k| read(MAILBOX_COMMAND + 4 * k as u32))
    }

    /// Answers the command of this number, which also clears its interrupt.
    pub fn answer(&mut self, request: u32, words: &[u32]) {
        for (&word, offset) in words.iter().zip((MAILBOX_RESULT..).step_by(4)) {
            write(offset, word);
        }
        write(MAILBOX_ANSWER, request);
        self.answered = request;
    }
}
