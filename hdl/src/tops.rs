//! The tops: every design that is printed as Verilog under a name of its own, for a model of the
//! simulator, for a block's tests, or for synthesis.
//!
//! A block that is tested alone offers its tops from its room, `pub fn tops()`, and [`catalogue`](crate::catalogue) lists the rooms:
//!
//! ```
//! use hdl::tops::{Class, Top};
//!
//! fn tops() -> Vec<Top> {
//!     vec![Top::new("wire", Class::Test, || {
//!         // As a rule: `verilog::generate(&block, &Options::new("wire"))`.
//!         Ok("module wire(input logic a, output logic b); assign b = a; endmodule".into())
//!     })]
//! }
//! assert_eq!(tops()[0].name, "wire");
//! ```

use std::error::Error;

use rust_hdl::prelude::Block;

use crate::verilog::{Break, Options, PrintError, generate};

/// How a top is simulated, which decides how long its compiler works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// For a moment, in a test of one block. If it can be broken, its test simulates that variant, with no break picked.
    Test,
    /// For long, and so large that it is synthesised only if it is asked for: whole cards.
    Card,
    /// For long, in a measurement that no test needs: its model is built only if it is asked for.
    Bench,
    /// Not at all: only its size and speed on an FPGA are wanted.
    Synthesis,
    /// For a moment, to see whether the test of its block notices what is wrong. Never synthesised.
    Broken,
    /// For long, to count what the test of its block notices: its model is built only for the tests that take long, and never synthesised.
    Mutants,
}

/// Text of a top, or why it can't be printed.
pub type Text = Result<String, Box<dyn Error>>;

/// Why a top can't be printed, with its name in front, which the printer's refusals have already.
pub fn refusal(name: &str, error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref::<PrintError>() {
        Some(refused) if refused.block.split('.').next() == Some(name) => refused.to_string(),
        _ => format!("{name}: {error}"),
    }
}

/// A design with a name.
pub struct Top {
    /// Name of the model. Letters, digits and `_`, unique.
    pub name: &'static str,
    /// Name of the top module; as a rule the same.
    pub module: &'static str,
    /// How it is simulated.
    pub class: Class,
    /// Verilator file lists of foreign sources, as paths from the root of the workspace.
    pub sources: &'static [&'static str],
    /// Makes the text. Called only when this top is asked for.
    pub text: Box<dyn Fn() -> Text>,
}

impl Top {
    /// A top whose module has its name and that needs no foreign sources.
    pub fn new(name: &'static str, class: Class, text: impl Fn() -> Text + 'static) -> Self {
        Top {
            name,
            module: name,
            class,
            sources: &[],
            text: Box::new(text),
        }
    }

    /// A top of a block, by our printer.
    pub fn of<B: Block>(name: &'static str, class: Class, block: impl Fn() -> B + 'static) -> Self {
        Top::new(name, class, move || {
            Ok(generate(&block(), &Options::new(name))?.text)
        })
    }

    /// The variant of a top that can be broken: its input [`PICK`](crate::verilog::PICK) picks one of `breaks`. By convention
    /// the name is that of the sound top and `_broken`.
    pub fn broken<B: Block>(
        name: &'static str,
        breaks: impl Fn() -> Vec<Break> + 'static,
        block: impl Fn() -> B + 'static,
    ) -> Self {
        Top::new(name, Class::Broken, move || {
            let options = Options::new(name).broken(breaks());
            Ok(generate(&block(), &options)?.text)
        })
    }

    /// The variant of a top with all its mutants, one of which its input [`PICK`](crate::verilog::PICK) picks. By convention
    /// the name is that of the sound top and `_mutants`.
    pub fn mutants<B: Block>(name: &'static str, block: impl Fn() -> B + 'static) -> Self {
        Top::mutants_of(name, Options::mutants, block)
    }

    /// The same with the mutants of some rooms of the block only, that `options` adds: for rooms that are tested with others around them.
    pub fn mutants_of<B: Block>(
        name: &'static str,
        options: impl Fn(Options) -> Options + 'static,
        block: impl Fn() -> B + 'static,
    ) -> Self {
        Top::new(name, Class::Mutants, move || {
            Ok(generate(&block(), &options(Options::new(name)))?.text)
        })
    }

    /// The same with file lists of foreign sources.
    pub fn with_sources(self, sources: &'static [&'static str]) -> Self {
        Top { sources, ..self }
    }
}
