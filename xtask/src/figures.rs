//! The kept figures of the gates: `hdl/figures.json`, the tables that the book shows of it, and the rule by which
//! a jump is noticed.
//!
//! ```text
//!  hdl/figures.json ──► tables between markers in docs/src/**.md
//!        │ hash of the Verilog measured
//!        ▼
//!  the tops as they are now ──same──► nothing to do
//!        └──────────────────changed─► yosys ─► within a tenth: a notice
//!                                          └─► beyond: a notice that it jumped
//! ```
//!
//! A page shows figures by a marker line that names tops; what stands between it and the closing marker is written
//! by `cargo xtask synth --write`:
//!
//! ```text
//! <!-- figures: events_tiny events_ecp5 -->
//! <!-- /figures -->
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::models::Class;
use crate::progress::Progress;
use crate::synth::{self, Prepared, SEED};
use crate::{book, paths};

/// Where the figures are, from the workspace's root.
pub const PATH: &str = "hdl/figures.json";

/// Largest change that is let pass, in percent.
const JUMP_PERCENT: f64 = 10.0;
/// Cells of which a tenth may always come or go: in a smaller block a relative change means nothing.
const SMALL_CELLS: u64 = 100;

/// What one top takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// First digits of the SHA-256 of what was measured: Verilog, foreign sources, the way of measuring.
    pub verilog: String,
    /// 4-input look-up tables, those of carry chains and distributed memory included.
    pub lut: u64,
    /// Flip-flops.
    pub ff: u64,
    /// Block RAMs of 18 Kibit.
    pub bram: u64,
    /// 18 × 18 multipliers.
    pub dsp: u64,
    /// How placing and routing went; absent unless it was tried.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub place: Option<Place>,
    /// MHz of each clock, if there are several: [`Place::Fmax`] is that of the slowest.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub clocks: BTreeMap<String, f64>,
    /// Seed of the placer that it was tried with; absent if that is [`SEED`].
    #[serde(skip_serializing_if = "is_usual", default = "usual")]
    pub seed: u32,
}

fn usual() -> u32 {
    SEED
}

fn is_usual(seed: &u32) -> bool {
    *seed == SEED
}

/// How placing and routing went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The clock that was reached, in MHz.
    Fmax(f64),
    /// There is no path from one register to another.
    NoPath,
    /// Given up after so many minutes.
    UnfinishedAfterMinutes(u64),
    /// The device has fewer look-up tables, block RAMs or multipliers.
    DoesNotFit,
}

impl Figures {
    /// The clock that was reached, in MHz.
    pub fn fmax(&self) -> Option<f64> {
        match self.place {
            Some(Place::Fmax(fmax)) => Some(fmax),
            _ => None,
        }
    }
}

/// Figures by name of the top.
pub type Kept = BTreeMap<String, Figures>;

/// The kept figures; none if there is no file.
///
/// # Errors
/// If the file isn't what [`write`] writes.
pub fn read() -> Result<Kept> {
    match fs::read(paths::workspace().join(PATH)) {
        Ok(text) => serde_json::from_slice(&text).with_context(|| format!("reading {PATH}")),
        Err(_) => Ok(Kept::new()),
    }
}

/// Keeps figures.
///
/// # Errors
/// If the file can't be written.
pub fn save(kept: &Kept) -> Result<()> {
    let text = serde_json::to_string_pretty(kept)? + "\n";
    fs::write(paths::workspace().join(PATH), text).with_context(|| format!("writing {PATH}"))
}

/// What has changed by more than is let pass, one line each.
pub fn jumped(name: &str, before: &Figures, now: &Figures) -> Vec<String> {
    let mut jumps = Vec::new();
    let mut compare = |what: &str, before: f64, now: f64, least: f64| {
        if (now - before).abs() > before.max(least) * JUMP_PERCENT / 100.0 {
            jumps.push(format!("{name}: {what} went from {before} to {now}"));
        }
    };
    let mut count = |what, before: u64, now: u64, least: u64| {
        compare(what, before as f64, now as f64, least as f64);
    };
    count("look-up tables", before.lut, now.lut, SMALL_CELLS);
    count("flip-flops", before.ff, now.ff, SMALL_CELLS);
    count("block RAMs", before.bram, now.bram, 0);
    count("multipliers", before.dsp, now.dsp, 0);
    if let (Some(before), Some(now)) = (before.fmax(), now.fmax())
        && now < before
    {
        compare("Fmax in MHz", before, now, 0.0);
    }
    jumps
}

