//! Which memory may be accessed: the table of regions, and the question whether an access lies in one with the right.

use abi::control::{RegionSetup, key_index, key_tag};
use abi::event::{PeerRefusal, Refusal};
use abi::key::remote_key_index;

use crate::breaks::Break;
use crate::grants::{Grants, Refused};
use crate::mint::Mint;

/// A question for [`Regions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Protection domain of whoever asks.
    pub domain: u8,
    /// Local key.
    pub key: u32,
    /// `RIGHT_*` needed.
    pub rights: u8,
    /// First byte.
    pub address: u64,
    /// Bytes.
    pub length: u64,
}

/// A question of a peer: may it reach this part of a region?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAccess {
    /// Pair that the frame came by.
    pub pair: u16,
    /// Remote key.
    pub key: u64,
    /// `RIGHT_*` needed.
    pub rights: u8,
    /// First byte, from the first of the region.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

/// The regions of a card.
#[derive(Clone, Debug)]
pub struct Regions {
    /// What peers may do with them.
    pub grants: Grants,
    /// Those that the gates make.
    pub mint: Mint,
    table: Vec<Option<RegionSetup>>,
    /// What was refused last, and how often since it was told.
    refused: Refusal,
    broken: Break,
}

impl Regions {
    /// An empty table of `count` regions, none of which can be granted.
    pub fn new(count: usize) -> Self {
        Self::with_grants(count, 0, 0)
    }

    /// Empty tables of `count` regions, and of so many grants to the peers of so many pairs.
    pub fn with_grants(count: usize, grants: usize, pairs: usize) -> Self {
        Self {
            grants: Grants::new(grants, pairs),
            mint: Mint::new(grants),
            table: vec![None; count],
            refused: Refusal::default(),
            broken: Break::None,
        }
    }

    /// Breaks the room on purpose.
    pub fn break_on_purpose(&mut self, broken: Break) {
        self.broken = broken;
        self.grants.break_on_purpose(broken);
        self.mint.break_on_purpose(broken);
    }

    /// The region of this index.
    pub fn get(&self, index: u16) -> Option<RegionSetup> {
        self.table.get(usize::from(index)).copied().flatten()
    }

    /// Enters a region or forgets it. An index beyond the table names nothing.
    pub fn set(&mut self, index: u16, region: Option<RegionSetup>) {
        if let Some(entry) = self.table.get_mut(usize::from(index)) {
            *entry = region;
        }
    }

    /// Whether the access is [allowed](Self::allowed); the firmware is to be told if it isn't.
    pub fn ask(&mut self, access: &Access) -> bool {
        let allowed = self.allowed(access);
        if !allowed {
            self.refused = Refusal {
                key: access.key,
                domain: access.domain,
                rights: access.rights,
                count: self.refused.count.saturating_add(1),
            };
        }
        allowed
    }

    /// Takes what the firmware is to be told of refusals.
    pub fn take_refusal(&mut self) -> Option<Refusal> {
        let refused = std::mem::take(&mut self.refused);
        (refused.count > 0).then_some(refused)
    }

    /// Card address of a peer's access, if it is [allowed](Self::find_remote). A one-shot grant ends with it.
    pub fn allowed_remote(&mut self, access: &RemoteAccess) -> Option<u64> {
        let address = self.find_remote(access).ok()?;
        if self.grants.used(access.key) {
            self.mint.free(remote_key_index(access.key));
        }
        Some(address)
    }

    /// Card address of a peer's access that is allowed: by a grant, for all of its bytes, of a region that is still the one that was granted.
    ///
    /// # Errors
    /// Why it isn't.
    pub fn find_remote(&self, access: &RemoteAccess) -> Result<u64, Refused> {
        let grant = self.grants.find(access)?;
        let end = u128::from(access.offset) + u128::from(access.length);
        let region = self
            .get(grant.region)
            .filter(|region| region.tag == grant.region_tag)
            .filter(|region| region.rights & access.rights == access.rights)
            .filter(|region| end <= u128::from(region.length))
            .ok_or(Refused::Region)?;
        match self.grants.domain_for(&grant, access.pair) {
            Some(domain) if domain != region.domain => Err(Refused::Domain),
            _ => Ok(region.base.wrapping_add(access.offset)),
        }
    }

    /// What a host is told of a peer's access that is refused; none if it isn't.
    pub fn peer_refusal(&self, access: &RemoteAccess) -> Option<PeerRefusal> {
        let refused = self.find_remote(access).err()?;
        Some(PeerRefusal {
            region: self.grants.region_named(access.key),
            offset: access.offset,
            reason: refused.reason(),
            count: 1,
        })
    }

    /// Whether the access is allowed: the key names a region of the domain that has the rights and covers all of it.
    pub fn allowed(&self, access: &Access) -> bool {
        let Some(region) = self.get(key_index(access.key)) else {
            return false;
        };
        let end = |base: u64, length: u64| u128::from(base) + u128::from(length);
        let tagged = region.tag == key_tag(access.key) || self.broken == Break::TagIgnored;
        tagged
            && region.domain == access.domain
            && region.rights & access.rights == access.rights
            && access.address >= region.base
            && end(access.address, access.length) <= end(region.base, region.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::control::{RIGHT_LOCAL_READ, RIGHT_LOCAL_WRITE, region_key};

    #[test]
    fn key_domain_rights_and_every_byte_have_to_agree() {
        let mut regions = Regions::new(4);
        let region = RegionSetup {
            base: u64::MAX - 15,
            length: 16,
            tag: 9,
            domain: 3,
            rights: RIGHT_LOCAL_READ,
            ..RegionSetup::default()
        };
        regions.set(2, Some(region));
        regions.set(4, Some(region));
        let good = Access {
            domain: 3,
            key: region_key(2, 9),
            rights: RIGHT_LOCAL_READ,
            address: u64::MAX - 15,
            length: 16,
        };
        assert!(regions.allowed(&good));
        let key = |index, tag| Access {
            key: region_key(index, tag),
            ..good
        };
        let rights = RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE;
        let (address, length) = (good.address, good.length);
        for bad in [
            key(1, 9),
            key(2, 8),
            key(4, 9),
            Access { domain: 2, ..good },
            Access { rights, ..good },
            Access {
                address: address - 1,
                ..good
            },
            Access {
                address: address + 1,
                ..good
            },
            Access {
                length: length + 1,
                ..good
            },
            // The end wraps into the region.
            Access {
                address: address + 8,
                length: u64::MAX,
                ..good
            },
        ] {
            assert!(!regions.allowed(&bad), "{bad:x?}");
        }
        regions.set(2, None);
        assert!(!regions.allowed(&good));
    }
}
