//! The whole card at its pins: its reset, and what it asks of the bus beside each access.

use abi::register::{ID, MAGIC};
use hdl::prim::power_on_reset::CYCLES;
use hdl_tests::Bench;

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

/// What IHI 0022 calls unprivileged, non-secure and data (A4.7); normal memory, neither cached nor buffered (A4.4); not exclusive (A7.4), and no
/// scheme of quality of service (A8.1).
const ATTRIBUTES: [(&str, u64); 8] = [
    ("m_axi_arprot", 0b010),
    ("m_axi_arcache", 0b0010),
    ("m_axi_arlock", 0),
    ("m_axi_arqos", 0),
    ("m_axi_awprot", 0b010),
    ("m_axi_awcache", 0b0010),
    ("m_axi_awlock", 0),
    ("m_axi_awqos", 0),
];

/// The pins that have another value in some cycle: from power-on, through a reset, and in use. Whoever looks at them with a VALID, whenever that
/// comes, reads these.
fn wrong_attributes(bench: &mut Bench) -> Vec<&'static str> {
    let mut wrong = Vec::new();
    for cycle in 0..300 {
        bench.set("reset", cycle == 200);
        bench.eval();
        let others = ATTRIBUTES
            .iter()
            .filter(|(pin, value)| bench.get(pin) != *value);
        wrong.extend(others.map(|(pin, _)| *pin));
        bench.step();
    }
    wrong.sort_unstable();
    wrong.dedup();
    wrong
}

/// As it broke: there were no such pins, and what a bus takes for them by itself may be a privileged access, or one that is answered before it is done.
#[test]
fn each_access_is_unprivileged_data_and_is_answered_when_it_is_done() {
    for card in ["nic_tiny", "datapath_tiny"] {
        assert!(
            wrong_attributes(&mut Bench::open_cold(card)).is_empty(),
            "{card}"
        );
    }
    let mut bench = Bench::broken("datapath_tiny", "wrong_attributes");
    assert_eq!(
        wrong_attributes(&mut bench).len(),
        ATTRIBUTES.len(),
        "nobody notices"
    );
}
