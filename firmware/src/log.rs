//! `defmt`'s frames, out by the log port. One `info!` takes some 1300 cycles.

use crate::port::LogPort;
use core::cell::{Cell, UnsafeCell};
use critical_section::RestoreState;
use embedded_io::Write;
use firmware::timer;

#[defmt::global_logger]
struct Logger;

struct State {
    encoder: UnsafeCell<defmt::Encoder>,
    /// A frame is being written,
    writing: Cell<bool>,
    /// and this is the interrupt state to go back to. Apart from it, so that all zeroes is the state at a start: the program is run again from the
    /// memory that it has changed, and only what starts as zero is initialised (`memory.x` sees to it that nothing else is needed).
    restore: Cell<RestoreState>,
}

// SAFETY: one hart, and the fields are touched with interrupts disabled only, from `acquire` to `release`.
unsafe impl Sync for State {}

static STATE: State = State {
    encoder: UnsafeCell::new(defmt::Encoder::new()),
    writing: Cell::new(false),
    restore: Cell::new(RestoreState::invalid()),
};

impl State {
    fn encode(&self, with: impl FnOnce(&mut defmt::Encoder, fn(&[u8]))) {
        // SAFETY: called between `acquire` and `release` only, and not by itself, so this is the only reference.
        with(unsafe { &mut *self.encoder.get() }, put)
    }
}

fn put(bytes: &[u8]) {
    let Ok(()) = LogPort.write_all(bytes);
}

// SAFETY: `acquire` disables interrupts on the only hart, so that nothing runs until `release`; it panics when
// it is entered twice.
unsafe impl defmt::Logger for Logger {
    fn acquire() {
        // SAFETY: released in `release`, in the opposite order.
        let restore = unsafe { critical_section::acquire() };
        assert!(!STATE.writing.replace(true));
        STATE.restore.set(restore);
        STATE.encode(|encoder, put| encoder.start_frame(put));
    }

    unsafe fn flush() {}

    unsafe fn release() {
        STATE.encode(|encoder, put| encoder.end_frame(put));
        if STATE.writing.take() {
            // SAFETY: from the matching `acquire`.
            unsafe { critical_section::release(STATE.restore.get()) };
        }
    }

    unsafe fn write(bytes: &[u8]) {
        STATE.encode(|encoder, put| encoder.write(bytes, put));
    }
}

defmt::timestamp!("{=u32}", timer::now());
