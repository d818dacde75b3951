//! The classes of an endpoint: the ignored bits, and whether any source will do, by which receives
//! of the exact side are looked up.
//!
//! ```text
//!   learn ──► ignore bits (memories) ─┬─► view: the classes of the endpoint of the next command
//!             learnt, any source ─────┘        which stays until there is another one
//!   take  ──► counts ─► live ───────────► which of them have receives
//!   give  ──►
//! ```
//!
//! A class is learnt from the first receive that needs it and can be learnt again once it has no live
//! receive. Nothing refers to a class without receives, so that it costs nothing to change.

use crate::prelude::*;
use crate::prim::Ram;

/// Classes of an endpoint.
pub const CLASSES: usize = 4;

/// The classes of one endpoint, without the bits that they ignore.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Learnt {
    /// Classes that have been learnt.
    pub learnt: Bits<4>,
    /// Classes for receives from any source.
    pub any_source: Bits<4>,
}

/// The classes of one endpoint.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct ClassView {
    /// Classes that have been learnt.
    pub learnt: Bits<4>,
    /// Classes for receives from any source.
    pub any_source: Bits<4>,
    /// Bits that receives of class 0 ignore.
    pub ignore0: Bits<64>,
    /// Of class 1.
    pub ignore1: Bits<64>,
    /// Of class 2.
    pub ignore2: Bits<64>,
    /// Of class 3.
    pub ignore3: Bits<64>,
}

/// What one endpoint has learnt, and how many receives each class has.
#[block]
pub struct EndpointClasses {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset: nothing is learnt.
    pub reset: Signal<In, Bit>,
    /// With `take`: the class in `take_class` is learnt anew.
    pub learn: Signal<In, Bit>,
    /// With `learn`: the class is for receives from any source.
    pub learn_any: Signal<In, Bit>,
    /// A pulse: a class has one receive more.
    pub take: Signal<In, Bit>,
    /// With `take`: the class, one bit set.
    pub take_class: Signal<In, Bits<4>>,
    /// A pulse: a class has one receive less.
    pub give: Signal<In, Bit>,
    /// With `give`: the class, one bit set.
    pub give_class: Signal<In, Bits<4>>,
    /// The classes.
    pub known: Signal<Out, Learnt>,
    /// Classes that have receives, that of `take` included.
    pub live: Signal<Out, Bits<4>>,
    knows: Reg<Learnt>,
    #[each(CLASSES)]
    receives: Vec<Reg<Bits<14>>>,
    has: Reg<Bits<4>>,
    living: Signal<Local, Bits<4>>,
    gives_now: Signal<Local, Bits<4>>,
    takes_now: Signal<Local, Bits<4>>,
    any: Signal<Local, Bits<4>>,
    /// What is added to the count: 1 or −1.
    change: Signal<Local, Bits<14>>,
    #[is(Check::new("a_class_gives_what_it_has"))]
    gives_what_it_has: Check,
    #[is(Check::new("a_class_lives_while_it_has_receives"))]
    live_is_counted: Check,
}

#[block]
impl Logic for EndpointClasses {
    fn update(&mut self) {
        self.known.next = self.knows.q.val();
        self.takes_now.next = 0.into();
        if self.take.val() {
            self.takes_now.next = self.take_class.val();
        }
        // A receive that is taken shows in this cycle, one that leaves in the next.
        self.live.next = self.has.q.val() | self.takes_now.val();
        self.gives_now.next = 0.into();
        if self.give.val() {
            self.gives_now.next = self.give_class.val();
        }
        self.gives_what_it_has.ok.next = true;
        self.live_is_counted.ok.next = true;
        self.living.next = self.has.q.val();
        for i in 0..4 {
            // One adder counts in both directions.
            self.change.next = 1.into();
            if self.gives_now.val().get_bit(i) {
                self.change.next = 0x3fff.into();
            }
            if self.takes_now.val().get_bit(i) ^ self.gives_now.val().get_bit(i) {
                self.receives[i].d.next = self.receives[i].q.val() + self.change.val();
                self.living.next = self.living.val().replace_bit(
                    i,
                    self.takes_now.val().get_bit(i) | (self.receives[i].q.val() != 1),
                );
                if self.gives_now.val().get_bit(i) & (self.receives[i].q.val() == 0) {
                    self.gives_what_it_has.ok.next = false;
                }
            }
            if (self.receives[i].q.val() != 0) != self.has.q.val().get_bit(i) {
                self.live_is_counted.ok.next = false;
            }
        }
        self.has.d.next = self.living.val();
        self.any.next = self.knows.q.val().any_source & !self.take_class.val();
        if self.learn_any.val() {
            self.any.next = self.knows.q.val().any_source | self.take_class.val();
        }
        if self.learn.val() {
            self.knows.d.next.learnt = self.knows.q.val().learnt | self.take_class.val();
            self.knows.d.next.any_source = self.any.val();
        }
    }
}

