//! Gets: what they read and what not, why they are refused, how they stand among the sends of their pair, and what becomes of their answers.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use abi::capability::CAPABILITY_GET;
use abi::control::{
    Counter, GRANT_SHARED, GrantSetup, Operation, PairReport, PairSetup, PermissionSetup,
    RIGHT_REMOTE_READ, RIGHT_REMOTE_WRITE,
};
use abi::limits::EAGER_MAX;
use abi::mailbox::PairState;
use abi::request::{FLAG_ERRORS_ONLY, FLAG_GATHER, FLAG_INLINE, FLAG_READY, Opcode, SendRequest};
use abi::status::Status;
use abi::times::{ANSWER_TIMEOUTS, RETRY_LIMIT};
use abi::wire::{FRAME_REFUSED, FrameHeader, FrameType, HEADER_BYTES};
use card_model::{Action, Break, CardSizes, InTurn, link::seal};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::host_side::{BUFFER_BYTES, HostSide, WINDOW_BYTES, able};
use crate::lent::{A, B, CREDITS, END, FIRST, Lent, PAIR, ROW};
use crate::net::{End, Net};

/// What a buffer has in it that nothing was written to.
const BLANK: u8 = 0;

struct Stage {
    lent: Lent,
    /// Bytes that B's window had at first.
    window: Vec<u8>,
}

impl Deref for Stage {
    type Target = Lent;

    fn deref(&self) -> &Lent {
        &self.lent
    }
}

impl DerefMut for Stage {
    fn deref_mut(&mut self) -> &mut Lent {
        &mut self.lent
    }
}

impl Stage {
    fn new(broken: Break) -> Self {
        let mut lent = Lent::new(broken);
        let mut window = vec![0; WINDOW_BYTES as usize];
        ChaCha8Rng::seed_from_u64(7).fill(&mut window[..]);
        // None of them is what a blank buffer has.
        window.iter_mut().for_each(|byte| *byte |= 1);
        lent.net.host_sides[B][0].fill_window(&mut lent.net.cards[B], 0, &window);
        let mut stage = Self { lent, window };
        stage.key = stage.grant(ROW, FIRST, END, |_| {});
        stage
    }

    /// Lets A read a part of B's window, or do what `change` makes of that.
    fn grant(
        &mut self,
        row: u16,
        first: u64,
        end: u64,
        change: impl FnOnce(&mut GrantSetup),
    ) -> u64 {
        self.lent.grant(row, first, end, |grant| {
            grant.rights = RIGHT_REMOTE_READ;
            change(grant);
        })
    }

    /// Posts a get from a place of B's window into the buffer of a number.
    fn get(&mut self, number: u32, at: u64, length: u64) {
        let get = self.a_get(number, at, length);
        self.send(get);
    }

    fn a_get(&self, number: u32, at: u64, length: u64) -> SendRequest {
        let offset = u64::from(number) * EAGER_MAX as u64;
        let host_side = self.host_side(A);
        host_side.a_get(PAIR, number, (offset, length), (self.key, at))
    }

    /// Posts a put of 8 bytes, each of the number.
    fn put(&mut self, number: u32, key: u64, at: u64) {
        let host_side = self.host_side(A);
        let offset = 0x4_0000 + u64::from(number) * 8;
        host_side.fill(&mut self.net.cards[A], offset, &[number as u8; 8]);
        self.send(host_side.a_put(PAIR, number, (offset, 8), (key, at)));
    }

    /// Lets a card do all that it can.
    fn run_card(&mut self, card: usize) {
        self.net.cards[card].run(&mut InTurn::default());
        self.net.collect();
    }

    /// Lets as much time pass as it takes for something to happen by itself.
    fn pass_time(&mut self) {
        let next = self.net.cards.iter().filter_map(|card| card.next_time());
        let next = next.min().expect("something is waited for");
        for card in &mut self.net.cards {
            card.advance_to(next);
        }
    }

    /// What has ended after so many time-outs at most, as soon as something has.
    fn ended_in_time(&mut self, timeouts: u8) -> Vec<(u32, Status)> {
        for _ in 0..timeouts {
            let ended = self.ended();
            if !ended.is_empty() {
                return ended;
            }
            self.pass_time();
        }
        self.ended()
    }

    /// A's buffers.
    fn buffers(&mut self) -> Vec<u8> {
        let host_side = self.host_side(A);
        host_side.bytes(&mut self.net.cards[A], 0, 0x4_0000)
    }

    /// What A's buffers have in which these have been read, and nothing else: number, place, length.
    fn read(&self, gets: &[(u32, u64, u64)]) -> Vec<u8> {
        let mut buffers = vec![BLANK; 0x4_0000];
        for &(number, at, length) in gets {
            let (to, at) = (number as usize * EAGER_MAX, at as usize);
            let length = length as usize;
            buffers[to..to + length].copy_from_slice(&self.window[at..at + length]);
        }
        buffers
    }

    fn counter(&self, card: usize, counter: Counter) -> u32 {
        self.net.cards[card].counter(counter)
    }

    fn state(&mut self, card: usize) -> u8 {
        let word = self.net.cards[card].control(Operation::PairRead, PAIR, &[]);
        PairReport::from_words(&[word]).state
    }

    /// Lets A send what it can and B answer: the frames of B that are on their way to A.
    fn answers(&mut self) -> VecDeque<Vec<u8>> {
        self.run_card(A);
        self.net.deliver(B);
        self.run_card(B);
        std::mem::take(&mut self.net.wires[A])
    }
}

fn successes(numbers: impl IntoIterator<Item = u32>) -> Vec<(u32, Status)> {
    let all = numbers.into_iter();
    all.map(|number| (number, Status::Success)).collect()
}

fn is_answer(frame: &[u8]) -> bool {
    let header = FrameHeader::parse(frame).expect("a header");
    header.frame_type == FrameType::GetAnswer.code()
}

