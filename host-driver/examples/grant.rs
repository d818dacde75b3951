//! Memory that a peer is given a key to, until it is revoked: `cargo run -p host-driver --example grant`.

mod support;

use host_driver::{CommandError, Cover, RemoteKey, RemoteRights};
use support::{PATIENCE, Result, able, connected_over};

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected_over(&able())?;

    // `b` lets `a` write a part of a window, and gives it the key by a message.
    let window = b.pd.reg_window(4096, RemoteRights::WRITE)?;
    let key = window.grant(&b.endpoint, b.pair, RemoteRights::WRITE, 1024..2048)?;
    b.endpoint
        .post_tagged_send(1, &b.send(7), b.buffer(&key.to_bits().to_le_bytes())?)?;
    a.endpoint
        .post_tagged_recv(1, &a.receive(7), a.buffer(&[0; 8])?)?;
    let told = a.cq.wait(PATIENCE)?.received().try_into()?;
    assert_eq!(RemoteKey::from_bits(u64::from_le_bytes(told)), key);

    // The program's own accesses are atomic meanwhile.
    window.write(0, b"ours");
    let mut bytes = [0; 4];
    window.read(0, &mut bytes);
    assert_eq!(&bytes, b"ours");

    // More than the window has is not granted.
    let refused = window.grant(&b.endpoint, b.pair, RemoteRights::READ, ..);
    assert!(matches!(refused, Err(CommandError::Refused { .. })));

    // When `revoke_peer` returns, nothing of that peer's can reach the memory by any key; `into_buffer` gives it back to the program.
    b.endpoint.revoke_peer(b.pair)?;
    // It needs no fence: this one waits for what others do in the window's first page, and for no more.
    b.pd.fence(Cover::all().window_pages(&window, ..4096))?;
    let (_region, buffer) = window.into_buffer()?;
    assert_eq!(buffer[..4], *b"ours");
    Ok(())
}
