//! Firmware that isn't there, hangs, or is told nonsense.

use abi::mailbox::Command;
use abi::register::{CONTROL, CONTROL_RUN, FIRMWARE_START, MAILBOX_WORDS};
use abi::status::MailboxStatus;
use host_driver::{
    Access, CommandError, Device, DeviceOptions, OpenError, Source, TaggedReceive, WcStatus,
};
use posthorn_tests::cards::{GatesOnly, both, cards, firmware};
use posthorn_tests::raw::{LoopbackEndpoint, RawHost};
use posthorn_tests::side::{Setup, Side};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::Cluster;

const IMPATIENT: DeviceOptions = DeviceOptions {
    ready_timeout: 20_000,
    command_timeout: 20_000,
    ..DeviceOptions::DEFAULT
};

/// As it broke: the paths of other people's packages were among its constants, and the path of ours decided the order of its functions. So each machine had cycles
/// of its own.
#[test]
fn firmware_holds_no_path_of_the_machine_that_built_it() {
    let machine = env!("CARGO_MANIFEST_DIR").strip_suffix("tests").unwrap();
    for segment in firmware().segments() {
        let text = String::from_utf8_lossy(&segment.bytes);
        for path in [machine, ".cargo", "/registry/src"] {
            assert!(!text.contains(path), "{path}");
        }
    }
}

#[test]
fn absent_firmware_is_a_time_out_that_says_so() {
    let cluster = Cluster::verilated("tiny").seed(81);
    GatesOnly::Firmware.run(cluster, |host| {
        let opened = Device::open_with(host.transport(), IMPATIENT);
        let error = opened.err().expect("no firmware, no device");
        assert_eq!(error, OpenError::FirmwareTimeout(20_000));
        assert!(error.to_string().contains("is it loaded and running?"));
    });
}

#[test]
fn firmware_that_hosts_write_into_their_cards_runs_as_firmware_that_is_there_at_power_up() {
    let run = |cluster: Cluster| {
        let (told, report) = GatesOnly::Firmware.run(cluster, |host| {
            let mut me = Side::open(&host);
            let peer = 1 - me.rank();
            me.receive(1, Some(peer), 1, 100);
            me.send(peer, 1, 2, 100);
            let statuses = me.statuses(2);
            let build_id = me.device.identity().build_id;
            me.meet();
            me.finish();
            (build_id, statuses)
        });
        (told, report.cycles)
    };
    let (told, cycles) = run(cards("tiny", 2, 88));
    let (told_loaded, cycles_loaded) = run(cards("tiny", 2, 88).loaded_by_hosts());
    assert_eq!(told.len(), 2);
    for (build_id, statuses) in &told {
        assert_eq!(*build_id, firmware().build_id());
        let well = |wr_id| (wr_id, WcStatus::Success);
        assert!(statuses.contains(&well(1)) && statuses.contains(&well(2)));
    }
    assert_eq!(told_loaded, told);
    let bytes: usize = firmware().segments().iter().map(|s| s.bytes.len()).sum();
    let words = bytes as u64 / 4;
    assert!(
        cycles_loaded > cycles + words,
        "a word takes a register write"
    );
}

#[test]
fn hung_firmware_is_a_time_out_that_names_the_command_and_traffic_goes_on() {
    both("tiny", 2, 82, |host| {
        let setup = Setup {
            device: IMPATIENT,
            ..Setup::default()
        };
        let mut me = Side::with(&host, setup);
        if me.rank() == 0 {
            let device = me.device.clone();
            // SAFETY: it isn't the owner, but holding the processor moves nothing: what is open goes on as it is.
            unsafe { host.transport().write_register(CONTROL, 0) }.unwrap();
            let hung = CommandError::FirmwareTimeout {
                command: Command::OpenDomain,
                cycles: 20_000,
            };
            assert_eq!(device.alloc_pd().err(), Some(hung));
            // A later command fails at once, and names the one that hangs.
            let before = device.now();
            assert_eq!(device.alloc_pd().err(), Some(hung));
            assert!(device.now() < before + 1000);
            me.send(1, 1, 1, 100);
            assert_eq!(me.statuses(1), [(1, WcStatus::Success)]);
            // Closing what is open needs the firmware: that must not take for ever either.
            me.meet();
            std::mem::forget(me);
        } else {
            me.receive(1, Some(0), 1, 100);
            let received = me.completion();
            me.assert_received(&received, 0, 1, 100);
            me.finish();
        }
    });
}

