//! Bytes read from memory that the peer has granted: `cargo run -p host-driver --example get`.

mod support;

use host_driver::{Get, RemoteKey, RemoteRights, WcKind, WcStatus};
use support::{PATIENCE, Result, able, connected_over};

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected_over(&able())?;

    // `b` lets `a` read the second half of a window. The program gives the key to `a`, usually by a message: here both are one program.
    let window = b.pd.reg_window(8192, RemoteRights::READ)?;
    window.write(5000, &[9; 3000]);
    let key = window.grant(&b.endpoint, b.pair, RemoteRights::READ, 4096..)?;

    // Offsets are from the window's first byte. The get is longer than a frame; its buffer comes back when all of it is there.
    let get = Get {
        pair: a.pair,
        key,
        offset: 5000,
    };
    a.endpoint.post_get(1, &get, a.buffer(&[0; 3000])?)?;
    let read = a.cq.wait(PATIENCE)?;
    assert_eq!((read.wr_id, read.kind), (1, WcKind::Get));
    assert_eq!((read.status, read.length), (WcStatus::Success, 3000));
    assert_eq!(read.buffer.expect("as posted")[..], [9; 3000]);

    // `a` has what it wanted, and says so by a message: it was posted behind the completion, so `b` may write the window anew.
    b.endpoint
        .post_tagged_recv(2, &b.receive(7), b.buffer(&[0; 8])?)?;
    a.endpoint
        .post_tagged_send(3, &a.send(7), a.buffer(b"read")?)?;
    assert_eq!(b.cq.wait(PATIENCE)?.received(), b"read");
    window.write(5000, &[10; 3000]);
    assert_eq!(a.cq.wait(PATIENCE)?.wr_id, 3);

    // A wrong key is a completion with an error. The buffer comes back, and the pair goes on.
    let key = RemoteKey::from_bits(key.to_bits() ^ 1 << 63);
    let wrong = Get { key, ..get };
    a.endpoint.post_get(4, &wrong, a.buffer(&[0; 8])?)?;
    let refused = a.cq.wait(PATIENCE)?;
    assert_eq!(refused.status, WcStatus::RemoteAccess);
    let buffer = refused.buffer.expect("as posted");
    a.endpoint.post_get(5, &get, buffer)?;
    let read = a.cq.wait(PATIENCE)?;
    assert_eq!(read.buffer.expect("as posted")[..], [10; 8]);
    Ok(())
}
