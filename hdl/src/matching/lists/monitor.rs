//! Pins that say what the engine is asked, for a monitor.

use super::Lists;
use crate::prelude::*;
use crate::types::Operation;

#[block]
impl Lists {
    /// The number of the operation in `command`.
    pub(super) fn monitor(&mut self) {
        self.operation.next = 0.into();
        match self.command.data.val().operation {
            Operation::Arrive => {}
            Operation::Remove => {
                self.operation.next = 1.into();
            }
            Operation::Post => {
                self.operation.next = 2.into();
            }
            Operation::Cancel => {
                self.operation.next = 3.into();
            }
            Operation::Probe => {
                self.operation.next = 4.into();
            }
            Operation::TakePostedOfPair => {
                self.operation.next = 5.into();
            }
            Operation::TakePostedOfEndpoint => {
                self.operation.next = 6.into();
            }
            Operation::TakeUnexpectedOfPair => {
                self.operation.next = 7.into();
            }
            Operation::Claim => {
                self.operation.next = 8.into();
            }
        }
    }
}
