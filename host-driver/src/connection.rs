//! Connections that the cards make: a program names a card and an endpoint, and the firmwares shake hands.
//!
//! ```text
//!  begin_connect ─► under way ─┬─► connected ─► begin_disconnect ─► draining ─► ended: closed
//!  listen ────────► an offer ──┘      │                                ▲
//!                       └─► refused   └─ PeerClosed: the peer ended it ┘
//! ```
//!
//! Each end of an arrow behind which somebody waits is an event of the endpoint: `PairConnected`, `ConnectFailed`, `Disconnected`, `PeerClosed`.
//!
//! The pair and its slots exist from the first call on, whatever becomes of the connection, and are given back when the pair is closed. The blocking calls
//! close what came to nothing; who uses the others closes by [`Endpoint::close_pair`].

use crate::endpoint::Endpoint;
use crate::error::{CommandError, ConnectError};
use crate::memory::HostMemory;
use crate::pair::{EndpointAddress, Pair};
use crate::transport::{TransportError, Watch};
use abi::limits::EAGER_MAX;
use abi::mailbox::{
    Accept, Command, Connect, ConnectReason, Disconnect, Nothing, PairState, Reserve, Words,
};
use abi::times::{CONNECT_TIMEOUT, DRAIN_TIMEOUT, TELL_TIMEOUT};
use std::sync::Arc;

/// Cycles between two looks at a connection while its event would find the queue full: at first, and at most.
const LOOK_CYCLES: (u64, u64) = (2_000, 1 << 16);
/// Cycles between two looks while something is to interrupt: an event that is lost all the same, on the way to memory, wakes nobody.
pub(crate) const SELDOM_CYCLES: u64 = 1 << 20;

impl Endpoint {
    /// What a peer has to know of this endpoint to connect to it.
    pub fn address(&self) -> EndpointAddress {
        EndpointAddress {
            mac: self.device().identity().mac,
            endpoint: self.index().into(),
        }
    }

    /// Begins to connect to an endpoint elsewhere, which may have `credits` messages here that wait to be received. The pair is usable when
    /// [`poll_connection`](Self::poll_connection) says so; an event of the cause `PairConnected` or `ConnectFailed` tells when to look. `timeout` is in cycles, 0 for
    /// the firmware's own.
    ///
    /// # Errors
    /// [`CommandError::Refused`] with `NoEnvelopes` if the card can't keep so many for the peer, whose detail is how many it can, with `NoResource` if it has no
    /// more pairs, with `Busy` if it has 16 handshakes under way, with `InvalidArgument` if `credits` is 0 or more than 64, if `timeout` is 2^31 or more, or if
    /// the peer's Ethernet address is a group's.
    pub fn begin_connect(
        &self,
        peer: &EndpointAddress,
        credits: u16,
        timeout: u32,
    ) -> Result<Pair, CommandError> {
        self.open_connection(credits, Command::Connect, |endpoint, credits, slots| {
            Connect {
                endpoint,
                credits,
                slots,
                remote_mac: peer.mac,
                remote_endpoint: peer.endpoint.into(),
                timeout,
            }
        })
    }

    /// Connects to an endpoint elsewhere, and waits until that is done.
    ///
    /// # Errors
    /// [`ConnectError`]; the pair is closed again then.
    pub fn connect(
        &self,
        peer: &EndpointAddress,
        credits: u16,
        timeout: u32,
    ) -> Result<Pair, ConnectError> {
        let pair = self.begin_connect(peer, credits, timeout)?;
        // The firmware gives up by itself, which takes it some cycles.
        let timeout = self.patience(timeout, CONNECT_TIMEOUT);
        self.await_connection(pair, timeout).map(|_| pair)
    }

    /// Offers a pair to whoever connects next to this endpoint, who may have `credits` messages here. Offers are taken in the order in which they were made.
    ///
    /// # Errors
    /// As for [`begin_connect`](Self::begin_connect), but for `Busy`.
    pub fn listen(&self, credits: u16) -> Result<Pair, CommandError> {
        self.open_connection(credits, Command::Accept, |endpoint, credits, slots| {
            Accept {
                endpoint,
                credits,
                slots,
            }
        })
    }

    /// Offers a pair, and waits until somebody has connected to it, `timeout` cycles at most. Returns the pair and who that is.
    ///
    /// # Errors
    /// [`ConnectError`]; the offer is withdrawn then.
    pub fn accept(
        &self,
        credits: u16,
        timeout: u64,
    ) -> Result<(Pair, EndpointAddress), ConnectError> {
        let pair = self.listen(credits)?;
        let peer = self.await_connection(pair, timeout)?;
        Ok((pair, peer))
    }

