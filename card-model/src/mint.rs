//! Grants that the gates make: which row is free, and which tag is next.

use abi::control::{MintSetup, minted_grants};
use abi::key::remote_key;
use speck_cipher::Speck48_96;
use speck_cipher::cipher::{Block, BlockCipherEncrypt, Key, KeyInit};

use crate::breaks::Break;

/// The rows behind a card's grants, and the generator of their tags.
#[derive(Clone)]
pub struct Mint {
    /// The first of the rows.
    first: u16,
    taken: Vec<bool>,
    /// The place that is put by for the next grant.
    next: Option<usize>,
    /// The key, and how many tags have been made by it.
    tags: Option<(Speck48_96, u64)>,
    broken: Break,
}

impl std::fmt::Debug for Mint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let made = self.tags.as_ref().map(|(_, made)| made);
        let mut shown = f.debug_struct("Mint");
        shown.field("taken", &self.taken).field("made", &made);
        shown.finish_non_exhaustive()
    }
}

impl Mint {
    /// All rows behind `grants` are free, and there is no key.
    pub fn new(grants: usize) -> Self {
        let rows = minted_grants(grants as u32) as usize;
        Self {
            first: grants as u16,
            taken: vec![false; rows],
            next: (rows > 0).then_some(0),
            tags: None,
            broken: Break::None,
        }
    }

    pub(crate) fn break_on_purpose(&mut self, broken: Break) {
        self.broken = broken;
    }

    /// Gives it the key of the tags, which begin anew.
    pub fn set_key(&mut self, setup: &MintSetup) {
        let key = u128::from(setup.key_high) << 64 | u128::from(setup.key_low);
        let mut bytes = Key::<Speck48_96>::default();
        bytes.copy_from_slice(&key.to_be_bytes()[4..]);
        self.tags = Some((Speck48_96::new(&bytes), 0));
    }

    /// The next tag. None without a key.
    fn tag(&mut self) -> Option<u64> {
        let (cipher, made) = self.tags.as_mut()?;
        let mut block = Block::<Speck48_96>::default();
        block.copy_from_slice(&made.to_be_bytes()[2..]);
        cipher.encrypt_block(&mut block);
        *made += 1;
        let bytes = block.iter();
        Some(bytes.fold(0, |tag, &byte| tag << 8 | u64::from(byte)))
    }

    /// No row is free.
    pub fn is_full(&self) -> bool {
        self.next.is_none()
    }

    /// A remote key of the row that is put by; then the lowest that is free is. None if there is no row, or no key yet.
    pub fn mint(&mut self) -> Option<u64> {
        let place = self.next?;
        let tag = self.tag()?;
        self.taken[place] = true;
        self.next = self.taken.iter().position(|taken| !taken);
        Some(remote_key(self.first + place as u16, tag))
    }

    /// The grant of a row has ended.
    pub fn free(&mut self, row: u16) {
        let place = row.checked_sub(self.first).map(usize::from);
        let place = place.filter(|&place| place < self.taken.len());
        if let Some(place) = place
            && self.broken != Break::MintedKept
        {
            self.taken[place] = false;
            self.next = self.next.or(Some(place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::key::{remote_key_index, remote_key_tag};

    #[test]
    fn the_lowest_free_row_is_given_and_a_tag_never_twice() {
        let mut mint = Mint::new(64);
        assert_eq!(mint.mint(), None, "there is no key");
        mint.set_key(&MintSetup::default());
        let keys: Vec<u64> = std::iter::from_fn(|| mint.mint()).collect();
        let rows: Vec<u16> = keys.iter().map(|&key| remote_key_index(key)).collect();
        assert_eq!(rows, (64..72).collect::<Vec<_>>());
        mint.free(70);
        // This one is put by, and stays so.
        mint.free(70);
        mint.free(66);
        // None of these is one of its rows.
        mint.free(63);
        mint.free(72);
        let again = [mint.mint(), mint.mint(), mint.mint()];
        assert_eq!(
            again.map(|key| key.map(remote_key_index)),
            [Some(70), Some(66), None]
        );
        let tags = keys.into_iter().chain(again.into_iter().flatten());
        let mut tags: Vec<u64> = tags.map(remote_key_tag).collect();
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), 10);
    }

    /// The vector of the cipher's authors for these sizes.
    #[test]
    fn tags_are_enciphered_by_the_words_of_the_key_from_its_lowest_bits_on() {
        let mut mint = Mint::new(8);
        mint.set_key(&MintSetup {
            key_low: 0x0a09_0802_0100 | 0x1110 << 48,
            key_high: 0x1a19_1812,
            ..MintSetup::default()
        });
        let (_, made) = mint.tags.as_mut().expect("there is a key");
        *made = 0x6d20_7369_6874;
        assert_eq!(mint.tag(), Some(0x735e_10b6_445d));
    }
}
