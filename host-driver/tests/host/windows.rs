//! Windows: what is granted to whom, what the card says to accesses of peers, and when the memory is the program's alone again.

use crate::common::{PATIENCE, Side, able_options, connected};
use abi::control::{RIGHT_REMOTE_READ, RIGHT_REMOTE_WRITE};
use host_driver::{
    Access, Buffer, CommandError, Cover, GRANT_TICK, MailboxStatus, Pair, ProtectionDomain,
    RemoteKey, RemoteRights, WcStatus, Window,
};
use soft_card::{Refused, RemoteAccess, SoftFabric};

const LENGTH: usize = 4096;

/// Two cards, one of which has a window and two pairs: with the other card and with itself.
struct Stage {
    fabric: SoftFabric,
    a: Side,
    _b: Side,
    other: Pair,
    window: Window,
}

impl Stage {
    fn new() -> Self {
        let fabric = SoftFabric::new(able_options());
        let (a, b) = connected(&fabric, 1);
        let (other, near) = a.endpoint.open_pair(1).unwrap();
        let (third, far) = b.endpoint.open_pair(1).unwrap();
        a.endpoint.connect_pair(other, &far).unwrap();
        b.endpoint.connect_pair(third, &near).unwrap();
        let rights = RemoteRights::WRITE | RemoteRights::READ;
        let window = a.pd.reg_window(LENGTH, rights).unwrap();
        Self {
            fabric,
            a,
            _b: b,
            other,
            window,
        }
    }

    /// What the card says to an access of the peer of a pair.
    fn access(&self, pair: Pair, key: RemoteKey, offset: u64, length: u64) -> Result<u64, Refused> {
        let access = write_access(pair, key, offset, length);
        self.fabric.find_remote(0, &access)
    }

    fn grant(&self, pair: Pair) -> RemoteKey {
        let granted = self
            .window
            .grant(&self.a.endpoint, pair, RemoteRights::WRITE, 64..192);
        granted.unwrap()
    }
}

fn write_access(pair: Pair, key: RemoteKey, offset: u64, length: u64) -> RemoteAccess {
    RemoteAccess {
        pair: pair.index(),
        key: key.to_bits(),
        rights: RIGHT_REMOTE_WRITE,
        offset,
        length,
    }
}

fn refused(error: CommandError) -> (MailboxStatus, u32) {
    match error {
        CommandError::Refused { status, detail, .. } => (status, detail),
        error => panic!("{error}"),
    }
}

#[test]
pub fn a_key_is_its_peers_for_what_is_granted_until_it_is_revoked() {
    let stage = Stage::new();
    let (mine, other) = (stage.a.pair, stage.other);
    let keys = [mine, other].map(|pair| stage.grant(pair));
    let first = stage.access(mine, keys[0], 64, 128).unwrap();
    assert_eq!(stage.access(mine, keys[0], 191, 1), Ok(first + 127));
    assert_eq!(stage.access(other, keys[0], 64, 128), Err(Refused::Holder));
    for (offset, length) in [(63, 2), (64, 129), (192, 1), (u64::MAX, 2), (65, u64::MAX)] {
        let outside = stage.access(mine, keys[0], offset, length);
        assert_eq!(outside, Err(Refused::Part), "{offset} {length}");
    }
    for bit in 16..64 {
        let guess = RemoteKey::from_bits(keys[0].to_bits() ^ 1 << bit);
        assert_eq!(stage.access(mine, guess, 64, 1), Err(Refused::Tag));
    }
    let mut access = RemoteAccess {
        pair: mine.index(),
        key: keys[0].to_bits(),
        rights: RIGHT_REMOTE_READ,
        offset: 64,
        length: 1,
    };
    let reads = stage.fabric.find_remote(0, &access);
    assert_eq!(reads, Err(Refused::Rights));
    access.rights = 0;
    assert_eq!(stage.fabric.find_remote(0, &access), Ok(first));

    stage.window.revoke(keys[0]).unwrap();
    assert_eq!(stage.access(mine, keys[0], 64, 1), Err(Refused::NoGrant));
    assert!(stage.access(other, keys[1], 64, 1).is_ok());
    // Once more is no error.
    stage.window.revoke(keys[0]).unwrap();
    // A fence of each kind returns, and one of another domain's things is refused.
    let (pd, all) = (&stage.a.pd, Cover::all());
    let endpoint = &stage.a.endpoint;
    let covers = [
        all,
        all.window(&stage.window),
        all.pair(endpoint, other),
        all.window(&stage.window).pair(endpoint, other),
        all.context(3),
        all.window_pages(&stage.window, 8..),
    ];
    for cover in covers {
        pd.fence(cover).unwrap();
    }
    let refuses = |pd: &ProtectionDomain, cover| {
        assert!(matches!(pd.fence(cover), Err(CommandError::Argument(_))));
    };
    refuses(pd, all.window_pages(&stage.window, 8..8));
    let strange = pd.device().alloc_pd().unwrap();
    for cover in [
        all.window(&stage.window),
        all.pair(endpoint, other),
        all.window_pages(&stage.window, ..),
    ] {
        refuses(&strange, cover);
    }
    strange.fence(all).unwrap();
}

