//! The two ends of the card's network port: what takes frames from it and what gives frames to it.
//!
//! ```text
//!  card ── m_axis ──► Sink ──► frames        frames ──► Source ── s_axis ──► card
//! ```

use std::collections::VecDeque;

use crate::pins::{BEAT_BYTES, StreamBeat};
use crate::protocol::{Channel, Hold, Violation};
use crate::seed::{BackPressure, Idle};

/// Longest frame that an Ethernet switch passes, in bytes: a jumbo frame.
pub const FRAME_MAX: usize = 9216;

/// Cycles of the port that Ethernet puts around a frame: 8 bytes of preamble, 4 of the frame check sequence, 12 of the gap.
pub const GAP_BEATS: u64 = 24 / BEAT_BYTES as u64;

/// An Ethernet frame, without preamble and frame check sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The bytes, destination address first.
    pub bytes: Vec<u8>,
    /// Cycle of its first beat at the card that sent it.
    pub first: u64,
    /// Cycle of its last beat there.
    pub last: u64,
    /// The MAC will find it bad: it reaches the card with `tuser` set.
    pub bad: bool,
}

/// Takes the frames that a card sends.
pub struct Sink {
    frame: Frame,
    inside: bool,
    /// Cycles that the port is still taken by what stands between two frames.
    gap: u64,
    idle: Idle,
    hold: Hold<StreamBeat>,
}

impl Sink {
    /// A sink for `card`.
    pub fn new(pressure: BackPressure, seed: u64, card: usize) -> Self {
        Self {
            frame: Frame::default(),
            inside: false,
            gap: 0,
            idle: Idle::new(pressure, seed, card, "stream.sink"),
            hold: Hold::new(Channel::Transmit),
        }
    }

    /// Whether a beat is taken in this cycle.
    #[inline]
    pub fn drive(&mut self) -> bool {
        let open = self.idle.open();
        if self.gap > 0 {
            self.gap -= 1;
            return false;
        }
        open
    }

    /// Looks at what happened in this cycle: the frame that it ended, if it did.
    ///
    /// # Errors
    /// The rule that the card broke.
    #[inline]
    pub fn sample(
        &mut self,
        cycle: u64,
        ready: bool,
        beat: &StreamBeat,
    ) -> Result<Option<Frame>, Violation> {
        self.hold.check(beat.valid, ready, *beat)?;
        if !beat.valid {
            return if self.inside {
                Err(Violation::Underrun)
            } else {
                Ok(None)
            };
        }
        if ready {
            self.take(cycle, beat)
        } else {
            Ok(None)
        }
    }

    fn take(&mut self, cycle: u64, beat: &StreamBeat) -> Result<Option<Frame>, Violation> {
        if !self.inside {
            self.inside = true;
            self.frame.first = cycle;
            self.frame.bytes.reserve(abi::wire::FRAME_MAX);
        }
        let count = beat.keep.trailing_ones() as usize;
        let whole = count == BEAT_BYTES;
        let prefix = u16::from(beat.keep) + 1 == 1 << count;
        if !prefix || count == 0 || !whole && !beat.last {
            return Err(Violation::Keep {
                keep: beat.keep,
                last: beat.last,
            });
        }
        let bytes = beat.data.to_le_bytes();
        self.frame.bytes.extend_from_slice(&bytes[..count]);
        if self.frame.bytes.len() > FRAME_MAX {
            return Err(Violation::FrameTooLong(FRAME_MAX));
        }
        if !beat.last {
            return Ok(None);
        }
        self.inside = false;
        self.gap = GAP_BEATS;
        self.frame.last = cycle;
        Ok(Some(std::mem::take(&mut self.frame)))
    }
}

/// A frame on its way to a card.
#[derive(Debug)]
struct Arriving {
    /// First cycle in which its first beat may be offered, then the order among those of one cycle.
    order: (u64, u32),
    frame: Frame,
}

/// Gives a card the frames that arrive for it, in the order of arrival, losing none: what the card doesn't
/// take waits.
pub struct Source {
    queue: VecDeque<Arriving>,
    /// Bytes of the frame at the front that have been taken; its beat at `at` is offered if `offered`.
    at: usize,
    offered: bool,
    /// Cycles that the port is still taken by what stands between two frames.
    gap: u64,
    beat: StreamBeat,
    idle: Idle,
    deepest: usize,
}

