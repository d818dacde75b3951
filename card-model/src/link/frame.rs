//! Frames as bytes, and what of each pair goes into their headers.

use abi::control::PairSetup;
use abi::request::{FLAG_READY, Opcode, SendRequest};
use abi::wire::{
    ETHERTYPE_FIELD, FRAME_GAP, FRAME_READY, FRAME_REFUSED, FrameHeader, FrameType, HEADER_BYTES,
    TRAILER_BYTES, VERSION, crc32c, frame_bytes, split_mac,
};

use super::{Asked, Owed, SinkNumbers};

/// A frame of this header and payload, with padding and trailer.
pub fn seal(header: &FrameHeader, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; frame_bytes(payload.len())];
    header.emit(&mut frame);
    frame[HEADER_BYTES..][..payload.len()].copy_from_slice(payload);
    let end = frame.len() - TRAILER_BYTES;
    let crc = u64::from(crc32c(&frame[..end])).to_le_bytes();
    frame[end..].copy_from_slice(&crc);
    frame
}

/// A pair, as its frames name it.
#[derive(Clone, Copy, Debug)]
struct Addressee {
    setup: PairSetup,
    /// Number of its next control frame.
    control: u32,
}

/// Makes the frames of the pairs.
#[derive(Clone, Debug)]
pub struct Transmit {
    pairs: Vec<Option<Addressee>>,
    /// Own Ethernet address; the least significant byte is first on the wire.
    pub mac: u64,
}

impl Transmit {
    /// So many pairs, none of which is connected.
    pub fn new(pairs: usize) -> Self {
        Self {
            pairs: vec![None; pairs],
            mac: 0,
        }
    }

    /// Connects a pair or forgets it.
    pub fn set(&mut self, pair: u16, setup: Option<PairSetup>) {
        if let Some(entry) = self.pairs.get_mut(usize::from(pair)) {
            *entry = setup.map(|setup| Addressee { setup, control: 0 });
        }
    }

    /// The frame of a message, a put or a get, with the numbers of the reverse direction.
    pub fn request(
        &self,
        pair: u16,
        sequence: u32,
        request: &SendRequest,
        payload: &[u8],
        numbers: SinkNumbers,
    ) -> Option<Vec<u8>> {
        let setup = &self.pairs.get(usize::from(pair))?.as_ref()?.setup;
        let ready = request.flags & FLAG_READY != 0;
        let (frame_type, context) = match Opcode::from_code(request.opcode) {
            Some(Opcode::Put) => (FrameType::Put, request.context),
            // It has no payload, and says how much it wants.
            Some(Opcode::Get) => (FrameType::Get, request.length as u16),
            _ => (FrameType::Eager, request.context),
        };
        let header = FrameHeader {
            frame_type: frame_type.code(),
            sequence,
            context,
            payload_length: payload.len() as u16,
            match_bits: request.match_bits,
            immediate: request.immediate,
            message_length: payload.len() as u64,
            flags: if ready { FRAME_READY } else { 0 },
            ..self.header(pair, setup, numbers)
        };
        Some(seal(&header, payload))
    }

    /// The frame that answers a get: with its bytes, or, if there are none to be had, as refused.
    pub fn answer(
        &self,
        asked: &Asked,
        payload: Option<&[u8]>,
        numbers: SinkNumbers,
    ) -> Option<Vec<u8>> {
        let setup = &self.pairs.get(usize::from(asked.pair))?.as_ref()?.setup;
        let bytes = payload.unwrap_or_default();
        let header = FrameHeader {
            frame_type: FrameType::GetAnswer.code(),
            sequence: asked.number,
            payload_length: bytes.len() as u16,
            message_length: bytes.len() as u64,
            flags: if payload.is_none() { FRAME_REFUSED } else { 0 },
            ..self.header(asked.pair, setup, numbers)
        };
        Some(seal(&header, bytes))
    }

    /// A control frame, which is given its number.
    pub fn control(&mut self, pair: u16, owed: &Owed, numbers: SinkNumbers) -> Option<Vec<u8>> {
        let addressee = self.pairs.get_mut(usize::from(pair))?.as_mut()?;
        let sequence = addressee.control;
        addressee.control = sequence.wrapping_add(1);
        let setup = addressee.setup;
        let header = FrameHeader {
            frame_type: owed.frame_type.code(),
            sequence,
            flags: if owed.misses { FRAME_GAP } else { 0 },
            ..self.header(pair, &setup, numbers)
        };
        Some(seal(&header, &[]))
    }

    fn header(&self, pair: u16, setup: &PairSetup, numbers: SinkNumbers) -> FrameHeader {
        let (source_mac_low, source_mac_high) = split_mac(self.mac);
        FrameHeader {
            destination_mac: setup.remote_mac,
            source_mac_low,
            source_mac_high,
            ethertype: ETHERTYPE_FIELD,
            version: VERSION,
            destination_endpoint: setup.remote_endpoint,
            source_endpoint: setup.endpoint.into(),
            destination_pair: setup.remote_pair,
            source_pair: pair,
            destination_epoch: setup.remote_epoch,
            source_epoch: setup.epoch,
            cookie: setup.cookie,
            acknowledge: numbers.accepted,
            credit: numbers.freed,
            refused: numbers.refused,
            ..FrameHeader::default()
        }
    }
}
