//! The enums and structs of the kernels. `build/scope.rs` lists the same for the random ones.

use hdl::prelude::*;

/// Three variants in two bits.
#[derive(Clone, Copy, Debug, PartialEq, LogicState)]
pub enum Hue {
    Red,
    Green,
    Blue,
}

/// One bit.
#[derive(Clone, Copy, Debug, PartialEq, LogicState)]
pub enum Gate {
    Open,
    Shut,
}

/// Five variants in three bits.
#[derive(Clone, Copy, Debug, PartialEq, LogicState)]
pub enum Phase {
    Idle,
    Fetch,
    Check,
    Write,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Default, LogicStruct)]
pub struct Inner {
    pub u: Bits<5>,
    pub v: Bits<9>,
    pub g: Gate,
}

#[derive(Clone, Copy, Debug, PartialEq, Default, LogicStruct)]
pub struct Record {
    pub op: Bits<4>,
    pub flag: Bit,
    pub hue: Hue,
    pub inner: Inner,
    pub key: Bits<70>,
}

#[derive(Clone, Copy, Debug, PartialEq, Default, LogicStruct)]
pub struct Word {
    pub low: Bits<32>,
    pub high: Bits<33>,
    pub valid: Bit,
}
