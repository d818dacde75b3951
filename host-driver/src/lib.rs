//! The verbs-like library through which applications use a Posthorn card.
//!
//! The names are those of rdma-core: an application opens a [`Device`], allocates a
//! [`ProtectionDomain`], registers a [`MemoryRegion`], opens an [`Endpoint`], connects [`Pair`]s, posts
//! work requests and polls a [`CompletionQueue`].
//!
//! ```text
//!  Device ── ProtectionDomain ─┬─ MemoryRegion ── Buffer ──┐ post: moved in
//!    │ mailbox                 └─ Endpoint ─ Pair          ▼
//!    │                              ├─ send ring, list ring ──► card
//!    │                              ├─ CompletionQueue ◄───────┤ poll: moved out; one for several endpoints, too
//!    └─ Transport                   └─ event queue ◄───────────┘
//! ```
//!
//! A posted buffer is moved into its request and comes back in the completion, so it can't be
//! freed, read or written in between. Posting and polling don't allocate. Every object is `Send` and `Sync`.
//! Time-outs are in cycles of the card's clock. The library reaches the card only through a
//! [`transport::Transport`] and takes no simulated time of its own.
//!
//! ```
//! use host_driver::{Access, Device, Source, TaggedReceive, TaggedSend};
//! # use soft_card::{SoftFabric, SoftOptions};
//! # let fabric = SoftFabric::new(SoftOptions::default());
//! # let transport = |card| fabric.transport(card);
//! let open = |card| -> Result<_, Box<dyn std::error::Error>> {
//!     let device = Device::open(transport(card))?;
//!     let pd = device.alloc_pd()?;
//!     let endpoint = pd.endpoint().open()?;
//!     let (_region, buffer) = pd.reg_mr(1024, Access::ReadWrite)?;
//!     let (pair, address) = endpoint.open_pair(8)?;
//!     Ok((endpoint, pair, address, buffer))
//! };
//! let (a, to_b, a_address, _) = open(0)?;
//! let (b, from_a, b_address, buffer) = open(1)?;
//! a.connect_pair(to_b, &b_address)?;
//! b.connect_pair(from_a, &a_address)?;
//!
//! let receive = TaggedReceive {
//!     source: Source::Pair(from_a),
//!     context: 0,
//!     match_bits: 7,
//!     ignore_bits: 0,
//! };
//! b.post_tagged_recv(1, &receive, buffer)?;
//! let send = TaggedSend {
//!     pair: to_b,
//!     context: 0,
//!     match_bits: 7,
//!     immediate: 0,
//! };
//! a.post_tagged_inject(2, &send, b"posthorn")?;
//!
//! let completion = b.completion_queue().wait(1_000_000)?;
//! assert_eq!(completion.received(), b"posthorn");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// Whether a test breaks this promise.
#[cfg(feature = "breaks")]
macro_rules! is_broken {
    ($promise:ident) => {
        crate::breaks::is_broken(crate::breaks::Break::$promise)
    };
}
#[cfg(not(feature = "breaks"))]
macro_rules! is_broken {
    ($promise:ident) => {
        false
    };
}

mod armed;
mod backlog;
#[cfg(feature = "breaks")]
pub mod breaks;
mod claimed;
mod commands;
mod completion;
mod connection;
mod core;
mod device;
mod domain;
mod drain;
mod endpoint;
mod error;
mod event;
#[cfg(target_os = "linux")]
mod event_fd;
mod fence;
mod group;
mod link;
mod loader;
mod memory;
mod memory_window;
mod operation;
mod pair;
mod peer_failure;
mod peers;
mod primitives;
mod protection;
mod query;
mod region;
mod request_queue;
mod revoked;
mod ring;
mod rules;
mod send_limits;
mod shared;
mod shut_out;
mod sweep;
mod sync;
mod table;
mod times;
pub mod transport;
mod waiting;
mod window;

