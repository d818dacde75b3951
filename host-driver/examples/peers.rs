//! A process that only receives finds out that its peer is gone: `cargo run -p host-driver --example peers`.

mod support;

use host_driver::{Cause, Source, TaggedReceive, WaitError, WatchOptions, WcStatus};
use support::{PATIENCE, Result, connected};

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected()?;
    a.endpoint.watch_peers(WatchOptions::default())?;
    a.endpoint
        .post_tagged_recv(1, &a.receive(7), a.buffer(&[0; 8])?)?;
    let anyone = TaggedReceive {
        source: Source::Any,
        ..a.receive(8)
    };
    a.endpoint
        .post_tagged_recv(2, &anyone, a.buffer(&[0; 8])?)?;

    // The peer asks this process to look, with a word that the two have agreed on.
    b.endpoint.signal(b.pair, 42)?;
    while a
        .endpoint
        .poll_event()?
        .is_none_or(|event| event.cause != Cause::Signal)
    {
        assert_eq!(a.cq.wait(PATIENCE).err(), Some(WaitError::Interrupted));
    }

    // Somebody knows that the peer is gone: a job manager, say.
    a.endpoint.declare_failed(a.pair)?;
    let failed = loop {
        match a.cq.wait(PATIENCE) {
            Ok(completion) => break completion,
            Err(WaitError::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
    };
    assert_eq!((failed.wr_id, failed.status), (1, WcStatus::PeerFailed));

    // The receive from anyone is still posted, and has nobody to wait for.
    let mut told = None;
    while let Some(event) = a.endpoint.poll_event()? {
        told = Some(event.cause);
    }
    assert_eq!(told, Some(Cause::PeerFailedPending));
    println!("failed: {:?}", a.endpoint.pending_failures()?);
    assert_eq!(a.endpoint.acknowledge_failures()?, [a.pair]);
    assert!(a.endpoint.pending_failures()?.is_empty());
    Ok(())
}
