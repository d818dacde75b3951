//! What is posted and sent in the measurements: the same for the gates, the firmware and the host.

use match_reference::{Command, Operation};
use rand::Rng;

/// Bits of MPI's tag, at the lower end of the match bits.
pub const TAG_BITS: u64 = 0x7fff_ffff;

/// Bits of the contexts of one kind, where there are several.
const CONTEXT_BITS: u32 = 14;

/// Which list a measurement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// Posted receives.
    Posted,
    /// Messages that wait.
    Unexpected,
}

impl Structure {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Posted, Self::Unexpected];

    /// As it is in a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Posted => "posted",
            Self::Unexpected => "unexpected",
        }
    }
}

/// What the receives leave open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Exact,
    /// The tag.
    AnyTag,
    /// The source.
    AnySource,
    /// Both.
    Any,
    /// Two bits of the tag, other ones in each receive.
    Mask,
}

impl Kind {
    /// All.
    pub const ALL: [Self; 5] = [
        Self::Exact,
        Self::AnyTag,
        Self::AnySource,
        Self::Any,
        Self::Mask,
    ];

    /// Those whose receives are of one class each.
    pub const OF_A_CLASS: [Self; 4] = [Self::Exact, Self::AnyTag, Self::AnySource, Self::Any];

    /// As it is in a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::AnyTag => "any_tag",
            Self::AnySource => "any_source",
            Self::Any => "any",
            Self::Mask => "mask",
        }
    }
}

/// Receives of a kind, or of several in turn, and the messages for them. As many differ as the kind and the number of pairs
/// allow: the context is what tells receives apart that leave the tag open, or are of another kind.
pub struct Workload {
    kinds: Vec<Kind>,
    pairs: usize,
    tags: Vec<u64>,
}

impl Workload {
    /// `count` receives from `pairs` sources.
    pub fn new(kinds: &[Kind], count: usize, pairs: usize, rng: &mut (impl Rng + ?Sized)) -> Self {
        // An odd factor: the tags differ.
        let (factor, start) = (rng.random::<u64>() | 1, rng.random::<u64>());
        let tag = |n: usize| start.wrapping_add((n as u64).wrapping_mul(factor)) & TAG_BITS;
        Workload {
            kinds: kinds.to_vec(),
            pairs,
            tags: (0..count).map(tag).collect(),
        }
    }

    fn kind(&self, n: usize) -> Kind {
        self.kinds[n % self.kinds.len()]
    }

    /// The number of receive `n` among those of its kind.
    fn number(&self, n: usize) -> usize {
        n / self.kinds.len()
    }

    fn pair(&self, n: usize) -> u16 {
        (self.number(n) % self.pairs) as u16
    }

    /// Receives that are told apart by their context have few values of it; the others have one. A kind has its own.
    fn context(&self, n: usize) -> u16 {
        let number = self.number(n);
        let own = match self.kind(n) {
            Kind::Exact | Kind::AnySource => 0,
            Kind::AnyTag => (number / self.pairs) as u16,
            Kind::Any | Kind::Mask => number as u16,
        };
        ((n % self.kinds.len()) << CONTEXT_BITS) as u16 | own
    }

    /// Message `n`, for receive `n` and no other.
    pub fn message(&self, n: usize) -> Command {
        Command {
            pair: self.pair(n),
            context: self.context(n),
            match_bits: self.tags[n],
            ..Command::new(Operation::Arrive)
        }
    }

    /// Receive `n`; its handle is its number.
    pub fn receive(&self, n: usize) -> Command {
        let kind = self.kind(n);
        Command {
            operation: Operation::Post,
            any_source: matches!(kind, Kind::AnySource | Kind::Any),
            ignore_bits: match kind {
                Kind::Exact | Kind::AnySource => 0,
                Kind::AnyTag | Kind::Any => TAG_BITS,
                Kind::Mask => mask(n),
            },
            request: n as u32,
            ..self.message(n)
        }
    }
}

/// Two bits of the tag, which no other number below 225 has.
pub fn mask(n: usize) -> u64 {
    1 << (n % 15) | 1 << (15 + n / 15 % 15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn a_message_matches_its_receive_and_no_other() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let alone = Kind::ALL.map(|kind| vec![kind]);
        for kinds in alone.into_iter().chain([Kind::OF_A_CLASS.to_vec()]) {
            let workload = Workload::new(&kinds, 300, 8, &mut rng);
            for message in 0..300 {
                for receive in 0..300 {
                    let matches = workload
                        .receive(receive)
                        .matches(&workload.message(message));
                    assert_eq!(matches, receive == message, "{kinds:?}");
                }
            }
        }
    }
}
