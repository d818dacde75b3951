//! Rules: messages that are revoked. A verb of the program, a row in the card, and what the library refuses by itself.
//!
//! ```text
//!  revoke ─► sends are refused here ─► SetRule: the card drops and refuses ─► sweep: what is pending ends as `Revoked`
//!  restore ─► ClearRule ─► sends are taken again
//! ```
//!
//! A rule that the card has set by a peer's word (`revoked.rs`) is taken over by the same `SetRule`, and cleared as any other.
//!
//! The card looks a rule up where messages and requests of the list ring enter. A send it doesn't look at: the library refuses it, and the peer's
//! rule drops it if the peer has one.

use crate::core::Own;
use crate::endpoint::Endpoint;
use crate::error::CommandError;
use crate::group::Group;
use crate::sweep::{MessageSet, SweepError, Swept};
use abi::mailbox::{Command, Nothing, RuleId, SetRule};
use abi::status::Status;

/// A rule of an endpoint, to be [cleared](Endpoint::restore).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    id: u32,
}

/// What a revocation has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Revocation {
    /// The rule that holds from now on.
    pub rule: Rule,
    /// What was pending or had come, and was ended.
    pub swept: Swept,
}

/// A revocation that was not made, or isn't complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RevokeError {
    /// No rule was set: nothing has changed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The rule holds, and some of what was pending or had come may be left. Do what the error says, and call again with the same arguments: no other rule is
    /// set.
    #[error("the rule holds, and what was pending isn't all ended: {error}")]
    Sweep {
        /// The rule.
        rule: Rule,
        /// Why the sweep ended.
        #[source]
        error: SweepError,
    },
}

/// A rule, as the library keeps it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldRule {
    messages: MessageSet,
    /// A bit for each place of the group's pairs that are open.
    places: u128,
    /// None until the card has it.
    id: Option<u32>,
}

impl HeldRule {
    /// Whether a send falls under it.
    pub(crate) fn covers(&self, place: u16, context: u16, match_bits: u64) -> bool {
        self.places >> place & 1 == 1 && self.messages.covers(context, match_bits, 0)
    }

    /// A pair is closed: it leaves the group.
    pub(crate) fn forget_pair(&mut self, place: u16) {
        self.places &= !(1 << place);
    }

    fn is(&self, messages: &MessageSet, places: u128) -> bool {
        self.messages == *messages && self.places == places
    }
}

impl Endpoint {
    /// Revokes messages of a group: from now on what receives or sends them is refused with [`Revoked`](crate::WcStatus::Revoked) or
    /// [`PostError::Revoked`](crate::PostError::Revoked), and those that still come are dropped, with their credits returned. What is pending of them completes as
    /// `Revoked`, and what had come and waits is discarded; what had matched, or left, ends as it ends. (ULFM's `MPI_Comm_revoke`, as far as it concerns this
    /// process: [`tell_revoked`](Self::tell_revoked) tells the others.)
    ///
    /// A receive or a probe from any source is revoked with its endpoint's group, whoever else is in it. One whose ignore bits overlap `mask` isn't: it may be for
    /// other messages.
    ///
    /// It waits, `timeout` cycles at most, and may be called while requests are kept. Completions of the program that come meanwhile are there when it polls.
    ///
    /// # Errors
    /// [`RevokeError`]. `Command`: [`CommandError::Refused`] with `NoResource` if the card has no more rules, with `Unsupported` if it has none
    /// ([`DeviceLimits::rules`](crate::DeviceLimits::rules)); `NotFound` if no member's pair is open, or the endpoint is closed. `Sweep`: [`SweepError`].
    pub fn revoke(
        &self,
        group: &Group,
        messages: &MessageSet,
        timeout: u64,
    ) -> Result<Revocation, RevokeError> {
        let rule = self.set_rule(group, messages)?;
        match self.sweep(group, messages, Status::Revoked, timeout) {
            Ok(swept) => Ok(Revocation { rule, swept }),
            Err(error) => Err(RevokeError::Sweep { rule, error }),
        }
    }

    fn set_rule(&self, group: &Group, messages: &MessageSet) -> Result<Rule, CommandError> {
        let (mut commands, places) = self.commands_for(|own| {
            let places = group.places(own);
            (own.is_open() && places != 0).then_some(places)
        })?;
        if let Some(id) = self.handle.lock().own().hold_rule(messages, places) {
            return Ok(Rule { id });
        }
        let set = SetRule {
            endpoint: self.handle.id(),
            context: messages.context.into(),
            match_bits: messages.match_bits,
            mask: messages.mask,
            low: places as u64,
            high: (places >> 64) as u64,
        };
        let opened = commands.open(Command::SetRule, &set, Command::ClearRule, &[]);
        let set = opened.map(|RuleId { rule }| rule);
        let mut locked = self.handle.lock();
        locked.own().rule_is_set(set.as_ref().ok().copied());
        set.map(|id| Rule { id })
    }

    /// Clears a rule: what it revoked is taken again. Messages that were dropped don't come again.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the rule isn't one of this endpoint's that holds.
    pub fn restore(&self, rule: Rule) -> Result<(), CommandError> {
        let (mut commands, ()) = self.commands_for(|own| own.holds_rule(rule.id).then_some(()))?;
        let Nothing {} = commands.call(Command::ClearRule, &RuleId { rule: rule.id })?;
        self.handle.lock().own().forget_rule(rule.id);
        Ok(())
    }
}

impl Own<'_> {
    /// Refuses sends by this rule from now on. If there is such a one its id, else it is to be set.
    fn hold_rule(&mut self, messages: &MessageSet, places: u128) -> Option<u32> {
        let rules = self.rules();
        let found = rules.iter().find(|rule| rule.is(messages, places));
        let id = found.and_then(|found| found.id);
        let id = id.filter(|_| !is_broken!(SetsAnotherRule));
        if id.is_none() {
            rules.push(HeldRule {
                messages: *messages,
                places,
                id,
            });
        }
        id
    }

    /// The card has the rule, or doesn't.
    fn rule_is_set(&mut self, id: Option<u32>) {
        let rules = self.rules();
        if let Some(rule) = rules.iter_mut().find(|rule| rule.id.is_none()) {
            rule.id = id;
        }
        rules.retain(|rule| rule.id.is_some());
    }

    fn holds_rule(&mut self, id: u32) -> bool {
        self.rules().iter().any(|rule| rule.id == Some(id))
    }

    fn forget_rule(&mut self, id: u32) {
        self.rules().retain(|rule| rule.id != Some(id));
    }
}
