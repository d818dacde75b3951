//! Messages that are revoked: what was pending of them ends, what comes is dropped with its credit, and nothing else notices.

use host_driver::{
    Cause, Counter, Group, MessageSet, Revocation, TaggedReceive, TaggedSend, WatchOptions,
    WcStatus,
};
use posthorn_tests::cards::both;
use posthorn_tests::side::{Setup, Side};

/// Cycles that a revocation may take, and after which all that was sent has come.
const REST: u64 = 100_000;

/// Messages of context 0 whose second digit is 1.
const ONES: MessageSet = MessageSet {
    context: 0,
    match_bits: 0x10,
    mask: 0xf0,
};

fn revoke(me: &Side, rank: usize, messages: &MessageSet) -> Revocation {
    let members = [(rank as u32, me.pair(rank))];
    let group = Group::new(&me.endpoint, &members, me.rank() as u32).expect("a group");
    let revoked = me.endpoint.revoke(&group, messages, REST);
    revoked.expect("revoked")
}

/// So many completions, by their names.
fn sorted(me: &mut Side, count: usize) -> Vec<(u64, WcStatus)> {
    let mut told = me.statuses(count);
    told.sort_unstable_by_key(|&(name, _)| name);
    told
}

fn revoked<const N: usize>(names: [u64; N]) -> [(u64, WcStatus); N] {
    names.map(|name| (name, WcStatus::Revoked))
}

#[test]
pub fn what_falls_under_a_rule_is_dropped_and_refused_until_it_is_cleared() {
    both("tiny", 2, 601, |host| {
        let mut me = Side::with(&host, Setup::with_credits(2));
        if me.rank() == 1 {
            me.meet();
            // More than it has credit for, and then what isn't revoked: by its match bits, and by its context.
            for number in 0..6 {
                me.send(0, 0x10 + number, number, 8);
            }
            me.send(0, 0x22, 6, 8);
            let other = TaggedSend {
                context: 1,
                ..me.address(0, 0x12, 7)
            };
            let sent = me.endpoint.post_tagged_inject(7, &other, b"context1");
            sent.expect("room");
            let delivered: Vec<_> = (0..7).map(|number| (number, WcStatus::Success)).collect();
            assert_eq!(sorted(&mut me, 7), delivered);
            me.meet();
            me.meet();
            me.send(0, 0x13, 8, 8);
            me.statuses(1);
            me.finish();
            return;
        }
        me.receive(1, Some(1), 0x12, 8);
        me.receive(2, Some(1), 0x22, 8);
        let in_other = TaggedReceive {
            context: 1,
            ..me.filter(Some(1), 0x12, 0)
        };
        let buffer = me.buffer(8);
        let posted = me.endpoint.post_tagged_recv(3, &in_other, buffer);
        posted.expect("posted");
        // It may be for messages that aren't revoked.
        let wide = me.filter(Some(1), 0x75, 0x70);
        let buffer = me.buffer(8);
        let kept = me.endpoint.post_tagged_recv(4, &wide, buffer);
        let kept = kept.expect("posted");
        let revocation = revoke(&me, 1, &ONES);
        assert_eq!(revocation.swept.receives, 1);
        assert_eq!(me.statuses(1), revoked([1]));
        me.receive(10, Some(1), 0x15, 8);
        me.receive(11, None, 0x1f, 8);
        let filter = me.filter(Some(1), 0x10, 0xf);
        me.endpoint.probe(12, &filter).expect("room");
        me.endpoint.claim(13, &filter).expect("room");
        assert_eq!(sorted(&mut me, 4), revoked([10, 11, 12, 13]));
        me.meet();
        let taken = [(2, WcStatus::Success), (3, WcStatus::Success)];
        assert_eq!(sorted(&mut me, 2), taken);
        me.meet();
        assert_eq!(me.count(Counter::RuleDrops), 6);
        me.endpoint.cancel(20, kept).expect("room");
        assert_eq!(me.cancelled(4).status, WcStatus::Cancelled);
        me.endpoint.restore(revocation.rule).expect("cleared");
        me.receive(5, Some(1), 0x13, 8);
        me.meet();
        let received = me.completion();
        assert_eq!(received.wr_id, 5);
        me.assert_received(&received, 1, 8, 8);
        assert_eq!(me.count(Counter::RuleDrops), 6);
        me.finish();
    });
}

#[test]
pub fn a_rule_is_of_its_group_and_of_its_endpoint() {
    both("tiny", 3, 602, |host| {
        let mut me = Side::with(&host, Setup::with_credits(4));
        if me.rank() > 0 {
            me.meet();
            let number = me.rank() as u64;
            me.send(0, 5, number, 8);
            assert_eq!(me.statuses(1), [(number, WcStatus::Success)]);
            me.meet();
            me.finish();
            return;
        }
        revoke(&me, 1, &MessageSet::of_context(0));
        me.receive(1, Some(2), 5, 8);
        let other = me.pd.endpoint().open().expect("an endpoint");
        let buffer = me.buffer(8);
        let any = me.filter(None, 5, 0);
        let posted = other.post_tagged_recv(9, &any, buffer).expect("room");
        me.meet();
        let received = me.completion();
        assert_eq!(received.wr_id, 1);
        me.assert_received(&received, 2, 2, 8);
        me.meet();
        assert_eq!(me.count(Counter::RuleDrops), 1);
        assert!(other.completion_queue().poll().is_none());
        other.cancel(20, posted).expect("room");
        let ended = other.completion_queue().wait(REST).expect("it ends");
        assert_eq!((ended.wr_id, ended.status), (9, WcStatus::Cancelled));
        me.finish();
    });
}

