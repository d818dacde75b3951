//! Each room of the model, in small stories of two cards with one pair between them.

use abi::completion::{COMPLETION_MORE, Completion, CompletionKind};
use abi::control::{Counter, EventSetup, Operation, PairReport, PairSetup};
use abi::event::{Cause, Event, NO_PAIR};
use abi::mailbox::PairState;
use abi::register::{
    COMPLETION_ARM, COMPLETION_HEAD, COMPLETION_TAIL, EVENTS_LOST, LIST_HEAD, LIST_TAIL, SEND_HEAD,
    SEND_TAIL, STICKY,
};
use abi::request::{
    FLAG_ANY_SOURCE, FLAG_MULTI, FLAG_NOTHING_KEPT, FLAG_READY, FLAG_RESUME, ListRequest, Opcode,
    SendRequest, claim_number,
};
use abi::status::Status;
use abi::wire::{FrameHeader, FrameType, MANAGEMENT_BYTES, VERSION};
use card_model::{Action, Break, InTurn, link::screen};

use crate::host_side::{HostSide, scarce, tiny};
use crate::net::{End, Net};

const A: usize = 0;
const B: usize = 1;
/// The pair between the two, on both cards, and the one of each with itself.
const PAIR: u16 = 3;
const OWN: u16 = 0;
const CREDITS: u8 = 3;

struct Stage {
    net: Net,
}

impl Stage {
    /// With rings of 32 entries.
    fn new() -> Self {
        Self::of(tiny(), 5)
    }

    fn of(sizes: card_model::CardSizes, log2: u8) -> Self {
        let mut net = Net::new(2, sizes, 1, log2);
        let end = |card, pair| End {
            card,
            endpoint: 0,
            pair,
        };
        net.connect(end(A, PAIR), end(B, PAIR), CREDITS);
        net.connect(end(A, OWN), end(A, OWN), CREDITS);
        Self { net }
    }

    fn host_side(&self, card: usize) -> HostSide {
        self.net.host_sides[card][0].clone()
    }

    fn send(&mut self, card: usize, request: SendRequest) {
        self.net.host_sides[card][0].send(&mut self.net.cards[card], request);
    }

    fn list(&mut self, card: usize, request: ListRequest) {
        self.net.host_sides[card][0].list(&mut self.net.cards[card], request);
    }

    /// Posts `count` sends of one byte from A, with handles from `first` on.
    fn send_many(&mut self, first: u32, count: u32) {
        for request in first..first + count {
            let send = self.host_side(A).a_send(PAIR, request, 0, 1);
            self.send(A, send);
        }
    }

    /// Lets everything happen that can.
    fn run(&mut self) {
        let mut schedule = InTurn::default();
        loop {
            let mut done = 0;
            for card in 0..2 {
                done += self.net.cards[card].run(&mut schedule);
                self.net.collect();
                done += self.net.deliver(card);
            }
            self.net.check_credits();
            if done == 0 {
                return;
            }
        }
    }

    fn completion(&mut self, card: usize) -> Option<Completion> {
        self.net.host_sides[card][0].poll(&mut self.net.cards[card])
    }

    fn event(&mut self, card: usize) -> Option<Event> {
        self.net.host_sides[card][0].poll_event(&mut self.net.cards[card])
    }

    /// Runs, and takes handle and status of all completions of a card.
    fn ended(&mut self, card: usize) -> Vec<(u32, Status)> {
        self.run();
        let mut all = Vec::new();
        while let Some(entry) = self.completion(card) {
            all.push((
                entry.request,
                Status::from_code(entry.status).expect("known"),
            ));
        }
        all
    }

    fn counter(&self, card: usize, counter: Counter) -> u32 {
        self.net.cards[card].counter(counter)
    }

    fn report(&mut self, card: usize) -> PairReport {
        let word = self.net.cards[card].control(Operation::PairRead, PAIR, &[]);
        PairReport::from_words(&[word])
    }
}

fn probe(opcode: Opcode, request: u32) -> ListRequest {
    ListRequest {
        opcode: opcode.code(),
        pair: PAIR,
        request,
        ignore_bits: u64::MAX,
        ..ListRequest::default()
    }
}

fn by_claim(opcode: Opcode, request: u32, handle: u32) -> ListRequest {
    ListRequest {
        opcode: opcode.code(),
        request,
        target: handle,
        ..ListRequest::default()
    }
}

fn cancel(request: u32, target: u32) -> ListRequest {
    by_claim(Opcode::Cancel, request, target)
}

