//! The C++ between a Verilated class and Rust: a handful of C functions per model.
//!
//! ```text
//!   Rust (crate model)            C++ (this text)              Verilator
//!   Model ── open, step, eval ──► posthorn_NAME_* ───────────► VNAME::eval
//!     └───── pin addresses ─────► VNAME's members (read and written directly)
//! ```
//!
//! Each object has a context of its own, which the shim makes the thread's before it enters the
//! model: an object may move between threads, and Verilator's messages and counters go to the
//! thread's context.

use std::fmt::Write;

use crate::manifest::Port;

/// Name of the port that `step` drives.
const CLOCK: &str = "clock";

/// How often what edges start may start more before gates are said not to settle.
const TURNS: u32 = 100;

/// C++ text of the shim of class `class`, whose functions begin with `prefix`.
pub fn text(class: &str, prefix: &str, ports: &[Port], traced: bool) -> String {
    let mut pins = String::new();
    for (index, port) in ports.iter().enumerate() {
        let member = &port.member;
        let address = if port.width > 64 {
            format!("&top.{member}[0]")
        } else {
            format!("&top.{member}")
        };
        writeln!(pins, "    pins[{index}] = {address};").expect("writing to a string");
    }
    let clock = ports
        .iter()
        .find(|port| port.name == CLOCK && port.input && port.width == 1);
    // A model without a clock is combinational: one evaluation is all there is to a step.
    let set_clock = match clock {
        Some(port) => format!("m->top.{} = level;", port.member),
        None => "(void)level;".into(),
    };
    let step = match clock {
        Some(_) => "clocked(m, 0, first);\n        clocked(m, 1, false);",
        None => "m->top.eval();",
    };
    let (phases, edges) = match clock {
        // What is written into a waveform `eval` alone says.
        Some(_) if !traced => (
            format!(
                "// Of `{class}::eval`, what the edges of clocks start.\n\
                 bool {class}___024root___eval_phase__act({class}___024root*);\n\
                 bool {class}___024root___eval_phase__nba({class}___024root*);\n"
            ),
            format!(
                "    for (int turn = 0; turn < {TURNS}; ++turn) {{\n        \
                     if ({class}___024root___eval_phase__act(m->top.rootp)) continue;\n        \
                     if (!{class}___024root___eval_phase__nba(m->top.rootp)) return;\n    \
                 }}\n    \
                 // It doesn't settle, and this says so.\n"
            ),
        ),
        _ => (String::new(), String::new()),
    };
    let trace = if traced {
        format!(
            "void {prefix}_trace(Model* m, VerilatedVcdC* vcd) {{\n    \
                 enter(m);\n    \
                 m->top.trace(vcd, 99);\n\
             }}\n"
        )
    } else {
        String::new()
    };
    let include = if traced {
        "#include \"verilated_vcd_c.h\"\n"
    } else {
        ""
    };
    format!(
        r#"#include "{class}.h"
#include "verilated.h"
#include "verilated_syms.h"
{include}#include <cstdint>
#include <cstdio>

{phases}
namespace {{
struct Model {{
    VerilatedContext context;
    {class} top;
    // No name: messages then name the modules below as the waveform does.
    explicit Model(std::uint32_t seed) : top{{prepared(context, seed), ""}} {{}}
    // The constructor of the top looks at all of this.
    static VerilatedContext* prepared(VerilatedContext& context, std::uint32_t seed) {{
        Verilated::threadContextp(&context);
        context.fatalOnError(false);
        // Seed 0: what has no initial value is 0. Otherwise it is random, from the seed alone.
        context.randReset(seed ? 2 : 0);
        context.randSeed(seed ? static_cast<int>(seed) : 1);
        context.traceEverOn({traced});
        return &context;
    }}
}};

// Written only when it changes: the setter also writes a variable that all threads share.
inline void enter(Model* m) {{
    if (Verilated::threadContextp() != &m->context) Verilated::threadContextp(&m->context);
}}

// Evaluates what edges of clocks start and whatever depends on that. Where no input but clocks has been set since the last evaluation this is all
// that there is to do: Verilator's own `eval` begins with all logic that any input reaches, a fifth of what a card's cycle takes.
inline void edges(Model* m) {{
{edges}    m->top.eval();
}}

inline void clocked(Model* m, std::uint8_t level, bool changed) {{
    {set_clock}
    if (changed) m->top.eval(); else edges(m);
    // Messages then begin with the number of the cycle.
    if (level) m->context.timeInc(1);
}}
}}  // namespace

extern "C" {{
Model* {prefix}_new(std::uint32_t seed) {{ return new Model{{seed}}; }}
void {prefix}_delete(Model* m) {{
    enter(m);
    m->top.final();
    delete m;
    // The thread's context has just gone.
    Verilated::threadContextp(Verilated::defaultContextp());
}}
void {prefix}_enter(Model* m) {{ enter(m); }}
void {prefix}_pins(Model* m, void** pins) {{
    {class}& top = m->top;
{pins}    (void)top;
    (void)pins;
}}
void {prefix}_eval(Model* m) {{
    enter(m);
    m->top.eval();
}}
void {prefix}_edges(Model* m) {{
    enter(m);
    edges(m);
}}
void {prefix}_clock(Model* m, std::uint8_t level, bool changed) {{
    enter(m);
    clocked(m, level, changed);
}}
void {prefix}_step(Model* m, std::uint64_t n) {{
    enter(m);
    for (bool first = true; n--; first = false) {{
        {step}
    }}
}}
void* {prefix}_memory(Model* m, const char* scope, const char* name, std::uint64_t* words) {{
    // It is there once the model has been evaluated, and so has its initial contents.
    enter(m);
    m->top.eval();
    const VerilatedScope* found = m->context.scopeFind(scope);
    const VerilatedVar* memory = found ? found->varFind(name) : nullptr;
    if (!memory || memory->vltype() != VLVT_UINT32 || memory->udims() != 1) return nullptr;
    *words = static_cast<std::uint64_t>(memory->elements(1));
    return memory->datap();
}}
int {prefix}_error(Model* m) {{
    if (!m->context.gotError()) return 0;
    // The message comes before whatever is said about it in Rust.
    std::fflush(stdout);
    return 1;
}}
void {prefix}_clear_error(Model* m) {{
    m->context.gotError(false);
    m->context.gotFinish(false);
    m->context.errorCount(0);
}}
{trace}}}  // extern "C"
"#,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(name: &str, width: u32, input: bool) -> Port {
        Port {
            name: name.into(),
            member: name.into(),
            width,
            input,
        }
    }

    #[test]
    fn a_wide_pin_is_addressed_by_its_first_word() {
        let text = text(
            "Vx",
            "x",
            &[port("clock", 1, true), port("q", 65, false)],
            false,
        );
        assert!(text.contains("pins[0] = &top.clock;"));
        assert!(text.contains("pins[1] = &top.q[0];"));
    }

    #[test]
    fn edges_alone_are_evaluated_but_where_a_waveform_is_written() {
        let ports = [port("clock", 1, true)];
        let phases = [
            "Vx___024root___eval_phase__act(m->top.rootp)",
            "Vx___024root___eval_phase__nba(m->top.rootp)",
        ];
        let has = |traced| {
            let text = text("Vx", "x", &ports, traced);
            phases.map(|phase| text.contains(phase))
        };
        assert_eq!(has(false), [true; 2]);
        assert_eq!(has(true), [false; 2]);
    }

    #[test]
    fn a_model_without_clock_is_evaluated_once_a_step() {
        let text = text("Vx", "x", &[port("a", 1, true)], false);
        assert!(!text.contains("top.clock"));
        assert!(!text.contains("clocked(m, 1"));
    }
}
