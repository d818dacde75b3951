//! Grants: which peer may use which part of which region by which remote key.
//!
//! ```text
//!  Grant ──► checks ──► tag ──► Waiting ──► GrantSet ──► Used ──► Clearing ──► GrantClear ──► Free
//!                                                          ▲          ▲
//!                              SenderRevoke, the end of a pair or a region, which the gates know by themselves
//! ```
//!
//! The gates refuse what has ended by generations and tags, in one step. The rows are cleared behind that, one after the other, and so are the
//! permissions of shared keys. A place of a pair gets its next generation only when that is done. So nothing of an earlier one is ever
//! in the tables when the gates' count of generations comes round. A key for any peer is no pair's: it ends by its revocation or with its region.
//!
//! A key for one access is made by the gates, with `GrantMint`, in rows behind the others. They free its row when it has ended with its access, and say so to
//! nobody: here the row stays `Used` until the gates give it anew.

use crate::argument::{NOT_CONNECTED, NOT_FOUND, Refusal, narrow};
use crate::bits::PairBits;
use crate::card::{Break, Card};
use crate::commands::{Job, Outcome, Served};
use crate::connection::State;
use crate::firmware::{Firmware, UnderWay};
use crate::keys::EntropySource;
use crate::region::RegionState;
use crate::table;
use abi::capability::{CAPABILITY_GRANTS, CAPABILITY_SENDERS};
use abi::control::{
    COVER_CONTEXT, COVER_DOMAIN, COVER_PAGES, COVER_PAIR, COVER_REGION, FenceSetup, GRANT_ANY_PEER,
    GRANT_ONE_SHOT, GRANT_SHARED, GrantSetup, MAX_MINTED, MintSetup, Operation, PAGE_BITS,
    PermissionSetup, RIGHT_REMOTE_ATOMIC, RIGHT_REMOTE_READ, RIGHT_REMOTE_WRITE, minted_grants,
    shared_grants,
};
use abi::event;
use abi::key::{REMOTE_KEY_TAG_BITS, remote_key, remote_key_index, remote_key_tag};
use abi::limits::{MAX_GRANTS, MAX_PAIRS};
use abi::mailbox::{self, AuditKind, NO_PAIR, Nothing, RemoteKey};
use abi::status::MailboxStatus;
use heapless::Vec;

/// Rows of grants: those that the gates make are behind the others.
const MAX_ROWS: usize = MAX_GRANTS + MAX_MINTED as usize;

/// Shared grants that there is room for.
const MAX_SHARED: usize = shared_grants(MAX_GRANTS as u32) as usize;

/// All rights of peers.
pub(crate) const REMOTE_RIGHTS: u8 = RIGHT_REMOTE_WRITE | RIGHT_REMOTE_READ | RIGHT_REMOTE_ATOMIC;

/// What a row of the gates' table is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum GrantState {
    /// Nothing.
    #[default]
    Free,
    /// The gates are to be told of it.
    Waiting,
    /// The gates have been told of it, or are being told.
    Used,
    /// The gates are to forget it.
    Clearing,
}

/// A grant, or a free row.
#[derive(Clone, Copy, Debug, Default)]
struct Grant {
    tag_low: u32,
    tag_high: u16,
    region: u16,
    /// Place of the pair; of a shared grant its number; of one for any peer `NO_PAIR`.
    holder: u16,
    shared: bool,
    state: GrantState,
}

impl Grant {
    const fn key(&self, row: usize) -> u64 {
        let tag = (self.tag_high as u64) << 32 | self.tag_low as u64;
        remote_key(row as u16, tag)
    }

    /// The accesses that it allows.
    fn covered(&self) -> FenceSetup {
        let (covers, pair) = match self.shared || self.holder == event::NO_PAIR {
            true => (COVER_REGION, 0),
            false => (COVER_REGION | COVER_PAIR, self.holder),
        };
        FenceSetup {
            covers,
            region: self.region,
            pair,
            ..FenceSetup::default()
        }
    }
}

