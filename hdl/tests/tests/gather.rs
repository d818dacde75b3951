//! `link::Gather`, Verilated: each job is answered once and in order; each whose payload can be read becomes one message with its payload, unless
//! its pair is dropped first; the payload is the job's segments one after the other; reads overlap, and none waits for the wire. Of a get the buffer is
//! asked for and not read; an answer becomes a message whatever comes of its read.

use std::collections::VecDeque;

use abi::control::{RIGHT_LOCAL_READ, RIGHT_LOCAL_WRITE, RIGHT_REMOTE_READ};
use abi::limits::EAGER_MAX;
use abi::request::{FLAG_READY, INLINE_BYTES, MAX_SEGMENTS};
use abi::status::Status;
use hdl::config::JOBS;
use hdl::link::PAYLOAD_WORDS;
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::{Steady, pack, unpack};
use hdl_tests::{Bench, for_seeds, rate};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A segment of a job's buffer.
#[derive(Clone, Copy, Debug)]
struct Piece {
    address: u64,
    key: u32,
    length: usize,
    allowed: bool,
    error: bool,
    /// Where it is, if it may be read.
    located: u64,
}

impl Piece {
    fn random(rng: &mut ChaCha8Rng, length: usize, trouble: f64) -> Self {
        Piece {
            address: rng.random(),
            key: rng.random(),
            length,
            allowed: !rng.random_bool(trouble),
            error: rng.random_bool(trouble),
            located: rng.random(),
        }
    }
}

/// What a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Message,
    Put,
    Get,
    Answer,
    /// An answer that the peer may not have, whatever it has asked for.
    Denied,
}

#[derive(Clone, Debug)]
struct Job {
    pair: u16,
    domain: u8,
    context: u16,
    match_bits: u64,
    immediate: u64,
    ready: bool,
    kind: Kind,
    /// The payload comes with the job.
    inline: bool,
    payload: Vec<u64>,
    length: usize,
    /// It has been sent before, as this number of its pair.
    again: bool,
    number: u32,
    pieces: [Piece; MAX_SEGMENTS],
}

impl Job {
    fn random(rng: &mut ChaCha8Rng, inline: f64, gather: f64) -> Self {
        let inline = rng.random_bool(inline);
        let kind = match rng.random_range(0..8) {
            0 | 1 if !inline => Kind::Answer,
            2 if !inline => Kind::Get,
            3 if !inline => Kind::Denied,
            4..6 => Kind::Put,
            _ => Kind::Message,
        };
        let is_send = matches!(kind, Kind::Message | Kind::Put);
        if !inline && is_send && rng.random_bool(gather) {
            let lengths = lengths(rng);
            return Job::gather(rng, lengths, 0.05);
        }
        let length: usize = match rng.random_range(0..4) {
            _ if inline => rng.random_range(0..=INLINE_BYTES),
            0 => [0, 1, 7, 8, 9, EAGER_MAX - 1, EAGER_MAX][rng.random_range(0..7)],
            1 => rng.random_range(0..=EAGER_MAX),
            _ => rng.random_range(0..40),
        };
        Job {
            inline,
            ..Job::of(rng, length).made(kind)
        }
    }

    /// With a payload of so many bytes in a buffer.
    fn of(rng: &mut ChaCha8Rng, length: usize) -> Self {
        Job::gather(rng, [length, 0, 0, 0], 0.1)
    }

    /// With segments of so many bytes, of which some may not or can't be read.
    fn gather(rng: &mut ChaCha8Rng, lengths: [usize; MAX_SEGMENTS], trouble: f64) -> Self {
        let length = lengths.iter().sum();
        Job {
            pair: rng.random_range(0..4),
            domain: rng.random(),
            context: rng.random(),
            match_bits: rng.random(),
            immediate: rng.random(),
            ready: rng.random(),
            kind: [Kind::Message, Kind::Put][rng.random_range(0..2)],
            inline: false,
            payload: payload(rng, length),
            length,
            again: rng.random(),
            number: rng.random(),
            pieces: lengths.map(|length| Piece::random(rng, length, trouble)),
        }
    }

    /// The same, in buffers that may and can be read.
    fn sound(mut self) -> Self {
        for piece in &mut self.pieces {
            (piece.allowed, piece.error) = (true, false);
        }
        self
    }

