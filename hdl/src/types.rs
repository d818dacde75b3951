//! What flows between the blocks: the layouts of `abi` as `LogicStruct`s with the same bits, and the
//! streams that never leave the card. `docs/src/interfaces.md` says which block sends what to which other.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use abi::{
    access_report_layout, card_setup_layout, completion_layout, endpoint_setup_layout,
    event_layout, event_setup_layout, fence_setup_layout, frame_header_layout, grant_setup_layout,
    list_request_layout, match_setup_layout, mint_setup_layout, pair_report_layout,
    pair_setup_layout, permission_setup_layout, region_setup_layout, ring_setup_layout,
    rule_setup_layout, send_request_layout, send_segments_layout, shut_out_report_layout,
    shut_out_setup_layout,
};
use rust_hdl::prelude::*;

/// What a [`MatchCommand`] asks for. The numbers are those of the pin `monitor_match_operation`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, LogicState)]
pub enum Operation {
    /// A message has come: the oldest posted receive that matches it is removed.
    Arrive,
    /// The unexpected message at this place is removed.
    Remove,
    /// A receive: the earliest unexpected message that matches is removed; if there is none, append it to the posted.
    Post,
    /// The endpoint's posted receive of this handle is removed.
    Cancel,
    /// The earliest unexpected message that matches; it stays.
    Probe,
    /// Some posted receive that names this pair, and no other would do, is removed.
    TakePostedOfPair,
    /// Some posted receive of this endpoint is removed.
    TakePostedOfEndpoint,
    /// The earliest unexpected message of this pair is removed.
    TakeUnexpectedOfPair,
    /// The earliest unexpected message that matches is removed; nothing is posted.
    Claim,
}

impl Operation {
    /// Every operation, by number.
    pub const ALL: [Operation; 9] = [
        Operation::Arrive,
        Operation::Remove,
        Operation::Post,
        Operation::Cancel,
        Operation::Probe,
        Operation::TakePostedOfPair,
        Operation::TakePostedOfEndpoint,
        Operation::TakeUnexpectedOfPair,
        Operation::Claim,
    ];
}

/// What a look-up is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, LogicState)]
pub enum Search {
    /// The oldest receive of the key; `commit` removes it.
    Arrive,
    /// The queue of the key; `commit` appends a receive to it.
    Post,
    /// The receive of this handle; `commit` removes it.
    Cancel,
    /// Any receive that names this source; `commit` removes it.
    OfPair,
    /// Any receive of this endpoint; `commit` removes it.
    OfEndpoint,
    /// The slot of a receive that has been found by its handle; made here.
    Unlink,
}

/// How a payload goes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, LogicState)]
pub enum Way {
    /// There is none: something only ends.
    Ends,
    /// From the wire to a posted buffer.
    Hit,
    /// From the wire to memory that the peer was granted.
    Put,
    /// From the wire to a slot.
    Slot,
    /// From a slot to a buffer.
    Copy,
    /// From the wire to nowhere.
    Drop,
}

/// A struct that can be built from its bits: the bridge between memory words and fields.
pub trait Unpack<const N: usize>: Sized {
    /// The struct whose packed form, first field least significant, is `bits`.
    fn unpack(bits: Bits<N>) -> Self;
    /// The packed form.
    fn pack(self) -> Bits<N>;
}

