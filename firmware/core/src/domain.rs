//! Protection domains: numbers, and how many objects hang on each.

use crate::argument::{BUSY, NOT_FOUND, Refusal};
use abi::mailbox::{id_generation, id_index, object_id};
use abi::status::MailboxStatus;

/// Protection domains that may be open at a time. The gates only compare their numbers.
pub(crate) const DOMAINS: usize = 64;

#[derive(Clone, Copy, Default)]
struct Domain {
    generation: u16,
    /// Objects that use the domain; none if it isn't open.
    users: Option<u16>,
}

/// The protection domains.
pub(crate) struct Domains {
    places: [Domain; DOMAINS],
}

impl Domains {
    /// None is open; generations begin after `generation`.
    pub(crate) fn new(generation: u16) -> Self {
        let place = Domain {
            generation,
            users: None,
        };
        Self {
            places: [place; DOMAINS],
        }
    }

    /// Opens a domain and returns its id.
    pub(crate) fn open(&mut self) -> Result<u32, Refusal> {
        let free = self.places.iter().position(|place| place.users.is_none());
        let index = free.ok_or(Refusal::new(MailboxStatus::NoResource))?;
        let place = &mut self.places[index];
        place.generation = place.generation.wrapping_add(1);
        place.users = Some(0);
        Ok(object_id(index as u16, place.generation))
    }

    pub(crate) fn close(&mut self, id: u32) -> Result<(), Refusal> {
        let place = &mut self.places[usize::from(self.find(id)?)];
        if place.users != Some(0) {
            return Err(BUSY);
        }
        place.users = None;
        Ok(())
    }

    /// The place of the open domain of this id.
    pub(crate) fn find(&self, id: u32) -> Result<u8, Refusal> {
        match self.places.get(usize::from(id_index(id))) {
            Some(place) if place.users.is_some() && place.generation == id_generation(id) => {
                Ok(id as u8)
            }
            _ => Err(NOT_FOUND),
        }
    }

    /// One more object uses an open domain.
    pub(crate) fn acquire(&mut self, domain: u8) {
        if let Some(users) = &mut self.places[usize::from(domain)].users {
            *users += 1;
        }
    }

    /// One object less uses it.
    pub(crate) fn release(&mut self, domain: u8) {
        if let Some(users) = &mut self.places[usize::from(domain)].users {
            *users -= 1;
        }
    }
}