/// Two cards that send each other messages until each has had sends' completions in the entries of receives.
fn entries_used_again(broken: Break) {
    let mut stage = Stage::of(tiny(), 3);
    stage.net.cards[B].break_on_purpose(broken);
    for round in 0..9 {
        for (from, to) in [(A, B), (B, A)] {
            let receive = stage.host_side(to).a_receive(PAIR, 2 * round, 100, 64);
            let send = stage.host_side(from).a_send(PAIR, 2 * round + 1, 0, 8);
            stage.list(to, receive);
            stage.run();
            stage.send(from, send);
            let received = (2 * round, Status::Success);
            assert_eq!(stage.ended(to), [received]);
            assert_eq!(stage.ended(from), [(2 * round + 1, Status::Success)]);
        }
        // Entries change kind when the queue begins anew.
        let cancel = ListRequest {
            opcode: Opcode::Cancel.code(),
            request: 99,
            ..ListRequest::default()
        };
        stage.list(B, cancel);
        assert_eq!(stage.ended(B), [(99, Status::TooLate)]);
    }
}

#[test]
fn nothing_but_the_words_that_an_entry_has_is_written() {
    entries_used_again(Break::None);
    let whole = std::panic::catch_unwind(|| entries_used_again(Break::EntryWhole));
    assert!(whole.is_err(), "a whole entry goes unnoticed");
}

#[test]
fn a_message_reaches_the_buffer_expected_or_not_and_its_source_is_the_receivers_pair() {
    for expected in [true, false] {
        let mut stage = Stage::new();
        let bytes = b"thirteen byte".to_vec();
        stage
            .host_side(A)
            .fill(&mut stage.net.cards[A], 100, &bytes);
        let send = SendRequest {
            context: 7,
            match_bits: 0xf0f,
            immediate: 42,
            ..stage.host_side(A).a_send(PAIR, 1, 100, 13)
        };
        let receive = ListRequest {
            context: 7,
            match_bits: 0xf00,
            ignore_bits: 0xff,
            flags: FLAG_ANY_SOURCE,
            ..stage.host_side(B).a_receive(0, 2, 200, 64)
        };
        if expected {
            stage.list(B, receive);
            stage.run();
        }
        stage.send(A, send);
        stage.run();
        stage.list(B, receive);
        stage.run();
        let sent = stage.completion(A).expect("the send completes");
        assert_eq!((sent.request, sent.status), (1, 0));
        let entry = stage.completion(B).expect("the receive completes");
        let kind = CompletionKind::Receive.code();
        assert_eq!((entry.request, entry.status, entry.kind), (2, 0, kind));
        assert_eq!((entry.pair, entry.context, entry.length), (PAIR, 7, 13));
        assert_eq!((entry.match_bits, entry.immediate), (0xf0f, 42));
        assert_eq!(
            stage.host_side(B).bytes(&mut stage.net.cards[B], 200, 13),
            bytes
        );
        let counts = [Counter::Expected, Counter::Unexpected];
        let counts = counts.map(|counter| stage.counter(B, counter));
        assert_eq!(counts, if expected { [1, 0] } else { [0, 1] });
        assert_eq!(stage.net.cards[B].delivery().slots_used(PAIR), 0);
    }
}

#[test]
fn a_message_that_is_too_long_for_its_buffer_fills_it_and_no_byte_behind() {
    let mut stage = Stage::new();
    stage
        .host_side(A)
        .fill(&mut stage.net.cards[A], 0, &[9; 64]);
    let receive = stage.host_side(B).a_receive(PAIR, 1, 0, 10);
    stage.list(B, receive);
    stage.run();
    let send = stage.host_side(A).a_send(PAIR, 1, 0, 64);
    stage.send(A, send);
    stage.run();
    let entry = stage.completion(B).expect("it completes");
    let truncated = Status::Truncated.code();
    assert_eq!((entry.status, entry.length), (truncated, 64));
    let wanted = [[9; 10], [0; 10]].concat();
    assert_eq!(
        stage.host_side(B).bytes(&mut stage.net.cards[B], 0, 20),
        wanted
    );
}

#[test]
fn a_card_sends_to_itself_with_the_same_credits_and_no_frame_goes_out() {
    let mut stage = Stage::new();
    let (send, receive) = (
        stage.host_side(A).a_send(OWN, 1, 0, 8),
        stage.host_side(A).a_receive(OWN, 2, 64, 8),
    );
    stage.list(A, receive);
    stage.send(A, send);
    while let Some(&action) = stage.net.cards[A].actions().first() {
        stage.net.cards[A].step(action);
    }
    assert_eq!(stage.net.cards[A].frame_out(), None);
    let mut ended = stage.ended(A);
    ended.sort_unstable();
    assert_eq!(ended, [(1, Status::Success), (2, Status::Success)]);
    assert_eq!(stage.net.cards[A].credits(OWN).source.returned, 1);
}

