//! Peers that fail, and signals: what a program says of its peers, and what the card says to it.
//!
//! | | takes time of the card |
//! |---|---|
//! | [`Endpoint::watch_peers`], [`declare_failed`](Endpoint::declare_failed), [`tell_failed`](Endpoint::tell_failed), [`signal`](Endpoint::signal) | a command |
//! | [`Endpoint::peer_failure`] | a command, at first |
//! | [`Endpoint::failed_peers`], [`pending_failures`](Endpoint::pending_failures), [`acknowledge_failures`](Endpoint::acknowledge_failures) | a command, which asks no other card |
//!
//! A failure is acknowledged in the library: the card tells of it once, by an event, and goes on naming it. The library has an event of its own for who waits for anyone
//! (`core/failed.rs`).

use crate::commands::Commands;
use crate::endpoint::{Endpoint, Handle};
use crate::error::CommandError;
use crate::pair::Pair;
use abi::mailbox::{self, Command, FailedPeers, Nothing, Signal, TellFailed, WatchPeers};

/// How the card watches the peers of an endpoint. Times are in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchOptions {
    /// Between two looks at each peer, which is asked for a sign of life if none has come since the look before. 0: the card doesn't look.
    pub interval: u32,
    /// Without a sign of life, before a peer is taken to have failed: twice the interval or more.
    pub timeout: u32,
    /// Whether a connected peer is believed that says that another has failed ([`tell_failed`](Endpoint::tell_failed)), or that messages are revoked
    /// ([`tell_revoked`](Endpoint::tell_revoked)).
    pub believe_peers: bool,
}

impl WatchOptions {
    /// The card doesn't look, and believes nobody.
    pub const OFF: Self = Self {
        interval: 0,
        timeout: 0,
        believe_peers: false,
    };
}

impl Default for WatchOptions {
    /// A look every 2.1 ms, which 64 silent peers leave time for, and failure after 8.4 ms; peers aren't believed.
    fn default() -> Self {
        Self {
            interval: 1 << 18,
            timeout: 1 << 20,
            believe_peers: false,
        }
    }
}

impl Endpoint {
    /// Has the card watch the endpoint's peers, those of later connections too, whether or not anything is sent to them. It replaces what was said before.
    ///
    /// # Errors
    /// [`CommandError::Refused`] with `InvalidArgument` if the interval is below [`WATCH_INTERVAL_LEAST`](abi::times::WATCH_INTERVAL_LEAST) and not 0, or the
    /// time-out less than two intervals or 2^31 or more; `NotFound` if the endpoint is closed.
    pub fn watch_peers(&self, options: WatchOptions) -> Result<(), CommandError> {
        let (mut commands, ()) = self.commands_while_open()?;
        let watch = WatchPeers {
            endpoint: self.handle.id(),
            interval: options.interval,
            timeout: options.timeout,
            believe: options.believe_peers.into(),
        };
        let Nothing {} = commands.call(Command::WatchPeers, &watch)?;
        let timeout = match options.interval {
            0 => 0,
            _ => options.timeout,
        };
        self.handle.lock().own().set_watch(timeout);
        Ok(())
    }

    /// Declares that the peer of a pair has failed: what depends on it completes with `PeerFailed`, and its frames are dropped from then on. Of one that has failed
    /// already nothing is changed.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open, `Refused` with `NotConnected` if it is neither connected nor failed.
    pub fn declare_failed(&self, pair: Pair) -> Result<(), CommandError> {
        let (mut commands, pair) = self.commands_for(|own| own.pair_id(pair))?;
        let Nothing {} = commands.call(Command::DeclareFailed, &mailbox::Pair { pair })?;
        Ok(())
    }

    /// The pairs whose peers have failed, in the order of their places. A pair is named until it is closed.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the endpoint is closed.
    pub fn failed_peers(&self) -> Result<Vec<Pair>, CommandError> {
        let failed = self.look_for_failed()?;
        Ok(self.handle.lock().own().pairs_of_card(failed))
    }

