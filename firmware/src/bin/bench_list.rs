//! A linear list of receives or messages, walked by the management processor: what matching would take without
//! the engine. `posthorn bench match` runs it on the simulated processor, for the reader to compare.
//!
//! The host says by the mailbox what to measure, in words of [`abi::list_bench`]; the answer is cycles. The list is
//! linked, as it must be where entries are taken out of the middle.
#![no_std]
#![no_main]

use abi::list_bench::{
    ANY_SOURCE, CYCLES, DEPTH, FOUND, IGNORE, LONGEST, MAX_DEPTH, OWN_MASKS, SAMPLES, SEED,
    UNEXPECTED,
};
use abi::mgmt::FIRMWARE_START;
use abi::status::MailboxStatus;
use core::cell::RefCell;
use core::panic::PanicInfo;
use critical_section::Mutex;
use firmware::mailbox::Mailbox;
use firmware::registers::write;
use firmware::timer::now;

/// The build id, little-endian, where tools find it in the ELF.
#[used]
#[unsafe(link_section = ".posthorn_build_id")]
static BUILD_ID: [u8; 8] = firmware::BUILD.to_le_bytes();

/// No entry.
const NONE: usize = usize::MAX;

/// A receive, or a message that waits.
#[derive(Clone, Copy)]
struct Entry {
    match_bits: u64,
    /// Of a receive; nothing in a message.
    ignore_bits: u64,
    /// Context and source.
    envelope: u32,
    /// Bits of `envelope` that a receive compares.
    compared: u32,
    next: usize,
}

/// A place that nothing is in.
const VACANT: Entry = Entry {
    match_bits: 0,
    ignore_bits: 0,
    envelope: 0,
    compared: 0,
    next: 0,
};

impl Entry {
    /// Number `n`, which no receive but number `n` takes: the tag differs or, where receives leave it open, the
    /// context.
    fn message(n: usize, command: &[u32]) -> Self {
        let n = n as u32;
        let context = match command[IGNORE] | command[OWN_MASKS] {
            0 => 0,
            _ => n,
        };
        Self {
            match_bits: u64::from(n.wrapping_mul(0x9e37_79b9)),
            ignore_bits: 0,
            envelope: context << 16 | (n & 7),
            compared: u32::MAX,
            next: NONE,
        }
    }

    /// The receive that agrees with message `n`, as `command` says.
    fn receive(n: usize, command: &[u32]) -> Self {
        let own = 1 << (n % 15) | 1 << (15 + n / 15 % 15);
        Self {
            ignore_bits: match command[OWN_MASKS] {
                0 => command[IGNORE].into(),
                _ => own,
            },
            compared: match command[ANY_SOURCE] {
                0 => u32::MAX,
                _ => 0xffff_0000,
            },
            ..Self::message(n, command)
        }
    }

    fn takes(&self, message: &Self) -> bool {
        (self.envelope ^ message.envelope) & self.compared == 0
            && (self.match_bits ^ message.match_bits) & !self.ignore_bits == 0
    }
}

/// The list. Places are masked, which the compiler takes for a bounds check.
struct List {
    entries: [Entry; MAX_DEPTH],
    first: usize,
    last: usize,
}

/// Half of the memory: there is no room for a second one on the stack.
static LIST: Mutex<RefCell<List>> = Mutex::new(RefCell::new(List {
    entries: [VACANT; MAX_DEPTH],
    first: 0,
    last: 0,
}));

const PLACE: usize = MAX_DEPTH - 1;
const _: () = assert!(MAX_DEPTH.is_power_of_two());

impl List {
    fn append(&mut self, at: usize, entry: Entry) {
        self.entries[at & PLACE] = entry;
        match self.last {
            NONE => self.first = at,
            last => self.entries[last & PLACE].next = at,
        }
        self.last = at;
    }

    /// Takes out the oldest that agrees.
    #[inline(always)]
    fn take(&mut self, agrees: impl Fn(&Entry) -> bool) -> usize {
        let (mut before, mut at) = (NONE, self.first);
        while at != NONE {
            let entry = &self.entries[at & PLACE];
            if agrees(entry) {
                break;
            }
            (before, at) = (at, entry.next);
        }
        if at != NONE {
            let next = self.entries[at & PLACE].next;
            match before {
                NONE => self.first = next,
                before => self.entries[before & PLACE].next = next,
            }
            if self.last == at {
                self.last = before;
            }
        }
        at
    }
}

/// Measures what the host asks for.
fn measure(list: &mut List, command: &[u32], answer: &mut [u32]) {
    let depth = (command[DEPTH] as usize).clamp(1, MAX_DEPTH);
    let unexpected = command[UNEXPECTED] != 0;
    let entry = |n| match unexpected {
        true => Entry::message(n, command),
        false => Entry::receive(n, command),
    };
    (list.first, list.last) = (NONE, NONE);
    for n in 0..depth {
        list.append(n, entry(n));
    }
    let start = now();
    let clock = now().wrapping_sub(start);
    // Marsaglia's xorshift.
    let mut random = command[SEED] | 1;
    for _ in 0..command[SAMPLES] {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        let n = ((u64::from(random) * depth as u64) >> 32) as usize;
        let (message, receive) = (Entry::message(n, command), Entry::receive(n, command));
        let start = now();
        let at = match unexpected {
            true => list.take(|waiting| receive.takes(waiting)),
            false => list.take(|posted| posted.takes(&message)),
        };
        let cycles = now().wrapping_sub(start) - clock;
        answer[FOUND] += u32::from(at == n);
        answer[CYCLES] += cycles;
        answer[LONGEST] = answer[LONGEST].max(cycles);
        list.append(n, entry(n));
    }
}

#[riscv_rt::entry]
fn main() -> ! {
    let mut mailbox = Mailbox::take_over(&[MailboxStatus::Restarted.code().into(), 0]);
    // SAFETY: enables the source of the wake-up; interrupts as such stay disabled.
    unsafe { riscv::register::mie::set_mext() };
    write(FIRMWARE_START, 1);
    loop {
        let Some(request) = mailbox.pending() else {
            riscv::asm::wfi();
            continue;
        };
        let mut answer = [0; abi::list_bench::ANSWER_WORDS];
        critical_section::with(|section| {
            let mut list = LIST.borrow_ref_mut(section);
            measure(&mut list, &mailbox.command(), &mut answer);
        });
        mailbox.answer(request, &answer);
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        riscv::asm::wfi();
    }
}
