//! Registered memory and the buffers that it is cut into.
//!
//! ```text
//!  region  ├───────────────────────────────────┤   one allocation, one key
//!  buffers ├── a ──┤├──── b ────┤├───── c ─────┤   disjoint, each owned by somebody: the
//!                                                  application, or a request that is in flight
//! ```
//!
//! Who owns a [`Buffer`] is the only one to access its bytes, so the application reads and writes them
//! as an ordinary slice, and the card does while the buffer is inside a request. The region is
//! deregistered when the last buffer and the [`MemoryRegion`] itself are gone, and freed when the card has said that it has forgotten it.

use crate::commands::{Commands, Release};
use crate::domain::{Domain, ProtectionDomain};
use crate::error::CommandError;
use crate::memory::{HostMemory, Owner};
use crate::shared::SharedBuffer;
use abi::control::{RIGHT_LOCAL_READ, RIGHT_LOCAL_WRITE};
use abi::limits::FLAT_SPACE;
use abi::mailbox::{Command, RegionKey, RegisterRegion};
use std::fmt;
use std::ops::{Bound, Deref, DerefMut, RangeBounds};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64};

/// What the card may do with a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Sends from it.
    Read,
    /// Receives into it.
    Write,
    /// Both.
    ReadWrite,
}

impl Access {
    fn rights(self) -> u8 {
        match self {
            Self::Read => RIGHT_LOCAL_READ,
            Self::Write => RIGHT_LOCAL_WRITE,
            Self::ReadWrite => RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE,
        }
    }
}

const EMPTY: CommandError = CommandError::Argument("a region has at least one byte");

/// A region on a card.
struct Region {
    memory: Arc<HostMemory>,
    key: RegionKey,
    domain: Arc<Domain>,
}

impl Drop for Region {
    fn drop(&mut self) {
        self.domain.device.card.release(Release::Object {
            close: Command::DeregisterRegion,
            id: self.key.key,
            memory: vec![Arc::clone(&self.memory)],
        });
    }
}

/// Memory registered with a card.
pub struct MemoryRegion {
    inner: Arc<Region>,
}

/// A region can't be deregistered: buffers of it are held or in flight. It is given back.
#[derive(thiserror::Error)]
#[error("buffers of the region are still held or in flight")]
pub struct RegionInUse(pub MemoryRegion);

impl fmt::Debug for RegionInUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegionInUse")
    }
}

impl MemoryRegion {
    pub(crate) fn register(
        pd: &ProtectionDomain,
        length: usize,
        access: Access,
    ) -> Result<(Self, Buffer), CommandError> {
        Self::register_with(pd, length, access.rights())
    }

    /// The same, with rights by their bits.
    pub(crate) fn register_with(
        pd: &ProtectionDomain,
        length: usize,
        rights: u8,
    ) -> Result<(Self, Buffer), CommandError> {
        if length == 0 {
            return Err(EMPTY);
        }
        let memory = HostMemory::new(&pd.device().card.link, length)?;
        Self::register_memory(pd, memory, rights)
    }

    pub(crate) fn register_owned<O: AsMut<[u8]> + Send + 'static>(
        pd: &ProtectionDomain,
        owner: O,
        access: Access,
    ) -> Result<(Self, Buffer), CommandError> {
        let (owner, bytes) = Owner::new(owner);
        if bytes.is_empty() {
            // SAFETY: nobody else knows the bytes.
            unsafe { owner.end() };
            return Err(EMPTY);
        }
        let memory = HostMemory::of_program(&pd.device().card.link, owner, bytes)?;
        Self::register_memory(pd, memory, access.rights())
    }

    fn register_memory(
        pd: &ProtectionDomain,
        memory: HostMemory,
        rights: u8,
    ) -> Result<(Self, Buffer), CommandError> {
        let domain = Arc::clone(&pd.inner);
        let length = memory.length();
        let memory = Arc::new(memory);
        let argument = RegisterRegion {
            domain: domain.id.domain,
            rights: rights.into(),
            address: memory.address(),
            length: length as u64,
            space: FLAT_SPACE.into(),
        };
        let mut commands = domain.device.commands()?;
        let close = Command::DeregisterRegion;
        let key = commands.open(Command::RegisterRegion, &argument, close, &[&memory])?;
        drop(commands);
        let inner = Arc::new(Region {
            memory,
            key,
            domain,
        });
        let whole = Buffer {
            region: Some(Arc::clone(&inner)),
            offset: 0,
            length,
        };
        Ok((Self { inner }, whole))
    }

    /// Length in bytes.
    pub fn length(&self) -> usize {
        self.inner.memory.length()
    }

    /// The key by which work requests name the region.
    pub fn key(&self) -> u32 {
        self.inner.key.key
    }

    /// Whether a buffer is all of the region.
    pub(crate) fn is_all(&self, buffer: &Buffer) -> bool {
        let same = |region: &Arc<Region>| Arc::ptr_eq(region, &self.inner);
        buffer.region.as_ref().is_some_and(same) && buffer.length == self.length()
    }

    /// Card address of its first byte.
    pub(crate) fn address(&self) -> u64 {
        self.inner.memory.address()
    }

    /// Offset and length of a part of at least one byte; none if it isn't in the region.
    pub(crate) fn part(&self, range: impl RangeBounds<usize>) -> Option<(u64, u64)> {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.checked_add(1)?,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.checked_add(1)?,
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.length(),
        };
        let within = start < end && end <= self.length();
        within.then_some((start as u64, (end - start) as u64))
    }

    /// The domain that it is of.
    pub(crate) fn domain(&self) -> &Arc<Domain> {
        &self.inner.domain
    }

    /// The command channel of its card.
    pub(crate) fn commands(&self) -> Result<Commands<'_>, CommandError> {
        self.inner.domain.device.commands()
    }

    /// Deregisters and frees the region.
    ///
    /// # Errors
    /// [`RegionInUse`], with the region, while a buffer of it is held or in flight.
    pub fn deregister(self) -> Result<(), RegionInUse> {
        match Arc::try_unwrap(self.inner) {
            Ok(_region) => Ok(()),
            Err(inner) => Err(RegionInUse(Self { inner })),
        }
    }
}

