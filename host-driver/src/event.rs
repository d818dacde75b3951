//! Asynchronous events: what happened that no completion can tell.

use crate::pair::Pair;
pub use abi::event::Cause;

/// An event of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncEvent {
    /// What happened.
    pub cause: Cause,
    /// The pair concerned, if one is and it is still open.
    pub pair: Option<Pair>,
    /// Depends on the cause; see [`Cause`].
    pub info: u64,
}