/// The pairs whose peers have a permission of a shared grant, and those of which the gates are to forget one.
#[derive(Clone, Copy, Default)]
struct Shared {
    /// It is some grant's.
    taken: bool,
    allowed: PairBits,
    ending: PairBits,
}

/// All grants.
#[derive(Default)]
pub(crate) struct Grants {
    rows: Vec<Grant, MAX_ROWS>,
    shared: Vec<Shared, MAX_SHARED>,
    /// Rows and permissions that the gates are to forget.
    clearing: u32,
    /// The gates have the key of their tags.
    keyed: bool,
    /// Region and pair of the grant that the gates are making.
    minting: Option<(u16, u16)>,
    /// The pair whose peer has been revoked, and whose rows and permissions haven't ended here yet: they do before the next command.
    to_end: Option<usize>,
}

impl Grants {
    /// The row of a key that is in use, or is being forgotten.
    fn find(&self, key: u64) -> Result<usize, Refusal> {
        let row = usize::from(remote_key_index(key));
        let known = self.rows.get(row).is_some_and(|grant| {
            let named = matches!(grant.state, GrantState::Used | GrantState::Clearing);
            named && remote_key_tag(grant.key(row)) == remote_key_tag(key)
        });
        known.then_some(row).ok_or(NOT_FOUND)
    }

    /// A row ends: it is forgotten as soon as the gates are free.
    fn end(&mut self, row: usize) {
        let grant = &mut self.rows[row];
        match grant.state {
            // The gates have not heard of it.
            GrantState::Waiting => {
                grant.state = GrantState::Free;
                let (shared, number) = (grant.shared, usize::from(grant.holder));
                if shared {
                    self.shared[number].taken = false;
                }
            }
            GrantState::Used => {
                grant.state = GrantState::Clearing;
                self.clearing += 1;
                let (shared, number) = (grant.shared, usize::from(grant.holder));
                if shared {
                    for pair in 0..MAX_PAIRS {
                        self.end_permission(number, pair);
                    }
                }
            }
            GrantState::Free | GrantState::Clearing => {}
        }
    }

    /// The gates have made a grant, and this is its key: its row. What had the row before has ended.
    fn minted(&mut self, key: u64) -> Option<usize> {
        let (region, holder) = self.minting.take()?;
        let row = usize::from(remote_key_index(key));
        while self.rows.len() <= row {
            self.rows.push(Grant::default()).ok()?;
        }
        if self.rows[row].state == GrantState::Clearing {
            self.clearing -= 1;
        }
        let tag = remote_key_tag(key);
        self.rows[row] = Grant {
            tag_low: tag as u32,
            tag_high: (tag >> 32) as u16,
            region,
            holder,
            shared: false,
            state: GrantState::Used,
        };
        Some(row)
    }

    fn end_permission(&mut self, number: usize, pair: usize) {
        let shared = &mut self.shared[number];
        if shared.allowed.contains(pair) {
            shared.allowed.remove(pair);
            shared.ending.insert(pair);
            self.clearing += 1;
        }
    }

    /// What was granted to the peer of a pair has ended.
    fn end_of_pair(&mut self, pair: usize) {
        for row in 0..self.rows.len() {
            let grant = &self.rows[row];
            if !grant.shared && usize::from(grant.holder) == pair {
                self.end(row);
            }
        }
        for number in 0..self.shared.len() {
            self.end_permission(number, pair);
        }
    }

    /// What a peer had that has been revoked ends here, too. True if there was one.
    pub(crate) fn end_of_revoked(&mut self) -> bool {
        let to_end = self.to_end.take();
        to_end.inspect(|&pair| self.end_of_pair(pair)).is_some()
    }

    /// A region has ended, and every grant of it.
    fn end_of_region(&mut self, region: usize) {
        for row in 0..self.rows.len() {
            if usize::from(self.rows[row].region) == region {
                self.end(row);
            }
        }
    }

    /// Whether the gates' tables may still have something that was granted to the peer of a pair and has ended.
    fn remembers(&self, pair: usize) -> bool {
        let row = |grant: &Grant| {
            let own = !grant.shared && usize::from(grant.holder) == pair;
            own && grant.state == GrantState::Clearing
        };
        self.clearing != 0
            && (self.rows.iter().any(row)
                || self.shared.iter().any(|one| one.ending.contains(pair)))
    }

