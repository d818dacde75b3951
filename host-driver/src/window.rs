//! Windows: memory that peers read and write by remote keys, while the program looks at it.
//!
//! ```text
//!  reg_window ──► Window ── grant, share ──► RemoteKey ──► the peer, by a message of the program's
//!                   │  ▲         │
//!      read, write, │  │         └── revoke, revoke_peer: answered when nothing of it can reach the memory any more
//!      load, store ◄┘  └── region.into_window(buffer)
//!                   └───── into_buffer ──► MemoryRegion, Buffer: when no key is left
//! ```
//!
//! What a peer may write at any moment is never a slice in safe Rust: a [`Window`] is read and written by atomic accesses. It becomes a
//! [`Buffer`] again when all its keys have been revoked and the card has said so.
//!
//! A key for one peer, or for those that share it, ends with the peer. One for any peer doesn't: what follows from that is in `protection.rs`.

use crate::domain::ProtectionDomain;
use crate::endpoint::Endpoint;
use crate::error::CommandError;
use crate::pair::Pair;
use crate::protection::{Exposure, Protection};
use crate::region::{Buffer, MemoryRegion};
use abi::control::{
    COVER_REGION, GRANT_ANY_PEER, GRANT_ONE_SHOT, GRANT_SHARED, RIGHT_LOCAL_READ,
    RIGHT_LOCAL_WRITE, RIGHT_REMOTE_ATOMIC, RIGHT_REMOTE_READ, RIGHT_REMOTE_WRITE,
};
use abi::key::remote_key_index;
use abi::mailbox::{self, Command, NO_PAIR, Nothing, Share};
use abi::times::GRANT_TICK;
use std::fmt;
use std::ops::RangeBounds;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

bitflags::bitflags! {
    /// What a peer may do.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct RemoteRights: u8 {
        /// Write: puts.
        const WRITE = RIGHT_REMOTE_WRITE;
        /// Read: gets.
        const READ = RIGHT_REMOTE_READ;
        /// Atomic operations.
        const ATOMIC = RIGHT_REMOTE_ATOMIC;
    }
}

/// By what a peer names a part of a window. Whoever may use it gets its bits, by a message of the program's.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RemoteKey(u64);

impl RemoteKey {
    /// The key that has these bits.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Its bits.
    pub const fn to_bits(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for RemoteKey {
    /// Says which key it is and not its tag, which is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteKey({})", abi::key::remote_key_index(self.0))
    }
}

/// Memory that peers may read and write, as far as it is granted to them.
///
/// It gives no slice, since a peer may write it at any moment:
///
/// ```compile_fail,E0608
/// # use host_driver::*;
/// # fn example(window: Window) {
/// let first: u8 = window[0];
/// # }
/// ```
///
/// What it had as a buffer it has no more while it is a window:
///
/// ```compile_fail,E0382
/// # use host_driver::*;
/// # fn example(region: MemoryRegion, buffer: Buffer) {
/// let window = region.into_window(buffer);
/// let first = buffer[0];
/// # }
/// ```
pub struct Window {
    region: MemoryRegion,
    /// All of the region. Its bytes aren't touched as a slice's.
    buffer: Buffer,
    /// Those that haven't been revoked by name.
    keys: Mutex<Vec<RemoteKey>>,
    /// The place of a key for one access is another key's: it has been used, and what it wrote may be on its way.
    outlived: AtomicBool,
    /// Those of them that are for any peer, and whose failure has made it unusable.
    exposure: Arc<Exposure>,
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Window({} bytes)", self.length())
    }
}

/// A window that didn't become a buffer: a key couldn't be revoked, or it is unusable.
#[derive(Debug, thiserror::Error)]
#[error("the window did not become a buffer: {error}")]
pub struct WindowHeld {
    /// The window, as it was.
    pub window: Window,
    /// Why.
    #[source]
    pub error: CommandError,
}

