//! The `posthorn` command.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use posthorn::bench::{self, message::Selection, speed::Length};
use posthorn::explain;
use posthorn::info::Info;
use posthorn::replay::{self, Options, Replayed, Shared};
use posthorn::soak;
use posthorn::trace::{Call, Trace};
use replay_options::{CONFIGURATION, CONFIGURATIONS, ReplayOptions, can_be_written};
use serde::Serialize;
use sim::fault::FaultPlan;
use sim::seed::BackPressure;
use sim::{Firmware, Rate};

/// Simulated Posthorn cards: replay recorded applications, measure.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Replay a recorded application, one card a rank
    Replay(ReplayArguments),
    /// Replay a recorded application and show every counter, by card and pair
    Stats(ReplayArguments),
    /// Say what a status, a cause, a reason, a state or a type of frame means, what causes it and what helps
    Explain(ExplainArguments),
    /// Show versions, configurations, limits and times
    Info(InfoArguments),
    /// Measure the simulator and the card
    Bench(BenchArguments),
    /// Run random traffic under random faults, seed after seed, and check everything
    #[command(after_help = SOAK_HELP)]
    Soak(SoakArguments),
}

#[derive(Args)]
struct BenchArguments {
    /// What to measure
    suite: Suite,
    /// Configuration of the cards [default: ecp5; `sim` measures all; only `match` knows `wide`]
    #[arg(long, value_parser = replay_options::engine())]
    config: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Measure for longer (`sim`, `match`, `message`, `bandwidth`, `protect`, `link`), or drains of 16 cards too (`failure`)
    #[arg(long)]
    long: bool,
    /// Only see whether it runs: a few messages, or one failure and one drain (`sim`, `match`, `message`, `bandwidth`, `protect`, `link`, `failure`)
    #[arg(long, conflicts_with = "long")]
    short: bool,
    /// Folder of the recorded traces (`replay`) [default: those of the repository]
    #[arg(long, value_name = "FOLDER")]
    traces: Option<PathBuf>,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Firmware image [default: the one that `cargo xtask firmware` builds]
    #[arg(long, value_name = "ELF")]
    firmware: Option<PathBuf>,
    /// Of `match`: also draw cycles against depth, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    selection: Selection,
}

/// What a soak does.
const SOAK_HELP: &str = "\
Each seed is a run of its own: 2 to 4 cards, random messages, puts, gets and signals between all of them, and a random plan of faults: frames lost, repeated, \
changed, late, links that carry less or nothing for a time, cards that don't hear each other, a message that comes late, a host that stands still, memory that \
doesn't answer; in one of three a process or a card is killed. Every byte and every order is checked, that each request completes once with a status that is \
allowed, the credits, what the memory has that is granted to peers, also to one that has failed, and that a new process on the card works. A seed that fails ends \
the soak: its seed and its plan are printed, and `--seed` with that number repeats it.";

#[derive(Args)]
struct SoakArguments {
    /// Seconds after which no other seed is begun [default: until Ctrl-C]
    #[arg(long)]
    seconds: Option<u64>,
    /// First seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Configuration of the cards
    #[arg(long, default_value = "tiny", value_parser = replay_options::configuration())]
    config: String,
    /// Firmware image [default: the one that `cargo xtask firmware` builds]
    #[arg(long, value_name = "ELF")]
    firmware: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Suite {
    /// Cycles simulated for each second
    Sim,
    /// Cycles of a message, stage by stage
    Latency,
    /// Cycles of a message in a steady stream: one pair, to and from several, both ways
    Message,
    /// Share of a link that long puts fill with their bytes: one pair, four pairs, four cards to one
    Bandwidth,
    /// Revoking a sender and what the others notice of it, fences, and keys for many senders
    Protect,
    /// What a stream keeps of its rate, and how late messages are, when links lose frames
    Link,
    /// From each cause of a failure to its declaration, and from there to the last operation that depends on it; and drains
    Failure,
    /// Cycles and rates of tag matching against depth and classes, beside a list in the firmware and the host's best
    Match,
    /// Every recorded application at its full rank count
    Replay,
}

/// Run length of the cycles in which a port holds back.
const LONGEST_IDLE: u16 = 8;

#[derive(Args)]
struct ExplainArguments {
    /// Its name, in any case, or its number, decimal or with 0x [default: lists all]
    code: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct InfoArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Firmware image [default: the one that `cargo xtask firmware` builds]
    #[arg(long, value_name = "ELF")]
    firmware: Option<PathBuf>,
}

#[derive(Args)]
struct ReplayArguments {
    /// Recorded trace (.csv.zst)
    trace: PathBuf,
    #[command(flatten)]
    options: ReplayOptions,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Replay(arguments) => replay("replay", &arguments),
        Command::Stats(arguments) => replay("stats", &arguments),
        Command::Explain(arguments) => explain(&arguments),
        Command::Info(arguments) => info(&arguments),
        Command::Bench(arguments) => bench(&arguments),
        Command::Soak(arguments) => soak(&arguments),
    };
    match result {
        Ok(code) => code,
        Err(error) if error.is::<Unread>() => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Who reads what the command prints has heard enough, as `head` has.
#[derive(Debug, thiserror::Error)]
#[error("standard output is closed")]
struct Unread;

/// Prints what the command was asked for.
fn print(text: impl Display) -> Result<()> {
    let mut output = io::stdout().lock();
    let printed = write!(output, "{text}").and_then(|()| output.flush());
    match printed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Unread.into()),
        printed => printed.context("printing"),
    }
}

