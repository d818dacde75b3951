//! What peers may do with regions: the grants, the peers that they are for, and the permissions of shared ones.
//!
//! ```text
//!  remote key ─► grant ─┬─ for one peer: the asking pair, in its present generation ─┐
//!                       ├─ shared: the permission of the asking pair, likewise ──────┼─► part ─► region
//!                       └─ any peer: the asking pair is of the region's domain ──────┘
//! ```
//!
//! A grant and a permission hold the generation that their peer had when they were made. So whatever changes it, a revocation or a new
//! connection of the pair, ends all of them in one step, however many there are. A grant for any peer holds no generation: only its row's end ends it.

use abi::control::{
    GRANT_ANY_PEER, GRANT_ONE_SHOT, GRANT_SHARED, GrantSetup, PermissionSetup, RefusalReason,
    minted_grants, region_key, shared_grants,
};
use abi::key::{remote_key_index, remote_key_tag};
use abi::times::GRANT_TICK;

use crate::breaks::Break;
use crate::regions::RemoteAccess;

/// The peer of a pair, as far as its accesses go.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    /// The pair is connected and hasn't failed.
    open: bool,
    /// Connections and revocations of the place, modulo 2^8: a grant of an earlier generation is cleared before the place gets the next but 254.
    generation: u8,
    /// Of its endpoint.
    domain: u8,
}

#[derive(Clone, Copy, Debug)]
struct Grant {
    setup: GrantSetup,
    /// Of the holder, when the grant was made.
    generation: u8,
    /// Unit of [`GRANT_TICK`] cycles from whose beginning on it has ended.
    until: Option<u64>,
}

/// Why an access of a peer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refused {
    /// The key's row is beyond the table, or holds no grant; or the grant's time is over.
    NoGrant,
    /// The key has another tag.
    Tag,
    /// The pair isn't connected, or has failed.
    Closed,
    /// The grant is another peer's.
    Holder,
    /// It was made before the peer was revoked, or for an earlier connection of the pair.
    Generation,
    /// The key is shared, and this peer has no permission.
    Permission,
    /// The grant doesn't have the rights.
    Rights,
    /// The access isn't wholly in the granted part.
    Part,
    /// The region isn't there any more, lacks the rights, or is shorter.
    Region,
    /// The key is for any peer of a domain, and the pair is of another one.
    Domain,
}

impl Refused {
    /// All reasons.
    pub const ALL: [Self; 10] = [
        Self::NoGrant,
        Self::Tag,
        Self::Closed,
        Self::Holder,
        Self::Generation,
        Self::Permission,
        Self::Rights,
        Self::Part,
        Self::Region,
        Self::Domain,
    ];

    /// What is told of it.
    pub const fn reason(self) -> RefusalReason {
        match self {
            Self::NoGrant => RefusalReason::UnknownKey,
            Self::Tag => RefusalReason::WrongTag,
            Self::Holder | Self::Permission | Self::Domain => RefusalReason::WrongPeer,
            Self::Closed | Self::Generation => RefusalReason::Revoked,
            Self::Rights => RefusalReason::MissingRight,
            Self::Part => RefusalReason::OutOfBounds,
            Self::Region => RefusalReason::RegionGone,
        }
    }
}

/// The tables.
#[derive(Clone, Debug)]
pub struct Grants {
    rows: Vec<Option<Grant>>,
    senders: Vec<Sender>,
    /// For each shared grant and pair the generation of the peer that has a permission.
    permissions: Vec<Option<u8>>,
    /// Cycles that have passed, at least.
    now: u64,
    broken: Break,
}

impl Grants {
    /// No grant, and no pair that is connected. Behind the rows of so many grants are those of the grants that the gates make.
    pub fn new(grants: usize, pairs: usize) -> Self {
        Self {
            rows: vec![None; grants + minted_grants(grants as u32) as usize],
            senders: vec![Sender::default(); pairs],
            permissions: vec![None; shared_grants(grants as u32) as usize * pairs],
            now: 0,
            broken: Break::None,
        }
    }

    /// So many cycles have passed.
    pub fn advance_to(&mut self, now: u64) {
        self.now = now;
    }

    /// The unit of time that has begun.
    fn unit(&self) -> u64 {
        self.now / u64::from(GRANT_TICK)
    }

