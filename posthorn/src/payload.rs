//! The bytes of a replayed message: derived from who sends it to whom and its number between the
//! two, so that the receiver can check every one of them, and so that no two messages are alike.

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Which message: the immediate data carries `number`, the rest is known on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId {
    /// Sending rank.
    pub source: usize,
    /// Receiving rank.
    pub destination: usize,
    /// Messages from source to destination before this one.
    pub number: u64,
}

impl MessageId {
    fn stream(self) -> ChaCha8Rng {
        let mut seed = [0; 32];
        for (chunk, word) in seed.chunks_exact_mut(8).zip([
            self.source as u64,
            self.destination as u64,
            self.number,
            0x506f_7374_686f_726e,
        ]) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        ChaCha8Rng::from_seed(seed)
    }

    /// Writes the message's payload.
    pub fn fill(self, bytes: &mut [u8]) {
        self.stream().fill_bytes(bytes);
    }

    /// Position and value of the first byte of `bytes` that isn't the message's, if any.
    pub fn first_wrong(self, bytes: &[u8]) -> Option<(usize, u8)> {
        let mut stream = self.stream();
        let mut expected = [0; 64];
        for (k, chunk) in bytes.chunks(expected.len()).enumerate() {
            let expected = &mut expected[..chunk.len()];
            stream.fill_bytes(expected);
            if let Some(at) = chunk.iter().zip(expected.iter()).position(|(a, b)| a != b) {
                return Some((64 * k + at, chunk[at]));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_is_found_wherever_it_is() {
        let id = MessageId {
            source: 3,
            destination: 5,
            number: 7,
        };
        for length in [1, 63, 64, 65, 1024] {
            let mut bytes = vec![0; length];
            id.fill(&mut bytes);
            assert_eq!(id.first_wrong(&bytes), None);
            for at in [0, length / 2, length - 1] {
                let mut wrong = bytes.clone();
                wrong[at] ^= 1;
                assert_eq!(id.first_wrong(&wrong), Some((at, wrong[at])));
            }
        }
    }

    #[test]
    fn two_messages_differ() {
        let id = MessageId {
            source: 0,
            destination: 1,
            number: 0,
        };
        let mut bytes = [0; 16];
        MessageId { number: 1, ..id }.fill(&mut bytes);
        assert!(id.first_wrong(&bytes).is_some());
        MessageId {
            source: 1,
            destination: 0,
            number: 0,
        }
        .fill(&mut bytes);
        assert!(id.first_wrong(&bytes).is_some());
    }
}