/// The part of a command's key that counts in a class: source and match bits, zero where the class ignores them.
#[block]
pub struct ClassKey {
    /// Classes of the command's endpoint.
    pub view: Signal<In, ClassView>,
    /// Classes in which the command may be found; this look-up is in the lowest.
    pub live: Signal<In, Bits<4>>,
    /// The command is a receive: its own bits to ignore count, since its class may be learnt in this cycle.
    pub posts: Signal<In, Bit>,
    /// The source of the command.
    pub pair: Signal<In, Bits<16>>,
    /// The match bits of the command.
    pub match_bits: Signal<In, Bits<64>>,
    /// Bits that the receive ignores.
    pub ignore_bits: Signal<In, Bits<64>>,
    /// The receive takes any source.
    pub any_source: Signal<In, Bit>,
    /// Source to look up, or 0 if any will do.
    pub source: Signal<Out, Bits<11>>,
    /// Match bits to look up, 0 where they are ignored.
    pub bits: Signal<Out, Bits<64>>,
    ignore: Signal<Local, Bits<64>>,
    any: Signal<Local, Bit>,
}

#[block]
impl Logic for ClassKey {
    fn update(&mut self) {
        self.ignore.next = self.view.val().ignore3;
        self.any.next = self.view.val().any_source.get_bit(3);
        if self.live.val().get_bit(2) {
            self.ignore.next = self.view.val().ignore2;
            self.any.next = self.view.val().any_source.get_bit(2);
        }
        if self.live.val().get_bit(1) {
            self.ignore.next = self.view.val().ignore1;
            self.any.next = self.view.val().any_source.get_bit(1);
        }
        if self.live.val().get_bit(0) {
            self.ignore.next = self.view.val().ignore0;
            self.any.next = self.view.val().any_source.get_bit(0);
        }
        if self.posts.val() {
            self.ignore.next = self.ignore_bits.val();
            self.any.next = self.any_source.val();
        }
        self.source.next = bit_cast::<11, 16>(self.pair.val());
        if self.any.val() {
            self.source.next = 0.into();
        }
        self.bits.next = self.match_bits.val() & !self.ignore.val();
    }
}

/// The classes of all endpoints.
#[block(endpoints: usize)]
pub struct Classes {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset: nothing is learnt.
    pub reset: Signal<In, Bit>,
    /// Endpoint whose classes may be shown in the next cycle.
    pub next_endpoint: Signal<In, Bits<8>>,
    /// An endpoint, one bit set.
    pub next_bit: Signal<In, Bits<32>>,
    /// Classes of the endpoint in `next_bit` that have receives.
    pub next_live: Signal<Out, Bits<4>>,
    /// Classes of the previous cycle's `next_endpoint`.
    pub read: Signal<Out, ClassView>,
    /// The classes in `read` are shown in `view` in the next cycle; without this `view` stays.
    pub reads: Signal<In, Bit>,
    /// `reads` of the previous cycle.
    pub fresh: Signal<In, Bit>,
    /// Classes of the endpoint that is shown, as they were when it was the next one.
    pub view: Signal<Out, ClassView>,
    /// Another endpoint, one bit set.
    pub endpoint_bit: Signal<In, Bits<32>>,
    /// Classes of the endpoint in `endpoint_bit` that have receives.
    pub live: Signal<Out, Bits<4>>,
    /// A bit an endpoint: one of its classes has receives.
    pub any_live: Signal<Out, Bits<32>>,
    /// With `take`: the endpoint of the class; and in `take_bit` one bit set for it.
    pub take_endpoint: Signal<In, Bits<8>>,
    /// See `take_endpoint`.
    pub take_bit: Signal<In, Bits<32>>,
    /// With `take`: the class is learnt anew.
    pub learn: Signal<In, Bit>,
    /// A pulse: a class has one receive more.
    pub take: Signal<In, Bit>,
    /// With `take`: the class, one bit set.
    pub take_class: Signal<In, Bits<4>>,
    /// With `learn`: bits that the class ignores.
    pub learn_ignore: Signal<In, Bits<64>>,
    /// With `learn`: the class is for receives from any source.
    pub learn_any: Signal<In, Bit>,
    /// A pulse: a class has one receive less.
    pub give: Signal<In, Bit>,
    /// With `give`: the endpoint (upper bits) and the class (the lowest two).
    pub give_class: Signal<In, Bits<6>>,
    #[each(endpoints)]
    of: Vec<EndpointClasses>,
    /// Bits that a class ignores, by endpoint: one memory a class.
    #[each(CLASSES, Ram::new(endpoints.max(2)))]
    masks: Vec<Ram<Bits<64>>>,
    /// The part of `view` without the bits to ignore.
    known: Reg<Learnt>,
    picked: Signal<Local, Learnt>,
    /// `view` of the previous cycle.
    held: Reg<ClassView>,
    now: Signal<Local, ClassView>,
    seen: Signal<Local, ClassView>,
    give_endpoint: Signal<Local, Bits<8>>,
    give_bit: Signal<Local, Bits<4>>,
    #[is(endpoints)]
    _n: usize,
}

