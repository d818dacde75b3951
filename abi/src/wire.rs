//! The frame: Ethernet header, Posthorn header, payload, CRC.
//!
//! ```text
//! byte 0        14           72                      72+P          72+P+8
//!  │ Ethernet    │ Posthorn   │ payload, zero padded   │ trailer     │
//!  │ 14 bytes    │ 58 bytes   │ P = 8·⌈length/8⌉       │ CRC, zero   │
//! ```
//!
//! The CRC is CRC-32C (RFC 3720 polynomial, reflected, initial value and final inversion all ones)
//! over every byte before the trailer. The Ethernet frame check sequence is the MAC's own and is not
//! counted here.

use crate::constant::constants;
use crate::status::codes;
use crc::{CRC_32_ISCSI, Crc};

constants! {
    /// All of them.
    CONSTANTS {
        /// Bytes of an Ethernet header: two addresses and the EtherType.
        ETHERNET_HEADER_BYTES: usize = 14;
        /// EtherType of a Posthorn frame: IEEE 802 local experimental 1.
        ETHERTYPE: u16 = 0x88b5;
        /// [`ETHERTYPE`] as the header's little-endian field holds it.
        ETHERTYPE_FIELD: u16 = ETHERTYPE.swap_bytes();
        /// Version of the header.
        VERSION: u8 = 7;
        /// `flags` of an `Eager` frame: the message is to find a receive posted, or to be refused.
        FRAME_READY: u8 = 1 << 0;
        /// `flags` of an `Acknowledge` or `Ask` frame: a request of the reverse direction is missing, since one behind it has come and was dropped.
        FRAME_GAP: u8 = 1 << 1;
        /// `flags` of a `GetAnswer` frame: the get may not be, or the memory answered with an error. It has no payload.
        FRAME_REFUSED: u8 = 1 << 2;
        /// Bytes before the payload, Ethernet header included.
        HEADER_BYTES: usize = FrameHeader::BYTES;
        /// Bytes of payload of a frame of the firmware, [`ManagementBody`].
        MANAGEMENT_BYTES: usize = ManagementBody::BYTES;
        /// Bytes after the payload.
        TRAILER_BYTES: usize = 8;
        /// Bit of `reason` of a drain's frame: it is to be answered.
        DRAIN_ASKS: u8 = 1 << 7;
        /// Bit of `reason` of a drain's frame: its sender hasn't heard of the receiver in this round, whose host is to be told if it hasn't begun.
        DRAIN_ANNOUNCES: u8 = 1 << 6;
        /// Longest frame in bytes.
        FRAME_MAX: usize = HEADER_BYTES + crate::limits::EAGER_MAX + TRAILER_BYTES;
        /// CRC-32C polynomial, reflected.
        CRC_POLYNOMIAL: u32 = 0x82f6_3b78;
    }
}

codes! {
    /// Type of a frame; the class is its high nibble (1 requests, 2 responses, 3 control, 4 firmware).
    FrameType {
        /// Class requests: a tagged message with its whole payload.
        Eager = 0x10,
        /// Class requests: bytes for memory that the receiver has granted the sender. `match_bits` is the remote key, `immediate` the offset in its region.
        Put = 0x11,
        /// Class requests: asks for bytes of memory that the receiver has granted the sender. `match_bits` is the remote key, `immediate` the offset in its region,
        /// `context` how many bytes are wanted.
        Get = 0x12,
        /// Class responses: what a get has asked for, or that it may not be. `sequence` is the number of the `Get`. Nobody keeps it, and it is never sent again by itself:
        /// whoever asked asks again.
        GetAnswer = 0x20,
        /// Class control: acknowledgement and credit only.
        Acknowledge = 0x30,
        /// Class control: the sender of this frame has failed the pair, and not by closing it.
        PairFailed = 0x31,
        /// Class control: sends wait at the sender of this frame for credit, and it has heard of none for long. It is to be told what there is.
        Ask = 0x32,
        /// Class control: the pair has been closed by the sender of this frame, or its endpoint has.
        PairClosed = 0x33,
        /// Class firmware: a frame of a firmware to another card's that belongs to no pair, with a [`ManagementBody`]. The gates hand it to the firmware whatever
        /// its version is, so that cards of different versions can name the difference.
        Handshake = 0x40,
        /// Class firmware: a frame of a firmware that belongs to a pair, with a [`ManagementBody`]. The firmware checks epochs and cookie.
        Management = 0x41,
    }
}

