//! What is around the cards, with cards in plain Rust: the clock, the hosts, the network, and what is
//! done when something goes wrong.

mod support;

#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use abi::mgmt::MEMORY_BASE;
use abi::register::{CONTROL_RUN, ID, MAGIC, MAILBOX_RESULT};
use host_driver::transport::{Line, PauseResult, Transport, TransportError, Watch};
use rand::Rng;
use sim::fabric::{Link, LinkFilter, Passing};
use sim::fault::{FaultPlan, Faults, LinkFault, process};
use sim::log::LogDecoder;
use sim::memory::MemoryConfig;
use sim::pins::CardModel;
use sim::protocol::Violation;
use sim::seed::{BackPressure, generator};
use sim::timing::Moment;
use sim::{CardFault, Cluster, Costs, Error, Firmware, Host, Report, fabric};
use support::elf::{Elf, LogMessage};
use support::port::{HEADER, Pages, Port};
use support::{Bug, Seen, StandIn};

/// Cards of which `card` has a bug.
fn cluster_with(card: usize, bug: Bug) -> (Cluster, Arc<Mutex<Seen>>) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let shown = Arc::clone(&seen);
    let cluster = Cluster::of(move |number, _, _| {
        let bug = if number == card { bug } else { Bug::None };
        let seen = if number == card {
            Arc::clone(&shown)
        } else {
            Arc::default()
        };
        Ok(Box::new(StandIn::new(bug, seen)) as Box<dyn CardModel>)
    });
    (cluster, seen)
}

fn cluster() -> Cluster {
    cluster_with(0, Bug::None).0
}

/// What `source` sends to `destination` as message `k`.
fn payload(source: usize, destination: usize, k: usize) -> Vec<u8> {
    let mut rng = generator(k as u64, source << 8 | destination, "payload");
    let len = rng.random_range(8..1200);
    let mut bytes: Vec<u8> = (0..len).map(|_| rng.random()).collect();
    bytes[0] = k as u8;
    bytes
}

/// Everybody sends `COUNT` messages to everybody else and checks what comes. Returns the cycle of each
/// arrival.
const COUNT: usize = 6;

fn all_to_all(host: &Host) -> Result<Vec<u64>, TransportError> {
    let (me, cards) = (host.card(), host.cards());
    let mut port = Port::open(host)?;
    host.all_gather(Vec::new())?;
    let mut next = vec![0; cards];
    let mut arrivals = Vec::new();
    for k in 0..COUNT {
        for other in (0..cards).filter(|&other| other != me) {
            port.send(other, &payload(me, other, k))?;
        }
        for _ in 1..cards {
            let frame = port.receive()?;
            arrivals.push(port.transport.now());
            let mut mac = [0; 8];
            mac[..6].copy_from_slice(&frame[6..12]);
            let source = fabric::card_of(u64::from_le_bytes(mac)).expect("a card sent it");
            assert_eq!(frame[HEADER..], payload(source, me, next[source]));
            next[source] += 1;
        }
        // At most 16 may be on their way, so all wait for all.
        host.all_gather(Vec::new())?;
    }
    Ok(arrivals)
}

fn checked(outcome: sim::Outcome<Result<Vec<u64>, TransportError>>) -> (Vec<Vec<u64>>, Report) {
    let report = outcome.report.clone();
    let hosts = outcome.hosts().unwrap_or_else(|error| panic!("{error}"));
    let hosts = hosts.into_iter().collect::<Result<_, _>>();
    (hosts.expect("the simulation was whole"), report)
}

#[test]
fn every_frame_arrives_whole_and_in_order_whatever_the_pressure() {
    for seed in 0..6 {
        let pressure = if seed == 0 {
            BackPressure::NONE
        } else {
            BackPressure::SOME
        };
        let outcome = cluster()
            .cards(4)
            .seed(seed)
            .pressure(pressure)
            .run(|host| all_to_all(&host));
        let (hosts, report) = checked(outcome);
        let each = 3 * COUNT;
        assert!(hosts.iter().all(|host| host.len() == each), "seed {seed}");
        assert_eq!(report.fabric.delivered as usize, 4 * each);
        for card in &report.cards {
            assert_eq!(card.frames_sent as usize, each);
            assert_eq!(card.frames_taken as usize, each);
            assert_eq!(card.memory.unmapped, 0);
            assert_eq!(card.matching.posted[0].count as usize, each);
            assert!(card.cpu > Duration::ZERO);
        }
    }
}

