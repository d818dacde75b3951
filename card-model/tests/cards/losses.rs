//! What a bad wire does to the messages of a pair: nothing that anybody above the link can tell, until the wire is silent for good.

use std::collections::VecDeque;

use abi::control::{Counter, GRANT_ONE_SHOT, Operation, PairReport, RIGHT_REMOTE_READ};
use abi::event::Cause;
use abi::mailbox::PairState;
use abi::status::Status;
use abi::times::{ANSWER_TIMEOUTS, RETRY_LIMIT};
use abi::wire::{FRAME_GAP, FrameHeader, FrameType};
use card_model::{Break, InTurn};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::host_side::able;
use crate::net::{End, Net, TIMEOUT};

const A: usize = 0;
const B: usize = 1;
const PAIR: u16 = 3;
const CREDITS: u8 = 4;
/// Messages each way, more than there are credits.
const MESSAGES: u32 = 10;
const BYTES: u64 = 40;
/// Handles of receives begin behind those of sends.
const RECEIVES: u32 = 100;

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Passes,
    Lost,
    /// It comes, and comes again behind everything else.
    Repeated,
    /// It comes behind everything else.
    Late,
    Corrupted,
}

/// Two cards, a pair between them, and a wire that does as it is told: the sender, and how many frames like this one came before.
struct Line<F> {
    net: Net,
    wire: F,
    seen: Vec<(usize, FrameHeader)>,
    late: VecDeque<(usize, Vec<u8>)>,
}

/// A frame as a wire's rule sees it.
struct Sight<'a> {
    from: usize,
    header: &'a FrameHeader,
    /// Frames of the same sender, type and number that came before.
    before: usize,
}

impl Sight<'_> {
    /// Whether it is the first of A's messages with this number.
    fn is_first(&self, sequence: u32) -> bool {
        self.is_message(sequence) && self.before == 0
    }

    fn is_message(&self, sequence: u32) -> bool {
        self.from == A && !self.is_control() && self.header.sequence == sequence
    }

    fn is_control(&self) -> bool {
        ![FrameType::Eager, FrameType::Put, FrameType::Get]
            .map(FrameType::code)
            .contains(&self.header.frame_type)
    }

    fn is_answer(&self) -> bool {
        self.header.frame_type == FrameType::GetAnswer.code()
    }
}

fn payload(card: usize, number: u32) -> Vec<u8> {
    let byte = |at: u64| (number as u8).wrapping_mul(31) ^ at as u8 ^ (card as u8) << 7;
    (0..BYTES).map(byte).collect()
}

impl<F: FnMut(&Sight) -> Fate> Line<F> {
    fn new(broken: Break, wire: F) -> Self {
        let mut net = Net::new(2, able(), 1, 6);
        let end = |card| End {
            card,
            endpoint: 0,
            pair: PAIR,
        };
        net.connect(end(A), end(B), CREDITS);
        for card in &mut net.cards {
            card.break_on_purpose(broken);
        }
        Self {
            net,
            wire,
            seen: Vec::new(),
            late: VecDeque::new(),
        }
    }

    fn send(&mut self, card: usize, number: u32) {
        let offset = u64::from(number) * BYTES;
        let (host_side, gates) = (&mut self.net.host_sides[card][0], &mut self.net.cards[card]);
        host_side.fill(gates, offset, &payload(card, number));
        host_side.send(gates, host_side.a_send(PAIR, number, offset, BYTES));
    }

    fn receive(&mut self, card: usize, number: u32) {
        let offset = 0x1_0000 + u64::from(number) * BYTES;
        let (host_side, gates) = (&mut self.net.host_sides[card][0], &mut self.net.cards[card]);
        let receive = host_side.a_receive(PAIR, RECEIVES + number, offset, BYTES);
        host_side.list(gates, receive);
    }

