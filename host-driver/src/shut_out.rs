//! When a peer is shut out: after how many refused accesses, and for how long.
//!
//! It is the card's: the library gives it to the firmware, and keeps nothing.

use crate::endpoint::Endpoint;
use crate::error::CommandError;
use crate::pair::Pair;
use abi::mailbox::{self, Command, Nothing, SetShutOut};
use abi::times::{SHUT_OUT_LIMIT, SHUT_OUT_TICKS};

/// When the peer of a pair is shut out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShutOut {
    /// After so many of its accesses have been refused; 0: never.
    pub limit: u16,
    /// For so many ticks of [`SHUT_OUT_TICK`](abi::times::SHUT_OUT_TICK) cycles; the first may be short. 0: for none.
    pub ticks: u16,
}

impl ShutOut {
    /// It never is.
    pub const NEVER: Self = Self { limit: 0, ticks: 0 };
}

impl Default for ShutOut {
    /// The card's own: a pair has it when it is connected.
    fn default() -> Self {
        Self {
            limit: SHUT_OUT_LIMIT,
            ticks: SHUT_OUT_TICKS,
        }
    }
}

/// Whether the peer of a pair is shut out: `Endpoint::query_shut_out`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutOutStatus {
    /// What is in force.
    pub chosen: ShutOut,
    /// Refusals that count towards the limit: since the pair was connected, its peer was last shut out, or the limit was chosen.
    pub count: u16,
    /// The peer is shut out for so many ticks more; 0: it isn't.
    pub left: u16,
}

impl Endpoint {
    /// Chooses when the peer of a connected pair is shut out. It isn't from then on, and its refusals are counted anew. The next connection has the card's own again.
    ///
    /// A peer that is shut out is denied every access without a look at its keys, and its puts end with [`RemoteAccess`](crate::WcStatus::RemoteAccess); nobody else
    /// waits for that. Its keys stay, and are good again when the time is over. Its messages go on.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open; `Refused` with `NotConnected` if it isn't connected and hasn't been, with `Busy` while it is being closed, and
    /// with `HardwareTimeout` if the gates don't answer in time.
    pub fn set_shut_out(&self, pair: Pair, chosen: ShutOut) -> Result<(), CommandError> {
        let (mut commands, pair) = self.commands_for(|own| own.pair_id(pair))?;
        let set = SetShutOut {
            pair,
            limit: chosen.limit.into(),
            ticks: chosen.ticks.into(),
        };
        let Nothing {} = commands.call(Command::SetShutOut, &set)?;
        Ok(())
    }

    /// When the peer of a connected pair is shut out, and whether it is.
    ///
    /// # Errors
    /// [`CommandError`]: as [`set_shut_out`](Self::set_shut_out).
    pub fn query_shut_out(&self, pair: Pair) -> Result<ShutOutStatus, CommandError> {
        let (mut commands, pair) = self.commands_for(|own| own.pair_id(pair))?;
        let read: mailbox::ShutOut =
            commands.call(Command::ReadShutOut, &mailbox::Pair { pair })?;
        let word = |word: u32| {
            u16::try_from(word).map_err(|_| CommandError::Malformed {
                command: Command::ReadShutOut,
                answer: word,
            })
        };
        Ok(ShutOutStatus {
            chosen: ShutOut {
                limit: word(read.limit)?,
                ticks: word(read.ticks)?,
            },
            count: word(read.count)?,
            left: word(read.left)?,
        })
    }
}
