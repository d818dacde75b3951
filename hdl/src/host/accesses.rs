//! The request side that the two DMA engines share: takes the accesses of several clients in turn.
//!
//! ```text
//!   request[i] ─► Measure ─► in turn ─┬─► Bursts ─────────────► burst
//!                                     └─► accesses under way ─► access
//! ```
//!
//! An access enters both queues in the same cycle. So the bursts, and the accesses that the data belong to, come out in the
//! order in which the requests were taken, each at the speed of its own taker. While `quiet`, no request is taken.

use super::bursts::{Burst, Bursts, Start};
use super::dma::{Access, Measure};
use crate::prelude::*;
use crate::prim::{Fifo, RoundRobin};
use crate::types::DmaRequest;

/// The request side of a DMA engine.
#[block(clients: usize, outstanding: usize)]
pub(super) struct Accesses {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets everything.
    pub reset: Signal<In, Bit>,
    /// What client `i` asks for.
    #[each(clients)]
    pub request: Vec<Stream<In, DmaRequest>>,
    /// No request is taken.
    pub quiet: Signal<In, Bit>,
    /// Their bursts.
    pub burst: Stream<Out, Burst>,
    /// The oldest access whose data aren't through.
    pub access: Stream<Out, Access>,
    /// There is none.
    pub empty: Signal<Out, Bit>,

    #[is(RoundRobin::new(clients))]
    turn: RoundRobin,
    requests: Signal<Local, Bits<32>>,
    chosen: Signal<Local, DmaRequest>,
    #[each(clients)]
    measure: Vec<Measure>,
    measured: Signal<Local, Access>,
    in_page: Signal<Local, Bit>,
    accept: Signal<Local, Bit>,
    bursts: Bursts,
    #[is(Fifo::new(outstanding))]
    under_way: Fifo<Access>,
    dma_length_is_not_zero: Check,
    #[is(clients)]
    _clients: usize,
}

impl Accesses {
    /// The side for `clients` clients, with at most `outstanding` accesses under way.
    ///
    /// # Panics
    /// If there are no clients or more than 32, or `outstanding` is below 2.
    pub(super) fn new(clients: usize, outstanding: usize) -> Self {
        Self::build(clients, outstanding)
    }
}

#[block(clients = self._clients)]
impl Logic for Accesses {
    fn update(&mut self) {
        // Each request is measured before one is chosen, since the choice comes late.
        for i in 0..self._clients {
            self.measure[i].client.next = i.to_bits();
            self.measure[i].request.next = self.request[i].data.val();
        }
        self.requests.next = 0.into();
        self.chosen.next = self.request[0].data.val();
        self.measured.next = self.measure[0].access.val();
        self.in_page.next = self.measure[0].in_page.val();
        for i in 0..self._clients {
            self.requests.next = self
                .requests
                .val()
                .replace_bit(i, self.request[i].valid.val());
            if self.turn.index.val() == i.to_bits() {
                self.chosen.next = self.request[i].data.val();
                self.measured.next = self.measure[i].access.val();
                self.in_page.next = self.measure[i].in_page.val();
            }
        }
        self.turn.request.next = self.requests.val();
        self.accept.next = self.turn.valid.val()
            & self.bursts.start.ready.val()
            & self.under_way.input.ready.val()
            & !self.quiet.val();
        self.turn.advance.next = self.accept.val();
        for i in 0..self._clients {
            self.request[i].ready.next = self.accept.val() & (self.turn.index.val() == i.to_bits());
        }
        send!(
            self.bursts.start,
            self.accept.val(),
            Start {
                client: self.measured.val().client,
                address: self.chosen.val().address,
                beats: self.measured.val().beats,
                in_page: self.in_page.val(),
            }
        );
        send!(self.under_way.input, self.accept.val(), self.measured.val());
        join!(self.bursts.burst => self.burst);
        join!(self.under_way.output => self.access);
        self.empty.next = self.under_way.level.val() == 0;
        self.dma_length_is_not_zero.ok.next = !self.accept.val() | self.chosen.val().length.any();
    }
}
