//! The reset of the gates by register, when the host that had opened things is gone.

use abi::control::Counter;
use abi::mailbox::{PairId, Words, id_index};
use abi::register::{
    CONTROL, CONTROL_RESET, CONTROL_RUN, FIRMWARE_START, LIST_TAIL, LOADER_ADDRESS, LOADER_DATA,
    SEND_TAIL, STATUS, STATUS_FIRMWARE, STATUS_READY, endpoint_page,
};
use host_driver::{CommandError, Device, WcStatus};
use posthorn_tests::cards::{GatesOnly, Host, both, cards, firmware};
use posthorn_tests::raw::{LOOPBACK_CREDITS, LoopbackEndpoint, RawHost};
use posthorn_tests::side::Side;
use sim::Costs;
use sim::seed::BackPressure;

/// Cycles after which a card that has something to do with a message, or with memory, has done it.
const LONG: u64 = 20_000;
/// Messages of the card that is reset, to each of its pairs.
const MESSAGES: u32 = LOOPBACK_CREDITS as u32;
/// Messages of the other card, before the reset and after it: it has credit for as many.
const EARLY: u32 = 2;
const LATE: u32 = MESSAGES - EARLY;

fn wait(host: &Host, cycles: u64) {
    let transport = host.transport();
    let until = transport.now() + cycles;
    while transport.now() < until {
        let _ = transport.pause(&[], until);
    }
}

/// Who resets the gates.
#[derive(Clone, Copy)]
enum By {
    /// The host, by `CONTROL_RESET`, before it loads the firmware.
    Register,
    /// The firmware, as it starts: the host holds the processor, loads and lets it run.
    Firmware,
}

/// Holds the processor and starts the firmware anew over gates that are reset, as a host does that finds a card that another has left.
fn start_anew(host: &Host, by: By) {
    let transport = host.transport();
    // SAFETY: reading these registers has no effect.
    let read = |offset| unsafe { transport.read_register(offset) }.expect("a register");
    // SAFETY: the gates are reset before the firmware is up; what they write until then is memory that the test keeps.
    let write = |offset, value| unsafe { transport.write_register(offset, value) }.unwrap();
    let start = read(FIRMWARE_START);
    let firmware = firmware();
    let segments = firmware.segments().iter();
    match by {
        By::Register => {
            write(CONTROL, CONTROL_RESET);
            // Its bits tell of nothing that isn't so.
            while read(STATUS) & STATUS_READY == 0 {
                wait(host, 50);
            }
            assert_eq!(read(CONTROL), 0, "the reset is over, the processor held");
            assert_eq!(read(STATUS) & STATUS_FIRMWARE, 0);
            assert_eq!(read(FIRMWARE_START), 0, "nobody runs");
            let segments = segments.map(|segment| (segment.address, segment.bytes.as_slice()));
            // SAFETY: it is the firmware that was built from this tree.
            unsafe { host_driver::load_firmware(host.transport(), segments) }
                .expect("the firmware is loaded");
        }
        By::Firmware => {
            // `CONTROL` 0, load, `CONTROL` 1, by hand: the library's loader would reset the gates of a card that was used.
            write(CONTROL, 0);
            while read(STATUS) & STATUS_FIRMWARE != 0 {
                wait(host, 50);
            }
            for segment in segments {
                write(LOADER_ADDRESS, segment.address);
                for chunk in segment.bytes.chunks(4) {
                    let mut word = [0; 4];
                    word[..chunk.len()].copy_from_slice(chunk);
                    write(LOADER_DATA, u32::from_le_bytes(word));
                }
            }
            write(CONTROL, CONTROL_RUN);
        }
    }
    while read(STATUS) & STATUS_FIRMWARE == 0 {
        wait(host, 50);
    }
    let next = start.checked_add(1).unwrap_or(1);
    assert_eq!(
        read(FIRMWARE_START),
        next,
        "a host that knew the start before sees another"
    );
}

/// Tells the other rank a pair and hears of its.
fn exchange(host: &Host, raw: &RawHost, pair: &PairId) -> (PairId, u64) {
    let mut words = vec![0_u32; PairId::COUNT];
    pair.to_words(&mut words);
    let mac = raw.identity().mac;
    words.extend([mac as u32, (mac >> 32) as u32]);
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let all = host.all_gather(bytes).expect("both tell");
    let words: Vec<u32> = all[1 - host.card()]
        .chunks(4)
        .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
        .collect();
    let (pair, mac) = words.split_at(PairId::COUNT);
    let mac = u64::from(mac[0]) | u64::from(mac[1]) << 32;
    (PairId::from_words(pair), mac)
}

