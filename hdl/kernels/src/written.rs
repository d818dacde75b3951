//! Kernels written by hand, each for one construct of the language or one way to go wrong.

#![expect(
    clippy::precedence,
    clippy::nonminimal_bool,
    reason = "what a reader may misread, a printer may misprint"
)]

use crate::kernel::Case;
use crate::types::{Gate, Hue, Phase, Record};
use hdl::prelude::*;

/// A kernel with the inputs that all of these share.
macro_rules! written {
    ($(#[$doc:meta])* $name:ident, $($rest:tt)*) => {
        written!(@ kernel, $(#[$doc])* $name, $($rest)*);
    };
    (
        @ $kind:ident, $(#[$doc:meta])*
        $name:ident, $range:ident, $out:ty, { $($inner:tt)* }, $($update:tt)*
    ) => {
        crate::$kind! {
            $(#[$doc])*
            $name, $range,
            {
                a: Bits<8>, b: Bits<8>, i: Bits<3>, w: Bits<16>, z: Bits<16>,
                l: Bits<40>, m: Bits<40>, s: Signed<8>, t: Signed<8>, p: Signed<16>,
                x: Bit, y: Bit, e: Hue, r: Record,
            },
            $out, { $($inner)* }, $($update)*
        }
    };
}

/// The same with clock and reset.
macro_rules! clocked {
    ($($rest:tt)*) => {
        written!(@ clocked_kernel, $($rest)*);
    };
}

// ---- children

/// Four bytes in, four out.
#[derive(LogicBlock, Default)]
struct Quad {
    pub d: [Signal<In, Bits<8>>; 4],
    pub o: [Signal<Out, Bits<8>>; 4],
}

#[module]
impl Logic for Quad {
    #[hdl_gen]
    fn update(&mut self) {
        for j in 0..4 {
            self.o[j].next = self.d[j].val() + 1;
        }
    }
}

#[derive(LogicBlock, Default)]
struct Inverter {
    pub d: Signal<In, Bits<8>>,
    pub o: Signal<Out, Bits<8>>,
}

#[module]
impl Logic for Inverter {
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = !self.d.val();
    }
}

/// Ports that are an enum and a struct with enums in it.
#[derive(LogicBlock, Default)]
struct Painter {
    pub hue: Signal<In, Hue>,
    pub record: Signal<In, Record>,
    pub following: Signal<Out, Hue>,
    pub painted: Signal<Out, Record>,
}

#[module]
impl Logic for Painter {
    #[hdl_gen]
    fn update(&mut self) {
        match self.hue.val() {
            Hue::Red => self.following.next = Hue::Green,
            Hue::Green => self.following.next = Hue::Blue,
            Hue::Blue => self.following.next = self.record.val().hue,
        }
        self.painted.next = self.record.val();
        if self.record.val().inner.g == Gate::Open {
            self.painted.next.hue = self.hue.val();
            self.painted.next.inner.v = self.record.val().inner.v + 1;
            self.painted.next.inner.g = Gate::Shut;
        }
    }
}

/// Adds constants, one of an array of them among them.
#[derive(LogicBlock)]
struct AddConstants {
    pub d: Signal<In, Bits<8>>,
    pub q: Signal<Out, Bits<8>>,
    one: Constant<Bits<8>>,
    more: [Constant<Bits<8>>; 3],
    sign: Constant<Signed<8>>,
}

impl Default for AddConstants {
    fn default() -> Self {
        AddConstants {
            d: Signal::default(),
            q: Signal::default(),
            one: Constant::new(100.into()),
            more: [1u64, 250, 7].map(|v| Constant::new(v.into())),
            sign: Constant::new(signed(-3)),
        }
    }
}

#[module]
impl Logic for AddConstants {
    #[hdl_gen]
    fn update(&mut self) {
        self.q.next = self.d.val() + self.one.val() + unsigned_cast(self.sign.val());
        for j in 0..3 {
            self.q.next = (self.q.val() ^ self.more[j].val()) + bits::<8>(200);
        }
    }
}

const LIMIT: u8 = 200;
const PLACES: usize = 3;

/// A register in a stream.
#[block]
struct Stage {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub input: Stream<In, Bits<8>>,
    pub output: Stream<Out, Bits<8>>,
    #[is(Reg::new(u64::from(LIMIT).into()))]
    word: Reg<Bits<8>>,
    full: Reg<Bit>,
}

#[block]
impl Logic for Stage {
    fn update(&mut self) {
        self.input.ready.next = !self.full.q.val() | self.output.ready.val();
        if self.input.ready.val() {
            self.full.d.next = self.input.valid.val();
            self.word.d.next = self.input.data.val() + PLACES;
        }
        send!(self.output, self.full.q.val(), self.word.q.val());
    }
}

/// Several of them behind each other.
#[block(depth: usize)]
struct Stages {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub input: Stream<In, Bits<8>>,
    pub words: Pulse<Out, Bits<8>>,
    #[each(depth)]
    stage: Vec<Stage>,
    #[is(depth)]
    _depth: usize,
}

impl Default for Stages {
    fn default() -> Self {
        Self::build(PLACES)
    }
}

#[block(depth = self._depth)]
impl Logic for Stages {
    fn update(&mut self) {
        join!(self.input => self.stage[0].input);
        for j in 1..self._depth {
            join!(self.stage[j - 1].output => self.stage[j].input);
        }
        send!(
            self.words,
            self.stage[PLACES - 1].output.valid.val(),
            self.stage[PLACES - 1].output.data.val()
        );
        self.stage[PLACES - 1].output.ready.next = self.input.data.val().get_bit(PLACES);
    }
}

/// A bundle.
#[derive(LogicInterface, Default)]
struct Bus {
    pub d: Signal<In, Bits<8>>,
    pub v: Signal<In, Bit>,
    pub q: Signal<Out, Bits<8>>,
}

#[derive(LogicBlock, Default)]
struct Device {
    pub bus: Bus,
}

#[module]
impl Logic for Device {
    #[hdl_gen]
    fn update(&mut self) {
        self.bus.q.next = 0.into();
        if self.bus.v.val() {
            self.bus.q.next = self.bus.d.val() + self.bus.d.val();
        }
    }
}

#[derive(LogicBlock, Default)]
struct Bridge {
    pub bus: Bus,
    device: Device,
}

#[module]
impl Logic for Bridge {
    #[hdl_gen]
    fn update(&mut self) {
        Bus::link(&mut self.bus, &mut self.device.bus);
    }
}

/// A row of blocks, locals and registers whose number is chosen at run time.
#[derive(LogicBlock)]
struct Row {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub d: Signal<In, Bits<8>>,
    pub q: Signal<Out, Bits<8>>,
    stage: Vec<Reg<Bits<8>>>,
    invert: Vec<Inverter>,
    sum: Vec<Signal<Local, Bits<8>>>,
    _n: usize,
}

impl Row {
    fn new(n: usize) -> Self {
        Row {
            clock: Signal::default(),
            reset: Signal::default(),
            d: Signal::default(),
            q: Signal::default(),
            stage: (0..n)
                .map(|i| Reg::new((3 * i as u64 + 1).into()))
                .collect(),
            invert: (0..n).map(|_| Inverter::default()).collect(),
            sum: (0..n + 1).map(|_| Signal::default()).collect(),
            _n: n,
        }
    }
}

impl Default for Row {
    fn default() -> Self {
        Row::new(5)
    }
}

#[module(n = self._n)]
impl Logic for Row {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, stage[0..self._n]);
        self.stage[0].d.next = self.d.val();
        for i in 1..self._n {
            self.stage[i].d.next = self.stage[i - 1].q.val();
        }
        self.sum[0].next = 0.into();
        for i in 0..self._n {
            self.invert[i].d.next = self.stage[i].q.val();
            self.sum[i + 1].next = self.sum[i].val() + self.invert[i].o.val();
        }
        for last in self._n..(self._n + 1) {
            self.q.next = self.sum[last].val();
        }
    }
}

/// Registers and checks with a reset value of their own.
#[derive(LogicBlock)]
struct Guarded {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub up: Signal<In, Bit>,
    pub count: Signal<Out, Bits<4>>,
    value: Reg<Bits<4>>,
    phase: Reg<Phase>,
    in_range: Check,
}

impl Default for Guarded {
    fn default() -> Self {
        Guarded {
            clock: Signal::default(),
            reset: Signal::default(),
            up: Signal::default(),
            count: Signal::default(),
            value: Reg::new(9.into()),
            phase: Reg::new(Phase::Write),
            in_range: Check::new("count_is_in_range"),
        }
    }
}

#[module]
impl Logic for Guarded {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, value, phase);
        clocked!(self, clock, reset, in_range);
        self.in_range.ok.next = self.value.q.val() <= 12;
        match self.phase.q.val() {
            Phase::Write => {
                self.phase.d.next = Phase::Done;
            }
            Phase::Done => {
                self.phase.d.next = Phase::Idle;
            }
            _ => {
                if self.up.val() {
                    self.value.d.next = self.value.q.val() + 1;
                    if self.value.q.val() == 12 {
                        self.value.d.next = 2.into();
                        self.phase.d.next = Phase::Write;
                    }
                }
            }
        }
        self.count.next = self.value.q.val();
    }
}

