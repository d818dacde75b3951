//! The associative side of the posted receives and the quotas, Verilated, against a vector.
//!
//! The bench drives every input of every cycle at random within the rules of the block, so that search,
//! choice, removal and insertion overlap in all ways, and compares every output in every cycle.

use card_model::matching::has_room;
use hdl::config::{self, Config};
use hdl::matching::AssociativeSearch;
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::{Bench, for_seeds};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// What an entry holds, or a search looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    endpoint: u8,
    pair: u16,
    any_source: bool,
    context: u16,
    match_bits: u64,
    ignore_bits: u64,
    request: u32,
}

/// A receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Receive {
    key: Key,
    age: u64,
    multi: bool,
    place: u64,
}

impl Receive {
    fn agrees(&self, by: AssociativeSearch, key: &Key) -> bool {
        let mine = &self.key;
        match by {
            AssociativeSearch::Envelope => {
                mine.endpoint == key.endpoint
                    && (mine.any_source || mine.pair == key.pair)
                    && mine.context == key.context
                    && (mine.match_bits ^ key.match_bits) & !mine.ignore_bits == 0
            }
            AssociativeSearch::Request => {
                mine.endpoint == key.endpoint && mine.request == key.request
            }
            AssociativeSearch::Pair => {
                mine.endpoint == key.endpoint && !mine.any_source && mine.pair == key.pair
            }
            AssociativeSearch::Endpoint => mine.endpoint == key.endpoint,
        }
    }
}

/// How many of `capacity` places each endpoint has, and may have.
struct Shares {
    counts: Vec<usize>,
    capacity: usize,
    reserved: usize,
}

impl Shares {
    fn new(config: &Config) -> Self {
        Shares {
            counts: vec![0; config.endpoints],
            capacity: config.posted,
            reserved: config.reserved_posted(),
        }
    }

    fn room(&self, endpoint: usize) -> bool {
        endpoint < self.counts.len()
            && has_room(self.capacity, self.reserved, &self.counts, endpoint)
    }

    fn holds(&self) -> u64 {
        let bits = self.counts.iter().enumerate();
        bits.map(|(e, count)| u64::from(*count > 0) << e).sum()
    }
}

/// How a run goes about it.
#[derive(Clone, Copy)]
struct Mood {
    /// Probability of a search in a cycle that may have one.
    search: f64,
    /// Of an insert.
    insert: f64,
    /// That a search takes what it finds.
    take: f64,
    /// That what was found is removed at once.
    remove: f64,
}

impl Mood {
    fn random(rng: &mut impl Rng) -> Self {
        let rate = |rng: &mut _| hdl_tests::rate(rng);
        match rng.random_range(0..4) {
            // A message a cycle.
            0 => Mood {
                search: 1.0,
                insert: 0.3,
                take: 0.9,
                remove: 1.0,
            },
            // The list fills.
            1 => Mood {
                search: 0.2,
                insert: 1.0,
                take: 0.1,
                remove: 0.3,
            },
            _ => Mood {
                search: rate(rng),
                insert: rate(rng),
                take: rate(rng),
                remove: rate(rng),
            },
        }
    }
}

/// A search that is under way.
#[derive(Clone, Copy)]
struct Asked {
    by: usize,
    key: Key,
    unknown: bool,
    take: bool,
}

/// A search, and the ages of what it hit.
type Hits = (Asked, Vec<u64>);

/// What has happened: a test that hasn't seen everything has proved nothing about the rest.
#[derive(Default, Debug)]
struct Seen {
    searches: u64,
    found: [u64; 4],
    missing: [u64; 4],
    inserts: u64,
    refused: u64,
    cancelled: u64,
    spared: u64,
    back_to_back: u64,
    would_have_been_chosen: u64,
    dropped: u64,
}

const SEARCHES: [AssociativeSearch; 4] = [
    AssociativeSearch::Envelope,
    AssociativeSearch::Request,
    AssociativeSearch::Pair,
    AssociativeSearch::Endpoint,
];