    /// As one of another kind, with its one segment.
    fn made(mut self, kind: Kind) -> Self {
        self.kind = kind;
        if self.is_answer() {
            (self.ready, self.again) = (false, false);
            self.pieces[0].address = self.immediate;
        }
        if kind == Kind::Get {
            self.ready = false;
        }
        self
    }

    fn is_answer(&self) -> bool {
        matches!(self.kind, Kind::Answer | Kind::Denied)
    }

    /// It has a payload in a buffer.
    fn reads(&self) -> bool {
        !self.inline && !matches!(self.kind, Kind::Get | Kind::Denied)
    }

    /// The segments that are there, in order.
    fn asked(&self) -> impl Iterator<Item = usize> {
        let asks = !self.inline && self.kind != Kind::Denied;
        let there = move |at: &usize| asks && self.pieces[*at].length > 0;
        (0..MAX_SEGMENTS).filter(there)
    }

    fn words(&self) -> Vec<u64> {
        // Bytes beyond an inline payload are anything, and so is what is beside a length of zero.
        let first = &self.pieces[0];
        let word = |at: usize| match self.inline {
            true => self
                .payload
                .get(at)
                .map_or(self.match_bits, |word| word | self.noise(at)),
            // An answer has no buffer.
            false if self.is_answer() => self.match_bits,
            false => [first.address, u64::from(first.key)][at],
        };
        let mut fields = vec![
            (self.pair.into(), 16),
            (self.domain.into(), 8),
            (self.context.into(), 16),
            (self.length as u64, 16),
            (self.match_bits, 64),
            (self.immediate, 64),
            (self.ready.into(), 1),
            ((self.kind == Kind::Put).into(), 1),
            ((self.kind == Kind::Get).into(), 1),
            (self.is_answer().into(), 1),
            (self.inline.into(), 1),
            (word(0), 64),
            (word(1), 64),
        ];
        for piece in &self.pieces[1..] {
            fields.push((piece.address, 64));
            fields.push((piece.key.into(), 32));
            fields.push((piece.length as u64, 11));
        }
        fields.push((self.again.into(), 1));
        fields.push((self.number.into(), 32));
        fields.push(((self.kind == Kind::Denied).into(), 1));
        pack(&fields)
    }

    /// Words that the read of a segment gives.
    fn words_of(&self, piece: usize) -> Vec<u64> {
        let bytes: Vec<u8> = self.payload.iter().flat_map(|w| w.to_le_bytes()).collect();
        let from: usize = self.pieces[..piece].iter().map(|piece| piece.length).sum();
        let word = |chunk: &[u8]| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        };
        let bytes = &bytes[from..from + self.pieces[piece].length];
        bytes.chunks(8).map(word).collect()
    }

    /// Bits of a payload's word that its length doesn't cover.
    fn noise(&self, word: usize) -> u64 {
        let bytes = (self.length - 8 * word).min(8);
        self.match_bits & !(u64::MAX >> (8 * (8 - bytes)))
    }

    /// Words of the payload memory that it needs.
    fn reserved(&self) -> usize {
        if self.reads() { self.payload.len() } else { 0 }
    }

    /// What goes to the wire, if anything does.
    fn message(&self) -> Vec<u64> {
        let refused = self.is_answer() && self.status() != Status::Success;
        let length = if refused { 0 } else { self.length };
        pack(&[
            (self.pair.into(), 16),
            (self.context.into(), 16),
            (length as u64, 16),
            (self.match_bits, 64),
            (self.immediate, 64),
            (u64::from(self.ready) * u64::from(FLAG_READY), 8),
            ((self.kind == Kind::Put).into(), 1),
            ((self.kind == Kind::Get).into(), 1),
            (self.is_answer().into(), 1),
            (refused.into(), 1),
            (self.again.into(), 1),
            (self.number.into(), 32),
        ])
    }

    /// Whether it becomes a message.
    fn leaves(&self) -> bool {
        self.is_answer() || self.status() == Status::Success
    }

    /// Words of payload behind its message.
    fn sent(&self) -> &[u64] {
        match self.kind != Kind::Get && self.status() == Status::Success {
            true => &self.payload,
            false => &[],
        }
    }

    fn status(&self) -> Status {
        let any = |wrong: fn(&Piece) -> bool| self.asked().any(|at| wrong(&self.pieces[at]));
        if self.kind == Kind::Denied || any(|piece| !piece.allowed) {
            Status::LocalProtection
        } else if self.reads() && any(|piece| piece.error) {
            Status::MemoryError
        } else {
            Status::Success
        }
    }
}

