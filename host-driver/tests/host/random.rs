//! Random traffic both ways, with cancels, probes, claims and full queues: each request completes exactly once, each message
//! arrives once, whole and in order.

use crate::common::{Side, options, sized};
use host_driver::{
    Buffer, Claimed, PostError, Request, TaggedReceive, WcKind, WcStatus, WorkCompletion,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soft_card::{Sizes, SoftFabric, SoftOptions};
use std::collections::{HashMap, VecDeque};

/// Tags in use: few, so that receives compete.
const TAGS: u64 = 3;

/// One side's view of the conversation.
struct Player {
    side: Side,
    buffers: Vec<Buffer>,
    next_id: u64,
    outstanding: HashMap<u64, WcKind>,
    receives: Vec<(u64, Request)>,
    /// Sends that have not completed, and their messages' serial numbers.
    sends: Vec<(u64, Request, u64)>,
    /// Serial numbers of messages that will not come.
    withdrawn: Vec<u64>,
    /// Messages of the peer that were passed over.
    skipped: Vec<u64>,
    /// Claimed messages, with their serial numbers and lengths.
    claimed: Vec<(Claimed, u64, usize)>,
    /// Claimed messages that are being received.
    receiving: HashMap<u64, (u64, usize)>,
    /// Claimed messages that came to their end, in each way.
    used: [u64; 3],
    /// Lengths of what the peer sent, by tag, oldest first.
    expected: [VecDeque<(u64, usize)>; TAGS as usize],
    cancelled: u64,
    late: u64,
    received: u64,
    refused: u64,
}

impl Player {
    fn new(mut side: Side) -> Self {
        let buffers = (0..40).map(|_| side.buffer(1024)).collect();
        Self {
            side,
            buffers,
            next_id: 0,
            outstanding: HashMap::new(),
            receives: Vec::new(),
            sends: Vec::new(),
            withdrawn: Vec::new(),
            skipped: Vec::new(),
            claimed: Vec::new(),
            receiving: HashMap::new(),
            used: [0; 3],
            expected: Default::default(),
            cancelled: 0,
            late: 0,
            received: 0,
            refused: 0,
        }
    }

    fn receive(&self, rng: &mut ChaCha8Rng) -> TaggedReceive {
        let mut receive = self.side.receive(rng.random_range(0..TAGS));
        if rng.random_ratio(1, 4) {
            receive.source = host_driver::Source::Any;
        }
        receive
    }

    fn refuse(&mut self, error: PostError) {
        let passing = matches!(
            error,
            PostError::SendRingFull
                | PostError::ListRingFull
                | PostError::CompletionQueueFull
                | PostError::InjectBusy
        );
        assert!(passing, "{error}");
        self.refused += 1;
    }

    /// Sends a message whose bytes follow from `serial` and returns its length, if it was taken.
    fn send(&mut self, rng: &mut ChaCha8Rng, serial: u64) -> Option<(u64, usize)> {
        let tag = rng.random_range(0..TAGS);
        let mut send = self.side.send(tag);
        send.immediate = serial;
        let length = rng.random_range(0..=1024);
        let id = self.next_id;
        if rng.random() {
            let bytes = payload(serial, length);
            match self.side.endpoint.post_tagged_inject(id, &send, &bytes) {
                Ok(()) => return Some((tag, length)),
                Err(error) => self.refuse(error),
            }
            return None;
        }
        let mut buffer = self.buffers.pop()?;
        let mut front = buffer.split_to(length);
        front.copy_from_slice(&payload(serial, length));
        match self.side.endpoint.post_tagged_send(id, &send, front) {
            Ok(request) => self.sends.push((id, request, serial)),
            Err(refused) => {
                let mut front = refused.buffer;
                front.join(buffer).expect("just split");
                self.buffers.push(front);
                self.refuse(refused.error);
                return None;
            }
        }
        self.next_id += 1;
        self.outstanding.insert(id, WcKind::Send);
        Some((tag, length))
    }

    fn post(&mut self, rng: &mut ChaCha8Rng) {
        // A cancel takes an entry too: a queue full of receives that match nothing could never be emptied.
        if self.receives.len() >= 6 {
            return;
        }
        let Some(buffer) = self.buffers.pop() else {
            return;
        };
        let receive = self.receive(rng);
        match self
            .side
            .endpoint
            .post_tagged_recv(self.next_id, &receive, buffer)
        {
            Ok(request) => {
                self.receives.push((self.next_id, request));
                self.outstanding.insert(self.next_id, WcKind::Receive);
                self.next_id += 1;
            }
            Err(refused) => {
                self.buffers.push(refused.buffer);
                self.refuse(refused.error);
            }
        }
    }

    fn cancel(&mut self, rng: &mut ChaCha8Rng) {
        let receives = self.receives.iter().map(|&(_, request)| request);
        let sends = self.sends.iter().map(|&(_, request, _)| request);
        let requests: Vec<Request> = receives.chain(sends).collect();
        if requests.is_empty() {
            return;
        }
        let request = requests[rng.random_range(0..requests.len())];
        match self.side.endpoint.cancel(u64::MAX, request) {
            Ok(_) | Err(PostError::NothingToCancel) => {}
            Err(error) => self.refuse(error),
        }
    }

    fn probe(&mut self, rng: &mut ChaCha8Rng) {
        let receive = self.receive(rng);
        match self.side.endpoint.probe(self.next_id, &receive) {
            Ok(_) => {
                self.outstanding.insert(self.next_id, WcKind::Probe);
                self.next_id += 1;
            }
            Err(error) => self.refuse(error),
        }
    }

    fn claim(&mut self, rng: &mut ChaCha8Rng) {
        let receive = self.receive(rng);
        match self.side.endpoint.claim(self.next_id, &receive) {
            Ok(_) => {
                self.outstanding.insert(self.next_id, WcKind::Claim);
                self.next_id += 1;
            }
            Err(error) => self.refuse(error),
        }
    }

    /// Receives, discards or drops a claimed message.
    fn use_claim(&mut self, rng: &mut ChaCha8Rng) {
        if self.claimed.is_empty() || self.buffers.is_empty() {
            return;
        }
        let at = rng.random_range(0..self.claimed.len());
        let (claimed, serial, length) = self.claimed.swap_remove(at);
        let id = self.next_id;
        let way = rng.random_range(0..3);
        match way {
            0 => {
                let buffer = self.buffers.pop().expect("there is one");
                match claimed.receive(id, buffer) {
                    Ok(_) => {
                        self.outstanding.insert(id, WcKind::Receive);
                        self.receiving.insert(id, (serial, length));
                    }
                    Err(refused) => {
                        self.buffers.push(refused.buffer);
                        self.claimed.push((refused.claimed, serial, length));
                        return self.refuse(refused.error);
                    }
                }
            }
            1 => match claimed.discard(id) {
                Ok(_) => {
                    self.outstanding.insert(id, WcKind::Discard);
                }
                Err(refused) => {
                    self.claimed.push((refused.claimed, serial, length));
                    return self.refuse(refused.error);
                }
            },
            _ => drop(claimed),
        }
        self.used[way] += 1;
        self.next_id += 1;
    }

    /// The message that a receive or a claim has found: the next of its tag that wasn't withdrawn.
    fn found(&mut self, completion: &WorkCompletion) -> (u64, usize) {
        let queue = &mut self.expected[completion.match_bits as usize];
        let (serial, length) = loop {
            let (serial, length) = queue.pop_front().expect("a message that was sent");
            if completion.immediate == serial {
                break (serial, length);
            }
            self.skipped.push(serial);
        };
        assert_eq!(completion.length, length as u64);
        (serial, length)
    }

    fn take(&mut self, mut completion: WorkCompletion) {
        let WorkCompletion {
            wr_id,
            kind,
            status,
            ..
        } = completion;
        if kind == WcKind::Cancel {
            assert_eq!((wr_id, status), (u64::MAX, WcStatus::TooLate));
            self.late += 1;
            return;
        }
        assert_eq!(
            self.outstanding.remove(&wr_id),
            Some(kind),
            "{completion:?}"
        );
        match (kind, status) {
            (WcKind::Send, WcStatus::Success) => {}
            (WcKind::Send, WcStatus::Cancelled) => {
                let sent = self.sends.iter().find(|sent| sent.0 == wr_id);
                self.withdrawn.push(sent.expect("it was posted").2);
            }
            (WcKind::Probe, WcStatus::Success | WcStatus::NoMessage) => {}
            (WcKind::Claim, WcStatus::NoMessage) | (WcKind::Discard, WcStatus::Success) => {}
            (WcKind::Claim, WcStatus::Success) => {
                let (serial, length) = self.found(&completion);
                if let Some(claimed) = completion.claimed.take() {
                    self.claimed.push((claimed, serial, length));
                }
            }
            (WcKind::Receive, WcStatus::Cancelled) => self.cancelled += 1,
            (WcKind::Receive, WcStatus::Success) => {
                let (serial, length) = match self.receiving.remove(&wr_id) {
                    Some(claimed) => claimed,
                    None => self.found(&completion),
                };
                assert_eq!(completion.length, length as u64);
                assert_eq!(completion.received(), payload(serial, length));
                self.received += 1;
            }
            _ => panic!("{completion:?}"),
        }
        self.receives.retain(|&(id, _)| id != wr_id);
        self.sends.retain(|&(id, ..)| id != wr_id);
        if let Some(mut buffer) = completion.buffer {
            // What a send split off is whole again only as far as it went: registered memory is plenty.
            if buffer.len() < 1024 {
                buffer = self.side.buffer(1024);
            }
            self.buffers.push(buffer);
        }
    }
}

fn payload(serial: u64, length: usize) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(serial);
    (0..length).map(|_| rng.random()).collect()
}