const PLACES: [(u32, u64, u64); 8] = [
    (0, FIRST, 1024),
    (1, FIRST + 1, 1),
    (2, 0x2000, 8),
    (3, 0x2003, 1000),
    (4, END - 17, 17),
    (5, END - 1024, 3),
    (6, 0x2ffc, 5),
    (7, 0, 0),
];

/// A's buffers after gets from all kinds of places and of all kinds of lengths, and how they ended.
fn gets_everywhere(broken: Break) -> (Vec<u8>, Vec<(u32, Status)>) {
    let mut stage = Stage::new(broken);
    let mut ended = Vec::new();
    for (number, at, length) in PLACES {
        stage.get(number, at, length);
        ended.extend(stage.ended());
    }
    (stage.buffers(), ended)
}

#[test]
fn a_get_reads_what_is_granted_into_its_buffer_and_nowhere_else() {
    let (buffers, ended) = gets_everywhere(Break::None);
    assert_eq!(ended, successes(0..8));
    assert!(buffers == Stage::new(Break::None).read(&PLACES));
    let (broken, _) = gets_everywhere(Break::GetOffsetIgnored);
    assert!(broken != buffers, "its place is noticed");
}

#[test]
fn a_get_of_any_length_goes_from_any_alignment_to_any_alignment() {
    let mut stage = Stage::new(Break::None);
    let mut number = 0;
    for length in [1, 7, 8, 9, 63, 64, 65, 1017, 1023, 1024] {
        for (from, to) in [(0, 0), (1, 0), (0, 1), (3, 5), (7, 7), (4, 2)] {
            let get = stage.a_get(number, FIRST + from, length);
            stage.send(SendRequest {
                address: get.address + to,
                ..get
            });
            assert_eq!(stage.ended(), successes(number..=number));
            let host_side = stage.host_side(A);
            let offset = u64::from(number) * EAGER_MAX as u64;
            let found = host_side.bytes(&mut stage.net.cards[A], offset, EAGER_MAX + 8);
            let (first, length) = ((FIRST + from) as usize, length as usize);
            let mut wanted = vec![BLANK; EAGER_MAX + 8];
            wanted[to as usize..][..length].copy_from_slice(&stage.window[first..first + length]);
            assert_eq!(found, wanted, "{length} bytes from {from} to {to}");
            // Its neighbour is the next one's.
            host_side.fill(&mut stage.net.cards[A], offset, &[BLANK; EAGER_MAX + 8]);
            number += 1;
        }
    }
}

/// Gets that may not be, one for each reason: how each ends, and how a good get and a message behind them.
fn refusals(broken: Break) -> Vec<(u32, Status)> {
    let mut stage = Stage::new(broken);
    let bad = stage.unlawful(RIGHT_REMOTE_READ, RIGHT_REMOTE_WRITE);
    let mut ended = Vec::new();
    for (number, &(key, at, length)) in (0..).zip(&bad) {
        let get = stage.a_get(number, at, length);
        stage.send(SendRequest {
            match_bits: key,
            ..get
        });
        ended.extend(stage.ended());
    }
    // The last was allowed, and the memory refused it.
    let refused = match broken {
        Break::GetNeedsNoRight => bad.len() - 2,
        _ => bad.len() - 1,
    };
    assert_eq!(stage.refused(PAIR), refused as u32);
    stage.get(30, FIRST, 8);
    stage.message(31);
    stage.receive(0);
    ended.extend(stage.ended());
    if broken == Break::None {
        assert!(stage.buffers() == stage.read(&[(30, FIRST, 8)]));
        assert_eq!(stage.state(A), PairState::Connected.code());
    }
    ended
}

#[test]
fn a_get_is_refused_for_each_reason_and_the_pair_goes_on() {
    let mut told: Vec<_> = (0..16).map(|n| (n, Status::RemoteAccess)).collect();
    told.extend(successes(30..32));
    assert_eq!(refusals(Break::None), told);
    for broken in [Break::GetRefusalUntold, Break::GetNeedsNoRight] {
        assert_ne!(refusals(broken), told, "{broken:?} is noticed");
    }
}

#[test]
fn several_gets_on_their_way_are_told_each_its_own_outcome() {
    let mut stage = Stage::new(Break::None);
    let is_bad = |number: u32| number % 3 == 1 || number == 15;
    let place = |number: u32| FIRST + 8 * u64::from(number);
    for number in 0..16 {
        stage.get(number, if is_bad(number) { END } else { place(number) }, 8);
    }
    let wanted = (0..16).map(|number| match is_bad(number) {
        true => (number, Status::RemoteAccess),
        false => (number, Status::Success),
    });
    assert_eq!(stage.ended(), wanted.collect::<Vec<_>>());
    let good: Vec<_> = (0..16)
        .filter(|&number| !is_bad(number))
        .map(|number| (number, place(number), 8))
        .collect();
    assert!(stage.buffers() == stage.read(&good));
}

#[test]
fn what_ends_a_key_ends_the_gets_by_it() {
    type End = fn(&mut Stage);
    let ends: [End; 4] = [
        |stage| {
            stage.net.cards[B].control(Operation::GrantClear, ROW, &[]);
        },
        |stage| {
            stage.net.cards[B].control(Operation::SenderRevoke, PAIR, &[]);
        },
        |stage| HostSide::clear_window(&mut stage.net.cards[B], 0),
        |stage| {
            stage.grant(ROW, FIRST, END, |grant| grant.tag += 1);
        },
    ];
    for end in ends {
        let mut stage = Stage::new(Break::None);
        stage.get(0, FIRST, 8);
        assert_eq!(stage.ended(), successes(0..1));
        // One is on its way when the key ends, and one is posted later.
        stage.get(1, FIRST, 8);
        stage.run_card(A);
        assert_eq!(stage.net.wires[B].len(), 1);
        end(&mut stage);
        stage.get(2, FIRST, 8);
        let refused = [1, 2].map(|number| (number, Status::RemoteAccess));
        assert_eq!(stage.ended(), refused);
        assert!(stage.buffers() == stage.read(&[(0, FIRST, 8)]));
        // Messages of the pair go on.
        stage.message(3);
        assert_eq!(stage.ended(), successes(3..4));
    }
}

