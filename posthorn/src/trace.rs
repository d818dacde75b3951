//! Reads a recorded application: the message traces whose format `traces/README.md` describes.
//!
//! A trace is zstd-compressed text, a line a call, all of rank 0 first. It is checked as a whole when it is
//! read, so that a replay never starts on a file that can't be replayed; every refusal names the
//! file, the line and the reason.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Why a trace can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file can't be read.
    #[error("reading {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line is wrong.
    #[error("{}:{line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
}

/// A recorded application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Name of the application, from the header.
    pub app: String,
    /// The events of each rank, in program order.
    pub ranks: Vec<Vec<Event>>,
}

/// One recorded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Line of the file.
    pub line: u64,
    /// Number of the operation within its rank; a completion carries that of what it completes.
    pub op: u64,
    /// What was called.
    pub call: Call,
}

/// What was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Tagged send; completes later, unless `inject`.
    Send {
        /// Destination rank.
        peer: usize,
        /// Match bits.
        tag: u64,
        /// Length in bytes.
        bytes: u64,
        /// The buffer may be used again at once, and no completion follows.
        inject: bool,
    },
    /// Tagged receive posted.
    Receive {
        /// Source rank, if given.
        source: Option<usize>,
        /// Match bits.
        tag: u64,
        /// Bits that are ignored.
        ignore: u64,
        /// Size of the buffer.
        bytes: u64,
    },
    /// Look for a message without receiving it.
    Probe {
        /// Source rank, if given.
        source: Option<usize>,
        /// Match bits.
        tag: u64,
        /// Bits that are ignored.
        ignore: u64,
    },
    /// Cancel of a posted receive.
    Cancel {
        /// Operation number of the receive.
        target: u64,
    },
    /// Untagged buffer for many messages.
    MultiReceive {
        /// Length of the buffer.
        bytes: u64,
    },
    /// The application read this completion.
    Complete {
        /// 0, or a libfabric error code.
        status: i64,
        /// Length of the message: receives and probes.
        bytes: u64,
        /// Tag of the message: receives and probes.
        tag: u64,
    },
}

/// Completion status of a probe that found nothing.
pub const FI_ENOMSG: i64 = 42;
/// Completion status of a receive that was cancelled.
pub const FI_ECANCELED: i64 = 125;

const COLUMNS: usize = 9;
/// Most ranks of a trace: more than any that is replayed, and less than memory has room for.
const MOST_RANKS: usize = 1 << 16;

impl Trace {
    /// Reads and checks the trace in `path`.
    ///
    /// # Errors
    /// [`TraceError`], with the line if it is the contents that are wrong.
    pub fn read(path: &Path) -> Result<Self, TraceError> {
        let io = |source| TraceError::Io {
            path: path.to_owned(),
            source,
        };
        let mut file = BufReader::new(File::open(path).map_err(io)?);
        let begin = file.fill_buf().map_err(io)?;
        // Of what begins otherwise than a frame the decoder would speak in words of its own.
        if zstd::zstd_safe::get_frame_content_size(begin).is_err() {
            return Err(TraceError::Line {
                path: path.to_owned(),
                line: 1,
                reason: "not compressed by zstd".into(),
            });
        }
        let text = zstd::Decoder::with_buffer(file).map_err(io)?;
        Self::parse(path, text)
    }

    /// Reads and checks the uncompressed text of a trace; `path` is for messages.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn parse(path: &Path, text: impl Read) -> Result<Self, TraceError> {
        let mut text = BufReader::new(text);
        let header = Header::parse(path, &mut text)?;
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .comment(Some(b'#'))
            .from_reader(text);
        let mut checker = Checker::new(header.ranks);
        let mut record = csv::StringRecord::new();
        loop {
            let more = reader.read_record(&mut record).map_err(|error| {
                let line = error.position().map_or(0, csv::Position::line) + header.lines;
                TraceError::Line {
                    path: path.to_owned(),
                    line,
                    reason: error.to_string(),
                }
            })?;
            if !more {
                break;
            }
            let line = record.position().map_or(0, csv::Position::line) + header.lines;
            Row::parse(&record, header.ranks)
                .and_then(|row| checker.take(line, row))
                .map_err(|reason| TraceError::Line {
                    path: path.to_owned(),
                    line,
                    reason,
                })?;
        }
        let ranks = checker
            .finish()
            .map_err(|(line, reason)| TraceError::Line {
                path: path.to_owned(),
                line,
                reason,
            })?;
        Ok(Self {
            app: header.app,
            ranks,
        })
    }
}

