//! Frames of links in a pcapng file, for Wireshark.
//!
//! Each link is an interface named after its two cards. Timestamps are the cycle of the frame's last
//! beat at its source, in nanoseconds of simulated time.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};

use crate::NS_PER_CYCLE;
use crate::fabric::{Passing, Tap};
use crate::stream::FRAME_MAX;

/// A tap that writes frames to a capture file and lets them pass.
pub struct Capture<W: Write = BufWriter<File>> {
    /// Until it is ended by `finish`.
    writer: Option<PcapNgWriter<W>>,
    /// Source and destination of each interface.
    interfaces: Vec<(usize, usize)>,
    error: Option<io::Error>,
}

impl Capture {
    /// Begins a capture in a new file.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::new(BufWriter::new(File::create(path)?))
    }
}

impl<W: Write> Capture<W> {
    /// Begins a capture.
    ///
    /// # Errors
    /// If `writer` can't be written to.
    pub fn new(writer: W) -> io::Result<Self> {
        Ok(Self {
            writer: Some(PcapNgWriter::new(writer).map_err(plain)?),
            interfaces: Vec::new(),
            error: None,
        })
    }

    fn write(&mut self, passing: &Passing) -> Result<(), PcapError> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        let link = (passing.source, passing.destination);
        let known = self.interfaces.iter().position(|&other| other == link);
        let interface = match known {
            Some(interface) => interface,
            None => {
                let name = format!("card{}-card{}", link.0, link.1);
                writer.write_pcapng_block(InterfaceDescriptionBlock {
                    linktype: DataLink::ETHERNET,
                    snaplen: FRAME_MAX as u32,
                    options: vec![
                        InterfaceDescriptionOption::IfName(Cow::Owned(name)),
                        // Units of a nanosecond.
                        InterfaceDescriptionOption::IfTsResol(9),
                    ],
                })?;
                self.interfaces.push(link);
                self.interfaces.len() - 1
            }
        };
        let mut options = Vec::new();
        if passing.frame.bad {
            // Link-layer-dependent error 24: wrong frame check sequence.
            options.push(EnhancedPacketOption::Flags(1 << 24));
        }
        writer.write_pcapng_block(EnhancedPacketBlock {
            interface_id: interface as u32,
            timestamp: Duration::from_nanos(passing.frame.last * NS_PER_CYCLE),
            original_len: passing.frame.bytes.len() as u32,
            data: Cow::Borrowed(&passing.frame.bytes),
            options,
        })?;
        Ok(())
    }
}

fn plain(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error),
    }
}

impl<W: Write + Send> Tap for Capture<W> {
    fn pass(&mut self, passing: Passing, out: &mut Vec<Passing>) {
        if self.error.is_none() {
            self.error = self.write(&passing).map_err(plain).err();
        }
        out.push(passing);
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        match self.writer.take() {
            Some(writer) => writer.into_inner().flush(),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use pcap_file::pcapng::{Block, PcapNgReader};

    use super::*;
    use crate::stream::Frame;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn frames_are_read_back_with_their_link_and_time() {
        let file = Shared::default();
        let mut capture = Capture::new(file.clone()).unwrap();
        let passing = |source, destination, last, byte, len| Passing {
            frame: Frame {
                bytes: vec![byte; len],
                first: 0,
                last,
                bad: byte == 3,
            },
            source,
            destination,
            delay: 0,
        };
        let sent = [
            passing(0, 1, 100, 1, 80),
            passing(1, 0, 101, 2, 61),
            passing(0, 1, u64::from(u32::MAX), 3, 1104),
        ];
        let mut out = Vec::new();
        for passing in &sent {
            capture.pass(passing.clone(), &mut out);
        }
        capture.finish().unwrap();
        assert_eq!(out, sent, "everything passes");

        let bytes = file.0.lock().unwrap().clone();
        let mut reader = PcapNgReader::new(bytes.as_slice()).unwrap();
        let (mut names, mut frames) = (Vec::new(), Vec::new());
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::InterfaceDescription(interface) => {
                    for option in interface.options {
                        match option {
                            InterfaceDescriptionOption::IfName(name) => {
                                names.push(name.to_string())
                            }
                            InterfaceDescriptionOption::IfTsResol(unit) => assert_eq!(unit, 9),
                            _ => {}
                        }
                    }
                }
                Block::EnhancedPacket(packet) => {
                    assert_eq!(packet.original_len as usize, packet.data.len());
                    frames.push((
                        packet.interface_id,
                        packet.timestamp.as_nanos() as u64,
                        packet.data.to_vec(),
                        !packet.options.is_empty(),
                    ));
                }
                _ => {}
            }
        }
        assert_eq!(names, ["card0-card1", "card1-card0"]);
        let expected = [
            (0, 800, vec![1; 80], false),
            (1, 808, vec![2; 61], false),
            (0, 8 * u64::from(u32::MAX), vec![3; 1104], true),
        ];
        assert_eq!(frames, expected);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_reported_at_the_end_and_stops_nothing() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                // The section header fits.
                if bytes.len() > 64 {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut capture = Capture::new(Full).unwrap();
        let passing = Passing {
            frame: Frame {
                bytes: vec![0; 200],
                ..Frame::default()
            },
            source: 0,
            destination: 1,
            delay: 0,
        };
        let mut out = Vec::new();
        capture.pass(passing, &mut out);
        assert_eq!(out.len(), 1);
        let error = capture.finish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
