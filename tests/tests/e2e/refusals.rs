//! What is refused to peers on whole cards: counted for each and each reason, told at a bounded rate, and shut out for a while when it is too often.

use abi::times::{REFUSAL_INTERVAL, SHUT_OUT_TICK};
use host_driver::{PairCounter, Put, RefusalReason, RemoteKey, RemoteRights, ShutOut, WcStatus};
use posthorn_tests::cards::both;
use posthorn_tests::side::Side;

/// Bytes of a window, and the first that peers may write.
const LENGTH: usize = 4096;
const PART: u64 = 1024;
/// Refusals after which rank 1 is shut out, and the ticks.
const LIMIT: u16 = 20;
const TICKS: u16 = 60;
/// Puts of rank 1 meanwhile, and of rank 2.
const DENIED: u16 = 20;

/// Puts eight bytes into the window of rank 0, and says with what that ends.
fn ends(me: &mut Side, key: u64, offset: u64) -> WcStatus {
    let mut buffer = me.buffer(8);
    buffer.fill(9);
    let put = Put {
        pair: me.pair(0),
        key: RemoteKey::from_bits(key),
        offset,
    };
    me.endpoint.post_put(1, &put, buffer).expect("posted");
    let ended = me.completion();
    assert_eq!(ended.wr_id, 1);
    ended.status
}

/// How often a rank was refused something, for each reason.
fn counted(me: &Side, rank: usize) -> Vec<(RefusalReason, u32)> {
    // One command for each counter of the pair: once, and not for each reason.
    let counters = me.endpoint.pair_counters(me.pair(rank)).expect("open");
    let all = RefusalReason::ALL.iter().map(|&reason| {
        let counter = PairCounter::of_refusals(reason);
        (reason, counters.get(counter))
    });
    all.filter(|(_, count)| *count > 0).collect()
}

#[test]
pub(crate) fn refusals_are_counted_told_and_shut_out_and_nobody_else_waits() {
    both("tiny", 3, 241, |host| {
        let mut me = Side::open(&host);
        let rights = RemoteRights::WRITE;
        let window = (me.rank() == 0).then(|| me.pd.reg_window(LENGTH, rights).expect("a window"));
        let grant = |rank: usize| {
            let window = window.as_ref().expect("rank 0");
            let key = window.grant(&me.endpoint, me.pair(rank), rights, PART as usize..);
            key.expect("a key").to_bits()
        };
        let keys = match me.rank() {
            0 => [grant(1), grant(2)].map(u64::to_le_bytes).concat(),
            _ => Vec::new(),
        };
        if me.rank() == 0 {
            let chosen = ShutOut {
                limit: LIMIT,
                ticks: TICKS,
            };
            let set = me.endpoint.set_shut_out(me.pair(1), chosen);
            set.expect("connected");
        }
        let all = host.all_gather(keys).expect("all ranks");
        let key = |rank: usize| {
            let bits = all[0][8 * (rank - 1)..][..8].try_into().expect("eight");
            u64::from_le_bytes(bits)
        };
        let (mine, others) = (key(1), key(2));
        let refused = WcStatus::RemoteAccess;
        // Each reason a few times, in the order that events tell of them.
        let rounds: [(u64, u64, RefusalReason); 4] = [
            (mine ^ 1 << 50, PART, RefusalReason::WrongTag),
            (others, PART, RefusalReason::WrongPeer),
            (mine | 0x3f, PART, RefusalReason::UnknownKey),
            (mine, PART - 1, RefusalReason::OutOfBounds),
        ];
        for (number, (key, offset, reason)) in rounds.into_iter().enumerate() {
            if me.rank() == 1 {
                for _ in 0..3 {
                    assert_eq!(ends(&mut me, key, offset), refused, "{reason}");
                }
                assert_eq!(ends(&mut me, mine, PART), WcStatus::Success);
            }
            me.meet();
            // The first is told when the interval after the round before is over, and the others with it.
            me.pause(u64::from(REFUSAL_INTERVAL) + 4096);
            if let Some(window) = &window {
                let told = me.refusals();
                let sum: u16 = told.iter().map(|(_, told)| told.count).sum();
                assert_eq!(sum, 3, "{told:?}");
                for (rank, told) in told {
                    assert_eq!(rank, Some(1));
                    let region = match reason {
                        RefusalReason::UnknownKey => 0,
                        _ => window.region_key(),
                    };
                    let found = (told.region, told.offset, told.reason);
                    assert_eq!(found, (region, offset, reason));
                }
                let mut so_far: Vec<_> = rounds[..=number].iter().map(|r| (r.2, 3)).collect();
                so_far.sort_unstable();
                assert_eq!(counted(&me, 1), so_far);
            }
            me.meet();
        }

        // The rest up to the limit, and rank 1 may do nothing. Rank 2 puts all the while.
        let start = me.device.now();
        if me.rank() == 1 {
            for _ in 0..LIMIT - 12 {
                assert_eq!(ends(&mut me, mine, PART - 1), refused);
            }
        }
        me.meet();
        match me.rank() {
            1 => {
                for _ in 0..DENIED {
                    assert_eq!(ends(&mut me, mine, PART), refused);
                }
                // Messages go on.
                me.send(0, 5, 6, 8);
                assert_eq!(me.completion().status, WcStatus::Success);
            }
            2 => {
                for _ in 0..DENIED {
                    assert_eq!(ends(&mut me, others, PART), WcStatus::Success);
                }
            }
            _ => {
                me.receive(7, Some(1), 5, 8);
                assert_eq!(me.completion().status, WcStatus::Success);
            }
        }
        me.meet();
        let status = |me: &Side| me.endpoint.query_shut_out(me.pair(1)).expect("open");
        if me.rank() == 0 {
            let status = status(&me);
            assert!(
                status.count == 0 && (1..TICKS).contains(&status.left),
                "{status:?}"
            );
        }
        // When the time is over, what it may goes on.
        me.pause(u64::from(TICKS + 1) * u64::from(SHUT_OUT_TICK));
        if me.rank() == 1 {
            assert_eq!(ends(&mut me, mine, PART), WcStatus::Success);
        }
        me.meet();
        if me.rank() == 0 {
            let wanted = u32::from(DENIED);
            assert_eq!(me.count_of(1, PairCounter::RefusedShutOut), wanted);
            let told = me.refusals();
            let sum: u32 = told.iter().map(|(_, told)| u32::from(told.count)).sum();
            assert_eq!(sum, wanted + u32::from(LIMIT) - 12, "{told:?}");
            let (_, last) = told.last().expect("events");
            assert_eq!((last.region, last.reason), (0, RefusalReason::ShutOut));
            let bound = (me.device.now() - start) / u64::from(REFUSAL_INTERVAL) + 1;
            assert!(told.len() as u64 <= bound, "{told:?}");
            assert_eq!(counted(&me, 2), []);
            assert_eq!((status(&me).count, status(&me).left), (0, 0));
            let refused = u32::from(LIMIT) + wanted;
            assert_eq!(me.pair_status(1).refused, refused);
        }
        me.meet();
        me.finish();
    });
}
