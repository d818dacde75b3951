//! The package of a text: what the source has given a name and several modules speak of.
//!
//! ```text
//!   const EAGER_MAX: usize = 1024;    ►   localparam logic [31:0] EAGER_MAX = 32'd1024;
//!   Status::Truncated                 ►   localparam logic [7:0] Status_Truncated = 8'd7;
//! ```
//!
//! A module says `pkg::EAGER_MAX`. Imports would be shorter, but yosys reads none. What two modules call by
//! one name and mean differently (`const LAST` of two files) isn't in the package: each has its own.
//! Only what some module mentions is printed, in the order of the alphabet.

use super::collect::Module;
use super::print::range;
use num_bigint::BigInt;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// How a comment in a kernel's tree begins that says what a name of the kernel stands for: `constant limits$EAGER_MAX
/// 32'h400`. In the tree it is the signal `?limits$EAGER_MAX`.
pub const CONSTANT: &str = "constant ";

/// The package's name.
pub(crate) const PACKAGE: &str = "pkg";

/// A constant of the source: its value, and the bits of its Rust type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Constant {
    pub(crate) value: BigInt,
    pub(crate) width: usize,
}

impl Constant {
    /// The declaration, without `;`.
    pub(crate) fn declaration(&self, name: &str) -> String {
        let Constant { value, width } = self;
        let value = match u32::try_from(value) {
            Ok(value) if value < 1 << 16 => format!("{width}'d{value}"),
            _ => format!("{width}'h{value:x}"),
        };
        format!("localparam logic{} {name} = {value}", range(*width))
    }
}

/// The name under which a kernel's constant is printed: `limits$EAGER_MAX` is `EAGER_MAX`, `Status$Truncated` is
/// `Status_Truncated`.
pub(crate) fn constant_name(path: &str) -> String {
    let mut parts = path.rsplit('$');
    let name = parts.next().unwrap_or(path);
    match parts.next() {
        Some(of) if of != "Self" && of.starts_with(|c: char| c.is_uppercase()) => {
            format!("{of}_{name}")
        }
        _ => name.to_string(),
    }
}

pub(crate) struct Package {
    /// Constants with one meaning in all modules, by their printed name.
    constants: BTreeMap<String, Constant>,
    /// Names that some module mentions.
    used: RefCell<BTreeSet<String>>,
}

impl Package {
    pub(crate) fn new(modules: &[Module]) -> Self {
        let mut constants: BTreeMap<String, Option<Constant>> = BTreeMap::new();
        for (path, constant) in modules.iter().flat_map(|module| &module.constants) {
            constants
                .entry(constant_name(path))
                .and_modify(|known| {
                    if known.as_ref() != Some(constant) {
                        *known = None;
                    }
                })
                .or_insert_with(|| Some(constant.clone()));
        }
        let one = |(name, constant): (String, Option<Constant>)| Some((name, constant?));
        Package {
            constants: constants.into_iter().filter_map(one).collect(),
            used: RefCell::default(),
        }
    }

    /// Whether a constant of a kernel is in the package.
    pub(crate) fn holds(&self, path: &str) -> bool {
        self.constants.contains_key(&constant_name(path))
    }

    /// How modules mention a constant that is in the package.
    pub(crate) fn constant(&self, path: &str) -> String {
        let name = constant_name(path);
        let mention = format!("{PACKAGE}::{name}");
        self.used.borrow_mut().insert(name);
        mention
    }

    /// The package, or nothing if no module mentions anything in it.
    pub(crate) fn print(&self) -> String {
        let used = self.used.borrow();
        if used.is_empty() {
            return String::new();
        }
        let mut out = format!("\npackage {PACKAGE};\n");
        for name in used.iter() {
            writeln!(out, "  {};", self.constants[name].declaration(name))
                .expect("a String takes every write");
        }
        out + "endpackage\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_keeps_the_type_that_it_belongs_to_and_drops_modules() {
        assert_eq!(constant_name("EAGER_MAX"), "EAGER_MAX");
        assert_eq!(constant_name("abi$limits$EAGER_MAX"), "EAGER_MAX");
        assert_eq!(constant_name("status$Status$Truncated"), "Status_Truncated");
        assert_eq!(constant_name("Self$DEPTH"), "DEPTH");
    }
}