/// Hand-written Verilog with a parameter that is chosen at run time, and its Rust model.
#[derive(LogicBlock)]
struct Rotate {
    pub d: Signal<In, Bits<8>>,
    pub signed_in: Signal<In, Signed<8>>,
    pub q: Signal<Out, Bits<8>>,
    offset: Constant<Bits<8>>,
    _by: usize,
}

impl Rotate {
    fn new(by: usize) -> Self {
        Rotate {
            d: Signal::default(),
            signed_in: Signal::default(),
            q: Signal::default(),
            offset: Constant::new(21.into()),
            _by: by,
        }
    }
}

impl Logic for Rotate {
    fn update(&mut self) {
        let by = self._by as u64;
        let turned = (self.d.val() << by) | (self.d.val() >> (8 - by));
        let negative = self.signed_in.val().get_bit(7);
        self.q.next = turned + self.offset.val() + negative;
    }

    fn connect(&mut self) {
        self.q.connect();
    }

    fn hdl(&self) -> Verilog {
        let by = self._by;
        Verilog::Custom(format!(
            "wire [7:0] turned = {{d[{}:0], d[7:{}]}};\n\
             assign q = turned + offset + {{7'd0, signed_in < 0}};",
            7 - by,
            8 - by
        ))
    }

    fn timing(&self) -> Vec<TimingInfo> {
        hdl::verilog::describe::<Self>(&[("by", &self._by)])
    }
}