    /// The grant of a row, unless its time is over.
    fn row(&self, row: u16) -> Option<Grant> {
        let grant = self.rows.get(usize::from(row)).copied().flatten();
        grant.filter(|grant| {
            let over = grant.until.is_some_and(|until| self.unit() >= until);
            !over || self.broken == Break::GrantOutlivesTime
        })
    }

    pub(crate) fn break_on_purpose(&mut self, broken: Break) {
        self.broken = broken;
    }

    /// A pair of an endpoint of `domain` is connected: what was granted to the peer that had its place before has ended.
    pub fn connect(&mut self, pair: u16, domain: u8) {
        if let Some(sender) = self.senders.get_mut(usize::from(pair)) {
            sender.open = true;
            sender.domain = domain;
            sender.generation = sender.generation.wrapping_add(1);
        }
    }

    /// A pair has failed, or is cleared: its peer may do nothing.
    pub fn close(&mut self, pair: u16) {
        if let Some(sender) = self.senders.get_mut(usize::from(pair)) {
            sender.open = self.broken == Break::FailedWrites && sender.open;
        }
    }

    /// All that was granted to the peer of a pair has ended.
    pub fn revoke(&mut self, pair: u16) {
        if self.broken == Break::RevokesNobody {
            return;
        }
        if let Some(sender) = self.senders.get_mut(usize::from(pair)) {
            sender.generation = sender.generation.wrapping_add(1);
        }
    }

    /// Enters a grant. A row beyond the table changes nothing.
    pub fn set(&mut self, row: u16, setup: GrantSetup) {
        let holder = self.senders.get(usize::from(setup.holder));
        let generation = holder.map_or(0, |holder| holder.generation);
        let until = (setup.lasts != 0).then(|| self.unit() + u64::from(setup.lasts));
        if let Some(entry) = self.rows.get_mut(usize::from(row)) {
            *entry = Some(Grant {
                setup,
                generation,
                until,
            });
        }
    }

    /// Forgets a grant.
    pub fn clear(&mut self, row: u16) {
        if let Some(entry) = self.rows.get_mut(usize::from(row))
            && self.broken != Break::GrantKept
        {
            *entry = None;
        }
    }

    fn permission(&self, shared: u16, pair: u16) -> Option<usize> {
        let pairs = self.senders.len();
        let at = usize::from(shared) * pairs + usize::from(pair);
        (usize::from(pair) < pairs && at < self.permissions.len()).then_some(at)
    }

    /// Gives the peer of a pair a permission, or takes it.
    pub fn permit(&mut self, pair: u16, setup: PermissionSetup) {
        if let Some(at) = self.permission(setup.shared, pair) {
            let generation = self.senders[usize::from(pair)].generation;
            self.permissions[at] = (setup.allowed != 0).then_some(generation);
        }
    }

    /// The domain that the region of a grant has to be of, for this pair.
    pub(crate) fn domain_for(&self, grant: &GrantSetup, pair: u16) -> Option<u8> {
        let any = grant.flags & GRANT_ANY_PEER != 0 && self.broken != Break::DomainIgnored;
        any.then(|| self.senders[usize::from(pair)].domain)
    }

    /// Key of the region that a remote key's row names, whatever the key's tag is; 0 if it names none.
    pub fn region_named(&self, key: u64) -> u32 {
        let grant = self.row(remote_key_index(key));
        grant.map_or(0, |Grant { setup, .. }| {
            region_key(setup.region, setup.region_tag)
        })
    }

    /// The grant that an access is allowed by, but for what its region says.
    ///
    /// # Errors
    /// Why it isn't.
    pub fn find(&self, access: &RemoteAccess) -> Result<GrantSetup, Refused> {
        let row = self.row(remote_key_index(access.key));
        let Grant {
            setup, generation, ..
        } = row.ok_or(Refused::NoGrant)?;
        if setup.tag != remote_key_tag(access.key) && self.broken != Break::RemoteTagIgnored {
            return Err(Refused::Tag);
        }
        let sender = self.senders.get(usize::from(access.pair));
        let sender = *sender.filter(|sender| sender.open).ok_or(Refused::Closed)?;
        if setup.flags & GRANT_SHARED != 0 {
            let held = self.permission(setup.holder, access.pair);
            let held = held.and_then(|at| self.permissions[at]);
            if held.ok_or(Refused::Permission)? != sender.generation {
                return Err(Refused::Generation);
            }
        } else if setup.flags & GRANT_ANY_PEER != 0 && self.broken != Break::AnyPeerIgnored {
            // Whose it is, is all that matters: Regions compares its domain.
        } else if setup.holder != access.pair && self.broken != Break::HolderIgnored {
            return Err(Refused::Holder);
        } else if generation != sender.generation {
            return Err(Refused::Generation);
        }
        if setup.rights & access.rights != access.rights {
            return Err(Refused::Rights);
        }
        let end = |first: u64, length: u64| u128::from(first) + u128::from(length);
        let inside = access.offset >= setup.offset
            && end(access.offset, access.length) <= end(setup.offset, setup.length);
        match inside || self.broken == Break::PartIgnored {
            true => Ok(setup),
            false => Err(Refused::Part),
        }
    }

