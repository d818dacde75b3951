//! The command as a person meets it: what it says of a file that it can't use, and how it ends when it is told to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

fn posthorn() -> Command {
    Command::new(env!("CARGO_BIN_EXE_posthorn"))
}

/// A compressed trace with this text, under this name.
fn trace(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let packed = zstd::encode_all(text.as_bytes(), 1).expect("zstd");
    fs::write(&path, packed).expect("a place for temporary files");
    path
}

/// What the command says of a trace that it refuses.
fn refusal(path: &Path) -> String {
    let output = posthorn()
        .arg("replay")
        .arg(path)
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty(), "no summary of nothing");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn a_malformed_trace_is_refused_with_file_line_and_reason() {
    const HEAD: &str = "# app: toy\n# ranks: 2\n";
    for (name, body, line, reason) in [
        (
            "short.csv.zst",
            "0,1,TSI,9,1,0,0,8\n",
            3,
            "8 columns where there should be 9",
        ),
        (
            "event.csv.zst",
            "0,1,TSI,9,1,0,0,8,0\n0,2,XX,10,1,0,0,8,0\n",
            4,
            "`XX` is not an event of this format",
        ),
        (
            "rma.csv.zst",
            "0,1,RW,9,1,0,0,8,0\n",
            3,
            "`RW` is an operation that the card doesn't have yet",
        ),
        (
            "pending.csv.zst",
            "1,1,TR,4,0,0,0,8,0\n",
            3,
            "operation 4 of rank 1 never completes",
        ),
    ] {
        let path = trace(name, &format!("{HEAD}{body}"));
        let said = refusal(&path);
        let wanted = format!("{}:{line}: {reason}", path.display());
        assert!(said.contains(&wanted), "{said:?} lacks {wanted:?}");
    }
    let path = trace("headless.csv.zst", "0,1,TSI,9,1,0,0,8,0\n");
    let said = refusal(&path);
    assert!(
        said.contains(&format!("{}:1: no `# ranks:` line", path.display())),
        "{said:?}"
    );
}

#[test]
fn a_file_that_is_missing_or_not_compressed_is_named() {
    let missing = Path::new("no/such/trace.csv.zst");
    assert!(refusal(missing).contains("no/such/trace.csv.zst"));
    let plain = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plain.csv.zst");
    fs::write(&plain, "# ranks: 2\n").expect("written");
    assert!(refusal(&plain).contains("plain.csv.zst"));
}

/// Whether the process catches SIGINT.
#[cfg(target_os = "linux")]
fn catches_interrupts(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << 1 != 0)
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupt_ends_a_replay_with_the_summary_of_what_was_done() {
    let lulesh = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces/lulesh-8.csv.zst");
    let mut child = posthorn()
        .args(["replay", "--json", "--config", "tiny"])
        .arg(lulesh)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let start = Instant::now();
    while !catches_interrupts(child.id()) {
        let ended = child.try_wait().expect("a child");
        assert!(ended.is_none(), "it ended by itself: {ended:?}");
        assert!(start.elapsed() < Duration::from_secs(60), "it never began");
        sleep(Duration::from_millis(20));
    }
    // Long enough to have begun, and a small part of what the whole takes.
    sleep(Duration::from_secs(3));
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(sent.expect("kill is there").success());
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a summary");
    assert_eq!(summary["complete"], false);
    assert_eq!(summary["matching"], "not judged");
    assert!(summary["cycles"].is_u64());
    assert!(summary["messages"].as_u64() < Some(33_111), "{summary}");
    assert!(!said.contains("failed"), "{said}");
}
