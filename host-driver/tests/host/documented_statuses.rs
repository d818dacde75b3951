//! Each status that a page of a verb says its requests complete with is provoked here, of each verb of the kind. The pages' tables are read: a row
//! that nothing provokes fails, and so does a provocation that no page documents, or whose request ends with another status than its row says.

use crate::common::{PATIENCE, Side, able_options, connected};
use abi::mailbox::Command;
use abi::request::{CLAIM_SLOT_BITS, ListRequest, REQUEST_BYTES, SendRequest};
use abi::times::ACKNOWLEDGE_TIMEOUT;
use abi::wire::{FrameHeader, FrameType};
use host_driver::transport::Answer;
use host_driver::{
    Access, Buffer, Claimed, Get, Group, MessageSet, Pair, Put, RemoteKey, RemoteRights, Request,
    Source, TaggedReceive, TaggedSend, WcKind, WcStatus, Window,
};
use soft_card::{BusAccess, SoftFabric, SoftOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// Bytes of the messages: more than a request carries itself, and none of the sizes of what else goes over the bus.
const MESSAGE: usize = 40;
/// Number of the request that is to end as a row says. The others have number 0.
const TRIED: u64 = 1;

/// Two connected sides; the first posts the request that is looked at.
struct Stage {
    fabric: SoftFabric,
    a: Side,
    b: Side,
    /// The pair that it posts on.
    pair: Pair,
    /// What it posts.
    buffer: Buffer,
    /// By what it puts and gets, and where.
    key: RemoteKey,
    _window: Window,
    /// What it has claimed.
    claimed: Option<Claimed>,
    /// What it cancels.
    target: Option<Request>,
    /// The request is a cancel; what it cancels may have the same number.
    cancels: bool,
}

/// Posts the request with the number [`TRIED`], and returns its handle unless it has none.
type Verb = fn(&mut Stage) -> Option<Request>;

impl Stage {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut SoftOptions)) -> Self {
        let mut options = able_options();
        change(&mut options);
        let fabric = SoftFabric::new(options);
        let (mut a, b) = connected(&fabric, 1);
        let rights = RemoteRights::WRITE | RemoteRights::READ;
        let window = b.pd.reg_window(MESSAGE, rights).expect("a window");
        let key = window.grant(&b.endpoint, b.pair, rights, ..);
        Self {
            fabric,
            key: key.expect("a key"),
            _window: window,
            pair: a.pair,
            buffer: a.filled(&[7; MESSAGE]),
            a,
            b,
            claimed: None,
            target: None,
            cancels: false,
        }
    }

    /// The card fetches so late that what is posted is in its ring when the next command is carried out.
    fn slow() -> Self {
        Self::with(|options| options.fetch_cycles = 50_000)
    }

    fn take_buffer(&mut self) -> Buffer {
        std::mem::replace(&mut self.buffer, Buffer::empty())
    }

    fn send(&self) -> TaggedSend {
        TaggedSend {
            pair: self.pair,
            ..self.a.send(7)
        }
    }

    fn put(&self) -> Put {
        Put {
            pair: self.pair,
            key: self.key,
            offset: 0,
        }
    }

    fn get(&self) -> Get {
        Get {
            pair: self.pair,
            key: self.key,
            offset: 0,
        }
    }

    fn receive(&self) -> TaggedReceive {
        TaggedReceive {
            source: Source::Pair(self.pair),
            ..self.a.receive(7)
        }
    }

    /// The peer sends so many bytes, which arrive.
    fn arrives(&mut self, length: usize) {
        let message = self.b.filled(&vec![9; length]);
        let send = self.b.send(7);
        let posted = self.b.endpoint.post_tagged_send(0, &send, message);
        posted.expect("room");
        self.b.pause(20_000);
    }

    /// The peer receives what comes.
    fn receives(&mut self) {
        let (receive, buffer) = (self.b.receive(7), self.b.buffer(64));
        let posted = self.b.endpoint.post_tagged_recv(0, &receive, buffer);
        posted.expect("room");
        self.b.pause(20_000);
    }

    /// A send that takes the only credit: others wait.
    fn spend(&mut self) {
        let buffer = self.a.filled(&[1; MESSAGE]);
        let sent = self.a.endpoint.post_tagged_send(0, &self.a.send(8), buffer);
        sent.expect("room");
    }

    /// The program gives the context up.
    fn revoke(&mut self) {
        let group = Group::new(&self.a.endpoint, &[(1, self.a.pair)], 0).expect("a group");
        let context = MessageSet::of_context(self.receive().context);
        let revoked = self.a.endpoint.revoke(&group, &context, PATIENCE);
        revoked.expect("revoked");
    }

    /// A message has come and is claimed.
    fn claim(&mut self) {
        self.arrives(MESSAGE);
        self.a.endpoint.claim(0, &self.a.receive(7)).expect("room");
        loop {
            let found = self.a.next();
            if found.claimed.is_some() {
                break self.claimed = found.claimed;
            }
        }
    }

    /// A pair that is open and not connected is posted on.
    fn unconnect(&mut self) {
        self.b.endpoint.close_pair(self.b.pair).expect("open");
        (self.pair, _) = self.a.endpoint.open_pair(1).expect("a pair");
    }

    /// The card may only do this with what is posted.
    fn restrict(&mut self, access: Access) {
        (_, self.buffer) = self.a.pd.reg_mr(MESSAGE, access).expect("a region");
    }

    /// The bus answers reads, or writes, of the first card's payloads with an error.
    fn break_bus(&self, reads: bool) {
        let is_payload = |bytes: &[u8]| [MESSAGE, MESSAGE / 2].contains(&bytes.len());
        self.fabric.bus(0, move |access| match access {
            BusAccess::Read { bytes, .. } => !(reads && is_payload(bytes)),
            BusAccess::Write { bytes, .. } => reads || !is_payload(bytes),
            BusAccess::Entry { .. } => true,
        });
    }

    /// The bus changes the requests of the list ring on their way to the card.
    fn change_list(&self, change: fn(&mut ListRequest)) {
        self.fabric.bus(0, move |access| {
            if let BusAccess::Read { bytes, .. } = access
                && bytes.len() == REQUEST_BYTES
            {
                let mut request = ListRequest::parse(bytes).expect("whole");
                change(&mut request);
                request.emit(bytes);
            }
            true
        });
    }

    /// A reserved bit of each request is set on its way to the card. It has the same place on both rings.
    fn set_reserved_bits(&self) {
        self.change_list(|request| request.reserved0 = 1);
    }

    /// How the request has ended, whatever else completes.
    fn ended(&self) -> WcStatus {
        loop {
            let ended = self.a.next_past_events();
            let is_cancel = ended.kind == WcKind::Cancel;
            if ended.wr_id == TRIED && is_cancel == self.cancels {
                return ended.status;
            }
        }
    }
}

