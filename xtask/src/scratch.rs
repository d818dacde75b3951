//! Folders that are filled under another name.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

/// A folder that is filled under another name and renamed when complete, so that a build that was
/// interrupted, or runs twice at a time, never leaves half a model behind.
pub struct Scratch {
    /// The folder as it is named until then.
    pub path: PathBuf,
}

impl Scratch {
    /// An empty folder beside `target`.
    ///
    /// # Errors
    /// If it can't be made.
    pub fn new(target: &Path) -> Result<Self> {
        let path = target.with_extension(format!("{}.tmp", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self { path })
    }

    /// Gives it the name `target`.
    ///
    /// # Errors
    /// If it can't be renamed.
    pub fn keep(self, target: &Path) -> Result<()> {
        match fs::rename(&self.path, target) {
            // Somebody else was faster; theirs is the same.
            Err(_) if target.is_dir() => Ok(()),
            other => Ok(other?),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Gone already when it was kept.
        let _ = fs::remove_dir_all(&self.path);
    }
}
