//! Verilated models as Rust objects.
//!
//! Model binding is ours, runtime and global API are the `verilated` crate's. The models themselves
//! are static libraries that `cargo xtask models` has built from the gates; this crate links those
//! in the manifest and knows them by name.
//!
//! ```text
//!              ┌── Model ────────────────┐
//!  set, get ──►│ addresses of the pins ──┼────────► members of the C++ class
//!  step ──────►│ functions of the shim ──┼─► eval ─►     (Verilator)
//!  trace ─────►│ verilated::vcd::Vcd ◄───┼────────── its waveform hooks
//!              └─────────────────────────┘
//! ```
//!
//! ```
//! # fn main() -> Result<(), model::ModelError> {
//! let mut counter = model::Model::open("fixture_counter")?;
//! let (step_by, count) = (counter.port("step_by")?, counter.port("count")?);
//! counter.set(step_by, 3);
//! counter.step();
//! counter.step();
//! assert_eq!(counter.get(count), 6);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Port`] is a handle to a pin, looked up once by name; reading or writing through it is a
//! memory access. A cycle is [`Model::step`]: the clock falls, the gates settle with the inputs
//! that were set, the clock rises. To see what an output makes of inputs within a cycle, call
//! [`Model::eval`] between setting and getting.

mod error;
mod pin;
mod pins;
mod table;
mod trace;

use std::ffi::CString;
use std::fmt;
use std::fs;
use std::io;
use std::mem;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::slice;

pub use error::{AssertionFailed, ModelError};
use pin::Pin;
pub use pins::Pins;
use table::{ENTRIES, Entry, Raw};
use trace::Trace;

/// Which way a pin goes, seen from the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Driven by the user of the model.
    Input,
    /// Driven by the model.
    Output,
}

/// A pin as the model declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortInfo {
    /// Name in the Verilog.
    pub name: &'static str,
    /// Width in bits.
    pub width: u32,
    /// Direction.
    pub direction: Direction,
}

/// Handle to a pin of every object of one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Port {
    /// Index of the model in the table.
    model: u16,
    /// Index of the pin in the model.
    pin: u16,
}

/// One instance of a Verilated design, with a context of its own.
///
/// Objects are independent of each other: each may run on a thread of its own, or move between
/// threads. What an object does depends on its seed and its inputs alone.
pub struct Model {
    raw: NonNull<Raw>,
    entry: &'static Entry,
    index: u16,
    pins: Box<[Pin]>,
    seed: u64,
    cycle: u64,
    /// An input that isn't a clock, or a memory, has been set since the last evaluation.
    changed: bool,
    second: Option<SecondClock>,
    trace: Option<Trace>,
}

/// How fast a second clock is, by the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// It rises so many times in each cycle.
    Times(u32),
    /// It rises in cycle 0, and in each so many cycles once.
    OneIn(u32),
}

impl Rate {
    /// The rate.
    ///
    /// # Panics
    /// If it is 0.
    pub fn checked(self) -> Self {
        let (Rate::Times(count) | Rate::OneIn(count)) = self;
        assert!(count > 0, "a clock rises now and then");
        self
    }
}

/// A second clock.
#[derive(Clone, Copy)]
struct SecondClock {
    port: Port,
    rate: Rate,
    held: bool,
}

// SAFETY: the C++ object has no tie to the thread that made it: every entry into it makes its
// context the thread's first, and the pins are members of it. `&Model` gives no way into it but
// reading pins, and is not `Sync` all the same, since `Raw` and the pins are raw pointers.
unsafe impl Send for Model {}

/// Names of the linked models, without those that are linked only for waveforms.
pub fn names() -> impl Iterator<Item = &'static str> {
    ENTRIES
        .iter()
        .filter(|entry| !entry.traced)
        .map(|entry| entry.name)
}

impl Model {
    /// Opens model `name`; what its gates give no initial value starts as zero.
    ///
    /// # Errors
    /// If it isn't linked in, or doesn't fit the runtime; the message says what to run.
    pub fn open(name: &str) -> Result<Self, ModelError> {
        Self::new(name, false, 0)
    }

    /// Opens model `name`; what its gates give no initial value, such as a memory, starts as
    /// noise that `seed` decides. Seed 0 is no noise: all zero. Inputs start at zero.
    ///
    /// # Errors
    /// As [`Model::open`].
    pub fn open_seeded(name: &str, seed: u64) -> Result<Self, ModelError> {
        Self::new(name, false, seed)
    }

