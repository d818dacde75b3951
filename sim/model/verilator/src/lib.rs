//! Stands in for crate `verilator`, of which the `verilated` crate's build script uses these two
//! functions to find the C++ of the runtime.
//!
//! The original looks along the search path, so that a plain `cargo build` would need one set up by
//! hand, and could take another release than the one the models were built by. This one looks
//! where `cargo xtask setup` puts Verilator, and nowhere else. `[patch.crates-io]` in the
//! workspace's `Cargo.toml` puts it in place.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Folder of the pinned tools, as `xtask` has it.
fn tools() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    match env::var_os("POSTHORN_TOOLS_DIR") {
        Some(dir) if !dir.is_empty() => workspace.join(dir),
        _ => workspace.join(".tools"),
    }
}

fn find(tools: &Path) -> Option<PathBuf> {
    let pythons = fs::read_dir(tools.join("venv/lib")).ok()?;
    let root = |python: PathBuf| python.join("site-packages/verilator");
    pythons
        .filter_map(|entry| Some(root(entry.ok()?.path())))
        .find(|root| root.join("include/verilated.cpp").is_file())
}

/// Root of Verilator: the folder that holds `include/verilated.cpp`.
///
/// # Panics
/// If it isn't set up; the message says how to.
pub fn find_verilator_root() -> Option<PathBuf> {
    let tools = tools();
    let root = find(&tools);
    assert!(
        root.is_some(),
        "no Verilator under {}; run `cargo xtask setup`, which puts it there",
        tools.display()
    );
    root
}

/// Release of Verilator: major and minor.
pub fn verilator_version() -> Option<(u32, u32)> {
    let config = find_verilator_root()?.join("include/verilated_config.h");
    version(&fs::read_to_string(config).ok()?)
}

fn version(config: &str) -> Option<(u32, u32)> {
    let line = config
        .lines()
        .find_map(|l| l.strip_prefix("#define VERILATOR_VERSION "))?;
    let (major, rest) = line.trim_matches('"').split_once('.')?;
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{find, version};

    #[test]
    fn the_version_is_read_from_the_header() {
        let line = "#define VERILATOR_VERSION \"5.048 2026-04-26\"\n";
        assert_eq!(version(line), Some((5, 48)));
        assert_eq!(version("#define VERILATOR_PRODUCT \"Verilator\"\n"), None);
    }

    #[test]
    fn a_folder_without_tools_is_seen_to_be_one() {
        assert_eq!(find("/nowhere".as_ref()), None);
    }
}
