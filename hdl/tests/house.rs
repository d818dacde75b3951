//! Rules of the house that a compiler doesn't know, over all of `hdl/src`.

use std::path::Path;

#[path = "support/sources.rs"]
mod sources;

fn expect_nothing(found: &[String]) {
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// The printer's syntax tree doesn't show `.index()`, guards and some others, so they are looked
/// for in the source: `kernel_lint` says which and why.
#[test]
fn kernels_have_nothing_that_the_printer_could_not_see() {
    let mut found = vec![];
    for (name, text) in sources::below("hdl/src") {
        let findings = kernel_lint::check_file(&text).expect("rustc has read it");
        found.extend(findings.iter().map(|f| format!("{}:{f}", name.display())));
    }
    expect_nothing(&found);
}

/// Blocks that bring in a foreign core. Whoever adds one says here which.
const FOREIGN_CORES: [&str; 1] = ["mgmt/ibex.rs"];

#[test]
fn only_primitives_have_hand_written_verilog() {
    let mut found = vec![];
    for (name, text) in sources::below("hdl/src") {
        let allowed = name.starts_with("prim") || name.starts_with("verilog");
        if !allowed && !FOREIGN_CORES.iter().any(|core| name == Path::new(core)) {
            let findings = kernel_lint::find_hand_written(&text).expect("rustc has read it");
            found.extend(findings.iter().map(|f| format!("{}:{f}", name.display())));
        }
    }
    expect_nothing(&found);
}
