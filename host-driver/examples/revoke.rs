//! A context that is given up while another goes on: `cargo run -p host-driver --example revoke`.

mod support;

use host_driver::{Group, MessageSet, TaggedReceive, WcStatus};
use support::{PATIENCE, Result, able, connected_over};

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected_over(&able())?;
    let other = TaggedReceive {
        context: 1,
        ..b.receive(7)
    };
    b.endpoint
        .post_tagged_recv(1, &b.receive(7), b.buffer(&[0; 8])?)?;
    b.endpoint.post_tagged_recv(2, &other, b.buffer(&[0; 8])?)?;

    let peers = Group::new(&b.endpoint, &[(1, b.pair)], 0)?;
    let context = MessageSet::of_context(0);
    let revoked = b.endpoint.revoke(&peers, &context, PATIENCE)?;
    println!("{} receive was pending", revoked.swept.receives);
    assert_eq!(b.cq.wait(PATIENCE)?.status, WcStatus::Revoked);

    // What still comes of it is dropped.
    a.endpoint.post_tagged_inject(3, &a.send(7), b"too late")?;
    let mut send = a.send(7);
    send.context = 1;
    a.endpoint.post_tagged_inject(4, &send, b"in time")?;
    assert_eq!(b.cq.wait(PATIENCE)?.received(), b"in time");

    b.endpoint.restore(revoked.rule)?;
    b.endpoint
        .post_tagged_recv(5, &b.receive(7), b.buffer(&[0; 8])?)?;
    a.endpoint.post_tagged_inject(6, &a.send(7), b"again")?;
    assert_eq!(b.cq.wait(PATIENCE)?.received(), b"again");
    Ok(())
}