#[test]
fn nothing_but_the_seed_changes_a_cycle() {
    let run = |seed, threads, dawdle: bool| {
        let outcome = cluster()
            .cards(5)
            .seed(seed)
            .threads(threads)
            .pressure(BackPressure::SOME)
            .link(Link {
                latency: 40,
                bandwidth: 3,
            })
            .link_between(
                1,
                2,
                Link {
                    latency: 77,
                    bandwidth: 8,
                },
            )
            .moments()
            .run(|host| {
                if dawdle {
                    // Threads start in another order, and are slow at odd times.
                    let wait = (host.cards() - host.card()) as u64;
                    std::thread::sleep(Duration::from_millis(3 * wait));
                }
                let arrivals = all_to_all(&host)?;
                if dawdle && host.card() == 0 {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Ok(arrivals)
            });
        let (hosts, report) = checked(outcome);
        let moments = report.cards.into_iter().map(|card| card.moments);
        (report.cycles, hosts, moments.collect::<Vec<_>>())
    };
    let one = run(3, 1, false);
    assert!(one.2.iter().all(|moments| moments.len() > 500));
    for (threads, dawdle) in [(1, true), (2, false), (2, true), (5, true), (16, false)] {
        assert!(run(3, threads, dawdle) == one, "{threads} threads");
    }
    assert_ne!(run(4, 2, false).1, one.1);
}

#[test]
fn a_pause_ends_at_its_deadline_to_the_cycle() {
    let outcome = cluster().cards(2).run(|host| {
        let transport = host.transport();
        // Deadlines on, before and behind the end of a window.
        for wait in [1, 2, 124, 125, 126, 1000, 1, 7] {
            let deadline = transport.now() + wait;
            assert_eq!(transport.pause(&[], deadline), PauseResult::Deadline);
            assert_eq!(transport.now(), deadline);
        }
        let now = transport.now();
        assert_eq!(transport.pause(&[], now), PauseResult::Deadline);
        assert_eq!(transport.pause(&[], 0), PauseResult::Deadline);
        assert_eq!(transport.now(), now, "no time");
    });
    outcome.hosts().unwrap();
}

#[test]
fn calls_cost_what_is_said() {
    let cycles = |costs| {
        let outcome = cluster().costs(costs).run(|host| {
            let transport = host.transport();
            let time = |call: &dyn Fn()| {
                let start = transport.now();
                call();
                transport.now() - start
            };
            // SAFETY: nobody has opened the card, and these registers move nothing.
            let read = time(&|| assert_eq!(unsafe { transport.read_register(ID) }, Ok(MAGIC)));
            // SAFETY: as above.
            let write = time(&|| unsafe { transport.write_register(MAILBOX_RESULT, 1) }.unwrap());
            // SAFETY: as above.
            let doorbell = time(&|| unsafe { transport.doorbell(MAILBOX_RESULT, 2) }.unwrap());
            assert_eq!(doorbell, 0, "a posted write");
            let pages = Pages::new(4096);
            // SAFETY: unmapped below.
            let map = || unsafe { transport.map(pages.start(), 4096) }.unwrap();
            let address = AtomicU64::new(0);
            let map = time(&|| address.store(map(), Ordering::Relaxed));
            let address = || address.load(Ordering::Relaxed);
            // SAFETY: mapped above.
            let unmap = time(&|| unsafe { transport.unmap(address()) }.unwrap());
            [read, write, map, unmap]
        });
        outcome.hosts().unwrap()[0]
    };
    let bus = cycles(Costs::NONE);
    assert_eq!(bus[2..], [0, 0]);
    assert!(bus[0] >= 2 && bus[1] >= 2, "{bus:?}");
    let Costs {
        read,
        write,
        map,
        unmap,
    } = Costs::PCIE;
    let expected = [bus[0] + 2 * read, bus[1] + write, map, unmap];
    assert_eq!(cycles(Costs::PCIE), expected);
}

#[test]
fn a_doorbell_is_posted_and_taken_before_every_access_behind_it() {
    let outcome = cluster().moments().run(|host| {
        let transport = host.transport();
        let start = transport.now();
        for value in 1..=3 {
            // SAFETY: nobody has opened the card, and this register moves nothing.
            unsafe { transport.doorbell(MAILBOX_RESULT, value) }.unwrap();
        }
        assert_eq!(transport.now(), start, "nobody waits for it");
        let other = host.spawn(|host| {
            // SAFETY: as above.
            unsafe { host.transport().read_register(MAILBOX_RESULT) }
        });
        // SAFETY: as above.
        let read = || unsafe { transport.read_register(MAILBOX_RESULT) };
        assert_eq!(read(), Ok(3));
        assert_eq!(
            other.join(),
            Ok(Ok(3)),
            "another thread's access is behind it too"
        );
        // SAFETY: as above; the stand-in refuses the write.
        assert_eq!(
            unsafe { transport.doorbell(ID, 0) },
            Ok(()),
            "an error stays untold"
        );
        // SAFETY: as above; there is no such register.
        let misaligned = unsafe { transport.doorbell(2, 0) };
        assert_eq!(misaligned, Err(TransportError::NoRegister(2)));
        assert_eq!(read(), Ok(3));
        start
    });
    let moments = outcome.report.cards[0].moments.clone();
    let start = outcome.hosts().unwrap()[0];
    let writes: Vec<_> = moments
        .iter()
        .filter_map(|record| match record.moment {
            Moment::RegisterWrite { offset, value } if offset == MAILBOX_RESULT => {
                Some((record.cycle, value))
            }
            _ => None,
        })
        .collect();
    assert!(writes[0].0 >= start + Costs::PCIE.write, "{writes:?}");
    assert_eq!(
        writes.iter().map(|write| write.1).collect::<Vec<_>>(),
        [1, 2, 3]
    );
}

#[test]
fn an_interrupt_that_came_before_the_pause_is_not_lost() {
    let outcome = cluster().cards(2).run(|host| {
        let mut port = Port::open(&host)?;
        host.all_gather(Vec::new())?;
        if host.card() == 1 {
            port.send(0, &[1; 64])?;
            return host.all_gather(Vec::new()).map(drop);
        }
        let line = Line::Endpoint(0);
        let watch = Watch {
            line,
            seen: port.transport.interrupts(line),
        };
        let late = port.transport.now() + 10_000;
        assert_eq!(port.transport.pause(&[], late), PauseResult::Deadline);
        // Of those watched the first that has risen is told.
        let other = Watch {
            line: Line::Endpoint(9),
            seen: 0,
        };
        let result = port.transport.pause(&[other, watch], u64::MAX);
        assert_eq!(result, PauseResult::Interrupt(line));
        assert_eq!(port.transport.now(), late);
        assert_eq!(port.transport.interrupts(line), watch.seen + 1);
        host.all_gather(Vec::new()).map(drop)
    });
    outcome
        .hosts()
        .unwrap()
        .into_iter()
        .for_each(Result::unwrap);
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_and_the_end_make_the_event_descriptor_of_the_line_readable() {
    use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
    let readable = |event: &OwnedFd| {
        let mut fds = [PollFd::new(event, PollFlags::IN)];
        let now = Timespec::default();
        poll(&mut fds, Some(&now)).unwrap() == 1
    };
    let outcome = cluster().cards(2).run(|host| {
        let mut port = Port::open(&host)?;
        let event = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let signalled = event.try_clone().unwrap();
        let line = Line::Endpoint(0);
        port.transport.set_event_fd(line, Some(signalled))?;
        host.all_gather(Vec::new())?;
        if host.card() == 1 {
            port.send(0, &[1; 64])?;
            host.all_gather(Vec::new())?;
            assert!(!readable(&event), "the other card's");
            return Ok(event);
        }
        assert!(!readable(&event));
        let late = port.transport.now() + 10_000;
        assert_eq!(port.transport.pause(&[], late), PauseResult::Deadline);
        assert!(readable(&event));
        port.transport.set_event_fd(line, None)?;
        host.all_gather(Vec::new())?;
        let mut count = [0; 8];
        rustix::io::read(&event, &mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 1);
        Ok::<_, TransportError>(event)
    });
    let events: Vec<_> = outcome
        .hosts()
        .unwrap()
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let after_the_end: Vec<_> = events.iter().map(readable).collect();
    assert_eq!(
        after_the_end,
        [false, true],
        "card 0's was taken from its line"
    );
}

#[test]
fn register_errors_are_told() {
    let outcome = cluster().run(|host| {
        let transport = host.transport();
        for offset in [1, 2, 7, 1 << 20, u32::MAX - 3] {
            let none = Err(TransportError::NoRegister(offset));
            // SAFETY: nobody has opened the card.
            assert_eq!(unsafe { transport.read_register(offset) }, none);
        }
        let bus = Err(TransportError::Bus(ID));
        // SAFETY: as above.
        assert_eq!(unsafe { transport.write_register(ID, 1) }, bus);
        let none = Err(TransportError::NotMapped(4096));
        // SAFETY: nothing is mapped.
        assert_eq!(unsafe { transport.unmap(4096) }, none);
    });
    outcome.hosts().unwrap();
}

#[test]
fn threads_of_one_card_take_turns_by_number() {
    let run = |threads| {
        let order = Arc::new(Mutex::new(Vec::new()));
        let outcome = cluster().cards(2).threads(threads).run(|host| {
            let children: Vec<_> = (0..4)
                .map(|child| {
                    let order = Arc::clone(&order);
                    host.spawn(move |host| {
                        let transport = host.transport();
                        for round in 0..50_u64 {
                            // Some wait as long as others, and some use the bus.
                            let wait = 10 + round * (child % 2) + round % 3;
                            if (round + child).is_multiple_of(7) {
                                // SAFETY: nobody has opened the card.
                                unsafe { transport.read_register(ID) }.unwrap();
                            }
                            let deadline = transport.now() + wait;
                            assert_eq!(transport.pause(&[], deadline), PauseResult::Deadline);
                            if host.card() == 0 {
                                order.lock().unwrap().push((transport.now(), child));
                            }
                        }
                        child
                    })
                })
                .collect();
            let sum: u64 = children.into_iter().map(|c| c.join().unwrap()).sum();
            assert_eq!(sum, 6);
        });
        outcome.hosts().unwrap();
        Arc::into_inner(order).unwrap().into_inner().unwrap()
    };
    let one = run(1);
    assert_eq!(one.len(), 200);
    assert!(one.is_sorted(), "by cycle, then by number");
    assert_eq!(run(2), one);
    assert_eq!(run(2), one);
}

#[test]
fn a_thread_that_its_host_does_not_wait_for_runs_to_its_end() {
    let outcome = cluster().cards(2).run(|host| {
        let done = Arc::new(AtomicU64::new(0));
        let shown = Arc::clone(&done);
        drop(host.spawn(move |host| {
            let transport = host.transport();
            assert_eq!(transport.pause(&[], 20_000), PauseResult::Deadline);
            shown.store(transport.now(), Ordering::Relaxed);
        }));
        done
    });
    assert!(outcome.report.cycles >= 20_000);
    for done in outcome.hosts().unwrap() {
        assert_eq!(done.load(Ordering::Relaxed), 20_000);
    }
}

#[test]
fn all_gather_gives_everybody_what_everybody_gave() {
    let outcome = cluster().cards(3).run(|host| {
        for round in 0..5 {
            let late = host.transport().now() + 100 * host.card() as u64;
            assert_eq!(host.transport().pause(&[], late), PauseResult::Deadline);
            let all = host.all_gather(vec![host.card() as u8, round]).unwrap();
            assert_eq!(*all, [[0, round], [1, round], [2, round]]);
        }
        host.transport().now()
    });
    let ends = outcome.hosts().unwrap();
    assert!(ends.iter().all(|&end| end == ends[0]), "{ends:?}");
}

#[test]
fn a_card_reaches_only_what_is_mapped() {
    let (cluster, seen) = cluster_with(0, Bug::None);
    let outcome = cluster.cards(2).run(|host| {
        let mut port = Port::open(&host)?;
        let secret = Pages::new(4096);
        secret.write(0, &[0x5e; 512]);
        // SAFETY: unmapped before it is freed.
        let address = unsafe { port.transport.map(secret.start(), 4096) }?;
        // SAFETY: mapped above.
        unsafe { port.transport.unmap(address) }?;
        host.all_gather(Vec::new())?;
        if host.card() == 0 {
            port.send_from(address, 64, 1)?;
            // The address of a pointer of this process is no address of the card.
            port.send_from(secret.start().addr().get() as u64, 64, 1)?;
            port.send_from(8, 64, 1)?;
            assert_eq!(port.transport.pause(&[], 20_000), PauseResult::Deadline);
            return Ok(());
        }
        for _ in 0..3 {
            assert_eq!(port.receive()?[HEADER..], [0; 64]);
        }
        Ok::<_, TransportError>(())
    });
    assert_eq!(outcome.report.cards[0].memory.unmapped, 3);
    outcome
        .hosts()
        .unwrap()
        .into_iter()
        .for_each(Result::unwrap);
    assert_eq!(seen.lock().unwrap().errors, 3 * 8);
}

#[test]
fn the_firmware_is_loaded_before_the_host_starts() {
    let (cluster, seen) = cluster_with(1, Bug::None);
    let image: Vec<u8> = (0..=100).collect();
    let elf = Elf {
        image: image.clone(),
        ..Elf::default()
    };
    let firmware = Firmware::parse(elf.build()).unwrap();
    let outcome = cluster
        .cards(2)
        .firmware(firmware)
        .run(|host| host.transport().now());
    let starts = outcome.hosts().unwrap();
    assert_eq!(starts[0], starts[1], "all start in the same cycle");
    let seen = seen.lock().unwrap();
    assert_eq!(seen.control, [0, CONTROL_RUN]);
    for (k, chunk) in image.chunks(4).enumerate() {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        let loaded = seen.loaded.get(&(MEMORY_BASE + 0x80 + 4 * k as u32));
        assert_eq!(loaded, Some(&u32::from_le_bytes(word)));
    }
    assert_eq!(seen.loaded.len(), image.len().div_ceil(4));
}

#[test]
fn without_firmware_the_processor_is_left_alone() {
    let (cluster, seen) = cluster_with(0, Bug::None);
    cluster.run(|_| ()).hosts().unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.control.is_empty() && seen.loaded.is_empty());
}

#[test]
fn a_card_that_is_never_ready_is_an_error() {
    let (cluster, _) = cluster_with(1, Bug::NeverReady);
    let outcome = cluster.cards(2).seed(9).run(|_| ());
    assert_eq!(outcome.hosts, [None, None], "no host has started");
    let error = outcome.error.unwrap();
    assert!(
        matches!(
            error,
            Error::Boot {
                card: 1,
                seed: 9,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("not ready"), "{error}");
}

/// Hosts that wait for frames which never come, so that they end when the simulation does.
fn wait(host: &Host) -> Result<Vec<u64>, TransportError> {
    Port::open(host)?.receive().map(|_| Vec::new())
}

/// The error of a run in which one card has a bug; every host ends all the same.
fn error_of(card: usize, bug: Bug, host: fn(&Host) -> Result<Vec<u64>, TransportError>) -> Error {
    let mut errors = Vec::new();
    for threads in [1, 2] {
        let (cluster, _) = cluster_with(card, bug);
        let outcome = cluster.cards(3).seed(5).threads(threads).run(|h| host(&h));
        let closed = Some(Err(TransportError::Closed));
        // The host that ran a card which panicked has no result.
        let ended = |host: &Option<_>| *host == closed || host.is_none();
        assert!(outcome.hosts.iter().all(ended), "{:?}", outcome.hosts);
        errors.push(outcome.error.expect("it failed"));
    }
    assert_eq!(errors[0].to_string(), errors[1].to_string());
    errors.remove(0)
}

#[test]
fn a_failed_assertion_is_told_with_seed_and_cycle() {
    let error = error_of(1, Bug::Assertion(1234), wait);
    let expected = Error::Card {
        seed: 5,
        cycle: 1234,
        card: 1,
        fault: CardFault::Assertion("never say never".into()),
    };
    assert_eq!(error.to_string(), expected.to_string());
    assert_eq!(
        error.to_string(),
        "seed 5, cycle 1234, card 1: an assertion failed: never say never"
    );
}

#[test]
fn a_broken_rule_of_the_bus_is_told() {
    let error = error_of(2, Bug::WrongLast, all_to_all);
    let Error::Card {
        card: 2,
        fault: CardFault::Protocol(Violation::WrongLast { beat: 1, .. }),
        ..
    } = error
    else {
        panic!("{error}");
    };
}

#[test]
fn a_panic_in_a_card_does_not_hang_the_others() {
    let error = error_of(0, Bug::Panic(2000), wait);
    assert!(error.to_string().contains("the card's own bug"), "{error}");
}

#[test]
fn a_panic_in_a_host_ends_the_simulation() {
    for threads in [1, 2] {
        for in_child in [false, true] {
            let outcome = cluster().cards(3).seed(8).threads(threads).run(|host| {
                let crash = |host: Host| {
                    let _ = host.transport().pause(&[], 5000);
                    assert!(host.card() != 1, "out of luck");
                };
                if in_child {
                    let child = host.spawn(crash);
                    let joined = child.join();
                    assert_eq!(joined.is_err(), host.card() == 1);
                } else {
                    crash(host.clone());
                }
                wait(&host)
            });
            let error = outcome.error.unwrap();
            let Error::HostPanic {
                seed: 8,
                cycle: 5000,
                card: 1,
                message,
            } = &error
            else {
                panic!("{error}");
            };
            assert_eq!(message, "out of luck");
            let closed = Some(Err(TransportError::Closed));
            assert_eq!([&outcome.hosts[0], &outcome.hosts[2]], [&closed; 2]);
        }
    }
}

#[test]
fn hosts_that_wait_for_ever_are_an_error() {
    let outcome = cluster().cards(2).seed(2).quiet_limit(3000).run(|host| {
        if host.card() == 0 {
            return Ok(Vec::new());
        }
        wait(&host)
    });
    let error = outcome.error.unwrap();
    let Error::Deadlock {
        seed: 2,
        cycle,
        waits,
    } = &error
    else {
        panic!("{error}");
    };
    assert!((3000..10_000).contains(cycle), "{cycle}");
    assert_eq!(
        waits,
        "the host of card 1 waits for an interrupt of endpoint 0"
    );
}

#[test]
fn a_gathering_that_somebody_has_left_is_an_error_at_once() {
    let outcome = cluster().cards(2).run(|host| {
        if host.card() == 0 {
            return Ok(Vec::new());
        }
        host.all_gather(vec![1]).map(|_| Vec::<u8>::new())
    });
    let error = outcome.error.unwrap();
    let Error::Deadlock { cycle, waits, .. } = &error else {
        panic!("{error}");
    };
    assert!(*cycle < 2000, "{cycle}");
    assert!(
        waits.contains("card 1 waits for the other hosts"),
        "{waits}"
    );
}

#[test]
fn a_wait_that_has_a_deadline_is_no_deadlock() {
    let outcome = cluster().quiet_limit(100).run(|host| {
        assert_eq!(host.transport().pause(&[], 50_000), PauseResult::Deadline);
    });
    outcome.hosts().unwrap();
}

#[test]
fn cancelling_ends_every_host() {
    let cancel = Arc::new(AtomicBool::new(false));
    let progress = Arc::new(AtomicU64::new(0));
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while progress.load(Ordering::Relaxed) < 10_000 {
                std::thread::yield_now();
            }
            cancel.store(true, Ordering::Relaxed);
        });
        cluster()
            .cards(2)
            .cancel(Arc::clone(&cancel))
            .progress(Arc::clone(&progress))
            .run(|host| wait(&host))
    });
    let error = outcome.error.unwrap();
    assert!(
        matches!(
            error,
            Error::Cancelled {
                cycle: 10_000..,
                ..
            }
        ),
        "{error}"
    );
    assert!(outcome.report.cycles >= 10_000, "what was done is told");
    let closed = Some(Err(TransportError::Closed));
    assert!(outcome.hosts.iter().all(|host| *host == closed));
}