    /// Looks what has become of a connection that was begun or offered: the peer, if it is made; none, while it is under way.
    ///
    /// # Errors
    /// [`ConnectError::Refused`] if it came to nothing: close the pair. [`ConnectError::Command`] if the card didn't answer.
    pub fn poll_connection(&self, pair: Pair) -> Result<Option<EndpointAddress>, ConnectError> {
        let status = self.query_pair(pair)?;
        match status.state {
            PairState::Open | PairState::Connecting | PairState::Accepting => Ok(None),
            PairState::Refused => {
                let (reason, detail) = status.reason.unwrap_or((ConnectReason::Malformed, 0));
                Err(ConnectError::Refused { reason, detail })
            }
            PairState::Unsettled => Err(ConnectError::Refused {
                reason: ConnectReason::HardwareTimeout,
                detail: 0,
            }),
            // It has been connected, whatever became of it since.
            _ => Ok(status.peer),
        }
    }

    /// Sets pairs with `credits` envelopes each aside for `pairs` peers, all or none; what is opened, connected or offered later draws from them. It
    /// replaces what was set aside before.
    ///
    /// # Errors
    /// [`CommandError::Refused`] with `NoResource`, the detail being the pairs that could be had, or with `NoEnvelopes`, the detail being the most credits that
    /// fit for so many.
    pub fn reserve_peers(&self, pairs: u32, credits: u16) -> Result<(), CommandError> {
        let (mut commands, ()) = self.commands_while_open()?;
        let reserve = Reserve {
            endpoint: self.handle.id(),
            pairs,
            credits: credits.into(),
        };
        let Nothing {} = commands.call(Command::Reserve, &reserve)?;
        Ok(())
    }

    /// Begins to end a connection in an orderly way: what has been posted on the pair is sent and acknowledged, within `timeout` cycles (0 for the firmware's
    /// own), then the peer's firmware is notified, and the peer's operations complete with [`PeerClosed`](crate::WcStatus::PeerClosed). An event of the
    /// cause `Disconnected` says when that is done. From the call on, nothing can be posted on the pair.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open, `SendsKept` while the library keeps sends of it, `Busy` if it isn't connected or 16 connections
    /// are being ended.
    pub fn begin_disconnect(&self, pair: Pair, timeout: u32) -> Result<(), CommandError> {
        self.handle.lock().core.feed(self.handle.link());
        self.disconnect_by_card(pair, timeout, is_broken!(DisconnectsKept))
    }

    /// Has the card end a connection, though sends of it are kept or only if none are.
    fn disconnect_by_card(
        &self,
        pair: Pair,
        timeout: u32,
        though_kept: bool,
    ) -> Result<(), CommandError> {
        let (mut commands, id) = self.commands_for(|own| {
            if own.keeps_sends(pair) && !though_kept {
                return Some(Err(CommandError::SendsKept));
            }
            own.begin_closing_pair(pair).map(Ok)
        })?;
        let id = id?;
        let begun = commands.call(Command::Disconnect, &Disconnect { pair: id, timeout });
        // A refusal changes nothing: a pair whose close is under way stays closed to posts.
        if !commands.is_late() {
            let heard = begun.is_ok();
            self.handle
                .lock()
                .own()
                .pair_closing_ended(pair, false, heard);
        }
        begun.map(|Nothing {}| ())
    }

    /// Whether a connection that is being ended has come to its end, so that the pair can be closed without its peer taking it for a failure.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open.
    pub fn is_disconnected(&self, pair: Pair) -> Result<bool, CommandError> {
        let state = self.query_pair(pair)?.state;
        Ok(!matches!(
            state,
            PairState::Connected | PairState::Disconnecting
        ))
    }

    /// Ends a connection in an orderly way, waits until that is done, and closes the pair. Sends that the library keeps go first; those that the card
    /// doesn't get in time end with the pair. A connection that the card doesn't end in time, because its gates hang,
    /// is closed as by [`close_pair`](Self::close_pair), which says so.
    ///
    /// # Errors
    /// As for [`begin_disconnect`](Self::begin_disconnect), but for `SendsKept`, and [`close_pair`](Self::close_pair).
    pub fn disconnect(&self, pair: Pair, timeout: u32) -> Result<(), CommandError> {
        let timeout = self.await_kept(pair, timeout)?;
        self.disconnect_by_card(pair, timeout, true)?;
        // The firmware ends it by itself, unless it waits for gates that hang: what was posted is sent, then the peer is told.
        let patience = self.patience(timeout, DRAIN_TIMEOUT);
        let patience = patience.saturating_add(TELL_TIMEOUT.into());
        let deadline = match is_broken!(WaitsForGates) {
            false => self.device().now().saturating_add(patience),
            true => u64::MAX,
        };
        let look = || Ok::<_, CommandError>(self.is_disconnected(pair)?.then_some(()));
        self.look_until(deadline, look)?;
        self.close_pair(pair)
    }