    /// The pairs whose peers have failed and that haven't been acknowledged, if a receive from any source is posted: it may wait for nothing. Empty if none is posted.
    ///
    /// # Errors
    /// As for [`failed_peers`](Self::failed_peers).
    pub fn pending_failures(&self) -> Result<Vec<Pair>, CommandError> {
        let failed = self.look_for_failed()?;
        let mut locked = self.handle.lock();
        if !locked.own().awaits_anyone() && !is_broken!(PendingAlways) {
            return Ok(Vec::new());
        }
        let mut failed = locked.own().pairs_of_card(failed);
        failed.retain(|&pair| !locked.own().is_failure_acknowledged(pair));
        Ok(failed)
    }

    /// Acknowledges the failures that there are: [`pending_failures`](Self::pending_failures) doesn't name them any more, and no event
    /// [`PeerFailedPending`](crate::Cause::PeerFailedPending) tells of them. Returns all that have been acknowledged, now or before, of pairs that are open.
    ///
    /// # Errors
    /// As for [`failed_peers`](Self::failed_peers).
    pub fn acknowledge_failures(&self) -> Result<Vec<Pair>, CommandError> {
        let failed = self.look_for_failed()?;
        let mut locked = self.handle.lock();
        let failed = locked.own().pairs_of_card(failed);
        for &pair in &failed {
            locked.own().acknowledge_failure(pair);
        }
        Ok(failed)
    }

    /// Has the card tell the peers of some pairs that the peer of another has failed. It does so by itself, again until each has answered. Those that aren't
    /// connected are passed over.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if one of the pairs isn't open; `Refused` with `InvalidArgument` if the peer hasn't failed, with `Busy` while four failures and revocations
    /// are being told of.
    pub fn tell_failed(&self, failed: Pair, to: &[Pair]) -> Result<(), CommandError> {
        let (mut commands, (failed, bits)) = self.commands_for(|own| {
            let mut bits = 0_u128;
            for &pair in to {
                own.pair_id(pair)?;
                bits |= 1 << pair.index;
            }
            Some((own.pair_id(failed)?, bits))
        })?;
        let tell = TellFailed {
            failed,
            low: bits as u64,
            high: (bits >> 64) as u64,
        };
        let Nothing {} = commands.call(Command::TellFailed, &tell)?;
        Ok(())
    }

    /// Sends a word to the process at the other end of a pair, which gets it as an event of the cause [`Signal`](crate::Cause::Signal). It passes messages and takes no
    /// credit; signals of a pair arrive in their order, each once.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open; `Refused` with `NotConnected` if it isn't connected, with `Busy` while the signal before is under way or
    /// 16 notices are.
    pub fn signal(&self, pair: Pair, word: u64) -> Result<(), CommandError> {
        let (mut commands, pair) = self.commands_for(|own| own.pair_id(pair))?;
        let Nothing {} = commands.call(Command::Signal, &Signal { pair, word })?;
        Ok(())
    }

    /// Events have been lost: asks the card who has failed. False if it doesn't answer.
    pub(crate) fn ask_for_failed(&self) -> bool {
        // What is lost from here on asks anew.
        self.handle.lock().own().set_asks_for_failed(false);
        let answered = self.look_for_failed().is_ok();
        if !answered {
            self.handle.lock().own().set_asks_for_failed(true);
        }
        answered
    }

    /// A bit for each place of a pair whose peer has failed.
    fn look_for_failed(&self) -> Result<u128, CommandError> {
        let (mut commands, ()) = self.commands_while_open()?;
        let (failed, interrupts) = self.handle.read_failed(&mut commands)?;
        drop(commands);
        if interrupts {
            self.handle.link().own_event();
        }
        Ok(failed)
    }
}

impl Handle {
    /// A bit for each place of a pair whose peer has failed, and whether a wait is to be interrupted for one.
    ///
    /// # Errors
    /// [`CommandError`].
    pub(crate) fn read_failed(
        &self,
        commands: &mut Commands<'_>,
    ) -> Result<(u128, bool), CommandError> {
        let endpoint = self.id();
        let read = mailbox::Endpoint { endpoint };
        let FailedPeers { low, high } = commands.call(Command::ReadFailed, &read)?;
        let failed = u128::from(low) | u128::from(high) << 64;
        // No pair is closed and none is opened while the channel is held.
        let interrupts = self.lock().own().note_failed(failed);
        Ok((failed, interrupts))
    }
}
