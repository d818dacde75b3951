//! Two endpoints that find each other by address, talk, and part in an orderly way: `cargo run -p host-driver --example connect`.

mod support;

use host_driver::{Endpoint, EndpointAddress, Pair, Source, TaggedReceive, TaggedSend, WaitError};
use soft_card::{SoftFabric, SoftOptions};
use std::thread;
use support::{PATIENCE, Result, open};

/// Cycles after which a connection or its end is given up.
const TIMEOUT: u32 = 2_000_000;

pub(crate) fn main() -> Result<()> {
    let fabric = SoftFabric::new(SoftOptions::default());
    let (_, _, client) = open(&fabric, 0)?;
    let (_, _, server) = open(&fabric, 1)?;
    // Who connects finds an offer, or is refused.
    let offer = server.listen(8)?;
    // Eight bytes are all that a peer has to know.
    let address = EndpointAddress::from_bytes(&server.address().to_bytes());

    // The card's time waits for both threads.
    let threads = [fabric.attach(), fabric.attach()];
    thread::scope(|scope| {
        let [of_client, of_server] = threads;
        let serving = scope.spawn(move || {
            let _attached = of_server;
            serve(&server, offer).map_err(|error| error.to_string())
        });
        let asked = scope.spawn(move || {
            let _attached = of_client;
            ask(&client, address).map_err(|error| error.to_string())
        });
        for thread in [serving, asked] {
            thread.join().expect("it doesn't panic")?;
        }
        Ok(())
    })
}

fn ask(endpoint: &Endpoint, server: EndpointAddress) -> Result<()> {
    let pair = endpoint.connect(&server, 8, TIMEOUT)?;
    let send = TaggedSend {
        pair,
        context: 0,
        match_bits: 7,
        immediate: 0,
    };
    endpoint.post_tagged_inject(1, &send, b"posthorn")?;
    // What was posted arrives first; then the peer is notified.
    endpoint.disconnect(pair, TIMEOUT)?;
    Ok(())
}

fn serve(endpoint: &Endpoint, pair: Pair) -> Result<()> {
    let client = loop {
        if let Some(client) = endpoint.poll_connection(pair)? {
            break client;
        }
        // The event that the connection is made ends the wait.
        match endpoint.completion_queue().wait(PATIENCE) {
            Ok(_) | Err(WaitError::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
    };
    println!("connected to {client:?}");
    let receive = TaggedReceive {
        source: Source::Pair(pair),
        context: 0,
        match_bits: 7,
        ignore_bits: 0,
    };
    endpoint.post_tagged_recv(1, &receive, host_driver::Buffer::empty())?;
    let received = endpoint.completion_queue().wait(PATIENCE)?;
    println!("a message of {} bytes", received.length);
    Ok(())
}
