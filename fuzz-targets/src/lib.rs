//! What parses bytes of strangers, as functions of bytes: a card takes frames from the wire, its firmware commands from the host, the library addresses
//! from whoever the program had them of. Each function panics if something is promised that isn't kept: that it ends, and that nothing is
//! written where nobody may.
//!
//! ```text
//!  bytes ──► frames ────► gates and firmware of the model ──► bounded steps, memory as it was but for the slots
//!        ──► commands ──► firmware ──► an answer to each, in bounded steps
//!        ──► addresses ─► the library's reading, which is its writing reversed
//!        ──► traces, plans, firmware ─► the tools' readings of files (`tools.rs`)
//! ```
//!
//! `fuzz/` has them as targets of `cargo fuzz`; `tests/random.rs` feeds them from a seed.

#[cfg(feature = "tools")]
pub mod tools;

use abi::control::Counter;
use abi::control::{
    GRANT_SHARED, RIGHT_LOCAL_READ, RIGHT_LOCAL_WRITE, RIGHT_REMOTE_READ, RIGHT_REMOTE_WRITE,
};
use abi::limits::{EAGER_MAX, FLAT_SPACE};
use abi::mailbox::{
    Accept, Command, ConnectPair, DomainId, EndpointId, Grant, NO_ENDPOINT, NameGroup, Nothing,
    OpenEndpoint, OpenPair, PairId, RegionKey, RegisterRegion, RemoteKey, WatchPeers, Words,
    id_index,
};
use abi::register::MAILBOX_WORDS;
use abi::status::MailboxStatus;
use abi::wire::{
    ETHERTYPE_FIELD, FrameHeader, FrameType, HEADER_BYTES, MANAGEMENT_BYTES, ManagementBody,
    ManagementKind, VERSION, split_mac,
};
use card_model::matching::Sizes;
use card_model::memory::Pieces;
use card_model::{CardSizes, InTurn, Managed, link};
use firmware_core::Firmware;
use host_driver::{EndpointAddress, PairAddress};
use std::collections::BTreeMap;

/// Types of the gates' frames, and of the firmware's.
const GATES_FRAMES: [FrameType; 8] = [
    FrameType::Eager,
    FrameType::Put,
    FrameType::Get,
    FrameType::GetAnswer,
    FrameType::Acknowledge,
    FrameType::PairFailed,
    FrameType::Ask,
    FrameType::PairClosed,
];
const FIRMWARE_FRAMES: [FrameType; 2] = [FrameType::Handshake, FrameType::Management];

const _: () = assert!(
    GATES_FRAMES.len() + FIRMWARE_FRAMES.len() == FrameType::ALL.len(),
    "a frame of a type that no target makes"
);

/// A card of the model under the real decisions of the firmware.
type Card = Firmware<Managed<Pieces>>;

/// Own address of the card, and the one of its peer.
const MACS: [u64; 2] = [0x0202, 0x0402];
/// Where the rings, the queues and the slots of the endpoint are. Behind each piece nothing is mapped.
const RINGS: u64 = 0x1_0000;
const SLOTS: u64 = 0x10_0000;
const CREDITS: u32 = 4;
/// Steps after which a firmware that is still busy hangs.
const STEPS: usize = 100_000;