/// Prints a line.
fn print_line(text: impl Display) -> Result<()> {
    print(format_args!("{text}\n"))
}

/// Prints this for a program.
fn print_json(value: &impl Serialize) -> Result<()> {
    print_line(serde_json::to_string_pretty(value)?)
}

/// Where this workspace builds its firmware.
fn built(program: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/firmware");
    folder.join(program)
}

/// The firmware in `path`, or the one that this workspace has built.
fn firmware(path: Option<&Path>) -> Result<Firmware> {
    let built = built("firmware.elf");
    let path = path.unwrap_or(&built);
    let elf = std::fs::read(path).with_context(|| {
        format!(
            "reading the firmware {}; `cargo xtask firmware` builds it",
            path.display()
        )
    })?;
    Firmware::parse(elf).with_context(|| path.display().to_string())
}

fn bench(arguments: &BenchArguments) -> Result<ExitCode> {
    let config = arguments.config.as_deref();
    if arguments.plot.is_some() && arguments.suite != Suite::Match {
        usage("bench", "--plot: only `match` is drawn");
    }
    if config.is_some_and(|config| !CONFIGURATIONS.contains(&config))
        && arguments.suite != Suite::Match
    {
        usage(
            "bench",
            "--config: no such card is built, only its matching engine: `match`",
        );
    }
    if arguments.selection != Selection::default() && arguments.suite != Suite::Message {
        usage("bench", "only `message` has points that are selected");
    }
    if (arguments.short || arguments.long)
        && matches!(arguments.suite, Suite::Latency | Suite::Replay)
    {
        usage("bench", "`latency` and `replay` have one length");
    }
    let length = match (arguments.short, arguments.long) {
        (true, _) => Length::Short,
        (_, true) => Length::Long,
        _ => Length::Normal,
    };
    let firmware = || firmware(arguments.firmware.as_deref());
    let report = match arguments.suite {
        Suite::Match => {
            if let Some(file) = &arguments.plot {
                can_be_written(file).with_context(|| format!("writing {}", file.display()))?;
            }
            let program = arguments.firmware.clone();
            let program = program.unwrap_or_else(|| built("bench_list.elf"));
            let config = config.unwrap_or(CONFIGURATION);
            let report = bench::matching::run(config, length, arguments.seed, &program)?;
            if let Some(file) = &arguments.plot {
                bench::matching::plot(&report, file)?;
            }
            report
        }
        Suite::Sim => {
            let configs = config.as_ref().map_or(CONFIGURATIONS, std::slice::from_ref);
            bench::speed::run(configs, length, arguments.seed, &firmware()?)?
        }
        Suite::Message => bench::message::run(
            config.unwrap_or(CONFIGURATION),
            length,
            &arguments.selection,
            arguments.seed,
            &firmware()?,
        ),
        Suite::Bandwidth => bench::bandwidth::run(
            config.unwrap_or(CONFIGURATION),
            length,
            arguments.seed,
            &firmware()?,
        )?,
        Suite::Protect => bench::protect::run(
            config.unwrap_or(CONFIGURATION),
            length,
            arguments.seed,
            &firmware()?,
        )?,
        Suite::Link => bench::link::run(
            config.unwrap_or(CONFIGURATION),
            length,
            arguments.seed,
            &firmware()?,
        )?,
        Suite::Failure => bench::failure::run(
            config.unwrap_or(CONFIGURATION),
            length,
            arguments.seed,
            &firmware()?,
        )?,
        Suite::Replay => {
            let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces");
            let traces = arguments.traces.as_ref().unwrap_or(&own);
            let config = config.unwrap_or(CONFIGURATION);
            bench::traces::run(traces, config, arguments.seed, &firmware()?)?
        }
        Suite::Latency => bench::latency::run(
            config.unwrap_or(CONFIGURATION),
            arguments.seed,
            &firmware()?,
        )?,
    };
    if arguments.json {
        print_line(serde_json::to_string(&report)?)?;
    } else {
        print(&report)?;
    }
    let missing = report.unmeasured.len();
    ensure!(missing == 0, "{missing} points couldn't be measured");
    Ok(ExitCode::SUCCESS)
}

