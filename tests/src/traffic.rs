//! Random traffic between all ranks, and the judgement of what was matched.
//!
//! Each rank posts, sends, probes and cancels as its generator says. In the end every message is received and every
//! receive completed, so that whatever was lost, doubled or passed over shows.

use std::collections::HashMap;

use host_driver::{Buffer, PostError, Request, WcKind, WcStatus, WorkCompletion};
use posthorn::checker::{self, Criteria, Destination, Outcome, Receive, Violation};
use posthorn::payload::MessageId;
use rand::seq::IteratorRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::side::Side;

/// Longest message, that of the card.
const LONGEST: usize = abi::limits::EAGER_MAX;
/// Steps of a hundred in which a rank sends, or posts a receive.
const MESSAGES: u32 = 65;
/// Receives for what is left at the end that may be posted at once.
const SWEEPERS: usize = 4;
/// Buffers of a rank, beside those of its receives.
const BUFFERS: usize = 54;
/// Sends of a rank that may be outstanding, of which its card holds eight for each pair.
const MOST_SENDS: usize = 40;
/// Match bits are drawn from these.
const TAGS: [u64; 3] = [0, 1, 1 << 63 | 1];

/// What a rank does.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Steps.
    pub steps: usize,
    /// Steps of a hundred in which it posts a receive, 65 at most; in the rest of these it sends.
    pub receiving: u32,
    /// Receives of one rank that may be posted at once, without those that take what is left at the end.
    pub posted: usize,
}

impl Mix {
    /// So many steps, about as many sends as receives, and fewer receives than a `tiny` card has room for.
    pub const fn even(steps: usize) -> Self {
        Self {
            steps,
            receiving: 30,
            posted: 10,
        }
    }

    /// So many steps, most of them receives, and more of these than the 60 that a `tiny` card has room for of one endpoint.
    pub const fn flood(steps: usize) -> Self {
        Self {
            steps,
            receiving: 57,
            posted: 110,
        }
    }
}

/// What one rank did.
#[derive(Debug, Default)]
pub struct Record {
    /// Match bits and length of what it sent, by destination, in order.
    pub sent: Vec<Vec<(u64, usize)>>,
    /// Its receives in the order posted.
    pub receives: Vec<Receive>,
    /// Messages that it took: match bits and length as the completion tells them.
    pub taken: Vec<(MessageId, u64, u64)>,
    /// Messages whose bytes weren't what was sent.
    pub wrong_bytes: Vec<MessageId>,
    /// Cancels that were too late.
    pub too_late: usize,
    /// Probes that found a message.
    pub found: usize,
    /// Messages that it took while it had more receives than its card has room for.
    pub taken_beyond: usize,
}

/// What a request was.
#[derive(Clone, Copy, Debug)]
enum Posted {
    Send,
    Receive {
        at: usize,
        request: Request,
        cancelling: bool,
        sweeper: bool,
    },
    Probe,
    /// Of the receive with this name.
    Cancel(u64),
}

struct Player<'a> {
    side: &'a mut Side,
    mix: Mix,
    /// Receives of one endpoint that the card has room for.
    room: usize,
    rng: ChaCha8Rng,
    buffers: Vec<Buffer>,
    /// What a request didn't need of its buffer.
    rests: HashMap<u64, Buffer>,
    posted: HashMap<u64, Posted>,
    next: u64,
    record: Record,
}

/// Plays the rank. All ranks must call it.
pub fn play(side: &mut Side, seed: u64, mix: Mix) -> Record {
    assert!(mix.receiving <= MESSAGES, "{mix:?}");
    let identity = side.device.identity();
    let room = (identity.posted - identity.posted / (2 * identity.endpoints)) as usize;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(side.rank() as u64);
    let ranks = side.host.cards();
    let buffers = (0..BUFFERS + mix.posted)
        .map(|_| {
            let phase = rng.random_range(0..64);
            side.buffer_at(phase, LONGEST)
        })
        .collect();
    let mut player = Player {
        side,
        mix,
        room,
        rng,
        buffers,
        rests: HashMap::new(),
        posted: HashMap::new(),
        next: 0,
        record: Record {
            sent: vec![Vec::new(); ranks],
            ..Record::default()
        },
    };
    for _ in 0..mix.steps {
        player.step();
    }
    player.sweep();
    player.record
}