fn post_send(stage: &mut Stage) -> Option<Request> {
    let buffer = stage.take_buffer();
    let posted = (stage.a.endpoint).post_tagged_send(TRIED, &stage.send(), buffer);
    Some(posted.expect("room"))
}

fn post_inject(stage: &mut Stage) -> Option<Request> {
    let posted = (stage.a.endpoint).post_tagged_inject(TRIED, &stage.send(), &[7; MESSAGE]);
    posted.expect("room");
    None
}

fn post_ready(stage: &mut Stage) -> Option<Request> {
    let buffer = stage.take_buffer();
    let posted = (stage.a.endpoint).post_ready_send(TRIED, &stage.send(), buffer);
    Some(posted.expect("room"))
}

fn post_unsignaled(stage: &mut Stage) -> Option<Request> {
    let buffer = stage.take_buffer().share();
    let posted = (stage.a.endpoint).post_unsignaled_send(TRIED, &stage.send(), buffer);
    Some(posted.expect("room"))
}

fn post_gather(stage: &mut Stage) -> Option<Request> {
    let whole = stage.take_buffer().share();
    let parts = [whole.slice(..MESSAGE / 2), whole.slice(MESSAGE / 2..)];
    let posted = (stage.a.endpoint).post_gather_send(TRIED, &stage.send(), &parts);
    Some(posted.expect("room"))
}

fn post_put(stage: &mut Stage) -> Option<Request> {
    let buffer = stage.take_buffer();
    let posted = (stage.a.endpoint).post_put(TRIED, &stage.put(), buffer);
    Some(posted.expect("room"))
}

fn post_inject_put(stage: &mut Stage) -> Option<Request> {
    let posted = (stage.a.endpoint).post_inject_put(TRIED, &stage.put(), &[7; MESSAGE]);
    posted.expect("room");
    None
}

fn post_unsignaled_put(stage: &mut Stage) -> Option<Request> {
    let buffer = stage.take_buffer().share();
    let posted = (stage.a.endpoint).post_unsignaled_put(TRIED, &stage.put(), buffer);
    Some(posted.expect("room"))
}

