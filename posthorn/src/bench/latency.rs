//! How long a message takes, from the doorbell at the sender to the completion at the receiver, and
//! where the time goes. Read off the pins of both cards, so that measuring costs nothing.
//!
//! ```text
//!  doorbell ─ fetch ─ payload ─ wire ─ match ─ write ─ complete
//!          AR…R ring  AR…R     frame  AW      …B      AW…B of the completion
//! ```

use std::ops::Range;

use abi::register::{PAGE_BYTES, SEND_TAIL};
use anyhow::{Context, Result, ensure};
use sim::fabric::Link;
use sim::memory::MemoryConfig;
use sim::timing::{Moment, Record};
use sim::{Cluster, Firmware};

use super::peer::Peer;
use super::{Point, Report};

/// Lengths measured, in bytes. Of 24 the payload is read: up to 16 go inside the request.
const LENGTHS: [usize; 6] = [0, 8, 24, 64, 256, 1024];
/// Messages of each length.
const MESSAGES: usize = 16;
/// Cycles after which nothing of a message is still under way.
const SETTLE: u64 = 2000;

/// One message: cycles of each stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stages {
    fetch: u64,
    payload: u64,
    wire: u64,
    matching: u64,
    write: u64,
    complete: u64,
    /// Accesses of host memory on the way, one after the other.
    accesses: u64,
}

impl Stages {
    fn total(&self) -> u64 {
        self.fetch + self.payload + self.wire + self.matching + self.write + self.complete
    }
}

/// Runs the suite.
///
/// # Errors
/// If the simulation fails, or the pins don't show what a message looks like.
pub fn run(config: &str, seed: u64, firmware: &Firmware) -> Result<Report> {
    let memory = MemoryConfig::default();
    let link = Link::default();
    let mut points = Vec::new();
    for bytes in LENGTHS {
        let outcome = Cluster::verilated(config)
            .cards(2)
            .seed(seed)
            .memory(memory)
            .link(link)
            .firmware(firmware.clone())
            .moments()
            .run(|host| exchange(&Peer::open(host)?, bytes));
        let moments: Vec<Vec<Record>> = outcome
            .report
            .cards
            .iter()
            .map(|card| card.moments.clone())
            .collect();
        for result in outcome.hosts()? {
            result?;
        }
        let messages = split(&moments[0], &moments[1], bytes > 0)
            .with_context(|| format!("splitting messages of {bytes} bytes"))?;
        let mut point = |stage: &'static str, value: &dyn Fn(&Stages) -> u64| {
            let values: Vec<u64> = messages.iter().map(value).collect();
            let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
            let params = [("bytes", bytes.into()), ("stage", stage.into())];
            let mut point = Point::new("one_way", params, mean, "cycles");
            point
                .beside
                .insert("max", values.iter().max().copied().unwrap_or(0) as f64);
            points.push(point);
        };
        point("fetch", &|s| s.fetch);
        point("payload", &|s| s.payload);
        point("wire", &|s| s.wire);
        point("match", &|s| s.matching);
        point("write", &|s| s.write);
        point("complete", &|s| s.complete);
        point("total", &Stages::total);
        let modelled =
            |s: &Stages| s.accesses * u64::from(memory.latency) + u64::from(link.latency);
        point("modelled_memory", &|s| {
            s.accesses * u64::from(memory.latency)
        });
        point("modelled_wire", &|_| u64::from(link.latency));
        point("card", &|s| s.total() - modelled(s));
    }
    Ok(Report::new("latency", config, seed, points))
}

/// Card 0 sends, card 1 has its receive posted long before.
fn exchange(peer: &Peer, bytes: usize) -> Result<()> {
    let mut buffer = peer.buffer(bytes)?;
    for message in 0..MESSAGES as u64 {
        if peer.is_first() {
            peer.barrier()?;
            peer.send(message, buffer)?;
        } else {
            peer.receive(message, buffer)?;
            peer.pause(SETTLE);
            peer.barrier()?;
        }
        buffer = peer.complete()?.1;
        peer.pause(SETTLE);
    }
    Ok(())
}