/// A foreign core behind a wrapper, which renames its ports and sets its parameter.
#[derive(LogicBlock, Default)]
struct Foreign {
    pub left: Signal<In, Bits<8>>,
    pub right: Signal<In, Bits<8>>,
    pub least: Signal<Out, Bits<8>>,
}

impl Logic for Foreign {
    fn update(&mut self) {
        let (left, right) = (self.left.val(), self.right.val());
        self.least.next = if left < right { left } else { right };
    }

    fn connect(&mut self) {
        self.least.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Wrapper(Wrapper {
            code: "foreign_min #(.W(8)) core (.a(left), .b(right), .y(least));".to_string(),
            cores: "module foreign_min #(parameter W = 4) (\n  input [W-1:0] a, b,\n  \
                    output [W-1:0] y\n);\n  assign y = a < b ? a : b;\nendmodule"
                .to_string(),
        })
    }
}

/// Leaves with Verilog of their own.
#[derive(LogicBlock)]
struct Leaves {
    pub a: Signal<In, Bits<8>>,
    pub s: Signal<In, Signed<8>>,
    pub q: Signal<Out, Bits<8>>,
    rotate: [Rotate; 2],
    foreign: [Foreign; 2],
}

impl Default for Leaves {
    fn default() -> Self {
        Leaves {
            a: Signal::default(),
            s: Signal::default(),
            q: Signal::default(),
            rotate: [Rotate::new(3), Rotate::new(5)],
            foreign: Default::default(),
        }
    }
}

#[module]
impl Logic for Leaves {
    #[hdl_gen]
    fn update(&mut self) {
        self.rotate[0].d.next = self.a.val();
        self.rotate[0].signed_in.next = self.s.val();
        self.rotate[1].d.next = self.rotate[0].q.val();
        self.rotate[1].signed_in.next = -self.s.val();
        for k in 0..2 {
            self.foreign[k].left.next = self.rotate[k].q.val();
            self.foreign[k].right.next = self.a.val();
        }
        self.q.next = self.foreign[0].least.val() ^ self.foreign[1].least.val();
    }
}

// ---- expressions

written! {
    /// Two bytes are joined by a shift.
    ShiftAndOr, full_range, Bits<16>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = (bit_cast::<16, 8>(self.a.val()) << 8) | bit_cast::<16, 8>(self.b.val());
    }
}

written! {
    /// A slice of a joined word, widened again.
    SliceOfLocal, full_range, Bits<16>, { tmp: Signal<Local, Bits<16>> },
    #[hdl_gen]
    fn update(&mut self) {
        self.tmp.next = (bit_cast::<16, 8>(self.a.val()) << 8) | bit_cast::<16, 8>(self.b.val());
        self.o.next = bit_cast::<16, 8>(self.tmp.val().get_bits::<8>(4));
    }
}

written! {
    /// All bitwise operators without parentheses.
    Precedences, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val() ^ self.b.val() & self.a.val() | self.b.val() << 1;
    }
}

written! {
    /// Subtraction associates to the left.
    LeftToRight, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val() - self.b.val() - 1;
    }
}

written! {
    /// And to the right where it says so.
    ParenthesesKept, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val() - (self.b.val() - 1);
    }
}

written! {
    /// A difference wraps before it is compared.
    DifferenceCompared, full_range, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val() - self.b.val() < self.b.val();
    }
}

written! {
    /// Bit operators around a comparison.
    BitOperators, full_range, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.x.val() | self.y.val() & (self.a.val() == self.b.val()) ^ self.x.val();
    }
}

written! {
    /// `==` binds tighter than `|`.
    EqualityOfBits, full_range, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.x.val() == self.y.val() | self.x.val();
    }
}

written! {
    /// Logical operators among bit operators.
    ShortCircuit, full_range, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.x.val() & !self.y.val() || self.a.val() > self.b.val() && self.y.val();
    }
}

written! {
    /// A sum is narrowed, then added to.
    NarrowedSum, full_range, Bits<4>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = bit_cast::<4, 8>(self.a.val() + self.b.val()) + 1;
    }
}

written! {
    /// Narrowed operands wrap at the narrow width.
    NarrowThenAdd, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next =
            bit_cast::<8, 4>(bit_cast::<4, 8>(self.a.val()) + bit_cast::<4, 8>(self.b.val()));
    }
}

