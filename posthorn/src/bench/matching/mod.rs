//! Tag matching: cycles of each operation against the depth of the lists, operations per cycle, what an
//! adversary can do to the hash, and beside them what there is without such an engine: a list that the
//! card's processor walks, and the best structure on the host.

mod adversary;
mod engine;
mod firmware;
mod plot;

use std::path::Path;

use anyhow::{Context, Result};
use hdl::config::Config;
use match_reference::{Sizes, sizes_of};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use super::speed::Length;
use super::{Point, Report};
use adversary::Sweep;
use engine::{Engine, Keys, Operations, Rate, Spread};
use firmware::Processor;
pub use host_matching::Sequence;
use host_matching::workload::{Kind, Structure};
pub use plot::plot;

/// Depths measured; a full list is one more.
const DEPTHS: [usize; 5] = [1, 8, 64, 256, 1024];

/// Receives that the exact side has room for while it is measured at full depth.
const SLACK: usize = 8;

/// How much is measured.
struct Effort {
    /// Places looked for at each depth.
    samples: usize,
    /// Operations in a row.
    operations: usize,
    /// Times that the associative side is filled and emptied.
    bursts: usize,
    /// Rounds of the host, of which the best counts.
    rounds: usize,
    /// Searches of the processor at each depth.
    walks: u32,
    /// Seeds of the hash that the adversary meets.
    sweep: Sweep,
}

const SHORT: Effort = Effort {
    samples: 4,
    operations: 200,
    bursts: 1,
    rounds: 2,
    walks: 2,
    sweep: Sweep {
        seeds: 1,
        trials: 2,
        replaced: 1000,
    },
};

const NORMAL: Effort = Effort {
    samples: 64,
    operations: 4000,
    bursts: 4,
    rounds: 50,
    walks: 16,
    sweep: Sweep {
        seeds: 16,
        trials: 200,
        replaced: 10_000,
    },
};

const LONG: Effort = Effort {
    samples: 1000,
    operations: 100_000,
    bursts: 100,
    rounds: 1000,
    walks: 100,
    sweep: Sweep {
        seeds: 200,
        trials: 200,
        replaced: 100_000,
    },
};

/// Runs the suite. `program` is the firmware's list.
///
/// # Errors
/// If a model or the program is missing, or the engine breaks a promise.
pub fn run(config: &str, length: Length, seed: u64, program: &Path) -> Result<Report> {
    let card = Config::of_engine(config).with_context(|| format!("no configuration {config}"))?;
    let effort = match length {
        Length::Short => &SHORT,
        Length::Normal => &NORMAL,
        Length::Long => &LONG,
    };
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut points = Vec::new();
    // Both at once: what is missing is said before minutes of measuring.
    let mut engine = Engine::open(config, sizes_of(&card), rng.random())?;
    let mut processor = Processor::start(program)?;
    for structure in Structure::ALL {
        for kind in Kind::ALL {
            eprintln!("{} {}", structure.name(), kind.name());
            latencies(&mut points, &mut engine, structure, kind, effort, &mut rng)?;
        }
    }
    eprintln!("several classes");
    several_classes(&mut points, &mut engine, effort, &mut rng)?;
    eprintln!("sustained");
    sustained(&mut points, &mut engine, effort, &mut rng)?;
    eprintln!("adversary");
    adversary::run(&mut points, &mut engine, effort, &mut rng)?;
    eprintln!("firmware's list");
    walks(&mut points, &mut processor, effort, &mut rng)?;
    eprintln!("host");
    on_host(&mut points, effort, &mut rng);
    Ok(Report::new("match", config, seed, points))
}

/// The depths up to `capacity`, as a report names them, and how many entries they are.
fn depths(capacity: usize) -> impl Iterator<Item = (Value, usize)> {
    let numbers = DEPTHS.into_iter().filter(move |depth| *depth <= capacity);
    numbers
        .map(|depth| (depth.into(), depth))
        .chain([("full".into(), capacity)])
}

