//! Whether a check can fail within so many cycles, and by which inputs.
//!
//! ```text
//!   state ──► a cycle's gates ──► next state ──► which of its bits never change? ──► constants in the next cycle
//!   zeros     (Unrolled)    └───► failures ────► can any be set? ──► inputs that show it
//! ```
//!
//! Most registers of a block that is wide for a card and used narrowly never change: the high bits of counters and
//! ages, the places that are never filled. Gates alone can't tell, since a sum of unknown bits has a carry. So
//! before each cycle the solver is asked whether any register can differ from zero that never has; those that
//! can't are zero from there on. What is left is a tenth, and what the solver has to think about with it.
//! It is no assumption: of each register and each cycle it is proved.

use std::collections::BTreeMap;

use cadical::Solver;

use crate::circuit::{Circuit, Names};
use crate::unrolled::{FALSE, Node, TRUE, Unrolled};

/// Registers of which the solver is asked at once whether any can change: about a word.
const TOGETHER: usize = 16;
/// Conflicts after which it needn't say: they are taken for registers that do.
const EFFORT: i32 = 500;
/// What the solver takes for no limit of conflicts.
const NO_LIMIT: i32 = -1;

/// What has come of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No check fails.
    Proved,
    /// These do, in the last of the cycles.
    Failed {
        /// Numbers of the checks.
        checks: Vec<usize>,
        /// For each cycle, the inputs.
        inputs: Vec<Vec<bool>>,
    },
}

/// An input that isn't free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// It has this value in each cycle.
    At(bool),
    /// It is set in the first cycle and then never.
    First,
}

/// Looks for inputs by which a check fails in one of the first `cycles` cycles, and tells `watch` of each cycle that none fails in.
///
/// # Panics
/// If the solver gives up, which it has no reason for.
pub fn search(
    circuit: &Circuit,
    held: &BTreeMap<usize, Held>,
    cycles: usize,
    mut watch: impl FnMut(usize),
) -> Verdict {
    let mut gates = Unrolled::default();
    let mut clauses = Clauses::default();
    let mut state = vec![FALSE; circuit.registers.len()];
    // Registers that have been zero in all inputs that the solver has shown.
    let mut quiet = vec![true; state.len()];
    let mut values = vec![FALSE; circuit.first_gate() + circuit.gates.len()];
    let mut inputs = vec![];
    for cycle in 0..cycles {
        let now: Vec<u32> = (0..circuit.inputs)
            .map(|input| match held.get(&input) {
                Some(Held::At(value)) => u32::from(*value),
                Some(Held::First) => u32::from(cycle == 0),
                None => gates.free(),
            })
            .collect();
        values[1..=circuit.inputs].copy_from_slice(&now);
        values[1 + circuit.inputs..circuit.first_gate()].copy_from_slice(&state);
        inputs.push(now);
        for (k, &[a, b]) in circuit.gates.iter().enumerate() {
            let (a, b) = (literal(&values, a), literal(&values, b));
            values[circuit.first_gate() + k] = gates.and(a, b);
        }

        let failures: Vec<u32> = circuit
            .failures
            .iter()
            .map(|&x| literal(&values, x))
            .collect();
        // One at a time: each that can't be is a help with the next.
        for &failure in &failures {
            if clauses.any(&gates, &[failure], None) == Some(true) {
                let set = |k: &usize| clauses.value(failures[*k]);
                let checks = (0..failures.len()).filter(set).collect();
                let value = |row: Vec<u32>| row.into_iter().map(|x| clauses.value(x)).collect();
                let inputs = inputs.into_iter().map(value).collect();
                return Verdict::Failed { checks, inputs };
            }
            clauses.never(&gates, failure);
        }
        watch(cycle);

        for (bit, &next) in state.iter_mut().zip(&circuit.registers) {
            *bit = literal(&values, next);
        }
        for first in (0..state.len()).step_by(TOGETHER) {
            let group = first..state.len().min(first + TOGETHER);
            loop {
                let asked: Vec<usize> = group
                    .clone()
                    .filter(|&k| quiet[k] && state[k] != FALSE)
                    .collect();
                let bits: Vec<u32> = asked.iter().map(|&k| state[k]).collect();
                match clauses.any(&gates, &bits, Some(EFFORT)) {
                    Some(false) => {
                        for k in asked {
                            clauses.never(&gates, state[k]);
                            state[k] = FALSE;
                        }
                        break;
                    }
                    Some(true) => {
                        for k in 0..state.len() {
                            quiet[k] &= !clauses.value(state[k]);
                        }
                    }
                    None => asked.into_iter().for_each(|k| quiet[k] = false),
                }
            }
        }
    }
    Verdict::Proved
}

