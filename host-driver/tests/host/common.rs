//! Two endpoints, each on a card of its own, and what tests do with them.

use host_driver::transport::PauseResult;
use host_driver::{
    Access, Buffer, CompletionQueue, Device, DeviceOptions, Endpoint, EndpointBuilder, Pair,
    PostError, Protection, ProtectionDomain, Request, Source, TaggedReceive, TaggedSend, WaitError,
    WorkCompletion,
};
use soft_card::{Flaw, Sizes, SoftFabric, SoftOptions};
use std::cell::Cell;
use std::panic::catch_unwind;

/// Cycles after which a test gives a completion up.
pub const PATIENCE: u64 = 10_000_000;

thread_local! {
    /// What is wrong with the cards of this thread's tests.
    static FLAW: Cell<Flaw> = const { Cell::new(Flaw::None) };
}

/// Runs a test over cards with a flaw, and returns whether it passes.
pub fn passes_with(flaw: Flaw, test: fn()) -> bool {
    FLAW.set(flaw);
    let passed = catch_unwind(test).is_ok();
    FLAW.set(Flaw::None);
    passed
}

/// Options of a fabric of this suite.
pub fn options() -> SoftOptions {
    SoftOptions {
        attachment: crate::ATTACHMENT,
        flaw: FLAW.get(),
        ..SoftOptions::default()
    }
}

/// The same with cards that have all that a card may have.
pub fn able_options() -> SoftOptions {
    let options = options();
    SoftOptions {
        sizes: Sizes {
            capabilities: abi::capability::ALL,
            ..options.sizes
        },
        ..options
    }
}

/// The next completion of a queue, whatever events come.
#[track_caller]
pub fn next_past_events(cq: &CompletionQueue) -> WorkCompletion {
    loop {
        match cq.wait(PATIENCE) {
            Err(WaitError::Interrupted) => {}
            completion => return completion.expect("a completion"),
        }
    }
}

/// One side of a conversation.
pub struct Side {
    pub device: Device,
    pub pd: ProtectionDomain,
    pub endpoint: Endpoint,
    pub cq: CompletionQueue,
    pub pair: Pair,
    memory: Buffer,
}

impl Side {
    /// A buffer of `length` bytes.
    pub fn buffer(&mut self, length: usize) -> Buffer {
        self.memory.split_to(length)
    }

    /// A buffer with these bytes.
    pub fn filled(&mut self, bytes: &[u8]) -> Buffer {
        let mut buffer = self.buffer(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }

    /// A send on the pair with these match bits.
    pub fn send(&self, match_bits: u64) -> TaggedSend {
        TaggedSend {
            pair: self.pair,
            context: 0,
            match_bits,
            immediate: match_bits ^ 0xabcd,
        }
    }

    /// A receive of exactly these match bits from the pair.
    pub fn receive(&self, match_bits: u64) -> TaggedReceive {
        TaggedReceive {
            source: Source::Pair(self.pair),
            context: 0,
            match_bits,
            ignore_bits: 0,
        }
    }

    /// Posts a receive of eight bytes, letting the card run while its ring is full.
    pub fn post(&mut self, wr_id: u64, receive: &TaggedReceive) -> Request {
        let mut buffer = self.buffer(8);
        loop {
            match self.endpoint.post_tagged_recv(wr_id, receive, buffer) {
                Ok(request) => return request,
                Err(refused) => {
                    assert_eq!(refused.error, PostError::ListRingFull);
                    buffer = refused.buffer;
                    self.pause(100);
                }
            }
        }
    }

    /// Lets the cards run.
    pub fn pause(&self, cycles: u64) {
        let end = self.device.pause(&[], self.device.now() + cycles);
        assert_eq!(end, PauseResult::Deadline);
    }

    /// The next completion.
    #[track_caller]
    pub fn next(&self) -> WorkCompletion {
        self.cq.wait(PATIENCE).expect("a completion")
    }

    /// The next completion, whatever events come.
    #[track_caller]
    pub fn next_past_events(&self) -> WorkCompletion {
        next_past_events(&self.cq)
    }
}

/// A connected pair of endpoints on cards 0 and 1, with `credits` each way.
pub fn connected(fabric: &SoftFabric, credits: u16) -> (Side, Side) {
    sized(fabric, credits, 256)
}

/// The same, with completion queues of so many entries.
pub fn sized(fabric: &SoftFabric, credits: u16, completions: usize) -> (Side, Side) {
    opened(fabric, credits, |pd| {
        pd.endpoint().completion_queue(completions)
    })
}

/// The same, of endpoints that are opened so.
pub fn opened(
    fabric: &SoftFabric,
    credits: u16,
    builder: impl Fn(&ProtectionDomain) -> EndpointBuilder,
) -> (Side, Side) {
    opened_at(fabric, credits, Protection::PerSender, builder)
}

/// The same, on cards that are asked for this level of protection.
pub fn opened_at(
    fabric: &SoftFabric,
    credits: u16,
    protection: Protection,
    builder: impl Fn(&ProtectionDomain) -> EndpointBuilder,
) -> (Side, Side) {
    let options = DeviceOptions {
        protection,
        ..DeviceOptions::default()
    };
    let open = |card: usize| {
        let device = Device::open_with(fabric.transport(card), options).expect("a card");
        let pd = device.alloc_pd().expect("a domain");
        let endpoint = builder(&pd).inject_buffers(4).open().expect("an endpoint");
        let (_, memory) = pd.reg_mr(1 << 20, Access::ReadWrite).expect("a region");
        let (pair, address) = endpoint.open_pair(credits).expect("a pair");
        let side = Side {
            cq: endpoint.completion_queue(),
            device,
            pd,
            endpoint,
            pair,
            memory,
        };
        (side, address)
    };
    let (a, a_address) = open(0);
    let (b, b_address) = open(1);
    a.endpoint
        .connect_pair(a.pair, &b_address)
        .expect("connected");
    b.endpoint
        .connect_pair(b.pair, &a_address)
        .expect("connected");
    (a, b)
}

/// A fabric of two cards.
pub fn fabric() -> SoftFabric {
    SoftFabric::new(options())
}

/// Two sides on cards that have all that a card may have.
pub fn able(credits: u16) -> (Side, Side) {
    connected(&SoftFabric::new(able_options()), credits)
}

/// Two sides on cards with room for `posted` receives, all of them for the one endpoint that there is.
pub fn cramped(posted: u32, credits: u16) -> (Side, Side) {
    let fabric = SoftFabric::new(SoftOptions {
        sizes: Sizes {
            endpoints: 1,
            posted,
            ..options().sizes
        },
        ..options()
    });
    connected(&fabric, credits)
}