pub use abi::control::{Counter, PairCounter, RefusalReason};
pub use abi::mailbox::{
    AuditEntry, AuditKind, ConnectReason, FailureCause, Identity, PairState, PeerState,
};
pub use abi::status::{MailboxStatus, Status as WcStatus};
pub use abi::times::GRANT_TICK;
pub use claimed::{Claimed, ClaimedRefused, DiscardRefused};
pub use completion::{CompletionChannel, CompletionQueue, WcKind, WorkCompletion};
pub use device::{Device, DeviceOptions};
pub use domain::ProtectionDomain;
pub use drain::{DrainError, DrainOptions, DrainPolicy, Drained};
pub use endpoint::{Endpoint, EndpointBuilder};
pub use error::{
    CommandError, ConnectError, ListRefused, OpenError, PostError, Refused, UndrainedAccess,
    WaitError,
};
pub use event::{AsyncEvent, Cause, Causes, PeerRefusal};
#[cfg(target_os = "linux")]
pub use event_fd::{EventFd, EventFdError};
pub use fence::Cover;
pub use group::Group;
pub use loader::load_firmware;
pub use memory_window::MemoryWindow;
pub use operation::{
    Get, Outgoing, Put, RecvWr, SendFlags, SendWr, Source, TaggedReceive, TaggedSend,
};
pub use pair::{EndpointAddress, Pair, PairAddress};
pub use peer_failure::PeerFailure;
pub use peers::WatchOptions;
pub use protection::Protection;
pub use query::{
    Capabilities, DeviceLimits, EndpointState, EndpointStatus, PairCounters, PairStatus,
    RequestState,
};
pub use region::{Access, Buffer, MemoryRegion, RegionInUse};
pub use revoked::ToldRevocation;
pub use rules::{Revocation, RevokeError, Rule};
pub use send_limits::SendLimits;
pub use shared::{Gather, Payload, SendBuffer, SharedBuffer};
pub use shut_out::{ShutOut, ShutOutStatus};
pub use sweep::{MessageSet, SweepError, Swept};
pub use table::Request;
pub use times::PairTimes;
pub use window::{RemoteKey, RemoteRights, Window, WindowHeld};

/// What may cross threads and be shared by them: everything.
const _: () = {
    const fn shared<T: Send + Sync + ?Sized>() {}
    shared::<Device>();
    shared::<ProtectionDomain>();
    shared::<MemoryRegion>();
    shared::<Buffer>();
    shared::<SharedBuffer>();
    shared::<Payload>();
    shared::<SendWr>();
    shared::<RecvWr>();
    shared::<ListRefused<RecvWr, ()>>();
    shared::<Endpoint>();
    shared::<CompletionQueue>();
    shared::<CompletionChannel>();
    shared::<WorkCompletion>();
    shared::<EndpointBuilder>();
    shared::<DeviceOptions>();
    shared::<DeviceLimits>();
    shared::<EndpointStatus>();
    shared::<RequestState>();
    shared::<PairStatus>();
    shared::<Causes>();
    shared::<Identity>();
    shared::<Pair>();
    shared::<PairAddress>();
    shared::<EndpointAddress>();
    shared::<Request>();
    shared::<Source>();
    shared::<TaggedReceive>();
    shared::<TaggedSend>();
    shared::<Put>();
    shared::<Get>();
    shared::<SendLimits>();
    shared::<PeerFailure>();
    shared::<WatchOptions>();
    shared::<PairTimes>();
    shared::<Group>();
    shared::<MessageSet>();
    shared::<Revocation>();
    shared::<RevokeError>();
    shared::<AsyncEvent>();
    shared::<Refused>();
    shared::<Claimed>();
    shared::<ClaimedRefused>();
    shared::<DiscardRefused>();
    shared::<RegionInUse>();
    shared::<Window>();
    shared::<WindowHeld>();
    shared::<RemoteKey>();
    shared::<RemoteRights>();
    shared::<Protection>();
    shared::<CommandError>();
    shared::<ConnectError>();
    shared::<OpenError>();
    shared::<PostError>();
    shared::<WaitError>();
    shared::<dyn transport::Transport>();
};