impl ProtectionDomain {
    /// Allocates and registers `length` bytes of zeroed memory that may be granted to peers with `rights`, and is the program's to read, write, send from
    /// and receive into.
    ///
    /// # Errors
    /// [`CommandError`]: `Argument` if `length` is 0; `Refused` with `Unsupported` on a card without
    /// [`Capabilities::GRANTS`](crate::Capabilities::GRANTS), with `NoResource` if it has no more regions.
    pub fn reg_window(&self, length: usize, rights: RemoteRights) -> Result<Window, CommandError> {
        let all = RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE | rights.bits();
        let (region, buffer) = MemoryRegion::register_with(self, length, all)?;
        Ok(Window::of(region, buffer))
    }
}

impl MemoryRegion {
    /// Makes a window of a region whose buffer is whole. What peers may do with it are the rights that it was registered with: for a region of
    /// [`reg_mr`](ProtectionDomain::reg_mr) none.
    ///
    /// # Errors
    /// Both, unchanged, if the buffer isn't the region's, or not all of it.
    pub fn into_window(self, buffer: Buffer) -> Result<Window, (Self, Buffer)> {
        match self.is_all(&buffer) {
            true => Ok(Window::of(self, buffer)),
            false => Err((self, buffer)),
        }
    }
}

impl Window {
    fn of(region: MemoryRegion, buffer: Buffer) -> Self {
        Self {
            exposure: region.domain().exposed.enter(),
            region,
            buffer,
            keys: Mutex::default(),
            outlived: AtomicBool::new(false),
        }
    }

    /// Key of its region, by which [`PeerRefusal`](crate::PeerRefusal) names it. No peer names it by that.
    pub fn region_key(&self) -> u32 {
        self.region.key()
    }

    /// Length in bytes.
    pub fn length(&self) -> usize {
        self.region.length()
    }

    /// The level of protection of its keys: the one that its device was opened with. At `PerSender` it is never [unusable](Self::check_usable).
    pub fn protection(&self) -> Protection {
        self.region.domain().device.protection()
    }

