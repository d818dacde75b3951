//! What only some cards have: sends that complete only on error, gathers, completion queues of several endpoints.

use abi::capability::{
    self, CAPABILITY_ERRORS_ONLY, CAPABILITY_GATHER, CAPABILITY_INLINE,
    CAPABILITY_SHARED_COMPLETIONS,
};
use abi::completion::{Completion, CompletionKind};
use abi::control::{Counter, EndpointSetup, Operation};
use abi::event::Cause;
use abi::limits::EAGER_MAX;
use abi::register::{COMPLETION_TAIL, SEND_HEAD};
use abi::request::{
    FLAG_ERRORS_ONLY, FLAG_GATHER, FLAG_INLINE, FLAG_READY, Opcode, Segment, SendRequest,
    SendSegments,
};
use abi::status::Status;
use card_model::memory::HostMemory;
use card_model::{Break, CardSizes, InTurn};

use crate::host_side::{BUFFER_BYTES, HostSide, able, tiny};
use crate::net::{End, Net};

/// One card whose pair is connected with itself.
struct Stage {
    net: Net,
}

const PAIR: u16 = 0;
const CREDITS: u8 = 3;

impl Stage {
    fn new(sizes: CardSizes) -> Self {
        Self::of(sizes, 1)
    }

    /// With so many endpoints. Pair `e` is endpoint `e`'s.
    fn of(sizes: CardSizes, endpoints: u8) -> Self {
        let mut net = Net::new(1, sizes, endpoints, 5);
        for endpoint in 0..endpoints {
            let end = End {
                card: 0,
                endpoint,
                pair: endpoint.into(),
            };
            net.connect(end, end, CREDITS);
        }
        Self { net }
    }

    fn host_side(&self) -> HostSide {
        self.net.host_sides[0][0].clone()
    }

    fn send(&mut self, request: SendRequest) {
        self.net.host_sides[0][0].send(&mut self.net.cards[0], request);
    }

    fn gather(&mut self, request: SendRequest, second: SendSegments) {
        self.net.host_sides[0][0].send_two(&mut self.net.cards[0], request, second);
    }

    fn receive(&mut self, request: u32, offset: u64, length: u64) {
        let receive = self.host_side().a_receive(PAIR, request, offset, length);
        self.net.host_sides[0][0].list(&mut self.net.cards[0], receive);
    }

    fn run(&mut self) {
        self.net.cards[0].run(&mut InTurn::default());
        self.net.check_credits();
    }

    /// Runs, and takes all completions.
    fn ended(&mut self) -> Vec<Completion> {
        self.run();
        let poll = || self.net.host_sides[0][0].poll(&mut self.net.cards[0]);
        std::iter::from_fn(poll).collect()
    }

    /// The same: handle and status of those of sends.
    fn sent(&mut self) -> Vec<(u32, Status)> {
        let of_sends = |entry: &Completion| entry.kind == CompletionKind::Send.code();
        let all = self.ended().into_iter().filter(of_sends);
        all.map(|entry| {
            (
                entry.request,
                Status::from_code(entry.status).expect("known"),
            )
        })
        .collect()
    }

    fn counter(&self, counter: Counter) -> u32 {
        self.net.cards[0].counter(counter)
    }
}

/// Sends on a pair, each to a receive: those with odd handles complete only on error. Returns what completed.
fn some_tell(sizes: CardSizes, broken: Break) -> Vec<(u32, Status)> {
    let mut stage = Stage::new(sizes);
    stage.net.cards[0].break_on_purpose(broken);
    for request in 0..4 {
        stage.receive(100 + request, 0, 8);
        let mut send = stage.host_side().a_send(PAIR, request, 0, 8);
        send.flags = if request % 2 == 1 {
            FLAG_ERRORS_ONLY
        } else {
            0
        };
        stage.send(send);
    }
    stage.sent()
}

#[test]
fn a_send_that_completes_only_on_error_writes_nothing_when_it_succeeds() {
    let told = some_tell(able(), Break::None);
    assert_eq!(told, [(0, Status::Success), (2, Status::Success)]);
    let broken = some_tell(able(), Break::SuccessTold);
    assert_ne!(
        broken, told,
        "it is noticed if such a send tells its success"
    );
}

