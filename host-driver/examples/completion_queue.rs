//! Several endpoints on one completion queue, polled once: `cargo run -p host-driver --example completion_queue`.

mod support;

use host_driver::{Access, CompletionQueue, ProtectionDomain, Source, TaggedReceive, TaggedSend};
use soft_card::SoftFabric;
use support::{PATIENCE, Result, able, device};

/// Endpoints on each card.
const ENDPOINTS: usize = 2;

fn queue(fabric: &SoftFabric, card: usize) -> Result<(ProtectionDomain, CompletionQueue)> {
    let pd = device(fabric, card)?.alloc_pd()?;
    // As many requests may be outstanding on all endpoints together.
    let cq = pd.create_cq(64)?;
    Ok((pd, cq))
}

pub(crate) fn main() -> Result<()> {
    let fabric = able();
    let (here, cq) = queue(&fabric, 0)?;
    let (there, _) = queue(&fabric, 1)?;
    let mut open = Vec::new();
    for _ in 0..ENDPOINTS {
        let receiver = here.endpoint().on(&cq).open()?;
        let sender = there.endpoint().open()?;
        let (from, address) = receiver.open_pair(4)?;
        let (to, sender_address) = sender.open_pair(4)?;
        receiver.connect_pair(from, &sender_address)?;
        sender.connect_pair(to, &address)?;

        let (_, buffer) = here.reg_mr(64, Access::Write)?;
        let receive = TaggedReceive {
            source: Source::Pair(from),
            context: 0,
            match_bits: 7,
            ignore_bits: 0,
        };
        receiver.post_tagged_recv(1, &receive, buffer)?;
        open.push((receiver, sender, to));
    }
    for (receiver, sender, to) in &open {
        let send = TaggedSend {
            pair: *to,
            context: 0,
            match_bits: 7,
            immediate: 0,
        };
        let text = format!("to endpoint {}", receiver.index());
        sender.post_tagged_inject(2, &send, text.as_bytes())?;
    }
    assert_eq!(cq.outstanding(), ENDPOINTS);
    for _ in 0..ENDPOINTS {
        let completion = cq.wait(PATIENCE)?;
        // The completion names the endpoint that the receive was posted on.
        let text = format!("to endpoint {}", completion.endpoint);
        assert_eq!(completion.received(), text.as_bytes());
        println!("{text}");
    }
    // That which was opened on the queue first is closed last.
    while let Some((receiver, ..)) = open.pop() {
        receiver.close()?;
    }
    Ok(())
}