#[test]
fn a_shared_key_is_of_use_to_who_has_its_permission() {
    let mut stage = Stage::new(Break::None);
    stage.key = stage.grant(0, FIRST, END, |grant| {
        (grant.holder, grant.flags) = (0, GRANT_SHARED);
    });
    let expected = [Status::Success, Status::RemoteAccess];
    for (number, allowed) in [1, 0].into_iter().enumerate() {
        let permission = PermissionSetup {
            allowed,
            ..PermissionSetup::default()
        };
        let gates = &mut stage.net.cards[B];
        gates.control(Operation::PermissionSet, PAIR, &permission.to_words());
        stage.get(number as u32, FIRST, 8);
        assert_eq!(stage.ended(), [(number as u32, expected[number])]);
    }
}

/// A pair whose credits are all used by messages that nobody receives, with gets in front of the message that waits and behind it. What has ended.
fn starved() -> (Stage, Vec<(u32, Status)>) {
    let mut stage = Stage::new(Break::None);
    (0..3).for_each(|number| stage.message(number));
    (3..6).for_each(|number| stage.get(number, FIRST + 8 * u64::from(number), 8));
    stage.message(6);
    stage.get(7, 0x2000, 8);
    let ended = stage.ended();
    (stage, ended)
}

#[test]
fn a_get_needs_no_credit_and_waits_behind_a_message_that_does() {
    let (mut stage, ended) = starved();
    assert_eq!(ended, successes(0..6));
    let place = |number: u32| (number, FIRST + 8 * u64::from(number), 8);
    let mut there: Vec<_> = (3..6).map(place).collect();
    assert!(stage.buffers() == stage.read(&there));
    // Time alone changes nothing: the pair asks, and its peer is there.
    for _ in 0..20 {
        stage.pass_time();
        assert_eq!(stage.ended(), []);
    }
    stage.receive(0);
    assert_eq!(stage.ended(), successes(6..8));
    there.push((7, 0x2000, 8));
    assert!(stage.buffers() == stage.read(&there));
}

#[test]
fn a_get_that_waits_is_cancelled_and_never_asked_for() {
    let (mut stage, _) = starved();
    let cancel = |request, target| SendRequest {
        opcode: Opcode::CancelSend.code(),
        pair: PAIR,
        request,
        target,
        ..SendRequest::default()
    };
    stage.send(cancel(20, 7));
    stage.send(cancel(21, 3));
    let told = [(7, Status::Cancelled), (21, Status::TooLate)];
    assert_eq!(stage.ended(), told);
    stage.receive(0);
    assert_eq!(stage.ended(), successes(6..7));
    let place = |number: u32| (number, FIRST + 8 * u64::from(number), 8);
    let there: Vec<_> = (3..6).map(place).collect();
    assert!(stage.buffers() == stage.read(&there));
}

#[test]
fn a_get_that_has_left_is_not_cancelled() {
    let mut stage = Stage::new(Break::None);
    stage.get(1, FIRST, 8);
    let mut answers = stage.answers();
    stage.send(SendRequest {
        opcode: Opcode::CancelSend.code(),
        pair: PAIR,
        request: 2,
        target: 1,
        ..SendRequest::default()
    });
    stage.run_card(A);
    assert_eq!(stage.told(), [(2, Status::TooLate)]);
    stage.net.wires[A].append(&mut answers);
    assert_eq!(stage.ended(), successes(1..2));
}

/// Messages, puts and gets in turn, under a random schedule: all end in the order in which they were posted, and a get has been read then.
fn in_turn(seed: u64) {
    let mut stage = Stage::new(Break::None);
    let writes = stage.grant(6, FIRST, END, |grant| grant.rights = RIGHT_REMOTE_WRITE);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..8).for_each(|number| stage.receive(number));
    let (mut next, mut gets) = (0, Vec::new());
    for number in 0..16 {
        match rng.random_range(0..3) {
            0 if next < 8 => {
                next += 1;
                stage.message(number);
            }
            1 => stage.put(number, writes, 0x2800 + 8 * u64::from(number)),
            _ => {
                gets.push(number);
                stage.get(number, FIRST + 16 * u64::from(number), 16);
            }
        }
    }
    let mut ended = Vec::new();
    for _ in 0..100_000 {
        let card = rng.random_range(0..2);
        if let Some(&action) = stage.net.cards[card].actions().choose(&mut rng) {
            stage.net.cards[card].step(action);
        }
        stage.net.collect();
        if rng.random()
            && let Some(frame) = stage.net.wires[card].pop_front()
        {
            stage.net.cards[card].frame_in(frame);
        }
        for (number, status) in stage.told() {
            let host_side = stage.host_side(A);
            let offset = u64::from(number) * EAGER_MAX as u64;
            let found = host_side.bytes(&mut stage.net.cards[A], offset, 16);
            let at = FIRST as usize + 16 * number as usize;
            let wanted = match gets.contains(&number) {
                true => &stage.window[at..at + 16],
                false => &[BLANK; 16],
            };
            assert_eq!(found, wanted, "{number}, seed {seed}");
            ended.push((number, status));
        }
        stage.net.check_credits();
        if ended.len() == 16 {
            break;
        }
    }
    assert_eq!(ended, successes(0..16), "seed {seed}");
}

#[test]
fn messages_puts_and_gets_of_a_pair_end_in_their_order_whatever_comes_first() {
    for seed in 0..60 {
        in_turn(seed);
    }
}

