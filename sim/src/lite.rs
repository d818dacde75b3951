//! The host's processor as the AXI4-Lite manager of the card's registers.
//!
//! One access is on the bus at a time, in the order in which they were started, as a processor does with
//! uncached accesses. Each channel waits by itself for a seeded time before it offers or takes, so
//! that address and data of a write come in either order.
//!
//! ```text
//!  start ─► queue ─► aw ─┬─► b ─► finished
//!                    w ──┘
//!                    ar ───► r ─►
//! ```

use std::collections::VecDeque;

use crate::pins::{LiteIn, LiteOut, RESP_OKAY};
use crate::protocol::{Channel, Hold, Violation};
use crate::seed::{BackPressure, Idle};

/// Cycles after which a register access that isn't answered is a violation: a processor would hang, or
/// take a bus error.
pub const PATIENCE: u64 = 100_000;

/// A register access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The thread that waits for it, which gets the result; none for a posted write.
    pub tag: Option<usize>,
    /// First cycle in which it may be on the bus.
    pub start: u64,
    /// Byte offset.
    pub offset: u32,
    /// What is to be written; `None` reads.
    pub write: Option<u32>,
}

/// The end of a register access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Which.
    pub access: Access,
    /// The data of a read, zero for a write; the response if it wasn't OKAY.
    pub result: Result<u32, u8>,
}

/// The manager.
pub struct LiteMaster {
    queue: VecDeque<Access>,
    lines: LiteIn,
    /// Address (of the access at the front) still to be offered.
    address_due: bool,
    data_due: bool,
    /// The access at the front has begun, in cycle `since`.
    busy: bool,
    since: u64,
    /// Address and data have both been taken, so a response may come.
    address_taken: bool,
    data_taken: bool,
    address_idle: Idle,
    data_idle: Idle,
    answer_idle: Idle,
    read_hold: Hold<(u32, u8)>,
    write_hold: Hold<u8>,
}

impl LiteMaster {
    /// A manager with nothing to do.
    pub fn new(pressure: BackPressure, seed: u64, card: usize) -> Self {
        let idle = |port| Idle::new(pressure, seed, card, port);
        Self {
            queue: VecDeque::new(),
            lines: LiteIn::default(),
            address_due: false,
            data_due: false,
            busy: false,
            since: 0,
            address_taken: false,
            data_taken: false,
            address_idle: idle("lite.address"),
            data_idle: idle("lite.data"),
            answer_idle: idle("lite.answer"),
            read_hold: Hold::new(Channel::RegisterRead),
            write_hold: Hold::new(Channel::RegisterResponse),
        }
    }

    /// Queues an access.
    pub fn start(&mut self, access: Access) {
        self.queue.push_back(access);
    }

    /// Whether no access is under way or queued.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Fills this cycle's inputs.
    #[inline]
    pub fn drive(&mut self, cycle: u64, inputs: &mut LiteIn) {
        if let Some(access) = self.queue.front() {
            self.advance(cycle, *access);
        } else {
            self.lines = LiteIn::default();
        }
        *inputs = self.lines;
    }

    fn advance(&mut self, cycle: u64, access: Access) {
        let (address, data, answer) = (
            self.address_idle.open(),
            self.data_idle.open(),
            self.answer_idle.open(),
        );
        if !self.busy {
            if cycle < access.start {
                self.lines = LiteIn::default();
                return;
            }
            self.busy = true;
            self.since = cycle;
            self.address_due = true;
            self.data_due = access.write.is_some();
            self.address_taken = false;
            self.data_taken = !self.data_due;
        }
        if self.address_due && address {
            self.address_due = false;
            if access.write.is_some() {
                self.lines.awvalid = true;
                self.lines.awaddr = access.offset;
            } else {
                self.lines.arvalid = true;
                self.lines.araddr = access.offset;
            }
        }
        if self.data_due
            && data
            && let Some(value) = access.write
        {
            self.data_due = false;
            self.lines.wvalid = true;
            self.lines.wdata = value;
            self.lines.wstrb = 0xf;
        }
        self.lines.bready = answer && access.write.is_some();
        self.lines.rready = answer && access.write.is_none();
    }

