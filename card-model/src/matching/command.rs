//! Commands and replies, and their bits on the engine's pins.

/// What a command asks for.
pub use abi::monitor::MatchOperation as Operation;
use abi::monitor::{MATCH_COMMAND_WIDTHS, MATCH_REPLY_WIDTHS};

/// A command, as `hdl::types::MatchCommand` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What to do.
    pub operation: Operation,
    /// Endpoint.
    pub endpoint: u8,
    /// Source.
    pub pair: u16,
    /// Any source matches.
    pub any_source: bool,
    /// Context.
    pub context: u16,
    /// Match bits.
    pub match_bits: u64,
    /// Bits that don't have to agree.
    pub ignore_bits: u64,
    /// Handle of the receive; unique among the live ones of an endpoint.
    pub request: u32,
    /// Of a `Remove`, or an `Arrive` with `append`: slot of the pair that the message waits in.
    pub slot: u8,
    /// Of a `Post`: the receive stays posted when a message matches it.
    pub multi: bool,
    /// Of a `TakePosted…`: the walk goes on where the last one stopped.
    pub again: bool,
    /// Of an `Arrive`: the message waits if no receive matches it.
    pub append: bool,
}

/// Words of 32 bits that a command fills.
const WORDS: usize = {
    let (mut bits, mut at) = (0, 0);
    while at < MATCH_COMMAND_WIDTHS.len() {
        bits += MATCH_COMMAND_WIDTHS[at];
        at += 1;
    }
    bits.div_ceil(32)
};

impl Command {
    /// A command that names nothing yet.
    pub fn new(operation: Operation) -> Self {
        Command {
            operation,
            endpoint: 0,
            pair: 0,
            any_source: false,
            context: 0,
            match_bits: 0,
            ignore_bits: 0,
            request: 0,
            slot: 0,
            multi: false,
            again: false,
            append: false,
        }
    }

    /// Whether a receive posted by `self` matches the envelope `message`.
    pub fn matches(&self, message: &Command) -> bool {
        self.endpoint == message.endpoint
            && (self.any_source || self.pair == message.pair)
            && self.context == message.context
            && (self.match_bits ^ message.match_bits) & !self.ignore_bits == 0
    }

    /// Whether it takes what a pair or an endpoint has, one by one: a step of a walk.
    pub fn is_step(&self) -> bool {
        matches!(
            self.operation,
            Operation::TakePostedOfPair
                | Operation::TakePostedOfEndpoint
                | Operation::TakeUnexpectedOfPair
        )
    }

    /// The command with nothing in the fields that its operation doesn't look at.
    #[must_use]
    pub fn essence(&self) -> Command {
        let Command {
            operation,
            endpoint,
            pair,
            any_source,
            context,
            match_bits,
            ignore_bits,
            request,
            slot,
            multi,
            again,
            append,
        } = *self;
        let named = Command {
            endpoint,
            ..Command::new(operation)
        };
        let envelope = Command {
            pair,
            context,
            match_bits,
            ..named
        };
        let receive = Command {
            pair: if any_source { 0 } else { pair },
            any_source,
            ignore_bits,
            ..envelope
        };
        match operation {
            Operation::Arrive => Command {
                append,
                slot: if append { slot } else { 0 },
                ..envelope
            },
            Operation::Remove => Command {
                pair,
                slot,
                ..named
            },
            Operation::Post => Command {
                request,
                multi,
                ..receive
            },
            Operation::Probe | Operation::Claim => receive,
            Operation::Cancel => Command { request, ..named },
            Operation::TakePostedOfPair => Command {
                pair,
                again,
                ..named
            },
            Operation::TakeUnexpectedOfPair => Command { pair, ..named },
            Operation::TakePostedOfEndpoint => Command { again, ..named },
        }
    }

    /// The bits of the `LogicStruct`, first field least significant.
    pub fn words(&self) -> [u32; WORDS] {
        let values: [u64; 12] = [
            self.operation.code().into(),
            self.endpoint.into(),
            self.pair.into(),
            self.any_source.into(),
            self.context.into(),
            self.match_bits,
            self.ignore_bits,
            self.request.into(),
            self.slot.into(),
            self.multi.into(),
            self.again.into(),
            self.append.into(),
        ];
        let mut words = [0; WORDS];
        let mut at = 0;
        for (value, width) in values.into_iter().zip(MATCH_COMMAND_WIDTHS) {
            // A field touches three words at most.
            let spread = u128::from(value) << (at % 32);
            for (k, word) in words[at / 32..].iter_mut().take(3).enumerate() {
                *word |= (spread >> (32 * k)) as u32;
            }
            at += width;
        }
        words
    }
}

impl Command {
    /// The command with these bits, if its operation is one.
    pub fn from_words(words: &[u32; WORDS]) -> Option<Self> {
        let mut at = 0;
        let [
            operation,
            endpoint,
            pair,
            any_source,
            context,
            match_bits,
            ignore_bits,
            request,
            slot,
            multi,
            again,
            append,
        ] = MATCH_COMMAND_WIDTHS.map(|width| {
            let here = (0..3)
                .map(|k| words.get(at / 32 + k).map_or(0, |word| u128::from(*word)) << (32 * k));
            let spread: u128 = here.sum();
            let value = (spread >> (at % 32)) as u64;
            at += width;
            value & (u64::MAX >> (64 - width))
        });
        let mut all = Operation::ALL.iter();
        let operation = *all.find(|known| u64::from(known.code()) == operation)?;
        Some(Command {
            operation,
            endpoint: endpoint as u8,
            pair: pair as u16,
            any_source: any_source == 1,
            context: context as u16,
            match_bits,
            ignore_bits,
            request: request as u32,
            slot: slot as u8,
            multi: multi == 1,
            again: again == 1,
            append: append == 1,
        })
    }
}

/// An answer, as `hdl::types::MatchReply` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// An entry was found.
    pub found: bool,
    /// There was no room.
    pub full: bool,
    /// Place of the entry found or appended.
    pub index: u16,
    /// Of a `TakePosted…`: nothing was found yet, and there is more to look at.
    pub more: bool,
}

impl Reply {
    /// The reply with these bits.
    pub fn from_bits(bits: u64) -> Self {
        let mut at = 0;
        let [found, full, index, more] = MATCH_REPLY_WIDTHS.map(|width| {
            let value = (bits >> at) & ((1 << width) - 1);
            at += width;
            value
        });
        Reply {
            found: found == 1,
            full: full == 1,
            index: index as u16,
            more: more == 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_each_other_without_gaps() {
        let ones = Command {
            operation: Operation::Cancel,
            endpoint: 0xff,
            pair: 0xffff,
            any_source: true,
            context: 0xffff,
            match_bits: u64::MAX,
            ignore_bits: u64::MAX,
            request: u32::MAX,
            slot: 63,
            multi: true,
            again: true,
            append: true,
        };
        assert_eq!(Command::from_words(&ones.words()), Some(ones));
        let last = (1 << 22) - 1;
        let all = u32::MAX;
        assert_eq!(ones.words(), [all ^ 0xc, all, all, all, all, all, last]);
        let slot = Command {
            slot: 9,
            match_bits: 1 << 63,
            ..Command::new(Operation::Arrive)
        };
        assert_eq!(slot.words(), [0, 0, 0, 1 << 12, 0, 0, 9 << 13]);
        assert_eq!(Command::from_words(&slot.words()), Some(slot));
        assert_eq!(Command::from_words(&[u32::MAX; WORDS]), None);
    }
}
