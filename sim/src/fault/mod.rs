//! Faults of links, hosts and cards, by a seeded plan.
//!
//! ```text
//!  [[host]]  kill, freeze             Fate ───► a program's calls of its transport
//!  [[card]]  kill, stall_memory       Card ───► power and memory bus of a card
//!            pause_firmware           the clock of a card's processor
//!  [[fault]] [[partition]] [[hold]]   Faults ─► a tap on the links
//! ```
//!
//! What happens depends on the plan, the seed and the frames alone, so a failure can be replayed. As text a plan is TOML, a table for each fault; the
//! book's page "Faults from a plan" has an example of each.

mod links;
mod plan;
mod process;

pub use links::{FaultCount, Faults};
pub use plan::{CardPlan, FaultPlan, Hold, HostPlan, LinkFault, Partition, Span};
pub use process::{Fate, Killed, process};
