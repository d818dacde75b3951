//! The drain of a context over a group: what is under way of it ends, what is left is swept, and all that live agree on who has failed.
//!
//! ```text
//!  drain ─► posts are refused ─► flush: own sends have been acknowledged, or are cancelled ─► Drain ─► the firmwares wait for all that live
//!        ◄─ posts are taken ◄─ who has failed is swept once more ◄─ Done ◄─ DrainSwept ◄─ sweep ◄─ nothing older can arrive
//! ```
//!
//! A send is acknowledged when the peer's card has accepted it, so no marker has to follow it on the wire: when all members that live have flushed, all that was sent
//! has arrived. A member's first message after the drain can't be swept, since none is let go before all have swept.

use crate::core::Own;
use crate::endpoint::Endpoint;
use crate::error::{CommandError, PostError};
use crate::group::Group;
use crate::sweep::{MessageSet, SweepError, Swept};
use crate::transport::TransportError;
use abi::mailbox::{
    self, Command, DRAIN_LOST, DRAIN_NOBODY, DrainName, DrainState, DrainStatus, Nothing,
};
use abi::status::{MailboxStatus, Status};

/// Most ranks of a group that drains.
const MOST_RANKS: u32 = 64;

/// What becomes of traffic between members that live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DrainPolicy {
    /// Sends that wait go on as long as one of them ends every so many cycles, and receives stay posted meanwhile: what meets is delivered. (FT-MPI's `CONTINUE`.)
    Continue {
        /// Cycles.
        patience: u64,
    },
    /// What hasn't left and hasn't matched is cancelled at once. (FT-MPI's `RESET`.)
    Reset,
}

/// What is drained, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainOptions {
    /// The program's name for the group, the same at all members.
    pub tag: u16,
    /// The messages, the same at all members.
    pub messages: MessageSet,
    /// What becomes of them.
    pub policy: DrainPolicy,
    /// Only what is between this process and the member of this rank, which drains with it.
    pub peer: Option<u32>,
    /// Cycles for which the call waits.
    pub timeout: u64,
}

/// What a drain has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Its number among those of the same tag, messages' context and peer: 1, 2 and so on. All members that live have the same.
    pub round: u32,
    /// Ranks of the members that have failed, in their order. All members that live have the same.
    pub failed: Vec<u32>,
    /// What was cancelled and discarded.
    pub swept: Swept,
}

/// Why a drain hasn't ended as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DrainError {
    /// The time is over. Some member hasn't drained yet. Posts stay refused: call again, with the same arguments, and it goes on.
    #[error("a member hasn't drained yet")]
    TimedOut,
    /// The others have ended without this process: one of them took it to have failed. What older messages may come isn't known: close the pairs, and connect
    /// again.
    #[error("the others have ended the drain without this process")]
    CutOff,
    /// The sweep hasn't ended. Do what it says, and call again.
    #[error("the sweep of the drain hasn't ended: {0}")]
    Sweep(#[from] SweepError),
    /// The firmware refused, or doesn't answer. If it was busy, call again.
    #[error(transparent)]
    Command(#[from] CommandError),
}

impl From<TransportError> for DrainError {
    fn from(error: TransportError) -> Self {
        Self::Sweep(error.into())
    }
}

/// A drain that is under way, or was: what the library keeps of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldDrain {
    tag: u32,
    messages: MessageSet,
    /// A bit for each place of the group's pairs.
    places: u128,
    /// Number of the last round that has ended.
    rounds: u32,
    /// Posts are refused.
    holds: bool,
    /// Sends that hadn't ended when one ended last, and when that was.
    pending: usize,
    since: u64,
}

impl HeldDrain {
    /// Whether a request falls under it. One from any source does, whoever else is in the group.
    fn covers(&self, place: Option<u16>, context: u16, match_bits: u64, ignore_bits: u64) -> bool {
        let member = place.is_none_or(|place| self.places >> place & 1 == 1);
        self.holds && member && self.messages.covers(context, match_bits, ignore_bits)
    }

    /// A pair is closed: its place may be another's.
    pub(crate) fn forget_pair(&mut self, place: u16) {
        self.places &= !(1 << place);
    }
}

