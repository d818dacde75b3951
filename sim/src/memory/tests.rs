//! Host memory against a randomised AXI4 manager, and against managers that break a rule each.

use std::collections::VecDeque;
use std::ptr::NonNull;

use rand::Rng;

use super::*;
use crate::pins::{RESP_DECERR, RESP_OKAY, WriteBeat};
use crate::seed::generator;

#[derive(Clone)]
#[repr(align(4096))]
struct Page([u8; 4096]);

/// Bytes that start on a page.
struct Buffer(Vec<Page>);

impl Buffer {
    fn new(len: usize) -> Self {
        Self(vec![Page([0; 4096]); len.div_ceil(4096)])
    }

    fn start(&mut self) -> NonNull<u8> {
        NonNull::new(self.0.as_mut_ptr().cast()).unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|page| page.0).collect()
    }
}

fn address(addr: u64, beats: u64) -> AddressBeat {
    AddressBeat {
        valid: true,
        id: 5,
        addr,
        len: (beats - 1) as u8,
        size: BEAT_SIZE,
        burst: 1,
        ..AddressBeat::default()
    }
}

/// A manager that keeps offering bursts and checks the answers.
#[derive(Default)]
struct Manager {
    out: Outputs,
    addresses: VecDeque<AddressBeat>,
    write_addresses: VecDeque<AddressBeat>,
    data: VecDeque<WriteBeat>,
    /// Expected data and response, `last`.
    reads: VecDeque<(u64, u8, bool)>,
    responses: VecDeque<u8>,
}

impl Manager {
    /// Runs until everything is answered; returns the cycles it took.
    fn run(&mut self, memory: &mut Memory, rng: &mut impl Rng, note: &str) -> u64 {
        let mut inputs = Inputs::default();
        for cycle in 0..1_000_000 {
            if self.reads.is_empty() && self.responses.is_empty() {
                assert!(memory.is_idle(), "{note}");
                return cycle;
            }
            if !self.out.ar.valid && rng.random_bool(0.7) {
                self.out.ar = self.addresses.pop_front().unwrap_or_default();
            }
            if !self.out.aw.valid && rng.random_bool(0.7) {
                self.out.aw = self.write_addresses.pop_front().unwrap_or_default();
            }
            if !self.out.w.valid && rng.random_bool(0.7) {
                self.out.w = self.data.pop_front().unwrap_or_default();
            }
            self.out.r_ready = rng.random_bool(0.7);
            self.out.b_ready = rng.random_bool(0.7);
            memory.drive(cycle, true, &mut inputs);
            memory.sample(cycle, &inputs, &self.out).unwrap();
            if inputs.ar_ready {
                self.out.ar.valid = false;
            }
            if inputs.aw_ready {
                self.out.aw.valid = false;
            }
            if inputs.w_ready {
                self.out.w.valid = false;
            }
            if inputs.r.valid && self.out.r_ready {
                let got = (inputs.r.data, inputs.r.resp, inputs.r.last);
                assert_eq!(Some(got), self.reads.pop_front(), "{note} cycle {cycle}");
                assert_eq!(inputs.r.id, 5);
            }
            if inputs.b.valid && self.out.b_ready {
                assert_eq!(Some(inputs.b.resp), self.responses.pop_front(), "{note}");
            }
        }
        panic!("{note}: the memory never answered");
    }
}

/// A burst inside `0..len` that doesn't cross 4 KiB.
fn burst(rng: &mut impl Rng, len: u64) -> (u64, u64) {
    let first = rng.random_range(0..len / 8);
    let room = (512 - first % 512).min(len / 8 - first).min(32);
    (8 * first, rng.random_range(1..=room))
}

