//! `cargo xtask firmware`: the program of the card's processor.
//!
//! The firmware is a workspace of its own and is built from its folder: cargo reads
//! `.cargo/config.toml`, which names the target and the linker scripts, by working directory.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::progress::Progress;
use crate::setup::{self, FIRMWARE_TARGET};
use crate::{paths, run};

/// The firmware, and the programs that only measurements load.
const PROGRAMS: [&str; 2] = ["firmware", "bench_list"];

/// Folder of the firmware's workspace, if this clone has one.
pub fn folder() -> Option<PathBuf> {
    Some(paths::workspace().join("firmware")).filter(|dir| dir.join("Cargo.toml").is_file())
}

/// Cargo, in the firmware's folder.
pub fn cargo(folder: &PathBuf) -> Command {
    let mut cargo = setup::cargo();
    cargo.current_dir(folder);
    // The workspace's own flags are for the host.
    cargo
        .env_remove("CARGO_BUILD_TARGET")
        .env_remove("RUSTFLAGS");
    cargo.env("CARGO_TARGET_DIR", paths::target().join("firmware/build"));
    cargo
}

/// Builds the firmware and returns where its ELF is: `target/firmware/firmware.elf`.
///
/// # Errors
/// If it doesn't compile or link.
pub fn build() -> Result<Option<PathBuf>> {
    let Some(folder) = folder() else {
        eprintln!("There is no firmware/ yet: skipped.");
        return Ok(None);
    };
    let progress = Progress::spinner("Building the firmware");
    let mut command = cargo(&folder);
    command.args(["build", "--release", "--target", FIRMWARE_TARGET]);
    run::watched(command.stdin(Stdio::null()), |line| {
        progress.doing(line.trim())
    })?;
    let built = paths::target()
        .join("firmware/build")
        .join(FIRMWARE_TARGET)
        .join("release");
    // Beside the manifest of models, wherever cargo builds: the programs look for it there.
    let out = paths::workspace().join("target/firmware");
    fs::create_dir_all(&out)?;
    for program in PROGRAMS {
        let image = fs::read(built.join(program))
            .with_context(|| format!("cargo built no {program} for the processor"))?;
        if image.get(..4) != Some(b"\x7fELF") {
            bail!("{} is no ELF file", built.join(program).display());
        }
        let elf = out.join(program).with_extension("elf");
        // Left alone if it is the same, so that nothing that includes it is built again.
        if fs::read(&elf).ok().as_ref() != Some(&image) {
            fs::write(&elf, image)?;
        }
    }
    let elf = out.join("firmware.elf");
    drop(progress);
    eprintln!("The firmware is {}.", elf.display());
    Ok(Some(elf))
}
