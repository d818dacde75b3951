//! Cards without boards: Verilated gates, host memory, a network, and one clock for all of it.
//!
//! [`Cluster`] sets up a number of cards and runs a host program for each. Everything that happens is decided by the
//! seed, to the cycle: how many processors the simulation has, and which thread the system lets run, can't be
//! seen. The book's page "The simulator" tells how to use it; the modules tell how each part works.

mod card;
mod clock;
mod cluster;
mod host;

pub mod capture;
pub mod fabric;
pub mod fault;
pub mod firmware;
pub mod lite;
pub mod log;
pub mod matching;
pub mod memory;
pub mod monitor;
pub mod pins;
pub mod protocol;
pub mod seed;
pub mod stream;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod timing;
pub mod verilated;

pub use card::{CardFault, CardReport, RESET_CYCLES, Waves};
pub use cluster::{Cluster, Error, Outcome, Report};
pub use firmware::Firmware;
pub use host::{Costs, Host, HostThread, SimTransport};
pub use model::Rate;

/// Nanoseconds of a clock cycle: 125 MHz.
pub const NS_PER_CYCLE: u64 = abi::mgmt::CLOCK_NS as u64;