#[test]
fn sends_wait_for_credit_and_a_cancel_ends_only_one_that_still_does() {
    let mut stage = Stage::new();
    stage.send_many(1, 5);
    let sent: Vec<_> = (1..=3).map(|request| (request, Status::Success)).collect();
    assert_eq!(stage.ended(A), sent);
    let report = stage.report(A);
    assert_eq!((report.available, report.waiting), (0, 2));
    for (request, target) in [(10, 4), (11, 1), (12, 99)] {
        let cancel = SendRequest {
            opcode: Opcode::CancelSend.code(),
            pair: PAIR,
            request,
            target,
            ..SendRequest::default()
        };
        stage.send(A, cancel);
    }
    let cancelled = [
        (4, Status::Cancelled),
        (11, Status::TooLate),
        (12, Status::TooLate),
    ];
    assert_eq!(stage.ended(A), cancelled);
    let receive = stage.host_side(B).a_receive(PAIR, 1, 0, 8);
    stage.list(B, receive);
    assert_eq!(stage.ended(A), [(5, Status::Success)]);
}

#[test]
fn a_send_beyond_the_run_of_its_pair_is_refused() {
    let mut stage = Stage::new();
    stage.send_many(1, 3);
    stage.run();
    // The three are safe at the peer: their descriptors are free again.
    stage.send_many(4, 17);
    let full = (20, Status::QueueFull);
    assert_eq!(stage.ended(A).last(), Some(&full));
    assert_eq!(stage.report(A).waiting, 16);
}

#[test]
fn a_probe_leaves_the_message_and_a_claim_takes_it_for_one_handle_once() {
    let mut stage = Stage::new();
    stage.list(B, probe(Opcode::Probe, 1));
    assert_eq!(stage.ended(B), [(1, Status::NoMessage)]);
    stage.send_many(1, 2);
    stage.run();
    stage.list(B, probe(Opcode::Probe, 2));
    stage.list(B, probe(Opcode::Claim, 3));
    stage.run();
    let probed = stage.completion(B).expect("the probe finds it");
    let claimed = stage.completion(B).expect("the claim finds it");
    assert_eq!((probed.handle, claim_number(claimed.handle)), (0, 1));
    stage.list(B, by_claim(Opcode::Discard, 4, claimed.handle));
    stage.list(B, by_claim(Opcode::Discard, 5, claimed.handle));
    stage.list(B, probe(Opcode::Claim, 6));
    let ended = [
        (4, Status::Success),
        (5, Status::InvalidClaim),
        (6, Status::Success),
    ];
    assert_eq!(stage.ended(B), ended);
    assert_eq!(stage.net.cards[A].credits(PAIR).source.returned, 1);
    assert_eq!(stage.net.cards[B].delivery().slots_used(PAIR), 1);
}

#[test]
fn a_claim_is_received_whatever_its_tag_is_and_a_bad_key_leaves_it_claimed() {
    let mut stage = Stage::new();
    stage.host_side(A).fill(&mut stage.net.cards[A], 0, &[5]);
    stage.send_many(1, 1);
    stage.run();
    stage.list(B, probe(Opcode::Claim, 1));
    stage.run();
    let handle = stage.completion(B).expect("a claim").handle;
    let receive = ListRequest {
        opcode: Opcode::ReceiveClaimed.code(),
        target: handle,
        ..stage.host_side(B).a_receive(0, 2, 32, 8)
    };
    let bad = ListRequest { key: 77, ..receive };
    stage.list(B, bad);
    assert_eq!(stage.ended(B), [(2, Status::LocalProtection)]);
    let told = stage.net.cards[B]
        .take_refusal()
        .expect("the firmware is told");
    assert_eq!((told.key, told.count), (77, 1));
    assert_eq!(stage.net.cards[B].take_refusal(), None, "once");
    stage.list(B, receive);
    assert_eq!(stage.ended(B), [(2, Status::Success)]);
    assert_eq!(
        stage.host_side(B).bytes(&mut stage.net.cards[B], 32, 1),
        [5]
    );
}

#[test]
fn a_multi_receive_takes_message_after_message_until_its_buffer_is_used_up() {
    let mut stage = Stage::new();
    let bytes: Vec<u8> = (0..40).collect();
    stage.host_side(A).fill(&mut stage.net.cards[A], 0, &bytes);
    for (request, offset) in [(1, 0), (2, 10), (3, 20), (4, 30)] {
        let send = stage.host_side(A).a_send(PAIR, request, offset, 10);
        stage.send(A, send);
        if request == 1 {
            stage.run();
            // The first waits for it, the others come.
            let receive = ListRequest {
                flags: FLAG_MULTI,
                min_free: 6,
                ..stage.host_side(B).a_receive(PAIR, 9, 0, 35)
            };
            stage.list(B, receive);
            stage.run();
        }
    }
    stage.run();
    let ends = std::iter::from_fn(|| stage.completion(B));
    let told: Vec<_> = ends
        .map(|entry| (entry.request, entry.flags, entry.offset, entry.count))
        .collect();
    let more = COMPLETION_MORE;
    assert_eq!(told, [(9, more, 0, 0), (9, more, 10, 0), (9, 0, 20, 3)]);
    let held = stage.host_side(B).bytes(&mut stage.net.cards[B], 0, 30);
    assert_eq!(held, bytes[..30]);
    assert_eq!(stage.counter(B, Counter::Unexpected), 2);
}

