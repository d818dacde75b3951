//! What is looked at of a frame before anybody else sees it.

use abi::capability::{self, CAPABILITY_GET};
use abi::control::Counter;
use abi::limits::EAGER_MAX;
use abi::wire::{
    ETHERTYPE_FIELD, FRAME_GAP, FRAME_MAX, FRAME_READY, FRAME_REFUSED, FrameHeader, FrameType,
    HEADER_BYTES, MANAGEMENT_BYTES, TRAILER_BYTES, VERSION, crc32c,
};

use crate::breaks::Break;

/// A good frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screened {
    /// Its header.
    pub header: FrameHeader,
    /// Its type.
    pub frame_type: FrameType,
    /// Its payload without padding.
    pub payload: Vec<u8>,
}

/// Looks at a whole frame.
///
/// # Errors
/// What counts it, if it is dropped: the first thing that is wrong.
pub fn screen(bytes: &[u8]) -> Result<Screened, Counter> {
    screen_for(bytes, Break::None, capability::ALL)
}

/// The same, broken on purpose, of a card with these capabilities: one without gets doesn't know their frames.
///
/// # Errors
/// As [`screen`].
pub fn screen_for(bytes: &[u8], broken: Break, capabilities: u32) -> Result<Screened, Counter> {
    if bytes.len() < HEADER_BYTES + TRAILER_BYTES {
        return Err(Counter::LengthErrors);
    }
    let header = FrameHeader::parse(bytes).map_err(|_| Counter::LengthErrors)?;
    if header.ethertype != ETHERTYPE_FIELD {
        return Err(Counter::TypeErrors);
    }
    if bytes.len() > FRAME_MAX || !bytes.len().is_multiple_of(8) {
        return Err(Counter::LengthErrors);
    }
    let (covered, trailer) = bytes.split_at(bytes.len() - TRAILER_BYTES);
    let good = u64::from(crc32c(covered)).to_le_bytes() == *trailer;
    if !good && broken != Break::CrcIgnored {
        return Err(Counter::CrcErrors);
    }
    let frame_type = known(&header, capabilities).ok_or(Counter::TypeErrors)?;
    let padded = &covered[HEADER_BYTES..];
    let length = usize::from(header.payload_length);
    let fits = match frame_type {
        FrameType::Eager | FrameType::Put => length <= EAGER_MAX,
        FrameType::Get => length == 0 && usize::from(header.context) <= EAGER_MAX,
        FrameType::GetAnswer => length <= EAGER_MAX && (header.flags == 0 || length == 0),
        FrameType::Handshake | FrameType::Management => length == MANAGEMENT_BYTES,
        FrameType::Acknowledge | FrameType::PairFailed | FrameType::Ask | FrameType::PairClosed => {
            length == 0
        }
    };
    let agrees = header.message_length == u64::from(header.payload_length)
        && padded.len() == length.next_multiple_of(8);
    if !fits || !agrees {
        return Err(Counter::LengthErrors);
    }
    Ok(Screened {
        header,
        frame_type,
        payload: padded[..length].to_vec(),
    })
}

/// The type of a frame whose version, type and flags are known together.
fn known(header: &FrameHeader, capabilities: u32) -> Option<FrameType> {
    let frame_type = FrameType::from_code(header.frame_type)?;
    let of_gets = matches!(frame_type, FrameType::Get | FrameType::GetAnswer);
    if of_gets && capabilities & CAPABILITY_GET == 0 {
        return None;
    }
    let flags = match frame_type {
        FrameType::Eager => FRAME_READY,
        FrameType::Acknowledge | FrameType::Ask => FRAME_GAP,
        FrameType::GetAnswer => FRAME_REFUSED,
        _ => 0,
    };
    // Firmwares of different versions are to be able to name the difference.
    let version = header.version == VERSION || frame_type == FrameType::Handshake;
    (version && header.flags & !flags == 0).then_some(frame_type)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::seal;

    fn frame(change: impl Fn(&mut FrameHeader), payload: &[u8]) -> Vec<u8> {
        let mut header = FrameHeader {
            ethertype: ETHERTYPE_FIELD,
            version: VERSION,
            frame_type: FrameType::Eager.code(),
            payload_length: payload.len() as u16,
            message_length: payload.len() as u64,
            ..FrameHeader::default()
        };
        change(&mut header);
        seal(&header, payload)
    }

    #[test]
    fn a_good_frame_passes_and_one_with_any_bit_changed_does_not() {
        let good = frame(|_| {}, b"eleven byte");
        let screened = screen(&good).expect("a good frame");
        assert_eq!(screened.payload, b"eleven byte");
        for bit in 0..8 * good.len() {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(screen(&bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn what_is_wrong_first_counts() {
        let good = frame(|_| {}, &[1; 16]);
        let drop = |frame: &[u8]| screen(frame).expect_err("a bad frame");
        assert_eq!(drop(&good[..HEADER_BYTES]), Counter::LengthErrors);
        let foreign = frame(|header| header.ethertype = 8, &[]);
        assert_eq!(drop(&foreign), Counter::TypeErrors);
        assert_eq!(drop(&good[..good.len() - 1]), Counter::LengthErrors);
        assert_eq!(drop(&good[..good.len() - 8]), Counter::CrcErrors);
        assert_eq!(
            drop(&frame(|_| {}, &[0; EAGER_MAX + 1])),
            Counter::LengthErrors
        );
        let lies: [&dyn Fn(&mut FrameHeader); 5] = [
            &|header| header.payload_length -= 8,
            &|header| header.message_length += 1,
            &|header| header.frame_type = FrameType::Acknowledge.code(),
            &|header| header.frame_type = FrameType::Get.code(),
            &|header| {
                header.frame_type = FrameType::GetAnswer.code();
                header.flags = FRAME_REFUSED;
            },
        ];
        for lie in lies {
            assert_eq!(drop(&frame(lie, &[0; 16])), Counter::LengthErrors);
        }
        let unknown: [&dyn Fn(&mut FrameHeader); 5] = [
            &|header| header.version += 1,
            &|header| header.frame_type = 0x13,
            &|header| header.flags = 2,
            &|header| {
                header.frame_type = FrameType::Put.code();
                header.flags = FRAME_READY;
            },
            &|header| {
                header.frame_type = FrameType::Ask.code();
                header.flags = FRAME_READY;
            },
        ];
        for unknown in unknown {
            assert_eq!(drop(&frame(unknown, &[])), Counter::TypeErrors);
        }
    }

    #[test]
    fn a_handshake_passes_whatever_its_version_is() {
        let handshake = |version, length| {
            let change = |header: &mut FrameHeader| {
                header.frame_type = FrameType::Handshake.code();
                header.version = version;
            };
            screen(&frame(change, &vec![0; length])).map(|screened| screened.frame_type)
        };
        assert_eq!(handshake(77, MANAGEMENT_BYTES), Ok(FrameType::Handshake));
        assert_eq!(handshake(VERSION, 8), Err(Counter::LengthErrors));
    }
}
