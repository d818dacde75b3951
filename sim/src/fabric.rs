//! The network between the cards: an Ethernet switch and the links to it.
//!
//! ```text
//!  card 0 ──┐   ┌────────────────────────┐   queue ──► card 0
//!  card 1 ──┼──►│ whole frames, by       ├── queue ──► card 1
//!  card 2 ──┘   │ destination address    │   queue ──► card 2
//!               └──────────▲─────────────┘
//!                 taps: look, drop, change, delay
//! ```
//!
//! The switch stores and forwards: a frame goes on when its last byte has come, takes the link from its
//! source to its destination for as long as the link's bandwidth says, and may be offered to the
//! destination `latency` cycles after its last byte left. Frames for one card are queued, in the order in
//! which they arrive, then of their sources, and wait there for as long as the card doesn't take them: nothing
//! is dropped for want of space. A frame for an address that isn't a card's is dropped and counted.
//!
//! A frame that a card ends in one window of the smallest link latency can't reach another card
//! before the next window. So the cards run a window each on their own, and then exchange
//! frames, sorted by cycle and source: who ran first leaves no trace.

use abi::wire::ETHERNET_HEADER_BYTES;

use crate::stream::Frame;

/// First four bytes of the address of every card: locally administered, then "PHN".
const MAC_PREFIX: u64 = 0x4e48_5002;
/// Most cards of one fabric: the rest of the address counts them.
pub const CARDS_MAX: usize = 1 << 16;

/// Ethernet address of a card; the least significant byte is first on the wire.
pub const fn mac(card: usize) -> u64 {
    MAC_PREFIX | ((card as u64 >> 8) & 0xff) << 32 | (card as u64 & 0xff) << 40
}

/// The card that has this address.
pub const fn card_of(mac: u64) -> Option<usize> {
    let card = (mac >> 32 & 0xff) << 8 | (mac >> 40 & 0xff);
    if mac & 0xffff_ffff == MAC_PREFIX && mac >> 48 == 0 {
        Some(card as usize)
    } else {
        None
    }
}

/// A link from one card to another, through the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Cycles from the last byte at the source to the first at the destination; at least 1.
    pub latency: u32,
    /// Bytes a cycle; at least 1. 8 is 8 Gbit/s at 125 MHz.
    pub bandwidth: u32,
}

impl Default for Link {
    /// 1 µs, and as fast as the card's port.
    fn default() -> Self {
        Self {
            latency: 125,
            bandwidth: 8,
        }
    }
}

/// A frame on a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passing {
    /// The frame.
    pub frame: Frame,
    /// Card that sent it.
    pub source: usize,
    /// Card that it goes to.
    pub destination: usize,
    /// Cycles that it is late, over what the link takes.
    pub delay: u64,
}

/// Something on a link that sees every frame: a capture, a fault.
///
/// Frames come in the order of the cycle in which the source had sent them, then of the source. What is put into `out`
/// goes on, to the destination that it says; a frame that isn't put there is lost.
pub trait Tap: Send {
    /// Lets a frame pass, or not.
    fn pass(&mut self, passing: Passing, out: &mut Vec<Passing>);

    /// The simulation is over.
    ///
    /// # Errors
    /// If what the tap had to write could not be written.
    fn finish(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<F: FnMut(Passing, &mut Vec<Passing>) + Send> Tap for F {
    fn pass(&mut self, passing: Passing, out: &mut Vec<Passing>) {
        self(passing, out);
    }
}

/// The links that a tap is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkFilter {
    /// Only links from this card.
    pub source: Option<usize>,
    /// Only links to this card.
    pub destination: Option<usize>,
}

impl LinkFilter {
    /// Every link.
    pub const ALL: Self = Self {
        source: None,
        destination: None,
    };

    /// The link from one card to another.
    pub const fn between(source: usize, destination: usize) -> Self {
        Self {
            source: Some(source),
            destination: Some(destination),
        }
    }

    /// Whether the link from one card to another is one of them.
    pub fn covers(&self, source: usize, destination: usize) -> bool {
        self.source.is_none_or(|only| only == source)
            && self.destination.is_none_or(|only| only == destination)
    }
}

/// What the switch has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FabricCount {
    /// Frames that came from cards.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames given to cards.
    pub delivered: u64,
    /// Frames dropped because no card has the address that they are for.
    pub unknown: u64,
    /// Frames dropped because they are shorter than an Ethernet header.
    pub runts: u64,
}

/// A frame that arrives at a card.
#[derive(Debug)]
pub struct Arrival {
    /// First cycle in which the card may be offered its first beat.
    pub ready: u64,
    /// Card that sent it.
    pub source: u32,
    /// The frame.
    pub frame: Frame,
}

