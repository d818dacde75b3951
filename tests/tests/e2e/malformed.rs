//! Requests and doorbells that make no sense: each gets an error of its own, and the endpoint goes on.

use abi::completion::CompletionKind;
use abi::event::{Cause, INFO_LIST_RING_BIT};
use abi::register::{COMPLETION_HEAD, EVENT_HEAD, LIST_TAIL, SEND_HEAD, SEND_TAIL, STICKY};
use abi::request::{
    FLAG_ANY_SOURCE, FLAG_ERRORS_ONLY, FLAG_GATHER, FLAG_INLINE, ListRequest, Opcode, Segment,
    SendRequest, SendSegments,
};
use abi::status::Status;
use host_driver::Counter;
use posthorn_tests::cards::both;
use posthorn_tests::raw::{LOOPBACK_BYTES, LoopbackEndpoint, RawHost, Ring};

/// What is wrong with a send, and what is to come of it.
type SendCase = (&'static str, Status, CompletionKind, fn(&mut SendRequest));
/// What is wrong with an entry of the list ring, and what is to come of it.
type ListCase = (&'static str, Status, CompletionKind, fn(&mut ListRequest));

const SENDS: &[SendCase] = {
    use CompletionKind::{Cancel, Send, Unknown};
    use Status::{InvalidPair, InvalidRequest, LocalProtection, TooLate, TooLong};
    &[
        ("opcode 0", InvalidRequest, Unknown, |r| r.opcode = 0),
        ("opcode 0xff", InvalidRequest, Unknown, |r| r.opcode = 0xff),
        ("a receive in the send ring", InvalidRequest, Unknown, |r| {
            r.opcode = Opcode::TaggedReceive.code();
        }),
        ("a gather alone", InvalidRequest, Send, |r| {
            r.flags = FLAG_GATHER
        }),
        ("the last flag", InvalidRequest, Send, |r| r.flags = 0x80),
        ("reserved word 0", InvalidRequest, Send, |r| {
            r.reserved0 = 1 << 15
        }),
        ("reserved word 1", InvalidRequest, Send, |r| r.inline1 = 1),
        ("reserved word 2", InvalidRequest, Send, |r| {
            r.inline2 = 1 << 63
        }),
        ("17 bytes inline", InvalidRequest, Send, |r| {
            (r.flags, r.length) = (FLAG_INLINE, 17);
        }),
        ("a gather inline", InvalidRequest, Send, |r| {
            r.flags = FLAG_INLINE | FLAG_GATHER;
        }),
        ("a cancel inline", InvalidRequest, Cancel, |r| {
            (r.opcode, r.flags) = (Opcode::CancelSend.code(), FLAG_INLINE);
        }),
        (
            "a cancel in the list ring's words",
            InvalidRequest,
            Unknown,
            |r| {
                r.opcode = Opcode::Cancel.code();
            },
        ),
        ("a cancel with a flag", InvalidRequest, Cancel, |r| {
            (r.opcode, r.flags) = (Opcode::CancelSend.code(), 1);
        }),
        (
            "a cancel with a reserved bit",
            InvalidRequest,
            Cancel,
            |r| {
                (r.opcode, r.inline1) = (Opcode::CancelSend.code(), 1 << 31);
            },
        ),
        ("a cancel of nothing", TooLate, Cancel, |r| {
            (r.opcode, r.target) = (Opcode::CancelSend.code(), 4711);
        }),
        ("one byte too long", TooLong, Send, |r| r.length = 1025),
        ("2^16 bytes", TooLong, Send, |r| r.length = 1 << 16),
        ("2^16 bytes unsignaled", TooLong, Send, |r| {
            (r.flags, r.length) = (FLAG_ERRORS_ONLY, 1 << 16);
        }),
        ("2^64 - 1 bytes", TooLong, Send, |r| r.length = u64::MAX),
        ("a pair that isn't open", InvalidPair, Send, |r| r.pair = 5),
        ("a pair that the card hasn't", InvalidPair, Send, |r| {
            r.pair = 8
        }),
        ("pair 0xffff", InvalidPair, Send, |r| r.pair = 0xffff),
        ("no region's key", LocalProtection, Send, |r| {
            r.key ^= 1 << 20
        }),
        ("another region's index", LocalProtection, Send, |r| {
            r.key ^= 7
        }),
        (
            "an index that the card hasn't",
            LocalProtection,
            Send,
            |r| r.key |= 0xfff,
        ),
        ("a byte before the region", LocalProtection, Send, |r| {
            r.address -= 1
        }),
        ("a byte after the region", LocalProtection, Send, |r| {
            r.address += LOOPBACK_BYTES as u64 - r.length + 1;
        }),
        ("an address that wraps round", LocalProtection, Send, |r| {
            r.address = 8_u64.wrapping_neg();
        }),
    ]
};

const LISTS: &[ListCase] = {
    use CompletionKind::{Cancel, Claim, Discard, Probe, Receive, Unknown};
    use Status::{InvalidClaim, InvalidPair, InvalidRequest, LocalProtection, TooLate};
    &[
        ("opcode 0", InvalidRequest, Unknown, |r| r.opcode = 0),
        ("opcode 0xff", InvalidRequest, Unknown, |r| r.opcode = 0xff),
        ("a send in the list ring", InvalidRequest, Unknown, |r| {
            r.opcode = Opcode::TaggedSend.code();
        }),
        ("a flag", InvalidRequest, Receive, |r| r.flags = 0x20),
        ("a flag beside a good one", InvalidRequest, Receive, |r| {
            r.flags = FLAG_ANY_SOURCE | 0x40;
        }),
        ("a probe with a flag", InvalidRequest, Probe, |r| {
            (r.opcode, r.flags) = (Opcode::Probe.code(), 4);
        }),
        ("a cancel with a flag", InvalidRequest, Cancel, |r| {
            (r.opcode, r.flags) = (Opcode::Cancel.code(), FLAG_ANY_SOURCE);
        }),
        ("a cancel of nothing", TooLate, Cancel, |r| {
            (r.opcode, r.target) = (Opcode::Cancel.code(), 4711);
        }),
        ("a claim with a flag", InvalidRequest, Claim, |r| {
            (r.opcode, r.flags) = (Opcode::Claim.code(), 4);
        }),
        (
            "a claim of a pair that isn't open",
            InvalidPair,
            Claim,
            |r| {
                (r.opcode, r.pair) = (Opcode::Claim.code(), 5);
            },
        ),
        ("a discard with a flag", InvalidRequest, Discard, |r| {
            (r.opcode, r.flags) = (Opcode::Discard.code(), FLAG_ANY_SOURCE);
        }),
        ("a discard of nothing", InvalidClaim, Discard, |r| {
            (r.opcode, r.target) = (Opcode::Discard.code(), 0);
        }),
        (
            "a receive of a message that nobody claimed",
            InvalidClaim,
            Receive,
            |r| (r.opcode, r.target) = (Opcode::ReceiveClaimed.code(), 1 << 16),
        ),
        (
            "a receive of a claim of a pair that the card hasn't",
            InvalidClaim,
            Receive,
            |r| (r.opcode, r.target) = (Opcode::ReceiveClaimed.code(), u32::MAX),
        ),
        (
            "a receive of a claim with a flag",
            InvalidRequest,
            Receive,
            |r| (r.opcode, r.flags) = (Opcode::ReceiveClaimed.code(), FLAG_ANY_SOURCE),
        ),
        ("reserved word 0", InvalidRequest, Receive, |r| {
            r.reserved0 = 1
        }),
        ("reserved word 1", InvalidRequest, Receive, |r| {
            r.min_free = 1 << 31
        }),
        ("reserved word 2", InvalidRequest, Receive, |r| {
            r.reserved2 = 1
        }),
        ("a pair that isn't open", InvalidPair, Receive, |r| {
            r.pair = 5
        }),
        ("pair 0xffff", InvalidPair, Receive, |r| r.pair = 0xffff),
        (
            "a probe of a pair that the card hasn't",
            InvalidPair,
            Probe,
            |r| {
                (r.opcode, r.pair) = (Opcode::Probe.code(), 8);
            },
        ),
        ("no region's key", LocalProtection, Receive, |r| {
            r.key ^= 1 << 31
        }),
        ("a byte before the region", LocalProtection, Receive, |r| {
            r.address -= LOOPBACK_BYTES as u64 / 2 + 1;
        }),
        (
            "a buffer longer than the region",
            LocalProtection,
            Receive,
            |r| {
                r.length = LOOPBACK_BYTES as u64 / 2 + 1;
            },
        ),
        (
            "a buffer of 2^64 - 1 bytes",
            LocalProtection,
            Receive,
            |r| r.length = u64::MAX,
        ),
        ("a buffer that wraps round", LocalProtection, Receive, |r| {
            (r.address, r.length) = (16_u64.wrapping_neg(), 17);
        }),
    ]
};

#[test]
fn each_malformed_request_completes_with_its_error_and_the_next_good_one_works() {
    both("tiny", 1, 61, |host| {
        let host = RawHost::new(&host);
        let mut loopback = LoopbackEndpoint::open(&host);
        let mut request = 0;
        for &(what, status, kind, spoil) in SENDS {
            request += 1;
            let mut send = loopback.send(7, request, 16);
            spoil(&mut send);
            loopback.endpoint.post_send(send.to_words());
            let entry = loopback.endpoint.completion();
            assert_eq!(
                (entry.request, entry.status, entry.kind),
                (request, status.code(), kind.code()),
                "{what}: {entry:?}"
            );
            loopback.assert_works();
        }
        for &(what, status, kind, spoil) in LISTS {
            request += 1;
            let mut receive = loopback.receive(7, request, 16);
            spoil(&mut receive);
            loopback.endpoint.post_list(receive.to_words());
            let entry = loopback.endpoint.completion();
            assert_eq!(
                (entry.request, entry.status, entry.kind),
                (request, status.code(), kind.code()),
                "{what}: {entry:?}"
            );
            loopback.assert_works();
        }
        // A cancel that comes too late is nobody's fault; all others are refused as malformed, each once.
        let statuses = SENDS.iter().map(|case| case.1);
        let statuses = statuses.chain(LISTS.iter().map(|case| case.1));
        let malformed = statuses.filter(|status| *status != Status::TooLate);
        assert_eq!(
            host.count(Counter::InvalidRequests),
            malformed.count() as u64
        );
        assert!(loopback.endpoint.poll_event().is_none());
    });
}

/// What is wrong with a gather of 4 × 8 bytes, and what is to come of it.
type GatherCase = (
    &'static str,
    Status,
    fn(&mut SendRequest, &mut SendSegments),
);

const GATHERS: &[GatherCase] = {
    use Status::{InvalidPair, InvalidRequest, LocalProtection, Success, TooLong};
    const REGION: u64 = LOOPBACK_BYTES as u64;
    &[
        ("nothing", Success, |_, _| ()),
        ("segment 2 of no region", LocalProtection, |_, s| {
            s.key1 ^= 1 << 20
        }),
        ("segment 3 of no region", LocalProtection, |_, s| {
            s.key2 ^= 1 << 20
        }),
        ("segment 4 of no region", LocalProtection, |_, s| {
            s.key3 ^= 1 << 20
        }),
        ("segment 1 before its region", LocalProtection, |r, _| {
            r.address -= 1
        }),
        ("segment 2 before its region", LocalProtection, |_, s| {
            s.address1 -= 9
        }),
        ("segment 3 beyond its region", LocalProtection, |_, s| {
            s.address2 += REGION - 23
        }),
        ("segment 4 wraps round", LocalProtection, |_, s| {
            s.address3 = 4_u64.wrapping_neg()
        }),
        ("an empty segment of no region", Success, |_, s| {
            (s.length2, s.key2, s.address2) = (0, 0, 1)
        }),
        ("a byte too long", TooLong, |r, s| {
            (r.length, s.length1, s.length2) = (512, 256, 249)
        }),
        ("segment 1 of 2^64 - 1 bytes", TooLong, |r, _| {
            r.length = u64::MAX
        }),
        ("segment 2 of 2^11 bytes", TooLong, |_, s| {
            s.length1 = 1 << 11
        }),
        ("segment 4 of 2^32 - 1 bytes", TooLong, |_, s| {
            s.length3 = u32::MAX
        }),
        ("a pair that isn't open", InvalidPair, |r, _| r.pair = 5),
        ("a reserved bit in the first", InvalidRequest, |r, _| {
            r.inline2 = 1
        }),
        ("a reserved bit in the second", InvalidRequest, |_, s| {
            s.reserved3 = 1
        }),
        ("another request's second", InvalidRequest, |_, s| {
            s.request += 1
        }),
        ("an inline payload", InvalidRequest, |r, _| {
            r.flags |= FLAG_INLINE
        }),
    ]
};

#[test]
fn each_segment_of_a_gather_is_checked_and_a_malformed_one_is_refused_once() {
    both("tiny", 1, 60, |host| {
        let host = RawHost::new(&host);
        let mut loopback = LoopbackEndpoint::open(&host);
        let mut request = 0;
        for &(what, status, spoil) in GATHERS {
            request += 1;
            let mut first = loopback.send(7, request, 8);
            first.flags = FLAG_GATHER;
            let segment = |at: u64| Segment {
                address: first.address + 8 * at,
                ..first.segment()
            };
            let mut second = SendSegments::new(request, &[segment(1), segment(2), segment(3)]);
            spoil(&mut first, &mut second);
            let success = status == Status::Success;
            if success {
                let receive = loopback.receive(7, 1000, 32);
                loopback.endpoint.post_list(receive.to_words());
            }
            let entries = [first.to_words(), second.to_words()];
            loopback.endpoint.post_sends(&entries);
            for _ in 0..1 + usize::from(success) {
                let entry = loopback.endpoint.completion();
                let expected = if entry.request == 1000 { 1000 } else { request };
                assert_eq!(
                    (entry.request, entry.status),
                    (expected, status.code()),
                    "{what}: {entry:?}"
                );
            }
            loopback.assert_works();
        }
        // A second entry alone, and a first before another request, which is looked at as one.
        let second = SendSegments::new(50, &[]).to_words();
        loopback.endpoint.post_send(second);
        assert_eq!(loopback.status(), (50, Status::InvalidRequest));
        let mut first = loopback.send(7, 51, 8);
        first.flags = FLAG_GATHER;
        let behind = loopback.cancel_send(52, 99).to_words();
        loopback.endpoint.post_sends(&[first.to_words(), behind]);
        let mut both = [loopback.status(), loopback.status()];
        both.sort_unstable();
        assert_eq!(both, [(51, Status::InvalidRequest), (52, Status::TooLate)]);
        loopback.assert_works();
        let malformed = GATHERS.iter().filter(|case| case.1 != Status::Success);
        assert_eq!(
            host.count(Counter::InvalidRequests),
            malformed.count() as u64 + 2
        );
        assert!(loopback.endpoint.poll_event().is_none());
    });
}

#[test]
fn zero_length_looks_at_no_key_and_touches_no_memory() {
    both("tiny", 1, 62, |host| {
        let host = RawHost::new(&host);
        let mut loopback = LoopbackEndpoint::open(&host);
        let mut send = loopback.send(7, 1, 0);
        (send.key, send.address) = (0xdead_beef, u64::MAX);
        let mut receive = loopback.receive(7, 2, 0);
        (receive.key, receive.address) = (0xffff_ffff, 3);
        loopback.endpoint.post_list(receive.to_words());
        loopback.endpoint.post_send(send.to_words());
        let mut both = [loopback.status(), loopback.status()];
        both.sort_unstable();
        assert_eq!(both, [(1, Status::Success), (2, Status::Success)]);
        loopback.assert_works();
    });
}

#[test]
fn a_tail_further_than_the_ring_is_an_event_and_the_ring_goes_on() {
    both("tiny", 1, 63, |host| {
        let host = RawHost::new(&host);
        let mut loopback = LoopbackEndpoint::open(&host);
        loopback.assert_works();
        for (ring, bit) in [(SEND_TAIL, 0), (LIST_TAIL, 1 << INFO_LIST_RING_BIT)] {
            let head = loopback.endpoint.read(SEND_HEAD - SEND_TAIL + ring);
            let entries = 1 << loopback.endpoint.log2[Ring::Send as usize];
            for tail in [
                head + entries + 1,
                head + 0x8000,
                head.wrapping_sub(1) & 0xffff,
                1 << 16,
            ] {
                loopback.endpoint.doorbell(ring, tail);
                let event = loopback.endpoint.event();
                assert_eq!(event.cause, Cause::RingOverrun.code(), "tail {tail:#x}");
                assert_eq!(event.info, u64::from(tail) | bit, "tail {tail:#x}");
            }
        }
        assert_eq!(host.count(Counter::DoorbellErrors), 8);
        assert_eq!(
            loopback.endpoint.read(STICKY),
            1 << Cause::RingOverrun.code()
        );
        loopback
            .endpoint
            .doorbell(STICKY, 1 << Cause::RingOverrun.code());
        assert_eq!(loopback.endpoint.read(STICKY), 0);
        loopback.assert_works();
    });
}

#[test]
fn a_consumer_index_that_the_card_never_reached_is_an_event_and_frees_nothing() {
    both("tiny", 1, 64, |host| {
        let host = RawHost::new(&host);
        let mut loopback = LoopbackEndpoint::open(&host);
        loopback.assert_works();
        for (index, value) in [
            (COMPLETION_HEAD, 0x4000),
            (COMPLETION_HEAD, 1 << 20),
            (EVENT_HEAD, 100),
        ] {
            loopback.endpoint.doorbell(index, value);
            let event = loopback.endpoint.event();
            assert_eq!(event.cause, Cause::IndexError.code(), "{value:#x}");
            assert_eq!(event.info, u64::from(value));
        }
        // A whole pass of the queue still works, entry by entry.
        for _ in 0..6 {
            loopback.assert_works();
        }
    });
}

#[test]
fn a_ring_that_cannot_be_read_stops_with_an_event_and_the_other_goes_on() {
    both("tiny", 1, 65, |host| {
        let host = RawHost::new(&host);
        let mut other = LoopbackEndpoint::open(&host);
        for (ring, bit) in [(Ring::Send, 0), (Ring::List, 1 << INFO_LIST_RING_BIT)] {
            let mut loopback = LoopbackEndpoint::open(&host);
            loopback.assert_works();
            let index = loopback
                .endpoint
                .read(if bit == 0 { SEND_HEAD } else { SEND_HEAD + 4 });
            loopback.endpoint.unmap(ring);
            let (send, probe) = (loopback.send(1, 1, 0), loopback.probe(1, 2));
            loopback.endpoint.post_send(send.to_words());
            loopback.endpoint.post_list(probe.to_words());
            let event = loopback.endpoint.event();
            assert_eq!(event.cause, Cause::RingError.code());
            assert_eq!(event.info, u64::from(index) | bit);
            // The other ring of the endpoint has been fetched and answered, this one never is.
            let (answered, _) = loopback.status();
            assert_eq!(answered, if bit == 0 { 2 } else { 1 });
            loopback.endpoint.close();
            assert!(loopback.endpoint.poll().is_none(), "nothing was promised");
            other.assert_works();
        }
    });
}
