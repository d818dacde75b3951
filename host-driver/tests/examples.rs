//! Every example runs, and every example has its test here.

#![allow(
    clippy::duplicate_mod,
    reason = "each example has its own `support`, as when it is run"
)]

use std::collections::{BTreeMap, BTreeSet};

#[path = "../examples/cancel.rs"]
mod cancel;
#[path = "../examples/claim.rs"]
mod claim;
#[path = "../examples/completion_channel.rs"]
mod completion_channel;
#[path = "../examples/completion_queue.rs"]
mod completion_queue;
#[path = "../examples/connect.rs"]
mod connect;
#[cfg(target_os = "linux")]
#[path = "../examples/drain.rs"]
mod drain;
#[path = "../examples/event_fd.rs"]
mod event_fd;
#[path = "../examples/events.rs"]
mod events;
#[path = "../examples/gather.rs"]
mod gather;
#[path = "../examples/get.rs"]
mod get;
#[path = "../examples/grant.rs"]
mod grant;
#[path = "../examples/lists.rs"]
mod lists;
#[path = "../examples/messages.rs"]
mod messages;
#[path = "../examples/multi_receive.rs"]
mod multi_receive;
#[path = "../examples/pair_times.rs"]
mod pair_times;
#[path = "../examples/peers.rs"]
mod peers;
#[path = "../examples/put.rs"]
mod put;
#[path = "../examples/queries.rs"]
mod queries;
#[path = "../examples/ready_send.rs"]
mod ready_send;
#[path = "../examples/refusals.rs"]
mod refusals;
#[path = "../examples/reserve_peers.rs"]
mod reserve_peers;
#[path = "../examples/reset.rs"]
mod reset;
#[path = "../examples/revoke.rs"]
mod revoke;
#[path = "../examples/send_limits.rs"]
mod send_limits;
#[path = "../examples/shared_buffer.rs"]
mod shared_buffer;
#[path = "../examples/timeout.rs"]
mod timeout;
#[path = "../examples/unsignaled.rs"]
mod unsignaled;
#[path = "../examples/user_memory.rs"]
mod user_memory;

#[test]
fn cancel_runs() {
    cancel::main().unwrap();
}

#[test]
fn claim_runs() {
    claim::main().unwrap();
}

#[test]
fn completion_channel_runs() {
    completion_channel::main().unwrap();
}

#[test]
fn completion_queue_runs() {
    completion_queue::main().unwrap();
}

