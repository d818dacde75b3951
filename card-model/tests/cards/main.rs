//! Model cards and wires between them, under programs and schedules that a seed decides.

mod gets;
mod host_side;
mod lent;
mod losses;
mod net;
mod optional;
mod puts;
mod random;
mod rooms;