#[test]
fn a_multi_receive_ends_when_no_completion_is_free_for_it_to_stay() {
    let mut stage = Stage::new();
    let receive = ListRequest {
        flags: FLAG_MULTI,
        ..stage.host_side(B).a_receive(PAIR, 1, 0, 1000)
    };
    stage.list(B, receive);
    for request in 2..33 {
        let receive = ListRequest {
            match_bits: 5,
            ..stage.host_side(B).a_receive(PAIR, request, 0, 8)
        };
        stage.list(B, receive);
    }
    stage.run();
    stage.send_many(1, 1);
    stage.run();
    let entry = stage.completion(B).expect("it completes");
    assert_eq!((entry.request, entry.flags), (1, 0));
    assert_eq!((entry.offset, entry.count), (0, 1));
}

#[test]
fn a_ready_message_without_a_receive_is_refused_and_its_envelope_comes_back() {
    let mut stage = Stage::new();
    let ready = SendRequest {
        flags: FLAG_READY,
        ..stage.host_side(A).a_send(PAIR, 1, 0, 8)
    };
    stage.send(A, ready);
    assert_eq!(stage.ended(A), [(1, Status::NotReady)]);
    assert_eq!(stage.report(A).available, CREDITS);
    let receive = stage.host_side(B).a_receive(PAIR, 1, 0, 8);
    stage.list(B, receive);
    stage.run();
    stage.send(A, ready);
    assert_eq!(stage.ended(A), [(1, Status::Success)]);
}

/// Posts receives that match nothing until one waits for room. Returns its handle.
fn fill_lists(stage: &mut Stage) -> u32 {
    for request in 100..300 {
        let receive = ListRequest {
            match_bits: u64::from(request),
            ..stage.host_side(B).a_receive(PAIR, request, 0, 8)
        };
        stage.list(B, receive);
        stage.run();
        if stage.net.cards[B].delivery().keeps(0) {
            return request;
        }
    }
    panic!("no receive waits")
}

#[test]
fn a_full_list_keeps_one_receive_waiting_and_nobody_overtakes_it() {
    let mut stage = Stage::of(scarce(), 5);
    let waiting = fill_lists(&mut stage);
    // Of 12 places on the exact side three are the other endpoint's, of 4 on the associative side one.
    assert_eq!(waiting, 100 + 9 + 3);
    let tagged = |tag, request, host_side: HostSide| ListRequest {
        match_bits: tag,
        ..host_side.a_receive(PAIR, request, 0, 8)
    };
    let behind = tagged(1, 200, stage.host_side(B));
    stage.list(B, behind);
    stage.run();
    let entry = stage.completion(B).expect("it is refused");
    let status = Status::Behind.code();
    assert_eq!(
        (entry.request, entry.status, entry.handle),
        (200, status, waiting)
    );
    // A message is news: the one in front is told, and what comes behind isn't even looked at.
    stage.send_many(1, 1);
    assert_eq!(stage.ended(B), [(waiting, Status::ListFull)]);
    let zero = tagged(0, 201, stage.host_side(B));
    stage.list(B, zero);
    assert_eq!(stage.ended(B), [(201, Status::Behind)]);
    let resumed = ListRequest {
        flags: FLAG_RESUME | FLAG_NOTHING_KEPT,
        ..zero
    };
    stage.list(B, resumed);
    assert_eq!(stage.ended(B), [(201, Status::Success)]);
    assert!(!stage.net.cards[B].delivery().keeps(0));
}

#[test]
fn the_receive_that_waits_for_room_can_be_cancelled() {
    let mut stage = Stage::of(scarce(), 5);
    let waiting = fill_lists(&mut stage);
    stage.list(B, cancel(1, waiting));
    stage.list(B, cancel(2, waiting));
    let ended = [(waiting, Status::Cancelled), (2, Status::TooLate)];
    assert_eq!(stage.ended(B), ended);
}

