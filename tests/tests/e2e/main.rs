//! Host library, firmware, Verilated gates and fabric together. Each test is named as the sentence that it proves.

mod breaks;
mod cancels;
mod capabilities;
mod captures;
mod claims;
mod closing;
mod completion_queues;
mod connections;
mod credits;
mod determinism;
mod failures;
mod firmware;
mod hostile;
mod isolation;
mod malformed;
mod matching;
mod memory;
mod messages;
mod peers;
mod puts;
mod ready;
mod replay;
mod reset;
mod revoke;
mod times;
mod traffic;
