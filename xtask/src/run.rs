//! Running other programs: quietly while they go well, with all they said when they don't.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::{Context, Result, bail};

/// The command as one would type it, for messages.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs `command` to its end and returns its standard output.
///
/// # Errors
/// If it can't be started or fails; the error carries what it printed.
pub fn output(command: &mut Command) -> Result<String> {
    let out = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("can't start `{}`", shown(command)))?;
    if !out.status.success() {
        bail!(
            "`{}` failed ({}):\n{}{}",
            shown(command),
            out.status,
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Runs `command` to its end; `line` sees each line of either stream as it comes.
///
/// # Errors
/// If it can't be started or fails; the error carries what it printed.
pub fn watched(command: &mut Command, line: impl Fn(&str) + Send + Sync) -> Result<()> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("can't start `{}`", shown(command)))?;
    let said = Arc::new(Mutex::new(String::new()));
    let streams: [Box<dyn Read + Send>; 2] = [
        Box::new(child.stdout.take().expect("piped above")),
        Box::new(child.stderr.take().expect("piped above")),
    ];
    thread::scope(|scope| {
        for stream in streams {
            let (said, line) = (Arc::clone(&said), &line);
            scope.spawn(move || {
                for text in BufReader::new(stream).lines().map_while(Result::ok) {
                    line(&text);
                    let mut said = said.lock().expect("no holder panics");
                    said.push_str(&text);
                    said.push('\n');
                }
            });
        }
    });
    let status = child.wait()?;
    if !status.success() {
        let said = said.lock().expect("no holder panics");
        bail!("`{}` failed ({status}):\n{said}", shown(command));
    }
    Ok(())
}