/// Lengths of up to four segments: short ones, which share words, and such as make the longest message; some are empty.
fn lengths(rng: &mut ChaCha8Rng) -> [usize; MAX_SEGMENTS] {
    let most = [3, 9, 40, EAGER_MAX / 4, EAGER_MAX][rng.random_range(0..5)];
    let mut left = EAGER_MAX;
    let mut lengths = [0; MAX_SEGMENTS];
    for length in &mut lengths {
        if rng.random_bool(0.85) {
            *length = rng.random_range(0..=most).min(left);
            left -= *length;
        }
    }
    if rng.random_bool(0.1) {
        lengths[rng.random_range(0..MAX_SEGMENTS)] += left;
    }
    lengths
}

/// Words of a payload, zero beyond its length.
fn payload(rng: &mut ChaCha8Rng, length: usize) -> Vec<u64> {
    let mut words: Vec<u64> = (0..length.div_ceil(8)).map(|_| rng.random()).collect();
    if let Some(last) = words.last_mut() {
        *last &= u64::MAX >> (8 * (length.wrapping_neg() % 8));
    }
    words
}

/// No pair's sends and no pair's answers.
const NOBODY: [Option<u16>; 2] = [None; 2];

/// The message that is being sent: the word whose index is shown, and the one before.
struct Framing {
    job: usize,
    index: usize,
    before: Option<usize>,
}

/// What surrounds the block: Regions, memory, and a framer that takes a message's payload a word a cycle.
struct World {
    bench: Bench,
    rng: ChaCha8Rng,
    cycle: u64,
    latency: u64,
    willing: f64,
    /// Jobs by number, and whether nothing more is to be sent of them.
    jobs: Vec<Job>,
    dead: Vec<bool>,
    /// Segments, by their jobs' numbers and their own.
    to_ask: VecDeque<(usize, usize)>,
    to_answer: VecDeque<(u64, usize, usize)>,
    to_read: VecDeque<(usize, usize)>,
    /// Those that were allowed and haven't ended.
    open: VecDeque<(usize, usize)>,
    /// Words that reads give, and when the read is answered; the last word with whether it failed.
    reading: VecDeque<(u64, VecDeque<u64>, bool)>,
    word_offered: bool,
    answered: usize,
    sent: Vec<usize>,
    framing: Option<Framing>,
    steady: [Steady; 2],
    most_reads: usize,
    room_since: u64,
    /// A message of the pair that was asked for in the cycle before was here.
    was_gathered: Option<bool>,
}

impl World {
    fn new(rng: &mut ChaCha8Rng) -> Self {
        World {
            bench: Bench::open("gather"),
            cycle: 0,
            latency: [1, 30, 125][rng.random_range(0..3)],
            willing: rate(rng).max(0.3),
            jobs: vec![],
            dead: vec![],
            to_ask: VecDeque::new(),
            to_answer: VecDeque::new(),
            to_read: VecDeque::new(),
            open: VecDeque::new(),
            reading: VecDeque::new(),
            word_offered: false,
            answered: 0,
            sent: vec![],
            framing: None,
            steady: Default::default(),
            most_reads: 0,
            room_since: 0,
            was_gathered: None,
            rng: ChaCha8Rng::from_rng(rng),
        }
    }

    fn has_room(&self) -> bool {
        self.bench.is("room") && self.cycle >= self.room_since
    }

    /// Whether a message of the pair may still go out.
    fn gathered(&self, pair: u16) -> bool {
        let after = self.sent.last().map_or(0, |last| last + 1);
        (after..self.jobs.len()).any(|number| {
            let job = &self.jobs[number];
            let refused = number < self.answered && !job.leaves();
            job.pair == pair && !self.dead[number] && !refused
        })
    }

