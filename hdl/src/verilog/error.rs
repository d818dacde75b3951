//! What the printer refuses, and why.
//!
//! A kernel that can't be printed soundly is never printed approximately. The error names the
//! block by its path from the top, the signal that was being assigned or read, and the reason;
//! the reason's text says what to write instead.

use super::collect::Forced;
use std::fmt;

/// How a comment in a kernel's tree begins that says where in the source the next statement stands.
pub const PLACE: &str = "at ";

/// A refusal: which block, where in its source, which signal, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintError {
    /// Path of the block from the top, as `card.match.entry.3`.
    pub block: Box<str>,
    /// The statement of the kernel, as `hdl/src/prim/fifo.rs:120:9`; of a signal that isn't assigned on
    /// every path the first that assigns it. `None` where no statement is concerned, or where the kernel
    /// doesn't say where it stands.
    pub place: Option<Box<str>>,
    /// The break that forces a signal; `place` is then where the break is said.
    pub broken: Option<Box<str>>,
    /// The signal that was being assigned, or else the first one that was read. `None` where the
    /// reason concerns the block as a whole.
    pub signal: Option<Box<str>>,
    /// Why the block can't be printed.
    pub reason: Reason,
}

impl fmt::Display for PrintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        write!(f, "{}", self.block)?;
        if let Some(broken) = &self.broken {
            write!(f, ": break `{broken}`")?;
        }
        if let Some(signal) = &self.signal {
            write!(f, ": signal `{signal}`")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for PrintError {}

impl PrintError {
    /// The same, as one of what a break forces.
    pub(crate) fn of(self, forced: &Forced) -> Self {
        PrintError {
            place: Some(forced.at.to_string().into()),
            broken: Some(forced.broken.into()),
            ..self
        }
    }
}

/// Why something can't be printed. Widths are in bits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A name that is no signal, constant field, enum variant or loop variable of the block.
    UnknownName(String),
    /// An enum variant's name that two enums of different encoding share.
    AmbiguousVariant(String),
    /// A loop variable with the name of a signal: kernels don't keep the `self.` that tells them
    /// apart.
    LoopShadowsSignal(String),
    /// A signal or instance whose name is a keyword of SystemVerilog.
    Keyword(String),
    /// A signal of no bits.
    ZeroWidth,
    /// A signal that keeps its old value on some path.
    Latch,
    /// An output or a child's input that the kernel doesn't assign.
    NeverAssigned,
    /// A signal that is read before every path has assigned it.
    ReadBeforeAssigned(String),
    /// A field or bit that is assigned before the whole.
    PartBeforeWhole,
    /// A child's input that is read back.
    ReadsChildInput(String),
    /// A target that a kernel can't assign: an input, a constant, a child's output.
    NotAssignable(String),
    /// An expression whose width isn't in the kernel's syntax tree.
    UnknownWidth(&'static str),
    /// Operands of different type.
    OperandMismatch {
        /// The operator, as Verilog writes it.
        operator: &'static str,
        /// Type of the left operand, as `8 bits` or `8 bits signed`.
        left: Box<str>,
        /// Type of the right operand.
        right: Box<str>,
    },
    /// A comparison beside an operator of bits, which binds closer in Rust.
    ComparisonBeside {
        /// The operator.
        operator: &'static str,
        /// The comparison.
        comparison: &'static str,
    },
    /// A value whose width isn't its target's: a conversion that left no trace in the tree.
    AssignmentMismatch {
        /// Width of the target.
        target: usize,
        /// Width of the value.
        value: usize,
    },
    /// A constant that its type can't hold.
    ConstantTooWide {
        /// The constant, in decimal.
        value: String,
        /// Width that it should fit.
        width: usize,
    },
    /// The complement of an integer, which has the integer's width and not the signal's.
    ComplementOfInteger,
    /// A constant bit index or offset outside the value.
    BitOutOfRange {
        /// The index, in decimal.
        index: String,
        /// Width of the indexed value.
        width: usize,
    },
    /// Arithmetic inside a bit index.
    IndexArithmetic,
    /// A shift of a signed value.
    SignedShift,
    /// `bit_cast` of a signed value.
    SignedBitCast,
    /// An ordering of structs, which Rust compares by field and Verilog by bits.
    StructOrdering,
    /// A clock input that isn't connected straight to a clock.
    DerivedClock,
    /// An array index that isn't an integer or a loop variable, or is out of range.
    ArrayIndex(String),
    /// `link` or `join` under a condition.
    ConditionalLink,
    /// `assert!` in a kernel, which rust-hdl turns into a comment.
    AssertInKernel,
    /// A block with outputs or children and no kernel.
    NoKernel,
    /// Hand-written Verilog in a block that has children.
    CustomWithChildren,
    /// A break that forces a signal of a block of this type, which the design doesn't have.
    NoSuchBlock(String),
    /// A forced value that isn't an expression as kernels have them.
    ForcedValue(String),
    /// A forced signal that the kernel reads before its last assignment.
    ForcedEarly,
    /// A forced signal that nobody reads, or whose forced value depends on itself.
    ForcedAlone,
    /// A name that the input of a variant has that picks a break.
    NameOfThePick,
    /// A pattern that is neither an integer nor an enum variant.
    Pattern(String),
    /// Anything else that the tree can hold and the printer doesn't know.
    Unsupported(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::UnknownName(name) => write!(
                f,
                "`{name}` is not a signal, Constant field, enum variant or loop variable of this \
                 block. The signals of grandchildren leave no trace in a kernel: use a port of the \
                 child. Without #[block] or #[module] nor do constants: use a Constant field"
            ),
            Reason::AmbiguousVariant(name) => write!(
                f,
                "enum variant `{name}` is ambiguous: two enums of that name are visible; rename one"
            ),
            Reason::LoopShadowsSignal(name) => write!(
                f,
                "loop variable `{name}` has the name of a signal of this block; rename it"
            ),
            Reason::Keyword(name) => {
                write!(f, "`{name}` is a keyword of SystemVerilog; rename it")
            }
            Reason::ZeroWidth => write!(f, "it has no bits"),
            Reason::Latch => write!(
                f,
                "it is not assigned on every path, which is a latch; assign a default first"
            ),
            Reason::NeverAssigned => write!(f, "it is never assigned"),
            Reason::ReadBeforeAssigned(name) => write!(
                f,
                "`{name}` is read before it is assigned on every path; assign it first"
            ),
            Reason::PartBeforeWhole => write!(
                f,
                "a part of it is assigned before the whole; assign the whole first"
            ),
            Reason::ReadsChildInput(name) => write!(
                f,
                "`{name}` is a child's input, and reading it gives the old value in simulation \
                 and the new one in Verilog; read a Local that feeds it"
            ),
            Reason::NotAssignable(name) => write!(f, "`{name}` can't be assigned here"),
            Reason::UnknownWidth(what) => write!(
                f,
                "the width of {what} is not in the kernel's tree; use bits::<W>(..), or assign it \
                 to a Local of its exact width"
            ),
            Reason::OperandMismatch {
                operator,
                left,
                right,
            } => write!(
                f,
                "operands of `{operator}` have {left} and {right}: a conversion leaves no trace \
                 here (.index(), .to_bits(), .into()); use bit_cast, or a Local"
            ),
            Reason::ComparisonBeside {
                operator,
                comparison,
            } => write!(
                f,
                "`{operator}` binds closer than `{comparison}`: put the comparison in parentheses, as in \
                 `a {operator} (b {comparison} c)`"
            ),
            Reason::AssignmentMismatch { target, value } => write!(
                f,
                "it has {target} bits and its value {value}: a conversion leaves no trace here \
                 (.index(), .to_bits(), .into()); use bit_cast"
            ),
            Reason::ConstantTooWide { value, width } => {
                write!(f, "constant {value} does not fit {width} bits")
            }
            Reason::ComplementOfInteger => write!(
                f,
                "the complement of an integer has the integer's width, not the signal's; write \
                 the constant out"
            ),
            Reason::BitOutOfRange { index, width } => {
                write!(f, "bit {index} of a value of {width} bits")
            }
            Reason::IndexArithmetic => write!(
                f,
                "arithmetic in a bit index is ambiguous (.index() before or after it?); put the \
                 sum in a Local"
            ),
            Reason::SignedShift => write!(f, "a signed value is shifted; cast it first"),
            Reason::SignedBitCast => write!(
                f,
                "bit_cast of a signed value; use unsigned_cast or signed_bit_cast"
            ),
            Reason::StructOrdering => write!(
                f,
                "structs are ordered by field in Rust and by bits in Verilog; compare the fields"
            ),
            Reason::DerivedClock => write!(
                f,
                "a clock input must be connected straight to one clock; gate and invert clocks in \
                 a primitive"
            ),
            Reason::ArrayIndex(text) => write!(
                f,
                "array index in `{text}`: only integers and loop variables, within the array"
            ),
            Reason::ConditionalLink => write!(f, "link or join under a condition"),
            Reason::AssertInKernel => write!(
                f,
                "assert! in a kernel becomes a comment; use a Check block"
            ),
            Reason::NoKernel => write!(
                f,
                "the block has outputs or children and no kernel; is #[hdl_gen] missing?"
            ),
            Reason::CustomWithChildren => {
                write!(f, "hand-written Verilog in a block that has children")
            }
            Reason::Pattern(text) => {
                write!(
                    f,
                    "pattern `{text}` is neither an integer nor an enum variant"
                )
            }
            Reason::NoSuchBlock(block) => {
                write!(f, "no block of the type `{block}` is in the design")
            }
            Reason::ForcedValue(text) => write!(
                f,
                "`{text}` is no expression that a break can force; write it as in a kernel"
            ),
            Reason::ForcedEarly => write!(
                f,
                "a break forces it, and it is read before its last assignment; give the decision a \
                 Local of its own"
            ),
            Reason::ForcedAlone => write!(
                f,
                "a break forces it, and nobody reads it, or the forced value depends on it"
            ),
            Reason::NameOfThePick => write!(
                f,
                "it has the name of the input that picks a break; rename it"
            ),
            Reason::Unsupported(what) => write!(f, "{what} is not supported"),
        }
    }
}
