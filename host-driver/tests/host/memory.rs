//! Regions and buffers: who may touch what, and when a region may go.

use crate::common::{connected, fabric};
use host_driver::{Access, CommandError, Device, PostError, WcStatus};

#[test]
fn buffers_are_split_and_joined_where_they_touch() {
    let device = Device::open(fabric().transport(0)).unwrap();
    let pd = device.alloc_pd().unwrap();
    let (region, mut rest) = pd.reg_mr(100, Access::ReadWrite).unwrap();
    let mut a = rest.split_to(30);
    let mut b = rest.split_to(30);
    assert_eq!(
        (a.len(), b.len(), rest.len(), region.length()),
        (30, 30, 40, 100)
    );
    a.fill(1);
    b.fill(2);
    let rest = a.join(rest).unwrap_err();
    b.join(rest).unwrap();
    a.join(b).unwrap();
    assert_eq!(a[28..32], [1, 1, 2, 2]);
    assert_eq!(a.len(), 100);
    let (_, other) = pd.reg_mr(100, Access::ReadWrite).unwrap();
    assert!(a.join(other).is_err(), "another region");
}

#[test]
#[should_panic(expected = "split past the end")]
fn a_buffer_is_not_split_past_its_end() {
    let device = Device::open(fabric().transport(0)).unwrap();
    let (_region, mut whole) = device.alloc_pd().unwrap().reg_mr(8, Access::Read).unwrap();
    let _ = whole.split_to(9);
}

#[test]
fn a_region_is_deregistered_only_when_no_buffer_is_out() {
    let device = Device::open(fabric().transport(0)).unwrap();
    let pd = device.alloc_pd().unwrap();
    let (region, buffer) = pd.reg_mr(64, Access::Read).unwrap();
    let region = region.deregister().unwrap_err().0;
    drop(buffer);
    region.deregister().unwrap();
    let empty = pd.reg_mr(0, Access::Read).err();
    assert!(matches!(empty, Some(CommandError::Argument(_))));
}

#[test]
fn a_region_in_flight_is_in_use_and_comes_back_with_the_completion() {
    let (_a, b) = connected(&fabric(), 8);
    let (region, whole) = b.pd.reg_mr(64, Access::Write).unwrap();
    let receive = b
        .endpoint
        .post_tagged_recv(1, &b.receive(7), whole)
        .unwrap();
    let region = region.deregister().unwrap_err().0;
    b.endpoint.cancel(2, receive).unwrap();
    let cancelled = b.next();
    let region = region.deregister().unwrap_err().0;
    drop(cancelled);
    region.deregister().unwrap();
}

#[test]
fn regions_come_back_to_the_card() {
    let device = Device::open(fabric().transport(0)).unwrap();
    let pd = device.alloc_pd().unwrap();
    let regions = device.identity().regions as usize;
    for _ in 0..3 {
        let all: Vec<_> = (0..regions)
            .map(|_| pd.reg_mr(16, Access::Read).unwrap())
            .collect();
        let one_more = pd.reg_mr(16, Access::Read).err();
        assert!(matches!(
            one_more,
            Some(CommandError::Refused {
                status: host_driver::MailboxStatus::NoResource,
                ..
            })
        ));
        drop(all);
    }
}

#[test]
fn a_buffer_of_another_domain_or_card_is_refused() {
    let (a, mut b) = connected(&fabric(), 8);
    let foreign = b.buffer(8);
    let refused = a
        .endpoint
        .post_tagged_send(1, &a.send(7), foreign)
        .unwrap_err();
    assert_eq!(refused.error, PostError::WrongDomain);
    let (_region, other) = a
        .device
        .alloc_pd()
        .unwrap()
        .reg_mr(8, Access::ReadWrite)
        .unwrap();
    let refused = a
        .endpoint
        .post_tagged_recv(1, &a.receive(7), other)
        .unwrap_err();
    assert_eq!(refused.error, PostError::WrongDomain);
    assert_eq!(refused.buffer.len(), 8);
}

#[test]
fn a_region_is_used_as_its_access_says() {
    let (a, b) = connected(&fabric(), 8);
    let (_write_only, buffer) = a.pd.reg_mr(8, Access::Write).unwrap();
    a.endpoint.post_tagged_send(1, &a.send(7), buffer).unwrap();
    assert_eq!(a.next().status, WcStatus::LocalProtection);
    let (_read_only, buffer) = b.pd.reg_mr(8, Access::Read).unwrap();
    b.endpoint
        .post_tagged_recv(1, &b.receive(7), buffer)
        .unwrap();
    assert_eq!(b.next().status, WcStatus::LocalProtection);
}

#[test]
fn a_domain_outlives_what_uses_it() {
    let device = Device::open(fabric().transport(0)).unwrap();
    let pd = device.alloc_pd().unwrap();
    let endpoint = pd.endpoint().open().unwrap();
    drop(pd);
    // Numbers are given out again once the last user is gone: 64 more would not fit beside a leak.
    drop(endpoint);
    let all: Vec<_> = (0..64).map(|_| device.alloc_pd().unwrap()).collect();
    assert!(device.alloc_pd().is_err());
    drop(all);
}

/// The firmware refuses a ring that isn't aligned to its size.
#[test]
fn rings_of_every_size_are_opened_whatever_memory_came_before() {
    let device = Device::open(fabric().transport(0)).unwrap();
    let pd = device.alloc_pd().unwrap();
    for log2 in 2..=14 {
        let before = pd.reg_mr(4096 * log2 + 1, Access::Read);
        let entries = 1 << log2;
        let endpoint = pd.endpoint().send_ring(entries).list_ring(entries);
        let endpoint = endpoint.completion_queue(entries).event_queue(entries);
        endpoint.open().unwrap();
        drop(before);
    }
}
