//! What the answers mean: step by step, until what was asked is dealt with.
//!
//! An opcode of a list ring has an arm for what it asked ([`Ask`]), and goes on by the states of what it found: a message that is taken, named
//! or only looked at, or a receive that ends.

use super::{Answer, State};
use crate::envelope::asked::Ask;
use crate::prelude::*;
use crate::types::{Job, Way};
use abi::completion::CompletionKind;
use abi::request::CLAIM_SLOT_BITS;
use abi::status::Status;

#[block]
impl Answer {
    /// One `match` over all states: what leaves is chosen once, and not through a chain of choices.
    pub(super) fn deal(&mut self) {
        match self.state.q.val() {
            State::Wait => {
                self.at.d.next = self.answer.val().index;
                self.slot_asked.d.next = false;
                self.gives.d.next = false;
                if self.resumes.val() {
                    self.resumed.d.next = true;
                    self.looks_next.d.next = false;
                    self.at.d.next = self.aside_at.q.val();
                    self.messages.read_address.next = self.aside_at.q.val();
                    self.work.d.next = Job::default();
                    self.state.d.next = State::Taken;
                    if (self.aside.q.val().ask == Ask::Probe)
                        | (self.aside.q.val().ask == Ask::Claim)
                    {
                        self.state.d.next = State::Found;
                    }
                } else if self.begins.val() {
                    self.work.d.next = Job::default();
                    self.looks_next.d.next = self.is_aside.q.val();
                    match self.ask.val() {
                        Ask::Ends => {
                            self.work.d.next.ending = self.own_end.val();
                            self.count_invalid_requests.next = self.now.val().invalid;
                            self.unreserve.valid.next = self.now.val().releases;
                            self.state.d.next = State::Job;
                        }
                        Ask::Last => {
                            self.work.d.next.ending = self.own_end.val();
                            self.state.d.next = State::Job;
                        }
                        Ask::Mark => {
                            self.work.d.next.ending.marks = true;
                            self.state.d.next = State::Job;
                        }
                        Ask::Drop => {
                            self.work.d.next.way = Way::Drop;
                            self.work.d.next.arrived = self.now.val().arrived;
                            self.state.d.next = State::Job;
                        }
                        Ask::Revoked => {
                            self.count_rule_drops.next = true;
                            self.work.d.next.way = Way::Drop;
                            self.work.d.next.arrived = self.now.val().arrived;
                            self.work.d.next.ending.pair = self.now.val().pair;
                            self.work.d.next.ending.accepted = true;
                            self.work.d.next.ending.freed = self.revoked_frees.val();
                            self.state.d.next = State::Job;
                        }
                        Ask::Put => {
                            self.work.d.next.way = Way::Put;
                            self.work.d.next.length = self.now.val().arrived;
                            self.work.d.next.arrived = self.now.val().arrived;
                            self.work.d.next.target = self.now.val().immediate;
                            self.work.d.next.source = self.now.val().match_bits;
                            self.work.d.next.ending.pair = self.now.val().pair;
                            self.work.d.next.ending.accepted = true;
                            self.work.d.next.ending.freed = self.put_frees.val();
                            self.work.d.next.ending.put = true;
                            self.state.d.next = State::Job;
                        }
                        Ask::Get => {
                            self.work.d.next.ending.pair = self.now.val().pair;
                            self.work.d.next.ending.match_bits = self.now.val().match_bits;
                            self.work.d.next.ending.immediate = self.now.val().immediate;
                            self.work.d.next.ending.length = self.now.val().arrived;
                            self.work.d.next.ending.number = self.now.val().number;
                            self.work.d.next.ending.accepted = self.get_is_new.val();
                            self.work.d.next.ending.freed =
                                self.get_is_new.val() & self.put_frees.val();
                            self.work.d.next.ending.asks = true;
                            self.state.d.next = State::Job;
                        }
                        Ask::Answer => {
                            self.work.d.next.ending.pair = self.now.val().pair;
                            self.work.d.next.ending.number = self.now.val().number;
                            self.work.d.next.ending.status = Status::RemoteAccess.into();
                            self.work.d.next.ending.answers = true;
                            if !self.now.val().refused {
                                self.work.d.next.way = Way::Hit;
                                self.work.d.next.length = self.now.val().arrived;
                                self.work.d.next.arrived = self.now.val().arrived;
                                self.work.d.next.domain =
                                    self.now.val().immediate.get_bits::<8>(32);
                                self.work.d.next.key = self.now.val().immediate.get_bits::<32>(0);
                                self.work.d.next.target = self.now.val().match_bits;
                                self.work.d.next.ending.status = Status::Success.into();
                            }
                            self.state.d.next = State::Job;
                        }
                        Ask::Handle => {
                            self.state.d.next = State::Handle;
                        }
                        Ask::Message => {
                            self.state.d.next = State::Overflow;
                            if self.answer.val().found {
                                self.state.d.next = State::Met;
                            } else if self.now.val().append {
                                self.count_unexpected.next = true;
                                self.tells.next = true;
                                self.state.d.next = State::Slot;
                            } else if self.now.val().refusable {
                                // It is done with: its envelope is free again.
                                self.work.d.next.way = Way::Drop;
                                self.work.d.next.arrived = self.now.val().arrived;
                                self.work.d.next.ending.pair = self.now.val().pair;
                                self.work.d.next.ending.accepted = true;
                                self.work.d.next.ending.freed = self.refused_frees.val();
                                self.work.d.next.ending.refused = true;
                                self.state.d.next = State::Job;
                            }
                        }
                        Ask::Lost => {
                            self.removed.valid.next = true;
                            self.ended.next = true;
                            self.done.next = true;
                        }
                        Ask::Receive => {
                            self.found_before.d.next = self.answer.val().found;
                            if self.answer.val().found {
                                self.state.d.next = State::Taken;
                            } else {
                                self.hold.valid.next = self.answer.val().full;
                                self.receives.write.enable.next = !self.answer.val().full;
                                self.multi_posted.valid.next =
                                    self.now.val().multi & !self.answer.val().full;
                                self.ended.next = true;
                                self.done.next = true;
                            }
                        }
                        Ask::Take => {
                            self.work.d.next.ending = self.own_end.val();
                            self.state.d.next = State::Job;
                            if self.answer.val().found {
                                self.state.d.next = State::Taken;
                            }
                        }
                        Ask::Probe => {
                            self.work.d.next.ending = self.own_end.val();
                            self.state.d.next = State::Job;
                            if self.answer.val().found {
                                self.state.d.next = State::Found;
                            }
                        }
                        Ask::Claim => {
                            self.work.d.next.ending = self.own_end.val();
                            self.state.d.next = State::Job;
                            if self.answer.val().found {
                                self.state.d.next = State::Found;
                            }
                        }
                        Ask::Cancel => {
                            self.work.d.next.ending = self.own_end.val();
                            self.state.d.next = State::Job;
                            if self.answer.val().found {
                                self.state.d.next = State::Ended;
                            }
                        }
                        Ask::Flush => {
                            if self.answer.val().found {
                                self.state.d.next = State::Ended;
                            } else {
                                self.walked.valid.next = true;
                                self.walked.data.next = self.answer.val().more;
                                self.ended.next = true;
                                self.done.next = true;
                            }
                        }
                        Ask::Forget => {
                            self.walked.valid.next = true;
                            self.walked.data.next = self.answer.val().found;
                            self.ended.next = true;
                            self.done.next = true;
                        }
                        Ask::Retire => {
                            self.gone.next = true;
                            self.multi_gone.valid.next = true;
                            self.ended.next = true;
                            self.done.next = true;
                        }
                        _ => {}
                    }
                }
            }

            // ---------------------------------------------------------------- messages
            State::Met => {
                self.count_expected.next = true;
                self.gone.next = !self.receive_found.val().multi;
                self.receive.d.next = self.receive_found.val();
                self.work.d.next = Job {
                    way: Way::Hit,
                    length: self.bytes.val(),
                    arrived: self.now.val().arrived,
                    domain: self.receive_found.val().domain,
                    key: self.receive_found.val().key,
                    target: self.receive_found.val().address,
                    source: 0.into(),
                    ending: self.met.val(),
                };
                self.state.d.next = State::Job;
                if self.receive_found.val().multi {
                    self.state.d.next = State::Stays;
                }
            }
            State::Slot => {
                self.asks_slot.next = true;
                self.messages.read_address.next = !self.slot_answer.data.val().place;
                if self.slot_answer.valid.val() {
                    self.messages.write.enable.next = true;
                    self.fills.valid.next = true;
                    self.work.d.next.way = Way::Slot;
                    self.work.d.next.length = self.now.val().arrived;
                    self.work.d.next.arrived = self.now.val().arrived;
                    self.work.d.next.target = self.slot_answer.data.val().address;
                    self.work.d.next.ending.endpoint = self.now.val().endpoint;
                    self.work.d.next.ending.pair = self.now.val().pair;
                    self.work.d.next.ending.slot = self.now.val().slot;
                    self.work.d.next.ending.fills = true;
                    self.work.d.next.ending.accepted = true;
                    self.work.d.next.ending.freed = self.inserted_frees.val();
                    self.state.d.next = State::Job;
                }
            }
            State::Overflow => {
                self.overflow.valid.next = true;
                self.work.d.next.way = Way::Drop;
                self.work.d.next.arrived = self.now.val().arrived;
                if self.overflow.ready.val() {
                    self.state.d.next = State::Job;
                }
            }

            // ---------------------------------------------------------------- requests
            State::Ended => {
                self.gone.next = true;
                self.multi_gone.valid.next = self.receive_found.val().multi;
                self.work.d.next.ending.kind = CompletionKind::Receive.into();
                if self.ask.val() == Ask::Flush {
                    self.walked.valid.next = true;
                    self.walked.data.next = true;
                    self.multi_gone.data.next = self.receive_found.val().endpoint;
                    self.work.d.next.ending = self.own_end.val();
                    self.work.d.next.ending.kind = CompletionKind::Receive.into();
                    self.work.d.next.ending.endpoint = self.receive_found.val().endpoint;
                    self.work.d.next.ending.request = self.receive_found.val().request;
                    self.work.d.next.ending.immediate = self.ended_had.val();
                } else if self.cancels.val() {
                    self.unreserve.valid.next = true;
                    self.work.d.next.ending.status = Status::Cancelled.into();
                    self.work.d.next.ending.request = self.now.val().target;
                    self.work.d.next.ending.immediate = self.ended_had.val();
                } else {
                    self.work.d.next.ending.kind = self.now.val().kind;
                }
                self.state.d.next = State::Job;
            }
            State::Found => {
                self.messages.read_address.next = self.at.q.val();
                if !self.unsafe_yet.val() {
                    self.work.d.next.ending = self.took.val();
                    self.work.d.next.ending.status = Status::Success.into();
                    self.work.d.next.ending.multi = false;
                    self.work.d.next.ending.freed = false;
                    self.state.d.next = State::Job;
                }
                if !self.unsafe_yet.val() & (self.ask.val() == Ask::Claim) {
                    self.messages.write.enable.next = true;
                    self.messages.write.address.next = self.at.q.val();
                    self.messages.read_address.next = !self.at.q.val();
                    self.messages.write.data.next = self.claimed.val();
                    self.work.d.next.ending.handle = (bit_cast::<32, 16>(self.claims.q.val())
                        << (CLAIM_SLOT_BITS as usize))
                        | bit_cast::<32, 16>(self.found_slot.val());
                    self.gives.d.next = self.claimed_vacates.val();
                    self.work.d.next.ending.freed = self.claimed_frees.val();
                    self.claims.d.next = self.claims.q.val() + 1;
                    if self.claims.q.val() == 65535 {
                        self.claims.d.next = 1.into();
                    }
                }
            }
            State::Handle => {
                self.asks_slot.next = true;
                self.messages.read_address.next = self.slot_answer.data.val().place;
                self.at.d.next = self.slot_answer.data.val().place;
                self.slot_held.d.next = self.slot_answer.data.val();
                if self.slot_answer.valid.val() {
                    self.state.d.next = State::Named;
                }
            }
            State::Named => {
                self.work.d.next.ending = self.own_end.val();
                self.state.d.next = State::Job;
                if !self.handle_good.val() {
                    self.count_invalid_requests.next = true;
                    self.work.d.next.ending.status = Status::InvalidClaim.into();
                } else if self.now.val().buffer & !self.now.val().allowed {
                    self.count_invalid_requests.next = true;
                    self.work.d.next.ending.status = Status::LocalProtection.into();
                } else {
                    self.work.d.next.ending = self.took.val();
                    self.gives.d.next = true;
                    if self.now.val().buffer {
                        self.receive.d.next = self.posted.val();
                        self.work.d.next.way = Way::Copy;
                        self.work.d.next.domain = self.now.val().domain;
                        self.work.d.next.key = self.now.val().key;
                        self.work.d.next.length = self.bytes.val();
                        self.work.d.next.target = self.now.val().address;
                        self.work.d.next.source = self.slot_held.q.val().address;
                    } else {
                        self.work.d.next.ending.status = Status::Success.into();
                        self.work.d.next.ending.of_message = false;
                        self.work.d.next.ending.immediate = 0.into();
                        self.work.d.next.ending.freed = self.discarded_frees.val();
                    }
                }
            }
            State::Taken => {
                self.messages.read_address.next = self.at.q.val();
                if !self.unsafe_yet.val() {
                    self.receive.d.next = self.posted.val();
                    self.work.d.next.way = Way::Copy;
                    self.work.d.next.domain = self.now.val().domain;
                    self.work.d.next.key = self.now.val().key;
                    self.work.d.next.length = self.bytes.val();
                    self.work.d.next.target = self.now.val().address;
                    self.work.d.next.ending = self.took.val();
                    self.gives.d.next = true;
                    self.state.d.next = State::Where;
                }
            }
            State::Where => {
                self.asks_slot.next = true;
                self.work.d.next.source = self.slot_answer.data.val().address;
                if self.slot_answer.valid.val() {
                    self.state.d.next = State::Job;
                    if self.work.q.val().ending.multi {
                        self.state.d.next = State::Stays;
                    }
                }
            }

            // ---------------------------------------------------------------- multi-receives
            State::Stays => {
                self.work.d.next.ending.stays = self.stays.val();
                self.work.d.next.ending.handle = self.receive.q.val().had.offset;
                if !self.stays.val() {
                    self.work.d.next.ending.number = bit_cast::<32, 31>(self.number.val());
                }
                self.reserve.valid.next = self.stays.val();
                store!(
                    self.receives.write,
                    self.stays.val() & (self.work.q.val().way == Way::Hit),
                    self.at.q.val(),
                    self.rest.val()
                );
                self.state.d.next = State::Job;
            }

            // ---------------------------------------------------------------- ends
            State::Job => {
                self.job.valid.next = true;
                self.slot_asked.d.next = false;
                if self.job.ready.val() {
                    self.state.d.next = State::Wait;
                    if self.gives.q.val() {
                        self.state.d.next = State::Vacate;
                    } else {
                        self.follow.valid.next = self.follows.val();
                        self.done.next = true;
                    }
                }
            }
            State::Vacate => {
                self.asks_slot.next = true;
                if self.slot_answer.valid.val() {
                    self.state.d.next = State::Wait;
                    self.follow.valid.next = self.follows.val();
                    self.done.next = true;
                }
            }
            _ => {}
        }
        self.news.valid.next = self.tells.val();
        if self.lost.val() & self.names_message.val() {
            self.retry.next = true;
            self.ended.next = true;
            self.done.next = true;
            self.state.d.next = State::Wait;
        }
        self.steps_aside.next = false;
        if self.still_fills.val() & self.names_message.val() {
            if !self.resumed.q.val() {
                self.steps_aside.next = true;
                self.aside.d.next = self.now.val();
                self.aside_at.d.next = self.at.q.val();
                self.is_aside.d.next = true;
                self.resumed.d.next = true;
            } else if self.passes.val() {
                self.resumed.d.next = false;
                self.state.d.next = State::Wait;
            }
        }
        if self.done.val() & self.resumed.q.val() {
            self.resumed.d.next = false;
            self.is_aside.d.next = false;
        }
        self.waits_aside.next = self.is_aside.q.val();
        self.receives_come_late.next = self.found_before.q.val();
    }
}
