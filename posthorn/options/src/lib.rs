//! The options of a replay.
//!
//! ```text
//!  cargo xtask demo ──► refuse wrong options and files ──► build what they need ──┐ the same
//!  posthorn replay ◄──────────────────────────────────────────────────────────────┘ options
//! ```
//!
//! The demonstration builds models for minutes before it starts the command. So both know the options from here,
//! and what is wrong with them, or with the files that they name, is said before anything is built.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::PossibleValuesParser;

/// Names of the configurations that cards are built in.
pub const CONFIGURATIONS: &[&str] = &["tiny", "ecp5"];

/// The configuration of who asks for none.
pub const CONFIGURATION: &str = "ecp5";

/// Names of the configurations that a matching engine is built in, to be measured: those of cards first.
pub const ENGINES: &[&str] = &["tiny", "ecp5", "wide"];

/// Takes the name of a configuration and refuses others with a list of those that there are.
pub fn configuration() -> PossibleValuesParser {
    PossibleValuesParser::new(CONFIGURATIONS)
}

/// The same for what may be a matching engine alone.
pub fn engine() -> PossibleValuesParser {
    PossibleValuesParser::new(ENGINES)
}

/// How a trace is replayed and what is recorded of it.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Exit codes: 0 all replayed and right; 1 something is wrong, and said; 2 the arguments are; 130 interrupted by \
Ctrl-C: what is printed is the summary of what was done, marked PARTIAL (`\"complete\": false`). A second Ctrl-C ends \
at once, without a summary.")]
pub struct ReplayOptions {
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
    /// Configuration of the cards
    #[arg(long, default_value = CONFIGURATION, value_parser = configuration())]
    pub config: String,
    /// Decides when --back-pressure holds back and what --faults does. Otherwise only the secret of matching's hash and
    /// what memories hold at power-on come from it, and no cycle of a sound replay depends on them
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Memory, registers and network hold back at random, in this share of the cycles [no value: 33]
    #[arg(
        long,
        value_name = "PERCENT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "33",
        value_parser = clap::value_parser!(u16).range(0..=95)
    )]
    pub back_pressure: Option<u16>,
    /// Let happen what this file says, or `random`: frames lost, changed, repeated and late, links cut and slow, hosts and memory that stand still; of a file
    /// also processes and cards killed: the summary says then which operations of the others ended how
    #[arg(long, value_name = "PLAN")]
    pub faults: Option<PathBuf>,
    /// Threads that the cards run on; never changes what happens [default: all cores]
    #[arg(long)]
    pub threads: Option<NonZeroUsize>,
    /// Write every frame to a pcapng file
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Write a waveform of one card to a VCD file: a gigabyte for some 100,000 cycles
    #[arg(long, value_name = "FILE")]
    pub waves: Option<PathBuf>,
    /// Card to write the waveform of
    #[arg(long, value_name = "CARD", default_value_t = 0, requires = "waves")]
    pub waves_card: usize,
    /// First cycle of the waveform
    #[arg(long, value_name = "CYCLE", default_value_t = 0, requires = "waves")]
    pub from: u64,
    /// Cycle before which the waveform ends
    #[arg(long, value_name = "CYCLE", requires = "waves")]
    pub to: Option<u64>,
    /// Print the log of every card's firmware
    #[arg(long)]
    pub log: bool,
    /// Firmware image [default: the one that `cargo xtask firmware` builds]
    #[arg(long, value_name = "ELF")]
    pub firmware: Option<PathBuf>,
}

impl ReplayOptions {
    /// Cycles of the waveform.
    ///
    /// # Errors
    /// If there are none; the message is for who gave the options.
    pub fn cycles(&self) -> Result<Range<u64>, String> {
        let cycles = self.from..self.to.unwrap_or(u64::MAX);
        if cycles.is_empty() {
            return Err(format!(
                "--to {} is not after --from {}",
                cycles.end, cycles.start
            ));
        }
        Ok(cycles)
    }

    /// Sees whether the files can be read, begin as such files do, and can be written. Changes none.
    ///
    /// # Errors
    /// If one can't; the message is for who named it.
    pub fn check_files(&self, trace: Option<&Path>) -> Result<(), String> {
        let told = |doing, file: &Path| {
            let file = file.display().to_string();
            move |error: io::Error| format!("{doing} {file}: {error}")
        };
        if let Some(trace) = trace {
            is_zstd(trace).map_err(told("reading", trace))?;
        }
        if let Some(image) = &self.firmware {
            is_elf(image).map_err(told("reading", image))?;
        }
        for file in [&self.pcap, &self.waves].into_iter().flatten() {
            can_be_written(file).map_err(told("writing", file))?;
        }
        Ok(())
    }
}

