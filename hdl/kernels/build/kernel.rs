//! Random kernels: ports, locals, children and registers, and statements over them.
//!
//! Every local, output and child's input has a default first, as the habits of this house say, so
//! that anything may be read and assigned in what follows. Children are fed from inputs alone:
//! a child fed from its own output would be a loop.

use crate::expression::{Expressions, expression};
use crate::scope::{ENUMS, STRUCTS, Scope, Type, width};
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use std::fmt::Write;

pub struct Kernel {
    pub name: String,
    pub text: String,
    inputs: Vec<(String, Type)>,
    output: Type,
    clocked: bool,
    /// May have children itself.
    nested: bool,
    /// Must not see the minimum of a signed type.
    no_minimum: bool,
}

/// An array of locals, for loops.
struct Array {
    name: String,
    width: usize,
    length: usize,
}

struct Writer<'a> {
    rng: &'a mut ChaCha8Rng,
    /// Inputs, and outputs of children that depend on nothing else.
    inputs: Scope,
    /// Everything that can be read.
    scope: Scope,
    /// What can be assigned: `self.x` and its type. Registers are assigned by `d`.
    targets: Vec<(String, Type)>,
    arrays: Vec<Array>,
    inner: Vec<String>,
    body: String,
    loops: usize,
}

pub fn write(number: u64, earlier: &[Kernel], rng: &mut ChaCha8Rng) -> Kernel {
    let mut inputs: Vec<(String, Type)> = vec![];
    // A few widths in each kernel, so that operands of one type meet.
    let widths: Vec<usize> = (0..3).map(|_| width(rng)).collect();
    for (i, name) in ["a", "b", "c"].iter().enumerate() {
        inputs.push((name.to_string(), Type::Bits(widths[i])));
    }
    for name in ["s", "t"] {
        inputs.push((name.to_string(), Type::Signed(widths[1])));
    }
    inputs.push(("i".to_string(), Type::Bits(rng.random_range(1..=4))));
    for name in ["x", "y"] {
        inputs.push((name.to_string(), Type::Bit));
    }
    inputs.push((
        "e".to_string(),
        Type::Enum(rng.random_range(0..ENUMS.len())),
    ));
    let record = Type::Struct(rng.random_range(0..STRUCTS.len()));
    inputs.push(("r".to_string(), record));
    let clocked = number % 4 == 3;

    let mut scope = Scope::default();
    for (name, ty) in &inputs {
        scope.add(&format!("self.{name}.val()"), *ty, true);
    }
    let mut writer = Writer {
        rng,
        inputs: scope.clone(),
        scope,
        targets: vec![],
        arrays: vec![],
        inner: vec![],
        body: String::new(),
        loops: 0,
    };
    let output = *[
        Type::Bits(widths[0]),
        Type::Bits(widths[2]),
        Type::Bits(widths[0]),
        Type::Signed(widths[1]),
        Type::Bit,
        record,
    ]
    .choose(writer.rng)
    .expect("the list has entries");

    let nested = number % 5 == 4;
    let mut no_minimum = nested && writer.children(earlier, record);
    if clocked {
        writer.registers(&widths);
    }
    // One kernel in three is a single expression: whatever differs there is seen at the output.
    if number.is_multiple_of(3) {
        let value = expression(&writer.scope, writer.rng, output, 4);
        writer.line(&format!("self.o.next = {value};"));
        writer.targets.push(("o".to_string(), output));
    } else {
        writer.locals(&widths, record);
        writer.default("o", output);
        writer.statements(2, 3);
    }
    if clocked {
        writer.statements(1, 1);
    }
    writer.fold(output);

    let name = format!("Random{number:03}");
    let ports: Vec<String> = inputs
        .iter()
        .map(|(name, ty)| format!("{name}: {}", ty.rust()))
        .collect();
    let Writer { inner, body, .. } = writer;
    let kind = if clocked { "clocked_kernel" } else { "kernel" };
    // rust-hdl's signed_bit_cast overflows the stack on the minimum of its type.
    no_minimum |= body.contains("signed_bit_cast");
    let range = if no_minimum {
        "no_minimum"
    } else {
        "full_range"
    };
    let text = format!(
        "crate::{kind}! {{\n    /// Written by build/kernel.rs from seed {number}.\n    {name}, {range}, \
         {{ {} }}, {}, {{ {} }},\n    #[hdl_gen]\n    fn update(&mut self) {{\n{body}    }}\n}}\n",
        ports.join(", "),
        output.rust(),
        inner.join(", "),
    );
    Kernel {
        name,
        text,
        inputs,
        output,
        clocked,
        nested,
        no_minimum,
    }
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        writeln!(self.body, "{}{text}", "    ".repeat(2 + self.loops)).unwrap();
    }

    fn value(&mut self, ty: Type, depth: usize) -> String {
        // A signed target says the width of a signed_bit_cast.
        if let Type::Signed(w) = ty
            && self.rng.random_bool(0.2)
        {
            let scope = self.scope.clone();
            let mut expressions = Expressions {
                scope: &scope,
                rng: self.rng,
            };
            if let Some(text) = expressions.widened(w) {
                return text.into_text();
            }
        }
        expression(&self.scope, self.rng, ty, depth)
    }

    /// The first assignment of a target; from here on it can be read.
    fn default(&mut self, name: &str, ty: Type) {
        let value = self.value(ty, 1);
        self.line(&format!("self.{name}.next = {value};"));
        self.scope.add(&format!("self.{name}.val()"), ty, false);
        self.targets.push((name.to_string(), ty));
    }

    fn locals(&mut self, widths: &[usize], record: Type) {
        let types = [
            Type::Bits(widths[0]),
            Type::Signed(widths[1]),
            Type::Bit,
            record,
        ];
        for (i, ty) in types.into_iter().enumerate() {
            let name = format!("q{i}");
            self.inner
                .push(format!("{name}: Signal<Local, {}>", ty.rust()));
            self.default(&name, ty);
        }
        let (width, length) = (widths[2], self.rng.random_range(2..=3));
        let name = "bank".to_string();
        self.inner
            .push(format!("{name}: [Signal<Local, Bits<{width}>>; {length}]"));
        let value = self.value(Type::Bits(width), 2);
        self.line(&format!("for k in 0..{length} {{"));
        self.line(&format!("    self.{name}[k].next = {value};"));
        self.line("}");
        for k in 0..length {
            let text = format!("self.{name}[{k}].val()");
            self.scope.add(&text, Type::Bits(width), false);
        }
        self.arrays.push(Array {
            name,
            width,
            length,
        });
    }

    /// Some of an earlier kernel. Returns whether it must not see the minimum of a signed type.
    fn children(&mut self, earlier: &[Kernel], record: Type) -> bool {
        let fits =
            |k: &&Kernel| !k.clocked && !k.nested && k.inputs.iter().any(|(_, ty)| *ty == record);
        let simple: Vec<&Kernel> = earlier.iter().filter(fits).collect();
        let Some(child) = simple.choose(self.rng).copied() else {
            return false;
        };
        let length = self.rng.random_range(1..=2);
        self.inner.push(format!("sub: [{}; {length}]", child.name));
        for k in 0..length {
            for (name, ty) in &child.inputs {
                // Only whole inputs of this kernel are known to avoid the minimum.
                let same = |l: &crate::scope::Leaf| l.ty == *ty && l.no_minimum;
                let value = match (self.inputs.pick(self.rng, same), *ty) {
                    (Some(leaf), _) => leaf.text.clone(),
                    (None, Type::Signed(w)) => format!("signed_cast(bits::<{w}>(0))"),
                    (None, _) => expression(&self.inputs, self.rng, *ty, 1),
                };
                self.line(&format!("self.sub[{k}].{name}.next = {value};"));
            }
            self.scope
                .add(&format!("self.sub[{k}].o.val()"), child.output, false);
        }
        child.no_minimum
    }

    fn registers(&mut self, widths: &[usize]) {
        let types = [Type::Bits(widths[0]), Type::Bits(widths[2]), Type::Bit];
        self.inner.push(format!("st0: Reg<{}>", types[0].rust()));
        self.inner
            .push(format!("st1: [Reg<{}>; 2]", types[1].rust()));
        self.inner.push(format!("st2: Reg<{}>", types[2].rust()));
        self.line("registers!(self, clock, reset, st0, st1[0..2], st2);");
        let names = ["st0", "st1[0]", "st1[1]", "st2"];
        for (name, ty) in names.iter().zip([types[0], types[1], types[1], types[2]]) {
            self.scope.add(&format!("self.{name}.q.val()"), ty, false);
            self.targets.push((format!("{name}.d"), ty));
        }
    }

    fn statements(&mut self, depth: usize, count: usize) {
        for _ in 0..count {
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: usize) {
        match self.rng.random_range(0..100) {
            0..45 => self.assign(),
            _ if depth == 0 => self.assign(),
            45..70 => {
                let test = self.value(Type::Bit, 2);
                self.line(&format!("if {test} {{"));
                self.nested(depth, 2);
                while self.rng.random_bool(0.3) {
                    let test = self.value(Type::Bit, 2);
                    self.line(&format!("}} else if {test} {{"));
                    self.nested(depth, 1);
                }
                if self.rng.random_bool(0.5) {
                    self.line("} else {");
                    self.nested(depth, 1);
                }
                self.line("}");
            }
            70..85 => self.matching(depth),
            _ => self.looping(depth),
        }
    }

    fn nested(&mut self, depth: usize, count: usize) {
        self.loops += 1;
        self.statements(depth - 1, count);
        self.loops -= 1;
    }

    fn assign(&mut self) {
        let (name, ty) = self.targets.choose(self.rng).expect("o is there").clone();
        match ty {
            Type::Bits(w) if self.rng.random_bool(0.2) && !name.ends_with(".d") => {
                let bit = self.value(Type::Bit, 2);
                let k = self.rng.random_range(0..w);
                self.line(&format!(
                    "self.{name}.next = self.{name}.val().replace_bit({k}, {bit});"
                ));
            }
            Type::Struct(i) if self.rng.random_bool(0.7) => {
                let (field, ty) = *STRUCTS[i].1.choose(self.rng).expect("structs have fields");
                let (path, ty) = match ty {
                    Type::Struct(j) if self.rng.random_bool(0.7) => {
                        let (inner, ty) = *STRUCTS[j].1.choose(self.rng).expect("has fields");
                        (format!("{field}.{inner}"), ty)
                    }
                    _ => (field.to_string(), ty),
                };
                if matches!(ty, Type::Struct(_)) {
                    return;
                }
                let value = self.value(ty, 2);
                self.line(&format!("self.{name}.next.{path} = {value};"));
            }
            _ => {
                let value = self.value(ty, 2);
                self.line(&format!("self.{name}.next = {value};"));
            }
        }
    }

    fn matching(&mut self, depth: usize) {
        let named = self.scope.pick(self.rng, |l| matches!(l.ty, Type::Enum(_)));
        let named = named.map(|l| (l.text.clone(), l.ty));
        match (self.rng.random_range(0..3), named) {
            (0, Some((text, Type::Enum(i)))) => {
                let (of, variants) = ENUMS[i];
                let whole = self.rng.random_bool(0.5);
                let shown = if whole { variants.len() } else { 1 };
                self.line(&format!("match {text} {{"));
                // Out of order: an arm's place and its number are different things.
                for variant in variants.iter().rev().take(shown) {
                    self.arm(&format!("{of}::{variant}"), depth);
                }
                if !whole {
                    self.arm("_", depth);
                }
                self.line("}");
            }
            (1, _) => {
                let test = self.value(Type::Bit, 2);
                self.line(&format!("match {test} {{"));
                self.arm("false", depth);
                self.arm("true", depth);
                self.line("}");
            }
            _ => {
                let k = self.rng.random_range(1..=4);
                let test = expression(&self.scope, self.rng, Type::Bits(k), 0);
                self.line(&format!("match {test}.index() {{"));
                self.arm("0", depth);
                self.arm(&format!("0x{:x}", (1 << k) - 1), depth);
                self.arm("_", depth);
                self.line("}");
            }
        }
    }

    fn arm(&mut self, pattern: &str, depth: usize) {
        self.loops += 1;
        self.line(&format!("{pattern} => {{"));
        self.nested(depth, 1);
        self.line("}");
        self.loops -= 1;
    }

    /// Loops over the bank, with the loop variable as an index, a bit index and a number.
    fn looping(&mut self, depth: usize) {
        let Some(array) = self.arrays.first() else {
            self.assign();
            return;
        };
        let (name, w, length) = (array.name.clone(), array.width, array.length);
        let value = self.value(Type::Bits(w), 1);
        let number = if (length as u64) < 1u64 << w.min(20) {
            "k.to_bits()".to_string()
        } else {
            "0".to_string()
        };
        match self.rng.random_range(0..4) {
            0 => {
                self.line(&format!("for k in 1..{length} {{"));
                self.line(&format!(
                    "    self.{name}[k].next = self.{name}[k - 1].val() + {number};"
                ));
                self.line("}");
            }
            1 => {
                self.line(&format!("for k in 0..{length} {{"));
                let test = self.value(Type::Bit, 2);
                self.line(&format!("    if {test} {{"));
                self.line(&format!("        self.{name}[k].next = {value};"));
                self.line("    }");
                self.line("}");
            }
            2 => {
                let bits = length.min(w);
                self.line(&format!("for k in 0..{bits} {{"));
                self.line(&format!(
                    "    if self.{name}[k].val().get_bit(k) != self.{name}[0].val().get_bit({bits} - 1 - k) {{"
                ));
                self.line(&format!(
                    "        self.{name}[k].next = self.{name}[k].val() ^ {number};"
                ));
                self.line("    }");
                self.line("}");
            }
            _ => {
                self.line("for j in 0..2 {");
                self.line(&format!("    for k in 0..{length} {{"));
                self.line("        if 2 * j + k != 1 {");
                self.line(&format!(
                    "            self.{name}[(k + j) % {length}].next = self.{name}[k].val() - {number};"
                ));
                self.line("        }");
                self.line("    }");
                self.line("}");
            }
        }
        if depth > 1 && self.rng.random_bool(0.3) {
            self.statement(depth - 1);
        }
    }

    /// Brings every local into the output, so that no difference stays hidden.
    fn fold(&mut self, output: Type) {
        let Type::Bits(w) = output else { return };
        for (name, ty) in self.targets.clone() {
            match ty {
                Type::Bits(n) if name != "o" && !name.ends_with(".d") => self.line(&format!(
                    "self.o.next = self.o.val() ^ bit_cast::<{w}, {n}>(self.{name}.val());"
                )),
                Type::Signed(n) => self.line(&format!(
                    "self.o.next = self.o.val() ^ bit_cast::<{w}, {n}>(unsigned_cast(self.{name}.val()));"
                )),
                Type::Bit if name != "o" && !name.ends_with(".d") => {
                    self.line(&format!("self.o.next = self.o.val() + self.{name}.val();"));
                }
                Type::Struct(i) => {
                    let n = STRUCTS[i].2;
                    self.line(&format!(
                        "self.o.next = self.o.val() - bit_cast::<{w}, {n}>(self.{name}.val().into());"
                    ));
                }
                _ => {}
            }
        }
        if let Some(array) = self.arrays.first() {
            let (name, n, length) = (array.name.clone(), array.width, array.length);
            // No loop: the arguments of a bit_cast can't mention a loop variable.
            for k in 0..length {
                self.line(&format!(
                    "self.o.next = (self.o.val() << 1) ^ bit_cast::<{w}, {n}>(self.{name}[{k}].val());"
                ));
            }
        }
    }
}
