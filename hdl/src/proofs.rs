//! The proofs: designs that are printed for a solver, and what it is to do with each.
//!
//! `cargo xtask prove` gives each to yosys and a solver, which look for inputs that the duties allow and that
//! make a check fail. A block that is proved offers its proofs from its own module, and
//! [`catalogue`](crate::catalogue) lists these.

use rust_hdl::prelude::Block;

use crate::tops::Text;
use crate::verilog::{Break, Options, Target, generate};

/// How far a claim reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// No check fails within so many cycles of power-on.
    Bounded(u32),
    /// No check ever fails: not within so many cycles of power-on, and after so many cycles without a
    /// failure, from whatever state, not in the next one.
    Induction(u32),
    /// No check fails within so many cycles of which the first is a reset and no other, from memories that are zero. Duties are
    /// checks here. For what is too large for the other two.
    Unrolled(u32),
}

/// Makes the text of a block that these breaks can break.
pub type Print = Box<dyn Fn(&[Break]) -> Text>;

/// A design and how it is proved.
pub struct Proof {
    /// Name, and of the top module. Letters, digits and `_`, unique among the proofs.
    pub name: &'static str,
    /// How it is proved.
    pub method: Method,
    /// Checks that are taken for granted.
    pub assumed: &'static [&'static str],
    /// Memories give any words, for a proof by induction or a bounded one that has no use for what is in them, or assumes it.
    pub free_memories: bool,
    /// With each of which the proof has to fail.
    pub breaks: Vec<Break>,
    /// Ports that are constant, `PORT=NUMBER`: it is proved of each of these sets, one after the other. The broken block has
    /// to fail in one of them.
    pub cases: Vec<Vec<String>>,
    /// Makes the text of the block that these breaks can break.
    pub text: Print,
}

impl Proof {
    /// A proof of a block.
    pub fn of<B: Block>(
        name: &'static str,
        method: Method,
        block: impl Fn() -> B + 'static,
    ) -> Self {
        Proof {
            name,
            method,
            assumed: &[],
            free_memories: false,
            breaks: vec![],
            cases: vec![vec![]],
            text: Box::new(move |breaks| {
                let options = Options::new(name).target(Target::Formal);
                let options = options.broken(breaks.to_vec());
                Ok(generate(&block(), &options)?.text)
            }),
        }
    }

    /// The same with checks taken for granted.
    pub fn assuming(self, assumed: &'static [&'static str]) -> Self {
        Proof { assumed, ..self }
    }

    /// The same with memories that give any words.
    pub fn with_free_memories(self) -> Self {
        Proof {
            free_memories: true,
            ..self
        }
    }

    /// The same, of each of these sets of constant ports.
    pub fn in_cases(self, cases: Vec<Vec<String>>) -> Self {
        Proof { cases, ..self }
    }

    /// The same, to fail with each of these breaks.
    pub fn broken_by(self, breaks: Vec<Break>) -> Self {
        Proof { breaks, ..self }
    }
}
