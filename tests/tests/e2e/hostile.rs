//! Frames that no sound card would send: each is counted for what it is, dropped, and costs nobody a message.

use abi::control::Counter;
use abi::wire::FRAME_MAX;
use host_driver::{Cause, WcStatus};
use posthorn_tests::cards::both_over;
use posthorn_tests::frames::{edit, number, seal};
use posthorn_tests::side::Side;
use posthorn_tests::wires::Wires;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::fabric::{LinkFilter, Passing};

/// What is wrong with a frame, and the counter that tells of it.
type Case = (&'static str, Counter, fn(&mut Passing));

const CASES: &[Case] = {
    use Counter::{CrcErrors, LengthErrors, PairErrors, TypeErrors};
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
        ("type 0x11", TypeErrors, |f| {
            edit(f, |h| h.frame_type = 0x11)
        }),
        ("type 0x20", TypeErrors, |f| {
            edit(f, |h| h.frame_type = 0x20)
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
