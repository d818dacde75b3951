//! Bounded proofs of circuits with memories.
//!
//! ```text
//!   yosys ─► NAME.aig ─► Circuit ─► Unrolled ─► clauses ─► CaDiCaL ─► proved, or inputs that show why not
//!            NAME.map ─► Names      (gates of all cycles)
//! ```
//!
//! What smtbmc and z3 do, for circuits on which they don't come to an end: the matching engine has twenty thousand registers.
//! The difference is in [`search`]: what never changes is found out and dropped as it goes.

pub mod circuit;
pub mod search;
pub mod unrolled;