/// What became of the figures of a top.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// They are those of the gates as they are.
    Current,
    /// The gates have changed, the figures hardly.
    Stale,
    /// This has jumped.
    Jumped(Vec<String>),
}

/// Compares kept figures with the gates, whose hash is `verilog`. Only gates that have changed are measured.
fn judge(
    name: &str,
    kept: &Figures,
    verilog: &str,
    measure: impl FnOnce() -> Result<Figures>,
) -> Result<Verdict> {
    if kept.verilog == verilog {
        return Ok(Verdict::Current);
    }
    let jumps = jumped(name, kept, &measure()?);
    Ok(if jumps.is_empty() {
        Verdict::Stale
    } else {
        Verdict::Jumped(jumps)
    })
}

/// Whether the kept figures still hold, and the pages show them.
///
/// Costs nothing while no gate has changed, and fetches no tools. A changed top costs yosys once; whole cards are
/// left out, their blocks stand for them.
///
/// # Errors
/// Names what has no figures, and which page is out of date. What has jumped is only told.
pub fn check() -> Result<()> {
    let kept = read()?;
    pages(&kept, true)?;
    let prepared = synth::prepare(&[])?;
    let known: BTreeSet<_> = prepared.iter().map(|top| top.name()).collect();
    let gone: Vec<_> = kept
        .keys()
        .filter(|name| !known.contains(name.as_str()))
        .collect();
    if !gone.is_empty() {
        bail!(
            "{PATH} has figures of tops that are no more, {gone:?}: remove them there and from the book"
        );
    }
    let mut unmeasured = Vec::new();
    let mut changed = Vec::new();
    for top in &prepared {
        match kept.get(top.name()) {
            Some(figures) if figures.verilog != top.digest() => changed.push((top, figures)),
            None if top.class() == Class::Synthesis => unmeasured.push(top.name()),
            _ => {}
        }
    }
    if !unmeasured.is_empty() {
        bail!(
            "these are for synthesis and have no figures:\n  cargo xtask synth --write --place {}",
            unmeasured.join(" ")
        );
    }
    let mut stale = Vec::new();
    let mut jumps = Vec::new();
    let mut names = Vec::new();
    for (name, verdict) in judge_all(&changed)? {
        match verdict {
            Verdict::Current => {}
            Verdict::Stale => stale.push(name),
            Verdict::Jumped(lines) => {
                jumps.extend(lines);
                names.push(name);
            }
        }
    }
    if !stale.is_empty() {
        eprintln!(
            "These gates have changed since they were measured. Blocks are within {JUMP_PERCENT} % of their figures, \
             whole cards weren't looked at. To measure again:\n  cargo xtask synth --write {}",
            stale.join(" ")
        );
    }
    if !jumps.is_empty() {
        for jump in &jumps {
            notice(jump);
        }
        eprintln!(
            "Keep the new figures, which the pages then show:\n  cargo xtask synth --write {}",
            names.join(" ")
        );
    }
    Ok(())
}

/// Tells of a jump: a line here, a notice beside the change in GitHub's CI. It is no failure until the card's shape rests.
fn notice(jump: &str) {
    eprintln!("{jump}");
    if std::env::var_os("GITHUB_ACTIONS").is_some() {
        println!("::notice title=The gates' figures::{jump}");
    }
}