/// The first bytes of a file; none of a pipe, whose reader would miss them.
fn first_bytes(path: &Path) -> io::Result<Option<[u8; 4]>> {
    let there = fs::metadata(path)?;
    if !there.is_file() && !there.is_dir() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(4).read_to_end(&mut bytes)?;
    bytes.resize(4, 0);
    Ok(bytes.try_into().ok())
}

/// RFC 8878, 3.1: a frame begins with a number of its own, or one of sixteen if it is to be skipped.
fn is_zstd(path: &Path) -> io::Result<()> {
    match first_bytes(path)?.map(u32::from_le_bytes) {
        None | Some(0xfd2f_b528 | 0x184d_2a50..=0x184d_2a5f) => Ok(()),
        Some(_) => Err(io::Error::other("no trace: not compressed by zstd")),
    }
}

fn is_elf(path: &Path) -> io::Result<()> {
    match first_bytes(path)?.as_ref() {
        None | Some(b"\x7fELF") => Ok(()),
        Some(_) => Err(io::Error::other("no ELF file")),
    }
}

/// Sees whether the file can be written, without changing it.
///
/// # Errors
/// If it can't: what the system says.
pub fn can_be_written(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(there) if there.is_file() || there.is_dir() => {
            OpenOptions::new().write(true).open(path).map(drop)
        }
        // To open a pipe may be to wait.
        Ok(_) => Ok(()),
        // Where a link leads to nothing, it isn't the link that is to be written.
        Err(error) if error.kind() == ErrorKind::NotFound && !path.is_symlink() => {
            File::create_new(path)?;
            fs::remove_file(path)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: ReplayOptions,
    }

    fn parsed(arguments: &str) -> Result<ReplayOptions, clap::Error> {
        let words = std::iter::once("x").chain(arguments.split_whitespace());
        Command::try_parse_from(words).map(|command| command.options)
    }

    #[test]
    fn an_unknown_configuration_is_refused_with_the_known_ones() {
        let refused = parsed("--config nope")
            .expect_err("there is none")
            .to_string();
        assert!(refused.contains("'nope'"), "{refused}");
        assert!(
            refused.contains("[possible values: tiny, ecp5]"),
            "{refused}"
        );
        assert_eq!(parsed("--config=tiny").unwrap().config, "tiny");
        assert_eq!(parsed("").unwrap().config, CONFIGURATION);
    }

    #[test]
    fn a_waveform_has_cycles() {
        let cycles = |arguments| parsed(arguments).unwrap().cycles();
        assert_eq!(cycles("--waves w --from 5 --to 7"), Ok(5..7));
        assert_eq!(cycles("--waves w --from 5"), Ok(5..u64::MAX));
        let refused = cycles("--waves w --from 7 --to 7");
        assert_eq!(refused, Err("--to 7 is not after --from 7".into()));
        assert!(parsed("--from 5").is_err(), "of no waveform");
    }

    #[test]
    fn files_are_refused_that_cannot_be_read_or_written() {
        let folder = std::env::temp_dir().join(format!("posthorn-options-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let named = |name: &str| folder.join(name);
        fs::write(named("plain.csv"), "0,1").unwrap();
        fs::write(named("short.zst"), [0x28]).unwrap();
        let refused = |options: &str, trace: &str| {
            let options = options.replace("@", folder.to_str().unwrap());
            let refused = parsed(&options)
                .unwrap()
                .check_files(Some(&named(trace)))
                .expect_err("it can't be");
            refused.replace(folder.to_str().unwrap(), "@")
        };
        let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/lulesh-8.csv.zst");
        assert!(refused("", "none.zst").starts_with("reading @/none.zst: "));
        assert!(refused("", "").starts_with("reading @/: "), "a folder");
        for other in ["plain.csv", "short.zst"] {
            let expected = format!("reading @/{other}: no trace: not compressed by zstd");
            assert_eq!(refused("", other), expected);
        }
        let expected = "reading @/plain.csv: no ELF file";
        assert_eq!(refused("--firmware @/plain.csv", recorded), expected);
        for option in ["--pcap", "--waves"] {
            let missing = refused(&format!("{option} @/none/out"), recorded);
            assert!(missing.starts_with("writing @/none/out: "), "{missing}");
            let folder = refused(&format!("{option} @"), recorded);
            assert!(folder.starts_with("writing @: "), "{folder}");
        }
        let options = format!("--pcap {0}/new --waves {0}/plain.csv", folder.display());
        let well = parsed(&options)
            .unwrap()
            .check_files(Some(Path::new(recorded)));
        assert_eq!(well, Ok(()));
        assert!(!named("new").exists(), "seen, not made");
        assert_eq!(fs::read_to_string(named("plain.csv")).unwrap(), "0,1");
        fs::remove_dir_all(&folder).unwrap();
    }
}
