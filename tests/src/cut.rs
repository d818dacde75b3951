//! Small consistent pieces of the recorded traces.
//!
//! ```text
//!  rank 0  ──────●━━━━┓          ● where the time ends
//!  rank 1  ──────●━┓  ┃          ━ what the others still need, and so on until nobody does
//!  rank 2  ──────●  ┗━┛
//! ```
//!
//! A cut at one time leaves receives pending. So each rank goes on to the completion of what it has
//! posted, and the senders of what it received go on to the sends, until nothing is missing.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use posthorn::trace::Trace;

/// A line of a trace, as far as the cut needs it.
struct Line<'a> {
    text: &'a str,
    time: u64,
    event: &'a str,
    op: &'a str,
    peer: &'a str,
    tag: &'a str,
}

impl<'a> Line<'a> {
    fn parse(text: &'a str) -> (usize, Self) {
        let columns: Vec<&str> = text.split(',').collect();
        let number = |column: usize| columns[column].parse().expect("a number");
        let line = Self {
            text,
            time: number(1),
            event: columns[2],
            op: columns[3],
            peer: columns[4],
            tag: columns[5],
        };
        (number(0) as usize, line)
    }
}

/// Where a recorded trace is.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../traces")
        .join(format!("{name}-8.csv.zst"))
}

/// The uncompressed text of a recorded trace.
pub fn text(name: &str) -> String {
    let file = std::fs::File::open(path(name)).expect("a recorded trace");
    let mut text = String::new();
    let mut decoder = zstd::Decoder::new(file).expect("zstd");
    decoder.read_to_string(&mut text).expect("text");
    text
}

/// The start of a recorded trace: about the first `share` of its time.
pub fn cut(name: &str, share: f64) -> Trace {
    let text = text(name);
    let (header, body): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with('#'));
    let mut ranks: Vec<Vec<Line>> = Vec::new();
    for text in body {
        let (rank, line) = Line::parse(text);
        ranks.resize_with(ranks.len().max(rank + 1), Vec::new);
        ranks[rank].push(line);
    }
    let last = ranks.iter().flatten().map(|line| line.time).max();
    let until = (last.unwrap_or(0) as f64 * share) as u64;
    let mut ends: Vec<usize> = ranks
        .iter()
        .map(|lines| lines.partition_point(|line| line.time <= until))
        .collect();
    while grow(&ranks, &mut ends) {}

    let kept = ranks
        .iter()
        .zip(&ends)
        .flat_map(|(lines, &end)| &lines[..end]);
    let lines = header.into_iter().chain(kept.map(|line| line.text));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    Trace::parse(&path(name), text.as_bytes()).expect("a cut is a trace")
}

/// Makes the pieces longer by what they need of each other; whether they needed anything.
fn grow(ranks: &[Vec<Line>], ends: &mut [usize]) -> bool {
    let before = ends.to_vec();
    for rank in 0..ranks.len() {
        ends[rank] = completed(&ranks[rank], ends[rank]);
        let received = received(&ranks[rank][..ends[rank]]);
        let me = rank.to_string();
        for ((peer, tag), mut missing) in received {
            let source: usize = peer.parse().expect("a rank");
            for (at, line) in ranks[source].iter().enumerate() {
                if missing == 0 {
                    break;
                }
                if line.event.starts_with("TS") && (line.peer, line.tag) == (me.as_str(), tag) {
                    missing -= 1;
                    ends[source] = ends[source].max(at + 1);
                }
            }
        }
    }
    ends != before
}

/// How far a rank goes to complete what it has posted.
fn completed(lines: &[Line], end: usize) -> usize {
    let mut pending = HashMap::new();
    for line in &lines[..end] {
        match line.event {
            "C" => drop(pending.remove(line.op)),
            "TS" | "TR" | "TP" => drop(pending.insert(line.op, ())),
            _ => {}
        }
    }
    let rest = lines[end..].iter().enumerate();
    let mut ends = rest.filter(|(_, line)| line.event == "C" && pending.contains_key(line.op));
    ends.next_back().map_or(end, |(at, _)| end + at + 1)
}

/// Messages received, by source and tag.
fn received<'a>(lines: &[Line<'a>]) -> HashMap<(&'a str, &'a str), usize> {
    let mut posted = HashMap::new();
    let mut received = HashMap::new();
    for line in lines {
        match line.event {
            "TR" => drop(posted.insert(line.op, ())),
            "C" if posted.contains_key(line.op) => {
                *received.entry((line.peer, line.tag)).or_default() += 1;
            }
            _ => {}
        }
    }
    received
}