struct Header {
    app: String,
    ranks: usize,
    /// Lines before the first that isn't a comment.
    lines: u64,
}

impl Header {
    fn parse(path: &Path, text: &mut impl BufRead) -> Result<Self, TraceError> {
        let io = |source| TraceError::Io {
            path: path.to_owned(),
            source,
        };
        let wrong = |line, reason: String| TraceError::Line {
            path: path.to_owned(),
            line,
            reason,
        };
        let (mut app, mut ranks, mut lines) = (String::new(), None, 0);
        while text.fill_buf().map_err(io)?.first() == Some(&b'#') {
            let mut line = String::new();
            text.read_line(&mut line).map_err(io)?;
            lines += 1;
            let Some((key, value)) = line[1..].split_once(':') else {
                continue;
            };
            match (key.trim(), value.trim()) {
                ("app", value) => app = value.to_owned(),
                ("ranks", value) => {
                    let count = value
                        .parse()
                        .ok()
                        .filter(|count| (1..=MOST_RANKS).contains(count));
                    ranks = Some(count.ok_or_else(|| {
                        let reason =
                            format!("`{value}` is not a number of ranks: 1 to {MOST_RANKS} is");
                        wrong(lines, reason)
                    })?);
                }
                _ => {}
            }
        }
        let ranks =
            ranks.ok_or_else(|| wrong(lines + 1, "no `# ranks:` line comes before".into()))?;
        Ok(Self { app, ranks, lines })
    }
}

struct Row {
    rank: usize,
    time_ns: u64,
    op: u64,
    call: Call,
}

impl Row {
    fn parse(record: &csv::StringRecord, ranks: usize) -> Result<Self, String> {
        if record.len() != COLUMNS {
            return Err(format!(
                "{} columns where there should be {COLUMNS}",
                record.len()
            ));
        }
        let number = |column: usize, name: &str| -> Result<u64, String> {
            record[column]
                .parse()
                .map_err(|_| format!("`{}` is not a {name}", &record[column]))
        };
        let hex = |column: usize, name: &str| -> Result<u64, String> {
            u64::from_str_radix(&record[column], 16)
                .map_err(|_| format!("`{}` is not a hexadecimal {name}", &record[column]))
        };
        let rank = number(0, "rank")?;
        let rank = usize::try_from(rank).ok().filter(|&rank| rank < ranks);
        let rank = rank.ok_or_else(|| format!("rank {} of {ranks}", &record[0]))?;
        let peer = match &record[4] {
            "-1" => None,
            text => Some(
                text.parse()
                    .ok()
                    .filter(|&peer: &usize| peer < ranks)
                    .ok_or_else(|| {
                        format!("`{text}` is not a peer: -1 or a rank below {ranks} is")
                    })?,
            ),
        };
        let (tag, ignore) = (hex(5, "tag")?, hex(6, "mask")?);
        let bytes = number(7, "length")?;
        let status = record[8]
            .parse()
            .map_err(|_| format!("`{}` is not a status", &record[8]))?;
        let call = match &record[2] {
            event @ ("TS" | "TSI") => Call::Send {
                peer: peer.ok_or("a send needs a peer")?,
                tag,
                bytes,
                inject: event == "TSI",
            },
            "TR" => Call::Receive {
                source: peer,
                tag,
                ignore,
                bytes,
            },
            "TP" => Call::Probe {
                source: peer,
                tag,
                ignore,
            },
            "CX" => Call::Cancel {
                target: number(3, "operation")?,
            },
            "MRM" => Call::MultiReceive { bytes },
            "C" => Call::Complete { status, bytes, tag },
            event @ ("TSS" | "TPC" | "TPD" | "TC" | "MS" | "MR" | "RW" | "RR" | "AT") => {
                return Err(format!(
                    "`{event}` is an operation that the card doesn't have yet"
                ));
            }
            event => return Err(format!("`{event}` is not an event of this format")),
        };
        Ok(Self {
            rank,
            time_ns: number(1, "time")?,
            op: number(3, "operation")?,
            call,
        })
    }
}

