//! Protection domains: numbers, and how many objects hang on each.

use crate::argument::Refusal;
use abi::status::MailboxStatus;

/// Protection domains that may be open at a time. The gates only compare their numbers.
pub(crate) const DOMAINS: usize = 64;

/// The protection domains.
pub(crate) struct Domains {
    /// Objects that use the domain; none if it isn't open.
    users: [Option<u16>; DOMAINS],
}

impl Domains {
    pub(crate) const fn new() -> Self {
        Self {
            users: [None; DOMAINS],
        }
    }

    pub(crate) fn open(&mut self) -> Result<u8, Refusal> {
        let free = self.users.iter().position(Option::is_none);
        let domain = free.ok_or(Refusal::new(MailboxStatus::NoResource))?;
        self.users[domain] = Some(0);
        Ok(domain as u8)
    }

    pub(crate) fn close(&mut self, domain: u32) -> Result<(), Refusal> {
        let domain = self.find(domain)?;
        if self.users[usize::from(domain)] != Some(0) {
            return Err(Refusal::new(MailboxStatus::Busy));
        }
        self.users[usize::from(domain)] = None;
        Ok(())
    }

    /// The open domain of this number.
    pub(crate) fn find(&self, domain: u32) -> Result<u8, Refusal> {
        match self.users.get(domain as usize) {
            Some(Some(_)) => Ok(domain as u8),
            _ => Err(Refusal::new(MailboxStatus::NotFound)),
        }
    }

    /// One more object uses an open domain.
    pub(crate) fn acquire(&mut self, domain: u8) {
        if let Some(Some(users)) = self.users.get_mut(usize::from(domain)) {
            *users += 1;
        }
    }

    /// One object less uses it.
    pub(crate) fn release(&mut self, domain: u8) {
        if let Some(Some(users)) = self.users.get_mut(usize::from(domain)) {
            *users -= 1;
        }
    }
}
