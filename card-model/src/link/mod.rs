//! Between the pairs and the wire.
//!
//! ```text
//!  sends ──► Transmit ──► frame bytes        frame bytes ──► screen ──► Receive ──► progress, arrivals
//!               ▲ numbers                                                  │
//!  updates ──► Acknowledge ◄──────────── faults ───────────────────────────┘
//! ```

mod acknowledge;
mod frame;
mod receive;
mod screen;

pub use acknowledge::{Acknowledge, Owed, SinkNumbers};
pub use frame::{Transmit, seal};
pub use receive::{Asked, Judged, Receive};
pub use screen::{Screened, screen, screen_for};
