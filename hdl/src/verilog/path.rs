//! What a name in a kernel means.
//!
//! rust-hdl hands names on as text: `entry[i+1].hit.val().tag` arrives as
//! `entry[i+1]$hit$val()$tag`. Here indices are evaluated, and the rest is looked up among the
//! signals, the fields of structs, and the enum variants that the module's signals bring along.

use super::collect::Module;
use super::error::Reason;
use super::ir::SignalId;
use super::types::{Type, clog2, field};
use num_bigint::{BigInt, Sign};
use rust_hdl::prelude::{TypeDescriptor, TypeKind};
use std::collections::HashMap;
use std::rc::Rc;

/// What a name stands for.
#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    Signal(SignalId),
    /// A field of a struct signal, at a bit offset.
    Field(SignalId, usize, Type),
    /// An enum variant, by its number and the enum's width.
    Variant(BigInt, usize, Rc<TypeDescriptor>),
}

/// Values of the loop variables around a place in the kernel, innermost last.
pub(crate) type Loops = Vec<(String, BigInt)>;

pub(crate) fn loop_value<'a>(loops: &'a Loops, name: &str) -> Option<&'a BigInt> {
    loops.iter().rev().find(|l| l.0 == name).map(|l| &l.1)
}

/// The path of a constant in a kernel's tree, where it is the signal `?limits$EAGER_MAX`.
pub(crate) fn constant_path(name: &str) -> Option<&str> {
    name.strip_prefix('?')
}

pub(crate) struct Names<'a> {
    module: &'a Module,
    /// By both names: a kernel says `memory$write$enable`, a break `memory$write_enable`.
    signals: HashMap<&'a str, SignalId>,
    /// Variants by `Enum$Variant`; `None` where two enums disagree.
    variants: HashMap<String, Option<Variant>>,
}

/// Number and width, and the enum.
type Variant = (usize, usize, Rc<TypeDescriptor>);

impl<'a> Names<'a> {
    pub(crate) fn new(module: &'a Module) -> Self {
        let mut variants = HashMap::new();
        for signal in &module.signals {
            add_variants(&signal.descriptor, &mut variants);
        }
        let signals = module.signals.iter().enumerate();
        Names {
            module,
            signals: signals
                .flat_map(|(i, s)| [(s.kernel.as_str(), i), (s.path.as_str(), i)])
                .collect(),
            variants,
        }
    }

    pub(crate) fn signal(&self, path: &str) -> Option<SignalId> {
        self.signals.get(path).copied()
    }

    /// The name as people read it, with indices evaluated where they can be.
    pub(crate) fn display(&self, raw: &str, loops: &Loops) -> String {
        let path = expand(raw, loops).unwrap_or_else(|_| raw.to_string());
        let end = path.find("$next").or_else(|| path.find("$val()"));
        let (signal, rest) = path.split_at(end.unwrap_or(path.len()));
        let named = self.signal(signal).map(|id| &self.module.signals[id].path);
        format!("{}{rest}", named.map_or(signal, String::as_str))
            .replace("$val()", "")
            .replace("$next", "")
            .replace('$', ".")
    }

    pub(crate) fn resolve(&self, raw: &str, loops: &Loops) -> Result<Meaning, Reason> {
        let path = expand(raw, loops)?;
        let unindexed = path.contains('$') && raw.contains('[');
        let path = path
            .strip_suffix("$next")
            .or(path.strip_suffix("$val()"))
            .unwrap_or(&path);
        let split = path
            .split_once("$val()$")
            .or_else(|| path.split_once("$next$"));
        if let Some((signal, fields)) = split {
            let unknown = || Reason::UnknownName(self.display(raw, loops));
            let id = self.signal(signal).ok_or_else(unknown)?;
            let mut descriptor = &self.module.signals[id].descriptor;
            let mut offset = 0;
            for name in fields.split('$') {
                let (at, inner) = field(descriptor, name).ok_or_else(unknown)?;
                offset += at;
                descriptor = inner;
            }
            return Ok(Meaning::Field(id, offset, Type::of(descriptor)));
        }
        if let Some(id) = self.signal(path) {
            return Ok(Meaning::Signal(id));
        }
        let key: Vec<&str> = path.rsplit('$').take(2).collect();
        if let [variant, of] = key[..] {
            match self.variants.get(&format!("{of}${variant}")) {
                Some(Some((value, width, of))) => {
                    return Ok(Meaning::Variant((*value).into(), *width, of.clone()));
                }
                Some(None) => return Err(Reason::AmbiguousVariant(format!("{of}::{variant}"))),
                None => {}
            }
        }
        let name = self.display(raw, loops);
        Err(if unindexed {
            Reason::ArrayIndex(name)
        } else {
            Reason::UnknownName(name)
        })
    }
}

