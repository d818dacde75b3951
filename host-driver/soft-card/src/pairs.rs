//! Pairs of a soft card, and the frames that travel between them.

use abi::control::PairSetup;
use abi::request::SendRequest;
use abi::status::Status;
use abi::wire::FrameHeader;
use firmware_core::FrameWords;
use std::collections::VecDeque;

/// A frame between two cards.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) destination_mac: u64,
    pub(crate) destination_endpoint: u16,
    pub(crate) destination_pair: u16,
    pub(crate) destination_epoch: u16,
    pub(crate) source_endpoint: u16,
    pub(crate) source_epoch: u16,
    pub(crate) cookie: u32,
    /// Requests of the reverse direction that are safe at the sender.
    pub(crate) acknowledge: u32,
    /// Credits of the reverse direction that have been returned.
    pub(crate) credit: u32,
    /// Which of the latest of those that are safe were refused, the last one's bit first.
    pub(crate) refused: u16,
    pub(crate) body: Body,
}

/// What a frame is.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Eager(Message),
    Acknowledge,
    PairFailed,
    /// A frame of the firmware, header included.
    Firmware(Box<FrameWords>),
}

impl Frame {
    /// A frame of the firmware: all that the fabric has to know of it is where it goes.
    pub(crate) fn of_firmware(words: FrameWords) -> Self {
        let word = |k: usize| u64::from(words[2 * k]) | u64::from(words[2 * k + 1]) << 32;
        let header = FrameHeader::from_words(&std::array::from_fn(word));
        Self {
            destination_mac: header.destination_mac,
            destination_endpoint: header.destination_endpoint,
            destination_pair: header.destination_pair,
            destination_epoch: header.destination_epoch,
            source_endpoint: header.source_endpoint,
            source_epoch: header.source_epoch,
            cookie: header.cookie,
            acknowledge: header.acknowledge,
            credit: header.credit,
            refused: header.refused,
            body: Body::Firmware(Box::new(words)),
        }
    }
}

/// A message.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) sequence: u32,
    pub(crate) context: u16,
    pub(crate) match_bits: u64,
    pub(crate) immediate: u64,
    /// It is to find a receive posted.
    pub(crate) ready: bool,
    pub(crate) payload: Vec<u8>,
}

/// A connected pair.
pub(crate) struct Pair {
    pub(crate) setup: PairSetup,
    pub(crate) failed: Option<Status>,
    pub(crate) waiting: VecDeque<SendRequest>,
    /// Injected sends, oldest first: its sequence number, handle, length and when it left.
    pub(crate) unacknowledged: VecDeque<Injected>,
    /// Credits taken and returned: running numbers of this side's sends.
    pub(crate) taken: u32,
    pub(crate) returned: u32,
    /// Messages accepted and freed: running numbers of the peer's sends.
    pub(crate) accepted: u32,
    pub(crate) freed: u32,
    /// Which of the latest accepted were refused, the last one's bit first.
    pub(crate) window: u16,
    /// A bit for each slot that holds an unexpected message.
    pub(crate) slots: u16,
    /// Accesses of the peer that a region refused.
    pub(crate) refused: u32,
}

/// A send that has left and is not acknowledged.
pub(crate) struct Injected {
    pub(crate) sequence: u32,
    pub(crate) request: u32,
    pub(crate) length: u64,
    pub(crate) left_at: u64,
}

impl Pair {
    pub(crate) fn new(setup: PairSetup) -> Self {
        Self {
            setup,
            failed: None,
            waiting: VecDeque::new(),
            unacknowledged: VecDeque::new(),
            taken: 0,
            returned: 0,
            accepted: 0,
            freed: 0,
            window: 0,
            slots: 0,
            refused: 0,
        }
    }

    /// Credits in hand.
    pub(crate) fn available(&self) -> u32 {
        u32::from(self.setup.remote_credits) - self.taken.wrapping_sub(self.returned)
    }

    /// A frame to the peer with this side's numbers.
    pub(crate) fn frame(&self, body: Body) -> Frame {
        Frame {
            destination_mac: self.setup.remote_mac,
            destination_endpoint: self.setup.remote_endpoint,
            destination_pair: self.setup.remote_pair,
            destination_epoch: self.setup.remote_epoch,
            source_endpoint: u16::from(self.setup.endpoint),
            source_epoch: self.setup.epoch,
            cookie: self.setup.cookie,
            acknowledge: self.accepted,
            credit: self.freed,
            refused: self.window,
            body,
        }
    }

    /// Whether a frame is of this connection.
    pub(crate) fn is_addressed(&self, frame: &Frame) -> bool {
        let setup = &self.setup;
        frame.destination_endpoint == u16::from(setup.endpoint)
            && frame.destination_epoch == setup.epoch
            && frame.source_endpoint == setup.remote_endpoint
            && frame.source_epoch == setup.remote_epoch
            && frame.cookie == setup.cookie
    }

    /// One more message is safe here, or refused: nothing else becomes of it.
    pub(crate) fn accept(&mut self, refused: bool) {
        self.accepted = self.accepted.wrapping_add(1);
        self.window = self.window << 1 | u16::from(refused);
    }

    /// A free slot for an unexpected message, taken.
    pub(crate) fn take_slot(&mut self) -> Option<u8> {
        let slot = (0..self.setup.local_credits).find(|slot| self.slots & (1 << slot) == 0)?;
        self.slots |= 1 << slot;
        Some(slot)
    }
}
