//! The Rust files below a folder, for tests that read the source.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the workspace.
///
/// # Panics
/// If this crate isn't two folders below it.
pub fn workspace() -> &'static Path {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("hdl/tests is in the workspace")
}

/// Each Rust file below `folder`, which is a path from the workspace's root, by its path from there, with its text.
///
/// # Panics
/// If a file can't be read, or there is none.
pub fn below(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = workspace().join(folder);
    let mut files = vec![];
    let mut folders = vec![folder.clone()];
    while let Some(open) = folders.pop() {
        for entry in fs::read_dir(open).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("sources are text");
                let name = path.strip_prefix(&folder).expect("it was found there");
                files.push((name.to_path_buf(), text));
            }
        }
    }
    assert!(!files.is_empty(), "no sources in {}", folder.display());
    files
}
