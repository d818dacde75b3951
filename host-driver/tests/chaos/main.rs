//! Library, firmware's decisions and the model of the card together, in any order: objects opened, closed, dropped and opened again, requests posted,
//! cancelled and polled for, firmware late, hung or starting anew, links cut, frames lost, cards that die.
//!
//! What must hold whatever happens:
//! - Each request completes once at most, with the buffer that it was posted with; once exactly, when its endpoint is closed or its card is gone.
//! - The card never writes to a buffer that the program has.
//! - What was closed is closed at the card, and when all is dropped the card has no mapping left.

use host_driver::{
    Access, Buffer, CommandError, CompletionQueue, Device, DeviceOptions, Endpoint, Pair,
    PairAddress, PostError, ProtectionDomain, Request, Source, TaggedReceive, TaggedSend, WcKind,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soft_card::{Attachment, Break, FirmwareBehaviour, Flaw, Sizes, SoftFabric, SoftOptions};
use std::collections::HashMap;
use std::ops::Range;

const OPTIONS: DeviceOptions = DeviceOptions {
    ready_timeout: 100_000,
    command_timeout: 6_000,
};
/// Steps that a fabric lives at most.
const LIFE: u64 = 600;
/// Bytes of a buffer.
const BUFFER: usize = 64;

macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+));
        }
    };
}

/// Where a buffer is, which names it.
fn range(buffer: &Buffer) -> Range<usize> {
    let start = buffer.as_ptr().addr();
    start..start + buffer.len()
}

/// An endpoint, as the program has it.
struct End {
    endpoint: Option<Endpoint>,
    queue: CompletionQueue,
    /// With what the other side has to know to join, unless the cards make the connection.
    pairs: Vec<(Pair, Option<PairAddress>)>,
    /// What was posted and has not come back: number, kind and buffer.
    outstanding: HashMap<u64, (WcKind, Option<Range<usize>>)>,
    requests: Vec<Request>,
}

struct Host {
    card: usize,
    device: Device,
    pd: ProtectionDomain,
    ends: Vec<End>,
    /// Buffers that the program has.
    buffers: Vec<Buffer>,
}

/// What was seen often enough to prove something.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    completions: u64,
    flushed: u64,
    late: u64,
    restarted: u64,
    unreachable: u64,
    closed: u64,
    reopened: u64,
    deaths: u64,
    stale: u64,
}

struct World {
    fabric: SoftFabric,
    hosts: Vec<Host>,
    rng: ChaCha8Rng,
    next: u64,
    cut: [bool; 2],
    /// A card that will not answer a command that it has.
    hung: [bool; 2],
    seen: Seen,
}

