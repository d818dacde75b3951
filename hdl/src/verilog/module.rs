//! One SystemVerilog module: ports, declarations, processes, instances, registers, checks.
//!
//! ```text
//!   module Name (ports);
//!     constants                    localparam
//!     declarations                 nets of children, intermediate versions, registers
//!     processes                    assign, always_comb
//!     children                     instances, clocks connected straight to their source
//!     registers                    one always_ff for each clock and reset
//!     checks                       assertions, by target
//!   endmodule
//! ```
//!
//! The body is printed before the declarations, so that these know what is read.

use super::collect::{Child, Module, Role};
use super::constant::constant_name;
use super::error::Reason;
use super::ir::{Kernel, SignalId};
use super::known::Known;
use super::names;
use super::package::{Package, Shape, TypeId};
use super::print::{Names, Printer};
use super::process::{Grouping, plan};
use super::text::{line, number, range};
use super::waive::{Declarations, INITIAL, UNREAD};
use num_bigint::BigInt;
use rust_hdl::prelude::Verilog;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What the text is for. It decides how checks are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Target {
    /// Checks report through `$error`.
    #[default]
    Simulation,
    /// Checks are bare assertions for a solver, and duties assumptions.
    Formal,
    /// Checks, and what only they read, are left out.
    Synthesis,
}

/// What a parent knows about the modules below it.
pub(crate) struct Context<'a> {
    pub(crate) modules: &'a [Module],
    pub(crate) package: &'a Package,
    /// Printed name of each module that has been printed.
    pub(crate) names: &'a HashMap<usize, String>,
    pub(crate) target: Target,
    /// The module is the top.
    pub(crate) is_top: bool,
}

impl Context<'_> {
    fn child(&self, child: &Child) -> &Module {
        &self.modules[child.module]
    }
}

