//! Two cards with an endpoint each and a pair between them: what the benchmarks send over.

use std::sync::Arc;

use host_driver::transport::Transport;
use host_driver::{
    Access, Buffer, CompletionQueue, Device, Endpoint, Pair, PairAddress, ProtectionDomain, Source,
    TaggedReceive, TaggedSend, WcKind,
};
use sim::Host;

use anyhow::{Context, Result, bail, ensure};

/// Cycles to wait for a completion before a benchmark gives up.
const PATIENCE: u64 = 10_000_000;

/// One of two hosts.
pub struct Peer {
    pd: ProtectionDomain,
    endpoint: Endpoint,
    queue: CompletionQueue,
    pair: Pair,
    host: Host,
}

impl Peer {
    /// Opens an endpoint on the host's card and connects it to the other card's.
    pub fn open(host: Host) -> Result<Self> {
        let device = Device::open(Arc::new(host.transport()))?;
        let pd = device.alloc_pd()?;
        let endpoint = pd.endpoint().open()?;
        let (pair, address) = endpoint.open_pair(abi::limits::DEFAULT_CREDITS)?;
        let all = host.all_gather(address.to_bytes().to_vec())?;
        let peer = all
            .get(1 - host.card())
            .context("a benchmark of pairs has two cards")?;
        let peer = peer
            .as_slice()
            .try_into()
            .context("the length of an address")?;
        let peer = PairAddress::from_bytes(&peer).context("an address")?;
        endpoint.connect_pair(pair, &peer)?;
        let queue = endpoint.completion_queue();
        Ok(Self {
            pd,
            endpoint,
            queue,
            pair,
            host,
        })
    }

    /// Registers a buffer of `length` bytes.
    pub fn buffer(&self, length: usize) -> Result<Buffer> {
        if length == 0 {
            return Ok(Buffer::empty());
        }
        Ok(self.pd.reg_mr(length, Access::ReadWrite)?.1)
    }

    /// Whether this is card 0.
    pub fn is_first(&self) -> bool {
        self.host.card() == 0
    }

    /// Lets `cycles` pass.
    pub fn pause(&self, cycles: u64) {
        let transport = self.host.transport();
        // If the simulation is over, the next call says so.
        let _ = transport.pause(&[], transport.now() + cycles);
    }

    /// Returns when both hosts have called it.
    pub fn barrier(&self) -> Result<()> {
        self.host.all_gather(Vec::new())?;
        Ok(())
    }

    /// Posts a receive.
    pub fn receive(&self, tag: u64, buffer: Buffer) -> Result<()> {
        let receive = TaggedReceive {
            source: Source::Pair(self.pair),
            context: 0,
            match_bits: tag,
            ignore_bits: 0,
        };
        self.endpoint.post_tagged_recv(tag, &receive, buffer)?;
        Ok(())
    }

    /// Posts a send.
    pub fn send(&self, tag: u64, buffer: Buffer) -> Result<()> {
        let send = TaggedSend {
            pair: self.pair,
            context: 0,
            match_bits: tag,
            immediate: tag,
        };
        self.endpoint.post_tagged_send(tag, &send, buffer)?;
        Ok(())
    }

    /// Waits for the next completion, which must be a success, and returns its kind and buffer.
    pub fn complete(&self) -> Result<(WcKind, Buffer)> {
        let completion = self.queue.wait(PATIENCE)?;
        ensure!(
            completion.status == host_driver::WcStatus::Success,
            "a {:?} completed with {}",
            completion.kind,
            completion.status
        );
        match completion.buffer {
            Some(buffer) => Ok((completion.kind, buffer)),
            None => bail!("a {:?} completed without its buffer", completion.kind),
        }
    }
}
