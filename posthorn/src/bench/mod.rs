//! Benchmarks: every figure in one shape, so that it can be followed from one version to the next.
//!
//! A suite is a list of points, each a name, parameters, a value and its unit. Simulated time is counted in
//! cycles and is exact; wall time only ever enters as a ratio or a rate measured in the same run.

pub mod bandwidth;
mod ends;
pub mod failure;
pub mod latency;
pub mod link;
pub mod matching;
pub mod message;
mod peer;
pub mod protect;
pub mod speed;
pub mod speedup;
pub mod traces;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Name; fixed once published.
    pub name: &'static str,
    /// What the figure depends on.
    pub params: BTreeMap<&'static str, Value>,
    /// The figure.
    pub value: f64,
    /// `cycles`, `cycles/s`, `ratio`, `share`, `bytes`, …
    pub unit: &'static str,
    /// Further figures of the same measurement, such as `max`.
    #[serde(flatten)]
    pub beside: BTreeMap<&'static str, f64>,
}

impl Point {
    /// A figure that depends on `params`.
    pub fn new<const N: usize>(
        name: &'static str,
        params: [(&'static str, Value); N],
        value: f64,
        unit: &'static str,
    ) -> Self {
        Self {
            name,
            params: params.into(),
            value,
            unit,
            beside: BTreeMap::new(),
        }
    }
}

/// A figure that couldn't be measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unmeasured {
    /// Name of the point.
    pub name: &'static str,
    /// What the figure would depend on.
    pub params: BTreeMap<&'static str, Value>,
    /// Why there is none.
    pub reason: String,
}

impl Unmeasured {
    /// A figure of `params` that there isn't because of `error`.
    pub fn new<const N: usize>(
        name: &'static str,
        params: [(&'static str, Value); N],
        error: &anyhow::Error,
    ) -> Self {
        Self {
            name,
            params: params.into(),
            reason: format!("{error:#}"),
        }
    }
}

/// The figures of one suite.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Suite.
    pub suite: &'static str,
    /// Configuration asked for; points that measured another one say so.
    pub config: String,
    /// Commit that was measured; `+` marks changes on top of it.
    pub commit: &'static str,
    /// Seed of everything that is random.
    pub seed: u64,
    /// Figures.
    pub points: Vec<Point>,
    /// Figures that there should be too. The command fails if there are any, but it prints the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmeasured: Vec<Unmeasured>,
}

impl Report {
    /// A report of this build.
    pub fn new(suite: &'static str, config: &str, seed: u64, points: Vec<Point>) -> Self {
        Self {
            suite,
            config: config.to_owned(),
            commit: env!("POSTHORN_COMMIT"),
            seed,
            points,
            unmeasured: Vec::new(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} on {}, seed {}, commit {}",
            self.suite, self.config, self.seed, self.commit
        )?;
        for point in &self.points {
            write!(
                f,
                "  {:<14} {:<40} {:>14.2} {}",
                point.name,
                listed(&point.params),
                point.value,
                point.unit
            )?;
            for (name, value) in &point.beside {
                write!(f, "  {name} {value:.2}")?;
            }
            writeln!(f)?;
        }
        for one in &self.unmeasured {
            let params = listed(&one.params);
            writeln!(
                f,
                "  {:<14} {params:<40} not measured: {}",
                one.name, one.reason
            )?;
        }
        Ok(())
    }
}

/// Parameters, for people.
fn listed(params: &BTreeMap<&'static str, Value>) -> String {
    let params = params.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    });
    params.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_json_has_the_shape_that_others_read() {
        let mut point = Point::new(
            "arrive",
            [("kind", "exact".into()), ("depth", 1024.into())],
            7.0,
            "cycles",
        );
        point.beside.insert("max", 9.0);
        let mut report = Report::new("match", "ecp5", 1, vec![point]);
        report.commit = "c0ffee";
        assert_eq!(
            serde_json::to_value(&report).unwrap(),
            json!({"suite": "match", "config": "ecp5", "commit": "c0ffee", "seed": 1, "points": [
                {"name": "arrive", "params": {"kind": "exact", "depth": 1024}, "value": 7.0, "unit": "cycles", "max": 9.0}
            ]})
        );
        assert!(report.to_string().contains("kind=exact"));
    }

    #[test]
    fn a_figure_that_could_not_be_measured_is_told_beside_the_others() {
        let point = Point::new("arrive", [("depth", 1.into())], 7.0, "cycles");
        let mut report = Report::new("match", "ecp5", 1, vec![point]);
        let error = anyhow::anyhow!("no room").context("posting");
        let none = Unmeasured::new("arrive", [("depth", 2.into())], &error);
        report.unmeasured.push(none);
        let value = serde_json::to_value(&report).unwrap();
        assert_eq!(value["points"].as_array().map(Vec::len), Some(1));
        assert_eq!(
            value["unmeasured"],
            json!([{"name": "arrive", "params": {"depth": 2}, "reason": "posting: no room"}])
        );
        let text = report.to_string();
        assert!(text.contains("depth=1") && text.contains("not measured: posting: no room"));
    }
}
