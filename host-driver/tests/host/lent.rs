//! Memory that one side lends the other: what the tests of puts and of gets have in common.

use crate::common::{Side, sized};
use abi::wire::{FrameHeader, FrameType};
use host_driver::{Buffer, RemoteKey, RemoteRights, WcStatus, Window, WorkCompletion};
use soft_card::{SoftFabric, SoftOptions};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes of the window.
pub const LENGTH: usize = 0x1_0000;
/// What is granted of the window.
pub const GRANTED: Range<usize> = 1001..60_003;
/// Cycles in which a cancel ends what waits.
pub const CANCEL: u64 = 10_000;

/// The first side reaches into the window of the second.
pub struct Lent {
    pub fabric: SoftFabric,
    pub a: Side,
    pub b: Side,
    pub window: Window,
    pub key: RemoteKey,
}

impl Lent {
    /// With these rights of the window, and those of them that the key gives to what is granted.
    pub fn of(
        options: SoftOptions,
        credits: u16,
        completions: usize,
        rights: RemoteRights,
        granted: RemoteRights,
    ) -> Self {
        let fabric = SoftFabric::new(options);
        let (a, b) = sized(&fabric, credits, completions);
        let window = b.pd.reg_window(LENGTH, rights).expect("a window");
        let key = window.grant(&b.endpoint, b.pair, granted, GRANTED);
        Self {
            key: key.expect("a key"),
            fabric,
            a,
            b,
            window,
        }
    }

    /// Posts a message of these match bits without bytes.
    pub fn message(&self, match_bits: u64) {
        let send = self.a.send(match_bits);
        let posted = (self.a.endpoint).post_tagged_send(match_bits, &send, Buffer::empty());
        posted.expect("room");
    }

    /// Receives it.
    pub fn receive(&mut self, match_bits: u64) {
        let receive = self.b.receive(match_bits);
        self.b.post(match_bits, &receive);
        let received = self.b.next_past_events();
        assert_eq!(
            (received.wr_id, received.status),
            (match_bits, WcStatus::Success)
        );
    }

    /// The next completion, which is of this.
    #[track_caller]
    pub fn ends(&self, wr_id: u64, status: WcStatus) -> WorkCompletion {
        let ended = self.a.next_past_events();
        assert_eq!((ended.wr_id, ended.status), (wr_id, status));
        ended
    }

    /// Nothing is outstanding, and nothing completes any more.
    #[track_caller]
    pub fn all_has_ended(&self) {
        self.a.pause(50_000);
        assert!(self.a.cq.poll().is_none());
        assert_eq!((self.a.cq.outstanding(), self.a.cq.strays()), (0, 0));
        assert_eq!(self.a.endpoint.query().kept, 0);
    }

    /// Counts the frames of a type that go over the wire.
    pub fn count(&self, frame_type: FrameType) -> Arc<AtomicU64> {
        let count = Arc::new(AtomicU64::new(0));
        let counts = Arc::clone(&count);
        self.fabric.tap(move |frame, out| {
            if is(&frame.bytes, frame_type) {
                counts.fetch_add(1, Ordering::Relaxed);
            }
            out.push(frame);
        });
        count
    }

    /// While the switch is on, frames of a card are lost.
    pub fn switch(&self, card: usize) -> Arc<AtomicBool> {
        let lost = Arc::new(AtomicBool::new(false));
        let loses = Arc::clone(&lost);
        self.fabric.tap(move |frame, out| {
            if frame.source != card || !loses.load(Ordering::Relaxed) {
                out.push(frame);
            }
        });
        lost
    }
}

/// Whether a frame is of this type.
pub fn is(frame: &[u8], frame_type: FrameType) -> bool {
    let header = FrameHeader::parse(frame);
    header.is_ok_and(|header| header.frame_type == frame_type.code())
}
