//! How long it takes to take a peer's access away, what the others notice of it, and how long it takes to give it.
//!
//! ```text
//!  card 1 ── puts, k outstanding, until the end ──────────────► card 0: revokes ─► looks, writes ─► at the end it is as written
//!  card 2 ── long puts over four pairs, if it is busy ────────►
//! ```
//!
//! A revocation is measured from its call to its return, which is the guarantee: the first register write of the call comes in its first cycle. The accesses under
//! way are the puts that their cards have outstanding. What the others notice is the ratio of two rates of card 2's bytes on the wire: while card 0
//! revokes card 1's peer again and again, without a pause, and while it doesn't.
//!
//! What a look-up takes, by how much there is to look up, [`lookup`] measures.

mod lookup;

use std::ops::Range;

use abi::limits::MAX_UNACKNOWLEDGED;
use anyhow::{Context, Result, ensure};
use host_driver::{Access, Buffer, Cover, Pair, Put, RemoteKey, RemoteRights, WcStatus, Window};
use sim::fabric::LinkFilter;
use sim::{Cluster, Firmware, Host};

use self::lookup::Tables;
use super::ends::{Ends, Link, Wire, succeeded, told};
use super::speed::Length;
use super::{Point, Report};

/// Puts that a pair may have unacknowledged: the most that it can have under way.
const MOST: usize = MAX_UNACKNOWLEDGED as usize;
/// Pairs of card 2.
const OTHERS: usize = 4;
/// Bytes of a put of card 1, and of one of card 2.
const BYTES: usize = 1024;
const LONG: usize = 16 << 10;
/// Cycles between two looks of a host at its completion queue.
const LOOK: u64 = 16;
/// Cycles until all puts run.
const SETTLE: u64 = 8_000;
/// Cycles that a call which is measured once may take, and all of them.
const ONCE: u64 = 12_000;
const ALL_CALLS: u64 = 60_000;
/// Cycles for which rates are measured, by length. In fewer the bursts of the others' puts show.
const RATES: u64 = 300_000;
const SHORT_RATES: u64 = 100_000;
/// Regions and grants that are left for other uses than those that are measured many at a time: buffers, and the others' window.
const OTHER_REGIONS: usize = 8;
/// Kinds of fences.
const COVERS: usize = 6;
/// Cycles without a completion after which a benchmark gives up.
const PATIENCE: u64 = 1_000_000;
/// What card 0 writes where nobody may any more.
const OURS: u8 = 0x77;

/// What ends what was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// One key.
    Key,
    /// All keys of the peer.
    Peer,
}

impl What {
    const fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Peer => "peer",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    what: What,
    /// Puts that card 1 has outstanding.
    puts: usize,
    /// Whether card 2 puts.
    busy: bool,
    /// Regions that are granted to card 1.
    regions: usize,
    /// Cycles for which rates are measured, if they are.
    rates: u64,
}

impl Case {
    const fn under_way(&self) -> usize {
        self.puts + if self.busy { OTHERS * MOST } else { 0 }
    }
}

