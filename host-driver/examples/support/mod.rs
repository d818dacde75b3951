//! What the examples have in common: two processes, each with an endpoint on a card of its own, connected to each other.
//!
//! The cards are soft ones, so that nothing has to be built. On others only [`connected`] would be another.

#![allow(dead_code, reason = "no example uses all of it")]

use host_driver::transport::PauseResult;
use host_driver::{
    Access, Buffer, CompletionQueue, Device, Endpoint, Pair, ProtectionDomain, Source,
    TaggedReceive, TaggedSend,
};
use soft_card::{Sizes, SoftFabric, SoftOptions};

/// What an example returns.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Cycles to wait for a completion.
pub const PATIENCE: u64 = 1_000_000;

/// One of the two processes.
pub struct Process {
    pub device: Device,
    pub pd: ProtectionDomain,
    pub endpoint: Endpoint,
    pub cq: CompletionQueue,
    /// The pair with the other process.
    pub pair: Pair,
}

impl Process {
    /// How a message to the other process is addressed.
    pub fn send(&self, match_bits: u64) -> TaggedSend {
        TaggedSend {
            pair: self.pair,
            context: 0,
            match_bits,
            immediate: 0,
        }
    }

    /// What matches such a message of the other process.
    pub fn receive(&self, match_bits: u64) -> TaggedReceive {
        TaggedReceive {
            source: Source::Pair(self.pair),
            context: 0,
            match_bits,
            ignore_bits: 0,
        }
    }

    /// A buffer with these bytes, of a region of its own.
    pub fn buffer(&self, bytes: &[u8]) -> Result<Buffer> {
        let (_, mut buffer) = self.pd.reg_mr(bytes.len(), Access::ReadWrite)?;
        buffer.copy_from_slice(bytes);
        Ok(buffer)
    }

    /// Lets the cards run.
    pub fn pause(&self, cycles: u64) {
        let end = self.device.pause(&[], self.device.now() + cycles);
        assert_eq!(end, PauseResult::Deadline);
    }
}

/// Cards that have what only some cards have, and room for four endpoints.
pub fn able() -> SoftFabric {
    let options = SoftOptions::default();
    SoftFabric::new(SoftOptions {
        sizes: Sizes {
            endpoints: 4,
            capabilities: abi::capability::ALL,
            ..options.sizes
        },
        ..options
    })
}

/// A card of a fabric.
pub fn device(fabric: &SoftFabric, card: usize) -> Result<Device> {
    Ok(Device::open(fabric.transport(card))?)
}

/// A process on each card of a fabric, with an endpoint.
pub fn open(fabric: &SoftFabric, card: usize) -> Result<(Device, ProtectionDomain, Endpoint)> {
    let device = device(fabric, card)?;
    let pd = device.alloc_pd()?;
    let endpoint = pd.endpoint().open()?;
    Ok((device, pd, endpoint))
}

/// Two processes whose endpoints are connected.
pub fn connected() -> Result<(Process, Process)> {
    connected_over(&SoftFabric::new(SoftOptions::default()))
}

/// The same, over these cards.
pub fn connected_over(fabric: &SoftFabric) -> Result<(Process, Process)> {
    let process = |card| -> Result<_> {
        let (device, pd, endpoint) = open(fabric, card)?;
        let (pair, address) = endpoint.open_pair(8)?;
        let cq = endpoint.completion_queue();
        let process = Process {
            device,
            pd,
            endpoint,
            cq,
            pair,
        };
        Ok((process, address))
    };
    let ((a, a_address), (b, b_address)) = (process(0)?, process(1)?);
    // How the addresses get to the other side is the program's business.
    a.endpoint.connect_pair(a.pair, &b_address)?;
    b.endpoint.connect_pair(b.pair, &a_address)?;
    Ok((a, b))
}
