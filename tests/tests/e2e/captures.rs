//! What is written for people and their tools: frames for Wireshark, the firmware's log.

use abi::wire::{ETHERTYPE, FrameHeader};
use pcap_file::pcapng::{Block, PcapNgReader};
use posthorn_tests::cards::{GatesOnly, cards, firmware};
use posthorn_tests::frames::is_sealed;
use posthorn_tests::side::Side;
use posthorn_tests::traffic::{Mix, play};
use sim::capture::Capture;
use sim::fabric::LinkFilter;
use sim::log::{LogDecoder, LogError};
use std::io::Write;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_capture_holds_every_frame_of_its_link_whole() {
    let (all, one) = (Shared::default(), Shared::default());
    let cluster = cards("tiny", 2, 95)
        .tap(LinkFilter::ALL, Capture::new(all.clone()).unwrap())
        .tap(
            LinkFilter::between(1, 0),
            Capture::new(one.clone()).unwrap(),
        );
    let (_, report) = GatesOnly::Simulation.run(cluster, |host| {
        let mut me = Side::open(&host);
        play(&mut me, 95, Mix::even(30));
        me.finish();
    });
    let read = |file: Shared| {
        let bytes = file.0.lock().unwrap().clone();
        let mut reader = PcapNgReader::new(bytes.as_slice()).expect("pcapng");
        let (mut frames, mut names, mut last) = (Vec::new(), Vec::new(), Default::default());
        while let Some(block) = reader.next_block() {
            match block.expect("a sound block") {
                Block::InterfaceDescription(interface) => {
                    names.push(format!("{:?}", interface.options[0]));
                }
                Block::EnhancedPacket(packet) => {
                    assert_eq!(packet.original_len as usize, packet.data.len());
                    assert!(packet.timestamp >= last, "in order");
                    last = packet.timestamp;
                    frames.push((packet.interface_id, packet.data.into_owned()));
                }
                _ => {}
            }
        }
        (frames, names)
    };
    let (frames, names) = read(all);
    assert_eq!(frames.len() as u64, report.fabric.frames);
    assert_eq!(names.len(), 2);
    for (_, bytes) in &frames {
        assert_eq!(bytes[12..14], ETHERTYPE.to_be_bytes());
        assert!(is_sealed(bytes));
        let header = FrameHeader::parse(bytes).expect("a whole header");
        let length = usize::from(header.payload_length);
        assert_eq!(bytes.len(), abi::wire::frame_bytes(length));
    }
    let (back, names) = read(one);
    assert!(names[0].contains("card1-card0"), "{names:?}");
    assert_eq!(back.len() as u64, report.cards[1].frames_sent);
}

#[test]
fn the_firmwares_log_is_decoded_with_its_own_file_and_no_other() {
    let (builds, report) = GatesOnly::Firmware.run(cards("tiny", 1, 96), |host| {
        let me = Side::open(&host);
        let build = me.device.identity().build_id;
        me.finish();
        build
    });
    let firmware = firmware();
    assert_eq!(builds, [firmware.build_id()]);
    let decoder = LogDecoder::new(&firmware, builds[0]).expect("its own file");
    let lines = decoder.decode(&report.cards[0].log);
    let first = &lines.first().expect("a log").text;
    assert!(first.contains(&format!("{:016x}", builds[0])), "{first}");
    assert!(lines.len() > 3, "{lines:?}");
    let garbled = |line: &sim::log::LogLine| line.text.contains("can't be decoded");
    assert!(!lines.iter().any(garbled), "{lines:?}");
    let refused = LogDecoder::new(&firmware, builds[0] ^ 1).err();
    assert!(matches!(refused, Some(LogError::WrongBuild { .. })));
}