#[test]
fn a_silent_success_gives_its_place_in_the_completion_queue_back() {
    let mut stage = Stage::new(able());
    // The queue has 32 entries; four times as many sends go through it, and nobody polls.
    for request in 0..128 {
        let receive = stage.host_side().a_receive(PAIR, 1000 + request, 0, 8);
        stage.net.host_sides[0][0].list(&mut stage.net.cards[0], receive);
        let mut send = stage.host_side().a_send(PAIR, request, 0, 8);
        send.flags = FLAG_ERRORS_ONLY;
        stage.send(send);
        stage.run();
        // The receive's.
        assert!(
            stage.net.host_sides[0][0]
                .poll(&mut stage.net.cards[0])
                .is_some()
        );
    }
    assert_eq!(stage.sent(), []);
    assert_eq!(stage.net.cards[0].read_register(0, SEND_HEAD), 128);
    assert_eq!(stage.net.cards[0].read_register(0, COMPLETION_TAIL), 128);
}

#[test]
fn every_other_end_of_such_a_send_is_told() {
    let mut stage = Stage::new(able());
    let host_side = stage.host_side();
    let silent = |request, offset, length| SendRequest {
        flags: FLAG_ERRORS_ONLY,
        ..host_side.a_send(PAIR, request, offset, length)
    };
    stage.send(silent(1, 0, EAGER_MAX as u64 + 1));
    assert_eq!(stage.sent(), [(1, Status::TooLong)]);
    stage.send(SendRequest {
        pair: 7,
        ..silent(2, 0, 8)
    });
    assert_eq!(stage.sent(), [(2, Status::InvalidPair)]);
    stage.send(SendRequest {
        key: 0,
        ..silent(3, 0, 8)
    });
    assert_eq!(stage.sent(), [(3, Status::LocalProtection)]);
    stage.send(silent(4, BUFFER_BYTES, 8));
    assert_eq!(stage.sent(), [(4, Status::MemoryError)]);
    stage.send(SendRequest {
        flags: FLAG_ERRORS_ONLY | FLAG_READY,
        ..silent(5, 0, 8)
    });
    assert_eq!(stage.sent(), [(5, Status::NotReady)]);
    stage.send(SendRequest {
        flags: FLAG_ERRORS_ONLY,
        opcode: Opcode::CancelSend.code(),
        ..silent(6, 0, 0)
    });
    let refused = stage.ended();
    assert_eq!(refused[0].kind, CompletionKind::Cancel.code());
    assert_eq!(refused[0].status, Status::InvalidRequest.code());
}

/// Sends that complete only on error, beyond the credits: some are under way, some wait.
fn beyond_credits() -> Stage {
    let mut stage = Stage::new(able());
    for request in 0..u32::from(CREDITS) + 2 {
        let mut send = stage.host_side().a_send(PAIR, request, 0, 8);
        send.flags = FLAG_ERRORS_ONLY;
        stage.send(send);
    }
    stage.run();
    stage
}

#[test]
fn what_waits_of_them_is_cancelled_flushed_or_fails_with_its_pair_and_says_so() {
    let mut stage = beyond_credits();
    let target = u32::from(CREDITS) + 1;
    stage.send(SendRequest {
        opcode: Opcode::CancelSend.code(),
        pair: PAIR,
        request: 50,
        target,
        ..SendRequest::default()
    });
    assert_eq!(stage.sent(), [(target, Status::Cancelled)]);
    stage.net.cards[0].control(Operation::PairClear, PAIR, &[]);
    // Those that were acknowledged have succeeded in silence.
    assert_eq!(stage.sent(), [(u32::from(CREDITS), Status::Flushed)]);

    let mut stage = beyond_credits();
    let status = Status::LinkError.code().into();
    stage.net.cards[0].control(Operation::PairFail, PAIR, &[status]);
    let waited = [3, 4].map(|request| (request, Status::LinkError));
    assert_eq!(stage.sent(), waited);
}

/// A gather of four segments whose second is empty, and what its receiver gets.
fn gathered(broken: Break) -> (Vec<u8>, Vec<Completion>) {
    let mut stage = Stage::new(able());
    stage.net.cards[0].break_on_purpose(broken);
    let host_side = stage.host_side();
    host_side.fill(&mut stage.net.cards[0], 0, b"first third fourth");
    let segment = |offset, length| Segment {
        key: host_side.key,
        address: host_side.buffers + offset,
        length,
    };
    let empty = Segment::default();
    let second = SendSegments::new(7, &[empty, segment(6, 5), segment(12, 6)]);
    let mut send = host_side.a_send(PAIR, 7, 0, 5);
    send.flags = FLAG_GATHER;
    stage.receive(8, 0x1000, 64);
    stage.gather(send, second);
    let ended = stage.ended();
    (host_side.bytes(&mut stage.net.cards[0], 0x1000, 16), ended)
}

