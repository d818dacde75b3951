//! What is left when links, hosts and cards fail at random. Each test is named as the sentence that it proves.

mod kill;
mod plan;
mod soak;
