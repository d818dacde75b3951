//! The whole card at its pins: its reset.

mod support;

use abi::register::{ID, MAGIC};
use hdl::prim::power_on_reset::CYCLES;
use support::Bench;

/// As it broke: in the cycle of a reset of one edge the card still took what was offered, and forgot it.
#[test]
fn a_reset_of_one_edge_resets_the_card_and_loses_no_offer() {
    let mut bench = Bench::open_cold("nic_tiny");
    bench.model.steps(100);
    bench.set("s_axil_araddr", ID);
    bench.set("s_axil_rready", true);
    bench.set("s_axil_arvalid", true);
    bench.set("s_axis_tvalid", true);
    bench.eval();
    let readies = ["s_axil_arready", "s_axis_tready"];
    assert!(readies.iter().all(|pin| bench.is(pin)), "the card is up");
    bench.set("reset", true);
    for _ in 0..=CYCLES {
        bench.eval();
        assert!(!readies.iter().any(|pin| bench.is(pin)), "taken in reset");
        bench.step();
        bench.set("reset", false);
    }
    bench.eval();
    assert!(
        readies.iter().all(|pin| bench.is(pin)),
        "the card is up again"
    );
    bench.step();
    bench.set("s_axil_arvalid", false);
    let answer = (0..8).find_map(|_| {
        bench.eval();
        let answer = bench.is("s_axil_rvalid").then(|| bench.get("s_axil_rdata"));
        bench.step();
        answer
    });
    assert_eq!(answer, Some(MAGIC.into()));
}
