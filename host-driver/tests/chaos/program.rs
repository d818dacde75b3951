//! What the program has: endpoints, buffers, and a ledger of what it has posted.

use abi::capability;
use host_driver::{
    Buffer, CommandError, CompletionQueue, Counter, Device, DeviceOptions, Endpoint, EndpointState,
    Pair, PairAddress, Protection, ProtectionDomain, RemoteKey, Request, SharedBuffer, WcKind,
    Window,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soft_card::{Attachment, Flaw, Sizes, SoftFabric, SoftOptions};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a buffer.
pub const BUFFER: usize = 64;
/// Cycles that a step takes at most: more than any time-out in it.
const STEP_CYCLES: u64 = 100_000_000;

/// Gives up with what isn't so.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+));
        }
    };
}
pub(crate) use ensure;

/// What was seen often enough to prove something.
pub type Seen = BTreeMap<&'static str, u64>;

/// Where bytes are, which names them.
pub fn range(bytes: &[u8]) -> Range<usize> {
    let start = bytes.as_ptr().addr();
    start..start + bytes.len()
}

/// What was posted and has not come back.
#[derive(Debug, PartialEq, Eq)]
pub struct Posted {
    pub kind: WcKind,
    pub buffer: Option<Range<usize>>,
    pub shared: Option<Range<usize>>,
}

/// An endpoint, as the program has it.
pub struct End {
    pub endpoint: Option<Endpoint>,
    pub queue: CompletionQueue,
    /// With what the other side has to know to join, unless the cards make the connection.
    pub pairs: Vec<(Pair, Option<PairAddress>)>,
    pub outstanding: HashMap<u64, Posted>,
    pub requests: Vec<Request>,
}

impl End {
    /// Whether the program has its handle, in this state.
    pub fn is(&self, state: EndpointState) -> bool {
        let endpoint = self.endpoint.as_ref();
        endpoint.is_some_and(|endpoint| endpoint.query().state == state)
    }

    /// Whether a send that has not come back reads some of these bytes.
    fn reads(&self, bytes: &Range<usize>) -> bool {
        let inside = |part: &Range<usize>| bytes.start <= part.start && part.end <= bytes.end;
        let mut shared = self
            .outstanding
            .values()
            .filter_map(|it| it.shared.as_ref());
        shared.any(inside)
    }
}

pub struct Host {
    pub card: usize,
    pub device: Device,
    pub pd: ProtectionDomain,
    pub ends: Vec<End>,
    /// Buffers that the program has.
    pub buffers: Vec<Buffer>,
    /// Those of which it has the right to read.
    pub shared: Vec<SharedBuffer>,
    /// Where those of them are that a request reads whose end was dropped.
    pub lost: HashSet<usize>,
    /// What the program has lent to peers.
    pub windows: Vec<Window>,
    /// Keys of these and of earlier ones, which the other program knows.
    pub keys: Vec<RemoteKey>,
}

impl Host {
    /// Whether a send that has not come back reads the buffer.
    pub fn reads(&self, shared: &SharedBuffer) -> bool {
        self.ends.iter().any(|end| end.reads(&range(shared)))
    }

    /// An end is dropped with all that it has outstanding.
    pub fn lose(&mut self, at: usize) -> End {
        let end = self.ends.swap_remove(at);
        for shared in &self.shared {
            if end.reads(&range(shared)) {
                self.lost.insert(range(shared).start);
            }
        }
        end
    }
}

/// Memory of the program's that was registered, and what became of its owners.
#[derive(Default)]
pub struct Brought {
    pub registered: AtomicU64,
    pub dropped: AtomicU64,
    /// Dropped while the card could reach the bytes.
    pub early: AtomicU64,
}

/// An owner of such memory.
pub struct Owner {
    pub bytes: Vec<u8>,
    pub fabric: SoftFabric,
    pub card: usize,
    pub brought: Arc<Brought>,
}

impl AsMut<[u8]> for Owner {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.brought.dropped.fetch_add(1, Ordering::Relaxed);
        if self.fabric.reaches(self.card, &self.bytes) {
            self.brought.early.fetch_add(1, Ordering::Relaxed);
            // The card may write to it.
            std::mem::forget(std::mem::take(&mut self.bytes));
        }
    }
}

pub struct World {
    pub fabric: SoftFabric,
    pub options: DeviceOptions,
    pub hosts: Vec<Host>,
    pub rng: ChaCha8Rng,
    pub next: u64,
    pub cut: [bool; 2],
    /// A card that will not answer a command that it has.
    pub hung: [bool; 2],
    /// A card whose gates have not answered for some time.
    pub silenced: [bool; 2],
    /// The cards are gone.
    pub dead: bool,
    pub brought: Arc<Brought>,
    pub seen: Seen,
}