codes! {
    /// What a frame of the firmware says: `kind` of a [`ManagementBody`].
    ManagementKind {
        /// Handshake: asks for a connection.
        ConnectRequest = 1,
        /// Handshake: the connection is accepted, and the sender's gates take frames of it.
        ConnectAccept = 2,
        /// Handshake: the initiator's gates take frames of it too.
        ConnectConfirm = 3,
        /// Handshake: the connection is refused; `reason` says why.
        ConnectRefuse = 4,
        /// Management: the sender has closed the pair in an orderly way.
        Disconnect = 5,
        /// Management: answer to `Disconnect`, also for a pair that isn't there any more.
        DisconnectDone = 6,
        /// Management: asks for a sign of life.
        Alive = 7,
        /// Management: `word` is for the process at the other end.
        Signal = 8,
        /// Management: another peer of the sender has failed. `word` is its [`EndpointAddress`](crate::address::EndpointAddress).
        PeerFailed = 9,
        /// Management: answer to `Alive`, `Signal`, `PeerFailed` and `Revoked`, by `transaction`.
        NoticeDone = 10,
        /// Management: the coordinator of a drain asks for a `DrainReport`. `word` is the set of members that it takes to have failed, a bit for each rank.
        DrainAsk = 11,
        /// Management: the coordinator of a drain proposes `word` as the set of failed members.
        DrainPropose = 12,
        /// Management: the set of failed members of a drain is `word`.
        DrainCommit = 13,
        /// Management: how far a member of a drain has come: [`DrainReport`] in bits 3:0 of `reason`.
        DrainReport = 14,
        /// Management: messages of a group that the receiver is of are revoked. `incarnation` is the group's name, `detail` the context, `word` the match bits, and
        /// `nonce` and `peer_nonce` are the low and the high half of their mask.
        Revoked = 20,
    }
}

codes! {
    /// How far a member of a drain has come, in a frame `DrainReport`.
    DrainReport {
        /// Its host hasn't begun, or has begun another round.
        Idle = 0,
        /// Its host has flushed. `word` is the set of those that it takes to have failed.
        Flushed = 1,
        /// It has accepted the proposal `word` of the member of rank `credits`.
        Accepted = 2,
        /// `word` is decided.
        Decided = 3,
    }
}

/// Field list of [`ManagementBody`].
#[macro_export]
macro_rules! management_body_layout {
    ($apply:ident) => {
        $apply! {
            /// Payload of the frames between firmwares. `kind`, `reason`, `detail` and `transaction` are where they are in every version, so that
            /// cards that don't agree on it can say so.
            ManagementBody, ManagementBodyView, 5 words {
                /// [`ManagementKind`](crate::wire::ManagementKind).
                kind: u8 = 8,
                /// `ConnectRefuse`: [`ConnectReason`](crate::mailbox::ConnectReason). Drains: [`DRAIN_ASKS`](crate::wire::DRAIN_ASKS) and
                /// [`DRAIN_ANNOUNCES`](crate::wire::DRAIN_ANNOUNCES), and of a `DrainReport` the [`DrainReport`](crate::wire::DrainReport).
                reason: u8 = 8,
                /// Detail of the reason. Drains and `Revoked`: the context.
                detail: u16 = 16,
                /// Handshake, `Disconnect` and its answer: a random number of the initiator's. `Signal`, `PeerFailed`, `Revoked`: the sender's count for the pair,
                /// from 1. `Alive`: zero. `NoticeDone`: that of what it answers. Drains: the tag.
                transaction: u32 = 32,
                /// Random word of this incarnation of the sender's endpoint: tells a second connection from one of a card that has forgotten its epoch.
                /// Drains: number of the round. `Revoked`: the tag.
                incarnation: u32 = 32,
                /// Envelopes that the sender grants. `DrainReport`: rank of who proposed what was accepted.
                credits: u8 = 8,
                /// [`VERSION`](crate::wire::VERSION) that the sender speaks.
                version: u8 = 8,
                /// Greatest epoch of the receiver's endpoint that the sender remembers; 0 if none.
                remembered_epoch: u16 = 16,
                /// Sender's half of the cookie. `Revoked`: bits 31:0 of the mask.
                nonce: u32 = 32,
                /// Receiver's half of the cookie, once it is known; else zero. `Revoked`: bits 63:32 of the mask.
                peer_nonce: u32 = 32,
                /// Incarnation of the receiver's endpoint that belongs to `remembered_epoch`.
                remembered_incarnation: u32 = 32,
                /// Handshake: the job that the sender's endpoint is of. Else zero.
                job: u32 = 24,
                /// Zero.
                reserved0: u8 = 8,
                /// `Signal`, `PeerFailed`, `Revoked`, drains: what is said. Handshake, but for `ConnectRefuse`: in bits 31:0 the sender's clock, in bits 63:32 the receiver's, as that of the
                /// last frame of it here said and has gone on since; of a `ConnectRequest` only the first. Else zero.
                word: u64 = 64,
            }
        }
    };
}

