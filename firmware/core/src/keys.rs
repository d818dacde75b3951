//! Tags of remote keys: 48 bits that nobody foresees.
//!
//! ```text
//!  random words ─► health tests ─┬─ 1024 of the start-up ─► dropped
//!                                └─ then 64, folded into the key ─► ChaCha20 ─► tags
//! ```
//!
//! The generator is D. J. Bernstein's ChaCha with 20 rounds: who has seen all tags so far knows nothing of the next. What it is seeded
//! with is tested as NIST SP 800-90B, section 4.4, says: a repetition count and an adaptive proportion, both for a source of which
//! 8 of the 32 bits of a word are unforeseeable, with a false alarm in 2^20 words. Before the first key 1024 words are tested and dropped
//! (section 4.3), some in each step of the firmware, so that it goes on meanwhile.

use crate::chacha::ChaCha;

/// Where random words come from.
pub(crate) trait EntropySource {
    /// The next word.
    fn word(&mut self) -> u32;
}

/// So often may a word come one after the other. SP 800-90B, 4.4.1: 1 + 20 / 8 bits, rounded up.
const REPETITIONS: u16 = 4;
/// Words in which the first is counted,
const WINDOW: u16 = 512;
/// and so often it may not be there. SP 800-90B, 4.4.2: one more than what a binomial distribution of 512 and 2^-8 stays below but for 2^-20.
const PROPORTION: u16 = 13;
/// Words that are tested before one is used.
const START_UP: u16 = 1024;
/// Words that make the seed: 512 unforeseeable bits for 256.
const SEED: u16 = 64;
/// Words drawn in a step.
const SLICE: u16 = 64;

/// The health test that the source has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Repetition = 1,
    Proportion = 2,
}

/// The health tests.
#[derive(Default)]
struct Health {
    last: u32,
    repeated: u16,
    first: u32,
    /// Words of the window so far, and those like its first.
    seen: u16,
    alike: u16,
}

impl Health {
    fn test(&mut self, word: u32) -> Result<(), Fault> {
        self.repeated = match word == self.last {
            true => self.repeated + 1,
            false => 1,
        };
        self.last = word;
        if self.repeated >= REPETITIONS {
            return Err(Fault::Repetition);
        }
        if self.seen == 0 {
            (self.first, self.alike) = (word, 0);
        }
        self.alike += u16::from(word == self.first);
        self.seen = (self.seen + 1) % WINDOW;
        match self.alike >= PROPORTION {
            true => Err(Fault::Proportion),
            false => Ok(()),
        }
    }
}

/// Makes tags.
#[derive(Default)]
pub(crate) struct KeyMaker {
    health: Health,
    /// Words drawn.
    drawn: u16,
    seed: [u32; 8],
    stream: Option<ChaCha>,
    fault: Option<Fault>,
}

