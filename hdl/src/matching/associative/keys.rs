//! Keys: the one that is searched for and the one that is inserted.

use super::{Associative, AssociativeSearch};
use crate::prelude::*;

#[block]
impl Associative {
    /// The key goes to all entries from registers, and the new receive with it.
    pub(super) fn compare(&mut self) {
        // Bits that no endpoint and no source has aren't held.
        self.own_endpoint.next = self.insert_endpoint.val() & self.endpoint_bits.val();
        self.own_pair.next = self.pair.val() & self.pair_bits.val();
        self.unknown_pair.next = (self.pair.val() & !self.pair_bits.val()).any();
        self.key_endpoint_unknown.d.next = (self.endpoint.val() & !self.endpoint_bits.val()).any();
        self.key_pair_unknown.d.next = self.unknown_pair.val();
        self.unknown.next = self.key_endpoint_unknown.q.val()
            | ((self.by_envelope.q.val() | self.by_pair.q.val()) & self.key_pair_unknown.q.val());
        // Only registers drive what goes to all entries.
        self.comparing.d.next = self.search.val();
        self.comparing_to_take.d.next = self.take.val();
        self.by_envelope.d.next = self.by.val() == AssociativeSearch::Envelope;
        self.by_request.d.next = self.by.val() == AssociativeSearch::Request;
        self.by_pair.d.next = self.by.val() == AssociativeSearch::Pair;
        self.key_endpoint.d.next = self.endpoint.val();
        self.key_pair.d.next = self.pair.val();
        self.key_context.d.next = self.context_id.val();
        self.key_match_bits.d.next = self.match_bits.val();
        self.key_request.d.next = self.request.val();
        self.inserting.d.next = self.insert.val();
        if self.insert.val() {
            self.new_endpoint.d.next = self.own_endpoint.val();
            self.new_bit.d.next = bits::<32>(1) << self.own_endpoint.val();
            self.new_pair.d.next = self.own_pair.val();
            self.new_any_source.d.next = self.any_source.val();
            self.new_context.d.next = self.context_id.val();
            self.new_match_bits.d.next = self.match_bits.val();
            self.new_ignore_bits.d.next = self.ignore_bits.val();
            self.new_request.d.next = self.request.val();
            self.new_age.d.next = self.age.val();
            self.new_multi.d.next = self.multi.val();
            self.new_place.d.next = self.order.place_index.val();
        }
        self.joining.d.next = self.comparing.q.val() & !self.drop.val();
        self.joining_to_take.d.next = self.comparing_to_take.q.val();
        self.choosing.d.next = self.joining.q.val();
        self.choosing_to_take.d.next = self.joining_to_take.q.val();
        self.takes.d.next = self.choosing.q.val() & self.choosing_to_take.q.val();
        self.alive.next = self.order.chosen.val() & self.order.living.val();
        self.hits.next = 0.into();
        for i in 0..self._n {
            self.entry[i].load.next = self.order.filling.val().get_bit(i);
            self.entry[i].present.next = self.order.present.val().get_bit(i);
            self.entry[i].remains.next = self.order.remaining.val().get_bit(i);
            self.entry[i].by_envelope.next = self.by_envelope.q.val();
            self.entry[i].by_request.next = self.by_request.q.val();
            self.entry[i].by_pair.next = self.by_pair.q.val();
            self.entry[i].unknown.next = self.unknown.val();
            self.entry[i].endpoint.next = self.key_endpoint.q.val() & self.endpoint_bits.val();
            self.entry[i].pair.next = self.key_pair.q.val() & self.pair_bits.val();
            self.entry[i].context_id.next = self.key_context.q.val();
            self.entry[i].match_bits.next = self.key_match_bits.q.val();
            self.entry[i].request.next = self.key_request.q.val();
            self.entry[i].new_endpoint.next = self.new_endpoint.q.val();
            self.entry[i].new_pair.next = self.new_pair.q.val();
            self.entry[i].new_any_source.next = self.new_any_source.q.val();
            self.entry[i].new_context.next = self.new_context.q.val();
            self.entry[i].new_match_bits.next = self.new_match_bits.q.val();
            self.entry[i].new_ignore_bits.next = self.new_ignore_bits.q.val();
            self.entry[i].new_request.next = self.new_request.q.val();
            self.entry[i].new_age.next = self.new_age.q.val();
            self.entry[i].judged.next = self.judged.q.val().get_bit(i);
            self.entry[i].recalled.next = self.recalled.q.val().get_bit(i);
            self.entry[i].chosen_age.next = self.ages.read_data.val();
            self.entry[i].chosen.next = self.alive.val().get_bit(i) & !self.departed.q.val();
            self.entry[i].searched_endpoint.next = self.searched_endpoint.q.val();
            self.entry[i].chosen_endpoint.next = self.chosen_endpoint.q.val();
            self.hits.next = self.hits.val().replace_bit(i, self.entry[i].hit.val());
        }
    }
}
