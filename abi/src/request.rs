//! Work requests: one 64-byte entry of a send ring or of a list ring.
//!
//! An endpoint has two rings. Sends and their cancels go through the *send ring*; receives, their
//! cancels, probes and claims go through the *list ring*, each in order (rings contract). `request` is the
//! host's handle: the completion carries it back, and a cancel names its target by it. The host keeps
//! it unique among the endpoint's outstanding requests.
//!
//! A *claim* takes a message out of the unexpected ones for its endpoint alone. The message keeps its slot and its credit
//! until it is received or discarded, by the handle that the claim's completion gives: the [number of the message's slot](slot_number)
//! below the number of the claim, so that the handle of an earlier claim names nothing.
//!
//! A *gather*, a send with [`FLAG_GATHER`], has a buffer of up to [`MAX_SEGMENTS`] segments, each with a key of its own. It takes two entries of the
//! ring: the send itself names the first segment, and a [`SendSegments`] entry behind it the others. Both are posted by one doorbell. The message
//! is the segments one after the other, and its length their sum. An entry of the second kind that isn't behind such a send is refused as
//! `InvalidRequest`; so is a gather without it, and then the entry behind is looked at as a request of its own.
//!
//! An inline send, one with [`FLAG_INLINE`], carries its payload itself, in the last 16 bytes of the entry: the card reads no buffer for it, and
//! looks neither at `key` nor at `address`. A longer one, or one that is a gather as well, is refused as `InvalidRequest`. Bytes beyond `length` aren't
//! looked at.
//!
//! A send with [`FLAG_ERRORS_ONLY`] writes no completion if it ends with `Success`; any other end completes as ever. The card reserves an entry of the
//! completion queue all the same, until the send has ended. Sends that have left the card end in their pair's order. So when one of them completes with
//! `Success` or `NotReady`, those of the pair that were posted before it, that were taken and that haven't completed, have ended with `Success`.
//! A cancelled send says nothing of those before it. A failure of the pair, or the closing of the pair or the endpoint, completes those that
//! haven't ended: when `ClosePair` or `CloseEndpoint` has been answered, a send that the card had fetched and that hasn't completed
//! has ended with `Success`.

use crate::constant::constants;
use crate::limits::{MAX_CREDITS, UNIT_PLACES};
use crate::status::codes;

constants! {
    /// Sizes.
    SIZES {
        /// Size of a work request in bytes.
        REQUEST_BYTES: usize = 64;
        /// Bits of a claim's handle that are the number of the message's slot, pair × `MAX_CREDITS` + its number in the pair; those above are the number
        /// of the claim, from 1.
        CLAIM_SLOT_BITS: u32 = 16;
        /// Most segments of a gather: one in the request, the others in the entry behind it.
        MAX_SEGMENTS: usize = 4;
        /// Longest payload of an inline send.
        INLINE_BYTES: usize = 16;
    }
}

codes! {
    /// Operation of a work request.
    Opcode {
        /// Send ring: send the buffer to the peer of `pair`.
        TaggedSend = 0x01,
        /// Send ring: cancel the send of `pair`, tagged, a put or a get, whose handle is `target`, if it still waits.
        CancelSend = 0x02,
        /// Send ring: the second entry of a send with `FLAG_GATHER`, no request of its own. Needs `CAPABILITY_GATHER`.
        Segments = 0x03,
        /// Send ring: write the buffer into memory that the peer of `pair` has granted: `match_bits` is the remote key, `immediate` the offset of the first byte in
        /// the key's region. Nothing looks at `context`. Needs `CAPABILITY_PUT`.
        Put = 0x04,
        /// Send ring: read into the buffer from memory that the peer of `pair` has granted: `match_bits` is the remote key, `immediate` the offset of the first byte in
        /// the key's region. Nothing looks at `context`. Needs `CAPABILITY_GET`.
        Get = 0x05,
        /// List ring: post a receive.
        TaggedReceive = 0x10,
        /// List ring: cancel the posted receive whose handle is `target`.
        Cancel = 0x11,
        /// List ring: look for an unexpected message without removing it.
        Probe = 0x12,
        /// List ring: look for an unexpected message and take it for this endpoint.
        Claim = 0x13,
        /// List ring: receive the claimed message whose handle is `target` into the buffer. Source, context and match bits are not looked at.
        ReceiveClaimed = 0x14,
        /// List ring: drop the claimed message whose handle is `target`.
        Discard = 0x15,
    }
}