/// The checks' names and the inputs of a failure, for a reader: a line a cycle, and in it the ports that have changed.
pub fn told(names: &Names, checks: &[usize], inputs: &[Vec<bool>]) -> String {
    let mut text = String::new();
    let mut before = BTreeMap::new();
    for (cycle, inputs) in inputs.iter().enumerate() {
        text += &format!("{cycle}:");
        for (port, bits) in &names.ports {
            let width = bits.iter().map(|&(offset, _)| offset + 1).max();
            let mut digits = vec!['0'; width.unwrap_or(0)];
            for &(offset, input) in bits {
                digits[offset] = if inputs[input] { '1' } else { '0' };
            }
            let value: String = digits.into_iter().rev().collect();
            if before.insert(port, value.clone()).as_ref() != Some(&value) {
                text += &format!(" {port}={value}");
            }
        }
        text += "\n";
    }
    for &check in checks {
        text += &format!("fails: {}\n", names.checks[check]);
    }
    text
}

fn literal(values: &[u32], x: u32) -> u32 {
    values[(x >> 1) as usize] ^ (x & 1)
}

/// What the solver knows: the gates that it was asked about.
#[derive(Default)]
struct Clauses {
    solver: Solver,
    known: Vec<bool>,
}

impl Clauses {
    /// Whether any of these can be set; then [`Self::value`] says which are. `None`: that would be more than `effort` conflicts.
    fn any(&mut self, gates: &Unrolled, literals: &[u32], effort: Option<i32>) -> Option<bool> {
        let asked: Vec<u32> = literals.iter().copied().filter(|&x| x != FALSE).collect();
        if asked.is_empty() {
            return Some(false);
        }
        for &x in &asked {
            self.learn(gates, x);
        }
        // This once, one of them.
        let once = self.fresh();
        let any = asked.iter().map(|&x| number(x));
        self.solver.add_clause([-once].into_iter().chain(any));
        let limit = effort.unwrap_or(NO_LIMIT);
        let set = self.solver.set_limit("conflicts", limit);
        set.expect("the solver knows conflicts");
        let said = self.solver.solve_with([once]);
        assert!(
            said.is_some() || effort.is_some(),
            "the solver has no limit"
        );
        said
    }

    /// In what the solver has shown; of what it wasn't asked about, anything.
    fn value(&self, literal: u32) -> bool {
        match literal {
            FALSE => false,
            TRUE => true,
            // What it wasn't asked about may be what it likes: here, not set.
            _ if !self.known.get((literal >> 1) as usize).unwrap_or(&false) => false,
            _ => self.solver.value(number(literal)) == Some(true),
        }
    }

    fn never(&mut self, gates: &Unrolled, literal: u32) {
        if literal != FALSE {
            self.learn(gates, literal);
            self.solver.add_clause([-number(literal)]);
        }
    }

    /// A variable that isn't a node's: those have even numbers.
    fn fresh(&mut self) -> i32 {
        let last = self.solver.max_variable();
        last + 1 + (last & 1)
    }

