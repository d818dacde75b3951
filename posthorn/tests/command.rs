//! The command as a person or a program meets it: what it says of a file that it can't use, what it reports,
//! and how it ends when it is told to.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

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
    refusal_with(path, &[])
}

/// What it says of a file that it refuses, of the trace or of those that options name.
fn refusal_with(path: &Path, options: &[&str]) -> String {
    let output = posthorn()
        .arg("replay")
        .arg(path)
        .args(options)
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
fn a_file_that_cannot_be_used_is_named() {
    let missing = Path::new("no/such/trace.csv.zst");
    let said = refusal(missing);
    assert!(said.contains("no/such/trace.csv.zst"));
    assert_eq!(said.matches("os error 2").count(), 1, "{said}");
    let plain = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plain.csv.zst");
    fs::write(&plain, "# ranks: 2\n").expect("written");
    let wanted = format!("{}:1: not compressed by zstd", plain.display());
    assert!(refusal(&plain).contains(&wanted), "{}", refusal(&plain));
    let path = toy("unwritten.csv.zst", 1);
    for option in ["--pcap", "--waves"] {
        let said = refusal_with(&path, &[option, "no/such/file"]);
        assert!(said.contains("writing no/such/file: "), "{said}");
    }
    let said = refusal_with(&path, &["--firmware", plain.to_str().expect("text")]);
    assert!(said.contains("plain.csv.zst: no ELF file"), "{said}");
}

/// A trace of two ranks that send each other `messages` messages, each waiting for one before the next.
fn toy(name: &str, messages: usize) -> PathBuf {
    let mut text = String::from("# app: toy\n# ranks: 2\n");
    for rank in 0..2 {
        for n in 0..messages {
            let (t, receive, send, peer) = (10 * n, 2 * n, 2 * n + 1, 1 - rank);
            text += &format!("{rank},{t},TR,{receive},{peer},{n:x},0,64,0\n");
            text += &format!("{rank},{t},TSI,{send},{peer},{n:x},0,{},0\n", 1 + n % 64);
            text += &format!("{rank},{t},C,{receive},{peer},{n:x},0,{},0\n", 1 + n % 64);
        }
    }
    trace(name, &text)
}

/// What the command prints as JSON, if it ends well.
fn json(command: &mut Command) -> Value {
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    serde_json::from_slice(&output.stdout).expect("one JSON value and nothing else")
}

#[test]
fn a_whole_replay_ends_with_its_summary() {
    let path = toy("whole.csv.zst", 40);
    let output = posthorn()
        .args(["replay", "--config", "tiny"])
        .arg(&path)
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.starts_with("toy on 2 tiny cards, seed 1\n"), "{text}");
    assert!(text.contains("80, every byte checked"), "{text}");
    assert!(text.contains("matching               legal"), "{text}");
}

#[test]
fn matching_is_measured_on_the_card_and_on_the_host() {
    let path = toy("matched.csv.zst", 40);
    let mut command = posthorn();
    let summary = json(
        command
            .args(["replay", "--json", "--config", "tiny"])
            .arg(&path),
    );
    let cycles = |operation: &str| {
        let cycles = &summary["match_cycles"][operation];
        let number = |name: &str| cycles[name].as_f64().expect("a number");
        assert!(number("mean") >= 5.0 && number("mean") <= number("max"));
        // Twelve, and one more for each of the sixteen rows of messages that there are.
        assert!(number("max") <= 28.0, "{cycles}");
        number("count")
    };
    let (arrivals, posts) = (cycles("arrive"), cycles("post"));
    assert_eq!(arrivals, 80.0);
    assert!(posts >= 80.0);
    assert_eq!(cycles("both"), arrivals + posts);
    assert!(summary["match_cycles"]["host_ns"].as_f64() > Some(0.0));
    for (list, operations) in [("posted_depth", arrivals), ("unexpected_depth", posts)] {
        let bars = summary[list]["histogram"].as_array().expect("bars");
        let counted: f64 = bars.iter().filter_map(|bar| bar["count"].as_f64()).sum();
        assert_eq!(counted, operations, "{list}");
        let last = bars.last().expect("at least one");
        let deepest = summary[list]["max"].as_u64();
        assert!(last["from"].as_u64() <= deepest && deepest <= last["to"].as_u64());
    }
}

#[test]
fn back_pressure_comes_from_the_seed() {
    let path = toy("pressed.csv.zst", 40);
    let replay = |seed: &str, pressure: &[&str]| {
        let mut command = posthorn();
        command.args(["replay", "--json", "--config", "tiny", "--seed", seed]);
        let summary = json(command.args(pressure).arg(&path));
        assert_eq!(summary["complete"], true);
        assert_eq!(summary["matching"], "legal");
        assert_eq!(summary["messages"], 80);
        (
            summary["back_pressure"].as_f64(),
            summary["cycles"].as_u64(),
        )
    };
    let (share, first) = replay("1", &["--back-pressure=60"]);
    assert_eq!(share, Some(0.6));
    assert_eq!(replay("1", &["--back-pressure=60"]).1, first);
    assert_ne!(replay("2", &["--back-pressure=60"]).1, first);
    let (share, free) = replay("1", &[]);
    assert_eq!(share, Some(0.0));
    assert!(free < first, "{free:?} cycles without, {first:?} with");
    assert_eq!(replay("1", &["--back-pressure"]).0, Some(0.33));
    for wrong in ["--back-pressure=96", "--threads=0"] {
        let refused = posthorn().args(["replay", wrong]).arg(&path).output();
        assert_eq!(refused.expect("it runs").status.code(), Some(2), "{wrong}");
    }
}

