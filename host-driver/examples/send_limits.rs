//! A pair that may not take every entry of the completion queue: `cargo run -p host-driver --example send_limits`.

mod support;

use host_driver::{PostError, SendLimits};
use support::{PATIENCE, Result, connected};

/// Sends of the pair that may be outstanding.
const MOST: usize = 4;

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected()?;
    // The card gets two of them at once, and the library keeps the others.
    let limits = SendLimits {
        window: 2,
        outstanding: MOST,
    };
    a.endpoint.set_send_limits(a.pair, limits)?;

    // The peer receives nothing yet.
    let mut posted = 0;
    let refused = loop {
        let text = [posted as u8; 8];
        match a
            .endpoint
            .post_tagged_send(posted, &a.send(7), a.buffer(&text)?)
        {
            Ok(_) => posted += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!((posted, refused.error), (4, PostError::PairBusy));
    assert_eq!(a.endpoint.query().kept, 2);
    println!("{posted} sends, then: {}", refused.error);

    // Once one has completed, and been polled for, there is room for the next.
    assert_eq!(a.cq.wait(PATIENCE)?.wr_id, 0);
    a.endpoint
        .post_tagged_send(posted, &a.send(7), refused.buffer)?;
    for number in 1..=posted {
        assert_eq!(a.cq.wait(PATIENCE)?.wr_id, number);
    }
    for number in 0..=posted {
        b.endpoint
            .post_tagged_recv(number, &b.receive(7), b.buffer(&[0; 8])?)?;
        assert_eq!(b.cq.wait(PATIENCE)?.received(), [number as u8; 8]);
    }

    // No limit of its own any more.
    a.endpoint.set_send_limits(a.pair, SendLimits::default())?;
    Ok(())
}
