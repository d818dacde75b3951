//! What this command drives: versions, configurations, their capabilities, limits and times, as text for people and as JSON for programs.

use std::collections::BTreeMap;
use std::fmt;

use abi::capability::CAPABILITIES;
use abi::explain::Plain;
use abi::{Constant, limits, times, wire};
use hdl::config::{ALL, Config};
use serde::Serialize;

/// Versions of what has to fit together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Versions {
    /// This command.
    pub command: &'static str,
    /// The commit that it was built from, with `+` if there were changes.
    pub commit: &'static str,
    /// Everything that host and card share.
    pub abi: u32,
    /// The header of frames.
    pub wire: u8,
    /// Build id of the firmware, if there is one.
    pub firmware: Option<String>,
}

/// Sizes of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// Endpoints.
    pub endpoints: usize,
    /// Pairs, over all endpoints.
    pub pairs: usize,
    /// Receives posted, with any mask.
    pub posted: usize,
    /// Of those, set aside for each endpoint.
    pub posted_each: usize,
    /// Receives posted, exact ones.
    pub exact: usize,
    /// Of those, set aside for each endpoint.
    pub exact_each: usize,
    /// Match bits that are compared.
    pub match_bits: usize,
    /// Unexpected messages: envelopes that all pairs together may own.
    pub unexpected: usize,
    /// Regions.
    pub regions: usize,
}

impl Sizes {
    fn of(config: &Config) -> Self {
        Self {
            endpoints: config.endpoints,
            pairs: config.pairs,
            posted: config.posted,
            posted_each: config.reserved_posted(),
            exact: config.exact,
            exact_each: config.reserved_exact(),
            match_bits: config.match_bits,
            unexpected: config.unexpected,
            regions: config.regions,
        }
    }

    fn lines(&self) -> [(&'static str, usize); 9] {
        [
            ("endpoints", self.endpoints),
            ("pairs", self.pairs),
            ("receives, any mask", self.posted),
            ("  for each endpoint", self.posted_each),
            ("receives, exact", self.exact),
            ("  for each endpoint", self.exact_each),
            ("match bits", self.match_bits),
            ("unexpected messages", self.unexpected),
            ("regions", self.regions),
        ]
    }
}

/// A number that every card has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// Value.
    pub value: u64,
    /// What it means.
    pub means: String,
}

/// What a card may have or lack: a bit of `capabilities` of `Identify`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capability {
    /// The bit.
    pub value: u64,
    /// What a card can do that has it.
    pub means: String,
    /// Configurations whose cards have it.
    pub configurations: Vec<&'static str>,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Info {
    /// Versions.
    pub versions: Versions,
    /// Configurations that cards are built in.
    pub configurations: BTreeMap<&'static str, Sizes>,
    /// What cards may have, by its name in the ABI.
    pub capabilities: BTreeMap<&'static str, Capability>,
    /// Limits of every card.
    pub limits: BTreeMap<&'static str, Limit>,
    /// Time-outs, in cycles.
    pub times: BTreeMap<&'static str, Limit>,
}

fn table(constants: &'static [Constant]) -> BTreeMap<&'static str, Limit> {
    let limit = |constant: &Constant| {
        let means = Plain(constant.doc).to_string();
        let value = constant.value;
        (constant.name, Limit { value, means })
    };
    constants.iter().map(limit).collect()
}

fn capabilities(configs: &[Config]) -> BTreeMap<&'static str, Capability> {
    let capability = |constant: &Constant| {
        let has = |config: &&Config| u64::from(config.capabilities) & constant.value != 0;
        let configurations = configs.iter().filter(has).map(|config| config.name);
        let capability = Capability {
            value: constant.value,
            means: Plain(constant.doc).to_string(),
            configurations: configurations.collect(),
        };
        (constant.name, capability)
    };
    CAPABILITIES.iter().map(capability).collect()
}

impl Info {
    /// What there is, with firmware of this build id.
    pub fn new(firmware: Option<u64>) -> Self {
        Self {
            versions: Versions {
                command: env!("CARGO_PKG_VERSION"),
                commit: env!("POSTHORN_COMMIT"),
                abi: abi::ABI_VERSION,
                wire: wire::VERSION,
                firmware: firmware.map(|id| format!("{id:016x}")),
            },
            configurations: ALL
                .iter()
                .map(|config| (config.name, Sizes::of(config)))
                .collect(),
            capabilities: capabilities(ALL),
            limits: table(limits::LIMITS),
            times: table(times::TIMES),
        }
    }
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Versions {
            command,
            commit,
            abi,
            wire,
            firmware,
        } = &self.versions;
        writeln!(f, "posthorn {command}, commit {commit}")?;
        writeln!(f, "  {:<22} {abi}", "abi")?;
        writeln!(f, "  {:<22} {wire}", "wire format")?;
        let firmware = firmware
            .as_deref()
            .unwrap_or("none is built: `cargo xtask firmware`");
        writeln!(f, "  {:<22} {firmware}", "firmware")?;
        write!(f, "{:<24}", "configurations")?;
        for name in self.configurations.keys() {
            write!(f, " {name:>8}")?;
        }
        writeln!(f)?;
        let columns: Vec<_> = self.configurations.values().map(Sizes::lines).collect();
        for (row, (name, _)) in columns[0].iter().enumerate() {
            write!(f, "  {name:<22}")?;
            for column in &columns {
                write!(f, " {:>8}", column[row].1)?;
            }
            writeln!(f)?;
        }
        writeln!(f, "capabilities, and configurations that have them")?;
        for (name, capability) in &self.capabilities {
            let has = match &capability.configurations[..] {
                [] => "none".to_string(),
                some => some.join(", "),
            };
            writeln!(f, "  {name:<30} {has:>12}  {}", capability.means)?;
        }
        for (title, table) in [("limits", &self.limits), ("times, in cycles", &self.times)] {
            writeln!(f, "{title}")?;
            for (name, Limit { value, means }) in table {
                writeln!(f, "  {name:<22} {value:>8}  {means}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Capability, Info, capabilities};
    use abi::capability::{CAPABILITY_ERRORS_ONLY, CAPABILITY_GATHER};
    use hdl::config::{Config, ECP5, TINY};

    const ERRORS_ONLY: Config = Config {
        capabilities: CAPABILITY_ERRORS_ONLY,
        ..TINY
    };
    const BOTH: Config = Config {
        capabilities: CAPABILITY_ERRORS_ONLY | CAPABILITY_GATHER,
        ..ECP5
    };

    #[test]
    fn each_capability_names_the_configurations_that_have_it() {
        let all = capabilities(&[ERRORS_ONLY, BOTH]);
        let of = |name: &str| -> &Capability { &all[name] };
        assert_eq!(
            of("CAPABILITY_ERRORS_ONLY").configurations,
            ["tiny", "ecp5"]
        );
        assert_eq!(of("CAPABILITY_GATHER").configurations, ["ecp5"]);
        assert!(
            of("CAPABILITY_SHARED_COMPLETIONS")
                .configurations
                .is_empty()
        );
        let info = Info {
            capabilities: all,
            ..Info::new(None)
        };
        let text = info.to_string();
        let line = |name: &str| {
            text.lines()
                .find(|line| line.contains(name))
                .expect("a line")
        };
        assert!(
            line("CAPABILITY_ERRORS_ONLY").contains("tiny, ecp5"),
            "{text}"
        );
        assert!(
            line("CAPABILITY_SHARED_COMPLETIONS").contains(" none "),
            "{text}"
        );
    }
}
