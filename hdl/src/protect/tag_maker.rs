//! Tags that nobody foresees, made in the gates: numbers from 0 on, each enciphered by Speck.
//!
//! ```text
//!   key ──► words ──► word of the round ──┐
//!   count ──► high, low ──► round ──► high, low ──► … 23 of them ──► tag
//! ```
//!
//! Speck has blocks of 48 bits, as wide as a tag, and with the longest keys for them, 96 bits, 23 rounds (R. Beaulieu and others, "The Simon and Speck
//! Families of Lightweight Block Ciphers", 2013). As a cipher is one-to-one, no tag comes twice under a key. A round takes a cycle, and the next tag is made as
//! soon as one is taken.

use crate::prelude::*;

/// Rounds, less one.
const LAST_ROUND: u64 = 22;

/// Makes tags.
#[block]
pub struct TagMaker {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets the key.
    pub reset: Signal<In, Bit>,
    /// A key, by which the tags from then on are made, the first one of the number 0.
    pub key: Pulse<In, Bits<96>>,
    /// There is a key.
    pub has_key: Signal<Out, Bit>,
    /// The next tag.
    pub tag: Stream<Out, Bits<48>>,

    held: Reg<Bits<96>>,
    keyed: Reg<Bit>,
    count: Reg<Bits<48>>,
    works: Reg<Bit>,
    made: Reg<Bit>,
    /// Number of the round, as a word.
    round: Reg<Bits<24>>,
    high: Reg<Bits<24>>,
    low: Reg<Bits<24>>,
    /// The key's word of the round, and the three that those of later rounds are made of.
    word: Reg<Bits<24>>,
    later: Reg<Bits<72>>,

    turned: Signal<Local, Bits<24>>,
    mixed: Signal<Local, Bits<24>>,
    lowest: Signal<Local, Bits<24>>,
    derived: Signal<Local, Bits<24>>,
    #[is(constant(LAST_ROUND))]
    last_round: Constant<Bits<24>>,
}

#[block]
impl Logic for TagMaker {
    fn update(&mut self) {
        // A round.
        self.turned.next = (self.high.q.val() >> 8) | (self.high.q.val() << 16);
        self.mixed.next = (self.turned.val() + self.low.q.val()) ^ self.word.q.val();
        self.lowest.next = self.later.q.val().get_bits::<24>(0);
        self.derived.next = (self.word.q.val()
            + ((self.lowest.val() >> 8) | (self.lowest.val() << 16)))
            ^ self.round.q.val();
        if self.works.q.val() {
            self.high.d.next = self.mixed.val();
            self.low.d.next =
                ((self.low.q.val() << 3) | (self.low.q.val() >> 21)) ^ self.mixed.val();
            self.word.d.next =
                ((self.word.q.val() << 3) | (self.word.q.val() >> 21)) ^ self.derived.val();
            self.later.d.next =
                (self.later.q.val() >> 24) | (bit_cast::<72, 24>(self.derived.val()) << 48);
            self.round.d.next = self.round.q.val() + 1;
            if self.round.q.val() == self.last_round.val() {
                self.works.d.next = false;
                self.made.d.next = true;
            }
        }

        // The next number.
        if self.keyed.q.val() & !self.works.q.val() & !self.made.q.val() {
            self.works.d.next = true;
            self.round.d.next = 0.into();
            self.high.d.next = self.count.q.val().get_bits::<24>(24);
            self.low.d.next = self.count.q.val().get_bits::<24>(0);
            self.word.d.next = self.held.q.val().get_bits::<24>(0);
            self.later.d.next = self.held.q.val().get_bits::<72>(24);
            self.count.d.next = self.count.q.val() + 1;
        }

        self.has_key.next = self.keyed.q.val();
        self.tag.valid.next = self.made.q.val();
        self.tag.data.next =
            (bit_cast::<48, 24>(self.high.q.val()) << 24) | bit_cast::<48, 24>(self.low.q.val());
        if self.tag.ready.val() {
            self.made.d.next = false;
        }
        if self.key.valid.val() {
            self.held.d.next = self.key.data.val();
            self.keyed.d.next = true;
            self.count.d.next = 0.into();
            self.works.d.next = false;
            self.made.d.next = false;
        }
    }
}
