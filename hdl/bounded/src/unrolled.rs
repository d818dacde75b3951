//! The circuit's cycles one after the other, as gates without registers, of which no two are alike.
//!
//! A gate is simplified as it is made: by what is constant, and by what its operands are made of. Most of a
//! circuit is never seen by the solver: the half of a memory that is never written is constant, and so
//! is all that is read from it.

use std::collections::HashMap;

/// False; its inverse is true. A literal is twice the number of a node, plus one if it is inverted.
pub const FALSE: u32 = 0;
/// The inverse of [`FALSE`].
pub const TRUE: u32 = 1;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// Node 0.
    False,
    /// May be anything.
    Free,
    /// Both are set.
    And(u32, u32),
}

/// The gates.
#[derive(Debug)]
pub struct Unrolled {
    nodes: Vec<Node>,
    known: HashMap<(u32, u32), u32>,
}

impl Default for Unrolled {
    fn default() -> Self {
        Unrolled {
            nodes: vec![Node::False],
            known: HashMap::new(),
        }
    }
}

impl Unrolled {
    /// A node of that number.
    pub fn node(&self, number: u32) -> Node {
        self.nodes[number as usize]
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is nothing but [`FALSE`].
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    /// A new literal that may be anything.
    pub fn free(&mut self) -> u32 {
        self.add(Node::Free)
    }

    /// The literal of `a` and `b`.
    pub fn and(&mut self, a: u32, b: u32) -> u32 {
        let (a, b) = (a.min(b), a.max(b));
        if a == FALSE || a ^ 1 == b {
            return FALSE;
        }
        if a == TRUE || a == b {
            return b;
        }
        for (x, y) in [(a, b), (b, a)] {
            let Node::And(p, q) = self.node(y >> 1) else {
                continue;
            };
            let inverted = y & 1 == 1;
            match inverted {
                false if p == x || q == x => return y,
                false if p == x ^ 1 || q == x ^ 1 => return FALSE,
                true if p == x ^ 1 || q == x ^ 1 => return x,
                true if p == x => return self.and(x, q ^ 1),
                true if q == x => return self.and(x, p ^ 1),
                _ => {}
            }
        }
        if let Some(&known) = self.known.get(&(a, b)) {
            return known;
        }
        let new = self.add(Node::And(a, b));
        self.known.insert((a, b), new);
        new
    }

    fn add(&mut self, node: Node) -> u32 {
        let number = u32::try_from(self.nodes.len()).expect("memory ends before that");
        self.nodes.push(node);
        2 * number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Value of a literal when the free nodes have these values.
    fn value(gates: &Unrolled, literal: u32, free: &HashMap<u32, bool>) -> bool {
        let value = match gates.node(literal >> 1) {
            Node::False => false,
            Node::Free => free[&(literal & !1)],
            Node::And(a, b) => value(gates, a, free) && value(gates, b, free),
        };
        value != (literal & 1 == 1)
    }

    #[test]
    fn simplified_gates_are_what_they_were() {
        // Every gate of two literals, of every two of these, and again.
        let mut gates = Unrolled::default();
        let inputs: Vec<u32> = (0..3).map(|_| gates.free()).collect();
        let mut literals = vec![FALSE, TRUE];
        literals.extend(inputs.iter().flat_map(|&x| [x, x ^ 1]));
        for _ in 0..2 {
            for (a, b) in literals
                .iter()
                .flat_map(|&a| literals.iter().map(move |&b| (a, b)))
                .collect::<Vec<_>>()
            {
                let and = gates.and(a, b);
                for values in 0..8 {
                    let free: HashMap<u32, bool> =
                        (0..3).map(|k| (inputs[k], values >> k & 1 == 1)).collect();
                    let expected = value(&gates, a, &free) && value(&gates, b, &free);
                    assert_eq!(value(&gates, and, &free), expected, "{a} {b}");
                }
                if literals.len() < 60 && !literals.contains(&and) {
                    literals.push(and);
                    literals.push(and ^ 1);
                }
            }
        }
    }
}