constants! {
    /// Bits of `flags`.
    FLAGS {
        /// `flags` of a send: it fails as `NotReady` unless a receive for it is posted when it arrives.
        FLAG_READY: u8 = 1 << 0;
        /// `flags` of a send: it completes only if it doesn't end with `Success`. Needs `CAPABILITY_ERRORS_ONLY`.
        FLAG_ERRORS_ONLY: u8 = 1 << 1;
        /// `flags` of a send: the entry behind it names more segments of the buffer. Needs `CAPABILITY_GATHER`.
        FLAG_GATHER: u8 = 1 << 2;
        /// `flags` of a send: the last [`INLINE_BYTES`] bytes of the request are its payload, and there is no buffer. Needs `CAPABILITY_INLINE`.
        FLAG_INLINE: u8 = 1 << 3;
        /// `flags` of a receive, a probe or a claim: any source matches, `pair` is ignored.
        FLAG_ANY_SOURCE: u8 = 1 << 0;
        /// `flags` of a receive, a probe or a claim: the host has the completion of every request that was refused as `Behind`, and
        /// posts them again from this one on, in order. Without it they stay refused.
        FLAG_RESUME: u8 = 1 << 1;
        /// `flags` of a receive: it takes message after message, each behind the one before in its buffer, until less than `min_free` bytes are left.
        FLAG_MULTI: u8 = 1 << 2;
        /// `flags` of a receive, a probe or a claim: the host keeps nothing that is to be posted behind this one. From a refusal for want of room
        /// until such a request comes, the card assumes that the host still holds receives back, and queues ready messages of the endpoint like others.
        FLAG_NOTHING_KEPT: u8 = 1 << 3;
        /// `flags` of a claim: no rule refuses it, so that it takes what came before a rule was set. Needs `CAPABILITY_RULES`.
        FLAG_PAST_RULES: u8 = 1 << 4;
    }
}

/// Number of a slot on its card: pair × `MAX_CREDITS` + its number in the pair.
pub const fn slot_number(pair: u16, slot: u8) -> u16 {
    pair * MAX_CREDITS + slot as u16
}

/// Pair, and number in the pair, of a slot.
pub const fn pair_and_slot(slot: u16) -> (u16, u8) {
    (slot / MAX_CREDITS, (slot % MAX_CREDITS) as u8)
}

/// Units of `UNIT_PLACES` that so many envelopes need.
pub const fn place_units(credits: u16) -> u16 {
    credits.div_ceil(UNIT_PLACES)
}

/// Handle of a claim, from its number and that of its message's slot.
pub const fn claim_handle(number: u16, slot: u16) -> u32 {
    (number as u32) << CLAIM_SLOT_BITS | slot as u32
}

/// Number of a claim, from its handle. 0 is no claim's.
pub const fn claim_number(handle: u32) -> u16 {
    (handle >> CLAIM_SLOT_BITS) as u16
}

/// Number of the slot of the message that a claim has taken, from the claim's handle.
pub const fn claim_slot(handle: u32) -> u16 {
    handle as u16
}

/// Field list of [`SendRequest`].
#[macro_export]
macro_rules! send_request_layout {
    ($apply:ident) => {
        $apply! {
            /// Entry of a send ring.
            SendRequest, SendRequestView, 8 words {
                /// [`Opcode`](crate::request::Opcode): `TaggedSend`, `CancelSend`, `Put` or `Get`.
                opcode: u8 = 8,
                /// [`FLAG_READY`](crate::request::FLAG_READY) of a `TaggedSend`, [`FLAG_GATHER`](crate::request::FLAG_GATHER) and [`FLAG_INLINE`](crate::request::FLAG_INLINE) of it or a `Put`, [`FLAG_ERRORS_ONLY`](crate::request::FLAG_ERRORS_ONLY) of any of the three, or 0.
                flags: u8 = 8,
                /// Pair to send on, or of the send to cancel; it must belong to the endpoint.
                pair: u16 = 16,
                /// Communicator context.
                context: u16 = 16,
                /// Zero.
                reserved0: u16 = 16,
                /// Host's handle, returned in the completion.
                request: u32 = 32,
                /// Local key of the region that holds the buffer. Not looked at when `length` is 0 or the send is inline.
                key: u32 = 32,
                /// Bits that the receive is matched against. Put, get: the remote key.
                match_bits: u64 = 64,
                /// Delivered with the message, not matched. Put, get: offset of the first byte in the region of the key.
                immediate: u64 = 64,
                /// Card address of the buffer, any alignment. Not looked at when the send is inline.
                address: u64 = 64,
                /// Length in bytes.
                length: u64 = 64,
                /// Cancel: handle of the send to cancel. Inline send: bytes 0 to 3 of the payload.
                target: u32 = 32,
                /// Inline send: bytes 4 to 7 of the payload. Zero otherwise.
                inline1: u32 = 32,
                /// Inline send: bytes 8 to 15 of the payload. Zero otherwise.
                inline2: u64 = 64,
            }
        }
    };
}