    /// Waits until the library keeps no sends of the pair, or the time for the end of the connection is over. Returns what is left of that.
    fn await_kept(&self, pair: Pair, timeout: u32) -> Result<u32, CommandError> {
        let keeps = || {
            let mut locked = self.handle.lock();
            locked.core.feed(self.handle.link());
            locked.own().keeps_sends(pair)
        };
        if !keeps() || !self.handle.lock().own().begin_draining_pair(pair) {
            return Ok(timeout);
        }
        let cycles = if timeout == 0 { DRAIN_TIMEOUT } else { timeout };
        let deadline = self.device().now().saturating_add(cycles.into());
        let look = || Ok::<_, CommandError>((!keeps()).then_some(()));
        if let Err(error) = self.look_until(deadline, look) {
            self.handle.lock().own().end_draining_pair(pair);
            return Err(error);
        }
        let left = deadline.saturating_sub(self.device().now());
        // 0 would be the firmware's own.
        Ok(u32::try_from(left).map_or(cycles, |left| left.max(1)))
    }

    /// Cycles after which the firmware has given up by itself what it was given `timeout` cycles for, or if 0 `own` ones, and has said so.
    fn patience(&self, timeout: u32, own: u32) -> u64 {
        let cycles = if timeout == 0 { own } else { timeout };
        self.device()
            .command_timeout()
            .saturating_add(cycles.into())
    }

    fn open_connection<A: Words>(
        &self,
        credits: u16,
        command: Command,
        argument: impl FnOnce(u32, u32, u64) -> A,
    ) -> Result<Pair, CommandError> {
        let device = self.device();
        let size = usize::from(credits.max(1)) * EAGER_MAX;
        let slots = Arc::new(HostMemory::new(&device.card.link, size)?);
        let argument = argument(self.handle.id(), credits.into(), slots.address());
        let (pair, _) = self.open_pair_at(command, &argument, slots)?;
        Ok(pair)
    }

    /// Waits until a connection is made, or has come to nothing; then the pair is closed.
    fn await_connection(&self, pair: Pair, timeout: u64) -> Result<EndpointAddress, ConnectError> {
        let made = self.look_for_connection(pair, timeout);
        if made.is_err() {
            // If it can't be closed now, it is with its endpoint.
            let _ = self.close_pair(pair);
        }
        made
    }

    fn look_for_connection(
        &self,
        pair: Pair,
        timeout: u64,
    ) -> Result<EndpointAddress, ConnectError> {
        let deadline = self.device().now().saturating_add(timeout);
        let made = self.look_until(deadline, || self.poll_connection(pair))?;
        made.ok_or(ConnectError::TimedOut)
    }

    /// Looks whenever an event has come, until there is something to see or the time is over. An event that finds the queue full interrupts nobody:
    /// while it would, this looks ever more seldom by itself.
    pub(crate) fn look_until<T, E: From<TransportError>>(
        &self,
        deadline: u64,
        look: impl Fn() -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        let device = self.device();
        let (mut cycles, most) = LOOK_CYCLES;
        loop {
            let link = &device.card.link;
            let closings = link.closings();
            let (event, silent): (Watch, bool) = {
                let mut locked = self.handle.lock();
                let mut own = locked.own();
                let event = own.arm_for_event(link)?;
                // The completions of a queue that another endpoint has interrupt by that one's line.
                let silent = own.events_are_full() || own.is_send_kept() && !own.owns_queue();
                (event, silent)
            };
            if let Some(seen) = look()? {
                return Ok(Some(seen));
            }
            if device.now() >= deadline {
                return Ok(None);
            }
            let Some(closing) = link.watch_closings(closings) else {
                continue;
            };
            let at_intervals = silent || is_broken!(LooksAtIntervals);
            let patience = if at_intervals { cycles } else { SELDOM_CYCLES };
            let next = deadline.min(device.now().saturating_add(patience));
            link.pause_or_fail(&[event, closing], next)?;
            cycles = most.min(2 * cycles);
        }
    }
}
