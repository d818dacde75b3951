//! A record of what can be seen on a card's pins, to split a latency into its stages. Off unless asked for.

use std::collections::VecDeque;

use crate::pins::{BEAT_BYTES, Inputs, Outputs};

/// Something seen on the pins in one cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A register write has been accepted: address and data have both been taken.
    RegisterWrite {
        /// Byte offset.
        offset: u32,
        /// Value.
        value: u32,
    },
    /// A read burst has been accepted.
    ReadAddress {
        /// Its first byte.
        addr: u64,
        /// Bytes of its beats.
        bytes: u32,
    },
    /// The last beat of a read burst has been taken.
    ReadData {
        /// First byte of the burst.
        addr: u64,
    },
    /// A write burst has been accepted.
    WriteAddress {
        /// Its first byte.
        addr: u64,
        /// Bytes of its beats.
        bytes: u32,
    },
    /// The last beat of a write burst has been taken.
    WriteData,
    /// The response of a write burst has been taken.
    WriteResponse {
        /// First byte of the burst.
        addr: u64,
    },
    /// The first beat of a frame has left the card.
    TransmitFirst,
    /// The last beat of a frame has left the card.
    TransmitLast,
    /// The card has taken the first beat of a frame.
    ReceiveFirst,
    /// The card has taken the last beat of a frame.
    ReceiveLast,
    /// Interrupt lines have risen: a bit for each.
    Interrupt {
        /// Those that rose.
        lines: u32,
    },
}

/// A moment and its cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Cycle.
    pub cycle: u64,
    /// What was seen.
    pub moment: Moment,
}

/// Watches the pins of one card.
#[derive(Default)]
pub struct Recorder {
    records: Vec<Record>,
    reads: VecDeque<u64>,
    writes: VecDeque<u64>,
    write_offset: Option<u32>,
    write_value: Option<u32>,
    transmitting: bool,
    receiving: bool,
    interrupt: u32,
}

impl Recorder {
    /// Looks at one cycle.
    pub fn observe(&mut self, cycle: u64, inputs: &Inputs, outputs: &Outputs) {
        let records = &mut self.records;
        let mut note = |moment| records.push(Record { cycle, moment });
        let bytes = |len: u8| (u32::from(len) + 1) * BEAT_BYTES as u32;
        if inputs.lite.awvalid && outputs.lite.awready {
            self.write_offset = Some(inputs.lite.awaddr);
        }
        if inputs.lite.wvalid && outputs.lite.wready {
            self.write_value = Some(inputs.lite.wdata);
        }
        if let (Some(offset), Some(value)) = (self.write_offset, self.write_value) {
            (self.write_offset, self.write_value) = (None, None);
            note(Moment::RegisterWrite { offset, value });
        }
        if outputs.ar.valid && inputs.ar_ready {
            let addr = outputs.ar.addr;
            self.reads.push_back(addr);
            note(Moment::ReadAddress {
                addr,
                bytes: bytes(outputs.ar.len),
            });
        }
        if inputs.r.valid
            && outputs.r_ready
            && inputs.r.last
            && let Some(addr) = self.reads.pop_front()
        {
            note(Moment::ReadData { addr });
        }
        if outputs.aw.valid && inputs.aw_ready {
            let addr = outputs.aw.addr;
            self.writes.push_back(addr);
            note(Moment::WriteAddress {
                addr,
                bytes: bytes(outputs.aw.len),
            });
        }
        if outputs.w.valid && inputs.w_ready && outputs.w.last {
            note(Moment::WriteData);
        }
        if inputs.b.valid
            && outputs.b_ready
            && let Some(addr) = self.writes.pop_front()
        {
            note(Moment::WriteResponse { addr });
        }
        if outputs.tx.valid && inputs.tx_ready {
            if !self.transmitting {
                note(Moment::TransmitFirst);
            }
            self.transmitting = !outputs.tx.last;
            if outputs.tx.last {
                note(Moment::TransmitLast);
            }
        }
        if inputs.rx.valid && outputs.rx_ready {
            if !self.receiving {
                note(Moment::ReceiveFirst);
            }
            self.receiving = !inputs.rx.last;
            if inputs.rx.last {
                note(Moment::ReceiveLast);
            }
        }
        let lines = outputs.interrupts & !self.interrupt;
        self.interrupt = outputs.interrupts;
        if lines != 0 {
            note(Moment::Interrupt { lines });
        }
    }

