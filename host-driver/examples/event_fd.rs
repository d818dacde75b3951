//! Waiting for completions by poll(2), beside whatever else a program polls: `cargo run -p host-driver --example event_fd`.

#[cfg(target_os = "linux")]
mod support;

#[cfg(target_os = "linux")]
pub(crate) fn main() -> support::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    use support::connected;

    let (a, b) = connected()?;
    b.endpoint
        .post_tagged_recv(1, &b.receive(7), b.buffer(&[0; 8])?)?;

    // Ask for the interrupt, and look once more: what has come before it needn't interrupt.
    let event = b.cq.event_fd()?;
    b.cq.req_notify()?;
    assert!(b.cq.poll().is_none());

    a.endpoint.post_tagged_inject(2, &a.send(7), b"posthorn")?;
    // A soft card runs while the program is in a call; a card of its own needs no such line.
    a.pause(10_000);

    let mut fds = [PollFd::new(&event, PollFlags::IN)];
    poll(&mut fds, None)?;
    assert!(fds[0].revents().contains(PollFlags::IN));
    event.clear()?;
    let received = b.cq.poll().expect("the interrupt was for it");
    println!("{}", String::from_utf8_lossy(received.received()));
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn main() {}
