//! Pins by their names, for tests that look one up in each cycle.
//!
//! A test of a block is compiled quickly and runs slowly. So the look-up is here, where it is optimised, and not in a map of the test's own:
//! that took most of the time of the blocks' tests.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::{Model, Port};

/// A hash of eight bytes at a time. Names are short, and nobody chooses them to collide.
#[derive(Default)]
struct Quick(u64);

impl Quick {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.mix(u64::from_le_bytes(word.try_into().expect("eight bytes")));
        }
        let rest = words.remainder().iter();
        let rest = rest.fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.mix(rest);
    }

    fn finish(&self) -> u64 {
        // The map looks at the upper bits and at the lower ones.
        self.0 ^ (self.0 >> 32)
    }
}

type ByName<T> = HashMap<&'static str, T, BuildHasherDefault<Quick>>;

/// Valid and ready of a stream.
#[derive(Clone, Copy)]
struct Stream {
    valid: Port,
    ready: Port,
}

/// The pins of one model, by name; and its streams, each of which has a pin that ends in `_valid` and one that ends in `_ready`.
///
/// # Panics
/// Each method but [`Pins::has`] if there is no such pin or stream, and as the method of [`Model`] does that it calls.
pub struct Pins {
    ports: ByName<Port>,
    streams: ByName<Stream>,
}

impl Pins {
    /// Those of `model`.
    pub fn of(model: &Model) -> Self {
        let named = |info: &crate::PortInfo| {
            let port = model.port(info.name);
            (info.name, port.expect("the model lists it"))
        };
        let ports: ByName<Port> = model.ports().iter().map(named).collect();
        let stream = |(&name, &valid): (&&'static str, &Port)| {
            let stream = name.strip_suffix("_valid")?;
            let ready = *ports.get(format!("{stream}_ready").as_str())?;
            Some((stream, Stream { valid, ready }))
        };
        let streams = ports.iter().filter_map(stream).collect();
        Pins { ports, streams }
    }

    /// Whether there is such a pin.
    #[inline(never)]
    pub fn has(&self, name: &str) -> bool {
        self.ports.contains_key(name)
    }

    /// The pin.
    #[inline(never)]
    pub fn port(&self, name: &str) -> Port {
        match self.ports.get(name) {
            Some(port) => *port,
            None => panic!("there is no pin {name}"),
        }
    }

    /// [`Model::get`].
    #[inline(never)]
    pub fn get(&self, model: &Model, name: &str) -> u64 {
        model.get(self.port(name))
    }

    /// [`Model::set`].
    #[inline(never)]
    pub fn set(&self, model: &mut Model, name: &str, value: u64) {
        model.set(self.port(name), value);
    }

    /// [`Model::get_wide`].
    #[inline(never)]
    pub fn get_wide(&self, model: &Model, name: &str, words: &mut [u32]) {
        model.get_wide(self.port(name), words);
    }

    /// [`Model::set_wide`].
    #[inline(never)]
    pub fn set_wide(&self, model: &mut Model, name: &str, words: &[u32]) {
        model.set_wide(self.port(name), words);
    }

    fn stream(&self, name: &str) -> Stream {
        match self.streams.get(name) {
            Some(stream) => *stream,
            None => panic!("there is no stream {name}"),
        }
    }

    /// Whether something is transferred on a stream.
    #[inline(never)]
    pub fn moves(&self, model: &Model, stream: &str) -> bool {
        let Stream { valid, ready } = self.stream(stream);
        model.get(valid) != 0 && model.get(ready) != 0
    }

    /// Offers, or doesn't, on a stream into the model.
    #[inline(never)]
    pub fn offer(&self, model: &mut Model, stream: &str, valid: bool) {
        model.set(self.stream(stream).valid, valid.into());
    }

    /// Takes, or doesn't, from a stream out of the model.
    #[inline(never)]
    pub fn take(&self, model: &mut Model, stream: &str, ready: bool) {
        model.set(self.stream(stream).ready, ready.into());
    }
}
