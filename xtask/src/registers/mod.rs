//! The book's pages of registers, layouts, commands and codes, written from `abi` alone.

mod tables;

use std::path::Path;

use abi::mailbox::Command;
use abi::request::Opcode;
use abi::{
    capability, completion, control, event, limits, mailbox, mgmt, register, request, times, wire,
};
use anyhow::{Context, Result, bail};

use tables::Page;

/// Writes a page.
type Writer = fn() -> String;

/// The pages, under `docs/src`.
const PAGES: &[(&str, Writer)] = &[
    ("registers.md", registers),
    ("requests.md", requests),
    ("completions.md", completions),
    ("statuses.md", statuses),
    ("commands.md", commands),
    ("pair-commands.md", pair_commands),
    ("command-codes.md", command_codes),
    ("frames.md", frames),
    ("control-requests.md", control_requests),
    ("verbs/statuses.md", verb_statuses),
    ("management-registers.md", management_registers),
];

/// Writes the pages, or with `check` only sees whether they are what would be written.
///
/// # Errors
/// If a file can't be written, or with `check` if one is out of date.
pub fn run(root: &Path, check: bool) -> Result<()> {
    for (name, page) in PAGES {
        let path = root.join("docs/src").join(name);
        if !check {
            std::fs::write(&path, page()).with_context(|| format!("writing {}", path.display()))?;
            continue;
        }
        let found = std::fs::read_to_string(&path)
            .with_context(|| format!("reading {}", path.display()))?;
        if found != page() {
            bail!("docs/src/{name} is out of date: run `cargo xtask registers`");
        }
    }
    Ok(())
}

fn registers() -> String {
    let mut page = Page::new(
        "Registers, limits and times",
        "The card's registers are a window of 32-bit words, little-endian: AXI4-Lite, written and read by whole words. A write without all four strobes is answered \
         SLVERR and ignored. What isn't in the tables reads as zero and ignores writes. [Writing a driver](writing-a-driver.md) says what to do with them.",
    );
    page.section("Window").constants(&[register::WINDOW]);
    page.section("Mailbox page")
        .prose("Page 0. It is privileged: who can write it can do anything with the card.")
        .registers(register::MAILBOX_PAGE);
    page.constants(&[register::VALUES, &[ABI_VERSION]]);
    page.section("Doorbell page")
        .prose(
            "Page 1 + *e* is that of endpoint *e*, and writes to it are the endpoint's. Indices are 16 bits; a doorbell with a bit above them set is ignored, counted, \
             and raises an event.",
        )
        .registers(register::ENDPOINT_PAGE);
    page.section("Limits")
        .prose("Of every card. What depends on its configuration is the answer of [`Identify`](commands.md#identify).")
        .constants(&[limits::LIMITS]);
    page.section("Times")
        .prose("In cycles of the card's clock. Times in seconds are for 125 MHz.")
        .constants(&[times::TIMES]);
    page.section("Memory of the management processor")
        .prose("As the processor sees it, and so as `LOADER_ADDRESS` counts.")
        .constants(&[mgmt::MEMORY]);
    page.text()
}

/// What [`register::ABI`] reads.
const ABI_VERSION: abi::Constant = abi::Constant {
    name: "ABI_VERSION",
    value: abi::ABI_VERSION as u64,
    doc: "What `ABI` and `abi_version` of `Identify` read. A driver that finds another version refuses the card.",
};

fn requests() -> String {
    let mut page = Page::new(
        "Work requests",
        "Entries of an endpoint's two rings. Bits are counted from the least significant; words are 64 bits, little-endian. Reserved fields are zero, or the request \
         is refused as `InvalidRequest`; a field that the opcode doesn't use is not looked at, except `min_free`, which is zero without `FLAG_MULTI`.",
    );
    let (send, list) = (request::SendRequest::FIELDS, request::ListRequest::FIELDS);
    page.layout("SendRequest", request::SendRequest::ABOUT, send);
    let segments = request::SendSegments::FIELDS;
    page.layout("SendSegments", request::SendSegments::ABOUT, segments);
    page.layout("ListRequest", request::ListRequest::ABOUT, list);
    page.codes("Opcode", request::Opcode::ABOUT, request::Opcode::CODES);
    page.section("Sizes and flags");
    page.constants(&[request::SIZES, request::FLAGS]);
    page.section("Requests by opcode").prose(
        "A request is *refused* if nothing but its completion came of it; it *ends* with a status otherwise. A request whose kind of completion is in brackets \
         completes only if it is refused; one with `+` also once for each message before the last, if it has `FLAG_MULTI`. An opcode that its ring doesn't have \
         completes with the kind `Unknown`.",
    );
    page.opcodes();
    page.text()
}