/// Some bytes of a region, owned: a slice of bytes that can be handed to the card.
///
/// # What the compiler refuses
/// A post takes the buffer, and the completion brings it back:
///
/// ```no_run
/// # use host_driver::*;
/// # fn example(endpoint: &Endpoint, receive: &TaggedReceive, buffer: Buffer) -> Result<(), Box<dyn std::error::Error>> {
/// endpoint.post_tagged_recv(1, receive, buffer)?;
/// let completion = endpoint.completion_queue().wait(1_000_000)?;
/// let mut buffer = completion.buffer.expect("as posted");
/// buffer[0] += 1;
/// # Ok(()) }
/// ```
///
/// In between it can't be read,
///
/// ```compile_fail,E0382
/// # use host_driver::*;
/// # fn example(endpoint: &Endpoint, receive: &TaggedReceive, buffer: Buffer) -> Result<(), Box<dyn std::error::Error>> {
/// endpoint.post_tagged_recv(1, receive, buffer)?;
/// let first = buffer[0];
/// # Ok(()) }
/// ```
///
/// or written,
///
/// ```compile_fail,E0382
/// # use host_driver::*;
/// # fn example(endpoint: &Endpoint, receive: &TaggedReceive, mut buffer: Buffer) -> Result<(), Box<dyn std::error::Error>> {
/// endpoint.post_tagged_recv(1, receive, buffer)?;
/// buffer[0] += 1;
/// # Ok(()) }
/// ```
///
/// or given to a second request,
///
/// ```compile_fail,E0382
/// # use host_driver::*;
/// # fn example(endpoint: &Endpoint, receive: &TaggedReceive, buffer: Buffer) -> Result<(), Box<dyn std::error::Error>> {
/// endpoint.post_tagged_recv(1, receive, buffer)?;
/// endpoint.post_tagged_recv(2, receive, buffer)?;
/// # Ok(()) }
/// ```
///
/// or freed,
///
/// ```compile_fail,E0382
/// # use host_driver::*;
/// # fn example(endpoint: &Endpoint, receive: &TaggedReceive, buffer: Buffer) -> Result<(), Box<dyn std::error::Error>> {
/// endpoint.post_tagged_recv(1, receive, buffer)?;
/// drop(buffer);
/// # Ok(()) }
/// ```
///
/// or seen through a slice that was borrowed before, whether of the whole
///
/// ```compile_fail,E0505
/// # use host_driver::*;
/// # fn example(endpoint: &Endpoint, receive: &TaggedReceive, buffer: Buffer) -> Result<(), Box<dyn std::error::Error>> {
/// let bytes = &buffer[..];
/// endpoint.post_tagged_recv(1, receive, buffer)?;
/// let first = bytes[0];
/// # Ok(()) }
/// ```
///
/// or of a part that is split off and posted.
///
/// ```compile_fail,E0502
/// # use host_driver::*;
/// # fn example(endpoint: &Endpoint, receive: &TaggedReceive, mut buffer: Buffer) -> Result<(), Box<dyn std::error::Error>> {
/// let bytes = &buffer[..];
/// endpoint.post_tagged_recv(1, receive, buffer.split_to(8))?;
/// let first = bytes[0];
/// # Ok(()) }
/// ```
///
/// The same goes for the bytes of a completion whose buffer is posted again:
///
/// ```compile_fail,E0505
/// # use host_driver::*;
/// # fn example(endpoint: &Endpoint, receive: &TaggedReceive) -> Result<(), Box<dyn std::error::Error>> {
/// let completion = endpoint.completion_queue().wait(1_000_000)?;
/// let bytes = completion.received();
/// endpoint.post_tagged_recv(2, receive, completion.buffer.expect("as posted"))?;
/// let first = bytes[0];
/// # Ok(()) }
/// ```
///
/// There is no second owner: a buffer can't be cloned.
///
/// ```compile_fail,E0277
/// # use host_driver::*;
/// # fn example(buffer: Buffer) -> Result<(), Box<dyn std::error::Error>> {
/// fn duplicate<T: Clone>(original: &T) -> T {
///     original.clone()
/// }
/// let twin: Buffer = duplicate(&buffer);
/// # Ok(()) }
/// ```
pub struct Buffer {
    /// None only if the buffer is empty.
    region: Option<Arc<Region>>,
    offset: usize,
    length: usize,
}

