//! All tops and all proofs, of every room.

use crate::proofs::Proof;
use crate::tops::{Top, refusal};
use crate::verilog::picks;

/// All tops.
pub fn tops() -> Vec<Top> {
    let rooms = [
        crate::prim::tops(),
        crate::example::tops(),
        crate::envelope::tops(),
        crate::host::tops(),
        crate::link::tops(),
        crate::matching::tops(),
        crate::mgmt::tops(),
        crate::protect::tops(),
        crate::datapath::tops(),
        crate::nic::tops(),
    ];
    rooms.into_iter().flatten().collect()
}

/// All proofs.
pub fn proofs() -> Vec<Proof> {
    let rooms = [
        crate::matching::proof::proofs(),
        crate::protect::proof::proofs(),
        crate::envelope::proof::proofs(),
    ];
    rooms.into_iter().flatten().collect()
}

/// Stack of the thread that prints: a whole card, which is made in one place, has more than a test's thread has.
const STACK_BYTES: usize = 64 << 20;

/// The printed text of a top.
///
/// # Panics
/// If there is no such top, or it can't be printed.
pub fn text_of(name: &str) -> String {
    std::thread::scope(|scope| {
        let printer = std::thread::Builder::new().stack_size(STACK_BYTES);
        let printer = printer.spawn_scoped(scope, || print(name));
        printer.expect("a thread").join().expect("it prints")
    })
}

fn print(name: &str) -> String {
    let top = tops().into_iter().find(|top| top.name == name);
    let top = top.unwrap_or_else(|| panic!("no top is called {name}"));
    (top.text)().unwrap_or_else(|error| panic!("{}", refusal(name, &*error)))
}

/// Names of what the variant `name` can pick, in the order of their numbers from 1 on.
///
/// # Panics
/// If there is no such top, or it can't be printed.
pub fn picks_of(name: &str) -> Vec<String> {
    picks(&text_of(name))
}