macro_rules! logic_struct {
    ($(#[$meta:meta])* $name:ident, $view:ident, $words:literal words {
        $($(#[$doc:meta])+ $field:ident : $ty:ty = $width:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
        pub struct $name { $($(#[$doc])+ pub $field: Bits<$width>,)* }

        impl Unpack<{ 64 * $words }> for $name {
            fn unpack(bits: Bits<{ 64 * $words }>) -> Self {
                let mut at = 0;
                $(let $field = bits.get_bits::<$width>(at); at += $width;)*
                debug_assert_eq!(at, 64 * $words);
                Self { $($field),* }
            }

            fn pack(self) -> Bits<{ 64 * $words }> {
                let mut bits = Bits::default();
                let mut at = 0;
                $(bits.set_bits::<$width>(at, self.$field); at += $width;)*
                debug_assert_eq!(at, 64 * $words);
                bits
            }
        }

        impl From<Bits<{ 64 * $words }>> for $name {
            fn from(bits: Bits<{ 64 * $words }>) -> Self {
                Self::unpack(bits)
            }
        }
    };
}

send_request_layout!(logic_struct);
send_segments_layout!(logic_struct);
list_request_layout!(logic_struct);
completion_layout!(logic_struct);
event_layout!(logic_struct);
frame_header_layout!(logic_struct);
card_setup_layout!(logic_struct);
match_setup_layout!(logic_struct);
event_setup_layout!(logic_struct);
ring_setup_layout!(logic_struct);
endpoint_setup_layout!(logic_struct);
pair_setup_layout!(logic_struct);
pair_report_layout!(logic_struct);
shut_out_setup_layout!(logic_struct);
shut_out_report_layout!(logic_struct);
region_setup_layout!(logic_struct);
rule_setup_layout!(logic_struct);
grant_setup_layout!(logic_struct);
mint_setup_layout!(logic_struct);
permission_setup_layout!(logic_struct);
fence_setup_layout!(logic_struct);
access_report_layout!(logic_struct);

macro_rules! streams {
    ($($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $field:ident : $ty:ty,)* })*) => {$(
        $(#[$meta])*
        #[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
        pub struct $name { $($(#[$doc])* pub $field: $ty,)* }
    )*};
}

streams! {
    /// A write to a doorbell page.
    Doorbell {
        /// Endpoint of the page.
        endpoint: Bits<8>,
        /// Byte offset in the page.
        offset: Bits<8>,
        /// Value written.
        value: Bits<32>,
    }
    /// A piece of a gather's buffer behind the first.
    Segment {
        /// Card address.
        address: Bits<64>,
        /// Local key of its region.
        key: Bits<32>,
        /// Length in bytes. 0: there is none.
        length: Bits<11>,
    }
    /// Those of a send. All are empty if it is no gather.
    Segments {
        /// Behind the one that the request names.
        second: Segment,
        /// Behind that.
        third: Segment,
        /// The last.
        fourth: Segment,
    }
    /// A request of a send ring.
    FetchedSend {
        /// Endpoint that posted it.
        endpoint: Bits<8>,
        /// Its protection domain.
        domain: Bits<8>,
        /// The ring entry. `length` of a gather is the sum of its segments'; if that is more than `EAGER_MAX`, any such length.
        request: SendRequest,
        /// Segments behind that which it names itself. Their lengths are right if the sum is at most `EAGER_MAX`.
        segments: Segments,
    }
    /// A request of a list ring.
    FetchedList {
        /// Endpoint that posted it.
        endpoint: Bits<8>,
        /// Its protection domain.
        domain: Bits<8>,
        /// `abi::completion::CompletionKind` of its opcode. This and what follows is of the opcode's row in `abi::opcode`.
        kind: Bits<8>,
        /// It names a buffer.
        buffer: Bit,
        /// Its pair has to be one of the endpoint's, unless any source matches.
        needs_pair: Bit,
        /// Its target is the handle of a claim.
        names_claim: Bit,
        /// The ring entry.
        request: ListRequest,
    }
    /// A completion to write.
    WriteCompletion {
        /// Endpoint whose queue it goes to.
        endpoint: Bits<8>,
        /// The entry; the phase is set by the writer.
        entry: Completion,
    }
    /// An event to raise.
    RaiseEvent {
        /// Endpoint whose queue it goes to.
        endpoint: Bits<8>,
        /// `abi::event::Cause`.
        cause: Bits<8>,
        /// Pair concerned, all ones if none is.
        pair: Bits<16>,
        /// Depends on the cause.
        info: Bits<64>,
    }
    /// A send with a credit, on its way to the wire.
    SendJob {
        /// Pair.
        pair: Bits<16>,
        /// Protection domain of the endpoint.
        domain: Bits<8>,
        /// Context.
        context: Bits<16>,
        /// Length in bytes, at most `EAGER_MAX`.
        length: Bits<16>,
        /// Match bits.
        match_bits: Bits<64>,
        /// Immediate data.
        immediate: Bits<64>,
        /// It is to find a receive posted.
        ready: Bit,
        /// It is a put: `match_bits` is the remote key, `immediate` the offset.
        put: Bit,
        /// It is a get: the same, and `length` what is wanted in the buffer, which isn't read.
        get: Bit,
        /// It is the answer of get `number` of the peer: `length` bytes of the memory that the remote key `match_bits` opens for it, from the
        /// offset `immediate` on. There is no buffer.
        answer: Bit,
        /// There is no buffer: the payload is `address`, `key` and `tail`, the first byte in the lowest bits, and is at most `INLINE_BYTES` long.
        inline: Bit,
        /// Card address of the buffer.
        address: Bits<64>,
        /// Local key of its region.
        key: Bits<32>,
        /// The last bytes of an inline payload.
        tail: Bits<32>,
        /// Segments behind that of `address` and `key`, which is as long as they leave of `length`.
        segments: Segments,
        /// It has been sent before, as `number` of its pair.
        again: Bit,
        /// Its number, if it has.
        number: Bits<32>,
        /// With `answer`: the peer may read nothing. Nobody is asked.
        refused: Bit,
    }
    /// A message, a put, a get, or the answer of one, whose payload is in the card: what its frame says of it.
    Message {
        /// Pair.
        pair: Bits<16>,
        /// Context.
        context: Bits<16>,
        /// Length in bytes, at most `EAGER_MAX`.
        length: Bits<16>,
        /// Match bits.
        match_bits: Bits<64>,
        /// Immediate data.
        immediate: Bits<64>,
        /// `FLAG_READY` of the request, or 0.
        flags: Bits<8>,
        /// It is a put.
        put: Bit,
        /// It is a get, of `length` bytes; there is no payload.
        get: Bit,
        /// It is the answer of get `number` of the peer.
        answer: Bit,
        /// With `answer`: the bytes may not be read, or can't. There is no payload.
        refused: Bit,
        /// It has been sent before, as `number` of its pair.
        again: Bit,
        /// Its number, if it has.
        number: Bits<32>,
    }
    /// What a peer's frame says about the sends of a pair.
    Progress {
        /// Pair.
        pair: Bits<16>,
        /// Running number of sends that are safe at the peer.
        acknowledge: Bits<32>,
        /// Running number of credits returned.
        credit: Bits<32>,
        /// The peer asks for an acknowledgement.
        ask: Bit,
        /// The peer misses a request: the pair is to go back.
        gap: Bit,
        /// A request of the peer is missing here: it is to be told.
        misses: Bit,
        /// Bit k: send `acknowledge` − 1 − k was refused.
        refused: Bits<16>,
    }
    /// A frame that a pair is to send although nothing of it has moved.
    Mark {
        /// Pair.
        pair: Bits<16>,
        /// Ask the peer; otherwise answer it.
        ask: Bit,
        /// Tell it that a request of it is missing.
        misses: Bit,
    }
    /// A frame without a message.
    ControlFrame {
        /// Pair.
        pair: Bits<16>,
        /// `abi::wire::FrameType`.
        frame_type: Bits<8>,
        /// It says that a request of the peer is missing.
        misses: Bit,
    }
    /// An arriving message, a put, a get, or the answer of a get.
    Arrival {
        /// Pair that it came by: the source, stamped by the card.
        pair: Bits<16>,
        /// Local endpoint of the pair.
        endpoint: Bits<8>,
        /// Context.
        context: Bits<16>,
        /// Match bits.
        match_bits: Bits<64>,
        /// Immediate data.
        immediate: Bits<64>,
        /// Length in bytes, at most `EAGER_MAX`.
        length: Bits<16>,
        /// It is to find a receive posted, or to be refused.
        ready: Bit,
        /// It is no message. A put, and a get: `match_bits` is the remote key, `immediate` the offset.
        put: Bit,
        /// With `put`: it is a get of `length` bytes, and has no payload.
        get: Bit,
        /// With `get`: it has come before, and is only answered again.
        again: Bit,
        /// With `put`: it is the answer of get `number` of this card. `match_bits` is the card address of the get's buffer, the low half of
        /// `immediate` its key, and the byte above its protection domain.
        answer: Bit,
        /// With `answer`: the peer refuses. There is no payload.
        refused: Bit,
        /// Number of the get that this is, or answers.
        number: Bits<32>,
    }
    /// A get of a peer, to be answered.
    RemoteGet {
        /// Pair that its frame came by.
        pair: Bits<16>,
        /// Remote key.
        key: Bits<64>,
        /// First byte, from the first of the region.
        offset: Bits<64>,
        /// Bytes wanted, at most `EAGER_MAX`.
        length: Bits<16>,
        /// Its number.
        number: Bits<32>,
    }
    /// The answer of a get has come: may it be taken?
    Claim {
        /// Pair that its frame came by.
        pair: Bits<16>,
        /// Number of the get.
        number: Bits<32>,
        /// Bytes in it.
        length: Bits<16>,
        /// It has none, since the peer refuses.
        refused: Bit,
    }
    /// What a [`Claim`] is told. A get's answer is claimed once, however often the get is sent.
    Claimed {
        /// The get waits for it.
        taken: Bit,
        /// Protection domain of the get's endpoint.
        domain: Bits<8>,
        /// Local key of its buffer's region.
        key: Bits<32>,
        /// Card address of its buffer.
        address: Bits<64>,
    }
    /// The answer of a get is in its buffer, or won't be.
    Answered {
        /// Pair.
        pair: Bits<16>,
        /// Number of the get.
        number: Bits<32>,
        /// `abi::status::Status` that it ends with.
        status: Bits<8>,
    }
    /// Progress of the receiving side of a pair.
    SinkUpdate {
        /// Pair.
        pair: Bits<16>,
        /// One more message is safe.
        accepted: Bit,
        /// One more envelope is free.
        freed: Bit,
        /// What is safe was refused: a ready message, or a put.
        refused: Bit,
    }
    /// A pair that has failed.
    Fault {
        /// Pair.
        pair: Bits<16>,
        /// `abi::status::Status` that its operations complete with.
        status: Bits<8>,
    }
    /// May this buffer be used?
    RegionQuery {
        /// Protection domain of the asker.
        domain: Bits<8>,
        /// Local key.
        key: Bits<32>,
        /// Rights needed.
        rights: Bits<8>,
        /// Card address of the first byte.
        address: Bits<64>,
        /// Length in bytes.
        length: Bits<64>,
    }
    /// May this memory be accessed: by a process of this host, or by a peer? Whoever asks names a region, and the address space is the region's.
    Access {
        /// The buffer. Of a peer: the rights, the offset from the first byte of the region as `address`, and the length.
        buffer: RegionQuery,
        /// A peer asks, by `remote_key` and not by `key` and `domain`.
        remote: Bit,
        /// Pair on whose behalf it is: that the peer's frame came by, or that the message comes or goes by.
        pair: Bits<16>,
        /// Remote key.
        remote_key: Bits<64>,
        /// It is for the payload of a message of `context`.
        tagged: Bit,
        /// The message's context.
        context: Bits<16>,
    }
    /// The answer.
    Permission {
        /// It may.
        allowed: Bit,
        /// Card address of the first byte, if it may.
        address: Bits<64>,
        /// Its address space: the region's.
        space: Bits<8>,
    }
    /// An access that was allowed and hasn't ended.
    Ticket {
        /// Index of its region.
        region: Bits<16>,
        /// Protection domain of the region.
        domain: Bits<8>,
        /// Pair on whose behalf it is.
        pair: Bits<16>,
        /// It is for the payload of a message of `context`.
        tagged: Bit,
        /// The message's context.
        context: Bits<16>,
        /// Card address of its first byte, without the bits that count bytes of a page.
        first_page: Bits<52>,
        /// The same of its last byte.
        last_page: Bits<52>,
    }
    /// An access of a peer that was refused.
    RemoteRefusal {
        /// Pair that its frame came by.
        pair: Bits<16>,
        /// `abi::control::RefusalReason`.
        reason: Bits<8>,
        /// Key of the region, or 0.
        region: Bits<32>,
        /// First byte, from the first of the region.
        offset: Bits<64>,
    }
    /// An access of host memory.
    DmaRequest {
        /// Card address of the first byte.
        address: Bits<64>,
        /// Length in bytes, at least 1.
        length: Bits<16>,
    }
    /// A load or a store of a management register by the processor.
    RegisterAccess {
        /// Offset of the register.
        offset: Bits<12>,
        /// The access is a store.
        store: Bit,
        /// Word to store.
        data: Bits<32>,
    }
    /// A word for the processor's memory, from the host.
    LoaderWord {
        /// Byte address; a multiple of 4 in the memory.
        address: Bits<32>,
        /// The word.
        data: Bits<32>,
    }
    /// A change of the card's tables by the firmware.
    ControlRequest {
        /// `abi::control::Operation`.
        operation: Bits<8>,
        /// What the operation names.
        index: Bits<16>,
        /// Data, word 0 least significant.
        data: Bits<320>,
    }
    /// An operation on the matching lists.
    MatchCommand {
        /// What is to be done.
        operation: Operation,
        /// Endpoint.
        endpoint: Bits<8>,
        /// Source.
        pair: Bits<16>,
        /// Any source matches.
        any_source: Bit,
        /// Context.
        context: Bits<16>,
        /// Match bits.
        match_bits: Bits<64>,
        /// Bits that don't have to agree.
        ignore_bits: Bits<64>,
        /// Handle of the receive.
        request: Bits<32>,
        /// Remove, and Arrive with `append`: the message's slot among those of its pair.
        slot: Bits<6>,
        /// Post: the receive stays when it is matched, until it is cancelled.
        multi: Bit,
        /// TakePostedOfPair, TakePostedOfEndpoint: the walk goes on where the last one stopped, which was the same.
        again: Bit,
        /// Arrive: the message waits if no receive matches it.
        append: Bit,
    }
    /// One look-up in the exact side of the posted receives.
    Lookup {
        /// What for.
        search: Search,
        /// The operation that it is part of.
        tag: Bits<4>,
        /// The first of its operation. A search of a pair or an endpoint begins at the first row.
        first: Bit,
        /// The last of its operation.
        last: Bit,
        /// Class, source, context and match bits that count.
        key: Bits<97>,
        /// Endpoint.
        endpoint: Bits<8>,
        /// Handle of the receive.
        request: Bits<32>,
        /// Source that it names.
        pair: Bits<16>,
    }
    /// What came of the look-ups of an operation.
    ExactResult {
        /// Post: the key has a queue. Otherwise: there is such a receive.
        found: Bit,
        /// Post: there is a place for it.
        room: Bit,
        /// The receive found, or the number of the one to append.
        id: Bits<14>,
        /// A walk over a pair or an endpoint has found nothing yet, and stops with rows left.
        more: Bit,
        /// Its age.
        age: Bits<53>,
        /// The receive that the associative side has for the operation is older.
        rival_older: Bit,
        /// Its class.
        class: Bits<6>,
        /// It stays when it is matched.
        multi: Bit,
    }
    /// A unit of places that a pair gets: `abi::limits::UNIT_PLACES`.
    PlaceUnit {
        /// Pair.
        pair: Bits<16>,
        /// Units that it has with this one, which is the last; 0: it has none any more.
        count: Bits<4>,
        /// The unit.
        unit: Bits<8>,
    }
    /// A message by which its pair fails: it has found no slot, or its slot couldn't be written.
    Slotted {
        /// Pair that it came by.
        pair: Bits<16>,
        /// Local endpoint of the pair.
        endpoint: Bits<8>,
        /// The slot, among those of its pair.
        slot: Bits<6>,
    }
    /// What came of the write of a slot.
    SlotWritten {
        /// `abi::request::slot_number`.
        slot: Bits<16>,
        /// It was answered by an error.
        failed: Bit,
    }
    /// What a multi-receive has had. Zero of any other request.
    Had {
        /// Bytes of its buffer that are used: its next message begins there.
        offset: Bits<32>,
        /// Number of its next completion, from 1 on and modulo 2³¹.
        count: Bits<31>,
    }
    /// What a message or a request ends with, once its payload is where it goes.
    Ending {
        /// A completion is written.
        completes: Bit,
        /// Endpoint that it is of.
        endpoint: Bits<8>,
        /// Handle of the request that completes.
        request: Bits<32>,
        /// `abi::status::Status`, unless memory answers with an error.
        status: Bits<8>,
        /// `abi::completion::CompletionKind`.
        kind: Bits<8>,
        /// Handle that the completion names beside its own. Of a message of a multi-receive: where it begins in the buffer, in bytes.
        handle: Bits<32>,
        /// The completion says what the message was: the six fields that follow.
        of_message: Bit,
        /// Pair that the message came by.
        pair: Bits<16>,
        /// Its context.
        context: Bits<16>,
        /// Its match bits.
        match_bits: Bits<64>,
        /// Its immediate data. Of a completion that speaks of no message: `offset` of a [`Had`] in the low half, `count` above.
        immediate: Bits<64>,
        /// Its length in bytes.
        length: Bits<16>,
        /// Its slot.
        slot: Bits<6>,
        /// A multi-receive took the message.
        multi: Bit,
        /// And stays.
        stays: Bit,
        /// The message went to its slot: whether it is there is told, and if it isn't, no progress.
        fills: Bit,
        /// One more message of the pair is safe.
        accepted: Bit,
        /// One more envelope of the pair is free.
        freed: Bit,
        /// The message that is safe was refused.
        refused: Bit,
        /// It is a put: one that memory answers with an error is refused, too.
        put: Bit,
        /// It is a get: `match_bits` is its key, `immediate` its offset. It is to be answered.
        asks: Bit,
        /// It is the answer of a get, which ends with `status`.
        answers: Bit,
        /// Number of the get. Of a message of a multi-receive: which of its completions this is, from 1 on and modulo 2³¹, if it is the last. 0 otherwise.
        number: Bits<32>,
        /// It is a mark: nothing but that all before it has ended.
        marks: Bit,
    }
    /// The way of a payload, and what it ends with.
    Job {
        /// The way.
        way: Way,
        /// Bytes that go to memory.
        length: Bits<16>,
        /// Hit, Put, Slot, Drop: bytes of the payload on the wire, of which those behind `length` are dropped.
        arrived: Bits<16>,
        /// Hit, Copy: protection domain of the buffer.
        domain: Bits<8>,
        /// Hit, Copy: key of the buffer.
        key: Bits<32>,
        /// Card address that the payload goes to. Put: offset in the region of the remote key.
        target: Bits<64>,
        /// Copy: card address of the slot. Put: remote key.
        source: Bits<64>,
        /// What it ends with.
        ending: Ending,
    }
    /// Answer to a [`MatchCommand`].
    MatchReply {
        /// An entry was found.
        found: Bit,
        /// The list had no room.
        full: Bit,
        /// The entry found or appended.
        index: Bits<16>,
        /// TakePostedOfPair, TakePostedOfEndpoint: nothing was found yet, and there is more to look at.
        more: Bit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verilog::width_of;
    use abi::monitor::MatchOperation;

    #[test]
    fn commands_of_matching_have_the_bits_that_abi_says() {
        let widths = |descriptor: TypeDescriptor| match descriptor.kind {
            TypeKind::Composite(fields) => fields
                .iter()
                .map(|field| width_of(&field.kind))
                .collect::<Vec<_>>(),
            kind => panic!("{kind:?} has no fields"),
        };
        let command = widths(MatchCommand::descriptor());
        assert_eq!(command, abi::monitor::MATCH_COMMAND_WIDTHS);
        let reply = widths(MatchReply::descriptor());
        assert_eq!(reply, abi::monitor::MATCH_REPLY_WIDTHS);
        let unit = widths(PlaceUnit::descriptor());
        assert_eq!(unit, abi::monitor::PLACE_UNIT_WIDTHS);
    }

    #[test]
    fn a_layout_has_the_same_bits_here_and_in_abi() {
        let header = abi::wire::FrameHeader {
            destination_mac: 0x0605_0403_0201,
            cookie: 0xdead_beef,
            payload_length: 1024,
            message_length: 7,
            ..Default::default()
        };
        let mut bits = Bits::<576>::default();
        for (k, word) in header.to_words().into_iter().enumerate() {
            bits.set_bits::<64>(64 * k, word.into());
        }
        let unpacked = FrameHeader::unpack(bits);
        assert_eq!(unpacked.cookie, 0xdead_beef_u64);
        assert_eq!(unpacked.payload_length, 1024_u64);
        assert_eq!(unpacked.destination_mac, 0x0605_0403_0201_u64);
        assert_eq!(unpacked.pack(), bits);
    }

    #[test]
    fn operations_have_the_numbers_that_the_monitor_pins_are_read_by() {
        for (operation, number) in Operation::ALL.into_iter().zip(MatchOperation::ALL) {
            assert_eq!(format!("{operation:?}"), number.name());
            assert_eq!(operation as u8, number.code());
        }
        assert!(Operation::ALL.len() <= MatchOperation::ALL.len());
    }
}
