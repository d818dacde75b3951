//! rust-hdl's tree of a kernel, from the text that `#[block]` and `#[module]` make of it.
//!
//! The text is in prefix order, words apart by spaces:
//!
//! | words | meaning |
//! |---|---|
//! | `@12:9` | what follows stands in this line and column |
//! | `= target value` | an assignment |
//! | `blank` | the next one has nothing but room for those behind it |
//! | `if test { … } else { … }`, `if … if …`, `if … end` | a condition |
//! | `match test 2 pattern { … } pattern { … }` | a choice of two |
//! | `for i #0 #1 { … }` | a loop between two values |
//! | `link #0` | signals of two bundles |
//! | `.a$b` | a signal, a field or a loop variable |
//! | `7`, `true` | a literal |
//! | `#0` | a size |
//! | `? NAME #0` | a constant of the source; `-` for one without a name |
//! | `(`, operators, `all`, `cast #0`, `slice #0`, `bit`, `put`, … | before their operands |

use crate::verilog::{BLANK, CONSTANT, PLACE};
use rust_hdl::prelude::ast::{
    Verilog, VerilogBlock, VerilogBlockOrConditional as Otherwise, VerilogCase, VerilogConditional,
    VerilogExpression as Expression, VerilogLink, VerilogLiteral, VerilogLoop, VerilogMatch,
    VerilogOp as Op, VerilogOpUnary as Unary, VerilogStatement as Statement,
};
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::SplitAsciiWhitespace;

/// What only Rust knows of a kernel.
#[derive(Clone, Debug)]
pub enum Value {
    /// A size.
    Number(u64),
    /// A constant that is a number, and the width of its type in bits.
    Constant {
        /// The number.
        value: u64,
        /// Bits of its type.
        width: usize,
    },
    /// A constant with bits of its own.
    Bits(VerilogLiteral),
    /// The same of an enum: the printer knows it by its name, if it has one.
    State(VerilogLiteral),
}

/// A tree that begins with what `#[block]` connects, before the kernel.
#[derive(Default)]
pub struct Tree {
    statements: VerilogBlock,
    /// Constants with a name, as `16'h400`.
    constants: BTreeMap<String, String>,
}

impl Tree {
    /// `target` takes the value of `source`.
    pub fn assign(&mut self, target: &str, source: &str) {
        let signal = |name: &str| Expression::Signal(name.to_string());
        let assignment = Statement::Assignment(signal(target), signal(source));
        self.statements.push(assignment);
    }

    /// The port `port` of the block at `path` is connected to that of this block.
    pub fn connect(&mut self, path: &str, port: &str) {
        self.assign(&format!("{path}${port}$next"), port);
    }

    /// Adds statements of the kernel: all of them, those of a section, or those between two. `file` is where they stand, `values` and
    /// `links` are what the text counts from 0.
    ///
    /// # Panics
    /// If the text isn't one that the attributes write.
    pub fn kernel(&mut self, file: &str, text: &str, values: &[Value], links: &[Vec<VerilogLink>]) {
        let mut reader = Reader {
            file,
            words: text.split_ascii_whitespace().peekable(),
            values,
            links,
            constants: &mut self.constants,
        };
        let statements = reader.statements();
        assert!(reader.words.next().is_none(), "text behind the kernel");
        self.statements.extend(statements);
    }

    /// The whole, with a comment for each constant in front.
    pub fn finish(self) -> Verilog {
        let constants = self.constants.into_iter();
        let comment = |(name, value)| Statement::Comment(format!("{CONSTANT}{name} {value}"));
        let mut all: VerilogBlock = constants.map(comment).collect();
        all.extend(self.statements);
        Verilog::Combinatorial(all)
    }
}

struct Reader<'a> {
    file: &'a str,
    words: Peekable<SplitAsciiWhitespace<'a>>,
    values: &'a [Value],
    links: &'a [Vec<VerilogLink>],
    constants: &'a mut BTreeMap<String, String>,
}

