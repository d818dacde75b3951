//! What is particular to an opcode stands in one file of the library, so that a new opcode is such a file.

use abi::request::Opcode;
use std::path::{Path, PathBuf};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");

/// The files of a folder and of those in it, by their paths from the library's folder.
fn files(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            let name = path.strip_prefix(SOURCES).unwrap().to_path_buf();
            found.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Names behind `prefix` in a text.
fn names<'a>(text: &'a str, prefix: &str) -> Vec<&'a str> {
    let behind = text.split(prefix).skip(1);
    let name = |text: &'a str| {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
        &text[..end.unwrap_or(text.len())]
    };
    behind.map(name).collect()
}

#[test]
#[cfg_attr(miri, ignore = "it reads a folder")]
fn an_opcode_is_named_in_the_file_of_its_operation_alone() {
    let mut found = Vec::new();
    files(Path::new(SOURCES), &mut found);
    for &opcode in Opcode::ALL {
        let name = format!("{opcode:?}");
        let names_it = |text: &str| names(text, "Opcode::").contains(&name.as_str());
        let named = found.iter().filter(|(_, text)| names_it(text));
        let named: Vec<_> = named.map(|(path, _)| path).collect();
        let in_one = named.len() == 1 && named[0].starts_with("operation");
        assert!(
            in_one,
            "opcode {name} is to be named in one file of host-driver/src/operation/ and in no other file of the library; it is in {named:?}"
        );
    }
    assert_eq!(
        names("Opcode::Cancel.code() Opcode::Probe", "Opcode::"),
        ["Cancel", "Probe"]
    );
}

#[test]
#[cfg_attr(miri, ignore = "it reads a folder")]
fn nothing_outside_of_the_operations_tells_them_apart() {
    let mut found = Vec::new();
    files(Path::new(SOURCES), &mut found);
    let is_operation = |path: &Path| path.starts_with("operation") || path == "operation.rs";
    for (path, text) in found.iter().filter(|(path, _)| !is_operation(path)) {
        let variants: Vec<_> = names(text, "Work::")
            .into_iter()
            .filter(|name| name.starts_with(char::is_uppercase))
            .collect();
        assert!(
            variants.is_empty(),
            "{path:?} asks whether a request is {variants:?}: let its row of abi::opcode or its file in host-driver/src/operation/ say what follows"
        );
    }
}