fn add_variants(descriptor: &TypeDescriptor, to: &mut HashMap<String, Option<Variant>>) {
    match &descriptor.kind {
        TypeKind::Enum(names) => {
            let of = Rc::new(descriptor.clone());
            for (number, name) in names.iter().enumerate() {
                let value = (number, clog2(names.len()), of.clone());
                to.entry(name.replace("::", "$"))
                    .and_modify(|old| {
                        if old
                            .as_ref()
                            .is_some_and(|o| (o.0, o.1) != (value.0, value.1))
                        {
                            *old = None;
                        }
                    })
                    .or_insert_with(|| Some(value.clone()));
            }
        }
        TypeKind::Composite(fields) => fields.iter().for_each(|f| add_variants(&f.kind, to)),
        TypeKind::Bits(_) | TypeKind::Signed(_) => {}
    }
}

/// `a[i+1]$b[j]$next` to `a$3$b$0$next`; a leading dot, as `link` leaves, is dropped.
fn expand(raw: &str, loops: &Loops) -> Result<String, Reason> {
    let bad = || Reason::ArrayIndex(raw.replace('$', "."));
    let mut path = String::new();
    let mut rest = raw;
    while let Some(open) = rest.find('[') {
        let close = open + rest[open..].find(']').ok_or_else(bad)?;
        let index = evaluate(&rest[open + 1..close], loops).ok_or_else(bad)?;
        path += &format!("{}${index}", &rest[..open]);
        rest = &rest[close + 1..];
    }
    path += rest;
    Ok(path.trim_start_matches('.').replace('.', "$"))
}

/// Value of `+ - * / % ( )` over integers and loop variables.
fn evaluate(text: &str, loops: &Loops) -> Option<BigInt> {
    let mut rest = text;
    let value = sum(&mut rest, loops)?;
    rest.is_empty().then_some(value)
}

fn sum(rest: &mut &str, loops: &Loops) -> Option<BigInt> {
    let mut value = product(rest, loops)?;
    while let Some(operator @ ('+' | '-')) = rest.chars().next() {
        *rest = &rest[1..];
        let right = product(rest, loops)?;
        value = if operator == '+' {
            value + right
        } else {
            value - right
        };
    }
    Some(value)
}

fn product(rest: &mut &str, loops: &Loops) -> Option<BigInt> {
    let mut value = operand(rest, loops)?;
    while let Some(operator @ ('*' | '/' | '%')) = rest.chars().next() {
        *rest = &rest[1..];
        let right = operand(rest, loops)?;
        if operator != '*' && right.sign() == Sign::NoSign {
            return None;
        }
        value = match operator {
            '*' => value * right,
            '/' => value / right,
            _ => value % right,
        };
    }
    Some(value)
}

fn operand(rest: &mut &str, loops: &Loops) -> Option<BigInt> {
    if let Some(inner) = rest.strip_prefix('(') {
        *rest = inner;
        let value = sum(rest, loops)?;
        *rest = rest.strip_prefix(')')?;
        return Some(value);
    }
    let end = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    let (word, tail) = rest.split_at(end);
    *rest = tail;
    integer(word).or_else(|| loop_value(loops, word).cloned())
}

/// An integer as Rust writes it: `1_000`, `0x2a`, `7usize`.
pub(crate) fn integer(text: &str) -> Option<BigInt> {
    const SUFFIXES: [&str; 12] = [
        "usize", "isize", "u128", "i128", "u64", "i64", "u32", "i32", "u16", "i16", "u8", "i8",
    ];
    let text = text.replace([' ', '_'], "");
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return None;
    }
    let digits = SUFFIXES
        .iter()
        .find_map(|s| text.strip_suffix(s))
        .unwrap_or(&text);
    let (digits, radix) = match digits.get(..2) {
        Some("0x") => (&digits[2..], 16),
        Some("0b") => (&digits[2..], 2),
        Some("0o") => (&digits[2..], 8),
        _ => (digits, 10),
    };
    BigInt::parse_bytes(digits.as_bytes(), radix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_evaluated_by_rusts_precedence() {
        let loops = vec![("i".to_string(), BigInt::from(3))];
        let at = |text| evaluate(text, &loops);
        assert_eq!(at("2+i*4"), Some(14.into()));
        assert_eq!(at("(2+i)*4%7"), Some(6.into()));
        assert_eq!(at("0x1f-1usize"), Some(30.into()));
        assert_eq!(at("i/0"), None);
        assert_eq!(at("j"), None);
        assert_eq!(at("b$val()$index()"), None);
        assert_eq!(expand("a[i+1]$b[0]$next", &loops).unwrap(), "a$4$b$0$next");
    }
}
