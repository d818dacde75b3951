//! What a rank of a soak does past the messages of its peers: it puts into their windows and gets from them, and signals to them.
//!
//! ```text
//!  window of each rank:  │gap│ part of rank 0 │gap│ part of rank 1 │gap│ …
//!                               ▲ puts, gets: what is there follows from its key's `Plan`
//!  puts ahead ──► in order; one that would write what a get outstanding reads waits for it
//! ```
//!
//! The owner looks at its window when all puts have completed: each part is as its plan says, what is between them as it was at first. The part of a peer that has
//! failed is as it was when the failure was told.

use std::ops::Range;

use host_driver::{
    Access as Rights, Buffer, CommandError, Get, ProtectionDomain, Put, Refused, RemoteKey,
    RemoteRights, WcStatus, Window, WorkCompletion,
};

use abi::status::MailboxStatus;

use super::super::part::{Access, Kind, PART, Plan, first_wrong, part_of, window_bytes};
use super::{Asked, Failure, Worker, mix, wrong};
use crate::replay::Wireup;

/// Puts and gets of a rank that may be outstanding to each peer.
const ACCESSES: usize = 3;
/// Cycles from one signal to a peer to the next, or to the next try. The command alone takes the firmware some 10,000, in which the rank does nothing else.
const SIGNAL_PAUSE: u64 = 20_000;
/// What the buffer of a get has before it is posted.
const UNREAD: u8 = 0x5a;

/// A rank's puts, gets and signals to one peer, and that peer's to it, over the present connection.
#[derive(Default)]
pub(super) struct Remote {
    /// Key for the peer's window, by which it is accessed and what there is in it.
    theirs: Option<(RemoteKey, Plan)>,
    /// What the part of the peer's window has behind all puts that have been posted.
    written: Vec<u8>,
    /// What the peer does with its part of the window here.
    ours: Option<Plan>,
    /// Puts and gets that each makes of the other's window.
    pub(super) accesses: u64,
    /// Those that have been posted, and how many are outstanding.
    posted: u64,
    outstanding: usize,
    /// What gets that are outstanding read.
    read: Vec<Range<usize>>,
    /// Signals that each sends the other.
    pub(super) signals: u64,
    /// Those that the card has taken, and those that have come.
    signalled: u64,
    came: u64,
    /// Before that cycle none is tried.
    signal_at: u64,
    /// The peer's part when it was found to have failed.
    kept: Option<Vec<u8>>,
}

impl Remote {
    fn may_signal(&self) -> bool {
        self.theirs.is_some() && self.signalled < self.signals
    }

    /// Whether something has still to be posted, to be given to the card or to come.
    fn has_more(&self) -> bool {
        self.posted < self.accesses || self.may_signal() || self.came < self.signals
    }
}

/// A window with a part for each rank.
pub(super) fn window(pd: &ProtectionDomain, ranks: usize) -> Result<Window, CommandError> {
    let rights = RemoteRights::WRITE | RemoteRights::READ;
    let window = pd.reg_window(window_bytes(ranks), rights)?;
    window.write(0, &ground(window.length()));
    Ok(window)
}

/// What a window has where nobody has been granted anything.
fn ground(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| mix(at) as u8).collect()
}

/// Buffers of puts and gets.
pub(super) fn slots(pd: &ProtectionDomain, ranks: usize) -> Result<Vec<Buffer>, CommandError> {
    let count = ACCESSES * ranks;
    let (_, mut memory) = pd.reg_mr(count * PART, Rights::ReadWrite)?;
    Ok((0..count).map(|_| memory.split_to(PART)).collect())
}

