//! Set-up, Verilog generation, models, checks.
fn main() {}