/// Text of a module with a kernel, from the port list on: all but `module Name`.
pub(crate) fn body(
    context: &Context,
    module: &Module,
    kernel: &Kernel,
    grouping: Grouping,
) -> Result<String, (SignalId, Reason)> {
    let unneeded = unneeded_inputs(context, module);
    let needed = |id: SignalId| match module.signals[id].role {
        Role::Output => true,
        Role::ChildInput => !unneeded.contains(&id),
        _ => false,
    };
    let plan = plan(module, kernel, grouping, &needed);
    for v in &kernel.forced {
        // Alone in its process, it is read after it is forced, wherever its statements stand.
        if !plan.processes.contains(&vec![*v]) {
            return Err((kernel.variables[*v].signal, Reason::ForcedAlone));
        }
    }
    let mut taken: HashMap<String, usize> = HashMap::new();
    let given = module.signals.iter().map(|s| &s.name);
    for name in given.chain(module.children.iter().map(|c| &c.name)) {
        taken.insert(name.clone(), 1);
    }
    let mut versions = HashMap::new();
    for (v, variable) in kernel.variables.iter().enumerate() {
        if kernel.last.get(&variable.signal) != Some(&v) {
            let base = &module.signals[variable.signal].name;
            let wanted = format!("{base}_v{}", variable.version);
            versions.insert(v, names::unique(&wanted, &mut taken));
        }
    }
    let package = context.package;
    let own = module.constants.keys().filter(|path| !package.holds(path));
    let own = own.map(|path| {
        let wanted = constant_name(path);
        (path.clone(), names::unique(&wanted, &mut taken))
    });
    let own: BTreeMap<String, String> = own.collect();
    let names = Names {
        package,
        types: types(context, module),
        versions,
        constants: own.clone(),
    };
    let printer = Printer::new(module, kernel, &plan, names);

    let mut processes = String::new();
    for members in &plan.processes {
        let set: HashSet<usize> = members.iter().copied().collect();
        let keep = |v: usize| set.contains(&v);
        let statements: Vec<_> = kernel.body.iter().filter(|s| s.assigns(&keep)).collect();
        if let [
            super::ir::Stmt::Assign {
                variable,
                part: None,
                value,
                ..
            },
        ] = statements[..]
        {
            let assignment = printer.assignment(*variable, None, value);
            line(&mut processes, format_args!("  assign {assignment};"));
        } else {
            line(&mut processes, format_args!("  always_comb begin"));
            printer.statements(&kernel.body, &keep, 2, &mut processes);
            line(&mut processes, format_args!("  end"));
        }
    }

    let wiring = Wiring::new(module, kernel, &printer);
    let mut instances = String::new();
    let mut registers = Registers::default();
    let mut checks = String::new();
    for child in &module.children {
        match &context.child(child).known {
            Some(Known::Register { value, reset }) => {
                registers.add(&wiring, child, value, *reset);
            }
            Some(Known::Check { name, duty }) => {
                print_check(context.target, &wiring, child, name, *duty, &mut checks);
            }
            None => print_instance(context, &wiring, child, &mut instances),
        }
    }
    let clocked = registers.print();

    let mut out = format!(" (\n{});\n", print_ports(module, &printer));
    for signal in &module.signals {
        if signal.role == Role::Constant && printer.is_mentioned(&signal.name) {
            let (range, value) = (
                range(signal.ty.width),
                number(&signal.value, signal.ty.width),
            );
            line(
                &mut out,
                format_args!("  localparam logic{range} {} = {value};", signal.name),
            );
        }
    }
    for (path, name) in &own {
        if printer.is_mentioned(name) {
            let declaration = module.constants[path].declaration(name);
            line(&mut out, format_args!("  {declaration};"));
        }
    }
    let mut declarations = Declarations::default();
    let printed: HashSet<_> = plan.processes.iter().flatten().copied().collect();
    for (id, signal) in module.signals.iter().enumerate() {
        let last = kernel.last.get(&id);
        let initial = registers.initial.get(&signal.path);
        match signal.role {
            Role::Local | Role::ChildInput if last.is_some_and(|v| printed.contains(v)) => {}
            Role::ChildOutput => {}
            Role::ChildInOut if wiring.owns_net(id) => {
                let net = printer.declared_net(id);
                declarations.add(format!("{net} {};", signal.name), &[]);
                continue;
            }
            _ => continue,
        }
        let value = match initial {
            Some(value) => format!(" = {}", printer.value(id, value)),
            None => String::new(),
        };
        let unread = !printer.is_read(&signal.name);
        let waivers = [(&INITIAL, initial.is_some()), (&UNREAD, unread)];
        let ty = printer.declared(id);
        declarations.add(format!("{ty} {}{value};", signal.name), &waivers);
    }
    for v in plan.processes.iter().flatten() {
        let variable = &kernel.variables[*v];
        if kernel.last.get(&variable.signal) != Some(v) {
            let name = printer.variable(*v);
            let ty = printer.declared(variable.signal);
            let unread = !printer.is_read(&name);
            declarations.add(format!("{ty} {name};"), &[(&UNREAD, unread)]);
        }
    }
    out += &declarations.sorted().print();
    Ok(out + &processes + &instances + &clocked + &checks + "endmodule\n")
}

/// Text of a module whose Verilog its author wrote, from the port list on. Outputs are variables
/// in custom text, which may assign them, and nets in a wrapper, where a core drives them.
pub(crate) fn custom_body(module: &Module, text: &str) -> String {
    let output = match module.code {
        Verilog::Wrapper(_) => "wire",
        _ => "logic",
    };
    let sign = |signed: bool| if signed { " signed" } else { "" };
    let ports: Vec<String> = module
        .signals
        .iter()
        .filter_map(|s| {
            let kind = match s.role {
                Role::Input => "input wire",
                Role::Output => &format!("output {output}"),
                Role::InOut => "inout wire",
                _ => return None,
            };
            let (sign, range) = (sign(s.ty.signed), range(s.ty.width));
            Some(format!("  {kind}{sign}{range} {}", s.name))
        })
        .collect();
    let mut out = format!(" (\n{}\n);\n", ports.join(",\n"));
    for s in &module.signals {
        if s.role == Role::Constant && text.contains(&s.name) {
            let (sign, range) = (sign(s.ty.signed), range(s.ty.width));
            let value = number(&s.value, s.ty.width);
            line(
                &mut out,
                format_args!("  localparam logic{sign}{range} {} = {value};", s.name),
            );
        }
    }
    for text_line in text.trim_matches('\n').lines() {
        line(&mut out, format_args!("  {text_line}"));
    }
    out + "endmodule\n"
}

