//! Buffers that several sends read at once.
//!
//! ```text
//!  Buffer ── share ──► SharedBuffer ── clone, slice ──► SharedBuffer ── post ──► in a request
//!     ▲                      │               ▲                                     │
//!     └── try_into_buffer ◄──┘ the last      └───────────── completion ◄───────────┘
//! ```
//!
//! All of them only read, the program as the card, so any number may at the same time. What writes, a receive or the program, needs the
//! [`Buffer`], and that comes back from the last `SharedBuffer` only: a request in flight has one.

use crate::error::PostError;
use crate::region::Buffer;
use abi::request::MAX_SEGMENTS;
use std::fmt;
use std::ops::{Bound, Deref, RangeBounds};
use std::sync::Arc;

/// Bytes of a region that several may read: the program and any number of sends, at the same time. Clones are the same bytes.
///
/// Sharing a buffer allocates once; cloning, slicing and posting don't.
///
/// ```no_run
/// # use host_driver::*;
/// # fn example(endpoint: &Endpoint, sends: [TaggedSend; 2], buffer: Buffer) -> Result<(), Box<dyn std::error::Error>> {
/// let shared = buffer.share();
/// for send in &sends {
///     endpoint.post_tagged_send(1, send, shared.clone())?;
/// }
/// let first = shared[0]; // as the card may be reading it
/// for _ in &sends {
///     endpoint.completion_queue().wait(1_000_000)?;
/// }
/// let mut buffer = shared.try_into_buffer().expect("the sends have completed");
/// buffer[0] = first + 1;
/// # Ok(()) }
/// ```
///
/// # What the compiler refuses
/// Bytes that others may read aren't written, by the program,
///
/// ```compile_fail,E0594
/// # use host_driver::*;
/// # fn example(mut shared: SharedBuffer) {
/// shared[0] = 1;
/// # }
/// ```
///
/// or by a receive:
///
/// ```compile_fail,E0308
/// # use host_driver::*;
/// # fn example(endpoint: &Endpoint, receive: &TaggedReceive, shared: SharedBuffer) {
/// endpoint.post_tagged_recv(1, receive, shared);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SharedBuffer {
    whole: Arc<Buffer>,
    offset: usize,
    length: usize,
}

impl SharedBuffer {
    /// A part of the same bytes.
    ///
    /// # Panics
    /// If the range is not inside of the buffer.
    #[must_use]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Self {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before + 1,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last + 1,
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.length,
        };
        assert!(
            start <= end && end <= self.length,
            "slice past the end of the buffer"
        );
        Self {
            whole: Arc::clone(&self.whole),
            offset: self.offset + start,
            length: end - start,
        }
    }

    /// The buffer that was shared, all of it, if this is the last that reads it.
    ///
    /// # Errors
    /// This one, unchanged, while a clone, a slice or a request has the bytes too.
    pub fn try_into_buffer(self) -> Result<Buffer, Self> {
        let Self {
            whole,
            offset,
            length,
        } = self;
        Arc::try_unwrap(whole).map_err(|whole| Self {
            whole,
            offset,
            length,
        })
    }
}

impl From<Buffer> for SharedBuffer {
    fn from(buffer: Buffer) -> Self {
        Self {
            offset: 0,
            length: buffer.len(),
            whole: Arc::new(buffer),
        }
    }
}

impl Deref for SharedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.whole[self.offset..][..self.length]
    }
}

/// What a send reads: the one or the other kind of buffer.
#[derive(Debug)]
pub enum Payload {
    /// A buffer of the request alone.
    Unique(Buffer),
    /// One that others read too.
    Shared(SharedBuffer),
}

impl From<Buffer> for Payload {
    fn from(buffer: Buffer) -> Self {
        Self::Unique(buffer)
    }
}

impl From<SharedBuffer> for Payload {
    fn from(shared: SharedBuffer) -> Self {
        Self::Shared(shared)
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Unique(buffer) => buffer,
            Self::Shared(shared) => shared,
        }
    }
}

/// Up to [`MAX_SEGMENTS`] shared buffers, or slices of some, that are sent as one message, one after the other. One of a single segment, or of none, is sent by
/// every card.
#[derive(Clone, Debug, Default)]
pub struct Gather([Option<SharedBuffer>; MAX_SEGMENTS]);

