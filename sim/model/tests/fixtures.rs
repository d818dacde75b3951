//! A model from Rust, on the fixtures under `fixtures/`. `cargo xtask models` builds them, and
//! `cargo xtask models --trace fixture_counter` the one that writes waveforms.

use std::thread;

use model::{Direction, Model, ModelError, NS_PER_CYCLE};

fn counter(seed: u64) -> Model {
    Model::open_seeded("fixture_counter", seed).unwrap()
}

#[test]
fn a_pin_is_known_by_name_width_and_direction() {
    let model = counter(0);
    let port = model.port("a100").unwrap();
    assert_eq!(model.info(port).width, 100);
    assert_eq!(model.info(port).direction, Direction::Input);
    assert_eq!(
        model.info(model.port("count").unwrap()).direction,
        Direction::Output
    );
    assert_eq!(model.ports().len(), 13);
    assert!(model.text().unwrap().contains("module fixture_counter"));
    let error = model.port("nothing").unwrap_err();
    assert_eq!(
        error.to_string(),
        "model `fixture_counter` has no pin `nothing`"
    );
}

#[test]
fn a_step_is_a_rising_edge() {
    let mut model = counter(0);
    let (step_by, count) = (model.port("step_by").unwrap(), model.port("count").unwrap());
    model.set(step_by, 7);
    model.eval();
    assert_eq!(model.get(count), 0);
    model.step();
    assert_eq!(model.get(count), 7);
    model.steps(9);
    assert_eq!((model.get(count), model.cycle()), (70, 10));
}

#[test]
fn between_the_halves_of_a_step_the_outputs_are_those_before_the_edge() {
    let mut model = counter(0);
    let (step_by, count) = (model.port("step_by").unwrap(), model.port("count").unwrap());
    let (input, output) = (model.port("a16").unwrap(), model.port("q16").unwrap());
    model.set(step_by, 7);
    model.set(input, 0x1234);
    model.fall();
    assert_eq!((model.get(count), model.get(output)), (0, 0xedcb));
    model.rise();
    assert_eq!((model.get(count), model.cycle()), (7, 1));
}

#[test]
fn what_is_set_between_the_halves_of_a_step_is_seen_at_the_edge_and_behind_it() {
    let mut model = counter(0);
    let (step_by, count) = (model.port("step_by").unwrap(), model.port("count").unwrap());
    let (input, output) = (model.port("a16").unwrap(), model.port("q16").unwrap());
    let (wide, inverted) = (model.port("a100").unwrap(), model.port("q100").unwrap());
    for round in 1..4 {
        model.fall();
        model.set(step_by, 7);
        model.set(input, round);
        model.set_wide(wide, &[round as u32; 4]);
        model.rise();
        let mut words = [0; 4];
        model.get_wide(inverted, &mut words);
        assert_eq!(model.get(count), 7 * round);
        assert_eq!(model.get(output), !round & 0xffff);
        assert_eq!(words[0], !round as u32);
    }
}

#[test]
fn pins_of_every_width_carry_all_their_bits_and_no_more() {
    let mut model = counter(0);
    for (input, output, width) in [("a16", "q16", 16), ("a33", "q33", 33)] {
        let (input, output) = (model.port(input).unwrap(), model.port(output).unwrap());
        let mask = (1u64 << width) - 1;
        for value in [0, u64::MAX, 0x0123_4567_89ab_cdef] {
            model.set(input, value);
            model.eval();
            assert_eq!(model.get(output), !value & mask);
        }
    }
    let (input, output) = (model.port("a100").unwrap(), model.port("q100").unwrap());
    let mut words = [9; 5];
    model.set_wide(input, &[1, 2, 4, u32::MAX]);
    model.eval();
    model.get_wide(output, &mut words);
    assert_eq!(words, [!1, !2, !4, 0, 0]);
    model.set(input, 5 << 32);
    model.eval();
    model.get_wide(output, &mut words);
    assert_eq!(words, [!0, !5, !0, 0xf, 0]);
    assert_eq!(model.get(output), !(5 << 32));
}

#[test]
fn a_model_without_clock_settles() {
    let mut model = Model::open("fixture_adder").unwrap();
    let (a, b, sum) = (
        model.port("a").unwrap(),
        model.port("b").unwrap(),
        model.port("sum").unwrap(),
    );
    model.set(a, 0xffff_ffff);
    model.set(b, 2);
    model.step();
    assert_eq!(model.get(sum), 0x1_0000_0001);
}

#[test]
#[should_panic(expected = "another model's")]
fn a_port_of_another_model_is_refused() {
    let adder = Model::open("fixture_adder").unwrap();
    counter(0).get(adder.port("a").unwrap());
}

#[test]
#[should_panic(expected = "an output can't be set")]
fn an_output_is_not_set() {
    let mut model = counter(0);
    let count = model.port("count").unwrap();
    model.set(count, 1);
}

#[test]
fn a_failed_assertion_is_an_error_with_seed_and_cycle_and_can_be_cleared() {
    let mut model = counter(42);
    let break_it = model.port("break_it").unwrap();
    model.steps(5);
    model.got_error().unwrap();
    model.set(break_it, 1);
    model.step();
    let failed = model.got_error().unwrap_err();
    assert_eq!(
        (failed.model, failed.cycle, failed.seed),
        ("fixture_counter", 6, 42)
    );
    model.set(break_it, 0);
    model.clear_error();
    model.steps(5);
    model.got_error().unwrap();
    // Not only the first one is reported.
    model.set(break_it, 1);
    model.step();
    assert_eq!(model.got_error().unwrap_err().cycle, 12);
}

