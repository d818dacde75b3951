//! Every bit that two rooms of Posthorn share.
#![no_std]
