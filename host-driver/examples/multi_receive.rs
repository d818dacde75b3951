//! One buffer that takes message after message: `cargo run -p host-driver --example multi_receive`.

mod support;

use support::{PATIENCE, Result, connected};

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected()?;
    // It stays posted until less than 16 bytes are left.
    b.endpoint
        .post_multi_recv(1, &b.receive(7), b.buffer(&[0; 32])?, 16)?;
    let mut parts = Vec::new();
    for text in ["one", "two", "three", "and the rest"] {
        a.endpoint
            .post_tagged_inject(2, &a.send(7), text.as_bytes())?;
    }
    loop {
        let message = b.cq.wait(PATIENCE)?;
        println!(
            "{}: {}",
            message.offset,
            String::from_utf8_lossy(message.received())
        );
        parts.push(message.buffer.expect("the part that it fills"));
        if !message.more {
            assert_eq!(message.completions, 4);
            break;
        }
    }
    assert_eq!(parts.len(), 4);
    // The last completion brought all that was left: the parts are one buffer again.
    let mut whole = parts.remove(0);
    for part in parts {
        whole.join(part).expect("they touch");
    }
    assert_eq!(whole.len(), 32);
    Ok(())
}