#[test]
fn firmware_that_starts_anew_while_no_command_is_given_is_noticed_by_the_next() {
    both("tiny", 1, 87, |host| {
        let transport = host.transport();
        let device = Device::open(host.transport()).expect("a card");
        let pd = device.alloc_pd().unwrap();
        let endpoint = pd.endpoint().open().unwrap();
        let (_, buffer) = pd.reg_mr(64, Access::ReadWrite).unwrap();
        let receive = TaggedReceive {
            source: Source::Any,
            context: 0,
            match_bits: 0,
            ignore_bits: 0,
        };
        endpoint.post_tagged_recv(1, &receive, buffer).unwrap();
        for control in [0, CONTROL_RUN] {
            // SAFETY: it isn't the owner, but firmware that starts quiets the gates.
            unsafe { transport.write_register(CONTROL, control) }.unwrap();
        }
        // SAFETY: reading this register has no effect.
        while unsafe { transport.read_register(FIRMWARE_START) } == Ok(0) {
            let _ = device.pause(&[], device.now() + 1000);
        }
        let queue = endpoint.completion_queue();
        assert!(queue.poll().is_none(), "nobody knows yet");
        assert_eq!(device.alloc_pd().err(), Some(CommandError::Restarted));
        let flushed = queue.poll().expect("what was outstanding");
        assert_eq!((flushed.wr_id, flushed.status), (1, WcStatus::Flushed));
        assert_eq!(endpoint.close(), Ok(()));
        drop((flushed, queue, endpoint, pd, device));
        let again = Device::open(transport).expect("the card can be opened again");
        again.alloc_pd().unwrap();
    });
}

#[test]
fn garbage_in_the_mailbox_gets_an_error_and_the_firmware_goes_on() {
    let seed = 83;
    both("tiny", 1, seed, |host| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let host = RawHost::new(&host);
        let mut loopback = LoopbackEndpoint::open(&host);
        let unknown = u32::from(MailboxStatus::UnknownCommand.code());
        for code in [
            0,
            Command::ALL.last().map_or(0, |last| u32::from(last.code())) + 1,
            0xff,
            0x100 | u32::from(Command::Identify.code()),
            u32::MAX,
        ] {
            assert_eq!(host.command_words(&[code])[0], unknown, "code {code:#x}");
        }
        let safe = [
            Command::CloseDomain,
            Command::OpenEndpoint,
            Command::OpenPair,
            Command::ConnectPair,
            Command::RegisterRegion,
            Command::DeregisterRegion,
            Command::ReadCounter,
            Command::QueryPair,
        ];
        for _ in 0..40 {
            let mut words = [0; MAILBOX_WORDS];
            rng.fill(&mut words);
            words[0] = u32::from(safe[rng.random_range(0..safe.len())].code());
            let status = host.command_words(&words)[0];
            let known = u8::try_from(status).ok().and_then(MailboxStatus::from_code);
            assert!(
                known.is_some_and(|status| status != MailboxStatus::Ok),
                "{words:x?} was answered {status:#x}"
            );
        }
        loopback.assert_works();
    });
}

/// It never got ready: the logger found itself in the middle of a line at its start.
#[test]
fn firmware_held_in_the_middle_of_a_log_line_gets_ready_when_it_runs_again() {
    let seed = 84;
    GatesOnly::Firmware.run(cards("tiny", 1, seed), |host| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let transport = host.transport();
        let mut epoch = 0;
        for _ in 0..12 {
            let host = RawHost::new(&host);
            let loopback = LoopbackEndpoint::open(&host);
            // Restarted or not, an endpoint's epochs go on.
            assert!(loopback.endpoint.epoch > epoch);
            epoch = loopback.endpoint.epoch;
            // A command's line is written after its answer, which takes some 1,300 cycles; so does the first line of all.
            host.domain();
            for most in [1500, 3000] {
                let wait = transport.now() + rng.random_range(0..most);
                let _ = transport.pause(&[], wait);
                host.write(CONTROL, 0);
                host.write(CONTROL, CONTROL_RUN);
            }
        }
        LoopbackEndpoint::open(&RawHost::new(&host)).assert_works();
    });
}
