//! Notes the commit that the command is built from, for the figures it prints.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn main() {
    for name in ["HEAD", "index"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    let clean =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|s| s.is_empty());
    println!(
        "cargo:rustc-env=POSTHORN_COMMIT={commit}{}",
        if clean { "" } else { "+" }
    );
}
