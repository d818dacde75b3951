//! Which frames are of a connection, and in which order: pair, endpoints, epochs, cookie, sequence.

use abi::control::{PairCounter, PairSetup};
use abi::status::Status;
use abi::wire::{FRAME_GAP, FRAME_READY, FrameType};

use super::Screened;
use crate::breaks::Break;
use crate::delivery::Arrival;
use crate::sends::Progress;

/// A connection, as its frames are held to it.
#[derive(Clone, Copy, Debug)]
struct Peer {
    setup: PairSetup,
    failed: bool,
    /// Numbers of the next request and of the next control frame.
    requests: u32,
    control: u32,
    /// By how much the last request that was dropped for a gap ran ahead, modulo 256; 0 if the next has come since.
    gap: u8,
    /// A frame has come since somebody asked.
    heard: bool,
    /// The peer has said that it has closed its side.
    closed: bool,
}

/// What becomes of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// What counts it.
    pub counter: PairCounter,
    /// What the peer says of this side's sends. With a duplicate of a request it asks for an answer, since it may not have heard that the
    /// request is safe; with a request that is dropped for a gap, it says that the peer is to be told.
    pub progress: Option<Progress>,
    /// The message that it carries.
    pub arrival: Option<Arrival>,
    /// Its pair fails, with this code.
    pub fails: Option<u8>,
}

/// A get of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Pair that it came by.
    pub pair: u16,
    /// Its number.
    pub number: u32,
    /// Remote key.
    pub key: u64,
    /// First byte, from the first of the region.
    pub offset: u64,
    /// Bytes.
    pub length: u16,
    /// It has come before: it is answered again, and is no further request.
    pub again: bool,
}

/// The receiving end of all connections.
#[derive(Clone, Debug)]
pub struct Receive {
    pairs: Vec<Option<Peer>>,
    broken: Break,
}

impl Receive {
    /// So many pairs, none of which is connected.
    pub fn new(pairs: usize) -> Self {
        Self {
            pairs: vec![None; pairs],
            broken: Break::None,
        }
    }

    /// Breaks the room on purpose.
    pub fn break_on_purpose(&mut self, broken: Break) {
        self.broken = broken;
    }

    /// Connects a pair or forgets it.
    pub fn set(&mut self, pair: u16, setup: Option<PairSetup>) {
        if let Some(entry) = self.pairs.get_mut(usize::from(pair)) {
            *entry = setup.map(|setup| Peer {
                setup,
                failed: false,
                requests: 0,
                control: 0,
                gap: 0,
                heard: false,
                closed: false,
            });
        }
    }

    /// The connection of a pair, if it has one.
    pub fn setup(&self, pair: u16) -> Option<PairSetup> {
        let peer = self.pairs.get(usize::from(pair)).copied().flatten();
        peer.map(|peer| peer.setup)
    }

    /// Frames of a pair are dropped from now on.
    pub fn fail(&mut self, pair: u16) {
        if let Some(Some(peer)) = self.pairs.get_mut(usize::from(pair)) {
            peer.failed = true;
        }
    }

    /// Whether the pair's peer has said that it has closed its side.
    pub fn is_closed(&self, pair: u16) -> bool {
        let peer = self.pairs.get(usize::from(pair));
        peer.and_then(Option::as_ref)
            .is_some_and(|peer| peer.closed)
    }

    /// Whether a frame of the pair's peer, new or repeated, has come since this was asked last.
    pub fn take_heard(&mut self, pair: u16) -> bool {
        let peer = self.pairs.get_mut(usize::from(pair));
        let heard = peer.and_then(Option::as_mut).map(|peer| &mut peer.heard);
        heard.is_some_and(std::mem::take)
    }

