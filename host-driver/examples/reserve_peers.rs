//! Room for all peers of a job, or a refusal at once: `cargo run -p host-driver --example reserve_peers`.

mod support;

use host_driver::{CommandError, MailboxStatus};
use soft_card::{SoftFabric, SoftOptions};
use support::{Result, open};

pub(crate) fn main() -> Result<()> {
    let fabric = SoftFabric::new(SoftOptions::default());
    let (device, pd, endpoint) = open(&fabric, 0)?;
    let other = pd.endpoint().open()?;

    // Four peers, each of whom may have eight messages here that wait to be received.
    endpoint.reserve_peers(4, 8)?;
    // What is set aside is nobody else's: the refusal says how many pairs could be had.
    let pairs = device.limits().pairs as u32;
    match other.reserve_peers(pairs, 1) {
        Err(CommandError::Refused { status, detail, .. }) => {
            assert_eq!((status, detail), (MailboxStatus::NoResource, pairs - 4));
            println!("{detail} of {pairs} pairs are left");
        }
        other => panic!("{other:?}"),
    }
    // The pairs of the job draw from what was set aside: none of these can be refused.
    for _ in 0..4 {
        endpoint.open_pair(8)?;
    }
    Ok(())
}
