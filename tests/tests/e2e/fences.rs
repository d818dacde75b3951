//! Fences, where memory is so slow that it shows for what one waits.
//!
//! ```text
//!  rank 1   puts all the time into the first page of a window ────────────────────►│ it is revoked
//!  rank 0   fences of each cover: they take longer by the latency of memory, or no longer ─►
//! ```
//!
//! Of messages the same, by their context.

use std::cell::Cell;

use abi::times::CONTROL_TIMEOUT;
use host_driver::{CommandError, Cover, PairTimes, Put, RemoteRights, UndrainedAccess, WcStatus};
use posthorn_tests::cards::{GatesOnly, cards};
use posthorn_tests::side::Side;
use sim::fault::{CardPlan, FaultPlan, Span};
use sim::memory::MemoryConfig;

use crate::lent::lend;

/// Cycles until a write of the window is answered. A fence that waits for nothing takes about as long.
const LATENCY: u64 = 6_000;
const TAG: u64 = 1;
/// Puts under way. They come in bursts, since the descriptors of several are read at once, and slowly.
const PUTS: usize = 16;
/// Messages of a context under way, and all of them.
const SENDS: usize = 8;
const MESSAGES: u64 = 120;
/// Fences of each cover: some begin while a write is under way that has most of its time before it.
const TRIES: usize = 40;

fn slow() -> MemoryConfig {
    MemoryConfig {
        latency: LATENCY as u32,
        outstanding: 64,
        ..MemoryConfig::default()
    }
}

/// Cycles of a fence.
fn cycles_of(me: &Side, cover: Cover<'_>) -> u64 {
    let begin = me.device.now();
    me.pd.fence(cover).expect("fenced");
    me.device.now() - begin
}

#[test]
fn a_fence_of_a_context_waits_for_its_messages_and_for_no_others() {
    GatesOnly::Race.run(cards("tiny", 2, 262).memory(slow()), |host| {
        let mut me = Side::open(&host);
        let success = WcStatus::Success;
        if me.rank() == 1 {
            me.meet();
            for number in 0..MESSAGES {
                me.send(0, TAG, number, 64);
                while me.cq.outstanding() >= SENDS {
                    assert_eq!(me.completion().status, success);
                }
            }
            while me.cq.outstanding() > 0 {
                assert_eq!(me.completion().status, success);
            }
            me.meet();
            return me.finish();
        }
        let (posted, fences) = (Cell::new(0), Cell::new(0));
        // Receives for what comes next, and a fence beside it: how long it takes.
        let fence = |me: &mut Side, cover: Cover<'_>| {
            while me.cq.is_ready() {
                assert_eq!(me.completion().status, success);
            }
            while me.cq.outstanding() < 2 * SENDS && posted.get() < MESSAGES {
                me.receive(posted.get(), Some(1), TAG, 64);
                posted.set(posted.get() + 1);
            }
            // Messages come at regular times: the fences don't.
            fences.set(fences.get() + 1);
            me.pause(1 + 1_013 * fences.get() % LATENCY);
            cycles_of(me, cover)
        };
        let all = Cover::all();
        // Nothing is under way yet.
        let alone = fence(&mut me, all.context(0));
        me.meet();
        let waits = |me: &mut Side| {
            let long = |_| fence(me, all.context(0)) > alone + LATENCY / 3;
            assert!((0..TRIES).any(long), "longer than {alone}");
        };
        waits(&mut me);
        let cycles = (0..4).map(|_| fence(&mut me, all.context(1))).max();
        waits(&mut me);
        assert!(
            cycles < Some(alone + LATENCY / 4),
            "{cycles:?}, and {alone} alone"
        );
        while posted.get() < MESSAGES || me.cq.outstanding() > 0 {
            fence(&mut me, all.context(1));
        }
        me.meet();
        me.finish();
    });
}

#[test]
fn a_fence_waits_for_what_it_covers_and_for_nothing_else() {
    GatesOnly::Race.run(cards("tiny", 2, 261).memory(slow()), |host| {
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
        let fences = Cell::new(0);
        let fence = |cover: Cover<'_>| {
            // Puts come at regular times: the fences don't.
            fences.set(fences.get() + 1);
            me.pause(1 + 1_013 * fences.get() % LATENCY);
            cycles_of(&me, cover)
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
            let waits = (0..TRIES).any(|_| fence(cover) > alone + LATENCY / 3);
            assert!(waits, "longer than {alone}");
        }
        for cover in [
            all.window(&other),
            all.context(0),
            of_window.context(0),
            all.window_pages(&other, ..),
        ] {
            let cycles = (0..12).map(|_| fence(cover)).max();
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

/// When the bus of the card stops answering: all is set up then. It does so for longer than a fence has patience.
const STOPS: u64 = 80_000;
const GOES_ON: u64 = STOPS + CONTROL_TIMEOUT as u64 + 40_000;

#[test]
fn a_fence_that_is_late_names_an_access_that_memory_does_not_answer() {
    let plan = FaultPlan {
        cards: vec![CardPlan {
            stall_memory: Some(Span {
                begin: STOPS,
                end: GOES_ON,
            }),
            ..CardPlan::default()
        }],
        ..FaultPlan::default()
    };
    let cluster = cards("tiny", 2, 263).faults(plan);
    GatesOnly::Race.run(cluster, |host| {
        let mut me = Side::open(&host);
        let (window, key) = lend(&me, RemoteRights::WRITE);
        let peer = me.pair(1 - me.rank());
        let other = me.pd.reg_window(64, RemoteRights::WRITE).expect("a window");
        me.meet();
        assert!(me.device.now() < STOPS, "{} is late", me.device.now());
        me.pause(STOPS + 100 - me.device.now());
        let Some(window) = window else {
            let times = PairTimes {
                timeout: Some(CONTROL_TIMEOUT.ilog2() as u8),
                ..PairTimes::default()
            };
            me.endpoint.set_pair_times(peer, times).expect("set");
            let put = Put {
                pair: peer,
                key,
                offset: 8,
            };
            let buffer = me.buffer(8);
            me.endpoint.post_put(1, &put, buffer).expect("posted");
            me.meet();
            me.pause(GOES_ON - me.device.now());
            assert_eq!(me.completion().status, WcStatus::Success);
            me.meet();
            return me.finish();
        };
        me.meet();
        // It is there, and its write isn't answered.
        me.pause(10_000);
        me.pd
            .fence(Cover::all().window(&other))
            .expect("not covered");
        let access = UndrainedAccess {
            writes: true,
            region: window.region_key(),
            pair: peer.index(),
            context: None,
        };
        let late = me
            .pd
            .fence(Cover::all())
            .expect_err("its write isn't answered");
        let CommandError::Undrained { access: found, .. } = late else {
            panic!("{late}");
        };
        assert_eq!(found, access, "{late}");
        me.pause(GOES_ON + 1_000 - me.device.now());
        me.pd.fence(Cover::all()).expect("memory answers");
        me.meet();
        me.finish();
    });
}