    fn learn(&mut self, gates: &Unrolled, literal: u32) {
        self.known.resize(gates.len(), false);
        let mut open = vec![literal >> 1];
        while let Some(node) = open.pop() {
            if std::mem::replace(&mut self.known[node as usize], true) {
                continue;
            }
            let own = number(2 * node);
            match gates.node(node) {
                Node::False => self.solver.add_clause([-own]),
                Node::Free => {}
                Node::And(a, b) => {
                    self.solver.add_clause([-own, number(a)]);
                    self.solver.add_clause([-own, number(b)]);
                    self.solver.add_clause([own, -number(a), -number(b)]);
                    open.extend([a >> 1, b >> 1]);
                }
            }
        }
    }
}

/// A literal as the solver writes it.
fn number(literal: u32) -> i32 {
    let node = i32::try_from(literal >> 1).expect("memory ends before that");
    let own = 2 * (node + 1);
    if literal & 1 == 1 { -own } else { own }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter of `bits` bits that counts when its input is set, and fails when it is `bad`.
    fn counter(bits: usize, bad: u64) -> Circuit {
        let mut circuit = Circuit {
            inputs: 1,
            registers: vec![0; bits],
            ..Circuit::default()
        };
        let register = |k: usize| 2 * (2 + k) as u32;
        let and = |circuit: &mut Circuit, a: u32, b: u32| {
            circuit.gates.push([a.max(b), a.min(b)]);
            2 * (circuit.first_gate() + circuit.gates.len() - 1) as u32
        };
        let mut carry = 2;
        for k in 0..bits {
            let both = and(&mut circuit, register(k), carry);
            let neither = and(&mut circuit, register(k) ^ 1, carry ^ 1);
            circuit.registers[k] = and(&mut circuit, both ^ 1, neither ^ 1);
            carry = both;
        }
        let mut equal = TRUE;
        for k in 0..bits {
            equal = and(
                &mut circuit,
                equal,
                register(k) ^ u32::from(bad >> k & 1 == 0),
            );
        }
        circuit.failures = vec![equal];
        circuit
    }

    #[test]
    fn a_failure_is_found_in_its_cycle_and_not_before() {
        let circuit = counter(8, 5);
        let free = BTreeMap::new();
        assert_eq!(search(&circuit, &free, 5, |_| {}), Verdict::Proved);
        let Verdict::Failed { checks, inputs } = search(&circuit, &free, 6, |_| {}) else {
            panic!("five cycles count to five");
        };
        assert_eq!(checks, [0]);
        assert_eq!(inputs.len(), 6);
        assert!(inputs[..5].iter().all(|cycle| cycle[0]));
    }

    #[test]
    fn a_held_input_is_held() {
        let circuit = counter(8, 5);
        let never = BTreeMap::from([(0, Held::At(false))]);
        assert_eq!(search(&circuit, &never, 20, |_| {}), Verdict::Proved);
        let once = BTreeMap::from([(0, Held::First)]);
        assert_eq!(search(&circuit, &once, 20, |_| {}), Verdict::Proved);
        let circuit = counter(8, 1);
        assert_ne!(search(&circuit, &once, 20, |_| {}), Verdict::Proved);
    }

    #[test]
    fn registers_that_never_change_cost_nothing() {
        // 40 bits, of which 30 cycles reach five.
        let mut cycles = vec![];
        let verdict = search(&counter(40, 31), &BTreeMap::new(), 31, |cycle| {
            cycles.push(cycle);
        });
        assert_eq!(verdict, Verdict::Proved);
        assert_eq!(cycles, (0..31).collect::<Vec<_>>());
    }

    #[test]
    fn a_failure_is_told_by_names() {
        let names = Names {
            ports: BTreeMap::from([("line".to_string(), vec![(0, 1), (1, 0)])]),
            checks: vec!["a".to_string(), "block.b".to_string()],
        };
        let inputs = [vec![true, false], vec![true, false], vec![true, true]];
        let expected = "0: line=10\n1:\n2: line=11\nfails: block.b\n";
        assert_eq!(told(&names, &[1], &inputs), expected);
    }
}
