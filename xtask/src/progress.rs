//! Progress of long steps: bars on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// One long step on screen.
pub struct Progress {
    bar: ProgressBar,
    plain: bool,
}

impl Progress {
    /// A step whose length isn't known: a spinner.
    pub fn spinner(title: &str) -> Self {
        let style = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {wide_msg:.dim}");
        Self::start(
            title,
            ProgressBar::new_spinner(),
            style.expect("the template is right"),
        )
    }

    /// A step of `length` parts: a bar.
    pub fn bar(title: &str, length: u64) -> Self {
        let style = ProgressStyle::with_template(
            "{prefix} [{bar:30}] {pos}/{len} {elapsed} {wide_msg:.dim}",
        );
        let style = style.expect("the template is right").progress_chars("=> ");
        Self::start(title, ProgressBar::new(length), style)
    }

    fn start(title: &str, bar: ProgressBar, style: ProgressStyle) -> Self {
        let plain = !std::io::stderr().is_terminal();
        if plain {
            eprintln!("{title} ...");
        }
        bar.set_style(style);
        bar.set_prefix(title.to_string());
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar, plain }
    }

    /// What is being done right now. Shown on a terminal only.
    pub fn doing(&self, what: &str) {
        self.bar.set_message(what.to_string());
    }

    /// One part is done.
    pub fn advance(&self) {
        self.bar.inc(1);
    }

    /// More parts were found.
    pub fn lengthen(&self, parts: u64) {
        self.bar.inc_length(parts);
    }

    /// A line that stays.
    pub fn line(&self, text: &str) {
        if self.plain {
            eprintln!("  {text}");
        } else {
            self.bar.println(format!("  {text}"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
