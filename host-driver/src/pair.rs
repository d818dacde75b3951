//! Pairs: two endpoints that may talk, and what they tell each other beforehand.

use abi::ABI_VERSION;
use abi::address;
use abi::limits::MAX_CREDITS;
use abi::mailbox::{PairId, id_index};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// An open pair of one endpoint. It is a name, valid until the pair or its endpoint is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    pub(crate) index: u16,
    pub(crate) serial: u64,
}

impl Pair {
    /// A name for a pair just opened, that no other pair of this process ever had.
    pub(crate) fn new(index: u16) -> Self {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        Self {
            index,
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The pair's number on its card, as captures and the card's log show it.
    pub fn index(&self) -> u16 {
        self.index
    }
}

/// What the other side has to know of a pair to connect to it. How it gets there is the application's
/// business: both sides open a pair, exchange addresses, and connect.
///
/// It is of the pair's place on its card; the generation of that place is the card's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairAddress {
    pub(crate) id: PairId,
    pub(crate) mac: u64,
}

/// What names an endpoint on the network: its card and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EndpointAddress {
    pub(crate) mac: u64,
    pub(crate) endpoint: u16,
}

impl EndpointAddress {
    /// Length of an address as bytes.
    pub const BYTES: usize = address::EndpointAddress::BYTES;

    /// The address as bytes: [`abi::address::EndpointAddress`].
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let (mac, endpoint) = (self.mac, self.endpoint);
        let mut bytes = [0; Self::BYTES];
        address::EndpointAddress { mac, endpoint }.emit(&mut bytes);
        bytes
    }

    /// Reads an address. Each eight bytes are one.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let view = address::EndpointAddressView::new_unchecked(bytes);
        Self {
            mac: view.mac(),
            endpoint: view.endpoint(),
        }
    }
}

impl fmt::Display for EndpointAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g, ..] = self.mac.to_le_bytes();
        let endpoint = self.endpoint;
        write!(
            f,
            "endpoint {endpoint} of card {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}"
        )
    }
}

impl PairAddress {
    pub(crate) fn new(id: PairId, mac: u64) -> Self {
        let place = |id| u32::from(id_index(id));
        Self {
            id: PairId {
                pair: place(id.pair),
                endpoint: place(id.endpoint),
                // What its card holds is nothing to the peer.
                sends: 0,
                ..id
            },
            mac,
        }
    }

    /// Length of an address as bytes.
    pub const BYTES: usize = address::PairAddress::BYTES;

    /// The address as bytes: [`abi::address::PairAddress`].
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        address::PairAddress {
            mac: self.mac,
            pair: self.id.pair,
            endpoint: self.id.endpoint,
            epoch: self.id.epoch,
            nonce: self.id.nonce,
            credits: self.id.credits as u8,
            job: self.id.job,
            version: ABI_VERSION,
            ..Default::default()
        }
        .emit(&mut bytes);
        bytes
    }

    /// Reads an address. None if it can't be one of this version.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let found = address::PairAddressView::new_unchecked(bytes).to_repr();
        let id = PairId {
            pair: found.pair,
            endpoint: found.endpoint,
            epoch: found.epoch,
            nonce: found.nonce,
            credits: found.credits.into(),
            sends: 0,
            job: found.job,
        };
        let valid = found.version == ABI_VERSION
            && found.reserved0 == 0
            && [id.pair, id.endpoint, id.epoch]
                .iter()
                .all(|&word| word <= 0xffff)
            && (1..=u32::from(MAX_CREDITS)).contains(&id.credits);
        let mac = found.mac;
        valid.then_some(Self { id, mac })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_its_bytes_and_nonsense_is_refused() {
        let address = PairAddress {
            id: PairId {
                pair: 7,
                endpoint: 3,
                epoch: 0xffff,
                nonce: 0xdead_beef,
                credits: 16,
                sends: 0,
                job: 0xab_cdef,
            },
            mac: 0x0605_0403_0202,
        };
        let bytes = address.to_bytes();
        assert_eq!(PairAddress::from_bytes(&bytes), Some(address));
        for (at, value) in [(7, 1), (10, 1), (24, 65), (24, 0), (28, 99)] {
            let mut broken = bytes;
            broken[at] = value;
            assert_eq!(PairAddress::from_bytes(&broken), None, "byte {at}");
        }
    }
}
