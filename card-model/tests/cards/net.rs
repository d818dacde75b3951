//! Cards, the wires between them, and the credits of their pairs.

use std::collections::VecDeque;

use abi::capability::CAPABILITY_PUT;
use abi::control::{CardSetup, Operation, PairSetup};
use abi::limits::MAX_UNACKNOWLEDGED;
use abi::times::RETRY_LIMIT;
use abi::wire::FrameHeader;
use card_model::memory::Pieces;
use card_model::{Card, CardSizes};

use crate::host_side::HostSide;

/// Cycles after which a silent pair goes back for the first time.
pub const TIMEOUT: u32 = 1 << TIMEOUT_LOG2;
const TIMEOUT_LOG2: u8 = 13;

/// Address of a card.
pub fn mac(card: usize) -> u64 {
    0x02 | (card as u64) << 8
}

/// One end of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub card: usize,
    pub endpoint: u8,
    pub pair: u16,
}

/// Cards and wires.
pub struct Net {
    pub cards: Vec<Card<Pieces>>,
    /// The hosts' sides of the endpoints, by card and endpoint.
    pub host_sides: Vec<Vec<HostSide>>,
    /// Frames under way to each card.
    pub wires: Vec<VecDeque<Vec<u8>>>,
    /// Both ends of each pair, and its credits; a pair with itself is there once.
    pub pairs: Vec<(End, End, u8)>,
    /// Puts may be among the sends.
    puts: bool,
}

impl Net {
    /// Cards with `endpoints` endpoints each, with rings of `1 << log2` entries.
    pub fn new(cards: usize, sizes: CardSizes, endpoints: u8, log2: u8) -> Self {
        let mut net = Self {
            cards: (0..cards)
                .map(|_| Card::new(sizes, Pieces::default()))
                .collect(),
            host_sides: Vec::new(),
            wires: vec![VecDeque::new(); cards],
            pairs: Vec::new(),
            puts: sizes.capabilities & CAPABILITY_PUT != 0,
        };
        for (number, card) in net.cards.iter_mut().enumerate() {
            let setup = CardSetup {
                mac: mac(number),
                ..CardSetup::default()
            };
            card.control(Operation::CardSet, 0, &setup.to_words());
            let host_sides = (0..endpoints).map(|endpoint| HostSide::open(card, endpoint, log2));
            net.host_sides.push(host_sides.collect());
        }
        net
    }

    /// Connects two ends, or an end with itself.
    pub fn connect(&mut self, a: End, b: End, credits: u8) {
        let cookie = 0xc00c_0000 | self.pairs.len() as u32;
        let ends = if a == b {
            vec![(a, b)]
        } else {
            vec![(a, b), (b, a)]
        };
        for (local, remote) in ends {
            let host_side = &self.host_sides[local.card][usize::from(local.endpoint)];
            let setup = PairSetup {
                remote_mac: mac(remote.card),
                remote_endpoint: remote.endpoint.into(),
                remote_pair: remote.pair,
                remote_epoch: 1,
                cookie,
                endpoint: local.endpoint,
                domain: local.endpoint + 1,
                epoch: 1,
                remote_credits: credits,
                local_credits: credits,
                slots: host_side.slots + u64::from(local.pair) * 16 * 1024,
                sends_first: local.pair << 4,
                sends_log2: 4,
                timeout_log2: TIMEOUT_LOG2,
                retry_limit: RETRY_LIMIT,
                ..PairSetup::default()
            };
            self.cards[local.card].control(Operation::PairSet, local.pair, &setup.to_words());
        }
        self.pairs.push((a, b, credits));
    }

    /// Puts what the cards have sent on the wires.
    pub fn collect(&mut self) {
        for card in 0..self.cards.len() {
            while let Some(frame) = self.cards[card].frame_out() {
                let header = FrameHeader::parse(&frame).expect("a header");
                let to = (0..self.cards.len()).find(|&to| mac(to) == header.destination_mac);
                self.wires[to.expect("a card of the net")].push_back(frame);
            }
        }
    }

    /// Gives a card what is on its wire, and says how many frames that were.
    pub fn deliver(&mut self, card: usize) -> usize {
        let frames = std::mem::take(&mut self.wires[card]);
        let count = frames.len();
        for frame in frames {
            self.cards[card].frame_in(frame);
        }
        count
    }

    /// Checks the credits of all pairs, both ways: returned ≤ freed ≤ accepted ≤ taken ≤ returned + G; or, where puts went without a credit, taken ≤
    /// acknowledged + 16.
    pub fn check_credits(&self) {
        for &(a, b, credits) in &self.pairs {
            for (from, to) in [(a, b), (b, a)] {
                let source = self.cards[from.card].credits(from.pair).source;
                let sink = self.cards[to.card].credits(to.pair).sink;
                let most = source.returned + u32::from(credits);
                let most = match self.puts {
                    true => most.max(source.acknowledged + u32::from(MAX_UNACKNOWLEDGED)),
                    false => most,
                };
                let sound = source.returned <= sink.freed
                    && sink.freed <= sink.accepted
                    && sink.accepted <= source.taken
                    && source.taken <= most;
                assert!(sound, "{from:?} to {to:?}: {source:?}, {sink:?}");
            }
        }
    }
}