/// What an operation is waiting for, if anything.
enum Open {
    /// A completion is to come; the line that posted it.
    Pending(u64),
    Done,
}

struct Checker {
    ranks: Vec<Vec<Event>>,
    at: usize,
    time_ns: u64,
    ops: HashMap<u64, Open>,
}

impl Checker {
    fn new(ranks: usize) -> Self {
        Self {
            ranks: vec![Vec::new(); ranks],
            at: 0,
            time_ns: 0,
            ops: HashMap::new(),
        }
    }

    fn take(&mut self, line: u64, row: Row) -> Result<(), String> {
        if row.rank < self.at {
            return Err(format!(
                "rank {} after rank {}: ranks must follow each other",
                row.rank, self.at
            ));
        }
        if row.rank > self.at {
            self.end_rank()
                .map_err(|(posted, what)| format!("{what} (posted in line {posted})"))?;
            self.at = row.rank;
        }
        if row.time_ns < self.time_ns {
            return Err(format!(
                "time goes back from {} to {}",
                self.time_ns, row.time_ns
            ));
        }
        self.time_ns = row.time_ns;
        match &row.call {
            Call::Complete { .. } => match self.ops.insert(row.op, Open::Done) {
                Some(Open::Pending(_)) => {}
                Some(Open::Done) => return Err(format!("operation {} completes twice", row.op)),
                None => {
                    return Err(format!(
                        "operation {} completes but was never posted",
                        row.op
                    ));
                }
            },
            Call::Cancel { target } => {
                if !self.ops.contains_key(target) {
                    return Err(format!(
                        "cancel of operation {target}, which was never posted"
                    ));
                }
            }
            Call::Send { inject: true, .. } | Call::MultiReceive { .. } => {
                self.post(row.op, Open::Done)?
            }
            Call::Send { .. } | Call::Receive { .. } | Call::Probe { .. } => {
                self.post(row.op, Open::Pending(line))?;
            }
        }
        self.ranks[self.at].push(Event {
            line,
            op: row.op,
            call: row.call,
        });
        Ok(())
    }

    fn post(&mut self, op: u64, open: Open) -> Result<(), String> {
        match self.ops.insert(op, open) {
            None => Ok(()),
            Some(_) => Err(format!("operation {op} is posted twice")),
        }
    }

    fn end_rank(&mut self) -> Result<(), (u64, String)> {
        let pending = self.ops.drain().filter_map(|(op, open)| match open {
            Open::Pending(line) => Some((line, op)),
            Open::Done => None,
        });
        let first = pending.min();
        self.time_ns = 0;
        match first {
            None => Ok(()),
            Some((line, op)) => Err((
                line,
                format!("operation {op} of rank {} never completes", self.at),
            )),
        }
    }

