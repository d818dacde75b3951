//! The words of a frame's header, from what is known of its pair and its message.
//!
//! ```text
//!   sender, peer, message, numbers ──► header ──► word `index` of it
//! ```

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use crate::prelude::*;
use crate::types::{FrameHeader, Message};
use abi::request::FLAG_READY;
use abi::wire;

/// Words of the header.
pub(super) const HEADER_WORDS: usize = wire::HEADER_BYTES / 8;

const _: () = assert!(
    wire::FRAME_READY == FLAG_READY,
    "a frame has the flags of its request"
);

/// What a frame to a peer says about it.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Peer {
    pub connected: Bit,
    pub mac: Bits<48>,
    pub endpoint: Bits<16>,
    pub remote_endpoint: Bits<16>,
    pub remote_pair: Bits<16>,
    pub epoch: Bits<16>,
    pub remote_epoch: Bits<16>,
    pub cookie: Bits<32>,
}

/// The numbers that a frame carries.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Carried {
    /// The frame's own.
    pub sequence: Bits<32>,
    pub acknowledge: Bits<32>,
    pub credit: Bits<32>,
    pub refused: Bits<16>,
}

/// Puts the header together.
#[block]
pub(super) struct Header {
    /// Address of the card.
    pub sender: Signal<In, Bits<48>>,
    pub peer: Signal<In, Peer>,
    /// `abi::wire::FrameType`.
    pub frame_type: Signal<In, Bits<8>>,
    /// Of a frame without a message all but the pair is zero. `length` is that of the payload, also of a get.
    pub message: Signal<In, Message>,
    pub carried: Signal<In, Carried>,
    /// Word that is wanted.
    pub index: Signal<In, Bits<16>>,
    /// It; zero beyond the header.
    pub word: Signal<Out, Bits<64>>,
    fields: Signal<Local, FrameHeader>,
    bits: Signal<Local, Bits<576>>,
}

#[block]
impl Logic for Header {
    fn update(&mut self) {
        self.fields.next = FrameHeader::default();
        self.fields.next.ethertype = wire::ETHERTYPE_FIELD;
        self.fields.next.version = wire::VERSION;
        self.fields.next.destination_mac = self.peer.val().mac;
        self.fields.next.source_mac_low = bit_cast::<16, 48>(self.sender.val());
        self.fields.next.source_mac_high = self.sender.val().get_bits::<32>(16);
        self.fields.next.frame_type = self.frame_type.val();
        self.fields.next.destination_endpoint = self.peer.val().remote_endpoint;
        self.fields.next.source_endpoint = self.peer.val().endpoint;
        self.fields.next.destination_pair = self.peer.val().remote_pair;
        self.fields.next.source_pair = self.message.val().pair;
        self.fields.next.destination_epoch = self.peer.val().remote_epoch;
        self.fields.next.source_epoch = self.peer.val().epoch;
        self.fields.next.cookie = self.peer.val().cookie;
        self.fields.next.sequence = self.carried.val().sequence;
        self.fields.next.acknowledge = self.carried.val().acknowledge;
        self.fields.next.credit = self.carried.val().credit;
        self.fields.next.refused = self.carried.val().refused;
        self.fields.next.context = self.message.val().context;
        self.fields.next.payload_length = self.message.val().length;
        self.fields.next.match_bits = self.message.val().match_bits;
        self.fields.next.immediate = self.message.val().immediate;
        self.fields.next.message_length = bit_cast::<40, 16>(self.message.val().length);
        self.fields.next.flags = self.message.val().flags;
        self.bits.next = self.fields.val().into();
        self.word.next = 0.into();
        for k in 0..HEADER_WORDS {
            if self.index.val() == k.to_bits() {
                self.word.next = self.bits.val().get_bits::<64>(64 * k);
            }
        }
    }
}
