//! Levels of protection on whole cards: what a key for any peer lets who has failed do, and what becomes of the window.

use host_driver::{
    Cause, CommandError, DeviceOptions, GRANT_TICK, Protection, Put, RemoteKey, RemoteRights,
    WcStatus, Window,
};
use posthorn_tests::cards::{GatesOnly, Host, both, cards, modelled_over};
use posthorn_tests::side::{Setup, Side};
use posthorn_tests::wires::Wires;

const LENGTH: usize = 4096;
const RIGHTS: RemoteRights = RemoteRights::WRITE;

/// A rank on a card of a level.
fn open(host: &Host, protection: Protection) -> Side {
    let device = DeviceOptions {
        protection,
        ..DeviceOptions::DEFAULT
    };
    let setup = Setup {
        device,
        ..Setup::default()
    };
    Side::with(host, setup)
}

/// Rank 0 tells each rank a key.
fn tell(me: &Side, keys: impl Fn(usize) -> RemoteKey) -> RemoteKey {
    let mine = match me.rank() {
        0 => (0..me.host.cards())
            .flat_map(|rank| keys(rank).to_bits().to_le_bytes())
            .collect(),
        _ => Vec::new(),
    };
    let all = me.host.all_gather(mine).expect("all ranks");
    let bits = all[0][8 * me.rank()..][..8].try_into().expect("eight");
    RemoteKey::from_bits(u64::from_le_bytes(bits))
}

/// Puts eight bytes into the window of rank 0.
fn puts(me: &mut Side, wr_id: u64, key: RemoteKey, offset: u64) -> WcStatus {
    let mut buffer = me.buffer_at(wr_id as usize % 64, 8);
    buffer.fill(wr_id as u8);
    let put = Put {
        pair: me.pair(0),
        key,
        offset,
    };
    me.endpoint.post_put(wr_id, &put, buffer).expect("posted");
    let done = me.completion();
    assert_eq!(done.wr_id, wr_id);
    done.status
}

fn written(window: Option<&Window>, offset: usize, byte: u8) {
    if let Some(window) = window {
        assert_eq!(window.load(offset), u64::from_le_bytes([byte; 8]));
    }
}

/// Rank 1 is taken to have failed, and comes back; rank 2 lives all the while.
fn story(protection: Protection) {
    both("tiny", 3, 220, move |host| {
        let mut me = open(&host, protection);
        assert_eq!(me.device.protection(), protection);
        let any = protection == Protection::SharedKey;
        let window = (me.rank() == 0).then(|| me.pd.reg_window(LENGTH, RIGHTS).expect("a window"));
        let window = window.as_ref();
        let one = match any {
            true => window.map(|window| window.grant_any(RIGHTS, ..).expect("a key")),
            false => None,
        };
        let key = tell(&me, |rank| match (one, window) {
            (Some(key), _) => key,
            (None, Some(window)) if rank > 0 => {
                let key = window.grant(&me.endpoint, me.pair(rank), RIGHTS, ..);
                key.expect("a key")
            }
            _ => RemoteKey::from_bits(0),
        });
        let place = 8 * me.rank() as u64;
        if me.rank() > 0 {
            assert_eq!(puts(&mut me, 1, key, place), WcStatus::Success);
        }
        me.meet();
        written(window, 8, 1);
        let failed = (me.rank() == 0).then(|| me.pair(1));
        if let (Some(pair), Some(window)) = (failed, window) {
            assert_eq!(window.check_usable(), Ok(()));
            me.endpoint.declare_failed(pair).expect("connected");
        }
        me.meet();
        // It is cut off, and comes by its next pair.
        match me.rank() {
            0 => me.disconnect(1),
            1 => {
                assert_ne!(puts(&mut me, 2, key, place), WcStatus::Success);
                me.disconnect(0);
            }
            _ => assert_eq!(puts(&mut me, 2, key, place), WcStatus::Success),
        }
        me.connect();
        let landed = match any {
            true => WcStatus::Success,
            false => WcStatus::RemoteAccess,
        };
        if me.rank() == 1 {
            assert_eq!(puts(&mut me, 3, key, place), landed);
        }
        me.meet();
        written(window, 8, if any { 3 } else { 1 });
        written(window, 16, 2);
        if let (Some(window), Some(pair)) = (window, failed) {
            if any {
                let unusable = Err(CommandError::BufferUnusable);
                assert_eq!(window.check_usable(), unusable);
                assert_eq!(window.failed_writers(), [pair]);
                assert_eq!(window.acknowledge_failures(), Ok(vec![pair]));
            }
            assert_eq!(window.check_usable(), Ok(()));
            assert_eq!(window.failed_writers(), []);
        }
        me.meet();
        if me.rank() > 0 {
            let lives = me.rank() == 2 && !any;
            let ended = puts(&mut me, 4, key, place);
            assert_eq!(ended == WcStatus::Success, lives, "{ended}");
        }
        me.meet();
        written(window, 8, if any { 3 } else { 1 });
        written(window, 16, if any { 2 } else { 4 });
        let causes: Vec<Cause> = me.events().iter().map(|event| event.cause).collect();
        let told: [&[Cause]; 3] = [&[Cause::PeerFailed], &[Cause::LinkError], &[]];
        assert_eq!(causes, told[me.rank()]);
        me.finish();
    });
}

