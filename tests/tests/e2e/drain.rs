//! Drains on whole cards: the firmware that was built agrees with itself over the wire, whoever dies meanwhile.

use host_driver::transport::PauseResult;
use host_driver::{
    Cause, DrainError, DrainOptions, DrainPolicy, Drained, Group, MessageSet, WaitError,
    WatchOptions, WcStatus,
};
use posthorn_tests::cards::{GatesOnly, cards};
use posthorn_tests::side::{PATIENCE, Setup, Side};
use sim::fault::{CardPlan, FaultPlan, HostPlan, process};

/// Cycles that a drain may take, and the search for a silent member in it.
const DRAINED: u64 = 2_000_000;

/// The least: a silent peer has failed after three looks.
const WATCH: WatchOptions = WatchOptions {
    interval: abi::times::WATCH_INTERVAL_LEAST,
    timeout: 2 * abi::times::WATCH_INTERVAL_LEAST,
    believe_peers: false,
};

fn try_to_drain(me: &Side, policy: DrainPolicy) -> Result<Drained, DrainError> {
    let others = (0..me.host.cards()).filter(|&rank| rank != me.rank());
    let others: Vec<_> = others.map(|rank| (rank as u32, me.pair(rank))).collect();
    let group = Group::new(&me.endpoint, &others, me.rank() as u32).expect("a group");
    let options = DrainOptions {
        tag: 7,
        messages: MessageSet::of_context(0),
        policy,
        peer: None,
        timeout: DRAINED,
    };
    me.endpoint.drain(&group, &options)
}

fn drain(me: &Side, policy: DrainPolicy) -> Drained {
    let drained = try_to_drain(me, policy);
    drained.unwrap_or_else(|error| panic!("rank {}: {error}", me.rank()))
}

/// One message each way between ranks 0 and 1, as the first of a context that was drained.
fn talks_again(me: &mut Side) {
    let other = 1 - me.rank();
    me.receive(1001, Some(other), 7, 8);
    me.send(other, 7, 1000, 8);
    for _ in 0..2 {
        let completion = me.completion();
        match completion.wr_id {
            1000 => assert_eq!(completion.status, WcStatus::Success),
            _ => me.assert_received(&completion, other, 1000, 8),
        }
    }
}

/// The example of the proposal for `MPI_Comm_drain_all`: process 0 waits in a receive from 1, process 1 in one from 2, which fails. Process 1 gets an error, and drains
/// while it handles that; process 0 is interrupted, so that it can take part.
#[test]
fn the_three_processes_of_the_proposal_for_mpi_comm_drain_all() {
    GatesOnly::Race.run(cards("tiny", 3, 701), |host| {
        let mut me = Side::with(&host, Setup::with_credits(2));
        if me.rank() < 2 {
            me.receive(me.rank() as u64, Some(me.rank() + 1), 7, 8);
        }
        me.meet();
        match me.rank() {
            0 => loop {
                let interrupted = me.cq.wait(PATIENCE).map(|ended| ended.status);
                assert_eq!(interrupted.err(), Some(WaitError::Interrupted));
                let event = me.endpoint.poll_event().expect("a card").expect("an event");
                if event.cause == Cause::Drain {
                    assert_eq!(event.pair, Some(me.pair(1)));
                    break;
                }
            },
            1 => assert_eq!(me.statuses(1), [(1, WcStatus::PeerFailed)]),
            _ => {
                // Its system closes what it had.
                drop(me);
                host.all_gather(Vec::new()).expect("the others end");
                return;
            }
        }
        let drained = drain(&me, DrainPolicy::Reset);
        assert_eq!((drained.round, drained.failed), (1, vec![2]));
        if me.rank() == 0 {
            assert_eq!(me.statuses(1), [(0, WcStatus::Cancelled)]);
        }
        talks_again(&mut me);
        me.meet();
    });
}

/// Cycle in which three ranks that are connected begin to drain.
const BEGIN: u64 = 150_000;

/// Three ranks drain while messages are under way among all of them, and rank 2 or its card is killed so many cycles later.
fn survivors_agree(policy: DrainPolicy, card_dies: bool, after: u64) {
    let kill = Some(BEGIN + after);
    let mut plan = FaultPlan::default();
    match card_dies {
        true => plan.cards.push(CardPlan {
            card: 2,
            kill,
            ..CardPlan::default()
        }),
        false => plan.hosts.push(HostPlan {
            card: 2,
            kill,
            ..HostPlan::default()
        }),
    }
    let cluster = cards("tiny", 3, 702).faults(plan).quiet_limit(DRAINED);
    GatesOnly::Race.run(cluster, |host| {
        let begin = || {
            let mut me = Side::with(&host, Setup::with_credits(2));
            me.endpoint.watch_peers(WATCH).expect("watched");
            let now = me.device.now();
            assert!(now < BEGIN, "connected in cycle {now}");
            me.pause(BEGIN - now - 2_000);
            let own = me.rank();
            let others = (0..3).filter(|&rank| rank != own);
            for (rank, number) in others.flat_map(|rank| (0..3).map(move |k| (rank, k))) {
                if number < 1 {
                    me.receive(100 + rank as u64, Some(rank), 7, 8);
                }
                // The last one has no credit.
                me.send(rank, 7, number, 8);
            }
            me.receive(110, None, 8, 8);
            let now = me.device.now();
            me.pause(BEGIN - now);
            me
        };
        if host.card() == 2 {
            let died = process(0, || {
                let me = begin();
                // Its end comes in there, or behind it.
                let _ = try_to_drain(&me, policy);
                me.device.pause(&[], u64::MAX)
            });
            assert!(matches!(died, Err(_) | Ok(PauseResult::Closed)));
            (0..3).for_each(|_| drop(host.all_gather(Vec::new()).expect("the others go on")));
            return;
        }
        let mut me = begin();
        let first = drain(&me, policy);
        assert!(
            Some(me.device.now()) > kill,
            "it ended in {}",
            me.device.now()
        );
        let second = drain(&me, policy);
        assert_eq!((first.round, second.round), (1, 2));
        assert_eq!(second.failed, [2]);
        let told = first.failed.iter().map(|&rank| rank as u8).collect();
        let all = host.all_gather(told).expect("a gathering");
        assert_eq!(all[0], all[1], "they don't agree");
        // Each request has ended once, as it may: 6 sends, 3 receives.
        let ended: Vec<_> = std::iter::from_fn(|| me.cq.poll()).collect();
        assert_eq!((ended.len(), me.cq.outstanding()), (9, 0));
        for done in ended {
            let may = [WcStatus::Success, WcStatus::Cancelled, WcStatus::PeerFailed];
            assert!(may.contains(&done.status), "{done:?}");
        }
        me.meet();
        talks_again(&mut me);
        me.meet();
    });
}

#[test]
fn a_process_that_is_killed_while_all_drain_is_named_by_all_others_who_go_on() {
    survivors_agree(DrainPolicy::Continue { patience: 20_000 }, false, 10_000);
}

#[test]
fn a_card_that_loses_its_power_while_all_drain_is_named_by_all_others_who_go_on() {
    survivors_agree(DrainPolicy::Reset, true, 10_000);
}