    /// A free number of a shared grant: of at most `limit`.
    fn take_number(&mut self, limit: u32) -> Result<usize, Refusal> {
        let free = |one: &Shared| !one.taken && one.ending.is_empty() && one.allowed.is_empty();
        table::free(&mut self.shared, limit, Shared::default(), free)
    }
}

/// The card as a source of entropy.
struct Source<'a, C>(&'a mut C);

impl<C: Card> EntropySource for Source<'_, C> {
    fn word(&mut self) -> u32 {
        self.0.random()
    }
}

impl<C: Card> Firmware<C> {
    /// The place of a connected pair whose peer may use regions of a domain; the id is the argument at `position`.
    fn grantee(&self, id: u32, domain: u8, position: u32) -> Result<usize, Refusal> {
        let index = self.pair(id)?;
        let pair = &self.pairs[index];
        let stranger = self.endpoints[usize::from(pair.endpoint)].domain != domain;
        if stranger && !self.card.is_broken(Break::StrangerGranted) {
            return Err(Refusal::argument(position));
        }
        match pair.state {
            State::Connected => Ok(index),
            _ => Err(NOT_CONNECTED),
        }
    }

    pub(crate) fn grant(&mut self, grant: mailbox::Grant) -> Served<RemoteKey> {
        self.needs(CAPABILITY_GRANTS)?;
        let found = self.tags.find(&self.regions, grant.region);
        let region = found.ok_or(NOT_FOUND)?;
        let of = self.regions[region];
        if of.state != RegionState::Used {
            return Err(NOT_FOUND);
        }
        let any_peer = grant.flags & u32::from(GRANT_ANY_PEER) != 0;
        let pair = match any_peer {
            true if grant.pair == NO_PAIR => event::NO_PAIR,
            true => return Err(Refusal::argument(1)),
            false => {
                self.needs_senders()?;
                self.grantee(grant.pair, of.domain, 1)? as u16
            }
        };
        let rights: u8 = narrow(grant.rights, 2)?;
        let beyond = rights & !REMOTE_RIGHTS != 0 || rights & !of.rights != 0;
        if rights == 0 || beyond && !self.card.is_broken(Break::GrantExceedsRights) {
            return Err(Refusal::argument(2));
        }
        let flags: u8 = narrow(grant.flags, 3)?;
        let shared = flags & GRANT_SHARED != 0;
        let once = flags & GRANT_ONE_SHOT != 0;
        let known = flags & !(GRANT_SHARED | GRANT_ONE_SHOT | GRANT_ANY_PEER) == 0;
        if !known || shared && (any_peer || once) {
            return Err(Refusal::argument(3));
        }
        // A get whose answer is lost asks again, and would find its key ended.
        if once && rights & RIGHT_REMOTE_READ != 0 {
            return Err(Refusal::argument(3));
        }
        let end = grant.offset.checked_add(grant.length);
        let fits = end.is_some_and(|end| end <= of.length);
        if grant.length == 0 || !fits && !self.card.is_broken(Break::GrantExceedsRegion) {
            return Err(Refusal::argument(5));
        }
        let setup = GrantSetup {
            offset: grant.offset,
            length: grant.length,
            region: region as u16,
            region_tag: self.tag(region),
            holder: pair,
            rights,
            flags,
            lasts: match self.card.is_broken(Break::GrantForEver) {
                true => 0,
                false => grant.lasts,
            },
            ..GrantSetup::default()
        };
        if once {
            return Ok(Outcome::Later(Job::Mint { pair, setup }));
        }
        let is_free = |grant: &Grant| grant.state == GrantState::Free;
        let (table, limit) = (&mut self.grants.rows, self.sizes.grants);
        let row = table::free(table, limit, Grant::default(), is_free)?;
        let holder = match shared {
            true => {
                let number = self.grants.take_number(shared_grants(limit))?;
                self.grants.shared[number].taken = true;
                number as u16
            }
            false => pair,
        };
        self.grants.rows[row] = Grant {
            region: region as u16,
            holder,
            shared,
            state: GrantState::Waiting,
            ..Grant::default()
        };
        let setup = GrantSetup { holder, ..setup };
        Ok(Outcome::Later(Job::Grant { row, pair, setup }))
    }

