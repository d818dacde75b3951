//! Which variables are printed, and in which process.
//!
//! By default every target has a process of its own: Verilator then runs again only what changed.
//! A process may read any other variable in its final state only. So where a statement reads a
//! variable that a later statement assigns again, both targets share a process, in source order:
//!
//! ```text
//!   count = 0                     count's process:  all four lines
//!   if a { count = count + 1 }
//!   seen  = count                 seen reads count before its last assignment: same process
//!   if b { count = count + 1 }
//! ```
//!
//! Processes that read each other in a circle, though no signal depends on itself, become one as
//! well: Verilator would evaluate them until they settle, and warn of it.
//!
//! Plain copies into children's inputs, and intermediate versions that are copies, need no process:
//! they are printed where they are read.

use super::collect::{Module, Role};
use super::ir::{Expr, Kernel, Node, Stmt, VariableId};
use petgraph::algo::kosaraju_scc;
use petgraph::graphmap::DiGraphMap;
use std::collections::{BTreeMap, HashMap};

/// How the targets of a kernel are grouped into processes. The meaning is the same in each; the
/// speed of simulation is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Grouping {
    /// One process a target.
    #[default]
    Target,
    /// One process for all targets of an `if` or `match` of the kernel.
    Statement,
    /// One process a block.
    Block,
}

pub(crate) struct Plan {
    /// What is printed in place of a variable.
    pub(crate) copies: HashMap<VariableId, Expr>,
    /// Processes, each with its variables, in the order of the source.
    pub(crate) processes: Vec<Vec<VariableId>>,
}

/// `needed` says which signals matter at the end: the module's outputs and its children's inputs.
pub(crate) fn plan(
    module: &Module,
    kernel: &Kernel,
    grouping: Grouping,
    needed: &dyn Fn(usize) -> bool,
) -> Plan {
    let mut reads: Vec<(VariableId, Vec<Read>)> = vec![];
    walk(&kernel.body, &mut vec![], &mut |v, r| {
        reads.push((v, r.to_vec()));
    });
    let live = live_variables(kernel, &reads, needed);
    let copies = find_copies(module, kernel);
    let group = group(kernel, &reads, grouping);
    let mut processes: BTreeMap<usize, Vec<VariableId>> = BTreeMap::new();
    for (v, live) in live.into_iter().enumerate() {
        if live && !copies.contains_key(&v) {
            processes.entry(group.root(v)).or_default().push(v);
        }
    }
    let mut processes: Vec<_> = processes.into_values().collect();
    processes.sort_by_key(|p| p[0]);
    Plan { copies, processes }
}

/// A variable that is read, and the number of the statement that reads it.
#[derive(Clone, Copy)]
struct Read {
    variable: VariableId,
    at: usize,
}

/// Calls `f` for every assignment with what it reads, conditions around it included.
fn walk(body: &[Stmt], around: &mut Vec<Read>, f: &mut dyn FnMut(VariableId, &[Read])) {
    fn note(x: &Expr, at: usize, reads: &mut Vec<Read>) {
        x.variables(&mut |variable| reads.push(Read { variable, at }));
    }
    for statement in body {
        let before = around.len();
        match statement {
            Stmt::Assign {
                variable,
                value,
                at,
                ..
            } => {
                note(value, *at, around);
                f(*variable, around);
            }
            Stmt::If {
                test,
                then,
                otherwise,
                at,
            } => {
                note(test, *at, around);
                walk(then, around, f);
                walk(otherwise, around, f);
            }
            Stmt::Case { test, arms, at } => {
                note(test, *at, around);
                for (_, body) in arms {
                    walk(body, around, f);
                }
            }
        }
        around.truncate(before);
    }
}

fn live_variables(
    kernel: &Kernel,
    reads: &[(VariableId, Vec<Read>)],
    needed: &dyn Fn(usize) -> bool,
) -> Vec<bool> {
    let mut feeds: Vec<Vec<VariableId>> = vec![vec![]; kernel.variables.len()];
    for (v, r) in reads {
        feeds[*v].extend(r.iter().map(|r| r.variable));
    }
    let mut live = vec![false; kernel.variables.len()];
    let mut work: Vec<VariableId> = kernel
        .last
        .iter()
        .filter(|(signal, _)| needed(**signal))
        .map(|(_, v)| *v)
        .collect();
    while let Some(v) = work.pop() {
        if !std::mem::replace(&mut live[v], true) {
            work.extend(feeds[v].iter().copied());
        }
    }
    live
}

fn find_copies(module: &Module, kernel: &Kernel) -> HashMap<VariableId, Expr> {
    let mut copies = HashMap::new();
    for statement in &kernel.body {
        let Stmt::Assign {
            variable,
            part: None,
            value,
            at,
        } = statement
        else {
            continue;
        };
        let target = &kernel.variables[*variable];
        if target.assignments != 1 {
            continue;
        }
        let settled = match &value.node {
            Node::Signal(_) | Node::Literal(..) => true,
            Node::Variable(v) => kernel.variables[*v].last < *at,
            _ => false,
        };
        let signal = &module.signals[target.signal];
        let hidden = signal.role == Role::ChildInput
            || kernel.last[&target.signal] != *variable
            || (signal.role == Role::Local && signal.is_clock());
        if settled && hidden {
            copies.insert(*variable, value.clone());
        }
    }
    copies
}

fn group(kernel: &Kernel, reads: &[(VariableId, Vec<Read>)], grouping: Grouping) -> Groups {
    let mut groups = Groups((0..kernel.variables.len()).collect());
    for (v, r) in reads {
        for read in r {
            if read.variable != *v && kernel.variables[read.variable].last > read.at {
                groups.join(read.variable, *v);
            }
        }
    }
    match grouping {
        Grouping::Target => {}
        Grouping::Statement => {
            for statement in &kernel.body {
                if matches!(statement, Stmt::Assign { .. }) {
                    continue;
                }
                let mut first = None;
                walk(std::slice::from_ref(statement), &mut vec![], &mut |v, _| {
                    groups.join(*first.get_or_insert(v), v);
                });
            }
        }
        Grouping::Block => groups.0.fill(0),
    }
    join_circles(&mut groups, reads);
    groups
}

/// Joins groups that read each other in a circle.
fn join_circles(groups: &mut Groups, reads: &[(VariableId, Vec<Read>)]) {
    let count = u32::try_from(groups.0.len()).expect("kernels are smaller than that");
    let mut graph = DiGraphMap::new();
    for v in 0..count {
        graph.add_node(v);
    }
    for (v, r) in reads {
        let to = groups.root(*v);
        for read in r {
            let from = groups.root(read.variable);
            if from != to {
                graph.add_edge(from as u32, to as u32, ());
            }
        }
    }
    for circle in kosaraju_scc(&graph) {
        for v in &circle[1..] {
            groups.join(circle[0] as usize, *v as usize);
        }
    }
}

/// Union-find.
struct Groups(Vec<usize>);

impl Groups {
    fn root(&self, mut i: usize) -> usize {
        while self.0[i] != i {
            i = self.0[i];
        }
        i
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }
}
