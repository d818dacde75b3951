//! A whole card, Verilated, whose processor does what the test says: what the firmware needs of the gates comes
//! through all the wiring.

use abi::control::{CardSetup, EventSetup, Operation, PairSetup};
use abi::event::Cause;
use abi::mgmt::{
    CONTROL_BUSY, CONTROL_DATA, CONTROL_RESULT, CONTROL_START, EVENT, EVENT_TAKE, FRAME_IN,
    FRAME_OUT, FRAME_SEND, FRAME_TAKE, FRAME_WORDS, FRAMES_IN, FRAMES_LOST, GATES_RESET,
    INTERRUPT_EVENT, INTERRUPT_FRAME_IN, INTERRUPT_FRAME_OUT, INTERRUPT_GATES_READY,
    INTERRUPT_PENDING, MEMORY_BASE, REGISTER_BASE, control_start, event_word,
};
use abi::register::{
    CONTROL, CONTROL_RUN, LOADER_ADDRESS, LOADER_DATA, MAILBOX_ANSWER, MAILBOX_COMMAND,
    MAILBOX_REQUEST, MAILBOX_RESULT, STATUS, STATUS_FIRMWARE, STATUS_READY,
};
use abi::status::Status;
use abi::wire::{
    ETHERTYPE_FIELD, FrameHeader, FrameType, MANAGEMENT_BYTES, VERSION, crc32c, frame_bytes,
};
use hdl_tests::monitor::{Do, monitor};
use hdl_tests::{Bench, for_seeds, rate};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

const MAC: u64 = 0x0605_0403_0201;

/// A card that runs the monitor, its host's register accesses, and the wire at both ends.
struct Card {
    bench: Bench,
    rng: ChaCha8Rng,
    willing: f64,
    request: u64,
    leaving: Vec<u8>,
    /// Frames that have left, trailers included.
    left: Vec<Vec<u8>>,
}

impl Card {
    fn boot(rng: &mut ChaCha8Rng) -> Self {
        let mut card = Card {
            bench: Bench::open_cold("nic_tiny"),
            willing: rate(rng),
            rng: rng.clone(),
            request: 0,
            leaving: vec![],
            left: vec![],
        };
        card.bench.set("s_axil_wstrb", 15_u64);
        card.bench.set("s_axil_bready", true);
        card.bench.set("s_axil_rready", true);
        card.wait_for(STATUS, STATUS_READY);
        card.write(LOADER_ADDRESS, MEMORY_BASE);
        for word in monitor(b'm') {
            card.write(LOADER_DATA, word);
        }
        card.write(CONTROL, CONTROL_RUN);
        card.wait_for(STATUS, STATUS_READY | STATUS_FIRMWARE);
        card
    }

    /// One cycle; what leaves by the wire in it is kept.
    fn step(&mut self) {
        let takes = self.rng.random_bool(self.willing);
        self.bench.set("m_axis_tready", takes);
        self.bench.eval();
        if takes && self.bench.is("m_axis_tvalid") {
            let word = self.bench.get("m_axis_tdata");
            self.leaving.extend(word.to_le_bytes());
            if self.bench.is("m_axis_tlast") {
                self.left.push(std::mem::take(&mut self.leaving));
            }
        }
        self.bench.step();
    }

    /// Offers something until it is taken.
    fn offer(&mut self, valid: &[&str], ready: &str) {
        valid.iter().for_each(|pin| self.bench.set(pin, true));
        for _ in 0..10_000 {
            self.bench.eval();
            let taken = self.bench.is(ready);
            self.step();
            if taken {
                valid.iter().for_each(|pin| self.bench.set(pin, false));
                return;
            }
        }
        panic!("{ready} stays low");
    }

    fn write(&mut self, address: u32, value: u32) {
        self.bench.set("s_axil_awaddr", address);
        self.bench.set("s_axil_wdata", value);
        self.offer(&["s_axil_awvalid", "s_axil_wvalid"], "s_axil_awready");
    }

    fn read(&mut self, address: u32) -> u32 {
        self.bench.set("s_axil_araddr", address);
        self.offer(&["s_axil_arvalid"], "s_axil_arready");
        for _ in 0..100 {
            self.bench.eval();
            let data = self.bench.get("s_axil_rdata") as u32;
            let valid = self.bench.is("s_axil_rvalid");
            self.step();
            if valid {
                return data;
            }
        }
        panic!("a read isn't answered");
    }

    fn wait_for(&mut self, address: u32, value: u32) {
        let found = (0..2000).any(|_| self.read(address) & value == value);
        assert!(found, "{address:#x} never reads {value:#x}");
    }

    fn ask(&mut self, what: Do, offset: u32, value: u32) -> u32 {
        self.request += 1;
        for (k, word) in [what as u32, REGISTER_BASE + offset, value]
            .iter()
            .enumerate()
        {
            self.write(MAILBOX_COMMAND + 4 * k as u32, *word);
        }
        self.write(MAILBOX_REQUEST, self.request as u32);
        let request = self.request as u32;
        let answered = (0..1000).any(|_| self.read(MAILBOX_ANSWER) == request);
        assert!(answered, "the monitor doesn't answer");
        assert_eq!(self.read(MAILBOX_RESULT + 4), 0, "{offset:#x} is refused");
        self.read(MAILBOX_RESULT)
    }

