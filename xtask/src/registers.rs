//! The book's page of registers, layouts and codes, written from `abi` alone.

use std::fmt::Write as _;
use std::path::Path;

use abi::layout::Field;
use abi::opcode::{BufferUse, Completes, OPCODES, TargetUse, WorkRing};
use abi::register::{Access, Register};
use abi::{completion, control, event, mailbox, register, request, status, wire};
use anyhow::{Context, Result, bail};

/// Where the page lies, from the workspace's root.
pub const PATH: &str = "docs/src/registers.md";

/// Writes the page, or with `check` only sees whether it is what would be written.
///
/// # Errors
/// If the file can't be written, or with `check` if it is out of date.
pub fn run(root: &Path, check: bool) -> Result<()> {
    let path = root.join(PATH);
    let page = page();
    if check {
        let found = std::fs::read_to_string(&path).with_context(|| format!("reading {PATH}"))?;
        if found != page {
            bail!("{PATH} is out of date: run `cargo xtask registers`");
        }
        return Ok(());
    }
    std::fs::write(&path, page).with_context(|| format!("writing {PATH}"))
}

/// Text for a table cell: one line, intra-doc links as plain code.
fn cell(doc: &str) -> String {
    let mut text = String::new();
    let mut rest = doc.trim();
    while let Some(open) = rest.find("[`") {
        let Some(close) = rest[open..].find("`]") else {
            break;
        };
        let name = &rest[open + 2..open + close];
        write!(text, "{}`{name}`", &rest[..open]).expect("writing to a string");
        rest = &rest[open + close + 2..];
        if rest.starts_with('(')
            && let Some(end) = rest.find(')')
        {
            rest = &rest[end + 1..];
        }
    }
    text.push_str(rest);
    text.replace('|', "\\|").replace('\n', " ")
}

fn registers(page: &mut String, title: &str, table: &[Register]) {
    let _ = writeln!(
        page,
        "### {title}\n\n| offset | name | access | |\n|---|---|---|---|"
    );
    for register in table {
        let access = match register.access {
            Access::ReadOnly => "read",
            Access::WriteOnly => "write",
            Access::ReadWrite => "read, write",
        };
        let Register {
            offset, name, doc, ..
        } = register;
        let _ = writeln!(
            page,
            "| {offset:#05x} | `{name}` | {access} | {} |",
            cell(doc)
        );
    }
    page.push('\n');
}

fn layout(page: &mut String, name: &str, fields: &[Field]) {
    let bytes = fields.last().map_or(0, |last| (last.lsb + last.width) / 8);
    let _ = writeln!(
        page,
        "### {name}\n\n{bytes} bytes.\n\n| word | bits | field | |\n|---|---|---|---|"
    );
    for field in fields {
        let lsb = field.lsb % 64;
        let bits = match field.width {
            1 => lsb.to_string(),
            width => format!("{}:{lsb}", lsb + width - 1),
        };
        let name = field.name;
        let shown = if name.starts_with("reserved") {
            "reserved".into()
        } else {
            format!("`{name}`")
        };
        let _ = writeln!(
            page,
            "| {} | {bits} | {shown} | {} |",
            field.word(),
            cell(field.doc)
        );
    }
    page.push('\n');
}

macro_rules! codes {
    ($page:ident, $title:literal, $codes:ty) => {{
        let _ = writeln!($page, "### {}\n\n| code | name | |\n|---|---|---|", $title);
        for code in <$codes>::ALL {
            let _ = writeln!(
                $page,
                "| {:#04x} | `{code}` | {} |",
                code.code(),
                cell(code.doc())
            );
        }
        $page.push('\n');
    }};
}

/// What each opcode's row says.
fn opcodes(page: &mut String) {
    page.push_str(
        "### Requests by opcode\n\n\
         A request is *refused* if nothing but its completion came of it; it *ends* with a status otherwise. A request whose kind of completion is in brackets \
         completes only if it is refused; one with `+` also once for each message before the last, if it has `FLAG_MULTI`.\n\n\
         | opcode | ring | completion | flags | buffer | `pair` | `target` | cancelled by | refused with | ends with |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in OPCODES {
        let ring = match row.ring {
            WorkRing::Send => "send",
            WorkRing::List => "list",
        };
        let kind = match row.completes {
            Completes::Once => format!("`{}`", row.kind),
            Completes::OnceOrMore => format!("`{}` +", row.kind),
            Completes::IfRefused => format!("(`{}`)", row.kind),
        };
        let names = request_flags(row.opcode);
        let flags = names.iter().filter(|(_, flag)| row.flags & flag != 0);
        let flags: Vec<_> = flags.map(|(name, _)| format!("`{name}`")).collect();
        let buffer = match row.buffer {
            BufferUse::None => "–",
            BufferUse::Read => "read",
            BufferUse::Write => "written",
        };
        let any_source = row.ring == WorkRing::List && row.flags & request::FLAG_ANY_SOURCE != 0;
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
        let statuses = |all: &[status::Status]| match all {
            [] => "–".into(),
            all => {
                let all: Vec<_> = all.iter().map(|status| format!("`{status}`")).collect();
                all.join(", ")
            }
        };
        let flags = match flags.as_slice() {
            [] => "–".into(),
            flags => flags.join(", "),
        };
        let (refusals, ends) = (statuses(row.refusals), statuses(row.ends));
        let _ = writeln!(
            page,
            "| `{}` | {ring} | {kind} | {flags} | {buffer} | {pair} | {target} | {cancelled} | {refusals} | {ends} |",
            row.opcode
        );
    }
    page.push('\n');
}

