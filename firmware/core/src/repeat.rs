//! When a frame that hasn't been answered is sent again: ever more seldom.

/// Cycles from a frame to its first repetition: a few times what two firmwares need to answer. Twice as many each time from then on,
pub(crate) const REPEAT_FIRST: u32 = 1 << 15;
/// and no more than this.
const REPEAT_MOST: u32 = 1 << 19;

/// Whether a time has come. Times wrap: one is before another if it is less than 2^31 cycles before it.
pub(crate) fn is_reached(now: u32, time: u32) -> bool {
    (now.wrapping_sub(time) as i32) >= 0
}

/// The timer of a frame that is repeated.
#[derive(Clone, Copy)]
pub(crate) struct Repeat {
    /// When it comes.
    pub(crate) next: u32,
    interval: u32,
    /// A frame is to be sent as soon as there is room.
    pub(crate) due: bool,
}

impl Repeat {
    /// It comes first at this time, and no frame is due.
    pub(crate) fn from(next: u32) -> Self {
        Self {
            next,
            interval: REPEAT_FIRST,
            due: false,
        }
    }

    /// A frame is due now, and again after the first interval.
    pub(crate) fn begun(now: u32) -> Self {
        Self {
            due: true,
            ..Self::from(now.wrapping_add(REPEAT_FIRST))
        }
    }

    /// Whether its time has come; if so, it comes again after twice as long.
    pub(crate) fn comes(&mut self, now: u32) -> bool {
        let comes = is_reached(now, self.next);
        if comes {
            self.interval = (self.interval * 2).min(REPEAT_MOST);
            self.next = now.wrapping_add(self.interval);
        }
        comes
    }
}

#[cfg(test)]
mod tests {
    use super::{REPEAT_FIRST, REPEAT_MOST, Repeat};

    #[test]
    fn intervals_double_up_to_the_longest_and_times_wrap() {
        let mut now = u32::MAX - 100;
        let mut repeat = Repeat::begun(now);
        assert!(repeat.due);
        let mut interval = REPEAT_FIRST;
        for _ in 0..8 {
            assert!(!repeat.comes(now.wrapping_add(interval - 1)));
            now = now.wrapping_add(interval);
            assert!(repeat.comes(now));
            interval = (interval * 2).min(REPEAT_MOST);
        }
        assert_eq!(interval, REPEAT_MOST);
    }
}
