//! One message from four buffers: `cargo run -p host-driver --example gather`.

mod support;

use support::{PATIENCE, Result, able, connected_over};

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected_over(&able())?;
    assert_eq!(a.device.limits().send_segments, 4, "only some cards can");
    let header = a.buffer(b"From: a\n")?.share();
    let body = a.buffer(b"A message of four parts.")?.share();
    // Buffers and slices of buffers, of one region or of several.
    let end = a.buffer(b"\n")?.share();
    let segments = [header.clone(), end.clone(), body.slice(..20), end];
    a.endpoint.post_gather_send(1, &a.send(7), &segments)?;

    b.endpoint
        .post_tagged_recv(2, &b.receive(7), b.buffer(&[0; 64])?)?;
    let received = b.cq.wait(PATIENCE)?;
    print!("{}", String::from_utf8_lossy(received.received()));
    assert_eq!(received.received(), b"From: a\n\nA message of four pa\n");

    // The completion brings back what the send kept.
    let sent = a.cq.wait(PATIENCE)?;
    assert_eq!(sent.length, received.length);
    let parts = sent.shared.iter().chain(sent.segments.iter().flatten());
    assert_eq!(parts.count(), segments.len());
    Ok(())
}
