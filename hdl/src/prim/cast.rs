//! The same bits as another type: memory words as a struct, a struct as memory words.
//!
//! ```text
//!   from: Bits<512> ──►│ Cast │──► to: SendRequest
//! ```
//!
//! There is nothing in it but wires. A kernel can write `.into()` itself where the types are known;
//! this is the block for those that are generic over them.

use crate::prelude::*;

/// Reinterprets the bits of an `A` as a `B` of the same width.
#[derive(LogicBlock)]
pub struct Cast<A: Synth + Into<B>, B: Synth> {
    /// The value.
    pub from: Signal<In, A>,
    /// Its bits.
    pub to: Signal<Out, B>,
}

impl<A: Synth + Into<B>, B: Synth> Default for Cast<A, B> {
    fn default() -> Self {
        assert_eq!(A::BITS, B::BITS, "a cast keeps the number of bits");
        Cast {
            from: Signal::default(),
            to: Signal::default(),
        }
    }
}

#[module]
impl<A: Synth + Into<B>, B: Synth> Logic for Cast<A, B> {
    #[hdl_gen]
    fn update(&mut self) {
        self.to.next = self.from.val().into();
    }
}
