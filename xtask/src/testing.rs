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

/// How Verilated gates begin to say that a check of theirs has failed.
const FAILED_CHECK: &[u8] = b"%Error";

/// Options of test programs that stand alone, and those behind which a value may stand.
const FLAGS: [&str; 12] = [
    "--",
    "--exact",
    "--help",
    "--ignored",
    "--include-ignored",
    "--list",
    "--no-capture",
    "--nocapture",
    "--quiet",
    "--show-output",
    "-h",
    "-q",
];
const SETTINGS: [&str; 4] = ["--color", "--format", "--skip", "--test-threads"];

/// Looks at what is meant for the test programs before anything is built: each option has to be one of theirs, and what a name
/// is to contain has to stand in some source of the workspace.
///
/// # Errors
/// With what nobody knows.
pub fn check(rest: &[String]) -> Result<()> {
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let option = word.split('=').next().unwrap_or_default();
        if SETTINGS.contains(&option) {
            // Its value is the next word, unless it is in this one.
            if option == word {
                words.next();
            }
        } else if option.starts_with('-') && !FLAGS.contains(&option) {
            bail!(
                "no option `{option}`: `cargo xtask test` has --long, and the test programs {} and {}",
                FLAGS[1..].join(", "),
                SETTINGS.join(", ")
            );
        } else if !option.starts_with('-') && !is_in_a_source(word)? {
            bail!("no test has a name with `{word}` in it, so there would be nothing to run");
        }
    }
    Ok(())
}

/// Whether each part of a path of modules and a function stands in some Rust file of the workspace, or in its name.
fn is_in_a_source(path: &str) -> Result<bool> {
    let mut wanted: Vec<&str> = path.split("::").filter(|part| !part.is_empty()).collect();
    let mut folders = vec![paths::workspace()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let file = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    folders.push(file);
                }
            } else if name.ends_with(".rs") {
                let text = fs::read_to_string(&file)?;
                wanted.retain(|part| !name.contains(part) && !text.contains(part));
                if wanted.is_empty() {
                    return Ok(true);
                }
            }
        }
    }
    Ok(wanted.is_empty())
}

/// Minutes of processor time that a process and those that it has waited for have taken, of its `/proc/PID/stat` (proc(5)): user and system time, own and the
/// children's, in hundredths of a second.
fn minutes_of(stat: &str) -> Option<f64> {
    // The name of the program, in brackets, may have any characters.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut times = fields.split(' ').skip(11);
    let mut ticks = 0;
    for _ in 0..4 {
        ticks += times.next()?.parse::<u64>().ok()?;
    }
    Some(ticks as f64 / 6_000.0)
}

/// Runs the tests, with `long` also those that are marked as ignored because they take long, and those of the prover.
/// `rest` goes to the test programs. `count` is how those went that ran before.
///
/// Prints `N passed, N failed` at the end. What can't be counted, such as a test program that
/// doesn't compile or dies, counts as one failure.
///
/// # Errors
/// If anything failed.
pub fn run(long: bool, rest: &[String], mut count: Count) -> Result<()> {
    let mut cargo = setup::cargo();
    cargo.args(["test", "--workspace", "--no-fail-fast"]);
    if !long {
        // Two minutes of g++ for a solver that only the proofs ask.
        cargo.args(["--exclude", "bounded"]);
    }
    cargo.arg("--").args(rest);
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
    let mut checks = 0;
    for line in BufReader::new(child.stdout.take().expect("piped above")).split(b'\n') {
        let line = line?;
        // Tests may print anything, so this needn't be UTF-8.
        count.add(&plain(&String::from_utf8_lossy(&line)));
        checks += usize::from(line.starts_with(FAILED_CHECK));
        out.write_all(&line)?;
        out.write_all(b"\n")?;
    }
    let well = child.wait()?.success();
    if !well && count.failed == 0 {
        count.failed = 1;
    }
    if well && checks > 0 {
        println!(
            "The {checks} lines that begin with `%Error` are checks of gates that a test has broken on purpose, \
             and are what it waited for: any other makes its test fail."
        );
    }
    if let Some(minutes) = fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|stat| minutes_of(&stat))
    {
        println!("All that was built and run took {minutes:.1} minutes of processor time.");
    }
    println!("{} passed, {} failed", count.passed, count.failed);
    if !well || count.failed > 0 {
        bail!("the tests failed");
    }
    let listed = ["--list", "--help", "-h"];
    let runs = !rest.iter().any(|word| listed.contains(&word.as_str()));
    if runs && !rest.is_empty() && count.passed == 0 {
        bail!("no test has such a name; `cargo xtask test --list` lists them");
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
    fn processor_time_is_all_four_times_of_the_line() {
        let line = "12 (a) b (c) S 1 2 3 0 -1 4 5 6 7 8 6000 12000 600 5400 20 0 1 0 9";
        assert_eq!(super::minutes_of(line), Some(4.0));
        assert_eq!(super::minutes_of("12 (a) S 1"), None);
    }

    #[test]
    fn what_no_test_program_knows_is_said_before_anything_is_built() {
        let checked = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            super::check(&words).map_err(|error| error.to_string())
        };
        let fine = [
            &["results_are_summed", "--nocapture"][..],
            &["testing::tests::results", "--test-threads=1"],
            &["--skip", "anything at all", "-q"],
        ];
        for words in fine {
            assert_eq!(checked(words), Ok(()), "{words:?}");
        }
        // Put together, lest it stand in this very file.
        let nowhere = ["a_test", "_of_that", "_name"].concat();
        let said = checked(&[&nowhere]).unwrap_err();
        assert!(said.contains("no test has a name with"), "{said}");
        let said = checked(&["--lnog"]).unwrap_err();
        assert!(said.contains("no option `--lnog`"), "{said}");
    }

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
