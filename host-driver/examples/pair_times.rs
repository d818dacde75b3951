//! Two pairs with the same silent peer, one of which gives it up sooner: `cargo run -p host-driver --example pair_times`.

mod support;

use host_driver::{PairTimes, WaitError, WcStatus, WorkCompletion};
use soft_card::{SoftFabric, SoftOptions};
use support::{PATIENCE, Process, Result, connected_over};

pub(crate) fn main() -> Result<()> {
    let fabric = SoftFabric::new(SoftOptions::default());
    let (a, b) = connected_over(&fabric)?;
    let own = a.endpoint.query_pair(a.pair)?;
    println!(
        "by itself: 2^{} cycles, {} tries",
        own.timeout, own.retry_cnt
    );

    // A second pair between the two, for what is urgent: a message that isn't acknowledged for 8 µs is sent again, twice.
    let (urgent, address) = a.endpoint.open_pair(4)?;
    let (pair, peer) = b.endpoint.open_pair(4)?;
    let times = PairTimes {
        timeout: Some(10),
        retry_cnt: Some(2),
        ..PairTimes::default()
    };
    a.endpoint.set_pair_times(urgent, times)?;
    a.endpoint.connect_pair(urgent, &peer)?;
    b.endpoint.connect_pair(pair, &address)?;
    let status = a.endpoint.query_pair(urgent)?;
    assert_eq!((status.timeout, status.retry_cnt), (10, 2));

    // The wire is cut.
    (0..2).for_each(|card| fabric.lose_frames(card, u32::MAX));
    let mut send = a.send(7);
    a.endpoint
        .post_tagged_send(1, &send, a.buffer(b"whenever")?)?;
    send.pair = urgent;
    a.endpoint.post_tagged_send(2, &send, a.buffer(b"now")?)?;
    let first = next(&a)?;
    assert_eq!((first.wr_id, first.status), (2, WcStatus::PeerFailed));
    // It comes back before the other one is given up.
    (0..2).for_each(|card| fabric.lose_frames(card, 0));
    let second = next(&a)?;
    assert_eq!((second.wr_id, second.status), (1, WcStatus::Success));
    Ok(())
}

/// The next completion; the event that tells of the failure interrupts a wait.
fn next(process: &Process) -> Result<WorkCompletion> {
    loop {
        match process.cq.wait(PATIENCE) {
            Err(WaitError::Interrupted) => {}
            ended => return Ok(ended?),
        }
    }
}
