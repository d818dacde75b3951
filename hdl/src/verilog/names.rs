//! Names in the printed text: of modules, signals and instances.
//!
//! A module is named after the Rust type that it was printed from, with the type's parameters:
//! `Fifo<Bits<8>, 4>` is `Fifo_Bits_8_4`. rust-hdl gives no way from a `dyn Block` to its type, so
//! a block says it itself: its `Logic::timing` returns [`describe`]. The attribute `#[module]`
//! writes that method. A block without it is named after its place in the design.

pub(crate) use kernel_lint::is_keyword;
use rust_hdl::prelude::{Block, TimingInfo};
use std::collections::HashMap;
use std::fmt::Display;

/// Marks the entry of `Logic::timing` that holds a module's name. rust-hdl's timing check passes
/// over it, for it has neither inputs nor outputs.
const TAG: &str = "verilog module name";

/// The name of the module that a block of type `T` becomes, for its `Logic::timing`. `parameters`
/// are those that the type doesn't show: sizes that are chosen at run time.
pub fn describe<T: ?Sized>(parameters: &[(&str, &dyn Display)]) -> Vec<TimingInfo> {
    let mut name = flatten(std::any::type_name::<T>());
    for (key, value) in parameters {
        name += &format!("_{key}{}", flatten(&value.to_string()));
    }
    vec![TimingInfo {
        name: TAG.to_string(),
        clock: name,
        inputs: vec![],
        outputs: vec![],
    }]
}

/// Marks a bundle that is a stream; see [`stream`].
const STREAM: &str = "verilog stream";

/// For the `Logic::timing` of a bundle that is a stream: its ports are called after it. A stream `frame` has
/// the ports `frame_valid`, `frame_ready`, and `frame` for its `data`; streams `input` and `output`, whose
/// names are keywords, `in_valid`, `in_data` and so on. In an array the index comes last.
pub fn stream() -> Vec<TimingInfo> {
    vec![TimingInfo {
        name: STREAM.to_string(),
        clock: String::new(),
        inputs: vec![],
        outputs: vec![],
    }]
}

pub(crate) fn is_stream(bundle: &dyn Block) -> bool {
    bundle.timing().iter().any(|entry| entry.name == STREAM)
}

/// Marks the write port of a memory; see [`write`].
const WRITE: &str = "verilog write port";

/// For the `Logic::timing` of the write port of a memory: breaks and mutants call its signals as they are printed,
/// `write_enable` and so on.
pub fn write() -> Vec<TimingInfo> {
    vec![TimingInfo {
        name: WRITE.to_string(),
        clock: String::new(),
        inputs: vec![],
        outputs: vec![],
    }]
}

pub(crate) fn is_write(bundle: &dyn Block) -> bool {
    bundle.timing().iter().any(|entry| entry.name == WRITE)
}

/// Name of the port of a stream, as a path of a signal is written: `valid` of `frame$2` is `frame_valid$2`.
pub(crate) fn stream_port(stream: &str, member: &str) -> String {
    let (name, index) = match stream.split_once('$') {
        Some((name, index)) => (name, format!("${index}")),
        None => (stream, String::new()),
    };
    match (name, member) {
        ("input", _) => format!("in_{member}{index}"),
        ("output", _) => format!("out_{member}{index}"),
        (_, "data") => stream.to_string(),
        _ => format!("{name}_{member}{index}"),
    }
}

/// The name that a block gives itself.
pub(crate) fn title(block: &dyn Block) -> Option<String> {
    let entry = block.timing().into_iter().find(|t| t.name == TAG)?;
    Some(entry.clock)
}

/// `Fifo_Bits_8_4` to `Fifo`: a type's name has no `_`.
pub(crate) fn base(title: &str) -> &str {
    title.split('_').next().unwrap_or(title)
}

/// `a::Fifo<b::Bits<8>, 4>` to `Fifo_Bits_8_4`.
pub(crate) fn flatten(type_name: &str) -> String {
    type_name
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))
        .filter(|word| !word.is_empty())
        .map(|word| word.rsplit("::").next().unwrap_or(word))
        .collect::<Vec<_>>()
        .join("_")
}

/// Name of a type without its parameters, as blocks of it are called.
pub(crate) fn type_of<T: ?Sized>() -> String {
    base(&flatten(std::any::type_name::<T>())).to_string()
}

/// `wanted`, or with a number behind it if `taken` has it already.
pub(crate) fn unique(wanted: &str, taken: &mut HashMap<String, usize>) -> String {
    let mut name = wanted.to_string();
    while let Some(count) = taken.get_mut(&name) {
        *count += 1;
        name = format!("{wanted}_v{count}");
    }
    taken.insert(name.clone(), 1);
    name
}

/// Whether Verilator would warn of a field of this name, which is a word of C++. Those of Verilog and Rust aside.
pub(crate) fn is_word_of_cpp(name: &str) -> bool {
    CPP.contains(&name)
}

#[rustfmt::skip]
const CPP: &[&str] = &[
    "alignas", "alignof", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "catch", "char", "char16_t", "char32_t",
    "char8_t", "co_await", "co_return", "co_yield", "compl", "concept", "const_cast", "consteval", "constexpr",
    "constinit", "decltype", "delete", "double", "dynamic_cast", "explicit", "float", "friend", "goto", "inline",
    "long", "mutable", "namespace", "noexcept", "not_eq", "nullptr", "operator", "or_eq", "private", "public",
    "register", "reinterpret_cast", "requires", "short", "sizeof", "static_assert", "static_cast", "template",
    "thread_local", "throw", "typeid", "typename", "using", "volatile", "wchar_t", "xor_eq",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_flattened_with_its_parameters() {
        assert_eq!(
            flatten("a::b::Fifo<c::Bits<8>, 4, true>"),
            "Fifo_Bits_8_4_true"
        );
    }

    #[test]
    fn a_streams_ports_are_called_after_it() {
        assert_eq!(stream_port("frame", "valid"), "frame_valid");
        assert_eq!(stream_port("frame", "data"), "frame");
        assert_eq!(stream_port("frame$2", "ready"), "frame_ready$2");
        assert_eq!(stream_port("frame$2", "data"), "frame$2");
        assert_eq!(stream_port("input", "data"), "in_data");
        assert_eq!(stream_port("output$1", "valid"), "out_valid$1");
    }

    #[test]
    fn names_that_collide_are_numbered() {
        let mut taken = HashMap::new();
        let names: Vec<_> = ["a", "a", "a_2", "a"]
            .iter()
            .map(|n| unique(n, &mut taken))
            .collect();
        assert_eq!(names, ["a", "a_v2", "a_2", "a_v3"]);
    }
}
