//! Taking back what was posted: `cargo run -p host-driver --example cancel`.

mod support;

use host_driver::{WcKind, WcStatus};
use support::{PATIENCE, Result, connected};

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected()?;
    let receive = b
        .endpoint
        .post_tagged_recv(1, &b.receive(7), b.buffer(&[0; 8])?)?;
    b.endpoint.cancel(2, receive)?;
    // In time: the receive completes, with its buffer, and the cancel not at all.
    let cancelled = b.cq.wait(PATIENCE)?;
    assert_eq!(
        (cancelled.wr_id, cancelled.status),
        (1, WcStatus::Cancelled)
    );
    assert_eq!(b.cq.outstanding(), 0);

    let receive = b
        .endpoint
        .post_tagged_recv(3, &b.receive(7), b.buffer(&[0; 8])?)?;
    a.endpoint.post_tagged_inject(4, &a.send(7), b"posthorn")?;
    a.pause(10_000);
    b.endpoint.cancel(5, receive)?;
    // Too late: the receive completes as it would have, and the cancel says so.
    assert_eq!(b.cq.wait(PATIENCE)?.received(), b"posthorn");
    let late = b.cq.wait(PATIENCE)?;
    assert_eq!(
        (late.kind, late.status),
        (WcKind::Cancel, WcStatus::TooLate)
    );
    println!("{:?}: {}", late.kind, late.status);
    Ok(())
}