#[test]
fn connect_runs() {
    connect::main().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn drain_runs() {
    drain::main().unwrap();
}

#[test]
fn event_fd_runs() {
    event_fd::main().unwrap();
}

#[test]
fn events_runs() {
    events::main().unwrap();
}

#[test]
fn gather_runs() {
    gather::main().unwrap();
}

#[test]
fn get_runs() {
    get::main().unwrap();
}

#[test]
fn grant_runs() {
    grant::main().unwrap();
}

#[test]
fn lists_runs() {
    lists::main().unwrap();
}

#[test]
fn messages_runs() {
    messages::main().unwrap();
}

#[test]
fn multi_receive_runs() {
    multi_receive::main().unwrap();
}

#[test]
fn pair_times_runs() {
    pair_times::main().unwrap();
}

#[test]
fn peers_runs() {
    peers::main().unwrap();
}

#[test]
fn put_runs() {
    put::main().unwrap();
}

#[test]
fn queries_runs() {
    queries::main().unwrap();
}

#[test]
fn ready_send_runs() {
    ready_send::main().unwrap();
}

#[test]
fn reserve_peers_runs() {
    reserve_peers::main().unwrap();
}

#[test]
fn reset_runs() {
    reset::main().unwrap();
}

#[test]
fn refusals_runs() {
    refusals::main().unwrap();
}

#[test]
fn revoke_runs() {
    revoke::main().unwrap();
}

#[test]
fn send_limits_runs() {
    send_limits::main().unwrap();
}

#[test]
fn shared_buffer_runs() {
    shared_buffer::main().unwrap();
}

#[test]
fn timeout_runs() {
    timeout::main().unwrap();
}

#[test]
fn unsignaled_runs() {
    unsignaled::main().unwrap();
}

#[test]
fn user_memory_runs() {
    user_memory::main().unwrap();
}

/// The pages of the verbs by the names of their files, but for the one that only lists statuses.
fn pages() -> BTreeMap<String, String> {
    let verbs = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/verbs");
    let entries = std::fs::read_dir(verbs).unwrap();
    let pages = entries.map(|entry| {
        let entry = entry.unwrap();
        let page = std::fs::read_to_string(entry.path()).unwrap();
        (entry.file_name().into_string().unwrap(), page)
    });
    pages.filter(|(name, _)| name != "statuses.md").collect()
}

/// Whether a page shows an example.
fn shows(page: &str) -> bool {
    page.contains("{{#include ../../../host-driver/examples/")
}

/// Whether a page shows an example, or names one that does.
fn leads_to_an_example(page: &str, pages: &BTreeMap<String, String>) -> bool {
    let named = page.split("](").skip(1);
    let named = named.filter_map(|link| link.split_once("#example)").map(|(name, _)| name));
    shows(page)
        || named
            .filter_map(|name| pages.get(name))
            .any(|page| shows(page))
}

#[test]
fn every_page_of_a_verb_leads_to_an_example() {
    let pages = pages();
    assert!(pages.len() > 15, "{:?}", pages.keys());
    for (name, page) in &pages {
        assert!(leads_to_an_example(page, &pages), "{name} has no example");
    }
    // Neither a page without one nor a link to such a page is taken for an example.
    let bare = BTreeMap::from([("bare.md".to_owned(), "# Bare\n".to_owned())]);
    for page in [
        "# Bare\n",
        "[Bare](bare.md#example)",
        "[gone](gone.md#example)",
    ] {
        assert!(!leads_to_an_example(page, &bare), "{page}");
    }
}

/// Files of the library that what a program calls is in.
const CALLS: [&str; 26] = [
    include_str!("../src/claimed.rs"),
    include_str!("../src/completion.rs"),
    include_str!("../src/connection.rs"),
    include_str!("../src/device.rs"),
    include_str!("../src/domain.rs"),
    include_str!("../src/drain.rs"),
    include_str!("../src/endpoint.rs"),
    include_str!("../src/event_fd.rs"),
    include_str!("../src/group.rs"),
    include_str!("../src/peers.rs"),
    include_str!("../src/operation/cancel.rs"),
    include_str!("../src/operation/claim.rs"),
    include_str!("../src/operation/discard.rs"),
    include_str!("../src/operation/probe.rs"),
    include_str!("../src/operation/receive.rs"),
    include_str!("../src/operation/receive_claimed.rs"),
    include_str!("../src/operation/send.rs"),
    include_str!("../src/pair.rs"),
    include_str!("../src/query.rs"),
    include_str!("../src/region.rs"),
    include_str!("../src/revoked.rs"),
    include_str!("../src/rules.rs"),
    include_str!("../src/send_limits.rs"),
    include_str!("../src/shut_out.rs"),
    include_str!("../src/sweep.rs"),
    include_str!("../src/window.rs"),
];

/// Names of the public functions of a file.
fn calls(file: &str) -> impl Iterator<Item = &str> {
    let signatures = file.split("\n    pub fn ").skip(1);
    signatures.filter_map(|signature| {
        let end = signature.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        Some(&signature[..end])
    })
}

#[test]
fn every_call_of_a_program_is_on_a_page() {
    let pages: String = pages().into_values().collect();
    let words = pages.split(|c: char| !c.is_alphanumeric() && c != '_');
    let words: BTreeSet<&str> = words.collect();
    let all: Vec<&str> = CALLS.iter().copied().flat_map(calls).collect();
    assert!(all.len() > 60, "{all:?}");
    for call in all {
        assert!(words.contains(call), "no page names {call}");
    }
    let file = "impl X {\n    pub fn new_one<T>(self) {}\n\n    fn own(self) {}\n    pub(crate) fn ours() {}\n}";
    assert!(calls(file).eq(["new_one"]));
}

#[test]
fn every_example_has_its_test_and_its_page() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let pages: String = pages().into_values().collect();
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(name) = name.strip_suffix(".rs") {
            let test = format!("fn {name}_runs()");
            assert!(include_str!("examples.rs").contains(&test), "{name}");
            let shown = format!("examples/{name}.rs}}}}");
            assert!(pages.contains(&shown), "no page shows {name}");
        }
    }
}