#[test]
fn the_cycle_limit_ends_the_simulation() {
    let outcome = cluster().cycle_limit(5000).run(|host| wait(&host));
    let error = outcome.error.unwrap();
    assert!(
        matches!(error, Error::CycleLimit { cycle: 5000, .. }),
        "{error}"
    );
}

#[test]
fn after_the_end_every_call_says_so_and_memory_may_be_freed() {
    let outcome = cluster().cycle_limit(3000).run(|host| {
        let port = Port::open(&host).unwrap();
        assert_eq!(port.transport.pause(&[], u64::MAX), PauseResult::Closed);
        let closed = Err(TransportError::Closed);
        // SAFETY: nobody has opened the card, which is gone.
        let accesses = unsafe {
            [
                port.transport.read_register(ID),
                port.transport.write_register(ID, 0).map(|()| 0),
            ]
        };
        assert_eq!(accesses, [closed; 2]);
        assert_eq!(port.transport.pause(&[], 0), PauseResult::Closed);
        assert!(host.all_gather(Vec::new()).is_err());
        // Outlives the simulation.
        port
    });
    drop(outcome.hosts);
}

#[test]
fn a_thread_that_is_not_attached_is_told_so() {
    let outcome = cluster().run(|host| {
        std::thread::scope(|scope| {
            let stranger = scope.spawn(|| {
                // SAFETY: nobody has opened the card.
                unsafe { host.transport().read_register(ID) }
            });
            let panic = stranger.join().unwrap_err();
            panic.downcast_ref::<String>().unwrap().clone()
        })
    });
    let message = outcome.hosts().unwrap().remove(0);
    assert!(message.contains("not attached to card 0"), "{message}");
}