impl Own<'_> {
    /// Refuses a request that falls under a drain.
    ///
    /// # Errors
    /// [`PostError::Draining`].
    pub(crate) fn refuse_drained(
        &mut self,
        place: Option<u16>,
        context: u16,
        match_bits: u64,
        ignore_bits: u64,
    ) -> Result<(), PostError> {
        let covers = |drain: &HeldDrain| drain.covers(place, context, match_bits, ignore_bits);
        match self.drains().iter().any(covers) && !is_broken!(PostsWhileDraining) {
            true => Err(PostError::Draining),
            false => Ok(()),
        }
    }

    /// Refuses what falls under a drain from now on. The number of its round.
    ///
    /// # Errors
    /// [`CommandError::Argument`] if one of this tag and context is under way for other messages or another group: the firmwares wouldn't tell them apart.
    fn hold_drain(
        &mut self,
        tag: u32,
        messages: &MessageSet,
        places: u128,
    ) -> Result<u32, CommandError> {
        let drains = self.drains();
        let same =
            |drain: &&mut HeldDrain| (drain.tag, drain.messages.context) == (tag, messages.context);
        let held = HeldDrain {
            tag,
            messages: *messages,
            places,
            rounds: 0,
            holds: true,
            pending: usize::MAX,
            since: 0,
        };
        match drains.iter_mut().find(same) {
            Some(drain) => {
                if !drain.holds {
                    let rounds = drain.rounds;
                    *drain = HeldDrain { rounds, ..held };
                }
                if (&drain.messages, drain.places) != (messages, places) {
                    return Err(CommandError::Argument(
                        "a drain of this tag and context is under way for other messages or another group: end it with its own arguments first",
                    ));
                }
                Ok(drain.rounds + 1)
            }
            None => {
                drains.push(held);
                Ok(1)
            }
        }
    }

    /// Since when no send has ended, of so many that haven't.
    fn pending_since(&mut self, tag: u32, context: u16, pending: usize, now: u64) -> u64 {
        let mut drains = self.drains().iter_mut();
        let own = drains.find(|drain| (drain.tag, drain.messages.context) == (tag, context));
        let Some(own) = own else {
            return now;
        };
        if pending < own.pending {
            (own.pending, own.since) = (pending, now);
        }
        own.since
    }

    /// The round has ended.
    fn release_drain(&mut self, tag: u32, context: u16, round: u32) {
        let drains = self.drains().iter_mut();
        drains
            .filter(|drain| (drain.tag, drain.messages.context) == (tag, context))
            .for_each(|drain| (drain.rounds, drain.holds) = (round, false));
    }
}

/// The name of a drain for the firmwares: of two members it is another one than of all.
fn name(options: &DrainOptions, own_rank: u32) -> u32 {
    let tag = u32::from(options.tag);
    match options.peer {
        None => tag,
        Some(peer) => {
            let (low, high) = (own_rank.min(peer), own_rank.max(peer));
            tag | (low + 1) << 16 | (high + 1) << 24
        }
    }
}

impl Endpoint {
    /// Drains messages of a group: what is under way of them ends, what is left is cancelled or discarded, and all members that live agree on who has failed. Each member calls it,
    /// as often as the others, with the same tag, context and peer. (`MPI_Comm_drain_all` of the MPI Forum's ticket 1119, `MPI_Comm_drain` with a peer, with the agreement of
    /// `MPI_Comm_validate`.)
    ///
    /// From its beginning posts that fall under it are refused as [`PostError::Draining`]; a receive from any source falls under it whoever is in the group. At
    /// its end nothing that was sent before can arrive any more. It waits, `timeout` cycles at most. Completions of the program that come meanwhile are there
    /// when it polls. A member that fails meanwhile is dropped; one that is only taken to have failed is cut off from all.
    ///
    /// # Errors
    /// [`DrainError`]. `Command`: [`CommandError::Argument`] if a rank is 64 or more, `peer` is none of the group, or a drain of the same tag, context and peer
    /// hasn't ended and is of other messages or another group; `Refused` with `Busy` if two other drains are under way at
    /// the card; `NotFound` if the endpoint is closed.
    pub fn drain(&self, group: &Group, options: &DrainOptions) -> Result<Drained, DrainError> {
        let link = self.handle.link();
        let deadline = link.now().saturating_add(options.timeout);
        let part = group.part(|rank| options.peer.is_none_or(|peer| peer == rank));
        let highest = part.members().iter().map(|&(rank, _)| rank).max();
        if highest.max(Some(part.own_rank())) >= Some(MOST_RANKS) {
            return Err(CommandError::Argument("ranks of a drain are below 64").into());
        }
        if options.peer.is_some() && part.members().is_empty() {
            return Err(CommandError::Argument("the peer of a drain is of its group").into());
        }
        let tag = name(options, part.own_rank());
        let MessageSet { context, .. } = options.messages;
        let round = {
            let mut locked = self.handle.lock();
            let mut own = locked.own();
            if !own.is_open() {
                return Err(CommandError::NotFound.into());
            }
            let places = part.places(&mut own);
            own.hold_drain(tag, &options.messages, places)?
        };
        let mut swept = Swept::default();
        self.flush(&part, options, tag, deadline, &mut swept)?;
        self.begin_drain(&part, tag, context, round)?;
        let ended = self.agree(&part, options, tag, deadline, &mut swept);
        if let Ok(_) | Err(DrainError::CutOff) = ended {
            self.handle.lock().own().release_drain(tag, context, round);
        }
        let failed = ended?;
        Ok(Drained {
            round,
            failed: (0..MOST_RANKS)
                .filter(|rank| failed >> rank & 1 == 1)
                .collect(),
            swept,
        })
    }

