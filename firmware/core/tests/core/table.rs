//! The book's table of states is the one that the firmware goes by.

use firmware_core::connection::{Cause, State, TRANSITIONS};

#[test]
fn the_table_of_the_book_is_the_firmwares() {
    let page = include_str!("../../../../docs/src/connection.md");
    let mut rows: Vec<(State, Cause, State)> = Vec::new();
    for line in page.lines() {
        let cells: Vec<_> = line.split('|').map(|cell| cell.trim()).collect();
        let named = |cell: &str| Some(cell.strip_prefix('`')?.split('`').next()?.to_string());
        let (Some(from), Some(cause)) = (
            cells.get(1).and_then(|cell| named(cell)),
            cells.get(2).and_then(|cell| named(cell)),
        ) else {
            continue;
        };
        let from = State::ALL.iter().find(|state| state.name() == from);
        let cause = Cause::ALL.iter().find(|known| known.name() == cause);
        let (Some(&from), Some(&cause)) = (from, cause) else {
            continue;
        };
        let after = cells[3].split('`').skip(1).step_by(2);
        for name in after {
            let to = State::ALL.iter().find(|state| state.name() == name);
            rows.push((
                from,
                cause,
                *to.unwrap_or_else(|| panic!("no state {name}")),
            ));
        }
    }
    let mut table = TRANSITIONS.to_vec();
    rows.sort_unstable();
    table.sort_unstable();
    assert_eq!(rows, table);
}
