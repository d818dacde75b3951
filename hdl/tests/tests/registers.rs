//! The register block, Verilated, cycle by cycle against a model of the register map, with a host
//! that writes and reads at the same time.

use abi::register::{self, Access, ENDPOINT_PAGE, MAILBOX_PAGE, MAILBOX_WORDS};
use hdl::config::{self, Config};
use hdl_tests::broken::breaks;
use hdl_tests::{Bench, for_sizes, rate};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

const OKAY: u64 = 0;
const SLVERR: u64 = 2;

/// What the blocks around tell of one endpoint, in the order of [`ENDPOINT_INPUTS`].
type Endpoint = [u64; 6];

const ENDPOINT_INPUTS: [(&str, u32); 6] = [
    ("send_head", register::SEND_HEAD),
    ("list_head", register::LIST_HEAD),
    ("completion_tail", register::COMPLETION_TAIL),
    ("event_tail", register::EVENT_TAIL),
    ("sticky", register::STICKY),
    ("events_lost", register::EVENTS_LOST),
];

/// What the block holds, and what it told the others last.
#[derive(Default)]
struct Reference {
    endpoints: u32,
    run: bool,
    loader_address: u32,
    request: u32,
    asked: bool,
    reset_asked: bool,
    doorbell: Option<(u32, u32, u32)>,
    load: Option<(u32, u32)>,
    requested: bool,
}

impl Reference {
    /// A write that was taken; the mailbox word that it writes at once, if it does.
    fn write(&mut self, address: u32, value: u32, inputs: &Inputs) -> Option<u32> {
        let (page, offset) = (
            address / register::PAGE_BYTES,
            address % register::PAGE_BYTES,
        );
        if page == 0 {
            match offset {
                register::CONTROL => {
                    self.run = value & register::CONTROL_RUN != 0;
                    self.reset_asked = value & register::CONTROL_RESET != 0;
                }
                register::MAILBOX_REQUEST => {
                    self.request = value;
                    self.asked = true;
                    self.requested = true;
                }
                register::LOADER_ADDRESS if !self.run => self.loader_address = value,
                register::LOADER_DATA if !self.run => {
                    self.load = Some((self.loader_address, value));
                    self.loader_address = self.loader_address.wrapping_add(4);
                }
                _ => return command_word(offset),
            }
        } else if page <= self.endpoints && !inputs.resetting {
            let listed = ENDPOINT_PAGE.iter().find(|r| r.offset == offset);
            if listed.is_some_and(|r| r.access != Access::ReadOnly) {
                self.doorbell = Some((page - 1, offset, value));
            }
        }
        None
    }

    fn read(&self, address: u32, inputs: &Inputs, mailbox: u64, endpoint: &Endpoint) -> u64 {
        let (page, offset) = (
            address / register::PAGE_BYTES,
            address % register::PAGE_BYTES,
        );
        if page > 0 {
            let found = ENDPOINT_INPUTS.iter().position(|(_, at)| *at == offset);
            let exists = page <= self.endpoints;
            return found.filter(|_| exists).map_or(0, |k| endpoint[k]);
        }
        match offset {
            register::ID => register::MAGIC.into(),
            register::ABI => abi::ABI_VERSION.into(),
            register::STATUS => u64::from(
                u32::from(inputs.ready) * register::STATUS_READY
                    + u32::from(inputs.start != 0) * register::STATUS_FIRMWARE,
            ),
            register::CONTROL => u64::from(
                u32::from(self.run) * register::CONTROL_RUN
                    + u32::from(inputs.resetting) * register::CONTROL_RESET,
            ),
            register::MAILBOX_REQUEST => self.request.into(),
            register::MAILBOX_ANSWER => inputs.answer.into(),
            register::FIRMWARE_START => inputs.start.into(),
            register::LOADER_ADDRESS => self.loader_address.into(),
            _ if mailbox_word(offset).is_some() => mailbox,
            _ => 0,
        }
    }
}

fn command_word(offset: u32) -> Option<u32> {
    mailbox_word(offset).filter(|word| *word < 32)
}

/// Word of the mailbox's memories at an offset of page 0.
fn mailbox_word(offset: u32) -> Option<u32> {
    let area = |first: u32| {
        let word = offset.wrapping_sub(first) / 4;
        (offset >= first && offset.is_multiple_of(4) && word < MAILBOX_WORDS as u32).then_some(word)
    };
    let result = area(register::MAILBOX_RESULT).map(|word| word + 32);
    area(register::MAILBOX_COMMAND).or(result)
}

