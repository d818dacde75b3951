//! Rules of the house that a compiler doesn't know, over all of `hdl/src`.

use std::path::Path;

use hdl_tests::sources;

fn expect_nothing(found: &[String]) {
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// The printer's syntax tree doesn't show `.index()`, guards and some others, so they are looked
/// for in the source: `kernel_lint` says which and why.
#[test]
fn kernels_have_nothing_that_the_printer_could_not_see() {
    let mut found = vec![];
    for (name, text) in sources::below("hdl/src") {
        let findings = kernel_lint::check_file(&text).expect("rustc has read it");
        found.extend(findings.iter().map(|f| format!("{}:{f}", name.display())));
    }
    expect_nothing(&found);
}

/// Blocks that bring in a foreign core. Whoever adds one says here which.
const FOREIGN_CORES: [&str; 1] = ["mgmt/ibex.rs"];

#[test]
fn only_primitives_have_hand_written_verilog() {
    let mut found = vec![];
    for (name, text) in sources::below("hdl/src") {
        let allowed = name.starts_with("prim") || name.starts_with("verilog");
        if !allowed && !FOREIGN_CORES.iter().any(|core| name == Path::new(core)) {
            let findings = kernel_lint::find_hand_written(&text).expect("rustc has read it");
            found.extend(findings.iter().map(|f| format!("{}:{f}", name.display())));
        }
    }
    expect_nothing(&found);
}

/// Mutants take long: every day a block's named breaks run, and its mutants only when they are asked for.
#[test]
fn mutants_are_counted_only_by_tests_that_take_long_and_of_blocks_that_are_broken_every_day() {
    let mut found = vec![];
    let mut counted = 0;
    for (name, text) in sources::below("hdl/tests") {
        // What stands between two functions are the attributes of the second.
        let parts: Vec<&str> = text.split("\nfn ").collect();
        for pair in parts.windows(2) {
            if pair[1].lines().any(|line| line.starts_with("    mutants(")) {
                counted += 1;
                let attributes = pair[0].rsplit("\n}\n").next().unwrap_or_default();
                if !attributes.contains("#[ignore = \"mutants: ") {
                    let test = pair[1].split('(').next().unwrap_or_default();
                    found.push(format!("{}: {test} isn't ignored", name.display()));
                }
            }
        }
    }
    assert!(counted > 20, "{counted} tests count mutants");
    let tops = hdl::catalogue::tops();
    for top in &tops {
        let Some(block) = top.name.strip_suffix("_mutants") else {
            continue;
        };
        // The rooms of Delivery's bench are in two, and its breaks in one.
        let block = match block {
            "delivery_stores_scarce" => "delivery_bench_scarce",
            _ => block,
        };
        let broken = format!("{block}_broken");
        if !tops.iter().any(|top| top.name == broken) {
            found.push(format!("{block} has no breaks"));
        }
    }
    expect_nothing(&found);
}

/// The page from which a stranger finds his way names files in its table.
#[test]
fn every_file_that_the_way_of_a_message_names_is_there() {
    let root = sources::workspace();
    let page = root.join("docs/src/way-of-a-message.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, table) = page.split_once("\n|---|---|\n").expect("the table");
    let named = table.split('`').skip(1).step_by(2);
    let is_place = |name: &&str| name.ends_with(".rs") || name.ends_with('/');
    let named: Vec<_> = named.filter(is_place).collect();
    assert!(named.len() > 20, "{named:?}");
    let missing = named
        .into_iter()
        .filter(|name| !root.join("hdl/src").join(name).exists());
    expect_nothing(&missing.map(str::to_owned).collect::<Vec<_>>());
}
