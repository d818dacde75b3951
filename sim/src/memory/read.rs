//! The read side of host memory: `ar` in, `r` out.

use std::collections::VecDeque;

use super::{Burst, MapTable, MemoryConfig, MemoryCount};
use crate::pins::{AddressBeat, BEAT_BYTES, Inputs, Outputs, RESP_DECERR, RESP_OKAY, ReadBeat};
use crate::protocol::{Channel, Hold, Violation};
use crate::seed::Idle;

pub(super) struct ReadPort {
    config: MemoryConfig,
    bursts: VecDeque<Burst>,
    /// The beat that is offered and not yet taken.
    offered: ReadBeat,
    address_idle: Idle,
    data_idle: Idle,
    hold: Hold<AddressBeat>,
}

impl ReadPort {
    pub fn new(config: MemoryConfig, seed: u64, card: usize) -> Self {
        Self {
            config,
            bursts: VecDeque::with_capacity(config.outstanding),
            offered: ReadBeat::default(),
            address_idle: Idle::new(config.pressure, seed, card, "memory.ar"),
            data_idle: Idle::new(config.pressure, seed, card, "memory.r"),
            hold: Hold::new(Channel::ReadAddress),
        }
    }

    pub fn is_idle(&self) -> bool {
        self.bursts.is_empty() && !self.offered.valid
    }

    #[inline]
    pub fn drive(
        &mut self,
        cycle: u64,
        open: bool,
        map: &mut MapTable,
        count: &mut MemoryCount,
        inputs: &mut Inputs,
    ) {
        let answers = self.data_idle.open() && open;
        if !self.offered.valid
            && answers
            && let Some(burst) = self.bursts.front_mut()
            && burst.due <= cycle
        {
            let word = map.read(burst.beat_addr());
            burst.done += 1;
            burst.unmapped |= word.is_none();
            self.offered = ReadBeat {
                valid: true,
                id: burst.id,
                data: word.unwrap_or(0),
                resp: if word.is_some() {
                    RESP_OKAY
                } else {
                    RESP_DECERR
                },
                last: burst.done == burst.beats,
            };
            count.read_bytes += BEAT_BYTES as u64;
            if self.offered.last {
                count.reads += 1;
                count.unmapped += u64::from(burst.unmapped);
                self.bursts.pop_front();
            }
        }
        inputs.r = self.offered;
        let takes = self.address_idle.open() && open;
        inputs.ar_ready = takes && self.bursts.len() < self.config.outstanding.max(1);
    }

    #[inline]
    pub fn sample(
        &mut self,
        cycle: u64,
        inputs: &Inputs,
        outputs: &Outputs,
    ) -> Result<(), Violation> {
        if inputs.r.valid && outputs.r_ready {
            self.offered = ReadBeat::default();
        }
        self.hold
            .check(outputs.ar.valid, inputs.ar_ready, outputs.ar)?;
        if outputs.ar.valid && inputs.ar_ready {
            let due = cycle + u64::from(self.config.latency.max(1));
            self.bursts
                .push_back(Burst::accept(Channel::ReadAddress, &outputs.ar, due)?);
        }
        Ok(())
    }
}
