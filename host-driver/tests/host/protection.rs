//! Levels of protection: what a card provides, and what becomes of memory where it doesn't tell senders apart. "Problem with reusing rendezvous memory buffers"
//! (MPI Forum, mpi3-ft, 30 July 2013) proposes it for such networks: the failure of a peer makes what it could write unusable (`MPI_ERR_BUFFER_UNUSABLE`),
//! until the program says that it knows.
//!
//! ```text
//!  b: fails, lives on ── connects anew ── put by its old key ──► lands, if the key is for any; is refused, if it is b's
//!  a: knows ── window.check_usable() ──► BufferUnusable, until the key is revoked for all; Ok, if it was b's
//! ```

use crate::common::{Side, able_options, opened_at};
use abi::capability::{CAPABILITY_GRANTS, CAPABILITY_SENDERS};
use abi::control::RIGHT_REMOTE_WRITE;
use abi::register::{SEND_TAIL, endpoint_page};
use host_driver::{
    Cause, CommandError, MailboxStatus, Pair, Protection, Put, RemoteKey, RemoteRights, WcStatus,
    Window,
};
use soft_card::{Refused, RemoteAccess, SoftFabric};

const LENGTH: usize = 4096;

/// Cards `a` and `b`, and a window of `a`'s.
struct Stage {
    fabric: SoftFabric,
    a: Side,
    b: Side,
    window: Window,
}

impl Stage {
    fn new(protection: Protection) -> Self {
        let fabric = SoftFabric::new(able_options());
        let (a, b) = opened_at(&fabric, 4, protection, |pd| pd.endpoint().event_queue(4));
        let rights = RemoteRights::WRITE | RemoteRights::READ;
        let window = a.pd.reg_window(LENGTH, rights).unwrap();
        Self {
            fabric,
            a,
            b,
            window,
        }
    }

    fn grant_any(&self) -> RemoteKey {
        self.window.grant_any(RemoteRights::WRITE, ..).unwrap()
    }

    /// One more pair of both, or the next in the place of one that was closed.
    fn connect(&self) -> (Pair, Pair) {
        let (ours, near) = self.a.endpoint.open_pair(4).unwrap();
        let (theirs, far) = self.b.endpoint.open_pair(4).unwrap();
        self.a.endpoint.connect_pair(ours, &far).unwrap();
        self.b.endpoint.connect_pair(theirs, &near).unwrap();
        (ours, theirs)
    }

    /// `a` takes the peer of a pair to have failed, and nobody takes the event of that.
    fn fails(&self, pair: Pair) {
        self.a.endpoint.declare_failed(pair).unwrap();
        self.a.pause(5_000);
    }

    /// What becomes of a put of `b`'s.
    fn puts(&mut self, pair: Pair, key: RemoteKey, byte: u8) -> WcStatus {
        let buffer = self.b.filled(&[byte; 8]);
        let put = Put {
            pair,
            key,
            offset: 16,
        };
        self.b.endpoint.post_put(1, &put, buffer).unwrap();
        self.b.next_past_events().status
    }

    fn written(&self) -> u64 {
        self.window.load(16)
    }
}

const UNUSABLE: CommandError = CommandError::BufferUnusable;

#[test]
pub fn the_level_is_what_the_card_has_or_what_was_asked_for() {
    use Protection::{None, PerSender, SharedKey};
    let levels = [None, SharedKey, PerSender];
    assert!(levels.is_sorted());
    assert_eq!(Protection::default(), PerSender);
    for (lacks, provided) in [
        (0, [SharedKey, SharedKey, PerSender]),
        (CAPABILITY_SENDERS, [SharedKey; 3]),
        (CAPABILITY_GRANTS, [None; 3]),
        (CAPABILITY_GRANTS | CAPABILITY_SENDERS, [None; 3]),
    ] {
        for (protection, provided) in levels.into_iter().zip(provided) {
            let mut options = able_options();
            options.sizes.capabilities &= !lacks;
            let fabric = SoftFabric::new(options);
            let (a, _b) = opened_at(&fabric, 1, protection, |pd| pd.endpoint());
            let what = format!("{protection:?} without {lacks:#x}");
            assert_eq!(a.device.protection(), provided, "{what}");
            let window = match a.pd.reg_window(64, RemoteRights::WRITE) {
                Ok(window) => window,
                Err(error) => {
                    assert_eq!(provided, None, "{what}: {error}");
                    continue;
                }
            };
            assert_eq!(window.protection(), provided);
            let any = window.grant_any(RemoteRights::WRITE, ..);
            let may_not = matches!(any, Err(CommandError::Argument(_)));
            assert!(any.is_ok() || may_not, "{what}: {any:?}");
            assert_eq!(may_not, provided == PerSender, "{what}");
            let one = window.grant(&a.endpoint, a.pair, RemoteRights::WRITE, ..);
            match lacks {
                0 => assert!(one.is_ok(), "{what}"),
                _ => assert!(
                    matches!(
                        one,
                        Err(CommandError::Refused {
                            status: MailboxStatus::Unsupported,
                            detail: CAPABILITY_SENDERS,
                            ..
                        })
                    ),
                    "{what}: {one:?}"
                ),
            }
        }
    }
}

