//! What frames that the links lose cost: a stream of one pair, against the same stream over links that lose nothing. Streams are of messages of one frame, and of
//! long puts, whose parts are frames of as many bytes; a message is longer than a frame on no card yet.

use anyhow::{Context, Result};
use sim::Firmware;

use super::bandwidth;
use super::message::{self, Case, LATENCIES, Pattern, Receive};
use super::speed::Length;
use super::{Point, Report};

/// Shares of the frames that are lost.
const LOSSES: [f64; 5] = [0.0, 0.0001, 0.001, 0.01, 0.05];
/// The same of a run that only shows whether it runs.
const SHORT_LOSSES: [f64; 3] = [0.0, 0.001, 0.05];
/// Percentiles of the latency that are told.
const PERCENTILES: [f64; 4] = [50.0, 99.0, 99.9, 100.0];
/// Bytes of a message.
const BYTES: usize = 1024;
/// Credits of the pair: as many as there can be.
const CREDITS: u16 = abi::limits::MAX_UNACKNOWLEDGED;

/// Runs the suite.
///
/// # Errors
/// If the simulation fails.
pub fn run(config: &str, length: Length, seed: u64, firmware: &Firmware) -> Result<Report> {
    let messages = match length {
        Length::Short => 512,
        Length::Normal => 8_192,
        Length::Long => 131_072,
    };
    // So many frames are as many as there are messages, or a quarter.
    let (puts, put_bytes) = match length {
        Length::Short => (8, 16 << 10),
        Length::Normal => (32, 64 << 10),
        Length::Long => (2_048, 64 << 10),
    };
    let mut points = Vec::new();
    let mut lossless = None;
    let mut lossless_puts = None;
    let losses = match length {
        Length::Short => &SHORT_LOSSES[..],
        Length::Normal | Length::Long => &LOSSES,
    };
    for &lose in losses {
        let case = Case {
            pattern: Pattern::Stream,
            pairs: 1,
            bytes: BYTES,
            receive: Receive::Posted,
            credits: CREDITS,
            // No more, since a message that waits for its credit is late without being lost.
            sends: CREDITS,
            latency: LATENCIES[0],
            messages,
            lose,
        };
        let carried = message::carry(length.cluster(config), seed, firmware, case);
        let carried = carried.with_context(|| format!("{case:?}"))?;
        let per_message = carried.seen.per_message;
        let best = *lossless.get_or_insert(per_message);
        let params = [
            ("loss", lose.into()),
            ("op", "eager".into()),
            ("bytes", BYTES.into()),
        ];
        let mut goodput = Point::new("goodput", params, best / per_message, "share");
        goodput.beside.insert("cycles_per_message", per_message);
        points.push(goodput);
        let mut latencies = carried.latencies;
        latencies.sort_unstable();
        for percentile in PERCENTILES {
            let params = [("loss", lose.into()), ("percentile", percentile.into())];
            let cycles = at(&latencies, percentile).context("no message came")?;
            points.push(Point::new("latency", params, cycles as f64, "cycles"));
        }
        let share = bandwidth::lossy_stream(
            length.cluster(config),
            seed,
            firmware,
            (puts, put_bytes),
            lose,
        )?;
        let best = *lossless_puts.get_or_insert(share);
        let params = [
            ("loss", lose.into()),
            ("op", "put".into()),
            ("bytes", put_bytes.into()),
        ];
        let mut goodput = Point::new("goodput", params, share / best, "share");
        goodput.beside.insert("share_of_link", share);
        points.push(goodput);
    }
    Ok(Report::new("link", config, seed, points))
}

/// The least value that so many of a hundred don't exceed.
fn at(sorted: &[u64], percentile: f64) -> Option<u64> {
    let rank = (sorted.len() as f64 * percentile / 100.0).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let values: Vec<u64> = (1..=200).collect();
        assert_eq!(at(&values, 50.0), Some(100));
        assert_eq!(at(&values, 99.9), Some(200));
        assert_eq!(at(&values, 100.0), Some(200));
        assert_eq!(at(&[7], 50.0), Some(7));
        assert_eq!(at(&[], 50.0), None);
    }
}
