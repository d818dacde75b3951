//! The counters of a card, and those of its pairs.

use abi::control::{Counter, PairCounter, pair_counter_of_index};
use abi::limits::MAX_PAIRS;

/// All counters. They wrap.
#[derive(Clone, Debug)]
pub struct Counters {
    values: Vec<u32>,
    of_pairs: Vec<[u32; PairCounter::ALL.len()]>,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            values: vec![0; Counter::ALL.len()],
            of_pairs: vec![[0; PairCounter::ALL.len()]; MAX_PAIRS],
        }
    }
}

impl Counters {
    /// It has happened once more.
    pub fn count(&mut self, counter: Counter) {
        let value = &mut self.values[usize::from(counter.code())];
        *value = value.wrapping_add(1);
    }

    /// How often it has happened.
    pub fn read(&self, counter: Counter) -> u32 {
        self.values[usize::from(counter.code())]
    }

    /// The same, by number; 0 if no counter has it.
    pub fn read_index(&self, index: u16) -> u32 {
        self.values.get(usize::from(index)).copied().unwrap_or(0)
    }

    /// It has happened once more, and has to do with this pair.
    pub fn count_of_pair(&mut self, pair: u16, counter: PairCounter) {
        if let Some(counter) = counter.of_card() {
            self.count(counter);
        }
        if let Some(of_pair) = self.of_pairs.get_mut(usize::from(pair)) {
            let value = &mut of_pair[usize::from(counter.code())];
            *value = value.wrapping_add(1);
        }
    }

    /// The pair is connected: its counters start.
    pub fn start_pair(&mut self, pair: u16) {
        if let Some(of_pair) = self.of_pairs.get_mut(usize::from(pair)) {
            *of_pair = Default::default();
        }
    }

    /// A counter of a pair, by the index of a `PairCounterRead`; 0 if there is no such pair.
    pub fn read_pair_index(&self, index: u16) -> u32 {
        let (pair, counter) = pair_counter_of_index(index);
        let of_pair = self.of_pairs.get(usize::from(pair));
        of_pair.map_or(0, |values| values[usize::from(counter)])
    }
}