fn post_gather_put(stage: &mut Stage) -> Option<Request> {
    let whole = stage.take_buffer().share();
    let parts = [whole.slice(..MESSAGE / 2), whole.slice(MESSAGE / 2..)];
    let posted = (stage.a.endpoint).post_gather_put(TRIED, &stage.put(), &parts);
    Some(posted.expect("room"))
}

fn post_get(stage: &mut Stage) -> Option<Request> {
    let buffer = stage.take_buffer();
    let posted = (stage.a.endpoint).post_get(TRIED, &stage.get(), buffer);
    Some(posted.expect("room"))
}

fn post_receive(stage: &mut Stage) -> Option<Request> {
    let buffer = stage.take_buffer();
    let posted = (stage.a.endpoint).post_tagged_recv(TRIED, &stage.receive(), buffer);
    Some(posted.expect("room"))
}

fn post_multi(stage: &mut Stage) -> Option<Request> {
    let buffer = stage.take_buffer();
    let posted = (stage.a.endpoint).post_multi_recv(TRIED, &stage.receive(), buffer, 1);
    Some(posted.expect("room"))
}

fn probe(stage: &mut Stage) -> Option<Request> {
    let posted = stage.a.endpoint.probe(TRIED, &stage.receive());
    Some(posted.expect("room"))
}

fn claim(stage: &mut Stage) -> Option<Request> {
    let posted = stage.a.endpoint.claim(TRIED, &stage.receive());
    Some(posted.expect("room"))
}

fn receive_claimed(stage: &mut Stage) -> Option<Request> {
    let buffer = stage.take_buffer();
    let claimed = stage.claimed.take().expect("a message");
    Some(claimed.receive(TRIED, buffer).expect("room"))
}

fn discard(stage: &mut Stage) -> Option<Request> {
    let claimed = stage.claimed.take().expect("a message");
    Some(claimed.discard(TRIED).expect("room"))
}

fn cancel(stage: &mut Stage) -> Option<Request> {
    let target = stage.target.take().expect("something to cancel");
    stage.cancels = true;
    let posted = stage.a.endpoint.cancel(TRIED, target);
    Some(posted.expect("room"))
}

const SENDS: &[Verb] = &[
    post_send,
    post_inject,
    post_ready,
    post_unsignaled,
    post_gather,
];
/// Those whose success the program is told of.
const SIGNALED: &[Verb] = &[post_send, post_ready, post_gather];
/// Those that can be cancelled.
const CANCELLABLE: &[Verb] = &[post_send, post_ready, post_unsignaled, post_gather];
/// Those whose buffer may be longer than a message.
const LONG: &[Verb] = &[post_send, post_ready, post_unsignaled];
const PUTS: &[Verb] = &[
    post_put,
    post_inject_put,
    post_unsignaled_put,
    post_gather_put,
];
const SIGNALED_PUTS: &[Verb] = &[post_put, post_gather_put];
const CANCELLABLE_PUTS: &[Verb] = &[post_put, post_unsignaled_put, post_gather_put];
const GETS: &[Verb] = &[post_get];
const RECEIVES: &[Verb] = &[post_receive, post_multi];
const LOOKS: &[Verb] = &[probe, claim];

/// Posts the request on a stage after something has been done there, and does something else.
fn tried(
    mut stage: Stage,
    verb: Verb,
    before: impl FnOnce(&mut Stage),
    after: impl FnOnce(&mut Stage, Option<Request>),
) -> WcStatus {
    before(&mut stage);
    let request = verb(&mut stage);
    after(&mut stage, request);
    stage.ended()
}

/// A request that waits when something happens.
fn waited(verb: Verb, happens: impl FnOnce(&mut Stage, Option<Request>)) -> WcStatus {
    tried(Stage::new(), verb, Stage::spend, |stage, request| {
        stage.a.pause(20_000);
        happens(stage, request);
    })
}

/// A request that is posted when something has happened.
fn after(verb: Verb, happens: impl FnOnce(&mut Stage)) -> WcStatus {
    tried(Stage::new(), verb, happens, |_, _| ())
}

/// A put or a get that waits behind a message without a credit when something happens.
fn put_waited(verb: Verb, happens: impl FnOnce(&mut Stage, Option<Request>)) -> WcStatus {
    let twice = |stage: &mut Stage| (0..2).for_each(|_| stage.spend());
    tried(Stage::new(), verb, twice, |stage, request| {
        stage.a.pause(20_000);
        happens(stage, request);
    })
}