/// Field list of [`FrameHeader`].
#[macro_export]
macro_rules! frame_header_layout {
    ($apply:ident) => {
        $apply! {
            /// Header of every frame.
            FrameHeader, FrameHeaderView, 9 words {
                /// Ethernet destination; the least significant byte is first on the wire.
                destination_mac: u64 = 48,
                /// First two bytes of the Ethernet source.
                source_mac_low: u16 = 16,
                /// Last four bytes of the Ethernet source.
                source_mac_high: u32 = 32,
                /// EtherType in network order, so [`ETHERTYPE_FIELD`](crate::wire::ETHERTYPE_FIELD).
                ethertype: u16 = 16,
                /// [`VERSION`](crate::wire::VERSION).
                version: u8 = 8,
                /// [`FrameType`](crate::wire::FrameType).
                frame_type: u8 = 8,
                /// Endpoint on the receiving card.
                destination_endpoint: u16 = 16,
                /// Endpoint on the sending card.
                source_endpoint: u16 = 16,
                /// Pair on the receiving card.
                destination_pair: u16 = 16,
                /// Pair on the sending card.
                source_pair: u16 = 16,
                /// Epoch of the destination endpoint, as the sender knows it.
                destination_epoch: u16 = 16,
                /// Epoch of the source endpoint.
                source_epoch: u16 = 16,
                /// Random number of this connection.
                cookie: u32 = 32,
                /// Number of this frame in its pair and class, from 0. A request that is sent again has the number that it had; a response has that of its request.
                sequence: u32 = 32,
                /// Requests of the reverse direction that are safe at this frame's sender: a running number.
                acknowledge: u32 = 32,
                /// Envelopes of the reverse direction whose credit has been returned: a running number.
                credit: u32 = 32,
                /// Context of the message. Get: bytes that are wanted. Of a put and of a response nothing looks at it.
                context: u16 = 16,
                /// Bytes of payload in this frame.
                payload_length: u16 = 16,
                /// Match bits. Put, get: the remote key.
                match_bits: u64 = 64,
                /// Immediate data. Put, get: the offset.
                immediate: u64 = 64,
                /// Length of the whole message in bytes.
                message_length: u64 = 40,
                /// [`FRAME_READY`](crate::wire::FRAME_READY), [`FRAME_GAP`](crate::wire::FRAME_GAP) or [`FRAME_REFUSED`](crate::wire::FRAME_REFUSED), or 0.
                flags: u8 = 8,
                /// Bit k: request `acknowledge` − 1 − k of the reverse direction was refused: a ready message that found no receive, or a put that may not be.
                refused: u16 = 16,
            }
        }
    };
}

/// `word` of a frame of a handshake: the sender's clock, and the receiver's.
pub const fn clocks_word(own: u32, peer: u32) -> u64 {
    (peer as u64) << 32 | own as u64
}

/// The two clocks of such a word: the sender's, then the receiver's.
pub const fn clocks(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// An Ethernet address as `source_mac_low` and `source_mac_high` have it.
pub const fn split_mac(mac: u64) -> (u16, u32) {
    (mac as u16, (mac >> 16) as u32)
}

/// The Ethernet address of these two.
pub const fn join_mac(low: u16, high: u32) -> u64 {
    (high as u64) << 16 | low as u64
}

use crate::define_layout;
frame_header_layout!(define_layout);
management_body_layout!(define_layout);

/// Length of a frame in bytes, from the length of its payload.
pub const fn frame_bytes(payload_length: usize) -> usize {
    HEADER_BYTES + payload_length.next_multiple_of(8) + TRAILER_BYTES
}

/// CRC-32C of `bytes` (RFC 3720, [`CRC_POLYNOMIAL`] in reflected form), as the trailer holds it.
pub fn crc32c(bytes: &[u8]) -> u32 {
    static CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
    CRC.checksum(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_of_the_check_string_is_that_of_rfc_3720() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(CRC_POLYNOMIAL, CRC_32_ISCSI.poly.reverse_bits());
    }

    #[test]
    fn ethertype_is_in_network_order_on_the_wire() {
        let mut bytes = [0; FrameHeader::BYTES];
        FrameHeader {
            ethertype: ETHERTYPE_FIELD,
            ..Default::default()
        }
        .emit(&mut bytes);
        assert_eq!(bytes[12..14], [0x88, 0xb5]);
    }

    #[test]
    fn the_shortest_frame_is_a_legal_ethernet_frame() {
        assert!(frame_bytes(0) >= 60);
        assert_eq!(frame_bytes(crate::limits::EAGER_MAX), FRAME_MAX);
    }
}