impl Source {
    /// A source for `card`.
    pub fn new(pressure: BackPressure, seed: u64, card: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            at: 0,
            offered: false,
            gap: 0,
            beat: StreamBeat::default(),
            idle: Idle::new(pressure, seed, card, "stream.source"),
            deepest: 0,
        }
    }

    /// Queues a frame whose first beat may be offered in cycle `ready` or later. Among frames of the same
    /// cycle the lower `source` is first, and of the same source the one that was queued first.
    pub fn arrive(&mut self, ready: u64, source: u32, frame: Frame) {
        let order = (ready, source);
        // A frame that the card has begun to take, or been offered, stays in front.
        let floor = usize::from(self.offered || self.at > 0);
        let place = self.queue.partition_point(|other| other.order <= order);
        self.queue
            .insert(place.max(floor), Arriving { order, frame });
        self.deepest = self.deepest.max(self.queue.len());
    }

    /// Whether nothing is queued.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Most frames that were ever queued.
    pub const fn deepest(&self) -> usize {
        self.deepest
    }

    /// The beat that is offered in this cycle.
    #[inline]
    pub fn drive(&mut self, cycle: u64) -> StreamBeat {
        let open = self.idle.open();
        if self.gap > 0 {
            self.gap -= 1;
        } else if !self.offered
            && let Some(front) = self.queue.front()
            && (self.at > 0 || open && front.order.0 <= cycle)
        {
            self.offered = true;
            let left = &front.frame.bytes[self.at..];
            let count = left.len().min(BEAT_BYTES);
            let mut bytes = [0; BEAT_BYTES];
            bytes[..count].copy_from_slice(&left[..count]);
            let last = left.len() <= BEAT_BYTES;
            self.beat = StreamBeat {
                valid: true,
                data: u64::from_le_bytes(bytes),
                keep: u8::MAX >> (BEAT_BYTES - count),
                last,
                bad: last && front.frame.bad,
            };
        }
        self.beat
    }

    /// Looks at whether the beat was taken in this cycle; the frame, if it was its last.
    #[inline]
    pub fn sample(&mut self, ready: bool) -> Option<Frame> {
        if !(self.offered && ready) {
            return None;
        }
        self.offered = false;
        let last = self.beat.last;
        self.beat = StreamBeat::default();
        if last {
            self.at = 0;
            self.gap = GAP_BEATS;
            return self.queue.pop_front().map(|arriving| arriving.frame);
        }
        self.at += BEAT_BYTES;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::generator;
    use rand::Rng;

    fn frame(bytes: &[u8]) -> Frame {
        Frame {
            bytes: bytes.to_vec(),
            ..Frame::default()
        }
    }

    #[test]
    fn frames_of_any_length_pass_unchanged_and_in_order() {
        for seed in 0..50 {
            let mut rng = generator(seed, 0, "test");
            let mut source = Source::new(BackPressure::SOME, seed, 0);
            let mut sink = Sink::new(BackPressure::SOME, seed, 0);
            let mut sent = VecDeque::new();
            for k in 0..20 {
                let bytes: Vec<u8> = (0..rng.random_range(1..100))
                    .map(|_| rng.random())
                    .collect();
                source.arrive(10 * k, 0, frame(&bytes));
                sent.push_back(bytes);
            }
            for cycle in 0..5000 {
                let beat = source.drive(cycle);
                let ready = sink.drive();
                if let Some(frame) = sink.sample(cycle, ready, &beat).unwrap() {
                    assert_eq!(Some(frame.bytes), sent.pop_front(), "seed {seed}");
                    assert!(frame.first <= frame.last && frame.last == cycle);
                }
                source.sample(ready);
            }
            assert!(sent.is_empty() && source.is_idle(), "seed {seed}");
        }
    }

    #[test]
    fn an_earlier_frame_overtakes_only_what_has_not_begun() {
        let mut source = Source::new(BackPressure::NONE, 0, 0);
        source.arrive(5, 1, frame(&[1; 16]));
        source.arrive(9, 0, frame(&[2; 8]));
        source.arrive(5, 0, frame(&[3; 8]));
        let mut order = Vec::new();
        for cycle in 0..40 {
            let beat = source.drive(cycle);
            assert!(!beat.valid || cycle >= 5);
            if cycle == 10 {
                // The 16-byte frame is half taken.
                source.arrive(4, 0, frame(&[4; 8]));
            }
            order.extend(source.sample(beat.valid).map(|frame| frame.bytes[0]));
        }
        assert_eq!(order, [3, 1, 4, 2]);
    }

    #[test]
    fn between_frames_the_port_is_taken_by_what_ethernet_puts_there() {
        let mut source = Source::new(BackPressure::NONE, 0, 0);
        let mut sink = Sink::new(BackPressure::NONE, 0, 0);
        for _ in 0..3 {
            source.arrive(0, 0, frame(&[1; 16]));
        }
        let mut offered = Vec::new();
        let mut taken = Vec::new();
        let greedy = StreamBeat {
            valid: true,
            keep: 0xff,
            last: true,
            ..StreamBeat::default()
        };
        for cycle in 0..15 {
            let beat = source.drive(cycle);
            if beat.valid {
                offered.push(cycle);
            }
            source.sample(true);
            let ready = sink.drive();
            if ready {
                taken.push(cycle);
            }
            sink.sample(cycle, ready, &greedy).unwrap();
        }
        assert_eq!(offered, [0, 1, 5, 6, 10, 11]);
        assert_eq!(taken, [0, 4, 8, 12]);
    }

    fn sink_error(beats: &[StreamBeat]) -> Option<Violation> {
        let mut sink = Sink::new(BackPressure::NONE, 0, 0);
        beats
            .iter()
            .find_map(|beat| sink.sample(0, true, beat).err())
    }

    #[test]
    fn holes_gaps_and_endless_frames_are_violations() {
        let beat = StreamBeat {
            valid: true,
            keep: 0xff,
            ..StreamBeat::default()
        };
        let last = |keep| StreamBeat {
            keep,
            last: true,
            ..beat
        };
        assert_eq!(sink_error(&[beat, last(0x01)]), None);
        for keep in [0x00, 0x02, 0xfe, 0x7b] {
            assert_eq!(
                sink_error(&[beat, last(keep)]),
                Some(Violation::Keep { keep, last: true })
            );
        }
        let short = StreamBeat { keep: 0x7f, ..beat };
        assert_eq!(
            sink_error(&[short]),
            Some(Violation::Keep {
                keep: 0x7f,
                last: false
            })
        );
        assert_eq!(
            sink_error(&[beat, StreamBeat::default()]),
            Some(Violation::Underrun)
        );
        assert_eq!(
            sink_error(&vec![beat; FRAME_MAX / 8 + 1]),
            Some(Violation::FrameTooLong(FRAME_MAX))
        );
    }
}