/// A key of a small world, so that many agree.
fn key(rng: &mut ChaCha8Rng, endpoints: usize, pairs: usize, last_request: u32) -> Key {
    let endpoint = rng.random_range(0..endpoints);
    let pairs_each = pairs / endpoints;
    let wide = rng.random_bool(0.5);
    Key {
        endpoint: endpoint as u8,
        // A pair belongs to one endpoint, as a rule.
        pair: match rng.random_range(0..16) {
            0 => rng.random_range(0..pairs),
            _ => endpoint * pairs_each + [0, 1, pairs_each - 1][rng.random_range(0..3)],
        } as u16,
        any_source: rng.random_bool(0.3),
        context: [0, 0, 0, 0xffff][rng.random_range(0..4)],
        match_bits: if wide {
            [0, 1, u64::MAX, 1 << 63][rng.random_range(0..4)]
        } else {
            1 << rng.random_range(0..64)
        },
        ignore_bits: match rng.random_range(0..4) {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << rng.random_range(0..64),
            _ => 0xff << rng.random_range(0..57),
        },
        request: last_request.saturating_sub(rng.random_range(0..40)),
    }
}

/// The block and what is known of it.
struct Pair {
    bench: Bench,
    endpoints: usize,
    pairs: usize,
    /// Oldest first.
    live: Vec<Receive>,
    shares: Shares,
    /// The insert of the last cycle.
    entering: Option<Receive>,
    /// The searches of the last cycle, of the one before, and of the one before that.
    asked: Option<Asked>,
    joining: Option<Hits>,
    choosing: Option<Hits>,
    /// What the last search found, while it hasn't been removed.
    choice: Option<Receive>,
    /// It found nothing; removing that is removing nothing.
    nothing: bool,
    /// It takes what it has found in this cycle.
    takes: bool,
    chosen_by: usize,
    /// The place of what had been found in the cycle before.
    number: Option<u64>,
    /// Cycles until its age is known.
    age_due: u32,
    /// The endpoint of the entry that was removed a cycle ago.
    gone: Option<usize>,
    /// An insert may come.
    rested: bool,
    next_age: u64,
    last_request: u32,
    chose_last: bool,
}

impl Pair {
    fn new(config: &Config) -> Self {
        let bench = Bench::open(&format!("associative_{}", config.name));
        Pair {
            bench,
            endpoints: config.endpoints,
            pairs: config.pairs,
            live: vec![],
            shares: Shares::new(config),
            entering: None,
            asked: None,
            joining: None,
            choosing: None,
            choice: None,
            nothing: false,
            takes: false,
            chosen_by: 0,
            number: None,
            age_due: 0,
            gone: None,
            rested: true,
            next_age: 0,
            last_request: 0,
            chose_last: false,
        }
    }

    fn compare(&mut self) {
        let bench = &self.bench;
        let leaving = usize::from(self.gone.is_some());
        let entries = self.live.len() + leaving;
        assert_eq!(bench.get("depth"), entries as u64);
        assert_eq!(bench.get("waiting"), self.shares.holds());
        if let Some(place) = self.number {
            assert_eq!(bench.get("index"), place);
        }
        self.number = self.choice.map(|choice| choice.place);
        if let Some(choice) = self.choice {
            assert!(bench.is("found"), "{choice:x?} is found");
            assert_eq!(bench.get("chosen"), 1 << choice.place);
            assert_eq!(bench.is("chosen_multi"), choice.multi);
            if self.age_due == 0 {
                assert_eq!(bench.get("age_out"), choice.age);
            }
        } else if self.chose_last {
            assert!(!bench.is("found"), "there is nothing to find");
        }
    }