#[test]
fn sixteen_posted_receives_that_have_gone_are_room_for_the_one_that_waits() {
    let mut stage = Stage::of(tiny(), 7);
    let waiting = fill_lists(&mut stage);
    for gone in 0..16 {
        stage.list(B, cancel(1, 100 + gone));
        let cancelled = (100 + gone, Status::Cancelled);
        match gone {
            15 => assert_eq!(stage.ended(B), [cancelled, (waiting, Status::ListFull)]),
            _ => assert_eq!(stage.ended(B), [cancelled]),
        }
    }
}

#[test]
fn a_receive_is_cancelled_once_and_its_cancel_completes_only_if_it_is_too_late() {
    let mut stage = Stage::new();
    let receive = stage.host_side(B).a_receive(PAIR, 1, 0, 8);
    stage.list(B, receive);
    stage.list(B, cancel(2, 1));
    stage.list(B, cancel(3, 1));
    let ended = [(1, Status::Cancelled), (3, Status::TooLate)];
    assert_eq!(stage.ended(B), ended);
}

#[test]
fn a_region_that_is_gone_when_the_message_comes_denies_it_and_the_pair_counts() {
    let mut stage = Stage::new();
    let receive = stage.host_side(B).a_receive(PAIR, 1, 0, 8);
    stage.list(B, receive);
    stage.run();
    stage.net.cards[B].control(Operation::RegionClear, 0, &[]);
    stage.send_many(1, 1);
    assert_eq!(stage.ended(B), [(1, Status::AccessDenied)]);
    assert_eq!(stage.report(B).refused, 1);
    assert_eq!(stage.ended(A), [(1, Status::Success)]);
}

#[test]
fn a_pair_that_fails_is_failed_on_both_sides_with_an_event_and_its_sends_and_receives_end() {
    let mut stage = Stage::new();
    let receive = stage.host_side(A).a_receive(PAIR, 9, 0, 8);
    stage.list(A, receive);
    stage.send_many(1, 2);
    // A wire that takes everything and brings nothing, until the sender gives up.
    stage.net.cards[A].run(&mut InTurn::default());
    while let Some(next) = stage.net.cards[A].next_time() {
        while stage.net.cards[A].frame_out().is_some() {}
        stage.net.cards[A].advance_to(next);
        stage.net.cards[A].run(&mut InTurn::default());
    }
    let failed = [1, 2, 9].map(|request| (request, Status::PeerFailed));
    assert_eq!(stage.ended(A), failed);
    for (card, cause, status) in [
        (A, Cause::PeerFailed, Status::PeerFailed),
        (B, Cause::LinkError, Status::LinkError),
    ] {
        let event = stage.event(card).expect("both are told");
        assert_eq!((event.cause, event.pair), (cause.code(), PAIR));
        assert_eq!(event.info, status.code().into());
        assert_eq!(stage.report(card).state, PairState::Failed.code());
    }
    stage.send_many(3, 1);
    assert_eq!(stage.ended(A), [(3, Status::PeerFailed)]);
}

#[test]
fn a_pair_that_only_waits_for_credit_asks_and_gets_the_one_that_was_lost() {
    let mut stage = Stage::new();
    stage.send_many(1, 4);
    assert_eq!(stage.ended(A).len(), 3);
    // The frame that returns a credit is lost.
    let receive = stage.host_side(B).a_receive(PAIR, 1, 0, 8);
    stage.list(B, receive);
    stage.net.cards[B].run(&mut InTurn::default());
    while stage.net.cards[B].frame_out().is_some() {}
    assert_eq!(stage.ended(A), []);
    stage.net.cards[A].advance_to(10_000);
    assert_eq!(stage.ended(A), [(4, Status::Success)]);
    assert_eq!(stage.counter(A, Counter::CreditAsks), 1);
}

#[test]
fn a_message_behind_a_lost_one_is_dropped_and_what_is_missing_is_sent_again() {
    let mut stage = Stage::new();
    stage.send_many(1, 3);
    stage.net.cards[A].run(&mut InTurn::default());
    let frames: Vec<_> = std::iter::from_fn(|| stage.net.cards[A].frame_out()).collect();
    for at in [0, 0, 2] {
        stage.net.cards[B].frame_in(frames[at].clone());
        stage.net.cards[B].run(&mut InTurn::default());
    }
    let ended = [1, 2, 3].map(|request| (request, Status::Success));
    assert_eq!(stage.ended(A), ended);
    assert_eq!(stage.counter(B, Counter::Duplicates), 1);
    assert_eq!(stage.counter(B, Counter::Gaps), 1);
    assert_eq!(stage.counter(A, Counter::Repeats), 2);
}

