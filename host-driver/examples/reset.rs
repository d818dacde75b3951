//! Everything back from a card whose firmware hangs, and the card opened anew: `cargo run -p host-driver --example reset`.

mod support;

use host_driver::{CommandError, Device, WcStatus};
use soft_card::{FirmwareBehaviour, SoftFabric, SoftOptions};
use support::{Result, connected_over};

pub(crate) fn main() -> Result<()> {
    let fabric = SoftFabric::new(SoftOptions::default());
    let (a, b) = connected_over(&fabric)?;
    let buffer = a.buffer(&[0; 8])?;
    a.endpoint.post_tagged_recv(1, &a.receive(7), buffer)?;
    fabric.set_firmware(0, FirmwareBehaviour::HangsAfter(0));
    // A close needs the firmware; a reset needs only registers.
    let closed = a.endpoint.close();
    assert!(matches!(closed, Err(CommandError::FirmwareTimeout { .. })));
    a.device.reset()?;

    // What was outstanding is flushed, and its buffer comes back.
    let flushed = a.cq.poll().expect("it is flushed");
    assert_eq!((flushed.wr_id, flushed.status), (1, WcStatus::Flushed));
    assert!(flushed.buffer.is_some());
    let refused = a.device.alloc_pd().err();
    assert_eq!(refused, Some(CommandError::Restarted));

    // With the last handle gone, the card can be opened again, whose firmware then starts anew.
    drop((flushed, a));
    fabric.set_firmware(0, FirmwareBehaviour::Normal);
    let device = Device::open(fabric.transport(0))?;
    device.alloc_pd()?.endpoint().open()?;
    println!("the card is open again");
    drop(b);
    Ok(())
}
