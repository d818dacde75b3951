//! One run of Verilator: its flags, and what it says about the class that it wrote.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use crate::manifest::Port;
use crate::run;
use crate::setup::Tools;

/// What is common to all models.
///
/// - Assertions are live in every simulation (`--assert`); without it they silently never fire.
/// - Every warning is an error unless it is waived by name with its reason: in our text by the
///   printer, of foreign sources in a file of waivers that stands in their file list.
/// - `--x-initial unique`: what has no initial value gets one at run time from the seed of the
///   object and its place in the hierarchy alone, so that neither threads nor the order of opening
///   matter, and a test can ask for zeros or for noise of the same build.
/// - `--x-assign fast`: our printer writes no X; where foreign RTL does, Verilator picks a constant.
pub const FLAGS: &[&str] = &[
    "--cc",
    "--assert",
    "--no-timing",
    "-Wall",
    "--x-initial",
    "unique",
    "--x-assign",
    "fast",
    "-O3",
    "--quiet-stats",
];

/// Flags of the build that can write waveforms.
pub const TRACE_FLAGS: &[&str] = &["--trace-vcd", "--trace-structs"];

/// What to verilate.
pub struct Source<'a> {
    /// The Verilog text.
    pub verilog: &'a Path,
    /// Name of the top module in it.
    pub module: &'a str,
    /// Lists of further sources and of waivers (`-F`).
    pub file_lists: &'a [PathBuf],
}

/// What came out: file names without `.cpp`.
#[derive(Debug, Default)]
pub struct Classes {
    /// Run at each evaluation.
    pub fast: Vec<String>,
    /// Run once.
    pub slow: Vec<String>,
    /// Files of the runtime that the class needs.
    pub runtime: Vec<String>,
    /// The top's pins.
    pub ports: Vec<Port>,
}

/// Writes C++ of class `class` into `out`.
///
/// # Errors
/// With Verilator's words, warnings included.
pub fn run(
    tools: &Tools,
    source: &Source<'_>,
    class: &str,
    traced: bool,
    out: &Path,
) -> Result<Classes> {
    let mut verilator = Command::new(tools.bin().join("verilator"));
    verilator
        .env_remove("VERILATOR_ROOT")
        .env("IBEX_ROOT", tools.ibex_root())
        .args(FLAGS)
        .args(if traced { TRACE_FLAGS } else { &[] })
        .args(["--prefix", class, "--top-module", source.module, "--Mdir"])
        .arg(out);
    for list in source.file_lists {
        verilator.arg("-F").arg(list);
    }
    verilator.arg(source.verilog);
    run::output(&mut verilator)?;
    let make = fs::read_to_string(out.join(format!("{class}_classes.mk")))?;
    let header = fs::read_to_string(out.join(format!("{class}.h")))?;
    let list = |names: [&str; 2]| -> Vec<String> {
        names.iter().flat_map(|name| listed(&make, name)).collect()
    };
    Ok(Classes {
        fast: list(["VM_CLASSES_FAST", "VM_SUPPORT_FAST"]),
        slow: list(["VM_CLASSES_SLOW", "VM_SUPPORT_SLOW"]),
        runtime: list(["VM_GLOBAL_FAST", "VM_GLOBAL_SLOW"]),
        ports: ports(&header).with_context(|| format!("in the pins of {}", source.module))?,
    })
}

/// The words of a variable of the makefile, which is written one word a line.
fn listed(make: &str, variable: &str) -> Vec<String> {
    make.lines()
        .skip_while(|line| !line.starts_with(&format!("{variable} +=")))
        .skip(1)
        .map(|line| line.trim().trim_end_matches('\\').trim())
        .take_while(|word| !word.is_empty())
        .map(str::to_string)
        .collect()
}

/// The pins, from lines such as `VL_INW(&data,127,0,4);`.
fn ports(header: &str) -> Result<Vec<Port>> {
    let mut ports = Vec::new();
    for line in header.lines().map(str::trim) {
        let Some((kind, rest)) = line.strip_prefix("VL_").and_then(|l| l.split_once('(')) else {
            continue;
        };
        let input = kind.starts_with("IN") && !kind.starts_with("INOUT");
        if !input && !kind.starts_with("OUT") {
            if kind.starts_with("INOUT") {
                bail!("`{line}`: a pin has to be an input or an output");
            }
            continue;
        }
        let odd = || anyhow!("`{line}`: only plain vectors can be pins");
        let fields = rest
            .strip_suffix(");")
            .ok_or_else(odd)?
            .split(',')
            .collect::<Vec<_>>();
        let member = fields[0].strip_prefix('&').ok_or_else(odd)?;
        let msb: u32 = fields.get(1).and_then(|f| f.parse().ok()).ok_or_else(odd)?;
        let lsb: u32 = fields.get(2).and_then(|f| f.parse().ok()).ok_or_else(odd)?;
        if member.contains(['(', '[']) || lsb > msb {
            return Err(odd());
        }
        let (name, member) = (unmangled(member), member.to_string());
        ports.push(Port {
            name,
            member,
            width: msb - lsb + 1,
            input,
        });
    }
    Ok(ports)
}

/// Verilator writes a character that C++ doesn't allow in a name as `__0` and two hex digits.
fn unmangled(member: &str) -> String {
    let mut name = String::new();
    let mut rest = member;
    while let Some(at) = rest.find("__0") {
        let code = rest
            .get(at + 3..at + 5)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code {
            Some(code) => {
                name.push_str(&rest[..at]);
                name.push(char::from(code));
                rest = &rest[at + 5..];
            }
            None => {
                name.push_str(&rest[..at + 3]);
                rest = &rest[at + 3..];
            }
        }
    }
    name + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_read_from_the_header() {
        let header = "class V {\n    VL_IN8(&clock,0,0);\n    VL_INW(&host__024data,127,0,4);\n    \
            VL_OUT64(&q,63,0);\n    VL_OUT(&r,31,0);\n};\n";
        let found = ports(header).unwrap();
        let brief: Vec<_> = found
            .iter()
            .map(|p| (p.name.as_str(), p.width, p.input))
            .collect();
        assert_eq!(
            brief,
            [
                ("clock", 1, true),
                ("host$data", 128, true),
                ("q", 64, false),
                ("r", 32, false)
            ]
        );
        assert_eq!(found[1].member, "host__024data");
    }

    #[test]
    fn an_array_of_pins_is_refused() {
        assert!(ports("    VL_IN8((&a)[4],7,0);").is_err());
        assert!(ports("    VL_INOUT8(&a,7,0);").is_err());
    }

    #[test]
    fn a_double_underscore_comes_back() {
        assert_eq!(unmangled("a___05Fb"), "a__b");
        assert_eq!(unmangled("a__0zz"), "a__0zz");
    }

    #[test]
    fn lists_end_at_an_empty_line() {
        let make = "A += \\\n  x \\\n  y \\\n\nB += \\\n\nC += \\\n  z \\\n\n";
        assert_eq!(listed(make, "A"), ["x", "y"]);
        assert!(listed(make, "B").is_empty());
    }
}