/// Puts and gets of the same bytes in turn under a random schedule: what each get has read.
fn put_then_get(seed: u64) {
    let mut stage = Stage::new(Break::None);
    let writes = stage.grant(6, FIRST, END, |grant| grant.rights = RIGHT_REMOTE_WRITE);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let place = |number: u32| FIRST + 8 * u64::from(number);
    for number in (2..14).step_by(2) {
        stage.put(number, writes, place(number));
        stage.get(number + 1, place(number), 8);
    }
    let mut ended = Vec::new();
    for _ in 0..100_000 {
        let card = rng.random_range(0..2);
        if let Some(&action) = stage.net.cards[card].actions().choose(&mut rng) {
            stage.net.cards[card].step(action);
        }
        stage.net.collect();
        if rng.random()
            && let Some(frame) = stage.net.wires[card].pop_front()
        {
            stage.net.cards[card].frame_in(frame);
        }
        ended.extend(stage.told());
        if ended.len() == 12 {
            break;
        }
    }
    assert_eq!(ended, successes(2..14), "seed {seed}");
    for number in (2..14_u32).step_by(2) {
        let host_side = stage.host_side(A);
        let offset = u64::from(number + 1) * EAGER_MAX as u64;
        let found = host_side.bytes(&mut stage.net.cards[A], offset, 8);
        assert_eq!(found, [number as u8; 8], "seed {seed}");
    }
}

#[test]
fn a_get_reads_what_the_puts_in_front_of_it_have_written() {
    for seed in 0..60 {
        put_then_get(seed);
    }
}

/// A put, its completion, and a get of the same bytes; a get, its completion, and a put.
#[test]
fn who_waits_for_the_completion_in_between_has_puts_and_gets_in_order() {
    let mut stage = Stage::new(Break::None);
    let writes = stage.grant(6, FIRST, END, |grant| grant.rights = RIGHT_REMOTE_WRITE);
    for number in [2, 4, 6] {
        stage.put(number, writes, FIRST);
        assert_eq!(stage.ended(), successes(number..=number));
        stage.get(number + 1, FIRST, 8);
        assert_eq!(stage.ended(), successes(number + 1..=number + 1));
        let host_side = stage.host_side(A);
        let offset = u64::from(number + 1) * EAGER_MAX as u64;
        let found = host_side.bytes(&mut stage.net.cards[A], offset, 8);
        assert_eq!(found, [number as u8; 8]);
    }
}

/// A get whose answer doesn't come, and what is behind it: what has ended, and what ends when the answer has come.
fn behind_a_get(broken: Break) -> [Vec<(u32, Status)>; 2] {
    let mut stage = Stage::new(broken);
    let writes = stage.grant(6, FIRST, END, |grant| grant.rights = RIGHT_REMOTE_WRITE);
    (0..2).for_each(|number| stage.receive(number));
    stage.message(1);
    stage.get(2, FIRST, 8);
    stage.message(3);
    stage.put(4, writes, 0x2000);
    stage.get(5, FIRST + 8, 8);
    stage.get(6, END, 8);
    stage.put(7, writes, END);
    let (answers, others): (Vec<_>, Vec<_>) = stage
        .answers()
        .into_iter()
        .partition(|frame| is_answer(frame));
    assert_eq!(answers.len(), 3);
    stage.net.wires[A].extend(others);
    let before = stage.ended();
    // The last first.
    stage.net.wires[A].extend(answers.into_iter().rev());
    let after = stage.ended();
    if broken == Break::None {
        assert!(stage.buffers() == stage.read(&[(2, FIRST, 8), (5, FIRST + 8, 8)]));
    }
    [before, after]
}

#[test]
fn what_is_behind_a_get_ends_when_the_get_has_though_it_was_safe_before() {
    let mut after = successes(2..6);
    after.extend([6, 7].map(|number| (number, Status::RemoteAccess)));
    let told = behind_a_get(Break::None);
    assert_eq!(told, [successes(1..2), after]);
    let broken = behind_a_get(Break::GetEndsUnanswered);
    assert_ne!(broken, told, "it is noticed");
}

/// Of a pair that has room for many sends: ready messages behind a get whose answer doesn't come, of which the first finds no receive.
#[test]
fn no_outcome_is_forgotten_of_what_is_behind_a_get() {
    let mut stage = Stage::new(Break::None);
    for (card, other) in [(A, B), (B, A)] {
        let setup = PairSetup {
            remote_mac: crate::net::mac(other),
            remote_pair: PAIR,
            remote_epoch: 2,
            cookie: 0x1234,
            domain: 1,
            epoch: 2,
            remote_credits: 16,
            local_credits: 16,
            slots: stage.host_side(card).slots,
            sends_first: 64,
            sends_log2: 6,
            timeout_log2: 13,
            retry_limit: RETRY_LIMIT,
            ..PairSetup::default()
        };
        let gates = &mut stage.net.cards[card];
        gates.control(Operation::PairClear, PAIR, &[]);
        gates.control(Operation::PairSet, PAIR, &setup.to_words());
    }
    stage.net.pairs.clear();
    stage.run();
    stage.net.wires.iter_mut().for_each(VecDeque::clear);
    stage.key = stage.grant(ROW, FIRST, END, |_| {});
    let ready = |stage: &Stage, number| SendRequest {
        flags: FLAG_READY,
        ..stage.host_side(A).a_send(PAIR, number, 0, 0)
    };
    stage.get(0, FIRST, 8);
    let first = ready(&stage, 1);
    stage.send(first);
    let frames = stage.answers();
    let (answers, others): (Vec<_>, Vec<_>) =
        frames.into_iter().partition(|frame| is_answer(frame));
    stage.net.wires[A].extend(others);
    for number in 2..28 {
        stage.receive(number);
        let next = ready(&stage, number);
        stage.send(next);
        assert_eq!(stage.ended(), [], "the get has no answer");
        while stage.poll(B).is_some() {}
    }
    let mut told = successes(0..1);
    told.push((1, Status::NotReady));
    told.extend(successes(2..28));
    stage.net.wires[A].extend(answers);
    assert_eq!(stage.ended(), told);
}

#[test]
fn a_get_that_completes_on_error_only_is_silent_when_its_answer_is_there() {
    let mut stage = Stage::new(Break::None);
    for number in 0..4 {
        let get = stage.a_get(number, if number == 2 { END } else { FIRST }, 8);
        stage.send(SendRequest {
            flags: FLAG_ERRORS_ONLY,
            ..get
        });
    }
    assert_eq!(stage.ended(), [(2, Status::RemoteAccess)]);
    let there = [0, 1, 3].map(|number| (number, FIRST, 8));
    assert!(stage.buffers() == stage.read(&there));
}