/// Inputs of checks, where the target leaves checks out.
fn unneeded_inputs(context: &Context, module: &Module) -> HashSet<SignalId> {
    if context.target != Target::Synthesis {
        return HashSet::new();
    }
    let checks: Vec<String> = module
        .children
        .iter()
        .filter(|c| matches!(context.child(c).known, Some(Known::Check { .. })))
        .map(|c| format!("{}$", c.path))
        .collect();
    let signals = module.signals.iter().enumerate();
    signals
        .filter(|(_, s)| s.role == Role::ChildInput)
        .filter(|(_, s)| checks.iter().any(|c| s.path.starts_with(c)))
        .map(|(id, _)| id)
        .collect()
}

/// The types of a module's signals. A port of the top is no enum, for whoever connects a vector to it would have to
/// cast it, and what hand-written Verilog drives isn't one either.
fn types(context: &Context, module: &Module) -> Vec<Option<TypeId>> {
    let types = module.signals.iter().map(|signal| {
        let ty = context.package.id(&signal.descriptor)?;
        let is_enum = matches!(context.package.shape(ty), Shape::Enum(_));
        let is_vector = match signal.role {
            Role::Constant | Role::InOut | Role::ChildInOut => true,
            Role::Input | Role::Output => is_enum && context.is_top,
            Role::ChildOutput => is_enum && signal.foreign,
            Role::Local | Role::ChildInput => false,
        };
        (!is_vector).then_some(ty)
    });
    types.collect()
}

fn print_ports(module: &Module, printer: &Printer) -> String {
    let signals = module.signals.iter().enumerate();
    let ports: Vec<_> = signals.filter(|(_, s)| s.is_port()).collect();
    let mut declarations = Declarations::default();
    for (i, (id, port)) in ports.iter().enumerate() {
        let kind = match port.role {
            Role::Input => format!("input  {}", printer.declared_net(*id)),
            Role::Output => format!("output {}", printer.declared(*id)),
            _ => format!("inout  {}", printer.declared_net(*id)),
        };
        let comma = if i + 1 < ports.len() { "," } else { "" };
        let unread = port.role == Role::Input && !printer.is_read(&port.name);
        declarations.add(format!("{kind} {}{comma}", port.name), &[(&UNREAD, unread)]);
    }
    declarations.print()
}

/// What each signal of a child is connected to.
struct Wiring<'a> {
    module: &'a Module,
    printer: &'a Printer<'a>,
    ids: HashMap<&'a str, SignalId>,
    /// Names of bidirectional nets.
    nets: HashMap<SignalId, String>,
}

impl<'a> Wiring<'a> {
    fn new(module: &'a Module, kernel: &Kernel, printer: &'a Printer<'a>) -> Self {
        let mut nets: HashMap<SignalId, String> = HashMap::new();
        let signal = |id: SignalId| &module.signals[id];
        for (a, b) in &kernel.nets {
            let port = [*a, *b]
                .into_iter()
                .find(|id| signal(*id).role == Role::InOut);
            let name = match port {
                Some(id) => signal(id).name.clone(),
                None => nets
                    .get(a)
                    .or(nets.get(b))
                    .unwrap_or(&signal(*a).name)
                    .clone(),
            };
            nets.insert(*a, name.clone());
            nets.insert(*b, name);
        }
        let ids = module.signals.iter().enumerate();
        Wiring {
            module,
            printer,
            ids: ids.map(|(i, s)| (s.path.as_str(), i)).collect(),
            nets,
        }
    }

    fn owns_net(&self, id: SignalId) -> bool {
        let own = &self.module.signals[id].name;
        self.nets.get(&id).is_none_or(|name| name == own)
    }

    fn id(&self, child: &Child, port: &str) -> SignalId {
        self.ids[format!("{}${port}", child.path).as_str()]
    }