/// The switch and its links.
pub struct Fabric {
    cards: usize,
    links: Vec<Link>,
    /// First cycle in which each link is free.
    free: Vec<u64>,
    taps: Vec<(LinkFilter, Box<dyn Tap>)>,
    count: FabricCount,
    sent: Vec<Passing>,
    passing: Vec<Passing>,
    passed: Vec<Passing>,
}

impl Fabric {
    /// A fabric for `cards` cards whose links are all the same.
    ///
    /// # Panics
    /// If there are more than [`CARDS_MAX`].
    pub fn new(cards: usize, link: Link) -> Self {
        assert!(cards <= CARDS_MAX, "a fabric has at most {CARDS_MAX} cards");
        Self {
            cards,
            links: vec![link; cards * cards],
            free: vec![0; cards * cards],
            taps: Vec::new(),
            count: FabricCount::default(),
            sent: Vec::new(),
            passing: Vec::new(),
            passed: Vec::new(),
        }
    }

    /// Sets the link from `source` to `destination`.
    pub fn set_link(&mut self, source: usize, destination: usize, link: Link) {
        self.links[source * self.cards + destination] = link;
    }

    /// Puts a tap on links, behind those that are there.
    pub fn add_tap(&mut self, filter: LinkFilter, tap: Box<dyn Tap>) {
        self.taps.push((filter, tap));
    }

    /// Cycles that cards may run without hearing of each other: the smallest latency.
    pub fn window(&self) -> u64 {
        let smallest = self.links.iter().map(|link| link.latency).min();
        u64::from(smallest.unwrap_or(1).max(1))
    }

    /// What has been done so far.
    pub const fn count(&self) -> FabricCount {
        self.count
    }

    /// Ends the taps.
    ///
    /// # Errors
    /// The first that a tap had.
    pub fn finish(&mut self) -> std::io::Result<()> {
        let ends = self.taps.iter_mut().map(|(_, tap)| tap.finish());
        ends.fold(Ok(()), std::io::Result::and)
    }

    /// Takes a frame that `source` has sent in the window that ends.
    pub fn send(&mut self, source: usize, frame: Frame) {
        self.sent.push(Passing {
            frame,
            source,
            destination: usize::MAX,
            delay: 0,
        });
    }

    /// Ends a window: gives each frame that was sent in it to `deliver` with its destination.
    pub fn exchange(&mut self, mut deliver: impl FnMut(usize, Arrival)) {
        // The sort is stable, and frames of one source were sent in order.
        self.sent
            .sort_by_key(|passing| (passing.frame.last, passing.source));
        let mut sent = std::mem::take(&mut self.sent);
        for mut passing in sent.drain(..) {
            self.count.frames += 1;
            self.count.bytes += passing.frame.bytes.len() as u64;
            if passing.frame.bytes.len() < ETHERNET_HEADER_BYTES {
                self.count.runts += 1;
                continue;
            }
            let mut address = [0; 8];
            address[..6].copy_from_slice(&passing.frame.bytes[..6]);
            match card_of(u64::from_le_bytes(address)) {
                Some(card) if card < self.cards => passing.destination = card,
                _ => {
                    self.count.unknown += 1;
                    continue;
                }
            }
            self.tap(passing);
            let mut passing = std::mem::take(&mut self.passing);
            for passing in passing.drain(..) {
                self.count.delivered += 1;
                let destination = passing.destination;
                deliver(destination, self.arrival(passing));
            }
            self.passing = passing;
        }
        self.sent = sent;
    }

    /// Leaves what the taps make of a frame in `self.passing`.
    fn tap(&mut self, passing: Passing) {
        self.passing.push(passing);
        for (filter, tap) in &mut self.taps {
            for passing in self.passing.drain(..) {
                if filter.covers(passing.source, passing.destination) {
                    tap.pass(passing, &mut self.passed);
                } else {
                    self.passed.push(passing);
                }
            }
            std::mem::swap(&mut self.passing, &mut self.passed);
        }
    }