    /// Refuses what a card doesn't know to whom all keys are any peer's.
    fn needs_senders(&self) -> Result<(), Refusal> {
        self.needs(CAPABILITY_GRANTS)?;
        match self.card.is_broken(Break::SendersPretended) {
            true => Ok(()),
            false => self.needs(CAPABILITY_SENDERS),
        }
    }

    pub(crate) fn share(&mut self, share: mailbox::Share) -> Served<Nothing> {
        self.needs_senders()?;
        let row = self.grants.find(share.key)?;
        let grant = self.grants.rows[row];
        if grant.state != GrantState::Used {
            return Err(NOT_FOUND);
        }
        if !grant.shared {
            return Err(Refusal::argument(0));
        }
        let number = grant.holder;
        let domain = self.regions[usize::from(grant.region)].domain;
        let allowed = match share.allowed {
            0 => false,
            1 => true,
            _ => return Err(Refusal::argument(2)),
        };
        let pair = match allowed {
            true => self.grantee(share.pair, domain, 1)?,
            // What it had has ended with the connection.
            false => self.pair(share.pair)?,
        };
        let shared = &self.grants.shared[usize::from(number)];
        if !allowed && !shared.allowed.contains(pair) && !shared.ending.contains(pair) {
            return Ok(Outcome::Done(Nothing {}));
        }
        if !allowed {
            self.grants.end_permission(number.into(), pair);
        }
        Ok(Outcome::Later(Job::Share {
            number,
            pair: pair as u16,
            allowed,
        }))
    }

    pub(crate) fn revoke(&mut self, revoke: RemoteKey) -> Served<Nothing> {
        self.needs(CAPABILITY_GRANTS)?;
        let row = match self.grants.find(revoke.key) {
            Err(_) if self.is_minted(revoke.key) => {
                // Its row may be another's since its access, and that may be on its way still.
                let setup = FenceSetup::default();
                return Ok(match self.card.is_broken(Break::SpentUnfenced) {
                    true => Outcome::Done(Nothing {}),
                    false => Outcome::Later(Job::Fence { setup }),
                });
            }
            found => found?,
        };
        self.grants.end(row);
        Ok(match self.card.is_broken(Break::RevokeAnsweredEarly) {
            true => Outcome::Done(Nothing {}),
            false => Outcome::Later(Job::Revoke { row }),
        })
    }

    pub(crate) fn revoke_peer(&mut self, revoke: mailbox::Pair) -> Served<Nothing> {
        self.needs_senders()?;
        let index = self.pair(revoke.pair)?;
        let id = self.pairs[index].id(index);
        self.audit.record(AuditKind::PeerRevoked, id, 0, &self.card);
        Ok(Outcome::Later(Job::RevokePeer { index }))
    }

    pub(crate) fn fence(&mut self, fence: mailbox::Fence) -> Served<Nothing> {
        self.needs(CAPABILITY_GRANTS)?;
        let domain = self.domains.find(fence.domain)?;
        let covers: u8 = narrow(fence.covers, 1)?;
        let names = |cover: u8| covers & cover != 0;
        if names(!(COVER_REGION | COVER_PAIR | COVER_CONTEXT | COVER_PAGES)) {
            return Err(Refusal::argument(1));
        }
        let mut setup = FenceSetup {
            covers: covers | COVER_DOMAIN,
            domain,
            ..FenceSetup::default()
        };
        if names(COVER_REGION) {
            let found = self.tags.find(&self.regions, fence.region);
            let region = found.ok_or(NOT_FOUND)?;
            if self.regions[region].domain != domain {
                return Err(Refusal::argument(2));
            }
            setup.region = region as u16;
        }
        if names(COVER_PAIR) {
            let pair = self.pair(fence.pair)?;
            let endpoint = usize::from(self.pairs[pair].endpoint);
            if self.endpoints[endpoint].domain != domain {
                return Err(Refusal::argument(3));
            }
            setup.pair = pair as u16;
        }
        if names(COVER_CONTEXT) {
            setup.context = narrow(fence.context, 4)?;
        }
        if names(COVER_PAGES) {
            let behind_first = fence.length.checked_sub(1);
            let last = behind_first.and_then(|length| fence.address.checked_add(length));
            setup.first_page = fence.address >> PAGE_BITS;
            setup.last_page = last.ok_or(Refusal::argument(6))? >> PAGE_BITS;
        }
        Ok(match self.card.is_broken(Break::FenceEndsEarly) {
            true => Outcome::Done(Nothing {}),
            false => Outcome::Later(Job::Fence { setup }),
        })
    }