    /// Until the program's own sends have been acknowledged or cancelled.
    fn flush(
        &self,
        group: &Group,
        options: &DrainOptions,
        tag: u32,
        deadline: u64,
        swept: &mut Swept,
    ) -> Result<(), DrainError> {
        let link = self.handle.link();
        let messages = &options.messages;
        let mut patience = match options.policy {
            DrainPolicy::Continue { patience } => Some(patience),
            DrainPolicy::Reset => None,
        };
        if patience.is_none() {
            self.sweep_once(group, messages, deadline, swept)?;
        }
        loop {
            // Armed before the look: what ends meanwhile interrupts.
            let armed = self.arm_for_completion()?;
            let now = link.now();
            let (pending, since) = {
                let mut locked = self.handle.lock();
                locked.core.set_aside(link);
                let mut own = locked.own();
                let pending = own.sends_under(group, messages);
                let since = own.pending_since(tag, messages.context, pending, now);
                (pending, since)
            };
            if pending == 0 || is_broken!(DrainsUnflushed) {
                return Ok(());
            }
            if now >= deadline {
                return Err(DrainError::TimedOut);
            }
            let patient = patience.map_or(u64::MAX, |patience| since.saturating_add(patience));
            if now >= patient {
                patience = None;
                self.sweep_once(group, messages, deadline, swept)?;
                continue;
            }
            self.pause_for_completion(armed, deadline.min(patient))?;
        }
    }

    fn sweep_once(
        &self,
        group: &Group,
        messages: &MessageSet,
        deadline: u64,
        swept: &mut Swept,
    ) -> Result<(), DrainError> {
        let left = deadline.saturating_sub(self.handle.link().now());
        let now = self.sweep(group, messages, Status::Cancelled, left)?;
        swept.receives += now.receives;
        swept.sends += now.sends;
        swept.messages += now.messages;
        Ok(())
    }

    fn begin_drain(
        &self,
        group: &Group,
        tag: u32,
        context: u16,
        round: u32,
    ) -> Result<(), CommandError> {
        let (mut commands, places) = self.commands_for(|own| {
            let mut places = [DRAIN_NOBODY; MOST_RANKS as usize];
            for &(rank, pair) in group.members() {
                places[rank as usize] = match own.pair_id(pair) {
                    Some(_) => pair.index as u8,
                    None => DRAIN_LOST,
                };
            }
            own.is_open().then_some(places)
        })?;
        let [p0, p1, p2, p3, p4, p5, p6, p7] = std::array::from_fn(|word| {
            u64::from_le_bytes(std::array::from_fn(|k| places[8 * word + k]))
        });
        let begin = mailbox::Drain {
            endpoint: self.handle.id(),
            tag,
            context: context.into(),
            round,
            rank: group.own_rank(),
            places0: p0,
            places1: p1,
            places2: p2,
            places3: p3,
            places4: p4,
            places5: p5,
            places6: p6,
            places7: p7,
        };
        let Nothing {} = commands.call(Command::Drain, &begin)?;
        Ok(())
    }

    /// Does what the firmware asks for until all agree. A bit for each rank that has failed.
    fn agree(
        &self,
        group: &Group,
        options: &DrainOptions,
        tag: u32,
        deadline: u64,
        swept: &mut Swept,
    ) -> Result<u64, DrainError> {
        let DrainOptions { messages, .. } = options;
        let drain = DrainName {
            endpoint: self.handle.id(),
            tag,
            context: messages.context.into(),
        };
        let read = || -> Result<DrainStatus, DrainError> {
            let (mut commands, ()) = self.commands_while_open()?;
            Ok(commands.call(Command::ReadDrain, &drain)?)
        };
        loop {
            // Each change that the host is waited for at raises an event.
            let news = self.look_until(deadline, || -> Result<_, DrainError> {
                let status = read()?;
                let state = u8::try_from(status.state).ok();
                match state.and_then(DrainState::from_code) {
                    Some(DrainState::Asked | DrainState::Flushed) => Ok(None),
                    Some(state) => Ok(Some((state, status.failed))),
                    None => {
                        let command = Command::ReadDrain;
                        let answer = status.state;
                        Err(CommandError::Malformed { command, answer }.into())
                    }
                }
            })?;
            match news {
                None => return Err(DrainError::TimedOut),
                Some((DrainState::Done, failed)) => {
                    // What they sent after the sweep, before they were cut off.
                    let lost = group.part(|rank| failed >> rank & 1 == 1);
                    self.sweep_once(&lost, messages, deadline, swept)?;
                    return Ok(failed);
                }
                Some((DrainState::CutOff, _)) => return Err(DrainError::CutOff),
                Some(_) => {
                    if !is_broken!(DrainsUnswept) {
                        self.sweep_once(group, messages, deadline, swept)?;
                    }
                    let (mut commands, ()) = self.commands_while_open()?;
                    let Nothing {} = commands.call(Command::DrainSwept, &drain)?;
                }
            }
        }
    }
}

impl DrainError {
    /// Whether the same call goes on with it, or may be taken later.
    pub fn is_transient(&self) -> bool {
        let busy = |error: &CommandError| {
            let status = match error {
                CommandError::Refused { status, .. } => Some(*status),
                _ => None,
            };
            status == Some(MailboxStatus::Busy)
        };
        match self {
            Self::TimedOut => true,
            Self::Sweep(error) => !matches!(error, SweepError::Closed | SweepError::Transport(_)),
            Self::Command(error) => busy(error),
            Self::CutOff => false,
        }
    }
}
