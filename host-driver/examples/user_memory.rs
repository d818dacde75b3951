//! Messages from and to memory that the program has: `cargo run -p host-driver --example user_memory`.

mod support;

use host_driver::Access;
use std::sync::mpsc::{Sender, channel};
use support::{PATIENCE, Result, connected};

/// Memory that says when the card is done with it, by giving itself back.
struct Returned {
    bytes: Vec<u8>,
    back: Sender<Vec<u8>>,
}

impl AsMut<[u8]> for Returned {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for Returned {
    fn drop(&mut self) {
        let _ = self.back.send(std::mem::take(&mut self.bytes));
    }
}

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected()?;

    // Whatever owns bytes will do. `reg_user_mr` moves it into the region.
    let text = b"posthorn".to_vec();
    let (_, from) = a.pd.reg_user_mr(text, Access::Read)?;
    a.endpoint.post_tagged_send(1, &a.send(7), from)?;

    let (back, returned) = channel();
    let bytes = vec![0; 8];
    let (_, into) = b.pd.reg_user_mr(Returned { bytes, back }, Access::Write)?;
    b.endpoint.post_tagged_recv(2, &b.receive(7), into)?;
    let received = b.cq.wait(PATIENCE)?;
    assert!(returned.try_recv().is_err(), "a buffer of it is held");

    // With its last buffer the region goes, and the card forgets it. Then the owner is dropped.
    drop(received);
    let bytes = returned.recv()?;
    println!("{}", String::from_utf8_lossy(&bytes));
    assert_eq!(bytes, b"posthorn");
    Ok(())
}