    /// Whether a key is of a row for grants that the gates make.
    fn is_minted(&self, key: u64) -> bool {
        let row = u32::from(remote_key_index(key));
        let first = self.sizes.grants;
        (first..first + minted_grants(first)).contains(&row)
    }

    /// Has the gates make a grant, when they have the key of their tags.
    fn mint(&mut self, setup: &GrantSetup) -> bool {
        let Ok(true) = self.prepare_keys() else {
            return false;
        };
        if self.grants.keyed {
            self.grants.minting = Some((setup.region, setup.holder));
            self.request(Operation::GrantMint, 0, &setup.to_words());
            return true;
        }
        let (low, high) = match self.card.is_broken(Break::KeysForeseen) {
            true => (0, 0),
            false => (self.keys.tag(), self.keys.tag()),
        };
        let key = MintSetup {
            key_low: low | high << REMOTE_KEY_TAG_BITS,
            key_high: (high >> (u64::BITS - REMOTE_KEY_TAG_BITS)) as u32,
            ..MintSetup::default()
        };
        self.request(Operation::MintSet, 0, &key.to_words());
        true
    }

    /// The gates have the key of their tags.
    pub(crate) fn gates_make_tags(&mut self) {
        self.grants.keyed = true;
    }

    /// The gates have done `GrantMint`, and this is its result, which the host's job waits for if it is `asked`. If nobody waits for the key, or it was made for
    /// what has ended meanwhile, it ends.
    pub(crate) fn grant_minted(&mut self, key: u64, asked: bool) {
        if key == 0 {
            self.grants.minting = None;
            return;
        }
        let before = self.grants.rows.get(usize::from(remote_key_index(key)));
        let before = before.copied().unwrap_or_default();
        let Some(row) = self.grants.minted(key) else {
            return;
        };
        if before.state == GrantState::Clearing {
            if before.holder != event::NO_PAIR {
                // It may have waited for that.
                self.mark(before.holder.into());
            }
            if matches!(self.job, Job::Revoke { row: revoked } if revoked == row) {
                // What is cleared now isn't what was to be revoked, whose access may be on its way still.
                let setup = FenceSetup::default();
                self.job = Job::Fence { setup };
            }
        }
        let Grant { region, holder, .. } = self.grants.rows[row];
        let connected =
            holder == event::NO_PAIR || self.pairs[usize::from(holder)].state == State::Connected;
        let registered = self.regions[usize::from(region)].state == RegionState::Used;
        let kept = asked && connected && registered;
        if !kept && !self.card.is_broken(Break::MintedUnasked) {
            self.grants.end(row);
        }
    }