    /// One cycle: compares the outputs, does something, and expects what comes of it.
    fn cycle(&mut self, mood: Mood, rng: &mut ChaCha8Rng, seen: &mut Seen) {
        self.compare();
        let key = key(rng, self.endpoints, self.pairs, self.last_request);
        let by = rng.random_range(0..SEARCHES.len() + 6);
        let by = by.saturating_sub(6);
        // A cancel has time to remove what it finds.
        let compared = [&self.joining, &self.choosing].into_iter().flatten();
        let cancels = (self.asked.iter().chain(compared.map(|(asked, _)| asked)))
            .any(|asked| SEARCHES[asked.by] == AssociativeSearch::Request);
        let search = rng.random_bool(if cancels {
            mood.search / 4.0
        } else {
            mood.search
        });
        let take = rng.random_bool(mood.take);
        let drop = rng.random_bool(0.05);
        let may_remove = !self.takes && self.choosing.is_none();
        let remove =
            may_remove && (self.choice.is_some() || self.nothing) && rng.random_bool(mood.remove);
        let cancel = remove && SEARCHES[self.chosen_by] == AssociativeSearch::Request;
        let spare_multi = rng.random_bool(if cancel { 0.0 } else { 0.9 });
        let insert =
            self.rested && (!search || rng.random_bool(0.1)) && rng.random_bool(mood.insert);
        let multi = rng.random_bool(0.1);
        self.next_age += rng.random_range(1..1 << 38);

        let bench = &mut self.bench;
        bench.set("endpoint", key.endpoint);
        // The receive to insert needn't be of the endpoint that is searched.
        let owner = match rng.random_bool(0.1) {
            true => rng.random_range(0..self.endpoints) as u8,
            false => key.endpoint,
        };
        bench.set("insert_endpoint", owner);
        bench.set("pair", key.pair);
        bench.set("any_source", key.any_source);
        bench.set("context_id", key.context);
        bench.set("match_bits", key.match_bits);
        bench.set("ignore_bits", key.ignore_bits);
        bench.set("by", by as u64);
        bench.set("age", self.next_age);
        bench.set("multi", multi);
        // What no card has isn't found, whatever its low bits.
        let unknown = rng.random_bool(0.02) && !insert;
        if unknown {
            if by > 0 && SEARCHES[by] != AssociativeSearch::Pair || rng.random() {
                bench.set("endpoint", key.endpoint | 0x80);
            } else {
                bench.set("pair", key.pair | 0x8000);
            }
        }
        bench.set("search", search);
        bench.set("take", take);
        bench.set("drop", drop);
        bench.set("remove", remove);
        bench.set("cancel", cancel);
        bench.set("spare_multi", spare_multi);
        bench.eval();
        let room = self.shares.room(owner.into());
        if self.entering.is_none() {
            assert_eq!(bench.is("room"), room, "{:?}", self.shares.counts);
        }
        seen.refused += u64::from(insert && !room);
        let insert = insert && room;
        let request = if insert {
            self.last_request += 1;
            self.last_request
        } else {
            key.request
        };
        let key = Key { request, ..key };
        bench.set("request", request);
        bench.set("insert", insert);
        bench.eval();
        let place = bench.get("place_index");
        bench.step();

        // What was removed a cycle ago is its endpoint's to take again.
        if let Some(endpoint) = self.gone.take() {
            self.shares.counts[endpoint] -= 1;
        }
        let departing = self.choice.filter(|_| remove || self.takes);
        if let Some(entry) = departing {
            if entry.multi && (spare_multi || self.takes) {
                seen.spared += 1;
            } else {
                self.live.retain(|e| e.age != entry.age);
                self.gone = Some(entry.key.endpoint.into());
                self.choice = None;
                seen.cancelled += u64::from(cancel);
            }
        }
        self.age_due = self.age_due.saturating_sub(1);
        self.chose_last = self.choosing.is_some();
        let took = std::mem::take(&mut self.takes);
        if let Some((asked, hits)) = self.choosing.take() {
            self.choice = self.live.iter().find(|e| hits.contains(&e.age)).copied();
            self.nothing = self.choice.is_none();
            self.takes = asked.take;
            self.chosen_by = asked.by;
            self.age_due = 2;
            match self.choice {
                Some(_) => seen.found[asked.by] += 1,
                None => seen.missing[asked.by] += 1,
            }
            let gone = departing.filter(|e| self.gone.is_some() && hits.contains(&e.age));
            seen.would_have_been_chosen += u64::from(gone.is_some());
            seen.back_to_back += u64::from(search && took);
        }
        self.choosing = self.joining.take();
        let asked = self.asked.take();
        seen.dropped += u64::from(drop && asked.is_some());
        if let Some(asked) = asked.filter(|_| !drop) {
            let agrees = |e: &&Receive| !asked.unknown && e.agrees(SEARCHES[asked.by], &asked.key);
            let hits = self.live.iter().filter(agrees);
            self.joining = Some((asked, hits.map(|e| e.age).collect()));
        }
        // A search doesn't see what comes with it.
        let entered = self.entering.take();
        self.live.extend(entered);
        if search {
            self.asked = Some(Asked {
                by,
                key,
                unknown,
                take,
            });
            seen.searches += 1;
        }
        if insert {
            assert!(
                self.live.iter().all(|e| e.place != place),
                "place {place} is given twice"
            );
            self.entering = Some(Receive {
                key: Key {
                    endpoint: owner,
                    ..key
                },
                age: self.next_age,
                multi,
                place,
            });
            self.shares.counts[usize::from(owner)] += 1;
            seen.inserts += 1;
        }
        self.rested = !insert && entered.is_none();
    }
}