/// Time between two lines of progress of a soak, for whoever can't see a line that changes.
const SOAK_TELLS: Duration = Duration::from_secs(10);

fn soak(arguments: &SoakArguments) -> Result<ExitCode> {
    let firmware = firmware(arguments.firmware.as_deref())?;
    let cancel = cancel_on_interrupt()?;
    let line = ProgressBar::new_spinner();
    let mut told = Instant::now();
    let soaked = soak::soak(
        &arguments.config,
        &firmware,
        arguments.seed,
        arguments.seconds.map(Duration::from_secs),
        &cancel,
        |covered| {
            line.set_message(covered.to_string());
            line.tick();
            if line.is_hidden() && told.elapsed() >= SOAK_TELLS {
                eprintln!("{covered}");
                told = Instant::now();
            }
        },
    );
    line.finish_and_clear();
    if arguments.json {
        print_line(soaked.covered.to_json())?;
    } else {
        print_line(&soaked.covered)?;
        for ((kind, status), count) in &soaked.covered.tally.completions {
            print_line(format_args!("  {kind:<8} {status:<12} {count}"))?;
        }
    }
    let Some((run, why)) = soaked.failed else {
        return Ok(ExitCode::SUCCESS);
    };
    let plan = toml::to_string(&run.plan)?;
    eprintln!("failed: {why}");
    eprintln!(
        "with --seed {} and {} cards under the faults of:\n{plan}",
        run.seed, run.cards
    );
    Ok(ExitCode::FAILURE)
}

/// Makes Ctrl-C set the flag; a second one ends the program at once.
fn cancel_on_interrupt() -> Result<Arc<AtomicBool>> {
    let cancel = Arc::new(AtomicBool::new(false));
    let flag = cancel.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("catching Ctrl-C")?;
    Ok(cancel)
}

/// Ends the program as one whose arguments are wrong ends: with the reason, the usage, and 2.
fn usage(command: &str, reason: impl std::fmt::Display) -> ! {
    let mut all = Arguments::command();
    all.build();
    let named = all.find_subcommand_mut(command).expect("one of them");
    named.error(ErrorKind::ValueValidation, reason).exit()
}