/// What the command prints, if it ends well.
fn text(arguments: &[&str]) -> String {
    let output = posthorn().args(arguments).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_code_is_explained_by_its_name_and_by_its_number() {
    let by_name = text(&["explain", "not-ready"]);
    assert!(
        by_name.starts_with("NotReady, 17 (0x11): Status (status of a completion)\n  means   "),
        "{by_name}"
    );
    for part in [
        "\n  cause   A send with `FLAG_READY`",
        "\n  help    Send it again ",
    ] {
        assert!(by_name.contains(part), "{by_name:?} lacks {part:?}");
    }
    // Three sets have this number: a completion's status, the cause of an event, and the type of a frame.
    let by_number = text(&["explain", "0x11"]);
    let others = by_number.strip_prefix(&by_name).expect("it begins so");
    for other in [
        "\nPeerRefused, 17 (0x11): Cause (cause of an event",
        "\nPut, 17 (0x11): FrameType (type of a frame",
    ] {
        assert!(others.contains(other), "{others:?} lacks {other:?}");
    }
    // Two sets have this name: a completion's status, and the event that comes with it.
    let both = json(posthorn().args(["explain", "--json", "LINKERROR"]));
    let sets: Vec<_> = both
        .as_array()
        .expect("a list")
        .iter()
        .map(|found| found["set"].as_str())
        .collect();
    assert_eq!(sets, [Some("Status"), Some("Cause")]);
    let refused = posthorn()
        .args(["explain", "Linkerorr"])
        .output()
        .expect("it runs");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("`posthorn explain` lists them"));
}

#[test]
fn every_code_that_is_listed_is_explained() {
    let listed = text(&["explain"]);
    let all = json(posthorn().args(["explain", "--json"]));
    let mut codes = 0;
    for line in listed.lines() {
        let (set, names) = line.split_once(": ").expect("a set and its codes");
        for name in names.split(' ') {
            let found = json(posthorn().args(["explain", "--json", name]));
            let found = found.as_array().expect("a list").iter();
            let one: Vec<_> = found
                .filter(|code| code["set"] == set && code["name"] == name)
                .collect();
            assert_eq!(one.len(), 1, "{set} {name}");
            for words in ["means", "cause", "help"] {
                let words = one[0][words].as_str().expect("words");
                assert!(
                    !words.is_empty() && !words.contains("[`"),
                    "{set} {name}: {words}"
                );
            }
            codes += 1;
        }
        assert_eq!(all[set], json!(names.split(' ').collect::<Vec<_>>()));
    }
    let sets = abi::explain::SETS.iter();
    assert_eq!(codes, sets.map(|set| set.codes.len()).sum::<usize>());
}

#[test]
fn what_nobody_reads_to_its_end_is_no_error_to_speak_of() {
    let mut child = posthorn()
        .arg("info")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn the_card_is_described_with_its_versions_sizes_and_limits() {
    let info = json(posthorn().args(["info", "--json"]));
    assert_eq!(info["versions"]["abi"], abi::ABI_VERSION);
    assert_eq!(
        info["versions"]["firmware"].as_str().map(str::len),
        Some(16)
    );
    let tiny = &info["configurations"]["tiny"];
    assert_eq!(
        (&tiny["endpoints"], &tiny["posted_each"]),
        (&json!(2), &json!(4))
    );
    let gather = &info["capabilities"]["CAPABILITY_GATHER"];
    assert_eq!(gather["value"], abi::capability::CAPABILITY_GATHER);
    assert_eq!(info["limits"]["EAGER_MAX"]["value"], 1024);
    let text = text(&["info"]);
    for part in [
        "configurations",
        "ecp5",
        "  pairs ",
        "CAPABILITY_GATHER",
        "EAGER_MAX",
        "COMMAND_TIMEOUT",
        "times, in cycles",
    ] {
        assert!(text.contains(part), "{text} lacks {part}");
    }
    let refused = posthorn()
        .args(["info", "--firmware", "Cargo.toml"])
        .output();
    assert_eq!(refused.expect("it runs").status.code(), Some(1));
}

#[test]
fn the_times_of_the_book_are_those_that_library_and_firmware_wait() {
    let library = host_driver::DeviceOptions::default();
    assert_eq!(library.ready_timeout, u64::from(abi::times::READY_TIMEOUT));
    assert_eq!(
        library.command_timeout,
        u64::from(abi::times::COMMAND_TIMEOUT)
    );
    let firmware = firmware_core::ACKNOWLEDGE_TIMEOUT;
    assert_eq!(firmware, abi::times::ACKNOWLEDGE_TIMEOUT);
}

#[test]
fn every_counter_of_a_replay_is_shown_by_card_and_pair() {
    let path = toy("counted.csv.zst", 40);
    let mut command = posthorn();
    let stats = json(
        command
            .args(["stats", "--json", "--config", "tiny"])
            .arg(&path),
    );
    assert_eq!(stats["complete"], true);
    let cards = stats["cards"].as_array().expect("cards");
    assert_eq!(cards.len(), 2);
    for (number, card) in cards.iter().enumerate() {
        let counter = |name: &str| card["counters"][name].as_u64().expect("a counter");
        for name in abi::control::Counter::ALL {
            counter(name.name());
        }
        assert_eq!(counter("Expected") + counter("Unexpected"), 40);
        // Closing tells the peer, after the card was asked.
        assert!(counter("FramesSent") >= 40);
        assert!(card["simulated"]["frames_sent"].as_u64() >= Some(counter("FramesSent")));
        assert!(counter("Completions") >= 80);
        for name in [
            "CrcErrors",
            "PairErrors",
            "Gaps",
            "Timeouts",
            "InvalidRequests",
        ] {
            assert_eq!(counter(name), 0, "{name}");
        }
        let pairs = card["pairs"].as_array().expect("pairs");
        assert_eq!(pairs.len(), 1);
        let (pair, other) = (&pairs[0], &cards[1 - number]["pairs"][0]);
        assert_eq!(
            (&pair["peer"], &pair["state"]),
            (&json!(1 - number), &json!("Connected"))
        );
        assert_eq!(
            (&pair["sent"], &pair["unacknowledged"]),
            (&json!(40), &json!(0))
        );
        let credits = u64::from(abi::limits::DEFAULT_CREDITS);
        assert_eq!(pair["available"], credits, "every credit is back");
        for (mine, theirs) in [("sent", "received"), ("sent_bytes", "received_bytes")] {
            assert_eq!(pair[mine], other[theirs]);
        }
    }
    let frames = |name: &str| {
        cards
            .iter()
            .map(|card| card["simulated"][name].as_u64().expect("frames"))
            .sum::<u64>()
    };
    assert_eq!(stats["network"]["frames"], frames("frames_sent"));
    let path = path.to_str().expect("text");
    let text = text(&["stats", "--config", "tiny", path]);
    assert!(text.starts_with("toy on 2 tiny cards, seed 1\n"), "{text}");
    assert_eq!(text.matches("\n  FramesReceived ").count(), 2, "{text}");
    assert!(
        text.contains("\n  pair with card 1       Connected; sent 40 of "),
        "{text}"
    );
}

/// What the command says of arguments that it refuses before it does anything.
fn usage(arguments: &[&str]) -> String {
    let output = posthorn().args(arguments).output().expect("it runs");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty());
    said
}