#[test]
fn credits_that_do_not_add_up_are_told() {
    let run = |bug| {
        let (cluster, _) = cluster_with(1, bug);
        cluster.cards(2).seed(6).run(|host| {
            support::connect(&host)?;
            let mut port = Port::open(&host)?;
            host.all_gather(Vec::new())?;
            if host.card() == 0 {
                port.send(1, &[7; 100])?;
            } else {
                port.receive()?;
            }
            host.all_gather(Vec::new()).map(drop)
        })
    };
    let outcome = run(Bug::None);
    assert!(outcome.report.credit_checks > 0);
    outcome
        .hosts()
        .unwrap()
        .into_iter()
        .for_each(Result::unwrap);

    let error = run(Bug::Credit).error.unwrap();
    let Error::Credit { seed: 6, broken } = &error else {
        panic!("{error}");
    };
    assert_eq!((broken.card, broken.remote_card), (0, 1));
    assert_eq!((broken.taken, broken.accepted), (1, 2));
}

#[test]
fn taps_see_change_and_lose_frames() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let shown = Arc::clone(&seen);
    let outcome = cluster()
        .cards(2)
        .tap(
            LinkFilter::between(0, 1),
            move |mut passing: Passing, out: &mut Vec<Passing>| {
                shown.lock().unwrap().push(passing.frame.last);
                // The first is lost, the second changed.
                match shown.lock().unwrap().len() {
                    1 => return,
                    2 => passing.frame.bytes[HEADER] ^= 0xff,
                    _ => {}
                }
                out.push(passing);
            },
        )
        .run(|host| {
            let mut port = Port::open(&host)?;
            host.all_gather(Vec::new())?;
            if host.card() == 0 {
                for k in 0..3 {
                    port.send(1, &[k; 64])?;
                }
            } else {
                let frames = [port.receive()?, port.receive()?];
                assert_eq!(frames.map(|frame| frame[HEADER]), [1 ^ 0xff, 2]);
            }
            host.all_gather(Vec::new()).map(drop)
        });
    outcome
        .hosts()
        .unwrap()
        .into_iter()
        .for_each(Result::unwrap);
    assert!(seen.lock().unwrap().is_sorted());
}

