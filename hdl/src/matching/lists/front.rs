//! `front` takes a command, and keeps up to date beside it what it has to know of the command's endpoint.

use super::Lists;
use crate::prelude::*;
use crate::types::Operation;

#[block]
impl Lists {
    /// The command that comes, and what is known of its endpoint.
    pub(super) fn load(&mut self) {
        self.front_fills.next = self.front_valid.q.val();
        if self.front_moves.val() {
            self.front_fills.next = self.comes.val();
        }
        self.front_valid.d.next = self.front_fills.val();
        self.vacant.d.next = !self.front_fills.val();
        self.stale.d.next = self.learns.val() | self.learning.q.val();
        self.weighed.d.next =
            self.front_posts.q.val() & !self.stale.q.val() & !self.post_goes.val();
        // Which endpoint's classes are read doesn't wait for whether the offered command is taken.
        self.classes.next_endpoint.next = self.command.data.val().endpoint;
        if self.front_valid.q.val() & self.stale.q.val() {
            self.classes.next_endpoint.next = self.front.q.val().endpoint;
        }
        self.fresh.d.next = self.stale.q.val() | self.front_moves.val();
        self.classes.reads.next = self.stale.q.val() | self.front_loads.val();
        self.classes.fresh.next = self.fresh.q.val();
        // So is all else that `front` has to know. A receive or message that leaves meanwhile may show late; one that comes, comes
        // through `front` itself, except a receive that is appended to the associative side.
        self.classes.next_bit.next = self.next_bit.val();
        self.comes_live.next = self.classes.next_live.val();
        if self.weighed.q.val()
            & self.fits.val()
            & (self.next_endpoint.val() == self.front.q.val().endpoint.get_bits::<4>(0))
        {
            self.comes_live.next = self.classes.next_live.val() | self.fit_class.val();
        }
        self.front_live.d.next = self.classes.live.val();
        self.front_associative.d.next =
            (self.associative.waiting.val() & self.front_bit.q.val()).any();
        self.front_unexpected.d.next =
            (self.unexpected.waiting.val() & self.front_bit.q.val()).any();
        if self.front_moves.val() {
            self.front_live.d.next = self.comes_live.val();
            self.front_associative.d.next =
                (self.associative.waiting.val() & self.next_bit.val()).any();
            self.front_unexpected.d.next =
                (self.unexpected.waiting.val() & self.next_bit.val()).any();
        }
        if self.front_loads.val() {
            self.front_bit.d.next = self.next_bit.val();
            self.front.d.next = self.command.data.val();
            // Match bits that aren't compared are zero from here on, and cost no logic.
            self.front.d.next.match_bits =
                self.command.data.val().match_bits & self.match_mask.val();
            self.front.d.next.ignore_bits =
                self.command.data.val().ignore_bits & self.match_mask.val();
            self.front_arrives.d.next = false;
            self.front_posts.d.next = false;
            self.front_asks.d.next = false;
            self.front_direct.d.next = false;
            if self.comes.val() {
                match self.command.data.val().operation {
                    Operation::Arrive => {
                        self.front_arrives.d.next = true;
                    }
                    Operation::Post => {
                        self.front_posts.d.next = true;
                    }
                    Operation::Remove => {
                        self.front_asks.d.next = true;
                    }
                    Operation::Probe => {
                        self.front_asks.d.next = true;
                    }
                    Operation::Claim => {
                        self.front_asks.d.next = true;
                    }
                    Operation::TakeUnexpectedOfPair => {
                        self.front_asks.d.next = true;
                    }
                    _ => {
                        self.front_direct.d.next = true;
                    }
                }
            }
        }
    }
}