#[test]
fn a_gather_sends_its_segments_one_after_the_other_as_one_message() {
    let (bytes, ended) = gathered(Break::None);
    assert_eq!(bytes, b"firstthirdfourth");
    assert_eq!(ended.len(), 2);
    for entry in ended {
        let received = entry.kind == CompletionKind::Receive.code();
        let length = if received { 16 } else { 0 };
        assert_eq!(
            (entry.status, entry.length),
            (Status::Success.code(), length)
        );
    }
    assert_ne!(
        gathered(Break::SegmentsSwapped).0,
        bytes,
        "order is noticed"
    );
}

#[test]
fn a_gather_that_is_malformed_is_refused_once_and_the_ring_goes_on() {
    let mut stage = Stage::new(able());
    let host_side = stage.host_side();
    let gather = |request| SendRequest {
        flags: FLAG_GATHER,
        ..host_side.a_send(PAIR, request, 0, 0)
    };
    let segments = |request| SendSegments::new(request, &[]);
    let good = |request| host_side.a_send(PAIR, request, 0, 0);
    // Without its second entry: the ring ends, or another request is there.
    stage.send(gather(1));
    assert_eq!(stage.sent(), [(1, Status::InvalidRequest)]);
    stage.send(gather(2));
    stage.send(good(3));
    let told = stage.sent();
    assert_eq!(told, [(2, Status::InvalidRequest), (3, Status::Success)]);
    // A second entry without its first, behind a send that isn't one.
    let words = segments(5).to_words();
    stage.send(SendRequest::from_words(&words));
    assert_eq!(stage.sent(), [(5, Status::InvalidRequest)]);
    // A second entry of another request, or with a reserved bit: it is taken along.
    stage.gather(gather(6), segments(60));
    assert_eq!(stage.sent(), [(6, Status::InvalidRequest)]);
    let reserved = SendSegments {
        reserved1: 1,
        ..segments(7)
    };
    stage.gather(gather(7), reserved);
    assert_eq!(stage.sent(), [(7, Status::InvalidRequest)]);
    // A first entry that is malformed itself takes its second along.
    let bad = SendRequest {
        reserved0: 1,
        ..gather(8)
    };
    stage.gather(bad, segments(8));
    assert_eq!(stage.sent(), [(8, Status::InvalidRequest)]);
    stage.gather(gather(9), segments(9));
    assert_eq!(stage.sent(), [(9, Status::Success)]);
    assert_eq!(stage.counter(Counter::InvalidRequests), 6);
}

#[test]
fn each_segment_of_a_gather_is_checked_and_the_sum_is_the_length() {
    let mut stage = Stage::new(able());
    let host_side = stage.host_side();
    let segment = |length| Segment {
        key: host_side.key,
        address: host_side.buffers,
        length,
    };
    let gather = |request, length| SendRequest {
        flags: FLAG_GATHER,
        ..host_side.a_send(PAIR, request, 0, length)
    };
    let half = EAGER_MAX as u64 / 2;
    let entry = |request, all: &[Segment]| SendSegments::new(request, all);
    stage.gather(gather(1, half), entry(1, &[segment(half)]));
    assert_eq!(stage.sent(), [(1, Status::Success)]);
    stage.gather(gather(2, half), entry(2, &[segment(half), segment(1)]));
    assert_eq!(stage.sent(), [(2, Status::TooLong)]);
    stage.gather(gather(3, u64::MAX), entry(3, &[segment(half)]));
    assert_eq!(stage.sent(), [(3, Status::TooLong)]);
    for bad in 0..3 {
        let mut all = [segment(8); 3];
        all[bad].key = 0;
        stage.gather(gather(4, 8), entry(4, &all));
        assert_eq!(stage.sent(), [(4, Status::LocalProtection)], "{bad}");
        all[bad] = Segment {
            address: host_side.buffers + BUFFER_BYTES,
            ..segment(8)
        };
        stage.gather(gather(5, 8), entry(5, &all));
        assert_eq!(stage.sent(), [(5, Status::MemoryError)], "{bad}");
        // An empty segment is not looked at.
        all[bad] = Segment {
            key: 0,
            address: 1,
            length: 0,
        };
        stage.receive(100, 0, EAGER_MAX as u64);
        stage.gather(gather(6, 8), entry(6, &all));
        assert_eq!(stage.sent(), [(6, Status::Success)], "{bad}");
    }
}

