//! The posthorn command.
fn main() {}