    /// The next control request of the host's job, which is one of the above.
    pub(crate) fn start_for_grant_job(&mut self) -> bool {
        match self.job {
            Job::Grant {
                row,
                pair,
                mut setup,
            } => {
                if self.grants.rows[row].state != GrantState::Waiting {
                    // It is set, and the first permission is due.
                    return setup.flags & GRANT_SHARED != 0 && self.permit(setup.holder, pair);
                }
                let Ok(true) = self.prepare_keys() else {
                    return false;
                };
                setup.tag = match self.card.is_broken(Break::KeysForeseen) {
                    true => row as u64,
                    false => self.keys.tag(),
                };
                let grant = &mut self.grants.rows[row];
                (grant.tag_low, grant.tag_high) = (setup.tag as u32, (setup.tag >> 32) as u16);
                grant.state = GrantState::Used;
                self.request(Operation::GrantSet, row as u16, &setup.to_words());
                true
            }
            Job::Mint { setup, .. } => self.mint(&setup),
            Job::Share {
                number,
                pair,
                allowed: true,
            } => self.permit(number, pair),
            Job::RevokePeer { index } => {
                // What ended before is forgotten first.
                if self.grants.remembers(index) && !self.card.is_broken(Break::GenerationsOverrun) {
                    return false;
                }
                if self.card.is_broken(Break::RevokeWalks) {
                    self.grants.end_of_pair(index);
                    return false;
                }
                self.request(Operation::SenderRevoke, index as u16, &[]);
                true
            }
            Job::Fence { setup } => {
                self.request(Operation::Fence, 0, &setup.to_words());
                true
            }
            _ => false,
        }
    }

    fn permit(&mut self, number: u16, pair: u16) -> bool {
        let index = usize::from(pair);
        if self.grants.remembers(index) || self.pairs[index].state != State::Connected {
            return false;
        }
        let shared = &mut self.grants.shared[usize::from(number)];
        shared.allowed.insert(index);
        self.request_permission(number, index, true);
        true
    }

    fn request_permission(&mut self, number: u16, pair: usize, allowed: bool) {
        let setup = PermissionSetup {
            shared: number,
            allowed: allowed.into(),
            ..PermissionSetup::default()
        };
        self.request(Operation::PermissionSet, pair as u16, &setup.to_words());
    }

    /// Ends a job whose pair isn't connected any more, and draws random words if a key is to be made. True if something moved.
    pub(crate) fn run_grant_job(&mut self) -> bool {
        let (Job::Grant { pair, .. }
        | Job::Mint { pair, .. }
        | Job::Share {
            pair,
            allowed: true,
            ..
        }) = self.job
        else {
            return false;
        };
        let index = usize::from(pair);
        if pair != event::NO_PAIR && self.pairs[index].state != State::Connected {
            self.grant_is_late();
            self.answer_with(Err::<Nothing, _>(NOT_CONNECTED));
            return true;
        }
        let row = match self.job {
            Job::Grant { row, .. } if self.grants.rows[row].state == GrantState::Waiting => {
                Some(row)
            }
            Job::Mint { .. } => None,
            _ => return false,
        };
        let before = self.keys.is_prepared();
        match self.prepare_keys() {
            Ok(_) => !before,
            Err(fault) => {
                if let Some(row) = row {
                    self.grants.end(row);
                }
                let info = fault as u32;
                self.audit
                    .record(AuditKind::EntropyFailed, 0, info, &self.card);
                let refusal = Refusal::new(MailboxStatus::NoEntropy);
                self.answer_with(Err::<Nothing, _>(refusal));
                true
            }
        }
    }

    fn prepare_keys(&mut self) -> Result<bool, crate::keys::Fault> {
        let untested = self.card.is_broken(Break::EntropyUntested);
        self.keys.prepare(&mut Source(&mut self.card), untested)
    }

    /// Has the gates forget the next row or permission that has ended.
    pub(crate) fn start_for_grants(&mut self) -> bool {
        if self.grants.clearing == 0 {
            return false;
        }
        let clearing = |grant: &Grant| grant.state == GrantState::Clearing;
        if let Some(row) = self.grants.rows.iter().position(clearing) {
            let covered = self.grants.rows[row].covered();
            self.request(Operation::GrantClear, row as u16, &covered.to_words());
            return true;
        }
        for (number, shared) in self.grants.shared.iter().enumerate() {
            if let Some(pair) = shared.ending.next(0) {
                self.request_permission(number as u16, pair, false);
                if let Some(request) = &mut self.under_way {
                    request.set_ending(number as u16);
                }
                return true;
            }
        }
        false
    }