    /// An access by this key was allowed: a one-shot grant has ended with it, in which case this is true.
    pub fn used(&mut self, key: u64) -> bool {
        let row = usize::from(remote_key_index(key));
        let entry = self.rows.get_mut(row);
        let once = |grant: &mut Grant| grant.setup.flags & GRANT_ONE_SHOT != 0;
        entry.is_some_and(|entry| entry.take_if(once).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mint::Mint;
    use crate::regions::Regions;
    use abi::control::{MintSetup, RIGHT_REMOTE_READ, RIGHT_REMOTE_WRITE, RegionSetup};
    use abi::key::remote_key;

    const TAG: u64 = 0xdead_beef_cafe;

    fn access(pair: u16, row: u16) -> RemoteAccess {
        RemoteAccess {
            pair,
            key: remote_key(row, TAG),
            rights: RIGHT_REMOTE_WRITE,
            offset: 0x10,
            length: 0x20,
        }
    }

    /// Pairs 0 to 2 are connected, the last one in another domain than the region's. Row 0 is pair 1's, row 1 pair 1's for one access, row 2 shared by 0 and
    /// 1, row 4 any peer's.
    fn tables(broken: Break) -> Regions {
        let mut regions = Regions::with_grants(4, 32, 4);
        regions.break_on_purpose(broken);
        let region = RegionSetup {
            base: 0x1000,
            length: 0x100,
            tag: 9,
            rights: RIGHT_REMOTE_WRITE | RIGHT_REMOTE_READ,
            ..RegionSetup::default()
        };
        regions.set(3, Some(region));
        (0..3).for_each(|pair| regions.grants.connect(pair, u8::from(pair == 2)));
        for (row, holder, flags) in [
            (0, 1, 0),
            (1, 1, GRANT_ONE_SHOT),
            (2, 0, GRANT_SHARED),
            (4, u16::MAX, GRANT_ANY_PEER),
        ] {
            let setup = GrantSetup {
                offset: 0x10,
                length: 0x20,
                tag: TAG,
                region: 3,
                region_tag: 9,
                holder,
                rights: RIGHT_REMOTE_WRITE,
                flags,
                ..GrantSetup::default()
            };
            regions.grants.set(row, setup);
        }
        for pair in [0, 1] {
            regions.grants.permit(pair, permission(1));
        }
        regions
    }

    fn permission(allowed: u8) -> PermissionSetup {
        PermissionSetup {
            allowed,
            ..PermissionSetup::default()
        }
    }

    /// What the first access is that isn't answered as it should be.
    fn amiss(broken: Break) -> Option<&'static str> {
        let all = || tables(broken);
        let mut regions = all();
        let mut amiss = Vec::new();
        let mut expect = |what, is: Result<u64, Refused>, promised| {
            if is != promised {
                amiss.push(what);
            }
        };
        let good = access(1, 0);
        let (row, offset, length) = (0, good.offset, good.length);
        expect("granted", regions.find_remote(&good), Ok(0x1010));
        expect("shared", regions.find_remote(&access(0, 2)), Ok(0x1010));
        for pair in [0, 1] {
            let any = regions.find_remote(&access(pair, 4));
            expect("any peer", any, Ok(0x1010));
        }
        for (what, bad, why) in [
            ("row", access(1, 3), Refused::NoGrant),
            ("row beyond", access(1, 32), Refused::NoGrant),
            ("holder", access(0, row), Refused::Holder),
            ("pair", access(3, row), Refused::Closed),
            ("pair beyond", access(4, row), Refused::Closed),
            ("permission", access(2, 2), Refused::Permission),
            ("domain", access(2, 4), Refused::Domain),
            ("pair of any peer", access(3, 4), Refused::Closed),
        ] {
            expect(what, regions.find_remote(&bad), Err(why));
        }
        let key = remote_key(row, TAG ^ 1 << 47);
        let tag = regions.find_remote(&RemoteAccess { key, ..good });
        expect("tag", tag, Err(Refused::Tag));
        let rights = RIGHT_REMOTE_READ;
        let right = regions.find_remote(&RemoteAccess { rights, ..good });
        expect("rights", right, Err(Refused::Rights));
        for (offset, length) in [
            (offset - 1, length),
            (offset, length + 1),
            (offset + 1, length),
            (u64::MAX, 0x12),
            (offset, u64::MAX),
        ] {
            let part = RemoteAccess {
                offset,
                length,
                ..good
            };
            expect("part", regions.find_remote(&part), Err(Refused::Part));
        }

        let once = access(1, 1);
        let used = |regions: &mut Regions| regions.allowed_remote(&once);
        assert_eq!(used(&mut regions), Some(0x1010));
        expect("once", regions.find_remote(&once), Err(Refused::NoGrant));

        regions.grants.permit(1, permission(0));
        let shared = |pair| access(pair, 2);
        let taken = regions.find_remote(&shared(1));
        expect("permission taken", taken, Err(Refused::Permission));
        expect("another's", regions.find_remote(&shared(0)), Ok(0x1010));

        let mut cleared = all();
        cleared.grants.clear(0);
        expect("cleared", cleared.find_remote(&good), Err(Refused::NoGrant));

        let mut timed = all();
        let unit = u64::from(GRANT_TICK);
        timed.grants.advance_to(7 * unit - 1);
        let Grant { setup, .. } = timed.grants.row(row).expect("it is granted");
        timed.grants.set(row, GrantSetup { lasts: 2, ..setup });
        timed.grants.advance_to(8 * unit - 1);
        expect("in time", timed.find_remote(&good), Ok(0x1010));
        timed.grants.advance_to(8 * unit);
        expect("over", timed.find_remote(&good), Err(Refused::NoGrant));
        assert_eq!(
            timed.grants.region_named(access(1, 4).key),
            region_key(3, 9)
        );

        let mut revoked = all();
        revoked.grants.revoke(1);
        for bad in [good, once, shared(1)] {
            let gone = Err(Refused::Generation);
            expect("revoked", revoked.find_remote(&bad), gone);
        }
        expect("another's", revoked.find_remote(&shared(0)), Ok(0x1010));
        // Which peers a key for any is good for can't be changed: only the key ends.
        let any = access(1, 4);
        expect("any revoked", revoked.find_remote(&any), Ok(0x1010));

        let mut failed = all();
        failed.grants.close(1);
        for bad in [good, once, shared(1), any] {
            let closed = Err(Refused::Closed);
            expect("failed", failed.find_remote(&bad), closed);
        }
        failed.grants.connect(1, 0);
        expect("any anew", failed.find_remote(&any), Ok(0x1010));
        for bad in [good, once, shared(1)] {
            let gone = Err(Refused::Generation);
            expect("connected anew", failed.find_remote(&bad), gone);
        }

        let mut forgotten = all();
        forgotten.set(3, None);
        let gone = Err(Refused::Region);
        expect("no region", forgotten.find_remote(&good), gone);
        let next = RegionSetup {
            tag: 10,
            ..all().get(3).expect("it is set")
        };
        forgotten.set(3, Some(next));
        expect("another region", forgotten.find_remote(&good), gone);
        // Of 8 grants there is one row for those that the gates make.
        let mut mint = Mint::new(8);
        mint.break_on_purpose(broken);
        mint.set_key(&MintSetup::default());
        let key = mint.mint().expect("there are a row and a key");
        mint.free(remote_key_index(key));
        let again = mint.mint().map(|_| 0).ok_or(Refused::NoGrant);
        expect("made anew", again, Ok(0));
        amiss.first().copied()
    }

    #[test]
    fn each_reason_refuses_by_itself_and_nothing_else_is_refused() {
        assert_eq!(amiss(Break::None), None);
    }

    #[test]
    fn each_break_of_the_grants_is_noticed() {
        for broken in Break::OF_GRANTS {
            assert!(amiss(broken).is_some(), "{broken:?}");
        }
    }
}