fn mixed(config: &Config, rng: &mut ChaCha8Rng, cycles: u32) -> Seen {
    let mut pair = Pair::new(config);
    let mut seen = Seen::default();
    let mut mood = Mood::random(rng);
    for _ in 0..cycles {
        if rng.random_bool(0.01) {
            mood = Mood::random(rng);
        }
        pair.cycle(mood, rng, &mut seen);
    }
    seen
}

fn every_overlap(config: &Config, cycles: u32) {
    for_seeds(3, |rng| {
        let seen = mixed(config, rng, cycles);
        assert!(seen.found.iter().all(|n| *n > 50), "{seen:?}");
        assert!(seen.missing.iter().all(|n| *n > 20), "{seen:?}");
        let rare = [
            seen.refused,
            seen.cancelled,
            seen.spared,
            seen.back_to_back,
            seen.would_have_been_chosen,
            seen.dropped,
        ];
        assert!(rare.iter().all(|n| *n > 20), "{seen:?}");
    });
}

#[test]
fn searches_choices_and_removals_overlap_as_a_vector_would_have_it_tiny() {
    every_overlap(&config::TINY, 40_000);
}

#[test]
fn searches_choices_and_removals_overlap_as_a_vector_would_have_it_ecp5() {
    every_overlap(&config::ECP5, 100_000);
}

#[test]
fn a_message_a_cycle_takes_the_receives_in_their_order() {
    for config in config::ALL {
        let mut bench = Bench::open(&format!("associative_{}", config.name));
        let count = config.posted as u64 / 2;
        bench.set("ignore_bits", u64::MAX);
        bench.set("any_source", true);
        let mut places = vec![];
        for age in 0..count {
            bench.set("age", age);
            bench.set("insert", true);
            bench.eval();
            places.push(bench.get("place_index"));
            bench.step();
            bench.set("insert", false);
            bench.step();
            bench.step();
        }
        let mut taken = vec![];
        let mut ages = vec![];
        for cycle in 0..count + 7 {
            bench.set("search", cycle < count + 1);
            bench.set("take", true);
            bench.eval();
            if (4..count + 5).contains(&cycle) {
                assert_eq!(bench.is("found"), cycle < count + 4, "cycle {cycle}");
            }
            if (5..count + 5).contains(&cycle) {
                taken.push(bench.get("index"));
            }
            if (6..count + 6).contains(&cycle) {
                ages.push(bench.get("age_out"));
            }
            bench.step();
        }
        assert_eq!(taken, places);
        assert_eq!(ages, (0..count).collect::<Vec<_>>());
        assert_eq!(bench.get("depth"), 0);
    }
}

#[test]
fn reset_forgets_receives_and_quotas() {
    let mut bench = Bench::open("associative_tiny");
    bench.set("insert", true);
    bench.step();
    bench.set("insert", false);
    bench.set("reset", true);
    bench.step();
    bench.set("reset", false);
    bench.eval();
    assert_eq!((bench.get("depth"), bench.get("waiting")), (0, 0));
}