impl World {
    fn new(seed: u64, attachment: Attachment, flaw: Flaw) -> Result<Self, String> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let fabric = SoftFabric::new(SoftOptions {
            sizes: Sizes {
                endpoints: 3,
                pairs: 8,
                posted: [2, 64][rng.random_range(0..2)],
                unexpected: 32,
                regions: 24,
                posted_reserved: 0,
                capabilities: 0,
            },
            latency: rng.random_range(1..300),
            register_cycles: rng.random_range(1..40),
            boot_cycles: 500,
            command_cycles: rng.random_range(100..3000),
            attachment,
            flaw,
            seed,
            ..SoftOptions::default()
        });
        let mut world = Self {
            fabric,
            hosts: Vec::new(),
            rng,
            next: 0,
            cut: [false; 2],
            hung: [false; 2],
            seen: Seen::default(),
        };
        for card in 0..2 {
            let host = world.open(card)?;
            world.hosts.push(host);
            world.furnish(card)?;
        }
        world.connect(0)?;
        Ok(world)
    }

    fn open(&mut self, card: usize) -> Result<Host, String> {
        let device = Device::open_with(self.fabric.transport(card), OPTIONS);
        let device = device.map_err(|error| format!("open: {error}"))?;
        ensure!(
            self.fabric.open_endpoints(card) == 0,
            "card {card} was opened with endpoints of somebody else"
        );
        let pd = device.alloc_pd().map_err(|error| error.to_string())?;
        Ok(Host {
            card,
            device,
            pd,
            ends: Vec::new(),
            buffers: Vec::new(),
        })
    }

    /// Gives a host some buffers and an endpoint with a pair, to begin with.
    fn furnish(&mut self, who: usize) -> Result<(), String> {
        for _ in 0..4 {
            self.register(who)?;
        }
        self.open_end(who)?;
        self.open_pair(who)
    }

    /// Notes an error of a command that may occur.
    fn note(&mut self, error: CommandError) -> Result<(), String> {
        use host_driver::MailboxStatus::{Busy, NoEnvelopes, NoResource, NotFound};
        match error {
            CommandError::FirmwareTimeout { .. } => self.seen.late += 1,
            CommandError::Restarted => self.seen.restarted += 1,
            CommandError::Transport(_) => self.seen.unreachable += 1,
            CommandError::NotFound => {}
            CommandError::Refused {
                status: Busy | NoEnvelopes | NoResource | NotFound,
                ..
            } => {}
            error => return Err(error.to_string()),
        }
        Ok(())
    }

    /// The program has a buffer, or gives it away.
    fn own(&self, card: usize, buffer: &Buffer, owned: bool) {
        self.fabric.set_owned(card, buffer, owned);
    }

    fn step(&mut self) -> Result<(), String> {
        let who = self.rng.random_range(0..2);
        match self.rng.random_range(0..100) {
            0..4 => self.open_end(who)?,
            4..7 => self.close_end(who)?,
            7..9 => self.drop_end(who),
            9..15 => self.open_pair(who)?,
            15..19 => self.connect(who)?,
            19..21 => self.shake_hands(who)?,
            21..23 => self.close_pair(who)?,
            23 => self.disconnect(who)?,
            24..28 => self.register(who)?,
            28 => {
                let buffers = std::mem::take(&mut self.hosts[who].buffers);
                buffers
                    .iter()
                    .for_each(|buffer| self.own(who, buffer, false));
            }
            29..58 => {
                for _ in 0..self.rng.random_range(1..8) {
                    self.post(who)?;
                }
            }
            58..62 => self.cancel(who)?,
            62..82 => self.poll(who)?,
            82..92 => {
                let cycles = self.rng.random_range(1..2000);
                self.fabric.run(cycles);
            }
            92..94 => self.fabric.run(30_000),
            94 => self.fabric.lose_frames(who, 1),
            95 if self.rng.random() => self.set_firmware(who),
            96 if self.rng.random() => {
                self.cut[who] = !self.cut[who];
                self.fabric.cut(who, self.cut[who]);
            }
            97 => self.query(who)?,
            98 => self.mend(),
            99 if self.rng.random_ratio(1, 3) => self.reopen(who)?,
            _ => {}
        }
        for card in 0..2 {
            let trespasses = self.fabric.trespasses(card);
            ensure!(trespasses == 0, "card {card} wrote to the program's memory");
        }
        Ok(())
    }

    fn set_firmware(&mut self, who: usize) {
        let after = self.rng.random_range(0..3);
        let cycles = self.rng.random_range(4000..40_000);
        let behaviour = match self.rng.random_range(0..14) {
            0 => {
                self.hung[who] = true;
                FirmwareBehaviour::HangsAfter(after)
            }
            1 => FirmwareBehaviour::RestartsAfter(after),
            2..6 => FirmwareBehaviour::Normal,
            6 => FirmwareBehaviour::RestartsBefore(after),
            // While no command is given.
            7 => return self.fabric.restart_firmware(who),
            _ => FirmwareBehaviour::AnswersLate { after, cycles },
        };
        self.fabric.set_firmware(who, behaviour);
    }

    /// Everything answers again, as far as it can.
    fn mend(&mut self) {
        for card in 0..2 {
            self.fabric.set_firmware(card, FirmwareBehaviour::Normal);
            self.fabric.cut(card, false);
            self.cut[card] = false;
        }
        self.fabric.run(60_000);
    }

    fn pick(&mut self, who: usize) -> Option<usize> {
        let ends = self.hosts[who].ends.len();
        (ends > 0).then(|| self.rng.random_range(0..ends))
    }

    fn open_end(&mut self, who: usize) -> Result<(), String> {
        let completions = 1 << self.rng.random_range(2..6);
        let builder = self.hosts[who].pd.endpoint();
        let builder = builder.completion_queue(completions).send_ring(8);
        match builder.list_ring(8).inject_buffers(2).open() {
            Ok(endpoint) => self.hosts[who].ends.push(End {
                queue: endpoint.completion_queue(),
                endpoint: Some(endpoint),
                pairs: Vec::new(),
                outstanding: HashMap::new(),
                requests: Vec::new(),
            }),
            Err(error) => self.note(error)?,
        }
        Ok(())
    }

    /// Closes an endpoint; if that succeeds, everything must come back now.
    fn close_end(&mut self, who: usize) -> Result<(), String> {
        let Some(at) = self.pick(who) else {
            return Ok(());
        };
        let before = self.fabric.open_endpoints(who);
        let end = &self.hosts[who].ends[at];
        let Some(closed) = end.endpoint.as_ref().map(Endpoint::close) else {
            return Ok(());
        };
        match closed {
            Ok(()) => {
                let after = self.fabric.open_endpoints(who);
                let alone =
                    before == 0 || after < before || self.seen.late + self.seen.restarted > 0;
                ensure!(alone, "an endpoint was closed in name only");
                self.seen.closed += 1;
                self.take_all(who, at)?;
                ensure!(
                    self.hosts[who].ends[at].outstanding.is_empty(),
                    "a closed endpoint keeps {:?}",
                    self.hosts[who].ends[at].outstanding
                );
                self.hosts[who].ends.swap_remove(at);
                Ok(())
            }
            Err(error) => self.note(error),
        }
    }

    /// Drops the handle, and perhaps the queue.
    fn drop_end(&mut self, who: usize) {
        let Some(at) = self.pick(who) else {
            return;
        };
        if self.rng.random() {
            self.hosts[who].ends[at].endpoint = None;
        } else {
            self.hosts[who].ends.swap_remove(at);
        }
    }

    fn open_pair(&mut self, who: usize) -> Result<(), String> {
        let credits = self.rng.random_range(1..6);
        let Some(at) = self.pick(who) else {
            return Ok(());
        };
        let end = &mut self.hosts[who].ends[at];
        let Some(endpoint) = &end.endpoint else {
            return Ok(());
        };
        match endpoint.open_pair(credits) {
            Ok((pair, address)) => end.pairs.push((pair, Some(address))),
            Err(error) => self.note(error)?,
        }
        Ok(())
    }

    /// Connects the last pairs of two endpoints with each other.
    fn connect(&mut self, who: usize) -> Result<(), String> {
        let (Some(here), Some(there)) = (self.pick(who), self.pick(1 - who)) else {
            return Ok(());
        };
        let last = |host: &Host, at: usize| host.ends[at].pairs.last().copied();
        let near = last(&self.hosts[who], here);
        let far = last(&self.hosts[1 - who], there);
        let (Some((near, Some(near_address))), Some((far, Some(far_address)))) = (near, far) else {
            return Ok(());
        };
        let sides = [
            (who, here, near, far_address),
            (1 - who, there, far, near_address),
        ];
        for (who, at, pair, address) in sides {
            let connected = match &self.hosts[who].ends[at].endpoint {
                Some(endpoint) => endpoint.connect_pair(pair, &address),
                None => Ok(()),
            };
            connected.or_else(|error| self.note(error))?;
        }
        Ok(())
    }

    /// Has the cards connect two endpoints, or endpoints that both begin, or one to nobody.
    fn shake_hands(&mut self, who: usize) -> Result<(), String> {
        let (Some(here), Some(there)) = (self.pick(who), self.pick(1 - who)) else {
            return Ok(());
        };
        let address =
            |host: &Host, at: usize| host.ends[at].endpoint.as_ref().map(Endpoint::address);
        let near = address(&self.hosts[who], here);
        let far = address(&self.hosts[1 - who], there);
        let (Some(near), Some(far)) = (near, far) else {
            return Ok(());
        };
        let sides = match self.rng.random_range(0..4) {
            0 => vec![(who, here, Some(far))],
            1 => vec![(who, here, Some(far)), (1 - who, there, Some(near))],
            _ => vec![(1 - who, there, None), (who, here, Some(far))],
        };
        for (who, at, peer) in sides {
            let end = &mut self.hosts[who].ends[at];
            let Some(endpoint) = &end.endpoint else {
                continue;
            };
            let begun = match peer {
                Some(peer) => endpoint.begin_connect(&peer, 2, 50_000),
                None => endpoint.listen(2),
            };
            match begun {
                Ok(pair) => end.pairs.push((pair, None)),
                Err(error) => self.note(error)?,
            }
        }
        Ok(())
    }

    fn disconnect(&mut self, who: usize) -> Result<(), String> {
        let Some(at) = self.pick(who) else {
            return Ok(());
        };
        let end = &self.hosts[who].ends[at];
        let (Some(endpoint), Some((pair, _))) = (&end.endpoint, end.pairs.first()) else {
            return Ok(());
        };
        let begun = endpoint.begin_disconnect(*pair, 10_000);
        begun.or_else(|error| self.note(error))
    }

    fn close_pair(&mut self, who: usize) -> Result<(), String> {
        let Some(at) = self.pick(who) else {
            return Ok(());
        };
        let end = &mut self.hosts[who].ends[at];
        let (Some(endpoint), Some((pair, _))) = (&end.endpoint, end.pairs.pop()) else {
            return Ok(());
        };
        endpoint.close_pair(pair).or_else(|error| self.note(error))
    }

    fn query(&mut self, who: usize) -> Result<(), String> {
        let Some(at) = self.pick(who) else {
            return Ok(());
        };
        let end = &self.hosts[who].ends[at];
        let (Some(endpoint), Some((pair, _))) = (&end.endpoint, end.pairs.first()) else {
            return Ok(());
        };
        let status = endpoint.query_pair(*pair).map(drop);
        while endpoint.poll_event().is_ok_and(|event| event.is_some()) {}
        status.or_else(|error| self.note(error))
    }

    fn register(&mut self, who: usize) -> Result<(), String> {
        let count = self.rng.random_range(1..6);
        let registered = self.hosts[who].pd.reg_mr(count * BUFFER, Access::ReadWrite);
        match registered {
            Ok((_region, mut whole)) => {
                for _ in 0..count {
                    let buffer = whole.split_to(BUFFER);
                    self.own(who, &buffer, true);
                    self.hosts[who].buffers.push(buffer);
                }
                Ok(())
            }
            Err(error) => self.note(error),
        }
    }

    fn post(&mut self, who: usize) -> Result<(), String> {
        let Some(at) = self.pick(who) else {
            return Ok(());
        };
        let id = self.next;
        self.next += 1;
        let pairs = &self.hosts[who].ends[at].pairs;
        if pairs.is_empty() {
            return Ok(());
        }
        let (pair, _) = pairs[self.rng.random_range(0..pairs.len())];
        let way = self.rng.random_range(0..8);
        let any = self.rng.random_ratio(1, 3);
        let receive = TaggedReceive {
            source: if any { Source::Any } else { Source::Pair(pair) },
            context: 0,
            match_bits: self.rng.random_range(0..2),
            ignore_bits: 0,
        };
        let send = TaggedSend {
            pair,
            context: 0,
            match_bits: receive.match_bits,
            immediate: id,
        };
        let buffer = match way {
            0..5 => match self.hosts[who].buffers.pop() {
                Some(buffer) => Some(buffer),
                None => return Ok(()),
            },
            _ => None,
        };
        let posted = buffer.as_ref().map(range);
        buffer
            .iter()
            .for_each(|buffer| self.own(who, buffer, false));
        let end = &mut self.hosts[who].ends[at];
        let Some(endpoint) = &end.endpoint else {
            // Given away above: it comes back at once.
            if let Some(buffer) = buffer {
                self.own(who, &buffer, true);
                self.hosts[who].buffers.push(buffer);
            }
            return Ok(());
        };
        let refused = |refused: host_driver::Refused| (refused.error, Some(refused.buffer));
        let (kind, outcome) = match (way, buffer) {
            (0..3, Some(buffer)) => (
                WcKind::Receive,
                endpoint
                    .post_tagged_recv(id, &receive, buffer)
                    .map_err(refused),
            ),
            (_, Some(buffer)) => (
                WcKind::Send,
                endpoint
                    .post_tagged_send(id, &send, buffer)
                    .map_err(refused),
            ),
            (5, None) => (
                WcKind::Probe,
                endpoint.probe(id, &receive).map_err(|error| (error, None)),
            ),
            (6, None) => (
                WcKind::Claim,
                endpoint.claim(id, &receive).map_err(|error| (error, None)),
            ),
            _ => {
                // An inject is shown only if it fails.
                let _ = endpoint.post_tagged_inject(u64::MAX, &send, b"inject");
                return Ok(());
            }
        };
        match outcome {
            Ok(request) => {
                end.requests.push(request);
                end.outstanding.insert(id, (kind, posted));
            }
            Err((error, buffer)) => {
                ensure!(error != PostError::WrongDomain, "{error}");
                if let Some(posted) = posted {
                    let buffer = buffer.ok_or("a refused buffer was kept")?;
                    ensure!(range(&buffer) == posted, "another buffer came back");
                    self.own(who, &buffer, true);
                    self.hosts[who].buffers.push(buffer);
                }
            }
        }
        Ok(())
    }

    /// Cancels some request, most of which have come back long since.
    fn cancel(&mut self, who: usize) -> Result<(), String> {
        let Some(at) = self.pick(who) else {
            return Ok(());
        };
        let end = &self.hosts[who].ends[at];
        let (Some(endpoint), false) = (&end.endpoint, end.requests.is_empty()) else {
            return Ok(());
        };
        let request = end.requests[self.rng.random_range(0..end.requests.len())];
        if endpoint.cancel(u64::MAX, request) == Err(PostError::NothingToCancel) {
            self.seen.stale += 1;
        }
        Ok(())
    }

    fn poll(&mut self, who: usize) -> Result<(), String> {
        match self.pick(who) {
            Some(at) => self.take_all(who, at),
            None => Ok(()),
        }
    }

    /// Takes all completions that are there.
    fn take_all(&mut self, who: usize, at: usize) -> Result<(), String> {
        loop {
            let end = &mut self.hosts[who].ends[at];
            let strays = end.queue.strays();
            ensure!(strays == 0, "{strays} completions of nothing");
            let Some(mut completion) = end.queue.poll() else {
                return Ok(());
            };
            self.seen.completions += 1;
            self.seen.flushed += u64::from(completion.status == host_driver::WcStatus::Flushed);
            if completion.wr_id == u64::MAX {
                continue;
            }
            let id = completion.wr_id;
            let (kind, posted) = end
                .outstanding
                .remove(&id)
                .ok_or_else(|| format!("{id} completed twice"))?;
            ensure!(kind == completion.kind, "{id} is of another kind");
            let back = completion.buffer.take();
            ensure!(
                back.as_ref().map(range) == posted,
                "{id} brought another buffer"
            );
            if let Some(buffer) = back {
                self.own(who, &buffer, true);
                self.hosts[who].buffers.push(buffer);
            }
        }
    }

    /// The program at a card ends and starts again.
    fn reopen(&mut self, who: usize) -> Result<(), String> {
        if self.cut[who] {
            return Ok(());
        }
        let host = self.hosts.remove(who);
        let card = host.card;
        host.buffers
            .iter()
            .for_each(|buffer| self.own(card, buffer, false));
        drop(host);
        let left = self.fabric.mappings(card);
        ensure!(left == 0, "card {card} has {left} mappings of nobody");
        self.fabric.set_firmware(card, FirmwareBehaviour::Normal);
        self.hung[card] = false;
        let host = self.open(card)?;
        self.hosts.insert(card, host);
        self.seen.reopened += 1;
        self.furnish(card)?;
        self.connect(card)
    }

    /// The end: either the cards die under the program, or it closes everything.
    fn end(mut self) -> Result<Seen, String> {
        let dies = self.rng.random();
        if dies {
            self.seen.deaths += 1;
            self.fabric.close();
        } else {
            self.mend();
        }
        for who in 0..2 {
            for at in (0..self.hosts[who].ends.len()).rev() {
                let end = &self.hosts[who].ends[at];
                let closed = match &end.endpoint {
                    Some(endpoint) => endpoint.close(),
                    // Any command has closed it.
                    None => self.hosts[who].device.alloc_pd().map(drop),
                };
                self.take_all(who, at)?;
                let end = &self.hosts[who].ends[at];
                match closed {
                    Ok(()) => {}
                    Err(CommandError::Transport(_)) if dies => {}
                    Err(CommandError::Restarted) => {}
                    Err(error) => {
                        ensure!(self.hung[who], "card {who} doesn't close: {error}");
                        continue;
                    }
                }
                ensure!(
                    end.outstanding.is_empty(),
                    "{:?} never came back",
                    end.outstanding
                );
            }
        }
        for host in std::mem::take(&mut self.hosts) {
            let card = host.card;
            host.buffers
                .iter()
                .for_each(|buffer| self.own(card, buffer, false));
            drop(host);
            let left = self.fabric.mappings(card);
            ensure!(left == 0, "card {card} has {left} mappings at the end");
        }
        Ok(self.seen)
    }
}

