//! Where the exact side puts its receives, in plain Rust: the keyed hash and the two tables of it.
//!
//! ```text
//!   key, seed ──► hash ──► row of the first table  ──┐ the emptier of the two
//!                     └──► row of the second table ──┴─► a way, or an overflow
//! ```
//!
//! The gates take twelve cycles for what this does in a fraction of a microsecond, so it is by this that
//! the load is swept at which a receive finds no place. Where both have been given the same receives they
//! must overflow alike: the tests and `posthorn bench match` hold the gates to it.

use std::collections::HashMap;

use card_model::matching::Command;

/// Parities that the bits of a hash are made of.
const PARITIES: u32 = 32;
/// Where the parities of a handle begin in the seed.
const HANDLE_SEED: u32 = 56;

/// Rows in the two tables.
type Rows = [usize; 2];

/// The parities of `key`, whose bits beyond `width` are zero.
fn parities(seed: u128, key: u128, width: u32) -> u32 {
    let low = (1 << width) - 1;
    let bit = |i: u32| (key & (seed >> i) & low).count_ones() & 1;
    (0..PARITIES).fold(0, |all, i| all | bit(i) << i)
}

/// The two hashes that parities make, cut to `rows`.
fn rows_of(parities: u32, rows: usize) -> Rows {
    let p = |i: u32| parities >> (i % PARITIES) & 1;
    let bits = 0..rows.trailing_zeros();
    let first = bits.clone().map(|i| (p(i) ^ (p(i + 8) & p(i + 20))) << i);
    let second = bits.map(|i| (p(i + 12) ^ (p(i + 3) & p(31 - i))) << i);
    [first.sum::<u32>() as usize, second.sum::<u32>() as usize]
}

/// A key and how many receives have it; none if the slot is vacant.
type Slot = (u128, u32);

#[derive(Clone, Copy, Debug)]
struct Home {
    key: (usize, usize, usize),
    handle: (usize, usize),
}

/// The tables.
#[derive(Clone, Debug)]
pub struct Tables {
    seed: u128,
    rows: usize,
    /// Places of a row.
    row_ways: usize,
    keys: [Vec<Vec<Slot>>; 2],
    /// Handles in each row.
    handles: [Vec<usize>; 2],
    homes: HashMap<(u8, u32), Home>,
}

impl Tables {
    /// The empty tables of an exact side, of `rows` rows each, with `row_ways` places a row.
    pub fn new(rows: usize, row_ways: usize, seed: u128) -> Self {
        Tables {
            seed,
            rows,
            keys: [0, 1].map(|_| vec![vec![(0, 0); row_ways]; rows]),
            row_ways,
            handles: [vec![0; rows], vec![0; rows]],
            homes: HashMap::new(),
        }
    }

    fn key(receive: &Command, class: u8) -> u128 {
        let source = match receive.any_source {
            true => 0,
            false => receive.pair & 0x7ff,
        };
        u128::from(receive.match_bits & !receive.ignore_bits)
            | u128::from(receive.context) << 64
            | u128::from(source) << 80
            | u128::from(receive.endpoint << 2 | class) << 91
    }

    /// Finds a place for a receive of class number `class` of its endpoint. `false` if there is none: it has overflowed, and
    /// goes elsewhere.
    pub fn post(&mut self, receive: &Command, class: u8) -> bool {
        let key = Self::key(receive, class);
        let handle = u128::from(receive.endpoint) << 32 | u128::from(receive.request);
        let key_rows = rows_of(parities(self.seed, key, 97), self.rows);
        let handle_rows = rows_of(parities(self.seed >> HANDLE_SEED, handle, 40), self.rows);
        let [first, second] = [0, 1].map(|table| self.handles[table][handle_rows[table]]);
        let table = usize::from(second < first);
        if first.min(second) == self.row_ways {
            return false;
        }
        let Some(place) = self.place(key, key_rows) else {
            return false;
        };
        let home = Home {
            key: place,
            handle: (table, handle_rows[table]),
        };
        self.handles[table][home.handle.1] += 1;
        let slot = &mut self.keys[place.0][place.1][place.2];
        *slot = (key, slot.1 + 1);
        let before = self.homes.insert((receive.endpoint, receive.request), home);
        assert!(before.is_none(), "handles of live receives differ");
        true
    }

    /// The slot that has `key`, or is to have it.
    fn place(&self, key: u128, rows: Rows) -> Option<(usize, usize, usize)> {
        let row = |table: usize| &self.keys[table][rows[table]];
        let find = |table: usize, wanted: &dyn Fn(&Slot) -> bool| {
            let way = row(table).iter().position(wanted)?;
            Some((table, rows[table], way))
        };
        let has = |slot: &Slot| slot.1 > 0 && slot.0 == key;
        if let Some(place) = find(0, &has).or_else(|| find(1, &has)) {
            return Some(place);
        }
        let taken = |table| row(table).iter().filter(|slot| slot.1 > 0).count();
        find(usize::from(taken(1) < taken(0)), &|slot| slot.1 == 0)
    }

    /// Takes out a receive. `false` if it isn't here.
    pub fn remove(&mut self, receive: &Command) -> bool {
        let Some(home) = self.homes.remove(&(receive.endpoint, receive.request)) else {
            return false;
        };
        self.keys[home.key.0][home.key.1][home.key.2].1 -= 1;
        self.handles[home.handle.0][home.handle.1] -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use card_model::matching::Operation;

    fn receive(n: u32) -> Command {
        Command {
            match_bits: n.into(),
            // An odd factor: they differ, in all their bits.
            request: n.wrapping_mul(0x9e37_79b9),
            ..Command::new(Operation::Post)
        }
    }

    #[test]
    fn without_a_seed_a_few_receives_fill_their_rows_and_leave_them() {
        let mut tables = Tables::new(512, 3, 0);
        let full = 2 * 3;
        for n in 0..full {
            assert!(tables.post(&receive(n), 0), "{n}");
        }
        assert!(!tables.post(&receive(full), 0));
        assert!(!tables.remove(&receive(full)));
        assert!(tables.remove(&receive(3)));
        assert!(tables.post(&receive(full), 0));
        assert!(!tables.post(&receive(full + 1), 0));
    }

    #[test]
    fn receives_of_one_key_share_a_slot() {
        // The seed of the handles isn't zero, that of the keys is.
        let mut tables = Tables::new(512, 3, 0x1234_5678_9abc_def1 << 97);
        let same = |n| Command {
            match_bits: 7,
            ..receive(n)
        };
        for n in 0..100 {
            assert!(tables.post(&same(n), 0), "{n}");
        }
        let full = 100 + 2 * 3 - 1;
        for n in 100..full {
            assert!(tables.post(&receive(n), 0), "{n}");
        }
        assert!(!tables.post(&receive(full), 0));
        assert!(tables.post(&same(full), 0));
    }
}
