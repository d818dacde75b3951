//! Every example runs, and every example has its test here.

#![allow(
    clippy::duplicate_mod,
    reason = "each example has its own `support`, as when it is run"
)]

#[path = "../examples/cancel.rs"]
mod cancel;
#[path = "../examples/claim.rs"]
mod claim;
#[path = "../examples/completion_queue.rs"]
mod completion_queue;
#[path = "../examples/connect.rs"]
mod connect;
#[cfg(target_os = "linux")]
#[path = "../examples/event_fd.rs"]
mod event_fd;
#[path = "../examples/events.rs"]
mod events;
#[path = "../examples/gather.rs"]
mod gather;
#[path = "../examples/lists.rs"]
mod lists;
#[path = "../examples/messages.rs"]
mod messages;
#[path = "../examples/multi_receive.rs"]
mod multi_receive;
#[path = "../examples/queries.rs"]
mod queries;
#[path = "../examples/ready_send.rs"]
mod ready_send;
#[path = "../examples/shared_buffer.rs"]
mod shared_buffer;
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
fn completion_queue_runs() {
    completion_queue::main().unwrap();
}

#[test]
fn connect_runs() {
    connect::main().unwrap();
}

#[cfg(target_os = "linux")]
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
fn queries_runs() {
    queries::main().unwrap();
}

#[test]
fn ready_send_runs() {
    ready_send::main().unwrap();
}

#[test]
fn shared_buffer_runs() {
    shared_buffer::main().unwrap();
}

#[test]
fn unsignaled_runs() {
    unsignaled::main().unwrap();
}

#[test]
fn user_memory_runs() {
    user_memory::main().unwrap();
}

#[test]
fn every_example_has_its_test_and_its_page() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let verbs = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/verbs");
    let pages: String = std::fs::read_dir(verbs)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
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
