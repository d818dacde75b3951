//! The firmware's decisions against gates that check every control request they get, alone and several cards together.

mod agreement;
mod breaks;
mod commands;
mod drains;
mod gates;
mod grants;
mod network;
mod peers;
mod revoked;
mod rules;
mod table;
mod times;
