//! Looking for a message, and taking it before its buffer is known: `cargo run -p host-driver --example claim`.

mod support;

use host_driver::WcStatus;
use support::{PATIENCE, Result, connected};

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected()?;
    b.endpoint.probe(1, &b.receive(7))?;
    assert_eq!(b.cq.wait(PATIENCE)?.status, WcStatus::NoMessage);

    for text in ["of some length", "unwanted"] {
        a.endpoint
            .post_tagged_inject(2, &a.send(7), text.as_bytes())?;
    }
    a.pause(10_000);
    b.endpoint.probe(3, &b.receive(7))?;
    let seen = b.cq.wait(PATIENCE)?;
    println!("a message of {} bytes waits", seen.length);

    // Between a probe and a receive somebody else may take the message. What is claimed is the caller's.
    b.endpoint.claim(4, &b.receive(7))?;
    let found = b.cq.wait(PATIENCE)?;
    let claimed = found.claimed.expect("the message that was seen");
    claimed.receive(5, b.buffer(&vec![0; found.length as usize])?)?;
    assert_eq!(b.cq.wait(PATIENCE)?.received(), b"of some length");

    b.endpoint.claim(6, &b.receive(7))?;
    let found = b.cq.wait(PATIENCE)?;
    found.claimed.expect("the second").discard(7)?;
    assert_eq!(b.cq.wait(PATIENCE)?.status, WcStatus::Success);
    Ok(())
}