/// Finds the messages in what the pins of sender and receiver showed.
///
/// A payload may take several bursts; its stage ends with the last. The completion's write is the last of a message.
fn split(sender: &[Record], receiver: &[Record], has_payload: bool) -> Result<Vec<Stages>> {
    let is_doorbell = |record: &&Record| {
        matches!(record.moment, Moment::RegisterWrite { offset, .. }
            if offset >= PAGE_BYTES && offset % PAGE_BYTES == SEND_TAIL)
    };
    let is_read = |m: &Moment| matches!(m, Moment::ReadData { .. });
    let is_write = |m: &Moment| matches!(m, Moment::WriteAddress { .. });
    let is_answer = |m: &Moment| matches!(m, Moment::WriteResponse { .. });
    let mut messages = Vec::new();
    for doorbell in sender.iter().filter(is_doorbell) {
        let begin = doorbell.cycle;
        let sent = first(sender, begin, |m| matches!(m, Moment::TransmitFirst))?;
        let fetched = first(sender, begin, is_read)?;
        let read = last(sender, begin..sent, is_read)?;
        let received = first(receiver, sent, |m| matches!(m, Moment::ReceiveLast))?;
        let matched = first(receiver, received, is_write)?;
        let end = received..received + SETTLE;
        let completed = last(receiver, end.clone(), is_answer)?;
        let completing = last(receiver, end, is_write)?;
        // Without payload, the first write is the completion's.
        let written = match has_payload {
            true => last(receiver, received..completing, is_answer)?,
            false => matched,
        };
        messages.push(Stages {
            fetch: fetched - begin,
            payload: read - fetched,
            wire: received - read,
            matching: matched - received,
            write: written - matched,
            complete: completed - written,
            // One that goes inside its request isn't read.
            accesses: 2 + u64::from(has_payload) + u64::from(read > fetched),
        });
    }
    ensure!(
        messages.len() == MESSAGES,
        "{} messages of {MESSAGES} seen",
        messages.len()
    );
    Ok(messages)
}

/// Cycle of the first such moment after `at`.
fn first(records: &[Record], at: u64, is: impl Fn(&Moment) -> bool) -> Result<u64> {
    let found = records
        .iter()
        .find(|record| record.cycle > at && is(&record.moment));
    Ok(found
        .with_context(|| format!("nothing of the kind after cycle {at}"))?
        .cycle)
}

/// Cycle of the last such moment in `cycles`.
fn last(records: &[Record], cycles: Range<u64>, is: impl Fn(&Moment) -> bool) -> Result<u64> {
    let found = records
        .iter()
        .rev()
        .find(|record| cycles.contains(&record.cycle) && is(&record.moment));
    Ok(found
        .with_context(|| format!("nothing of the kind in cycles {cycles:?}"))?
        .cycle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(cycle: u64, moment: Moment) -> Record {
        Record { cycle, moment }
    }

    #[test]
    fn a_message_without_payload_has_two_accesses_of_memory() {
        let doorbell = Moment::RegisterWrite {
            offset: PAGE_BYTES + SEND_TAIL,
            value: 1,
        };
        let mut sender = Vec::new();
        let mut receiver = Vec::new();
        for k in 0..MESSAGES as u64 {
            let t = 2 * SETTLE * k;
            sender.push(record(t, doorbell));
            sender.push(record(t + 40, Moment::ReadData { addr: 0 }));
            sender.push(record(t + 60, Moment::TransmitFirst));
            receiver.push(record(t + 190, Moment::ReceiveLast));
            receiver.push(record(t + 200, Moment::WriteAddress { addr: 0, bytes: 64 }));
            receiver.push(record(t + 250, Moment::WriteResponse { addr: 0 }));
        }
        let messages = split(&sender, &receiver, false).unwrap();
        let expected = Stages {
            fetch: 40,
            payload: 0,
            wire: 150,
            matching: 10,
            write: 0,
            complete: 50,
            accesses: 2,
        };
        assert_eq!(messages, [expected; MESSAGES]);
        assert_eq!(expected.total(), 250);
    }

    #[test]
    fn a_payload_inside_its_request_is_written_and_not_read() {
        let doorbell = Moment::RegisterWrite {
            offset: PAGE_BYTES + SEND_TAIL,
            value: 1,
        };
        let (mut sender, mut receiver) = (Vec::new(), Vec::new());
        for k in 0..MESSAGES as u64 {
            let t = 2 * SETTLE * k;
            sender.push(record(t, doorbell));
            sender.push(record(t + 40, Moment::ReadData { addr: 0 }));
            sender.push(record(t + 60, Moment::TransmitFirst));
            receiver.push(record(t + 190, Moment::ReceiveLast));
            for (cycle, bytes) in [(200, 8), (240, 48)] {
                receiver.push(record(t + cycle, Moment::WriteAddress { addr: 0, bytes }));
                receiver.push(record(t + cycle + 35, Moment::WriteResponse { addr: 0 }));
            }
        }
        let messages = split(&sender, &receiver, true).unwrap();
        assert!(messages.iter().all(|one| one.accesses == 3), "{messages:?}");
    }
}
