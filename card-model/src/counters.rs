//! The counters of a card.

use abi::control::Counter;

/// All counters. They wrap.
#[derive(Clone, Debug)]
pub struct Counters {
    values: Vec<u32>,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            values: vec![0; Counter::ALL.len()],
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
}