#[test]
fn a_second_entry_that_cannot_be_read_stops_the_ring_and_ends_its_send() {
    let mut stage = Stage::new(able());
    let host_side = stage.host_side();
    // 31 sends, so that the gather's first entry is the ring's last and its second the first.
    for request in 0..31 {
        stage.receive(100 + request, 0, 0);
        stage.send(host_side.a_send(PAIR, request, 0, 0));
        assert_eq!(stage.sent().len(), 1);
    }
    let gather = SendRequest {
        flags: FLAG_GATHER,
        ..host_side.a_send(PAIR, 31, 0, 0)
    };
    let ring = stage.host_side().next_send() - 31 * 64;
    stage.gather(gather, SendSegments::new(31, &[]));
    let mut last = [0; 64];
    let card = &mut stage.net.cards[0];
    card.memory.read(ring + 31 * 64, &mut last).expect("mapped");
    card.memory.unmap(ring);
    card.memory.map(ring + 31 * 64, 64);
    card.memory.write(ring + 31 * 64, &last).expect("mapped");
    assert_eq!(stage.sent(), [(31, Status::MemoryError)]);
    let event = stage.net.host_sides[0][0].poll_event(&mut stage.net.cards[0]);
    let event = event.map(|event| (event.cause, event.info));
    assert_eq!(event, Some((Cause::RingError.code(), 32)));
}