fn completions() -> String {
    let mut page = Page::new(
        "Completions and events",
        "Entries of an endpoint's two queues. Bits are counted from the least significant; words are 64 bits, little-endian. The card writes an entry with its last \
         word last; `phase` says that it is there. Of a completion it writes the last words only, as many as [the kind](#completionkind) has: what lies in front of them is \
         of an earlier entry, and is not to be read.",
    );
    let fields = completion::Completion::FIELDS;
    page.layout("Completion", completion::Completion::ABOUT, fields);
    page.prose(
        "A receive, a probe or a claim that found a message has its `match_bits`, `immediate`, `length`, `pair` and `context`, whatever the status; one that found none has \
         zeros there. A send has its own `pair` and `context`. Its length the card doesn't tell: whoever posted it knows.",
    );
    page.constants(&[completion::CONSTANTS]);
    page.completion_kinds();
    page.layout("Event", event::Event::ABOUT, event::Event::FIELDS);
    page.constants(&[event::CONSTANTS]);
    page.prose("What each [status](statuses.md#status) and [cause](statuses.md#cause) means is on a page of its own.");
    page.text()
}

fn statuses() -> String {
    let mut page = Page::new(
        "Statuses and causes",
        "The command `posthorn explain` prints a row of these tables: `posthorn explain QueueFull` by the name, `posthorn explain 13` by the number, then of each \
         table that has it. Times by name, such as `REFUSAL_INTERVAL`, are [among the registers](registers.md#times).",
    );
    page.explained("Status");
    page.explained("Cause");
    page.text()
}

/// Commands that concern pairs, which have a page of their own.
const OF_PAIRS: [Command; 12] = [
    Command::OpenPair,
    Command::ConnectPair,
    Command::ClosePair,
    Command::QueryPair,
    Command::Connect,
    Command::Accept,
    Command::Disconnect,
    Command::Reserve,
    Command::SetPairTimes,
    Command::ReadPairCounter,
    Command::SetShutOut,
    Command::ReadShutOut,
];

fn commands() -> String {
    let mut page = Page::new(
        "Mailbox commands",
        "What the words of the command area and of the answer area are. Word 0 of a command is its code, word 0 of an answer its \
         [status](command-codes.md#mailboxstatus). Words are 32 bits; a 64-bit field takes two, low word first. `number` counts the arguments: it is what word 1 of \
         an answer with `InvalidArgument` holds. Words beyond a command's arguments are not looked at. Commands that concern pairs are on \
         [their own page](pair-commands.md).",
    );
    page.prose(
        "Endpoints, pairs and domains are named by ids. A driver keeps all 32 bits of an id and gives them back; the *place* of the object is in the low bits, and is what doorbell \
         pages, work requests, completions, events and frames name it by.",
    );
    page.constants(&[
        mailbox::CONSTANTS,
        control::RIGHTS,
        control::GRANTS,
        control::COVERS,
        abi::key::REMOTE_KEYS,
    ]);
    page.prose(
        "What only some cards have, `capabilities` of `Identify` tells. A flag or an opcode of a capability that the card hasn't is unknown to it.",
    );
    page.constants(&[capability::CAPABILITIES]);
    let all = Command::ALL.iter();
    all.filter(|command| !OF_PAIRS.contains(command))
        .for_each(|&command| page.command(command));
    page.text()
}

fn pair_commands() -> String {
    let mut page = Page::new(
        "Mailbox commands of pairs",
        "As on [the page before](commands.md). [Writing a driver](driver-messages.md#connecting) says in which order they come.",
    );
    OF_PAIRS.iter().for_each(|&command| page.command(command));
    page.text()
}

fn command_codes() -> String {
    let mut page = Page::new(
        "Codes of the mailbox",
        "What [commands](commands.md) answer, and the states and reasons that are in their results. The command `posthorn explain` \
         prints a row of these tables: `posthorn explain NoEnvelopes` by the name, `posthorn explain 4` by the number, then of each table that has it.",
    );
    page.explained("MailboxStatus");
    page.words::<mailbox::Undrained>();
    page.explained("PairState");
    page.explained("ConnectReason");
    let states = mailbox::DrainState::CODES;
    page.codes("DrainState", mailbox::DrainState::ABOUT, states);
    page.section("Counters and audit entries");
    page.codes("Counter", control::Counter::ABOUT, control::Counter::CODES);
    page.codes(
        "PairCounter",
        control::PairCounter::ABOUT,
        control::PairCounter::CODES,
    );
    page.codes(
        "RefusalReason",
        control::RefusalReason::ABOUT,
        control::RefusalReason::CODES,
    );
    let kinds = mailbox::AuditKind::CODES;
    page.codes("AuditKind", mailbox::AuditKind::ABOUT, kinds);
    page.text()
}

fn frames() -> String {
    let mut page = Page::new(
        "Layout of frames",
        "Bits are counted from the least significant; words are 64 bits, little-endian. [The wire format](wire-format.md) says what they are for. No host sees a frame.",
    );
    page.layout(
        "FrameHeader",
        wire::FrameHeader::ABOUT,
        wire::FrameHeader::FIELDS,
    );
    page.constants(&[wire::CONSTANTS]);
    page.explained("FrameType");
    let body = wire::ManagementBody::FIELDS;
    page.layout("ManagementBody", wire::ManagementBody::ABOUT, body);
    let kinds = wire::ManagementKind::CODES;
    page.codes("ManagementKind", wire::ManagementKind::ABOUT, kinds);
    let reports = wire::DrainReport::CODES;
    page.codes("DrainReport", wire::DrainReport::ABOUT, reports);
    page.text()
}

