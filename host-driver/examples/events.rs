//! What no completion tells: `cargo run -p host-driver --example events`.

mod support;

use host_driver::{Causes, PairState, WaitError, WcStatus};
use support::{PATIENCE, Result, connected};

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected()?;
    a.endpoint
        .post_tagged_recv(1, &a.receive(7), a.buffer(&[0; 8])?)?;
    // By default this one wouldn't end a wait: what names the peer completes anyway.
    a.endpoint.set_wait_interrupts(Causes::all());
    b.endpoint.close_pair(b.pair)?;

    let mut failed = None;
    let event = loop {
        if let Some(event) = a.endpoint.poll_event()? {
            break event;
        }
        match a.cq.wait(PATIENCE) {
            Ok(completion) => failed = Some(completion),
            Err(WaitError::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
    };
    println!("{:?} of pair {:?}", event.cause, event.pair);
    assert_eq!(event.pair, Some(a.pair));
    let failed = match failed {
        Some(failed) => failed,
        None => a.cq.wait(PATIENCE)?,
    };
    assert_eq!(failed.status, WcStatus::PeerFailed);

    // The failure is state as well, and stays when the event queue is full.
    assert!(a.endpoint.sticky_causes()?.contains(event.cause.into()));
    let status = a.endpoint.query_pair(a.pair)?;
    assert_eq!(status.state, PairState::Failed);
    Ok(())
}