#[test]
fn a_repeated_message_is_acknowledged_again_and_delivered_once() {
    let mut stage = Stage::new();
    stage.send_many(1, 1);
    stage.net.cards[A].run(&mut InTurn::default());
    let message = stage.net.cards[A].frame_out().expect("a message");
    let counters = [Counter::Duplicates, Counter::Unexpected];
    for repeats in 0..3 {
        stage.net.cards[B].frame_in(message.clone());
        stage.net.cards[B].run(&mut InTurn::default());
        // The acknowledgement was lost, and a repeated message was dropped in silence.
        let lost = stage.net.cards[B].frame_out().expect("it is acknowledged");
        let header = FrameHeader::parse(&lost).expect("a header");
        assert_eq!(header.frame_type, FrameType::Acknowledge.code());
        assert_eq!(header.acknowledge, 1);
        assert_eq!(stage.net.cards[B].frame_out(), None, "one frame says it");
        assert_eq!(
            counters.map(|counter| stage.counter(B, counter)),
            [repeats, 1]
        );
    }
}

#[test]
fn what_a_message_has_carried_goes_in_no_control_frame() {
    let mut stage = Stage::new();
    stage.send_many(1, 1);
    stage.net.cards[A].run(&mut InTurn::default());
    let message = stage.net.cards[A].frame_out().expect("a message");
    let but_control = |action: &Action| !matches!(action, Action::Control(_));
    let mut schedule = InTurn::default();
    stage.net.cards[B].frame_in(message);
    stage.net.cards[B].run_those(but_control, &mut schedule);
    let back = stage.host_side(B).a_send(PAIR, 7, 0, 1);
    stage.send(B, back);
    stage.net.cards[B].run_those(but_control, &mut schedule);
    // An acknowledgement went out although a message had just carried the same numbers.
    stage.net.cards[B].run(&mut schedule);
    let frames: Vec<_> = std::iter::from_fn(|| stage.net.cards[B].frame_out()).collect();
    let headers = frames
        .iter()
        .map(|frame| FrameHeader::parse(frame).expect("a header"));
    let all: Vec<_> = headers.map(|h| (h.frame_type, h.acknowledge)).collect();
    assert_eq!(all, [(FrameType::Eager.code(), 1)]);
}

#[test]
fn a_peer_that_lies_about_what_is_safe_fails_its_pair() {
    let mut stage = Stage::new();
    stage.send_many(1, 1);
    stage.net.cards[A].run(&mut InTurn::default());
    let frame = stage.net.cards[A].frame_out().expect("a message");
    let header = FrameHeader::parse(&frame).expect("a header");
    let lie = FrameHeader {
        frame_type: FrameType::Acknowledge.code(),
        sequence: 0,
        acknowledge: 2,
        payload_length: 0,
        message_length: 0,
        ..header
    };
    // Both ends have the same numbers, but for the addresses.
    stage.net.cards[A].frame_in(card_model::link::seal(&lie, &[]));
    assert_eq!(stage.ended(A), [(1, Status::LinkError)]);
}

#[test]
fn a_pair_that_is_closed_flushes_its_requests_and_gives_its_slots_back() {
    let mut stage = Stage::new();
    stage.send_many(1, 4);
    let receive = ListRequest {
        match_bits: 9,
        ..stage.host_side(B).a_receive(PAIR, 7, 0, 8)
    };
    stage.list(B, receive);
    stage.run();
    stage.list(B, probe(Opcode::Claim, 8));
    stage.run();
    while stage.completion(A).is_some() || stage.completion(B).is_some() {}
    stage.net.pairs.clear();
    for card in [A, B] {
        stage.net.cards[card].control(Operation::PairClear, PAIR, &[]);
    }
    assert_eq!(stage.ended(A), [(4, Status::Flushed)]);
    assert_eq!(stage.ended(B), [(7, Status::Flushed)]);
    let delivery = stage.net.cards[B].delivery();
    assert_eq!(
        (
            delivery.slots_used(PAIR),
            delivery.lists().unexpected_depth()
        ),
        (0, 0)
    );
    assert_eq!(stage.report(A), PairReport::default());
}

#[test]
fn a_peer_that_breaks_its_credits_fails_the_pair_and_the_message_isnt_acknowledged() {
    let mut stage = Stage::new();
    stage.net.pairs.clear();
    let setup = PairSetup {
        remote_mac: crate::net::mac(B),
        remote_pair: PAIR,
        remote_epoch: 1,
        cookie: 0xc00c_0000,
        domain: 1,
        epoch: 1,
        remote_credits: CREDITS + 1,
        local_credits: CREDITS,
        slots: stage.host_side(A).slots,
        sends_first: PAIR << 4,
        sends_log2: 4,
        ..PairSetup::default()
    };
    stage.net.cards[A].control(Operation::PairSet, PAIR, &setup.to_words());
    stage.send_many(1, 4);
    let ended = stage.ended(A);
    assert_eq!(ended[3], (4, Status::LinkError));
    let causes: Vec<_> = std::iter::from_fn(|| stage.event(B))
        .map(|e| e.cause)
        .collect();
    let wanted = [Cause::UnexpectedOverflow, Cause::LinkError].map(Cause::code);
    assert_eq!(causes, wanted);
    let raised = stage.net.cards[B].take_raised();
    assert_eq!(raised.len(), 2, "the firmware is told as well");
}

