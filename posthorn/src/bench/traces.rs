//! Every recorded application at its full rank count: what `posthorn replay` reports, as points.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use sim::fault::FaultPlan;
use sim::seed::BackPressure;
use sim::{Firmware, Rate};

use super::{Point, Report};
use crate::replay::{self, Options, Shared};
use crate::trace::Trace;

/// The traces in `folder`, by name.
///
/// # Errors
/// If the folder can't be read or has none.
fn traces(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = folder
        .read_dir()
        .with_context(|| format!("reading {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(".csv.zst"))
        .collect();
    if paths.is_empty() {
        bail!("no traces in {}", folder.display());
    }
    paths.sort();
    Ok(paths)
}

/// Replays every trace in `folder`.
///
/// # Errors
/// If a replay doesn't complete, a byte is wrong, or the matching is illegal.
pub fn run(folder: &Path, config: &str, seed: u64, firmware: &Firmware) -> Result<Report> {
    let mut points = Vec::new();
    for path in traces(folder)? {
        let trace = Trace::read(&path)?;
        let options = Options {
            config: config.to_owned(),
            seed,
            pressure: BackPressure::NONE,
            faults: FaultPlan::default(),
            processors: Rate::Times(1),
            threads: None,
            pcap: None,
            waves: None,
            cancel: Arc::new(AtomicBool::new(false)),
        };
        eprintln!("replaying {}", path.display());
        let replayed = replay::run(&trace, firmware.clone(), &options, &Shared::default())?;
        if let Some(failure) = replayed.failures.first() {
            bail!("{}: {failure}", path.display());
        }
        let summary = &replayed.summary;
        let name = path
            .file_name()
            .map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let mut point = |point: &'static str, value: f64, unit: &'static str| {
            let params = [
                ("trace", name.as_str().into()),
                ("ranks", summary.ranks.into()),
            ];
            points.push(Point::new(point, params, value, unit));
        };
        point("messages", summary.messages as f64, "messages");
        point("cycles", summary.cycles as f64, "cycles");
        point("cycles_per_message", summary.cycles_per_message, "cycles");
        point(
            "unexpected",
            summary.unexpected as f64 / summary.messages.max(1) as f64,
            "share",
        );
        point("speed", summary.nic_cycles_per_second, "cycles/s");
    }
    Ok(Report::new("replay", config, seed, points))
}