    /// Text that the child's port is connected to.
    fn connection(&self, child: &Child, port: &str) -> String {
        let id = self.id(child, port);
        let signal = &self.module.signals[id];
        match signal.role {
            Role::ChildOutput => signal.name.clone(),
            Role::ChildInOut => self.nets.get(&id).unwrap_or(&signal.name).clone(),
            _ => self.printer.signal(id),
        }
    }
}

fn print_instance(context: &Context, wiring: &Wiring, child: &Child, out: &mut String) {
    let module = context.child(child);
    let name = &context.names[&child.module];
    let ports = module.signals.iter().filter(|s| s.is_port());
    let connections: Vec<String> = ports
        .map(|s| format!("    .{}({})", s.name, wiring.connection(child, &s.path)))
        .collect();
    line(out, format_args!("  {name} {} (", child.name));
    line(out, format_args!("{}", connections.join(",\n")));
    line(out, format_args!("  );"));
}

/// Registers by clock and reset, in the order in which they were met.
#[derive(Default)]
struct Registers {
    domains: Vec<Domain>,
    /// Initial values, by the path of `q`.
    initial: HashMap<String, BigInt>,
}

struct Domain {
    clock: String,
    reset: Option<String>,
    /// Target, reset value, next value.
    updates: Vec<(String, String, String)>,
}

impl Registers {
    fn add(&mut self, wiring: &Wiring, child: &Child, value: &BigInt, has_reset: bool) {
        let q = &wiring.module.signals[wiring.id(child, "q")];
        let clock = wiring.connection(child, "clock");
        let reset = has_reset
            .then(|| wiring.connection(child, "reset"))
            .filter(|r| r != "1'd0");
        let id = wiring.id(child, "q");
        let mut reset_value = wiring.printer.value(id, value);
        if let (Some(mutant), Some(pick)) = (child.reset_mutant, wiring.module.pick) {
            let pick = wiring.printer.signal(pick);
            let other = wiring.printer.value(id, &(value ^ BigInt::from(1)));
            let mutant = number(&mutant.into(), 16);
            reset_value = format!("({pick} == {mutant}) ? {other} : {reset_value}");
        }
        let update = (q.name.clone(), reset_value, wiring.connection(child, "d"));
        self.initial.insert(q.path.clone(), value.clone());
        match self
            .domains
            .iter_mut()
            .find(|d| d.clock == clock && d.reset == reset)
        {
            Some(domain) => domain.updates.push(update),
            None => self.domains.push(Domain {
                clock,
                reset,
                updates: vec![update],
            }),
        }
    }

    fn print(&self) -> String {
        let mut out = String::new();
        for domain in &self.domains {
            line(
                &mut out,
                format_args!("  always_ff @(posedge {}) begin", domain.clock),
            );
            let pad = match &domain.reset {
                Some(reset) => {
                    line(&mut out, format_args!("    if ({reset}) begin"));
                    for (q, value, _) in &domain.updates {
                        line(&mut out, format_args!("      {q} <= {value};"));
                    }
                    line(&mut out, format_args!("    end else begin"));
                    "      "
                }
                None => "    ",
            };
            for (q, _, d) in &domain.updates {
                line(&mut out, format_args!("{pad}{q} <= {d};"));
            }
            if domain.reset.is_some() {
                line(&mut out, format_args!("    end"));
            }
            line(&mut out, format_args!("  end"));
        }
        out
    }
}

fn print_check(
    target: Target,
    wiring: &Wiring,
    child: &Child,
    name: &str,
    duty: bool,
    out: &mut String,
) {
    let word = match target {
        Target::Formal if duty => "assume",
        _ => "assert",
    };
    let otherwise = match target {
        Target::Synthesis => return,
        Target::Formal => String::new(),
        Target::Simulation => format!(" else $error(\"%m: {name}\")"),
    };
    let clock = wiring.connection(child, "clock");
    let reset = wiring.connection(child, "reset");
    let ok = wiring.connection(child, "ok");
    line(out, format_args!("  always_ff @(posedge {clock}) begin"));
    line(
        out,
        format_args!(
            "    if (~{reset}) {}: {word} ({ok}){otherwise};",
            child.name
        ),
    );
    line(out, format_args!("  end"));
}