    /// Lets everything happen that can without time.
    fn settle(&mut self) {
        let mut schedule = InTurn::default();
        loop {
            for card in [A, B] {
                self.net.cards[card].run(&mut schedule);
                while let Some(frame) = self.net.cards[card].frame_out() {
                    self.pass(card, frame);
                }
            }
            self.net.check_credits();
            if [A, B]
                .iter()
                .all(|&card| self.net.cards[card].actions().is_empty())
            {
                let Some((to, frame)) = self.late.pop_front() else {
                    return;
                };
                self.net.cards[to].frame_in(frame);
            }
        }
    }

    fn pass(&mut self, from: usize, mut frame: Vec<u8>) {
        let header = FrameHeader::parse(&frame).expect("a header");
        let same = |(card, seen): &&(usize, FrameHeader)| {
            (*card, seen.frame_type, seen.sequence) == (from, header.frame_type, header.sequence)
        };
        let before = self.seen.iter().filter(same).count();
        let fate = (self.wire)(&Sight {
            from,
            header: &header,
            before,
        });
        self.seen.push((from, header));
        let to = 1 - from;
        match fate {
            Fate::Passes => self.net.cards[to].frame_in(frame),
            Fate::Lost => {}
            Fate::Repeated => {
                self.net.cards[to].frame_in(frame.clone());
                self.late.push_back((to, frame));
            }
            Fate::Late => self.late.push_back((to, frame)),
            Fate::Corrupted => {
                let at = frame.len() / 2;
                frame[at] ^= 0x10;
                self.net.cards[to].frame_in(frame);
            }
        }
    }

    /// The cycle in which time alone makes something happen next, if any will.
    fn next_time(&self) -> Option<u64> {
        self.net
            .cards
            .iter()
            .filter_map(|card| card.next_time())
            .min()
    }

    fn advance_to(&mut self, now: u64) {
        for card in &mut self.net.cards {
            card.advance_to(now);
        }
        self.settle();
    }

    /// Lets everything happen, however long it takes, until nothing moves on though a silent peer would have been given up.
    fn run(&mut self) {
        self.settle();
        let credits = |line: &Self| [A, B].map(|card| line.net.cards[card].credits(PAIR));
        // Answers of gets are waited for the longest.
        let most = ANSWER_TIMEOUTS * (RETRY_LIMIT + 1);
        let (mut before, mut still) = (credits(self), 0);
        while let Some(next) = self.next_time().filter(|_| still < most) {
            self.advance_to(next);
            let now = credits(self);
            still = if now == before { still + 1 } else { 0 };
            before = now;
        }
    }

    /// Handle and status of the completions of a card.
    fn ended(&mut self, card: usize) -> Vec<(u32, Status)> {
        let mut all = Vec::new();
        while let Some(entry) = self.net.host_sides[card][0].poll(&mut self.net.cards[card]) {
            let status = Status::from_code(entry.status).expect("known");
            all.push((entry.request, status));
        }
        all
    }

    fn counter(&self, card: usize, counter: Counter) -> u32 {
        self.net.cards[card].counter(counter)
    }

    fn state(&mut self, card: usize) -> u8 {
        let word = self.net.cards[card].control(Operation::PairRead, PAIR, &[]);
        PairReport::from_words(&[word]).state
    }

    /// Whether each send has ended once, in order and well, and the messages are in the receives, each in its own and whole; and no pair has failed.
    fn all_arrived(&mut self) -> bool {
        [A, B].into_iter().all(|card| {
            let (sends, receives): (Vec<_>, Vec<_>) = self
                .ended(card)
                .into_iter()
                .partition(|&(request, _)| request < RECEIVES);
            let all = |first| (first..first + MESSAGES).map(|request| (request, Status::Success));
            let (host_side, gates) = (&self.net.host_sides[card][0], &mut self.net.cards[card]);
            let whole = (0..MESSAGES).all(|number| {
                let offset = 0x1_0000 + u64::from(number) * BYTES;
                host_side.bytes(gates, offset, BYTES as usize) == payload(1 - card, number)
            });
            sends.into_iter().eq(all(0))
                && receives.into_iter().eq(all(RECEIVES))
                && whole
                && self.state(card) == PairState::Connected.code()
        })
    }
}