/// What the block is told in a cycle.
#[derive(Default)]
struct Inputs {
    ready: bool,
    resetting: bool,
    start: u32,
    answer: u32,
}

fn random_address(rng: &mut impl Rng, endpoints: u32) -> u32 {
    // The first page, those of the first and the last endpoints, and those beyond.
    let page = [0, 0, 0, 1, 2, endpoints, endpoints + 1, 255][rng.random_range(0..8)];
    let listed = if page == 0 {
        MAILBOX_PAGE
    } else {
        ENDPOINT_PAGE
    };
    let offset = match rng.random_range(0..8) {
        0 => rng.random_range(0..register::PAGE_BYTES),
        1 | 2 => 0x100 + rng.random_range(0..0x180),
        3 => listed[rng.random_range(0..listed.len())].offset + rng.random_range(0..4),
        _ => listed[rng.random_range(0..listed.len())].offset,
    };
    page * register::PAGE_BYTES + offset
}

/// A write of the host: each of its two halves may be offered first.
struct Write {
    address: u32,
    value: u32,
    strobe: u64,
    has_address: bool,
    has_data: bool,
}

/// A read that was taken: cycles since, and what the looking found.
struct Read {
    address: u32,
    age: u32,
    mailbox: u64,
    endpoint: Endpoint,
    expected: Option<u64>,
}

