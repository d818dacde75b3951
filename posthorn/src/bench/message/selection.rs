//! Which points of the suite are asked for: what the command's options say.

use abi::limits::{EAGER_MAX, MAX_CREDITS};
use clap::{Args, ValueEnum};

use super::Pattern;

/// Options of `posthorn bench message`. What is left open is as in the suite: every pattern, every length, and so on.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = "Of `message`: only these points")]
pub struct Selection {
    /// Who sends to whom: one pair, several cards to one, one to several, two to each other
    #[arg(long)]
    pattern: Option<Pattern>,
    /// Bytes of a message
    #[arg(long, value_parser = clap::value_parser!(u16).range(..=EAGER_MAX as i64))]
    bytes: Option<u16>,
    /// Whether a message finds its receive posted
    #[arg(long)]
    receive: Option<Receive>,
    /// Pairs of the card that is measured [default: 1 of a stream, else 4]
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(super) pairs: Option<u8>,
    /// Credits of a pair [default: 8]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_CREDITS)))]
    pub(super) credits: Option<u16>,
    /// Cycles from an access of host memory to its answer [default: 32; across PCIe some 125]
    #[arg(long, value_name = "CYCLES", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) memory_latency: Option<u32>,
}

/// What a message finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Receive {
    /// Its receive, posted before.
    Posted,
    /// No receive: it is kept by the card, and copied when the receive is posted.
    Unexpected,
    /// One receive for all messages of its host, which stays posted.
    Multi,
}

impl Receive {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Posted => "posted",
            Self::Unexpected => "unexpected",
            Self::Multi => "multi",
        }
    }
}

impl Selection {
    pub(super) fn patterns(&self) -> Vec<Pattern> {
        self.pattern.map_or(Pattern::ALL.to_vec(), |one| vec![one])
    }

    pub(super) fn bytes(&self, all: &[usize]) -> Vec<usize> {
        self.bytes.map_or(all.to_vec(), |one| vec![one.into()])
    }

    pub(super) fn receives(&self) -> Vec<Receive> {
        let both = [Receive::Posted, Receive::Unexpected];
        self.receive.map_or(both.to_vec(), |one| vec![one])
    }
}
