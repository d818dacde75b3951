//! A drain on whole cards: the firmware that was built agrees with itself over the wire.

use host_driver::{
    Cause, DrainOptions, DrainPolicy, Drained, Group, MessageSet, WaitError, WcStatus,
};
use posthorn_tests::cards::{GatesOnly, cards};
use posthorn_tests::side::{PATIENCE, Setup, Side};

/// Cycles that a drain may take, and the search for a silent member in it.
const DRAINED: u64 = 2_000_000;
fn drain(me: &Side, policy: DrainPolicy) -> Drained {
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
    let drained = me.endpoint.drain(&group, &options);
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