    fn finish(mut self) -> Result<Vec<Vec<Event>>, (u64, String)> {
        self.end_rank()?;
        Ok(self.ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# app: toy\n# ranks: 2\n# columns: rank,t_ns,event,op,peer,tag_hex,ignore_hex,bytes,status\n";

    fn parse(body: &str) -> Result<Trace, TraceError> {
        Trace::parse(Path::new("toy.csv"), format!("{HEAD}{body}").as_bytes())
    }

    fn refusal(body: &str) -> String {
        parse(body).unwrap_err().to_string()
    }

    #[test]
    fn a_message_is_read_on_both_sides() {
        let trace = parse("0,1,TSI,9,1,8000000e,0,8,0\n1,1,TR,9,-1,8000000e,c0000000000000,16,0\n1,2,C,9,0,8000000e,0,8,0\n").unwrap();
        assert_eq!(trace.app, "toy");
        assert_eq!(
            trace.ranks[0],
            [Event {
                line: 4,
                op: 9,
                call: Call::Send {
                    peer: 1,
                    tag: 0x8000_000e,
                    bytes: 8,
                    inject: true
                }
            }]
        );
        assert_eq!(
            trace.ranks[1][0].call,
            Call::Receive {
                source: None,
                tag: 0x8000_000e,
                ignore: 0xc0_0000_0000_0000,
                bytes: 16
            }
        );
        assert_eq!(trace.ranks[1][1].line, 6);
    }

    #[test]
    fn what_is_malformed_is_refused_with_file_line_and_reason() {
        for (body, wanted) in [
            (
                "0,1,TSI,9,1,8000000e,0,8\n",
                "toy.csv:4: 8 columns where there should be 9",
            ),
            ("2,1,TSI,9,1,8000000e,0,8,0\n", "toy.csv:4: rank 2 of 2"),
            (
                "0,x,TSI,9,1,8000000e,0,8,0\n",
                "toy.csv:4: `x` is not a time",
            ),
            (
                "0,1,XX,9,1,8000000e,0,8,0\n",
                "toy.csv:4: `XX` is not an event of this format",
            ),
            (
                "0,1,RW,9,1,8000000e,0,8,0\n",
                "toy.csv:4: `RW` is an operation that the card doesn't have yet",
            ),
            (
                "0,1,TSI,9,2,8000000e,0,8,0\n",
                "toy.csv:4: `2` is not a peer: -1 or a rank below 2 is",
            ),
            (
                "0,1,TSI,9,-1,8000000e,0,8,0\n",
                "toy.csv:4: a send needs a peer",
            ),
            (
                "0,1,TSI,9,1,zz,0,8,0\n",
                "toy.csv:4: `zz` is not a hexadecimal tag",
            ),
            (
                "0,2,TSI,9,1,1,0,8,0\n0,1,TSI,10,1,1,0,8,0\n",
                "toy.csv:5: time goes back from 2 to 1",
            ),
            (
                "0,1,TSI,9,1,1,0,8,0\n0,1,TSI,9,1,1,0,8,0\n",
                "toy.csv:5: operation 9 is posted twice",
            ),
            (
                "0,1,C,9,1,1,0,8,0\n",
                "toy.csv:4: operation 9 completes but was never posted",
            ),
            (
                "0,1,TR,9,1,1,0,8,0\n",
                "toy.csv:4: operation 9 of rank 0 never completes",
            ),
            (
                "1,1,TSI,9,0,1,0,8,0\n0,1,TSI,9,1,1,0,8,0\n",
                "toy.csv:5: rank 0 after rank 1: ranks must follow each other",
            ),
        ] {
            assert_eq!(refusal(body), wanted);
        }
    }

    #[test]
    fn a_file_without_ranks_is_refused() {
        let error = Trace::parse(Path::new("toy.csv"), "# app: toy\n0,1\n".as_bytes()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "toy.csv:2: no `# ranks:` line comes before"
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_is_refused_by_name_and_its_reason_is_given_once() {
        let error = Trace::read(Path::new("no/such.csv.zst")).unwrap_err();
        assert_eq!(error.to_string(), "reading no/such.csv.zst");
        let reason = std::error::Error::source(&error).expect("what the system said");
        assert!(reason.to_string().contains("os error"), "{reason}");
        let plain = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let error = anyhow::Error::from(Trace::read(Path::new(plain)).unwrap_err());
        assert!(
            format!("{error:#}").ends_with("Cargo.toml:1: not compressed by zstd"),
            "{error:#}"
        );
    }

    #[test]
    fn every_recorded_application_reads_with_the_events_its_readme_counts() {
        for (name, events) in [
            ("lulesh-8", 99_413),
            ("hpcg-8", 118_808),
            ("comd-8", 22_661),
            ("minife-8", 28_652),
        ] {
            let path =
                Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../traces/{name}.csv.zst"));
            let trace = Trace::read(&path).unwrap();
            assert_eq!(
                trace.ranks.iter().map(Vec::len).sum::<usize>(),
                events,
                "{name}"
            );
        }
    }
}