    /// A cycle in which a job, if there is one, is given, the sends of a pair and the answers of one are dropped, if there is one, and the framer takes a
    /// message or doesn't.
    fn step(&mut self, job: Option<Job>, dropped: [Option<u16>; 2], takes: bool) {
        let asked = (self.cycle % 4) as u16;
        let gathered = self.gathered(asked);
        let (bench, rng) = (&mut self.bench, &mut self.rng);
        bench.set("gathered_pair", asked);
        bench.set("job_valid", job.is_some());
        if let Some(job) = &job {
            bench.set_wide("job", &job.words());
        }
        for (name, pair) in ["dropped", "answers_dropped"].iter().zip(dropped) {
            bench.set(&format!("{name}_valid"), pair.is_some());
            bench.set(name, pair.unwrap_or(rng.random_range(0..4)));
        }
        bench.set("query_ready", rng.random_bool(self.willing));
        let answer = match self.to_answer.front() {
            Some((due, ..)) if *due <= self.cycle => self.to_answer.pop_front(),
            _ => None,
        };
        bench.set("allowed_valid", answer.is_some());
        let noise = rng.random();
        let permission = answer.map(|(_, job, at)| {
            let piece = &self.jobs[job].pieces[at];
            // Where it may not be read, it is nowhere.
            let beside = if piece.allowed {
                piece.located
            } else {
                !piece.located
            };
            (piece.allowed, beside)
        });
        let (allowed, located) = permission.unwrap_or((noise, 0));
        let permission = pack(&[(allowed.into(), 1), (located, 64)]);
        bench.set_wide("allowed", &permission);
        bench.set("read_request_ready", rng.random_bool(self.willing));
        let due = self.reading.front().filter(|(due, ..)| *due <= self.cycle);
        self.word_offered |= due.is_some() && rng.random_bool(self.willing);
        bench.set("read_data_valid", self.word_offered);
        let word = match self.reading.front().filter(|_| self.word_offered) {
            Some((_, words, error)) => {
                let last = words.len() == 1;
                (words[0], last, if last { *error } else { noise })
            }
            None => (rng.random(), noise, noise),
        };
        bench.set("read_data", word.0);
        bench.set("read_data_last", word.1);
        bench.set("read_data_error", word.2);
        // The framer reads words in order, each of them one cycle after its index.
        bench.set("message_ready", takes && self.framing.is_none());
        let index = self.framing.as_ref().map_or(0, |framing| framing.index);
        let words = |job: usize| self.jobs[job].sent().len();
        let over = self
            .framing
            .as_ref()
            .is_some_and(|f| f.index > words(f.job));
        bench.set("payload_index", index as u64);
        bench.set("payload_done", over);
        bench.eval();
        if let Some(gathered) = self.was_gathered.replace(gathered) {
            assert_eq!(bench.is("gathered"), gathered, "cycle {}", self.cycle);
        }

        if over {
            self.framing = None;
        }
        if let Some(Framing { job, index, before }) = &mut self.framing {
            let words = self.jobs[*job].sent();
            if let Some(at) = before.filter(|at| *at < words.len()) {
                assert_eq!(bench.get("payload"), words[at], "word {at} of job {job}");
            }
            *before = Some(*index);
            *index += 1;
        }
        if let Some(job) = job {
            let number = self.jobs.len();
            self.to_ask.extend(job.asked().map(|at| (number, at)));
            self.jobs.push(job);
            self.dead.push(false);
            self.room_since = self.cycle + 2;
        }
        let [valid, ready] = ["query_valid", "query_ready"].map(|pin| bench.is(pin));
        let query = bench.get_wide::<5>("query");
        if let Some(words) = self.steady[0].watch("query", valid, ready, &query) {
            let (number, at) = self.to_ask.pop_front().expect("a job asks");
            let (job, piece) = (&self.jobs[number], &self.jobs[number].pieces[at]);
            let [
                domain,
                key,
                rights,
                address,
                length,
                remote,
                pair,
                remote_key,
                tagged,
                context,
            ] = unpack(&words, [8, 32, 8, 64, 64, 1, 16, 64, 1, 16]);
            let right = match job.kind {
                Kind::Answer => RIGHT_REMOTE_READ,
                Kind::Get => RIGHT_LOCAL_WRITE,
                _ => RIGHT_LOCAL_READ,
            };
            assert_eq!(
                [rights, address, length],
                [right.into(), piece.address, piece.length as u64]
            );
            assert_eq!(remote == 1, job.is_answer());
            assert_eq!(pair, u64::from(job.pair));
            let is_message = job.kind == Kind::Message;
            assert_eq!(tagged == 1, is_message, "{job:?}");
            assert!(!is_message || context == u64::from(job.context), "{job:?}");
            match job.is_answer() {
                true => assert_eq!(remote_key, job.match_bits),
                false => assert_eq!([domain, key], [u64::from(job.domain), piece.key.into()]),
            }
            let before = self.to_answer.back().map_or(0, |(due, ..)| *due + 1);
            self.to_answer
                .push_back((before.max(self.cycle + 3), number, at));
        }
        if let Some((_, number, at)) = answer
            && allowed
        {
            self.open.push_back((number, at));
            if self.jobs[number].reads() {
                self.to_read.push_back((number, at));
            }
        }
        if self.word_offered && bench.is("read_data_ready") {
            self.word_offered = false;
            let (_, words, _) = self.reading.front_mut().expect("a read is under way");
            words.pop_front();
            if words.is_empty() {
                self.reading.pop_front();
            }
        }
        let [valid, ready] = ["read_request_valid", "read_request_ready"].map(|pin| bench.is(pin));
        let request = bench.get_wide::<2>("read_request");
        if let Some(words) = self.steady[1].watch("read_request", valid, ready, &request) {
            let (number, at) = self
                .to_read
                .pop_front()
                .expect("only what is allowed is read");
            let (job, piece) = (&self.jobs[number], &self.jobs[number].pieces[at]);
            let fields = unpack(&words, [64, 16]);
            assert_eq!(fields, [piece.located, piece.length as u64]);
            let words = job.words_of(at).into();
            let due = self.cycle + self.latency;
            self.reading.push_back((due, words, piece.error));
            self.most_reads = self.most_reads.max(self.reading.len());
        }
        if bench.is("access_ends") {
            let (number, at) = self.open.pop_front().expect("one was allowed");
            let reads = self.jobs[number].reads() && self.jobs[number].pieces[at].length > 0;
            let left = self
                .open
                .iter()
                .filter(|(number, _)| self.jobs[*number].reads());
            let under_way = self.to_read.len() + self.reading.len();
            assert!(
                !reads || under_way <= left.count(),
                "segment {at} of job {number} is still being read"
            );
        }
        let [result, decided] = ["result_valid", "answer_decided_valid"].map(|pin| bench.is(pin));
        assert!(!result || !decided, "one job is answered in a cycle");
        if result || decided {
            let job = &self.jobs[self.answered];
            assert_eq!(decided, job.is_answer(), "{job:?}");
            if decided {
                assert_eq!(bench.get("answer_decided"), u64::from(job.pair));
                let denied = job.status() == Status::LocalProtection;
                assert_eq!(bench.is("answer_denied"), denied, "{job:?}");
            } else {
                let status = bench.get("result");
                assert_eq!(status, u64::from(job.status().code()), "{job:?}");
            }
            let left = self.to_ask.iter().chain(&self.to_read).chain(&self.open);
            let mut open = left.filter(|(number, _)| *number == self.answered);
            assert_eq!(open.next(), None, "a segment is open of {job:?}");
            self.answered += 1;
        }
        if bench.is("message_valid") {
            let next = self.sent.last().map_or(0, |last| last + 1);
            let goes = |number: &usize| self.jobs[*number].leaves() && !self.dead[*number];
            let next = (next..self.answered)
                .find(goes)
                .expect("a message goes out");
            let words = bench.get_wide::<4>("message");
            assert_eq!(words[..], self.jobs[next].message()[..], "of job {next}");
            if bench.is("message_ready") {
                self.sent.push(next);
                self.framing = Some(Framing {
                    job: next,
                    index: 0,
                    before: None,
                });
            }
        }
        let after = self.sent.last().map_or(0, |last| last + 1);
        for number in after..self.jobs.len() {
            let job = &self.jobs[number];
            self.dead[number] |= dropped[usize::from(job.is_answer())] == Some(job.pair);
        }
        bench.step();
        bench.eval();
        self.cycle += 1;
    }