impl Buffer {
    /// A buffer without bytes, for messages without payload.
    pub const fn empty() -> Self {
        Self {
            region: None,
            offset: 0,
            length: 0,
        }
    }

    /// Splits off the first `at` bytes and returns them; the buffer keeps the rest.
    ///
    /// # Panics
    /// If `at` is more than the buffer's length.
    #[must_use]
    pub fn split_to(&mut self, at: usize) -> Self {
        assert!(at <= self.length, "split past the end of the buffer");
        let front = Self {
            region: self.region.clone(),
            offset: self.offset,
            length: at,
        };
        self.offset += at;
        self.length -= at;
        front
    }

    /// Puts back together what was split.
    ///
    /// # Errors
    /// `other`, unchanged, if it doesn't begin where this buffer ends.
    pub fn join(&mut self, other: Self) -> Result<(), Self> {
        let adjacent = match (&self.region, &other.region) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b) && self.offset + self.length == other.offset,
            _ => false,
        };
        if !adjacent {
            return Err(other);
        }
        self.length += other.length;
        Ok(())
    }

    /// Lets several sends read the bytes at once, and nobody write them until all have.
    #[must_use]
    pub fn share(self) -> SharedBuffer {
        self.into()
    }

    /// Key, card address and length, as a work request names the buffer.
    pub(crate) fn local(&self) -> (u32, u64, u64) {
        match &self.region {
            Some(region) => (
                region.key.key,
                region.memory.address() + self.offset as u64,
                self.length as u64,
            ),
            None => (0, 0, 0),
        }
    }

    /// Whether an endpoint of `domain` may use the buffer.
    pub(crate) fn is_of(&self, domain: &Arc<Domain>) -> bool {
        self.region
            .as_ref()
            .is_none_or(|region| Arc::ptr_eq(&region.domain, domain))
    }
}

/// Of a buffer that peers may write: it isn't given out as a slice then.
impl Buffer {
    fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        let region = self
            .region
            .as_ref()
            .filter(|_| offset + bytes <= self.length);
        let region = region.expect("the caller has looked that it is inside");
        // SAFETY: inside the region's allocation, as the line above has seen.
        unsafe { region.memory.start().as_ptr().add(self.offset + offset) }
    }

    pub(crate) fn atomic(&self, offset: usize) -> &AtomicU8 {
        // SAFETY: the byte lives as long as the region, which `self` holds, and while it can be reached by this, host and card access it atomically only.
        unsafe { AtomicU8::from_ptr(self.at(offset, 1)) }
    }

    /// The word at an offset that is a multiple of eight.
    pub(crate) fn atomic_word(&self, offset: usize) -> &AtomicU64 {
        let word = self.at(offset, 8).cast::<u64>();
        assert!(
            word.is_aligned(),
            "memory of the program's that isn't aligned has no aligned words"
        );
        // SAFETY: as for `atomic`, and it is aligned.
        unsafe { AtomicU64::from_ptr(word) }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.region {
            // SAFETY: the range lies inside the region's allocation, which lives as long as this `Arc`, and is
            // initialised: zeroed when allocated, or bytes of the program's. Buffers of a region are disjoint, and while the application has this one, it is in
            // no request, so the card has not been given its bytes.
            Some(region) => unsafe {
                slice::from_raw_parts(region.memory.start().as_ptr().add(self.offset), self.length)
            },
            None => &[],
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &self.region {
            // SAFETY: as for `deref`, and `self` is borrowed exclusively.
            Some(region) => unsafe {
                slice::from_raw_parts_mut(
                    region.memory.start().as_ptr().add(self.offset),
                    self.length,
                )
            },
            None => &mut [],
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes at {})", self.length, self.offset)
    }
}
