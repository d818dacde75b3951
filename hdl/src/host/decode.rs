//! Decodes a ring entry: the rows of `abi::opcode::OPCODES` that the card knows, as comparators.
//!
//! ```text
//!   opcode ──► = code of row 0 ─┐
//!          ──► = code of row 1 ─┼─► kind, buffer, needs_pair, names_claim, is_second of that row
//!                  …            │
//!   flags ────► & ¬ its flags ──┴─► or-ed ──► malformed
//!   reserved, payload, long, min_free ──►
//! ```
//!
//! The block is built from the table: each row is an opcode. An opcode or a flag that needs a capability which the card
//! hasn't is unknown to it.

use crate::language::term::constant;
use crate::prelude::*;
use abi::completion::CompletionKind;
use abi::opcode::{BufferUse, OPCODES, OpcodeRow, TargetUse, WorkRing};

/// Decoder of the entries of a ring. Combinational.
#[block(rows: &[&OpcodeRow], capabilities: u32)]
pub struct Decode {
    /// The entry's opcode.
    pub opcode: Signal<In, Bits<8>>,
    /// Flags of the entry.
    pub flags: Signal<In, Bits<8>>,
    /// A bit of the entry is set that is reserved whatever the flags are.
    pub reserved: Signal<In, Bit>,
    /// A bit is set that is reserved unless the payload is in the entry.
    pub payload: Signal<In, Bit>,
    /// `length` of the entry is more than an inline payload may have.
    pub long: Signal<In, Bit>,
    /// `min_free` of the entry is other than zero.
    pub min_free: Signal<In, Bit>,
    /// The entry is refused as `InvalidRequest`.
    pub malformed: Signal<Out, Bit>,
    /// Kind of the completion.
    pub kind: Signal<Out, Bits<8>>,
    /// The entry names a buffer, in which a region has to be.
    pub buffer: Signal<Out, Bit>,
    /// The entry's pair has to be one of the endpoint's, unless any source matches.
    pub needs_pair: Signal<Out, Bit>,
    /// The entry's target is the handle of a claim.
    pub names_claim: Signal<Out, Bit>,
    /// The entry behind it is part of it, malformed or not.
    pub takes_second: Signal<Out, Bit>,
    /// It is such a second entry.
    pub is_second: Signal<Out, Bit>,
    known: Signal<Local, Bit>,
    allowed: Signal<Local, Bits<8>>,
    min_free_flag: Signal<Local, Bits<8>>,
    inline: Signal<Local, Bit>,
    second: Signal<Local, Bit>,
    #[is(rows.iter().map(|row| constant(row.opcode.code())).collect())]
    codes: Vec<Constant<Bits<8>>>,
    #[is(rows.iter().map(|row| Constant::new(decoded_row(row, capabilities))).collect())]
    rows: Vec<Constant<DecodedRow>>,
    #[is(Constant::new(DecodedRow {
        kind: u64::from(CompletionKind::Unknown.code()).into(),
        ..Default::default()
    }))]
    no_row: Constant<DecodedRow>,
    row: Signal<Local, DecodedRow>,
    #[is(rows.len())]
    _rows: usize,
}

/// What the gates keep of a row.
fn decoded_row(row: &OpcodeRow, capabilities: u32) -> DecodedRow {
    DecodedRow {
        known: !row.is_second,
        kind: u64::from(row.kind.code()).into(),
        flags: u64::from(row.flags_with(capabilities)).into(),
        min_free_flag: u64::from(row.min_free_flag).into(),
        inline_flag: u64::from(row.inline_flag).into(),
        second_flag: u64::from(row.second_flag).into(),
        buffer: row.buffer != BufferUse::None,
        needs_pair: row.pair,
        names_claim: row.target == TargetUse::Claim,
        is_second: row.is_second,
    }
}

/// What the decoder says of a row.
#[allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]
mod decoded {
    use rust_hdl::prelude::*;

    /// A row of the table, as far as the gates look at it.
    #[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
    pub struct DecodedRow {
        pub known: Bit,
        pub kind: Bits<8>,
        pub flags: Bits<8>,
        pub min_free_flag: Bits<8>,
        pub inline_flag: Bits<8>,
        pub second_flag: Bits<8>,
        pub buffer: Bit,
        pub needs_pair: Bit,
        pub names_claim: Bit,
        pub is_second: Bit,
    }
}
use decoded::DecodedRow;

impl Decode {
    /// The decoder of a ring, in a card with these capabilities.
    pub fn new(ring: WorkRing, capabilities: u32) -> Self {
        Self::of(OPCODES, ring, capabilities)
    }

    /// The same from another table.
    fn of(table: &[OpcodeRow], ring: WorkRing, capabilities: u32) -> Self {
        let rows: Vec<_> = table
            .iter()
            .filter(|row| row.ring == ring && row.is_known(capabilities))
            .collect();
        Self::build(&rows, capabilities)
    }
}

