//! Writes the linker's memory map from `abi::mgmt`, and makes the build id: the first eight bytes of the SHA-256 of
//! every source file that the firmware is made of, and of the lock file.

use sha2::{Digest, Sha256};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// What the firmware is made of, from its folder.
const SOURCES: [&str; 8] = [
    "../Cargo.lock",
    "../Cargo.toml",
    "Cargo.toml",
    "build.rs",
    ".cargo/config.toml",
    "src",
    "core/src",
    "../abi/src",
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("memory.x"), memory_map())?;
    println!("cargo:rustc-link-search={}", out.display());
    let id = build_id(&root)?;
    println!("cargo:rustc-env=POSTHORN_BUILD_ID={id}");
    println!("cargo:rustc-env=POSTHORN_STACK_BYTES={STACK_BYTES}");
    // `bench_list` has its list in memory, and next to nothing on the stack.
    let stack = format!(
        "ASSERT(SIZEOF(.stack) >= {STACK_BYTES}, \"The program leaves too little for its stack.\");\n"
    );
    fs::write(out.join("stack.x"), stack)?;
    println!("cargo:rustc-link-arg-bin=firmware=-Tstack.x");
    Ok(())
}

/// Bytes of stack that the linker leaves at least. The firmware's tables are on it.
const STACK_BYTES: usize = 34 * 1024;

/// Everything is in one memory, but for its last bytes, which are persistent and belong to nobody. Ibex starts 0x80 bytes after its boot address.
///
/// The image is run where it is loaded, and run again when the processor has been held, without being loaded anew. So there is no `.data`: what
/// is in it would keep what the last run left there, because nothing else remembers how it began.
///
/// Nothing unwinds, and the tables for it, which compiler and `link.x` would put there, were a tenth of the image.
fn memory_map() -> String {
    let regions = ["TEXT", "RODATA", "DATA", "BSS", "HEAP", "STACK"]
        .map(|region| format!("REGION_ALIAS(\"REGION_{region}\", RAM);\n"))
        .concat();
    format!(
        "MEMORY {{ RAM : ORIGIN = {:#x}, LENGTH = {:#x} }}\n\
         {regions}\
         _stext = ORIGIN(RAM) + 0x80;\n\
         SECTIONS {{ /DISCARD/ : {{ *(.eh_frame); }} }}\n\
         SECTIONS {{ .posthorn_build_id : {{ KEEP(*(.posthorn_build_id)); }} > RAM }} INSERT AFTER .rodata;\n\
         ASSERT(SIZEOF(.data) == 0, \"
A static starts as something other than zero, and a second run of the program would find it changed: start it as zero.\");\n",
        abi::mgmt::MEMORY_BASE,
        abi::mgmt::MEMORY_BYTES - abi::mgmt::PERSISTENT_BYTES,
    )
}

fn build_id(root: &Path) -> Result<u64, Box<dyn Error>> {
    let mut hash = Sha256::new();
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
        let mut files = Vec::new();
        collect(&root.join(source), &mut files)?;
        files.sort();
        for file in files {
            let name = file.strip_prefix(root)?.to_string_lossy().into_owned();
            let contents = fs::read(&file)?;
            for part in [name.as_bytes(), &contents] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            }
        }
    }
    let digest = hash.finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    Ok(u64::from_le_bytes(first))
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            collect(&entry?.path(), files)?;
        }
    } else {
        files.push(path.to_path_buf());
    }
    Ok(())
}