impl Gather {
    /// The message of these segments. It has clones of them.
    ///
    /// # Errors
    /// [`PostError::TooManySegments`].
    pub fn new(segments: &[SharedBuffer]) -> Result<Self, PostError> {
        if segments.len() > MAX_SEGMENTS {
            return Err(PostError::TooManySegments);
        }
        Ok(Self(std::array::from_fn(|at| segments.get(at).cloned())))
    }

    /// The segments, in order.
    pub fn segments(&self) -> impl Iterator<Item = &SharedBuffer> {
        self.0.iter().flatten()
    }
}

impl From<SharedBuffer> for Gather {
    fn from(shared: SharedBuffer) -> Self {
        Self([Some(shared), None, None, None])
    }
}

/// What can be sent: a [`Buffer`], a [`SharedBuffer`], a [`Payload`], which is either, or a [`Gather`] of shared buffers. What is refused is given back as it
/// came.
pub trait SendBuffer: fmt::Debug + readable::Readable {}

impl SendBuffer for Buffer {}
impl SendBuffer for SharedBuffer {}
impl SendBuffer for Payload {}
impl SendBuffer for Gather {}

pub(crate) mod readable {
    //! What the library asks of a buffer to be sent; nobody else implements it, because a request rests on it.

    use super::{Buffer, Gather, Payload, SharedBuffer};
    use abi::request::{MAX_SEGMENTS, Segment};

    /// Bytes of a buffer.
    #[derive(Clone, Copy)]
    pub struct Piece<'a> {
        /// The buffer.
        pub whole: &'a Buffer,
        /// Where in it they begin.
        pub offset: usize,
        /// How many they are.
        pub length: usize,
    }

    impl<'a> Piece<'a> {
        /// The bytes.
        pub fn bytes(self) -> &'a [u8] {
            &self.whole[self.offset..][..self.length]
        }

        /// Where the card finds them.
        pub fn segment(self) -> Segment {
            let (key, address, _) = self.whole.local();
            Segment {
                key,
                address: address + self.offset as u64,
                length: self.length as u64,
            }
        }
    }

    /// What a request has while it is outstanding: its first buffer, and the segments of a gather behind that.
    pub type Held = (Option<Payload>, [Option<SharedBuffer>; MAX_SEGMENTS - 1]);

    pub trait Readable: Sized {
        /// The pieces of the message, in order.
        fn pieces(&self) -> [Option<Piece<'_>>; MAX_SEGMENTS];

        /// What a request is to hold.
        fn into_held(self) -> Held;
    }

    impl Readable for Buffer {
        fn pieces(&self) -> [Option<Piece<'_>>; MAX_SEGMENTS] {
            let all = Piece {
                whole: self,
                offset: 0,
                length: self.len(),
            };
            [Some(all), None, None, None]
        }

        fn into_held(self) -> Held {
            (Some(Payload::Unique(self)), Default::default())
        }
    }

    impl SharedBuffer {
        /// Its bytes.
        pub(crate) fn piece(&self) -> Piece<'_> {
            Piece {
                whole: &self.whole,
                offset: self.offset,
                length: self.length,
            }
        }
    }

    impl Readable for SharedBuffer {
        fn pieces(&self) -> [Option<Piece<'_>>; MAX_SEGMENTS] {
            [Some(self.piece()), None, None, None]
        }

        fn into_held(self) -> Held {
            (Some(Payload::Shared(self)), Default::default())
        }
    }

    impl Readable for Payload {
        fn pieces(&self) -> [Option<Piece<'_>>; MAX_SEGMENTS] {
            match self {
                Self::Unique(buffer) => buffer.pieces(),
                Self::Shared(shared) => shared.pieces(),
            }
        }

        fn into_held(self) -> Held {
            (Some(self), Default::default())
        }
    }

    impl Readable for Gather {
        fn pieces(&self) -> [Option<Piece<'_>>; MAX_SEGMENTS] {
            let all = self.0.each_ref();
            all.map(|segment| segment.as_ref().map(SharedBuffer::piece))
        }

        fn into_held(self) -> Held {
            let [first, second, third, fourth] = self.0;
            (first.map(Payload::Shared), [second, third, fourth])
        }
    }
}
