//! The classes of an endpoint: the ignored bits, and whether any source will do, by which receives
//! of the exact side are looked up.
//!
//! ```text
//!   learn ──► ignore bits ─┬─► view (registered): the classes of the endpoint of the next command
//!             any source   │
//!   take  ──► live ────────┴─► which of them have receives
//!   give  ──►
//! ```
//!
//! A class is learnt from the first receive that needs it and can be learnt again once it has no live
//! receive. Nothing refers to a class without receives, so that it costs nothing to change.

use crate::construct::construct;
use crate::prelude::*;

/// Classes of an endpoint.
pub const CLASSES: usize = 4;

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

/// The classes of one endpoint and how many receives each has.
#[derive(LogicBlock)]
pub struct EndpointClasses {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset: nothing is learnt.
    pub reset: Signal<In, Bit>,
    /// Learn a class.
    pub learn: Signal<In, Bit>,
    /// Which.
    pub learn_class: Signal<In, Bits<2>>,
    /// Its ignored bits.
    pub learn_ignore: Signal<In, Bits<64>>,
    /// Any source will do.
    pub learn_any: Signal<In, Bit>,
    /// A receive more of this class.
    pub take: Signal<In, Bit>,
    /// Which.
    pub take_class: Signal<In, Bits<2>>,
    /// A receive less of this class.
    pub give: Signal<In, Bit>,
    /// Which.
    pub give_class: Signal<In, Bits<2>>,
    /// The classes.
    pub view: Signal<Out, ClassView>,
    /// Classes that have receives.
    pub live: Signal<Out, Bits<4>>,
    known: Reg<ClassView>,
    receives: Vec<Reg<Bits<16>>>,
    counted: Signal<Local, Bits<4>>,
    learnt_bit: Signal<Local, Bits<4>>,
    any: Signal<Local, Bits<4>>,
    gives_what_it_has: Check,
}

impl Default for EndpointClasses {
    fn default() -> Self {
        construct!({
            receives: (0..CLASSES).map(|_| Reg::default()).collect(),
            gives_what_it_has: Check::new("a_class_gives_what_it_has"),
        } default {
            clock reset learn learn_class learn_ignore learn_any take take_class give give_class
            view live known counted learnt_bit any
        })
    }
}

#[module]
impl Logic for EndpointClasses {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, known, receives[0..4]);
        clocked!(self, clock, reset, gives_what_it_has);
        self.view.next = self.known.q.val();
        self.counted.next = 0.into();
        self.gives_what_it_has.ok.next = true;
        for i in 0..4 {
            self.counted.next = self
                .counted
                .val()
                .replace_bit(i, self.receives[i].q.val() != 0);
            if self.take.val() & (self.take_class.val() == i.to_bits()) {
                if !(self.give.val() & (self.give_class.val() == i.to_bits())) {
                    self.receives[i].d.next = self.receives[i].q.val() + 1;
                }
            } else if self.give.val() & (self.give_class.val() == i.to_bits()) {
                self.receives[i].d.next = self.receives[i].q.val() - 1;
                if self.receives[i].q.val() == 0 {
                    self.gives_what_it_has.ok.next = false;
                }
            }
        }
        self.live.next = self.counted.val();
        self.learnt_bit.next = bits::<4>(1) << self.learn_class.val();
        self.any.next = self.known.q.val().any_source & !self.learnt_bit.val();
        if self.learn_any.val() {
            self.any.next = self.known.q.val().any_source | self.learnt_bit.val();
        }
        if self.learn.val() {
            self.known.d.next.learnt = self.known.q.val().learnt | self.learnt_bit.val();
            self.known.d.next.any_source = self.any.val();
            if self.learn_class.val() == 0 {
                self.known.d.next.ignore0 = self.learn_ignore.val();
            }
            if self.learn_class.val() == 1 {
                self.known.d.next.ignore1 = self.learn_ignore.val();
            }
            if self.learn_class.val() == 2 {
                self.known.d.next.ignore2 = self.learn_ignore.val();
            }
            if self.learn_class.val() == 3 {
                self.known.d.next.ignore3 = self.learn_ignore.val();
            }
        }
    }
}

