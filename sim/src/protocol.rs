//! Rules of the buses, and the one that all of them share: what is offered stays.
//!
//! ```text
//!            ┌───┐   ┌───┐   ┌───┐
//!  clock  ───┘   └───┘   └───┘   └──
//!  valid  ─────┐▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔     once high, high until ready
//!  payload ────┤ A        A       ►     and the same all the while
//!  ready  ─────────────────┐▔▔▔▔▔▔
//! ```

use std::fmt;

/// A channel of the card's pins on which the card is the one that offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Memory: read address.
    ReadAddress,
    /// Memory: write address.
    WriteAddress,
    /// Memory: write data.
    WriteData,
    /// Network, from the card.
    Transmit,
    /// Registers: read data.
    RegisterRead,
    /// Registers: write response.
    RegisterResponse,
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadAddress => "m_axi_ar",
            Self::WriteAddress => "m_axi_aw",
            Self::WriteData => "m_axi_w",
            Self::Transmit => "m_axis",
            Self::RegisterRead => "s_axil_r",
            Self::RegisterResponse => "s_axil_b",
        })
    }
}

/// A rule of AXI or AXI-Stream that the card has broken. Section numbers are those of Arm IHI 0022 (AXI)
/// and IHI 0051 (AXI-Stream).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// `valid` went low before `ready` was high (IHI 0022 A3.2.1).
    #[error("{0}: valid was withdrawn before it was taken")]
    Withdrawn(Channel),
    /// The payload changed while it waited (IHI 0022 A3.2.1).
    #[error("{0}: the payload changed while it waited to be taken")]
    Unstable(Channel),
    /// A burst crosses 4 KiB (IHI 0022 A3.4.1).
    #[error("{channel}: {beats} beats from {addr:#x} cross a 4 KiB boundary")]
    Crosses {
        /// Where.
        channel: Channel,
        /// Address of the burst.
        addr: u64,
        /// Beats.
        beats: u16,
    },
    /// A burst that isn't of type INCR, or whose beats aren't full.
    #[error(
        "{channel}: burst type {burst}, size {size}: only INCR bursts of full beats are allowed"
    )]
    Shape {
        /// Where.
        channel: Channel,
        /// Burst type.
        burst: u8,
        /// log2 of the bytes of a beat.
        size: u8,
    },
    /// An exclusive access: host memory has none.
    #[error("{0}: an exclusive access, which the memory can't do")]
    Exclusive(Channel),
    /// `wlast` on the wrong beat (IHI 0022 A3.4.1).
    #[error("m_axi_w: wlast is {last} on beat {beat} of the {beats} beats from {addr:#x}")]
    WrongLast {
        /// What it was.
        last: bool,
        /// Number of the beat, from 1.
        beat: u16,
        /// Beats of the burst.
        beats: u16,
        /// Address of the burst.
        addr: u64,
    },
    /// A strobe below the start address of an unaligned burst (IHI 0022 A3.4.3).
    #[error("m_axi_w: strobes {strb:#04x} reach below the burst's address {addr:#x}")]
    StrobeBelow {
        /// Strobes of the first beat.
        strb: u8,
        /// Address of the burst.
        addr: u64,
    },
    /// `tkeep` with a hole, or not full before the last beat.
    #[error("m_axis: tkeep {keep:#04x} (last {last}) leaves a hole in the frame")]
    Keep {
        /// What it was.
        keep: u8,
        /// Whether on the last beat.
        last: bool,
    },
    /// `tvalid` went low inside a frame: an Ethernet MAC would run dry.
    #[error("m_axis: tvalid went low inside a frame")]
    Underrun,
    /// A frame without end.
    #[error("m_axis: a frame of more than {0} bytes")]
    FrameTooLong(usize),
    /// A register access that isn't answered.
    #[error("{channel}: no answer within {cycles} cycles to the access at offset {offset:#x}")]
    NoAnswer {
        /// Where the answer should have come.
        channel: Channel,
        /// Byte offset.
        offset: u32,
        /// Cycles that the card had.
        cycles: u64,
    },
    /// A response that nobody waits for.
    #[error("{0}: a response without a request")]
    Unasked(Channel),
}

/// Watches one channel for [`Violation::Withdrawn`] and [`Violation::Unstable`].
#[derive(Clone, Debug)]
pub struct Hold<T> {
    channel: Channel,
    waiting: Option<T>,
}

impl<T: Copy + PartialEq> Hold<T> {
    /// A watcher of `channel`.
    pub const fn new(channel: Channel) -> Self {
        Self {
            channel,
            waiting: None,
        }
    }

    /// Looks at one cycle.
    ///
    /// # Errors
    /// The rule that was broken in it.
    #[inline]
    pub fn check(&mut self, valid: bool, ready: bool, payload: T) -> Result<(), Violation> {
        if let Some(waiting) = self.waiting {
            if !valid {
                return Err(Violation::Withdrawn(self.channel));
            }
            if waiting != payload {
                return Err(Violation::Unstable(self.channel));
            }
        }
        self.waiting = (valid && !ready).then_some(payload);
        Ok(())
    }

    /// Forgets what waited, as a reset does.
    pub fn clear(&mut self) {
        self.waiting = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_at_once_may_change() {
        let mut hold = Hold::new(Channel::Transmit);
        assert_eq!(hold.check(true, true, 1), Ok(()));
        assert_eq!(hold.check(true, true, 2), Ok(()));
        assert_eq!(hold.check(false, true, 3), Ok(()));
    }

    #[test]
    fn an_offer_may_not_be_withdrawn() {
        let mut hold = Hold::new(Channel::Transmit);
        assert_eq!(hold.check(true, false, 1), Ok(()));
        assert_eq!(
            hold.check(false, true, 1),
            Err(Violation::Withdrawn(Channel::Transmit))
        );
    }

    #[test]
    fn an_offer_may_not_change() {
        let mut hold = Hold::new(Channel::WriteData);
        assert_eq!(hold.check(true, false, 1), Ok(()));
        assert_eq!(
            hold.check(true, true, 2),
            Err(Violation::Unstable(Channel::WriteData))
        );
    }
}