#[test]
pub(crate) fn a_key_for_any_peer_is_of_use_to_who_has_failed_and_the_window_is_unusable() {
    story(Protection::SharedKey);
}

#[test]
fn a_key_of_one_peer_ends_with_it_and_the_window_goes_on() {
    story(Protection::PerSender);
}

#[test]
pub(crate) fn a_key_for_any_peer_is_of_no_use_to_another_domain() {
    both("tiny", 2, 221, |host| {
        let mut me = open(&host, Protection::SharedKey);
        let strange = me.device.alloc_pd().expect("a domain");
        let windows = [&me.pd, &strange].map(|pd| {
            let window = (me.rank() == 0).then(|| pd.reg_window(LENGTH, RIGHTS));
            window.map(|window| window.expect("a window"))
        });
        let keys = windows.each_ref().map(|window| {
            let key = window.as_ref().map(|window| window.grant_any(RIGHTS, ..));
            let key = key.map_or(RemoteKey::from_bits(0), |key| key.expect("a key"));
            tell(&me, |_| key)
        });
        if me.rank() == 1 {
            assert_eq!(puts(&mut me, 1, keys[0], 0), WcStatus::Success);
            assert_eq!(puts(&mut me, 2, keys[1], 0), WcStatus::RemoteAccess);
            assert_eq!(puts(&mut me, 3, keys[0], 8), WcStatus::Success);
        }
        me.meet();
        written(windows[0].as_ref(), 0, 1);
        written(windows[0].as_ref(), 8, 3);
        written(windows[1].as_ref(), 0, 0);
        me.finish();
    });
}

/// Whoever lends for a time may die meanwhile: the gates know when it is over.
#[test]
pub(crate) fn a_key_with_a_time_ends_by_itself() {
    const UNIT: u64 = GRANT_TICK as u64;
    let story = |host: Host| {
        let mut me = open(&host, Protection::PerSender);
        let window = (me.rank() == 0).then(|| me.pd.reg_window(LENGTH, RIGHTS).expect("a window"));
        let before = me.device.now();
        me.meet();
        let key = tell(&me, |rank| match (rank, &window) {
            (1, Some(window)) => {
                let pair = me.pair(1);
                let key = window.grant_for(&me.endpoint, pair, RIGHTS, .., 2 * UNIT);
                key.expect("a key")
            }
            _ => RemoteKey::from_bits(0),
        });
        let Some(window) = window else {
            // It had the key after `before`, and has told of it since.
            let (granted, mut number, mut last) = (me.device.now(), 0, 0);
            loop {
                let posted = me.device.now();
                number += 1;
                if puts(&mut me, number, key, 0) == WcStatus::RemoteAccess {
                    break;
                }
                assert!(posted < granted + 4 * UNIT, "it never ends");
                last = posted;
            }
            let over = me.device.now();
            assert!(over >= before + UNIT, "{over}, granted from {before} on");
            assert!(last < granted + 2 * UNIT, "{last}, granted by {granted}");
            assert!(number > 5, "it could be used before");
            for _ in 0..3 {
                let again = puts(&mut me, 77, key, 8);
                assert_eq!(again, WcStatus::RemoteAccess);
            }
            me.meet();
            return me.finish();
        };
        me.meet();
        assert_eq!(window.load(8), 0, "it is over");
        window.revoke(key).expect("it gives its place back");
        me.finish();
    };
    // How many puts there are in its time is another number on the model.
    modelled_over("tiny", 2, 264, Wires::default(), story);
    GatesOnly::Race.run(cards("tiny", 2, 264), story);
}
