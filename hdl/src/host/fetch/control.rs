//! Control requests: rings are set, endpoints begin and stop.

use super::Fetch;
use crate::prelude::*;
use abi::control::{Operation, RING_BITS, RING_LIST, RING_SEND};

#[block]
impl Fetch {
    /// What is asked, and whether it may be done: of a stop and a clear not before both rings are at rest, and of a ring not while it has entries inside.
    pub(super) fn obey(&mut self) {
        self.ring_setup.next = bit_cast::<128, 320>(self.control.data.val().data).into();
        self.endpoint_setup.next = bit_cast::<64, 320>(self.control.data.val().data).into();
        self.target.next = self.control.data.val().index;
        self.set_ring.next = self.control.valid.val()
            & (self.control.data.val().operation == Operation::RingSet)
            & (((self.target.val() & 3) == RING_SEND) | ((self.target.val() & 3) == RING_LIST));
        self.set_endpoint.next = self.control.valid.val()
            & (self.control.data.val().operation == Operation::EndpointSet);
        self.stop_endpoint.next = self.control.valid.val()
            & (self.control.data.val().operation == Operation::EndpointStop);
        self.clear_endpoint.next = self.control.valid.val()
            & (self.control.data.val().operation == Operation::EndpointClear);
        // Rings here are two an endpoint, the list ring behind the send ring.
        self.set_number.next = (self.target.val() >> RING_BITS) << 1;
        if (self.target.val() & 3) == RING_LIST {
            self.set_number.next = ((self.target.val() >> RING_BITS) << 1) | 1;
        }
        self.runs.next = false;
        self.busy.next = false;
        for i in 0..self._n {
            if self.target.val() == i.to_bits() {
                self.runs.next = self.running[i].q.val();
                self.busy.next = (self.stop_endpoint.val() | self.clear_endpoint.val())
                    & !(self.ring[2 * i].empty.val() & self.ring[2 * i + 1].empty.val());
                if self.set_endpoint.val() {
                    self.running[i].d.next = true;
                    self.domain[i].d.next = self.endpoint_setup.val().domain;
                }
                if self.stop_endpoint.val() | self.clear_endpoint.val() {
                    self.running[i].d.next = false;
                }
            }
        }
        for i in 0..self._rings {
            if self.set_ring.val()
                & (self.set_number.val() == i.to_bits())
                & !self.ring[i].empty.val()
            {
                self.busy.next = true;
            }
        }
        self.control.ready.next = self.control.valid.val()
            & !self.busy.val()
            & !((self.stop_endpoint.val() | self.clear_endpoint.val()) & self.runs.val());
        self.clearing.next = self.clear_endpoint.val() & self.control.ready.val();
        self.setting.next = self.set_ring.val() & self.control.ready.val();
    }
}