#[test]
pub fn a_key_for_any_is_good_for_the_peers_of_its_domain_alone() {
    let stage = Stage::new(Protection::SharedKey);
    let key = stage.grant_any();
    let (later, _) = stage.connect();
    let strange = stage.a.device.alloc_pd().unwrap();
    let strange = strange.endpoint().open().unwrap();
    let (stranger, near) = strange.open_pair(1).unwrap();
    let (theirs, far) = stage.b.endpoint.open_pair(1).unwrap();
    strange.connect_pair(stranger, &far).unwrap();
    stage.b.endpoint.connect_pair(theirs, &near).unwrap();
    let access = |pair: Pair, offset| {
        let access = RemoteAccess {
            pair: pair.index(),
            key: key.to_bits(),
            rights: RIGHT_REMOTE_WRITE,
            offset,
            length: 8,
        };
        stage.fabric.find_remote(0, &access)
    };
    let first = access(stage.a.pair, 0);
    assert!(first.is_ok());
    assert_eq!(access(later, 0), first);
    assert_eq!(access(stranger, 0), Err(Refused::Domain));
    assert_eq!(access(later, LENGTH as u64 - 7), Err(Refused::Part));
    stage.window.revoke(key).unwrap();
    assert_eq!(access(later, 0), Err(Refused::NoGrant));
}

/// What the document is afraid of, and what it proposes: the process that was taken to have failed still has the key, and comes by another pair.
#[test]
pub fn a_slow_message_lands_where_a_key_is_for_any_and_the_window_is_unusable() {
    let mut stage = Stage::new(Protection::SharedKey);
    let (ours, lives) = stage.connect();
    let key = stage.grant_any();
    let (failed, theirs) = (stage.a.pair, stage.b.pair);
    assert_eq!(stage.puts(theirs, key, 1), WcStatus::Success);
    assert_eq!(stage.window.check_usable(), Ok(()));
    stage.fails(failed);
    assert_eq!(stage.puts(theirs, key, 2), WcStatus::LinkError);
    let (_, again) = stage.connect();
    stage.window.store(16, 0);
    assert_eq!(stage.puts(again, key, 3), WcStatus::Success);
    assert_eq!(
        stage.written(),
        u64::from_le_bytes([3; 8]),
        "or no mark is due"
    );

    // So it may not be used, nor granted, nor be a buffer again.
    assert_eq!(stage.window.check_usable(), Err(UNUSABLE));
    assert_eq!(stage.window.failed_writers(), [failed]);
    let any = stage.window.grant_any(RemoteRights::WRITE, ..);
    assert_eq!(any, Err(UNUSABLE));
    let rights = RemoteRights::WRITE;
    let one = stage.window.grant(&stage.a.endpoint, ours, rights, ..);
    assert_eq!(one, Err(UNUSABLE));
    assert_eq!(
        stage.puts(lives, key, 4),
        WcStatus::Success,
        "nobody else is cut off"
    );

    // Until the program knows: then that key is nobody's, and the next one is for those that it is given to.
    assert_eq!(stage.window.acknowledge_failures(), Ok(vec![failed]));
    stage.window.store(16, 0);
    assert_eq!(stage.puts(again, key, 5), WcStatus::RemoteAccess);
    assert_eq!(stage.puts(lives, key, 6), WcStatus::RemoteAccess);
    assert_eq!(stage.written(), 0);
    assert_eq!(stage.window.check_usable(), Ok(()));
    assert_eq!(stage.window.failed_writers(), []);
    let next = stage.grant_any();
    assert_eq!(stage.puts(lives, next, 7), WcStatus::Success);
    // The old failure doesn't mark it again.
    assert_eq!(stage.window.check_usable(), Ok(()));
    stage.fails(ours);
    let held = stage.window.into_buffer().err().unwrap();
    assert_eq!(held.error, UNUSABLE);
    assert_eq!(held.window.failed_writers(), [ours]);
    assert_eq!(held.window.acknowledge_failures(), Ok(vec![ours]));
    let (_, buffer) = held.window.into_buffer().ok().unwrap();
    assert_eq!(buffer[16..24], [7; 8]);
}