impl Player<'_> {
    fn step(&mut self) {
        match self.rng.random_range(0..100) {
            step if step < MESSAGES - self.mix.receiving => self.send(),
            0..MESSAGES => self.receive_some(),
            MESSAGES..72 => self.probe(),
            72..82 => self.cancel_one(),
            82..94 => {
                let cycles = self.rng.random_range(1..600);
                self.side.pause(cycles);
            }
            _ => {}
        }
        while let Some(completion) = self.side.cq.poll() {
            self.take(completion);
        }
    }

    fn count(&self, which: impl Fn(&Posted) -> bool) -> usize {
        self.posted.values().filter(|posted| which(posted)).count()
    }

    fn name(&mut self, posted: Posted) -> u64 {
        self.next += 1;
        self.posted.insert(self.next, posted);
        self.next
    }

    fn peer(&mut self) -> usize {
        let me = self.side.rank();
        let others = (0..self.side.host.cards()).filter(|&rank| rank != me);
        others.choose(&mut self.rng).expect("another rank")
    }

    fn criteria(&mut self) -> Criteria {
        let source = self.rng.random_bool(0.6).then(|| self.peer());
        Criteria {
            source,
            tag: TAGS[self.rng.random_range(0..TAGS.len())],
            ignore: [0, 0, 1, 1 << 63, u64::MAX][self.rng.random_range(0..5)],
        }
    }

    fn send(&mut self) {
        let to = self.peer();
        if self.count(|posted| matches!(posted, Posted::Send)) >= MOST_SENDS {
            return;
        }
        let mut buffer = self.buffers.pop().expect("more buffers than requests");
        let length = match self.rng.random_range(0..4) {
            0 => 0,
            1 => self.rng.random_range(1..32),
            _ => self.rng.random_range(0..=LONGEST),
        };
        let tag = TAGS[self.rng.random_range(0..TAGS.len())];
        let number = self.record.sent[to].len() as u64;
        let rest = split_end(&mut buffer, length);
        self.side.message(to, number).fill(&mut buffer);
        let send = self.side.address(to, tag, number);
        let name = self.next + 1;
        let posted = self.side.endpoint.post_tagged_send(name, &send, buffer);
        posted.expect("the library keeps what the card has no room for");
        assert_eq!(self.name(Posted::Send), name);
        self.record.sent[to].push((tag, length));
        self.rests.insert(name, rest);
    }

    fn receive_some(&mut self) {
        if self.count(|posted| matches!(posted, Posted::Receive { .. })) < self.mix.posted {
            let criteria = self.criteria();
            self.receive(criteria, false);
        }
    }

    fn receive(&mut self, criteria: Criteria, sweeper: bool) {
        let length = match self.rng.random_range(0..4) {
            0 if !sweeper => self.rng.random_range(0..200),
            _ => LONGEST,
        };
        let mut buffer = self.buffers.pop().expect("more buffers than requests");
        let rest = split_end(&mut buffer, length);
        let filter = self
            .side
            .filter(criteria.source, criteria.tag, criteria.ignore);
        let name = self.next + 1;
        let request = loop {
            match self.side.endpoint.post_tagged_recv(name, &filter, buffer) {
                Ok(request) => break request,
                Err(refused) => {
                    self.await_room(refused.error);
                    buffer = refused.buffer;
                }
            }
        };
        let at = self.record.receives.len();
        let posted = Posted::Receive {
            at,
            request,
            cancelling: false,
            sweeper,
        };
        assert_eq!(self.name(posted), name);
        self.rests.insert(name, rest);
        self.record.receives.push(Receive {
            line: at as u64,
            criteria,
            outcome: Outcome::Pending,
        });
    }

    fn probe(&mut self) {
        let criteria = self.criteria();
        let filter = self
            .side
            .filter(criteria.source, criteria.tag, criteria.ignore);
        let name = self.name(Posted::Probe);
        while let Err(error) = self.side.endpoint.probe(name, &filter) {
            self.await_room(error);
        }
    }

    /// Lets the card fetch: a host, whose doorbells are posted, may fill a ring before.
    fn await_room(&self, error: PostError) {
        assert_eq!(error, PostError::ListRingFull);
        self.side.pause(100);
    }

    fn cancel_one(&mut self) {
        let mut names: Vec<u64> = self.posted.keys().copied().collect();
        names.sort_unstable();
        names.retain(|name| {
            matches!(
                self.posted[name],
                Posted::Receive {
                    cancelling: false,
                    ..
                }
            )
        });
        if let Some(name) = names.into_iter().choose(&mut self.rng) {
            self.cancel(name);
        }
    }

    fn cancel(&mut self, name: u64) {
        let Some(Posted::Receive {
            request,
            cancelling,
            ..
        }) = self.posted.get_mut(&name)
        else {
            return;
        };
        *cancelling = true;
        let request = *request;
        let cancel = self.name(Posted::Cancel(name));
        while let Err(error) = self.side.endpoint.cancel(cancel, request) {
            self.await_room(error);
        }
    }

    fn take(&mut self, completion: WorkCompletion) {
        let name = completion.wr_id;
        let posted = self.posted.remove(&name);
        let posted = posted.unwrap_or_else(|| panic!("completes twice: {completion:?}"));
        match posted {
            Posted::Send => {
                assert_eq!(
                    (completion.kind, completion.status),
                    (WcKind::Send, WcStatus::Success)
                );
                self.give(name, completion.buffer);
            }
            Posted::Probe => match completion.status {
                WcStatus::Success => self.record.found += 1,
                status => assert_eq!(status, WcStatus::NoMessage),
            },
            Posted::Cancel(_) => {
                assert_eq!(completion.status, WcStatus::TooLate);
                self.record.too_late += 1;
            }
            Posted::Receive { at, cancelling, .. } => {
                if completion.status == WcStatus::Cancelled {
                    assert!(cancelling, "nobody asked for it");
                    self.record.receives[at].outcome = Outcome::Cancelled;
                    // The cancel itself completes not at all.
                    self.posted
                        .retain(|_, posted| !matches!(posted, Posted::Cancel(of) if *of == name));
                    self.give(name, completion.buffer);
                } else {
                    self.received(at, completion);
                }
            }
        }
    }

    fn received(&mut self, at: usize, completion: WorkCompletion) {
        let source = self.side.peer(completion.pair).expect("a source");
        let id = MessageId {
            source,
            destination: self.side.rank(),
            number: completion.immediate,
        };
        let room = completion.buffer.as_ref().map_or(0, |buffer| buffer.len());
        let status = if completion.length > room as u64 {
            WcStatus::Truncated
        } else {
            WcStatus::Success
        };
        assert_eq!(completion.status, status);
        if id.first_wrong(completion.received()).is_some() {
            self.record.wrong_bytes.push(id);
        }
        self.record.receives[at].outcome = Outcome::Took(id);
        let posted = self.count(|posted| matches!(posted, Posted::Receive { .. }));
        self.record.taken_beyond += usize::from(posted > self.room);
        self.record
            .taken
            .push((id, completion.match_bits, completion.length));
        self.give(completion.wr_id, completion.buffer);
    }

    /// Puts a buffer back together.
    fn give(&mut self, name: u64, buffer: Option<Buffer>) {
        let mut buffer = buffer.expect("a request's buffer comes back");
        let rest = self.rests.remove(&name).expect("kept");
        buffer.join(rest).expect("they were one");
        self.buffers.push(buffer);
    }

    /// Receives whatever is still to come, and cancels the receives that nothing came for.
    fn sweep(&mut self) {
        let counts = self.record.sent.iter();
        let counts = counts.flat_map(|sent| (sent.len() as u64).to_le_bytes());
        let all = self.side.host.all_gather(counts.collect()).expect("all");
        let me = self.side.rank();
        let expected: u64 = all
            .iter()
            .map(|counts| u64::from_le_bytes(counts[8 * me..8 * me + 8].try_into().expect("eight")))
            .sum();
        let anything = Criteria {
            source: None,
            tag: 0,
            ignore: u64::MAX,
        };
        let is_sweeper = |posted: &Posted| matches!(posted, Posted::Receive { sweeper: true, .. });
        while (self.record.taken.len() as u64) < expected {
            while self.count(is_sweeper) < SWEEPERS {
                self.receive(anything, true);
            }
            let completion = self.side.completion();
            self.take(completion);
        }
        while self.count(|posted| !matches!(posted, Posted::Receive { .. })) > 0 {
            let completion = self.side.completion();
            self.take(completion);
        }
        let mut left: Vec<u64> = self.posted.keys().copied().collect();
        left.sort_unstable();
        for name in left {
            self.cancel(name);
            let completion = self.side.completion();
            assert_eq!(
                (completion.wr_id, completion.status),
                (name, WcStatus::Cancelled)
            );
            self.take(completion);
        }
        self.side.meet();
    }
}

