//! Regions that are deregistered while the card writes a message into them, or reads one from them.
//!
//! ```text
//!  rank 0   registers, posts ─────► waits ─► deregisters ─────────► looks, fills ─► looks again
//!  its card                    asks the Gate, reads or writes, ends
//!  rank 1                    sends, or receives
//! ```
//!
//! The library never does this: it deregisters a region when no request has a buffer of it. So rank 0 is a host that obeys no rules. Its wait grows from round to
//! round, so that the region goes before the access, while it is under way, and behind it. An access that began while the region was there is done as a whole
//! before the command is answered. A later one is refused: what the host fills the memory with behind the answer stays, and is never sent.

use abi::control::{RIGHT_LOCAL_READ, RIGHT_LOCAL_WRITE};
use abi::limits::EAGER_MAX;
use abi::mailbox::{
    Command, Nothing, PairId, RegionKey, SetPairTimes, TIMES_TIMEOUT, Words, id_index,
};
use abi::request::{ListRequest, Opcode, SendRequest};
use abi::status::Status;
use host_driver::transport::PauseResult;
use posthorn_tests::cards::{GatesOnly, Host, cards};
use posthorn_tests::raw::{Mapped, RawEndpoint, RawHost};
use sim::memory::MemoryConfig;

/// Cycles until memory answers. With the first an access takes longer than the command without one: a command that doesn't wait is seen to be early.
const LATENCIES: [u64; 3] = [1500, 200, 1];
/// So often the command comes before the post, each time by so many cycles more.
const LEADS: u64 = 3;
const LEAD: u64 = 150;
/// So often it comes behind the post, each time by so many cycles more, and by a part of the latency,
const WAITS: u64 = 10;
const STEP: u64 = 80;
/// and once when the request has ended: by so many cycles, and so many times the latency.
const LONG: u64 = 3000;
const LONG_LATENCIES: u64 = 8;

/// No message, and the buffers are at different places in their words.
const BYTES: usize = EAGER_MAX + 16;
const SEND_FROM: u64 = 3;
const RECEIVE_INTO: u64 = 5;
const LENGTH: usize = EAGER_MAX;

const TAG: u64 = 7;
const CREDITS: u16 = 4;
/// Handles of requests.
const TRIED: u32 = 1;
const GOOD: u32 = 2;
const PROBE: u32 = 3;

/// What memory holds before a message comes, and what the host fills it with when its region has gone.
const BLANK: u8 = 0x11;
const LATER: u8 = 0xee;

/// Bytes of the message of a round, and of what is around it in its sender's memory.
fn message(round: u64) -> Vec<u8> {
    let word = |at: u64| (round << 32 | at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..BYTES as u64 / 8)
        .flat_map(|at| word(at).to_le_bytes())
        .collect()
}

fn fill(memory: &Mapped, bytes: &[u8]) {
    let words = bytes.chunks_exact(8);
    let words = words.map(|word| u64::from_le_bytes(word.try_into().expect("eight")));
    memory.write(0, &words.collect::<Vec<_>>());
}

/// What a receiver's memory holds when a message has landed in it.
fn landed(round: u64) -> Vec<u8> {
    let mut bytes = vec![BLANK; BYTES];
    let sent = &message(round)[SEND_FROM as usize..][..LENGTH];
    bytes[RECEIVE_INTO as usize..][..LENGTH].copy_from_slice(sent);
    bytes
}

/// When the command is sent, in cycles from the post of the request.
#[derive(Clone, Copy, Debug)]
enum Start {
    Before(u64),
    Behind(u64),
}

/// What the regions met that were deregistered.
#[derive(Debug, Default)]
struct Seen {
    /// Cycles until memory answers.
    latency: u64,
    /// Accesses that were refused: the region had gone before them.
    before: u32,
    /// Accesses that the command has waited for.
    waited: u32,
    /// Accesses that may have been over when the command came to the gates, of requests that hadn't ended.
    between: u32,
    /// Accesses of requests that had ended when the command was sent.
    behind: u32,
}

impl Seen {
    fn all(&self) {
        assert!(self.before > 0 && self.behind > 0, "{self:?}");
        // If memory answers at once, no command may come to the gates during an access.
        assert!(self.waited > 0 || self.latency < 100, "{self:?}");
    }
}