impl<'a> Reader<'a> {
    fn word(&mut self) -> &'a str {
        self.words.next().expect("the attribute has closed it all")
    }

    fn value(&mut self) -> &'a Value {
        let word = self.word();
        &self.values[number(&word[1..])]
    }

    fn size(&mut self) -> usize {
        match self.value() {
            Value::Number(n) => usize::try_from(*n).expect("sizes are of this machine"),
            other => panic!("{other:?} is no size"),
        }
    }

    /// A path, with the values of constant indices in it.
    fn path(&self, raw: &str) -> String {
        let mut path = String::new();
        let mut rest = raw;
        while let Some((before, after)) = rest.split_once("[#") {
            let (index, after) = after.split_once(']').expect("indices are closed");
            let Value::Number(index) = &self.values[number(index)] else {
                panic!("an index is a number");
            };
            path += &format!("{before}[{index}]");
            rest = after;
        }
        path + rest
    }

    fn statements(&mut self) -> VerilogBlock {
        let mut block = vec![];
        while self.words.peek().is_some_and(|word| *word != "}") {
            self.statement(&mut block);
        }
        block
    }

    fn block(&mut self) -> VerilogBlock {
        assert_eq!(self.word(), "{");
        let block = self.statements();
        assert_eq!(self.word(), "}");
        block
    }

    fn statement(&mut self, out: &mut VerilogBlock) {
        let word = self.word();
        if let Some(place) = word.strip_prefix('@') {
            out.push(Statement::Comment(format!("{PLACE}{}:{place}", self.file)));
            return;
        }
        if word == "blank" {
            out.push(Statement::Comment(BLANK.to_string()));
            return;
        }
        out.push(match word {
            "=" => Statement::Assignment(self.expression(), self.expression()),
            "if" => self.condition(),
            "match" => {
                let test = self.expression();
                let arms = number(self.word());
                let cases = (0..arms).map(|_| VerilogCase {
                    condition: self.pattern(),
                    block: self.block(),
                });
                Statement::Match(VerilogMatch {
                    cases: cases.collect(),
                    test,
                })
            }
            "for" => Statement::Loop(VerilogLoop {
                index: self.word().to_string(),
                from: self.size().into(),
                to: self.size().into(),
                block: self.block(),
            }),
            "link" => Statement::Link(self.links[number(&self.word()[1..])].clone()),
            other => panic!("`{other}` begins no statement"),
        });
    }

    fn condition(&mut self) -> Statement {
        let test = self.expression();
        let then = self.block();
        let otherwise = match self.word() {
            "end" => Otherwise::None,
            "else" => Otherwise::Block(self.block()),
            "if" => Otherwise::Conditional(Box::new(self.condition())),
            other => panic!("`{other}` goes on no condition"),
        };
        Statement::If(VerilogConditional {
            test,
            then,
            otherwise,
        })
    }

    fn pattern(&mut self) -> String {
        let word = self.word();
        if word != "?" {
            return word.to_string();
        }
        let name = self.word();
        match self.value() {
            Value::Constant { value, width } if is_named(name) => {
                self.named(name, format!("{width}'h{value:x}"))
            }
            Value::Constant { value, .. } => value.to_string(),
            _ => name.to_string(),
        }
    }

    /// The signal that stands for a constant, whose value a comment says.
    fn named(&mut self, name: &str, value: String) -> String {
        self.constants.insert(name.to_string(), value);
        format!("?{name}")
    }

    fn boxed(&mut self) -> Box<Expression> {
        Box::new(self.expression())
    }

    fn expression(&mut self) -> Expression {
        let word = self.word();
        if let Some(path) = word.strip_prefix('.') {
            return Expression::Signal(self.path(path));
        }
        if let Some(index) = word.strip_prefix('#') {
            let Value::Number(size) = &self.values[number(index)] else {
                panic!("a size is a number");
            };
            return Expression::Literal((*size).into());
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let value: u128 = word.parse().expect("the attribute has read it");
            return Expression::Literal(value.into());
        }
        match word {
            "true" => Expression::Literal(true.into()),
            "false" => Expression::Literal(false.into()),
            "?" => {
                let name = self.word();
                match self.value() {
                    Value::Number(value) => Expression::Literal((*value).into()),
                    Value::Constant { value, width } if is_named(name) => {
                        Expression::Signal(self.named(name, format!("{width}'h{value:x}")))
                    }
                    Value::Constant { value, .. } => Expression::Literal((*value).into()),
                    Value::State(_) if is_named(name) => Expression::Signal(name.to_string()),
                    // A bit is no number.
                    Value::Bits(bits)
                        if is_named(name) && !format!("{bits:x}").starts_with("1'") =>
                    {
                        Expression::Signal(self.named(name, format!("{bits:x}")))
                    }
                    Value::Bits(bits) | Value::State(bits) => Expression::Literal(bits.clone()),
                }
            }
            "(" => Expression::Paren(self.boxed()),
            "neg" => Expression::Unary(Unary::Neg, self.boxed()),
            "!" => Expression::Unary(Unary::Not, self.boxed()),
            "all" => Expression::Unary(Unary::All, self.boxed()),
            "any" => Expression::Unary(Unary::Any, self.boxed()),
            "xor" => Expression::Unary(Unary::Xor, self.boxed()),
            "signed" => Expression::Signed(self.boxed()),
            "unsigned" => Expression::Unsigned(self.boxed()),
            "cast" => {
                let width = self.size();
                Expression::Cast(self.boxed(), width)
            }
            "slice" => {
                let width = self.size();
                Expression::Slice(self.boxed(), width, self.boxed())
            }
            "bit" => Expression::Index(self.boxed(), self.boxed()),
            "put" => Expression::IndexReplace(self.boxed(), self.boxed(), self.boxed()),
            operator => {
                let op = match operator {
                    "+" => Op::Add,
                    "-" => Op::Sub,
                    "*" => Op::Mul,
                    "&&" => Op::LogicalAnd,
                    "||" => Op::LogicalOr,
                    "^" => Op::BitXor,
                    "&" => Op::BitAnd,
                    "|" => Op::BitOr,
                    "<<" => Op::Shl,
                    ">>" => Op::Shr,
                    "==" => Op::Eq,
                    "<" => Op::Lt,
                    "<=" => Op::Le,
                    "!=" => Op::Ne,
                    ">=" => Op::Ge,
                    ">" => Op::Gt,
                    other => panic!("`{other}` begins no expression"),
                };
                let left = self.boxed();
                Expression::Binary(left, op, self.boxed())
            }
        }
    }
}

/// Whether the printed text may call a constant so: `u32::MAX` says less than its digits.
fn is_named(name: &str) -> bool {
    let mut parts = name.rsplit('$').skip(1);
    name != "-"
        && !parts.next().is_some_and(|of| {
            of.starts_with(['u', 'i']) && of[1..].parse::<u8>().is_ok() || of == "usize"
        })
}

fn number(word: &str) -> usize {
    word.parse().expect("the attribute has counted")
}