/// Numbers out of bytes; zeros when they are at an end.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_at(N.min(self.0.len()));
        self.0 = rest;
        std::array::from_fn(|k| taken.get(k).copied().unwrap_or(0))
    }

    fn byte(&mut self) -> u8 {
        u8::from_le_bytes(self.take())
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn bytes(&mut self, most: usize) -> &'a [u8] {
        let length = usize::from(u16::from_le_bytes(self.take())) % (most + 1);
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn settle(card: &mut Card) {
    for _ in 0..STEPS {
        card.card().gates.run(&mut InTurn::default());
        while card.card().gates.frame_out().is_some() {}
        if !card.step() {
            return;
        }
    }
    panic!("the firmware never comes to rest");
}

/// Gives a command and takes its answer.
fn call(card: &mut Card, words: &[u32; MAILBOX_WORDS]) -> (MailboxStatus, [u32; MAILBOX_WORDS]) {
    card.command(words);
    settle(card);
    let answer = card.take_answer().expect("each command is answered");
    assert!(answer.count <= MAILBOX_WORDS);
    (answer.status, answer.words)
}

fn give<A: Words, R: Words>(card: &mut Card, command: Command, argument: &A) -> R {
    let mut words = [0; MAILBOX_WORDS];
    words[0] = command.code().into();
    argument.to_words(&mut words[1..]);
    let (status, answer) = call(card, &words);
    assert_eq!(status, MailboxStatus::Ok, "{command}");
    R::from_words(&answer[1..])
}

/// A card that has started, with nothing open.
fn started() -> Card {
    let sizes = CardSizes {
        lists: Sizes::new(2, 4, 12, 4, 16),
        regions: 4,
        descriptors: 32,
        rules: 2,
        grants: 32,
        capabilities: abi::capability::ALL,
    };
    let mut memory = Pieces::default();
    for ring in 0..4 {
        memory.map(RINGS + ring * 0x1000, 16 * 64);
    }
    memory.map(SLOTS, CREDITS as usize * EAGER_MAX);
    let mut card = Firmware::new(Managed::new(sizes, memory, MACS[0], 1), 1);
    settle(&mut card);
    card
}

/// A card with an endpoint, a pair of it that is connected, and an offer; the pair, the cookie of its connection, and its domain.
fn connected() -> (Card, PairId, u32, u32) {
    let mut card = started();
    let DomainId { domain } = give(&mut card, Command::OpenDomain, &Nothing {});
    let open = OpenEndpoint {
        domain,
        send_log2: 4,
        send_base: RINGS,
        list_log2: 4,
        list_base: RINGS + 0x1000,
        completion_log2: 4,
        completion_base: RINGS + 0x2000,
        event_log2: 4,
        event_base: RINGS + 0x3000,
        completion_owner: NO_ENDPOINT,
        job: 0,
        pair_sends: 0,
        space: FLAT_SPACE.into(),
    };
    let EndpointId { endpoint, .. } = give(&mut card, Command::OpenEndpoint, &open);
    let open = OpenPair {
        endpoint,
        credits: CREDITS,
        slots: SLOTS,
    };
    let pair: PairId = give(&mut card, Command::OpenPair, &open);
    let connect = ConnectPair {
        pair: pair.pair,
        remote_pair: 0,
        remote_endpoint: 0,
        remote_epoch: 1,
        remote_nonce: 0x1234,
        remote_credits: CREDITS,
        remote_mac: MACS[1],
        remote_job: 0,
    };
    let Nothing {} = give(&mut card, Command::ConnectPair, &connect);
    let offer = Accept {
        endpoint,
        credits: CREDITS,
        slots: SLOTS,
    };
    let _: PairId = give(&mut card, Command::Accept, &offer);
    let cookie = pair.nonce ^ connect.remote_nonce;
    (card, pair, cookie, domain)
}

/// Header of a frame of the peer.
fn from_peer(pair: PairId, cookie: u32) -> FrameHeader {
    let (source_mac_low, source_mac_high) = split_mac(MACS[1]);
    FrameHeader {
        destination_mac: MACS[0],
        source_mac_low,
        source_mac_high,
        ethertype: ETHERTYPE_FIELD,
        version: VERSION,
        destination_pair: id_index(pair.pair),
        destination_epoch: pair.epoch as u16,
        source_epoch: 1,
        cookie,
        ..FrameHeader::default()
    }
}

/// The peer is believed, and of a group whose name is 0.
fn trust(card: &mut Card, pair: PairId) {
    let watch = WatchPeers {
        endpoint: pair.endpoint,
        believe: 1,
        ..WatchPeers::default()
    };
    let Nothing {} = give(card, Command::WatchPeers, &watch);
    let group = NameGroup {
        endpoint: pair.endpoint,
        low: 1 << id_index(pair.pair),
        ..NameGroup::default()
    };
    let Nothing {} = give(card, Command::NameGroup, &group);
}

/// The peer says that messages are revoked: number 1.
fn revoke(card: &mut Card, pair: PairId, cookie: u32) {
    trust(card, pair);
    let body = ManagementBody {
        kind: ManagementKind::Revoked.code(),
        transaction: 1,
        ..ManagementBody::default()
    };
    let body: Vec<u8> = body
        .to_words()
        .iter()
        .flat_map(|w| w.to_le_bytes())
        .collect();
    let header = FrameHeader {
        frame_type: FrameType::Management.code(),
        payload_length: body.len() as u16,
        message_length: body.len() as u64,
        ..from_peer(pair, cookie)
    };
    card.card().gates.frame_in(link::seal(&header, &body));
    settle(card);
}

/// A region of the domain.
fn registered(card: &mut Card, domain: u32) -> RegionKey {
    let rights = RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE | RIGHT_REMOTE_READ | RIGHT_REMOTE_WRITE;
    let register = RegisterRegion {
        domain,
        rights: rights.into(),
        address: SLOTS,
        length: 64,
        space: FLAT_SPACE.into(),
    };
    give(card, Command::RegisterRegion, &register)
}

/// The key by which the peer of the pair may read and write a region.
fn grant(card: &mut Card, pair: PairId, region: RegionKey) -> RemoteKey {
    let grant = Grant {
        region: region.key,
        pair: pair.pair,
        rights: (RIGHT_REMOTE_READ | RIGHT_REMOTE_WRITE).into(),
        flags: GRANT_SHARED.into(),
        offset: 0,
        length: 64,
        lasts: 0,
    };
    give(card, Command::Grant, &grant)
}

/// Frames from the wire, raw ones and such as are right but for what the bytes say. Returns how many were taken for good.
pub fn frames(bytes: &[u8]) -> u32 {
    let (mut card, pair, cookie, domain) = connected();
    let region = registered(&mut card, domain);
    let RemoteKey { key } = grant(&mut card, pair, region);
    trust(&mut card, pair);
    let mut reader = Reader(bytes);
    while !reader.is_empty() {
        let what = reader.byte();
        let firmwares = what & 6 == 6;
        let at = usize::from(what >> 3);
        let frame_type = match firmwares {
            true => FIRMWARE_FRAMES[at % FIRMWARE_FRAMES.len()],
            // The pair ends with what says so: seldom.
            false => match GATES_FRAMES[at % GATES_FRAMES.len()] {
                FrameType::PairFailed | FrameType::PairClosed if reader.byte() % 16 != 0 => {
                    FrameType::Eager
                }
                frame_type => frame_type,
            },
        };
        let body = reader.bytes(EAGER_MAX + 64);
        if what & 1 == 1 {
            card.card().gates.frame_in(body.to_vec());
            settle(&mut card);
            continue;
        }
        let mut body = body.to_vec();
        if firmwares {
            body.resize(MANAGEMENT_BYTES, 0);
            // Most say something.
            let kind = usize::from(reader.byte());
            if let Some(kind) = ManagementKind::ALL.get(kind % (ManagementKind::ALL.len() + 4)) {
                body[0] = kind.code();
            }
        }
        // A get has no payload, and says how much it wants.
        let mut context = 0;
        if frame_type == FrameType::Get {
            context = body.len() as u16;
            body.clear();
        }
        let header = FrameHeader {
            frame_type: frame_type.code(),
            context,
            payload_length: body.len() as u16,
            message_length: body.len() as u64,
            // A put or a get names memory that the peer may use, and little of it.
            match_bits: match frame_type {
                FrameType::Put | FrameType::Get => key,
                _ => 0,
            },
            ..from_peer(pair, cookie)
        };
        // Some of its words are others.
        let mut words = header.to_words();
        for _ in 0..reader.byte() % 4 {
            let at = usize::from(reader.byte()) % words.len();
            words[at] ^= u64::from(reader.word()) << (8 * (reader.byte() % 5));
        }
        let header = FrameHeader::from_words(&words);
        let frame = link::seal(&header, &body);
        assert!(frame.len() >= HEADER_BYTES);
        card.card().gates.frame_in(frame);
        settle(&mut card);
    }
    let status = give::<_, abi::mailbox::PairStatus>(
        &mut card,
        Command::QueryPair,
        &abi::mailbox::Pair { pair: pair.pair },
    );
    assert!(status.available <= CREDITS, "credits beyond those granted");
    card.card().gates.counter(Counter::FramesReceived)
}

/// What an argument of this name may well be, if it is none of an earlier answer.
fn likely(name: &str, byte: u8) -> Option<u32> {
    Some(match name {
        _ if name.ends_with("_base") => RINGS as u32 + u32::from(byte % 4) * 0x1000,
        _ if name.ends_with("_log2") => 4,
        "slots" => SLOTS as u32,
        "remote_mac" => MACS[usize::from(byte % 2)] as u32,
        "completion_owner" => NO_ENDPOINT,
        "job" | "remote_job" | "context" | "rank" | "offset" => 0,
        "flags" => u32::from(byte % 4),
        "allowed" => u32::from(byte % 2),
        "rights" => u32::from(byte % 32),
        "address" => SLOTS as u32,
        "tag" | "round" => 1,
        "low" | "high" | "mask" | "match_bits" => 0,
        // A group of nobody else.
        _ if name.starts_with("places") => u32::MAX,
        "credits" | "remote_credits" | "pairs" | "length" => 1 + u32::from(byte % 8),
        _ => return None,
    })
}

/// Commands from the host. Their arguments are words of earlier answers, numbers that mean something somewhere, or anything. Returns a bit for each that
/// was carried out.
pub fn commands(bytes: &[u8]) -> u64 {
    let (mut card, pair, cookie, domain) = connected();
    revoke(&mut card, pair, cookie);
    let mut reader = Reader(bytes);
    // What was last answered under a name.
    let region = registered(&mut card, domain);
    let RemoteKey { key } = grant(&mut card, pair, region);
    let mut latest = BTreeMap::from([
        (("region", 1), [region.key, 0]),
        (("key", 2), [key as u32, (key >> 32) as u32]),
        (("pair", 1), [pair.pair, 0]),
        (("endpoint", 1), [pair.endpoint, 0]),
        (("domain", 1), [domain, 0]),
        (("number", 1), [1, 0]),
    ]);
    let (mut done, mut answers) = (0_u64, vec![0, pair.pair, pair.endpoint]);
    while !reader.is_empty() {
        // One in some is none.
        let at = usize::from(reader.byte());
        let known = Command::ALL.get(at % (Command::ALL.len() + 2)).copied();
        let code = known.map_or(at as u32, |command| command.code().into());
        let fields = known.map_or(&[][..], |command| command.layout().arguments);
        let mut words = [0; MAILBOX_WORDS];
        words[0] = code;
        for field in fields {
            let (byte, other) = (reader.byte(), reader.byte());
            let last = latest.get(&(field.name, field.words));
            if let Some(last) = last.filter(|_| byte % 4 != 0) {
                words[field.word..][..field.words].copy_from_slice(&last[..field.words]);
                continue;
            }
            let fits = likely(field.name, other).filter(|_| byte % 8 != 0);
            if field.words == 2 && fits == Some(u32::MAX) {
                words[field.word + 1] = u32::MAX;
            }
            words[field.word] = match byte {
                _ if let Some(word) = fits => word,
                0..100 => answers[usize::from(reader.byte()) % answers.len()],
                100..160 => u32::from(reader.byte()) % 8,
                160..180 => NO_ENDPOINT,
                180..200 => RINGS as u32 + u32::from(reader.byte() % 4) * 0x1000,
                200..220 => SLOTS as u32,
                220..235 => MACS[usize::from(reader.byte() % 2)] as u32,
                _ => reader.word(),
            };
        }
        let (status, answer) = call(&mut card, &words);
        if status == MailboxStatus::Ok {
            done |= 1 << code;
            for field in known.map_or(&[][..], |command| command.layout().results) {
                let name = match known {
                    Some(Command::RegisterRegion) => "region",
                    _ => field.name,
                };
                let word = |k: usize| answer.get(field.word + k).copied().unwrap_or(0);
                latest.insert((name, field.words), [word(0), word(1)]);
            }
            answers.extend(&answer[1..4]);
        }
    }
    done
}

/// Addresses, as bytes that the program had from somewhere.
pub fn addresses(bytes: &[u8]) {
    let mut reader = Reader(bytes);
    let endpoint: [u8; EndpointAddress::BYTES] = reader.take();
    assert_eq!(EndpointAddress::from_bytes(&endpoint).to_bytes(), endpoint);
    let pair: [u8; PairAddress::BYTES] = reader.take();
    if let Some(address) = PairAddress::from_bytes(&pair) {
        assert_eq!(address.to_bytes(), pair);
    }
}
