//! A context whose messages are all dealt with before it is used anew: `cargo run -p host-driver --example drain`.

mod support;

use host_driver::{
    DrainOptions, DrainPolicy, Group, MessageSet, WaitError, WcStatus, WorkCompletion,
};
use support::{PATIENCE, Process, Result, connected};

/// One of the two processes drains. Each of them waits for the other, so in one thread they take turns.
fn drain(process: &Process, group: &Group) -> Option<host_driver::Drained> {
    let options = DrainOptions {
        tag: 1,
        messages: MessageSet::of_context(0),
        policy: DrainPolicy::Reset,
        peer: None,
        timeout: 20_000,
    };
    process.endpoint.drain(group, &options).ok()
}

/// The next completion. The events of the drain interrupt a wait.
fn next(process: &Process) -> Result<WorkCompletion> {
    loop {
        match process.cq.wait(PATIENCE) {
            Err(WaitError::Interrupted) => while process.endpoint.poll_event()?.is_some() {},
            ended => return Ok(ended?),
        }
    }
}

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected()?;
    let of_a = Group::new(&a.endpoint, &[(1, a.pair)], 0)?;
    let of_b = Group::new(&b.endpoint, &[(0, b.pair)], 1)?;

    // A message that nobody receives, and a receive that nothing will match.
    a.endpoint.post_tagged_inject(1, &a.send(7), b"old")?;
    b.endpoint
        .post_tagged_recv(2, &b.receive(8), b.buffer(&[0; 8])?)?;

    let (mut first, mut second) = (None, None);
    while first.is_none() || second.is_none() {
        first = first.or_else(|| drain(&a, &of_a));
        second = second.or_else(|| drain(&b, &of_b));
    }
    for drained in [first, second].into_iter().flatten() {
        println!("round {}, failed: {:?}", drained.round, drained.failed);
        assert_eq!((drained.round, drained.failed), (1, vec![]));
    }
    assert_eq!(next(&b)?.status, WcStatus::Cancelled);

    // The next message is of the next epoch: nothing older is in front of it.
    b.endpoint
        .post_tagged_recv(3, &b.receive(7), b.buffer(&[0; 8])?)?;
    a.endpoint.post_tagged_inject(4, &a.send(7), b"new")?;
    assert_eq!(next(&b)?.received(), b"new");
    Ok(())
}