impl KeyMaker {
    /// Draws some words more. Whether tags can be made.
    ///
    /// # Errors
    /// The test that the source has failed, now or before. It isn't drawn from any more.
    pub(crate) fn prepare(
        &mut self,
        source: &mut impl EntropySource,
        untested: bool,
    ) -> Result<bool, Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.stream.is_some() {
            return Ok(true);
        }
        for _ in 0..SLICE {
            let word = source.word();
            if let Err(fault) = self.health.test(word)
                && !untested
            {
                self.fault = Some(fault);
                return Err(fault);
            }
            if self.drawn >= START_UP {
                let place = usize::from(self.drawn % 8);
                // Each word of the key is made of eight, none of which cancels another but by chance.
                self.seed[place] = self.seed[place].rotate_left(5) ^ word;
            }
            self.drawn += 1;
        }
        if self.drawn == START_UP + SEED {
            self.stream = Some(ChaCha::new(core::mem::take(&mut self.seed)));
        }
        Ok(self.stream.is_some())
    }

    /// Whether tags can be made.
    pub(crate) const fn is_prepared(&self) -> bool {
        self.stream.is_some()
    }

    /// The next tag. Zero before the maker is prepared.
    pub(crate) fn tag(&mut self) -> u64 {
        let Some(stream) = &mut self.stream else {
            return 0;
        };
        let (low, high) = (stream.word(), stream.word() as u16);
        u64::from(high) << 32 | u64::from(low)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        EntropySource, Fault, Health, KeyMaker, PROPORTION, REPETITIONS, SEED, SLICE, START_UP,
        WINDOW,
    };

    struct Words<F>(F);

    impl<F: FnMut() -> u32> EntropySource for Words<F> {
        fn word(&mut self) -> u32 {
            (self.0)()
        }
    }

    /// A generator of G. Marsaglia's ("Xorshift RNGs", 2003).
    fn words(mut state: u32) -> impl FnMut() -> u32 {
        move || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state
        }
    }

    fn prepared(source: impl FnMut() -> u32) -> Result<KeyMaker, Fault> {
        let (mut maker, mut source) = (KeyMaker::default(), Words(source));
        let mut steps = 0;
        while !maker.prepare(&mut source, false)? {
            steps += 1;
        }
        assert_eq!(steps + 1, (START_UP + SEED) / SLICE);
        Ok(maker)
    }

    #[test]
    fn the_cutoff_is_that_of_the_standard() {
        let p: f64 = 1.0 / 256.0;
        let below = |cutoff: u16| {
            let mut term = (1.0 - p).powi(WINDOW.into());
            let mut sum = 0.0;
            for k in 0..cutoff {
                sum += term;
                term *= f64::from(WINDOW - k) / f64::from(k + 1) * p / (1.0 - p);
            }
            sum
        };
        let alarm = (-20.0_f64).exp2();
        assert!(1.0 - below(PROPORTION) <= alarm);
        assert!(1.0 - below(PROPORTION - 1) > alarm);
    }

    #[test]
    fn tags_of_one_seed_repeat_and_those_of_another_differ() {
        let tags = |seed| {
            let mut maker = prepared(words(seed)).unwrap();
            [(); 100].map(|()| maker.tag())
        };
        let (one, other) = (tags(1), tags(2));
        assert_eq!(one, tags(1));
        let mut all: [u64; 200] = core::array::from_fn(|k| match k {
            0..100 => one[k],
            _ => other[k - 100],
        });
        all.sort_unstable();
        assert!(all.windows(2).all(|two| two[0] != two[1]));
        assert!(all.iter().all(|tag| tag >> 48 == 0));
        // All bits are used.
        let (or, and) = all
            .iter()
            .fold((0, !0), |(or, and), tag| (or | tag, and & tag));
        assert_eq!((or, and & ((1 << 48) - 1)), ((1 << 48) - 1, 0));
    }

    #[test]
    fn a_source_that_sticks_fails_at_the_word_that_is_one_too_many() {
        let mut health = Health::default();
        let mut good = words(1);
        for _ in 0..10 * WINDOW {
            assert_eq!(health.test(good()), Ok(()));
        }
        for _ in 1..REPETITIONS {
            assert_eq!(health.test(7), Ok(()));
        }
        assert_eq!(health.test(7), Err(Fault::Repetition));
        assert_eq!(prepared(|| 7).err(), Some(Fault::Repetition));
    }

    #[test]
    fn a_source_that_often_says_the_same_fails() {
        let (mut good, mut count) = (words(1), 0_u32);
        let mut biased = move || {
            count += 1;
            match count % 3 {
                0 => good(),
                _ => 7,
            }
        };
        assert_eq!(prepared(&mut biased).err(), Some(Fault::Proportion));
        let mut maker = KeyMaker::default();
        let mut source = Words(biased);
        while maker.prepare(&mut source, false) == Ok(false) {}
        // For good.
        assert!(maker.prepare(&mut Words(words(1)), false).is_err());
    }
}