#[test]
fn a_get_is_refused_as_a_send_is_and_knows_no_flags_of_payload() {
    let mut stage = Stage::new(Break::None);
    let good = stage.a_get(1, FIRST, 8);
    let flagged = |flags| SendRequest { flags, ..good };
    for (bad, status) in [
        (flagged(FLAG_READY), Status::InvalidRequest),
        (flagged(FLAG_INLINE), Status::InvalidRequest),
        (flagged(FLAG_GATHER), Status::InvalidRequest),
        (SendRequest { pair: 7, ..good }, Status::InvalidPair),
        (
            SendRequest {
                length: EAGER_MAX as u64 + 1,
                ..good
            },
            Status::TooLong,
        ),
        (SendRequest { key: 0, ..good }, Status::LocalProtection),
        // In the region, and not in memory: that shows when the answer is written.
        (
            SendRequest {
                address: stage.host_side(A).buffers + BUFFER_BYTES,
                ..good
            },
            Status::MemoryError,
        ),
    ] {
        stage.send(bad);
        assert_eq!(stage.ended(), [(1, status)]);
    }
    assert!(stage.buffers() == stage.read(&[]));
    stage.get(2, FIRST, 8);
    assert_eq!(stage.ended(), successes(2..3));
    let (mut stage, _) = starved();
    (8..23).for_each(|number| stage.get(number, FIRST, 8));
    assert_eq!(stage.ended(), [(22, Status::QueueFull)]);
}

#[test]
fn a_buffer_that_is_taken_away_before_the_answer_comes_is_not_written() {
    let mut stage = Stage::new(Break::None);
    stage.get(1, FIRST, 8);
    stage.message(2);
    let answers = stage.answers();
    stage.net.cards[A].control(Operation::RegionClear, 0, &[]);
    stage.net.wires[A].extend(answers);
    let told = [(1, Status::AccessDenied), (2, Status::Success)];
    assert_eq!(stage.ended(), told);
    assert!(stage.buffers() == stage.read(&[]));
    assert_eq!(stage.state(A), PairState::Connected.code());
    assert_eq!(stage.net.cards[A].delivery().refused(PAIR), 1);
    // One that would be asked for again finds out before it is.
    HostSide::set_region(&mut stage.net.cards[A], 0);
    stage.get(3, FIRST, 8);
    drop(stage.answers());
    stage.net.cards[A].control(Operation::RegionClear, 0, &[]);
    let told = stage.ended_in_time(ANSWER_TIMEOUTS + 1);
    assert_eq!(told, [(3, Status::LocalProtection)]);
    assert_eq!(stage.state(A), PairState::Failed.code());
}

#[test]
fn at_most_sixteen_are_under_way() {
    let mut stage = Stage::new(Break::None);
    (0..16).for_each(|number| stage.get(number, FIRST, 8));
    stage.run_card(A);
    // The pair has sixteen descriptors, and all are taken.
    assert_eq!(stage.net.wires[B].len(), 16);
    stage.get(16, FIRST, 8);
    stage.run_card(A);
    assert_eq!(stage.told(), [(16, Status::QueueFull)]);
    // The first answer that comes makes room for one, and only the first does.
    let answers = stage.answers();
    let (mut answers, others): (VecDeque<_>, VecDeque<_>) =
        answers.into_iter().partition(|frame| is_answer(frame));
    stage.net.wires[A].extend(others);
    stage.net.wires[A].extend(answers.pop_back());
    assert_eq!(stage.ended(), []);
    stage.net.wires[A].extend(answers.pop_front());
    assert_eq!(stage.ended(), successes(0..1));
    stage.get(17, FIRST, 8);
    stage.run_card(A);
    assert_eq!(stage.net.wires[B].len(), 1);
    stage.net.wires[A].extend(answers);
    let mut rest = successes(1..16);
    rest.extend(successes(17..18));
    assert_eq!(stage.ended(), rest);
}

#[test]
fn a_lost_answer_is_asked_for_again_and_reads_anew() {
    for lost in 1..=3 {
        let mut stage = Stage::new(Break::None);
        stage.get(1, FIRST, 8);
        stage.message(2);
        for time in 0..lost {
            let answers = stage.answers();
            assert_eq!(answers.iter().filter(|frame| is_answer(frame)).count(), 1);
            let others = answers.into_iter().filter(|frame| !is_answer(frame));
            stage.net.wires[A].extend(others);
            // It is asked whether it is there, and it is; and then for the answer.
            for _ in 0..ANSWER_TIMEOUTS {
                assert_eq!(stage.counter(A, Counter::Timeouts), time);
                assert_eq!(stage.ended(), [], "time {time}");
                stage.pass_time();
            }
        }
        let host_side = stage.host_side(B);
        host_side.fill_window(&mut stage.net.cards[B], FIRST, &[0x77; 8]);
        assert_eq!(stage.ended(), successes(1..3));
        let offset = EAGER_MAX as u64;
        let found = stage.host_side(A).bytes(&mut stage.net.cards[A], offset, 8);
        assert_eq!(found, [0x77; 8]);
        // The message behind it, which the peer has, doesn't come again.
        assert_eq!(stage.counter(A, Counter::Timeouts), lost);
        assert_eq!(stage.counter(A, Counter::Repeats), lost);
        assert_eq!(stage.counter(B, Counter::Duplicates), lost);
    }
}

/// The answers of a get are lost for good, or only a break lets them be lost: how it ends.
fn never_answered(broken: Break, loses: bool) -> Vec<(u32, Status)> {
    let mut stage = Stage::new(broken);
    stage.get(1, FIRST, 8);
    let mut first = true;
    for _ in 0..ANSWER_TIMEOUTS * (RETRY_LIMIT + 2) {
        let answers = stage.answers();
        let passes = |frame: &Vec<u8>| !is_answer(frame) || (!loses && !first);
        stage.net.wires[A].extend(answers.into_iter().filter(passes));
        first = false;
        let ended = stage.ended();
        if !ended.is_empty() {
            return ended;
        }
        stage.pass_time();
    }
    Vec::new()
}