/// Sends both ways over such a wire, with `posted` of the receives there before, and the others behind.
fn exchange<F: FnMut(&Sight) -> Fate>(broken: Break, posted: u32, wire: F) -> Line<F> {
    let mut line = Line::new(broken, wire);
    for card in [A, B] {
        (0..posted).for_each(|number| line.receive(card, number));
        (0..MESSAGES).for_each(|number| line.send(card, number));
    }
    line.run();
    for number in posted..MESSAGES {
        line.receive(A, number);
        line.receive(B, number);
        line.run();
    }
    line
}

/// All arrives over such a wire, whether or not the receives were there before.
fn all_arrives<F: FnMut(&Sight) -> Fate>(wire: impl Fn() -> F) -> Line<F> {
    for posted in [0, 3] {
        assert!(exchange(Break::None, posted, wire()).all_arrived());
    }
    let mut line = exchange(Break::None, MESSAGES, wire());
    assert!(line.all_arrived());
    for card in [A, B] {
        assert_eq!(
            line.net.host_sides[card][0].poll_event(&mut line.net.cards[card]),
            None
        );
    }
    line
}

fn lost_first(sequence: u32) -> impl FnMut(&Sight) -> Fate {
    move |frame| match frame.is_first(sequence) {
        true => Fate::Lost,
        false => Fate::Passes,
    }
}

#[test]
fn over_a_good_wire_nothing_is_sent_again() {
    let line = all_arrives(|| |_: &Sight| Fate::Passes);
    for card in [A, B] {
        let counters = [
            Counter::Repeats,
            Counter::Gaps,
            Counter::Timeouts,
            Counter::Duplicates,
        ];
        assert_eq!(counters.map(|counter| line.counter(card, counter)), [0; 4]);
    }
}

#[test]
fn a_lost_message_is_told_by_the_next_and_sent_again_before_any_time_has_passed() {
    for lost in 0..MESSAGES {
        let line = all_arrives(|| lost_first(lost));
        // Behind the last nothing comes that could tell.
        let told = lost + 1 < MESSAGES;
        let timeouts = line.counter(A, Counter::Timeouts);
        assert_eq!(timeouts, u32::from(!told), "{lost}");
        assert_eq!(line.counter(B, Counter::Gaps) > 0, told, "{lost}");
        assert!(line.counter(A, Counter::Repeats) > 0, "{lost}");
    }
}

#[test]
fn a_message_that_is_lost_several_times_is_sent_again_each_time() {
    let all = |frame: &Sight| match frame.is_message(1) && frame.before < 5 {
        true => Fate::Lost,
        false => Fate::Passes,
    };
    let line = all_arrives(|| all);
    assert!(line.counter(A, Counter::Repeats) >= 5);
}

#[test]
fn what_a_lost_acknowledgement_said_is_heard_by_the_next_or_after_a_time_out() {
    let one = |frame: &Sight| match frame.is_control() && frame.header.sequence == 0 {
        true => Fate::Lost,
        false => Fate::Passes,
    };
    all_arrives(|| one);
    // Whatever B says by itself in the first round is lost: A sends the last that B has, and B drops it and answers.
    let mut first = true;
    let mut line = Line::new(Break::None, |frame: &Sight| {
        first &= frame.before == 0 || frame.from == B;
        match frame.from == B && first {
            true => Fate::Lost,
            false => Fate::Passes,
        }
    });
    (0..4).for_each(|number| line.receive(B, number));
    (0..4).for_each(|number| line.send(A, number));
    line.run();
    assert_eq!(
        line.ended(A),
        [0, 1, 2, 3].map(|number| (number, Status::Success))
    );
    let received = [0, 1, 2, 3].map(|number| (RECEIVES + number, Status::Success));
    assert_eq!(line.ended(B), received);
    let counters = [Counter::Timeouts, Counter::Repeats].map(|counter| line.counter(A, counter));
    assert_eq!(counters, [1, 1]);
    assert_eq!(line.counter(B, Counter::Duplicates), 1);
}

