//! What a model that is simulated for long is trained with: some thousand cycles of random pins, by which g++ learns which way branches go.
//!
//! The pins are as random as a test's of a block: `…valid` seldom, `…ready` mostly, everything else anything. That is no traffic, and assertions of
//! what the world must do may fail. It tells apart what happens in each cycle and what doesn't, and traffic through whole cards, which needs firmware and a
//! host, tells a little more.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::gxx::{self, Effort};
use crate::manifest::{Entry, Port};
use crate::run;
use crate::setup::Tools;

/// Cycles of training, which takes a second.
const CYCLES: u32 = 20_000;

/// The parts of Verilator's runtime that a program needs in which there is nothing but a model.
const RUNTIME: [&str; 2] = ["verilated", "verilated_threads"];

/// All that decides what training does to a model, besides its pins and how they are told apart.
pub fn recipe() -> String {
    let flags = [Effort::Counting, Effort::Trained].map(|effort| effort.flags().join(" "));
    flags.join(" ") + &text("", &[])
}

/// Links a model's `objects`, which count, to a program in the folder `obj`, and runs it: the counts lie beside the objects then.
///
/// # Errors
/// If it doesn't build, or crashes.
pub fn run(tools: &Tools, entry: &Entry, mut objects: Vec<PathBuf>, obj: &Path) -> Result<()> {
    let source = obj.join("training.cpp");
    fs::write(&source, text(&entry.library, &entry.ports))?;
    let include = tools.verilator_root().join("include");
    let runtime = RUNTIME.map(|name| include.join(format!("{name}.cpp")));
    for source in runtime.iter().chain([&source]) {
        let name = source.file_stem().expect("it is a file's").to_os_string();
        let object = obj.join(name).with_extension("o");
        gxx::compile(tools, source, &object, (&[], None), Effort::Little, false)?;
        objects.push(object);
    }
    let program = obj.join("training");
    gxx::link(&objects, &program)?;
    // What it says is of assertions. The counts are to lie beside the objects, wherever the environment would have them.
    let mut command = Command::new(&program);
    let command = command.env_remove("GCOV_PREFIX");
    run::output(command.env_remove("GCOV_PREFIX_STRIP")).map(drop)
}

/// C++ text of the program, for a shim whose functions begin with `prefix`.
fn text(prefix: &str, ports: &[Port]) -> String {
    let mut pins = String::new();
    for (index, port) in ports.iter().enumerate().filter(|(_, port)| port.input) {
        let kind = match port.name.as_str() {
            // The shim drives it.
            "clock" => continue,
            "reset" => "RESET",
            name if name.ends_with("clock") => "CLOCK",
            name if name.ends_with("valid") => "VALID",
            name if name.ends_with("ready") => "READY",
            _ => "ANYTHING",
        };
        writeln!(pins, "    {{{index}, {}, {kind}}},", port.width).expect("writing to a string");
    }
    let count = ports.len();
    format!(
        r#"#include <cstdint>
#include <vector>

namespace {{
enum Kind {{ RESET, CLOCK, VALID, READY, ANYTHING }};
struct Pin {{
    unsigned index;
    unsigned width;
    Kind kind;
}};
const Pin PINS[] = {{
{pins}    {{0, 0, ANYTHING}},
}};

// xorshift64*
std::uint64_t state = 1;
std::uint64_t anything() {{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717u;
}}

// As Verilator lays pins out.
void drive(void* at, unsigned width, std::uint64_t value) {{
    if (width < 64) value &= (std::uint64_t{{1}} << width) - 1;
    if (width <= 8) *static_cast<std::uint8_t*>(at) = value;
    else if (width <= 16) *static_cast<std::uint16_t*>(at) = value;
    else if (width <= 32) *static_cast<std::uint32_t*>(at) = value;
    else if (width <= 64) *static_cast<std::uint64_t*>(at) = value;
}}

void drive_wide(std::uint32_t* at, unsigned width) {{
    for (; width > 32; width -= 32) *at++ = anything() >> 32;
    *at = (anything() >> 32) & (0xffffffffu >> (32 - width));
}}
}}  // namespace

struct Model;
extern "C" {{
Model* {prefix}_new(std::uint32_t seed);
void {prefix}_delete(Model* m);
void {prefix}_pins(Model* m, void** pins);
void {prefix}_clock(Model* m, std::uint8_t level);
}}

int main() {{
    Model* m = {prefix}_new(1);
    std::vector<void*> at({count} + 1);
    {prefix}_pins(m, at.data());
    for (int cycle = 0; cycle < {CYCLES}; ++cycle) {{
        for (const Pin& pin : PINS) {{
            if (pin.width > 64) {{
                drive_wide(static_cast<std::uint32_t*>(at[pin.index]), pin.width);
                continue;
            }}
            std::uint64_t value = anything() >> 7;
            if (pin.kind == RESET) value = cycle < 4;
            if (pin.kind == VALID) value = value % 16 == 0;
            if (pin.kind == READY) value = value % 8 != 0;
            if (pin.width && pin.kind != CLOCK) drive(at[pin.index], pin.width, value);
        }}
        for (std::uint8_t level : {{0, 1}}) {{
            for (const Pin& pin : PINS) {{
                if (pin.kind == CLOCK) drive(at[pin.index], 1, level);
            }}
            {prefix}_clock(m, level);
        }}
    }}
    {prefix}_delete(m);
}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_driven_by_what_they_are_for() {
        let port = |name: &str, input| Port {
            name: name.into(),
            member: name.into(),
            width: 1,
            input,
        };
        let ports = [
            port("clock", true),
            port("core_clock", true),
            port("put_valid", true),
            port("put_ready", false),
        ];
        let text = text("x", &ports);
        assert!(text.contains("{1, 1, CLOCK},\n    {2, 1, VALID},\n    {0, 0, ANYTHING}"));
    }
}
