//! Endpoints that complete on one queue.

use host_driver::{
    Access, Buffer, CommandError, CompletionQueue, Device, Endpoint, MailboxStatus, Pair,
    PairAddress, PostError, ProtectionDomain, Source, TaggedReceive, TaggedSend, WaitError,
    WcStatus, WorkCompletion,
};
use posthorn_tests::cards::{Host, Told, both};
use posthorn_tests::side::PATIENCE;

/// Entries of the queue.
const ENTRIES: usize = 16;
const ENDPOINTS: usize = 2;

/// An endpoint, and its pair with the other card's endpoint of the same number.
struct Talker {
    endpoint: Endpoint,
    pair: Pair,
}

impl Talker {
    fn post(&self, wr_id: u64, buffer: Buffer) -> Result<(), PostError> {
        let receive = TaggedReceive {
            source: Source::Pair(self.pair),
            context: 0,
            match_bits: wr_id,
            ignore_bits: 0,
        };
        let posted = self.endpoint.post_tagged_recv(wr_id, &receive, buffer);
        posted.map(drop).map_err(|refused| refused.error)
    }

    /// Sends eight bytes; the sender isn't told.
    fn inject(&self, wr_id: u64) {
        let send = TaggedSend {
            pair: self.pair,
            context: 0,
            match_bits: wr_id,
            immediate: !wr_id,
        };
        let text = wr_id.to_le_bytes();
        while let Err(error) = self.endpoint.post_tagged_inject(wr_id, &send, &text) {
            // Which comes first is a matter of time: there are as many copies as entries.
            let later = [PostError::InjectBusy, PostError::CompletionQueueFull];
            assert!(later.contains(&error), "{error:?}");
            // What has been sent completes in silence.
            let next = self.endpoint.completion_queue().wait(500);
            assert!(
                matches!(next, Err(WaitError::Timeout | WaitError::Interrupted)),
                "{next:?}"
            );
        }
    }
}

struct Rank {
    pd: ProtectionDomain,
    cq: CompletionQueue,
    talkers: Vec<Talker>,
}

fn rank(host: &Host) -> Rank {
    let device = Device::open(host.transport()).expect("a card");
    assert!(device.limits().shared_completions);
    let pd = device.alloc_pd().expect("a domain");
    let cq = pd.create_cq(ENTRIES).expect("a queue");
    let open = || {
        let endpoint = pd.endpoint().on(&cq).open().expect("an endpoint");
        let (pair, address) = endpoint.open_pair(4).expect("a pair");
        (Talker { endpoint, pair }, address)
    };
    let opened: Vec<_> = std::iter::repeat_with(open).take(ENDPOINTS).collect();
    let mine = opened.iter().flat_map(|(_, address)| address.to_bytes());
    let all = host.all_gather(mine.collect()).expect("both connect");
    let theirs = all[1 - host.card()].chunks_exact(PairAddress::BYTES);
    for ((talker, _), bytes) in opened.iter().zip(theirs) {
        let bytes = bytes.try_into().expect("an address's length");
        let address = PairAddress::from_bytes(bytes).expect("an address");
        let connected = talker.endpoint.connect_pair(talker.pair, &address);
        connected.expect("connected");
    }
    let talkers = opened.into_iter().map(|(talker, _)| talker).collect();
    Rank { pd, cq, talkers }
}

impl Rank {
    /// Waits until all that was sent has completed, in silence: while the program calls the library, that lets go what it keeps.
    fn settle(&self) {
        while self.cq.outstanding() > 0 {
            let next = self.cq.wait(500);
            assert!(
                matches!(next, Err(WaitError::Timeout | WaitError::Interrupted)),
                "{next:?}"
            );
        }
    }

    /// The next completion.
    fn completion(&self) -> WorkCompletion {
        self.cq.wait(PATIENCE).expect("something completes")
    }

    /// Endpoint, number and status of the next completion, which is noted.
    fn next(&self, host: &Host) -> (u8, u64, WcStatus) {
        told(host, &self.completion())
    }
}

/// Notes a completion, and says its endpoint, number and status.
fn told(host: &Host, completion: &WorkCompletion) -> (u8, u64, WcStatus) {
    host.note(Told::completion(completion, Some(0)));
    if completion.status == WcStatus::Success {
        assert_eq!(completion.received(), completion.wr_id.to_le_bytes());
    }
    (completion.endpoint, completion.wr_id, completion.status)
}

fn send(host: &Host, rank: &Rank) {
    let meet = || host.all_gather(vec![]).expect("both meet");
    let [first, second] = &rank.talkers[..] else {
        unreachable!("there are two")
    };
    meet();
    (0..40).for_each(|wr_id| second.inject(wr_id));
    rank.settle();
    meet();
    (100..114).for_each(|wr_id| first.inject(wr_id));
    rank.settle();
    meet();
    first.inject(300);
    meet();
}

fn receive(host: &Host, rank: &Rank) {
    let meet = || host.all_gather(vec![]).expect("both meet");
    let [first, second] = &rank.talkers[..] else {
        unreachable!("there are two")
    };
    let (_, mut memory) = rank.pd.reg_mr(4096, Access::Write).expect("a region");
    let [one, other] = [first, second].map(|talker| talker.endpoint.index());
    // Receives of the first hold all places but two.
    for wr_id in 100..114 {
        first.post(wr_id, memory.split_to(8)).expect("room");
    }
    meet();
    // The second has those again and again: had the card none free for what was posted, it would never fetch it.
    for wr_id in (0..40).step_by(2) {
        second.post(wr_id, memory.split_to(8)).expect("room");
        second.post(wr_id + 1, memory.split_to(8)).expect("room");
        for talker in [first, second] {
            let refused = talker.post(1000, Buffer::empty());
            assert_eq!(refused, Err(PostError::CompletionQueueFull));
        }
        assert_eq!(rank.next(host), (other, wr_id, WcStatus::Success));
        assert_eq!(rank.next(host), (other, wr_id + 1, WcStatus::Success));
    }
    meet();
    for wr_id in 100..114 {
        assert_eq!(rank.next(host), (one, wr_id, WcStatus::Success));
    }
    // The second is closed with receives outstanding, which are flushed; the first isn't before that, and goes on.
    for wr_id in 200..203 {
        second.post(wr_id, Buffer::empty()).expect("room");
    }
    let Err(CommandError::Refused { status, .. }) = first.endpoint.close() else {
        panic!("the owner of the queue closes first");
    };
    assert_eq!(status, MailboxStatus::Busy);
    second.endpoint.close().expect("closed");
    // In any order.
    let mut flushed = [(); 3].map(|()| rank.completion());
    flushed.sort_unstable_by_key(|ended| ended.wr_id);
    assert_eq!(
        flushed.map(|ended| told(host, &ended)),
        [200, 201, 202].map(|wr_id| (other, wr_id, WcStatus::Flushed))
    );
    first.post(300, memory.split_to(8)).expect("room");
    meet();
    assert_eq!(rank.next(host), (one, 300, WcStatus::Success));
    first.endpoint.close().expect("closed");
    assert_eq!((rank.cq.outstanding(), rank.cq.strays()), (0, 0));
    meet();
}

#[test]
pub fn endpoints_on_one_queue_are_told_apart_hold_their_places_and_the_first_closes_last() {
    both("tiny", 2, 93, |host| {
        let rank = rank(&host);
        match host.card() {
            0 => send(&host, &rank),
            _ => receive(&host, &rank),
        }
    });
}