/// What was seen of a case, in cycles.
struct Seen {
    revoke: u64,
    /// By what each covers.
    fences: [(&'static str, u64); COVERS],
    /// Of so many revocations one after the other: the others' rate, as a share of what it is without.
    bystander: Option<(u64, f64)>,
}

/// Runs the suite.
///
/// # Errors
/// If the simulation fails, or a byte changes that nobody may write.
pub fn run(config: &str, length: Length, seed: u64, firmware: &Firmware) -> Result<Report> {
    let sizes = hdl::config::ALL.iter().find(|known| known.name == config);
    let sizes = sizes.context("a configuration")?;
    let rows = sizes.regions.min(sizes.grants);
    let many = rows.checked_sub(OTHER_REGIONS).context("regions")?;
    let base = Case {
        what: What::Key,
        puts: MOST,
        busy: false,
        regions: 1,
        rates: 0,
    };
    let busy = Case { busy: true, ..base };
    let all = Case {
        what: What::Peer,
        rates: RATES,
        ..busy
    };
    let tables = |regions, senders| Tables { regions, senders };
    let (cases, senders, lookups) = match length {
        Length::Short => {
            let cases = vec![Case {
                rates: SHORT_RATES,
                ..all
            }];
            (cases, vec![], vec![tables(1, 1), tables(many, 2)])
        }
        _ => {
            let none = Case { puts: 0, ..base };
            let peer = |case: Case, regions| Case {
                what: What::Peer,
                regions,
                ..case
            };
            let cases = vec![
                none,
                base,
                busy,
                peer(none, 1),
                peer(base, 1),
                peer(base, many),
                all,
            ];
            let lookups = vec![
                tables(1, 1),
                tables(1, sizes.pairs),
                tables(many, 1),
                tables(many, sizes.pairs),
            ];
            (cases, vec![1, 16, sizes.pairs], lookups)
        }
    };
    let cluster = |cards| {
        let cluster = length.cluster(config).cards(cards).seed(seed);
        cluster.firmware(firmware.clone())
    };
    let mut points = Vec::new();
    for case in cases {
        let seen = measure(cluster(3), case).with_context(|| format!("{case:?}"))?;
        let under_way = case.under_way();
        let params = [
            ("what", case.what.name().into()),
            ("in_flight", under_way.into()),
            ("regions", case.regions.into()),
        ];
        points.push(Point::new("revoke", params, seen.revoke as f64, "cycles"));
        if case.what == What::Peer && case.regions == 1 {
            for (cover, cycles) in seen.fences {
                let params = [("cover", cover.into()), ("in_flight", under_way.into())];
                points.push(Point::new("fence", params, cycles as f64, "cycles"));
            }
        }
        if let Some((count, ratio)) = seen.bystander {
            let params = [("during", "revoke".into())];
            let mut point = Point::new("bystander", params, ratio, "ratio");
            point.beside.insert("revocations", count as f64);
            points.push(point);
        }
    }
    for senders in senders {
        if senders > sizes.pairs {
            continue;
        }
        for shared in [false, true] {
            let cycles = grants(cluster(2), senders, shared)
                .with_context(|| format!("{senders} senders, shared: {shared}"))?;
            let key = if shared { "shared" } else { "per_sender" };
            let params = [("senders", senders.into()), ("key", key.into())];
            points.push(Point::new("grant", params, cycles as f64, "cycles"));
        }
    }
    for tables in lookups {
        let seen = lookup::measure(cluster(2), tables).with_context(|| format!("{tables:?}"))?;
        let params = [
            ("regions", tables.regions.into()),
            ("senders", tables.senders.into()),
        ];
        let mut point = Point::new("lookup", params, seen.alone, "cycles");
        point.beside.insert("keys", tables.keys() as f64);
        point.beside.insert("accesses_per_cycle", seen.rate);
        points.push(point);
    }
    Ok(Report::new("protect", config, seed, points))
}

fn links() -> Vec<Link> {
    let others = (0..OTHERS).map(|_| (2, 0));
    [(1, 0)].into_iter().chain(others).collect()
}

fn measure(cluster: Cluster, case: Case) -> Result<Seen> {
    let wire = Wire::default();
    let outcome = cluster.tap(LinkFilter::ALL, wire.tap());
    let outcome = outcome.run(|host| rank(host, case));
    let told = told(outcome)?;
    let measured = told.into_iter().flatten().next();
    let (revoke, fences, rates) = measured.context("card 0 measures")?;
    let bystander = rates.map(
        |Rates {
             quiet,
             revoking,
             count,
         }| { (count, wire.rate(2, &revoking) / wire.rate(2, &quiet)) },
    );
    Ok(Seen {
        revoke,
        fences,
        bystander,
    })
}

/// The cycles in which rates are measured, and revocations in the second.
struct Rates {
    quiet: Range<u64>,
    revoking: Range<u64>,
    count: u64,
}

/// What card 0 tells: cycles of a revocation and of fences, and where the rates are.
type Told = (u64, [(&'static str, u64); COVERS], Option<Rates>);

fn rank(host: Host, case: Case) -> Result<Option<Told>> {
    let links = links();
    // Card 0 sends nothing.
    let sends = if host.card() == 0 {
        0
    } else {
        MAX_UNACKNOWLEDGED
    };
    let ends = Ends::open(host, &links, sends)?;
    let rights = RemoteRights::WRITE;
    if ends.card() != 0 {
        let keys = ends.share_keys(&[])?;
        let (own, outstanding, bytes) = match ends.card() {
            1 => (0..1, case.puts, BYTES),
            _ => (1..links.len(), if case.busy { 2 } else { 0 }, LONG),
        };
        let mut free = Vec::new();
        if outstanding > 0 {
            let all = own.len() * outstanding;
            let (_, mut memory) = ends.pd.reg_mr(all * bytes, Access::ReadWrite)?;
            memory.fill(1);
            free.extend((0..all).map(|place| (place, memory.split_to(bytes))));
        }
        let end = ends.meet()? + SETTLE + ALL_CALLS + 2 * case.rates;
        let (landed, refused) = stream(&ends, &keys, own.start, free, outstanding, end)?;
        match ends.card() {
            1 if case.puts > 0 => ensure!(
                landed > 0 && refused > 0,
                "{landed} puts landed, {refused} were refused"
            ),
            _ => ensure!(refused == 0, "puts of the others were refused"),
        }
        ends.meet()?;
        return Ok(None);
    }
    let window = |length| ends.pd.reg_window(length, rights);
    let parts: Vec<Window> = (0..case.regions)
        .map(|_| window(2 * BYTES * MOST))
        .collect::<Result<_, _>>()?;
    let whole = window(2 * OTHERS * LONG)?;
    let mut keys = Vec::new();
    for part in &parts {
        keys.push(part.grant(&ends.endpoint, ends.pair(0)?, rights, ..)?);
    }
    let first = keys[0];
    keys.truncate(1);
    for link in 1..links.len() {
        keys.push(whole.grant(&ends.endpoint, ends.pair(link)?, rights, ..)?);
    }
    ends.share_keys(&keys)?;
    let begin = ends.meet()? + SETTLE;
    ends.pause_until(begin);
    let pair = ends.pair(0)?;
    let all = Cover::all();
    let of_window = all.window(&parts[0]);
    let covers = [
        ("all", all),
        ("region", of_window),
        ("pair", all.pair(&ends.endpoint, pair)),
        ("region_pair", of_window.pair(&ends.endpoint, pair)),
        ("context", all.context(0)),
        ("pages", all.window_pages(&parts[0], ..)),
    ];
    let mut fences = [("", 0); COVERS];
    for (fence, (name, cover)) in fences.iter_mut().zip(covers) {
        *fence = (name, timed(&ends, || Ok(ends.pd.fence(cover)?))?);
    }
    let revoke = timed(&ends, || match case.what {
        What::Key => Ok(parts[0].revoke(first)?),
        What::Peer => Ok(ends.endpoint.revoke_peer(pair)?),
    })?;
    // From the very cycle in which it returns the memory is ours.
    let mut held = Vec::new();
    for part in &parts {
        let mut bytes = vec![OURS; part.length()];
        part.write(0, &bytes);
        part.read(0, &mut bytes);
        held.push(bytes);
    }
    let rates = match case.rates {
        0 => None,
        cycles => Some(rates(&ends, pair, cycles)?),
    };
    ends.meet()?;
    for (part, held) in parts.iter().zip(held) {
        let mut bytes = vec![0; part.length()];
        part.read(0, &mut bytes);
        ensure!(bytes == held, "a byte was written behind a revocation");
    }
    Ok(Some((revoke, fences, rates)))
}

/// Cycles that a call takes.
fn timed(ends: &Ends, call: impl FnOnce() -> Result<()>) -> Result<u64> {
    let begin = ends.now();
    call()?;
    let cycles = ends.now() - begin;
    ensure!(cycles < ONCE, "it took {cycles} cycles");
    Ok(cycles)
}

/// Lets so many cycles pass, and revokes a peer again and again for as many.
fn rates(ends: &Ends, pair: Pair, cycles: u64) -> Result<Rates> {
    let begin = ends.now();
    let middle = begin + cycles;
    ends.pause_until(middle);
    let mut count = 0;
    while ends.now() < middle + cycles {
        ends.endpoint.revoke_peer(pair)?;
        count += 1;
    }
    Ok(Rates {
        quiet: begin..middle,
        revoking: middle..middle + cycles,
        count,
    })
}

/// Puts from these buffers, so many for each link from the first on, until a cycle. Returns how many landed and how many were refused.
fn stream(
    ends: &Ends,
    keys: &[RemoteKey],
    first: usize,
    mut free: Vec<(usize, Buffer)>,
    outstanding: usize,
    end: u64,
) -> Result<(u64, u64)> {
    let all = free.len();
    let (mut landed, mut refused, mut last) = (0, 0, ends.now());
    loop {
        let goes_on = ends.now() < end;
        while goes_on && let Some((place, buffer)) = free.pop() {
            let link = first + place / outstanding;
            let put = Put {
                pair: ends.pair(link)?,
                key: keys[link],
                offset: (place * buffer.len()) as u64,
            };
            let posted = ends.endpoint.post_put(place as u64, &put, buffer);
            posted.map_err(|refused| refused.error)?;
        }
        while let Some(completion) = ends.queue.poll() {
            match completion.status {
                WcStatus::RemoteAccess => refused += 1,
                status => {
                    succeeded(status)?;
                    landed += 1;
                }
            }
            last = ends.now();
            let place = completion.wr_id as usize;
            free.push((place, completion.buffer.context("the buffer")?));
        }
        if !goes_on && free.len() == all {
            return Ok((landed, refused));
        }
        ensure!(
            all == 0 || ends.now() - last < PATIENCE,
            "a put never completed"
        );
        ends.pause_until(ends.now() + LOOK);
    }
}

/// Cycles to make keys for so many senders: one for each, or one that is shared with each.
fn grants(cluster: Cluster, senders: usize, shared: bool) -> Result<u64> {
    let links = vec![(1, 0); senders];
    let outcome = cluster.run(|host| -> Result<Option<u64>> {
        let ends = Ends::open(host, &links, 0)?;
        if ends.card() == 1 {
            ends.meet()?;
            return Ok(None);
        }
        let rights = RemoteRights::WRITE;
        let window = ends.pd.reg_window(4096, rights)?;
        let begin = ends.now();
        if shared {
            let key = window.grant_shared(&ends.endpoint, ends.pair(0)?, rights, ..)?;
            for link in 1..senders {
                window.share(key, &ends.endpoint, ends.pair(link)?, true)?;
            }
        } else {
            for link in 0..senders {
                window.grant(&ends.endpoint, ends.pair(link)?, rights, ..)?;
            }
        }
        let cycles = ends.now() - begin;
        ends.meet()?;
        Ok(Some(cycles))
    });
    let told = told(outcome)?;
    let cycles = told.into_iter().flatten().next();
    cycles.context("card 0 measures")
}
