//! A host program for [`super::StandIn`]: sends and receives frames.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use abi::register::{COMPLETION_ARM, MAILBOX_COMMAND, SEND_TAIL, endpoint_page};
use host_driver::transport::{Line, PauseResult, Transport, TransportError, Watch};
use sim::{Host, SimTransport, fabric};

use super::{BUFFER, ENTRIES};

const PAGE: usize = 4096;
/// Descriptors, completions, then payloads to be sent, then received frames.
const COMPLETIONS: usize = 1024;
const PAYLOADS: usize = 4096;
const FRAMES: usize = PAYLOADS + (BUFFER * ENTRIES) as usize;
const BYTES: usize = FRAMES + (BUFFER * ENTRIES) as usize;
/// Bytes before the payload of a frame.
pub const HEADER: usize = abi::wire::ETHERNET_HEADER_BYTES;

/// Zeroed pages that the card may write to while this program looks at them.
pub struct Pages {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: plain bytes that nothing ties to a thread.
unsafe impl Send for Pages {}

impl Pages {
    pub fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes, PAGE).unwrap();
        // SAFETY: the layout isn't empty.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap();
        Self { start, layout }
    }

    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.layout.size());
        // SAFETY: inside the allocation and aligned; everybody accesses it atomically.
        unsafe { AtomicU64::from_ptr(self.start.add(at).cast().as_ptr()) }
    }

    pub fn write(&self, at: usize, bytes: &[u8]) {
        for (k, chunk) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let word = u64::from_le_bytes(word);
            self.word(at + 8 * k).store(word, Ordering::Relaxed);
        }
    }

    pub fn read(&self, at: usize, len: usize) -> Vec<u8> {
        let words = (at..at + len).step_by(8);
        let words = words.map(|at| self.word(at).load(Ordering::Relaxed));
        let bytes = words.flat_map(u64::to_le_bytes);
        bytes.take(len).collect()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated by `new`; whoever mapped it has unmapped it, or the simulation is over.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// An open port.
pub struct Port {
    pub transport: SimTransport,
    pages: Pages,
    address: u64,
    sent: u64,
    received: u64,
}

impl Port {
    pub fn open(host: &Host) -> Result<Self, TransportError> {
        let transport = host.transport();
        let pages = Pages::new(BYTES);
        // SAFETY: `Drop` unmaps the pages before they are freed.
        let address = unsafe { transport.map(pages.start(), BYTES) }?;
        let areas = [
            address,
            address + FRAMES as u64,
            address + COMPLETIONS as u64,
        ];
        for (area, offset) in areas.into_iter().zip((MAILBOX_COMMAND..).step_by(8)) {
            // SAFETY: the port is the card's only user, and the areas are its pages.
            unsafe {
                transport.write_register(offset, area as u32)?;
                transport.write_register(offset + 4, (area >> 32) as u32)?;
            }
        }
        Ok(Self {
            transport,
            pages,
            address,
            sent: 0,
            received: 0,
        })
    }

    /// Sends `payload` to a card. At most 16 frames may be on their way.
    pub fn send(&mut self, card: usize, payload: &[u8]) -> Result<(), TransportError> {
        let entry = (self.sent % ENTRIES) as usize;
        let buffer = PAYLOADS + entry * BUFFER as usize;
        self.pages.write(buffer, payload);
        let address = self.address + buffer as u64;
        self.send_from(address, payload.len() as u64, card)
    }

    /// Sends what is at an address of the card.
    pub fn send_from(&mut self, address: u64, len: u64, card: usize) -> Result<(), TransportError> {
        let entry = (self.sent % ENTRIES) as usize;
        let descriptor = [address, len, fabric::mac(card)];
        for (k, word) in descriptor.into_iter().enumerate() {
            let at = 64 * entry + 8 * k;
            self.pages.word(at).store(word, Ordering::Relaxed);
        }
        self.sent += 1;
        let doorbell = endpoint_page(0) + SEND_TAIL;
        // SAFETY: the descriptor is written, and names mapped memory or none.
        unsafe { self.transport.doorbell(doorbell, self.sent as u32) }
    }

    /// The next frame, if it has come.
    pub fn poll(&mut self) -> Option<Vec<u8>> {
        let entry = (self.received % ENTRIES) as usize;
        let completion = self.pages.word(COMPLETIONS + 8 * entry);
        let word = completion.load(Ordering::Acquire);
        if word == 0 {
            return None;
        }
        completion.store(0, Ordering::Relaxed);
        self.received += 1;
        let len = (word & !(1 << 63)) as usize;
        Some(self.pages.read(FRAMES + entry * BUFFER as usize, len))
    }

    /// Waits for the next frame.
    pub fn receive(&mut self) -> Result<Vec<u8>, TransportError> {
        loop {
            let line = Line::Endpoint(0);
            let watch = Watch {
                line,
                seen: self.transport.interrupts(line),
            };
            if let Some(frame) = self.poll() {
                return Ok(frame);
            }
            let arm = endpoint_page(0) + COMPLETION_ARM;
            // SAFETY: arming moves nothing.
            unsafe { self.transport.write_register(arm, 0) }?;
            if let Some(frame) = self.poll() {
                return Ok(frame);
            }
            if self.transport.pause(&[watch], u64::MAX) == PauseResult::Closed {
                return Err(TransportError::Closed);
            }
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // SAFETY: mapped by `open`.
        match unsafe { self.transport.unmap(self.address) } {
            Ok(()) | Err(TransportError::Closed) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