impl Worker {
    /// Grants each of these ranks its part of the window, filled anew, and takes their keys.
    pub(super) fn exchange_keys(
        &mut self,
        wireup: &dyn Wireup,
        ranks: &[usize],
    ) -> Result<(), Failure> {
        let mut keys = Vec::new();
        for &rank in ranks {
            let Some(pair) = self.peers[rank].pair else {
                continue;
            };
            let part = part_of(rank);
            let rights = RemoteRights::WRITE | RemoteRights::READ;
            let key = self
                .window
                .grant(&self.endpoint, pair, rights, part.clone())?;
            let plan = Plan::of(key);
            self.window.write(part.start, &plan.blank());
            self.peers[rank].remote.ours = Some(plan);
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&key.to_bits().to_le_bytes());
            keys.push((rank, bytes));
        }
        for (rank, bytes) in wireup.exchange(&keys)? {
            let bits = bytes.first_chunk().expect("32 bytes have eight");
            let key = RemoteKey::from_bits(u64::from_le_bytes(*bits));
            let plan = Plan::of(key);
            let remote = &mut self.peers[rank].remote;
            (remote.theirs, remote.written) = (Some((key, plan)), plan.blank());
        }
        Ok(())
    }

    /// Whether anything of a peer that lives isn't posted, hasn't been taken by the card, or hasn't come.
    pub(super) fn has_more_of_remote(&self) -> bool {
        self.alive().any(|(_, peer)| peer.remote.has_more())
    }

    /// Whether a signal waits for the one before it.
    pub(super) fn has_signals_to_send(&self) -> bool {
        self.alive().any(|(_, peer)| peer.remote.may_signal())
    }

    /// What is missing, in words.
    pub(super) fn waits_for_remote(&self) -> Vec<String> {
        let waits = self.alive().filter(|(_, peer)| peer.remote.has_more());
        let words = waits.map(|(rank, peer)| {
            let Remote {
                accesses,
                posted,
                signals,
                signalled,
                came,
                ..
            } = peer.remote;
            format!(
                "rank {rank}: {posted} of {accesses} accesses posted, {signalled} of {signals} signals sent, {came} came"
            )
        });
        words.collect()
    }

    /// Posts what there is room for of puts and gets, and a signal if one may be under way.
    pub(super) fn post_remote(&mut self, rank: usize) -> Result<(), Failure> {
        while self.peers[rank].remote.outstanding < ACCESSES && self.access(rank)? {}
        let remote = &self.peers[rank].remote;
        if remote.may_signal() && self.now() >= remote.signal_at {
            self.signal(rank)?;
        }
        Ok(())
    }

    /// Posts the next put or get. False if there is none, or no room, or it has to wait.
    fn access(&mut self, rank: usize) -> Result<bool, Failure> {
        let peer = &self.peers[rank];
        let remote = &peer.remote;
        let (Some(pair), Some((key, plan))) = (peer.pair, remote.theirs) else {
            return Ok(false);
        };
        let number = remote.posted;
        let Access { kind, range } = plan.access(number);
        // A get whose answer is lost reads what is there when it is asked for again.
        let waits = |read: &Range<usize>| {
            kind == Kind::Put && read.start < range.end && range.start < read.end
        };
        if number == remote.accesses || remote.read.iter().any(waits) {
            return Ok(false);
        }
        let Some(mut rest) = self.long_slots.pop() else {
            return Ok(false);
        };
        rest.fill(UNREAD);
        let mut buffer = rest.split_to(range.len());
        let offset = (part_of(self.rank).start + range.start) as u64;
        let name = self.next;
        let posted = match kind {
            Kind::Put => {
                plan.fill(number, &mut buffer);
                let put = Put { pair, key, offset };
                self.endpoint.post_put(name, &put, buffer)
            }
            Kind::Get => {
                let get = Get { pair, key, offset };
                self.endpoint.post_get(name, &get, buffer)
            }
        };
        match posted {
            Ok(_) => {
                self.next += 1;
                self.rests.insert(name, rest);
                let asked = Asked::Access { peer: rank, number };
                self.asked.insert(name, asked);
                let remote = &mut self.peers[rank].remote;
                remote.posted += 1;
                remote.outstanding += 1;
                match kind {
                    Kind::Put => plan.apply(number, &mut remote.written),
                    Kind::Get => remote.read.push(range),
                }
                Ok(true)
            }
            Err(Refused { error, mut buffer }) => {
                self.join(&mut buffer, rest)?;
                self.long_slots.push(buffer);
                self.refused(error)
            }
        }
    }

    /// A put or a get has completed.
    pub(super) fn accessed(
        &mut self,
        rank: usize,
        number: u64,
        completion: WorkCompletion,
    ) -> Result<(), Failure> {
        let WorkCompletion {
            wr_id,
            status,
            length,
            buffer,
            ..
        } = completion;
        let (Some(mut buffer), Some(rest)) = (buffer, self.rests.remove(&wr_id)) else {
            return wrong("a put or a get completes without its buffer");
        };
        let remote = &mut self.peers[rank].remote;
        remote.outstanding -= 1;
        let Some((_, plan)) = remote.theirs else {
            return wrong("an access completes by a key that there isn't");
        };
        let Access { kind, range } = plan.access(number);
        match status {
            WcStatus::Success if length != range.len() as u64 => {
                return wrong(format!(
                    "access {number} to rank {rank} has length {length} in place of {}",
                    range.len()
                ));
            }
            WcStatus::Success if kind == Kind::Put => {
                self.tally.puts += 1;
                self.tally.put_bytes += length;
            }
            WcStatus::Success => {
                if let Some((at, is, has_to_be)) =
                    first_wrong(&buffer, &remote.written[range.clone()])
                {
                    return wrong(format!(
                        "byte {at} of get {number} of rank {rank}, of bytes {range:?} of its part, is {is:#04x} in place of {has_to_be:#04x}"
                    ));
                }
                self.tally.gets += 1;
                self.tally.get_bytes += length;
            }
            WcStatus::PeerFailed | WcStatus::LinkError | WcStatus::PeerClosed => {
                let expected = &remote.written[range.clone()];
                let mut both = buffer.iter().zip(expected);
                if kind == Kind::Get && both.any(|(is, read)| ![*read, UNREAD].contains(is)) {
                    return wrong(format!(
                        "get {number} of rank {rank}, which failed, has bytes that were never there"
                    ));
                }
                self.fails(rank, &status)?;
            }
            other => {
                return wrong(format!("access {number} to rank {rank} ends with {other}"));
            }
        }
        if let Some(at) = rest.iter().position(|&byte| byte != UNREAD) {
            return wrong(format!(
                "byte {at} behind the buffer of access {number} to rank {rank} was written"
            ));
        }
        let read = &mut self.peers[rank].remote.read;
        if kind == Kind::Get
            && let Some(at) = read.iter().position(|read| *read == range)
        {
            read.remove(at);
        }
        self.join(&mut buffer, rest)?;
        self.long_slots.push(buffer);
        Ok(())
    }

    /// Gives the card the next signal to a peer, unless the one before it is still under way.
    fn signal(&mut self, rank: usize) -> Result<(), Failure> {
        let peer = &self.peers[rank];
        let (Some(pair), Some((_, plan))) = (peer.pair, peer.remote.theirs) else {
            return Ok(());
        };
        let word = plan.signal(peer.remote.signalled);
        match self.endpoint.signal(pair, word) {
            Ok(()) => self.peers[rank].remote.signalled += 1,
            Err(CommandError::Refused {
                status: MailboxStatus::Busy,
                ..
            }) => {}
            Err(CommandError::Refused { status, .. }) if status == MailboxStatus::NotConnected => {
                return self.fails(rank, &status);
            }
            Err(error) => return Err(error.into()),
        }
        self.peers[rank].remote.signal_at = self.now() + SIGNAL_PAUSE;
        Ok(())
    }

    /// A signal has come.
    pub(super) fn signalled(&mut self, rank: usize, word: u64) -> Result<(), Failure> {
        let remote = &mut self.peers[rank].remote;
        let number = remote.came;
        let due = remote.ours.filter(|_| number < remote.signals);
        match due.map(|plan| plan.signal(number)) {
            Some(due) if due == word => {}
            _ => {
                let is = remote
                    .ours
                    .and_then(|plan| (0..remote.signals).find(|&other| plan.signal(other) == word));
                return wrong(match is {
                    Some(is) => format!("signal {is} of rank {rank} where {number} was due"),
                    None => format!("rank {rank} signals {word:#x}, which it has never sent"),
                });
            }
        }
        remote.came += 1;
        self.tally.signals += 1;
        self.last = self.now();
        Ok(())
    }

    /// Keeps what a peer has written when it is found to have failed: from now on it writes nothing.
    pub(super) fn keep_part(&mut self, rank: usize) {
        let mut bytes = vec![0; PART];
        self.window.read(part_of(rank).start, &mut bytes);
        self.peers[rank].remote.kept = Some(bytes);
    }

    /// Looks at the whole window, when nobody puts into it any more.
    ///
    /// # Errors
    /// If it isn't as it has to be.
    pub fn check_window(&self) -> Result<(), Failure> {
        let mut bytes = vec![0; self.window.length()];
        self.window.read(0, &mut bytes);
        let mut has_to_be = ground(bytes.len());
        for (rank, peer) in self.peers.iter().enumerate() {
            let (remote, part) = (&peer.remote, part_of(rank));
            let Some(plan) = remote.ours else { continue };
            has_to_be[part.clone()].copy_from_slice(&match &remote.kept {
                None => plan.after(remote.accesses),
                Some(kept) if plan.may_end_as(remote.accesses, kept) => kept.clone(),
                Some(_) => {
                    return wrong(format!(
                        "the part of rank {rank}, which has failed, is as no puts of it can have left it"
                    ));
                }
            });
            if let Some((at, is, has_to_be)) = first_wrong(&bytes[part.clone()], &has_to_be[part]) {
                return wrong(format!(
                    "byte {at} of the part of rank {rank} is {is:#04x} in place of {has_to_be:#04x}"
                ));
            }
        }
        match first_wrong(&bytes, &has_to_be) {
            None => Ok(()),
            Some((at, is, has_to_be)) => wrong(format!(
                "byte {at} of the window, which is in nobody's part, is {is:#04x} in place of {has_to_be:#04x}"
            )),
        }
    }
}
