//! What a code means, what causes it and what helps: the tables of `abi::explain`, looked up by name or number.

use std::fmt;

use abi::explain::{CodeSet, Explanation, Plain, SETS};
use abi::status::Code;
use serde::Serialize;

/// A code, explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// Set that it is of.
    pub set: &'static str,
    /// What the codes of the set are.
    pub about: String,
    /// Name.
    pub name: &'static str,
    /// Number.
    pub number: u8,
    /// What it means.
    pub means: String,
    /// What causes it.
    pub cause: String,
    /// What helps.
    pub help: String,
}

impl Explained {
    fn new(set: &CodeSet, code: &Code) -> Option<Self> {
        let Explanation { cause, help } = (set.explanation)(code.number)?;
        let text = |words| Plain(words).to_string();
        Some(Self {
            set: set.name,
            about: text(set.about),
            name: code.name,
            number: code.number,
            means: text(code.doc),
            cause: text(cause),
            help: text(help),
        })
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, number, .. } = self;
        writeln!(
            f,
            "{name}, {number} ({number:#04x}): {} {}",
            self.set,
            parenthesis(&self.about)
        )?;
        writeln!(f, "  means   {}", self.means)?;
        writeln!(f, "  cause   {}", self.cause)?;
        writeln!(f, "  help    {}", self.help)
    }
}

/// A sentence as a remark.
fn parenthesis(sentence: &str) -> String {
    let first = sentence.split(". ").next().unwrap_or(sentence);
    let mut letters = first.trim_end_matches('.').chars();
    let begin = letters
        .next()
        .map(|letter| letter.to_lowercase().to_string());
    format!("({}{})", begin.unwrap_or_default(), letters.as_str())
}

/// The codes of this name, in any case and with or without `-` and `_`, or of this number.
pub fn find(code: &str) -> Vec<Explained> {
    let number = match code.strip_prefix("0x").or(code.strip_prefix("0X")) {
        Some(hex) => u8::from_str_radix(hex, 16).ok(),
        None => code.parse().ok(),
    };
    let letters = |name: &str| -> String {
        let letters = name
            .chars()
            .filter(|letter| !matches!(letter, '-' | '_' | ' '));
        letters.flat_map(char::to_lowercase).collect()
    };
    let wanted = letters(code);
    let codes = SETS
        .iter()
        .flat_map(|set| set.codes.iter().map(move |code| (set, code)));
    codes
        .filter(|(_, code)| number == Some(code.number) || letters(code.name) == wanted)
        .filter_map(|(set, code)| Explained::new(set, code))
        .collect()
}

/// Every set, and the names of its codes.
pub fn all() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    SETS.iter().map(|set| {
        let names = set.codes.iter().map(|code| code.name);
        (set.name, names.collect())
    })
}
