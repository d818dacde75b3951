//! Tag matching: the posted receives and the unexpected messages of a card, and the operations on them.

mod command;
mod lists;
mod sizes;
mod units;

pub use command::{Command, Operation, Reply};
pub use lists::{Lists, Outcome, Receive, has_room};
pub use sizes::{CLASSES, SLOTS, Sizes};
pub use units::Units;