#[test]
fn a_get_that_is_never_answered_fails_its_pair_after_the_last_try() {
    let failed = vec![(1, Status::PeerFailed)];
    assert_eq!(never_answered(Break::None, true), failed);
    let broken = never_answered(Break::AnswersAskedForEver, true);
    assert_ne!(broken, failed, "that it never ends is noticed");
    let told = never_answered(Break::None, false);
    assert_eq!(told, successes(1..2));
    let broken = never_answered(Break::GetAnsweredOnce, false);
    assert_ne!(broken, told, "it is noticed if it isn't answered again");
}

/// Gets, and a message and a put between them, that the peer has, and whose answers are held back for longer than a time-out; of some of them that many. How often
/// something was given again, and what has ended.
fn held_back(broken: Break, timeouts: u8, comes: &[usize]) -> (u32, Vec<(u32, Status)>) {
    let mut stage = Stage::new(broken);
    let writes = stage.grant(6, FIRST, END, |grant| grant.rights = RIGHT_REMOTE_WRITE);
    stage.get(0, FIRST, 8);
    stage.message(1);
    stage.get(2, FIRST + 8, 8);
    stage.put(3, writes, 0x2000);
    stage.get(4, FIRST + 16, 8);
    let (answers, others): (Vec<_>, Vec<_>) = stage
        .answers()
        .into_iter()
        .partition(|frame| is_answer(frame));
    assert_eq!(answers.len(), 3);
    stage.net.wires[A].extend(others);
    stage.net.wires[A].extend(comes.iter().map(|&at| answers[at].clone()));
    let mut ended = stage.ended();
    for _ in 0..timeouts {
        if stage.net.cards[A].next_time().is_some() {
            stage.pass_time();
        }
        ended.extend(stage.ended());
    }
    let again = stage.counter(A, Counter::Repeats);
    stage.net.wires[A].extend(answers);
    ended.extend(stage.ended());
    assert_eq!(stage.state(A), PairState::Connected.code());
    (again, ended)
}

#[test]
fn a_get_that_the_peer_has_is_not_asked_for_again_while_its_answer_may_be_on_its_way() {
    let all = successes(0..5);
    for timeouts in 0..ANSWER_TIMEOUTS {
        let told = held_back(Break::None, timeouts, &[]);
        assert_eq!(told, (0, all.clone()));
        let broken = held_back(Break::AnswersAskedTooSoon, timeouts, &[]);
        assert_eq!(broken != told, timeouts > 0, "it is noticed");
    }
    // Then it is, and nothing else is.
    assert_eq!(held_back(Break::None, ANSWER_TIMEOUTS, &[]), (3, all));
}

#[test]
fn an_answer_that_is_overtaken_is_asked_for_at_the_first_time_out() {
    for (comes, again) in [(1, 2), (2, 2)] {
        assert_eq!(held_back(Break::None, 0, &[comes]).0, 0);
        assert_eq!(
            held_back(Break::None, 1, &[comes]),
            (again, successes(0..5))
        );
    }
    // Of the first it isn't: nothing has been overtaken.
    assert_eq!(held_back(Break::None, 1, &[0]), (0, successes(0..5)));
}

/// The peer dies when it has acknowledged a get and not answered it.
#[test]
fn a_peer_that_dies_with_a_get_is_declared_as_soon_as_one_that_dies_before() {
    let mut stage = Stage::new(Break::None);
    stage.get(1, FIRST, 8);
    // What is behind it is acknowledged by a frame of its own.
    stage.message(2);
    let answers = stage.answers();
    let others = answers.into_iter().filter(|frame| !is_answer(frame));
    stage.net.wires[A].extend(others);
    stage.run_card(A);
    stage.net.deliver(A);
    for asked in 0..=u32::from(RETRY_LIMIT) {
        stage.run_card(A);
        stage.net.wires[B].clear();
        assert_eq!(stage.told(), []);
        assert_eq!(stage.counter(A, Counter::CreditAsks), asked);
        stage.pass_time();
    }
    stage.run_card(A);
    let failed = [1, 2].map(|number| (number, Status::PeerFailed));
    assert_eq!(stage.told(), failed);
    assert_eq!(stage.counter(A, Counter::Repeats), 0);
}

/// An answer of B's to a get of A's, changed.
fn lie(answer: &[u8], change: impl FnOnce(&mut FrameHeader, &mut Vec<u8>)) -> Vec<u8> {
    let mut header = FrameHeader::parse(answer).expect("a header");
    let length = usize::from(header.payload_length);
    let mut payload = answer[HEADER_BYTES..HEADER_BYTES + length].to_vec();
    change(&mut header, &mut payload);
    header.payload_length = payload.len() as u16;
    header.message_length = payload.len() as u64;
    seal(&header, &payload)
}

