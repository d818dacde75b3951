//! What is refused to peers: counted by reason, told at a bounded rate, and shut out for a while when it is too often.

use crate::common::{Side, able_options, connected};
use abi::times::{REFUSAL_INTERVAL, SHUT_OUT_TICK};
use host_driver::{
    Cause, CommandError, MailboxStatus, Pair, PairCounter, PeerRefusal, Put, RefusalReason,
    RemoteKey, RemoteRights, ShutOut, WcStatus, Window,
};
use soft_card::SoftFabric;

const LENGTH: usize = 4096;
/// What is granted of the window.
const PART: std::ops::Range<usize> = 64..192;

/// The first side puts by two pairs into the window of the second.
struct Stage {
    a: Side,
    b: Side,
    /// The other pair, as either side names it.
    other: [Pair; 2],
    window: Window,
}

impl Stage {
    fn new() -> Self {
        let fabric = SoftFabric::new(able_options());
        let (a, b) = connected(&fabric, 1);
        let (near, address) = a.endpoint.open_pair(1).unwrap();
        let (far, peer) = b.endpoint.open_pair(1).unwrap();
        a.endpoint.connect_pair(near, &peer).unwrap();
        b.endpoint.connect_pair(far, &address).unwrap();
        let rights = RemoteRights::WRITE | RemoteRights::READ;
        let window = b.pd.reg_window(LENGTH, rights).unwrap();
        Self {
            a,
            b,
            other: [near, far],
            window,
        }
    }

    fn grant(&self, pair: Pair, rights: RemoteRights) -> RemoteKey {
        let granted = self.window.grant(&self.b.endpoint, pair, rights, PART);
        granted.unwrap()
    }

    /// Puts eight bytes: with what it ends.
    #[track_caller]
    fn put(&mut self, pair: Pair, key: RemoteKey, offset: u64) -> WcStatus {
        let buffer = self.a.filled(&[7; 8]);
        let put = Put { pair, key, offset };
        self.a.endpoint.post_put(1, &put, buffer).unwrap();
        self.a.next_past_events().status
    }

    #[track_caller]
    fn is_refused(&mut self, pair: Pair, key: RemoteKey, offset: u64) {
        let status = self.put(pair, key, offset);
        assert_eq!(status, WcStatus::RemoteAccess);
    }