#[test]
fn a_tap_that_panics_ends_the_simulation() {
    let outcome = cluster()
        .cards(2)
        .tap(LinkFilter::ALL, |_, _: &mut Vec<Passing>| {
            panic!("tap dance")
        })
        .run(|host| all_to_all(&host));
    let error = outcome.error.unwrap();
    assert!(matches!(&error, Error::Network { message, .. } if message == "tap dance"));
}

#[test]
fn faults_are_the_same_in_every_run() {
    let run = |threads| {
        let counts = Arc::new(Mutex::new(None));
        let shown = Arc::clone(&counts);
        let plan = FaultPlan::always(LinkFault {
            late: 0.5,
            late_by: 800,
            repeat: 0.2,
            ..LinkFault::default()
        });
        let faults = Faults::new(&plan, 1, "links");
        let faults = faults.on_finish(move |count| *shown.lock().unwrap() = Some(count));
        let outcome = cluster()
            .cards(2)
            .threads(threads)
            .tap(LinkFilter::ALL, faults)
            .run(|host| {
                let mut port = Port::open(&host)?;
                host.all_gather(Vec::new())?;
                let mut arrivals = Vec::new();
                for k in 0..12 {
                    port.send(1 - host.card(), &[k; 40])?;
                }
                for _ in 0..12 {
                    arrivals.push((port.receive()?[HEADER], port.transport.now()));
                }
                Ok::<_, TransportError>(arrivals)
            });
        let count = counts.lock().unwrap().take().expect("the tap was finished");
        (outcome.hosts().unwrap(), count)
    };
    let (hosts, count) = run(1);
    assert!(count.late > 0 && count.repeated > 0 && count.frames == 24);
    let arrivals = hosts[0].clone().unwrap();
    assert!(
        !arrivals.iter().map(|a| a.0).is_sorted(),
        "late frames are overtaken"
    );
    assert_eq!(run(2), (hosts, count));
}

