//! Many requests with one doorbell, and many completions in one call: `cargo run -p host-driver --example lists`.

mod support;

use host_driver::{Gather, RecvWr, SendFlags, SendWr};
use support::{PATIENCE, Result, able, connected_over};

/// More than the card holds of a pair: the library keeps the rest meanwhile.
const MESSAGES: u64 = 20;

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected_over(&able())?;
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
            flags: SendFlags::empty(),
            buffer: a.buffer(&wr_id.to_le_bytes())?,
        });
    }
    b.endpoint.post_recv_list(receives, &mut handles)?;

    a.endpoint.post_send_list(sends, &mut handles)?;

    // Polling lets go what is kept.
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    while sent.len() < MESSAGES as usize {
        if a.cq.poll_many(&mut sent, 16) == 0 {
            sent.push(a.cq.wait(PATIENCE)?);
        }
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

    // Messages of several pieces, of which the program is told only if one fails.
    let text = a.buffer(b"one two")?.share();
    let pieces = [text.slice(..3), text.slice(4..)];
    let mut gathers = Vec::new();
    for wr_id in 0..4 {
        gathers.push(SendWr {
            wr_id,
            send: a.send(8),
            flags: SendFlags::UNSIGNALED,
            buffer: Gather::new(&pieces)?,
        });
    }
    a.endpoint.post_send_list(gathers, &mut handles)?;
    for wr_id in 0..4 {
        b.endpoint
            .post_tagged_recv(wr_id, &b.receive(8), b.buffer(&[0; 8])?)?;
        assert_eq!(b.cq.wait(PATIENCE)?.received(), b"onetwo");
    }
    assert!(a.cq.poll().is_none());
    Ok(())
}