impl Classes {
    /// The classes of so many endpoints, at most 16.
    pub fn new(endpoints: usize) -> Self {
        assert!((1..=16).contains(&endpoints), "{endpoints} endpoints");
        Self::build(endpoints)
    }
}

#[block(endpoints = self._n)]
impl Logic for Classes {
    fn update(&mut self) {
        self.give_endpoint.next = bit_cast::<8, 6>(self.give_class.val() >> 2);
        self.give_bit.next =
            bits::<4>(1) << bit_cast::<4, 2>(self.give_class.val().get_bits::<2>(0));
        for i in 0..4 {
            self.masks[i].clock.next = self.clock.val();
            store!(
                self.masks[i].write,
                self.learn.val() & self.take_class.val().get_bit(i),
                bit_cast::<16, 8>(self.take_endpoint.val()),
                self.learn_ignore.val()
            );
            self.masks[i].read_address.next = bit_cast::<16, 8>(self.next_endpoint.val());
        }
        // With no endpoint next, the first is read: nobody uses the result then, and to keep the last one would make the register
        // wait for whether there is a next one.
        self.picked.next = self.of[0].known.val();
        self.live.next = 0.into();
        self.next_live.next = 0.into();
        self.any_live.next = 0.into();
        for i in 0..self._n {
            self.any_live.next = self
                .any_live
                .val()
                .replace_bit(i, self.of[i].live.val().any());
            self.of[i].learn.next = self.learn.val() & self.take_bit.val().get_bit(i);
            self.of[i].learn_any.next = self.learn_any.val();
            self.of[i].take.next = self.take.val() & self.take_bit.val().get_bit(i);
            self.of[i].take_class.next = self.take_class.val();
            self.of[i].give.next = self.give.val() & (self.give_endpoint.val() == i.to_bits());
            self.of[i].give_class.next = self.give_bit.val();
            if self.next_endpoint.val() == i.to_bits() {
                self.picked.next = self.of[i].known.val();
            }
            if self.next_bit.val().get_bit(i) {
                self.next_live.next = self.next_live.val() | self.of[i].live.val();
            }
            if self.endpoint_bit.val().get_bit(i) {
                self.live.next = self.live.val() | self.of[i].live.val();
            }
        }
        if self.reads.val() {
            self.known.d.next = self.picked.val();
        }
        self.now.next = self.held.q.val();
        self.now.next.learnt = self.known.q.val().learnt;
        self.now.next.any_source = self.known.q.val().any_source;
        self.now.next.ignore0 = self.masks[0].read_data.val();
        self.now.next.ignore1 = self.masks[1].read_data.val();
        self.now.next.ignore2 = self.masks[2].read_data.val();
        self.now.next.ignore3 = self.masks[3].read_data.val();
        self.read.next = self.now.val();
        self.seen.next = self.held.q.val();
        self.seen.next.learnt = self.known.q.val().learnt;
        self.seen.next.any_source = self.known.q.val().any_source;
        if self.fresh.val() {
            self.seen.next = self.now.val();
        }
        self.held.d.next = self.seen.val();
        self.view.next = self.seen.val();
    }
}