#[test]
fn latency_of_memory_and_link_is_what_was_set() {
    let arrival = |memory, link| {
        let outcome = cluster()
            .cards(2)
            .memory(MemoryConfig {
                latency: memory,
                ..MemoryConfig::default()
            })
            .link(Link {
                latency: link,
                bandwidth: 8,
            })
            .run(|host| {
                let mut port = Port::open(&host)?;
                host.all_gather(Vec::new())?;
                let start = port.transport.now();
                match host.card() {
                    0 => port.send(1, &[7; 64])?,
                    _ => drop(port.receive()?),
                }
                let end = port.transport.now();
                host.all_gather(Vec::new())?;
                Ok::<_, TransportError>(end - start)
            });
        outcome.hosts().unwrap()[1].unwrap()
    };
    let base = arrival(32, 125);
    // Even differences: the card takes beats in even cycles.
    assert_eq!(arrival(32, 301), base + 176);
    // Descriptor, payload, frame and completion: each waits for the memory once.
    assert_eq!(arrival(82, 125), base + 4 * 50);
}

#[test]
fn the_log_and_a_capture_are_collected() {
    let path = std::env::temp_dir().join(format!("posthorn-{}.pcapng", std::process::id()));
    let capture = sim::capture::Capture::create(&path).unwrap();
    let outcome = cluster()
        .cards(2)
        .tap(LinkFilter::ALL, capture)
        .run(|host| all_to_all(&host));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let frames = outcome.report.fabric.bytes as usize;
    assert!(bytes.len() > frames, "{} of {frames}", bytes.len());
    let elf = Elf {
        messages: vec![LogMessage::info("up"), LogMessage::warn("card {=u8}")],
        ..Elf::default()
    };
    let firmware = Firmware::parse(elf.build()).unwrap();
    let decoder = LogDecoder::new(&firmware, firmware.build_id()).unwrap();
    for (number, card) in outcome.report.cards.iter().enumerate() {
        let lines = decoder.decode(&card.log);
        let told: Vec<_> = lines.iter().map(|l| (l.cycle, l.text.clone())).collect();
        let name = format!("card {}", number + 1);
        assert_eq!(told, [(70, "up".to_string()), (110, name)]);
    }
}