#[test]
fn wrong_arguments_are_refused_with_the_usage() {
    let path = toy("refused.csv.zst", 1);
    let path = path.to_str().expect("text");
    for (command, known) in [
        (["replay", path], hdl::config::ALL),
        (["bench", "latency"], hdl::config::ENGINES),
    ] {
        let said = usage(&[command[0], command[1], "--config", "nope"]);
        let known: Vec<&str> = known.iter().map(|config| config.name).collect();
        let known = format!("[possible values: {}]", known.join(", "));
        assert!(said.contains("'nope'"), "{said}");
        assert!(said.contains(&known), "{said:?} lacks {known:?}");
    }
    let said = usage(&["bench", "latency", "--config", "wide"]);
    assert!(said.contains("only its matching engine"), "{said}");
    let waves =
        |rest: &[&str]| usage(&[&["replay", path, "--waves", "no/such.vcd"], rest].concat());
    let said = waves(&["--from", "9", "--to", "9"]);
    assert!(said.contains("--to 9 is not after --from 9"), "{said}");
    let said = waves(&["--waves-card", "2"]);
    assert!(said.contains("there are 2 cards"), "{said}");
    let said = usage(&["bench", "latency", "--config", "wide"]);
    assert!(said.contains("only its matching engine"), "{said}");
    let said = usage(&["bench", "latency", "--plot", "no/such.svg"]);
    assert!(said.contains("only `match` is drawn"), "{said}");
    for suite in ["latency", "replay"] {
        let said = usage(&["bench", suite, "--short"]);
        assert!(said.contains("have one length"), "{said}");
    }
    let said = usage(&["bench", "latency", "--credits", "16"]);
    assert!(said.contains("only `message` has points"), "{said}");
}

