//! `cargo xtask firmware`: the program of the card's processor.
//!
//! The firmware is built from its folder: cargo reads `.cargo/config.toml`, which names the target and the linker
//! scripts, by working directory. It is the same, bit for bit, wherever its source is: it takes the same cycles.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, bail};

use crate::progress::Progress;
use crate::setup::{self, FIRMWARE_TARGET};
use crate::{paths, run};

/// The firmware, and the programs that only measurements load.
const PROGRAMS: [&str; 2] = ["firmware", "bench_list"];

const PROFILE: &str = "firmware";
/// How cargo is to build it.
pub const FLAGS: [&str; 6] = [
    "--profile",
    PROFILE,
    "--features",
    "programs",
    "--target",
    FIRMWARE_TARGET,
];

/// Folder of the firmware, if this clone has one.
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
    for sources in registries() {
        let flag = format!("--remap-path-prefix={}=registry", sources.display());
        cargo.args([
            "--config",
            &format!("target.{FIRMWARE_TARGET}.rustflags=[{flag:?}]"),
        ]);
    }
    cargo
}

/// Where cargo has the sources of other people's packages. Their paths are in the messages of panics, and longer or shorter on each machine.
fn registries() -> Vec<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    let sources = home.and_then(|home| fs::read_dir(home.join("registry/src")).ok());
    let folders = sources.into_iter().flatten().flatten();
    folders.map(|folder| folder.path()).collect()
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
    command.arg("build").args(FLAGS);
    run::watched(command.stdin(Stdio::null()), |line| {
        progress.doing(line.trim())
    })?;
    let built = paths::target()
        .join("firmware/build")
        .join(FIRMWARE_TARGET)
        .join(PROFILE);
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
