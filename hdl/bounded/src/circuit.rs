//! A circuit as yosys writes it: gates, registers that start from zero, and what must never be.
//!
//! The binary format of AIGER 1.9 (Biere, Heljanko, Wieringa, "AIGER 1.9 and beyond", 2011), as
//! `write_aiger -zinit` makes it, with the names of its `-ywmap`. A literal is twice the number of a variable, plus one
//! if it is inverted; variable 0 is false.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// Gates and registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Circuit {
    /// How many inputs; they are the variables from 1 on.
    pub inputs: usize,
    /// What each register has in the next cycle; all start from zero. Their variables follow those of the inputs.
    pub registers: Vec<u32>,
    /// Operands of the gates, whose variables follow, each after those that it depends on.
    pub gates: Vec<[u32; 2]>,
    /// Set when a check fails.
    pub failures: Vec<u32>,
}

/// What the inputs and the checks are called.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// By name, the inputs of a port's bits, where there are any.
    pub ports: BTreeMap<String, Vec<(usize, usize)>>,
    /// Paths of the checks, in their order.
    pub checks: Vec<String>,
}

impl Circuit {
    /// The circuit of a file.
    ///
    /// # Errors
    /// If it is of another format, or has what no proof here has: outputs, assumptions, or registers that start from
    /// anything.
    pub fn read(file: &[u8]) -> Result<Self> {
        let mut text = Text { file, at: 0 };
        let header = text.line()?;
        let mut words = header.split(' ');
        ensure!(words.next() == Some("aig"), "not a binary AIGER file");
        let sizes: Vec<usize> = words
            .map(|word| word.parse().context("a size in the header"))
            .collect::<Result<_>>()?;
        let size = |k: usize| sizes.get(k).copied().unwrap_or(0);
        let (inputs, registers, gates) = (size(1), size(2), size(4));
        ensure!(
            size(0) == inputs + registers + gates,
            "variables without a gate"
        );
        ensure!(
            size(3) == 0 && sizes.iter().skip(6).all(|&n| n == 0),
            "outputs, assumptions or claims about for ever"
        );
        let registers = (0..registers)
            .map(|_| {
                let line = text.line()?;
                match line.split_once(' ') {
                    None => number(line),
                    Some((next, "0")) => number(next),
                    Some(_) => bail!("a register doesn't start from zero"),
                }
            })
            .collect::<Result<Vec<u32>>>()?;
        let failures = (0..size(5))
            .map(|_| number(text.line()?))
            .collect::<Result<Vec<u32>>>()?;
        let first = inputs + registers.len() + 1;
        let gates = (first..first + gates)
            .map(|variable| {
                let own = u32::try_from(2 * variable)?;
                let left = own.checked_sub(text.delta()?).context("a gate's operand")?;
                let right = left
                    .checked_sub(text.delta()?)
                    .context("a gate's operand")?;
                ensure!(left < own, "a gate depends on itself");
                Ok([left, right])
            })
            .collect::<Result<Vec<_>>>()?;
        let circuit = Circuit {
            inputs,
            registers,
            gates,
            failures,
        };
        let variables = circuit.first_gate() + circuit.gates.len();
        let of_gates = circuit.registers.iter().chain(&circuit.failures);
        ensure!(
            of_gates
                .into_iter()
                .all(|&x| (x >> 1) as usize <= variables),
            "a variable that there isn't"
        );
        Ok(circuit)
    }

    /// Variable of the first gate.
    pub fn first_gate(&self) -> usize {
        1 + self.inputs + self.registers.len()
    }
}

impl Names {
    /// The names of a `-ywmap` file.
    ///
    /// # Errors
    /// If it is something else.
    pub fn read(file: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Bit {
            input: usize,
            offset: usize,
            path: Vec<String>,
        }
        #[derive(Deserialize)]
        struct Map {
            inputs: Vec<Bit>,
            asserts: Vec<Vec<String>>,
        }
        let map: Map = serde_json::from_slice(file).context("the map of names")?;
        let shown = |path: &[String]| {
            let parts: Vec<_> = path.iter().map(|x| x.trim_start_matches('\\')).collect();
            parts.join(".")
        };
        let mut names = Names::default();
        for bit in &map.inputs {
            let port = names.ports.entry(shown(&bit.path)).or_default();
            port.push((bit.offset, bit.input));
        }
        names.checks = map.asserts.iter().map(|path| shown(path)).collect();
        Ok(names)
    }
}

fn number(word: &str) -> Result<u32> {
    word.parse().with_context(|| format!("a literal: {word:?}"))
}

struct Text<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Text<'a> {
    fn line(&mut self) -> Result<&'a str> {
        let rest = &self.file[self.at..];
        let end = rest.iter().position(|&byte| byte == b'\n');
        let end = end.context("the file ends early")?;
        self.at += end + 1;
        str::from_utf8(&rest[..end]).context("a line of the header")
    }

    /// Seven bits a byte, least significant first; the last byte is below 128.
    fn delta(&mut self) -> Result<u32> {
        let mut value = 0;
        for shift in (0..32).step_by(7) {
            let byte = *self.file.get(self.at).context("the file ends early")?;
            self.at += 1;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        bail!("a number of more than 32 bits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_to_the_last_gate() {
        // One input, one register that becomes input and register; it fails when both are set.
        let file = b"aig 3 1 1 0 1 1\n6\n6\n\x02\x02";
        let circuit = Circuit::read(file).unwrap();
        let expected = Circuit {
            inputs: 1,
            registers: vec![6],
            gates: vec![[4, 2]],
            failures: vec![6],
        };
        assert_eq!(circuit, expected);
        assert!(Circuit::read(&file[..file.len() - 1]).is_err());
    }

    #[test]
    fn what_would_be_misunderstood_is_refused() {
        for file in [
            &b"aag 0 0 0 0 0\n"[..],
            b"aig 1 1 0 0 0 0 1\n2\n",
            b"aig 1 0 1 0 0\n2 1\n",
            b"aig 1 0 1 0 0\n2 2\n",
        ] {
            assert!(Circuit::read(file).is_err());
        }
    }

    #[test]
    fn ports_and_checks_have_their_paths() {
        let file = br#"{"inputs": [{"path": ["\\line"], "input": 7, "offset": 1}],
                        "asserts": [["\\block", "\\never"]]}"#;
        let names = Names::read(file).unwrap();
        assert_eq!(names.ports["line"], [(1, 7)]);
        assert_eq!(names.checks, ["block.never"]);
    }
}