/// Names of the flags of a ring's requests: the same bit has another name in the other ring.
fn request_flags(opcode: request::Opcode) -> &'static [(&'static str, u8)] {
    match opcode.row().ring {
        WorkRing::Send => &[("FLAG_READY", request::FLAG_READY)],
        WorkRing::List => &[
            ("FLAG_ANY_SOURCE", request::FLAG_ANY_SOURCE),
            ("FLAG_RESUME", request::FLAG_RESUME),
            ("FLAG_MULTI", request::FLAG_MULTI),
            ("FLAG_NOTHING_KEPT", request::FLAG_NOTHING_KEPT),
        ],
    }
}

/// The page.
pub fn page() -> String {
    let mut page = String::from(
        "<!-- Written by `cargo xtask registers` from the crate `abi`. Change it there. -->\n\n\
         # Registers, layouts and codes\n\n\
         Everything that two rooms share, from the one place where it is declared. Bits are counted \
         from the least significant; words are 64 bits, little-endian.\n\n## Registers\n\n",
    );
    let _ = writeln!(
        page,
        "The register window is {} bytes a page: page 0 is the mailbox page, page 1 + e the doorbell page of endpoint e.\n",
        register::PAGE_BYTES
    );
    registers(&mut page, "Mailbox page", register::MAILBOX_PAGE);
    registers(&mut page, "Doorbell page", register::ENDPOINT_PAGE);
    page.push_str("## Work requests\n\n");
    layout(&mut page, "SendRequest", request::SendRequest::FIELDS);
    layout(&mut page, "ListRequest", request::ListRequest::FIELDS);
    codes!(page, "Opcode", request::Opcode);
    opcodes(&mut page);
    page.push_str("## Completions and events\n\n");
    layout(&mut page, "Completion", completion::Completion::FIELDS);
    codes!(page, "CompletionKind", completion::CompletionKind);
    codes!(page, "Status", status::Status);
    layout(&mut page, "Event", event::Event::FIELDS);
    codes!(page, "Cause", event::Cause);
    page.push_str("## Frames\n\n");
    layout(&mut page, "FrameHeader", wire::FrameHeader::FIELDS);
    codes!(page, "FrameType", wire::FrameType);
    page.push_str("## Mailbox\n\n");
    codes!(page, "Command", mailbox::Command);
    codes!(page, "MailboxStatus", status::MailboxStatus);
    codes!(page, "PairState", mailbox::PairState);
    page.push_str("## Control requests of the firmware\n\n");
    codes!(page, "Operation", control::Operation);
    layout(&mut page, "CardSetup", control::CardSetup::FIELDS);
    layout(&mut page, "MatchSetup", control::MatchSetup::FIELDS);
    layout(&mut page, "RingSetup", control::RingSetup::FIELDS);
    layout(&mut page, "EndpointSetup", control::EndpointSetup::FIELDS);
    layout(&mut page, "PairSetup", control::PairSetup::FIELDS);
    layout(&mut page, "PairReport", control::PairReport::FIELDS);
    layout(&mut page, "RegionSetup", control::RegionSetup::FIELDS);
    codes!(page, "Counter", control::Counter);
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_book_is_current() {
        run(&crate::paths::workspace(), true).unwrap();
    }

    #[test]
    fn every_flag_that_an_opcode_may_have_has_a_name() {
        for row in OPCODES {
            let named = request_flags(row.opcode).iter();
            let named = named.fold(0, |all, (_, flag)| all | flag);
            assert_eq!(row.flags & !named, 0, "{row:?}");
        }
    }

    #[test]
    fn links_of_the_documentation_become_code() {
        assert_eq!(
            cell(" Bits [`A`](crate::A), [`B`]: a|b"),
            "Bits `A`, `B`: a\\|b"
        );
    }
}