    /// Opens the build of model `name` that can write waveforms. It is slower.
    ///
    /// # Errors
    /// As [`Model::open`], and if only the other build is linked in.
    pub fn open_traced(name: &str, seed: u64) -> Result<Self, ModelError> {
        Self::new(name, true, seed)
    }

    fn new(name: &str, traced: bool, seed: u64) -> Result<Self, ModelError> {
        let found = ENTRIES
            .iter()
            .position(|e| e.name == name && e.traced == traced);
        let Some(position) = found else {
            return Err(if traced && names().any(|known| known == name) {
                ModelError::NotTraced { name: name.into() }
            } else {
                let known = names().collect::<Vec<_>>().join(", ");
                ModelError::Unknown {
                    name: name.into(),
                    known,
                }
            });
        };
        check_runtime()?;
        let entry = &ENTRIES[position];
        // SAFETY: `new` may always be called.
        let raw = unsafe { (entry.new)(folded(seed)) };
        // It aborts rather than returning null, as `new` in C++ does.
        let raw = NonNull::new(raw).expect("C++ new doesn't return null");
        let mut addresses = vec![ptr::null_mut(); entry.ports.len()];
        // SAFETY: the object is alive, and there is room for as many addresses as it has ports.
        unsafe { (entry.pins)(raw.as_ptr(), addresses.as_mut_ptr()) };
        let pin = |(address, port): (*mut u8, &PortInfo)| {
            // SAFETY: Verilator's class keeps a port of this width at this address, in the type
            // that `Pin` expects for it, until the object is deleted, which `Drop` does.
            unsafe { Pin::new(address, port.width, port.direction) }
        };
        let pins: Box<[Pin]> = addresses.into_iter().zip(entry.ports).map(pin).collect();
        // The seed is about what is inside.
        pins.iter().for_each(Pin::clear_input);
        let index = u16::try_from(position).expect("fewer than 65536 models");
        Ok(Self {
            raw,
            entry,
            index,
            pins,
            seed,
            cycle: 0,
            changed: true,
            second: None,
            trace: None,
        })
    }