/// Judges tops whose gates have changed, as many at a time as there are cores.
fn judge_all<'a>(changed: &[(&'a Prepared, &Figures)]) -> Result<Vec<(&'a str, Verdict)>> {
    if changed.is_empty() {
        return Ok(Vec::new());
    }
    let progress = Progress::bar("Synthesising what has changed", changed.len() as u64);
    let queue = Mutex::new(changed.iter());
    let verdicts = Mutex::new(Vec::new());
    let work = || {
        loop {
            let next = queue.lock().expect("no holder panics").next();
            let Some((top, figures)) = next else { break };
            progress.doing(top.name());
            let verdict = judge(top.name(), figures, top.digest(), || match top.class() {
                // It takes too long; its blocks stand for it.
                Class::Card => Ok((*figures).clone()),
                _ => top.measure(None),
            });
            verdicts
                .lock()
                .expect("no holder panics")
                .push((top.name(), verdict));
            progress.advance();
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut verdicts = verdicts.into_inner().expect("no holder panics");
    verdicts.sort_by_key(|(name, _)| *name);
    verdicts
        .into_iter()
        .map(|(name, verdict)| Ok((name, verdict?)))
        .collect()
}

const OPEN: &str = "<!-- figures:";
const CLOSE: &str = "<!-- /figures -->";

/// Writes the tables of all pages, or with `check` only sees whether they are what would be written.
///
/// # Errors
/// If a block's page shows no figures, a page asks for some that aren't kept, a kept figure is on no page, or with
/// `check` a page is out of date.
pub fn pages(kept: &Kept, check: bool) -> Result<()> {
    let root = paths::workspace().join("docs/src");
    let mut shown = BTreeSet::new();
    for page in book::pages()? {
        let path = root.join(&page);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {page}"))?;
        if page.starts_with("blocks/") && !text.contains(OPEN) {
            bail!("docs/src/{page} shows no figures: name its tops in a line `{OPEN} … -->`");
        }
        let current = filled(&text, kept, &mut shown).with_context(|| page.clone())?;
        if text == current {
            continue;
        }
        if check {
            bail!(
                "the figures in docs/src/{page} aren't those of {PATH}: run `cargo xtask synth --write`"
            );
        }
        write_page(&path, &current)?;
    }
    let hidden: Vec<_> = kept.keys().filter(|name| !shown.contains(*name)).collect();
    if !hidden.is_empty() {
        bail!(
            "no page of the book shows the figures of {hidden:?}: name them in a line `{OPEN} … -->`"
        );
    }
    Ok(())
}

fn write_page(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

/// The page with its tables filled. Adds the tops that it shows to `shown`.
fn filled(page: &str, kept: &Kept, shown: &mut BTreeSet<String>) -> Result<String> {
    let mut text = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        text.push_str(line);
        text.push('\n');
        let Some(names) = line
            .strip_prefix(OPEN)
            .and_then(|rest| rest.strip_suffix("-->"))
        else {
            continue;
        };
        if !lines.by_ref().any(|line| line == CLOSE) {
            bail!("`{line}` has no `{CLOSE}` after it");
        }
        let rows: Vec<(&str, &Figures)> = names
            .split_whitespace()
            .map(|name| {
                let figures = kept.get(name).with_context(|| {
                    format!("{name} has no figures: run `cargo xtask synth --write --place {name}`")
                })?;
                shown.insert(name.into());
                Ok((name, figures))
            })
            .collect::<Result<_>>()?;
        text.push_str(&table(&rows));
        text.push_str(CLOSE);
        text.push('\n');
    }
    Ok(text)
}

/// The table, with an empty line before and after. Multipliers have a column if there are any.
fn table(rows: &[(&str, &Figures)]) -> String {
    let multiplies = rows.iter().any(|(_, figures)| figures.dsp > 0);
    let column = |text: &str| {
        if multiplies {
            format!(" {text} |")
        } else {
            String::new()
        }
    };
    let mut text = format!(
        "\n| | LUT | FF | block RAM |{} Fmax, MHz |\n|---|--:|--:|--:|{}--:|\n",
        column("multipliers"),
        column("--:").trim_start(),
    );
    for (name, figures) in rows {
        let Figures {
            lut, ff, bram, dsp, ..
        } = figures;
        let fmax = match figures.place {
            Some(Place::Fmax(fmax)) if figures.seed != SEED => {
                format!("{fmax:.1} (seed {})", figures.seed)
            }
            Some(Place::Fmax(_)) if !figures.clocks.is_empty() => {
                let each = figures.clocks.iter();
                let each = each.map(|(clock, fmax)| format!("{fmax:.1} (`{clock}`)"));
                each.collect::<Vec<_>>().join(", ")
            }
            Some(Place::Fmax(fmax)) => format!("{fmax:.1}"),
            Some(Place::DoesNotFit) => "doesn't fit".into(),
            Some(Place::UnfinishedAfterMinutes(minutes)) => {
                format!("not placed and routed in {minutes} minutes")
            }
            Some(Place::NoPath) => "no path inside".into(),
            None => "not tried".into(),
        };
        let dsp = column(&dsp.to_string());
        let _ = writeln!(text, "| `{name}` | {lut} | {ff} | {bram} |{dsp} {fmax} |");
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(lut: u64, bram: u64, fmax: f64) -> Figures {
        Figures {
            verilog: "before".into(),
            lut,
            ff: 0,
            bram,
            dsp: 0,
            place: Some(Place::Fmax(fmax)),
            clocks: BTreeMap::new(),
            seed: SEED,
        }
    }

    #[test]
    fn a_jump_is_more_than_a_tenth_and_more_than_a_few_cells() {
        let before = figures(1000, 4, 100.0);
        assert!(jumped("b", &before, &figures(1099, 4, 91.0)).is_empty());
        assert_eq!(jumped("b", &before, &figures(1101, 5, 89.0)).len(), 3);
        assert_eq!(jumped("b", &before, &figures(899, 3, 200.0)).len(), 2);
        assert!(jumped("b", &figures(10, 0, 100.0), &figures(20, 0, 100.0)).is_empty());
        assert_eq!(
            jumped("b", &figures(10, 0, 100.0), &figures(21, 1, 100.0)).len(),
            2
        );
    }

    #[test]
    fn gates_that_have_not_changed_are_not_measured() {
        let unmeasured = || panic!("measured");
        let verdict = judge("b", &figures(1000, 4, 100.0), "before", unmeasured).unwrap();
        assert_eq!(verdict, Verdict::Current);
    }

    #[test]
    fn a_block_that_has_grown_is_noticed_and_one_that_has_changed_a_little_is_stale() {
        let kept = figures(1000, 4, 100.0);
        let after = |lut| judge("b", &kept, "after", || Ok(figures(lut, 4, 100.0))).unwrap();
        assert_eq!(after(1100), Verdict::Stale);
        let Verdict::Jumped(lines) = after(1101) else {
            panic!("it wasn't noticed");
        };
        assert_eq!(lines, ["b: look-up tables went from 1000 to 1101"]);
    }

    #[test]
    fn a_table_is_written_between_its_markers_and_stays_as_it_is() {
        let mut kept = Kept::new();
        kept.insert("a_tiny".into(), figures(12, 3, 101.24));
        let mut unplaced = figures(7, 0, 0.0);
        unplaced.place = Some(Place::UnfinishedAfterMinutes(6));
        kept.insert("a_ecp5".into(), unplaced);
        let mut seeded = figures(8, 1, 99.96);
        seeded.seed = 2;
        kept.insert("a_wide".into(), seeded);
        let page = "# A\n\n<!-- figures: a_tiny a_ecp5 a_wide -->\nold\n<!-- /figures -->\n\nend\n";
        let mut shown = BTreeSet::new();
        let text = filled(page, &kept, &mut shown).unwrap();
        assert!(
            text.contains("| `a_tiny` | 12 | 0 | 3 | 101.2 |\n"),
            "{text}"
        );
        assert!(text.contains("| `a_ecp5` | 7 | 0 | 0 | not placed and routed in 6 minutes |\n"));
        assert!(text.contains("| `a_wide` | 8 | 0 | 1 | 100.0 (seed 2) |\n"));
        assert!(!text.contains("old") && text.ends_with("\n\nend\n"));
        assert_eq!(shown.len(), 3);
        assert_eq!(filled(&text, &kept, &mut shown).unwrap(), text);
    }

    #[test]
    fn a_page_that_asks_for_what_was_never_measured_or_does_not_close_is_refused() {
        let kept = Kept::new();
        for page in [
            "<!-- figures: a -->\n<!-- /figures -->\n",
            "<!-- figures: a -->\n",
        ] {
            assert!(filled(page, &kept, &mut BTreeSet::new()).is_err());
        }
    }

    #[test]
    fn the_pages_in_the_book_show_the_kept_figures() {
        pages(&read().unwrap(), true).unwrap();
    }
}
