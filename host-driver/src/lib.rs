//! The verbs-like library through which applications use a Posthorn card.
pub mod transport;
