//! `cargo xtask test`: every test of the workspace, and their sum in one line.

use std::fs;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::{driver, paths, run, setup};

use driver::Count;

impl Count {
    /// Adds what a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; …` says.
    fn add(&mut self, line: &str) {
        let Some((_, result)) = line.split_once("test result: ") else {
            return;
        };
        for part in result.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let (Some(number), Some(what)) = (words.next(), words.next()) else {
                continue;
            };
            let number = number.parse().unwrap_or(0);
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                _ => {}
            }
        }
    }
}

/// Runs the tests, with `long` also those that are marked as ignored because they take long.
/// `rest` goes to the test programs. `count` is how those went that ran before.
///
/// Prints `N passed, N failed` at the end. What can't be counted, such as a test program that
/// doesn't compile or dies, counts as one failure.
///
/// # Errors
/// If anything failed.
pub fn run(long: bool, rest: &[String], mut count: Count) -> Result<()> {
    let mut cargo = setup::cargo();
    cargo
        .args(["test", "--workspace", "--no-fail-fast", "--"])
        .args(rest);
    if long {
        cargo.arg("--include-ignored");
        // Mutants of every block, as many as `support::broken` tries in a long run, not the small sample.
        let folder = paths::target().join("mutants");
        fs::create_dir_all(&folder)?;
        cargo.env("POSTHORN_MUTANTS", folder);
    }
    if std::io::stdout().is_terminal() {
        cargo.args(["--color", "always"]);
    }
    let mut child = cargo
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("can't start `{}`", run::shown(&cargo)))?;
    let mut out = std::io::stdout();
    for line in BufReader::new(child.stdout.take().expect("piped above")).split(b'\n') {
        let line = line?;
        // Tests may print anything, so this needn't be UTF-8.
        count.add(&plain(&String::from_utf8_lossy(&line)));
        out.write_all(&line)?;
        out.write_all(b"\n")?;
    }
    let well = child.wait()?.success();
    if !well && count.failed == 0 {
        count.failed = 1;
    }
    println!("{} passed, {} failed", count.passed, count.failed);
    if !well || count.failed > 0 {
        bail!("the tests failed");
    }
    Ok(())
}

/// The text without escape sequences that colour it.
fn plain(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_string();
    for part in parts {
        plain.push_str(part.split_once('m').map_or("", |(_, rest)| rest));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_summed_with_and_without_colour() {
        let mut count = Count::default();
        count.add("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out");
        count.add(&plain(
            "test result: \x1b[31mFAILED\x1b[m. 2 passed; 4 failed; 0 ignored",
        ));
        count.add("test something ... ok");
        assert_eq!(
            count,
            Count {
                passed: 5,
                failed: 4
            }
        );
    }
}
