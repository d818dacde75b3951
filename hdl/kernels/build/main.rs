//! Writes the random kernels, as Rust text, to be compiled with the crate, and takes the hash of all
//! that their simulation depends on.
//!
//! The seed of each kernel is its number, so a kernel keeps its text when others are added. A
//! kernel may have earlier ones as children.

mod expression;
mod kernel;
mod scope;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// What a simulation of the kernels depends on, apart from rust-hdl itself: its release is in the
/// last of these.
const SOURCES: [&str; 7] = [
    "build",
    "src",
    "../macros/src",
    "../src/language",
    "../src/prim/reg.rs",
    "../src/prim/check.rs",
    "../../Cargo.toml",
];

fn hash_sources() -> u64 {
    fn walk(path: &Path, hasher: &mut DefaultHasher) {
        if path.is_file() {
            let text = std::fs::read(path).expect("sources can be read");
            (path, text).hash(hasher);
            return;
        }
        let entries = std::fs::read_dir(path).expect("sources can be read");
        let mut paths: Vec<PathBuf> = entries
            .map(|entry| entry.expect("sources can be read").path())
            .collect();
        paths.sort();
        paths.iter().for_each(|path| walk(path, hasher));
    }
    let mut hasher = DefaultHasher::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        walk(Path::new(source), &mut hasher);
    }
    hasher.finish()
}

/// How many kernels are written.
const COUNT: u64 = 310;

fn main() {
    let hash = hash_sources();
    println!("cargo::rustc-env=KERNELS_HASH={hash:016x}");
    let mut kernels: Vec<kernel::Kernel> = vec![];
    for number in 0..COUNT {
        let mut rng = ChaCha8Rng::seed_from_u64(number);
        kernels.push(kernel::write(number, &kernels, &mut rng));
    }
    let mut text = String::new();
    for kernel in &kernels {
        text += &kernel.text;
    }
    text += "/// One of each random kernel.\npub fn all() -> Vec<crate::Case> {\n    vec![\n";
    for kernel in &kernels {
        writeln!(text, "        crate::Case::of::<{}>(),", kernel.name).unwrap();
    }
    text += "    ]\n}\n";
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    std::fs::write(out.join("random.rs"), text).expect("OUT_DIR can be written");
}