/// A rank: an endpoint with a pair to the other rank, and memory that stays registered.
struct Rank<'a> {
    host: &'a Host,
    raw: &'a RawHost,
    domain: u32,
    endpoint: RawEndpoint<'a>,
    pair: PairId,
    _slots: Mapped,
    memory: Mapped,
    key: u32,
    /// Cycles that it takes to deregister a region that nobody uses.
    alone: u64,
}

impl<'a> Rank<'a> {
    fn open(host: &'a Host, raw: &'a RawHost) -> Self {
        let domain = raw.domain();
        let endpoint = RawEndpoint::open(raw, domain, 4);
        let slots = Mapped::new(raw.transport(), usize::from(CREDITS) * EAGER_MAX);
        let pair = raw.open_pair(endpoint.id, CREDITS, &slots);
        let memory = Mapped::new(raw.transport(), BYTES);
        let rights = RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE;
        let key = raw.region(domain, rights, memory.address(), BYTES as u64);
        let mut rank = Self {
            host,
            raw,
            domain,
            endpoint,
            pair,
            _slots: slots,
            memory,
            key,
            alone: 0,
        };
        rank.connect();
        let unused = Mapped::new(raw.transport(), BYTES);
        let key = rank.register(&unused);
        let begin = rank.now();
        raw.forget_region(key);
        rank.alone = rank.now() - begin;
        rank
    }

    fn connect(&self) {
        let mut words = vec![0; PairId::COUNT];
        self.pair.to_words(&mut words);
        let mut mine: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        mine.extend(self.raw.identity().mac.to_le_bytes());
        let all = self.tell(mine);
        let (words, mac) = all[1 - self.host.card()].split_at(4 * PairId::COUNT);
        let words = words.chunks_exact(4);
        let words = words.map(|word| u32::from_le_bytes(word.try_into().expect("four")));
        let peer = PairId::from_words(&words.collect::<Vec<_>>());
        let mac = u64::from_le_bytes(mac.try_into().expect("eight"));
        self.raw.connect_to(&self.pair, &peer, mac);
        // Slow memory is no silent peer: a send that is repeated is read again, and fails its pair if it may not be.
        let times = SetPairTimes {
            pair: self.pair.pair,
            chosen: TIMES_TIMEOUT,
            timeout_log2: 20,
            ..SetPairTimes::default()
        };
        let set: Result<Nothing, _> = self.raw.command(Command::SetPairTimes, &times);
        set.expect("set");
        self.meet();
    }

    /// Tells the other rank, and waits for what it tells.
    fn tell(&self, bytes: Vec<u8>) -> std::sync::Arc<Vec<Vec<u8>>> {
        self.host.all_gather(bytes).expect("both ranks")
    }

    fn meet(&self) {
        self.tell(Vec::new());
    }

    fn now(&self) -> u64 {
        self.raw.transport().now()
    }

    fn pause(&self, cycles: u64) {
        let end = self.now() + cycles;
        let paused = self.raw.transport().pause(&[], end);
        assert_eq!(paused, PauseResult::Deadline);
    }

    fn register(&self, memory: &Mapped) -> u32 {
        let rights = RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE;
        let (address, length) = (memory.address(), BYTES as u64);
        self.raw.region(self.domain, rights, address, length)
    }

    fn post_send(&mut self, request: u32, memory: u64, key: u32) {
        let send = SendRequest {
            opcode: Opcode::TaggedSend.code(),
            pair: id_index(self.pair.pair),
            request,
            key,
            match_bits: TAG,
            address: memory + SEND_FROM,
            length: LENGTH as u64,
            ..SendRequest::default()
        };
        self.endpoint.post_send(send.to_words());
    }

    fn post_receive(&mut self, request: u32, memory: u64, key: u32) {
        let receive = ListRequest {
            opcode: Opcode::TaggedReceive.code(),
            pair: id_index(self.pair.pair),
            request,
            key,
            match_bits: TAG,
            address: memory + RECEIVE_INTO,
            length: LENGTH as u64,
            ..ListRequest::default()
        };
        self.endpoint.post_list(receive.to_words());
    }

