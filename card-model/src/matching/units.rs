//! Which slot is at which place: the units of places that pairs have, as the gates give them out.
//!
//! The lists of the model name a message by the number of its slot, the gates by its place. This is what lies between them.

use abi::limits::{MAX_CREDITS, UNIT_PLACES};
use abi::request::slot_number;

use super::{Operation, Reply};

/// The units that pairs have.
#[derive(Clone, Debug, Default)]
pub struct Units {
    /// By unit: its pair, and how many of the pair's come before it.
    owners: Vec<Option<(u16, u16)>>,
}

impl Units {
    /// A pair gets a unit, with which it has `count`; or, if that is 0, it has none any more.
    ///
    /// # Errors
    /// If another pair has the unit, or the count is none that a pair may come to have.
    pub fn tell(&mut self, pair: u16, count: u16, unit: u16) -> Result<(), String> {
        let of_pair = self.owners.iter().flatten();
        let had = of_pair.filter(|(owner, _)| *owner == pair).count();
        if count == 0 {
            for owner in &mut self.owners {
                owner.take_if(|(owner, _)| *owner == pair);
            }
            return Ok(());
        }
        let at = usize::from(unit);
        if self.owners.len() <= at {
            self.owners.resize(at + 1, None);
        }
        if let Some((owner, _)) = self.owners[at] {
            return Err(format!(
                "pair {pair} gets unit {unit}, which pair {owner} has"
            ));
        }
        if usize::from(count) != had + 1 || count > MAX_CREDITS / UNIT_PLACES {
            return Err(format!("pair {pair} has {had} units, and then {count}"));
        }
        self.owners[at] = Some((pair, count - 1));
        Ok(())
    }

    /// Number of the slot at a place, if it is anybody's.
    pub fn slot_at(&self, place: u16) -> Option<u16> {
        let (pair, before) = *self
            .owners
            .get(usize::from(place / UNIT_PLACES))?
            .as_ref()?;
        let slot = before * UNIT_PLACES + place % UNIT_PLACES;
        Some(slot_number(pair, slot as u8))
    }

    /// The reply to an operation: if it names a message, by its slot and not by its place.
    ///
    /// # Errors
    /// If the place is nobody's.
    pub fn named(&self, operation: Operation, reply: Reply) -> Result<Reply, String> {
        let of_message = matches!(
            operation,
            Operation::Post
                | Operation::Probe
                | Operation::Claim
                | Operation::TakeUnexpectedOfPair
                | Operation::Remove
        );
        if !(of_message && reply.found) {
            return Ok(reply);
        }
        let index = self.slot_at(reply.index);
        let index = index.ok_or_else(|| format!("{reply:x?} names a place that no pair has"))?;
        Ok(Reply { index, ..reply })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_one_pairs_until_it_has_none() {
        let mut units = Units::default();
        assert_eq!(units.slot_at(16), None);
        assert_eq!(units.tell(3, 1, 2), Ok(()));
        assert_eq!(units.tell(3, 2, 0), Ok(()));
        assert_eq!(units.slot_at(17), Some(slot_number(3, 1)));
        assert_eq!(units.slot_at(7), Some(slot_number(3, 15)));
        assert!(units.tell(4, 1, 2).is_err(), "it has an owner");
        assert!(units.tell(4, 2, 1).is_err(), "it has none before");
        assert_eq!(units.tell(3, 0, 0), Ok(()));
        assert_eq!(units.slot_at(17), None);
        assert_eq!(units.tell(4, 1, 2), Ok(()));
        let found = Reply {
            found: true,
            full: false,
            index: 16,
            more: false,
        };
        let named = |operation| units.named(operation, found).map(|reply| reply.index);
        assert_eq!(named(Operation::Claim), Ok(slot_number(4, 0)));
        assert_eq!(named(Operation::Arrive), Ok(16), "a receive");
    }
}
