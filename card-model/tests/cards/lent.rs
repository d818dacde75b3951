//! Memory that a card lends another: what the tests of puts and of gets have in common.

use abi::completion::{Completion, CompletionKind};
use abi::control::{GRANT_SHARED, GrantSetup, Operation};
use abi::key::remote_key;
use abi::request::SendRequest;
use abi::status::Status;
use card_model::{Break, InTurn};

use crate::host_side::{HostSide, WINDOW_BYTES, able};
use crate::net::{End, Net};

/// Puts, or gets.
pub const A: usize = 0;
/// Is written, or read.
pub const B: usize = 1;
pub const PAIR: u16 = 3;
/// A second pair between the two.
pub const OTHER: u16 = 4;
pub const CREDITS: u8 = 3;
pub const ROW: u16 = 2;
pub const TAG: u64 = 0xdead_beef_cafe;
/// What is granted of B's window.
pub const FIRST: u64 = 0x1004;
pub const END: u64 = 0x3001;

/// The two cards.
pub struct Lent {
    pub net: Net,
    /// What A reaches B's window by; 0 until there is one.
    pub key: u64,
}

impl Lent {
    pub fn new(broken: Break) -> Self {
        let mut net = Net::new(2, able(), 1, 5);
        for pair in [PAIR, OTHER] {
            let end = |card| End {
                card,
                endpoint: 0,
                pair,
            };
            net.connect(end(A), end(B), CREDITS);
        }
        for card in &mut net.cards {
            card.break_on_purpose(broken);
        }
        Self { net, key: 0 }
    }

    /// Grants A a part of B's window, to be written unless `change` says something else.
    pub fn grant(
        &mut self,
        row: u16,
        first: u64,
        end: u64,
        change: impl FnOnce(&mut GrantSetup),
    ) -> u64 {
        let host_side = self.host_side(B);
        host_side.grant(&mut self.net.cards[B], row, TAG, PAIR, first..end, change)
    }

    /// Accesses that need this right and may not be, one for each reason: key, place, length. One key gives just the other right. The last is granted, and of no memory.
    pub fn unlawful(&mut self, right: u8, other: u8) -> [(u64, u64, u64); 16] {
        let mut grant = |row, (first, end), change: fn(&mut GrantSetup), rights| {
            self.grant(row, first, end, |grant| {
                grant.rights = rights;
                change(grant);
            })
        };
        let part = (FIRST, END);
        let others_right = grant(5, part, |_| {}, other);
        let others = grant(6, part, |grant| grant.holder = OTHER, right);
        let shared = |grant: &mut GrantSetup| (grant.holder, grant.flags) = (0, GRANT_SHARED);
        let shared = grant(0, part, shared, right);
        let cleared = grant(8, part, |_| {}, right);
        let stale = grant(9, part, |grant| grant.region_tag += 1, right);
        // Granted beyond the region, and beyond what is mapped of it.
        let long = grant(10, (0, u64::MAX), |_| {}, right);
        self.net.cards[B].control(Operation::GrantClear, 8, &[]);
        let key = self.key;
        [
            (remote_key(11, TAG), FIRST, 8),
            (remote_key(u16::MAX, TAG), FIRST, 8),
            (key ^ 1 << 16, FIRST, 8),
            (key ^ 1 << 63, FIRST, 8),
            (others, FIRST, 8),
            (shared, FIRST, 8),
            (others_right, FIRST, 8),
            (cleared, FIRST, 8),
            (stale, FIRST, 8),
            (key, FIRST - 1, 2),
            (key, END - 1, 2),
            (key, END, 1),
            (key, u64::MAX, 2),
            (key, 0, 1024),
            (long, WINDOW_BYTES + 0x1000, 1),
            (long, WINDOW_BYTES, 1),
        ]
    }

    pub fn host_side(&self, card: usize) -> HostSide {
        self.net.host_sides[card][0].clone()
    }

    pub fn send(&mut self, request: SendRequest) {
        self.net.host_sides[A][0].send(&mut self.net.cards[A], request);
    }

    /// Posts a message without bytes.
    pub fn message(&mut self, number: u32) {
        let message = self.host_side(A).a_send(PAIR, number, 0, 0);
        self.send(message);
    }

    pub fn receive(&mut self, number: u32) {
        let receive = self.host_side(B).a_receive(PAIR, number, 0, 0);
        self.net.host_sides[B][0].list(&mut self.net.cards[B], receive);
    }

    /// Lets everything happen that can.
    pub fn run(&mut self) {
        let mut schedule = InTurn::default();
        loop {
            let mut done = 0;
            for card in [A, B] {
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

    pub fn poll(&mut self, card: usize) -> Option<Completion> {
        self.net.host_sides[card][0].poll(&mut self.net.cards[card])
    }

    /// Takes handle and status of A's completions.
    pub fn told(&mut self) -> Vec<(u32, Status)> {
        let told = std::iter::from_fn(|| self.poll(A));
        told.map(|entry| {
            let kinds = [CompletionKind::Send, CompletionKind::Cancel];
            assert!(kinds.map(CompletionKind::code).contains(&entry.kind));
            let status = Status::from_code(entry.status).expect("known");
            (entry.request, status)
        })
        .collect()
    }

    /// Runs, and takes them.
    pub fn ended(&mut self) -> Vec<(u32, Status)> {
        self.run();
        self.told()
    }

    /// How often B has refused the peer of a pair.
    pub fn refused(&self, pair: u16) -> u32 {
        self.net.cards[B].delivery().refused(pair)
    }
}
