//! Contracts of the whole datapath that a test breaks, to show that it notices.

use super::Datapath;
use crate::host::{GateReset, breaks};
use crate::verilog::Break;

/// Of the reset of the gates: of its sequence, and of what it does to the blocks.
pub fn resets() -> Vec<Break> {
    let mut all = breaks::gate_reset();
    all.extend([
        // A frame that is being sent is neither waited for nor ended.
        Break::new("cuts_frames")
            .force::<GateReset>("wire_done", "true")
            .force::<Datapath>("frame_gate.restart", "false"),
        // Doorbells that were rung before the reset are heard after it.
        Break::new("keeps_doorbells").force::<Datapath>("fetch.reset", "reset"),
    ]);
    all
}

/// Of the whole datapath.
pub fn datapath() -> Vec<Break> {
    let mut all = resets();
    // What it asks of the bus beside the access itself is wrong.
    all.push(
        Break::new("wrong_attributes")
            .force::<Datapath>("m_axi.arprot", "0")
            .force::<Datapath>("m_axi.arlock", "true")
            .force::<Datapath>("m_axi.arcache", "0")
            .force::<Datapath>("m_axi.arqos", "1")
            .force::<Datapath>("m_axi.awprot", "0")
            .force::<Datapath>("m_axi.awlock", "true")
            .force::<Datapath>("m_axi.awcache", "0")
            .force::<Datapath>("m_axi.awqos", "1"),
    );
    all
}
