//! Tables of the generated pages, in Markdown.

use abi::Constant;
use abi::capability;
use abi::completion::{CompletionKind, words_written};
use abi::explain::{CodeSet, Explanation, Plain};
use abi::layout::Field;
use abi::mailbox::{Command, WordField, Words};
use abi::opcode::{BufferUse, Completes, OPCODES, OpcodeRow, TargetUse, WorkRing};
use abi::register::{Access, Register};
use abi::request;
use abi::status::{Code, Status};

/// Text for a table cell: one line, without links.
pub fn cell(doc: &'static str) -> String {
    Plain(doc)
        .to_string()
        .replace('|', "\\|")
        .replace('\n', " ")
}

/// Numbers of the words of a field.
fn words_of(field: &WordField) -> String {
    match field.words {
        1 => field.word.to_string(),
        _ => format!("{}, {}", field.word, field.word + 1),
    }
}

/// Its name, as code.
fn name_of(field: &WordField) -> String {
    format!("`{}`", field.name)
}

/// Longest line of prose, in characters.
const LINE: usize = 155;

/// Statuses that the library doesn't show: it posts again what the card had no room for, and never gives it more sends than it holds.
const BETWEEN_CARD_AND_LIBRARY: [Status; 3] = [Status::ListFull, Status::Behind, Status::QueueFull];

/// A page that is being written.
pub struct Page(String);

impl Page {
    /// A page with this title and these first words.
    pub fn new(title: &str, words: &str) -> Self {
        let mut page = Self(String::from(
            "<!-- Written by `cargo xtask registers` from the crate `abi`. Change it there. -->\n\n",
        ));
        page.line(&format!("# {title}\n"));
        page.prose(words);
        page
    }

    /// The text.
    pub fn text(mut self) -> String {
        self.0.truncate(self.0.trim_end().len());
        self.0.push('\n');
        self.0
    }

    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// A heading.
    pub fn section(&mut self, title: &str) -> &mut Self {
        self.line(&format!("## {title}\n"));
        self
    }