#[test]
fn an_answer_that_fits_no_get_is_dropped_and_counted_and_writes_nothing() {
    type Change = fn(&mut FrameHeader, &mut Vec<u8>);
    let lies: [Change; 9] = [
        |_, payload| payload.push(1),
        |_, payload| payload.truncate(7),
        |_, payload| payload.clear(),
        |_, payload| payload.resize(EAGER_MAX, 1),
        // No get of this number has left: a message has, or has ended, or it is far away.
        |header, _| header.sequence += 1,
        |header, _| header.sequence -= 1,
        |header, _| header.sequence += 2,
        |header, _| header.sequence += 1 << 31,
        |header, payload| {
            header.sequence += 1;
            header.flags = FRAME_REFUSED;
            payload.clear();
        },
    ];
    for (case, change) in lies.into_iter().enumerate() {
        let mut stage = Stage::new(Break::None);
        (0..2).for_each(|number| stage.receive(number));
        stage.message(0);
        stage.get(1, FIRST, 8);
        stage.message(2);
        let (answers, others): (Vec<_>, Vec<_>) = stage
            .answers()
            .into_iter()
            .partition(|frame| is_answer(frame));
        let [answer] = &answers[..] else {
            panic!("one get has one answer");
        };
        stage.net.wires[A].extend(others);
        assert_eq!(stage.ended(), successes(0..1), "case {case}");
        stage.net.wires[A].push_back(lie(answer, change));
        assert_eq!(stage.ended(), [], "case {case}");
        assert!(stage.buffers() == stage.read(&[]), "case {case}");
        assert_eq!(stage.counter(A, Counter::Duplicates), 1, "case {case}");
        // The right one comes, twice: it is taken once.
        stage.net.wires[A].extend(vec![answer.clone(); 2]);
        assert_eq!(stage.ended(), successes(1..3), "case {case}");
        assert!(stage.buffers() == stage.read(&[(1, FIRST, 8)]));
        assert_eq!(stage.counter(A, Counter::Duplicates), 2, "case {case}");
        // The buffer is the host's again, and stays as it is.
        let host_side = stage.host_side(A);
        host_side.fill(&mut stage.net.cards[A], EAGER_MAX as u64, &[BLANK; 8]);
        stage.net.wires[A].push_back(answer.clone());
        assert_eq!(stage.ended(), [], "case {case}");
        assert!(stage.buffers() == stage.read(&[]), "case {case}");
        assert_eq!(stage.state(A), PairState::Connected.code());
    }
}

#[test]
fn an_answer_of_another_connection_is_none_of_the_pairs() {
    type Change = fn(&mut FrameHeader, &mut Vec<u8>);
    let lies: [Change; 5] = [
        |header, _| header.cookie ^= 1,
        |header, _| header.destination_epoch += 1,
        |header, _| header.source_epoch += 1,
        |header, _| header.source_pair ^= 1,
        |header, _| header.destination_pair = 7,
    ];
    for change in lies {
        let mut stage = Stage::new(Break::None);
        stage.get(1, FIRST, 8);
        let answers = stage.answers();
        let answer = answers.iter().find(|frame| is_answer(frame));
        let answer = answer.expect("it is answered");
        stage.net.wires[A].push_back(lie(answer, change));
        assert_eq!(stage.ended(), []);
        assert_eq!(stage.counter(A, Counter::PairErrors), 1);
        assert!(stage.buffers() == stage.read(&[]));
        stage.net.wires[A].extend(answers);
        assert_eq!(stage.ended(), successes(1..2));
    }
}

/// Answers to gets that have not left, since the pair has sent nothing: a hostile peer guesses their numbers.
#[test]
fn nobody_answers_what_was_not_asked() {
    let mut stage = Stage::new(Break::None);
    stage.get(0, FIRST, 8);
    let answers = stage.answers();
    let answer = answers.iter().find(|frame| is_answer(frame));
    let answer = answer.expect("it is answered").clone();
    stage.net.wires[A].extend(answers);
    assert_eq!(stage.ended(), successes(0..1));
    for ahead in 0..4 {
        let early = lie(&answer, |header, _| header.sequence += ahead);
        stage.net.wires[A].push_back(early);
    }
    assert_eq!(stage.ended(), []);
    assert_eq!(stage.counter(A, Counter::Duplicates), 4);
    assert!(stage.buffers() == stage.read(&[(0, FIRST, 8)]));
    stage.get(1, FIRST + 8, 8);
    assert_eq!(stage.ended(), successes(1..2));
    let there = [(0, FIRST, 8), (1, FIRST + 8, 8)];
    assert!(stage.buffers() == stage.read(&there));
}

#[test]
fn a_get_of_a_hostile_peer_gets_what_is_granted_and_no_more() {
    let mut stage = Stage::new(Break::None);
    stage.get(0, FIRST, 8);
    stage.run_card(A);
    let get = stage.net.wires[B].pop_front().expect("it has left");
    let of = |change: fn(&mut FrameHeader)| lie(&get, |header, _| change(header));
    // Longer than an answer may be, or with bytes of its own: dropped by the screen.
    stage.net.wires[B].push_back(of(|header| header.context = EAGER_MAX as u16 + 1));
    stage.net.wires[B].push_back(lie(&get, |_, payload| payload.push(1)));
    stage.run();
    assert_eq!(stage.counter(B, Counter::LengthErrors), 2);
    assert_eq!(stage.ended(), []);
    // As long as one may be, from a place of which only a part is granted.
    stage.net.wires[B].push_back(of(|header| {
        header.context = EAGER_MAX as u16;
        header.immediate = END - 1;
    }));
    stage.run_card(B);
    stage.net.deliver(B);
    stage.run_card(B);
    let answers: Vec<_> = stage.net.wires[A]
        .drain(..)
        .filter(|f| is_answer(f))
        .collect();
    assert_eq!(answers.len(), 1);
    let header = FrameHeader::parse(&answers[0]).expect("a header");
    assert_eq!((header.flags, header.payload_length), (FRAME_REFUSED, 0));
}

#[test]
fn a_card_without_gets_does_not_know_them() {
    let sizes = CardSizes {
        capabilities: abi::capability::ALL & !CAPABILITY_GET,
        ..able()
    };
    let mut net = Net::new(1, sizes, 1, 5);
    let end = End {
        card: 0,
        endpoint: 0,
        pair: PAIR,
    };
    net.connect(end, end, CREDITS);
    let host_side = &mut net.host_sides[0][0];
    let get = host_side.a_get(PAIR, 1, (0, 8), (0, 0));
    host_side.send(&mut net.cards[0], get);
    net.cards[0].run(&mut InTurn::default());
    let refused = host_side.poll(&mut net.cards[0]).expect("it is refused");
    assert_eq!(refused.status, Status::InvalidRequest.code());
    // Nor their frames.
    let mut able = Stage::new(Break::None);
    able.get(0, FIRST, 8);
    able.run_card(A);
    let get = able.net.wires[B].pop_front().expect("it has left");
    for frame_type in [FrameType::Get, FrameType::GetAnswer] {
        let code = frame_type.code();
        let frame = lie(&get, |header, _| header.frame_type = code);
        net.cards[0].frame_in(frame);
        net.cards[0].run(&mut InTurn::default());
    }
    assert_eq!(net.cards[0].counter(Counter::TypeErrors), 2);
}

