//! An entry: one posted receive, which compares itself with every key.
//!
//! ```text
//!   key ──┬──► lower half of the match bits ──► register ─┐
//!         ├──► upper half                   ──► register ─┼──► agrees ──► hit
//!         ├──► context, handle              ──► register ─┤
//!         └──► endpoint, source, present    ──► register ─┘
//! ```

use crate::prelude::*;

/// One posted receive. It compares in four parts, which are joined a cycle later, so that no path is long.
#[block]
pub struct AssociativeEntry {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// Take the new receive.
    pub load: Signal<In, Bit>,
    /// This place holds a live receive.
    pub present: Signal<In, Bit>,
    /// This place holds a live receive that isn't being removed.
    pub remains: Signal<In, Bit>,
    /// Compare source, context and match bits; the handle; the source that is named.
    pub by_envelope: Signal<In, Bit>,
    /// See `by_envelope`.
    pub by_request: Signal<In, Bit>,
    /// See `by_envelope`.
    pub by_pair: Signal<In, Bit>,
    /// The endpoint or source that the key names doesn't exist: no entry agrees.
    pub unknown: Signal<In, Bit>,
    /// Key: endpoint.
    pub endpoint: Signal<In, Bits<8>>,
    /// Key: source.
    pub pair: Signal<In, Bits<16>>,
    /// Key: context.
    pub context_id: Signal<In, Bits<16>>,
    /// Key: match bits.
    pub match_bits: Signal<In, Bits<64>>,
    /// Key: handle of the receive.
    pub request: Signal<In, Bits<32>>,
    /// New receive: endpoint.
    pub new_endpoint: Signal<In, Bits<8>>,
    /// New receive: source.
    pub new_pair: Signal<In, Bits<16>>,
    /// New receive: any source matches.
    pub new_any_source: Signal<In, Bit>,
    /// New receive: context.
    pub new_context: Signal<In, Bits<16>>,
    /// New receive: match bits.
    pub new_match_bits: Signal<In, Bits<64>>,
    /// New receive: match bits that needn't agree.
    pub new_ignore_bits: Signal<In, Bits<64>>,
    /// New receive: handle.
    pub new_request: Signal<In, Bits<32>>,
    /// New receive: age.
    pub new_age: Signal<In, Bits<54>>,
    /// The key of two cycles before agreed with what was held here, and it stayed.
    pub hit: Signal<Out, Bit>,
    /// The age held.
    pub held_age_out: Signal<Out, Bits<54>>,
    /// The endpoint held.
    pub held_endpoint_out: Signal<Out, Bits<8>>,
    /// For the checks: this entry could have been chosen, and `chosen_age` is that of the one that was.
    pub judged: Signal<In, Bit>,
    /// For the checks: `chosen_age` is of this entry.
    pub recalled: Signal<In, Bit>,
    /// Age that the memory has of the chosen entry.
    pub chosen_age: Signal<In, Bits<54>>,
    /// For the checks: this entry is chosen, by a search that named `chosen_endpoint`.
    pub chosen: Signal<In, Bit>,
    /// See `chosen`.
    pub chosen_endpoint: Signal<In, Bits<8>>,
    /// For the checks: the endpoint that the key of two cycles before named.
    pub searched_endpoint: Signal<In, Bits<8>>,
    held_endpoint: Reg<Bits<8>>,
    held_pair: Reg<Bits<16>>,
    held_any_source: Reg<Bit>,
    held_context: Reg<Bits<16>>,
    held_match_bits: Reg<Bits<64>>,
    held_ignore_bits: Reg<Bits<64>>,
    held_request: Reg<Bits<32>>,
    held_age: Reg<Bits<54>>,
    // Which parts agreed: the lower match bits; the upper ones; context and handle; all else, if the entry is live.
    lower_agrees: Reg<Bit>,
    upper_agrees: Reg<Bit>,
    named_agrees: Reg<Bit>,
    rest_agrees: Reg<Bit>,
    /// All parts agreed, and the entry stays.
    agrees: Reg<Bit>,
    from_its_source: Signal<Local, Bit>,
    of_source: Signal<Local, Bit>,
    pair_agrees: Signal<Local, Bit>,
    context_agrees: Signal<Local, Bit>,
    same_handle: Signal<Local, Bit>,
    differing: Signal<Local, Bits<64>>,
    oldest_was_chosen: Check,
    memory_agrees: Check,
    found_of_its_endpoint: Check,
}

#[block]
impl Logic for AssociativeEntry {
    fn update(&mut self) {
        self.pair_agrees.next = self.held_pair.q.val() == self.pair.val();
        self.from_its_source.next = self.held_any_source.q.val() | self.pair_agrees.val();
        self.differing.next =
            (self.held_match_bits.q.val() ^ self.match_bits.val()) & !self.held_ignore_bits.q.val();
        self.context_agrees.next = self.held_context.q.val() == self.context_id.val();
        self.same_handle.next = self.held_request.q.val() == self.request.val();
        // Written flat, so that it is mapped to few levels.
        self.of_source.next = (!self.by_envelope.val() & !self.by_pair.val())
            | (self.by_envelope.val() & self.from_its_source.val())
            | (self.by_pair.val() & self.pair_agrees.val() & !self.held_any_source.q.val());
        self.lower_agrees.d.next =
            !self.differing.val().get_bits::<32>(0).any() | !self.by_envelope.val();
        self.upper_agrees.d.next =
            !self.differing.val().get_bits::<32>(32).any() | !self.by_envelope.val();
        self.named_agrees.d.next = (self.context_agrees.val() | !self.by_envelope.val())
            & (self.same_handle.val() | !self.by_request.val());
        self.rest_agrees.d.next = (self.held_endpoint.q.val() == self.endpoint.val())
            & self.of_source.val()
            & self.present.val()
            & !self.unknown.val();
        self.agrees.d.next = self.lower_agrees.q.val()
            & self.upper_agrees.q.val()
            & self.named_agrees.q.val()
            & self.rest_agrees.q.val()
            & self.remains.val();
        if self.load.val() {
            self.held_endpoint.d.next = self.new_endpoint.val();
            self.held_pair.d.next = self.new_pair.val();
            self.held_any_source.d.next = self.new_any_source.val();
            self.held_context.d.next = self.new_context.val();
            self.held_match_bits.d.next = self.new_match_bits.val();
            self.held_ignore_bits.d.next = self.new_ignore_bits.val();
            self.held_request.d.next = self.new_request.val();
            self.held_age.d.next = self.new_age.val();
        }
        self.hit.next = self.agrees.q.val();
        self.held_age_out.next = self.held_age.q.val();
        self.held_endpoint_out.next = self.held_endpoint.q.val();
        self.memory_agrees.ok.next =
            !self.recalled.val() | (self.chosen_age.val() == self.held_age.q.val());
        self.found_of_its_endpoint.ok.next = (!self.chosen.val()
            | (self.chosen_endpoint.val() == self.held_endpoint.q.val()))
            & (!self.agrees.q.val() | (self.searched_endpoint.val() == self.held_endpoint.q.val()));
        self.oldest_was_chosen.ok.next =
            !self.judged.val() | (self.chosen_age.val() <= self.held_age.q.val());
    }
}
