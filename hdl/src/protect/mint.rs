//! Grants that the gates make: they choose the row and the tag.
//!
//! ```text
//!   control ──► Mint ──► inner ──► Regions
//!    GrantMint   │ ▲      GrantSet, of a free row and the next tag
//!     key    ◄───┘ └── spent ◄── a grant for one access has ended with it
//! ```
//!
//! The rows are behind those of the firmware's grants, and are the gates' own to give: the lowest that is free is put by for the next one. A row is free
//! again when its grant has ended with its one access, or is cleared. So nobody has to say that a key for one access has been used.
//!
//! All other requests go through.

use super::tag_maker::TagMaker;
use crate::config::Config;
use crate::prelude::*;
use crate::types::{ControlRequest, GrantSetup, MintSetup};
use abi::control::{Operation, minted_grants};
use abi::key::REMOTE_KEY_INDEX_BITS;

const _: () = assert!(
    REMOTE_KEY_INDEX_BITS == 16,
    "the kernel shifts tags by so much"
);

/// Stands before the tables.
#[block(config: &Config)]
pub struct Mint {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// All rows are free, and there is no key.
    pub reset: Signal<In, Bit>,
    /// A change of the tables.
    pub control: Stream<In, ControlRequest>,
    /// With `control.ready`: the remote key of a grant that is made here; 0 if there is no row for it or no key of the tags, and of other requests.
    pub control_result: Signal<Out, Bits<64>>,
    /// It goes to the tables.
    pub inner: Stream<Out, ControlRequest>,
    /// A grant has ended with its one access: its row.
    pub spent: Pulse<In, Bits<16>>,

    tags: TagMaker,
    /// The row is nobody's.
    #[is((0..minted(config)).map(|_| Reg::new(true)).collect())]
    free: Vec<Reg<Bit>>,
    /// A row is put by,
    has_row: Reg<Bit>,
    /// and it is this one, counted from the first of them.
    kept: Reg<Bits<16>>,

    operation: Signal<Local, Bits<8>>,
    sets_key: Signal<Local, Bit>,
    mints: Signal<Local, Bit>,
    clears: Signal<Local, Bit>,
    setup: Signal<Local, MintSetup>,
    grant: Signal<Local, GrantSetup>,
    /// A row is free, and this is the lowest that is.
    found: Signal<Local, Bit>,
    place: Signal<Local, Bits<16>>,
    keeps: Signal<Local, Bit>,
    makes_none: Signal<Local, Bit>,
    row: Signal<Local, Bits<16>>,
    made: Signal<Local, Bit>,
    goes: Signal<Local, Bit>,
    is_kept: Signal<Local, Bit>,
    cleared: Signal<Local, Bits<16>>,
    ended: Signal<Local, Bits<16>>,
    data: Signal<Local, Bits<320>>,
    #[is(constant(config.grants as u64))]
    first: Constant<Bits<16>>,
    #[is(minted(config))]
    _n: usize,
}

/// Rows for grants that are made here.
pub(super) fn minted(config: &Config) -> usize {
    minted_grants(config.grants as u32) as usize
}

impl Mint {
    /// Before the tables of a card.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(n = self._n, grants = self.first.val().index())]
impl Logic for Mint {
    fn update(&mut self) {
        self.operation.next = self.control.data.val().operation;
        self.data.next = self.control.data.val().data;
        self.sets_key.next = self.operation.val() == Operation::MintSet;
        self.mints.next = self.operation.val() == Operation::GrantMint;
        self.clears.next = self.operation.val() == Operation::GrantClear;

        // The key of the tags.
        self.setup.next = self.data.val().get_bits::<128>(0).into();
        send!(
            self.tags.key,
            self.control.valid.val() & self.sets_key.val(),
            (bit_cast::<96, 32>(self.setup.val().key_high) << 64)
                | bit_cast::<96, 64>(self.setup.val().key_low)
        );

        // A row for the next grant.
        self.found.next = false;
        self.place.next = 0.into();
        for i in 0..self._n {
            if self.free[i].q.val() & !self.found.val() {
                self.found.next = true;
                self.place.next = i.to_bits();
            }
        }
        self.keeps.next = self.found.val() & !self.has_row.q.val();
        if self.keeps.val() {
            self.has_row.d.next = true;
            self.kept.d.next = self.place.val();
        }
        self.row.next = self.first.val() + self.kept.q.val();

        // To the tables.
        self.grant.next = self.data.val().into();
        self.inner.data.next = self.control.data.val();
        if self.mints.val() {
            self.grant.next.tag = self.tags.tag.data.val();
            self.inner.data.next.operation = Operation::GrantSet.into();
            self.inner.data.next.index = self.row.val();
            self.inner.data.next.data = self.grant.val().into();
        }
        self.inner.valid.next = self.control.valid.val()
            & !self.sets_key.val()
            & (!self.mints.val() | (self.has_row.q.val() & self.tags.tag.valid.val()));
        self.made.next = self.mints.val() & self.inner.valid.val() & self.inner.ready.val();
        self.tags.tag.ready.next = self.made.val();
        self.makes_none.next = self.mints.val()
            & ((!self.has_row.q.val() & !self.found.val()) | !self.tags.has_key.val());
        self.control.ready.next = self.control.valid.val()
            & ((self.inner.valid.val() & self.inner.ready.val())
                | self.sets_key.val()
                | self.makes_none.val());
        self.control_result.next = 0.into();
        if self.made.val() {
            self.has_row.d.next = false;
            self.control_result.next = (bit_cast::<64, 48>(self.tags.tag.data.val()) << 16)
                | bit_cast::<64, 16>(self.row.val());
        }

        // What becomes of the rows. The one that is put by, or is just now, isn't free, whatever is cleared.
        self.goes.next = self.inner.valid.val() & self.inner.ready.val() & self.clears.val();
        self.cleared.next = self.control.data.val().index - self.first.val();
        self.is_kept.next = self.has_row.q.val() & (self.cleared.val() == self.kept.q.val());
        self.ended.next = self.spent.data.val() - self.first.val();
        for i in 0..self._n {
            if self.goes.val() & !self.is_kept.val() & (self.cleared.val() == i.to_bits()) {
                self.free[i].d.next = true;
            }
            if self.spent.valid.val() & (self.ended.val() == i.to_bits()) {
                self.free[i].d.next = true;
            }
            if self.keeps.val() & (self.place.val() == i.to_bits()) {
                self.free[i].d.next = false;
            }
        }
    }
}
