//! Where things are: the workspace, the tools and what is built.

use std::env;
use std::path::{Path, PathBuf};

/// Root of the workspace this program was built from.
pub fn workspace() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest
        .parent()
        .expect("xtask/ lies in the workspace")
        .to_path_buf()
}

/// Folder of the pinned tools: `POSTHORN_TOOLS_DIR`, or `.tools` in the workspace.
///
/// The variable lets several clones share one download.
pub fn tools() -> PathBuf {
    match env::var_os("POSTHORN_TOOLS_DIR") {
        Some(dir) if !dir.is_empty() => absolute(PathBuf::from(dir)),
        _ => workspace().join(".tools"),
    }
}

/// Cargo's target folder of the workspace.
pub fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) if !dir.is_empty() => absolute(PathBuf::from(dir)),
        _ => workspace().join("target"),
    }
}

/// Folder in which each built model has a folder of its own, named by the hash of its inputs.
///
/// `POSTHORN_MODEL_CACHE` moves it, so that several clones can share one build of a model.
pub fn model_cache() -> PathBuf {
    match env::var_os("POSTHORN_MODEL_CACHE") {
        Some(dir) if !dir.is_empty() => absolute(PathBuf::from(dir)),
        _ => target().join("models"),
    }
}

/// The list of models that crate `model` links: `POSTHORN_MODELS`, or `target/models/manifest.json`.
pub fn manifest() -> PathBuf {
    match env::var_os("POSTHORN_MODELS") {
        Some(file) if !file.is_empty() => absolute(PathBuf::from(file)),
        _ => workspace().join("target/models/manifest.json"),
    }
}

/// A relative path means relative to the workspace, wherever the command was typed.
fn absolute(path: PathBuf) -> PathBuf {
    if path.is_absolute() {
        path
    } else {
        workspace().join(path)
    }
}