#[test]
fn a_replay_that_an_event_ends_says_which_and_fails() {
    // Rank 1 takes messages from whoever sends: no receive fails because the pair to rank 0 does.
    let mut text = String::from("# app: toy\n# ranks: 2\n");
    for n in 0..60 {
        text += &format!("0,{n},TSI,{n},1,7,0,8,0\n");
    }
    for n in 0..60 {
        text += &format!("1,{n},TR,{n},-1,7,0,8,0\n1,{n},C,{n},0,7,0,8,0\n");
    }
    let path = trace("lost.csv.zst", &text);
    let replay = |plan: &str| {
        let faults = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults.toml");
        fs::write(&faults, plan).expect("a file");
        let mut command = posthorn();
        command.args(["replay", "--json", "--config", "tiny", "--faults"]);
        command.arg(faults).arg(&path).output().expect("it runs")
    };
    let sound = replay("");
    assert_eq!(sound.status.code(), Some(0));
    // A wire that loses, changes, repeats and delays frames is noticed by nobody above the link.
    let rough = replay(
        "[[fault]]\nlose = 0.1\ncorrupt = 0.05\nrepeat = 0.05\nlate = 0.05\nlate_by = 500\n",
    );
    let said = String::from_utf8(rough.stderr).expect("text");
    assert_eq!(rough.status.code(), Some(0), "{said}");
    let summary: Value = serde_json::from_slice(&rough.stdout).expect("one JSON value");
    assert_eq!(summary["matching"], "legal");
    for fault in ["lost", "corrupted", "repeated", "late"] {
        assert!(summary["faults"][fault].as_u64() > Some(0), "{summary}");
    }
    // Nothing that rank 1 says is heard.
    let plan = "[[fault]]\nsource = 1\nbegin = 20000\nlose = 1.0\n";
    let cut = replay(plan);
    let said = String::from_utf8(cut.stderr).expect("text");
    assert_eq!(cut.status.code(), Some(1), "{said}");
    assert!(
        said.contains("with --seed 1 and --faults of:\n[[fault]]"),
        "{said}"
    );
    let failed = said
        .lines()
        .find(|line| line.starts_with("failed: rank 1: line "));
    let failed = failed.unwrap_or_else(|| panic!("no failure of rank 1 in {said:?}"));
    assert!(failed.ends_with("the card raised LinkError"), "{failed}");
    let summary: Value = serde_json::from_slice(&cut.stdout).expect("one JSON value");
    assert_eq!(summary["complete"], false);
    assert_eq!(summary["matching"], "not judged");
    for (plan, reason) in [
        ("[[fault]]\nlose = 1.5\n", "fault 1: lose is 1.5"),
        ("[[fault]]\nsource = 2\n", "there are 2 cards"),
        ("[[fault]]\nloose = 1\n", "unknown field `loose`"),
    ] {
        let refused = replay(plan);
        let said = String::from_utf8(refused.stderr).expect("text");
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn what_matching_is_measured_with_is_looked_for_before_anything_is_measured() {
    for (option, file) in [("--firmware", "no/such.elf"), ("--plot", "no/such.svg")] {
        let mut command = posthorn();
        let output = command.args(["bench", "match", "--config", "tiny", option, file]);
        let output = output.output().expect("it runs");
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{said}");
        let mut lines = said.lines();
        let first = lines.next().expect("a line");
        assert!(
            first.starts_with("error: ") && first.contains(file),
            "{said}"
        );
        assert_eq!(lines.next(), None);
    }
}

/// What every report of `posthorn bench --json` has. Returns its points.
fn points(report: &Value, suite: &str, config: &str) -> Vec<Value> {
    let object = report.as_object().expect("an object");
    let keys: Vec<&str> = object.keys().map(String::as_str).collect();
    assert_eq!(keys, ["commit", "config", "points", "seed", "suite"]);
    assert_eq!(report["suite"], suite);
    assert_eq!(report["config"], config);
    assert_eq!(report["seed"], 5);
    assert!(
        report["commit"]
            .as_str()
            .is_some_and(|text| !text.is_empty())
    );
    let points = report["points"].as_array().expect("a list").clone();
    assert!(!points.is_empty());
    for point in &points {
        assert!(point["name"].is_string(), "{point}");
        assert!(point["params"].is_object(), "{point}");
        assert!(point["value"].as_f64().is_some_and(|v| v >= 0.0), "{point}");
        let unit = point["unit"].as_str();
        let units = [
            "cycles",
            "cycles/s",
            "frames",
            "messages",
            "ns",
            "ops/cycle",
            "ratio",
            "receives",
            "share",
        ];
        assert!(unit.is_some_and(|unit| units.contains(&unit)), "{point}");
        // What is beside them is a figure as well.
        for (key, value) in point.as_object().expect("an object") {
            let known = ["name", "params", "value", "unit"].contains(&key.as_str());
            assert!(known || value.is_number(), "{point}");
        }
    }
    points
}

fn bench(arguments: &[&str]) -> Command {
    bench_of("tiny", arguments)
}

fn bench_of(config: &str, arguments: &[&str]) -> Command {
    let mut command = posthorn();
    command.arg("bench").args(arguments);
    command.args(["--json", "--config", config, "--seed", "5"]);
    command
}

#[test]
fn the_speed_of_the_simulation_is_reported_in_the_common_shape() {
    let report = json(&mut bench(&["sim", "--short"]));
    let points = points(&report, "sim", "tiny");
    let speed = points.iter().find(|point| point["name"] == "speed");
    let speed = speed.expect("its speed");
    assert_eq!(speed["params"], json!({"config": "tiny", "cards": 2}));
    assert_eq!(speed["unit"], "cycles/s");
    // Only a release build measures rust-hdl's simulator.
    let ratio = points.iter().find(|point| point["name"] == "speedup");
    assert_eq!(ratio.is_some(), !cfg!(debug_assertions));
}

#[test]
fn matching_is_as_fast_as_promised_and_drawn() {
    let file = std::env::temp_dir().join(format!("posthorn-match-{}.svg", std::process::id()));
    let mut command = bench(&["match", "--short"]);
    let report = json(command.arg("--plot").arg(&file));
    let drawing = std::fs::read_to_string(&file).expect("the drawing");
    std::fs::remove_file(&file).expect("it is there");
    assert!(drawing.starts_with("<svg"));
    let points = points(&report, "match", "tiny");
    for name in ["firmware_list", "host_best", "overflow"] {
        assert!(points.iter().any(|point| point["name"] == name), "{name}");
    }
    for classes in 1..=4 {
        for name in ["arrive", "sustained"] {
            let wanted =
                |point: &&Value| point["name"] == name && point["params"]["classes"] == classes;
            let depths = points.iter().filter(wanted).count();
            assert!(depths >= 2, "{name} with {classes} classes: {depths}");
        }
    }
    // So small a table has few rows: look-ups of two classes, or that take three cycles because the associative side answers too,
    // wait for those that share one.
    as_fast_as_promised(&points, [16.0, 8.0], 0.5, 0.4);
}

#[test]
fn matching_is_as_fast_as_promised_on_a_board() {
    let report = json(&mut bench_of("ecp5", &["match", "--short"]));
    as_fast_as_promised(&points(&report, "match", "ecp5"), [512.0, 4.0], 0.6, 0.5);
}

/// Holds the engine's points to what is promised. `all_rows` are what all pairs have for messages, `in_row` the places of one.
/// `single`: operations per cycle with one class, two in three but for look-ups that share a row; the promise is 0.5. `busy`: with two
/// classes, or with receives on both sides.
fn as_fast_as_promised(points: &[Value], [all_rows, in_row]: [f64; 2], single: f64, busy: f64) {
    for point in points {
        let params = &point["params"];
        let entries = || point["entries"].as_f64().expect("a depth");
        let wildcard = params["structure"] == "unexpected"
            && (params["kind"] == "any_source" || params["kind"] == "any");
        let rows = || match (wildcard, params["rows"] == "sparse") {
            (false, _) => 0.0,
            (true, true) => entries().min(all_rows),
            (true, false) => (entries() / in_row).ceil(),
        };
        match point["name"].as_str().expect("a name") {
            "arrive" | "post" | "cancel" | "probe" => {
                let max = point["max"].as_f64().expect("the longest");
                // The eight messages of a pair stand in one row, or in more if a row has fewer places.
                let more = match params["structure"] == "unexpected" {
                    true => 8.0 / in_row - 1.0,
                    false => 0.0,
                };
                assert!(max <= 12.0 + more + rows(), "{point}");
            }
            "sustained" => {
                let classes = params["classes"].as_u64().unwrap_or(1);
                let promise = match (params["kind"].as_str(), params["keys"].as_str()) {
                    // Two operations a message, one after the other.
                    _ if params["structure"] == "unexpected" => 2.0 / (24.0 + rows()),
                    (Some("mask"), _) => 0.99,
                    // An arrival that may append, and a receive that waits until it has found one, in turn.
                    (_, Some("append")) => 0.15,
                    // What is under way may well be the only key.
                    (_, Some("one")) => 0.25,
                    _ if entries() < 2.0 => 0.25,
                    // Two operations take a cycle more than there are classes; beyond two that is no promise, only what there is.
                    _ if classes > 2 => 1.2 / (1 + classes) as f64,
                    _ if classes == 2 || params["keys"] == "beside_odd" => busy,
                    _ => single,
                };
                let rate = point["value"].as_f64().expect("a rate");
                assert!(rate >= promise, "{point}");
            }
            _ => {}
        }
    }
}

#[test]
fn the_stages_of_a_message_are_reported_and_add_up() {
    let report = json(&mut bench(&["latency"]));
    let points = points(&report, "latency", "tiny");
    assert!(points.iter().all(|point| point["name"] == "one_way"));
    assert!(points.iter().all(|point| point["unit"] == "cycles"));
    for bytes in [0, 8, 24, 64, 256, 1024] {
        let stage = |name: &str| {
            let params = json!({"bytes": bytes, "stage": name});
            let mut named = points.iter().filter(|point| point["params"] == params);
            let value = named.next().and_then(|point| point["value"].as_f64());
            assert!(named.next().is_none(), "{name} of {bytes} bytes twice");
            value.unwrap_or_else(|| panic!("no {name} of {bytes} bytes"))
        };
        let stages = ["fetch", "payload", "wire", "match", "write", "complete"];
        let sum: f64 = stages.into_iter().map(stage).sum();
        let total = stage("total");
        assert!((sum - total).abs() < 1e-6, "{bytes} bytes: {sum}, {total}");
        assert!(stage("card") < total, "memory and wire take their time");
    }
}

#[test]
fn a_steady_stream_is_reported_beside_the_limit_of_its_port() {
    let report = json(&mut bench(&["message", "--short"]));
    let points = points(&report, "message", "tiny");
    let value = |name: &str, pattern: &str, receive: &str| {
        let params = json!({"pattern": pattern, "pairs": if pattern == "stream" { 1 } else { 4 }, "bytes": 8,
            "receive": receive, "credits": 8, "memory_latency": 32});
        let mut named = points
            .iter()
            .filter(|point| point["name"] == name && point["params"] == params);
        let value = named.next().and_then(|point| point["value"].as_f64());
        value.unwrap_or_else(|| panic!("no {name} of {params}"))
    };
    for pattern in ["stream", "fan_in", "fan_out", "both"] {
        let cycles = value("cycles_per_message", pattern, "posted");
        let ratio = value("ratio_to_framing_limit", pattern, "posted");
        // 84 bytes are eleven beats, and three are around them.
        assert!((cycles / 14.0 - ratio).abs() < 1e-9, "{cycles} {ratio}");
        // A host looks once in 16 cycles, so that a figure may be a little below the truth.
        assert!(ratio >= 0.98, "{pattern} is faster than its port: {ratio}");
    }
    // Cycles are the same on every machine, so a slower card shows. These are a tenth above what was measured: a change that needs more says why.
    for (pattern, posted, unexpected) in [
        ("stream", 55.0, 97.0),
        ("fan_in", 15.5, 31.0),
        ("fan_out", 17.3, 26.0),
        // By seed 17 to 23 on so small a card.
        ("both", 24.0, 79.0),
    ] {
        for (receive, most) in [("posted", posted), ("unexpected", unexpected)] {
            let cycles = value("cycles_per_message", pattern, receive);
            assert!(cycles <= most, "{pattern} {receive}: {cycles}, not {most}");
        }
    }
    for point in points.iter().filter(|point| point["unit"] == "cycles") {
        let share = point["unexpected"].as_f64().expect("a share");
        match point["params"]["receive"] == "posted" {
            true => assert!(share <= 0.2, "{point}"),
            false => assert!(share >= 0.9, "{point}"),
        }
    }
}

#[test]
fn a_point_that_cannot_be_measured_takes_away_no_other_and_fails_the_command() {
    // Five pairs of sixteen credits need 80 places for messages, and the card has 64.
    let mut command = bench(&["message", "--short", "--pattern", "stream", "--bytes", "8"]);
    let output = command.args(["--pairs", "5", "--credits", "16"]).output();
    let output = output.expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report all the same");
    let unmeasured = report["unmeasured"].as_array().expect("a list");
    let receives: Vec<&Value> = unmeasured
        .iter()
        .map(|one| &one["params"]["receive"])
        .collect();
    assert_eq!(receives, ["posted", "unexpected"]);
    for one in unmeasured {
        let reason = one["reason"].as_str();
        assert!(reason.is_some_and(|reason| !reason.is_empty()), "{one}");
    }
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("2 points couldn't be measured"), "{said}");
}

#[test]
fn long_puts_and_gets_fill_the_link_over_one_pair_and_over_four() {
    let report = json(&mut bench(&["bandwidth", "--short"]));
    let points = points(&report, "bandwidth", "tiny");
    for (op, pairs) in [("put", 1), ("put", 4), ("get", 1), ("get", 4)] {
        let params = json!({"op": op, "pattern": "stream", "pairs": pairs, "bytes": 16384, "pair_sends": 16, "memory_latency": 32});
        let value = |name: &str| {
            let mut named = points
                .iter()
                .filter(|point| point["name"] == name && point["params"] == params);
            let value = named.next().and_then(|point| point["value"].as_f64());
            value.unwrap_or_else(|| panic!("no {name} of {params}"))
        };
        let (share, ratio) = (value("share_of_link"), value("ratio_to_limit"));
        // 128 beats of payload in a frame of 138, and three around it.
        assert!((share / ratio - 128.0 / 141.0).abs() < 1e-9);
        assert!(
            (0.95..=1.0).contains(&ratio),
            "{op}, {pairs} pairs: {ratio} of the limit"
        );
        // Neither can be faster than its frames.
        assert!(value("alone") >= 16.0 * 141.0);
        if op == "get" {
            assert_eq!(value("asked_again"), 0.0, "{pairs} pairs");
        }
    }
}

#[test]
fn what_losses_cost_is_reported_of_messages_and_of_long_puts() {
    let report = json(&mut bench(&["link", "--short"]));
    let points = points(&report, "link", "tiny");
    for (op, bytes) in [("eager", 1024), ("put", 16384)] {
        let goodput = |loss: f64| {
            let params = json!({"loss": loss, "op": op, "bytes": bytes});
            let mut named = points
                .iter()
                .filter(|point| point["name"] == "goodput" && point["params"] == params);
            let value = named.next().and_then(|point| point["value"].as_f64());
            assert!(named.next().is_none(), "{params} twice");
            value.unwrap_or_else(|| panic!("no goodput of {params}"))
        };
        assert_eq!(goodput(0.0), 1.0);
        // One frame in a thousand is sent again with what is behind it; one in twenty costs much, and not all.
        assert!(
            (0.9..1.02).contains(&goodput(0.001)),
            "{op}: {}",
            goodput(0.001)
        );
        assert!(
            (0.05..0.9).contains(&goodput(0.05)),
            "{op}: {}",
            goodput(0.05)
        );
    }
    let latency = |loss: f64, percentile: f64| {
        let params = json!({"loss": loss, "percentile": percentile});
        let mut named = points
            .iter()
            .filter(|point| point["name"] == "latency" && point["params"] == params);
        named.next().and_then(|point| point["value"].as_f64())
    };
    assert!(latency(0.0, 50.0) > Some(0.0));
    assert!(latency(0.05, 100.0) > latency(0.0, 100.0));
}

#[test]
fn a_failure_and_a_drain_are_measured_in_the_common_shape() {
    let report = json(&mut bench(&["failure", "--short"]));
    let points = points(&report, "failure", "tiny");
    let names: Vec<_> = points.iter().filter_map(|p| p["name"].as_str()).collect();
    let (cycles, bystander) = names.split_at(3);
    assert_eq!(cycles, ["detect", "fanout", "drain"]);
    assert_eq!(bystander, ["bystander"; 4]);
    assert!(points[..3].iter().all(|point| point["unit"] == "cycles"));
    // A tiny card keeps so many receives for one of its two endpoints.
    let params = json!({"cause": "Declared", "outstanding": 60});
    assert!(points[..2].iter().all(|point| point["params"] == params));
    let cycles = |k: usize| points[k]["value"].as_f64().expect("a number");
    let command = abi::times::COMMAND_TIMEOUT.into();
    assert!(cycles(0) > 0.0 && cycles(0) < command, "{}", points[0]);
    // Each completion is written by itself.
    assert!(cycles(1) >= 59.0, "{}", points[1]);
    assert_eq!(points[2]["params"], json!({"cards": 2, "load": "busy"}));
    // Eight messages, and the firmwares' questions and answers.
    let frames = points[2]["frames"].as_f64();
    assert!(cycles(2) > 0.0 && frames > Some(8.0), "{}", points[2]);
    bad_peers_cost_the_others_nothing(&points[3..]);
}

fn bad_peers_cost_the_others_nothing(points: &[Value]) {
    let bad = [
        ("lossy", "calm"),
        ("flooding", "sparse"),
        ("forging", "idle"),
        ("unpowered", "idle"),
    ];
    for (point, (bad, base)) in points.iter().zip(bad) {
        let params = json!({"bad": bad, "base": base, "pattern": "fan_in"});
        assert_eq!(point["params"], params);
        assert_eq!(point["unit"], "ratio");
        let value = |name: &str| point[name].as_f64().expect("a number");
        // Of all clean peers, and of the one that fares worst.
        let (ratio, worst) = (value("value"), value("worst"));
        assert!((0.9..1.06).contains(&ratio) && worst < 1.1, "{point}");
        // In the middle of the others' streams, and not beside them.
        let most = if base == "sparse" { 200.0 } else { 20.0 };
        assert!(value("base_cycles_per_message") < most, "{point}");
        // The pair was tried until its last time-out was over.
        assert!(bad != "unpowered" || value("cycles") > 100_000.0, "{point}");
    }
}

#[test]
fn what_it_takes_to_revoke_a_sender_is_reported_and_what_the_others_notice() {
    let report = json(&mut bench(&["protect", "--short"]));
    let points = points(&report, "protect", "tiny");
    let figure = |name: &str, params: Value, of: &str| {
        let mut named = points
            .iter()
            .filter(|point| point["name"] == name && point["params"] == params);
        let value = named.next().and_then(|point| point[of].as_f64());
        value.unwrap_or_else(|| panic!("no {name} of {params}"))
    };
    let value = |name, params| figure(name, params, "value");
    let revoke = value(
        "revoke",
        json!({"what": "peer", "in_flight": 80, "regions": 1}),
    );
    let fence = value("fence", json!({"cover": "all", "in_flight": 80}));
    let command = 1.0..f64::from(abi::times::COMMAND_TIMEOUT);
    assert!(
        command.contains(&revoke) && command.contains(&fence),
        "{revoke} and {fence} cycles"
    );
    let ratio = value("bystander", json!({"during": "revoke"}));
    assert!((0.98..1.02).contains(&ratio), "the others keep {ratio}");
    // A look-up takes as long in tables that are nearly full, to a few cycles of some 500.
    let lookup = |regions, senders, of| {
        let params = json!({"regions": regions, "senders": senders});
        figure("lookup", params, of)
    };
    // Two senders end a little more in a cycle than one.
    for (of, within) in [("value", 0.01), ("accesses_per_cycle", 0.02)] {
        let (few, more) = (lookup(1, 1, of), lookup(24, 2, of));
        let ratio = more / few;
        assert!((ratio - 1.0).abs() < within, "{of}: {few} and {more}");
    }
}

#[test]
fn what_replays_took_is_reported_in_the_common_shape() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("traces");
    fs::create_dir_all(&folder).expect("a place for traces");
    fs::copy(toy("copied.csv.zst", 20), folder.join("toy.csv.zst")).expect("copied");
    let report = json(bench(&["replay"]).arg("--traces").arg(&folder));
    let points = points(&report, "replay", "tiny");
    let names: Vec<_> = points.iter().filter_map(|p| p["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            "messages",
            "cycles",
            "cycles_per_message",
            "unexpected",
            "speed"
        ]
    );
    assert!(
        points
            .iter()
            .all(|p| p["params"] == json!({"trace": "toy.csv.zst", "ranks": 2}))
    );
    assert_eq!(points[0]["value"], 40.0);
}