fn is_cancelled(stage: &mut Stage, request: Option<Request>) {
    let target = request.expect("a handle");
    let posted = stage.a.endpoint.cancel(0, target);
    posted.expect("room");
}

fn cancelled(verb: Verb) -> WcStatus {
    waited(verb, is_cancelled)
}

fn peer_disconnects(stage: &mut Stage) {
    let ended = stage.b.endpoint.disconnect(stage.b.pair, 100_000);
    ended.expect("ended");
}

fn peer_fails(stage: &mut Stage) {
    let failed = stage.b.endpoint.declare_failed(stage.b.pair);
    failed.expect("connected");
    stage.a.pause(20_000);
}

/// A message that nobody hears is sent until the card gives the peer up.
fn peer_falls_silent(stage: &mut Stage) {
    stage.fabric.lose_frames(0, u32::MAX);
    let send = stage.send();
    let sent = stage.a.endpoint.post_tagged_inject(0, &send, b"nobody");
    sent.expect("room");
    stage.a.pause(60 * u64::from(ACKNOWLEDGE_TIMEOUT));
}

/// A message that is lost can't be read when it is to be sent again.
fn send_cannot_be_read_again(stage: &mut Stage) {
    stage.fabric.lose_frames(0, 1);
    let buffer = stage.take_buffer();
    let sent = stage.a.endpoint.post_tagged_send(0, &stage.send(), buffer);
    sent.expect("room");
    stage.a.pause(u64::from(ACKNOWLEDGE_TIMEOUT) / 2);
    stage.break_bus(true);
    stage.a.pause(10 * u64::from(ACKNOWLEDGE_TIMEOUT));
}

fn pair_is_closed(stage: &mut Stage, _: Option<Request>) {
    stage.a.endpoint.close_pair(stage.pair).expect("open");
}

/// A receive whose region the card forgets before the message comes.
fn receive_without_region(verb: Verb) -> WcStatus {
    let key = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&key);
    tried(
        Stage::new(),
        verb,
        |stage| {
            stage.fabric.bus(0, move |access| {
                if let BusAccess::Read { bytes, .. } = access
                    && bytes.len() == REQUEST_BYTES
                {
                    let request = ListRequest::parse(bytes).expect("whole");
                    *seen.lock().unwrap() = Some(request.key);
                }
                true
            });
        },
        |stage, _| {
            stage.a.pause(20_000);
            let key = key.lock().unwrap().expect("the card has the receive");
            forget_region(stage, key);
            stage.arrives(MESSAGE);
        },
    )
}

/// A get whose region the card forgets before the answer comes, which is on the wire for long enough, and not so long that the pair asks again.
fn get_without_region(verb: Verb) -> WcStatus {
    let key = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&key);
    tried(
        Stage::with(|options| options.command_cycles = 100),
        verb,
        |stage| {
            stage.fabric.bus(0, move |access| {
                if let BusAccess::Read { bytes, .. } = access
                    && bytes.len() == REQUEST_BYTES
                {
                    let request = SendRequest::parse(bytes).expect("whole");
                    *seen.lock().unwrap() = Some(request.key);
                }
                true
            });
            stage.fabric.tap(|mut frame, out| {
                let header = FrameHeader::parse(&frame.bytes).expect("a header");
                if header.frame_type == FrameType::GetAnswer.code() {
                    frame.delay += u64::from(ACKNOWLEDGE_TIMEOUT) * 3 / 4;
                }
                out.push(frame);
            });
        },
        |stage, _| {
            stage.a.pause(300);
            let key = key.lock().unwrap().expect("the card has the get");
            forget_region(stage, key);
        },
    )
}

/// The card forgets the region of a key. The library lets no program do that.
fn forget_region(stage: &Stage, key: u32) {
    let words = [u32::from(Command::DeregisterRegion.code()), key];
    let (card, mut answer) = (stage.fabric.transport(0), [u32::MAX]);
    // SAFETY: it makes nothing reachable that wasn't.
    let answered = unsafe { card.command(&words, &mut answer, 10_000_000) };
    assert_eq!((answered, answer), (Ok(Answer::Complete), [0]));
}

/// A use of a claimed message whose handle the bus changes.
fn wrong_handle(verb: Verb) -> WcStatus {
    after(verb, |stage| {
        stage.claim();
        stage.change_list(|request| request.target ^= 1 << CLAIM_SLOT_BITS);
    })
}