    fn arrival(&mut self, passing: Passing) -> Arrival {
        let link = passing.source * self.cards + passing.destination;
        let Link { latency, bandwidth } = self.links[link];
        let bytes = passing.frame.bytes.len() as u64;
        let start = self.free[link].max(passing.frame.first);
        // The cycle after the last byte has left: not before it has come.
        let end = (start + bytes.div_ceil(u64::from(bandwidth.max(1)))).max(passing.frame.last + 1);
        self.free[link] = end;
        Arrival {
            ready: end - 1 + u64::from(latency.max(1)) + passing.delay,
            source: passing.source as u32,
            frame: passing.frame,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(destination: usize, len: usize, first: u64) -> Frame {
        let mut bytes = mac(destination).to_le_bytes()[..6].to_vec();
        bytes.resize(len, 0);
        Frame {
            bytes,
            first,
            last: first + len.div_ceil(8) as u64 - 1,
            bad: false,
        }
    }

    /// Destination, source, first cycle.
    fn exchange(fabric: &mut Fabric, frames: &[(usize, Frame)]) -> Vec<(usize, u32, u64)> {
        for (source, frame) in frames {
            fabric.send(*source, frame.clone());
        }
        let mut arrivals = Vec::new();
        fabric.exchange(|to, arrival| arrivals.push((to, arrival.source, arrival.ready)));
        arrivals
    }

    #[test]
    fn every_card_has_an_address_of_its_own() {
        for card in [0, 1, 255, 256, 4711, CARDS_MAX - 1] {
            assert_eq!(card_of(mac(card)), Some(card));
            assert_eq!(mac(card) & 1, 0, "unicast");
        }
        assert_eq!(card_of(0xffff_ffff_ffff), None);
        assert_eq!(card_of(mac(3) ^ 1 << 9), None);
    }

    #[test]
    fn a_frame_arrives_its_latency_after_its_last_beat() {
        let mut fabric = Fabric::new(2, Link::default());
        let frames = [(0, frame(1, 80, 1000))];
        assert_eq!(exchange(&mut fabric, &frames), [(1, 0, 1009 + 125)]);
    }

    #[test]
    fn a_slow_link_takes_frames_one_after_the_other() {
        let slow = Link {
            latency: 10,
            bandwidth: 2,
        };
        let mut fabric = Fabric::new(3, slow);
        fabric.set_link(
            0,
            2,
            Link {
                latency: 10,
                ..Link::default()
            },
        );
        let frames = [
            (0, frame(1, 80, 1000)),
            (0, frame(1, 80, 1010)),
            (0, frame(2, 80, 1020)),
        ];
        // 40 cycles a frame: the first leaves in cycle 1039.
        let arrivals = [(1, 0, 1049), (1, 0, 1089), (2, 0, 1039)];
        assert_eq!(exchange(&mut fabric, &frames), arrivals);
    }

    #[test]
    fn frames_are_exchanged_by_cycle_then_source_whoever_was_first() {
        let frames = [
            (2, frame(0, 64, 10)),
            (1, frame(0, 64, 10)),
            (1, frame(0, 64, 30)),
            (0, frame(0, 64, 5)),
        ];
        let mut shuffled = frames.clone();
        shuffled.swap(0, 3);
        let arrivals = exchange(&mut Fabric::new(3, Link::default()), &frames);
        assert_eq!(
            arrivals.iter().map(|a| a.1).collect::<Vec<_>>(),
            [0, 1, 2, 1]
        );
        assert_eq!(
            exchange(&mut Fabric::new(3, Link::default()), &shuffled),
            arrivals
        );
    }

    #[test]
    fn frames_for_nobody_are_dropped_and_counted() {
        let mut fabric = Fabric::new(2, Link::default());
        let frames = [
            (0, frame(2, 64, 0)),
            (0, frame(1, 13, 20)),
            (0, frame(1, 14, 30)),
        ];
        assert_eq!(exchange(&mut fabric, &frames).len(), 1);
        let count = fabric.count();
        assert_eq!((count.unknown, count.runts, count.delivered), (1, 1, 1));
    }

    #[test]
    fn the_window_is_the_smallest_latency() {
        let mut fabric = Fabric::new(3, Link::default());
        assert_eq!(fabric.window(), 125);
        fabric.set_link(
            2,
            0,
            Link {
                latency: 7,
                bandwidth: 8,
            },
        );
        assert_eq!(fabric.window(), 7);
    }

    #[test]
    fn taps_drop_repeat_delay_and_change_on_their_links_only() {
        let mut fabric = Fabric::new(2, Link::default());
        let twice = |passing: Passing, out: &mut Vec<Passing>| {
            let mut late = passing.clone();
            late.delay = 1000;
            out.extend([passing, late]);
        };
        let mut seen = 0;
        let drop_every_other = move |passing, out: &mut Vec<Passing>| {
            seen += 1;
            if seen % 2 == 1 {
                out.push(passing);
            }
        };
        fabric.add_tap(LinkFilter::between(0, 1), Box::new(twice));
        fabric.add_tap(
            LinkFilter {
                source: Some(1),
                destination: None,
            },
            Box::new(drop_every_other),
        );
        let frames = [
            (0, frame(1, 64, 0)),
            (1, frame(0, 64, 0)),
            (1, frame(0, 64, 100)),
        ];
        // The second copy also finds the link busy with the first.
        let arrivals = [(1, 0, 132), (1, 0, 1140), (0, 1, 132)];
        assert_eq!(exchange(&mut fabric, &frames), arrivals);
    }
}
