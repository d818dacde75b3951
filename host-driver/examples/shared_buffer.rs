//! One buffer that several sends read at once: `cargo run -p host-driver --example shared_buffer`.

mod support;

use support::{PATIENCE, Result, connected};

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected()?;
    let shared = a.buffer(b"to all of you")?.share();
    for wr_id in 0..4 {
        a.endpoint
            .post_tagged_send(wr_id, &a.send(7), shared.clone())?;
    }
    // A part of it, too. The program may read what is in flight, and nobody can write it.
    a.endpoint
        .post_tagged_send(4, &a.send(7), shared.slice(..6))?;
    assert_eq!(&shared[..], b"to all of you");
    let shared = shared.try_into_buffer().expect_err("sends read it");

    for wr_id in 0..5 {
        b.endpoint
            .post_tagged_recv(wr_id, &b.receive(7), b.buffer(&[0; 13])?)?;
        let text = b.cq.wait(PATIENCE)?;
        println!("{}", String::from_utf8_lossy(text.received()));
        a.cq.wait(PATIENCE)?;
    }
    // The last that has it gets the whole buffer, to be written again.
    let mut buffer = shared.try_into_buffer().expect("no send reads it");
    buffer[..2].copy_from_slice(b"TO");
    Ok(())
}