impl World {
    pub fn new(seed: u64, attachment: Attachment, flaw: Flaw) -> Result<Self, String> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let fabric = SoftFabric::new(SoftOptions {
            sizes: Sizes {
                endpoints: 3,
                pairs: 8,
                posted: [2, 64][rng.random_range(0..2)],
                unexpected: 56,
                regions: 24,
                posted_reserved: 0,
                capabilities: [0, capability::ALL][rng.random_range(0..2)],
                descriptors: [16, 32, 128][rng.random_range(0..3)],
                rules: 4,
                grants: 32,
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
            options: DeviceOptions {
                ready_timeout: 100_000,
                // Less than the firmware's patience with the gates, or more.
                command_timeout: [6_000, 400_000][rng.random_range(0..2)],
                protection: [Protection::SharedKey, Protection::PerSender][rng.random_range(0..2)],
            },
            hosts: Vec::new(),
            rng,
            next: 0,
            cut: [false; 2],
            hung: [false; 2],
            silenced: [false; 2],
            dead: false,
            brought: Arc::default(),
            seen: Seen::new(),
        };
        for card in 0..2 {
            let host = world.open(card)?;
            world.hosts.push(host);
            world.furnish(card)?;
        }
        world.connect(0)?;
        Ok(world)
    }

    pub fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// Notes an error of a command that may occur.
    pub fn note(&mut self, who: usize, error: CommandError) -> Result<(), String> {
        use host_driver::MailboxStatus::{
            Busy, HardwareTimeout, NoEnvelopes, NoResource, NotFound,
        };
        match error {
            CommandError::FirmwareTimeout { .. } => self.saw("late answers"),
            CommandError::Restarted => self.saw("restarts"),
            CommandError::Transport(_) => self.saw("unreachable cards"),
            CommandError::NotFound => {}
            CommandError::Refused {
                status: HardwareTimeout,
                ..
            } if self.silenced[who] => self.saw("hardware time-outs"),
            CommandError::Refused {
                status: Busy | NoEnvelopes | NoResource | NotFound,
                ..
            } => {}
            error => return Err(error.to_string()),
        }
        Ok(())
    }

    /// The program has bytes, or gives them away.
    pub fn own(&self, card: usize, bytes: &[u8], owned: bool) {
        self.fabric.set_owned(card, bytes, owned);
    }

    /// The program has a buffer again.
    pub fn take_back(&mut self, who: usize, buffer: Buffer) {
        self.own(who, &buffer, true);
        self.hosts[who].buffers.push(buffer);
    }

    /// Takes a buffer to be given away.
    pub fn give(&mut self, who: usize) -> Option<Buffer> {
        let buffer = self.hosts[who].buffers.pop()?;
        self.own(who, &buffer, false);
        Some(buffer)
    }

    /// Some endpoint of a host.
    pub fn pick(&mut self, who: usize) -> Option<usize> {
        let ends = self.hosts[who].ends.len();
        (ends > 0).then(|| self.rng.random_range(0..ends))
    }

    /// Whether the card has done all that it was asked to: nothing is late, and what nobody uses is closed.
    pub fn is_settled(&self, who: usize) -> bool {
        let command = || self.hosts[who].device.read_counter(Counter::FramesSent);
        (0..2).all(|_| command().is_ok())
    }

    pub fn step(&mut self) -> Result<(), String> {
        let who = self.rng.random_range(0..2);
        if !self.dead {
            self.fabric.close_at(self.fabric.now() + STEP_CYCLES);
        }
        let what = self.rng.random_range(0..156);
        match what {
            0..4 => self.open_end(who)?,
            4..7 => self.close_end(who)?,
            7..9 => self.drop_end(who),
            9..15 => self.open_pair(who)?,
            15..19 => self.connect(who)?,
            19..21 => self.shake_hands(who)?,
            21..23 => self.close_pair(who)?,
            23 => self.disconnect(who)?,
            24..27 => self.register(who)?,
            27 => self.register_user(who)?,
            28 => {
                while let Some(buffer) = self.give(who) {
                    drop(buffer);
                }
            }
            29..56 => {
                for _ in 0..self.rng.random_range(1..8) {
                    self.post(who)?;
                }
            }
            56..60 => self.post_list(who)?,
            60..64 => self.cancel(who)?,
            64..84 => self.poll(who)?,
            84..94 => {
                let cycles = self.rng.random_range(1..2000);
                self.fabric.run(cycles);
            }
            94..96 => self.fabric.run(30_000),
            96 => self.fabric.lose_frames(who, 1),
            97 if self.rng.random() => self.set_firmware(who),
            98 if self.rng.random() => {
                self.cut[who] = !self.cut[who];
                self.fabric.cut(who, self.cut[who]);
            }
            99 => self.query(who)?,
            100 => self.mend()?,
            101 if self.rng.random_ratio(1, 3) => self.reopen(who)?,
            102..105 => self.share(who),
            105..108 => self.unshare(who)?,
            108 => self.silence(who),
            109 => self.fabric.wake_gates(who),
            110..112 => self.reserve(who)?,
            112..115 => self.connect_and_wait(who)?,
            115 => self.accept_and_wait(who)?,
            116..118 => self.disconnect_and_wait(who)?,
            118 => self.open_again(who)?,
            119..122 => self.drop_elsewhere(who),
            122 if self.rng.random_ratio(1, 4) => self.reset(who)?,
            124..128 => self.lend(who)?,
            128..134 => self.grant(who)?,
            134..136 => self.revoke(who)?,
            136 => self.revoke_peer(who)?,
            137..139 => self.recover(who)?,
            139 => self.drop_window(who),
            140..144 => self.lend_to_a_new_peer(who)?,
            144.. => self.access(who)?,
            _ => {}
        }
        if self.dead {
            self.saw("steps after death");
        }
        for card in 0..2 {
            let trespasses = self.fabric.trespasses(card);
            ensure!(trespasses == 0, "card {card} wrote to the program's memory");
        }
        let early = self.brought.early.load(Ordering::Relaxed);
        ensure!(
            early == 0,
            "memory was given back while the card could reach it"
        );
        let ended = self.dead || !self.fabric.is_closed();
        ensure!(ended, "step of kind {what} goes on for ever");
        Ok(())
    }
}