    /// Name of the model.
    pub fn name(&self) -> &'static str {
        self.entry.name
    }

    /// The SystemVerilog that it was built from, without foreign sources.
    ///
    /// # Errors
    /// If the build has been cleaned away since it was linked.
    pub fn text(&self) -> io::Result<String> {
        fs::read_to_string(self.entry.text)
    }

    /// Seed that it was opened with.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Cycles stepped so far.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// All pins, in the order of the Verilog.
    pub fn ports(&self) -> &'static [PortInfo] {
        self.entry.ports
    }

    /// The pin called `name`.
    ///
    /// # Errors
    /// If there is none.
    pub fn port(&self, name: &str) -> Result<Port, ModelError> {
        let found = self.entry.ports.iter().position(|port| port.name == name);
        let pin = found.and_then(|position| u16::try_from(position).ok());
        let missing = || ModelError::NoPort {
            model: self.name().into(),
            port: name.into(),
        };
        Ok(Port {
            model: self.index,
            pin: pin.ok_or_else(missing)?,
        })
    }

    /// Declaration of a pin.
    ///
    /// # Panics
    /// If `port` comes from another model.
    pub fn info(&self, port: Port) -> PortInfo {
        self.pin(port);
        self.entry.ports[usize::from(port.pin)]
    }

    #[inline]
    fn pin(&self, port: Port) -> &Pin {
        assert!(port.model == self.index, "the port is another model's");
        &self.pins[usize::from(port.pin)]
    }

    /// Drives an input. A value wider than the pin is cut, as an assignment in Verilog does; of a
    /// pin wider than 64 bits the upper bits become 0.
    ///
    /// # Panics
    /// If `port` comes from another model or is an output.
    #[inline]
    pub fn set(&mut self, port: Port, value: u64) {
        self.changed = true;
        self.pin(port).set(value);
    }

    /// Reads a pin; of one wider than 64 bits the lower 64.
    ///
    /// # Panics
    /// If `port` comes from another model.
    #[inline]
    pub fn get(&self, port: Port) -> u64 {
        self.pin(port).get()
    }

    /// Drives an input of any width, lowest word first. Words beyond `words` become 0, bits beyond
    /// the pin are cut.
    ///
    /// # Panics
    /// If `port` comes from another model or is an output.
    pub fn set_wide(&mut self, port: Port, words: &[u32]) {
        self.changed = true;
        self.pin(port).set_wide(words);
    }

    /// Reads a pin of any width, lowest word first. Words beyond the pin become 0.
    ///
    /// # Panics
    /// If `port` comes from another model.
    pub fn get_wide(&self, port: Port, words: &mut [u32]) {
        self.pin(port).get_wide(words);
    }

    /// Lets the gates settle without moving the clock.
    #[inline]
    pub fn eval(&mut self) {
        self.changed = false;
        // SAFETY: the object is alive, and `&mut self` keeps other threads out.
        unsafe { (self.entry.eval)(self.raw.as_ptr()) }
    }

    /// A memory inside the gates, of words of 17 to 32 bits, to write before they run: `path` are the names of the modules' instances and that of the memory,
    /// with a dot between each two. Verilator has to be told to keep it accessible (`public_flat_rw`, see `hdl/src/mgmt/ibex.vlt`).
    ///
    /// # Errors
    /// If there is no such memory.
    pub fn memory(&mut self, path: &str) -> Result<&mut [u32], ModelError> {
        let missing = || ModelError::NoMemory {
            model: self.entry.name.into(),
            memory: path.into(),
        };
        self.changed = true;
        let (scope, name) = path.rsplit_once('.').ok_or_else(missing)?;
        let scope = CString::new(scope).map_err(|_| missing())?;
        let name = CString::new(name).map_err(|_| missing())?;
        let mut words = 0;
        // SAFETY: the object is alive, `&mut self` keeps other threads out, and the strings end with a zero.
        let first = unsafe {
            (self.entry.memory)(self.raw.as_ptr(), scope.as_ptr(), name.as_ptr(), &mut words)
        };
        let first = NonNull::new(first).ok_or_else(missing)?;
        // SAFETY: the shim says that so many words of 32 bits stand there, as long as the object does, which isn't evaluated while they are borrowed.
        Ok(unsafe { slice::from_raw_parts_mut(first.as_ptr(), words as usize) })
    }

    /// Lets `port` be a second clock. It rises when the first does, in the cycles that `rate` says; a faster one rises again before the first falls, and both
    /// fall together. It moves in [`Model::step`] and its halves only, and a waveform shows it once a half.
    ///
    /// # Panics
    /// If the rate is 0, or `port` comes from another model or is an output.
    pub fn second_clock(&mut self, port: Port, rate: Rate) {
        self.set(port, 0);
        self.second = Some(SecondClock {
            port,
            rate: rate.checked(),
            held: false,
        });
    }

    /// Holds the second clock low, from the next cycle on, or lets it rise again, in the cycles in which it would have all the time. Without a second clock it does
    /// nothing.
    pub fn hold_second_clock(&mut self, held: bool) {
        if let Some(second) = &mut self.second {
            second.held = held;
        }
    }

    /// The first half of a cycle: clock low, settle. Now the outputs are those of this cycle, with the
    /// inputs that were set before; [`Model::rise`] ends it. Together they are [`Model::step`].
    #[inline]
    pub fn fall(&mut self) {
        self.half(0);
    }

    /// The second half of a cycle: clock high, settle.
    #[inline]
    pub fn rise(&mut self) {
        self.half(1);
        self.cycle += 1;
    }

    #[inline]
    fn half(&mut self, level: u8) {
        // How often the second clock rises in this half, and it.
        let second = self.second.map(|SecondClock { port, rate, held }| {
            let rises = match rate {
                _ if level == 0 || held => 0,
                Rate::Times(count) => count,
                Rate::OneIn(cycles) => u32::from(self.cycle.is_multiple_of(cycles.into())),
            };
            (port, rises)
        });
        if let Some((port, rises)) = second {
            self.pin(port).set((rises > 0).into());
        }
        let changed = mem::take(&mut self.changed);
        // SAFETY: the object is alive, and `&mut self` keeps other threads out. The call also makes
        // the context the thread's, which `dump` wants.
        unsafe { (self.entry.clock)(self.raw.as_ptr(), level, changed) };
        if let Some((port, rises)) = second {
            for level in (1..rises).flat_map(|_| [0, 1]) {
                self.pin(port).set(level);
                // SAFETY: as above, and no other input has changed since.
                unsafe { (self.entry.edges)(self.raw.as_ptr()) };
            }
        }
        if let Some(trace) = &mut self.trace {
            trace.dump(self.cycle, level);
        }
    }

    /// One cycle: clock low, settle, clock high, settle. Without a pin `clock`: settle.
    #[inline]
    pub fn step(&mut self) {
        self.steps(1);
    }

    /// `n` cycles with the inputs as they are.
    pub fn steps(&mut self, n: u64) {
        if self.trace.is_some() || self.second.is_some() {
            for _ in 0..n {
                self.fall();
                self.rise();
            }
            return;
        }
        // SAFETY: the object is alive, and `&mut self` keeps other threads out.
        unsafe { (self.entry.step)(self.raw.as_ptr(), n) };
        self.changed &= n == 0;
        self.cycle += n;
    }

    /// Whether all assertions in the gates have held since the start or [`Model::clear_error`].
    ///
    /// # Errors
    /// If one has failed; its message went to standard output when it did.
    pub fn got_error(&self) -> Result<(), AssertionFailed> {
        // SAFETY: the object is alive, and `Model` isn't `Sync`, so that no other thread is in it.
        let failed = unsafe { (self.entry.error)(self.raw.as_ptr()) } != 0;
        if !failed {
            return Ok(());
        }
        Err(AssertionFailed {
            model: self.name(),
            cycle: self.cycle,
            seed: self.seed,
        })
    }

    /// Forgets a failed assertion.
    pub fn clear_error(&mut self) {
        // SAFETY: the object is alive, and `&mut self` keeps other threads out.
        unsafe { (self.entry.clear_error)(self.raw.as_ptr()) }
    }

    /// Begins a waveform (VCD) in a new file; one that is being written ends first.
    ///
    /// A cycle is [`NS_PER_CYCLE`] nanoseconds in it, cycle 0 at 0.
    ///
    /// # Errors
    /// If the model wasn't opened with [`Model::open_traced`], or the file can't be created.
    pub fn trace_start(&mut self, file: &Path) -> Result<(), ModelError> {
        self.trace_stop();
        let Some(declare) = self.entry.trace else {
            return Err(ModelError::NotTraced {
                name: self.name().into(),
            });
        };
        // SAFETY: the object is alive, and `&mut self` keeps other threads out. The waveform's
        // callbacks point into the object; `drop` ends the one before the other.
        let trace = unsafe {
            (self.entry.enter)(self.raw.as_ptr());
            Trace::start(file, |vcd| declare(self.raw.as_ptr(), vcd))
        };
        self.trace = Some(trace?);
        Ok(())
    }

    /// Ends the waveform, if one is being written.
    pub fn trace_stop(&mut self) {
        if self.trace.is_some() {
            // SAFETY: the object is alive, and `&mut self` keeps other threads out.
            unsafe { (self.entry.enter)(self.raw.as_ptr()) };
            self.trace = None;
        }
    }
}