/// The same story where senders are told apart: the old key is of no use to who comes back, and no window is ever marked.
#[test]
pub fn a_window_of_keys_for_each_sender_is_never_unusable() {
    for protection in [Protection::PerSender, Protection::SharedKey] {
        for shared in [false, true] {
            let mut stage = Stage::new(protection);
            let (ours, lives) = stage.connect();
            let (failed, theirs) = (stage.a.pair, stage.b.pair);
            let (window, endpoint) = (&stage.window, &stage.a.endpoint);
            let rights = RemoteRights::WRITE;
            let keys = match shared {
                false => [failed, ours].map(|pair| window.grant(endpoint, pair, rights, ..)),
                true => {
                    let key = window.grant_shared(endpoint, failed, rights, ..);
                    let key = key.unwrap();
                    window.share(key, endpoint, ours, true).unwrap();
                    [Ok(key); 2]
                }
            };
            let [key, other] = keys.map(Result::unwrap);
            assert_eq!(stage.puts(theirs, key, 1), WcStatus::Success);
            stage.fails(failed);
            assert_eq!(stage.puts(theirs, key, 2), WcStatus::LinkError);
            let (_, again) = stage.connect();
            stage.window.store(16, 0);
            assert_eq!(stage.puts(again, key, 3), WcStatus::RemoteAccess);
            assert_eq!(stage.written(), 0);
            let event = stage.a.endpoint.poll_event().unwrap().unwrap();
            assert_eq!(event.cause, Cause::PeerFailed);
            assert_eq!(stage.window.check_usable(), Ok(()));
            assert_eq!(stage.window.failed_writers(), []);
            assert_eq!(stage.puts(lives, other, 4), WcStatus::Success);
            assert_eq!(stage.window.acknowledge_failures(), Ok(vec![]));
            assert_eq!(stage.puts(lives, other, 5), WcStatus::Success);
            stage.window.into_buffer().ok().unwrap();
        }
    }
}

#[test]
pub fn a_failure_whose_event_nobody_takes_marks_the_window() {
    let stage = Stage::new(Protection::SharedKey);
    stage.grant_any();
    stage.fails(stage.a.pair);
    assert_eq!(stage.window.failed_writers(), [], "nobody has told it");
    assert_eq!(stage.window.check_usable(), Err(UNUSABLE));
    assert_eq!(stage.window.failed_writers(), [stage.a.pair]);
}

/// An event that is taken marks it, and so does the last one behind which the card has lost that of the failure: no check is needed for either.
#[test]
fn a_program_that_takes_its_events_needs_no_check() {
    for lost in [false, true] {
        let stage = Stage::new(Protection::SharedKey);
        stage.grant_any();
        let page = endpoint_page(stage.a.endpoint.index());
        let transport = stage.fabric.transport(0);
        for _ in 0..if lost { 4 } else { 0 } {
            // SAFETY: the card ignores this value of the doorbell: it makes it fetch nothing.
            unsafe { transport.doorbell(page + SEND_TAIL, 0x8000) }.expect("within reach");
        }
        stage.fails(stage.a.pair);
        assert_eq!(stage.a.endpoint.events_lost(), Ok(lost.into()));
        let mut causes = Vec::new();
        while let Some(event) = stage.a.endpoint.poll_event().unwrap() {
            causes.push(event.cause);
        }
        assert_eq!(causes.contains(&Cause::PeerFailed), !lost);
        assert_eq!(stage.window.failed_writers(), [stage.a.pair], "{causes:?}");
    }
}

/// After these the card doesn't name the failed peer any more, or the key that it had has ended.
#[test]
pub fn what_ends_what_could_tell_of_a_failure_looks_for_it_first() {
    let ends: [fn(&Stage, RemoteKey); 3] = [
        |stage, _| stage.a.endpoint.close_pair(stage.a.pair).unwrap(),
        |stage, _| stage.a.endpoint.close().unwrap(),
        |stage, key| stage.window.revoke(key).unwrap(),
    ];
    for (k, end) in ends.into_iter().enumerate() {
        let stage = Stage::new(Protection::SharedKey);
        let key = stage.grant_any();
        stage.fails(stage.a.pair);
        end(&stage, key);
        assert_eq!(stage.window.failed_writers(), [stage.a.pair], "{k}");
        assert_eq!(stage.window.check_usable(), Err(UNUSABLE), "{k}");
        // And without a failure it marks nothing.
        let stage = Stage::new(Protection::SharedKey);
        let key = stage.grant_any();
        end(&stage, key);
        assert_eq!(stage.window.check_usable(), Ok(()), "{k}");
    }
}

#[test]
fn only_the_failure_of_a_peer_that_could_write_it_marks_a_window() {
    let stage = Stage::new(Protection::SharedKey);
    let (a, window) = (&stage.a, &stage.window);
    let (before, _) = stage.connect();
    stage.fails(before);
    let key = stage.grant_any();
    let other = a.pd.reg_window(64, RemoteRights::WRITE).unwrap();
    let strange = a.device.alloc_pd().unwrap();
    let strange = strange.reg_window(64, RemoteRights::WRITE).unwrap();
    strange.grant_any(RemoteRights::WRITE, ..).unwrap();
    let read = a.pd.reg_window(64, RemoteRights::READ).unwrap();
    let may_read = read.grant_any(RemoteRights::READ, ..).unwrap();
    assert_eq!(window.check_usable(), Ok(()), "it had failed before");
    // An orderly end is no failure.
    let (left, _) = stage.connect();
    a.endpoint.close_pair(left).unwrap();
    assert_eq!(window.check_usable(), Ok(()));
    stage.fails(a.pair);
    for (window, usable) in [
        (window, false),
        (&other, true),
        (&strange, true),
        (&read, true),
    ] {
        assert_eq!(window.check_usable().is_ok(), usable, "{window:?}");
    }
    read.revoke(may_read).unwrap();
    assert_eq!(window.acknowledge_failures(), Ok(vec![a.pair]));
    window.revoke(key).unwrap();
}
