//! A kernel in sections: it is the kernel that has their statements in its own text, and refusals of the printer
//! point into the section's file. What a section may not be is refused by the attributes, which have tests of their own.

mod late;
mod wide;

use hdl::prelude::*;
use hdl::verilog::{Options, PrintError, Reason, generate};

/// What no kernel here has room for.
const LIMIT: u64 = 3;

/// A block with the common ports.
macro_rules! block {
    ($name:ident) => {
        #[block]
        struct $name {
            pub clock: Signal<In, Clock>,
            pub reset: Signal<In, Bit>,
            pub a: Signal<In, Bits<8>>,
            pub x: Signal<In, Bit>,
            pub o: Signal<Out, Bits<8>>,
            sum: Signal<Local, Bits<8>>,
            count: Reg<Bits<8>>,
        }
    };
}

block!(Whole);
block!(InSections);
block!(Latch);
block!(Early);
block!(Wide);

#[block]
impl Logic for Whole {
    fn update(&mut self) {
        self.sum.next = self.a.val() + LIMIT;
        self.o.next = self.sum.val();
        if self.x.val() {
            self.count.d.next = self.count.q.val() + 1;
            self.sum.next = self.sum.val() + 2 * LIMIT;
        }
        if self.count.q.val() == 2 * LIMIT {
            self.o.next = self.sum.val();
        }
    }
}

#[block]
impl Logic for InSections {
    fn update(&mut self) {
        self.begin_sum();
        self.o.next = self.sum.val();
        self.go_on();
        self.end();
    }
}

#[block]
impl InSections {
    /// The default, which the other section overrides.
    fn begin_sum(&mut self) {
        self.sum.next = self.a.val() + LIMIT;
    }

    fn go_on(&mut self) {
        if self.x.val() {
            self.count.d.next = self.count.q.val() + 1;
            self.sum.next = self.sum.val() + 2 * LIMIT;
        }
    }
}

#[block]
impl InSections {
    fn end(&mut self) {
        if self.count.q.val() == 2 * LIMIT {
            self.o.next = self.sum.val();
        }
    }
}

fn print(block: &dyn Block) -> Result<String, PrintError> {
    Ok(generate(block, &Options::new("top"))?.text)
}

fn refusal(block: &dyn Block) -> PrintError {
    print(block).expect_err("it can't be printed soundly")
}

/// Where a statement of one of the files stands: `file:line:column`.
fn place(name: &str, text: &str, statement: &str) -> String {
    let at = |(line, number): (&str, u32)| Some((number, line.find(statement)? + 1));
    let (line, column) = text.lines().zip(1..).find_map(at).expect("it is there");
    format!("{}:{line}:{column}", file!().replace("main.rs", name))
}

#[test]
fn sections_are_printed_as_a_kernel_of_their_statements() {
    let whole = print(&Whole::default()).expect("it can be printed");
    let in_sections = print(&InSections::default()).expect("it can be printed");
    assert_eq!(in_sections, whole);
    assert!(whole.contains("pkg::LIMIT"), "{whole}");
}

/// Outputs of a block for inputs that make it count.
macro_rules! outputs {
    ($name:ident) => {{
        let mut block = $name::default();
        block.connect_all();
        let step = |cycle: u64| {
            for level in [false, true] {
                block.clock.next = level.into();
                block.reset.next = cycle == 0;
                block.a.next = (cycle * 5).into();
                block.x.next = cycle % 3 != 1;
                assert!(simulate(&mut block, 10));
            }
            block.o.val()
        };
        (0..20).map(step).collect::<Vec<Bits<8>>>()
    }};
}

#[test]
fn rust_runs_sections_where_they_are_called() {
    let whole = outputs!(Whole);
    assert_eq!(outputs!(InSections), whole);
    assert!(whole.iter().any(|o| *o != whole[0]), "{whole:?}");
}

#[block]
impl Logic for Wide {
    fn update(&mut self) {
        self.sum.next = self.a.val();
        self.widen();
    }
}

#[test]
fn a_refusal_says_where_the_statement_of_a_section_stands() {
    let error = refusal(&Wide::default());
    let at = place("wide.rs", include_str!("wide.rs"), "self.o.next");
    assert_eq!(error.place.as_deref(), Some(&*at));
    assert!(error.to_string().contains("constant 403"), "{error}");
}

#[block]
impl Logic for Latch {
    fn update(&mut self) {
        self.sum.next = self.a.val();
        self.drive_late();
    }
}

#[test]
fn a_section_that_drives_under_a_condition_needs_a_default_before_it() {
    let error = refusal(&Latch::default());
    let at = place("late.rs", include_str!("late.rs"), "self.o.next");
    assert_eq!(error.reason, Reason::Latch, "{error}");
    assert_eq!(error.place.as_deref(), Some(&*at));
}

#[block]
impl Logic for Early {
    fn update(&mut self) {
        self.read();
        self.sum.next = self.a.val();
    }
}

#[block]
impl Early {
    fn read(&mut self) {
        self.o.next = self.sum.val();
    }
}

#[test]
fn a_section_doesnt_read_what_is_driven_behind_its_call() {
    let error = refusal(&Early::default());
    assert_eq!(
        error.reason,
        Reason::ReadBeforeAssigned("sum".into()),
        "{error}"
    );
}