    fn keys(&self) -> MutexGuard<'_, Vec<RemoteKey>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn region(&self) -> &MemoryRegion {
        &self.region
    }

    // Who may use it.

    /// Lets the peer of a pair of `endpoint` use a part of the window, by a key that is of use to that peer alone, and only over this connection. It ends with
    /// [`revoke`](Self::revoke) or [`Endpoint::revoke_peer`], with the pair, and with the window.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open; `Argument` if the range isn't in the window; `Refused` with `NotConnected`, with `InvalidArgument`
    /// if the endpoint is of another domain or the window hasn't the rights, with `NoResource` if the card has no more keys, with `NoEntropy` if it can't
    /// make one.
    pub fn grant(
        &self,
        endpoint: &Endpoint,
        pair: Pair,
        rights: RemoteRights,
        range: impl RangeBounds<usize>,
    ) -> Result<RemoteKey, CommandError> {
        self.grant_as(endpoint, pair, rights, range, 0, 0)
    }

    /// As [`grant`](Self::grant), for a time: the key ends by itself at the latest after so many `cycles`, rounded up to a multiple of [`GRANT_TICK`](crate::GRANT_TICK), and up to as much before. From
    /// then on the card allows nothing by it, whatever its firmware and this program do. What it has allowed before may be under way: [`revoke`](Self::revoke)
    /// waits for that, and gives the place on the card back.
    ///
    /// # Errors
    /// As for [`grant`](Self::grant); `Argument` for no time at all, or more than 2^46 - 2^14 cycles.
    pub fn grant_for(
        &self,
        endpoint: &Endpoint,
        pair: Pair,
        rights: RemoteRights,
        range: impl RangeBounds<usize>,
        cycles: u64,
    ) -> Result<RemoteKey, CommandError> {
        match u32::try_from(cycles.div_ceil(GRANT_TICK.into())) {
            Ok(lasts @ 1..) => self.grant_as(endpoint, pair, rights, range, 0, lasts),
            _ => Err(CommandError::Argument(
                "a grant lasts from 1 to 2^46 - 2^14 cycles",
            )),
        }
    }

    /// As [`grant`](Self::grant), for one access: the key ends with the first that the card allows, and its place on the card is free then. The card has places
    /// of their own for such keys, and its gates make them. It isn't for reading: a get whose answer is lost is asked for again, and would find its key ended.
    ///
    /// # Errors
    /// As for [`grant`](Self::grant); `Refused` with `NoResource` if all these places have keys that weren't used; `Argument` if `rights` has [`READ`](RemoteRights::READ).
    pub fn grant_once(
        &self,
        endpoint: &Endpoint,
        pair: Pair,
        rights: RemoteRights,
        range: impl RangeBounds<usize>,
    ) -> Result<RemoteKey, CommandError> {
        if rights.contains(RemoteRights::READ) {
            return Err(CommandError::Argument(
                "a key for one access isn't for reading: a get is asked for again until it is answered",
            ));
        }
        self.grant_as(endpoint, pair, rights, range, GRANT_ONE_SHOT, 0)
    }

    /// Makes a key for many peers, of which this is the first; [`share`](Self::share) lets more use it. One key and a bit for each peer, in place of a key for
    /// each: for as many peers as a pair table holds.
    ///
    /// # Errors
    /// As for [`grant`](Self::grant).
    pub fn grant_shared(
        &self,
        endpoint: &Endpoint,
        first: Pair,
        rights: RemoteRights,
        range: impl RangeBounds<usize>,
    ) -> Result<RemoteKey, CommandError> {
        self.grant_as(endpoint, first, rights, range, GRANT_SHARED, 0)
    }

    /// Makes one key for every peer that is connected to an endpoint of the window's domain, now or later: one command, however many they are. The card can't
    /// tell whose it is. So when one of these peers fails the window is [unusable](Self::check_usable), unless the key is only for reading.
    ///
    /// # Errors
    /// As for [`grant`](Self::grant); `Argument` on a device that was opened with [`Protection::PerSender`] and provides it.
    pub fn grant_any(
        &self,
        rights: RemoteRights,
        range: impl RangeBounds<usize>,
    ) -> Result<RemoteKey, CommandError> {
        if self.protection() == Protection::PerSender {
            return Err(CommandError::Argument(
                "the device was opened so that each key is for one peer, or shared",
            ));
        }
        let (offset, length) = self.part(range)?;
        // Who has failed by now has no key that is made now.
        self.region.domain().look_for_failures()?;
        self.exposure.check()?;
        let may_write = rights.intersects(RemoteRights::WRITE | RemoteRights::ATOMIC);
        if may_write {
            self.exposure.begin();
        }
        let granted = self.region.commands().and_then(|mut commands| {
            let argument = mailbox::Grant {
                region: self.region.key(),
                pair: NO_PAIR,
                rights: rights.bits().into(),
                flags: GRANT_ANY_PEER.into(),
                offset,
                length,
                lasts: 0,
            };
            let mailbox::RemoteKey { key } = commands.call(Command::Grant, &argument)?;
            Ok(RemoteKey(key))
        });
        if may_write {
            self.exposure.made(granted.as_ref().ok().copied());
        }
        self.keys().extend(granted.as_ref().ok());
        granted
    }

    /// Offset and length of a part.
    fn part(&self, range: impl RangeBounds<usize>) -> Result<(u64, u64), CommandError> {
        let part = self.region.part(range);
        part.ok_or(CommandError::Argument("a grant is a part of the window"))
    }

    fn grant_as(
        &self,
        endpoint: &Endpoint,
        pair: Pair,
        rights: RemoteRights,
        range: impl RangeBounds<usize>,
        flags: u8,
        lasts: u32,
    ) -> Result<RemoteKey, CommandError> {
        let (offset, length) = self.part(range)?;
        self.exposure.check()?;
        let (mut commands, pair) = endpoint.commands_for(|own| own.pair_id(pair))?;
        let argument = mailbox::Grant {
            region: self.region.key(),
            pair,
            rights: rights.bits().into(),
            flags: flags.into(),
            offset,
            length,
            lasts,
        };
        let mailbox::RemoteKey { key } = commands.call(Command::Grant, &argument)?;
        let mut keys = self.keys();
        let before = keys.len();
        keys.retain(|held| remote_key_index(held.0) != remote_key_index(key));
        if keys.len() < before {
            self.outlived.store(true, Ordering::Relaxed);
        }
        keys.push(RemoteKey(key));
        Ok(RemoteKey(key))
    }

    /// Lets the peer of one more pair use a key of [`grant_shared`](Self::grant_shared), or, with `allowed` false, doesn't any more: then nothing of that
    /// peer's by this key can reach the memory when this returns.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open; `Refused` with `NotFound` if there is no such key, with `InvalidArgument` if it isn't shared or the
    /// endpoint is of another domain, with `NotConnected`.
    pub fn share(
        &self,
        key: RemoteKey,
        endpoint: &Endpoint,
        pair: Pair,
        allowed: bool,
    ) -> Result<(), CommandError> {
        let (mut commands, pair) = endpoint.commands_for(|own| own.pair_id(pair))?;
        let share = Share {
            key: key.0,
            pair,
            allowed: allowed.into(),
        };
        let Nothing {} = commands.call(Command::Share, &share)?;
        Ok(())
    }

    /// Revokes a key. When this returns, nothing that it allowed can reach the memory any more; of the other keys nothing is changed. One that has ended
    /// already is revoked.
    ///
    /// # Errors
    /// [`CommandError`]. The key may be in use as before, or not.
    pub fn revoke(&self, key: RemoteKey) -> Result<(), CommandError> {
        if self.exposure.has(key) {
            // Who has failed by now could write by it.
            self.region.domain().look_for_failures()?;
        }
        let revoked = {
            let mut commands = self.region.commands()?;
            let key = mailbox::RemoteKey { key: key.0 };
            commands.call::<_, Nothing>(Command::Revoke, &key)
        };
        match revoked {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
        self.keys().retain(|held| *held != key);
        self.exposure.end(key);
        Ok(())
    }

    /// Revokes all keys that are left, so that the memory is the program's alone again.
    ///
    /// # Errors
    /// [`WindowHeld`], with the window, if one couldn't be revoked; with [`CommandError::BufferUnusable`] if it is unusable.
    pub fn into_buffer(self) -> Result<(MemoryRegion, Buffer), Box<WindowHeld>> {
        let ended = loop {
            let Some(key) = self.keys().last().copied() else {
                break self.exposure.check().and_then(|()| self.settle());
            };
            if let Err(error) = self.revoke(key) {
                break Err(error);
            }
        };
        match ended {
            Ok(()) => Ok((self.region, self.buffer)),
            Err(error) => Err(Box::new(WindowHeld {
                window: self,
                error,
            })),
        }
    }

    /// Waits for what was written by keys for one access that the program has not revoked.
    fn settle(&self) -> Result<(), CommandError> {
        if self.outlived.load(Ordering::Relaxed) {
            let fence = mailbox::Fence {
                domain: self.region.domain().id.domain,
                covers: COVER_REGION.into(),
                region: self.region.key(),
                ..mailbox::Fence::default()
            };
            let Nothing {} = self.region.commands()?.call(Command::Fence, &fence)?;
            self.outlived.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    // What is below protection for each sender.

    /// Whether the window may be used: not if the peer of a pair has failed while there was a [key for any](Self::grant_any) by which it could write it. The
    /// card is asked, so it doesn't matter whether the program has taken an event of the failure, or the card has lost it. It stays so until the program
    /// [acknowledges](Self::acknowledge_failures) it.
    ///
    /// # Errors
    /// [`CommandError::BufferUnusable`]; others if the card doesn't answer, which tell nothing.
    pub fn check_usable(&self) -> Result<(), CommandError> {
        if !self.exposure.keys().is_empty() {
            self.region.domain().look_for_failures()?;
        }
        self.exposure.check()
    }

    /// Whose failure has made it unusable, as far as the library has heard by an event or a command. Asks nobody. A pair may have been closed since.
    pub fn failed_writers(&self) -> Vec<Pair> {
        self.exposure.failed()
    }

    /// Revokes the keys for any, those of the peers that live too, and makes the window usable again: when this returns nothing by these keys can reach the
    /// memory any more. What is in it may be anything. Returns whose failure had made it unusable.
    ///
    /// # Errors
    /// As for [`revoke`](Self::revoke); it is as unusable as before then.
    pub fn acknowledge_failures(&self) -> Result<Vec<Pair>, CommandError> {
        for key in self.exposure.keys() {
            if !is_broken!(AcknowledgesUnrevoked) {
                self.revoke(key)?;
            }
        }
        let failed = self.exposure.failed();
        self.exposure.unmark(&failed);
        Ok(failed)
    }

    // Its bytes.

    fn byte(&self, at: usize) -> &AtomicU8 {
        self.buffer.atomic(at)
    }

    /// Copies bytes out, each as it is at some moment of the copy: what a peer writes meanwhile may be there in part.
    ///
    /// # Panics
    /// If they aren't in the window.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        assert!(
            offset <= self.length() && bytes.len() <= self.length() - offset,
            "read past the end of the window"
        );
        for (k, byte) in bytes.iter_mut().enumerate() {
            *byte = self.byte(offset + k).load(Ordering::Relaxed);
        }
    }

    /// Copies bytes in, one after the other.
    ///
    /// # Panics
    /// If they wouldn't be in the window.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(
            offset <= self.length() && bytes.len() <= self.length() - offset,
            "write past the end of the window"
        );
        for (k, byte) in bytes.iter().enumerate() {
            self.byte(offset + k).store(*byte, Ordering::Relaxed);
        }
    }

    /// The aligned word of eight bytes at `offset`: what is read later is as new as it, at least.
    ///
    /// # Panics
    /// If it isn't in the window, or `offset` no multiple of eight.
    pub fn load(&self, offset: usize) -> u64 {
        u64::from_le(self.word(offset).load(Ordering::Acquire))
    }

    /// Writes the aligned word of eight bytes at `offset`, behind what was written before.
    ///
    /// # Panics
    /// As [`load`](Self::load) does.
    pub fn store(&self, offset: usize, word: u64) {
        self.word(offset).store(word.to_le(), Ordering::Release);
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(
            offset.is_multiple_of(8) && offset < self.length() && 8 <= self.length() - offset,
            "not an aligned word of the window"
        );
        self.buffer.atomic_word(offset)
    }
}

impl Endpoint {
    /// Revokes all keys of the peer of a pair, in one step, however many there are. When this returns, nothing that they allowed can reach memory any more.
    /// A key for any peer ([`grant_any`](Window::grant_any)) is nobody's, and stays good for this peer too, until it is revoked.
    /// Other peers go on, and so do the messages of this one. Keys may be granted anew.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open; `Refused` with `Unsupported`, or with `HardwareTimeout`: then
    /// the keys end all the same, one after the other, as soon as the gates answer.
    pub fn revoke_peer(&self, pair: Pair) -> Result<(), CommandError> {
        let (mut commands, pair) = self.commands_for(|own| own.pair_id(pair))?;
        let Nothing {} = commands.call(Command::RevokePeer, &mailbox::Pair { pair })?;
        Ok(())
    }
}