/// A use of a claimed message whose pair is closed before the card has fetched it.
fn late_use(verb: Verb) -> WcStatus {
    tried(Stage::slow(), verb, claim_slowly, pair_is_closed)
}

fn claim_slowly(stage: &mut Stage) {
    let (send, message) = (stage.b.send(7), stage.b.filled(&[9; MESSAGE]));
    let posted = stage.b.endpoint.post_tagged_send(0, &send, message);
    posted.expect("room");
    stage.b.pause(1_000_000);
    stage
        .a
        .endpoint
        .claim(0, &stage.a.receive(7))
        .expect("room");
    stage.claimed = stage.a.next().claimed;
}

/// A cancel of a request of the verb, which has ended and has not been polled for.
fn late_cancel(verb: Verb, happens: fn(&mut Stage)) -> WcStatus {
    after(cancel, |stage| {
        let request = verb(stage);
        happens(stage);
        stage.target = request;
    })
}

/// A section of a page, the status of a row of its table, the verbs that may end with it, and what makes them.
type Row = (
    &'static str,
    WcStatus,
    &'static [Verb],
    fn(Verb) -> WcStatus,
);

/// Every row of every table.
const ROWS: &[Row] = &[
    ("tagged_send", WcStatus::Success, SIGNALED, |verb| {
        after(verb, Stage::receives)
    }),
    ("tagged_send", WcStatus::NotReady, &[post_ready], |verb| {
        after(verb, |_| ())
    }),
    ("tagged_send", WcStatus::Cancelled, CANCELLABLE, cancelled),
    ("tagged_send", WcStatus::MemoryError, SENDS, |verb| {
        after(verb, |stage| stage.break_bus(true))
    }),
    ("tagged_send", WcStatus::LinkError, SENDS, |verb| {
        waited(verb, |stage, _| peer_fails(stage))
    }),
    ("tagged_send", WcStatus::PeerFailed, SENDS, |verb| {
        after(verb, |stage| stage.fabric.lose_frames(0, u32::MAX))
    }),
    ("tagged_send", WcStatus::PeerClosed, SENDS, |verb| {
        waited(verb, |stage, _| peer_disconnects(stage))
    }),
    ("tagged_send", WcStatus::Flushed, SENDS, |verb| {
        waited(verb, pair_is_closed)
    }),
    ("tagged_send", WcStatus::InvalidRequest, SENDS, |verb| {
        after(verb, |stage| stage.set_reserved_bits())
    }),
    ("tagged_send", WcStatus::InvalidPair, SENDS, |verb| {
        after(verb, Stage::unconnect)
    }),
    ("tagged_send", WcStatus::TooLong, LONG, |verb| {
        after(verb, |stage| stage.buffer = stage.a.buffer(1025))
    }),
    (
        "tagged_send",
        WcStatus::LocalProtection,
        CANCELLABLE,
        |verb| after(verb, |stage| stage.restrict(Access::Write)),
    ),
    ("put", WcStatus::Success, SIGNALED_PUTS, |verb| {
        after(verb, |_| ())
    }),
    ("put", WcStatus::RemoteAccess, PUTS, |verb| {
        after(verb, |stage| stage.key = RemoteKey::from_bits(1))
    }),
    ("put", WcStatus::Cancelled, CANCELLABLE_PUTS, |verb| {
        put_waited(verb, is_cancelled)
    }),
    ("put", WcStatus::MemoryError, PUTS, |verb| {
        after(verb, |stage| stage.break_bus(true))
    }),
    ("put", WcStatus::LinkError, PUTS, |verb| {
        put_waited(verb, |stage, _| peer_fails(stage))
    }),
    ("put", WcStatus::PeerFailed, PUTS, |verb| {
        after(verb, |stage| stage.fabric.lose_frames(0, u32::MAX))
    }),
    ("put", WcStatus::PeerClosed, PUTS, |verb| {
        put_waited(verb, |stage, _| peer_disconnects(stage))
    }),
    ("put", WcStatus::Flushed, PUTS, |verb| {
        put_waited(verb, pair_is_closed)
    }),
    ("put", WcStatus::InvalidRequest, PUTS, |verb| {
        after(verb, |stage| stage.set_reserved_bits())
    }),
    ("put", WcStatus::InvalidPair, PUTS, |verb| {
        after(verb, Stage::unconnect)
    }),
    ("put", WcStatus::LocalProtection, CANCELLABLE_PUTS, |verb| {
        after(verb, |stage| stage.restrict(Access::Write))
    }),
    ("get", WcStatus::Success, GETS, |verb| after(verb, |_| ())),
    ("get", WcStatus::RemoteAccess, GETS, |verb| {
        after(verb, |stage| stage.key = RemoteKey::from_bits(1))
    }),
    ("get", WcStatus::AccessDenied, GETS, get_without_region),
    ("get", WcStatus::Cancelled, GETS, |verb| {
        put_waited(verb, is_cancelled)
    }),
    ("get", WcStatus::MemoryError, GETS, |verb| {
        after(verb, |stage| stage.break_bus(false))
    }),
    ("get", WcStatus::LinkError, GETS, |verb| {
        put_waited(verb, |stage, _| peer_fails(stage))
    }),
    ("get", WcStatus::PeerFailed, GETS, |verb| {
        after(verb, |stage| stage.fabric.lose_frames(0, u32::MAX))
    }),
    ("get", WcStatus::PeerClosed, GETS, |verb| {
        put_waited(verb, |stage, _| peer_disconnects(stage))
    }),
    ("get", WcStatus::Flushed, GETS, |verb| {
        put_waited(verb, pair_is_closed)
    }),
    ("get", WcStatus::InvalidRequest, GETS, |verb| {
        after(verb, |stage| stage.set_reserved_bits())
    }),
    ("get", WcStatus::InvalidPair, GETS, |verb| {
        after(verb, Stage::unconnect)
    }),
    ("get", WcStatus::LocalProtection, GETS, |verb| {
        after(verb, |stage| stage.restrict(Access::Read))
    }),
    ("tagged_receive", WcStatus::Success, RECEIVES, |verb| {
        after(verb, |stage| stage.arrives(MESSAGE))
    }),
    ("tagged_receive", WcStatus::Truncated, RECEIVES, |verb| {
        after(verb, |stage| stage.arrives(MESSAGE + 1))
    }),
    ("tagged_receive", WcStatus::Cancelled, RECEIVES, cancelled),
    (
        "tagged_receive",
        WcStatus::AccessDenied,
        RECEIVES,
        receive_without_region,
    ),
    ("tagged_receive", WcStatus::MemoryError, RECEIVES, |verb| {
        waited(verb, |stage, _| {
            stage.break_bus(false);
            stage.arrives(MESSAGE);
        })
    }),
    ("tagged_receive", WcStatus::LinkError, RECEIVES, |verb| {
        waited(verb, |stage, _| peer_fails(stage))
    }),
    ("tagged_receive", WcStatus::PeerFailed, RECEIVES, |verb| {
        waited(verb, |stage, _| peer_falls_silent(stage))
    }),
    ("tagged_receive", WcStatus::PeerClosed, RECEIVES, |verb| {
        waited(verb, |stage, _| peer_disconnects(stage))
    }),
    ("tagged_receive", WcStatus::Revoked, RECEIVES, |verb| {
        after(verb, Stage::revoke)
    }),
    ("tagged_receive", WcStatus::Flushed, RECEIVES, |verb| {
        waited(verb, pair_is_closed)
    }),
    (
        "tagged_receive",
        WcStatus::InvalidRequest,
        RECEIVES,
        |verb| after(verb, |stage| stage.set_reserved_bits()),
    ),
    ("tagged_receive", WcStatus::InvalidPair, RECEIVES, |verb| {
        after(verb, Stage::unconnect)
    }),
    (
        "tagged_receive",
        WcStatus::LocalProtection,
        RECEIVES,
        |verb| after(verb, |stage| stage.restrict(Access::Read)),
    ),
    ("probe", WcStatus::Success, LOOKS, |verb| {
        after(verb, |stage| stage.arrives(MESSAGE))
    }),
    ("probe", WcStatus::NoMessage, LOOKS, |verb| {
        after(verb, |_| ())
    }),
    ("probe", WcStatus::MemoryError, LOOKS, |verb| {
        after(verb, |stage| {
            // The slot of the message can't be written.
            stage.break_bus(false);
            stage.arrives(MESSAGE);
        })
    }),
    ("probe", WcStatus::LinkError, LOOKS, |verb| {
        after(verb, peer_fails)
    }),
    ("probe", WcStatus::PeerFailed, LOOKS, |verb| {
        after(verb, peer_falls_silent)
    }),
    ("probe", WcStatus::LocalProtection, LOOKS, |verb| {
        after(verb, send_cannot_be_read_again)
    }),
    ("probe", WcStatus::PeerClosed, LOOKS, |verb| {
        after(verb, |stage| {
            peer_disconnects(stage);
            stage.a.pause(20_000);
        })
    }),
    ("probe", WcStatus::Revoked, LOOKS, |verb| {
        after(verb, Stage::revoke)
    }),
    ("probe", WcStatus::Flushed, LOOKS, |verb| {
        tried(Stage::slow(), verb, |_| (), pair_is_closed)
    }),
    ("probe", WcStatus::InvalidRequest, LOOKS, |verb| {
        after(verb, |stage| stage.set_reserved_bits())
    }),
    ("probe", WcStatus::InvalidPair, LOOKS, |verb| {
        after(verb, Stage::unconnect)
    }),
    (
        "receive_claimed",
        WcStatus::Success,
        &[receive_claimed],
        |verb| after(verb, Stage::claim),
    ),
    (
        "receive_claimed",
        WcStatus::Truncated,
        &[receive_claimed],
        |verb| {
            after(verb, |stage| {
                stage.claim();
                stage.buffer = stage.a.buffer(MESSAGE - 1);
            })
        },
    ),
    (
        "receive_claimed",
        WcStatus::MemoryError,
        &[receive_claimed],
        |verb| {
            after(verb, |stage| {
                stage.claim();
                stage.break_bus(true);
            })
        },
    ),
    (
        "receive_claimed",
        WcStatus::Flushed,
        &[receive_claimed],
        late_use,
    ),
    (
        "receive_claimed",
        WcStatus::InvalidRequest,
        &[receive_claimed],
        |verb| {
            after(verb, |stage| {
                stage.claim();
                stage.set_reserved_bits();
            })
        },
    ),
    (
        "receive_claimed",
        WcStatus::InvalidClaim,
        &[receive_claimed],
        wrong_handle,
    ),
    (
        "receive_claimed",
        WcStatus::LocalProtection,
        &[receive_claimed],
        |verb| {
            after(verb, |stage| {
                stage.claim();
                stage.restrict(Access::Read);
            })
        },
    ),
    ("discard", WcStatus::Success, &[discard], |verb| {
        after(verb, Stage::claim)
    }),
    ("discard", WcStatus::Flushed, &[discard], late_use),
    ("discard", WcStatus::InvalidRequest, &[discard], |verb| {
        after(verb, |stage| {
            stage.claim();
            stage.set_reserved_bits();
        })
    }),
    ("discard", WcStatus::InvalidClaim, &[discard], wrong_handle),
    (
        "cancel",
        WcStatus::InvalidRequest,
        &[post_send, post_receive],
        |verb| {
            after(cancel, |stage| {
                stage.spend();
                stage.target = verb(stage);
                stage.a.pause(20_000);
                stage.set_reserved_bits();
            })
        },
    ),
    ("cancel", WcStatus::TooLate, CANCELLABLE, |verb| {
        late_cancel(verb, Stage::receives)
    }),
    ("cancel", WcStatus::TooLate, RECEIVES, |verb| {
        late_cancel(verb, |stage| stage.arrives(MESSAGE))
    }),
];