    fn peek(&mut self, offset: u32) -> u32 {
        self.ask(Do::LoadWord, offset, 0)
    }

    fn poke(&mut self, offset: u32, value: u32) {
        self.ask(Do::StoreWord, offset, value);
    }

    fn control(&mut self, operation: Operation, index: u16, data: &[u64]) -> u64 {
        for (k, word) in data.iter().enumerate() {
            self.poke(CONTROL_DATA + 8 * k as u32, *word as u32);
            self.poke(CONTROL_DATA + 8 * k as u32 + 4, (word >> 32) as u32);
        }
        self.poke(CONTROL_START, control_start(operation, index));
        let done = (0..100).any(|_| self.peek(CONTROL_BUSY) == 0);
        assert!(done, "{operation:?} is never done");
        let low = u64::from(self.peek(CONTROL_RESULT));
        low | u64::from(self.peek(CONTROL_RESULT + 4)) << 32
    }

    fn counter(&mut self, counter: abi::control::Counter) -> u64 {
        self.control(Operation::CounterRead, counter.code().into(), &[])
    }

    fn pending(&mut self) -> u32 {
        self.peek(INTERRUPT_PENDING)
    }

    /// Has the firmware send a frame, whose trailer is the gates'.
    fn send(&mut self, frame: &[u8]) {
        assert_ne!(self.pending() & INTERRUPT_FRAME_OUT, 0);
        for (k, word) in words(frame).into_iter().take(FRAME_WORDS).enumerate() {
            self.poke(FRAME_OUT + 4 * k as u32, word);
        }
        self.poke(FRAME_SEND, 0);
        let sent = (0..1000).any(|_| self.pending() & INTERRUPT_FRAME_OUT != 0);
        assert!(sent, "a frame doesn't leave");
    }

    /// A frame comes in by the wire.
    fn deliver(&mut self, frame: &[u8]) {
        self.deliver_words(frame, true);
    }

    /// A part of one, with its end or without.
    fn deliver_words(&mut self, frame: &[u8], ends: bool) {
        self.bench.set("s_axis_tkeep", 0xff_u64);
        let count = frame.len() / 8;
        for (k, word) in frame.chunks_exact(8).enumerate() {
            let word = u64::from_le_bytes(word.try_into().expect("chunks of eight"));
            self.bench.set("s_axis_tdata", word);
            self.bench.set("s_axis_tlast", ends && k + 1 == count);
            self.offer(&["s_axis_tvalid"], "s_axis_tready");
        }
        (0..5).for_each(|_| self.step());
    }

    /// The frame that the firmware finds, if there is one, and frees it.
    fn receive(&mut self) -> Option<Vec<u32>> {
        if self.pending() & INTERRUPT_FRAME_IN == 0 {
            return None;
        }
        let offsets = (FRAME_IN..).step_by(4).take(FRAME_WORDS);
        let frame = offsets.map(|offset| self.peek(offset)).collect();
        self.poke(FRAME_TAKE, 0);
        Some(frame)
    }
}

fn words(frame: &[u8]) -> Vec<u32> {
    frame
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().expect("chunks of four")))
        .collect()
}

/// A frame of a firmware, with its trailer.
fn frame(rng: &mut ChaCha8Rng, frame_type: FrameType, destination_mac: u64) -> Vec<u8> {
    let header = FrameHeader {
        destination_mac,
        source_mac_high: rng.random(),
        ethertype: ETHERTYPE_FIELD,
        version: VERSION,
        frame_type: frame_type.code(),
        destination_pair: rng.random(),
        cookie: rng.random(),
        payload_length: MANAGEMENT_BYTES as u16,
        message_length: MANAGEMENT_BYTES as u64,
        ..Default::default()
    };
    let mut bytes = vec![0; FrameHeader::BYTES];
    header.emit(&mut bytes);
    bytes.extend((0..MANAGEMENT_BYTES).map(|_| rng.random::<u8>()));
    bytes.extend_from_slice(&u64::from(crc32c(&bytes)).to_le_bytes());
    assert_eq!(bytes.len(), frame_bytes(MANAGEMENT_BYTES));
    bytes
}

#[test]
fn a_frame_that_the_firmware_writes_is_on_the_wire_and_one_from_the_wire_can_be_read() {
    for_seeds(2, |rng| {
        let mut card = Card::boot(rng);
        assert_ne!(card.pending() & INTERRUPT_GATES_READY, 0);
        for frame_type in [FrameType::Handshake, FrameType::Management] {
            let out = frame(rng, frame_type, MAC);
            card.send(&out);
            assert_eq!(std::mem::take(&mut card.left), [out], "CRC included");
            let came = frame(rng, frame_type, MAC);
            card.deliver(&came);
            assert_eq!(card.receive(), Some(words(&came)[..FRAME_WORDS].to_vec()));
            assert_eq!(card.receive(), None);
        }
        assert_eq!(card.counter(abi::control::Counter::FramesSent), 2);
        assert_eq!(card.counter(abi::control::Counter::FramesReceived), 2);
    });
}