    /// Looks at what happened in this cycle: the access that it ended, if it did.
    ///
    /// # Errors
    /// The rule that the card broke.
    #[inline]
    pub fn sample(
        &mut self,
        cycle: u64,
        inputs: &LiteIn,
        outputs: &LiteOut,
    ) -> Result<Option<Finished>, Violation> {
        self.read_hold.check(
            outputs.rvalid,
            inputs.rready,
            (outputs.rdata, outputs.rresp),
        )?;
        self.write_hold
            .check(outputs.bvalid, inputs.bready, outputs.bresp)?;
        if outputs.rvalid || outputs.bvalid {
            // A response may come in the cycle after the last of its request at the earliest (IHI 0022 A3.3.1).
            let ready = self.busy && self.address_taken && self.data_taken;
            let write = self.queue.front().is_some_and(|a| a.write.is_some());
            if outputs.rvalid && (!ready || write) {
                return Err(Violation::Unasked(Channel::RegisterRead));
            }
            if outputs.bvalid && (!ready || !write) {
                return Err(Violation::Unasked(Channel::RegisterResponse));
            }
        }
        if !self.busy {
            return Ok(None);
        }
        if inputs.awvalid && outputs.awready || inputs.arvalid && outputs.arready {
            self.lines.awvalid = false;
            self.lines.arvalid = false;
            self.address_taken = true;
        }
        if inputs.wvalid && outputs.wready {
            self.lines.wvalid = false;
            self.data_taken = true;
        }
        let (resp, data) = if outputs.rvalid && inputs.rready {
            (outputs.rresp, outputs.rdata)
        } else if outputs.bvalid && inputs.bready {
            (outputs.bresp, 0)
        } else if cycle - self.since < PATIENCE {
            return Ok(None);
        } else {
            let access = self.queue.front().expect("an access is busy");
            return Err(Violation::NoAnswer {
                channel: match access.write {
                    Some(_) => Channel::RegisterResponse,
                    None => Channel::RegisterRead,
                },
                offset: access.offset,
                cycles: PATIENCE,
            });
        };
        self.busy = false;
        self.lines = LiteIn::default();
        let access = self.queue.pop_front().expect("an access is busy");
        Ok(Some(Finished {
            access,
            result: if resp == RESP_OKAY {
                Ok(data)
            } else {
                Err(resp)
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pins::RESP_SLVERR;
    use crate::seed::generator;
    use rand::Rng;

    /// A register file of four words that answers after random times.
    #[derive(Default)]
    struct Slave {
        words: [u32; 4],
        write_address: Option<u32>,
        write_data: Option<u32>,
        read_address: Option<u32>,
        out: LiteOut,
    }

    impl Slave {
        fn drive(&mut self, rng: &mut impl Rng) -> LiteOut {
            self.out.awready = self.write_address.is_none() && rng.random_bool(0.5);
            self.out.wready = self.write_data.is_none() && rng.random_bool(0.5);
            self.out.arready = self.read_address.is_none() && rng.random_bool(0.5);
            self.out
        }

        fn sample(&mut self, inputs: &LiteIn, rng: &mut impl Rng) {
            if self.out.bvalid && inputs.bready {
                self.out.bvalid = false;
                (self.write_address, self.write_data) = (None, None);
            }
            if self.out.rvalid && inputs.rready {
                self.out.rvalid = false;
                self.read_address = None;
            }
            if inputs.awvalid && self.out.awready {
                self.write_address = Some(inputs.awaddr);
            }
            if inputs.wvalid && self.out.wready {
                self.write_data = Some(inputs.wdata);
            }
            if inputs.arvalid && self.out.arready {
                self.read_address = Some(inputs.araddr);
            }
            if let (Some(address), Some(data), false) =
                (self.write_address, self.write_data, self.out.bvalid)
                && rng.random_bool(0.5)
            {
                self.out.bvalid = true;
                match self.words.get_mut(address as usize / 4) {
                    Some(word) => (*word, self.out.bresp) = (data, RESP_OKAY),
                    None => self.out.bresp = RESP_SLVERR,
                }
            }
            if let (Some(address), false) = (self.read_address, self.out.rvalid)
                && rng.random_bool(0.5)
            {
                self.out.rvalid = true;
                let word = self.words.get(address as usize / 4);
                self.out.rdata = word.copied().unwrap_or(0);
                self.out.rresp = if word.is_some() {
                    RESP_OKAY
                } else {
                    RESP_SLVERR
                };
            }
        }
    }

    #[test]
    fn accesses_arrive_in_order_whatever_the_pressure() {
        for seed in 0..40 {
            let pressure = if seed % 4 == 0 {
                BackPressure::NONE
            } else {
                BackPressure::SOME
            };
            let mut rng = generator(seed, 0, "test");
            let mut master = LiteMaster::new(pressure, seed, 0);
            let mut slave = Slave::default();
            let mut words = [0; 4];
            let mut expected = VecDeque::new();
            for tag in 0..200 {
                let word = rng.random_range(0..6);
                let write = rng.random_bool(0.5).then(|| rng.random());
                let result = match (words.get_mut(word), write) {
                    (None, _) => Err(RESP_SLVERR),
                    (Some(word), Some(value)) => {
                        *word = value;
                        Ok(0)
                    }
                    (Some(word), None) => Ok(*word),
                };
                let access = Access {
                    tag: Some(tag),
                    start: 3 * tag as u64,
                    offset: 4 * word as u32,
                    write,
                };
                expected.push_back(Finished { access, result });
                master.start(access);
            }
            let mut inputs = LiteIn::default();
            for cycle in 0..100_000 {
                master.drive(cycle, &mut inputs);
                let outputs = slave.drive(&mut rng);
                let finished = master.sample(cycle, &inputs, &outputs).unwrap();
                slave.sample(&inputs, &mut rng);
                if let Some(finished) = finished {
                    assert_eq!(Some(finished), expected.pop_front(), "seed {seed}");
                }
                if master.is_idle() {
                    break;
                }
            }
            assert!(expected.is_empty(), "seed {seed}");
            assert_eq!(slave.words, words, "seed {seed}");
        }
    }

    #[test]
    fn an_access_is_not_on_the_bus_before_its_start() {
        let mut master = LiteMaster::new(BackPressure::NONE, 0, 0);
        let access = Access {
            tag: None,
            start: 10,
            offset: 4,
            write: None,
        };
        master.start(access);
        let mut inputs = LiteIn::default();
        let quiet = LiteOut::default();
        for cycle in 0..=10 {
            master.drive(cycle, &mut inputs);
            assert_eq!(inputs.arvalid, cycle == 10);
            assert_eq!(master.sample(cycle, &inputs, &quiet), Ok(None));
        }
    }

    #[test]
    fn a_response_without_a_request_is_a_violation() {
        let mut master = LiteMaster::new(BackPressure::NONE, 0, 0);
        let mut inputs = LiteIn::default();
        master.drive(0, &mut inputs);
        let outputs = LiteOut {
            bvalid: true,
            ..LiteOut::default()
        };
        assert_eq!(
            master.sample(0, &inputs, &outputs),
            Err(Violation::Unasked(Channel::RegisterResponse))
        );
    }

    #[test]
    fn an_access_that_is_never_answered_is_a_violation() {
        for write in [None, Some(7)] {
            let mut master = LiteMaster::new(BackPressure::NONE, 0, 0);
            master.start(Access {
                tag: None,
                start: 5,
                offset: 0x10,
                write,
            });
            let mut inputs = LiteIn::default();
            let outputs = LiteOut {
                arready: true,
                awready: true,
                wready: true,
                ..LiteOut::default()
            };
            let end = (0..2 * PATIENCE).find_map(|cycle| {
                master.drive(cycle, &mut inputs);
                let error = master.sample(cycle, &inputs, &outputs).err()?;
                Some((cycle, error))
            });
            let channel = match write {
                Some(_) => Channel::RegisterResponse,
                None => Channel::RegisterRead,
            };
            let error = Violation::NoAnswer {
                channel,
                offset: 0x10,
                cycles: PATIENCE,
            };
            assert_eq!(end, Some((5 + PATIENCE, error)));
        }
    }
}
