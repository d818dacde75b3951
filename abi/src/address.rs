//! Addresses that programs tell each other, by a way of their own, before they connect. The card sees neither.

/// Field list of [`PairAddress`].
#[macro_export]
macro_rules! pair_address_layout {
    ($apply:ident) => {
        $apply! {
            /// What the other side has to know of a pair to connect to it by `ConnectPair`. Pair and endpoint are places.
            PairAddress, PairAddressView, 4 words {
                /// Ethernet address of the pair's card; the least significant byte is first on the wire.
                mac: u64 = 48,
                /// Zero.
                reserved0: u16 = 16,
                /// Pair.
                pair: u32 = 32,
                /// Its endpoint.
                endpoint: u32 = 32,
                /// Epoch of the endpoint.
                epoch: u32 = 32,
                /// Its half of the cookie.
                nonce: u32 = 32,
                /// Envelopes that it grants.
                credits: u8 = 8,
                /// The job that the endpoint is of.
                job: u32 = 24,
                /// [`ABI_VERSION`](crate::ABI_VERSION) of whoever wrote it.
                version: u32 = 32,
            }
        }
    };
}

/// Field list of [`EndpointAddress`].
#[macro_export]
macro_rules! endpoint_address_layout {
    ($apply:ident) => {
        $apply! {
            /// What names an endpoint on the network.
            EndpointAddress, EndpointAddressView, 1 words {
                /// Ethernet address of its card; the least significant byte is first on the wire.
                mac: u64 = 48,
                /// Its place there.
                endpoint: u16 = 16,
            }
        }
    };
}

use crate::define_layout;
endpoint_address_layout!(define_layout);
pair_address_layout!(define_layout);