#[test]
fn bursts_of_every_kind_read_and_write_what_they_should() {
    const LEN: usize = 16384;
    for seed in 0..30 {
        let note = format!("seed {seed}");
        let mut rng = generator(seed, 0, "test");
        let config = MemoryConfig {
            latency: rng.random_range(1..40),
            outstanding: rng.random_range(1..8),
            pressure: if seed % 3 == 0 {
                BackPressure::NONE
            } else {
                BackPressure::SOME
            },
        };
        let mut memory = Memory::new(config, seed, 0);
        let mut buffer = Buffer::new(LEN);
        // SAFETY: `buffer` outlives `memory`'s last cycle.
        let card = unsafe { memory.map(buffer.start(), LEN) }.unwrap();
        let mut shadow = vec![0; LEN];
        let mut manager = Manager::default();
        for _ in 0..100 {
            let (at, beats) = burst(&mut rng, LEN as u64);
            // An unaligned start leaves out the strobes below it.
            let skip = rng.random_range(0..8);
            manager
                .write_addresses
                .push_back(address(card + at + skip, beats));
            manager.responses.push_back(RESP_OKAY);
            for k in 0..beats {
                let mut beat = WriteBeat {
                    valid: true,
                    data: rng.random(),
                    strb: if rng.random_bool(0.7) {
                        0xff
                    } else {
                        rng.random()
                    },
                    last: k + 1 == beats,
                };
                if k == 0 {
                    beat.strb &= 0xff << skip;
                }
                for (lane, byte) in beat.data.to_le_bytes().into_iter().enumerate() {
                    if beat.strb & (1 << lane) != 0 {
                        shadow[(at + 8 * k) as usize + lane] = byte;
                    }
                }
                manager.data.push_back(beat);
            }
        }
        manager.run(&mut memory, &mut rng, &note);
        assert_eq!(buffer.bytes()[..LEN], shadow, "{note}");
        for _ in 0..100 {
            let (at, beats) = burst(&mut rng, LEN as u64);
            manager.addresses.push_back(address(card + at, beats));
            for k in 0..beats {
                let at = (at + 8 * k) as usize;
                let word = u64::from_le_bytes(shadow[at..at + 8].try_into().unwrap());
                manager.reads.push_back((word, RESP_OKAY, k + 1 == beats));
            }
        }
        manager.run(&mut memory, &mut rng, &note);
        assert_eq!(memory.count().unmapped, 0);
        assert_eq!((memory.count().reads, memory.count().writes), (100, 100));
    }
}

#[test]
fn what_is_not_mapped_is_answered_with_an_error_and_not_touched() {
    let mut rng = generator(1, 0, "test");
    let mut memory = Memory::new(MemoryConfig::default(), 1, 0);
    let mut buffer = Buffer::new(64);
    // SAFETY: `buffer` outlives `memory`'s last cycle.
    let card = unsafe { memory.map(buffer.start(), 20) }.unwrap();
    let mut manager = Manager::default();
    for addr in [0, 8, card - 8, u64::MAX - 7, 0x7fff_ffff_f000] {
        manager.addresses.push_back(address(addr, 1));
        manager.reads.push_back((0, RESP_DECERR, true));
    }
    // Four beats, of which the first three are mapped at least in part.
    manager.addresses.push_back(address(card, 4));
    for k in 0..4 {
        let resp = if k < 3 { RESP_OKAY } else { RESP_DECERR };
        manager.reads.push_back((0, resp, k == 3));
    }
    for (addr, strb) in [(card + 16, 0x1f), (card + 24, 0x01), (0, 0xff)] {
        manager.write_addresses.push_back(address(addr, 1));
        manager.responses.push_back(RESP_DECERR);
        manager.data.push_back(WriteBeat {
            valid: true,
            data: !0,
            strb,
            last: true,
        });
    }
    manager.run(&mut memory, &mut rng, "unmapped");
    assert!(buffer.bytes()[..64].iter().all(|&byte| byte == 0));
    assert_eq!(memory.count().unmapped, 9);
}

