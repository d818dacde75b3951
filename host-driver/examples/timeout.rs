//! Requests that don't wait for ever: `cargo run -p host-driver --example timeout`.

mod support;

use host_driver::{WaitError, WcStatus};
use support::{PATIENCE, Result, connected};

/// Cycles: 0.4 ms.
const TIMEOUT: u64 = 50_000;

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected()?;
    let receive = b
        .endpoint
        .post_tagged_recv(1, &b.receive(7), b.buffer(&[0; 8])?)?;
    b.endpoint.set_timeout(receive, TIMEOUT)?;

    // A wait has a time-out of its own, which ends nothing but the wait.
    assert_eq!(b.cq.wait(TIMEOUT / 2).err(), Some(WaitError::Timeout));
    // The receive's is a completion like another.
    let ended = b.cq.wait(PATIENCE)?;
    println!("{}: {}", ended.wr_id, ended.status);
    assert_eq!((ended.wr_id, ended.status), (1, WcStatus::TimedOut));
    assert_eq!(b.cq.outstanding(), 0);

    // What ends before isn't concerned.
    let receive = b
        .endpoint
        .post_tagged_recv(2, &b.receive(7), b.buffer(&[0; 8])?)?;
    b.endpoint.set_timeout(receive, TIMEOUT)?;
    a.endpoint.post_tagged_inject(3, &a.send(7), b"posthorn")?;
    assert_eq!(b.cq.wait(PATIENCE)?.received(), b"posthorn");
    Ok(())
}