#[test]
fn a_lost_report_of_a_gap_is_made_up_for_by_the_time_out() {
    let mut reports = 0;
    let mut line = Line::new(Break::None, |frame: &Sight| {
        let reports_gap = frame.is_control() && frame.header.flags & FRAME_GAP != 0;
        reports += usize::from(reports_gap);
        match frame.is_first(0) || (reports_gap && reports == 1) {
            true => Fate::Lost,
            false => Fate::Passes,
        }
    });
    (0..4).for_each(|number| line.send(A, number));
    line.settle();
    assert_eq!(line.ended(A), []);
    line.run();
    assert_eq!(
        line.ended(A),
        [0, 1, 2, 3].map(|number| (number, Status::Success))
    );
    // The last, which is reported again, and then all.
    assert_eq!(line.counter(A, Counter::Timeouts), 1);
    assert_eq!(line.counter(A, Counter::Repeats), 5);
    drop(line);
    assert_eq!(reports, 2);
}

#[test]
fn a_gap_is_reported_once_a_round_and_not_for_each_message_behind_it() {
    let mut line = Line::new(Break::None, lost_first(0));
    (0..4).for_each(|number| line.send(A, number));
    line.run();
    let reports = line.seen.iter().filter(|(_, header)| {
        header.frame_type != FrameType::Eager.code() && header.flags & FRAME_GAP != 0
    });
    assert_eq!(reports.count(), 1);
    assert_eq!(line.counter(B, Counter::Gaps), 3);
    assert_eq!(line.counter(A, Counter::Repeats), 4);
}

#[test]
fn a_repeated_message_is_delivered_once() {
    let line = all_arrives(|| |_: &Sight| Fate::Repeated);
    assert!(line.counter(B, Counter::Duplicates) > 0);
}

#[test]
fn a_late_message_is_delivered_once_and_in_order() {
    for late in 0..CREDITS.into() {
        all_arrives(|| {
            move |frame: &Sight| match frame.is_first(late) {
                true => Fate::Late,
                false => Fate::Passes,
            }
        });
    }
    // Every other frame is late, messages and numbers.
    all_arrives(|| {
        let mut count = 0;
        move |_: &Sight| {
            count += 1;
            match count % 2 {
                0 => Fate::Late,
                _ => Fate::Passes,
            }
        }
    });
}

#[test]
fn a_corrupted_frame_is_as_good_as_a_lost_one() {
    let line = all_arrives(|| {
        |frame: &Sight| match frame.is_first(1) {
            true => Fate::Corrupted,
            false => Fate::Passes,
        }
    });
    assert_eq!(line.counter(B, Counter::CrcErrors), 1);
}

#[test]
fn every_sixth_frame_of_each_side_may_be_lost_by_chance() {
    for seed in 0..50 {
        all_arrives(|| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            move |_: &Sight| match rng.random_ratio(1, 6) {
                true => Fate::Lost,
                false => Fate::Passes,
            }
        });
    }
}

