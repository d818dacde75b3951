//! Frames in flight, as a tap on a link sees and changes them.

use abi::wire::{FrameHeader, FrameType, HEADER_BYTES, TRAILER_BYTES, crc32c};
use sim::fabric::Passing;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The header of a frame, if it is long enough to have one.
pub fn header(frame: &Passing) -> Option<FrameHeader> {
    FrameHeader::parse(&frame.frame.bytes).ok()
}

/// Whether it is a frame of this type.
pub fn is(frame: &Passing, kind: FrameType) -> bool {
    header(frame).is_some_and(|header| header.frame_type == kind.code())
}

/// The immediate data of an eager message: tests number their messages there.
pub fn number(frame: &Passing) -> Option<u64> {
    is(frame, FrameType::Eager).then(|| header(frame).map_or(0, |header| header.immediate))
}

/// Changes the header, and makes the CRC right again: what a sound card with other ideas would have sent.
pub fn edit(frame: &mut Passing, change: impl FnOnce(&mut FrameHeader)) {
    let mut header = header(frame).expect("a whole frame");
    change(&mut header);
    header.emit(&mut frame.frame.bytes);
    seal(frame);
}

/// Changes a byte of the payload, and makes the CRC right again.
pub fn edit_payload(frame: &mut Passing, at: usize) {
    frame.frame.bytes[HEADER_BYTES + at] ^= 0x40;
    seal(frame);
}

/// Makes the CRC right.
pub fn seal(frame: &mut Passing) {
    let bytes = &mut frame.frame.bytes;
    let end = bytes.len() - TRAILER_BYTES;
    let (body, trailer) = bytes.split_at_mut(end);
    trailer.copy_from_slice(&u64::from(crc32c(body)).to_le_bytes());
}

/// Whether the CRC is right.
pub fn is_sealed(bytes: &[u8]) -> bool {
    let Some(at) = bytes.len().checked_sub(TRAILER_BYTES) else {
        return false;
    };
    let (body, trailer) = bytes.split_at(at);
    *trailer == u64::from(crc32c(body)).to_le_bytes()
}

/// A tap that loses each acknowledgement that `is_made_up_for` by a later one, and repeats the others. It is told the header
/// and how many eager messages have passed, each counted once. `lost` counts.
pub fn lossy(
    lost: Arc<AtomicU64>,
    is_made_up_for: impl Fn(&FrameHeader, u32) -> bool + Send,
) -> impl FnMut(Passing, &mut Vec<Passing>) + Send {
    let mut messages = 0;
    move |passing, out: &mut Vec<Passing>| {
        if is(&passing, FrameType::Eager) {
            let header = header(&passing).expect("whole");
            messages = messages.max(header.sequence + 1);
        } else if is(&passing, FrameType::Acknowledge) {
            if is_made_up_for(&header(&passing).expect("whole"), messages) {
                lost.fetch_add(1, Ordering::Relaxed);
                return;
            }
            out.push(passing.clone());
        }
        out.push(passing);
    }
}