    /// How often the peer of a pair was refused something, for each reason.
    fn counted(&self, pair: Pair) -> Vec<(RefusalReason, u32)> {
        let counters = self.b.endpoint.pair_counters(pair).unwrap();
        let all = RefusalReason::ALL.iter();
        let all = all.map(|&reason| (reason, counters.get(PairCounter::of_refusals(reason))));
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// The refusals that events have told since the last call.
    fn told(&self) -> Vec<(Option<Pair>, PeerRefusal)> {
        let mut all = Vec::new();
        while let Some(event) = self.b.endpoint.poll_event().unwrap() {
            let refusal = event.refusal();
            assert_eq!(refusal.is_some(), event.cause == Cause::PeerRefused);
            all.extend(refusal.map(|refusal| (event.pair, refusal)));
        }
        all
    }

    /// Waits until an event may come again.
    fn rest(&self) {
        self.b.pause(2 * u64::from(REFUSAL_INTERVAL));
    }
}

#[test]
pub fn each_refusal_is_counted_by_its_reason_and_told_with_its_place() {
    let mut stage = Stage::new();
    let (mine, far) = (stage.a.pair, stage.b.pair);
    let write = RemoteRights::WRITE;
    let key = stage.grant(far, write);
    let reads = stage.grant(far, RemoteRights::READ);
    let anothers = stage.grant(stage.other[1], write);
    let gone = stage.grant(far, write);
    stage.window.revoke(gone).unwrap();
    let tag = RemoteKey::from_bits(key.to_bits() ^ 1 << 40);
    let region = stage.window.region_key();
    assert_eq!(stage.put(mine, key, 64), WcStatus::Success);
    let mut counted = Vec::new();
    let mut expect = |stage: &mut Stage, key, offset, reason, region| {
        stage.is_refused(mine, key, offset);
        stage.rest();
        let refusal = PeerRefusal {
            region,
            offset,
            reason,
            count: 1,
        };
        assert_eq!(stage.told(), [(Some(far), refusal)]);
        counted.push((reason, 1));
        assert_eq!(stage.counted(far), counted);
        assert_eq!(stage.counted(stage.other[1]), []);
    };
    expect(&mut stage, gone, 64, RefusalReason::UnknownKey, 0);
    expect(&mut stage, tag, 65, RefusalReason::WrongTag, region);
    expect(&mut stage, anothers, 66, RefusalReason::WrongPeer, region);
    stage.b.endpoint.revoke_peer(far).unwrap();
    // The firmware clears the rows of what was revoked: none of it is there any more.
    let key = stage.grant(far, write);
    let reads_anew = stage.grant(far, RemoteRights::READ);
    assert_ne!(reads, reads_anew);
    expect(
        &mut stage,
        reads_anew,
        67,
        RefusalReason::MissingRight,
        region,
    );
    let far_away = u64::MAX - 3;
    expect(
        &mut stage,
        key,
        far_away,
        RefusalReason::OutOfBounds,
        region,
    );
    let refused = stage.b.endpoint.query_pair(far).unwrap().refused;
    assert_eq!(refused, 5, "all of them together");
}

#[test]
pub fn many_refusals_are_few_events_and_their_counts_are_all_of_them() {
    let mut stage = Stage::new();
    let (mine, far) = (stage.a.pair, stage.b.pair);
    let [other, other_far] = stage.other;
    let key = stage.grant(far, RemoteRights::WRITE);
    let others = stage.grant(other_far, RemoteRights::WRITE);
    let start = stage.b.device.now();
    for number in 0..300 {
        stage.is_refused(mine, key, 1000 + number);
        if number % 100 == 50 {
            stage.is_refused(other, others, 2000 + number);
        }
    }
    stage.rest();
    stage.rest();
    let told = stage.told();
    let intervals = (stage.b.device.now() - start) / u64::from(REFUSAL_INTERVAL);
    assert!(told.len() as u64 <= intervals + 1, "{told:?}");
    for (pair, number, last) in [(far, 300, 1299), (other_far, 3, 2250)] {
        let of_pair: Vec<_> = told.iter().filter(|told| told.0 == Some(pair)).collect();
        let sum: u32 = of_pair.iter().map(|told| u32::from(told.1.count)).sum();
        assert_eq!(sum, number, "{told:?}");
        assert_eq!(of_pair.last().unwrap().1.offset, last);
    }
    assert_eq!(stage.counted(far), [(RefusalReason::OutOfBounds, 300)]);
}

#[test]
pub fn who_is_refused_too_often_is_denied_all_for_a_while_and_nobody_else() {
    let mut stage = Stage::new();
    let (mine, far) = (stage.a.pair, stage.b.pair);
    let [other, other_far] = stage.other;
    let key = stage.grant(far, RemoteRights::WRITE);
    let others = stage.grant(other_far, RemoteRights::WRITE);
    let status = |stage: &Stage| stage.b.endpoint.query_shut_out(far).unwrap();
    assert_eq!(status(&stage).chosen, ShutOut::default(), "the card's own");
    let chosen = ShutOut {
        limit: 4,
        ticks: 2000,
    };
    stage.b.endpoint.set_shut_out(far, chosen).unwrap();
    for count in 1..=3 {
        stage.is_refused(mine, key, 0);
        assert_eq!((status(&stage).count, status(&stage).left), (count, 0));
        assert_eq!(stage.put(mine, key, 64), WcStatus::Success);
    }
    stage.is_refused(mine, key, 0);
    assert_eq!(status(&stage).count, 0, "it starts anew");
    assert!((1..=2000).contains(&status(&stage).left));
    // Nothing that it may not, nor what it may. Its messages go on, and others' puts.
    for _ in 0..5 {
        stage.is_refused(mine, key, 64);
        assert_eq!(stage.put(other, others, 64), WcStatus::Success);
    }
    let receive = stage.b.receive(3);
    stage.b.post(3, &receive);
    let send = stage.a.send(3);
    stage
        .a
        .endpoint
        .post_tagged_inject(4, &send, b"goes on")
        .unwrap();
    assert_eq!(stage.b.next_past_events().received(), b"goes on");
    let reasons = [(RefusalReason::OutOfBounds, 4), (RefusalReason::ShutOut, 5)];
    assert_eq!(stage.counted(far), reasons);
    assert_eq!(stage.counted(other_far), []);
    stage.rest();
    let last = *stage.told().last().expect("events");
    assert_eq!(last.0, Some(far));
    assert_eq!((last.1.region, last.1.reason), (0, RefusalReason::ShutOut));

    // When the time is over, its keys are as good as before.
    stage.b.pause(2000 * u64::from(SHUT_OUT_TICK));
    assert_eq!(stage.put(mine, key, 64), WcStatus::Success);
    assert_eq!((status(&stage).count, status(&stage).left), (0, 0));
    for _ in 0..4 {
        stage.is_refused(mine, key, 0);
    }
    stage.is_refused(mine, key, 64);
    // Choosing anew ends it at once, and without a limit it never begins.
    stage.b.endpoint.set_shut_out(far, ShutOut::NEVER).unwrap();
    for _ in 0..2000 {
        stage.is_refused(mine, key, 0);
    }
    assert_eq!(stage.put(mine, key, 64), WcStatus::Success);
    assert_eq!(status(&stage).chosen, ShutOut::NEVER);
}

#[test]
pub fn the_cards_own_limit_holds_until_another_is_chosen() {
    let mut stage = Stage::new();
    let (mine, far) = (stage.a.pair, stage.b.pair);
    let key = stage.grant(far, RemoteRights::WRITE);
    let own = ShutOut::default();
    for _ in 0..own.limit {
        assert_eq!(stage.put(mine, key, 64), WcStatus::Success);
        stage.is_refused(mine, key, 0);
    }
    stage.is_refused(mine, key, 64);
    let left = stage.b.endpoint.query_shut_out(far).unwrap().left;
    assert!((1..=own.ticks).contains(&left));
}

#[test]
pub fn it_is_of_one_connection() {
    let stage = Stage::new();
    let endpoint = &stage.b.endpoint;
    let (pair, _) = endpoint.open_pair(1).unwrap();
    let absent = |error: CommandError| match error {
        CommandError::Refused { status, .. } => assert_eq!(status, MailboxStatus::NotConnected),
        error => panic!("{error}"),
    };
    absent(endpoint.set_shut_out(pair, ShutOut::NEVER).unwrap_err());
    absent(endpoint.query_shut_out(pair).unwrap_err());
    endpoint.set_shut_out(stage.b.pair, ShutOut::NEVER).unwrap();
    let of_other = endpoint.query_shut_out(stage.other[1]).unwrap();
    assert_eq!(of_other.chosen, ShutOut::default());
}
