//! Mutants: a design that is wrong in one place at a time, made from its own tree, to measure what its tests notice.
//!
//! A variant of a top with all mutants has the input [`PICK`](super::breaks::PICK); its value is the mutant's number, 0 is the
//! design as it is. A place of the source is one mutant, however many turns its loop has and however many
//! instances its block:
//!
//! ```text
//!   operator    a & b ► a | b      a + b ► a - b      a == b ► a != b      a < b ► a <= b      !a ► a
//!   constant    its lowest bit is the other
//!   condition   never, always
//!   enable      an assignment under a condition isn't made
//!   reset       the lowest bit of a register's reset value is the other
//! ```
//!
//! What only a check reads isn't touched: a check that is weaker isn't a wrong design.

use super::collect::Module;
use super::error::PrintError;
use super::known::Known;
use super::lower;
use rust_hdl::prelude::Verilog;
use std::collections::{BTreeMap, HashMap};

/// Finds the places in all modules, or in those of some types, numbers them, and notes the numbers in the modules. Returns the names, the
/// first is that of number 1.
pub(crate) fn place(modules: &mut [Module], types: &[String]) -> Result<Vec<String>, PrintError> {
    let mut names: Vec<String> = vec![];
    let mut known: HashMap<(String, Vec<String>), usize> = HashMap::new();
    let mut absent = types.to_vec();
    for id in 0..modules.len() {
        let module = &mut modules[id];
        if module.known.is_some() || !matches!(module.code, Verilog::Combinatorial(_)) {
            continue;
        }
        let title = module.title.as_deref().unwrap_or(&module.path);
        let title = super::names::base(title).to_string();
        if !types.is_empty() && !types.contains(&title) {
            continue;
        }
        absent.retain(|of| *of != title);
        module.mutable = true;
        let mut sites = lower::lower(module)?.sites;
        let resets = resets(modules, id);
        sites.extend(
            resets
                .keys()
                .map(|name| format!("{name}: reset is another")),
        );
        let module = &mut modules[id];
        // Blocks of one type are wrong in the same way at the same time.
        let first = *known
            .entry((title.clone(), sites.clone()))
            .or_insert_with(|| {
                let first = names.len() + 1;
                names.extend(sites.iter().map(|site| format!("{title}.{site}")));
                first
            });
        module.mutants = (0..sites.len()).map(|site| (site, first + site)).collect();
        let after_kernel = sites.len() - resets.len();
        for (n, children) in resets.into_values().enumerate() {
            for child in children {
                let number = first + after_kernel + n;
                module.children[child].reset_mutant = Some(number);
            }
        }
    }
    assert!(
        absent.is_empty(),
        "no block is a {}",
        absent.join(", nor a ")
    );
    Ok(names)
}

/// Registers with a reset, by name without the indices of arrays.
fn resets(modules: &[Module], id: usize) -> BTreeMap<String, Vec<usize>> {
    let mut resets: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (n, child) in modules[id].children.iter().enumerate() {
        let known = &modules[child.module].known;
        if matches!(known, Some(Known::Register { reset: true, .. })) {
            let parts = child.path.split('$');
            let parts: Vec<&str> = parts.filter(|p| p.parse::<usize>().is_err()).collect();
            resets.entry(parts.join(".")).or_default().push(n);
        }
    }
    resets
}