fn params(structure: Structure, kind: Kind, depth: Value) -> [(&'static str, Value); 3] {
    [
        ("structure", structure.name().into()),
        ("kind", kind.name().into()),
        ("depth", depth),
    ]
}

fn latencies(
    points: &mut Vec<Point>,
    engine: &mut Engine,
    structure: Structure,
    kind: Kind,
    effort: &Effort,
    rng: &mut impl Rng,
) -> Result<()> {
    for (name, depth) in depths(engine.capacity(structure, kind)) {
        let samples = effort.samples;
        let operations = match structure {
            Structure::Posted => engine.posted(&[kind], depth, samples, rng)?,
            Structure::Unexpected => engine.unexpected(kind, depth, Spread::Dense, samples, rng)?,
        };
        let params = params(structure, kind, name);
        report(points, &operations, depth, params.clone());
        if structure == Structure::Unexpected {
            let sparse = engine.unexpected(kind, depth, Spread::Sparse, samples, rng)?;
            let [a, b, c] = params;
            report(points, &sparse, depth, [a, b, c, ("rows", "sparse".into())]);
        }
    }
    Ok(())
}

/// Depths at which a rate is measured: full is all that the exact side holds but for a few, since some are under way.
fn depths_of_rates(sizes: &Sizes) -> impl Iterator<Item = (Value, usize)> {
    depths(sizes.exact - SLACK)
}

/// An arrival is looked up in each class that its endpoint has receives of: what each operation takes, and how many there are
/// per cycle, by the number of those classes. At the greatest depth all endpoints have receives, and take turns.
fn several_classes(
    points: &mut Vec<Point>,
    engine: &mut Engine,
    effort: &Effort,
    rng: &mut impl Rng,
) -> Result<()> {
    let sizes = *engine.sizes();
    for classes in 1..=sizes.classes {
        let kinds = &Kind::OF_A_CLASS[..classes];
        // Each class has receives then, whatever is under way.
        for (name, depth) in depths_of_rates(&sizes).filter(|(_, depth)| *depth >= 8) {
            let endpoints = engine.endpoints(kinds, depth);
            // Whole turns, so that what is posted is of the endpoint and the class of what has just arrived.
            let depth = depth - depth % (classes * endpoints);
            let params = || {
                [
                    ("structure", Structure::Posted.name().into()),
                    ("kind", "mixed".into()),
                    ("depth", name.clone()),
                    ("classes", classes.into()),
                    ("endpoints", endpoints.into()),
                ]
            };
            let operations = engine.posted(kinds, depth, effort.samples, rng)?;
            report(points, &operations, depth, params());
            let keys = Keys::Distinct;
            let rate = engine.sustained(kinds, depth, keys, effort.operations, rng)?;
            let [a, b, c, d, e] = params();
            let keys = ("keys", keys.name().into());
            let params = [a, b, c, d, e, keys, ("operations", "mixed".into())];
            points.push(rate.point(params, depth));
        }
    }
    Ok(())
}

fn report<const N: usize>(
    points: &mut Vec<Point>,
    operations: &Operations,
    depth: usize,
    params: [(&'static str, Value); N],
) {
    for (name, cycles) in [
        ("arrive", &operations.arrive),
        ("post", &operations.post),
        ("cancel", &operations.cancel),
        ("probe", &operations.probe),
    ] {
        let mut point = Point::new(name, params.clone(), cycles.mean(), "cycles");
        point.beside.insert("max", cycles.max());
        point.beside.insert("entries", depth as f64);
        points.push(point);
    }
}

fn sustained(
    points: &mut Vec<Point>,
    engine: &mut Engine,
    effort: &Effort,
    rng: &mut impl Rng,
) -> Result<()> {
    let sizes = *engine.sizes();
    let mut point = |structure, kind, (name, depth), keys: &str, operations: &str, rate: Rate| {
        let [a, b, c] = params(structure, kind, name);
        let (keys, operations) = (("keys", keys.into()), ("operations", operations.into()));
        points.push(rate.point([a, b, c, keys, operations], depth));
    };
    for kind in Kind::OF_A_CLASS {
        for (name, depth) in depths_of_rates(&sizes) {
            for keys in Keys::ALL {
                let rate = engine.sustained(&[kind], depth, keys, effort.operations, rng)?;
                let depth = (name.clone(), depth);
                point(Structure::Posted, kind, depth, keys.name(), "mixed", rate);
            }
        }
    }
    let most = sizes.posted_of_one();
    let (posted, kind) = (Structure::Posted, Kind::Mask);
    for depth in [8, most].into_iter().filter(|depth| *depth <= most) {
        let rate = Rate {
            rate: engine.burst(depth, effort.bursts, rng)?,
            ..Rate::default()
        };
        let depth = (depth.into(), depth);
        point(posted, kind, depth, "distinct", "arrive", rate);
    }
    let unexpected = Structure::Unexpected;
    for kind in Kind::ALL {
        for (name, depth) in depths(engine.capacity(unexpected, kind)) {
            let rate = engine.sustained_unexpected(kind, depth, effort.operations, rng)?;
            point(unexpected, kind, (name, depth), "distinct", "mixed", rate);
        }
    }
    Ok(())
}

fn walks(
    points: &mut Vec<Point>,
    processor: &mut Processor,
    effort: &Effort,
    rng: &mut impl Rng,
) -> Result<()> {
    for structure in Structure::ALL {
        for kind in Kind::ALL {
            for depth in DEPTHS {
                let walk = processor.measure(structure, kind, depth, effort.walks, rng.random())?;
                let params = params(structure, kind, depth.into());
                let mut point = Point::new("firmware_list", params, walk.mean, "cycles");
                point.beside.insert("max", walk.max);
                points.push(point);
            }
        }
    }
    Ok(())
}

fn on_host(points: &mut Vec<Point>, effort: &Effort, rng: &mut impl Rng) {
    for structure in Structure::ALL {
        for kind in Kind::ALL {
            for depth in DEPTHS {
                let nanoseconds =
                    host_matching::measure(structure, kind, depth, effort.rounds, rng);
                let params = params(structure, kind, depth.into());
                points.push(Point::new("host_best", params, nanoseconds, "ns"));
            }
        }
    }
}