/// Messages of each rank of a replay that takes minutes.
#[cfg(unix)]
const MANY: usize = 16_000;

/// Interrupts a replay that has told that messages have been received, and how many then.
#[cfg(unix)]
fn interrupted(name: &str, arguments: &[&str]) -> (u64, std::process::Output) {
    let path = toy(name, MANY);
    let mut child = posthorn()
        .args(["replay", "--config", "tiny"])
        .args(arguments)
        .arg(path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut said = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("text");
    // "toy: 27 of 32000 messages"
    let all = format!(" of {} messages", 2 * MANY);
    let told = line.trim_end().strip_suffix(&all);
    let told = told.and_then(|told| told.rsplit_once(": ")?.1.parse().ok());
    let told = told.unwrap_or_else(|| panic!("no progress in {line:?}"));
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(sent.expect("kill is there").success());
    let mut rest = Vec::new();
    said.read_to_end(&mut rest).expect("its end");
    let mut output = child.wait_with_output().expect("it ends");
    output.stderr = rest;
    let rest = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{rest}");
    assert!(!rest.contains("failed"), "{rest}");
    (told, output)
}

#[test]
#[cfg(unix)]
fn an_interrupt_ends_a_replay_with_the_summary_of_what_was_done() {
    let (told, output) = interrupted("interrupted.csv.zst", &["--json"]);
    let summary: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    assert_eq!(summary["complete"], false);
    assert_eq!(summary["matching"], "not judged");
    let messages = summary["messages"].as_u64().expect("a number");
    assert!(told > 0 && messages >= told, "{told} told, {summary}");
    // The whole takes minutes, and it was told to end when it had just begun.
    assert!(messages < MANY as u64, "{summary}");
    assert!(summary["cycles"].as_u64() > Some(0), "{summary}");
    let done: u64 = summary["completions"]
        .as_object()
        .expect("by status")
        .values()
        .filter_map(Value::as_u64)
        .sum();
    assert!(done >= messages, "each of them has completed: {summary}");
}

#[test]
#[cfg(unix)]
fn an_interrupted_summary_for_people_says_that_it_is_partial() {
    let (told, output) = interrupted("partial.csv.zst", &[]);
    let text = String::from_utf8(output.stdout).expect("text");
    let mut lines = text.lines();
    let head = lines.next().expect("a first line");
    assert!(
        head.ends_with(" on 2 tiny cards, seed 1  PARTIAL"),
        "{head}"
    );
    let messages = lines.find_map(|line| line.trim().strip_prefix("messages"));
    let messages = messages.and_then(|rest| rest.trim().split_once(','));
    let messages: u64 = messages.expect("a number").0.parse().expect("a number");
    assert!(messages >= told, "{told} told, {text}");
    assert!(text.contains("not judged"), "{text}");
}

#[test]
fn a_replay_in_which_a_process_is_killed_goes_on_and_says_which_operations_ended_how() {
    // Each waits for the other, until one is no more.
    let mut text = String::from("# app: toy\n# ranks: 2\n");
    for (rank, peer, wants, gives) in [(0, 1, 9, 7), (1, 0, 7, 9)] {
        text += &format!("{rank},1,TR,0,{peer},{wants},0,8,0\n{rank},2,C,0,{peer},{wants},0,8,0\n");
        text += &format!("{rank},3,TS,1,{peer},{gives},0,8,0\n{rank},4,C,1,{peer},{gives},0,8,0\n");
    }
    let path = trace("killed.csv.zst", &text);
    let plan = Path::new(env!("CARGO_TARGET_TMPDIR")).join("killed.toml");
    fs::write(&plan, "[[host]]\ncard = 0\nkill = 300000\n").expect("a file");
    let mut command = posthorn();
    command.args(["replay", "--json", "--config", "tiny", "--faults"]);
    let replayed = command.arg(plan).arg(&path).output().expect("it runs");
    let said = String::from_utf8(replayed.stderr).expect("text");
    assert_eq!(replayed.status.code(), Some(0), "{said}");
    let summary: Value = serde_json::from_slice(&replayed.stdout).expect("one JSON value");
    let killed = serde_json::json!([{"rank": 0, "what": "process", "cycle": 300_000}]);
    assert_eq!(summary["killed"], killed);
    let ended = |line: u64, operation: &str| serde_json::json!({"rank": 1, "line": line, "operation": operation, "status": "PeerFailed"});
    let told = serde_json::json!([ended(8, "receive"), ended(10, "send")]);
    assert_eq!(summary["ended"], told);
    assert_eq!(summary["complete"], true);
    assert_eq!(summary["matching"], "not judged");
}

#[test]
fn a_soak_says_what_it_has_covered() {
    let mut command = posthorn();
    let soak = command.args(["soak", "--seconds", "0", "--seed", "6"]);
    let soaked = soak.output().expect("it runs");
    let said = String::from_utf8(soaked.stderr).expect("text");
    assert_eq!(soaked.status.code(), Some(0), "{said}");
    let told = String::from_utf8(soaked.stdout).expect("text");
    // The seed is one whose plan kills.
    assert!(told.starts_with("1 seeds, "), "{told}");
    assert!(
        told.contains("messages of") && told.contains("1 kills"),
        "{told}"
    );
    assert!(told.contains("send     Success"), "{told}");
    let mut command = posthorn();
    let soak = command.args(["soak", "--seconds", "0", "--seed", "6", "--json"]);
    let soaked = soak.output().expect("it runs");
    let again: Value = serde_json::from_slice(&soaked.stdout).expect("one JSON value");
    for (count, what) in [
        ("messages", "messages of"),
        ("puts", "puts of"),
        ("gets", "gets of"),
        ("signals", "signals checked"),
    ] {
        let count = again[count]["count"].as_u64().expect("a number");
        assert!(
            told.contains(&format!(" {count} {what}")),
            "{told}, and {again}"
        );
    }
    assert_eq!((&again["seeds"], &again["kills"]), (&1.into(), &1.into()));
    assert!(again["completions"]["send"]["Success"].as_u64() > Some(0));
}

/// A subcommand's help, a line an option.
fn help(command: &[&str]) -> String {
    let output = posthorn()
        .args(command)
        .arg("-h")
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stdout).expect("text")
}

