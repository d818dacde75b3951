//! Writes the random kernels, as Rust text, to be compiled with the crate.
//!
//! The seed of each kernel is its number, so a kernel keeps its text when others are added. A
//! kernel may have earlier ones as children.

mod expression;
mod kernel;
mod scope;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::fmt::Write;
use std::path::PathBuf;

/// How many kernels are written.
const COUNT: u64 = 310;

fn main() {
    println!("cargo::rerun-if-changed=build");
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