#[test]
fn a_peer_that_is_silent_for_good_fails_the_pair_after_the_last_try_each_twice_as_long_up_to_four()
{
    let mut line = Line::new(Break::None, |_: &Sight| Fate::Lost);
    line.receive(A, 0);
    (0..2).for_each(|number| line.send(A, number));
    line.settle();
    let mut times = Vec::new();
    while let Some(next) = line.next_time() {
        assert_eq!(line.ended(A), [], "no send ends before");
        line.advance_to(next);
        times.push(next / u64::from(TIMEOUT));
    }
    assert_eq!(times, [1, 3, 7, 11, 15, 19, 23, 27]);
    assert_eq!(times.len(), usize::from(RETRY_LIMIT) + 1);
    let failed = [0, 1, RECEIVES].map(|request| (request, Status::PeerFailed));
    assert_eq!(line.ended(A), failed);
    let counters = [Counter::Timeouts, Counter::Repeats].map(|counter| line.counter(A, counter));
    assert_eq!(counters, [8, 7]);
    assert_eq!(line.state(A), PairState::Failed.code());
    let event = line.net.host_sides[A][0].poll_event(&mut line.net.cards[A]);
    let event = event.expect("the host is told");
    assert_eq!((event.cause, event.pair), (Cause::PeerFailed.code(), PAIR));
    assert_eq!(event.info, Status::PeerFailed.code().into());
    // What is posted now ends at once.
    line.send(A, 2);
    line.settle();
    assert_eq!(line.ended(A), [(2, Status::PeerFailed)]);
}

#[test]
fn a_wire_that_comes_back_in_time_has_lost_nothing_and_all_tries_are_there_again() {
    // Each message is lost all but the last of the times that it is sent.
    let mut line = Line::new(Break::None, |frame: &Sight| {
        match frame.from == A && frame.before < RETRY_LIMIT.into() {
            true => Fate::Lost,
            false => Fate::Passes,
        }
    });
    for number in 0..3 {
        line.send(A, number);
        line.run();
        assert_eq!(line.ended(A), [(number, Status::Success)]);
    }
    assert_eq!(
        line.counter(A, Counter::Timeouts),
        3 * u32::from(RETRY_LIMIT)
    );
}

#[test]
fn a_peer_that_gives_no_credit_is_asked_as_often_and_answers_that_it_is_there() {
    // B has what it was sent and receives nothing: it answers each time, and the pair stays.
    let mut line = Line::new(Break::None, |_: &Sight| Fate::Passes);
    (0..5).for_each(|number| line.send(A, number));
    line.settle();
    for _ in 0..4 * RETRY_LIMIT {
        let next = line.next_time().expect("a send waits for credit");
        line.advance_to(next);
    }
    assert_eq!(line.state(A), PairState::Connected.code());
    assert_eq!(
        line.counter(A, Counter::CreditAsks),
        4 * u32::from(RETRY_LIMIT)
    );
    assert_eq!(line.counter(A, Counter::Repeats), 0);
    // And one that doesn't answer has failed.
    let mut asked = 0;
    let mut line = Line::new(Break::None, |frame: &Sight| {
        asked += u32::from(frame.header.frame_type == FrameType::Ask.code());
        match asked {
            0 => Fate::Passes,
            _ => Fate::Lost,
        }
    });
    (0..5).for_each(|number| line.send(A, number));
    line.run();
    let ended = line.ended(A);
    assert_eq!(ended.last(), Some(&(4, Status::PeerFailed)));
    assert_eq!(line.counter(A, Counter::CreditAsks), RETRY_LIMIT.into());
}

#[test]
fn a_send_that_cannot_be_read_again_fails_its_pair() {
    let mut line = Line::new(Break::None, lost_first(0));
    line.receive(B, 0);
    (0..2).for_each(|number| line.send(A, number));
    let mut schedule = InTurn::default();
    line.net.cards[A].run(&mut schedule);
    line.net.cards[A].control(Operation::RegionClear, 0, &[]);
    line.run();
    assert_eq!(
        line.ended(A),
        [0, 1].map(|number| (number, Status::LocalProtection))
    );
    assert_eq!(line.ended(B), [(RECEIVES, Status::LinkError)]);
    for card in [A, B] {
        assert_eq!(line.state(card), PairState::Failed.code());
    }
}