    /// The gates have done a request of a grant or a permission, in time.
    pub(crate) fn grant_answered(&mut self, request: UnderWay) {
        let (index, operation) = (usize::from(request.index), request.operation);
        if operation == Operation::GrantClear
            && self.grants.rows[index].state == GrantState::Clearing
        {
            let Grant { shared, holder, .. } = self.grants.rows[index];
            self.grants.rows[index].state = GrantState::Free;
            self.grants.clearing -= 1;
            match shared {
                true => self.grants.shared[usize::from(holder)].taken = false,
                false if holder == event::NO_PAIR => {}
                // The pair may have waited for that.
                false => self.mark(holder.into()),
            }
        }
        if let Some(number) = request.ending() {
            self.grants.shared[usize::from(number)].ending.remove(index);
            self.grants.clearing -= 1;
            self.mark(index);
        }
    }

    /// Answers the host's job, which is one of the above, if what the gates have done was what it waits for.
    pub(crate) fn advance_grant_job(&mut self, request: UnderWay, result: u64) {
        let (operation, index) = (request.operation, usize::from(request.index));
        match self.job {
            Job::Mint { .. } if operation == Operation::GrantMint && request.for_host => {
                self.answer_with(match result {
                    0 => Err(Refusal::new(MailboxStatus::NoResource)),
                    key => Ok(RemoteKey { key }),
                });
            }
            Job::Grant { row, pair, setup } => {
                let set = operation == Operation::GrantSet && index == row;
                let permitted = operation == Operation::PermissionSet && index == usize::from(pair);
                let shared = setup.flags & GRANT_SHARED != 0;
                let allowed = shared && {
                    let one = &self.grants.shared[usize::from(setup.holder)];
                    one.allowed.contains(pair.into())
                };
                if set && !shared || permitted && allowed {
                    let key = self.grants.rows[row].key(row);
                    self.answer_with(Ok(RemoteKey { key }));
                }
            }
            Job::Share {
                number,
                pair,
                allowed,
            } => {
                let index = usize::from(pair);
                let shared = &self.grants.shared[usize::from(number)];
                let done = match allowed {
                    true => operation == Operation::PermissionSet && shared.allowed.contains(index),
                    false => !shared.ending.contains(index),
                };
                if done {
                    self.answer_with(Ok(Nothing {}));
                }
            }
            Job::Revoke { row } if self.grants.rows[row].state == GrantState::Free => {
                self.answer_with(Ok(Nothing {}));
            }
            Job::RevokePeer { index: pair } => {
                let walked = self.card.is_broken(Break::RevokeWalks);
                if operation == Operation::SenderRevoke && index == pair
                    || walked && !self.grants.remembers(pair)
                {
                    self.answer_with(Ok(Nothing {}));
                    // The host gets its answer first, however much the peer had.
                    self.grants.to_end = Some(pair);
                }
            }
            Job::Fence { .. } if operation == Operation::Fence && request.for_host => {
                self.answer_with(Ok(Nothing {}));
            }
            _ => {}
        }
    }

    /// The host's job isn't answered as it should be: what was granted isn't the host's, and what was to be revoked ends one by one.
    pub(crate) fn grant_is_late(&mut self) {
        match self.job {
            Job::Grant { row, .. } => self.grants.end(row),
            Job::Share {
                number,
                pair,
                allowed: true,
            } => self.grants.end_permission(number.into(), pair.into()),
            // The gates may have revoked it all the same.
            Job::RevokePeer { index } => self.grants.end_of_pair(index),
            _ => {}
        }
    }

    /// The peer of a pair may use nothing any more: the gates refuse it already.
    pub(crate) fn end_grants_of_pair(&mut self, index: usize) {
        if !self.card.is_broken(Break::GrantsOutlivePair) {
            self.grants.end_of_pair(index);
        }
    }

    /// The gates have forgotten a region.
    pub(crate) fn end_grants_of_region(&mut self, index: usize) {
        if !self.card.is_broken(Break::GrantsOutliveRegion) {
            self.grants.end_of_region(index);
        }
    }

    /// Whether the place of a pair may get another generation.
    pub(crate) fn may_renew(&self, index: usize) -> bool {
        !self.grants.remembers(index) || self.card.is_broken(Break::GenerationsOverrun)
    }
}
