//! Limits of a card, and what endpoints, pairs and requests are doing: `cargo run -p host-driver --example queries`.

mod support;

use host_driver::{Counter, EndpointState, PairCounter, RequestState};
use support::{PATIENCE, Result, connected};

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected()?;
    let limits = a.device.limits();
    println!(
        "{} endpoints, {} pairs, messages of {} bytes",
        limits.endpoints, limits.pairs, limits.message_bytes
    );
    let receive = b
        .endpoint
        .post_tagged_recv(1, &b.receive(7), b.buffer(&[0; 8])?)?;
    assert_eq!(b.endpoint.query_request(receive), RequestState::Posted);
    let status = b.endpoint.query();
    assert_eq!((status.state, status.outstanding), (EndpointState::Open, 1));

    a.endpoint.post_tagged_inject(2, &a.send(7), b"posthorn")?;
    b.cq.wait(PATIENCE)?;
    assert_eq!(b.endpoint.query_request(receive), RequestState::Ended);

    let pair = a.endpoint.query_pair(a.pair)?;
    println!("{} of 8 credits in hand", pair.available);
    let counters = a.endpoint.pair_counters(a.pair)?;
    assert_eq!(counters.get(PairCounter::Repeats), 0);
    let frames = a.device.read_counter(Counter::ALL[0])?;
    println!("{}: {frames}", Counter::ALL[0].name());
    a.endpoint.close()?;
    assert_eq!(a.endpoint.query().state, EndpointState::Closed);
    Ok(())
}