pub use trace::NS_PER_CYCLE;

impl Drop for Model {
    fn drop(&mut self) {
        self.trace_stop();
        // SAFETY: the object is alive, nothing points into it any more but pins, which no one can
        // reach after this.
        unsafe { (self.entry.delete)(self.raw.as_ptr()) }
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("name", &self.name())
            .field("seed", &self.seed)
            .field("cycle", &self.cycle)
            .finish_non_exhaustive()
    }
}

/// The seed in the 31 bits that Verilator takes; zero stays zero and nothing else becomes it.
fn folded(seed: u64) -> u32 {
    let mixed = (seed ^ (seed >> 31) ^ (seed >> 62)) as u32 & 0x7fff_ffff;
    if mixed == 0 && seed != 0 { 1 } else { mixed }
}

/// Whether the runtime is of the release that the models are.
fn check_runtime() -> Result<(), ModelError> {
    let runtime = verilated::product_version().to_string_lossy();
    if runtime.split_whitespace().next() == table::VERSION.split_whitespace().next() {
        return Ok(());
    }
    Err(ModelError::Runtime {
        models: table::VERSION.into(),
        runtime: runtime.into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::folded;

    #[test]
    fn only_seed_zero_means_zeros() {
        assert_eq!(folded(0), 0);
        for bit in 0..64 {
            assert_ne!(folded(1 << bit), 0);
        }
        assert_ne!(folded(0x8000_0001), 0);
        assert_ne!(folded(1), folded(2));
    }
}
