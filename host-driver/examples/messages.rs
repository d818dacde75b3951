//! A message, received where its receive says, and one that is copied: `cargo run -p host-driver --example messages`.

mod support;

use host_driver::{WcKind, WcStatus};
use support::{PATIENCE, Result, connected};

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected()?;

    // The buffer is moved into the request and comes back with its completion.
    b.endpoint
        .post_tagged_recv(1, &b.receive(7), b.buffer(&[0; 64])?)?;
    a.endpoint
        .post_tagged_send(2, &a.send(7), a.buffer(b"posthorn")?)?;

    let received = b.cq.wait(PATIENCE)?;
    assert_eq!((received.wr_id, received.kind), (1, WcKind::Receive));
    assert_eq!(received.received(), b"posthorn");
    println!("received {} bytes", received.length);

    let sent = a.cq.wait(PATIENCE)?;
    assert_eq!((sent.wr_id, sent.status), (2, WcStatus::Success));
    let buffer = sent.buffer.expect("it was posted with one");
    assert_eq!(&buffer[..], b"posthorn");

    // A short message is copied, and its bytes are the program's at once. It shows no completion.
    a.endpoint.post_tagged_inject(3, &a.send(8), b"copied")?;
    b.endpoint
        .post_tagged_recv(4, &b.receive(8), b.buffer(&[0; 64])?)?;
    assert_eq!(b.cq.wait(PATIENCE)?.received(), b"copied");
    Ok(())
}