#[test]
fn the_comparison_notices_each_broken_contract() {
    breaks("associative_tiny", 1, |rng| {
        mixed(&config::TINY, rng, 20_000);
    });
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn the_comparison_notices_most_mutants() {
    mutants("associative_tiny", 1, |rng| {
        mixed(&config::TINY, rng, 20_000);
    });
}

/// One cycle's inputs of the directed tests.
#[derive(Clone, Copy)]
enum Do {
    Insert,
    Search,
    Take,
    Remove,
    Cancel,
    Wait,
}

/// Drives these cycles without looking at an output, then says whether a check in the gates has failed.
fn check_fails(mut bench: Bench, cycles: &[Do]) -> bool {
    for (age, what) in cycles.iter().enumerate() {
        bench.set("age", age as u64);
        bench.set("insert", matches!(what, Do::Insert));
        bench.set("search", matches!(what, Do::Search | Do::Take));
        bench.set("take", matches!(what, Do::Take));
        bench.set("remove", matches!(what, Do::Remove | Do::Cancel));
        bench.set("cancel", matches!(what, Do::Cancel));
        bench.model.step();
    }
    bench.model.got_error().is_err()
}

#[test]
fn checks_in_the_gates_notice_what_comparison_may_not() {
    use Do::{Cancel, Insert, Remove, Search, Take, Wait};
    let two = [Insert, Wait, Wait, Insert, Wait, Wait];
    let after = |more: &[Do]| [&two[..], more, &[Wait; 6]].concat();
    let cancelled = after(&[Search, Wait, Wait, Wait, Cancel, Search]);
    let removed = [Search, Wait, Wait, Wait, Remove].repeat(2);
    let removed = after(&removed);
    let overlapping = after(&[Take, Take]);
    let sound = || Bench::open("associative_tiny");
    for (broken, cycles) in [
        ("lose_cancels", &cancelled),
        ("match_twice", &removed),
        ("forget_ages", &removed),
        ("reuse_places", &removed),
        ("find_removed", &removed),
        ("choose_departing", &overlapping),
    ] {
        assert!(!check_fails(sound(), cycles), "sound");
        let noticed = check_fails(Bench::broken("associative_tiny", broken), cycles);
        assert!(noticed, "{broken} goes unnoticed");
    }
    // What the caller may not do.
    for wrong in [
        &[Insert, Insert][..],
        &[Insert, Wait, Insert],
        &[Insert, Search, Wait, Wait, Remove],
        &[Insert, Take, Wait, Wait, Wait, Remove],
        &[Insert, Search, Wait, Wait, Wait, Remove, Remove],
    ] {
        assert!(check_fails(sound(), wrong));
    }
}

/// Random takes and gives, by themselves and together.
fn quota(config: &Config, rng: &mut ChaCha8Rng, cycles: u32) {
    let mut bench = Bench::open(&format!("quota_{}", config.name));
    let mut shares = Shares::new(config);
    let (mut refused, mut full, mut reserved_kept) = (0, 0, 0);
    let (mut taking, mut giving) = (0.5, 0.5);
    for _ in 0..cycles {
        if rng.random_bool(0.02) {
            (taking, giving) = (hdl_tests::rate(rng), hdl_tests::rate(rng));
        }
        let asked = rng.random_range(0..config.endpoints + 1);
        let taker = rng.random_range(0..config.endpoints);
        let giver = rng.random_range(0..config.endpoints);
        let take = rng.random_bool(taking) && shares.room(taker);
        let give = rng.random_bool(giving) && shares.counts[giver] > 0;
        bench.set("endpoint", asked as u64);
        bench.set("take", take);
        bench.set("take_bit", 1u64 << taker);
        bench.set("give", give);
        bench.set("give_bit", 1u64 << giver);
        bench.eval();
        let total: usize = shares.counts.iter().sum();
        assert_eq!(bench.is("room"), shares.room(asked), "{:?}", shares.counts);
        assert_eq!(bench.get("holds"), shares.holds());
        assert_eq!(bench.get("used"), total as u64);
        refused += u32::from(!shares.room(taker));
        full += u32::from(total == shares.capacity);
        reserved_kept += u32::from(!shares.room(taker) && total < shares.capacity);
        bench.step();
        shares.counts[taker] += usize::from(take);
        shares.counts[giver] -= usize::from(give);
    }
    assert!(refused > 10 && full > 10 && reserved_kept > 10);
}

#[test]
fn an_endpoint_may_take_its_part_and_what_is_common() {
    for config in config::ALL {
        for_seeds(3, |rng| quota(config, rng, 20_000));
    }
}

#[test]
fn quotas_that_are_broken_are_noticed() {
    breaks("quota_tiny", 1, |rng| quota(&config::TINY, rng, 20_000));
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_of_quotas_are_noticed() {
    mutants("quota_tiny", 1, |rng| quota(&config::TINY, rng, 20_000));
}