#[test]
pub fn a_pair_that_is_closed_leaves_the_groups_and_an_endpoint_takes_its_rules_with_it() {
    both("tiny", 2, 603, |host| {
        let mut me = Side::with(&host, Setup::with_credits(4));
        for round in 0..3 {
            if me.rank() == 0 {
                revoke(&me, 1, &MessageSet::of_context(0));
            }
            me.meet();
            let place = me.pair(1 - me.rank()).index();
            // The revoker closes first, and its peer hears of it.
            match (me.rank(), round) {
                (0, 0) => me.disconnect(1),
                (0, _) => _ = me.reopen(),
                _ => {}
            }
            me.meet();
            me.pause(REST / 10);
            assert_eq!(me.events().len(), me.rank());
            if me.rank() == 1 {
                me.disconnect(0);
            }
            me.meet();
            me.connect();
            assert_eq!(
                me.pair(1 - me.rank()).index(),
                place,
                "the next in its place"
            );
            if me.rank() == 1 {
                me.send(0, 5, round, 8);
                assert_eq!(me.statuses(1), [(round, WcStatus::Success)]);
            } else {
                me.receive(round, Some(1), 5, 8);
                let received = me.completion();
                me.assert_received(&received, 1, round, 8);
                assert_eq!(me.count(Counter::RuleDrops), 0);
            }
            me.meet();
        }
        me.finish();
    });
}

/// Rank 0 tells rank 1 and not rank 2. The gates of 1 refuse what is revoked before its program has taken an event or given a command, of the whole group; then the
/// program reads it, which sends no frame, and ends what is pending.
#[test]
pub fn a_revocation_is_told_to_a_chosen_peer_whose_gates_refuse_it_before_its_program_knows() {
    const TAG: u32 = 0x7000_0005;
    both("tiny", 3, 604, |host| {
        let mut me = Side::with(&host, Setup::with_credits(4));
        let rank = me.rank();
        let others = (0..3).filter(|&other| other != rank);
        let members: Vec<_> = others.map(|other| (other as u32, me.pair(other))).collect();
        let group = Group::new(&me.endpoint, &members, rank as u32).expect("a group");
        let believing = WatchOptions {
            believe_peers: true,
            ..WatchOptions::OFF
        };
        me.endpoint.watch_peers(believing).expect("watched");
        me.endpoint.name_group(TAG, &group).expect("named");
        if rank == 1 {
            me.receive(1, Some(2), 0x12, 8);
            me.receive(2, Some(2), 0x22, 8);
        }
        me.meet();
        if rank == 0 {
            let to = [me.pair(1)];
            me.endpoint.tell_revoked(TAG, &ONES, &to).expect("told");
        }
        me.pause(REST);
        me.meet();
        match rank {
            1 => {
                me.receive(3, Some(2), 0x13, 8);
                me.receive(4, None, 0x14, 8);
                assert_eq!(sorted(&mut me, 2), revoked([3, 4]));
                me.meet();
                assert_eq!(me.statuses(1), [(2, WcStatus::Success)]);
                assert_eq!(me.count(Counter::RuleDrops), 1);
                let sent = me.count(Counter::FramesSent);
                let told = me.endpoint.revoked().expect("an open endpoint");
                assert_eq!(me.count(Counter::FramesSent), sent);
                assert_eq!(told.len(), 1);
                let told = told[0];
                assert_eq!((told.from, told.tag), (Some(me.pair(0)), TAG));
                assert_eq!((told.messages, told.is_refused), (ONES, true));
                let events: Vec<_> = me.events().iter().map(|e| (e.cause, e.info)).collect();
                assert_eq!(events, [(Cause::Revoked, told.number.into())]);
                let ended = me.endpoint.revoke(&group, &told.messages, REST);
                let ended = ended.expect("revoked");
                assert_eq!(ended.swept.receives, 1);
                assert_eq!(me.statuses(1), revoked([1]));
                me.endpoint.restore(ended.rule).expect("it holds");
                assert_eq!(me.endpoint.revoked(), Ok(vec![]));
                me.receive(5, Some(2), 0x15, 8);
                me.meet();
                assert_eq!(me.statuses(1), [(5, WcStatus::Success)]);
            }
            2 => {
                me.meet();
                me.send(1, 0x12, 1, 8);
                me.send(1, 0x22, 2, 8);
                let sent = [(1, WcStatus::Success), (2, WcStatus::Success)];
                assert_eq!(sorted(&mut me, 2), sent);
                assert_eq!(me.endpoint.revoked(), Ok(vec![]));
                me.meet();
                me.send(1, 0x15, 5, 8);
                assert_eq!(me.statuses(1), [(5, WcStatus::Success)]);
            }
            _ => {
                me.meet();
                assert_eq!(me.endpoint.revoked(), Ok(vec![]));
                me.meet();
            }
        }
        me.finish();
    });
}