written! {
    /// Bits shifted out at the top don't come back.
    ShiftsLoseBits, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = (self.a.val() << 3) >> 2;
    }
}

written! {
    /// A shift by a narrower value.
    ShiftByInput, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val() >> self.i.val();
    }
}

written! {
    /// A complement has no bits above its own.
    NotThenShift, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = !self.a.val() >> 4;
    }
}

written! {
    /// A complement is compared at its own width.
    NotCompared, full_range, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = !self.a.val() == self.b.val();
    }
}

written! {
    /// Reductions of complements.
    Reductions, full_range, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = (!self.a.val()).all() | (self.a.val() ^ self.b.val()).xor();
    }
}

written! {
    /// A reduction of a sum that wraps.
    AnyOfSum, full_range, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = (self.a.val() + self.b.val()).any();
    }
}

written! {
    /// One bit, at an index that varies.
    BitByInput, full_range, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val().get_bit(self.i.val().index());
    }
}

written! {
    /// The top bit of a sum.
    BitOfSum, full_range, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = (self.a.val() + self.b.val()).get_bit(7);
    }
}

written! {
    /// One bit of an expression, at an index that varies.
    BitOfXorByInput, full_range, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = (self.a.val() ^ self.b.val()).get_bit(self.i.val().index());
    }
}

written! {
    /// A slice of a sum.
    SliceOfSum, full_range, Bits<4>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = (self.a.val() + self.b.val()).get_bits::<4>(3);
    }
}

written! {
    /// A slice of a slice.
    SliceOfSlice, full_range, Bits<3>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val().get_bits::<6>(1).get_bits::<3>(2);
    }
}

written! {
    /// A slice at an offset that varies.
    SliceByInput, full_range, Bits<4>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.w.val().get_bits::<4>(self.i.val().index());
    }
}

written! {
    /// A slice that reaches past the top reads zeros.
    SlicePastTheTop, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val().get_bits::<8>(3);
    }
}

written! {
    /// A bit is replaced at an index that varies.
    ReplaceByInput, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val().replace_bit(self.i.val().index(), self.x.val());
    }
}

written! {
    /// A bit is replaced, and the result added to.
    ReplaceThenAdd, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val().replace_bit(3, self.x.val()) + 1;
    }
}

written! {
    /// Bits are replaced above bit 31.
    ReplaceAboveWord, full_range, Bits<40>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self
            .l
            .val()
            .replace_bit(37, self.x.val())
            .replace_bit(2, self.y.val());
    }
}

written! {
    /// A sum of 40 bits.
    WideSum, full_range, Bits<40>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.l.val() + self.m.val() + 1;
    }
}

written! {
    /// A difference of 40 bits wraps before it is compared.
    WideDifferenceCompared, full_range, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.l.val() - self.m.val() > self.m.val();
    }
}

written! {
    /// A difference is widened after it wraps.
    WidenThenShift, full_range, Bits<40>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = bit_cast::<40, 8>(self.a.val() - self.b.val()) << 20;
    }
}

written! {
    /// A wide sum is narrowed.
    NarrowFromWide, full_range, Bits<16>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = bit_cast::<16, 40>(self.l.val() + self.m.val()) ^ self.w.val();
    }
}

written! {
    /// Sums and complements are widened after they wrap.
    WidenBothWays, full_range, Bits<40>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next =
            bit_cast::<40, 16>(self.w.val() + self.z.val()) + bit_cast::<40, 8>(!self.a.val());
    }
}

written! {
    /// Signed values are ordered by sign.
    SignedOrder, full_range, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.s.val() < self.t.val();
    }
}

written! {
    /// A signed sum wraps before it is compared.
    SignedSumOrder, full_range, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.s.val() + self.t.val() > self.s.val();
    }
}

written! {
    /// A signed difference wraps.
    SignedDifference, full_range, Signed<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.s.val() - self.t.val();
    }
}

written! {
    /// A signed sum is negated.
    SignedNegation, full_range, Signed<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = -(self.s.val() + self.t.val());
    }
}

written! {
    /// A sign is extended into a sum.
    SignExtension, no_minimum, Signed<16>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = signed_bit_cast::<16, 8>(self.s.val()) + self.p.val();
    }
}

written! {
    /// Signs are extended through a local and in place.
    SignExtensionTwice, no_minimum, Signed<16>, { lp: Signal<Local, Signed<16>> },
    #[hdl_gen]
    fn update(&mut self) {
        self.lp.next = signed_bit_cast::<16, 8>(self.s.val());
        self.o.next = self.lp.val() - signed_bit_cast::<16, 8>(self.t.val());
    }
}

written! {
    /// A signed product doubles the width.
    SignedProduct, no_minimum, Signed<32>, { lp: Signal<Local, Signed<16>> },
    #[hdl_gen]
    fn update(&mut self) {
        self.lp.next = signed_bit_cast::<16, 8>(self.t.val());
        self.o.next = self.p.val() * self.lp.val();
    }
}

written! {
    /// A product doubles the width.
    Product, full_range, Bits<32>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.w.val() * self.z.val();
    }
}

