//! The write side of host memory: `aw` and `w` in, `b` out.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::{Burst, MapTable, MemoryConfig, MemoryCount};
use crate::pins::{
    AddressBeat, BEAT_BYTES, Inputs, Outputs, RESP_DECERR, RESP_OKAY, ResponseBeat, WriteBeat,
};
use crate::protocol::{Channel, Hold, Violation};
use crate::seed::Idle;

/// Beats that wait for their address or their latency: two of the longest bursts that AXI4 has.
const BEATS: usize = 512;

pub(super) struct WritePort {
    config: MemoryConfig,
    /// Accepted and not answered. `done` counts the beats that have come; `due` is set by the last.
    bursts: VecDeque<Burst>,
    /// Bursts at the front of `bursts` that have all their beats.
    complete: usize,
    /// Beats of `bursts`, then those that came ahead of their address.
    beats: VecDeque<WriteBeat>,
    /// Beats at the end of `beats` that came ahead.
    ahead: usize,
    offered: ResponseBeat,
    address_idle: Idle,
    data_idle: Idle,
    response_idle: Idle,
    address_hold: Hold<AddressBeat>,
    data_hold: Hold<WriteBeat>,
}

impl WritePort {
    pub fn new(config: MemoryConfig, seed: u64, card: usize) -> Self {
        let idle = |port| Idle::new(config.pressure, seed, card, port);
        Self {
            config,
            bursts: VecDeque::with_capacity(config.outstanding),
            complete: 0,
            beats: VecDeque::with_capacity(BEATS),
            ahead: 0,
            offered: ResponseBeat::default(),
            address_idle: idle("memory.aw"),
            data_idle: idle("memory.w"),
            response_idle: idle("memory.b"),
            address_hold: Hold::new(Channel::WriteAddress),
            data_hold: Hold::new(Channel::WriteData),
        }
    }

    pub fn is_idle(&self) -> bool {
        self.bursts.is_empty() && self.beats.is_empty() && !self.offered.valid
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
        let answers = self.response_idle.open() && open;
        if !self.offered.valid
            && answers
            && self.complete > 0
            && let Some(burst) = self.bursts.front()
            && burst.due <= cycle
        {
            self.offered = self.commit(map, count);
        }
        inputs.b = self.offered;
        let takes = self.address_idle.open() && open;
        inputs.aw_ready = takes && self.bursts.len() < self.config.outstanding.max(1);
        inputs.w_ready = self.data_idle.open() && open && self.beats.len() < BEATS;
    }

    /// Puts the oldest burst into memory and makes its response.
    fn commit(&mut self, map: &mut MapTable, count: &mut MemoryCount) -> ResponseBeat {
        let mut burst = self.bursts.pop_front().expect("a burst is complete");
        self.complete -= 1;
        burst.done = 0;
        for beat in self.beats.drain(..usize::from(burst.beats)) {
            // The last word of a completion tells the host that the others are there.
            let order = if beat.last {
                Ordering::Release
            } else {
                Ordering::Relaxed
            };
            burst.unmapped |= !map.write(burst.beat_addr(), beat.data, beat.strb, order);
            burst.done += 1;
        }
        count.writes += 1;
        count.write_bytes += u64::from(burst.beats) * BEAT_BYTES as u64;
        count.unmapped += u64::from(burst.unmapped);
        ResponseBeat {
            valid: true,
            id: burst.id,
            resp: if burst.unmapped {
                RESP_DECERR
            } else {
                RESP_OKAY
            },
        }
    }

    #[inline]
    pub fn sample(
        &mut self,
        cycle: u64,
        inputs: &Inputs,
        outputs: &Outputs,
    ) -> Result<(), Violation> {
        if inputs.b.valid && outputs.b_ready {
            self.offered = ResponseBeat::default();
        }
        self.address_hold
            .check(outputs.aw.valid, inputs.aw_ready, outputs.aw)?;
        self.data_hold
            .check(outputs.w.valid, inputs.w_ready, outputs.w)?;
        let address = outputs.aw.valid && inputs.aw_ready;
        let data = outputs.w.valid && inputs.w_ready;
        if address {
            self.bursts
                .push_back(Burst::accept(Channel::WriteAddress, &outputs.aw, 0)?);
        }
        if data {
            self.beats.push_back(outputs.w);
            self.ahead += 1;
        }
        if address || data {
            self.join(cycle)?;
        }
        Ok(())
    }

    /// Gives beats to the bursts that wait for them.
    fn join(&mut self, cycle: u64) -> Result<(), Violation> {
        while self.ahead > 0
            && let Some(burst) = self.bursts.get_mut(self.complete)
        {
            let beat = &self.beats[self.beats.len() - self.ahead];
            self.ahead -= 1;
            let below = (1_u16 << (burst.addr % BEAT_BYTES as u64)) - 1;
            if burst.done == 0 && u16::from(beat.strb) & below != 0 {
                return Err(Violation::StrobeBelow {
                    strb: beat.strb,
                    addr: burst.addr,
                });
            }
            burst.done += 1;
            if beat.last != (burst.done == burst.beats) {
                return Err(Violation::WrongLast {
                    last: beat.last,
                    beat: burst.done,
                    beats: burst.beats,
                    addr: burst.addr,
                });
            }
            if beat.last {
                burst.due = cycle + u64::from(self.config.latency.max(1));
                self.complete += 1;
            }
        }
        Ok(())
    }
}