    /// What is in front of a probe in the ring is posted when the probe has been answered.
    fn probe(&mut self) {
        let probe = ListRequest {
            opcode: Opcode::Probe.code(),
            pair: id_index(self.pair.pair),
            request: PROBE,
            match_bits: !TAG,
            ..ListRequest::default()
        };
        self.endpoint.post_list(probe.to_words());
        assert_eq!(self.ended(PROBE), Status::NoMessage);
    }

    /// How the oldest request ended, which has to be this one.
    fn ended(&mut self, request: u32) -> Status {
        let entry = self.endpoint.completion();
        assert_eq!(entry.request, request, "{entry:x?}");
        Status::from_code(entry.status).expect("a status of the ABI")
    }

    /// Sends the message of a round from the memory that stays registered.
    fn send_good(&mut self, request: u32, round: u64) {
        fill(&self.memory, &message(round));
        self.post_send(request, self.memory.address(), self.key);
        assert_eq!(self.ended(request), Status::Success);
    }

    /// Posts a receive of the memory that stays registered.
    fn post_good(&mut self, request: u32) {
        fill(&self.memory, &[BLANK; BYTES]);
        self.post_receive(request, self.memory.address(), self.key);
    }

    /// It has got the message of a round.
    fn takes_good(&mut self, request: u32, round: u64) {
        assert_eq!(self.ended(request), Status::Success);
        assert!(self.memory.bytes()[..BYTES] == landed(round));
    }

    /// Deregisters the region that a request uses, some time before or behind its post, and fills the memory when that is done. Returns how the request ended,
    /// and what the memory held when its region had gone.
    fn race(
        &mut self,
        (key, memory): (u32, &Mapped),
        start: Start,
        seen: &mut Seen,
        post: impl FnOnce(&mut Self),
    ) -> (Status, Vec<u8>) {
        let argument = RegionKey { key };
        let ask = |rank: &Self| rank.raw.ask(Command::DeregisterRegion, &argument);
        let (asked, begin, ended);
        match start {
            Start::Before(cycles) => {
                begin = self.now();
                asked = ask(self);
                self.pause(cycles);
                post(self);
                ended = None;
            }
            Start::Behind(cycles) => {
                post(self);
                self.pause(cycles);
                ended = self.endpoint.poll();
                begin = self.now();
                asked = ask(self);
            }
        }
        let gone: Result<Nothing, _> = self.raw.answered(asked);
        gone.expect("deregistered");
        let cycles = self.now() - begin;
        let held = memory.bytes()[..BYTES].to_vec();
        fill(memory, &[LATER; BYTES]);
        let is_behind = ended.is_some();
        let entry = ended.unwrap_or_else(|| self.endpoint.completion());
        assert_eq!(entry.request, TRIED, "{entry:x?}");
        let status = Status::from_code(entry.status).expect("a status of the ABI");
        match status {
            Status::Success if is_behind => seen.behind += 1,
            Status::Success if cycles > self.alone + seen.latency / 4 => seen.waited += 1,
            Status::Success => seen.between += 1,
            _ => seen.before += 1,
        }
        // A late access would have come by now.
        self.pause(4 * seen.latency + 200);
        assert!(
            memory.bytes()[..BYTES] == [LATER; BYTES],
            "{start:?}, {status:?}: written after its region had gone"
        );
        (status, held)
    }

    /// All credits are back, and no pair has failed.
    fn finish(&mut self) {
        self.meet();
        self.raw.until("all credits are back", || {
            let status = self.raw.pair_status(id_index(self.pair.pair));
            (status.available == u32::from(CREDITS)).then_some(())
        });
        assert_eq!(self.endpoint.poll_event(), None);
        self.meet();
    }
}

/// Rank 0 of a round: deregisters what it receives into. The message is there first, or its receive.
fn receives(rank: &mut Rank<'_>, round: u64, is_there: bool, start: Start, seen: &mut Seen) {
    let memory = Mapped::new(rank.raw.transport(), BYTES);
    fill(&memory, &[BLANK; BYTES]);
    let key = rank.register(&memory);
    let post = |rank: &mut Rank<'_>| rank.post_receive(TRIED, memory.address(), key);
    let region = (key, &memory);
    let (status, held) = if is_there {
        rank.meet();
        rank.race(region, start, seen, post)
    } else {
        post(rank);
        rank.probe();
        rank.race(region, start, seen, |rank| rank.meet())
    };
    match status {
        Status::Success => assert!(held == landed(round), "it has landed"),
        Status::LocalProtection => assert!(is_there, "it was posted when it might be"),
        status => assert_eq!(status, Status::AccessDenied),
    }
    if status != Status::Success {
        assert!(held == [BLANK; BYTES], "{status:?}, and a part has landed");
    }
    // A receive that was never posted has taken no message.
    rank.tell(vec![u8::from(status == Status::LocalProtection)]);
    rank.post_good(GOOD);
    rank.takes_good(GOOD, round);
}

