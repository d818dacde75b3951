//! Waiting for several completion queues at once: `cargo run -p host-driver --example completion_channel`.

mod support;

use host_driver::{CompletionChannel, Source, TaggedReceive, TaggedSend};
use support::{PATIENCE, Result, connected};

pub(crate) fn main() -> Result<()> {
    let (a, b) = connected()?;
    // A second endpoint of the process, with a queue of its own and a pair with the same peer.
    let second = b.pd.endpoint().open()?;
    let (from, second_address) = second.open_pair(8)?;
    let (to, a_address) = a.endpoint.open_pair(8)?;
    second.connect_pair(from, &a_address)?;
    a.endpoint.connect_pair(to, &second_address)?;

    let queues = [b.cq.clone(), second.completion_queue()];
    let mut channel = CompletionChannel::new(&queues);
    b.endpoint
        .post_tagged_recv(1, &b.receive(7), b.buffer(&[0; 8])?)?;
    let receive = TaggedReceive {
        source: Source::Pair(from),
        ..b.receive(7)
    };
    second.post_tagged_recv(2, &receive, b.buffer(&[0; 8])?)?;

    // Whichever has a completion ends the wait, which tells its place and takes nothing.
    for (place, pair, text) in [(1, to, b"second.."), (0, a.pair, b"first...")] {
        let send = TaggedSend { pair, ..a.send(7) };
        a.endpoint.post_tagged_send(3, &send, a.buffer(text)?)?;
        let ready = channel.wait(PATIENCE)?;
        assert_eq!(ready, place);
        let received = queues[ready].poll().expect("it is ready");
        assert_eq!(received.received(), text);
        println!("queue {ready}: {}", received.wr_id);
    }
    Ok(())
}