/// Sections of the tables: each has a test of its own below.
const SECTIONS: [&str; 8] = [
    "tagged_send",
    "put",
    "get",
    "tagged_receive",
    "probe",
    "receive_claimed",
    "discard",
    "cancel",
];

/// Provokes what is in a section of the tables.
fn provoke(section: &str) {
    for &(_, status, verbs, provoke) in ROWS.iter().filter(|row| row.0 == section) {
        for (k, &verb) in verbs.iter().enumerate() {
            assert_eq!(provoke(verb), status, "verb {k}");
        }
    }
}

#[test]
fn a_send_of_each_kind_completes_with_each_status_of_its_table() {
    provoke("tagged_send");
}

#[test]
fn a_put_of_each_kind_completes_with_each_status_of_its_table() {
    provoke("put");
}

#[test]
fn a_get_completes_with_each_status_of_its_table() {
    provoke("get");
}

#[test]
pub fn a_receive_of_each_kind_completes_with_each_status_of_its_table() {
    provoke("tagged_receive");
}

#[test]
fn a_probe_and_a_claim_complete_with_each_status_of_their_table() {
    provoke("probe");
}

#[test]
fn a_receive_of_a_claimed_message_completes_with_each_status_of_its_table() {
    provoke("receive_claimed");
}

#[test]
fn a_discard_completes_with_each_status_of_its_table() {
    provoke("discard");
}