#[test]
fn a_frame_of_the_firmware_to_its_own_card_turns_round() {
    for_seeds(1, |rng| {
        let mut card = Card::boot(rng);
        let setup = CardSetup {
            mac: MAC,
            ..Default::default()
        };
        card.control(Operation::CardSet, 0, &setup.to_words());
        let own = frame(rng, FrameType::Handshake, MAC);
        card.send(&own);
        assert_eq!(card.receive(), Some(words(&own)[..FRAME_WORDS].to_vec()));
        assert!(card.left.is_empty(), "it doesn't leave the card");
    });
}

#[test]
fn frames_that_the_firmware_has_no_room_for_are_counted_and_hold_nothing_up() {
    use abi::control::Counter::{CrcErrors, FirmwareFramesDropped, FramesReceived, PairErrors};
    for_seeds(1, |rng| {
        let mut card = Card::boot(rng);
        let flood: Vec<_> = (0..FRAMES_IN + 3)
            .map(|_| frame(rng, FrameType::Handshake, MAC))
            .collect();
        flood.iter().for_each(|frame| card.deliver(frame));
        let mut bad = frame(rng, FrameType::Management, MAC);
        bad[80] ^= 1;
        card.deliver(&bad);
        // The datapath goes on: a frame of a pair that isn't there is looked at and dropped.
        let mut data = frame(rng, FrameType::Eager, MAC);
        let end = data.len() - 8;
        let crc = u64::from(crc32c(&data[..end])).to_le_bytes();
        data[end..].copy_from_slice(&crc);
        card.deliver(&data);
        assert_eq!(card.counter(PairErrors), 1);
        assert_eq!(card.counter(CrcErrors), 1);
        assert_eq!(card.peek(FRAMES_LOST), 3);
        assert_eq!(card.counter(FirmwareFramesDropped), 3);
        assert_eq!(card.counter(FramesReceived), FRAMES_IN as u64);
        for kept in &flood[..FRAMES_IN] {
            assert_eq!(card.receive(), Some(words(kept)[..FRAME_WORDS].to_vec()));
        }
        assert_eq!(card.receive(), None, "the others are gone");
        // There is room again.
        card.deliver(&flood[0]);
        assert!(card.receive().is_some());
    });
}

#[test]
fn the_firmware_is_told_of_a_failed_pair_and_not_of_its_own_events() {
    for_seeds(1, |rng| {
        let mut card = Card::boot(rng);
        let setup = PairSetup {
            endpoint: 1,
            cookie: 7,
            local_credits: 1,
            remote_credits: 1,
            ..Default::default()
        };
        card.control(Operation::PairSet, 3, &setup.to_words());
        let status = Status::LinkError.code();
        card.control(Operation::PairFail, 3, &[status.into()]);
        assert_ne!(card.pending() & INTERRUPT_EVENT, 0);
        let event = event_word(Cause::LinkError.code(), 1, 3);
        assert_eq!(card.peek(EVENT), event);
        assert_eq!(card.peek(EVENT + 4), status.into());
        assert_eq!(card.peek(EVENT + 8), 0);
        card.poke(EVENT_TAKE, 0);
        assert_eq!(card.pending() & INTERRUPT_EVENT, 0);
        let raised = EventSetup {
            cause: Cause::PairConnected.code(),
            pair: 3,
            ..Default::default()
        };
        card.control(Operation::EventRaise, 1, &raised.to_words());
        assert_eq!(card.pending() & INTERRUPT_EVENT, 0);
    });
}

#[test]
fn a_reset_of_the_gates_by_the_firmware_empties_its_frames_and_leaves_the_processor_alone() {
    for_seeds(2, |rng| {
        let mut card = Card::boot(rng);
        for _ in 0..2 {
            // Places in use, and a frame that is half in when the reset comes.
            (0..3).for_each(|_| card.deliver(&frame(rng, FrameType::Handshake, MAC)));
            let half = frame(rng, FrameType::Management, MAC);
            let (first, second) = half.split_at(8 * rng.random_range(1..10));
            card.deliver_words(first, false);
            assert_ne!(card.pending() & INTERRUPT_FRAME_IN, 0);
            card.poke(GATES_RESET, 1);
            let ready = (0..1000).any(|_| card.peek(GATES_RESET) == 0);
            assert!(ready, "the gates are never ready");
            assert_ne!(card.pending() & INTERRUPT_GATES_READY, 0);
            card.deliver_words(second, true);
            assert_eq!(card.receive(), None, "neither those nor the half of one");
            let out = frame(rng, FrameType::Handshake, MAC);
            card.send(&out);
            assert_eq!(std::mem::take(&mut card.left), [out]);
            let came = frame(rng, FrameType::Handshake, MAC);
            card.deliver(&came);
            assert_eq!(card.receive(), Some(words(&came)[..FRAME_WORDS].to_vec()));
        }
    });
}
