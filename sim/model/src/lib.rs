//! Binding to the Verilated models that xtask builds.
