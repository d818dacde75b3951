//! Two endpoints, each on a card of its own, and what tests do with them.

use host_driver::{
    Access, Buffer, CompletionQueue, Device, Endpoint, Pair, ProtectionDomain, Source,
    TaggedReceive, TaggedSend, WorkCompletion,
};
use soft_card::{SoftFabric, SoftOptions};

/// Cycles after which a test gives a completion up.
pub const PATIENCE: u64 = 10_000_000;

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

    /// The next completion.
    #[track_caller]
    pub fn next(&self) -> WorkCompletion {
        self.cq.wait(PATIENCE).expect("a completion")
    }
}

/// A connected pair of endpoints on cards 0 and 1, with `credits` each way.
pub fn connected(fabric: &SoftFabric, credits: u16) -> (Side, Side) {
    sized(fabric, credits, 256)
}

/// The same, with completion queues of so many entries.
pub fn sized(fabric: &SoftFabric, credits: u16, completions: usize) -> (Side, Side) {
    let open = |card: usize| {
        let device = Device::open(fabric.transport(card)).expect("a sound card");
        let pd = device.alloc_pd().expect("a domain");
        let builder = pd.endpoint().completion_queue(completions);
        let endpoint = builder.inject_buffers(4).open().expect("an endpoint");
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
    a.endpoint.connect(a.pair, &b_address).expect("connected");
    b.endpoint.connect(b.pair, &a_address).expect("connected");
    (a, b)
}

/// A fabric of two sound cards.
pub fn fabric() -> SoftFabric {
    SoftFabric::new(SoftOptions::default())
}
