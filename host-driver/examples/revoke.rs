//! A context that is given up while another goes on, because a peer says so: `cargo run -p host-driver --example revoke`.

mod support;

use host_driver::{Group, MessageSet, TaggedReceive, WaitError, WatchOptions, WcStatus};
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

    // The group has the same name at all members, and the card may act on what they say of it.
    let (name, peers) = (77, Group::new(&b.endpoint, &[(1, b.pair)], 0)?);
    b.endpoint.name_group(name, &peers)?;
    b.endpoint.watch_peers(WatchOptions {
        believe_peers: true,
        ..WatchOptions::OFF
    })?;

    let context = MessageSet::of_context(0);
    a.endpoint.tell_revoked(name, &context, &[a.pair])?;
    // Who waits is called out of it, and ends what is pending.
    assert_eq!(b.cq.wait(PATIENCE).err(), Some(WaitError::Interrupted));
    let told = b.endpoint.revoked()?[0];
    assert_eq!((told.tag, told.messages), (name, context));
    while b.endpoint.poll_event()?.is_some() {}
    let revoked = b.endpoint.revoke(&peers, &told.messages, PATIENCE)?;
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
