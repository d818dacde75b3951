//! Every bit that two rooms of Posthorn share.
//!
//! Work requests, completions, events, mailbox commands, control requests, wire headers, registers,
//! status codes and limits are each declared once, here, and `hdl`, `firmware`, `host-driver` and
//! `sim` derive their side from the declaration. Nothing else in the project defines a bit position.
//!
//! ```text
//!                      ┌─ define_layout! ──► Repr (parse, emit) and checked View   (here)
//!  *_layout! (a list ──┤
//!   of named fields)   └─ logic_struct! ──► rust-hdl LogicStruct, same bits         (hdl)
//! ```
//!
//! Multi-byte fields are little-endian in memory and on the wire, except the Ethernet addresses and
//! EtherType, which are in the order of IEEE 802.3.
#![no_std]

pub mod address;
pub mod capability;
pub mod completion;
mod constant;
pub mod control;
pub mod event;
pub mod explain;
pub mod key;
pub mod layout;
pub mod limits;
pub mod list_bench;
pub mod mailbox;
pub mod mgmt;
pub mod monitor;
pub mod opcode;
pub mod register;
pub mod request;
pub mod ring;
pub mod status;
pub mod times;
pub mod wire;

/// Version of everything in this crate. The card reports it in [`register::ABI_VERSION`]; a driver
/// that finds another one refuses the card.
pub const ABI_VERSION: u32 = 13;

pub use constant::Constant;
