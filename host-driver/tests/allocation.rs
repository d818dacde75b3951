//! Posting and polling don't allocate: the global allocator counts, except inside the simulated card.

use host_driver::transport::{Answer, Line, PauseResult, Transport, TransportError, Watch};
use host_driver::{
    Access, Buffer, Cause, Device, Endpoint, Gather, Get, Put, RecvWr, RemoteRights, SendFlags,
    SendWr, Source, TaggedReceive, TaggedSend, WaitError, WcStatus,
};
use soft_card::{Sizes, SoftFabric, SoftOptions};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;

thread_local! {
    /// Allocations of this thread, outside of the card.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// The thread is inside the card.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !INSIDE.get() {
            ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A transport whose own allocations aren't counted.
struct Uncounted(Arc<dyn Transport>);

fn inside<T>(call: impl FnOnce() -> T) -> T {
    INSIDE.set(true);
    let result = call();
    INSIDE.set(false);
    result
}

// SAFETY: every call is passed on.
unsafe impl Transport for Uncounted {
    fn claim(&self) -> Result<bool, TransportError> {
        inside(|| self.0.claim())
    }

    unsafe fn release(&self) {
        // SAFETY: the caller's promise is the same, here and below.
        inside(|| unsafe { self.0.release() });
    }

    unsafe fn read_register(&self, offset: u32) -> Result<u32, TransportError> {
        // SAFETY: as above.
        inside(|| unsafe { self.0.read_register(offset) })
    }

    unsafe fn write_register(&self, offset: u32, value: u32) -> Result<(), TransportError> {
        // SAFETY: as above.
        inside(|| unsafe { self.0.write_register(offset, value) })
    }

    unsafe fn doorbell(&self, offset: u32, value: u32) -> Result<(), TransportError> {
        // SAFETY: as above.
        inside(|| unsafe { self.0.doorbell(offset, value) })
    }

    unsafe fn map(&self, start: NonNull<u8>, length: usize) -> Result<u64, TransportError> {
        // SAFETY: as above.
        inside(|| unsafe { self.0.map(start, length) })
    }

    unsafe fn unmap(&self, address: u64) -> Result<(), TransportError> {
        // SAFETY: as above.
        inside(|| unsafe { self.0.unmap(address) })
    }

    unsafe fn command(
        &self,
        words: &[u32],
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<Answer, TransportError> {
        // SAFETY: as above.
        inside(|| unsafe { self.0.command(words, answer, deadline) })
    }

    unsafe fn late_answer(
        &self,
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<Answer, TransportError> {
        // SAFETY: as above.
        inside(|| unsafe { self.0.late_answer(answer, deadline) })
    }

    fn now(&self) -> u64 {
        inside(|| self.0.now())
    }

    fn interrupts(&self, line: Line) -> u64 {
        inside(|| self.0.interrupts(line))
    }

    fn notify(&self) {
        inside(|| self.0.notify());
    }

    fn pause(&self, watch: &[Watch], deadline: u64) -> PauseResult {
        inside(|| self.0.pause(watch, deadline))
    }

    fn is_closed(&self) -> bool {
        inside(|| self.0.is_closed())
    }
}

/// A pair of the endpoint with itself, which is two pairs connected to each other: a message over it, and the receive of it.
fn messages_to_itself(endpoint: &Endpoint) -> (TaggedSend, TaggedReceive) {
    let (here, here_address) = endpoint.open_pair(8).unwrap();
    let (there, there_address) = endpoint.open_pair(8).unwrap();
    endpoint.connect_pair(here, &there_address).unwrap();
    endpoint.connect_pair(there, &here_address).unwrap();
    let send = TaggedSend {
        pair: here,
        context: 0,
        match_bits: 7,
        immediate: 0,
    };
    let receive = TaggedReceive {
        source: Source::Pair(there),
        context: 0,
        match_bits: 7,
        ignore_bits: 0,
    };
    (send, receive)
}

#[test]
fn posting_and_polling_do_not_allocate() {
    let options = SoftOptions::default();
    // Room for so few receives that some are kept by the library.
    let fabric = SoftFabric::new(SoftOptions {
        sizes: Sizes {
            posted: 2,
            capabilities: abi::capability::ALL,
            ..options.sizes
        },
        ..options
    });
    let transport = Arc::new(Uncounted(fabric.transport(0)));
    let device = Device::open(transport).unwrap();
    let pd = device.alloc_pd().unwrap();
    let cq = pd.create_cq(32).unwrap();
    let endpoint = pd.endpoint().on(&cq).open().unwrap();
    // On the same queue, with what only some cards have.
    let beside = pd.endpoint().on(&cq).open().unwrap();
    let (to_itself, address) = beside.open_pair(8).unwrap();
    let (from_itself, other_address) = beside.open_pair(8).unwrap();
    beside.connect_pair(to_itself, &other_address).unwrap();
    beside.connect_pair(from_itself, &address).unwrap();
    let (send, receive) = messages_to_itself(&endpoint);
    let (_region, mut memory) = pd.reg_mr(4096, Access::ReadWrite).unwrap();
    let mut buffers = (memory.split_to(2048), memory);

    // More sends than the card holds of a pair: the library keeps the last.
    let count = 12;
    let mut receives = Vec::with_capacity(count);
    let mut sends = Vec::with_capacity(count);
    let mut posted = Vec::with_capacity(2 * count);
    let mut completions = Vec::with_capacity(2 * count);
    let (_shared_region, shared) = pd.reg_mr(8, Access::Read).unwrap();
    let shared = shared.share();
    let (_long_region, long) = pd.reg_mr(3000, Access::Read).unwrap();
    let long = long.share();
    let rights = RemoteRights::WRITE | RemoteRights::READ;
    let window = pd.reg_window(4096, rights).unwrap();
    let key = window.grant(&beside, from_itself, rights, ..);
    let key = key.unwrap();

    let before = ALLOCATIONS.get();
    for _ in 0..200 {
        for wr_id in 0..count as u64 {
            receives.push(RecvWr {
                wr_id,
                receive,
                multi: None,
                buffer: Buffer::empty(),
            });
            sends.push(SendWr {
                wr_id,
                send,
                flags: SendFlags::empty(),
                buffer: shared.slice(..4),
            });
        }
        endpoint
            .post_recv_list(receives.drain(..), &mut posted)
            .unwrap();
        endpoint
            .post_send_list(sends.drain(..), &mut posted)
            .unwrap();
        assert!(endpoint.query().kept > 0);
        while completions.len() < 2 * count {
            if cq.poll_many(&mut completions, 2 * count) == 0 {
                completions.push(cq.wait(1_000_000).unwrap());
            }
        }
        completions.clear();
        posted.clear();
        let (from, into) = buffers;
        let (from, rest) = {
            let mut from = from;
            (from.split_to(1000), from)
        };
        endpoint.post_tagged_recv(1, &receive, into).unwrap();
        endpoint.post_tagged_send(2, &send, from).unwrap();
        endpoint.post_tagged_inject(3, &send, b"copied").unwrap();
        let (mut sent, mut received) = (None, None);
        while sent.is_none() || received.is_none() {
            let completion = cq.wait(1_000_000).unwrap();
            assert_eq!(completion.status, WcStatus::Success);
            match completion.wr_id {
                1 => received = completion.buffer,
                _ => sent = completion.buffer,
            }
        }
        endpoint.probe(4, &receive).unwrap();
        while cq.wait(1_000_000).unwrap().status == WcStatus::NoMessage {
            endpoint.probe(4, &receive).unwrap();
        }
        let mut into = received.unwrap();
        // Claims, used in each way, of the earliest message each time: the last is left to be received below.
        for way in 0..3 {
            endpoint.post_tagged_inject(3, &send, b"claimed").unwrap();
            let claimed = loop {
                endpoint.claim(4, &receive).unwrap();
                if let Some(claimed) = cq.wait(1_000_000).unwrap().claimed {
                    break claimed;
                }
            };
            match way {
                0 => {
                    claimed.receive(7, into).unwrap();
                    into = cq.wait(1_000_000).unwrap().buffer.unwrap();
                }
                1 => {
                    claimed.discard(8).unwrap();
                    assert_eq!(cq.wait(1_000_000).unwrap().wr_id, 8);
                }
                _ => drop(claimed),
            }
        }
        let request = endpoint
            .post_tagged_recv(1, &receive, into.split_to(8))
            .unwrap();
        let small = cq.wait(1_000_000).unwrap();
        assert_eq!(small.received(), b"claimed");
        let mut whole = small.buffer.unwrap();
        whole.join(into).unwrap();
        assert!(endpoint.cancel(5, request).is_err());
        let request = endpoint.post_tagged_recv(1, &receive, whole).unwrap();
        endpoint.cancel(5, request).unwrap();
        let cancelled = cq.wait(1_000_000).unwrap();
        assert_eq!(cancelled.status, WcStatus::Cancelled);
        let kept: [_; 5] = std::array::from_fn(|_| {
            let posted = endpoint.post_tagged_recv(6, &receive, Buffer::empty());
            posted.unwrap()
        });
        for request in kept {
            endpoint.cancel(5, request).unwrap();
            let cancelled = cq.wait(1_000_000).unwrap();
            assert_eq!(
                (cancelled.wr_id, cancelled.status),
                (6, WcStatus::Cancelled)
            );
        }
        assert!(endpoint.poll_event().unwrap().is_none());
        let (pair, source) = (to_itself, Source::Pair(from_itself));
        let send = TaggedSend { pair, ..send };
        let receive = TaggedReceive { source, ..receive };
        let segments = [shared.slice(..2), shared.slice(2..4)];
        for _ in 0..2 {
            let posted = beside.post_tagged_recv(9, &receive, Buffer::empty());
            posted.unwrap();
        }
        let unsignaled = beside.post_unsignaled_send(10, &send, shared.clone());
        unsignaled.unwrap();
        beside.post_gather_send(11, &send, &segments).unwrap();
        for _ in 0..3 {
            let completion = cq.wait(1_000_000).unwrap();
            assert_eq!(completion.endpoint, beside.index());
        }
        let mut from = sent.unwrap();
        from.join(rest).unwrap();
        // Gets: a short one, and in parts.
        let get = Get {
            pair: to_itself,
            key,
            offset: 0,
        };
        let mut front = from.split_to(5);
        beside.post_get(12, &get, front).unwrap();
        front = cq.wait(1_000_000).unwrap().buffer.unwrap();
        beside.post_get(13, &get, from).unwrap();
        let read = cq.wait(1_000_000).unwrap();
        assert_eq!((read.status, read.length), (WcStatus::Success, 2043));
        front.join(read.buffer.unwrap()).unwrap();
        from = front;
        // Puts: of copies, in parts of a whole buffer, in parts of several, and one that times out.
        let put = Put {
            pair: to_itself,
            key,
            offset: 0,
        };
        let both = [shared.clone(), long.clone()];
        for wr_id in 12..15 {
            beside.post_inject_put(wr_id, &put, b"copied").unwrap();
        }
        beside.post_put(12, &put, from).unwrap();
        beside.post_gather_put(13, &put, &both).unwrap();
        let last = beside.post_put(14, &put, long.clone()).unwrap();
        beside.set_timeout(last, 0).unwrap();
        let mut from = None;
        for wr_id in [12, 13, 14] {
            let completion = cq.wait(1_000_000).unwrap();
            assert_eq!(completion.wr_id, wr_id);
            from = from.or(completion.buffer);
        }
        buffers = (from.unwrap(), cancelled.buffer.unwrap());
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
    drop(Box::new(1));
    assert_eq!(ALLOCATIONS.get() - before, 1, "the allocator doesn't count");
}

/// The kinds of requests and of news that the other test doesn't have.
#[test]
fn ready_sends_unsignaled_lists_multi_receives_and_events_do_not_allocate() {
    let options = SoftOptions::default();
    let fabric = SoftFabric::new(SoftOptions {
        sizes: Sizes {
            capabilities: abi::capability::ALL,
            ..options.sizes
        },
        ..options
    });
    let transport = Arc::new(Uncounted(fabric.transport(0)));
    let device = Device::open(Arc::clone(&transport) as Arc<dyn Transport>).unwrap();
    let pd = device.alloc_pd().unwrap();
    let endpoint = pd.endpoint().open().unwrap();
    let cq = endpoint.completion_queue();
    let (send, receive) = messages_to_itself(&endpoint);
    let (_region, mut whole) = pd.reg_mr(8, Access::ReadWrite).unwrap();
    let (_shared_region, shared) = pd.reg_mr(8, Access::Read).unwrap();
    let shared = shared.share();
    let segments = [shared.slice(..2), shared.slice(2..4)];
    let mut handles = Vec::with_capacity(2);
    // The card ignores this value of the doorbell, and says so by an event.
    let overrun = abi::register::endpoint_page(endpoint.index()) + abi::register::SEND_TAIL;
    let next = || loop {
        match cq.wait(1_000_000) {
            Err(WaitError::Interrupted) => {}
            completion => return completion.unwrap(),
        }
    };

    let before = ALLOCATIONS.get();
    for _ in 0..200 {
        // Of two ready sends one finds a receive.
        let posted = endpoint.post_tagged_recv(1, &receive, Buffer::empty());
        posted.unwrap();
        for wr_id in [2, 3] {
            let posted = endpoint.post_ready_send(wr_id, &send, Buffer::empty());
            posted.unwrap();
        }
        let (mut done, mut refused) = (0, 0);
        for _ in 0..3 {
            match next().status {
                WcStatus::Success => done += 1,
                status => {
                    assert_eq!(status, WcStatus::NotReady);
                    refused += 1;
                }
            }
        }
        assert_eq!((done, refused), (2, 1));

        // A list of sends that tell only of errors fills a buffer, one message behind the other.
        let parts = whole;
        endpoint.post_multi_recv(4, &receive, parts, 1).unwrap();
        let list = [0, 1].map(|wr_id| SendWr {
            wr_id,
            send,
            flags: SendFlags::UNSIGNALED,
            buffer: Gather::new(&segments).unwrap(),
        });
        endpoint.post_send_list(list, &mut handles).unwrap();
        handles.clear();
        let first = next();
        assert_eq!((first.wr_id, first.more), (4, true));
        let last = next();
        assert_eq!((last.wr_id, last.more), (4, false));
        whole = first.buffer.unwrap();
        whole.join(last.buffer.unwrap()).unwrap();

        let watch = endpoint.req_notify_event().unwrap();
        // SAFETY: it makes the card do nothing but raise an event.
        unsafe { transport.doorbell(overrun, 0x8000) }.unwrap();
        let waited = device.pause(&[watch], device.now() + 1_000_000);
        assert!(matches!(waited, PauseResult::Interrupt(_)));
        let event = endpoint.poll_event().unwrap().expect("an event");
        assert_eq!(event.cause, Cause::RingOverrun);
        let sticky = endpoint.sticky_causes().unwrap();
        endpoint.clear_causes(sticky).unwrap();
        assert_eq!(endpoint.events_lost(), Ok(0));
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
}