/// Rank 1 of such a round.
fn sends(rank: &mut Rank<'_>, round: u64, is_there: bool) {
    if !is_there {
        rank.meet();
    }
    // What the receiver has taken from its own card is no affair of the sender's.
    rank.send_good(TRIED, round);
    if is_there {
        rank.meet();
    }
    if rank.tell(Vec::new())[0] == [0] {
        rank.send_good(GOOD, round);
    }
}

/// Rank 0 of a round: deregisters what it sends from.
fn sends_what_goes(rank: &mut Rank<'_>, round: u64, start: Start, seen: &mut Seen) {
    let memory = Mapped::new(rank.raw.transport(), BYTES);
    fill(&memory, &message(round));
    let key = rank.register(&memory);
    rank.meet();
    let (status, held) = rank.race((key, &memory), start, seen, |rank| {
        rank.post_send(TRIED, memory.address(), key);
    });
    assert!(held == message(round), "a send writes nothing");
    if status != Status::Success {
        assert_eq!(status, Status::LocalProtection);
    }
    rank.tell(vec![u8::from(status == Status::Success)]);
    rank.send_good(GOOD, round);
}

/// Rank 1 of such a round: takes what comes, which is the message as it was while its region was registered.
fn receives_what_goes(rank: &mut Rank<'_>, round: u64) {
    rank.post_good(TRIED);
    rank.meet();
    let has_come = rank.tell(Vec::new())[0] == [1];
    rank.takes_good(TRIED, round);
    if has_come {
        rank.post_good(GOOD);
        rank.takes_good(GOOD, round);
    }
}

/// Rounds with waits of each length, over memory of each latency.
fn rounds(seed: u64, round: impl Fn(&mut Rank<'_>, u64, Start, &mut Seen) + Sync) {
    for latency in LATENCIES {
        let memory = MemoryConfig {
            latency: latency as u32,
            ..MemoryConfig::default()
        };
        let cluster = cards("tiny", 2, seed).memory(memory);
        let (_, report) = GatesOnly::Race.run(cluster, |host| {
            let raw = RawHost::new(&host);
            let mut rank = Rank::open(&host, &raw);
            let mut seen = Seen {
                latency,
                ..Seen::default()
            };
            let before = (1..=LEADS).map(|lead| Start::Before(lead * LEAD));
            let behind = (0..WAITS).map(|wait| Start::Behind(wait * (STEP + latency / 3)));
            let last = Start::Behind(LONG + LONG_LATENCIES * latency);
            for (number, start) in (0..).zip(before.chain(behind).chain([last])) {
                round(&mut rank, number, start, &mut seen);
            }
            rank.finish();
            if host.card() == 0 {
                seen.all();
            }
        });
        for card in &report.cards {
            assert_eq!(card.memory.unmapped, 0, "memory that has gone");
        }
    }
}

#[test]
fn a_message_lands_as_a_whole_before_the_region_of_its_receive_has_gone_or_not_at_all() {
    rounds(281, |rank, round, start, seen| match rank.host.card() {
        0 => receives(rank, round, false, start, seen),
        _ => sends(rank, round, false),
    });
}

#[test]
fn a_message_leaves_its_slot_as_a_whole_before_the_region_of_its_receive_has_gone_or_not_at_all() {
    rounds(282, |rank, round, start, seen| match rank.host.card() {
        0 => receives(rank, round, true, start, seen),
        _ => sends(rank, round, true),
    });
}

#[test]
fn a_message_is_read_as_a_whole_before_its_region_has_gone_or_not_at_all() {
    rounds(283, |rank, round, start, seen| match rank.host.card() {
        0 => sends_what_goes(rank, round, start, seen),
        _ => receives_what_goes(rank, round),
    });
}