    fn left(&self) -> usize {
        let after = self.sent.last().map_or(0, |last| last + 1);
        let goes = |number: &usize| self.jobs[*number].leaves() && !self.dead[*number];
        (after..self.jobs.len()).filter(goes).count()
    }

    /// Everything that was given is answered, and what is to go out has gone.
    fn finish(&mut self) {
        let since = self.cycle;
        while self.answered < self.jobs.len() || self.left() > 0 || self.framing.is_some() {
            self.step(None, NOBODY, true);
            assert!(self.cycle < since + 40_000, "the block hangs");
        }
        for _ in 0..50 {
            self.step(None, NOBODY, true);
        }
        assert!(self.has_room(), "all places are free again");
        assert!(self.open.is_empty(), "each access has ended");
    }
}

fn traffic(rng: &mut ChaCha8Rng) {
    let mut world = World::new(rng);
    let (busy, taking, dropping) = (rate(rng), rate(rng), [0.0, 0.01][rng.random_range(0..2)]);
    while world.jobs.len() < 300 {
        let comes = world.has_room() && rng.random_bool(busy);
        let job = comes.then(|| Job::random(rng, 0.2, 0.4));
        let mut drops = || rng.random_bool(dropping).then(|| rng.random_range(0..4));
        let dropped = [drops(), drops()];
        world.step(job, dropped, rng.random_bool(taking));
        assert!(world.cycle < 400_000, "the block hangs");
    }
    world.finish();
}

