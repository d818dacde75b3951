//! A window that rank 0 lends to all others: what tests of puts and of gets share.

use host_driver::{RemoteKey, RemoteRights, Window};
use posthorn_tests::side::Side;

/// Bytes of a window.
pub(crate) const LENGTH: usize = 4096;
/// What the buffer of a get has in it to which nothing was written.
pub(crate) const BLANK: u8 = 0x5a;

/// Rank 0 lends a window to all others, each for the whole of it with `rights`. Every rank gets its own key.
pub(crate) fn lend(me: &Side, rights: RemoteRights) -> (Option<Window>, RemoteKey) {
    let window = (me.rank() == 0).then(|| me.pd.reg_window(LENGTH, rights).expect("a window"));
    let mut keys = vec![0; 8 * me.host.cards()];
    if let Some(window) = &window {
        for rank in 1..me.host.cards() {
            let key = window.grant(&me.endpoint, me.pair(rank), rights, ..);
            let bits = key.expect("a key").to_bits();
            keys[8 * rank..][..8].copy_from_slice(&bits.to_le_bytes());
        }
    }
    let all = me.host.all_gather(keys).expect("all ranks");
    let mine = all[0][8 * me.rank()..][..8].try_into().expect("eight");
    (window, RemoteKey::from_bits(u64::from_le_bytes(mine)))
}

/// Bytes that differ by `seed`.
pub(crate) fn bytes(seed: u8, length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at as u8).wrapping_mul(31) ^ seed)
        .collect()
}

/// All of a window.
pub(crate) fn contents(window: &Window) -> Vec<u8> {
    let mut all = vec![0; LENGTH];
    window.read(0, &mut all);
    all
}