    /// A paragraph.
    pub fn prose(&mut self, words: &str) -> &mut Self {
        let mut line = String::new();
        for word in words.split(' ') {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > LINE {
                self.line(&line);
                line.clear();
            } else if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.line(&(line + "\n"));
        self
    }

    fn table(&mut self, columns: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
        self.line(&format!("| {} |", columns.join(" | ")).replace("|  |", "| |"));
        self.line(&format!("|{}", "---|".repeat(columns.len())));
        for row in rows {
            self.line(&format!("| {} |", row.join(" | ")));
        }
        self.line("");
    }

    /// What a request of the library completes with, between anchors by which another page includes it.
    pub fn verb(&mut self, anchor: &str, row: &OpcodeRow) {
        let refusals = row.refusals.iter().map(|status| (status, "refused"));
        let ends = row.ends.iter().map(|status| (status, "ended"));
        // A use of a claim that is refused because its pair was closed is flushed, as far as the program sees.
        let uses_claim = row.target == TargetUse::Claim;
        let flushed = uses_claim.then_some((&Status::Flushed, "ended"));
        // The library cuts what is too long for the card.
        let in_parts = matches!(row.opcode, request::Opcode::Put | request::Opcode::Get);
        let cut = |status: &Status| in_parts && *status == Status::TooLong;
        let seen = ends
            .chain(flushed)
            .chain(refusals)
            .filter(|(status, _)| !BETWEEN_CARD_AND_LIBRARY.contains(status) && !cut(status));
        let rows = seen.map(|(status, how)| {
            let Explanation { cause, help } = status.explanation();
            vec![format!("`{status}`"), how.into(), cell(cause), cell(help)]
        });
        self.line(&format!("<!-- ANCHOR: {anchor} -->"));
        self.table(&["status", "", "what causes it", "what helps"], rows);
        self.line(&format!("<!-- ANCHOR_END: {anchor} -->\n"));
    }

    /// Registers of a page of the window.
    pub fn registers(&mut self, table: &[Register]) {
        let rows = table.iter().map(|register| {
            let access = match register.access {
                Access::ReadOnly => "read",
                Access::WriteOnly => "write",
                Access::ReadWrite => "read, write",
            };
            vec![
                format!("{:#05x}", register.offset),
                format!("`{}`", register.name),
                access.into(),
                cell(register.doc),
            ]
        });
        self.table(&["offset", "name", "access", ""], rows);
    }

    /// Constants with their values.
    pub fn constants(&mut self, tables: &[&[Constant]]) {
        let rows = tables.iter().copied().flatten().map(|constant| {
            vec![
                format!("`{}`", constant.name),
                constant.value.to_string(),
                format!("{:#x}", constant.value),
                cell(constant.doc),
            ]
        });
        self.table(&["name", "value", "hex", ""], rows);
    }

    /// A packed structure.
    pub fn layout(&mut self, name: &str, about: &'static str, fields: &[Field]) {
        let bytes = fields.last().map_or(0, |last| (last.lsb + last.width) / 8);
        self.line(&format!("### {name}\n"));
        self.prose(&format!("{} {bytes} bytes.", cell(about)));
        let rows = fields.iter().map(|field| {
            let lsb = field.lsb % 64;
            let bits = match field.width {
                1 => lsb.to_string(),
                width => format!("{}:{lsb}", lsb + width - 1),
            };
            let shown = match field.name {
                name if name.starts_with("reserved") => "reserved".into(),
                name => format!("`{name}`"),
            };
            vec![field.word().to_string(), bits, shown, cell(field.doc)]
        });
        self.table(&["word", "bits", "field", ""], rows);
    }

    /// Codes with what they mean.
    pub fn codes(&mut self, title: &str, about: &'static str, codes: &[Code]) {
        self.line(&format!("### {title}\n"));
        self.prose(&cell(about));
        let rows = codes.iter().map(|code| {
            vec![
                format!("{:#04x}", code.number),
                format!("`{}`", code.name),
                cell(code.doc),
            ]
        });
        self.table(&["code", "name", ""], rows);
    }

    /// Kinds of completions with the words that the card writes of each.
    pub fn completion_kinds(&mut self) {
        self.line("### CompletionKind\n");
        self.prose(&cell(CompletionKind::ABOUT));
        let rows = CompletionKind::CODES.iter().map(|code| {
            vec![
                format!("{:#04x}", code.number),
                format!("`{}`", code.name),
                words_written(code.number).to_string(),
                cell(code.doc),
            ]
        });
        self.table(&["code", "name", "words", ""], rows);
    }

    /// Codes with what they mean, what causes them and what helps.
    pub fn explained(&mut self, name: &str) {
        let set = set(name);
        self.section(name).prose(&cell(set.about));
        let rows = set.codes.iter().map(|code| {
            let Explanation { cause, help } =
                (set.explanation)(code.number).expect("a code of the set");
            vec![
                format!("{:#04x}", code.number),
                format!("`{}`", code.name),
                cell(code.doc),
                cell(cause),
                cell(help),
            ]
        });
        self.table(
            &[
                "code",
                "name",
                "what it means",
                "what causes it",
                "what helps",
            ],
            rows,
        );
    }

    /// Words of an answer that aren't the results of one command.
    pub fn words<R: Words>(&mut self) {
        self.section(R::NAME).prose(&cell(R::ABOUT));
        let rows = R::FIELDS.iter();
        let rows = rows.map(|field| vec![words_of(field), name_of(field), cell(field.doc)]);
        self.table(&["word", "result", ""], rows);
    }

    /// A mailbox command: what it does, its arguments and its results.
    pub fn command(&mut self, command: Command) {
        let layout = command.layout();
        // "Argument of `OpenDomain`." says nothing here; what follows does.
        let more = layout.about.split_once(". ").map_or("", |(_, more)| more);
        let does = format!(
            "Code {}. {} {}",
            command.code(),
            cell(command.doc()),
            cell(more)
        );
        self.section(command.name()).prose(does.trim_end());
        if layout.arguments.is_empty() {
            self.prose("No arguments.");
        } else {
            let rows = layout.arguments.iter().enumerate().map(|(number, field)| {
                vec![
                    words_of(field),
                    number.to_string(),
                    name_of(field),
                    cell(field.doc),
                ]
            });
            self.table(&["word", "number", "argument", ""], rows);
        }
        if layout.results.is_empty() {
            self.prose("No results.");
        } else {
            let rows = layout.results.iter();
            let rows = rows.map(|field| vec![words_of(field), name_of(field), cell(field.doc)]);
            self.table(&["word", "result", ""], rows);
        }
    }

    /// What each opcode's row says.
    pub fn opcodes(&mut self) {
        let rows = OPCODES.iter().map(|row| {
            let ring = match row.ring {
                WorkRing::Send => "send",
                WorkRing::List => "list",
            };
            let kind = match row.completes {
                Completes::Once => format!("`{}`", row.kind),
                Completes::OnceOrMore => format!("`{}` +", row.kind),
                Completes::IfRefused => format!("(`{}`)", row.kind),
            };
            let names = request_flags(row.opcode).iter();
            let flags = names.filter(|(_, flag)| row.flags_with(capability::ALL) & flag != 0);
            let buffer = match row.buffer {
                BufferUse::None => "–",
                BufferUse::Read => "read",
                BufferUse::Write => "written",
            };
            let any_source =
                row.ring == WorkRing::List && row.flags & request::FLAG_ANY_SOURCE != 0;
            let pair = match (row.pair, any_source) {
                (true, false) => "needed",
                (true, true) => "needed without `FLAG_ANY_SOURCE`",
                (false, _) => "–",
            };
            let target = match row.target {
                TargetUse::None => "–",
                TargetUse::Request => "`request` to cancel",
                TargetUse::Claim => "`handle` of a claim",
            };
            let cancelled = row.cancelled_by.map_or("–".into(), |by| format!("`{by}`"));
            vec![
                format!("`{}`", row.opcode),
                ring.into(),
                kind,
                listed(flags.map(|(name, _)| *name)),
                buffer.into(),
                pair.into(),
                target.into(),
                cancelled,
                listed(row.refusals.iter().map(|status| Status::name(*status))),
                listed(row.ends.iter().map(|status| Status::name(*status))),
            ]
        });
        self.table(
            &[
                "opcode",
                "ring",
                "completion",
                "flags",
                "buffer",
                "`pair`",
                "`target`",
                "cancelled by",
                "refused with",
                "ends with",
            ],
            rows,
        );
    }
}

/// The set of this name.
fn set(name: &str) -> &'static CodeSet {
    let mut sets = abi::explain::SETS.iter();
    sets.find(|set| set.name == name).expect("a set of abi")
}