#[test]
pub fn a_peer_that_is_revoked_has_nothing_and_others_have_all() {
    let stage = Stage::new();
    let (mine, other) = (stage.a.pair, stage.other);
    let endpoint = &stage.a.endpoint;
    let own: Vec<RemoteKey> = (0..5).map(|_| stage.grant(mine)).collect();
    let others = stage.grant(other);
    let rights = RemoteRights::WRITE;
    let shared = stage.window.grant_shared(endpoint, mine, rights, ..);
    let shared = shared.unwrap();
    assert_eq!(stage.access(other, shared, 0, 1), Err(Refused::Permission));
    stage.window.share(shared, endpoint, other, true).unwrap();
    assert!(stage.access(other, shared, 0, 1).is_ok());
    endpoint.revoke_peer(mine).unwrap();
    for key in own.into_iter().chain([shared]) {
        assert!(stage.access(mine, key, 64, 1).is_err());
    }
    assert!(stage.access(other, others, 64, 1).is_ok());
    assert!(stage.access(other, shared, 64, 1).is_ok());
    stage.window.share(shared, endpoint, other, false).unwrap();
    assert_eq!(stage.access(other, shared, 64, 1), Err(Refused::Permission));
    // What is granted anew is good.
    let again = stage.grant(mine);
    assert!(stage.access(mine, again, 64, 1).is_ok());
}

#[test]
pub fn a_peer_that_has_failed_has_nothing() {
    let stage = Stage::new();
    let key = stage.grant(stage.a.pair);
    assert!(stage.access(stage.a.pair, key, 64, 1).is_ok());
    // The gates find out by themselves, and refuse before the firmware knows.
    stage.fabric.lose_frames(0, u32::MAX);
    let now = stage.a.device.now();
    stage.fabric.pause_firmware(0, now..now + 2 * PATIENCE);
    let empty = Buffer::empty();
    let send = stage.a.send(1);
    stage.a.endpoint.post_tagged_send(1, &send, empty).unwrap();
    assert_eq!(stage.a.next_past_events().status, WcStatus::PeerFailed);
    let refused = stage.access(stage.a.pair, key, 64, 1);
    assert_eq!(refused, Err(Refused::Closed));
}

#[test]
fn a_window_is_read_and_written_as_it_is() {
    let stage = Stage::new();
    let window = &stage.window;
    assert_eq!(window.length(), LENGTH);
    window.write(3, &[1, 2, 3]);
    let mut bytes = [0; 5];
    window.read(2, &mut bytes);
    assert_eq!(bytes, [0, 1, 2, 3, 0]);
    assert_eq!(window.load(0), u64::from_le_bytes([0, 0, 0, 1, 2, 3, 0, 0]));
    window.store(LENGTH - 8, 0x0807_0605_0403_0201);
    window.read(LENGTH - 4, &mut bytes[..4]);
    assert_eq!(bytes[..4], [5, 6, 7, 8]);
    window.read(LENGTH, &mut []);
    for (offset, length) in [(LENGTH, 1), (LENGTH - 1, 2), (usize::MAX, 1)] {
        let beyond = std::panic::AssertUnwindSafe(|| window.read(offset, &mut vec![0; length]));
        assert!(
            std::panic::catch_unwind(beyond).is_err(),
            "{offset} {length}"
        );
    }
    for offset in [4, LENGTH, LENGTH - 4, usize::MAX - 7] {
        let beyond = std::panic::AssertUnwindSafe(|| window.load(offset));
        assert!(std::panic::catch_unwind(beyond).is_err(), "{offset}");
    }
}

