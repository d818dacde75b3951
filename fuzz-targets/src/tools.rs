//! What the tools read from files that anybody may have written: traces, fault plans, the firmware's ELF file and the logs of cards that run it.
//!
//! A file is made as one that is right, of what the bytes choose, and then some of its bytes are others: so a seed gets behind the first check.

use crate::Reader;
use abi::mgmt::{MEMORY_BASE, MEMORY_BYTES};
use posthorn::trace::Trace;
use sim::fault::FaultPlan;
use sim::firmware::Firmware;
use sim::log::{LogByte, LogDecoder};
use sim::testing::{Elf, LogMessage};
use std::path::Path;

/// Changes some bytes of a text, in one of four.
fn mutate(reader: &mut Reader<'_>, text: &mut [u8]) {
    if !reader.byte().is_multiple_of(4) || text.is_empty() {
        return;
    }
    for _ in 0..=reader.byte() % 3 {
        let at = usize::from(u16::from_le_bytes(reader.take())) % text.len();
        text[at] = reader.byte();
    }
}

/// Numbers of ranks in headers.
const RANKS: [&str; 6] = [
    "2",
    "2",
    "65536",
    "0",
    "18446744073709551615",
    "99999999999999999999",
];

/// A trace, uncompressed: each byte is a row, whose operation is a new one, or ends one. Whether it was one in which something happens.
pub fn traces(bytes: &[u8]) -> bool {
    let mut reader = Reader(bytes);
    let ranks = RANKS[usize::from(reader.byte()) % RANKS.len()];
    let mut file = format!("# app: x\n# ranks: {ranks}\n");
    let (mut rank, mut posted) = (0_u64, 0_u64);
    let mut pending = Vec::new();
    for time in 0..32 {
        if reader.is_empty() {
            break;
        }
        let what = reader.byte();
        let number = u64::from(what >> 3);
        let row = match what % 8 {
            0 | 1 => match pending.pop() {
                Some(op) => format!("C,{op},-1,7,0,8,{}", i64::from(what >> 3) - 16),
                None => continue,
            },
            6 if pending.is_empty() => {
                // There is one more, or there isn't.
                rank += u64::from(what >> 5 == 0 || rank == 0);
                continue;
            }
            6 | 7 => format!("CX,{posted},-1,0,0,0,{number}"),
            kind => {
                posted += 1;
                let event = ["TS", "TR", "TP", "TSI"][usize::from(kind) - 2];
                if event != "TSI" {
                    pending.push(posted);
                }
                format!("{event},{posted},{},7,ff,{number},0", 1 - rank % 2)
            }
        };
        file += &format!("{rank},{time},{row}\n");
    }
    // All that is posted ends, as a trace's must.
    for op in pending {
        file += &format!("{rank},99,C,{op},-1,7,0,8,0\n");
    }
    let mut file = file.into_bytes();
    mutate(&mut reader, &mut file);
    match Trace::parse(Path::new("trace"), &file[..]) {
        Ok(trace) => trace.ranks.iter().any(|events| !events.is_empty()),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

/// Cards of the plans that are checked.
const CARDS: usize = 4;

/// The tables of a plan, and lines that each may have.
const TABLES: [(&str, &[&str]); 5] = [
    (
        "fault",
        &[
            "lose = 0.1",
            "source = 1",
            "begin = 10",
            "end = 50",
            "late = 0.5\nlate_by = 9223372036854775807",
            "corrupt = 1e-9",
            "bandwidth = 2",
            "repeat = nan",
        ],
    ),
    (
        "partition",
        &[
            "sides = [[0], [1, 2]]",
            "begin = 5",
            "end = 9",
            "end = 4",
            "sides = [[0, 1], [3]]",
        ],
    ),
    (
        "hold",
        &[
            "source = 0\ndestination = 1\nrelease = 100",
            "nth = 3",
            "match_bits = 7",
            "repeats_pass = true",
            "kind = \"Put\"",
            "source = 99\ndestination = 1\nrelease = 100",
        ],
    ),
    (
        "host",
        &[
            "card = 2",
            "kill = 50",
            "freeze = { begin = 5, end = 9 }",
            "card = 4",
        ],
    ),
    (
        "card",
        &[
            "card = 2",
            "kill = 50",
            "stall_memory = { begin = 0, end = 5 }",
            "pause_firmware = { begin = 9, end = 5 }",
        ],
    ),
];

/// A plan of faults for four cards: for each table a byte that says which, and one with a bit for each of its lines. Whether it was one that can be carried out; such a
/// one is the same when it is written and read again.
pub fn plans(bytes: &[u8]) -> bool {
    let mut reader = Reader(bytes);
    let mut file = String::new();
    for _ in 0..=reader.byte() % 4 {
        let (table, lines) = TABLES[usize::from(reader.byte()) % TABLES.len()];
        file += &format!("[[{table}]]\n");
        // The first line is one that most need.
        let chosen = reader.byte() | u8::from(reader.byte() % 8 != 0);
        for (k, line) in lines.iter().enumerate() {
            if chosen >> k & 1 == 1 {
                file += &format!("{line}\n");
            }
        }
    }
    let mut file = file.into_bytes();
    mutate(&mut reader, &mut file);
    let Ok(file) = String::from_utf8(file) else {
        return false;
    };
    let Ok(plan) = toml::from_str::<FaultPlan>(&file) else {
        return false;
    };
    if plan.check(CARDS).is_err() {
        return false;
    }
    let written = toml::to_string(&plan).expect("a plan can be written");
    let again: FaultPlan = toml::from_str(&written).expect("what was written can be read");
    assert_eq!(again, plan, "{written}");
    again.check(CARDS).expect("it was one before");
    true
}

/// The firmware's ELF file, whole or mutated, and a log of a card that runs it. Whether there was something to load. Nothing is to be loaded outside of the processor's
/// memory.
pub fn firmware(bytes: &[u8]) -> bool {
    let mut reader = Reader(bytes);
    let mut elf = Elf {
        messages: vec![
            LogMessage::info("up"),
            LogMessage::warn("pair {=u8} failed: {=str}"),
        ],
        ..Elf::default()
    };
    elf.address = elf.address.wrapping_add(match reader.byte() % 4 {
        0 => reader.word(),
        _ => 0,
    });
    let mut file = elf.build();
    for _ in 0..reader.byte() % 6 {
        let at = usize::from(u16::from_le_bytes(reader.take())) % file.len();
        file[at] = reader.byte();
    }
    if reader.byte().is_multiple_of(8) {
        let length = usize::from(u16::from_le_bytes(reader.take())) % (file.len() + 1);
        file.truncate(length);
    }
    let Ok(firmware) = Firmware::parse(file) else {
        return false;
    };
    for segment in firmware.segments() {
        let first = segment.address - MEMORY_BASE;
        let end = u64::from(first) + segment.bytes.len() as u64;
        assert!(end <= u64::from(MEMORY_BYTES), "{first:#x} to {end:#x}");
    }
    let Ok(decoder) = LogDecoder::new(&firmware, firmware.build_id()) else {
        return true;
    };
    let log = (0..).map_while(|cycle| {
        let more = !reader.is_empty();
        let byte = reader.byte();
        more.then_some(LogByte { cycle, byte })
    });
    let log: Vec<LogByte> = log.take(256).collect();
    // Each byte ends one line at most.
    assert!(decoder.decode(&log).len() <= log.len());
    true
}