/// Puts, each by a key that is good for one, and messages in turn, over such a wire. Every one ends well, once, and is written once or received.
fn puts_arrive<F: FnMut(&Sight) -> Fate>(wire: F) -> Line<F> {
    let mut line = Line::new(Break::None, wire);
    let mut window = vec![0; crate::host_side::WINDOW_BYTES as usize];
    for number in 0..MESSAGES {
        line.receive(B, number);
        if number % 3 == 1 {
            line.send(A, number);
            continue;
        }
        let place = u64::from(number) * BYTES;
        let part = place..place + BYTES;
        let (host_side, gates) = (&line.net.host_sides[B][0], &mut line.net.cards[B]);
        let row = number as u16;
        let key = host_side.grant(gates, row, 7, PAIR, part.clone(), |grant| {
            grant.flags = GRANT_ONE_SHOT;
        });
        let (host_side, gates) = (&mut line.net.host_sides[A][0], &mut line.net.cards[A]);
        let bytes = payload(A, number);
        host_side.fill(gates, place, &bytes);
        let put = host_side.a_put(PAIR, number, (place, BYTES), (key, place));
        host_side.send(gates, put);
        window[part.start as usize..part.end as usize].copy_from_slice(&bytes);
    }
    line.run();
    let all = (0..MESSAGES).map(|number| (number, Status::Success));
    assert_eq!(line.ended(A), all.collect::<Vec<_>>());
    assert_eq!(line.ended(B).len(), 3);
    let host_side = line.net.host_sides[B][0].clone();
    assert!(host_side.window_bytes(&mut line.net.cards[B]) == window);
    line
}

#[test]
fn a_put_that_is_lost_is_sent_again_and_one_whose_acknowledgement_is_lost_is_not_written_again() {
    for lost in 0..MESSAGES {
        let line = puts_arrive(lost_first(lost));
        assert!(line.counter(A, Counter::Repeats) > 0, "{lost}");
    }
    // What B says first is lost: what it has written comes again, by keys that have ended, and is dropped before it is asked about.
    let mut said = 0;
    let line = puts_arrive(|frame: &Sight| {
        said += u32::from(frame.from == B);
        match frame.from == B && said <= 6 {
            true => Fate::Lost,
            false => Fate::Passes,
        }
    });
    assert!(line.counter(B, Counter::Duplicates) > 0);
    assert_eq!(line.net.cards[B].delivery().refused(PAIR), 0);
    let line = puts_arrive(|_: &Sight| Fate::Repeated);
    assert!(line.counter(B, Counter::Duplicates) > 0);
    for seed in 0..50 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        puts_arrive(move |_: &Sight| match rng.random_range(0..12) {
            0 => Fate::Lost,
            1 => Fate::Corrupted,
            2 => Fate::Late,
            3 => Fate::Repeated,
            _ => Fate::Passes,
        });
    }
}

/// Gets, puts and messages in turn, over such a wire. Every one ends well, once and in order, and each get has read its bytes.
fn gets_arrive<F: FnMut(&Sight) -> Fate>(wire: F) -> Line<F> {
    let mut line = Line::new(Break::None, wire);
    let (host_side, gates) = (line.net.host_sides[B][0].clone(), &mut line.net.cards[B]);
    let place = |number: u32| u64::from(number) * BYTES;
    for number in 0..MESSAGES {
        host_side.fill_window(gates, place(number), &payload(B, number));
    }
    let half = u64::from(MESSAGES) * BYTES;
    let reads = host_side.grant(gates, 0, 7, PAIR, 0..half, |grant| {
        grant.rights = RIGHT_REMOTE_READ;
    });
    let writes = host_side.grant(gates, 1, 7, PAIR, half..2 * half, |_| {});
    for number in 0..MESSAGES {
        line.receive(B, number);
        let (host_side, gates) = (&mut line.net.host_sides[A][0], &mut line.net.cards[A]);
        let to = (place(number), BYTES);
        match number % 4 {
            1 => line.send(A, number),
            2 => {
                host_side.fill(gates, place(number), &payload(A, number));
                let put = host_side.a_put(PAIR, number, to, (writes, half + place(number)));
                host_side.send(gates, put);
            }
            _ => {
                let get = host_side.a_get(PAIR, number, to, (reads, place(number)));
                host_side.send(gates, get);
            }
        }
    }
    line.run();
    let all = (0..MESSAGES).map(|number| (number, Status::Success));
    assert_eq!(line.ended(A), all.collect::<Vec<_>>());
    assert_eq!(line.ended(B).len(), 3);
    let window = host_side.window_bytes(&mut line.net.cards[B]);
    for number in 0..MESSAGES {
        let (host_side, gates) = (&line.net.host_sides[A][0], &mut line.net.cards[A]);
        let found = host_side.bytes(gates, place(number), BYTES as usize);
        match number % 4 {
            1 => {}
            2 => {
                let at = (half + place(number)) as usize;
                assert_eq!(window[at..at + BYTES as usize], payload(A, number));
            }
            _ => assert_eq!(found, payload(B, number), "{number}"),
        }
    }
    line
}

