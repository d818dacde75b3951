//! Rules of the house that a compiler doesn't know, over all of `hdl/src`.

use std::path::{Path, PathBuf};

/// Files under `src`, by their path from there, with their text.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![];
    let mut folders: Vec<PathBuf> = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("src can be read") {
            let path = entry.expect("src can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).expect("sources are text");
                let name = path.strip_prefix(&root).expect("it was found there");
                files.push((name.display().to_string(), text));
            }
        }
    }
    assert!(files.len() > 10, "the sources have moved");
    files
}

fn expect_nothing(found: &[String]) {
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// The printer's syntax tree doesn't show `.index()`, guards and some others, so they are looked
/// for in the source: `kernel_lint` says which and why.
#[test]
fn kernels_have_nothing_that_the_printer_could_not_see() {
    let mut found = vec![];
    for (name, text) in sources() {
        let findings = kernel_lint::check_file(&text).expect("rustc has read it");
        found.extend(findings.iter().map(|f| format!("{name}:{f}")));
    }
    expect_nothing(&found);
}

/// Blocks that bring in a foreign core. Whoever adds one says here which.
const FOREIGN_CORES: [&str; 1] = ["mgmt/ibex.rs"];

#[test]
fn only_primitives_have_hand_written_verilog() {
    let mut found = vec![];
    for (name, text) in sources() {
        let allowed = name.starts_with("prim/") || name.starts_with("verilog/");
        if !allowed && !FOREIGN_CORES.contains(&name.as_str()) {
            let findings = kernel_lint::find_hand_written(&text).expect("rustc has read it");
            found.extend(findings.iter().map(|f| format!("{name}:{f}")));
        }
    }
    expect_nothing(&found);
}
