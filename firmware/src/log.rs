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
    /// The interrupt state to go back to, while a frame is being written.
    restore: Cell<Option<RestoreState>>,
}

// SAFETY: one hart, and the fields are touched with interrupts disabled only, from `acquire` to `release`.
unsafe impl Sync for State {}

static STATE: State = State {
    encoder: UnsafeCell::new(defmt::Encoder::new()),
    restore: Cell::new(None),
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
        assert!(STATE.restore.replace(Some(restore)).is_none());
        STATE.encode(|encoder, put| encoder.start_frame(put));
    }

    unsafe fn flush() {}

    unsafe fn release() {
        STATE.encode(|encoder, put| encoder.end_frame(put));
        if let Some(restore) = STATE.restore.take() {
            // SAFETY: from the matching `acquire`.
            unsafe { critical_section::release(restore) };
        }
    }

    unsafe fn write(bytes: &[u8]) {
        STATE.encode(|encoder, put| encoder.write(bytes, put));
    }
}

defmt::timestamp!("{=u32}", timer::now());
