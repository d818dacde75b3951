//! The gates, as the firmware's decisions see them. No call waits.
//!
//! ```text
//!  CONTROL_DATA ◄─ data, then CONTROL_START ◄─ operation, index ─► gates
//!  CONTROL_BUSY ─► 0 ─► CONTROL_RESULT
//!  FRAME_OUT ◄─ frame, FRAME_SEND ─► wire ─► FRAME_IN ─► frame, FRAME_TAKE
//! ```

use abi::control::{AccessReport, DATA_WORDS, Operation};
use abi::mgmt::{
    CONTROL_BUSY, CONTROL_DATA, CONTROL_RESULT, CONTROL_START, EVENT, EVENT_TAKE, EVENTS_LOST,
    FRAME_IN, FRAME_OUT, FRAME_SEND, FRAME_TAKE, FRAMES_LOST, GATES_RESET, INTERRUPT_EVENT,
    INTERRUPT_FRAME_IN, INTERRUPT_FRAME_OUT, INTERRUPT_GATES_READY, INTERRUPT_PENDING, MAC,
    PERSISTENT_BASE, PERSISTENT_BYTES, RANDOM, SIZE_WORDS, SIZES, control_start, event_fields,
};
use core::ptr::with_exposed_provenance_mut;
use firmware::registers::{read, read_pair, write};
use firmware::timer;
use firmware_core::{Card, FrameWords, GateEvent, Sizes};

/// Looks at what a request waits for, if that is another access each time.
const LOOKS: usize = 4;

/// The gates of this card, and its persistent memory. There is one of them.
pub struct Gates;

fn is_pending(interrupt: u32) -> bool {
    read(INTERRUPT_PENDING) & interrupt != 0
}

fn persistent(word: usize) -> *mut u32 {
    assert!(word < PERSISTENT_BYTES as usize / 4);
    with_exposed_provenance_mut(PERSISTENT_BASE as usize + 4 * word)
}

impl Card for Gates {
    fn control_start(&mut self, operation: Operation, index: u16, data: &[u64]) {
        for k in 0..DATA_WORDS {
            let word = data.get(k).copied().unwrap_or(0);
            let offset = CONTROL_DATA + 8 * k as u32;
            write(offset, word as u32);
            write(offset + 4, (word >> 32) as u32);
        }
        write(CONTROL_START, control_start(operation, index));
    }

    fn control_result(&mut self) -> Option<u64> {
        (read(CONTROL_BUSY) == 0).then(|| read_pair(CONTROL_RESULT))
    }

    fn control_report(&mut self) -> AccessReport {
        // Its words are read one behind the other: until both are as they were before. Of a request that is done, the result stands there.
        let mut before = read_pair(CONTROL_RESULT);
        for _ in 0..LOOKS {
            let report = read_pair(CONTROL_RESULT);
            if read(CONTROL_BUSY) == 0 {
                break;
            }
            if report == before {
                return AccessReport::from_words(&[report]);
            }
            before = report;
        }
        AccessReport::default()
    }

    fn reset_start(&mut self) {
        write(GATES_RESET, 1);
    }

    fn reset_done(&mut self) -> bool {
        read(GATES_RESET) & 1 == 0 && is_pending(INTERRUPT_GATES_READY)
    }

    fn frame_out_is_free(&mut self) -> bool {
        is_pending(INTERRUPT_FRAME_OUT)
    }

    fn frame_send(&mut self, frame: &FrameWords) {
        for (&word, offset) in frame.iter().zip((FRAME_OUT..).step_by(4)) {
            write(offset, word);
        }
        write(FRAME_SEND, 1);
    }

    fn frame_take(&mut self) -> Option<FrameWords> {
        if !is_pending(INTERRUPT_FRAME_IN) {
            return None;
        }
        let frame = core::array::from_fn(|k| read(FRAME_IN + 4 * k as u32));
        write(FRAME_TAKE, 1);
        Some(frame)
    }

    fn frames_lost(&mut self) -> u32 {
        read(FRAMES_LOST)
    }

    fn event_take(&mut self) -> Option<GateEvent> {
        if !is_pending(INTERRUPT_EVENT) {
            return None;
        }
        let (cause, endpoint, pair) = event_fields(read(EVENT));
        let info = read_pair(EVENT + 4);
        write(EVENT_TAKE, 1);
        Some(GateEvent::new(cause, endpoint, pair, info))
    }

    fn events_lost(&mut self) -> u32 {
        read(EVENTS_LOST)
    }

    fn now(&self) -> u32 {
        timer::now()
    }

    fn random(&mut self) -> u32 {
        read(RANDOM)
    }

    fn mac(&self) -> u64 {
        read_pair(MAC)
    }

    fn sizes(&self) -> Sizes {
        let mut words = [0; SIZE_WORDS];
        for (word, offset) in words.iter_mut().zip((SIZES..).step_by(4)) {
            *word = read(offset);
        }
        let [
            endpoints,
            pairs,
            posted,
            unexpected,
            regions,
            posted_reserved,
            capabilities,
            descriptors,
            rules,
            grants,
        ] = words;
        Sizes {
            endpoints,
            pairs,
            posted,
            unexpected,
            regions,
            posted_reserved,
            capabilities,
            descriptors,
            rules,
            grants,
        }
    }

    fn persistent(&self, word: usize) -> u32 {
        // SAFETY: inside the persistent memory, as asserted, which the linker gives to nothing else.
        unsafe { persistent(word).read_volatile() }
    }

    fn set_persistent(&mut self, word: usize, value: u32) {
        // SAFETY: as for `persistent`; the whole memory may be written.
        unsafe { persistent(word).write_volatile(value) }
    }
}
