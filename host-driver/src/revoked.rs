//! Revocations that processes tell each other: what a program says, and what its card has been told. Beside it, `rules.rs` ends what is pending here.
//!
//! ```text
//!  tell_revoked ─► the peers' cards keep it, by themselves ─► event Revoked ─► revoked ─► revoke: what is pending ends
//!                             └─ name_group: their gates refuse what falls under it, before their programs know
//! ```
//!
//! All of it are commands, and none asks another card.

use crate::core::Own;
use crate::endpoint::Endpoint;
use crate::error::CommandError;
use crate::group::Group;
use crate::pair::Pair;
use crate::sweep::MessageSet;
use abi::mailbox::{
    self, Command, NO_RULE, NameGroup, Nothing, RevokedNumber, TellRevoked, id_index,
};

/// Messages that a peer has said to be revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ToldRevocation {
    /// Its number, which is `info` of the event [`Revoked`](crate::Cause::Revoked): later ones have higher ones.
    pub number: u32,
    /// The pair whose peer has said so; if several have, one of them that is of the group. None if that pair has been closed.
    pub from: Option<Pair>,
    /// The name that the group has at all its members.
    pub tag: u32,
    /// The messages. Of their match bits those that don't count are zero.
    pub messages: MessageSet,
    /// The card refuses what receives them, and drops them, by a rule of the group that [`name_group`](Endpoint::name_group) has given this name.
    pub is_refused: bool,
}

impl Endpoint {
    /// Has the card tell the peers of some pairs that messages of a group are revoked. It does so by itself, again until each has answered. Those that aren't connected
    /// are passed over. The program [revokes](Self::revoke) them for itself.
    ///
    /// `tag` is the program's name for the group, the same at all members, as that of [drains](crate::DrainOptions::tag).
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the endpoint or one of the pairs isn't open; `Refused` with `Busy` while four failures and revocations are being told of.
    pub fn tell_revoked(
        &self,
        tag: u32,
        messages: &MessageSet,
        to: &[Pair],
    ) -> Result<(), CommandError> {
        let (mut commands, bits) = self.commands_for(|own| {
            let mut bits = 0_u128;
            for &pair in to {
                own.pair_id(pair)?;
                bits |= 1 << pair.index;
            }
            own.is_open().then_some(bits)
        })?;
        let tell = TellRevoked {
            endpoint: self.handle.id(),
            tag,
            context: messages.context.into(),
            match_bits: messages.match_bits,
            mask: messages.mask,
            low: bits as u64,
            high: (bits >> 64) as u64,
        };
        let Nothing {} = commands.call(Command::TellRevoked, &tell)?;
        Ok(())
    }

    /// Gives a group its name. What a member says to be revoked under it the card refuses from then on, of the whole group and without the program, if it
    /// [believes](crate::WatchOptions::believe_peers) its peers; what it has been told before likewise. It replaces the group of this name, and a group without members
    /// ends it; rules that hold stay as they were set.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the endpoint isn't open; `Refused` with `NoResource` if it has named as many groups as it may: 16, shared by the
    /// [endpoints that the card has](crate::DeviceLimits::endpoints).
    pub fn name_group(&self, tag: u32, group: &Group) -> Result<(), CommandError> {
        let (mut commands, places) =
            self.commands_for(|own| own.is_open().then(|| group.places(own)))?;
        let name = NameGroup {
            endpoint: self.handle.id(),
            tag,
            low: places as u64,
            high: (places >> 64) as u64,
        };
        let Nothing {} = commands.call(Command::NameGroup, &name)?;
        Ok(())
    }

    /// What peers have said to be revoked and the program hasn't forgotten, in the order in which it came. The card answers by itself, from what it has been told;
    /// no event has to be taken for it.
    ///
    /// [`revoke`](Self::revoke) with the same messages and group ends what is pending of them, and takes the card's rule over: [`restore`](Self::restore) clears it,
    /// and forgets what was told with it.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the endpoint is closed.
    pub fn revoked(&self) -> Result<Vec<ToldRevocation>, CommandError> {
        let (mut commands, ()) = self.commands_while_open()?;
        let endpoint = self.handle.id();
        let (mut all, mut number) = (Vec::new(), 0);
        loop {
            let from = RevokedNumber { endpoint, number };
            let told: mailbox::ToldRevocation = commands.call(Command::ReadRevoked, &from)?;
            // The last is followed by none; numbers end with 32 bits.
            if told.number < number.max(1) {
                return Ok(all);
            }
            all.push(ToldRevocation {
                number: told.number,
                from: self.handle.lock().own().pair_of_id(told.pair),
                tag: told.tag,
                messages: MessageSet {
                    context: told.context as u16,
                    match_bits: told.match_bits,
                    mask: told.mask,
                },
                is_refused: told.rule != NO_RULE,
            });
            let Some(next) = told.number.checked_add(1) else {
                return Ok(all);
            };
            number = next;
        }
    }

    /// Forgets what a peer has said: it isn't named any more, and can be told anew. If the card refuses it by its own, it doesn't any more; a rule that the program has
    /// set or taken over by [`revoke`](Self::revoke) stays.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the endpoint is closed; `Refused` with `NotFound` if it has been forgotten.
    pub fn forget_revoked(&self, told: &ToldRevocation) -> Result<(), CommandError> {
        let (mut commands, ()) = self.commands_while_open()?;
        let forget = RevokedNumber {
            endpoint: self.handle.id(),
            number: told.number,
        };
        let Nothing {} = commands.call(Command::ForgetRevoked, &forget)?;
        Ok(())
    }
}

impl Own<'_> {
    /// The pair that the card names by this id, if it is open.
    fn pair_of_id(&mut self, id: u32) -> Option<Pair> {
        let place = 1_u128.checked_shl(id_index(id).into())?;
        let pair = self.pairs_of_card(place).pop()?;
        (self.pair_id(pair) == Some(id)).then_some(pair)
    }
}
