//! Library, firmware's decisions and the model of the card together, in any order: objects opened, closed, dropped (by strangers' threads too) and opened
//! again, connections made and ended, memory lent to peers and taken back, requests posted one by one and in lists, from buffers that are
//! shared and from memory of the program's, cancelled and polled for, firmware late, hung or starting anew, gates silent, links cut, frames lost, cards reset and cards that die.
//!
//! What must hold whatever happens:
//! - Each request completes once at most, with the buffer that it was posted with; once exactly, when its endpoint is closed, or its card reset or gone.
//! - The card never writes to a buffer that the program has, nor to what it had lent and has again, and a buffer that is shared comes back when nobody reads it any more.
//! - What was closed is closed at the card; in a quiet moment the card has as many endpoints as the program; and when all is dropped it has no mapping left.
//! - Memory of the program's is given back once, when the card can't reach it.
//! - A card that is open isn't opened again.
//! - Each call ends, in bounded time.

mod faults;
mod objects;
mod program;
mod traffic;
mod windows;

use host_driver::breaks::{self, Break as Promise};
use program::{Seen, World};
use soft_card::{Attachment, Break, Flaw};

/// Steps that a fabric lives at most.
const LIFE: u64 = 600;

/// Runs `steps` steps; what was seen, or what broke, and of which seed.
fn run(steps: u64, attachment: Attachment, flaw: Flaw) -> Result<Seen, String> {
    let mut total = Seen::default();
    for seed in 0..steps.div_ceil(LIFE) {
        let with_seed = |error: String| format!("seed {seed}: {error}");
        let mut world = World::new(seed, attachment, flaw).map_err(with_seed)?;
        for step in 0..LIFE {
            let stepped = world.step();
            stepped.map_err(|error| with_seed(format!("step {step}: {error}")))?;
        }
        for (what, count) in world.end().map_err(with_seed)? {
            *total.entry(what).or_default() += count;
        }
    }
    Ok(total)
}

fn assert_promises_kept(steps: u64, attachment: Attachment) {
    let seen = run(steps, attachment, Flaw::None).unwrap_or_else(|error| panic!("{error}"));
    println!("{steps} steps: {seen:?}");
    for (what, least) in [
        ("completions", steps / 20),
        ("flushed requests", steps / 2000),
        ("late answers", steps / 2000),
        ("closed endpoints", steps / 2000),
        ("stale cancels", steps / 2000),
        ("reopened cards", steps / 2000),
        ("unreachable cards", steps / 2000),
        ("quiet moments", steps / 2000),
        ("lists", steps / 2000),
        ("shared sends", steps / 2000),
        ("shared buffers that came back", steps / 2000),
        ("user regions", steps / 2000),
        ("strangers' drops", steps / 2000),
        ("second opens", steps / 2000),
        ("resets", steps / 4000),
        ("hardware time-outs", steps / 4000),
        ("reservations", steps / 4000),
        ("connections waited for", steps / 4000),
        ("ends waited for", steps / 10_000),
        ("steps after death", steps / 2000),
        ("rescues from hung firmware", steps / 20_000),
        ("keys", steps / 2000),
        ("keys revoked", steps / 10_000),
        ("peers revoked", steps / 20_000),
        ("fences", steps / 20_000),
        ("puts that landed", steps / 5000),
        ("gets that read", steps / 5000),
        ("refused accesses", steps / 2000),
        ("windows that came back", steps / 2000),
        ("restarts", 1),
    ] {
        let count = seen.get(what).copied().unwrap_or(0);
        assert!(count >= least, "{count} {what} prove little");
    }
}

#[test]
fn nothing_is_lost_or_doubled_and_no_memory_is_written_that_the_program_has() {
    assert_promises_kept(if cfg!(miri) { 1200 } else { 200_000 }, Attachment::Shared);
}

#[test]
#[cfg_attr(miri, ignore)]
fn nor_at_the_end_of_a_cable() {
    assert_promises_kept(30_000, Attachment::Cable);
}

#[test]
#[ignore = "ten million steps take minutes"]
fn nothing_is_lost_or_doubled_in_ten_million_steps() {
    assert_promises_kept(10_000_000, Attachment::Shared);
}

#[test]
#[ignore = "threads and channels take minutes"]
fn nor_in_three_hundred_thousand_steps_at_the_end_of_a_cable() {
    assert_promises_kept(300_000, Attachment::Cable);
}

#[test]
#[cfg_attr(miri, ignore)]
fn cards_that_break_a_promise_are_noticed() {
    for (flaw, message) in [
        (Flaw::Gates(Break::CompletesTwice), "completions of nothing"),
        (Flaw::WritesLate, "wrote to the program's memory"),
        (Flaw::ClosesInName, "in name only"),
        (Flaw::KeepsGates, "endpoints"),
        // Of what a program had lent and has again.
        (
            Flaw::Gates(Break::GrantKept),
            "wrote to the program's memory",
        ),
    ] {
        let error = run(200_000, Attachment::Shared, flaw).unwrap_err();
        assert!(error.contains(message), "{flaw:?}: {error}");
    }
}

/// Those for which no memory is freed that the card of a broken library may still write to.
#[test]
#[cfg_attr(miri, ignore)]
fn libraries_that_break_a_promise_are_noticed() {
    for (promise, message) in [
        (Promise::OpensTwice, "was opened a second time"),
        (Promise::UnsharesInFlight, "came back as"),
        (
            Promise::DropsOwnerUnreached,
            "while the card could reach it",
        ),
        (Promise::ForgetsStrangers, "endpoints"),
        (Promise::ResetsInName, "endpoints after a reset"),
        // After a restart, or when the program resets the card next.
        (Promise::TrustsRestart, "endpoints after a re"),
    ] {
        let broken = || run(400_000, Attachment::Shared, Flaw::None);
        let Err(error) = breaks::with(promise, broken) else {
            panic!("{promise:?} isn't noticed");
        };
        assert!(error.contains(message), "{promise:?}: {error}");
    }
}
