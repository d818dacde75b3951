//! What threads share in the library, in every order of their steps that memory allows.

mod primitives {
    //! loom's, in the place of the standard library's.
    pub use loom::sync::atomic::{AtomicUsize, fence};
    pub use loom::sync::{Mutex, MutexGuard};
}

mod transport {
    pub use host_driver::transport::Watch;
}

#[path = "../src/sync.rs"]
#[allow(dead_code, unreachable_pub)]
mod sync;

use host_driver::transport::Line;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use sync::{CardMutex, Waits};
use transport::Watch;

/// Notifications, as a transport has them; a wait is a wait for one.
struct Notifications {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Notifications {
    fn new() -> Self {
        Self {
            count: Mutex::new(0),
            changed: Condvar::new(),
        }
    }
}

impl Waits for Notifications {
    fn notifications(&self) -> Watch {
        let line = Line::Library;
        let seen = *self.count.lock().unwrap();
        Watch { line, seen }
    }

    fn wait(&self, watch: Watch) {
        let mut count = self.count.lock().unwrap();
        while *count == watch.seen {
            count = self.changed.wait(count).unwrap();
        }
    }

    fn wake(&self) {
        *self.count.lock().unwrap() += 1;
        self.changed.notify_all();
    }
}

/// Adds one under the lock, and lets others run meanwhile.
fn add(sum: &CardMutex<u32>, waits: &impl Waits) {
    let mut held = sum.lock(waits);
    let before = *held;
    thread::yield_now();
    *held = before + 1;
}

/// A thread that nobody wakes is a deadlock, which loom reports.
#[test]
fn no_waiter_for_a_lock_is_forgotten() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.check(|| {
        let shared = Arc::new((CardMutex::new(0), Notifications::new()));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || add(&shared.0, &shared.1))
        };
        add(&shared.0, &shared.1);
        other.join().unwrap();
        assert_eq!(*shared.0.lock(&shared.1), 2);
    });
}

#[test]
fn nor_is_one_of_two() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let shared = Arc::new((CardMutex::new(0), Notifications::new()));
        let others = [(); 2].map(|()| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || add(&shared.0, &shared.1))
        });
        add(&shared.0, &shared.1);
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(*shared.0.lock(&shared.1), 3);
    });
}

/// A card whose notifications wake nobody.
struct Silent(Notifications);

impl Waits for Silent {
    fn notifications(&self) -> Watch {
        self.0.notifications()
    }

    fn wait(&self, watch: Watch) {
        self.0.wait(watch);
    }

    fn wake(&self) {}
}

/// A test of the tests: without the waking a waiter sleeps for ever, and that is noticed. loom takes the process along, so it is another one's.
#[test]
fn a_holder_that_wakes_nobody_is_noticed() {
    const INNER: &str = "POSTHORN_LOOM_SILENT";
    if std::env::var_os(INNER).is_some() {
        return loom::model(|| {
            let shared = Arc::new((CardMutex::new(0), Silent(Notifications::new())));
            let other = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || add(&shared.0, &shared.1))
            };
            add(&shared.0, &shared.1);
            other.join().unwrap();
        });
    }
    let inner = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "a_holder_that_wakes_nobody_is_noticed",
            "--nocapture",
        ])
        .env(INNER, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&inner.stderr);
    assert!(
        !inner.status.success() && told.contains("deadlock"),
        "{told}"
    );
}
