//! The book's tables of states are the ones that the firmware goes by.

use abi::mailbox::PeerState;
use firmware_core::connection::{self, Cause, State};
use firmware_core::watch::{self, PeerCause};

/// The rows of a page: state, cause, and each state that may come after it. A line whose first two cells are no state and no cause is passed over.
fn rows<S: Copy, C: Copy>(
    page: &str,
    state: impl Fn(&str) -> Option<S>,
    cause: impl Fn(&str) -> Option<C>,
) -> Vec<(S, C, S)> {
    let mut rows = Vec::new();
    for line in page.lines() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let named = |cell: &&str| Some(cell.strip_prefix('`')?.split('`').next()?.to_string());
        let (Some(from), Some(by)) = (
            cells.get(1).and_then(named).and_then(|name| state(&name)),
            cells.get(2).and_then(named).and_then(|name| cause(&name)),
        ) else {
            continue;
        };
        let after = cells[3].split('`').skip(1).step_by(2);
        for name in after {
            let to = state(name).unwrap_or_else(|| panic!("no state {name}"));
            rows.push((from, by, to));
        }
    }
    rows
}

#[test]
fn the_table_of_the_book_is_the_firmwares() {
    let page = include_str!("../../../../docs/src/connection.md");
    let state = |name: &str| State::ALL.iter().copied().find(|one| one.name() == name);
    let cause = |name: &str| Cause::ALL.iter().copied().find(|one| one.name() == name);
    let mut rows = rows(page, state, cause);
    let mut table = connection::TRANSITIONS.to_vec();
    rows.sort_unstable();
    table.sort_unstable();
    assert_eq!(rows, table);
}

#[test]
fn the_table_of_peers_is_the_firmwares() {
    let page = include_str!("../../../../docs/src/peers.md");
    let states = PeerState::ALL.iter().copied();
    let state = |name: &str| states.clone().find(|one| one.name() == name);
    let causes = PeerCause::ALL.iter().copied();
    let cause = |name: &str| causes.clone().find(|one| one.name() == name);
    let mut rows = rows(page, state, cause);
    let mut table = watch::TRANSITIONS.to_vec();
    rows.sort_unstable();
    table.sort_unstable();
    assert_eq!(rows, table);
}