written! {
    /// A cast to signed changes the order.
    CastToSigned, full_range, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = signed_cast(self.a.val()) < self.s.val();
    }
}

written! {
    /// A cast to unsigned changes it back.
    CastToUnsigned, full_range, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = unsigned_cast(self.s.val()) < self.a.val() + 1;
    }
}

written! {
    /// A signed sum is widened without its sign.
    UnsignedOfSum, full_range, Bits<16>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = bit_cast::<16, 8>(unsigned_cast(self.s.val() + self.t.val()));
    }
}

written! {
    /// Each variant has an arm.
    MatchAll, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = 0.into();
        match self.e.val() {
            Hue::Red => {
                self.o.next = self.a.val() + 1;
            }
            Hue::Green => {
                self.o.next = self.b.val();
            }
            Hue::Blue => {
                self.o.next = self.a.val() & self.b.val();
            }
        }
    }
}

written! {
    /// One variant has an arm, the rest a default.
    MatchDefault, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        match self.e.val() {
            Hue::Red => {
                self.o.next = self.a.val();
            }
            _ => {
                self.o.next = self.b.val();
            }
        }
    }
}

written! {
    /// Variants are compared and assigned.
    EnumCompared, full_range, Hue, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = Hue::Red;
        if self.e.val() == Hue::Red {
            self.o.next = Hue::Green;
        } else if self.e.val() != Hue::Blue {
            self.o.next = Hue::Blue;
        }
    }
}

written! {
    /// Fields of a struct wrap at their own width.
    FieldArithmetic, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = bit_cast::<8, 4>(self.r.val().op) + bit_cast::<8, 4>(self.r.val().op + 9);
    }
}

written! {
    /// Fields of a struct are assigned, under a condition too.
    FieldAssignment, full_range, Record, { lr: Signal<Local, Record> },
    #[hdl_gen]
    fn update(&mut self) {
        self.lr.next = self.r.val();
        self.lr.next.op = self.lr.val().op + 3;
        self.lr.next.flag = !self.r.val().flag;
        if self.x.val() {
            self.lr.next.hue = self.e.val();
        }
        self.o.next = self.lr.val();
    }
}

written! {
    /// Fields of a struct in a struct.
    NestedFields, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = bit_cast::<8, 5>(self.r.val().inner.u)
            + bit_cast::<8, 9>(self.r.val().inner.v);
    }
}

written! {
    /// An array of locals in loops, with neighbours.
    ArrayOfLocals, full_range, Bits<8>, { la: [Signal<Local, Bits<8>>; 4] },
    #[hdl_gen]
    fn update(&mut self) {
        for k in 0..4 {
            self.la[k].next = self.a.val() + k.to_bits();
        }
        self.o.next = self.la[0].val();
        for k in 1..4 {
            if self.i.val() == (2 * k).to_bits() {
                self.o.next = self.la[k].val() - self.la[k - 1].val() + self.b.val();
            }
        }
    }
}

written! {
    /// A local is assigned again in each turn of a loop.
    CountingLoop, full_range, Bits<8>, { acc: Signal<Local, Bits<8>>, n: Signal<Local, Bits<8>> },
    #[hdl_gen]
    fn update(&mut self) {
        self.acc.next = 0.into();
        for k in 0..8 {
            self.n.next = self.acc.val() + 1;
            if self.a.val().get_bit(k) {
                self.acc.next = self.n.val();
            }
        }
        self.o.next = self.acc.val() + self.n.val();
    }
}

written! {
    /// A word is built bit by bit.
    ReversedBits, full_range, Bits<8>, { v: Signal<Local, Bits<8>> },
    #[hdl_gen]
    fn update(&mut self) {
        self.v.next = 0.into();
        for k in 0..8 {
            self.v.next = self
                .v
                .val()
                .replace_bit(k, self.a.val().get_bit(7 - k) ^ self.x.val());
        }
        self.o.next = self.v.val();
    }
}

written! {
    /// A child holds a constant.
    ChildWithConstant, full_range, Bits<8>, { c: AddConstants },
    #[hdl_gen]
    fn update(&mut self) {
        self.c.d.next = self.a.val();
        self.o.next = self.c.q.val();
    }
}

written! {
    /// A local means another thing after it is assigned again.
    LocalAssignedTwice, full_range, Bits<8>, { c: Signal<Local, Bits<8>> },
    #[hdl_gen]
    fn update(&mut self) {
        self.c.next = self.a.val();
        if self.c.val() > self.b.val() {
            self.c.next = self.b.val();
        }
        self.o.next = self.c.val();
        self.c.next = 5.into();
        if self.x.val() {
            self.o.next = self.o.val() + self.c.val();
        }
    }
}

written! {
    /// Nested conditions that cover all paths.
    NestedIfs, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        if self.x.val() {
            if self.y.val() {
                self.o.next = self.a.val();
            } else {
                self.o.next = self.b.val();
            }
        } else {
            self.o.next = self.a.val() - self.b.val();
        }
    }
}

