//! Each error that a page of a verb documents is provoked here. The pages' tables are read: a row that nothing provokes fails, and so does
//! a provocation that no page documents, or that ends with another error than its row says.

use crate::common::{PATIENCE, Side, able_options, connected, fabric, opened_at, options, sized};
use abi::control::{AccessReport, key_index};
use host_driver::transport::{Answer, Line, PauseResult, Transport, TransportError, Watch};
use host_driver::{
    Access, Buffer, CommandError, ConnectError, Cover, Device, DeviceOptions, DrainError,
    DrainOptions, DrainPolicy, Drained, Endpoint, EndpointAddress, EventFdError, Gather, Get,
    Group, MessageSet, OpenError, Pair, PairTimes, PostError, Protection, Put, RecvWr, RemoteKey,
    RemoteRights, Request, Revocation, RevokeError, SendBuffer, SendFlags, SendLimits, SendWr,
    SharedBuffer, ShutOut, Source, TaggedReceive, TaggedSend, ToldRevocation, UndrainedAccess,
    WatchOptions, Window,
};
use soft_card::{FirmwareBehaviour, Sizes, SoftFabric, SoftOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::ptr::NonNull;
use std::sync::Arc;

/// The names that a row of a table has, as the errors that were provoked have them.
type Names = BTreeSet<String>;

/// A page, the first cell of a row of its errors, and what provokes it.
type Row = (&'static str, &'static str, fn() -> Names);

/// The capitalised names of an error: of the variant, and of the status or the error that it carries.
fn names(error: impl std::fmt::Debug) -> Names {
    let text = format!("{error:?}");
    let end = text.find(['(', '{']).unwrap_or(text.len());
    let (variant, rest) = text.split_at(end);
    let carried = rest.split("status: ").nth(1);
    let carried = carried.or_else(|| {
        let inner = rest.trim_start_matches('(');
        matches!(variant, "Command" | "Transport").then_some(inner)
    });
    let word = |text: &str| {
        let end = text.find(|c: char| !c.is_alphanumeric());
        text[..end.unwrap_or(text.len())].to_owned()
    };
    let carried = carried.map(word).filter(|name| !name.is_empty());
    [variant.trim().to_owned()]
        .into_iter()
        .chain(carried)
        .collect()
}

/// What each of some errors is called, which is to be the same, without what it carries.
#[track_caller]
fn all(errors: impl IntoIterator<Item = Option<impl std::fmt::Debug>>) -> Names {
    let mut found = BTreeSet::new();
    for error in errors {
        let text = format!("{:?}", error.expect("an error"));
        let end = text.find(|c: char| !c.is_alphanumeric());
        found.insert(text[..end.unwrap_or(text.len())].to_owned());
    }
    assert_eq!(found.len(), 1, "{found:?}");
    found
}

fn drain_options(timeout: u64) -> DrainOptions {
    DrainOptions {
        tag: 1,
        messages: MessageSet::of_context(0),
        policy: DrainPolicy::Reset,
        peer: None,
        timeout,
    }
}

/// A drain with the other side, which has this rank.
fn drain(side: &Side, timeout: u64, rank: u32) -> Result<Drained, DrainError> {
    let group = Group::new(&side.endpoint, &[(rank, side.pair)], 0).expect("a group");
    side.endpoint.drain(&group, &drain_options(timeout))
}

/// What ends a grant, or what follows it, on cards that can grant.
fn granted(grant: fn(&Side, &Window) -> Result<RemoteKey, CommandError>) -> Names {
    let fabric = SoftFabric::new(able_options());
    let (a, _b) = connected(&fabric, 1);
    let window = a.pd.reg_window(64, RemoteRights::WRITE).unwrap();
    names(grant(&a, &window).unwrap_err())
}

/// What is said of a write of the peer that doesn't end. The error names it.
fn undrained(call: fn(&Side, &Window, RemoteKey) -> Result<(), CommandError>) -> Names {
    let fabric = SoftFabric::new(able_options());
    let (a, _b) = connected(&fabric, 1);
    let window = a.pd.reg_window(64, RemoteRights::WRITE).unwrap();
    let key = window.grant(&a.endpoint, a.pair, RemoteRights::WRITE, ..);
    let key = key.unwrap();
    let report = AccessReport {
        waits: 1,
        writes: 1,
        region: key_index(window.region_key()),
        pair: a.pair.index(),
        ..AccessReport::default()
    };
    fabric.silence_gates_for(0, report);
    let error = call(&a, &window, key).unwrap_err();
    let CommandError::Undrained { access, .. } = error else {
        panic!("{error}");
    };
    let named = UndrainedAccess {
        writes: true,
        region: window.region_key(),
        pair: a.pair.index(),
        context: None,
    };
    assert_eq!(access, named, "{error}");
    names(error)
}

// Posts

/// What a post is tried on.
struct Stage {
    fabric: SoftFabric,
    endpoint: Endpoint,
    pair: Pair,
    /// To be sent.
    bytes: SharedBuffer,
    /// Of another domain.
    foreign: Buffer,
    /// A receive that was posted before all else, to be cancelled.
    target: Request,
}

/// Sizes of the endpoint that a post is tried on.
#[derive(Clone, Copy)]
struct Rings {
    send: usize,
    list: usize,
    completions: usize,
    injects: usize,
}

const ROOMY: Rings = Rings {
    send: 64,
    list: 64,
    completions: 256,
    injects: 16,
};

impl Stage {
    /// On cards that fetch nothing.
    fn new(rings: Rings) -> Self {
        Self::on(able_options(), rings)
    }

    fn on(cards: SoftOptions, rings: Rings) -> Self {
        let fabric = SoftFabric::new(SoftOptions {
            fetch_cycles: 100 * PATIENCE,
            ..cards
        });
        let (side, _) = connected(&fabric, 4);
        let builder = side.pd.endpoint().send_ring(rings.send);
        let builder = builder.list_ring(rings.list).inject_buffers(rings.injects);
        let endpoint = builder.completion_queue(rings.completions).open().unwrap();
        let (pair, _) = endpoint.open_pair(1).unwrap();
        let (_, bytes) = side.pd.reg_mr(300, Access::Read).unwrap();
        let domain = side.device.alloc_pd().unwrap();
        let (_, foreign) = domain.reg_mr(8, Access::ReadWrite).unwrap();
        let any = TaggedReceive {
            source: Source::Any,
            context: 0,
            match_bits: 0,
            ignore_bits: 0,
        };
        let target = endpoint.post_tagged_recv(1, &any, Buffer::empty()).unwrap();
        Self {
            fabric,
            endpoint,
            pair,
            bytes: bytes.share(),
            foreign,
            target,
        }
    }

    fn send(&self) -> TaggedSend {
        TaggedSend {
            pair: self.pair,
            context: 0,
            match_bits: 0,
            immediate: 0,
        }
    }

    fn receive(&self) -> TaggedReceive {
        TaggedReceive {
            source: Source::Pair(self.pair),
            context: 0,
            match_bits: 0,
            ignore_bits: 0,
        }
    }

    fn post_receive(&self) -> Result<Request, PostError> {
        let source = Source::Any;
        let receive = TaggedReceive {
            source,
            ..self.receive()
        };
        let posted = self.endpoint.post_tagged_recv(1, &receive, Buffer::empty());
        posted.map_err(|refused| refused.error)
    }

    fn gather(&self, length: usize, segments: usize) -> Option<PostError> {
        let part = self.bytes.slice(..length);
        let all: Vec<_> = (0..segments).map(|_| part.clone()).collect();
        let posted = self.endpoint.post_gather_send(1, &self.send(), &all);
        posted.err()
    }
}

/// A verb, posted once: why not.
type Verb = fn(&Stage) -> Option<PostError>;

const SENDS: [Verb; 5] = [
    |s| {
        let posted = s.endpoint.post_tagged_send(1, &s.send(), Buffer::empty());
        posted.err().map(|refused| refused.error)
    },
    |s| s.endpoint.post_tagged_inject(1, &s.send(), b"").err(),
    |s| {
        let posted = s.endpoint.post_ready_send(1, &s.send(), Buffer::empty());
        posted.err().map(|refused| refused.error)
    },
    |s| {
        let posted = s
            .endpoint
            .post_unsignaled_send(1, &s.send(), s.bytes.clone());
        posted.err().map(|refused| refused.error)
    },
    |s| s.gather(8, 1),
];

const RECEIVES: [Verb; 2] = [
    |s| {
        let posted = s
            .endpoint
            .post_tagged_recv(1, &s.receive(), Buffer::empty());
        posted.err().map(|refused| refused.error)
    },
    |s| {
        let posted = s
            .endpoint
            .post_multi_recv(1, &s.receive(), Buffer::empty(), 1);
        posted.err().map(|refused| refused.error)
    },
];

const LOOKS: [Verb; 2] = [
    |s| s.endpoint.probe(1, &s.receive()).err(),
    |s| s.endpoint.claim(1, &s.receive()).err(),
];

const CANCELS: [Verb; 1] = [|s| s.endpoint.cancel(1, s.target).err()];

/// Prepares a stage and posts by each verb until it is refused.
#[track_caller]
fn refused(verbs: &[Verb], rings: Rings, prepare: fn(&mut Stage)) -> Names {
    all(verbs.iter().map(|verb| {
        let mut stage = Stage::new(rings);
        prepare(&mut stage);
        (0..100).find_map(|_| verb(&stage))
    }))
}

const NOTHING: fn(&mut Stage) = |_| {};
const LIMIT: fn(&mut Stage) = |stage| {
    let limits = SendLimits {
        outstanding: 2,
        ..SendLimits::default()
    };
    stage.endpoint.set_send_limits(stage.pair, limits).unwrap();
};
const FILL: fn(&mut Stage) = |stage| while stage.post_receive().is_ok() {};
const CLOSE_PAIR: fn(&mut Stage) = |stage| stage.endpoint.close_pair(stage.pair).unwrap();
const CLOSE: fn(&mut Stage) = |stage| stage.endpoint.close().unwrap();
const GONE: fn(&mut Stage) = |stage| stage.fabric.close();
const SMALL: Rings = Rings {
    send: 4,
    list: 4,
    ..ROOMY
};
const FEW: Rings = Rings {
    completions: 4,
    ..ROOMY
};

fn put_by(pair: Pair) -> Put {
    Put {
        pair,
        key: RemoteKey::from_bits(1),
        offset: 0,
    }
}

fn get_by(pair: Pair) -> Get {
    Get {
        pair,
        key: RemoteKey::from_bits(1),
        offset: 0,
    }
}

/// How many sends of a list are posted, and why no more.
fn listed<B: SendBuffer>(
    stage: &Stage,
    flags: SendFlags,
    buffers: impl IntoIterator<Item = B>,
) -> (usize, Option<PostError>) {
    let list = buffers.into_iter().map(|buffer| SendWr {
        wr_id: 1,
        send: stage.send(),
        flags,
        buffer,
    });
    let mut posted = Vec::new();
    let refused = stage.endpoint.post_send_list(list, &mut posted).err();
    (posted.len(), refused.map(|refused| refused.error))
}

/// The same of receives.
fn listed_receives(
    stage: &Stage,
    buffers: impl IntoIterator<Item = Buffer>,
) -> (usize, Option<PostError>) {
    let list = buffers.into_iter().map(|buffer| RecvWr {
        wr_id: 1,
        receive: stage.receive(),
        multi: None,
        buffer,
    });
    let mut posted = Vec::new();
    let refused = stage.endpoint.post_recv_list(list, &mut posted).err();
    (posted.len(), refused.map(|refused| refused.error))
}

/// Nine empty buffers.
fn nine() -> [Buffer; 9] {
    [(); 9].map(|()| Buffer::empty())
}

/// Lists of one request.
const LISTS: [Verb; 2] = [
    |s| listed(s, SendFlags::empty(), [Buffer::empty()]).1,
    |s| listed_receives(s, [Buffer::empty()]).1,
];

/// A list of a gather of these parts of the stage's bytes.
fn listed_gather(stage: &Stage, parts: &[&SharedBuffer]) -> Option<PostError> {
    let parts: Vec<_> = parts.iter().copied().cloned().collect();
    let gather = Gather::new(&parts).expect("few");
    listed(stage, SendFlags::empty(), [gather]).1
}

/// A cancel of a send whose ring is full.
fn cancel_of_send() -> Names {
    let stage = Stage::new(SMALL);
    let post = || {
        stage
            .endpoint
            .post_tagged_send(1, &stage.send(), Buffer::empty())
    };
    let sent = post().unwrap();
    while post().is_ok() {}
    names(stage.endpoint.cancel(1, sent).unwrap_err())
}

fn cancel_of_nothing() -> Names {
    let stage = Stage::new(ROOMY);
    stage.endpoint.cancel(1, stage.target).unwrap();
    names(stage.endpoint.cancel(1, stage.target).unwrap_err())
}

fn wrong_domain(post: impl FnOnce(Stage) -> PostError) -> Names {
    names(post(Stage::new(ROOMY)))
}

/// A message that has been claimed, and who has claimed it.
fn claimed() -> (SoftFabric, Side, Side, host_driver::Claimed) {
    let fabric = fabric();
    let (a, b) = connected(&fabric, 4);
    a.endpoint.post_tagged_inject(1, &a.send(7), b"").unwrap();
    let claimed = loop {
        b.endpoint.claim(1, &b.receive(7)).unwrap();
        if let Some(claimed) = b.next().claimed {
            break claimed;
        }
    };
    (fabric, a, b, claimed)
}

/// Both uses of a claimed message, after something has happened.
fn used(happens: fn(&SoftFabric, &Side)) -> [Option<PostError>; 2] {
    let (fabric, _a, b, message) = claimed();
    happens(&fabric, &b);
    let received = message.receive(1, Buffer::empty()).err();
    let received = received.map(|refused| refused.error);
    let (fabric, _a, b, message) = claimed();
    happens(&fabric, &b);
    let discarded = message.discard(1).err().map(|refused| refused.error);
    [received, discarded]
}

/// The looks' refusals and those of the uses of what was claimed.
#[track_caller]
fn looked(prepare: fn(&mut Stage), happens: fn(&SoftFabric, &Side)) -> Names {
    let used = all(used(happens));
    assert_eq!(used, refused(&LOOKS, ROOMY, prepare));
    used
}

// Commands

/// A command of the library.
type Call = fn(&Side) -> Option<CommandError>;

/// What commands end with under firmware that hangs, firmware that has started anew, and out of reach.
fn silenced(calls: &[Call]) -> Names {
    silenced_by(&[HANGS, RESTARTS, CUT], calls)
}

const HANGS: fn(&SoftFabric) = |fabric| fabric.set_firmware(0, FirmwareBehaviour::HangsAfter(0));
const RESTARTS: fn(&SoftFabric) = |fabric| fabric.restart_firmware(0);
const CUT: fn(&SoftFabric) = |fabric| fabric.cut(0, true);

/// The same of some of these ways.
fn silenced_by(ways: &[fn(&SoftFabric)], calls: &[Call]) -> Names {
    let mut found = Names::new();
    for way in ways {
        found.extend(all(calls.iter().map(|call| {
            let fabric = fabric();
            let (a, _b) = connected(&fabric, 1);
            way(&fabric);
            call(&a)
        })));
    }
    found
}

/// What commands end with under firmware that answers what is no status.
fn malformed(calls: &[Call]) -> Names {
    all(calls.iter().map(|call| {
        let fabric = fabric();
        let (a, _b) = connected(&fabric, 1);
        fabric.set_firmware(0, FirmwareBehaviour::AnswersMalformed);
        call(&a)
    }))
}

/// What commands are refused with by firmware that its gates do not answer.
fn without_gates(calls: &[Call]) -> Names {
    let mut found = Names::new();
    for call in calls {
        let fabric = fabric();
        let (a, _b) = connected(&fabric, 1);
        fabric.silence_gates(0);
        found.extend(names(call(&a).expect("refused")));
    }
    found
}

/// Commands that each have an argument out of range.
const INVALID: [Call; 11] = [
    |a| a.endpoint.open_pair(0).err(),
    |a| a.endpoint.open_pair(65).err(),
    |a| a.endpoint.listen(0).err(),
    |a| a.endpoint.listen(65).err(),
    |a| a.endpoint.begin_connect(&a.endpoint.address(), 0, 0).err(),
    |a| {
        let here = a.endpoint.address();
        a.endpoint.begin_connect(&here, 65, 0).err()
    },
    |a| {
        let here = a.endpoint.address();
        a.endpoint.begin_connect(&here, 1, 1 << 31).err()
    },
    |a| a.endpoint.reserve_peers(1, 65).err(),
    |a| a.endpoint.begin_connect(&group(), 1, 0).err(),
    |a| {
        let (pair, address) = a.endpoint.open_pair(1).unwrap();
        let mut bytes = address.to_bytes();
        let mut changed = abi::address::PairAddressView::new_unchecked(&bytes).to_repr();
        changed.mac |= 1;
        changed.emit(&mut bytes);
        let group = host_driver::PairAddress::from_bytes(&bytes).unwrap();
        a.endpoint.connect_pair(pair, &group).err()
    },
    |a| {
        let (pair, address) = a.endpoint.open_pair(1).unwrap();
        let mut bytes = address.to_bytes();
        let mut changed = abi::address::PairAddressView::new_unchecked(&bytes).to_repr();
        changed.job += 1;
        changed.emit(&mut bytes);
        let stranger = host_driver::PairAddress::from_bytes(&bytes).unwrap();
        a.endpoint.connect_pair(pair, &stranger).err()
    },
];

/// An address that is none of one card's.
fn group() -> EndpointAddress {
    let (mac, endpoint) = (1, 0);
    let mut bytes = [0; EndpointAddress::BYTES];
    abi::address::EndpointAddress { mac, endpoint }.emit(&mut bytes);
    EndpointAddress::from_bytes(&bytes)
}

/// Two connected sides on cards with room for many pairs.
fn many_pairs() -> (SoftFabric, Side, Side) {
    let fabric = SoftFabric::new(SoftOptions {
        sizes: Sizes {
            pairs: 64,
            unexpected: 512,
            ..options().sizes
        },
        ..options()
    });
    let (a, b) = connected(&fabric, 1);
    (fabric, a, b)
}

fn too_many_handshakes() -> Names {
    let (fabric, a, b) = many_pairs();
    fabric.lose_frames(0, u32::MAX);
    let peer = b.endpoint.address();
    for _ in 0..16 {
        a.endpoint.begin_connect(&peer, 1, 0).unwrap();
    }
    names(a.endpoint.begin_connect(&peer, 1, 0).unwrap_err())
}

fn refused_disconnects() -> Names {
    let (_fabric, a, b) = many_pairs();
    let (pair, _) = a.endpoint.open_pair(1).unwrap();
    let unconnected = names(a.endpoint.begin_disconnect(pair, 0).unwrap_err());
    for k in 0..17 {
        let (here, from) = a.endpoint.open_pair(1).unwrap();
        let (there, to) = b.endpoint.open_pair(1).unwrap();
        a.endpoint.connect_pair(here, &to).unwrap();
        b.endpoint.connect_pair(there, &from).unwrap();
        // The second waits for the credit of the first, which nobody receives.
        for _ in 0..2 {
            let send = TaggedSend {
                pair: here,
                ..a.send(7)
            };
            let posted = a.endpoint.post_tagged_send(1, &send, Buffer::empty());
            posted.unwrap();
        }
        let begun = a.endpoint.begin_disconnect(here, 1 << 30);
        match begun {
            Ok(()) => assert!(k < 16, "the 17th"),
            Err(error) => {
                assert_eq!((k, names(error)), (16, unconnected.clone()));
            }
        }
    }
    unconnected
}

/// A command on two connected sides, the first of which may do as it likes.
fn asked(call: fn(&Side, &Side) -> Option<CommandError>) -> Names {
    let (a, b) = connected(&fabric(), 8);
    names(call(&a, &b).expect("refused"))
}

fn until<T>(mut call: impl FnMut() -> Result<T, CommandError>) -> Option<CommandError> {
    let mut kept = Vec::new();
    loop {
        match call() {
            Ok(one) => kept.push(one),
            Err(error) => return Some(error),
        }
        assert!(kept.len() < 100);
    }
}

fn opened(change: impl FnOnce(&mut SoftOptions)) -> Names {
    let mut changed = options();
    change(&mut changed);
    let fabric = SoftFabric::new(changed);
    names(Device::open(fabric.transport(0)).err().expect("not opened"))
}

const HASTY: DeviceOptions = DeviceOptions {
    ready_timeout: 500,
    ..DeviceOptions::DEFAULT
};

/// A card that is open, and whose gates a reset takes longer than the program waits.
fn hasty() -> (SoftFabric, Device) {
    let fabric = SoftFabric::new(SoftOptions {
        boot_cycles: 100,
        ..options()
    });
    let device = Device::open_with(fabric.transport(0), HASTY).unwrap();
    (fabric, device)
}

/// A card that may have four endpoints on one queue, or may not.
fn queue_host(capabilities: u32) -> (SoftFabric, Device, host_driver::ProtectionDomain) {
    let fabric = SoftFabric::new(SoftOptions {
        sizes: Sizes {
            endpoints: 4,
            capabilities,
            ..options().sizes
        },
        ..options()
    });
    let device = Device::open(fabric.transport(0)).unwrap();
    let pd = device.alloc_pd().unwrap();
    (fabric, device, pd)
}

fn waited(prepare: fn(&SoftFabric, &Side)) -> Names {
    let fabric = fabric();
    let (a, b) = connected(&fabric, 1);
    prepare(&fabric, &b);
    names(a.cq.wait(10_000).unwrap_err())
}

// Revocations

fn group_of(side: &Side) -> Group {
    Group::new(&side.endpoint, &[(1, side.pair)], 0).unwrap()
}

fn revoke(side: &Side, group: &Group) -> Result<Revocation, RevokeError> {
    let context = MessageSet::of_context(0);
    side.endpoint.revoke(group, &context, PATIENCE)
}

const REVOKES: [Call; 5] = [
    |a| match revoke(a, &group_of(a)) {
        Err(RevokeError::Command(error)) => Some(error),
        _ => None,
    },
    TOLD_REVOCATIONS[0],
    TOLD_REVOCATIONS[1],
    TOLD_REVOCATIONS[2],
    TOLD_REVOCATIONS[3],
];

const TOLD_REVOCATIONS: [Call; 4] = [
    |a| {
        let context = MessageSet::of_context(0);
        a.endpoint.tell_revoked(1, &context, &[]).err()
    },
    |a| a.endpoint.name_group(1, &group_of(a)).err(),
    |a| a.endpoint.revoked().err(),
    |a| a.endpoint.forget_revoked(&told_revocation()).err(),
];

/// One that a peer has told another endpoint.
fn told_revocation() -> ToldRevocation {
    let (a, b) = connected(&fabric(), 1);
    b.endpoint
        .watch_peers(WatchOptions {
            believe_peers: true,
            ..WatchOptions::OFF
        })
        .unwrap();
    let context = MessageSet::of_context(0);
    a.endpoint.tell_revoked(1, &context, &[a.pair]).unwrap();
    b.pause(100_000);
    b.endpoint.revoked().unwrap()[0]
}

/// A revocation, and more, that somebody is to be told of who hears nothing.
fn too_many_revocations() -> Names {
    let fabric = fabric();
    let (a, _b) = connected(&fabric, 1);
    fabric.lose_frames(0, u32::MAX);
    let context = MessageSet::of_context(0);
    names(until(|| a.endpoint.tell_revoked(1, &context, &[a.pair])).expect("refused"))
}

/// The names of an error, and of the one that it carries.
fn revoke_error(revoked: Result<Revocation, RevokeError>) -> Names {
    let (outer, inner) = match revoked.unwrap_err() {
        RevokeError::Command(error) => ("Command", names(error)),
        RevokeError::Sweep { error, .. } => ("Sweep", all([Some(error)])),
        other => panic!("{other}"),
    };
    let outer = [outer.to_owned()];
    outer.into_iter().chain(inner).collect()
}

/// Two sides on cards that fetch nothing.
fn idle() -> (Side, Side) {
    let fabric = SoftFabric::new(SoftOptions {
        fetch_cycles: 100 * PATIENCE,
        ..able_options()
    });
    connected(&fabric, 1)
}

/// What a revocation ends with that waits for its card when another thread does something, and what comes of that.
fn swept_beside(happens: impl FnOnce(&Side) -> Names) -> (Names, Names) {
    let mut found = Names::new();
    let swept = swept_while(|_, side| found = happens(side));
    (swept, found)
}

fn swept_beside_on(happens: impl FnOnce(&SoftFabric, &Side)) -> Names {
    swept_while(happens)
}

fn swept_while(happens: impl FnOnce(&SoftFabric, &Side)) -> Names {
    let fabric = SoftFabric::new(SoftOptions {
        fetch_cycles: 100 * PATIENCE,
        ..able_options()
    });
    let (mut side, _other) = connected(&fabric, 1);
    side.post(1, &side.receive(1));
    let (own, attached) = (fabric.attach(), fabric.attach());
    std::thread::scope(|scope| {
        let side = &side;
        let sweeper = scope.spawn(move || {
            let _attached = attached;
            revoke_error(revoke(side, &group_of(side)))
        });
        side.pause(50_000);
        happens(&fabric, side);
        drop(own);
        sweeper.join().unwrap()
    })
}

// File descriptors

/// A transport that has only what each must have.
struct Plain(Arc<dyn Transport>);

// SAFETY: every call is passed on.
unsafe impl Transport for Plain {
    fn claim(&self) -> Result<bool, TransportError> {
        self.0.claim()
    }

    unsafe fn release(&self) {
        // SAFETY: the caller's promise is the same, here and below.
        unsafe { self.0.release() };
    }

    unsafe fn read_register(&self, offset: u32) -> Result<u32, TransportError> {
        // SAFETY: as above.
        unsafe { self.0.read_register(offset) }
    }

    unsafe fn write_register(&self, offset: u32, value: u32) -> Result<(), TransportError> {
        // SAFETY: as above.
        unsafe { self.0.write_register(offset, value) }
    }

    unsafe fn doorbell(&self, offset: u32, value: u32) -> Result<(), TransportError> {
        // SAFETY: as above.
        unsafe { self.0.doorbell(offset, value) }
    }

    unsafe fn map(&self, start: NonNull<u8>, length: usize) -> Result<u64, TransportError> {
        // SAFETY: as above.
        unsafe { self.0.map(start, length) }
    }

    unsafe fn unmap(&self, address: u64) -> Result<(), TransportError> {
        // SAFETY: as above.
        unsafe { self.0.unmap(address) }
    }

    unsafe fn command(
        &self,
        words: &[u32],
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<Answer, TransportError> {
        // SAFETY: as above.
        unsafe { self.0.command(words, answer, deadline) }
    }

    unsafe fn late_answer(
        &self,
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<Answer, TransportError> {
        // SAFETY: as above.
        unsafe { self.0.late_answer(answer, deadline) }
    }

    fn now(&self) -> u64 {
        self.0.now()
    }

    fn interrupts(&self, line: Line) -> u64 {
        self.0.interrupts(line)
    }

    fn notify(&self) {
        self.0.notify();
    }

    fn pause(&self, watch: &[Watch], deadline: u64) -> PauseResult {
        self.0.pause(watch, deadline)
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// Says that the process may have few descriptors.
#[cfg(target_os = "linux")]
const FEW_DESCRIPTORS: &str = "POSTHORN_FEW_DESCRIPTORS";

/// In a process that may have few descriptors, and has them all.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "another test runs it, in a process of its own"]
fn no_descriptor_is_left() {
    if std::env::var_os(FEW_DESCRIPTORS).is_none() {
        return;
    }
    let (a, _b) = connected(&fabric(), 1);
    let open = || std::fs::File::open("/dev/null").ok();
    let held: Vec<_> = std::iter::from_fn(open).take(1_000).collect();
    let error = a.cq.event_fd().err();
    drop(held);
    assert!(matches!(error, Some(EventFdError::System(_))), "{error:?}");
}

#[cfg(target_os = "linux")]
fn without_descriptors() -> Names {
    let program = std::env::current_exe().unwrap();
    let test = "documented_errors::no_descriptor_is_left";
    let limited = "ulimit -n 64 && exec \"$0\" --ignored --exact \"$1\"";
    let ran = std::process::Command::new("sh")
        .args(["-c", limited])
        .arg(program)
        .arg(test)
        .env(FEW_DESCRIPTORS, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    Names::from(["System".to_owned()])
}

const OPEN_AND_CLOSE: [Call; 2] = [
    |a| a.pd.endpoint().inject_buffers(0).open().err(),
    |a| a.endpoint.close().err(),
];

const REGISTER: [Call; 2] = [
    |a| a.pd.reg_mr(8, Access::Read).err(),
    |a| a.pd.reg_user_mr(vec![0; 8], Access::Read).err(),
];

const QUERIES: [Call; 4] = [
    |a| a.endpoint.query_pair(a.pair).err(),
    |a| a.endpoint.pair_counters(a.pair).err(),
    |a| a.device.read_counter(host_driver::Counter::ALL[0]).err(),
    |a| a.device.read_audit(0).err(),
];

const PEER_CALLS: [Call; 7] = [
    |a| a.endpoint.watch_peers(WatchOptions::default()).err(),
    |a| a.endpoint.declare_failed(a.pair).err(),
    |a| a.endpoint.failed_peers().err(),
    |a| a.endpoint.pending_failures().err(),
    |a| a.endpoint.acknowledge_failures().err(),
    |a| a.endpoint.tell_failed(a.pair, &[]).err(),
    |a| a.endpoint.signal(a.pair, 1).err(),
];

const SET_TIMES: [Call; 1] = [|a| {
    let times = PairTimes::default();
    a.endpoint.set_pair_times(a.pair, times).err()
}];

const SHUT_OUTS: [Call; 2] = [
    |a| a.endpoint.set_shut_out(a.pair, ShutOut::NEVER).err(),
    |a| a.endpoint.query_shut_out(a.pair).err(),
];

/// Watching by numbers that can't be.
fn unwatched(interval: u32, timeout: u32) -> Names {
    let (a, _b) = connected(&fabric(), 1);
    let options = WatchOptions {
        interval,
        timeout,
        believe_peers: false,
    };
    names(a.endpoint.watch_peers(options).expect_err("refused"))
}

/// A second failure, and more, that somebody is to be told of who hears nothing.
fn too_many_tellings() -> Names {
    let (fabric, a, b) = many_pairs();
    let other = b.pd.endpoint().open().unwrap();
    other.listen(1).unwrap();
    let failed = a.endpoint.connect(&other.address(), 1, 0).unwrap();
    a.endpoint.declare_failed(failed).unwrap();
    fabric.lose_frames(0, u32::MAX);
    names(until(|| a.endpoint.tell_failed(failed, &[a.pair])).expect("refused"))
}

/// Every row of every table of errors, but those that only name another table.
const ROWS: &[Row] = &[
    // cancel
    ("cancel", "`NothingToCancel`", cancel_of_nothing),
    ("cancel", "`CompletionQueueFull`", || {
        refused(&CANCELS, FEW, FILL)
    }),
    ("cancel", "`SendRingFull`", cancel_of_send),
    ("cancel", "`ListRingFull`", || {
        refused(&CANCELS, SMALL, FILL)
    }),
    ("cancel", "`Closed`", || refused(&CANCELS, ROOMY, CLOSE)),
    ("cancel", "`Transport`", || refused(&CANCELS, ROOMY, GONE)),
    // claim
    ("claim", "`CompletionQueueFull`", || {
        refused(&LOOKS, FEW, FILL)
    }),
    ("claim", "`ListRingFull`", || {
        refused(&LOOKS, SMALL, NOTHING)
    }),
    ("claim", "`InvalidPair`", || {
        looked(CLOSE_PAIR, |_, b| b.endpoint.close_pair(b.pair).unwrap())
    }),
    ("claim", "`WrongDomain`", || {
        let (_fabric, _a, b, message) = claimed();
        let domain = b.device.alloc_pd().unwrap();
        let (_, foreign) = domain.reg_mr(8, Access::Write).unwrap();
        names(message.receive(1, foreign).unwrap_err().error)
    }),
    ("claim", "`Closed`", || {
        looked(CLOSE, |_, b| b.endpoint.close().unwrap())
    }),
    ("claim", "`Transport`", || {
        let used = all(used(|fabric, _| fabric.close()));
        assert_eq!(used, refused(&LOOKS, ROOMY, GONE));
        used
    }),
    // completion-queues
    ("completion-queues", "`Argument`, of `create_cq`", || {
        let (_fabric, _device, pd) = queue_host(0);
        names(pd.create_cq(5).err().unwrap())
    }),
    (
        "completion-queues",
        "`Refused` with `Unsupported`, of `open`",
        || {
            let (_fabric, _device, pd) = queue_host(0);
            let cq = pd.create_cq(4).unwrap();
            let _first = pd.endpoint().on(&cq).open().unwrap();
            names(pd.endpoint().on(&cq).open().err().unwrap())
        },
    ),
    ("completion-queues", "`Argument`, of `open`", || {
        let (_fabric, device, pd) = queue_host(abi::capability::ALL);
        let cq = device.alloc_pd().unwrap().create_cq(4).unwrap();
        names(pd.endpoint().on(&cq).open().err().unwrap())
    }),
    ("completion-queues", "`NotFound`, of `open`", || {
        let (fabric, _device, pd) = queue_host(abi::capability::ALL);
        let cq = pd.create_cq(4).unwrap();
        let first = pd.endpoint().on(&cq).open().unwrap();
        fabric.silence_gates(0);
        assert!(first.close().is_err());
        names(
            pd.endpoint()
                .inject_buffers(0)
                .on(&cq)
                .open()
                .err()
                .unwrap(),
        )
    }),
    (
        "completion-queues",
        "`Refused` with `Busy`, of `close`",
        || {
            let (_fabric, _device, pd) = queue_host(abi::capability::ALL);
            let cq = pd.create_cq(4).unwrap();
            let first = pd.endpoint().on(&cq).open().unwrap();
            let _second = pd.endpoint().on(&cq).open().unwrap();
            names(first.close().unwrap_err())
        },
    ),
    // connect
    ("connect", "`ConnectError::Refused`", || {
        let (a, b) = connected(&fabric(), 1);
        let error = a.endpoint.connect(&b.endpoint.address(), 1, 0);
        let error = error.unwrap_err();
        assert!(matches!(error, ConnectError::Refused { .. }));
        names(error)
    }),
    ("connect", "`ConnectError::TimedOut`", || {
        let (a, _b) = connected(&fabric(), 1);
        names(a.endpoint.accept(1, 10_000).unwrap_err())
    }),
    ("connect", "`Refused` with `NoEnvelopes`", || {
        asked(|a, _| until(|| a.endpoint.open_pair(16)))
    }),
    ("connect", "`Refused` with `NoResource`", || {
        asked(|a, _| until(|| a.endpoint.listen(1)))
    }),
    (
        "connect",
        "`Refused` with `Busy`, of `connect_pair`",
        || {
            asked(|a, b| {
                let (_, address) = b.endpoint.open_pair(1).unwrap();
                a.endpoint.connect_pair(a.pair, &address).err()
            })
        },
    ),
    ("connect", "`NotFound`", || {
        asked(|a, b| {
            let (pair, address) = b.endpoint.open_pair(1).unwrap();
            b.endpoint.close_pair(pair).unwrap();
            assert_eq!(b.endpoint.close_pair(pair), Err(CommandError::NotFound));
            let disconnected = b.endpoint.disconnect(pair, 0);
            assert_eq!(disconnected, Err(CommandError::NotFound));
            let _ = a;
            b.endpoint.connect_pair(pair, &address).err()
        })
    }),
    (
        "connect",
        "`FirmwareTimeout`, `Restarted`, `Transport`",
        || {
            silenced(&[
                |a| a.endpoint.open_pair(1).err(),
                |a| a.endpoint.listen(1).err(),
                |a| a.endpoint.reserve_peers(1, 1).err(),
                |a| a.endpoint.begin_connect(&a.endpoint.address(), 1, 0).err(),
                |a| a.endpoint.begin_disconnect(a.pair, 0).err(),
                |a| a.endpoint.close_pair(a.pair).err(),
            ])
        },
    ),
    ("connect", "`SendsKept`, of `begin_disconnect`", || {
        let (a, _b) = connected(&fabric(), 1);
        for _ in 0..9 {
            let posted = a.endpoint.post_tagged_send(1, &a.send(7), Buffer::empty());
            posted.unwrap();
        }
        all([a.endpoint.begin_disconnect(a.pair, 0).err()])
    }),
    ("connect", "`Malformed`", || {
        malformed(&[
            |a| a.endpoint.open_pair(1).err(),
            |a| a.endpoint.listen(1).err(),
            |a| a.endpoint.reserve_peers(1, 1).err(),
            |a| a.endpoint.begin_connect(&a.endpoint.address(), 1, 0).err(),
            |a| a.endpoint.begin_disconnect(a.pair, 0).err(),
            |a| a.endpoint.close_pair(a.pair).err(),
        ])
    }),
    (
        "connect",
        "`Refused` with `Busy`, of `begin_connect`",
        too_many_handshakes,
    ),
    (
        "connect",
        "`Refused` with `Busy`, of `begin_disconnect`",
        refused_disconnects,
    ),
    ("connect", "`Refused` with `InvalidArgument`", || {
        let refused = INVALID.map(|call| {
            let (a, _b) = connected(&fabric(), 1);
            names(call(&a).expect("refused"))
        });
        assert!(refused.iter().all(|one| *one == refused[0]), "{refused:?}");
        refused[0].clone()
    }),
    (
        "connect",
        "`Refused` with `HardwareTimeout`, of `connect_pair`, `query_pair` and `close_pair`",
        || {
            without_gates(&[
                |a| {
                    let (pair, address) = a.endpoint.open_pair(1).unwrap();
                    a.endpoint.connect_pair(pair, &address).err()
                },
                |a| a.endpoint.query_pair(a.pair).err(),
                |a| a.endpoint.close_pair(a.pair).err(),
            ])
        },
    ),
    // endpoint
    ("endpoint", "`Argument`", || {
        asked(|a, _| a.pd.endpoint().send_ring(3).open().err())
    }),
    ("endpoint", "`Refused` with `InvalidArgument`", || {
        let jobs = asked(|a, _| a.pd.endpoint().job(1 << 24).open().err());
        let sends = asked(|a, _| a.pd.endpoint().pair_sends(24).open().err());
        assert_eq!(jobs, sends);
        jobs
    }),
    ("endpoint", "`Refused` with `NoResource`", || {
        asked(|a, _| until(|| a.pd.endpoint().open()))
    }),
    (
        "endpoint",
        "`FirmwareTimeout`, `Restarted`, `Transport`, of `open`",
        || silenced(&OPEN_AND_CLOSE[..1]),
    ),
    (
        "endpoint",
        "`FirmwareTimeout`, `Transport`, of `close`",
        || {
            // After a restart there is nothing to close.
            let (a, _b) = {
                let fabric = fabric();
                let sides = connected(&fabric, 1);
                RESTARTS(&fabric);
                sides
            };
            a.endpoint.close().unwrap();
            silenced_by(&[HANGS, CUT], &OPEN_AND_CLOSE[1..])
        },
    ),
    ("endpoint", "`Malformed`, of `open` and `close`", || {
        malformed(&OPEN_AND_CLOSE)
    }),
    (
        "endpoint",
        "`Refused` with `HardwareTimeout`, of `open`",
        || without_gates(&OPEN_AND_CLOSE[..1]),
    ),
    (
        "endpoint",
        "`Refused` with `HardwareTimeout`, of `close`",
        || without_gates(&OPEN_AND_CLOSE[1..]),
    ),
    ("endpoint", "`Refused` with `Busy`, of `close`", || {
        let (_fabric, _device, pd) = queue_host(abi::capability::ALL);
        let cq = pd.create_cq(4).unwrap();
        let first = pd.endpoint().on(&cq).open().unwrap();
        let _second = pd.endpoint().on(&cq).open().unwrap();
        names(first.close().unwrap_err())
    }),
    // events
    ("events", "`Transport`", || {
        let fabric = fabric();
        let (a, b) = connected(&fabric, 1);
        // The event of the pair's failure is taken; that it was the card can't hear.
        b.endpoint.close_pair(b.pair).unwrap();
        a.pause(50_000);
        fabric.cut(0, true);
        let read = a.endpoint.sticky_causes().unwrap_err();
        assert!(a.endpoint.poll_event().unwrap().is_some());
        let polled = a.endpoint.poll_event().expect_err("it is out of reach");
        assert_eq!(read, CommandError::Transport(polled));
        assert_eq!(a.endpoint.events_lost().unwrap_err(), read);
        let Err(error) = a.endpoint.req_notify_event() else {
            panic!("it is out of reach");
        };
        assert_eq!(read, CommandError::Transport(error));
        all([Some(read)])
    }),
    ("events", "`NotFound`, of the registers", || {
        let (a, _b) = connected(&fabric(), 1);
        a.endpoint.close().unwrap();
        let lost = a.endpoint.events_lost().err();
        all([a.endpoint.sticky_causes().err(), lost])
    }),
    // gather
    ("gather", "`Unsupported`", || {
        let (mut a, _b) = connected(&fabric(), 1);
        let part = a.buffer(8).share();
        let two = [part.clone(), part];
        names(
            a.endpoint
                .post_gather_send(1, &a.send(1), &two)
                .unwrap_err(),
        )
    }),
    ("gather", "`TooManySegments`", || {
        all([Stage::new(ROOMY).gather(8, 5)])
    }),
    ("gather", "`TooLong`", || {
        all([Stage::new(ROOMY).gather(300, 4)])
    }),
    ("gather", "`WrongDomain`", || {
        wrong_domain(|s| {
            let all = [s.foreign.share()];
            let posted = s.endpoint.post_gather_send(
                1,
                &TaggedSend {
                    pair: s.pair,
                    context: 0,
                    match_bits: 0,
                    immediate: 0,
                },
                &all,
            );
            posted.unwrap_err()
        })
    }),
    ("gather", "`SendRingFull`", || {
        // Three entries of four are taken, and a gather takes two.
        refused(&[|s| s.gather(8, 2)], SMALL, |s| {
            for _ in 0..3 {
                let send = s.send();
                s.endpoint.post_tagged_inject(1, &send, b"").unwrap();
            }
        })
    }),
    // put
    ("put", "`Unsupported`", || {
        let (mut a, _b) = connected(&fabric(), 1);
        let put = put_by(a.pair);
        let buffer = a.buffer(8);
        let posted = a.endpoint.post_put(1, &put, buffer).unwrap_err();
        let copied = a.endpoint.post_inject_put(1, &put, b"");
        all([Some(posted.error), copied.err()])
    }),
    ("put", "`CompletionQueueFull`", || {
        refused(
            &[
                |s| s.endpoint.post_inject_put(1, &put_by(s.pair), b"").err(),
                // One entry is left, and a put in parts takes two at least.
                |s| {
                    let bytes = [(); 4].map(|()| s.bytes.clone());
                    let put = put_by(s.pair);
                    s.endpoint.post_gather_put(1, &put, &bytes).err()
                },
            ],
            FEW,
            |s| {
                while s.endpoint.query().outstanding < FEW.completions - 1 {
                    s.post_receive().unwrap();
                }
            },
        )
    }),
    ("put", "`TooManySegments`", || {
        let s = Stage::new(ROOMY);
        let bytes = [(); 5].map(|()| s.bytes.clone());
        all([s.endpoint.post_gather_put(1, &put_by(s.pair), &bytes).err()])
    }),
    ("put", "`TooLong`, of `post_inject_put`", || {
        let s = Stage::new(ROOMY);
        let bytes = [0; 1025];
        all([s.endpoint.post_inject_put(1, &put_by(s.pair), &bytes).err()])
    }),
    // get
    ("get", "`Unsupported`", || {
        let (mut a, _b) = connected(&fabric(), 1);
        let get = get_by(a.pair);
        let buffer = a.buffer(8);
        let posted = a.endpoint.post_get(1, &get, buffer).unwrap_err();
        let (mut a, _b) = connected(&SoftFabric::new(able_options()), 1);
        let list = [SendWr {
            wr_id: 1,
            send: get_by(a.pair),
            flags: SendFlags::UNSIGNALED,
            buffer: a.buffer(8),
        }];
        let listed = a.endpoint.post_send_list(list, &mut Vec::new());
        all([
            Some(posted.error),
            listed.err().map(|refused| refused.error),
        ])
    }),
    ("get", "`CompletionQueueFull`", || {
        // One entry is left, and a get in parts takes two at least; then none is.
        all([(1, 2000), (0, 8)].map(|(left, length)| {
            let fabric = SoftFabric::new(able_options());
            let (mut a, _b) = sized(&fabric, 1, 4);
            let receive = a.receive(7);
            while a.endpoint.query().outstanding < 4 - left {
                a.post(1, &receive);
            }
            let buffer = a.buffer(length);
            let posted = a.endpoint.post_get(1, &get_by(a.pair), buffer);
            posted.err().map(|refused| refused.error)
        }))
    }),
    // lists
    ("lists", "`SendRingFull`, of `post_send_list`", || {
        let none = SendFlags::empty();
        let (posted, error) = listed(&Stage::new(SMALL), none, nine());
        assert_eq!(posted, SMALL.send);
        // Three entries of four are taken, and a gather takes two.
        let stage = Stage::new(SMALL);
        assert_eq!(listed(&stage, none, nine().into_iter().take(3)), (3, None));
        let part = stage.bytes.slice(..8);
        all([error, listed_gather(&stage, &[&part, &part])])
    }),
    ("lists", "`ListRingFull`, of `post_recv_list`", || {
        let stage = Stage::new(SMALL);
        let (posted, error) = listed_receives(&stage, nine());
        // The stage has one posted.
        assert_eq!(posted, SMALL.list - 1);
        all([error])
    }),
    ("lists", "`CompletionQueueFull`", || {
        let sends = listed(&Stage::new(FEW), SendFlags::empty(), nine());
        let receives = listed_receives(&Stage::new(FEW), nine());
        // The stage's receive has one entry.
        assert_eq!((sends.0, receives.0), (3, 3));
        all([sends.1, receives.1])
    }),
    ("lists", "`PairBusy`, of `post_send_list`", || {
        let mut stage = Stage::new(ROOMY);
        LIMIT(&mut stage);
        let (posted, error) = listed(&stage, SendFlags::empty(), nine());
        assert_eq!(posted, 2);
        all([error])
    }),
    ("lists", "`InvalidPair`", || {
        refused(&LISTS, ROOMY, CLOSE_PAIR)
    }),
    ("lists", "`WrongDomain`", || {
        let stage = || {
            let mut stage = Stage::new(ROOMY);
            let foreign = std::mem::replace(&mut stage.foreign, Buffer::empty());
            (stage, foreign)
        };
        let (s, foreign) = stage();
        let sent = listed(&s, SendFlags::empty(), [foreign]).1;
        let (s, foreign) = stage();
        let received = listed_receives(&s, [foreign]).1;
        let (s, foreign) = stage();
        let gathered = listed_gather(&s, &[&s.bytes.slice(..8), &foreign.share()]);
        all([sent, received, gathered])
    }),
    ("lists", "`Unsupported`, of `post_send_list`", || {
        let stage = Stage::on(options(), ROOMY);
        let (_, quiet) = listed(&stage, SendFlags::UNSIGNALED, [Buffer::empty()]);
        let part = stage.bytes.slice(..8);
        all([quiet, listed_gather(&stage, &[&part, &part])])
    }),
    ("lists", "`TooLong`, of `post_send_list`", || {
        let stage = Stage::new(ROOMY);
        all([listed_gather(&stage, &[&stage.bytes; 4])])
    }),
    ("lists", "`TooManySegments`, of `Gather::new`", || {
        let stage = Stage::new(ROOMY);
        all([Gather::new(&[(); 5].map(|()| stage.bytes.clone())).err()])
    }),
    ("lists", "`Closed`", || refused(&LISTS, ROOMY, CLOSE)),
    ("lists", "`Transport`", || refused(&LISTS, ROOMY, GONE)),
    // memory
    ("memory", "`Argument`", || {
        let (a, _b) = connected(&fabric(), 1);
        let none = a.pd.reg_mr(0, Access::Read).err();
        all([none, a.pd.reg_user_mr(Vec::new(), Access::Read).err()])
    }),
    ("memory", "`Refused` with `NoResource`", || {
        asked(|a, _| until(|| a.pd.reg_mr(8, Access::Read)))
    }),
    ("memory", "`Transport` with `NoSpace`", || {
        asked(|a, _| a.pd.reg_mr(usize::MAX / 2, Access::Read).err())
    }),
    (
        "memory",
        "`FirmwareTimeout`, `Restarted`, `Transport`",
        || silenced(&REGISTER),
    ),
    ("memory", "`Malformed`", || malformed(&REGISTER)),
    (
        "memory",
        "`Refused` with `HardwareTimeout`, of `reg_mr` and `reg_user_mr`",
        || without_gates(&REGISTER),
    ),
    ("memory", "`RegionInUse`, of `deregister`", || {
        let (a, _b) = connected(&fabric(), 1);
        let (region, _buffer) = a.pd.reg_mr(8, Access::Read).unwrap();
        all([region.deregister().err()])
    }),
    // messages
    ("messages", "`CompletionQueueFull`", || {
        refused(&SENDS, FEW, FILL)
    }),
    ("messages", "`SendRingFull`", || {
        refused(&SENDS, SMALL, NOTHING)
    }),
    ("messages", "`PairBusy`", || refused(&SENDS, ROOMY, LIMIT)),
    ("messages", "`Argument`, of `set_send_limits`", || {
        let (a, _b) = connected(&fabric(), 1);
        let set = |window, outstanding| {
            let limits = SendLimits {
                window,
                outstanding,
            };
            a.endpoint.set_send_limits(a.pair, limits).err()
        };
        all([set(0, 8), set(65, 9), set(8, 0)])
    }),
    ("messages", "`NotFound`, of `set_send_limits`", || {
        let (a, _b) = connected(&fabric(), 1);
        a.endpoint.close_pair(a.pair).unwrap();
        let limits = SendLimits::default();
        all([a.endpoint.set_send_limits(a.pair, limits).err()])
    }),
    ("messages", "`InvalidPair`", || {
        refused(&SENDS, ROOMY, CLOSE_PAIR)
    }),
    ("messages", "`WrongDomain`", || {
        wrong_domain(|s| {
            let send = s.send();
            let posted = s.endpoint.post_tagged_send(1, &send, s.foreign);
            posted.unwrap_err().error
        })
    }),
    ("messages", "`Revoked`", || {
        let (side, _other) = connected(&SoftFabric::new(able_options()), 4);
        let context = MessageSet::of_context(0);
        let revoked = side.endpoint.revoke(&group_of(&side), &context, PATIENCE);
        revoked.unwrap();
        let send = side.send(1);
        let posted = side.endpoint.post_tagged_send(1, &send, Buffer::empty());
        let inject = side.endpoint.post_tagged_inject(2, &send, b"");
        all([posted.err().map(|refused| refused.error), inject.err()])
    }),
    ("messages", "`Closed`", || refused(&SENDS, ROOMY, CLOSE)),
    ("messages", "`TooLong`", || {
        let stage = Stage::new(ROOMY);
        let long = [0; 1025];
        let posted = stage.endpoint.post_tagged_inject(1, &stage.send(), &long);
        all([posted.err()])
    }),
    ("messages", "`InjectBusy`", || {
        let few = Rings {
            injects: 2,
            ..ROOMY
        };
        refused(&SENDS[1..2], few, NOTHING)
    }),
    ("messages", "`Transport`", || refused(&SENDS, ROOMY, GONE)),
    // open
    ("open", "`OpenError::AlreadyOpen`", || {
        let fabric = fabric();
        let _open = Device::open(fabric.transport(0)).unwrap();
        names(Device::open(fabric.transport(0)).err().unwrap())
    }),
    ("open", "`NotACard`", || opened(|options| options.id = 0)),
    ("open", "`WrongAbi`", || {
        opened(|options| options.abi_version = 99)
    }),
    ("open", "`CardTimeout`", || {
        // A card that was used is reset at the next open, which takes its gates longer than the program waits.
        let (fabric, device) = hasty();
        device.alloc_pd().unwrap();
        drop(device);
        let error = Device::open_with(fabric.transport(0), HASTY).err();
        assert_eq!(error, Some(OpenError::CardTimeout(500)));
        all([error])
    }),
    ("open", "`FirmwareTimeout`", || {
        opened(|options| options.firmware = FirmwareBehaviour::Absent)
    }),
    (
        "open",
        "`CommandError::Refused` with `NoResource`, of `alloc_pd`",
        || asked(|a, _| until(|| a.device.alloc_pd())),
    ),
    ("open", "`CommandError::ResetTimeout`", || {
        let (_fabric, device) = hasty();
        device.alloc_pd().unwrap();
        all([device.reset().err()])
    }),
    // pair-times
    ("pair-times", "`NotFound`", || {
        asked(|a, _| {
            a.endpoint.close_pair(a.pair).unwrap();
            SET_TIMES[0](a)
        })
    }),
    ("pair-times", "`Refused` with `InvalidArgument`", || {
        asked(|a, _| {
            let times = PairTimes {
                retry_cnt: Some(16),
                ..PairTimes::default()
            };
            a.endpoint.set_pair_times(a.pair, times).err()
        })
    }),
    ("pair-times", "`Refused` with `HardwareTimeout`", || {
        without_gates(&SET_TIMES)
    }),
    (
        "pair-times",
        "`FirmwareTimeout`, `Restarted`, `Transport`",
        || silenced(&SET_TIMES),
    ),
    ("pair-times", "`Malformed`", || malformed(&SET_TIMES)),
    // peers
    ("peers", "`NotFound`", || {
        all(PEER_CALLS.map(|call| {
            let (a, _b) = connected(&fabric(), 1);
            a.endpoint.close().unwrap();
            call(&a)
        }))
    }),
    (
        "peers",
        "`Refused` with `NotConnected`, of `declare_failed` and `signal`",
        || {
            asked(|a, _| {
                let (pair, _) = a.endpoint.open_pair(1).unwrap();
                let declared = a.endpoint.declare_failed(pair).unwrap_err();
                a.endpoint.declare_failed(a.pair).unwrap();
                let signalled = a.endpoint.signal(a.pair, 1).unwrap_err();
                assert_eq!(names(declared), names(signalled));
                a.endpoint.signal(pair, 1).err()
            })
        },
    ),
    ("peers", "`Refused` with `Busy`, of `signal`", || {
        let fabric = fabric();
        let (a, _b) = connected(&fabric, 1);
        fabric.lose_frames(0, u32::MAX);
        a.endpoint.signal(a.pair, 1).unwrap();
        names(a.endpoint.signal(a.pair, 2).unwrap_err())
    }),
    (
        "peers",
        "`Refused` with `Busy`, of `tell_failed`",
        too_many_tellings,
    ),
    (
        "peers",
        "`Refused` with `InvalidArgument`, of `tell_failed`",
        || asked(|a, _| a.endpoint.tell_failed(a.pair, &[]).err()),
    ),
    (
        "peers",
        "`Refused` with `InvalidArgument`, of `watch_peers`",
        || {
            let least = abi::times::WATCH_INTERVAL_LEAST;
            let refused = [
                unwatched(least - 1, 4 * least),
                unwatched(least, 2 * least - 1),
                unwatched(least, 1 << 31),
            ];
            assert!(refused.iter().all(|one| *one == refused[0]), "{refused:?}");
            refused[0].clone()
        },
    ),
    (
        "peers",
        "`FirmwareTimeout`, `Restarted`, `Transport`",
        || silenced(&PEER_CALLS),
    ),
    ("peers", "`Malformed`", || malformed(&PEER_CALLS)),
    // grant
    ("grant", "`NotFound`", || {
        granted(|a, window| {
            a.endpoint.close_pair(a.pair).unwrap();
            window.grant(&a.endpoint, a.pair, RemoteRights::WRITE, ..)
        })
    }),
    ("grant", "`Argument`", || {
        granted(|a, window| window.grant(&a.endpoint, a.pair, RemoteRights::WRITE, 0..0))
    }),
    ("grant", "`Refused` with `NotConnected`", || {
        granted(|a, window| {
            let (pair, _) = a.endpoint.open_pair(1).unwrap();
            window.grant(&a.endpoint, pair, RemoteRights::WRITE, ..)
        })
    }),
    ("grant", "`Refused` with `InvalidArgument`", || {
        granted(|a, window| window.grant(&a.endpoint, a.pair, RemoteRights::READ, ..))
    }),
    ("grant", "`Refused` with `NoResource`", || {
        granted(|a, window| {
            let rights = RemoteRights::WRITE;
            let once = || window.grant_once(&a.endpoint, a.pair, rights, ..);
            let none = until(once).expect("no more for one access");
            assert_eq!(names(none), names_in("`Refused` with `NoResource`"));
            let keys = || window.grant(&a.endpoint, a.pair, rights, ..);
            Err(until(keys).expect("the card has no more keys"))
        })
    }),
    ("grant", "`Refused` with `NoEntropy`", || {
        let fabric = SoftFabric::new(able_options());
        let (a, _b) = connected(&fabric, 1);
        let window = a.pd.reg_window(64, RemoteRights::WRITE).unwrap();
        fabric.jam_entropy(0);
        names(
            window
                .grant(&a.endpoint, a.pair, RemoteRights::WRITE, ..)
                .unwrap_err(),
        )
    }),
    (
        "grant",
        "`Refused` with `Unsupported`, of `reg_window`",
        || asked(|a, _| a.pd.reg_window(64, RemoteRights::WRITE).err()),
    ),
    ("grant", "`BufferUnusable`", || {
        let fabric = SoftFabric::new(able_options());
        let level = Protection::SharedKey;
        let (a, _b) = opened_at(&fabric, 1, level, |pd| pd.endpoint());
        let window = a.pd.reg_window(64, RemoteRights::WRITE).unwrap();
        window.grant_any(RemoteRights::WRITE, ..).unwrap();
        a.endpoint.declare_failed(a.pair).unwrap();
        names(window.check_usable().unwrap_err())
    }),
    (
        "grant",
        "`Refused` with `Unsupported`, of `grant`, `grant_once` and `grant_shared`",
        || {
            let mut options = able_options();
            options.sizes.capabilities &= !abi::capability::CAPABILITY_SENDERS;
            let (a, _b) = connected(&SoftFabric::new(options), 1);
            let window = a.pd.reg_window(64, RemoteRights::WRITE).unwrap();
            let (endpoint, pair, rights) = (&a.endpoint, a.pair, RemoteRights::WRITE);
            all([
                window.grant(endpoint, pair, rights, ..).err(),
                window.grant_once(endpoint, pair, rights, ..).err(),
                window.grant_shared(endpoint, pair, rights, ..).err(),
            ]);
            names(window.grant(endpoint, pair, rights, ..).unwrap_err())
        },
    ),
    // revoke
    ("revoke", "`NotFound`, of `revoke_peer` and `share`", || {
        granted(|a, window| {
            let key = window.grant_shared(&a.endpoint, a.pair, RemoteRights::WRITE, ..)?;
            a.endpoint.close_pair(a.pair).unwrap();
            let shared = window.share(key, &a.endpoint, a.pair, false).unwrap_err();
            let revoked = a.endpoint.revoke_peer(a.pair);
            assert_eq!(Some(names(shared)), revoked.as_ref().err().map(names));
            revoked.map(|()| key)
        })
    }),
    ("revoke", "`Refused` with `NotFound`, of `share`", || {
        granted(|a, window| {
            let key = window.grant_shared(&a.endpoint, a.pair, RemoteRights::WRITE, ..)?;
            window.revoke(key).unwrap();
            window.share(key, &a.endpoint, a.pair, true).map(|()| key)
        })
    }),
    (
        "revoke",
        "`Refused` with `InvalidArgument`, of `share`",
        || {
            granted(|a, window| {
                let key = window.grant(&a.endpoint, a.pair, RemoteRights::WRITE, ..)?;
                window.share(key, &a.endpoint, a.pair, true).map(|()| key)
            })
        },
    ),
    ("revoke", "`Undrained`", || {
        undrained(|_, window, key| window.revoke(key))
    }),
    // fence
    ("fence", "`Argument`", || {
        granted(|a, window| {
            let cover = Cover::all().window_pages(window, ..=window.length());
            let key = window.grant(&a.endpoint, a.pair, RemoteRights::WRITE, ..)?;
            a.pd.fence(cover).map(|()| key)
        })
    }),
    ("fence", "`NotFound`", || {
        asked(|a, _| {
            a.endpoint.close_pair(a.pair).unwrap();
            a.pd.fence(Cover::all().pair(&a.endpoint, a.pair)).err()
        })
    }),
    ("fence", "`Undrained`", || {
        undrained(|a, _, _| a.pd.fence(Cover::all()))
    }),
    ("fence", "`Refused` with `Unsupported`", || {
        asked(|a, _| a.pd.fence(Cover::all()).err())
    }),
    // query
    (
        "query",
        "`NotFound`, of `query_pair` and `pair_counters`",
        || {
            asked(|a, _| {
                a.endpoint.close_pair(a.pair).unwrap();
                let asked = a.endpoint.query_pair(a.pair).err();
                assert_eq!(a.endpoint.pair_counters(a.pair).err(), asked);
                asked
            })
        },
    ),
    (
        "query",
        "`FirmwareTimeout`, `Restarted`, `Transport`",
        || silenced(&QUERIES),
    ),
    ("query", "`Malformed`", || malformed(&QUERIES)),
    (
        "query",
        "`Refused` with `HardwareTimeout`, of `query_pair`, `pair_counters` and `read_counter`",
        || without_gates(&QUERIES[..3]),
    ),
    // refusals
    ("refusals", "`NotFound`", || {
        asked(|a, _| {
            a.endpoint.close_pair(a.pair).unwrap();
            let asked = SHUT_OUTS[0](a);
            assert_eq!(SHUT_OUTS[1](a), asked);
            asked
        })
    }),
    ("refusals", "`Refused` with `NotConnected`", || {
        asked(|a, _| {
            let (pair, _) = a.endpoint.open_pair(1).unwrap();
            let asked = a.endpoint.set_shut_out(pair, ShutOut::NEVER).err();
            assert!(a.endpoint.query_shut_out(pair).is_err());
            asked
        })
    }),
    ("refusals", "`Refused` with `HardwareTimeout`", || {
        without_gates(&SHUT_OUTS)
    }),
    (
        "refusals",
        "`FirmwareTimeout`, `Restarted`, `Transport`",
        || silenced(&SHUT_OUTS),
    ),
    ("refusals", "`Malformed`", || malformed(&SHUT_OUTS)),
    // receive
    ("receive", "`CompletionQueueFull`", || {
        refused(&RECEIVES, FEW, FILL)
    }),
    ("receive", "`ListRingFull`", || {
        refused(&RECEIVES, SMALL, NOTHING)
    }),
    ("receive", "`InvalidPair`", || {
        refused(&RECEIVES, ROOMY, CLOSE_PAIR)
    }),
    ("receive", "`WrongDomain`", || {
        wrong_domain(|s| {
            let receive = s.receive();
            let posted = s.endpoint.post_tagged_recv(1, &receive, s.foreign);
            posted.unwrap_err().error
        })
    }),
    ("receive", "`Closed`", || refused(&RECEIVES, ROOMY, CLOSE)),
    ("receive", "`Transport`", || refused(&RECEIVES, ROOMY, GONE)),
    // drain
    ("drain", "`Draining`, of a post", || {
        let (side, _other) = connected(&SoftFabric::new(able_options()), 4);
        drain(&side, 10_000, 1).expect_err("nobody else drains");
        let send = side.send(1);
        let posted = side.endpoint.post_tagged_send(1, &send, Buffer::empty());
        let probed = side.endpoint.probe(2, &side.receive(1));
        all([posted.err().map(|refused| refused.error), probed.err()])
    }),
    ("drain", "`TimedOut`", || {
        let (side, _other) = connected(&SoftFabric::new(able_options()), 4);
        all([drain(&side, 10_000, 1).err()])
    }),
    ("drain", "`CutOff`", || {
        let fabric = SoftFabric::new(able_options());
        let (a, b) = connected(&fabric, 4);
        crate::drain::forge_decisions(&fabric);
        let group = |side: &Side, own| Group::new(&side.endpoint, &[(1 - own, side.pair)], own);
        let groups = [(&a, group(&a, 0)), (&b, group(&b, 1))];
        for _ in 0..100 {
            for (side, group) in &groups {
                let group = group.as_ref().expect("a group");
                let ended = side.endpoint.drain(group, &drain_options(10_000));
                match ended.expect_err("it is forged") {
                    DrainError::TimedOut => {}
                    other => return names(other),
                }
            }
        }
        panic!("nobody is told of a decision");
    }),
    ("drain", "`Command` with `Argument`", || {
        let (side, _other) = connected(&SoftFabric::new(able_options()), 4);
        names(drain(&side, 10_000, 64).expect_err("a rank of 64"))
    }),
    (
        "drain",
        "`Command` with `Argument`, while one has not ended",
        || {
            let (side, _other) = connected(&SoftFabric::new(able_options()), 4);
            drain(&side, 10_000, 1).expect_err("nobody else drains");
            let options = DrainOptions {
                messages: MessageSet {
                    mask: 1,
                    ..MessageSet::of_context(0)
                },
                ..drain_options(10_000)
            };
            let other = side.endpoint.drain(&group_of(&side), &options);
            names(other.expect_err("other messages"))
        },
    ),
    ("drain", "`Command` with `NotFound`", || {
        let (side, _other) = connected(&SoftFabric::new(able_options()), 4);
        let group = group_of(&side);
        side.endpoint.close().unwrap();
        names(
            side.endpoint
                .drain(&group, &drain_options(10_000))
                .expect_err("closed"),
        )
    }),
    // revoke-context
    ("revoke-context", "`NotFound`, of `Group::new`", || {
        asked(|a, b| Group::new(&a.endpoint, &[(1, b.pair)], 0).err())
    }),
    ("revoke-context", "`Argument`, of `Group::new`", || {
        all(
            [[(1, 0), (1, 1)], [(1, 0), (2, 0)], [(0, 0), (1, 1)]].map(|members| {
                let (a, _b) = connected(&fabric(), 1);
                let (other, _) = a.endpoint.open_pair(1).unwrap();
                let pairs = [a.pair, other];
                let members = members.map(|(rank, pair): (u32, usize)| (rank, pairs[pair]));
                Group::new(&a.endpoint, &members, 0).err()
            }),
        )
    }),
    ("revoke-context", "`Command` with `NotFound`", || {
        let closed = |close: fn(&Side)| {
            let (a, _b) = connected(&fabric(), 1);
            let group = group_of(&a);
            close(&a);
            revoke_error(revoke(&a, &group))
        };
        let found = closed(|a| a.endpoint.close_pair(a.pair).unwrap());
        assert_eq!(found, closed(|a| a.endpoint.close().unwrap()));
        found
    }),
    (
        "revoke-context",
        "`Command` with `Refused` and `NoResource`",
        || {
            let (a, _b) = connected(&SoftFabric::new(able_options()), 1);
            let group = group_of(&a);
            let mut contexts = (0..100).map(|context| {
                let messages = MessageSet::of_context(context);
                a.endpoint.revoke(&group, &messages, PATIENCE)
            });
            revoke_error(contexts.find(Result::is_err).expect("refused"))
        },
    ),
    (
        "revoke-context",
        "`Command` with `Refused` and `Unsupported`",
        || {
            let (a, _b) = connected(&fabric(), 1);
            revoke_error(revoke(&a, &group_of(&a)))
        },
    ),
    (
        "revoke-context",
        "`Command` with `Refused` and `HardwareTimeout`",
        || {
            let fabric = SoftFabric::new(able_options());
            let (a, _b) = connected(&fabric, 1);
            fabric.silence_gates(0);
            revoke_error(revoke(&a, &group_of(&a)))
        },
    ),
    ("revoke-context", "`Sweep` with `Busy`", || {
        swept_beside(|a| {
            let group = group_of(a);
            let found = revoke_error(revoke(a, &group));
            a.endpoint.close().unwrap();
            found
        })
        .1
    }),
    (
        "revoke-context",
        "`Sweep` with `CompletionQueueFull`",
        || {
            let (mut a, _b) = sized(&SoftFabric::new(able_options()), 1, 4);
            let receive = TaggedReceive {
                context: 1,
                ..a.receive(1)
            };
            for wr_id in 0..4 {
                a.post(wr_id, &receive);
            }
            revoke_error(revoke(&a, &group_of(&a)))
        },
    ),
    ("revoke-context", "`Sweep` with `TimedOut`", || {
        let (mut a, _b) = idle();
        a.post(1, &a.receive(1));
        let context = MessageSet::of_context(0);
        revoke_error(a.endpoint.revoke(&group_of(&a), &context, 10_000))
    }),
    ("revoke-context", "`Sweep` with `Closed`", || {
        swept_beside(|a| {
            a.endpoint.close().unwrap();
            Names::new()
        })
        .0
    }),
    ("revoke-context", "`Sweep` with `Transport`", || {
        swept_beside_on(|fabric, _| fabric.cut(0, true))
    }),
    ("revoke-context", "`NotFound`, of `restore`", || {
        let (a, _b) = connected(&SoftFabric::new(able_options()), 1);
        let revoked = revoke(&a, &group_of(&a)).unwrap();
        a.endpoint.restore(revoked.rule).unwrap();
        names(a.endpoint.restore(revoked.rule).unwrap_err())
    }),
    (
        "revoke-context",
        "`NotFound`, of `tell_revoked`, `name_group`, `revoked` and `forget_revoked`",
        || {
            let (a, _b) = connected(&fabric(), 1);
            let (group, context) = (group_of(&a), MessageSet::of_context(0));
            a.endpoint.close().unwrap();
            all([
                a.endpoint.tell_revoked(1, &context, &[]).err(),
                a.endpoint.name_group(1, &group).err(),
                a.endpoint.revoked().err(),
                a.endpoint.forget_revoked(&told_revocation()).err(),
            ])
        },
    ),
    (
        "revoke-context",
        "`Refused` with `Busy`, of `tell_revoked`",
        too_many_revocations,
    ),
    (
        "revoke-context",
        "`Refused` with `NoResource`, of `name_group`",
        || {
            let (a, _b) = connected(&fabric(), 1);
            let group = group_of(&a);
            let mut tags = 0..;
            names(until(|| a.endpoint.name_group(tags.next().unwrap(), &group)).expect("refused"))
        },
    ),
    (
        "revoke-context",
        "`Refused` with `NotFound`, of `forget_revoked`",
        || asked(|a, _| a.endpoint.forget_revoked(&told_revocation()).err()),
    ),
    (
        "revoke-context",
        "`FirmwareTimeout`, `Restarted`, `Transport`",
        || silenced(&REVOKES),
    ),
    ("revoke-context", "`Malformed`", || malformed(&REVOKES)),
    // shared-buffers
    (
        "shared-buffers",
        "the `SharedBuffer`, of `try_into_buffer`",
        || {
            let (mut a, _b) = connected(&fabric(), 1);
            let shared = a.buffer(8).share();
            let _clone = shared.clone();
            all([shared.try_into_buffer().err()])
        },
    ),
    // timeout
    ("timeout", "`NothingToCancel`", || {
        let stage = Stage::new(ROOMY);
        stage.endpoint.cancel(1, stage.target).unwrap();
        names(stage.endpoint.set_timeout(stage.target, 1).unwrap_err())
    }),
    ("timeout", "`Closed`", || {
        let mut stage = Stage::new(ROOMY);
        CLOSE(&mut stage);
        names(stage.endpoint.set_timeout(stage.target, 1).unwrap_err())
    }),
    // unsignaled
    ("unsignaled", "`Unsupported`", || {
        let (mut a, _b) = connected(&fabric(), 1);
        let buffer = a.buffer(8).share();
        let posted = a.endpoint.post_unsignaled_send(1, &a.send(1), buffer);
        names(posted.unwrap_err().error)
    }),
    // wait
    ("wait", "`WaitError::Timeout`", || waited(|_, _| {})),
    ("wait", "`WaitError::Interrupted`", || {
        waited(|_, b| b.endpoint.signal(b.pair, 1).unwrap())
    }),
    ("wait", "`Transport` with `Unreachable`", || {
        waited(|fabric, _| fabric.cut(0, true))
    }),
    ("wait", "`Transport` with `Closed`", || {
        waited(|fabric, _| fabric.close())
    }),
    ("wait", "`Unreachable`, of `req_notify`", || {
        let fabric = fabric();
        let (a, _b) = connected(&fabric, 1);
        fabric.cut(0, true);
        let Err(error) = a.cq.req_notify() else {
            panic!("it is out of reach");
        };
        names(error)
    }),
    #[cfg(target_os = "linux")]
    (
        "wait",
        "`Transport` with `NoEventFd`, of `event_fd`",
        || {
            let fabric = fabric();
            let device = Device::open(Arc::new(Plain(fabric.transport(0)))).unwrap();
            let endpoint = device.alloc_pd().unwrap().endpoint().open().unwrap();
            names(endpoint.completion_queue().event_fd().unwrap_err())
        },
    ),
    #[cfg(target_os = "linux")]
    ("wait", "`System`, of `event_fd`", without_descriptors),
];

/// The capitalised names in the first cell of a row.
fn names_in(cell: &str) -> Names {
    let names = cell.split('`').skip(1).step_by(2);
    let names = names.map(|name| name.rsplit("::").next().unwrap_or(name).to_owned());
    names
        .filter(|name| name.starts_with(char::is_uppercase))
        .collect()
}

/// The first cells of the rows of a page's errors.
fn documented(page: &str) -> Vec<String> {
    let errors = page.split("\n## Errors\n").nth(1).unwrap_or_default();
    let errors = errors.split("\n## ").next().unwrap_or_default();
    let rows = errors.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let cells = cells.map(|cell| cell.trim().to_owned());
    let own = |cell: &String| {
        cell != "error" && !cell.starts_with("those of") && !cell.starts_with("other ")
    };
    cells.filter(own).collect()
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads no folder and starts no process")]
fn each_error_that_a_page_documents_is_provoked() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/verbs");
    let mut rows: BTreeMap<(String, String), fn() -> Names> = BTreeMap::new();
    for &(page, cell, provoke) in ROWS {
        let before = rows.insert((page.to_owned(), cell.to_owned()), provoke);
        assert!(before.is_none(), "{page}: {cell} is listed twice");
    }
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let page = path.file_stem().unwrap().to_str().unwrap().to_owned();
        for cell in documented(&std::fs::read_to_string(&path).unwrap()) {
            let row = rows.remove(&(page.clone(), cell.clone()));
            let provoke = row.unwrap_or_else(|| panic!("{page}: nothing provokes {cell}"));
            assert_eq!(provoke(), names_in(&cell), "{page}: {cell}");
        }
    }
    assert!(rows.is_empty(), "no page documents {:?}", rows.keys());
}

#[test]
fn a_row_that_nothing_provokes_is_found() {
    let page = "# V\n\n## Errors\n\n| error | when |\n|---|---|\n| `New` | now |\n| those of [x](y) | |\n\n## Z\n\n| `No` | |\n";
    assert_eq!(documented(page), ["`New`"]);
    assert_eq!(
        names_in("`A::New` with `Other`, of `verb`"),
        Names::from(["New".to_owned(), "Other".to_owned()])
    );
}

/// The variants of an enum of the library, of its source.
fn variants(name: &str) -> Names {
    let source = include_str!("../../src/error.rs");
    let start = format!("pub enum {name} {{\n");
    let body = source.split(&start).nth(1).expect("it is there");
    let body = body.split("\n}").next().unwrap_or_default();
    let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
    let lines = lines.filter(|line| line.starts_with(char::is_uppercase));
    let name = |line: &str| line.split(['(', ' ', ',']).next().map(str::to_owned);
    lines.filter_map(name).collect()
}

/// No verb ends with these: done is no error, and a library of the firmware's version gives no command that the firmware doesn't know.
const NO_ERRORS: [&str; 2] = ["Ok", "UnknownCommand"];

#[test]
fn each_error_there_is_has_a_row_on_some_page() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/verbs");
    let mut found = Names::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let page = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        found.extend(documented(&page).iter().flat_map(|cell| names_in(cell)));
    }
    let statuses = host_driver::MailboxStatus::ALL;
    let statuses: Names = statuses.iter().map(|s| format!("{s:?}")).collect();
    for (kind, all) in [
        ("CommandError", variants("CommandError")),
        ("PostError", variants("PostError")),
        ("MailboxStatus", statuses),
    ] {
        assert!(all.len() > 5, "{kind}: {all:?}");
        let missing: Vec<_> = all.difference(&found).collect();
        let missing = missing
            .into_iter()
            .filter(|name| !NO_ERRORS.contains(&name.as_str()));
        assert_eq!(missing.count(), 0, "{kind}: {:?}", all.difference(&found));
    }
}