/// The options of a help as rows of a table.
fn rows(help: &str) -> Vec<String> {
    let lines = help.lines().map(str::trim_start);
    let options = lines.filter(|line| line.starts_with("--"));
    let row = |line: &str| {
        let (option, words) = line.split_once("  ").expect("an option, and what it does");
        format!("| `{option}` | {} |", words.trim_start())
    };
    options.map(row).collect()
}

#[test]
fn the_page_of_the_command_has_each_subcommand_with_its_options() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/command.md");
    let page = fs::read_to_string(page).expect("the page");
    let help_of_all = help(&[]);
    let (_, commands) = help_of_all.split_once("Commands:\n").expect("commands");
    let (commands, _) = commands.split_once("\n\n").expect("options behind them");
    let commands = commands
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let commands: Vec<&str> = commands.filter(|command| *command != "help").collect();
    let sections: Vec<(&str, &str)> = page
        .split("\n## ")
        .skip(1)
        .map(|section| section.split_once('\n').expect("a heading and a text"))
        .collect();
    let headings: Vec<&str> = sections.iter().map(|(heading, _)| *heading).collect();
    assert_eq!(headings, commands);
    for (command, section) in sections {
        let said = section.lines().filter(|line| line.starts_with("| `--"));
        let said: Vec<&str> = said.collect();
        let wanted = match command {
            // Its section says so.
            "stats" => {
                assert_eq!(rows(&help(&["stats"])), rows(&help(&["replay"])));
                vec![]
            }
            command => rows(&help(&[command])),
        };
        assert_eq!(
            said,
            wanted,
            "the table of `{command}`:\n{}",
            wanted.join("\n")
        );
        let row = format!("\n| [`{command}`](#{command}) |");
        assert!(page.contains(&row), "{row}");
    }
    let suites = help(&["bench"]);
    let (_, suites) = suites.split_once("[possible values: ").expect("suites");
    let (suites, _) = suites.split_once(']').expect("an end of the list");
    for suite in suites.split(", ") {
        assert!(page.contains(&format!("\n| `{suite}` |")), "{suite}");
    }
}