#[test]
fn a_window_is_a_buffer_again_when_all_its_keys_have_ended() {
    let stage = Stage::new();
    let (mine, other) = (stage.a.pair, stage.other);
    let keys = [stage.grant(mine), stage.grant(other), stage.grant(mine)];
    stage.window.revoke(keys[2]).unwrap();
    stage.window.write(0, b"window");
    let Stage {
        fabric, a, window, ..
    } = stage;
    let (region, buffer) = window.into_buffer().unwrap();
    assert_eq!(buffer[..6], *b"window");
    for (pair, key) in [(mine, keys[0]), (other, keys[1])] {
        let access = RemoteAccess {
            pair: pair.index(),
            key: key.to_bits(),
            rights: RIGHT_REMOTE_WRITE,
            offset: 64,
            length: 1,
        };
        assert!(fabric.find_remote(0, &access).is_err());
    }
    // And a window again; a part of it isn't one.
    let window = region.into_window(buffer).ok().unwrap();
    let (region, mut buffer) = window.into_buffer().unwrap();
    let front = buffer.split_to(8);
    let (region, front) = region.into_window(front).err().unwrap();
    drop((front, buffer));
    region.deregister().unwrap();
    drop(a);
}

#[test]
fn what_can_not_be_granted_is_refused() {
    let stage = Stage::new();
    let (window, endpoint, pair) = (&stage.window, &stage.a.endpoint, stage.a.pair);
    let rights = RemoteRights::WRITE;
    for range in [0..0, 5..5, 0..LENGTH + 1, LENGTH..LENGTH + 1] {
        let granted = window.grant(endpoint, pair, rights, range.clone());
        assert!(
            matches!(granted, Err(CommandError::Argument(_))),
            "{range:?}"
        );
    }
    let all = window.grant(endpoint, pair, RemoteRights::all(), ..);
    let lacks = (MailboxStatus::InvalidArgument, 2);
    assert_eq!(refused(all.unwrap_err()), lacks);
    let (private, buffer) = stage.a.pd.reg_mr(64, Access::ReadWrite).unwrap();
    let private = private.into_window(buffer).ok().unwrap();
    assert_eq!(
        refused(private.grant(endpoint, pair, rights, ..).unwrap_err()),
        lacks
    );
    let stranger = stage.a.device.alloc_pd().unwrap();
    let strange = stranger.reg_window(64, rights).unwrap();
    let other_domain = (MailboxStatus::InvalidArgument, 1);
    let granted = strange.grant(endpoint, pair, rights, ..);
    assert_eq!(refused(granted.unwrap_err()), other_domain);
    let key = format!("{:?}", stage.grant(pair));
    assert!(
        key.starts_with("RemoteKey(") && key.len() < 18,
        "no tag in {key}"
    );
}

#[test]
pub fn a_key_with_a_time_ends_by_itself_and_holds_its_place_until_it_is_revoked() {
    let stage = Stage::new();
    let (endpoint, mine) = (&stage.a.endpoint, stage.a.pair);
    let unit = u64::from(GRANT_TICK);
    let rights = RemoteRights::WRITE;
    let grant = |cycles| stage.window.grant_for(endpoint, mine, rights, .., cycles);
    for wrong in [0, u64::from(u32::MAX) * unit + 1, u64::MAX] {
        let refused = grant(wrong).expect_err("no such time");
        assert!(matches!(refused, CommandError::Argument(_)), "{refused}");
    }
    grant(u64::from(u32::MAX) * unit).expect("the longest");
    let now = || stage.a.device.now();
    let before = now();
    let [short, long] = [1, 2 * unit + 1].map(|cycles| grant(cycles).unwrap());
    let for_ever = stage.grant(mine);
    let may = |key| stage.access(mine, key, 64, 8).is_ok();
    // Not earlier than a unit before its time.
    while now() < before + 2 * unit {
        assert!(may(long), "{} cycles later", now() - before);
        stage.a.pause(1000);
    }
    let begun = now();
    while now() < begun + 2 * unit {
        stage.a.pause(1000);
    }
    for key in [short, long] {
        assert_eq!(stage.access(mine, key, 64, 8), Err(Refused::NoGrant));
        stage.window.revoke(key).unwrap();
    }
    assert!(may(for_ever));
}

