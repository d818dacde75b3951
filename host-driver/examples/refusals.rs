//! A peer that puts where it may not, what its host learns of that, and that it is shut out: `cargo run -p host-driver --example refusals`.

mod support;

use abi::times::SHUT_OUT_TICK;
use host_driver::{Cause, PairCounter, Put, RefusalReason, RemoteRights, ShutOut, WcStatus};
use support::{PATIENCE, Result, able, connected_over};

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected_over(&able())?;
    let window = b.pd.reg_window(8192, RemoteRights::WRITE)?;
    let key = window.grant(&b.endpoint, b.pair, RemoteRights::WRITE, 4096..)?;
    let ends = |offset| -> Result<WcStatus> {
        let put = Put {
            pair: a.pair,
            key,
            offset,
        };
        a.endpoint.post_put(1, &put, a.buffer(&[9; 64])?)?;
        Ok(a.cq.wait(PATIENCE)?.status)
    };

    // After three refusals `a` is to be shut out for about 200 microseconds.
    let chosen = ShutOut {
        limit: 3,
        ticks: 25,
    };
    b.endpoint.set_shut_out(b.pair, chosen)?;

    // `a` puts where it wasn't granted anything: an error at its side, an event at the other.
    assert_eq!(ends(100)?, WcStatus::RemoteAccess);
    let event = loop {
        match b.endpoint.poll_event()? {
            Some(event) if event.cause == Cause::PeerRefused => break event,
            _ => b.pause(1000),
        }
    };
    let refusal = event.refusal().expect("what it was");
    println!("{:?}: {refusal:?}", event.pair);
    assert_eq!(refusal.region, window.region_key());
    assert_eq!(
        (refusal.offset, refusal.reason, refusal.count),
        (100, RefusalReason::OutOfBounds, 1)
    );

    // Two more, and what it may is denied too.
    for _ in 0..2 {
        assert_eq!(ends(100)?, WcStatus::RemoteAccess);
    }
    assert_eq!(ends(5000)?, WcStatus::RemoteAccess);
    assert!(b.endpoint.query_shut_out(b.pair)?.left > 0);

    // When the time is over, its key is as good as before.
    b.pause(u64::from(SHUT_OUT_TICK) * u64::from(chosen.ticks));
    assert_eq!(ends(5000)?, WcStatus::Success);

    // Everything was counted.
    let counters = b.endpoint.pair_counters(b.pair)?;
    assert_eq!(counters.get(PairCounter::RefusedOutOfBounds), 3);
    assert_eq!(counters.get(PairCounter::RefusedShutOut), 1);
    Ok(())
}
