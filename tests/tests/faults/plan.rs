//! What a plan of faults does to cards of the model.

use abi::control::Counter;
use host_driver::transport::{PauseResult, TransportError};
use host_driver::{CommandError, WcStatus};
use posthorn_tests::cards::{CONNECTED, GatesOnly, Host, cards, modelled_under};
use posthorn_tests::side::Side;
use sim::fault::FaultPlan;

fn plan(text: &str) -> FaultPlan {
    toml::from_str(text).expect("a plan")
}

/// Card 0's firmware stands still for 90,000 cycles from `begin` on.
fn pause_at(begin: u64) -> FaultPlan {
    let end = begin + 90_000;
    plan(&format!(
        "[[card]]\ncard = 0\npause_firmware = {{ begin = {begin}, end = {end} }}"
    ))
}

/// While its firmware stands still card 0 sends a message, and a command waits until it goes on.
fn sends_and_waits(host: &Host, begin: u64) {
    let mut me = Side::open(host);
    let now = me.device.now();
    assert!(now < begin, "connected in cycle {now}");
    me.pause(begin + 10_000 - now);
    if me.rank() == 0 {
        me.send(1, 7, 0, 40);
        assert_eq!(me.statuses(1), [(0, WcStatus::Success)]);
        assert!(me.device.now() < begin + 20_000);
        assert_eq!(me.count(Counter::Timeouts), 0);
        assert!(me.device.now() >= begin + 90_000);
    } else {
        me.receive(0, Some(0), 7, 40);
        let received = me.completion();
        me.assert_received(&received, 0, 0, 40);
        me.count(Counter::Timeouts);
        assert!(me.device.now() < begin + 20_000, "its own goes on");
    }
    me.meet();
    me.finish();
}

#[test]
fn a_firmware_that_is_paused_answers_when_it_goes_on_and_its_gates_work_meanwhile() {
    let begin = 60_000;
    modelled_under(&pause_at(begin), "tiny", 2, 1, |host| {
        sends_and_waits(&host, begin);
    });
    let begin = CONNECTED;
    let cluster = cards("tiny", 2, 1).faults(pause_at(begin));
    GatesOnly::Simulation.run(cluster, |host| sends_and_waits(&host, begin));
}

#[test]
fn the_host_of_a_card_without_power_is_told_and_the_others_hear_nothing() {
    let off = "[[card]]\ncard = 0\nkill = 70000";
    modelled_under(&plan(off), "tiny", 2, 1, |host| {
        let mut me = Side::open(&host);
        if me.rank() == 0 {
            assert_eq!(me.device.pause(&[], u64::MAX), PauseResult::Closed);
            let told = me.device.read_counter(Counter::Timeouts);
            let closed = CommandError::Transport(TransportError::Closed);
            assert_eq!(
                told.map_err(|error| error.to_string()),
                Err(closed.to_string())
            );
            me.meet();
            return;
        }
        let now = me.device.now();
        me.pause(80_000 - now);
        me.send(0, 7, 0, 40);
        me.pause(100_000);
        assert!(me.count(Counter::Timeouts) > 0);
        me.pause(200_000);
        assert_eq!(me.statuses(1), [(0, WcStatus::PeerFailed)]);
        me.meet();
    });
}

#[test]
#[should_panic(expected = "host 1: card is 2: there are 2 cards, counted from 0")]
fn a_plan_for_a_card_that_is_not_there_is_an_error() {
    let nobody = plan("[[host]]\ncard = 2\nkill = 1");
    modelled_under(&nobody, "tiny", 2, 1, |_| ());
}