fn run(top: &str, config: &Config, rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open(top);
    let mut reference = Reference {
        endpoints: config.endpoints as u32,
        ..Reference::default()
    };
    let mut inputs = Inputs::default();
    let mut mailbox = [0_u64; 64];
    let mut endpoints = [Endpoint::default(); 256];
    let (busy, willing) = (rate(rng), rate(rng));
    let mut write: Option<Write> = None;
    let mut response: Option<u64> = None;
    let mut reading: Option<u32> = None;
    let mut read: Option<Read> = None;
    // What memories give for the addresses of the cycle before.
    let (mut mailbox_out, mut endpoint_out) = (0, Endpoint::default());
    let (mut writes, mut reads) = (0, 0);
    for cycle in 0..8000 {
        // The host.
        if write.is_none() && response.is_none() && rng.random_bool(busy) {
            write = Some(Write {
                address: random_address(rng, config.endpoints as u32),
                value: if rng.random() {
                    rng.random()
                } else {
                    rng.random_range(0..4)
                },
                strobe: match rng.random_range(0..10) {
                    0 => 0,
                    1 => rng.random_range(1..15),
                    _ => 15,
                },
                has_address: false,
                has_data: false,
            });
        }
        if let Some(write) = &mut write {
            write.has_address |= rng.random_bool(busy);
            write.has_data |= rng.random_bool(busy);
        }
        let (aw, w) = match &write {
            Some(w) => (w.has_address, w.has_data),
            None => (false, false),
        };
        bench.set("s_axil_awvalid", aw);
        bench.set("s_axil_wvalid", w);
        let noise = (
            rng.random_range(0..1 << 20),
            rng.random(),
            rng.random_range(0..16),
        );
        let shown = write.as_ref().map(|w| (w.address, w.value, w.strobe));
        let (address, value, strobe) = shown.unwrap_or(noise);
        bench.set("s_axil_awaddr", if aw { address } else { noise.0 });
        bench.set("s_axil_wdata", if w { value } else { noise.1 });
        bench.set("s_axil_wstrb", if w { strobe } else { noise.2 });
        bench.set("s_axil_bready", rng.random_bool(willing));
        if reading.is_none() && rng.random_bool(busy) {
            reading = Some(random_address(rng, config.endpoints as u32));
        }
        bench.set("s_axil_arvalid", reading.is_some());
        bench.set("s_axil_araddr", reading.unwrap_or(noise.0));
        bench.set("s_axil_rready", rng.random_bool(willing));

        // The blocks around.
        if rng.random_bool(0.2) {
            inputs.ready = rng.random();
            inputs.resetting = rng.random();
            inputs.start = [0, 1, 1 << 31, rng.random()][rng.random_range(0..4)];
            inputs.answer = rng.random_range(0..3);
        }
        bench.set("gates_ready", inputs.ready);
        bench.set("gates_resetting", inputs.resetting);
        bench.set("firmware_start", inputs.start);
        bench.set("mailbox_answer", inputs.answer);
        bench.set("mailbox_read_data", mailbox_out);
        let loads = rng.random_bool(willing);
        bench.set("loader_ready", loads);
        for ((name, _), value) in ENDPOINT_INPUTS.into_iter().zip(endpoint_out) {
            bench.set(name, value);
        }
        bench.eval();

        // What it tells the others.
        let of = |bench: &Bench, name: &str| bench.get(name) as u32;
        assert_eq!(bench.is("run"), reference.run, "cycle {cycle}");
        assert_eq!(of(&bench, "mailbox_request"), reference.request);
        assert_eq!(bench.is("mailbox_request_valid"), reference.requested);
        assert_eq!(bench.is("gates_reset"), reference.reset_asked);
        assert_eq!(
            bench.is("mailbox_interrupt"),
            reference.asked && reference.request == inputs.answer
        );
        let doorbell = bench.is("doorbell_valid").then(|| {
            let bits = bench.get("doorbell");
            (
                bits as u32 & 0xff,
                bits as u32 >> 8 & 0xff,
                (bits >> 16) as u32,
            )
        });
        assert_eq!(doorbell, reference.doorbell, "cycle {cycle}");
        let load = bench
            .is("loader_valid")
            .then(|| (of(&bench, "loader"), (bench.get("loader") >> 32) as u32));
        assert_eq!(load, reference.load, "cycle {cycle}");
        let load_waits = load.is_some() && !loads;
        reference.doorbell = None;
        reference.load = reference.load.filter(|_| load_waits);
        reference.requested = false;
        reference.reset_asked = false;

        // Reads.
        if let Some(read) = &mut read {
            read.age += 1;
            let endpoint = (read.address / register::PAGE_BYTES).wrapping_sub(1) & 0xff;
            if read.age == 1 {
                assert_eq!(of(&bench, "read_endpoint"), endpoint);
                read.endpoint = endpoints[endpoint as usize];
                let word = mailbox_word(read.address % register::PAGE_BYTES);
                read.mailbox = word.map_or(0, |word| mailbox[word as usize]);
            }
            if read.age == 2 {
                let (mailbox, endpoint) = (read.mailbox, read.endpoint);
                read.expected = Some(reference.read(read.address, &inputs, mailbox, &endpoint));
            }
        }
        let due = read.as_ref().is_some_and(|read| read.age >= 3);
        assert_eq!(bench.is("s_axil_rvalid"), due, "cycle {cycle}");
        if due && let Some(expected) = read.as_ref().and_then(|read| read.expected) {
            let address = read.as_ref().map_or(0, |read| read.address);
            assert_eq!(
                bench.get("s_axil_rdata"),
                expected,
                "{address:#x}, cycle {cycle}"
            );
            assert_eq!(bench.get("s_axil_rresp"), OKAY);
            if bench.is("s_axil_rready") {
                read = None;
                reads += 1;
            }
        }
        if let Some(address) = reading
            && bench.is("s_axil_arready")
        {
            assert!(read.is_none(), "one read at a time");
            reading = None;
            read = Some(Read {
                address,
                age: 0,
                mailbox: 0,
                endpoint: Endpoint::default(),
                expected: None,
            });
        }

        // Writes.
        assert_eq!(
            bench.is("s_axil_bvalid"),
            response.is_some(),
            "cycle {cycle}"
        );
        if let Some(expected) = response {
            assert_eq!(bench.get("s_axil_bresp"), expected, "cycle {cycle}");
            if bench.is("s_axil_bready") {
                response = None;
                writes += 1;
            }
        }
        let taken = aw && bench.is("s_axil_awready");
        assert_eq!(taken, w && bench.is("s_axil_wready"), "both or none");
        assert!(!taken || !load_waits, "a write passes a loader word");
        let looked_up = bench.get("mailbox_address") as usize;
        mailbox_out = mailbox[looked_up];
        endpoint_out = endpoints[bench.get("read_endpoint") as usize];
        let mut stored = None;
        if let Some(done) = write.take_if(|_| taken) {
            let whole = done.strobe == 15;
            response = Some(if whole || done.strobe == 0 {
                OKAY
            } else {
                SLVERR
            });
            if whole {
                stored = reference.write(done.address, done.value, &inputs);
            }
        }
        let wrote = bench.is("mailbox_write");
        assert_eq!(wrote.then_some(looked_up as u32), stored, "cycle {cycle}");
        if wrote {
            mailbox[looked_up] = bench.get("mailbox_write_data");
        }
        bench.step();
        if rng.random_bool(0.3) {
            endpoints[rng.random_range(0..5)] = [
                rng.random_range(0..1 << 16),
                rng.random_range(0..1 << 16),
                rng.random_range(0..1 << 16),
                rng.random_range(0..1 << 16),
                rng.random_range(0..1 << 32),
                rng.random_range(0..1 << 32),
            ];
            mailbox[rng.random_range(32..64)] = rng.random_range(0..1 << 32);
        }
    }
    assert!(writes > 50 && reads > 50, "{writes} writes, {reads} reads");
}