/// Field list of [`SendSegments`].
#[macro_export]
macro_rules! send_segments_layout {
    ($apply:ident) => {
        $apply! {
            /// Second entry of a send with `FLAG_GATHER`: the segments of its buffer behind that which the send itself names.
            SendSegments, SendSegmentsView, 8 words {
                /// [`Opcode`](crate::request::Opcode): `Segments`.
                opcode: u8 = 8,
                /// Zero.
                reserved0: u8 = 8,
                /// Zero.
                reserved1: u16 = 16,
                /// Zero.
                reserved2: u32 = 32,
                /// Handle of the send.
                request: u32 = 32,
                /// Zero.
                reserved3: u32 = 32,
                /// Card address of segment 2, any alignment.
                address1: u64 = 64,
                /// Its length in bytes. 0: there is none.
                length1: u32 = 32,
                /// Local key of the region that holds it. Not looked at when its length is 0.
                key1: u32 = 32,
                /// Card address of segment 3, any alignment.
                address2: u64 = 64,
                /// Its length in bytes. 0: there is none.
                length2: u32 = 32,
                /// Local key of the region that holds it. Not looked at when its length is 0.
                key2: u32 = 32,
                /// Card address of segment 4, any alignment.
                address3: u64 = 64,
                /// Its length in bytes. 0: there is none.
                length3: u32 = 32,
                /// Local key of the region that holds it. Not looked at when its length is 0.
                key3: u32 = 32,
            }
        }
    };
}

/// Field list of [`ListRequest`].
#[macro_export]
macro_rules! list_request_layout {
    ($apply:ident) => {
        $apply! {
            /// Entry of a list ring.
            ListRequest, ListRequestView, 8 words {
                /// [`Opcode`](crate::request::Opcode): one of those of the list ring.
                opcode: u8 = 8,
                /// [`FLAG_ANY_SOURCE`](crate::request::FLAG_ANY_SOURCE), [`FLAG_RESUME`](crate::request::FLAG_RESUME), [`FLAG_MULTI`](crate::request::FLAG_MULTI), [`FLAG_NOTHING_KEPT`](crate::request::FLAG_NOTHING_KEPT), [`FLAG_PAST_RULES`](crate::request::FLAG_PAST_RULES), or 0.
                flags: u8 = 8,
                /// Source: the pair whose messages match, unless any source does.
                pair: u16 = 16,
                /// Communicator context.
                context: u16 = 16,
                /// Zero.
                reserved0: u16 = 16,
                /// Host's handle, returned in the completion.
                request: u32 = 32,
                /// Local key of the region that holds the buffer. Not looked at when `length` is 0.
                key: u32 = 32,
                /// Match bits.
                match_bits: u64 = 64,
                /// Bits of `match_bits` that don't have to agree.
                ignore_bits: u64 = 64,
                /// Card address of the buffer, any alignment.
                address: u64 = 64,
                /// Size of the buffer in bytes.
                length: u64 = 64,
                /// Cancel: handle of the receive to cancel. `ReceiveClaimed`, `Discard`: handle of the claim.
                target: u32 = 32,
                /// Receive with `FLAG_MULTI`: the message after which less than so many bytes of the buffer, or none, are left is its last. Zero otherwise.
                min_free: u32 = 32,
                /// Zero.
                reserved2: u64 = 64,
            }
        }
    };
}

use crate::define_layout;
send_request_layout!(define_layout);
send_segments_layout!(define_layout);
list_request_layout!(define_layout);

/// A piece of a send's buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Local key of the region that holds it.
    pub key: u32,
    /// Card address.
    pub address: u64,
    /// Length in bytes.
    pub length: u64,
}

impl SendRequest {
    /// Whether the request carries its payload itself.
    pub const fn is_inline(&self) -> bool {
        self.flags & FLAG_INLINE != 0
    }

