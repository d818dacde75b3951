//! Sends that complete only on error: `cargo run -p host-driver --example unsignaled`.

mod support;

use host_driver::WcStatus;
use support::{PATIENCE, Result, able, connected_over};

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected_over(&able())?;
    assert!(a.device.limits().unsignaled_sends, "only some cards can");
    // The program keeps a clone of what is sent.
    let text = a.buffer(b"posthorn")?.share();
    for wr_id in 0..3 {
        a.endpoint
            .post_unsignaled_send(wr_id, &a.send(7), text.clone())?;
        let receive = b.receive(7);
        b.endpoint
            .post_tagged_recv(wr_id, &receive, b.buffer(&[0; 8])?)?;
        assert_eq!(b.cq.wait(PATIENCE)?.received(), b"posthorn");
    }
    assert!(a.cq.poll().is_none(), "nobody is told of success");

    // One that fails completes, with its buffer.
    let longest = a.buffer(&[0; 1025])?.share();
    a.endpoint.post_unsignaled_send(3, &a.send(7), longest)?;
    let failed = a.cq.wait(PATIENCE)?;
    assert_eq!((failed.wr_id, failed.status), (3, WcStatus::TooLong));
    println!("{}", failed.status);

    // A send of the pair that completes says that those before it have ended: the program's clone is the last then.
    a.endpoint
        .post_tagged_send(4, &a.send(8), a.buffer(b"the last")?)?;
    assert_eq!(a.cq.wait(PATIENCE)?.wr_id, 4);
    let mut buffer = text.try_into_buffer().expect("no send reads it");
    buffer.copy_from_slice(b"anything");
    Ok(())
}