fn explain(arguments: &ExplainArguments) -> Result<ExitCode> {
    let Some(code) = &arguments.code else {
        if arguments.json {
            print_json(&explain::all().collect::<BTreeMap<_, _>>())?;
        } else {
            for (set, names) in explain::all() {
                print_line(format_args!("{set}: {}", names.join(" ")))?;
            }
        }
        return Ok(ExitCode::SUCCESS);
    };
    let found = explain::find(code);
    if found.is_empty() {
        usage(
            "explain",
            format_args!(
                "`{code}` is the name or the number of no code: `posthorn explain` lists them"
            ),
        );
    }
    if arguments.json {
        print_json(&found)?;
    } else {
        let texts: Vec<_> = found.iter().map(ToString::to_string).collect();
        print(texts.join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn info(arguments: &InfoArguments) -> Result<ExitCode> {
    // Who names no firmware, and has built none, is told that there is none.
    let wanted = arguments.firmware.is_some() || built("firmware.elf").exists();
    let firmware = wanted.then(|| firmware(arguments.firmware.as_deref()));
    let info = Info::new(firmware.transpose()?.map(|firmware| firmware.build_id()));
    if arguments.json {
        print_json(&info)?;
    } else {
        print(&info)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Replays for the command of this name: `replay`, or `stats`, which shows counters in place of the summary.
fn replay(command: &str, arguments: &ReplayArguments) -> Result<ExitCode> {
    let given = &arguments.options;
    let cycles = given
        .cycles()
        .unwrap_or_else(|reason| usage(command, reason));
    let trace = Trace::read(&arguments.trace)?;
    if given.waves_card >= trace.ranks.len() {
        let (card, cards) = (given.waves_card, trace.ranks.len());
        usage(
            command,
            format_args!("--waves-card {card}: there are {cards} cards, counted from 0"),
        );
    }
    given.check_files(None).map_err(anyhow::Error::msg)?;
    let firmware = firmware(given.firmware.as_deref())?;
    let faults = faults(given, trace.ranks.len())
        .unwrap_or_else(|reason| usage(command, format_args!("--faults {reason}")));
    let options = Options {
        config: given.config.clone(),
        seed: given.seed,
        pressure: given
            .back_pressure
            .map_or(BackPressure::NONE, |percent| BackPressure {
                idle: 10 * percent,
                longest: LONGEST_IDLE,
            }),
        faults,
        processors: Rate::Times(1),
        threads: given.threads.map(NonZeroUsize::get),
        pcap: given.pcap.clone(),
        waves: given
            .waves
            .clone()
            .map(|path| (path, given.waves_card, cycles)),
        cancel: cancel_on_interrupt()?,
    };
    let sends = trace.ranks.iter().flatten();
    let total = sends
        .filter(|event| matches!(event.call, Call::Send { .. }))
        .count() as u64;
    let stats = command == "stats";
    let shared = Shared {
        ask: stats,
        goes_on: !options.faults.kills().is_empty(),
        ..Shared::default()
    };
    let bar = ProgressBar::new(total).with_style(
        ProgressStyle::with_template(
            "{prefix} [{bar:40}] {pos}/{len} messages  {elapsed}  {eta} left",
        )?
        .progress_chars("=> "),
    );
    bar.set_prefix(trace.app.clone());
    let done = AtomicBool::new(false);
    /// Says so when it goes, also if that is because something has panicked: the thread that shows the progress would go on for ever.
    struct Says<'a>(&'a AtomicBool);
    impl Drop for Says<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let replayed = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut told = 0;
            while !done.load(Ordering::Relaxed) {
                let messages = shared.messages.load(Ordering::Relaxed);
                bar.set_position(messages);
                // Who can't see the bar is told in lines: once it has begun, and at each tenth.
                if bar.is_hidden()
                    && messages > told
                    && (told == 0 || messages >= told + total / 10)
                {
                    eprintln!("{}: {messages} of {total} messages", trace.app);
                    told = messages;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let _done = Says(&done);
        replay::run(&trace, firmware, &options, &shared)
    })?;
    bar.finish_and_clear();
    report(given, &options.faults, &replayed, stats)
}

/// Cycles in which the faults of a random plan begin.
const FAULTY_CYCLES: u64 = 500_000;

/// The plan of faults that was asked for.
fn faults(given: &ReplayOptions, cards: usize) -> Result<FaultPlan, String> {
    let Some(path) = &given.faults else {
        return Ok(FaultPlan::default());
    };
    if path.as_os_str() == "random" {
        return Ok(FaultPlan::random(given.seed, cards, 0..FAULTY_CYCLES));
    }
    let told = |reason: &dyn std::fmt::Display| format!("{}: {reason}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| told(&error))?;
    let plan: FaultPlan = toml::from_str(&text).map_err(|error| told(&error))?;
    plan.check(cards).map_err(|reason| told(&reason))?;
    Ok(plan)
}

fn report(
    options: &ReplayOptions,
    plan: &FaultPlan,
    replayed: &Replayed,
    stats: bool,
) -> Result<ExitCode> {
    if options.log {
        for (card, lines) in replayed.logs.iter().enumerate() {
            for line in lines {
                eprintln!("card {card} {line}");
            }
        }
    }
    match (options.json, stats) {
        (true, true) => print_json(&replayed.stats)?,
        (true, false) => print_json(&replayed.summary)?,
        (false, true) => print(&replayed.stats)?,
        (false, false) => print(&replayed.summary)?,
    }
    for failure in &replayed.failures {
        eprintln!("failed: {failure}");
    }
    if !replayed.failures.is_empty() && !plan.is_empty() {
        let plan = toml::to_string(plan)?;
        eprintln!("with --seed {} and --faults of:\n{plan}", options.seed);
    }
    Ok(if !replayed.failures.is_empty() {
        ExitCode::FAILURE
    } else if replayed.summary.complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(130)
    })
}
