//! What the firmware's decisions run on.

use abi::control::Operation;

/// The gates did not answer a control request in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlTimeout;

/// Sizes of the card, as its gates were built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Endpoints.
    pub endpoints: u32,
    /// Pairs.
    pub pairs: u32,
    /// Entries of the list of posted receives.
    pub posted: u32,
    /// Entries of the list of unexpected messages.
    pub unexpected: u32,
    /// Regions.
    pub regions: u32,
}

/// The card as the firmware sees it.
pub trait Card {
    /// Runs a control request to its end and returns its result; `data` is one of the layouts of [`abi::control`],
    /// as words, and words that are missing are zero.
    ///
    /// # Errors
    /// [`ControlTimeout`] if the gates don't answer; what they have done of it is unknown.
    fn control(
        &mut self,
        operation: Operation,
        index: u16,
        data: &[u64],
    ) -> Result<u64, ControlTimeout>;

    /// A random word that nobody outside can foresee.
    fn random(&mut self) -> u32;

    /// Own Ethernet address; the least significant byte is first on the wire.
    fn mac(&self) -> u64;

    /// Sizes of the card.
    fn sizes(&self) -> Sizes;
}