#[test]
fn host_code_that_spins_on_the_clock_is_stopped() {
    let outcome = cluster().run(|host| {
        let transport = host.transport();
        while transport.now() < u64::MAX {}
    });
    let error = outcome.error.unwrap();
    assert!(
        error.to_string().contains("poll with Transport::pause"),
        "{error}"
    );
}

#[test]
fn a_card_without_a_waveform_says_so() {
    let waves = sim::Waves {
        path: "never-written.vcd".into(),
        cycles: 500..600,
    };
    let outcome = cluster().waves(0, waves).run(|host| wait(&host));
    let Some(Error::Card {
        fault: CardFault::Waves(text),
        ..
    }) = outcome.error
    else {
        panic!("{:?}", outcome.error);
    };
    assert!(text.contains("writes no waveform"), "{text}");
}

fn planned(text: &str) -> Cluster {
    let plan: FaultPlan = toml::from_str(text).expect("a plan");
    cluster().cards(2).faults(plan)
}

#[test]
fn a_plan_that_names_a_card_that_is_not_there_ends_the_simulation_before_it_begins() {
    for (table, told) in [
        ("[[host]]\nkill = 5", "host 1: card is 7"),
        ("[[card]]\nkill = 5", "card 1: card is 7"),
    ] {
        let outcome = planned(&format!("{table}\ncard = 7")).run(|_| ());
        let error = outcome.error.expect("it can't begin").to_string();
        let why = format!("the plan of faults: {told}: there are 2 cards, counted from 0");
        assert_eq!(error, why);
    }
}