/// Two endpoints send to themselves, the second on the first one's queue. Handles and endpoints of what completed.
fn on_one_queue(sizes: CardSizes, broken: Break) -> Vec<(u32, u8)> {
    let mut stage = Stage::of(sizes, 2);
    stage.net.cards[0].break_on_purpose(broken);
    let setup = EndpointSetup {
        domain: 2,
        completion_owner: 0,
        epoch: 1,
        ..EndpointSetup::default()
    };
    stage.net.cards[0].control(Operation::EndpointSet, 1, &setup.to_words());
    for endpoint in 0..2_u32 {
        let host_side = stage.net.host_sides[0][endpoint as usize].clone();
        let request = 10 * (endpoint + 1);
        let receive = host_side.a_receive(endpoint as u16, request, 0, 8);
        let send = host_side.a_send(endpoint as u16, request + 1, 0, 8);
        stage.net.host_sides[0][endpoint as usize].list(&mut stage.net.cards[0], receive);
        stage.net.host_sides[0][endpoint as usize].send(&mut stage.net.cards[0], send);
    }
    let mut all: Vec<_> = stage
        .ended()
        .iter()
        .map(|e| (e.request, e.endpoint))
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn endpoints_complete_on_one_queue_and_each_completion_tells_its_endpoint() {
    let told = on_one_queue(able(), Break::None);
    assert_eq!(told, [(10, 0), (11, 0), (20, 1), (21, 1)]);
    assert_ne!(
        on_one_queue(able(), Break::OwnerTold),
        told,
        "it is noticed"
    );
    // A card without it knows nothing of owners, and tells no endpoint.
    assert_eq!(on_one_queue(tiny(), Break::None), [(10, 0), (11, 0)]);
}

#[test]
fn a_shared_queue_reserves_for_all_that_complete_on_it() {
    let mut stage = Stage::of(able(), 2);
    let setup = EndpointSetup {
        domain: 2,
        epoch: 1,
        ..EndpointSetup::default()
    };
    stage.net.cards[0].control(Operation::EndpointSet, 1, &setup.to_words());
    // Receives that match nothing hold 32 entries, all that there are: 16 of each endpoint, and 4 more of the second, which stay on its ring.
    for endpoint in 0..2 {
        let host_side = &mut stage.net.host_sides[0][endpoint];
        for request in 0..16 + 4 * endpoint as u32 {
            let receive = host_side.a_receive(endpoint as u16, request, 0, 8);
            host_side.list(&mut stage.net.cards[0], receive);
        }
        stage.run();
    }
    let fetched = |stage: &Stage| stage.net.cards[0].read_register(1, abi::register::LIST_HEAD);
    assert_eq!(fetched(&stage), 16);
    // One that completes, on either, and is consumed makes room.
    let status = Status::LinkError.code().into();
    stage.net.cards[0].control(Operation::PairFail, 0, &[status]);
    let ended = stage.ended();
    assert_eq!(ended.len(), 16);
    assert!(ended.iter().all(|entry| entry.endpoint == 0));
    stage.run();
    assert_eq!(fetched(&stage), 20);
    // Closing the second endpoint flushes its own, to that queue.
    stage.net.cards[0].control(Operation::EndpointStop, 1, &[]);
    stage.net.cards[0].control(Operation::EndpointFlush, 1, &[]);
    let flushed = stage.ended();
    assert_eq!(flushed.len(), 20);
    for entry in flushed {
        assert_eq!((entry.endpoint, entry.status), (1, Status::Flushed.code()));
    }
}

/// What arrives of inline sends of these bytes, and how they end. Their keys and addresses name nothing.
fn carried(broken: Break, payloads: &[&[u8]]) -> (Vec<Vec<u8>>, Vec<(u32, Status)>) {
    let mut stage = Stage::new(able());
    stage.net.cards[0].break_on_purpose(broken);
    let mut arrived = Vec::new();
    let mut ended = Vec::new();
    for (request, payload) in payloads.iter().enumerate() {
        stage.receive(100, 0x1000, 64);
        let send = stage.host_side().a_send(PAIR, request as u32, 0, 0);
        stage.send(send.with_inline(payload));
        ended.extend(stage.sent());
        let host_side = stage.host_side();
        arrived.push(host_side.bytes(&mut stage.net.cards[0], 0x1000, payload.len()));
    }
    (arrived, ended)
}

#[test]
fn an_inline_send_is_what_its_request_carries() {
    let payloads: [&[u8]; 4] = [b"", b"posthorn", b"fifteen of them", b"sixteen of them!"];
    let (arrived, ended) = carried(Break::None, &payloads);
    assert_eq!(arrived, payloads);
    let wanted: Vec<_> = (0..4).map(|request| (request, Status::Success)).collect();
    assert_eq!(ended, wanted);
    let broken = carried(Break::InlineReversed, &payloads);
    assert_ne!(broken.0, arrived, "the order of its bytes is noticed");
}

#[test]
fn an_inline_send_that_is_too_long_or_a_gather_is_refused() {
    let mut stage = Stage::new(able());
    let inline = stage
        .host_side()
        .a_send(PAIR, 1, 0, 0)
        .with_inline(&[1; 16]);
    stage.send(SendRequest {
        length: 17,
        ..inline
    });
    assert_eq!(stage.sent(), [(1, Status::InvalidRequest)]);
    let gather = SendRequest {
        flags: inline.flags | FLAG_GATHER,
        ..inline
    };
    stage.gather(gather, SendSegments::new(1, &[]));
    assert_eq!(stage.sent(), [(1, Status::InvalidRequest)]);
    assert_eq!(stage.counter(Counter::InvalidRequests), 2);
}

#[test]
fn a_card_without_a_capability_does_not_know_its_flags_and_opcodes() {
    for (lacking, flag) in [
        (CAPABILITY_ERRORS_ONLY, FLAG_ERRORS_ONLY),
        (CAPABILITY_GATHER, FLAG_GATHER),
        (CAPABILITY_INLINE, FLAG_INLINE),
    ] {
        let mut stage = Stage::new(CardSizes {
            capabilities: capability::ALL & !lacking,
            ..tiny()
        });
        let mut send = stage.host_side().a_send(PAIR, 1, 0, 0);
        send.flags = flag;
        stage.send(send);
        assert_eq!(stage.sent(), [(1, Status::InvalidRequest)]);
    }
    let mut stage = Stage::new(CardSizes {
        capabilities: CAPABILITY_SHARED_COMPLETIONS,
        ..tiny()
    });
    let gather = SendRequest {
        flags: FLAG_GATHER,
        ..stage.host_side().a_send(PAIR, 1, 0, 0)
    };
    stage.gather(gather, SendSegments::new(1, &[]));
    let kinds = [CompletionKind::Send, CompletionKind::Unknown];
    let refused: Vec<_> = stage.ended().iter().map(|e| (e.kind, e.status)).collect();
    let wanted = kinds.map(|kind| (kind.code(), Status::InvalidRequest.code()));
    assert_eq!(refused, wanted);
}