#[test]
fn latency_is_what_was_set_and_beats_follow_each_other() {
    for latency in [1, 32, 100] {
        let config = MemoryConfig {
            latency,
            ..MemoryConfig::default()
        };
        let mut memory = Memory::new(config, 0, 0);
        let mut inputs = Inputs::default();
        let mut out = Outputs {
            ar: address(0x1000, 4),
            aw: address(0x1000, 1),
            w: WriteBeat {
                valid: true,
                data: 0,
                strb: 1,
                last: true,
            },
            r_ready: true,
            b_ready: true,
            ..Outputs::default()
        };
        let (mut read, mut written) = (Vec::new(), Vec::new());
        for cycle in 0..200 {
            memory.drive(cycle, true, &mut inputs);
            memory.sample(cycle, &inputs, &out).unwrap();
            (out.ar.valid, out.aw.valid, out.w.valid) = (false, false, false);
            read.extend(inputs.r.valid.then_some(cycle));
            written.extend(inputs.b.valid.then_some(cycle));
        }
        let latency = u64::from(latency);
        assert_eq!(read, (latency..latency + 4).collect::<Vec<_>>());
        assert_eq!(written, [latency]);
    }
}

/// What a memory without back-pressure says of a sequence of outputs.
fn violation(cycles: &[Outputs]) -> Option<Violation> {
    let mut memory = Memory::new(MemoryConfig::default(), 0, 0);
    let mut inputs = Inputs::default();
    cycles.iter().zip(0..).find_map(|(out, cycle)| {
        memory.drive(cycle, true, &mut inputs);
        memory.sample(cycle, &inputs, out).err()
    })
}

#[test]
fn every_rule_can_be_broken() {
    let ar = |beat| {
        violation(&[Outputs {
            ar: beat,
            ..Outputs::default()
        }])
    };
    assert_eq!(ar(address(0x1ff8, 1)), None);
    assert_eq!(
        ar(address(0x1ff8, 2)),
        Some(Violation::Crosses {
            channel: Channel::ReadAddress,
            addr: 0x1ff8,
            beats: 2
        })
    );
    assert_eq!(
        ar(AddressBeat {
            size: 2,
            ..address(0, 1)
        }),
        Some(Violation::Shape {
            channel: Channel::ReadAddress,
            burst: 1,
            size: 2
        })
    );
    assert_eq!(
        ar(AddressBeat {
            lock: true,
            ..address(0, 1)
        }),
        Some(Violation::Exclusive(Channel::ReadAddress))
    );
    let write = |aw, beats: &[(u8, bool)]| {
        let cycles: Vec<_> = beats
            .iter()
            .enumerate()
            .map(|(k, &(strb, last))| Outputs {
                aw: if k == 0 { aw } else { AddressBeat::default() },
                w: WriteBeat {
                    valid: true,
                    data: 0,
                    strb,
                    last,
                },
                ..Outputs::default()
            })
            .collect();
        violation(&cycles)
    };
    let wrong = |last, beat| {
        Some(Violation::WrongLast {
            last,
            beat,
            beats: 2,
            addr: 0x1000,
        })
    };
    assert_eq!(
        write(address(0x1000, 2), &[(0xff, false), (0xff, true)]),
        None
    );
    assert_eq!(write(address(0x1000, 2), &[(0xff, true)]), wrong(true, 1));
    assert_eq!(
        write(address(0x1000, 2), &[(0xff, false), (0xff, false)]),
        wrong(false, 2)
    );
    assert_eq!(
        write(address(0x1003, 1), &[(0xfc, true)]),
        Some(Violation::StrobeBelow {
            strb: 0xfc,
            addr: 0x1003
        })
    );
    assert_eq!(write(address(0x1003, 1), &[(0xf8, true)]), None);
    assert_eq!(
        write(address(0x1ff1, 3), &[(0, false)]),
        Some(Violation::Crosses {
            channel: Channel::WriteAddress,
            addr: 0x1ff1,
            beats: 3
        })
    );
}