#[test]
fn a_slot_that_cant_be_written_fails_the_pair_with_a_memory_error() {
    let mut stage = Stage::new();
    let slots = stage.host_side(B).slots;
    stage.net.cards[B].memory.unmap(slots);
    let receive = ListRequest {
        match_bits: 9,
        ..stage.host_side(B).a_receive(PAIR, 7, 0, 8)
    };
    stage.list(B, receive);
    stage.run();
    stage.send_many(1, 1);
    assert_eq!(stage.ended(B), [(7, Status::MemoryError)]);
    assert_eq!(stage.ended(A), [(1, Status::LinkError)]);
    assert_eq!(
        stage.event(B).map(|e| e.cause),
        Some(Cause::SlotError.code())
    );
}

#[test]
fn a_pair_that_ends_in_an_orderly_way_tells_its_peer_of_no_failure() {
    let mut stage = Stage::new();
    let receive = stage.host_side(A).a_receive(PAIR, 1, 0, 8);
    stage.list(A, receive);
    stage.run();
    let status = Status::PeerClosed.code().into();
    stage.net.cards[A].control(Operation::PairFail, PAIR, &[status]);
    assert_eq!(stage.ended(A), [(1, Status::PeerClosed)]);
    assert_eq!(
        stage.event(A),
        None,
        "the firmware raises that event itself"
    );
    assert_eq!(stage.report(B).state, PairState::Connected.code());
}

#[test]
fn doorbells_that_cant_be_meant_are_ignored_counted_and_told() {
    let mut stage = Stage::new();
    let gates = &mut stage.net.cards[A];
    gates.write_register(0, SEND_TAIL, 33);
    gates.write_register(0, LIST_TAIL, 0x1_0000);
    gates.write_register(0, COMPLETION_HEAD, 1);
    // An endpoint that isn't there belongs to nobody.
    gates.write_register(1, SEND_TAIL, 1);
    assert_eq!(gates.counter(Counter::DoorbellErrors), 4);
    assert_eq!(gates.actions(), []);
    let events: Vec<_> = std::iter::from_fn(|| stage.event(A)).collect();
    let told: Vec<_> = events.iter().map(|e| (e.cause, e.pair, e.info)).collect();
    let overrun = Cause::RingOverrun.code();
    let wanted = [
        (overrun, NO_PAIR, 33),
        (overrun, NO_PAIR, 0x1_0001_0000),
        (Cause::IndexError.code(), NO_PAIR, 1),
    ];
    assert_eq!(told, wanted);
}

#[test]
fn an_entry_that_cant_be_read_stops_its_ring_and_no_other() {
    let mut stage = Stage::new();
    let receive = stage.host_side(A).a_receive(OWN, 1, 0, 8);
    stage.list(A, receive);
    let base = 0x1000_0000;
    stage.net.cards[A].memory.unmap(base);
    stage.net.cards[A].write_register(0, SEND_TAIL, 1);
    stage.run();
    let event = stage.event(A).expect("its host is told");
    assert_eq!((event.cause, event.info), (Cause::RingError.code(), 0));
    let heads = [SEND_HEAD, LIST_HEAD].map(|head| stage.net.cards[A].read_register(0, head));
    assert_eq!(heads, [0, 1]);
}

#[test]
fn nothing_is_fetched_for_which_no_completion_is_free() {
    let mut stage = Stage::new();
    for request in 0..32 {
        stage.list(B, probe(Opcode::Probe, request));
    }
    stage.run();
    for request in 0..4 {
        stage.list(B, probe(Opcode::Probe, 100 + request));
    }
    stage.run();
    assert_eq!(stage.net.cards[B].read_register(0, LIST_HEAD), 32);
    assert_eq!(stage.ended(B).len(), 32);
    assert_eq!(stage.ended(B).len(), 4);
}

#[test]
fn an_interrupt_is_raised_once_the_tail_is_past_the_index_armed_with() {
    let mut stage = Stage::new();
    let arm = |stage: &mut Stage, index| {
        stage.net.cards[B].write_register(0, COMPLETION_ARM, index);
        stage.net.cards[B].interrupts()
    };
    assert_eq!(arm(&mut stage, 1), 0);
    stage.list(B, probe(Opcode::Probe, 1));
    stage.run();
    assert_eq!(stage.net.cards[B].interrupts(), 0);
    stage.list(B, probe(Opcode::Probe, 2));
    stage.run();
    assert_eq!(stage.net.cards[B].interrupts(), 0b10);
    assert_eq!(arm(&mut stage, 2), 0);
    assert_eq!(arm(&mut stage, 0), 0b10, "it is past already");
}

