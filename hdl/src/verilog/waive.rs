//! The Verilator warnings that the printed text waives, each with its reason.
//!
//! Everything else that `verilator --lint-only -Wall` says about the text is an error of the
//! printer's or a fact about the design, and is left to be seen. A waiver is printed around the
//! lines that need it and nowhere else.

/// A waived warning.
pub struct Waiver {
    /// Verilator's name of the warning.
    pub warning: &'static str,
    /// Why it says nothing here.
    pub reason: &'static str,
}

/// All waivers that the printer uses.
pub static WAIVERS: [&Waiver; 5] = [&FILE_NAME, &RANGE, &SIGN, &UNREAD, &INITIAL];

/// Those that hold for the whole text.
pub(crate) static EVERYWHERE: [&Waiver; 3] = [&FILE_NAME, &RANGE, &SIGN];

pub(crate) static FILE_NAME: Waiver = Waiver {
    warning: "DECLFILENAME",
    reason: "one file holds the whole design",
};

pub(crate) static RANGE: Waiver = Waiver {
    warning: "CMPCONST",
    reason: "at the end of its range a size makes a comparison constant",
};

pub(crate) static SIGN: Waiver = Waiver {
    warning: "UNSIGNED",
    reason: "likewise, at zero",
};

pub(crate) static UNREAD: Waiver = Waiver {
    warning: "UNUSEDSIGNAL",
    reason: "a bundle or a child offers more than this block reads",
};

pub(crate) static INITIAL: Waiver = Waiver {
    warning: "PROCASSINIT",
    reason: "a register starts from its reset value",
};

/// Declarations, each with the waivers that it needs. Neighbours with the same ones share them.
#[derive(Default)]
pub(crate) struct Declarations(Vec<(Vec<&'static Waiver>, String)>);

impl Declarations {
    pub(crate) fn add(&mut self, text: String, waivers: &[(&'static Waiver, bool)]) {
        let needed = waivers.iter().filter(|(_, needed)| *needed);
        self.0
            .push((needed.map(|(waiver, _)| *waiver).collect(), text));
    }

    /// Brings declarations with the same waivers together, the plain ones first.
    pub(crate) fn sorted(mut self) -> Self {
        let rank = |w: &Vec<&Waiver>| w.iter().map(|w| w.warning).collect::<Vec<_>>();
        self.0.sort_by_key(|(waivers, _)| rank(waivers));
        self
    }

    pub(crate) fn print(&self) -> String {
        let mut out = String::new();
        for run in self.0.chunk_by(|a, b| same(&a.0, &b.0)) {
            let waivers = &run[0].0;
            for waiver in waivers {
                out += &format!("  {}\n", waiver.begin());
            }
            for (_, text) in run {
                out += &format!("  {text}\n");
            }
            for waiver in waivers.iter().rev() {
                out += &format!("  {}\n", waiver.end());
            }
        }
        out
    }
}

fn same(a: &[&Waiver], b: &[&Waiver]) -> bool {
    a.iter().map(|w| w.warning).eq(b.iter().map(|w| w.warning))
}

impl Waiver {
    pub(crate) fn begin(&self) -> String {
        format!(
            "/* verilator lint_off {} */ // {}",
            self.warning, self.reason
        )
    }

    pub(crate) fn end(&self) -> String {
        format!("/* verilator lint_on {} */", self.warning)
    }
}