#[test]
fn an_assertion_that_fails_in_one_object_is_not_the_others() {
    let (mut broken, mut whole) = (counter(0), counter(0));
    let break_it = broken.port("break_it").unwrap();
    broken.set(break_it, 1);
    broken.step();
    whole.step();
    assert!(broken.got_error().is_err());
    whole.got_error().unwrap();
}

#[test]
fn inputs_start_at_zero_whatever_the_seed() {
    for seed in 0..20 {
        let model = counter(seed);
        for info in model
            .ports()
            .iter()
            .filter(|info| info.direction == Direction::Input)
        {
            let mut words = [9; 4];
            model.get_wide(model.port(info.name).unwrap(), &mut words);
            assert_eq!(words, [0; 4], "{} with seed {seed}", info.name);
        }
    }
}

/// What the memory without initial value holds.
fn noise(seed: u64) -> Vec<u64> {
    let mut model = counter(seed);
    let (address, noise) = (model.port("address").unwrap(), model.port("noise").unwrap());
    (0..16)
        .map(|index| {
            model.set(address, index);
            model.eval();
            model.get(noise)
        })
        .collect()
}

#[test]
fn memory_starts_as_zeros_or_as_the_seed_says() {
    assert_eq!(noise(0), [0; 16]);
    let first = noise(1);
    assert_ne!(first, [0; 16]);
    assert_ne!(first, noise(2));
    // Neither what ran before nor the thread has a say.
    let elsewhere = thread::spawn(|| (noise(3), noise(1)).1).join().unwrap();
    assert_eq!(first, elsewhere);
}

#[test]
fn objects_run_on_threads_and_move_between_them() {
    let finals = thread::scope(|scope| {
        let runs: Vec<_> = (1..=4u64)
            .map(|step_by| {
                let mut model = counter(step_by);
                scope.spawn(move || {
                    let (port, reset) =
                        (model.port("step_by").unwrap(), model.port("reset").unwrap());
                    model.set(reset, 1);
                    model.step();
                    model.set(reset, 0);
                    model.set(port, step_by);
                    for _ in 0..20_000 {
                        model.step();
                    }
                    model
                })
            })
            .collect();
        runs.into_iter()
            .map(|run| {
                let mut model = run.join().unwrap();
                model.step();
                model.got_error().unwrap();
                model.get(model.port("count").unwrap())
            })
            .collect::<Vec<_>>()
    });
    assert_eq!(finals, [20_001, 40_002, 60_003, 80_004]);
}

#[test]
fn an_unknown_model_is_an_error_that_names_the_command() {
    let error = Model::open("nothing").unwrap_err();
    assert!(matches!(error, ModelError::Unknown { .. }));
    assert!(
        error.to_string().contains("cargo xtask models nothing"),
        "{error}"
    );
}

#[test]
fn the_untraced_build_says_how_to_get_waveforms() {
    let error = counter(0).trace_start("/dev/null".as_ref()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("cargo xtask models --trace fixture_counter"),
        "{error}"
    );
}

#[test]
fn a_waveform_has_the_cycles_between_start_and_stop() {
    let mut model = Model::open_traced("fixture_counter", 0).unwrap();
    let step_by = model.port("step_by").unwrap();
    model.set(step_by, 1);
    let dir = std::env::temp_dir().join(format!("posthorn-model-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    // Twice: an object can write several, one after the other.
    for (number, first) in [(0, 3), (1, 8)] {
        model.steps(first - model.cycle());
        let file = dir.join(format!("{number}.vcd"));
        model.trace_start(&file).unwrap();
        model.steps(3);
        model.trace_stop();
        let text = std::fs::read_to_string(&file).unwrap();
        let times: Vec<u64> = text
            .lines()
            .filter_map(|line| line.strip_prefix('#'))
            .map(|time| time.parse().unwrap())
            .collect();
        let half = NS_PER_CYCLE / 2;
        let wanted: Vec<u64> = (2 * first..2 * first + 6)
            .map(|halves| halves * half)
            .collect();
        assert_eq!(times, wanted);
        // The clock rises in each cycle, and the count goes up with it, though nothing is set.
        let values = |name: &str| -> Vec<u64> {
            let of = |line: &&str| line.contains("$var") && line.contains(&format!(" {name} "));
            let variable = text.lines().find(of).unwrap();
            let id = variable.split_whitespace().nth(3).unwrap();
            let value = |line: &str| {
                let bits = line.strip_suffix(id)?.trim_start_matches('b').trim();
                u64::from_str_radix(bits, 2).ok()
            };
            text.lines().filter_map(value).collect()
        };
        assert_eq!(values("clock"), [0, 1, 0, 1, 0, 1]);
        assert_eq!(values("count"), [first, first + 1, first + 2, first + 3]);
        // The unit in which `NS_PER_CYCLE` is meant.
        assert!(text.contains("$timescale 1ns $end"), "{text}");
    }
    assert!(model.trace_start("/nowhere/x.vcd".as_ref()).is_err());
    std::fs::remove_dir_all(&dir).unwrap();
}