#[test]
fn events_of_the_firmware_fold_and_are_counted_as_others_are() {
    let mut stage = Stage::new();
    let setup = EventSetup {
        cause: Cause::PeerClosed.code(),
        pair: PAIR,
        info: 9,
        ..EventSetup::default()
    };
    let gates = &mut stage.net.cards[A];
    for _ in 0..34 {
        gates.control(Operation::EventRaise, 0, &setup.to_words());
    }
    assert_eq!(
        gates.read_register(0, STICKY),
        1 << Cause::PeerClosed.code()
    );
    assert_eq!(gates.read_register(0, EVENTS_LOST), 2);
    assert_eq!(gates.take_raised(), [], "the firmware knows");
    let events: Vec<_> = std::iter::from_fn(|| stage.event(A)).collect();
    assert_eq!(events.len(), 32);
    assert!(events.iter().all(|e| (e.pair, e.info) == (PAIR, 9)));
}

#[test]
fn an_event_that_cant_be_written_leaves_no_hole() {
    let mut stage = Stage::new();
    let events = 0x1030_0000;
    let gates = &mut stage.net.cards[A];
    gates.memory.unmap(events);
    gates.write_register(0, COMPLETION_HEAD, 1);
    gates.memory.map(events, 32 * 32);
    gates.write_register(0, COMPLETION_HEAD, 2);
    assert_eq!(gates.read_register(0, EVENTS_LOST), 1);
    assert_eq!(stage.event(A).map(|event| event.info), Some(2));
}

#[test]
fn a_completion_that_cant_be_written_is_told_by_an_event() {
    let mut stage = Stage::new();
    stage.net.cards[A].memory.unmap(0x1020_0000);
    stage.list(A, probe(Opcode::Probe, 1));
    stage.run();
    let cause = stage.event(A).map(|event| event.cause);
    assert_eq!(cause, Some(Cause::CompletionError.code()));
    assert_eq!(stage.net.cards[A].read_register(0, COMPLETION_TAIL), 1);
}

#[test]
fn a_reset_of_the_gates_forgets_rings_pairs_and_messages_and_late_frames_touch_nothing() {
    let mut stage = Stage::new();
    let receive = stage.host_side(B).a_receive(PAIR, 1, 0, 8);
    stage.list(B, receive);
    stage.run();
    stage.net.cards[B].reset();
    stage.net.pairs.clear();
    // The doorbell of a program that doesn't know yet.
    stage.net.cards[B].write_register(0, SEND_TAIL, 1);
    stage.host_side(A).fill(&mut stage.net.cards[A], 0, &[7]);
    stage.send_many(1, 1);
    stage.run();
    assert_eq!(stage.counter(B, Counter::PairErrors), 1);
    assert_eq!(stage.completion(B), None);
    assert_eq!(stage.host_side(B).bytes(&mut stage.net.cards[B], 0, 1), [0]);
}

#[test]
fn frames_of_the_firmware_go_by_the_pairs_and_those_beyond_the_room_are_dropped() {
    let mut stage = Stage::new();
    let header = FrameHeader {
        destination_mac: crate::net::mac(B),
        ethertype: abi::wire::ETHERTYPE_FIELD,
        version: VERSION + 1,
        frame_type: FrameType::Handshake.code(),
        payload_length: MANAGEMENT_BYTES as u16,
        message_length: MANAGEMENT_BYTES as u64,
        ..FrameHeader::default()
    };
    for byte in 0..5 {
        stage.net.cards[A].firmware_frame_out(&header, &[byte; MANAGEMENT_BYTES]);
    }
    stage.run();
    let frames = std::iter::from_fn(|| stage.net.cards[B].firmware_frame_in());
    let last: Vec<_> = frames.map(|frame| *frame.last().expect("bytes")).collect();
    assert_eq!(last, [0, 1, 2, 3]);
    assert_eq!(stage.counter(B, Counter::FirmwareFramesDropped), 1);
}

#[test]
fn every_frame_of_a_card_passes_the_screen_of_another() {
    let mut stage = Stage::new();
    stage.send_many(1, 3);
    stage.net.cards[A].run(&mut InTurn::default());
    for _ in 0..3 {
        let frame = stage.net.cards[A].frame_out().expect("three messages");
        let screened = screen(&frame).expect("a good frame");
        assert_eq!(screened.frame_type, FrameType::Eager);
        assert_eq!(screened.payload.len(), 1);
    }
}
