//! Sends to receives that are known to be posted: `cargo run -p host-driver --example ready_send`.

mod support;

use host_driver::WcStatus;
use support::{PATIENCE, Result, connected};

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected()?;
    b.endpoint
        .post_tagged_recv(1, &b.receive(7), b.buffer(&[0; 8])?)?;
    a.endpoint
        .post_ready_send(2, &a.send(7), a.buffer(b"posthorn")?)?;
    assert_eq!(b.cq.wait(PATIENCE)?.received(), b"posthorn");
    assert_eq!(a.cq.wait(PATIENCE)?.status, WcStatus::Success);

    // Without its receive it isn't delivered, and the pair goes on.
    a.endpoint
        .post_ready_send(3, &a.send(8), a.buffer(b"too soon")?)?;
    let refused = a.cq.wait(PATIENCE)?;
    assert_eq!(refused.status, WcStatus::NotReady);
    println!("{}", refused.status);
    Ok(())
}