/// As it broke: with endpoints open, `CONTROL` 0, load, `CONTROL` 1; then old doorbells sent, frames for old pairs were acknowledged and written
/// into old slots and buffers, and a receive that was posted met another seed of the hashes.
fn a_card_that_was_left(by: By, seed: u64, at: u64) {
    // Most of it is the firmware that a host writes word by word.
    let cluster = cards("tiny", 2, seed)
        .pressure(BackPressure::SOME)
        .costs(Costs::NONE);
    GatesOnly::Race.run(cluster, |host| {
        let raw = RawHost::new(&host);
        let mut loopback = LoopbackEndpoint::open(&raw);
        // A pair with the other card, beside that with itself.
        let local = raw.open_pair(loopback.endpoint.id, LOOPBACK_CREDITS, &loopback.slots);
        let (remote, mac) = exchange(&host, &raw, &local);
        raw.connect_to(&local, &remote, mac);
        let pair = local.pair as u16;
        // And one more, on which nothing is sent before: the first may have given up when the card is there again.
        let local = raw.open_pair(loopback.endpoint.id, LOOPBACK_CREDITS, &loopback.slots);
        let (remote, mac) = exchange(&host, &raw, &local);
        raw.connect_to(&local, &remote, mac);
        let late = local.pair as u16;
        let meet = || drop(host.all_gather(Vec::new()).expect("both come"));
        let send = |loopback: &mut LoopbackEndpoint, pair, tag, request| {
            let mut send = loopback.send(tag, request, 700);
            send.pair = pair;
            loopback.endpoint.post_send(send.to_words());
        };
        let receive = |loopback: &mut LoopbackEndpoint, pair, tag, request| {
            let mut receive = loopback.receive(tag, request, 700);
            receive.pair = pair;
            loopback.endpoint.post_list(receive.to_words());
        };
        meet();
        if host.card() == 0 {
            // Receives that find a message and ones that don't, messages to the other card and to itself.
            let own = loopback.pair;
            for k in 0..MESSAGES {
                receive(&mut loopback, pair, 100 + u64::from(k % 2), k);
                receive(&mut loopback, own, 999, 0x20 + k);
                send(&mut loopback, pair, 1, 0x40 + k);
                send(&mut loopback, own, 2, 0x60 + k);
            }
            wait(&host, at);
            start_anew(&host, by);
            let transport = host.transport();
            let memories =
                |loopback: &LoopbackEndpoint| (loopback.memory.bytes(), loopback.slots.bytes());
            let before = memories(&loopback);
            let page = endpoint_page(id_index(loopback.endpoint.id) as u8);
            for offset in [SEND_TAIL, LIST_TAIL] {
                // SAFETY: that it does nothing is what this test is about; the memory outlives the card.
                unsafe { transport.write_register(page + offset, 2 * MESSAGES) }.unwrap();
            }
            let raw = RawHost::new(&host);
            wait(&host, LONG);
            let strays = raw.count(Counter::PairErrors);
            meet();
            // The other card sends to the pair that was.
            meet();
            assert!(
                memories(&loopback) == before,
                "what was posted before is written"
            );
            assert!(loopback.endpoint.poll_event().is_none());
            // Each of its messages is dropped, however often it is sent again.
            assert!(raw.count(Counter::PairErrors) >= strays + u64::from(LATE));
            assert_eq!(raw.count(Counter::FramesReceived), 0);
            assert_eq!(raw.count(Counter::FramesSent), 0, "something is sent");
            // All is there for the next.
            LoopbackEndpoint::open(&raw).assert_works();
        } else {
            for k in 0..EARLY {
                send(&mut loopback, pair, 100 + u64::from(k % 2), k);
            }
            meet();
            while loopback.endpoint.poll().is_some() {}
            for k in 0..LATE {
                send(&mut loopback, late, 100, 0x80 + k);
            }
            wait(&host, LONG);
            assert_eq!(raw.pair_status(late).unacknowledged, LATE);
            while let Some(ended) = loopback.endpoint.poll() {
                let early = ended.request < 0x80;
                assert!(early, "a message to nobody is acknowledged");
            }
            meet();
        }
    });
}

#[test]
fn nothing_that_another_host_had_posted_happens_after_a_reset_of_the_gates() {
    for (seed, at) in [(301, 0), (303, 900)] {
        a_card_that_was_left(By::Register, seed, at);
    }
}

#[test]
#[ignore = "half a minute of simulation: `cargo xtask test --long`"]
fn the_same_at_more_moments() {
    for (seed, at) in [(302, 300), (304, 2500), (305, 1500), (306, 5000)] {
        a_card_that_was_left(By::Register, seed, at);
    }
    a_card_that_was_left(By::Firmware, 311, 0);
}

#[test]
fn nothing_that_another_host_had_posted_happens_after_a_start_of_the_firmware() {
    a_card_that_was_left(By::Firmware, 312, 900);
}

#[test]
fn a_reset_under_firmware_that_hangs_gives_a_program_everything_back() {
    both("tiny", 2, 321, |host| {
        let mut me = Side::open(&host);
        if me.rank() == 1 {
            // It is sent to while it is reset.
            for number in 0..4 {
                me.send(0, 1, number, 200);
            }
            return std::mem::forget(me);
        }
        for wr_id in 0..3 {
            me.receive(wr_id, Some(1), 999, 200);
        }
        let device = me.device.clone();
        // SAFETY: it isn't the owner, but holding the processor moves nothing: what is open goes on as it is.
        unsafe { host.transport().write_register(CONTROL, 0) }.unwrap();
        device.reset().expect("it needs no firmware");
        assert_eq!(me.statuses(3), [0, 1, 2].map(|k| (k, WcStatus::Flushed)));
        assert_eq!(device.alloc_pd().err(), Some(CommandError::Restarted));
        drop((me, device));
        let again = Device::open(host.transport()).expect("it opens again");
        again.alloc_pd().expect("its firmware answers");
    });
}