    /// Judges a frame that has passed the screen.
    pub fn judge(&mut self, frame: &Screened) -> Judged {
        let header = &frame.header;
        let drop = |counter| Judged {
            counter,
            progress: None,
            arrival: None,
            fails: None,
        };
        let peer = self.pairs.get_mut(usize::from(header.destination_pair));
        let Some(Some(peer)) = peer else {
            return drop(PairCounter::PairErrors);
        };
        let setup = &peer.setup;
        let endpoint = setup.endpoint;
        let agrees = header.destination_endpoint == u16::from(setup.endpoint)
            && header.source_endpoint == setup.remote_endpoint
            && header.source_pair == setup.remote_pair
            && header.destination_epoch == setup.epoch
            && header.source_epoch == setup.remote_epoch
            && header.cookie == setup.cookie;
        if !agrees || peer.failed {
            return drop(PairCounter::PairErrors);
        }
        peer.heard = true;
        // Whether it answers anything is asked of those who ask. Its number is the get's.
        if frame.is_response() {
            return Judged {
                progress: Some(frame.progress()),
                ..drop(PairCounter::FramesReceived)
            };
        }
        let is_request = frame.is_request();
        let next = match is_request {
            true => &mut peer.requests,
            false => &mut peer.control,
        };
        let ahead = match self.broken {
            Break::DuplicateTaken => 0,
            _ => header.sequence.wrapping_sub(*next),
        };
        if ahead >> 31 != 0 {
            let again = Progress {
                ask: true,
                ..frame.progress()
            };
            let asked = frame
                .asked(true)
                .filter(|_| self.broken != Break::GetAnsweredOnce);
            return Judged {
                progress: is_request.then_some(again),
                arrival: asked.map(|_| frame.arrival(endpoint, asked)),
                ..drop(PairCounter::Duplicates)
            };
        }
        // The numbers of a control frame are absolute: what a lost one said is in it too. The sender of requests goes back when it is told, once for each
        // of its rounds.
        if is_request && ahead != 0 {
            let ahead = ahead as u8;
            let tells = peer.gap == 0 || ahead <= peer.gap;
            peer.gap = ahead;
            let missing = Progress {
                misses: true,
                ..frame.progress()
            };
            return Judged {
                progress: tells.then_some(missing),
                ..drop(PairCounter::Gaps)
            };
        }
        *next = header.sequence.wrapping_add(1);
        if is_request {
            peer.gap = 0;
        }
        let fails = match frame.frame_type {
            FrameType::PairFailed => Some(Status::LinkError),
            FrameType::PairClosed => Some(Status::PeerFailed),
            _ => None,
        };
        peer.failed |= fails.is_some();
        peer.closed = fails == Some(Status::PeerFailed);
        Judged {
            counter: PairCounter::FramesReceived,
            progress: Some(frame.progress()),
            arrival: is_request.then(|| frame.arrival(endpoint, frame.asked(false))),
            fails: fails.map(Status::code),
        }
    }
}

impl Screened {
    /// Whether it is a message, a put or a get, which have one sequence.
    pub fn is_request(&self) -> bool {
        matches!(
            self.frame_type,
            FrameType::Eager | FrameType::Put | FrameType::Get
        )
    }

    /// Whether it answers a request.
    pub fn is_response(&self) -> bool {
        self.frame_type == FrameType::GetAnswer
    }

    /// The get that it is, if it is one.
    fn asked(&self, again: bool) -> Option<Asked> {
        let header = &self.header;
        (self.frame_type == FrameType::Get).then_some(Asked {
            pair: header.destination_pair,
            number: header.sequence,
            key: header.match_bits,
            offset: header.immediate,
            length: header.context,
            again,
        })
    }

    /// What a request brings.
    pub(crate) fn arrival(&self, endpoint: u8, asks: Option<Asked>) -> Arrival {
        let header = &self.header;
        Arrival {
            pair: header.destination_pair,
            endpoint,
            context: header.context,
            match_bits: header.match_bits,
            immediate: header.immediate,
            ready: header.flags & FRAME_READY != 0,
            put: self.frame_type == FrameType::Put,
            asks,
            answers: None,
            payload: self.payload.clone(),
        }
    }

    /// What the frame says of the sends of its receiver.
    pub fn progress(&self) -> Progress {
        Progress {
            pair: self.header.destination_pair,
            acknowledge: self.header.acknowledge,
            credit: self.header.credit,
            ask: self.frame_type == FrameType::Ask,
            gap: !self.is_request() && self.header.flags & FRAME_GAP != 0,
            misses: false,
            refused: self.header.refused,
        }
    }
}