/// Splits the end off a buffer, which keeps its first `length` bytes.
fn split_end(buffer: &mut Buffer, length: usize) -> Buffer {
    let front = buffer.split_to(length);
    std::mem::replace(buffer, front)
}

/// Why the traffic was not what it should have been.
#[derive(Debug)]
pub enum Wrong {
    /// The matching at a destination is illegal.
    Matching(Violation),
    /// Bytes were not what was sent.
    Bytes(MessageId),
    /// A message was taken with other match bits or another length than it was sent with.
    Envelope(MessageId),
}

/// Judges what all ranks did.
///
/// # Errors
/// The first thing that is wrong.
pub fn judge(records: &[Record]) -> Result<(), Wrong> {
    for (rank, record) in records.iter().enumerate() {
        if let Some(id) = record.wrong_bytes.first() {
            return Err(Wrong::Bytes(*id));
        }
        let sent = records.iter().enumerate().map(|(source, record)| {
            let tags = record.sent[rank].iter().map(|&(tag, _)| tag);
            (source, tags.collect())
        });
        let destination = Destination {
            rank,
            sent: sent.collect(),
            receives: record.receives.clone(),
        };
        checker::check(&destination).map_err(Wrong::Matching)?;
        for &(id, tag, length) in &record.taken {
            let (sent_tag, sent_length) = records[id.source].sent[rank][id.number as usize];
            if (tag, length) != (sent_tag, sent_length as u64) {
                return Err(Wrong::Envelope(id));
            }
        }
    }
    Ok(())
}
