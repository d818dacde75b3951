//! What is on the links between a test's cards, be they of gates or of the model: taps that look at frames, change, lose, repeat and delay them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sim::Cluster;
use sim::fabric::{LinkFilter, Passing, Tap};
use sim::stream::Frame;
use soft_card::SoftFabric;

/// The links of a run, with the taps that are on them.
#[derive(Default)]
pub struct Wires {
    taps: Vec<(LinkFilter, Box<dyn Tap>)>,
}

impl Wires {
    /// Links with one tap.
    pub fn tapped(filter: LinkFilter, tap: impl Tap + 'static) -> Self {
        Self::default().tap(filter, tap)
    }

    /// Puts a tap on links, behind those that are there.
    #[must_use]
    pub fn tap(mut self, filter: LinkFilter, tap: impl Tap + 'static) -> Self {
        self.taps.push((filter, Box::new(tap)));
        self
    }

    /// What becomes of a frame.
    fn pass(&mut self, passing: Passing) -> Vec<Passing> {
        let mut all = vec![passing];
        for (filter, tap) in &mut self.taps {
            let mut passed = Vec::new();
            for passing in all {
                if filter.covers(passing.source, passing.destination) {
                    tap.pass(passing, &mut passed);
                } else {
                    passed.push(passing);
                }
            }
            all = passed;
        }
        all
    }

    /// Puts them between Verilated cards.
    pub(crate) fn onto_gates(mut self, cluster: Cluster) -> Cluster {
        match self.taps.is_empty() {
            true => cluster,
            false => cluster.tap(LinkFilter::ALL, move |passing, out: &mut Vec<Passing>| {
                out.extend(self.pass(passing))
            }),
        }
    }

    /// Puts them between cards of the model. A frame that its MAC finds bad comes with a wrong CRC, which is what the card makes of it.
    pub(crate) fn onto_model(mut self, fabric: &SoftFabric) {
        if self.taps.is_empty() {
            return;
        }
        fabric.tap(move |passing, out| {
            let beats = passing.bytes.len().div_ceil(8) as u64;
            let frame = Frame {
                bytes: passing.bytes,
                first: (passing.sent + 1).saturating_sub(beats),
                last: passing.sent,
                bad: false,
            };
            let all = self.pass(Passing {
                frame,
                source: passing.source,
                destination: passing.destination,
                delay: passing.delay,
            });
            out.extend(all.into_iter().map(|mut passed| {
                if passed.frame.bad
                    && let Some(byte) = passed.frame.bytes.last_mut()
                {
                    *byte ^= 0xff;
                }
                soft_card::Passing {
                    bytes: passed.frame.bytes,
                    sent: passing.sent,
                    source: passed.source,
                    destination: passed.destination,
                    delay: passed.delay,
                }
            }));
        });
    }
}

/// What taps count, a number for each run.
#[derive(Default)]
pub struct Tally(Mutex<Vec<Arc<AtomicU64>>>);

impl Tally {
    /// The count of the next run.
    pub fn next(&self) -> Arc<AtomicU64> {
        let count = Arc::default();
        self.keep(Arc::clone(&count));
        count
    }

    /// Takes what counts the next run.
    pub fn keep(&self, count: Arc<AtomicU64>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(count);
    }

    /// The counts of all runs.
    pub fn counts(&self) -> Vec<u64> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter()
            .map(|count| count.load(Ordering::Relaxed))
            .collect()
    }
}