#[test]
fn registers_are_those_of_the_map_whatever_comes_first() {
    for_sizes("registers", 16, |size, rng| {
        run(&size.model, size.config, rng)
    });
}

#[test]
fn each_broken_contract_of_the_registers_is_noticed() {
    breaks("registers_tiny", 4, |rng| {
        run("registers_tiny", &config::TINY, rng)
    });
}

/// As it broke: it was answered SLVERR, which a processor takes for a bus error.
#[test]
fn a_write_without_any_strobe_is_legal_and_changes_nothing() {
    let mut bench = Bench::open("registers_tiny");
    for (strobe, response) in [(0_u64, OKAY), (1, SLVERR), (14, SLVERR), (0, OKAY)] {
        bench.set("s_axil_awaddr", register::CONTROL);
        bench.set("s_axil_wdata", u64::from(register::CONTROL_RUN));
        bench.set("s_axil_wstrb", strobe);
        bench.set("s_axil_awvalid", true);
        bench.set("s_axil_wvalid", true);
        bench.step();
        bench.set("s_axil_awvalid", false);
        bench.set("s_axil_wvalid", false);
        bench.set("s_axil_bready", true);
        bench.eval();
        assert!(bench.is("s_axil_bvalid"));
        assert_eq!(bench.get("s_axil_bresp"), response, "strobes {strobe:#x}");
        bench.step();
        assert!(!bench.is("run"));
    }
}

#[test]
fn a_reset_holds_the_processor_and_forgets_the_mailbox() {
    let mut bench = Bench::open("registers_tiny");
    for (address, value) in [(register::CONTROL, 1), (register::MAILBOX_REQUEST, 7)] {
        bench.set("s_axil_awaddr", address);
        bench.set("s_axil_wdata", value as u64);
        bench.set("s_axil_wstrb", 15_u64);
        bench.set("s_axil_awvalid", true);
        bench.set("s_axil_wvalid", true);
        bench.step();
        bench.set("s_axil_awvalid", false);
        bench.set("s_axil_wvalid", false);
        bench.set("s_axil_bready", true);
        bench.step();
    }
    assert!(bench.is("run"));
    assert_eq!(bench.get("mailbox_request"), 7);
    bench.set("reset", true);
    bench.step();
    assert!(!bench.is("run"));
    assert_eq!(bench.get("mailbox_request"), 0);
    assert!(!bench.is("mailbox_interrupt"), "nothing was asked");
}

#[test]
fn an_access_that_is_offered_in_reset_is_answered_after_it() {
    let mut bench = Bench::open("registers_tiny");
    bench.set("reset", true);
    bench.set("s_axil_araddr", register::ID);
    bench.set("s_axil_arvalid", true);
    bench.set("s_axil_rready", true);
    for valid in ["s_axil_awvalid", "s_axil_wvalid"] {
        bench.set(valid, true);
    }
    bench.eval();
    for ready in ["s_axil_arready", "s_axil_awready", "s_axil_wready"] {
        assert!(!bench.is(ready), "{ready} in reset");
    }
    bench.step();
    bench.set("s_axil_awvalid", false);
    bench.set("s_axil_wvalid", false);
    bench.set("reset", false);
    bench.eval();
    assert!(bench.is("s_axil_arready"));
    bench.step();
    bench.set("s_axil_arvalid", false);
    let answered = (0..8).any(|_| {
        bench.eval();
        let valid = bench.is("s_axil_rvalid");
        bench.step();
        valid
    });
    assert!(answered);
}