/// Runs `steps` steps; what was seen, or what broke, and of which seed.
fn run(steps: u64, attachment: Attachment, flaw: Flaw) -> Result<Seen, String> {
    let mut total = Seen::default();
    for seed in 0..steps.div_ceil(LIFE) {
        let with_seed = |error: String| format!("seed {seed}: {error}");
        let mut world = World::new(seed, attachment, flaw).map_err(with_seed)?;
        for step in 0..LIFE {
            let stepped = world.step();
            stepped.map_err(|error| with_seed(format!("step {step}: {error}")))?;
        }
        let seen = world.end().map_err(with_seed)?;
        total.completions += seen.completions;
        total.flushed += seen.flushed;
        total.late += seen.late;
        total.restarted += seen.restarted;
        total.unreachable += seen.unreachable;
        total.closed += seen.closed;
        total.reopened += seen.reopened;
        total.deaths += seen.deaths;
        total.stale += seen.stale;
    }
    Ok(total)
}

fn assert_promises_kept(steps: u64, attachment: Attachment) {
    let seen = run(steps, attachment, Flaw::None).unwrap_or_else(|error| panic!("{error}"));
    println!("{steps} steps: {seen:?}");
    let least = steps / 2000;
    for (count, what) in [
        (seen.completions / 100, "hundreds of completions"),
        (seen.flushed, "flushed requests"),
        (seen.late, "late answers"),
        (seen.closed, "closed endpoints"),
        (seen.stale, "stale cancels"),
        (seen.reopened, "reopened cards"),
        (seen.unreachable, "unreachable cards"),
    ] {
        assert!(count >= least, "{count} {what} prove little");
    }
    assert!(seen.deaths > 0 && seen.restarted > 0);
}

#[test]
fn nothing_is_lost_or_doubled_and_no_memory_is_written_that_the_program_has() {
    assert_promises_kept(if cfg!(miri) { 1200 } else { 100_000 }, Attachment::Shared);
}

#[test]
#[cfg_attr(miri, ignore)]
fn nor_at_the_end_of_a_cable() {
    assert_promises_kept(6_000, Attachment::Cable);
}

#[test]
#[ignore = "ten million steps take minutes"]
fn nothing_is_lost_or_doubled_in_ten_million_steps() {
    assert_promises_kept(10_000_000, Attachment::Shared);
}

#[test]
#[cfg_attr(miri, ignore)]
fn cards_that_break_a_promise_are_noticed() {
    for (flaw, message) in [
        (Flaw::Gates(Break::CompletesTwice), "completions of nothing"),
        (Flaw::WritesLate, "wrote to the program's memory"),
        (Flaw::ClosesInName, "in name only"),
        (Flaw::KeepsGates, "endpoints of somebody else"),
    ] {
        let error = run(30_000, Attachment::Shared, flaw).unwrap_err();
        assert!(error.contains(message), "{flaw:?}: {error}");
    }
}
