//! Memory that the program brings: who owns it, and until when.

use crate::common::{connected, fabric};
use host_driver::transport::TransportError;
use host_driver::{Access, CommandError, Device, MailboxStatus, WcStatus};
use soft_card::FirmwareBehaviour;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes at an odd address, whose owner counts how often it is dropped.
struct Counted {
    bytes: Vec<u8>,
    drops: Arc<AtomicUsize>,
}

impl Counted {
    fn new(bytes: &[u8]) -> (Self, Arc<AtomicUsize>) {
        let drops = Arc::default();
        let mut whole = vec![0xee];
        whole.extend(bytes);
        let counted = Self {
            bytes: whole,
            drops: Arc::clone(&drops),
        };
        (counted, drops)
    }
}

impl AsMut<[u8]> for Counted {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[1..]
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::SeqCst);
    }
}

fn drops(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::SeqCst)
}

#[test]
fn messages_go_from_and_to_memory_of_the_program() {
    let (a, b) = connected(&fabric(), 8);
    let (_region, from) =
        a.pd.reg_user_mr(b"posthorn".to_vec(), Access::Read)
            .unwrap();
    let boxed = vec![0xff; 12].into_boxed_slice();
    let (_region, into) = b.pd.reg_user_mr(boxed, Access::Write).unwrap();
    assert_eq!((&from[..], into.len()), (&b"posthorn"[..], 12));
    b.endpoint.post_tagged_recv(1, &b.receive(7), into).unwrap();
    a.endpoint.post_tagged_send(2, &a.send(7), from).unwrap();
    let received = b.next();
    assert_eq!(received.received(), b"posthorn");
    assert_eq!(
        received.buffer.unwrap()[8..],
        [0xff; 4],
        "behind the message"
    );
    assert_eq!(&a.next().buffer.unwrap()[..], b"posthorn");
}

#[test]
fn what_is_static_can_be_registered_and_given_back() {
    let (a, b) = connected(&fabric(), 8);
    let bytes: &'static mut [u8] = Vec::leak(b"static".to_vec());
    let (region, from) = a.pd.reg_user_mr(bytes, Access::Read).unwrap();
    a.endpoint.post_tagged_send(2, &a.send(7), from).unwrap();
    let (_region, into) = b.pd.reg_user_mr(vec![0; 6], Access::Write).unwrap();
    b.endpoint.post_tagged_recv(1, &b.receive(7), into).unwrap();
    assert_eq!(b.next().received(), b"static");
    drop(a.next());
    region.deregister().unwrap();
}

#[test]
fn the_owner_is_dropped_once_when_the_card_has_forgotten_the_region() {
    let fabric = fabric();
    let (a, _b) = connected(&fabric, 8);
    let (owner, counter) = Counted::new(b"posthorn");
    let mappings = fabric.mappings(0);
    let (region, buffer) = a.pd.reg_user_mr(owner, Access::Read).unwrap();
    let region = region.deregister().unwrap_err().0;
    a.endpoint.post_tagged_send(1, &a.send(7), buffer).unwrap();
    let sent = a.next();
    drop(region);
    assert_eq!((drops(&counter), fabric.mappings(0)), (0, mappings + 1));
    drop(sent);
    assert_eq!((drops(&counter), fabric.mappings(0)), (1, mappings));
}

#[test]
fn a_registration_that_fails_drops_the_owner_at_once() {
    let fabric = fabric();
    let (a, _b) = connected(&fabric, 8);
    let (owner, counter) = Counted::new(b"");
    let empty = a.pd.reg_user_mr(owner, Access::Read).err();
    assert!(matches!(empty, Some(CommandError::Argument(_))));
    assert_eq!(drops(&counter), 1);
    let mut all = Vec::new();
    let full = loop {
        let (owner, counter) = Counted::new(b"x");
        match a.pd.reg_user_mr(owner, Access::Read) {
            Ok(region) => all.push(region),
            Err(error) => break (error, drops(&counter)),
        }
    };
    let status = MailboxStatus::NoResource;
    assert!(matches!(full, (CommandError::Refused { status: found, .. }, 1) if found == status));
    fabric.close();
    let (owner, counter) = Counted::new(b"x");
    let gone = a.pd.reg_user_mr(owner, Access::Read).err().unwrap();
    assert_eq!(gone, TransportError::Closed.into());
    assert_eq!(drops(&counter), 1);
}

#[test]
fn the_owner_waits_for_a_late_answer_of_the_card() {
    let fabric = fabric();
    let device = Device::open(fabric.transport(0)).unwrap();
    let pd = device.alloc_pd().unwrap();
    let cycles = 10_000_000;
    fabric.set_firmware(0, FirmwareBehaviour::AnswersLate { after: 0, cycles });
    let (owner, counter) = Counted::new(b"posthorn");
    let late = pd.reg_user_mr(owner, Access::Write).err().unwrap();
    assert!(matches!(late, CommandError::FirmwareTimeout { .. }));
    assert_eq!(drops(&counter), 0, "the card may be about to know it");
    fabric.set_firmware(0, FirmwareBehaviour::Normal);
    fabric.run(2 * cycles);
    device.alloc_pd().unwrap();
    assert_eq!(drops(&counter), 1, "it was opened too late, and is closed");
}

#[test]
pub fn the_owner_is_kept_from_a_card_out_of_reach_and_for_ever_if_it_stays_there() {
    for comes_back in [true, false] {
        let fabric = fabric();
        let (a, _b) = connected(&fabric, 8);
        let (owner, counter) = Counted::new(b"posthorn");
        let registered = a.pd.reg_user_mr(owner, Access::Write).unwrap();
        fabric.cut(0, true);
        drop(registered);
        assert_eq!(drops(&counter), 0);
        fabric.cut(0, !comes_back);
        drop(a);
        assert_eq!(drops(&counter), usize::from(comes_back));
    }
}

#[test]
fn the_owner_is_dropped_when_the_card_is_gone() {
    let fabric = fabric();
    let (mut a, b) = connected(&fabric, 8);
    let (owner, counter) = Counted::new(b"posthorn");
    let (region, into) = a.pd.reg_user_mr(owner, Access::Write).unwrap();
    a.endpoint.post_tagged_recv(1, &a.receive(7), into).unwrap();
    let spare = a.buffer(8);
    assert_eq!(drops(&counter), 0);
    fabric.close();
    let flushed = a.next();
    assert_eq!(flushed.status, WcStatus::Flushed);
    drop((region, flushed, spare, a, b));
    assert_eq!(drops(&counter), 1);
}