#[test]
fn every_request_completes_once_and_every_message_arrives_once_in_order() {
    let mut totals = [0; 8];
    for seed in 0..12 {
        println!("seed {seed}");
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let fabric = SoftFabric::new(SoftOptions {
            latency: rng.random_range(1..500),
            fetch_cycles: rng.random_range(1..200),
            seed,
            sizes: Sizes {
                // As many as are posted at most, or so few that most have to be kept by the library.
                posted: [1, 2, 5, 64][rng.random_range(0..4)],
                ..options().sizes
            },
            ..options()
        });
        // Eight sends that wait for a credit must leave entries for the receives that return it.
        let credits = rng.random_range(1..=16);
        let (a, b) = sized(&fabric, credits, 1 << rng.random_range(4..7));
        let mut players = [Player::new(a), Player::new(b)];
        let mut serial = 0;
        for _ in 0..1500 {
            let who = rng.random_range(0..2);
            let player = &mut players[who];
            match rng.random_range(0..12) {
                0..3 => {
                    serial += 1;
                    if let Some((tag, length)) = player.send(&mut rng, serial) {
                        players[1 - who].expected[tag as usize].push_back((serial, length));
                    }
                }
                3..6 => player.post(&mut rng),
                6 => player.cancel(&mut rng),
                7 => player.probe(&mut rng),
                8 => player.claim(&mut rng),
                9 => player.use_claim(&mut rng),
                10 => player.side.pause(300),
                _ => {
                    while let Some(completion) = player.side.cq.poll() {
                        player.take(completion);
                    }
                }
            }
        }
        drain(&mut players, &mut rng);
        for player in &players {
            let sums = [
                player.received,
                player.cancelled,
                player.late,
                player.refused,
                player.withdrawn.len() as u64,
                player.used[0],
                player.used[1],
                player.used[2],
            ];
            totals
                .iter_mut()
                .zip(sums)
                .for_each(|(total, sum)| *total += sum);
        }
    }
    println!(
        "received, cancelled, late, refused, sends cancelled, claimed and received, discarded, dropped: {totals:?}"
    );
    assert!(
        totals.iter().all(|&total| total > 50),
        "{totals:?} proves little"
    );
}