#[test]
fn a_peer_that_is_killed_is_an_error_of_the_get_whenever_that_is() {
    for steps in 0..40 {
        let mut stage = Stage::new(Break::None);
        stage.get(1, FIRST, 8);
        stage.get(2, FIRST + 8, 8);
        // Both go on for so many actions; then B is gone, and its frames with it.
        for step in 0..steps {
            let card = step % 2;
            if let Some(&action) = stage.net.cards[card].actions().first() {
                stage.net.cards[card].step(action);
            }
            stage.net.collect();
            if let Some(frame) = stage.net.wires[card].pop_front() {
                stage.net.cards[card].frame_in(frame);
            }
        }
        let mut told = Vec::new();
        for _ in 0..=2 * RETRY_LIMIT {
            stage.net.wires.iter_mut().for_each(VecDeque::clear);
            stage.run_card(A);
            told.extend(stage.told());
            if told.len() == 2 {
                break;
            }
            let next = stage.net.cards[A].next_time().expect("it waits");
            stage.net.cards[A].advance_to(next);
        }
        let good = told.iter().filter(|(_, status)| *status == Status::Success);
        let there = [(1, FIRST, 8), (2, FIRST + 8, 8)];
        let good = good.count();
        let ends = told.iter().map(|&(_, status)| status).skip(good);
        assert!(ends.into_iter().all(|status| status == Status::PeerFailed));
        assert_eq!(told.len(), 2, "{steps} steps");
        // What has come of one that failed may be there.
        let found = stage.buffers();
        let may_be = (good..=2).any(|there_are| found == stage.read(&there[..there_are]));
        let second = found == stage.read(&there[1..]);
        assert!(may_be || good == 0 && second, "{steps} steps");
    }
}

/// A pair ends in this way while an answer is on its way to the buffer, before each action and behind it: nothing is written behind the completion.
#[test]
fn nothing_is_written_when_the_get_has_ended_with_its_pair() {
    type Ends = fn(&mut Stage);
    let ways: [(Ends, &[Status]); 4] = [
        (
            |stage| {
                let code = Status::PeerFailed.code().into();
                stage.net.cards[A].control(Operation::PairFail, PAIR, &[code]);
            },
            &[Status::Success, Status::PeerFailed],
        ),
        (
            |stage| {
                stage.net.cards[A].control(Operation::PairClear, PAIR, &[]);
                stage.net.pairs.retain(|(a, _, _)| a.pair != PAIR);
            },
            &[Status::Success, Status::Flushed],
        ),
        // The peer says that it has failed, in front of the answer.
        (
            |stage| {
                let code = Status::MemoryError.code().into();
                stage.net.cards[B].control(Operation::PairFail, PAIR, &[code]);
                stage.run_card(B);
                let last = stage.net.wires[A].pop_back().expect("it says so");
                stage.net.wires[A].push_front(last);
            },
            &[Status::LinkError, Status::Success],
        ),
        // The peer lies.
        (
            |stage| {
                let frame = stage.net.wires[A].front().expect("an answer").clone();
                let lies = lie(&frame, |header, _| header.acknowledge += 100);
                stage.net.wires[A].push_front(lies);
            },
            &[Status::LinkError, Status::Success],
        ),
    ];
    for (way, (ends, statuses)) in ways.into_iter().enumerate() {
        for seed in 0..200 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut stage = Stage::new(Break::None);
            stage.get(1, FIRST, 8);
            let answers = stage.answers();
            stage.net.wires[A].extend(answers.into_iter().filter(|frame| is_answer(frame)));
            if way >= 2 {
                ends(&mut stage);
            }
            let ends_at = rng.random_range(0..6);
            let mut told = Vec::new();
            for step in 0..40 {
                if step == ends_at && way < 2 {
                    ends(&mut stage);
                }
                if rng.random()
                    && let Some(frame) = stage.net.wires[A].pop_front()
                {
                    stage.net.cards[A].frame_in(frame);
                }
                if let Some(&action) = stage.net.cards[A].actions().choose(&mut rng) {
                    stage.net.cards[A].step(action);
                }
                let before = told.len();
                told.extend(stage.told());
                if told.len() > before {
                    let host_side = stage.host_side(A);
                    let at = EAGER_MAX as u64;
                    let found = host_side.bytes(&mut stage.net.cards[A], at, 8);
                    let success = told[0].1 == Status::Success;
                    assert!(!success || found == stage.window[FIRST as usize..][..8]);
                    // From now on it is the host's.
                    host_side.fill(&mut stage.net.cards[A], at, &[BLANK; 8]);
                }
            }
            stage.run_card(A);
            assert_eq!(told.len(), 1, "way {way}, seed {seed}: {told:?}");
            assert!(statuses.contains(&told[0].1), "way {way}: {told:?}");
            let untouched = stage.buffers() == stage.read(&[]);
            assert!(untouched, "way {way}, seed {seed}: {told:?}");
        }
    }
}

#[test]
fn a_pair_that_has_failed_answers_nothing() {
    let mut stage = Stage::new(Break::None);
    stage.get(1, FIRST, 8);
    stage.run_card(A);
    let get = stage.net.wires[B].pop_front().expect("it has left");
    stage.net.cards[B].frame_in(get);
    stage.net.cards[B].step(Action::Receive);
    let code = Status::PeerFailed.code().into();
    stage.net.cards[B].control(Operation::PairFail, PAIR, &[code]);
    stage.run_card(B);
    assert!(!stage.net.wires[A].iter().any(|frame| is_answer(frame)));
    assert_eq!(stage.ended(), [(1, Status::LinkError)]);
    assert!(stage.buffers() == stage.read(&[]));
}