#[block]
impl Logic for Decode {
    fn update(&mut self) {
        self.row.next = self.no_row.val();
        for i in 0..self._rows {
            if self.opcode.val() == self.codes[i].val() {
                self.row.next = self.rows[i].val();
            }
        }
        self.known.next = self.row.val().known;
        self.allowed.next = self.row.val().flags;
        self.min_free_flag.next = self.row.val().min_free_flag;
        self.inline.next = (self.flags.val() & self.row.val().inline_flag).any();
        self.second.next = (self.flags.val() & self.row.val().second_flag).any();
        self.malformed.next = !self.known.val()
            | self.reserved.val()
            | (self.payload.val() & !self.inline.val())
            | (self.inline.val() & (self.long.val() | self.second.val()))
            | (self.flags.val() & !self.allowed.val()).any()
            | (self.min_free.val() & !(self.flags.val() & self.min_free_flag.val()).any());
        self.kind.next = self.row.val().kind;
        self.buffer.next = self.row.val().buffer;
        self.needs_pair.next = self.row.val().needs_pair;
        self.names_claim.next = self.row.val().names_claim;
        self.takes_second.next =
            (self.flags.val() & self.row.val().second_flag & self.allowed.val()).any();
        self.is_second.next = self.row.val().is_second;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::capability;
    use abi::opcode::{decode_list, decode_send};
    use abi::request::{ListRequest, Opcode, SendRequest};

    /// What the decoder says of an entry: well formed or not, kind, buffer, pair, claim, takes a second, is one.
    type Said = (bool, u8, bool, bool, bool, bool, bool);

    /// What an entry has beside opcode and flags: a reserved bit, one of an inline payload, a long payload, `min_free`.
    type Beyond = [bool; 4];

    fn say(decode: &mut Decode, opcode: u8, flags: u8, beyond: Beyond) -> Said {
        decode.opcode.next = u64::from(opcode).into();
        decode.flags.next = u64::from(flags).into();
        decode.reserved.next = beyond[0];
        decode.payload.next = beyond[1];
        decode.long.next = beyond[2];
        decode.min_free.next = beyond[3];
        simulate(decode, 10);
        (
            !decode.malformed.val(),
            decode.kind.val().to_u8(),
            decode.buffer.val(),
            decode.needs_pair.val(),
            decode.names_claim.val(),
            decode.takes_second.val(),
            decode.is_second.val(),
        )
    }

    fn built(table: &[OpcodeRow], ring: WorkRing, capabilities: u32) -> Decode {
        let mut decode = Decode::of(table, ring, capabilities);
        decode.opcode.connect();
        decode.flags.connect();
        decode.reserved.connect();
        decode.payload.connect();
        decode.long.connect();
        decode.min_free.connect();
        decode.connect_all();
        decode
    }

    const FLAGS: [u8; 8] = [0, 1, 2, 4, 8, 0xc, 0x10, 0x80];

    /// Every opcode with no flag, each flag, and what else there is.
    fn all(decode: &mut Decode) -> Vec<Said> {
        let mut said = Vec::new();
        for opcode in 0..=0x20 {
            for flags in FLAGS {
                for set in 0..4 {
                    let beyond = std::array::from_fn(|at| at == set);
                    said.push(say(decode, opcode, flags, beyond));
                }
                said.push(say(decode, opcode, flags, [false; 4]));
            }
        }
        said
    }

    #[test]
    fn the_gates_decode_as_the_table_says() {
        for capabilities in [0, capability::ALL] {
            for ring in [WorkRing::Send, WorkRing::List] {
                let mut decode = built(OPCODES, ring, capabilities);
                for code in 0..=0x20 {
                    for flags in FLAGS {
                        for (reserved, inline, length) in
                            [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 1, 16), (0, 0, 17)]
                        {
                            let send = SendRequest {
                                opcode: code,
                                flags,
                                reserved0: reserved,
                                inline2: inline,
                                length,
                                ..Default::default()
                            };
                            let list = ListRequest {
                                opcode: code,
                                flags,
                                reserved0: reserved,
                                length,
                                ..Default::default()
                            };
                            let (wanted, inline) = match ring {
                                WorkRing::Send => (decode_send(&send, capabilities), inline != 0),
                                WorkRing::List => (decode_list(&list, capabilities), false),
                            };
                            let beyond = [reserved != 0, inline, length > 16, false];
                            let said = say(&mut decode, code, flags, beyond);
                            let kind = wanted.map_or_else(|kind| kind, |row| row.kind);
                            assert_eq!(said.0, wanted.is_ok(), "{code:#x} {flags:#x} {beyond:?}");
                            assert_eq!(said.1, kind.code(), "{code:#x} {flags:#x}");
                            let row = OpcodeRow::find(ring, code);
                            let row = row.filter(|row| row.is_known(capabilities));
                            let takes = row.is_some_and(|row| {
                                row.second_flag & row.flags_with(capabilities) & flags != 0
                            });
                            let second = row.is_some_and(|row| row.is_second);
                            assert_eq!((said.5, said.6), (takes, second), "{code:#x} {flags:#x}");
                        }
                    }
                }
            }
        }
    }

    /// A change of a row.
    type Change = fn(&mut OpcodeRow);

    #[test]
    fn each_changed_column_of_a_row_changes_the_gates() {
        let changes: [(&str, Change); 10] = [
            ("ring", |row| row.ring = WorkRing::Send),
            ("kind", |row| row.kind = CompletionKind::Discard),
            ("flags", |row| row.flags = 0),
            ("min_free_flag", |row| row.min_free_flag = 0),
            ("buffer", |row| row.buffer = BufferUse::None),
            ("pair", |row| row.pair = false),
            ("target", |row| row.target = TargetUse::Claim),
            ("capability", |row| row.capability = 1),
            ("second_flag", |row| row.second_flag = row.flags),
            ("is_second", |row| row.is_second = true),
        ];
        let sound = all(&mut built(OPCODES, WorkRing::List, 0));
        for (column, change) in changes {
            let mut table = OPCODES.to_vec();
            let row = table
                .iter_mut()
                .find(|row| row.opcode == Opcode::TaggedReceive);
            change(row.expect("it has a row"));
            let changed = all(&mut built(&table, WorkRing::List, 0));
            assert_ne!(changed, sound, "{column}");
        }
    }
}
