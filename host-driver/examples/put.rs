//! Bytes written into memory that the peer has granted, and a message that finds them there: `cargo run -p host-driver --example put`.

mod support;

use host_driver::{Put, RemoteKey, RemoteRights, WcKind, WcStatus};
use support::{PATIENCE, Result, able, connected_over};

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected_over(&able())?;

    // `b` lets `a` write the second half of a window. The program gives the key to `a`, usually by a message: here both are one program.
    let window = b.pd.reg_window(8192, RemoteRights::WRITE)?;
    let key = window.grant(&b.endpoint, b.pair, RemoteRights::WRITE, 4096..)?;

    // Offsets are from the window's first byte. The put is longer than a frame, and the message behind it comes when all of it is written.
    let put = Put {
        pair: a.pair,
        key,
        offset: 5000,
    };
    b.endpoint
        .post_tagged_recv(1, &b.receive(7), b.buffer(&[0; 8])?)?;
    a.endpoint.post_put(2, &put, a.buffer(&[9; 3000])?)?;
    a.endpoint
        .post_tagged_send(3, &a.send(7), a.buffer(b"written")?)?;
    let written = a.cq.wait(PATIENCE)?;
    assert_eq!((written.wr_id, written.kind), (2, WcKind::Put));
    assert_eq!((written.status, written.length), (WcStatus::Success, 3000));
    assert_eq!(b.cq.wait(PATIENCE)?.received(), b"written");
    let mut bytes = [0; 3000];
    window.read(5000, &mut bytes);
    assert_eq!(bytes, [9; 3000]);
    assert_eq!(a.cq.wait(PATIENCE)?.wr_id, 3);

    // A wrong key is a completion with an error. The pair goes on.
    let key = RemoteKey::from_bits(key.to_bits() ^ 1 << 63);
    let wrong = Put { key, ..put };
    a.endpoint.post_put(4, &wrong, a.buffer(b"nobody's")?)?;
    assert_eq!(a.cq.wait(PATIENCE)?.status, WcStatus::RemoteAccess);

    // A few bytes are copied, and show no completion.
    a.endpoint.post_inject_put(5, &put, b"copied")?;
    a.endpoint.post_put(
        6,
        &Put {
            offset: 6000,
            ..put
        },
        a.buffer(b"behind it")?,
    )?;
    assert_eq!(a.cq.wait(PATIENCE)?.wr_id, 6);
    window.read(5000, &mut bytes);
    assert_eq!(bytes[..6], *b"copied");
    Ok(())
}