#[test]
fn a_key_for_one_access_is_not_for_reading() {
    let stage = Stage::new();
    for rights in [RemoteRights::READ, RemoteRights::READ | RemoteRights::WRITE] {
        let refused = (stage.window).grant_once(&stage.a.endpoint, stage.a.pair, rights, ..);
        let refused = refused.expect_err("a get may be asked for twice");
        assert!(matches!(refused, CommandError::Argument(_)), "{refused}");
    }
    let rights = RemoteRights::WRITE;
    let once = (stage.window).grant_once(&stage.a.endpoint, stage.a.pair, rights, ..);
    let key = once.expect("a key");
    assert_eq!(stage.access(stage.a.pair, key, 0, 8).map(|_| ()), Ok(()));
}

#[test]
pub fn a_memory_window_has_one_key_at_a_time_and_the_one_before_has_ended() {
    let stage = Stage::new();
    let (mine, other, endpoint) = (stage.a.pair, stage.other, &stage.a.endpoint);
    let write = RemoteRights::WRITE;
    let mut mw = stage.a.pd.alloc_mw();
    assert_eq!(mw.rkey(), None);
    mw.invalidate().unwrap();
    let bound = endpoint.bind_mw(&mut mw, mine, &stage.window, write, 0..64);
    let first = bound.unwrap();
    assert_eq!(mw.rkey(), Some(first));
    stage.access(mine, first, 0, 64).unwrap();
    assert_eq!(stage.access(mine, first, 64, 1), Err(Refused::Part));
    // Bound anew, for another peer.
    let bound = endpoint.bind_mw(&mut mw, other, &stage.window, write, 64..128);
    let second = bound.unwrap();
    assert!(stage.access(mine, first, 0, 1).is_err());
    assert!(stage.access(mine, second, 64, 1).is_err());
    stage.access(other, second, 64, 64).unwrap();
    // What can't be bound: of a stranger's memory nothing is changed, else it is bound to nothing.
    let elsewhere = stage.a.device.alloc_pd().unwrap();
    let strange = elsewhere.reg_window(LENGTH, write).unwrap();
    let bound = endpoint.bind_mw(&mut mw, other, &strange, write, 0..64);
    assert!(matches!(bound, Err(CommandError::Argument(_))), "{bound:?}");
    stage.access(other, second, 64, 64).unwrap();
    let bound = endpoint.bind_mw(&mut mw, other, &stage.window, write, LENGTH..LENGTH + 1);
    assert!(matches!(bound, Err(CommandError::Argument(_))), "{bound:?}");
    assert_eq!(mw.rkey(), None);
    assert!(stage.access(other, second, 64, 1).is_err());
    // And again, until it is invalidated.
    let bound = endpoint.bind_mw(&mut mw, mine, &stage.window, write, 0..64);
    let third = bound.unwrap();
    stage.access(mine, third, 0, 64).unwrap();
    mw.invalidate().unwrap();
    assert_eq!(mw.rkey(), None);
    assert!(stage.access(mine, third, 0, 1).is_err());
}

#[test]
pub fn a_memory_window_that_is_dropped_leaves_its_key_to_the_window() {
    let stage = Stage::new();
    let mut mw = stage.a.pd.alloc_mw();
    let endpoint = &stage.a.endpoint;
    let bound = endpoint.bind_mw(
        &mut mw,
        stage.a.pair,
        &stage.window,
        RemoteRights::WRITE,
        ..,
    );
    let key = bound.unwrap();
    drop(mw);
    stage.access(stage.a.pair, key, 0, 1).unwrap();
    let Stage {
        fabric, a, window, ..
    } = stage;
    let (_region, _buffer) = window.into_buffer().unwrap();
    let access = write_access(a.pair, key, 0, 1);
    assert!(fabric.find_remote(0, &access).is_err());
}