    /// The same send with these bytes as its payload, instead of a buffer.
    ///
    /// # Panics
    /// If there are more than [`INLINE_BYTES`].
    #[must_use]
    pub fn with_inline(mut self, payload: &[u8]) -> Self {
        let mut bytes = [0; INLINE_BYTES];
        bytes[..payload.len()].copy_from_slice(payload);
        let all = u128::from_le_bytes(bytes);
        (self.key, self.address) = (0, 0);
        self.flags |= FLAG_INLINE;
        self.length = payload.len() as u64;
        self.target = all as u32;
        self.inline1 = (all >> 32) as u32;
        self.inline2 = (all >> 64) as u64;
        self
    }

    /// The last bytes of the request, of which an inline send's first `length` are its payload.
    pub const fn inline_bytes(&self) -> [u8; INLINE_BYTES] {
        let low = self.target as u128 | (self.inline1 as u128) << 32;
        (low | (self.inline2 as u128) << 64).to_le_bytes()
    }

    /// The buffer that the request itself names: the whole, or the first segment of a gather.
    pub const fn segment(&self) -> Segment {
        Segment {
            key: self.key,
            address: self.address,
            length: self.length,
        }
    }
}

impl SendSegments {
    /// The second entry of the send `request`, with these segments. Missing ones are empty.
    ///
    /// # Panics
    /// If there are `MAX_SEGMENTS` or more, or if one is longer than 32 bits tell.
    pub fn new(request: u32, segments: &[Segment]) -> Self {
        assert!(
            segments.len() < MAX_SEGMENTS,
            "the first segment is in the send"
        );
        let get = |at: usize| {
            let segment = segments.get(at).copied().unwrap_or_default();
            assert!(
                segment.length <= u64::from(u32::MAX),
                "a segment is too long"
            );
            (segment.address, segment.length as u32, segment.key)
        };
        let (address1, length1, key1) = get(0);
        let (address2, length2, key2) = get(1);
        let (address3, length3, key3) = get(2);
        Self {
            opcode: Opcode::Segments.code(),
            request,
            address1,
            length1,
            key1,
            address2,
            length2,
            key2,
            address3,
            length3,
            key3,
            ..Self::default()
        }
    }

    /// The segments, in order.
    pub fn segments(&self) -> [Segment; MAX_SEGMENTS - 1] {
        [
            (self.address1, self.length1, self.key1),
            (self.address2, self.length2, self.key2),
            (self.address3, self.length3, self.key3),
        ]
        .map(|(address, length, key)| Segment {
            key,
            address,
            length: length.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_survive_their_entry() {
        let segment = |n: u64| Segment {
            key: 0x1000 + n as u32,
            address: 0xffff_0000_0000_0000 + n,
            length: 10 * n,
        };
        let entry = SendSegments::new(9, &[segment(1), segment(2)]);
        let again = SendSegments::from_words(&entry.to_words());
        assert_eq!(
            again.segments(),
            [segment(1), segment(2), Segment::default()]
        );
        let fields = SendSegments::FIELDS.iter().chain(SendRequest::FIELDS);
        let at = |name| {
            fields
                .clone()
                .filter(move |f| f.name == name)
                .map(|f| f.lsb)
        };
        for name in ["opcode", "request"] {
            let places: [usize; 2] = core::array::from_fn(|k| at(name).nth(k).unwrap());
            assert_eq!(
                places[0], places[1],
                "a card without gather refuses the entry by `{name}`"
            );
        }
    }

    #[test]
    fn an_inline_payload_is_the_last_bytes_of_its_request() {
        let payload: [u8; INLINE_BYTES] = core::array::from_fn(|at| 0xa0 + at as u8);
        let words = SendRequest::default().with_inline(&payload).to_words();
        let bytes: [[u8; 8]; 2] = [words[6].to_le_bytes(), words[7].to_le_bytes()];
        assert_eq!(bytes.as_flattened(), payload);
        let short = SendRequest::from_words(&words).with_inline(&payload[..3]);
        assert_eq!(
            short.inline_bytes()[..4],
            [payload[0], payload[1], payload[2], 0]
        );
        assert!(short.is_inline() && short.length == 3);
    }

    #[test]
    fn a_claims_handle_names_its_message_and_itself() {
        let slot = slot_number(0x3ff, 63);
        assert_eq!(slot, 0xffff);
        let handle = claim_handle(0xabcd, slot);
        assert_eq!(handle, 0xabcd_ffff);
        assert_eq!(claim_number(handle), 0xabcd);
        assert_eq!(pair_and_slot(claim_slot(handle)), (0x3ff, 63));
    }
}
