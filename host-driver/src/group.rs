//! Groups: the pairs of an endpoint that a verb names together, and which rank each peer has in the program.
//!
//! The card knows no group: a verb gives it a bit for each pair. A pair that is closed stays a member by its rank, and nothing is done with it.

use crate::core::Own;
use crate::endpoint::Endpoint;
use crate::error::CommandError;
use crate::pair::Pair;

/// Pairs of one endpoint with the ranks of their peers, and the program's own rank: an MPI communicator's group, as this process sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// In the order of the ranks.
    members: Vec<(u32, Pair)>,
    own_rank: u32,
}

impl Group {
    /// A group of these ranks and pairs, and of the program itself.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if a pair isn't an open pair of the endpoint; `Argument` if a rank or a pair comes twice, or a rank is the program's own.
    pub fn new(
        endpoint: &Endpoint,
        members: &[(u32, Pair)],
        own_rank: u32,
    ) -> Result<Self, CommandError> {
        let mut members = members.to_vec();
        members.sort_by_key(|&(rank, _)| rank);
        let mut places = 0_u128;
        for (k, &(rank, pair)) in members.iter().enumerate() {
            let place = 1_u128.checked_shl(pair.index.into()).unwrap_or(0);
            let again = k > 0 && members[k - 1].0 == rank || places & place != 0;
            if again || rank == own_rank {
                return Err(CommandError::Argument(
                    "the members of a group have ranks and pairs of their own",
                ));
            }
            places |= place;
        }
        let group = Self { members, own_rank };
        let mut locked = endpoint.handle.lock();
        let mut own = locked.own();
        let open = |&(_, pair): &(u32, Pair)| own.pair_id(pair).is_some();
        group
            .members
            .iter()
            .all(open)
            .then(|| group.clone())
            .ok_or(CommandError::NotFound)
    }

    /// The program's own rank.
    pub fn own_rank(&self) -> u32 {
        self.own_rank
    }

    /// Ranks and pairs of the others, in the order of the ranks.
    pub fn members(&self) -> &[(u32, Pair)] {
        &self.members
    }

    /// The pair of a rank; none of the program's own or of no member.
    pub fn pair(&self, rank: u32) -> Option<Pair> {
        let at = self.members.binary_search_by_key(&rank, |&(rank, _)| rank);
        at.ok().map(|at| self.members[at].1)
    }

    /// The rank of a pair, if it is a member.
    pub fn rank(&self, pair: Pair) -> Option<u32> {
        let found = self.members.iter().find(|&&(_, member)| member == pair);
        found.map(|&(rank, _)| rank)
    }

    /// The group of those members whose ranks are chosen, and of the program itself.
    pub(crate) fn part(&self, chosen: impl Fn(u32) -> bool) -> Self {
        let members = self.members.iter().copied();
        Self {
            members: members.filter(|&(rank, _)| chosen(rank)).collect(),
            own_rank: self.own_rank,
        }
    }

    /// A bit for each place of a member that is open.
    pub(crate) fn places(&self, own: &mut Own<'_>) -> u128 {
        let open = self.members.iter().map(|&(_, pair)| pair);
        open.filter(|&pair| own.pair_id(pair).is_some())
            .map(|pair| 1_u128.checked_shl(pair.index.into()).unwrap_or(0))
            .fold(0, |places, place| places | place)
    }
}