/// Receives what is still on its way, then closes; nothing may be left.
fn drain(players: &mut [Player; 2], rng: &mut ChaCha8Rng) {
    for _ in 0..100_000 {
        let mut left = false;
        for who in 0..2 {
            let withdrawn = players[who].withdrawn.clone();
            let peer = &mut players[1 - who];
            for queue in &mut peer.expected {
                queue.retain(|(serial, _)| {
                    let gone = withdrawn.contains(serial);
                    peer.skipped.extend(gone.then_some(*serial));
                    !gone
                });
            }
        }
        for player in players.iter_mut() {
            while let Some(completion) = player.side.cq.poll() {
                player.take(completion);
            }
            player.use_claim(rng);
            left |= !player.claimed.is_empty() || !player.receiving.is_empty();
            if player.expected.iter().any(|queue| !queue.is_empty()) {
                left = true;
                if player.receives.len() >= 3 {
                    player.cancel(rng);
                } else {
                    player.post(rng);
                }
            }
        }
        if !left {
            break;
        }
        players[0].side.pause(100);
    }
    for player in players.iter_mut() {
        assert!(
            player.expected.iter().all(VecDeque::is_empty),
            "messages were lost"
        );
    }
    for who in 0..2 {
        players[who].withdrawn.sort_unstable();
        players[1 - who].skipped.sort_unstable();
        assert_eq!(
            players[who].withdrawn,
            players[1 - who].skipped,
            "what doesn't come is what was cancelled"
        );
    }
    for player in players.iter_mut() {
        player.side.endpoint.close().unwrap();
        while let Some(completion) = player.side.cq.poll() {
            let flushed = matches!(completion.status, WcStatus::Flushed | WcStatus::PeerFailed);
            if completion.kind != WcKind::Cancel && flushed {
                let kind = player.outstanding.remove(&completion.wr_id);
                assert_eq!(kind, Some(completion.kind), "{completion:?}");
            } else {
                player.take(completion);
            }
        }
        assert!(
            player.outstanding.is_empty(),
            "never completed: {:?}",
            player.outstanding
        );
        assert_eq!(
            (player.side.cq.outstanding(), player.side.cq.strays()),
            (0, 0)
        );
    }
}