/// The classes of all endpoints.
#[derive(LogicBlock)]
pub struct Classes {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset: nothing is learnt.
    pub reset: Signal<In, Bit>,
    /// Show other classes from the next cycle on.
    pub show: Signal<In, Bit>,
    /// Those of this endpoint.
    pub next_endpoint: Signal<In, Bits<8>>,
    /// Its classes, as they were at the edge of `show`.
    pub view: Signal<Out, ClassView>,
    /// Endpoint whose live classes are shown now.
    pub endpoint: Signal<In, Bits<8>>,
    /// Its classes that have receives.
    pub live: Signal<Out, Bits<4>>,
    /// A bit an endpoint: it has receives.
    pub any_live: Signal<Out, Bits<32>>,
    /// A bit an endpoint: several of its classes have receives.
    pub several_live: Signal<Out, Bits<32>>,
    /// A bit an endpoint: all its classes have receives.
    pub all_live: Signal<Out, Bits<32>>,
    /// `endpoint` learns a class.
    pub learn: Signal<In, Bit>,
    /// `endpoint` has a receive more.
    pub take: Signal<In, Bit>,
    /// Of which class, or which it learns.
    pub take_class: Signal<In, Bits<2>>,
    /// Bits that the class to learn ignores.
    pub learn_ignore: Signal<In, Bits<64>>,
    /// Any source will do for it.
    pub learn_any: Signal<In, Bit>,
    /// A receive less.
    pub give: Signal<In, Bit>,
    /// Of this endpoint (upper bits) and class (the lowest two).
    pub give_class: Signal<In, Bits<6>>,
    of: Vec<EndpointClasses>,
    shown: Reg<ClassView>,
    give_endpoint: Signal<Local, Bits<8>>,
    give_number: Signal<Local, Bits<2>>,
    lives: Signal<Local, Bits<4>>,
    _n: usize,
}

impl Classes {
    /// The classes of so many endpoints, at most 16.
    pub fn new(endpoints: usize) -> Self {
        assert!((1..=16).contains(&endpoints), "{endpoints} endpoints");
        construct!({
            of: (0..endpoints).map(|_| EndpointClasses::default()).collect(),
            _n: endpoints,
        } default {
            clock reset show next_endpoint view endpoint live any_live several_live all_live learn take take_class learn_ignore learn_any
            give give_class shown give_endpoint give_number lives
        })
    }
}

#[module(endpoints = self._n)]
impl Logic for Classes {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, shown);
        clocked!(self, clock, reset, of[0..self._n]);
        self.give_endpoint.next = bit_cast::<8, 6>(self.give_class.val() >> 2);
        self.give_number.next = self.give_class.val().get_bits::<2>(0);
        self.live.next = 0.into();
        self.any_live.next = 0.into();
        self.all_live.next = 0.into();
        self.several_live.next = 0.into();
        for i in 0..self._n {
            self.any_live.next = self
                .any_live
                .val()
                .replace_bit(i, self.of[i].live.val().any());
            self.lives.next = self.of[i].live.val();
            self.several_live.next = self
                .several_live
                .val()
                .replace_bit(i, (self.lives.val() & (self.lives.val() - 1)).any());
            self.all_live.next = self
                .all_live
                .val()
                .replace_bit(i, self.of[i].live.val().all());
            self.of[i].learn.next = self.learn.val() & (self.endpoint.val() == i.to_bits());
            self.of[i].learn_class.next = self.take_class.val();
            self.of[i].learn_ignore.next = self.learn_ignore.val();
            self.of[i].learn_any.next = self.learn_any.val();
            self.of[i].take.next = self.take.val() & (self.endpoint.val() == i.to_bits());
            self.of[i].take_class.next = self.take_class.val();
            self.of[i].give.next = self.give.val() & (self.give_endpoint.val() == i.to_bits());
            self.of[i].give_class.next = self.give_number.val();
            if self.show.val() & (self.next_endpoint.val() == i.to_bits()) {
                self.shown.d.next = self.of[i].view.val();
            }
            if self.endpoint.val() == i.to_bits() {
                self.live.next = self.of[i].live.val();
            }
        }
        self.view.next = self.shown.q.val();
    }
}