#[test]
fn jobs_are_answered_in_order_and_become_messages() {
    for_seeds(12, traffic);
}

/// Cycles for each of 200 jobs with segments of these lengths, at a latency of 125.
fn cycles_each(rng: &mut ChaCha8Rng, lengths: [usize; MAX_SEGMENTS]) -> u64 {
    let mut world = World::new(rng);
    (world.latency, world.willing) = (125, 1.0);
    while world.jobs.len() < 200 {
        let job = world.has_room();
        let job = job.then(|| Job::gather(rng, lengths, 0.0));
        world.step(job, NOBODY, true);
    }
    let reads = world.most_reads;
    assert!(reads >= 12, "{reads} reads at a time");
    world.cycle / 200
}

#[test]
fn reads_are_under_way_for_as_many_jobs_as_there_are_places() {
    for_seeds(1, |rng| {
        let each = cycles_each(rng, [8, 0, 0, 0]);
        assert!(each <= 11, "{each} cycles a message");
        // Sixteen reads at a time are four gathers of four.
        let each = cycles_each(rng, [1, 2, 3, 2]);
        assert!(each <= 42, "{each} cycles a gather");
    });
}

/// As it broke: a wire that stopped left an offered job open for ever, and with it `ClosePair`.
fn stopped_wire(rng: &mut ChaCha8Rng) {
    let mut world = World::new(rng);
    let (mut given, inline) = (0, [0.0, 0.5][rng.random_range(0..2)]);
    let long = rng.random_bool(0.5);
    for _ in 0..5000 {
        // One that fails in front of all that go out is passed over.
        let job = world.has_room().then(|| match long || given == 0 {
            true => Job::of(rng, EAGER_MAX).sound(),
            false => Job::random(rng, inline, 0.3),
        });
        given += job.as_ref().map_or(0, Job::reserved);
        world.step(job, NOBODY, false);
    }
    assert!(!world.has_room(), "nothing was taken");
    assert!(world.jobs.len() <= JOBS && given <= PAYLOAD_WORDS);
    assert_eq!(
        world.answered,
        world.jobs.len(),
        "every job is answered although the wire takes nothing"
    );
    for pair in 0..4 {
        world.step(None, [Some(pair); 2], false);
    }
    for _ in 0..JOBS + 4 {
        world.step(None, NOBODY, false);
    }
    assert!(world.has_room(), "what was dropped makes room");
    assert_eq!(world.left(), 0);
}

#[test]
fn a_wire_that_stops_leaves_no_job_open() {
    for_seeds(4, stopped_wire);
}

#[test]
fn a_block_that_is_broken_is_noticed() {
    breaks("gather", 6, |rng| {
        traffic(rng);
        stopped_wire(rng);
    });
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_are_noticed() {
    mutants("gather", 1, |rng| {
        traffic(rng);
        stopped_wire(rng);
    });
}
