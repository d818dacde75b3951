//! Fences, where memory is so slow that it shows for what one waits.
//!
//! ```text
//!  rank 1   puts all the time into the first page of a window ────────────────────►│ it is revoked
//!  rank 0   fences of each cover: they take longer by the latency of memory, or no longer ─►
//! ```

use host_driver::{Cover, Put, RemoteRights, WcStatus};
use posthorn_tests::cards::{GatesOnly, cards};
use posthorn_tests::side::Side;
use sim::memory::MemoryConfig;

use crate::lent::lend;

/// Cycles until a write of the window is answered. A fence that waits for nothing takes about as long.
const LATENCY: u64 = 6_000;
/// Puts under way. They come in bursts, since the descriptors of several are read at once, and slowly.
const PUTS: usize = 16;
/// Fences of each cover: some begin while a write is under way that has most of its time before it.
const TRIES: usize = 20;

#[test]
fn a_fence_waits_for_what_it_covers_and_for_nothing_else() {
    let memory = MemoryConfig {
        latency: LATENCY as u32,
        outstanding: 64,
        ..MemoryConfig::default()
    };
    GatesOnly::Race.run(cards("tiny", 2, 261).memory(memory), |host| {
        let mut me = Side::open(&host);
        let (window, key) = lend(&me, RemoteRights::WRITE);
        let Some(window) = window else {
            let mut buffers: Vec<_> = (0..PUTS).map(|_| me.buffer(8)).collect();
            let (mut landed, mut refused) = (0, 0);
            me.meet();
            while refused < PUTS {
                for buffer in buffers.drain(..) {
                    let put = Put {
                        pair: me.pair(0),
                        key,
                        offset: 8,
                    };
                    me.endpoint.post_put(landed, &put, buffer).expect("posted");
                }
                let done = me.completion();
                if done.status == WcStatus::Success {
                    landed += 1;
                    buffers.extend(done.buffer);
                } else {
                    assert_eq!(done.status, WcStatus::RemoteAccess);
                    refused += 1;
                }
            }
            assert!(landed > PUTS as u64);
            me.meet();
            me.finish();
            return;
        };
        let other = me.pd.reg_window(64, RemoteRights::WRITE).expect("a window");
        let fence = |cover: Cover<'_>| {
            let begin = host.transport().now();
            me.pd.fence(cover).expect("fenced");
            host.transport().now() - begin
        };
        let all = Cover::all();
        let of_window = all.window(&window);
        let peer = me.pair(1);
        // Nothing is under way yet.
        let alone = fence(all);
        me.meet();
        for cover in [
            all,
            of_window,
            all.pair(&me.endpoint, peer),
            of_window.pair(&me.endpoint, peer),
            all.window_pages(&window, ..8),
        ] {
            let waits = (0..TRIES).any(|_| fence(cover) > alone + LATENCY / 2);
            assert!(waits, "longer than {alone}");
        }
        for cover in [
            all.window(&other),
            all.context(0),
            of_window.context(0),
            all.window_pages(&other, ..),
        ] {
            let cycles = (0..4).map(|_| fence(cover)).max();
            assert!(
                cycles < Some(alone + LATENCY / 4),
                "{cycles:?}, and {alone} alone"
            );
        }
        me.endpoint.revoke_peer(peer).expect("revoked");
        me.meet();
        me.finish();
    });
}
