//! The page of the card's rules names checks, tests and breaks that there are.

use std::collections::HashSet;

use hdl_tests::sources;

/// What stands between a word and the next `end`, each time that the word occurs.
fn behind<'a>(text: &'a str, word: &str, end: &str) -> Vec<&'a str> {
    let pieces = text.split(word).skip(1);
    pieces
        .filter_map(|rest| Some(rest.split_once(end)?.0))
        .collect()
}

/// What there is to be named.
#[derive(Default)]
struct Names {
    checks: HashSet<String>,
    tests: HashSet<String>,
    breaks: HashSet<String>,
}

impl Names {
    fn read() -> Self {
        let mut names = Self::default();
        for (path, text) in sources::below("hdl/src") {
            let quoted = behind(&text, "Check::new(\"", "\"");
            names.checks.extend(quoted.into_iter().map(String::from));
            for line in text.lines() {
                if let Some(field) = line.trim().strip_suffix(": Check,") {
                    names.checks.insert(field.into());
                }
            }
            if path.ends_with("breaks.rs") {
                for function in behind(&text, "\npub fn ", "\n}\n") {
                    let (list, body) = function.split_once('(').expect("it has arguments");
                    let of_list = behind(body, "Break::new(\"", "\"");
                    let of_list = of_list.iter().map(|name| format!("{list}: {name}"));
                    names.breaks.extend(of_list);
                }
            }
        }
        for folder in ["hdl/tests", "tests/tests"] {
            for (_, text) in sources::below(folder) {
                let tests = behind(&text, "fn ", "(").into_iter();
                names.tests.extend(tests.map(String::from));
            }
        }
        names
    }

    /// What is wrong with a row of the page.
    fn faults(&self, row: &str) -> Vec<String> {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [rule, held, broken] = cells[..] else {
            return vec![format!("{row}: three cells")];
        };
        let spans = |cell: &str| -> Vec<String> {
            cell.split('`')
                .skip(1)
                .step_by(2)
                .map(String::from)
                .collect()
        };
        let (held, broken) = (spans(held), spans(broken));
        let mut faults = vec![];
        if held.is_empty() || broken.is_empty() {
            faults.push(format!("{rule}: nothing holds or breaks it"));
        }
        for name in held {
            let is_there = match name.strip_suffix('!') {
                Some(check) => self.checks.contains(check),
                None => self.tests.contains(&name),
            };
            if !is_there {
                faults.push(format!("{rule}: there is no {name}"));
            }
        }
        for name in broken.iter().filter(|name| !self.breaks.contains(*name)) {
            faults.push(format!("{rule}: there is no break {name}"));
        }
        faults
    }
}

#[test]
fn each_rule_of_the_card_has_what_holds_and_what_breaks_it() {
    let page =
        std::fs::read_to_string(sources::workspace().join("docs/src/rules.md")).expect("the page");
    let names = Names::read();
    let rows: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| rule"))
        .collect();
    assert!(rows.len() > 30, "{} rules", rows.len());
    let faults: Vec<String> = rows.iter().flat_map(|row| names.faults(row)).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn a_rule_without_a_check_or_with_a_name_that_there_is_not_is_noticed() {
    let names = Names::read();
    let sound = "| A. | `slot_given_out_is_free!` | `delivery: reuses_slots` |";
    assert_eq!(names.faults(sound), [""; 0]);
    for wrong in [
        "| A. | | `delivery: reuses_slots` |",
        "| A. | `slot_given_out_is_free` | `delivery: reuses_slots` |",
        "| A. | `slot_given_out_is_free!` | `delivery: uses_slots` |",
        "| A. | `slot_given_out_is_free!` | nothing |",
    ] {
        assert_ne!(names.faults(wrong), [""; 0], "{wrong}");
    }
}
