//! The proof of the printer: on the same inputs, rust-hdl's simulation and Verilator on the printed
//! text give the same outputs, kernel by kernel. rust-hdl's own printer, as the control, doesn't
//! stand it: a proof that it passed would prove nothing.

use hdl::verilog::{Grouping, Options};
use kernels::kernel::{Case, Vector};
use kernels::verilator::{Outcome, Verilator};
use std::sync::OnceLock;

/// Kernels in one Verilated model.
const BATCH: usize = 100;

fn cases() -> Vec<Case> {
    let all = [kernels::table(), kernels::written(), kernels::random()];
    all.into_iter().flatten().collect()
}

/// Kernels with what rust-hdl says of them, simulated once for all tests.
fn subjects() -> &'static [(Case, Vec<Vector>)] {
    static ALL: OnceLock<Vec<(Case, Vec<Vector>)>> = OnceLock::new();
    ALL.get_or_init(|| kernels::vectors::of(cases(), Verilator::find().cache()))
}

/// Runs all subjects for which `print` gives a text.
fn run(name: &str, print: &dyn Fn(&Case) -> Option<String>) -> Vec<Outcome> {
    let verilator = Verilator::find();
    let printed: Vec<(String, &(Case, Vec<Vector>))> = subjects()
        .iter()
        .filter_map(|subject| Some((print(&subject.0)?, subject)))
        .collect();
    printed
        .chunks(BATCH)
        .enumerate()
        .flat_map(|(i, chunk)| {
            let text: String = chunk.iter().map(|(text, _)| text.as_str()).collect();
            let kernels: Vec<_> = chunk.iter().map(|(_, s)| (&s.0, s.1.as_slice())).collect();
            verilator.run(&format!("{name}{i}"), &text, &kernels)
        })
        .collect()
}

/// Text of a kernel as module `NAME`, with its children's names made its own.
fn printed(case: &Case, grouping: Grouping) -> String {
    let options = Options::new(case.name).grouping(grouping);
    let design = (case.print)(&options).unwrap_or_else(|error| panic!("{error}"));
    apart(&design.text, case.name, &design.modules)
}

/// Renames the modules and the package of a text, so that many texts can stand in one file.
fn apart(text: &str, name: &str, modules: &[String]) -> String {
    let mut text = text
        .replace("package pkg;", &format!("package {name}_pkg;"))
        .replace("pkg::", &format!("{name}_pkg::"));
    for module in modules.iter().filter(|m| *m != name) {
        let own = format!("{name}_{module}");
        text = text
            .replace(&format!("module {module} ("), &format!("module {own} ("))
            .replace(&format!("  {module} "), &format!("  {own} "));
    }
    text
}

#[test]
fn every_kernel_is_accepted() {
    let refused: Vec<String> = cases()
        .into_iter()
        .filter_map(|case| (case.print)(&Options::new(case.name)).err())
        .map(|error| error.to_string())
        .collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

fn expect_equal(grouping: Grouping) {
    let outcomes = run(&format!("{grouping:?}"), &|case| {
        Some(printed(case, grouping))
    });
    let wrong: Vec<_> = outcomes.iter().filter(|o| o.mismatches > 0).collect();
    assert!(
        wrong.is_empty(),
        "{} kernels differ: {wrong:#?}",
        wrong.len()
    );
    let random = outcomes.iter().filter(|o| o.kernel.starts_with("Random"));
    assert!(random.count() >= 300, "too few random kernels were run");
    assert!(outcomes.iter().all(|o| o.tried >= 1000));
    assert_eq!(outcomes.iter().filter(|o| o.tried == 65_536).count(), 5);
    let inputs: u64 = outcomes.iter().map(|o| o.tried).sum();
    println!(
        "{grouping:?}: {} kernels, {inputs} inputs, none differs",
        outcomes.len()
    );
}

#[test]
fn simulation_and_verilog_agree_with_a_process_per_target() {
    expect_equal(Grouping::Target);
}

#[test]
#[ignore = "no top is printed so; 40 s of processor time"]
fn simulation_and_verilog_agree_with_a_process_per_statement() {
    expect_equal(Grouping::Statement);
}

#[test]
#[ignore = "no top is printed so; 40 s of processor time"]
fn simulation_and_verilog_agree_with_a_process_per_block() {
    expect_equal(Grouping::Block);
}

#[test]
fn the_stock_printer_is_seen_to_disagree() {
    let verilator = Verilator::find();
    // Each text is linted alone: the random ones would show nothing that the others don't.
    let tried = |case: &Case| !case.name.starts_with("Random");
    let outcomes = run("stock", &|case| {
        let text = (case.stock)().filter(|_| tried(case))?;
        let text = text.replace("top", case.name);
        verilator.is_legal(&text, case.name).then_some(text)
    });
    let all = subjects().iter().filter(|(case, _)| tried(case)).count();
    let illegal = all - outcomes.len();
    let wrong: Vec<_> = outcomes.iter().filter(|o| o.mismatches > 0).collect();
    let mismatches: u64 = wrong.iter().map(|o| o.mismatches).sum();
    println!(
        "stock printer: {illegal} kernels illegal, {} of the others differ, on {mismatches} inputs",
        wrong.len()
    );
    for name in ["Precedence", "Carry", "NarrowNot", "WideDifference", "Wrap"] {
        assert!(
            wrong.iter().any(|o| o.kernel == name),
            "{name} passes the control"
        );
    }
    // Most kernels with a field of a struct are illegal: it knows fields by their offsets only.
    assert!(illegal > 0 && wrong.len() > 10, "the control is too tame");
}

#[test]
fn verilator_has_nothing_to_say_about_printed_kernels() {
    let verilator = Verilator::find();
    for grouping in [Grouping::Target, Grouping::Block] {
        let cases = cases();
        for batch in cases.chunks(BATCH) {
            let texts = batch
                .iter()
                .map(|case| (printed(case, grouping), case.name));
            let said = verilator.lint_all(&texts.collect::<Vec<_>>());
            assert!(said.is_empty(), "{}", said.join("\n"));
        }
    }
}

#[test]
fn of_texts_that_are_linted_together_the_one_with_a_fault_is_named() {
    let module = |name: &str, unused: &str| {
        format!(
            "module {name} (\n  input logic a,\n  output logic b\n);\n{unused}  assign b = a;\nendmodule\n"
        )
    };
    let texts = [
        (module("sound", ""), "sound"),
        (module("odd", "  logic idle;\n"), "odd"),
    ];
    let said = Verilator::find().lint_all(&texts);
    // The name of the file is the same for all of them.
    let unused: Vec<_> = said.iter().filter(|s| s.contains("UNUSEDSIGNAL")).collect();
    assert!(
        matches!(unused[..], [one] if one.contains("idle")),
        "{said:?}"
    );
}