/// Names as code, or a dash.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => "–".into(),
        names => names.join(", "),
    }
}

/// Names of the flags of a ring's requests: the same bit has another name in the other ring.
fn request_flags(opcode: request::Opcode) -> &'static [(&'static str, u8)] {
    match opcode.row().ring {
        WorkRing::Send => &[
            ("FLAG_READY", request::FLAG_READY),
            ("FLAG_ERRORS_ONLY", request::FLAG_ERRORS_ONLY),
            ("FLAG_GATHER", request::FLAG_GATHER),
            ("FLAG_INLINE", request::FLAG_INLINE),
        ],
        WorkRing::List => &[
            ("FLAG_ANY_SOURCE", request::FLAG_ANY_SOURCE),
            ("FLAG_RESUME", request::FLAG_RESUME),
            ("FLAG_MULTI", request::FLAG_MULTI),
            ("FLAG_NOTHING_KEPT", request::FLAG_NOTHING_KEPT),
            ("FLAG_PAST_RULES", request::FLAG_PAST_RULES),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_that_an_opcode_may_have_has_a_name() {
        for row in OPCODES {
            let named = request_flags(row.opcode).iter();
            let named = named.fold(0, |all, (_, flag)| all | flag);
            assert_eq!(row.flags_with(capability::ALL) & !named, 0, "{row:?}");
        }
    }

    #[test]
    fn a_cell_ends_where_its_text_does() {
        assert_eq!(cell(" a|[`b`]\n c"), "a\\|`b`  c");
    }
}
