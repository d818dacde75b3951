//! Replays a recorded application on simulated cards, one card a rank.

mod player;

pub use player::{PlayError, Played, Shared, play};

/// How the processes of a job find each other before there are pairs: what a launcher gives an MPI library.
pub trait Wireup {
    /// Sends each peer its bytes and returns what the peers sent to this rank, one from each of them.
    ///
    /// # Errors
    /// [`PlayError::Stopped`] if the simulation is, [`PlayError::Wireup`] if a peer is silent.
    fn exchange(&self, to: &[(usize, [u8; 32])]) -> Result<Vec<(usize, [u8; 32])>, PlayError>;

    /// Returns when every rank has called it.
    ///
    /// # Errors
    /// As for [`exchange`](Self::exchange).
    fn barrier(&self) -> Result<(), PlayError>;
}