written! {
    /// An array of children with arrays of ports.
    ArrayOfChildren, full_range, Bits<8>, { q: [Quad; 2] },
    #[hdl_gen]
    fn update(&mut self) {
        for k in 0..2 {
            for j in 0..4 {
                self.q[k].d[j].next = self.a.val() + (4 * k + j).to_bits();
            }
        }
        self.o.next = self.q[1].o[2].val() ^ self.q[0].o[3].val();
    }
}

written! {
    /// A child feeds another.
    ChainOfChildren, full_range, Bits<8>, { u0: Inverter, u1: Inverter },
    #[hdl_gen]
    fn update(&mut self) {
        self.u0.d.next = self.a.val();
        self.u1.d.next = self.u0.o.val() + 1;
        self.o.next = self.u1.o.val();
        if self.x.val() {
            self.u0.d.next = self.b.val();
        }
    }
}

written! {
    /// Children with ports of types that have names, fed from each other and from inputs.
    TypedPorts, full_range, Bits<9>, { painter: [Painter; 2] },
    #[hdl_gen]
    fn update(&mut self) {
        self.painter[0].hue.next = self.e.val();
        self.painter[0].record.next = self.r.val();
        self.painter[1].hue.next = self.painter[0].following.val();
        self.painter[1].record.next = self.painter[0].painted.val();
        self.o.next = self.painter[1].painted.val().inner.v;
        if (self.painter[1].following.val() == Hue::Red) & (self.painter[1].painted.val().inner.g == Gate::Shut) {
            self.o.next = bit_cast::<9, 5>(self.painter[0].painted.val().inner.u) ^ self.painter[1].painted.val().inner.v;
        }
    }
}

written! {
    /// A bundle is linked through to a grandchild.
    LinkedBundle, full_range, Bits<8>, { mid: Bridge },
    #[hdl_gen]
    fn update(&mut self) {
        self.mid.bus.d.next = self.a.val();
        self.mid.bus.v.next = self.x.val();
        self.o.next = self.mid.bus.q.val();
    }
}

written! {
    /// A bit is added to a word.
    AddBit, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val() + self.x.val();
    }
}

written! {
    /// A sum is shifted before it is compared.
    SumShiftedCompared, full_range, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val() + self.b.val() >> 1 == self.a.val();
    }
}

written! {
    /// A shift, widened and shifted again.
    ShiftedTwice, full_range, Bits<16>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = bit_cast::<16, 8>(self.a.val() << self.i.val()) << self.i.val();
    }
}

written! {
    /// Integers on the left of operators.
    IntegerFirst, full_range, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = 250 - self.a.val() >= 3 + self.b.val();
    }
}

written! {
    /// A number is matched against integers.
    MatchInteger, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        match self.i.val().index() {
            0 => {
                self.o.next = self.a.val();
            }
            1 => {
                self.o.next = self.b.val();
            }
            0x5 => {
                self.o.next = 7.into();
            }
            _ => {
                self.o.next = self.a.val() ^ self.b.val();
            }
        }
    }
}

written! {
    /// A bit is matched.
    MatchBit, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        match self.x.val() {
            true => {
                self.o.next = self.a.val();
            }
            false => {
                self.o.next = self.b.val();
            }
        }
    }
}

written! {
    /// A sum that was widened first keeps its carry.
    CarryKept, full_range, Bits<17>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = bit_cast::<17, 16>(self.w.val()) + bit_cast::<17, 16>(self.z.val());
    }
}

written! {
    /// Slices and the top bit of signed values.
    SignedSlices, no_minimum, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = (self.p.val() - signed_bit_cast::<16, 8>(self.s.val())).get_bit(15)
            ^ (self.s.val().get_bits::<4>(2) < self.t.val().get_bits::<4>(1));
    }
}

// ---- order of statements

written! {
    /// A value is read between its assignments under conditions.
    ReadBetween, full_range, Bits<8>,
    { count: Signal<Local, Bits<8>>, seen: Signal<Local, Bits<8>> },
    #[hdl_gen]
    fn update(&mut self) {
        self.count.next = 0.into();
        if self.x.val() {
            self.count.next = self.count.val() + self.a.val();
        }
        self.seen.next = self.count.val();
        if self.y.val() {
            self.count.next = self.count.val() + self.b.val();
            self.seen.next = self.seen.val() ^ self.count.val();
        }
        self.o.next = self.count.val() - self.seen.val();
    }
}

written! {
    /// Two locals change places, again and again.
    Exchanged, full_range, Bits<16>,
    { p1: Signal<Local, Bits<16>>, p2: Signal<Local, Bits<16>>, hold: Signal<Local, Bits<16>> },
    #[hdl_gen]
    fn update(&mut self) {
        self.p1.next = self.w.val();
        self.p2.next = self.z.val();
        for k in 0..3 {
            self.hold.next = self.p1.val();
            if self.i.val().get_bit(k) {
                self.p1.next = self.p2.val() + 1;
                self.p2.next = self.hold.val();
            }
        }
        self.o.next = self.p1.val() - self.p2.val();
    }
}