/// Card 0 sends a message every 1000 cycles, ten of them; card 1 says in which cycles it took which, until it is stopped.
fn ten_messages(cluster: Cluster) -> (Vec<(u8, u64)>, sim::Outcome<bool>) {
    let taken = Mutex::new(Vec::new());
    let outcome = cluster.run(|host| {
        let ended = process(0, || {
            let mut port = Port::open(&host).expect("a card");
            host.all_gather(Vec::new()).expect("both are there");
            for k in 0..10 {
                match host.card() {
                    0 => {
                        port.send(1, &[k; 40]).expect("room");
                        let next = 10_000 + 1000 * u64::from(k);
                        assert_eq!(port.transport.pause(&[], next), PauseResult::Deadline);
                    }
                    _ => match port.receive() {
                        Ok(frame) => {
                            let told = (frame[HEADER], port.transport.now());
                            taken.lock().unwrap().push(told);
                        }
                        Err(_) => return false,
                    },
                }
            }
            true
        });
        host.all_gather(Vec::new()).expect("both end");
        ended.unwrap_or(false)
    });
    (taken.into_inner().unwrap(), outcome)
}

fn names(taken: &[(u8, u64)]) -> Vec<u8> {
    taken.iter().map(|&(name, _)| name).collect()
}

#[test]
fn a_killed_process_takes_nothing_more_and_what_it_had_is_unmapped() {
    let (all, outcome) = ten_messages(planned(""));
    assert_eq!(names(&all), (0..10).collect::<Vec<u8>>());
    assert_eq!(outcome.hosts().unwrap(), [true, true]);
    let (taken, outcome) = ten_messages(planned("[[host]]\ncard = 1\nkill = 13500"));
    let before = all.iter().filter(|(_, cycle)| *cycle < 13_500).count();
    assert!((2..9).contains(&before), "{before} of them came before");
    assert_eq!(taken, all[..before]);
    let killed = &outcome.report.cards[1];
    // The card is alive, and reaches nothing.
    assert_eq!(killed.frames_taken, 10);
    assert!(killed.memory.unmapped > 0);
    assert_eq!(outcome.hosts().unwrap(), [true, false]);
}

#[test]
fn a_frozen_host_takes_what_has_come_when_its_time_goes_on() {
    let freeze = "[[host]]\ncard = 1\nfreeze = { begin = 11500, end = 14700 }";
    let (taken, outcome) = ten_messages(planned(freeze));
    assert_eq!(outcome.hosts().unwrap(), [true, true]);
    assert_eq!(names(&taken), (0..10).collect::<Vec<u8>>());
    let frozen = |cycle: u64| (11_500..14_700).contains(&cycle);
    assert!(!taken.iter().any(|&(_, cycle)| frozen(cycle)), "{taken:?}");
    let at_once = taken
        .iter()
        .filter(|(_, cycle)| (14_700..15_000).contains(cycle));
    assert!(at_once.count() >= 3, "{taken:?}");
}

#[test]
fn a_card_without_power_takes_and_sends_nothing_and_its_host_is_told() {
    let (taken, outcome) = ten_messages(planned("[[card]]\ncard = 1\nkill = 13500"));
    assert!((2..9).contains(&taken.len()), "{taken:?}");
    assert!(taken.iter().all(|&(_, cycle)| cycle < 13_500), "{taken:?}");
    let off = &outcome.report.cards[1];
    assert_eq!(off.frames_taken, taken.len() as u64);
    assert_eq!(outcome.hosts().unwrap(), [true, false]);
    // The one that sends: what is on the wire when the power is cut goes nowhere, and what comes later isn't sent.
    let (taken, outcome) = ten_messages(planned("[[card]]\ncard = 0\nkill = 13500"));
    assert!(outcome.report.cards[0].frames_sent < 10);
    assert_eq!(taken.len() as u64, outcome.report.cards[0].frames_sent);
}

#[test]
fn memory_that_is_stalled_answers_when_the_stall_is_over() {
    let stall = "[[card]]\ncard = 1\nstall_memory = { begin = 11500, end = 14700 }";
    let (taken, outcome) = ten_messages(planned(stall));
    assert_eq!(outcome.hosts().unwrap(), [true, true]);
    assert_eq!(names(&taken), (0..10).collect::<Vec<u8>>());
    let stalled = |cycle: u64| (11_550..14_700).contains(&cycle);
    assert!(!taken.iter().any(|&(_, cycle)| stalled(cycle)), "{taken:?}");
}

#[test]
fn the_links_of_a_plan_are_struck_by_the_cluster_itself() {
    let cut = "[[partition]]\nsides = [[0], [1]]\nbegin = 11500\nend = 14700";
    let lost = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&lost);
    let cluster = planned(cut).tap(
        LinkFilter::ALL,
        move |passing: Passing, out: &mut Vec<Passing>| {
            seen.fetch_add(
                u64::from((11_500..14_700).contains(&passing.frame.last)),
                Ordering::Relaxed,
            );
            out.push(passing);
        },
    );
    let cluster = cluster.cycle_limit(100_000);
    let (taken, outcome) = ten_messages(cluster);
    assert!(outcome.error.is_some(), "card 1 waits for what was lost");
    let lost = lost.load(Ordering::Relaxed);
    assert!(lost >= 2, "{lost} lost");
    assert_eq!(taken.len() as u64, 10 - lost);
}
