//! The times of a pair: what `timeout` and `retry_cnt` of `ibv_modify_qp` are, and what acknowledgements wait for.
//!
//! They are the card's: the library gives them to its firmware, and keeps nothing. [`Endpoint::query_pair`] tells those that are in force.

use crate::endpoint::Endpoint;
use crate::error::CommandError;
use crate::pair::Pair;
use abi::mailbox::{
    Command, Nothing, SetPairTimes, TIMES_CREDITS, TIMES_DELAY, TIMES_RETRY_LIMIT, TIMES_TIMEOUT,
};

/// What a program chooses for a pair. What is `None` is the card's: see `docs/src/connection.md` for how it follows from the round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PairTimes {
    /// Log2 of the cycles without acknowledgement after which the pair sends again, or asks its peer for credit; it waits twice as long each further time, up to
    /// four times. [`TIMEOUT_LOG2_LEAST`](abi::times::TIMEOUT_LOG2_LEAST) to [`TIMEOUT_LOG2_MOST`](abi::times::TIMEOUT_LOG2_MOST).
    pub timeout: Option<u8>,
    /// Times that it does so before it fails with `PeerFailed`: up to [`RETRY_LIMIT_MOST`](abi::times::RETRY_LIMIT_MOST).
    pub retry_cnt: Option<u8>,
    /// Cycles that an acknowledgement waits at most for a message that can carry it; 0: for none. It has to be well below the time-out of the peer, which would
    /// send again what has arrived.
    pub acknowledge_delay: Option<u16>,
    /// Credits that wait with it at most: up to those that the peer may have here. 0: they don't wait.
    pub acknowledge_credits: Option<u8>,
}

impl Endpoint {
    /// Chooses the times of a pair, from its opening on and whenever it is connected: its gates go by them when this returns. It replaces what was chosen before.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open; `Refused` with `InvalidArgument` if a value is out of its bounds, the detail being its place in the command
    /// `SetPairTimes`, and with `HardwareTimeout` if the gates don't answer in time.
    pub fn set_pair_times(&self, pair: Pair, times: PairTimes) -> Result<(), CommandError> {
        let (mut commands, pair) = self.commands_for(|own| own.pair_id(pair))?;
        let chosen = |bit: u32, is_chosen: bool| if is_chosen { bit } else { 0 };
        let set = SetPairTimes {
            pair,
            chosen: chosen(TIMES_TIMEOUT, times.timeout.is_some())
                | chosen(TIMES_RETRY_LIMIT, times.retry_cnt.is_some())
                | chosen(TIMES_DELAY, times.acknowledge_delay.is_some())
                | chosen(TIMES_CREDITS, times.acknowledge_credits.is_some()),
            timeout_log2: times.timeout.unwrap_or_default().into(),
            retry_limit: times.retry_cnt.unwrap_or_default().into(),
            acknowledge_delay: times.acknowledge_delay.unwrap_or_default().into(),
            acknowledge_credits: times.acknowledge_credits.unwrap_or_default().into(),
        };
        let Nothing {} = commands.call(Command::SetPairTimes, &set)?;
        Ok(())
    }
}