#[test]
fn a_get_that_is_lost_is_sent_again_and_one_whose_answer_is_lost_is_asked_for_again() {
    let line = gets_arrive(|_: &Sight| Fate::Passes);
    let counters = [Counter::Repeats, Counter::Gaps, Counter::Timeouts];
    assert_eq!(counters.map(|counter| line.counter(A, counter)), [0; 3]);
    assert_eq!(line.counter(A, Counter::Duplicates), 0);
    for lost in 0..MESSAGES {
        let line = gets_arrive(lost_first(lost));
        assert!(line.counter(A, Counter::Repeats) > 0, "{lost}");
        // The answer to a get, and then that to its repetition.
        for times in 1..3 {
            let line = gets_arrive(|frame: &Sight| {
                let answers = frame.is_answer() && frame.header.sequence == lost;
                match answers && frame.before < times {
                    true => Fate::Lost,
                    false => Fate::Passes,
                }
            });
            let is_get = ![1, 2].contains(&(lost % 4));
            let timeouts = if is_get { times as u32 } else { 0 };
            assert_eq!(line.counter(A, Counter::Timeouts), timeouts, "{lost}");
        }
    }
}

#[test]
fn answers_may_come_twice_or_late_or_corrupted() {
    for fate in [Fate::Repeated, Fate::Late, Fate::Corrupted] {
        let line = gets_arrive(
            |frame: &Sight| match frame.is_answer() && frame.before == 0 {
                true => fate,
                false => Fate::Passes,
            },
        );
        let duplicates = line.counter(A, Counter::Duplicates);
        assert_eq!(duplicates > 0, fate == Fate::Repeated, "{fate:?}");
    }
    let line = gets_arrive(|_: &Sight| Fate::Repeated);
    assert!(line.counter(A, Counter::Duplicates) > 0);
    assert!(line.counter(B, Counter::Duplicates) > 0);
    for seed in 0..50 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        gets_arrive(move |_: &Sight| match rng.random_range(0..12) {
            0 => Fate::Lost,
            1 => Fate::Corrupted,
            2 => Fate::Late,
            3 => Fate::Repeated,
            _ => Fate::Passes,
        });
    }
}

#[test]
fn a_pair_that_passes_over_what_is_missing_is_noticed() {
    let broken = exchange(Break::RepeatPassedOver, MESSAGES, lost_first(1)).all_arrived();
    assert!(!broken, "the last was sent in the place of each");
}

#[test]
fn a_gap_that_is_not_told_is_noticed() {
    // Nothing makes up for it: the last is given again in vain, until the pair fails.
    for (broken, timeouts) in [(Break::None, 0), (Break::GapUntold, RETRY_LIMIT + 1)] {
        let line = exchange(broken, MESSAGES, lost_first(1));
        assert_eq!(line.counter(A, Counter::Timeouts), timeouts.into());
    }
}