#[test]
fn a_cancel_of_each_kind_completes_with_each_status_of_its_table() {
    provoke("cancel");
}

/// A page: its name and its text.
type Page = (String, String);

fn pages() -> Vec<Page> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/verbs");
    let paths = std::fs::read_dir(folder).unwrap();
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    paths.map(read).collect()
}

/// The section of `statuses.md` that a page includes, or the page that it refers to, in each of its sections on completions.
fn completions(page: &str) -> Vec<&str> {
    let sections = page.split("\n## ").skip(1);
    let sections = sections.filter(|section| {
        let title = section.lines().next().unwrap_or_default();
        title.to_lowercase().ends_with("completes with")
    });
    let between = |section: &'_ str, start: &str, end: &str| {
        let from = section.find(start)? + start.len();
        let length = section[from..].find(end)?;
        Some((from, length))
    };
    let target = |section| {
        let found = between(section, "{{#include statuses.md:", "}}")
            .or_else(|| between(section, "](", "#completes-with)"));
        let (from, length) = found.expect("a table, or where there is one");
        &section[from..from + length]
    };
    sections.map(target).collect()
}

/// The sections of `statuses.md` and the statuses of each.
fn tables(statuses: &str) -> BTreeMap<String, Vec<String>> {
    let sections = statuses.split("<!-- ANCHOR: ").skip(1);
    let section = |text: &str| {
        let (anchor, rest) = text.split_once(" -->").expect("a name");
        let (table, _) = rest.split_once("<!-- ANCHOR_END").expect("an end");
        let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
        let names = rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned()));
        (anchor.to_owned(), names.collect())
    };
    sections.map(section).collect()
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads no folder")]
fn each_row_of_a_table_is_tried_and_each_that_is_tried_is_in_a_table() {
    let pages = pages();
    let (_, statuses) = pages
        .iter()
        .find(|(name, _)| name == "statuses")
        .expect("the page is there");
    let mut documented = BTreeSet::new();
    for (anchor, names) in tables(statuses) {
        documented.extend(names.into_iter().map(|name| (anchor.clone(), name)));
    }
    let provoked: BTreeSet<_> = ROWS
        .iter()
        .map(|(anchor, status, ..)| ((*anchor).to_owned(), status.to_string()))
        .collect();
    let missing: Vec<_> = documented.difference(&provoked).collect();
    assert!(missing.is_empty(), "nothing provokes {missing:?}");
    let surplus: Vec<_> = provoked.difference(&documented).collect();
    assert!(surplus.is_empty(), "no page documents {surplus:?}");
    let tested = |(anchor, _): &(String, String)| SECTIONS.contains(&anchor.as_str());
    assert!(provoked.iter().all(tested), "a section has no test");
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads no folder")]
fn each_table_is_on_the_page_of_a_verb_and_other_pages_refer_to_those() {
    let pages = pages();
    let (_, statuses) = pages
        .iter()
        .find(|(name, _)| name == "statuses")
        .expect("the page is there");
    let tables: BTreeSet<String> = tables(statuses).into_keys().collect();
    let mut included = BTreeSet::new();
    for (name, page) in &pages {
        for target in completions(page) {
            match target.strip_suffix(".md") {
                None => {
                    included.insert(target.to_owned());
                }
                Some(other) => {
                    let found = pages.iter().find(|(name, _)| name == other);
                    let (_, found) = found.unwrap_or_else(|| panic!("{name}: no page {other}"));
                    let has = completions(found);
                    assert!(has.iter().any(|has| tables.contains(*has)), "{name}");
                }
            }
        }
    }
    assert_eq!(included, tables);
}

#[test]
fn a_row_that_nothing_provokes_is_found() {
    let page = "# V\n\n## The X completes with\n\n{{#include statuses.md:x}}\n\n## Completes with\n\nAs [a y](y.md#completes-with).\n";
    assert_eq!(completions(page), ["x", "y.md"]);
    let statuses = "<!-- ANCHOR: x -->\n| status | |\n|---|---|\n| `New` | ended | `Old` |\n\n<!-- ANCHOR_END: x -->\n";
    let found = tables(statuses);
    assert_eq!(found.len(), 1);
    assert_eq!(found["x"], ["New"]);
}
