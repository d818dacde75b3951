//! What becomes of a host's program: frozen for some time, killed in some cycle.
//!
//! ```text
//!  program ──► library ──► transport ──► Fate: pause, doorbell
//!     ▲                                   │ killed: unwinds the thread
//!     └── drops what it had ◄─────────────┘ as an operating system closes what a process leaves
//! ```
//!
//! A process that is killed stops in the call of its transport in which the cycle finds it, and its thread unwinds. What the program had is
//! dropped on the way: the library then closes endpoints and regions and gives memory back when the card is done with it, by commands that take the time
//! that they take. The program itself does nothing more. A command to the firmware that is under way ends first, as a system call does.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use host_driver::transport::{PauseResult, Watch};

use super::plan::{FaultPlan, Span};

/// What a thread unwinds with whose process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Killed;

thread_local! {
    /// Cycle in which the thread's program began.
    static SINCE: Cell<u64> = const { Cell::new(0) };
    /// System calls that the thread is in.
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Runs a program as a process that begins in cycle `now`. A kill of that cycle or a later one ends it; one that was earlier was another's.
///
/// # Errors
/// If it was killed.
pub fn process<T>(now: u64, program: impl FnOnce() -> T) -> Result<T, Killed> {
    let before = SINCE.replace(now);
    let result = catch_unwind(AssertUnwindSafe(program));
    SINCE.set(before);
    result.map_err(|panic| match panic.downcast::<Killed>() {
        Ok(killed) => *killed,
        Err(panic) => resume_unwind(panic),
    })
}

/// What a plan has for the host of one card. A transport asks it in each call in which time can pass.
#[derive(Clone, Debug, Default)]
pub struct Fate {
    kills: Vec<u64>,
    freezes: Vec<Span>,
}

impl Fate {
    /// That of the host of `card`.
    pub fn of(plan: &FaultPlan, card: usize) -> Self {
        let mine = plan.hosts.iter().filter(|host| host.card == card);
        let mut kills: Vec<u64> = mine.clone().filter_map(|host| host.kill).collect();
        kills.sort_unstable();
        Self {
            kills,
            freezes: mine.filter_map(|host| host.freeze).collect(),
        }
    }

    /// The cycle in which the calling thread's process is killed.
    fn end(&self) -> u64 {
        let since = SINCE.get();
        let kill = self.kills.iter().copied().find(|&kill| kill >= since);
        kill.unwrap_or(u64::MAX)
    }

    fn is_spared() -> bool {
        CALLS.get() > 0 || std::thread::panicking()
    }

    /// Runs a system call, which a killed process ends before it goes.
    pub fn system_call<T>(&self, call: impl FnOnce() -> T) -> T {
        struct Left;
        impl Drop for Left {
            fn drop(&mut self) {
                CALLS.set(CALLS.get() - 1);
            }
        }
        CALLS.set(CALLS.get() + 1);
        let _left = Left;
        call()
    }

    /// Whether a process that is alive may ring a doorbell now: what the dead rings isn't heard.
    pub fn rings(&self, now: u64) -> bool {
        std::thread::panicking() || now < self.end()
    }

    /// Pauses as `pause` does, of a transport whose clock is `now`; unwinds the thread if its process is killed meanwhile, and goes on when it isn't frozen.
    pub fn pause(
        &self,
        now: impl Fn() -> u64,
        pause: impl Fn(&[Watch], u64) -> PauseResult,
        watch: &[Watch],
        deadline: u64,
    ) -> PauseResult {
        if (self.kills.is_empty() && self.freezes.is_empty()) || Self::is_spared() {
            return pause(watch, deadline);
        }
        let end = self.end();
        let is_over =
            |result: PauseResult| matches!(result, PauseResult::Closed | PauseResult::Unreachable);
        loop {
            let result = pause(watch, deadline.min(end));
            if is_over(result) {
                return result;
            }
            let frozen = |cycle: u64| self.freezes.iter().find(|span| span.contains(cycle));
            while now() < end
                && let Some(span) = frozen(now())
            {
                let result = pause(&[], span.end.min(end));
                if is_over(result) {
                    return result;
                }
            }
            if now() >= end {
                resume_unwind(Box::new(Killed));
            }
            if result != PauseResult::Deadline || now() >= deadline {
                return result;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::HostPlan;
    use host_driver::transport::Line;

    fn fate(kill: Option<u64>, freeze: Option<Span>) -> Fate {
        let host = HostPlan {
            card: 1,
            kill,
            freeze,
        };
        let plan = FaultPlan {
            hosts: vec![host],
            ..FaultPlan::default()
        };
        assert!(Fate::of(&plan, 0).kills.is_empty());
        Fate::of(&plan, 1)
    }

    /// A clock on which a pause ends when it should, or by an interrupt every 70 cycles if any is watched.
    struct Toy(Cell<u64>);

    impl Toy {
        fn pause(&self, fate: &Fate, watch: &[Watch], deadline: u64) -> PauseResult {
            let pause = |watch: &[Watch], deadline: u64| {
                let interrupt = self.0.get() + 70;
                let line = watch.first().map(|watch| watch.line);
                let (cycle, result) = match line {
                    Some(line) if interrupt < deadline => (interrupt, PauseResult::Interrupt(line)),
                    _ => (deadline, PauseResult::Deadline),
                };
                self.0.set(self.0.get().max(cycle));
                result
            };
            fate.pause(|| self.0.get(), pause, watch, deadline)
        }
    }

    const WATCH: Watch = Watch {
        line: Line::Library,
        seen: 0,
    };

    #[test]
    fn a_process_stops_in_the_cycle_in_which_it_is_killed_and_the_next_one_lives() {
        let (fate, clock) = (fate(Some(100), None), Toy(Cell::new(0)));
        let died = process(0, || {
            assert_eq!(clock.pause(&fate, &[], 50), PauseResult::Deadline);
            let _ = clock.pause(&fate, &[WATCH], 90);
            let _ = clock.pause(&fate, &[WATCH], u64::MAX);
            unreachable!("it is dead");
        });
        assert_eq!((died, clock.0.get()), (Err(Killed), 100));
        let lived = process(101, || {
            let result = clock.pause(&fate, &[], 5000);
            (result, fate.rings(5000))
        });
        assert_eq!(lived, Ok((PauseResult::Deadline, true)));
    }

    #[test]
    fn a_killed_process_ends_its_system_call_and_rings_no_more() {
        let (fate, clock) = (fate(Some(100), None), Toy(Cell::new(0)));
        let died: Result<(), Killed> = process(0, || {
            let result = fate.system_call(|| clock.pause(&fate, &[], 500));
            assert_eq!(result, PauseResult::Deadline);
            assert!(fate.rings(99) && !fate.rings(500));
            let _ = clock.pause(&fate, &[], 501);
        });
        assert_eq!(died, Err(Killed));
        // A panic of the program's own is no kill.
        let panic = catch_unwind(|| process(0, || panic!("of its own")));
        assert!(panic.is_err());
    }

    #[test]
    fn a_frozen_host_goes_on_when_the_time_is_over() {
        let span = Span {
            begin: 60,
            end: 300,
        };
        let (fate, clock) = (fate(None, Some(span)), Toy(Cell::new(0)));
        let _ = clock.pause(&fate, &[], 50);
        assert_eq!(clock.0.get(), 50);
        let line = PauseResult::Interrupt(Line::Library);
        assert_eq!(clock.pause(&fate, &[WATCH], 1000), line);
        assert_eq!(clock.0.get(), 300);
        assert_eq!(clock.pause(&fate, &[WATCH], 1000), line);
        assert_eq!(clock.0.get(), 370);
    }
}