fn control_requests() -> String {
    let mut page = Page::new(
        "Control requests of the firmware",
        "How the firmware changes the tables of the gates; no host does. Bits are counted from the least significant; words are 64 bits.",
    );
    let operations = control::Operation::CODES;
    page.codes("Operation", control::Operation::ABOUT, operations);
    page.constants(&[control::SIZES, control::RINGS, control::PAIR_COUNTERS]);
    page.layout(
        "CardSetup",
        control::CardSetup::ABOUT,
        control::CardSetup::FIELDS,
    );
    page.layout(
        "MatchSetup",
        control::MatchSetup::ABOUT,
        control::MatchSetup::FIELDS,
    );
    page.layout(
        "EventSetup",
        control::EventSetup::ABOUT,
        control::EventSetup::FIELDS,
    );
    page.layout(
        "RingSetup",
        control::RingSetup::ABOUT,
        control::RingSetup::FIELDS,
    );
    page.layout(
        "EndpointSetup",
        control::EndpointSetup::ABOUT,
        control::EndpointSetup::FIELDS,
    );
    page.layout(
        "PairSetup",
        control::PairSetup::ABOUT,
        control::PairSetup::FIELDS,
    );
    page.layout(
        "PairReport",
        control::PairReport::ABOUT,
        control::PairReport::FIELDS,
    );
    page.layout(
        "ShutOutSetup",
        control::ShutOutSetup::ABOUT,
        control::ShutOutSetup::FIELDS,
    );
    page.layout(
        "ShutOutReport",
        control::ShutOutReport::ABOUT,
        control::ShutOutReport::FIELDS,
    );
    page.layout(
        "RegionSetup",
        control::RegionSetup::ABOUT,
        control::RegionSetup::FIELDS,
    );
    page.layout(
        "GrantSetup",
        control::GrantSetup::ABOUT,
        control::GrantSetup::FIELDS,
    );
    page.layout(
        "MintSetup",
        control::MintSetup::ABOUT,
        control::MintSetup::FIELDS,
    );
    page.layout(
        "PermissionSetup",
        control::PermissionSetup::ABOUT,
        control::PermissionSetup::FIELDS,
    );
    page.layout(
        "FenceSetup",
        control::FenceSetup::ABOUT,
        control::FenceSetup::FIELDS,
    );
    page.layout(
        "AccessReport",
        control::AccessReport::ABOUT,
        control::AccessReport::FIELDS,
    );
    page.text()
}

/// Verbs that have a table of statuses, with the anchor by which their pages include it.
const VERBS: [(&str, &str, Opcode); 8] = [
    ("A send", "tagged_send", Opcode::TaggedSend),
    ("A put", "put", Opcode::Put),
    ("A get", "get", Opcode::Get),
    ("A receive", "tagged_receive", Opcode::TaggedReceive),
    ("A probe or a claim", "probe", Opcode::Probe),
    (
        "A receive of a claimed message",
        "receive_claimed",
        Opcode::ReceiveClaimed,
    ),
    ("A discard of a claimed message", "discard", Opcode::Discard),
    ("A cancel", "cancel", Opcode::Cancel),
];

fn verb_statuses() -> String {
    let mut page = Page::new(
        "Statuses by request",
        "What the completion of a request may say to a program that uses [the host library](../host-driver.md). A request is *refused* if nothing but its \
         completion came of it. What the card says about a full list is between it and the library, which posts such requests again; and of a full queue of sends it \
         never has to, as the library counts. `InvalidRequest` and `InvalidClaim` say that the card has read another request than the library wrote.",
    );
    for (title, anchor, opcode) in VERBS {
        page.section(title).verb(anchor, opcode.row());
    }
    page.text()
}

fn management_registers() -> String {
    let mut page = Page::new(
        "Registers of the management processor",
        "How the firmware sees the card; no host does. Offsets are from `REGISTER_BASE` in the processor's address map. Registers are 32 bits and accessed by whole words.",
    );
    page.registers(mgmt::REGISTERS);
    page.constants(&[mgmt::VALUES, mgmt::MEMORY]);
    page.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_library_posts_has_its_statuses_and_equals_have_one_table() {
        for &opcode in Opcode::ALL {
            let row = opcode.row();
            let statuses = |row: &abi::opcode::OpcodeRow| (row.refusals, row.ends);
            let shown = VERBS.iter().any(|(.., shown)| {
                let shown = shown.row();
                shown.kind == row.kind || statuses(shown) == statuses(row)
            });
            assert!(shown, "{opcode}");
        }
    }

    #[test]
    fn the_pages_in_the_book_are_current() {
        run(&crate::paths::workspace(), true).unwrap();
    }
}
