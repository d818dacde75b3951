//! Many requests with one doorbell, and many completions in one call: `cargo run -p host-driver --example lists`.

mod support;

use host_driver::{ListRefused, PostError, RecvWr, SendWr};
use support::{PATIENCE, Result, connected};

/// More than a pair may have outstanding.
const MESSAGES: u64 = 20;

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected()?;
    let mut handles = Vec::new();

    let mut receives = Vec::new();
    let mut sends = Vec::new();
    for wr_id in 0..MESSAGES {
        receives.push(RecvWr {
            wr_id,
            receive: b.receive(7),
            multi: None,
            buffer: b.buffer(&[0; 8])?,
        });
        sends.push(SendWr {
            wr_id,
            send: a.send(7),
            ready: false,
            buffer: a.buffer(&wr_id.to_le_bytes())?,
        });
    }
    b.endpoint.post_recv_list(receives, &mut handles)?;

    // What isn't taken comes back, and is posted when there is room again.
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    let mut rest = sends;
    loop {
        rest = match a.endpoint.post_send_list(rest, &mut handles) {
            Ok(()) => break,
            Err(ListRefused {
                error: PostError::PairBusy,
                request,
                rest,
                ..
            }) => [request].into_iter().chain(rest).collect(),
            Err(refused) => return Err(refused.into()),
        };
        sent.push(a.cq.wait(PATIENCE)?);
        a.cq.poll_many(&mut sent, 16);
    }
    while received.len() < MESSAGES as usize {
        if b.cq.poll_many(&mut received, 16) == 0 {
            received.push(b.cq.wait(PATIENCE)?);
        }
    }
    for (wr_id, message) in received.iter().enumerate() {
        assert_eq!(message.received(), (wr_id as u64).to_le_bytes());
    }
    println!("{} messages, in order", received.len());
    Ok(())
}