    /// What was seen, in order.
    pub fn into_records(self) -> Vec<Record> {
        self.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pins::{
        AddressBeat, LiteIn, LiteOut, ReadBeat, ResponseBeat, StreamBeat, WriteBeat,
    };

    #[test]
    fn each_moment_is_noted_in_its_cycle() {
        let beat = |last| StreamBeat {
            valid: true,
            last,
            ..StreamBeat::default()
        };
        let address = |addr| AddressBeat {
            valid: true,
            addr,
            len: 1,
            ..AddressBeat::default()
        };
        let ready = Inputs {
            ar_ready: true,
            aw_ready: true,
            w_ready: true,
            tx_ready: true,
            ..Inputs::default()
        };
        let taken = Outputs {
            lite: LiteOut {
                awready: true,
                wready: true,
                ..LiteOut::default()
            },
            r_ready: true,
            b_ready: true,
            rx_ready: true,
            ..Outputs::default()
        };
        let lite = |awvalid, wvalid| LiteIn {
            awvalid,
            awaddr: 0x1000,
            wvalid,
            wdata: 7,
            ..LiteIn::default()
        };
        let cycles = [
            // The data is taken a cycle before the address; a read is accepted.
            (
                Inputs {
                    lite: lite(false, true),
                    ..ready
                },
                Outputs {
                    ar: address(64),
                    ..taken
                },
            ),
            (
                Inputs {
                    lite: lite(true, false),
                    ..ready
                },
                Outputs {
                    aw: address(128),
                    ..taken
                },
            ),
            // Not taken, so nothing.
            (
                Inputs::default(),
                Outputs {
                    ar: address(72),
                    tx: beat(true),
                    ..taken
                },
            ),
            (
                Inputs {
                    r: ReadBeat {
                        valid: true,
                        ..ReadBeat::default()
                    },
                    rx: beat(false),
                    ..ready
                },
                Outputs {
                    tx: beat(false),
                    w: WriteBeat {
                        valid: true,
                        last: true,
                        ..WriteBeat::default()
                    },
                    ..taken
                },
            ),
            (
                Inputs {
                    r: ReadBeat {
                        valid: true,
                        last: true,
                        ..ReadBeat::default()
                    },
                    b: ResponseBeat {
                        valid: true,
                        ..ResponseBeat::default()
                    },
                    rx: beat(true),
                    ..ready
                },
                Outputs {
                    tx: beat(true),
                    interrupts: 2,
                    ..taken
                },
            ),
            (
                ready,
                Outputs {
                    interrupts: 6,
                    tx: beat(true),
                    ..taken
                },
            ),
        ];
        let mut recorder = Recorder::default();
        for (cycle, (inputs, outputs)) in cycles.iter().enumerate() {
            recorder.observe(cycle as u64, inputs, outputs);
        }
        let seen: Vec<_> = recorder
            .into_records()
            .into_iter()
            .map(|record| (record.cycle, record.moment))
            .collect();
        let expected = [
            (
                0,
                Moment::ReadAddress {
                    addr: 64,
                    bytes: 16,
                },
            ),
            (
                1,
                Moment::RegisterWrite {
                    offset: 0x1000,
                    value: 7,
                },
            ),
            (
                1,
                Moment::WriteAddress {
                    addr: 128,
                    bytes: 16,
                },
            ),
            (3, Moment::WriteData),
            (3, Moment::TransmitFirst),
            (3, Moment::ReceiveFirst),
            (4, Moment::ReadData { addr: 64 }),
            (4, Moment::WriteResponse { addr: 128 }),
            (4, Moment::TransmitLast),
            (4, Moment::ReceiveLast),
            (4, Moment::Interrupt { lines: 2 }),
            (5, Moment::TransmitFirst),
            (5, Moment::TransmitLast),
            (5, Moment::Interrupt { lines: 4 }),
        ];
        assert_eq!(seen, expected);
    }
}