written! {
    /// Conditions on loop variables are decided before there is a circuit.
    ConstantConditions, full_range, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val();
        for k in 0..8 {
            if k > 2 && !(k == 5) || k == 0 {
                self.o.next = self.o.val() + (k * k + 1).to_bits();
            } else if k == 5 && self.b.val().get_bit(k) {
                self.o.next = self.o.val() ^ 0x5a;
            }
            match k {
                1 => {
                    self.o.next = self.o.val() - self.b.val();
                }
                7 => {}
                _ => {
                    self.o.next = self.o.val() << 1;
                }
            }
        }
    }
}

written! {
    /// A value is replaced whole after its fields were.
    WholeAfterParts, full_range, Record,
    { q: Signal<Local, Record> },
    #[hdl_gen]
    fn update(&mut self) {
        self.q.next = self.r.val();
        self.q.next.inner.u = bit_cast::<5, 3>(self.i.val()) + 3;
        self.o.next = self.q.val();
    }
}

written! {
    /// Children whose Verilog was written by hand, and a foreign core.
    HandWritten, full_range, Bits<8>, { leaves: Leaves },
    #[hdl_gen]
    fn update(&mut self) {
        self.leaves.a.next = self.a.val();
        self.leaves.s.next = self.s.val();
        self.o.next = self.leaves.q.val();
    }
}

// ---- registers

clocked! {
    /// Registers of bits, of an enum and of a struct, with defaults and exceptions.
    Registers, full_range, Bits<8>,
    { byte: Reg<Bits<8>>, hue: Reg<Hue>, record: Reg<Record>, flag: [Reg<Bit>; 3] },
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, byte, hue, record, flag[0..3]);
        for k in 0..3 {
            if self.i.val().get_bit(k) {
                self.flag[k].d.next = !self.flag[k].q.val();
            }
        }
        match self.hue.q.val() {
            Hue::Red => {
                self.hue.d.next = self.e.val();
            }
            Hue::Green => {
                self.byte.d.next = self.byte.q.val() + self.a.val();
                self.hue.d.next = Hue::Blue;
            }
            Hue::Blue => {
                self.record.d.next = self.r.val();
                self.hue.d.next = Hue::Red;
            }
        }
        self.o.next = self.byte.q.val() ^ bit_cast::<8, 70>(self.record.q.val().key);
        if self.flag[1].q.val() & !self.flag[2].q.val() {
            self.o.next = self.o.val() + 1;
        }
    }
}

clocked! {
    /// rust-hdl's own flip-flop, which has no reset.
    FlipFlops, full_range, Bits<8>,
    { first: DFF<Bits<8>>, second: DFF<Bits<8>> },
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, first, second);
        if !self.reset.val() {
            self.first.d.next = self.a.val();
        }
        self.second.d.next = self.first.q.val();
        self.o.next = self.second.q.val() - self.first.q.val();
    }
}

clocked! {
    /// Children in number chosen at run time, and registers with a reset value.
    RunTimeSizes, full_range, Bits<8>, { row: Row },
    #[hdl_gen]
    fn update(&mut self) {
        clocked!(self, clock, reset, row);
        self.row.d.next = self.a.val();
        self.o.next = self.row.q.val();
    }
}

clocked! {
    /// A check that holds beside registers that don't start from zero.
    Checked, full_range, Bits<4>, { guarded: [Guarded; 2] },
    #[hdl_gen]
    fn update(&mut self) {
        clocked!(self, clock, reset, guarded[0..2]);
        self.guarded[0].up.next = self.x.val();
        self.guarded[1].up.next = self.y.val();
        self.o.next = self.guarded[0].count.val() ^ self.guarded[1].count.val();
    }
}

written! {
    /// Constants of the source: numbers, codes, states, structs, sizes, patterns.
    ConstantsOfTheSource, full_range, Bits<8>, { hue: Signal<Local, Hue>, record: Signal<Local, Record> },
    #[hdl_gen]
    fn update(&mut self) {
        self.hue.next = self.e.val();
        if self.x.val() {
            self.hue.next = Hue::default();
        }
        self.record.next = self.r.val();
        if self.y.val() {
            self.record.next = Record::default();
            self.record.next.hue = Hue::Green;
        }
        self.o.next = (self.a.val() + LIMIT - 1) ^ (self.b.val() >> PLACES);
        if self.a.val().get_bit(PLACES) & (self.b.val().get_bits::<PLACES>(PLACES - 1) != 2) {
            self.o.next = u64::from(LIMIT).into();
        }
        match self.i.val().index() {
            PLACES => self.o.next = (PLACES * 9).into(),
            1 => self.o.next = abi::status::Status::Truncated.into(),
            _ => {}
        }
        if (self.hue.val() != Hue::Red) & (self.record.val().hue == Hue::Green) {
            self.o.next = bit_cast::<8, 4>(self.record.val().op) - LIMIT;
        }
    }
}

