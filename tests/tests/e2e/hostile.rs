//! Frames that no sound card would send: each is counted for what it is, dropped, and costs nobody a message.

use abi::control::Counter;
use abi::wire::{
    FRAME_MAX, FRAME_REFUSED, FrameHeader, FrameType, HEADER_BYTES, MANAGEMENT_BYTES, TRAILER_BYTES,
};
use host_driver::{Cause, WcKind, WcStatus};
use posthorn_tests::cards::{Host, both_over, modelled_over};
use posthorn_tests::frames::{edit, number, seal};
use posthorn_tests::side::Side;
use posthorn_tests::wires::{Tally, Wires};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::fabric::{LinkFilter, Passing};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is wrong with a frame, and the counter that tells of it.
type Case = (&'static str, Counter, fn(&mut Passing));

const CASES: &[Case] = {
    use Counter::{CrcErrors, Duplicates, LengthErrors, PairErrors, TypeErrors};
    &[
        ("a payload bit", CrcErrors, |f| f.frame.bytes[80] ^= 1),
        ("a header bit", CrcErrors, |f| f.frame.bytes[50] ^= 0x80),
        ("a bit of the CRC", CrcErrors, |f| {
            let end = f.frame.bytes.len();
            f.frame.bytes[end - 8] ^= 4;
        }),
        ("the zeros behind the CRC", CrcErrors, |f| {
            let end = f.frame.bytes.len();
            f.frame.bytes[end - 1] = 1;
        }),
        ("bad to the MAC", CrcErrors, |f| f.frame.bad = true),
        ("one byte", LengthErrors, |f| f.frame.bytes.truncate(1)),
        ("half a header", LengthErrors, |f| {
            f.frame.bytes.truncate(40)
        }),
        ("a header alone", LengthErrors, |f| {
            f.frame.bytes.truncate(72)
        }),
        ("cut in a word", LengthErrors, |f| {
            let end = f.frame.bytes.len();
            f.frame.bytes.truncate(end - 3);
        }),
        ("a word short", LengthErrors, |f| {
            let end = f.frame.bytes.len();
            f.frame.bytes.truncate(end - 8);
            seal(f);
        }),
        ("a word long", LengthErrors, |f| {
            f.frame.bytes.extend([0; 8]);
            seal(f);
        }),
        ("a word longer than any", LengthErrors, |f| {
            f.frame.bytes.resize(FRAME_MAX + 8, 0);
            seal(f);
        }),
        ("a jumbo frame", LengthErrors, |f| {
            f.frame.bytes.resize(9000, 0x55)
        }),
        ("a length less than the frame", LengthErrors, |f| {
            edit(f, |h| (h.payload_length, h.message_length) = (3, 3));
        }),
        ("a length more than the frame", LengthErrors, |f| {
            edit(f, |h| (h.payload_length, h.message_length) = (300, 300));
        }),
        ("a length more than any", LengthErrors, |f| {
            edit(f, |h| {
                (h.payload_length, h.message_length) = (0xffff, 0xffff)
            });
        }),
        ("two lengths", LengthErrors, |f| {
            edit(f, |h| h.message_length += 1)
        }),
        ("a message of 2^32 and some", LengthErrors, |f| {
            edit(f, |h| h.message_length |= 1 << 32);
        }),
        ("EtherType of IPv4", TypeErrors, |f| {
            edit(f, |h| h.ethertype = 0x0008)
        }),
        ("version 1", TypeErrors, |f| edit(f, |h| h.version = 1)),
        ("the next version", TypeErrors, |f| {
            edit(f, |h| h.version += 1)
        }),
        ("a flag that there isn't", TypeErrors, |f| {
            edit(f, |h| h.flags |= 2)
        }),
        ("type 0x1f", TypeErrors, |f| {
            edit(f, |h| h.frame_type = 0x1f)
        }),
        ("type 0x21", TypeErrors, |f| {
            edit(f, |h| h.frame_type = 0x21)
        }),
        ("the answer of a get that there isn't", Duplicates, |f| {
            edit(f, |h| h.frame_type = FrameType::GetAnswer.code())
        }),
        ("a refusal with bytes", LengthErrors, |f| {
            edit(f, |h| {
                (h.frame_type, h.flags) = (FrameType::GetAnswer.code(), FRAME_REFUSED)
            })
        }),
        ("a get with bytes", LengthErrors, |f| {
            edit(f, |h| h.frame_type = FrameType::Get.code())
        }),
        ("pair 5", PairErrors, |f| {
            edit(f, |h| h.destination_pair = 5)
        }),
        ("pair 0xffff", PairErrors, |f| {
            edit(f, |h| h.destination_pair = 0xffff)
        }),
        ("another pair's source", PairErrors, |f| {
            edit(f, |h| h.source_pair ^= 1)
        }),
        ("endpoint 1", PairErrors, |f| {
            edit(f, |h| h.destination_endpoint = 1)
        }),
        ("from endpoint 1", PairErrors, |f| {
            edit(f, |h| h.source_endpoint = 1)
        }),
        ("an old epoch", PairErrors, |f| {
            edit(f, |h| h.destination_epoch ^= 1)
        }),
        ("from an old epoch", PairErrors, |f| {
            edit(f, |h| h.source_epoch ^= 1)
        }),
        ("a cookie but for a bit", PairErrors, |f| {
            edit(f, |h| h.cookie ^= 1 << 31)
        }),
    ]
};

const DROPS: [Counter; 5] = [
    Counter::CrcErrors,
    Counter::LengthErrors,
    Counter::TypeErrors,
    Counter::PairErrors,
    Counter::Duplicates,
];

#[test]
pub(crate) fn each_malformed_frame_is_counted_as_what_it_is_and_dropped() {
    // Before each message goes its malformed twin.
    let tap = || {
        |passing: Passing, out: &mut Vec<Passing>| {
            if let Some(number) = number(&passing)
                && let Some((_, _, spoil)) = CASES.get(number as usize)
            {
                let mut twin = passing.clone();
                spoil(&mut twin);
                out.push(twin);
            }
            out.push(passing);
        }
    };
    both_over(
        "tiny",
        2,
        101,
        || Wires::tapped(LinkFilter::between(0, 1), tap()),
        |host| {
            let mut me = Side::open(&host);
            let mut counts = DROPS.map(|_| 0);
            for (number, (what, counter, _)) in (0..).zip(CASES) {
                if me.rank() == 0 {
                    me.send(1, 7, number, 100);
                    assert_eq!(me.statuses(1), [(number, WcStatus::Success)], "{what}");
                } else {
                    me.receive(number, Some(0), 7, 100);
                    let received = me.completion();
                    me.assert_received(&received, 0, number, 100);
                    let at = DROPS.iter().position(|drop| drop == counter).unwrap();
                    counts[at] += 1;
                    assert_eq!(me.count(*counter), counts[at], "{what}");
                }
                me.meet();
            }
            if me.rank() == 1 {
                assert_eq!(DROPS.map(|counter| me.count(counter)), counts);
                assert_eq!(me.count(Counter::Gaps), 0);
                // Every frame that passed was one of ours.
                assert_eq!(me.count(Counter::FramesReceived), CASES.len() as u64);
            }
            me.meet();
            me.finish();
        },
    );
}

#[test]
fn noise_is_counted_frame_by_frame_and_messages_get_through_it() {
    let seed = 102;
    // Behind each message three frames of noise, one of them the message with a bit changed.
    let tap = || {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        move |passing: Passing, out: &mut Vec<Passing>| {
            if number(&passing).is_none() {
                out.push(passing);
                return;
            }
            let mut noise = passing.clone();
            for _ in 0..2 {
                let mut bytes = vec![0; rng.random_range(1..1500)];
                rng.fill(&mut bytes[..]);
                noise.frame.bytes = bytes;
                out.push(noise.clone());
            }
            let mut flipped = passing.clone();
            let bytes = &mut flipped.frame.bytes;
            let at = rng.random_range(12..bytes.len());
            bytes[at] ^= 1 << rng.random_range(0..8);
            out.extend([flipped, passing]);
        }
    };
    both_over(
        "tiny",
        2,
        seed,
        || Wires::tapped(LinkFilter::between(0, 1), tap()),
        |host| {
            let mut me = Side::open(&host);
            const MESSAGES: u64 = 40;
            if me.rank() == 0 {
                for number in 0..MESSAGES {
                    me.send(1, 7, number, (number as usize * 37) % 1025);
                    assert_eq!(me.statuses(1), [(number, WcStatus::Success)]);
                }
            } else {
                for number in 0..MESSAGES {
                    me.receive(number, Some(0), 7, 1024);
                    let received = me.completion();
                    me.assert_received(&received, 0, number, (number as usize * 37) % 1025);
                }
                let dropped: u64 = DROPS.iter().map(|&counter| me.count(counter)).sum();
                assert_eq!(dropped, 3 * MESSAGES, "each once, whatever it was");
            }
            me.meet();
            me.finish();
        },
    );
}

#[test]
pub(crate) fn a_repeated_message_is_delivered_once() {
    let tap = || {
        |passing: Passing, out: &mut Vec<Passing>| {
            let repeats = number(&passing).map_or(0, |number| number % 3);
            for _ in 0..repeats {
                out.push(passing.clone());
            }
            out.push(passing);
        }
    };
    both_over(
        "tiny",
        2,
        103,
        || Wires::tapped(LinkFilter::between(0, 1), tap()),
        |host| {
            let mut me = Side::open(&host);
            if me.rank() == 0 {
                for number in 0..8 {
                    me.send(1, 7, number, 30);
                    assert_eq!(me.statuses(1), [(number, WcStatus::Success)]);
                }
                me.meet();
            } else {
                me.meet();
                for number in 0..8 {
                    me.receive(number, Some(0), 7, 30);
                    let received = me.completion();
                    me.assert_received(&received, 0, number, 30);
                }
                assert_eq!(me.count(Counter::Duplicates), 7);
                me.endpoint.probe(1, &me.filter(None, 0, u64::MAX)).unwrap();
                assert_eq!(me.statuses(1), [(1, WcStatus::NoMessage)]);
            }
            me.finish();
        },
    );
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_fails_the_pair() {
    for lie in [0, 1] {
        let tap = || {
            let mut told = false;
            move |mut passing: Passing, out: &mut Vec<Passing>| {
                if !told && passing.frame.bytes.len() >= 80 {
                    told = true;
                    edit(&mut passing, |header| {
                        if lie == 0 {
                            header.acknowledge += 100;
                        } else {
                            header.credit += 100;
                        }
                    });
                }
                out.push(passing);
            }
        };
        both_over(
            "tiny",
            2,
            104,
            || Wires::tapped(LinkFilter::between(1, 0), tap()),
            |host| {
                let mut me = Side::open(&host);
                if me.rank() == 0 {
                    me.send(1, 7, 1, 8);
                    assert_eq!(me.statuses(1), [(1, WcStatus::LinkError)]);
                    me.pause(1000);
                    let events = me.events();
                    assert_eq!(events.len(), 1);
                    assert_eq!(events[0].cause, Cause::LinkError);
                }
                me.meet();
            },
        );
    }
}

/// Makes a frame that somebody sends who sees none, out of one that passes: he knows addresses and pairs, and guesses at cookies.
fn forge(rng: &mut ChaCha8Rng, passing: &Passing) -> Passing {
    let mut forged = passing.clone();
    let bytes = &mut forged.frame.bytes;
    match rng.random_range(0..6) {
        0 => {
            *bytes = vec![0; rng.random_range(1..1500)];
            rng.fill(&mut bytes[..]);
        }
        1 => {
            let at = rng.random_range(0..bytes.len());
            bytes[at] ^= 1 << rng.random_range(0..8);
        }
        2 => {
            // Another length than it says, and a CRC that is right for that.
            let length = rng.random_range(TRAILER_BYTES..FRAME_MAX + 64);
            if length == bytes.len() {
                bytes.push(0);
            }
            bytes.resize(length, 0x5a);
            forged_cookie(rng, &mut forged);
        }
        kind => {
            if kind == 3 {
                // For the firmware, with a body that says anything.
                bytes.resize(HEADER_BYTES + MANAGEMENT_BYTES + TRAILER_BYTES, 0);
                rng.fill(&mut bytes[HEADER_BYTES..]);
                let types = [FrameType::Handshake, FrameType::Management];
                let frame_type = types[rng.random_range(0..2)].code();
                let kind: u8 = rng.random_range(0..16);
                bytes[HEADER_BYTES] = kind;
                edit(&mut forged, |header| {
                    header.frame_type = frame_type;
                    header.flags = 0;
                    header.payload_length = MANAGEMENT_BYTES as u16;
                    header.message_length = MANAGEMENT_BYTES as u64;
                });
            }
            if kind == 4 {
                edit(&mut forged, |header| anything(rng, header));
            }
            forged_cookie(rng, &mut forged);
        }
    }
    forged
}

/// Another cookie than the right one, if the frame is long enough to have one.
fn forged_cookie(rng: &mut ChaCha8Rng, forged: &mut Passing) {
    if forged.frame.bytes.len() >= HEADER_BYTES + TRAILER_BYTES {
        let wrong = rng.random_range(1..=u32::MAX);
        edit(forged, |header| header.cookie ^= wrong);
    }
}

/// Changes a few fields of a header.
fn anything(rng: &mut ChaCha8Rng, header: &mut FrameHeader) {
    for _ in 0..rng.random_range(1..4) {
        match rng.random_range(0..10) {
            0 => header.version = rng.random(),
            1 => header.frame_type = rng.random(),
            2 => header.flags = rng.random(),
            3 => header.destination_pair = rng.random(),
            4 => header.source_endpoint = rng.random(),
            5 => header.sequence = rng.random(),
            6 => header.acknowledge = rng.random(),
            7 => header.credit = rng.random(),
            8 => header.payload_length = rng.random(),
            _ => header.message_length = rng.random(),
        }
    }
}

/// Frames of somebody hostile behind each message that goes for the first time, and their number. What is sent in answer to them, and what is sent again
/// because of them, draws no more.
fn flood(seed: u64, each: usize) -> (Wires, Arc<AtomicU64>) {
    let forged = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&forged);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut next = [0; 2];
    let tap = move |passing: Passing, out: &mut Vec<Passing>| {
        out.push(passing.clone());
        let next = &mut next[passing.source.min(1)];
        if number(&passing).is_some_and(|number| number >= *next) {
            *next += 1;
            out.extend((0..each).map(|_| forge(&mut rng, &passing)));
            count.fetch_add(each as u64, Ordering::Relaxed);
        }
    };
    (Wires::tapped(LinkFilter::ALL, tap), forged)
}

/// Messages of all lengths each way, each byte checked.
fn stream(host: Host, messages: u64) {
    let mut me = Side::open(&host);
    let peer = 1 - me.rank();
    let length = |number: u64| (number as usize * 37) % 1025;
    for number in 0..messages {
        me.receive(number, Some(peer), 7, 1024);
        me.send(peer, 7, number, length(number));
        let mut received = false;
        for _ in 0..2 {
            let ended = me.completion();
            assert_eq!((ended.wr_id, ended.status), (number, WcStatus::Success));
            if ended.kind == WcKind::Receive {
                me.assert_received(&ended, peer, number, length(number));
                received = true;
            }
        }
        assert!(received, "message {number}");
        me.discard_receives();
    }
    me.meet();
    let wrong = Counter::PairErrors;
    assert!(me.count(wrong) > messages, "forged cookies are counted");
    assert_eq!(me.events(), [], "nobody is told of anything");
    me.finish();
}

#[test]
fn forged_frames_land_nowhere_and_a_stream_beside_them_stays_whole() {
    let forged = Tally::default();
    let wires = || {
        let (wires, count) = flood(105, 10);
        forged.keep(count);
        wires
    };
    both_over("tiny", 2, 105, wires, |host| stream(host, 20));
    for count in forged.counts() {
        assert_eq!(count, 400);
    }
}

/// So many forged frames on cards of the model, beside a stream.
fn forge_many(seed: u64, least: u64) {
    let (wires, forged) = flood(seed, 1_000);
    let messages = least / 2_000;
    modelled_over("tiny", 2, seed, wires, |host| stream(host, messages));
    let forged = forged.load(Ordering::Relaxed);
    assert!(forged >= least, "{forged} forged frames");
}

#[test]
fn a_hundred_thousand_forged_frames_land_nowhere() {
    forge_many(106, 100_000);
}

#[test]
#[ignore = "minutes of simulation: `cargo xtask test --long`"]
fn ten_million_forged_frames_land_nowhere() {
    for seed in 0..100 {
        forge_many(1000 + seed, 100_000);
    }
}