written! {
    /// Structs that are assigned as they are written.
    StructLiterals, full_range, Bits<40>, { record: Signal<Local, Record>, other: Signal<Local, Record> },
    #[hdl_gen]
    fn update(&mut self) {
        self.record.next = Record {
            op: self.a.val().get_bits::<4>(2),
            flag: self.x.val(),
            hue: Hue::Blue,
            inner: self.r.val().inner,
            key: bit_cast::<70, 40>(self.l.val()),
        };
        self.other.next = Record {
            flag: self.y.val(),
            key: self.record.val().key + LIMIT,
            ..self.r.val()
        };
        if self.x.val() {
            set!(self.other.next, op = self.record.val().op, hue = self.e.val());
        }
        self.o.next = bit_cast::<40, 70>(self.other.val().key) ^ bit_cast::<40, 4>(self.other.val().op);
        if self.other.val().flag & (self.other.val().hue == Hue::Blue) {
            self.o.next = bit_cast::<40, 9>(self.record.val().inner.v);
        }
    }
}

clocked! {
    /// Streams that are joined, in a loop too, and blocks that get clock and reset by themselves.
    Streams, full_range, Bits<8>, { stages: Stages, seen: Reg<Bits<8>> },
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, seen);
        clocked!(self, clock, reset, stages);
        set!(self.stages.input, valid = self.x.val(), data = self.a.val());
        if self.stages.words.valid.val() {
            self.seen.d.next = self.stages.words.data.val() + self.b.val();
        }
        self.o.next = self.seen.q.val();
        if self.stages.input.ready.val() {
            self.o.next = !self.seen.q.val();
        }
    }
}

/// All of them.
pub fn all() -> Vec<Case> {
    vec![
        Case::of::<ShiftAndOr>(),
        Case::of::<SliceOfLocal>(),
        Case::of::<Precedences>(),
        Case::of::<LeftToRight>(),
        Case::of::<ParenthesesKept>(),
        Case::of::<DifferenceCompared>(),
        Case::of::<BitOperators>(),
        Case::of::<EqualityOfBits>(),
        Case::of::<ShortCircuit>(),
        Case::of::<NarrowedSum>(),
        Case::of::<NarrowThenAdd>(),
        Case::of::<ShiftsLoseBits>(),
        Case::of::<ShiftByInput>(),
        Case::of::<NotThenShift>(),
        Case::of::<NotCompared>(),
        Case::of::<Reductions>(),
        Case::of::<AnyOfSum>(),
        Case::of::<BitByInput>(),
        Case::of::<BitOfSum>(),
        Case::of::<BitOfXorByInput>(),
        Case::of::<SliceOfSum>(),
        Case::of::<SliceOfSlice>(),
        Case::of::<SliceByInput>(),
        Case::of::<SlicePastTheTop>(),
        Case::of::<ReplaceByInput>(),
        Case::of::<ReplaceThenAdd>(),
        Case::of::<ReplaceAboveWord>(),
        Case::of::<WideSum>(),
        Case::of::<WideDifferenceCompared>(),
        Case::of::<WidenThenShift>(),
        Case::of::<NarrowFromWide>(),
        Case::of::<WidenBothWays>(),
        Case::of::<SignedOrder>(),
        Case::of::<SignedSumOrder>(),
        Case::of::<SignedDifference>(),
        Case::of::<SignedNegation>(),
        Case::of::<SignExtension>(),
        Case::of::<SignExtensionTwice>(),
        Case::of::<SignedProduct>(),
        Case::of::<Product>(),
        Case::of::<CastToSigned>(),
        Case::of::<CastToUnsigned>(),
        Case::of::<UnsignedOfSum>(),
        Case::of::<MatchAll>(),
        Case::of::<MatchDefault>(),
        Case::of::<EnumCompared>(),
        Case::of::<FieldArithmetic>(),
        Case::of::<FieldAssignment>(),
        Case::of::<NestedFields>(),
        Case::of::<ArrayOfLocals>(),
        Case::of::<CountingLoop>(),
        Case::of::<ReversedBits>(),
        Case::of::<ChildWithConstant>(),
        Case::of::<LocalAssignedTwice>(),
        Case::of::<NestedIfs>(),
        Case::of::<ArrayOfChildren>(),
        Case::of::<ChainOfChildren>(),
        Case::of::<TypedPorts>(),
        Case::of::<LinkedBundle>(),
        Case::of::<AddBit>(),
        Case::of::<SumShiftedCompared>(),
        Case::of::<ShiftedTwice>(),
        Case::of::<IntegerFirst>(),
        Case::of::<MatchInteger>(),
        Case::of::<MatchBit>(),
        Case::of::<CarryKept>(),
        Case::of::<SignedSlices>(),
        Case::of::<ReadBetween>(),
        Case::of::<Exchanged>(),
        Case::of::<ConstantConditions>(),
        Case::of::<WholeAfterParts>(),
        Case::of::<HandWritten>(),
        Case::of::<Registers>(),
        Case::of::<FlipFlops>(),
        Case::of::<RunTimeSizes>(),
        Case::of::<Checked>(),
        Case::of::<ConstantsOfTheSource>(),
        Case::of::<StructLiterals>(),
        Case::of::<Streams>(),
    ]
}
